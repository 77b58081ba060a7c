#include "ops/sample/draw_rows.h"

#include "ops/common/isa.h"
#include "ops/sample/draw_rows_cuda.h"

namespace rondo {

std::size_t draw_room_bytes(int rows) {
  return static_cast<std::size_t>(rows) * cuda::kDrawSlices * sizeof(cuda::SliceBest);
}

void draw_rows(Stream& s, Tensor logits, [[maybe_unused]] const DrawKey* keys, [[maybe_unused]] const std::int32_t* ids,
               [[maybe_unused]] RowShaping shaping, Tensor room, Tensor drawn) {
  CHECK(static_cast<std::size_t>(room.shape.num_elements()) >= draw_room_bytes(logits.rows()));
  CHECK(drawn.shape.num_elements() >= logits.rows() * static_cast<std::int64_t>(sizeof(DrawnRow)));
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, draw_rows(s, logits, keys, ids, shaping, room, drawn));
  CHECK(false && "on a CPU rows are drawn one by one: draw.h");
}

void find_likely_rows(Stream& s, Tensor logits, [[maybe_unused]] const DrawKey* keys,
                      [[maybe_unused]] RowShaping shaping, Tensor likely) {
  CHECK(likely.shape.num_elements() >= logits.rows() * static_cast<std::int64_t>(sizeof(LikelyRow)));
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, find_likely_rows(s, logits, keys, shaping, likely));
  CHECK(false && "on a CPU rows are drawn one by one: draw.h");
}

void tell_rows(Stream& s, Tensor logits, [[maybe_unused]] const DrawKey* keys, Tensor drawn, Tensor told) {
  CHECK(drawn.shape.num_elements() >= logits.rows() * static_cast<std::int64_t>(sizeof(DrawnRow)));
  CHECK(told.shape.num_elements() >= logits.rows() * static_cast<std::int64_t>(sizeof(ToldRow)));
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, tell_rows(s, logits, keys, drawn, told));
  CHECK(false && "on a CPU rows are drawn one by one: draw.h");
}

}  // namespace rondo
