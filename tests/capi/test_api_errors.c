/* SPDX-License-Identifier: Apache-2.0 */
/* Error objects, and how the API itself reports bad values, names and text. */
#include <pthread.h>
#include <stdio.h>

#include "support/boundary.h"

/* Success has a code, a message and a subject too. */
static void null_is_success(void **state) {
  (void)state;
  assert_int_equal(cohort_error_code(NULL), COHORT_SUCCESS);
  assert_string_equal(cohort_error_message(NULL), "");
  assert_string_equal(cohort_error_subject(NULL), "");
}

/* Every error class has a name, and an unknown code is reported as such. */
static void classes_have_names(void **state) {
  int32_t code, other;

  (void)state;
  for (code = COHORT_SUCCESS; code <= COHORT_ERROR_INTERNAL; ++code) {
    assert_string_not_equal(cohort_error_code_text(code), "unknown");
    for (other = COHORT_SUCCESS; other < code; ++other) {
      assert_string_not_equal(cohort_error_code_text(code), cohort_error_code_text(other));
    }
  }
  assert_string_equal(cohort_error_code_text(-1), "unknown");
  assert_string_equal(cohort_error_code_text(COHORT_ERROR_INTERNAL + 1), "unknown");
}

/* A pointer that is no error handle, or a freed one, reads as an error about just that. */
static void freed_errors_say_so(void **state) {
  size_t num;
  cohort_error *error = cohort_arrays_num(NULL, &num);

  (void)state;
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_INVALID_ARGUMENT);
  assert_string_equal(cohort_error_subject(error), "arrays");
  cohort_error_free(error);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_INVALID_ARGUMENT);
  assert_non_null(strstr(cohort_error_message(error), "not freed"));
  assert_string_equal(cohort_error_subject(error), "");
  cohort_error_free(error);
}

static void *make_error(void *out) {
  *(cohort_error **)out = cohort_context_parse("tpu(0)", &(cohort_context){0, 0});
  return NULL;
}

/* An error belongs to the call that returned it, not to the thread: another thread reads and frees it. */
static void errors_cross_threads(void **state) {
  cohort_error *error = NULL;
  cohort_context context;
  pthread_t thread;

  (void)state;
  assert_int_equal(pthread_create(&thread, NULL, make_error, &error), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  ok(cohort_context_parse("cpu(1)", &context));
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_INVALID_ARGUMENT);
  assert_non_null(strstr(cohort_error_message(error), "tpu(0)"));
  cohort_error_free(error);
}

/* Contexts are parsed and printed in one form only. */
static void contexts_as_text(void **state) {
  static const char *const bad[] = {
      "",       "cpu",    "cpu()",   "cpu(-1)",          "cpu(0",           "cpu(0) ", " cpu(0)", "CPU(0)", "gpu 0",
      "npu(0)", "cpu(a)", "cpu(0)x", "cpu(99999999999)", "cpu(2147483648)", "cpu(01)", "cpu(00)"};
  static const char *const good[] = {"cpu(0)", "gpu(1)", "cpu_pinned(0)", "cpu_shared(12)", "cpu(2147483647)"};
  cohort_context context = {77, 77};
  char text[32];
  size_t i, bytes = 0;

  (void)state;
  for (i = 0; i < NUM_OF(bad); ++i) {
    fails(cohort_context_parse(bad[i], &context), COHORT_ERROR_INVALID_ARGUMENT, bad[i]);
    assert_int_equal(context.device_type, 77);
  }
  fails(cohort_context_parse(NULL, &context), COHORT_ERROR_INVALID_ARGUMENT, "text");
  for (i = 0; i < NUM_OF(good); ++i) {
    ok(cohort_context_parse(good[i], &context));
    ok(cohort_context_text(&context, text, sizeof(text), &bytes));
    assert_string_equal(text, good[i]);
    assert_int_equal(bytes, strlen(good[i]) + 1);
  }
  ok(cohort_context_text(NULL, NULL, 0, &bytes));
  assert_int_equal(bytes, sizeof("cpu(0)"));
  fails(cohort_context_text(NULL, text, bytes - 1, NULL), COHORT_ERROR_INVALID_ARGUMENT, "7 bytes");
  context.device_type = 4;
  fails(cohort_context_text(&context, text, sizeof(text), NULL), COHORT_ERROR_INVALID_ARGUMENT, "4");
  context.device_type = COHORT_DEVICE_CPU;
  context.device_id = -1;
  fails(cohort_context_text(&context, text, sizeof(text), NULL), COHORT_ERROR_INVALID_ARGUMENT, "-1");
}

/* Each dtype has one name, one size and one code; anything else is a dtype error. */
static void dtypes_as_text(void **state) {
  static const struct {
    int32_t dtype;
    const char *text;
    size_t bytes;
  } known[] = {{0, "float32", 4}, {1, "float64", 8}, {2, "float16", 2}, {3, "uint8", 1},    {4, "int32", 4},
               {5, "int8", 1},    {6, "int64", 8},   {7, "bool", 1},    {12, "bfloat16", 2}};
  static const int32_t unknown[] = {-2, -1, 8, 11, 13};
  const char *text;
  int32_t dtype;
  size_t i, bytes;

  (void)state;
  for (i = 0; i < NUM_OF(known); ++i) {
    ok(cohort_dtype_text(known[i].dtype, &text));
    assert_string_equal(text, known[i].text);
    ok(cohort_dtype_parse(text, &dtype));
    assert_int_equal(dtype, known[i].dtype);
    ok(cohort_dtype_bytes(dtype, &bytes));
    assert_int_equal(bytes, known[i].bytes);
  }
  for (i = 0; i < NUM_OF(unknown); ++i) {
    fails(cohort_dtype_text(unknown[i], &text), COHORT_ERROR_DTYPE, "code");
    fails(cohort_dtype_bytes(unknown[i], &bytes), COHORT_ERROR_DTYPE, "code");
    fails(cohort_ndarray_zeros(NULL, 0, unknown[i], NULL, (cohort_ndarray **)&text), COHORT_ERROR_DTYPE, "code");
  }
  fails(cohort_dtype_parse("uint32", &dtype), COHORT_ERROR_DTYPE, "uint32");
}

/* The batch axis of a layout is where its first N stands. */
static void layouts_have_a_batch_axis(void **state) {
  static const struct {
    const char *layout;
    int32_t axis;
  } known[] = {{NULL, 0}, {"NCHW", 0}, {"TN", 1}, {"NTN", 0}, {"TC", -1}, {"", -1}, {"nc", -1}, {"TNC", 1}};
  int32_t axis;
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(known); ++i) {
    axis = 77;
    ok(cohort_layout_batch_axis(known[i].layout, &axis));
    assert_int_equal(axis, known[i].axis);
  }
}

/* The version is the header's, and features can be queried without loading a backend. */
static void version_and_features(void **state) {
  size_t num = 0;

  (void)state;
  assert_string_equal(cohort_version(), COHORT_VERSION);
  assert_int_equal(cohort_version_number(),
                   COHORT_VERSION_MAJOR * 10000 + COHORT_VERSION_MINOR * 100 + COHORT_VERSION_PATCH);
  assert_int_equal(cohort_has_feature("cpu"), 1);
  assert_int_equal(cohort_has_feature("dlpack"), 1);
  assert_int_equal(cohort_has_feature("nonsense"), 0);
  assert_int_equal(cohort_has_feature(NULL), 0);
  ok(cohort_num_devices(COHORT_DEVICE_CPU, &num));
  assert_true(num >= 1);
  ok(cohort_num_devices(COHORT_DEVICE_GPU, &num));
  assert_int_equal(num > 0, cohort_has_feature("cuda"));
  fails(cohort_num_devices(9, &num), COHORT_ERROR_INVALID_ARGUMENT, "9");
}

/* A missing GPU is a device error at the first use, not a crash. */
static void absent_gpus_are_device_errors(void **state) {
  const int64_t length = 1;
  const cohort_context context = {COHORT_DEVICE_GPU, 4096};
  cohort_ndarray *array = NULL;

  (void)state;
  fails(cohort_ndarray_zeros(&length, 1, COHORT_DTYPE_FLOAT32, &context, &array), COHORT_ERROR_DEVICE, "gpu(4096)");
  assert_null(array);
}

/* Unknown names are name errors that carry the name. */
static void unknown_names(void **state) {
  const char *const key = "no_such_key", *const value = "1";
  cohort_symbol *network = small_network(), *symbol = NULL;
  cohort_group *group = small_group(1, 2);
  cohort_executor *executor = NULL;
  cohort_optimizer *optimizer = NULL;
  cohort_metric *metric = NULL;
  cohort_initializer *initializer = NULL;
  cohort_arrays *arrays = NULL;
  cohort_descs *descs = NULL;
  cohort_ndarray *array = NULL;
  const char *text;
  int32_t number;
  size_t index;
  double setting;

  (void)state;
  ok(cohort_group_executor(group, 0, &executor));
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &optimizer));
  ok(cohort_initializer_create("uniform", NULL, NULL, 0, 0, &initializer));
  ok(cohort_arrays_create(&arrays));
  ok(cohort_descs_create(&descs));
  ok(cohort_ndarray_zeros(NULL, 0, COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(cohort_arrays_add(arrays, "nobody", array));
  ok(cohort_descs_add(descs, "nobody", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));

  fails(cohort_symbol_create("NoSuchOp", "x", NULL, NULL, 0, NULL, NULL, 0, &symbol), COHORT_ERROR_NAME, "NoSuchOp");
  fails(cohort_symbol_create("Dropout", "x", &key, &value, 1, NULL, NULL, 0, &symbol), COHORT_ERROR_NAME,
        "no_such_key");
  fails(cohort_symbol_variable("x", &key, &value, 1, &symbol), COHORT_ERROR_NAME, "no_such_key");
  fails(cohort_symbol_output_named(network, "softmax", &symbol), COHORT_ERROR_NAME, "softmax");
  fails(cohort_symbol_compose(network, &key, &network, 1, NULL, &symbol), COHORT_ERROR_NAME, "no_such_key");
  fails(cohort_symbol_infer_shape(network, descs, 1, &number, NULL, NULL, NULL), COHORT_ERROR_NAME, "nobody");
  fails(cohort_symbol_infer_dtype(network, descs, 1, &number, NULL, NULL, NULL), COHORT_ERROR_NAME, "nobody");
  fails(cohort_operator_info("NoSuchOp", &text, NULL, NULL, NULL, NULL, NULL), COHORT_ERROR_NAME, "NoSuchOp");
  fails(cohort_operator_invoke("NoSuchOp", NULL, NULL, 0, &array, 1, NULL, 0, NULL, &arrays), COHORT_ERROR_NAME,
        "NoSuchOp");
  fails(cohort_executor_array_named(executor, COHORT_EXECUTOR_ARGS, "nobody", &array), COHORT_ERROR_NAME, "nobody");
  fails(cohort_executor_set_inputs(executor, arrays), COHORT_ERROR_NAME, "nobody");
  fails(cohort_executor_copy_params_from(executor, arrays, NULL, 0), COHORT_ERROR_NAME, "nobody");
  ok(cohort_executor_copy_params_from(executor, arrays, NULL, 1));
  fails(cohort_group_set_params(group, arrays, NULL, 0), COHORT_ERROR_NAME, "nobody");
  ok(cohort_group_set_params(group, arrays, arrays, 1));
  fails(cohort_group_get_params(group, arrays, NULL), COHORT_ERROR_NAME, "fc_");
  fails(cohort_optimizer_create("descent", NULL, NULL, 0, &optimizer), COHORT_ERROR_NAME, "descent");
  fails(cohort_optimizer_create("sgd", &key, &value, 1, &optimizer), COHORT_ERROR_NAME, "no_such_key");
  fails(cohort_optimizer_get(optimizer, "no_such_key", &setting), COHORT_ERROR_NAME, "no_such_key");
  fails(cohort_optimizer_set(optimizer, "no_such_key", 1), COHORT_ERROR_NAME, "no_such_key");
  fails(cohort_optimizer_set_lr_schedule(optimizer, "sometimes", NULL, NULL, 0), COHORT_ERROR_NAME, "sometimes");
  fails(cohort_metric_create("happiness", NULL, NULL, 0, &metric), COHORT_ERROR_NAME, "happiness");
  fails(cohort_metric_create("acc", &key, &value, 1, &metric), COHORT_ERROR_NAME, "no_such_key");
  fails(cohort_initializer_create("wishful", NULL, NULL, 0, 0, &initializer), COHORT_ERROR_NAME, "wishful");
  fails(cohort_initializer_create("xavier", &key, &value, 1, 0, &initializer), COHORT_ERROR_NAME, "no_such_key");
  fails(cohort_initializer_apply(initializer, NULL, arrays), COHORT_ERROR_NAME, "nobody");
  fails(cohort_arrays_find(arrays, "somebody", &index), COHORT_ERROR_NAME, "somebody");
  fails(cohort_descs_find(descs, "somebody", &index), COHORT_ERROR_NAME, "somebody");

  cohort_symbol_free(network);
  cohort_group_free(group);
  cohort_executor_free(executor);
  cohort_optimizer_free(optimizer);
  cohort_initializer_free(initializer);
  cohort_arrays_free(arrays);
  cohort_descs_free(descs);
  cohort_ndarray_free(array);
}

/* An unknown operator: the error suggests a similar name, from JSON as well, but not where none is similar. */
static void an_unknown_operator_names_the_nearest(void **state) {
  static const char json[] =
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}, {\"op\": \"softmax_ouput\", \"name\": \"y\","
      " \"inputs\": [[0, 0, 0]]}], \"arg_nodes\": [0], \"heads\": [[1, 0, 0]]}";
  char *huge = calloc(1, 1 << 20);
  cohort_symbol *symbol = NULL;
  cohort_error *error;

  (void)state;
  fails(cohort_symbol_create("fullyconnected", "x", NULL, NULL, 0, NULL, NULL, 0, &symbol), COHORT_ERROR_NAME,
        "'fullyconnected'; the nearest name is 'FullyConnected'");
  fails(cohort_symbol_create("Convolutoin", "x", NULL, NULL, 0, NULL, NULL, 0, &symbol), COHORT_ERROR_NAME,
        "'Convolution'");
  fails(cohort_symbol_from_json(json, sizeof(json) - 1, &symbol), COHORT_ERROR_FORMAT, "'SoftmaxOutput'");
  error = cohort_symbol_create("!?#%&()[]", "x", NULL, NULL, 0, NULL, NULL, 0, &symbol);
  assert_null(strstr(cohort_error_message(error), "nearest"));
  cohort_error_free(error);
  memset(huge, 'x', (1 << 20) - 1);
  fails(cohort_symbol_create(huge, "x", NULL, NULL, 0, NULL, NULL, 0, &symbol), COHORT_ERROR_NAME, "no operator");
  free(huge);
}

/* A network that uses unknown operators: one error names all of them, each with its nodes. */
static void all_unknown_operators_are_named_at_once(void **state) {
  static const char json[] =
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
      " {\"op\": \"Magic\", \"name\": \"a\", \"inputs\": [[0, 0, 0]]},"
      " {\"op\": \"relu\", \"name\": \"r\", \"inputs\": [[1, 0, 0]]},"
      " {\"op\": \"Wonder\", \"name\": \"b\", \"attrs\": {\"deep\": \"1\"}, \"inputs\": [[2, 0, 0]]},"
      " {\"op\": \"Magic\", \"name\": \"c\", \"inputs\": [[3, 0, 0], [1, 0, 0]]}],"
      " \"arg_nodes\": [0], \"heads\": [[4, 0, 0]]}";
  cohort_symbol *symbol = NULL;
  cohort_error *error = cohort_symbol_from_json(json, sizeof(json) - 1, &symbol);

  (void)state;
  assert_non_null(error);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_FORMAT);
  assert_non_null(strstr(cohort_error_message(error), "nodes 'a', 'c' (Magic): no operator is named 'Magic'"));
  assert_non_null(strstr(cohort_error_message(error), "node 'b' (Wonder): no operator is named 'Wonder'"));
  assert_null(strstr(cohort_error_message(error), "'r'"));
  assert_null(symbol);
  cohort_error_free(error);
}

/* Thousands of unknown operators do not make an error of megabytes. */
static void an_error_of_many_unknown_operators_stays_short(void **state) {
  char *json = malloc(1 << 20);
  size_t length = (size_t)sprintf(json, "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}");
  cohort_symbol *symbol = NULL;
  cohort_error *error;
  int i;

  (void)state;
  for (i = 0; i < 3000; ++i) {
    length += (size_t)sprintf(json + length, ", {\"op\": \"Magic%d\", \"name\": \"n\", \"inputs\": [[0, 0, 0]]}",
                              i % 2 == 0 ? 0 : i);
  }
  length += (size_t)sprintf(json + length, "], \"arg_nodes\": [0], \"heads\": [[1, 0, 0]]}");
  error = cohort_symbol_from_json(json, length, &symbol);
  assert_non_null(strstr(cohort_error_message(error), "'n' and 1400 more (Magic0)"));
  assert_non_null(strstr(cohort_error_message(error), "and 1401 more"));
  assert_in_range(strlen(cohort_error_message(error)), 1000, 20000);
  cohort_error_free(error);
  free(json);
}

/* Attributes given twice, and NULL in place of text in a list, are errors that say which. */
static void attributes_are_checked(void **state) {
  const char *const twice[] = {"__lr_mult__", "__lr_mult__"}, *const values[] = {"1", "2"};
  const char *const gap[] = {"__lr_mult__", NULL};
  cohort_symbol *symbol = NULL;

  (void)state;
  fails(cohort_symbol_variable("x", twice, values, 2, &symbol), COHORT_ERROR_NAME, "__lr_mult__");
  fails(cohort_symbol_variable("x", gap, values, 2, &symbol), COHORT_ERROR_INVALID_ARGUMENT, "keys[1]");
  fails(cohort_symbol_variable("x", NULL, values, 2, &symbol), COHORT_ERROR_INVALID_ARGUMENT, "keys");
  fails(cohort_symbol_variable("", NULL, NULL, 0, &symbol), COHORT_ERROR_INVALID_ARGUMENT, "name");
  fails(cohort_symbol_variable(NULL, NULL, NULL, 0, &symbol), COHORT_ERROR_INVALID_ARGUMENT, "name");
  assert_null(symbol);
}

/* Unknown enum values are refused wherever the ABI takes one. */
static void unknown_constants(void **state) {
  static const int32_t bad[] = {-2, 99, INT32_MAX, INT32_MIN};
  cohort_group *group = small_group(2, 4);
  cohort_executor *executor = NULL;
  cohort_symbol *symbol = small_network();
  cohort_optimizer *optimizer = NULL;
  cohort_ndarray *array = NULL;
  int64_t begin[2], end[2];
  int32_t number;
  size_t i, num;
  const char *name;

  (void)state;
  ok(cohort_group_executor(group, 0, &executor));
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &optimizer));
  for (i = 0; i < NUM_OF(bad); ++i) {
    fails(cohort_symbol_num_names(symbol, bad[i], &num), COHORT_ERROR_INVALID_ARGUMENT, "list");
    fails(cohort_symbol_num_attrs(symbol, bad[i], &num), COHORT_ERROR_INVALID_ARGUMENT, "all");
    fails(cohort_executor_num_arrays(executor, bad[i], &num), COHORT_ERROR_INVALID_ARGUMENT, "list");
    fails(cohort_executor_name(executor, bad[i], 0, &name), COHORT_ERROR_INVALID_ARGUMENT, "list");
    fails(cohort_executor_array(executor, bad[i], 0, &array), COHORT_ERROR_INVALID_ARGUMENT, "list");
    fails(cohort_executor_forward(executor, bad[i]), COHORT_ERROR_INVALID_ARGUMENT, "is_train");
    fails(cohort_group_num_arrays(group, bad[i], &num), COHORT_ERROR_INVALID_ARGUMENT, "list");
    fails(cohort_group_array(group, bad[i], 0, 0, &array), COHORT_ERROR_INVALID_ARGUMENT, "list");
    fails(cohort_group_run(group, bad[i]), COHORT_ERROR_INVALID_ARGUMENT, "is_train");
    fails(cohort_group_update(group, optimizer, bad[i]), COHORT_ERROR_INVALID_ARGUMENT, "mode");
    fails(cohort_split_slices(4, NULL, 2, bad[i], begin, end), COHORT_ERROR_INVALID_ARGUMENT, "rounding");
    fails(cohort_set_log(bad[i], NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT, "lowest");
    fails(cohort_symbol_infer_shape(symbol, NULL, bad[i], &number, NULL, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT,
          "partial");
  }
  fails(cohort_group_axis(group, COHORT_GROUP_PARAMS, 0, &number), COHORT_ERROR_INVALID_ARGUMENT, "");
  cohort_group_free(group);
  cohort_executor_free(executor);
  cohort_symbol_free(symbol);
  cohort_optimizer_free(optimizer);
}

/* Every list refuses an index beyond its end. */
static void indices_beyond_the_end(void **state) {
  cohort_group *group = small_group(2, 4);
  cohort_executor *executor = NULL;
  cohort_symbol *symbol = small_network(), *output = NULL;
  cohort_arrays *arrays = NULL;
  cohort_descs *descs = NULL;
  cohort_ndarray *array = NULL;
  cohort_metric *metric = NULL;
  cohort_context context;
  int64_t begin, end;
  int32_t list, number;
  const char *name;
  double value;
  size_t num;

  (void)state;
  ok(cohort_group_executor(group, 0, &executor));
  ok(cohort_group_arrays(group, COHORT_GROUP_PARAMS, 0, &arrays));
  ok(cohort_group_descs(group, COHORT_GROUP_DATA, &descs));
  ok(cohort_metric_create("acc", NULL, NULL, 0, &metric));
  for (list = COHORT_SYMBOL_ARGUMENTS; list <= COHORT_SYMBOL_LABELS; ++list) {
    ok(cohort_symbol_num_names(symbol, list, &num));
    fails(cohort_symbol_name_at(symbol, list, num, &name), COHORT_ERROR_INVALID_ARGUMENT, "index");
  }
  for (list = COHORT_EXECUTOR_ARGS; list <= COHORT_EXECUTOR_OUTPUTS; ++list) {
    ok(cohort_executor_num_arrays(executor, list, &num));
    fails(cohort_executor_name(executor, list, num, &name), COHORT_ERROR_INVALID_ARGUMENT, "index");
    fails(cohort_executor_array(executor, list, num, &array), COHORT_ERROR_INVALID_ARGUMENT, "index");
  }
  for (list = COHORT_GROUP_DATA; list <= COHORT_GROUP_ARGS; ++list) {
    if (list == COHORT_GROUP_INPUT_GRADS) continue;
    ok(cohort_group_num_arrays(group, list, &num));
    fails(cohort_group_name(group, list, num, &name), COHORT_ERROR_INVALID_ARGUMENT, "");
    fails(cohort_group_array(group, list, num, 0, &array), COHORT_ERROR_INVALID_ARGUMENT, "");
    if (num) fails(cohort_group_array(group, list, 0, 2, &array), COHORT_ERROR_INVALID_ARGUMENT, "");
    fails(cohort_group_arrays(group, list, 2, &arrays), COHORT_ERROR_INVALID_ARGUMENT, "");
  }
  fails(cohort_group_merged(group, COHORT_GROUP_OUTPUTS, 1, &array), COHORT_ERROR_INVALID_ARGUMENT, "");
  fails(cohort_group_context(group, 2, &context), COHORT_ERROR_INVALID_ARGUMENT, "device");
  fails(cohort_group_executor(group, 2, &executor), COHORT_ERROR_INVALID_ARGUMENT, "device");
  fails(cohort_group_slice(group, 2, &begin, &end), COHORT_ERROR_INVALID_ARGUMENT, "device");
  fails(cohort_executor_grad_req(executor, 4, &number), COHORT_ERROR_INVALID_ARGUMENT, "index");
  fails(cohort_symbol_output(symbol, 1, &output), COHORT_ERROR_INVALID_ARGUMENT, "index");
  fails(cohort_arrays_get(arrays, 2, &array), COHORT_ERROR_INVALID_ARGUMENT, "index");
  fails(cohort_arrays_name(arrays, 2, &name), COHORT_ERROR_INVALID_ARGUMENT, "index");
  fails(cohort_descs_get(descs, 1, &name, NULL, 0, NULL, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT, "index");
  fails(cohort_metric_value(metric, 1, 0, &name, &value), COHORT_ERROR_INVALID_ARGUMENT, "");
  fails(cohort_metric_child(metric, 0, &metric), COHORT_ERROR_INVALID_ARGUMENT, "");
  ok(cohort_operator_num(&num));
  fails(cohort_operator_name(num, &name), COHORT_ERROR_INVALID_ARGUMENT, "index");
  fails(cohort_operator_attr("FullyConnected", 99, &name, NULL, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT, "index");
  fails(cohort_operator_input("FullyConnected", 3, &name, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT, "index");
  fails(cohort_operator_attr_range("FullyConnected", 99, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT, "index");
  fails(cohort_operator_input_gradient("FullyConnected", 3, &number), COHORT_ERROR_INVALID_ARGUMENT, "index");
  fails(cohort_operator_output("FullyConnected", 1, &name), COHORT_ERROR_INVALID_ARGUMENT, "index");
  cohort_group_free(group);
  cohort_executor_free(executor);
  cohort_symbol_free(symbol);
  cohort_arrays_free(arrays);
  cohort_descs_free(descs);
  cohort_metric_free(metric);
}

/* A zero byte would end a text in C, and make equal what differs behind it. */
static void zero_bytes_in_files_are_refused(void **state) {
  char json[512];
  size_t i;

  (void)state;
  for (i = 0; i < 4; ++i) {
    static const char *const found[] = {"null\\u0000", "fc\\u0000a", "__note\\u0000__", "v\\u0000"};
    cohort_symbol *symbol = NULL;

    snprintf(json, sizeof json,
             "{\"nodes\": [{\"op\": \"%s\", \"name\": \"%s\", \"attrs\": {\"%s\": \"%s\"}, \"inputs\": []}], "
             "\"arg_nodes\": [0], \"heads\": [[0, 0, 0]]}",
             i == 0 ? found[0] : "null", i == 1 ? found[1] : "fc", i == 2 ? found[2] : "__note__",
             i == 3 ? found[3] : "v");
    fails(cohort_symbol_from_json(json, strlen(json), &symbol), COHORT_ERROR_FORMAT, "without zero bytes, found '");
  }
}

static void zero_bytes_in_states_are_refused(void **state) {
  static const float one[] = {1};
  const int64_t shape[] = {1};
  cohort_ndarray *weight = floats(one, shape, 1), *grad = floats(one, shape, 1);
  cohort_optimizer *sgd = NULL;
  char bytes[512];
  size_t size = 0, at;

  (void)state;
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &sgd));
  ok(cohort_optimizer_update(sgd, "weight", 0, weight, grad));
  ok(cohort_optimizer_save_states_memory(sgd, bytes, sizeof bytes, &size));
  for (at = 0; memcmp(bytes + at, "weight", 6) != 0; ++at) assert_true(at + 6 < size);
  bytes[at + 2] = '\0';
  fails(cohort_optimizer_load_states_memory(sgd, bytes, size), COHORT_ERROR_FORMAT, "'we\\x00ght': found a zero byte");
  cohort_optimizer_free(sgd);
  cohort_ndarray_free(weight);
  cohort_ndarray_free(grad);
}

/* An error quotes both ends of a name of a megabyte, and what it is about. */
static void long_quotations_are_cut_short(void **state) {
  enum { SIZE = 1 << 20, MOST = 20000 };
  char *const name = malloc(SIZE + 1);
  cohort_symbol *symbol = NULL;
  cohort_error *error;
  const char *message;
  size_t i;

  (void)state;
  assert_non_null(name);
  for (i = 0; i < SIZE; i += 2) memcpy(name + i, "\xc3\xa4", 2);
  name[0] = name[1] = '<';
  name[SIZE - 1] = name[SIZE - 2] = '>';
  name[SIZE] = '\0';
  error = cohort_symbol_create(name, "node", NULL, NULL, 0, NULL, NULL, 0, &symbol);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_NAME);
  message = cohort_error_message(error);
  assert_in_range(strlen(message), 1, MOST);
  assert_non_null(strstr(message, "'<<\xc3\xa4"));
  assert_non_null(strstr(message, "\xc3\xa4[...]\xc3\xa4"));
  assert_non_null(strstr(message, "\xc3\xa4>>'"));
  assert_null(strstr(message, "\\x"));
  cohort_error_free(error);
  free(name);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(null_is_success),
      TEST(classes_have_names),
      TEST(freed_errors_say_so),
      TEST(errors_cross_threads),
      TEST(contexts_as_text),
      TEST(dtypes_as_text),
      TEST(layouts_have_a_batch_axis),
      TEST(version_and_features),
      TEST(absent_gpus_are_device_errors),
      TEST(unknown_names),
      TEST(an_unknown_operator_names_the_nearest),
      TEST(all_unknown_operators_are_named_at_once),
      TEST(an_error_of_many_unknown_operators_stays_short),
      TEST(zero_bytes_in_files_are_refused),
      TEST(zero_bytes_in_states_are_refused),
      TEST(long_quotations_are_cut_short),
      TEST(attributes_are_checked),
      TEST(unknown_constants),
      TEST(indices_beyond_the_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
