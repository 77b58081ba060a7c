// POST /v1/messages, the way out: engine events to Anthropic's JSON, whole or as server-sent events.
//
// A streamed reply is: message_start; ping; for each block content_block_start, content_block_delta (thinking_delta,
// text_delta or input_json_delta) and content_block_stop, one block after another; message_delta with stop_reason,
// usage and `rondo`; message_stop. A thinking block ends with a signature_delta. Silence is filled with pings. A
// failure after the stream began is an error event. Each event is valid UTF-8 by itself, and the blocks joined are the
// whole reply's.
//
// stop_reason: "max_tokens", "stop_sequence", "tool_use" when the reply ended by itself and its calls are whole, else
// "end_turn". A call that the reply's end cut has in `input` the arguments that were whole.
//
// A thought's signature is a hash of its text: clients want one, and it is not looked at when it comes back.
#pragma once

#include <memory>
#include <string>

#include "api/chat_writer.h"
#include "api/reply_writer.h"
#include "base/json.h"

namespace rondo {

struct MessageFacts {
  ChatFacts chat;         // of its id, too: the reply's is "msg_" and this, its calls' "toolu_" and this
  int prompt_tokens = 0;  // for message_start
  bool has_cache_control = false;
};

std::unique_ptr<ReplyWriter> make_message_writer(MessageFacts facts, Delivery delivery);

// The object in a call's arguments: whole, or what of it was whole when the reply's end cut it.
json::Object arguments_so_far(const std::string& text);

}  // namespace rondo
