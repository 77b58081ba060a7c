#include "base/sha256.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace rondo {
namespace {

struct Vector {
  std::string message;
  std::string_view digest;
};

// The examples of FIPS 180-4 and its predecessor: empty, one block, two blocks, a block boundary inside the padding,
// a million bytes.
const std::vector<Vector>& fips_vectors() {
  static const std::vector<Vector> vectors = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrst"
       "u",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  return vectors;
}

TEST(Sha256, Base64IsTheSameDigest) {
  EXPECT_EQ(sha256_base64(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
  EXPECT_EQ(sha256_base64("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

TEST(Sha256, GivesTheStandardsOwnExamples) {
  for (const auto& each : fips_vectors()) EXPECT_EQ(sha256_hex(each.message), each.digest) << each.message.size();
}

TEST(Sha256, ReadsBytesPastAZero) {
  EXPECT_NE(sha256_hex(std::string_view("a\0b", 3)), sha256_hex(std::string_view("a\0c", 3)));
}

TEST(TokenSha, HashesTheIdsAsLittleEndian32BitWords) {
  const std::vector<std::int32_t> ids = {1, 256, 248'319, std::numeric_limits<std::int32_t>::max()};
  const std::string_view bytes("\x01\x00\x00\x00\x00\x01\x00\x00\xff\xc9\x03\x00\xff\xff\xff\x7f", 16);
  EXPECT_EQ(token_sha(ids), sha256_hex(bytes));
}

TEST(TokenSha, OfNoTokensIsTheHashOfNothing) { EXPECT_EQ(token_sha({}), fips_vectors()[0].digest); }

TEST(TokenSha, DependsOnTheOrder) {
  const std::vector<std::int32_t> ids = {5, 6};
  const std::vector<std::int32_t> swapped = {6, 5};
  EXPECT_NE(token_sha(ids), token_sha(swapped));
}

}  // namespace
}  // namespace rondo
