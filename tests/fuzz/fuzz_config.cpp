// Any bytes as config.json and generation_config.json: an error that names the file, or a model whose every tensor
// has a size, small enough to be added up.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "ckpt/checkpoint.h"

namespace {

void read_as_generation_config(std::string_view text) {
  const auto defaults = rondo::parse_generation_config(text, "generation_config.json");
  if (!defaults) {
    CHECK(defaults.error().message.starts_with("generation_config.json: "));
    return;
  }
  CHECK(defaults->temperature >= 0 && defaults->top_p >= 0 && defaults->top_p <= 1 && defaults->top_k >= 0);
}

void read_as_config(std::string_view text) {
  const auto config = rondo::parse_config(text, "config.json");
  if (!config) {
    CHECK(config.error().message.starts_with("config.json: "));
    return;
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t total = 0;
  for (const auto& spec : rondo::inventory(*config, true)) {
    const std::int64_t n = spec.shape.num_elements();
    CHECK(n > 0 && n < kMost - total);
    total += n;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  read_as_config(text);
  read_as_generation_config(text);
  return 0;
}
