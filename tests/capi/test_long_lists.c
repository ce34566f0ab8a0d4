/* SPDX-License-Identifier: Apache-2.0 */
/* Long names and long lists: what is done with them takes time in proportion to them, or they are refused. */
#include <stdio.h>
#include <time.h>

#include "support/executor_tests.h"
#include "support/sanitizer.h"

/* ---- JSON of many parts ------------------------------------------------------------------------------------------ */

static char *json;
static size_t json_size, json_room;

static void add_text(const char *text) {
  const size_t size = strlen(text);

  if (json_size + size + 1 > json_room) {
    json_room = 2 * (json_size + size + 1);
    json = realloc(json, json_room);
    assert_non_null(json);
  }
  memcpy(json + json_size, text, size + 1);
  json_size += size;
}

static void begin_nodes(void) {
  json_size = 0;
  add_text("{\"nodes\": [");
}

static void begin_node(const char *op, const char *name) {
  add_text(json[json_size - 1] == '[' ? "{\"op\": \"" : ", {\"op\": \"");
  add_text(op);
  add_text("\", \"name\": \"");
  add_text(name);
  add_text("\", \"attrs\": {");
}

static void add_attr(const char *key, const char *value) {
  add_text(json[json_size - 1] == '{' ? "\"" : ", \"");
  add_text(key);
  add_text("\": \"");
  add_text(value);
  add_text("\"");
}

static void begin_inputs(void) { add_text("}, \"inputs\": ["); }

static void add_entry(size_t node) {
  char entry[48];

  snprintf(entry, sizeof entry, "%s[%zu, 0, 0]", json[json_size - 1] == '[' ? "" : ", ", node);
  add_text(entry);
}

static void end_node(void) { add_text("]}"); }

static void add_variable(const char *name) {
  begin_node("null", name);
  begin_inputs();
  end_node();
}

static void end_nodes(size_t head) {
  add_text("], \"arg_nodes\": [], \"heads\": [");
  add_entry(head);
  add_text("], \"attrs\": {\"mxnet_version\": [\"int\", 10901]}}");
}

static char *long_name(const char *part, size_t size) {
  char *const name = malloc(size + strlen(part) + 1);
  size_t i;

  assert_non_null(name);
  for (i = 0; i < size; i += strlen(part)) strcpy(name + i, part);
  return name;
}

static cohort_symbol *read_symbol(void) {
  cohort_symbol *symbol = NULL;

  ok(cohort_symbol_from_json(json, json_size, &symbol));
  return symbol;
}

/* ---- what is measured -------------------------------------------------------------------------------------------- */

/* A chain whose shape arrives from its end, and a node that reads each part of it. */
static void infer_along_a_chain(size_t length) {
  cohort_symbol *symbol;
  char text[32];
  size_t i;
  cohort_bool complete = 0;

  begin_nodes();
  add_variable("x");
  for (i = 0; i < length; ++i) {
    snprintf(text, sizeof text, "relu%zu", i);
    begin_node("relu", text);
    begin_inputs();
    add_entry(i);
    end_node();
  }
  begin_node("null", "y");
  add_attr("__shape__", "(2, 3)");
  begin_inputs();
  end_node();
  begin_node("elemwise_add", "sum");
  begin_inputs();
  add_entry(length);
  add_entry(length + 1);
  end_node();
  begin_node("Concat", "all");
  snprintf(text, sizeof text, "%zu", length + 1);
  add_attr("num_args", text);
  begin_inputs();
  for (i = 0; i < length; ++i) add_entry(i + 1);
  add_entry(length + 2);
  end_node();
  end_nodes(length + 3);
  symbol = read_symbol();
  ok(cohort_symbol_infer_shape(symbol, NULL, 0, &complete, NULL, NULL, NULL));
  assert_int_equal(complete, 1);
  cohort_symbol_free(symbol);
}

/* As many shapes as variables. */
static void infer_from_many_shapes(size_t length) {
  cohort_descs *known = no_descs();
  cohort_symbol *symbol;
  char text[32];
  size_t i;
  cohort_bool complete = 0;

  begin_nodes();
  for (i = 0; i < length; ++i) {
    snprintf(text, sizeof text, "x%zu", i);
    add_variable(text);
    add_desc(known, text, SHAPE(2, 3), NULL);
  }
  begin_node("add_n", "sum");
  snprintf(text, sizeof text, "%zu", length);
  add_attr("num_args", text);
  begin_inputs();
  for (i = 0; i < length; ++i) add_entry(i);
  end_node();
  end_nodes(length);
  symbol = read_symbol();
  ok(cohort_symbol_infer_shape(symbol, known, 0, &complete, NULL, NULL, NULL));
  assert_int_equal(complete, 1);
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
}

/* A long name with many attributes, which are listed with it. */
static void list_attributes_of_a_long_name(size_t length) {
  char *const name = long_name("n", 20 * length), key[32];
  const char *node_name = NULL;
  cohort_symbol *symbol;
  size_t i, num = 0;

  begin_nodes();
  begin_node("null", name);
  for (i = 0; i < length; ++i) {
    snprintf(key, sizeof key, "__%zu__", i);
    add_attr(key, "");
  }
  begin_inputs();
  end_node();
  end_nodes(0);
  symbol = read_symbol();
  ok(cohort_symbol_num_attrs(symbol, 1, &num));
  assert_int_equal(num, length);
  ok(cohort_symbol_attr_at(symbol, 1, length - 1, &node_name, NULL, NULL));
  assert_string_equal(node_name, name);
  cohort_symbol_free(symbol);
  free(name);
}

/* Names of automatic nodes end in digits; this one has places for them all along. */
static void read_a_name_of_digits(size_t length) {
  char *const name = long_name("1_", 20 * length);

  begin_nodes();
  add_variable(name);
  end_nodes(0);
  cohort_symbol_free(read_symbol());
  free(name);
}

/* Attributes of the inputs, on their node, as old files have them. */
static void read_attributes_of_inputs(size_t length) {
  char text[32];
  size_t i;

  begin_nodes();
  add_variable("x");
  begin_node("add_n", "sum");
  snprintf(text, sizeof text, "%zu", length);
  add_attr("num_args", text);
  for (i = 0; i < length; ++i) {
    snprintf(text, sizeof text, "arg%zu_lr_mult", i);
    add_attr(text, "2");
  }
  begin_inputs();
  for (i = 0; i < length; ++i) add_entry(0);
  end_node();
  add_text("], \"arg_nodes\": [], \"heads\": [[1, 0]]}");
  cohort_symbol_free(read_symbol());
}

/* Lists in which each name is looked up, and those of a symbol and an executor with as many. */
static void look_up_arrays(size_t length) {
  cohort_arrays *list = NULL;
  char name[32];
  size_t i, index = 0;

  ok(cohort_arrays_create(&list));
  for (i = 0; i < length; ++i) {
    snprintf(name, sizeof name, "array%zu", i);
    ok(cohort_arrays_set(list, name, NULL)); /* appends it */
  }
  for (i = 0; i < length; ++i) {
    snprintf(name, sizeof name, "array%zu", i);
    ok(cohort_arrays_find(list, name, &index));
    assert_int_equal(index, i);
  }
  fails(cohort_arrays_find(list, "array", &index), COHORT_ERROR_NAME, "'array' is not in the list of arrays");
  ok(cohort_arrays_add(list, "array7", NULL));
  fails(cohort_arrays_find(list, "array7", &index), COHORT_ERROR_NAME, "more than once");
  fails(cohort_arrays_set(list, "array7", NULL), COHORT_ERROR_NAME, "more than once");
  cohort_arrays_free(list);
}

static void look_up_descriptors(size_t length) {
  cohort_descs *list = no_descs();
  char name[32];
  size_t i, index = 0;

  for (i = 0; i < length; ++i) {
    snprintf(name, sizeof name, "desc%zu", i);
    add_desc(list, name, SHAPE(1), NULL);
  }
  for (i = 0; i < length; ++i) {
    snprintf(name, sizeof name, "desc%zu", i);
    ok(cohort_descs_find(list, name, &index));
    assert_int_equal(index, i);
  }
  cohort_descs_free(list);
}

static void look_up_outputs(size_t length) {
  cohort_symbol *symbol, *output = NULL;
  cohort_executor *executor = NULL;
  cohort_descs *known = no_descs();
  char name[32];
  const char *found = NULL;
  size_t i;

  begin_nodes();
  for (i = 0; i < length; ++i) {
    snprintf(name, sizeof name, "x%zu", i);
    add_variable(name);
    add_desc(known, name, SHAPE(1), NULL);
  }
  add_text("], \"arg_nodes\": [], \"heads\": [");
  for (i = 0; i < length; ++i) add_entry(i);
  add_text("]}");
  symbol = read_symbol();
  ok(cohort_executor_simple_bind(symbol, NULL, known, NULL, &executor));
  for (i = 0; i < length; ++i) {
    snprintf(name, sizeof name, "x%zu", i);
    ok(cohort_symbol_output_named(symbol, name, &output));
    ok(cohort_symbol_name(output, &found));
    assert_string_equal(found, name);
    cohort_symbol_free(output);
    cohort_ndarray_free(arg_of(executor, name));
  }
  cohort_executor_free(executor);
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
}

static double seconds_for(void (*work)(size_t), size_t length) {
  const clock_t begin = clock();

  work(length);
  return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

enum { FEW = UNDER_SANITIZER ? 200 : 4000, MANY = 4 * FEW };

/* Four times the length takes about four times the time, not sixteen times. */
static void grows_with(void (*work)(size_t), const char *what) {
  double few = seconds_for(work, FEW), many = seconds_for(work, MANY);
  int again;

  /* Other load on the machine only ever makes a measurement longer, so take the shortest. */
  for (again = 0; again < 6; ++again) {
    const double few_again = seconds_for(work, FEW), many_again = seconds_for(work, MANY);

    if (few_again < few) few = few_again;
    if (many_again < many) many = many_again;
    if (many < 9 * few + 0.02) break;
  }
  print_message("%s: %d in %.3f s, %d in %.3f s\n", what, FEW, few, MANY, many);
  if (many > 9 * few + 0.02) fail_msg("%s: %.3f s for four times as many as %.3f s took", what, many, few);
}

static void time_grows_with_the_length(void **state) {
  (void)state;
  grows_with(infer_along_a_chain, "shapes that arrive from the end of a chain");
  grows_with(infer_from_many_shapes, "known shapes");
  grows_with(list_attributes_of_a_long_name, "attributes of a long name");
  grows_with(read_a_name_of_digits, "a name of digits");
  grows_with(read_attributes_of_inputs, "attributes of inputs");
  grows_with(look_up_arrays, "names of arrays");
  grows_with(look_up_descriptors, "names of descriptors");
  grows_with(look_up_outputs, "names of outputs and arguments");
}

/* ---- names that are too long ------------------------------------------------------------------------------------- */

static void refuse_names(void) {
  cohort_symbol *symbol = NULL;

  fails(cohort_symbol_from_json(json, json_size, &symbol), COHORT_ERROR_FORMAT, "268435456 bytes of names");
  assert_null(symbol);
}

/* Lists name each input and output after its node, and each head after its own. */
static void names_that_lists_would_repeat_too_often_are_refused(void **state) {
  enum { SIZE = 1 << 20, TIMES = 257 };
  char *const name = long_name("n", SIZE);
  size_t i;

  (void)state;
  begin_nodes();
  add_variable("x");
  begin_node("add_n", name);
  add_attr("num_args", "257");
  begin_inputs();
  for (i = 0; i < TIMES; ++i) add_entry(0);
  end_node();
  end_nodes(1);
  refuse_names();
  begin_nodes();
  add_variable("x");
  begin_node("SliceChannel", name);
  add_attr("num_outputs", "257");
  begin_inputs();
  add_entry(0);
  end_node();
  end_nodes(1);
  refuse_names();
  begin_nodes();
  add_variable(name);
  add_text("], \"arg_nodes\": [], \"heads\": [");
  for (i = 0; i < TIMES; ++i) add_entry(0);
  add_text("]}");
  refuse_names();
  begin_nodes(); /* inputs that an old file leaves out get the node's attributes */
  begin_node("add_n", "sum");
  add_attr("num_args", "257");
  add_attr("__note__", name);
  begin_inputs();
  end_node();
  add_text("], \"arg_nodes\": [], \"heads\": [[0, 0]]}");
  refuse_names();
  free(name);
}

static int free_json(void **state) {
  (void)state;
  free(json);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(time_grows_with_the_length),
      TEST(names_that_lists_would_repeat_too_often_are_refused),
  };

  return cmocka_run_group_tests(tests, NULL, free_json);
}
