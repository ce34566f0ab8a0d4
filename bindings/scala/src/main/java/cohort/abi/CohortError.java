// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The functions of cohort/error.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortError {
    private CohortError() {
    }

    static {
        Loader.register(CohortError.class);
    }

    /**
     * The class of an error.
     * @param error may be NULL. NULL: COHORT_SUCCESS.
     */
    public static native int cohort_error_code(long error);

    /**
     * The name of a class in lower case, such as "shape"; "unknown" for other values. Lives as long as the process.
     */
    public static native String cohort_error_code_text(int code);

    /**
     * Frees an error. NULL, and an error that is freed already, do nothing.
     * @param error may be NULL.
     */
    public static native void cohort_error_free(long error);

    /**
     * One line for a person, which says what is wrong, where, what was expected and what was found. It is UTF-8, whatever
     * it quotes: other bytes and control characters are written as \xNN, in the subject too. The middle of a quotation of
     * more than 4 KiB is left out, but not of the subject. Lives until the error is freed.
     * @param error may be NULL. NULL: "".
     */
    public static native String cohort_error_message(long error);

    /**
     * The operator, node, argument, array or file concerned; "" if there is none. Lives as the message does.
     * @param error may be NULL. NULL: "".
     */
    public static native String cohort_error_subject(long error);
}
