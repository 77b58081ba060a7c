// Nothing grows after a request is admitted: a turn that neither admits nor ends a request allocates nothing, on any
// thread, whatever the requests ask for. A program of its own, as it counts every call of malloc.

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "base/clock.h"
#include "ckpt/checkpoint.h"
#include "engine/engine.h"
#include "engine/grammar_rule.h"
#include "tests/engine/real_model.h"
#include "text/tokenizer.h"

namespace {
std::atomic<bool> g_counting{false};
std::atomic<int> g_allocations{0};
void note_allocation() {
  if (g_counting.load(std::memory_order_relaxed)) g_allocations.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

#ifndef RONDO_SANITIZED  // the sanitizers have their own
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t n, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void* malloc(std::size_t size) {
  note_allocation();
  return __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) {
  note_allocation();
  return __libc_calloc(n, size);
}
void* realloc(void* old, std::size_t size) {
  note_allocation();
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  note_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  note_allocation();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
}
#endif

namespace rondo::test {
namespace {

// Takes what it is told and keeps nothing.
class CountingSink final : public EventSink {
 public:
  void on_text(const TextEvent& event) override { ids += static_cast<int>(event.ids.size()); }
  void on_end(EndEvent event) override {
    over = true;
    drafted = event.usage.drafted;
  }
  void on_failed(Error) override { over = true; }
  int ids = 0, drafted = 0;
  bool over = false;
};

class AllAllowed final : public TokenRule {
 public:
  void reserve(int) override {}
  void allow_after(std::span<const std::int32_t>, std::span<std::uint32_t> mask) override {
    std::fill(mask.begin(), mask.end(), ~0u);
  }
  void accept(std::int32_t) override {}
};

Request request_of(int i, int vocab, int max_tokens) {
  Request request;
  // The last one's is filled for several turns, and states of it are saved on the way.
  const int prompt = i == 5 ? 110 : 5 + 7 * i;
  for (int t = 0; t < prompt; ++t) request.prompt_ids.push_back((t * 37 + i * 11) % vocab);
  request.max_tokens = max_tokens;
  request.draw.temperature = i % 3 == 0 ? 0.0F : 1.0F;
  request.draw.seed = static_cast<std::uint64_t>(i);
  if (i % 4 == 1) request.draw.top_p = 0.9F;
  if (i % 4 == 2) request.draw.top_k = 50;
  if (i % 5 == 0) request.draw.presence_penalty = 0.5F;
  if (i % 5 == 1) request.draw.bias = {{3, 5.0F}};
  if (i % 2 == 0) request.num_top_logprobs = 5;
  request.stop_strings = {"a stop string that is nowhere to be found", "neither is this one"};
  request.max_draft_depth = i == 3 ? 0 : 8;
  if (i == 4) request.rule = std::make_shared<AllAllowed>();
  return request;
}

// The token with the most bytes, said over and over, and a stop string that it seems to begin for long.
void say_long_tokens(Request& request, const Tokenizer& tokenizer) {
  std::int32_t longest = 0;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.bytes_of(id).size() > tokenizer.bytes_of(longest).size() && !tokenizer.is_special(id)) longest = id;
  }
  const std::string bytes(tokenizer.bytes_of(longest));
  ASSERT_GT(bytes.size(), 15u);  // longer than a string holds in place
  request.draw.bias = {{longest, 100.0F}};
  request.draw.presence_penalty = 0;
  std::string begun;
  for (int i = 0; i < 20; ++i) begun += bytes;
  request.stop_strings.push_back(begun + "!");
}

// JSON that nests, JSON of a schema that calls itself, and an ambiguous grammar: long texts all of them.
std::shared_ptr<TokenRule> form_of(int i, const std::shared_ptr<const grammar::Vocabulary>& vocabulary,
                                   std::int32_t end) {
  const grammar::Source sources[] = {
      grammar::Source::json_object(),
      grammar::Source::json_schema(
          *parse_json(R"({"type":"array","minItems":50,"items":{"$ref":"#/$defs/t"},"$defs":{"t":
        {"type":"object","properties":{"name":{"type":"string"},"more":{"type":"array","items":{"$ref":"#/$defs/t"}}}}}})")),
      grammar::Source::ebnf("root ::= (word | [a-z]+ | word \"s\") (\" \" | \"(\" root \")\") root\n | \".\"\nword ::= "
                            "[a-z] word | [a-z]"),
  };
  return std::make_shared<GrammarRule>(*grammar::compile(sources[i], *vocabulary), vocabulary, std::vector{end},
                                       std::nullopt);
}

class NoAllocation : public testing::TestWithParam<RealModel> {};

TEST_P(NoAllocation, ARoundThatNeitherAdmitsNorEndsAllocatesNothing) {
#ifdef RONDO_SANITIZED
  GTEST_SKIP() << "the sanitizers own malloc";
#endif
  auto checkpoint = Checkpoint::open(GetParam().folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  std::optional<Tokenizer> tokenizer;
  if (GetParam().has_tokenizer) tokenizer.emplace(std::move(*Tokenizer::open(GetParam().folder)));
  ThreadPool pool(2);
  ModelOptions options;
  options.isa = GetParam().isa;
  options.context_tokens = 192;
  options.max_streams = 6;
  options.max_rows = 24;
  options.cache_states = 2;  // fewer than are saved: some have to go
  options.cache_blocks = 8;
  const auto model = load_model(*checkpoint, pool, options, {});
  ASSERT_TRUE(model);
  const SteadyClock clock;
  Engine engine(**model, tokenizer ? &*tokenizer : nullptr, costs_of((*model)->facts(), 0, 0), clock,
                {.stall_ms = 1e6, .least_shared_tokens = 4, .step_tokens = 16});
  std::shared_ptr<const grammar::Vocabulary> vocabulary;
  if (tokenizer) vocabulary = *grammar::Vocabulary::create(*tokenizer, (*model)->facts().vocab_size);
  std::vector<std::shared_ptr<CountingSink>> sinks;
  for (int i = 0; i < 6; ++i) {
    sinks.push_back(std::make_shared<CountingSink>());
    Request request = request_of(i, (*model)->facts().vocab_size, 75 + i);
    if (i == 5 && tokenizer) say_long_tokens(request, *tokenizer);
    if (i < 3 && tokenizer) request.rule = form_of(i, vocabulary, *tokenizer->find_id("<|im_end|>"));
    ASSERT_TRUE(engine.submit(std::move(request), sinks.back()));
  }
  const auto anyone_over = [&] {
    return std::any_of(sinks.begin(), sinks.end(), [](const auto& s) { return s->over; });
  };
  engine.turn();  // admits
  const std::uint64_t saved_before = engine.counters().states_saved;
  std::uint64_t saved = 0;
  int turns = 0;
  while (true) {
    g_allocations = 0;
    g_counting = true;
    engine.turn();
    g_counting = false;
    if (anyone_over()) break;
    ASSERT_EQ(g_allocations, 0) << "turn " << turns;
    saved = engine.counters().states_saved - saved_before;
    ++turns;
  }
  EXPECT_GT(turns, 8);
  EXPECT_GT(saved, 2u);
  while (engine.turn()) {
  }
  int drafted = 0;
  for (const auto& sink : sinks) drafted += sink->drafted;
  EXPECT_GT(drafted, 50);
}

// Not the GPU's: its driver allocates for itself now and then, which nobody here can tell from ours.
std::vector<RealModel> models_of_the_cpu() {
  std::vector<RealModel> models = real_models();
  std::erase_if(models, [](const RealModel& each) { return each.isa == Isa::Sm90; });
  return models;
}

INSTANTIATE_TEST_SUITE_P(Every, NoAllocation, testing::ValuesIn(models_of_the_cpu()),
                         [](const auto& each) { return each.param.name; });

// Planted control: an allocation is counted.
TEST(NoAllocation, APlantedAllocationIsCounted) {
#ifdef RONDO_SANITIZED
  GTEST_SKIP() << "the sanitizers own malloc";
#endif
  g_allocations = 0;
  g_counting = true;
  const auto planted = std::make_unique<std::vector<int>>(100);
  g_counting = false;
  EXPECT_EQ(planted->size(), 100u);
  EXPECT_EQ(g_allocations, 2);
}

}  // namespace
}  // namespace rondo::test
