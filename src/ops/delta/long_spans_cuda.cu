// delta_net where a span is long, a prompt's: the bits of step_states (delta_cuda.cu), whose operations these are in
// their order, but nobody waits for anybody at a row. What a row needs besides the state is made for all rows at once;
// then the rows go over the state; then what came out is normed, all rows at once.
//
// The state: four lanes of a warp have two columns, each lane every fourth row of them. So what the four have summed
// up meets by shuffles, and the warps of a block share nothing but the rows they read, some of which are under way
// while others are worked on.
#include <algorithm>
#include <cstddef>

#include "ops/common/launch.cuh"
#include "ops/delta/long_spans.cuh"

namespace rondo::cuda {

using namespace stepping;

namespace {

constexpr int kSize = 128;  // of a head's keys and values
static_assert(kSize == kMaxKeyDim && kSize == kColumns);

// What the rows need besides the state, of a whole batch.
struct Prepared {
  float* u;       // [rows, q^ | k^ | v]; of q^ and k^ element i of a head lies at place_of_key(i)
  float2* heads;  // [rows, v_heads] decay and beta
  const std::int32_t* span_of_row;
  int rows;
  int longest;  // of the spans
};

// The elements that a thread of the recurrence has lie next to each other.
__device__ inline int place_of_key(int i) { return i % kSums * kRowsEach + i / kSums; }

// A block has one head's q, k or v of so many rows, a thread one channel of them.
constexpr int kTile = 16;

// Input t of a span's channel, t down to -past.
__device__ float input_of(const DeltaArgs& a, const NetArgs& n, const RowSpan& span, int t, int channel) {
  const std::int64_t channels = channels_of(a), slot = span.slot;
  if (t >= 0) return a.u[(span.begin + t) * channels + channel];
  if (span.start_pos == 0) return 0;
  const int from = n.past + t + span.fold;
  return from < n.past ? n.history[(slot * n.past + from) * channels + channel]
                       : n.log[(slot * n.log_rows + from - n.past) * channels + channel];
}

// The tile's rows of a channel, convolved in place.
__device__ void convolve_tile(const DeltaArgs& a, const NetArgs& n, const Prepared& to, int first, int count,
                              int channel, const float (&weights)[kMaxPast + 1], float (&x)[kTile]) {
  float past[kMaxPast];
  int end = first;  // of the span at hand
#pragma unroll
  for (int i = 0; i < kTile; ++i) {
    if (i >= count) break;
    if (first + i == end) {
      const RowSpan span = a.spans[to.span_of_row[end]];
#pragma unroll
      for (int j = 0; j < kMaxPast; ++j) {
        const int back = kMaxPast - j;
        past[j] = back <= n.past ? input_of(a, n, span, end - span.begin - back, channel) : 0.0F;
      }
      end = span.begin + span.count;
    }
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kMaxPast; ++j) sum = fmaf(weights[j], past[j], sum);
    sum = fmaf(weights[kMaxPast], x[i], sum);
#pragma unroll
    for (int j = 0; j + 1 < kMaxPast; ++j) past[j] = past[j + 1];
    past[kMaxPast - 1] = x[i];
    x[i] = silu(sum);
  }
}

// Grid: heads of q, of k, of v; tiles of rows. The next kernel is not let in before the end: its few blocks are to find
// every SM empty, and not to share the first that has room.
__global__ void __launch_bounds__(kSize) prepare_rows(DeltaArgs a, NetArgs n, Prepared to) {
  __shared__ float squares[kTile][kSize / kWarp];
  const int group = blockIdx.x, element = threadIdx.x, channel = group * kSize + element;
  const int first = blockIdx.y * kTile, count = min(kTile, to.rows - first);
  float weights[kMaxPast + 1];  // shorter kernels have zeros in front
#pragma unroll
  for (int j = 0; j <= kMaxPast; ++j) {
    const int tap = j - (kMaxPast - n.past);
    weights[j] = tap >= 0 ? n.weight[static_cast<std::int64_t>(tap) * channels_of(a) + channel] : 0.0F;
  }
  wait_for_before();
  float mine[kTile];
  const float* in = a.u + first * static_cast<std::int64_t>(channels_of(a)) + channel;
#pragma unroll
  for (int i = 0; i < kTile; ++i) mine[i] = i < count ? in[static_cast<std::int64_t>(i) * channels_of(a)] : 0.0F;
  convolve_tile(a, n, to, first, count, channel, weights, mine);
  float* out = to.u + first * static_cast<std::int64_t>(channels_of(a)) + group * kSize;
  if (group >= 2 * a.k_heads) {
    for (int i = 0; i < count; ++i) out[static_cast<std::int64_t>(i) * channels_of(a) + element] = mine[i];
    const int head = group - 2 * a.k_heads;
    if (element < count) {
      const std::int64_t at = static_cast<std::int64_t>(first + element) * a.v_heads + head;
      to.heads[at] =
          make_float2(decay_of(a.a[at], a.dt_bias[head], a.decay_rate[head]), 1.0F / (1.0F + expf(-a.b[at])));
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kTile; ++i) {
    const float sum = warp_sum(__fmul_rn(mine[i], mine[i]));
    if (element % kWarp == 0) squares[i][element / kWarp] = sum;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kTile; ++i) {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kSize / kWarp; ++j) sum += squares[i][j];
    const float normed = mine[i] * ((group < a.k_heads ? a.q_scale : 1.0F) / sqrtf(sum + 1e-6F));
    if (i < count) out[static_cast<std::int64_t>(i) * channels_of(a) + place_of_key(element)] = normed;
  }
}

// The recurrence. A block has kPart columns of a head.
constexpr int kPart = 64, kPartsEach = kSize / kPart;
constexpr int kScanThreads = 128, kColumnsOfWarp = kPart / (kScanThreads / kWarp);
constexpr int kStage = 8;  // rows brought in together

struct alignas(16) Row {
  Keys q, k;
  float value[kPart];
  float2 head;  // decay and beta
};
struct ScanRoom {
  Row rows[2][kStage];
  float answer[kStage][kSums][kPart];
};

// Where a thread stands: the first of its two columns of the block's, and which rows of the state it has.
struct Lane {
  int head, part, sum, column;

  __device__ std::int64_t column_of_head() const { return part * kPart + column; }
};
__device__ Lane lane_of() {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  return {static_cast<int>(blockIdx.x) / kPartsEach, static_cast<int>(blockIdx.x) % kPartsEach, lane / (kWarp / kSums),
          warp * kColumnsOfWarp + lane % (kWarp / kSums) * 2};
}

using State = float[kRowsEach][2];

template <class Visit>
__device__ void for_stored(State& state, const DeltaArgs& a, int slot, const Lane& at, Visit visit) {
  float* first = a.memory + (static_cast<std::int64_t>(slot) * a.v_heads + at.head) * kSize * kSize + at.sum * kSize +
                 at.column_of_head();
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) visit(state[r], *reinterpret_cast<float2*>(first + r * kSums * kSize));
}

// What a thread brings of each row: from where in row 0 of the batch to where in a Row.
struct Errand {
  const float* from;
  std::int64_t row_stride;
  int to, bytes;
};
__device__ Errand errand_of(const DeltaArgs& a, const Prepared& from, const Lane& at) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, keys = a.k_heads * kSize;
  const int key = at.head / (a.v_heads / a.k_heads) * kSize, to = lane / 8 * (kRowsEach + 8) + lane % 8 * 4;
  const int channels = channels_of(a), floats = static_cast<int>(sizeof(float));
  const int value = 2 * keys + at.head * kSize + at.part * kPart;
  if (warp == 0) return {from.u + key + lane * 4, channels, static_cast<int>(offsetof(Row, q)) + to * floats, 16};
  if (warp == 1)
    return {from.u + keys + key + lane * 4, channels, static_cast<int>(offsetof(Row, k)) + to * floats, 16};
  if (warp == 2 && lane < kPart / 4)
    return {from.u + value + lane * 4, channels, static_cast<int>(offsetof(Row, value)) + lane * 16, 16};
  const float* head = reinterpret_cast<const float*>(from.heads + at.head);
  if (warp == 3 && lane == 0) return {head, 2 * a.v_heads, static_cast<int>(offsetof(Row, head)), 8};
  return {};
}
// The rows from `row` on are under way.
__device__ void bring_rows(const Errand& errand, int row, int count, Row* rows) {
  const float* from = errand.from + row * errand.row_stride;
  char* to = reinterpret_cast<char*>(rows) + errand.to;
#pragma unroll
  for (int i = 0; i < kStage; ++i, from += errand.row_stride, to += sizeof(Row)) {
    if (i < count && errand.bytes == 16) copy_async<16>(to, from);
    if (i < count && errand.bytes == 8) copy_async<8>(to, from);
  }
}

// The logged rows of the last span go into the state, a stage of them at a time.
__device__ void fold_logged(const DeltaArgs& a, const RowSpan& span, const Lane& at, State& state, Row* rows) {
  for (int first = 0; first < span.fold; first += kStage) {
    const int count = min(kStage, span.fold - first), element = threadIdx.x;
    for (int f = 0; f < count; ++f) {
      const std::int64_t log = (static_cast<std::int64_t>(span.slot) * a.log_rows + first + f) * a.v_heads + at.head;
      rows[f].k[element] = a.key_log[log * kSize + element];
      if (element < kPart) rows[f].value[element] = a.delta_log[log * kSize + at.part * kPart + element];
      if (element == f) rows[f].head.x = a.decay_log[log];
    }
    __syncthreads();
    for (int f = 0; f < count; ++f) {
      const float decay = rows[f].head.x;
      const float2 delta = *reinterpret_cast<const float2*>(&rows[f].value[at.column]);
#pragma unroll
      for (int r = 0; r < kRowsEach; ++r) {
        const float k = rows[f].k.of[at.sum][r];
        state[r][0] = __fmaf_rn(k, delta.x, __fmul_rn(decay, state[r][0]));
        state[r][1] = __fmaf_rn(k, delta.y, __fmul_rn(decay, state[r][1]));
      }
    }
    __syncthreads();
  }
}

// What the four lanes of a column have, put together.
__device__ inline float over_lanes(float mine) {
  constexpr int kEach = kWarp / kSums;
  const int first = threadIdx.x % kEach;
  const auto of = [&](int sum) { return __shfl_sync(0xFFFFFFFFu, mine, sum * kEach + first); };
  const float s0 = of(0), s1 = of(1), s2 = of(2), s3 = of(3);
  return ((s0 + s1) + s2) + s3;
}

// What of a row the state meets first: it is read while the row before ends.
struct Ahead {
  float keys[kRowsEach];
  float2 head, value;

  __device__ void read_keys(const Row& row, const Lane& at, int r) {
    const float4 k = row.k.four(at.sum, r);
    keys[r] = k.x, keys[r + 1] = k.y, keys[r + 2] = k.z, keys[r + 3] = k.w;
  }
  __device__ void read_rest(const Row& row, const Lane& at) {
    head = row.head, value = *reinterpret_cast<const float2*>(&row.value[at.column]);
  }
};

// One row over the state; gives delta. `ahead` is the row's, and becomes that of `next`.
__device__ __forceinline__ float2 step(State& state, const Lane& at, const Row& row, const Row& next, Ahead& ahead,
                                       float (&answers)[kSums][kPart]) {
  float read[2] = {}, answer[2] = {};
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      state[r][c] = __fmul_rn(ahead.head.x, state[r][c]);
      read[c] = __fmaf_rn(ahead.keys[r], state[r][c], read[c]);
    }
  }
  const float delta[2] = {__fmul_rn(ahead.head.y, __fsub_rn(ahead.value.x, over_lanes(read[0]))),
                          __fmul_rn(ahead.head.y, __fsub_rn(ahead.value.y, over_lanes(read[1])))};
  ahead.read_rest(next, at);
#pragma unroll
  for (int r = 0; r < kRowsEach; r += 4) {
    const float4 q = row.q.four(at.sum, r);
    const float queries[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        state[r + j][c] = __fmaf_rn(ahead.keys[r + j], delta[c], state[r + j][c]);
        answer[c] = __fmaf_rn(queries[j], state[r + j][c], answer[c]);
      }
    }
    ahead.read_keys(next, at, r);
  }
  *reinterpret_cast<float2*>(&answers[at.sum][at.column]) = make_float2(answer[0], answer[1]);
  return make_float2(delta[0], delta[1]);
}

// What folding a draft will need and is known here alone.
__device__ void log_delta(const DeltaArgs& a, const RowSpan& span, const Lane& at, int t, float2 delta) {
  const std::int64_t to = (static_cast<std::int64_t>(span.slot) * a.log_rows + t - span.certain) * a.v_heads + at.head;
  if (at.sum == 0) *reinterpret_cast<float2*>(a.delta_log + to * kSize + at.column_of_head()) = delta;
}

// The answers of a warp's columns: not normed yet.
__device__ void put_answers(const DeltaArgs& a, const Lane& at, int row, int count,
                            const float (&answers)[kStage][kSums][kPart]) {
  static_assert(kStage * kColumnsOfWarp == 4 * kWarp);
  __syncwarp();
  const int lane = threadIdx.x % kWarp, i = lane / (kColumnsOfWarp / 4);
  const int column = threadIdx.x / kWarp * kColumnsOfWarp + lane % (kColumnsOfWarp / 4) * 4;
  if (i >= count) return;
  float x[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const auto of = [&](int sum) { return answers[i][sum][column + j]; };
    x[j] = ((of(0) + of(1)) + of(2)) + of(3);
  }
  float* to = a.out + (static_cast<std::int64_t>(row + i) * a.v_heads + at.head) * kSize + at.part * kPart + column;
  *reinterpret_cast<float4*>(to) = make_float4(x[0], x[1], x[2], x[3]);
}

// The channels' inputs move on as in conv_cuda.cu, a thread having one. In place: what is read stands behind what is
// written.
__device__ void keep_past(const DeltaArgs& a, const NetArgs& n, const RowSpan& span) {
  const int channels = channels_of(a), threads = a.v_heads * kPartsEach * kScanThreads;
  for (int c = blockIdx.x * kScanThreads + threadIdx.x; c < channels; c += threads) {
    float past[kMaxPast];
#pragma unroll
    for (int i = 0; i < kMaxPast; ++i) past[i] = i < n.past ? input_of(a, n, span, span.certain + i - n.past, c) : 0.0F;
#pragma unroll
    for (int i = 0; i < kMaxPast; ++i) {
      if (i < n.past) n.history[(static_cast<std::int64_t>(span.slot) * n.past + i) * channels + c] = past[i];
    }
    for (int t = span.certain; t < span.count; ++t) {
      n.log[(static_cast<std::int64_t>(span.slot) * n.log_rows + t - span.certain) * channels + c] =
          a.u[static_cast<std::int64_t>(span.begin + t) * channels + c];
    }
  }
}

// Grid: parts of V heads; spans, the longest first, as the others pass beside it.
__global__ void __launch_bounds__(kScanThreads, 3) scan_states(DeltaArgs a, NetArgs n, Prepared from) {
  let_next_in();
  __shared__ ScanRoom room;
  const Lane at = lane_of();
  const Errand errand = errand_of(a, from, at);
  wait_for_before();
  const int number = blockIdx.y;
  const RowSpan span = a.spans[number == 0 ? from.longest : number <= from.longest ? number - 1 : number];
  State state = {};
  if (span.start_pos > 0) {
    for_stored(state, a, span.slot, at, [](float(&s)[2], const float2& stored) { s[0] = stored.x, s[1] = stored.y; });
  }
  const auto keep = [&] {
    for_stored(state, a, here(span.slot), at, [](float(&s)[2], float2& stored) { stored = make_float2(s[0], s[1]); });
  };
  fold_logged(a, span, at, state, room.rows[0]);
  bring_rows(errand, span.begin, min(kStage, span.count), room.rows[0]);
  commit_copies();
  keep_past(a, n, span);
  if (span.certain == 0) keep();
  for (int first = 0; first < span.count; first += kStage) {
    Row* rows = room.rows[first / kStage % 2];
    const int count = min(kStage, span.count - first), next = first + kStage;
    wait_for_copies<0>();
    __syncthreads();  // the rows are there, and nobody reads the last ones any more
    bring_rows(errand, span.begin + next, span.count - next, room.rows[next / kStage % 2]);
    commit_copies();
    Ahead ahead;
#pragma unroll
    for (int r = 0; r < kRowsEach; r += 4) ahead.read_keys(rows[0], at, r);
    ahead.read_rest(rows[0], at);
    for (int i = 0; i < count; ++i) {
      const float2 delta = step(state, at, rows[i], rows[min(i + 1, count - 1)], ahead, room.answer[i]);
      const int t = first + i;
      if (t >= span.certain) log_delta(a, span, at, t, delta);
      if (t + 1 == span.certain) keep();
    }
    put_answers(a, at, span.begin + first, count, room.answer);
  }
}

constexpr int kNormThreads = 256;

// What folding a draft will need besides its delta: logged when every block has folded the last span's.
__device__ void log_key(const DeltaArgs& a, const Prepared& from, int row, int head) {
  const RowSpan& span = a.spans[from.span_of_row[row]];
  const int lane = threadIdx.x % kWarp, draft = row - span.begin - span.certain;
  if (draft < 0) return;
  const std::int64_t to = (static_cast<std::int64_t>(span.slot) * a.log_rows + draft) * a.v_heads + head;
  const float* keys =
      from.u + static_cast<std::int64_t>(row) * channels_of(a) + (a.k_heads + head / (a.v_heads / a.k_heads)) * kSize;
  for (int i = lane; i < kSize; i += kWarp) a.key_log[to * kSize + i] = keys[place_of_key(i)];
  if (lane == 0) a.decay_log[to] = from.heads[static_cast<std::int64_t>(row) * a.v_heads + head].x;
}

// A warp norms one head of one row, in place.
__global__ void __launch_bounds__(kNormThreads) norm_heads(DeltaArgs a, NetArgs n, Prepared from) {
  let_next_in();
  const int unit = blockIdx.x * (kNormThreads / kWarp) + threadIdx.x / kWarp, d = threadIdx.x % kWarp * 4;
  const float4 gain = *reinterpret_cast<const float4*>(n.gain + d);
  wait_for_before();
  if (unit >= from.rows * a.v_heads) return;
  log_key(a, from, unit / a.v_heads, unit % a.v_heads);
  float4& out = *reinterpret_cast<float4*>(a.out + static_cast<std::int64_t>(unit) * kSize + d);
  const float4 four = out, z = *reinterpret_cast<const float4*>(n.z + static_cast<std::int64_t>(unit) * kSize + d);
  float x[4] = {four.x, four.y, four.z, four.w}, squares = 0;
  const float gains[4] = {gain.x, gain.y, gain.z, gain.w}, gates[4] = {z.x, z.y, z.z, z.w};
#pragma unroll
  for (int j = 0; j < 4; ++j) squares = fmaf(x[j], x[j], squares);
  const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(kSize) + n.eps);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    x[j] *= scale * gains[j];
    x[j] *= n.sigmoid_gate ? sigmoid(gates[j]) : silu(gates[j]);
  }
  out = make_float4(x[0], x[1], x[2], x[3]);
}

}  // namespace

bool has_long_spans(DeltaSpec spec, std::span<const RowSpan> spans) {
  constexpr int kLong = 16;  // rows: more than a window has
  return spec.k_dim == kSize && spec.v_dim == kSize &&
         std::any_of(spans.begin(), spans.end(), [](const RowSpan& span) { return span.count >= kLong; });
}

void delta_net_of_long_spans(Stream& s, const RowSpans& rows, const DeltaArgs& args, const NetArgs& net, Tensor u,
                             Tensor heads) {
  const std::span<const RowSpan> spans = rows.host;
  int end = 0;
  for (const RowSpan& span : spans) end = std::max(end, span.begin + span.count);
  const auto longest = std::max_element(spans.begin(), spans.end(),
                                        [](const RowSpan& x, const RowSpan& y) { return x.count < y.count; });
  const Prepared prepared{u.f32(), reinterpret_cast<float2*>(heads.f32()), rows.span_of_row, end,
                          static_cast<int>(longest - spans.begin())};
  const auto blocks = [](int of, int each) { return static_cast<unsigned>((of + each - 1) / each); };
  const dim3 tiles(static_cast<unsigned>(2 * args.k_heads + args.v_heads), blocks(end, kTile));
  launch(s, "delta_net_rows", {tiles, kSize}, prepare_rows, args, net, prepared);
  const dim3 parts(static_cast<unsigned>(args.v_heads * kPartsEach), static_cast<unsigned>(spans.size()));
  launch(s, "delta_net_scan", {parts, kScanThreads}, scan_states, args, net, prepared);
  launch(s, "delta_net_norm", {blocks(end * args.v_heads, kNormThreads / kWarp), kNormThreads}, norm_heads, args, net,
         prepared);
}

}  // namespace rondo::cuda
