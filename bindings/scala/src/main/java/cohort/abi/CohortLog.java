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

    /**
     * Makes a receiver of messages.
     * @param lowest The lowest level wanted; COHORT_LOG_OFF for none.
     * @param callback Called with each message.
     * @param ended may be NULL. Called when the callback will not be called again, in cohort_log_free() or, while the callback runs, behind it; not if this call fails. NULL: nothing is.
     * @param user_data may be NULL. Passed to both.
     */
    public static native long cohort_log_create(int lowest, Callbacks.LogFn callback, Callbacks.LogEndFn ended, long user_data, long[] out_log);

    /**
     * Frees a receiver; NULL does nothing. No message begins to be delivered to it any more. Does not wait for a thread
     * that is in the callback, so that a finaliser may call it.
     * @param log may be NULL.
     */
    public static native void cohort_log_free(long log);

    /**
     * Sets the one receiver that needs no handle, or where messages go without any. For a program; a library in it, or the
     * binding of a language, makes a receiver of its own, lest they take the program's.
     *
     *
     * Any thread. When it returns, the previous callback is not running on another thread and will not be called again.
     * @param lowest The lowest level wanted; COHORT_LOG_OFF for none.
     * @param callback may be NULL. NULL: there is none, and as long as there is no other receiver, warnings and errors go to stderr if `lowest` lets them pass; the state at the start, with COHORT_LOG_WARNING.
     * @param user_data may be NULL. Passed to the callback; kept until another callback is set.
     */
    public static native long cohort_set_log(int lowest, Callbacks.LogFn callback, long user_data);
}
