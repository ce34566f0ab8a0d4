/* SPDX-License-Identifier: Apache-2.0 */
/* States of optimizers: saved and loaded, and carried between the copies of a parameter on the devices of a group. */
#include "support/group_tests.h"
#include "support/optimizers.h"

/* ---- states that are saved and loaded */

static const char *const kNames[] = {"sgd",  "ccsgd", "nag",    "adam",     "adamw",  "rmsprop",     "adagrad",
                                     "ftrl", "ftml",  "signum", "adadelta", "adamax", "nadam",       "dcasgd",
                                     "test", "lamb",  "lars",   "lbsgd",    "sgld",   "groupadagrad"};

static size_t states_of(const cohort_optimizer *optimizer, char *bytes, size_t capacity) {
  size_t size = 0;

  ok(cohort_optimizer_save_states_memory(optimizer, NULL, 0, &size));
  assert_true(size <= capacity);
  ok(cohort_optimizer_save_states_memory(optimizer, bytes, capacity, &size));
  return size;
}

/* Saved states can be loaded, and are the same when saved again. */
static void states_come_back(cohort_optimizer *optimizer, const char *bytes, size_t size) {
  static char again[10000];

  ok(cohort_optimizer_load_states_memory(optimizer, bytes, size));
  assert_int_equal(states_of(optimizer, again, sizeof(again)), size);
  assert_memory_equal(again, bytes, size);
}

/* Damaged states change nothing; those of another optimizer are named as such. */
static void damaged_states_are_refused(void **state) {
  char bytes[2000], again[2000];
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(kNames); ++i) {
    cohort_optimizer *optimizer = create(kNames[i], NULL), *other = create(kNames[(i + 3) % COUNT(kNames)], NULL);
    cohort_ndarray *weight = floats(SHAPE(2, 2), FLOATS(1, 2, 3, 4));
    size_t size, length;

    update(optimizer, "w", weight, floats(SHAPE(2, 2), FLOATS(1, 1, 2, 2)));
    size = states_of(optimizer, bytes, sizeof(bytes));
    for (length = 0; length < size; ++length) {
      cohort_error *error = cohort_optimizer_load_states_memory(optimizer, bytes, length);

      assert_int_equal(cohort_error_code(error), COHORT_ERROR_FORMAT);
      cohort_error_free(error);
    }
    for (length = 0; length < size; ++length) { /* a changed number may be valid, too; nothing crashes */
      memcpy(again, bytes, size);
      again[length] = (char)(again[length] ^ 0x5a);
      cohort_error_free(cohort_optimizer_load_states_memory(other, again, size));
    }
    fails(cohort_optimizer_load_states_memory(other, bytes, size), COHORT_ERROR_FORMAT, "states were saved by");
    states_come_back(optimizer, bytes, size);
    cohort_ndarray_free(weight);
    cohort_optimizer_free(optimizer);
    cohort_optimizer_free(other);
  }
}

/* All states that can be saved can be loaded: with all numbers of copies, all names, and any count of updates. */
static void all_states_that_are_saved_can_be_loaded(void **state) {
  const char *const names[] = {"", "/", "a/b", "0/1/w", "a\nb"};
  const size_t copies[] = {0, 999999999, 1000000000, SIZE_MAX};
  cohort_optimizer *optimizer = create("sgd", SETTINGS({"momentum", "0.9"})),
                   *restored = create("sgd", SETTINGS({"momentum", "0.9"}));
  cohort_ndarray *weight = floats(SHAPE(2), FLOATS(1, 2));
  static char bytes[10000];
  size_t i, k, size;

  (void)state;
  ok(cohort_optimizer_set(optimizer, "begin_num_update", 9e15));
  for (i = 0; i < COUNT(names); ++i) {
    for (k = 0; k < COUNT(copies); ++k) {
      cohort_ndarray *grad = floats(SHAPE(2), FLOATS(1, 1));

      ok(cohort_optimizer_update(optimizer, names[i], copies[k], weight, grad));
      cohort_ndarray_free(grad);
    }
  }
  size = states_of(optimizer, bytes, sizeof(bytes));
  states_come_back(restored, bytes, size);
  cohort_ndarray_free(weight);
  cohort_optimizer_free(optimizer);
  cohort_optimizer_free(restored);
}

/* A history of rows fits only the number of rows it was made for. */
static void states_of_other_rows_are_refused(void **state) {
  cohort_optimizer *optimizer = create("groupadagrad", NULL);
  cohort_ndarray *weight = floats(SHAPE(2, 2), FLOATS(1, 2, 3, 4)), *other = floats(SHAPE(3, 1), FLOATS(1, 2, 3)),
                 *grad = floats(SHAPE(3, 1), FLOATS(1, 1, 1));
  char bytes[2000];
  size_t size;

  (void)state;
  update(optimizer, "w", weight, floats(SHAPE(2, 2), FLOATS(1, 1, 2, 2)));
  size = states_of(optimizer, bytes, sizeof(bytes));
  ok(cohort_optimizer_load_states_memory(optimizer, bytes, size));
  fails(cohort_optimizer_update(optimizer, "w", 0, other, grad), COHORT_ERROR_SHAPE,
        "a state of 'w' has shape (2, 1), expected (3, 1) for the parameter's (3, 1)");
  cohort_ndarray_free(weight);
  cohort_ndarray_free(other);
  cohort_ndarray_free(grad);
  cohort_optimizer_free(optimizer);
}

/* States of another rule are refused with what differs, in the words of the settings. */
static void states_that_do_not_fit_are_told(void **state) {
  const char *const key = "momentum", *const value = "0.9";
  cohort_optimizer *with = NULL, *without = NULL, *adam = NULL;
  char bytes[256];
  size_t size = 0;

  (void)state;
  ok(cohort_optimizer_create("sgd", &key, &value, 1, &with));
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &without));
  ok(cohort_optimizer_create("adam", NULL, NULL, 0, &adam));
  ok(cohort_optimizer_save_states_memory(with, bytes, sizeof(bytes), &size));
  fails(cohort_optimizer_load_states_memory(without, bytes, size), COHORT_ERROR_FORMAT,
        "these states were saved by 'sgd' with momentum, this optimizer is 'sgd' without momentum");
  fails(cohort_optimizer_load_states_memory(adam, bytes, size), COHORT_ERROR_FORMAT,
        "saved by 'sgd' with momentum, this optimizer is 'adam'");
  ok(cohort_optimizer_save_states_memory(without, bytes, sizeof(bytes), &size));
  fails(cohort_optimizer_load_states_memory(with, bytes, size), COHORT_ERROR_FORMAT,
        "saved by 'sgd' without momentum, this optimizer is 'sgd' with momentum");
  cohort_optimizer_free(with);
  cohort_optimizer_free(without);
  cohort_optimizer_free(adam);
}

/* ---- copies of a parameter on the devices of a group */

/* A group that learns to make 1 of 1, beginning with this weight. */
static cohort_group *learning_one(size_t num_contexts, float weight) {
  cohort_group *group = bind_regression(num_contexts, 2, NULL);

  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(weight, 0)));
  return group;
}

static cohort_error *try_step(cohort_group *group, cohort_optimizer *optimizer, cohort_update_mode mode) {
  forward(group, floats(SHAPE(2, 2), FLOATS(1, 0, 1, 0)), floats(SHAPE(2, 1), FLOATS(1, 1)), 1);
  backward(group, NULL);
  return cohort_group_update(group, optimizer, mode);
}

static void weighs(const cohort_group *group, double expected) {
  size_t num_contexts = 0, d;

  ok(cohort_group_num_contexts(group, &num_contexts));
  for (d = 0; d < num_contexts; ++d) {
    cohort_ndarray *const weight = device_array(group, COHORT_GROUP_PARAMS, 0, d);
    float found[2];

    ok(cohort_ndarray_read(weight, found, sizeof(found)));
    is_near(found[0], expected);
    cohort_ndarray_free(weight);
  }
}

/* The momentum of the first device's copy goes to devices that the optimizer has not updated before: in a group of more
 * devices, and when each device begins to update its own copy. */
static void new_copies_go_on_from_the_first(void **state) {
  const setting settings[] = {{"learning_rate", "0.1"}, {"momentum", "0.9"}, {NULL, NULL}};
  const cohort_update_mode first_modes[] = {COHORT_UPDATE_PER_DEVICE, COHORT_UPDATE_ON_STORE};
  size_t i, num_contexts;

  (void)state;
  for (i = 0; i < COUNT(first_modes); ++i) {
    for (num_contexts = 1; num_contexts <= 2; ++num_contexts) {
      cohort_optimizer *optimizer = create("sgd", settings);
      cohort_group *few, *more;

      if (num_contexts == 2 && first_modes[i] == COHORT_UPDATE_PER_DEVICE) {
        cohort_optimizer_free(optimizer);
        continue; /* no change */
      }
      few = learning_one(num_contexts, 0);
      ok(try_step(few, optimizer, first_modes[i]));
      weighs(few, 0.2);
      more = num_contexts == 2 ? few : learning_one(2, 0.2f);
      ok(try_step(more, optimizer, COHORT_UPDATE_PER_DEVICE));
      weighs(more, 0.54);
      ok(try_step(more, optimizer, COHORT_UPDATE_PER_DEVICE));
      weighs(more, 0.938); /* 0.54 + 0.9 * 0.34 + 0.1 * 2 * 0.46 */
      if (more != few) cohort_group_free(more);
      cohort_group_free(few);
      cohort_optimizer_free(optimizer);
    }
  }
}

/* Updates on the store change the states of the first device alone: the others take these when each device updates its
 * own copy again. */
static void copies_that_fell_behind_go_on_from_the_first(void **state) {
  const setting settings[] = {{"learning_rate", "0.1"}, {"momentum", "0.9"}, {NULL, NULL}};
  cohort_optimizer *optimizer = create("sgd", settings);
  cohort_group *group = learning_one(2, 0);

  (void)state;
  ok(try_step(group, optimizer, COHORT_UPDATE_PER_DEVICE));
  ok(try_step(group, optimizer, COHORT_UPDATE_ON_STORE));
  weighs(group, 0.54);
  ok(try_step(group, optimizer, COHORT_UPDATE_PER_DEVICE));
  weighs(group, 0.938); /* 0.54 + 0.9 * 0.34 + 0.1 * 2 * 0.46 */
  ok(try_step(group, optimizer, COHORT_UPDATE_PER_DEVICE));
  weighs(group, 1.3086);
  cohort_group_free(group);
  cohort_optimizer_free(optimizer);
}

/* Groups on different devices that take turns with one optimizer see each other's states. */
static void states_follow_to_other_contexts(void **state) {
  const setting settings[] = {{"learning_rate", "0.1"}, {"momentum", "0.9"}, {NULL, NULL}};
  const double expected[] = {0.2, 0.54, 0.938, 1.3086}; /* the last: 0.938 + 0.9 * 0.398 + 0.1 * 2 * 0.062 */
  const char *const params[] = {"fc_weight"};
  cohort_optimizer *optimizer = create("sgd", settings);
  cohort_group *groups[2];
  size_t step, i;

  (void)state;
  for (i = 0; i < 2; ++i) {
    const cohort_context cpu = {COHORT_DEVICE_CPU, (int32_t)i};
    cohort_symbol *symbol = regression("1");
    cohort_descs *data = desc("data", SHAPE(2, 2), NULL), *label = desc("label", SHAPE(2, 1), NULL);

    ok(cohort_group_create(symbol, &cpu, 1, data, label, params, 1, 1, NULL, &groups[i]));
    cohort_symbol_free(symbol);
    cohort_descs_free(data);
    cohort_descs_free(label);
  }
  for (step = 0; step < COUNT(expected); ++step) {
    cohort_group *const group = groups[step % 2];

    set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(step ? (float)expected[step - 1] : 0, 0)));
    ok(try_step(group, optimizer, COHORT_UPDATE_PER_DEVICE));
    weighs(group, expected[step]);
  }
  for (i = 0; i < 2; ++i) cohort_group_free(groups[i]);
  cohort_optimizer_free(optimizer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(damaged_states_are_refused),       TEST(all_states_that_are_saved_can_be_loaded),
      TEST(states_of_other_rows_are_refused), TEST(states_that_do_not_fit_are_told),
      TEST(new_copies_go_on_from_the_first),  TEST(copies_that_fell_behind_go_on_from_the_first),
      TEST(states_follow_to_other_contexts)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
