// DeviceError: the machine failed (a CUDA call, a lost GPU). Thrown only in device/ and by the launches of ops/, caught
// by the engine loop and by main.
#pragma once

#include <stdexcept>

namespace rondo {

class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rondo
