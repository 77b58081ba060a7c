// The product of two automata over bytes, neither of which calls a rule.
#pragma once

#include "grammar/dfa.h"

namespace rondo::grammar {

enum class Product { Both, Without };  // texts of a that are also texts of b, or are not

Dfa make_product(const Dfa& a, const Dfa& b, Product kind, Budget& budget);

}  // namespace rondo::grammar
