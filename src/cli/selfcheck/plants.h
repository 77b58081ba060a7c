// Faults to plant: each a model that does the real one's work with one thing wrong, as a bug might have it wrong. They
// stand between engine and model, so the code that serves has no switch for them.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "model/model.h"

namespace rondo {

// Passes every call on; a fault overrides the ones that it gets wrong.
class FaultyModel : public Model {
 public:
  explicit FaultyModel(Model& inner) : inner_(inner) {}
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
  CostTables time_costs(std::span<const std::int32_t> text, double budget_ms) override {
    return inner_.time_costs(text, budget_ms);
  }

  int strikes() const { return strikes_; }  // how often the fault has been done

 protected:
  Model& inner_;
  int strikes_ = 0;
};

struct Plant {
  std::string_view name;
  std::string_view what;  // it does, in a line
  bool needs_head;
  std::unique_ptr<FaultyModel> (*make)(Model& inner);
};
std::span<const Plant> plants();
const Plant* find_plant(std::string_view name);

}  // namespace rondo
