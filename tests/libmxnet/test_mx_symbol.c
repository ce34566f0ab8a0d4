/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols: composing in two calls, attributes, lists, inference, JSON. */
#include "mxnet_test.h"

static AtomicSymbolCreator creator(const char *name) {
  OpHandle op = NULL;

  ok(NNGetOpHandle(name, &op));
  return op;
}

static SymbolHandle variable(const char *name) {
  SymbolHandle symbol = NULL;

  ok(MXSymbolCreateVariable(name, &symbol));
  return symbol;
}

/* fc = FullyConnected(data, num_hidden=4), which makes its own weight and bias. */
static SymbolHandle layer(void) {
  const char *keys[] = {"num_hidden"}, *values[] = {"4"}, *inputs[] = {"data"};
  SymbolHandle data = variable("data"), fc = NULL;

  ok(MXSymbolCreateAtomicSymbol(creator("FullyConnected"), 1, keys, values, &fc));
  ok(MXSymbolCompose(fc, "fc", 1, inputs, &data));
  ok(MXSymbolFree(data));
  return fc;
}

static void assert_names(int answer, uint32_t num, const char **names, const char *const *expected,
                         uint32_t num_expected) {
  uint32_t i;

  ok(answer);
  assert_int_equal(num, num_expected);
  for (i = 0; i < num; ++i) assert_string_equal(names[i], expected[i]);
}

/* Inputs that are not given become variables with the node's name. */
static void composing_makes_missing_inputs(void **state) {
  const char *const args[] = {"data", "fc_weight", "fc_bias"}, *const outputs[] = {"fc_output"}, **names = NULL;
  SymbolHandle fc = layer();
  uint32_t num = 0;
  int answer;

  (void)state;
  answer = MXSymbolListArguments(fc, &num, &names);
  assert_names(answer, num, names, args, 3);
  answer = MXSymbolListOutputs(fc, &num, &names);
  assert_names(answer, num, names, outputs, 1);
  answer = MXSymbolListAuxiliaryStates(fc, &num, &names);
  assert_names(answer, num, names, NULL, 0);
  answer = NNSymbolListInputNames(fc, 0, &num, &names);
  assert_names(answer, num, names, args, 3);
  ok(MXSymbolFree(fc));
}

/* A variable of a graph is replaced by another graph. */
static void composing_replaces_variables(void **state) {
  const char *const args[] = {"x", "fc_weight", "fc_bias"}, *keys[] = {"data"}, **names = NULL;
  SymbolHandle fc = layer(), x = variable("x");
  uint32_t num = 0;
  int answer;

  (void)state;
  ok(MXSymbolCompose(fc, "again", 1, keys, &x));
  answer = MXSymbolListArguments(fc, &num, &names);
  assert_names(answer, num, names, args, 3);
  ok(MXSymbolFree(x));
  ok(MXSymbolFree(fc));
}

/* An unknown operator, parameter or input is an error that names it. */
static void wrong_names_are_errors(void **state) {
  const char *keys[] = {"num_hiden"}, *values[] = {"4"};
  SymbolHandle symbol = NULL, data = variable("data");
  const char *inputs[] = {"dta"};
  OpHandle op = NULL;

  (void)state;
  fails(NNGetOpHandle("FullyConected", &op), "FullyConected");
  ok(MXSymbolCreateAtomicSymbol(creator("FullyConnected"), 1, keys, values, &symbol));
  fails(MXSymbolCompose(symbol, "fc", 1, inputs, &data), "num_hiden");
  ok(MXSymbolFree(symbol));
  keys[0] = "num_hidden";
  ok(MXSymbolCreateAtomicSymbol(creator("FullyConnected"), 1, keys, values, &symbol));
  fails(MXSymbolCompose(symbol, "fc", 1, inputs, &data), "dta");
  ok(MXSymbolCompose(symbol, "fc", 1, NULL, &data)); /* after an error it still waits for its inputs */
  ok(MXSymbolFree(symbol));
  ok(MXSymbolFree(data));
  fails(MXSymbolCreateAtomicSymbol(&op, 0, NULL, NULL, &symbol), "an operator");
}

/* Attributes are set, found and listed, by short names, too. */
static void attributes_are_set_and_found(void **state) {
  SymbolHandle x = variable("x");
  const char *value = NULL, **list = NULL;
  uint32_t num = 0;
  int found = -1;

  (void)state;
  ok(MXSymbolSetAttr(x, "__lr_mult__", "2"));
  ok(MXSymbolGetAttr(x, "__lr_mult__", &value, &found));
  assert_int_equal(found, 1);
  assert_string_equal(value, "2");
  ok(MXSymbolGetAttr(x, "lr_mult", &value, &found));
  assert_int_equal(found, 1);
  ok(MXSymbolGetAttr(x, "__wd_mult__", &value, &found));
  assert_int_equal(found, 0);
  assert_null(value);
  ok(MXSymbolListAttr(x, &num, &list));
  assert_int_equal(num, 2); /* under its short name, too */
  assert_string_equal(list[0], "x$__lr_mult__");
  assert_string_equal(list[1], "2");
  assert_string_equal(list[2], "x$lr_mult");
  assert_string_equal(list[3], "2");
  ok(MXSymbolListAttrShallow(x, &num, &list));
  assert_string_equal(list[0], "__lr_mult__");
  ok(MXSymbolFree(x));
}

/* A variable takes attributes of any key, which JSON keeps. */
static void variables_take_any_attribute(void **state) {
  SymbolHandle x = variable("x"), again = NULL;
  const char *value = NULL, *json = NULL;
  char *copy;
  int found = 0;

  (void)state;
  ok(MXSymbolSetAttr(x, "mood", "angry"));
  ok(MXSymbolSaveToJSON(x, &json));
  copy = malloc(strlen(json) + 1);
  assert_non_null(copy);
  strcpy(copy, json);
  ok(MXSymbolCreateFromJSON(copy, &again));
  free(copy);
  ok(MXSymbolGetAttr(again, "mood", &value, &found));
  assert_int_equal(found, 1);
  assert_string_equal(value, "angry");
  ok(MXSymbolFree(again));
  ok(MXSymbolFree(x));
}

/* The shape of one input gives all others; without it they are not complete, and partly known if that is asked for. */
static void shapes_are_inferred(void **state) {
  SymbolHandle fc = layer();
  const char *keys[] = {"data"};
  const uint32_t begins[] = {0, 2};
  const int lengths[] = {5, 3}, **in = NULL, **out = NULL, **aux = NULL, *in_axes = NULL, *out_axes = NULL,
            *aux_axes = NULL;
  const int64_t begins64[] = {0, 2}, lengths64[] = {5, 3}, **in64 = NULL;
  uint32_t num_in = 0, num_out = 0, num_aux = 0;
  size_t num_in64 = 0;
  int complete = -1;

  (void)state;
  ok(MXSymbolInferShapeEx(fc, 1, keys, begins, lengths, &num_in, &in_axes, &in, &num_out, &out_axes, &out, &num_aux,
                          &aux_axes, &aux, &complete));
  assert_int_equal(complete, 1);
  assert_int_equal(num_in, 3);
  assert_int_equal(in_axes[1], 2);
  assert_int_equal(in[1][0], 4);
  assert_int_equal(in[1][1], 3);
  assert_int_equal(num_out, 1);
  assert_int_equal(out[0][0], 5);
  assert_int_equal(out[0][1], 4);
  assert_int_equal(num_aux, 0);

  ok(MXSymbolInferShapeEx(fc, 0, NULL, begins, NULL, &num_in, &in_axes, &in, &num_out, &out_axes, &out, &num_aux,
                          &aux_axes, &aux, &complete));
  assert_int_equal(complete, 0);
  ok(MXSymbolInferShapePartialEx(fc, 0, NULL, begins, NULL, &num_in, &in_axes, &in, &num_out, &out_axes, &out, &num_aux,
                                 &aux_axes, &aux, &complete));
  assert_int_equal(num_in, 3);
  assert_int_equal(in_axes[0], 0); /* not known */
  assert_int_equal(in_axes[2], 1); /* the bias */
  assert_int_equal(in[2][0], 4);

  ok(MXSymbolInferShapeEx64(fc, 1, NULL, begins64, lengths64, &num_in64, &in_axes, &in64, NULL, NULL, NULL, NULL, NULL,
                            NULL, &complete));
  assert_int_equal(num_in64, 3);
  assert_int_equal(in64[2][0], 4);

  keys[0] = "dta";
  fails(MXSymbolInferShapeEx(fc, 1, keys, begins, lengths, &num_in, &in_axes, &in, &num_out, &out_axes, &out, &num_aux,
                             &aux_axes, &aux, &complete),
        "dta");
  ok(MXSymbolFree(fc));
}

/* So are types. */
static void types_are_inferred(void **state) {
  SymbolHandle fc = layer();
  const char *keys[] = {"data"};
  const int dtypes[] = {1}, *in = NULL, *out = NULL, *aux = NULL;
  uint32_t num_in = 0, num_out = 0, num_aux = 0;
  int complete = -1;

  (void)state;
  ok(MXSymbolInferType(fc, 1, keys, dtypes, &num_in, &in, &num_out, &out, &num_aux, &aux, &complete));
  assert_int_equal(complete, 1);
  assert_int_equal(num_in, 3);
  assert_int_equal(in[2], 1);
  assert_int_equal(out[0], 1);
  ok(MXSymbolFree(fc));
}

/* JSON makes the same symbol again; other text is an error. */
static void json_makes_the_symbol_again(void **state) {
  SymbolHandle fc = layer(), again = NULL;
  const char *json = NULL;
  char *copy;

  (void)state;
  ok(MXSymbolSaveToJSON(fc, &json));
  copy = malloc(strlen(json) + 1);
  assert_non_null(copy);
  strcpy(copy, json);
  ok(MXSymbolCreateFromJSON(copy, &again));
  ok(MXSymbolSaveToJSON(again, &json));
  assert_string_equal(copy, json);
  free(copy);
  ok(MXSymbolFree(again));
  ok(MXSymbolSaveToFile(fc, path_of("net.json")));
  ok(MXSymbolCreateFromFile(path_of("net.json"), &again));
  ok(MXSymbolFree(again));
  fails(MXSymbolCreateFromJSON("{", &again), "");
  ok(MXSymbolFree(fc));
}

/* Groups have all outputs; internals have those inside; one output is a symbol of its own; variables have no children.
 */
static void parts_of_symbols(void **state) {
  SymbolHandle pair[2], group = NULL, part = NULL;
  const char *name = NULL;
  uint32_t num = 0;
  int found = -1;

  (void)state;
  pair[0] = layer();
  pair[1] = variable("x");
  ok(MXSymbolCreateGroup(2, pair, &group));
  ok(MXSymbolGetNumOutputs(group, &num));
  assert_int_equal(num, 2);
  ok(MXSymbolGetName(group, &name, &found));
  assert_int_equal(found, 0);
  ok(MXSymbolGetOutput(group, 1, &part));
  ok(MXSymbolGetName(part, &name, &found));
  assert_int_equal(found, 1);
  assert_string_equal(name, "x");
  ok(MXSymbolFree(part));
  fails(MXSymbolGetOutput(group, 2, &part), "2");
  ok(MXSymbolGetInternals(pair[0], &part));
  ok(MXSymbolGetNumOutputs(part, &num));
  assert_int_equal(num, 4);
  ok(MXSymbolFree(part));
  ok(MXSymbolGetChildren(pair[1], &part));
  ok(MXSymbolGetNumOutputs(part, &num));
  assert_int_equal(num, 0);
  ok(MXSymbolFree(part));
  ok(MXSymbolFree(group));
  ok(MXSymbolFree(pair[0]));
  ok(MXSymbolFree(pair[1]));
}

/* Casts of mixed precision are taken out, and what read them reads their inputs. */
static void amp_casts_are_taken_out(void **state) {
  const char *keys[] = {"dtype"}, *values[] = {"float16"}, *const args[] = {"x"}, **names = NULL, *json = NULL;
  SymbolHandle x = variable("x"), cast = NULL, out = NULL, plain = NULL;
  uint32_t num = 0;
  int answer;

  (void)state;
  ok(MXSymbolCreateAtomicSymbol(creator("amp_cast"), 1, keys, values, &cast));
  ok(MXSymbolCompose(cast, "cast", 1, NULL, &x));
  ok(MXSymbolCreateAtomicSymbol(creator("relu"), 0, NULL, NULL, &out));
  ok(MXSymbolCompose(out, "out", 1, NULL, &cast));
  ok(MXSymbolRemoveAmpCast(out, &plain));
  ok(MXSymbolSaveToJSON(plain, &json));
  assert_null(strstr(json, "amp_cast"));
  answer = MXSymbolListArguments(plain, &num, &names);
  assert_names(answer, num, names, args, 1);
  ok(MXSymbolFree(plain));
  ok(MXSymbolFree(out));
  ok(MXSymbolFree(cast));
  ok(MXSymbolFree(x));
}

/* Operators are described: inputs first, as tensors; then parameters, as text. */
static void operators_are_described(void **state) {
  const char *name = NULL, *doc = NULL, **names = NULL, **types = NULL, **docs = NULL, *count = NULL, *result = NULL;
  uint32_t num = 0;

  (void)state;
  ok(MXSymbolGetAtomicSymbolInfo(creator("FullyConnected"), &name, &doc, &num, &names, &types, &docs, &count, &result));
  assert_string_equal(name, "FullyConnected");
  assert_true(num > 4);
  assert_string_equal(names[0], "data");
  assert_memory_equal(types[0], "NDArray", 7);
  assert_string_equal(names[3], "num_hidden");
  assert_non_null(strstr(types[3], "required"));
  assert_string_equal(count, "");
  ok(MXSymbolGetAtomicSymbolInfo(creator("Concat"), &name, &doc, &num, &names, &types, &docs, &count, &result));
  assert_non_null(strstr(types[0], "[]"));
  assert_string_equal(count, "num_args");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(composing_makes_missing_inputs),
      TEST(composing_replaces_variables),
      TEST(wrong_names_are_errors),
      TEST(attributes_are_set_and_found),
      TEST(variables_take_any_attribute),
      TEST(shapes_are_inferred),
      TEST(types_are_inferred),
      TEST(json_makes_the_symbol_again),
      TEST(parts_of_symbols),
      TEST(amp_casts_are_taken_out),
      TEST(operators_are_described),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
