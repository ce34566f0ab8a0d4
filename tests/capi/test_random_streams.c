/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: every node on every device, in every shape and bucket, draws its own. */
#include "support/group_tests.h"

#define NODES 4
#define LENGTH 256
#define MOST 64

/* All numbers that streams have drawn so far. */
static float drawn[MOST][LENGTH];
static size_t num_drawn;

/* Records the numbers a node has drawn, which must differ from all recorded before. */
static void note(cohort_ndarray *array) {
  size_t i;

  assert_true(num_drawn < MOST);
  ok(cohort_ndarray_read(array, drawn[num_drawn], sizeof drawn[num_drawn]));
  cohort_ndarray_free(array);
  for (i = 0; i < num_drawn; ++i) {
    if (memcmp(drawn[i], drawn[num_drawn], sizeof drawn[i]) == 0) fail_msg("draws %zu and %zu are equal", i, num_drawn);
  }
  ++num_drawn;
}

/* Four nodes that each drop half of the data. */
static cohort_symbol *dropouts(void) {
  static const char *const names[NODES] = {"a", "b", "c", "d"};
  cohort_symbol *data = variable("data"), *nodes[NODES], *all = NULL;
  size_t n;

  for (n = 0; n < NODES; ++n) {
    cohort_symbol *same = NULL;

    ok(cohort_symbol_output(data, 0, &same));
    nodes[n] = node("Dropout", names[n], ATTRS("p", "0.5"), INPUTS(same));
  }
  ok(cohort_symbol_group(nodes, NODES, &all));
  for (n = 0; n < NODES; ++n) cohort_symbol_free(nodes[n]);
  cohort_symbol_free(data);
  return all;
}

static cohort_ndarray *ones(int64_t rows) {
  cohort_ndarray *array = counted(SHAPE(rows, LENGTH), 0);

  ok(cohort_ndarray_fill(array, 1));
  return array;
}

static void draw(cohort_group *group, size_t num_devices) {
  size_t n, d;

  forward(group, ones((int64_t)num_devices), NULL, 1);
  for (d = 0; d < num_devices; ++d) {
    for (n = 0; n < NODES; ++n) note(device_array(group, COHORT_GROUP_OUTPUTS, n, d));
  }
}

/* Devices, nodes, passes, and networks that share memory, as buckets do, all draw different numbers; so do seeds. */
static void no_two_streams_are_the_same(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group, *bucket, *other;

  (void)state;
  num_drawn = 0;
  options.seed = 7;
  group = bind_for_training(dropouts(), 3, desc("data", SHAPE(3, LENGTH), "NC"), NULL, NO_NAMES, &options);
  draw(group, 3);
  draw(group, 3);
  options.shared_group = group;
  bucket = bind_for_training(dropouts(), 3, desc("data", SHAPE(3, LENGTH), "NC"), NULL, NO_NAMES, &options);
  draw(bucket, 3);
  options.shared_group = NULL;
  options.seed = 8;
  other = bind_for_training(dropouts(), 3, desc("data", SHAPE(3, LENGTH), "NC"), NULL, NO_NAMES, &options);
  draw(other, 3);
  cohort_group_free(group);
  cohort_group_free(bucket);
  cohort_group_free(other);
}

/* A reshaped group continues its random sequences, and the same seed draws the same again. */
static void shapes_change_and_the_numbers_go_on(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  float first[LENGTH];
  int time;

  (void)state;
  options.seed = 7;
  for (time = 0; time < 2; ++time) {
    cohort_group *group =
        bind_for_training(dropouts(), 1, desc("data", SHAPE(1, LENGTH), "NC"), NULL, NO_NAMES, &options);
    cohort_descs *shapes;

    num_drawn = 0;
    draw(group, 1);
    if (time == 0) memcpy(first, drawn[0], sizeof first);
    assert_memory_equal(first, drawn[0], sizeof first);
    shapes = desc("data", SHAPE(2, LENGTH / 2), "NC");
    ok(cohort_group_reshape(group, shapes, NULL));
    cohort_descs_free(shapes);
    forward(group, counted(SHAPE(2, LENGTH / 2), 0), NULL, 1);
    shapes = desc("data", SHAPE(1, LENGTH), "NC");
    ok(cohort_group_reshape(group, shapes, NULL));
    cohort_descs_free(shapes);
    draw(group, 1);
    cohort_group_free(group);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(no_two_streams_are_the_same),
      TEST(shapes_change_and_the_numbers_go_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
