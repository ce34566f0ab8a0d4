// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The functions of cohort/log.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortLog {
    private CohortLog() {
    }

    static {
        Loader.register(CohortLog.class);
    }

    /** Makes a receiver of messages. */
    public static native long cohort_log_create(int lowest, Callbacks.LogFn callback, Callbacks.LogEndFn ended, long user_data, long[] out_log);

    /**
     * Frees a receiver; NULL does nothing. No message begins to be delivered to it any more. Does not wait for a thread that
     * is in the callback, so that a finaliser may call it.
     */
    public static native void cohort_log_free(long log);

    /**
     * Sets the one receiver that needs no handle, or where messages go without any. For a program; a library in it, or the
     * binding of a language, makes a receiver of its own, lest they take the program's.
     *
     *
     * Any thread. When it returns, the previous callback is not running on another thread and will not be called again.
     */
    public static native long cohort_set_log(int lowest, Callbacks.LogFn callback, long user_data);
}
