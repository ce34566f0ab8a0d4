// SPDX-License-Identifier: Apache-2.0
// Attention on interleaved projections: products of matrices in place, one per head of each sequence, all in one call.
#include <cmath>

#include "cuda/op/cuda_backend.cuh"
#include "cuda/op/matrix_product.hpp"
#include "kernels/attention_projections.hpp"

namespace cohort {
namespace {

using A = InterleavedAttentionAttrs;

// Matrices (length, width), by count.
MatrixPlaces places_of(const ProjectionPart &part) {
  return {part.count * part.parts * part.width, part.parts * part.width};
}
int64_t first_of(const ProjectionPart &part) { return part.part * part.width; }  // element of the projections

// One product of the operator's arrays.
class ProductOfParts {
 public:
  struct Matrices {
    int array;  // by its place among the inputs, or the outputs
    int64_t first = 0;
    MatrixPlaces places{};
  };
  static Matrices part(int array, const ProjectionPart &of) { return {array, first_of(of), places_of(of)}; }

  ProductOfParts(StepSpec *spec, const ProductExtent &extent, const Matrices &a, const Matrices &b, const Matrices &c,
                 double factor)
      : a_(a),
        b_(b),
        c_(c),
        bytes_(dtype_size(spec->inputs[0].dtype)),
        product_({spec->inputs[0].dtype, *spec}, extent, {a.places, b.places, c.places}, factor) {
    spec->scratch_bytes = std::max(spec->scratch_bytes, product_.scratch_bytes());
  }
  void run(const Args &args, const Lane &lane) const {
    product_.run(lane, at(args.inputs, a_), at(args.inputs, b_), at(args.outputs, c_), nullptr, args.scratch);
  }

 private:
  char *at(void *const *arrays, const Matrices &m) const {
    return static_cast<char *>(arrays[m.array]) + size_t(m.first) * bytes_;
  }
  const Matrices a_, b_, c_;
  const size_t bytes_;
  MatrixProduct product_;
};

// Gradients that no product writes are 0.
class Attention : public Kernel {
 public:
  void run(const Args &args, const Lane &lane) const override {
    for (const Cleared &output : cleared_) zero_bytes(lane, args.outputs[output.index], output.bytes);
    for (const ProductOfParts &step : steps_) step.run(args, lane);
  }

 protected:
  void clear(const StepSpec &spec, int output) { cleared_.push_back({output, spec.outputs[size_t(output)].bytes()}); }
  std::vector<ProductOfParts> steps_;

 private:
  struct Cleared {
    int index;
    size_t bytes;
  };
  std::vector<Cleared> cleared_;
};

double score_factor(const ProjectionPart &queries) { return 1 / std::sqrt(double(queries.width)); }

class Scores final : public Attention {
 public:
  explicit Scores(StepSpec &spec) {
    const ScoreProjections p(spec.attrs_as<A>(), spec.inputs, 0);
    const ProjectionPart &q = p.queries, &k = p.keys;
    steps_.emplace_back(&spec, ProductExtent{q.count, q.length, k.length, q.width, false, true},
                        ProductOfParts::part(0, q), ProductOfParts::part(p.joint ? 0 : 1, k),
                        ProductOfParts::Matrices{0}, score_factor(q));
  }
};

// Inputs: head gradient, then those of the forward step.
class ScoresBackwardCuda final : public Attention {
 public:
  explicit ScoresBackwardCuda(StepSpec &spec) {
    const ScoreProjections p(spec.attrs_as<A>(), spec.inputs, 1);
    const ProjectionPart &q = p.queries, &k = p.keys;
    const int to_keys = p.joint ? 0 : 1;
    if (spec.wanted[size_t(to_keys)]) clear(spec, to_keys);
    if (spec.wanted[0]) {
      steps_.emplace_back(&spec, ProductExtent{q.count, q.length, q.width, k.length, false, false},
                          ProductOfParts::Matrices{0}, ProductOfParts::part(p.joint ? 1 : 2, k),
                          ProductOfParts::part(0, q), score_factor(q));
    }
    if (spec.wanted[size_t(to_keys)]) {
      steps_.emplace_back(&spec, ProductExtent{q.count, k.length, k.width, q.length, true, false},
                          ProductOfParts::Matrices{0}, ProductOfParts::part(1, q), ProductOfParts::part(to_keys, k),
                          score_factor(q));
    }
  }
};

class Values final : public Attention {
 public:
  explicit Values(StepSpec &spec) {
    const auto &a = spec.attrs_as<A>();
    const ProjectionPart v = values_of(a, spec.inputs[0].shape), y(spec.outputs[0].shape, a.heads, 1, 0);
    steps_.emplace_back(&spec, ProductExtent{v.count, y.length, v.width, v.length, false, false},
                        ProductOfParts::Matrices{1}, ProductOfParts::part(0, v), ProductOfParts::part(0, y), 1.0);
  }
};

// Inputs: head gradient, projections, attention.
class ValuesBackwardCuda final : public Attention {
 public:
  explicit ValuesBackwardCuda(StepSpec &spec) {
    const auto &a = spec.attrs_as<A>();
    const ProjectionPart v = values_of(a, spec.inputs[1].shape), y(spec.inputs[0].shape, a.heads, 1, 0);
    if (spec.wanted[1]) {
      steps_.emplace_back(&spec, ProductExtent{v.count, y.length, v.length, v.width, false, true},
                          ProductOfParts::part(0, y), ProductOfParts::part(1, v), ProductOfParts::Matrices{1}, 1.0);
    }
    if (!spec.wanted[0]) return;
    clear(spec, 0);
    steps_.emplace_back(&spec, ProductExtent{v.count, v.length, v.width, y.length, true, false},
                        ProductOfParts::Matrices{2}, ProductOfParts::part(0, y), ProductOfParts::part(0, v), 1.0);
  }
};

#define COHORT_ATTENTION(name, kernel) \
  COHORT_KERNEL(cuda, name, kernel).named("cublaslt").one_dtype(kFloatTypes).preference(1)

COHORT_ATTENTION(_contrib_interleaved_matmul_selfatt_qk, Scores);
COHORT_ATTENTION(_backward__contrib_interleaved_matmul_selfatt_qk, ScoresBackwardCuda);
COHORT_ATTENTION(_contrib_interleaved_matmul_encdec_qk, Scores);
COHORT_ATTENTION(_backward__contrib_interleaved_matmul_encdec_qk, ScoresBackwardCuda);
COHORT_ATTENTION(_contrib_interleaved_matmul_selfatt_valatt, Values);
COHORT_ATTENTION(_backward__contrib_interleaved_matmul_selfatt_valatt, ValuesBackwardCuda);
COHORT_ATTENTION(_contrib_interleaved_matmul_encdec_valatt, Values);
COHORT_ATTENTION(_backward__contrib_interleaved_matmul_encdec_valatt, ValuesBackwardCuda);

}  // namespace
}  // namespace cohort
