// plan_cases CASES.json OUT.json: our plan for every case of the draft-budget oracle, in the form its `compare` reads.

#include <cstdio>
#include <fstream>

#include "base/json.h"
#include "base/mmap_file.h"
#include "engine/draft_budget.h"

namespace rondo {
namespace {

// V of the case: linear between timed widths, the first value below them, the last slope past them.
std::vector<double> expand(const json::Array& widths, const json::Array& ms, int rows) {
  std::vector<double> out(1, 0.0);
  for (int n = 1; n <= rows; ++n) {
    std::size_t i = 1;
    while (i + 1 < widths.size() && widths[i].to_number<int>() < n) ++i;
    if (n <= widths[0].to_number<int>() || widths.size() == 1) {
      out.push_back(ms[0].to_number<double>());
      continue;
    }
    const double x0 = widths[i - 1].to_number<double>(), x1 = widths[i].to_number<double>();
    const double y0 = ms[i - 1].to_number<double>(), y1 = ms[i].to_number<double>();
    out.push_back(y0 + (y1 - y0) * (n - x0) / (x1 - x0));
  }
  return out;
}

json::Object plan_case(const json::Object& c, DraftBudget& budget) {
  const auto& limits = c.at("limits").as_array();
  const auto& fixed = c.at("fixed").as_array();
  std::vector<std::vector<float>> survival;
  int most_rows = 0;
  for (std::size_t r = 0; r < limits.size(); ++r) {
    survival.emplace_back();
    for (int d = 0; d < limits[r].to_number<int>(); ++d) {
      survival.back().push_back(
          c.at("chances").as_array()[r].as_array()[static_cast<std::size_t>(d)].to_number<float>());
    }
    most_rows += fixed[r].to_number<int>() + limits[r].to_number<int>();
  }
  std::vector<StreamOdds> streams;
  for (std::size_t r = 0; r < limits.size(); ++r) {
    streams.push_back({.certain_rows = fixed[r].to_number<int>(), .absorb_rows = 0, .survival = survival[r]});
  }
  const std::vector<double> verify = expand(c.at("widths").as_array(), c.at("ms").as_array(), most_rows);
  std::vector<double> level(1, 0.0);
  for (const auto& ms : c.at("head_ms").as_array()) level.push_back(ms.to_number<double>());
  std::vector<int> drafts(streams.size());
  budget.plan({.verify_ms = verify,
               .absorb_ms = {},
               .level_ms = level,
               .overhead_ms = c.at("overhead_ms").to_number<double>(),
               .max_rows = c.at("max_rows").to_number<int>()},
              streams, drafts);
  return {{"case", c.at("case")}, {"plan", json::Array(drafts.begin(), drafts.end())}};
}

int run(const char* cases_path, const char* out_path) {
  const auto text = read_file(cases_path);
  if (!text) return std::fprintf(stderr, "%s\n", text.error().message.c_str()), 1;
  const auto cases = parse_json(*text);
  if (!cases) return std::fprintf(stderr, "%s: %s\n", cases_path, cases.error().message.c_str()), 1;
  DraftBudget budget;
  json::Array plans;
  for (const auto& each : cases->as_object().at("cases").as_array())
    plans.push_back(plan_case(each.as_object(), budget));
  std::ofstream(out_path) << to_json(plans) << "\n";
  std::printf("%zu plans in %s\n", plans.size(), out_path);
  return 0;
}

}  // namespace
}  // namespace rondo

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: plan_cases CASES.json OUT.json\n"), 2;
  return rondo::run(argv[1], argv[2]);
}
