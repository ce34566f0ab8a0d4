// SPDX-License-Identifier: Apache-2.0
// Initial values: distributions, names, `__init__`, and the same numbers for the same seed (contract SYM-08).
#include "optimizer/initializer.hpp"

#include <cmath>
#include <functional>

#include "base/error.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

std::vector<double> values_of(const NDArray &array) {
  std::vector<double> values(static_cast<size_t>(array.size()));
  const NDArray wide = array.cast(Dtype::kFloat64);
  wide.read(values.data(), values.size() * sizeof(double));
  return values;
}

double element_of(const NDArray &array, size_t index) { return values_of(array)[index]; }

std::vector<double> fill(const std::string &kind, const AttrMap &settings, const Shape &shape,
                         const std::string &name = "x", uint64_t seed = 1) {
  const NDArray array = NDArray::create(shape, Dtype::kFloat32, Context());
  Initializer::create(kind, settings, seed)->fill(name, array);
  return values_of(array);
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
  explicit Moments(const std::vector<double> &values) {
    for (double v : values) mean += v / double(values.size()), largest = std::max(largest, std::fabs(v));
    for (double v : values) deviation += (v - mean) * (v - mean) / double(values.size());
    deviation = std::sqrt(deviation);
  }
};

Code code_of(const std::function<void()> &call) {
  try {
    call();
  } catch (const Error &error) {
    return error.code();
  }
  return Code(0);
}

NDArray blank(const Shape &shape) {
  const NDArray array = NDArray::create(shape, Dtype::kFloat32, Context());
  array.fill(-7);
  return array;
}

}  // namespace

TEST(constants_fill_whole_arrays) {
  CHECK(fill("zeros", {}, Shape{3}) == (std::vector<double>{0, 0, 0}));
  CHECK(fill("One", {}, Shape{2}) == (std::vector<double>{1, 1}));
  CHECK(fill("constant", {{"value", "-2.5"}}, Shape{1}) == (std::vector<double>{-2.5}));
}

TEST(a_constant_may_be_an_array) {
  using Values = std::vector<double>;
  CHECK(fill("constant", {{"value", "[1, -2.5, 3]"}}, Shape{3}) == (Values{1, -2.5, 3}));
  CHECK(fill("constant", {{"value", "(1, 2, 3)"}}, Shape{2, 3}) == (Values{1, 2, 3, 1, 2, 3}));
  CHECK(fill("constant", {{"value", "[[1], [2]]"}}, Shape{2, 3}) == (Values{1, 1, 1, 2, 2, 2}));
  CHECK(fill("constant", {{"value", "((1,), (2,))"}}, Shape{2, 2}) == (Values{1, 1, 2, 2}));
  CHECK(fill("constant", {{"value", "[[1, 2, 3]]"}}, Shape{3}) == (Values{1, 2, 3}));
  CHECK(fill("constant", {{"value", "[[[1, 2]], [[3, 4]]]"}}, Shape{2, 2, 2}) == (Values{1, 2, 1, 2, 3, 4, 3, 4}));
  CHECK(fill("constant", {{"value", "[7]"}}, Shape{2, 2}) == (Values{7, 7, 7, 7}));
  CHECK(fill("constant", {{"value", "[7]"}}, Shape{0}) == Values{});
  for (const char *shape : {"[1, 2]", "[[1, 2, 3], [1, 2, 3]]", "[[1], [2]]"})
    CHECK(code_of([&] { fill("constant", {{"value", shape}}, Shape{3}); }) == Code::kShape);
  for (const char *value :
       {"[]", "[[]]", "[1, [2]]", "[[1], 2]", "[[1, 2], [3]]", "[one]", "[1", "[1,, 2]", "(\"a\")", "[null]"})
    CHECK(code_of([&] { fill("constant", {{"value", value}}, Shape{3}); }) == Code::kInvalidArgument);
  // Nested lists as large as they can be: a first one of 1000, whose first entry is one of 1000, and so on; then
  // numbers beside it.
  std::string deep = "1";
  for (int axis = 0; axis < 8; ++axis) {
    deep.insert(0, 1, '[');
    for (int i = 1; i < 1000; ++i) deep += ",1";
    deep += ']';
  }
  CHECK(code_of([&] { fill("constant", {{"value", deep}}, Shape{3}); }) == Code::kInvalidArgument);
  const NDArray bias = blank(Shape{2});
  const Symbol symbol = Symbol::variable("x_bias", {{"__init__", R"(["constant", {"value": [0.5, 2]}])"}});
  Initializer::create("zero", {}, 0)->apply(&symbol, {{"x_bias", bias}});
  CHECK(values_of(bias) == (Values{0.5, 2}));
}

TEST(uniform_and_normal_have_their_width) {
  const Moments uniform(fill("uniform", {{"scale", "0.5"}}, Shape{100, 100}));
  CHECK_NEAR(uniform.mean, 0, 0.02);
  CHECK_NEAR(uniform.deviation, 0.5 / std::sqrt(3.0), 0.01);
  CHECK(uniform.largest <= 0.5 && uniform.largest > 0.49);
  const Moments normal(fill("normal", {{"sigma", "2"}}, Shape{100, 100}));
  CHECK_NEAR(normal.mean, 0, 0.1);
  CHECK_NEAR(normal.deviation, 2, 0.06);
  CHECK(normal.largest > 5);
}

TEST(xavier_scales_with_inputs_and_outputs) {
  // (64, 16, 3, 3): 144 inputs and 576 outputs per unit.
  const Shape shape{64, 16, 3, 3};
  CHECK_NEAR(Moments(fill("xavier", {}, shape)).largest, std::sqrt(3 / 360.0), 0.001);
  CHECK_NEAR(Moments(fill("xavier", {{"factor_type", "in"}, {"magnitude", "2"}}, shape)).largest, std::sqrt(2 / 144.0),
             0.001);
  CHECK_NEAR(Moments(fill("xavier", {{"factor_type", "out"}, {"rnd_type", "gaussian"}}, shape)).deviation,
             std::sqrt(3 / 576.0), 0.002);
  CHECK_NEAR(Moments(fill("msraprelu", {{"slope", "0"}, {"factor_type", "in"}}, shape)).deviation, std::sqrt(2 / 144.0),
             0.003);
  CHECK(code_of([] { fill("xavier", {}, Shape{5}); }) == Code::kShape);
}

TEST(orthogonal_rows_or_columns_are_orthogonal) {
  for (const Shape &shape : {Shape{6, 20}, Shape{20, 6}, Shape{4, 2, 3}}) {
    for (const char *kind : {"uniform", "normal"}) {
      const std::vector<double> q = fill("orthogonal", {{"scale", "2"}, {"rand_type", kind}}, shape);
      const int64_t rows = shape[0], columns = shape.size() / rows;
      const bool by_rows = rows <= columns;
      const int64_t count = std::min(rows, columns), length = std::max(rows, columns);
      const auto at = [&](int64_t v, int64_t i) { return q[size_t(by_rows ? v * columns + i : i * columns + v)]; };
      for (int64_t a = 0; a < count; ++a) {
        for (int64_t b = 0; b <= a; ++b) {
          double product = 0;
          for (int64_t i = 0; i < length; ++i) product += at(a, i) * at(b, i);
          CHECK_NEAR(product, a == b ? 4.0 : 0.0, 1e-5);
        }
      }
    }
  }
}

TEST(seed_and_name_choose_the_numbers) {
  const auto numbers = [](uint64_t seed, const char *name) { return fill("uniform", {}, Shape{8}, name, seed); };
  CHECK(numbers(3, "a") == numbers(3, "a"));
  CHECK(numbers(3, "a") != numbers(4, "a"));
  CHECK(numbers(3, "a") != numbers(3, "b"));
}

TEST(the_end_of_a_name_decides) {
  NamedArrays arrays;
  for (const char *name : {"fc_weight", "fc_bias", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var", "q_min",
                           "q_max", "running_var"}) {
    arrays.emplace_back(name, blank(Shape{2, 2}));
  }
  arrays.emplace_back("nothing", NDArray());
  Initializer::create("constant", {{"value", "5"}}, 0)->apply(nullptr, arrays);
  const double expected[] = {5, 0, 1, 0, 0, 1, 0, 1, 1};
  for (size_t i = 0; i < std::size(expected); ++i) CHECK_EQ(element_of(arrays[i].second, 3), expected[i]);
}

TEST(a_name_that_says_nothing_is_refused_before_anything_is_written) {
  const NamedArrays arrays = {{"fc_weight", blank(Shape{2, 2})}, {"alpha", blank(Shape{2})}};
  CHECK_THROWS(Initializer::create("one", {}, 0)->apply(nullptr, arrays), Error, "'alpha'");
  CHECK_EQ(element_of(arrays[0].second, 0), -7.0);
  const NamedArrays flat = {{"a_bias", blank(Shape{2})}, {"a_weight", blank(Shape{2})}};
  CHECK(code_of([&] { Initializer::create("xavier", {}, 0)->apply(nullptr, flat); }) == Code::kShape);
  CHECK_EQ(element_of(flat[0].second, 0), -7.0);
}

TEST(init_attributes_come_first) {
  const Symbol symbol =
      Symbol::group({Symbol::variable("alpha", {{"__init__", "[\"constant\", {\"value\": 0.25}]"}}),
                     Symbol::variable("x_bias", {{"__init__", "[\"one\", {}]"}}),
                     Symbol::variable("h_bias", {{"__init__", "[\"lstmbias\", {\"forget_bias\": 1.5}]"}})});
  const NamedArrays arrays = {{"alpha", blank(Shape{1})}, {"x_bias", blank(Shape{1})}, {"h_bias", blank(Shape{8})}};
  Initializer::create("uniform", {}, 0)->apply(&symbol, arrays);
  CHECK_EQ(element_of(arrays[0].second, 0), 0.25);
  CHECK_EQ(element_of(arrays[1].second, 0), 1.0);
  CHECK(values_of(arrays[2].second) == (std::vector<double>{0, 0, 1.5, 1.5, 0, 0, 0, 0}));
  for (const char *bad :
       {"", "{}", "[3]", "[\"nothing\", {}]", "[\"one\", [1]]", "[\"constant\", {\"value\": [1, [2]]}]"}) {
    const Symbol wrong = Symbol::variable("alpha", {{"__init__", bad}});
    CHECK(code_of([&] { Initializer::create("one", {}, 0)->apply(&wrong, {arrays[0]}); }) != Code(0));
  }
}

// Numbers of MXNet 1.9.1.
TEST(bilinear_weights_are_kernels_of_interpolation) {
  const std::vector<double> four = fill("bilinear", {}, Shape{2, 1, 4, 4}),
                            three = fill("Bilinear", {}, Shape{1, 1, 2, 3});
  const double row[] = {0.0625, 0.1875, 0.1875, 0.0625};
  for (size_t i = 0; i < 32; ++i) CHECK_EQ(four[i], row[i % 4] * (i / 4 % 4 % 3 == 0 ? 1 : 3));
  CHECK(three == (std::vector<double>{0.0625, 0.1875, 0.1875, 0.1875, 0.5625, 0.5625}));
  CHECK(code_of([] { fill("bilinear", {}, Shape{4, 4}); }) == Code::kShape);
}

// Two layers of two lstm cells each over 5 inputs, as MXNet's FusedRNNCell asks for them.
TEST(packed_layers_are_filled_matrix_by_matrix) {
  const std::string settings =
      R"("num_hidden": 3, "num_layers": 2, "mode": "lstm", "bidirectional": true, "forget_bias": 2.0)";
  const Shape shape{2 * 12 * (5 + 3 + 2) + 2 * 12 * (6 + 3 + 2)};
  for (const char *init : {"null", R"("[\"xavier\", {}]")"}) {
    const Symbol symbol =
        Symbol::variable("p", {{"__init__", R"(["fusedrnn", {"init": )" + std::string(init) + ", " + settings + "}]"}});
    const NamedArrays arrays = {{"p", blank(shape)}};
    Initializer::create("xavier", {}, 1)->apply(&symbol, arrays);
    const std::vector<double> values = values_of(arrays[0].second);
    const size_t weights = 2 * 12 * (5 + 3 + 6 + 3);
    double largest = 0;
    for (size_t i = 0; i < 15; ++i) largest = std::max(largest, std::fabs(values[i]));
    CHECK(largest > 0.4 && largest <= std::sqrt(3 / 4.0));  // of 3 rows and 5 columns: each gate separately
    for (size_t i = 0; i < weights; ++i) CHECK(values[i] != 0 && std::fabs(values[i]) <= 1);
    for (size_t i = weights; i < values.size(); ++i) CHECK_EQ(values[i], (i - weights) / 3 % 4 == 1 ? 2.0 : 0.0);
  }
  CHECK(code_of([&] {
          fill("fusedrnn", {{"num_hidden", "3"}, {"num_layers", "2"}, {"mode", "lstm"}}, shape);
        }) == Code::kInvalidArgument);  // no inner initializer
  const AttrMap inside{{"init", "zeros"}, {"num_hidden", "3"}, {"num_layers", "2"}, {"mode", "gru"}};
  CHECK(code_of([&] { fill("fusedrnn", inside, Shape{7}); }) == Code::kShape);
}

TEST(what_is_wrong_with_an_init_attribute_names_the_parameter) {
  const Symbol wrong = Symbol::variable("up_weight", {{"__init__", R"(["trilinear", {}])"}});
  const NamedArrays arrays = {{"up_weight", blank(Shape{2, 2})}};
  CHECK_THROWS(Initializer::create("one", {}, 0)->apply(&wrong, arrays), Error,
               "__init__ of 'up_weight': there is no initializer 'trilinear'");
}

TEST(unknown_initializers_and_settings_are_named) {
  CHECK_THROWS(Initializer::create("glorot", {}, 0), Error, "'glorot'");
  CHECK_THROWS(Initializer::create("uniform", {{"sigma", "1"}}, 0), Error, "no setting 'sigma'");
  CHECK(code_of([] { Initializer::create("xavier", {{"rnd_type", "normal"}}, 0); }) == Code::kInvalidArgument);
}

UNIT_MAIN()
