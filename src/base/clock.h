// Clock: where the time comes from, so that a test can say what time it is.
#pragma once

#include <chrono>

namespace rondo {

class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  Time now() const override { return std::chrono::steady_clock::now(); }
};

inline double ms_between(Clock::Time from, Clock::Time to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace rondo
