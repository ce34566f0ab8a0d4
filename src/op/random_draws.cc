// SPDX-License-Identifier: Apache-2.0
#include "op/random_draws.hpp"

#include "op/dtype_words.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

using A = DrawAttrs;

const DtypeWords kFloatWords = dtype_words({Dtype::kNone, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64});
const DtypeWords kIntegerWords = dtype_words({Dtype::kNone, Dtype::kInt32, Dtype::kInt64});

struct Parameter {
  const char *attr, *input, *doc;  // name as an attribute, and as an input
  float initial;
};

// A distribution with one or two parameters: a is the first, b the second.
struct Distribution {
  const char *name, *doc, *condition;
  bool (*fits)(double a, double b);
  std::vector<Parameter> parameters;
  bool counts = false;  // the first parameter, as an attribute, is an integer
};

// The graph determines the shape if it is empty or absent, and lengths of 0 or -1.
template <typename T>
void infer_drawn_shape(const T &a, Shapes &, Shapes &out) {
  if (!a.shape || a.shape->empty()) return;
  Shape shape(*a.shape);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] < -1) throw Error(Code::kShape, text("output: expected no negative lengths, found ", shape));
    if (shape[axis] == 0) shape[axis] = Shape::kUnknown;
  }
  unify(out[0], shape, "output");
}

void infer_drawn_dtype(const A &a, Dtypes &, Dtypes &out) {
  unify(out[0], a.dtype == Dtype::kNone ? Dtype::kFloat32 : a.dtype, "output");
}

// All parameters have one shape; the output's shape is that followed by the attribute's.
void infer_sampled_shape(const A &a, Shapes &in, Shapes &out) {
  const Tuple more = a.shape.value_or(Tuple());
  Shape all;
  for (const Shape &s : in) unify(all, s, "parameter");
  if (out[0].rank_known() && out[0].rank() >= int(more.size())) {
    unify(all, Shape(std::vector<int64_t>(out[0].begin(), out[0].end() - int(more.size()))), "parameter");
  }
  for (Shape &s : in) unify(s, all, "parameter");
  if (!all.rank_known()) return;
  std::vector<int64_t> lengths(all.begin(), all.end());
  lengths.insert(lengths.end(), more.begin(), more.end());
  unify(out[0], Shape(lengths), "output");
}

void infer_sampled_dtype(const A &a, Dtypes &in, Dtypes &out) {
  Dtype all = Dtype::kNone;
  for (const Dtype &t : in) unify(all, t, "parameter");
  for (Dtype &t : in) unify(t, all, "parameter");
  infer_drawn_dtype(a, in, out);
}

void add_parameters(OpBuilder<A> &op, const Distribution &d) {
  const auto parameter = [&](int i, float A::*field) {
    op.attr(field, d.parameters[size_t(i)].attr, d.parameters[size_t(i)].initial, d.parameters[size_t(i)].doc);
  };
  if (d.counts) {
    op.attr(&A::k, d.parameters[0].attr, int32_t(d.parameters[0].initial), d.parameters[0].doc);
  } else {
    parameter(0, &A::a);
  }
  if (d.parameters.size() > 1) parameter(1, &A::b);
  op.check([d](A &a) {
    if (d.counts) a.a = float(a.k);
    if (d.fits(double(a.a), double(a.b))) return;
    const std::string first = d.parameters[0].attr;
    if (d.parameters.size() == 1) {
      throw Error(Code::kInvalidArgument, text("attribute '", first, "': expected ", d.condition, ", found ", a.a),
                  first);
    }
    throw Error(Code::kInvalidArgument,
                text("attributes '", first, "' and '", d.parameters[1].attr, "': expected ", d.condition, ", found ",
                     a.a, " and ", a.b),
                first);
  });
}

OpBuilder<A> drawn(const std::string &name, const std::string &doc) {
  OpBuilder<A> op(name.c_str());
  op.doc(doc.c_str()).random();
  return op;
}

OpBuilder<A> &with_shape(OpBuilder<A> &op, bool is_none, const char *doc) {
  if (is_none) {
    op.attr(&A::shape, "shape", std::nullopt, doc);
  } else {
    op.attr(&A::shape, "shape", Tuple(), doc);
  }
  return op.shown_as("Shape(tuple)");
}

OpBuilder<A> &with_dtype(OpBuilder<A> &op) {
  return op.choice(&A::dtype, "dtype", kFloatWords, Dtype::kNone, "The type; None: float32.")
      .shown_as("{'None', 'float16', 'float32', 'float64'}");
}

void define(const Distribution &d) {
  const std::string name = d.name, doc = std::string("Random numbers of ") + d.doc;
  auto plain = drawn("_random_" + name, doc + ".");
  plain.alias(("random_" + name).c_str());
  if (name == "uniform" || name == "normal") plain.alias(d.name);
  add_parameters(plain, d);
  with_shape(plain, true, "The shape; lengths of 0 are inferred from the graph.")
      .ignored("ctx", "string", "''", "Ignored: the array is created on the caller's context.");
  with_dtype(plain).infer_shape(infer_drawn_shape<A>).infer_dtype(infer_drawn_dtype);

  auto like = drawn("_random_" + name + "_like", doc + ", in the shape and type of data.");
  add_parameters(like, d);
  like.input("data", "Only its shape and type are used.").same_shape().same_float();

  auto sample = drawn("_sample_" + name, doc +
                                             ", drawn for each element of the parameters. NaN where the parameters are "
                                             "invalid.");
  sample.alias(("sample_" + name).c_str()).names_only_input();
  for (const Parameter &p : d.parameters) sample.input(p.input, p.doc);
  with_shape(sample, false, "Shape of the draws for each element, appended to the shape of the parameters.")
      .check([](A &a) {
        for (int64_t length : *a.shape) {
          if (length < 1) {
            throw Error(Code::kInvalidArgument,
                        text("attribute 'shape': expected positive lengths, found ", print_tuple(*a.shape)), "shape");
          }
        }
      });
  with_dtype(sample).infer_shape(infer_sampled_shape).infer_dtype(infer_sampled_dtype);
}

[[maybe_unused]] const bool defined = [] {
  define({"uniform",
          "the interval from low to high, excluding high",
          "low <= high",
          draw::Uniform::fits,
          {{"low", "low", "The lower end of the interval.", 0},
           {"high", "high", "The upper end of the interval, excluded.", 1}}});
  define({"normal",
          "a normal distribution",
          "scale of at least 0",
          draw::Normal::fits,
          {{"loc", "mu", "The mean.", 0}, {"scale", "sigma", "The standard deviation.", 1}}});
  define({"exponential",
          "an exponential distribution",
          "a number above 0",
          draw::Exponential::fits,
          {{"lam", "lam", "The rate: the mean is 1 / lam.", 1}}});
  define({"gamma",
          "a gamma distribution",
          "alpha and beta above 0",
          draw::Gamma::fits,
          {{"alpha", "alpha", "The shape.", 1}, {"beta", "beta", "The scale: the mean is alpha beta.", 1}}});
  define({"poisson",
          "a Poisson distribution",
          "a number of at least 0",
          draw::Poisson::fits,
          {{"lam", "lam", "The mean.", 1}}});
  define({"negative_binomial",
          "a negative binomial distribution",
          "k of at least 0, and p above 0 and at most 1",
          draw::NegativeBinomial::fits,
          {{"k", "k", "The number of successes until which failures are counted.", 1},
           {"p", "p", "The probability of a success.", 1}},
          true});
  define({"generalized_negative_binomial",
          "a negative binomial distribution",
          "mu and alpha of at least 0",
          draw::GeneralizedNegativeBinomial::fits,
          {{"mu", "mu", "The mean.", 1}, {"alpha", "alpha", "The dispersion: the variance is mu + alpha mu^2.", 1}}});
  return true;
}();

COHORT_OPERATOR(_random_randint, RandintAttrs)
    .alias("random_randint")
    .alias("_npi_random_randint")
    .doc("Uniformly distributed random integers from low to high, excluding high.")
    .required(&RandintAttrs::low, "low", "The smallest number.")
    .required(&RandintAttrs::high, "high", "The end of the interval, excluded.")
    .attr(&RandintAttrs::shape, "shape", std::nullopt, "The shape; lengths of 0 are inferred from the graph.")
    .shown_as("Shape(tuple)")
    .ignored("ctx", "string", "''", "Ignored: the array is created on the caller's context.")
    .choice(&RandintAttrs::dtype, "dtype", kIntegerWords, Dtype::kNone, "The type; None: int32.")
    .shown_as("{'None', 'int32', 'int64'}")
    .check([](RandintAttrs &a) {
      if (a.low >= a.high) {
        throw Error(Code::kInvalidArgument,
                    text("attribute 'low': expected less than high = ", a.high, ", found ", a.low), "low");
      }
      if (a.dtype != Dtype::kInt64 && (a.low < INT32_MIN || a.high - 1 > INT32_MAX)) {
        throw Error(Code::kInvalidArgument,
                    text("attributes 'low' and 'high': expected the range of int32, found ", a.low, " and ", a.high),
                    a.low < INT32_MIN ? "low" : "high");
      }
    })
    .infer_shape(infer_drawn_shape<RandintAttrs>)
    .infer_dtype([](const RandintAttrs &a, Dtypes &, Dtypes &out) {
      unify(out[0], a.dtype == Dtype::kNone ? Dtype::kInt32 : a.dtype, "output");
    })
    .random();

}  // namespace
}  // namespace cohort
