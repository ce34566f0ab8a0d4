// SPDX-License-Identifier: Apache-2.0
//! Finds libcohort: in the folder that COHORT_LIB names, by pkg-config, or on the linker's path.
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=COHORT_LIB");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    if let Ok(folder) = std::env::var("COHORT_LIB") {
        println!("cargo:rustc-link-search=native={}", folder);
    } else if let Ok(found) = Command::new("pkg-config").args(["--libs-only-L", "cohort"]).output() {
        for folder in String::from_utf8_lossy(&found.stdout).split_whitespace() {
            println!("cargo:rustc-link-search=native={}", folder.trim_start_matches("-L"));
        }
    }
    println!("cargo:rustc-link-lib=dylib=cohort");
}
