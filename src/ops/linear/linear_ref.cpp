#include <vector>

#include "ops/linear/linear_kernel.h"
#include "tensor/weight.h"

namespace rondo::reference {

// Each sum runs along k in order, one product at a time. Rows stand side by side in the inner loop only so that a
// compiler may use its lanes for them: the oracle has long texts to write.
void linear_coded_range(const LinearRange& r) {
  const auto rows = static_cast<std::size_t>(r.rows), k_size = static_cast<std::size_t>(r.weight.columns);
  std::vector<float> x(k_size * rows);  // [k, rows]
  for (std::size_t i = 0; i < rows; ++i) {
    const float* from = r.x + (r.in_rows != nullptr ? r.in_rows[i] : static_cast<std::int64_t>(i)) * r.weight.columns;
    for (std::size_t k = 0; k < k_size; ++k) x[k * rows + i] = from[k];
  }
  std::vector<float> sums(rows), weight(k_size);
  for (std::int64_t n = r.n_begin; n < r.n_end; ++n) {
    sums.assign(rows, 0.0F);
    decode(r.weight, n, 0, weight);
    for (std::size_t k = 0; k < k_size; ++k) {
      for (std::size_t i = 0; i < rows; ++i) sums[i] += weight[k] * x[k * rows + i];
    }
    for (std::size_t i = 0; i < rows; ++i) r.out[static_cast<std::int64_t>(i) * r.out_width + n] = sums[i];
  }
}

void linear_range(const LinearRange& r) { linear_coded_range(r); }

}  // namespace rondo::reference
