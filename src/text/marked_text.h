// MarkedText: UTF-8 text that remembers which bytes came from outside.
//
// A chat template puts a client's strings between control tokens such as <|im_end|>. A client's string may spell one
// too; it must then stay text. So a template's output carries `untrusted`: the byte ranges that came from the request,
// however the template cut, joined, trimmed, replaced or escaped them. The tokenizer reads a control token only where
// none of its bytes is untrusted.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rondo {

struct ByteRange {
  std::size_t begin = 0;  // bytes, half open
  std::size_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

struct MarkedText {
  std::string text;                  // UTF-8
  std::vector<ByteRange> untrusted;  // ascending, disjoint, never adjacent, never empty
};

}  // namespace rondo
