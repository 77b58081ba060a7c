#include "tensor/made_up.h"

#include <cmath>

#include "base/check.h"
#include "tensor/tensor.h"

namespace rondo {

MadeUp made_up(const CodedView& view) {
  const float size = 1.0F / std::sqrt(static_cast<float>(view.columns));
  const auto always = [](float value) { return MadeUp::Bytes{.random = 0, .fixed = to_bfloat16(value).bits}; };
  MadeUp out;
  switch (view.format) {
    case WeightFormat::Fp8: {
      out.codes = {.random = 0x8F8F, .fixed = 0x3030};  // 0.5 .. 1.875 and their negatives: root mean square 1.16
      const float scale = size / 1.16F;
      if (view.scale_type == ScaleType::None) {
        out.tensor_scale = scale;
      } else {
        CHECK(view.scale_type == ScaleType::Bf16);
        out.scales = always(scale);
      }
      return out;
    }
    case WeightFormat::Nvfp4:
      out.codes = {.random = 0xFFFF, .fixed = 0};
      out.scales = {.random = 0x0707, .fixed = 0x3838};  // 1 .. 1.875
      out.tensor_scale = size / 4.29F;                   // all codes, times such scales
      return out;
    case WeightFormat::Affine: {
      CHECK(view.scale_type == ScaleType::Bf16);
      const auto most = static_cast<float>((1 << view.bits) - 1);
      const float scale = size / std::sqrt(most * (most + 2) / 12);  // of numbers spread evenly over 0 .. most
      out.codes = {.random = 0xFFFF, .fixed = 0};
      out.scales = always(scale);
      out.biases = always(-scale * most / 2);
      return out;
    }
    default: break;
  }
  CHECK(false && "plain weights are made up as numbers");
  return out;
}

}  // namespace rondo
