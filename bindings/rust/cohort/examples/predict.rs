use cohort::{Context, NDArray, Predictor};

pub fn main() -> cohort::Result<()> {
    let mut predictor = Predictor::load("model/digits", 6, &Context::cpu(0), &[("data", &[1, 1, 8, 8])])?;
    let image = NDArray::from_slice(&[0.0f32; 64], &[1, 1, 8, 8])?;
    let scores: Vec<f32> = predictor.predict(&[("data", &image)])?[0].to_vec()?;
    println!("{:?}", scores);
    Ok(())
}
