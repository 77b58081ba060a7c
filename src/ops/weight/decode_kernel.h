// The kernel that reads weights of any format: columns [begin, begin + count) of one row, to float32, the very values
// of tensor/weight.h's decode(). begin is a multiple of kDecodeColumns; codes past a row's end are not read.
#pragma once

#include "ops/common/isa.h"
#include "tensor/coded_view.h"

namespace rondo {

constexpr int kDecodeColumns = 512;  // a multiple of every group; four rows of it in float32 stay in a nearest cache

RONDO_DECLARE_KERNEL(decode_columns, const CodedView& w, std::int64_t row, std::int64_t begin, int count, float* out)

}  // namespace rondo
