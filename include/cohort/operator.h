/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file operator.h
 * The registry of operators, from which bindings make their functions, and operators applied to arrays at once.
 *
 * An operator is given by its name in MXNet or an alias of it; an unknown name is COHORT_ERROR_NAME. All text here
 * lives as long as the process, and all functions may be called by several threads at once.
 */
#ifndef COHORT_OPERATOR_H
#define COHORT_OPERATOR_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** How many operator names there are, aliases included. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_operator_num(size_t *out_num);

/** A name of that sorted list. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_operator_name(size_t index, const char **out_name);

/**
 * Describes an operator.
 *
 * @param out_canonical     @nullable Its name in JSON: op itself if op is not an alias.
 * @param out_doc           @nullable One sentence or more.
 * @param out_num_attrs     @nullable The number of its attributes.
 * @param out_num_inputs    @nullable The number of inputs declared, auxiliary states included. If it takes any number
 *                          of inputs, the first stands for all of them, and further ones are inputs that it has instead
 *                          with some attributes (UpSampling has `data` and `weight` if it is bilinear).
 * @param out_num_outputs   @nullable The number of its outputs with all attributes at their defaults, hidden ones
 *                          included.
 * @param out_count_attr    @nullable If it takes any number of inputs, the attribute that counts them ("num_args");
 *                          else "". "__num_inputs__" if MXNet has no such attribute: it is taken, and not kept.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_operator_info(const char *op, const char **out_canonical,
                                                                const char **out_doc, size_t *out_num_attrs,
                                                                size_t *out_num_inputs, size_t *out_num_outputs,
                                                                const char **out_count_attr);

/**
 * An attribute.
 *
 * @param out_name, out_doc  @nullable
 * @param out_type     @nullable As MXNet writes it: "int", "float", "boolean", "Shape(tuple)", "{'relu', 'tanh'}"...
 * @param out_default  @nullable @gives_null The default as text; NULL if a value is required.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_operator_attr(const char *op, size_t index, const char **out_name,
                                                                const char **out_type, const char **out_default,
                                                                const char **out_doc);

/**
 * An input. Which ones a node has can depend on its attributes (no bias with `no_bias`).
 *
 * @param out_name, out_doc  @nullable
 * @param out_is_aux  @nullable 1 if it is an auxiliary state, which the operator updates.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_operator_input(const char *op, size_t index, const char **out_name,
                                                                 const char **out_doc, cohort_bool *out_is_aux);

/**
 * The range of numbers that an attribute, or each entry of a tuple, may have.
 *
 * @param out_low   @nullable The least number; -infinity if there is no bound, and for attributes that are not numbers.
 * @param out_high  @nullable The largest number; infinity likewise. A default with a meaning of its own may lie
 *                  outside.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_operator_attr_range(const char *op, size_t index, double *out_low,
                                                                      double *out_high);

/**
 * Whether a gradient flows to an input, with all attributes at their defaults: 1 or 0. If the operator does not have
 * the input then (gamma of LeakyReLU), with the first value of an enumerated or boolean attribute for which the
 * operator has this input.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_operator_input_gradient(const char *op, size_t index,
                                                                          cohort_bool *out_has_gradient);

/** How an operator works if a network computes in a narrower type than that of its arrays (compute_dtype). */
enum {
  COHORT_PRECISION_OWN = 0,    /* keeps the types of the network */
  COHORT_PRECISION_NARROW = 1, /* computes in the narrower type: products of matrices */
  COHORT_PRECISION_FOLLOWS = 2 /* computes in the narrower type if its input comes in it */
};
typedef int32_t cohort_precision;

/** The COHORT_PRECISION_ constant of an operator. Options of a network can override it (executor.h, float32_names). */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_operator_precision(const char *op, cohort_precision *out_precision);

/** The name that an output has with all attributes at their defaults. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_operator_output(const char *op, size_t index, const char **out_name);

/** Settings of one application of an operator. Zero in any field means its default. */
typedef struct cohort_invoke_options {
  size_t struct_size;            /* size the caller was compiled with; set by the initialisers */
  const cohort_context *context; /* where an operator without inputs runs; NULL: cpu(0) */
  uint64_t seed;                 /* seed of random operators: the same seed gives the same numbers */
  cohort_bool is_train;          /* 1: training behaviour, such as Dropout's */
} cohort_invoke_options;

#define COHORT_INVOKE_OPTIONS_INIT \
  { sizeof(cohort_invoke_options), NULL, 0, 0 }

/** COHORT_INVOKE_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct. */
COHORT_API void cohort_invoke_options_init(cohort_invoke_options *options, size_t struct_size);

/**
 * Applies an operator to arrays. Queued on the context of the inputs, which must all be on one (all host contexts count
 * as one).
 *
 * Returns when the work is queued; work of a few microseconds on the host may be done by then. Operators that are
 * applied on one context run in the order of the calls. Relative to work of executors, groups and copies on the same
 * arrays, they run in the order of the calls, too. The first call with a combination of operator, attributes (as they
 * are written), shapes and dtypes compiles a program. The programs of the latest 1,024 combinations for each context
 * are kept, so that calls in a loop cost little. Up to 64 MiB of working memory for each context are kept as well,
 * until the last handle is freed; the threads of such work end then, too.
 *
 * @param keys         The operator's attributes as text.
 * @param inputs       Arguments, then auxiliary states, in the operator's order. Those that the operator updates (the
 *                     states of an optimizer's operator) are written.
 * @param outputs      @nullable Arrays to write the outputs to, of the right shapes and dtypes. They may be inputs, or
 *                     views that overlap inputs or each other: the result is as if all outputs were computed first, and
 *                     then written one after the other. NULL with num_outputs 0: new ones.
 * @param options      NULL: all defaults.
 * @param out_outputs  @nullable The outputs in order, given or new. NULL only if outputs are given.
 *
 * Ownership: the work holds references on the arrays; the caller may free its handles at once. Memory lent by
 * cohort_ndarray_wrap() must keep its contents until an output has been waited for.
 *
 * Threads: any, and several at a time on different arrays, or on the same arrays if none of them is written.
 *
 * @return NULL, or
 *   COHORT_ERROR_NAME              no such operator or attribute
 *   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of inputs or outputs; an attribute out of its range
 *   COHORT_ERROR_SHAPE, _DTYPE     inputs that do not fit together, or outputs that do not fit what is inferred
 *   COHORT_ERROR_DEVICE            arrays on several contexts
 *   COHORT_ERROR_UNSUPPORTED       no kernel for this device and dtype
 *   COHORT_ERROR_OUT_OF_MEMORY     no room for new outputs or working memory
 *   COHORT_ERROR_EXECUTION         an input is known not to have been written
 * After an error nothing was queued. If the queued work fails, COHORT_ERROR_EXECUTION is returned wherever an output,
 * or an input that the operator writes, is read or waited for, until that array is written again; work that reads it
 * fails, too. Other work is not affected, and cohort_wait_all() does not report the failure.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_operator_invoke(const char *op, const char *const *keys,
                                                                  const char *const *values, size_t num_attrs,
                                                                  cohort_ndarray *const *inputs, size_t num_inputs,
                                                                  cohort_ndarray *const *outputs, size_t num_outputs,
                                                                  const cohort_invoke_options *options,
                                                                  cohort_arrays **out_outputs);

COHORT_END_DECLS

#endif /* COHORT_OPERATOR_H */
