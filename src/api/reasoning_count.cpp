#include "api/reasoning_count.h"

namespace rondo {

void ReasoningCount::add(std::span<const std::int32_t> ids, bool is_reasoning) {
  if (closed_ || !is_reasoning) return;
  for (const std::int32_t id : ids) {
    ++tokens_;
    if (id == think_end_id_) {
      closed_ = true;
      return;
    }
  }
}

}  // namespace rondo
