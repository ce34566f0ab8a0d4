// SPDX-License-Identifier: Apache-2.0
#include "op/update.hpp"

#include <algorithm>
#include <numeric>

namespace cohort {

namespace detail {

std::string FieldType<std::vector<float>>::print(const std::vector<float> &v) {
  std::string out = "[";
  for (size_t i = 0; i < v.size(); ++i) out += (i ? "," : "") + print_float(double(v[i]));
  return out + "]";
}

std::vector<float> FieldType<std::vector<float>>::parse(const std::string &name, const std::string &s) {
  std::vector<float> values;
  std::string number;
  for (const char c : s + ",") {
    if (c == ',') {
      if (number.find_first_not_of(" \t\n") != std::string::npos) values.push_back(float(parse_float(name, number)));
      number.clear();
    } else if (c != '(' && c != ')' && c != '[' && c != ']') {
      number += c;
    }
  }
  return values;
}

}  // namespace detail

UpdateNumbers<double> SgdAttrs::numbers() const {
  UpdateNumbers<double> n;
  n.lr = lr, n.wd = wd, n.rescale = rescale_grad, n.clip = clip_limit(clip_gradient);
  return n;
}

UpdateNumbers<double> SgdMomAttrs::numbers() const {
  UpdateNumbers<double> n;
  n.lr = lr, n.wd = wd, n.rescale = rescale_grad, n.clip = clip_limit(clip_gradient);
  n.momentum = momentum, n.wd_lh = wd_lh;
  return n;
}

UpdateNumbers<double> AdamAttrs::numbers() const {
  UpdateNumbers<double> n;
  n.lr = lr, n.wd = wd, n.rescale = rescale_grad, n.clip = clip_limit(clip_gradient);
  n.beta1 = beta1, n.beta2 = beta2, n.epsilon = epsilon;
  return n;
}

UpdateNumbers<double> AdamWAttrs::numbers() const {
  UpdateNumbers<double> n;
  n.lr = lr, n.wd = wd, n.clip = clip_limit(clip_gradient), n.eta = eta;
  n.beta1 = beta1, n.beta2 = beta2, n.epsilon = epsilon;
  return n;
}

UpdateNumbers<double> RmsPropAttrs::numbers() const {
  UpdateNumbers<double> n;
  n.lr = lr, n.wd = wd, n.rescale = rescale_grad, n.clip = clip_limit(clip_gradient);
  n.beta1 = gamma1, n.beta2 = gamma2, n.epsilon = epsilon, n.clip_weights = clip_limit(clip_weights);
  return n;
}

UpdateNumbers<double> AdagradAttrs::numbers() const {
  UpdateNumbers<double> n;
  n.lr = lr, n.wd = wd, n.rescale = rescale_grad, n.clip = clip_limit(clip_gradient), n.epsilon = epsilon;
  return n;
}

UpdateNumbers<double> FtrlAttrs::numbers() const {
  UpdateNumbers<double> n;
  n.lr = lr, n.wd = wd, n.rescale = rescale_grad, n.clip = clip_limit(clip_gradient), n.lamda1 = lamda1, n.beta = beta;
  return n;
}

UpdateNumbers<double> FtmlAttrs::numbers() const {
  UpdateNumbers<double> n;
  n.lr = lr, n.wd = wd, n.rescale = rescale_grad, n.clip = clip_limit(clip_grad);
  n.beta1 = beta1, n.beta2 = beta2, n.epsilon = epsilon;
  n.correction1 = 1 - std::pow(double(beta1), t), n.correction2 = 1 - std::pow(double(beta2), t);
  return n;
}

UpdateNumbers<double> LambPhase1Attrs::numbers() const {
  UpdateNumbers<double> n;
  n.wd = wd, n.rescale = rescale_grad, n.clip = clip_limit(clip_gradient);
  n.beta1 = beta1, n.beta2 = beta2, n.epsilon = epsilon;
  if (bias_correction) n.correction1 = 1 - std::pow(double(beta1), t), n.correction2 = 1 - std::pow(double(beta2), t);
  return n;
}

UpdateNumbers<double> LambPhase2Attrs::numbers() const {
  UpdateNumbers<double> n;
  n.lr = lr, n.lower = std::max(double(lower_bound), 0.0), n.upper = clip_limit(upper_bound);
  return n;
}

void infer_update_shape(Shapes &in, Shapes &out, size_t small) {
  Shape all;
  for (const Shape &s : out) unify(all, s, "output");
  for (size_t i = 0; i < in.size() && i < small; ++i) join(all, in[i], i);
  for (size_t i = 0; i < in.size(); ++i) unify(in[i], i < small ? all : Shape{1}, i);
  for (Shape &s : out) unify(s, all, "output");
}

void infer_update_dtype(Dtypes &in, Dtypes &out, Dtype rest) {
  Dtype all = out[0];
  for (size_t i = 0; i < in.size(); ++i) {
    if (all == Dtype::kNone && (i < 2 || rest == Dtype::kNone)) all = in[i];
  }
  for (size_t i = 0; i < in.size(); ++i) {
    const Dtype wanted = i < 2 || rest == Dtype::kNone ? all : rest;
    unify(in[i], wanted, i);
  }
  unify(out[0], all, "output");
}

namespace {

// `states` includes the master weight of an mp_ form.
template <typename A>
OpBuilder<A> single(const char *name, const char *doc, const std::vector<const char *> &states, bool master = false) {
  OpBuilder<A> op(name);
  op.doc(doc).input("weight", "The parameter.").input("grad", "The gradient of the weight.");
  std::vector<int> mutated;
  for (const char *state : states) {
    mutated.push_back(2 + int(mutated.size()));
    op.input(state, "A state of the parameter, changed in place.");
  }
  op.mutates(mutated)
      .inplace(0, 0)
      .infer_shape([](const A &, Shapes &in, Shapes &out) { infer_update_shape(in, out, in.size()); })
      .infer_dtype([master](const A &, Dtypes &in, Dtypes &out) {
        infer_update_dtype(in, out, master ? Dtype::kFloat32 : Dtype::kNone);
      });
  return op;
}

// Adds a last input that holds rescale_grad.
template <typename A>
OpBuilder<A> with_rescale(OpBuilder<A> op, Dtype states) {
  op.input("rescale_grad", "The scale of the gradient; if it is 0, infinite or NaN, nothing is changed.")
      .infer_shape([](const A &, Shapes &in, Shapes &out) { infer_update_shape(in, out, in.size() - 1); })
      .infer_dtype([states](const A &, Dtypes &in, Dtypes &out) {
        Dtypes others(in.begin(), in.end() - 1);
        infer_update_dtype(others, out, states);
        std::copy(others.begin(), others.end(), in.begin());
        unify(in.back(), Dtype::kFloat32, "rescale_grad");
      });
  return op;
}

template <typename A>
OpBuilder<A> with_lr(OpBuilder<A> op) {
  return op.required(&A::lr, "lr", "Learning rate.");
}
template <typename A>
OpBuilder<A> with_scale(OpBuilder<A> op) {
  return op.attr(&A::rescale_grad, "rescale_grad", 1.0f, "Scale of the gradient.")
      .attr(&A::clip_gradient, "clip_gradient", -1.0f,
            "Largest absolute value of a scaled gradient; below 0: no limit.");
}
template <typename A>
OpBuilder<A> with_decay(OpBuilder<A> op) {
  return op.attr(&A::wd, "wd", 0.0f, "Weight decay.");
}
template <typename A>
OpBuilder<A> with_momentum(OpBuilder<A> op) {
  return op.attr(&A::momentum, "momentum", 0.0f, "Decay of the momentum.");
}
template <typename A>
OpBuilder<A> with_betas(OpBuilder<A> op, float epsilon) {
  return op.attr(&A::beta1, "beta1", 0.9f, "Decay of the mean.")
      .attr(&A::beta2, "beta2", 0.999f, "Decay of the variance.")
      .attr(&A::epsilon, "epsilon", epsilon, "Added to the divisor, so that it is not 0.");
}
template <typename A>
void lazy(OpBuilder<A> op) {
  op.ignored("lazy_update", "boolean", "1", "Ignored: gradients are dense.");
}

OpBuilder<LambPhase2Attrs> lamb_phase2(const char *name, bool master) {
  OpBuilder<LambPhase2Attrs> op(name);
  op.doc("The second half of a LAMB update: the step along the direction, scaled by the norms.")
      .required(&LambPhase2Attrs::lr, "lr", "Learning rate.")
      .attr(&LambPhase2Attrs::lower_bound, "lower_bound", -1.0f, "Smallest norm of the weight; below 0: no limit.")
      .attr(&LambPhase2Attrs::upper_bound, "upper_bound", -1.0f, "Largest norm of the weight; below 0: no limit.")
      .input("weight", "The parameter.")
      .input("g", "The direction, of the first half.")
      .input("r1", "Norm of the weight, (1,).")
      .input("r2", "Norm of the direction, (1,).")
      .inplace(0, 0);
  if (master) op.input("weight32", "The parameter in float32, changed in place.").mutates({4});
  op.infer_shape([](const LambPhase2Attrs &, Shapes &in, Shapes &out) {
      Shape all;
      unify(all, out[0], "output");
      for (size_t i = 0; i < 2; ++i) join(all, in[i], i);
      for (size_t i = 0; i < in.size(); ++i) unify(in[i], i == 2 || i == 3 ? Shape{1} : all, i);
      unify(out[0], all, "output");
    }).infer_dtype([master](const LambPhase2Attrs &, Dtypes &in, Dtypes &out) {
    if (!master) return infer_same_dtype(Attrs(), in, out);
    for (size_t i = 1; i < in.size(); ++i) unify(in[i], Dtype::kFloat32, i);
    unify(out[0], in[0], "output");
    unify(in[0], out[0], "weight");
  });
  return op;
}

void define_lamb_phase1(const char *name, const std::vector<const char *> &states, bool master) {
  auto op = single<LambPhase1Attrs>(name, "The first half of a LAMB update: the direction.", states, master);
  with_betas(op, 1e-6f)
      .required(&LambPhase1Attrs::t, "t", "Number of this update, from 1.")
      .attr(&LambPhase1Attrs::bias_correction, "bias_correction", true, "Whether mean and variance are bias-corrected.")
      .required(&LambPhase1Attrs::wd, "wd", "Weight decay.");
  with_scale(op);
  if (master) {  // the direction is float32
    op.mutates({2, 3}).infer_dtype([](const LambPhase1Attrs &, Dtypes &in, Dtypes &out) {
      for (size_t i = 2; i < in.size(); ++i) unify(in[i], Dtype::kFloat32, "state");
      unify(in[0], in[1], "weight");
      unify(in[1], in[0], "grad");
      unify(out[0], Dtype::kFloat32, "output");
    });
  }
}

std::vector<int> first_inputs(int count) {
  std::vector<int> inputs(static_cast<size_t>(count));
  std::iota(inputs.begin(), inputs.end(), 0);
  return inputs;
}

[[maybe_unused]] const bool defined = [] {
  lazy(with_scale(
      with_decay(with_lr(single<SgdAttrs>("sgd_update", "w - lr (g + wd w)", {}).alias("_sparse_sgd_update")))));
  lazy(with_scale(with_decay(
      with_lr(single<SgdAttrs>("mp_sgd_update", "sgd_update on a weight in float32.", {"weight32"}, true)))));
  lazy(with_scale(with_decay(
      with_momentum(with_lr(single<SgdMomAttrs>("sgd_mom_update", "m = momentum m - lr (g + wd w); w + m", {"mom"})
                                .alias("_sparse_sgd_mom_update"))))));
  lazy(with_scale(with_decay(with_momentum(with_lr(single<SgdMomAttrs>(
      "mp_sgd_mom_update", "sgd_mom_update on a weight in float32.", {"mom", "weight32"}, true))))));
  with_scale(with_decay(with_momentum(with_lr(single<SgdMomAttrs>(
      "nag_mom_update", "Nesterov's: m = momentum m - lr (g + wd w); w + momentum m - lr (g + wd w)", {"mom"})))));
  with_scale(with_decay(with_momentum(with_lr(
      single<SgdMomAttrs>("mp_nag_mom_update", "nag_mom_update on a weight in float32.", {"mom", "weight32"}, true)))));
  with_scale(with_decay(with_lr(single<SgdAttrs>("signsgd_update", "(1 - lr wd) w - lr sign(g)", {}))));
  with_scale(
      with_decay(with_momentum(with_lr(single<SgdMomAttrs>(
          "signum_update", "m = momentum m - (1 - momentum) (g + wd w); (1 - lr wd_lh) w + lr sign(m)", {"mom"})))))
      .attr(&SgdMomAttrs::wd_lh, "wd_lh", 0.0f, "Weight decay separate from the gradient.");

  {
    auto op = single<AdamAttrs>("adam_update", "Adam: w - lr mean / (sqrt(var) + epsilon)", {"mean", "var"})
                  .alias("_sparse_adam_update")
                  .required(&AdamAttrs::lr, "lr", "Learning rate.");
    lazy(with_scale(with_decay(with_betas(op, 1e-8f))));
  }
  const auto adamw = [](OpBuilder<AdamWAttrs> op) {
    op.required(&AdamWAttrs::lr, "lr", "Learning rate.");
    with_decay(with_betas(op, 1e-8f))
        .required(&AdamWAttrs::eta, "eta", "Scale of both step and decay.")
        .attr(&AdamWAttrs::clip_gradient, "clip_gradient", -1.0f,
              "Largest absolute value of a scaled gradient; below 0: no limit.");
  };
  adamw(with_rescale(
      single<AdamWAttrs>("_adamw_update", "AdamW: w - eta (lr mean / (sqrt(var) + epsilon) + wd w)", {"mean", "var"}),
      Dtype::kNone));
  adamw(with_rescale(single<AdamWAttrs>("_mp_adamw_update", "_adamw_update on a weight in float32.",
                                        {"mean", "var", "weight32"}, true),
                     Dtype::kFloat32));

  const auto rmsprop = [](OpBuilder<RmsPropAttrs> op, bool centered) {
    op.required(&RmsPropAttrs::lr, "lr", "Learning rate.")
        .attr(&RmsPropAttrs::gamma1, "gamma1", 0.95f, "Decay of the mean square.");
    if (centered) op.attr(&RmsPropAttrs::gamma2, "gamma2", 0.9f, "Decay of the step.");
    op.attr(&RmsPropAttrs::epsilon, "epsilon", 1e-8f, "Added to the divisor, so that it is not 0.");
    with_scale(with_decay(op))
        .attr(&RmsPropAttrs::clip_weights, "clip_weights", -1.0f,
              "Largest absolute value of a weight; below 0: no limit.");
  };
  rmsprop(single<RmsPropAttrs>("rmsprop_update", "RMSProp: w - lr g / sqrt(n + epsilon)", {"n"}), false);
  rmsprop(single<RmsPropAttrs>("rmspropalex_update", "RMSProp, centered and with momentum.", {"n", "g", "delta"}),
          true);

  for (const char *name : {"_adagrad_update", "_sparse_adagrad_update"}) {
    auto op = single<AdagradAttrs>(name, "AdaGrad: h = h + g^2; w - lr (g / sqrt(h + epsilon) + wd w)", {"history"})
                  .required(&AdagradAttrs::lr, "lr", "Learning rate.")
                  .attr(&AdagradAttrs::epsilon, "epsilon", 1e-7f, "Added to the divisor, so that it is not 0.");
    with_scale(with_decay(op));
  }
  {
    OpBuilder<AdagradAttrs> op("_contrib_group_adagrad_update");
    op.doc("AdaGrad with one history value per row: h = h + mean(g^2); w - lr g / sqrt(h + epsilon)")
        .input("weight", "The parameter.")
        .input("grad", "The gradient of the weight.")
        .input("history", "One number per row, (rows, 1), changed in place.")
        .mutates({2})
        .inplace(0, 0)
        .required(&AdagradAttrs::lr, "lr", "Learning rate.")
        .infer_shape([](const AdagradAttrs &, Shapes &in, Shapes &out) {
          Shapes of_weight = {in[0], in[1]};
          infer_update_shape(of_weight, out, 2);
          in[0] = of_weight[0], in[1] = of_weight[1];
          if (!in[0].rank_known()) return;
          if (in[0].rank() == 0) throw Error(Code::kShape, "weight: expected at least one axis, found ()", "weight");
          unify(in[2], Shape{in[0][0], 1}, "history");
        });
    with_scale(op).attr(&AdagradAttrs::epsilon, "epsilon", 1e-5f, "Added to the divisor, so that it is not 0.");
  }
  {
    auto op = single<FtrlAttrs>("ftrl_update", "Follow the regularised leader.", {"z", "n"})
                  .alias("_sparse_ftrl_update")
                  .required(&FtrlAttrs::lr, "lr", "Learning rate.")
                  .attr(&FtrlAttrs::lamda1, "lamda1", 0.01f, "L1 regularisation.")
                  .attr(&FtrlAttrs::beta, "beta", 1.0f, "Smoothing term of the per-coordinate learning rate.");
    with_scale(with_decay(op));
  }
  single<FtmlAttrs>("ftml_update", "Follow the moving leader.", {"d", "v", "z"})
      .required(&FtmlAttrs::lr, "lr", "Learning rate.")
      .attr(&FtmlAttrs::beta1, "beta1", 0.6f, "Decay of the mean.")
      .attr(&FtmlAttrs::beta2, "beta2", 0.999f, "Decay of the variance.")
      .attr(&FtmlAttrs::epsilon, "epsilon", 1e-8f, "Added to the divisor, so that it is not 0.")
      .required(&FtmlAttrs::t, "t", "Number of this update, from 1.")
      .attr(&FtmlAttrs::wd, "wd", 0.0f, "Weight decay.")
      .attr(&FtmlAttrs::rescale_grad, "rescale_grad", 1.0f, "Scale of the gradient.")
      .attr(&FtmlAttrs::clip_grad, "clip_grad", -1.0f,
            "Largest absolute value of a scaled gradient; below 0: no limit.");

  define_lamb_phase1("lamb_update_phase1", {"mean", "var"}, false);
  define_lamb_phase1("mp_lamb_update_phase1", {"mean", "var", "weight32"}, true);
  lamb_phase2("lamb_update_phase2", false);
  lamb_phase2("mp_lamb_update_phase2", true);
  return true;
}();

struct MultiSumSqAttrs {};

COHORT_OPERATOR(multi_sum_sq, MultiSumSqAttrs)
    .doc("The sum of squares of each array.")
    .variadic("array_", "num_arrays", "Arrays of any shapes.")
    .infer_shape([](const MultiSumSqAttrs &, Shapes &in, Shapes &out) {
      unify(out[0], Shape{int64_t(in.size())}, "output");
    })
    .infer_dtype([](const MultiSumSqAttrs &, Dtypes &, Dtypes &out) { unify(out[0], Dtype::kFloat32, "output"); });

COHORT_OPERATOR(multi_lars, MultiLarsAttrs)
    .doc("Learning rates scaled by the norms of weights and gradients.")
    .required(&MultiLarsAttrs::eta, "eta", "Trust coefficient.")
    .required(&MultiLarsAttrs::eps, "eps", "Added to the divisor, so that it is not 0.")
    .attr(&MultiLarsAttrs::rescale_grad, "rescale_grad", 1.0f, "Scale of the gradients.")
    .input("lrs", "Learning rates.")
    .input("weights_sum_sq", "Sums of squares of the weights.")
    .input("grads_sum_sq", "Sums of squares of the gradients.")
    .input("wds", "Weight decays.")
    .same_shape()
    .inplace(0, 0);

COHORT_OPERATOR(all_finite, AllFiniteAttrs)
    .doc("1 if no element is infinite or NaN, else 0.")
    .attr(&AllFiniteAttrs::init_output, "init_output", true, "False: an output of 0 stays 0.")
    .input("data", "Any shape.")
    .names_only_input()
    .infer_shape([](const AllFiniteAttrs &, Shapes &, Shapes &out) { unify(out[0], Shape{1}, "output"); })
    .infer_dtype([](const AllFiniteAttrs &, Dtypes &, Dtypes &out) { unify(out[0], Dtype::kFloat32, "output"); });

COHORT_OPERATOR(multi_all_finite, AllFiniteAttrs)
    .doc("1 if no element of any array is infinite or NaN, else 0.")
    .attr(&AllFiniteAttrs::init_output, "init_output", true, "False: an output of 0 stays 0.")
    .variadic("array_", "num_arrays", "Arrays of any shapes.")
    .infer_shape([](const AllFiniteAttrs &, Shapes &, Shapes &out) { unify(out[0], Shape{1}, "output"); })
    .infer_dtype([](const AllFiniteAttrs &, Dtypes &, Dtypes &out) { unify(out[0], Dtype::kFloat32, "output"); });

struct ResetAttrs {
  int32_t num_arrays;
};

COHORT_OPERATOR(reset_arrays, ResetAttrs)
    .doc("Sets all elements of the arrays to 0.")
    .required(&ResetAttrs::num_arrays, "num_arrays", "The number of arrays.")
    .variadic("array", "num_arrays", "Arrays of any shapes, changed in place.")
    .outputs([](const ResetAttrs &) { return 0; })
    .mutates(first_inputs(4096))
    .infer_shape([](const ResetAttrs &, Shapes &, Shapes &) {})
    .infer_dtype([](const ResetAttrs &, Dtypes &, Dtypes &) {});

}  // namespace
}  // namespace cohort
