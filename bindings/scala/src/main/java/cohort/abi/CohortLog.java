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
     * @param ended may be NULL. Called when the callback will not be called again: in cohort_log_free() or, if the callback is running then, after it. Not called if this call fails. NULL: nothing is called.
     * @param user_data may be NULL. Passed to both.
     */
    public static native long cohort_log_create(int lowest, Callbacks.LogFn callback, Callbacks.LogEndFn ended, long user_data, long[] out_log);

    /**
     * Frees a receiver; NULL does nothing. No delivery of a message to it starts after that. Does not wait for a thread
     * that is in the callback, so a finaliser may call it.
     * @param log may be NULL.
     */
    public static native void cohort_log_free(long log);

    /**
     * Sets the one receiver without a handle, or the level of messages that go to stderr. It is meant for programs. A
     * library that a program uses, or a language's binding, makes a receiver of its own instead, so as not to replace the
     * program's.
     *
     *
     * Any thread may call it. When it returns, the previous callback is not running on another thread and will not be
     * called again.
     * @param lowest The lowest level wanted; COHORT_LOG_OFF for none.
     * @param callback may be NULL. NULL: there is none. As long as there is no other receiver either, warnings and errors of at least level `lowest` go to stderr. At the start of a process it is NULL, with COHORT_LOG_WARNING.
     * @param user_data may be NULL. Passed to the callback; kept until another callback is set.
     */
    public static native long cohort_set_log(int lowest, Callbacks.LogFn callback, long user_data);
}
