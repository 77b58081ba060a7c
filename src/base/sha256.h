// SHA-256 (FIPS 180-4), by libsodium, which asks for no memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rondo {

std::string sha256_hex(std::string_view bytes);
std::string sha256_base64(std::string_view bytes);

// token_sha: SHA-256 over the ids as little-endian 32-bit words.
std::string token_sha(std::span<const std::int32_t> ids);

}  // namespace rondo
