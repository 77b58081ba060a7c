// Machine: threads, an instruction set and scratch to run an op on; and the lists of instruction sets tests run over.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "device/stream.h"
#include "ops/common/row_spans.h"
#include "tensor/arena.h"
#include "tests/ops/arrays.h"

namespace rondo {

inline void PrintTo(Isa isa, std::ostream* to) { *to << isa_name(isa); }  // gtest finds it by this name

class Machine {
 public:
  explicit Machine(Isa isa, int threads = 1);

  Stream& stream() { return stream_; }
  // Spans and row numbers where this machine's ops read them; good as long as the machine.
  RowSpans spans(std::span<const RowSpan> spans);
  const std::int32_t* rows(std::span<const std::int32_t> rows);
  Isa isa() const { return stream_.isa(); }
  Scratch scratch();  // every bit set: what an op reads there and never wrote shows as NaN
  std::size_t peak_bytes() const { return peak_bytes_; }

 private:
  ThreadPool pool_;
  std::shared_ptr<CudaQueue> queue_;
  Stream stream_;
  std::vector<Array> kept_;
  Buffer buffer_;
  std::size_t peak_bytes_ = 0;
};

std::vector<Isa> kernel_isas();  // those of this machine that are compiled kernels, a GPU's among them

// A GPU's matrix products round their inputs to bf16: an op's inputs so rounded already, where isa is such; and the
// tolerance where what is rounded comes about inside the op.
Array rounded_for(Isa isa, const Array& x);
inline double tolerance_on(Isa isa, double f32, double bf16) { return isa == Isa::Sm90 ? bf16 : f32; }
std::vector<Isa> all_isas();  // and the reference
inline std::string isa_label(const testing::TestParamInfo<Isa>& param) { return std::string(isa_name(param.param)); }

}  // namespace rondo

// A suite of tests over every compiled instruction set (Kernels), or over those and the reference (All).
#define RONDO_ON_KERNELS(suite)                        \
  class suite : public testing::TestWithParam<Isa> {}; \
  INSTANTIATE_TEST_SUITE_P(Kernels, suite, testing::ValuesIn(kernel_isas()), isa_label)
#define RONDO_ON_ALL(suite)                            \
  class suite : public testing::TestWithParam<Isa> {}; \
  INSTANTIATE_TEST_SUITE_P(All, suite, testing::ValuesIn(all_isas()), isa_label)
