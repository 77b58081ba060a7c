#include "cli/ladder_report.h"

#include <fmt/format.h>

#include <optional>

#include "cli/spread.h"

namespace rondo {

namespace {

constexpr auto kLine = "{:<8} {:>7} {:>4}  {:<20} {:<20} {:<18} {:>6}  {:<10} {:<8} {:<15} {}";

json::Value median_or_null(const std::vector<double>& runs) {
  return runs.empty() ? json::Value(nullptr) : json::Value(spread(runs).median);
}

json::Value range_or_null(const std::vector<double>& runs) {
  if (runs.empty()) return nullptr;
  const Spread s = spread(runs);
  return json::Array{s.lowest, s.highest};
}

std::string equal(const LadderSide& side) { return fmt::format("{}/{}", side.num_equal, side.num_replies); }

// Tokens a stream gets from a round: 1 when no draft is kept.
double tokens_per_round(const LadderRow& row, const LadderSide& side) {
  if (side.rounds == 0) return 0;
  return static_cast<double>(side.tokens) / (static_cast<double>(side.rounds) * row.streams);
}

// Of the drafts verified at each depth, the share kept.
std::vector<double> accept_by_depth(const LadderSide& side) {
  std::vector<double> shares;
  for (int depth = 0; depth < kMaxDepth && side.drafted[depth] > 0; ++depth)
    shares.push_back(static_cast<double>(side.accepted[depth]) / static_cast<double>(side.drafted[depth]));
  return shares;
}

// Of a round, in which nobody waits for a device; none where there is none.
std::optional<double> host_share(const LadderSide& side) {
  if (side.ms == 0 || side.waited_ms == 0) return std::nullopt;
  return 1 - side.waited_ms / side.ms;
}

json::Value share_or_null(const LadderSide& side) {
  const auto share = host_share(side);
  return share ? json::Value(*share) : json::Value(nullptr);
}

std::string percent(const LadderSide& side) {
  const auto share = host_share(side);
  return share ? fmt::format("{:.0f}", 100 * *share) : "-";
}

template <class... Columns>
std::string to_line(const Columns&... columns) {
  std::string line = fmt::format(kLine, columns...);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string rate(const std::vector<double>& runs) {
  if (runs.empty()) return "-";
  const Spread s = spread(runs);
  const int digits = s.median < 100 ? 1 : 0;
  return fmt::format("{:.{}f} ({:.{}f}..{:.{}f})", s.median, digits, s.lowest, digits, s.highest, digits);
}

}  // namespace

json::Object to_json_object(const LadderRow& row) {
  json::Array accepted;
  for (const double share : accept_by_depth(row.drafted)) accepted.emplace_back(share);
  json::Object out;
  out["prompts"] = row.prompts;
  out["streams"] = row.streams;
  out["temperature"] = row.temperature;
  out["plain_tok_s"] = median_or_null(row.plain.tok_s);
  out["draft_tok_s"] = median_or_null(row.drafted.tok_s);
  out["ratio"] = median_or_null(row.ratios);
  out["tokens_per_round"] = tokens_per_round(row, row.drafted);
  out["accept_by_depth"] = std::move(accepted);
  out["rounds"] = row.drafted.rounds;
  out["verify_passes"] = row.drafted.verify_passes;
  out["level_passes"] = row.drafted.levels;
  out["planned_ms"] = median_or_null(row.drafted.planned_ms);
  out["real_ms"] = median_or_null(row.drafted.real_ms);
  out["equal_alone"] = equal(row.plain);
  out["equal_undrafted"] = equal(row.drafted);
  out["plain_tok_s_range"] = range_or_null(row.plain.tok_s);
  out["draft_tok_s_range"] = range_or_null(row.drafted.tok_s);
  out["ratio_range"] = range_or_null(row.ratios);
  out["head_passes"] = row.drafted.head_passes;
  out["plain_rounds"] = row.plain.rounds;
  out["plain_verify_passes"] = row.plain.verify_passes;
  out["plain_planned_ms"] = median_or_null(row.plain.planned_ms);
  out["plain_real_ms"] = median_or_null(row.plain.real_ms);
  out["host_share"] = share_or_null(row.drafted);
  out["plain_host_share"] = share_or_null(row.plain);
  return out;
}

std::string ladder_header() {
  return to_line("prompts", "streams", "T", "plain tokens/s", "drafted tokens/s", "ratio", "tokens", "round, ms",
                 "host, %", "as alone", "kept by depth, %") +
         to_line("", "", "", "median (range)", "median (range)", "of pairs", "/round", "plan real", "", "plain drafted",
                 "");
}

std::string to_text_line(const LadderRow& row) {
  std::string kept;
  for (const double share : accept_by_depth(row.drafted))
    kept += fmt::format("{}{:.0f}", kept.empty() ? "" : " ", 100 * share);
  std::string ratio = "-";
  if (!row.ratios.empty()) {
    const Spread s = spread(row.ratios);
    ratio = fmt::format("{:.2f} ({:.2f}..{:.2f})", s.median, s.lowest, s.highest);
  }
  const std::string times =
      row.drafted.real_ms.empty()
          ? "-"
          : fmt::format("{:.3g} {:.3g}", spread(row.drafted.planned_ms).median, spread(row.drafted.real_ms).median);
  return to_line(row.prompts, row.streams, row.temperature, rate(row.plain.tok_s), rate(row.drafted.tok_s), ratio,
                 fmt::format("{:.2f}", tokens_per_round(row, row.drafted)), times,
                 percent(row.plain) + " " + percent(row.drafted),
                 fmt::format("{:<7} {}", equal(row.plain), equal(row.drafted)), kept);
}

int num_different(const LadderRow& row) {
  return row.plain.num_replies - row.plain.num_equal + row.drafted.num_replies - row.drafted.num_equal;
}

}  // namespace rondo
