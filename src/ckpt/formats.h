// Which format a matrix of the inventory is stored in: told by its dtype and by the tensors that stand beside it.
//
//   stored as                      beside X.weight                                      format
//   BF16, F16, F32 [out, in]       nothing                                              plain
//   F8_E4M3 [out, in]              X.weight_scale_inv or X.weight_scale:                Fp8
//                                    [ceil(out / r), ceil(in / c)] (blocks r x c of weight_block_size),
//                                    [out] or [out, 1] (a scale a row), or one number
//   U8 [out, in / 2]               X.weight_scale F8_E4M3 [out, in / 16],               Nvfp4 (ModelOpt)
//                                    X.weight_scale_2 F32, one number
//   U32 [out, in * bits / 32]      X.scales and X.biases [out, in / group]              Affine (MLX)
//
// Scales of the last and first kind are BF16, F16 or F32. The shards of an n-gram table may share
// "ngram_embedding.weight_scale". Stacked matrices [n, out, in] are plain or Affine.
#pragma once

#include <optional>

#include "ckpt/check.h"

namespace rondo {

// The weight under spec's name, which the set holds; nullopt when it cannot be read: then log has the file and the
// tensor. Names of scales and biases that are part of it go to `parts`.
std::optional<Weight> read_weight(const ModelConfig& config, const ShardSet& set, const TensorSpec& spec,
                                  ProblemLog& log, std::unordered_set<std::string>& parts);

}  // namespace rondo
