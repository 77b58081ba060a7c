// Forward times of a published shape with made-up weights, by rows and at two context lengths, against the floor: the
// larger of the weight bytes that so many rows touch over the memory's rate and their operations over the matrix rate.
//
//   forward_time [--format bf16|nvfp4|fp8|affine4] [--max-rows 1024] [--profile ROWS] SHAPE [LAYERS [STREAMS
//   [CONTEXT]]]
//                                                       (LAYERS 0 = all; a GPU where there is one)
//
// --profile: no times, but one forward of so many streams' rows (or, if there are fewer streams, of a prompt's) for a
// profiler that waits for the program's word:
//   ncu --profile-from-start off --clock-control none --metrics gpu__time_duration.sum,dram__bytes.sum ...
#include <fmt/format.h>
#ifdef RONDO_CUDA
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#endif

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "ckpt/checkpoint.h"
#include "model/network_model.h"

namespace rondo {
namespace {

// Measured on an H200: docs/performance.md.
constexpr double kBytesPerSecond = 4.49e12, kOperationsPerSecond = 815e12;

// Bytes of weights that `rows` rows touch when each chooses its experts evenly at random, and the weights that one row
// computes with.
struct Work {
  double row_bytes, row_weights, expert_bytes, experts, chosen;
  double bytes(int rows) const {
    if (experts == 0) return row_bytes;
    const double touched = experts * (1 - std::pow(1 - chosen / experts, rows));
    return row_bytes - expert_bytes * chosen + expert_bytes * touched;
  }
  double floor_ms(int rows) const {
    return 1e3 * std::max(bytes(rows) / kBytesPerSecond, 2 * row_weights * rows / kOperationsPerSecond);
  }
};

// What a row reads of the same model in bf16, which is twice its weights: counted as the plan counts, nothing is
// loaded.
double bf16_row_bytes(const std::string& shape, int layers, const ModelOptions& options) {
  const auto source = make_synthetic(shape, {.num_layers = layers, .is_hollow = true});
  CHECK(source.has_value());
  Arenas arenas;
  Loader loader(**source, options, arenas, nullptr);
  return static_cast<double>(Network(loader).weight_bytes_per_row());
}

Work work_of(const WeightSource& source, const ModelFacts& facts, double row_weights) {
  const ModelConfig& c = source.config();
  double expert_bytes = 0;
  if (c.moe.num_experts > 0) {
    const ExpertWeights one = expert_weights(source, "layers.0.mlp", 0);
    expert_bytes = static_cast<double>(one.gate.size_bytes() + one.up.size_bytes() + one.down.size_bytes());
  }
  return {.row_bytes = static_cast<double>(facts.weight_bytes_per_row),
          .row_weights = row_weights,
          .expert_bytes = expert_bytes * c.num_layers(),
          .experts = static_cast<double>(c.moe.num_experts),
          .chosen = static_cast<double>(c.moe.experts_per_token)};
}

// Not load_model(): what is measured here may be what it does not let through yet.
Result<std::unique_ptr<Model>> make_model(const WeightSource& source, ThreadPool& pool, const ModelOptions& options) {
  TRY(auto reservation, Reservation::make(source, pool, options));
  return std::make_unique<NetworkModel>(std::move(reservation), source, pool, options);
}

// Of no text: so that rows choose different experts.
std::vector<std::int32_t> made_up_ids(const ModelFacts& facts, int count) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < count; ++i) {
    ids.push_back(static_cast<std::int32_t>(random_bits(3, static_cast<std::uint64_t>(i)) %
                                            static_cast<std::uint64_t>(facts.vocab_size)));
  }
  return ids;
}

// Milliseconds of a prompt of so many tokens in one stream, cut to the widest forwards, and a token after it.
double prompt_ms(Model& model, int tokens) {
  const ModelFacts& facts = model.facts();
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(tokens / facts.block_tokens + 1));
  std::iota(blocks.begin(), blocks.end(), 0);
  const std::vector<std::int32_t> ids = made_up_ids(facts, tokens);
  const DrawSettings greedy{.temperature = 0, .bias = {}};
  const auto begin = std::chrono::steady_clock::now();
  for (int at = 0; at < tokens; at += facts.max_rows) {
    const int count = std::min(facts.max_rows, tokens - at);
    const Slice slice{.slot = 0,
                      .start_pos = at,
                      .ids = std::span(ids).first(static_cast<std::size_t>(count)),
                      .blocks = blocks,
                      .feeds_head = false};
    model.prefill({&slice, 1});
  }
  const Window window{.slot = 0,
                      .start_pos = tokens,
                      .ids = std::span(ids).first(1),
                      .certain = 1,
                      .blocks = blocks,
                      .draw = &greedy,
                      .generated = {},
                      .masks = {},
                      .num_top_logprobs = -1};
  const Kept kept{.slot = 0, .rows = 1, .next_token = model.verify({&window, 1}).tokens[0], .feeds_head = false};
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  model.commit({&kept, 1});
  model.release(0);
  return ms;
}

// Milliseconds that the host takes to queue a forward of one row: a prompt's rows are not waited for. Median of many.
double queue_ms(Model& model) {
  const ModelFacts& facts = model.facts();
  const std::vector<std::int32_t> ids{7, 7};
  const std::vector<std::int32_t> blocks{0}, other_blocks{1};
  const DrawSettings greedy{.temperature = 0, .bias = {}};
  std::vector<double> ms;
  for (int at = 0; at + 1 < facts.block_tokens; ++at) {
    const Slice slice{
        .slot = 0, .start_pos = at, .ids = std::span(ids).first(1), .blocks = blocks, .feeds_head = false};
    const auto begin = std::chrono::steady_clock::now();
    model.prefill({&slice, 1});
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    const Window window{.slot = 1,
                        .start_pos = at,
                        .ids = std::span(ids).first(1),
                        .certain = 1,
                        .blocks = other_blocks,
                        .draw = &greedy,
                        .generated = {},
                        .masks = {},
                        .num_top_logprobs = -1};
    const Kept kept{.slot = 1, .rows = 1, .next_token = model.verify({&window, 1}).tokens[0], .feeds_head = false};
    model.commit({&kept, 1});
  }
  model.release(0);
  model.release(1);
  std::sort(ms.begin(), ms.end());
  return ms[ms.size() / 2];
}

// Of the GPU; 0 without one.
std::size_t free_bytes() {
  std::size_t free = 0;
#ifdef RONDO_CUDA
  std::size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
#endif
  return free;
}

void profile_forward([[maybe_unused]] Model& model, [[maybe_unused]] int rows) {
#ifdef RONDO_CUDA
  constexpr int kBefore = 256;
  const ModelFacts& facts = model.facts();
  if (rows > facts.max_streams) {
    std::vector<std::int32_t> prompt_blocks(static_cast<std::size_t>(rows / facts.block_tokens + 1));
    std::iota(prompt_blocks.begin(), prompt_blocks.end(), 0);
    const std::vector<std::int32_t> prompt = made_up_ids(facts, std::min(rows, facts.max_rows));
    const Slice slice{.slot = 0, .start_pos = 0, .ids = prompt, .blocks = prompt_blocks, .feeds_head = false};
    cudaProfilerStart();
    model.prefill({&slice, 1});
    cudaProfilerStop();
    return;
  }
  const int each = (kBefore + 1 + facts.block_tokens - 1) / facts.block_tokens;
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(each * rows));
  std::iota(blocks.begin(), blocks.end(), 0);
  const std::vector<std::int32_t> ids = made_up_ids(facts, kBefore + rows);
  const DrawSettings greedy{.temperature = 0, .bias = {}};
  std::vector<Window> windows;
  for (int i = 0; i < rows; ++i) {
    const auto own = std::span(blocks).subspan(static_cast<std::size_t>(i * each), static_cast<std::size_t>(each));
    const Slice slice{
        .slot = i, .start_pos = 0, .ids = std::span(ids).first(kBefore), .blocks = own, .feeds_head = false};
    model.prefill({&slice, 1});
    windows.push_back({.slot = i,
                       .start_pos = kBefore,
                       .ids = std::span(ids).subspan(static_cast<std::size_t>(kBefore + i), 1),
                       .certain = 1,
                       .blocks = own,
                       .draw = &greedy,
                       .generated = {},
                       .masks = {},
                       .num_top_logprobs = -1});
  }
  cudaProfilerStart();
  model.verify(windows);
  cudaProfilerStop();
#else
  fmt::print(stderr, "forward_time: --profile wants a build with CUDA\n");
#endif
}

struct Options {
  std::string format = "bf16", shape;
  int layers = 0, streams = 64, context = 4160, profile_rows = 0, max_rows = 1024;
};

int run(const Options& asked) {
  const auto& [format_name, shape, layers, streams, context, profile_rows, max_rows] = asked;
  const Isa isa = has_isa(Isa::Sm90) ? Isa::Sm90 : best_isa();
  const auto format = synthetic_format(format_name);
  if (!format) {
    fmt::print(stderr, "forward_time: {}\n", format.error().message);
    return 2;
  }
  const auto source = make_synthetic(shape, {.format = *format, .num_layers = layers, .is_hollow = isa == Isa::Sm90});
  if (!source) {
    fmt::print(stderr, "forward_time: {}\n", source.error().message);
    return 1;
  }
  ThreadPool pool(num_physical_threads());
  ModelOptions options;
  options.context_tokens = context;
  options.max_streams = streams;
  options.max_rows = std::max(max_rows, streams);
  options.isa = isa;
  const std::size_t free_before = free_bytes();
  const auto model = make_model(**source, pool, options);
  if (!model) {
    fmt::print(stderr, "forward_time: {}\n", model.error().message);
    return 1;
  }
  if (profile_rows > 0) {
    profile_forward(**model, profile_rows);
    return 0;
  }
  const ModelFacts& facts = (*model)->facts();
  const std::vector<std::int32_t> text = made_up_ids(facts, 2 * facts.max_rows);
  const CostTables costs = (*model)->time_costs(text, 60'000);
  const Work work = work_of(**source, facts, bf16_row_bytes(shape, layers, options) / 2);
  fmt::print("{}, {} of its layers, {}, {} streams, {}\n", shape, (*source)->config().num_layers(), facts.arithmetic,
             streams, format_name);
  fmt::print("  rows   floor ms   ms at {:>5}   over floor   ms at {:>5}\n", costs.context_tokens[0],
             costs.context_tokens[1]);
  for (const int rows : {1, 2, 4, 8, 16, 32, 64}) {
    if (rows >= static_cast<int>(costs.verify_ms[0].size())) break;
    const auto at = static_cast<std::size_t>(rows);
    fmt::print("  {:>4} {:>10.3f} {:>13.3f} {:>12.2f} {:>13.3f}\n", rows, work.floor_ms(rows), costs.verify_ms[0][at],
               costs.verify_ms[0][at] / work.floor_ms(rows), costs.verify_ms[1][at]);
  }
  if (costs.level_ms.size() > 1) {
    fmt::print("  the head: absorbs one row in {:.3f} ms, a level {:.3f} ms for one stream, {:.3f} for {}\n",
               costs.absorb_ms[1], costs.level_ms[1], costs.level_ms.back(), costs.level_ms.size() - 1);
  }
  const int tokens = std::min(4096, facts.context_tokens - 1);
  double best_ms = prompt_ms(**model, tokens);
  for (int again = 0; again < 2; ++again) best_ms = std::min(best_ms, prompt_ms(**model, tokens));
  fmt::print(
      "  a prompt of {} tokens, {} at a time: {:.1f} ms, {:.0f} tokens/s; its products' operations: {:.0f} TFLOP/s\n",
      tokens, facts.max_rows, best_ms, 1e3 * tokens / best_ms, 2 * work.row_weights * tokens / best_ms / 1e9);
  constexpr double kMib = 1048576.0;
  if (isa == Isa::Sm90) {
    fmt::print("  memory of the GPU: {:.0f} MiB taken since the context was there; the plan has {:.0f} MiB\n",
               static_cast<double>(free_before - free_bytes()) / kMib,
               static_cast<double>((*model)->plan().reserved_bytes()) / kMib);
  }
  if (facts.max_streams > 1) fmt::print("  the host queues a forward of one row in {:.3f} ms\n", queue_ms(**model));
  if (!costs.why.empty()) fmt::print("  {}\n", costs.why);
  return 0;
}

}  // namespace
}  // namespace rondo

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  rondo::Options options;
  while (words.size() >= 2 && words[0].starts_with("--")) {
    if (words[0] == "--format") options.format = words[1];
    if (words[0] == "--profile") options.profile_rows = std::atoi(words[1].c_str());
    if (words[0] == "--max-rows") options.max_rows = std::atoi(words[1].c_str());
    words.erase(words.begin(), words.begin() + 2);
  }
  if (words.empty()) {
    fmt::print(stderr,
               "forward_time [--format bf16|nvfp4|fp8|affine4] [--max-rows 1024] [--profile ROWS] SHAPE [LAYERS "
               "[STREAMS [CONTEXT]]]\n");
    return 2;
  }
  options.shape = words[0];
  const auto number = [&](std::size_t at, int otherwise) {
    return words.size() > at ? std::atoi(words[at].c_str()) : otherwise;
  };
  options.layers = number(1, options.layers);
  options.streams = number(2, options.streams);
  options.context = number(3, options.context);
  return rondo::run(options);
}
