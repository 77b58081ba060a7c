#include "text/tokenizer.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "base/mmap_file.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/byte_alphabet.h"
#include "text/nfc.h"
#include "text/rewrite.h"
#include "text/splitter.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"

namespace rondo {

namespace {

// The bytes of each id, end to end in one string, and the way back by hash.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(const std::vector<VocabToken>& vocab, const std::vector<AddedToken>& added);

  int size() const { return static_cast<int>(begins_.size()) - 1; }
  bool has(std::int32_t id) const { return id >= 0 && id < size(); }
  std::string_view bytes_of(std::int32_t id) const {
    const auto i = static_cast<std::size_t>(id);
    return std::string_view(bytes_).substr(begins_[i], begins_[i + 1] - begins_[i]);
  }
  std::optional<std::int32_t> find(std::string_view bytes) const;  // byte-level tokens of the model's vocabulary only

 private:
  std::string bytes_;
  std::vector<std::uint32_t> begins_ = {0};  // [size + 1]; an id not in use has no bytes
  std::vector<std::int32_t> slots_;          // open addressing, a power of two, at most half full; -1 = free
};

Vocabulary::Vocabulary(const std::vector<VocabToken>& vocab, const std::vector<AddedToken>& added) {
  std::int32_t last_id = -1;
  for (const VocabToken& token : vocab) last_id = std::max(last_id, token.id);
  for (const AddedToken& token : added) last_id = std::max(last_id, token.id);
  const std::size_t num_ids = static_cast<std::size_t>(last_id + 1);
  std::vector<std::string_view> by_id(num_ids);
  for (const VocabToken& token : vocab) by_id[static_cast<std::size_t>(token.id)] = token.bytes;
  std::vector<std::string> added_bytes;  // an added token is decoded like any other: by the byte alphabet, if it can be
  for (const AddedToken& token : added) {
    added_bytes.push_back(bytes_of_spelling(token.spelling).value_or(token.spelling));
  }
  for (std::size_t i = 0; i < added.size(); ++i) by_id[static_cast<std::size_t>(added[i].id)] = added_bytes[i];
  begins_.reserve(num_ids + 1);
  for (const std::string_view bytes : by_id) {
    bytes_ += bytes;
    begins_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  }
  slots_.assign(std::bit_ceil(2 * vocab.size() + 2), -1);
  for (const VocabToken& token : vocab) {
    if (!token.is_byte_level) continue;
    std::size_t slot = std::hash<std::string_view>()(token.bytes) & (slots_.size() - 1);
    while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = token.id;
  }
}

std::optional<std::int32_t> Vocabulary::find(std::string_view bytes) const {
  std::size_t slot = std::hash<std::string_view>()(bytes) & (slots_.size() - 1);
  for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
    if (bytes_of(slots_[slot]) == bytes) return slots_[slot];
  }
  return std::nullopt;
}

AddedTokens tokens_to_find(const TokenizerParts& parts, bool normalized) {
  std::vector<AddedToken> tokens;
  for (const AddedToken& token : parts.added_tokens) {
    if (token.normalized == normalized) tokens.push_back(token);
  }
  return AddedTokens(std::move(tokens));
}

}  // namespace

struct Tokenizer::Tables {
  explicit Tables(TokenizerParts parts)
      : vocabulary(parts.vocab, parts.added_tokens),
        byte_pairs(parts.byte_ids, parts.merges),
        as_given(tokens_to_find(parts, false)),
        after_nfc(tokens_to_find(parts, true)),
        nfc(parts.nfc),
        ignore_merges(parts.ignore_merges),
        splitters(std::move(parts.splitters)),
        added(std::move(parts.added_tokens)) {
    std::sort(added.begin(), added.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  }

  const AddedToken* find_added(std::int32_t id) const {
    const auto token = std::partition_point(added.begin(), added.end(), [&](const auto& t) { return t.id < id; });
    return token != added.end() && token->id == id ? &*token : nullptr;
  }

  void encode_marked(MarkedText text, std::vector<std::int32_t>& ids) const;
  void encode_plain(std::string_view text, std::vector<std::int32_t>& ids) const;

  Vocabulary vocabulary;
  BytePairs byte_pairs;
  AddedTokens as_given;
  AddedTokens after_nfc;
  bool nfc;
  bool ignore_merges;
  std::vector<Splitter> splitters;
  std::vector<AddedToken> added;  // by id
};

// Added tokens are cut out of the text as it came; what lies between is brought to NFC, stretch by stretch, and
// searched for those that are to be found only then.
void Tokenizer::Tables::encode_marked(MarkedText text, std::vector<std::int32_t>& ids) const {
  for (const Stretch& outer : as_given.cut(text.text, text.untrusted)) {
    if (outer.id >= 0) {
      ids.push_back(outer.id);
      continue;
    }
    MarkedText between{text.text.substr(outer.range.begin, outer.range.end - outer.range.begin),
                       ranges_within(text.untrusted, outer.range)};
    if (nfc) between = to_nfc(std::move(between));
    for (const Stretch& inner : after_nfc.cut(between.text, between.untrusted)) {
      if (inner.id >= 0) {
        ids.push_back(inner.id);
      } else {
        const std::string_view all = between.text;
        encode_plain(all.substr(inner.range.begin, inner.range.end - inner.range.begin), ids);
      }
    }
  }
}

void Tokenizer::Tables::encode_plain(std::string_view text, std::vector<std::int32_t>& ids) const {
  std::vector<std::string_view> pieces = {text};
  for (const Splitter& splitter : splitters) {
    std::vector<std::string_view> finer;
    for (const std::string_view piece : pieces) splitter.split(piece, finer);
    pieces = std::move(finer);
  }
  for (const std::string_view piece : pieces) {
    const std::optional<std::int32_t> whole = ignore_merges ? vocabulary.find(piece) : std::nullopt;
    if (whole) {
      ids.push_back(*whole);
    } else {
      byte_pairs.encode(piece, ids);
    }
  }
}

Tokenizer::Tokenizer(std::unique_ptr<const Tables> tables) : tables_(std::move(tables)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::open(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json";
  TRY(const std::string text, read_file(path));
  return parse(text, path);
}

Result<Tokenizer> Tokenizer::parse(std::string_view tokenizer_json, const std::string& name) {
  TRY(TokenizerParts parts, read_tokenizer_json(tokenizer_json, name));
  return Tokenizer(std::make_unique<const Tables>(std::move(parts)));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  tables_->encode_marked({replace_invalid_utf8(text), {}}, ids);
  return ids;
}

std::vector<std::int32_t> Tokenizer::encode(const MarkedText& text) const {
  std::vector<std::int32_t> ids;
  tables_->encode_marked(replace_invalid_utf8(text), ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    if (!skip_special || !is_special(id)) bytes += bytes_of(id);
  }
  return bytes;
}

std::string_view Tokenizer::bytes_of(std::int32_t id) const {
  return tables_->vocabulary.has(id) ? tables_->vocabulary.bytes_of(id) : std::string_view();
}

bool Tokenizer::is_special(std::int32_t id) const {
  const AddedToken* token = tables_->find_added(id);
  return token && token->special;
}

std::optional<std::int32_t> Tokenizer::find_id(std::string_view token) const {
  for (const AddedToken& added : tables_->added) {
    if (added.spelling == token) return added.id;
  }
  return tables_->vocabulary.find(token);
}

int Tokenizer::vocab_size() const { return tables_->vocabulary.size(); }

std::vector<std::int32_t> Tokenizer::added_ids() const {
  std::vector<std::int32_t> ids;
  for (const AddedToken& token : tables_->added) ids.push_back(token.id);
  return ids;
}

}  // namespace rondo
