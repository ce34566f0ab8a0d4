// SPDX-License-Identifier: Apache-2.0
//! Finds libcohort: what COHORT_LIB names (the file, or the folder that it is in), by pkg-config, or on the linker's path.
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE: &str = "libcohort.so";
const HINT: &str =
    "COHORT_LIB names the file libcohort.so or the folder that it is in, PKG_CONFIG_PATH the folder of cohort.pc";

fn main() {
    println!("cargo:rerun-if-env-changed=COHORT_LIB");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    match std::env::var_os("COHORT_LIB").filter(|place| !place.is_empty()) {
        Some(place) => match folder_of(Path::new(&place)) {
            Ok(folder) => println!("cargo:rustc-link-search=native={}", folder.display()),
            Err(why) => {
                eprintln!("cohort-sys: COHORT_LIB={}: {}; {}", Path::new(&place).display(), why, HINT);
                std::process::exit(1);
            }
        },
        None => match from_pkg_config() {
            Some(folders) => folders.iter().for_each(|folder| println!("cargo:rustc-link-search=native={}", folder)),
            None if is_on_linkers_path() => (),
            None => println!("cargo:warning={} is not found, so that programs cannot be linked: {}", FILE, HINT),
        },
    }
    println!("cargo:rustc-link-lib=dylib=cohort");
}

/// The folder in which the linker finds libcohort.so.
fn folder_of(place: &Path) -> Result<PathBuf, String> {
    let place = place.canonicalize().map_err(|error| error.to_string())?;
    if place.is_dir() {
        return if place.join(FILE).exists() { Ok(place) } else { Err(format!("there is no {} in it", FILE)) };
    }
    // The linker looks for this name, whatever the name of the file.
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let link = folder.join(FILE);
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(&place, &link).map_err(|error| format!("{}: {}", link.display(), error))?;
    Ok(folder)
}

/// The folders that pkg-config gives; none for those that the linker searches anyway.
fn from_pkg_config() -> Option<Vec<String>> {
    let found = Command::new("pkg-config").args(["--libs-only-L", "cohort"]).output().ok()?;
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    let folders = text.split_whitespace().map(|folder| folder.trim_start_matches("-L").to_string()).collect();
    if found.status.success() {
        Some(folders)
    } else {
        None
    }
}

/// The compiler that links answers with a path if it finds the file. Without a compiler nothing is said.
fn is_on_linkers_path() -> bool {
    let asked = Command::new("cc").arg(format!("-print-file-name={}", FILE)).output();
    asked.map_or(true, |found| String::from_utf8_lossy(&found.stdout).contains('/'))
}
