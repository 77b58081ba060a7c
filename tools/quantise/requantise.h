// requantise: a checkpoint written anew with its matrices in another format, as the makers of such checkpoints name and
// lay them out. For tests and benches: it holds the whole checkpoint in memory, and writes one file without an index.
//
//   Fp8      as Qwen's own: the projections of attention and Gated DeltaNet, MLPs and experts in block-FP8; an n-gram
//            table in FP8 with one scale for all shards
//   Nvfp4    as NVIDIA's (ModelOpt, mixed): experts, MLPs and lm_head in NVFP4, projections in FP8 with one scale; the
//            head's experts in block-FP8
//   Affine   as MLX's: every matrix with whole groups of 64, the router and the shared expert's gate in 8 bits; experts
//            stacked, convolutions turned, gains stored with the one added
//   Decoded  every matrix in float32: the exact values of whatever format it had
#pragma once

#include <string>

#include "base/result.h"

namespace rondo {

struct QuantiseSpec {
  enum class Scheme { Fp8, Nvfp4, Affine, Decoded };
  Scheme scheme = Scheme::Fp8;
  int bits = 4;     // Affine: 4, 6 or 8
  int block = 128;  // Fp8, Nvfp4: rows and columns of a block
};

// Everything else of the folder (tokenizer, templates, goldens) is copied. The vision tower is left out.
Result<void> requantise(const std::string& folder, const std::string& out_folder, const QuantiseSpec& spec);

}  // namespace rondo
