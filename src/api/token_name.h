// How logprobs name a token: its text, or "bytes:\xe2\x80" where its bytes are not whole UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace rondo {

std::string token_name(std::string_view bytes);

}  // namespace rondo
