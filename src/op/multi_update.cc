// SPDX-License-Identifier: Apache-2.0
#include "op/multi_update.hpp"

#include <algorithm>
#include <cmath>

namespace cohort {

UpdateNumbers<double> MultiUpdateAttrs::numbers(size_t weight) const {
  UpdateNumbers<double> n;
  if (!preloaded) n.lr = lrs[weight], n.wd = wds[weight];
  if (!etas.empty()) n.eta = etas[weight];
  n.momentum = momentum, n.beta1 = beta1, n.beta2 = beta2, n.epsilon = epsilon;
  n.rescale = rescale_grad, n.clip = clip_limit(clip_gradient);
  if (step_count.empty()) return n;
  n.lower = std::max(double(lower_bound), 0.0), n.upper = clip_limit(upper_bound);
  if (bias_correction) {
    n.correction1 = 1 - std::pow(double(beta1), double(step_count[weight]));
    n.correction2 = 1 - std::pow(double(beta2), double(step_count[weight]));
  }
  return n;
}

namespace {

using A = MultiUpdateAttrs;

constexpr int kMostWeights = 4096;

// The inputs that an operator has for each weight, and the common ones after those.
struct Form {
  int num_states;
  bool master = false;     // a float32 copy of the weight follows the states
  bool preloaded = false;  // learning rates and decays are inputs, (weights,) each
  bool rescale = false;    // the scale of the gradients is an input, (1,)

  int per_weight() const { return 2 + num_states + (master ? 1 : 0); }
  int extra() const { return (preloaded ? 2 : 0) + (rescale ? 1 : 0); }
  std::string input_name(int index, int count) const {
    const int first_extra = count - extra(), place = index % per_weight();
    if (index >= first_extra) return rescale ? "rescale_grad" : index == first_extra ? "lrs" : "wds";
    const bool is_master = master && place + 1 == per_weight();
    const char *const state = is_master ? "weight32" : num_states == 1 ? "mom" : place == 2 ? "mean" : "var";
    return text(place == 0 ? "weight" : place == 1 ? "grad" : state, '_', index / per_weight());
  }
};

template <typename T>
void check_list(const std::vector<T> &list, int32_t wanted, const char *name) {
  if (int64_t(list.size()) == wanted) return;
  throw Error(Code::kInvalidArgument,
              text("attribute '", name, "': expected ", wanted, " numbers, one for each weight, found ", list.size()),
              name);
}

void infer_shapes(const Form &form, const A &a, Shapes &in, Shapes &out) {
  const std::ptrdiff_t per = form.per_weight();
  if (int64_t(in.size()) != per * a.num_weights + form.extra()) {
    throw Error(Code::kShape,
                text("expected ", per, " inputs for each of ", a.num_weights, " weights",
                     form.extra() > 0 ? text(" and ", form.extra(), " more") : "", ", found ", in.size()));
  }
  for (size_t w = 0; w < out.size(); ++w) {
    const auto first = in.begin() + std::ptrdiff_t(w) * per;
    Shapes one(first, first + per), result = {out[w]};
    infer_update_shape(one, result, one.size());
    std::copy(one.begin(), one.end(), first);
    out[w] = result[0];
  }
  const int64_t length = form.preloaded ? a.num_weights : 1;
  for (size_t i = in.size() - size_t(form.extra()); i < in.size(); ++i) unify(in[i], Shape{length}, "numbers");
}

void infer_dtypes(const Form &form, const A &a, Dtypes &in, Dtypes &out) {
  const std::ptrdiff_t per = form.per_weight();
  if (int64_t(in.size()) != per * a.num_weights + form.extra()) return;
  for (size_t w = 0; w < out.size(); ++w) {
    const auto first = in.begin() + std::ptrdiff_t(w) * per;
    Dtypes one(first, first + per), result = {out[w]};
    infer_update_dtype(one, result, form.master ? Dtype::kFloat32 : Dtype::kNone);
    std::copy(one.begin(), one.end(), first);
    out[w] = result[0];
  }
  for (size_t i = in.size() - size_t(form.extra()); i < in.size(); ++i) unify(in[i], Dtype::kFloat32, "numbers");
}

OpBuilder<A> multi(const char *name, const char *doc, const Form &form) {
  OpBuilder<A> op(name);
  std::vector<int> mutated;
  for (int i = 0; i < kMostWeights; ++i) {
    for (int k = 2; k < form.per_weight(); ++k) mutated.push_back(i * form.per_weight() + k);
  }
  op.doc(doc)
      .variadic("data", kNumInputsAttr, "For each weight: weight, gradient, states; then the numbers given as arrays.")
      .input_names([form](const A &, int index, int count) { return form.input_name(index, count); })
      .outputs([](const A &a) { return int(a.num_weights); })
      .mutates(mutated)
      .infer_shape([form](const A &a, Shapes &in, Shapes &out) { infer_shapes(form, a, in, out); })
      .infer_dtype([form](const A &a, Dtypes &in, Dtypes &out) { infer_dtypes(form, a, in, out); });
  return op;
}

// Shared attributes. Each operator adds them in MXNet's order, since attributes may be given by position.
void learning_rates(OpBuilder<A> &op, const char *name = "lrs") { op.required(&A::lrs, name, "Learning rates."); }
void decays(OpBuilder<A> &op) { op.required(&A::wds, "wds", "Weight decays."); }
void betas(OpBuilder<A> &op, float epsilon) {
  op.attr(&A::beta1, "beta1", 0.9f, "Decay of the mean.")
      .attr(&A::beta2, "beta2", 0.999f, "Decay of the variance.")
      .attr(&A::epsilon, "epsilon", epsilon, "Added to the divisor, so that it is not 0.");
}
void rescale_grad(OpBuilder<A> &op) { op.attr(&A::rescale_grad, "rescale_grad", 1.0f, "Scale of the gradients."); }
void clip_gradient(OpBuilder<A> &op) {
  op.attr(&A::clip_gradient, "clip_gradient", -1.0f, "Largest absolute value of a scaled gradient; below 0: no limit.");
}
void count(OpBuilder<A> &op, const char *name = "num_weights") {
  op.attr(&A::num_weights, name, 1, "The number of weights.").range(1, kMostWeights);
}

void sgd(const char *name, const char *doc, const Form &form) {
  auto op = multi(name, doc, form);
  if (!form.preloaded) {
    learning_rates(op);
    decays(op);
  }
  if (form.num_states > 0) op.attr(&A::momentum, "momentum", 0.0f, "Decay of the momentum.");
  rescale_grad(op);
  clip_gradient(op);
  count(op);
  op.check([form](A &a) {
    a.preloaded = form.preloaded;
    if (form.preloaded) return;
    check_list(a.lrs, a.num_weights, "lrs");
    check_list(a.wds, a.num_weights, "wds");
  });
}

void adamw(const char *name, const char *doc, bool master) {
  Form form{2, master};
  form.rescale = true;
  auto op = multi(name, doc, form);
  learning_rates(op);
  betas(op, 1e-8f);
  decays(op);
  op.required(&A::etas, "etas", "Scales of both step and decay.");
  clip_gradient(op);
  count(op);
  op.check([](A &a) {
    check_list(a.lrs, a.num_weights, "lrs");
    check_list(a.wds, a.num_weights, "wds");
    check_list(a.etas, a.num_weights, "etas");
  });
}

void lamb(const char *name, const char *doc, bool master) {
  auto op = multi(name, doc, Form{2, master});
  learning_rates(op, "learning_rates");
  betas(op, 1e-6f);
  decays(op);
  rescale_grad(op);
  op.attr(&A::lower_bound, "lower_bound", -1.0f, "Smallest norm of a weight; below 0: no limit.")
      .attr(&A::upper_bound, "upper_bound", -1.0f, "Largest norm of a weight; below 0: no limit.");
  clip_gradient(op);
  op.attr(&A::bias_correction, "bias_correction", true, "Whether mean and variance are bias-corrected.")
      .required(&A::step_count, "step_count", "Number of this update for each weight, from 1.");
  count(op, "num_tensors");
  op.check([](A &a) {
    check_list(a.lrs, a.num_weights, "learning_rates");
    check_list(a.wds, a.num_weights, "wds");
    check_list(a.step_count, a.num_weights, "step_count");
  });
}

[[maybe_unused]] const bool defined = [] {
  sgd("multi_sgd_update", "sgd_update of several weights.", {0});
  sgd("multi_sgd_mom_update", "sgd_mom_update of several weights.", {1});
  sgd("multi_mp_sgd_update", "mp_sgd_update of several weights.", {0, true});
  sgd("multi_mp_sgd_mom_update", "mp_sgd_mom_update of several weights.", {1, true});
  sgd("preloaded_multi_sgd_update", "multi_sgd_update with arrays of rates and decays.", {0, false, true});
  sgd("preloaded_multi_sgd_mom_update", "multi_sgd_mom_update with arrays of rates and decays.", {1, false, true});
  sgd("preloaded_multi_mp_sgd_update", "multi_mp_sgd_update with arrays of rates and decays.", {0, true, true});
  sgd("preloaded_multi_mp_sgd_mom_update", "multi_mp_sgd_mom_update with arrays of rates and decays.", {1, true, true});
  adamw("_multi_adamw_update", "_adamw_update of several weights.", false);
  adamw("_multi_mp_adamw_update", "_mp_adamw_update of several weights.", true);
  lamb("_multi_lamb_update", "Both halves of a LAMB update of several weights.", false);
  lamb("_multi_mp_lamb_update", "_multi_lamb_update on weights in float32.", true);
  return true;
}();

}  // namespace
}  // namespace cohort
