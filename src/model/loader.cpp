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

}  // namespace

Tensor Loader::slot_state(Shape shape) {
  past_.slots.push_back(arenas_.slots.take(DType::F32, shape));
  return past_.slots.back();
}

Tensor Loader::block_state(Shape shape) {
  past_.blocks.push_back(arenas_.kv.take(DType::F32, shape));
  return past_.blocks.back();
}

Tensor Loader::matrix(const std::string& name) {
  const Tensor tensor = found(source_, name);
  count_row_bytes(static_cast<std::uint64_t>(tensor.shape.num_elements()) * size_bytes(tensor.dtype));
  return tensor;
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
  return widened(name, [](float x) { return 1.0F + x; });
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

Tensor Loader::matrix_rows(const std::string& name, const std::vector<std::int64_t>& rows) {
  const Tensor stored = found(source_, name);
  const std::int64_t width = stored.shape[1];
  const Tensor out = arenas_.weights.take(DType::BF16, {static_cast<std::int64_t>(rows.size()), width});
  count_row_bytes(static_cast<std::uint64_t>(out.shape.num_elements()) * sizeof(BFloat16));
  if (arenas_.weights.counts_only()) return out;
  auto* to = static_cast<BFloat16*>(const_cast<void*>(out.data));
  for (const std::int64_t row : rows) {
    std::memcpy(to, stored.bf16() + row * width, static_cast<std::size_t>(width) * sizeof(BFloat16));
    to += width;
  }
  return out;
}

GatedMlpWeights Loader::gated_mlp(const std::string& prefix) {
  return {.gate = matrix(prefix + ".gate_proj.weight"),
          .up = matrix(prefix + ".up_proj.weight"),
          .down = matrix(prefix + ".down_proj.weight")};
}

}  // namespace rondo
