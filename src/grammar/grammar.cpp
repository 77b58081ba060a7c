#include "grammar/grammar.h"

#include <fmt/format.h>

#include <utility>

#include "grammar/ebnf.h"
#include "grammar/json_schema.h"
#include "grammar/json_text.h"
#include "grammar/regex.h"

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

Result<ExprId> read_source(Rules& rules, const Source& source) {
  switch (source.kind) {
    case Source::Kind::JsonObject: return JsonText(rules).any_object();
    case Source::Kind::JsonSchema: return read_json_schema(rules, source.text);
    case Source::Kind::Regex: return read_regex(rules, source.text, RegexMatch::Whole, write_chars_plainly);
    case Source::Kind::Choice: return read_choice(rules, source.text);
    case Source::Kind::Ebnf: break;
  }
  TRY(const RuleId root, read_ebnf(rules, source.text));
  return rules.call(root);
}

}  // namespace

Result<std::shared_ptr<const Grammar>> compile(const Source& source) {
  if (source.text.size() > kMostSourceBytes) {
    return failure(ErrorCode::Unsupported,
                   fmt::format("the grammar has {} bytes; at most {} are taken", source.text.size(), kMostSourceBytes));
  }
  Rules rules;
  const RuleId root = rules.add_rule("the grammar");
  TRY(const ExprId body, read_source(rules, source));
  rules.define(root, body);
  Budget budget;
  TRY(Automaton automaton, make_automaton(rules, root, budget));
  return std::make_shared<const Grammar>(std::move(automaton));
}

Result<std::shared_ptr<const Grammar>> GrammarCache::get(const Source& source) {
  std::string key = fmt::format("{} {}", static_cast<int>(source.kind), source.text);
  if (auto found = find(key)) return found;
  TRY(auto grammar, compile(source));
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
