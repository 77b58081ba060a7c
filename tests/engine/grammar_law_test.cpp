// The laws for replies held to a form, on real models, bit for bit: drafted = undrafted at every depth, concurrent =
// alone among free streams and streams that leave, token ids and logprobs, greedy and seeded. Drafts are kept and
// refused under masks, and every reply has its form.

#include <gtest/gtest.h>

#include "engine/grammar_rule.h"
#include "engine/thinking_budget.h"
#include "grammar/grammar.h"
#include "tests/engine/real_model_fixture.h"
#include "tests/engine/schedules.h"
#include "tests/text/tiny_tokenizer.h"

namespace rondo::test {
namespace {

using grammar::Calls;
using grammar::Source;

#ifdef RONDO_SANITIZED
constexpr int kSchedules = 4;
const std::vector<int> kDepths = {1, 4, 8};
#else
constexpr int kSchedules = 24;
const std::vector<int> kDepths = {1, 2, 3, 4, 5, 6, 7, 8};
#endif

struct Form {
  const char* name;
  Source source;
  const char* question;   // a model that has learned something answers it in this form
  const char* likely;     // characters that random weights are made to favour
  bool is_after_thought;  // of at most three tokens
};

constexpr const char* kWord = R"({"type":"object","additionalProperties":false,"required":["word","kind","senses"],
  "properties":{"word":{"type":"string","maxLength":9},"kind":{"enum":["noun","verb"]},"rank":{"type":"integer","minimum":1},
  "senses":{"type":"array","items":{"type":"string"},"minItems":1}}})";
constexpr const char* kCity = R"({"type":"object","properties":{"city":{"type":"string"}},"required":["city"]})";
constexpr const char* kDefine = "Define the word river.";
constexpr const char* kWeather = "What is the weather in Oslo?";

std::vector<Form> forms() {
  const std::vector<grammar::ToolFunction> tools = {{"get_weather", parse_json(kCity)->as_object(), true},
                                                    {"now", {}, false}};
  const Source word = Source::json_schema(*parse_json(kWord));
  return {
      {"object", Source::json_object(), kDefine, "ab\"{}:", false},
      {"schema", word, kDefine, "ab\"", false},
      {"regex", Source::regex("([a-c]{1,3}|river \\(noun\\): )[a-z ]*\\."), kDefine, "ab", false},
      {"choice", Source::choice({"23 + 45 = 68", "23 + 45 = 67", "certainly", "certain"}), "What is 23 + 45?", "23",
       false},
      {"ebnf", Source::ebnf("root ::= \"(\" root \")\" | [a-z0-9]+ ([ +=]+ root)?"), "What is 23 + 45?", "(a", false},
      {"call", Source::tool_calls(tools, Calls::One), kWeather, "gab", false},
      {"calls", Source::tool_calls(tools, Calls::Several), kWeather, "gab", false},
      {"text, then calls", Source::tool_calls(tools, Calls::TextThenSeveral), kWeather, "gab<", false},
      {"schema or calls", Source::either(word, Source::tool_calls(tools, Calls::Several)), kWeather, "<gab", false},
      {"schema after a thought", word, kDefine, "ab\"", true},
  };
}

// The first of `ids` that `rule`, asked afresh before each, does not allow; -1: it allows them all.
int first_forbidden(TokenRule& rule, std::span<const std::int32_t> ids, int vocab_size) {
  rule.reserve(0);
  std::vector<std::uint32_t> mask((static_cast<std::size_t>(vocab_size) + 31) / 32);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::fill(mask.begin(), mask.end(), 0U);
    rule.allow_after({}, mask);
    if (!allows(mask, ids[i])) return static_cast<int>(i);
    rule.accept(ids[i]);
  }
  return -1;
}

struct Tally {
  int whole = 0, cancelled = 0, drafted = 0, accepted = 0;  // of replies held to a form
};

class FormLawsOn : public RealModelTest {
 protected:
  FormLawsOn() : RealModelTest(192) {}

  void SetUp() override {
    RealModelTest::SetUp();
    if (tokenizer() == nullptr) tiny_.emplace(tiny_tokenizer());
    lone_model_ = load(1, 64, 1, false);
    vocab_size_ = lone_model_->facts().vocab_size;
    vocabulary_ = *grammar::Vocabulary::create(spelling(), vocab_size_);
    end_ = *spelling().find_id("<|im_end|>");
    thought_end_ = *spelling().find_id(has_learned() ? "</think>" : "<think>");
    for (const Form& form : forms_) {
      const auto compiled = grammar::compile(form.source, *vocabulary_);
      ASSERT_TRUE(compiled) << form.name << ": " << compiled.error().message;
      grammars_.push_back(*compiled);
    }
  }

  bool has_learned() const { return tokenizer() != nullptr; }
  const Tokenizer& spelling() const { return has_learned() ? *tokenizer() : *tiny_; }

  std::shared_ptr<TokenRule> rule_of(std::size_t form) const {
    const bool thinks = forms_[form].is_after_thought;
    const auto rule = std::make_shared<GrammarRule>(grammars_[form], vocabulary_, std::vector{end_},
                                                    thinks ? std::optional(thought_end_) : std::nullopt);
    if (!thinks) return rule;
    return std::make_shared<ThinkingBudget>(3, std::vector{thought_end_}, thought_end_, rule);
  }

  // Holds `request` to a form, and makes an answer in it likely.
  std::function<Request()> held_to(std::size_t form, Request request) const {
    const Form& f = forms_[form];
    const std::string thought = f.is_after_thought ? "<think>\n" : "<think>\n\n</think>\n\n";
    if (has_learned()) {
      const std::string said = std::string("<|im_start|>user\n") + f.question + "<|im_end|>\n<|im_start|>assistant\n";
      request.prompt_ids = spelling().encode(said + thought);
    } else {
      for (const char c : std::string_view(f.likely)) request.draw.bias.push_back({c, favour()});
    }
    request.end_ids = {end_};
    request.max_tokens = std::min(request.max_tokens, context_tokens() - static_cast<int>(request.prompt_ids.size()));
    return [this, request, form] {
      Request made = request;
      made.rule = rule_of(form);
      return made;
    };
  }

  int most_reply() const { return has_learned() ? 28 : 64; }                         // the latter writes a byte a token
  float favour() const { return GetParam().folder.ends_with("/qwen3_5") ? 30 : 6; }  // over the spread of its logits

  RequestSpace space() const {
    RequestSpace s;
    s.context_tokens = context_tokens();
    s.most_reply = most_reply();
    s.alphabet = has_learned() ? spelling().encode("The town lies by the river, and {\"the river\": \"is slow\"}.")
                               : std::vector<std::int32_t>{'a', 'b', 'c', ' ', '"', '{', '}', ':'};
    s.end_ids = {end_};
    if (has_learned()) s.stops = {"the", " is s"};
    s.bias = has_learned() ? 2 : favour();
    return s;
  }

  // Of a reply that ended.
  void expect_its_form(const RecordingSink& sink, std::size_t form) {
    EXPECT_EQ(first_forbidden(*rule_of(form), sink.ids, vocab_size_), -1) << forms_[form].name;
    tally_.whole += sink.ids.back() == end_ ? 1 : 0;
    tally_.drafted += sink.end->usage.drafted;
    tally_.accepted += sink.end->usage.accepted;
  }
  void expect_drafts_kept_and_refused(int least) {
    printf("%d whole, %d cancelled, %d of %d drafts kept\n", tally_.whole, tally_.cancelled, tally_.accepted,
           tally_.drafted);
    EXPECT_GT(tally_.accepted, least);
    EXPECT_GT(tally_.drafted - tally_.accepted, least);
  }

  const std::vector<Form> forms_ = forms();
  std::optional<Tokenizer> tiny_;  // of a model without one
  std::unique_ptr<Model> lone_model_;
  int vocab_size_ = 0;
  std::int32_t end_ = 0, thought_end_ = 0;
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  std::vector<std::shared_ptr<const grammar::Grammar>> grammars_;
  FakeClock clock_;
  Tally tally_;
};

TEST_P(FormLawsOn, AFormedReplyIsTheUndraftedOneAtEveryDepth) {
  const auto model = load(1, 9, 8, true);
  Engine engine(*model, tokenizer(), costs_of(model->facts(), 0, 0), clock_, {});
  Engine lone(*lone_model_, tokenizer(), {}, clock_, {});
  std::size_t forms_kept = 0;
  for (std::size_t form = 0; form < forms_.size(); ++form) {
    int accepted = 0;
    for (const float temperature : {0.0F, 0.8F}) {
      Request request;
      request.prompt_ids = {'a', 'b', '{', '"'};
      request.max_tokens = most_reply();
      request.draw.temperature = temperature;
      request.draw.seed = 7 + form;
      request.num_top_logprobs = 4;
      request.max_draft_depth = 0;
      const auto alone = drive_alone(lone, {{held_to(form, request)}})[0];
      for (const int depth : kDepths) {
        request.max_draft_depth = depth;
        const auto got = drive(engine, {{held_to(form, request)}})[0];
        ASSERT_EQ(difference(*got, *alone), "") << forms_[form].name << ", depth " << depth;
        expect_its_form(*got, form);
        accepted += got->end->usage.accepted;
      }
    }
    forms_kept += accepted > 0 ? 1 : 0;
    if (has_learned()) {
      EXPECT_GT(accepted, 0) << forms_[form].name;
    }
  }
  EXPECT_GT(tally_.whole, 0);
  EXPECT_GT(forms_kept, 5U);  // random weights do not agree on every form
  expect_drafts_kept_and_refused(40);
}

TEST_P(FormLawsOn, AFormedReplyIsWhatItIsAloneAmongFreeStreamsAndOnesThatLeave) {
  std::vector<std::unique_ptr<Model>> models;
  models.push_back(load(12, 30, 8, true));
  models.push_back(load(3, 14, 8, true));
  Engine lone(*lone_model_, tokenizer(), {}, clock_, {});
  for (int seed = 0; seed < kSchedules; ++seed) {
    Dice dice(static_cast<std::uint64_t>(seed) + 4000);
    Model& model = *models[static_cast<std::size_t>(seed) % models.size()];
    const CostTables costs = dice.chance(75) ? costs_of(model.facts(), 0, 0) : costs_of(model.facts(), 20, 10);
    Engine engine(model, tokenizer(), costs, clock_, {.least_shared_tokens = dice.between(1, 16), .step_tokens = 32});
    std::vector<Visit> visits;
    std::vector<std::optional<std::size_t>> form_of;
    for (int n = model.facts().max_streams + dice.below(4); n > 0; --n) {
      RequestSpace drawn = space();
      drawn.rules = dice.chance(50);
      auto request = random_request(dice, drawn);
      form_of.emplace_back();
      if (!drawn.rules || dice.chance(30)) {
        drawn.rules = false;
        form_of.back() = static_cast<std::size_t>(dice.below(static_cast<int>(forms_.size())));
        request = held_to(*form_of.back(), random_request(dice, drawn)());
      }
      visits.push_back({std::move(request), dice.below(8)});
      if (dice.chance(20)) visits.back().leaves_at = visits.back().joins_at + dice.below(12);
    }
    const auto got = drive(engine, visits), alone = drive_alone(lone, visits);
    for (std::size_t i = 0; i < visits.size(); ++i) {
      ASSERT_EQ(difference(*got[i], *alone[i]), "") << "schedule " << seed << " request " << i;
      if (!form_of[i]) continue;
      if (got[i]->end)
        expect_its_form(*got[i], *form_of[i]);
      else
        ++tally_.cancelled;
    }
  }
  expect_drafts_kept_and_refused(kSchedules);
  EXPECT_GT(tally_.cancelled, 0);
}

// Planted control: the check of a form sees a reply of another one.
TEST_P(FormLawsOn, AReplyOfAnotherFormIsSeen) {
  Engine lone(*lone_model_, tokenizer(), {}, clock_, {});
  Request request;
  request.prompt_ids = {'a'};
  request.max_tokens = most_reply();
  const auto reply = drive_alone(lone, {{held_to(0, request)}})[0];
  EXPECT_EQ(first_forbidden(*rule_of(0), reply->ids, vocab_size_), -1);
  EXPECT_EQ(first_forbidden(*rule_of(5), reply->ids, vocab_size_), 0);
}

std::vector<RealModel> speaking_models() {
  std::vector<RealModel> all = real_models();
#ifdef RONDO_FEWER_RUNS  // under a sanitizer the bundled model takes minutes, and the fixtures run the same code
  std::erase_if(all, [](const RealModel& each) { return each.name.starts_with("bundled"); });
#endif
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, FormLawsOn, testing::ValuesIn(speaking_models()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace rondo::test
