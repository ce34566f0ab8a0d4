// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import com.sun.jna.Pointer;
import com.sun.jna.Structure;

/** The structs of the headers; what is in a field has to live as long as the struct is used. */
public final class Structs {
    private Structs() {
    }

    /** Settings of a backward pass. Zero in any field means its default. */
    @Structure.FieldOrder({"struct_size", "retain_graph", "create_graph"})
    public static class BackwardOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** 1: what was recorded stays for another backward pass */
        public int retain_graph;
        /** 1: the pass is recorded itself, so that gradients have gradients; retains as well */
        public int create_graph;
    }

    /**
     * One device: "cpu(0)" is {COHORT_DEVICE_CPU, 0}. Equal when both fields are. Every id from 0 names a CPU device, each
     * a worker of its own; a GPU id must exist. The struct never grows. Where a pointer to one may be NULL, NULL is cpu(0).
     */
    @Structure.FieldOrder({"device_type", "device_id"})
    public static class Context extends Structure {
        /** COHORT_DEVICE_ constant */
        public int device_type;
        /** from 0 */
        public int device_id;
    }

    /** A custom operator. Zero in any field but `declare` and `forward` means its default. */
    @Structure.FieldOrder({"struct_size", "declare", "infer_shape", "infer_dtype", "create", "forward", "backward", "release", "ended", "user_data", "ignores_head_grads", "any_thread"})
    public static class CustomOp extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** not NULL */
        public Callbacks.CustomDeclareFn declare;
        /** NULL: all inputs and outputs have one shape; there are no auxiliary states */
        public Callbacks.CustomInferFn infer_shape;
        /** NULL: all inputs, states and outputs have one dtype */
        public Callbacks.CustomInferFn infer_dtype;
        /** NULL: states are NULL */
        public Callbacks.CustomCreateFn create;
        /** not NULL */
        public Callbacks.CustomForwardFn forward;
        /** NULL: nothing flows back through it */
        public Callbacks.CustomBackwardFn backward;
        /** NULL: states need none */
        public Callbacks.CustomReleaseFn release;
        /** NULL: none */
        public Callbacks.CustomEndFn ended;
        /** passed to all */
        public long user_data;
        /** 1: a loss, whose backward pass starts with a gradient of its own */
        public int ignores_head_grads;
        /** 1: forward and backward may run on any thread, several at a time */
        public int any_thread;
    }

    /** The memory of a context, of all that this process does with it. struct_size is set by the caller. */
    @Structure.FieldOrder({"struct_size", "used_bytes", "peak_bytes", "cached_bytes", "limit_bytes"})
    public static class DeviceMemoryInfo extends Structure {
        /** sizeof(cohort_device_memory_info) where the caller was compiled */
        public long struct_size;
        /** arrays, and what executors, groups and operators work with */
        public long used_bytes;
        /** the most that it was since it was last reset */
        public long peak_bytes;
        /** kept for later, beside that: what a GPU's driver does not give to other processes */
        public long cached_bytes;
        /** of cohort_device_limit_memory(); 0: none */
        public long limit_bytes;
    }

    /** Settings of an executor that few callers change. Zero in any field means its default. */
    @Structure.FieldOrder({"struct_size", "ctx_group_names", "ctx_group_contexts", "num_ctx_groups", "shared_executor", "num_threads", "seed", "grad_req", "grad_req_list", "grad_req_names", "num_grad_reqs", "arg_contexts", "grad_contexts", "aux_contexts", "storage_names", "storage_types", "num_storage_types", "shared_arg_names", "num_shared_arg_names", "shared_data", "strict_dtypes", "compute_dtype", "float32_names", "num_float32_names", "narrow_names", "num_narrow_names", "calibration", "backward_once", "tf32", "recompute"})
    public static class ExecutorOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** num_ctx_groups of them */
        public Pointer ctx_group_names;
        /** one for each name */
        public Pointer ctx_group_contexts;
        public long num_ctx_groups;
        /** executor to share memory with, kept alive; NULL: none */
        public long shared_executor;
        /**
         * threads of each CPU context; 0: the processors this process may use are shared out among them, at most OMP_NUM_THREADS, where that is set, to each
         */
        public int num_threads;
        /** of random operators; each forward in training draws new numbers */
        public long seed;
        /** "null", "write" or "add" for every argument; NULL: see the next three */
        public Pointer grad_req;
        /** num_grad_reqs of them. Neither form: no gradients */
        public Pointer grad_req_list;
        /**
         * the argument each is for: those not named have none, unknown names are ignored; NULL: one for each argument in order
         */
        public Pointer grad_req_names;
        public long num_grad_reqs;
        /** NULL: by ctx_group, else the context */
        public Pointer arg_contexts;
        /** NULL: where the argument is; elsewhere is UNSUPPORTED */
        public Pointer grad_contexts;
        /** NULL: as for arguments */
        public Pointer aux_contexts;
        /** storage types of arguments and auxiliary states by name */
        public Pointer storage_names;
        /** COHORT_STORAGE_ constants, winning over `__storage_type__`; sparse: UNSUPPORTED */
        public Pointer storage_types;
        public long num_storage_types;
        /** arguments that are shared_executor's own arrays (its gradients too) */
        public Pointer shared_arg_names;
        /** read only if shared_data is given */
        public long num_shared_arg_names;
        /** pool of input arrays by name; read, and updated with what was allocated; NULL: none */
        public long shared_data;
        /** 1: a dtype that cannot be inferred is an error; 0: it is float32 */
        public int strict_dtypes;
        /**
         * The rest is for every way of binding. *&#47; /* COHORT_DTYPE_FLOAT32: all work is done in the network's types. COHORT_DTYPE_BFLOAT16: products of matrices on float32 arrays (convolutions, FullyConnected, dot, attention) are made in bfloat16, with sums in float32, and what follows them (activations, additions, pooling, normalisations, concatenation) takes their results so; losses, statistics, norms and all else stay in float32, bodies of loops and branches, too: see cohort_operator_precision(), and for the nodes of a bound network cohort_executor_debug_text(). Arguments, gradients, outputs and auxiliary states keep their types: the weights are the float32 masters. Where a CPU has no units for bfloat16 nothing is narrowed, and a message of level info says so. COHORT_DTYPE_FLOAT16: likewise, on gpu contexts alone, else UNSUPPORTED. COHORT_DTYPE_INT8: inference in bytes, by a calibration (calibration.h); with gradients UNSUPPORTED, without a calibration INVALID_ARGUMENT, with one that has seen nothing STATE. Others: INVALID_ARGUMENT.
         */
        public int compute_dtype;
        /** num_float32_names of them; one that is neither node nor operator: NAME */
        public Pointer float32_names;
        public long num_float32_names;
        /**
         * num_narrow_names of them; likewise. A node that cannot: UNSUPPORTED; a name in both lists, or two of one operator: INVALID_ARGUMENT
         */
        public Pointer narrow_names;
        public long num_narrow_names;
        /** of COHORT_DTYPE_INT8: ranges of the network's values, by its nodes' names */
        public long calibration;
        /**
         * 0: what backward reads of a forward pass stays until the next one, and backward may be repeated. 1: backward works in that memory, too, which takes less (planned_bytes of cohort_executor_memory()); the second one after a forward is a STATE error.
         */
        public int backward_once;
        /**
         * 1: on gpu contexts, products of float32 matrices (FullyConnected, dot, batch_dot, RNN, attention; convolutions where there is cuDNN) may round their factors to TF32, 11 significant bits, and sum in float32, which units of GPUs for it do several times faster; but for nodes and operators in float32_names. Not in bodies of loops and branches. On CPUs it means nothing. 0: in float32.
         */
        public int tf32;
        /**
         * 1: backward makes again what it reads of a forward pass where that is cheap and all that it is made of is kept anyway, or as cheap to make of what is, right before it reads it: results of batch norms, and of what is no product of matrices; of the sums in a residual network every other one. Less memory (planned_bytes of cohort_executor_memory()), somewhat more time, the same bits. Not in bodies of loops and branches. MXNet calls it mirroring (MXNET_BACKWARD_DO_MIRROR). 0: all is kept.
         */
        public int recompute;
    }

    /** Settings of a group that few callers change. Zero in any field means its default. */
    @Structure.FieldOrder({"struct_size", "workload", "num_workloads", "rounding", "slices", "num_slices", "inputs_need_grad", "fixed_param_names", "num_fixed_param_names", "grad_req", "grad_req_list", "grad_req_names", "num_grad_reqs", "state_names", "num_state_names", "input_dtype_names", "input_dtypes", "num_input_dtypes", "shared_group", "ctx_group_names", "ctx_group_contexts", "num_ctx_groups", "contexts_per_ctx_group", "num_threads", "gradient_bucket_bytes", "seed", "log", "log_user_data", "arg_names", "num_arg_names", "compute_dtype", "float32_names", "num_float32_names", "narrow_names", "num_narrow_names", "loss_scale", "loss_scale_window", "calibration", "backward_once", "arg_params", "aux_params", "gradient_sum_dtype", "tf32", "recompute"})
    public static class GroupOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** num_workloads relative shares, each &gt; 0 */
        public Pointer workload;
        /** the number of contexts; 0: equal shares */
        public long num_workloads;
        /** COHORT_ROUNDING_ constant */
        public int rounding;
        /** num_slices pairs begin, end, ascending from 0 without gaps to the batch size */
        public Pointer slices;
        /** the number of contexts; 0: by workload */
        public long num_slices;
        /** 1: gradients of the data too */
        public int inputs_need_grad;
        /** parameters without gradient; unknown names are ignored */
        public Pointer fixed_param_names;
        public long num_fixed_param_names;
        /** "null", "write" or "add" for all parameters; NULL: see the next three */
        public Pointer grad_req;
        /** num_grad_reqs of them. Neither form: "write" */
        public Pointer grad_req_list;
        /**
         * the argument each is for, over "write"; NULL: one for each argument in order, taken as it is, whatever inputs_need_grad and fixed_param_names say
         */
        public Pointer grad_req_names;
        public long num_grad_reqs;
        /** arguments that are states */
        public Pointer state_names;
        public long num_state_names;
        /** dtypes of data and labels by name, over those of symbol and descriptor */
        public Pointer input_dtype_names;
        /** COHORT_DTYPE_ constants */
        public Pointer input_dtypes;
        public long num_input_dtypes;
        /** group of another bucket to share memory with, kept alive; NULL: none */
        public long shared_group;
        /** Contexts of the nodes whose `__ctx_group__` is one of these names. None: the attribute is not read. */
        public Pointer ctx_group_names;
        /** for each name contexts_per_ctx_group of them; device_type 0: the name is not in that device's map */
        public Pointer ctx_group_contexts;
        public long num_ctx_groups;
        /** 1: the same on all devices; else the number of contexts; 0: 1 */
        public long contexts_per_ctx_group;
        /** threads of each CPU context; 0: as in executor.h */
        public int num_threads;
        /** gradients summed in one exchange, in bytes; 0: chosen from the model */
        public long gradient_bucket_bytes;
        /** of random operators; each device draws its own numbers */
        public long seed;
        /** takes this group's messages; NULL: they go where the library's do */
        public Callbacks.LogFn log;
        /** passed to log */
        public long log_user_data;
        /** what the caller takes the symbol's arguments to be, in order: anything else is an error */
        public Pointer arg_names;
        /** 0: not checked */
        public long num_arg_names;
        /** as in executor.h; how gradients are summed is gradient_sum_dtype */
        public int compute_dtype;
        /** num_float32_names nodes and operators, as in executor.h */
        public Pointer float32_names;
        public long num_float32_names;
        /** num_narrow_names of them, likewise */
        public Pointer narrow_names;
        public long num_narrow_names;
        /**
         * A factor on the loss, from 2^-24 to 2^24; 0: none. Gradients are that much larger, those that the group shows, too, and an update divides by it. Where a gradient is infinite or no number on any device, the update is skipped on all, with a message of level info, and the factor halves; it doubles after loss_scale_window updates that were made. Devices' gradients must be finite when summed, too. Each update then waits for the gradients, and divides by what the factor was in their backward pass. 65536 suits float16; bfloat16 needs none. Networks with IdentityAttachKLSparseReg, or with losses inside the graphs of _foreach, _while_loop, _cond or _CachedOp, cannot have one: their gradients begin within an operator (COHORT_ERROR_UNSUPPORTED).
         */
        public double loss_scale;
        /** 1 or more; 0: 2000 */
        public int loss_scale_window;
        /** as in executor.h */
        public long calibration;
        /** as in executor.h */
        public int backward_once;
        /**
         * For inference (for_training 0): parameters and auxiliary states by name that are the group's own arrays from here on, not copied, for all its contexts together: what is written to them is seen by the group, and what the group is given by cohort_group_set_params() is written to them. Those of another type, or that a context cannot use where they are, are copied. Parameters that are not named, or for NULL all, are new arrays of zeros; names that are no parameters are ignored. With shared_group, that group's are used and these are not.
         */
        public long arg_params;
        public long aux_params;
        /**
         * In which type float32 gradients are summed over the devices: COHORT_DTYPE_FLOAT32, or COHORT_DTYPE_BFLOAT16, which is half as much to move between GPUs, and slower on processors, which share their memory. Each device's gradients are rounded to 8 significant bits then, and their sum again (on GPUs that sum among themselves perhaps the sums on the way, too), to nearest: rounded so once, a sum is off by at most one part in 127 of the gradients' absolute values, added up. The same run still gives the same bits. What an update reads is float32, and so are the gradients that the group shows. Nothing is summed, nor rounded, for one device or COHORT_UPDATE_NO_STORE.
         */
        public int gradient_sum_dtype;
        /** as in executor.h */
        public int tf32;
        /** likewise */
        public int recompute;
    }

    /** Settings of one application of an operator. Zero in any field means its default. */
    @Structure.FieldOrder({"struct_size", "context", "seed", "is_train"})
    public static class InvokeOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** where an operator without inputs runs; NULL: cpu(0) */
        public Pointer context;
        /** of random operators: the same seed gives the same numbers */
        public long seed;
        /** 1: training behaviour, such as Dropout's */
        public int is_train;
    }

    /** Settings of a manager that few callers change. Zero in any field means its default. */
    @Structure.FieldOrder({"struct_size", "workload", "num_workloads", "default_bucket_key", "bucket_keys", "bucket_symbols", "num_buckets", "bucket_symbol", "bucket_symbol_user_data", "num_threads", "seed", "log", "log_user_data", "state_names", "num_state_names", "compute_dtype", "float32_names", "num_float32_names", "narrow_names", "num_narrow_names", "loss_scale", "loss_scale_window", "backward_once", "gradient_sum_dtype", "tf32", "recompute"})
    public static class ManagerOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** num_workloads relative shares, each &gt; 0 */
        public Pointer workload;
        /** the number of contexts; 0: equal shares */
        public long num_workloads;
        /** of the main symbol; not NULL if there are bucket symbols */
        public Pointer default_bucket_key;
        /** num_buckets different keys of symbols given ahead; the default one may be */
        public Pointer bucket_keys;
        /** among them, its symbol is not used. Copied: the handles stay the caller's */
        public Pointer bucket_symbols;
        public long num_buckets;
        /** asked for the other keys; NULL: there are none */
        public Callbacks.BucketSymbolFn bucket_symbol;
        /** passed to bucket_symbol */
        public long bucket_symbol_user_data;
        /** threads of each CPU context; 0: as in executor.h */
        public int num_threads;
        /** of random operators; each device draws its own numbers */
        public long seed;
        /** takes the messages of the manager and its groups; NULL: they go where the library's do */
        public Callbacks.LogFn log;
        /** passed to log */
        public long log_user_data;
        /** num_state_names arguments that are states; those of one shape are one array in all */
        public Pointer state_names;
        /** buckets, so that cohort_manager_set_states() holds for whichever runs next */
        public long num_state_names;
        /** as in executor.h; COHORT_DTYPE_INT8: UNSUPPORTED, as a manager trains */
        public int compute_dtype;
        /**
         * num_float32_names nodes and operators, as in executor.h; nodes of the main symbol need not be in those of other buckets
         */
        public Pointer float32_names;
        public long num_float32_names;
        /** num_narrow_names of them, likewise */
        public Pointer narrow_names;
        public long num_narrow_names;
        /** these two as in group.h; one for all buckets */
        public double loss_scale;
        public int loss_scale_window;
        /** as in executor.h */
        public int backward_once;
        /** as in group.h */
        public int gradient_sum_dtype;
        /** as in executor.h */
        public int tf32;
        /** likewise */
        public int recompute;
    }

    /** What an executor, or one device of a group, takes of memory. struct_size is set by the caller. */
    @Structure.FieldOrder({"struct_size", "planned_bytes", "intermediate_bytes", "argument_bytes", "gradient_bytes", "output_bytes", "value_bytes"})
    public static class MemoryInfo extends Structure {
        /** sizeof(cohort_memory_info) where the caller was compiled */
        public long struct_size;
        /** the planned pool: intermediate values and workspaces, after reuse */
        public long planned_bytes;
        /** what all intermediate arrays would take without reuse */
        public long intermediate_bytes;
        /** arguments and auxiliary states */
        public long argument_bytes;
        /** gradient arrays */
        public long gradient_bytes;
        /** outputs */
        public long output_bytes;
        /**
         * of planned_bytes, the most that intermediate values take at one time, and what forward saves for backward: without workspaces, and without arguments and their gradients in a layout or type that only a kernel wants. MXNet's `Total X MB allocated` counts so
         */
        public long value_bytes;
    }

    /**
     * Settings of a monitor that few callers change. Zero in any field means its default.
     *
     * Patterns are UTF-8 in the syntax of RE2: that of ECMAScript and Python without what needs backtracking - back
     * references such as `\1`, and looking around such as `(?=x)` and `(?!x)` - so that matching takes time linear in the
     * name, on little stack. Further differences: `^` and `$` are the ends of the name, `.` is any character but a newline,
     * one of several bytes too, `\d`, `\w`, `\s` and `\b` know ASCII only, `x{n}` repeats at most 1,000 times, and a
     * character is `\x{263A}`, not `&#92;u263A`. A pattern has at most 64 KiB, compiled some MiB. Others are refused; `filter`
     * is for hosts that want them.
     */
    @Structure.FieldOrder({"struct_size", "pattern", "pattern_mode", "all_in_toc", "sort", "monitor_all", "statistic", "statistic_user_data", "filter", "filter_user_data"})
    public static class MonitorOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** regular expression of the names to report, see below; NULL or "": all */
        public Pointer pattern;
        /** COHORT_PATTERN_ constant */
        public int pattern_mode;
        /** 1: pattern and filter do not choose among the arguments and auxiliary states */
        public int all_in_toc;
        /** 1: entries by name, equal ones in the order of execution; 0: in the order of execution */
        public int sort;
        /** 1: the inputs of each operator too, before its outputs */
        public int monitor_all;
        /** NULL: the Euclidean norm over the square root of the size, one float32 */
        public Callbacks.StatisticFn statistic;
        /** passed to statistic */
        public long statistic_user_data;
        /** chooses the names to report; NULL: pattern does. Not both */
        public Callbacks.NameFilterFn filter;
        /** passed to filter */
        public long filter_user_data;
    }

    /** Settings of a reshape. Zero in any field means its default. */
    @Structure.FieldOrder({"struct_size", "partial_shaping", "allow_up_sizing", "context", "ctx_group_names", "ctx_group_contexts", "num_ctx_groups"})
    public static class ReshapeOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** 1: arguments that are not named, and auxiliary states, may change shape too */
        public int partial_shaping;
        /** 1: arguments may grow; they are then new arrays of zeros */
        public int allow_up_sizing;
        /** the default context; NULL: the executor's. Here and in the next, arrays stay */
        public Pointer context;
        /** as for cohort_executor_options; none: the executor's */
        public Pointer ctx_group_names;
        public Pointer ctx_group_contexts;
        public long num_ctx_groups;
    }

    /** One row of totals. struct_size is set by the caller. */
    @Structure.FieldOrder({"struct_size", "kind", "count", "total_ns", "least_ns", "most_ns", "flops", "bytes", "bound_ns"})
    public static class SpanTotal extends Structure {
        /** sizeof(cohort_span_total) where the caller was compiled */
        public long struct_size;
        /** COHORT_SPAN_ constant */
        public int kind;
        /** how often it was done */
        public long count;
        /** in all */
        public long total_ns;
        /** the shortest and the longest */
        public long least_ns;
        public long most_ns;
        /** additions and multiplications of products and factorizations, in all; 0: none, or not known */
        public double flops;
        /** of arrays read and written, in all; 0: not known */
        public double bytes;
        /** what the machine would take for these at least, in all; 0: not known */
        public double bound_ns;
    }

    /** What a trace holds. struct_size is set by the caller. */
    @Structure.FieldOrder({"struct_size", "num_events", "num_dropped", "running"})
    public static class TraceInfo extends Structure {
        /** sizeof(cohort_trace_info) where the caller was compiled */
        public long struct_size;
        /** that are kept */
        public long num_events;
        /** that had to make room, or for which there was no memory */
        public long num_dropped;
        public int running;
    }

    /** Settings of a trace that few callers change. Zero in any field means its default. */
    @Structure.FieldOrder({"struct_size", "max_events", "flop_per_s", "bfloat16_flop_per_s", "byte_per_s"})
    public static class TraceOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** how many are kept, older ones make room; 0: 2^20. An event takes some 50 bytes */
        public long max_events;
        /** what the threads of one device can compute, in float32; 0: measured */
        public double flop_per_s;
        /** the same in bfloat16; 0: measured, where there are units for it */
        public double bfloat16_flop_per_s;
        /** what they can read and write by copying; 0: measured */
        public double byte_per_s;
    }
}
