// SPDX-License-Identifier: Apache-2.0
//! The first program of the README is examples/predict.rs, and runs with a checkpoint written by MXNet 1.9.1.
mod support;

use support::*;

#[allow(dead_code)]
#[path = "../examples/predict.rs"]
mod predict;

#[test]
fn the_program_of_the_readme_predicts() {
    let program = include_str!("../examples/predict.rs");
    assert!(include_str!("../../README.md").contains(&format!("```rust,no_run\n{}```", program)));
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/golden/group/lenet_2dev");
    let here = std::env::temp_dir().join(format!("cohort-rust-{}-readme", std::process::id()));
    std::fs::create_dir_all(here.join("model")).unwrap();
    std::fs::copy(format!("{}/symbol.json", golden), here.join("model/digits-symbol.json")).unwrap();
    std::fs::copy(format!("{}/init.params", golden), here.join("model/digits-0006.params")).unwrap();
    std::env::set_current_dir(&here).unwrap(); // this is the only test of the process
    case(|| predict::main().unwrap());
    std::env::set_current_dir("/").unwrap();
    std::fs::remove_dir_all(here).unwrap();
}
