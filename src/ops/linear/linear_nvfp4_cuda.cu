// The matrix products of weights in NVFP4.
#include "ops/linear/multiply_coded.cuh"

namespace rondo::cuda::product {

RONDO_CODED_PRODUCTS(Code::Nvfp4)

}  // namespace rondo::cuda::product
