#include "tensor/tensor.h"

#include <gtest/gtest.h>

namespace rondo {
namespace {

struct Known {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

// The spellings and sizes of the safetensors format.
constexpr Known kKnown[] = {
    {DType::F64, "F64", 8}, {DType::F32, "F32", 4},   {DType::F16, "F16", 2},        {DType::BF16, "BF16", 2},
    {DType::I64, "I64", 8}, {DType::I32, "I32", 4},   {DType::I16, "I16", 2},        {DType::I8, "I8", 1},
    {DType::U8, "U8", 1},   {DType::Bool, "BOOL", 1}, {DType::F8E4M3, "F8_E4M3", 1}, {DType::F8E5M2, "F8_E5M2", 1},
    {DType::U32, "U32", 4},
};

TEST(DType, HasTheNameAndSizeOfItsFileFormat) {
  for (const Known& each : kKnown) {
    EXPECT_EQ(dtype_name(each.dtype), each.name);
    EXPECT_EQ(size_bytes(each.dtype), each.bytes) << each.name;
    EXPECT_EQ(find_dtype(each.name), each.dtype) << each.name;
  }
}

TEST(DType, AnUnknownSpellingIsAbsent) {
  for (const std::string_view name : {"", "bf16", "BF16 ", "BF", "F4", "U64"}) EXPECT_FALSE(find_dtype(name)) << name;
}

TEST(Shape, CountsItsElementsAndOneWhenItHasNoAxes) {
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ((Shape{12, 64}).num_elements(), 768);
  EXPECT_EQ((Shape{3, 0, 5}).num_elements(), 0);
  EXPECT_EQ((Shape{1'000'000, 1'000'000}).num_elements(), 1'000'000'000'000);
}

TEST(Shape, PrintsOutermostFirst) {
  EXPECT_EQ((Shape{12, 64}).to_string(), "[12, 64]");
  EXPECT_EQ(Shape().to_string(), "[]");
}

TEST(Shape, EqualityLooksAtRankAndEveryAxis) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 0}));
  Shape grown{2};
  grown.append(3);
  EXPECT_EQ(grown, (Shape{2, 3}));
  EXPECT_EQ(grown[1], 3);
}

TEST(ShapeDeathTest, MoreAxesThanItHoldsIsABrokenPromise) { EXPECT_DEATH((Shape{1, 1, 1, 1, 1, 1}), "kMaxRank"); }

}  // namespace
}  // namespace rondo
