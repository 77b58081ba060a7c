// TextBuilder: text put together from pieces, each keeping its marks of untrusted bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace rondo::jinja {

class TextBuilder {
 public:
  explicit TextBuilder(Heap& heap) : heap_(heap) {}
  void add(std::string_view bytes, bool untrusted = false);
  void add(const Text& text) { add(text, 0, text.size); }
  void add(const Text& text, std::size_t begin, std::size_t end);
  void add_char(char32_t c, bool untrusted);
  void fill(std::size_t n, const Text& piece);  // piece n times over

  std::size_t size() const { return bytes_.size(); }
  std::string_view view() const { return bytes_; }
  const Text* text() const;  // into the heap
  Value value() const { return Value::str(text()); }
  MarkedText take() { return {std::move(bytes_), std::move(marks_)}; }

 private:
  void mark(std::size_t begin, std::size_t end);
  Heap& heap_;
  std::string bytes_;
  std::vector<ByteRange> marks_;
};

// Walks a text's code points in order, telling of each whether any of its bytes is untrusted.
class MarkCursor {
 public:
  explicit MarkCursor(const Text& text) : text_(text) {}
  bool touches(std::size_t begin, std::size_t end);  // begin never goes back

 private:
  const Text& text_;
  std::size_t mark_ = 0;
};

}  // namespace rondo::jinja
