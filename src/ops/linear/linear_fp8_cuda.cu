// The matrix products of weights in FP8.
#include "ops/linear/multiply_coded.cuh"

namespace rondo::cuda::product {

RONDO_CODED_PRODUCTS(Code::Fp8)
RONDO_CODED_PRODUCTS(Code::Fp8Blocks)

}  // namespace rondo::cuda::product
