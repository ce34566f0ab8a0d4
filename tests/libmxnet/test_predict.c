/* SPDX-License-Identifier: Apache-2.0 */
/* Predictors: networks that are only run, as programs do that embed MXNet's prediction interface. */
#include <pthread.h>

#include "mxnet_test.h"

#define done(call) expect_done((call), #call, __FILE__, __LINE__)

static void expect_done(cohort_error *error, const char *call, const char *file, int line) {
  if (!error) return;
  print_error("%s: %s\n", call, cohort_error_message(error));
  cohort_error_free(error);
  _fail(file, line);
}

/* A network as a program has it: two texts. */
typedef struct model {
  char json[8192];
  char params[4096];
  size_t num_params;
} model;

static void add_array(cohort_arrays *list, const char *name, const float *values, int64_t rows, int64_t columns,
                      int32_t dtype) {
  const int64_t shape[] = {rows, columns};
  const int32_t num_axes = columns ? 2 : 1;
  cohort_ndarray *array = NULL, *other = NULL;

  done(cohort_ndarray_from_host(values, sizeof(float) * (size_t)(rows * (columns ? columns : 1)), shape, num_axes,
                                COHORT_DTYPE_FLOAT32, NULL, &array));
  done(cohort_ndarray_cast(array, dtype, &other));
  done(cohort_arrays_add(list, name, other));
  cohort_ndarray_free(array);
  cohort_ndarray_free(other);
}

static cohort_symbol *layer(const char *op, const char *name, const char *key, const char *value,
                            cohort_symbol *input) {
  cohort_symbol *made = NULL;

  done(cohort_symbol_create(op, name, &key, &value, key ? 1 : 0, &input, NULL, 1, &made));
  cohort_symbol_free(input);
  return made;
}

static void finish(model *to, cohort_symbol *net, cohort_arrays *params) {
  const char *json = NULL;

  done(cohort_symbol_to_json(net, &json));
  assert_true(strlen(json) < sizeof to->json);
  strcpy(to->json, json);
  done(cohort_arrays_save_memory(params, to->params, sizeof to->params, &to->num_params));
  cohort_symbol_free(net);
  cohort_arrays_free(params);
}

/* data (n, 2) -> bn -> fc1 (3) -> relu -> fc2 (2) -> softmax. The norm adds its moving mean's opposite: y = x - (1, 2).
 */
static model small_model(int32_t dtype) {
  const float ones[] = {1, 1}, zeros[] = {0, 0}, means[] = {1, 2};
  const float weight1[] = {1, 0, 0, 1, -1, -1}, bias1[] = {0, 0, 0.5f}, weight2[] = {1, 2, 0, 0, 0, 4},
              bias2[] = {0, 1};
  cohort_symbol *net = NULL;
  cohort_arrays *params = NULL;
  model made;

  done(cohort_symbol_variable("data", NULL, NULL, 0, &net));
  net = layer("BatchNorm", "bn", "eps", "1e-8", net);
  net = layer("FullyConnected", "fc1", "num_hidden", "3", net);
  net = layer("Activation", "relu", "act_type", "relu", net);
  net = layer("FullyConnected", "fc2", "num_hidden", "2", net);
  net = layer("SoftmaxOutput", "softmax", NULL, NULL, net);
  done(cohort_arrays_create(&params));
  add_array(params, "arg:bn_gamma", ones, 2, 0, COHORT_DTYPE_FLOAT32);
  add_array(params, "arg:bn_beta", zeros, 2, 0, COHORT_DTYPE_FLOAT32);
  add_array(params, "aux:bn_moving_mean", means, 2, 0, COHORT_DTYPE_FLOAT32);
  add_array(params, "aux:bn_moving_var", ones, 2, 0, COHORT_DTYPE_FLOAT32);
  add_array(params, "arg:fc1_weight", weight1, 3, 2, dtype);
  add_array(params, "arg:fc1_bias", bias1, 3, 0, dtype);
  add_array(params, "arg:fc2_weight", weight2, 2, 3, dtype);
  add_array(params, "arg:fc2_bias", bias2, 2, 0, dtype);
  add_array(params, "other", bias2, 2, 0, dtype); /* neither argument nor auxiliary state: left out */
  finish(&made, net, params);
  return made;
}

static const char *const data_key[] = {"data"};
static const uint32_t data_indptr[] = {0, 2};

static PredictorHandle predictor_of(const model *from, uint32_t rows) {
  const uint32_t shape[] = {rows, 2};
  PredictorHandle made = NULL;

  ok(MXPredCreate(from->json, from->params, (int)from->num_params, 1, 0, 1, (const char **)data_key, data_indptr, shape,
                  &made));
  return made;
}

static PredictorHandle layer_of(const model *from, const char *output, uint32_t rows) {
  const uint32_t shape[] = {rows, 2};
  PredictorHandle made = NULL;

  ok(MXPredCreatePartialOut(from->json, from->params, (int)from->num_params, 1, 0, 1, (const char **)data_key,
                            data_indptr, shape, 1, &output, &made));
  return made;
}

static void assert_output(PredictorHandle predictor, uint32_t index, const uint32_t *shape, uint32_t num_axes,
                          const float *values) {
  uint32_t *found_shape = NULL, found_axes = 99, i, num = 1;
  float found[64];

  ok(MXPredGetOutputShape(predictor, index, &found_shape, &found_axes));
  assert_int_equal(found_axes, num_axes);
  for (i = 0; i < num_axes; ++i) assert_int_equal(found_shape[i], shape[i]);
  for (i = 0; i < num_axes; ++i) num *= shape[i];
  ok(MXPredGetOutput(predictor, index, found, num));
  for (i = 0; i < num; ++i) {
    if (found[i] < values[i] - 1e-5f || found[i] > values[i] + 1e-5f)
      fail_msg("value %u: expected %g, found %g", i, (double)values[i], (double)found[i]);
  }
}

/* Rows (2, 3) and (0, 2) less (1, 2): (1, 1) and (-1, 0). fc1: (1, 1, -1.5) and (-1, 0, 1.5). fc2: (3, 1) and (0, 7).
 */
static const float rows[] = {2, 3, 0, 2}, hidden[] = {1, 1, 0, 0, 0, 1.5f}, sums[] = {3, 1, 0, 7};
static const float scores[] = {0.880797f, 0.119203f, 0.000911f, 0.999089f};
static const uint32_t two_by_two[] = {2, 2}, two_by_three[] = {2, 3}, one_by_two[] = {1, 2};

static void a_network_predicts(void **state) {
  const model from = small_model(COHORT_DTYPE_FLOAT32);
  uint32_t *shape = NULL, num_axes = 0;
  int dtype = -1;
  PredictorHandle predictor = predictor_of(&from, 2);

  (void)state;
  ok(MXPredGetOutputShape(predictor, 0, &shape, &num_axes)); /* before any pass */
  assert_int_equal(num_axes, 2);
  assert_int_equal(shape[0], 2);
  ok(MXPredGetOutputType(predictor, 0, &dtype));
  assert_int_equal(dtype, 0);
  ok(MXPredSetInput(predictor, "data", rows, 4));
  ok(MXPredForward(predictor));
  assert_output(predictor, 0, two_by_two, 2, scores);
  fails(MXPredSetInput(predictor, "data", rows + 2, 2), "expected 4 elements"); /* the input stays */
  ok(MXPredForward(predictor));
  assert_output(predictor, 0, two_by_two, 2, scores);
  ok(MXPredFree(predictor));
}

static void inner_layers_can_be_outputs(void **state) {
  const model from = small_model(COHORT_DTYPE_FLOAT32);
  const char *const outputs[] = {"relu", "fc2_output"}, *const unknown = "relu2";
  PredictorHandle predictor = layer_of(&from, "fc2", 2), both = NULL;

  (void)state;
  ok(MXPredSetInput(predictor, "data", rows, 4));
  ok(MXPredForward(predictor));
  assert_output(predictor, 0, two_by_two, 2, sums);
  ok(MXPredFree(predictor));
  ok(MXPredCreatePartialOut(from.json, from.params, (int)from.num_params, 1, 0, 1, (const char **)data_key, data_indptr,
                            two_by_two, 2, (const char **)outputs, &both));
  ok(MXPredSetInput(both, "data", rows, 4));
  ok(MXPredForward(both));
  assert_output(both, 0, two_by_three, 2, hidden);
  assert_output(both, 1, two_by_two, 2, sums);
  ok(MXPredFree(both));
  fails(MXPredCreatePartialOut(from.json, from.params, (int)from.num_params, 1, 0, 1, (const char **)data_key,
                               data_indptr, two_by_two, 1, (const char **)&unknown, &both),
        "no output 'relu2'");
}

static void a_network_runs_layer_by_layer(void **state) {
  const model from = small_model(COHORT_DTYPE_FLOAT32);
  PredictorHandle predictor = predictor_of(&from, 2);
  int step, left = 1, before = 1000;

  (void)state;
  ok(MXPredSetInput(predictor, "data", rows, 4));
  for (step = 0; left != 0; ++step) {
    ok(MXPredPartialForward(predictor, step, &left));
    assert_true(left == before - 1 || before == 1000);
    before = left;
  }
  assert_true(step > 5);
  assert_output(predictor, 0, two_by_two, 2, scores);
  ok(MXPredFree(predictor));
}

/* The new predictor has the same parameters, and lives longer than the old one. */
static void a_reshaped_predictor_stands_beside_the_old_one(void **state) {
  const model from = small_model(COHORT_DTYPE_FLOAT32);
  const uint32_t wrong[] = {1, 3};
  PredictorHandle old = predictor_of(&from, 2), one = NULL, none = NULL;

  (void)state;
  ok(MXPredReshape(1, (const char **)data_key, data_indptr, one_by_two, old, &one));
  ok(MXPredSetInput(one, "data", rows + 2, 2));
  ok(MXPredForward(one));
  ok(MXPredSetInput(old, "data", rows, 4));
  ok(MXPredForward(old));
  assert_output(one, 0, one_by_two, 2, scores + 2);
  assert_output(old, 0, two_by_two, 2, scores);
  fails(MXPredSetInput(one, "fc1_bias", rows, 3), "'fc1_bias' is a parameter that other predictors use, too");
  fails(MXPredReshape(1, (const char **)data_key, data_indptr, wrong, old, &none), "");
  assert_null(none);
  ok(MXPredFree(old));
  ok(MXPredSetInput(one, "data", rows, 2));
  ok(MXPredForward(one));
  assert_output(one, 0, one_by_two, 2, scores);
  ok(MXPredSetInput(one, "fc2_bias", ((const float[]){9, 9}), 2)); /* now it is this one's alone */
  ok(MXPredForward(one));
  assert_output(one, 0, one_by_two, 2, ((const float[]){0.952574f, 0.047426f}));
  ok(MXPredFree(one));
}

enum { NUM_THREADS = 32, NUM_PASSES = 20 };

typedef struct thread_work {
  PredictorHandle predictor;
  float inputs[4], found[4];
  int num_different;
} thread_work;

static void *predict_again_and_again(void *argument) {
  thread_work *const work = argument;
  float found[4];
  int pass;

  for (pass = 0; pass < NUM_PASSES; ++pass) {
    if (MXPredSetInput(work->predictor, "data", work->inputs, 4) != 0 || MXPredForward(work->predictor) != 0 ||
        MXPredGetOutput(work->predictor, 0, found, 4) != 0) {
      work->num_different = 1000;
      return NULL;
    }
    if (pass != 0 && memcmp(found, work->found, sizeof found) != 0) ++work->num_different;
    memcpy(work->found, found, sizeof found);
  }
  return NULL;
}

static void many_threads_share_the_parameters(void **state) {
  const model from = small_model(COHORT_DTYPE_FLOAT32);
  static thread_work work[NUM_THREADS];
  PredictorHandle predictors[NUM_THREADS], alone = predictor_of(&from, 2);
  pthread_t threads[NUM_THREADS];
  float expected[4];
  int i, k;

  (void)state;
  ok(MXPredCreateMultiThread(from.json, from.params, (int)from.num_params, 1, 0, 1, (const char **)data_key,
                             data_indptr, two_by_two, NUM_THREADS, predictors));
  for (i = 0; i < NUM_THREADS; ++i) {
    memset(&work[i], 0, sizeof work[i]);
    work[i].predictor = predictors[i];
    for (k = 0; k < 4; ++k) work[i].inputs[k] = (float)(i % 7) * 0.25f + (float)k;
    assert_int_equal(pthread_create(&threads[i], NULL, predict_again_and_again, &work[i]), 0);
  }
  for (i = 0; i < NUM_THREADS; ++i) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (i = 0; i < NUM_THREADS; ++i) {
    assert_int_equal(work[i].num_different, 0);
    ok(MXPredSetInput(alone, "data", work[i].inputs, 4));
    ok(MXPredForward(alone));
    ok(MXPredGetOutput(alone, 0, expected, 4));
    assert_memory_equal(expected, work[i].found, sizeof expected);
    ok(MXPredFree(predictors[i]));
  }
  ok(MXPredFree(alone));
}

/* data (2) float16 -> fc (1): x[0] + 2 x[1]. */
static void types_of_inputs_are_given_by_name(void **state) {
  const float weight[] = {1, 2}, bias[] = {0};
  const uint16_t halves[] = {0x3c00, 0x4000}; /* 1 and 2 */
  const int float16 = 2, none = 77;
  uint16_t found = 0;
  int dtype = -1;
  model from;
  cohort_symbol *net = NULL;
  cohort_arrays *params = NULL;
  PredictorHandle predictor = NULL;

  (void)state;
  done(cohort_symbol_variable("data", NULL, NULL, 0, &net));
  net = layer("FullyConnected", "fc", "num_hidden", "1", net);
  done(cohort_arrays_create(&params));
  add_array(params, "arg:fc_weight", weight, 1, 2, COHORT_DTYPE_FLOAT16);
  add_array(params, "arg:fc_bias", bias, 1, 0, COHORT_DTYPE_FLOAT16);
  finish(&from, net, params);
  ok(MXPredCreateEx(from.json, from.params, (int)from.num_params, 1, 0, 1, (const char **)data_key, data_indptr,
                    one_by_two, 1, (const char **)data_key, &float16, &predictor));
  ok(MXPredGetOutputType(predictor, 0, &dtype));
  assert_int_equal(dtype, 2);
  ok(MXPredSetInput(predictor, "data", (const float *)halves, 2));
  ok(MXPredForward(predictor));
  ok(MXPredGetOutput(predictor, 0, (float *)&found, 1));
  assert_int_equal(found, 0x4500); /* 5 */
  ok(MXPredFree(predictor));
  predictor = NULL;
  /* Inputs without a type are float32, and do not become what the parameters are. */
  fails(MXPredCreate(from.json, from.params, (int)from.num_params, 1, 0, 1, (const char **)data_key, data_indptr,
                     one_by_two, &predictor),
        "fc");
  fails(MXPredCreateEx(from.json, from.params, (int)from.num_params, 1, 0, 1, (const char **)data_key, data_indptr,
                       one_by_two, 1, (const char **)data_key, &none, &predictor),
        "77");
  assert_null(predictor);
}

/* The names that a monitor has seen. It owns its arrays. */
static void note_name(const char *name, NDArrayHandle array, void *handle) {
  const uint32_t *shape = NULL;
  uint32_t num_axes = 0;

  ok(MXNDArrayGetShape(array, &num_axes, &shape));
  assert_true(num_axes >= 1);
  strcat(strcat((char *)handle, name), " ");
  ok(MXNDArrayFree(array));
}

static void a_monitor_sees_each_layer(void **state) {
  const model from = small_model(COHORT_DTYPE_FLOAT32);
  char names[512] = "";
  PredictorHandle predictor = layer_of(&from, "fc2", 2), reshaped = NULL;

  (void)state;
  ok(MXPredSetMonitorCallback(predictor, note_name, names, false));
  ok(MXPredForward(predictor));
  assert_non_null(strstr(names, "fc1_output relu_output fc2_output "));
  names[0] = 0;
  ok(MXPredReshape(1, (const char **)data_key, data_indptr, one_by_two, predictor, &reshaped));
  ok(MXPredForward(reshaped));
  assert_non_null(strstr(names, "relu_output"));
  names[0] = 0;
  ok(MXPredSetMonitorCallback(predictor, NULL, NULL, false));
  ok(MXPredForward(predictor));
  assert_string_equal(names, "");
  ok(MXPredFree(predictor));
  ok(MXPredFree(reshaped));
}

static void a_list_of_arrays_is_read_as_float32(void **state) {
  const model from = small_model(COHORT_DTYPE_FLOAT16);
  const float weight2[] = {1, 2, 0, 0, 0, 4};
  const char *key = NULL;
  const float *data = NULL;
  const uint32_t *shape = NULL;
  uint32_t num = 0, num_axes = 0, i, num_found = 0;
  NDListHandle list = NULL;

  (void)state;
  ok(MXNDListCreate(from.params, (int)from.num_params, &list, &num));
  assert_int_equal(num, 9);
  for (i = 0; i < num; ++i) {
    ok(MXNDListGet(list, i, &key, &data, &shape, &num_axes));
    if (strcmp(key, "arg:fc2_weight") != 0) continue;
    ++num_found;
    assert_int_equal(num_axes, 2);
    assert_int_equal(shape[0], 2);
    assert_int_equal(shape[1], 3);
    assert_memory_equal(data, weight2, sizeof weight2);
  }
  assert_int_equal(num_found, 1);
  fails(MXNDListGet(list, num, &key, &data, &shape, &num_axes), "below 9");
  ok(MXNDListFree(list));
  fails(MXNDListGet(list, 0, &key, &data, &shape, &num_axes), "freed");
  list = NULL;
  fails(MXNDListCreate("not a list of arrays", 20, &list, &num), "");
  fails(MXNDListCreate(from.params, (int)from.num_params - 1, &list, &num), "");
  fails(MXNDListCreate(from.params, -1, &list, &num), "nd_file_size");
  fails(MXNDListCreate(NULL, 0, &list, &num), "nd_file_bytes");
  assert_null(list);
}

static void wrong_calls_are_errors(void **state) {
  const model from = small_model(COHORT_DTYPE_FLOAT32);
  const uint32_t too_wide[] = {2, 3}, backwards[] = {2, 0}, none[] = {0, 0};
  const char *const two_keys[] = {"data", "data"};
  const uint32_t two_indptr[] = {0, 2, 4}, two_shapes[] = {2, 2, 2, 2};
  const char **const key = (const char **)data_key;
  const int num = (int)from.num_params;
  float found[8];
  uint32_t *shape = NULL, num_axes = 0;
  int left = 0;
  PredictorHandle predictor = NULL;

  (void)state;
  fails(MXPredCreate("{", from.params, num, 1, 0, 1, key, data_indptr, two_by_two, &predictor), "JSON");
  fails(MXPredCreate(NULL, from.params, num, 1, 0, 1, key, data_indptr, two_by_two, &predictor), "symbol_json_str");
  fails(MXPredCreate(from.json, NULL, 0, 1, 0, 1, key, data_indptr, two_by_two, &predictor), "param_bytes");
  fails(MXPredCreate(from.json, from.params, -1, 1, 0, 1, key, data_indptr, two_by_two, &predictor), "param_size");
  fails(MXPredCreate(from.json, from.params, num - 5, 1, 0, 1, key, data_indptr, two_by_two, &predictor), "");
  fails(MXPredCreate(from.json, from.params, num, 9, 0, 1, key, data_indptr, two_by_two, &predictor), "9");
  fails(MXPredCreate(from.json, from.params, num, 1, 0, 1, key, data_indptr, too_wide, &predictor), "");
  fails(MXPredCreate(from.json, from.params, num, 1, 0, 1, key, backwards, two_by_two, &predictor), "'data'");
  fails(MXPredCreate(from.json, from.params, num, 1, 0, 1, NULL, data_indptr, two_by_two, &predictor), "input_keys");
  fails(MXPredCreate(from.json, from.params, num, 1, 0, 1, key, data_indptr, NULL, &predictor), "input_shape_data");
  fails(MXPredCreate(from.json, from.params, num, 1, 0, 0, NULL, none, NULL, &predictor), "do not determine");
  fails(MXPredCreate(from.json, from.params, num, 1, 0, 2, (const char **)two_keys, two_indptr, two_shapes, &predictor),
        "'data' is given twice");
  fails(MXPredCreateMultiThread(from.json, from.params, num, 1, 0, 1, key, data_indptr, two_by_two, 0, &predictor),
        "num_threads");
  fails(MXPredCreate(from.json, from.params, num, 1, 0, 1, key, data_indptr, two_by_two, NULL), "out");
  assert_null(predictor);
  predictor = predictor_of(&from, 2);
  fails(MXPredSetInput(predictor, "dta", rows, 4), "no input 'dta'");
  fails(MXPredSetInput(predictor, "data", rows, 3), "expected 4 elements of shape (2, 2), found 3");
  fails(MXPredSetInput(predictor, "data", NULL, 4), "data is NULL");
  fails(MXPredSetInput(predictor, NULL, rows, 4), "key");
  fails(MXPredGetOutput(predictor, 1, found, 4), "expected an output below 1");
  fails(MXPredGetOutput(predictor, 0, found, 8), "expected room for 4 elements");
  fails(MXPredGetOutputShape(predictor, 1, &shape, &num_axes), "below 1");
  fails(MXPredPartialForward(predictor, 0, NULL), "step_left");
  ok(MXPredPartialForward(predictor, 1000, &left));
  assert_int_equal(left, 0);
  ok(MXPredFree(predictor));
  ok(MXPredFree(NULL));
  fails(MXPredForward(predictor), "freed");
  fails(MXPredFree(predictor), "freed");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_network_predicts),
      TEST(inner_layers_can_be_outputs),
      TEST(a_network_runs_layer_by_layer),
      TEST(a_reshaped_predictor_stands_beside_the_old_one),
      TEST(many_threads_share_the_parameters),
      TEST(types_of_inputs_are_given_by_name),
      TEST(a_monitor_sees_each_layer),
      TEST(a_list_of_arrays_is_read_as_float32),
      TEST(wrong_calls_are_errors),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
