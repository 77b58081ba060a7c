// Row readers, in namespace RONDO_ISA: one weight row of a format, kLanes columns at a time, in a register. A reader
// has
//
//   run        columns that share a scale; a multiple of kLanes, or the whole row
//   enter(k)   before the first column read of a run
//   at(k)      the kLanes weights from column k on, all of the run that was entered
//
// No multiply-add here but fused(): the values are the definition's, bit for bit, on every instruction set, so a
// product must not be rounded together with a sum where the definition rounds twice. Included only by files compiled
// per instruction set.
#pragma once

#include "ops/weight/code_lanes.h"
#include "tensor/coded_view.h"

namespace rondo::RONDO_ISA {
namespace {

inline float scale_at(const CodedView& w, const std::uint8_t* scales, std::int64_t index) {
  switch (w.scale_type) {
    case ScaleType::None: return 1;
    case ScaleType::Bf16: return bf16_value(load_u16(scales, index));
    case ScaleType::F16: return half_value(load_u16(scales, index));
    case ScaleType::F32: return f32_value(scales, index);
    case ScaleType::E4m3: return kE4m3.value[scales[index]];
  }
  return 1;
}

inline const std::uint8_t* codes_of(const CodedView& w, std::int64_t row) { return w.codes + row * w.row_bytes; }
inline std::int64_t first_scale_of(const CodedView& w, std::int64_t row) { return row / w.scale_rows * w.scale_stride; }

// One of the two scales is 1, so one product will do.
struct Fp8Row {
  const CodedView& w;
  const std::uint8_t* codes;
  std::int64_t scales, run;
  F32 scale;

  Fp8Row(const CodedView& view, std::int64_t row)
      : w(view),
        codes(codes_of(w, row)),
        scales(first_scale_of(w, row)),
        run(w.scale_type == ScaleType::None ? w.columns : w.scale_columns),
        scale(all(w.tensor_scale)) {}
  void enter(std::int64_t k) {
    if (w.scale_type != ScaleType::None) scale = all(scale_at(w, w.scales, scales + k / run));
  }
  F32 at(std::int64_t k) const { return at_first(k, kLanes); }
  F32 at_first(std::int64_t k, int lanes) const { return e4m3_lanes(codes + k, lanes) * scale; }
};

struct Nvfp4Row {
  static constexpr std::int64_t run = kNvfp4Block;
  const std::uint8_t *codes, *scales;
  float tensor_scale;
  E2m1Run values;

  Nvfp4Row(const CodedView& w, std::int64_t row)
      : codes(codes_of(w, row)), scales(w.scales + first_scale_of(w, row)), tensor_scale(w.tensor_scale), values() {}
  void enter(std::int64_t k) { values.set(kE4m3.value[scales[k / run]], tensor_scale); }
  F32 at(std::int64_t k) const { return values.at(codes + k / 2); }
};

template <int Bits>
struct AffineRow {
  const CodedView& w;
  const std::uint8_t* codes;
  std::int64_t scales, run;
  AffineRun<Bits> values;

  AffineRow(const CodedView& view, std::int64_t row)
      : w(view), codes(codes_of(w, row)), scales(first_scale_of(w, row)), run(w.scale_columns), values() {}
  void enter(std::int64_t k) {
    const std::int64_t index = scales + k / run;
    values.set(all(scale_at(w, w.scales, index)), all(scale_at(w, w.biases, index)));
  }
  F32 at(std::int64_t k) const { return values.at(codes + k * Bits / 8); }
};

}  // namespace
}  // namespace rondo::RONDO_ISA
