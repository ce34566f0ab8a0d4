// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The functions of cohort/types.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortTypes {
    private CohortTypes() {
    }

    static {
        Loader.register(CohortTypes.class);
    }

    /**
     * How many handles are alive in this process, errors included. 0 at the end of a program that frees all its handles.
     * Any thread may call it.
     */
    public static native long cohort_live_handles();
}
