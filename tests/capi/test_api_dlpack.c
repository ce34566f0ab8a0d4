/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack, version 1, in both directions. The structs here are laid out as that standard says. */
#include "support/boundary.h"

typedef struct tensor {
  void *data;
  int32_t device_type, device_id;
  int32_t num_axes;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor;

typedef struct managed {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct managed *self);
  uint64_t flags;
  tensor tensor;
} managed;

enum { DL_CPU = 1, DL_CUDA = 2, DL_VULKAN = 7 };
enum { DL_INT = 0, DL_FLOAT = 2, DL_COMPLEX = 5 };

static void count_delete(managed *self) { ++*(int *)self->context; }

/* A (2, 3) float32 tensor over these values, row-major. */
static managed lend(float *values, int64_t *shape, int64_t *strides, int *num_deleted) {
  managed lent;

  memset(&lent, 0, sizeof(lent));
  lent.major = 1;
  lent.context = num_deleted;
  lent.deleter = count_delete;
  lent.tensor.data = values;
  lent.tensor.device_type = DL_CPU;
  lent.tensor.num_axes = 2;
  lent.tensor.code = DL_FLOAT;
  lent.tensor.bits = 32;
  lent.tensor.lanes = 1;
  lent.tensor.shape = shape;
  lent.tensor.strides = strides;
  return lent;
}

/* An array that is exported and imported again is the same memory, which lives as long as either side needs it. */
static void round_trip_keeps_the_memory(void **state) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[] = {2, 3};
  cohort_ndarray *array, *back = NULL;
  void *lent = NULL, *before = NULL, *after = NULL;
  const managed *seen;

  (void)state;
  only_on_cpus();
  array = floats(values, shape, 2);
  ok(cohort_ndarray_data(array, &before));
  ok(cohort_ndarray_to_dlpack(array, &lent));
  seen = lent;
  assert_int_equal(seen->major, 1);
  assert_int_equal(seen->flags, 0);
  assert_int_equal(seen->tensor.num_axes, 2);
  assert_int_equal(seen->tensor.shape[1], 3);
  assert_int_equal(seen->tensor.strides[0], 3);
  assert_int_equal(seen->tensor.strides[1], 1);
  assert_int_equal(seen->tensor.device_type, DL_CPU);
  assert_ptr_equal((char *)seen->tensor.data + seen->tensor.byte_offset, before);
  cohort_ndarray_free(array);
  assert_int_equal(cohort_live_handles(), 0);
  ok(cohort_ndarray_from_dlpack(lent, &back));
  ok(cohort_ndarray_data(back, &after));
  assert_ptr_equal(before, after);
  assert_shape(back, shape, 2);
  assert_floats(back, values, 6);
  cohort_ndarray_free(back);
}

/* Every dtype survives a round trip. */
static void every_dtype_goes_through(void **state) {
  static const int32_t dtypes[] = {0, 1, 2, 3, 4, 5, 6, 7, 12};
  const int64_t length = 3;
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(dtypes); ++i) {
    cohort_ndarray *array = NULL, *back = NULL;
    void *lent = NULL;
    int32_t dtype = -7;

    ok(cohort_ndarray_zeros(&length, 1, dtypes[i], NULL, &array));
    ok(cohort_ndarray_to_dlpack(array, &lent));
    ok(cohort_ndarray_from_dlpack(lent, &back));
    ok(cohort_ndarray_dtype(back, &dtype));
    assert_int_equal(dtype, dtypes[i]);
    cohort_ndarray_free(array);
    cohort_ndarray_free(back);
  }
}

/* Imported memory is given back once, when the last view of it is gone. */
static void taken_memory_is_given_back_once(void **state) {
  float values[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 3};
  int num_deleted = 0;
  managed lent = lend(values, shape, NULL, &num_deleted);
  cohort_ndarray *array = NULL, *row = NULL;

  (void)state;
  ok(cohort_ndarray_from_dlpack(&lent, &array));
  ok(cohort_ndarray_at(array, 1, &row));
  cohort_ndarray_free(array);
  ok(cohort_ndarray_fill(row, 9));
  assert_true(values[3] == 9);
  assert_int_equal(num_deleted, 0);
  cohort_ndarray_free(row);
  assert_int_equal(num_deleted, 1);
}

/* Strided and read-only tensors are copied in their own order and given back at once. */
static void others_are_copied(void **state) {
  float values[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {3, 2}, transposed[] = {1, 3}, reversed[] = {-2, 1};
  int num_deleted = 0;
  managed lent = lend(values, shape, transposed, &num_deleted);
  cohort_ndarray *array = NULL;

  (void)state;
  ok(cohort_ndarray_from_dlpack(&lent, &array));
  assert_int_equal(num_deleted, 1);
  assert_floats(array, (const float[]){1, 4, 2, 5, 3, 6}, 6);
  cohort_ndarray_free(array);

  lent = lend(values, shape, reversed, &num_deleted);
  lent.tensor.byte_offset = 4 * sizeof(float);
  ok(cohort_ndarray_from_dlpack(&lent, &array));
  assert_int_equal(num_deleted, 2);
  assert_floats(array, (const float[]){5, 6, 3, 4, 1, 2}, 6);
  cohort_ndarray_free(array);

  lent = lend(values, shape, NULL, &num_deleted);
  lent.flags = 1;
  ok(cohort_ndarray_from_dlpack(&lent, &array));
  assert_int_equal(num_deleted, 3);
  ok(cohort_ndarray_fill(array, 0));
  assert_true(values[0] == 1);
  cohort_ndarray_free(array);
}

/* A tensor that cannot be imported is refused and still belongs to its owner. */
static void refused_tensors_stay_their_owners(void **state) {
  float values[6] = {0};
  int64_t shape[] = {2, 3}, negative[] = {2, -3};
  int num_deleted = 0;
  cohort_ndarray *array = NULL;
  managed lent;

  (void)state;
#define REFUSED(change, code, part)                               \
  do {                                                            \
    lent = lend(values, shape, NULL, &num_deleted);               \
    change;                                                       \
    fails(cohort_ndarray_from_dlpack(&lent, &array), code, part); \
  } while (0)
  REFUSED(lent.major = 2, COHORT_ERROR_UNSUPPORTED, "version");
  REFUSED(lent.major = 0, COHORT_ERROR_UNSUPPORTED, "version");
  REFUSED(lent.tensor.code = DL_COMPLEX, COHORT_ERROR_UNSUPPORTED, "code 5");
  REFUSED(lent.tensor.bits = 24, COHORT_ERROR_UNSUPPORTED, "24 bits");
  REFUSED(lent.tensor.lanes = 4, COHORT_ERROR_UNSUPPORTED, "4 lanes");
  REFUSED(lent.tensor.device_type = DL_VULKAN, COHORT_ERROR_DEVICE, "type 7");
  REFUSED(lent.tensor.shape = NULL, COHORT_ERROR_INVALID_ARGUMENT, "shape");
  REFUSED(lent.tensor.num_axes = -1, COHORT_ERROR_INVALID_ARGUMENT, "-1");
  REFUSED(lent.tensor.num_axes = COHORT_MAX_AXES + 1, COHORT_ERROR_INVALID_ARGUMENT, "33");
  REFUSED(lent.tensor.shape = negative, COHORT_ERROR_SHAPE, "-3");
  REFUSED(lent.tensor.data = NULL, COHORT_ERROR_INVALID_ARGUMENT, "data");
#undef REFUSED
  fails(cohort_ndarray_from_dlpack(NULL, &array), COHORT_ERROR_INVALID_ARGUMENT, "managed");
  assert_int_equal(num_deleted, 0);
  assert_null(array);
}

typedef struct unversioned {
  tensor tensor;
  void *context;
  void (*deleter)(struct unversioned *self);
} unversioned;

static void count_delete_unversioned(unversioned *self) { ++*(int *)self->context; }

/* The struct from before version 1 works in both directions, and memory is given back once. */
static void libraries_before_version_1_are_served(void **state) {
  float values[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {3, 2}, transposed[] = {1, 3}, row[] = {6};
  int num_deleted = 0;
  unversioned ours, *seen;
  cohort_ndarray *array, *back = NULL;
  void *lent = NULL, *before = NULL, *after = NULL;

  (void)state;
  only_on_cpus();
  array = floats(values, row, 1);
  ok(cohort_ndarray_data(array, &before));
  ok(cohort_ndarray_to_dlpack_unversioned(array, &lent));
  cohort_ndarray_free(array);
  seen = lent;
  assert_int_equal(seen->tensor.num_axes, 1);
  assert_int_equal(seen->tensor.bits, 32);
  assert_ptr_equal(seen->tensor.data, before);
  ok(cohort_ndarray_from_dlpack_unversioned(lent, &back));
  ok(cohort_ndarray_data(back, &after));
  assert_ptr_equal(before, after);
  assert_floats(back, values, 6);
  cohort_ndarray_free(back);

  memset(&ours, 0, sizeof(ours));
  ours.tensor = lend(values, shape, NULL, &num_deleted).tensor;
  ours.context = &num_deleted;
  ours.deleter = count_delete_unversioned;
  ok(cohort_ndarray_from_dlpack_unversioned(&ours, &array));
  ok(cohort_ndarray_fill(array, 9));
  assert_true(values[5] == 9);
  assert_int_equal(num_deleted, 0);
  cohort_ndarray_free(array);
  assert_int_equal(num_deleted, 1);
  ours.tensor.strides = transposed;
  ok(cohort_ndarray_from_dlpack_unversioned(&ours, &array));
  assert_int_equal(num_deleted, 2);
  cohort_ndarray_free(array);
  array = NULL;
  ours.tensor.lanes = 4;
  fails(cohort_ndarray_from_dlpack_unversioned(&ours, &array), COHORT_ERROR_UNSUPPORTED, "4 lanes");
  fails(cohort_ndarray_from_dlpack_unversioned(NULL, &array), COHORT_ERROR_INVALID_ARGUMENT, "managed");
  assert_int_equal(num_deleted, 2);
  assert_null(array);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(round_trip_keeps_the_memory),       TEST(every_dtype_goes_through),
      TEST(taken_memory_is_given_back_once),   TEST(others_are_copied),
      TEST(refused_tensors_stay_their_owners), TEST(libraries_before_version_1_are_served),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
