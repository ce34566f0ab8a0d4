// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import com.sun.jna.Pointer;
import com.sun.jna.Structure;

/** The structs of the headers; memory that a field points to must live as long as the struct is used. */
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
        /** 1: the pass itself is recorded, so that gradients have gradients; implies retain_graph */
        public int create_graph;
    }

    /**
     * One device: "cpu(0)" is {COHORT_DEVICE_CPU, 0}. Two contexts are equal if both fields are. Every id from 0 is a CPU
     * device, each with workers of its own; a GPU id must exist. The struct never grows. A function that takes a pointer to
     * one context takes NULL as cpu(0).
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
        /** NULL: states are not released */
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

    /** The memory of a context that this process uses. struct_size is set by the caller. */
    @Structure.FieldOrder({"struct_size", "used_bytes", "peak_bytes", "cached_bytes", "limit_bytes"})
    public static class DeviceMemoryInfo extends Structure {
        /** sizeof(cohort_device_memory_info) where the caller was compiled */
        public long struct_size;
        /** of arrays, and working memory of executors, groups and operators */
        public long used_bytes;
        /** the largest used_bytes since the last reset */
        public long peak_bytes;
        /** kept for later use besides: a GPU's driver does not give it to other processes */
        public long cached_bytes;
        /** set by cohort_device_limit_memory(); 0: none */
        public long limit_bytes;
    }

    /** Settings of an executor that few callers change. Zero in any field means its default. */
    @Structure.FieldOrder({"struct_size", "ctx_group_names", "ctx_group_contexts", "num_ctx_groups", "shared_executor", "num_threads", "seed", "grad_req", "grad_req_list", "grad_req_names", "num_grad_reqs", "arg_contexts", "grad_contexts", "aux_contexts", "storage_names", "storage_types", "num_storage_types", "shared_arg_names", "num_shared_arg_names", "shared_data", "strict_dtypes", "compute_dtype", "float32_names", "num_float32_names", "narrow_names", "num_narrow_names", "calibration", "backward_once", "tf32", "recompute"})
    public static class ExecutorOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /**
         * Contexts of the nodes whose `__ctx_group__` is one of these names. No names: the attribute is not read. num_ctx_groups of them
         */
        public Pointer ctx_group_names;
        /** one for each name */
        public Pointer ctx_group_contexts;
        public long num_ctx_groups;
        /** executor to share memory with, kept alive; NULL: none */
        public long shared_executor;
        /**
         * threads of each CPU context; 0: the processors that this process may use are divided among the contexts, and each gets at most OMP_NUM_THREADS if that is set. A pass without a step of some 100 microseconds, or a total of some 1000, runs on one thread: more would wait for each other longer than they compute where others use the processors
         */
        public int num_threads;
        /** seed of random operators; each forward in training draws new numbers */
        public long seed;
        /** "null", "write" or "add" for every argument; NULL: see the next three */
        public Pointer grad_req;
        /** num_grad_reqs of them; NULL like grad_req: no gradients */
        public Pointer grad_req_list;
        /**
         * the argument that each is for; arguments that are not named have no gradient, unknown names are ignored. NULL: one for each argument in order
         */
        public Pointer grad_req_names;
        public long num_grad_reqs;
        /**
         * One context for each argument or auxiliary state. Nodes without a group run where their inputs are. A context that contradicts the variable's group, or the default context where there are no groups, is a DEVICE error. NULL: by ctx_group, else the context
         */
        public Pointer arg_contexts;
        /** NULL: where the argument is; another context is UNSUPPORTED */
        public Pointer grad_contexts;
        /** NULL: as for arguments */
        public Pointer aux_contexts;
        /** storage types of arguments and auxiliary states by name */
        public Pointer storage_names;
        /** COHORT_STORAGE_ constants, which override `__storage_type__`; sparse: UNSUPPORTED */
        public Pointer storage_types;
        public long num_storage_types;
        /** arguments that use shared_executor's own arrays (and gradients) */
        public Pointer shared_arg_names;
        /** read only if shared_data is given */
        public long num_shared_arg_names;
        /** pool of input arrays by name; read, and newly allocated arrays are added; NULL: none */
        public long shared_data;
        /** 1: a dtype that cannot be inferred is an error; 0: it is float32 */
        public int strict_dtypes;
        /**
         * COHORT_DTYPE_FLOAT32: all work is done in the network's types. COHORT_DTYPE_BFLOAT16: matrix products on float32 arrays (convolutions, FullyConnected, dot, attention) are computed in bfloat16, with sums in float32, and operators that follow them (activations, additions, pooling, normalisations, concatenation) take and give bfloat16. Losses, statistics, norms and everything else stay in float32, and so do bodies of loops and branches: see cohort_operator_precision(), and cohort_executor_debug_text() for the nodes of a bound network. Arguments, gradients, outputs and auxiliary states keep their types: the weights are the float32 masters. A CPU without units for bfloat16 computes in float32, and a message of level info says so. COHORT_DTYPE_FLOAT16: likewise, on gpu contexts only, else UNSUPPORTED. COHORT_DTYPE_INT8: inference in 8-bit integers with a calibration (calibration.h); UNSUPPORTED with gradients, INVALID_ARGUMENT without a calibration, STATE with one that has observed nothing. Others: INVALID_ARGUMENT.
         */
        public int compute_dtype;
        /**
         * float32_names are nodes, or operators (which means all their nodes), that compute in the network's types whatever compute_dtype says. narrow_names are those that compute in compute_dtype although their operator does not by itself (cohort_operator_precision()). A node's name takes precedence over its operator's. An activation or norm that is fused into the layer before it computes as that layer does. num_float32_names of them; a name of neither a node nor an operator: NAME
         */
        public Pointer float32_names;
        public long num_float32_names;
        /**
         * num_narrow_names of them; likewise. A node that cannot: UNSUPPORTED; a name in both lists, or two names of one operator: INVALID_ARGUMENT
         */
        public Pointer narrow_names;
        public long num_narrow_names;
        /** for COHORT_DTYPE_INT8: ranges of values, by the nodes' names */
        public long calibration;
        /**
         * 0: what a forward pass keeps for backward stays until the next forward pass, and backward may be repeated. 1: backward reuses that memory, so the executor takes less (planned_bytes of cohort_executor_memory()); a second backward after one forward is a STATE error.
         */
        public int backward_once;
        /**
         * 1: on gpu contexts, products of float32 matrices (FullyConnected, dot, batch_dot, RNN, attention; convolutions where there is cuDNN) may round their factors to TF32, which has 11 significant bits, and sum in float32; GPUs with units for TF32 are several times faster then. Nodes and operators in float32_names, and bodies of loops and branches, are excepted. It has no effect on CPUs. 0: factors are float32.
         */
        public int tf32;
        /**
         * 1: backward computes cheap intermediate results a second time, right before it needs them, instead of keeping them. That is done where their inputs are kept, or are themselves cheap to compute from what is kept: for batch norms and other operators that are not matrix products, and for every other sum in a residual network. It takes less memory (planned_bytes of cohort_executor_memory()) and somewhat more time, and gives the same bits. Bodies of loops and branches are excepted. MXNet calls it mirroring (MXNET_BACKWARD_DO_MIRROR). 0: all is kept.
         */
        public int recompute;
    }

    /** Settings of a group that few callers change. Zero in any field means its default. */
    @Structure.FieldOrder({"struct_size", "workload", "num_workloads", "rounding", "slices", "num_slices", "inputs_need_grad", "fixed_param_names", "num_fixed_param_names", "grad_req", "grad_req_list", "grad_req_names", "num_grad_reqs", "state_names", "num_state_names", "input_dtype_names", "input_dtypes", "num_input_dtypes", "shared_group", "ctx_group_names", "ctx_group_contexts", "num_ctx_groups", "contexts_per_ctx_group", "num_threads", "gradient_bucket_bytes", "seed", "log", "log_user_data", "arg_names", "num_arg_names", "compute_dtype", "float32_names", "num_float32_names", "narrow_names", "num_narrow_names", "loss_scale", "loss_scale_window", "calibration", "backward_once", "arg_params", "aux_params", "gradient_sum_dtype", "tf32", "recompute", "keep_device_aux", "strict_names", "stop_if_not_finite"})
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
        /** parameters without gradient; for unknown names see strict_names */
        public Pointer fixed_param_names;
        public long num_fixed_param_names;
        /** "null", "write" or "add" for all parameters; NULL: see the next three */
        public Pointer grad_req;
        /** num_grad_reqs of them; NULL like grad_req: "write" */
        public Pointer grad_req_list;
        /**
         * the argument that each is for; arguments that are not named have "write". NULL: one for each argument in order, which inputs_need_grad and fixed_param_names do not change
         */
        public Pointer grad_req_names;
        public long num_grad_reqs;
        /** arguments that are states */
        public Pointer state_names;
        public long num_state_names;
        /** dtypes of data and labels by name; override symbol and descriptor */
        public Pointer input_dtype_names;
        /** COHORT_DTYPE_ constants */
        public Pointer input_dtypes;
        public long num_input_dtypes;
        /** group of another bucket to share memory with, kept alive; NULL: none */
        public long shared_group;
        /**
         * Contexts of the nodes whose `__ctx_group__` is one of these names. No names: the attribute is not read.
         */
        public Pointer ctx_group_names;
        /**
         * for each name contexts_per_ctx_group of them; device_type 0: on this device the name is not mapped, and its nodes run on the device's own context
         */
        public Pointer ctx_group_contexts;
        public long num_ctx_groups;
        /** 1: the same on all devices; else the number of contexts; 0: 1 */
        public long contexts_per_ctx_group;
        /** threads of each CPU context; 0: as in executor.h */
        public int num_threads;
        /** gradients summed in one exchange, in bytes; 0: chosen from the model */
        public long gradient_bucket_bytes;
        /** seed of random operators; each device draws its own numbers */
        public long seed;
        /** takes this group's messages; NULL: they go where the library's do */
        public Callbacks.LogFn log;
        /** passed to log */
        public long log_user_data;
        /** the arguments that the caller expects the symbol to have, in order; others are an error */
        public Pointer arg_names;
        /** 0: not checked */
        public long num_arg_names;
        /** as in executor.h; gradient_sum_dtype is for sums of gradients */
        public int compute_dtype;
        /** num_float32_names nodes and operators, as in executor.h */
        public Pointer float32_names;
        public long num_float32_names;
        /** num_narrow_names of them, likewise */
        public Pointer narrow_names;
        public long num_narrow_names;
        /**
         * A factor on the loss, from 2^-24 to 2^24; 0: none. Gradients are larger by this factor, also those that the group shows, and an update divides by it. If a gradient is infinite or NaN on any device, the update is skipped on all, with a message of level info, and the factor halves; it doubles after loss_scale_window updates that were not skipped. The sums of the devices' gradients must be finite, too. Each update then waits for the gradients, and divides by the factor of their backward pass. 65536 suits float16; bfloat16 needs none. Networks with IdentityAttachKLSparseReg, or with losses inside the graphs of _foreach, _while_loop, _cond or _CachedOp, cannot have one: their gradients begin within an operator (COHORT_ERROR_UNSUPPORTED).
         */
        public double loss_scale;
        /** 1 or more; 0: 2000 */
        public int loss_scale_window;
        /** as in executor.h */
        public long calibration;
        /** as in executor.h */
        public int backward_once;
        /**
         * For inference (for_training 0): parameters and auxiliary states by name. The group uses these arrays themselves, not copies, on all its contexts: it sees what is written to them, and cohort_group_set_params() writes to them. Arrays of another type, or that a context cannot use where they are, are copied. Parameters that are not named (NULL: all) are new arrays of zeros; other names are ignored. With shared_group, the arrays of that group are used instead.
         */
        public long arg_params;
        public long aux_params;
        /**
         * The type in which float32 gradients are summed over the devices: COHORT_DTYPE_FLOAT32, or COHORT_DTYPE_BFLOAT16, which moves half as many bytes between GPUs, and is slower on CPUs, which share their memory. With bfloat16 each device's gradients are rounded to the nearest numbers of 8 significant bits, and so is their sum; GPUs that sum among themselves may round partial sums, too. Without such partial sums the error is at most 1/127 of the sum of the gradients' absolute values. The same run still gives the same bits. Updates read float32, and the gradients that the group shows are float32. For one device or COHORT_UPDATE_NO_STORE nothing is summed or rounded.
         */
        public int gradient_sum_dtype;
        /** as in executor.h */
        public int tf32;
        /** likewise */
        public int recompute;
        /**
         * 1: cohort_optimizer_save_states() saves each device's own auxiliary states, such as the moving statistics of BatchNorm, with the states of the optimizer that updates this group, and cohort_group_resume() sets them. 0: of several devices only their mean is kept, which cohort_group_get_params() gives.
         */
        public int keep_device_aux;
        /**
         * 1: a name in param_names, fixed_param_names, grad_req_names or input_dtype_names that would be ignored is COHORT_ERROR_NAME, and the error gives the nearest names. 0: a message of level warning says so, unless there is a shared_group, as buckets may have other parameters.
         */
        public int strict_names;
        /**
         * 1: a pass fails with COHORT_ERROR_EXECUTION at the first output of an operator, or gradient of its inputs, that has an infinity or a NaN; the error names it, and the rest of that device's pass does not run. For finding the layer where numbers leave their range: nothing is fused, and passes wait for their work.
         */
        public int stop_if_not_finite;
    }

    /** Settings of one application of an operator. Zero in any field means its default. */
    @Structure.FieldOrder({"struct_size", "context", "seed", "is_train"})
    public static class InvokeOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** where an operator without inputs runs; NULL: cpu(0) */
        public Pointer context;
        /** seed of random operators: the same seed gives the same numbers */
        public long seed;
        /** 1: training behaviour, such as Dropout's */
        public int is_train;
    }

    /** Settings of a manager that few callers change. Zero in any field means its default. */
    @Structure.FieldOrder({"struct_size", "workload", "num_workloads", "default_bucket_key", "bucket_keys", "bucket_symbols", "num_buckets", "bucket_symbol", "bucket_symbol_user_data", "num_threads", "seed", "log", "log_user_data", "state_names", "num_state_names", "compute_dtype", "float32_names", "num_float32_names", "narrow_names", "num_narrow_names", "loss_scale", "loss_scale_window", "backward_once", "gradient_sum_dtype", "tf32", "recompute", "keep_device_aux"})
    public static class ManagerOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** num_workloads relative shares, each &gt; 0 */
        public Pointer workload;
        /** the number of contexts; 0: equal shares */
        public long num_workloads;
        /** key of the main symbol; not NULL if there are bucket symbols */
        public Pointer default_bucket_key;
        /** num_buckets different keys; the default key may be among them, its symbol is not used */
        public Pointer bucket_keys;
        /** their symbols, which are copied: the handles stay the caller's */
        public Pointer bucket_symbols;
        public long num_buckets;
        /** called for other keys; NULL: there are none */
        public Callbacks.BucketSymbolFn bucket_symbol;
        /** passed to bucket_symbol */
        public long bucket_symbol_user_data;
        /** threads of each CPU context; 0: as in executor.h */
        public int num_threads;
        /** seed of random operators; each device draws its own numbers */
        public long seed;
        /** takes the messages of the manager and its groups; NULL: they go where the library's do */
        public Callbacks.LogFn log;
        /** passed to log */
        public long log_user_data;
        /**
         * num_state_names arguments that are states. Buckets in which a state has the same shape share its array, so cohort_manager_set_states() holds for the bucket that runs next, too.
         */
        public Pointer state_names;
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
        /** as in group.h */
        public int keep_device_aux;
    }

    /** The memory that an executor, or one device of a group, takes. struct_size is set by the caller. */
    @Structure.FieldOrder({"struct_size", "planned_bytes", "intermediate_bytes", "argument_bytes", "gradient_bytes", "output_bytes", "value_bytes"})
    public static class MemoryInfo extends Structure {
        /** sizeof(cohort_memory_info) where the caller was compiled */
        public long struct_size;
        /** the planned pool: intermediate values and workspaces, after reuse */
        public long planned_bytes;
        /** the bytes of all intermediate arrays without reuse */
        public long intermediate_bytes;
        /** arguments and auxiliary states */
        public long argument_bytes;
        /** gradient arrays */
        public long gradient_bytes;
        /** outputs */
        public long output_bytes;
        /**
         * The part of planned_bytes for intermediate values when they take most, and for what forward saves for backward. It excludes workspaces, and copies of arguments and gradients in a layout or type that a kernel wants. MXNet's `Total X MB allocated` counts the same.
         */
        public long value_bytes;
    }

    /**
     * Settings of a monitor that few callers change. Zero in any field means its default.
     *
     * Patterns are UTF-8 in the syntax of RE2: that of ECMAScript and Python without features that need backtracking (back
     * references such as `\1`, and assertions such as `(?=x)` and `(?!x)`), so that matching takes time linear in the
     * length of the name, and little stack. Further differences: `^` and `$` are the ends of the name, `.` is any character
     * except a newline, also one of several bytes, `\d`, `\w`, `\s` and `\b` know ASCII only, `x{n}` repeats at most 1,000
     * times, and a character is `\x{263A}`, not `&#92;u263A`. A pattern has at most 64 KiB, and some MiB when compiled. Other
     * patterns are refused; hosts that need them use `filter`.
     */
    @Structure.FieldOrder({"struct_size", "pattern", "pattern_mode", "all_in_toc", "sort", "monitor_all", "statistic", "statistic_user_data", "filter", "filter_user_data", "stop_if_not_finite"})
    public static class MonitorOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** regular expression of the names to report, see below; NULL or "": all */
        public Pointer pattern;
        /** COHORT_PATTERN_ constant */
        public int pattern_mode;
        /** 1: arguments and auxiliary states are reported whatever pattern and filter say */
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
        /**
         * 1: a pass fails with COHORT_ERROR_EXECUTION at the first output or gradient with an infinity or a NaN, whatever pattern and filter say. The error names it, and the rest of the pass does not run.
         */
        public int stop_if_not_finite;
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
        /** the default context; NULL: the executor's. Arrays stay where they are, also with ctx groups */
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
        /** the shortest */
        public long least_ns;
        /** the longest */
        public long most_ns;
        /** additions and multiplications of products and factorizations, in all; 0: none, or not known */
        public double flops;
        /** of arrays read and written, in all; 0: not known */
        public double bytes;
        /** the least time the machine would take for these, in all; 0: not known */
        public double bound_ns;
    }

    /** The contents of a trace. struct_size is set by the caller. */
    @Structure.FieldOrder({"struct_size", "num_events", "num_dropped", "running"})
    public static class TraceInfo extends Structure {
        /** sizeof(cohort_trace_info) where the caller was compiled */
        public long struct_size;
        /** events that are kept */
        public long num_events;
        /** events dropped for newer ones, or for lack of memory */
        public long num_dropped;
        public int running;
    }

    /** Settings of a trace that few callers change. Zero in any field means its default. */
    @Structure.FieldOrder({"struct_size", "max_events", "flop_per_s", "bfloat16_flop_per_s", "byte_per_s"})
    public static class TraceOptions extends Structure {
        /** size the caller was compiled with; set by the initialisers */
        public long struct_size;
        /** how many are kept, the latest ones; 0: 2^20. An event takes some 50 bytes */
        public long max_events;
        /** the speed of one device's threads in float32; 0: measured */
        public double flop_per_s;
        /** the same in bfloat16; 0: measured if there are units for it */
        public double bfloat16_flop_per_s;
        /** the bytes that they read and write in a copy; 0: measured */
        public double byte_per_s;
    }
}
