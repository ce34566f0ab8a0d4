// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The constants of the headers, by family. */
public final class Constants {
    private Constants() {
    }

    public static final String VERSION = "0.1.0";
    public static final int SOVERSION = 0;
    /** The most axes that an array can have. A buffer of this many int64_t holds any shape. */
    public static final int MAX_AXES = 32;
    /**
     * As a value of num_axes: the shape is not known. An axis of unknown length has length 0 where a function says so.
     */
    public static final int UNKNOWN_SHAPE = -1;

    /** How a calibration gets a range from the numbers that it observes. */
    public static final class CalibrationMethod {
        private CalibrationMethod() {
        }

        /** the range from the least to the largest */
        public static final int MIN_MAX = 0;
        /** that range cut off where 8 bits keep most of the distribution */
        public static final int ENTROPY = 1;
    }

    /** Kinds of devices. */
    public static final class DeviceType {
        private DeviceType() {
        }

        public static final int CPU = 1;
        public static final int GPU = 2;
        public static final int CPU_PINNED = 3;
        public static final int CPU_SHARED = 5;
    }

    /**
     * Element types, in the byte order of the host. A bool is a byte, 0 or 1; float16 is IEEE 754's, bfloat16 the upper
     * half of a float32. COHORT_DTYPE_NONE stands for "not given" or "not known".
     */
    public static final class Dtype {
        private Dtype() {
        }

        public static final int NONE = -1;
        public static final int FLOAT32 = 0;
        public static final int FLOAT64 = 1;
        public static final int FLOAT16 = 2;
        public static final int UINT8 = 3;
        public static final int INT32 = 4;
        public static final int INT8 = 5;
        public static final int INT64 = 6;
        public static final int BOOL = 7;
        public static final int BFLOAT16 = 12;
    }

    /**
     * Classes of errors. When memory runs out, the call that needed it, or that waited for work which needed it, returns an
     * error that says so, and all handles stay usable. The library cannot handle failed allocations inside libgomp and
     * oneDNN.
     */
    public static final class ErrorClass {
        private ErrorClass() {
        }

        /** the class of NULL */
        public static final int SUCCESS = 0;
        /** a wrong handle, count, range or constant; options that contradict */
        public static final int ERROR_INVALID_ARGUMENT = 1;
        /** an unknown, missing, duplicate or ambiguous name */
        public static final int ERROR_NAME = 2;
        /** shapes that differ or cannot be inferred */
        public static final int ERROR_SHAPE = 3;
        /** dtypes that differ or cannot be inferred */
        public static final int ERROR_DTYPE = 4;
        /** a valid call at the wrong time */
        public static final int ERROR_STATE = 5;
        /** a feature that this build or device does not offer */
        public static final int ERROR_UNSUPPORTED = 6;
        /** no such device or backend; arrays on the wrong device */
        public static final int ERROR_DEVICE = 7;
        /** contents of a file, of JSON or of a buffer */
        public static final int ERROR_FORMAT = 8;
        /** the file system */
        public static final int ERROR_IO = 9;
        /** no memory left on the host or a device */
        public static final int ERROR_OUT_OF_MEMORY = 10;
        /** work on a device failed; returned by a call that waits for it */
        public static final int ERROR_EXECUTION = 11;
        /** a defect in this library */
        public static final int ERROR_INTERNAL = 12;
    }

    /** Lists of arrays that an executor has. */
    public static final class ExecutorList {
        private ExecutorList() {
        }

        /** arguments, in the order of the symbol's list */
        public static final int ARGS = 0;
        /** gradients of the arguments, in the same order; no array where there is none */
        public static final int GRADS = 1;
        /** auxiliary states */
        public static final int AUX = 2;
        /** outputs, in the order of the heads */
        public static final int OUTPUTS = 3;
    }

    /** How backward treats the gradient of an argument; "null", "write" and "add" as text. */
    public static final class GradReq {
        private GradReq() {
        }

        /** there is none */
        public static final int NULL = 0;
        /** each backward overwrites it */
        public static final int WRITE = 1;
        /** each backward adds to it; the caller sets it to zero */
        public static final int ADD = 3;
    }

    /** Lists of arrays that a group has, each entry once per device. */
    public static final class GroupList {
        private GroupList() {
        }

        /** data, in the order of the descriptors */
        public static final int DATA = 0;
        /** labels, in the order of the descriptors; none if bound without */
        public static final int LABELS = 1;
        /** arguments named as parameters, in the order of the symbol's arguments */
        public static final int PARAMS = 2;
        /** their gradients, in the same order; no entries unless bound for training */
        public static final int GRADS = 3;
        /** auxiliary states, in the order of the symbol's list */
        public static final int AUX = 4;
        /** states, in the order given */
        public static final int STATES = 5;
        /** outputs, in the order of the heads */
        public static final int OUTPUTS = 6;
        /** gradients of the data; no entries unless inputs_need_grad and for_training */
        public static final int INPUT_GRADS = 7;
        /** all arguments, in the order of the symbol's list */
        public static final int ARGS = 8;
    }

    /** Levels of messages. */
    public static final class LogLevel {
        private LogLevel() {
        }

        public static final int DEBUG = 0;
        public static final int INFO = 1;
        public static final int WARNING = 2;
        public static final int ERROR = 3;
        /** as the lowest level: no messages */
        public static final int OFF = 4;
    }

    /** Where in a name a pattern has to match. */
    public static final class PatternMode {
        private PatternMode() {
        }

        /** from the start of the name, not necessarily to its end */
        public static final int ANCHORED = 0;
        /** any part of it */
        public static final int ANYWHERE = 1;
    }

    /**
     * How an operator works if a network computes in a narrower type than that of its arrays (compute_dtype).
     */
    public static final class Precision {
        private Precision() {
        }

        /** keeps the types of the network */
        public static final int OWN = 0;
        /** computes in the narrower type: products of matrices */
        public static final int NARROW = 1;
        /** computes in the narrower type if its input comes in it */
        public static final int FOLLOWS = 2;
    }

    /** How a share of the batch becomes a whole number of samples. */
    public static final class Rounding {
        private Rounding() {
        }

        /** to the nearest, halves up; the last device gets the rest */
        public static final int HALF_UP = 0;
        /** the same with halves to the even number */
        public static final int HALF_EVEN = 1;
        /** largest remainder, at least one sample per device: works whenever possible */
        public static final int BALANCED = 2;
    }

    /** Kinds of events. */
    public static final class SpanKind {
        private SpanKind() {
        }

        /** a step of a network, or of an operator applied to arrays */
        public static final int OPERATOR = 0;
        /** steps that were queued together: "forward", "backward", "update" */
        public static final int PASS = 1;
        public static final int COPY = 2;
        /** gradients summed over devices */
        public static final int EXCHANGE = 3;
        /** a parameter, or a part of one */
        public static final int UPDATE = 4;
        /** a queue waits for another one */
        public static final int WAIT = 5;
        /** a host thread is in a call that starts passes */
        public static final int CALL = 6;
        /** a span of the host's own: cohort_trace_begin() */
        public static final int USER = 7;
    }

    /**
     * Storage types. Only the default one is supported; the others are known so that they can be refused by name.
     */
    public static final class StorageType {
        private StorageType() {
        }

        public static final int UNDEFINED = -1;
        public static final int DEFAULT = 0;
        public static final int ROW_SPARSE = 1;
        public static final int CSR = 2;
    }

    /** Lists of names that a symbol has. */
    public static final class SymbolList {
        private SymbolList() {
        }

        /** variables that are no auxiliary states */
        public static final int ARGUMENTS = 0;
        /** auxiliary states: variables that operators update, such as moving means */
        public static final int AUX = 1;
        /** the heads */
        public static final int OUTPUTS = 2;
        /** all variables, arguments and auxiliary states interleaved */
        public static final int INPUTS = 3;
        /**
         * arguments that outputs need only as labels of losses such as SoftmaxOutput: inference needs no values of them
         */
        public static final int LABELS = 4;
    }

    /** How totals are summed. */
    public static final class TotalsBy {
        private TotalsBy() {
        }

        /** a row for each operator of each node, each parameter, ... */
        public static final int NAME = 0;
        /** a row for each operator, optimizer, ... */
        public static final int OPERATOR = 1;
    }

    /** How cohort_group_update() puts the devices' gradients together. */
    public static final class UpdateMode {
        private UpdateMode() {
        }

        /** one update from the sum over the devices, copied to all; gradients do not change */
        public static final int ON_STORE = 0;
        /** the sum replaces each device's gradient, and each device updates its own */
        public static final int PER_DEVICE = 1;
        /** each device updates from its own gradient; devices may differ then */
        public static final int NO_STORE = 2;
    }
}
