// SPDX-License-Identifier: Apache-2.0
// Updates of parameters: operators that give the new weight and change their states in place. Their kernels take the
// numbers of a run from Args::numbers, an UpdateNumbers<double>, where it is given (by an optimizer, whose numbers
// change from step to step), and else from these attributes; then, where an input holds a number, from there.
#pragma once

#include "op/op.hpp"
#include "op/update_math.hpp"

namespace cohort {

namespace detail {
template <>
struct FieldType<std::vector<float>> {  // lrs=(0.1, 0.2)
  static std::string type() { return "tuple of <float>"; }
  static std::string print(const std::vector<float> &v);
  static std::vector<float> parse(const std::string &name, const std::string &s);
};
}  // namespace detail

// clip_gradient and the like: below 0 means no limit.
inline double clip_limit(float value) { return value < 0 ? INFINITY : double(value); }

struct OptimizerAttrs {  // of kernels that optimizers alone run, which bring their numbers
  UpdateNumbers<double> numbers() const { return {}; }
};

struct SgdAttrs {  // sgd_update, mp_sgd_update, signsgd_update
  float lr, wd, rescale_grad, clip_gradient;
  UpdateNumbers<double> numbers() const;
};

struct SgdMomAttrs {  // sgd_mom_update, nag_mom_update, signum_update and the mp_ forms
  float lr, momentum, wd, rescale_grad, clip_gradient;
  float wd_lh;  // signum: decay apart from the gradient
  UpdateNumbers<double> numbers() const;
};

struct AdamAttrs {
  float lr, beta1, beta2, epsilon, wd, rescale_grad, clip_gradient;
  UpdateNumbers<double> numbers() const;
};

struct AdamWAttrs {  // rescale_grad is an input
  float lr, beta1, beta2, epsilon, wd, eta, clip_gradient;
  UpdateNumbers<double> numbers() const;
};

struct RmsPropAttrs {  // rmsprop_update, rmspropalex_update
  float lr, gamma1, gamma2, epsilon, wd, rescale_grad, clip_gradient, clip_weights;
  UpdateNumbers<double> numbers() const;
};

struct AdagradAttrs {  // _adagrad_update, _sparse_adagrad_update
  float lr, epsilon, wd, rescale_grad, clip_gradient;
  UpdateNumbers<double> numbers() const;
};

struct FtrlAttrs {
  float lr, lamda1, beta, wd, rescale_grad, clip_gradient;
  UpdateNumbers<double> numbers() const;
};

struct FtmlAttrs {
  float lr, beta1, beta2;
  double epsilon;
  int32_t t;
  float wd, rescale_grad, clip_grad;
  UpdateNumbers<double> numbers() const;
};

struct LambPhase1Attrs {
  float beta1, beta2, epsilon;
  int32_t t;
  bool bias_correction;
  float wd, rescale_grad, clip_gradient;
  UpdateNumbers<double> numbers() const;
};

struct LambPhase2Attrs {
  float lr, lower_bound, upper_bound;
  UpdateNumbers<double> numbers() const;
};

struct MultiLarsAttrs {
  float eta, eps, rescale_grad;
};

struct AllFiniteAttrs {
  bool init_output;  // false: the output stays 0 where it was
  int32_t num_arrays;
};

// For inference of updates. All inputs and outputs have the shape of the weight, but those from `small` on, which have
// shape (1,).
void infer_update_shape(Shapes &in, Shapes &out, size_t small);
// weight, gradient and output of one type; the other inputs of `rest`, kNone for the same one.
void infer_update_dtype(Dtypes &in, Dtypes &out, Dtype rest);

}  // namespace cohort
