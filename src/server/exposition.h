// Exposition: the text that Prometheus reads (format 0.0.4): a family of samples at a time, each with its help and
// type.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/histogram.h"

namespace rondo {

class Exposition {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  // Begins a family; its samples follow. type: counter or gauge.
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(Labels labels, double value);
  // A family of one sample without labels.
  void counter(std::string_view name, std::string_view help, double value);
  void gauge(std::string_view name, std::string_view help, double value);
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram);

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::string name_;  // of the family begun last
};

}  // namespace rondo
