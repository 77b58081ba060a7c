#include "ops/linear/linear_kernel.h"
#include "tensor/tensor.h"

namespace rondo::reference {

void linear_range(const LinearRange& r) {
  for (int i = 0; i < r.rows; ++i) {
    const float* x = r.x + (r.in_rows != nullptr ? r.in_rows[i] : i) * r.k;
    for (std::int64_t n = r.n_begin; n < r.n_end; ++n) {
      float sum = 0;
      for (std::int64_t k = 0; k < r.k; ++k) sum += to_float(BFloat16{r.weight[n * r.k + k]}) * x[k];
      r.out[i * r.out_width + n] = sum;
    }
  }
}

}  // namespace rondo::reference
