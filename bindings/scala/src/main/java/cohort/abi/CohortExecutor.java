// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import java.nio.Buffer;

/** The functions of cohort/executor.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortExecutor {
    private CohortExecutor() {
    }

    static {
        Loader.register(CohortExecutor.class);
    }

    /**
     * A handle on a live array. Outputs are zeros before the first forward.
     *
     * An output that depends on a node whose shape depends on values (`_contrib_boolean_mask`, `_npx_nonzero`,
     * `_cvimdecode`) has no array before the first forward. Each forward gives it an array of the shape that was found,
     * which can be another array than before.
     * @param out_array NULL may come out. NULL for an argument without gradient, and for an output that has no array yet.
     */
    public static native long cohort_executor_array(long executor, int list, long index, long[] out_array);

    /**
     * As cohort_executor_array(), by name. Unknown or ambiguous: COHORT_ERROR_NAME.
     * @param out_array NULL may come out. NULL for an argument without gradient, and for an output that has no array yet.
     */
    public static native long cohort_executor_array_named(long executor, int list, String name, long[] out_array);

    /** All live arrays of a list, with their names. */
    public static native long cohort_executor_arrays(long executor, int list, long[] out_arrays);

    /**
     * Queues a backward pass from the latest forward pass; it may be repeated. A gradient that needs the value of an
     * argument uses its value at this call. Without any gradient array the call does nothing.
     *
     * The gradients of a value that several nodes read are added up as they are computed, in memory that does not grow with
     * the number of nodes. Those of 16 bits are added in float32, and the sum on a device is rounded once.
     * Returns: NULL, or
     *   COHORT_ERROR_INVALID_ARGUMENT  more head gradients than outputs, or none where one is needed (the error names the
     *                                  output)
     *   COHORT_ERROR_SHAPE             another shape than the output's
     *   COHORT_ERROR_STATE             no forward pass since binding; another executor of the family has run since then and
     *                                  has overwritten what backward needs
     * @param head_grads may be NULL, entries may be NULL. One for each output, of its shape, on any context, of any dtype. An entry may be NULL, or missing at the end, if the output needs none: a loss, or an output that no argument with a gradient array contributes to differentiably. NULL with num_head_grads 0: none.
     * @param is_train As for the forward pass before. If either is 0, the gradients are those of inference: the forward pass is run again in inference, and from then on is the latest forward pass, from which the outputs are.
     */
    public static native long cohort_executor_backward(long executor, long[] head_grads, long num_head_grads, int is_train);

    /**
     * Binds a symbol to given arrays. They are referenced, not copied: the next forward reads what the caller writes there.
     * Returns: NULL, or
     *   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of arrays, an array missing, or a gradient to be written whose memory
     *                                  another array uses, too (the error names both)
     *   COHORT_ERROR_SHAPE, _DTYPE     an array does not fit (the error names node and input, or the gradient)
     *   COHORT_ERROR_DEVICE            an array on another context (the error names both), a node's `__ctx_group__` that is
     *                                  not among the names given, or no such device
     *   COHORT_ERROR_UNSUPPORTED       no kernel for a node on its device with its dtypes
     * @param context may be NULL. The default context. NULL: cpu(0). Without ctx groups all arrays must be on it; with them, a variable is where its array is, and nodes without a group run where their inputs are.
     * @param args One for each argument, in order. The same array, or parts of it, may serve several arguments: later nodes then read what an earlier node writes there.
     * @param grads may be NULL, entries may be NULL. One for each argument, NULL for an argument without gradient. NULL: no gradients at all. An array with COHORT_GRAD_WRITE shares no memory with other gradients, arguments or auxiliary states; parts of one block that do not overlap are fine. Arrays with COHORT_GRAD_ADD may be the same one, which then gets the sum.
     * @param grad_req may be NULL. COHORT_GRAD_ constants, one for each argument; NULL: COHORT_GRAD_WRITE where there is an array. COHORT_GRAD_NULL with an array: it is never written.
     * @param aux One for each auxiliary state, in order.
     * @param options may be NULL. NULL: all defaults.
     */
    public static native long cohort_executor_bind(long symbol, Structs.Context context, long[] args, long num_args, long[] grads, int[] grad_req, long[] aux, long num_aux, Structs.ExecutorOptions options, long[] out_executor);

    /** The default context. */
    public static native long cohort_executor_context(long executor, Structs.Context out_context);

    /**
     * Copies parameters into arguments and auxiliary states by name, converting dtypes. Queued. All are checked first: on
     * an error nothing is copied.
     * @param arg_params Named arrays; arguments not named keep their values.
     * @param aux_params may be NULL. The same for auxiliary states; NULL: none.
     * @param allow_extra 1: unknown names are skipped; 0: they are COHORT_ERROR_NAME.
     */
    public static native long cohort_executor_copy_params_from(long executor, long arg_params, long aux_params, int allow_extra);

    /**
     * The plan as text for a person, valid until this is called again. It lists the nodes, then the steps of the pass that
     * ran last: what each step computes and moves, the least time that the machine would take for it, whether flops or
     * bytes decide that time, and the mean time it took while a trace ran (trace.h). The speed of the machine is measured
     * when this is first called, in about a tenth of a second. A node that works in a narrower type than the network's has
     * a line `Computes in bfloat16`. Nodes that come after one whose shape depends on values have no plan before the first
     * forward. The last two lines are `Total X MB allocated` and `Total 11 TempSpace resource requested`, as MXNet's are; X
     * is the planned memory in whole MiB.
     */
    public static native long cohort_executor_debug_text(long executor, long[] out_text);

    /**
     * Queues a forward pass over the contents of the arguments.
     *
     * If shapes of nodes depend on values, the call waits for these values, and returns errors of the work that computes
     * them. Then it binds the nodes that follow for the shapes found. The bindings for the latest shapes are kept, so a
     * shape that was seen before costs nothing.
     * @param is_train 1: training behaviour, and what backward needs is kept; 0: inference, which does neither, though a backward may follow. Inference writes nothing but outputs, unless a custom operator's `forward` writes its auxiliary states (custom.h). Training updates the auxiliary states of layers that have, or come after, an argument with a gradient; frozen layers keep theirs.
     */
    public static native long cohort_executor_forward(long executor, int is_train);

    /**
     * Frees a handle; NULL does nothing. Freeing the last one waits for queued work. Arrays that were handed out stay.
     * @param executor may be NULL.
     */
    public static native void cohort_executor_free(long executor);

    /** How backward treats the gradient of an argument: a COHORT_GRAD_ constant. */
    public static native long cohort_executor_grad_req(long executor, long index, int[] out_grad_req);

    /**
     * The memory that the executor takes, shared memory included. struct_size of *out_info is set by the caller.
     */
    public static native long cohort_executor_memory(long executor, Structs.MemoryInfo out_info);

    /** The name of an array in a list; a gradient has the name of its argument. */
    public static native long cohort_executor_name(long executor, int list, long index, long[] out_name);

    /**
     * The length of a list: `list` is a COHORT_EXECUTOR_ constant. COHORT_EXECUTOR_GRADS is as long as the arguments.
     */
    public static native long cohort_executor_num_arrays(long executor, int list, long[] out_num);

    /**
     * COHORT_EXECUTOR_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
     */
    public static native void cohort_executor_options_init(Structs.ExecutorOptions options, long struct_size);

    /**
     * Runs one step of a forward pass: completes node `step` of the symbol's JSON, whatever the plan fuses.
     *
     * Steps may be repeated or skipped; each uses the current contents of its inputs. The first step after
     * cohort_executor_forward(), or after a backward pass with backward_once, also runs the steps before it. After all
     * steps, outputs are as after cohort_executor_forward(), except for the rounding of operators that would have been
     * fused, and backward may follow.
     *
     * If shapes of nodes depend on values: COHORT_ERROR_UNSUPPORTED.
     * @param step From 0. Beyond the last node, or negative, nothing runs.
     * @param out_step_left How many nodes come after this one; 0 beyond the last.
     */
    public static native long cohort_executor_partial_forward(long executor, int is_train, int step, int[] out_step_left);

    /**
     * Reads the state of the random operators (Dropout, samplers, ...): which numbers each draws next. Waits for queued
     * work.
     * @param out_data may be NULL. NULL: only the size is wanted.
     */
    public static native long cohort_executor_random_state(long executor, Buffer out_data, long capacity, long[] out_bytes);

    /**
     * Makes an executor of the same symbol for other shapes. It shares the memory of this one, which stays usable; both are
     * of one family.
     *
     * An argument that keeps its shape is shared. One that shrinks uses the first part of its memory, and so does its
     * gradient.
     * Returns: NULL, or
     *   COHORT_ERROR_SHAPE   shapes that cannot be inferred or contradict; an argument that was not named changes shape; an
     *                        argument grows without allow_up_sizing
     *   COHORT_ERROR_DEVICE  an array is on another context than the options place it on; a group without a context
     * @param known Shapes by name, from which all others are inferred; the bound shapes are not used. Unknown names are ignored.
     * @param options may be NULL. NULL: all defaults.
     */
    public static native long cohort_executor_reshape(long executor, long known, Structs.ReshapeOptions options, long[] out_executor);

    /**
     * Copies arrays into arguments by name, converting dtypes. Queued. All are checked first: on an error nothing is
     * copied.
     * Returns: NULL, or COHORT_ERROR_NAME (no such argument), COHORT_ERROR_SHAPE.
     * @param inputs Named arrays on any contexts.
     */
    public static native long cohort_executor_set_inputs(long executor, long inputs);

    /**
     * Shows every operator's outputs to a callback, in the order of execution, under the names of the symbol as bound,
     * whatever the plan fuses. Results do not change, except for the rounding of operators that would have been fused.
     * Passes wait for their work while a callback is set.
     * @param callback may be NULL. Replaces the previous callback; NULL: none. A reshaped executor takes it over, and calls it with the same user_data even after this executor was freed.
     * @param user_data may be NULL. Passed to the callback.
     * @param monitor_all 1: the inputs of each operator too, before its outputs.
     */
    public static native long cohort_executor_set_monitor(long executor, Callbacks.MonitorFn callback, long user_data, int monitor_all);

    /**
     * Sets the state of the random operators: they draw the numbers that the executor would have drawn from which it was
     * read. Waits for queued work. Executors that were reshaped from one another have one state.
     * Returns: NULL, or, with nothing set, COHORT_ERROR_FORMAT (damaged), COHORT_ERROR_NAME (the state of another network),
     *   COHORT_ERROR_INVALID_ARGUMENT (of several devices).
     * @param data `bytes` bytes that cohort_executor_random_state() gave. They are not kept.
     */
    public static native long cohort_executor_set_random_state(long executor, Buffer data, long bytes);

    /**
     * Binds a symbol to new arrays of zeros.
     * Returns: NULL, or
     *   COHORT_ERROR_SHAPE, _DTYPE     some cannot be inferred (the error lists the arguments), or they contradict (the
     *                                  error names the node); a shared array does not fit
     *   COHORT_ERROR_INVALID_ARGUMENT  grad_req: a wrong number, an empty list, or another word
     *   COHORT_ERROR_NAME              two arguments of one name; shared_executor has no argument of a shared name
     *   COHORT_ERROR_DEVICE            as for cohort_executor_bind()
     *   COHORT_ERROR_UNSUPPORTED       as for cohort_executor_bind(); sparse storage (the error names the variable)
     * @param context may be NULL. The default context. NULL: cpu(0).
     * @param known may be NULL. Shapes and dtypes of arguments and auxiliary states, by name; either may be left open. Length 0 is not known. They override `__shape__` and `__dtype__` of the symbol. Other names are ignored. NULL: none.
     * @param options may be NULL. NULL: all defaults.
     */
    public static native long cohort_executor_simple_bind(long symbol, Structs.Context context, long known, Structs.ExecutorOptions options, long[] out_executor);

    /** A handle on a copy of the symbol that was bound. */
    public static native long cohort_executor_symbol(long executor, long[] out_symbol);

    /** Waits for all queued work. COHORT_ERROR_EXECUTION if some failed; the executor stays usable. */
    public static native long cohort_executor_wait(long executor);

    /**
     * COHORT_RESHAPE_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
     */
    public static native void cohort_reshape_options_init(Structs.ReshapeOptions options, long struct_size);
}
