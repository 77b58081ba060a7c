#include "model/network_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/weights_in.h"
#include "ops/linear/linear.h"

namespace rondo {

NetworkModel::NetworkModel(std::unique_ptr<Reservation> reservation, const WeightSource& source, ThreadPool& pool,
                           const ModelOptions& options)
    : reservation_(std::move(reservation)),
      stream_(reservation_->stream(pool)),
      index_block_(std::max(1, source.config().indexer.num_heads > 0 ? source.config().indexer.block_tokens : 1)),
      slots_(static_cast<std::size_t>(options.max_streams)) {
  const int blocks = num_kv_blocks(options);
  facts_ = {.arithmetic = fmt::format("{}/{}", stream_.on_cuda() ? "cuda" : "cpu", isa_name(options.isa)),
            .vocab_size = source.config().vocab_size,
            .context_tokens = options.context_tokens,
            .max_streams = options.max_streams,
            .max_rows = options.max_rows,
            .max_drafts = options.max_drafts,
            .block_tokens = kKvBlockTokens,
            .num_blocks = blocks,
            .grid = 1,
            .has_head = reservation_->network().has_head(),
            .bytes_per_token = reservation_->kv_bytes() / static_cast<std::uint64_t>(blocks * kKvBlockTokens),
            .bytes_per_stream = reservation_->slot_bytes() / static_cast<std::uint64_t>(options.max_streams),
            .num_states = options.cache_states,
            .bytes_per_state = reservation_->state_bytes(),
            .draft_vocab_size = reservation_->network().draft_vocab_size(),
            .head_buffer_rows = std::min(kHeadBufferRows, options.max_rows),
            .weight_bytes_per_row = reservation_->network().weight_bytes_per_row()};
  // Nothing below may grow once the server is ready.
  const auto most_rows = static_cast<std::size_t>(options.max_rows),
             most_streams = static_cast<std::size_t>(options.max_streams);
  history_.reserve(most_rows + static_cast<std::size_t>(reach()));
  spans_.reserve(most_streams);
  copies_.reserve(most_rows + most_streams * static_cast<std::size_t>(kHeadBufferRows));
  logit_rows_.reserve(static_cast<std::size_t>(Reservation::max_logit_rows(options)));
  tokens_.reserve(logit_rows_.capacity());
  logprobs_.resize(logit_rows_.capacity());
  for (Slot& each : slots_) {
    each.recent.reserve(static_cast<std::size_t>(reach()));
    each.open_ids.reserve(most_rows);
    each.waiting_ids.reserve(static_cast<std::size_t>(kHeadBufferRows));
  }
  states_.resize(static_cast<std::size_t>(options.cache_states));
  for (State& each : states_) {
    each.recent.reserve(static_cast<std::size_t>(reach()));
    each.waiting_ids.reserve(static_cast<std::size_t>(kHeadBufferRows));
  }
  drafting_.reserve(most_streams);
  drafts_.resize(most_streams);
  drafted_.resize(most_streams * static_cast<std::size_t>(options.max_drafts));
  num_drafted_.resize(most_streams);
  for (auto* each : {&absorb_rows_, &group_ends_, &head_rows_, &all_streams_}) each->reserve(most_streams);
  make_graphs();
}

float* NetworkModel::hidden_row(int row) const {
  const Tensor hidden = reservation_->workspace().hidden;
  return hidden.f32() + row * hidden.width();
}

void NetworkModel::copy_row(const float* from, float* to) {
  if (copies_.size() == copies_.capacity()) run_copies();
  copies_.push_back({from, to});
}

void NetworkModel::run_copies() {
  copy_rows(stream_, copies_, reservation_->workspace().hidden.width());
  copies_.clear();
}

void NetworkModel::begin_batch() {
  reservation_->begin_staging(stream_);
  spans_.clear();
  rows_ = 0;
}

void NetworkModel::hash_history(const Slot& of, std::span<const std::int32_t> ids) {
  const int heads = reservation_->network().num_ngram_heads();
  if (heads == 0) return;
  const Tensor hashed = reservation_->workspace().ngram_rows;
  auto* to = static_cast<std::int64_t*>(const_cast<void*>(hashed.data)) + static_cast<std::int64_t>(rows_) * heads;
  history_.assign(of.recent.begin(), of.recent.end());
  for (const std::int32_t id : ids) {
    history_.push_back(id);
    reservation_->network().hash_ngrams(history_, to);
    to += heads;
  }
}

void NetworkModel::add_rows(int slot_index, int start_pos, std::span<const std::int32_t> ids, int certain,
                            std::span<const std::int32_t> blocks) {
  CHECK(slot_index >= 0 && slot_index < facts_.max_streams);
  Slot& to = slot(slot_index);
  const int count = static_cast<int>(ids.size());
  CHECK(to.open_rows == 0 &&
        start_pos == to.next_pos);  // the last window is committed, and nothing is left out or repeated
  CHECK(count >= 1 && rows_ + count <= facts_.max_rows && start_pos + count <= facts_.context_tokens);
  CHECK(static_cast<int>(blocks.size()) * facts_.block_tokens >= start_pos + count);
  CHECK(spans_.size() < spans_.capacity());
  for (const RowSpan& span : spans_) CHECK(span.slot != slot_index);
  for (const std::int32_t id : ids) CHECK(id >= 0 && id < facts_.vocab_size);
  std::copy(ids.begin(), ids.end(), reservation_->workspace().host.ids.i32() + rows_);
  hash_history(to, ids);
  spans_.push_back({.begin = rows_,
                    .count = count,
                    .certain = certain,
                    .start_pos = start_pos,
                    .slot = slot_index,
                    .fold = to.fold,
                    .first_pos = 0,
                    .blocks = blocks.data()});
  to.fold = 0;
  rows_ += count;
}

void NetworkModel::remember(Slot& to, std::span<const std::int32_t> ids) const {
  for (const std::int32_t id : ids) {
    if (static_cast<int>(to.recent.size()) == reach()) {
      if (to.recent.empty()) return;
      to.recent.erase(to.recent.begin());
    }
    to.recent.push_back(id);
  }
}

Batch NetworkModel::stage_batch() {
  const Tensor ngram_vectors = reservation_->stage_ngrams(stream_, rows_);
  Batch batch = reservation_->stage(stream_, rows_, spans_);
  batch.ngram_vectors = ngram_vectors;
  return batch;
}

void NetworkModel::forward(const Batch& batch) {
  reservation_->network().forward(stream_, batch, reservation_->scratch(),
                                  reservation_->workspace().hidden.slice(0, rows_));
}

void NetworkModel::prefill(std::span<const Slice> slices) {
  begin_batch();
  for (const Slice& slice : slices) {
    slot(slice.slot).open_first_row = rows_;
    add_rows(slice.slot, slice.start_pos, slice.ids, static_cast<int>(slice.ids.size()), slice.blocks);
  }
  const Batch batch = stage_batch();
  stream_.as_one(0, [&] { forward(batch); });
  if (facts_.has_head) absorb_prompt(slices);
  for (const Slice& slice : slices) {
    slot(slice.slot).next_pos += static_cast<int>(slice.ids.size());
    remember(slot(slice.slot), slice.ids);
  }
}

Verified NetworkModel::verify(std::span<const Window> windows) {
  begin_batch();
  logit_rows_.clear();
  for (const Window& window : windows) {
    const int count = static_cast<int>(window.ids.size());
    CHECK(window.certain >= 1 && window.certain <= count && count - window.certain <= facts_.max_drafts);
    CHECK(window.masks.empty() || static_cast<int>(window.masks.size()) == count - window.certain + 1);
    CHECK(logit_rows_.size() + static_cast<std::size_t>(count - window.certain + 1) <= logit_rows_.capacity());
    for (int row = window.certain - 1; row < count; ++row) logit_rows_.push_back(rows_ + row);
    slot(window.slot).open_first_row = rows_;
    add_rows(window.slot, window.start_pos, window.ids, window.certain, window.blocks);
  }
  const auto wanted = stage_logit_rows(logit_rows_);
  if (stream_.on_cuda()) stage_draws(windows);
  const Batch batch = stage_batch();
  const Workspace& w = reservation_->workspace();
  const Tensor logits = w.logits.slice(0, static_cast<std::int64_t>(logit_rows_.size()));
  stream_.as_one(shape(Pass::Verify), [&] {
    forward(batch);
    reservation_->network().logits(stream_, w.hidden, wanted, reservation_->scratch(), logits);
    queue_draws(logits, nullptr);
  });
  draw_tokens(windows);
  for (const Window& window : windows) {
    Slot& to = slot(window.slot);
    to.open_rows = static_cast<int>(window.ids.size());
    to.open_certain = window.certain;
    to.open_ids.assign(window.ids.begin(), window.ids.end());
  }
  return {tokens_, std::span(logprobs_).first(tokens_.size())};
}

void NetworkModel::commit(std::span<const Kept> kept) {
  for (const Kept& each : kept) {
    Slot& to = slot(each.slot);
    CHECK(to.open_rows > 0 && each.rows >= to.open_certain && each.rows <= to.open_rows);
    if (each.feeds_head && facts_.has_head) {
      CHECK(head_follows(to));
      for (int row = 0; row < each.rows; ++row) {
        const bool last = row + 1 == each.rows;
        keep_waiting(each.slot, hidden_row(to.open_first_row + row),
                     last ? each.next_token : to.open_ids[static_cast<std::size_t>(row) + 1]);
      }
    }
    to.next_pos += each.rows;
    to.fold = each.rows - to.open_certain;
    remember(to, std::span(to.open_ids).first(static_cast<std::size_t>(each.rows)));
    to.open_rows = 0;
  }
  run_copies();
}

void NetworkModel::release(int slot_index) {
  CHECK(slot_index >= 0 && slot_index < facts_.max_streams);
  Slot& to = slot(slot_index);
  to.next_pos = to.fold = to.open_rows = to.head_first = to.head_next = 0;
  to.has_last = false;
  to.recent.clear();
  to.waiting_ids.clear();
}

namespace {

// Experts of a layer lie evenly spaced, and one launch multiplies by all of them: one format.
Result<void> check_experts(const WeightSource& source, const std::string& prefix) {
  if (source.config().moe.num_experts == 0) return {};
  const ExpertWeights first = expert_weights(source, prefix, 0);
  for (int e = 1; e < source.config().moe.num_experts; ++e) {
    const ExpertWeights expert = expert_weights(source, prefix, e);
    for (const auto part : {&ExpertWeights::gate, &ExpertWeights::up, &ExpertWeights::down}) {
      const CodedView &one = (first.*part).view, &other = (expert.*part).view;
      if (format_name(one) == format_name(other) && one.scale_type == other.scale_type) continue;
      return failure(ErrorCode::Unsupported,
                     fmt::format("{}: experts 0 and {} in {} and {}: the GPU's code wants those of a layer in one "
                                 "format; --device cpu reads every mixture",
                                 prefix, e, format_name(one), format_name(other)));
    }
  }
  return {};
}

Result<void> check_gpu_formats(const WeightSource& source) {
  if (source.config().head_dim % 8 != 0) {
    return failure(ErrorCode::Unsupported,
                   fmt::format("attention heads of {} dimensions: the GPU's code reads them eight at a time; "
                               "--device cpu reads any",
                               source.config().head_dim));
  }
  for (const Weight& weight : mapped_weights(source, Tables::Without)) {
    if (weight.view.format == WeightFormat::Bf16 || has_gpu_kernel(weight.view)) continue;
    return failure(ErrorCode::Unsupported,
                   fmt::format("weights in {}: the GPU's code reads bf16, FP8 (one scale, or blocks of 128 columns), "
                               "NVFP4 and affine codes in groups of 64 with bfloat16 scales; --device cpu reads every "
                               "format",
                               format_name(weight.view)));
  }
  for (int i = 0; i < source.config().num_layers(); ++i) {
    TRY_VOID(check_experts(source, "layers." + std::to_string(i) + ".mlp"));
  }
  return source.has_mtp() ? check_experts(source, "mtp.layers.0.mlp") : Result<void>();
}

Result<void> check_options(const WeightSource& source, const ModelOptions& o) {
  const int most = source.config().context_tokens;
  if (o.context_tokens < 1 || o.context_tokens > most) {
    return failure(ErrorCode::InvalidArgument,
                   fmt::format("a context of {} tokens: this model has at most {}", o.context_tokens, most));
  }
  CHECK(o.max_streams >= 1 && o.max_rows >= o.max_streams && o.max_drafts >= 1);
  return o.isa == Isa::Sm90 ? check_gpu_formats(source) : Result<void>();
}

}  // namespace

MemoryPlan plan_memory(const WeightSource& source, ThreadPool& pool, const ModelOptions& options) {
  return Reservation::plan(source, pool, options);
}

Result<void> fit_cache(const WeightSource& source, ThreadPool& pool, std::uint64_t bytes, ModelOptions& options) {
  options.cache_states = options.cache_blocks = 0;
  if (bytes == 0) return {};
  const auto reserved = [&](int states, int blocks) {
    ModelOptions some = options;
    some.cache_states = states;
    some.cache_blocks = blocks;
    return plan_memory(source, pool, some).reserved_bytes();
  };
  const std::uint64_t none = reserved(0, 0), state = reserved(1, 0) - none;
  const std::uint64_t block = std::max<std::uint64_t>(1, reserved(0, 1) - none);
  constexpr std::uint64_t kLeastBlocks = 2;    // so that a full machine can still bring a state back
  constexpr std::uint64_t kMostStates = 4096;  // they are looked through one by one
  if (bytes < state + kLeastBlocks * block) {
    constexpr double kMib = 1048576.0;
    return failure(
        ErrorCode::InvalidArgument,
        fmt::format("a prefix cache of {:.1f} MiB: one state and its blocks take {:.1f} MiB; 0 = no cache",
                    static_cast<double>(bytes) / kMib, static_cast<double>(state + kLeastBlocks * block) / kMib));
  }
  const std::uint64_t states = std::clamp<std::uint64_t>(bytes / 2 / std::max<std::uint64_t>(1, state), 1, kMostStates);
  options.cache_states = static_cast<int>(states);
  options.cache_blocks = static_cast<int>(std::min<std::uint64_t>((bytes - states * state) / block, 1 << 24));
  return {};
}

Result<std::unique_ptr<Model>> load_model(const WeightSource& source, ThreadPool& pool, const ModelOptions& options,
                                          const Progress& progress) {
  TRY_VOID(check_options(source, options));
  if (options.isa != Isa::Sm90) read_weights_in(source, progress);
  TRY(auto reservation, Reservation::make(source, pool, options, progress));
  return std::make_unique<NetworkModel>(std::move(reservation), source, pool, options);
}

}  // namespace rondo
