/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of every example: errors, options, time, random numbers. No part of Cohort. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "cohort/cohort.h"

/* Checks every call that can fail. A program may give up; a library would return the error. */
#define OK(call)                                              \
  do {                                                        \
    cohort_error *error_ = (call);                            \
    if (error_) give_up_on_error(__FILE__, __LINE__, error_); \
  } while (0)

/* Prints the error and ends the program. */
void give_up_on_error(const char *file, int line, cohort_error *error);

/* Prints a message after the program's name, which the example defines, and ends the program. */
extern const char program_name[];
void fail(const char *format, ...);

void *allocate(size_t bytes);

double seconds(void); /* since some time in the past */

/* The median; sorts the values. */
double median(double *values, size_t num);

/* A small generator of random numbers (splitmix64): good enough to shuffle, and the same on every machine. */
uint64_t random_number(uint64_t *state);

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* The next item of a comma-separated list, "" at its end. */
const char *next_item(const char **list, char *item, size_t capacity);

/* A number in [low, high]; `option` is for the message. */
double number(const char *option, const char *text, double low, double high);

/* Contexts such as "cpu(0),cpu(1)"; returns how many. */
size_t read_contexts(const char *list, cohort_context *contexts, size_t capacity);

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

/* Puts an operator on top of `input`, whose handle it takes. Attributes are pairs of text, ended by NULL. */
cohort_symbol *layer(const char *op, const char *name, cohort_symbol *input, ...);

#endif /* PROGRAM_H */
