// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import com.sun.jna.Pointer;
import java.nio.Buffer;

/** The functions of cohort/group.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortGroup {
    private CohortGroup() {
    }

    static {
        Loader.register(CohortGroup.class);
    }

    /**
     * A handle on the live array of one device.
     * Returns: NULL, or COHORT_ERROR_STATE: COHORT_GROUP_INPUT_GRADS of a group bound without them.
     * @param out_array NULL may come out. NULL for a parameter without gradient. Outputs and gradients are zeros before the first pass (except outputs of a group that shares the memory of one that has run). Outputs are valid until the next forward pass of the group or one that shares its memory. For outputs whose shape depends on values see cohort_executor_array().
     */
    public static native long cohort_group_array(long group, int list, long index, long device, long[] out_array);

    /** As cohort_group_array(), for a whole list on one device, names included. */
    public static native long cohort_group_arrays(long group, int list, long device, long[] out_arrays);

    /**
     * As cohort_group_set_params(), but it reports parameters and auxiliary states that are not given.
     * @param arg_params Named arrays on any contexts, for any arguments; arguments that are not named keep their values.
     * @param aux_params may be NULL. The same for auxiliary states; NULL: none.
     * @param allow_missing 1: parameters and auxiliary states that are not given keep their values; 0: they are COHORT_ERROR_NAME (the error lists them), and nothing is copied.
     * @param allow_extra 1: unknown names are skipped; 0: they are COHORT_ERROR_NAME.
     * @param out_missing may be NULL. Those that were not given: names, shapes and dtypes in the order of the symbol's lists.
     */
    public static native long cohort_group_assign_params(long group, long arg_params, long aux_params, int allow_missing, int allow_extra, long[] out_missing);

    /**
     * The batch axis of an entry of COHORT_GROUP_DATA, _LABELS, _OUTPUTS or _INPUT_GRADS; -1 if not batched. For an output
     * the `__layout__` attribute of its node decides; without one it is 0.
     */
    public static native long cohort_group_axis(long group, int list, long index, int[] out_axis);

    /**
     * Queues a backward pass from the latest forward pass, on every device; gradients are those of each device's slice. The
     * sums over the devices that cohort_group_update() needs start while it runs.
     * Returns: NULL, or
     *   COHORT_ERROR_STATE             not bound for training; no forward pass since binding, or the latest one failed; a
     *                                  group that shares its memory has run since then
     *   COHORT_ERROR_INVALID_ARGUMENT  more head gradients than outputs, or none where one is needed (the error names the
     *                                  output)
     *   COHORT_ERROR_SHAPE             another shape than the merged output's
     * @param head_grads may be NULL, entries may be NULL. One for each output, of the merged output's shape; each device gets its slice, or the whole array if the output has no batch axis. An entry may be NULL, or missing at the end, if the output needs none: a loss, or an output that no argument with a gradient array contributes to differentiably. NULL with num_head_grads 0: none.
     */
    public static native long cohort_group_backward(long group, long[] head_grads, long num_head_grads);

    /** The batch size; 0 if no descriptor has a batch axis. */
    public static native long cohort_group_batch_size(long group, long[] out_batch_size);

    /**
     * Binds a bound group from scratch: to new arrays of zeros. Only the group's settings are kept, with the arrays of
     * arg_params and aux_params among them, which keep their values.
     * Returns: NULL, or, with the group as before, what cohort_group_create() returns, or
     *   COHORT_ERROR_STATE  rebind is 0; the group is a manager's, which alone binds its groups
     * @param data As for cohort_group_create(). Descriptors of the data of the whole batch, at least one. Each name is an argument.
     * @param label may be NULL. As for cohort_group_create(). The same for labels; NULL or empty: none. Label arguments are then like any other.
     * @param shared_group may be NULL. As in cohort_group_options; NULL: none.
     * @param rebind 1: bind again; 0: refuse (COHORT_ERROR_STATE), for callers that expect a group which is not bound yet.
     */
    public static native long cohort_group_bind(long group, long data, long label, long shared_group, int rebind);

    /** The context of a device. */
    public static native long cohort_group_context(long group, long device, Structs.Context out_context);

    /** As cohort_group_get_params(), into new arrays on cpu(0), in the order of the symbol's lists. */
    public static native long cohort_group_copy_params(long group, long[] out_arg_params, long[] out_aux_params);

    /**
     * Makes a group and binds it: one executor for each context, all arrays zeros.
     * Returns: NULL, or
     *   COHORT_ERROR_INVALID_ARGUMENT  no context or no data; a slice would be empty; a count or word in the options
     *   COHORT_ERROR_NAME              a descriptor's or state's name is no argument or comes twice; two arguments or two
     *                                  auxiliary states have one name; shared_group lacks a parameter; with strict_names a
     *                                  name that would be ignored
     *   COHORT_ERROR_SHAPE             descriptors with other batch sizes; shapes that contradict (the error names the
     *                                  node) or cannot be inferred (it lists the arguments); other shapes than
     *                                  shared_group's
     *   COHORT_ERROR_DTYPE             the same for dtypes
     *   COHORT_ERROR_DEVICE            no such device; a `__ctx_group__` that is not among the names given
     *   COHORT_ERROR_UNSUPPORTED       no kernel for a node on its device with its dtypes
     * @param contexts num_contexts of them, at least 1. The same one twice gives two executors.
     * @param data Descriptors of the data of the whole batch, at least one. Each name is an argument.
     * @param label may be NULL. The same for labels; NULL or empty: none. Label arguments are then like any other.
     * @param param_names may be NULL. The parameters. Names that are not arguments: see strict_names. NULL with num_param_names 0: all arguments except data, labels (also those of losses that have no descriptor) and states.
     * @param for_training 0: no gradients at all, whatever the options say; 1: as they say.
     * @param options may be NULL. NULL: all defaults.
     */
    public static native long cohort_group_create(long symbol, Structs.Context contexts, long num_contexts, long data, long label, Pointer param_names, long num_param_names, int for_training, Structs.GroupOptions options, long[] out_group);

    /**
     * The batch axis of each descriptor, checked against the group's batch size.
     * Returns: NULL, or COHORT_ERROR_SHAPE (the error names the descriptor, its shape and the batch size).
     * @param descs At least one.
     * @param out_axes One for each descriptor: the axis, -1 if it is not batched.
     */
    public static native long cohort_group_decide_slices(long group, long descs, int[] out_axes);

    /** The bound descriptors: `list` is COHORT_GROUP_DATA or COHORT_GROUP_LABELS. */
    public static native long cohort_group_descs(long group, int list, long[] out_descs);

    /**
     * A handle on the current executor of a device; reshaping the group makes new ones. If layers exchange statistics with
     * the other devices (_contrib_SyncBatchNorm), the executor cannot train alone: COHORT_ERROR_STATE.
     */
    public static native long cohort_group_executor(long group, long device, long[] out_executor);

    /**
     * Loads a batch and runs the forward pass: cohort_group_load(), then cohort_group_run().
     * Returns: NULL, or what these return; COHORT_ERROR_INVALID_ARGUMENT also if the group has labels, is_train is 1 and
     *   label is NULL. Nothing was queued then.
     */
    public static native long cohort_group_forward(long group, long[] data, long num_data, long[] label, long num_label, int is_train);

    /**
     * As cohort_group_forward(), with a batch that is split already.
     * @param num_slices The number of contexts.
     * @param data num_slices * num_data arrays: all of device 0 in the order of the descriptors, then all of device 1. Each has its device's shape.
     * @param label may be NULL. num_slices * num_label arrays likewise; NULL with num_label 0.
     */
    public static native long cohort_group_forward_presliced(long group, long num_slices, long[] data, long num_data, long[] label, long num_label, int is_train);

    /**
     * Frees a handle; NULL does nothing. Freeing the last one waits for queued work. Arrays that were handed out stay.
     * @param group may be NULL.
     */
    public static native void cohort_group_free(long group);

    /**
     * Writes the mean over the devices of each parameter and auxiliary state into given arrays, converting dtypes. Elements
     * that are equal on all devices stay as they are, bit for bit; others are summed in float64. Queued; with several
     * devices it waits for the work that computes them.
     * Returns: NULL, or COHORT_ERROR_NAME (a parameter has no target), COHORT_ERROR_SHAPE (a target has another shape; the
     *   shape of a parameter follows the batch, and the devices' slices differ in length); nothing is written then.
     * @param arg_params Named arrays on any contexts, at least one for each parameter; others are not touched.
     * @param aux_params may be NULL. The same for auxiliary states; NULL only if there are none.
     */
    public static native long cohort_group_get_params(long group, long arg_params, long aux_params);

    /**
     * Splits one batch over the devices and copies each slice to its device. Queued; runs nothing.
     *
     *
     * Ownership: the group takes its own references; the caller may free its handles at once. Memory lent by
     * cohort_ndarray_wrap() must keep its contents until the group has been waited for.
     * Returns: NULL, or, with nothing loaded,
     *   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of arrays
     *   COHORT_ERROR_SHAPE             an array of another shape (the error names it, expected and found)
     * @param data num_data arrays in the order of the data descriptors, each of the descriptor's full shape, batch axis included, of any dtype, on any context.
     * @param num_data The number of data descriptors.
     * @param label may be NULL. As data, for the label descriptors; NULL with num_label 0: labels stay as they are. A group bound without labels ignores them.
     * @param num_label The number of label descriptors, or 0.
     */
    public static native long cohort_group_load(long group, long[] data, long num_data, long[] label, long num_label);

    /**
     * The current loss scale of a group (loss_scale of its options), and its counts. It is saved with the states of the
     * optimizer (cohort_optimizer_loss_scale()).
     * @param out_scale may be NULL. The factor of the next backward pass; 1 if there is none.
     * @param out_num_good may be NULL. Updates made since it changed.
     * @param out_num_skipped may be NULL. Updates skipped since the group was made, or since the group was whose parameters it shares.
     */
    public static native long cohort_group_loss_scale(long group, double[] out_scale, int[] out_num_good, long[] out_num_skipped);

    /**
     * The memory that one device takes, shared memory included. struct_size of *out_info is set by the caller.
     */
    public static native long cohort_group_memory(long group, long device, Structs.MemoryInfo out_info);

    /**
     * One array for all devices, on the context of device 0: the devices' arrays joined along the batch axis in order.
     * Without a batch axis an output is that of device 0, and a gradient is the sum. Outputs whose shapes depend on values
     * are joined with the shape that each device has found.
     * Returns: NULL, or
     *   COHORT_ERROR_STATE          input gradients of a group bound without them
     *   COHORT_ERROR_SHAPE, _DTYPE  the devices' arrays do not fit together
     * @param list COHORT_GROUP_OUTPUTS or COHORT_GROUP_INPUT_GRADS. COHORT_GROUP_STATES: COHORT_ERROR_UNSUPPORTED.
     * @param out_array Read-only, and valid until the next forward pass; it may be a live array.
     */
    public static native long cohort_group_merged(long group, int list, long index, long[] out_array);

    /**
     * The name of an entry; a gradient has the name of its argument. Valid until the group is bound again, reshaped or
     * freed.
     */
    public static native long cohort_group_name(long group, int list, long index, long[] out_name);

    /** How many entries a list has: `list` is a COHORT_GROUP_ constant. */
    public static native long cohort_group_num_arrays(long group, int list, long[] out_num);

    /** The number of contexts. */
    public static native long cohort_group_num_contexts(long group, long[] out_num);

    /**
     * COHORT_GROUP_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
     */
    public static native void cohort_group_options_init(Structs.GroupOptions options, long struct_size);

    /**
     * Names, shapes and dtypes of the merged outputs, which are known before any forward pass. COHORT_ERROR_STATE if an
     * output depends on a node whose shape depends on values: only the forward pass of each device finds its shape.
     */
    public static native long cohort_group_output_shapes(long group, long[] out_descs);

    /**
     * Reads the state of the random operators of all devices, as cohort_executor_random_state().
     * @param out_data may be NULL. NULL: only the size is wanted.
     */
    public static native long cohort_group_random_state(long group, Buffer out_data, long capacity, long[] out_bytes);

    /**
     * Changes the shapes of the batch. Parameters, their gradients and auxiliary states keep their memory and values;
     * contents of data and labels are unspecified. Other gradients that outgrow their first shape start from zero. Nothing
     * happens if names, shapes, dtypes and layouts are the bound ones. Otherwise cohort_group_backward() and
     * cohort_group_update() are COHORT_ERROR_STATE until the passes before them have run again. The bindings for the latest
     * 16 different batches are kept: going back to one of them is cheap.
     * Returns: NULL, or, with the group as before, what cohort_group_create() returns, or
     *   COHORT_ERROR_SHAPE  a parameter would change shape
     *   COHORT_ERROR_DTYPE  a descriptor changes dtype
     *   COHORT_ERROR_STATE  the group is a manager's
     * @param data All descriptors, as for cohort_group_create(). Descriptors of the data of the whole batch, at least one. Each name is an argument.
     * @param label may be NULL. Likewise; NULL or empty drops the labels.
     */
    public static native long cohort_group_reshape(long group, long data, long label);

    /**
     * Sets what training goes on from beside parameters and the optimizer's states, as it was when the states were saved
     * that the optimizer has loaded: the state of random operators, the loss scale and, with keep_device_aux, the auxiliary
     * states of each device. Called before the first forward pass, after cohort_optimizer_load_states() and
     * cohort_group_set_params(): the group then trains on, to the bit, as the saved one would have on as many devices, with
     * the same batches; with COHORT_UPDATE_NO_STORE on one device only, as the parameters of several differ.
     * Returns: NULL, or, with nothing set,
     *   COHORT_ERROR_NAME              the states were saved with another network
     *   COHORT_ERROR_SHAPE             an auxiliary state has another shape
     *   COHORT_ERROR_INVALID_ARGUMENT  there are auxiliary states of another number of devices
     * @param optimizer Does nothing if it has loaded no states, or has updated a group since.
     */
    public static native long cohort_group_resume(long group, long optimizer);

    /**
     * Queues a forward pass over the loaded batch, on every device. Loading once and running twice is fine.
     * @param is_train 1: training behaviour, and what cohort_group_backward() needs is kept; 0: inference, after which a backward pass gives the gradients of inference; -1: as the group was bound.
     */
    public static native long cohort_group_run(long group, int is_train);

    /**
     * Sets the loss scale, and the number of updates made with it. Queued backward passes keep the factor that they were
     * queued with. With COHORT_GRAD_ADD, gradients that are there already are rescaled by the next backward pass.
     * Returns: NULL, or COHORT_ERROR_STATE if the group has no loss scale, COHORT_ERROR_INVALID_ARGUMENT for a number out of
     *   range.
     */
    public static native long cohort_group_set_loss_scale(long group, double scale, int num_good);

    /**
     * As cohort_executor_set_monitor(), on every device; device 0's calls come first. Reshaping keeps it.
     * @param callback may be NULL. Replaces the previous callback; NULL: none. A reshaped executor takes it over, and calls it with the same user_data even after this executor was freed.
     * @param user_data may be NULL. Passed to the callback.
     * @param monitor_all 1: the inputs of each operator too, before its outputs.
     */
    public static native long cohort_group_set_monitor(long group, Callbacks.MonitorFn callback, long user_data, int monitor_all);

    /**
     * Copies parameters to every device by name, converting dtypes. All are checked first: on an error nothing is copied.
     * Returns: NULL, or COHORT_ERROR_NAME, COHORT_ERROR_SHAPE (the error names the array).
     * @param arg_params Named arrays on any contexts, for any arguments; arguments that are not named keep their values.
     * @param aux_params may be NULL. The same for auxiliary states; NULL: none.
     * @param allow_extra 1: unknown names are skipped; 0: they are COHORT_ERROR_NAME.
     */
    public static native long cohort_group_set_params(long group, long arg_params, long aux_params, int allow_extra);

    /**
     * Sets the state of the random operators of all devices, as cohort_executor_set_random_state(). If the state is of
     * fewer devices, the others draw numbers of their own that they have not drawn before; if it is of more, the rest is
     * ignored.
     * Returns: NULL, or, with nothing set, COHORT_ERROR_FORMAT (damaged), COHORT_ERROR_NAME (the state of another network),
     *   COHORT_ERROR_INVALID_ARGUMENT (of no device).
     * @param data `bytes` bytes that cohort_group_random_state() or cohort_executor_random_state() gave. They are not kept.
     */
    public static native long cohort_group_set_random_state(long group, Buffer data, long bytes);

    /**
     * Sets the states of every device, converting dtypes. Queued. They stay until they are set again. Exactly one of
     * `states` and `value` is given:
     * Returns: NULL, or COHORT_ERROR_INVALID_ARGUMENT (both, neither, a wrong number), COHORT_ERROR_SHAPE; nothing is set
     *   then.
     * @param states may be NULL. num_states * num_devices arrays: state 0 of every device, then state 1. NULL: by value.
     * @param num_states The number of states.
     * @param num_devices The number of contexts.
     * @param value may be NULL. Fills all states. NULL: by states.
     */
    public static native long cohort_group_set_states(long group, long[] states, long num_states, long num_devices, double[] value);

    /** The pool of input arrays of a device, which all groups that share memory use: live arrays by name. */
    public static native long cohort_group_shared_data(long group, long device, long[] out_arrays);

    /**
     * The slice of a device: [*out_begin, *out_end). COHORT_ERROR_STATE if no descriptor has a batch axis.
     */
    public static native long cohort_group_slice(long group, long device, long[] out_begin, long[] out_end);

    /**
     * Descriptors as one device has them: the length of the batch axis is that of its slice.
     * @param axes may be NULL. The batch axis of each, -1 if not batched; NULL: by layout.
     */
    public static native long cohort_group_sliced_shape(long group, long descs, long device, int[] axes, long[] out_descs);

    /**
     * Updates every parameter that has a gradient, if any has. Queued.
     * Returns: NULL, or COHORT_ERROR_STATE if the group is not bound for training, has run no backward pass since it was
     *   bound or reshaped, or its latest one failed; COHORT_ERROR_SHAPE if gradients are to be summed, the shape of a
     *   parameter follows the batch, and the devices' slices differ in length.
     * @param optimizer Holds the states, by parameter name (and device, where each has its own). Used by one group at a time, or by groups that share parameters. A device for which it has no states yet, or those of another number of updates, takes the states of device 0, as after a change to more devices, or from COHORT_UPDATE_ON_STORE.
     * @param mode COHORT_UPDATE_ constant.
     */
    public static native long cohort_group_update(long group, long optimizer, int mode);

    /**
     * Updates a metric once for each device, in order, with that device's labels and outputs. Waits for the outputs.
     *
     * A metric with label_names or output_names uses those, else all in order.
     * Returns: NULL, or, before any update,
     *   COHORT_ERROR_STATE             the group was bound without labels
     *   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of labels
     *   COHORT_ERROR_SHAPE             a label of another batch size
     *   COHORT_ERROR_NAME              the metric names a label or output that does not exist
     *   or what cohort_metric_update() returns.
     * @param labels Whole labels in the order of the descriptors, sliced along their batch axes here.
     * @param num_labels The number of label descriptors.
     */
    public static native long cohort_group_update_metric(long group, long metric, long[] labels, long num_labels);

    /**
     * As cohort_group_update_metric(), with num_slices * num_labels labels that are split already, all of device 0 first.
     * Each has as many samples as its device's slice, else COHORT_ERROR_SHAPE.
     * @param labels Whole labels in the order of the descriptors, sliced along their batch axes here.
     * @param num_labels The number of label descriptors.
     */
    public static native long cohort_group_update_metric_presliced(long group, long metric, long num_slices, long[] labels, long num_labels);

    /**
     * Waits for all queued work on all devices. COHORT_ERROR_EXECUTION if some failed; the group stays usable, and can
     * train again once the arrays that are bad were set again (cohort.h, Waiting).
     */
    public static native long cohort_group_wait(long group);

    /**
     * Splits a batch by workloads, as a group does.
     * Returns: NULL, or COHORT_ERROR_INVALID_ARGUMENT: a slice would be empty (the error gives batch size, number of
     *   contexts and workloads), or a workload is not positive and finite.
     * @param batch_size Samples, at least 1. Shares are computed as doubles: above 2^53 samples equal workloads can get shares that differ by more than one.
     * @param workload may be NULL. num_contexts relative shares, each positive and finite; NULL: equal ones.
     * @param num_contexts At least 1.
     * @param rounding COHORT_ROUNDING_ constant.
     * @param out_begin num_contexts numbers: where each slice begins.
     * @param out_end num_contexts numbers: where it ends.
     */
    public static native long cohort_split_slices(long batch_size, double[] workload, long num_contexts, int rounding, long[] out_begin, long[] out_end);
}
