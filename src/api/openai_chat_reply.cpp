#include "api/openai_chat_reply.h"

#include <utility>

#include "api/chat_writer.h"
#include "api/openai_chat.h"

namespace rondo {

ApiResult<PreparedReply> prepare_chat_reply(std::string_view body, const ServedModel& model,
                                            const PromptBuilder& prompts, const ReplyStamp& stamp) {
  ApiResult<PreparedChat> prepared = prepare_chat(body, model, prompts, stamp.fresh_seed);
  if (!prepared) return refusal(std::move(prepared).error());
  const ChatRequest& chat = prepared->chat;
  ChatFacts facts;
  facts.id = stamp.id;
  facts.created = stamp.created;
  facts.model = model.name;
  facts.seed = chat.seed;
  facts.arithmetic = model.arithmetic;
  facts.num_choices = chat.num_choices;
  facts.thinking = prepared->thinking;
  facts.think_end_id = model.think_end_id;
  facts.tools = chat.tools.callable;
  facts.has_logprobs = chat.num_top_logprobs >= 0;
  facts.include_usage = chat.include_usage;
  facts.prompts = &prompts;
  PreparedReply reply;
  reply.delivery = chat.delivery;
  reply.requests = std::move(prepared->requests);
  reply.writer = make_chat_writer(std::move(facts), reply.delivery);
  return reply;
}

}  // namespace rondo
