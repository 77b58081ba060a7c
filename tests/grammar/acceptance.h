// Whether a grammar takes a text, read through a Matcher with one token a byte.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "grammar/grammar.h"
#include "grammar/matcher.h"

namespace rondo::test {

std::shared_ptr<const grammar::Vocabulary> byte_vocabulary();  // token b is the byte b

enum class Taken { Whole, Begun, No };  // Begun: it may go on to a whole text

Taken read_text(const std::shared_ptr<const grammar::Grammar>& compiled, std::string_view text);

// Of a source that must compile.
bool takes(const grammar::Source& source, std::string_view text);
std::string refusal_of(const grammar::Source& source);  // "" when it compiles

}  // namespace rondo::test
