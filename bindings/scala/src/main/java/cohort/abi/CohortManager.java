// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import com.sun.jna.Pointer;

/** The functions of cohort/manager.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortManager {
    private CohortManager() {
    }

    static {
        Loader.register(CohortManager.class);
    }

    /**
     * A handle on the live array of one device, as cohort_group_array().
     * @param out_array NULL may come out. NULL for a parameter without gradient. Outputs and gradients are zeros before the first pass (except outputs of a group that shares the memory of one that has run). Outputs are valid until the next forward pass of the group or one that shares its memory. For outputs whose shape depends on values see cohort_executor_array().
     */
    public static native long cohort_manager_array(long manager, int list, long index, long device, long[] out_array);

    /** As cohort_manager_array(), for a whole list on one device, names included. */
    public static native long cohort_manager_arrays(long manager, int list, long device, long[] out_arrays);

    /**
     * As cohort_group_assign_params(), for the main group and so for all buckets.
     * @param arg_params Named arrays on any contexts, for any arguments; arguments that are not named keep their values.
     * @param aux_params may be NULL. The same for auxiliary states; NULL: none.
     * @param allow_missing 1: parameters and auxiliary states that are not given keep their values; 0: they are COHORT_ERROR_NAME (the error lists them), and nothing is copied.
     * @param allow_extra 1: unknown names are skipped; 0: they are COHORT_ERROR_NAME.
     * @param out_missing may be NULL. Those that were not given: names, shapes and dtypes in the order of the symbol's lists.
     */
    public static native long cohort_manager_assign_params(long manager, long arg_params, long aux_params, int allow_missing, int allow_extra, long[] out_missing);

    /**
     * Queues a backward pass of the current group, without head gradients: its outputs are losses.
     * Returns: NULL, or COHORT_ERROR_STATE before the first batch is loaded, or what cohort_group_backward() returns.
     */
    public static native long cohort_manager_backward(long manager);

    /**
     * Reads a bucket that has been made.
     * @param index Below cohort_manager_num_buckets(). Buckets are sorted by key, byte by byte: a new one may move others.
     * @param out_key may be NULL. Its key. Lives as long as the manager.
     * @param out_group may be NULL. A handle on its group; that of the default key is the main group.
     */
    public static native long cohort_manager_bucket(long manager, long index, long[] out_key, long[] out_group);

    /**
     * As cohort_group_get_params(), for the main group: the mean over the devices into given arrays.
     * @param arg_params Named arrays on any contexts, at least one for each parameter; others are not touched.
     * @param aux_params may be NULL. The same for auxiliary states; NULL only if there are none.
     */
    public static native long cohort_manager_copy_to(long manager, long arg_params, long aux_params);

    /**
     * Makes a manager and binds its main group for training: only parameters have gradients, all "write". Logs the
     * contexts.
     * Returns: NULL, or what cohort_group_create() returns, and
     *   COHORT_ERROR_INVALID_ARGUMENT  bucket symbols without default_bucket_key; a number of workloads other than
     *                                  num_contexts
     *   COHORT_ERROR_NAME              a bucket key comes twice; a parameter's name is no argument (the error gives the
     *                                  nearest ones)
     * @param symbol The symbol of the default bucket. Memory is used best if that is the largest bucket.
     * @param contexts num_contexts of them, at least 1. The same one twice gives two executors.
     * @param batch_size Samples of every batch, at least 1.
     * @param data Descriptors of the data, at least one, each of one axis or more. All are batched along axis 0, whatever their layout; the length there is not read.
     * @param label may be NULL. The same for labels; NULL or empty: none.
     * @param param_names may be NULL. As for cohort_group_create(), for each bucket. Each is an argument of this symbol. The parameters. Names that are not arguments: see strict_names. NULL with num_param_names 0: all arguments except data, labels (also those of losses that have no descriptor) and states.
     * @param options may be NULL. NULL: all defaults.
     */
    public static native long cohort_manager_create(long symbol, Structs.Context contexts, long num_contexts, long batch_size, long data, long label, Pointer param_names, long num_param_names, Structs.ManagerOptions options, long[] out_manager);

    /** A handle on the group of the batch loaded last. COHORT_ERROR_STATE before the first. */
    public static native long cohort_manager_current_group(long manager, long[] out_group);

    /**
     * Queues a forward pass of the current group over what is loaded.
     * Returns: NULL, or COHORT_ERROR_STATE before the first batch is loaded.
     * @param is_train As for cohort_group_run(). 1: training behaviour, and what cohort_group_backward() needs is kept; 0: inference, after which a backward pass gives the gradients of inference; -1: as the group was bound.
     */
    public static native long cohort_manager_forward(long manager, int is_train);

    /**
     * Frees a handle; NULL does nothing. Waits for queued work of groups that have no other handle.
     * @param manager may be NULL.
     */
    public static native void cohort_manager_free(long manager);

    /**
     * Makes the bucket of a batch current, binding it first if it is new, and copies each slice to its device. Queued; runs
     * nothing.
     *
     *
     * Ownership: as for cohort_group_load().
     * Returns: NULL, or, with no bucket made and the current one as before,
     *   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of arrays; no key where one is needed; a new bucket without
     *                                  descriptors, or without a symbol from the callback
     *   COHORT_ERROR_NAME              there is no symbol for the key; a parameter of the bucket is not one of the main
     *                                  group
     *   COHORT_ERROR_SHAPE             a batch of another size; an array of another shape; a parameter of another shape
     *   COHORT_ERROR_DTYPE             a parameter of another dtype
     *   COHORT_ERROR_EXECUTION         the callback refused the key
     *   or what cohort_group_create() returns.
     * @param data As for cohort_group_load(), in the order of the bucket's descriptors, of the manager's batch size along axis 0. num_data arrays in the order of the data descriptors, each of the descriptor's full shape, batch axis included, of any dtype, on any context.
     * @param label may be NULL. As for cohort_group_load(), likewise. As data, for the label descriptors; NULL with num_label 0: labels stay as they are. A group bound without labels ignores them.
     * @param bucket_key Which bucket; not read if there are no bucket symbols.
     * @param data_descs Descriptors of this batch's data, as for cohort_manager_create(). Only read, and then needed, if the bucket is new.
     * @param label_descs may be NULL. The same for labels; NULL or empty: none.
     */
    public static native long cohort_manager_load_data_batch(long manager, long[] data, long num_data, long[] label, long num_label, String bucket_key, long data_descs, long label_descs);

    /**
     * As cohort_group_loss_scale(), for all buckets.
     * @param out_scale may be NULL. The factor of the next backward pass; 1 if there is none.
     * @param out_num_good may be NULL. Updates made since it changed.
     * @param out_num_skipped may be NULL. Updates skipped since the group was made, or since the group was whose parameters it shares.
     */
    public static native long cohort_manager_loss_scale(long manager, double[] out_scale, int[] out_num_good, long[] out_num_skipped);

    /**
     * A handle on the main group. Groups of a manager may be read and run, but only the manager binds them:
     * cohort_group_bind() and cohort_group_reshape() are COHORT_ERROR_STATE.
     */
    public static native long cohort_manager_main_group(long manager, long[] out_group);

    /**
     * The memory that all buckets made so far take on all devices; shared memory is counted once. planned_bytes includes
     * what inference derives from parameters. intermediate_bytes and value_bytes are, for each device, those of the bucket
     * with the most. struct_size of *out_info is set by the caller.
     */
    public static native long cohort_manager_memory(long manager, Structs.MemoryInfo out_info);

    /** One array for all devices: cohort_group_merged(). `list` is COHORT_GROUP_OUTPUTS. */
    public static native long cohort_manager_merged(long manager, int list, long index, long[] out_array);

    /** The name of an entry; a gradient has the name of its argument. Lives as long as the manager. */
    public static native long cohort_manager_name(long manager, int list, long index, long[] out_name);

    /**
     * How many entries a list has.
     * @param list COHORT_GROUP_ constant, here and below: COHORT_GROUP_PARAMS, _GRADS and _AUX are those of the main group, which all buckets share; all others are of the current group (COHORT_ERROR_STATE before the first batch is loaded).
     */
    public static native long cohort_manager_num_arrays(long manager, int list, long[] out_num);

    /** How many buckets have been made, the default one included; 0 without bucket symbols. */
    public static native long cohort_manager_num_buckets(long manager, long[] out_num);

    /** The number of contexts. */
    public static native long cohort_manager_num_contexts(long manager, long[] out_num);

    /**
     * COHORT_MANAGER_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
     */
    public static native void cohort_manager_options_init(Structs.ManagerOptions options, long struct_size);

    /**
     * As cohort_group_resume(), for all buckets. Those that are not made yet are resumed when they are:
     * cohort_manager_load_data_batch() returns COHORT_ERROR_NAME if the states were saved with another symbol of the bucket.
     * @param optimizer Does nothing if it has loaded no states, or has updated a group since.
     */
    public static native long cohort_manager_resume(long manager, long optimizer);

    /** As cohort_group_set_loss_scale(), for all buckets. */
    public static native long cohort_manager_set_loss_scale(long manager, double scale, int num_good);

    /**
     * As cohort_group_set_monitor(), for the main group. For a monitor with statistics:
     * cohort_monitor_install_on_manager().
     * Returns: NULL, or COHORT_ERROR_UNSUPPORTED for a manager with bucket symbols.
     * @param callback may be NULL. Replaces the previous callback; NULL: none. A reshaped executor takes it over, and calls it with the same user_data even after this executor was freed.
     * @param user_data may be NULL. Passed to the callback.
     * @param monitor_all 1: the inputs of each operator too, before its outputs.
     */
    public static native long cohort_manager_set_monitor(long manager, Callbacks.MonitorFn callback, long user_data, int monitor_all);

    /**
     * As cohort_group_set_params(), for the main group and so for all buckets; unknown names are COHORT_ERROR_NAME.
     * @param arg_params Named arrays on any contexts, for any arguments; arguments that are not named keep their values.
     * @param aux_params may be NULL. The same for auxiliary states; NULL: none.
     */
    public static native long cohort_manager_set_params(long manager, long arg_params, long aux_params);

    /**
     * As cohort_group_set_states(), for the current group. To carry states from batch to batch, whatever their buckets:
     * load the next batch, set the states to the outputs that the devices had from the one before, run.
     * @param states may be NULL. num_states * num_devices arrays: state 0 of every device, then state 1. NULL: by value.
     * @param num_states The number of states.
     * @param num_devices The number of contexts.
     * @param value may be NULL. Fills all states. NULL: by states.
     */
    public static native long cohort_manager_set_states(long manager, long[] states, long num_states, long num_devices, double[] value);

    /** The slice of a device, the same in all buckets: [*out_begin, *out_end). */
    public static native long cohort_manager_slice(long manager, long device, long[] out_begin, long[] out_end);

    /**
     * Updates the parameters with cohort_group_update() of the current group. All buckets share parameters and gradients:
     * the update uses the gradients of the latest backward pass of any bucket. The current group must have run a backward
     * pass since it was bound, else it is COHORT_ERROR_STATE.
     * Returns: NULL, or COHORT_ERROR_STATE before the first batch is loaded, or what cohort_group_update() returns.
     */
    public static native long cohort_manager_update(long manager, long optimizer, int mode);

    /**
     * As cohort_group_update_metric(), for the current group. COHORT_ERROR_STATE before the first batch is loaded.
     * @param labels Whole labels in the order of the descriptors, sliced along their batch axes here.
     * @param num_labels The number of label descriptors.
     */
    public static native long cohort_manager_update_metric(long manager, long metric, long[] labels, long num_labels);

    /**
     * As cohort_group_update_metric_presliced(), likewise for the current group.
     * @param labels Whole labels in the order of the descriptors, sliced along their batch axes here.
     * @param num_labels The number of label descriptors.
     */
    public static native long cohort_manager_update_metric_presliced(long manager, long metric, long num_slices, long[] labels, long num_labels);
}
