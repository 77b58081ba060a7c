// linear() by the weights' format and the number of rows: milliseconds of one thread, for weights too many for any
// cache. The best of several rounds over all formats.
//
//   linear_time [COLUMNS [ROUNDS]]      (default 1024, 8; 64 Mi weights a format)
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "ops/linear/linear.h"

namespace rondo {
namespace {

constexpr std::int64_t kWeights = std::int64_t{64} << 20;
constexpr int kRows[] = {1, 2, 4, 8, 16, 64};

// Codes from a seed, scales and biases of the same code everywhere.
struct Weights {
  const char* name;
  Weight weight;
  Buffer codes;
  std::vector<std::uint8_t> scales;
  double best_ms[std::size(kRows)];
};

Weights make(const char* name, CodedView view, std::vector<std::uint8_t> scale, std::int64_t columns) {
  view.columns = columns;
  view.rows = kWeights / columns;
  view.row_bytes = columns * view.bits / 8;
  view.scale_stride = columns / view.scale_columns;
  auto codes = Buffer::reserve(static_cast<std::size_t>(view.rows * view.row_bytes), name);
  CHECK(codes.has_value());
  auto* words = reinterpret_cast<std::uint64_t*>(codes->data());
  for (std::size_t i = 0; i < codes->size_bytes() / sizeof(std::uint64_t); ++i) {
    words[i] = random_bits(1, i) & 0x3F3F3F3F3F3F3F3F;  // no infinity and no NaN in any format
  }
  std::vector<std::uint8_t> scales;
  for (std::int64_t i = 0; i < view.rows / view.scale_rows * view.scale_stride; ++i) {
    scales.insert(scales.end(), scale.begin(), scale.end());
  }
  view.codes = reinterpret_cast<const std::uint8_t*>(codes->data());
  view.scales = view.biases = scales.data();
  Weights out{name, Weight({view.rows, columns}, view), std::move(*codes), std::move(scales), {}};
  std::fill_n(out.best_ms, std::size(kRows), 1e9);
  return out;
}

std::vector<Weights> make_all(std::int64_t columns) {
  const std::vector<std::uint8_t> bf16 = {0x3F, 0x3F}, e4m3 = {0x3F}, none;
  const auto affine = [](std::uint8_t bits) {
    return CodedView{.format = WeightFormat::Affine, .scale_type = ScaleType::Bf16, .bits = bits, .scale_columns = 64};
  };
  std::vector<Weights> all;
  all.push_back(make("bf16", {.format = WeightFormat::Bf16, .bits = 16}, none, columns));
  all.push_back(make(
      "fp8",
      {.format = WeightFormat::Fp8, .scale_type = ScaleType::Bf16, .bits = 8, .scale_rows = 128, .scale_columns = 128},
      bf16, columns));
  all.push_back(make(
      "nvfp4", {.format = WeightFormat::Nvfp4, .scale_type = ScaleType::E4m3, .bits = 4, .scale_columns = kNvfp4Block},
      e4m3, columns));
  all.push_back(make("affine 4", affine(4), bf16, columns));
  all.push_back(make("affine 6", affine(6), bf16, columns));
  all.push_back(make("affine 8", affine(8), bf16, columns));
  return all;
}

double thread_ms() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

int run(std::int64_t columns, int rounds) {
  ThreadPool pool(1);
  Stream stream(pool, best_isa());
  std::vector<Weights> all = make_all(columns);
  std::vector<float> x(static_cast<std::size_t>(columns) * 64, 0.5F);
  std::vector<float> out(static_cast<std::size_t>(kWeights / columns) * 64);
  const auto rows_of = [](std::vector<float>& data, int rows, std::int64_t width) {
    return Tensor{data.data(), DType::F32, {rows, width}};
  };
  for (int round = 0; round < rounds; ++round) {
    for (Weights& w : all) {
      for (std::size_t i = 0; i < std::size(kRows); ++i) {
        const double begin = thread_ms();
        linear(stream, w.weight, rows_of(x, kRows[i], columns), rows_of(out, kRows[i], kWeights / columns));
        w.best_ms[i] = std::min(w.best_ms[i], thread_ms() - begin);
      }
    }
  }
  fmt::print("{} on {}: milliseconds at rows of\n{:<10}{:>6}", Shape{kWeights / columns, columns}.to_string(),
             isa_name(best_isa()), "", "MB");
  for (const int rows : kRows) fmt::print("{:>8}", rows);
  for (const Weights& w : all) {
    fmt::print("\n{:<10}{:>6}", w.name, w.codes.size_bytes() / 1000000);
    for (const double ms : w.best_ms) fmt::print("{:>8.1f}", ms);
  }
  fmt::print("\n");
  return 0;
}

}  // namespace
}  // namespace rondo

int main(int argc, char** argv) {
  const int columns = argc > 1 ? std::atoi(argv[1]) : 1024, rounds = argc > 2 ? std::atoi(argv[2]) : 8;
  if (columns < 128 || columns % 128 != 0 || rounds < 1) {
    fmt::print(stderr, "usage: linear_time [COLUMNS [ROUNDS]], COLUMNS a multiple of 128\n");
    return 1;
  }
  return rondo::run(columns, rounds);
}
