#include "cli/selfcheck/texts.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>

#include "base/clock.h"
#include "base/random.h"
#include "base/sha256.h"
#include "engine/engine.h"

namespace rondo {

namespace {

constexpr int kRequests = kCheckedStreams;
constexpr int kReply = 24;
constexpr int kNextQuestion = 6, kNextReply = 16;  // tokens of a conversation's next turn
constexpr int kShortPrompt = 5, kLongPrompt = 90;  // tokens; a long one does not fit one window

// Costs that make every draft worth its row: a forward takes the same for any number of rows, and the head nothing. So
// every stream drafts as deep as its request allows, whatever this machine's real costs are.
CostTables free_drafts(const ModelFacts& facts) {
  CostTables tables;
  for (int i = 0; i < 2; ++i) {
    tables.context_tokens[i] = i == 0 ? 1 : facts.context_tokens;
    tables.verify_ms[i].assign(static_cast<std::size_t>(facts.max_rows) + 1, 1.0);
  }
  tables.absorb_ms.assign(2, 0.0);
  tables.level_ms.assign(static_cast<std::size_t>(facts.max_streams) + 1, 0.0);
  return tables;
}

class TextSink final : public EventSink {
 public:
  explicit TextSink(int max_tokens) {  // so that it takes no memory while the engine runs
    text.ids.reserve(static_cast<std::size_t>(max_tokens));
    text.logprobs.reserve(static_cast<std::size_t>(max_tokens));
  }
  void on_text(const TextEvent& event) override {
    text.ids.insert(text.ids.end(), event.ids.begin(), event.ids.end());
    text.logprobs.insert(text.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
  }
  void on_end(EndEvent event) override {
    text.token_sha = event.token_sha;
    text.usage = event.usage;
    is_over = true;
  }
  void on_failed(Error error) override {
    text.failure = error.message;
    is_over = true;
  }
  Text text;
  bool is_over = false;
};

std::string difference(const Text& got, const Text& alone) {
  if (!got.failure.empty()) return got.failure;
  const auto at = std::mismatch(got.ids.begin(), got.ids.end(), alone.ids.begin(), alone.ids.end());
  if (at.first != got.ids.end() || at.second != alone.ids.end()) {
    const auto id = [](const Text& of, auto it) {
      return it == of.ids.end() ? std::string("no") : fmt::format("{}", *it);
    };
    return fmt::format("at token {}: {} against {}", at.first - got.ids.begin() + 1, id(got, at.first),
                       id(alone, at.second));
  }
  if (got.token_sha != alone.token_sha) return "in its token_sha, though not in its ids";
  return "in its log probabilities, though not in its ids";
}

// Together, all from the start.
std::vector<Text> answers(Engine& engine, const std::vector<Request>& requests) {
  std::vector<std::shared_ptr<TextSink>> sinks;
  for (const Request& request : requests) {
    sinks.push_back(std::make_shared<TextSink>(request.max_tokens));
    const auto id = engine.submit(request, sinks.back());
    if (!id) sinks.back()->on_failed(id.error());
  }
  while (!std::ranges::all_of(sinks, [](const auto& sink) { return sink->is_over; })) engine.turn();
  std::vector<Text> texts;
  for (const auto& sink : sinks) texts.push_back(std::move(sink->text));
  return texts;
}

bool same_bits(const Text& a, const Text& b) {
  return a.failure.empty() && b.failure.empty() && a.ids == b.ids && a.token_sha == b.token_sha &&
         std::equal(a.logprobs.begin(), a.logprobs.end(), b.logprobs.begin(), b.logprobs.end(),
                    [](const RowLogprobs& x, const RowLogprobs& y) { return rondo::same_bits(x, y); });
}

}  // namespace

TextChecks::TextChecks(const Subject& subject) : subject_(subject), end_id_(kRequests, -1) {}

Request TextChecks::request(int i, int draft_depth) const {
  const bool is_long = i % 8 == 5 || i % 8 == 6;
  const int length = is_long ? kLongPrompt + i : kShortPrompt + i * 11 % 40;
  Request request{.prompt_ids = subject_.ids(100 + static_cast<std::uint64_t>(i), length),
                  .max_tokens = kReply - i % 3,
                  .draw = settings(i, subject_.model.facts().vocab_size),
                  .end_ids = {},
                  .stop_strings = {},
                  .skip_special = true,
                  .max_draft_depth = draft_depth,
                  .use_prefix_cache = false,
                  .num_top_logprobs = i % 3 == 0 ? 5 : -1,
                  .rule = nullptr};
  if (const std::int32_t end = end_id_[static_cast<std::size_t>(i)]; end >= 0) request.end_ids = {end};
  return request;
}

std::vector<Text> TextChecks::run(const std::vector<Stream>& streams) const {
  const SteadyClock clock;
  Engine engine(subject_.model, nullptr, free_drafts(subject_.model.facts()), clock, {});
  std::vector<std::shared_ptr<TextSink>> sinks;
  for (std::size_t i = 0; i < streams.size(); ++i) sinks.push_back(std::make_shared<TextSink>(kReply));
  std::vector<std::optional<RequestId>> submitted(streams.size());
  const auto all_over = [&] { return std::ranges::all_of(sinks, [](const auto& sink) { return sink->is_over; }); };
  for (int turn = 0; !all_over(); ++turn) {
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].joins == turn) {
        const auto id = engine.submit(request(streams[i].request, streams[i].draft_depth), sinks[i]);
        if (id) {
          submitted[i] = *id;
        } else {
          sinks[i]->on_failed(id.error());
        }
      }
      if (streams[i].leaves == turn && submitted[i]) engine.cancel(*submitted[i]);
    }
    engine.turn();
  }
  std::vector<Text> texts;
  for (const auto& sink : sinks) texts.push_back(std::move(sink->text));
  return texts;
}

void TextChecks::begin_fresh() {
  constexpr std::size_t kEnd = 14;  // where some replies get their end token
  std::vector<Stream> streams;
  for (int i = 0; i < kRequests; ++i) streams.push_back({.request = i, .joins = 0});
  fresh_ = run(streams);
  for (std::size_t i = 1; i < fresh_.size(); i += 4) {
    Text& text = fresh_[i];
    if (text.ids.size() <= kEnd) continue;
    end_id_[i] = text.ids[kEnd];
    text.ids.erase(std::find(text.ids.begin(), text.ids.end(), end_id_[i]) + 1, text.ids.end());
    text.logprobs.resize(std::min(text.logprobs.size(), text.ids.size()));
    text.token_sha = token_sha(text.ids);
  }
}

// Every request by itself, undrafted.
const std::vector<Text>& TextChecks::alone() {
  for (int i = static_cast<int>(alone_.size()); i < kRequests; ++i)
    alone_.push_back(run({{.request = i, .joins = 0}})[0]);
  return alone_;
}

void TextChecks::compare(const Stream& stream, const Text& got, const std::string& where, Tally& tally) {
  const Text& expected = alone()[static_cast<std::size_t>(stream.request)];
  tally.see(same_bits(got, expected), [&] {
    return fmt::format("{}, the text of request {} ({}) differs from its own alone {}", where, stream.request,
                       is_greedy(stream.request) ? "greedy" : "sampled", difference(got, expected));
  });
}

void TextChecks::together(Tally& tally) {
  tally.expect(kRequests * (kRequests + 1) / 2);
  int greedy = 0, cancelled = 0;
  alone();
  for (int count = 1; count <= kRequests; ++count) {
    std::vector<Stream> streams;
    for (int i = 0; i < count; ++i) {
      const int request = (i * 5 + count) % kRequests;
      streams.push_back(
          {.request = request,
           .joins = static_cast<int>(random_bits(5, static_cast<std::uint64_t>(count * kRequests + i)) % 6)});
      greedy += is_greedy(request) ? 1 : 0;
    }
    // One more, who leaves in the middle; with 16 others it waits for a slot.
    streams.push_back({.request = (count + 3) % kRequests, .joins = 2, .leaves = 8 + count});
    const std::vector<Text> texts = run(streams);
    for (int i = 0; i < count; ++i)
      compare(streams[static_cast<std::size_t>(i)], texts[static_cast<std::size_t>(i)],
              fmt::format("with {} streams and one that leaves", count), tally);
    cancelled += texts.back().failure.empty() ? 0 : 1;
  }
  tally.note(fmt::format("{} greedy, {} sampled; {} cancelled beside them", greedy, tally.total() - greedy, cancelled));
}

void TextChecks::drafted(Tally& tally) {
  if (!subject_.model.facts().has_head) return tally.skip("this model has no draft head");
  constexpr int kAlone = 2;  // of each depth, by themselves
  tally.expect(kCheckedDepth * (kRequests + kAlone) + 2);
  int verified = 0, kept = 0;
  alone();
  const auto check = [&](const std::vector<Stream>& streams, const std::string& where) {
    const std::vector<Text> texts = run(streams);
    for (std::size_t i = 0; i < streams.size(); ++i) {
      compare(streams[i], texts[i], where, tally);
      verified += texts[i].usage.drafted;
      kept += texts[i].usage.accepted;
    }
  };
  for (int depth = 1; depth <= kCheckedDepth; ++depth) {
    std::vector<Stream> streams;
    for (int i = 0; i < kRequests; ++i)
      streams.push_back({.request = i, .joins = (i * depth) % 5, .draft_depth = depth});
    check(streams, fmt::format("drafted {} deep with {} streams", depth, kRequests));
    for (int i = 0; i < kAlone; ++i)
      check({{.request = (depth + i * 9) % kRequests, .joins = 0, .draft_depth = depth}},
            fmt::format("drafted {} deep by itself", depth));
  }
  tally.see(kept > 0, [&] { return fmt::format("none of {} drafts was kept: keeping is not checked here", verified); });
  tally.see(verified > kept,
            [&] { return fmt::format("all of {} drafts were kept: rejecting is not checked here", verified); });
  tally.note(fmt::format("{} drafts kept, {} rejected", kept, verified - kept));
}

void TextChecks::again(Tally& tally) {
  tally.expect(kRequests);
  for (int i = 0; i < kRequests; ++i) {
    const Text got = run({{.request = i, .joins = 0}})[0];
    const Text& expected = fresh_[static_cast<std::size_t>(i)];
    tally.see(same_bits(got, expected), [&] {
      return fmt::format("after all the others, the text of request {} ({}) differs from the one on a fresh slot {}", i,
                         is_greedy(i) ? "greedy" : "sampled", difference(got, expected));
    });
  }
}

// The request, its text and a further question.
Request TextChecks::next_turn(int i, int draft_depth) const {
  Request next = request(i, draft_depth);
  const std::vector<std::int32_t>& said = alone_[static_cast<std::size_t>(i)].ids;
  const std::vector<std::int32_t> asked = subject_.ids(300 + static_cast<std::uint64_t>(i), kNextQuestion);
  next.prompt_ids.insert(next.prompt_ids.end(), said.begin(), said.end());
  next.prompt_ids.insert(next.prompt_ids.end(), asked.begin(), asked.end());
  next.max_tokens = kNextReply;
  return next;
}

void TextChecks::resumed(Tally& tally) {
  const ModelFacts& facts = subject_.model.facts();
  if (facts.num_states == 0) return tally.skip("this model keeps no states");
  constexpr int kTimes = 3;  // the first time leaves the end of the text, the second the end of the prompt
  tally.expect(kRequests * (kTimes + 1) + 1);
  const SteadyClock clock;
  std::vector<Text> next_alone;
  for (const Text& text : alone()) {
    Engine fresh(subject_.model, nullptr, free_drafts(facts), clock, {});
    next_alone.push_back(answers(fresh, {next_turn(static_cast<int>(&text - alone_.data()), 0)})[0]);
  }
  Engine engine(subject_.model, nullptr, free_drafts(facts), clock, {.least_shared_tokens = 4});
  int num_resumed = 0, tokens = 0;
  for (int time = 0; time <= kTimes; ++time) {
    const bool is_next = time == kTimes;
    std::vector<Request> requests;
    for (int i = 0; i < kRequests; ++i) {
      const int depth = facts.has_head ? (i + time) % (kCheckedDepth + 1) : 0;
      requests.push_back(is_next ? next_turn(i, depth) : request(i, depth));
      requests.back().use_prefix_cache = true;
    }
    const std::vector<Text> texts = answers(engine, requests);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Text& expected = is_next ? next_alone[i] : alone_[i];
      tally.see(same_bits(texts[i], expected), [&] {
        return fmt::format("going on from {} kept tokens, {} of request {} ({}) differs from its own afresh {}",
                           texts[i].usage.cached_tokens, is_next ? "the next turn" : "the text", i,
                           is_greedy(static_cast<int>(i)) ? "greedy" : "sampled", difference(texts[i], expected));
      });
      num_resumed += texts[i].usage.cached_tokens > 0 ? 1 : 0;
      tokens += texts[i].usage.cached_tokens;
    }
  }
  tally.see(num_resumed >= kRequests, [&] {
    return fmt::format("only {} texts went on from a kept state: that is not checked here", num_resumed);
  });
  tally.note(fmt::format("{} went on from {} kept tokens", num_resumed, tokens));
}

namespace {

// Bytes that malloc has given out and not got back; 0 where it is not the C library's own malloc.
std::size_t heap_bytes() {
  const auto heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

}  // namespace

void TextChecks::memory(Tally& tally) {
  if (heap_bytes() == 0) return tally.skip("this program's malloc does not say what it has given out");
  const SteadyClock clock;
  Engine engine(subject_.model, nullptr, free_drafts(subject_.model.facts()), clock, {});
  std::vector<std::shared_ptr<TextSink>> sinks;
  for (int i = 0; i < kRequests; ++i) {
    sinks.push_back(std::make_shared<TextSink>(kReply));
    const auto id = engine.submit(request(i, i % (kCheckedDepth + 1)), sinks.back());
    if (!id) sinks.back()->on_failed(id.error());
  }
  engine.turn();  // all are admitted: from here on nothing may grow
  std::vector<std::size_t> held{heap_bytes()};
  held.reserve(static_cast<std::size_t>(kReply * 2 + kRequests));
  held[0] = heap_bytes();
  while (engine.turn() && held.size() < held.capacity()) held.push_back(heap_bytes());
  tally.expect(static_cast<int>(held.size()) - 1);
  for (std::size_t turn = 1; turn < held.size(); ++turn) {
    tally.see(held[turn] <= held[turn - 1], [&] {
      return fmt::format("round {} of {} streams left {} bytes more on the heap than it found", turn, kRequests,
                         held[turn] - held[turn - 1]);
    });
  }
  tally.note(fmt::format("heap alone; {} MiB were reserved at load", subject_.model.plan().reserved_bytes() >> 20));
}

}  // namespace rondo
