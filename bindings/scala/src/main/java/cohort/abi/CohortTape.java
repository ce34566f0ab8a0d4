// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import com.sun.jna.Pointer;

/** The functions of cohort/tape.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortTape {
    private CohortTape() {
    }

    static {
        Loader.register(CohortTape.class);
    }

    /**
     * COHORT_BACKWARD_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
     */
    public static native void cohort_backward_options_init(Structs.BackwardOptions options, long struct_size);

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
     * Returns: NULL, or
     *   COHORT_ERROR_STATE             a head is not in a recorded graph, maybe because a backward pass has been through
     *                                  it; an array that is needed was overwritten; nothing was computed
     *   COHORT_ERROR_SHAPE, _DTYPE, _DEVICE  a head gradient that does not fit its head; nothing was computed
     *   COHORT_ERROR_UNSUPPORTED       an earlier pass with create_graph recorded the gradient of an operator, which has no
     *                                  gradient itself, such as that of RNN, CTCLoss, samplers and Correlation (the error
     *                                  names it)
     *   COHORT_ERROR_EXECUTION         a custom function failed
     * After the last two, gradients may have been written in part, and the graph is retained.
     * @param heads Marked arrays, or outputs of recorded operators.
     * @param head_grads may be NULL, entries may be NULL. For each the head gradient, of its shape, dtype and context. NULL entries, or NULL for all: ones.
     * @param options may be NULL. NULL: all defaults.
     */
    public static native long cohort_tape_backward(long tape, long[] heads, long[] head_grads, long num_heads, Structs.BackwardOptions options);

    /** Makes a tape that records, in training mode. */
    public static native long cohort_tape_create(long[] out_tape);

    /**
     * Frees a tape and what it keeps; arrays in handles stay. NULL does nothing.
     * @param tape may be NULL.
     */
    public static native void cohort_tape_free(long tape);

    /**
     * Records a function that the host has computed itself, with a callback for its gradients.
     *
     * Does nothing but call `release` if the tape is paused or knows none of the inputs.
     * Returns: NULL, or an error of cohort_tape_invoke(); then neither callback is ever called.
     * @param inputs The arrays that the function was computed from.
     * @param outputs The arrays that it computed; none of them is an input or marked.
     * @param backward Computes the gradients.
     * @param release may be NULL. Called once, when backward will not be called any more.
     * @param user_data may be NULL. Passed to both.
     */
    public static native long cohort_tape_function(long tape, long[] inputs, long num_inputs, long[] outputs, long num_outputs, Callbacks.TapeFunctionFn backward, Callbacks.TapeReleaseFn release, long user_data);

    /**
     * As cohort_tape_backward(), but only for the given arrays, whose gradients are new arrays; gradient arrays of marks
     * are not written.
     * Returns: As cohort_tape_backward(), and COHORT_ERROR_STATE for a variable that is not in a recorded graph,
     *   COHORT_ERROR_INVALID_ARGUMENT for one that is a part of an array that the tape knows
     * @param heads Marked arrays, or outputs of recorded operators.
     * @param head_grads may be NULL, entries may be NULL. For each the head gradient, of its shape, dtype and context. NULL entries, or NULL for all: ones.
     * @param variables Marked arrays, or outputs of recorded operators.
     * @param options may be NULL. NULL: all defaults.
     * @param out_gradients A gradient for each variable; zeros if no head depends on it.
     */
    public static native long cohort_tape_grad(long tape, long[] heads, long[] head_grads, long num_heads, long[] variables, long num_variables, Structs.BackwardOptions options, long[] out_gradients);

    /**
     * Applies an operator to arrays as cohort_operator_invoke() does, and records it.
     * Returns: NULL, or an error of cohort_operator_invoke(), or
     *   COHORT_ERROR_INVALID_ARGUMENT  an input shares only some of its elements with an array that the tape knows; an
     *                                  output is a marked array and the operator would be recorded
     *   COHORT_ERROR_STATE             an input, or the array that it is a part of, was overwritten after it had been
     *                                  recorded
     * @param keys The operator's attributes as text.
     * @param inputs Arguments, then auxiliary states, in the operator's order. Those that the operator updates (the states of an optimizer's operator) are written.
     * @param outputs may be NULL. Arrays to write the outputs to, of the right shapes and dtypes. They may be inputs, or views that overlap inputs or each other: the result is as if all outputs were computed first, and then written one after the other. NULL with num_outputs 0: new ones.
     * @param options may be NULL. As for cohort_operator_invoke(), except is_train, which must be 0: the mode of the tape decides. A random operator draws the same numbers from the same seed whether or not it is recorded.
     * @param out_outputs may be NULL. The outputs in order, given or new. NULL only if outputs are given.
     */
    public static native long cohort_tape_invoke(long tape, String op, Pointer keys, Pointer values, long num_attrs, long[] inputs, long num_inputs, long[] outputs, long num_outputs, Structs.InvokeOptions options, long[] out_outputs);

    /** Whether the tape records. */
    public static native long cohort_tape_is_recording(long tape, int[] out_recording);

    /** Whether operators are applied in training mode. */
    public static native long cohort_tape_is_training(long tape, int[] out_training);

    /**
     * Marks arrays that get gradients. From here on each is a variable: gradients flow to it, and not to what it was made
     * from. Marking a marked array replaces its gradient and request; COHORT_GRAD_NULL removes the mark.
     * Returns: NULL, or, with nothing marked,
     *   COHORT_ERROR_SHAPE, _DTYPE, _DEVICE  a gradient that does not fit its array, or an array of integers
     *   COHORT_ERROR_INVALID_ARGUMENT        an array that is a part of one that the tape knows, or of another of these
     * @param arrays Arrays of floating types. An array that was made by a recorded operator becomes a variable of its own.
     * @param gradients may be NULL, entries may be NULL. For each the array that takes its gradient, of its shape, dtype and context. NULL entries, or NULL for all: no such array; the mark is only for cohort_tape_grad(). Not read with COHORT_GRAD_NULL.
     * @param grad_reqs may be NULL. For each a COHORT_GRAD_ constant; NULL: COHORT_GRAD_WRITE for all.
     */
    public static native long cohort_tape_mark(long tape, long[] arrays, long[] gradients, int[] grad_reqs, long num_arrays);

    /**
     * How much the tape has recorded: operators and functions that a gradient could still flow through, marked arrays not
     * counted.
     */
    public static native long cohort_tape_num_recorded(long tape, long[] out_num);

    /**
     * Pauses or resumes recording: while it is paused, operators are applied without being recorded.
     * @param recording 0 or 1.
     * @param out_previous may be NULL. What it was before.
     */
    public static native long cohort_tape_set_recording(long tape, int recording, int[] out_previous);

    /**
     * Sets the mode in which operators are applied from now on, recorded or not.
     *
     * The gradient of an operator is that of the mode in which it was applied, whatever the mode is when backward runs: a
     * backward pass has no mode of its own, unlike MXNet's with its train_mode.
     *
     * In training, the moving statistics of a layer (BatchNorm, IdentityAttachKLSparseReg) move only if the layer is
     * recorded and a gradient flows back from it to a marked array; those of a frozen layer stay.
     * @param training 1: training, which Dropout and BatchNorm treat differently; 0: prediction.
     * @param out_previous may be NULL. What it was before.
     */
    public static native long cohort_tape_set_training(long tape, int training, int[] out_previous);

    /**
     * Makes a symbol that computes an array as it was computed. It has a variable "var0", "var1", ... for each marked array
     * and each constant, in the order in which they were first used.
     * Returns: NULL, or
     *   COHORT_ERROR_STATE        the array is not in a recorded graph
     *   COHORT_ERROR_UNSUPPORTED  it was made by a function of the host, or by a gradient that is not an operator
     */
    public static native long cohort_tape_symbol(long tape, long array, long[] out_symbol);
}
