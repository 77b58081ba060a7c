#include "grammar/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/free_chars.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace rondo::grammar {

namespace {

// Code points of a group's tokens at most: enough steps that a count near its end, or a closing tag that must not be
// missed, leaves only the long tokens to be walked.
constexpr std::uint8_t kTierChars[] = {2, 4, 6, 8, 12, 24, 254};

struct TextKind {
  unsigned classes;  // bits, of those it belongs to
  std::size_t num_chars;
};

// Nothing when the bytes are not whole code points, or more of them than a tier holds.
std::optional<TextKind> kind_of(std::string_view bytes) {
  TextKind kind{(1U << kNumTextClasses) - 1, 0};
  for (std::size_t pos = 0; pos < bytes.size(); ++kind.num_chars) {
    const Utf8Step step = utf8_step(bytes, pos);
    if (step.state != Utf8::Valid) return std::nullopt;
    for (int text = 0; text < kNumTextClasses; ++text) {
      if (!belongs_to(step.code_point, static_cast<TextClass>(text))) kind.classes &= ~(1U << text);
    }
    pos += step.num_bytes;
  }
  if (kind.num_chars > kTierChars[std::size(kTierChars) - 1]) return std::nullopt;
  return kind;
}

using Sorted = std::vector<const VocabularyToken*>;

// Sorts by bytes; of tokens with the same bytes the first stays, the others become its twins.
void sort_out_twins(Sorted& tokens, std::vector<Vocabulary::Twin>& twins) {
  std::sort(tokens.begin(), tokens.end(), [](const VocabularyToken* a, const VocabularyToken* b) {
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->id < b->id;
  });
  std::size_t kept = 0;
  for (const VocabularyToken* token : tokens) {
    if (kept > 0 && tokens[kept - 1]->bytes == token->bytes) {
      twins.push_back({token->id, tokens[kept - 1]->id});
    } else {
      tokens[kept++] = token;
    }
  }
  tokens.resize(kept);
}

std::vector<Vocabulary::Node> make_trie(const Sorted& tokens) {
  std::vector<Vocabulary::Node> nodes;
  std::vector<std::size_t> path;  // nodes from the root to the last token
  const auto leave_to = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back()) nodes[path.back()].skip = static_cast<std::uint32_t>(nodes.size());
  };
  std::string_view before;
  for (const VocabularyToken* token : tokens) {
    const std::string_view bytes = token->bytes;
    const auto differs = std::mismatch(before.begin(), before.end(), bytes.begin(), bytes.end());
    leave_to(static_cast<std::size_t>(differs.first - before.begin()));
    while (path.size() < bytes.size()) {
      const auto byte = static_cast<std::uint8_t>(bytes[path.size()]);
      path.push_back(nodes.size());
      nodes.push_back({0, -1, byte, static_cast<std::uint8_t>(path.size())});
    }
    nodes.back().token = token->id;
    before = bytes;
  }
  leave_to(0);
  return nodes;
}

std::vector<std::uint32_t> make_mask(const Sorted& tokens, std::size_t words) {
  std::vector<std::uint32_t> mask(words, 0);
  for (const VocabularyToken* token : tokens) {
    mask[static_cast<std::size_t>(token->id) / 32] |= 1U << (token->id % 32);
  }
  return mask;
}

bool begins_no_code_point(std::uint8_t byte) { return byte == 0xC0 || byte == 0xC1 || byte > 0xF4; }

Result<void> check_bytes(const std::vector<VocabularyToken>& tokens) {
  bool has[256] = {};
  for (const VocabularyToken& token : tokens) {
    if (token.bytes.size() == 1) has[static_cast<std::uint8_t>(token.bytes[0])] = true;
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (has[byte] || begins_no_code_point(static_cast<std::uint8_t>(byte))) continue;
    return failure(
        ErrorCode::Unsupported,
        fmt::format("the tokenizer has no token for the single byte 0x{:02X}, so structured output cannot be "
                    "promised to come to an end",
                    byte));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Vocabulary>> Vocabulary::create(const Tokenizer& tokenizer, int num_ids) {
  const std::vector<std::int32_t> added = tokenizer.added_ids();
  std::vector<VocabularyToken> tokens;
  for (std::int32_t id = 0; id < std::min(num_ids, tokenizer.vocab_size()); ++id) {
    if (tokenizer.is_special(id)) continue;
    tokens.push_back({id, std::string(tokenizer.bytes_of(id)), std::binary_search(added.begin(), added.end(), id)});
  }
  return create(std::move(tokens));
}

Result<std::shared_ptr<const Vocabulary>> Vocabulary::create(std::vector<VocabularyToken> tokens) {
  const auto is_never_chosen = [](const VocabularyToken& token) {
    const bool is_no_text =
        !token.is_tag && token.bytes.size() == 1 && begins_no_code_point(static_cast<std::uint8_t>(token.bytes[0]));
    return token.id < 0 || token.bytes.empty() || token.bytes.size() > kMostTokenBytes || is_no_text;
  };
  tokens.erase(std::remove_if(tokens.begin(), tokens.end(), is_never_chosen), tokens.end());
  TRY_VOID(check_bytes(tokens));
  std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  std::shared_ptr<Vocabulary> made(new Vocabulary);
  for (VocabularyToken& token : tokens) {
    if (!token.is_tag) continue;
    const std::size_t n = made->tags_.size();
    const std::string bytes = {'\xFF', static_cast<char>(n / 256), static_cast<char>(n % 256)};
    made->tags_.push_back({std::exchange(token.bytes, bytes), bytes});
  }
  constexpr unsigned kKinds = 1U << kNumTextClasses;
  Sorted sorted[kKinds][std::size(kTierChars)], broken;
  for (const VocabularyToken& token : tokens) {
    made->first_byte_.resize(static_cast<std::size_t>(token.id) + 1, static_cast<std::uint32_t>(made->text_.size()));
    made->text_ += token.bytes;
    made->most_token_bytes_ = std::max(made->most_token_bytes_, token.bytes.size());
    const std::optional<TextKind> kind = kind_of(token.bytes);
    if (!kind) {
      broken.push_back(&token);
      continue;
    }
    const auto tier = std::lower_bound(std::begin(kTierChars), std::end(kTierChars), kind->num_chars) - kTierChars;
    sorted[kind->classes][tier].push_back(&token);
  }
  made->first_byte_.push_back(static_cast<std::uint32_t>(made->text_.size()));
  made->mask_words_ = (made->first_byte_.size() - 1 + 31) / 32;
  for (unsigned classes = 0; classes < kKinds; ++classes) {
    for (std::size_t tier = 0; tier < std::size(kTierChars); ++tier) {
      Sorted& members = sorted[classes][tier];
      if (members.empty()) continue;
      Group& group = made->groups_.emplace_back();
      for (int text = 0; text < kNumTextClasses; ++text) group.belongs[text] = (classes >> text & 1U) != 0;
      group.most_chars = kTierChars[tier];
      group.mask = make_mask(members, made->mask_words_);
      sort_out_twins(members, made->twins_);
      group.nodes = make_trie(members);
    }
  }
  sort_out_twins(broken, made->twins_);
  made->broken_ = make_trie(broken);
  return std::shared_ptr<const Vocabulary>(std::move(made));
}

std::string_view Vocabulary::bytes_of(std::int32_t id) const {
  const auto at = static_cast<std::size_t>(id);
  if (id < 0 || at + 1 >= first_byte_.size()) return {};
  return std::string_view(text_).substr(first_byte_[at], first_byte_[at + 1] - first_byte_[at]);
}

std::string Vocabulary::tag(std::string_view spelling) const {
  for (const Tag& each : tags_) {
    if (each.spelling == spelling) return each.bytes;
  }
  return std::string(spelling);
}

std::size_t Vocabulary::num_bytes() const {
  std::size_t bytes = text_.size() + first_byte_.size() * sizeof(std::uint32_t) + broken_.size() * sizeof(Node);
  for (const Group& group : groups_)
    bytes += group.nodes.size() * sizeof(Node) + group.mask.size() * sizeof(std::uint32_t);
  return bytes;
}

}  // namespace rondo::grammar
