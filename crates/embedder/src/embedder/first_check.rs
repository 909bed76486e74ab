//! The first check of a device with a model: a dozen texts against the CPU, and each text alone against all together.
//! The CPU has the same rounded weights. By Vulkan and Metal the rows between layers are f32, as on the CPU, so that
//! one bound holds in every precision; elsewhere rows have 16 bits where weights have, and wider bounds.
//!
//! Drivers compile the kernels, and some compile them wrongly; nobody would notice: wrong vectors are vectors too.
//! Cost: the model is loaded once more, and some hundred tokens are computed by the CPU; once for each adapter, driver,
//! model and version of Cento.

use crate::embedder::Embedder;
use crate::encoder::stop::NEVER;
use crate::error::{Error, Result};
use crate::pack::{Batch, pack};
use crate::precision::Precision;

/// Largest distance of a token's hidden row from the CPU's, as a part of its length, where both are f32.
const DISTANCE_MAX: f64 = 1e-4;
/// The same of rows of 16-bit IEEE floats (11 bits count), and of brain floats (8 bits): each of some dozens of layers
/// may add a rounding, and a row that has nothing to do with the CPU's is 1.4 away.
const DISTANCE_MAX_F16: f64 = 0.05;
const DISTANCE_MAX_BF16: f64 = 0.25;
/// Tokens of the texts: around the sizes of tiles, and some that are larger.
const LENGTHS: [usize; 12] = [1, 2, 3, 8, 15, 16, 17, 31, 33, 64, 65, 130];
/// Changes when the check does, or a kernel.
const VERSION: &str = concat!("cento first check 3, ", env!("CARGO_PKG_VERSION"));

impl Embedder {
    /// The name of the check of this model on this device.
    pub(super) fn check_key(&self) -> String {
        let parts = [VERSION, &self.arithmetic(), self.fingerprint()];
        blake3::hash(parts.join("\n").as_bytes()).to_hex().to_string()
    }

    /// Compares this model on its device with the same on the CPU; in words what is wrong.
    ///
    /// # Errors
    /// If either cannot compute the texts.
    pub(super) fn first_check(&self, on_cpu: &Self) -> Result<Option<String>> {
        let (texts, most) = (self.texts_of_check()?, self.distance_max());
        let alone = |embedder: &Self, ids: &Vec<u32>| {
            let batch = pack(vec![ids.clone()], usize::MAX).remove(0);
            embedder.with_hidden(&batch, NEVER, |hidden, width| (hidden.to_vec(), width))
        };
        let mut rows = Vec::new();
        for ids in &texts {
            let ((ours, width), (theirs, _)) = (alone(self, ids)?, alone(on_cpu, ids)?);
            for (ours, theirs) in ours.chunks_exact(width).zip(theirs.chunks_exact(width)) {
                let distance = distance(ours, theirs);
                if distance.is_nan() || distance > most {
                    let n = ids.len();
                    return Ok(Some(format!(
                        "a token of {n} is {distance:.1e} of its length from the CPU's, {most:.0e} is allowed"
                    )));
                }
            }
            rows.push(ours);
        }
        for order in [(0..texts.len()).collect::<Vec<_>>(), (0..texts.len()).rev().collect()] {
            let batch = Batch::new(order.iter().map(|&text| (text, texts[text].clone())));
            let together = self.with_hidden(&batch, NEVER, |hidden, _| hidden.to_vec())?;
            let expected = order.iter().flat_map(|&text| &rows[text]);
            if !together.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits()) {
                return Ok(Some("a text among others is not the same as alone".to_owned()));
            }
        }
        Ok(None)
    }

    fn distance_max(&self) -> f64 {
        match self.precision {
            Precision::F32 | Precision::Int8 => DISTANCE_MAX,
            _ if self.device.gpu().is_some() => DISTANCE_MAX,
            Precision::F16 => DISTANCE_MAX_F16,
            Precision::Bf16 => DISTANCE_MAX_BF16,
        }
    }

    /// Tokens of the texts, each within the window.
    fn texts_of_check(&self) -> Result<Vec<Vec<u32>>> {
        const WORDS: [&str; 7] = ["the", "price", "of bread", "rises", "after a", "cold", "spring;"];
        let text = |index: usize| (0..LENGTHS[index]).map(move |word| WORDS[(index + word * word) % WORDS.len()]);
        let ids = |index: usize| {
            let text = text(index).collect::<Vec<_>>().join(" ");
            let encoded = self.encode("", &text).map_err(|reason| Error::Tokenize { index, reason })?;
            let mut ids = encoded.ids;
            ids.truncate(LENGTHS[index]); // without the closing token, which the encoder does not mind
            Ok(ids)
        };
        let texts: Result<Vec<Vec<u32>>> = (0..LENGTHS.len()).map(ids).collect();
        Ok(texts?.into_iter().filter(|ids| !ids.is_empty()).collect())
    }
}

/// |a - b| / |b|.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let apart = squares(&mut a.iter().zip(b).map(|(&a, &b)| f64::from(a) - f64::from(b)));
    (apart / squares(&mut b.iter().map(|&b| f64::from(b)))).sqrt()
}
