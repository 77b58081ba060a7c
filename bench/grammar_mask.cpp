// Time of one row's mask when it is made the first time (a matcher keeps a few), by where in which form: with the
// bundled tokenizer, and with a made-up vocabulary of 248,000 tokens whose lengths and kinds are like those of large
// byte-level BPEs.
//
// Usage: grammar_mask [MODEL_FOLDER]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include "base/random.h"
#include "grammar/grammar.h"
#include "grammar/matcher.h"
#include "text/tokenizer.h"

namespace {

using rondo::random_bits;
using rondo::grammar::Source;
using rondo::grammar::VocabularyToken;

std::shared_ptr<const rondo::grammar::Vocabulary> made_up(int size) {
  std::vector<VocabularyToken> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back({byte, std::string(1, static_cast<char>(byte)), false});
  std::set<std::string> known;
  constexpr std::string_view kSyllables[] = {"the", "in", "er",  "on",  "at", "re", "st", "al",
                                             "con", "de", "ing", "pro", "é",  "中", "и"};
  constexpr std::string_view kSigns[] = {"\"",  "\",", "{\"", "();\n", "\n\n", "  ", "\t",
                                         "://", "[]",  "\\n", "}}",    "=\"",  "</"};
  for (std::uint64_t i = 0; static_cast<int>(tokens.size()) < size; ++i) {
    std::string text = random_bits(i, 0) % 2 == 0 ? " " : "";
    const bool is_sign = random_bits(i, 1) % 10 == 0;
    for (std::uint64_t n = 1 + random_bits(i, 2) % 4; n > 0; --n) {
      if (is_sign) text += kSigns[random_bits(i, n, 3) % std::size(kSigns)];
      if (!is_sign) text += kSyllables[random_bits(i, n, 4) % std::size(kSyllables)];
      if (!is_sign) text += static_cast<char>('a' + random_bits(i, n, 5) % 26);
    }
    if (known.insert(text).second) tokens.push_back({static_cast<std::int32_t>(tokens.size()), text, false});
  }
  return *rondo::grammar::Vocabulary::create(std::move(tokens));
}

struct Place {
  const char* name;
  Source source;
  std::string before;
};

void measure(const char* vocabulary_name, const std::shared_ptr<const rondo::grammar::Vocabulary>& vocabulary) {
  const Source schema = Source::json_schema(*rondo::parse_json(
      R"({"type":"object","properties":{"name":{"type":"string"},"code":{"type":"string","maxLength":12},"n":{"type":"integer"}},"required":["name"]})"));
  const Place places[] = {
      {"schema, at the start", schema, ""},
      {"schema, in a string", schema, "{\"name\":\"a"},
      {"schema, in a string of 12, 4 left", schema, "{\"name\":\"a\",\"code\":\"12345678"},
      {"schema, in a number", schema, "{\"name\":\"a\",\"n\":1"},
      {"json_object, before a value", Source::json_object(), "{\"a\":"},
      {"json_object, in a string", Source::json_object(), "{\"a\":[{\"b\":\"x"},
      {"regex [a-z ]*", Source::regex("[a-z ]*"), "ab"},
      {"regex .*", Source::regex(".*"), "ab"},
      {"tool call, in a string argument",
       Source::tool_calls({{"f", {{"properties", {{"x", {{"type", "string"}}}}}}, false}}, rondo::grammar::Calls::One),
       "<tool_call>\n<function=f>\n<parameter=x>\na"},
  };
  fmt::print("{}: {} mask words, {:.1f} MiB\n", vocabulary_name, vocabulary->mask_words(),
             static_cast<double>(vocabulary->num_bytes()) / (1 << 20));
  for (const Place& place : places) {
    const auto begin = std::chrono::steady_clock::now();
    const auto compiled = *rondo::grammar::compile(place.source, *vocabulary);
    const double compile_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    rondo::grammar::Matcher matcher(compiled, vocabulary);
    const auto reserve = [&] { matcher.reserve(0, rondo::grammar::Matcher::Start::Here); };
    std::string before = place.before;
    if (const auto tag = vocabulary->tag("<tool_call>"); tag.size() == 3 && before.starts_with("<tool_call>"))
      before.replace(0, 11, tag);
    std::vector<std::int32_t> tokens;  // of what stands before, the longest each time
    for (std::size_t at = 0; at < before.size(); at += vocabulary->bytes_of(tokens.back()).size()) {
      std::int32_t longest = -1;
      for (std::int32_t id = 0; id < static_cast<std::int32_t>(vocabulary->mask_words() * 32); ++id) {
        const auto bytes = vocabulary->bytes_of(id);
        const bool fits = !bytes.empty() && std::string_view(before).substr(at).starts_with(bytes);
        if (fits && (longest < 0 || bytes.size() > vocabulary->bytes_of(longest).size())) longest = id;
      }
      tokens.push_back(longest);
    }
    std::vector<std::uint32_t> mask(vocabulary->mask_words());
    std::vector<double> times;
    for (int run = 0; run < 51; ++run) {
      reserve();  // so that no mask is kept from the run before
      for (const std::int32_t token : tokens) matcher.accept(token);
      const auto start = std::chrono::steady_clock::now();
      std::fill(mask.begin(), mask.end(), 0U);
      matcher.allow(matcher.after({}), mask);
      times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(times.begin(), times.end());
    int allowed = 0;
    for (const std::uint32_t word : mask) allowed += __builtin_popcount(word);
    fmt::print("  {:36} {:9.1f} us a row (lowest {:.1f}), {:6} tokens; compiled in {:.2f} ms to {} states\n",
               place.name, times[times.size() / 2], times[0], allowed, compile_ms, compiled->num_states());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto tokenizer = rondo::Tokenizer::open(argc > 1 ? argv[1] : "models/rondo-demo");
  if (!tokenizer) {
    fmt::print(stderr, "{}\n", tokenizer.error().message);
    return 1;
  }
  measure("tokenizer", *rondo::grammar::Vocabulary::create(*tokenizer, 1 << 22));
  measure("made up", made_up(248'000));
}
