// The two comparisons of the op tests; compare_test.cpp shows that they see a fault.
#pragma once

#include <gtest/gtest.h>

#include <span>

#include "tensor/tensor.h"

namespace rondo {

// |got - want| <= tolerance * (|want| + the root mean square of want's row), elementwise. The second term stands for
// the size of what was added up: a sum that cancels is no more exact than its parts. NaN is close to nothing.
testing::AssertionResult close(Tensor got, Tensor want, double tolerance);
testing::AssertionResult close(std::span<const float> got, std::span<const float> want, double tolerance);  // one row

// Bit for bit: -0 is not 0. A NaN equals nothing here either, or rows nobody wrote would be the same.
testing::AssertionResult same_bits(std::span<const float> got, std::span<const float> want);
testing::AssertionResult same_bits(Tensor got, Tensor want);

}  // namespace rondo
