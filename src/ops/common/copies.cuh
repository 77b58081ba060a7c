// Reads of weights, asynchronous copies to shared memory and barriers there: instructions that CUDA C++ has no words
// for.
#pragma once

#include <cstdint>

namespace rondo::cuda {

// Sixteen bytes that nobody reads twice.
__device__ inline uint4 read_weight(const std::uint16_t* at) {
  uint4 w;
  // Not .nc: the assembler moves such a load behind griddepcontrol.wait.
  asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
               : "l"(at));
  return w;
}

template <int Bytes>
__device__ inline void copy_async(void* to, const void* from) {
  const auto shared_at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared_at), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_at), "l"(from), "n"(Bytes) : "memory");
  }
}
// Four matrices of eight rows of 16 bytes, each lane at a row of one of them (lane / 8 says which): a lane gets word
// lane % 4 of row lane / 4 of each.
__device__ inline uint4 read_matrices(const void* row) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  uint4 words;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "r"(at)
               : "memory");
  return words;
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// A barrier in shared memory: a phase of it ends when so many have arrived, and what they wrote before that is seen by
// who waited for the phase of that parity (0 for the first).
__device__ inline void begin_barrier(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(barrier))),
               "r"(arrivals)
               : "memory");
}
__device__ inline void arrive_at(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(barrier)))
               : "memory");
}
// Contiguous bytes, a multiple of sixteen, to shared memory, by one thread: the phase under way has one arrival for it,
// and ends when they are there.
__device__ inline void copy_in_bulk(void* to, const void* from, unsigned bytes, std::uint64_t* barrier) {
  const auto barrier_at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier_at), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(bytes), "r"(barrier_at)
               : "memory");
}
// Barriers that were begun are seen by bulk copies, behind a barrier of the block.
__device__ inline void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ inline void wait_at(std::uint64_t* barrier, int parity) {
  asm volatile(
      "{\n\t"
      ".reg .pred done;\n\t"
      "again:\n\t"
      "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n\t"
      "@!done bra again;\n\t"
      "}" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(barrier))),
      "r"(parity)
      : "memory");
}

}  // namespace rondo::cuda
