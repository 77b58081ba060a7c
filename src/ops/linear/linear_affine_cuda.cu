// The matrix products of weights in affine codes.
#include "ops/linear/multiply_coded.cuh"

namespace rondo::cuda::product {

RONDO_CODED_PRODUCTS(Code::Affine4)
RONDO_CODED_PRODUCTS(Code::Affine6)
RONDO_CODED_PRODUCTS(Code::Affine8)

}  // namespace rondo::cuda::product
