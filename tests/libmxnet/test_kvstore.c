/* SPDX-License-Identifier: Apache-2.0 */
/* Stores of parameters in one process: sums over devices, updaters of the host, keys of both kinds, wrong calls. */
#include "mxnet_test.h"

static const uint32_t pair[] = {2};

static KVStoreHandle new_store(const char *type) {
  KVStoreHandle store = NULL;

  ok(MXKVStoreCreate(type, &store));
  return store;
}

static NDArrayHandle two(float a, float b) {
  const float values[] = {a, b};

  return floats_on(0, values, pair, 1);
}

static void assert_pulled(KVStoreHandle store, const char *key, float a, float b) {
  const float expected[] = {a, b};
  NDArrayHandle out = two(-1, -1);

  ok(MXKVStorePullWithSparseEx(store, 1, &key, &out, 0, true));
  take_floats(out, expected, 2);
}

static void free_all(NDArrayHandle *arrays, size_t num) {
  size_t i;

  for (i = 0; i < num; ++i) ok(MXNDArrayFree(arrays[i]));
}

static const char *const all_types[] = {"local", "device", "local_allreduce_cpu", "local_allreduce_device", "Local"};

static void a_store_has_its_type_and_is_alone(void **state) {
  const char *type = NULL;
  int rank = -1, size = -1, worker = -1, server = -1, scheduler = -1, dead = -1;
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(all_types); ++i) {
    KVStoreHandle store = new_store(all_types[i]);

    ok(MXKVStoreGetType(store, &type));
    assert_string_equal(type, i == 4 ? "local" : all_types[i]);
    ok(MXKVStoreGetRank(store, &rank));
    ok(MXKVStoreGetGroupSize(store, &size));
    ok(MXKVStoreGetNumDeadNode(store, 0, &dead, 60));
    assert_int_equal(rank, 0);
    assert_int_equal(size, 1);
    assert_int_equal(dead, 0);
    ok(MXKVStoreBarrier(store));
    ok(MXKVStoreSetBarrierBeforeExit(store, 1));
    ok(MXKVStoreSendCommmandToServers(store, 0, "optimizer"));
    ok(MXKVStoreFree(store));
  }
  ok(MXKVStoreIsWorkerNode(&worker));
  ok(MXKVStoreIsServerNode(&server));
  ok(MXKVStoreIsSchedulerNode(&scheduler));
  assert_int_equal(worker, 1);
  assert_int_equal(server, 0);
  assert_int_equal(scheduler, 0);
}

static void what_is_pushed_replaces_the_value_as_a_sum(void **state) {
  const char *const keys[] = {"a", "b", "a", "a"};
  const float ones[] = {1, 2}, tens[] = {10, 20};
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(all_types); ++i) {
    KVStoreHandle store = new_store(all_types[i]);
    NDArrayHandle initial[] = {two(7, 8), two(9, 10)};
    NDArrayHandle pushed[] = {floats_on(0, ones, pair, 1), two(5, 6), floats_on(1, tens, pair, 1),
                              floats_on(2, tens, pair, 1)};

    ok(MXKVStoreInitEx(store, 2, (const char **)keys, initial));
    assert_pulled(store, "a", 7, 8);
    ok(MXKVStorePushEx(store, 4, (const char **)keys, pushed, 3));
    assert_pulled(store, "a", 21, 42);
    assert_pulled(store, "b", 5, 6);
    free_all(initial, 2);
    free_all(pushed, 4);
    ok(MXKVStoreFree(store));
  }
}

/* Neither what came in nor what went out is the store's own array. */
static void the_store_has_arrays_of_its_own(void **state) {
  const float nines[] = {9, 9};
  const char *key = "a";
  KVStoreHandle store = new_store("local");
  NDArrayHandle value = two(1, 2), out = two(0, 0);

  (void)state;
  ok(MXKVStoreInitEx(store, 1, &key, &value));
  ok(MXNDArraySyncCopyFromCPU(value, nines, 2));
  ok(MXKVStorePullEx(store, 1, &key, &out, 0));
  ok(MXNDArraySyncCopyFromCPU(out, nines, 2));
  assert_pulled(store, "a", 1, 2);
  ok(MXKVStorePushEx(store, 1, &key, &value, 0));
  ok(MXNDArraySyncCopyFromCPU(value, ((const float[]){3, 3}), 2));
  assert_pulled(store, "a", 9, 9);
  ok(MXKVStoreFree(store));
  ok(MXNDArrayFree(value));
  ok(MXNDArrayFree(out));
}

static void push_and_pull_may_be_one_call(void **state) {
  const int keys[] = {5, 5}, out_keys[] = {5, 7};
  const float expected[] = {4, 6}, other[] = {1, 1};
  KVStoreHandle store = new_store("device");
  NDArrayHandle values[] = {two(1, 2), two(3, 4)}, outs[] = {two(0, 0), two(0, 0)}, initial[] = {two(0, 0), two(1, 1)};

  (void)state;
  ok(MXKVStoreBroadcast(store, 2, out_keys, 2, out_keys, initial, outs, 0));
  assert_floats(outs[1], other, 2);
  ok(MXKVStorePushPull(store, 2, keys, 2, out_keys, values, outs, 0));
  assert_floats(outs[0], expected, 2);
  assert_floats(outs[1], other, 2);
  fails(MXKVStoreBroadcast(store, 1, keys, 1, keys, initial, outs, 0), "key 5 is in the store already");
  free_all(values, 2);
  free_all(outs, 2);
  free_all(initial, 2);
  ok(MXKVStoreFree(store));
}

/* A record of what the updaters below have seen, and the store that they call back. */
typedef struct seen {
  char text[200];
  KVStoreHandle store;
} seen;

/* stored += 2 pushed, as a host would write it; both handles are its own. */
static void update(NDArrayHandle pushed, NDArrayHandle stored) {
  float recv[2], local[2];

  ok(MXNDArraySyncCopyToCPU(pushed, recv, 2));
  ok(MXNDArraySyncCopyToCPU(stored, local, 2));
  local[0] += 2 * recv[0];
  local[1] += 2 * recv[1];
  ok(MXNDArraySyncCopyFromCPU(stored, local, 2));
  ok(MXNDArrayFree(pushed));
  ok(MXNDArrayFree(stored));
}

static void update_number(int key, NDArrayHandle pushed, NDArrayHandle stored, void *handle) {
  seen *const to = handle;

  sprintf(to->text + strlen(to->text), "%d ", key);
  update(pushed, stored);
}

static void update_text(const char *key, NDArrayHandle pushed, NDArrayHandle stored, void *handle) {
  seen *const to = handle;

  sprintf(to->text + strlen(to->text), "'%s' ", key);
  update(pushed, stored);
  if (to->store) assert_pulled(to->store, key, 12, 14); /* a call on the store from within */
}

static void updaters_change_what_is_stored(void **state) {
  const int numbers[] = {9, 3, 9};
  const char *const texts[] = {"z", "b"};
  const float nine[] = {1 + 2 * (1 + 3), 2 + 2 * (2 + 4)}, three[] = {1 + 2 * 5, 2 + 2 * 6};
  seen to = {"", NULL};
  KVStoreHandle by_number = new_store("local"), by_text = new_store("local");
  NDArrayHandle initial[] = {two(1, 2), two(1, 2)}, pushed[] = {two(1, 2), two(5, 6), two(3, 4)},
                outs[] = {two(0, 0), two(0, 0)};

  (void)state;
  ok(MXKVStoreInit(by_number, 2, numbers, initial));
  ok(MXKVStoreSetUpdaterEx(by_number, update_number, update_text, &to));
  ok(MXKVStorePush(by_number, 3, numbers, pushed, 0));
  assert_string_equal(to.text, "3 9 ");
  ok(MXKVStorePull(by_number, 2, numbers, outs, 0));
  assert_floats(outs[0], nine, 2);
  assert_floats(outs[1], three, 2);
  /* Text goes to the updater for text, in the order of init. */
  to.text[0] = 0;
  ok(MXKVStoreInitEx(by_text, 2, (const char **)texts, initial));
  ok(MXKVStoreSetUpdaterEx(by_text, update_number, update_text, &to));
  ok(MXKVStorePushEx(by_text, 1, (const char **)texts + 1, pushed, 0));
  ok(MXKVStorePushEx(by_text, 2, (const char **)texts, pushed, 0));
  assert_string_equal(to.text, "'b' 'z' 'b' ");
  assert_pulled(by_text, "z", 3, 6);
  assert_pulled(by_text, "b", 1 + 2 * 1 + 2 * 5, 2 + 2 * 2 + 2 * 6);
  /* An updater for numbers alone gets the place of the text. */
  to.text[0] = 0;
  ok(MXKVStoreSetUpdater(by_text, update_number, &to));
  ok(MXKVStorePushEx(by_text, 1, (const char **)texts + 1, pushed, 0));
  assert_string_equal(to.text, "1 ");
  /* None: what is pushed is stored. */
  ok(MXKVStoreSetUpdaterEx(by_text, NULL, NULL, NULL));
  ok(MXKVStorePushEx(by_text, 1, (const char **)texts + 1, pushed, 0));
  assert_pulled(by_text, "b", 1, 2);
  ok(MXKVStoreFree(by_number));
  ok(MXKVStoreFree(by_text));
  free_all(initial, 2);
  free_all(pushed, 3);
  free_all(outs, 2);
}

static void an_updater_may_call_the_store(void **state) {
  const char *key = "a";
  seen to = {"", new_store("local")};
  NDArrayHandle initial = two(10, 10), pushed = two(1, 2);

  (void)state;
  ok(MXKVStoreInitEx(to.store, 1, &key, &initial));
  ok(MXKVStoreSetUpdaterEx(to.store, update_number, update_text, &to));
  ok(MXKVStorePushEx(to.store, 1, &key, &pushed, 0));
  assert_string_equal(to.text, "'a' ");
  ok(MXKVStoreFree(to.store));
  ok(MXNDArrayFree(initial));
  ok(MXNDArrayFree(pushed));
}

static void types_are_summed_as_they_are(void **state) {
  const int dtypes[] = {1, 2, 3, 4, 5, 6}; /* float64, float16, uint8, int32, int8, int64 */
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(dtypes); ++i) {
    const char *const keys[] = {"a", "a", "a"};
    const int one_bits[][2] = {{0, 0x3ff00000}, {0x3c00, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}};
    const int three_bits[][2] = {{0, 0x40080000}, {0x4200, 0}, {3, 0}, {3, 0}, {3, 0}, {3, 0}};
    const uint32_t one = 1;
    unsigned char found[8] = {0};
    KVStoreHandle store = new_store("local");
    NDArrayHandle value = NULL, values[3];

    ok(MXNDArrayCreateEx(&one, 1, 1, 0, 0, dtypes[i], &value));
    ok(MXNDArraySyncCopyFromCPU(value, one_bits[i], 1));
    values[0] = values[1] = values[2] = value;
    ok(MXKVStoreInitEx(store, 1, (const char **)keys, &value));
    ok(MXKVStorePushEx(store, 3, (const char **)keys, values, 0));
    ok(MXKVStorePullEx(store, 1, (const char **)keys, &value, 0));
    ok(MXNDArraySyncCopyToCPU(value, found, 1));
    assert_memory_equal(found, three_bits[i], 8);
    ok(MXNDArrayFree(value));
    ok(MXKVStoreFree(store));
  }
}

static void wrong_calls_are_errors(void **state) {
  const char *const keys[] = {"a", "b", "a"};
  const int number = 1;
  const uint32_t three[] = {3};
  const float zeros[] = {0, 0, 0};
  KVStoreHandle store = NULL;
  NDArrayHandle values[] = {two(1, 2), two(3, 4), two(5, 6)}, wide = floats_on(0, zeros, three, 1);
  NDArrayHandle mixed[] = {values[0], values[1], wide};

  (void)state;
  fails(MXKVStoreCreate("dist_sync", &store), "of one process (local, device,");
  fails(MXKVStoreCreate("nccl", &store), "found 'nccl'");
  fails(MXKVStoreCreate(NULL, &store), "type");
  fails(MXKVStoreCreate("local", NULL), "out");
  assert_null(store);
  store = new_store("local");
  fails(MXKVStoreInitEx(store, 3, (const char **)keys, values), "key a is given twice");
  fails(MXKVStorePushEx(store, 1, (const char **)keys, values, 0), "key a is not in the store");
  ok(MXKVStoreInitEx(store, 2, (const char **)keys, values));
  fails(MXKVStoreInitEx(store, 1, (const char **)keys, values), "key a is in the store already");
  fails(MXKVStoreInit(store, 1, &number, values), "expected keys that are text");
  fails(MXKVStorePush(store, 1, &number, values, 0), "expected keys that are text");
  fails(MXKVStorePull(store, 1, &number, values, 0), "expected keys that are text");
  fails(MXKVStorePullEx(store, 1, (const char **)keys, &wide, 0), "key a: expected an array of shape (2,), found (3,)");
  fails(MXKVStorePushEx(store, 3, (const char **)keys, mixed, 0), "shapes (2,) and (3,)");
  fails(MXKVStorePushEx(store, 1, (const char **)keys, NULL, 0), "vals");
  fails(MXKVStorePushEx(store, 1, NULL, values, 0), "keys");
  fails(MXKVStorePullRowSparseEx(store, 1, (const char **)keys, values, values, 0), "row_sparse");
  fails(MXKVStoreGetRank(values[0], NULL), "expected the handle of a kvstore");
  assert_pulled(store, "a", 1, 2);
  assert_pulled(store, "b", 3, 4);
  ok(MXKVStorePushEx(store, 0, NULL, NULL, 0));
  ok(MXKVStoreFree(store));
  fails(MXKVStoreFree(store), "freed");
  free_all(values, 3);
  ok(MXNDArrayFree(wide));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_store_has_its_type_and_is_alone), TEST(what_is_pushed_replaces_the_value_as_a_sum),
      TEST(the_store_has_arrays_of_its_own),   TEST(push_and_pull_may_be_one_call),
      TEST(updaters_change_what_is_stored),    TEST(an_updater_may_call_the_store),
      TEST(types_are_summed_as_they_are),      TEST(wrong_calls_are_errors),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
