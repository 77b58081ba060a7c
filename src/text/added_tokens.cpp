#include "text/added_tokens.h"

#include <algorithm>

#include "text/code_points.h"
#include "text/utf8.h"

namespace rondo {

namespace {

bool is_space_at(std::string_view text, std::size_t pos) {
  return (code_points()[next_code_point(text, pos)] & kSpace) != 0;
}

std::size_t spaces_before(std::string_view text, std::size_t pos, std::size_t low) {
  while (pos > low) {
    std::size_t previous = pos - 1;
    while (previous > low && (static_cast<unsigned char>(text[previous]) & 0xC0) == 0x80) --previous;
    if (!is_space_at(text, previous)) break;
    pos = previous;
  }
  return pos;
}

std::size_t spaces_after(std::string_view text, std::size_t pos) {
  while (pos < text.size() && is_space_at(text, pos)) next_code_point(text, pos);
  return pos;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) { return a.spelling < b.spelling; });
  for (const AddedToken& token : tokens_) first_bytes_[static_cast<unsigned char>(token.spelling[0])] = true;
}

// Narrows the sorted spellings byte by byte to those that begin as the text does.
const AddedToken* AddedTokens::longest_at(std::string_view text, std::size_t pos, std::size_t end) const {
  const AddedToken* longest = nullptr;
  auto low = tokens_.begin(), high = tokens_.end();
  for (std::size_t depth = 0; pos + depth < end; ++depth) {
    const auto byte_of = [depth](const AddedToken& token) { return static_cast<unsigned char>(token.spelling[depth]); };
    const auto byte = static_cast<unsigned char>(text[pos + depth]);
    low = std::partition_point(low, high, [&](const AddedToken& token) { return byte_of(token) < byte; });
    high = std::partition_point(low, high, [&](const AddedToken& token) { return byte_of(token) == byte; });
    if (low == high) break;
    if (low->spelling.size() == depth + 1) {  // the shortest of those with one beginning is sorted first
      longest = &*low++;
      if (low == high) break;
    }
  }
  return longest;
}

std::vector<Stretch> AddedTokens::cut(std::string_view text, const std::vector<ByteRange>& untrusted) const {
  std::vector<Stretch> stretches;
  std::size_t done = 0;
  ByteRange spaces;  // the last run taken by rstrip: a token in it takes the rest of it without another look
  const auto accept = [&](const AddedToken& token, std::size_t pos) {
    ByteRange range{pos, pos + token.spelling.size()};
    if (token.lstrip) range.begin = std::max(done, spaces_before(text, range.begin, std::min(done, range.begin)));
    if (token.rstrip && (range.end < spaces.begin || range.end >= spaces.end)) {
      spaces = {range.end, spaces_after(text, range.end)};
    }
    if (token.rstrip) range.end = spaces.end;
    if (done < range.begin) stretches.push_back({{done, range.begin}});
    stretches.push_back({range, token.id});
    done = range.end;
  };
  auto next_untrusted = untrusted.begin();
  for (std::size_t pos = 0; pos < text.size();) {
    if (next_untrusted != untrusted.end() && pos >= next_untrusted->begin) {
      pos = std::max(pos, (next_untrusted++)->end);
      continue;
    }
    const std::size_t end = next_untrusted == untrusted.end() ? text.size() : next_untrusted->begin;
    const AddedToken* token = begins(text[pos]) ? longest_at(text, pos, end) : nullptr;
    if (token) accept(*token, pos);
    // The search goes on behind the token itself, not behind the white space it took: so does the tokenizers package.
    pos += token ? token->spelling.size() : 1;
  }
  if (done < text.size()) stretches.push_back({{done, text.size()}});
  return stretches;
}

}  // namespace rondo
