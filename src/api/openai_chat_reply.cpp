#include "api/openai_chat_reply.h"

#include <utility>

#include "api/openai_chat.h"
#include "api/openai_reply.h"

namespace rondo {

namespace {

class WholeChat final : public ReplyWriter {
 public:
  explicit WholeChat(ReplyFacts facts) : reply_(std::move(facts)) {}
  std::string push(int /*choice*/, const TextEvent& event) override {
    reply_.push(event);
    return "";
  }
  std::string finish(int /*choice*/, const EndEvent& end) override { return reply_.finish(end); }
  std::string fail(const ApiError& error) override { return render_openai_error(error); }

 private:
  WholeReply reply_;
};

class StreamedChat final : public ReplyWriter {
 public:
  explicit StreamedChat(ReplyFacts facts) : reply_(std::move(facts)) {}
  std::string begin() override { return reply_.begin(); }
  std::string push(int /*choice*/, const TextEvent& event) override { return reply_.push(event); }
  std::string finish(int /*choice*/, const EndEvent& end) override { return reply_.finish(end); }
  std::string fail(const ApiError& error) override { return StreamedReply::fail(error); }

 private:
  StreamedReply reply_;
};

ReplyFacts facts_of(const ServedModel& model, const PreparedChat& prepared, const ReplyStamp& stamp) {
  ReplyFacts facts;
  facts.id = "chatcmpl-" + stamp.id;
  facts.created = stamp.created;
  facts.model = model.name;
  facts.seed = prepared.chat.seed;
  facts.arithmetic = model.arithmetic;
  facts.thinking = prepared.thinking;
  facts.think_end_id = model.think_end_id;
  facts.include_usage = prepared.chat.include_usage;
  return facts;
}

}  // namespace

ApiResult<PreparedReply> prepare_chat_reply(std::string_view body, const ServedModel& model,
                                            const PromptBuilder& prompts, const ReplyStamp& stamp) {
  ApiResult<PreparedChat> prepared = prepare_chat(body, model, prompts, stamp.fresh_seed);
  if (!prepared) return refusal(std::move(prepared).error());
  ReplyFacts facts = facts_of(model, *prepared, stamp);
  PreparedReply reply;
  reply.delivery = prepared->chat.delivery;
  reply.requests.push_back(std::move(prepared->request));
  if (reply.delivery == Delivery::Streamed) {
    reply.writer = std::make_unique<StreamedChat>(std::move(facts));
  } else {
    reply.writer = std::make_unique<WholeChat>(std::move(facts));
  }
  return reply;
}

}  // namespace rondo
