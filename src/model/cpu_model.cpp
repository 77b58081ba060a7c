// The contract of model/model.h on a CPU: slots and their positions, batches from slices and windows, tokens from
// logits.

#include <fmt/format.h>
#include <algorithm>

#include "model/reservation.h"
#include "model/weights_in.h"

namespace rondo {

namespace {

// One sequence's place: where it stands and what its last window left to be decided.
struct Slot {
  int next_pos = 0;
  int fold = 0;                         // logged rows that the next span folds in
  int open_rows = 0, open_certain = 0;  // of a window that awaits its commit; 0 = none
  std::vector<std::int32_t> recent;     // the last committed ids an n-gram can reach, oldest first
  std::vector<std::int32_t> open_ids;   // the open window's
};

class CpuModel final : public Model {
 public:
  CpuModel(std::unique_ptr<Reservation> reservation, const WeightSource& source, ThreadPool& pool,
           const ModelOptions& options);

  const ModelFacts& facts() const override { return facts_; }
  const MemoryPlan& plan() const override { return reservation_->memory_plan(); }
  void prefill(std::span<const Slice> slices) override;
  std::span<const std::int32_t> verify(std::span<const Window> windows) override;
  void commit(std::span<const Kept> kept) override;
  void release(int slot) override;

 private:
  Slot& slot(int index) { return slots_[static_cast<std::size_t>(index)]; }
  int reach() const { return std::max(0, reservation_->network().ngram_size() - 1); }
  void begin_batch();
  void add_rows(int slot_index, int start_pos, std::span<const std::int32_t> ids, int certain,
                std::span<const std::int32_t> blocks);
  void remember(Slot& to, std::span<const std::int32_t> ids) const;
  void run_batch();
  void draw_tokens(std::span<const Window> windows);

  std::unique_ptr<Reservation> reservation_;
  ModelFacts facts_;
  Stream stream_;
  std::vector<Slot> slots_;
  std::vector<std::int32_t> history_;  // one sequence's recent ids and its new ones
  std::vector<RowSpan> spans_;
  int rows_ = 0;
  std::vector<std::int32_t> logit_rows_;
  std::vector<std::int32_t> tokens_;
};

CpuModel::CpuModel(std::unique_ptr<Reservation> reservation, const WeightSource& source, ThreadPool& pool,
                   const ModelOptions& options)
    : reservation_(std::move(reservation)),
      stream_(pool, options.isa),
      slots_(static_cast<std::size_t>(options.max_streams)) {
  const int blocks = num_kv_blocks(options);
  facts_ = {.arithmetic = fmt::format("cpu/{}", isa_name(options.isa)),
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
            .weight_bytes_per_row = reservation_->weight_bytes_per_row()};
  // Nothing below may grow once the server is ready.
  const auto most_rows = static_cast<std::size_t>(options.max_rows);
  history_.reserve(most_rows + static_cast<std::size_t>(reach()));
  spans_.reserve(static_cast<std::size_t>(options.max_streams));
  logit_rows_.reserve(static_cast<std::size_t>(Reservation::max_logit_rows(options)));
  tokens_.reserve(logit_rows_.capacity());
  for (Slot& each : slots_) {
    each.recent.reserve(static_cast<std::size_t>(reach()));
    each.open_ids.reserve(most_rows);
  }
}

void CpuModel::begin_batch() {
  spans_.clear();
  rows_ = 0;
}

void CpuModel::add_rows(int slot_index, int start_pos, std::span<const std::int32_t> ids, int certain,
                        std::span<const std::int32_t> blocks) {
  CHECK(slot_index >= 0 && slot_index < facts_.max_streams);
  Slot& to = slot(slot_index);
  const int count = static_cast<int>(ids.size());
  CHECK(to.open_rows == 0 &&
        start_pos == to.next_pos);  // the last window is committed, and nothing is left out or repeated
  CHECK(count >= 1 && rows_ + count <= facts_.max_rows && start_pos + count <= facts_.context_tokens);
  CHECK(static_cast<int>(blocks.size()) * facts_.block_tokens >= start_pos + count);
  for (const RowSpan& span : spans_) CHECK(span.slot != slot_index);
  CHECK(spans_.size() < spans_.capacity());

  const Workspace& w = reservation_->workspace();
  std::copy(ids.begin(), ids.end(), w.ids.i32() + rows_);
  for (const std::int32_t id : ids) CHECK(id >= 0 && id < facts_.vocab_size);
  const int heads = reservation_->network().num_ngram_heads();
  if (heads > 0) {
    history_.assign(to.recent.begin(), to.recent.end());
    auto* hashed =
        static_cast<std::int64_t*>(const_cast<void*>(w.ngram_rows.data)) + static_cast<std::int64_t>(rows_) * heads;
    for (const std::int32_t id : ids) {
      history_.push_back(id);
      reservation_->network().hash_ngrams(history_, hashed);
      hashed += heads;
    }
  }
  spans_.push_back({.begin = rows_,
                    .count = count,
                    .certain = certain,
                    .start_pos = start_pos,
                    .slot = slot_index,
                    .fold = to.fold,
                    .blocks = blocks.data()});
  to.fold = 0;
  rows_ += count;
}

void CpuModel::remember(Slot& to, std::span<const std::int32_t> ids) const {
  for (const std::int32_t id : ids) {
    if (static_cast<int>(to.recent.size()) == reach()) {
      if (to.recent.empty()) return;
      to.recent.erase(to.recent.begin());
    }
    to.recent.push_back(id);
  }
}

void CpuModel::run_batch() {
  const Workspace& w = reservation_->workspace();
  Batch batch;
  batch.rows = rows_;
  batch.ids = w.ids.i32();
  batch.spans = spans_;
  batch.ngram_rows = w.ngram_rows.slice(0, rows_);
  reservation_->network().forward(stream_, batch, reservation_->scratch(), w.hidden.slice(0, rows_));
}

void CpuModel::prefill(std::span<const Slice> slices) {
  begin_batch();
  for (const Slice& slice : slices) {
    add_rows(slice.slot, slice.start_pos, slice.ids, static_cast<int>(slice.ids.size()), slice.blocks);
  }
  run_batch();
  for (const Slice& slice : slices) {
    slot(slice.slot).next_pos += static_cast<int>(slice.ids.size());
    remember(slot(slice.slot), slice.ids);
  }
}

std::span<const std::int32_t> CpuModel::verify(std::span<const Window> windows) {
  begin_batch();
  logit_rows_.clear();
  for (const Window& window : windows) {
    const int count = static_cast<int>(window.ids.size());
    CHECK(window.certain >= 1 && window.certain <= count && count - window.certain <= facts_.max_drafts);
    CHECK(logit_rows_.size() + static_cast<std::size_t>(count - window.certain + 1) <= logit_rows_.capacity());
    for (int row = window.certain - 1; row < count; ++row) logit_rows_.push_back(rows_ + row);
    add_rows(window.slot, window.start_pos, window.ids, window.certain, window.blocks);
  }
  run_batch();
  const Workspace& w = reservation_->workspace();
  reservation_->network().logits(stream_, w.hidden, logit_rows_, reservation_->scratch(),
                                 w.logits.slice(0, static_cast<std::int64_t>(logit_rows_.size())));
  draw_tokens(windows);
  for (const Window& window : windows) {
    Slot& to = slot(window.slot);
    to.open_rows = static_cast<int>(window.ids.size());
    to.open_certain = window.certain;
    to.open_ids.assign(window.ids.begin(), window.ids.end());
  }
  return tokens_;
}

void CpuModel::draw_tokens(std::span<const Window> windows) {
  const Workspace& w = reservation_->workspace();
  const auto vocab = static_cast<std::size_t>(facts_.vocab_size);
  tokens_.resize(logit_rows_.size());
  const auto draw_row = [&](std::size_t row, const Window& window, std::int64_t position, std::size_t part) {
    auto* room = static_cast<Candidate*>(const_cast<void*>(w.candidates.data)) + part * vocab;
    tokens_[row] = draw({w.logits.f32() + row * vocab, vocab}, window.draw, position, {room, vocab});
  };
  const int parts = std::min(stream_.pool().num_threads(), static_cast<int>(tokens_.size()));
  stream_.pool().run(parts, [&](int part) {  // row i goes to thread i mod parts
    std::size_t row = 0;
    for (const Window& window : windows) {
      for (std::size_t at = static_cast<std::size_t>(window.certain); at <= window.ids.size(); ++at, ++row) {
        if (static_cast<int>(row) % parts != part) continue;
        draw_row(row, window, window.start_pos + static_cast<std::int64_t>(at), static_cast<std::size_t>(part));
      }
    }
  });
}

void CpuModel::commit(std::span<const Kept> kept) {
  for (const Kept& each : kept) {
    Slot& to = slot(each.slot);
    CHECK(to.open_rows > 0 && each.rows >= to.open_certain && each.rows <= to.open_rows);
    to.next_pos += each.rows;
    to.fold = each.rows - to.open_certain;
    remember(to, std::span(to.open_ids).first(static_cast<std::size_t>(each.rows)));
    to.open_rows = 0;
  }
}

void CpuModel::release(int slot_index) {
  CHECK(slot_index >= 0 && slot_index < facts_.max_streams);
  Slot& to = slot(slot_index);
  to.next_pos = to.fold = to.open_rows = 0;
  to.recent.clear();
}

Result<void> check_options(const WeightSource& source, const ModelOptions& o) {
  const int most = source.config().context_tokens;
  if (o.context_tokens < 1 || o.context_tokens > most) {
    return failure(ErrorCode::InvalidArgument,
                   fmt::format("a context of {} tokens: this model has at most {}", o.context_tokens, most));
  }
  CHECK(o.max_streams >= 1 && o.max_rows >= o.max_streams && o.max_drafts >= 1);
  return {};
}

}  // namespace

MemoryPlan plan_memory(const WeightSource& source, ThreadPool& pool, const ModelOptions& options) {
  return Reservation::plan(source, pool, options);
}

Result<std::unique_ptr<Model>> load_model(const WeightSource& source, ThreadPool& pool, const ModelOptions& options,
                                          const Progress& progress) {
  TRY_VOID(check_options(source, options));
  read_weights_in(source, progress);
  TRY(auto reservation, Reservation::make(source, pool, options));
  return std::make_unique<CpuModel>(std::move(reservation), source, pool, options);
}

}  // namespace rondo
