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

    /** A handle on the live array of one device: cohort_group_array(). */
    public static native long cohort_manager_array(long manager, int list, long index, long device, long[] out_array);

    /** As cohort_manager_array(), for a whole list on one device, names included. */
    public static native long cohort_manager_arrays(long manager, int list, long device, long[] out_arrays);

    /** cohort_group_assign_params() of the main group, and so of all buckets. */
    public static native long cohort_manager_assign_params(long manager, long arg_params, long aux_params, int allow_missing, int allow_extra, long[] out_missing);

    /**
     * Queues a backward pass of the current group, without head gradients: its outputs are losses.
     * Returns: NULL, or COHORT_ERROR_STATE before the first batch is loaded, or what cohort_group_backward() returns.
     */
    public static native long cohort_manager_backward(long manager);

    /** Reads a bucket that has been made. Out parameters may be NULL. */
    public static native long cohort_manager_bucket(long manager, long index, long[] out_key, long[] out_group);

    /** cohort_group_get_params() of the main group: the mean over the devices into given arrays. */
    public static native long cohort_manager_copy_to(long manager, long arg_params, long aux_params);

    /**
     * Makes a manager and binds its main group for training: gradients, all "write", for the parameters only. Logs the
     * contexts.
     * Returns: NULL, or what cohort_group_create() returns, and
     *   COHORT_ERROR_INVALID_ARGUMENT  bucket symbols without default_bucket_key; a number of workloads other than
     *                                  num_contexts
     *   COHORT_ERROR_NAME              a bucket key comes twice
     */
    public static native long cohort_manager_create(long symbol, Structs.Context contexts, long num_contexts, long batch_size, long data, long label, Pointer param_names, long num_param_names, Structs.ManagerOptions options, long[] out_manager);

    /** A handle on the group of the batch loaded last. COHORT_ERROR_STATE before the first. */
    public static native long cohort_manager_current_group(long manager, long[] out_group);

    /**
     * Queues a forward pass of the current group over what is loaded.
     * Returns: NULL, or COHORT_ERROR_STATE before the first batch is loaded.
     */
    public static native long cohort_manager_forward(long manager, int is_train);

    /** Frees a handle, waiting for queued work of groups that no one else holds; NULL does nothing. */
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
     */
    public static native long cohort_manager_load_data_batch(long manager, long[] data, long num_data, long[] label, long num_label, String bucket_key, long data_descs, long label_descs);

    /** cohort_group_loss_scale() of all buckets. Out parameters may be NULL. */
    public static native long cohort_manager_loss_scale(long manager, double[] out_scale, int[] out_num_good, long[] out_num_skipped);

    /**
     * A handle on the main group. Groups of a manager are for looking and running: the manager alone binds them, and
     * cohort_group_bind() and cohort_group_reshape() are COHORT_ERROR_STATE.
     */
    public static native long cohort_manager_main_group(long manager, long[] out_group);

    /**
     * What all buckets that have been made take of memory, on all devices: what they share is counted once. planned_bytes
     * has what inference derives from parameters, too; intermediate_bytes and value_bytes are, on each device, those of the
     * bucket that has most. struct_size of *out_info is set by the caller.
     */
    public static native long cohort_manager_memory(long manager, Structs.MemoryInfo out_info);

    /** One array for all devices: cohort_group_merged(). `list` is COHORT_GROUP_OUTPUTS. */
    public static native long cohort_manager_merged(long manager, int list, long index, long[] out_array);

    /** The name of an entry; a gradient has its argument's. Lives as long as the manager. */
    public static native long cohort_manager_name(long manager, int list, long index, long[] out_name);

    /** How many entries a list has. */
    public static native long cohort_manager_num_arrays(long manager, int list, long[] out_num);

    /** How many buckets have been made, the default one included; 0 without bucket symbols. */
    public static native long cohort_manager_num_buckets(long manager, long[] out_num);

    /** The number of contexts. */
    public static native long cohort_manager_num_contexts(long manager, long[] out_num);

    /**
     * The same as COHORT_MANAGER_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's.
     */
    public static native void cohort_manager_options_init(Structs.ManagerOptions options, long struct_size);

    /** cohort_group_set_loss_scale() of all buckets. */
    public static native long cohort_manager_set_loss_scale(long manager, double scale, int num_good);

    /**
     * cohort_group_set_monitor() of the main group. For a monitor with statistics: cohort_monitor_install_on_manager().
     * Returns: NULL, or COHORT_ERROR_UNSUPPORTED for a manager with bucket symbols.
     */
    public static native long cohort_manager_set_monitor(long manager, Callbacks.MonitorFn callback, long user_data, int monitor_all);

    /**
     * cohort_group_set_params() of the main group, and so of all buckets; unknown names are COHORT_ERROR_NAME.
     */
    public static native long cohort_manager_set_params(long manager, long arg_params, long aux_params);

    /**
     * cohort_group_set_states() of the current group. To carry states from batch to batch, whatever their buckets: load the
     * next batch, set the states to the outputs that the devices had from the one before, run.
     */
    public static native long cohort_manager_set_states(long manager, long[] states, long num_states, long num_devices, double[] value);

    /** The slice of a device, the same in all buckets: [*out_begin, *out_end). */
    public static native long cohort_manager_slice(long manager, long device, long[] out_begin, long[] out_end);

    /**
     * Updates the parameters, which all buckets share, from the gradients of the current group: cohort_group_update().
     * Returns: NULL, or COHORT_ERROR_STATE before the first batch is loaded, or what cohort_group_update() returns.
     */
    public static native long cohort_manager_update(long manager, long optimizer, int mode);

    /**
     * cohort_group_update_metric() of the current group. COHORT_ERROR_STATE before the first batch is loaded.
     */
    public static native long cohort_manager_update_metric(long manager, long metric, long[] labels, long num_labels);

    /** cohort_group_update_metric_presliced() of the current group, likewise. */
    public static native long cohort_manager_update_metric_presliced(long manager, long metric, long num_slices, long[] labels, long num_labels);
}
