// SPDX-License-Identifier: Apache-2.0
// Kernels of reductions, movement, look-up, losses and updates, against plain loops, in several types and on several
// threads.
#include <functional>
#include <limits>

#include "op/update.hpp"
#include "support/run_kernel.hpp"

using namespace cohort;
using unit::Array;
using unit::check_close;
using unit::check_gradient;
using unit::OpRun;
using unit::RunOptions;
using unit::spread;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<int64_t> index_of(int64_t flat, const Shape &shape) {
  std::vector<int64_t> index(size_t(shape.rank()), 0);
  for (int axis = shape.rank(); axis-- > 0;) {
    index[size_t(axis)] = flat % shape[axis];
    flat /= shape[axis];
  }
  return index;
}

int64_t flat_of(const std::vector<int64_t> &index, const Shape &shape) {
  int64_t flat = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) flat = flat * shape[axis] + index[size_t(axis)];
  return flat;
}

// The result of `join` over the reduced axes, in double.
std::vector<double> reduced_by_hand(const Array &x, const std::vector<bool> &reduced, double start,
                                    const std::function<double(double, double)> &join) {
  Shape kept = x.shape();
  for (int axis = 0; axis < kept.rank(); ++axis) {
    if (reduced[size_t(axis)]) kept[axis] = 1;
  }
  std::vector<double> result(size_t(kept.size()), start);
  for (int64_t i = 0; i < x.size(); ++i) {
    std::vector<int64_t> index = index_of(i, x.shape());
    for (size_t axis = 0; axis < index.size(); ++axis) {
      if (reduced[axis]) index[axis] = 0;
    }
    double &to = result[size_t(flat_of(index, kept))];
    to = join(to, x.at(i));
  }
  return result;
}

struct Reduction {
  const char *name;
  AttrMap attrs;
  double start;
  double (*join)(double, double);
  double (*finish)(double, double);  // relative to the result and to the number of elements
};
const Reduction kReductions[] = {
    {"sum", {}, 0, [](double a, double b) { return a + b; }, nullptr},
    {"mean", {}, 0, [](double a, double b) { return a + b; }, [](double a, double n) { return a / n; }},
    {"prod", {}, 1, [](double a, double b) { return a * b; }, nullptr},
    {"max", {}, -1e300, [](double a, double b) { return std::max(a, b); }, nullptr},
    {"min", {}, 1e300, [](double a, double b) { return std::min(a, b); }, nullptr},
    {"nansum", {}, 0, [](double a, double b) { return a + b; }, nullptr},
    {"nanprod", {}, 1, [](double a, double b) { return a * b; }, nullptr},
    {"_square_sum", {}, 0, [](double a, double b) { return a + b * b; }, nullptr},
    {"norm", {{"ord", "1"}}, 0, [](double a, double b) { return a + std::fabs(b); }, nullptr},
    {"norm", {}, 0, [](double a, double b) { return a + b * b; }, [](double a, double) { return std::sqrt(a); }},
};

struct Axes {
  Shape shape;
  const char *axis;  // null: no axis given
  std::vector<bool> reduced;
};
const Axes kAxes[] = {
    {{7}, nullptr, {true}},
    {{3, 5}, "0", {true, false}},
    {{3, 5}, "(-1,)", {false, true}},
    {{2, 3, 4}, "(0, 2)", {true, false, true}},
    {{2, 3, 4}, "1", {false, true, false}},
    {{2, 3, 4, 5}, "(1, 3)", {false, true, false, true}},
    {{2, 3, 4, 5}, "(0, 2)", {true, false, true, false}},
    {{3, 1, 4}, "1", {false, true, false}},
    {{1, 1}, "()", {true, true}},
    {{9, 1100}, "1", {false, true}},   // longer than a block
    {{40, 700}, "0", {true, false}},   // more columns than a block
    {{70001}, nullptr, {true}},        // divided along the axis
    {{600, 130}, "0", {true, false}},  // divided along the rows
    {{300, 7, 90}, "(0, 2)", {true, false, true}},
};

}  // namespace

TEST(reductions_give_their_formula_over_any_axes_on_any_number_of_threads) {
  const std::pair<Dtype, double> types[] = {{Dtype::kFloat64, 1e-12}, {Dtype::kFloat32, 3e-7}, {Dtype::kFloat16, 2e-3}};
  for (const Reduction &op : kReductions) {
    for (const Axes &axes : kAxes) {
      for (const auto &[dtype, rtol] : types) {
        const bool product = std::string(op.name).find("prod") != std::string::npos;
        if (axes.shape.size() > 1000 && (product || dtype == Dtype::kFloat16)) continue;  // out of range
        const Array x(axes.shape, dtype, spread(axes.shape.size(), product ? 0.8 : -1, 1.2));
        AttrMap attrs = op.attrs;
        if (axes.axis) attrs["axis"] = axes.axis;
        std::vector<double> expected = reduced_by_hand(x, axes.reduced, op.start, op.join);
        const double elements = double(x.size()) / double(expected.size());
        if (op.finish) {
          for (double &e : expected) e = op.finish(e, elements);
        }
        const OpRun run(op.name, attrs, {x});
        // Terms that cancel in the sum were rounded before.
        const double atol = rtol * std::sqrt(elements);
        check_close(text(op.name, " of ", axes.shape, " over ", axes.axis ? axes.axis : "all"), run.outputs()[0],
                    expected, rtol, product ? 0 : atol);
        for (int threads : {2, 3, 16}) {
          RunOptions how;
          how.num_threads = threads;
          CHECK(OpRun(op.name, attrs, {x}, how).outputs()[0].same_bits(run.outputs()[0]));
        }
      }
    }
  }
}

TEST(reductions_keep_or_drop_axes_and_can_name_those_to_keep) {
  const Array x(Shape{2, 3, 4}, Dtype::kFloat32, spread(24, -1, 1));
  const OpRun all("sum", {}, {x}), one("sum", {{"axis", "1"}}, {x}),
      kept("sum", {{"axis", "1"}, {"keepdims", "True"}}, {x});
  CHECK_EQ(all.outputs()[0].shape(), Shape{1});
  CHECK_EQ(one.outputs()[0].shape(), (Shape{2, 4}));
  CHECK_EQ(kept.outputs()[0].shape(), (Shape{2, 1, 4}));
  const OpRun excluded("sum", {{"axis", "1"}, {"exclude", "1"}}, {x}), named("sum", {{"axis", "(0, 2)"}}, {x});
  CHECK(excluded.outputs()[0].same_bits(named.outputs()[0]));
  CHECK_THROWS(OpRun("sum", {{"axis", "3"}}, {x}), Error, "axis: expected -3 to 2, found 3");
}

TEST(reductions_of_integers_are_exact) {
  const Array x(Shape{3}, Dtype::kInt64, {9007199254740992.0, 1, 1});
  CHECK_EQ(static_cast<const int64_t *>(OpRun("sum", {}, {x}).outputs()[0].data())[0], (int64_t(1) << 53) + 2);
  const Array bytes(Shape{2, 3}, Dtype::kUint8, {200, 100, 7, 250, 3, 9});
  check_close("max", OpRun("max", {{"axis", "1"}}, {bytes}).outputs()[0], {200, 250}, 0, 0);
  check_close("min", OpRun("min", {{"axis", "0"}}, {bytes}).outputs()[0], {200, 3, 7}, 0, 0);
}

TEST(nan_reductions_leave_nan_out_and_others_let_it_win) {
  const Array x(Shape{4}, Dtype::kFloat32, {2, kNaN, -3, 4});
  check_close("nansum", OpRun("nansum", {}, {x}).outputs()[0], {3}, 0, 0);
  check_close("nanprod", OpRun("nanprod", {}, {x}).outputs()[0], {-24}, 0, 0);
  for (const char *name : {"sum", "prod", "max", "min"}) {
    CHECK(std::isnan(OpRun(name, {}, {x}).outputs()[0].at(0)));
  }
  OpRun run("nansum", {}, {x});
  check_close("gradient", run.backward({Array(Shape{1}, Dtype::kFloat32, {5})})[0], {5, 0, 5, 5}, 0, 0);
}

TEST(gradients_of_reductions_reach_every_element) {
  for (const Reduction &op : kReductions) {
    for (const Axes &axes : kAxes) {
      if (axes.shape.size() > 200) continue;
      AttrMap attrs = op.attrs;
      if (axes.axis) attrs["axis"] = axes.axis;
      check_gradient(op.name, attrs, {Array(axes.shape, Dtype::kFloat64, spread(axes.shape.size(), 0.3, 1.5))});
      attrs["keepdims"] = "1";
      check_gradient(op.name, attrs, {Array(axes.shape, Dtype::kFloat64, spread(axes.shape.size(), -1.5, -0.3))});
    }
  }
}

TEST(all_elements_that_are_largest_get_the_gradient) {
  OpRun run("max", {{"axis", "1"}}, {Array(Shape{2, 3}, Dtype::kFloat32, {1, 5, 5, 2, 2, 2})});
  check_close("max", run.backward({Array(Shape{2}, Dtype::kFloat32, {3, 7})})[0], {0, 3, 3, 7, 7, 7}, 0, 0);
}

TEST(argmax_and_argmin_give_the_first_index) {
  const Array x(Shape{2, 4}, Dtype::kFloat64, {1, 9, 9, 0, 4, 2, 2, 3});
  check_close("argmax", OpRun("argmax", {{"axis", "1"}}, {x}).outputs()[0], {1, 0}, 0, 0);
  check_close("argmin", OpRun("argmin", {{"axis", "1"}}, {x}).outputs()[0], {3, 1}, 0, 0);
  check_close("argmax", OpRun("argmax", {{"axis", "0"}}, {x}).outputs()[0], {1, 0, 0, 1}, 0, 0);
  check_close("argmax", OpRun("argmax", {}, {x}).outputs()[0], {1}, 0, 0);
  check_close("argmax_channel", OpRun("argmax_channel", {}, {x}).outputs()[0], {1, 0}, 0, 0);
  CHECK(OpRun("argmax", {}, {x}).outputs()[0].dtype() == Dtype::kFloat64);
}

TEST(broadcasts_repeat_and_their_gradients_add_up) {
  const Array x(Shape{2, 1, 3}, Dtype::kFloat64, {1, 2, 3, 4, 5, 6});
  const std::vector<double> twice = {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6};
  check_close("to", OpRun("broadcast_to", {{"shape", "(0, 2, 3)"}}, {x}).outputs()[0], twice, 0, 0);
  check_close("axis", OpRun("broadcast_axis", {{"axis", "1"}, {"size", "2"}}, {x}).outputs()[0], twice, 0, 0);
  check_close("like", OpRun("broadcast_like", {}, {x, Array(Shape{2, 2, 3}, Dtype::kFloat64)}).outputs()[0], twice, 0,
              0);
  check_gradient("broadcast_to", {{"shape", "(2, 4, 3)"}}, {x});
  check_gradient("broadcast_axis", {{"axis", "1"}, {"size", "5"}}, {x});
  CHECK_THROWS(OpRun("broadcast_to", {{"shape", "(2, 2, 4)"}}, {x}), Error, "data: expected lengths 1 or those of");
}

// ---- movement -----------------------------------------------------------------------------------------------------

TEST(transposes_move_every_element_of_every_type) {
  struct Case {
    Shape shape;
    std::vector<int> order;
  };
  const Case cases[] = {{{3, 4}, {1, 0}},
                        {{67, 41}, {1, 0}},
                        {{2, 3, 4}, {2, 1, 0}},
                        {{2, 3, 4}, {0, 2, 1}},
                        {{5, 1, 3}, {2, 0, 1}},
                        {{2, 3, 4, 5}, {0, 2, 1, 3}},
                        {{2, 3, 4, 5}, {3, 1, 0, 2}},
                        {{40, 3, 50}, {2, 0, 1}},
                        {{6}, {0}},
                        {{130, 2, 70}, {1, 2, 0}}};
  for (const Case &c : cases) {
    for (Dtype dtype : {Dtype::kUint8, Dtype::kFloat16, Dtype::kFloat32, Dtype::kInt64}) {
      Array x(c.shape, dtype);
      for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i % 251));
      std::string axes = "(";
      for (int a : c.order) axes += std::to_string(a) + ",";
      for (int threads : {1, 3}) {
        RunOptions how;
        how.num_threads = threads;
        OpRun run("transpose", {{"axes", axes + ")"}}, {x}, how);
        const Array &y = run.outputs()[0];
        for (int64_t i = 0; i < y.size(); ++i) {
          const std::vector<int64_t> to = index_of(i, y.shape());
          std::vector<int64_t> from(to.size());
          for (size_t k = 0; k < to.size(); ++k) from[size_t(c.order[k])] = to[k];
          CHECK_EQ(y.at(i), x.at(flat_of(from, c.shape)));
        }
        CHECK(run.backward({y})[0].same_bits(x));
      }
    }
  }
  const Array x(Shape{2, 3, 4}, Dtype::kFloat32, spread(24, -1, 1));
  CHECK(OpRun("SwapAxis", {{"dim1", "0"}, {"dim2", "2"}}, {x})
            .outputs()[0]
            .same_bits(OpRun("transpose", {{"axes", "(2,1,0)"}}, {x}).outputs()[0]));
}

TEST(parts_are_joined_along_an_axis_and_cut_again) {
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kUint8, Dtype::kFloat64}) {
    for (int axis = 0; axis < 3; ++axis) {
      std::vector<Array> parts;
      for (int i = 0; i < 3; ++i) {
        Shape shape{4, 5, 6};
        shape[axis] = i + 1;
        Array part(shape, dtype);
        for (int64_t k = 0; k < part.size(); ++k) part.set(k, double((k * 7 + i * 31) % 120));
        parts.push_back(part);
      }
      OpRun join("Concat", {{"dim", std::to_string(axis)}}, parts);
      const Array &whole = join.outputs()[0];
      for (int64_t i = 0; i < whole.size(); ++i) {
        std::vector<int64_t> index = index_of(i, whole.shape());
        size_t part = 0;
        while (index[size_t(axis)] >= parts[part].shape()[axis]) index[size_t(axis)] -= parts[part++].shape()[axis];
        CHECK_EQ(whole.at(i), parts[part].at(flat_of(index, parts[part].shape())));
      }
      const std::vector<Array> cut = join.backward({whole});
      for (size_t i = 0; i < 3; ++i) CHECK(cut[i].same_bits(parts[i]));

      OpRun split("SliceChannel", {{"num_outputs", "3"}, {"axis", std::to_string(axis)}}, {whole});
      for (int64_t i = 0; i < whole.size(); ++i) {
        std::vector<int64_t> index = index_of(i, whole.shape());
        const Shape &shape = split.outputs()[0].shape();
        const size_t part = size_t(index[size_t(axis)] / shape[axis]);
        index[size_t(axis)] %= shape[axis];
        CHECK_EQ(whole.at(i), split.outputs()[part].at(flat_of(index, shape)));
      }
      CHECK(split.backward(split.outputs())[0].same_bits(whole));
    }
  }
}

TEST(parts_that_nobody_wants_are_not_written) {
  std::vector<Array> in = {Array(Shape{2, 6}, Dtype::kFloat32, spread(12, -1, 1))};
  const std::vector<std::pair<Shape, Dtype>> out = {
      {Shape(), Dtype::kFloat32}, {Shape{2, 2}, Dtype::kFloat32}, {Shape(), Dtype::kFloat32}};
  const unit::KernelRun run("SliceChannel", get_op("SliceChannel").parse({{"num_outputs", "3"}}), in, out, {}, nullptr,
                            nullptr, {}, {false, true, false});
  for (int64_t i = 0; i < 4; ++i) CHECK_EQ(run.outputs[1].at(i), in[0].at(i / 2 * 6 + 2 + i % 2));
}

TEST(casts_follow_the_rules_of_copies) {
  const std::vector<double> values = {0, 1, -1, 2.75, -2.75, 100};
  for (Dtype from :
       {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16, Dtype::kInt32, Dtype::kInt8}) {
    for (Dtype to :
         {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16, Dtype::kInt64, Dtype::kBool}) {
      const Array x(Shape{6}, from, values);
      OpRun run("Cast", {{"dtype", dtype_name(to)}}, {x});
      for (int64_t i = 0; i < 6; ++i) {
        const double v = x.at(i), expected = to == Dtype::kBool    ? double(v != 0)
                                             : to == Dtype::kInt64 ? std::trunc(v)
                                                                   : v;
        CHECK_EQ(run.outputs()[0].at(i), expected);
      }
      CHECK(run.backward({run.outputs()[0]})[0].dtype() == from);
    }
  }
  const Array whole(Shape{2}, Dtype::kInt32, {3, 4});
  CHECK(OpRun("amp_cast", {{"dtype", "float16"}}, {whole}).outputs()[0].dtype() == Dtype::kInt32);
}

TEST(embeddings_pick_rows_and_gather_their_gradients) {
  const Array weight(Shape{5, 3}, Dtype::kFloat32, spread(15, -1, 1));
  for (Dtype index : {Dtype::kFloat32, Dtype::kInt32, Dtype::kInt64, Dtype::kUint8}) {
    const bool is_signed = index != Dtype::kUint8;
    const Array data(Shape{2, 3}, index, {0, 4, 1, 1, is_signed ? -3.0 : 0.0, 9});
    const std::vector<int64_t> rows = {0, 4, 1, 1, 0, 4};
    for (int threads : {1, 2}) {
      RunOptions how;
      how.num_threads = threads;
      OpRun run("Embedding", {{"input_dim", "5"}, {"output_dim", "3"}}, {data, weight}, how);
      std::vector<double> head = spread(18, -1, 1, 4), expected(15, 0.0);
      for (size_t i = 0; i < 18; ++i) {
        CHECK_EQ(run.outputs()[0].at(int64_t(i)), weight.at(rows[i / 3] * 3 + int64_t(i) % 3));
        expected[size_t(rows[i / 3]) * 3 + i % 3] += double(float(head[i]));
      }
      const std::vector<Array> grads = run.backward({Array(Shape{2, 3, 3}, Dtype::kFloat32, head)});
      CHECK_EQ(grads.size(), size_t(1));
      check_close("gradient", grads[0], expected, 1e-6, 1e-6);
    }
  }
}

TEST(arrays_from_nothing_hold_what_their_attributes_say) {
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kInt32, Dtype::kInt8}) {
    const std::string type = dtype_name(dtype);
    check_close("_zeros", OpRun("_zeros", {{"shape", "(2, 2)"}, {"dtype", type}}, {}).outputs()[0], {0, 0, 0, 0}, 0, 0);
    check_close("_ones", OpRun("_ones", {{"shape", "(3,)"}, {"dtype", type}}, {}).outputs()[0], {1, 1, 1}, 0, 0);
    check_close("_full", OpRun("_full", {{"shape", "(2,)"}, {"value", "7"}, {"dtype", type}}, {}).outputs()[0], {7, 7},
                0, 0);
    check_close("_arange",
                OpRun("_arange", {{"start", "2"}, {"stop", "8"}, {"step", "3"}, {"repeat", "2"}, {"dtype", type}}, {})
                    .outputs()[0],
                {2, 2, 5, 5}, 0, 0);
    check_close("_eye", OpRun("_eye", {{"N", "2"}, {"M", "3"}, {"k", "1"}, {"dtype", type}}, {}).outputs()[0],
                {0, 1, 0, 0, 0, 1}, 0, 0);
  }
  check_close("_arange", OpRun("_arange", {{"start", "3"}}, {}).outputs()[0], {0, 1, 2}, 0, 0);
  check_close("_arange", OpRun("_arange", {{"start", "1"}, {"stop", "-1"}, {"step", "-0.5"}}, {}).outputs()[0],
              {1, 0.5, 0, -0.5}, 0, 0);
  check_close("_linspace", OpRun("_linspace", {{"start", "0"}, {"stop", "1"}, {"num", "5"}}, {}).outputs()[0],
              {0, 0.25, 0.5, 0.75, 1}, 0, 0);
}

// ---- losses -------------------------------------------------------------------------------------------------------

namespace {

// data as (outer, cols, inner), softmax along cols.
std::vector<double> softmax_by_hand(const Array &x, int64_t outer, int64_t cols, int64_t inner) {
  std::vector<double> y(size_t(x.size()));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < cols; ++c) sum += std::exp(x.at((o * cols + c) * inner + i));
      for (int64_t c = 0; c < cols; ++c)
        y[size_t((o * cols + c) * inner + i)] = std::exp(x.at((o * cols + c) * inner + i)) / sum;
    }
  }
  return y;
}

}  // namespace

TEST(softmax_output_and_its_gradient_follow_every_option) {
  struct Case {
    Shape data, label;
    AttrMap attrs;
    int64_t outer, cols, inner;
    double scale;  // of the gradient
    int ignored;   // label without gradient, or -1
  };
  const Case cases[] = {
      {{6, 5}, {6}, {}, 6, 5, 1, 1, -1},
      {{6, 5}, {6}, {{"grad_scale", "3"}, {"normalization", "batch"}}, 6, 5, 1, 0.5, -1},
      {{6, 5}, {6}, {{"use_ignore", "1"}, {"ignore_label", "2"}}, 6, 5, 1, 1, 2},
      {{6, 5}, {6}, {{"use_ignore", "1"}, {"ignore_label", "0"}, {"normalization", "valid"}}, 6, 5, 1, -1, 0},
      {{2, 3, 4}, {2, 3}, {{"preserve_shape", "1"}}, 6, 4, 1, 1, -1},
      {{2, 3, 4}, {2, 4}, {{"multi_output", "1"}}, 2, 3, 4, 0.25, -1},
      {{2, 3, 2, 2}, {2, 2, 2}, {{"multi_output", "1"}, {"normalization", "batch"}}, 2, 3, 4, 0.125, -1},
      {{700, 3}, {700}, {}, 700, 3, 1, 1, -1},
      {{2, 3, 600}, {2, 600}, {{"multi_output", "1"}}, 2, 3, 600, 1.0 / 600, -1},
  };
  for (const Case &c : cases) {
    for (const auto &[dtype, tolerance] :
         {std::pair<Dtype, double>{Dtype::kFloat64, 1e-12}, {Dtype::kFloat32, 2e-6}, {Dtype::kFloat16, 2e-3}}) {
      for (int threads : {1, 3}) {
        RunOptions how;
        how.num_threads = threads;
        how.in_place = threads == 3;
        const Array x(c.data, dtype, spread(c.data.size(), -3, 3));
        Array label(c.label, dtype);
        for (int64_t i = 0; i < label.size(); ++i) label.set(i, double(i * 7 % std::min<int64_t>(c.cols, 5)));
        OpRun run("SoftmaxOutput", c.attrs, {x, label}, how);
        const std::vector<double> y = softmax_by_hand(x, c.outer, c.cols, c.inner);
        check_close("softmax", run.outputs()[0], y, tolerance, tolerance);
        double scale = c.scale;
        if (scale < 0) {  // normalised by the labels that are not ignored
          scale = 0;
          for (int64_t i = 0; i < label.size(); ++i) scale += label.at(i) != c.ignored;
          scale = 1 / scale;
        }
        std::vector<double> expected(y.size());
        for (int64_t o = 0; o < c.outer; ++o) {
          for (int64_t i = 0; i < c.inner; ++i) {
            const int64_t wanted = int64_t(label.at(o * c.inner + i));
            for (int64_t k = 0; k < c.cols; ++k) {
              const size_t at = size_t((o * c.cols + k) * c.inner + i);
              expected[at] = wanted == c.ignored ? 0 : (y[at] - (k == wanted)) * scale;
            }
          }
        }
        check_close("gradient", run.backward({})[0], expected, tolerance, tolerance);
      }
    }
  }
}

TEST(softmax_output_takes_probabilities_smoothing_and_head_gradients) {
  const Array x(Shape{3, 4}, Dtype::kFloat64, spread(12, -2, 2));
  const std::vector<double> y = softmax_by_hand(x, 3, 4, 1);
  const Array probabilities(Shape{3, 4}, Dtype::kFloat64, spread(12, 0, 1, 3)),
      label(Shape{3}, Dtype::kFloat64, {1, 3, 0});
  OpRun soft("SoftmaxOutput", {{"grad_scale", "2"}}, {x, probabilities});
  OpRun smooth("SoftmaxOutput", {{"smooth_alpha", "0.3"}}, {x, label});
  OpRun headed("SoftmaxOutput", {{"out_grad", "1"}}, {x, label});
  const Array head(Shape{3, 4}, Dtype::kFloat64, spread(12, -1, 1, 5));
  std::vector<double> of_soft, of_smooth, of_headed;
  for (int64_t i = 0; i < 12; ++i) {
    const bool hit = i % 4 == int64_t(label.at(i / 4));
    of_soft.push_back(2 * (y[size_t(i)] - probabilities.at(i)));
    of_smooth.push_back(y[size_t(i)] - (hit ? 1 - double(0.3f) : double(0.3f) / 3));
    of_headed.push_back((y[size_t(i)] - hit) * head.at(i));
  }
  check_close("probabilities", soft.backward({})[0], of_soft, 1e-12, 1e-12);
  check_close("smoothing", smooth.backward({})[0], of_smooth, 1e-12, 1e-12);
  check_close("head gradient", headed.backward({head})[0], of_headed, 1e-12, 1e-12);
}

TEST(regression_outputs_give_the_difference_per_output) {
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16}) {
    const double tolerance = dtype == Dtype::kFloat16 ? 2e-3 : 2e-6;
    const Array x(Shape{5, 3}, dtype, spread(15, -2, 2)), label(Shape{5, 3}, dtype, spread(15, -1, 1, 9));
    for (const char *name : {"LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"}) {
      OpRun run(name, {{"grad_scale", "1.5"}}, {x, label});
      std::vector<double> y, grad;
      for (int64_t i = 0; i < 15; ++i) {
        y.push_back(name[1] == 'o' ? 1 / (1 + std::exp(-x.at(i))) : x.at(i));
        const double error = y.back() - label.at(i);
        grad.push_back(0.5 * (name[0] == 'M' ? double(error > 0) - double(error < 0) : error));
      }
      check_close(name, run.outputs()[0], y, tolerance, tolerance);
      check_close(name, run.backward({})[0], grad, tolerance, tolerance);
    }
  }
}

TEST(losses_give_the_gradients_of_their_formulas) {
  const Array x(Shape{2, 3}, Dtype::kFloat64, {0.5, -0.2, 2, -2, 0.1, 0.4}), label(Shape{2}, Dtype::kFloat64, {0, 2});
  OpRun squared("SVMOutput", {}, {x, label}),
      linear("SVMOutput", {{"use_linear", "1"}, {"regularization_coefficient", "2"}}, {x, label});
  check_close("squared hinge", squared.backward({})[0], {-1, 1.6, 6, 0, 2.2, -1.2}, 1e-12, 1e-12);
  check_close("linear hinge", linear.backward({})[0], {-2, 2, 2, 0, 2, -2}, 1e-12, 1e-12);

  OpRun plain("MakeLoss", {{"grad_scale", "3"}}, {x}), batch("MakeLoss", {{"normalization", "batch"}}, {x}),
      valid("MakeLoss", {{"normalization", "valid"}, {"valid_thresh", "0.3"}}, {x}), unit_loss("make_loss", {}, {x});
  check_close("MakeLoss", plain.backward({})[0], std::vector<double>(6, 3.0), 0, 0);
  check_close("MakeLoss by batch", batch.backward({})[0], std::vector<double>(6, 0.5), 0, 0);
  check_close("MakeLoss by valid", valid.backward({})[0], std::vector<double>(6, 1.0 / 3), 1e-15, 0);
  check_close("make_loss", unit_loss.backward({})[0], std::vector<double>(6, 1.0), 0, 0);
  check_gradient("softmax_cross_entropy", {}, {x, label});
}

// ---- dropout ------------------------------------------------------------------------------------------------------

TEST(dropout_drops_its_share_scales_the_rest_and_repeats_for_a_seed) {
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16}) {
    const Array x(Shape{100, 400}, dtype, std::vector<double>(40000, 1.0));
    RunOptions how;
    how.seed = 7;
    OpRun run("Dropout", {{"p", "0.25"}}, {x}, how);
    int64_t dropped = 0;
    for (int64_t i = 0; i < x.size(); ++i) {
      const double y = run.outputs()[0].at(i);
      dropped += y == 0;
      if (y != 0) check_close("scaled", y, 4.0 / 3, 1e-3, 0);
    }
    CHECK_NEAR(double(dropped) / 40000, 0.25, 0.012);  // more than five standard deviations
    // The gradient goes where the data went.
    const std::vector<Array> grads = run.backward({x});
    CHECK(grads[0].same_bits(run.outputs()[0]));
    how.num_threads = 3;
    how.in_place = true;
    CHECK(OpRun("Dropout", {{"p", "0.25"}}, {x}, how).outputs()[0].same_bits(run.outputs()[0]));
    how.seed = 8;
    CHECK(!OpRun("Dropout", {{"p", "0.25"}}, {x}, how).outputs()[0].same_bits(run.outputs()[0]));
  }
}

TEST(dropout_draws_anew_at_each_run) {
  std::vector<Array> x = {Array(Shape{1000}, Dtype::kFloat32, std::vector<double>(1000, 1.0))};
  unit::KernelRun run("Dropout", get_op("Dropout").parse({}), x, {{Shape{1000}, Dtype::kFloat32}}, {});
  const Array first = run.outputs[0];
  run.run({x[0].data()}, {run.outputs[0].data()}, &run.saved());
  CHECK(!first.same_bits(run.outputs[0]));
}

TEST(dropout_is_the_identity_out_of_training_and_all_zero_at_one) {
  const Array x(Shape{50}, Dtype::kFloat32, spread(50, -1, 1));
  RunOptions inference;
  inference.is_train = false;
  OpRun run("Dropout", {{"p", "0.5"}}, {x}, inference);
  CHECK(run.outputs()[0].same_bits(x));
  CHECK(run.backward({x})[0].same_bits(x));
  CHECK(!OpRun("Dropout", {{"p", "0.5"}, {"mode", "always"}}, {x}, inference).outputs()[0].same_bits(x));
  check_close("p = 1", OpRun("Dropout", {{"p", "1"}}, {x}).outputs()[0], std::vector<double>(50, 0.0), 0, 0);
}

TEST(dropout_along_axes_drops_whole_lines) {
  const Array x(Shape{4, 30, 5}, Dtype::kFloat32, std::vector<double>(600, 1.0));
  const OpRun run("Dropout", {{"p", "0.5"}, {"axes", "(0, 2)"}}, {x});
  int64_t dropped = 0;
  for (int64_t i = 0; i < 600; ++i) {
    CHECK_EQ(run.outputs()[0].at(i), run.outputs()[0].at(i / 5 % 30 * 5));
    dropped += run.outputs()[0].at(i) == 0;
  }
  CHECK(dropped > 0 && dropped < 600);
}

// ---- updates ------------------------------------------------------------------------------------------------------

namespace {

struct UpdateCase {
  const char *name;
  AttrMap attrs;
  int num_states;
};
const UpdateCase kUpdates[] = {
    {"sgd_update", {{"lr", "0.1"}, {"wd", "0.01"}, {"clip_gradient", "0.5"}}, 0},
    {"sgd_mom_update", {{"lr", "0.1"}, {"momentum", "0.9"}, {"wd", "0.01"}}, 1},
    {"nag_mom_update", {{"lr", "0.1"}, {"momentum", "0.9"}, {"rescale_grad", "0.5"}}, 1},
    {"signsgd_update", {{"lr", "0.1"}, {"wd", "0.01"}}, 0},
    {"signum_update", {{"lr", "0.1"}, {"momentum", "0.9"}, {"wd_lh", "0.01"}}, 1},
    {"adam_update", {{"lr", "0.01"}, {"wd", "0.01"}, {"clip_gradient", "0.5"}}, 2},
    {"rmsprop_update", {{"lr", "0.01"}, {"clip_weights", "0.9"}}, 1},
    {"rmspropalex_update", {{"lr", "0.01"}}, 3},
    {"_adagrad_update", {{"lr", "0.1"}, {"wd", "0.01"}}, 1},
    {"ftrl_update", {{"lr", "0.1"}}, 2},
    {"ftml_update", {{"lr", "0.1"}, {"t", "3"}}, 3},
    {"lamb_update_phase1", {{"t", "2"}, {"wd", "0.1"}}, 2},
};

// States for which the square roots exist: mean squares above squares of means.
std::vector<Array> update_inputs(const UpdateCase &c, int64_t count, Dtype dtype) {
  std::vector<Array> inputs = {Array(Shape{count}, dtype, spread(count, -1, 1, 1)),
                               Array(Shape{count}, dtype, spread(count, -1, 1, 2))};
  for (int k = 0; k < c.num_states; ++k) inputs.emplace_back(Shape{count}, dtype, spread(count, 0.5, 0.7, 3 + k));
  return inputs;
}

}  // namespace

TEST(updates_of_a_part_are_the_part_of_the_update_in_place_or_not) {
  for (const UpdateCase &c : kUpdates) {
    const std::vector<Array> whole = update_inputs(c, 3001, Dtype::kFloat32);
    const OpRun run(c.name, c.attrs, whole);
    RunOptions how;
    how.in_place = true;
    how.num_threads = 2;
    const OpRun in_place(c.name, c.attrs, whole, how);
    CHECK(run.outputs()[0].same_bits(in_place.outputs()[0]));
    CHECK(!run.outputs()[0].same_bits(whole[0]));
    for (int64_t begin : {0, 1, 17, 2990}) {
      const int64_t count = std::min<int64_t>(29, 3001 - begin);
      std::vector<Array> part;
      for (const Array &a : whole) {
        const std::vector<double> v = a.values();
        part.emplace_back(Shape{count}, Dtype::kFloat32,
                          std::vector<double>(v.begin() + begin, v.begin() + begin + count));
      }
      const OpRun of_part(c.name, c.attrs, part);
      for (int64_t i = 0; i < count; ++i) {
        CHECK_EQ(of_part.outputs()[0].at(i), run.outputs()[0].at(begin + i));
        for (size_t s = 2; s < whole.size(); ++s) CHECK_EQ(of_part.inputs[s].at(i), run.inputs[s].at(begin + i));
      }
    }
  }
}

TEST(updates_give_the_same_in_every_float_type) {
  for (const UpdateCase &c : kUpdates) {
    const OpRun exact(c.name, c.attrs, update_inputs(c, 700, Dtype::kFloat64));
    const OpRun single(c.name, c.attrs, update_inputs(c, 700, Dtype::kFloat32));
    check_close(c.name, single.outputs()[0], exact.outputs()[0].values(), 1e-5, 1e-5);
    for (size_t s = 2; s < exact.inputs.size(); ++s)
      check_close(c.name, single.inputs[s], exact.inputs[s].values(), 1e-5, 1e-5);
    if (std::string(c.name).find("sign") == 0) continue;  // a rounded gradient may change its sign
    const OpRun half(c.name, c.attrs, update_inputs(c, 700, Dtype::kFloat16));
    check_close(c.name, half.outputs()[0], exact.outputs()[0].values(), 1e-2, 2e-2);
  }
}

TEST(updates_on_a_master_weight_lose_nothing) {
  const std::vector<double> w = spread(600, -1, 1, 1), g = spread(600, -1, 1, 2), m = spread(600, -1, 1, 3);
  const AttrMap attrs = {{"lr", "0.001"}, {"momentum", "0.9"}};
  for (const char *name : {"sgd_mom_update", "nag_mom_update"}) {
    const Array grad(Shape{600}, Dtype::kFloat16, g);
    const OpRun single(
        name, attrs,
        {Array(Shape{600}, Dtype::kFloat32, w), grad.as(Dtype::kFloat32), Array(Shape{600}, Dtype::kFloat32, m)});
    const OpRun mixed(text("mp_", name), attrs,
                      {Array(Shape{600}, Dtype::kFloat16, w), grad, Array(Shape{600}, Dtype::kFloat32, m),
                       Array(Shape{600}, Dtype::kFloat32, w)});
    check_close("master", mixed.inputs[3], single.outputs()[0].values(), 1e-7, 0);
    check_close("momentum", mixed.inputs[2], single.inputs[2].values(), 1e-7, 0);
    CHECK(mixed.outputs()[0].same_bits(single.outputs()[0].as(Dtype::kFloat16)));
  }
}

TEST(adamw_leaves_everything_where_the_scale_is_no_number) {
  for (double scale : {kNaN, 0.0, double(INFINITY)}) {
    std::vector<Array> inputs = update_inputs({"", {}, 2}, 40, Dtype::kFloat32);
    inputs.emplace_back(Shape{1}, Dtype::kFloat32, std::vector<double>{scale});
    const OpRun run("_adamw_update", {{"lr", "0.1"}, {"eta", "1"}}, inputs);
    CHECK(run.outputs()[0].same_bits(inputs[0]));
    CHECK(run.inputs[2].same_bits(inputs[2]));
  }
}

TEST(several_weights_are_updated_like_single_ones) {
  const auto a = update_inputs({"", {}, 1}, 50, Dtype::kFloat32), b = update_inputs({"", {}, 1}, 7, Dtype::kFloat32);
  const OpRun both("multi_sgd_mom_update",
                   {{"lrs", "(0.1, 0.2)"}, {"wds", "(0, 0.01)"}, {"momentum", "0.9"}, {"num_weights", "2"}},
                   {a[0], a[1], a[2], b[0], b[1], b[2]});
  const OpRun first("sgd_mom_update", {{"lr", "0.1"}, {"momentum", "0.9"}}, a);
  const OpRun second("sgd_mom_update", {{"lr", "0.2"}, {"wd", "0.01"}, {"momentum", "0.9"}}, b);
  CHECK(both.outputs()[0].same_bits(first.outputs()[0]));
  CHECK(both.outputs()[1].same_bits(second.outputs()[0]));
  CHECK(both.inputs[5].same_bits(second.inputs[2]));
}

TEST(sums_of_squares_and_finiteness_cover_all_arrays) {
  const Array a(Shape{3}, Dtype::kFloat32, {1, 2, 3}), b(Shape{2, 1}, Dtype::kFloat32, {-4, 0.5});
  check_close("multi_sum_sq", OpRun("multi_sum_sq", {}, {a, b}).outputs()[0], {14, 16.25}, 0, 0);
  check_close("finite", OpRun("multi_all_finite", {}, {a, b}).outputs()[0], {1}, 0, 0);
  const Array bad(Shape{2}, Dtype::kFloat16, {1, kNaN});
  check_close("not finite", OpRun("all_finite", {}, {bad}).outputs()[0], {0}, 0, 0);
  check_close("not finite", OpRun("multi_all_finite", {}, {a, bad}).outputs()[0], {0}, 0, 0);
}

UNIT_MAIN()
