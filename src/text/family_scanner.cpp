#include "text/family_scanner.h"

#include <cstdint>

#include "text/code_points.h"
#include "text/utf8.h"

namespace rondo {

namespace {

class FamilyScanner {
 public:
  FamilyScanner(std::string_view text, Marks marks)
      : text_(text),
        bits_(code_points().bits.data()),
        word_(marks == Marks::InWords ? kLetter | kMark : kLetter),
        not_symbol_(static_cast<std::uint8_t>(word_ | kSpace | kNumber)) {}

  // Where the piece that begins at `pos` ends.
  std::size_t piece_end(std::size_t pos) const {
    std::size_t after = pos;
    const char32_t first = next_code_point(text_, after);
    const std::uint8_t first_bits = bits_[first];
    if (first == '\'') {
      if (const std::size_t end = contraction_end(after)) return end;
    }
    if (first_bits & word_) return run_end(after, word_, word_);
    if (first_bits & kNumber) return after;
    const std::uint8_t next_bits = bits_at(after);
    if (!(first_bits & kNewline) && (next_bits & word_)) return run_end(after, word_, word_);  // [^\r\n\p{L}\p{N}]?
    if (first == ' ' && after < text_.size() && !(next_bits & not_symbol_)) return symbols_end(after);
    if (!(first_bits & kSpace)) return symbols_end(after);
    return spaces_end(pos);
  }

 private:
  std::uint8_t bits_at(std::size_t pos) const {
    return pos < text_.size() ? bits_[next_code_point(text_, pos)] : std::uint8_t{0};
  }

  // The end of the run from `pos` of code points whose bits, masked, are non-zero (wanted = mask) or zero (wanted = 0).
  std::size_t run_end(std::size_t pos, std::uint8_t mask, std::uint8_t wanted) const {
    for (std::size_t after = pos; pos < text_.size(); pos = after) {
      if (((bits_[next_code_point(text_, after)] & mask) != 0) != (wanted != 0)) break;
    }
    return pos;
  }

  // [^\s\p{L}\p{M}\p{N}]+[\r\n]*
  std::size_t symbols_end(std::size_t pos) const { return run_end(run_end(pos, not_symbol_, 0), kNewline, kNewline); }

  // (?i:'s|'t|'re|'ve|'m|'ll|'d) after its apostrophe; 0 when it does not match. U+017F folds to s.
  std::size_t contraction_end(std::size_t pos) const {
    const auto lower_at = [&](std::size_t i) { return i < text_.size() ? text_[i] | 0x20 : 0; };
    const auto raw_at = [&](std::size_t i) { return i < text_.size() ? static_cast<unsigned char>(text_[i]) : 0; };
    if (raw_at(pos) == 0xC5 && raw_at(pos + 1) == 0xBF) return pos + 2;
    const int second = lower_at(pos + 1);
    switch (lower_at(pos)) {
      case 's':
      case 't':
      case 'm':
      case 'd': return pos + 1;
      case 'r':
      case 'v': return second == 'e' ? pos + 2 : 0;
      case 'l': return second == 'l' ? pos + 2 : 0;
      default: return 0;
    }
  }

  // \s*[\r\n]+ | \s+(?!\S) | \s+ : up to the last line end of the run; else all but its last space, which belongs to
  // the piece that follows; else that one space.
  std::size_t spaces_end(std::size_t pos) const {
    std::size_t last = pos;
    std::size_t after_newline = pos;
    std::size_t end = pos;
    for (std::size_t after = pos; end < text_.size(); end = after) {
      const std::uint8_t bits = bits_[next_code_point(text_, after)];
      if (!(bits & kSpace)) break;
      last = end;
      if (bits & kNewline) after_newline = after;
    }
    if (after_newline != pos) return after_newline;
    return end == text_.size() || last == pos ? end : last;
  }

  std::string_view text_;
  const std::uint8_t* bits_;
  std::uint8_t word_;
  std::uint8_t not_symbol_;
};

}  // namespace

void split_family(std::string_view text, Marks marks, std::vector<std::string_view>& pieces) {
  const FamilyScanner scanner(text, marks);
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t end = scanner.piece_end(pos);
    pieces.push_back(text.substr(pos, end - pos));
    pos = end;
  }
}

}  // namespace rondo
