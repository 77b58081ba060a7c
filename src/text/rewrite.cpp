#include "text/rewrite.h"

#include <algorithm>

#include "base/check.h"

namespace rondo {

namespace {

void append_range(std::vector<ByteRange>& ranges, ByteRange range) {
  if (range.begin >= range.end) return;
  if (!ranges.empty() && ranges.back().end >= range.begin) {
    ranges.back().end = std::max(ranges.back().end, range.end);
  } else {
    ranges.push_back(range);
  }
}

}  // namespace

void Rewrite::replace(ByteRange old_range, std::string_view replacement) {
  CHECK(copied_ <= old_range.begin && old_range.begin <= old_range.end && old_range.end <= before_.size());
  after_.append(before_, copied_, old_range.begin - copied_);
  const std::size_t begin = after_.size();
  after_.append(replacement);
  edits_.push_back({old_range, {begin, after_.size()}});
  copied_ = old_range.end;
}

std::string Rewrite::finish() {
  after_.append(before_, copied_, std::string_view::npos);
  copied_ = before_.size();
  return std::move(after_);
}

std::vector<ByteRange> Rewrite::moved(const std::vector<ByteRange>& old_ranges) const {
  std::vector<ByteRange> new_ranges;
  auto edit = edits_.begin();  // the first edit that ends after the place looked at; both walk to the right
  const auto shifted = [&](std::size_t pos) {
    return edit == edits_.begin() ? pos : pos - std::prev(edit)->before.end + std::prev(edit)->after.end;
  };
  for (const ByteRange& range : old_ranges) {
    while (edit != edits_.end() && edit->before.end <= range.begin) ++edit;
    const bool begins_inside = edit != edits_.end() && edit->before.begin < range.begin;
    const std::size_t begin = begins_inside ? edit->after.begin : shifted(range.begin);
    while (edit != edits_.end() && edit->before.end <= range.end) ++edit;
    const bool ends_inside = edit != edits_.end() && edit->before.begin < range.end;
    append_range(new_ranges, {begin, ends_inside ? edit->after.end : shifted(range.end)});
  }
  return new_ranges;
}

std::vector<ByteRange> ranges_within(const std::vector<ByteRange>& ranges, ByteRange window) {
  std::vector<ByteRange> inside;
  auto range =
      std::partition_point(ranges.begin(), ranges.end(), [&](const ByteRange& r) { return r.end <= window.begin; });
  for (; range != ranges.end() && range->begin < window.end; ++range) {
    append_range(
        inside, {std::max(range->begin, window.begin) - window.begin, std::min(range->end, window.end) - window.begin});
  }
  return inside;
}

}  // namespace rondo
