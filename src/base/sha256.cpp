#include "base/sha256.h"

#include <sodium/crypto_hash_sha256.h>
#include <sodium/utils.h>

#include <array>
#include <bit>

namespace rondo {

static_assert(std::endian::native == std::endian::little, "token_sha hashes the ids as they lie in memory");

namespace {

using Digest = std::array<unsigned char, crypto_hash_sha256_BYTES>;

Digest digest_of(std::string_view bytes) {
  Digest digest;
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return digest;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  const Digest digest = digest_of(bytes);
  char text[2 * sizeof(Digest) + 1];  // with a null at the end
  return sodium_bin2hex(text, sizeof(text), digest.data(), digest.size());
}

std::string sha256_base64(std::string_view bytes) {
  const Digest digest = digest_of(bytes);
  char text[sodium_base64_ENCODED_LEN(sizeof(Digest), sodium_base64_VARIANT_ORIGINAL)];
  return sodium_bin2base64(text, sizeof(text), digest.data(), digest.size(), sodium_base64_VARIANT_ORIGINAL);
}

std::string token_sha(std::span<const std::int32_t> ids) {
  return sha256_hex(std::string_view(reinterpret_cast<const char*>(ids.data()), ids.size_bytes()));
}

}  // namespace rondo
