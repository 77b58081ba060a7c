#include "cli/selfcheck/plants.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rondo {

namespace {

std::size_t num_rows(std::span<const Window> windows) {
  std::size_t rows = 0;
  for (const Window& window : windows) rows += window.ids.size();
  return rows;
}

std::size_t num_drafts(const Window& window) { return window.ids.size() - static_cast<std::size_t>(window.certain); }

// A fault in what verify says: spoil() gets the real answer to change.
class SpoiledVerify : public FaultyModel {
 public:
  using FaultyModel::FaultyModel;
  Verified verify(std::span<const Window> windows) override {
    const Verified verified = inner_.verify(windows);
    tokens_.assign(verified.tokens.begin(), verified.tokens.end());
    logprobs_.assign(verified.logprobs.begin(), verified.logprobs.end());
    spoil(windows);
    return {tokens_, logprobs_};
  }

 protected:
  virtual void spoil(std::span<const Window> windows) = 0;
  std::vector<std::int32_t> tokens_;
  std::vector<RowLogprobs> logprobs_;
};

class NeighbourRow final : public SpoiledVerify {
 public:
  using SpoiledVerify::SpoiledVerify;
  void spoil(std::span<const Window> windows) override {
    if (windows.size() < 2) return;
    const std::size_t second = 1 + num_drafts(windows[0]);
    std::swap(tokens_[0], tokens_[second]);
    std::swap(logprobs_[0], logprobs_[second]);
    ++strikes_;
  }
};

class WideBit final : public SpoiledVerify {
 public:
  using SpoiledVerify::SpoiledVerify;
  void spoil(std::span<const Window> windows) override {
    if (num_rows(windows) <= 8) return;
    for (RowLogprobs& row : logprobs_) row.chosen = std::nextafter(row.chosen, 0.0F);
    ++strikes_;
  }
};

class UnverifiedDraft final : public SpoiledVerify {
 public:
  using SpoiledVerify::SpoiledVerify;
  void spoil(std::span<const Window> windows) override {
    std::size_t row = 0;
    for (const Window& window : windows) {
      if (num_drafts(window) > 0) {
        tokens_[row] = window.ids[static_cast<std::size_t>(window.certain)];
        ++strikes_;
      }
      row += 1 + num_drafts(window);
    }
  }
};

class LateToken final : public SpoiledVerify {
 public:
  using SpoiledVerify::SpoiledVerify;
  void spoil(std::span<const Window> windows) override {
    std::size_t row = 0;
    for (const Window& window : windows) {
      const std::size_t last = row + num_drafts(window);
      if (last > row + 1) {
        tokens_[last] = tokens_[last - 1];
        ++strikes_;
      }
      row = last + 1;
    }
  }
};

// A fault in what verify is asked: spoil() gets the windows to change.
class SpoiledWindows : public FaultyModel {
 public:
  using FaultyModel::FaultyModel;
  Verified verify(std::span<const Window> windows) override {
    windows_.assign(windows.begin(), windows.end());
    spoil();
    return inner_.verify(windows_);
  }

 protected:
  virtual void spoil() = 0;
  std::vector<Window> windows_;
};

class NeighbourBlocks final : public SpoiledWindows {
 public:
  using SpoiledWindows::SpoiledWindows;
  void spoil() override {
    if (windows_.size() < 2 || ++shared_forwards_ % 3 != 0) return;
    Window &a = windows_[0], &b = windows_[1];
    if (!fits(a, b.blocks) || !fits(b, a.blocks)) return;
    std::swap(a.blocks, b.blocks);
    ++strikes_;
  }

 private:
  bool fits(const Window& window, std::span<const std::int32_t> blocks) const {
    return window.start_pos + static_cast<int>(window.ids.size()) <=
           static_cast<int>(blocks.size()) * facts().block_tokens;
  }
  int shared_forwards_ = 0;
};

class NoiseKey final : public SpoiledWindows {
 public:
  explicit NoiseKey(Model& inner) : SpoiledWindows(inner), draw_(static_cast<std::size_t>(inner.facts().max_streams)) {
    for (DrawSettings& each : draw_) each.bias.reserve(16);  // so that the fault is not seen by the memory it takes
  }
  void spoil() override {
    for (Window& window : windows_) {
      if (num_drafts(window) == 0) continue;
      DrawSettings& own = draw_[static_cast<std::size_t>(window.slot)];
      own = *window.draw;
      ++own.seed;
      window.draw = &own;
      ++strikes_;
    }
  }

 private:
  std::vector<DrawSettings> draw_;  // [slots]
};

class ForgottenPenalty final : public SpoiledWindows {
 public:
  using SpoiledWindows::SpoiledWindows;
  void spoil() override {
    for (Window& window : windows_) {
      if (num_drafts(window) == 0 || window.generated.empty()) continue;
      window.generated = window.generated.first(window.generated.size() - 1);
      ++strikes_;
    }
  }
};

// A fault in how many rows a slot holds: from then on the slot stands `shift` positions off, and so do the calls. It
// keeps no states, which would stand off too.
class ShiftedSlots : public FaultyModel {
 public:
  explicit ShiftedSlots(Model& inner)
      : FaultyModel(inner),
        facts_(inner.facts()),
        shift_(static_cast<std::size_t>(facts_.max_streams)),
        open_(shift_.size()) {
    facts_.num_states = 0;
  }
  const ModelFacts& facts() const override { return facts_; }
  void prefill(std::span<const Slice> slices) override {
    slices_.assign(slices.begin(), slices.end());
    for (Slice& slice : slices_) slice.start_pos += shift(slice.slot);
    inner_.prefill(slices_);
  }
  Verified verify(std::span<const Window> windows) override {
    windows_.assign(windows.begin(), windows.end());
    for (Window& window : windows_) {
      window.start_pos += shift(window.slot);
      open_[static_cast<std::size_t>(window.slot)] = {window.certain, static_cast<int>(window.ids.size())};
    }
    return inner_.verify(windows_);
  }
  void release(int slot) override {
    shift(slot) = 0;
    inner_.release(slot);
  }

 protected:
  struct Open {
    int certain = 0, rows = 0;
  };
  int& shift(int slot) { return shift_[static_cast<std::size_t>(slot)]; }
  const Open& open(int slot) const { return open_[static_cast<std::size_t>(slot)]; }

  // Once for each sequence: `more` rows (1 or -1) stay beside those that should.
  void commit_off_by(std::span<const Kept> kept, int more) {
    kept_.assign(kept.begin(), kept.end());
    for (Kept& each : kept_) {
      const int rows = each.rows + more;
      if (shift(each.slot) != 0 || rows < open(each.slot).certain || rows > open(each.slot).rows) continue;
      each.rows = rows;
      shift(each.slot) = more;
      ++strikes_;
    }
    inner_.commit(kept_);
  }

 private:
  ModelFacts facts_;
  std::vector<int> shift_;  // [slots]
  std::vector<Open> open_;  // [slots]
  std::vector<Slice> slices_;
  std::vector<Window> windows_;
  std::vector<Kept> kept_;
};

class LostRow final : public ShiftedSlots {
 public:
  using ShiftedSlots::ShiftedSlots;
  void commit(std::span<const Kept> kept) override { commit_off_by(kept, -1); }
};

class RejectedRow final : public ShiftedSlots {
 public:
  using ShiftedSlots::ShiftedSlots;
  void commit(std::span<const Kept> kept) override { commit_off_by(kept, 1); }
};

class DirtySlot final : public ShiftedSlots {
 public:
  explicit DirtySlot(Model& inner)
      : ShiftedSlots(inner),
        left_over_(static_cast<std::size_t>(inner.facts().max_streams), kNone),
        last_(left_over_) {}
  void prefill(std::span<const Slice> slices) override {
    for (const Slice& slice : slices) begin(slice.slot, slice.start_pos, slice.ids.back(), slice.blocks);
    ShiftedSlots::prefill(slices);
  }
  Verified verify(std::span<const Window> windows) override {
    for (const Window& window : windows) begin(window.slot, window.start_pos, window.ids.back(), window.blocks);
    return ShiftedSlots::verify(windows);
  }
  void release(int slot) override {
    ShiftedSlots::release(slot);
    left_over_[static_cast<std::size_t>(slot)] = last_[static_cast<std::size_t>(slot)];
  }

 private:
  static constexpr std::int32_t kNone = -1;
  void begin(int slot, int start_pos, std::int32_t last_id, std::span<const std::int32_t> blocks) {
    const std::int32_t left_over = left_over_[static_cast<std::size_t>(slot)];
    last_[static_cast<std::size_t>(slot)] = last_id;
    if (start_pos != 0 || left_over == kNone) return;
    // The head reads it too: rows that it reads must follow each other.
    const Slice row{
        .slot = slot, .start_pos = 0, .ids = {&left_over, 1}, .blocks = blocks, .feeds_head = facts().has_head};
    inner_.prefill({&row, 1});
    shift(slot) = 1;
    ++strikes_;
  }
  std::vector<std::int32_t> left_over_;  // [slots] the last id of the sequence before
  std::vector<std::int32_t> last_;       // [slots] the last id of this one
};

class SliceBorder final : public FaultyModel {
 public:
  using FaultyModel::FaultyModel;
  void prefill(std::span<const Slice> slices) override {
    slices_.assign(slices.begin(), slices.end());
    ids_.clear();
    ids_.reserve(slices.size());
    for (Slice& slice : slices_) {
      if (slice.start_pos == 0) continue;
      ids_.emplace_back(slice.ids.begin(), slice.ids.end());
      ids_.back()[0] = (ids_.back()[0] + 1) % facts().vocab_size;
      slice.ids = ids_.back();
      ++strikes_;
    }
    inner_.prefill(slices_);
  }

 private:
  std::vector<Slice> slices_;
  std::vector<std::vector<std::int32_t>> ids_;
};

// A row of the head reads the draft that was rejected after it, where it should read the token drawn instead.
class StaleHead final : public FaultyModel {
 public:
  explicit StaleHead(Model& inner) : FaultyModel(inner), open_(static_cast<std::size_t>(inner.facts().max_streams)) {
    for (auto& ids : open_) ids.reserve(static_cast<std::size_t>(inner.facts().max_rows));
  }
  Verified verify(std::span<const Window> windows) override {
    for (const Window& window : windows)
      open_[static_cast<std::size_t>(window.slot)].assign(window.ids.begin(), window.ids.end());
    return inner_.verify(windows);
  }
  void commit(std::span<const Kept> kept) override {
    kept_.assign(kept.begin(), kept.end());
    for (Kept& each : kept_) {
      const auto& ids = open_[static_cast<std::size_t>(each.slot)];
      const auto rows = static_cast<std::size_t>(each.rows);
      if (!each.feeds_head || rows == ids.size() || ids[rows] == each.next_token) continue;
      each.next_token = ids[rows];
      ++strikes_;
    }
    inner_.commit(kept_);
  }

 private:
  std::vector<std::vector<std::int32_t>> open_;  // [slots] the ids of the open window
  std::vector<Kept> kept_;
};

// A fault in what the head drafts for several streams at once.
class SpoiledDrafts : public FaultyModel {
 public:
  using FaultyModel::FaultyModel;
  std::span<const Drawn> draft_first(std::span<const DraftStream> streams) override {
    const auto drafts = inner_.draft_first(streams);
    drafts_.assign(drafts.begin(), drafts.end());
    if (drafts_.size() >= 2) {
      spoil();
      ++strikes_;
    }
    return drafts_;
  }

 protected:
  virtual void spoil() = 0;
  std::vector<Drawn> drafts_;
};

class NeighbourDraft final : public SpoiledDrafts {
 public:
  using SpoiledDrafts::SpoiledDrafts;
  void spoil() override { std::swap(drafts_[0], drafts_[1]); }
};

class HeadBit final : public SpoiledDrafts {
 public:
  using SpoiledDrafts::SpoiledDrafts;
  void spoil() override { drafts_[1].probability = std::nextafter(drafts_[1].probability, 0.0F); }
};

class OtherState final : public FaultyModel {
 public:
  explicit OtherState(Model& inner) : FaultyModel(inner), saved_(static_cast<std::size_t>(inner.facts().num_states)) {}
  SavedState save(int slot, int state) override {
    return saved_[static_cast<std::size_t>(state)] = inner_.save(slot, state);
  }
  void restore(int slot, int state, std::span<const std::int32_t>, std::span<const std::int32_t> to) override {
    const SavedState& saved = saved_[static_cast<std::size_t>(state)];
    const std::vector<std::int32_t> ids(static_cast<std::size_t>(saved.tokens), 1);
    const auto slice = static_cast<std::size_t>(facts().max_rows);
    for (std::size_t at = 0; at < ids.size(); at += slice) {
      const Slice rows{.slot = slot,
                       .start_pos = static_cast<int>(at),
                       .ids = std::span(ids).subspan(at, std::min(slice, ids.size() - at)),
                       .blocks = to,
                       .feeds_head = saved.has_head};
      inner_.prefill({&rows, 1});
    }
    ++strikes_;
  }

 private:
  std::vector<SavedState> saved_;  // [states]
};

class GrowingMemory final : public FaultyModel {
 public:
  using FaultyModel::FaultyModel;
  Verified verify(std::span<const Window> windows) override {
    grown_.push_back(std::make_unique<std::byte[]>(kGrowth));
    ++strikes_;
    return inner_.verify(windows);
  }

 private:
  static constexpr std::size_t kGrowth = 256;
  std::vector<std::unique_ptr<std::byte[]>> grown_;
};

template <class Fault>
std::unique_ptr<FaultyModel> make(Model& inner) {
  return std::make_unique<Fault>(inner);
}

constexpr Plant kPlants[] = {
    {"neighbour-row", "in a forward of several windows, the first two get each other's first token", false,
     make<NeighbourRow>},
    {"wide-bit", "in forwards of more than 8 rows, log probabilities are off by their last bit", false, make<WideBit>},
    {"neighbour-blocks", "in every third shared forward, two windows have each other's block tables", false,
     make<NeighbourBlocks>},
    {"slice-border", "each slice of a prompt but the first begins with a wrong token", false, make<SliceBorder>},
    {"dirty-slot", "a sequence on a used slot has the last row of the one before it ahead of its own", false,
     make<DirtySlot>},
    {"unverified-draft", "the first draft of each window is accepted unverified", true, make<UnverifiedDraft>},
    {"late-token", "the token after a window's last draft is the one after the draft before it", true, make<LateToken>},
    {"lost-row", "once a sequence, the last draft kept is missing from its state and caches", true, make<LostRow>},
    {"rejected-row", "once a sequence, a rejected draft stays in its state and caches", true, make<RejectedRow>},
    {"noise-key", "windows with drafts draw their tokens with a seed that is one off", true, make<NoiseKey>},
    {"forgotten-penalty", "in windows with drafts, penalties miss the token generated last", true,
     make<ForgottenPenalty>},
    {"neighbour-draft", "in a head pass of several streams, the first two get each other's draft", true,
     make<NeighbourDraft>},
    {"stale-head", "the head reads a rejected draft where the token drawn instead should be", true, make<StaleHead>},
    {"head-bit", "in a head pass of several streams, a draft's probability is off by its last bit", true,
     make<HeadBit>},
    {"other-state", "a sequence goes on from the state of another text of the same length", false, make<OtherState>},
    {"growing-memory", "every forward keeps 256 bytes", false, make<GrowingMemory>},
};

}  // namespace

std::span<const Plant> plants() { return kPlants; }

const Plant* find_plant(std::string_view name) {
  for (const Plant& plant : kPlants)
    if (plant.name == name) return &plant;
  return nullptr;
}

}  // namespace rondo
