#include "model/reservation.h"

#include <algorithm>
#include <optional>

#include "model/weights_in.h"
#include "ops/sample/draw.h"
#include "ops/sample/draw_rows.h"
#include "ops/sample/shifts.h"

namespace rondo {

namespace {

std::int64_t bytes_for(std::int64_t count, std::size_t each) { return count * static_cast<std::int64_t>(each); }

Staged make_staged(Arena& arena, const Network& network, const ModelConfig& config, const ModelOptions& options) {
  const std::int64_t slots = options.max_streams, rows = options.max_rows;
  const std::int64_t wanted = Reservation::max_logit_rows(options);
  const std::int64_t blocks_each = (options.context_tokens + kKvBlockTokens - 1) / kKvBlockTokens;
  Staged staged{.ids = arena.take(DType::I32, {rows}),
                .rows = arena.take(DType::I32, {wanted}),
                .draws = arena.take(DType::U8, {bytes_for(wanted, sizeof(DrawKey))}),
                .span_of_row = arena.take(DType::I32, {rows}),
                .spans = arena.take(DType::U8, {bytes_for(slots, sizeof(RowSpan))}),
                .blocks = arena.take(DType::I32, {slots * blocks_each}),
                .shifts = {},
                .masks = {},
                .ngram_vectors = arena.take(DType::F32, {rows, network.ngram_width()})};
  if (options.isa != Isa::Sm90) return staged;
  staged.shifts = arena.take(DType::U8, {bytes_for(slots * Shifts::kMost, sizeof(Shift))});
  staged.masks = arena.take(DType::I32, {wanted, mask_words(config.vocab_size)});
  return staged;
}

// What of the workspace the host alone reads and writes.
void add_host_workspace(Workspace& w, Arena& arena, const Network& network, const ModelConfig& config, int threads,
                        const ModelOptions& options) {
  const std::int64_t vocab = config.vocab_size;
  w.ngram_rows = arena.take(DType::I64, {options.max_rows, network.num_ngram_heads()});
  w.candidates = arena.take(DType::U8, {threads, bytes_for(vocab, sizeof(Candidate))});
  w.shaped = arena.take(DType::F32, {threads, vocab});
  w.seen = arena.take(DType::I32, {threads, (vocab + 31) / 32});
  if (options.isa != Isa::Sm90) return;
  w.drawn_here = arena.take(DType::U8, {bytes_for(Reservation::max_logit_rows(options), sizeof(DrawnRow))});
  w.likely_here = arena.take(DType::U8, {bytes_for(Reservation::max_logit_rows(options), sizeof(LikelyRow))});
  w.told_here = arena.take(DType::U8, {bytes_for(Reservation::max_logit_rows(options), sizeof(ToldRow))});
  w.logits_here = arena.take(DType::F32, {vocab});
  w.places = arena.take(DType::I32, {vocab});
}

Workspace make_workspace(Arena& arena, const Network& network, const ModelConfig& config, const ModelOptions& options) {
  const std::int64_t slots = options.max_streams, rows = options.max_rows, width = network.hidden_width();
  const std::int64_t wanted = Reservation::max_logit_rows(options);
  Workspace w;
  w.hidden = arena.take(DType::F32, {rows, width});
  w.logits = arena.take(DType::F32, {wanted, config.vocab_size});
  if (options.isa == Isa::Sm90) {
    w.drawn = arena.take(DType::U8, {bytes_for(wanted, sizeof(DrawnRow))});
    w.likely = arena.take(DType::U8, {bytes_for(wanted, sizeof(LikelyRow))});
    w.told = arena.take(DType::U8, {bytes_for(wanted, sizeof(ToldRow))});
    w.draw_room = arena.take(DType::U8, {static_cast<std::int64_t>(draw_room_bytes(static_cast<int>(wanted)))});
  }
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
  Stream s = Stream::dry(pool, options.isa);
  const Scratch scratch = Scratch::counting(&peak_bytes);
  Batch batch;
  batch.rows = options.max_rows;
  batch.ngram_vectors = {nullptr, DType::F32, {options.max_rows, network.ngram_width()}};
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
  Arena workspace, staged, host;
  std::size_t scratch_bytes = 0;
};

Counted count(const WeightSource& source, ThreadPool& pool, const ModelOptions& options) {
  Counted counted;
  Loader loader(source, options, counted.arenas, nullptr);
  const Network network(loader);
  for (const Tensor& each : loader.past().slots) counted.state_floats += static_cast<std::uint64_t>(each.width());
  if (network.has_head()) counted.state_floats += static_cast<std::uint64_t>(kHeadBufferRows * network.hidden_width());
  Workspace workspace = make_workspace(counted.workspace, network, source.config(), options);
  make_staged(counted.staged, network, source.config(), options);
  add_host_workspace(workspace, counted.host, network, source.config(), pool.num_threads(), options);
  counted.scratch_bytes = scratch_bytes(network, workspace, pool, options);
  return counted;
}

std::uint64_t mapped_weight_bytes(const WeightSource& source, Tables tables) {
  std::uint64_t bytes = 0;
  for (const Weight& weight : mapped_weights(source, tables)) bytes += weight.size_bytes();
  return bytes;
}

std::uint64_t all_states_bytes(const Counted& counted, const ModelOptions& options) {
  return counted.state_floats * sizeof(float) * static_cast<std::uint64_t>(options.cache_states);
}

MemoryPlan plan_of(const WeightSource& source, const Counted& counted, const ThreadPool& pool,
                   const ModelOptions& options) {
  const std::uint64_t kv_bytes = counted.arenas.kv.used_bytes();
  const std::uint64_t cache_kv_bytes =
      kv_bytes / static_cast<std::uint64_t>(num_kv_blocks(options)) * static_cast<std::uint64_t>(options.cache_blocks);
  MemoryPlan plan;
  if (options.isa == Isa::Sm90) {
    plan.lines = {{"weights, on the GPU", counted.arenas.weights.used_bytes()}};
    if (const std::uint64_t bytes =
            mapped_weight_bytes(source, Tables::With) - mapped_weight_bytes(source, Tables::Without);
        bytes > 0) {
      plan.lines.push_back({"n-gram table, read where it lies", bytes, true});
    }
  } else {
    plan.lines = {{"weights, read where they lie", mapped_weight_bytes(source, Tables::With), true},
                  {"weights, widened or re-laid", counted.arenas.weights.used_bytes()}};
  }
  const std::uint64_t workspace_bytes = counted.workspace.used_bytes() + counted.host.used_bytes();
  const MemoryPlan::Item rest[] = {
      {"KV blocks and index keys of the streams", kv_bytes - cache_kv_bytes, false, MemoryPlan::Held::ByBlocks},
      {"recurrent state and logs", counted.arenas.slots.used_bytes(), false, MemoryPlan::Held::BySlots},
      {"prefix cache: states", all_states_bytes(counted, options)},
      {"prefix cache: KV blocks and index keys", cache_kv_bytes, false, MemoryPlan::Held::ByBlocks},
      {"rope table", counted.arenas.tables.used_bytes()},
      {"hidden states, logits, room to draw", workspace_bytes},
      {"what the host says of a batch", counted.staged.used_bytes()},
      {"scratch of the widest forward", counted.scratch_bytes},
      {"stacks of the threads that compute", pool.stack_bytes(), false, MemoryPlan::Held::AsUsed}};
  plan.lines.insert(plan.lines.end(), std::begin(rest), std::end(rest));
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
  return plan_of(source, count(source, pool, options), pool, options);
}

Result<std::unique_ptr<Reservation>> Reservation::make(const WeightSource& source, ThreadPool& pool,
                                                       const ModelOptions& options, const Progress& progress) {
  const Isa isa = options.isa;
  std::unique_ptr<Reservation> made(new Reservation());
  made->isa_ = isa;
  TRY(made->queue_, open_queue(isa));
  const Counted counted = count(source, pool, options);
  made->plan_ = plan_of(source, counted, pool, options);
  made->state_floats_ = counted.state_floats;
  TRY(made->weights_, reserve_for(isa, counted.arenas.weights.used_bytes(), "weights"));
  TRY(made->kv_, reserve_for(isa, counted.arenas.kv.used_bytes(), "KV blocks"));
  TRY(made->slots_, reserve_for(isa, counted.arenas.slots.used_bytes(), "recurrent state"));
  TRY(made->states_, reserve_for(isa, all_states_bytes(counted, options), "states of the prefix cache"));
  TRY(made->tables_, reserve_for(isa, counted.arenas.tables.used_bytes(), "the rope table"));
  TRY(made->workspace_buffer_, reserve_for(isa, counted.workspace.used_bytes(), "hidden states and logits"));
  TRY(made->scratch_buffer_, reserve_for(isa, counted.scratch_bytes, "scratch"));

  TRY(made->staged_host_, reserve_host_for(isa, counted.staged.used_bytes(), "what the host says of a batch"));
  TRY(made->host_buffer_, reserve_host_for(isa, counted.host.used_bytes(), "room to draw"));

  Stream stream = made->stream(pool);
  std::optional<Upload> upload;
  if (isa == Isa::Sm90) {
    TRY(made->staged_device_, reserve_for(isa, counted.staged.used_bytes(), "what the host says of a batch"));
    const std::uint64_t total = counted.arenas.weights.used_bytes();
    TRY(upload, Upload::make(stream, pool, [&progress, total](std::uint64_t done) {
          if (progress) progress("weights", std::min(done, total), total);
        }));
  }
  Arenas arenas{Arena(made->weights_), Arena(made->kv_), Arena(made->slots_), Arena(made->tables_)};
  Loader loader(source, options, arenas, upload ? &*upload : nullptr);
  made->network_ = std::make_unique<Network>(loader);
  made->past_ = loader.past();
  Arena workspace(made->workspace_buffer_);
  Workspace& w = made->workspace_;
  w = make_workspace(workspace, *made->network_, source.config(), options);
  Arena host(made->host_buffer_), staged_host(made->staged_host_);
  add_host_workspace(w, host, *made->network_, source.config(), pool.num_threads(), options);
  w.host = w.device = make_staged(staged_host, *made->network_, source.config(), options);
  if (upload) {
    Arena staged_device(made->staged_device_);
    w.device = make_staged(staged_device, *made->network_, source.config(), options);
    upload->finish();
  }
  return made;
}

Tensor Reservation::stage_ngrams(Stream& s, int rows) const {
  const Tensor host = workspace_.host.ngram_vectors.slice(0, rows), device = workspace_.device.ngram_vectors;
  if (network_->num_ngram_heads() == 0) return {};
  Stream here = s.on_cuda() ? Stream(s.pool(), best_isa()) : s;
  network_->gather_ngrams(here, workspace_.ngram_rows.slice(0, rows), host);
  s.upload(const_cast<void*>(device.data), host.data,
           static_cast<std::size_t>(host.shape.num_elements()) * sizeof(float));
  return device.slice(0, rows);
}

Batch Reservation::stage(Stream& s, int rows, std::span<const RowSpan> spans) const {
  const Staged &host = workspace_.host, &device = workspace_.device;
  Batch batch;
  batch.rows = rows;
  batch.ids = device.ids.i32();
  batch.spans.host = spans;
  if (!s.on_cuda()) return batch;
  auto* to = static_cast<RowSpan*>(const_cast<void*>(host.spans.data));
  std::int32_t* span_of_row = host.span_of_row.i32();
  std::int64_t used = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const int blocks = (spans[i].start_pos + spans[i].count + kKvBlockTokens - 1) / kKvBlockTokens;
    to[i] = spans[i];
    to[i].blocks = device.blocks.i32() + used;
    if (spans[i].blocks != nullptr) std::copy_n(spans[i].blocks, blocks, host.blocks.i32() + used);
    std::fill_n(span_of_row + spans[i].begin, spans[i].count, static_cast<std::int32_t>(i));
    used += blocks;
  }
  const auto* begin = static_cast<const std::byte*>(host.ids.data);
  const auto* end = reinterpret_cast<const std::byte*>(host.blocks.i32() + used);
  s.upload(const_cast<void*>(device.ids.data), begin, static_cast<std::size_t>(end - begin));
  s.mark();
  batch.spans.on_device = device.spans.as<RowSpan>();
  batch.spans.span_of_row = device.span_of_row.i32();
  return batch;
}

}  // namespace rondo
