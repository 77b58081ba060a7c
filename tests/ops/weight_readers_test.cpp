// The readers of the GPU's matrix products, lane by lane on a host: each lane gets its columns of its rows, whatever
// the format, the expert, the run of columns, and however the stages are asked for. Banks and timing are a GPU's to
// show.
#include "ops/linear/weight_readers.cuh"

#include <memory>

#include "tests/ops/coded.h"

namespace rondo {
namespace {

using namespace cuda::product;

constexpr int kLanes = cuda::kWarp;

CodedWeights two_experts(std::int64_t n, std::int64_t k, const EncodeSpec& spec) {
  const EncodedWeight first = encode(random_f32({n, k}, 3).to_vector(), k, spec);
  const EncodedWeight second = encode(random_f32({n, k}, 4).to_vector(), k, spec);
  return CodedWeights(std::vector{first.weight.view, second.weight.view});
}

// The lanes of a warp at rows n_first .. of one expert, columns k_begin .. k_end.
template <class Reader, int Rows>
class Warp {
 public:
  Warp(const CodedWeights& experts, int expert, int n_first)
      : view_(experts[static_cast<std::size_t>(expert)].view), n_first_(n_first), ring_(DType::U8, {kRingRoom}) {
    PartWeight weight{.view = experts.view()};
    weight.codes_stride = experts[1].view.codes - experts[0].view.codes;
    weight.scales_stride = experts[1].view.scales - experts[0].view.scales;
    auto* ring = static_cast<std::byte*>(const_cast<void*>(ring_.tensor().data));
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes_.emplace_back(ring, lane);
      lanes_.back().aim(weight, expert, n_first, static_cast<int>(view_.rows));
    }
    view_.tensor_scale = 1;
  }

  template <class Step>
  void each(Step step) {
    for (Reader& lane : lanes_) step(lane);
  }

  // What the lanes take in a round, against the definition; then next(), as a kernel asks for it.
  testing::AssertionResult takes_round(int k) {
    for (int u = 0; u < kUnroll; ++u) {
      for (int lane = 0; lane < kLanes; ++lane) {
        uint4 unread[Rows];
        cuda::matrix_rows.lane = lane, cuda::matrix_rows.is_read = false;
        lanes_[static_cast<std::size_t>(lane)].take(u, k + u * kStep, unread);
      }
      for (int lane = 0; lane < kLanes; ++lane) {
        uint4 words[Rows];
        cuda::matrix_rows.lane = lane, cuda::matrix_rows.is_read = true;
        lanes_[static_cast<std::size_t>(lane)].take(u, k + u * kStep, words);
        for (int i = 0; i < Rows; ++i) {
          const int row = std::min(n_first_ + i * kRowsEach + lane / 4, static_cast<int>(view_.rows) - 1);
          auto same = same_columns(words[i], row, k + u * kStep + lane % 4 * 8);
          if (!same) return same << ": lane " << lane << ", step " << u << " of the round at " << k << ", row " << row;
        }
      }
      for (Reader& lane : lanes_) lane.next(u, k + u * kStep);
    }
    return testing::AssertionSuccess();
  }

 private:
  static constexpr std::int64_t kRingRoom = Reader::kRingBytes > 0 ? Reader::kRingBytes : 1;

  testing::AssertionResult same_columns(const uint4& words, int row, int column) const {
    float want[8];
    decode(view_, row, column, want);
    const unsigned in[] = {words.x, words.y, words.z, words.w};
    for (int i = 0; i < 8; ++i) {
      float value = want[i];
      if constexpr (Reader::kIsCoded) {
        if (Reader::kCrossed && i % 4 == 1) value = want[i + 1];  // so its inputs are staged, too
        if (Reader::kCrossed && i % 4 == 2) value = want[i - 1];
        value /= Reader::kFactor;
      }
      const unsigned got = in[i / 2] >> (16 * (i % 2)) & 0xFFFFu;
      if (got != to_bfloat16(value).bits) {
        return testing::AssertionFailure() << "column " << column + i << " is " << got << ", not " << value;
      }
    }
    return testing::AssertionSuccess();
  }

  CodedView view_;
  int n_first_;
  Array ring_;
  std::vector<Reader> lanes_;
};

constexpr int kK = 768;
struct Run {
  int begin, end;
};

// run(warp, columns) over both experts, tiles at the end of the rows among them, and two runs of columns; twice over,
// as an expert with many rows starts anew.
template <class Reader, int Rows, class Ask>
void expect_weights(const EncodeSpec& spec, Ask ask) {
  for (const std::int64_t n : {70, 16, 256}) {
    const CodedWeights experts = two_experts(n, kK, spec);
    for (int expert = 0; expert < 2; ++expert) {
      for (int n_first = 0; n_first < n + kRowsEach * Rows; n_first += kRowsEach * Rows) {
        Warp<Reader, Rows> warp(experts, expert, n_first);
        for (const Run columns : {Run{0, kK}, Run{384, kK}, Run{0, 128}}) {
          ASSERT_TRUE(ask(warp, columns)) << format_name(experts.view()) << ", " << n << " rows";
        }
      }
    }
  }
}

// As the kernel for few rows asks, and as the one for many.
template <class Reader, int Rows>
void expect_narrow(const EncodeSpec& spec) {
  expect_weights<Reader, Rows>(spec, [](auto& warp, Run columns) -> testing::AssertionResult {
    warp.each([&](Reader& lane) { lane.start(columns.begin, columns.end); });
    for (int k = columns.begin; k < columns.end; k += kRound) {
      if constexpr (Reader::kIsCoded) warp.each([&](Reader& lane) { lane.arrive(k); });
      if (auto takes = warp.takes_round(k); !takes) return takes;
    }
    return testing::AssertionSuccess();
  });
}
template <class Reader, int Rows, int Stages>
void expect_wide(const EncodeSpec& spec) {
  expect_weights<Reader, Rows>(spec, [](auto& warp, Run columns) -> testing::AssertionResult {
    warp.each([&](Reader& lane) { lane.begin(columns.begin, columns.end); });
    for (int i = 0; i + 1 < Stages; ++i) warp.each([&](Reader& lane) { lane.copy(columns.begin + i * kRound); });
    for (int k = columns.begin; k < columns.end; k += kRound) {
      warp.each([&](Reader& lane) { lane.copy(k + (Stages - 1) * kRound); });
      warp.each([&](Reader& lane) { lane.open(k); });
      if (auto takes = warp.takes_round(k); !takes) return takes;
    }
    return testing::AssertionSuccess();
  });
}
template <Code C>
void expect_coded(const EncodeSpec& spec) {
  expect_narrow<CodedReader<C, 2, kBits<C> == 8 ? 3 : 4>, 2>(spec);
  expect_wide<CodedReader<C, 4, 3>, 4, 3>(spec);
}

TEST(WeightReaders, GiveEachLaneItsColumns) {
  expect_coded<Code::Fp8>({.format = WeightFormat::Fp8, .by_tensor = true});
  expect_coded<Code::Fp8Blocks>({.format = WeightFormat::Fp8, .block = 128});
  expect_coded<Code::Nvfp4>({.format = WeightFormat::Nvfp4});
  expect_coded<Code::Affine4>({.format = WeightFormat::Affine, .bits = 4});
  expect_coded<Code::Affine6>({.format = WeightFormat::Affine, .bits = 6});
  expect_coded<Code::Affine8>({.format = WeightFormat::Affine, .bits = 8});
}

TEST(WeightReaders, ReadAnyFormatWeightByWeight) {
  for (const EncodeSpec& spec : all_specs()) expect_narrow<AnyReader<2>, 2>(spec);
}

}  // namespace
}  // namespace rondo
