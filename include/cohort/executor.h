/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file executor.h
 * Executors: a symbol bound to arrays and compiled to a plan. forward and backward queue work and return; reading an
 * array, or cohort_executor_wait(), waits for it.
 *
 * Executors that were made with one another (shared_executor, reshape, buckets of a group) are a family. They share
 * memory: outputs are good until the next forward or backward of any of them, and so is what a forward pass keeps for
 * its backward pass, which is a STATE error then. One thread uses a family at a time.
 * Executors bound to the same arrays without that are no family: each has its own memory, and while none writes to the
 * arrays, which forward with is_train 0 does not, threads may run them at the same time.
 *
 * Where nodes are placed by `__ctx_group__`, the devices work at the same time as far as the network allows. Results
 * are those of one device, but that the gradients of a value which is read on several devices are summed on each first.
 */
#ifndef COHORT_EXECUTOR_H
#define COHORT_EXECUTOR_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** Lists of arrays that an executor has. */
enum {
  COHORT_EXECUTOR_ARGS = 0,   /* arguments, in the order of the symbol's list */
  COHORT_EXECUTOR_GRADS = 1,  /* gradients of the arguments, in the same order; no array where there is none */
  COHORT_EXECUTOR_AUX = 2,    /* auxiliary states */
  COHORT_EXECUTOR_OUTPUTS = 3 /* outputs, in the order of the heads */
};
typedef int32_t cohort_executor_list;

/** Settings of an executor that few callers change. Zero in any field means its default. */
typedef struct cohort_executor_options {
  size_t struct_size; /* size the caller was compiled with; set by the initialisers */

  /* Contexts of the nodes whose `__ctx_group__` is one of these names. None: the attribute is not read. */
  const char *const *ctx_group_names;       /* num_ctx_groups of them */
  const cohort_context *ctx_group_contexts; /* one for each name */
  size_t num_ctx_groups;

  cohort_executor *shared_executor; /* executor to share memory with, kept alive; NULL: none */
  int32_t num_threads;              /* threads of each CPU context; 0: the processors this process may use are shared
                                       out among them, at most OMP_NUM_THREADS, where that is set, to each */
  uint64_t seed;                    /* of random operators; each forward in training draws new numbers */

  /* From here to strict_dtypes they are for cohort_executor_simple_bind() alone. */

  const char *grad_req;              /* "null", "write" or "add" for every argument; NULL: see the next three */
  const char *const *grad_req_list;  /* num_grad_reqs of them. Neither form: no gradients */
  const char *const *grad_req_names; /* the argument each is for: those not named have none, unknown names are ignored;
                                        NULL: one for each argument in order */
  size_t num_grad_reqs;

  /* One for each argument or auxiliary state. Nodes without a group follow; against a group, or where there are none
     against the default context, they are DEVICE errors. */
  const cohort_context *arg_contexts;  /* NULL: by ctx_group, else the context */
  const cohort_context *grad_contexts; /* NULL: where the argument is; elsewhere is UNSUPPORTED */
  const cohort_context *aux_contexts;  /* NULL: as for arguments */

  const char *const *storage_names; /* storage types of arguments and auxiliary states by name */
  const cohort_storage_type
      *storage_types; /* COHORT_STORAGE_ constants, winning over `__storage_type__`; sparse: UNSUPPORTED */
  size_t num_storage_types;

  const char *const *shared_arg_names; /* arguments that are shared_executor's own arrays (its gradients too) */
  size_t num_shared_arg_names;         /* read only if shared_data is given */

  cohort_arrays *shared_data; /* pool of input arrays by name; read, and updated with what was allocated; NULL: none */

  cohort_bool strict_dtypes; /* 1: a dtype that cannot be inferred is an error; 0: it is float32 */

  /* The rest is for every way of binding. */

  /* COHORT_DTYPE_FLOAT32: all work is done in the network's types. COHORT_DTYPE_BFLOAT16: products of matrices on
     float32 arrays (convolutions, FullyConnected, dot, attention) are made in bfloat16, with sums in float32, and what
     follows them (activations, additions, pooling, normalisations, concatenation) takes their results so; losses,
     statistics, norms and all else stay in float32, bodies of loops and branches, too: see cohort_operator_precision(),
     and for the nodes of a bound network cohort_executor_debug_text(). Arguments, gradients, outputs and auxiliary states
     keep their types: the weights are the float32 masters. Where a CPU has no units for bfloat16 nothing is narrowed,
     and a message of level info says so. COHORT_DTYPE_FLOAT16: likewise, on gpu contexts alone, else UNSUPPORTED.
     COHORT_DTYPE_INT8: inference in bytes, by a calibration (calibration.h); with gradients UNSUPPORTED, without a
     calibration INVALID_ARGUMENT, with one that has seen nothing STATE.
     Others: INVALID_ARGUMENT. */
  cohort_dtype compute_dtype;

  /* Nodes, and operators (all of their nodes), whose work is done in the network's types whatever compute_dtype says,
     and others that work in compute_dtype though their operator would not (cohort_operator_precision()). What is said of
     a node counts more than what is said of its operator; an activation or norm that is done within the layer before it
     goes with that. */
  const char *const *float32_names; /* num_float32_names of them; one that is neither node nor operator: NAME */
  size_t num_float32_names;
  const char *const *narrow_names; /* num_narrow_names of them; likewise. A node that cannot: UNSUPPORTED; a name in
                                      both lists, or two of one operator: INVALID_ARGUMENT */
  size_t num_narrow_names;

  const cohort_calibration *calibration; /* of COHORT_DTYPE_INT8: ranges of the network's values, by its nodes' names */

  /* 0: what backward reads of a forward pass stays until the next one, and backward may be repeated. 1: backward works
     in that memory, too, which takes less (planned_bytes of cohort_executor_memory()); the second one after a forward
     is a STATE error. */
  cohort_bool backward_once;

  /* 1: on gpu contexts, products of float32 matrices (FullyConnected, dot, batch_dot, RNN, attention; convolutions where
     there is cuDNN) may round their factors to TF32, 11 significant bits, and sum in float32, which units of GPUs for it do several
     times faster; but for nodes and operators in float32_names. Not in bodies of loops and branches. On CPUs it means
     nothing. 0: in float32. */
  cohort_bool tf32;

  /* 1: backward makes again what it reads of a forward pass where that is cheap and all that it is made of is kept
     anyway, or as cheap to make of what is, right before it reads it: results of batch norms, and of what is no product
     of matrices; of the sums in a residual network every other one. Less memory
     (planned_bytes of cohort_executor_memory()), somewhat more time, the same bits. Not in bodies of
     loops and branches. MXNet calls it mirroring (MXNET_BACKWARD_DO_MIRROR). 0: all is kept. */
  cohort_bool recompute;
} cohort_executor_options;

#define COHORT_EXECUTOR_OPTIONS_INIT                                                                                  \
  {                                                                                                                   \
    sizeof(cohort_executor_options), NULL, NULL, 0, NULL, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, \
        NULL, 0, NULL, 0, 0, NULL, 0, NULL, 0, NULL, 0, 0, 0                                                          \
  }

/** The same as COHORT_EXECUTOR_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's. */
COHORT_API void cohort_executor_options_init(cohort_executor_options *options, size_t struct_size);

/**
 * Binds a symbol to given arrays. They are referenced, not copied: what the caller writes there, the next forward
 * reads.
 *
 * @param context    The default context. NULL: cpu(0). Without ctx_group all arrays must be on it; with it, a variable
 *                   is where its array is, and nodes without a group follow.
 * @param args       One for each argument, in order; the same array, or parts of it, may serve several: what a node
 *                   writes there, nodes behind it read.
 * @param grads      @nullable @null_entries One for each argument, NULL where there is to be no gradient; NULL: none at
 *                   all.
 * @param grad_req   @nullable COHORT_GRAD_ constants, one for each argument; NULL: COHORT_GRAD_WRITE where there is an
 *                   array. COHORT_GRAD_NULL with an array: it is never written.
 * @param aux        One for each auxiliary state, in order.
 * @param options    NULL: all defaults.
 * @return NULL, or
 *   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of arrays, or an array missing
 *   COHORT_ERROR_SHAPE, _DTYPE     an array does not fit (the error names node and input, or the gradient)
 *   COHORT_ERROR_DEVICE            an array on another context (the error names both), a node's `__ctx_group__` that is
 *                                  not among the names given, or no such device
 *   COHORT_ERROR_UNSUPPORTED       no kernel for a node on its device with its dtypes
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_bind(
    const cohort_symbol *symbol, const cohort_context *context, cohort_ndarray *const *args, size_t num_args,
    cohort_ndarray *const *grads, const cohort_grad_req *grad_req, cohort_ndarray *const *aux, size_t num_aux,
    const cohort_executor_options *options, cohort_executor **out_executor);

/**
 * Binds a symbol to arrays made for it, all zeros.
 *
 * @param context  The default context. NULL: cpu(0).
 * @param known    @nullable Shapes and dtypes by name, of arguments and auxiliary states; either may be left open.
 *                 Length 0 is not known. They win over `__shape__` and `__dtype__` of the symbol. Names that are
 *                 neither are ignored. NULL: none.
 * @param options  NULL: all defaults.
 * @return NULL, or
 *   COHORT_ERROR_SHAPE, _DTYPE     some cannot be inferred (the error lists the arguments), or they contradict (the
 *                                  error names the node); a shared array does not fit
 *   COHORT_ERROR_INVALID_ARGUMENT  grad_req: a wrong number, an empty list, or another word
 *   COHORT_ERROR_NAME              two arguments of one name; shared_executor has no argument of a shared name
 *   COHORT_ERROR_DEVICE            as for cohort_executor_bind()
 *   COHORT_ERROR_UNSUPPORTED       likewise; sparse storage (the error names the variable)
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_simple_bind(const cohort_symbol *symbol,
                                                                       const cohort_context *context,
                                                                       const cohort_descs *known,
                                                                       const cohort_executor_options *options,
                                                                       cohort_executor **out_executor);

/** Settings of a reshape. Zero in any field means its default. */
typedef struct cohort_reshape_options {
  size_t struct_size;                 /* size the caller was compiled with; set by the initialisers */
  cohort_bool partial_shaping;        /* 1: arguments that are not named, and auxiliary states, may change shape too */
  cohort_bool allow_up_sizing;        /* 1: arguments may grow; they are then new arrays of zeros */
  const cohort_context *context;      /* the default context; NULL: the executor's. Here and in the next, arrays stay */
  const char *const *ctx_group_names; /* as for cohort_executor_options; none: the executor's */
  const cohort_context *ctx_group_contexts;
  size_t num_ctx_groups;
} cohort_reshape_options;

#define COHORT_RESHAPE_OPTIONS_INIT \
  { sizeof(cohort_reshape_options), 0, 0, NULL, NULL, NULL, 0 }

/** The same as COHORT_RESHAPE_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's. */
COHORT_API void cohort_reshape_options_init(cohort_reshape_options *options, size_t struct_size);

/**
 * Makes an executor of the same symbol for other shapes. It shares the memory of this one, which stays usable; both are
 * of one family.
 *
 * An argument whose shape stays is shared. One that shrinks uses the first part of its memory, its gradient likewise.
 *
 * @param known    Shapes by name, from which all others are inferred; the bound ones play no part. Unknown names are
 *                 ignored.
 * @param options  NULL: all defaults.
 * @return NULL, or
 *   COHORT_ERROR_SHAPE   shapes that cannot be inferred or contradict; an argument that was not named changes shape; an
 *                        argument grows without allow_up_sizing
 *   COHORT_ERROR_DEVICE  an array is on another context than the options place it on; a group without a context
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_reshape(const cohort_executor *executor,
                                                                   const cohort_descs *known,
                                                                   const cohort_reshape_options *options,
                                                                   cohort_executor **out_executor);

/** Frees a handle, waiting for queued work if it is the last; NULL does nothing. Arrays handed out live on. */
COHORT_API void cohort_executor_free(cohort_executor *executor);

/** A handle on a copy of the symbol that was bound. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_symbol(const cohort_executor *executor,
                                                                  cohort_symbol **out_symbol);

/** The default context. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_context(const cohort_executor *executor,
                                                                   cohort_context *out_context);

/** The length of a list: `list` is a COHORT_EXECUTOR_ constant. COHORT_EXECUTOR_GRADS is as long as the arguments. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_num_arrays(const cohort_executor *executor,
                                                                      cohort_executor_list list, size_t *out_num);

/** The name that goes with an array of a list; a gradient has its argument's. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_name(const cohort_executor *executor,
                                                                cohort_executor_list list, size_t index,
                                                                const char **out_name);

/**
 * A handle on a live array. Outputs are zeros before the first forward.
 *
 * Of an output behind a node whose shape depends on values (`_contrib_boolean_mask`, `_npx_nonzero`, `_cvimdecode`):
 * NULL before the first forward, and after each the array of the shape that was found, which need not be the one
 * before.
 *
 * @param out_array  @gives_null NULL for an argument without gradient.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_array(const cohort_executor *executor,
                                                                 cohort_executor_list list, size_t index,
                                                                 cohort_ndarray **out_array);

/** @as cohort_executor_array(), by name. Unknown or ambiguous: COHORT_ERROR_NAME. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_array_named(const cohort_executor *executor,
                                                                       cohort_executor_list list, const char *name,
                                                                       cohort_ndarray **out_array);

/** A whole list, names included; live arrays. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_arrays(const cohort_executor *executor,
                                                                  cohort_executor_list list,
                                                                  cohort_arrays **out_arrays);

/** What backward does with the gradient of an argument: a COHORT_GRAD_ constant. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_grad_req(const cohort_executor *executor, size_t index,
                                                                    cohort_grad_req *out_grad_req);

/**
 * Copies arrays into arguments by name, converting dtypes. Queued. Checked first: on an error nothing is copied.
 *
 * @param inputs  Named arrays on any contexts.
 * @return NULL, or COHORT_ERROR_NAME (no such argument), COHORT_ERROR_SHAPE.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_set_inputs(cohort_executor *executor,
                                                                      const cohort_arrays *inputs);

/**
 * Copies parameters into arguments and auxiliary states by name, converting dtypes. Queued. Checked first, as above.
 *
 * @param arg_params   Named arrays; arguments not named keep their values.
 * @param aux_params   @nullable The same for auxiliary states; NULL: none.
 * @param allow_extra  1: unknown names are skipped; 0: they are COHORT_ERROR_NAME.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_copy_params_from(cohort_executor *executor,
                                                                            const cohort_arrays *arg_params,
                                                                            const cohort_arrays *aux_params,
                                                                            cohort_bool allow_extra);

/**
 * Queues a forward pass over what the arguments hold.
 *
 * Where the shapes of nodes depend on values, it waits for these values, errors of that work among it, and then binds
 * what follows for the shapes that they say; what was bound for the shapes used last is kept, so that a shape seen
 * before costs nothing.
 *
 * @param is_train  1: training behaviour, and what backward needs is kept; 0: neither, though a backward may follow.
 *                  Inference writes outputs alone. Training moves the auxiliary states of layers that have, or come
 *                  behind, an argument with a gradient; frozen ones keep theirs.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_forward(cohort_executor *executor, cohort_bool is_train);

/**
 * Runs one step of a forward pass: completes node `step` of the symbol's JSON, whatever the plan fuses.
 *
 * Steps may be repeated, or left out: a step runs on what is there. The first one after cohort_executor_forward() runs
 * those before it, too, as does the first after a backward pass with backward_once. After all steps, outputs are as
 * after cohort_executor_forward(), and backward may follow.
 *
 * Where the shapes of nodes depend on values: COHORT_ERROR_UNSUPPORTED.
 *
 * @param step           From 0. Beyond the last node, or negative, nothing runs.
 * @param out_step_left  How many nodes come after this one; 0 beyond the last.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_partial_forward(cohort_executor *executor,
                                                                           cohort_bool is_train, int32_t step,
                                                                           int32_t *out_step_left);

/**
 * Queues a backward pass from the latest forward pass; it may be repeated. Values of arguments that a gradient needs
 * are those at this call. Without any gradient array it does nothing.
 *
 * @param head_grads  @nullable @null_entries One for each output, of its shape, on any context, of any dtype; NULL
 *                    entries, and a shorter list, where an output needs none: a loss, and one from which nothing flows
 *                    back to an argument that has a gradient. NULL with num_head_grads 0: none.
 * @param is_train    As for the forward pass before. 0 there or here: the gradients of an inference pass, for which the
 *                    forward pass is run again. From then on that is the latest one, and outputs are its.
 * @return NULL, or
 *   COHORT_ERROR_INVALID_ARGUMENT  more than outputs, or none where one is needed (the error names the output)
 *   COHORT_ERROR_SHAPE             another shape than the output's
 *   COHORT_ERROR_STATE             no forward pass since binding; another executor of the family has run since that,
 *                                  and has worked where it had left what backward needs
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_backward(cohort_executor *executor,
                                                                    cohort_ndarray *const *head_grads,
                                                                    size_t num_head_grads, cohort_bool is_train);

/** Waits for all queued work. COHORT_ERROR_EXECUTION if some failed; the executor stays usable. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_wait(cohort_executor *executor);

/**
 * Sees an array as it is computed.
 *
 * @param name       `<node>_<output>`, `<node>_backward_output<k>` for the gradient of input k, and with monitor_all
 *                   `<node>_<input>` or a variable's name. Lives until the callback returns.
 * @param array      Lent for the time of the call, complete; not to be freed. cohort_ndarray_share() keeps it.
 * @param user_data  As given with the callback.
 *
 * Runs inside cohort_executor_forward(), cohort_executor_partial_forward() and cohort_executor_backward(), and the
 * calls of a group that do the same. It may use the array, and must not use the executor or its group.
 */
typedef void (*cohort_monitor_fn)(const char *name, cohort_ndarray *array, void *user_data);

/**
 * Shows every operator's outputs, in the order of execution, to a callback, under the names of the symbol as bound,
 * whatever the plan fuses. Results do not change, but for the rounding of what it would have fused; passes wait for
 * their work while a callback is set.
 *
 * @param callback     @nullable Replaces the one before; NULL: none. A reshaped executor takes it over, and calls it
 *                     with the same user_data even after this executor was freed.
 * @param user_data    Passed to the callback.
 * @param monitor_all  1: the inputs of each operator too, before its outputs.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_set_monitor(cohort_executor *executor,
                                                                       cohort_monitor_fn callback, void *user_data,
                                                                       cohort_bool monitor_all);

/**
 * The plan as text for a person, good until this is called again: the nodes, then the steps of the pass that ran last,
 * each with what it computes and moves, the least time that the machine would take for it and whether that is due to
 * flops or bytes, and the mean time it took while a trace ran (trace.h). What the machine can do is measured when this
 * is first asked for, in about a tenth of a second. A node that works in a narrower type than the network's has a line
 * `Computes in bfloat16`. Behind a node whose shape depends on values there is no plan before the first forward. The
 * last two lines are `Total X MB allocated` and `Total 11 TempSpace resource requested`, as MXNet's are; X is the
 * planned memory in whole MiB.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_debug_text(const cohort_executor *executor,
                                                                      const char **out_text);

/** What the executor takes of memory, shared memory included. struct_size of *out_info is set by the caller. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_memory(const cohort_executor *executor,
                                                                  cohort_memory_info *out_info);

COHORT_END_DECLS

#endif /* COHORT_EXECUTOR_H */
