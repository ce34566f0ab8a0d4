// SPDX-License-Identifier: Apache-2.0
//! The digits over three uneven devices, and prediction from checkpoints by several threads.
mod support;

use cohort::*;
use support::*;

#[allow(dead_code)]
#[path = "../examples/train_digits.rs"]
mod train_digits;

#[allow(dead_code)]
#[path = "../examples/fine_tune.rs"]
mod fine_tune;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

fn folder(name: &str) -> std::path::PathBuf {
    let made = std::env::temp_dir().join(format!("cohort-rust-{}-{}", std::process::id(), name));
    std::fs::create_dir_all(&made).unwrap();
    made
}

#[test]
fn the_digits_are_learnt_over_three_uneven_devices_in_under_100_lines() {
    case(|| {
        assert!(include_str!("../examples/train_digits.rs").lines().count() < 100);
        let here = folder("digits");
        let digits = format!("{}/examples/data/digits.params", ROOT);
        let accuracy = train_digits::train(&digits, here.join("net").to_str().unwrap(), 5).unwrap();
        assert!(accuracy > 0.95, "{}", accuracy);
        std::fs::remove_dir_all(here).unwrap();
    });
}

/// A network and its parameters written by MXNet 1.9.1.
fn checkpoint(name: &str) -> (std::path::PathBuf, String) {
    let here = folder(name);
    let golden = format!("{}/tests/golden/group/lenet_2dev", ROOT);
    std::fs::copy(format!("{}/symbol.json", golden), here.join("net-symbol.json")).unwrap();
    std::fs::copy(format!("{}/init.params", golden), here.join("net-0007.params")).unwrap();
    let prefix = here.join("net").to_str().unwrap().to_string();
    (here, prefix)
}

#[test]
fn a_checkpoint_of_mxnet_is_fine_tuned_and_a_stop_changes_no_bit() {
    case(|| {
        let (here, prefix) = checkpoint("fine_tune");
        let digits = format!("{}/examples/data/digits.params", ROOT);
        let (accuracy, same) = fine_tune::fine_tune(&digits, &prefix, 7, 6, &here).unwrap();
        assert!(accuracy > 0.85 && same, "accuracy {}, the same bits: {}", accuracy, same);
        std::fs::remove_dir_all(here).unwrap();
    });
}

fn image(seed: usize) -> NDArray {
    let pixels: Vec<f32> = (0..64).map(|i| ((i * 7 + seed * 13) % 17) as f32 / 16.0).collect();
    floats(&pixels, &[1, 1, 8, 8])
}

#[test]
fn a_predictor_takes_what_network_and_parameters_say() {
    case(|| {
        let target = Symbol::variable("target").unwrap();
        let near = Op::new("LinearRegressionOutput").input(&linear()).input(&target).name("near").build().unwrap();
        assert_eq!(near.labels().unwrap(), ["target"]);
        let cpu = Context::cpu(0);
        for dtype in [Dtype::Float32, Dtype::Float64] {
            let weight = floats(&[1.0, 10.0], &[1, 2]).cast(dtype).unwrap();
            let params = Params::from([("fc_weight".into(), weight), ("of_another_head".into(), floats(&[1.0], &[1]))]);
            let mut predictor = Predictor::new(&near, &params, &Params::new(), &cpu, &[("data", &[1, 2])]).unwrap();
            let found = predictor.predict(&[("data", &floats(&[3.0, 4.0], &[1, 2]))]).unwrap();
            assert_eq!(found[0].dtype().unwrap(), dtype);
            assert_eq!(found[0].cast(Dtype::Float32).unwrap().to_vec::<f32>().unwrap(), [43.0]);
            fails(
                Predictor::new(&near, &params, &Params::new(), &cpu, &[("dat", &[1, 2])]).map(drop),
                ErrorKind::Name,
                "'dat' is not an argument",
            );
        }
    });
}

#[test]
fn a_predictor_goes_on_after_an_error() {
    case(|| {
        let (left, right) = (Symbol::variable("left").unwrap(), Symbol::variable("right").unwrap());
        let sum = Op::new("broadcast_add").input(&left).input(&right).build().unwrap();
        let (one, two) = (floats(&[1.0], &[1]), floats(&[2.0, 3.0], &[2]));
        let none = Params::new();
        let mut predictor =
            Predictor::new(&sum, &none, &none, &Context::cpu(0), &[("left", &[1]), ("right", &[1])]).unwrap();
        fails(predictor.predict(&[("left", &two)]).map(drop), ErrorKind::InvalidArgument, "'right' is missing");
        near(&predictor.predict(&[("left", &two), ("right", &one)]).unwrap()[0], &[3.0, 4.0]);
        let three = floats(&[1.0; 3], &[3]);
        fails(predictor.predict(&[("left", &two), ("right", &three)]).map(drop), ErrorKind::Shape, "");
        near(&predictor.predict(&[("left", &one), ("right", &one)]).unwrap()[0], &[2.0]);
    });
}

#[test]
fn a_checkpoint_of_mxnets_is_asked_by_several_threads_at_once() {
    case(|| {
        let (here, prefix) = checkpoint("predict");
        let mut first = Predictor::load(&prefix, 7, &Context::cpu(0), &[("data", &[1, 1, 8, 8])]).unwrap();
        let ask = |predictor: &mut Predictor, i| {
            predictor.predict(&[("data", &image(i))]).unwrap()[0].to_vec::<f32>().unwrap()
        };
        let expected: Vec<_> = (0..20).map(|i| ask(&mut first, i)).collect();
        assert_eq!(expected[0].len(), 10);
        assert_ne!(expected[0], expected[1]);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (mut predictor, expected) = (first.try_clone().unwrap(), expected.clone());
                std::thread::spawn(move || {
                    for (i, wanted) in expected.iter().enumerate() {
                        assert_eq!(
                            &predictor.predict(&[("data", &image(i))]).unwrap()[0].to_vec::<f32>().unwrap(),
                            wanted
                        );
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let both = floats(&[image(0).to_vec::<f32>().unwrap(), image(1).to_vec().unwrap()].concat(), &[2, 1, 8, 8]);
        let found = first.predict(&[("data", &both)]).unwrap()[0].to_vec::<f32>().unwrap();
        let close = found.iter().zip(expected[..2].concat()).all(|(f, e)| (f - e).abs() < 1e-5);
        assert!(close, "another batch size");
        fails(first.predict(&[]), ErrorKind::InvalidArgument, "'data' is missing");
        fails(Predictor::load(&prefix, 8, &Context::cpu(0), &[]).map(drop), ErrorKind::Io, "0008.params");
        fails(
            Predictor::new(&linear(), &Params::new(), &Params::new(), &Context::cpu(0), &[("data", &[1, 2])]).map(drop),
            ErrorKind::InvalidArgument,
            "'fc_weight'",
        );
        std::fs::remove_dir_all(here).unwrap();
    });
}
