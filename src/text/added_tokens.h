// AddedTokens: the tokens that are found in text by their spelling, before any splitting: control tokens and the like.
//
// The leftmost match counts, of several at one place the longest. A match must lie wholly in trusted text. Where a
// token touches an untrusted byte, it is as if that token did not exist there: a shorter one at the same place, or one
// that begins later, may still match.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/marked_text.h"

namespace rondo {

struct AddedToken {
  std::int32_t id = -1;
  std::string spelling;     // UTF-8, not empty; in NFC when normalized
  bool special = false;     // left out of text when special tokens are skipped
  bool lstrip = false;      // takes the white space before it
  bool rstrip = false;      // takes the white space after it
  bool normalized = false;  // found in the text after NFC, not before
};

// A stretch of text: one added token, or text between them (id -1).
struct Stretch {
  ByteRange range;
  std::int32_t id = -1;
};

class AddedTokens {
 public:
  static constexpr std::size_t kMaxSpellingBytes = 1024;  // bounds the time of a search, text bytes * this

  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);  // spellings differ

  // `text` in stretches, none of text empty. `untrusted` as in MarkedText.
  std::vector<Stretch> cut(std::string_view text, const std::vector<ByteRange>& untrusted) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t pos, std::size_t end) const;
  bool begins(char byte) const { return first_bytes_[static_cast<unsigned char>(byte)]; }

  std::vector<AddedToken> tokens_;  // by spelling
  std::vector<bool> first_bytes_ = std::vector<bool>(256);
};

}  // namespace rondo
