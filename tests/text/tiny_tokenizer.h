// A tokenizer.json small enough to read: the 256 bytes (id = byte), a few merges, four added tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/tokenizer.h"

namespace rondo::test {

inline constexpr int kLo = 256, kHe = 257, kHello = 259;          // merges: l o, h e, he l, hel lo
inline constexpr int kImStart = 300, kImEnd = 301, kThink = 302;  // <|im_start|> and <|im_end|> are special
inline constexpr int kIm = 303;                                   // <|im : the beginning of both, not special

json::Object tiny_document();                          // to be spoilt by a test
Tokenizer tiny_tokenizer();                            // of that document
Tokenizer tokenizer_of(const json::Object& document);  // which must be good
json::Object added_token(int id, std::string_view content, bool special);

}  // namespace rondo::test
