// Any bytes as a safetensors file: an error, or a header whose sound tensors lie inside the file, apart from another.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "ckpt/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using rondo::StoredTensor;
  const auto header = rondo::parse_safetensors(std::as_bytes(std::span(bytes, size)));
  if (!header) {
    CHECK(!header.error().message.empty());
    return 0;
  }
  std::vector<const StoredTensor*> sound;
  for (const StoredTensor& tensor : header->tensors) {
    if (tensor.sound) sound.push_back(&tensor);
  }
  CHECK(sound.size() == header->tensors.size() || !header->faults.empty());
  std::sort(sound.begin(), sound.end(),
            [](auto* a, auto* b) { return a->begin != b->begin ? a->begin < b->begin : a->end < b->end; });
  std::uint64_t reached = 8;
  for (const StoredTensor* tensor : sound) {
    CHECK(tensor->begin <= tensor->end && tensor->end <= size);
    CHECK(tensor->begin >= reached || tensor->begin == tensor->end);
    reached = std::max(reached, tensor->end);
    if (tensor->begin == tensor->end) continue;
    const auto num_elements = static_cast<std::uint64_t>(tensor->shape.num_elements());
    CHECK(num_elements * rondo::size_bytes(tensor->dtype) == tensor->end - tensor->begin);
  }
  return 0;
}
