#include "tests/ops/machine.h"

#include <algorithm>
#include <cstring>

namespace rondo {

namespace {
constexpr std::size_t kScratchBytes = 2 << 20;

// One for all tests of a process: what they queue runs in order. They read what ops wrote at once, so on a GPU they run
// with CUDA_LAUNCH_BLOCKING=1 (tools/gpu_check.sh).
std::shared_ptr<CudaQueue> queue_of(Isa isa) {
  static const std::shared_ptr<CudaQueue> gpu = [] {
    auto queue = open_queue(Isa::Sm90);
    return queue ? *queue : nullptr;
  }();
  return isa == Isa::Sm90 ? gpu : nullptr;
}

Buffer reserve_scratch(Isa isa) {
  auto buffer = reserve_host_for(isa, kScratchBytes, "a test's scratch");
  CHECK(buffer.has_value());
  std::memset(buffer->data(), 0xFF, buffer->size_bytes());
  return std::move(*buffer);
}
}  // namespace

Machine::Machine(Isa isa, int threads)
    : pool_(threads), queue_(queue_of(isa)), stream_(stream_on(pool_, isa, queue_)), buffer_(reserve_scratch(isa)) {}

const std::int32_t* Machine::rows(std::span<const std::int32_t> rows) {
  kept_.emplace_back(DType::I32, Shape{static_cast<std::int64_t>(rows.size())});
  std::copy(rows.begin(), rows.end(), kept_.back().i32());
  return kept_.back().i32();
}

RowSpans Machine::spans(std::span<const RowSpan> spans) {
  constexpr int kBlock = 16;  // positions a block, in all these tests
  RowSpans out(spans);
  int rows = 0;
  for (const RowSpan& span : spans) rows = std::max(rows, span.begin + span.count);
  std::vector<std::int32_t> span_of_row(static_cast<std::size_t>(rows));
  kept_.emplace_back(DType::U8, Shape{static_cast<std::int64_t>(spans.size() * sizeof(RowSpan))});
  auto* to = const_cast<RowSpan*>(kept_.back().tensor().as<RowSpan>());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    to[i] = spans[i];
    std::fill_n(span_of_row.begin() + spans[i].begin, spans[i].count, static_cast<std::int32_t>(i));
    const int blocks = (spans[i].start_pos + spans[i].count + kBlock - 1) / kBlock;
    if (spans[i].blocks != nullptr) to[i].blocks = this->rows({spans[i].blocks, static_cast<std::size_t>(blocks)});
  }
  out.on_device = to;
  out.span_of_row = this->rows(span_of_row);
  return out;
}

Array rounded_for(Isa isa, const Array& x) {
  Array out = Array::f32(x.shape());
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    out.f32()[i] = isa == Isa::Sm90 ? to_float(to_bfloat16(x.f32()[i])) : x.f32()[i];
  }
  return out;
}

Scratch Machine::scratch() {
  std::memset(buffer_.data(), 0xFF, peak_bytes_);
  return {buffer_, &peak_bytes_};
}

std::vector<Isa> kernel_isas() {
  std::vector<Isa> out;
  for (const Isa isa : {Isa::Baseline, Isa::Avx2, Isa::Avx512, Isa::Sm90}) {
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
