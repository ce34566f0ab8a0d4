// SPDX-License-Identifier: Apache-2.0
//! Fine-tunes a checkpoint of MXNet on handwritten digits, over three devices that take 5, 2 and 1 of 8 samples. Once it trains
//! without a stop; once it stops half-way, saves parameters and optimizer states, and goes on from the files, as a later process
//! would. Both end with the same bits.
//!
//!     cargo run --release --example fine_tune PREFIX EPOCH [DIGITS.params [FOLDER]]
use cohort::{load_checkpoint, save_checkpoint, Context, Desc, Group, Metric, Optimizer, Params, Result, Update};
use std::path::Path;

const BATCH: usize = 64;

/// Trains from one checkpoint, and the states beside it if there are any, to another; returns the accuracy.
fn tune(digits: &Params, from: &str, epoch: i32, to: &str, num_epochs: i32) -> Result<f64> {
    let (net, args, aux) = load_checkpoint(from, epoch)?;
    let mut group = Group::builder(&net)
        .contexts(&[Context::cpu(0), Context::cpu(1), Context::cpu(2)])
        .workload(&[5.0, 2.0, 1.0])
        .data(Desc::new("data", &[BATCH, 1, 8, 8]))
        .label(Desc::new("softmax_label", &[BATCH]))
        .fixed_params(&["conv1_weight", "conv1_bias"]) // the first layer stays as it is
        .strict_names()
        .keep_device_aux(true)
        .build()?;
    group.set_params(&args, &aux)?;
    let rescale = (1.0 / BATCH as f64).to_string();
    let settings = [("learning_rate", "0.05"), ("momentum", "0.9"), ("rescale_grad", rescale.as_str())];
    let sgd = Optimizer::new("sgd", &settings)?;
    let states = format!("{}-{:04}.states", from, epoch);
    if Path::new(&states).exists() {
        sgd.load_states(&states)?;
    }
    group.resume(&sgd)?;
    let mut metric = Metric::new("accuracy", &[])?;
    for _ in 0..num_epochs {
        metric.reset()?;
        for i in 0..digits["labels"].size()? / BATCH {
            let rows = i * BATCH..(i + 1) * BATCH;
            let (data, label) = (digits["images"].slice(rows.clone())?, digits["labels"].slice(rows)?);
            group.forward(&[&data], &[&label], true)?;
            group.backward(&[])?;
            group.update(&sgd, Update::OnStore)?;
            group.update_metric(&mut metric, &[&label])?;
        }
    }
    let (args, aux) = group.params()?;
    save_checkpoint(to, epoch + num_epochs, &net, &args, &aux)?;
    sgd.save_states(&format!("{}-{:04}.states", to, epoch + num_epochs))?;
    Ok(metric.values()?[0].1)
}

/// The accuracy, and whether training with a stop ends with the same bits as without one.
pub fn fine_tune(data: &str, prefix: &str, epoch: i32, num_epochs: i32, folder: &Path) -> Result<(f64, bool)> {
    let digits: Params = cohort::load(data)?.into_iter().collect();
    let in_folder = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (whole, parts, half) = (in_folder("whole"), in_folder("parts"), num_epochs / 2);
    let accuracy = tune(&digits, prefix, epoch, &whole, num_epochs)?;
    tune(&digits, prefix, epoch, &parts, half)?;
    tune(&digits, &parts, epoch + half, &parts, num_epochs - half)?;
    let read =
        |prefix: &str| std::fs::read(format!("{}-{:04}.params", prefix, epoch + num_epochs)).expect("a checkpoint");
    Ok((accuracy, read(&whole) == read(&parts)))
}

#[allow(dead_code)]
fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let (prefix, epoch) = (args.get(1).expect("PREFIX"), args.get(2).and_then(|one| one.parse().ok()).expect("EPOCH"));
    let digits = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/data/digits.params").to_string();
    let folder = args.get(4).map_or_else(std::env::temp_dir, |one| one.into());
    let (accuracy, same) = fine_tune(args.get(3).unwrap_or(&digits), prefix, epoch, 6, &folder)?;
    println!("accuracy {:.4}, {} after the stop", accuracy, if same { "the same bits" } else { "OTHER BITS" });
    Ok(())
}
