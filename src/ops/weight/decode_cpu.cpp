#include "ops/weight/decode_kernel.h"
#include "ops/weight/row_reader.h"

namespace rondo::RONDO_ISA {

namespace {

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

// Runs of any length, the last one cut at the end.
void fp8_columns(Fp8Row row, std::int64_t begin, int count, float* out) {
  const std::int64_t end = begin + count;
  for (std::int64_t k = begin; k < end;) {
    row.enter(k);
    const std::int64_t next = (k / row.run + 1) * row.run;
    for_lanes((next < end ? next : end) - k,
              [&](std::int64_t i, int lanes) { store_n(out + (k - begin) + i, row.at_first(k + i, lanes), lanes); });
    k = next;
  }
}

template <class Row>
void columns_in_runs(Row row, std::int64_t begin, int count, float* out) {
  for (std::int64_t k = begin; k < begin + count; k += row.run) {
    row.enter(k);
    for (std::int64_t i = 0; i < row.run; i += kLanes) store(out + (k - begin) + i, row.at(k + i));
  }
}

}  // namespace

void decode_columns(const CodedView& w, std::int64_t row, std::int64_t begin, int count, float* out) {
  switch (w.format) {
    case WeightFormat::Fp8: return fp8_columns(Fp8Row(w, row), begin, count, out);
    case WeightFormat::Nvfp4: return columns_in_runs(Nvfp4Row(w, row), begin, count, out);
    case WeightFormat::Affine:
      if (w.bits == 4) return columns_in_runs(AffineRow<4>(w, row), begin, count, out);
      if (w.bits == 6) return columns_in_runs(AffineRow<6>(w, row), begin, count, out);
      return columns_in_runs(AffineRow<8>(w, row), begin, count, out);
    default: return plain_columns(w, codes_of(w, row), begin, count, out);
  }
}

}  // namespace rondo::RONDO_ISA
