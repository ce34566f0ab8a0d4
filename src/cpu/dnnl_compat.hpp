// SPDX-License-Identifier: Apache-2.0
// One interface to oneDNN 2.6, which makes an operation descriptor first, and 3.x, which makes primitive descriptors
// at once. Included by src/cpu/dnnl_kernel.hpp alone.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

namespace cohort::dnn {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::primitive_attr;
using dnnl::prop_kind;
using Dims = memory::dims;
using Desc = memory::desc;

constexpr bool kDnnl3 = DNNL_VERSION_MAJOR >= 3;

#if DNNL_VERSION_MAJOR >= 3
using SoftmaxForward = dnnl::softmax_forward;
using SoftmaxBackward = dnnl::softmax_backward;
#else
using SoftmaxForward = dnnl::softmax_v2_forward;
using SoftmaxBackward = dnnl::softmax_v2_backward;
#endif

// Makes the primitive descriptor of a forward primitive P from the arguments of its operation.
template <typename P, typename... A>
typename P::primitive_desc forward_desc(const dnnl::engine &engine, const primitive_attr &attr, const A &...args) {
#if DNNL_VERSION_MAJOR >= 3
  return typename P::primitive_desc(engine, args..., attr);
#else
  return typename P::primitive_desc(typename P::desc(args...), attr, engine);
#endif
}

// Makes that of a backward primitive; `hint` is the forward primitive's.
template <typename P, typename H, typename... A>
typename P::primitive_desc backward_desc(const dnnl::engine &engine, const primitive_attr &attr, const H &hint,
                                         const A &...args) {
#if DNNL_VERSION_MAJOR >= 3
  return typename P::primitive_desc(engine, args..., hint, attr);
#else
  return typename P::primitive_desc(typename P::desc(args...), attr, engine, hint);
#endif
}

// Operations whose arguments differ: 3.x distinguishes destination and source, and pooling has a dilation.
inline dnnl::eltwise_forward::primitive_desc eltwise_desc(const dnnl::engine &engine, const primitive_attr &attr,
                                                          prop_kind kind, algorithm alg, const Desc &desc,
                                                          float alpha) {
#if DNNL_VERSION_MAJOR >= 3
  return forward_desc<dnnl::eltwise_forward>(engine, attr, kind, alg, desc, desc, alpha, 0.0f);
#else
  return forward_desc<dnnl::eltwise_forward>(engine, attr, kind, alg, desc, alpha, 0.0f);
#endif
}

// P is batch_normalization_forward or layer_normalization_forward.
template <typename P>
typename P::primitive_desc norm_desc(const dnnl::engine &engine, const primitive_attr &attr, prop_kind kind,
                                     const Desc &desc, float eps, dnnl::normalization_flags flags) {
#if DNNL_VERSION_MAJOR >= 3
  return forward_desc<P>(engine, attr, kind, desc, desc, eps, flags);
#else
  return forward_desc<P>(engine, attr, kind, desc, eps, flags);
#endif
}

template <typename P, typename H>
typename P::primitive_desc norm_backward_desc(const dnnl::engine &engine, const primitive_attr &attr, const H &hint,
                                              const Desc &diff, const Desc &desc, float eps,
                                              dnnl::normalization_flags flags) {
#if DNNL_VERSION_MAJOR >= 3
  return backward_desc<P>(engine, attr, hint, prop_kind::backward, diff, diff, desc, eps, flags);
#else
  return backward_desc<P>(engine, attr, hint, prop_kind::backward, diff, desc, eps, flags);
#endif
}

struct PoolWindow {
  Dims kernel, stride, pad_begin, pad_end;
};

inline dnnl::pooling_forward::primitive_desc pooling_desc(const dnnl::engine &engine, const primitive_attr &attr,
                                                          prop_kind kind, algorithm alg, const Desc &src,
                                                          const Desc &dst, const PoolWindow &w) {
#if DNNL_VERSION_MAJOR >= 3
  return forward_desc<dnnl::pooling_forward>(engine, attr, kind, alg, src, dst, w.stride, w.kernel,
                                             Dims(w.kernel.size(), 0), w.pad_begin, w.pad_end);
#else
  return forward_desc<dnnl::pooling_forward>(engine, attr, kind, alg, src, dst, w.stride, w.kernel, w.pad_begin,
                                             w.pad_end);
#endif
}

inline dnnl::pooling_backward::primitive_desc pooling_backward_desc(const dnnl::engine &engine,
                                                                    const primitive_attr &attr,
                                                                    const dnnl::pooling_forward::primitive_desc &hint,
                                                                    algorithm alg, const Desc &diff_src,
                                                                    const Desc &diff_dst, const PoolWindow &w) {
#if DNNL_VERSION_MAJOR >= 3
  return backward_desc<dnnl::pooling_backward>(engine, attr, hint, alg, diff_src, diff_dst, w.stride, w.kernel,
                                               Dims(w.kernel.size(), 0), w.pad_begin, w.pad_end);
#else
  return backward_desc<dnnl::pooling_backward>(engine, attr, hint, alg, diff_src, diff_dst, w.stride, w.kernel,
                                               w.pad_begin, w.pad_end);
#endif
}

inline void append_eltwise(dnnl::post_ops &post, algorithm alg, float alpha, float beta) {
#if DNNL_VERSION_MAJOR >= 3
  post.append_eltwise(alg, alpha, beta);
#else
  post.append_eltwise(1.0f, alg, alpha, beta);
#endif
}

#if DNNL_VERSION_MAJOR >= 3
constexpr algorithm kSoftRelu = algorithm::eltwise_soft_relu;
constexpr float kSoftReluAlpha = 1.0f;
#else
constexpr algorithm kSoftRelu = algorithm::eltwise_soft_relu;
constexpr float kSoftReluAlpha = 0.0f;  // 2.6 has no factor
#endif

// The memory layout of a descriptor.
struct Blocking {
  bool blocked;  // described by strides and inner blocks; false: opaque
  Dims dims, padded_dims, strides, inner_blocks, inner_axes;
  int64_t offset;
};

inline Blocking blocking_of(const Desc &desc) {
  Blocking b;
#if DNNL_VERSION_MAJOR >= 3
  b.blocked = desc.get_format_kind() == memory::format_kind::blocked;
  b.dims = desc.get_dims();
  b.padded_dims = desc.get_padded_dims();
  b.offset = desc.get_submemory_offset();
  if (b.blocked) {
    b.strides = desc.get_strides();
    b.inner_blocks = desc.get_inner_blks();
    b.inner_axes = desc.get_inner_idxs();
  }
#else
  const dnnl_memory_desc_t &data = desc.data;
  const auto rank = size_t(data.ndims);
  b.blocked = data.format_kind == dnnl_blocked;
  b.dims.assign(data.dims, data.dims + rank);
  b.padded_dims.assign(data.padded_dims, data.padded_dims + rank);
  b.offset = data.offset0;
  if (b.blocked) {
    const dnnl_blocking_desc_t &blocking = data.format_desc.blocking;
    const auto num_inner = size_t(blocking.inner_nblks);
    b.strides.assign(blocking.strides, blocking.strides + rank);
    b.inner_blocks.assign(blocking.inner_blks, blocking.inner_blks + num_inner);
    b.inner_axes.assign(blocking.inner_idxs, blocking.inner_idxs + num_inner);
  }
#endif
  return b;
}

inline memory::data_type type_in(const Desc &desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_data_type();
#else
  return desc.data_type();
#endif
}

// Whether a descriptor is empty (no scratchpad, no workspace).
inline bool is_empty(const Desc &desc) { return desc.get_size() == 0; }

}  // namespace cohort::dnn
