// Request: what a client asked for, already checked; and the events that answer it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ops/sample/draw.h"

namespace rondo {

struct Request {
  std::vector<std::int32_t> prompt_ids;   // at least one
  int max_tokens = 1;                     // prompt + max_tokens fits the context, else submit refuses with both numbers
  DrawSettings draw;                      // ops/sample/draw.h has the order in which its fields apply
  std::vector<std::int32_t> end_ids;      // any of these ends the reply (and is its last id)
  std::vector<std::string> stop_strings;  // the reply's text ends before the first of these
  bool skip_special = true;               // leave special added tokens out of the text
};

enum class FinishReason { Stop, Length };  // an end token or stop string; max_tokens or the window

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;
  int cached_tokens = 0;
  int rounds = 0;  // verify forwards this sequence took part in
  int drafted = 0;
  int accepted = 0;
};

struct Timings {
  double queue_ms = 0;   // submit to the first prompt row
  double prompt_ms = 0;  // prompt rows to the first token
  double decode_ms = 0;  // first token to the last
};

// What the engine tells the owner of a request, in order: any number of Text, then exactly one End or Failed.
struct TextEvent {
  std::string text;  // whole UTF-8, possibly empty when ids alone came (a held-back code point)
  std::vector<std::int32_t> ids;
};
struct EndEvent {
  FinishReason reason = FinishReason::Stop;
  std::string text;  // what was still held back
  std::string token_sha;
  Usage usage;
  Timings timings;
  std::optional<std::string> stop_string;  // the stop string that ended it
};

// Called on the engine thread: must not block. A sink outlives its request by shared ownership.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_text(TextEvent event) = 0;
  virtual void on_end(EndEvent event) = 0;
  virtual void on_failed(Error error) = 0;  // also after a cancel: code Cancelled
};

struct RequestId {
  std::uint64_t value = 0;
  bool operator==(const RequestId&) const = default;
};

}  // namespace rondo
