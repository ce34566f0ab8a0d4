/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file executor.h
 * Executors: a symbol bound to arrays and compiled to a plan. forward and backward queue work and return; reading an
 * array, or cohort_executor_wait(), waits for it.
 *
 * Executors that were made with one another (shared_executor, reshape, buckets of a group) are a family. They share
 * memory: outputs are valid until the next forward or backward of any of them, and after another executor of the family
 * has run and overwritten what a forward pass keeps for its backward pass, that backward pass returns STATE. One thread
 * uses a family at a time.
 *
 * Executors that are merely bound to the same arrays are not a family: each has its own memory, and threads may run
 * them at the same time while none of them writes to the arrays. Inference (forward with is_train 0) does not write to
 * them, unless a custom operator does (custom.h).
 *
 * If nodes are placed by `__ctx_group__`, the devices work at the same time as far as the network allows. Results are
 * those of one device, except that gradients of a value which several devices read are summed on each device first.
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

  /* Contexts of the nodes whose `__ctx_group__` is one of these names. No names: the attribute is not read. */
  const char *const *ctx_group_names;       /* num_ctx_groups of them */
  const cohort_context *ctx_group_contexts; /* one for each name */
  size_t num_ctx_groups;

  cohort_executor *shared_executor; /* executor to share memory with, kept alive; NULL: none */
  /* threads of each CPU context; 0: the processors that this process may use are divided among the contexts, and each
     gets at most OMP_NUM_THREADS if that is set. A pass without a step of some 100 microseconds, or a total of some
     1000, runs on one thread: more would wait for each other longer than they compute where others use the processors */
  int32_t num_threads;
  uint64_t seed; /* seed of random operators; each forward in training draws new numbers */

  /* The fields from here to strict_dtypes are only for cohort_executor_simple_bind(). */

  const char *grad_req;             /* "null", "write" or "add" for every argument; NULL: see the next three */
  const char *const *grad_req_list; /* num_grad_reqs of them; NULL like grad_req: no gradients */
  /* the argument that each is for; arguments that are not named have no gradient, unknown names are ignored. NULL: one
     for each argument in order */
  const char *const *grad_req_names;
  size_t num_grad_reqs;

  /* One context for each argument or auxiliary state. Nodes without a group run where their inputs are. A context that
     contradicts the variable's group, or the default context where there are no groups, is a DEVICE error. */
  const cohort_context *arg_contexts;  /* NULL: by ctx_group, else the context */
  const cohort_context *grad_contexts; /* NULL: where the argument is; another context is UNSUPPORTED */
  const cohort_context *aux_contexts;  /* NULL: as for arguments */

  const char *const *storage_names; /* storage types of arguments and auxiliary states by name */
  const cohort_storage_type
      *storage_types; /* COHORT_STORAGE_ constants, which override `__storage_type__`; sparse: UNSUPPORTED */
  size_t num_storage_types;

  const char *const *shared_arg_names; /* arguments that use shared_executor's own arrays (and gradients) */
  size_t num_shared_arg_names;         /* read only if shared_data is given */

  cohort_arrays *shared_data; /* pool of input arrays by name; read, and newly allocated arrays are added; NULL: none */

  cohort_bool strict_dtypes; /* 1: a dtype that cannot be inferred is an error; 0: it is float32 */

  /* The other fields are for every way of binding. */

  /* COHORT_DTYPE_FLOAT32: all work is done in the network's types. COHORT_DTYPE_BFLOAT16: matrix products on float32
     arrays (convolutions, FullyConnected, dot, attention) are computed in bfloat16, with sums in float32, and operators
     that follow them (activations, additions, pooling, normalisations, concatenation) take and give bfloat16. Losses,
     statistics, norms and everything else stay in float32, and so do bodies of loops and branches: see
     cohort_operator_precision(), and cohort_executor_debug_text() for the nodes of a bound network. Arguments,
     gradients, outputs and auxiliary states keep their types: the weights are the float32 masters. A CPU without units
     for bfloat16 computes in float32, and a message of level info says so. COHORT_DTYPE_FLOAT16: likewise, on gpu
     contexts only, else UNSUPPORTED. COHORT_DTYPE_INT8: inference in 8-bit integers with a calibration (calibration.h);
     UNSUPPORTED with gradients, INVALID_ARGUMENT without a calibration, STATE with one that has observed nothing.
     Others: INVALID_ARGUMENT. */
  cohort_dtype compute_dtype;

  /* float32_names are nodes, or operators (which means all their nodes), that compute in the network's types whatever
     compute_dtype says. narrow_names are those that compute in compute_dtype although their operator does not by itself
     (cohort_operator_precision()). A node's name takes precedence over its operator's. An activation or norm that is
     fused into the layer before it computes as that layer does. */
  const char *const *float32_names; /* num_float32_names of them; a name of neither a node nor an operator: NAME */
  size_t num_float32_names;
  /* num_narrow_names of them; likewise. A node that cannot: UNSUPPORTED; a name in both lists, or two names of one
     operator: INVALID_ARGUMENT */
  const char *const *narrow_names;
  size_t num_narrow_names;

  const cohort_calibration *calibration; /* for COHORT_DTYPE_INT8: ranges of values, by the nodes' names */

  /* 0: what a forward pass keeps for backward stays until the next forward pass, and backward may be repeated. 1:
     backward reuses that memory, so the executor takes less (planned_bytes of cohort_executor_memory()); a second
     backward after one forward is a STATE error. */
  cohort_bool backward_once;

  /* 1: on gpu contexts, products of float32 matrices (FullyConnected, dot, batch_dot, RNN, attention; convolutions
     where there is cuDNN) may round their factors to TF32, which has 11 significant bits, and sum in float32; GPUs with
     units for TF32 are several times faster then. Nodes and operators in float32_names, and bodies of loops and
     branches, are excepted. It has no effect on CPUs. 0: factors are float32. */
  cohort_bool tf32;

  /* 1: backward computes cheap intermediate results a second time, right before it needs them, instead of keeping them.
     That is done where their inputs are kept, or are themselves cheap to compute from what is kept: for batch norms and
     other operators that are not matrix products, and for every other sum in a residual network. It takes less memory
     (planned_bytes of cohort_executor_memory()) and somewhat more time, and gives the same bits. Bodies of loops and
     branches are excepted. MXNet calls it mirroring (MXNET_BACKWARD_DO_MIRROR). 0: all is kept. */
  cohort_bool recompute;
} cohort_executor_options;

#define COHORT_EXECUTOR_OPTIONS_INIT                                                                                  \
  {                                                                                                                   \
    sizeof(cohort_executor_options), NULL, NULL, 0, NULL, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, \
        NULL, 0, NULL, 0, 0, NULL, 0, NULL, 0, NULL, 0, 0, 0                                                          \
  }

/** COHORT_EXECUTOR_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct. */
COHORT_API void cohort_executor_options_init(cohort_executor_options *options, size_t struct_size);

/**
 * Binds a symbol to given arrays. They are referenced, not copied: the next forward reads what the caller writes there.
 *
 * @param context    The default context. NULL: cpu(0). Without ctx groups all arrays must be on it; with them, a
 *                   variable is where its array is, and nodes without a group run where their inputs are.
 * @param args       One for each argument, in order. The same array, or parts of it, may serve several arguments: later
 *                   nodes then read what an earlier node writes there.
 * @param grads      @nullable @null_entries One for each argument, NULL for an argument without gradient. NULL: no
 *                   gradients at all. An array with COHORT_GRAD_WRITE shares no memory with other gradients, arguments
 *                   or auxiliary states; parts of one block that do not overlap are fine. Arrays with COHORT_GRAD_ADD
 *                   may be the same one, which then gets the sum.
 * @param grad_req   @nullable COHORT_GRAD_ constants, one for each argument; NULL: COHORT_GRAD_WRITE where there is an
 *                   array. COHORT_GRAD_NULL with an array: it is never written.
 * @param aux        One for each auxiliary state, in order.
 * @param options    NULL: all defaults.
 * @return NULL, or
 *   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of arrays, an array missing, or a gradient to be written whose memory
 *                                  another array uses, too (the error names both)
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
 * Binds a symbol to new arrays of zeros.
 *
 * @param context  The default context. NULL: cpu(0).
 * @param known    @nullable Shapes and dtypes of arguments and auxiliary states, by name; either may be left open.
 *                 Length 0 is not known. They override `__shape__` and `__dtype__` of the symbol. Other names are
 *                 ignored. NULL: none.
 * @param options  NULL: all defaults.
 * @return NULL, or
 *   COHORT_ERROR_SHAPE, _DTYPE     some cannot be inferred (the error lists the arguments), or they contradict (the
 *                                  error names the node); a shared array does not fit
 *   COHORT_ERROR_INVALID_ARGUMENT  grad_req: a wrong number, an empty list, or another word
 *   COHORT_ERROR_NAME              two arguments of one name; shared_executor has no argument of a shared name
 *   COHORT_ERROR_DEVICE            as for cohort_executor_bind()
 *   COHORT_ERROR_UNSUPPORTED       as for cohort_executor_bind(); sparse storage (the error names the variable)
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_simple_bind(const cohort_symbol *symbol,
                                                                       const cohort_context *context,
                                                                       const cohort_descs *known,
                                                                       const cohort_executor_options *options,
                                                                       cohort_executor **out_executor);

/** Settings of a reshape. Zero in any field means its default. */
typedef struct cohort_reshape_options {
  size_t struct_size;          /* size the caller was compiled with; set by the initialisers */
  cohort_bool partial_shaping; /* 1: arguments that are not named, and auxiliary states, may change shape too */
  cohort_bool allow_up_sizing; /* 1: arguments may grow; they are then new arrays of zeros */
  /* the default context; NULL: the executor's. Arrays stay where they are, also with ctx groups */
  const cohort_context *context;
  const char *const *ctx_group_names; /* as for cohort_executor_options; none: the executor's */
  const cohort_context *ctx_group_contexts;
  size_t num_ctx_groups;
} cohort_reshape_options;

#define COHORT_RESHAPE_OPTIONS_INIT \
  { sizeof(cohort_reshape_options), 0, 0, NULL, NULL, NULL, 0 }

/** COHORT_RESHAPE_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct. */
COHORT_API void cohort_reshape_options_init(cohort_reshape_options *options, size_t struct_size);

/**
 * Makes an executor of the same symbol for other shapes. It shares the memory of this one, which stays usable; both are
 * of one family.
 *
 * An argument that keeps its shape is shared. One that shrinks uses the first part of its memory, and so does its
 * gradient.
 *
 * @param known    Shapes by name, from which all others are inferred; the bound shapes are not used. Unknown names are
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

/** Frees a handle; NULL does nothing. Freeing the last one waits for queued work. Arrays that were handed out stay. */
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

/** The name of an array in a list; a gradient has the name of its argument. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_name(const cohort_executor *executor,
                                                                cohort_executor_list list, size_t index,
                                                                const char **out_name);

/**
 * A handle on a live array. Outputs are zeros before the first forward.
 *
 * An output that depends on a node whose shape depends on values (`_contrib_boolean_mask`, `_npx_nonzero`,
 * `_cvimdecode`) has no array before the first forward. Each forward gives it an array of the shape that was found,
 * which can be another array than before.
 *
 * @param out_array  @gives_null NULL for an argument without gradient, and for an output that has no array yet.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_array(const cohort_executor *executor,
                                                                 cohort_executor_list list, size_t index,
                                                                 cohort_ndarray **out_array);

/** @as cohort_executor_array(), by name. Unknown or ambiguous: COHORT_ERROR_NAME. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_array_named(const cohort_executor *executor,
                                                                       cohort_executor_list list, const char *name,
                                                                       cohort_ndarray **out_array);

/** All live arrays of a list, with their names. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_arrays(const cohort_executor *executor,
                                                                  cohort_executor_list list,
                                                                  cohort_arrays **out_arrays);

/** How backward treats the gradient of an argument: a COHORT_GRAD_ constant. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_grad_req(const cohort_executor *executor, size_t index,
                                                                    cohort_grad_req *out_grad_req);

/**
 * Copies arrays into arguments by name, converting dtypes. Queued. All are checked first: on an error nothing is
 * copied.
 *
 * @param inputs  Named arrays on any contexts.
 * @return NULL, or COHORT_ERROR_NAME (no such argument), COHORT_ERROR_SHAPE.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_set_inputs(cohort_executor *executor,
                                                                      const cohort_arrays *inputs);

/**
 * Copies parameters into arguments and auxiliary states by name, converting dtypes. Queued. All are checked first: on
 * an error nothing is copied.
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
 * Queues a forward pass over the contents of the arguments.
 *
 * If shapes of nodes depend on values, the call waits for these values, and returns errors of the work that computes
 * them. Then it binds the nodes that follow for the shapes found. The bindings for the latest shapes are kept, so a
 * shape that was seen before costs nothing.
 *
 * @param is_train  1: training behaviour, and what backward needs is kept; 0: inference, which does neither, though a
 *                  backward may follow. Inference writes nothing but outputs, unless a custom operator's `forward`
 *                  writes its auxiliary states (custom.h). Training updates the auxiliary states of layers that have,
 *                  or come after, an argument with a gradient; frozen layers keep theirs.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_forward(cohort_executor *executor, cohort_bool is_train);

/**
 * Runs one step of a forward pass: completes node `step` of the symbol's JSON, whatever the plan fuses.
 *
 * Steps may be repeated or skipped; each uses the current contents of its inputs. The first step after
 * cohort_executor_forward(), or after a backward pass with backward_once, also runs the steps before it. After all
 * steps, outputs are as after cohort_executor_forward(), except for the rounding of operators that would have been
 * fused, and backward may follow.
 *
 * If shapes of nodes depend on values: COHORT_ERROR_UNSUPPORTED.
 *
 * @param step           From 0. Beyond the last node, or negative, nothing runs.
 * @param out_step_left  How many nodes come after this one; 0 beyond the last.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_partial_forward(cohort_executor *executor,
                                                                           cohort_bool is_train, int32_t step,
                                                                           int32_t *out_step_left);

/**
 * Queues a backward pass from the latest forward pass; it may be repeated. A gradient that needs the value of an
 * argument uses its value at this call. Without any gradient array the call does nothing.
 *
 * The gradients of a value that several nodes read are added up as they are computed, in memory that does not grow with
 * the number of nodes. Those of 16 bits are added in float32, and the sum on a device is rounded once.
 *
 * @param head_grads  @nullable @null_entries One for each output, of its shape, on any context, of any dtype. An entry
 *                    may be NULL, or missing at the end, if the output needs none: a loss, or an output that no
 *                    argument with a gradient array contributes to differentiably. NULL with num_head_grads 0: none.
 * @param is_train    As for the forward pass before. If either is 0, the gradients are those of inference: the forward
 *                    pass is run again in inference, and from then on is the latest forward pass, from which the
 *                    outputs are.
 * @return NULL, or
 *   COHORT_ERROR_INVALID_ARGUMENT  more head gradients than outputs, or none where one is needed (the error names the
 *                                  output)
 *   COHORT_ERROR_SHAPE             another shape than the output's
 *   COHORT_ERROR_STATE             no forward pass since binding; another executor of the family has run since then and
 *                                  has overwritten what backward needs
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_backward(cohort_executor *executor,
                                                                    cohort_ndarray *const *head_grads,
                                                                    size_t num_head_grads, cohort_bool is_train);

/** Waits for all queued work. COHORT_ERROR_EXECUTION if some failed; the executor stays usable. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_wait(cohort_executor *executor);

/**
 * Is shown an array as it is computed.
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
 * Shows every operator's outputs to a callback, in the order of execution, under the names of the symbol as bound,
 * whatever the plan fuses. Results do not change, except for the rounding of operators that would have been fused.
 * Passes wait for their work while a callback is set.
 *
 * @param callback     @nullable Replaces the previous callback; NULL: none. A reshaped executor takes it over, and
 *                     calls it with the same user_data even after this executor was freed.
 * @param user_data    Passed to the callback.
 * @param monitor_all  1: the inputs of each operator too, before its outputs.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_set_monitor(cohort_executor *executor,
                                                                       cohort_monitor_fn callback, void *user_data,
                                                                       cohort_bool monitor_all);

/**
 * Reads the state of the random operators (Dropout, samplers, ...): which numbers each draws next. Waits for queued
 * work.
 *
 * @param out_data  @nullable NULL: only the size is wanted.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_random_state(const cohort_executor *executor, void *out_data,
                                                                        size_t capacity, size_t *out_bytes);

/**
 * Sets the state of the random operators: they draw the numbers that the executor would have drawn from which it was
 * read. Waits for queued work. Executors that were reshaped from one another have one state.
 *
 * @param data  `bytes` bytes that cohort_executor_random_state() gave. They are not kept.
 * @return NULL, or, with nothing set, COHORT_ERROR_FORMAT (damaged), COHORT_ERROR_NAME (the state of another network),
 *   COHORT_ERROR_INVALID_ARGUMENT (of several devices).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_set_random_state(cohort_executor *executor, const void *data,
                                                                            size_t bytes);

/**
 * The plan as text for a person, valid until this is called again. It lists the nodes, then the steps of the pass that
 * ran last: what each step computes and moves, the least time that the machine would take for it, whether flops or
 * bytes decide that time, and the mean time it took while a trace ran (trace.h). The speed of the machine is measured
 * when this is first called, in about a tenth of a second. A node that works in a narrower type than the network's has
 * a line `Computes in bfloat16`. Nodes that come after one whose shape depends on values have no plan before the first
 * forward. The last two lines are `Total X MB allocated` and `Total 11 TempSpace resource requested`, as MXNet's are; X
 * is the planned memory in whole MiB.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_debug_text(const cohort_executor *executor,
                                                                      const char **out_text);

/** The memory that the executor takes, shared memory included. struct_size of *out_info is set by the caller. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_executor_memory(const cohort_executor *executor,
                                                                  cohort_memory_info *out_info);

COHORT_END_DECLS

#endif /* COHORT_EXECUTOR_H */
