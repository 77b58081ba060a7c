// The split patterns of the Qwen family, as a scanner: for each piece the alternatives of the pattern in their order.
#pragma once

#include <string_view>
#include <vector>

namespace rondo {

enum class Marks { InWords, AreSymbols };  // whether a word is [\p{L}\p{M}]+ or \p{L}+

// Appends the pieces of `text` (valid UTF-8); every code point is in one.
void split_family(std::string_view text, Marks marks, std::vector<std::string_view>& pieces);

}  // namespace rondo
