#include "cli/selfcheck/subject.h"

#include <algorithm>
#include <bit>

#include "base/random.h"

namespace rondo {

std::vector<std::int32_t> Subject::ids(std::uint64_t key, int count) const {
  std::size_t at = random_bits(11, key) % text.size();
  std::vector<std::int32_t> out;
  for (int i = 0; i < count; ++i) out.push_back(text[at++ % text.size()]);
  return out;
}

namespace {

// A few ids lifted far above the rest: what is drawn then comes from these, and a draft is often right, whatever the
// model.
std::vector<LogitBias> lift_few(int vocab_size) {
  std::vector<LogitBias> bias;
  for (int i = 0; i < 4; ++i) bias.push_back({(17 + i * 29) % vocab_size, 60});
  return bias;
}

}  // namespace

DrawSettings settings(int i, int vocab_size) {
  DrawSettings draw{.temperature = 0, .bias = {}, .seed = static_cast<std::uint64_t>(1000 + i)};
  switch (i % 8) {
    case 0: break;
    case 1:
      draw.temperature = 0.7F;
      draw.top_k = 40;
      draw.top_p = 0.9F;
      break;
    case 2:
      draw.temperature = 1.2F;
      draw.min_p = 0.05F;
      break;
    case 3:
      draw.presence_penalty = 0.5F;
      draw.frequency_penalty = 0.3F;
      break;
    case 4:
      draw.temperature = 0.7F;
      draw.presence_penalty = 0.8F;
      draw.bias = {{21 % vocab_size, 3}, {40 % vocab_size, -5}};
      break;
    case 5: draw.temperature = 1.2F; break;
    case 6: draw.bias = lift_few(vocab_size); break;
    default:
      draw.temperature = 1.2F;
      draw.top_k = 20;
      draw.top_p = 0.8F;
      draw.min_p = 0.02F;
      draw.frequency_penalty = 2;
      draw.bias = lift_few(vocab_size);
      break;
  }
  return draw;
}

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

bool same_bits(const RowLogprobs& a, const RowLogprobs& b) {
  return same_bits(a.chosen, b.chosen) && a.num_top == b.num_top &&
         std::equal(a.top_ids, a.top_ids + a.num_top, b.top_ids) &&
         std::equal(a.top, a.top + a.num_top, b.top, [](float x, float y) { return same_bits(x, y); });
}

}  // namespace rondo
