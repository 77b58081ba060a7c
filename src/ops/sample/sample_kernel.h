// Passes over a whole row of logits: what drawing costs with a vocabulary of a quarter million.
#pragma once

#include <cstdint>

#include "ops/common/isa.h"
#include "ops/sample/candidate.h"

namespace rondo {

struct LogitRow {
  const float* logits;  // [n]
  std::int64_t n;
  float most;         // sum_of_exps: subtracted first
  float scale;        // sum_of_exps: then multiplied by, before the exponential
  std::int64_t best;  // out, highest_logit: index of the highest, the first of equals
  float total;        // out, sum_of_exps
};

// Appends the logits higher than `above`, from `begin` on, to what was found, until the row ends or fewer than kScanned
// places are left; `begin` is then where it stopped. A found candidate's id is its index.
struct LogitScan {
  LogitRow row;
  float above;
  std::int64_t begin;
  Candidate* found;  // [room]
  std::int64_t room, num_found;
};
constexpr std::int64_t kScanned = 64;  // logits that are looked at together

// Logits of tokens that are not allowed become -infinity; a bit a token, lowest first, and past the words none is.
struct LogitMask {
  float* logits;  // [n]
  std::int64_t n;
  const std::uint32_t* allowed;  // [words]
  std::int64_t words;
};

RONDO_DECLARE_KERNEL(highest_logit, LogitRow& r)
RONDO_DECLARE_KERNEL(sum_of_exps, LogitRow& r)
RONDO_DECLARE_KERNEL(find_likely, LogitScan& r)
RONDO_DECLARE_KERNEL(forbid_logits, LogitMask& m)

}  // namespace rondo
