// SPDX-License-Identifier: Apache-2.0
// Parameter updates: operators that return the new weight and change their states in place. Their kernels read the
// numbers of a run from Args::numbers, an UpdateNumbers<double>, if given (by an optimizer, whose numbers change
// between steps), otherwise from these attributes. Numbers given as inputs take precedence over both.
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

// For clip_gradient and similar: a negative value means no limit.
inline double clip_limit(float value) { return value < 0 ? INFINITY : double(value); }

struct OptimizerAttrs {  // for kernels that only optimizers run, which pass the numbers
  UpdateNumbers<double> numbers() const { return {}; }
};

struct SgdAttrs {  // sgd_update, mp_sgd_update, signsgd_update
  float lr, wd, rescale_grad, clip_gradient;
  UpdateNumbers<double> numbers() const;
};

struct SgdMomAttrs {  // sgd_mom_update, nag_mom_update, signum_update and the mp_ forms
  float lr, momentum, wd, rescale_grad, clip_gradient;
  float wd_lh;  // signum: weight decay separate from the gradient
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
  bool init_output;  // false: an output that is 0 stays 0
  int32_t num_arrays;
};

// Shape inference of updates: all inputs and outputs have the weight's shape, except inputs from number `small` on,
// which have shape (1,).
void infer_update_shape(Shapes &in, Shapes &out, size_t small);
// Weight, gradient and output have one type; the other inputs have type `rest`, or the same one for kNone.
void infer_update_dtype(Dtypes &in, Dtypes &out, Dtype rest);

}  // namespace cohort
