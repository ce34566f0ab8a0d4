/* SPDX-License-Identifier: Apache-2.0 */
/* A language model of characters, trained in bfloat16 and in float32, on this project's licence. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/executor_tests.h"
#include "support/sanitizer.h"

enum { kLetters = 128, kTime = 32, kBatch = 16, kCount = kTime * kBatch, kParams = 4 };
enum { kEpochs = UNDER_SANITIZER ? 1 : 20, kSeeds = UNDER_SANITIZER ? 1 : 3 };

static const char *const kNames[kParams] = {"embed_weight", "lstm_parameters", "fc_weight", "fc_bias"};

static float letters[1 << 14];
static size_t num_batches;

/* Each row of the batch reads its own part of the text. */
static void read_text(void) {
  FILE *const file = fopen("LICENSE", "rb");
  int letter;
  size_t count = 0;

  assert_non_null(file);
  while (count < COUNT(letters) && (letter = fgetc(file)) != EOF) letters[count++] = (float)(letter % kLetters);
  fclose(file);
  num_batches = (count / kBatch - 1) / kTime;
  assert_true(num_batches > 15);
}

static cohort_executor *bound(cohort_dtype type) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_descs *known = desc("data", SHAPE(kTime, kBatch), NULL);
  cohort_symbol *symbol = node("Embedding", "embed", ATTRS("input_dim", "128", "output_dim", "32"),
                               INPUTS(variable("data"), variable("embed_weight")));

  symbol = node("RNN", "lstm", ATTRS("mode", "lstm", "state_size", "96", "num_layers", "1"), INPUTS(symbol));
  symbol = node("Reshape", "flat", ATTRS("shape", "(-3, -2)"), INPUTS(symbol));
  symbol = node("FullyConnected", "fc", ATTRS("num_hidden", "128"), INPUTS(symbol));
  add_desc(known, "softmax_label", SHAPE(kCount), NULL);
  options.compute_dtype = type;
  options.grad_req = "write";
  options.num_threads = 1;
  return simple_bind(node("SoftmaxOutput", "softmax", NO_ATTRS, INPUTS(symbol)), known, &options);
}

static void load(const cohort_executor *executor, size_t batch) {
  static float now[kCount], next[kCount];
  const size_t part = num_batches * kTime + 1;
  size_t t, n;

  for (t = 0; t < kTime; ++t) {
    for (n = 0; n < kBatch; ++n) {
      const size_t at = n * part + batch * kTime + t;

      now[t * kBatch + n] = letters[at];
      next[t * kBatch + n] = letters[at + 1];
    }
  }
  set_array(executor, COHORT_EXECUTOR_ARGS, "data", now, kCount);
  set_array(executor, COHORT_EXECUTOR_ARGS, "softmax_label", next, kCount);
}

/* The mean over the text of minus the logarithm of the probability that each letter was given. */
static double loss_of(cohort_executor *executor) {
  static float scores[kCount][kLetters];
  const size_t part = num_batches * kTime + 1;
  double sum = 0;
  size_t batch, i;

  for (batch = 0; batch < num_batches; ++batch) {
    cohort_ndarray *output;

    load(executor, batch);
    ok(cohort_executor_forward(executor, 0));
    output = output_of(executor, 0);
    ok(cohort_ndarray_read(output, scores, sizeof(scores)));
    cohort_ndarray_free(output);
    for (i = 0; i < kCount; ++i) {
      const size_t next = (i % kBatch) * part + batch * kTime + i / kBatch + 1;

      sum -= log((double)scores[i][(size_t)letters[next]] + 1e-30);
    }
  }
  return sum / (double)(num_batches * kCount);
}

static double trained_loss(cohort_dtype type, uint64_t seed) {
  const char *const keys[] = {"learning_rate", "rescale_grad"}, *const values[] = {"0.004", "0.001953125"};
  cohort_executor *const executor = bound(type);
  cohort_optimizer *optimizer = NULL;
  double loss;
  size_t i, batch;
  int epoch;

  ok(cohort_optimizer_create("adam", keys, values, 2, &optimizer));
  for (i = 0; i < kParams; ++i) {
    cohort_ndarray *const array = arg_of(executor, kNames[i]);

    ok(cohort_ndarray_fill_uniform(array, -0.1, 0.1, seed * kParams + i));
    cohort_ndarray_free(array);
  }
  for (epoch = 0; epoch < kEpochs; ++epoch) {
    if (epoch == kEpochs * 3 / 4) ok(cohort_optimizer_set(optimizer, "learning_rate", 0.001));
    for (batch = 0; batch < num_batches; ++batch) {
      load(executor, batch);
      ok(cohort_executor_forward(executor, 1));
      ok(cohort_executor_backward(executor, NULL, 0, 1));
      for (i = 0; i < kParams; ++i) {
        cohort_ndarray *const weight = arg_of(executor, kNames[i]), *const grad = grad_of(executor, kNames[i]);

        ok(cohort_optimizer_update(optimizer, kNames[i], 0, weight, grad));
        cohort_ndarray_free(weight);
        cohort_ndarray_free(grad);
      }
    }
  }
  loss = loss_of(executor);
  cohort_optimizer_free(optimizer);
  cohort_executor_free(executor);
  return loss;
}

static void the_perplexity_is_that_of_float32(void **state) {
  double wide = 0, narrow = 0;
  uint64_t seed;

  (void)state;
  read_text();
  for (seed = 1; seed <= kSeeds; ++seed) {
    const double first = trained_loss(COHORT_DTYPE_FLOAT32, seed), second = trained_loss(COHORT_DTYPE_BFLOAT16, seed);

    print_message("float32 %.4f, bfloat16 %.4f\n", exp(first), exp(second));
    wide += first / kSeeds;
    narrow += second / kSeeds;
  }
  if (UNDER_SANITIZER) return; /* nothing was learnt */
  assert_true(exp(wide) < 8);
  assert_true(fabs(exp(narrow - wide) - 1) <= 0.01);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(the_perplexity_is_that_of_float32)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
