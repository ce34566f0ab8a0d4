// SPDX-License-Identifier: Apache-2.0
package cohort.abi;

import com.sun.jna.Memory;
import com.sun.jna.Structure;
import java.lang.reflect.Method;

/** Checks and messages for the tests of the interface. */
final class Check {
    // Zeros, which are no handle of any kind; never freed, because there is only one.
    private static final Memory STRAY = new Memory(4096);

    static {
        STRAY.clear();
    }

    private Check() {
    }

    static long stray() {
        return com.sun.jna.Pointer.nativeValue(STRAY);
    }

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    /** Checks the class of the error of a call that must be refused. */
    static void refused(String name, long error) {
        that(error != 0, name + " takes it");
        int code = CohortError.cohort_error_code(error);
        CohortError.cohort_error_free(error);
        that(code != Constants.ErrorClass.SUCCESS && code != Constants.ErrorClass.ERROR_INTERNAL, name + ": class " + code);
    }

    static void ok(long error) {
        if (error != 0) {
            String message = CohortError.cohort_error_message(error);
            CohortError.cohort_error_free(error);
            throw new AssertionError(message);
        }
    }

    static void size(Structure struct, int bytes) {
        that(struct.size() == bytes, struct.getClass() + ": " + struct.size() + " bytes, not " + bytes);
    }

    static void offset(Structure struct, String field, int offset) {
        try {
            Method method = Structure.class.getDeclaredMethod("fieldOffset", String.class);
            method.setAccessible(true);
            int found = (Integer) method.invoke(struct, field);
            that(found == offset, struct.getClass() + "." + field + ": at " + found + ", not " + offset);
        } catch (ReflectiveOperationException why) {
            throw new AssertionError(why);
        }
    }
}
