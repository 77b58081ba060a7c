// The drafting pass of NetworkModel: rows wait for the head, are absorbed in one batched pass, then drafted level by
// level.

#include <algorithm>

#include "model/groups.h"
#include "model/network_model.h"

namespace rondo {

float* NetworkModel::waiting_row(int slot_index, int index) const {
  const Tensor waiting = reservation_->workspace().waiting;
  const std::int64_t width = reservation_->workspace().hidden.width();
  return waiting.f32() + (static_cast<std::int64_t>(slot_index) * kHeadBufferRows + index) * width;
}

// The oldest rows go, as many as make the head's cache begin at a whole selected block.
void NetworkModel::drop_oldest_waiting(int slot_index) {
  Slot& of = slot(slot_index);
  int dropped = kHeadBufferRows / 2;  // rows are moved up then and not with every token: parked streams pay for this
  while ((of.head_next + dropped) % index_block_ != 0) ++dropped;
  forget_waiting(slot_index, dropped);
  of.head_first = of.head_next;
}

// The first `count` waiting rows wait no longer.
void NetworkModel::forget_waiting(int slot_index, int count) {
  Slot& of = slot(slot_index);
  CHECK(count <= static_cast<int>(of.waiting_ids.size()));
  const auto rest = static_cast<int>(of.waiting_ids.size()) - count;
  run_copies();
  for (int i = 0; i < rest; ++i) {
    copy_row(waiting_row(slot_index, i + count), waiting_row(slot_index, i));
    if ((i + 1) % count == 0) run_copies();  // what is read next is written last
  }
  run_copies();
  of.waiting_ids.erase(of.waiting_ids.begin(), of.waiting_ids.begin() + count);
  of.head_next += count;
}

void NetworkModel::keep_waiting(int slot_index, const float* hidden, std::int32_t next_token) {
  Slot& to = slot(slot_index);
  if (to.has_last) {  // the row before was kept without its next token: it is this row's own token
    to.waiting_ids.push_back(to.open_ids[0]);
    to.has_last = false;
  }
  if (static_cast<int>(to.waiting_ids.size()) == kHeadBufferRows) drop_oldest_waiting(slot_index);
  copy_row(hidden, waiting_row(slot_index, static_cast<int>(to.waiting_ids.size())));
  to.waiting_ids.push_back(next_token);
}

void NetworkModel::add_head_row(const float* hidden, std::int32_t id) {
  const Workspace& w = reservation_->workspace();
  CHECK(rows_ < facts_.max_rows);
  copy_row(hidden, w.head_in.f32() + rows_ * w.head_in.width());
  w.host.ids.i32()[rows_++] = id;
}

// The last `count` rows added are the slot's, from start_pos on.
void NetworkModel::add_head_span(int slot_index, int start_pos, int count, std::span<const std::int32_t> blocks) {
  CHECK(start_pos + count <= facts_.context_tokens &&
        static_cast<int>(blocks.size()) * facts_.block_tokens >= start_pos + count);
  spans_.push_back({.begin = rows_ - count,
                    .count = count,
                    .certain = count,
                    .start_pos = start_pos,
                    .slot = slot_index,
                    .fold = 0,
                    .first_pos = slot(slot_index).head_first,
                    .blocks = blocks.data()});
}

void NetworkModel::head_forward(const Batch& batch) {
  const Workspace& w = reservation_->workspace();
  reservation_->network().head_forward(stream_, batch, w.head_in.slice(0, rows_), reservation_->scratch(),
                                       w.head_out.slice(0, rows_));
}

void NetworkModel::run_head_batch() {
  run_copies();
  const Batch batch = reservation_->stage(stream_, rows_, spans_);
  stream_.as_one(0, [&] { head_forward(batch); });
}

// Rows that a restored state left waiting go first, in a pass of their own, but for the last.
void NetworkModel::absorb_waiting(const Slice& slice) {
  Slot& of = slot(slice.slot);
  for (auto left = static_cast<int>(of.waiting_ids.size()); left > 0;) {
    const int count = std::min(left, facts_.max_rows);
    begin_batch();
    for (int row = 0; row < count; ++row)
      add_head_row(waiting_row(slice.slot, row), of.waiting_ids[static_cast<std::size_t>(row)]);
    add_head_span(slice.slot, of.head_next, count, slice.blocks);
    run_head_batch();
    forget_waiting(slice.slot, count);
    if (of.has_last) copy_row(waiting_row(slice.slot, left), waiting_row(slice.slot, left - count));
    run_copies();
    left -= count;
  }
}

// A prompt's rows go to the head with the target's, but for the last, whose next token the next slice or window brings.
void NetworkModel::absorb_prompt(std::span<const Slice> slices) {
  for (const Slice& slice : slices) {
    if (slice.feeds_head) absorb_waiting(slice);
  }
  begin_batch();
  for (const Slice& slice : slices) {
    Slot& of = slot(slice.slot);
    if (!slice.feeds_head) continue;
    CHECK(head_follows(of));
    const int count = static_cast<int>(slice.ids.size());
    const int start_pos = of.has_last ? slice.start_pos - 1 : slice.start_pos;
    const int before = rows_;
    if (of.has_last) add_head_row(waiting_row(slice.slot, 0), slice.ids[0]);
    for (int row = 0; row + 1 < count; ++row)
      add_head_row(hidden_row(of.open_first_row + row), slice.ids[static_cast<std::size_t>(row) + 1]);
    if (rows_ > before) add_head_span(slice.slot, start_pos, rows_ - before, slice.blocks);
    of.head_next = slice.start_pos + count - 1;
  }
  if (rows_ > 0) run_head_batch();
  for (const Slice& slice : slices) {  // after the batch has read what waited there
    if (!slice.feeds_head) continue;
    Slot& of = slot(slice.slot);
    copy_row(hidden_row(of.open_first_row + static_cast<int>(slice.ids.size()) - 1), waiting_row(slice.slot, 0));
    of.has_last = true;
  }
  run_copies();
}

std::span<const Drawn> NetworkModel::draft_first(std::span<const DraftStream> streams) {
  CHECK(facts_.has_head && streams.size() <= slots_.size());
  drafting_.assign(streams.begin(), streams.end());
  absorb_rows_.clear();
  for (const DraftStream& each : streams) {
    CHECK(slot(each.slot).open_rows == 0 && !slot(each.slot).waiting_ids.empty());
    absorb_ahead(each);
    absorb_rows_.push_back(static_cast<int>(slot(each.slot).waiting_ids.size()));
  }
  split_into_groups(absorb_rows_, facts_.max_rows, group_ends_);
  std::size_t begin = 0;
  for (const int end : group_ends_) {
    absorb_group(streams, begin, static_cast<std::size_t>(end));
    begin = static_cast<std::size_t>(end);
  }
  return std::span(drafts_).first(streams.size());
}

// More rows may wait than one pass has room for: all but the last max_rows of them are absorbed first, none drafted.
void NetworkModel::absorb_ahead(const DraftStream& stream) {
  const Slot& of = slot(stream.slot);
  const auto waiting = static_cast<int>(of.waiting_ids.size());
  int absorbed = 0;
  while (waiting - absorbed > facts_.max_rows) {
    begin_batch();
    for (int row = absorbed; row < absorbed + facts_.max_rows; ++row)
      add_head_row(waiting_row(stream.slot, row), of.waiting_ids[static_cast<std::size_t>(row)]);
    add_head_span(stream.slot, of.head_next + absorbed, facts_.max_rows, stream.blocks);
    run_head_batch();
    absorbed += facts_.max_rows;
  }
  if (absorbed > 0) forget_waiting(stream.slot, absorbed);
}

void NetworkModel::absorb_group(std::span<const DraftStream> streams, std::size_t begin, std::size_t end) {
  begin_batch();
  head_rows_.clear();
  all_streams_.clear();
  for (std::size_t i = begin; i < end; ++i) {
    Slot& of = slot(streams[i].slot);
    const auto count = static_cast<int>(of.waiting_ids.size());
    for (int row = 0; row < count; ++row)
      add_head_row(waiting_row(streams[i].slot, row), of.waiting_ids[static_cast<std::size_t>(row)]);
    add_head_span(streams[i].slot, of.head_next, count, streams[i].blocks);
    of.head_next += count;
    of.draft_pos = of.head_next;
    of.waiting_ids.clear();
    of.absorbed_last = count - 1;
    head_rows_.push_back(rows_ - 1);
    all_streams_.push_back(static_cast<int>(i));
    num_drafted_[i] = 0;
  }
  finish_level(all_streams_);
}

std::span<const Drawn> NetworkModel::draft_next(std::span<const int> still_drafting) {
  begin_batch();
  head_rows_.clear();
  const Workspace& w = reservation_->workspace();
  for (const int i : still_drafting) {
    const DraftStream& each = drafting_[static_cast<std::size_t>(i)];
    Slot& of = slot(each.slot);
    const std::int64_t width = w.chain.width();
    add_head_row(w.chain.f32() + i * width, of.draft_token);
    add_head_span(each.slot, of.draft_pos++, 1, each.blocks);
    head_rows_.push_back(rows_ - 1);
  }
  finish_level(still_drafting);
  return drafts_;
}

// The logits of each stream's last row, a draft from each, and the hidden state that a deeper level reads.
void NetworkModel::finish_level(std::span<const int> streams) {
  const Workspace& w = reservation_->workspace();
  const auto wanted = stage_logit_rows(head_rows_);
  if (stream_.on_cuda()) stage_drafts(streams);
  run_copies();
  const Batch batch = reservation_->stage(stream_, rows_, spans_);
  const Network& network = reservation_->network();
  const Tensor logits = w.draft_logits.slice(0, static_cast<std::int64_t>(streams.size()));
  stream_.as_one(shape(Pass::Head), [&] {
    head_forward(batch);
    network.head_logits(stream_, w.head_out, wanted, reservation_->scratch(), logits);
    queue_draws(logits, network.draft_id_table());
  });
  draw_drafts(streams, logits);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const auto stream = static_cast<std::size_t>(streams[i]);
    Slot& of = slot(drafting_[stream].slot);
    of.draft_token = drafts_[stream].token;
    CHECK(num_drafted_[stream] < facts_.max_drafts);
    drafted_[stream * static_cast<std::size_t>(facts_.max_drafts) + static_cast<std::size_t>(num_drafted_[stream]++)] =
        of.draft_token;
    const std::int64_t width = w.chain.width();
    copy_row(w.head_out.f32() + head_rows_[i] * width, w.chain.f32() + static_cast<std::int64_t>(stream) * width);
  }
  run_copies();
}

}  // namespace rondo
