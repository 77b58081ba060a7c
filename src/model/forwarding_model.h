// ForwardingModel: stands between engine and model and passes every call on; who derives from it changes the calls that
// it is about (a planted fault, a count, a script).
#pragma once

#include "model/model.h"

namespace rondo {

class ForwardingModel : public Model {
 public:
  explicit ForwardingModel(Model& inner) : inner_(inner) {}  // inner outlives it
  const ModelFacts& facts() const override { return inner_.facts(); }
  const MemoryPlan& plan() const override { return inner_.plan(); }
  void prefill(std::span<const Slice> slices) override { inner_.prefill(slices); }
  Verified verify(std::span<const Window> windows) override { return inner_.verify(windows); }
  void commit(std::span<const Kept> kept) override { inner_.commit(kept); }
  std::span<const Drawn> draft_first(std::span<const DraftStream> streams) override {
    return inner_.draft_first(streams);
  }
  std::span<const Drawn> draft_next(std::span<const int> still_drafting) override {
    return inner_.draft_next(still_drafting);
  }
  int waiting_rows(int slot) const override { return inner_.waiting_rows(slot); }
  void release(int slot) override { inner_.release(slot); }
  SavedState save(int slot, int state) override { return inner_.save(slot, state); }
  void restore(int slot, int state, std::span<const std::int32_t> from, std::span<const std::int32_t> to) override {
    inner_.restore(slot, state, from, to);
  }
  void forget(int state) override { inner_.forget(state); }
  CostTables time_costs(std::span<const std::int32_t> text, double budget_ms) override {
    return inner_.time_costs(text, budget_ms);
  }
  double waited_ms() const override { return inner_.waited_ms(); }

 protected:
  Model& inner_;
};

}  // namespace rondo
