// Which kernel multiplies which part, and in which launch. All sum in the same order, so which one it is may depend on
// what a launch has:
//
//   multiply_stream.cuh  up to eight inputs, large weights
//   multiply_few.cuh     small plain weights, up to 64 inputs
//   multiply_wide.cuh    more inputs
//   multiply_tall.cuh    a prompt's
//   multiply.cuh         experts; weights of other shapes and formats; inputs that differ from part to part
#include <algorithm>
#include <optional>

#include "ops/common/launch.cuh"
#include "ops/linear/linear_cuda.h"
#include "ops/linear/multiply_coded.cuh"
#include "ops/linear/multiply_few.cuh"

namespace rondo::cuda {

using namespace product;

namespace {

// How rounded inputs lie: in rows, or as multiply_tall takes them, for weights that are as they are or crossed
// (weight_readers.cuh).
enum class Order { Plain, Tall, TallCrossed };

// Inputs, gathered and rounded.
__global__ void round_inputs(const float* x, const std::int32_t* in_rows, InputStep step, Order order,
                             std::uint16_t* to, int k) {
  after_all_before();
  const auto row = static_cast<std::int64_t>(blockIdx.y);
  const std::int64_t from = (in_rows != nullptr ? in_rows[row] : row) * k;
  const int at = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (at >= k) return;
  float v[4];
  if (step.silu_scale == 0) {
    read_four<true>(x + from + at, 4, v);
  } else {
    read_stepped<true>(x + from + at, 4, step, v);
  }
  const bool crossed = order == Order::TallCrossed;
  const uint2 four = make_uint2(to_bf16_pair(v[0], crossed ? v[2] : v[1]), to_bf16_pair(crossed ? v[1] : v[2], v[3]));
  if (order == Order::Plain) {
    *reinterpret_cast<uint2*>(to + row * k + at) = four;
    return;
  }
  // Columns 8 t .. 8 t + 3 of a step are columns 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of its first instruction, the next
  // four those of its second.
  const int column = at / kStep * kStep + at % 8 / 4 * 16 + at % kStep / 8 * 2;
  *reinterpret_cast<unsigned*>(to + tall_at(row, k, column)) = four.x;
  *reinterpret_cast<unsigned*>(to + tall_at(row, k, column + 8)) = four.y;
}

// The kernels a part can go to. Of one launch all go to one.
enum class Kernel { Plain, Any, Fp8, Fp8Blocks, Nvfp4, Affine4, Affine6, Affine8 };

bool is_at(const void* address, std::uintptr_t multiple) {
  return reinterpret_cast<std::uintptr_t>(address) % multiple == 0;
}

// Rounds are whole: of a row, and of each of the runs it is split into.
bool has_whole_rounds(std::int64_t k, int splits) {
  return k % kRound == 0 && (splits == 1 || run_of(static_cast<int>(k), splits) % kRound == 0);
}

// Of a view whose rounds are whole: which CodedReader it goes to.
Kernel coded_kernel(const CodedView& view) {
  // A lane reads a block's scale by itself; other scales are copied four bytes at a time.
  const std::uintptr_t scale_at = view.format != WeightFormat::Fp8 ? 4 : view.scale_type == ScaleType::F32 ? 4 : 2;
  if (!has_gpu_kernel(view) || !is_at(view.scales, scale_at) || !is_at(view.biases, scale_at)) return Kernel::Any;
  switch (view.format) {
    case WeightFormat::Fp8: return view.scale_type == ScaleType::None ? Kernel::Fp8 : Kernel::Fp8Blocks;
    case WeightFormat::Nvfp4: return Kernel::Nvfp4;
    default: return view.bits == 4 ? Kernel::Affine4 : view.bits == 6 ? Kernel::Affine6 : Kernel::Affine8;
  }
}

Kernel kernel_of(const PartWeight& weight, const void* x, int splits) {
  const CodedView& view = weight.view;
  if (!is_at(x, 16) || !is_at(view.codes, 16) || weight.codes_stride % 16 != 0) return Kernel::Any;
  if (view.format == WeightFormat::Bf16) return view.columns % 8 == 0 ? Kernel::Plain : Kernel::Any;
  if (!has_whole_rounds(view.columns, splits) || weight.scales_stride % 4 != 0) return Kernel::Any;
  return coded_kernel(view);
}

int tiles_of(std::int64_t n, int tile) { return static_cast<int>((n + tile - 1) / tile); }

// The runs that a weight's columns are cut into, a function of its shape alone: as many as a block of multiply_stream
// has warps, but each worth its while.
int splits_of(std::int64_t k) { return k >= 2048 ? 8 : k >= 1024 ? 4 : k >= 512 ? 2 : 1; }
// A row wants some eight experts at once, and a wide batch most of them: long runs pay then.
int expert_splits_of(std::int64_t n, std::int64_t k) { return (n + kTile - 1) / kTile < 16 && k >= 2048 ? 2 : 1; }

void launch_parts(Stream& s, Kernel kernel, const Args& args, const Launch& l) {
  switch (kernel) {
    case Kernel::Plain: return launch_by_rows<PlainReader<2, kUnroll>, false>(s, args, l);
    case Kernel::Any: return launch_narrow<AnyReader<2>, 2, false, true>(s, args, l);
    case Kernel::Fp8: return launch_coded<Code::Fp8>(s, args, l);
    case Kernel::Fp8Blocks: return launch_coded<Code::Fp8Blocks>(s, args, l);
    case Kernel::Nvfp4: return launch_coded<Code::Nvfp4>(s, args, l);
    case Kernel::Affine4: return launch_coded<Code::Affine4>(s, args, l);
    case Kernel::Affine6: return launch_coded<Code::Affine6>(s, args, l);
    case Kernel::Affine8: return launch_coded<Code::Affine8>(s, args, l);
  }
}

using DeepPlain = StreamForm<PlainRing<9>, 1>;
using SmallPlain = StreamForm<PlainRing<5>, 1>;

// Whether so many inputs of so many columns leave room for such weights.
bool has_room_to_stream(Kernel kernel, int rows, std::int64_t columns) {
  const auto k = static_cast<int>(columns);
  switch (kernel) {
    case Kernel::Plain: return fits_stream<SmallPlain>(rows, k);
    case Kernel::Any: return false;
    case Kernel::Fp8: return fits_stream<SmallForm<Code::Fp8>>(rows, k);
    case Kernel::Fp8Blocks: return fits_stream<SmallForm<Code::Fp8Blocks>>(rows, k);
    case Kernel::Nvfp4: return fits_stream<SmallForm<Code::Nvfp4>>(rows, k);
    case Kernel::Affine4: return fits_stream<SmallForm<Code::Affine4>>(rows, k);
    case Kernel::Affine6: return fits_stream<SmallForm<Code::Affine6>>(rows, k);
    case Kernel::Affine8: return fits_stream<SmallForm<Code::Affine8>>(rows, k);
  }
  return false;
}

// Parts of one input go there, of so many rows; inputs that become something else do so once, in the stream's room.
bool goes_to_stream(const Args& args, Kernel kernel) {
  const Part& first = args.parts[0];
  return has_room_to_stream(kernel, first.rows, first.k) &&
         std::all_of(args.parts, args.parts + args.num_parts, [&](const Part& part) {
           return part.x == first.x && part.in_rows == first.in_rows && part.k == first.k && part.rows == first.rows;
         });
}

void launch_round_inputs(Stream& s, const float* x, const std::int32_t* in_rows, InputStep step, Order order, int rows,
                         int k, std::uint16_t* to) {
  launch(s, "linear, rounding inputs",
         {dim3(static_cast<unsigned>((k / 4 + 255) / 256), static_cast<unsigned>(rows)), 256, 0}, round_inputs, x,
         in_rows, step, order, to, k);
}

void launch_stream_parts(Stream& s, Kernel kernel, const Args& args, int splits) {
  StreamArgs to{};
  std::copy(args.parts, args.parts + args.num_parts, to.parts);
  to.num_parts = args.num_parts, to.splits = splits;
  const Part& first = args.parts[0];
  if (args.step.silu_scale != 0) {
    auto* rounded = reinterpret_cast<std::uint16_t*>(s.cuda().room().data());
    launch_round_inputs(s, first.x, first.in_rows, args.step, Order::Plain, first.rows, first.k, rounded);
    to.rounded = rounded;
  }
  switch (kernel) {
    case Kernel::Plain: return launch_stream<false, DeepPlain, SmallPlain>(s, to);
    case Kernel::Any: break;
    case Kernel::Fp8: return launch_coded_stream<Code::Fp8>(s, to);
    case Kernel::Fp8Blocks: return launch_coded_stream<Code::Fp8Blocks>(s, to);
    case Kernel::Nvfp4: return launch_coded_stream<Code::Nvfp4>(s, to);
    case Kernel::Affine4: return launch_coded_stream<Code::Affine4>(s, to);
    case Kernel::Affine6: return launch_coded_stream<Code::Affine6>(s, to);
    case Kernel::Affine8: return launch_coded_stream<Code::Affine8>(s, to);
  }
  CHECK(false && "goes_to_stream() lets no such part through");
}

void launch_plain_wide(Stream& s, const WideArgs& args, const Launch& l) {
  if (l.rows <= 16) return launch_wide_tiles<PlainTiles<4>, 2, false>(s, args, l);
  if (l.rows <= 32) return launch_wide_tiles<PlainTiles<3>, 4, false>(s, args, l);
  if (!goes_tall(l.rows, args.parts[0].k)) return launch_wide_tiles<PlainTiles<3>, 8, false>(s, args, l);
  launch_tall<PlainRing<6>, false>(s, args, l);
}

void launch_wide_parts(Stream& s, Kernel kernel, const WideArgs& args, const Launch& l) {
  switch (kernel) {
    case Kernel::Plain: return launch_plain_wide(s, args, l);
    case Kernel::Any: break;
    case Kernel::Fp8: return launch_coded_wide<Code::Fp8>(s, args, l);
    case Kernel::Fp8Blocks: return launch_coded_wide<Code::Fp8Blocks>(s, args, l);
    case Kernel::Nvfp4: return launch_coded_wide<Code::Nvfp4>(s, args, l);
    case Kernel::Affine4: return launch_coded_wide<Code::Affine4>(s, args, l);
    case Kernel::Affine6: return launch_coded_wide<Code::Affine6>(s, args, l);
    case Kernel::Affine8: return launch_coded_wide<Code::Affine8>(s, args, l);
  }
  CHECK(false && "goes_wide() lets no such part through");
}

// Weights of a few MiB take as long as their latencies, one behind the other, and have a kernel of their own. A part
// beside larger ones goes with them, as a launch would cost it more.
template <class Arguments>
bool go_to_few(const Arguments& args, Kernel kernel, int splits) {
  constexpr std::int64_t kMostWeights = std::int64_t{4} << 20;
  return kernel == Kernel::Plain && std::all_of(args.parts, args.parts + args.num_parts, [&](const auto& part) {
           return static_cast<std::int64_t>(part.n) * part.k <= kMostWeights &&
                  stages_of(run_of(part.k, splits)) <= kMostStages;
         });
}

Part dense(const LinearPart& part) {
  return {.weight = {.view = part.weight.view},
          .x = part.x.f32(),
          .in_rows = part.in_rows,
          .out = part.out.f32(),
          .begin = nullptr,
          .n = static_cast<int>(part.weight.shape[0]),
          .k = static_cast<int>(part.weight.shape[1]),
          .rows = part.rows,
          .first_tile = 0};
}

// Parts of the same split and kernel share a launch.
class Launches {
 public:
  Launches(Stream& s, InputStep step, const std::int32_t* active, const std::int32_t* num_active, int experts)
      : stream_(s), active_(active), num_active_(num_active), experts_(experts) {
    args_.step = step;
  }
  void add(Part part, int splits) {
    const Kernel kernel = kernel_of(part.weight, part.x, splits);
    if (args_.num_parts == kMaxParts || (args_.num_parts > 0 && (splits != splits_ || kernel != kernel_))) flush();
    splits_ = splits, kernel_ = kernel;
    part.first_tile = tiles_;
    tiles_ += tiles_of(part.n, kTile);
    rows_ = std::max(rows_, part.rows);
    args_.parts[args_.num_parts++] = part;
  }
  void flush() {
    if (args_.num_parts == 0) return;
    args_.active = active_, args_.num_active = num_active_;
    if (experts_ == 0 && rows_ <= 8 && go_to_few(args_, kernel_, splits_)) {
      launch_few<1>(stream_, args_, splits_);
    } else if (experts_ == 0 && goes_to_stream(args_, kernel_)) {
      launch_stream_parts(stream_, kernel_, args_, splits_);
    } else {
      launch_parts(stream_, kernel_, args_, {.tiles = tiles_, .splits = splits_, .rows = rows_, .experts = experts_});
    }
    args_.num_parts = tiles_ = rows_ = 0;
  }

 private:
  Stream& stream_;
  const std::int32_t* active_;
  const std::int32_t* num_active_;
  int experts_, tiles_ = 0, rows_ = 0, splits_ = 0;
  Kernel kernel_ = Kernel::Any;
  Args args_{};
};

constexpr int kMostTileRows = kTallInputs;

int splits_of(const LinearPart& part) { return splits_of(part.weight.shape[1]); }
Kernel kernel_of(const LinearPart& part) { return kernel_of({.view = part.weight.view}, part.x.data, splits_of(part)); }

// A call's inputs, its rows m_begin .. m_begin + height, rounded in the order asked for last.
class RoundedInputs {
 public:
  RoundedInputs(Stream& s, const LinearPart& part, InputStep step, int m_begin, int height)
      : stream_(s), step_(step), height_(height), k_(static_cast<int>(part.weight.shape[1])) {
    in_rows_ = part.in_rows != nullptr ? part.in_rows + m_begin : nullptr;
    x_ = part.x.f32() + (in_rows_ != nullptr ? 0 : static_cast<std::int64_t>(m_begin) * k_);
  }
  const std::uint16_t* in(Order order) {
    auto* rounded = reinterpret_cast<std::uint16_t*>(stream_.cuda().room().data());
    if (order_ != order) launch_round_inputs(stream_, x_, in_rows_, step_, order, height_, k_, rounded);
    order_ = order;
    return rounded;
  }

 private:
  Stream& stream_;
  InputStep step_;
  int height_, k_;
  const std::int32_t* in_rows_;
  const float* x_;
  std::optional<Order> order_;
};

// Those of the parts that are split so and go to that kernel, their rows m_begin .. m_begin + height.
void launch_wide(Stream& s, std::span<const LinearPart> parts, Kernel kernel, int splits, int m_begin, int height,
                 RoundedInputs& inputs) {
  WideArgs args{};
  Launch l{.tiles = 0, .splits = splits, .rows = 0, .experts = 0};
  const auto k = static_cast<int>(parts[0].weight.shape[1]);
  for (const LinearPart& part : parts) {
    const auto n = static_cast<int>(part.weight.shape[0]);
    if (part.rows <= m_begin || splits_of(part) != splits || kernel_of(part) != kernel) continue;
    const int rows = std::min(part.rows - m_begin, height);
    args.parts[args.num_parts++] = {.weight = {.view = part.weight.view},
                                    .x = nullptr,
                                    .out = part.out.f32() + static_cast<std::int64_t>(m_begin) * n,
                                    .n = n,
                                    .k = k,
                                    .rows = rows,
                                    .first_tile = l.tiles};
    l.tiles += tiles_of(n, kWideTile);
    l.rows = std::max(l.rows, rows);
  }
  if (args.num_parts == 0) return;
  const Order order = !goes_tall(l.rows, k) ? Order::Plain : kernel == Kernel::Nvfp4 ? Order::TallCrossed : Order::Tall;
  for (int i = 0; i < args.num_parts; ++i) args.parts[i].x = inputs.in(order);
  if (l.rows > 64 || !go_to_few(args, kernel, splits)) return launch_wide_parts(s, kernel, args, l);
  if (l.rows <= 16) return launch_few<2>(s, args, splits);
  if (l.rows <= 32) return launch_few<4>(s, args, splits);
  launch_few<8>(s, args, splits);
}

// The wide kernel's conditions: more rows than others are faster for, rows of 16-byte vectors, one input for all parts.
// The narrow one decodes codes for each sixteen weight rows anew, so inputs bring it to the bound of its instructions
// sooner there.
bool goes_wide(std::span<const LinearPart> parts) {
  if (parts.size() > kMaxParts) return false;
  const bool stays = std::all_of(parts.begin(), parts.end(), [](const LinearPart& part) {
    const Kernel kernel = kernel_of(part);
    return kernel == Kernel::Plain || has_room_to_stream(kernel, part.rows, part.weight.shape[1]);
  });
  const int most_narrow_rows = stays ? 8 : 4;
  return std::all_of(parts.begin(), parts.end(), [&](const LinearPart& part) {
    return part.rows > most_narrow_rows && part.x.data == parts[0].x.data && part.in_rows == parts[0].in_rows &&
           kernel_of(part) != Kernel::Any;
  });
}

// How many of the rows that are left go together, when inputs of `most` can be kept: whole tiles, and the rest by
// itself, in a tile of its own size.
int height_of(int left, int most) {
  const int height = std::min(left, most);
  return height <= kMostTileRows ? height : height / kMostTileRows * kMostTileRows;
}

// The inputs are rounded once (once more where parts want them in another order), the products follow.
void linear_wide(Stream& s, std::span<const LinearPart> parts, InputStep step) {
  const LinearPart& first = parts[0];
  const auto row_bytes = static_cast<std::size_t>(first.weight.shape[1]) * 2;
  const int most = static_cast<int>(std::min<std::size_t>(s.cuda().room().size() / row_bytes, 1 << 15));
  CHECK(most >= kMostTileRows);
  int rows = 0;
  for (const LinearPart& part : parts) rows = std::max(rows, part.rows);
  for (int m = 0, height = 0; m < rows; m += height) {
    height = height_of(rows - m, most);
    RoundedInputs inputs(s, first, step, m, height);
    for (const Kernel kernel : {Kernel::Plain, Kernel::Fp8, Kernel::Fp8Blocks, Kernel::Nvfp4, Kernel::Affine4,
                                Kernel::Affine6, Kernel::Affine8}) {
      for (const int splits : {1, 2, 4, 8}) launch_wide(s, parts, kernel, splits, m, height, inputs);
    }
  }
}

}  // namespace

void linear(Stream& s, std::span<const LinearPart> parts, InputStep step) {
  if (goes_wide(parts)) return linear_wide(s, parts, step);
  Launches launches(s, step, nullptr, nullptr, 0);
  for (const LinearPart& part : parts) {
    if (part.rows > 0) launches.add(dense(part), splits_of(part));
  }
  launches.flush();
}

void linear_of_product(Stream& s, const Weight& weight, Tensor gate, Tensor up, Tensor out) {
  CHECK(gate.shape == up.shape);
  const LinearPart part{.weight = weight, .x = gate, .out = out, .rows = gate.rows()};
  linear(s, std::span(&part, 1), {.silu_scale = 1, .times_behind = up.f32() - gate.f32()});
}

void expert_linear(Stream& s, std::span<const ExpertLinear> experts, std::span<const LinearPart> beside, int max_active,
                   int rows, InputStep step) {
  // An expert of a wide batch has few of its rows: sixteen columns at a time are enough.
  const int columns = rows <= 8 ? 8 : 16;
  Launches launches(s, step, experts[0].active, experts[0].num_active,
                    std::max(max_active, (rows + columns - 1) / columns));
  for (const ExpertLinear& part : experts) {
    launches.add({.weight = {.view = part.weight,
                             .codes_stride = part.codes_stride,
                             .scales_stride = part.scales_stride,
                             .factors = part.tensor_scales},
                  .x = part.x,
                  .in_rows = part.in_rows,
                  .out = part.out,
                  .begin = part.begin,
                  .n = static_cast<int>(part.weight.rows),
                  .k = static_cast<int>(part.weight.columns),
                  .rows = rows,
                  .first_tile = 0},
                 expert_splits_of(part.weight.rows, part.weight.columns));
  }
  for (const LinearPart& part : beside)
    launches.add(dense(part), expert_splits_of(part.weight.shape[0], part.weight.shape[1]));
  launches.flush();
}

}  // namespace rondo::cuda
