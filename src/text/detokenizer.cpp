#include <algorithm>

#include "text/tokenizer.h"
#include "text/utf8.h"

namespace rondo {

namespace {

// Appends the code points that begin in text[pos, end), or U+FFFD for what is none, and moves pos past them; true when
// one is cut off by the text's end: it begins at pos.
bool show_until(std::string_view text, std::size_t& pos, std::size_t end, std::string& shown) {
  while (pos < end) {
    const Utf8Step step = utf8_step(text, pos);
    if (step.state == Utf8::Unfinished) return true;
    if (step.state == Utf8::Valid) {
      shown += text.substr(pos, step.num_bytes);
    } else {
      append_utf8(shown, 0xFFFD);
    }
    pos += step.num_bytes;
  }
  return false;
}

}  // namespace

void Detokenizer::push(std::int32_t id, std::string& shown) {
  if (skip_special_ && tokenizer_->is_special(id)) return;
  const std::string_view bytes = tokenizer_->bytes_of(id);
  // Across the seam: what was held and as many bytes as a code point could lack.
  char joined[8];
  const std::size_t held = held_.size(), more = std::min<std::size_t>(bytes.size(), 4);
  std::copy_n(held_.data(), held, joined);
  std::copy_n(bytes.data(), more, joined + held);
  const std::string_view seam(joined, held + more);
  std::size_t pos = 0;
  if (show_until(seam, pos, held, shown)) {
    held_ = seam.substr(pos);
    return;
  }
  pos -= held;
  const bool cut_off = show_until(bytes, pos, bytes.size(), shown);
  held_ = cut_off ? bytes.substr(pos) : std::string_view();
}

std::string Detokenizer::finish() {
  std::string rest = replace_invalid_utf8(held_);
  held_.clear();
  return rest;
}

}  // namespace rondo
