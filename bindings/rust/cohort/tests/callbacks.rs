// SPDX-License-Identifier: Apache-2.0
//! Managers, monitors, tapes, custom operators, messages: errors and panics of their callbacks come out after the call.
mod support;

use cohort::*;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use support::*;

/// The message that a call panics with.
fn panics<T>(call: impl FnOnce() -> T) -> String {
    let payload = catch_unwind(AssertUnwindSafe(call)).err().expect("a panic");
    payload.downcast_ref::<String>().cloned().unwrap_or_else(|| payload.downcast_ref::<&str>().unwrap().to_string())
}

fn refusal() -> Error {
    Error::new(ErrorKind::Unsupported, "not today", "today")
}

/// The mean over any number of columns, then a layer.
fn any_length() -> Result<Symbol> {
    let mean = Op::new("mean").attr("axis", 1).attr("keepdims", 1).input(&Symbol::variable("data")?).build()?;
    let fc = Op::new("FullyConnected").attr("num_hidden", 3).input(&mean).name("fc").build()?;
    Op::new("SoftmaxOutput").input(&fc).name("softmax").build()
}

fn descs(length: usize) -> ([Desc; 1], [Desc; 1]) {
    ([Desc::new("data", &[4, length])], [Desc::new("softmax_label", &[4])])
}

#[test]
fn a_bucket_without_a_symbol_is_the_callers_error() {
    case(|| {
        let net = any_length().unwrap();
        let mut manager = Manager::builder(&net, 4)
            .contexts(&[Context::cpu(0), Context::cpu(1)])
            .data(Desc::new("data", &[4, 9]))
            .label(Desc::new("softmax_label", &[4]))
            .default_bucket("9")
            .bucket("3", &net)
            .bucket_symbols(|key| match key {
                "5" => any_length(),
                "6" => Err(refusal()),
                other => panic!("no bucket {}", other),
            })
            .build()
            .unwrap();
        fails(manager.forward(true), ErrorKind::State, "");
        let label = floats(&[0.0, 1.0, 2.0, 0.0], &[4]);
        let mut load = |length: usize| {
            let (data, label_desc) = descs(length);
            let batch = floats(&vec![1.0; 4 * length], &[4, length]);
            manager.load_bucket(&length.to_string(), &[&batch], &[&label], &data, &label_desc)
        };
        load(5).unwrap();
        fails(load(6), ErrorKind::Unsupported, "not today");
        assert_eq!(panics(|| load(7)), "no bucket 7");
        load(3).unwrap();
        manager.forward(true).unwrap();
        manager.backward().unwrap();
        manager.update(&Optimizer::new("sgd", &[]).unwrap(), Update::OnStore).unwrap();
        assert_eq!(manager.buckets().unwrap(), ["3", "5", "9"]);
        assert!(manager.memory().unwrap().arguments > 0);
        assert_eq!(manager.outputs().unwrap()[0].shape().unwrap(), [4, 3]);
        assert_eq!(manager.current_group().unwrap().data_axes().unwrap(), [Some(0)]);
    });
}

#[test]
fn monitors_compute_what_the_caller_wants() {
    case(|| {
        let mut executor =
            Executor::simple_bind(&mlp(), &Context::cpu(0), &[("data", &[2, 4])], GradReq::Null).unwrap();
        let mut calls = 0;
        let mut monitor = Monitor::builder(1)
            .filter(|name| name.contains("output"))
            .statistic(move |array| {
                calls += 1;
                match calls {
                    1 | 2 => Ok(vec![NDArray::from_slice(&[array.size()? as f32], &[1])?]),
                    3 => Err(refusal()),
                    _ => panic!("too often"),
                }
            })
            .build()
            .unwrap();
        monitor.install_on_executor(&mut executor).unwrap();
        monitor.tic().unwrap();
        executor.forward(false).unwrap();
        let report = monitor.toc().unwrap();
        let words: Vec<_> = report.iter().map(|one| (one.name.as_str(), one.text.as_str())).collect();
        assert_eq!(words, [("fc_output", "6\t"), ("softmax_output", "6\t")]);
        near(&monitor.values(1).unwrap()[0], &[6.0]);
        monitor.tic().unwrap();
        fails(executor.forward(false), ErrorKind::Unsupported, "not today");
        assert_eq!(panics(|| executor.forward(false)), "too often");
        drop(monitor);
        executor.forward(false).unwrap();
        fails(Monitor::builder(1).pattern("(").build().map(drop), ErrorKind::InvalidArgument, "");
        fails(Monitor::builder(0).build().map(drop), ErrorKind::InvalidArgument, "interval");
    });
}

#[test]
fn objects_that_share_memory_take_turns() {
    case(|| {
        let net = linear();
        let mut first = linear_group(&net).build().unwrap();
        let mut second = linear_group(&net).shared_group(&mut first).build().unwrap();
        first.device_params(0).unwrap()["fc_weight"].fill(3.0).unwrap();
        near(&second.device_params(0).unwrap()["fc_weight"], &[3.0, 3.0]);
        let mut monitor = Monitor::builder(1).build().unwrap();
        monitor.install_on_group(&mut second).unwrap();
        let run = |mut group: Group| {
            std::thread::spawn(move || {
                for _ in 0..50 {
                    group.forward(&[&floats(&[1.0; 8], &[4, 2])], &[], true).unwrap();
                    group.backward(&[&floats(&[1.0; 4], &[4, 1])]).unwrap();
                    group.wait().unwrap();
                }
            })
        };
        let threads = [run(first), run(second)];
        for _ in 0..20 {
            monitor.tic().unwrap();
            monitor.toc().unwrap();
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn tapes_record_and_go_back() {
    case(|| {
        let (x, gradient) = (floats(&[1.0, 2.0], &[2]), floats(&[0.0; 2], &[2]));
        let mut tape = Tape::new().unwrap();
        tape.mark(&x, &gradient).unwrap();
        let y = tape.invoke("square", &[&x], &[]).unwrap().remove(0);
        assert_eq!(tape.num_recorded().unwrap(), 1);
        assert_eq!(tape.symbol(&y).unwrap().arguments().unwrap(), ["var0"]);
        tape.backward_with(&[&y], &[&floats(&[1.0, 10.0], &[2])], true, false).unwrap();
        near(&gradient, &[2.0, 40.0]);
        let first = tape.grad(&[&y], &[], &[&x], true).unwrap().remove(0);
        near(&tape.grad(&[&first], &[], &[&x], false).unwrap()[0], &[2.0, 2.0]);
        fails(tape.backward_with(&[&y], &[&x, &x], false, false), ErrorKind::InvalidArgument, "expected 1, found 2");
        fails(tape.backward(&[&floats(&[1.0], &[1])]), ErrorKind::State, "");
        assert!(tape.set_recording(false).unwrap());
        assert!(!tape.is_recording().unwrap() && tape.is_training().unwrap());
        tape.invoke("exp", &[&x], &[]).unwrap();
        let many = floats(&[1.0; 64], &[64]);
        let mut drop = |seed| {
            let into = floats(&[0.0; 64], &[64]);
            Invoke::new("Dropout").input(&many).output(&into).seed(seed).record(&mut tape).unwrap();
            into.to_vec::<f32>().unwrap()
        };
        let first = drop(1);
        assert!(first != drop(2) && first == drop(1));
        let training = Invoke::new("exp").input(&x).train().record(&mut tape);
        fails(training, ErrorKind::InvalidArgument, "is_train");
        assert!(tape.set_training(false).unwrap());
    });
}

#[test]
fn functions_of_the_callers_are_recorded() {
    case(|| {
        let (x, gradient) = (floats(&[1.0, 2.0], &[2]), floats(&[0.0; 2], &[2]));
        let mut tape = Tape::new().unwrap();
        tape.mark(&x, &gradient).unwrap();
        let held = Arc::new(());
        let mut record = |what: u8| {
            let (y, held) = (floats(&[1.0, 4.0], &[2]), held.clone());
            tape.function(&[&x], &[&y], move |heads| {
                let _kept = &held;
                match what {
                    0 => Ok(vec![Some(invoke("_mul_scalar", &[&heads[0]], &[("scalar", "3")])?.remove(0))]),
                    1 => Err(refusal()),
                    _ => panic!("no way back"),
                }
            })
            .unwrap();
            let found = catch_unwind(AssertUnwindSafe(|| tape.backward(&[&y])));
            found.map_err(|payload| payload.downcast_ref::<&str>().unwrap().to_string())
        };
        record(0).unwrap().unwrap();
        near(&gradient, &[3.0, 3.0]);
        fails(record(1).unwrap(), ErrorKind::Unsupported, "not today");
        assert_eq!(record(2).unwrap_err(), "no way back");
        fails(tape.function(&[&x], &[&x], |_| Ok(Vec::new())), ErrorKind::InvalidArgument, "");
        drop(tape);
        assert_eq!(Arc::strong_count(&held), 1);
    });
}

/// y = factor * x; refuses a factor of 13 and panics at a negative one.
struct Scale(Arc<()>);

struct Scaled {
    factor: f32,
    _held: Arc<()>,
}

impl CustomOp for Scale {
    fn create(&self, attrs: &Attrs, _context: Context) -> Result<Box<dyn CustomNode>> {
        let factor = attrs.iter().find(|(key, _)| key == "factor").map_or("1", |(_, value)| value);
        Ok(Box::new(Scaled { factor: factor.parse().map_err(|_| refusal())?, _held: self.0.clone() }))
    }
}

impl Scaled {
    fn scale(&self, from: &NDArray, to: &NDArray) -> Result<()> {
        assert!(self.factor >= 0.0, "a negative factor");
        if self.factor == 13.0 {
            return Err(refusal());
        }
        to.write(&from.to_vec::<f32>()?.iter().map(|x| self.factor * x).collect::<Vec<_>>())
    }
}

impl CustomNode for Scaled {
    fn forward(&mut self, inputs: &[NDArray], _aux: &[NDArray], outputs: &[NDArray], _is_train: bool) -> Result<()> {
        self.scale(&inputs[0], &outputs[0])
    }

    fn backward(
        &mut self,
        head_grads: &[NDArray],
        _inputs: &[NDArray],
        _aux: &[NDArray],
        _outputs: &[NDArray],
        gradients: &[Option<NDArray>],
    ) -> Result<()> {
        gradients[0].as_ref().map_or(Ok(()), |gradient| self.scale(&head_grads[0], gradient))
    }
}

#[test]
fn operators_of_the_callers_are_nodes_like_others() {
    case(|| {
        let held = Arc::new(());
        let registration = register("rust_scale", Scale(held.clone())).unwrap();
        fails(register("rust_scale", Scale(held.clone())).map(drop), ErrorKind::Name, "rust_scale");
        let net = |factor: &str| {
            let x = Symbol::variable("x").unwrap();
            Op::new("Custom").attr("op_type", "rust_scale").attr("factor", factor).input(&x).name("s").build().unwrap()
        };
        let bind = |factor| Executor::simple_bind(&net(factor), &Context::cpu(0), &[("x", &[2])], GradReq::Write);
        let mut executor = bind("4").unwrap();
        executor.set_inputs(&[("x", &floats(&[1.0, 2.0], &[2]))]).unwrap();
        near(&executor.forward(true).unwrap()[0], &[4.0, 8.0]);
        executor.backward(&[&floats(&[1.0, 1.0], &[2])]).unwrap();
        near(&executor.grads().unwrap()["x"], &[4.0, 4.0]);
        fails(bind("four").map(drop), ErrorKind::Unsupported, "not today");
        fails(bind("13").unwrap().forward(true), ErrorKind::Unsupported, "not today");
        assert!(panics(|| bind("-1").unwrap().forward(true)).contains("a negative factor"));
        drop((executor, registration));
        fails(invoke("Custom", &[&floats(&[1.0], &[1])], &[("op_type", "rust_scale")]), ErrorKind::Name, "rust_scale");
        wait_all().unwrap();
        assert_eq!(Arc::strong_count(&held), 1);
    });
}

#[test]
fn messages_are_received() {
    case(|| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let messages = seen.clone();
        let receiver = LogReceiver::new(Level::Warning, move |level, message| {
            messages.lock().unwrap().push((level, message.to_string()));
        })
        .unwrap();
        let net = mlp();
        Group::builder(&net).data(Desc::new("data", &[4, 4])).build().unwrap();
        assert!(seen.lock().unwrap().iter().any(|(level, _)| *level == Level::Warning), "{:?}", seen);
        drop(receiver);
        assert_eq!(Arc::strong_count(&seen), 1);
    });
}
