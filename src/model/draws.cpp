// Draws of NetworkModel: on a CPU row by row over the threads; on a GPU the rows that draw straight from their logits
// all at once where they lie, those with a top_k by the host from their likeliest tokens, and a row whose logits are
// shaped first (bias, penalties, mask), cut without a top_k (top_p, min_p) or told (logprobs) by the host, from a
// download of it.

#include <algorithm>

#include "model/network_model.h"

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

DrawKey key_of(const DrawRow& row) {
  const int likely = num_likely(row);
  return {.temperature = row.settings->temperature,
          .position = row.position,
          .seed = row.settings->seed,
          .likely = likely > 0 && likely <= kMostLikely ? likely : 0};
}

DrawKey* keys_in(const Staged& staged) { return static_cast<DrawKey*>(const_cast<void*>(staged.draws.data)); }

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
  DrawKey* keys = keys_in(reservation_->workspace().host);
  for (const Window& window : windows) {
    const std::size_t drafts = window.ids.size() - static_cast<std::size_t>(window.certain);
    for (std::size_t draft = 0; draft <= drafts; ++draft) *keys++ = key_of(window_row(window, draft));
  }
}

void NetworkModel::stage_drafts(std::span<const int> streams) {
  DrawKey* keys = keys_in(reservation_->workspace().host);
  for (const int stream : streams) *keys++ = key_of(draft_row(static_cast<std::size_t>(stream)));
}

// On a CPU nothing: its rows are drawn one by one.
void NetworkModel::queue_draws(Tensor logits, const std::int32_t* ids) {
  const Workspace& w = reservation_->workspace();
  if (stream_.on_cuda()) draw_rows(stream_, logits, keys_in(w.device), ids, w.draw_room, w.drawn);
}

// What queue_draws() drew, and the likeliest tokens of rows that want them.
std::span<const DrawnRow> NetworkModel::fetch_draws(Tensor logits) {
  const Workspace& w = reservation_->workspace();
  const auto count = static_cast<std::size_t>(logits.rows());
  stream_.download(const_cast<void*>(w.drawn_here.data), w.drawn.data, count * sizeof(DrawnRow));
  const DrawKey* keys = keys_in(w.host);
  if (std::any_of(keys, keys + count, [](const DrawKey& key) { return key.likely > 0; })) {
    find_likely_rows(stream_, logits, keys_in(w.device), w.likely);
    stream_.download(const_cast<void*>(w.likely_here.data), w.likely.data, count * sizeof(LikelyRow));
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
      const DrawRow how = window_row(window, draft);
      tokens_[row] = drawn[row].token;
      const auto likeliest = likeliest_of(row);
      if (!likeliest.empty()) tokens_[row] = draw_among(likeliest, how).token;
      const bool is_drawn = draws_unshaped(how) || !likeliest.empty();
      if (is_drawn && window.num_top_logprobs < 0) continue;
      const auto here = download_logits(logits.slice(static_cast<std::int64_t>(row), 1));
      if (!is_drawn) tokens_[row] = draw(best_isa(), here, how, draw_room(0));
      if (window.num_top_logprobs >= 0) logprobs(here, tokens_[row], window.num_top_logprobs, logprobs_[row]);
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
      const DrawRow how = draft_row(stream);
      drafts_[stream] = {drawn[i].token, drawn[i].probability};
      if (draws_unshaped(how)) continue;
      if (const auto likeliest = likeliest_of(i); !likeliest.empty()) {
        const auto ids = network.draft_ids();
        for (Candidate& each : likeliest) each.id = ids.empty() ? each.id : ids[static_cast<std::size_t>(each.id)];
        drafts_[stream] = draw_among(likeliest, how);
        continue;
      }
      const auto here = download_logits(logits.slice(static_cast<std::int64_t>(i), 1));
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
