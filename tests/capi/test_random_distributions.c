/* SPDX-License-Identifier: Apache-2.0 */
/* Random operators draw from the distributions they name. Seeds are fixed, so that a test always passes or never. The
 * bounds are exceeded by one sample in a thousand. */
#include <math.h>

#include "support/executor_tests.h"

#define MOST 20000
#define LENGTH "20000"

static double numbers[MOST];

#define ARRAYS(...) \
  (cohort_ndarray *const[]) { __VA_ARGS__, NULL }
#define NO_ARRAYS \
  (cohort_ndarray *const[]) { NULL }

/* Applies an operator with keys and values alternately to arrays, which are freed. */
static cohort_error *apply(const char *op, const char *const *attrs, cohort_ndarray *const *inputs, uint64_t seed,
                           cohort_arrays **outputs) {
  cohort_invoke_options options = COHORT_INVOKE_OPTIONS_INIT;
  const char *keys[8], *values[8];
  cohort_error *error;
  size_t num_attrs = 0, num_inputs = 0, i;

  options.seed = seed;
  for (; attrs[2 * num_attrs]; ++num_attrs) {
    keys[num_attrs] = attrs[2 * num_attrs];
    values[num_attrs] = attrs[2 * num_attrs + 1];
  }
  while (inputs[num_inputs]) ++num_inputs;
  error = cohort_operator_invoke(op, keys, values, num_attrs, inputs, num_inputs, NULL, 0, &options, outputs);
  for (i = 0; i < num_inputs; ++i) cohort_ndarray_free(inputs[i]);
  return error;
}

/* Reads output `index` as doubles into `numbers`; returns their number. */
static size_t drawn_at(size_t index, const char *op, const char *const *attrs, cohort_ndarray *const *inputs,
                       uint64_t seed) {
  cohort_arrays *outputs = NULL;
  cohort_ndarray *found = NULL, *wide = NULL;
  int64_t size = 0;

  ok(apply(op, attrs, inputs, seed, &outputs));
  ok(cohort_arrays_get(outputs, index, &found));
  ok(cohort_ndarray_cast(found, COHORT_DTYPE_FLOAT64, &wide));
  ok(cohort_ndarray_size(wide, &size));
  assert_true(size <= MOST);
  ok(cohort_ndarray_read(wide, numbers, (size_t)size * sizeof(double)));
  cohort_ndarray_free(found);
  cohort_ndarray_free(wide);
  cohort_arrays_free(outputs);
  return (size_t)size;
}

static size_t drawn(const char *op, const char *const *attrs, cohort_ndarray *const *inputs, uint64_t seed) {
  return drawn_at(0, op, attrs, inputs, seed);
}

static void refused(const char *op, const char *const *attrs, int32_t code, const char *words) {
  cohort_arrays *outputs = NULL;

  fails(apply(op, attrs, NO_ARRAYS, 0, &outputs), code, words);
  assert_null(outputs);
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

/* ---- distributions ----------------------------------------------------------------------------------------------- */

typedef double (*Below)(double x, double a, double b); /* the probability of at most x */

static double below_uniform(double x, double a, double b) { return x < a ? 0 : x > b ? 1 : (x - a) / (b - a); }
static double below_normal(double x, double a, double b) { return 0.5 * erfc((a - x) / b * 0.70710678118654752); }
static double below_exponential(double x, double a, double b) {
  (void)b;
  return x < 0 ? 0 : 1 - exp(-a * x);
}

/* The incomplete gamma function, by its series or its continued fraction. */
static double below_gamma(double x, double a, double b) {
  double z = x / b, sum = 1 / a, term = sum, n, front, fraction, c, d;

  if (z <= 0) return 0;
  front = exp(a * log(z) - z - lgamma(a));
  if (z < a + 1) {
    for (n = a + 1; term > sum * 1e-15; n += 1) sum += term *= z / n;
    return front * sum;
  }
  c = 1e300;
  d = 1 / (z + 1 - a);
  fraction = d;
  for (n = 1; n < 10000; n += 1) {
    const double an = -n * (n - a), bn = z + 2 * n + 1 - a;

    d = 1 / (an * d + bn);
    c = bn + an / c;
    fraction *= c * d;
    if (fabs(c * d - 1) < 1e-14) break;
  }
  return 1 - front * fraction;
}

static double poisson_at(double k, double a, double b) {
  (void)b;
  return exp(k * log(a) - a - lgamma(k + 1));
}
static double negative_binomial_at(double k, double a, double b) {
  return exp(lgamma(k + a) - lgamma(k + 1) - lgamma(a) + a * log(b) + k * log1p(-b));
}
static double generalized_at(double k, double a, double b) { return negative_binomial_at(k, 1 / b, 1 / (a * b + 1)); }

/* Kolmogorov-Smirnov: the largest difference between the empirical and the expected distribution function. */
static void follows(const char *what, size_t count, Below below, double a, double b) {
  double largest = 0;
  size_t i;

  qsort(numbers, count, sizeof *numbers, ascending);
  for (i = 0; i < count; ++i) {
    const double expected = below(numbers[i], a, b);

    largest = fmax(largest, fmax((double)(i + 1) / (double)count - expected, expected - (double)i / (double)count));
  }
  if (!(largest * sqrt((double)count) < 1.95)) fail_msg("%s: a distance of %g for %zu numbers", what, largest, count);
}

/* Chi-square over counted cells; cells with an expectation below ten are merged with their neighbours. */
static void cells_are(const char *what, const double *found, const double *expected, size_t num_cells) {
  double statistic = 0, sum_found = 0, sum_expected = 0;
  size_t cells = 0, i;

  for (i = 0; i < num_cells; ++i) {
    sum_found += found[i];
    sum_expected += expected[i];
    if (sum_expected < 10 && i + 1 < num_cells) continue;
    if (sum_expected > 0) statistic += (sum_found - sum_expected) * (sum_found - sum_expected) / sum_expected;
    ++cells;
    sum_found = sum_expected = 0;
  }
  /* The Wilson-Hilferty approximation of the bound that one in a thousand exceeds. */
  {
    const double df = (double)cells - 1, root = 1 - 2 / (9 * df) + 3.09 * sqrt(2 / (9 * df));

    assert_true(df > 0);
    if (!(statistic < df * root * root * root)) fail_msg("%s: %g for %g degrees of freedom", what, statistic, df);
  }
}

/* Integers with these probabilities. */
static void counts_follow(const char *what, size_t count, double (*at)(double, double, double), double a, double b) {
  enum { MOST_CELLS = 4096 };
  static double found[MOST_CELLS], expected[MOST_CELLS];
  double least, all = 0;
  size_t i, num_cells;

  qsort(numbers, count, sizeof *numbers, ascending);
  least = numbers[0];
  assert_true(numbers[count - 1] - least < MOST_CELLS - 1);
  num_cells = (size_t)(numbers[count - 1] - least) + 1;
  memset(found, 0, sizeof found);
  for (i = 0; i < count; ++i) {
    assert_true(numbers[i] == floor(numbers[i]) && numbers[i] >= 0);
    ++found[(size_t)(numbers[i] - least)];
  }
  for (i = 0; i < num_cells; ++i) all += expected[i] = (double)count * at(least + (double)i, a, b);
  expected[num_cells - 1] += fmax((double)count - all, 0) / 2; /* the tails on both sides */
  expected[0] += fmax((double)count - all, 0) / 2;
  cells_are(what, found, expected, num_cells);
}

static void continuous_numbers_follow_their_distributions(void **state) {
  static const char *const shapes[] = {"0.05", "0.5", "1", "2.5", "1000"};
  size_t n, i;

  (void)state;
  n = drawn("_random_uniform", ATTRS("low", "-3", "high", "5", "shape", "(" LENGTH ",)"), NO_ARRAYS, 1);
  follows("uniform", n, below_uniform, -3, 5);
  n = drawn("uniform", ATTRS("shape", "(100, 200)", "dtype", "float64"), NO_ARRAYS, 2);
  follows("uniform float64", n, below_uniform, 0, 1);
  n = drawn("_random_normal", ATTRS("loc", "2", "scale", "3", "shape", "(" LENGTH ",)"), NO_ARRAYS, 3);
  follows("normal", n, below_normal, 2, 3);
  n = drawn("normal", ATTRS("shape", "(" LENGTH ",)", "dtype", "float64"), NO_ARRAYS, 4);
  follows("normal float64", n, below_normal, 0, 1);
  n = drawn("_random_exponential", ATTRS("lam", "4", "shape", "(" LENGTH ",)"), NO_ARRAYS, 5);
  follows("exponential", n, below_exponential, 4, 0);
  for (i = 0; i < COUNT(shapes); ++i) {
    n = drawn("_random_gamma", ATTRS("alpha", shapes[i], "beta", "2", "shape", "(" LENGTH ",)", "dtype", "float64"),
              NO_ARRAYS, 6 + i);
    follows(shapes[i], n, below_gamma, (double)strtof(shapes[i], NULL), 2);
  }
}

static void counts_follow_their_distributions(void **state) {
  static const char *const means[] = {"0.01", "0.7", "9.99", "10", "35", "4000"};
  size_t n, i;

  (void)state;
  for (i = 0; i < COUNT(means); ++i) {
    n = drawn("_random_poisson", ATTRS("lam", means[i], "shape", "(" LENGTH ",)"), NO_ARRAYS, i);
    counts_follow(means[i], n, poisson_at, (double)strtof(means[i], NULL), 0);
  }
  n = drawn("_random_negative_binomial", ATTRS("k", "3", "p", "0.25", "shape", "(" LENGTH ",)"), NO_ARRAYS, 11);
  counts_follow("negative binomial", n, negative_binomial_at, 3, 0.25);
  n = drawn("_random_negative_binomial", ATTRS("k", "200", "p", "0.5", "shape", "(" LENGTH ",)"), NO_ARRAYS, 12);
  counts_follow("negative binomial, large", n, negative_binomial_at, 200, 0.5);
  n = drawn("_random_generalized_negative_binomial", ATTRS("mu", "5", "alpha", "0.5", "shape", "(" LENGTH ",)"),
            NO_ARRAYS, 13);
  counts_follow("generalized", n, generalized_at, 5, 0.5);
  n = drawn("_random_generalized_negative_binomial", ATTRS("mu", "5", "alpha", "0", "shape", "(" LENGTH ",)"),
            NO_ARRAYS, 14);
  counts_follow("generalized without dispersion", n, poisson_at, 5, 0);
}

static double one_of_seven(double x, double a, double b) {
  (void)a, (void)b;
  return x >= 0 && x < 7 ? 1.0 / 7 : 0;
}

static void integers_are_all_of_one_probability(void **state) {
  size_t n = drawn("_random_randint", ATTRS("low", "-3", "high", "4", "shape", "(" LENGTH ",)"), NO_ARRAYS, 1), i;
  cohort_arrays *outputs = NULL;
  cohort_ndarray *found = NULL;
  int64_t one = 0;

  (void)state;
  for (i = 0; i < n; ++i) numbers[i] += 3;
  counts_follow("randint", n, one_of_seven, 0, 0);
  n = drawn(
      "random_randint",
      ATTRS("low", "-9223372036854775808", "high", "9223372036854775807", "shape", "(" LENGTH ",)", "dtype", "int64"),
      NO_ARRAYS, 2);
  follows("int64", n, below_uniform, -9223372036854775808.0, 9223372036854775808.0);
  ok(apply("_random_randint",
           ATTRS("low", "9223372036854775806", "high", "9223372036854775807", "shape", "(1,)", "dtype", "int64"),
           NO_ARRAYS, 3, &outputs));
  ok(cohort_arrays_get(outputs, 0, &found));
  ok(cohort_ndarray_read(found, &one, sizeof one));
  assert_true(one == INT64_MAX - 1);
  cohort_ndarray_free(found);
  cohort_arrays_free(outputs);
}

/* Each element of the parameters has its own numbers. */
static void parameters_may_be_arrays(void **state) {
  static double all[MOST];
  size_t n = drawn("_sample_normal", ATTRS("shape", "(50, 100)"),
                   ARRAYS(floats(SHAPE(2, 2), FLOATS(0, 1, -5, 1e6f)), floats(SHAPE(2, 2), FLOATS(1, 2, 0.5f, 10))), 1);
  static const double mu[] = {0, 1, -5, 1e6}, sigma[] = {1, 2, 0.5, 10};
  size_t i;

  (void)state;
  assert_int_equal(n, 20000);
  memcpy(all, numbers, sizeof all);
  for (i = 0; i < 4; ++i) {
    memcpy(numbers, all + i * 5000, 5000 * sizeof *numbers);
    follows("normal", 5000, below_normal, mu[i], sigma[i]);
  }
  n = drawn("sample_poisson", ATTRS("shape", "(10000,)", "dtype", "float64"), ARRAYS(floats(SHAPE(2), FLOATS(0, 3))),
            2);
  for (i = 0; i < 10000; ++i) assert_true(numbers[i] == 0);
  memmove(numbers, numbers + 10000, 10000 * sizeof *numbers);
  counts_follow("poisson", 10000, poisson_at, 3, 0);
  n = drawn("_sample_negative_binomial", ATTRS("shape", "(10000,)"),
            ARRAYS(floats(SHAPE(1), FLOATS(2.5f)), floats(SHAPE(1), FLOATS(0.5f))), 3);
  counts_follow("negative binomial", n, negative_binomial_at, 2.5, 0.5);
  n = drawn("_sample_gamma", ATTRS("shape", "(10000,)"),
            ARRAYS(floats(SHAPE(1), FLOATS(0.5f)), floats(SHAPE(1), FLOATS(3))), 4);
  follows("gamma", n, below_gamma, 0.5, 3);
  n = drawn("_random_exponential_like", ATTRS("lam", "2"), ARRAYS(counted(SHAPE(100, 100), 0)), 5);
  follows("like", n, below_exponential, 2, 0);
}

/* Invalid parameters of distributions: refused as attributes, NaN where arrays hold them. */
static void parameters_at_their_ends_have_results_or_are_refused(void **state) {
  static const int32_t wrong = COHORT_ERROR_INVALID_ARGUMENT;
  size_t i;

  (void)state;
  refused("_random_uniform", ATTRS("low", "2", "high", "1", "shape", "(1,)"), wrong, "low <= high");
  refused("_random_uniform", ATTRS("low", "nan", "shape", "(1,)"), wrong, "low");
  refused("_random_uniform", ATTRS("low", "-3e38", "high", "inf", "shape", "(1,)"), wrong, "low");
  refused("_random_normal", ATTRS("scale", "-1", "shape", "(1,)"), wrong, "scale");
  refused("_random_exponential", ATTRS("lam", "0", "shape", "(1,)"), wrong,
          "'lam': expected a number above 0, found 0");
  refused("_random_gamma", ATTRS("alpha", "0", "shape", "(1,)"), wrong, "alpha");
  refused("_random_gamma", ATTRS("beta", "-1", "shape", "(1,)"), wrong, "beta");
  refused("_random_poisson", ATTRS("lam", "-1", "shape", "(1,)"), wrong, "lam");
  refused("_random_negative_binomial", ATTRS("k", "-1", "p", "0.5", "shape", "(1,)"), wrong, "k");
  refused("_random_negative_binomial", ATTRS("k", "1", "p", "0", "shape", "(1,)"), wrong, "p above 0");
  refused("_random_generalized_negative_binomial", ATTRS("mu", "-1", "shape", "(1,)"), wrong, "mu");
  refused("_random_randint", ATTRS("low", "3", "high", "3", "shape", "(1,)"), wrong, "less than high = 3");
  refused("_random_randint", ATTRS("low", "0", "high", "2147483649", "shape", "(1,)"), wrong, "int32");
  refused("_random_uniform", ATTRS("shape", "(-2,)"), COHORT_ERROR_SHAPE, "negative");
  refused("_sample_unique_zipfian", ATTRS("range_max", "4", "shape", "(1, 5)"), wrong, "at least 5 ");
  refused("_sample_unique_zipfian", ATTRS("range_max", "4", "shape", "(5,)"), wrong, "(rows, numbers)");

  assert_int_equal(drawn("_random_normal", ATTRS("loc", "3", "scale", "0", "shape", "(4,)"), NO_ARRAYS, 0), 4);
  for (i = 0; i < 4; ++i) assert_true(numbers[i] == 3);
  drawn("_random_negative_binomial", ATTRS("k", "0", "p", "0.5", "shape", "(4,)"), NO_ARRAYS, 0);
  for (i = 0; i < 4; ++i) assert_true(numbers[i] == 0);
  drawn("_random_generalized_negative_binomial", ATTRS("mu", "0", "shape", "(4,)"), NO_ARRAYS, 0);
  for (i = 0; i < 4; ++i) assert_true(numbers[i] == 0);
  drawn("_random_poisson", ATTRS("lam", "1e30", "shape", "(4,)"), NO_ARRAYS, 0);
  for (i = 0; i < 4; ++i) assert_true(fabs(numbers[i] - 1e30) < 1e24);
  drawn("_sample_exponential", NO_ATTRS, ARRAYS(floats(SHAPE(4), FLOATS(-1, 0, NAN, INFINITY))), 0);
  for (i = 0; i < 4; ++i) assert_true(isnan(numbers[i]));
  drawn("_sample_poisson", NO_ATTRS, ARRAYS(floats(SHAPE(3), FLOATS(-1, NAN, INFINITY))), 0);
  for (i = 0; i < 3; ++i) assert_true(isnan(numbers[i]));
}

/* No number is rounded up to the excluded end of the interval. */
static void uniform_numbers_stay_below_the_end(void **state) {
  size_t n = drawn("_random_uniform", ATTRS("shape", "(" LENGTH ",)", "dtype", "float16"), NO_ARRAYS, 1), i;

  (void)state;
  for (i = 0; i < n; ++i) assert_true(numbers[i] >= 0 && numbers[i] < 1);
}

static void a_seed_gives_its_numbers_again_and_another_one_gives_others(void **state) {
  static const char *const ops[] = {"_random_uniform", "_random_normal", "_random_gamma", "_random_poisson"};
  double first[100];
  size_t i, k, same = 0;

  (void)state;
  for (i = 0; i < COUNT(ops); ++i) {
    const char *const *attrs = i < 2    ? ATTRS("shape", "(100,)")
                               : i == 2 ? ATTRS("shape", "(100,)", "alpha", "0.5")
                                        : ATTRS("shape", "(100,)", "lam", "1000");

    drawn(ops[i], attrs, NO_ARRAYS, 7);
    memcpy(first, numbers, sizeof first);
    drawn(ops[i], attrs, NO_ARRAYS, 7);
    assert_memory_equal(first, numbers, sizeof first);
    drawn(ops[i], attrs, NO_ARRAYS, 8);
    for (k = 0; k < 100; ++k) same += first[k] == numbers[k];
  }
  assert_true(same < 20);
}

/* An executor draws anew in each pass, in inference too; random nodes without inputs are not treated as constants. */
static void each_pass_draws_anew(void **state) {
  int32_t is_train;

  (void)state;
  for (is_train = 0; is_train < 2; ++is_train) {
    cohort_executor *executor =
        simple_bind(node("_random_uniform", "u", ATTRS("shape", "(50,)"), INPUTS(NULL)), no_descs(), NULL);
    float passes[3][50];
    size_t i;

    for (i = 0; i < 3; ++i) {
      cohort_ndarray *out = output_of(executor, 0);

      ok(cohort_executor_forward(executor, is_train));
      ok(cohort_ndarray_read(out, passes[i], sizeof passes[i]));
      cohort_ndarray_free(out);
      assert_true(i == 0 || memcmp(passes[0], passes[i], sizeof passes[0]) != 0);
    }
    cohort_executor_free(executor);
  }
}

/* ---- choices ------------------------------------------------------------------------------------------------------
 */

static double by_tenths(double x, double a, double b) {
  static const double p[] = {0.1, 0, 0.2, 0.7};

  (void)a, (void)b;
  return x < 4 ? p[(size_t)x] : 0;
}

static void classes_are_chosen_by_their_probabilities(void **state) {
  static double chosen[MOST];
  size_t n, i;
#define TENTHS floats(SHAPE(1, 4), FLOATS(0.1f, 0, 0.2f, 0.7f))
  (void)state;
  n = drawn("_sample_multinomial", ATTRS("shape", "(" LENGTH ",)", "get_prob", "True"), ARRAYS(TENTHS), 5);
  for (i = 0; i < n; ++i) assert_true(numbers[i] != 1);
  memcpy(chosen, numbers, sizeof chosen);
  counts_follow("multinomial", n, by_tenths, 0, 0);
  drawn_at(1, "_sample_multinomial", ATTRS("shape", "(" LENGTH ",)", "get_prob", "True"), ARRAYS(TENTHS), 5);
  for (i = 0; i < n; ++i) assert_true(fabs(numbers[i] - log(by_tenths(chosen[i], 0, 0))) < 1e-6);
  assert_int_equal(drawn("sample_multinomial", NO_ATTRS, ARRAYS(floats(SHAPE(2), FLOATS(0, 0.5f))), 1), 1);
  assert_true(numbers[0] == 1); /* the rest up to 1 goes to the last class */
}

/* The gradient of the log probabilities: head / probability, summed over the choices of a class. */
static void chosen_probabilities_pass_gradients_back(void **state) {
  static const float p[] = {0.25f, 0.75f};
  const char *const attrs[] = {"shape", "(10,)", "get_prob", "True", NULL};
  cohort_executor *executor = simple_bind_with(node("_sample_multinomial", "m", attrs, INPUTS(variable("data"))),
                                               desc("data", SHAPE(2), NULL), "write");
  cohort_ndarray *heads[2], *chosen;
  int32_t classes[10];
  float expected[2] = {0, 0};
  int i;

  (void)state;
  set_array(executor, COHORT_EXECUTOR_ARGS, "data", p, 2);
  ok(cohort_executor_forward(executor, 1));
  chosen = output_of(executor, 0);
  ok(cohort_ndarray_read(chosen, classes, sizeof classes));
  heads[0] = chosen;
  heads[1] = counted(SHAPE(10), 1);
  for (i = 0; i < 10; ++i) expected[classes[i]] += (float)i / p[classes[i]];
  assert_true(expected[0] > 0 && expected[1] > 0);
  ok(cohort_executor_backward(executor, heads, 2, 1));
  holds_free(grad_of(executor, "data"), expected[0], expected[1]);
  cohort_ndarray_free(heads[0]);
  cohort_ndarray_free(heads[1]);
  cohort_executor_free(executor);
}

static void all_orders_are_of_one_probability(void **state) {
  double found[6] = {0}, expected[6];
  uint64_t seed;
  size_t i;

  (void)state;
  for (seed = 0; seed < 3000; ++seed) {
    drawn("_shuffle", NO_ATTRS, ARRAYS(floats(SHAPE(3, 2), FLOATS(0, 10, 1, 11, 2, 12))), seed);
    for (i = 0; i < 3; ++i) assert_true(numbers[2 * i + 1] == numbers[2 * i] + 10);
    assert_true(numbers[0] + numbers[2] + numbers[4] == 3);
    ++found[(size_t)numbers[0] * 2 + (numbers[2] > numbers[4])];
  }
  for (i = 0; i < 6; ++i) expected[i] = 500;
  cells_are("orders", found, expected, 6);
  assert_int_equal(drawn("shuffle", NO_ATTRS, ARRAYS(counted(SHAPE(10000), 1)), 1), 10000);
  qsort(numbers, 10000, sizeof *numbers, ascending);
  for (i = 0; i < 10000; ++i) assert_true(numbers[i] == (double)i);
}

static double by_rank(double x, double a, double b) {
  (void)b;
  return x < a ? log((x + 2) / (x + 1)) / log(a + 1) : 0;
}

static void different_numbers_are_chosen_by_rank(void **state) {
  size_t n = drawn("_sample_unique_zipfian", ATTRS("range_max", "50", "shape", "(" LENGTH ", 1)"), NO_ARRAYS, 1), i, k;

  (void)state;
  counts_follow("zipfian", n, by_rank, 50, 0);
  n = drawn("_sample_unique_zipfian", ATTRS("range_max", "100", "shape", "(40, 100)"), NO_ARRAYS, 2);
  for (i = 0; i < 40; ++i) {
    qsort(numbers + i * 100, 100, sizeof *numbers, ascending);
    for (k = 0; k < 100; ++k) assert_true(numbers[i * 100 + k] == (double)k);
  }
  n = drawn_at(1, "_sample_unique_zipfian", ATTRS("range_max", "100", "shape", "(40, 100)"), NO_ARRAYS, 2);
  assert_int_equal(n, 40);
  for (i = 0; i < 40; ++i) assert_true(numbers[i] >= 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(continuous_numbers_follow_their_distributions),
      TEST(counts_follow_their_distributions),
      TEST(integers_are_all_of_one_probability),
      TEST(parameters_may_be_arrays),
      TEST(parameters_at_their_ends_have_results_or_are_refused),
      TEST(uniform_numbers_stay_below_the_end),
      TEST(a_seed_gives_its_numbers_again_and_another_one_gives_others),
      TEST(each_pass_draws_anew),
      TEST(classes_are_chosen_by_their_probabilities),
      TEST(chosen_probabilities_pass_gradients_back),
      TEST(all_orders_are_of_one_probability),
      TEST(different_numbers_are_chosen_by_rank),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
