// tokenizer.json, read and checked: what a byte-level BPE tokenizer is made of.
//
//   normalizer     null or NFC
//   pre_tokenizer  ByteLevel, or a Sequence of Split (a regex, Isolated) and ByteLevel last; no prefix space
//   model          BPE: vocab (spelling -> id; ids may have holes), merges ("a b" or ["a", "b"]), ignore_merges
//   added_tokens   id, content, special, normalized, lstrip, rstrip; not single_word
//   post_processor null or ByteLevel; decoder ByteLevel: neither changes ids or bytes
//
// truncation and padding say how batches were once cut for training; like transformers, we do neither.
// The ids of added tokens are those the file gives them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/splitter.h"

namespace rondo {

struct VocabToken {
  std::int32_t id = -1;
  std::string bytes;
  bool is_byte_level = true;  // its spelling is all in the byte alphabet (byte_alphabet.h); else bytes = the spelling
};

struct TokenizerParts {
  bool nfc = false;
  std::vector<Splitter> splitters;  // each cuts the pieces of the one before
  std::vector<VocabToken> vocab;    // ids differ, and are at most kMaxTokenId
  std::array<std::int32_t, 256> byte_ids{};
  std::vector<Merge> merges;
  bool ignore_merges = false;            // a piece that is in the vocabulary is that token
  std::vector<AddedToken> added_tokens;  // ids and spellings differ; one that is in vocab too has the same id there
};

constexpr std::int32_t kMaxTokenId = (1 << 22) - 1;  // bounds the tables; sixteen times the largest vocabulary we know

// Corrupt or Unsupported, naming `name` and the key.
Result<TokenizerParts> read_tokenizer_json(std::string_view text, const std::string& name);

}  // namespace rondo
