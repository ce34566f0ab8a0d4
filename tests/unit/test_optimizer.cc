// SPDX-License-Identifier: Apache-2.0
// Optimizers against their formulas in double precision, schedules, multipliers, and states saved and loaded.
#include "optimizer/optimizer.hpp"

#include <cmath>
#include <cstring>
#include <functional>

#include "base/error.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

constexpr int64_t kSize = 37;

double gradient_at(int64_t i, int step) { return double(float(0.3 * std::sin(double(i) + 1.7 * step))); }
double weight_at(int64_t i) { return double(float(0.5 * std::cos(double(i)))); }

NDArray filled(const std::function<double(int64_t)> &value, Dtype dtype = Dtype::kFloat64) {
  std::vector<double> values;
  for (int64_t i = 0; i < kSize; ++i) values.push_back(value(i));
  const NDArray array = NDArray::create(Shape{kSize}, Dtype::kFloat64, Context());
  array.write(values.data(), values.size() * sizeof(double));
  return dtype == Dtype::kFloat64 ? array : array.cast(dtype);
}

std::vector<double> values_of(const NDArray &array) {
  std::vector<double> values(static_cast<size_t>(array.size()));
  const NDArray wide = array.cast(Dtype::kFloat64);
  wide.read(values.data(), values.size() * sizeof(double));
  return values;
}

double element_of(const NDArray &array, size_t index) { return values_of(array)[index]; }

// One element's state, and the formula that changes weight and state from a gradient at step t = 1, 2, ...
struct Element {
  double w = 0, a = 0, b = 0, c = 0;
};
using Formula = std::function<void(Element &, double g, int t)>;

// Compares five updates of float64 arrays with the formula. wd applies, because the name ends in _weight.
void check_formula(const std::string &name, const AttrMap &settings, const Formula &formula) {
  const auto optimizer = Optimizer::create(name, settings);
  const NDArray weight = filled(weight_at);
  std::vector<Element> expected(kSize);
  for (int64_t i = 0; i < kSize; ++i) expected[size_t(i)].w = weight_at(i);
  for (int step = 0; step < 5; ++step) {
    optimizer->update("x_weight", 0, weight, filled([&](int64_t i) { return gradient_at(i, step); }));
    for (int64_t i = 0; i < kSize; ++i) formula(expected[size_t(i)], gradient_at(i, step), step + 1);
  }
  const std::vector<double> found = values_of(weight);
  for (size_t i = 0; i < found.size(); ++i) CHECK_NEAR(found[i], expected[i].w, 2e-6);
}

double limited(double x, double limit) { return std::max(-limit, std::min(limit, x)); }

Code code_of(const std::function<void()> &call) {
  try {
    call();
  } catch (const Error &error) {
    return error.code();
  }
  return Code(0);
}

}  // namespace

TEST(sgd_follows_its_formula) {
  check_formula("sgd", {{"learning_rate", "0.1"}, {"wd", "0.01"}},
                [](Element &e, double g, int) { e.w -= 0.1 * (g + 0.01 * e.w); });
  check_formula("SGD", {{"learning_rate", "0.1"}, {"rescale_grad", "2"}, {"clip_gradient", "0.25"}},
                [](Element &e, double g, int) { e.w -= 0.1 * limited(2 * g, 0.25); });
}

TEST(momentum_follows_its_formula) {
  check_formula("sgd", {{"learning_rate", "0.1"}, {"momentum", "0.9"}, {"wd", "0.02"}, {"clip_gradient", "0.2"}},
                [](Element &e, double g, int) {
                  e.a = 0.9 * e.a - 0.1 * (limited(g, 0.2) + 0.02 * e.w);
                  e.w += e.a;
                });
}

TEST(nag_follows_its_formula) {
  check_formula("nag", {{"learning_rate", "0.1"}, {"momentum", "0.8"}, {"wd", "0.02"}}, [](Element &e, double g, int) {
    const double d = g + 0.02 * e.w;
    e.a = 0.8 * e.a - 0.1 * d;
    e.w += 0.8 * e.a - 0.1 * d;
  });
}

TEST(adam_corrects_its_bias) {
  check_formula("adam", {{"learning_rate", "0.01"}, {"rescale_grad", "0.5"}}, [](Element &e, double g, int t) {
    g *= 0.5;
    e.a = 0.9 * e.a + 0.1 * g;
    e.b = 0.999 * e.b + 0.001 * g * g;
    const double lr = 0.01 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    e.w -= lr * e.a / (std::sqrt(e.b) + 1e-8);
  });
}

TEST(adamw_decays_apart_from_the_gradient) {
  check_formula("adamw", {{"learning_rate", "0.01"}, {"wd", "0.1"}, {"rescale_grad", "0.5"}},
                [](Element &e, double g, int t) {
                  g *= 0.5;
                  e.a = 0.9 * e.a + 0.1 * g;
                  e.b = 0.999 * e.b + 0.001 * g * g;
                  const double correction = std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
                  e.w -= 0.01 * (correction * e.a / (std::sqrt(e.b) + 1e-8) + 0.1 * e.w);
                });
}

TEST(rmsprop_follows_its_formula_plain_and_centred) {
  check_formula("rmsprop", {{"learning_rate", "0.01"}, {"gamma1", "0.9"}, {"clip_weights", "0.4"}},
                [](Element &e, double g, int) {
                  e.a = 0.9 * e.a + 0.1 * g * g;
                  e.w = limited(e.w - 0.01 * g / std::sqrt(e.a + 1e-8), 0.4);
                });
  check_formula("rmsprop", {{"learning_rate", "0.01"}, {"centered", "True"}, {"epsilon", "0.001"}},
                [](Element &e, double g, int) {
                  e.a = 0.9 * e.a + 0.1 * g * g;
                  e.b = 0.9 * e.b + 0.1 * g;
                  e.c = 0.9 * e.c - 0.01 * g / std::sqrt(e.a - e.b * e.b + 0.001);
                  e.w += e.c;
                });
}

TEST(adagrad_follows_its_formula) {
  check_formula("adagrad", {{"learning_rate", "0.05"}, {"wd", "0.01"}}, [](Element &e, double g, int) {
    e.a += g * g;
    e.w -= 0.05 * (g / std::sqrt(e.a + 1e-7) + 0.01 * e.w);
  });
}

TEST(signum_follows_its_formula) {
  check_formula("signum", {{"learning_rate", "0.05"}, {"wd_lh", "0.1"}}, [](Element &e, double g, int) {
    e.a = 0.9 * e.a - 0.1 * g;
    e.w = (1 - 0.05 * 0.1) * e.w + 0.05 * (e.a > 0 ? 1 : e.a < 0 ? -1 : 0);
  });
}

// Weights after the first and the fourth update, from MXNet 1.9.1's optimizers.
TEST(ftrl_ftml_and_ccsgd_go_as_mxnet_s_do) {
  const AttrMap common{{"learning_rate", "0.2"}, {"wd", "0.1"}, {"rescale_grad", "0.5"}, {"clip_gradient", "0.4"}};
  AttrMap ftrl = common, ftml = common;
  ftrl.insert({{"lamda1", "0.05"}, {"beta", "2"}});
  ftml.insert({{"beta1", "0.5"}, {"beta2", "0.99"}, {"epsilon", "1e-6"}});
  const struct {
    const char *name;
    AttrMap settings;
    double first[4], fourth[4];
  } cases[] = {
      {"ftrl",
       {},
       {0.29933330, -0.94949996, 0.26633331, -0.01920000},
       {0.34080380, -1.00686467, 0.33731753, 0.00608978}},
      {"ftrl",
       ftrl,
       {0.08370043, -0.29338843, 0.04545455, -0.00699301},
       {0.11462571, -0.33325258, 0.08473040, 0.00091736}},
      {"ftml",
       {},
       {0.98999995, -1.99000001, 0.49000001, -0.01000000},
       {0.99848849, -1.99848831, 0.49848837, -0.00151161}},
      {"ftml",
       ftml,
       {0.80000055, -1.80000043, 0.30000052, -0.19999839},
       {0.86877871, -1.84911466, 0.43137085, 0.05132829}},
      {"ccsgd",
       {{"learning_rate", "0.2"}, {"wd", "0.1"}, {"momentum", "0.9"}},
       {0.88, -1.76, 0.09, -0.05},
       {0.65157133, -1.30314267, -0.27945942, -0.08646359}},
  };
  const float start[] = {1, -2, 0.5f, 0}, slope[] = {0.5f, -1, 2, 0.25f};
  for (const auto &known : cases) {
    const auto optimizer = Optimizer::create(known.name, known.settings);
    const NDArray weight = NDArray::create(Shape{4}, Dtype::kFloat32, Context());
    weight.write(start, sizeof start);
    for (int step = 0; step < 4; ++step) {
      float grad[4];
      for (int i = 0; i < 4; ++i) grad[i] = slope[i] * (1 - 0.75f * float(step));
      const NDArray given = NDArray::create(Shape{4}, Dtype::kFloat32, Context());
      given.write(grad, sizeof grad);
      optimizer->update("x_weight", 0, weight, given);
      for (size_t i = 0; i < 4; ++i) {
        if (step == 0) CHECK_NEAR(element_of(weight, i), known.first[i], 2e-6);
        if (step == 3) CHECK_NEAR(element_of(weight, i), known.fourth[i], 2e-6);
      }
    }
  }
}

TEST(half_floats_with_multi_precision_do_not_lose_small_steps) {
  for (Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16}) {
    const auto optimizer = Optimizer::create("sgd", {{"learning_rate", "0.0001"}, {"multi_precision", "1"}});
    const NDArray weight = filled([](int64_t) { return 1; }, dtype), grad = filled([](int64_t) { return 0.5; }, dtype);
    for (int step = 0; step < 400; ++step) optimizer->update("x_weight", 0, weight, grad);
    CHECK_NEAR(element_of(weight, 5), 1 - 400 * 0.0001 * 0.5, 0.004);
    const auto rough = Optimizer::create("sgd", {{"learning_rate", "0.0001"}});
    const NDArray stuck = filled([](int64_t) { return 1; }, dtype);
    for (int step = 0; step < 400; ++step) rough->update("x_weight", 0, stuck, grad);
    CHECK_NEAR(element_of(stuck, 5), 1, 1e-12);
  }
}

TEST(copies_have_states_of_their_own) {
  const auto optimizer = Optimizer::create("sgd", {{"learning_rate", "1"}, {"momentum", "1"}});
  const NDArray first = filled([](int64_t) { return 0; }), second = filled([](int64_t) { return 0; });
  const NDArray one = filled([](int64_t) { return 1; }), zero = filled([](int64_t) { return 0; });
  optimizer->update("x", 0, first, one);
  optimizer->update("x", 1, second, zero);
  optimizer->update("x", 1, second, one);
  CHECK_EQ(element_of(first, 0), -1.0);
  CHECK_EQ(element_of(second, 0), -1.0);
  CHECK_EQ(optimizer->get("num_update"), 2.0);
}

TEST(multipliers_come_from_calls_symbol_and_name) {
  const auto optimizer = Optimizer::create("sgd", {{"learning_rate", "0.5"}, {"wd", "0.25"}});
  CHECK_EQ(optimizer->wd_mult("fc_weight"), 1.0);
  CHECK_EQ(optimizer->wd_mult("bn_gamma"), 1.0);
  CHECK_EQ(optimizer->wd_mult("fc_bias"), 0.0);
  CHECK_EQ(optimizer->lr_mult("fc_bias"), 1.0);
  optimizer->use_symbol(Symbol::group(
      {Symbol::variable("fc_bias", {{"__lr_mult__", "2.0"}, {"__wd_mult__", "3"}}), Symbol::variable("fc_weight")}));
  CHECK_EQ(optimizer->lr_mult("fc_bias"), 2.0);
  CHECK_EQ(optimizer->wd_mult("fc_bias"), 3.0);
  optimizer->set_mult("fc_bias", 0.5, -1);
  CHECK_EQ(optimizer->lr_mult("fc_bias"), 0.5);
  CHECK_EQ(optimizer->wd_mult("fc_bias"), 3.0);
  const NDArray weight = filled([](int64_t) { return 2; });
  optimizer->update("fc_bias", 0, weight, filled([](int64_t) { return 1; }));
  CHECK_NEAR(element_of(weight, 0), 2 - 0.25 * (1 + 0.75 * 2), 1e-7);
  optimizer->set_mult("fc_bias", -1, 0);
  optimizer->update("fc_bias", 0, weight, filled([](int64_t) { return 1; }));
  CHECK_NEAR(element_of(weight, 0), 2 - 0.625 - 1, 1e-7);
}

namespace {

// The learning rates of updates 1 to n.
std::vector<double> rates(const std::string &schedule, const AttrMap &settings, int n) {
  const auto optimizer = Optimizer::create("sgd", {{"learning_rate", "1"}});
  optimizer->set_lr_schedule(schedule, settings);
  std::vector<double> result;
  const NDArray weight = filled([](int64_t) { return 0; }), one = filled([](int64_t) { return 1; });
  for (int i = 0; i < n; ++i) {
    const double announced = optimizer->get("learning_rate"), before = element_of(weight, 0);
    optimizer->update("x", 0, weight, one);
    result.push_back(before - element_of(weight, 0));
    CHECK_NEAR(result.back(), announced, 1e-6);
  }
  return result;
}

void check_rates(const std::vector<double> &found, const std::vector<double> &expected) {
  for (size_t i = 0; i < expected.size(); ++i) CHECK_NEAR(found[i], expected[i], 1e-6);
}

}  // namespace

TEST(schedules_count_updates_as_mxnet_does) {
  check_rates(rates("factor", {{"step", "2"}, {"factor", "0.5"}}, 6), {1, 1, .5, .5, .25, .25});
  check_rates(rates("factor", {{"step", "1"}, {"factor", "0.1"}, {"stop_factor_lr", "0.05"}}, 4), {1, .1, .05, .05});
  check_rates(rates("MultiFactor", {{"step", "(1, 3)"}, {"factor", "0.5"}}, 5), {1, .5, .5, .25, .25});
  check_rates(rates("poly", {{"max_update", "4"}, {"pwr", "2"}}, 5), {.5625, .25, .0625, 0, 0});
  check_rates(rates("cosine", {{"max_update", "4"}, {"final_lr", "0.2"}}, 5),
              {.2 + .4 * (1 + std::cos(M_PI / 4)), .6, .2 + .4 * (1 + std::cos(M_PI * 3 / 4)), .2, .2});
  check_rates(rates("constant", {}, 2), {1, 1});
}

TEST(schedules_warm_up) {
  check_rates(rates("constant", {{"warmup_steps", "4"}, {"warmup_begin_lr", "0.2"}}, 5), {.4, .6, .8, 1, 1});
  check_rates(rates("factor",
                    {{"step", "2"},
                     {"factor", "0.5"},
                     {"warmup_steps", "2"},
                     {"warmup_mode", "constant"},
                     {"warmup_begin_lr", "0.1"}},
                    4),
              {.1, 1, .5, .5});
  check_rates(rates("poly", {{"max_update", "4"}, {"pwr", "1"}, {"warmup_steps", "2"}}, 4), {.5, 1, .5, 0});
}

TEST(a_schedule_decides_the_learning_rate) {
  const auto optimizer = Optimizer::create("sgd", {});
  optimizer->set("learning_rate", 0.25);
  optimizer->set_lr_schedule("factor", {{"step", "1"}, {"factor", "0.5"}});
  CHECK(code_of([&] { optimizer->set("learning_rate", 1); }) == Code::kState);
  optimizer->set_lr_schedule("", {});
  optimizer->set("learning_rate", 1);
  CHECK_EQ(optimizer->get("learning_rate"), 1.0);
  CHECK(code_of([&] { optimizer->set_lr_schedule("steps", {}); }) == Code::kName);
  CHECK(code_of([&] { optimizer->set_lr_schedule("factor", {{"step", "0"}}); }) == Code::kInvalidArgument);
  CHECK(code_of([&] { optimizer->set_lr_schedule("multifactor", {{"step", "(2, 2)"}}); }) == Code::kInvalidArgument);
  CHECK(code_of([&] {
          optimizer->set_lr_schedule("poly", {{"max_update", "3"}, {"warmup_steps", "3"}});
        }) == Code::kInvalidArgument);
  CHECK(code_of([&] { optimizer->set_lr_schedule("poly", {{"max_update", "3"}, {"power", "3"}}); }) == Code::kName);
}

TEST(settings_are_checked) {
  CHECK_THROWS(Optimizer::create("sgdd", {}), Error, "'sgdd'");
  CHECK_THROWS(Optimizer::create("sgd", {{"moment", "1"}}), Error, "no setting 'moment'");
  CHECK(code_of([] { Optimizer::create("adam", {{"beta1", "1"}}); }) == Code::kInvalidArgument);
  CHECK(code_of([] { Optimizer::create("sgd", {{"learning_rate", "fast"}}); }) == Code::kInvalidArgument);
  const auto optimizer = Optimizer::create("sgd", {{"clip_gradient", "None"}});
  CHECK_EQ(optimizer->get("clip_gradient"), -1.0);
  CHECK(code_of([&] { optimizer->get("beta1"); }) == Code::kName);
  CHECK(code_of([&] { optimizer->set("momentum", std::nan("")); }) == Code::kInvalidArgument);
  const NDArray weight = filled(weight_at);
  CHECK(code_of([&] { optimizer->update("x", 0, weight, weight.cast(Dtype::kFloat32)); }) == Code::kDtype);
  CHECK(code_of([&] { optimizer->update("x", 0, weight, weight.reshape(Shape{1, kSize})); }) == Code::kShape);
}

TEST(a_setting_changed_later_holds_from_then_on) {
  const auto optimizer = Optimizer::create("sgd", {{"learning_rate", "1"}});
  const NDArray weight = filled([](int64_t) { return 0; }), one = filled([](int64_t) { return 1; });
  optimizer->update("x", 0, weight, one);
  optimizer->set("momentum", 0.5);  // creates a state, of zeros
  optimizer->update("x", 0, weight, one);
  optimizer->update("x", 0, weight, one);
  CHECK_NEAR(element_of(weight, 0), -1 - 1 - 1.5, 1e-7);
  const auto adamw = Optimizer::create("adamw", {{"learning_rate", "1"}});
  const NDArray other = filled([](int64_t) { return 0; });
  adamw->set("rescale_grad", 0.0);  // the operator then does nothing
  adamw->update("x", 0, other, one);
  CHECK_EQ(element_of(other, 0), 0.0);
}

namespace {

struct Training {
  std::shared_ptr<Optimizer> optimizer;
  NDArray a = filled(weight_at, Dtype::kFloat32), b = filled(weight_at, Dtype::kFloat32);
  explicit Training(const std::string &name = "adam") : optimizer(Optimizer::create(name, {{"learning_rate", "0.1"}})) {
    optimizer->set_lr_schedule("factor", {{"step", "3"}, {"factor", "0.5"}});
  }
  void run(int begin, int end) {
    for (int step = begin; step < end; ++step) {
      const NDArray grad = filled([&](int64_t i) { return gradient_at(i, step); }, Dtype::kFloat32);
      optimizer->update("a_weight", 0, a, grad);
      optimizer->update("b_bias", 0, b, grad);
    }
  }
};

}  // namespace

TEST(saved_states_go_on_bit_by_bit) {
  Training whole, first;
  whole.run(0, 9);
  first.run(0, 4);
  const std::string bytes = first.optimizer->save_states();
  CHECK_EQ(bytes, first.optimizer->save_states());
  Training second;
  second.a.copy_from(first.a);
  second.b.copy_from(first.b);
  second.optimizer->load_states(bytes.data(), bytes.size(), "test");
  CHECK_EQ(second.optimizer->save_states(), bytes);
  CHECK_EQ(second.optimizer->get("num_update"), 4.0);
  second.run(4, 9);
  CHECK(values_of(second.a) == values_of(whole.a));
  CHECK(values_of(second.b) == values_of(whole.b));
}

TEST(states_of_one_copy_serve_several) {
  const auto save = [](size_t num_copies) {
    const auto optimizer = Optimizer::create("sgd", {{"momentum", "0.5"}, {"learning_rate", "1"}});
    for (size_t c = 0; c < num_copies; ++c) {
      optimizer->update("x", c, filled([](int64_t) { return 0; }), filled([](int64_t) { return 2; }));
    }
    return optimizer->save_states();
  };
  for (size_t saved : {size_t(1), size_t(3)}) {
    const std::string bytes = save(saved);
    const auto optimizer = Optimizer::create("sgd", {{"momentum", "0.5"}, {"learning_rate", "1"}});
    optimizer->load_states(bytes.data(), bytes.size(), "test");
    const NDArray second = filled([](int64_t) { return 0; });
    optimizer->update("x", 1, second, filled([](int64_t) { return 0; }));
    CHECK_NEAR(element_of(second, 0), -1, 1e-7);
  }
}

TEST(damaged_states_are_refused_and_change_nothing) {
  Training training;
  training.run(0, 2);
  const std::string good = training.optimizer->save_states();
  for (size_t length = 0; length < good.size(); length += length < 120 ? 1 : 37) {
    CHECK(code_of([&] { training.optimizer->load_states(good.data(), length, "short"); }) == Code::kFormat);
  }
  for (size_t at = 0; at < good.size(); at += at < 200 ? 1 : 11) {
    std::string bad = good;
    bad[at] = char(bad[at] ^ 0xff);
    // A changed number may be valid, too; a crash or another kind of error must not happen.
    const Code code = code_of([&] { Training().optimizer->load_states(bad.data(), bad.size(), "bad"); });
    CHECK(code == Code::kFormat || code == Code(0) || code == Code::kUnsupported);
  }
  CHECK_EQ(training.optimizer->save_states(), good);
  Training other("sgd");
  CHECK_THROWS(other.optimizer->load_states(good.data(), good.size(), "other"), Error, "saved by 'adam'");
}

TEST(loaded_states_of_another_shape_are_refused) {
  Training training;
  training.run(0, 1);
  const std::string bytes = training.optimizer->save_states();
  const auto optimizer = Optimizer::create("adam", {});
  optimizer->load_states(bytes.data(), bytes.size(), "test");
  const NDArray weight = NDArray::create(Shape{3}, Dtype::kFloat32, Context());
  CHECK_THROWS(optimizer->update("a_weight", 0, weight, weight.copy_to(Context())), Error, "a state of 'a_weight'");
}

UNIT_MAIN()
