// RowSpans: the spans of a batch as an op takes them.
#pragma once

#include <span>
#include <vector>

#include "ops/common/row_span.h"

namespace rondo {

// On the host, whose checks and plans read them, and for a GPU a second time in its memory, their block tables too.
struct RowSpans {
  RowSpans() = default;
  RowSpans(std::span<const RowSpan> spans) : host(spans) {}  // not explicit: all that a CPU needs
  RowSpans(const std::vector<RowSpan>& spans) : host(spans) {}
  std::span<const RowSpan> host;
  const RowSpan* on_device = nullptr;
  const std::int32_t* span_of_row = nullptr;  // [rows of the batch] on the device: index of the row's span
};

}  // namespace rondo
