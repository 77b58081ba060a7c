// Candidate: a token that may be drawn. Nothing but data here: files compiled for one instruction set include it.
#pragma once

#include <cstdint>

namespace rondo {

struct Candidate {
  float logit;
  std::int32_t id;
};

}  // namespace rondo
