/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file tape.h
 * Tapes: operators are applied to arrays one by one, a tape records them, and gradients flow back along it.
 *
 *   cohort_tape_create(&tape);
 *   cohort_tape_mark(tape, &weight, &gradient, NULL, 1);                          weight gets a gradient
 *   cohort_tape_invoke(tape, "dot", ..., data and weight, ..., &outputs);         recorded
 *   cohort_tape_backward(tape, &loss, NULL, 1, NULL);                             gradient is written
 *
 * A tape is an object, not a state of the thread: several may be in use, each by one thread at a time.
 *
 * Recording. While the tape records, cohort_tape_invoke() records an operator if one of its inputs is marked or was
 * made by a recorded operator. Else the outputs are constants, as is every array that the tape does not know. Arrays
 * are known by their memory, not by their handles: another handle on an array, or one on the same elements in another
 * shape, is the same array. A part of a known array (cohort_ndarray_slice()) is recorded as such when it is used:
 * gradients flow back to its elements. An array that shares only some of its elements with a known one
 * is refused.
 *
 * Overwriting. A recorded array must not be overwritten before the gradient has been computed from it: a call that
 * needs such an array returns COHORT_ERROR_STATE, which names the operator that recorded it. Marked arrays may be
 * overwritten at any time except between their use and the backward pass: optimizers do that. Only the array's own
 * elements count: other elements of the same memory, such as other rows of a batch, may be written.
 *
 * Memory. The tape keeps the arrays that gradients need, and no others. A value is released when no handle refers to it
 * and no recorded operator that can still receive a gradient needs it. A backward pass releases all that it went
 * through, unless retain_graph is set.
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
 * Pauses or resumes recording: while it is paused, operators are applied without being recorded.
 *
 * @param recording     0 or 1.
 * @param out_previous  @nullable What it was before.
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
 * backward pass has no mode of its own, unlike MXNet's with its train_mode.
 *
 * In training, the moving statistics of a layer (BatchNorm, IdentityAttachKLSparseReg) move only if the layer is
 * recorded and a gradient flows back from it to a marked array; those of a frozen layer stay.
 *
 * @param training      1: training, which Dropout and BatchNorm treat differently; 0: prediction.
 * @param out_previous  @nullable What it was before.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_set_training(cohort_tape *tape, cohort_bool training,
                                                                    cohort_bool *out_previous);

/** Whether operators are applied in training mode. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_is_training(const cohort_tape *tape, cohort_bool *out_training);

/**
 * Marks arrays that get gradients. From here on each is a variable: gradients flow to it, and not to what it was made
 * from. Marking a marked array replaces its gradient and request; COHORT_GRAD_NULL removes the mark.
 *
 * @param arrays     Arrays of floating types. An array that was made by a recorded operator becomes a variable of its
 *                   own.
 * @param gradients  @nullable @null_entries For each the array that takes its gradient, of its shape, dtype and
 *                   context. NULL entries, or NULL for all: no such array; the mark is only for cohort_tape_grad(). Not
 *                   read with COHORT_GRAD_NULL.
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
 * @param options  As for cohort_operator_invoke(), except is_train, which must be 0: the mode of the tape decides. A
 *                 random operator draws the same numbers from the same seed whether or not it is recorded.
 * @return NULL, or an error of cohort_operator_invoke(), or
 *   COHORT_ERROR_INVALID_ARGUMENT  an input shares only some of its elements with an array that the tape knows; an
 *                                  output is a marked array and the operator would be recorded
 *   COHORT_ERROR_STATE             an input, or the array that it is a part of, was overwritten after it had been
 *                                  recorded
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
  cohort_bool create_graph; /* 1: the pass itself is recorded, so that gradients have gradients; implies retain_graph */
} cohort_backward_options;

#define COHORT_BACKWARD_OPTIONS_INIT \
  { sizeof(cohort_backward_options), 0, 0 }

/** COHORT_BACKWARD_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct. */
COHORT_API void cohort_backward_options_init(cohort_backward_options *options, size_t struct_size);

/**
 * Computes the gradients of the sum of all heads, each multiplied by its head gradient, with respect to the marked
 * arrays that heads depend on, and writes or adds them as marked. Queued: an error of the work is returned where a
 * gradient is read. Where gradients between operators take more than 8 MiB (256 MiB on a GPU), the call waits now and
 * then for those queued before, whose memory is free then. Gradients of one array are added up as
 * cohort_executor_backward() adds them up.
 *
 * A marked array that no head depends on keeps its gradient. A marked array that heads depend on only through operators
 * without gradient (BlockGrad, argmax) gets zeros. With create_graph the gradient arrays are themselves recorded,
 * whether the tape is paused or not.
 *
 * @param heads       Marked arrays, or outputs of recorded operators.
 * @param head_grads  @nullable @null_entries For each the head gradient, of its shape, dtype and context. NULL entries,
 *                    or NULL for all: ones.
 * @param options     NULL: all defaults.
 * @return NULL, or
 *   COHORT_ERROR_STATE             a head is not in a recorded graph, maybe because a backward pass has been through
 *                                  it; an array that is needed was overwritten; nothing was computed
 *   COHORT_ERROR_SHAPE, _DTYPE, _DEVICE  a head gradient that does not fit its head; nothing was computed
 *   COHORT_ERROR_UNSUPPORTED       an earlier pass with create_graph recorded the gradient of an operator, which has no
 *                                  gradient itself, such as that of RNN, CTCLoss, samplers and Correlation (the error
 *                                  names it)
 *   COHORT_ERROR_EXECUTION         a custom function failed
 * After the last two, gradients may have been written in part, and the graph is retained.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_backward(cohort_tape *tape, cohort_ndarray *const *heads,
                                                                cohort_ndarray *const *head_grads, size_t num_heads,
                                                                const cohort_backward_options *options);

/**
 * @as cohort_tape_backward(), but only for the given arrays, whose gradients are new arrays; gradient arrays of marks
 * are not written.
 *
 * @param variables      Marked arrays, or outputs of recorded operators.
 * @param out_gradients  A gradient for each variable; zeros if no head depends on it.
 * @return As cohort_tape_backward(), and COHORT_ERROR_STATE for a variable that is not in a recorded graph,
 *   COHORT_ERROR_INVALID_ARGUMENT for one that is a part of an array that the tape knows
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_grad(cohort_tape *tape, cohort_ndarray *const *heads,
                                                            cohort_ndarray *const *head_grads, size_t num_heads,
                                                            cohort_ndarray *const *variables, size_t num_variables,
                                                            const cohort_backward_options *options,
                                                            cohort_arrays **out_gradients);

/**
 * Computes the gradients of a function that the host computed itself.
 *
 * @param head_grads  Lent for the time of the call: the gradient of each output, zeros if nothing flows back to it.
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
 * Releases what belongs to a function of the host. Runs at the end of the call that removes the function from the tape:
 * a backward pass, an application of an operator, cohort_tape_free(). It must not use the tape.
 */
typedef void (*cohort_tape_release_fn)(void *user_data);

/**
 * Records a function that the host has computed itself, with a callback for its gradients.
 *
 * Does nothing but call `release` if the tape is paused or knows none of the inputs.
 *
 * @param inputs     The arrays that the function was computed from.
 * @param outputs    The arrays that it computed; none of them is an input or marked.
 * @param backward   Computes the gradients.
 * @param release    @nullable Called once, when backward will not be called any more.
 * @param user_data  Passed to both.
 * @return NULL, or an error of cohort_tape_invoke(); then neither callback is ever called.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_tape_function(cohort_tape *tape, cohort_ndarray *const *inputs,
                                                                size_t num_inputs, cohort_ndarray *const *outputs,
                                                                size_t num_outputs, cohort_tape_function_fn backward,
                                                                cohort_tape_release_fn release, void *user_data);

/**
 * Makes a symbol that computes an array as it was computed. It has a variable "var0", "var1", ... for each marked array
 * and each constant, in the order in which they were first used.
 *
 * @return NULL, or
 *   COHORT_ERROR_STATE        the array is not in a recorded graph
 *   COHORT_ERROR_UNSUPPORTED  it was made by a function of the host, or by a gradient that is not an operator
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
