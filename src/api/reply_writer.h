// ReplyWriter: the engine's events of one HTTP request to the bytes of its reply, in the form of one public API.
//
// A request has one or more choices, each of them an engine request of its own. Events come interleaved; those of one
// choice in order. Streamed, every call returns whole server-sent events, possibly none. Whole, every call returns
// nothing but the last choice's finish(), which is the body.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/error.h"
#include "api/prompt_builder.h"
#include "api/reply_settings.h"
#include "api/served_model.h"
#include "engine/request.h"

namespace rondo {

class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;
  virtual std::string begin() { return ""; }
  virtual std::string push(int choice, const TextEvent& event) = 0;
  virtual std::string finish(int choice, const EndEvent& end) = 0;
  // The end of a stream that cannot go on. Whole replies have a status for that, and never ask.
  virtual std::string fail(const ApiError& error) = 0;
  // What a silent stream says now and then, for proxies that hang up on silence.
  virtual std::string keep_alive() const { return ": still here\n\n"; }
};

// What a reply is given from outside, so that making one stays a function of its arguments.
struct ReplyStamp {
  std::int64_t fresh_seed = 0;  // for a request that names none; 53 bits, so that every JSON reader keeps it
  std::string id;               // the part of the reply's id that no other reply has
  std::int64_t created = 0;     // seconds since 1970
};

// A body read, rendered and tokenised: what the engine is to do, and who writes the reply.
struct PreparedReply {
  Delivery delivery = Delivery::Whole;
  std::vector<Request> requests;        // one a choice; none: `body` is the reply already
  std::unique_ptr<ReplyWriter> writer;  // null without requests
  std::string body;
};

// How a route makes its replies; on a worker thread.
using PrepareReply = ApiResult<PreparedReply> (*)(std::string_view body, const ServedModel& model,
                                                  const PromptBuilder& prompts, const ReplyStamp& stamp);

}  // namespace rondo
