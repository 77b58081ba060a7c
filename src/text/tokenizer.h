// Tokenizer: byte-level BPE as tokenizer.json describes it (Qwen family), text -> ids and ids -> bytes.
//
// Thread-safe after open: encode and decode are const and share nothing that changes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/marked_text.h"

namespace rondo {

class Tokenizer {
 public:
  // From a checkpoint folder's tokenizer.json. NotFound when there is none; Corrupt or Unsupported, naming file and
  // key.
  static Result<Tokenizer> open(const std::string& folder);
  // From the document itself; `name` stands for the file in messages.
  static Result<Tokenizer> parse(std::string_view tokenizer_json, const std::string& name);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Text that may spell control tokens (raw completions, /tokenize). Invalid UTF-8 is read as U+FFFD.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // A rendered template: a control token that touches an untrusted byte stays text.
  std::vector<std::int32_t> encode(const MarkedText& text) const;

  // The bytes of these ids; with skip_special, added tokens marked special are left out. Ids the vocabulary lacks
  // (padding rows of the embedding) have no bytes.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const;
  std::string_view bytes_of(std::int32_t id) const;                   // raw bytes, perhaps part of a code point
  bool is_special(std::int32_t id) const;                             // an added token with special = true
  std::optional<std::int32_t> find_id(std::string_view token) const;  // by spelling, added tokens first
  int vocab_size() const;                                             // one past the highest id in use
  std::vector<std::int32_t> added_ids() const;                        // ascending

 private:
  struct Tables;
  explicit Tokenizer(std::unique_ptr<const Tables> tables);
  std::unique_ptr<const Tables> tables_;
};

// Detokenizer: ids one at a time to text that is whole at every step.
//
// push appends what may be shown now and holds back an unfinished code point; finish returns what is left. push itself
// needs no memory. Bytes that can never become valid UTF-8 come out as U+FFFD. All pieces joined = the whole reply
// decoded at once with invalid UTF-8 replaced.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, bool skip_special) : tokenizer_(&tokenizer), skip_special_(skip_special) {}
  void push(std::int32_t id, std::string& shown);
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::string held_;  // an unfinished code point, at most 3 bytes
};

}  // namespace rondo
