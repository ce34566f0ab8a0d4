// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The functions of cohort/version.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortVersion {
    private CohortVersion() {
    }

    static {
        Loader.register(CohortVersion.class);
    }

    /**
     * Whether the library that is loaded has a feature: 1 or 0, and 0 for names it does not know. Loads no backend.
     *
     * Names: "cpu", "onednn", "dlpack"; "cuda" (the CUDA backend is there and finds a GPU).
     */
    public static native int cohort_has_feature(String name);

    /**
     * The version of the library that is loaded, "MAJOR.MINOR.PATCH"; COHORT_VERSION is that of the header.
     */
    public static native String cohort_version();

    /** The version of the library that is loaded as one number: MAJOR * 10000 + MINOR * 100 + PATCH. */
    public static native int cohort_version_number();
}
