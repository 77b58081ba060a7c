// Costs timed at load: shared forwards by rows at two context lengths, the head's absorb pass by rows, one level by
// streams. On slots that hold nothing, with caches full of numbers; what is timed is what serving will run, so it also
// warms every kernel.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "model/network_model.h"

namespace rondo {

namespace {

constexpr int kWidths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};  // wider ones cost a CPU as much a row
// A GPU's take steps where another kernel begins (8 | 16 | 32 | 64 rows, then whole 128), and are flat between.
constexpr int kWidthsOnGpu[] = {1, 2, 3, 4, 6, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 192, 256, 257, 384, 512};
constexpr int kRepeats = 5;                              // the median counts, after a warm-up
constexpr double kVerifyShare = 0.4, kOtherShare = 0.2;  // of the time there is: each curve has its own part of it
constexpr int kShortContext = 256, kLongContext = 4096;

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Milliseconds by width, in passes over all widths: the first warms up and counts only where there was no time for
// others; the median of the rest counts. With the time up, widths and passes stay out, but not the two narrowest
// widths.
struct Passes {
  std::vector<int> widths;
  std::vector<double> ms;
  bool hurried = false;
};

template <class Run>
Passes time_widths(Run run, std::span<const int> widths, int most, Clock::time_point until) {
  Passes out;
  std::vector<std::vector<double>> times;
  for (int pass = 0; pass <= kRepeats && !out.hurried; ++pass) {
    for (std::size_t i = 0; i < widths.size() && widths[i] <= most; ++i) {
      if ((pass > 0 || i >= 2) && Clock::now() > until) {
        out.hurried = true;
        break;
      }
      if (pass == 0) {
        out.widths.push_back(widths[i]);
        times.emplace_back();
      }
      times[i].push_back(run(widths[i]));
    }
  }
  for (std::vector<double>& each : times) {
    const auto first = each.begin() + (each.size() > 1 ? 1 : 0);
    std::sort(first, each.end());
    out.ms.push_back(*(first + (each.end() - first) / 2));
  }
  return out;
}

// Timed points to one value for each index 0 .. last: linear between them, the first below, the last slope above; never
// falling: what else ran on the machine can only have made a width slower, so a wider one that was faster tells the
// truth.
std::vector<double> to_curve(const std::vector<int>& at, std::vector<double> ms, int last) {
  if (at.empty()) return {};
  for (std::size_t i = ms.size() - 1; i > 0; --i) ms[i - 1] = std::min(ms[i - 1], ms[i]);
  std::vector<double> curve;
  for (int n = 0; n <= last; ++n) {
    std::size_t i = 1;
    while (i + 1 < at.size() && at[i] < n) ++i;
    if (n <= at[0] || at.size() == 1) {
      curve.push_back(ms[0]);
      continue;
    }
    const double part = static_cast<double>(n - at[i - 1]) / (at[i] - at[i - 1]);
    curve.push_back(ms[i - 1] + (ms[i] - ms[i - 1]) * part);
  }
  return curve;
}

}  // namespace

std::span<const std::int32_t> NetworkModel::timing_blocks(int slot_index) const {
  const auto each = timing_blocks_.size() / slots_.size();
  return std::span(timing_blocks_).subspan(static_cast<std::size_t>(slot_index) * each, each);
}

void NetworkModel::stand_at(int position) {
  for (int i = 0; i < facts_.max_streams; ++i) {
    release(i);
    slot(i).next_pos = slot(i).head_next = position;
  }
}

void NetworkModel::fill_caches() {
  std::uint64_t seed = 1;
  for (const Tensor& each : reservation_->past().blocks) fill_random(stream_, each, seed++);
}

double NetworkModel::time_verify(int rows, int streams, int context, std::span<const std::int32_t> text) {
  const int longest = (rows + streams - 1) / streams;
  stand_at(std::max(0, std::min(context, facts_.context_tokens) - longest));
  static const DrawSettings kGreedy{.temperature = 0, .bias = {}};
  std::vector<Window> windows;
  for (int i = 0; i < streams; ++i) {
    const int count = rows / streams + (i < rows % streams ? 1 : 0);
    windows.push_back({.slot = i,
                       .start_pos = slot(i).next_pos,
                       .ids = text.subspan(static_cast<std::size_t>(i), static_cast<std::size_t>(count)),
                       .certain = 1,
                       .blocks = timing_blocks(i),
                       .draw = &kGreedy,
                       .generated = {},
                       .masks = {},
                       .num_top_logprobs = -1});
  }
  const auto begin = Clock::now();
  verify(windows);
  return ms_since(begin);
}

double NetworkModel::time_absorb(int rows, int streams, std::span<const std::int32_t> text) {
  const int longest = (rows + streams - 1) / streams;
  stand_at(std::min(kShortContext, facts_.context_tokens - 1) - longest);  // and one row more for time_level
  static const DrawSettings kGreedy{.temperature = 0, .bias = {}};
  std::vector<DraftStream> drafting;
  for (int i = 0; i < streams; ++i) {
    const int count = rows / streams + (i < rows % streams ? 1 : 0);
    for (int row = 0; row < count; ++row)
      keep_waiting(i, hidden_row(row), text[static_cast<std::size_t>(i + row) % text.size()]);
    drafting.push_back({.slot = i, .draw = &kGreedy, .generated = {}, .blocks = timing_blocks(i)});
  }
  const auto begin = Clock::now();
  draft_first(drafting);
  return ms_since(begin);
}

// After time_absorb(streams, ..): each of them has one draft.
double NetworkModel::time_level(int streams) {
  std::vector<int> all;
  for (int i = 0; i < streams; ++i) all.push_back(i);
  const auto begin = Clock::now();
  draft_next(all);
  return ms_since(begin);
}

// On a GPU, once: a graph for every round of few rows, and for every number of streams that draft nothing. Wider rounds
// take longer than the host needs to launch their kernels one by one. At two context lengths, as selection has kernels
// of its own in long ones.
void NetworkModel::make_graphs() {
  for (int b = 0; b < facts_.num_blocks; ++b) timing_blocks_.push_back(b);
  if (!stream_.on_cuda()) return;
  constexpr int kFewRows = 8;
  const std::vector<std::int32_t> text(static_cast<std::size_t>(facts_.max_rows + facts_.max_streams), 0);
  const int most_each = 1 + facts_.max_drafts;
  for (int streams = 1; streams <= facts_.max_streams; ++streams) {
    const int most_rows = std::max(streams, std::min({kFewRows, streams * most_each, facts_.max_rows}));
    for (int rows = streams; rows <= most_rows; ++rows) {
      for (const int context : {std::min(kShortContext, facts_.context_tokens), facts_.context_tokens}) {
        if (context > most_each) time_verify(rows, streams, context, text);
      }
      if (facts_.has_head && facts_.context_tokens > 2 * most_each) time_absorb(rows, streams, text);
    }
  }
  stand_at(0);
  stream_.wait();
  stream_.seal();
}

CostTables NetworkModel::time_costs(std::span<const std::int32_t> text, double budget_ms) {
  CostTables tables;
  const int most_rows = std::min(facts_.max_rows, facts_.max_streams * (1 + facts_.max_drafts));
  if (static_cast<int>(text.size()) < 2 * most_rows) {
    tables.why = fmt::format("a text of {} tokens is too short to time {} rows", text.size(), most_rows);
    return tables;
  }
  if (most_rows < 2 || facts_.context_tokens <= 2 * (1 + facts_.max_drafts)) {
    tables.why = fmt::format("{} rows and a context of {} are too few to time", most_rows, facts_.context_tokens);
    return tables;
  }
  fill_caches();
  bool hurried = false;
  tables.context_tokens[0] = std::min(kShortContext, facts_.context_tokens);
  tables.context_tokens[1] = std::min(kLongContext, facts_.context_tokens);
  auto until = Clock::now();  // what one curve leaves over, the next ones have
  const auto widths = stream_.on_cuda() ? std::span<const int>(kWidthsOnGpu) : std::span<const int>(kWidths);
  const auto curve_of = [&](auto run, int most, double share) {
    until += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(share * budget_ms));
    Passes passes = time_widths(run, widths, most, until);
    hurried = hurried || passes.hurried;
    return to_curve(passes.widths, std::move(passes.ms), most);
  };
  for (int i = 0; i < 2; ++i) {
    const int context = tables.context_tokens[i];
    tables.verify_ms[i] =
        curve_of([&](int rows) { return time_verify(rows, std::min(rows, facts_.max_streams), context, text); },
                 most_rows, i == 0 ? kVerifyShare : kOtherShare);
  }
  if (facts_.has_head) {
    const int most_each = std::min(facts_.head_buffer_rows, facts_.context_tokens - 1);
    const int most_absorbed = std::min(facts_.max_rows, facts_.max_streams * most_each);
    tables.absorb_ms = curve_of([&](int rows) { return time_absorb(rows, std::min(rows, facts_.max_streams), text); },
                                most_absorbed, kOtherShare);
    if (facts_.max_drafts > 1) {
      const auto run = [&](int streams) {
        time_absorb(streams, streams, text);
        return time_level(streams);
      };
      tables.level_ms = curve_of(run, facts_.max_streams, kOtherShare);
    }
  }
  if (hurried) tables.why = fmt::format("timed for {:.0f} ms: fewer repeats or widths than meant", budget_ms);
  stand_at(0);
  return tables;
}

}  // namespace rondo
