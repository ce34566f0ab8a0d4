/* SPDX-License-Identifier: Apache-2.0 */
/* The variables and auxiliary states of an operator composed without inputs are named as in MXNet 1.9.1, because
 * programs and parameter files use these names. tests/data/operators/names.tsv explains itself. */
#include "support/boundary.h"

#define TABLE "tests/data/operators/names.tsv"

enum { kMaxLine = 1024, kMaxAttrs = 24, kMaxExceptions = 32, kMaxShown = 20 };

/* Splits at `separator`, which is overwritten by the end of the first part; returns the rest. */
static char *cut(char **rest, char separator) {
  char *part = *rest, *end = part ? strchr(part, separator) : NULL;

  *rest = end ? end + 1 : NULL;
  if (end) *end = '\0';
  return part;
}

static size_t count_words(const char *words) {
  size_t count = 1;

  for (; *words; ++words) count += *words == ' ';
  return count;
}

/* A node "n" of a line's operator; the number of inputs is given explicitly if MXNet derives it from other
 * attributes. */
static cohort_symbol *node_of(const char *op, char *attrs, const char *inputs) {
  const char *keys[kMaxAttrs], *values[kMaxAttrs], *count_attr = NULL;
  char count[16];
  size_t num = 0, i;
  cohort_symbol *symbol = NULL;

  if (strcmp(attrs, "-") == 0) attrs = NULL;
  while (attrs) {
    char *value = cut(&attrs, ';');

    assert_true(num + 1 < kMaxAttrs);
    keys[num] = cut(&value, '=');
    values[num++] = value;
  }
  ok(cohort_operator_info(op, NULL, NULL, NULL, NULL, NULL, &count_attr));
  for (i = 0; i < num && strcmp(keys[i], count_attr) != 0; ++i) continue;
  if (count_attr[0] && i == num) {
    snprintf(count, sizeof count, "%zu", count_words(inputs));
    keys[num] = count_attr;
    values[num++] = count;
  }
  ok(cohort_symbol_create(op, "n", keys, values, num, NULL, NULL, 0, &symbol));
  return symbol;
}

/* The names of a list, in the form of the table. */
static const char *names_of(const cohort_symbol *symbol, int32_t list, char text[kMaxLine]) {
  size_t num = 0, i, length = 0;

  ok(cohort_symbol_num_names(symbol, list, &num));
  strcpy(text, "-");
  for (i = 0; i < num; ++i) {
    const char *name = NULL;

    ok(cohort_symbol_name_at(symbol, list, i, &name));
    assert_true(strncmp(name, "n_", 2) == 0 && length + strlen(name) < kMaxLine);
    length += (size_t)sprintf(text + length, "%s%s", i ? " " : "", name + 2);
  }
  return text;
}

static void names_are_mxnets(void **state) {
  static const int32_t lists[] = {COHORT_SYMBOL_INPUTS, COHORT_SYMBOL_AUX, COHORT_SYMBOL_OUTPUTS};
  FILE *const table = fopen(TABLE, "r");
  char line[kMaxLine], found[kMaxLine], exceptions[kMaxExceptions][64];
  int differs[kMaxExceptions] = {0}, num_exceptions = 0, num_lines = 0, num_wrong = 0, e;

  (void)state;
  assert_non_null(table);
  while (fgets(line, sizeof line, table)) {
    char *rest = line, *op, *attrs, *expected[3];
    int wrong = 0, i;
    cohort_symbol *symbol;

    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '#') continue;
    op = cut(&rest, '\t');
    if (strcmp(op, "-") == 0) {
      assert_true(num_exceptions < kMaxExceptions);
      snprintf(exceptions[num_exceptions++], sizeof exceptions[0], "%s", cut(&rest, '\t'));
      continue;
    }
    ++num_lines;
    attrs = cut(&rest, '\t');
    for (i = 0; i < 3; ++i) assert_non_null(expected[i] = cut(&rest, '\t'));
    symbol = node_of(op, attrs, expected[0]);
    for (e = 0; e < num_exceptions && strcmp(exceptions[e], op) != 0; ++e) continue;
    for (i = 0; i < 3; ++i) {
      if (strcmp(names_of(symbol, lists[i], found), expected[i]) == 0) continue;
      wrong = 1;
      if (e < num_exceptions || ++num_wrong > kMaxShown) continue;
      print_error("%s: expected \"%s\", found \"%s\"\n", op, expected[i], found);
    }
    if (e < num_exceptions) differs[e] |= wrong;
    cohort_symbol_free(symbol);
  }
  assert_int_equal(fclose(table), 0);
  for (e = 0; e < num_exceptions; ++e)
    if (!differs[e]) fail_msg("%s: %s is an exception, and does not differ", TABLE, exceptions[e]);
  assert_true(num_lines > 600);
  assert_int_equal(num_wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(names_are_mxnets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
