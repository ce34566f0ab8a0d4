// SPDX-License-Identifier: Apache-2.0
// Kernels of op/interleaved_attention.hpp. Each part of the projections is copied to (batch * heads, length, width)
// and multiplied there.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/attention_projections.hpp"
#include "kernels/backend.hpp"
#include "kernels/compute.hpp"

namespace cohort {
namespace {

using A = InterleavedAttentionAttrs;

template <typename Backend, typename C>
void multiply_by(const Lane &lane, C factor, int64_t count, C *x) {
  Backend::parallel_for(lane, count, Backend::kCheapGrain, [=] COHORT_DEVICE(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) x[i] *= factor;
  });
}

template <typename Backend, typename C>
class AttentionScores {
 public:
  explicit AttentionScores(const StepSpec &spec) : p_(spec.attrs_as<A>(), spec.inputs, 0) {}
  size_t extra() const { return size_t(p_.queries.size() + p_.keys.size()); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    C *const q = extra, *const k = extra + p_.queries.size();
    p_.queries.template move<Backend, C, false>(lane, in[0], q);
    p_.keys.template move<Backend, C, false>(lane, in[p_.joint ? 0 : 1], k);
    multiply_by<Backend>(lane, 1 / std::sqrt(C(p_.queries.width)), p_.queries.size(), q);
    Backend::batched_gemm(lane, p_.queries.count, false, true, p_.queries.length, p_.keys.length, p_.queries.width, q,
                          k, out[0]);
  }

 private:
  const ScoreProjections p_;
};

template <typename Backend, typename C>
class AttentionScoresBackward {
 public:
  explicit AttentionScoresBackward(const StepSpec &spec) : p_(spec.attrs_as<A>(), spec.inputs, 1) {}
  size_t extra() const { return size_t(2 * std::max(p_.queries.size(), p_.keys.size())); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const ProjectionPart &queries = p_.queries, &keys = p_.keys;
    C *const part = extra, *const gradient = extra + std::max(queries.size(), keys.size());
    C *const to_queries = out[0], *const to_keys = out[p_.joint ? 0 : 1];
    const C factor = 1 / std::sqrt(C(queries.width));
    if (to_keys) zero_bytes(lane, to_keys, size_t(keys.parts * keys.size()) * sizeof(C));
    if (to_queries) {
      keys.template move<Backend, C, false>(lane, in[p_.joint ? 1 : 2], part);
      multiply_by<Backend>(lane, factor, keys.size(), part);
      Backend::batched_gemm(lane, queries.count, false, false, queries.length, queries.width, keys.length, in[0], part,
                            gradient);
      queries.template move<Backend, C, true>(lane, gradient, to_queries);
    }
    if (to_keys) {
      queries.template move<Backend, C, false>(lane, in[1], part);
      multiply_by<Backend>(lane, factor, queries.size(), part);
      Backend::batched_gemm(lane, queries.count, true, false, keys.length, keys.width, queries.length, in[0], part,
                            gradient);
      keys.template move<Backend, C, true>(lane, gradient, to_keys);
    }
  }

 private:
  const ScoreProjections p_;
};

template <typename Backend, typename C>
class AttentionValues {
 public:
  explicit AttentionValues(const StepSpec &spec)
      : values_(values_of(spec.attrs_as<A>(), spec.inputs[0].shape)),
        result_(spec.outputs[0].shape, spec.attrs_as<A>().heads, 1, 0) {}
  size_t extra() const { return size_t(values_.size() + result_.size()); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    C *const v = extra, *const y = extra + values_.size();
    values_.template move<Backend, C, false>(lane, in[0], v);
    Backend::batched_gemm(lane, values_.count, false, false, result_.length, values_.width, values_.length, in[1], v,
                          y);
    result_.template move<Backend, C, true>(lane, y, out[0]);
  }

 private:
  const ProjectionPart values_, result_;
};

template <typename Backend, typename C>
class AttentionValuesBackward {
 public:
  explicit AttentionValuesBackward(const StepSpec &spec)
      : values_(values_of(spec.attrs_as<A>(), spec.inputs[1].shape)),
        result_(spec.inputs[0].shape, spec.attrs_as<A>().heads, 1, 0) {}
  size_t extra() const { return size_t(values_.size() + result_.size()); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    C *const v = extra, *const head = extra + values_.size();
    result_.template move<Backend, C, false>(lane, in[0], head);
    if (out[1]) {
      values_.template move<Backend, C, false>(lane, in[1], v);
      Backend::batched_gemm(lane, values_.count, false, true, result_.length, values_.length, values_.width, head, v,
                            out[1]);
    }
    if (!out[0]) return;
    Backend::batched_gemm(lane, values_.count, true, false, values_.length, values_.width, result_.length, in[2], head,
                          v);
    zero_bytes(lane, out[0], size_t(values_.parts * values_.size()) * sizeof(C));
    values_.template move<Backend, C, true>(lane, v, out[0]);
  }

 private:
  const ProjectionPart values_, result_;
};

template <typename Backend>
void register_interleaved_attention_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_contrib_interleaved_matmul_selfatt_qk", make_compute<Backend, AttentionScores>);
  table.add("_backward__contrib_interleaved_matmul_selfatt_qk", make_compute<Backend, AttentionScoresBackward>);
  table.add("_contrib_interleaved_matmul_encdec_qk", make_compute<Backend, AttentionScores>);
  table.add("_backward__contrib_interleaved_matmul_encdec_qk", make_compute<Backend, AttentionScoresBackward>);
  table.add("_contrib_interleaved_matmul_selfatt_valatt", make_compute<Backend, AttentionValues>);
  table.add("_backward__contrib_interleaved_matmul_selfatt_valatt", make_compute<Backend, AttentionValuesBackward>);
  table.add("_contrib_interleaved_matmul_encdec_valatt", make_compute<Backend, AttentionValues>);
  table.add("_backward__contrib_interleaved_matmul_encdec_valatt", make_compute<Backend, AttentionValuesBackward>);
}

}  // namespace
}  // namespace cohort
