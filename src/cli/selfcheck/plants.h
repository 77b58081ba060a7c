// Faults to plant: each a model that does the real one's work with one thing wrong, as a bug might have it wrong. They
// stand between engine and model, so the code that serves has no switch for them.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "model/forwarding_model.h"

namespace rondo {

class FaultyModel : public ForwardingModel {
 public:
  using ForwardingModel::ForwardingModel;
  int strikes() const { return strikes_; }  // how often the fault has been done

 protected:
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
