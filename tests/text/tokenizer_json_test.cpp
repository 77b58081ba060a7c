#include <gtest/gtest.h>

#include <functional>

#include "tests/text/tiny_tokenizer.h"
#include "text/tokenizer.h"

namespace rondo::test {
namespace {

struct Damage {
  const char* what;
  std::function<void(json::Object&)> spoil;
  ErrorCode code;
  const char* in_message;  // the key
};

json::Object& model(json::Object& d) { return d["model"].as_object(); }
json::Object& vocab(json::Object& d) { return model(d)["vocab"].as_object(); }
json::Object& added(json::Object& d) { return d["added_tokens"].as_array()[1].as_object(); }
json::Object& split(json::Object& d) {
  return d["pre_tokenizer"].as_object()["pretokenizers"].as_array()[0].as_object();
}
json::Object& byte_level(json::Object& d) {
  return d["pre_tokenizer"].as_object()["pretokenizers"].as_array()[1].as_object();
}
void add_merge(json::Object& d, json::Value merge) { model(d)["merges"].as_array().push_back(std::move(merge)); }

constexpr auto kCorrupt = ErrorCode::Corrupt;
constexpr auto kUnsupported = ErrorCode::Unsupported;

const std::vector<Damage> kDamages = {
    {"a key nobody knows", [](auto& d) { d["extra"] = 1; }, kUnsupported, "extra"},
    {"no model", [](auto& d) { d.erase("model"); }, kCorrupt, "model"},
    {"a model that is a list", [](auto& d) { d["model"] = json::Array(); }, kCorrupt, "model"},
    {"another model", [](auto& d) { model(d)["type"] = "Unigram"; }, kUnsupported, "model.type"},
    {"an unknown option of the model", [](auto& d) { model(d)["speed"] = 1; }, kUnsupported, "model.speed"},
    {"dropout", [](auto& d) { model(d)["dropout"] = 0.1; }, kUnsupported, "model.dropout"},
    {"a subword prefix", [](auto& d) { model(d)["continuing_subword_prefix"] = "##"; }, kUnsupported, "subword_prefix"},
    {"ignore_merges that is text", [](auto& d) { model(d)["ignore_merges"] = "yes"; }, kCorrupt, "ignore_merges"},
    {"no vocab", [](auto& d) { model(d).erase("vocab"); }, kCorrupt, "model.vocab"},
    {"a negative id", [](auto& d) { vocab(d)["hello"] = -1; }, kCorrupt, "hello"},
    {"an id past every table", [](auto& d) { vocab(d)["hello"] = 1LL << 40; }, kCorrupt, "hello"},
    {"a fractional id", [](auto& d) { vocab(d)["hello"] = 1.5; }, kCorrupt, "hello"},
    {"an id given twice", [](auto& d) { vocab(d)["hello"] = 65; }, kCorrupt, "model.vocab"},
    {"an empty token", [](auto& d) { vocab(d)[""] = 290; }, kCorrupt, "model.vocab"},
    {"a byte without a token", [](auto& d) { vocab(d).erase("A"); }, kUnsupported, "0x41"},
    {"no merges", [](auto& d) { model(d).erase("merges"); }, kCorrupt, "model.merges"},
    {"a merge of one", [](auto& d) { add_merge(d, "h"); }, kCorrupt, "model.merges[4]"},
    {"a merge of three", [](auto& d) { add_merge(d, "h e l"); }, kCorrupt, "model.merges[4]"},
    {"a merge that is a number", [](auto& d) { add_merge(d, 7); }, kCorrupt, "model.merges[4]"},
    {"a merge of a list of three",
     [](auto& d) {
       add_merge(d, json::Array{"a", "b", "c"});
     },
     kCorrupt, "merges[4]"},
    {"a merge that makes no token", [](auto& d) { add_merge(d, "a b"); }, kCorrupt, "model.merges[4]"},
    {"a merge of unknown tokens", [](auto& d) { add_merge(d, "zz zz"); }, kCorrupt, "model.merges[4]"},
    {"another normalizer",
     [](auto& d) {
       d["normalizer"] = json::Object{{"type", "NFKC"}};
     },
     kUnsupported, "NFKC"},
    {"a normalizer without a type", [](auto& d) { d["normalizer"] = json::Object(); }, kCorrupt, "normalizer.type"},
    {"no pre_tokenizer", [](auto& d) { d["pre_tokenizer"] = nullptr; }, kCorrupt, "pre_tokenizer"},
    {"an empty sequence", [](auto& d) { d["pre_tokenizer"].as_object()["pretokenizers"] = json::Array(); },
     kUnsupported, "pretokenizers"},
    {"a step that is text", [](auto& d) { d["pre_tokenizer"].as_object()["pretokenizers"].as_array()[0] = "x"; },
     kCorrupt, "pretokenizers[0]"},
    {"another step", [](auto& d) { split(d)["type"] = "Digits"; }, kUnsupported, "pretokenizers[0].type"},
    {"another behaviour", [](auto& d) { split(d)["behavior"] = "Removed"; }, kUnsupported, "behavior"},
    {"an inverted split", [](auto& d) { split(d)["invert"] = true; }, kUnsupported, "invert"},
    {"a pattern that is a string",
     [](auto& d) {
       split(d)["pattern"] = json::Object{{"String", "a"}};
     },
     kUnsupported, "pattern.String"},
    {"a pattern that cannot be read",
     [](auto& d) {
       split(d)["pattern"] = json::Object{{"Regex", "(a+)+"}};
     },
     kUnsupported, "pattern.Regex"},
    {"a prefix space", [](auto& d) { byte_level(d)["add_prefix_space"] = true; }, kUnsupported, "add_prefix_space"},
    {"another post-processor",
     [](auto& d) {
       d["post_processor"] = json::Object{{"type", "TemplateProcessing"}};
     },
     kUnsupported, "post_processor"},
    {"another decoder",
     [](auto& d) {
       d["decoder"] = json::Object{{"type", "Metaspace"}};
     },
     kUnsupported, "decoder"},
    {"no decoder", [](auto& d) { d["decoder"] = nullptr; }, kCorrupt, "decoder"},
    {"added tokens that are text", [](auto& d) { d["added_tokens"] = "x"; }, kCorrupt, "added_tokens"},
    {"an added token that is text", [](auto& d) { d["added_tokens"].as_array()[1] = "x"; }, kCorrupt,
     "added_tokens[1]"},
    {"an added token without id", [](auto& d) { added(d).erase("id"); }, kCorrupt, "added_tokens[1].id"},
    {"an added token without special", [](auto& d) { added(d).erase("special"); }, kCorrupt, "added_tokens[1].special"},
    {"an added token without content", [](auto& d) { added(d).erase("content"); }, kCorrupt, "added_tokens[1].content"},
    {"an empty added token", [](auto& d) { added(d)["content"] = ""; }, kCorrupt, "added_tokens[1].content"},
    {"an endless added token", [](auto& d) { added(d)["content"] = std::string(5000, 'x'); }, kUnsupported, "content"},
    {"an added id given twice", [](auto& d) { added(d)["id"] = kImStart; }, kCorrupt, "added_tokens[1].id"},
    {"an added token that is there twice", [](auto& d) { added(d)["content"] = "<|im_start|>"; }, kCorrupt, "content"},
    {"an added token with the id of another", [](auto& d) { added(d)["id"] = 65; }, kCorrupt, "added_tokens[1].id"},
    {"an added token whose id vocab denies", [](auto& d) { added(d)["content"] = "hello"; }, kCorrupt,
     "added_tokens[1].id"},
    {"a single word", [](auto& d) { added(d)["single_word"] = true; }, kUnsupported, "added_tokens[1].single_word"},
    {"an unknown option of a token", [](auto& d) { added(d)["color"] = 1; }, kUnsupported, "added_tokens[1].color"},
};

TEST(TokenizerJson, NamesFileAndKeyOfEachDamage) {
  for (const Damage& damage : kDamages) {
    json::Object document = tiny_document();
    damage.spoil(document);
    const auto tokenizer = Tokenizer::parse(to_json(document), "folder/tokenizer.json");
    ASSERT_FALSE(tokenizer.has_value()) << damage.what;
    const std::string& message = tokenizer.error().message;
    EXPECT_EQ(tokenizer.error().code, damage.code) << damage.what << ": " << message;
    EXPECT_EQ(message.find("folder/tokenizer.json: "), 0U) << message;
    EXPECT_NE(message.find(damage.in_message), std::string::npos) << damage.what << ": " << message;
  }
}

TEST(TokenizerJson, ACutDocumentIsCorrupt) {
  const std::string document = to_json(tiny_document());
  for (std::size_t length = 0; length < document.size(); length += 37) {
    const auto tokenizer = Tokenizer::parse(document.substr(0, length), "tokenizer.json");
    ASSERT_FALSE(tokenizer.has_value()) << length;
    ASSERT_EQ(tokenizer.error().code, ErrorCode::Corrupt) << tokenizer.error().message;
  }
}

TEST(TokenizerJson, ReadsWhatOlderFilesLeaveOut) {
  json::Object document = tiny_document();
  document.erase("normalizer");
  document.erase("post_processor");
  model(document).erase("type");
  model(document)["merges"].as_array().insert(model(document)["merges"].as_array().begin(), "#version: 0.2");
  document["pre_tokenizer"] = json::Object{{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const Tokenizer tokenizer = tokenizer_of(document);
  EXPECT_EQ(tokenizer.encode("hello"), std::vector<std::int32_t>{kHello});
  EXPECT_EQ(tokenizer.encode("e\xCC\x81").size(), 3U);
}

}  // namespace
}  // namespace rondo::test
