/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file group.h
 * Groups: one executor per context, each batch split over them by workload, outputs merged, gradients summed.
 *
 * Device i of a group is the i-th context given. Slice i of a batch of B samples is the half-open range [begin, end)
 * along the batch axis, which the layout of each descriptor gives. Work is queued on all devices at once;
 * cohort_group_wait(), or reading an array, waits for it. Groups that share memory (shared_group) are used by one
 * thread at a time, one group after the other.
 */
#ifndef COHORT_GROUP_H
#define COHORT_GROUP_H

#include "cohort/executor.h"
#include "cohort/log.h"
#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** How a share of the batch becomes a whole number of samples. */
enum {
  COHORT_ROUNDING_HALF_UP = 0,   /* to the nearest, halves up; the last device gets the rest */
  COHORT_ROUNDING_HALF_EVEN = 1, /* the same with halves to the even number */
  COHORT_ROUNDING_BALANCED = 2   /* largest remainder, at least one sample per device: works whenever possible */
};
typedef int32_t cohort_rounding;

/** Lists of arrays that a group has, each entry once per device. */
enum {
  COHORT_GROUP_DATA = 0,        /* data, in the order of the descriptors */
  COHORT_GROUP_LABELS = 1,      /* labels, in the order of the descriptors; none if bound without */
  COHORT_GROUP_PARAMS = 2,      /* arguments named as parameters, in the order of the symbol's arguments */
  COHORT_GROUP_GRADS = 3,       /* their gradients, in the same order; no entries unless bound for training */
  COHORT_GROUP_AUX = 4,         /* auxiliary states, in the order of the symbol's list */
  COHORT_GROUP_STATES = 5,      /* states, in the order given */
  COHORT_GROUP_OUTPUTS = 6,     /* outputs, in the order of the heads */
  COHORT_GROUP_INPUT_GRADS = 7, /* gradients of the data; no entries unless inputs_need_grad and for_training */
  COHORT_GROUP_ARGS = 8         /* all arguments, in the order of the symbol's list */
};
typedef int32_t cohort_group_list;

/** How cohort_group_update() puts the devices' gradients together. */
enum {
  COHORT_UPDATE_ON_STORE = 0,   /* one update from the sum over the devices, copied to all; gradients do not change */
  COHORT_UPDATE_PER_DEVICE = 1, /* the sum replaces each device's gradient, and each device updates its own */
  COHORT_UPDATE_NO_STORE = 2    /* each device updates from its own gradient; devices may differ then */
};
typedef int32_t cohort_update_mode;

/**
 * Splits a batch by workloads, as a group does.
 *
 * @param batch_size    Samples, at least 1. Shares are computed as doubles: above 2^53 samples equal workloads can get
 *                      shares that differ by more than one.
 * @param workload      @nullable num_contexts relative shares, each positive and finite; NULL: equal ones.
 * @param num_contexts  At least 1.
 * @param rounding      COHORT_ROUNDING_ constant.
 * @param out_begin     num_contexts numbers: where each slice begins.
 * @param out_end       num_contexts numbers: where it ends.
 * @return NULL, or COHORT_ERROR_INVALID_ARGUMENT: a slice would be empty (the error gives batch size, number of
 *   contexts and workloads), or a workload is not positive and finite.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_split_slices(int64_t batch_size, const double *workload,
                                                               size_t num_contexts, cohort_rounding rounding,
                                                               int64_t *out_begin, int64_t *out_end);

/** Settings of a group that few callers change. Zero in any field means its default. */
typedef struct cohort_group_options {
  size_t struct_size; /* size the caller was compiled with; set by the initialisers */

  const double *workload;   /* num_workloads relative shares, each > 0 */
  size_t num_workloads;     /* the number of contexts; 0: equal shares */
  cohort_rounding rounding; /* COHORT_ROUNDING_ constant */
  const int64_t *slices;    /* num_slices pairs begin, end, ascending from 0 without gaps to the batch size */
  size_t num_slices;        /* the number of contexts; 0: by workload */

  cohort_bool inputs_need_grad;         /* 1: gradients of the data too */
  const char *const *fixed_param_names; /* parameters without gradient; for unknown names see strict_names */
  size_t num_fixed_param_names;
  const char *grad_req;             /* "null", "write" or "add" for all parameters; NULL: see the next three */
  const char *const *grad_req_list; /* num_grad_reqs of them; NULL like grad_req: "write" */
  /* the argument that each is for; arguments that are not named have "write". NULL: one for each argument in order,
     which inputs_need_grad and fixed_param_names do not change */
  const char *const *grad_req_names;
  size_t num_grad_reqs;

  const char *const *state_names; /* arguments that are states */
  size_t num_state_names;

  const char *const *input_dtype_names; /* dtypes of data and labels by name; override symbol and descriptor */
  const cohort_dtype *input_dtypes;     /* COHORT_DTYPE_ constants */
  size_t num_input_dtypes;

  cohort_group *shared_group; /* group of another bucket to share memory with, kept alive; NULL: none */

  /* Contexts of the nodes whose `__ctx_group__` is one of these names. No names: the attribute is not read. */
  const char *const *ctx_group_names;
  /* for each name contexts_per_ctx_group of them; device_type 0: on this device the name is not mapped, and its nodes
     run on the device's own context */
  const cohort_context *ctx_group_contexts;
  size_t num_ctx_groups;
  size_t contexts_per_ctx_group; /* 1: the same on all devices; else the number of contexts; 0: 1 */

  int32_t num_threads;          /* threads of each CPU context; 0: as in executor.h */
  size_t gradient_bucket_bytes; /* gradients summed in one exchange, in bytes; 0: chosen from the model */
  uint64_t seed;                /* seed of random operators; each device draws its own numbers */

  cohort_log_fn log;   /* takes this group's messages; NULL: they go where the library's do */
  void *log_user_data; /* passed to log */

  /* the arguments that the caller expects the symbol to have, in order; others are an error */
  const char *const *arg_names;
  size_t num_arg_names; /* 0: not checked */

  cohort_dtype compute_dtype; /* as in executor.h; gradient_sum_dtype is for sums of gradients */

  const char *const *float32_names; /* num_float32_names nodes and operators, as in executor.h */
  size_t num_float32_names;
  const char *const *narrow_names; /* num_narrow_names of them, likewise */
  size_t num_narrow_names;

  /* A factor on the loss, from 2^-24 to 2^24; 0: none. Gradients are larger by this factor, also those that the group
     shows, and an update divides by it. If a gradient is infinite or NaN on any device, the update is skipped on all,
     with a message of level info, and the factor halves; it doubles after loss_scale_window updates that were not
     skipped. The sums of the devices' gradients must be finite, too. Each update then waits for the gradients, and
     divides by the factor of their backward pass. 65536 suits float16; bfloat16 needs none. Networks with
     IdentityAttachKLSparseReg, or with losses inside the graphs of _foreach, _while_loop, _cond or _CachedOp, cannot
     have one: their gradients begin within an operator (COHORT_ERROR_UNSUPPORTED). */
  double loss_scale;
  int32_t loss_scale_window; /* 1 or more; 0: 2000 */

  const cohort_calibration *calibration; /* as in executor.h */

  cohort_bool backward_once; /* as in executor.h */

  /* For inference (for_training 0): parameters and auxiliary states by name. The group uses these arrays themselves,
     not copies, on all its contexts: it sees what is written to them, and cohort_group_set_params() writes to them.
     Arrays of another type, or that a context cannot use where they are, are copied. Parameters that are not named
     (NULL: all) are new arrays of zeros; other names are ignored. With shared_group, the arrays of that group are used
     instead. */
  const cohort_arrays *arg_params;
  const cohort_arrays *aux_params;

  /* The type in which float32 gradients are summed over the devices: COHORT_DTYPE_FLOAT32, or COHORT_DTYPE_BFLOAT16,
     which moves half as many bytes between GPUs, and is slower on CPUs, which share their memory. With bfloat16 each
     device's gradients are rounded to the nearest numbers of 8 significant bits, and so is their sum; GPUs that sum
     among themselves may round partial sums, too. Without such partial sums the error is at most 1/127 of the sum of
     the gradients' absolute values. The same run still gives the same bits. Updates read float32, and the gradients
     that the group shows are float32. For one device or COHORT_UPDATE_NO_STORE nothing is summed or rounded. */
  cohort_dtype gradient_sum_dtype;

  cohort_bool tf32; /* as in executor.h */

  cohort_bool recompute; /* likewise */

  /* 1: cohort_optimizer_save_states() saves each device's own auxiliary states, such as the moving statistics of
     BatchNorm, with the states of the optimizer that updates this group, and cohort_group_resume() sets them. 0: of
     several devices only their mean is kept, which cohort_group_get_params() gives. */
  cohort_bool keep_device_aux;

  /* 1: a name in param_names, fixed_param_names, grad_req_names or input_dtype_names that would be ignored is
     COHORT_ERROR_NAME, and the error gives the nearest names. 0: a message of level warning says so, unless there is a
     shared_group, as buckets may have other parameters. */
  cohort_bool strict_names;

  /* 1: a pass fails with COHORT_ERROR_EXECUTION at the first output of an operator, or gradient of its inputs, that has
     an infinity or a NaN; the error names it, and the rest of that device's pass does not run. For finding the layer
     where numbers leave their range: nothing is fused, and passes wait for their work. */
  cohort_bool stop_if_not_finite;
} cohort_group_options;

#define COHORT_GROUP_OPTIONS_INIT                                                                                      \
  {                                                                                                                    \
    sizeof(cohort_group_options), NULL, 0, 0, NULL, 0, 0, NULL, 0, NULL, NULL, NULL, 0, NULL, 0, NULL, NULL, 0, NULL,  \
        NULL, NULL, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, 0, NULL, 0, NULL, 0, 0, 0, NULL, 0, NULL, NULL, 0, 0, 0, 0, 0, \
        0                                                                                                              \
  }

/** COHORT_GROUP_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct. */
COHORT_API void cohort_group_options_init(cohort_group_options *options, size_t struct_size);

/**
 * Makes a group and binds it: one executor for each context, all arrays zeros.
 *
 * @param contexts      num_contexts of them, at least 1. The same one twice gives two executors.
 * @param data          Descriptors of the data of the whole batch, at least one. Each name is an argument.
 * @param label         @nullable The same for labels; NULL or empty: none. Label arguments are then like any other.
 * @param param_names   @nullable The parameters. Names that are not arguments: see strict_names. NULL with num_param_names 0:
 *                      all arguments except data, labels (also those of losses that have no descriptor) and states.
 * @param for_training  0: no gradients at all, whatever the options say; 1: as they say.
 * @param options       NULL: all defaults.
 * @return NULL, or
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
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_create(
    const cohort_symbol *symbol, const cohort_context *contexts, size_t num_contexts, const cohort_descs *data,
    const cohort_descs *label, const char *const *param_names, size_t num_param_names, cohort_bool for_training,
    const cohort_group_options *options, cohort_group **out_group);

/** Frees a handle; NULL does nothing. Freeing the last one waits for queued work. Arrays that were handed out stay. */
COHORT_API void cohort_group_free(cohort_group *group);

/**
 * Binds a bound group from scratch: to new arrays of zeros. Only the group's settings are kept, with the arrays of
 * arg_params and aux_params among them, which keep their values.
 *
 * @param data          @as cohort_group_create().
 * @param label         @nullable @as cohort_group_create().
 * @param shared_group  @nullable As in cohort_group_options; NULL: none.
 * @param rebind        1: bind again; 0: refuse (COHORT_ERROR_STATE), for callers that expect a group which is not
 *                      bound yet.
 * @return NULL, or, with the group as before, what cohort_group_create() returns, or
 *   COHORT_ERROR_STATE  rebind is 0; the group is a manager's, which alone binds its groups
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_bind(cohort_group *group, const cohort_descs *data,
                                                             const cohort_descs *label, cohort_group *shared_group,
                                                             cohort_bool rebind);

/**
 * Changes the shapes of the batch. Parameters, their gradients and auxiliary states keep their memory and values;
 * contents of data and labels are unspecified. Other gradients that outgrow their first shape start from zero. Nothing
 * happens if names, shapes, dtypes and layouts are the bound ones. Otherwise cohort_group_backward() and
 * cohort_group_update() are COHORT_ERROR_STATE until the passes before them have run again. The bindings for the latest
 * 16 different batches are kept: going back to one of them is cheap.
 *
 * @param data   All descriptors, @as cohort_group_create().
 * @param label  @nullable Likewise; NULL or empty drops the labels.
 * @return NULL, or, with the group as before, what cohort_group_create() returns, or
 *   COHORT_ERROR_SHAPE  a parameter would change shape
 *   COHORT_ERROR_DTYPE  a descriptor changes dtype
 *   COHORT_ERROR_STATE  the group is a manager's
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_reshape(cohort_group *group, const cohort_descs *data,
                                                                const cohort_descs *label);

/** The number of contexts. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_num_contexts(const cohort_group *group, size_t *out_num);

/** The context of a device. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_context(const cohort_group *group, size_t device,
                                                                cohort_context *out_context);

/**
 * A handle on the current executor of a device; reshaping the group makes new ones. If layers exchange statistics with
 * the other devices (_contrib_SyncBatchNorm), the executor cannot train alone: COHORT_ERROR_STATE.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_executor(const cohort_group *group, size_t device,
                                                                 cohort_executor **out_executor);

/** The batch size; 0 if no descriptor has a batch axis. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_batch_size(const cohort_group *group, int64_t *out_batch_size);

/** The slice of a device: [*out_begin, *out_end). COHORT_ERROR_STATE if no descriptor has a batch axis. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_slice(const cohort_group *group, size_t device,
                                                              int64_t *out_begin, int64_t *out_end);

/**
 * The batch axis of each descriptor, checked against the group's batch size.
 *
 * @param descs     At least one.
 * @param out_axes  One for each descriptor: the axis, -1 if it is not batched.
 * @return NULL, or COHORT_ERROR_SHAPE (the error names the descriptor, its shape and the batch size).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_decide_slices(const cohort_group *group,
                                                                      const cohort_descs *descs, int32_t *out_axes);

/**
 * Descriptors as one device has them: the length of the batch axis is that of its slice.
 *
 * @param axes  @nullable The batch axis of each, -1 if not batched; NULL: by layout.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_sliced_shape(const cohort_group *group,
                                                                     const cohort_descs *descs, size_t device,
                                                                     const int32_t *axes, cohort_descs **out_descs);

/** The bound descriptors: `list` is COHORT_GROUP_DATA or COHORT_GROUP_LABELS. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_descs(const cohort_group *group, cohort_group_list list,
                                                              cohort_descs **out_descs);

/**
 * Names, shapes and dtypes of the merged outputs, which are known before any forward pass. COHORT_ERROR_STATE if an
 * output depends on a node whose shape depends on values: only the forward pass of each device finds its shape.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_output_shapes(const cohort_group *group,
                                                                      cohort_descs **out_descs);

/** How many entries a list has: `list` is a COHORT_GROUP_ constant. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_num_arrays(const cohort_group *group, cohort_group_list list,
                                                                   size_t *out_num);

/**
 * The name of an entry; a gradient has the name of its argument. Valid until the group is bound again, reshaped or
 * freed.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_name(const cohort_group *group, cohort_group_list list,
                                                             size_t index, const char **out_name);

/**
 * The batch axis of an entry of COHORT_GROUP_DATA, _LABELS, _OUTPUTS or _INPUT_GRADS; -1 if not batched. For an output
 * the `__layout__` attribute of its node decides; without one it is 0.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_axis(const cohort_group *group, cohort_group_list list,
                                                             size_t index, int32_t *out_axis);

/**
 * A handle on the live array of one device.
 *
 * @param out_array  @gives_null NULL for a parameter without gradient. Outputs and gradients are zeros before the first
 *                   pass (except outputs of a group that shares the memory of one that has run). Outputs are valid
 *                   until the next forward pass of the group or one that shares its memory. For outputs whose shape
 *                   depends on values see cohort_executor_array().
 * @return NULL, or COHORT_ERROR_STATE: COHORT_GROUP_INPUT_GRADS of a group bound without them.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_array(const cohort_group *group, cohort_group_list list,
                                                              size_t index, size_t device, cohort_ndarray **out_array);

/** @as cohort_group_array(), for a whole list on one device, names included. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_arrays(const cohort_group *group, cohort_group_list list,
                                                               size_t device, cohort_arrays **out_arrays);

/**
 * One array for all devices, on the context of device 0: the devices' arrays joined along the batch axis in order.
 * Without a batch axis an output is that of device 0, and a gradient is the sum. Outputs whose shapes depend on values
 * are joined with the shape that each device has found.
 *
 * @param list       COHORT_GROUP_OUTPUTS or COHORT_GROUP_INPUT_GRADS. COHORT_GROUP_STATES: COHORT_ERROR_UNSUPPORTED.
 * @param out_array  Read-only, and valid until the next forward pass; it may be a live array.
 * @return NULL, or
 *   COHORT_ERROR_STATE          input gradients of a group bound without them
 *   COHORT_ERROR_SHAPE, _DTYPE  the devices' arrays do not fit together
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_merged(const cohort_group *group, cohort_group_list list,
                                                               size_t index, cohort_ndarray **out_array);

/** The pool of input arrays of a device, which all groups that share memory use: live arrays by name. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_shared_data(const cohort_group *group, size_t device,
                                                                    cohort_arrays **out_arrays);

/**
 * Copies parameters to every device by name, converting dtypes. All are checked first: on an error nothing is copied.
 *
 * @param arg_params   Named arrays on any contexts, for any arguments; arguments that are not named keep their values.
 * @param aux_params   @nullable The same for auxiliary states; NULL: none.
 * @param allow_extra  1: unknown names are skipped; 0: they are COHORT_ERROR_NAME.
 * @return NULL, or COHORT_ERROR_NAME, COHORT_ERROR_SHAPE (the error names the array).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_set_params(cohort_group *group, const cohort_arrays *arg_params,
                                                                   const cohort_arrays *aux_params,
                                                                   cohort_bool allow_extra);

/**
 * @as cohort_group_set_params(), but it reports parameters and auxiliary states that are not given.
 *
 * @param allow_missing  1: parameters and auxiliary states that are not given keep their values; 0: they are
 *                       COHORT_ERROR_NAME (the error lists them), and nothing is copied.
 * @param out_missing    @nullable Those that were not given: names, shapes and dtypes in the order of the symbol's
 *                       lists.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_assign_params(
    cohort_group *group, const cohort_arrays *arg_params, const cohort_arrays *aux_params, cohort_bool allow_missing,
    cohort_bool allow_extra, cohort_descs **out_missing);

/**
 * Writes the mean over the devices of each parameter and auxiliary state into given arrays, converting dtypes. Elements
 * that are equal on all devices stay as they are, bit for bit; others are summed in float64. Queued; with several
 * devices it waits for the work that computes them.
 *
 * @param arg_params  Named arrays on any contexts, at least one for each parameter; others are not touched.
 * @param aux_params  @nullable The same for auxiliary states; NULL only if there are none.
 * @return NULL, or COHORT_ERROR_NAME (a parameter has no target), COHORT_ERROR_SHAPE (a target has another shape; the
 *   shape of a parameter follows the batch, and the devices' slices differ in length); nothing is written then.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_get_params(const cohort_group *group,
                                                                   const cohort_arrays *arg_params,
                                                                   const cohort_arrays *aux_params);

/** @as cohort_group_get_params(), into new arrays on cpu(0), in the order of the symbol's lists. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_copy_params(const cohort_group *group,
                                                                    cohort_arrays **out_arg_params,
                                                                    cohort_arrays **out_aux_params);

/**
 * Splits one batch over the devices and copies each slice to its device. Queued; runs nothing.
 *
 * @param data       num_data arrays in the order of the data descriptors, each of the descriptor's full shape, batch
 *                   axis included, of any dtype, on any context.
 * @param num_data   The number of data descriptors.
 * @param label      @nullable As data, for the label descriptors; NULL with num_label 0: labels stay as they are. A
 *                   group bound without labels ignores them.
 * @param num_label  The number of label descriptors, or 0.
 *
 * Ownership: the group takes its own references; the caller may free its handles at once. Memory lent by
 * cohort_ndarray_wrap() must keep its contents until the group has been waited for.
 *
 * @return NULL, or, with nothing loaded,
 *   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of arrays
 *   COHORT_ERROR_SHAPE             an array of another shape (the error names it, expected and found)
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_load(cohort_group *group, cohort_ndarray *const *data,
                                                             size_t num_data, cohort_ndarray *const *label,
                                                             size_t num_label);

/**
 * Queues a forward pass over the loaded batch, on every device. Loading once and running twice is fine.
 *
 * @param is_train  1: training behaviour, and what cohort_group_backward() needs is kept; 0: inference, after which a
 *                  backward pass gives the gradients of inference; -1: as the group was bound.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_run(cohort_group *group, int32_t is_train);

/**
 * Loads a batch and runs the forward pass: cohort_group_load(), then cohort_group_run().
 *
 * @return NULL, or what these return; COHORT_ERROR_INVALID_ARGUMENT also if the group has labels, is_train is 1 and
 *   label is NULL. Nothing was queued then.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_forward(cohort_group *group, cohort_ndarray *const *data,
                                                                size_t num_data, cohort_ndarray *const *label,
                                                                size_t num_label, int32_t is_train);

/**
 * @as cohort_group_forward(), with a batch that is split already.
 *
 * @param num_slices  The number of contexts.
 * @param data        num_slices * num_data arrays: all of device 0 in the order of the descriptors, then all of device
 *                    1. Each has its device's shape.
 * @param label       @nullable num_slices * num_label arrays likewise; NULL with num_label 0.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_forward_presliced(cohort_group *group, size_t num_slices,
                                                                          cohort_ndarray *const *data, size_t num_data,
                                                                          cohort_ndarray *const *label,
                                                                          size_t num_label, int32_t is_train);

/**
 * Queues a backward pass from the latest forward pass, on every device; gradients are those of each device's slice. The
 * sums over the devices that cohort_group_update() needs start while it runs.
 *
 * @param head_grads  @nullable @null_entries One for each output, of the merged output's shape; each device gets its
 *                    slice, or the whole array if the output has no batch axis. An entry may be NULL, or missing at the
 *                    end, if the output needs none: a loss, or an output that no argument with a gradient array
 *                    contributes to differentiably. NULL with num_head_grads 0: none.
 * @return NULL, or
 *   COHORT_ERROR_STATE             not bound for training; no forward pass since binding, or the latest one failed; a
 *                                  group that shares its memory has run since then
 *   COHORT_ERROR_INVALID_ARGUMENT  more head gradients than outputs, or none where one is needed (the error names the
 *                                  output)
 *   COHORT_ERROR_SHAPE             another shape than the merged output's
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_backward(cohort_group *group, cohort_ndarray *const *head_grads,
                                                                 size_t num_head_grads);

/**
 * Updates every parameter that has a gradient, if any has. Queued.
 *
 * @param optimizer  Holds the states, by parameter name (and device, where each has its own). Used by one group at a
 *                   time, or by groups that share parameters. A device for which it has no states yet, or those of
 *                   another number of updates, takes the states of device 0, as after a change to more devices, or
 *                   from COHORT_UPDATE_ON_STORE.
 * @param mode       COHORT_UPDATE_ constant.
 * @return NULL, or COHORT_ERROR_STATE if the group is not bound for training, has run no backward pass since it was
 *   bound or reshaped, or its latest one failed; COHORT_ERROR_SHAPE if gradients are to be summed, the shape of a
 *   parameter follows the batch, and the devices' slices differ in length.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_update(cohort_group *group, cohort_optimizer *optimizer,
                                                               cohort_update_mode mode);

/**
 * The current loss scale of a group (loss_scale of its options), and its counts. It is saved with the states of the
 * optimizer (cohort_optimizer_loss_scale()).
 *
 * @param out_scale        @nullable The factor of the next backward pass; 1 if there is none.
 * @param out_num_good     @nullable Updates made since it changed.
 * @param out_num_skipped  @nullable Updates skipped since the group was made, or since the group was whose parameters
 *                         it shares.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_loss_scale(const cohort_group *group, double *out_scale,
                                                                   int32_t *out_num_good, uint64_t *out_num_skipped);

/**
 * Sets the loss scale, and the number of updates made with it. Queued backward passes keep the factor that they were
 * queued with. With COHORT_GRAD_ADD, gradients that are there already are rescaled by the next backward pass.
 *
 * @return NULL, or COHORT_ERROR_STATE if the group has no loss scale, COHORT_ERROR_INVALID_ARGUMENT for a number out of
 *   range.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_set_loss_scale(cohort_group *group, double scale,
                                                                       int32_t num_good);

/**
 * Reads the state of the random operators of all devices, @as cohort_executor_random_state().
 *
 * @param out_data  @nullable NULL: only the size is wanted.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_random_state(const cohort_group *group, void *out_data,
                                                                     size_t capacity, size_t *out_bytes);

/**
 * Sets the state of the random operators of all devices, @as cohort_executor_set_random_state(). If the state is of
 * fewer devices, the others draw numbers of their own that they have not drawn before; if it is of more, the rest is
 * ignored.
 *
 * @param data  `bytes` bytes that cohort_group_random_state() or cohort_executor_random_state() gave. They are not kept.
 * @return NULL, or, with nothing set, COHORT_ERROR_FORMAT (damaged), COHORT_ERROR_NAME (the state of another network),
 *   COHORT_ERROR_INVALID_ARGUMENT (of no device).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_set_random_state(cohort_group *group, const void *data,
                                                                         size_t bytes);

/**
 * Sets what training goes on from beside parameters and the optimizer's states, as it was when the states were saved
 * that the optimizer has loaded: the state of random operators, the loss scale and, with keep_device_aux, the auxiliary
 * states of each device. Called before the first forward pass, after cohort_optimizer_load_states() and
 * cohort_group_set_params(): the group then trains on, to the bit, as the saved one would have on as many devices, with
 * the same batches; with COHORT_UPDATE_NO_STORE on one device only, as the parameters of several differ.
 *
 * @param optimizer  Does nothing if it has loaded no states, or has updated a group since.
 * @return NULL, or, with nothing set,
 *   COHORT_ERROR_NAME              the states were saved with another network
 *   COHORT_ERROR_SHAPE             an auxiliary state has another shape
 *   COHORT_ERROR_INVALID_ARGUMENT  there are auxiliary states of another number of devices
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_resume(cohort_group *group, cohort_optimizer *optimizer);

/**
 * Updates a metric once for each device, in order, with that device's labels and outputs. Waits for the outputs.
 *
 * A metric with label_names or output_names uses those, else all in order.
 *
 * @param labels      Whole labels in the order of the descriptors, sliced along their batch axes here.
 * @param num_labels  The number of label descriptors.
 * @return NULL, or, before any update,
 *   COHORT_ERROR_STATE             the group was bound without labels
 *   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of labels
 *   COHORT_ERROR_SHAPE             a label of another batch size
 *   COHORT_ERROR_NAME              the metric names a label or output that does not exist
 *   or what cohort_metric_update() returns.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_update_metric(cohort_group *group, cohort_metric *metric,
                                                                      cohort_ndarray *const *labels, size_t num_labels);

/**
 * @as cohort_group_update_metric(), with num_slices * num_labels labels that are split already, all of device 0 first.
 * Each has as many samples as its device's slice, else COHORT_ERROR_SHAPE.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_update_metric_presliced(
    cohort_group *group, cohort_metric *metric, size_t num_slices, cohort_ndarray *const *labels, size_t num_labels);

/**
 * Sets the states of every device, converting dtypes. Queued. They stay until they are set again. Exactly one of
 * `states` and `value` is given:
 *
 * @param states       @nullable num_states * num_devices arrays: state 0 of every device, then state 1. NULL: by value.
 * @param num_states   The number of states.
 * @param num_devices  The number of contexts.
 * @param value        @nullable Fills all states. NULL: by states.
 * @return NULL, or COHORT_ERROR_INVALID_ARGUMENT (both, neither, a wrong number), COHORT_ERROR_SHAPE; nothing is set
 *   then.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_set_states(cohort_group *group, cohort_ndarray *const *states,
                                                                   size_t num_states, size_t num_devices,
                                                                   const double *value);

/** @as cohort_executor_set_monitor(), on every device; device 0's calls come first. Reshaping keeps it. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_set_monitor(cohort_group *group, cohort_monitor_fn callback,
                                                                    void *user_data, cohort_bool monitor_all);

/**
 * Waits for all queued work on all devices. COHORT_ERROR_EXECUTION if some failed; the group stays usable, and can
 * train again once the arrays that are bad were set again (cohort.h, Waiting).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_wait(cohort_group *group);

/** The memory that one device takes, shared memory included. struct_size of *out_info is set by the caller. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_group_memory(const cohort_group *group, size_t device,
                                                               cohort_memory_info *out_info);

COHORT_END_DECLS

#endif /* COHORT_GROUP_H */
