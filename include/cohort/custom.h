/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file custom.h Operators of the host's. A host registers callbacks under a name, its op_type; the operator `Custom`
 * with that op_type then is a node of symbols and of symbol JSON like any other (MXNet's CustomOp and its JSON), and
 * can be applied to arrays at once and recorded by tapes. All attributes of the node but op_type are the host's own, as
 * text.
 *
 * Lists. Callbacks are lent lists, for the time of the call. They read from the lists of what is there, and write to
 * those that are empty by cohort_descs_add() and cohort_arrays_add(). Arrays in lent lists are the library's working
 * memory: they are to be read and written in the callback, by cohort_ndarray_read() and cohort_ndarray_write(), by
 * their data pointers or by operators applied to them, and neither kept nor used behind it.
 *
 * Threads. `declare`, the two for inference and `create` run inside calls that compose, load, infer or bind, on the
 * thread that makes the call. So do `forward` and `backward`, inside the call that runs the pass: the steps before the
 * node are waited for first, and the pass is not queued further until the callback has returned, so that the devices of
 * a group take turns with such a node. With `any_thread` they run where the device works, at the same time for several
 * devices, and nobody waits. `release` and `ended` run at the end of some call of the library. No callback may use the
 * executor, group or tape for which it is called. Applying operators is allowed (cohort_operator_invoke()); with
 * `any_thread` nothing else that waits for queued work is.
 *
 * All return 0, or anything else for a failure: COHORT_ERROR_EXECUTION where a pass is run or a node is bound, and
 * COHORT_ERROR_INVALID_ARGUMENT before that, with the number in the message.
 */
#ifndef COHORT_CUSTOM_H
#define COHORT_CUSTOM_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/**
 * Says what a node has: names of inputs, auxiliary states and outputs.
 *
 * @param keys    The node's attributes, op_type left out, and values likewise: num_attrs texts.
 * @param inputs  Lent, empty: takes a descriptor for each input, of which the name alone counts; at least one.
 * @param aux     Likewise for auxiliary states, which `forward` may write in training.
 * @param outputs Likewise for outputs; none: one, "output".
 */
typedef int32_t (*cohort_custom_declare_fn)(const char *const *keys, const char *const *values, size_t num_attrs,
                                            cohort_descs *inputs, cohort_descs *aux, cohort_descs *outputs,
                                            void *user_data);

/**
 * Infers shapes, or dtypes. Called when the first input's is known, for each inference once or several times. Lengths
 * of 0 cannot be told by it: they are those that are not known.
 *
 * @param keys     As above.
 * @param known    Lent: what is known of the inputs, in order; lengths of 0 or no shape, COHORT_DTYPE_NONE: not known.
 * @param inputs   Lent, empty: takes a descriptor for each input, in order, with its shape, or its dtype; the rest of a
 *                 descriptor is not read. What contradicts what is known is an error. Left empty: as they are known.
 * @param aux      Likewise for auxiliary states; there must be one for each.
 * @param outputs  Likewise for outputs.
 */
typedef int32_t (*cohort_custom_infer_fn)(const char *const *keys, const char *const *values, size_t num_attrs,
                                          const cohort_descs *known, cohort_descs *inputs, cohort_descs *aux,
                                          cohort_descs *outputs, void *user_data);

/**
 * Makes what belongs to one bound node, from its forward passes to its backward passes. A node is bound by each
 * executor and each device, for training and for inference apart; each application to arrays is a node of its own.
 *
 * @param context    Where it runs.
 * @param out_state  @gives_null Takes the state, which is passed on untouched; NULL before.
 */
typedef int32_t (*cohort_custom_create_fn)(const char *const *keys, const char *const *values, size_t num_attrs,
                                           const cohort_context *context, void **out_state, void *user_data);

/**
 * Computes the outputs.
 *
 * @param state     Of the node.
 * @param inputs    Lent: in order, with their names.
 * @param aux       Lent: auxiliary states. A layer of a training pass that is frozen, no argument of it or before it
 *                  having a gradient, keeps its states: these are copies then.
 * @param outputs   Lent: arrays to be written, all of them.
 * @param is_train  1: a training pass.
 */
typedef int32_t (*cohort_custom_forward_fn)(void *state, const cohort_arrays *inputs, const cohort_arrays *aux,
                                            const cohort_arrays *outputs, cohort_bool is_train, void *user_data);

/**
 * Computes the gradients of the inputs. What grad_req asks for is done with them afterwards: they are always to be
 * overwritten.
 *
 * @param head_grads  Lent: the gradient of each output, zeros where nothing flows back; empty with ignores_head_grads.
 * @param gradients   Lent: for each input an array to be written, or NULL where its gradient is not wanted.
 */
typedef int32_t (*cohort_custom_backward_fn)(void *state, const cohort_arrays *head_grads, const cohort_arrays *inputs,
                                             const cohort_arrays *aux, const cohort_arrays *outputs,
                                             const cohort_arrays *gradients, void *user_data);

/** Lets go of a state. Runs once for each, when its node is not bound any more. */
typedef void (*cohort_custom_release_fn)(void *state, void *user_data);

/** Runs once, when the operator is not registered and no symbol and nothing bound has a node of it any more. */
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
  cohort_custom_release_fn release;   /* NULL: states need none */
  cohort_custom_end_fn ended;         /* NULL: none */
  void *user_data;                    /* passed to all */

  cohort_bool ignores_head_grads; /* 1: a loss, whose backward pass starts with a gradient of its own */
  cohort_bool any_thread;         /* 1: forward and backward may run on any thread, several at a time */
} cohort_custom_op;

#define COHORT_CUSTOM_OP_INIT \
  { sizeof(cohort_custom_op), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0 }

/** The same as COHORT_CUSTOM_OP_INIT, for callers without a C compiler; struct_size is the caller's. */
COHORT_API void cohort_custom_op_init(cohort_custom_op *op, size_t struct_size);

/**
 * Registers a custom operator, for the whole process.
 *
 * Threads: any.
 *
 * @param op_type  Its name; not "".
 * @param op       Copied.
 * @return NULL, or COHORT_ERROR_NAME if the name is taken, COHORT_ERROR_INVALID_ARGUMENT for a callback that is
 *   missing; then no callback is ever called.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_custom_register(const char *op_type, const cohort_custom_op *op);

/**
 * Ends the name. Nodes that there are stay what they are.
 *
 * @return NULL, or COHORT_ERROR_NAME if it is not registered.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_custom_unregister(const char *op_type);

COHORT_END_DECLS

#endif /* COHORT_CUSTOM_H */
