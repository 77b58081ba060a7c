#include "tests/ops/coded.h"

#include <cstring>

namespace rondo {

CodedWeights::CodedWeights(const std::vector<CodedView>& views) {
  constexpr std::size_t kAlign = 64;
  const auto side_by_side = [&](std::size_t bytes, auto from) {
    const std::size_t each = (bytes + kAlign - 1) / kAlign * kAlign;
    kept_.emplace_back(DType::U8, Shape{static_cast<std::int64_t>(each * views.size())});
    auto* to = const_cast<std::uint8_t*>(kept_.back().tensor().as<std::uint8_t>());
    std::vector<const std::uint8_t*> at;
    for (const CodedView& view : views) {
      std::memcpy(to, from(view), bytes);
      at.push_back(to);
      to += each;
    }
    return at;
  };
  const Weight first({views[0].rows, views[0].columns}, views[0]);
  const auto codes = side_by_side(static_cast<std::size_t>(views[0].rows * views[0].row_bytes),
                                  [](const CodedView& view) { return view.codes; });
  for (std::size_t i = 0; i < views.size(); ++i) {
    weights_.emplace_back(first.shape, views[i]);
    weights_[i].view.codes = codes[i];
  }
  for (const auto grid : {&CodedView::scales, &CodedView::biases}) {
    if (views[0].*grid == nullptr) continue;
    const auto at = side_by_side(first.scales_bytes(), [&](const CodedView& view) { return view.*grid; });
    for (std::size_t i = 0; i < views.size(); ++i) weights_[i].view.*grid = at[i];
  }
}

CodedWeights CodedWeights::random(std::int64_t rows, std::int64_t columns, const EncodeSpec& spec, Values values,
                                  std::uint64_t seed) {
  return CodedWeights(encode(random_f32({rows, columns}, seed, values).to_vector(), columns, spec).weight.view);
}

Decoded decoded_for(Isa isa, const Weight& weight) {
  CodedView view = weight.view;
  const bool on_gpu = isa == Isa::Sm90;
  if (on_gpu) view.tensor_scale = 1;
  Decoded out{Array(on_gpu ? DType::BF16 : DType::F32, weight.shape), on_gpu ? weight.view.tensor_scale : 1.0F};
  std::vector<float> row(static_cast<std::size_t>(view.columns));
  for (std::int64_t n = 0; n < view.rows; ++n) {
    decode(view, n, 0, row);
    for (std::int64_t k = 0; k < view.columns; ++k) {
      const std::int64_t at = n * view.columns + k;
      const float value = row[static_cast<std::size_t>(k)];
      if (on_gpu) {
        const_cast<BFloat16*>(out.weight.tensor().bf16())[at] = to_bfloat16(value);
      } else {
        out.weight.f32()[at] = value;
      }
    }
  }
  return out;
}

std::vector<EncodeSpec> fast_specs() {
  return {{.format = WeightFormat::Fp8, .block = 128},
          {.format = WeightFormat::Fp8, .by_tensor = true},
          {.format = WeightFormat::Nvfp4},
          {.format = WeightFormat::Affine, .bits = 4, .group = 64},
          {.format = WeightFormat::Affine, .bits = 6, .group = 64},
          {.format = WeightFormat::Affine, .bits = 8, .group = 64}};
}

std::vector<EncodeSpec> all_specs() {
  std::vector<EncodeSpec> all = fast_specs();
  all.push_back({.format = WeightFormat::Fp8, .block = 24});
  all.push_back({.format = WeightFormat::Affine, .bits = 6, .group = 32});
  all.push_back({.format = WeightFormat::Affine, .bits = 8, .group = 128});
  return all;
}

}  // namespace rondo
