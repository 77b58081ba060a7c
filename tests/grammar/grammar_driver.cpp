// For tools/oracles/schema_oracle.py: a JSON object a line in, one out.
//
//   in   {"schema": ..., "texts": [...], "walks": n, "seed": n}
//   out  {"error": "..."} or {"taken": [true, ...], "walks": ["...", ...]}
//
// A walk draws tokens of the bundled vocabulary at random from the masks until the text is whole and an end is drawn,
// or nothing may follow.

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/grammar/acceptance.h"
#include "text/tokenizer.h"

namespace rondo::test {
namespace {

constexpr int kMostTokens = 3000;

// Long texts must come to an end: the longer it gets, the more a closing token is preferred.
std::string walk(const std::shared_ptr<const grammar::Grammar>& compiled,
                 const std::shared_ptr<const grammar::Vocabulary>& vocabulary, std::uint64_t seed) {
  grammar::Matcher matcher(compiled, vocabulary);
  matcher.reserve(0, grammar::Matcher::Start::Here);
  std::vector<std::uint32_t> mask(vocabulary->mask_words());
  std::string text;
  for (std::uint64_t step = 0; step < kMostTokens; ++step) {
    const auto& place = matcher.after({});
    const bool is_whole = matcher.is_complete(place);
    if (is_whole && random_bits(seed, step, 0) % 4 == 0) return text;
    std::fill(mask.begin(), mask.end(), 0U);
    matcher.allow(place, mask);
    std::vector<std::int32_t> allowed, closing;
    for (std::size_t id = 0; id < mask.size() * 32; ++id) {
      if ((mask[id / 32] >> (id % 32) & 1U) == 0) continue;
      allowed.push_back(static_cast<std::int32_t>(id));
      const std::string_view bytes = vocabulary->bytes_of(allowed.back());
      if (bytes == "\"" || bytes == "}" || bytes == "]") closing.push_back(allowed.back());
    }
    if (allowed.empty()) return is_whole ? text : text + "<dead end>";
    const auto quote =
        std::find_if(closing.begin(), closing.end(), [&](std::int32_t id) { return vocabulary->bytes_of(id) == "\""; });
    const bool is_in_string = allowed.size() > 1000;  // where brackets are text
    if (quote != closing.end()) {
      closing = {*quote};
    } else if (is_in_string) {
      closing.clear();
    }
    const auto& from = !closing.empty() && random_bits(seed, step, 1) % 100 < 20 + step ? closing : allowed;
    const std::int32_t token = from[random_bits(seed, step, 2) % from.size()];
    text += vocabulary->bytes_of(token);
    matcher.accept(token);
  }
  return text + "<no end>";
}

json::Object answer(const json::Object& question, const std::shared_ptr<const grammar::Vocabulary>& vocabulary) {
  const auto compiled = grammar::compile(grammar::Source::json_schema(question.at("schema")), *vocabulary);
  if (!compiled) return {{"error", compiled.error().message}};
  json::Array taken, walks;
  for (const json::Value& text : question.at("texts").as_array()) {
    taken.push_back(read_text(*compiled, text.as_string()) == Taken::Whole);
  }
  const auto seed = question.at("seed").to_number<std::uint64_t>();
  for (std::uint64_t i = 0; i < question.at("walks").to_number<std::uint64_t>(); ++i) {
    walks.emplace_back(walk(*compiled, vocabulary, seed * 1000 + i));
  }
  return {{"taken", taken}, {"walks", walks}};
}

}  // namespace
}  // namespace rondo::test

int main() {
  const auto tokenizer = rondo::Tokenizer::open(RONDO_BUNDLED_MODEL);
  if (!tokenizer) return 1;
  const auto vocabulary = rondo::grammar::Vocabulary::create(*tokenizer, 1 << 20);
  if (!vocabulary) return 1;
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto question = rondo::parse_json(line);
    if (!question) return 1;
    std::cout << rondo::to_json(rondo::test::answer(question->as_object(), *vocabulary)) << std::endl;
  }
}
