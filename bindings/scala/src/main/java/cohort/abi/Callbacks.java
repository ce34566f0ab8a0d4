// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import com.sun.jna.Callback;
import com.sun.jna.Pointer;

/** The callbacks of the headers; keep a reference to a callback as long as the library may call it. */
public final class Callbacks {
    private Callbacks() {
    }

    /**
     * Gives the symbol of a bucket.
     *
     *
     * Runs inside cohort_manager_load_data_batch(), on the calling thread, once for each bucket that is made, never for the
     * default one. It must not use the manager or its groups.
     */
    public interface BucketSymbolFn extends Callback {
        int invoke(Pointer bucket_key, Pointer out_symbol, long user_data);
    }

    /**
     * Computes the gradients of the inputs. It always overwrites the arrays; the library then applies grad_req.
     */
    public interface CustomBackwardFn extends Callback {
        int invoke(long state, long head_grads, long inputs, long aux, long outputs, long gradients, long user_data);
    }

    /**
     * Makes the state of one bound node, which its forward and backward passes use. Each executor and each device binds the
     * node, for training and for inference separately; each application to arrays is a node of its own.
     */
    public interface CustomCreateFn extends Callback {
        int invoke(Pointer keys, Pointer values, long num_attrs, Pointer context, Pointer out_state, long user_data);
    }

    /** Gives the names of a node's inputs, auxiliary states and outputs. */
    public interface CustomDeclareFn extends Callback {
        int invoke(Pointer keys, Pointer values, long num_attrs, long inputs, long aux, long outputs, long user_data);
    }

    /**
     * Runs once, when the operator is not registered any more, and no symbol or bound object has a node of it.
     */
    public interface CustomEndFn extends Callback {
        void invoke(long user_data);
    }

    /** Computes the outputs. */
    public interface CustomForwardFn extends Callback {
        int invoke(long state, long inputs, long aux, long outputs, int is_train, long user_data);
    }

    /**
     * Infers shapes, or dtypes. Called when that of the first input is known, once or several times for each inference. It
     * cannot return an axis of length 0, since 0 means unknown.
     */
    public interface CustomInferFn extends Callback {
        int invoke(Pointer keys, Pointer values, long num_attrs, long known, long inputs, long aux, long outputs, long user_data);
    }

    /** Frees a state. Runs once for each, when its node is not bound any more. */
    public interface CustomReleaseFn extends Callback {
        void invoke(long state, long user_data);
    }

    /**
     * Tells the owner of wrapped memory that the library is done with it.
     *
     * Called once, at the end of a call of the library, on the thread that made the call: nothing else in the library waits
     * for it. It must not call the library.
     */
    public interface DeleterFn extends Callback {
        void invoke(long data, long user_data);
    }

    /**
     * Says that a receiver has been freed and will not be called any more, so that its user_data may be freed.
     *
     * Called once, at the end of a call of the library, on the thread that made the call. It must not call the library.
     */
    public interface LogEndFn extends Callback {
        void invoke(long user_data);
    }

    /**
     * Receives one message, whole, without a newline.
     *
     *
     * Runs on a thread that is inside a call of the library, on one thread at a time: messages of other threads are queued
     * for the thread that is in the callback; the other threads go on at once. It must not call the library, except to free
     * its own receiver.
     */
    public interface LogFn extends Callback {
        void invoke(int level, Pointer message, long user_data);
    }

    /**
     * Computes a metric of the caller for one update.
     *
     *
     * Runs inside cohort_metric_update() and cohort_group_update_metric(). It may use the arrays, and must not use the
     * metric or the group.
     */
    public interface MetricFn extends Callback {
        int invoke(Pointer labels, long num_labels, Pointer preds, long num_preds, Pointer out_sum, Pointer out_num, long user_data);
    }

    /**
     * Is shown an array as it is computed.
     *
     *
     * Runs inside cohort_executor_forward(), cohort_executor_partial_forward() and cohort_executor_backward(), and the
     * calls of a group that do the same. It may use the array, and must not use the executor or its group.
     */
    public interface MonitorFn extends Callback {
        void invoke(Pointer name, long array, long user_data);
    }

    /**
     * Says whether a monitor is to report an array: for hosts with regular expressions of their own.
     *
     *
     * Runs where cohort_statistic_fn does, for each array that could be reported, and under the same rules.
     */
    public interface NameFilterFn extends Callback {
        int invoke(Pointer name, long user_data);
    }

    /**
     * Computes the values that a monitor reports of an array.
     *
     *
     * Runs inside the forward and backward calls of what is monitored, and inside cohort_monitor_toc(), for each array that
     * is reported; not after the monitor was freed. It may use the array, and must not use the monitor or what is
     * monitored. If it fails or gives no array in a forward or backward call, the rest of that pass does not run.
     */
    public interface StatisticFn extends Callback {
        int invoke(long array, long values, long user_data);
    }

    /**
     * Computes the gradients of a function that the host computed itself.
     *
     *
     * Runs inside cohort_tape_backward() and cohort_tape_grad(). It may apply operators with the same tape, which records
     * them only if the pass is recorded (create_graph), and must use the tape in no other way.
     */
    public interface TapeFunctionFn extends Callback {
        int invoke(long head_grads, long gradients, long user_data);
    }

    /**
     * Releases what belongs to a function of the host. Runs at the end of the call that removes the function from the tape:
     * a backward pass, an application of an operator, cohort_tape_free(). It must not use the tape.
     */
    public interface TapeReleaseFn extends Callback {
        void invoke(long user_data);
    }
}
