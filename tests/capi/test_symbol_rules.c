/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols: attributes and what they mean (SYM-05 to SYM-09), inference (SYM-10, SYM-11), copies (SYM-14, SYM-15), JSON
 * (SYM-16 to SYM-18). */
#include <math.h>
#include <stdio.h>

#include "support/executor_tests.h"

static const char *attr_of(const cohort_symbol *symbol, const char *key) {
  const char *value = "untouched";

  ok(cohort_symbol_attr(symbol, key, &value));
  return value;
}

/* The attribute of a node by name; NULL if it has none. */
static const char *attr_at(const cohort_symbol *symbol, const char *node_name, const char *key) {
  size_t num = 0, i;

  ok(cohort_symbol_num_attrs(symbol, 1, &num));
  for (i = 0; i < num; ++i) {
    const char *found_node = NULL, *found_key = NULL, *value = NULL;

    ok(cohort_symbol_attr_at(symbol, 1, i, &found_node, &found_key, &value));
    if (strcmp(found_node, node_name) == 0 && strcmp(found_key, key) == 0) return value;
  }
  return NULL;
}

static cohort_symbol *from_json(const char *json) {
  cohort_symbol *symbol = NULL;

  ok(cohort_symbol_from_json(json, strlen(json), &symbol));
  return symbol;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

/* SYM-06: the reserved attributes are text, kept as given, through JSON too. */
static void reserved_attributes_are_kept_as_text(void **state) {
  static const char *const keys[] = {"__layout__",          "__shape__",        "__dtype__",   "__storage_type__",
                                     "__lr_mult__",         "__wd_mult__",      "__init__",    "__ctx_group__",
                                     "__force_mirroring__", "__mirror_stage__", "__anything__"};
  static const char *const values[] = {"TNC",           "(4, 5)", "2",    "-1", "0.5", "2.0",
                                       "[\"one\", {}]", "dev1",   "True", "3",  "x"};
  cohort_symbol *symbol = NULL, *back;
  const char *json = NULL;
  size_t i;

  (void)state;
  ok(cohort_symbol_variable("x", keys, values, COUNT(keys), &symbol));
  ok(cohort_symbol_to_json(symbol, &json));
  back = from_json(json);
  for (i = 0; i < COUNT(keys); ++i) {
    assert_string_equal(attr_of(symbol, keys[i]), values[i]);
    assert_string_equal(attr_of(back, keys[i]), values[i]);
  }
  cohort_symbol_free(symbol);
  cohort_symbol_free(back);
}

/* SYM-06: `__lr_mult__` and `__wd_mult__` reach an optimizer; `__shape__` and `__dtype__` take part in inference. */
static void reserved_attributes_have_their_effect(void **state) {
  static const char *const keys[] = {"lr_mult", "wd_mult", "__shape__", "__dtype__"};
  static const char *const values[] = {"0.5", "4", "(3, 2)", "1"};
  cohort_symbol *symbol = NULL;
  cohort_optimizer *optimizer = NULL;
  cohort_descs *args = NULL;
  double lr = 0, wd = 0;
  int64_t shape[2] = {0, 0};
  int32_t complete = 0, num_axes = 0, dtype = 0;

  (void)state;
  ok(cohort_symbol_variable("x", keys, values, 4, &symbol));
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &optimizer));
  ok(cohort_optimizer_use_symbol(optimizer, symbol));
  ok(cohort_optimizer_mult(optimizer, "x", &lr, &wd));
  assert_true(lr == 0.5 && wd == 4);
  ok(cohort_symbol_infer_shape(symbol, NULL, 0, &complete, &args, NULL, NULL));
  assert_int_equal(complete, 1);
  ok(cohort_descs_get(args, 0, NULL, shape, 2, &num_axes, NULL, NULL));
  assert_true(num_axes == 2 && shape[0] == 3 && shape[1] == 2);
  cohort_descs_free(args);
  ok(cohort_symbol_infer_dtype(symbol, NULL, 0, &complete, &args, NULL, NULL));
  ok(cohort_descs_get(args, 0, NULL, NULL, 0, NULL, &dtype, NULL));
  assert_int_equal(dtype, COHORT_DTYPE_FLOAT64);
  cohort_descs_free(args);
  cohort_symbol_free(symbol);
  cohort_optimizer_free(optimizer);
}

/* SYM-07: each of the five short names stores the long one, either reads it, and lists show both. Other names are
 * refused, with advice if a variable's attribute is set on its operator, and with the list of the operator's own. */
static void short_names_stand_for_long_ones(void **state) {
  static const char *const names[] = {"ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"};
  const char *const plain = "colour", *const aside = "weight_lr_mult", *const value = "1", *const nothing = NULL;
  cohort_symbol *fc = linear("2"), *bad = NULL;
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(names); ++i) {
    cohort_symbol *x = variable_with("x", names[i], "7");
    char long_name[64];
    size_t num = 0;

    snprintf(long_name, sizeof(long_name), "__%s__", names[i]);
    assert_string_equal(attr_of(x, names[i]), "7");
    assert_string_equal(attr_of(x, long_name), "7");
    ok(cohort_symbol_num_attrs(x, 0, &num));
    assert_int_equal(num, 2);
    assert_string_equal(attr_at(x, "x", names[i]), "7");
    assert_string_equal(attr_at(x, "x", long_name), "7");
    cohort_symbol_free(x);
  }
  fails(cohort_symbol_set_attrs(fc, &aside, &value, 1), COHORT_ERROR_NAME, "set '__lr_mult__' on the input variable");
  fails(cohort_symbol_variable("x", &plain, &value, 1, &bad), COHORT_ERROR_NAME, "'__colour__'");
  fails(cohort_symbol_create("FullyConnected", "fc", &plain, &value, 1, NULL, NULL, 0, &bad), COHORT_ERROR_NAME,
        "it has: num_hidden, no_bias, flatten");
  fails(cohort_symbol_set_attrs(fc, names, &nothing, 1), COHORT_ERROR_INVALID_ARGUMENT, "values[0]");
  assert_null(bad);
  cohort_symbol_free(fc);
}

/* SYM-05: generated variables carry the layer's attributes; SYM-08: auxiliary states say how they are initialised;
 * SYM-09: a variable without attributes, and a missing key, read as absent. */
static void inputs_made_for_a_layer_carry_its_attributes(void **state) {
  cohort_symbol *fc =
      node("FullyConnected", "fc", ATTRS("num_hidden", "3", "lr_mult", "2", "__layout__", "NC"), INPUTS(variable("x")));
  cohort_symbol *bn = node("BatchNorm", "bn", NO_ATTRS, INPUTS(fc));

  (void)state;
  assert_string_equal(attr_at(bn, "fc_weight", "num_hidden"), "3");
  assert_string_equal(attr_at(bn, "fc_weight", "__lr_mult__"), "2");
  assert_string_equal(attr_at(bn, "fc_bias", "__layout__"), "NC");
  assert_null(attr_at(bn, "x", "__lr_mult__"));
  assert_string_equal(attr_at(bn, "bn_moving_mean", "__init__"), "[\"zero\", {}]");
  assert_string_equal(attr_at(bn, "bn_moving_var", "__init__"), "[\"one\", {}]");
  assert_null(attr_of(bn, "__lr_mult__"));
  cohort_symbol_free(bn);
}

/* ---- inference --------------------------------------------------------------------------------------------------- */

/* SYM-10: an unknown name is refused with a list of the valid ones; data shapes give weight shapes, but not the
 * reverse. */
static void unknown_names_are_refused_with_those_there_are(void **state) {
  cohort_symbol *symbol = linear("2");
  cohort_descs *known = desc("nobody", SHAPE(1), NULL), *args = NULL;
  int32_t complete = -1;

  (void)state;
  fails(cohort_symbol_infer_shape(symbol, known, 0, &complete, &args, NULL, NULL), COHORT_ERROR_NAME, "'nobody'");
  fails(cohort_symbol_infer_shape(symbol, known, 0, &complete, &args, NULL, NULL), COHORT_ERROR_NAME,
        "data, fc_weight");
  assert_int_equal(complete, -1);
  cohort_descs_free(known);
  known = desc("fc_weight", SHAPE(2, 5), NULL);
  ok(cohort_symbol_infer_shape(symbol, known, 0, &complete, &args, NULL, NULL));
  assert_int_equal(complete, 0);
  assert_null(args);
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
}

/* SYM-10, SYM-12: shapes by position, some of them unknown; where an operator allows it they are inferred backwards. */
static void shapes_go_by_position_and_backwards(void **state) {
  cohort_symbol *symbol = node("elemwise_mul", "product", NO_ATTRS, INPUTS(variable("a"), variable("b")));
  cohort_descs *known = no_descs(), *args = NULL;
  int64_t shape[2] = {0, 0};
  int32_t complete = 0, num_axes = 0;
  size_t i;

  (void)state;
  ok(cohort_descs_add(known, NULL, NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  ok(cohort_descs_add(known, NULL, SHAPE(4, 3), COHORT_DTYPE_NONE, NULL));
  ok(cohort_symbol_infer_shape(symbol, known, 0, &complete, &args, NULL, NULL));
  assert_int_equal(complete, 1);
  for (i = 0; i < 2; ++i) {
    ok(cohort_descs_get(args, i, NULL, shape, 2, &num_axes, NULL, NULL));
    assert_true(num_axes == 2 && shape[0] == 4 && shape[1] == 3);
  }
  cohort_descs_free(args);
  ok(cohort_descs_add(known, NULL, SHAPE(4, 3), COHORT_DTYPE_NONE, NULL));
  fails(cohort_symbol_infer_shape(symbol, known, 0, &complete, NULL, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT,
        "at most 2");
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
}

/* The shape of x is inferred from that of y, which the first output of a node of x is added to. */
static void x_follows(cohort_symbol *of_x, const int64_t *y, int32_t y_axes, const int64_t *x, int32_t x_axes) {
  cohort_symbol *part = NULL, *symbol;
  cohort_descs *known = desc("y", y, y_axes, NULL), *args = NULL;
  int64_t found[4] = {0};
  int32_t complete = 0, num_axes = 0;

  ok(cohort_symbol_output(of_x, 0, &part));
  symbol = node("elemwise_add", NULL, NO_ATTRS, INPUTS(part, variable("y")));
  ok(cohort_symbol_infer_shape(symbol, known, 0, &complete, &args, NULL, NULL));
  assert_int_equal(complete, 1);
  ok(cohort_descs_get(args, 0, NULL, found, 4, &num_axes, NULL, NULL));
  assert_int_equal(num_axes, x_axes);
  assert_memory_equal(found, x, sizeof(*x) * (size_t)x_axes);
  cohort_descs_free(args);
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
  cohort_symbol_free(of_x);
}

/* SYM-10: shapes of indices follow from those of coordinates, and the whole from its parts. */
static void inputs_follow_from_outputs(void **state) {
  (void)state;
  x_follows(node("_unravel_index", NULL, ATTRS("shape", "(4, 5)"), INPUTS(variable("x"))), SHAPE(2, 3), SHAPE(3));
  x_follows(node("_split_v2", NULL, ATTRS("indices", "(0, 1)", "axis", "1"),
                 INPUTS(variable_with("x", "__shape__", "(0, 4, 2)"))),
            SHAPE(3, 1, 2), SHAPE(3, 4, 2));
  x_follows(node("_split_v2", NULL, ATTRS("indices", "()", "sections", "2", "axis", "1", "squeeze_axis", "1"),
                 INPUTS(variable_with("x", "__shape__", "(0, 2, 0)"))),
            SHAPE(3, 5), SHAPE(3, 2, 5));
}

/* SYM-11: integer types pass through a layer, `__dtype__` takes part, and a conflict names the node and the input. */
static void dtypes_go_through_layers(void **state) {
  cohort_symbol *symbol = linear("2"), *typed = node("FullyConnected", "fc", ATTRS("num_hidden", "1"),
                                                     INPUTS(variable_with("data", "__dtype__", "1")));
  cohort_descs *known = no_descs(), *args = NULL, *outputs = NULL;
  int32_t complete = 0, dtype = -7;
  cohort_error *error;

  (void)state;
  ok(cohort_descs_add(known, "data", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_INT32, NULL));
  ok(cohort_symbol_infer_dtype(symbol, known, 0, &complete, &args, &outputs, NULL));
  assert_int_equal(complete, 1);
  ok(cohort_descs_get(args, 1, NULL, NULL, 0, NULL, &dtype, NULL));
  assert_int_equal(dtype, COHORT_DTYPE_INT32);
  ok(cohort_descs_get(outputs, 0, NULL, NULL, 0, NULL, &dtype, NULL));
  assert_int_equal(dtype, COHORT_DTYPE_INT32);
  cohort_descs_free(args);
  cohort_descs_free(outputs);
  ok(cohort_symbol_infer_dtype(typed, NULL, 0, &complete, &args, NULL, NULL));
  ok(cohort_descs_get(args, 2, NULL, NULL, 0, NULL, &dtype, NULL));
  assert_int_equal(dtype, COHORT_DTYPE_FLOAT64);
  cohort_descs_free(args);
  ok(cohort_descs_add(known, "fc_weight", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_FLOAT64, NULL));
  error = cohort_symbol_infer_dtype(symbol, known, 0, &complete, NULL, NULL, NULL);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_DTYPE);
  assert_string_equal(cohort_error_subject(error), "fc");
  assert_non_null(strstr(cohort_error_message(error), "input 1: expected int32, found float64"));
  cohort_error_free(error);
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
  cohort_symbol_free(typed);
}

/* ---- symbols and what is bound ----------------------------------------------------------------------------------- */

/* SYM-14: a bound executor or group keeps the symbol as it was, whatever is set on the caller's handle afterwards. */
static void bound_objects_keep_their_symbol(void **state) {
  const char *const key = "scalar", *const value = "100";
  cohort_symbol *symbol = node("_mul_scalar", "times", ATTRS("scalar", "2"), INPUTS(variable("x"))), *copy = NULL;
  cohort_descs *known = desc("x", SHAPE(2), NULL);
  const cohort_context cpu0 = {COHORT_DEVICE_CPU, 0};
  cohort_executor *executor = NULL;
  cohort_group *group = NULL;

  (void)state;
  ok(cohort_symbol_copy(symbol, &copy));
  ok(cohort_executor_simple_bind(symbol, NULL, known, NULL, &executor));
  ok(cohort_group_create(symbol, &cpu0, 1, known, NULL, NULL, 0, 0, NULL, &group));
  ok(cohort_symbol_set_attrs(symbol, &key, &value, 1));
  assert_string_equal(attr_of(symbol, "scalar"), "100");
  assert_string_equal(attr_of(copy, "scalar"), "2");
  cohort_symbol_free(symbol);
  set_arg(executor, "x", 1, 2);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 2, 4);
  forward(group, floats(SHAPE(2), FLOATS(1, 2)), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 2, 4);
  cohort_symbol_free(copy);
  cohort_descs_free(known);
  cohort_executor_free(executor);
  cohort_group_free(group);
}

/* SYM-15: two heads of the same name each have their own layout. */
static void layouts_go_by_the_index_of_the_head(void **state) {
  cohort_symbol *parts[2], *both = NULL;
  cohort_group *group;
  int32_t axis = -7;

  (void)state;
  parts[0] = node("_mul_scalar", "out", ATTRS("scalar", "2", "__layout__", "NC"), INPUTS(variable("x")));
  parts[1] = node("transpose", "out", ATTRS("__layout__", "CN"), INPUTS(variable("y")));
  ok(cohort_symbol_group(parts, 2, &both));
  cohort_symbol_free(parts[0]);
  cohort_symbol_free(parts[1]);
  {
    cohort_descs *data = desc("x", SHAPE(4, 3), NULL);

    add_desc(data, "y", SHAPE(4, 3), NULL);
    group = bind_for_inference(both, 2, data, NULL, NO_NAMES, NULL);
  }
  ok(cohort_group_axis(group, COHORT_GROUP_OUTPUTS, 0, &axis));
  assert_int_equal(axis, 0);
  ok(cohort_group_axis(group, COHORT_GROUP_OUTPUTS, 1, &axis));
  assert_int_equal(axis, 1);
  cohort_group_free(group);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* SYM-16: nodes in topological order with their inputs, auxiliary ones marked by version 1, all variables in arg_nodes,
 * outputs counted in node_row_ptr, heads, and the version. */
static void json_has_the_form_of_mxnet_1_9(void **state) {
  static const char *const parts[] = {
      "{\"op\":\"null\",\"name\":\"data\",\"inputs\":[]}",
      "{\"op\":\"null\",\"name\":\"bn_gamma\",\"attrs\":{\"fix_gamma\":\"False\"},\"inputs\":[]}",
      ("{\"op\":\"BatchNorm\",\"name\":\"bn\",\"attrs\":{\"fix_gamma\":\"False\"},"
       "\"inputs\":[[0,0,0],[1,0,0],[2,0,0],[3,0,1],[4,0,1]]}"),
      "{\"op\":\"SliceChannel\",\"name\":\"sp\",\"attrs\":{\"num_outputs\":\"2\"},\"inputs\":[[5,0,0]]}",
      "\"arg_nodes\":[0,1,2,3,4]",
      "\"node_row_ptr\":[0,1,2,3,4,5,8,10]",
      "\"heads\":[[6,0,0],[6,1,0]]",
      "\"attrs\":{\"mxnet_version\":[\"int\",10901]}"};
  cohort_symbol *symbol = node("SliceChannel", "sp", ATTRS("num_outputs", "2"),
                               INPUTS(node("BatchNorm", "bn", ATTRS("fix_gamma", "False"), INPUTS(variable("data")))));
  const char *json = NULL;
  char packed[4096];
  size_t length = 0, i;

  (void)state;
  ok(cohort_symbol_to_json(symbol, &json));
  for (; *json; ++json) { /* without white space, which is part of no text here but __init__ */
    assert_true(length + 1 < sizeof(packed));
    if (*json != ' ' && *json != '\n') packed[length++] = *json;
  }
  packed[length] = '\0';
  for (i = 0; i < COUNT(parts); ++i) {
    if (!strstr(packed, parts[i])) fail_msg("%s is not in %s", parts[i], packed);
  }
  cohort_symbol_free(symbol);
}

/* SYM-17, SYM-18: older formats are read over the ABI as well: separate `param` and `attr`, inputs of two numbers, no
 * version; short keys become long ones, `weight_lr_mult` moves to the weight, auxiliary states are restored. */
static void json_of_0_8_is_brought_up_to_date(void **state) {
  static const char json[] =
      "{\"nodes\": ["
      "{\"op\": \"null\", \"param\": {}, \"name\": \"data\", \"inputs\": [], \"backward_source_id\": -1,"
      " \"attr\": {\"ctx_group\": \"dev1\"}},"
      "{\"op\": \"null\", \"param\": {}, \"name\": \"fc_weight\", \"inputs\": [], \"backward_source_id\": -1},"
      "{\"op\": \"FullyConnected\", \"param\": {\"no_bias\": \"True\", \"num_hidden\": \"2\"}, \"name\": \"fc\","
      " \"inputs\": [[0, 0], [1, 0]], \"backward_source_id\": -1, \"attr\": {\"weight_lr_mult\": \"1.2\"}},"
      "{\"op\": \"null\", \"param\": {}, \"name\": \"g\", \"inputs\": [], \"backward_source_id\": -1},"
      "{\"op\": \"null\", \"param\": {}, \"name\": \"b\", \"inputs\": [], \"backward_source_id\": -1},"
      "{\"op\": \"BatchNorm\", \"param\": {\"momentum\": \"0.8\"}, \"name\": \"bn\","
      " \"inputs\": [[2, 0], [3, 0], [4, 0]], \"backward_source_id\": -1}],"
      " \"arg_nodes\": [0, 1, 3, 4], \"heads\": [[5, 0]]}";
  cohort_symbol *symbol = from_json(json);
  const char *name = NULL, *now = NULL;

  (void)state;
  ok(cohort_symbol_name_at(symbol, COHORT_SYMBOL_AUX, 1, &name));
  assert_string_equal(name, "bn_moving_var");
  assert_string_equal(attr_at(symbol, "bn_moving_var", "momentum"), "0.8");
  assert_string_equal(attr_at(symbol, "bn_moving_var", "__init__"), "[\"one\", {}]");
  assert_string_equal(attr_at(symbol, "fc_weight", "__lr_mult__"), "1.2");
  assert_null(attr_at(symbol, "fc", "weight_lr_mult"));
  assert_string_equal(attr_at(symbol, "data", "__ctx_group__"), "dev1");
  ok(cohort_symbol_to_json(symbol, &now));
  assert_non_null(strstr(now, "[\"int\", 10901]"));
  cohort_symbol_free(symbol);
}

/* SYM-17: if a key is both in `attr` and in `param`, the former counts; outputs of a node without a name are called as
 * its operator calls them. */
static void odd_json_is_read_as_mxnet_reads_it(void **state) {
  static const char json[] =
      "{\"nodes\": ["
      "{\"op\": \"null\", \"name\": \"data\", \"inputs\": [],"
      " \"param\": {\"__init__\": \"one\"}, \"attr\": {\"__init__\": \"zero\"}},"
      "{\"op\": \"sum\", \"name\": \"\", \"inputs\": [[0, 0]], \"param\": {\"axis\": \"0\"}, \"attr\": {\"axis\": "
      "\"1\"}}],"
      " \"arg_nodes\": [0], \"heads\": [[1, 0]]}";
  cohort_symbol *symbol = from_json(json);
  const char *name = NULL, *axis = NULL;

  (void)state;
  assert_string_equal(attr_at(symbol, "data", "__init__"), "zero");
  ok(cohort_symbol_attr(symbol, "axis", &axis));
  assert_string_equal(axis, "1");
  ok(cohort_symbol_name_at(symbol, COHORT_SYMBOL_OUTPUTS, 0, &name));
  assert_string_equal(name, "output");
  cohort_symbol_free(symbol);
}

/* SYM-17: attributes are read in each spelling that MXNet accepts: R writes TRUE, C 0.5f, and a tuple may end in either
 * bracket. */
static void attributes_are_read_in_every_spelling(void **state) {
  static const char *const good[][3] = {
      {"sum", "keepdims", "TRUE"},     {"sum", "keepdims", "fAlse"},     {"sum", "keepdims", "1"},
      {"LeakyReLU", "slope", "0.5f"},  {"LeakyReLU", "slope", "5.F"},    {"LeakyReLU", "slope", "1e-3f"},
      {"LeakyReLU", "slope", "inf"},   {"LeakyReLU", "slope", "+.5"},    {"_plus_scalar", "scalar", "2f"},
      {"Pooling", "kernel", "[3, 3)"}, {"Pooling", "kernel", "(3L,3L]"}, {"Pooling", "kernel", " (3, 3,) "},
      {"LeakyReLU", "slope", "1e"},    {"LeakyReLU", "slope", ".5E+"},   {"LeakyReLU", "slope", "1.e-f"},
  };
  static const char *const bad[][3] = {
      {"sum", "keepdims", "yes"},     {"sum", "keepdims", "t"},        {"LeakyReLU", "slope", "0.5x"},
      {"LeakyReLU", "slope", "f"},    {"LeakyReLU", "slope", "0.5ff"}, {"LeakyReLU", "slope", "inff"},
      {"Pooling", "kernel", "(3, 3"}, {"Pooling", "kernel", "3, 3)"},  {"Pooling", "kernel", "{3, 3}"},
      {"softmax", "axis", "1f"},      {"LeakyReLU", "slope", "e5"},    {"LeakyReLU", "slope", "."},
      {"LeakyReLU", "slope", "1e5e"}, {"LeakyReLU", "slope", "infe"},  {"LeakyReLU", "slope", "+-1"},
      {"softmax", "axis", "+-1"},     {"softmax", "axis", "1e"},       {"LeakyReLU", "slope", "+"},
  };
  static const char form[] =
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
      "{\"op\": \"%s\", \"name\": \"n\", \"attrs\": {\"%s\": \"%s\"}, \"inputs\": [[0, 0, 0]]}],"
      "\"arg_nodes\": [0], \"heads\": [[1, 0, 0]], \"attrs\": {\"mxnet_version\": [\"int\", 10901]}}";
  char json[512];
  cohort_symbol *symbol = NULL;
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(good); ++i) {
    snprintf(json, sizeof json, form, good[i][0], good[i][1], good[i][2]);
    symbol = from_json(json);
    assert_string_equal(attr_at(symbol, "n", good[i][1]), good[i][2]);
    cohort_symbol_free(symbol);
  }
  for (i = 0; i < COUNT(bad); ++i) {
    snprintf(json, sizeof json, form, bad[i][0], bad[i][1], bad[i][2]);
    fails(cohort_symbol_from_json(json, strlen(json), &symbol), COHORT_ERROR_FORMAT, bad[i][1]);
  }
}

/* An exponent without digits is 0, as in MXNet, with or without a C suffix. */
static void exponents_may_lack_their_digits(void **state) {
  static const struct {
    const char *text;
    float value;
  } numbers[] = {{"2e", 2}, {"-.5E", -0.5f}, {"3e+", 3}, {"4.e-f", 4}, {".5e3", 500}, {"25e-02f", 0.25f}};
  const char *const key = "scalar";
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(numbers); ++i) {
    cohort_ndarray *zero = counted(SHAPE(1), 0), *sum = NULL;
    cohort_arrays *outputs = NULL;

    ok(cohort_operator_invoke("_plus_scalar", &key, &numbers[i].text, 1, &zero, 1, NULL, 0, NULL, &outputs));
    ok(cohort_arrays_get(outputs, 0, &sum));
    holds_free(sum, numbers[i].value);
    cohort_arrays_free(outputs);
    cohort_ndarray_free(zero);
  }
}

/* A number out of range for double becomes the largest double of its sign. */
static void numbers_beyond_a_double_keep_their_sign(void **state) {
  static const struct {
    const char *text;
    double value;
  } numbers[] = {{"1e400", HUGE_VAL}, {"-1e400", -HUGE_VAL},   {"-1E+400", -HUGE_VAL}, {"1e-400", 0},
                 {"-1e-400", 0},      {"-1e99999", -HUGE_VAL}, {"1e-99999", 0}};
  const char *const key = "scalar";
  cohort_ndarray *zero = counted(SHAPE(1), 0);
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(numbers); ++i) {
    cohort_arrays *outputs = NULL;
    cohort_ndarray *sum = NULL;
    float found = 7;

    ok(cohort_operator_invoke("_plus_scalar", &key, &numbers[i].text, 1, &zero, 1, NULL, 0, NULL, &outputs));
    ok(cohort_arrays_get(outputs, 0, &sum));
    ok(cohort_ndarray_read(sum, &found, sizeof found));
    if ((double)found != numbers[i].value) fail_msg("%s: found %g", numbers[i].text, (double)found);
    cohort_ndarray_free(sum);
    cohort_arrays_free(outputs);
  }
  cohort_ndarray_free(zero);
}

/* SYM-17: MXNet's reader has escapes for quote, backslash, line ends and tab only, and its writer leaves other control
 * characters bare. JSON is written so, and read so and with the escapes of JSON. A bare line end is an error, at its
 * byte. */
static void json_escapes_what_mxnet_escapes(void **state) {
  const char *const key = "__note__", *const value = "\" \\ \n \r \t \001 \b \f \033 \037 \177";
  cohort_symbol *symbol = NULL, *back;
  const char *json = NULL;

  (void)state;
  ok(cohort_symbol_variable("x", &key, &value, 1, &symbol));
  ok(cohort_symbol_to_json(symbol, &json));
  assert_non_null(strstr(json, "\"\\\" \\\\ \\n \\r \\t \001 \b \f \033 \037 \177\""));
  back = from_json(json);
  assert_string_equal(attr_of(back, key), value);
  cohort_symbol_free(back);
  cohort_symbol_free(symbol);

#define WITH_NOTE(note)                                                                \
  "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"attrs\": {\"__note__\": \"" note \
  "\"}, \"inputs\": []}], \"arg_nodes\": [0], \"heads\": [[0, 0, 0]]}"
  back = from_json(WITH_NOTE("\t\\u0001\001\\\"\001\\b"));
  assert_string_equal(attr_of(back, key), "\t\001\001\"\001\b");
  cohort_symbol_free(back);
  back = NULL;
  fails(cohort_symbol_from_json(WITH_NOTE("12345\n"), strlen(WITH_NOTE("12345\n")), &back), COHORT_ERROR_FORMAT,
        "syntax error at byte 68");
  fails(cohort_symbol_from_json(WITH_NOTE("\001\0013\t5\n"), strlen(WITH_NOTE("\001\0013\t5\n")), &back),
        COHORT_ERROR_FORMAT, "syntax error at byte 68");
  assert_null(back);
#undef WITH_NOTE
}

/* Composes a FullyConnected of one unit over `data`, which it frees. */
static cohort_symbol *layer(const char *name, cohort_symbol *data) {
  return node("FullyConnected", name, ATTRS("num_hidden", "1"), INPUTS(data));
}

static int number_of_layer(const cohort_symbol *symbol) {
  const char *name = NULL;

  ok(cohort_symbol_name(symbol, &name));
  assert_memory_equal(name, "fullyconnected", 14);
  return atoi(name + 14);
}

/* Composes a FullyConnected named as the one that is called automatically `ahead` numbers from now would be. */
static cohort_symbol *layer_ahead(int ahead, cohort_symbol *data, int *out_number) {
  cohort_symbol *const probe = layer(NULL, variable("x"));
  char name[32];

  *out_number = number_of_layer(probe) + ahead;
  cohort_symbol_free(probe);
  snprintf(name, sizeof name, "fullyconnected%d", *out_number);
  return layer(name, data);
}

static void binds(cohort_symbol *symbol) {
  cohort_executor_free(simple_bind_with(symbol, desc("x", SHAPE(2, 1), NULL), "write"));
}

/* SYM-05: an automatic name is one that no node among the inputs has, whether a caller has given it, a loaded network
 * brings it, or only the variable of a layer is called so. Nodes elsewhere do not matter. */
static void an_automatic_name_is_new_among_the_inputs(void **state) {
  cohort_symbol *named, *next, *loaded, *weight = NULL, *inputs[2];
  const char *json = NULL, *const data_and_weight[] = {"data", "weight"};
  const char *const key = "num_hidden", *const one = "1";
  char name[48];
  int number;

  (void)state;
  named = layer_ahead(1, layer(NULL, variable("x")), &number); /* the layer below it takes the number before */
  next = layer(NULL, named);
  assert_int_equal(number_of_layer(next), number + 1);
  ok(cohort_symbol_to_json(next, &json));
  loaded = from_json(json);
  binds(next);
  binds(layer(NULL, layer(NULL, loaded)));

  named = layer_ahead(2, variable("x"), &number);
  ok(cohort_symbol_to_json(named, &json));
  loaded = from_json(json);
  cohort_symbol_free(named);
  next = layer(NULL, layer(NULL, layer(NULL, loaded)));
  assert_int_equal(number_of_layer(next), number + 2);
  binds(next);

  named = layer_ahead(1, variable("x"), &number); /* of another network */
  next = layer(NULL, variable("x"));
  assert_int_equal(number_of_layer(next), number);
  cohort_symbol_free(named);
  snprintf(name, sizeof name, "fullyconnected%d_weight", number + 1);
  inputs[0] = next;
  inputs[1] = weight = variable(name);
  ok(cohort_symbol_create("FullyConnected", "own", &key, &one, 1, inputs, data_and_weight, 2, &named));
  cohort_symbol_free(next);
  cohort_symbol_free(weight);
  next = layer(NULL, named);
  assert_int_equal(number_of_layer(next), number + 2);
  binds(next);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(numbers_beyond_a_double_keep_their_sign),
      TEST(exponents_may_lack_their_digits),
      TEST(reserved_attributes_are_kept_as_text),
      TEST(reserved_attributes_have_their_effect),
      TEST(short_names_stand_for_long_ones),
      TEST(inputs_made_for_a_layer_carry_its_attributes),
      TEST(an_automatic_name_is_new_among_the_inputs),
      TEST(unknown_names_are_refused_with_those_there_are),
      TEST(shapes_go_by_position_and_backwards),
      TEST(inputs_follow_from_outputs),
      TEST(dtypes_go_through_layers),
      TEST(bound_objects_keep_their_symbol),
      TEST(layouts_go_by_the_index_of_the_head),
      TEST(json_has_the_form_of_mxnet_1_9),
      TEST(json_of_0_8_is_brought_up_to_date),
      TEST(odd_json_is_read_as_mxnet_reads_it),
      TEST(json_escapes_what_mxnet_escapes),
      TEST(attributes_are_read_in_every_spelling),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
