// free_chars of an automaton (automaton.h): for each state and class of text, how many code points of that class may
// follow whatever they are. A mask takes all tokens of such text at once instead of looking at each.
#pragma once

#include "grammar/automaton.h"

namespace rondo::grammar {

bool belongs_to(char32_t code_point, TextClass text);

void fill_free_chars(Automaton& automaton);

}  // namespace rondo::grammar
