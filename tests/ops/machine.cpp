#include "tests/ops/machine.h"

#include <cstring>

namespace rondo {

namespace {
constexpr std::size_t kScratchBytes = 2 << 20;

Buffer reserve_scratch() {
  auto buffer = Buffer::reserve(kScratchBytes, "a test's scratch");
  CHECK(buffer.has_value());
  std::memset(buffer->data(), 0xFF, buffer->size_bytes());
  return std::move(*buffer);
}
}  // namespace

Machine::Machine(Isa isa, int threads) : pool_(threads), stream_(pool_, isa), buffer_(reserve_scratch()) {}

Scratch Machine::scratch() {
  std::memset(buffer_.data(), 0xFF, peak_bytes_);
  return {buffer_, &peak_bytes_};
}

std::vector<Isa> kernel_isas() {
  std::vector<Isa> out;
  for (const Isa isa : {Isa::Baseline, Isa::Avx2, Isa::Avx512}) {
    if (has_isa(isa)) out.push_back(isa);
  }
  return out;
}

std::vector<Isa> all_isas() {
  std::vector<Isa> out = kernel_isas();
  out.push_back(Isa::Reference);
  return out;
}

}  // namespace rondo
