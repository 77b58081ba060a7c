#include "tests/grammar/acceptance.h"

#include "base/check.h"

namespace rondo::test {

std::shared_ptr<const grammar::Vocabulary> byte_vocabulary() {
  static const auto kVocabulary = [] {
    std::vector<grammar::VocabularyToken> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.push_back({byte, std::string(1, static_cast<char>(byte)), false});
    return *grammar::Vocabulary::create(std::move(tokens));
  }();
  return kVocabulary;
}

Taken read_text(const std::shared_ptr<const grammar::Grammar>& compiled, std::string_view text) {
  grammar::Matcher matcher(compiled, byte_vocabulary());
  matcher.reserve(0, grammar::Matcher::Start::Here);
  for (const char c : text) {
    matcher.accept(static_cast<unsigned char>(c));
    if (matcher.is_dead(matcher.after({}))) return Taken::No;
  }
  return matcher.is_complete(matcher.after({})) ? Taken::Whole : Taken::Begun;
}

bool takes(const grammar::Source& source, std::string_view text) {
  const auto compiled = grammar::compile(source, *byte_vocabulary());
  CHECK(compiled.has_value());
  return read_text(*compiled, text) == Taken::Whole;
}

std::string refusal_of(const grammar::Source& source) {
  const auto compiled = grammar::compile(source, *byte_vocabulary());
  return compiled ? "" : compiled.error().message;
}

}  // namespace rondo::test
