#include "text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/code_points.h"
#include "text/rewrite.h"
#include "text/utf8.h"

namespace rondo {

namespace {

constexpr auto kNfc = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

int combining_class(utf8proc_int32_t code_point) {
  if (!(code_points()[static_cast<char32_t>(code_point)] & kActiveInNfc)) return 0;
  return utf8proc_get_property(code_point)->combining_class;
}

// Canonical order: marks after a starter by their class, equal ones as they came. utf8proc's own ordering is quadratic
// in the length of a run of marks, which a client chooses.
void order_marks(std::vector<utf8proc_int32_t>& points) {
  const auto is_mark = [](utf8proc_int32_t c) { return combining_class(c) != 0; };
  for (auto begin = points.begin(); begin != points.end();) {
    begin = std::find_if(begin, points.end(), is_mark);
    const auto end = std::find_if_not(begin, points.end(), is_mark);
    std::stable_sort(begin, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

std::string compose(std::string_view stretch) {
  std::vector<utf8proc_int32_t> points;
  int last_boundclass = UTF8PROC_BOUNDCLASS_START;
  for (std::size_t pos = 0; pos < stretch.size();) {
    const auto code_point = static_cast<utf8proc_int32_t>(next_code_point(stretch, pos));
    utf8proc_int32_t parts[32];
    const auto length = utf8proc_decompose_char(code_point, parts, 32, kNfc, &last_boundclass);
    CHECK(length >= 0 && length <= 32);
    points.insert(points.end(), parts, parts + length);
  }
  order_marks(points);
  const auto length = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()), kNfc);
  CHECK(length >= 0);
  std::string composed;
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    append_utf8(composed, static_cast<char32_t>(points[static_cast<std::size_t>(i)]));
  }
  return composed;
}

// The next stretch at or after `pos` that NFC may change: active code points with the one before them, which they may
// join. Empty at the end of the text.
ByteRange next_active(std::string_view text, std::size_t pos) {
  const CodePoints& table = code_points();
  std::size_t before = pos;
  while (pos < text.size()) {
    const std::size_t begin = pos;
    // Nothing under U+0300 is active, so lead bytes under 0xCC need no look at the table.
    if (static_cast<unsigned char>(text[pos]) < 0xCC) {
      pos += static_cast<unsigned char>(text[pos]) < 0x80 ? 1 : 2;
    } else if (table[next_code_point(text, pos)] & kActiveInNfc) {
      std::size_t end = pos;
      while (pos < text.size() && (table[next_code_point(text, pos)] & kActiveInNfc)) end = pos;
      return {before, end};
    }
    before = begin;
  }
  return {text.size(), text.size()};
}

}  // namespace

MarkedText to_nfc(MarkedText text) {
  Rewrite rewrite(text.text);
  bool changed = false;
  for (std::size_t pos = 0;;) {
    const ByteRange stretch = next_active(text.text, pos);
    if (stretch.begin == stretch.end) break;
    const std::string_view before = std::string_view(text.text).substr(stretch.begin, stretch.end - stretch.begin);
    const std::string composed = compose(before);
    if (composed != before) {
      rewrite.replace(stretch, composed);
      changed = true;
    }
    pos = stretch.end;
  }
  if (!changed) return text;
  std::string composed = rewrite.finish();
  return {std::move(composed), rewrite.moved(text.untrusted)};
}

}  // namespace rondo
