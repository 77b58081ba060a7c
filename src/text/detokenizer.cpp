#include "text/tokenizer.h"
#include "text/utf8.h"

namespace rondo {

std::string Detokenizer::push(std::int32_t id) {
  if (skip_special_ && tokenizer_->is_special(id)) return {};
  std::string bytes = std::move(held_);
  held_.clear();
  bytes += tokenizer_->bytes_of(id);
  // Only a beginning of a code point in the last three bytes can still become valid.
  const std::size_t tail = bytes.size() < 3 ? 0 : bytes.size() - 3;
  for (std::size_t pos = tail; pos < bytes.size(); ++pos) {
    if (utf8_step(bytes, pos).state == Utf8::Unfinished) {
      held_ = bytes.substr(pos);
      bytes.resize(pos);
      break;
    }
  }
  return replace_invalid_utf8(bytes);
}

std::string Detokenizer::finish() {
  const std::string rest = replace_invalid_utf8(held_);
  held_.clear();
  return rest;
}

}  // namespace rondo
