// The way in: every field of the chat API is honoured, a label, or refused by name.
#include "api/openai_chat.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/api/answers.h"
#include "tests/api/fake_prompts.h"

namespace rondo {
namespace {

constexpr std::int64_t kFreshSeed = 4242;

ServedModel demo() {
  ServedModel model = served_thinker(9);
  model.aliases = {"gpt-4o"};
  model.vocab_size = 50;
  model.think_closing = {3, 9};
  model.defaults.end_tokens = {7, 8};
  return model;
}

std::string body_with(const std::string& fields) {
  return R"({"model":"demo","messages":[{"role":"user","content":"hi"}])" + (fields.empty() ? "" : "," + fields) + "}";
}

ApiResult<ChatRequest> parse(const std::string& body) { return parse_chat(body, demo(), kFreshSeed); }

ChatRequest accepted(const std::string& body) { return taken(parse(body), body); }

ApiError refused(const std::string& body) { return refused(parse(body), body); }

std::string messages_of(const ChatRequest& chat) { return to_json(chat.variables.at("messages")); }

// --- what is refused, and under which name ---

const RefusedCase kRefusedCases[] = {
    {R"("temperature":"hot")", "temperature"},
    {R"("temperature":-0.1)", "temperature"},
    {R"("temperature":2.1)", "temperature"},
    {R"("temperature":1e999)", "temperature"},
    {R"("temperature":true)", "temperature"},
    {R"("top_p":1.5)", "top_p"},
    {R"("top_p":[])", "top_p"},
    {R"("min_p":-1)", "min_p"},
    {R"("top_k":-2)", "top_k"},
    {R"("top_k":1.5)", "top_k"},
    {R"("top_k":99999999999)", "top_k"},
    {R"("seed":"1")", "seed"},
    {R"("seed":0.5)", "seed"},
    {R"("seed":18446744073709551615)", "seed"},
    {R"("max_tokens":0)", "max_tokens"},
    {R"("max_tokens":-5)", "max_tokens"},
    {R"("max_tokens":"many")", "max_tokens"},
    {R"("max_tokens":1.5)", "max_tokens"},
    {R"("max_completion_tokens":0)", "max_completion_tokens"},
    {R"("max_tokens":5,"max_completion_tokens":6)", "max_tokens"},
    {R"("stop":5)", "stop"},
    {R"("stop":"")", "stop"},
    {R"("stop":["a",""])", "stop"},
    {R"("stop":["a",1])", "stop"},
    {R"("stop":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"])", "stop"},
    {R"("stream":"yes")", "stream"},
    {R"("stream_options":{"include_usage":true})", "stream_options"},
    {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage"},
    {R"("stream":true,"stream_options":{"colour":1})", "stream_options.colour"},
    {R"("stream":true,"stream_options":{"include_obfuscation":true})", "stream_options.include_obfuscation"},
    {R"("stream":true,"stream_options":[])", "stream_options"},
    {R"("n":0)", "n"},
    {R"("n":129)", "n"},
    {R"("n":"1")", "n"},
    {R"("ignore_eos":1)", "ignore_eos"},
    {R"("chat_template_kwargs":[])", "chat_template_kwargs"},
    {R"("chat_template_kwargs":{"messages":[]})", "chat_template_kwargs.messages"},
    {R"("chat_template_kwargs":{"add_generation_prompt":false})", "chat_template_kwargs.add_generation_prompt"},
    {R"("tools":{})", "tools"},
    {R"("tools":[5])", "tools[0]"},
    {R"("tools":[{}])", "tools[0].type"},
    {R"("tools":[{"type":"custom","custom":{"name":"f"}}])", "tools[0].type"},
    {R"("tools":[{"type":"function"}])", "tools[0].function"},
    {R"("tools":[{"type":"function","function":{}}])", "tools[0].function.name"},
    {R"("tools":[{"type":"function","function":{"name":"a b"}}])", "tools[0].function.name"},
    {R"("tools":[{"type":"function","function":{"name":"a>"}}])", "tools[0].function.name"},
    {R"("tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}])",
     "tools[1].function.name"},
    {R"("tools":[{"type":"function","function":{"name":"f","parameters":[]}}])", "tools[0].function.parameters"},
    {R"("tools":[{"type":"function","function":{"name":"f","description":5}}])", "tools[0].function.description"},
    {R"("tools":[{"type":"function","function":{"name":"f","colour":1}}])", "tools[0].function.colour"},
    {R"("tool_choice":"required")", "tool_choice"},
    {R"("tool_choice":"any")", "tool_choice"},
    {R"("tool_choice":5)", "tool_choice"},
    {R"("tool_choice":{})", "tool_choice.type"},
    {R"("tool_choice":{"type":"function","function":{"name":"f"}})", "tool_choice.function.name"},
    {R"("tool_choice":{"type":"function"})", "tool_choice.function"},
    {R"("tool_choice":{"type":"allowed_tools"})", "tool_choice.allowed_tools"},
    {R"("tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}})",
     "tool_choice.allowed_tools.tools"},
    {R"("functions":[{"name":"f"}])", "functions"},
    {R"("function_call":{"name":"f"})", "function_call"},
    {R"("response_format":{"type":"xml"})", "response_format.type"},
    {R"("response_format":{})", "response_format.type"},
    {R"("response_format":{"type":"json_schema"})", "response_format.json_schema"},
    {R"("response_format":{"type":"json_schema","json_schema":{"name":"a"}})", "response_format.json_schema.schema"},
    {R"("response_format":{"type":"json_object","more":1})", "response_format.more"},
    {R"("response_format":{"type":"json_object"},"structured_outputs":{"regex":"a"})", "structured_outputs"},
    {R"("structured_outputs":{})", "structured_outputs"},
    {R"("structured_outputs":{"regex":"a","choice":["a"]})", "structured_outputs"},
    {R"("structured_outputs":{"regex":5})", "structured_outputs.regex"},
    {R"("structured_outputs":{"json":"{"})", "structured_outputs.json"},
    {R"("structured_outputs":{"lark":"a"})", "structured_outputs.lark"},
    {R"("response_format":"text")", "response_format"},
    {R"("logprobs":1)", "logprobs"},
    {R"("top_logprobs":3)", "top_logprobs"},
    {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
    {R"("logprobs":true,"top_logprobs":-1)", "top_logprobs"},
    {R"("logit_bias":[])", "logit_bias"},
    {R"("logit_bias":{"x":1})", "logit_bias"},
    {R"("logit_bias":{"50":1})", "logit_bias"},
    {R"("logit_bias":{"-1":1})", "logit_bias"},
    {R"("logit_bias":{"5":101})", "logit_bias.5"},
    {R"("presence_penalty":2.5)", "presence_penalty"},
    {R"("frequency_penalty":"x")", "frequency_penalty"},
    {R"("repetition_penalty":1.1)", "repetition_penalty"},
    {R"("thinking_budget":-1)", "thinking_budget"},
    {R"("thinking_budget":"much")", "thinking_budget"},
    {R"("reasoning_effort":"low")", "reasoning_effort"},
    {R"("reasoning_effort":3)", "reasoning_effort"},
    {R"("verbosity":"high")", "verbosity"},
    {R"("modalities":["text","audio"])", "modalities"},
    {R"("audio":{"voice":"x"})", "audio"},
    {R"("prediction":{"type":"content","content":"x"})", "prediction"},
    {R"("web_search_options":{})", "web_search_options"},
    {R"("user":5)", "user"},
    {R"("metadata":"x")", "metadata"},
    {R"("store":"x")", "store"},
    {R"("service_tier":1)", "service_tier"},
    {R"("parallel_tool_calls":"x")", "parallel_tool_calls"},
    {R"("draft":"no")", "draft"},
    {R"("draft_depth":-1)", "draft_depth"},
    {R"("cache":0)", "cache"},
    {R"("colour":"red")", "colour"},
};

TEST(ParseChat, RefusesByNameWhatItCannotHonour) {
  for (const RefusedCase& c : kRefusedCases) expect_refusal(refused(body_with(c.given)), c);
}

TEST(ParseChat, AcceptsLabelsAndValuesThatAskForNothing) {
  const std::string kAccepted[] = {
      R"("user":"me","metadata":{"a":"b"},"store":true,"service_tier":"auto","safety_identifier":"x")",
      R"("prompt_cache_key":"k","prompt_cache_retention":"24h","parallel_tool_calls":true)",
      R"("tools":[],"tool_choice":"auto","functions":[],"function_call":"none","reasoning_effort":"none")",
      R"("logprobs":true,"n":3,"thinking_budget":0,"reasoning_effort":"medium")",
      R"("tool_choice":"none","n":1,"logprobs":false,"top_logprobs":0,"logit_bias":{})",
      R"("presence_penalty":0,"frequency_penalty":0.0,"repetition_penalty":1.0,"response_format":{"type":"text"})",
      R"("modalities":["text"],"verbosity":"medium","draft":false,"draft_depth":3,"cache":false)",
      R"("stream":true,"stream_options":{"include_usage":false,"include_obfuscation":false})",
  };
  for (const std::string& fields : kAccepted) accepted(body_with(fields));
}

TEST(ParseChat, TakesNullAsAbsentForEveryOptionalField) {
  for (const RefusedCase& c : kRefusedCases) {
    if (c.param.find('.') != std::string::npos) continue;
    accepted(body_with("\"" + c.param + "\":null"));
  }
}

// Planted control: the table above must be able to tell an honoured value from a refused one.
TEST(ParseChat, TheSameFieldsWithGoodValuesAreNotRefused) {
  accepted(body_with(R"("temperature":2,"top_p":1,"min_p":0.1,"top_k":-1,"seed":1,"max_tokens":5,"stop":["a"])"));
}

// --- what is honoured ---

TEST(ParseChat, FillsWhatIsSilentFromTheModelsDefaults) {
  const ChatRequest chat = accepted(body_with(""));
  EXPECT_EQ(chat.draw.temperature, 0.7F);
  EXPECT_EQ(chat.draw.top_p, 0.95F);
  EXPECT_EQ(chat.draw.top_k, 20);
  EXPECT_EQ(chat.seed, kFreshSeed);
  EXPECT_EQ(chat.draw.seed, static_cast<std::uint64_t>(kFreshSeed));
  EXPECT_FALSE(chat.max_tokens.has_value());
  EXPECT_EQ(chat.delivery, Delivery::Whole);
}

TEST(ParseChat, ReadsSampling) {
  const ChatRequest chat =
      accepted(body_with(R"("temperature":0,"top_p":0.5,"top_k":3,"min_p":0.25,"seed":-9223372036854775808)"));
  EXPECT_EQ(chat.draw.temperature, 0.0F);
  EXPECT_EQ(chat.draw.top_p, 0.5F);
  EXPECT_EQ(chat.draw.top_k, 3);
  EXPECT_EQ(chat.draw.min_p, 0.25F);
  EXPECT_EQ(chat.draw.presence_penalty, 0);
  EXPECT_EQ(chat.seed, std::numeric_limits<std::int64_t>::min());
}

TEST(ParseChat, ReadsPenaltiesAndBias) {
  const ChatRequest chat =
      accepted(body_with(R"("presence_penalty":0.5,"frequency_penalty":-1.5,"logit_bias":{"5":-100,"49":0.5})"));
  EXPECT_EQ(chat.draw.presence_penalty, 0.5F);
  EXPECT_EQ(chat.draw.frequency_penalty, -1.5F);
  ASSERT_EQ(chat.draw.bias.size(), 2U);
  EXPECT_EQ(chat.draw.bias[0].id, 5);
  EXPECT_EQ(chat.draw.bias[0].bias, -100);
  EXPECT_EQ(chat.draw.bias[1].id, 49);
}

TEST(ChoiceSeed, TheFirstOfManyIsTheOnlyOneOfOne) {
  EXPECT_EQ(choice_seed(-5, 0), static_cast<std::uint64_t>(std::int64_t{-5}));
  EXPECT_NE(choice_seed(-5, 1), choice_seed(-5, 0));
  EXPECT_NE(choice_seed(-5, 1), choice_seed(-5, 2));
}

TEST(ParseChat, ReadsEitherNameOfMaxTokens) {
  EXPECT_EQ(accepted(body_with(R"("max_tokens":5)")).max_tokens, 5);
  EXPECT_EQ(accepted(body_with(R"("max_completion_tokens":6)")).max_tokens, 6);
  EXPECT_EQ(accepted(body_with(R"("max_tokens":6,"max_completion_tokens":6)")).max_tokens, 6);
}

TEST(ParseChat, ReadsStopAsOneOrMany) {
  EXPECT_EQ(accepted(body_with(R"("stop":"END")")).stop_strings, std::vector<std::string>{"END"});
  EXPECT_EQ(accepted(body_with(R"("stop":["a","b"])")).stop_strings, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(accepted(body_with(R"("stop":[])")).stop_strings.empty());
}

TEST(ParseChat, ReadsStreaming) {
  const ChatRequest chat = accepted(body_with(R"("stream":true,"stream_options":{"include_usage":true})"));
  EXPECT_EQ(chat.delivery, Delivery::Streamed);
  EXPECT_TRUE(chat.include_usage);
}

TEST(ParseChat, PassesTemplateVariablesOn) {
  const ChatRequest chat = accepted(body_with(R"("chat_template_kwargs":{"enable_thinking":false})"));
  EXPECT_EQ(to_json(chat.variables),
            R"({"messages":[{"role":"user","content":"hi"}],"enable_thinking":false,"add_generation_prompt":true})");
}

// --- choices, logprobs, thinking ---

TEST(ParseChat, ReadsLogprobs) {
  EXPECT_EQ(accepted(body_with("")).num_top_logprobs, -1);
  EXPECT_EQ(accepted(body_with(R"("logprobs":false,"top_logprobs":0)")).num_top_logprobs, -1);
  EXPECT_EQ(accepted(body_with(R"("logprobs":true)")).num_top_logprobs, 0);
  EXPECT_EQ(accepted(body_with(R"("logprobs":true,"top_logprobs":20)")).num_top_logprobs, 20);
}

TEST(ParseChat, TurnsThinkingOnAndOffByEffort) {
  const auto thinks = [](const std::string& fields) {
    return accepted(body_with(fields)).variables.at("enable_thinking").as_bool();
  };
  EXPECT_FALSE(thinks(R"("reasoning_effort":"none")"));
  EXPECT_TRUE(thinks(R"("reasoning_effort":"medium")"));
  EXPECT_FALSE(thinks(R"("reasoning_effort":"medium","chat_template_kwargs":{"enable_thinking":false})"));
}

TEST(ParseChat, HandsEffortToATemplateThatGradesIt) {
  ServedModel model = demo();
  model.reads_reasoning_effort = true;
  const auto chat = parse_chat(body_with(R"("reasoning_effort":"low")"), model, 1);
  ASSERT_TRUE(chat.has_value());
  EXPECT_EQ(chat->variables.at("reasoning_effort").as_string(), "low");
}

TEST(ParseChat, RefusesInWordsWhatTheTemplateDoesNotKnow) {
  ServedModel plain = demo();
  plain.reads_tools = plain.reads_enable_thinking = false;
  plain.think_closing.clear();
  for (const char* fields : {R"("reasoning_effort":"none")", R"("reasoning_effort":"medium")", R"("thinking_budget":5)",
                             R"("tools":[{"type":"function","function":{"name":"f"}}])"}) {
    const auto chat = parse_chat(body_with(fields), plain, 1);
    ASSERT_FALSE(chat.has_value()) << fields;
    EXPECT_EQ(chat.error().code, ErrorCode::Unsupported);
  }
}

// --- tools ---

const std::string kTools =
    R"("tools":[{"type":"function","function":{"name":"f","description":"does f","strict":false,)"
    R"("parameters":{"type":"object","properties":{"a":{"type":"string"}}}}},)"
    R"({"type":"function","function":{"name":"g"}}])";

ToolUse tools_with(const std::string& fields) { return accepted(body_with(kTools + fields)).tools; }

std::vector<std::string> callable_names(const ToolUse& use) {
  std::vector<std::string> names;
  if (use.callable == nullptr) return names;
  for (const Tool& tool : *use.callable) names.push_back(tool.name);
  return names;
}
using Names = std::vector<std::string>;

TEST(Tools, AreShownToTheTemplateInOpenAisForm) {
  EXPECT_EQ(to_json(accepted(body_with(kTools)).variables.at("tools")),
            R"([{"type":"function","function":{"name":"f","description":"does f",)"
            R"("parameters":{"type":"object","properties":{"a":{"type":"string"}}}}},)"
            R"({"type":"function","function":{"name":"g"}}])");
}

TEST(Tools, MayBeCalledUnlessTheChoiceIsNone) {
  EXPECT_EQ(tools_with("").choice, ToolChoice::Auto);
  EXPECT_EQ(callable_names(tools_with("")), (Names{"f", "g"}));
  EXPECT_EQ(callable_names(tools_with(R"(,"tool_choice":"auto")")), (Names{"f", "g"}));
  const ToolUse none = tools_with(R"(,"tool_choice":"none")");
  EXPECT_EQ(none.choice, ToolChoice::None);
  EXPECT_TRUE(callable_names(none).empty());
  EXPECT_EQ(none.declared.size(), 2U) << "the model still sees them";
  EXPECT_EQ(accepted(body_with("")).tools.choice, ToolChoice::None);
}

TEST(Tools, OfWhichNoneMayBeCalledForbidTheTagOfACall) {
  ServedModel model = demo();
  model.tool_call_id = 12;
  const auto bias_of = [&](const std::string& fields) {
    return prepare_chat(body_with(fields), model, FakePrompts(), 1)->requests[0].draw.bias;
  };
  EXPECT_TRUE(bias_of(kTools).empty());
  EXPECT_TRUE(bias_of("\"tool_choice\":\"none\"").empty());
  const auto bias = bias_of(kTools + R"(,"tool_choice":"none")");
  ASSERT_EQ(bias.size(), 1U);
  EXPECT_EQ(bias[0].id, 12);
  EXPECT_EQ(bias[0].bias, -std::numeric_limits<float>::infinity());
}

// --- the model's name ---

TEST(ParseChat, AnswersToItsNameAndAliases) {
  accepted(R"({"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]})");
  accepted(R"({"messages":[{"role":"user","content":"hi"}]})");
  const ApiError error = refused(R"({"model":"other","messages":[{"role":"user","content":"hi"}]})");
  EXPECT_EQ(http_status(error.code), 404);
  EXPECT_EQ(error.message, "model 'other' is not served here; served: 'demo', 'gpt-4o'");
}

TEST(ParseChat, TheStarAliasTakesAnyName) {
  ServedModel model = demo();
  model.aliases.emplace_back("*");
  EXPECT_TRUE(parse_chat(R"({"model":"other","messages":[{"role":"user","content":"x"}]})", model, 1).has_value());
}

// --- messages ---

struct MessageCase {
  std::string given;
  std::string normalised;
};
const MessageCase kMessageCases[] = {
    {R"({"role":"developer","content":"be brief"})", R"({"role":"system","content":"be brief"})"},
    {R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})",
     R"({"role":"user","content":"ab"})"},
    {R"({"role":"user","content":[]})", R"({"role":"user","content":""})"},
    {R"({"role":"user","content":"x","name":"ann"})", R"({"role":"user","content":"x","name":"ann"})"},
    {R"({"role":"assistant","content":null})", R"({"role":"assistant","content":""})"},
    {R"({"role":"assistant"})", R"({"role":"assistant","content":""})"},
    {R"({"role":"assistant","content":"y","reasoning_content":"hm","refusal":null,"annotations":[],"audio":null})",
     R"({"role":"assistant","content":"y","reasoning_content":"hm"})"},
    {R"({"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": [1, 2]}"}}]})",
     R"({"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{"a":[1,2]}}}]})"},
    {R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]})",
     R"({"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":{"a":1}}}]})"},
    {R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":""}}]})",
     R"({"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":{}}}]})"},
    {R"({"role":"tool","content":"42","tool_call_id":"c"})", R"({"role":"tool","content":"42","tool_call_id":"c"})"},
};

TEST(Messages, AreBroughtIntoOneForm) {
  for (const MessageCase& c : kMessageCases) {
    const ChatRequest chat = accepted(R"({"messages":[)" + c.given + "]}");
    EXPECT_EQ(messages_of(chat), "[" + c.normalised + "]");
  }
}

const RefusedCase kBadMessages[] = {
    {"[]", "messages"},
    {"{}", "messages"},
    {"\"hi\"", "messages"},
    {"null", "messages"},
    {"[5]", "messages[0]"},
    {"[null]", "messages[0]"},
    {"[{}]", "messages[0].role"},
    {R"([{"role":5,"content":"x"}])", "messages[0].role"},
    {R"([{"role":"king","content":"x"}])", "messages[0].role"},
    {R"([{"role":"function","content":"x","name":"f"}])", "messages[0].role"},
    {R"([{"role":"user"}])", "messages[0].content"},
    {R"([{"role":"user","content":null}])", "messages[0].content"},
    {R"([{"role":"user","content":5}])", "messages[0].content"},
    {R"([{"role":"user","content":{"type":"text"}}])", "messages[0].content"},
    {R"([{"role":"user","content":["x"]}])", "messages[0].content[0]"},
    {R"([{"role":"user","content":[{"text":"x"}]}])", "messages[0].content[0].type"},
    {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text"},
    {R"([{"role":"user","content":[{"type":"text","text":5}]}])", "messages[0].content[0].text"},
    {R"([{"role":"user","content":[{"type":"text","text":"x","y":1}]}])", "messages[0].content[0].y"},
    {R"([{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:"}}]}])",
     "messages[0].content[1].type"},
    {R"([{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}])", "messages[0].content[0].type"},
    {R"([{"role":"user","content":"x","colour":"red"}])", "messages[0].colour"},
    {R"([{"role":"user","content":"x","tool_calls":[]}])", "messages[0].tool_calls"},
    {R"([{"role":"user","content":"x","name":5}])", "messages[0].name"},
    {R"([{"role":"user","content":"x"},{"role":"assistant","tool_calls":5}])", "messages[1].tool_calls"},
    {R"([{"role":"assistant","tool_calls":[5]}])", "messages[0].tool_calls[0]"},
    {R"([{"role":"assistant","tool_calls":[{}]}])", "messages[0].tool_calls[0].function"},
    {R"([{"role":"assistant","tool_calls":[{"type":"custom","function":{"name":"f"}}]}])",
     "messages[0].tool_calls[0].type"},
    {R"([{"role":"assistant","tool_calls":[{"function":{"arguments":"{}"}}]}])",
     "messages[0].tool_calls[0].function.name"},
    {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{"}}]}])",
     "messages[0].tool_calls[0].function.arguments"},
    {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"[1]"}}]}])",
     "messages[0].tool_calls[0].function.arguments"},
    {R"([{"role":"assistant","content":"x","function_call":{"name":"f"}}])", "messages[0].function_call"},
    {R"([{"role":"assistant","content":"x","audio":{"id":"a"}}])", "messages[0].audio"},
    {R"([{"role":"assistant","content":"x","annotations":[1]}])", "messages[0].annotations"},
};

TEST(Messages, AreRefusedByPlace) {
  for (const RefusedCase& c : kBadMessages) expect_refusal(refused(R"({"messages":)" + c.given + "}"), c);
}

TEST(ParseChat, RefusesWhatIsNotAJsonObject) {
  for (const char* body : {"", "{", "[]", "5", "null", "\"x\"", "{\"a\":}", "{} {}", "{\"a\":\"\xff\"}", "nul"}) {
    EXPECT_EQ(http_status(refused(body).code), 400) << body;
  }
  EXPECT_EQ(http_status(refused(std::string(100'000, '[')).code), 400);
}

// --- to the engine ---

ApiResult<Request> to_engine(const ChatRequest& chat, std::size_t prompt_tokens) {
  return to_request(chat, std::vector<std::int32_t>(prompt_tokens, 1), demo(), "messages");
}

TEST(ToRequest, GivesASilentRequestTheLesserOfTheLimitAndTheRoom) {
  const ChatRequest chat = accepted(body_with(""));
  EXPECT_EQ(to_engine(chat, 10)->max_tokens, 40);
  EXPECT_EQ(to_engine(chat, 90)->max_tokens, 10);
}

TEST(ToRequest, LetsARequestAskForMoreThanTheLimit) {
  EXPECT_EQ(to_engine(accepted(body_with(R"("max_tokens":90)")), 10)->max_tokens, 90);
}

TEST(ToRequest, RefusesWhatCannotFitWithBothNumbers) {
  const auto asked = to_engine(accepted(body_with(R"("max_tokens":91)")), 10);
  ASSERT_FALSE(asked.has_value());
  EXPECT_EQ(asked.error().code, ErrorCode::TooLong);
  EXPECT_NE(asked.error().message.find("101"), std::string::npos);
  EXPECT_NE(asked.error().message.find("100"), std::string::npos);
  const auto full = to_engine(accepted(body_with("")), 100);
  ASSERT_FALSE(full.has_value());
  EXPECT_NE(render_openai_error(full.error()).find(R"("code":"context_length_exceeded")"), std::string::npos);
}

TEST(ToRequest, EndsAtTheModelsEndTokensUnlessToldToIgnoreThem) {
  EXPECT_EQ(to_engine(accepted(body_with("")), 1)->end_ids, (std::vector<std::int32_t>{7, 8}));
  EXPECT_TRUE(to_engine(accepted(body_with(R"("ignore_eos":true)")), 1)->end_ids.empty());
}

TEST(ToRequest, LeavesThePrefixCacheAloneWhenAsked) {
  EXPECT_TRUE(to_request(accepted(body_with("")), {1}, demo(), "messages")->use_prefix_cache);
  EXPECT_FALSE(to_request(accepted(body_with(R"("cache":false)")), {1}, demo(), "messages")->use_prefix_cache);
}

TEST(PrepareChat, MakesARequestAChoiceEachWithItsOwnSeed) {
  const auto prepared = prepare_chat(body_with(R"("n":3,"seed":9,"logprobs":true)"), demo(), FakePrompts(), 1);
  ASSERT_TRUE(prepared.has_value());
  ASSERT_EQ(prepared->requests.size(), 3U);
  EXPECT_EQ(prepared->requests[0].draw.seed, 9U);
  for (int i = 0; i < 3; ++i) {
    const Request& request = prepared->requests[static_cast<std::size_t>(i)];
    EXPECT_EQ(request.draw.seed, choice_seed(9, i));
    EXPECT_EQ(request.num_top_logprobs, 0);
    EXPECT_EQ(request.rule, nullptr);
  }
}

TEST(PrepareChat, GivesEachChoiceAThinkingBudgetOfItsOwnWhereThereIsAThought) {
  FakePrompts prompts;
  const std::string body = body_with(R"("n":2,"thinking_budget":4)");
  EXPECT_EQ(prepare_chat(body, demo(), prompts, 1)->requests[0].rule, nullptr);
  prompts.thinking = true;
  const auto prepared = prepare_chat(body, demo(), prompts, 1);
  EXPECT_NE(prepared->requests[0].rule, nullptr);
  EXPECT_NE(prepared->requests[0].rule, prepared->requests[1].rule);
}

TEST(PrepareChat, SaysInTheTemplatesWordsWhatItCannotRender) {
  const auto prepared = prepare_chat(R"({"messages":[{"role":"user","content":"RAISE"}]})", demo(), FakePrompts(), 1);
  ASSERT_FALSE(prepared.has_value());
  EXPECT_EQ(http_status(prepared.error().code), 400);
  EXPECT_EQ(prepared.error().message, "the template says no");
}

TEST(ApiErrors, HaveOpenAisObject) {
  EXPECT_EQ(
      render_openai_error({ErrorCode::NotFound, "no \"x\"", "model", "model_not_found"}),
      R"({"error":{"message":"no \"x\"","type":"invalid_request_error","param":"model","code":"model_not_found"}})");
  EXPECT_EQ(render_openai_error({ErrorCode::InvalidArgument, "bad", "", ""}),
            R"({"error":{"message":"bad","type":"invalid_request_error","param":null,"code":null}})");
}

TEST(ApiErrors, EveryCodeHasAStatus) {
  for (const ErrorCode code :
       {ErrorCode::InvalidArgument, ErrorCode::NotFound, ErrorCode::Unsupported, ErrorCode::Corrupt, ErrorCode::Io,
        ErrorCode::TooLong, ErrorCode::QueueFull, ErrorCode::OutOfBlocks, ErrorCode::Cancelled, ErrorCode::Unavailable,
        ErrorCode::Internal}) {
    EXPECT_GE(http_status(code), 400);
  }
}

}  // namespace
}  // namespace rondo
