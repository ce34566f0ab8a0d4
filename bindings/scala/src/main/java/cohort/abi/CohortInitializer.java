// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import com.sun.jna.Pointer;

/** The functions of cohort/initializer.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortInitializer {
    private CohortInitializer() {
    }

    static {
        Loader.register(CohortInitializer.class);
    }

    /**
     * Fills arrays by name.
     *
     * A variable's `__init__` attribute comes first: a name, or as JSON `["name", {parameters}]` or `{"initializer":
     * "name", parameters}`. Else the end of the name decides: `weight` is filled by this initializer; `bias`, `beta`,
     * `moving_mean`, `running_mean`, `moving_inv_var`, `moving_avg` and `min` with 0; `gamma`, `moving_var`, `running_var`
     * and `max` with 1.
     * Returns: NULL, or, with nothing written,
     *   COHORT_ERROR_NAME   no rule applies to a name
     *   COHORT_ERROR_SHAPE  a weight with too few axes for the rule
     * @param symbol may be NULL. The symbol that has the variables; NULL: only names decide.
     * @param arrays Named arrays, such as cohort_group_arrays() gives for COHORT_GROUP_PARAMS; written. Entries without arrays are left out.
     */
    public static native long cohort_initializer_apply(long initializer, long symbol, long arrays);

    /**
     * Makes an initializer.
     *
     *   "zero" ("zeros"), "one" ("ones")
     *   "constant"    value (0): a number, or lists of numbers, "[[1, 2], [3, 4]]", of the array's shape, or of a shape
     *                 that is broadcast to it
     *   "uniform"     scale (0.07): uniformly distributed in [-scale, scale)
     *   "normal"      sigma (0.01)
     *   "xavier"      rnd_type ("uniform" or "gaussian"), factor_type ("avg", "in" or "out"), magnitude (3)
     *   "msraprelu"   factor_type ("avg"), slope (0.25)
     *   "orthogonal"  scale (1.414), rand_type ("uniform" or "normal")
     *   "bilinear"    the kernel of a layer that enlarges images; four axes
     *   "lstmbias"    forget_bias (1): value of the second of four gates; the others are 0
     *   "fusedrnn"    packed parameters of RNN: num_hidden, num_layers, mode, bidirectional ("False"), forget_bias (1);
     *                 each gate's matrix by init, an initializer as in `__init__`; if `__init__` names none: by the
     *                 initializer that cohort_initializer_apply() was called on
     *
     * Where several words are given, the first is the default.
     * Returns: NULL, or COHORT_ERROR_NAME (no such initializer or setting), COHORT_ERROR_INVALID_ARGUMENT (a value).
     * @param name One of these, in any case of letters.
     * @param keys Settings as text, in MXNet's names.
     * @param seed Seed of the random initializers.
     */
    public static native long cohort_initializer_create(String name, Pointer keys, Pointer values, long num_attrs, long seed, long[] out_initializer);

    /**
     * Fills one array by this initializer's rule, whatever its name. Name and seed choose the random numbers.
     */
    public static native long cohort_initializer_fill(long initializer, String name, long array);

    /**
     * Frees a handle; NULL does nothing.
     * @param initializer may be NULL.
     */
    public static native void cohort_initializer_free(long initializer);
}
