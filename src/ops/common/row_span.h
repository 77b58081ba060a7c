// RowSpan: consecutive rows of a batch that belong to one sequence.
//
// The rows stand at positions start_pos .. start_pos + count - 1. The first `certain` of them stay whatever happens
// (prompt rows; the pending token and forced tokens of a window): recurrent state moves on with them in place. The rows
// after them are drafts: they run on a copy of the state and are logged, and the commit that follows says how many of
// them stay. Those, `fold` of them, are folded in at the start of the sequence's next span, by the same operations in
// the same order as decoding them would have used (spec: rollback by deferred fold). So a state is never copied per
// row.
#pragma once

#include <cstdint>

namespace rondo {

struct RowSpan {
  int begin = 0;  // first row in the batch
  int count = 0;
  int certain = 0;  // 1 .. count; 0 of a span without rows, which only folds
  int start_pos = 0;
  int slot = 0;                          // whose recurrent state
  int fold = 0;                          // logged rows of the last span to fold in first
  int first_pos = 0;                     // positions before it are not in the cache: attention begins here
  const std::int32_t* blocks = nullptr;  // KV block of each block_tokens positions, enough for the last position
};

}  // namespace rondo
