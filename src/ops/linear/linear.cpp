#include "ops/linear/linear.h"

#include <algorithm>

#include "ops/linear/linear_cuda.h"
#include "ops/linear/linear_kernel.h"

namespace rondo {

namespace {

constexpr std::int64_t kForkMacs = 16 * 1024;  // multiply-adds a thread under which a fork costs more than it saves

LinearRange range_of(const LinearPart& part, std::int64_t n_begin, std::int64_t n_end) {
  return {.weight = part.weight.view,
          .x = part.x.f32(),
          .in_rows = part.in_rows,
          .out = part.out.f32(),
          .out_width = part.weight.shape[0],
          .rows = part.rows,
          .n_begin = n_begin,
          .n_end = n_end};
}

void check(const LinearPart& part) {
  CHECK(part.weight.shape.rank() == 2);
  CHECK(part.x.width() == part.weight.shape[1] && part.out.width() == part.weight.shape[0]);
  CHECK(part.rows <= part.out.rows());
}

std::int64_t macs_per_column(const LinearPart& part) { return part.weight.shape[1] * part.rows; }
// What a column takes, for sharing it out: one row takes as long as two, two nearly as long as three (the tiles' speed
// by rows: docs/performance.md, linear). An expert's few rows stand beside a shared expert's many.
std::int64_t work_per_column(const LinearPart& part) {
  return part.rows == 0 ? 0 : part.weight.shape[1] * std::max(2 * part.rows, 5);
}

// Each thread takes one run of the work, cut at multiples of four columns.
void run_share(Isa isa, std::span<const LinearPart> parts, std::int64_t begin_work, std::int64_t end_work) {
  const auto plain = RONDO_PICK(isa, linear_range), coded = RONDO_PICK(isa, linear_coded_range);
  std::int64_t at = 0;
  for (const LinearPart& part : parts) {
    const auto kernel = part.weight.view.format == WeightFormat::Bf16 ? plain : coded;
    const std::int64_t columns = part.weight.shape[0];
    const std::int64_t each = work_per_column(part);
    const auto column_at = [&](std::int64_t work) {
      if (work <= at) return std::int64_t{0};
      if (work >= at + columns * each) return columns;
      return (work - at) / each / 4 * 4;
    };
    if (each > 0) {
      const std::int64_t n_begin = column_at(begin_work);
      const std::int64_t n_end = column_at(end_work);
      if (n_begin < n_end) kernel(range_of(part, n_begin, n_end));
    }
    at += columns * each;
  }
}

}  // namespace

bool has_gpu_kernel(const CodedView& view) {
  switch (view.format) {
    case WeightFormat::Bf16: return true;
    case WeightFormat::Fp8:  // rows of a warp share a scale
      if (view.scale_type == ScaleType::None) return true;
      if (view.scale_columns != 128 || view.scale_rows % 32 != 0) return false;
      return view.scale_type == ScaleType::Bf16 || view.scale_type == ScaleType::F32;
    case WeightFormat::Nvfp4: return true;
    case WeightFormat::Affine: return view.scale_type == ScaleType::Bf16 && view.scale_columns == 64;
    default: return false;
  }
}

void linear(Stream& s, std::span<const LinearPart> parts) {
  std::int64_t macs = 0, work = 0;
  for (const LinearPart& part : parts) {
    check(part);
    macs += part.weight.shape[0] * macs_per_column(part);
    work += part.weight.shape[0] * work_per_column(part);
  }
  if (s.is_dry() || macs == 0) return;
  RONDO_ON_CUDA(s, linear(s, parts));
  const int threads = static_cast<int>(std::clamp<std::int64_t>(macs / kForkMacs, 1, s.pool().num_threads()));
  s.pool().run(threads, [&](int t) { run_share(s.isa(), parts, work * t / threads, work * (t + 1) / threads); });
}

void linear(Stream& s, const Weight& weight, Tensor x, Tensor out) {
  const LinearPart part{.weight = weight, .x = x, .out = out, .rows = x.rows()};
  linear(s, std::span(&part, 1));
}

}  // namespace rondo
