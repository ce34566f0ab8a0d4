/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on a tape change two things besides outputs and gradients: backward passes set a gamma that is fixed to 1,
 * and forward passes in training move the statistics of layers that learn. */
#include "support/group_tests.h"
#include "support/tapes.h"

static cohort_tape *training_tape(void) {
  cohort_tape *tape = new_tape();

  ok(cohort_tape_set_training(tape, 1, NULL));
  return tape;
}

static cohort_ndarray *norm_of(cohort_tape *tape, cohort_ndarray *x, cohort_ndarray *gamma) {
  const char *const key = "fix_gamma", *const value = "True";
  cohort_ndarray *inputs[5], *output = NULL;
  const int64_t one = 1;
  cohort_arrays *outputs = NULL;
  size_t i;

  inputs[0] = x;
  inputs[1] = gamma;
  for (i = 2; i < 5; ++i) ok(cohort_ndarray_zeros(&one, 1, COHORT_DTYPE_FLOAT32, NULL, &inputs[i]));
  ok(cohort_tape_invoke(tape, "BatchNorm", &key, &value, 1, inputs, 5, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &output));
  cohort_arrays_free(outputs);
  for (i = 2; i < 5; ++i) cohort_ndarray_free(inputs[i]);
  return output;
}

/* Backward sets a fixed gamma to 1, marked or not, each time, and later readers wait for that. */
static void a_fixed_gamma_becomes_one(void **state) {
  int marked, round;

  (void)state;
  for (marked = 0; marked < 2; ++marked) {
    cohort_tape *tape = training_tape();
    cohort_ndarray *x = floats(SHAPE(4, 1), FLOATS(1, 3, 5, 7)), *gamma = floats(SHAPE(1), FLOATS(3)), *y;
    cohort_ndarray *of_x = floats(SHAPE(4, 1), FLOATS(0, 0, 0, 0)), *of_gamma = floats(SHAPE(1), FLOATS(9));

    mark(tape, x, of_x, COHORT_GRAD_WRITE);
    if (marked) mark(tape, gamma, of_gamma, COHORT_GRAD_WRITE);
    y = norm_of(tape, x, gamma);
    holds(gamma, 3);
    for (round = 0; round < 2; ++round) {
      backward_along(tape, y, 1);
      holds(gamma, 1);
      holds(of_gamma, marked ? 0 : 9);
      ok(cohort_ndarray_fill(gamma, 2));
    }
    cohort_ndarray_free(x);
    cohort_ndarray_free(gamma);
    cohort_ndarray_free(of_x);
    cohort_ndarray_free(of_gamma);
    cohort_ndarray_free(y);
    cohort_tape_free(tape);
  }
}

/* A gamma that the tape has computed keeps its value for other readers. */
static void a_gamma_that_is_recorded_is_not_overwritten(void **state) {
  cohort_tape *tape = training_tape();
  cohort_ndarray *x = floats(SHAPE(4, 1), FLOATS(1, 3, 5, 7)), *log_gamma = floats(SHAPE(1), FLOATS(0.5f));
  cohort_ndarray *of_log = floats(SHAPE(1), FLOATS(0)), *gamma, *y, *z;

  (void)state;
  mark(tape, log_gamma, of_log, COHORT_GRAD_WRITE);
  mark(tape, x, NULL, COHORT_GRAD_WRITE);
  gamma = apply(tape, "exp", log_gamma, NULL);
  y = norm_of(tape, x, gamma);
  z = apply(tape, "broadcast_add", y, gamma);
  backward_along(tape, z, 0);
  holds(gamma, 1.6487213f);
  holds(of_log, 4 * 1.6487213f);
  cohort_ndarray_free(x);
  cohort_ndarray_free(log_gamma);
  cohort_ndarray_free(of_log);
  cohort_ndarray_free(gamma);
  cohort_ndarray_free(y);
  cohort_ndarray_free(z);
  cohort_tape_free(tape);
}

enum { kX, kGamma, kBeta, kMean, kNumMarks, kNone = kNumMarks, kPaused, kBlocked, kBlockedGamma, kNumCases };

/* EXE-20: statistics move in training only if gamma, beta or what data was made from has a gradient, as in an executor;
 * not if the tape is paused. */
static void statistics_of_a_frozen_layer_stay(void **state) {
  static const int moves[kNumCases] = {1, 1, 1, 0, 0, 0, 0, 1};
  const char *const keys[] = {"momentum", "fix_gamma"}, *const values[] = {"0.75", "False"};
  int which;
  size_t i;

  (void)state;
  for (which = 0; which < kNumCases; ++which) {
    cohort_tape *tape = training_tape();
    cohort_ndarray *inputs[5], *x;
    cohort_arrays *outputs = NULL;

    x = inputs[0] = floats(SHAPE(4, 1), FLOATS(1, 3, 5, 7)); /* mean 4, biased variance 5 */
    inputs[1] = floats(SHAPE(1), FLOATS(1));
    inputs[2] = floats(SHAPE(1), FLOATS(0));
    inputs[3] = floats(SHAPE(1), FLOATS(100));
    inputs[4] = floats(SHAPE(1), FLOATS(1));
    if (which < kNumMarks) mark(tape, inputs[which], NULL, COHORT_GRAD_WRITE);
    if (which == kBlockedGamma) mark(tape, inputs[kGamma], NULL, COHORT_GRAD_WRITE);
    if (which >= kPaused) mark(tape, x, NULL, COHORT_GRAD_WRITE);
    if (which == kPaused) ok(cohort_tape_set_recording(tape, 0, NULL));
    if (which >= kBlocked) inputs[0] = apply(tape, "BlockGrad", x, NULL);
    ok(cohort_tape_invoke(tape, "BatchNorm", keys, values, 2, inputs, 5, NULL, 0, NULL, &outputs));
    holds(inputs[3], moves[which] ? 76 : 100);
    holds(inputs[4], moves[which] ? 2 : 1);
    if (inputs[0] != x) cohort_ndarray_free(x);
    for (i = 0; i < 5; ++i) cohort_ndarray_free(inputs[i]);
    cohort_arrays_free(outputs);
    cohort_tape_free(tape);
  }
}

static void the_mean_of_a_frozen_regularizer_stays(void **state) {
  const char *const key = "momentum", *const value = "0.5";
  int learns;

  (void)state;
  for (learns = 0; learns < 2; ++learns) {
    cohort_tape *tape = training_tape();
    cohort_ndarray *inputs[2];
    cohort_arrays *outputs = NULL;

    inputs[0] = floats(SHAPE(2, 1), FLOATS(0.25f, 0.75f));
    inputs[1] = floats(SHAPE(1), FLOATS(1));
    if (learns) mark(tape, inputs[0], NULL, COHORT_GRAD_WRITE);
    ok(cohort_tape_invoke(tape, "IdentityAttachKLSparseReg", &key, &value, 1, inputs, 2, NULL, 0, NULL, &outputs));
    holds(inputs[1], learns ? 0.75f : 1);
    cohort_ndarray_free(inputs[0]);
    cohort_ndarray_free(inputs[1]);
    cohort_arrays_free(outputs);
    cohort_tape_free(tape);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_fixed_gamma_becomes_one),
      TEST(a_gamma_that_is_recorded_is_not_overwritten),
      TEST(statistics_of_a_frozen_layer_stay),
      TEST(the_mean_of_a_frozen_regularizer_stays),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
