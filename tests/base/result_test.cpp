#include "base/result.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace rondo {
namespace {

Result<int> parse_digit(char c) {
  if (c < '0' || c > '9') return failure(ErrorCode::InvalidArgument, std::string("not a digit: ") + c);
  return c - '0';
}

Result<int> sum_of_digits(char a, char b) {
  TRY(const int left, parse_digit(a));
  TRY(const int right, parse_digit(b));
  return left + right;
}

TEST(Try, GivesTheValue) { EXPECT_EQ(sum_of_digits('4', '5').value(), 9); }

TEST(Try, ReturnsTheFirstErrorUnchanged) {
  const auto result = sum_of_digits('x', 'y');
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(result.error().message, "not a digit: x");
  EXPECT_EQ(sum_of_digits('1', 'y').error().message, "not a digit: y");
}

TEST(Try, EvaluatesItsExpressionOnceAndStopsThere) {
  int calls = 0;
  int after = 0;
  const auto run = [&](char c) -> Result<void> {
    const auto counted = [&] {
      ++calls;
      return parse_digit(c);
    };
    TRY([[maybe_unused]] const int digit, counted());
    ++after;
    return {};
  };
  EXPECT_TRUE(run('1'));
  EXPECT_FALSE(run('x'));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(after, 1);
}

Result<std::unique_ptr<int>> make_owned(bool fail) {
  if (fail) return failure(ErrorCode::Io, "no");
  return std::make_unique<int>(7);
}

TEST(Try, MovesAValueThatCannotBeCopied) {
  const auto take = [](bool fail) -> Result<std::unique_ptr<int>> {
    TRY(auto owned, make_owned(fail));
    return owned;
  };
  EXPECT_EQ(**take(false), 7);
  EXPECT_EQ(take(true).error().code, ErrorCode::Io);
}

TEST(Try, TakesAnExpressionWithCommas) {
  const auto make = []() -> Result<std::size_t> {
    using Names = std::map<int, int>;
    TRY(const Names names, Result<std::map<int, int>>(std::map<int, int>{{1, 2}, {3, 4}}));
    return names.size();
  };
  EXPECT_EQ(make().value(), 2u);
}

TEST(Try, AssignsToAVariableThatIsThereAlready) {
  const auto last_of = [](char a, char b) -> Result<int> {
    int digit = -1;
    TRY(digit, parse_digit(a));
    TRY(digit, parse_digit(b));
    return digit;
  };
  EXPECT_EQ(last_of('1', '2').value(), 2);
}

TEST(TryVoid, ReturnsTheErrorOrGoesOn) {
  const auto both = [](const Result<void>& first, const Result<void>& second) -> Result<int> {
    TRY_VOID(Result<void>(first));
    TRY_VOID(Result<void>(second));
    return 1;
  };
  const Result<void> fine;
  const Result<void> full = failure(ErrorCode::QueueFull, "256 requests wait");
  EXPECT_EQ(both(fine, fine).value(), 1);
  EXPECT_EQ(both(fine, full).error().message, "256 requests wait");
  EXPECT_EQ(both(full, fine).error().code, ErrorCode::QueueFull);
}

}  // namespace
}  // namespace rondo
