/* SPDX-License-Identifier: Apache-2.0 */
/* Training that is saved and goes on in a new group gives the same bits as training that was not interrupted. */
#include <stdio.h>

#include "support/group_tests.h"

#define ROWS 12
#define WIDTH 16
#define MOST_BYTES 65536

/* FullyConnected without gradient, BatchNorm, Dropout, FullyConnected, softmax. */
static cohort_symbol *network(const char *dropout) {
  cohort_symbol *symbol = node("FullyConnected", "frozen", ATTRS("num_hidden", "16"), INPUTS(variable("data")));

  symbol = node("BatchNorm", "bn", ATTRS("fix_gamma", "False"), INPUTS(symbol));
  symbol = node("Dropout", dropout, ATTRS("p", "0.5"), INPUTS(symbol));
  symbol = node("FullyConnected", "fc", ATTRS("num_hidden", "3"), INPUTS(symbol));
  return node("SoftmaxOutput", "softmax", NO_ATTRS, INPUTS(symbol));
}

static cohort_group *bind(size_t num_contexts, const char *dropout, uint64_t seed) {
  static const char *const fixed[] = {"frozen_weight", "frozen_bias"};
  const char *const params[] = {"frozen_weight", "frozen_bias", "bn_gamma", "bn_beta", "fc_weight", "fc_bias", NULL};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  options.fixed_param_names = fixed;
  options.num_fixed_param_names = 2;
  options.keep_device_aux = 1;
  options.seed = seed;
  return bind_for_training(network(dropout), num_contexts, desc("data", SHAPE(ROWS, WIDTH), "NC"),
                           desc("softmax_label", SHAPE(ROWS), "N"), params, &options);
}

static cohort_optimizer *optimizer_of(const char *kind) {
  const char *keys[] = {"learning_rate", "rescale_grad", "momentum"}, *values[] = {"0.1", "0.0833", "0.9"};
  cohort_optimizer *optimizer = NULL;

  ok(cohort_optimizer_create(kind, keys, values, strcmp(kind, "sgd") == 0 ? 3 : 2, &optimizer));
  return optimizer;
}

/* Random parameters of a seed. */
static void initialize(cohort_group *group) {
  cohort_initializer *initializer = NULL;
  cohort_arrays *arg = NULL, *aux = NULL;

  ok(cohort_initializer_create("uniform", NULL, NULL, 0, 3, &initializer));
  ok(cohort_group_copy_params(group, &arg, &aux));
  ok(cohort_initializer_apply(initializer, NULL, arg));
  ok(cohort_initializer_apply(initializer, NULL, aux));
  ok(cohort_group_set_params(group, arg, aux, 0));
  cohort_arrays_free(arg);
  cohort_arrays_free(aux);
  cohort_initializer_free(initializer);
}

static cohort_ndarray *labels(void) { return floats(SHAPE(ROWS), FLOATS(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2)); }

/* Batches begin to end, each another one. */
static void train(cohort_group *group, cohort_optimizer *optimizer, int32_t mode, int begin, int end) {
  int i;

  for (i = begin; i < end; ++i) {
    float numbers[ROWS * WIDTH];
    size_t k;

    for (k = 0; k < COUNT(numbers); ++k) numbers[k] = (float)((k * 7 + (size_t)i * 13) % 29) / 29;
    forward(group, floats(SHAPE(ROWS, WIDTH), numbers, COUNT(numbers)), labels(), 1);
    backward(group, NULL);
    ok(cohort_group_update(group, optimizer, mode));
  }
}

/* Compares a list on every device, bit for bit. */
static void same_list(cohort_group *one, cohort_group *other, int32_t list, size_t num_devices) {
  size_t i, d;

  for (i = 0; i < num_arrays(one, list); ++i) {
    for (d = 0; d < num_devices; ++d) {
      static char a[4096], b[4096];
      cohort_ndarray *first = device_array(one, list, i, d), *second = device_array(other, list, i, d);
      size_t bytes = 0;

      ok(cohort_ndarray_bytes(first, &bytes));
      assert_true(bytes <= sizeof(a));
      ok(cohort_ndarray_read(first, a, bytes));
      ok(cohort_ndarray_read(second, b, bytes));
      if (memcmp(a, b, bytes) != 0) fail_msg("list %d, array %zu, device %zu differ", list, i, d);
      cohort_ndarray_free(first);
      cohort_ndarray_free(second);
    }
  }
}

/* The part of training that a program saves: the means of the parameters, and the states of the optimizer. */
struct saved {
  cohort_arrays *arg, *aux;
  char states[MOST_BYTES];
  size_t bytes;
};

static void save(struct saved *saved, cohort_group *group, cohort_optimizer *optimizer) {
  ok(cohort_group_copy_params(group, &saved->arg, &saved->aux));
  ok(cohort_optimizer_save_states_memory(optimizer, saved->states, sizeof(saved->states), &saved->bytes));
}

static void load(struct saved *saved, cohort_group *group, cohort_optimizer *optimizer) {
  ok(cohort_group_set_params(group, saved->arg, saved->aux, 0));
  ok(cohort_optimizer_load_states_memory(optimizer, saved->states, saved->bytes));
  ok(cohort_group_resume(group, optimizer));
  cohort_arrays_free(saved->arg);
  cohort_arrays_free(saved->aux);
}

/* N + M steps are N steps, save, load into a new group of another seed, M steps. */
static void training_resumes_to_the_bit(void **state) {
  static const char *const kinds[] = {"sgd", "adam"};
  size_t num_contexts, k;
  int32_t mode;

  (void)state;
  for (num_contexts = 1; num_contexts <= 3; ++num_contexts) {
    for (k = 0; k < COUNT(kinds); ++k) {
      for (mode = COHORT_UPDATE_ON_STORE; mode <= COHORT_UPDATE_PER_DEVICE; ++mode) {
        static struct saved saved;
        cohort_group *whole = bind(num_contexts, "drop", 5), *part = bind(num_contexts, "drop", 5),
                     *rest = bind(num_contexts, "drop", 6);
        cohort_optimizer *optimizers[] = {optimizer_of(kinds[k]), optimizer_of(kinds[k]), optimizer_of(kinds[k])};
        size_t i;

        initialize(whole);
        initialize(part);
        train(whole, optimizers[0], mode, 0, 7);
        train(part, optimizers[1], mode, 0, 3);
        save(&saved, part, optimizers[1]);
        load(&saved, rest, optimizers[2]);
        same_list(part, rest, COHORT_GROUP_PARAMS, num_contexts);
        same_list(part, rest, COHORT_GROUP_AUX, num_contexts);
        train(rest, optimizers[2], mode, 3, 7);
        same_list(whole, rest, COHORT_GROUP_PARAMS, num_contexts);
        same_list(whole, rest, COHORT_GROUP_AUX, num_contexts);
        for (i = 0; i < 3; ++i) cohort_optimizer_free(optimizers[i]);
        cohort_group_free(whole);
        cohort_group_free(part);
        cohort_group_free(rest);
      }
    }
  }
}

/* States that were loaded and not used yet are saved again as they are. */
static void loaded_states_are_saved_again(void **state) {
  static struct saved saved;
  static char again[MOST_BYTES];
  cohort_group *group = bind(2, "drop", 5);
  cohort_optimizer *optimizer = optimizer_of("sgd"), *other = optimizer_of("sgd");
  size_t bytes = 0;

  (void)state;
  initialize(group);
  train(group, optimizer, COHORT_UPDATE_ON_STORE, 0, 2);
  save(&saved, group, optimizer);
  cohort_group_free(group); /* the optimizer does without */
  ok(cohort_optimizer_save_states_memory(optimizer, again, sizeof(again), &bytes));
  assert_int_equal(bytes, saved.bytes);
  assert_memory_equal(again, saved.states, bytes);
  ok(cohort_optimizer_load_states_memory(other, saved.states, saved.bytes));
  ok(cohort_optimizer_save_states_memory(other, again, sizeof(again), &bytes));
  assert_int_equal(bytes, saved.bytes);
  assert_memory_equal(again, saved.states, bytes);
  cohort_arrays_free(saved.arg);
  cohort_arrays_free(saved.aux);
  cohort_optimizer_free(optimizer);
  cohort_optimizer_free(other);
}

/* Another network or another number of devices is refused, and nothing is set. */
static void states_that_do_not_fit_are_refused(void **state) {
  static struct saved saved;
  cohort_group *group = bind(2, "drop", 5), *renamed = bind(2, "other", 5), *smaller = bind(1, "drop", 5);
  cohort_optimizer *optimizer = optimizer_of("sgd");

  (void)state;
  initialize(group);
  train(group, optimizer, COHORT_UPDATE_ON_STORE, 0, 2);
  ok(cohort_group_resume(renamed, optimizer)); /* nothing was loaded */
  save(&saved, group, optimizer);
  ok(cohort_optimizer_load_states_memory(optimizer, saved.states, saved.bytes));
  fails(cohort_group_resume(renamed, optimizer), COHORT_ERROR_NAME, "expected 'other', found 'drop'");
  fails(cohort_group_resume(smaller, optimizer), COHORT_ERROR_INVALID_ARGUMENT, "expected auxiliary states of 1");
  holds_free(device_array(renamed, COHORT_GROUP_AUX, 0, 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  saved.states[8] = 9;
  fails(cohort_optimizer_load_states_memory(optimizer, saved.states, saved.bytes), COHORT_ERROR_FORMAT,
        "version 1 to 4");
  saved.states[8] = 4;
  fails(cohort_optimizer_load_states_memory(optimizer, saved.states, saved.bytes - 1), COHORT_ERROR_FORMAT, "expected");
  cohort_arrays_free(saved.arg);
  cohort_arrays_free(saved.aux);
  cohort_optimizer_free(optimizer);
  cohort_group_free(group);
  cohort_group_free(renamed);
  cohort_group_free(smaller);
}

/* ---- random states --------------------------------------------------------------------------------------------- */

/* Dropout before and after rows are chosen by value, so that the network runs in two parts. */
static cohort_symbol *masked(void) {
  cohort_symbol *symbol = node("Dropout", "before", ATTRS("p", "0.5"), INPUTS(variable("data")));

  symbol = node("_contrib_boolean_mask", "mask", NO_ATTRS, INPUTS(symbol, variable("rows")));
  return node("Dropout", "after", ATTRS("p", "0.5"), INPUTS(symbol));
}

/* A training forward pass; reads the numbers that Dropout of all devices lets through. */
static void draw(cohort_group *group, size_t num_devices, int is_masked, float *numbers) {
  cohort_ndarray *data[] = {counted(SHAPE(ROWS, WIDTH), 0), counted(SHAPE(ROWS), 0)};
  size_t d, i;

  for (i = 0; i < 2; ++i) ok(cohort_ndarray_fill(data[i], 1));
  ok(cohort_group_forward(group, data, is_masked ? 2 : 1, NULL, 0, 1));
  for (i = 0; i < 2; ++i) cohort_ndarray_free(data[i]);
  for (d = 0; d < num_devices; ++d) {
    cohort_ndarray *output = device_array(group, COHORT_GROUP_OUTPUTS, 0, d);
    const size_t count = ROWS * WIDTH / num_devices;

    ok(cohort_ndarray_read(output, numbers + d * count, count * sizeof(float)));
    cohort_ndarray_free(output);
  }
}

static cohort_group *bind_dropout(size_t num_devices, int is_masked) {
  cohort_descs *data = desc("data", SHAPE(ROWS, WIDTH), "NC");

  if (is_masked) {
    add_desc(data, "rows", SHAPE(ROWS), "N");
    return bind_for_training(masked(), num_devices, data, NULL, NO_NAMES, NULL);
  }
  return bind_for_training(node("Dropout", "drop", ATTRS("p", "0.5"), INPUTS(variable("data"))), num_devices, data,
                           NULL, NO_NAMES, NULL);
}

/* A group whose random state was set draws what the other draws next, whatever both have drawn before. */
static void a_random_state_is_read_and_set(void **state) {
  size_t num_devices;
  int is_masked;

  (void)state;
  for (num_devices = 1; num_devices <= 3; ++num_devices) {
    for (is_masked = 0; is_masked <= 1; ++is_masked) {
      float expected[ROWS * WIDTH], found[ROWS * WIDTH];
      char bytes[1024];
      size_t size = 0;
      cohort_group *one = bind_dropout(num_devices, is_masked), *other = bind_dropout(num_devices, is_masked);

      draw(one, num_devices, is_masked, expected);
      draw(one, num_devices, is_masked, found);
      assert_memory_not_equal(expected, found, sizeof(found));
      ok(cohort_group_random_state(one, NULL, 0, &size));
      assert_true(size <= sizeof(bytes));
      fails(cohort_group_random_state(one, bytes, size - 1, &size), COHORT_ERROR_INVALID_ARGUMENT, "capacity");
      ok(cohort_group_random_state(one, bytes, sizeof(bytes), &size));
      draw(one, num_devices, is_masked, expected);
      ok(cohort_group_set_random_state(other, bytes, size));
      draw(other, num_devices, is_masked, found);
      assert_memory_equal(expected, found, sizeof(found));
      cohort_group_free(one);
      cohort_group_free(other);
    }
  }
}

/* The executor of a group's only device has the group's state. Damaged and foreign states are refused. */
static void an_executor_has_a_random_state(void **state) {
  float expected[ROWS * WIDTH], found[ROWS * WIDTH];
  char bytes[1024], of_two[1024];
  size_t size = 0, size_of_two = 0;
  cohort_group *one = bind_dropout(1, 0), *masked = bind_dropout(1, 1), *two = bind_dropout(2, 0);
  cohort_executor *executor = NULL, *of_masked = NULL;

  (void)state;
  ok(cohort_group_executor(one, 0, &executor));
  ok(cohort_group_executor(masked, 0, &of_masked));
  ok(cohort_executor_random_state(executor, bytes, sizeof(bytes), &size));
  draw(one, 1, 0, expected);
  ok(cohort_executor_set_random_state(executor, bytes, size));
  draw(one, 1, 0, found);
  assert_memory_equal(expected, found, sizeof(found));

  ok(cohort_group_random_state(two, of_two, sizeof(of_two), &size_of_two));
  fails(cohort_executor_set_random_state(executor, of_two, size_of_two), COHORT_ERROR_INVALID_ARGUMENT, "found 2");
  fails(cohort_executor_set_random_state(of_masked, bytes, size), COHORT_ERROR_NAME, "found 'drop'");
  fails(cohort_executor_set_random_state(executor, bytes, size - 1), COHORT_ERROR_FORMAT, "bytes more");
  fails(cohort_executor_set_random_state(executor, "no state", 8), COHORT_ERROR_FORMAT, "not a random state");
  fails(cohort_executor_set_random_state(executor, NULL, 8), COHORT_ERROR_INVALID_ARGUMENT, "data");
  fails(cohort_group_set_random_state(two, of_two, size_of_two / 2), COHORT_ERROR_FORMAT, "bytes more");
  draw(one, 1, 0, expected); /* failed calls have set nothing */
  assert_memory_not_equal(expected, found, sizeof(found));
  cohort_executor_free(executor);
  cohort_executor_free(of_masked);
  cohort_group_free(one);
  cohort_group_free(masked);
  cohort_group_free(two);
}

/* Devices for which there is no state draw their own numbers, not those that they have drawn before. */
static void further_devices_draw_new_numbers(void **state) {
  float before[ROWS * WIDTH], after[ROWS * WIDTH];
  char bytes[1024];
  size_t size = 0;
  cohort_group *one = bind_dropout(1, 0), *two = bind_dropout(2, 0), *again = bind_dropout(2, 0);

  (void)state;
  draw(one, 1, 0, before);
  ok(cohort_group_random_state(one, bytes, sizeof(bytes), &size));
  draw(two, 2, 0, before);
  ok(cohort_group_set_random_state(again, bytes, size));
  draw(again, 2, 0, after);
  assert_memory_not_equal(before + ROWS * WIDTH / 2, after + ROWS * WIDTH / 2, ROWS * WIDTH / 2 * sizeof(float));
  assert_memory_not_equal(after, after + ROWS * WIDTH / 2, ROWS * WIDTH / 2 * sizeof(float));
  cohort_group_free(one);
  cohort_group_free(two);
  cohort_group_free(again);
}

/* ---- managers -------------------------------------------------------------------------------------------------- */

static cohort_manager *manage(void) {
  const char *const keys[] = {"a", "b", "c"};
  cohort_symbol *symbols[] = {network("a"), network("b"), network("c")};
  cohort_descs *data = desc("data", SHAPE(ROWS, WIDTH), NULL), *label = desc("softmax_label", SHAPE(ROWS), NULL);
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_manager *manager = NULL;
  size_t i;

  options.default_bucket_key = "a";
  options.bucket_keys = keys;
  options.bucket_symbols = symbols;
  options.num_buckets = 3;
  options.keep_device_aux = 1;
  ok(cohort_manager_create(symbols[0], test_contexts(), 2, ROWS, data, label, NULL, 0, &options, &manager));
  for (i = 0; i < 3; ++i) cohort_symbol_free(symbols[i]);
  cohort_descs_free(data);
  cohort_descs_free(label);
  return manager;
}

static void train_bucket(cohort_manager *manager, cohort_optimizer *optimizer, const char *key) {
  cohort_ndarray *array = counted(SHAPE(ROWS, WIDTH), 0.01f), *label = labels();
  cohort_descs *data = desc("data", SHAPE(ROWS, WIDTH), NULL), *descs = desc("softmax_label", SHAPE(ROWS), NULL);

  ok(cohort_manager_load_data_batch(manager, &array, 1, &label, 1, key, data, descs));
  ok(cohort_manager_forward(manager, 1));
  ok(cohort_manager_backward(manager));
  ok(cohort_manager_update(manager, optimizer, COHORT_UPDATE_ON_STORE));
  cohort_ndarray_free(array);
  cohort_ndarray_free(label);
  cohort_descs_free(data);
  cohort_descs_free(descs);
}

/* Buckets continue their own numbers, also those that the resumed manager makes later or in another order. */
static void buckets_resume_to_the_bit(void **state) {
  static struct saved saved;
  cohort_manager *whole = manage(), *rest = manage();
  cohort_optimizer *one = optimizer_of("adam"), *other = optimizer_of("adam");
  cohort_group *groups[2] = {NULL, NULL};
  const char *const later[] = {"c", "a", "b", "c"};
  size_t i;

  (void)state;
  ok(cohort_manager_main_group(whole, &groups[0]));
  ok(cohort_manager_main_group(rest, &groups[1]));
  initialize(groups[0]);
  train_bucket(whole, one, "a");
  train_bucket(whole, one, "b");
  train_bucket(whole, one, "c");
  train_bucket(whole, one, "b");
  save(&saved, groups[0], one);
  ok(cohort_group_set_params(groups[1], saved.arg, saved.aux, 0));
  ok(cohort_optimizer_load_states_memory(other, saved.states, saved.bytes));
  ok(cohort_manager_resume(rest, other));
  for (i = 0; i < COUNT(later); ++i) {
    train_bucket(whole, one, later[i]);
    train_bucket(rest, other, later[i]);
  }
  same_list(groups[0], groups[1], COHORT_GROUP_PARAMS, 2);
  same_list(groups[0], groups[1], COHORT_GROUP_AUX, 2);
  for (i = 0; i < 2; ++i) cohort_group_free(groups[i]);
  cohort_arrays_free(saved.arg);
  cohort_arrays_free(saved.aux);
  cohort_manager_free(whole);
  cohort_manager_free(rest);
  cohort_optimizer_free(one);
  cohort_optimizer_free(other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(training_resumes_to_the_bit),        TEST(loaded_states_are_saved_again),
      TEST(states_that_do_not_fit_are_refused), TEST(a_random_state_is_read_and_set),
      TEST(an_executor_has_a_random_state),     TEST(further_devices_draw_new_numbers),
      TEST(buckets_resume_to_the_bit),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
