// SPDX-License-Identifier: Apache-2.0
#include "op/random_choice.hpp"

#include "op/dtype_words.hpp"

namespace cohort {
namespace {

void check_lengths(const Tuple &shape) {
  for (int64_t length : shape) {
    if (length < 1) {
      throw Error(Code::kInvalidArgument,
                  text("attribute 'shape': expected positive lengths, found ", print_tuple(shape)), "shape");
    }
  }
}

void infer_chosen(const MultinomialAttrs &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known()) return;
  if (in[0].rank() < 1 || in[0][in[0].rank() - 1] == 0) {
    throw Error(Code::kShape, text("data: expected probabilities along the last axis, found ", in[0]), "data");
  }
  std::vector<int64_t> lengths(in[0].begin(), in[0].end() - 1);
  lengths.insert(lengths.end(), a.shape.begin(), a.shape.end());
  if (lengths.empty()) lengths.push_back(1);
  for (Shape &s : out) unify(s, Shape(lengths), "output");
}

COHORT_OPERATOR(_sample_multinomial, MultinomialAttrs)
    .alias("sample_multinomial")
    .doc("Draws class indices with the given probabilities, and optionally returns their log probabilities.")
    .attr(&MultinomialAttrs::shape, "shape", Tuple(),
          "Shape of the draws for each row, appended to the shape of the rows.")
    .attr(&MultinomialAttrs::get_prob, "get_prob", false, "Whether to return the log probabilities as second output.")
    .choice(&MultinomialAttrs::dtype, "dtype",
            dtype_words({Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kUint8}),
            Dtype::kInt32, "The type of the indices.")
    .input("data",
           "Probabilities of classes 0, 1, ... along the last axis. If they sum to less than 1, the last class gets "
           "the rest.")
    .check([](MultinomialAttrs &a) { check_lengths(a.shape); })
    .outputs([](const MultinomialAttrs &a) { return a.get_prob ? 2 : 1; })
    .infer_shape(infer_chosen)
    .infer_dtype([](const MultinomialAttrs &a, Dtypes &in, Dtypes &out) {
      unify(out[0], a.dtype, "output");
      if (!a.get_prob) return;
      unify(in[0], out[1], "data");
      unify(out[1], in[0], "output1");
    })
    .gradient([](const MultinomialAttrs &a) { return a.get_prob ? Gradient::by_kernel({0}, {0}, {0}) : Gradient(); })
    .random();

COHORT_OPERATOR(_shuffle, NoAttrs)
    .alias("shuffle")
    .alias("_npi_shuffle")
    .doc("Shuffles data along the first axis; all orders are equally likely.")
    .input("data", "At least one axis.")
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      infer_same_shape(Attrs(), in, out);
      if (in[0].rank_known() && in[0].rank() == 0) {
        throw Error(Code::kShape, text("data: expected at least one axis, found ", in[0]), "data");
      }
    })
    .random();

COHORT_OPERATOR(_sample_unique_zipfian, ZipfianAttrs)
    .doc(
        "Draws distinct numbers for each row, n with probability log((n + 2) / (n + 1)) / log(range_max + 1), and "
        "returns "
        "the number of draws needed.")
    .required(&ZipfianAttrs::range_max, "range_max", "The numbers are below this.")
    .attr(&ZipfianAttrs::shape, "shape", std::nullopt, "(rows, numbers per row).")
    .shown_as("Shape(tuple)")
    .check([](ZipfianAttrs &a) {
      if (!a.shape || a.shape->size() != 2) {
        throw Error(
            Code::kInvalidArgument,
            text("attribute 'shape': expected (rows, numbers), found ", a.shape ? print_tuple(*a.shape) : "None"),
            "shape");
      }
      check_lengths(*a.shape);
      if (a.range_max < a.shape->back()) {
        throw Error(Code::kInvalidArgument,
                    text("attribute 'range_max': expected at least ", a.shape->back(), " (the numbers per row), found ",
                         a.range_max),
                    "range_max");
      }
    })
    .outputs([](const ZipfianAttrs &) { return 2; })
    .infer_shape([](const ZipfianAttrs &a, Shapes &, Shapes &out) {
      unify(out[0], Shape(*a.shape), "output0");
      unify(out[1], Shape{a.shape->front()}, "output1");
    })
    .infer_dtype([](const ZipfianAttrs &, Dtypes &, Dtypes &out) {
      unify(out[0], Dtype::kInt64, "output0");
      unify(out[1], Dtype::kInt64, "output1");
    })
    .random();

}  // namespace
}  // namespace cohort
