/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file tape.h
 * Tapes: operators are applied to arrays one by one, a tape records them, and gradients flow back along it.
 *
 *   cohort_tape_create(&tape);
 *   cohort_tape_mark(tape, &weight, &gradient, NULL, 1);                          weight wants a gradient
 *   cohort_tape_invoke(tape, "dot", ..., data and weight, ..., &outputs);         recorded
 *   cohort_tape_backward(tape, &loss, NULL, 1, NULL);                             gradient is written
 *
 * A tape is an object, not a state of the thread: several may be in use, each by one thread at a time.
 *
 * What is recorded. An operator applied by cohort_tape_invoke() while the tape records, if an input of it is marked or
 * was itself made by something recorded; else its outputs are constants, as is every array that the tape does not know.
 * Arrays are known by their memory, not by their handles: another handle on an array, or one on the same elements in
 * another shape, is the same array. A part of a known array (cohort_ndarray_slice()) is refused as an input: take the
 * part by an operator, through the tape.
 *
 * Overwriting. What was recorded must not be overwritten before the gradient has been computed from it: a call that
 * needs such an array is COHORT_ERROR_STATE, which says by which operator the array was recorded. Marked arrays may be
 * overwritten at any time but between their use and the backward pass: optimizers do that. What counts is the elements
 * of the array: others of the same memory, as other rows of a batch, may be written.
 *
 * Memory. The tape keeps the arrays that gradients need, and nothing of what nobody can reach any more: a value goes
 * when it is in no handle and no recorded operator that could still give a gradient reads it. A backward pass lets go
 * of all that it went through, unless it is to be retained.
 */
#ifndef COHORT_TAPE_H
#define COHORT_TAPE_H

#include "cohort/operator.h"
#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** Makes a tape that records, in training mode. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_create(cohort_tape **out_tape);

/** Frees a tape and what it keeps; arrays in handles stay. NULL does nothing. */
COHORT_API void cohort_tape_free(cohort_tape *tape);

/**
 * Pauses or resumes recording: while paused, operators are applied and nothing else.
 *
 * @param recording     0 or 1.
 * @param out_previous  @nullable What it was before. May be NULL.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_set_recording(cohort_tape *tape, cohort_bool recording,
                                                                     cohort_bool *out_previous);

/** Whether the tape records. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_is_recording(const cohort_tape *tape,
                                                                    cohort_bool *out_recording);

/**
 * Sets the mode in which operators are applied from now on, recorded or not.
 *
 * The gradient of an operator is that of the mode in which it was applied, whatever the mode is when backward runs: a
 * backward pass has no mode of its own, as MXNet's train_mode has it.
 *
 * @param training      1: training, as Dropout and BatchNorm have it; 0: prediction.
 * @param out_previous  @nullable What it was before. May be NULL.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_set_training(cohort_tape *tape, cohort_bool training,
                                                                    cohort_bool *out_previous);

/** Whether operators are applied in training mode. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_is_training(const cohort_tape *tape, cohort_bool *out_training);

/**
 * Marks arrays that want gradients. From here on each is a variable: gradients flow to it, and not to what it was made
 * from. Marking a marked array replaces its gradient and request; COHORT_GRAD_NULL takes the mark away.
 *
 * @param arrays     Of floating types. One that was made by a recorded operator becomes a variable of its own.
 * @param gradients  @nullable @null_entries For each the array that takes its gradient, of its shape, dtype and
 *                   context; NULL entries, or NULL for all: none, for cohort_tape_grad() alone. Not read with
 *                   COHORT_GRAD_NULL.
 * @param grad_reqs  @nullable For each a COHORT_GRAD_ constant; NULL: COHORT_GRAD_WRITE for all.
 * @return NULL, or, with nothing marked,
 *   COHORT_ERROR_SHAPE, _DTYPE, _DEVICE  a gradient that does not fit its array, or an array of integers
 *   COHORT_ERROR_INVALID_ARGUMENT        an array that is a part of one that the tape knows, or of another of these
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_mark(cohort_tape *tape, cohort_ndarray *const *arrays,
                                                            cohort_ndarray *const *gradients,
                                                            const cohort_grad_req *grad_reqs, size_t num_arrays);

/**
 * Applies an operator to arrays @as cohort_operator_invoke() does, and records it.
 *
 * @param options  As there, but for is_train, which is the tape's to say and must be 0. With the same seed a random
 *                 operator may draw other numbers when it is recorded than when it is not.
 * @return NULL, or an error as there, or
 *   COHORT_ERROR_INVALID_ARGUMENT  an input is a part of an array that the tape knows; an output is a marked array and
 *                                  the operator would be recorded
 *   COHORT_ERROR_STATE             an input was overwritten after it had been recorded
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_invoke(cohort_tape *tape, const char *op,
                                                              const char *const *keys, const char *const *values,
                                                              size_t num_attrs, cohort_ndarray *const *inputs,
                                                              size_t num_inputs, cohort_ndarray *const *outputs,
                                                              size_t num_outputs, const cohort_invoke_options *options,
                                                              cohort_arrays **out_outputs);

/** Settings of a backward pass. Zero in any field means its default. */
typedef struct cohort_backward_options {
  size_t struct_size;       /* size the caller was compiled with; set by the initialisers */
  cohort_bool retain_graph; /* 1: what was recorded stays for another backward pass */
  cohort_bool create_graph; /* 1: the pass is recorded itself, so that gradients have gradients; retains as well */
} cohort_backward_options;

#define COHORT_BACKWARD_OPTIONS_INIT \
  { sizeof(cohort_backward_options), 0, 0 }

/** The same as COHORT_BACKWARD_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's. */
COHORT_API void cohort_backward_options_init(cohort_backward_options *options, size_t struct_size);

/**
 * Computes the gradients of the marked arrays that heads were made from, and writes or adds them as marked. Queued:
 * what fails comes out where a gradient is read.
 *
 * Of the sum of all heads, each multiplied by its head gradient. A marked array that no head was made from keeps its
 * gradient; one that a head was made from, but by operators through which no gradient flows (BlockGrad, argmax), gets
 * zeros. With create_graph the gradient arrays are themselves recorded, whether the tape is paused or not.
 *
 * @param heads       Marked arrays, or what recorded operators made.
 * @param head_grads  @nullable @null_entries For each the head gradient, of its shape, dtype and context; NULL entries,
 *                    or NULL for all: ones.
 * @param options     NULL: all defaults.
 * @return NULL, or
 *   COHORT_ERROR_STATE             a head is not in a recorded graph, maybe because a backward pass has been through
 *                                  it; an array that is needed was overwritten; nothing was computed
 *   COHORT_ERROR_SHAPE, _DTYPE, _DEVICE  a head gradient that does not fit its head; nothing was computed
 *   COHORT_ERROR_UNSUPPORTED       create_graph has been, and the gradient of an operator has no gradient itself, as of
 *                                  RNN, CTCLoss, samplers and Correlation (the error names it)
 *   COHORT_ERROR_EXECUTION         a custom function failed
 * After the last two, gradients may have been written in part, and the graph is retained.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_backward(cohort_tape *tape, cohort_ndarray *const *heads,
                                                                cohort_ndarray *const *head_grads, size_t num_heads,
                                                                const cohort_backward_options *options);

/**
 * @as cohort_tape_backward(), for some arrays alone, whose gradients come out as new arrays; those of marks are not
 * touched.
 *
 * @param variables      Marked arrays, or what recorded operators made.
 * @param out_gradients  A gradient for each variable; zeros where no head was made from it.
 * @return As cohort_tape_backward(), and COHORT_ERROR_STATE for a variable that is not in a recorded graph.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_grad(cohort_tape *tape, cohort_ndarray *const *heads,
                                                            cohort_ndarray *const *head_grads, size_t num_heads,
                                                            cohort_ndarray *const *variables, size_t num_variables,
                                                            const cohort_backward_options *options,
                                                            cohort_arrays **out_gradients);

/**
 * Computes the gradients of a function of the host's.
 *
 * @param head_grads  Lent for the time of the call: the gradient of each output, zeros where nothing flows back.
 * @param gradients   Lent likewise, empty: takes for each input, in order, its gradient of the input's shape, dtype and
 *                    context, or NULL for none, by cohort_arrays_add().
 * @param user_data   As given with the callback.
 * @return 0, or anything else to fail the pass it runs in (COHORT_ERROR_EXECUTION).
 *
 * Runs inside cohort_tape_backward() and cohort_tape_grad(). It may apply operators with the same tape, which records
 * them only if the pass is recorded (create_graph), and must use the tape in no other way.
 */
typedef int32_t (*cohort_tape_function_fn)(cohort_arrays *head_grads, cohort_arrays *gradients, void *user_data);

/**
 * Lets go of what belongs to a function of the host's. Runs at the end of the call that lets go of it: a backward pass,
 * an application of an operator, cohort_tape_free(). It must not use the tape.
 */
typedef void (*cohort_tape_release_fn)(void *user_data);

/**
 * Records a function that the host has computed itself, with a callback for its gradients.
 *
 * Does nothing but call `release` if the tape is paused or knows none of the inputs.
 *
 * @param inputs     The arrays that it was computed from.
 * @param outputs    The arrays that it gave; none of them an input or marked.
 * @param backward   See there.
 * @param release    @nullable Called once, when backward will not be called any more; may be NULL.
 * @param user_data  Passed to both.
 * @return NULL, or an error as of cohort_tape_invoke(); then neither callback is ever called.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_function(cohort_tape *tape, cohort_ndarray *const *inputs,
                                                                size_t num_inputs, cohort_ndarray *const *outputs,
                                                                size_t num_outputs, cohort_tape_function_fn backward,
                                                                cohort_tape_release_fn release, void *user_data);

/**
 * The symbol of what an array was made from: a variable "var0", "var1", ... for each marked array and each constant, in
 * the order in which they were first used.
 *
 * @return NULL, or
 *   COHORT_ERROR_STATE        the array is not in a recorded graph
 *   COHORT_ERROR_UNSUPPORTED  it was made by a function of the host's, or by a gradient that is no operator
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_symbol(cohort_tape *tape, cohort_ndarray *array,
                                                              cohort_symbol **out_symbol);

/**
 * How much the tape has recorded: operators and functions that a gradient could still flow through, marked arrays not
 * counted.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_num_recorded(cohort_tape *tape, size_t *out_num);

COHORT_END_DECLS

#endif /* COHORT_TAPE_H */
