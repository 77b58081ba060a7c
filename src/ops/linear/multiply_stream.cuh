// The sums of multiply.cuh for at most eight rows of large weights, which are a matter of the memory's speed: one block
// a multiprocessor has an even share of the weight rows. It has one or two teams of warps, which take sixteen rows each
// in turn; a warp of a team has a run of their columns. A warp's weights flow through a ring in shared memory without a
// pause from one sixteen rows to the next. The rings are as deep as there is room: what is under way covers the
// memory's latency, and a block that begins while others of the launch before end has all of a ring on its way at once.
#pragma once

#include "ops/linear/tiles.cuh"

namespace rondo::cuda::product {

constexpr int kRuns = 8;                     // that a team has at once, of one group of rows or of several
constexpr int kGroup = 2 * kRowsEach;        // weight rows of a warp
constexpr int kMostStreamRows = 8;           // inputs
constexpr int kSumWidth = kGroup + kOutPad;  // floats from one input's sums to the next one's
constexpr int kSumSlots = 2;                 // sets of a team whose sums are being made, or added up
constexpr int kMostShared = 227 << 10;       // bytes of a block

// Sets of rows, each as many groups of kGroup as the warps can take at once; Part::first_tile counts sets.
struct StreamArgs {
  Part parts[kMaxParts];
  int num_parts, sets, splits, set_rows;
  const std::uint16_t* rounded;  // the inputs of all parts, [rows, k]; null: each part's x is still to be rounded
};

// Words from a row of inputs to the next: 64 bytes off a multiple of 128, as in multiply.cuh.
__host__ __device__ constexpr int stream_row_words(int k) { return ((k + kRound - 1) / kRound * kRound * 2 + 64) / 4; }
// A block's teams, and how they read.
template <class ReaderOf, int Teams>
struct StreamForm {
  using Reader = ReaderOf;
  static constexpr int kTeams = Teams, kWarps = Teams * kRuns, kThreads = kWarps * kWarp;
};

// Inputs, rings, sums, and two barriers for each slot of these.
template <class Form>
constexpr int stream_bytes(int rows, int k) {
  constexpr int kSlots = Form::kTeams * kSumSlots;
  return rows * (stream_row_words(k) + kSlots * kRuns * kSumWidth) * 4 + Form::kWarps * Form::Reader::kRingBytes +
         2 * kSlots * 8;
}
template <class Form>
constexpr bool fits_stream(int rows, int k) {
  return rows <= kMostStreamRows && stream_bytes<Form>(rows, k) <= kMostShared;
}

// Plain weights as a CodedReader's codes come: a warp's own ring, Stages of kColumns columns.
template <int Stages>
class PlainRing {
 public:
  static constexpr bool kIsCoded = false;
  static constexpr bool kCrossed = false;
  static constexpr float kFactor = 1;
  static constexpr int kStages = Stages, kColumns = kRound / 2;
  static constexpr int kStageBytes = kGroup * kColumns * 2, kRingBytes = Stages * kStageBytes;

  __device__ PlainRing(std::byte* ring, int lane) : ring_(ring), lane_(lane), g_(lane / 4), t_(lane % 4) {}
  __device__ void aim_copies(const PartWeight& weight, int /*expert*/, int n_first, int n) {
    columns_ = static_cast<int>(weight.view.columns);
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {
      const int row = min(n_first + j * kApart + lane_ / kRowPieces, n - 1);
      from_[j] = plain_weights(weight) + static_cast<std::int64_t>(row) * columns_ + lane_ % kRowPieces * 8;
    }
  }
  __device__ void advance_copies(const PartWeight& /*weight*/, int rows) {
#pragma unroll
    for (int j = 0; j < kPieces; ++j) from_[j] += static_cast<std::int64_t>(rows) * columns_;
  }
  __device__ void turn_scales(const PartWeight& /*weight*/, int /*n_first*/, int /*n*/, bool /*other*/, int /*k*/) {}
  __device__ void begin_copies(int k_end) { k_end_ = k_end; }
  __device__ void copy(int k) {
    std::byte* slot = ring_ + written_;
    written_ = written_ + kStageBytes == kRingBytes ? 0 : written_ + kStageBytes;
    if (k >= k_end_) return;
    const bool live = k + lane_ % kRowPieces * 8 < columns_;
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {
      const int row = j * kApart + lane_ / kRowPieces;
      copy_16(slot + row * kColumns * 2 + place_of(row, lane_ % kRowPieces) * 16, from_[j] + k, live);
    }
  }
  __device__ void open(int /*k*/) {
    at_ = ring_ + read_;
    read_ = read_ + kStageBytes == kRingBytes ? 0 : read_ + kStageBytes;
  }
  __device__ void take(int u, int /*k*/, uint4 (&to)[2]) const {
    to[0] = from_tile<kColumns>(at_, g_, u, g_, t_);
    to[1] = from_tile<kColumns>(at_, g_ + kRowsEach, u, g_, t_);
  }

 private:
  static constexpr int kRowPieces = kColumns / 8, kApart = kWarp / kRowPieces, kPieces = kGroup / kApart;

  std::byte* ring_;
  const std::byte* at_ = nullptr;
  int lane_, g_, t_, k_end_ = 0, columns_ = 0;
  int written_ = 0, read_ = 0;  // bytes of the ring before the stage
  const std::uint16_t* from_[kPieces];
};

// A part's rows as the sets have them, from set to set.
struct SetCursor {
  int set = 0, part = 0, part_end = 0;  // the first set of the next part
  // Whether this is another part.
  __device__ bool move_to(int to, const StreamArgs& args) {
    set = to;
    if (to < part_end) return false;
    while (part + 1 < args.num_parts && to >= args.parts[part + 1].first_tile) ++part;
    part_end = part + 1 < args.num_parts ? args.parts[part + 1].first_tile : args.sets;
    return true;
  }
  __device__ int first_row(const StreamArgs& args) const { return (set - args.parts[part].first_tile) * args.set_rows; }
  // All its rows are the part's.
  __device__ bool is_whole(const StreamArgs& args) const {
    return first_row(args) + args.set_rows <= args.parts[part].n;
  }
};

// Four inputs in the order of a reader's weights.
template <class Reader>
__device__ uint2 in_order(unsigned low, unsigned high) {
  if constexpr (Reader::kCrossed) return make_uint2(__byte_perm(low, high, 0x5410), __byte_perm(low, high, 0x7632));
  return make_uint2(low, high);
}

// All inputs to shared memory as bf16, zeros past k. A thread has several reads under way, of whichever rows.
template <class Form, bool IsRounded>
__device__ void stage_all(const StreamArgs& args, unsigned* to) {
  using Reader = typename Form::Reader;
  constexpr int kAtOnce = 2, kThreads = Form::kThreads;
  const Part& part = args.parts[0];
  const int k = part.k, row_words = stream_row_words(k), eights = (row_words - 16) / 4, all = part.rows * eights;
  for (int first = static_cast<int>(threadIdx.x); first < all; first += kAtOnce * kThreads) {
    uint4 rounded[kAtOnce];
    float4 low[kAtOnce], high[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kThreads, m = i / eights, at = (i - m * eights) * 8;
      rounded[j] = make_uint4(0, 0, 0, 0), low[j] = high[j] = make_float4(0, 0, 0, 0);
      if (i >= all || at >= k) continue;
      if constexpr (IsRounded) {
        rounded[j] = *reinterpret_cast<const uint4*>(args.rounded + static_cast<std::int64_t>(m) * k + at);
      } else {
        const std::int64_t row = part.in_rows != nullptr ? part.in_rows[m] : m;
        const auto* from = reinterpret_cast<const float4*>(part.x + row * k + at);
        low[j] = from[0], high[j] = from[1];
      }
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kThreads, m = i / eights, at = (i - m * eights) * 8;
      if (i >= all) continue;
      if constexpr (!IsRounded) {
        rounded[j] = make_uint4(to_bf16_pair(low[j].x, low[j].y), to_bf16_pair(low[j].z, low[j].w),
                                to_bf16_pair(high[j].x, high[j].y), to_bf16_pair(high[j].z, high[j].w));
      }
      const uint2 begin = in_order<Reader>(rounded[j].x, rounded[j].y),
                  end = in_order<Reader>(rounded[j].z, rounded[j].w);
      *reinterpret_cast<uint4*>(to + m * row_words + at / 2) = make_uint4(begin.x, begin.y, end.x, end.y);
    }
  }
}

// A set's sums, from its runs in their order, to the outputs, by one warp.
template <bool HasFactor>
__device__ void put_set(const StreamArgs& args, const SetCursor& at, const float* sums, float reader_factor) {
  const Part& part = args.parts[at.part];
  const int first = at.first_row(args), row_bits = 31 - __clz(args.set_rows), run_apart = part.rows * kSumWidth;
  float factor = 1;
  if constexpr (HasFactor) factor = reader_factor * tensor_scale_of(part.weight, 0);
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < part.rows << row_bits; i += kWarp) {
    const int m = i >> row_bits, n = i & (args.set_rows - 1);
    if (first + n >= part.n) continue;
    const float* from = sums + n / kGroup * args.splits * run_apart + m * kSumWidth + n % kGroup;
    float each[kRuns];
#pragma unroll
    for (int r = 0; r < kRuns; ++r) each[r] = r < args.splits ? from[r * run_apart] : 0.0F;
    float total = each[0];
#pragma unroll
    for (int r = 1; r < kRuns; ++r) total = r < args.splits ? total + each[r] : total;
    if constexpr (HasFactor) total *= factor;
    part.out[static_cast<std::int64_t>(m) * part.n + first + n] = total;
  }
}

// What a warp has of a product: a run of columns of some rows of every kTeams'th set, from the first on.
struct Share {
  int first_set, end_set, first_row;  // the row in a set
  int k_begin, k_end;
};
template <class Form>
__device__ Share share_of(const StreamArgs& args, int warp) {
  const auto blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
  // The first blocks have a set more, if it does not come out even.
  const int each = args.sets / blocks, more = args.sets % blocks, first = block * each + min(block, more);
  const int mate = warp % kRuns, k = args.parts[0].k, run = run_of(k, args.splits);
  const int k_begin = min(mate % args.splits * run, k);
  return {.first_set = first + warp / kRuns,
          .end_set = first + each + (block < more ? 1 : 0),
          .first_row = mate / args.splits * kGroup,
          .k_begin = k_begin,
          .k_end = min(k_begin + run, k)};
}

// A warp's copies: some stages ahead of what it reads, and so maybe in a later set.
template <class Form>
class CopiesAhead {
  using Reader = typename Form::Reader;

 public:
  __device__ CopiesAhead(const StreamArgs& args, const Share& share, Reader& reader)
      : args_(args), share_(share), reader_(reader), at_{.set = share.first_set - Form::kTeams}, k_(share.k_end) {}
  __device__ void next() {
    if (k_ >= share_.k_end && share_.k_begin < share_.k_end && at_.set + Form::kTeams < share_.end_set) turn();
    reader_.copy(k_);
    commit_copies();
    k_ += Reader::kColumns;
  }

 private:
  __device__ void turn() {
    const bool is_first = at_.set < share_.first_set, is_other = at_.move_to(at_.set + Form::kTeams, args_);
    const Part& part = args_.parts[at_.part];
    if (is_first || is_other || !at_.is_whole(args_)) {
      reader_.aim_copies(part.weight, 0, at_.first_row(args_) + share_.first_row, part.n);
    } else {
      reader_.advance_copies(part.weight, Form::kTeams * args_.set_rows);
    }
    k_ = share_.k_begin;
  }
  const StreamArgs& args_;
  const Share& share_;
  Reader& reader_;
  SetCursor at_;
  int k_;
};

// Where a team's warps leave the sums of their runs, and one of them, each in its turn, adds them up while the others
// are in the next set.
template <class Form>
class TeamSums {
 public:
  __device__ TeamSums(std::byte* room, int rows, int team)
      : rows_(rows),
        made_(reinterpret_cast<std::uint64_t*>(room) + team * kSumSlots),
        added_(made_ + Form::kTeams * kSumSlots),
        sums_(reinterpret_cast<float*>(room + kBarrierBytes) + team * kSumSlots * set_floats()) {}
  // What lies behind them.
  static __device__ unsigned* end(std::byte* room, int rows) {
    return reinterpret_cast<unsigned*>(room + kBarrierBytes) + Form::kTeams * kSumSlots * kRuns * rows * kSumWidth;
  }
  __device__ void begin(int mate, int lane) {
    if (lane == 0 && mate < kSumSlots) begin_barrier(&made_[mate], kRuns * kWarp), begin_barrier(&added_[mate], kWarp);
  }
  // The team's sets are counted by `turn`.
  template <bool HasFactor>
  __device__ void hand_over(const StreamArgs& args, int set, int turn, int mate, const float (&sum)[4]) {
    const int lane = threadIdx.x % kWarp, slot = turn % kSumSlots, parity = turn / kSumSlots & 1;
    float* set_sums = sums_ + slot * set_floats();
    if (turn >= kSumSlots) wait_at(&added_[slot], parity ^ 1);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int m = 2 * (lane % 4) + c % 2;
      if (m < rows_) set_sums[(mate * rows_ + m) * kSumWidth + lane / 4 + c / 2 * kRowsEach] = sum[c];
    }
    arrive_at(&made_[slot]);
    if (turn % kRuns != mate) return;
    wait_at(&made_[slot], parity);
    SetCursor at{};
    at.move_to(set, args);
    put_set<HasFactor>(args, at, set_sums, Form::Reader::kFactor);
    arrive_at(&added_[slot]);
  }

 private:
  static constexpr int kBarrierBytes = 2 * Form::kTeams * kSumSlots * 8;
  __device__ int set_floats() const { return kRuns * rows_ * kSumWidth; }
  int rows_;
  std::uint64_t *made_, *added_;
  float* sums_;
};

template <class Form, bool HasFactor>
__global__ void __launch_bounds__(Form::kThreads, 2) multiply_stream(__grid_constant__ const StreamArgs args) {
  let_next_in();
  extern __shared__ __align__(16) unsigned shared[];
  using Reader = typename Form::Reader;
  constexpr int kColumns = Reader::kColumns, kTeams = Form::kTeams;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, mate = warp % kRuns;
  const int rows = args.parts[0].rows, row_words = stream_row_words(args.parts[0].k);
  const Share share = share_of<Form>(args, warp);
  auto* rings = reinterpret_cast<std::byte*>(shared);
  std::byte* sum_room = rings + Form::kWarps * Reader::kRingBytes;
  TeamSums<Form> sums(sum_room, rows, warp / kRuns);
  unsigned* inputs = TeamSums<Form>::end(sum_room, rows);
  sums.begin(mate, lane);

  Reader reader(rings + warp * Reader::kRingBytes, lane);
  reader.begin_copies(share.k_end);
  CopiesAhead<Form> ahead(args, share, reader);
#pragma unroll 1
  for (int i = 0; i + 1 < Reader::kStages; ++i) ahead.next();
  SetCursor at;
  const auto turn_scales = [&](int set) {
    if (set >= share.end_set) return;
    const bool is_other = at.move_to(set, args);
    const Part& part = args.parts[at.part];
    reader.turn_scales(part.weight, at.first_row(args) + share.first_row, part.n, is_other, share.k_begin);
  };
  turn_scales(share.first_set);

  wait_for_before();
  if (args.rounded != nullptr) {
    stage_all<Form, true>(args, inputs);
  } else {
    stage_all<Form, false>(args, inputs);
  }
  __syncthreads();
  const unsigned* first_input = inputs + min(lane / 4, rows - 1) * row_words + share.k_begin / 2 + 4 * (lane % 4);
  for (int set = share.first_set, turn = 0; set < share.end_set; set += kTeams, ++turn) {
    float sum[4] = {};
    const unsigned* input = first_input;
    for (int k = share.k_begin; k < share.k_end; k += kColumns, input += kColumns / 2) {
      wait_for_copies<Reader::kStages - 2>();
      __syncwarp();
      ahead.next();
      reader.open(k);
      if (k + kColumns >= share.k_end) turn_scales(set + kTeams);
#pragma unroll
      for (int u = 0; u < kColumns / kStep; ++u) {
        uint4 w[2];
        reader.take(u, k + u * kStep, w);
        const uint4 x = *reinterpret_cast<const uint4*>(input + u * kStep / 2);
        mma(sum, w[0].x, w[1].x, w[0].y, w[1].y, x.x, x.y);
        mma(sum, w[0].z, w[1].z, w[0].w, w[1].w, x.z, x.w);
      }
    }
    sums.template hand_over<HasFactor>(args, set, turn, mate, sum);
  }
}

// Parts of one input, in the first of the forms whose rings fit beside it.
template <bool HasFactor, class Form, class... Others>
void launch_stream(Stream& s, StreamArgs args) {
  const Part& first = args.parts[0];
  if constexpr (sizeof...(Others) > 0) {
    if (!fits_stream<Form>(first.rows, first.k)) return launch_stream<HasFactor, Others...>(s, args);
  }
  args.set_rows = kGroup * kRuns / args.splits, args.sets = 0;
  for (int i = 0; i < args.num_parts; ++i) {
    args.parts[i].first_tile = args.sets;
    args.sets += (args.parts[i].n + args.set_rows - 1) / args.set_rows;
  }
  allow_shared<multiply_stream<Form, HasFactor>, kMostShared>();
  const int blocks = std::min(s.cuda().facts().num_sms, args.sets);
  launch(s, "linear", {dim3(static_cast<unsigned>(blocks)), Form::kThreads, stream_bytes<Form>(first.rows, first.k)},
         multiply_stream<Form, HasFactor>, args);
}

}  // namespace rondo::cuda::product
