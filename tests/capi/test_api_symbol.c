/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols over the C ABI: composed, listed, inferred, written as JSON and read back. */
#include "support/boundary.h"
#include "support/temporary.h"

/* The names of a list, joined by commas. */
static const char *names_of(const cohort_symbol *symbol, int32_t list) {
  static char joined[1024];
  size_t num = 0, i;

  joined[0] = '\0';
  ok(cohort_symbol_num_names(symbol, list, &num));
  for (i = 0; i < num; ++i) {
    const char *name = NULL;

    ok(cohort_symbol_name_at(symbol, list, i, &name));
    snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", i ? "," : "", name);
  }
  return joined;
}

static cohort_symbol *variable(const char *name) {
  cohort_symbol *symbol = NULL;

  ok(cohort_symbol_variable(name, NULL, NULL, 0, &symbol));
  return symbol;
}

/* An operator's missing inputs become variables named after the node, in the order of the lists. */
static void missing_inputs_become_variables(void **state) {
  cohort_symbol *symbol = small_network(), *norm = NULL;
  const char *name = NULL;
  size_t num = 0;

  (void)state;
  assert_string_equal(names_of(symbol, COHORT_SYMBOL_ARGUMENTS), "data,fc_weight,fc_bias,softmax_label");
  assert_string_equal(names_of(symbol, COHORT_SYMBOL_OUTPUTS), "softmax_output");
  assert_string_equal(names_of(symbol, COHORT_SYMBOL_AUX), "");
  ok(cohort_symbol_num_nodes(symbol, &num));
  assert_int_equal(num, 6);
  ok(cohort_symbol_create("BatchNorm", "bn", NULL, NULL, 0, &symbol, NULL, 1, &norm));
  assert_string_equal(names_of(norm, COHORT_SYMBOL_AUX), "bn_moving_mean,bn_moving_var");
  assert_string_equal(names_of(norm, COHORT_SYMBOL_INPUTS),
                      "data,fc_weight,fc_bias,softmax_label,bn_gamma,bn_beta,bn_moving_mean,bn_moving_var");
  ok(cohort_symbol_name(norm, &name));
  assert_string_equal(name, "bn");
  cohort_symbol_free(symbol);
  cohort_symbol_free(norm);
}

/* SYM-01: labels are found by the operator that reads them, also behind a reshape. Inputs of a loss composed by hand,
 * and those that something else reads as well, are no labels, whatever their name. */
static void labels_are_arguments_that_only_losses_read(void **state) {
  const char *const units = "num_hidden", *const two = "2", *const shape = "shape", *const flat = "(-1,)";
  cohort_symbol *in[2], *scores = NULL, *row = NULL, *heads[4] = {NULL, NULL, NULL, NULL}, *all = NULL;
  cohort_symbol *target = variable("target"), *steps = variable("steps"), *both = variable("x_label");
  size_t i;

  (void)state;
  in[0] = variable("data");
  ok(cohort_symbol_create("FullyConnected", "fc", &units, &two, 1, in, NULL, 1, &scores));
  cohort_symbol_free(in[0]);
  ok(cohort_symbol_create("Reshape", "row", &shape, &flat, 1, &steps, NULL, 1, &row));
  in[0] = scores, in[1] = target;
  ok(cohort_symbol_create("LinearRegressionOutput", "near", NULL, NULL, 0, in, NULL, 2, &heads[0]));
  in[1] = row;
  ok(cohort_symbol_create("SoftmaxOutput", "softmax", NULL, NULL, 0, in, NULL, 2, &heads[1]));
  in[1] = both;
  ok(cohort_symbol_create("MAERegressionOutput", "mae", NULL, NULL, 0, in, NULL, 2, &heads[2]));
  ok(cohort_symbol_create("elemwise_sub", "error", NULL, NULL, 0, in, NULL, 2, &heads[3]));
  ok(cohort_symbol_group(heads, 4, &all));
  assert_string_equal(names_of(all, COHORT_SYMBOL_ARGUMENTS), "data,fc_weight,fc_bias,target,steps,x_label");
  assert_string_equal(names_of(all, COHORT_SYMBOL_LABELS), "target,steps");
  assert_string_equal(names_of(heads[2], COHORT_SYMBOL_LABELS), "x_label");
  assert_string_equal(names_of(heads[3], COHORT_SYMBOL_LABELS), "");
  assert_string_equal(names_of(target, COHORT_SYMBOL_LABELS), "");
  for (i = 0; i < 4; ++i) cohort_symbol_free(heads[i]);
  cohort_symbol_free(scores);
  cohort_symbol_free(row);
  cohort_symbol_free(target);
  cohort_symbol_free(steps);
  cohort_symbol_free(both);
  cohort_symbol_free(all);
}

/* Inputs may be given by the operator's input names, in any order; an unknown or repeated one is an error. */
static void inputs_by_name(void **state) {
  static const char *const names[] = {"bias", "data"}, *const twice[] = {"data", "data"}, *const bad[] = {"x", "data"};
  const char *const key = "num_hidden", *const value = "3";
  cohort_symbol *inputs[2], *symbol = NULL, *refused = NULL;

  (void)state;
  inputs[0] = variable("b");
  inputs[1] = variable("x");
  ok(cohort_symbol_create("FullyConnected", "fc", &key, &value, 1, inputs, names, 2, &symbol));
  assert_string_equal(names_of(symbol, COHORT_SYMBOL_ARGUMENTS), "x,fc_weight,b");
  fails(cohort_symbol_create("FullyConnected", "fc", &key, &value, 1, inputs, bad, 2, &refused), COHORT_ERROR_NAME,
        "x");
  fails(cohort_symbol_create("FullyConnected", "fc", &key, &value, 1, inputs, twice, 2, &refused), COHORT_ERROR_NAME,
        "data");
  fails(cohort_symbol_create("FullyConnected", "fc", NULL, NULL, 0, inputs, names, 2, &refused), COHORT_ERROR_NAME,
        "num_hidden");
  assert_null(refused);
  cohort_symbol_free(inputs[0]);
  cohort_symbol_free(inputs[1]);
  cohort_symbol_free(symbol);
}

/* Nodes without a name get one that no other node has. */
static void nodes_name_themselves(void **state) {
  cohort_symbol *x = variable("x"), *first = NULL, *second = NULL;
  const char *name = NULL;
  char copy[64];

  (void)state;
  ok(cohort_symbol_create("Flatten", NULL, NULL, NULL, 0, &x, NULL, 1, &first));
  ok(cohort_symbol_create("Flatten", "", NULL, NULL, 0, &x, NULL, 1, &second));
  ok(cohort_symbol_name(first, &name));
  assert_non_null(strstr(name, "flatten"));
  snprintf(copy, sizeof(copy), "%s", name);
  ok(cohort_symbol_name(second, &name));
  assert_string_not_equal(name, copy);
  cohort_symbol_free(x);
  cohort_symbol_free(first);
  cohort_symbol_free(second);
}

/* Several heads in one symbol, one head of several, the inputs of a head, and all internal outputs. */
static void groups_heads_and_internals(void **state) {
  cohort_symbol *x = variable("x"), *network = small_network(), *parts[3], *group = NULL, *head = NULL, *inside = NULL,
                *children = NULL, *bad = NULL;
  const char *name = "untouched";

  (void)state;
  parts[0] = network;
  parts[1] = x;
  parts[2] = network;
  ok(cohort_symbol_group(parts, 3, &group));
  assert_string_equal(names_of(group, COHORT_SYMBOL_OUTPUTS), "softmax_output,x,softmax_output");
  ok(cohort_symbol_name(group, &name));
  assert_null(name);
  ok(cohort_symbol_output(group, 1, &head));
  assert_string_equal(names_of(head, COHORT_SYMBOL_OUTPUTS), "x");
  fails(cohort_symbol_output_named(group, "softmax_output", &bad), COHORT_ERROR_NAME, "softmax_output");
  ok(cohort_symbol_internals(network, &inside));
  assert_string_equal(names_of(inside, COHORT_SYMBOL_OUTPUTS),
                      "data,fc_weight,fc_bias,fc_output,softmax_label,softmax_output");
  cohort_symbol_free(head);
  ok(cohort_symbol_output_named(inside, "fc_output", &head));
  assert_string_equal(names_of(head, COHORT_SYMBOL_ARGUMENTS), "data,fc_weight,fc_bias");
  ok(cohort_symbol_children(head, &children));
  assert_string_equal(names_of(children, COHORT_SYMBOL_OUTPUTS), "data,fc_weight,fc_bias");
  cohort_symbol_free(children);
  children = network;
  ok(cohort_symbol_children(x, &children));
  assert_null(children);
  fails(cohort_symbol_group(NULL, 0, &bad), COHORT_ERROR_INVALID_ARGUMENT, "symbols");
  fails(cohort_symbol_create("Flatten", "f", NULL, NULL, 0, &group, NULL, 1, &bad), COHORT_ERROR_INVALID_ARGUMENT, "");
  assert_null(bad);
  cohort_symbol_free(x);
  cohort_symbol_free(network);
  cohort_symbol_free(group);
  cohort_symbol_free(head);
  cohort_symbol_free(inside);
}

/* Variables are replaced in a copy; the symbol itself stays as it is. */
static void compose_makes_a_copy(void **state) {
  static const char *const names[] = {"data"};
  const char *const key = "num_hidden", *const value = "2";
  cohort_symbol *x = variable("x"), *first = NULL, *network = small_network(), *composed = NULL, *by_order = NULL;
  const char *name = NULL;

  (void)state;
  ok(cohort_symbol_create("FullyConnected", "before", &key, &value, 1, &x, NULL, 1, &first));
  ok(cohort_symbol_compose(network, names, &first, 1, NULL, &composed));
  assert_string_equal(names_of(composed, COHORT_SYMBOL_ARGUMENTS),
                      "x,before_weight,before_bias,fc_weight,fc_bias,softmax_label");
  assert_string_equal(names_of(network, COHORT_SYMBOL_ARGUMENTS), "data,fc_weight,fc_bias,softmax_label");
  ok(cohort_symbol_compose(network, NULL, &first, 1, "renamed", &by_order));
  ok(cohort_symbol_name(by_order, &name));
  assert_string_equal(name, "renamed");
  assert_string_equal(names_of(by_order, COHORT_SYMBOL_ARGUMENTS),
                      "x,before_weight,before_bias,fc_weight,fc_bias,softmax_label");
  cohort_symbol_free(x);
  cohort_symbol_free(first);
  cohort_symbol_free(network);
  cohort_symbol_free(composed);
  cohort_symbol_free(by_order);
}

/* Attributes can be read by their short and their long name; setting one does not affect symbols made before. */
static void attributes_by_both_names(void **state) {
  const char *const key = "lr_mult", *const one = "1.5", *const two = "2.5";
  cohort_symbol *x = NULL, *user = NULL, *inner = NULL;
  const char *value = NULL, *node = NULL, *name = NULL;
  size_t num = 0, i;
  int found = 0;

  (void)state;
  ok(cohort_symbol_variable("x", &key, &one, 1, &x));
  ok(cohort_symbol_create("Flatten", "f", NULL, NULL, 0, &x, NULL, 1, &user));
  ok(cohort_symbol_attr(x, "__lr_mult__", &value));
  assert_string_equal(value, "1.5");
  ok(cohort_symbol_set_attrs(x, &key, &two, 1));
  ok(cohort_symbol_attr(x, "lr_mult", &value));
  assert_string_equal(value, "2.5");
  ok(cohort_symbol_children(user, &inner));
  ok(cohort_symbol_attr(inner, "lr_mult", &value));
  assert_string_equal(value, "1.5");
  ok(cohort_symbol_attr(x, "__wd_mult__", &value));
  assert_null(value);
  ok(cohort_symbol_num_attrs(x, 0, &num));
  assert_int_equal(num, 2);
  ok(cohort_symbol_num_attrs(user, 1, &num));
  for (i = 0; i < num; ++i) {
    ok(cohort_symbol_attr_at(user, 1, i, &node, &name, &value));
    found += strcmp(node, "x") == 0 && strcmp(name, "__lr_mult__") == 0 && strcmp(value, "1.5") == 0;
  }
  assert_int_equal(found, 1);
  cohort_symbol_free(x);
  cohort_symbol_free(user);
  cohort_symbol_free(inner);
}

/* A symbol of several heads has no attributes to read or set. */
static void several_heads_have_no_attributes(void **state) {
  const char *const key = "__x__", *const one = "1";
  cohort_symbol *x = variable("x"), *parts[2], *group = NULL;
  const char *value = "untouched";
  size_t num = 77;

  (void)state;
  parts[0] = parts[1] = x;
  ok(cohort_symbol_group(parts, 2, &group));
  fails(cohort_symbol_set_attrs(group, &key, &one, 1), COHORT_ERROR_STATE, "one head");
  ok(cohort_symbol_attr(group, "__x__", &value));
  assert_null(value);
  ok(cohort_symbol_num_attrs(group, 0, &num));
  assert_int_equal(num, 0);
  cohort_symbol_free(x);
  cohort_symbol_free(group);
}

static void assert_desc(const cohort_descs *descs, size_t index, const char *name, const int64_t *shape,
                        int32_t num_axes) {
  const char *found = NULL;
  int64_t lengths[COHORT_MAX_AXES];
  int32_t found_axes = -7, axis;

  ok(cohort_descs_get(descs, index, &found, lengths, COHORT_MAX_AXES, &found_axes, NULL, NULL));
  assert_string_equal(found, name);
  assert_int_equal(found_axes, num_axes);
  for (axis = 0; axis < num_axes; ++axis) assert_int_equal(lengths[axis], shape[axis]);
}

/* Shapes by name, by position, in part, or not at all. */
static void shapes_are_inferred(void **state) {
  const int64_t shape[] = {4, 3}, open[] = {0, 3};
  cohort_symbol *symbol = small_network();
  cohort_descs *known = one_desc("data", shape, 2), *args = NULL, *outputs = NULL, *aux = NULL;
  int32_t complete = -1;
  size_t num = 77;

  (void)state;
  ok(cohort_symbol_infer_shape(symbol, known, 0, &complete, &args, &outputs, &aux));
  assert_int_equal(complete, 1);
  assert_desc(args, 1, "fc_weight", (const int64_t[]){2, 3}, 2);
  assert_desc(args, 3, "softmax_label", shape, 1);
  assert_desc(outputs, 0, "softmax_output", (const int64_t[]){4, 2}, 2);
  ok(cohort_descs_num(aux, &num));
  assert_int_equal(num, 0);
  cohort_descs_free(args);
  cohort_descs_free(outputs);
  cohort_descs_free(aux);
  cohort_descs_free(known);

  known = one_desc(NULL, shape, 2);
  ok(cohort_symbol_infer_shape(symbol, known, 0, &complete, NULL, &outputs, NULL));
  assert_int_equal(complete, 1);
  assert_desc(outputs, 0, "softmax_output", (const int64_t[]){4, 2}, 2);
  cohort_descs_free(outputs);
  cohort_descs_free(known);

  known = one_desc("data", open, 2);
  args = outputs = known;
  ok(cohort_symbol_infer_shape(symbol, known, 0, &complete, &args, &outputs, NULL));
  assert_int_equal(complete, 0);
  assert_null(args);
  assert_null(outputs);
  ok(cohort_symbol_infer_shape(symbol, known, 1, &complete, &args, &outputs, NULL));
  assert_int_equal(complete, 0);
  assert_desc(args, 0, "data", open, 2);
  assert_desc(args, 1, "fc_weight", (const int64_t[]){2, 3}, 2);
  assert_desc(outputs, 0, "softmax_output", (const int64_t[]){0, 2}, 2);
  cohort_descs_free(args);
  cohort_descs_free(outputs);
  cohort_descs_free(known);

  ok(cohort_symbol_infer_shape(symbol, NULL, 1, &complete, &args, NULL, NULL));
  assert_desc(args, 0, "data", NULL, COHORT_UNKNOWN_SHAPE);
  cohort_descs_free(args);
  cohort_symbol_free(symbol);
}

/* Unknown lengths stay unknown, and the others are inferred: through slices, borders and repetitions, and where a
 * variable's own `__shape__` gives what the given shape leaves open. */
static void open_lengths_leave_the_rest_known(void **state) {
  static const struct {
    const char *op, *keys[3], *values[3];
    size_t num;
    int64_t data[4], result[4];
  } cases[] = {
      {"slice_axis", {"axis", "begin", "end"}, {"1", "1", "3"}, 3, {0, 4, 6, 6}, {0, 2, 6, 6}},
      {"slice_axis", {"axis", "begin", "end"}, {"1", "-2", "None"}, 3, {2, 0, 6, 6}, {2, 0, 6, 6}},
      {"slice", {"begin", "end", ""}, {"(None, 1)", "(None, 3)", ""}, 2, {0, 4, 6, 6}, {0, 2, 6, 6}},
      {"slice", {"begin", "end", ""}, {"(1, 1)", "(2, 3)", ""}, 2, {2, 0, 6, 6}, {1, 0, 6, 6}},
      {"_split_v2", {"indices", "sections", ""}, {"()", "2", ""}, 2, {0, 4, 6, 6}, {0, 2, 6, 6}},
      {"_split_v2", {"indices", "", ""}, {"(0, 1)", "", ""}, 1, {2, 0, 6, 6}, {2, 0, 6, 6}},
      {"repeat", {"repeats", "axis", ""}, {"2", "1", ""}, 2, {0, 4, 6, 6}, {0, 8, 6, 6}},
      {"Pad", {"mode", "pad_width", ""}, {"reflect", "(0, 0, 0, 0, 1, 1, 2, 2)", ""}, 2, {0, 4, 6, 6}, {0, 4, 8, 10}},
      {"Pad", {"mode", "pad_width", ""}, {"edge", "(0, 0, 0, 0, 1, 1, 2, 2)", ""}, 2, {2, 4, 0, 6}, {2, 4, 0, 10}},
      {"Crop", {"h_w", "num_args", ""}, {"(2, 3)", "1", ""}, 2, {0, 0, 6, 6}, {0, 0, 2, 3}},
  };
  const char *const key = "__shape__", *const shape = "(2, 3)";
  const int64_t open[] = {2, 0};
  cohort_symbol *x, *net = NULL;
  cohort_descs *known, *args = NULL, *outputs = NULL;
  int32_t complete = -1;
  size_t i;

  (void)state;
  for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    char name[32];

    x = variable("x");
    ok(cohort_symbol_create(cases[i].op, "n", cases[i].keys, cases[i].values, cases[i].num, &x, NULL, 1, &net));
    known = one_desc("x", cases[i].data, 4);
    ok(cohort_symbol_infer_shape(net, known, 1, &complete, NULL, &outputs, NULL));
    assert_int_equal(complete, 0);
    snprintf(name, sizeof(name), "n_output%s", strcmp(cases[i].op, "_split_v2") == 0 ? "0" : "");
    assert_desc(outputs, 0, name, cases[i].result, 4);
    cohort_descs_free(outputs);
    cohort_descs_free(known);
    cohort_symbol_free(net);
    cohort_symbol_free(x);
  }
  x = variable("x");
  ok(cohort_symbol_set_attrs(x, &key, &shape, 1));
  ok(cohort_symbol_create("square", "n", NULL, NULL, 0, &x, NULL, 1, &net));
  known = one_desc("x", open, 2);
  ok(cohort_symbol_infer_shape(net, known, 0, &complete, &args, NULL, NULL));
  assert_int_equal(complete, 1);
  assert_desc(args, 0, "x", (const int64_t[]){2, 3}, 2);
  cohort_descs_free(args);
  cohort_descs_free(known);
  cohort_symbol_free(net);
  cohort_symbol_free(x);
}

/* Shapes that contradict each other are an error that names the node, and so are too many positions. */
static void contradictions_name_the_node(void **state) {
  const int64_t shape[] = {4, 3}, wrong[] = {2, 5};
  cohort_symbol *symbol = small_network();
  cohort_descs *known = one_desc("data", shape, 2), *args = NULL;
  int32_t complete = -1, i;

  (void)state;
  ok(cohort_descs_add(known, "fc_weight", wrong, 2, COHORT_DTYPE_NONE, NULL));
  fails(cohort_symbol_infer_shape(symbol, known, 0, &complete, &args, NULL, NULL), COHORT_ERROR_SHAPE, "fc");
  assert_int_equal(complete, -1);
  assert_null(args);
  cohort_descs_free(known);
  ok(cohort_descs_create(&known));
  for (i = 0; i < 5; ++i) ok(cohort_descs_add(known, NULL, NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  fails(cohort_symbol_infer_shape(symbol, known, 0, &complete, &args, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT,
        "at most 4");
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
}

/* Dtypes are inferred likewise. */
static void dtypes_are_inferred(void **state) {
  cohort_symbol *symbol = small_network();
  cohort_descs *known = NULL, *args = NULL;
  int32_t complete = -1, dtype = -7;

  (void)state;
  ok(cohort_descs_create(&known));
  ok(cohort_descs_add(known, "data", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_FLOAT64, NULL));
  ok(cohort_symbol_infer_dtype(symbol, known, 0, &complete, &args, NULL, NULL));
  assert_int_equal(complete, 1);
  ok(cohort_descs_get(args, 1, NULL, NULL, 0, NULL, &dtype, NULL));
  assert_int_equal(dtype, COHORT_DTYPE_FLOAT64);
  cohort_descs_free(args);
  ok(cohort_descs_add(known, "fc_weight", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_FLOAT32, NULL));
  fails(cohort_symbol_infer_dtype(symbol, known, 0, &complete, &args, NULL, NULL), COHORT_ERROR_DTYPE, "fc");
  args = known;
  ok(cohort_symbol_infer_dtype(symbol, NULL, 0, &complete, &args, NULL, NULL));
  assert_int_equal(complete, 0);
  assert_null(args);
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
}

/* A symbol written as JSON reads back as the same symbol, from memory and from a file. */
static void json_round_trip(void **state) {
  cohort_symbol *symbol = small_network(), *back = NULL, *loaded = NULL;
  const char *json = NULL;
  char path[TEMPORARY_PATH];

  (void)state;
  ok(cohort_symbol_to_json(symbol, &json));
  ok(cohort_symbol_from_json(json, strlen(json), &back));
  assert_string_equal(names_of(back, COHORT_SYMBOL_ARGUMENTS), "data,fc_weight,fc_bias,softmax_label");
  temporary_path(path, "symbol_test", ".json");
  ok(cohort_symbol_save(symbol, path));
  ok(cohort_symbol_load(path, &loaded));
  assert_string_equal(names_of(loaded, COHORT_SYMBOL_OUTPUTS), "softmax_output");
  remove(path);
  cohort_symbol_free(symbol);
  cohort_symbol_free(back);
  cohort_symbol_free(loaded);
}

/* Text that is no symbol is a format error, and a missing file is an IO error that names it. */
static void bad_json_is_refused(void **state) {
  static const char *const bad[] = {
      "",
      "{",
      "[]",
      "null",
      "{\"nodes\": 3}",
      "{\"nodes\": [], \"arg_nodes\": [], \"heads\": [[0, 0, 0]]}",
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}], \"arg_nodes\": [0], \"heads\": [[1, 0, 0]]}",
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}], \"arg_nodes\": [0], \"heads\": [[-1, 0, 0]]}",
      "{\"nodes\": [{\"op\": \"NoSuchOp\", \"name\": \"x\", \"inputs\": []}], \"arg_nodes\": [], \"heads\": [[0, 0, "
      "0]]}",
      "{\"nodes\": [{\"op\": \"Flatten\", \"name\": \"x\", \"inputs\": [[0, 0, 0]]}], \"arg_nodes\": [], "
      "\"heads\": [[0, 0, 0]]}",
      "\xff\xfe",
  };
  cohort_symbol *symbol = NULL;
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(bad); ++i) {
    fails(cohort_symbol_from_json(bad[i], strlen(bad[i]), &symbol), COHORT_ERROR_FORMAT, "");
  }
  fails(cohort_symbol_from_json("{}\0{}", 5, &symbol), COHORT_ERROR_FORMAT, "");
  fails(cohort_symbol_from_json(NULL, 0, &symbol), COHORT_ERROR_INVALID_ARGUMENT, "json");
  fails(cohort_symbol_load("no/such/symbol.json", &symbol), COHORT_ERROR_IO, "no/such/symbol.json");
  assert_null(symbol);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(missing_inputs_become_variables),
      TEST(labels_are_arguments_that_only_losses_read),
      TEST(inputs_by_name),
      TEST(nodes_name_themselves),
      TEST(groups_heads_and_internals),
      TEST(compose_makes_a_copy),
      TEST(attributes_by_both_names),
      TEST(several_heads_have_no_attributes),
      TEST(shapes_are_inferred),
      TEST(open_lengths_leave_the_rest_known),
      TEST(contradictions_name_the_node),
      TEST(dtypes_are_inferred),
      TEST(json_round_trip),
      TEST(bad_json_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
