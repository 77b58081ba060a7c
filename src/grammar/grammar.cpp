#include "grammar/grammar.h"

#include <fmt/format.h>

#include <utility>

#include "grammar/ebnf.h"
#include "grammar/json_schema.h"
#include "grammar/json_text.h"
#include "grammar/regex.h"
#include "grammar/tool_calls.h"

namespace rondo::grammar {

namespace {

constexpr std::size_t kMostSourceBytes = 256 << 10;

Result<ExprId> read_choice(Rules& rules, std::string_view text) {
  TRY(const json::Value choices, parse_json(text));
  if (!choices.is_array() || choices.get_array().empty()) {
    return failure(ErrorCode::InvalidArgument, "the choices must be an array of at least one string");
  }
  std::vector<ExprId> texts;
  for (const json::Value& choice : choices.get_array()) {
    if (!choice.is_string() || choice.get_string().empty()) {
      return failure(ErrorCode::InvalidArgument,
                     fmt::format("choice {} is not a string with text in it", texts.size()));
    }
    texts.push_back(rules.bytes(choice.get_string()));
  }
  return rules.choice(texts);
}

Result<ExprId> read_source(Rules& rules, const Source& source, const Vocabulary& vocabulary);

Result<ExprId> read_either(Rules& rules, std::string_view text, const Vocabulary& vocabulary) {
  TRY(const json::Value sources, parse_json(text));
  std::vector<ExprId> alternatives;
  for (const json::Value& each : sources.as_array()) {
    const auto kind = static_cast<Source::Kind>(each.at("kind").as_int64());
    TRY(const ExprId alternative, read_source(rules, {kind, std::string(each.at("text").as_string())}, vocabulary));
    alternatives.push_back(alternative);
  }
  return rules.choice(alternatives);
}

Result<ExprId> read_source(Rules& rules, const Source& source, const Vocabulary& vocabulary) {
  switch (source.kind) {
    case Source::Kind::JsonObject: return JsonText(rules).any_object();
    case Source::Kind::JsonSchema: return read_json_schema(rules, source.text);
    case Source::Kind::Regex: return read_regex(rules, source.text, RegexMatch::Whole, write_chars_plainly);
    case Source::Kind::Choice: return read_choice(rules, source.text);
    case Source::Kind::ToolCalls: return read_tool_calls(rules, source.text, vocabulary);
    case Source::Kind::Either: return read_either(rules, source.text, vocabulary);
    case Source::Kind::Ebnf: break;
  }
  TRY(const RuleId root, read_ebnf(rules, source.text));
  return rules.call(root);
}

}  // namespace

Source Source::tool_calls(const std::vector<ToolFunction>& tools, Calls calls) {
  json::Array functions;
  for (const ToolFunction& tool : tools) {
    functions.push_back(json::Object{{"name", tool.name}, {"parameters", tool.parameters}, {"strict", tool.strict}});
  }
  const json::Object source{{"tools", std::move(functions)}, {"calls", static_cast<int>(calls)}};
  return {Kind::ToolCalls, to_json(source)};
}

Source Source::either(const Source& a, const Source& b) {
  json::Array sources;
  for (const Source* source : {&a, &b}) {
    sources.push_back(json::Object{{"kind", static_cast<int>(source->kind)}, {"text", source->text}});
  }
  return {Kind::Either, to_json(sources)};
}

Result<std::shared_ptr<const Grammar>> compile(const Source& source, const Vocabulary& vocabulary) {
  if (source.text.size() > kMostSourceBytes) {
    return failure(ErrorCode::Unsupported,
                   fmt::format("the grammar has {} bytes; at most {} are taken", source.text.size(), kMostSourceBytes));
  }
  Rules rules;
  const RuleId root = rules.add_rule("the grammar");
  TRY(const ExprId body, read_source(rules, source, vocabulary));
  rules.define(root, body);
  Budget budget;
  TRY(Automaton automaton, make_automaton(rules, root, budget));
  return std::make_shared<const Grammar>(std::move(automaton));
}

Result<std::shared_ptr<const Grammar>> GrammarCache::get(const Source& source) {
  std::string key = fmt::format("{} {}", static_cast<int>(source.kind), source.text);
  if (auto found = find(key)) return found;
  TRY(auto grammar, compile(source, *vocabulary_));
  keep(std::move(key), grammar);
  return grammar;
}

std::shared_ptr<const Grammar> GrammarCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found->second);
  return kept_.front().grammar;
}

void GrammarCache::keep(std::string key, std::shared_ptr<const Grammar> grammar) {
  const std::lock_guard lock(mutex_);
  ++num_compiled_;
  if (by_key_.count(key) != 0) return;  // another thread compiled it meanwhile
  const std::size_t bytes = key.size() + grammar->num_bytes();
  kept_.push_front({std::move(key), std::move(grammar), bytes});
  by_key_.emplace(kept_.front().key, kept_.begin());
  bytes_ += bytes;
  while (bytes_ > most_bytes_ && kept_.size() > 1) {
    bytes_ -= kept_.back().bytes;
    by_key_.erase(kept_.back().key);
    kept_.pop_back();
  }
}

std::size_t GrammarCache::num_compiled() const {
  const std::lock_guard lock(mutex_);
  return num_compiled_;
}

}  // namespace rondo::grammar
