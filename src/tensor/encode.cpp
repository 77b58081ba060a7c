#include "tensor/encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/small_floats.h"

namespace rondo {

namespace {

constexpr float kLargestE4m3 = 448, kLargestE2m1 = 6;

// A grid of values, and where its parts lie.
struct Grid {
  std::span<const float> values;
  std::int64_t rows, columns;
  float at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

struct Limits {
  float least = INFINITY, most = -INFINITY;
  float size() const { return std::max(std::abs(least), std::abs(most)); }
};

Limits limits_of(const Grid& grid, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
  Limits limits;
  for (std::int64_t r = row; r < std::min(row + rows, grid.rows); ++r) {
    for (std::int64_t c = column; c < std::min(column + columns, grid.columns); ++c) {
      limits.least = std::min(limits.least, grid.at(r, c));
      limits.most = std::max(limits.most, grid.at(r, c));
    }
  }
  return limits;
}

float or_one(float scale) { return scale == 0 ? 1 : scale; }

void put_bf16(std::vector<std::uint8_t>& to, float value) {
  const std::uint16_t bits = to_bfloat16(value).bits;
  to.push_back(static_cast<std::uint8_t>(bits & 0xFF));
  to.push_back(static_cast<std::uint8_t>(bits >> 8));
}

float rounded(float value) { return to_float(to_bfloat16(value)); }

// Adds one matrix's codes and scales; the view's shape fields are set by encode().
void encode_fp8(const Grid& grid, const EncodeSpec& spec, EncodedWeight& out) {
  CodedView& view = out.weight.view;
  out.codes.resize(static_cast<std::size_t>(grid.rows * grid.columns));
  const auto fill = [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, float scale) {
    for (std::int64_t r = row; r < std::min(row + rows, grid.rows); ++r) {
      for (std::int64_t c = column; c < std::min(column + columns, grid.columns); ++c) {
        out.codes[static_cast<std::size_t>(r * grid.columns + c)] = to_e4m3(grid.at(r, c) / scale);
      }
    }
  };
  if (spec.by_tensor) {
    view.tensor_scale = or_one(limits_of(grid, 0, grid.rows, 0, grid.columns).size() / kLargestE4m3);
    return fill(0, grid.rows, 0, grid.columns, view.tensor_scale);
  }
  view.scale_type = ScaleType::Bf16;
  view.scale_rows = view.scale_columns = spec.block;
  for (std::int64_t r = 0; r < grid.rows; r += spec.block) {
    for (std::int64_t c = 0; c < grid.columns; c += spec.block) {
      const float scale = or_one(rounded(limits_of(grid, r, spec.block, c, spec.block).size() / kLargestE4m3));
      put_bf16(out.scales, scale);
      fill(r, spec.block, c, spec.block, scale);
    }
  }
}

void encode_nvfp4(const Grid& grid, EncodedWeight& out) {
  CodedView& view = out.weight.view;
  view.bits = 4;
  view.scale_type = ScaleType::E4m3;
  view.scale_columns = kNvfp4Block;
  view.tensor_scale = or_one(limits_of(grid, 0, grid.rows, 0, grid.columns).size() / (kLargestE2m1 * kLargestE4m3));
  for (std::int64_t r = 0; r < grid.rows; ++r) {
    for (std::int64_t c = 0; c < grid.columns; c += kNvfp4Block) {
      const float wanted = limits_of(grid, r, 1, c, kNvfp4Block).size() / (kLargestE2m1 * view.tensor_scale);
      const std::uint8_t code = to_e4m3(wanted);
      out.scales.push_back(code);
      const float scale = or_one(e4m3_to_float(code) * view.tensor_scale);
      for (std::int64_t i = 0; i < kNvfp4Block; i += 2) {
        const int low = to_e2m1(grid.at(r, c + i) / scale), high = to_e2m1(grid.at(r, c + i + 1) / scale);
        out.codes.push_back(static_cast<std::uint8_t>(low | high << 4));
      }
    }
  }
}

void encode_affine(const Grid& grid, const EncodeSpec& spec, EncodedWeight& out) {
  CodedView& view = out.weight.view;
  view.bits = static_cast<std::uint8_t>(spec.bits);
  view.scale_type = ScaleType::Bf16;
  view.scale_columns = spec.group;
  const auto most_code = static_cast<float>((1 << spec.bits) - 1);
  unsigned pending = 0;  // bits not yet written; a row is whole bytes
  int num_pending = 0;
  for (std::int64_t r = 0; r < grid.rows; ++r) {
    for (std::int64_t c = 0; c < grid.columns; c += spec.group) {
      const Limits limits = limits_of(grid, r, 1, c, spec.group);
      const float scale = or_one(rounded((limits.most - limits.least) / most_code)), bias = rounded(limits.least);
      put_bf16(out.scales, scale);
      put_bf16(out.biases, bias);
      for (std::int64_t i = 0; i < spec.group; ++i) {
        const float code = std::clamp(std::nearbyint((grid.at(r, c + i) - bias) / scale), 0.0F, most_code);
        pending |= static_cast<unsigned>(code) << num_pending;
        for (num_pending += spec.bits; num_pending >= 8; num_pending -= 8, pending >>= 8) {
          out.codes.push_back(static_cast<std::uint8_t>(pending & 0xFF));
        }
      }
    }
  }
}

}  // namespace

bool can_encode(const EncodeSpec& spec, std::int64_t columns) {
  switch (spec.format) {
    case WeightFormat::Fp8: return true;
    case WeightFormat::Nvfp4: return columns % kNvfp4Block == 0;
    case WeightFormat::Affine: return columns % spec.group == 0;
    default: return false;
  }
}

EncodedWeight encode(std::span<const float> values, std::int64_t columns, const EncodeSpec& spec) {
  CHECK(can_encode(spec, columns) && static_cast<std::int64_t>(values.size()) % columns == 0);
  const Grid grid{values, static_cast<std::int64_t>(values.size()) / columns, columns};
  EncodedWeight out;
  CodedView& view = out.weight.view;
  out.weight.shape = {grid.rows, columns};
  view.format = spec.format;
  view.rows = grid.rows;
  view.columns = columns;
  view.bits = 8;
  switch (spec.format) {
    case WeightFormat::Fp8: encode_fp8(grid, spec, out); break;
    case WeightFormat::Nvfp4: encode_nvfp4(grid, out); break;
    default: encode_affine(grid, spec, out); break;
  }
  view.row_bytes = columns * view.bits / 8;
  view.scale_stride = (columns + view.scale_columns - 1) / view.scale_columns;
  view.codes = out.codes.data();
  view.scales = out.scales.empty() ? nullptr : out.scales.data();
  view.biases = out.biases.empty() ? nullptr : out.biases.data();
  return out;
}

}  // namespace rondo
