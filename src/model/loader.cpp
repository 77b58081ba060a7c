#include "model/loader.h"

#include <cmath>
#include <cstring>

#include "ops/pointwise/pointwise.h"
#include "tensor/made_up.h"

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

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.shape.num_elements()) * size_bytes(tensor.dtype);
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

}  // namespace

Tensor Loader::slot_state(Shape shape) {
  past_.slots.push_back(arenas_.slots.take(DType::F32, shape));
  return past_.slots.back();
}

Tensor Loader::block_state(DType dtype, Shape shape) {
  past_.blocks.push_back(arenas_.kv.take(dtype, shape));
  return past_.blocks.back();
}

Weight Loader::matrix(const std::string& name) {
  const Weight weight = found_weight(source_, name);
  count_row_bytes(weight.size_bytes());
  return placed(weight);
}

Weight Loader::placed(const Weight& weight) {
  if (!on_gpu()) return weight;
  if (const auto found = placed_.find(weight.view.codes); found != placed_.end()) return found->second;
  Weight out = weight;
  CodedView& view = out.view;
  view.codes = copied(view.codes, static_cast<std::uint64_t>(view.rows * view.row_bytes));
  // Experts' codes and scales come one after the other, each of its own size: evenly spaced, as ops/moe wants them.
  if (view.scales != nullptr) view.scales = copied(view.scales, weight.scales_bytes());
  if (view.biases != nullptr) view.biases = copied(view.biases, weight.scales_bytes());
  if (source_.is_hollow() && !arenas_.weights.counts_only()) make_up(out);
  placed_.emplace(weight.view.codes, out);
  return out;
}

// On the GPU; of a hollow source room alone.
const std::uint8_t* Loader::copied(const std::uint8_t* from, std::uint64_t bytes) {
  const Tensor out = arenas_.weights.take(DType::U8, {static_cast<std::int64_t>(bytes)});
  if (!arenas_.weights.counts_only() && !source_.is_hollow()) {
    upload_->put(const_cast<void*>(out.data), from, static_cast<std::size_t>(bytes));
  }
  return out.as<std::uint8_t>();
}

// Contents for a matrix that has none: about 1 / sqrt(inputs), so that activations keep their size.
void Loader::make_up(const Weight& weight) {
  const CodedView& view = weight.view;
  if (view.format == WeightFormat::Bf16) {
    const float half_width = std::sqrt(3.0F / static_cast<float>(view.columns));
    return fill_random(upload_->stream(), weight.plain(), ++made_up_, half_width);
  }
  const MadeUp made = made_up(view);
  const auto put = [&](const std::uint8_t* to, std::uint64_t bytes, const MadeUp::Bytes& pattern) {
    if (to == nullptr) return;
    fill_bytes(upload_->stream(), {to, DType::U8, {static_cast<std::int64_t>(bytes)}}, ++made_up_, pattern);
  };
  put(view.codes, static_cast<std::uint64_t>(view.rows * view.row_bytes), made.codes);
  put(view.scales, weight.scales_bytes(), made.scales);
  put(view.biases, weight.scales_bytes(), made.biases);
}

Tensor Loader::tensor_scales(std::span<const GatedMlpWeights> experts) {
  if (!on_gpu()) return {};
  const auto n = static_cast<std::int64_t>(experts.size());
  const Tensor out = arenas_.weights.take(DType::F32, {3, n});
  fill(arenas_.weights, out, [&](Tensor to) {
    float* at = to.f32();
    for (const auto part : {&GatedMlpWeights::gate, &GatedMlpWeights::up, &GatedMlpWeights::down}) {
      for (const GatedMlpWeights& expert : experts) *at++ = (expert.*part).view.tensor_scale;
    }
  });
  return out;
}

// write sees a tensor of the host; on a GPU what it wrote is uploaded.
void Loader::fill(const Arena& arena, Tensor out, const std::function<void(Tensor)>& write) {
  if (arena.counts_only()) return;
  if (!on_gpu()) return write(out);
  std::vector<std::byte> host(bytes_of(out));
  write({host.data(), out.dtype, out.shape});
  upload_->put(const_cast<void*>(out.data), host.data(), host.size());
}

Tensor Loader::table(DType dtype, Shape shape, const std::function<void(Tensor)>& write) {
  const Tensor out = arenas_.tables.take(dtype, shape);
  fill(arenas_.tables, out, write);
  return out;
}

template <class Convert>
Tensor Loader::widened(const std::string& name, Convert convert) {
  const Tensor stored = found(source_, name);
  const std::int64_t n = stored.shape.num_elements();
  const Tensor out = arenas_.weights.take(DType::F32, {n});
  fill(arenas_.weights, out, [&](Tensor to) {
    for (std::int64_t i = 0; i < n; ++i) to.f32()[i] = convert(element(stored, i));
  });
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
  fill(arenas_.weights, out, [&](Tensor to) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t j = 0; j < kernel; ++j) to.f32()[j * channels + c] = element(stored, c * kernel + j);
    }
  });
  return out;
}

// Rows of `row_bytes` each, in another order; `row_of` says which row of `from` comes next.
const std::uint8_t* Loader::copied_rows(const std::uint8_t* from, std::int64_t row_bytes, std::size_t rows,
                                        const std::function<std::int64_t(std::size_t)>& row_of) {
  const Tensor out = arenas_.weights.take(DType::U8, {static_cast<std::int64_t>(rows), row_bytes});
  fill(arenas_.weights, out, [&](Tensor on_host) {
    auto* to = static_cast<std::uint8_t*>(const_cast<void*>(on_host.data));
    for (std::size_t i = 0; i < rows; ++i, to += row_bytes) {
      std::memcpy(to, from + row_of(i) * row_bytes, static_cast<std::size_t>(row_bytes));
    }
  });
  return out.as<std::uint8_t>();
}

Weight Loader::matrix_rows(const std::string& name, const std::vector<std::int64_t>& rows) {
  const Weight stored = found_weight(source_, name);
  const CodedView& from = stored.view;
  if (source_.is_hollow()) {
    const Weight out = arenas_.weights.take(DType::BF16, {static_cast<std::int64_t>(rows.size()), from.columns});
    if (!arenas_.weights.counts_only()) make_up(out);
    return out;
  }
  Weight out({static_cast<std::int64_t>(rows.size()), from.columns}, from);
  CodedView& view = out.view;
  view.rows = out.shape[0];
  view.scale_rows = 1;
  view.codes = copied_rows(from.codes, from.row_bytes, rows.size(), [&](std::size_t i) { return rows[i]; });
  const std::int64_t scale_bytes = from.scale_stride * static_cast<std::int64_t>(size_bytes(from.scale_type));
  for (const std::uint8_t** grid : {&view.scales, &view.biases}) {
    if (*grid == nullptr) continue;
    *grid = copied_rows(*grid, scale_bytes, rows.size(), [&](std::size_t i) { return rows[i] / from.scale_rows; });
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
