// SPDX-License-Identifier: Apache-2.0
//! Arrays, symbols, executors, groups, metrics, optimizers: results and errors.
mod support;

use cohort::*;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use support::*;

#[test]
fn arrays_go_in_and_out() {
    case(|| {
        let array = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]);
        assert_eq!((array.shape().unwrap(), array.dtype().unwrap()), (vec![3, 2], Dtype::Float32));
        let row = array.slice(1..2).unwrap();
        row.fill(9.0).unwrap();
        let flat = array.reshape(&[6]).unwrap();
        drop(array);
        near(&flat, &[1.0, 2.0, 9.0, 9.0, 5.0, 6.0]);
        assert_eq!(flat.cast(Dtype::Int32).unwrap().to_vec::<i32>().unwrap(), [1, 2, 9, 9, 5, 6]);
        near(&invoke("exp", &[&floats(&[0.0], &[1])], &[]).unwrap()[0], &[1.0]);
        let copy = flat.clone();
        copy.write(&[0f32; 6]).unwrap();
        near(&flat, &[0.0; 6]);
        near(&flat.copy(&Context::cpu(1)).unwrap(), &[0.0; 6]);
    });
}

#[test]
fn wrong_arrays_are_errors() {
    case(|| {
        fails(NDArray::from_slice(&[1f32; 3], &[2, 2]), ErrorKind::Shape, "12");
        fails(NDArray::zeros(&[usize::MAX], Dtype::Float32, &Context::cpu(0)), ErrorKind::InvalidArgument, "length");
        fails(NDArray::zeros(&[1 << 62, 4], Dtype::Float32, &Context::cpu(0)), ErrorKind::Shape, "");
        fails(NDArray::zeros(&[1], Dtype::None, &Context::cpu(0)), ErrorKind::Dtype, "");
        fails(NDArray::zeros(&[1], Dtype::Float32, &Context::gpu(4096)), ErrorKind::Device, "gpu(4096)");
        let array = floats(&[1.0, 2.0], &[2]);
        fails(array.to_vec::<i32>(), ErrorKind::InvalidArgument, "expected elements of Int32, found Float32");
        fails(array.write(&[1f32]), ErrorKind::Shape, "");
        fails(array.slice(1..5), ErrorKind::InvalidArgument, "");
        #[allow(clippy::reversed_empty_ranges)]
        {
            fails(array.slice(2..1), ErrorKind::InvalidArgument, "");
        }
        fails(Context::parse("tpu(0)"), ErrorKind::InvalidArgument, "tpu");
        fails(invoke("FullyConected", &[&array], &[]), ErrorKind::Name, "FullyConnected");
        fails(invoke("exp", &[&array], &[("a\0b", "1")]), ErrorKind::InvalidArgument, "zero byte");
        fails(load("/no/such/file"), ErrorKind::Io, "/no/such/file");
    });
}

#[test]
fn symbols_are_composed_and_read() {
    case(|| {
        let net = mlp();
        assert_eq!(net.arguments().unwrap(), ["data", "fc_weight", "fc_bias", "softmax_label"]);
        let again = Symbol::from_json(&net.to_json().unwrap()).unwrap();
        assert_eq!(again.outputs().unwrap(), ["softmax_output"]);
        let (args, outputs, aux) = net.infer_shape(&[("data", &[5, 4])]).unwrap().unwrap();
        assert_eq!(args[1], ("fc_weight".to_string(), vec![3, 4]));
        assert_eq!((outputs[0].1.as_slice(), aux.len()), ([5, 3].as_slice(), 0));
        assert!(net.infer_shape(&[]).unwrap().is_none());
        assert_eq!(net.internals().unwrap().output("fc_output").unwrap().outputs().unwrap(), ["fc_output"]);
        fails(Symbol::from_json("{"), ErrorKind::Format, "");
        fails(net.output("no_such"), ErrorKind::Name, "no_such");
        let x = Symbol::variable("x").unwrap();
        fails(Op::new("exp").named_input("data", &x).input(&x).build(), ErrorKind::InvalidArgument, "by name");
    });
}

#[test]
fn executors_run_on_the_callers_arrays() {
    case(|| {
        let (data, weight, grad) =
            (floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]), floats(&[1.0, 10.0], &[1, 2]), floats(&[0.0; 2], &[1, 2]));
        let mut executor =
            Executor::bind(&linear(), &Context::cpu(0), &[&data, &weight], Some(&[None, Some(&grad)]), &[]).unwrap();
        near(&executor.forward(true).unwrap()[0], &[21.0, 43.0]);
        executor.backward(&[&floats(&[1.0, 1.0], &[2, 1])]).unwrap();
        near(&grad, &[4.0, 6.0]);
        fails(executor.backward(&[]), ErrorKind::InvalidArgument, "fc");
        let made = Executor::bind(&linear(), &Context::cpu(0), &[&data, &weight], Some(&[None]), &[]);
        fails(made, ErrorKind::InvalidArgument, "grads");
        let simple = Executor::simple_bind(&linear(), &Context::cpu(0), &[("data", &[4, 2])], GradReq::Write).unwrap();
        assert_eq!(simple.grads().unwrap()["fc_weight"].shape().unwrap(), [1, 2]);
        let mut smaller = simple.reshape(&[("data", &[1, 2])]).unwrap();
        smaller.set_inputs(&[("data", &floats(&[1.0, 1.0], &[1, 2])), ("fc_weight", &weight)]).unwrap();
        near(&smaller.forward(false).unwrap()[0], &[11.0]);
    });
}

#[test]
fn layers_are_placed_by_their_group() {
    case(|| {
        let mut net = linear();
        net.set_attrs(&[("__ctx_group__", "first")]).unwrap();
        let builder = || Executor::builder(&net).ctx_group("first", &Context::cpu(2)).shape("data", &[1, 2]);
        let mut executor = builder().allocate().unwrap();
        assert_eq!(executor.args().unwrap()["fc_weight"].context().unwrap(), Context::cpu(2));
        assert_eq!(executor.forward(false).unwrap()[0].context().unwrap(), Context::cpu(2));
        let args = executor.args().unwrap();
        builder().bind(&args, &Params::new(), &Params::new()).unwrap().forward(false).unwrap();
        fails(Executor::builder(&net).ctx_group("other", &Context::cpu(2)).allocate(), ErrorKind::Device, "first");
    });
}

#[test]
fn precision_is_what_the_library_takes() {
    case(|| {
        let net = linear();
        let int = Precision { compute: Dtype::Int32, ..Precision::default() };
        let half = Precision { compute: Dtype::Float16, ..Precision::default() };
        let bf16 = |names: &[&str]| Precision {
            compute: Dtype::Bfloat16,
            float32_names: names.iter().map(|&name| name.into()).collect(),
            ..Precision::default()
        };
        let bind =
            |precision: &Precision| Executor::builder(&net).shape("data", &[1, 2]).precision(precision).allocate();
        fails(bind(&int).map(drop), ErrorKind::InvalidArgument, "compute_dtype");
        fails(bind(&half).map(drop), ErrorKind::Unsupported, "float16");
        fails(bind(&bf16(&["nobody"])).map(drop), ErrorKind::Name, "nobody");
        bind(&bf16(&["fc"])).unwrap().forward(false).unwrap();
        fails(linear_group(&net).precision(&int).build().map(drop), ErrorKind::InvalidArgument, "compute_dtype");
        fails(
            linear_group(&net).gradient_sum(Dtype::Int8).build().map(drop),
            ErrorKind::InvalidArgument,
            "gradient_sum_dtype",
        );

        let once = Precision { backward_once: true, ..bf16(&["FullyConnected"]) };
        let scaled = LossScale { scale: 1024.0, window: 10 };
        let mut group =
            linear_group(&net).precision(&once).loss_scale(scaled).gradient_sum(Dtype::Bfloat16).build().unwrap();
        let ones = floats(&[1.0; 4], &[4, 1]);
        group.forward(&[&floats(&[1.0; 8], &[4, 2])], &[], true).unwrap();
        group.backward(&[&ones]).unwrap();
        near(&group.device_grads(0).unwrap()["fc_weight"], &[2048.0, 2048.0]);
        fails(group.backward(&[&ones]), ErrorKind::State, "");
        let sgd = Optimizer::new("sgd", &[("learning_rate", "1")]).unwrap();
        group.update(&sgd, Update::OnStore).unwrap();
        near(&group.params().unwrap().0["fc_weight"], &[-4.0, -4.0]);
    });
}

#[test]
fn cheap_values_are_made_again() {
    case(|| {
        let mut net = Symbol::variable("data").unwrap();
        for name in ["a", "b", "c"] {
            let layer = Op::new("FullyConnected").attr("num_hidden", 8).attr("no_bias", "True").input(&net).name(name);
            net = Op::new("LeakyReLU").attr("act_type", "gelu").input(&layer.build().unwrap()).build().unwrap();
        }
        let planned = |recompute| {
            let precision = Precision { recompute, ..Precision::default() };
            let mut executor = Executor::builder(&net)
                .shape("data", &[512, 8])
                .grad_req(GradReq::Write)
                .precision(&precision)
                .allocate()
                .unwrap();
            executor.forward(true).unwrap();
            executor.memory().unwrap().planned
        };
        assert!(planned(true) < planned(false));
    });
}

#[test]
fn groups_split_run_and_update() {
    case(|| {
        let net = linear();
        let mut group = linear_group(&net).workload(&[1.0, 3.0]).inputs_need_grad().build().unwrap();
        assert_eq!(group.slices().unwrap(), [0..1, 1..4]);
        assert_eq!(group.param_names().unwrap(), ["fc_weight"]);
        let args = [("fc_weight".to_string(), floats(&[1.0, 10.0], &[1, 2]))].into_iter().collect();
        group.set_params(&args, &Params::new()).unwrap();
        group.forward(&[&floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &[4, 2])], &[], true).unwrap();
        near(&group.outputs().unwrap()[0], &[21.0, 43.0, 65.0, 87.0]);
        group.backward(&[&floats(&[1.0; 4], &[4, 1])]).unwrap();
        near(&group.input_grads().unwrap()[0], &[1.0, 10.0, 1.0, 10.0, 1.0, 10.0, 1.0, 10.0]);
        near(&group.device_grads(1).unwrap()["fc_weight"], &[15.0, 18.0]);
        let sgd = Optimizer::new("sgd", &[("learning_rate", "0.5")]).unwrap();
        group.update(&sgd, Update::OnStore).unwrap();
        near(&group.params().unwrap().0["fc_weight"], &[1.0 - 8.0, 10.0 - 10.0]);
        near(&group.device_params(0).unwrap()["fc_weight"], &[-7.0, 0.0]);
        group.reshape(&[Desc::new("data", &[2, 2])], &[]).unwrap();
        let mut none = linear_group(&net).inputs_need_grad().grad_req(GradReq::Null).build().unwrap();
        none.forward(&[&floats(&[1.0; 8], &[4, 2])], &[], true).unwrap();
        none.backward(&[]).unwrap();
        assert_eq!(none.input_grads().unwrap().len(), 0);
        fails(group.output(1), ErrorKind::InvalidArgument, "");
        fails(group.backward(&[]), ErrorKind::State, "forward");
        fails(group.forward(&[&floats(&[0.0; 8], &[4, 2])], &[], false), ErrorKind::Shape, "data");
    });
}

#[test]
fn objects_say_what_they_are() {
    case(|| {
        let net = linear();
        let mut group = linear_group(&net).build().unwrap();
        assert_eq!(group.contexts().unwrap(), [Context::cpu(0), Context::cpu(1)]);
        assert_eq!(group.data_shapes().unwrap(), [("data".to_string(), vec![4, 2])]);
        assert_eq!(group.label_shapes().unwrap(), []);
        let memory = group.memory(1).unwrap();
        let executor = group.executor(1).unwrap();
        assert!(memory.arguments > 0 && executor.memory().unwrap() == memory);
        assert_eq!(executor.context().unwrap(), Context::cpu(1));
        assert!(!executor.debug_text().unwrap().is_empty());
        let (args, _, _) = net.infer_dtype(&[("data", Dtype::Float64)]).unwrap().unwrap();
        assert_eq!(args[1], ("fc_weight".to_string(), Dtype::Float64));
        assert!(net.num_nodes().unwrap() == 3 && net.infer_dtype(&[]).unwrap().is_none());
        num_gpus().unwrap();
    });
}

#[test]
fn files_in_memory_and_of_numpys() {
    case(|| {
        let array = floats(&[3.0], &[1]);
        let file = save_bytes([("a", &array)]).unwrap();
        near(&load_bytes(&file).unwrap()[0].1, &[3.0]);
        fails(load_bytes(&file[..5]), ErrorKind::Format, "");
        let path = std::env::temp_dir().join(format!("cohort-rust-{}.npz", std::process::id()));
        save_npz(path.to_str().unwrap(), [("a", &array)]).unwrap();
        near(&load(path.to_str().unwrap()).unwrap()[0].1, &[3.0]);
        std::fs::remove_file(path).unwrap();
        let path = std::env::temp_dir().join(format!("cohort-rust-{}.npy", std::process::id()));
        save_npy(path.to_str().unwrap(), &array).unwrap();
        near(&load(path.to_str().unwrap()).unwrap()[0].1, &[3.0]);
        std::fs::remove_file(path).unwrap();
    });
}

#[test]
fn the_registry_says_ranges_gradients_and_precision() {
    let (dropout, embedding) = (operator("Dropout").unwrap(), operator("Embedding").unwrap());
    let p = dropout.attrs.iter().find(|attr| attr.name == "p").unwrap();
    assert_eq!((p.low, p.high), (0.0, 1.0));
    assert_eq!(embedding.gradients, [false, true]);
    assert_eq!((dropout.precision, &dropout.outputs[0][..]), (OperatorPrecision::Follows, "output"));
    assert_eq!(operator("FullyConnected").unwrap().precision, OperatorPrecision::Narrow);
}

#[test]
fn metrics_take_what_is_named() {
    case(|| {
        let named = |name: &str, value| [(name.to_string(), floats(&[value], &[1]))].into_iter().collect::<Params>();
        let mut metric = Metric::new("mae", &[]).unwrap();
        metric.set_names(&["y"], &["p"]).unwrap();
        metric.update_named(&named("y", 1.0), &named("p", 3.0)).unwrap();
        assert_eq!(metric.values().unwrap()[0].1, 2.0);
        assert!(metric.update_named(&named("z", 1.0), &named("p", 3.0)).is_err());
    });
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    case(|| {
        let net = mlp();
        let mut group = Group::builder(&net)
            .data(Desc::new("data", &[4, 4]))
            .label(Desc::new("softmax_label", &[4]))
            .build()
            .unwrap();
        let some: Params = [("fc_bias".to_string(), floats(&[1.0; 3], &[3]))].into_iter().collect();
        fails(group.set_params(&some, &Params::new()), ErrorKind::Name, "'fc_weight'");
        assert_eq!(group.assign_params(&some, &Params::new(), true, false).unwrap(), ["fc_weight"]);
        fails(Group::builder(&net).build(), ErrorKind::InvalidArgument, "data");
        fails(
            Group::builder(&net).contexts(&[]).data(Desc::new("data", &[4, 4])).build(),
            ErrorKind::InvalidArgument,
            "contexts",
        );
        fails(Group::builder(&net).data(Desc::new("other", &[4, 4])).build(), ErrorKind::Name, "other");
        fails(
            Group::builder(&net).data(Desc::new("data", &[4, 4])).workload(&[1.0, 2.0]).build(),
            ErrorKind::InvalidArgument,
            "workload",
        );
        fails(Group::builder(&net).data(Desc::new("data", &[4, usize::MAX])).build(), ErrorKind::Shape, "");
        fails(Optimizer::new("sgd", &[("no_such", "1")]).map(drop), ErrorKind::Name, "no_such");
        fails(Metric::new("happiness", &[]).map(drop), ErrorKind::Name, "happiness");
    });
}

#[test]
fn optimizers_keep_their_states() {
    case(|| {
        let adam = Optimizer::new("adam", &[("learning_rate", "0.1")]).unwrap();
        let (weight, grad) = (floats(&[1.0], &[1]), floats(&[0.5], &[1]));
        adam.update("w", &weight, &grad).unwrap();
        near(&weight, &[0.9]);
        let again = Optimizer::new("adam", &[("learning_rate", "0.1")]).unwrap();
        again.set_states(&adam.states().unwrap()).unwrap();
        assert_eq!(again.get("num_update").unwrap(), 1.0);
        fails(again.set_states(b"nonsense"), ErrorKind::Format, "");
    });
}

#[test]
fn panics_in_callbacks_go_on_behind_the_call() {
    case(|| {
        let mut executor =
            Executor::simple_bind(&mlp(), &Context::cpu(0), &[("data", &[1, 4])], GradReq::Null).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let names = seen.clone();
        executor
            .set_monitor(move |name, array| names.lock().unwrap().push((name.to_string(), array.shape().unwrap())))
            .unwrap();
        executor.forward(false).unwrap();
        assert_eq!(seen.lock().unwrap()[0], ("fc_output".to_string(), vec![1, 3]));
        executor.set_monitor(|name, _| panic!("no more of {}", name)).unwrap();
        let payload = catch_unwind(AssertUnwindSafe(|| executor.forward(false))).unwrap_err();
        assert_eq!(payload.downcast_ref::<String>().unwrap(), "no more of fc_output");
        executor.set_monitor(|_, _| ()).unwrap();
        executor.forward(false).unwrap();

        let mut metric = Metric::custom("own", |labels, preds| {
            let (label, pred) = (labels[0].to_vec::<f32>()?, preds[0].to_vec::<f32>()?);
            assert!(label[0] < 5.0, "a large label");
            Ok((f64::from(label[0] + pred[0]), 2.0))
        })
        .unwrap();
        metric.update(&[&floats(&[1.0], &[1])], &[&floats(&[4.0], &[1])]).unwrap();
        assert_eq!(metric.values().unwrap(), [("own".to_string(), 2.5)]);
        let five = floats(&[5.0], &[1]);
        let payload = catch_unwind(AssertUnwindSafe(|| metric.update(&[&five], &[&five]))).unwrap_err();
        assert_eq!(*payload.downcast_ref::<&str>().unwrap(), "a large label");
        let ints = NDArray::from_slice(&[1i32], &[1]).unwrap();
        fails(metric.update(&[&ints], &[&ints]), ErrorKind::InvalidArgument, "expected elements of Float32");
        assert_eq!(metric.values().unwrap()[0].1, 2.5);
    });
}

#[test]
fn a_reshaped_executor_keeps_what_watches_it() {
    case(|| {
        let seen = Arc::new(Mutex::new(0));
        let mut first = Executor::simple_bind(&mlp(), &Context::cpu(0), &[("data", &[2, 4])], GradReq::Null).unwrap();
        let (count, kept) = (seen.clone(), vec![7u64; 1000]);
        first
            .set_monitor(move |_, _| {
                assert!(kept.iter().all(|&one| one == 7));
                *count.lock().unwrap() += 1;
            })
            .unwrap();
        let mut second = first.reshaped(&[("data", &[1, 4])], true, false).unwrap();
        second.forward(false).unwrap();
        let each = *seen.lock().unwrap();
        assert!(each > 0);
        drop(first);
        let other = vec![1u64; 1000]; // reuses the memory of the function
        second.forward(false).unwrap();
        let mut third = second.reshape(&[("data", &[2, 4])]).unwrap();
        third.forward(false).unwrap();
        assert_eq!(*seen.lock().unwrap(), 3 * each);
        third.clear_monitor().unwrap();
        third.forward(false).unwrap();
        assert_eq!((*seen.lock().unwrap(), Arc::strong_count(&seen), other[0]), (3 * each, 1, 1));

        let statistic = seen.clone();
        let mut monitor = Monitor::builder(1)
            .statistic(move |array| {
                *statistic.lock().unwrap() += 1;
                Ok(vec![array.copy(&Context::cpu(0))?])
            })
            .build()
            .unwrap();
        monitor.install_on_executor(&mut third).unwrap();
        let mut fourth = third.reshaped(&[("data", &[1, 4])], true, false).unwrap();
        drop(monitor);
        drop(third);
        fourth.forward(false).unwrap();
        assert_eq!(*seen.lock().unwrap(), 3 * each);
    });
}

#[test]
fn objects_may_be_dropped_in_any_order_and_thread() {
    case(|| {
        let net = linear();
        let mut group = linear_group(&net).build().unwrap();
        group.forward(&[&floats(&[1.0; 8], &[4, 2])], &[], true).unwrap();
        let (outputs, params) = (group.outputs().unwrap(), group.device_params(0).unwrap());
        drop(net);
        std::thread::spawn(move || drop(group)).join().unwrap();
        near(&outputs[0], &[0.0; 4]);
        std::thread::spawn(move || drop(params)).join().unwrap();
        drop(outputs);
    });
}

#[test]
fn everything_is_send() {
    fn is_send<T: Send>() {}
    is_send::<NDArray>();
    is_send::<Symbol>();
    is_send::<Executor>();
    is_send::<Group>();
    is_send::<Optimizer>();
    is_send::<Metric>();
    is_send::<Initializer>();
    is_send::<Predictor>();
    is_send::<Error>();
    is_send::<Manager>();
    is_send::<Monitor>();
    is_send::<Tape>();
    is_send::<LogReceiver>();
    is_send::<Registration>();
}

#[test]
fn everything_can_be_shown() {
    case(|| {
        let net = mlp();
        let group = linear_group(&linear()).strict_names().build().unwrap();
        let found = format!("{:?}", group);
        assert!(
            found.starts_with("Group { contexts: [Context") && found.contains(r#"data: [("data", [4, 2])]"#),
            "{}",
            found
        );
        assert_eq!(format!("{:?}", floats(&[1.0; 6], &[2, 3])), "NDArray([2, 3], Float32)");
        assert_eq!(format!("{:?}", net), r#"Symbol(["softmax_output"])"#);
        let sgd = Optimizer::new("sgd", &[("learning_rate", "0.5")]).unwrap();
        assert_eq!(format!("{:?}", sgd), "Optimizer { learning_rate: 0.5, num_update: 0.0, .. }");
        let executor = Executor::simple_bind(&net, &Context::cpu(0), &[("data", &[2, 4])], GradReq::Null).unwrap();
        let params = Params::from([("fc_weight".into(), floats(&[1.0, 10.0], &[1, 2]))]);
        let predictor =
            Predictor::new(&linear(), &params, &Params::new(), &Context::cpu(0), &[("data", &[1, 2])]).unwrap();
        let manager =
            Manager::builder(&net, 4).data(Desc::new("data", &[4, 4])).label(Desc::new("softmax_label", &[4]));
        let shown: Vec<Box<dyn std::fmt::Debug>> = vec![
            Box::new(executor),
            Box::new(predictor),
            Box::new(manager.build().unwrap()),
            Box::new(Metric::new("mse", &[]).unwrap()),
            Box::new(Initializer::new("xavier", &[], 1).unwrap()),
            Box::new(Monitor::builder(1).build().unwrap()),
            Box::new(Tape::new().unwrap()),
            Box::new(Trace::new().unwrap()),
        ];
        for (one, name) in
            shown.iter().zip("Executor Predictor Manager Metric Initializer Monitor Tape Trace".split(' '))
        {
            let found = format!("{:?}", one);
            assert!(found.starts_with(name) && !found.contains("Err"), "{}", found);
        }
        assert!(format!("{:?}", Group::builder(&net).stop_if_not_finite()).contains("stop_if_not_finite: true"));
        assert!(format!("{:?}", Monitor::builder(3).filter(|_| true)).starts_with("MonitorBuilder { interval: 3"));
    });
}

#[test]
fn a_group_takes_no_wrong_names_and_stops_at_numbers_that_are_not_finite() {
    case(|| {
        let symbol = linear();
        fails(
            linear_group(&symbol).fixed_params(&["fc_wieght"]).strict_names().build(),
            ErrorKind::Name,
            "'fc_weight'",
        );
        let data = floats(&[1.0, f32::INFINITY, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], &[4, 2]);
        let mut group = linear_group(&symbol).stop_if_not_finite().build().unwrap();
        group.set_params(&Params::from([("fc_weight".into(), floats(&[1.0, 1.0], &[1, 2]))]), &Params::new()).unwrap();
        fails(group.forward(&[&data], &[], false).and_then(|_| group.wait()), ErrorKind::Execution, "fc_output");

        let mut watched = linear_group(&symbol).build().unwrap();
        watched
            .set_params(&Params::from([("fc_weight".into(), floats(&[1.0, 1.0], &[1, 2]))]), &Params::new())
            .unwrap();
        let mut monitor = Monitor::builder(1).pattern("nothing").stop_if_not_finite().build().unwrap();
        monitor.install_on_group(&mut watched).unwrap();
        monitor.tic().unwrap();
        fails(watched.forward(&[&data], &[], false).and_then(|_| watched.wait()), ErrorKind::Execution, "fc_output");
    });
}

#[test]
fn a_random_state_is_read_and_set() {
    case(|| {
        let data = Symbol::variable("data").unwrap();
        let drop = Op::new("Dropout").input(&data).name("drop").build().unwrap();
        let mut group = linear_group(&drop).build().unwrap();
        let state = group.random_state().unwrap();
        let mut draw = || {
            group.set_random_state(&state).unwrap();
            group.forward(&[&floats(&[1.0; 8], &[4, 2])], &[], true).unwrap();
            group.outputs().unwrap()[0].to_vec::<f32>().unwrap()
        };
        assert_eq!(draw(), draw());
        fails(group.set_random_state(&state[1..]), ErrorKind::Format, "");

        let mut executor = Executor::simple_bind(&drop, &Context::cpu(0), &[("data", &[8, 8])], GradReq::Null).unwrap();
        executor.args().unwrap()["data"].fill(1.0).unwrap();
        let state = executor.random_state().unwrap();
        let first = executor.forward(true).unwrap()[0].to_vec::<f32>().unwrap();
        executor.set_random_state(&state).unwrap();
        assert_eq!(executor.forward(true).unwrap()[0].to_vec::<f32>().unwrap(), first);
    });
}

#[test]
fn a_custom_metric_may_have_more_outputs_than_labels() {
    case(|| {
        let (label, first, second) = (floats(&[1.0], &[1]), floats(&[2.0], &[1]), floats(&[3.0], &[1]));
        let count = |labels: &[NDArray], preds: &[NDArray]| Ok(((labels.len() + 10 * preds.len()) as f64, 1.0));
        let mut metric = Metric::custom("count", count).unwrap();
        fails(metric.update(&[&label], &[&first, &second]), ErrorKind::InvalidArgument, "");
        let mut metric = Metric::custom_allow_extra("count", count).unwrap();
        metric.update(&[&label], &[&first, &second]).unwrap();
        assert_eq!(metric.values().unwrap(), [("count".to_string(), 21.0)]);
    });
}
