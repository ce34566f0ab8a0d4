/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads of the caller at once: separate groups, one set of parameters for many, handles passed from thread to
 * thread, and forks. Results have the same bits as on a single thread. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/group_tests.h"

enum { NUM_CLASSES = 4, MOST_BATCH = 24, NUM_PARAMS = 6, NUM_AUX = 2 };

static const char *const params[] = {"conv_weight", "conv_bias", "norm_gamma", "norm_beta",
                                     "fc_weight",   "fc_bias",   NULL};

/* Images of 6 x 6: convolution, normalisation, a layer. */
static cohort_symbol *image_network(void) {
  cohort_symbol *net = node("Convolution", "conv", ATTRS("kernel", "(3, 3)", "num_filter", "8", "pad", "(1, 1)"),
                            INPUTS(variable("data")));

  net = node("BatchNorm", "norm", ATTRS("fix_gamma", "False"), INPUTS(net));
  net = node("Activation", "relu", ATTRS("act_type", "relu"), INPUTS(net));
  net = node("FullyConnected", "fc", ATTRS("num_hidden", "4"), INPUTS(net));
  return node("SoftmaxOutput", "softmax", NO_ATTRS, INPUTS(net, variable("label")));
}

static cohort_ndarray *pixels(int64_t batch, uint64_t seed) {
  cohort_ndarray *array = NULL;

  ok(cohort_ndarray_zeros(SHAPE(batch, 1, 6, 6), COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(cohort_ndarray_fill_uniform(array, -1, 1, seed));
  return array;
}

static cohort_ndarray *classes(int64_t batch, int first) {
  float values[MOST_BATCH];
  int i;

  for (i = 0; i < batch; ++i) values[i] = (float)((first + i) % NUM_CLASSES);
  return floats(SHAPE(batch), values, (size_t)batch);
}

static void set_random_params(cohort_group *group, uint64_t seed) {
  cohort_arrays *args = NULL, *aux = NULL;
  size_t i;

  ok(cohort_group_copy_params(group, &args, &aux));
  for (i = 0; i < NUM_PARAMS; ++i) {
    cohort_ndarray *array = NULL;

    ok(cohort_arrays_get(args, i, &array));
    ok(cohort_ndarray_fill_uniform(array, -0.5, 0.5, seed + i));
    cohort_ndarray_free(array);
  }
  ok(cohort_group_set_params(group, args, aux, 0));
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
}

static cohort_group *bind_group(size_t num_devices) {
  return bind_for_training(image_network(), num_devices, desc("data", SHAPE(8, 1, 6, 6), NULL),
                           desc("label", SHAPE(8), NULL), params, NULL);
}

/* All parameters as a .params file in memory, to be freed. */
static void *params_of(const cohort_group *group, size_t *out_bytes) {
  cohort_arrays *args = NULL, *aux = NULL;
  void *bytes;

  ok(cohort_group_copy_params(group, &args, &aux));
  ok(cohort_arrays_save_memory(args, NULL, 0, out_bytes));
  bytes = malloc(*out_bytes);
  assert_non_null(bytes);
  ok(cohort_arrays_save_memory(args, bytes, *out_bytes, out_bytes));
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  return bytes;
}

static void same_bytes(void *a, size_t num_a, void *b, size_t num_b) {
  assert_int_equal(num_a, num_b);
  assert_memory_equal(a, b, num_a);
  free(a);
  free(b);
}

/* ---- separate groups
 * ---------------------------------------------------------------------------------------------- */

typedef struct training {
  uint64_t seed;
  size_t num_devices, num_bytes;
  void *bytes;                   /* the result */
  const cohort_ndarray *dataset; /* images that all threads read; NULL: the thread's own */
} training;

/* A batch of some of the images, as a view of them. */
static cohort_ndarray *some_of(const cohort_ndarray *dataset, int64_t batch, uint64_t seed) {
  const int64_t begin = (int64_t)(seed % 50);
  cohort_ndarray *view = NULL;

  if (!dataset) return pixels(batch, seed);
  ok(cohort_ndarray_slice(dataset, begin, begin + batch, &view));
  return view;
}

static void training_step(cohort_group *group, cohort_optimizer *optimizer, const cohort_ndarray *dataset,
                          uint64_t seed, int step) {
  const int64_t batch = 6 + step % 4;
  cohort_descs *data = desc("data", SHAPE(batch, 1, 6, 6), NULL), *label = desc("label", SHAPE(batch), NULL);

  ok(cohort_group_reshape(group, data, label));
  cohort_descs_free(data);
  cohort_descs_free(label);
  forward(group, some_of(dataset, batch, seed + (uint64_t)step), classes(batch, step), 1);
  backward(group, NULL);
  ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
}

/* Binds, trains with changing batches, infers in between, and returns the parameters. */
static void *train(void *of) {
  training *run = of;
  cohort_group *group = bind_group(run->num_devices);
  cohort_optimizer *optimizer = NULL;
  int step;

  set_random_params(group, run->seed);
  ok(cohort_optimizer_create("adam", NULL, NULL, 0, &optimizer));
  for (step = 0; step < 40; ++step) {
    training_step(group, optimizer, run->dataset, run->seed, step);
    if (step % 7 == 0) {
      cohort_ndarray *output;

      ok(cohort_group_run(group, 0));
      output = merged(group, COHORT_GROUP_OUTPUTS, 0);
      has_shape(output, 6 + step % 4, NUM_CLASSES);
      cohort_ndarray_free(output);
    }
  }
  run->bytes = params_of(group, &run->num_bytes);
  cohort_optimizer_free(optimizer);
  cohort_group_free(group);
  return NULL;
}

/* Groups, each driven by its own thread, at the same time, from the same images: the same as one after the other. */
static void threads_train_groups_of_their_own(void **state) {
  cohort_ndarray *dataset = pixels(64, 1);
  training at_once[] = {{100, 2, 0, NULL, dataset}, {200, 2, 0, NULL, dataset}, {300, 1, 0, NULL, dataset}}, alone;
  pthread_t threads[COUNT(at_once)];
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(at_once); ++i) assert_int_equal(pthread_create(&threads[i], NULL, train, &at_once[i]), 0);
  for (i = 0; i < COUNT(at_once); ++i) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (i = 0; i < COUNT(at_once); ++i) {
    alone = at_once[i];
    train(&alone);
    same_bytes(at_once[i].bytes, at_once[i].num_bytes, alone.bytes, alone.num_bytes);
  }
  cohort_ndarray_free(dataset);
}

/* ---- one set of parameters --------------------------------------------------------------------------------------- */

enum { NUM_SERVERS = 8, NUM_REQUESTS = 30 };

typedef struct served {
  const cohort_symbol *symbol;
  cohort_ndarray *const *params; /* in the order of `params`, then the auxiliary states */
  int server;
  float outputs[NUM_REQUESTS][MOST_BATCH * NUM_CLASSES];
} served;

/* Binds to the parameters that all servers share; data and output are its own. Infers one request after another. */
static void *serve(void *of) {
  served *run = of;
  const int64_t batch = 1 + 3 * (run->server % NUM_SERVERS);
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_ndarray *args[NUM_PARAMS + 2], *output = NULL, *shared = NULL;
  cohort_executor *executor = NULL;
  void *mine = NULL, *theirs = NULL;
  int request, i;

  options.num_threads = 1;
  args[0] = pixels(batch, 0);
  for (i = 0; i < NUM_PARAMS; ++i) args[1 + i] = run->params[i];
  args[NUM_PARAMS + 1] = classes(batch, 0);
  ok(cohort_executor_bind(run->symbol, test_contexts(), args, NUM_PARAMS + 2, NULL, NULL, run->params + NUM_PARAMS,
                          NUM_AUX, &options, &executor));
  ok(cohort_executor_array(executor, COHORT_EXECUTOR_OUTPUTS, 0, &output));
  for (request = 0; request < NUM_REQUESTS; ++request) {
    ok(cohort_ndarray_fill_uniform(args[0], -1, 1, (uint64_t)(1000 * run->server + request)));
    ok(cohort_executor_forward(executor, 0));
    ok(cohort_ndarray_read(output, run->outputs[request], (size_t)batch * NUM_CLASSES * sizeof(float)));
  }
  /* No copies: it reads the shared set. */
  ok(cohort_executor_array_named(executor, COHORT_EXECUTOR_ARGS, "conv_weight", &shared));
  mine = address_of(shared);
  theirs = address_of(run->params[0]);
  assert_ptr_equal(mine, theirs);
  cohort_ndarray_free(shared);
  cohort_ndarray_free(output);
  cohort_executor_free(executor);
  cohort_ndarray_free(args[0]);
  cohort_ndarray_free(args[NUM_PARAMS + 1]);
  return NULL;
}

/* Parameters of a trained network, saved and loaded again. */
static void load_params(cohort_ndarray *arrays[NUM_PARAMS + NUM_AUX]) {
  static const char *const statistics[] = {"norm_moving_mean", "norm_moving_var"};
  cohort_group *group = bind_group(1);
  cohort_optimizer *optimizer = NULL;
  cohort_arrays *args = NULL, *aux = NULL, *loaded = NULL;
  size_t bytes = 0, i;
  void *file;

  set_random_params(group, 7);
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &optimizer));
  training_step(group, optimizer, NULL, 7, 0);
  ok(cohort_group_copy_params(group, &args, &aux));
  for (i = 0; i < NUM_AUX; ++i) {
    cohort_ndarray *array = NULL;

    ok(cohort_arrays_get(aux, i, &array));
    ok(cohort_arrays_add(args, statistics[i], array));
    cohort_ndarray_free(array);
  }
  ok(cohort_arrays_save_memory(args, NULL, 0, &bytes));
  file = malloc(bytes);
  assert_non_null(file);
  ok(cohort_arrays_save_memory(args, file, bytes, &bytes));
  ok(cohort_arrays_load_memory(file, bytes, NULL, &loaded));
  for (i = 0; i < NUM_PARAMS + NUM_AUX; ++i) {
    size_t at = 0;

    ok(cohort_arrays_find(loaded, i < NUM_PARAMS ? params[i] : statistics[i - NUM_PARAMS], &at));
    ok(cohort_arrays_get(loaded, at, &arrays[i]));
  }
  free(file);
  cohort_arrays_free(loaded);
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  cohort_optimizer_free(optimizer);
  cohort_group_free(group);
}

/* Eight threads, each with its own executor on one loaded set of parameters: the same as one after the other. */
static void eight_threads_infer_with_one_set_of_parameters(void **state) {
  static served at_once[NUM_SERVERS], alone;
  cohort_ndarray *arrays[NUM_PARAMS + NUM_AUX] = {NULL};
  cohort_symbol *symbol = image_network();
  pthread_t threads[NUM_SERVERS];
  int i;

  (void)state;
  load_params(arrays);
  for (i = 0; i < NUM_SERVERS; ++i) {
    at_once[i].symbol = symbol;
    at_once[i].params = arrays;
    at_once[i].server = i;
    assert_int_equal(pthread_create(&threads[i], NULL, serve, &at_once[i]), 0);
  }
  for (i = 0; i < NUM_SERVERS; ++i) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (i = 0; i < NUM_SERVERS; ++i) {
    alone = at_once[i];
    memset(alone.outputs, 0, sizeof alone.outputs);
    serve(&alone);
    assert_memory_equal(alone.outputs, at_once[i].outputs, sizeof alone.outputs);
    assert_true(alone.outputs[0][0] > 0);
  }
  for (i = 0; i < NUM_PARAMS + NUM_AUX; ++i) cohort_ndarray_free(arrays[i]);
  cohort_symbol_free(symbol);
}

/* One array, one symbol and one list, read by several threads at once. */
typedef struct readers {
  const cohort_ndarray *array;
  const cohort_symbol *symbol;
  const cohort_arrays *list;
} readers;

static void *read_all(void *of) {
  const readers *what = of;
  float values[3];
  int i;

  for (i = 0; i < 200; ++i) {
    cohort_ndarray *listed = NULL;
    size_t num = 0;

    ok(cohort_ndarray_read(what->array, values, sizeof values));
    assert_true(values[0] == 1 && values[1] == 2 && values[2] == 3);
    ok(cohort_symbol_num_names(what->symbol, COHORT_SYMBOL_ARGUMENTS, &num));
    assert_int_equal(num, NUM_PARAMS + 2);
    ok(cohort_arrays_get(what->list, 0, &listed));
    has_shape(listed, 3);
    cohort_ndarray_free(listed);
  }
  return NULL;
}

static void arrays_symbols_and_lists_are_read_by_several_threads(void **state) {
  cohort_ndarray *array = floats(SHAPE(3), FLOATS(1, 2, 3));
  cohort_symbol *symbol = image_network();
  cohort_arrays *list = NULL;
  pthread_t threads[4];
  readers what;
  size_t i;

  (void)state;
  ok(cohort_arrays_create(&list));
  ok(cohort_arrays_add(list, "a", array));
  what.array = array;
  what.symbol = symbol;
  what.list = list;
  for (i = 0; i < COUNT(threads); ++i) assert_int_equal(pthread_create(&threads[i], NULL, read_all, &what), 0);
  for (i = 0; i < COUNT(threads); ++i) assert_int_equal(pthread_join(threads[i], NULL), 0);
  cohort_ndarray_free(array);
  cohort_symbol_free(symbol);
  cohort_arrays_free(list);
}

/* ---- from thread to thread --------------------------------------------------------------------------------------- */

typedef struct handed_on {
  cohort_group *group;
  cohort_optimizer *optimizer;
  cohort_ndarray *output;
  cohort_error *error;
  int step;
} handed_on;

static void *make_handles(void *of) {
  handed_on *all = of;
  cohort_ndarray *none = NULL;

  all->group = bind_group(2);
  set_random_params(all->group, 5);
  ok(cohort_optimizer_create("adam", NULL, NULL, 0, &all->optimizer));
  all->output = merged(all->group, COHORT_GROUP_OUTPUTS, 0);
  all->error = cohort_ndarray_slice(all->output, 5, 1, &none);
  return NULL;
}

static void *use_handles(void *of) {
  handed_on *all = of;

  training_step(all->group, all->optimizer, NULL, 9, all->step++);
  return NULL;
}

/* With work still queued. */
static void *free_handles(void *of) {
  handed_on *all = of;

  training_step(all->group, all->optimizer, NULL, 9, all->step++);
  cohort_optimizer_free(all->optimizer);
  cohort_group_free(all->group);
  cohort_ndarray_free(all->output);
  cohort_error_free(all->error);
  return NULL;
}

static void on_a_thread(void *(*work)(void *), void *of) {
  pthread_t thread;

  assert_int_equal(pthread_create(&thread, NULL, work, of), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Created on one thread, which ends, used on many others, each of which ends, freed on another: the same as on one. */
static void handles_go_from_thread_to_thread(void **state) {
  handed_on alone = {NULL, NULL, NULL, NULL, 0}, around = alone;
  size_t num_alone = 0, num_around = 0;
  void *of_alone, *of_around;
  int i;

  (void)state;
  make_handles(&alone);
  on_a_thread(make_handles, &around);
  assert_int_equal(cohort_error_code(around.error), COHORT_ERROR_INVALID_ARGUMENT);
  for (i = 0; i < 10; ++i) {
    use_handles(&alone);
    if (i % 3)
      on_a_thread(use_handles, &around);
    else
      use_handles(&around);
  }
  of_alone = params_of(alone.group, &num_alone);
  of_around = params_of(around.group, &num_around);
  same_bytes(of_alone, num_alone, of_around, num_around);
  on_a_thread(free_handles, &around);
  free_handles(&alone);
}

/* ---- forks ------------------------------------------------------------------------------------------------------- */

#ifndef UNDER_TSAN /* it ends a child that starts threads */

/* In a child of a process with groups at work: those give errors and can be freed, and new ones give the same numbers.
 * The parent goes on. */
static void a_child_trains_anew_and_the_parent_goes_on(void **state) {
  training before = {11, 2, 0, NULL, NULL}, after;
  cohort_group *group;
  cohort_optimizer *optimizer = NULL;
  int status = -1, step;
  pid_t child;

  (void)state;
  only_on_cpus();
  group = bind_group(2);
  train(&before);
  set_random_params(group, 11);
  ok(cohort_optimizer_create("adam", NULL, NULL, 0, &optimizer));
  for (step = 0; step < 5; ++step) training_step(group, optimizer, NULL, 11, step); /* queued, or running */
  child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    cohort_error *error = cohort_group_run(group, 1);

    alarm(60);
    if (cohort_error_code(error) != COHORT_ERROR_STATE) _exit(1);
    cohort_error_free(error);
    error = cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE);
    if (cohort_error_code(error) != COHORT_ERROR_STATE) _exit(2);
    cohort_error_free(error);
    cohort_group_free(group);
    cohort_optimizer_free(optimizer);
    after = before;
    train(&after);
    if (after.num_bytes != before.num_bytes || memcmp(after.bytes, before.bytes, before.num_bytes) != 0) _exit(3);
    _exit(cohort_live_handles() == 0 ? 0 : 4);
  }
  after = before;
  train(&after);
  assert_memory_equal(after.bytes, before.bytes, before.num_bytes);
  free(after.bytes);
  free(before.bytes);
  ok(cohort_group_wait(group));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  cohort_group_free(group);
  cohort_optimizer_free(optimizer);
}

#endif

enum { kUpdates = 4000 };

static void *update_metric(void *of) {
  int i;

  for (i = 0; i < kUpdates; ++i) {
    cohort_ndarray *label = floats(SHAPE(1), FLOATS(0)), *pred = floats(SHAPE(1, 1), FLOATS(2));

    ok(cohort_metric_update(of, &label, 1, &pred, 1));
    cohort_ndarray_free(label);
    cohort_ndarray_free(pred);
  }
  return NULL;
}

/* Two threads update one metric through two handles: no update is lost. */
static void each_update_of_a_metric_counts(void **state) {
  cohort_metric *metric = NULL, *whole = NULL, *again = NULL;
  pthread_t other;
  double sum = 0, num = 0;

  (void)state;
  ok(cohort_metric_create("loss", NULL, NULL, 0, &metric));
  ok(cohort_metric_create("composite", NULL, NULL, 0, &whole));
  ok(cohort_metric_add(whole, metric));
  ok(cohort_metric_child(whole, 0, &again));
  assert_int_equal(pthread_create(&other, NULL, update_metric, again), 0);
  update_metric(metric);
  assert_int_equal(pthread_join(other, NULL), 0);
  ok(cohort_metric_counters(metric, 0, 1, &sum, &num));
  assert_true(num == 2 * kUpdates && sum == 4 * kUpdates);
  cohort_metric_free(metric);
  cohort_metric_free(whole);
  cohort_metric_free(again);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(threads_train_groups_of_their_own),
      TEST(eight_threads_infer_with_one_set_of_parameters),
      TEST(arrays_symbols_and_lists_are_read_by_several_threads),
      TEST(handles_go_from_thread_to_thread),
      TEST(each_update_of_a_metric_counts),
#ifndef UNDER_TSAN
      TEST(a_child_trains_anew_and_the_parent_goes_on),
#endif
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
