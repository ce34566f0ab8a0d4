/* SPDX-License-Identifier: Apache-2.0 */
/* _contrib_SyncBatchNorm: the devices of a training group normalise by the statistics of the whole batch, as one device
 * does that has all of it. */
#include <math.h>

#include "support/scale_op.h"

enum { kRows = 7, kChannels = 2, kWidth = 5, kSize = kRows * kChannels * kWidth, kParams = 4, kMaxDevices = 3 };

static const char *const param_names[] = {"bn1_gamma", "bn1_beta", "bn2_gamma", "bn2_beta"};

/* The results of a training step. */
typedef struct {
  float outputs[kSize], input_grads[kSize];
  float param_grads[kParams][kChannels]; /* summed over all devices */
  float states[kMaxDevices][4][kChannels];
} results;

static cohort_symbol *sync_norm(const char *name, const char *fix_gamma, cohort_symbol *data) {
  return node("_contrib_SyncBatchNorm", name, ATTRS("key", name, "fix_gamma", fix_gamma, "momentum", "0.5"),
              INPUTS(data));
}

/* Two layers that depend on the whole batch, one behind the other. */
static cohort_symbol *two_norms(cohort_symbol *data) {
  cohort_symbol *first = node("tanh", "act", NO_ATTRS, INPUTS(sync_norm("bn1", "False", data)));

  return sync_norm("bn2", "True", node("_mul_scalar", "larger", ATTRS("scalar", "3"), INPUTS(first)));
}

static cohort_group *bind_on(const cohort_context *contexts, size_t num_contexts, const double *workload,
                             cohort_symbol *symbol) {
  cohort_descs *data = desc("data", SHAPE(kRows, kChannels, kWidth), "NCW");
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = NULL;
  size_t p;

  options.inputs_need_grad = 1;
  options.workload = workload;
  options.num_workloads = workload ? num_contexts : 0;
  ok(cohort_group_create(symbol, contexts, num_contexts, data, NULL, param_names, kParams, 1, &options, &group));
  cohort_descs_free(data);
  cohort_symbol_free(symbol);
  for (p = 0; p < kParams; ++p)
    set_param(group, param_names[p], floats(SHAPE(kChannels), FLOATS(0.5f + (float)p, 2 - (float)p)));
  return group;
}

/* Channels with different means and spreads, which also differ between the slices of the batch. */
static cohort_ndarray *uneven_data(void) {
  float values[kSize];
  size_t i;

  for (i = 0; i < kSize; ++i) {
    const float row = (float)(i / (kChannels * kWidth)), channel = (float)(i / kWidth % kChannels);

    values[i] = 3 * channel + (1 + row) * (float)((i * 7 + 3) % 11) / 11 - row;
  }
  return floats(SHAPE(kRows, kChannels, kWidth), values, kSize);
}

static cohort_ndarray *head_gradient(void) {
  float values[kSize];
  size_t i;

  for (i = 0; i < kSize; ++i) values[i] = (float)((i * 5 + 1) % 13) / 13 - 0.4f;
  return floats(SHAPE(kRows, kChannels, kWidth), values, kSize);
}

static void read_free(cohort_ndarray *array, float *values, size_t num_values) {
  ok(cohort_ndarray_read(array, values, num_values * sizeof(float)));
  cohort_ndarray_free(array);
}

/* A moving mean or variance: the last four auxiliary states. */
static cohort_ndarray *state_of(const cohort_group *group, size_t index, size_t device) {
  return device_array(group, COHORT_GROUP_AUX, num_arrays(group, COHORT_GROUP_AUX) - 4 + index, device);
}

static results train(cohort_group *group, size_t num_devices) {
  results found;
  size_t d, k, c;

  memset(&found, 0, sizeof found);
  forward(group, uneven_data(), NULL, 1);
  read_free(merged(group, COHORT_GROUP_OUTPUTS, 0), found.outputs, kSize);
  backward(group, head_gradient());
  read_free(merged(group, COHORT_GROUP_INPUT_GRADS, 0), found.input_grads, kSize);
  for (d = 0; d < num_devices; ++d) {
    for (k = 0; k < kParams; ++k) {
      float part[kChannels];

      read_free(device_array(group, COHORT_GROUP_GRADS, k, d), part, kChannels);
      for (c = 0; c < kChannels; ++c) found.param_grads[k][c] += part[c];
    }
    for (k = 0; k < 4; ++k) read_free(state_of(group, k, d), found.states[d][k], kChannels);
  }
  return found;
}

static results train_free(cohort_group *group, size_t num_devices) {
  const results found = train(group, num_devices);

  cohort_group_free(group);
  return found;
}

static void is_near(const char *what, const float *expected, const float *found, size_t num) {
  size_t i;

  for (i = 0; i < num; ++i) {
    if (!(fabsf(expected[i] - found[i]) <= 2e-5f * (1 + fabsf(expected[i]))))
      fail_msg("%s, element %zu: expected %g, found %g", what, i, (double)expected[i], (double)found[i]);
  }
}

static void are_near(const results *expected, const results *found, size_t num_devices) {
  size_t d;

  is_near("output", expected->outputs, found->outputs, kSize);
  is_near("gradient of data", expected->input_grads, found->input_grads, kSize);
  is_near("gradients of parameters", &expected->param_grads[0][0], &found->param_grads[0][0], kParams * kChannels);
  for (d = 0; d < num_devices; ++d) /* each device has updated the moving statistics from the whole batch */
    is_near("moving statistics", &expected->states[0][0][0], &found->states[d][0][0], 4 * kChannels);
}

static const double uneven[] = {1, 4, 2};

static void a_group_is_as_one_device_with_the_whole_batch(void **state) {
  const cohort_context *const apart = test_contexts();
  const cohort_context repeated[] = {apart[0], apart[0], apart[1]};
  const results whole = train_free(bind_on(apart, 1, NULL, two_norms(variable("data"))), 1);
  const struct {
    const cohort_context *contexts;
    size_t num;
    const double *workload;
  } cases[] = {{apart, 2, NULL}, {apart, 2, uneven}, {apart, 3, uneven}, {repeated, 2, uneven}, {repeated, 3, uneven}};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(cases); ++i) {
    const results found = train_free(
        bind_on(cases[i].contexts, cases[i].num, cases[i].workload, two_norms(variable("data"))), cases[i].num);

    are_near(&whole, &found, cases[i].num);
  }
}

/* Steps that are queued without waiting in between; the same bits each time. */
static void many_steps_give_the_same_bits(void **state) {
  results found[2];
  size_t run, step;

  (void)state;
  for (run = 0; run < 2; ++run) {
    cohort_group *group = bind_on(test_contexts(), 3, uneven, two_norms(variable("data")));

    for (step = 0; step < 20; ++step) {
      forward(group, uneven_data(), NULL, 1);
      backward(group, head_gradient());
    }
    found[run] = train(group, 3);
    cohort_group_free(group);
  }
  assert_memory_equal(&found[0], &found[1], sizeof found[0]);
}

/* Inference uses the moving statistics, on each device separately. */
static void inference_depends_on_no_other_device(void **state) {
  cohort_group *group = bind_on(test_contexts(), 2, uneven, two_norms(variable("data")));
  cohort_group *one = bind_on(test_contexts(), 1, NULL, two_norms(variable("data")));
  float found[kSize], expected[kSize];

  (void)state;
  forward(group, uneven_data(), NULL, 0);
  forward(one, uneven_data(), NULL, 0);
  read_free(merged(group, COHORT_GROUP_OUTPUTS, 0), found, kSize);
  read_free(merged(one, COHORT_GROUP_OUTPUTS, 0), expected, kSize);
  is_near("output", expected, found, kSize);
  cohort_group_free(group);
  cohort_group_free(one);
}

/* ---- monitors, custom operators, failures
 * -------------------------------------------------------------------------- */

static void count_reports(const char *name, cohort_ndarray *array, void *user_data) {
  (void)array;
  if (strcmp(name, "bn2_output") == 0 || strcmp(name, "bn1_backward_output0") == 0) ++*(int *)user_data;
}

static void a_monitor_sees_every_device(void **state) {
  const results whole = train_free(bind_on(test_contexts(), 1, NULL, two_norms(variable("data"))), 1);
  cohort_group *group = bind_on(test_contexts(), 3, uneven, two_norms(variable("data")));
  int num_reports = 0;
  results found;

  (void)state;
  ok(cohort_group_set_monitor(group, count_reports, &num_reports, 1));
  found = train_free(group, 3);
  are_near(&whole, &found, 3);
  assert_int_equal(num_reports, 3 * 2);
}

static void ignore_report(const char *name, cohort_ndarray *array, void *user_data) {
  (void)name;
  (void)array;
  (void)user_data;
}

/* Its backward pass runs on another program, which begins with its forward steps. */
static void a_monitor_on_one_device_changes_no_gradient(void **state) {
  cohort_group *group = bind_on(test_contexts(), 2, NULL, two_norms(variable("data")));
  float expected[kSize], found[kSize], other[kSize];
  cohort_executor *exec = NULL;
  size_t i;

  (void)state;
  forward(group, uneven_data(), NULL, 1);
  backward(group, head_gradient());
  read_free(merged(group, COHORT_GROUP_INPUT_GRADS, 0), expected, kSize);
  for (i = 0; i < kSize; ++i) other[i] = (float)(i % 5) - 1;
  forward(group, floats(SHAPE(kRows, kChannels, kWidth), other, kSize), NULL, 1);
  backward(group, floats(SHAPE(kRows, kChannels, kWidth), other, kSize));
  forward(group, uneven_data(), NULL, 1);
  ok(cohort_group_executor(group, 0, &exec));
  ok(cohort_executor_set_monitor(exec, ignore_report, NULL, 0));
  backward(group, head_gradient());
  read_free(merged(group, COHORT_GROUP_INPUT_GRADS, 0), found, kSize);
  is_near("gradient of the input", expected, found, kSize);
  cohort_executor_free(exec);
  cohort_group_free(group);
}

/* A custom operator whose forward fails at one call. */
typedef struct {
  host scale;
  int num_forward, fail_at;
} failing_host;

static int32_t fails_at_a_call(void *of, const cohort_arrays *inputs, const cohort_arrays *aux,
                               const cohort_arrays *outputs, cohort_bool is_train, void *user_data) {
  failing_host *self = user_data;

  ++self->num_forward;
  if (self->num_forward == self->fail_at) return 1;
  return scale_forward(of, inputs, aux, outputs, is_train, &self->scale);
}

/* A custom operator on one device fails, on the caller's thread: no device waits for it for ever, none continues with
 * statistics of part of the batch, and the group trains on afterwards. */
static void a_device_that_fails_does_not_hang_the_others(void **state) {
  const results whole = train_free(bind_on(test_contexts(), 1, NULL, two_norms(variable("data"))), 1);
  int32_t call;

  (void)state;
  for (call = 1; call <= 3; ++call) {
    cohort_group *group;
    cohort_ndarray *output;
    cohort_error *error;
    results found;
    size_t d, k;
    failing_host self;
    cohort_custom_op op;

    memset(&self, 0, sizeof self);
    begin(&self.scale, 0);
    ok(cohort_custom_unregister("scale"));
    self.scale.num_ended = 0;
    op = scale_op(&self.scale);
    op.forward = fails_at_a_call;
    op.user_data = &self;
    ok(cohort_custom_register("scale", &op));
    group = bind_on(test_contexts(), 3, uneven, two_norms(scale_node("1", variable("data"))));
    forward(group, uneven_data(), NULL, 1); /* so that there are statistics of an earlier pass */
    ok(cohort_group_wait(group));
    self.fail_at = self.num_forward + call;
    fails(try_forward(group, uneven_data(), NULL, 1), COHORT_ERROR_EXECUTION, "scale");
    error = cohort_group_wait(group);
    cohort_error_free(error);
    for (d = 0; d < 3; ++d) {
      output = device_array(group, COHORT_GROUP_OUTPUTS, 0, d);
      fails(cohort_ndarray_wait(output), COHORT_ERROR_EXECUTION, "");
      cohort_ndarray_free(output);
      fill(device_array(group, COHORT_GROUP_AUX, 0, d), 0); /* the custom operator's own */
      for (k = 0; k < 4; ++k) fill(state_of(group, k, d), k % 2 ? 1 : 0);
    }
    self.fail_at = 0;
    found = train(group, 3);
    is_near("output", whole.outputs, found.outputs, kSize);
    cohort_group_free(group);
    end(&self.scale);
  }
}

/* The executor of one device alone has no other devices to exchange statistics with. */
static void the_executor_of_a_device_does_not_train_by_itself(void **state) {
  cohort_group *group = bind_on(test_contexts(), 2, NULL, two_norms(variable("data")));
  cohort_executor *executor = NULL;

  (void)state;
  ok(cohort_group_executor(group, 0, &executor));
  fails(cohort_executor_forward(executor, 1), COHORT_ERROR_STATE, "group");
  ok(cohort_executor_forward(executor, 0));
  cohort_executor_free(executor);
  cohort_group_free(group);
}

static cohort_symbol *convolution(const char *name, cohort_symbol *data) {
  return node("Convolution", name, ATTRS("kernel", "(3, 3)", "pad", "(1, 1)", "num_filter", "64", "no_bias", "True"),
              INPUTS(data));
}

/* Weights that the caller may write at any time are checked once per pass, not at each exchange between the devices. */
static void weights_that_the_host_holds_are_derived_once_a_pass(void **state) {
  enum { CHANNELS = 64, SIDE = 8, ROWS = 4, SIZE = ROWS * CHANNELS * SIDE * SIDE };
  static const char *const params[] = {"c1_weight", "c2_weight", "c3_weight", "bn1_gamma",
                                       "bn1_beta",  "bn2_gamma", "bn2_beta"};
  static float outputs[2][SIZE];
  int held;

  (void)state;
  only_on_cpus(); /* where the caller has addresses of them */
  for (held = 0; held < 2; ++held) {
    cohort_symbol *symbol = sync_norm("bn1", "False", convolution("c1", variable("data")));
    cohort_descs *data = desc("data", SHAPE(ROWS, CHANNELS, SIDE, SIDE), NULL);
    cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
    cohort_ndarray *weights[2 * COUNT(params)], *output;
    cohort_group *group = NULL;
    size_t p, d;

    symbol = convolution("c2", node("Activation", "act", ATTRS("act_type", "relu"), INPUTS(symbol)));
    symbol = convolution("c3", sync_norm("bn2", "False", symbol));
    options.compute_dtype = COHORT_DTYPE_BFLOAT16;
    ok(cohort_group_create(symbol, test_contexts(), 2, data, NULL, params, COUNT(params), 0, &options, &group));
    for (p = 0; p < COUNT(params); ++p) {
      for (d = 0; d < 2; ++d) {
        void *address = NULL;
        weights[2 * p + d] = device_array(group, COHORT_GROUP_PARAMS, p, d);
        ok(cohort_ndarray_fill_uniform(weights[2 * p + d], -0.1, 0.1, p));
        if (held) ok(cohort_ndarray_data(weights[2 * p + d], &address));
      }
    }
    forward(group, counted(SHAPE(ROWS, CHANNELS, SIDE, SIDE), 0.001f), NULL, 1);
    output = merged(group, COHORT_GROUP_OUTPUTS, 0);
    ok(cohort_ndarray_read(output, outputs[held], sizeof outputs[held]));
    cohort_ndarray_free(output);
    for (p = 0; p < COUNT(weights); ++p) cohort_ndarray_free(weights[p]);
    cohort_descs_free(data);
    cohort_symbol_free(symbol);
    cohort_group_free(group);
  }
  assert_memory_equal(outputs[0], outputs[1], sizeof outputs[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_group_is_as_one_device_with_the_whole_batch),
      TEST(many_steps_give_the_same_bits),
      TEST(inference_depends_on_no_other_device),
      TEST(a_monitor_sees_every_device),
      TEST(a_monitor_on_one_device_changes_no_gradient),
      TEST(a_device_that_fails_does_not_hang_the_others),
      TEST(the_executor_of_a_device_does_not_train_by_itself),
      TEST(weights_that_the_host_holds_are_derived_once_a_pass),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
