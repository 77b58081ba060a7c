// The products of the quantised formats, over all kernels; each compiled in a file of its own.
#pragma once

#include "ops/linear/multiply_tall.cuh"

namespace rondo::cuda::product {

// Decoding keeps two teams busy. Their rings are of the depth that leaves room for one input of the widest rows there
// are, or for four; of long codes one team's is.
template <Code C>
using DeepForm = StreamForm<CodedReader<C, 2,
                                        kBits<C> == 4   ? 8
                                        : kBits<C> == 8 ? 5
                                                        : 6>,
                            2>;
template <Code C>
using ShallowForm = StreamForm<CodedReader<C, 2, kBits<C> == 4 ? 4 : 3>, 2>;
template <Code C>
using SmallForm = std::conditional_t<kBits<C> == 4, ShallowForm<C>, StreamForm<CodedReader<C, 2, 4>, 1>>;

template <Code C>
void launch_coded(Stream& s, const Args& args, const Launch& l);
template <Code C>
void launch_coded_stream(Stream& s, const StreamArgs& args);
template <Code C>
void launch_coded_wide(Stream& s, const WideArgs& args, const Launch& l);

template <Code C>
void launch_coded_by_rows(Stream& s, const WideArgs& args, const Launch& l) {
  using Reader = CodedReader<C, 4, kWideStages>;
  if (l.rows <= 16) return launch_wide_tiles<Reader, 2, true>(s, args, l);
  if (l.rows <= 32) return launch_wide_tiles<Reader, 4, true>(s, args, l);
  if (l.rows <= 64) return launch_wide_tiles<Reader, 8, true>(s, args, l);
  launch_tall<CodedReader<C, 2, 4>, true>(s, args, l);
}

// What such a file consists of.
#define RONDO_CODED_PRODUCTS(code)                                                    \
  template <>                                                                         \
  void launch_coded<code>(Stream & s, const Args& args, const Launch& l) {            \
    launch_by_rows<CodedReader<code, 2, kBits<code> == 8 ? 3 : 4>, true>(s, args, l); \
  }                                                                                   \
  template <>                                                                         \
  void launch_coded_stream<code>(Stream & s, const StreamArgs& args) {                \
    launch_stream<true, DeepForm<code>, ShallowForm<code>, SmallForm<code>>(s, args); \
  }                                                                                   \
  template <>                                                                         \
  void launch_coded_wide<code>(Stream & s, const WideArgs& args, const Launch& l) {   \
    launch_coded_by_rows<code>(s, args, l);                                           \
  }

}  // namespace rondo::cuda::product
