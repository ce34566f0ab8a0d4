#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the crates of the Rust binding into a staging folder, and builds and runs a program on them from there, offline.
#   rust_crates.sh CARGO
set -euo pipefail
library=$(cd "$BUILD" && pwd)
work=$library/tests/rust_crates
rm -rf "$work" && mkdir -p "$work/program/src" "$work/program/.cargo"
${MAKE:-make} --no-print-directory BUILD="$BUILD" PREFIX=/usr DESTDIR="$work/stage" install-rust >"$work/install.txt"
cat >"$work/program/.cargo/config" <<CONFIG
[source.crates-io]
replace-with = "here"
[source.here]
directory = "$work/stage/usr/share/cargo/registry"
CONFIG
printf '[package]\nname = "program"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\ncohort = "0.1"\n[workspace]\n' >"$work/program/Cargo.toml"
echo 'fn main() -> cohort::Result<()> {
    println!("{} {:?}", cohort::version(), cohort::NDArray::from_slice(&[1f32, 2.0], &[2])?.to_vec::<f32>()?);
    Ok(())
}' >"$work/program/src/main.rs"
cd "$work/program"
said=$(PATH="$(dirname "$1"):$PATH" COHORT_LIB=$library LD_LIBRARY_PATH=$library CARGO_HOME=$work/home "$1" run --offline -q)
if [[ $said != *"[1.0, 2.0]" ]]; then echo "rust-crates: found $said" && exit 1; fi

# The library by its file, under a name that the linker does not look for.
mkdir -p "$work/elsewhere" && cp "$(readlink -f "$library/libcohort.so")" "$work/elsewhere/other.so"
said=$(PATH="$(dirname "$1"):$PATH" COHORT_LIB=$work/elsewhere/other.so LD_LIBRARY_PATH=$library CARGO_HOME=$work/home "$1" run --offline -q)
if [[ $said != *"[1.0, 2.0]" ]]; then echo "rust-crates: with COHORT_LIB as a file found $said" && exit 1; fi
said=$(PATH="$(dirname "$1"):$PATH" COHORT_LIB=$work/nowhere CARGO_HOME=$work/home "$1" build --offline -q 2>&1 || true)
if [[ $said != *"COHORT_LIB=$work/nowhere: "*"COHORT_LIB names the file"* ]]; then echo "rust-crates: a wrong COHORT_LIB gives: $said" && exit 1; fi
echo "rust-crates: installed, and used from there"
