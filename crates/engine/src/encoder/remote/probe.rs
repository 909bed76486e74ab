//! Probe vectors: what an encoder elsewhere gives to a few fixed texts, by which it is known again.
//!
//! Nobody sees the weights behind an endpoint. Its owner may put another model under the same name, and its vectors
//! would be searched among those of the first one. So the probes are embedded whenever such an encoder is opened, kept
//! with what it made, and compared.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The texts. Whoever changes one makes every collection of an encoder elsewhere a stranger's.
pub(super) const TEXTS: [&str; 4] = [
    "The tide rises twice a day because the moon pulls the sea.",
    "fn main() { println!(\"{}\", 6 * 7); }",
    "Où se trouve la gare la plus proche ?",
    "1842",
];

/// The least cosine of two vectors that one model gives to one text.
///
/// Servers that compute in 16 bits, in batches of any size, stay above .9999; another model, another pooling or weights
/// of 8 and 4 bits fall below.
pub(crate) const COSINE_MIN: f64 = 0.999;

/// Values of each probe that are kept, the first ones: they tell one model from another as well as all of them.
const VALUES: usize = 256;

/// Probes as they are kept: the first values of each, 32-bit floats, little-endian, in base64.
pub(super) fn encode(vectors: &[Vec<f32>]) -> String {
    let values = vectors.iter().flat_map(|vector| vector.iter().take(VALUES));
    STANDARD.encode(values.flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
}

/// The least cosine between the probes of two runs; none if one of the two is no set of probes.
pub(super) fn least_cosine(a: &str, b: &str) -> Option<f64> {
    let (a, b) = (decode(a)?, decode(b)?);
    let width = a.len() / TEXTS.len();
    if width == 0 || a.len() != b.len() {
        return None;
    }
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let cosine = |(a, b): (&[f64], &[f64])| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    let cosines = a.chunks(width).zip(b.chunks(width)).map(cosine);
    cosines.reduce(f64::min).filter(|least| least.is_finite())
}

fn decode(probes: &str) -> Option<Vec<f64>> {
    let bytes = STANDARD.decode(probes).ok().filter(|bytes| bytes.len() <= TEXTS.len() * VALUES * size_of::<f32>())?;
    let (values, rest) = bytes.as_chunks::<4>();
    let is_whole = rest.is_empty() && values.len() % TEXTS.len() == 0;
    is_whole.then(|| values.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_tell_one_model_from_another() {
        let of = |shift: f32| -> Vec<Vec<f32>> {
            (0..4).map(|text| (0..300).map(|value| ((text * 7 + value) as f32).sin() + shift).collect()).collect()
        };
        let (a, near, far) = (encode(&of(0.0)), encode(&of(1e-4)), encode(&of(0.5)));
        assert_eq!(least_cosine(&a, &a).map(|cosine| (cosine * 1e9).round()), Some(1e9));
        assert!(least_cosine(&a, &near).unwrap() > COSINE_MIN);
        assert!(least_cosine(&a, &far).unwrap() < COSINE_MIN);
        let zeros = encode(&vec![vec![0.0; 300]; 4]);
        for wrong in ["", "AAAA", "not base64!", &a[..a.len() - 8], &zeros] {
            assert_eq!(least_cosine(&a, wrong), None, "{wrong}");
        }
    }
}
