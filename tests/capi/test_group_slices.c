/* SPDX-License-Identifier: Apache-2.0 */
/* How a batch is split by workload: WRK-01 to WRK-08 of the behaviour contract. */
#include <math.h>

#include "support/group_tests.h"

#define MOST_CONTEXTS 8

/* Checks that the slices have these sizes, follow one another from 0 and cover the batch. */
static void sizes_are(int64_t batch, const double *workload, size_t num, int32_t rounding, const int64_t *sizes) {
  int64_t begin[MOST_CONTEXTS], end[MOST_CONTEXTS], next = 0;
  size_t i;

  ok(cohort_split_slices(batch, workload, num, rounding, begin, end));
  for (i = 0; i < num; ++i) {
    assert_int_equal(begin[i], next);
    assert_int_equal(end[i] - begin[i], sizes[i]);
    next = end[i];
  }
  assert_int_equal(next, batch);
}

#define WORKLOAD(...) (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double)
#define EQUAL(num) NULL, num
#define SIZES(...) \
  (const int64_t[]) { __VA_ARGS__ }

static void refused(int64_t batch, const double *workload, size_t num, int32_t rounding, const char *words) {
  int64_t begin[MOST_CONTEXTS] = {-7, -7}, end[MOST_CONTEXTS] = {-7, -7};

  fails(cohort_split_slices(batch, workload, num, rounding, begin, end), COHORT_ERROR_INVALID_ARGUMENT, words);
  assert_int_equal(begin[0], -7);
  assert_int_equal(end[0], -7);
}

/* WRK-01, WRK-03: shares are rounded; missing rows are added to the last device, excess rows are cut off the last. */
static void shares_follow_the_workload(void **state) {
  (void)state;
  sizes_are(10, WORKLOAD(1, 2), COHORT_ROUNDING_HALF_UP, SIZES(3, 7));
  sizes_are(10, WORKLOAD(1, 1, 1), COHORT_ROUNDING_HALF_UP, SIZES(3, 3, 4));
  sizes_are(7, WORKLOAD(1, 1, 1, 1), COHORT_ROUNDING_HALF_UP, SIZES(2, 2, 2, 1));
  sizes_are(100, WORKLOAD(1, 1, 1), COHORT_ROUNDING_HALF_EVEN, SIZES(33, 33, 34));
  sizes_are(64, WORKLOAD(3, 1, 1, 1), COHORT_ROUNDING_HALF_EVEN, SIZES(32, 11, 11, 10));
  sizes_are(10, WORKLOAD(.5, .25, .25), COHORT_ROUNDING_HALF_EVEN, SIZES(5, 2, 3));
  sizes_are(10, WORKLOAD(3, 1), COHORT_ROUNDING_HALF_EVEN, SIZES(8, 2));
  sizes_are(5, WORKLOAD(3.5), COHORT_ROUNDING_HALF_UP, SIZES(5));
}

/* WRK-02: the modes differ only where a share ends in a half. */
static void halves_go_up_or_to_the_even_number(void **state) {
  (void)state;
  sizes_are(5, EQUAL(2), COHORT_ROUNDING_HALF_EVEN, SIZES(2, 3));
  sizes_are(5, EQUAL(2), COHORT_ROUNDING_HALF_UP, SIZES(3, 2));
  sizes_are(9, EQUAL(2), COHORT_ROUNDING_HALF_EVEN, SIZES(4, 5));
  sizes_are(9, EQUAL(2), COHORT_ROUNDING_HALF_UP, SIZES(5, 4));
  sizes_are(10, EQUAL(4), COHORT_ROUNDING_HALF_EVEN, SIZES(2, 2, 2, 4));
  sizes_are(10, EQUAL(4), COHORT_ROUNDING_HALF_UP, SIZES(3, 3, 3, 1));
  sizes_are(18, EQUAL(4), COHORT_ROUNDING_HALF_EVEN, SIZES(4, 4, 4, 6));
  sizes_are(18, EQUAL(4), COHORT_ROUNDING_HALF_UP, SIZES(5, 5, 5, 3));
  sizes_are(8, EQUAL(2), COHORT_ROUNDING_HALF_EVEN, SIZES(4, 4));
  sizes_are(8, EQUAL(2), COHORT_ROUNDING_HALF_UP, SIZES(4, 4));
}

/* WRK-04: a device without samples is refused, even if the batch is large enough and only rounding has emptied it. */
static void a_device_without_samples_is_refused(void **state) {
  const int32_t modes[] = {COHORT_ROUNDING_HALF_UP, COHORT_ROUNDING_HALF_EVEN};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(modes); ++i) {
    refused(3, EQUAL(4), modes[i], "batch of 3 over 4 contexts with workloads [1, 1, 1, 1]: an empty split");
    refused(6, EQUAL(4), modes[i], "batch of 6 over 4 contexts with workloads [1, 1, 1, 1]: an empty split");
    refused(4, WORKLOAD(1e-9, 1), modes[i], "batch of 4 over 2 contexts with workloads [1e-09, 1]: an empty split");
    refused(0, EQUAL(1), modes[i], "the batch is empty");
  }
  refused(2, WORKLOAD(1, 3), COHORT_ROUNDING_HALF_EVEN, "batch of 2 over 2 contexts with workloads [1, 3]");
  sizes_are(2, WORKLOAD(1, 3), COHORT_ROUNDING_HALF_UP, SIZES(1, 1)); /* 0.5 and 1.5, both rounded up */
}

/* WRK-04: the balanced mode works whenever there are enough samples for all devices. */
static void the_balanced_mode_gives_each_device_a_sample(void **state) {
  int64_t begin[MOST_CONTEXTS], end[MOST_CONTEXTS], batch;
  size_t num;

  (void)state;
  for (num = 1; num <= MOST_CONTEXTS; ++num)
    for (batch = (int64_t)num; batch <= 40; ++batch)
      ok(cohort_split_slices(batch, NULL, num, COHORT_ROUNDING_BALANCED, begin, end));
  sizes_are(6, EQUAL(4), COHORT_ROUNDING_BALANCED, SIZES(2, 2, 1, 1));
  sizes_are(4, EQUAL(4), COHORT_ROUNDING_BALANCED, SIZES(1, 1, 1, 1));
  sizes_are(4, WORKLOAD(1e-9, 1), COHORT_ROUNDING_BALANCED, SIZES(1, 3));
  sizes_are(10, WORKLOAD(1, 2), COHORT_ROUNDING_BALANCED, SIZES(3, 7));
  refused(3, EQUAL(4), COHORT_ROUNDING_BALANCED, "3");
}

/* WRK-04, WRK-05: a workload is a positive finite number, in every mode. */
static void a_workload_is_positive_and_finite(void **state) {
  int32_t mode;

  (void)state;
  for (mode = COHORT_ROUNDING_HALF_UP; mode <= COHORT_ROUNDING_BALANCED; ++mode) {
    refused(8, WORKLOAD(1, 0), mode, "[1, 0]: an empty split");
    refused(8, WORKLOAD(2, -1), mode, "[2, -1]: an empty split");
    refused(8, WORKLOAD(0, 0), mode, "[0, 0]: an empty split");
    refused(8, WORKLOAD(1, NAN), mode, "not finite");
    refused(8, WORKLOAD(INFINITY, 1), mode, "not finite");
    refused(8, WORKLOAD(-INFINITY, 1), mode, "not finite");
  }
}

/* WRK-08: only the ratios of workloads matter. */
static void only_ratios_matter(void **state) {
  (void)state;
  sizes_are(12, WORKLOAD(1, 2, 3), COHORT_ROUNDING_HALF_UP, SIZES(2, 4, 6));
  sizes_are(12, WORKLOAD(1e-3, 2e-3, 3e-3), COHORT_ROUNDING_HALF_UP, SIZES(2, 4, 6));
  sizes_are(12, WORKLOAD(1e200, 2e200, 3e200), COHORT_ROUNDING_HALF_UP, SIZES(2, 4, 6));
}

static void wrong_arguments_of_a_split_are_refused(void **state) {
  int64_t begin[1], end[1];

  (void)state;
  refused(-1, EQUAL(1), COHORT_ROUNDING_HALF_UP, "-1");
  refused(8, EQUAL(0), COHORT_ROUNDING_HALF_UP, "");
  refused(8, EQUAL(2), 3, "3");
  fails(cohort_split_slices(8, NULL, 1, COHORT_ROUNDING_HALF_UP, NULL, end), COHORT_ERROR_INVALID_ARGUMENT, "begin");
  fails(cohort_split_slices(8, NULL, 1, COHORT_ROUNDING_HALF_UP, begin, NULL), COHORT_ERROR_INVALID_ARGUMENT, "end");
}

static void slice_is(const cohort_group *group, size_t device, int64_t begin, int64_t end) {
  int64_t found_begin = -1, found_end = -1;

  ok(cohort_group_slice(group, device, &found_begin, &found_end));
  assert_int_equal(found_begin, begin);
  assert_int_equal(found_end, end);
}

/* GRP-03, GRP-04: a group splits by its workload, in mode half_up unless another is given. */
static void a_group_splits_by_its_workload(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  const double workload[] = {1, 2};
  cohort_group *group;
  int64_t batch_size = 0;

  (void)state;
  options.workload = workload;
  options.num_workloads = COUNT(workload);
  group = bind_regression(2, 7, &options);
  slice_is(group, 0, 0, 2);
  slice_is(group, 1, 2, 7);
  ok(cohort_group_batch_size(group, &batch_size));
  assert_int_equal(batch_size, 7);
  cohort_group_free(group);

  group = bind_regression(2, 5, NULL);
  slice_is(group, 0, 0, 3);
  cohort_group_free(group);

  cohort_group_options_init(&options, sizeof(options));
  options.rounding = COHORT_ROUNDING_HALF_EVEN;
  group = bind_regression(2, 5, &options);
  slice_is(group, 0, 0, 2);
  cohort_group_free(group);
}

/* Checks that binding six rows on two devices with these options is refused. */
static void bind_is_refused(const cohort_group_options *options, const char *words) {
  cohort_group *group = NULL;

  fails(try_bind(&group, regression("1"), 2, desc("data", SHAPE(6, 2), NULL), desc("label", SHAPE(6, 1), NULL),
                 NAMES("fc_weight"), options),
        COHORT_ERROR_INVALID_ARGUMENT, words);
  assert_null(group);
}

/* WRK-06: there must be exactly one workload per context. DIF-02, GRP-03: an empty list means equal shares. */
static void a_group_takes_one_workload_a_context(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  const double workload[] = {1, 2, 1};
  cohort_group *group;

  (void)state;
  options.workload = workload;
  options.num_workloads = 3;
  bind_is_refused(&options, "workload: expected one number for each of 2 contexts, found 3");
  options.num_workloads = 1;
  bind_is_refused(&options, "workload: expected one number for each of 2 contexts, found 1");
  options.num_workloads = 0;
  group = bind_regression(2, 6, &options);
  slice_is(group, 0, 0, 3);
  cohort_group_free(group);
  options.workload = NULL;
  group = bind_regression(2, 6, &options);
  slice_is(group, 0, 0, 3);
  cohort_group_free(group);
}

/* WRK-07, GRP-04: explicit slices, one per context, follow one another from 0 to the batch size without gaps, and none
 * is empty; they override workloads. */
static void a_group_takes_explicit_slices(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  const double workload[] = {1, 1};
  const int64_t good[] = {0, 1, 1, 6}, gap[] = {0, 2, 3, 6}, overlap[] = {0, 3, 2, 6}, empty[] = {0, 0, 0, 6};
  const int64_t late[] = {1, 3, 3, 6}, descending[] = {3, 6, 0, 3}, short_of[] = {0, 2, 2, 5}, beyond[] = {0, 2, 2, 7};
  const int64_t *const bad[] = {gap, overlap, empty, late, descending, short_of, beyond};
  cohort_group *group;
  size_t i;

  (void)state;
  options.num_slices = 2;
  options.slices = good;
  options.workload = workload;
  options.num_workloads = 2;
  group = bind_regression(2, 6, &options);
  slice_is(group, 0, 0, 1);
  slice_is(group, 1, 1, 6);
  forward(group, counted(SHAPE(6, 2), 1), NULL, 0);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 0), 0, 1);
  cohort_group_free(group);
  for (i = 0; i < COUNT(bad); ++i) {
    options.slices = bad[i];
    bind_is_refused(&options, "slices");
  }
  options.slices = good;
  options.num_slices = 1;
  bind_is_refused(&options, "slices: expected one for each of 2 contexts, found 1");
}

/* WRK-04: the group refuses the batch with its size and the number of contexts, and leaves nothing behind. */
static void a_batch_too_small_for_its_devices_is_refused(void **state) {
  cohort_group *group = NULL;

  (void)state;
  fails(try_bind(&group, regression("1"), 8, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                 NAMES("fc_weight"), NULL),
        COHORT_ERROR_INVALID_ARGUMENT, "batch of 4 over 8 contexts");
  assert_null(group);
}

/* A batch of any size is split in constant time, without overflow. */
static void huge_batches_are_split_at_once(void **state) {
  static const double workload[] = {1, 2, 3};
  int64_t begin[3] = {-1, -1, -1}, end[3] = {-1, -1, -1};
  size_t num;
  int32_t rounding;

  (void)state;
  for (num = 1; num <= 3; ++num) {
    for (rounding = COHORT_ROUNDING_HALF_UP; rounding <= COHORT_ROUNDING_BALANCED; ++rounding) {
      ok(cohort_split_slices(INT64_MAX, workload, num, rounding, begin, end));
      assert_true(begin[0] == 0 && end[num - 1] == INT64_MAX);
      if (num > 1) assert_true(end[0] == begin[1] && end[0] > 0);
      if (num > 2) assert_true(end[1] == begin[2] && end[1] > begin[1] && end[1] < INT64_MAX);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(shares_follow_the_workload),
      TEST(halves_go_up_or_to_the_even_number),
      TEST(a_device_without_samples_is_refused),
      TEST(the_balanced_mode_gives_each_device_a_sample),
      TEST(a_workload_is_positive_and_finite),
      TEST(only_ratios_matter),
      TEST(wrong_arguments_of_a_split_are_refused),
      TEST(a_group_splits_by_its_workload),
      TEST(a_group_takes_one_workload_a_context),
      TEST(a_group_takes_explicit_slices),
      TEST(a_batch_too_small_for_its_devices_is_refused),
      TEST(huge_batches_are_split_at_once),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
