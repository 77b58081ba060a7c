// What transformers computed for a checkpoint (golden.json of a fixture or of the bundled model), and a network to hold
// to it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mmap_file.h"
#include "model/reservation.h"

namespace rondo {

inline json::Value read_json(const std::string& path) {
  const auto text = read_file(path);
  CHECK(text.has_value());
  auto value = parse_json(*text);
  CHECK(value.has_value());
  return *value;
}

template <class T>
std::vector<T> numbers(const json::Value& array) {
  std::vector<T> out;
  for (const auto& each : array.as_array()) out.push_back(each.to_number<T>());
  return out;
}

// A checkpoint's network with one slot (or more) and direct access to hidden states and logits of every row.
class TestNetwork {
 public:
  TestNetwork(const WeightSource& source, Isa isa, int context_tokens, int max_streams = 1, int threads = 2,
              int max_rows = 128)
      : pool_(threads), max_rows_(max_rows) {
    ModelOptions options;
    options.context_tokens = context_tokens;
    options.max_streams = max_streams;
    options.max_rows = max_rows;
    options.max_drafts = max_rows;  // logits of every row
    options.isa = isa;
    auto made = Reservation::make(source, pool_, options);
    CHECK(made.has_value());
    reservation_ = std::move(*made);
    stream_.emplace(reservation_->stream(pool_));
    const int blocks_each = (context_tokens + kKvBlockTokens - 1) / kKvBlockTokens;
    for (int slot = 0; slot < max_streams; ++slot) {
      blocks_.emplace_back();
      // Neighbouring positions in blocks that are far apart: a wrong table shows.
      for (int b = 0; b < blocks_each; ++b) blocks_.back().push_back((blocks_each - 1 - b) * max_streams + slot);
    }
  }

  const Network& network() const { return reservation_->network(); }
  Stream& stream() { return *stream_; }
  Scratch scratch() { return reservation_->scratch(); }
  const std::vector<std::int32_t>& blocks(int slot) const { return blocks_[static_cast<std::size_t>(slot)]; }
  std::int64_t hidden_width() const { return network().hidden_width(); }

  struct Piece {
    int slot, start_pos;
    std::vector<std::int32_t> ids;
    int certain;
    int fold = 0;
    std::vector<std::int32_t> history;  // the ids before, as far as an n-gram reaches
  };

  // Runs the pieces as one batch; hidden states of all rows are in hidden().
  void run(const std::vector<Piece>& pieces) {
    const Batch batch = make_batch(pieces, true);
    network().forward(*stream_, batch, scratch(), hidden().slice(0, batch.rows));
  }
  // The head over `hidden` (this object's own buffer by default), next hidden states into next_hidden.
  void run_head(const std::vector<Piece>& pieces, Tensor hidden_in, Tensor next_hidden) {
    const Batch batch = make_batch(pieces, false);
    network().head_forward(*stream_, batch, hidden_in, scratch(), next_hidden);
  }

  std::vector<std::vector<float>> logits(int rows) { return logits_of(rows, hidden(), false); }
  std::vector<std::vector<float>> head_logits(int rows, Tensor next_hidden) {
    return logits_of(rows, next_hidden, true);
  }

  Tensor hidden() const { return reservation_->workspace().hidden; }
  // Two more of hidden()'s size, for what a head reads and writes.
  Tensor head_room(int which) const {
    const Workspace& w = reservation_->workspace();
    return which == 0 ? w.head_in : w.head_out;
  }
  void write(const std::vector<float>& from, Tensor to) {
    stream_->upload(to.f32(), from.data(), from.size() * sizeof(float));
    stream_->wait();
  }
  std::vector<float> read(Tensor from) {
    std::vector<float> out(static_cast<std::size_t>(from.shape.num_elements()));
    stream_->download(out.data(), from.data, out.size() * sizeof(float));
    stream_->wait();
    return out;
  }

 private:
  Batch make_batch(const std::vector<Piece>& pieces, bool target) {
    reservation_->begin_staging(*stream_);
    const Staged& w = reservation_->workspace().host;
    const int heads = target ? network().num_ngram_heads() : 0;
    spans_.clear();
    int rows = 0;
    for (const Piece& piece : pieces) {
      std::vector<std::int32_t> line = piece.history;
      const int count = static_cast<int>(piece.ids.size());
      for (int i = 0; i < count; ++i) {
        line.push_back(piece.ids[static_cast<std::size_t>(i)]);
        w.ids.i32()[rows + i] = line.back();
        if (heads > 0) {
          auto* to = static_cast<std::int64_t*>(const_cast<void*>(reservation_->workspace().ngram_rows.data)) +
                     static_cast<std::int64_t>(rows + i) * heads;
          network().hash_ngrams(line, to);
        }
      }
      spans_.push_back({.begin = rows,
                        .count = count,
                        .certain = piece.certain,
                        .start_pos = piece.start_pos,
                        .slot = piece.slot,
                        .fold = piece.fold,
                        .blocks = blocks(piece.slot).data()});
      rows += count;
    }
    CHECK(rows <= max_rows_);
    const Tensor ngram_vectors = target ? reservation_->stage_ngrams(*stream_, rows) : Tensor{};
    Batch batch = reservation_->stage(*stream_, rows, spans_);
    batch.ngram_vectors = ngram_vectors;
    return batch;
  }

  std::vector<std::vector<float>> logits_of(int rows, Tensor hidden_in, bool head) {
    const Tensor logits = reservation_->workspace().logits;
    std::vector<std::vector<float>> out;
    const int most = logits.rows();
    for (int first = 0; first < rows; first += most) {
      const int count = std::min(rows - first, most);
      const Workspace& w = reservation_->workspace();
      for (int i = 0; i < count; ++i) w.host.rows.i32()[i] = first + i;
      stream_->upload(w.device.rows.i32(), w.host.rows.i32(), static_cast<std::size_t>(count) * sizeof(std::int32_t));
      const std::span<const std::int32_t> index(w.device.rows.i32(), static_cast<std::size_t>(count));
      const Tensor to = logits.slice(0, count);
      if (head) {
        network().head_logits(*stream_, hidden_in, index, scratch(), to);
      } else {
        network().logits(*stream_, hidden_in, index, scratch(), to);
      }
      const std::vector<float> all = read(to);
      for (int i = 0; i < count; ++i)
        out.emplace_back(all.begin() + i * to.width(), all.begin() + (i + 1) * to.width());
    }
    return out;
  }

  ThreadPool pool_;
  std::optional<Stream> stream_;
  int max_rows_;
  std::unique_ptr<Reservation> reservation_;
  std::vector<std::vector<std::int32_t>> blocks_;
  std::vector<RowSpan> spans_;
};

inline int argmax(const std::vector<float>& row) {
  return static_cast<int>(std::max_element(row.begin(), row.end()) - row.begin());
}

}  // namespace rondo
