// Rewrite: replaces stretches of a text from left to right, and says where byte ranges of the old text lie in the new.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/marked_text.h"

namespace rondo {

class Rewrite {
 public:
  explicit Rewrite(std::string_view before) : before_(before) {}  // `before` must outlive the rewrite

  void replace(ByteRange old_range, std::string_view replacement);  // ranges ascend and do not overlap
  std::string finish();                                             // the new text; call once, after the last replace

  // Old ranges (as in MarkedText) in the new text. A range that touches a replaced stretch covers all that replaced it;
  // what has become empty is left out.
  std::vector<ByteRange> moved(const std::vector<ByteRange>& old_ranges) const;

 private:
  struct Edit {
    ByteRange before;
    ByteRange after;
  };
  std::string_view before_;
  std::string after_;
  std::size_t copied_ = 0;  // bytes of before_ that are in after_
  std::vector<Edit> edits_;
};

// The part of `ranges` inside `window`, counted from its begin.
std::vector<ByteRange> ranges_within(const std::vector<ByteRange>& ranges, ByteRange window);

}  // namespace rondo
