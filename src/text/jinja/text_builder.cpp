#include "text/jinja/text_builder.h"

#include <algorithm>

#include "text/jinja/unicode.h"

namespace rondo::jinja {

void TextBuilder::mark(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!marks_.empty() && marks_.back().end == begin) {
    marks_.back().end = end;
  } else {
    marks_.push_back({begin, end});
  }
}

void TextBuilder::add(std::string_view bytes, bool untrusted) {
  if (bytes.size() > kMaxOutputBytes - bytes_.size()) {
    fault("the template writes more than " + std::to_string(kMaxOutputBytes >> 20) + " MiB of text");
  }
  heap_.touch(bytes.size());
  const std::size_t begin = bytes_.size();
  bytes_.append(bytes);
  if (untrusted) mark(begin, bytes_.size());
}

void TextBuilder::add(const Text& text, std::size_t begin, std::size_t end) {
  const std::size_t at = bytes_.size();
  add(text.view().substr(begin, end - begin));
  const ByteRange* const marks_end = text.marks + text.num_marks;
  const ByteRange* range =
      std::partition_point(text.marks, marks_end, [begin](const ByteRange& m) { return m.end <= begin; });
  for (; range != marks_end && range->begin < end; ++range) {
    mark(at + std::max(range->begin, begin) - begin, at + std::min(range->end, end) - begin);
  }
}

void TextBuilder::add_char(char32_t c, bool untrusted) {
  std::string bytes;
  append_char(bytes, c);
  add(bytes, untrusted);
}

void TextBuilder::fill(std::size_t n, const Text& piece) {
  if (piece.size == 0) return;
  heap_.step(n);
  for (std::size_t i = 0; i < n; ++i) add(piece);
}

const Text* TextBuilder::text() const {
  const Text* const plain = make_text(heap_, bytes_);
  if (marks_.empty()) return plain;
  Text* const marked = heap_.make<Text>(*plain);
  ByteRange* const marks = heap_.array<ByteRange>(marks_.size());
  std::copy(marks_.begin(), marks_.end(), marks);
  marked->marks = marks;
  marked->num_marks = marks_.size();
  return marked;
}

bool MarkCursor::touches(std::size_t begin, std::size_t end) {
  while (mark_ < text_.num_marks && text_.marks[mark_].end <= begin) ++mark_;
  return mark_ < text_.num_marks && text_.marks[mark_].begin < end;
}

}  // namespace rondo::jinja
