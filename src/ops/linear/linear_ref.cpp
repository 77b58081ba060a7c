#include <vector>

#include "ops/linear/linear_kernel.h"
#include "tensor/tensor.h"

namespace rondo::reference {

// Each sum runs along k in order, one product at a time. Rows stand side by side in the inner loop only so that a
// compiler may use its lanes for them: the oracle has long texts to write.
void linear_range(const LinearRange& r) {
  const auto rows = static_cast<std::size_t>(r.rows), k_size = static_cast<std::size_t>(r.k);
  std::vector<float> x(k_size * rows);  // [k, rows]
  for (std::size_t i = 0; i < rows; ++i) {
    const float* from = r.x + (r.in_rows != nullptr ? r.in_rows[i] : static_cast<std::int64_t>(i)) * r.k;
    for (std::size_t k = 0; k < k_size; ++k) x[k * rows + i] = from[k];
  }
  std::vector<float> sums(rows);
  for (std::int64_t n = r.n_begin; n < r.n_end; ++n) {
    sums.assign(rows, 0.0F);
    for (std::size_t k = 0; k < k_size; ++k) {
      const float weight = to_float(BFloat16{r.weight[n * r.k + static_cast<std::int64_t>(k)]});
      for (std::size_t i = 0; i < rows; ++i) sums[i] += weight * x[k * rows + i];
    }
    for (std::size_t i = 0; i < rows; ++i) r.out[static_cast<std::int64_t>(i) * r.out_width + n] = sums[i];
  }
}

}  // namespace rondo::reference
