#include "tests/engine/fake_model.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "base/check.h"
#include "base/random.h"

namespace rondo::test {

namespace {

std::uint64_t stir(std::uint64_t hash, std::uint64_t more) { return mix64(hash ^ mix64(more + 1)); }
std::uint64_t stir(std::uint64_t hash, float more) {
  return stir(hash, std::uint64_t{std::bit_cast<std::uint32_t>(more)});
}

}  // namespace

FakeModel::FakeModel(FakeOptions options, FakeClock& clock) : options_(std::move(options)), clock_(clock) {
  const int blocks_each = (options_.context_tokens + options_.block_tokens - 1) / options_.block_tokens;
  facts_.arithmetic = "fake";
  facts_.vocab_size = options_.vocab_size;
  facts_.context_tokens = options_.context_tokens;
  facts_.max_streams = options_.max_streams;
  facts_.max_rows = options_.max_rows;
  facts_.max_drafts = options_.max_drafts;
  facts_.block_tokens = options_.block_tokens;
  facts_.num_blocks = options_.num_blocks > 0 ? options_.num_blocks : blocks_each * options_.max_streams;
  facts_.has_head = options_.has_head;
  facts_.head_buffer_rows = std::min(options_.head_buffer_rows, options_.max_rows);
  CHECK(options_.max_rows >= options_.max_streams);
  facts_.num_states = options_.num_states;
  facts_.grid = options_.grid;
  slots_.resize(static_cast<std::size_t>(options_.max_streams));
  states_.resize(static_cast<std::size_t>(options_.num_states));
  head_cells_.resize(static_cast<std::size_t>(facts_.num_blocks * options_.block_tokens));
  cells_.resize(static_cast<std::size_t>(facts_.num_blocks * options_.block_tokens));
  drafts_.resize(slots_.size());
}

FakeModel::Slot& FakeModel::slot(int index) {
  CHECK(index >= 0 && index < options_.max_streams);
  return slots_[static_cast<std::size_t>(index)];
}

double FakeModel::cost(const std::vector<double>& ms, int index) const {
  return ms.empty() ? 1.0 : ms[std::min(static_cast<std::size_t>(index), ms.size() - 1)];
}

void FakeModel::call() {
  if (calls++ == fails_at) throw std::runtime_error("a worker failed");
}

std::size_t FakeModel::cell_index(std::span<const std::int32_t> blocks, int position) const {
  const auto block = static_cast<std::size_t>(position / options_.block_tokens);
  CHECK(position >= 0 && block < blocks.size());
  CHECK(blocks[block] >= 0 && blocks[block] < facts_.num_blocks);
  return static_cast<std::size_t>(blocks[block] * options_.block_tokens + position % options_.block_tokens);
}

FakeModel::Cell& FakeModel::cell(std::span<const std::int32_t> blocks, int position) {
  return cells_[cell_index(blocks, position)];
}

std::uint64_t FakeModel::next_history(std::uint64_t history, std::int32_t token) {
  return stir(history, static_cast<std::uint64_t>(token));
}

// A row of a whole cell has another form, as a backend with two arithmetics has it.
std::uint64_t FakeModel::row_history(std::uint64_t history, std::int32_t token, bool in_cell) const {
  return next_history(history, in_cell ? token + options_.vocab_size : token);
}

void FakeModel::rely(const Past& on, int begin, int end, int more) {
  for (int position = begin; position < end; ++position) {
    Cell& each = cell(on.blocks, position);
    each.readers += more;
    CHECK(each.readers >= 0);
  }
}

void FakeModel::rely_head(const Past& on, int begin, int end, int more) {
  for (int position = begin; position < end; ++position) {
    HeadCell& each = head_cells_[cell_index(on.blocks, position)];
    each.readers += more;
    CHECK(each.readers >= 0);
  }
}

// The history that the blocks hold at positions 0 .. end - 1.
std::uint64_t FakeModel::read_back(std::span<const std::int32_t> blocks, int end) {
  std::uint64_t history = 0;
  for (int position = 0; position < end; ++position) {
    const Cell& read = cell(blocks, position);
    CHECK(read.position == position);
    const std::uint64_t plain = row_history(history, read.token, false);
    history = read.history == plain ? plain : row_history(history, read.token, true);
    CHECK(read.history == history);
  }
  return history;
}

void FakeModel::begin_forward() {
  used_.clear();
  row_history_.clear();
  rows_ = 0;
  deepest_.clear();
  drafting_.clear();
}

void FakeModel::run_rows(int slot_index, int start_pos, std::span<const std::int32_t> ids,
                         std::span<const std::int32_t> blocks, bool is_slice) {
  Slot& of = slot(slot_index);
  CHECK(std::find(used_.begin(), used_.end(), slot_index) == used_.end());
  used_.push_back(slot_index);
  CHECK(of.open_ids.empty() && start_pos == of.next_pos && !ids.empty());
  const int end = start_pos + static_cast<int>(ids.size());
  CHECK(end <= options_.context_tokens && static_cast<int>(blocks.size()) * options_.block_tokens >= end);
  rows_ += static_cast<int>(ids.size());
  rows_run += ids.size();
  CHECK(rows_ <= options_.max_rows);
  if (of.blocks.empty()) of.blocks.assign(blocks.begin(), blocks.end());
  CHECK(std::ranges::equal(of.blocks, blocks));  // for a sequence's whole life
  std::uint64_t history = of.history;
  CHECK(read_back(blocks, start_pos) == history);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CHECK(ids[i] >= 0 && ids[i] < options_.vocab_size);
    const int position = start_pos + static_cast<int>(i), grid = options_.grid;
    const int first = position / grid * grid;
    const bool in_cell = is_slice && grid > 1 && first >= start_pos && first + grid <= end;
    Cell& to = cell(blocks, position);
    CHECK(to.readers == 0);  // else another sequence's past would change
    history = row_history(history, ids[i], in_cell);
    to = {position, ids[i], history, 0};
    row_history_.push_back(history);
  }
}

void FakeModel::set_feeds_head(Slot& of, bool feeds) {
  CHECK(!of.feeds_known || of.feeds_head == feeds);  // for a sequence's whole life
  of.feeds_head = feeds;
  of.feeds_known = true;
}

void FakeModel::write_head(Slot& of, const WaitingRow& row) {
  CHECK(row.position == of.head_next && row.next_token >= 0);
  HeadCell& to = head_cells_[cell_index(of.blocks, row.position)];
  CHECK(to.readers == 0);
  to.row = row;
  rely_head(of, row.position, row.position + 1, 1);
  of.absorbed_last = row;
  ++of.head_next;
}

void FakeModel::absorb(Slot& of) {
  for (const WaitingRow& row : of.waiting) write_head(of, row);
  of.waiting.clear();
}

void FakeModel::keep_waiting(Slot& of, WaitingRow row) {
  CHECK(row.position == of.head_next + static_cast<int>(of.waiting.size()));
  if (static_cast<int>(of.waiting.size()) == facts_.head_buffer_rows) {
    of.waiting.erase(of.waiting.begin());
    rely_head(of, of.head_first, of.head_next, -1);
    of.head_first = of.head_next = of.waiting.empty() ? row.position : of.waiting.front().position;
  }
  of.waiting.push_back(row);
}

void FakeModel::prefill(std::span<const Slice> slices) {
  CHECK(!slices.empty());
  call();
  begin_forward();
  for (const Slice& slice : slices) run_rows(slice.slot, slice.start_pos, slice.ids, slice.blocks, true);
  std::size_t row = 0;
  for (const Slice& slice : slices) {
    Slot& of = slot(slice.slot);
    set_feeds_head(of, slice.feeds_head);
    const auto count = static_cast<int>(slice.ids.size());
    if (slice.feeds_head && options_.has_head) {
      // Absorbed with the forward; the last row's next token comes with the next rows.
      if (!of.waiting.empty()) of.waiting.back().next_token = slice.ids[0];
      absorb(of);
      for (int i = 0; i + 1 < count; ++i)
        write_head(of, {slice.start_pos + i, row_history_[row + static_cast<std::size_t>(i)],
                        slice.ids[static_cast<std::size_t>(i) + 1]});
      of.waiting = {{slice.start_pos + count - 1, row_history_[row + static_cast<std::size_t>(count) - 1], -1}};
    }
    row += static_cast<std::size_t>(count);
    rely(of, of.next_pos, of.next_pos + count, 1);
    of.next_pos += count;
    of.history = row_history_[row - 1];
  }
  ++forwards;
  clock_.advance_ms(cost(options_.costs.verify_ms[0], rows_));
}

std::int32_t FakeModel::drawn_token(const FakeDraw& draw) const {
  const DrawSettings& s = *draw.settings;
  std::uint64_t hash = stir(draw.history, static_cast<std::uint64_t>(draw.position));
  hash = stir(hash, s.temperature);
  if (s.temperature > 0) {
    hash = stir(stir(stir(hash, s.seed), s.top_p), s.min_p);
    hash = stir(hash, static_cast<std::uint64_t>(s.top_k));
  }
  for (const LogitBias& each : s.bias) hash = stir(stir(hash, static_cast<std::uint64_t>(each.id)), each.bias);
  if (s.has_penalties()) {
    hash = stir(stir(hash, s.presence_penalty), s.frequency_penalty);
    for (const std::int32_t id : draw.generated) hash = next_history(hash, id);
    for (const std::int32_t id : draw.drafted) hash = next_history(hash, id);
  }
  for (int attempt = 0; attempt < 100'000; ++attempt) {
    hash = mix64(hash);
    const auto id = options_.alphabet.empty()
                        ? static_cast<std::int32_t>(hash % static_cast<std::uint64_t>(options_.vocab_size))
                        : options_.alphabet[hash % options_.alphabet.size()];
    if (allows(draw.mask, id)) return id;
  }
  CHECK(!"a mask that allows none of the model's tokens");
  return 0;
}

RowLogprobs FakeModel::logprobs_of(std::uint64_t history, std::int32_t chosen, int num_top) {
  RowLogprobs out;
  out.chosen = -static_cast<float>(unit_interval(stir(history, static_cast<std::uint64_t>(chosen))));
  out.num_top = num_top;
  for (int i = 0; i < num_top; ++i) {
    out.top_ids[i] = static_cast<std::int32_t>(random_bits(history, static_cast<std::uint64_t>(i)) % 300);
    out.top[i] = -static_cast<float>(unit_interval(random_bits(history, 77, static_cast<std::uint64_t>(i))));
  }
  return out;
}

Verified FakeModel::verify(std::span<const Window> windows) {
  CHECK(!windows.empty());
  call();
  begin_forward();
  tokens_.clear();
  logprobs_.clear();
  for (const Window& window : windows) {
    const std::size_t first = row_history_.size(), count = window.ids.size();
    CHECK(window.certain >= 1 && window.certain <= static_cast<int>(count));
    const std::size_t certain = static_cast<std::size_t>(window.certain), drafts = count - certain;
    CHECK(static_cast<int>(drafts) <= options_.max_drafts && window.certain <= facts_.head_buffer_rows);
    CHECK(window.masks.empty() || window.masks.size() == drafts + 1);
    CHECK(window.generated.empty() || window.generated.back() == window.ids[certain - 1]);
    for (std::size_t draft = 0; draft < drafts && !window.masks.empty(); ++draft)
      CHECK(allows(window.masks[draft], window.ids[certain + draft]));  // cut at the first forbidden one
    run_rows(window.slot, window.start_pos, window.ids, window.blocks, false);
    Slot& of = slot(window.slot);
    for (std::size_t draft = 0; draft <= drafts; ++draft) {
      std::uint64_t history = row_history_[first + certain - 1 + draft];
      if (plant_neighbour) history = stir(history, slot((window.slot + 1) % options_.max_streams).history);
      tokens_.push_back(drawn_token({.history = history,
                                     .position = window.start_pos + static_cast<std::int64_t>(certain + draft),
                                     .settings = window.draw,
                                     .generated = window.generated,
                                     .drafted = window.ids.subspan(certain, draft),
                                     .mask = window.masks.empty() ? TokenMask{} : window.masks[draft]}));
      logprobs_.push_back(window.num_top_logprobs < 0 ? RowLogprobs{}
                                                      : logprobs_of(history, tokens_.back(), window.num_top_logprobs));
    }
    of.open_history.assign(row_history_.begin() + static_cast<std::ptrdiff_t>(first), row_history_.end());
    of.open_ids.assign(window.ids.begin(), window.ids.end());
    of.open_certain = window.certain;
  }
  ++forwards;
  windows_seen += static_cast<int>(windows.size());
  clock_.advance_ms(cost(options_.costs.verify_ms[0], rows_));
  return {tokens_, logprobs_};
}

void FakeModel::commit(std::span<const Kept> kept) {
  CHECK(kept.size() == used_.size());  // every window of the forward is judged
  call();
  for (const Kept& each : kept) {
    Slot& of = slot(each.slot);
    CHECK(!of.open_ids.empty() && each.rows >= of.open_certain && each.rows <= static_cast<int>(of.open_ids.size()));
    set_feeds_head(of, each.feeds_head);
    for (int row = 0; row < each.rows && each.feeds_head && options_.has_head; ++row) {
      const auto at = static_cast<std::size_t>(row);
      if (!of.waiting.empty() && of.waiting.back().next_token < 0) of.waiting.back().next_token = of.open_ids[0];
      keep_waiting(
          of, {of.next_pos + row, of.open_history[at], row + 1 < each.rows ? of.open_ids[at + 1] : each.next_token});
    }
    rely(of, of.next_pos, of.next_pos + each.rows, 1);
    of.next_pos += each.rows;
    of.history = of.open_history[static_cast<std::size_t>(each.rows) - 1];
    of.open_ids.clear();
  }
}

// The token the target would draw if no mask spoke, or another; how likely, the head says itself.
Drawn FakeModel::guess(const DraftStream& stream, Slot& of) {
  const std::int64_t position = of.next_pos + 1 + static_cast<std::int64_t>(of.drafted.size());
  const std::int32_t right = drawn_token({.history = of.draft_history,
                                          .position = position,
                                          .settings = stream.draw,
                                          .generated = stream.generated,
                                          .drafted = of.drafted,
                                          .mask = {}});
  const double spread = unit_interval(random_bits(of.draft_history, 11)) - 0.5;
  const double chance = std::clamp(options_.head_right + spread * 0.4, 0.0, 1.0);
  const bool is_right = unit_interval(random_bits(of.draft_history, 13)) < chance;
  const std::int32_t token = is_right ? right : (right + 1) % options_.vocab_size;
  of.drafted.push_back(token);
  CHECK(static_cast<int>(of.drafted.size()) <= options_.max_drafts);
  of.draft_history = next_history(of.draft_history, token);
  return {token, static_cast<float>(chance)};
}

std::span<const Drawn> FakeModel::draft_first(std::span<const DraftStream> streams) {
  CHECK(options_.has_head && !streams.empty() && streams.size() <= slots_.size());
  call();
  drafting_.assign(streams.begin(), streams.end());
  deepest_.clear();
  used_.clear();
  int absorbed = 0;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    Slot& of = slot(streams[i].slot);
    CHECK(std::find(used_.begin(), used_.end(), streams[i].slot) == used_.end());
    used_.push_back(streams[i].slot);
    CHECK(of.open_ids.empty() && !of.waiting.empty() && of.feeds_head);
    CHECK(of.waiting.back().position == of.next_pos - 1 && of.waiting.back().history == of.history);
    CHECK(!streams[i].generated.empty() && of.waiting.back().next_token == streams[i].generated.back());
    CHECK(std::ranges::equal(of.blocks, streams[i].blocks) && read_back(of.blocks, of.next_pos) == of.history);
    absorbed += static_cast<int>(of.waiting.size());
    absorb(of);
    for (int position = of.head_first; position < of.next_pos; ++position) {  // the head has read what the target has
      const WaitingRow& row = head_cells_[cell_index(of.blocks, position)].row;
      CHECK(row.position == position && row.history == cell(of.blocks, position).history);
      const bool is_last = position + 1 == of.next_pos;
      CHECK(row.next_token == (is_last ? streams[i].generated.back() : cell(of.blocks, position + 1).token));
    }
    of.drafted.clear();
    of.draft_history = next_history(of.history, streams[i].generated.back());
    drafts_[i] = guess(streams[i], of);
    deepest_.push_back(static_cast<int>(i));
  }
  used_.clear();
  ++head_passes;
  clock_.advance_ms(cost(options_.costs.absorb_ms, absorbed));
  return std::span(drafts_).first(streams.size());
}

std::span<const Drawn> FakeModel::draft_next(std::span<const int> still_drafting) {
  CHECK(!still_drafting.empty() && std::is_sorted(still_drafting.begin(), still_drafting.end()));
  CHECK(std::adjacent_find(still_drafting.begin(), still_drafting.end()) == still_drafting.end());
  for (const int i : still_drafting) {
    CHECK(std::find(deepest_.begin(), deepest_.end(), i) != deepest_.end());  // it drafted at every level before
    const DraftStream& stream = drafting_[static_cast<std::size_t>(i)];
    Slot& of = slot(stream.slot);
    // A level writes the head's cells behind the committed ones.
    HeadCell& written = head_cells_[cell_index(of.blocks, of.next_pos + static_cast<int>(of.drafted.size()) - 1)];
    CHECK(written.readers == 0);
    written.row = {-1, 0, -1};
    drafts_[static_cast<std::size_t>(i)] = guess(stream, of);
  }
  deepest_.assign(still_drafting.begin(), still_drafting.end());
  ++head_passes;
  clock_.advance_ms(cost(options_.costs.level_ms, static_cast<int>(still_drafting.size())));
  return std::span(drafts_).first(drafting_.size());
}

void FakeModel::release(int slot_index) {
  Slot& of = slot(slot_index);
  rely(of, 0, of.next_pos, -1);
  rely_head(of, of.head_first, of.head_next, -1);
  of = {};
}

SavedState FakeModel::save(int slot_index, int state_index) {
  call();
  Slot& of = slot(slot_index);
  CHECK(of.open_ids.empty() && of.next_pos > 0 && state_index >= 0 && state_index < options_.num_states);
  forget(state_index);
  State& to = states_[static_cast<std::size_t>(state_index)];
  static_cast<Past&>(to) = of;
  const int block_tokens = options_.block_tokens;
  to.blocks.resize(static_cast<std::size_t>((of.next_pos + block_tokens - 1) / block_tokens));
  to.saved = {of.next_pos, of.next_pos / block_tokens * block_tokens, options_.has_head && of.feeds_head};
  if (to.saved.has_head) {
    if (to.waiting.empty()) {
      CHECK(of.absorbed_last.position == of.next_pos - 1);
      to.waiting.push_back(of.absorbed_last);
      --to.head_next;
    }
    to.waiting.back().next_token = -1;
    to.saved.shared_tokens = std::min(to.head_next, of.next_pos) / block_tokens * block_tokens;
  }
  if (plant_shared_too_far) to.saved.shared_tokens = of.next_pos / block_tokens * block_tokens;
  if (plant_early_state && of.next_pos > 1) to.history = cell(of.blocks, of.next_pos - 2).history;
  rely(to, 0, to.next_pos, 1);
  rely_head(to, to.head_first, to.head_next, 1);
  return to.saved;
}

void FakeModel::restore(int slot_index, int state_index, std::span<const std::int32_t> from,
                        std::span<const std::int32_t> to) {
  call();
  const State& state = states_[static_cast<std::size_t>(state_index)];
  Slot& into = slot(slot_index);
  CHECK(into.next_pos == 0 && state.next_pos > 0 && std::ranges::equal(from, state.blocks));
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool is_shared = static_cast<int>(i) < state.saved.shared_tokens / options_.block_tokens;
    CHECK((from[i] == to[i]) == is_shared);
    for (int offset = 0; offset < options_.block_tokens && !is_shared; ++offset) {
      const auto source = static_cast<std::size_t>(from[i] * options_.block_tokens + offset);
      const auto target = static_cast<std::size_t>(to[i] * options_.block_tokens + offset);
      CHECK(cells_[target].readers == 0 && head_cells_[target].readers == 0);
      cells_[target] = cells_[source];
      cells_[target].readers = 0;
      head_cells_[target] = head_cells_[source];
      head_cells_[target].readers = 0;
    }
  }
  static_cast<Past&>(into) = state;
  into.blocks.assign(to.begin(), to.end());
  rely(into, 0, into.next_pos, 1);
  rely_head(into, into.head_first, into.head_next, 1);
  ++restores;
}

void FakeModel::forget(int state_index) {
  State& state = states_[static_cast<std::size_t>(state_index)];
  rely(state, 0, state.next_pos, -1);
  rely_head(state, state.head_first, state.head_next, -1);
  state = {};
}

bool FakeModel::nothing_is_relied_on() const {
  return std::ranges::all_of(cells_, [](const Cell& each) { return each.readers == 0; }) &&
         std::ranges::all_of(head_cells_, [](const HeadCell& each) { return each.readers == 0; });
}

int FakeModel::num_held_slots() const {
  return static_cast<int>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& each) { return each.next_pos > 0; }));
}

}  // namespace rondo::test
