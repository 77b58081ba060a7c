#include "base/sha256.h"

#include <openssl/evp.h>
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

std::string sha256_base64(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  unsigned char text[(SHA256_DIGEST_LENGTH + 2) / 3 * 4 + 1];  // with a null at the end
  const int size = EVP_EncodeBlock(text, digest, SHA256_DIGEST_LENGTH);
  return std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
}

std::string token_sha(std::span<const std::int32_t> ids) {
  return sha256_hex(std::string_view(reinterpret_cast<const char*>(ids.data()), ids.size_bytes()));
}

}  // namespace rondo
