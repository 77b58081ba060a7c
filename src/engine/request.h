// Request: what a client asked for, already checked; and the events that answer it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ops/sample/draw.h"

namespace rondo {

// TokenRule: which tokens may come next in one sequence (a grammar). Engine thread only.
class TokenRule {
 public:
  virtual ~TokenRule() = default;
  // At admission, before any other call: takes all the memory it will need for windows of at most `most_drafts`.
  // Nothing may be allocated after it.
  virtual void reserve(int most_drafts) = 0;
  // The tokens allowed after what was accepted and then `drafts`, as bits into `mask` (ops/sample/draw.h), which is
  // cleared.
  virtual void allow_after(std::span<const std::int32_t> drafts, std::span<std::uint32_t> mask) = 0;
  virtual void accept(std::int32_t token) = 0;
};

struct Request {
  std::vector<std::int32_t> prompt_ids;   // at least one
  int max_tokens = 1;                     // prompt + max_tokens fits the context, else submit refuses with both numbers
  DrawSettings draw;                      // ops/sample/draw.h has the order in which its fields apply
  std::vector<std::int32_t> end_ids;      // any of these ends the reply (and is its last id)
  std::vector<std::string> stop_strings;  // the reply's text ends before the first of these
  bool skip_special = true;               // leave special added tokens out of the text
  int max_draft_depth = 16;               // drafts of one window at most; 0 = no drafts, and the head is left alone
  bool use_prefix_cache = true;           // false: neither read nor write it
  double deadline_ms = 0;                 // after its arrival: then it fails, waiting or running; 0 = none
  int num_top_logprobs = -1;              // -1 = no logprobs; else the chosen token's and this many of the likeliest
  std::shared_ptr<TokenRule> rule;        // null = any token
};

enum class FinishReason { Stop, Length };  // an end token or stop string; max_tokens or the window

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;
  int cached_tokens = 0;  // of the prompt, found in the prefix cache
  int rounds = 0;         // verify forwards this sequence took part in
  int drafted = 0;        // drafts verified
  int accepted = 0;       // of those, kept
};

struct Timings {
  double queue_ms = 0;   // submit to the first prompt row
  double prompt_ms = 0;  // prompt rows to the first token
  double decode_ms = 0;  // first token to the last
};

// What the engine tells the owner of a request, in order: any number of Text, then exactly one End or Failed.
struct TextEvent {
  std::string_view text;  // whole UTF-8, possibly empty when ids alone came (a held-back code point)
  std::span<const std::int32_t> ids;
  std::span<const RowLogprobs> logprobs;  // one each id when asked for, else empty
};
struct EndEvent {
  FinishReason reason = FinishReason::Stop;
  std::string text;  // what was still held back
  std::string token_sha;
  Usage usage;
  Timings timings;
  std::optional<std::string> stop_string;  // the stop string that ended it
};

// Called on the engine thread: must not block. A sink outlives its request by shared ownership. What a TextEvent points
// to is gone when on_text returns.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_text(const TextEvent& event) = 0;
  virtual void on_end(EndEvent event) = 0;
  virtual void on_failed(Error error) = 0;  // also after a cancel: code Cancelled
};

struct RequestId {
  std::uint64_t value = 0;
  bool operator==(const RequestId&) const = default;
};

}  // namespace rondo
