#include "base/sha256.h"

#include <openssl/sha.h>

#include <fmt/format.h>
#include <bit>

namespace rondo {

static_assert(std::endian::native == std::endian::little, "token_sha hashes the ids as they lie in memory");

std::string sha256_hex(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string token_sha(std::span<const std::int32_t> ids) {
  return sha256_hex(std::string_view(reinterpret_cast<const char*>(ids.data()), ids.size_bytes()));
}

}  // namespace rondo
