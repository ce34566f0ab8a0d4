// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The constants of the headers, by family. */
public final class Constants {
    private Constants() {
    }

    public static final String VERSION = "0.1.0";
    public static final int SOVERSION = 0;
    /** How many axes an array can have. Buffers of this many int64_t hold any shape. */
    public static final int MAX_AXES = 32;
    /** As num_axes: the shape is not known. A single unknown axis length is 0 where a function says so. */
    public static final int UNKNOWN_SHAPE = -1;

    /** What a calibration makes of the numbers that it sees. */
    public static final class CalibrationMethod {
        private CalibrationMethod() {
        }

        /** the range from the least to the largest */
        public static final int MIN_MAX = 0;
        /** that range cut off where bytes tell most of how the numbers are distributed */
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
     * Classes of errors. Where memory runs out, the call that needed it, or waited for work that needed it, says so, and
     * the handles stay usable; only what libgomp and oneDNN ask for inside themselves is out of our hands.
     */
    public static final class ErrorClass {
        private ErrorClass() {
        }

        /** what cohort_error_code() says of NULL */
        public static final int SUCCESS = 0;
        /** a wrong handle, count, range or constant; options that contradict */
        public static final int ERROR_INVALID_ARGUMENT = 1;
        /** an unknown, missing, duplicate or ambiguous name */
        public static final int ERROR_NAME = 2;
        /** shapes that differ or cannot be inferred */
        public static final int ERROR_SHAPE = 3;
        /** dtypes that differ or cannot be inferred */
        public static final int ERROR_DTYPE = 4;
        /** a right call at the wrong moment */
        public static final int ERROR_STATE = 5;
        /** a feature that this build or device does not offer */
        public static final int ERROR_UNSUPPORTED = 6;
        /** no such device or backend; arrays on the wrong device */
        public static final int ERROR_DEVICE = 7;
        /** contents of a file, of JSON or of a buffer */
        public static final int ERROR_FORMAT = 8;
        /** the file system */
        public static final int ERROR_IO = 9;
        /** no room on the host or a device */
        public static final int ERROR_OUT_OF_MEMORY = 10;
        /** work on a device failed; out at the call that waited for it */
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

    /** What backward does with the gradient of an argument; "null", "write" and "add" as text. */
    public static final class GradReq {
        private GradReq() {
        }

        /** there is none */
        public static final int NULL = 0;
        /** each backward overwrites it */
        public static final int WRITE = 1;
        /** each backward adds to it; setting it to zero is the caller's */
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
     * What an operator does where a network computes in a narrower type than that of its arrays (compute_dtype).
     */
    public static final class Precision {
        private Precision() {
        }

        /** keeps the types of the network */
        public static final int OWN = 0;
        /** computes in the narrower type: products of matrices */
        public static final int NARROW = 1;
        /** takes an array in the narrower type as it comes, and gives its result so */
        public static final int FOLLOWS = 2;
    }

    /** How a share of the batch becomes a whole number of samples. */
    public static final class Rounding {
        private Rounding() {
        }

        /** to the nearest, halves up; what is missing goes to the last device */
        public static final int HALF_UP = 0;
        /** the same with halves to the even number */
        public static final int HALF_EVEN = 1;
        /** largest remainder, at least one sample per device: works whenever that is possible */
        public static final int BALANCED = 2;
    }

    /** What an event is about. */
    public static final class SpanKind {
        private SpanKind() {
        }

        /** a step of a network, or of an operator that was applied at once */
        public static final int OPERATOR = 0;
        /** steps that were queued together: "forward", "backward", "update" */
        public static final int PASS = 1;
        public static final int COPY = 2;
        /** gradients summed over devices */
        public static final int EXCHANGE = 3;
        /** a parameter, or a part of one */
        public static final int UPDATE = 4;
        /** a queue, for another one */
        public static final int WAIT = 5;
        /** a thread of the host's, in a call that starts passes */
        public static final int CALL = 6;
        /** what the host says of itself: cohort_trace_begin() */
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
         * arguments that reach the outputs by way of the label of a loss alone, SoftmaxOutput's and the like: inference needs no values of them
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

        /** one update from the sum over the devices, copied to all; gradients stay */
        public static final int ON_STORE = 0;
        /** the sum replaces each device's gradient, and each device updates its own */
        public static final int PER_DEVICE = 1;
        /** each device updates from its own gradient; devices may part */
        public static final int NO_STORE = 2;
    }
}
