// Draws of NetworkModel: on a CPU row by row over the threads; on a GPU all rows at once where they lie, those with a
// top_k by the host from their likeliest tokens. Some rows are downloaded there and drawn by the host: those cut
// without a top_k (top_p, min_p) or with a large one; those with bias or penalties that tell their logprobs, as one is
// added where the other is read; those whose list of shifts does not fit; and those with ties by the hundred.

#include <algorithm>

#include "model/network_model.h"
#include "ops/sample/shifts.h"

namespace rondo {

namespace {

// What a window's drawn row, the one after `draft` drafts, draws with.
DrawRow window_row(const Window& window, std::size_t draft) {
  const auto certain = static_cast<std::size_t>(window.certain);
  return {.settings = window.draw,
          .position = window.start_pos + static_cast<std::int64_t>(certain + draft),
          .generated = window.generated,
          .drafted = window.ids.subspan(certain, draft),
          .mask = window.masks.empty() ? TokenMask{} : window.masks[draft]};
}

DrawKey* keys_in(const Staged& staged) { return static_cast<DrawKey*>(const_cast<void*>(staged.draws.data)); }

// Is a row of such settings drawn on a GPU, as far as they say?
bool draws_there(const DrawSettings& settings, int num_top_logprobs) {
  const int likely = num_likely(settings);
  if (num_top_logprobs >= 0 && settings.shifts()) return false;
  return draws_from_all(settings) || (likely > 0 && likely <= kMostLikely);
}

// Writes how a batch's rows are drawn on a GPU: a key each, and side by side what keys name of shifts and masks.
class DrawStaging {
 public:
  // ids: of the logits, as in draw_draft; size: how many they are.
  DrawStaging(const Workspace& w, std::span<const std::int32_t> ids, int size)
      : w_(w),
        ids_(ids),
        shifts_(static_cast<Shift*>(const_cast<void*>(w.host.shifts.data))),
        places_(w.places.i32(), static_cast<std::size_t>(size)),
        key_(keys_in(w.host)) {}

  // A window's rows, one after each of its drafts from `first` on. row_of(draft): what that row draws with.
  template <class RowOf>
  void add(std::size_t first, std::span<const std::int32_t> drafts, int num_top_logprobs, RowOf row_of) {
    const DrawRow any = row_of(first);
    static const DrawSettings kNone{};
    const bool there = draws_there(*any.settings, num_top_logprobs);
    Shifts list(there ? *any.settings : kNone, any.generated, ids_, {shifts_ + num_shifts_, Shifts::kMost}, places_);
    for (std::size_t draft = 0; draft <= drafts.size(); ++draft) {
      if (draft >= first) *key_++ = key_of(row_of(draft), there && list.fits(), num_top_logprobs, list);
      if (draft < drafts.size()) list.add_draft(drafts[draft]);
    }
    num_shifts_ += list.size();
  }

  // Keys go with the batch.
  void upload(Stream& s) const {
    const Staged &from = w_.host, &to = w_.device;
    s.upload(const_cast<void*>(to.shifts.data), from.shifts.data,
             static_cast<std::size_t>(num_shifts_) * sizeof(Shift));
    s.upload(const_cast<void*>(to.masks.data), from.masks.data,
             static_cast<std::size_t>(num_masks_ * from.masks.width()) * sizeof(std::uint32_t));
  }

 private:
  DrawKey key_of(const DrawRow& row, bool there, int num_top_logprobs, const Shifts& list) {
    DrawKey key{.temperature = row.settings->temperature,
                .position = row.position,
                .seed = row.settings->seed,
                .likely = 0,
                .by_host = !there};
    if (!there) return key;
    key.likely = num_likely(*row.settings);
    key.told = std::min(num_top_logprobs, kMaxTopLogprobs);
    list.tell(key, num_shifts_);
    if (!row.mask.empty()) key.mask = stage(row.mask);
    return key;
  }
  int stage(TokenMask mask) {
    const Tensor to = w_.host.masks.slice(num_masks_, 1);
    const std::size_t words = std::min(mask.size(), static_cast<std::size_t>(to.width()));
    const auto end = std::copy_n(mask.begin(), words, static_cast<std::uint32_t*>(const_cast<void*>(to.data)));
    std::fill_n(end, static_cast<std::size_t>(to.width()) - words, 0u);
    return num_masks_++;
  }

  const Workspace& w_;
  std::span<const std::int32_t> ids_;
  Shift* shifts_;
  std::span<std::int32_t> places_;
  DrawKey* key_;
  int num_shifts_ = 0, num_masks_ = 0;
};

}  // namespace

std::span<const std::int32_t> NetworkModel::stage_logit_rows(std::span<const std::int32_t> rows) {
  const Workspace& w = reservation_->workspace();
  std::ranges::copy(rows, w.host.rows.i32());
  return {w.device.rows.i32(), rows.size()};
}

DrawRoom NetworkModel::draw_room(int part) const {
  const Workspace& w = reservation_->workspace();
  const auto vocab = static_cast<std::size_t>(facts_.vocab_size);
  auto* candidates = static_cast<Candidate*>(const_cast<void*>(w.candidates.slice(part, 1).data));
  float* shaped = w.shaped.slice(part, 1).f32();
  auto* seen = static_cast<std::uint32_t*>(const_cast<void*>(w.seen.slice(part, 1).data));
  return {{candidates, vocab}, {shaped, vocab}, {seen, (vocab + 31) / 32}};
}

void NetworkModel::draw_tokens(std::span<const Window> windows) {
  tokens_.resize(logit_rows_.size());
  if (stream_.on_cuda()) return draw_on_gpu(windows);
  const Workspace& w = reservation_->workspace();
  const auto vocab = static_cast<std::size_t>(facts_.vocab_size);
  const auto draw_row = [&](std::size_t row, const Window& window, std::size_t draft, int part) {
    const std::span<const float> logits{w.logits.f32() + row * vocab, vocab};
    tokens_[row] = draw(stream_.isa(), logits, window_row(window, draft), draw_room(part));
    if (window.num_top_logprobs >= 0) logprobs(logits, tokens_[row], window.num_top_logprobs, logprobs_[row]);
  };
  const int parts = std::min(stream_.pool().num_threads(), static_cast<int>(tokens_.size()));
  stream_.pool().run(parts, [&](int part) {  // row i goes to part i mod parts
    std::size_t row = 0;
    for (const Window& window : windows) {
      const std::size_t drafts = window.ids.size() - static_cast<std::size_t>(window.certain);
      for (std::size_t draft = 0; draft <= drafts; ++draft, ++row) {
        if (static_cast<int>(row) % parts == part) draw_row(row, window, draft, part);
      }
    }
  });
}

void NetworkModel::stage_draws(std::span<const Window> windows) {
  DrawStaging staging(reservation_->workspace(), {}, facts_.vocab_size);
  for (const Window& window : windows) {
    staging.add(0, window.ids.subspan(static_cast<std::size_t>(window.certain)), window.num_top_logprobs,
                [&](std::size_t draft) { return window_row(window, draft); });
  }
  staging.upload(stream_);
}

void NetworkModel::stage_drafts(std::span<const int> streams) {
  DrawStaging staging(reservation_->workspace(), reservation_->network().draft_ids(), facts_.draft_vocab_size);
  for (const int stream : streams) {
    const DrawRow row = draft_row(static_cast<std::size_t>(stream));
    staging.add(row.drafted.size(), row.drafted, -1, [&](std::size_t) { return row; });
  }
  staging.upload(stream_);
}

RowShaping NetworkModel::shaping() const {
  const Staged& staged = reservation_->workspace().device;
  return {.shifts = staged.shifts.as<Shift>(), .masks = staged.masks.as<std::uint32_t>()};
}

// On a CPU nothing: its rows are drawn one by one.
void NetworkModel::queue_draws(Tensor logits, const std::int32_t* ids) {
  const Workspace& w = reservation_->workspace();
  if (stream_.on_cuda()) draw_rows(stream_, logits, keys_in(w.device), ids, shaping(), w.draw_room, w.drawn);
}

// What queue_draws() drew, and what else rows want of their logits.
std::span<const DrawnRow> NetworkModel::fetch_draws(Tensor logits) {
  const Workspace& w = reservation_->workspace();
  const auto count = static_cast<std::size_t>(logits.rows());
  stream_.download(const_cast<void*>(w.drawn_here.data), w.drawn.data, count * sizeof(DrawnRow));
  const DrawKey *keys = keys_in(w.host), *there = keys_in(w.device);
  if (std::any_of(keys, keys + count, [](const DrawKey& key) { return key.likely > 0; })) {
    find_likely_rows(stream_, logits, there, shaping(), w.likely);
    stream_.download(const_cast<void*>(w.likely_here.data), w.likely.data, count * sizeof(LikelyRow));
  }
  if (std::any_of(keys, keys + count, [](const DrawKey& key) { return key.told >= 0; })) {
    tell_rows(stream_, logits, there, w.drawn, w.told);
    stream_.download(const_cast<void*>(w.told_here.data), w.told.data, count * sizeof(ToldRow));
  }
  stream_.wait();
  return {w.drawn_here.as<DrawnRow>(), count};
}

// The likeliest tokens of a row that wants them; none when there were too many as high.
std::span<Candidate> NetworkModel::likeliest_of(std::size_t row) {
  const Workspace& w = reservation_->workspace();
  if (keys_in(w.host)[row].likely == 0) return {};
  LikelyRow& likely = static_cast<LikelyRow*>(const_cast<void*>(w.likely_here.data))[row];
  return {likely.found, static_cast<std::size_t>(likely.num_found)};
}

// Of a row whose token is drawn. False where something is not there that its logprobs need.
bool NetworkModel::tell(std::size_t row, int num_top) {
  const Workspace& w = reservation_->workspace();
  if (keys_in(w.host)[row].told < 0) return false;
  ToldRow& told = static_cast<ToldRow*>(const_cast<void*>(w.told_here.data))[row];
  num_top = std::min({num_top, kMaxTopLogprobs, facts_.vocab_size});
  if (told.likeliest.num_found < num_top) return false;
  const auto likeliest = likeliest_of(row);
  const auto chosen = std::ranges::find(likeliest, tokens_[row], &Candidate::id);
  const float logit = likeliest.empty() ? told.drawn_logit : chosen->logit;
  logprobs_of(logit, told.log_total, {told.likeliest.found, static_cast<std::size_t>(told.likeliest.num_found)},
              num_top, logprobs_[row]);
  return true;
}

std::span<const float> NetworkModel::download_logits(Tensor row) {
  float* here = reservation_->workspace().logits_here.f32();
  const auto width = static_cast<std::size_t>(row.width());
  stream_.download(here, row.data, width * sizeof(float));
  stream_.wait();
  return {here, width};
}

void NetworkModel::draw_on_gpu(std::span<const Window> windows) {
  const Tensor logits = reservation_->workspace().logits.slice(0, static_cast<std::int64_t>(tokens_.size()));
  const std::span<const DrawnRow> drawn = fetch_draws(logits);
  std::size_t row = 0;
  for (const Window& window : windows) {
    const std::size_t drafts = window.ids.size() - static_cast<std::size_t>(window.certain);
    for (std::size_t draft = 0; draft <= drafts; ++draft, ++row) {
      DrawRow how = window_row(window, draft);
      const DrawKey& key = keys_in(reservation_->workspace().host)[row];
      const auto likeliest = likeliest_of(row);
      const bool is_drawn = !key.by_host && (key.likely == 0 || !likeliest.empty());
      tokens_[row] = likeliest.empty() ? drawn[row].token : draw_among(likeliest, how).token;
      const bool tells = window.num_top_logprobs >= 0;
      if (is_drawn && (!tells || tell(row, window.num_top_logprobs))) continue;
      const auto here = download_logits(logits.slice(static_cast<std::int64_t>(row), 1));
      how.is_shifted = key.num_shifts > 0;
      if (!is_drawn) tokens_[row] = draw(best_isa(), here, how, draw_room(0));
      if (tells) logprobs(here, tokens_[row], window.num_top_logprobs, logprobs_[row]);
    }
  }
}

// The row that reads the token at position p predicts the one at p + 1; draft_pos is the next row's position.
DrawRow NetworkModel::draft_row(std::size_t stream) {
  const DraftStream& each = drafting_[stream];
  return {.settings = each.draw,
          .position = slot(each.slot).draft_pos + 1,
          .generated = each.generated,
          .drafted = std::span(drafted_).subspan(stream * static_cast<std::size_t>(facts_.max_drafts),
                                                 static_cast<std::size_t>(num_drafted_[stream])),
          .mask = {}};
}

// logits: [streams, draft_vocab]
void NetworkModel::draw_drafts(std::span<const int> streams, Tensor logits) {
  const Network& network = reservation_->network();
  if (stream_.on_cuda()) {
    const std::span<const DrawnRow> drawn = fetch_draws(logits);
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const auto stream = static_cast<std::size_t>(streams[i]);
      DrawRow how = draft_row(stream);
      const DrawKey& key = keys_in(reservation_->workspace().host)[i];
      drafts_[stream] = {drawn[i].token, drawn[i].probability};
      if (!key.by_host && key.likely == 0) continue;
      if (const auto likeliest = likeliest_of(i); !likeliest.empty()) {
        const auto ids = network.draft_ids();
        for (Candidate& each : likeliest) each.id = ids.empty() ? each.id : ids[static_cast<std::size_t>(each.id)];
        drafts_[stream] = draw_among(likeliest, how);
        continue;
      }
      const auto here = download_logits(logits.slice(static_cast<std::int64_t>(i), 1));
      how.is_shifted = key.num_shifts > 0;
      drafts_[stream] = draw_draft(best_isa(), here, network.draft_ids(), how, draw_room(0));
    }
    return;
  }
  const auto vocab = static_cast<std::size_t>(facts_.draft_vocab_size);
  const int parts = std::min(stream_.pool().num_threads(), static_cast<int>(streams.size()));
  stream_.pool().run(parts, [&](int part) {
    for (std::size_t i = static_cast<std::size_t>(part); i < streams.size(); i += static_cast<std::size_t>(parts)) {
      const auto stream = static_cast<std::size_t>(streams[i]);
      drafts_[stream] = draw_draft(stream_.isa(), {logits.f32() + i * vocab, vocab}, network.draft_ids(),
                                   draft_row(stream), draw_room(part));
    }
  });
}

}  // namespace rondo
