// Anthropic's API: the way in, the way out, and the errors.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/anthropic_reply.h"
#include "api/anthropic_request.h"
#include "tests/api/answers.h"
#include "tests/api/fake_prompts.h"

namespace rondo {
namespace {

constexpr std::int32_t kThinkEnd = 9;

ServedModel demo() { return served_thinker(kThinkEnd); }

std::string body_with(const std::string& fields) {
  return R"({"max_tokens":20,"messages":[{"role":"user","content":"hi"}])" + (fields.empty() ? "" : "," + fields) + "}";
}

ApiResult<MessagesRequest> parse(const std::string& body) { return parse_messages(body, demo(), 4242); }

MessagesRequest accepted(const std::string& body) { return taken(parse(body), body); }

std::string with_messages(const std::string& messages) { return R"({"max_tokens":20,"messages":)" + messages + "}"; }

std::string messages_of(const std::string& body) { return to_json(accepted(body).chat.variables.at("messages")); }

// --- messages ---

struct MessageCase {
  std::string given;
  std::string rendered;
};
const MessageCase kMessageCases[] = {
    {R"([{"role":"user","content":"a"}])", R"([{"role":"user","content":"a"}])"},
    {R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","citations":null}]}])",
     R"([{"role":"user","content":"ab"}])"},
    {R"([{"role":"user","content":[]}])", R"([{"role":"user","content":""}])"},
    {R"([{"role":"system","content":"be brief"},{"role":"user","content":"a"}])",
     R"([{"role":"system","content":"be brief"},{"role":"user","content":"a"}])"},
    {R"([{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Look"},{"type":"tool_use","id":"t","name":"f","input":{"a":[1]}}]},{"role":"user","content":"go"}])",
     R"([{"role":"assistant","content":"Look","reasoning_content":"hm","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":{"a":[1]}}}]},{"role":"user","content":"go"}])"},
    {R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"42"},{"type":"tool_result","tool_use_id":"u","is_error":true,"content":[{"type":"text","text":"no"}]},{"type":"text","text":"so?"}]}])",
     R"([{"role":"tool","tool_call_id":"t","content":"42"},{"role":"tool","tool_call_id":"u","content":"Error: no"},{"role":"user","content":"so?"}])"},
    {R"([{"role":"user","content":[{"type":"text","text":"first"},{"type":"tool_result","tool_use_id":"t"}]}])",
     R"([{"role":"user","content":"first"},{"role":"tool","tool_call_id":"t","content":""}])"},
};

TEST(AnthropicMessages, AreBroughtIntoTheTemplatesForm) {
  for (const MessageCase& c : kMessageCases) EXPECT_EQ(messages_of(with_messages(c.given)), c.rendered) << c.given;
}

TEST(AnthropicMessages, ASystemPromptComesFirst) {
  const std::string kExpected = R"([{"role":"system","content":"be brief"},{"role":"user","content":"hi"}])";
  EXPECT_EQ(messages_of(body_with(R"("system":"be brief")")), kExpected);
  EXPECT_EQ(
      messages_of(body_with(
          R"("system":[{"type":"text","text":"be ","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"brief"}])")),
      kExpected);
}

TEST(AnthropicMessages, ALastOneOfTheAssistantsBeginsTheReply) {
  for (const char* content : {R"("so far")", R"([{"type":"text","text":"so "},{"type":"text","text":"far"}])"}) {
    const MessagesRequest request = accepted(with_messages(
        R"([{"role":"user","content":"a"},{"role":"assistant","content":)" + std::string(content) + "}]"));
    EXPECT_EQ(request.chat.begun_reply, "so far");
    EXPECT_EQ(to_json(request.chat.variables.at("messages")), R"([{"role":"user","content":"a"}])");
  }
}

const RefusedCase kRefusedCases[] = {
    {"{}", "max_tokens"},
    {R"({"max_tokens":5})", "messages"},
    {with_messages("[]"), "messages"},
    {with_messages("{}"), "messages"},
    {with_messages("[5]"), "messages[0]"},
    {with_messages("[{}]"), "messages[0].role"},
    {with_messages(R"([{"role":"tool","content":"x"}])"), "messages[0].role"},
    {with_messages(R"([{"role":"user"}])"), "messages[0].content"},
    {with_messages(R"([{"role":"user","content":5}])"), "messages[0].content"},
    {with_messages(R"([{"role":"user","content":"x","name":"n"}])"), "messages[0].name"},
    {with_messages(R"([{"role":"user","content":["x"]}])"), "messages[0].content[0]"},
    {with_messages(R"([{"role":"user","content":[{"text":"x"}]}])"), "messages[0].content[0].type"},
    {with_messages(R"([{"role":"user","content":[{"type":"text"}]}])"), "messages[0].content[0].text"},
    {with_messages(R"([{"role":"user","content":[{"type":"text","text":"x","more":1}]}])"),
     "messages[0].content[0].more"},
    {with_messages(R"([{"role":"user","content":[{"type":"text","text":"x","citations":[{}]}]}])"),
     "messages[0].content[0].citations"},
    {with_messages(R"([{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"lasting"}}]}])"),
     "messages[0].content[0].cache_control.type"},
    {with_messages(R"([{"role":"user","content":[{"type":"image","source":{}}]}])"), "messages[0].content[0].type"},
    {with_messages(R"([{"role":"user","content":[{"type":"document","source":{}}]}])"), "messages[0].content[0].type"},
    {with_messages(R"([{"role":"user","content":[{"type":"thinking","thinking":"x"}]}])"),
     "messages[0].content[0].type"},
    {with_messages(R"([{"role":"user","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}])"),
     "messages[0].content[0].type"},
    {with_messages(R"([{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"t"}]}])"),
     "messages[0].content[0].type"},
    {with_messages(R"([{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]}])"),
     "messages[0].content[0].type"},
    {with_messages(R"([{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":"{}"}]}])"),
     "messages[0].content[0].input"},
    {with_messages(R"([{"role":"assistant","content":[{"type":"tool_use","id":"t","input":{}}]}])"),
     "messages[0].content[0].name"},
    {with_messages(R"([{"role":"user","content":[{"type":"tool_result","content":"x"}]}])"),
     "messages[0].content[0].tool_use_id"},
    {with_messages(
         R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image"}]}]}])"),
     "messages[0].content[0].content[0].type"},
    {with_messages(R"([{"role":"user","content":"a"},{"role":"assistant","content":"so "}])"), "messages[1].content"},
    {with_messages(R"([{"role":"user","content":"a"},{"role":"assistant","content":""}])"), "messages[1].content"},
    {with_messages(R"([{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}])"),
     "messages[0].content"},
    {body_with(R"("system":5)"), "system"},
    {body_with(R"("system":[{"type":"image"}])"), "system[0].type"},
    {body_with(R"("model":"other")"), "model"},
    {body_with(R"("temperature":3)"), "temperature"},
    {body_with(R"("top_k":-5)"), "top_k"},
    {body_with(R"("stop_sequences":"x","stop":"y")"), "stop"},
    {body_with(R"("stop_sequences":[""])"), "stop_sequences"},
    {body_with(R"("stream":1)"), "stream"},
    {body_with(R"("metadata":"me")"), "metadata"},
    {body_with(R"("service_tier":5)"), "service_tier"},
    {body_with(R"("thinking":"on")"), "thinking"},
    {body_with(R"("thinking":{})"), "thinking.type"},
    {body_with(R"("thinking":{"type":"between_tools"})"), "thinking.type"},
    {body_with(R"("thinking":{"type":"enabled"})"), "thinking.budget_tokens"},
    {body_with(R"("thinking":{"type":"enabled","budget_tokens":0})"), "thinking.budget_tokens"},
    {body_with(R"("thinking":{"type":"enabled","budget_tokens":20})"), "thinking.budget_tokens"},
    {body_with(R"("thinking":{"type":"disabled","budget_tokens":5})"), "thinking.budget_tokens"},
    {body_with(R"("thinking":{"type":"adaptive","display":"omitted"})"), "thinking.display"},
    {body_with(R"("output_config":{"effort":"max"})"), "output_config.effort"},
    {body_with(R"("output_config":{"colour":1})"), "output_config.colour"},
    {body_with(R"("cache_control":{})"), "cache_control.type"},
    {body_with(R"("tools":{})"), "tools"},
    {body_with(R"("tools":[5])"), "tools[0]"},
    {body_with(R"("tools":[{"input_schema":{}}])"), "tools[0].name"},
    {body_with(R"("tools":[{"name":"f"}])"), "tools[0].input_schema"},
    {body_with(R"("tools":[{"name":"f","input_schema":[]}])"), "tools[0].input_schema"},
    {body_with(R"("tools":[{"type":"bash_20250124","name":"bash"}])"), "tools[0].type"},
    {body_with(R"("tools":[{"name":"f","input_schema":{},"more":1}])"), "tools[0].more"},
    {body_with(R"("tools":[{"name":"f","input_schema":{},"defer_loading":true}])"), "tools[0].defer_loading"},
    {body_with(R"("tools":[{"name":"f","input_schema":{},"input_examples":[{}]}])"), "tools[0].input_examples"},
    {body_with(R"("tools":[{"name":"f","input_schema":{},"allowed_callers":["x"]}])"), "tools[0].allowed_callers"},
    {body_with(R"("tool_choice":"auto")"), "tool_choice"},
    {body_with(R"("tool_choice":{"type":"some"})"), "tool_choice.type"},
    {body_with(R"("tool_choice":{"type":"tool"})"), "tool_choice.name"},
    {body_with(R"("tool_choice":{"type":"any"})"), "tool_choice"},
    {body_with(R"("tool_choice":{"type":"none","disable_parallel_tool_use":true})"),
     "tool_choice.disable_parallel_tool_use"},
    {body_with(R"("mcp_servers":[{}])"), "mcp_servers"},
    {body_with(R"("container":"c")"), "container"},
    {body_with(R"("context_management":{"edits":[]})"), "context_management"},
    {body_with(R"("inference_geo":"eu")"), "inference_geo"},
    {body_with(R"("speed":"fast")"), "speed"},
    {body_with(R"("colour":"red")"), "colour"},
};

TEST(ParseMessages, RefusesByNameWhatItCannotHonour) {
  for (const RefusedCase& c : kRefusedCases) expect_refusal(refused(parse(c.given), c.given), c);
}

TEST(ParseMessages, AcceptsLabelsAndValuesThatAskForNothing) {
  for (const char* fields :
       {R"("metadata":{"user_id":"me"},"service_tier":"auto","speed":"standard","user_profile_id":"u")",
        R"("mcp_servers":[],"container":null,"context_management":null,"output_config":{"effort":"high"})",
        R"("thinking":{"type":"disabled"},"tools":[],"tool_choice":{"type":"auto"},"cache":false)",
        R"("tools":[{"type":"custom","name":"f","input_schema":{},"strict":false,"defer_loading":false,)"
        R"("eager_input_streaming":true,"allowed_callers":["direct"],"cache_control":{"type":"ephemeral"}}])"}) {
    accepted(body_with(fields));
  }
}

TEST(ParseMessages, ReadsWhatEveryChatReads) {
  const ChatRequest chat =
      accepted(body_with(R"("temperature":0.5,"top_k":3,"top_p":0.5,"stop_sequences":["a","b"],"stream":true,"seed":9,)"
                         R"("draft_depth":2,"ignore_eos":true,"thinking":{"type":"enabled","budget_tokens":5})"))
          .chat;
  EXPECT_EQ(chat.max_tokens, 20);
  EXPECT_EQ(chat.draw.temperature, 0.5F);
  EXPECT_EQ(chat.draw.top_k, 3);
  EXPECT_EQ(chat.draw.top_p, 0.5F);
  EXPECT_EQ(chat.stop_strings, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(chat.delivery, Delivery::Streamed);
  EXPECT_EQ(chat.seed, 9);
  EXPECT_EQ(chat.max_draft_depth, 2);
  EXPECT_TRUE(chat.ignore_eos);
  EXPECT_EQ(chat.thinking_budget, 5);
  EXPECT_EQ(to_json(chat.variables.at("enable_thinking")), "true");
}

TEST(ParseMessages, ThinkingIsOffUnlessItIsTurnedOn) {
  EXPECT_EQ(to_json(accepted(body_with("")).chat.variables.at("enable_thinking")), "false");
  EXPECT_EQ(to_json(accepted(body_with(R"("thinking":{"type":"adaptive"})")).chat.variables.at("enable_thinking")),
            "true");
  ServedModel model = demo();
  model.reads_enable_thinking = false;
  model.think_end_id.reset();
  EXPECT_TRUE(parse_messages(body_with(""), model, 1).has_value());
  EXPECT_FALSE(parse_messages(body_with(R"("thinking":{"type":"adaptive"})"), model, 1).has_value());
}

TEST(ParseMessages, ShowsToolsAsTheChatDoes) {
  const ChatRequest chat =
      accepted(body_with(R"("tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}])")).chat;
  EXPECT_EQ(to_json(chat.variables.at("tools")),
            R"([{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}])");
  EXPECT_EQ(chat.tools.choice, ToolChoice::Auto);
  ASSERT_EQ(chat.tools.callable->size(), 1U);
  EXPECT_EQ(accepted(body_with(R"("tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"none"})"))
                .chat.tools.choice,
            ToolChoice::None);
}

TEST(ParseMessages, NotesWhereTheClientMarkedWhatToCache) {
  const std::string kMark = R"("cache_control":{"type":"ephemeral"})";
  EXPECT_FALSE(accepted(body_with("")).has_cache_control);
  for (const std::string& body :
       {body_with(kMark), body_with(R"("system":[{"type":"text","text":"x",)" + kMark + "}]"),
        body_with(R"("tools":[{"name":"f","input_schema":{},)" + kMark + "}]"),
        with_messages(R"([{"role":"user","content":[{"type":"text","text":"x",)" + kMark + "}]}]")}) {
    EXPECT_TRUE(accepted(body).has_cache_control) << body;
  }
}

// --- the way out ---

const FakePrompts kPrompts;

PreparedReply prepared(const std::string& fields) {
  return taken(prepare_messages(body_with(fields), demo(), kPrompts, {4242, "id", 1000}), fields);
}

EndEvent end_of(FinishReason reason, std::string text = "", std::optional<std::string> stop = std::nullopt) {
  EndEvent end = end_with(
      reason,
      {.prompt_tokens = 12, .completion_tokens = 3, .cached_tokens = 8, .rounds = 3, .drafted = 4, .accepted = 2},
      std::move(text));
  end.stop_string = std::move(stop);
  return end;
}

const std::string kTool =
    R"("tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"}}}}])";
const std::string kCall =
    "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n<parameter=n>\n5\n</parameter>\n</function>\n</"
    "tool_call>";

// The reply to `text`, which comes in pieces of so many bytes.
std::string reply_to(const std::string& fields, const std::string& text, std::size_t piece_bytes, const EndEvent& end) {
  const PreparedReply reply = prepared(fields);
  std::string out = reply.delivery == Delivery::Streamed ? reply.writer->begin() : "";
  for (std::size_t i = 0; i < text.size(); i += piece_bytes) {
    const std::vector<std::int32_t> ids = {1};
    out += reply.writer->push(0, {.text = std::string_view(text).substr(i, piece_bytes), .ids = ids, .logprobs = {}});
  }
  return out + reply.writer->finish(0, end);
}

struct ReplyCase {
  std::string text;
  EndEvent end;
  std::string rendered;  // content, stop_reason and stop_sequence
};
const ReplyCase kReplyCases[] = {
    {"hello", end_of(FinishReason::Stop, "!"), R"([{"type":"text","text":"hello!"}] "end_turn" null)"},
    {"", end_of(FinishReason::Stop), R"([] "end_turn" null)"},
    {"hello", end_of(FinishReason::Length), R"([{"type":"text","text":"hello"}] "max_tokens" null)"},
    {"hello", end_of(FinishReason::Stop, "", "STOP"), R"([{"type":"text","text":"hello"}] "stop_sequence" "STOP")"},
    {"Look: " + kCall, end_of(FinishReason::Stop),
     R"([{"type":"text","text":"Look:"},{"type":"tool_use","id":"toolu_id0","name":"f","input":{"a":"x","n":5}}] "tool_use" null)"},
    {kCall + kCall, end_of(FinishReason::Stop),
     R"([{"type":"tool_use","id":"toolu_id0","name":"f","input":{"a":"x","n":5}},{"type":"tool_use","id":"toolu_id1","name":"f","input":{"a":"x","n":5}}] "tool_use" null)"},
    {kCall.substr(0, kCall.find("5\n")), end_of(FinishReason::Length),
     R"([{"type":"tool_use","id":"toolu_id0","name":"f","input":{"a":"x"}}] "max_tokens" null)"},
    {kCall.substr(0, kCall.find("x\n")), end_of(FinishReason::Length),
     R"([{"type":"tool_use","id":"toolu_id0","name":"f","input":{}}] "max_tokens" null)"},
};

std::string summary_of(const json::Object& message) {
  return to_json(message.at("content")) + " " + to_json(message.at("stop_reason")) + " " +
         to_json(message.at("stop_sequence"));
}

TEST(MessageReply, AWholeOneHasItsBlocksInOrder) {
  for (const ReplyCase& c : kReplyCases) {
    const json::Value body = *parse_json(reply_to(kTool, c.text, 1000, c.end));
    EXPECT_EQ(summary_of(body.as_object()), c.rendered) << c.text;
  }
}

TEST(MessageReply, SaysWhatItIsAndWhatItTook) {
  EXPECT_EQ(
      reply_to(R"("seed":5)", "hi", 9, end_of(FinishReason::Stop)),
      R"({"id":"msg_id","type":"message","role":"assistant","model":"demo","content":[{"type":"text","text":"hi"}],)"
      R"("stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12,)"
      R"("cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":3,)"
      R"("output_tokens_details":{"thinking_tokens":0}},)"
      R"("rondo":{"token_sha":"sha","rounds":3,"drafted":4,"accepted":2,"seed":5,"arithmetic":"fake"}})");
}

TEST(MessageReply, TellsCachedTokensApartWhereTheClientMarkedWhatToCache) {
  const json::Value body =
      *parse_json(reply_to(R"("cache_control":{"type":"ephemeral"})", "hi", 9, end_of(FinishReason::Stop)));
  EXPECT_EQ(to_json(body.at("usage").at("input_tokens")), "4");
  EXPECT_EQ(to_json(body.at("usage").at("cache_read_input_tokens")), "8");
}

TEST(MessageReply, AStreamHasItsEventsInOrder) {
  EXPECT_EQ(
      reply_to(kTool + R"(,"stream":true,"seed":5)", "<think>\nhm</think>\nHi " + kCall, 1000,
               end_of(FinishReason::Stop)),
      "event: message_start\ndata: "
      R"({"type":"message_start","message":{"id":"msg_id","type":"message","role":"assistant","model":"demo","content":[],)"
      R"("stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":2,"cache_creation_input_tokens":0,)"
      R"("cache_read_input_tokens":0,"output_tokens":0,"output_tokens_details":{"thinking_tokens":0}}}})"
      "\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n"
      "event: content_block_start\ndata: "
      R"({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}})"
      "\n\nevent: content_block_delta\ndata: "
      R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}})"
      "\n\nevent: content_block_delta\ndata: "
      R"({"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":)"
      R"("sha256:b82e2178ecf4d0c5859dc2e169d7fed8673f9f6eeb9f3591bed5f253b7742408"}})"
      "\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
      "event: content_block_start\ndata: "
      R"({"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}})"
      "\n\nevent: content_block_delta\ndata: "
      R"({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi"}})"
      "\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n"
      "event: content_block_start\ndata: "
      R"({"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_id0","name":"f","input":{}}})"
      "\n\nevent: content_block_delta\ndata: "
      R"({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":\"x\",\"n\":5}"}})"
      "\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}\n\n"
      "event: message_delta\ndata: "
      R"({"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":12,)"
      R"("cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":3,)"
      R"("output_tokens_details":{"thinking_tokens":1}},)"
      R"("rondo":{"token_sha":"sha","rounds":3,"drafted":4,"accepted":2,"seed":5,"arithmetic":"fake"}})"
      "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

// The message that a stream's events make, as a client joins them.
json::Object joined(const std::string& bytes) {
  json::Object message;
  std::string text, field;
  for (const std::string& event : events_in(bytes)) {
    const std::size_t data = event.find("\ndata: ");
    const json::Value document = *parse_json(event.substr(data + 7));
    const std::string type(document.at("type").as_string());
    EXPECT_EQ(event.substr(0, data), "event: " + type);
    if (type == "message_start") message = document.at("message").as_object();
    if (type == "content_block_start") {
      message["content"].as_array().push_back(document.at("content_block"));
      text.clear();
    }
    if (type == "content_block_delta") {
      const json::Object& delta = document.at("delta").as_object();
      if (delta.at("type") == "signature_delta") continue;
      field = delta.contains("text") ? "text" : delta.contains("thinking") ? "thinking" : "partial_json";
      text += delta.at(field).as_string();
      json::Object& block = message["content"].as_array().back().as_object();
      block[field == "partial_json" ? "input" : field] =
          field == "partial_json" ? json::Value(arguments_so_far(text)) : json::Value(text);
    }
    if (type == "message_delta") {
      for (const auto& member : document.at("delta").as_object()) message[member.key()] = member.value();
    }
  }
  return message;
}

TEST(MessageReply, StreamedPiecesJoinToTheWholeHoweverTheyWereCut) {
  for (const ReplyCase& c : kReplyCases) {
    for (const std::size_t piece_bytes : {1UL, 2UL, 3UL, 7UL, 1000UL}) {
      EXPECT_EQ(summary_of(joined(reply_to(kTool + R"(,"stream":true)", c.text, piece_bytes, c.end))), c.rendered)
          << c.text << " in pieces of " << piece_bytes;
    }
  }
}

TEST(MessageReply, AFailedStreamEndsInAnErrorEvent) {
  const PreparedReply reply = prepared(R"("stream":true)");
  EXPECT_EQ(
      reply.writer->fail({ErrorCode::Unavailable, "gone", "", ""}),
      "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"gone\"}}\n\n");
  EXPECT_EQ(reply.writer->keep_alive(), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
}

TEST(ArgumentsSoFar, KeepWhatWasWhole) {
  for (const auto& [text, kept] :
       std::vector<std::pair<std::string, std::string>>{{"", "{}"},
                                                        {"{", "{}"},
                                                        {"{}", "{}"},
                                                        {R"({"a":"b)", "{}"},
                                                        {R"({"a":"b")", R"({"a":"b"})"},
                                                        {R"({"a":"b","c":[1,{"d":",)", R"({"a":"b"})"},
                                                        {R"({"a":"b\",","c":"\)", R"({"a":"b\","})"},
                                                        {R"({"a":{"b":1,"c":2},"d)", R"({"a":{"b":1,"c":2}})"},
                                                        {R"({"a":1,"b":2})", R"({"a":1,"b":2})"}}) {
    EXPECT_EQ(to_json(arguments_so_far(text)), kept) << text;
  }
}

// --- count_tokens, errors ---

std::string counted(const std::string& body) {
  const ApiResult<PreparedReply> reply = prepare_count_tokens(body, demo(), kPrompts, {});
  return reply ? reply->body : "refused: " + reply.error().param;
}

TEST(CountTokens, CountsThePrompt) {
  EXPECT_EQ(counted(R"({"messages":[{"role":"user","content":"hey"}],"system":"x","thinking":{"type":"adaptive"}})"),
            R"({"input_tokens":3})");
  EXPECT_EQ(counted(R"({"messages":[{"role":"user","content":"hey"},{"role":"assistant","content":"so"}]})"),
            R"({"input_tokens":5})");
  EXPECT_EQ(counted(R"({"messages":[{"role":"user","content":"hey"}],"stream":true})"), "refused: stream");
  EXPECT_EQ(counted(R"({"messages":[{"role":"user","content":"RAISE"}]})"), "refused: messages");
  EXPECT_EQ(counted("[]"), "refused: ");
}

TEST(ApiErrors, HaveAnthropicsObject) {
  EXPECT_EQ(render_error({ErrorCode::NotFound, "no \"x\"", "model", "model_not_found"}, ApiForm::Anthropic),
            R"({"type":"error","error":{"type":"not_found_error","message":"no \"x\""}})");
  EXPECT_EQ(render_error({ErrorCode::TooLong, "long", "", ""}, ApiForm::Anthropic),
            R"({"type":"error","error":{"type":"invalid_request_error","message":"long"}})");
  EXPECT_EQ(render_http_error(413, "big", ApiForm::Anthropic),
            R"({"type":"error","error":{"type":"request_too_large","message":"big"}})");
  EXPECT_EQ(render_http_error(500, "ours", ApiForm::Anthropic),
            R"({"type":"error","error":{"type":"api_error","message":"ours"}})");
}

}  // namespace
}  // namespace rondo
