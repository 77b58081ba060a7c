// Codes to float32, kLanes at a time. No multiply-add here but fma(): the values are the definition's, bit for bit, on
// every instruction set, so a product must not be rounded together with a sum where the definition rounds twice.
#include "ops/common/simd.h"
#include "ops/weight/code_lanes.h"
#include "ops/weight/decode_kernel.h"

namespace rondo::RONDO_ISA {

namespace {

float scale_at(const CodedView& w, const std::uint8_t* scales, std::int64_t index) {
  switch (w.scale_type) {
    case ScaleType::None: return 1;
    case ScaleType::Bf16: return bf16_value(load_u16(scales, index));
    case ScaleType::F16: return half_value(load_u16(scales, index));
    case ScaleType::F32: return f32_value(scales, index);
    case ScaleType::E4m3: return kE4m3.value[scales[index]];
  }
  return 1;
}

void plain_columns(const CodedView& w, const std::uint8_t* codes, std::int64_t begin, int count, float* out) {
  const std::uint8_t* from = codes + begin * (w.bits / 8);
  if (w.format == WeightFormat::F32) {
    __builtin_memcpy(out, from, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  if (w.format == WeightFormat::F16) {
    for (int i = 0; i < count; ++i) out[i] = half_value(load_u16(from, i));
  } else {
    for (int i = 0; i < count; ++i) out[i] = bf16_value(load_u16(from, i));
  }
}

// Runs of columns that share a scale, the last one cut at the end. One of the two scales is 1, so one product will do.
void fp8_columns(const CodedView& w, const std::uint8_t* codes, std::int64_t scales, std::int64_t begin, int count,
                 float* out) {
  const bool has_grid = w.scale_type != ScaleType::None;
  const std::int64_t end = begin + count;
  for (std::int64_t k = begin; k < end;) {
    const std::int64_t index = has_grid ? k / w.scale_columns : 0;
    const std::int64_t next = has_grid ? (index + 1) * w.scale_columns : end;
    const F32 scale = all(has_grid ? scale_at(w, w.scales, scales + index) : w.tensor_scale);
    const std::int64_t run = (next < end ? next : end) - k;
    for_lanes(run, [&](std::int64_t i, int lanes) {
      store_n(out + (k - begin) + i, e4m3_lanes(codes + k + i, lanes) * scale, lanes);
    });
    k += run;
  }
}

void nvfp4_columns(const CodedView& w, const std::uint8_t* codes, std::int64_t scales, std::int64_t begin, int count,
                   float* out) {
  for (int i = 0; i < count; i += static_cast<int>(kNvfp4Block)) {
    const std::int64_t k = begin + i;
    e2m1_block(codes + k / 2, kE4m3.value[w.scales[scales + k / kNvfp4Block]], w.tensor_scale, out + i);
  }
}

template <int Bits>
void affine_columns(const CodedView& w, const std::uint8_t* codes, std::int64_t scales, std::int64_t begin, int count,
                    float* out) {
  const int group = static_cast<int>(w.scale_columns);
  for (int first = 0; first < count; first += group) {
    const std::int64_t index = scales + (begin + first) / group;
    const F32 scale = all(scale_at(w, w.scales, index)), bias = all(scale_at(w, w.biases, index));
    const std::uint8_t* from = codes + (begin + first) * Bits / 8;
    for (int i = 0; i < group; i += kLanes) {
      store(out + first + i, fused(unsigned_lanes<Bits>(from + i * Bits / 8), scale, bias));
    }
  }
}

}  // namespace

void decode_columns(const CodedView& w, std::int64_t row, std::int64_t begin, int count, float* out) {
  const std::uint8_t* codes = w.codes + row * w.row_bytes;
  const std::int64_t scales = row / w.scale_rows * w.scale_stride;
  switch (w.format) {
    case WeightFormat::Fp8: return fp8_columns(w, codes, scales, begin, count, out);
    case WeightFormat::Nvfp4: return nvfp4_columns(w, codes, scales, begin, count, out);
    case WeightFormat::Affine:
      if (w.bits == 4) return affine_columns<4>(w, codes, scales, begin, count, out);
      if (w.bits == 6) return affine_columns<6>(w, codes, scales, begin, count, out);
      return affine_columns<8>(w, codes, scales, begin, count, out);
    default: return plain_columns(w, codes, begin, count, out);
  }
}

}  // namespace rondo::RONDO_ISA
