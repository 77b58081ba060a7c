#include "api/openai_chat_reply.h"

#include <utility>

namespace rondo {

ChatFacts facts_of(const PreparedChat& prepared, const ServedModel& model, const PromptBuilder& prompts,
                   const ReplyStamp& stamp) {
  const ChatRequest& chat = prepared.chat;
  ChatFacts facts;
  facts.id = stamp.id;
  facts.created = stamp.created;
  facts.model = model.name;
  facts.seed = chat.seed;
  facts.arithmetic = model.arithmetic;
  facts.num_choices = chat.num_choices;
  facts.thinking = prepared.thinking;
  facts.think_end_id = model.think_end_id;
  facts.tools = chat.tools.callable;
  facts.has_logprobs = chat.num_top_logprobs >= 0;
  facts.include_usage = chat.include_usage;
  facts.prompts = &prompts;
  return facts;
}

ApiResult<PreparedReply> prepare_chat_reply(std::string_view body, const ServedModel& model,
                                            const PromptBuilder& prompts, const ReplyStamp& stamp) {
  ApiResult<PreparedChat> prepared = prepare_chat(body, model, prompts, stamp.fresh_seed);
  if (!prepared) return refusal(std::move(prepared).error());
  ChatFacts facts = facts_of(*prepared, model, prompts, stamp);
  PreparedReply reply;
  reply.delivery = prepared->chat.delivery;
  reply.requests = std::move(prepared->requests);
  reply.writer = make_chat_writer(std::move(facts), reply.delivery);
  return reply;
}

}  // namespace rondo
