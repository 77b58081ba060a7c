#include "tests/ops/arrays.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "base/random.h"
#include "device/stream.h"

namespace rondo {

namespace {
std::size_t bytes_of(DType dtype, const Shape& shape) {
  return static_cast<std::size_t>(shape.num_elements()) * size_bytes(dtype);
}
}  // namespace

namespace {

// Pinned memory by powers of two: taking it from the driver each time would take longer than the tests.
class PinnedPool {
 public:
  PinnedPool() {
    if (!has_isa(Isa::Sm90)) return;
    auto buffer = reserve_host_for(Isa::Sm90, std::size_t{1} << 30, "arrays of tests");
    CHECK(buffer.has_value());
    buffer_ = std::move(*buffer);
  }
  bool is_used() const { return buffer_.data() != nullptr; }
  std::byte* take(std::size_t bytes) {
    const std::size_t size = std::bit_ceil(std::max<std::size_t>(bytes, 256));
    auto& free = free_[size];
    if (!free.empty()) {
      std::byte* at = free.back();
      free.pop_back();
      return at;
    }
    CHECK(used_ + size <= buffer_.size_bytes());
    std::byte* at = buffer_.data() + used_;
    used_ += size;
    size_of_[at] = size;
    return at;
  }
  void give(std::byte* at) { free_[size_of_.at(at)].push_back(at); }

 private:
  Buffer buffer_;
  std::size_t used_ = 0;
  std::map<std::size_t, std::vector<std::byte*>> free_;
  std::map<std::byte*, std::size_t> size_of_;
};
PinnedPool& pinned() {
  static auto* pool = new PinnedPool();  // arrays of static tests outlive it otherwise
  return *pool;
}

std::unique_ptr<std::byte[], void (*)(std::byte*)> memory_of(std::size_t bytes) {
  if (pinned().is_used()) return {pinned().take(bytes), [](std::byte* at) { pinned().give(at); }};
  return {new std::byte[bytes], [](std::byte* at) { delete[] at; }};
}

}  // namespace

Array::Array(DType dtype, Shape shape) : dtype_(dtype), shape_(shape), bytes_(memory_of(bytes_of(dtype, shape))) {
  std::memset(bytes_.get(), 0xFF, bytes_of(dtype, shape));
}

Array Array::zeros(Shape shape) { return constant_f32(shape, 0); }

float random_value(std::uint64_t seed, std::uint64_t index, Values values) {
  const auto even = static_cast<float>(2 * unit_interval(random_bits(seed, index, 1)) - 1);
  if (values == Values::Even) return even;
  switch (random_bits(seed, index, 2) % 8) {
    case 0: return 0;
    case 1: return even * 300;
    case 2: return even * 1e-6F;
    default: return even;
  }
}

Array random_f32(Shape shape, std::uint64_t seed, Values values) {
  Array out = Array::f32(shape);
  for (std::int64_t i = 0; i < out.num_elements(); ++i) {
    out.f32()[i] = random_value(seed, static_cast<std::uint64_t>(i), values);
  }
  return out;
}

Array random_bf16(Shape shape, std::uint64_t seed, Values values) {
  Array out(DType::BF16, shape);
  auto* to = const_cast<BFloat16*>(out.tensor().bf16());
  for (std::int64_t i = 0; i < out.num_elements(); ++i) {
    to[i] = to_bfloat16(random_value(seed, static_cast<std::uint64_t>(i), values));
  }
  return out;
}

Array constant_f32(Shape shape, float value) {
  Array out = Array::f32(shape);
  std::fill_n(out.f32(), out.num_elements(), value);
  return out;
}

float bf16_at(Tensor weight, std::int64_t row, std::int64_t column) {
  return to_float(weight.bf16()[row * weight.width() + column]);
}

Array rows_of(Tensor x, const std::vector<int>& rows) {
  Array out = Array::f32({static_cast<std::int64_t>(rows.size()), x.width()});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(x.f32() + rows[i] * x.width(), x.width(), out.row(static_cast<std::int64_t>(i)));
  }
  return out;
}

}  // namespace rondo
