/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file custom.h
 * Custom operators, which the host implements. A host registers callbacks under a name, the op_type. The operator
 * `Custom` with that op_type is then used like any other: in symbols and their JSON (MXNet's CustomOp and its JSON),
 * applied to arrays, and recorded by tapes. All attributes of a node except op_type go to the host as text.
 *
 * Lists. Callbacks are lent lists, for the time of the call. They read the lists that have entries, and fill empty ones
 * with cohort_descs_add() and cohort_arrays_add(). Arrays in lent lists are the library's working memory: a callback
 * may read and write them with cohort_ndarray_read() and cohort_ndarray_write(), through their data pointers or with
 * operators, and must not keep or use them after it returns.
 *
 * Threads. `declare`, `infer_shape`, `infer_dtype` and `create` run inside calls that compose, load, infer or bind, on
 * the thread that makes the call. `forward` and `backward` run inside the call that runs the pass, on its thread: the
 * call first waits for the steps before the node, and queues the rest of the pass when the callback has returned, so
 * that the devices of a group run such a node one after the other. With `any_thread` they run on the threads of the
 * device, for several devices at the same time, and the call does not wait. `release` and `ended` run at the end of
 * some call of the library.
 *
 * No callback may use the executor, group or tape for which it is called. It may apply operators
 * (cohort_operator_invoke()); with `any_thread` it must do nothing else that waits for queued work.
 *
 * All callbacks return 0, or anything else for a failure: the call returns COHORT_ERROR_EXECUTION if it runs a pass or
 * binds a node, COHORT_ERROR_INVALID_ARGUMENT before that, with the number in the message.
 */
#ifndef COHORT_CUSTOM_H
#define COHORT_CUSTOM_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/**
 * Gives the names of a node's inputs, auxiliary states and outputs.
 *
 * @param keys, values  The node's attributes without op_type, num_attrs of them.
 * @param inputs  Lent, empty: takes a descriptor for each input, at least one; only its name is read.
 * @param aux     Likewise for auxiliary states, which `forward` may write in training.
 * @param outputs Likewise for outputs; left empty: one, "output".
 */
typedef int32_t (*cohort_custom_declare_fn)(const char *const *keys, const char *const *values, size_t num_attrs,
                                            cohort_descs *inputs, cohort_descs *aux, cohort_descs *outputs,
                                            void *user_data);

/**
 * Infers shapes, or dtypes. Called when that of the first input is known, once or several times for each inference. It
 * cannot return an axis of length 0, since 0 means unknown.
 *
 * @param keys, values  As in cohort_custom_declare_fn.
 * @param known    Lent: what is known of the inputs, in order; lengths of 0 or no shape, COHORT_DTYPE_NONE: not known.
 * @param inputs   Lent, empty: takes a descriptor for each input, in order, with its shape, or its dtype; the rest of a
 *                 descriptor is not read. A contradiction to what is known is an error. Left empty: as known.
 * @param aux      Likewise for auxiliary states; there must be one for each.
 * @param outputs  Likewise for outputs.
 */
typedef int32_t (*cohort_custom_infer_fn)(const char *const *keys, const char *const *values, size_t num_attrs,
                                          const cohort_descs *known, cohort_descs *inputs, cohort_descs *aux,
                                          cohort_descs *outputs, void *user_data);

/**
 * Makes the state of one bound node, which its forward and backward passes use. Each executor and each device binds the
 * node, for training and for inference separately; each application to arrays is a node of its own.
 *
 * @param context    The context on which the node runs.
 * @param out_state  @gives_null Takes the state, which is passed on untouched; NULL before the call.
 */
typedef int32_t (*cohort_custom_create_fn)(const char *const *keys, const char *const *values, size_t num_attrs,
                                           const cohort_context *context, void **out_state, void *user_data);

/**
 * Computes the outputs.
 *
 * @param state     The node's.
 * @param inputs    Lent: in order, with their names.
 * @param aux       Lent: auxiliary states. A frozen layer in a training pass (no argument of it or before it has a
 *                  gradient) is lent copies, so its states do not change. In inference, and in the backward pass of
 *                  inference, these are the states themselves: a callback that writes them changes arrays that other
 *                  threads may be reading.
 * @param outputs   Lent: arrays to be written, all of them.
 * @param is_train  1: a training pass.
 */
typedef int32_t (*cohort_custom_forward_fn)(void *state, const cohort_arrays *inputs, const cohort_arrays *aux,
                                            const cohort_arrays *outputs, cohort_bool is_train, void *user_data);

/**
 * Computes the gradients of the inputs. It always overwrites the arrays; the library then applies grad_req.
 *
 * @param head_grads  Lent: the gradient of each output, zeros if nothing flows back to it; empty with
 *                    ignores_head_grads.
 * @param gradients   Lent: for each input an array to be written, or NULL if its gradient is not needed.
 */
typedef int32_t (*cohort_custom_backward_fn)(void *state, const cohort_arrays *head_grads, const cohort_arrays *inputs,
                                             const cohort_arrays *aux, const cohort_arrays *outputs,
                                             const cohort_arrays *gradients, void *user_data);

/** Frees a state. Runs once for each, when its node is not bound any more. */
typedef void (*cohort_custom_release_fn)(void *state, void *user_data);

/** Runs once, when the operator is not registered any more, and no symbol or bound object has a node of it. */
typedef void (*cohort_custom_end_fn)(void *user_data);

/** A custom operator. Zero in any field but `declare` and `forward` means its default. */
typedef struct cohort_custom_op {
  size_t struct_size; /* size the caller was compiled with; set by the initialisers */

  cohort_custom_declare_fn declare;   /* not NULL */
  cohort_custom_infer_fn infer_shape; /* NULL: all inputs and outputs have one shape; there are no auxiliary states */
  cohort_custom_infer_fn infer_dtype; /* NULL: all inputs, states and outputs have one dtype */
  cohort_custom_create_fn create;     /* NULL: states are NULL */
  cohort_custom_forward_fn forward;   /* not NULL */
  cohort_custom_backward_fn backward; /* NULL: nothing flows back through it */
  cohort_custom_release_fn release;   /* NULL: states are not released */
  cohort_custom_end_fn ended;         /* NULL: none */
  void *user_data;                    /* passed to all */

  cohort_bool ignores_head_grads; /* 1: a loss, whose backward pass starts with a gradient of its own */
  cohort_bool any_thread;         /* 1: forward and backward may run on any thread, several at a time */
} cohort_custom_op;

#define COHORT_CUSTOM_OP_INIT \
  { sizeof(cohort_custom_op), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0 }

/** COHORT_CUSTOM_OP_INIT for callers without a C compiler; struct_size is that of the caller's struct. */
COHORT_API void cohort_custom_op_init(cohort_custom_op *op, size_t struct_size);

/**
 * Registers a custom operator, for the whole process.
 *
 * Threads: any.
 *
 * @param op_type  Its name; not empty.
 * @param op       Copied.
 * @return NULL, or COHORT_ERROR_NAME if the name is taken, COHORT_ERROR_INVALID_ARGUMENT for a callback that is
 *   missing; then no callback is ever called.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_custom_register(const char *op_type, const cohort_custom_op *op);

/**
 * Unregisters a custom operator. Nodes that exist are not affected.
 *
 * @return NULL, or COHORT_ERROR_NAME if it is not registered.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_custom_unregister(const char *op_type);

COHORT_END_DECLS

#endif /* COHORT_CUSTOM_H */
