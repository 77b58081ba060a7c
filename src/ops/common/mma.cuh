// The tensor cores' instruction: sum[16, 8] += a[16, 16] b[16, 8], bf16 in, f32 out. Lane (g, t) = (lane / 4, lane % 4)
// has of a: rows g and g + 8, columns 2 t, 2 t + 1 (a0, a1) and 2 t + 8, 2 t + 9 (a2, a3); of b: the same columns' rows
// (b0, b1), column g; of the sum: rows g (0, 1) and g + 8 (2, 3), columns 2 t, 2 t + 1 (PTX ISA, mma.m16n8k16).
//
// A column of the sum knows of its own column of b alone; and which of a's columns stands where in it is the caller's,
// as long as b's rows stand the same way.
#pragma once

namespace rondo::cuda {

__device__ inline void mma(float* sum, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

}  // namespace rondo::cuda
