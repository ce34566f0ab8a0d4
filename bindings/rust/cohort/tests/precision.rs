// SPDX-License-Identifier: Apache-2.0
//! The types in which networks compute, int8 ranges, the loss scale, traces, memory of devices.
mod support;

use cohort::*;
use support::*;

const WIDE: [(&str, &[usize]); 1] = [("data", &[8, 16])];

/// Two layers of 16, each large enough for the processor's units for narrow types.
fn wide() -> Symbol {
    let layer = |input: &Symbol, name| {
        Op::new("FullyConnected")
            .attr("num_hidden", 16)
            .attr("no_bias", "True")
            .input(input)
            .name(name)
            .build()
            .unwrap()
    };
    layer(&layer(&Symbol::variable("data").unwrap(), "first"), "second")
}

/// Numbers between -1 and 1 that look random.
fn noise(num: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / u32::MAX as f32 * 2.0 - 1.0
    };
    (0..num).map(|_| next()).collect()
}

fn weights() -> Params {
    let array = |seed| floats(&noise(256, seed), &[16, 16]);
    Params::from([("first_weight".into(), array(1)), ("second_weight".into(), array(2))])
}

/// The nodes that compute in a type according to the debug text.
fn computes_in(executor: &Executor, dtype: &str) -> Vec<String> {
    let (mut found, mut name) = (Vec::new(), String::new());
    for line in executor.debug_text().unwrap().lines() {
        if let Some((_, rest)) = line.split_once("Name=") {
            name = rest.into();
        }
        if line == format!("Computes in {}", dtype) {
            found.push(name.clone());
        }
    }
    found
}

fn apart(found: &NDArray, expected: &[f32]) -> f32 {
    let most = |numbers: &mut dyn Iterator<Item = f32>| numbers.fold(0f32, |most, x| most.max(x.abs()));
    let found = found.to_vec::<f32>().unwrap();
    most(&mut found.iter().zip(expected).map(|(f, e)| f - e)) / most(&mut expected.iter().copied())
}

#[test]
fn a_calibrated_predictor_answers_in_bytes_in_every_clone_and_shape() {
    case(|| {
        let (net, params, none) = (wide(), weights(), Params::new());
        let batch = floats(&noise(128, 3), &[8, 16]);
        for method in [CalibrationMethod::MinMax, CalibrationMethod::Entropy] {
            let calibration = Calibration::new(method).unwrap();
            fails(calibration.range("data"), ErrorKind::State, "observed");
            let mut plain = Predictor::new(&net, &params, &none, &Context::cpu(0), &WIDE).unwrap();
            let expected = plain.predict(&[("data", &batch)]).unwrap()[0].to_vec::<f32>().unwrap();
            plain.observe(&calibration, &[("data", &batch)]).unwrap();
            let (low, high) = calibration.range("data").unwrap();
            assert!((-1.0..0.0).contains(&low) && high > 0.0 && high <= 1.0, "{} {}", low, high);
            fails(calibration.range("third"), ErrorKind::Name, "third");
            let kept = calibration.ranges().unwrap();
            assert_eq!(kept["data"].to_vec::<f32>().unwrap(), [low as f32, high as f32]);
            let calibration = Calibration::from_ranges(&kept).unwrap();
            assert_eq!(calibration.range("data").unwrap(), (low, high));
            fails(plain.observe(&calibration, &[("data", &batch)]), ErrorKind::State, "made from ranges");
            let narrow = Precision::int8(&calibration);
            assert_eq!(narrow, narrow.clone());
            let mut predictor =
                Predictor::builder(&WIDE).num_threads(1).precision(&narrow).build(&net, &params, &none).unwrap();
            let mut clone = predictor.try_clone().unwrap();
            let mut executor =
                Executor::builder(&net).grad_req(GradReq::Null).precision(&narrow).shape("data", &[8, 16]);
            executor = executor.num_threads(1);
            let mut executor = executor.allocate().unwrap();
            executor.copy_params_from(&params, &none, false).unwrap();
            executor.set_inputs(&[("data", &batch)]).unwrap();
            let bytes = executor.forward(false).unwrap()[0].to_vec::<f32>().unwrap();
            for one in [&mut predictor, &mut clone] {
                let found = &one.predict(&[("data", &batch)]).unwrap()[0];
                assert_eq!(found.to_vec::<f32>().unwrap(), bytes);
                assert!(apart(found, &expected) < 0.1, "{:?}: {}", method, apart(found, &expected));
            }
            let half = floats(&noise(128, 3)[..64], &[4, 16]);
            assert!(apart(&predictor.predict(&[("data", &half)]).unwrap()[0], &expected[..64]) < 0.1);
            let units = computes_in(&executor, "int8");
            assert!(units.is_empty() || units == ["first", "second"], "{:?}", units);
            let mut group = Group::builder(&net)
                .contexts(&[Context::cpu(0), Context::cpu(1)])
                .data(Desc::new("data", &[8, 16]))
                .for_inference()
                .precision(&narrow)
                .given_params(&params, &none)
                .build()
                .unwrap();
            group.forward(&[&batch], &[], false).unwrap();
            assert!(apart(&group.output(0).unwrap(), &expected) < 0.1);
        }
        let unknown = Precision { compute: Dtype::Int8, ..Precision::default() };
        let begun = Predictor::builder(&WIDE).precision(&unknown);
        fails(begun.build(&net, &params, &none).map(drop), ErrorKind::InvalidArgument, "expected a calibration");
        let calibration = Calibration::new(CalibrationMethod::MinMax).unwrap();
        let begun =
            Manager::builder(&net, 8).data(Desc::new("data", &[8, 16])).precision(&Precision::int8(&calibration));
        fails(begun.build().map(drop), ErrorKind::InvalidArgument, "takes no calibration");
    });
}

#[test]
fn a_predictor_computes_in_the_types_that_it_is_told() {
    case(|| {
        let (net, params, none) = (wide(), weights(), Params::new());
        let here = std::env::temp_dir().join(format!("cohort-rust-{}-mapped", std::process::id()));
        std::fs::create_dir_all(&here).unwrap();
        let prefix = here.join("net").to_str().unwrap().to_string();
        save_checkpoint(&prefix, 1, &net, &params, &none).unwrap();
        let batch = floats(&noise(128, 3), &[8, 16]);
        let mut plain = Predictor::load(&prefix, 1, &Context::cpu(0), &WIDE).unwrap();
        let expected = plain.predict(&[("data", &batch)]).unwrap()[0].to_vec::<f32>().unwrap();
        let bfloat16 = Precision { compute: Dtype::Bfloat16, ..Precision::default() };
        let kept = Precision { float32_names: vec!["first".into(), "second".into()], tf32: true, ..bfloat16.clone() };
        let mut same = Predictor::builder(&WIDE).mapped().precision(&kept).load(&prefix, 1).unwrap();
        assert_eq!(same.predict(&[("data", &batch)]).unwrap()[0].to_vec::<f32>().unwrap(), expected);
        let mut rounded = Predictor::builder(&WIDE).precision(&bfloat16).load(&prefix, 1).unwrap();
        assert!(apart(&rounded.predict(&[("data", &batch)]).unwrap()[0], &expected) < 0.05);
        let (_, mapped, _) = map_checkpoint(&prefix, 1).unwrap();
        assert_eq!(mapped["first_weight"].to_vec::<f32>().unwrap(), params["first_weight"].to_vec::<f32>().unwrap());
        let odd = Precision { float32_names: vec!["third".into()], ..bfloat16 };
        let begun = Predictor::builder(&WIDE).precision(&odd);
        fails(begun.load(&prefix, 1).map(drop), ErrorKind::Name, "float32_names: 'third'");
        let half = Precision { compute: Dtype::Float16, ..Precision::default() };
        let begun = Predictor::builder(&WIDE).precision(&half);
        fails(begun.load(&prefix, 1).map(drop), ErrorKind::Unsupported, "");
        std::fs::remove_dir_all(here).unwrap();
    });
}

#[test]
fn a_loss_scale_tells_where_it_is_and_goes_on_from_there() {
    case(|| {
        let net = mlp();
        let mut group = Group::builder(&net)
            .data(Desc::new("data", &[4, 4]))
            .label(Desc::new("softmax_label", &[4]))
            .loss_scale(LossScale { scale: 1024.0, window: 2 })
            .build()
            .unwrap();
        let sgd = Optimizer::new("sgd", &[("learning_rate", "0.1")]).unwrap();
        let state = |scale, num_good, num_skipped| LossScaleState { scale, num_good, num_skipped };
        assert_eq!(group.loss_scale().unwrap(), state(1024.0, 0, 0));
        assert_eq!(sgd.loss_scale().unwrap(), state(1.0, 0, 0));
        let labels = floats(&[0.0; 4], &[4]);
        for (value, expected) in [
            (1.0, state(1024.0, 1, 0)),
            (f32::INFINITY, state(512.0, 0, 1)),
            (1.0, state(512.0, 1, 1)),
            (1.0, state(1024.0, 0, 1)),
        ] {
            group.forward(&[&floats(&[value; 16], &[4, 4])], &[&labels], true).unwrap();
            group.backward(&[]).unwrap();
            group.update(&sgd, Update::OnStore).unwrap();
            assert_eq!(group.loss_scale().unwrap(), expected);
            assert_eq!(sgd.loss_scale().unwrap(), expected);
        }
        group.set_loss_scale(64.0, 1).unwrap();
        assert_eq!(group.loss_scale().unwrap(), state(64.0, 1, 1));
        fails(group.set_loss_scale(-1.0, 0), ErrorKind::InvalidArgument, "");
        let mut manager = Manager::builder(&net, 4)
            .data(Desc::new("data", &[4, 4]))
            .label(Desc::new("softmax_label", &[4]))
            .loss_scale(LossScale { scale: 256.0, window: 0 })
            .build()
            .unwrap();
        assert_eq!(manager.loss_scale().unwrap(), state(256.0, 0, 0));
        manager.set_loss_scale(8.0, 3).unwrap();
        assert_eq!(manager.loss_scale().unwrap(), state(8.0, 3, 0));
        let some = Params::from([("fc_bias".into(), floats(&[1.0; 3], &[3]))]);
        assert_eq!(manager.assign_params(&some, &Params::new(), true, false).unwrap(), ["fc_weight"]);
        fails(manager.assign_params(&some, &Params::new(), false, false), ErrorKind::Name, "fc_weight");
    });
}

#[test]
fn a_step_can_be_seen_and_what_it_took() {
    case(|| {
        let mut executor =
            Executor::simple_bind(&linear(), &Context::cpu(0), &[("data", &[2, 2])], GradReq::Null).unwrap();
        let rates = TraceOptions { flop_per_s: 1e9, byte_per_s: 1e9, ..TraceOptions::default() };
        let trace = Trace::with(&rates).unwrap();
        assert!(!trace.is_running().unwrap());
        let found = trace.running(|| {
            let _step = trace.span("training", "step 1")?;
            trace.counter("loss", 0.5)?;
            executor.forward(false)
        });
        assert_eq!(found.unwrap().len(), 1);
        executor.forward(false).unwrap(); // not recorded
        executor.wait().unwrap();
        let by_name = trace.totals(TotalsBy::Name).unwrap();
        let fc = by_name.iter().find(|total| total.name == "fc").unwrap();
        assert_eq!((fc.kind, fc.op.as_str(), fc.count), (SpanKind::Operator, "FullyConnected", 1));
        assert!(fc.flops > 0.0 && fc.bytes > 0.0 && fc.total >= fc.most && fc.most >= fc.least && !fc.bound.is_zero());
        assert!(by_name.iter().any(|total| total.kind == SpanKind::User && total.name == "step 1"));
        let by_operator = trace.totals(TotalsBy::Operator).unwrap();
        assert!(by_operator.iter().any(|total| total.name.is_empty() && total.op == "FullyConnected"));
        assert!(trace.table(TotalsBy::Operator).unwrap().contains("of bound"));
        let json = trace.json().unwrap();
        assert!(json.starts_with('{') && json.contains("\"traceEvents\"") && json.contains("\"step 1\""));
        let path = std::env::temp_dir().join(format!("cohort-rust-{}-step.json", std::process::id()));
        trace.write(path.to_str().unwrap()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), json);
        std::fs::remove_file(path).unwrap();
        let plan = executor.debug_text().unwrap();
        let step = plan.lines().find(|line| line.contains("forward FullyConnected 'fc'")).unwrap();
        assert!(step.contains("MFLOP") && step.contains("us by ") && !step.ends_with("- us"), "{}", step);
        trace.clear().unwrap();
        assert_eq!((trace.num_events().unwrap(), trace.num_dropped().unwrap()), (0, 0));
    });
}

#[test]
fn a_trace_ends_with_what_it_records_and_refuses_what_cannot_be() {
    case(|| {
        let trace = Trace::with(&TraceOptions { max_events: 1, ..TraceOptions::default() }).unwrap();
        let refused = trace.running(|| NDArray::zeros(&[1], Dtype::Float32, &Context::gpu(99)));
        assert!(refused.is_err() && !trace.is_running().unwrap());
        fails(trace.stop(), ErrorKind::State, "not running");
        trace.clear().unwrap();
        trace.start().unwrap();
        fails(trace.start(), ErrorKind::State, "running already");
        trace.mark("host", "a").unwrap();
        trace.mark("host", "b").unwrap();
        assert_eq!((trace.num_events().unwrap(), trace.num_dropped().unwrap()), (1, 1));
        fails(trace.counter("loss", f64::NAN), ErrorKind::InvalidArgument, "");
        fails(trace.write("/nowhere/x.json"), ErrorKind::Io, "/nowhere/x.json");
        let odd = TraceOptions { flop_per_s: -1.0, ..TraceOptions::default() };
        fails(Trace::with(&odd).map(drop), ErrorKind::InvalidArgument, "flop_per_s");
    });
}

#[test]
fn an_operator_is_applied_with_a_seed_on_a_context_and_into_arrays() {
    case(|| {
        let draw =
            |seed| Invoke::new("_random_uniform").attr("shape", "(8,)").seed(seed).run().unwrap()[0].to_vec::<f32>();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let there = Invoke::new("_zeros").attr("shape", "(2,)").context(&Context::cpu(3)).run().unwrap();
        assert_eq!(there[0].context().unwrap(), Context::cpu(3));
        let x = floats(&[1.0; 1000], &[1000]);
        let zeros = |array: &NDArray| array.to_vec::<f32>().unwrap().iter().filter(|&&x| x == 0.0).count();
        assert_eq!(zeros(&Invoke::new("Dropout").input(&x).run().unwrap()[0]), 0);
        assert!(zeros(&Invoke::new("Dropout").input(&x).train().run().unwrap()[0]) > 100);
        let into = floats(&[0.0; 1000], &[1000]);
        Invoke::new("_plus_scalar").attr("scalar", 2).input(&x).output(&into).run().unwrap();
        near(&into, &[3.0; 1000]);
        fails(Invoke::new("_plus_scalar").input(&x).output(&floats(&[0.0], &[1])).run(), ErrorKind::Shape, "");
    });
}

#[test]
fn the_memory_of_a_device_is_told_and_limited() {
    case(|| {
        let here = Context::cpu(9);
        let before = here.memory().unwrap();
        let array = NDArray::zeros(&[1000], Dtype::Float32, &here).unwrap();
        array.wait().unwrap();
        let found = here.memory().unwrap();
        assert!(found.used >= before.used + 4000 && found.peak >= found.used && found.limit == 0, "{:?}", found);
        here.limit_memory(found.used + 100).unwrap();
        fails(NDArray::zeros(&[1000], Dtype::Float32, &here), ErrorKind::OutOfMemory, "cpu(9)");
        here.limit_memory(0).unwrap();
        drop(array);
        here.reset_peak_memory().unwrap();
        assert!(here.memory().unwrap().peak < found.peak);
        assert!(has_feature("cpu").unwrap() && !has_feature("steam").unwrap());
    });
}

#[test]
fn a_symbol_tells_its_parts_a_metric_what_it_counted_and_a_monitor_the_inputs() {
    case(|| {
        let net = mlp();
        assert_eq!(net.name().unwrap().as_deref(), Some("softmax"));
        assert_eq!(net.children().unwrap().unwrap().outputs().unwrap(), ["fc_output", "softmax_label"]);
        assert!(Symbol::variable("x").unwrap().children().unwrap().is_none());
        assert_eq!(net.attr_dict().unwrap()["fc"]["num_hidden"], "3");
        let mut metric = Metric::new("accuracy", &[]).unwrap();
        metric.update(&[&floats(&[0.0, 1.0], &[2])], &[&floats(&[1.0, 0.0, 1.0, 0.0], &[2, 2])]).unwrap();
        assert_eq!(metric.counters().unwrap(), [(1.0, 2.0)]);
        let (net, seen) = (linear(), std::sync::Arc::new(std::sync::Mutex::new(Vec::new())));
        let mut group = linear_group(&net).build().unwrap();
        let names = seen.clone();
        group.set_monitor_all(move |name, _| names.lock().unwrap().push(name.to_string())).unwrap();
        group.forward(&[&floats(&[1.0; 8], &[4, 2])], &[], true).unwrap();
        assert_eq!(seen.lock().unwrap()[..3], ["data", "fc_data", "fc_weight"]);
    });
}
