// safetensors: one file of named tensors.
//
//   bytes 0..7      N, the header's length: unsigned, 64 bits, little-endian; at most 100 MB here
//   bytes 8..8+N-1  the header: one JSON object, beginning with '{', possibly padded with spaces at its end
//                     "NAME": {"dtype": "BF16", "shape": [320, 64], "data_offsets": [BEGIN, END]}
//                     "__metadata__": {"KEY": "TEXT"}   skipped
//   bytes 8+N..     the data; offsets count from here. Row-major, little-endian, END - BEGIN = elements * size(dtype)
//
// The data has no holes, no overlaps and nothing after the last tensor; names do not repeat. The reader trusts none
// of this: it takes the header's length against the file's, streams the JSON through a handler that knows only the
// three keys above (so nothing is built from a hostile document, and a repeated name is seen), and then lays the
// ranges side by side in order of their beginning. What is wrong with the file as a whole is the Result's error;
// what is wrong with one tensor is a fault that names it, and that tensor is not sound.
//
// It reads no data, and knows neither what a tensor is for nor how it should be aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace rondo {

struct StoredTensor {
  std::string name;  // as the file spells it
  DType dtype = DType::BF16;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // bytes from the file's start; inside the file when sound
  bool sound = true;                 // a fault names it otherwise
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the header's order
  std::vector<std::string> faults;    // each names its tensor
};

// Not empty, at most 512 bytes, no control character: names end up in messages on somebody's terminal. Tensors named
// otherwise are refused.
bool is_printable_name(std::string_view name);

// Messages do not name the file: the caller knows it.
Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file);

}  // namespace rondo
