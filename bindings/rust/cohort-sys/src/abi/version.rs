// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

extern "C" {
    /// Whether the library that is loaded has a feature: 1 or 0, and 0 for names it does not know. Loads no backend.
    ///
    /// Names: "cpu", "onednn", "dlpack"; "cuda" (the CUDA backend is there and finds a GPU).
    pub fn cohort_has_feature(
        name: *const c_char,
    ) -> cohort_bool;
    /// The version of the library that is loaded, "MAJOR.MINOR.PATCH"; COHORT_VERSION is that of the header.
    pub fn cohort_version(
    ) -> *const c_char;
    /// The version of the library that is loaded as one number: MAJOR * 10000 + MINOR * 100 + PATCH.
    pub fn cohort_version_number(
    ) -> i32;
}
