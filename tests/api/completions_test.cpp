// /v1/completions, /tokenize and /detokenize: the way in, and the way out.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/completions_reply.h"
#include "api/completions_request.h"
#include "api/openai_reply.h"
#include "api/tokenize.h"
#include "tests/api/answers.h"
#include "tests/api/fake_prompts.h"

namespace rondo {
namespace {

using Ids = std::vector<std::int32_t>;

const FakePrompts kPrompts;

ApiResult<CompletionsRequest> parse(const std::string& body) {
  return parse_completions(body, served_demo(), kPrompts, 4242);
}

CompletionsRequest accepted(const std::string& body) { return taken(parse(body), body); }

std::string with(const std::string& fields) { return R"({"prompt":"ab",)" + fields + "}"; }

// --- the way in ---

TEST(ParseCompletions, APromptHasFourForms) {
  EXPECT_EQ(accepted(R"({"prompt":"ab"})").prompts, (std::vector<Ids>{{97, 98}}));
  EXPECT_EQ(accepted(R"({"prompt":["ab","c"]})").prompts, (std::vector<Ids>{{97, 98}, {99}}));
  EXPECT_EQ(accepted(R"({"prompt":[97,98]})").prompts, (std::vector<Ids>{{97, 98}}));
  EXPECT_EQ(accepted(R"({"prompt":[[97,98],[99]]})").prompts, (std::vector<Ids>{{97, 98}, {99}}));
  EXPECT_EQ(accepted(R"({"prompt":["ab",[99]]})").prompts, (std::vector<Ids>{{97, 98}, {99}}));
}

const RefusedCase kRefusedCases[] = {
    {"{}", "prompt"},
    {R"({"prompt":null})", "prompt"},
    {R"({"prompt":5})", "prompt"},
    {R"({"prompt":{}})", "prompt"},
    {R"({"prompt":[]})", "prompt"},
    {R"({"prompt":[{}]})", "prompt"},
    {R"({"prompt":[true]})", "prompt"},
    {R"({"prompt":[1,"a"]})", "prompt"},
    {R"({"prompt":["a",1]})", "prompt"},
    {R"({"prompt":[256]})", "prompt"},
    {R"({"prompt":[-1]})", "prompt"},
    {R"({"prompt":[1.5]})", "prompt"},
    {R"({"prompt":[99999999999999999999]})", "prompt"},
    {R"({"prompt":[[1],[[2]]]})", "prompt"},
    {with(R"("n":0)"), "n"},
    {with(R"("n":129)"), "n"},
    {R"({"prompt":["a","b"],"n":65})", "n"},
    {with(R"("best_of":2)"), "best_of"},
    {with(R"("n":2,"best_of":3)"), "best_of"},
    {with(R"("echo":1)"), "echo"},
    {with(R"("logprobs":true)"), "logprobs"},
    {with(R"("logprobs":-1)"), "logprobs"},
    {with(R"("logprobs":21)"), "logprobs"},
    {with(R"("echo":true,"logprobs":1)"), "logprobs"},
    {with(R"("suffix":"end")"), "suffix"},
    {with(R"("max_tokens":0)"), "max_tokens"},
    {with(R"("max_tokens":-1)"), "max_tokens"},
    {with(R"("temperature":3)"), "temperature"},
    {with(R"("logit_bias":{"256":1})"), "logit_bias"},
    {with(R"("stop":[1])"), "stop"},
    {with(R"("stream":"x")"), "stream"},
    {with(R"("stream_options":{})"), "stream_options"},
    {with(R"("repetition_penalty":1.5)"), "repetition_penalty"},
    {with(R"("user":5)"), "user"},
    {with(R"("cache":"x")"), "cache"},
    {with(R"("messages":[])"), "messages"},
    {with(R"("colour":"red")"), "colour"},
    {R"({"model":"other","prompt":"x"})", "model"},
};

TEST(ParseCompletions, RefusesByNameWhatItCannotHonour) {
  for (const RefusedCase& c : kRefusedCases) expect_refusal(refused(parse(c.given), c.given), c);
}

TEST(ParseCompletions, AcceptsWhatAsksForNothing) {
  for (const char* fields : {R"("best_of":1)", R"("n":3,"best_of":3)", R"("suffix":"")", R"("suffix":null)",
                             R"("logprobs":null,"echo":true)", R"("echo":false,"logprobs":0)", R"("user":"me")"}) {
    accepted(with(fields));
  }
}

TEST(ParseCompletions, ReadsWhatTheChatReads) {
  const CompletionsRequest request = accepted(
      with(R"("max_tokens":5,"temperature":0.5,"top_k":3,"top_p":0.5,"min_p":0.25,"seed":9,"stop":["x"],"draft":false,)"
           R"("ignore_eos":true,"presence_penalty":1,"frequency_penalty":-1,"logit_bias":{"3":5},"n":2,"logprobs":4)"));
  EXPECT_EQ(request.max_tokens, 5);
  EXPECT_EQ(request.draw.temperature, 0.5F);
  EXPECT_EQ(request.draw.top_k, 3);
  EXPECT_EQ(request.draw.top_p, 0.5F);
  EXPECT_EQ(request.draw.min_p, 0.25F);
  EXPECT_EQ(request.seed, 9);
  EXPECT_EQ(request.stop_strings, std::vector<std::string>{"x"});
  EXPECT_EQ(request.max_draft_depth, 0);
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_EQ(request.draw.presence_penalty, 1);
  EXPECT_EQ(request.draw.frequency_penalty, -1);
  EXPECT_EQ(request.draw.bias.size(), 1U);
  EXPECT_EQ(request.num_choices, 2);
  EXPECT_EQ(request.num_top_logprobs, 4);
}

PreparedReply prepared(const std::string& body) {
  return taken(prepare_completions(body, served_demo(), kPrompts, {4242, "id", 1000}), body);
}

TEST(PrepareCompletions, AChoiceIsWhatItWouldBeAlone) {
  const PreparedReply many = prepared(R"({"prompt":["ab",[99]],"n":3,"seed":5,"logprobs":2})");
  ASSERT_EQ(many.requests.size(), 6U);
  for (std::size_t p = 0; p < 2; ++p) {
    const PreparedReply alone =
        prepared(std::string(R"({"prompt":)") + (p == 0 ? R"("ab")" : "[99]") + R"(,"n":3,"seed":5,"logprobs":2})");
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(many.requests[3 * p + i].prompt_ids, alone.requests[i].prompt_ids);
      EXPECT_EQ(many.requests[3 * p + i].draw.seed, alone.requests[i].draw.seed);
      EXPECT_EQ(many.requests[3 * p + i].num_top_logprobs, 2);
    }
    EXPECT_EQ(alone.requests[0].draw.seed, 5U);
    EXPECT_NE(alone.requests[1].draw.seed, alone.requests[2].draw.seed);
  }
}

TEST(PrepareCompletions, RefusesAnEmptyPromptAndOneThatCannotFit) {
  for (const std::string& body : {std::string(R"({"prompt":""})"), std::string(R"({"prompt":["a",""]})"),
                                  R"({"prompt":")" + std::string(100, 'x') + "\"}"}) {
    const auto reply = prepare_completions(body, served_demo(), kPrompts, {});
    ASSERT_FALSE(reply.has_value());
    EXPECT_EQ(reply.error().param, "prompt");
  }
}

// --- the way out ---

EndEvent end_of(FinishReason reason, int tokens, std::string text = "") {
  EndEvent end = end_with(
      reason,
      {.prompt_tokens = 2, .completion_tokens = tokens, .cached_tokens = 1, .rounds = 3, .drafted = 4, .accepted = 2},
      std::move(text));
  end.token_sha += std::to_string(tokens);
  return end;
}

void push(ReplyWriter& writer, int choice, std::string_view text, const Ids& ids, const std::vector<RowLogprobs>& rows,
          std::string& out) {
  out += writer.push(choice, {.text = text, .ids = ids, .logprobs = rows});
}

TEST(CompletionsReply, AWholeOneHasEveryChoiceInOrder) {
  const PreparedReply reply = prepared(R"({"prompt":["ab","c"],"n":2,"echo":true,"seed":5})");
  std::string out;
  for (const int choice : {3, 0, 2, 1}) push(*reply.writer, choice, std::to_string(choice), {1}, {}, out);
  for (const int choice : {2, 0, 3}) out += reply.writer->finish(choice, end_of(FinishReason::Length, choice, "!"));
  EXPECT_EQ(out, "");
  out = reply.writer->finish(1, end_of(FinishReason::Stop, 1));
  EXPECT_EQ(
      out, R"({"id":"cmpl-id","object":"text_completion","created":1000,"model":"demo","choices":[)"
           R"({"text":"ab0!","index":0,"logprobs":null,"finish_reason":"length"},)"
           R"({"text":"ab1","index":1,"logprobs":null,"finish_reason":"stop"},)"
           R"({"text":"c2!","index":2,"logprobs":null,"finish_reason":"length"},)"
           R"({"text":"c3!","index":3,"logprobs":null,"finish_reason":"length"}],)"
           R"("usage":{"prompt_tokens":4,"completion_tokens":6,"total_tokens":10,)"
           R"("prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"accepted_prediction_tokens":8,)"
           R"("rejected_prediction_tokens":8,"reasoning_tokens":0}},)"
           R"("rondo":{"token_shas":["sha0","sha1","sha2","sha3"],"rounds":12,"drafted":16,"accepted":8,"seed":5,)"
           R"("arithmetic":"fake"}})");
}

TEST(CompletionsReply, LogprobsHaveAPlaceForEveryToken) {
  const PreparedReply reply = prepared(R"({"prompt":"x","logprobs":2})");
  std::string out;
  // "aé" as three byte tokens, the character split, then a token that two ids spell.
  push(*reply.writer, 0, "a", {97, 0xC3},
       {row(-1.5F, {{97, -1.5F}, {98, -2.5F}}), row(-3.5F, {{97, -0.5F}, {98, -2.5F}})}, out);
  push(*reply.writer, 0, "é", {0xA9, 97},
       {row(-1.5F, {{0xA9, -1.5F}, {98, -2.5F}}), row(-4.5F, {{98, -1.5F}, {98, -2.5F}})}, out);
  out = reply.writer->finish(0, end_of(FinishReason::Stop, 4, "a"));
  const json::Value body = *parse_json(out);
  EXPECT_EQ(body.at("choices").as_array()[0].at("text").as_string(), "aéa");
  EXPECT_EQ(
      to_json(body.at("choices").as_array()[0].at("logprobs")),
      R"({"tokens":["a","bytes:\\xc3","bytes:\\xa9","a"],"token_logprobs":[-1.5,-3.5,-1.5,-4.5],)"
      R"("top_logprobs":[{"a":-1.5,"b":-2.5},{"a":-0.5,"b":-2.5,"bytes:\\xc3":-3.5},{"bytes:\\xa9":-1.5,"b":-2.5},)"
      R"({"b":-1.5,"a":-4.5}],"text_offset":[0,1,1,2]})");
}

TEST(CompletionsReply, StreamedPiecesJoinToTheWhole) {
  const std::string fields = R"("prompt":["ab",[99,200]],"echo":true,"seed":1)";
  const PreparedReply whole = prepared("{" + fields + "}");
  const PreparedReply streamed = prepared("{" + fields + R"(,"stream":true,"stream_options":{"include_usage":true}})");
  std::string whole_bytes, bytes = streamed.writer->begin();
  for (const ReplyWriter* writer : {whole.writer.get(), streamed.writer.get()}) {
    std::string& out = writer == whole.writer.get() ? whole_bytes : bytes;
    ReplyWriter& to = const_cast<ReplyWriter&>(*writer);
    push(to, 1, "x", {1}, {}, out);
    push(to, 0, "", {1}, {}, out);
    push(to, 0, "yé", {2}, {}, out);
    out += to.finish(1, end_of(FinishReason::Length, 2, "z"));
    out += to.finish(0, end_of(FinishReason::Stop, 3));
  }
  const json::Value body = *parse_json(whole_bytes);
  std::string texts[2], reasons[2];
  const std::vector<json::Value> events = documents_of(bytes);
  for (const json::Value& event : events) {
    EXPECT_EQ(event.at("object").as_string(), "text_completion");
    for (const json::Value& choice : event.at("choices").as_array()) {
      const auto index = static_cast<std::size_t>(choice.at("index").as_int64());
      texts[index] += choice.at("text").as_string();
      if (choice.at("finish_reason").is_string()) reasons[index] = choice.at("finish_reason").as_string();
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(texts[i], body.at("choices").as_array()[i].at("text").as_string());
    EXPECT_EQ(reasons[i], body.at("choices").as_array()[i].at("finish_reason").as_string());
  }
  EXPECT_EQ(texts[1], "c\xEF\xBF\xBDxz") << "an echo is UTF-8 though the ids are not";
  EXPECT_TRUE(events.back().at("choices").as_array().empty());
  EXPECT_EQ(events.back().at("usage"), body.at("usage"));
  EXPECT_EQ(events.back().at("rondo"), body.at("rondo"));
}

TEST(CompletionsReply, AControlTokenTakesNoRoomInTheText) {
  const PreparedReply reply = prepared(R"({"prompt":"x","logprobs":0})");
  std::string out;
  push(*reply.writer, 0, "ab", {97, FakePrompts::kSpecial, 98}, {row(-1, {}), row(-1, {}), row(-1, {})}, out);
  out = reply.writer->finish(0, end_of(FinishReason::Stop, 3));
  const json::Value body = *parse_json(out);
  EXPECT_EQ(to_json(body.at("choices").as_array()[0].at("logprobs").at("text_offset")), "[0,1,1]");
}

TEST(CompletionsReply, StreamedLogprobsJoinToTheWhole) {
  std::string lists[2];
  for (const bool is_streamed : {false, true}) {
    const PreparedReply reply =
        prepared(std::string(R"({"prompt":"x","logprobs":1)") + (is_streamed ? R"(,"stream":true})" : "}"));
    std::string bytes = reply.writer->begin();
    push(*reply.writer, 0, "", {0xC3}, {row(-1, {{97, -1}})}, bytes);
    push(*reply.writer, 0, "é", {0xA9}, {row(-2, {{97, -1}})}, bytes);
    bytes += reply.writer->finish(0, end_of(FinishReason::Stop, 2));
    if (!is_streamed) bytes = "data: " + bytes + "\n\n" + std::string(kDone);
    for (const json::Value& event : documents_of(bytes)) {
      const json::Value& logprobs = event.at("choices").as_array()[0].at("logprobs");
      if (logprobs.is_null()) continue;
      for (const json::Value& offset : logprobs.at("text_offset").as_array()) lists[is_streamed] += to_json(offset);
      for (const json::Value& name : logprobs.at("tokens").as_array()) lists[is_streamed] += to_json(name);
    }
  }
  EXPECT_EQ(lists[0], R"(00"bytes:\\xc3""bytes:\\xa9")");
  EXPECT_EQ(lists[1], R"(0"bytes:\\xc3"0"bytes:\\xa9")");
}

TEST(CompletionsReply, AFailedStreamEndsInWords) {
  const PreparedReply reply = prepared(R"({"prompt":"x","stream":true})");
  EXPECT_EQ(
      reply.writer->fail({ErrorCode::Unavailable, "gone", "", ""}),
      "data: {\"error\":{\"message\":\"gone\",\"type\":\"server_error\",\"param\":null,\"code\":\"unavailable\"}}\n\n"
      "data: [DONE]\n\n");
}

// --- tokens ---

std::string answered(PrepareReply prepare, const std::string& body) {
  const ApiResult<PreparedReply> reply = prepare(body, served_demo(), kPrompts, {});
  return reply ? reply->body : "refused: " + reply.error().param;
}

TEST(Tokenize, GivesIdsAndTheirCount) {
  EXPECT_EQ(answered(prepare_tokenize, R"({"content":"ab"})"), R"({"tokens":[97,98],"count":2})");
  EXPECT_EQ(answered(prepare_tokenize, R"({"content":"","model":"demo"})"), R"({"tokens":[],"count":0})");
  EXPECT_EQ(answered(prepare_tokenize, R"({"messages":[{"role":"user","content":"hey"}]})"),
            R"({"tokens":[1,1,1],"count":3})");
}

TEST(Tokenize, RefusesByName) {
  for (const auto& [body, param] : std::vector<std::pair<std::string, std::string>>{
           {"{}", "content"},
           {R"({"content":5})", "content"},
           {R"({"content":null})", "content"},
           {R"({"content":"x","messages":[{"role":"user","content":"x"}]})", "messages"},
           {R"({"content":"x","more":1})", "more"},
           {R"({"messages":[]})", "messages"},
           {R"({"messages":[{"role":"user","content":"RAISE"}]})", "messages"},
           {R"({"messages":[{"role":"user","content":"x"}],"add_generation_prompt":1})", "add_generation_prompt"},
           {R"({"content":"x","model":"other"})", "model"}}) {
    EXPECT_EQ(answered(prepare_tokenize, body), "refused: " + param) << body;
  }
}

TEST(Detokenize, GivesWholeText) {
  EXPECT_EQ(answered(prepare_detokenize, R"({"tokens":[97,98]})"), R"({"content":"ab"})");
  EXPECT_EQ(answered(prepare_detokenize, R"({"tokens":[]})"), R"({"content":""})");
  EXPECT_EQ(answered(prepare_detokenize, R"({"tokens":[97,195]})"), "{\"content\":\"a\xEF\xBF\xBD\"}");
}

TEST(Detokenize, RefusesByName) {
  for (const char* body : {"{}", R"({"tokens":"ab"})", R"({"tokens":[256]})", R"({"tokens":[-1]})",
                           R"({"tokens":["a"]})", R"({"tokens":[[1]]})", R"({"tokens":null})"}) {
    EXPECT_EQ(answered(prepare_detokenize, body), "refused: tokens") << body;
  }
  EXPECT_EQ(answered(prepare_detokenize, R"({"tokens":[1],"content":"x"})"), "refused: content");
}

}  // namespace
}  // namespace rondo
