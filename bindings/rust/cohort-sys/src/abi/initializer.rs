// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

extern "C" {
    /// Fills arrays by name.
    ///
    /// A variable's `__init__` attribute comes first: a name, or as JSON `\["name", {parameters}\]` or `{"initializer":
    /// "name", parameters}`. Else the end of the name decides: `weight` is filled by this initializer; `bias`, `beta`,
    /// `moving_mean`, `running_mean`, `moving_inv_var`, `moving_avg` and `min` with 0; `gamma`, `moving_var`, `running_var`
    /// and `max` with 1.
    ///
    /// - `symbol`: may be NULL. The symbol that has the variables; NULL: only names decide.
    /// - `arrays`: Named arrays, such as cohort_group_arrays() gives for COHORT_GROUP_PARAMS; written. Entries without arrays are left out.
    ///
    /// Returns: NULL, or, with nothing written,
    ///   COHORT_ERROR_NAME   no rule applies to a name
    ///   COHORT_ERROR_SHAPE  a weight with too few axes for the rule
    pub fn cohort_initializer_apply(
        initializer: *const cohort_initializer,
        symbol: *const cohort_symbol,
        arrays: *const cohort_arrays,
    ) -> *mut cohort_error;
    /// Makes an initializer.
    ///
    ///   "zero" ("zeros"), "one" ("ones")
    ///   "constant"    value (0): a number, or lists of numbers, "\[\[1, 2\], \[3, 4\]\]", of the array's shape, or of a shape
    ///                 that is broadcast to it
    ///   "uniform"     scale (0.07): uniformly distributed in \[-scale, scale)
    ///   "normal"      sigma (0.01)
    ///   "xavier"      rnd_type ("uniform" or "gaussian"), factor_type ("avg", "in" or "out"), magnitude (3)
    ///   "msraprelu"   factor_type ("avg"), slope (0.25)
    ///   "orthogonal"  scale (1.414), rand_type ("uniform" or "normal")
    ///   "bilinear"    the kernel of a layer that enlarges images; four axes
    ///   "lstmbias"    forget_bias (1): value of the second of four gates; the others are 0
    ///   "fusedrnn"    packed parameters of RNN: num_hidden, num_layers, mode, bidirectional ("False"), forget_bias (1);
    ///                 each gate's matrix by init, an initializer as in `__init__`; if `__init__` names none: by the
    ///                 initializer that cohort_initializer_apply() was called on
    ///
    /// Where several words are given, the first is the default.
    ///
    /// - `name`: One of these, in any case of letters.
    /// - `keys`: Settings as text, in MXNet's names.
    /// - `seed`: Seed of the random initializers.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME (no such initializer or setting), COHORT_ERROR_INVALID_ARGUMENT (a value).
    pub fn cohort_initializer_create(
        name: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        seed: u64,
        out_initializer: *mut *mut cohort_initializer,
    ) -> *mut cohort_error;
    /// Fills one array by this initializer's rule, whatever its name. Name and seed choose the random numbers.
    pub fn cohort_initializer_fill(
        initializer: *const cohort_initializer,
        name: *const c_char,
        array: *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Frees a handle; NULL does nothing.
    ///
    /// - `initializer`: may be NULL.
    pub fn cohort_initializer_free(
        initializer: *mut cohort_initializer,
    );
}
