// libFuzzer: the first byte says what the rest is (schema, regex, EBNF, choices, tools); what compiles is walked with
// bytes of the input. Nothing may crash, compile without bound, or lead to where no byte fits and the text is not
// whole.
#include <cstdlib>
#include <string>
#include <string_view>

#include "grammar/grammar.h"
#include "grammar/matcher.h"

namespace {

using rondo::grammar::Source;

std::shared_ptr<const rondo::grammar::Vocabulary> byte_vocabulary() {
  std::vector<rondo::grammar::VocabularyToken> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back({byte, std::string(1, static_cast<char>(byte)), false});
  tokens.push_back({256, "<tool_call>", true});
  tokens.push_back({257, "\"}", false});
  return *rondo::grammar::Vocabulary::create(std::move(tokens));
}

Source source_of(std::uint8_t kind, std::string text) {
  switch (kind % 5) {
    case 0: return {Source::Kind::JsonSchema, std::move(text)};
    case 1: return Source::regex(std::move(text));
    case 2: return Source::ebnf(std::move(text));
    case 3: return {Source::Kind::Choice, std::move(text)};
    default: break;
  }
  const auto schema = rondo::parse_json(text);
  const bool is_object = schema && schema->is_object();
  return Source::tool_calls({{"f", is_object ? schema->get_object() : rondo::json::Object{}, (kind & 8) != 0}},
                            static_cast<rondo::grammar::Calls>(kind >> 6));
}

void check(bool holds) {
  if (!holds) std::abort();
}

void walk(const std::shared_ptr<const rondo::grammar::Grammar>& compiled,
          const std::shared_ptr<const rondo::grammar::Vocabulary>& vocabulary, std::string_view choices) {
  rondo::grammar::Matcher matcher(compiled, vocabulary);
  matcher.reserve(1, rondo::grammar::Matcher::Start::AfterThought);
  std::vector<std::uint32_t> mask(vocabulary->mask_words());
  for (const char choice : choices.substr(0, 200)) {
    std::fill(mask.begin(), mask.end(), 0U);
    matcher.allow(matcher.after({}), mask);
    std::int32_t token = -1;
    for (int step = 0; step < 512 && token < 0; ++step) {
      const int id = (static_cast<std::uint8_t>(choice) + step) % 258;
      if ((mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1U) != 0) token = id;
    }
    if (token < 0) return check(matcher.is_complete(matcher.after({})));
    matcher.accept(token);
    check(!matcher.is_dead(matcher.after({})));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const auto kVocabulary = byte_vocabulary();
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto compiled = rondo::grammar::compile(source_of(data[0], text), *kVocabulary);
  if (compiled) walk(*compiled, kVocabulary, text);
  return 0;
}
