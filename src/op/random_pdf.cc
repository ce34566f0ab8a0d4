// SPDX-License-Identifier: Apache-2.0
#include "op/random_pdf.hpp"

namespace cohort {
namespace {

// The parameters' shape is a prefix of the samples' shape. With `own` 1, the last axis belongs to a single sample and
// its parameters, as for Dirichlet.
void infer_pdf(Shapes &in, Shapes &out, int own) {
  Shape parameters;
  for (size_t i = 1; i < in.size(); ++i) unify(parameters, in[i], "parameter");
  for (size_t i = 1; i < in.size(); ++i) unify(in[i], parameters, "parameter");
  if (own == 0) {
    unify(in[0], out[0], "sample");
    unify(out[0], in[0], "output");
  }
  if (!in[0].rank_known()) return;
  const int rank = in[0].rank();
  if (rank < own) throw Error(Code::kShape, text("sample: expected at least one axis, found ", in[0]), "sample");
  if (own == 1) {
    Shape result(in[0].begin(), in[0].end() - 1);
    unify(out[0], rank == 1 ? Shape{1} : result, "output");
  }
  if (!parameters.rank_known()) return;
  if (parameters.rank() > rank || parameters.rank() < own) {
    throw Error(
        Code::kShape,
        text("sample: expected a shape that begins with the shape of the parameters, ", parameters, ", found ", in[0]),
        "sample");
  }
  // Infers common lengths in both directions.
  Shape head(in[0].begin(), in[0].begin() + parameters.rank());
  if (own == 1) head[parameters.rank() - 1] = in[0][rank - 1];
  unify(parameters, head, "parameter");
  for (size_t i = 1; i < in.size(); ++i) unify(in[i], parameters, "parameter");
  for (int axis = 0; axis < parameters.rank() - own; ++axis) in[0][axis] = parameters[axis];
  if (own == 1) in[0][rank - 1] = parameters[parameters.rank() - 1];
}

void define(const std::string &name, const char *what, const std::vector<std::pair<const char *, const char *>> &inputs,
            int own = 0) {
  const std::string doc = std::string(what) + " at each sample, or its logarithm.";
  OpBuilder<PdfAttrs> op(("_random_pdf_" + name).c_str());
  op.alias(("random_pdf_" + name).c_str())
      .doc(doc.c_str())
      .attr(&PdfAttrs::is_log, "is_log", false, "Whether to return the logarithm.")
      .input("sample", "Samples; their shape starts with that of the parameters, and may have further axes.");
  std::vector<int> all = {0};
  for (const auto &[input, meaning] : inputs) {
    all.push_back(int(all.size()));
    op.input(input, meaning);
  }
  op.infer_shape([own](const PdfAttrs &, Shapes &in, Shapes &out) { infer_pdf(in, out, own); })
      .same_float()
      .gradient(Gradient::by_kernel(all, all));
}

[[maybe_unused]] const bool defined = [] {
  define("uniform", "The density of a uniform distribution",
         {{"low", "The lower end of the interval."}, {"high", "The upper end of the interval."}});
  define("normal", "The density of a normal distribution", {{"mu", "The mean."}, {"sigma", "The standard deviation."}});
  define("gamma", "The density of a gamma distribution",
         {{"alpha", "The shape."}, {"beta", "The rate: the mean is alpha / beta."}});
  define("exponential", "The density of an exponential distribution", {{"lam", "The rate: the mean is 1 / lam."}});
  define("poisson", "The probability in a Poisson distribution", {{"lam", "The mean."}});
  define("negative_binomial", "The probability in a negative binomial distribution",
         {{"k", "The number of successes until which failures are counted."}, {"p", "The probability of a success."}});
  define("generalized_negative_binomial", "The probability in a negative binomial distribution",
         {{"mu", "The mean."}, {"alpha", "The dispersion: the variance is mu + alpha mu^2."}});
  define("dirichlet", "The density of a Dirichlet distribution, whose samples lie along the last axis",
         {{"alpha", "The concentrations, along the last axis."}}, 1);
  return true;
}();

}  // namespace
}  // namespace cohort
