// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import com.sun.jna.Pointer;

/** The functions of cohort/operator.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortOperator {
    private CohortOperator() {
    }

    static {
        Loader.register(CohortOperator.class);
    }

    /**
     * COHORT_INVOKE_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
     */
    public static native void cohort_invoke_options_init(Structs.InvokeOptions options, long struct_size);

    /**
     * An attribute.
     * @param out_name may be NULL.
     * @param out_type may be NULL. As MXNet writes it: "int", "float", "boolean", "Shape(tuple)", "{'relu', 'tanh'}"...
     * @param out_default may be NULL, NULL may come out. The default as text; NULL if a value is required.
     * @param out_doc may be NULL.
     */
    public static native long cohort_operator_attr(String op, long index, long[] out_name, long[] out_type, long[] out_default, long[] out_doc);

    /**
     * The range of numbers that an attribute, or each entry of a tuple, may have.
     * @param out_low may be NULL. The least number; -infinity if there is no bound, and for attributes that are not numbers.
     * @param out_high may be NULL. The largest number; infinity likewise. A default with a meaning of its own may lie outside.
     */
    public static native long cohort_operator_attr_range(String op, long index, double[] out_low, double[] out_high);

    /**
     * Describes an operator.
     * @param out_canonical may be NULL. Its name in JSON: op itself if op is not an alias.
     * @param out_doc may be NULL. One sentence or more.
     * @param out_num_attrs may be NULL. The number of its attributes.
     * @param out_num_inputs may be NULL. The number of inputs declared, auxiliary states included. If it takes any number of inputs, the first stands for all of them, and further ones are inputs that it has instead with some attributes (UpSampling has `data` and `weight` if it is bilinear).
     * @param out_num_outputs may be NULL. The number of its outputs with all attributes at their defaults, hidden ones included.
     * @param out_count_attr may be NULL. If it takes any number of inputs, the attribute that counts them ("num_args"); else "". "__num_inputs__" if MXNet has no such attribute: it is taken, and not kept.
     */
    public static native long cohort_operator_info(String op, long[] out_canonical, long[] out_doc, long[] out_num_attrs, long[] out_num_inputs, long[] out_num_outputs, long[] out_count_attr);

    /**
     * An input. Which ones a node has can depend on its attributes (no bias with `no_bias`).
     * @param out_name may be NULL.
     * @param out_doc may be NULL.
     * @param out_is_aux may be NULL. 1 if it is an auxiliary state, which the operator updates.
     */
    public static native long cohort_operator_input(String op, long index, long[] out_name, long[] out_doc, int[] out_is_aux);

    /**
     * Whether a gradient flows to an input, with all attributes at their defaults: 1 or 0. If the operator does not have
     * the input then (gamma of LeakyReLU), with the first value of an enumerated or boolean attribute for which the
     * operator has this input.
     */
    public static native long cohort_operator_input_gradient(String op, long index, int[] out_has_gradient);

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
     *
     * Ownership: the work holds references on the arrays; the caller may free its handles at once. Memory lent by
     * cohort_ndarray_wrap() must keep its contents until an output has been waited for.
     *
     * Threads: any, and several at a time on different arrays, or on the same arrays if none of them is written.
     * Returns: NULL, or
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
     * @param keys The operator's attributes as text.
     * @param inputs Arguments, then auxiliary states, in the operator's order. Those that the operator updates (the states of an optimizer's operator) are written.
     * @param outputs may be NULL. Arrays to write the outputs to, of the right shapes and dtypes. They may be inputs, or views that overlap inputs or each other: the result is as if all outputs were computed first, and then written one after the other. NULL with num_outputs 0: new ones.
     * @param options may be NULL. NULL: all defaults.
     * @param out_outputs may be NULL. The outputs in order, given or new. NULL only if outputs are given.
     */
    public static native long cohort_operator_invoke(String op, Pointer keys, Pointer values, long num_attrs, long[] inputs, long num_inputs, long[] outputs, long num_outputs, Structs.InvokeOptions options, long[] out_outputs);

    /** A name of that sorted list. */
    public static native long cohort_operator_name(long index, long[] out_name);

    /** How many operator names there are, aliases included. */
    public static native long cohort_operator_num(long[] out_num);

    /** The name that an output has with all attributes at their defaults. */
    public static native long cohort_operator_output(String op, long index, long[] out_name);

    /**
     * The COHORT_PRECISION_ constant of an operator. Options of a network can override it (executor.h, float32_names).
     */
    public static native long cohort_operator_precision(String op, int[] out_precision);
}
