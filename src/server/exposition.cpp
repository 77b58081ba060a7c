#include "server/exposition.h"

#include <fmt/format.h>

namespace rondo {

namespace {

std::string quoted(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

void Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void Exposition::sample(Labels labels, double value) {
  text_ += name_;
  char before = '{';
  for (const auto& [label, label_value] : labels) {
    text_ += fmt::format("{}{}={}", before, label, quoted(label_value));
    before = ',';
  }
  if (before == ',') text_ += '}';
  text_ += fmt::format(" {}\n", value);  // the shortest digits that read back equal
}

void Exposition::counter(std::string_view name, std::string_view help, double value) {
  family(name, "counter", help);
  sample({}, value);
}

void Exposition::gauge(std::string_view name, std::string_view help, double value) {
  family(name, "gauge", help);
  sample({}, value);
}

void Exposition::histogram(std::string_view name, std::string_view help, const Histogram& histogram) {
  family(name, "histogram", help);
  std::uint64_t up_to = 0;
  for (std::size_t i = 0; i < Histogram::kBounds.size(); ++i) {
    up_to += histogram.counts[i];
    text_ += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, Histogram::kBounds[i], up_to);
  }
  const std::uint64_t total = histogram.total();
  text_ += fmt::format("{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name, total, name, histogram.sum_s,
                       name, total);
}

}  // namespace rondo
