// CountingModel: a model, and how often it was called: one verify = one forward over every window, one draft_first or
// draft_next = one head pass over every stream in it.
//
// ScriptedModel: drafts of a stated quality from a head that has none, such as one of random weights. The head really
// runs, and so does everything behind it; only the tokens it drew are replaced. What replaces them is the stream's true
// continuation, as a plain run of the same request recorded it, as far as a draw says that the run of kept drafts goes:
// drafts 1 .. d are all right with chance survival[d - 1]; the next one is wrong. The draw is keyed by (stream,
// position), so the same window gets the same drafts in every run. The chance that a draft is right, given that those
// before it were, is reported as the head's probability, so the planner is told. Streams are known by their seed.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/forwarding_model.h"

namespace rondo {

class CountingModel : public ForwardingModel {
 public:
  using ForwardingModel::ForwardingModel;

  std::uint64_t verify_passes() const { return verify_passes_; }
  std::uint64_t head_passes() const { return head_passes_; }

  Verified verify(std::span<const Window> windows) override {
    ++verify_passes_;
    return inner_.verify(windows);
  }
  std::span<const Drawn> draft_first(std::span<const DraftStream> streams) override {
    ++head_passes_;
    return inner_.draft_first(streams);
  }
  std::span<const Drawn> draft_next(std::span<const int> still_drafting) override {
    ++head_passes_;
    return inner_.draft_next(still_drafting);
  }

 private:
  std::uint64_t verify_passes_ = 0, head_passes_ = 0;
};

// How many drafts in a row are right in the window of this stream whose first draft has this number among the generated
// tokens: at least d with chance survival[d - 1].
int scripted_run(std::span<const double> survival, std::uint64_t seed, std::size_t position);

class ScriptedModel final : public CountingModel {
 public:
  // survival: never rising, each in (0, 1]; drafts deeper than its size are never right. Outlives the model.
  ScriptedModel(Model& model, std::vector<double> survival);

  // The true continuation of the stream of this seed, from its first generated token on. Replaces an earlier one.
  void set_continuation(std::uint64_t seed, std::vector<std::int32_t> tokens);

  std::span<const Drawn> draft_first(std::span<const DraftStream> streams) override;
  std::span<const Drawn> draft_next(std::span<const int> still_drafting) override;

 private:
  struct Script {
    const std::vector<std::int32_t>* continuation;  // null: none known, its drafts stay the head's
    std::size_t position;                           // of the first draft among the generated tokens
    int right;                                      // drafts in a row that are
    int depth;                                      // drafts so far
  };
  Drawn next_draft(Script& script, Drawn drawn) const;

  const std::vector<double> survival_;
  std::unordered_map<std::uint64_t, std::vector<std::int32_t>> continuations_;  // by seed
  std::vector<Script> scripts_;                                                 // of the streams of this pass
  std::vector<Drawn> drafts_;
};

}  // namespace rondo
