// FakeClock: time that passes only when a test says so.
#pragma once

#include "base/clock.h"

namespace rondo::test {

class FakeClock final : public Clock {
 public:
  Time now() const override { return now_; }
  void advance_ms(double ms) {
    now_ += std::chrono::duration_cast<Time::duration>(std::chrono::duration<double, std::milli>(ms));
  }

 private:
  Time now_{std::chrono::hours(1)};
};

}  // namespace rondo::test
