// SPDX-License-Identifier: Apache-2.0
//! Trains LeNet on handwritten digits over three devices with unequal shares, saves a checkpoint, and predicts with it.
//!
//!     cargo run --release --example train_digits [DIGITS.params [PREFIX]]
use cohort::{Context, Desc, Group, Initializer, Metric, NDArray, Op, Optimizer, Predictor, Result, Symbol, Update};

const NUM: usize = 1797;
const NUM_TRAIN: usize = 1437;
const BATCH: usize = 50;
const PIXELS: usize = 64;

fn lenet() -> Result<Symbol> {
    let mut net = Symbol::variable("data")?;
    for (i, filters) in [20, 50].iter().enumerate() {
        let name = format!("conv{}", i + 1);
        let conv = Op::new("Convolution").attr("kernel", "(3, 3)").attr("pad", "(1, 1)").attr("num_filter", filters);
        let conv = Op::new("tanh").input(&conv.input(&net).name(&name).build()?).build()?;
        let pool = Op::new("Pooling").attr("kernel", "(2, 2)").attr("stride", "(2, 2)").attr("pool_type", "max");
        net = pool.input(&conv).build()?;
    }
    let flat = Op::new("Flatten").input(&net).build()?;
    let fc1 = Op::new("FullyConnected").attr("num_hidden", 128).input(&flat).name("fc1").build()?;
    let tanh = Op::new("tanh").input(&fc1).build()?;
    let fc2 = Op::new("FullyConnected").attr("num_hidden", 10).input(&tanh).name("fc2").build()?;
    Op::new("SoftmaxOutput").input(&fc2).name("softmax").build()
}

/// Numbers for shuffling, the same in each run.
struct Shuffle(u64);

impl Shuffle {
    fn shuffle(&mut self, rows: &mut [usize]) {
        for i in (1..rows.len()).rev() {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            rows.swap(i, (self.0 >> 33) as usize % (i + 1));
        }
    }
}

fn rows_of(images: &[f32], labels: &[f32], rows: &[usize]) -> Result<(NDArray, NDArray)> {
    let pixels: Vec<f32> = rows.iter().flat_map(|&row| images[row * PIXELS..][..PIXELS].iter().copied()).collect();
    let classes: Vec<f32> = rows.iter().map(|&row| labels[row]).collect();
    Ok((NDArray::from_slice(&pixels, &[rows.len(), 1, 8, 8])?, NDArray::from_slice(&classes, &[rows.len()])?))
}

pub fn train(digits: &str, prefix: &str, epochs: usize) -> Result<f64> {
    let file: std::collections::BTreeMap<_, _> = cohort::load(digits)?.into_iter().collect();
    let (images, labels) = (file["images"].to_vec::<f32>()?, file["labels"].to_vec::<f32>()?);
    let (mut random, mut order) = (Shuffle(1), (0..NUM).collect::<Vec<_>>());
    random.shuffle(&mut order);
    let (train, test) = order.split_at_mut(NUM_TRAIN);

    let net = lenet()?;
    let mut group = Group::builder(&net)
        .contexts(&[Context::cpu(0), Context::cpu(1), Context::cpu(2)])
        .workload(&[2.0, 1.0, 1.0])
        .data(Desc::new("data", &[BATCH, 1, 8, 8]))
        .label(Desc::new("softmax_label", &[BATCH]))
        .build()?;
    group.init_params(&Initializer::new("xavier", &[], 1)?)?;
    let sgd = Optimizer::new("sgd", &[("learning_rate", "0.05"), ("momentum", "0.9"), ("rescale_grad", "0.02")])?;
    let mut metric = Metric::new("accuracy", &[])?;
    for epoch in 0..epochs {
        random.shuffle(train);
        metric.reset()?;
        for rows in train.chunks_exact(BATCH) {
            let (data, label) = rows_of(&images, &labels, rows)?;
            group.forward(&[&data], &[&label], true)?;
            group.backward(&[])?;
            group.update(&sgd, Update::OnStore)?;
            group.update_metric(&mut metric, &[&label])?;
        }
        println!("epoch {}: train accuracy {:.4}", epoch + 1, metric.values()?[0].1);
    }
    let (args, aux) = group.params()?;
    cohort::save_checkpoint(prefix, epochs as i32, &net, &args, &aux)?;

    let mut predictor = Predictor::load(prefix, epochs as i32, &Context::cpu(0), &[("data", &[1, 1, 8, 8])])?;
    let (data, label) = rows_of(&images, &labels, test)?;
    let scores = predictor.predict(&[("data", &data)])?;
    metric.reset()?;
    metric.update(&[&label], &[&scores[0]])?;
    let accuracy = metric.values()?[0].1;
    println!("test accuracy: {:.4}", accuracy);
    Ok(accuracy)
}

#[allow(dead_code)]
fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let digits = args
        .next()
        .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/data/digits.params").into());
    let prefix = args.next().unwrap_or_else(|| std::env::temp_dir().join("digits").to_string_lossy().into());
    train(&digits, &prefix, 8).map(drop)
}
