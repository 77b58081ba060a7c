#include "ops/weight/decode_kernel.h"
#include "tensor/weight.h"

namespace rondo::reference {

void decode_columns(const CodedView& w, std::int64_t row, std::int64_t begin, int count, float* out) {
  decode(w, row, begin, std::span(out, static_cast<std::size_t>(count)));
}

}  // namespace rondo::reference
