//! The number type of weights and products: what a vector costs, and how close it stays to the reference.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::error::Error;

/// Number type of weights and products; sums, norms, softmax and pooling are f32 or wider in every one of them.
///
/// Vectors of different precisions are close, not equal, and have different fingerprints: a collection keeps to one.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown)]
pub enum Precision {
    /// 32-bit floats: the reference. Any device.
    #[default]
    F32,
    /// 16-bit brain floats, products summed in f32. Any device but GPUs by Vulkan or Metal. Cosine to f32 at least
    /// .9999 on the CPU, .999 on accelerators, where the rows between layers have 16 bits too.
    Bf16,
    /// 16-bit IEEE floats, products summed in f32. Accelerators only; on GPUs by Vulkan or Metal the weights alone have
    /// 16 bits. Cosine to f32 at least .9999.
    F16,
    /// 8-bit integers: weights by output channel, activations by token, both turned before they are rounded, sums exact
    /// in 32 bits. CPU only. Cosine to f32 .9995 to .9997 on average (MiniLM).
    Int8,
}

impl Precision {
    /// Every precision, the reference first.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The nearest 16-bit float; zero below the smallest normal one (2⁻¹⁴), which devices may take for zero.
pub(crate) fn rounded_to_f16(value: f32) -> f32 {
    let half = half::f16::from_f32(value).to_f32();
    if half.abs() < half::f16::MIN_POSITIVE.to_f32() { 0.0 } else { half }
}

fn unknown(name: &str) -> Error {
    Error::Precision { precision: name.to_owned(), reason: "unknown; use f32, bf16, f16 or int8" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_the_nearest_and_none_is_smaller_than_a_normal_one() {
        let cases = [(1.0, 1.0), (-2.0001, -2.0), (1e-5, 0.0), (-6.2e-5, -6.198883e-5), (65504.0, 65504.0), (0.0, 0.0)];
        for (value, expected) in cases {
            assert_eq!(rounded_to_f16(value), expected, "{value}");
        }
        assert!(rounded_to_f16(f32::NAN).is_nan() && rounded_to_f16(7e4).is_infinite());
    }

    #[test]
    fn names_round_trip_and_others_are_refused() {
        for &precision in Precision::ALL {
            assert_eq!(precision.name().parse::<Precision>().unwrap(), precision);
            assert_eq!(serde_json::to_string(&precision).unwrap(), format!("\"{precision}\""));
        }
        for name in ["", "F32", "fp16", "int4"] {
            assert!(name.parse::<Precision>().unwrap_err().to_string().contains("bf16"), "{name}");
        }
    }
}
