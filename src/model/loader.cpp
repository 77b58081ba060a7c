#include "model/loader.h"

#include <cmath>
#include <cstring>

namespace rondo {

namespace {

float element(const Tensor& tensor, std::int64_t i) {
  switch (tensor.dtype) {
    case DType::F32: return tensor.as<float>()[i];
    case DType::BF16: return to_float(tensor.as<BFloat16>()[i]);
    case DType::F16: return half_to_float(tensor.as<std::uint16_t>()[i]);
    default: break;
  }
  CHECK(false && "ckpt lets only BF16, F16 and F32 vectors through");
  return 0;
}

Tensor found(const WeightSource& source, const std::string& name) {
  const auto tensor = source.find(name);
  CHECK(tensor.has_value());  // open() has checked the whole inventory
  return *tensor;
}

Weight found_weight(const WeightSource& source, const std::string& name) {
  const auto weight = source.find_weight(name);
  CHECK(weight.has_value());
  return *weight;
}

// Rows of `row_bytes` each, in another order; `row_of` says which row of `from` comes next.
template <class RowOf>
const std::uint8_t* copied_rows(Arena& arena, const std::uint8_t* from, std::int64_t row_bytes, std::size_t rows,
                                RowOf row_of) {
  const Tensor out = arena.take(DType::U8, {static_cast<std::int64_t>(rows), row_bytes});
  if (arena.counts_only()) return nullptr;
  auto* to = static_cast<std::uint8_t*>(const_cast<void*>(out.data));
  for (std::size_t i = 0; i < rows; ++i, to += row_bytes) {
    std::memcpy(to, from + row_of(i) * row_bytes, static_cast<std::size_t>(row_bytes));
  }
  return out.as<std::uint8_t>();
}

}  // namespace

Tensor Loader::slot_state(Shape shape) {
  past_.slots.push_back(arenas_.slots.take(DType::F32, shape));
  return past_.slots.back();
}

Tensor Loader::block_state(Shape shape) {
  past_.blocks.push_back(arenas_.kv.take(DType::F32, shape));
  return past_.blocks.back();
}

Weight Loader::matrix(const std::string& name) {
  const Weight weight = found_weight(source_, name);
  count_row_bytes(weight.size_bytes());
  return weight;
}

template <class Convert>
Tensor Loader::widened(const std::string& name, Convert convert) {
  const Tensor stored = found(source_, name);
  const std::int64_t n = stored.shape.num_elements();
  const Tensor out = arenas_.weights.take(DType::F32, {n});
  if (arenas_.weights.counts_only()) return out;
  for (std::int64_t i = 0; i < n; ++i) out.f32()[i] = convert(element(stored, i));
  return out;
}

Tensor Loader::vector(const std::string& name) {
  return widened(name, [](float x) { return x; });
}
Tensor Loader::gain(const std::string& name) {
  const float one = source_.gains_hold_one(name.starts_with("mtp.")) ? 0.0F : 1.0F;
  return widened(name, [one](float x) { return one + x; });
}
Tensor Loader::decay_rate(const std::string& name) {
  return widened(name, [](float x) { return -std::exp(x); });
}

Tensor Loader::conv_weight(const std::string& name) {
  const Tensor stored = found(source_, name);
  const std::int64_t channels = stored.shape[0], kernel = stored.shape[2];
  const Tensor out = arenas_.weights.take(DType::F32, {kernel, channels});
  if (arenas_.weights.counts_only()) return out;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t j = 0; j < kernel; ++j) out.f32()[j * channels + c] = element(stored, c * kernel + j);
  }
  return out;
}

Weight Loader::matrix_rows(const std::string& name, const std::vector<std::int64_t>& rows) {
  const Weight stored = found_weight(source_, name);
  const CodedView& from = stored.view;
  Weight out({static_cast<std::int64_t>(rows.size()), from.columns}, from);
  CodedView& view = out.view;
  view.rows = out.shape[0];
  view.scale_rows = 1;
  view.codes =
      copied_rows(arenas_.weights, from.codes, from.row_bytes, rows.size(), [&](std::size_t i) { return rows[i]; });
  const std::int64_t scale_bytes = from.scale_stride * static_cast<std::int64_t>(size_bytes(from.scale_type));
  for (const std::uint8_t** grid : {&view.scales, &view.biases}) {
    if (*grid == nullptr) continue;
    *grid = copied_rows(arenas_.weights, *grid, scale_bytes, rows.size(),
                        [&](std::size_t i) { return rows[i] / from.scale_rows; });
  }
  count_row_bytes(out.size_bytes());
  return out;
}

GatedMlpWeights Loader::gated_mlp(const std::string& prefix) {
  return {.gate = matrix(prefix + ".gate_proj.weight"),
          .up = matrix(prefix + ".up_proj.weight"),
          .down = matrix(prefix + ".down_proj.weight")};
}

}  // namespace rondo
