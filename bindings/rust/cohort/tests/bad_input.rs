// SPDX-License-Identifier: Apache-2.0
//! With any arguments a method works or returns an error of one line. (cohort-sys tests how the C interface treats NULL and wrong
//! handles.)
mod support;

use cohort::*;
use support::*;

const SIZES: [usize; 7] = [0, 1, 3, 4, 1 << 31, 1 << 62, usize::MAX];
const TEXTS: [&str; 8] = ["", "data", "no_such", "\u{fffd}\u{10ffff}", "a\nb", "(", "-1", "9999999999999999999999"];

/// The number of calls, and of those that failed with a proper error.
struct Sweep(usize, usize);

impl Sweep {
    fn see<T>(&mut self, found: Result<T>) {
        self.0 += 1;
        if let Err(error) = found {
            assert!(!error.to_string().is_empty() && !error.to_string().contains('\n'), "{:?}", error);
            assert_ne!(error.kind(), ErrorKind::Internal, "{}", error);
            self.1 += 1;
        }
    }
}

#[test]
fn arrays_take_any_number() {
    case(|| {
        let mut sweep = Sweep(0, 0);
        let array = floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
        for a in SIZES {
            sweep.see(array.at(a));
            sweep.see(NDArray::from_slice(&[1f32; 4], &[a]));
            sweep.see(NDArray::from_vec(vec![1i32; 4], &[a]));
            for b in SIZES {
                if a.checked_mul(b).map_or(true, |size| size == 0 || size > 1 << 40) {
                    sweep.see(NDArray::zeros(&[a, b], Dtype::Float64, &Context::cpu(0)));
                }
                sweep.see(array.slice(a..b));
                sweep.see(array.slice_axis(a as i32, a..b));
                sweep.see(array.reshape(&[a, b]));
                sweep.see(NDArray::from_vec(vec![1f32; 4], &[a, b]));
            }
        }
        for axis in [i32::MIN, -3, -1, 0, 1, 2, i32::MAX] {
            sweep.see(NDArray::concat(&[&array, &array], axis));
        }
        sweep.see(NDArray::concat(&[], 0));
        sweep.see(NDArray::zeros(&[1; 40], Dtype::Float32, &Context::cpu(0)));
        for value in [f64::NAN, f64::INFINITY, -1e308] {
            sweep.see(array.fill(value));
            sweep.see(array.fill_normal(value, value, 1));
            sweep.see(array.fill_uniform(value, -value, 1));
        }
        for dtype in [Dtype::None, Dtype::Float16, Dtype::Bool, Dtype::Bfloat16, Dtype::Int8] {
            sweep.see(array.cast(dtype));
        }
        assert!(sweep.1 > 60 && sweep.0 - sweep.1 > 20, "{} of {} failed", sweep.1, sweep.0);
    });
}

#[test]
fn names_may_be_anything() {
    case(|| {
        let mut sweep = Sweep(0, 0);
        let (net, array) = (mlp(), floats(&[1.0; 4], &[2, 2]));
        let params: Params = TEXTS.iter().map(|name| (name.to_string(), array.clone())).collect();
        for text in TEXTS {
            sweep.see(Symbol::variable(text));
            sweep.see(Symbol::from_json(text));
            sweep.see(Symbol::load(text));
            sweep.see(net.output(text));
            sweep.see(net.attr(text));
            sweep.see(net.clone().set_attrs(&[(text, text)]));
            sweep.see(Op::new(text).input(&net).build());
            sweep.see(Op::new("Convolution").attr("kernel", text).attr("num_filter", text).build());
            sweep.see(Op::new("FullyConnected").attr(text, text).name(text).build());
            sweep.see(Context::parse(text));
            sweep.see(invoke(text, &[&array], &[]));
            sweep.see(invoke("Reshape", &[&array], &[("shape", text)]));
            sweep.see(operator(text));
            sweep.see(load(text));
            sweep.see(Optimizer::new(text, &[]));
            sweep.see(Optimizer::new("sgd", &[("learning_rate", text)]));
            sweep.see(Metric::new(text, &[(text, text)]));
            sweep.see(Initializer::new(text, &[("magnitude", text)], 1));
            sweep.see(GradReq::parse(text));
            sweep.see(load_checkpoint(text, -1));
            sweep.see(Monitor::builder(1).pattern(text).build());
            sweep.see(Group::builder(&net).data(Desc::new(text, &[4, 4]).layout(text)).build());
            sweep.see(Manager::builder(&net, 4).data(Desc::new(text, &[4, 4])).default_bucket(text).build());
            sweep.see(Executor::builder(&net).shape(text, &[4, 4]).dtype(text, Dtype::Int8).allocate());
            sweep.see(Tape::new().and_then(|mut tape| tape.invoke(text, &[&array], &[(text, text)])));
            for zero in ["\0", "a\0b"] {
                let with = format!("{}{}", text, zero);
                fails(Symbol::variable(&with), ErrorKind::InvalidArgument, "zero byte");
                fails(Op::new("exp").attr("a", &with).build(), ErrorKind::InvalidArgument, "zero byte");
                fails(load(&with), ErrorKind::InvalidArgument, "zero byte");
            }
        }
        let mut group =
            Group::builder(&net).data(Desc::new("data", &[2, 2])).contexts(&[Context::cpu(0)]).build().unwrap();
        sweep.see(group.set_params(&params, &params));
        sweep.see(group.assign_params(&params, &params, true, true));
        sweep.see(group.params_into(&params, &params));
        assert!(sweep.1 > 130, "{} of {} failed", sweep.1, sweep.0);
    });
}

#[test]
fn groups_take_any_batch() {
    case(|| {
        let mut sweep = Sweep(0, 0);
        let net = linear();
        let mut group = linear_group(&net).inputs_need_grad().build().unwrap();
        let batches = [
            floats(&[1.0; 8], &[4, 2]),
            floats(&[1.0; 8], &[8]),
            floats(&[1.0; 2], &[1, 2]),
            NDArray::from_slice(&[1i64; 8], &[4, 2]).unwrap(),
            NDArray::zeros(&[0, 2], Dtype::Float32, &Context::cpu(0)).unwrap_or_else(|_| floats(&[], &[0])),
        ];
        for batch in &batches {
            sweep.see(group.forward(&[batch], &[], true));
            sweep.see(group.forward(&[batch, batch], &[batch], true));
            sweep.see(group.forward_presliced(&[vec![batch]], &[], false));
            sweep.see(group.forward_presliced(&[vec![batch], vec![]], &[], false));
            sweep.see(group.backward(&[batch]));
            sweep.see(group.backward(&[batch, batch]));
            sweep.see(group.load(&[batch], &[batch]));
            sweep.see(group.set_states(&[vec![batch]]));
            sweep.see(group.reshape(&[Desc::new("data", &batch.shape().unwrap())], &[]));
            sweep.see(Metric::new("accuracy", &[]).and_then(|mut metric| metric.update(&[batch], &[batch, batch])));
            sweep.see(Executor::bind(&net, &Context::cpu(0), &[batch], None, &[batch]));
        }
        for number in SIZES {
            sweep.see(group.device_params(number));
            sweep.see(group.executor(number));
            sweep.see(group.output(number));
            sweep.see(group.reshape(&[Desc::new("data", &[number, number])], &[]));
            if number != 1 << 31 {
                // 16 GB, which is valid
                sweep.see(Manager::builder(&net, number).data(Desc::new("data", &[1, 2])).build());
            }
            sweep.see(linear_group(&net).slices(&[number..4, 4..4]).build());
            sweep.see(split_slices(number, &[1.0, f64::NAN], Rounding::HalfUp));
            sweep.see(split_slices(number, &[], Rounding::Balanced));
        }
        for share in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            sweep.see(linear_group(&net).workload(&[share, 1.0]).build());
        }
        sweep.see(linear_group(&net).ctx_group("a", &[]).build());
        sweep.see(linear_group(&net).ctx_group("a", &[Context::cpu(0)]).build());
        assert!(sweep.1 > 70, "{} of {} failed", sweep.1, sweep.0);
    });
}

#[test]
fn operators_say_what_they_are() {
    case(|| {
        let all = operators().unwrap();
        assert!(all.len() > 300, "{}", all.len());
        for name in &all {
            assert!(!operator(name).unwrap().name.is_empty(), "{}", name);
        }
        let fc = operator("FullyConnected").unwrap();
        assert_eq!(fc.inputs, ["data", "weight", "bias"]);
        assert!(fc.attrs.iter().any(|attr| attr.name == "num_hidden" && attr.default.is_none()));
    });
}

#[test]
fn memory_of_the_callers_is_used_and_given_back() {
    case(|| {
        let array = NDArray::from_vec(vec![1f32, 2.0, 3.0], &[3]).unwrap();
        near(&array, &[1.0, 2.0, 3.0]);
        let capsule = array.to_dlpack().unwrap();
        drop(array);
        let back = unsafe { NDArray::from_dlpack(capsule) }.unwrap();
        near(&back, &[1.0, 2.0, 3.0]);
        fails(NDArray::from_vec(vec![1f32], &[2]), ErrorKind::Shape, "1 elements");
    });
}
