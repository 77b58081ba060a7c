// Grammars as clients ask for them: what a reply's text must be, from its source to the tables a Matcher reads.
//
// Compiling is bounded by counts, not by time, so a source is refused always or never; it belongs on a worker thread.
// A Grammar is immutable and shared by every request that asks for the same.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/vocabulary.h"

namespace rondo::grammar {

struct ToolFunction {
  std::string name;
  json::Object parameters;  // JSON schema of its arguments
  bool strict = false;      // refuse what of the schema is not supported, instead of taking any text there
};

// Which calls a reply makes: exactly one or at least one and nothing else, or any text and then at most one or any
// number.
enum class Calls { One, Several, TextThenOne, TextThenSeveral };

struct Source {
  enum class Kind { JsonObject, JsonSchema, Regex, Ebnf, Choice, ToolCalls, Either };
  Kind kind = Kind::JsonObject;
  std::string text;  // the schema, pattern or grammar; anything else as JSON

  static Source json_object() { return {Kind::JsonObject, ""}; }  // any JSON object
  static Source json_schema(const json::Value& schema) { return {Kind::JsonSchema, to_json(schema)}; }
  static Source regex(std::string pattern) { return {Kind::Regex, std::move(pattern)}; }  // of the whole text
  static Source ebnf(std::string text) { return {Kind::Ebnf, std::move(text)}; }
  static Source choice(const json::Array& texts) { return {Kind::Choice, to_json(texts)}; }
  static Source tool_calls(const std::vector<ToolFunction>& tools, Calls calls);  // tool_calls.h has the form
  static Source either(const Source& a, const Source& b);
};

using Grammar = Automaton;

// InvalidArgument or Unsupported, naming the part of the source: a schema's as a JSON pointer
// (#/properties/age/minimum), a pattern's by byte, a grammar's by line.
Result<std::shared_ptr<const Grammar>> compile(const Source& source, const Vocabulary& vocabulary);

// Grammars compiled before for one vocabulary, the longest unused of which go first. Any thread.
class GrammarCache {
 public:
  explicit GrammarCache(std::shared_ptr<const Vocabulary> vocabulary, std::size_t most_bytes = 64 << 20)
      : vocabulary_(std::move(vocabulary)), most_bytes_(most_bytes) {}
  Result<std::shared_ptr<const Grammar>> get(const Source& source);
  const std::shared_ptr<const Vocabulary>& vocabulary() const { return vocabulary_; }
  std::size_t num_compiled() const;  // since the start

 private:
  struct Kept {
    std::string key;
    std::shared_ptr<const Grammar> grammar;
    std::size_t bytes;
  };
  std::shared_ptr<const Grammar> find(const std::string& key);
  void keep(std::string key, std::shared_ptr<const Grammar> grammar);

  const std::shared_ptr<const Vocabulary> vocabulary_;
  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  std::list<Kept> kept_;  // last used first
  std::unordered_map<std::string_view, std::list<Kept>::iterator> by_key_;
  std::size_t bytes_ = 0, num_compiled_ = 0;
};

}  // namespace rondo::grammar
