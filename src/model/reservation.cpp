#include "model/reservation.h"

#include <algorithm>

#include "model/weights_in.h"
#include "ops/sample/draw.h"

namespace rondo {

namespace {

Workspace make_workspace(Arena& arena, const Network& network, const ModelConfig& config, int threads,
                         const ModelOptions& options) {
  const std::int64_t slots = options.max_streams, rows = options.max_rows, width = network.hidden_width();
  const std::int64_t vocab = config.vocab_size;
  Workspace w{.ids = arena.take(DType::I32, {rows}),
              .ngram_rows = arena.take(DType::I64, {rows, network.num_ngram_heads()}),
              .hidden = arena.take(DType::F32, {rows, width}),
              .logits = arena.take(DType::F32, {Reservation::max_logit_rows(options), vocab}),
              .candidates = arena.take(DType::U8, {threads, vocab * static_cast<std::int64_t>(sizeof(Candidate))}),
              .seen = arena.take(DType::I32, {threads, (vocab + 31) / 32}),
              .waiting = {},
              .head_in = {},
              .head_out = {},
              .chain = {},
              .draft_logits = {}};
  if (!network.has_head()) return w;
  w.waiting = arena.take(DType::F32, {slots, kHeadBufferRows, width});
  w.head_in = arena.take(DType::F32, {rows, width});
  w.head_out = arena.take(DType::F32, {rows, width});
  w.chain = arena.take(DType::F32, {slots, width});
  w.draft_logits = arena.take(DType::F32, {slots, network.draft_vocab_size()});
  return w;
}

// The widest calls there are, run dry: what they take is what scratch must hold.
std::size_t scratch_bytes(const Network& network, const Workspace& workspace, ThreadPool& pool,
                          const ModelOptions& options) {
  std::size_t peak_bytes = 0;
  Stream s = Stream::dry(pool);
  const Scratch scratch = Scratch::counting(&peak_bytes);
  Batch batch;
  batch.rows = options.max_rows;
  batch.ngram_rows = workspace.ngram_rows;
  network.forward(s, batch, scratch, workspace.hidden);
  const std::vector<std::int32_t> rows(static_cast<std::size_t>(Reservation::max_logit_rows(options)));
  network.logits(s, workspace.hidden, rows, scratch, workspace.logits);
  if (network.has_head()) {
    network.head_forward(s, batch, workspace.head_in, scratch, workspace.head_out);
    const std::vector<std::int32_t> last(static_cast<std::size_t>(options.max_streams));
    network.head_logits(s, workspace.head_out, last, scratch, workspace.draft_logits);
  }
  return peak_bytes;
}

// Sizes of everything, found by building the network with arenas that only count.
struct Counted {
  Arenas arenas;
  std::uint64_t state_floats = 0;  // of one state of the prefix cache
  Arena workspace;
  std::size_t scratch_bytes = 0;
};

Counted count(const WeightSource& source, ThreadPool& pool, const ModelOptions& options) {
  Counted counted;
  Loader loader(source, options, counted.arenas);
  const Network network(loader);
  for (const Tensor& each : loader.past().slots) counted.state_floats += static_cast<std::uint64_t>(each.width());
  if (network.has_head()) counted.state_floats += static_cast<std::uint64_t>(kHeadBufferRows * network.hidden_width());
  const Workspace workspace = make_workspace(counted.workspace, network, source.config(), pool.num_threads(), options);
  counted.scratch_bytes = scratch_bytes(network, workspace, pool, options);
  return counted;
}

std::uint64_t mapped_weight_bytes(const WeightSource& source) {
  std::uint64_t bytes = 0;
  for (const Weight& weight : mapped_weights(source, Tables::With)) bytes += weight.size_bytes();
  return bytes;
}

std::uint64_t all_states_bytes(const Counted& counted, const ModelOptions& options) {
  return counted.state_floats * sizeof(float) * static_cast<std::uint64_t>(options.cache_states);
}

MemoryPlan plan_of(const WeightSource& source, const Counted& counted, const ModelOptions& options) {
  const std::uint64_t kv_bytes = counted.arenas.kv.used_bytes();
  const std::uint64_t cache_kv_bytes =
      kv_bytes / static_cast<std::uint64_t>(num_kv_blocks(options)) * static_cast<std::uint64_t>(options.cache_blocks);
  MemoryPlan plan;
  plan.lines = {
      {"weights, read where they lie", mapped_weight_bytes(source), true},
      {"weights, widened or re-laid", counted.arenas.weights.used_bytes()},
      {"KV blocks and index keys of the streams", kv_bytes - cache_kv_bytes, false, MemoryPlan::Held::ByBlocks},
      {"recurrent state and logs", counted.arenas.slots.used_bytes(), false, MemoryPlan::Held::BySlots},
      {"prefix cache: states", all_states_bytes(counted, options)},
      {"prefix cache: KV blocks and index keys", cache_kv_bytes, false, MemoryPlan::Held::ByBlocks},
      {"rope table", counted.arenas.tables.used_bytes()},
      {"hidden states, logits, room to draw", counted.workspace.used_bytes()},
      {"scratch of the widest forward", counted.scratch_bytes}};
  return plan;
}

}  // namespace

std::span<float> Reservation::state(int index) const {
  return {reinterpret_cast<float*>(states_.data()) + static_cast<std::size_t>(index) * state_floats_, state_floats_};
}

int Reservation::max_logit_rows(const ModelOptions& options) {
  return std::min(options.max_rows, options.max_streams * (1 + options.max_drafts));
}

MemoryPlan Reservation::plan(const WeightSource& source, ThreadPool& pool, const ModelOptions& options) {
  return plan_of(source, count(source, pool, options), options);
}

Result<std::unique_ptr<Reservation>> Reservation::make(const WeightSource& source, ThreadPool& pool,
                                                       const ModelOptions& options) {
  const Counted counted = count(source, pool, options);
  std::unique_ptr<Reservation> made(new Reservation());
  made->plan_ = plan_of(source, counted, options);
  made->state_floats_ = counted.state_floats;
  TRY(made->weights_, Buffer::reserve(counted.arenas.weights.used_bytes(), "weights"));
  TRY(made->kv_, Buffer::reserve(counted.arenas.kv.used_bytes(), "KV blocks"));
  TRY(made->slots_, Buffer::reserve(counted.arenas.slots.used_bytes(), "recurrent state"));
  TRY(made->states_, Buffer::reserve(all_states_bytes(counted, options), "states of the prefix cache"));
  TRY(made->tables_, Buffer::reserve(counted.arenas.tables.used_bytes(), "the rope table"));
  TRY(made->workspace_buffer_, Buffer::reserve(counted.workspace.used_bytes(), "hidden states and logits"));
  TRY(made->scratch_buffer_, Buffer::reserve(counted.scratch_bytes, "scratch"));

  Arenas arenas{Arena(made->weights_), Arena(made->kv_), Arena(made->slots_), Arena(made->tables_)};
  Loader loader(source, options, arenas);
  made->network_ = std::make_unique<Network>(loader);
  made->past_ = loader.past();
  Arena workspace(made->workspace_buffer_);
  made->workspace_ = make_workspace(workspace, *made->network_, source.config(), pool.num_threads(), options);
  return made;
}

}  // namespace rondo
