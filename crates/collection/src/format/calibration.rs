//! Calibration: what a cosine means in a collection. It stands in the manifest; whoever has the encoder measures it.
//!
//! The sample is the chunks of least key, where a key is a hash of a chunk's public id: it does not depend on where
//! chunks lie, and the sample of a whole is in the samples of its parts. A reserve is kept beside it, so that documents
//! can be deleted without an encoder and the sample is still that of the living.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Chunks of which a sentence each is read.
const SAMPLE_CHUNKS: usize = 200;

/// Chunks that are kept: the sample, and a reserve for those that are deleted.
pub const KEPT_CHUNKS: usize = 300;

/// Fewer sentences say nothing.
const SENTENCES_MIN: usize = 5;

/// Standard deviations of unrelated cosines by which a typical one must stand above their mean. An encoder that has not
/// learnt to tell one text from another stands lower, and its cosines mean nothing.
const SIGMAS_MIN: f64 = 3.0;

/// The calibration of a collection as its manifest holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Calibration {
    /// The sample that figures follow from, of chunks that all are alive.
    Sample(Sample),
    /// Figures alone, of a collection that was repaired or has none but old segments.
    Figures(Figures),
}

/// The meaning of cosines in a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Sentences that were read.
    pub n_sentences: usize,
    /// Median cosine of a sentence and the chunk it stands in.
    pub cosine_typical: f64,
    /// Mean cosine of two sentences that have nothing to do with each other.
    pub cosine_unrelated: f64,
}

impl Calibration {
    /// The figures; none where there are too few sentences, or the encoder tells nothing apart.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        match self {
            Self::Sample(sample) => sample.figures(),
            Self::Figures(figures) => Some(figures.clone()),
        }
    }

    /// The calibration of a whole of which these are parts; none where a part has figures alone, which are none of the
    /// whole, or was not measured.
    #[must_use]
    pub fn merged(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(Self::Sample(one)), Some(Self::Sample(other))) => Some(Self::Sample(one.merged(other))),
            (None | Some(Self::Figures(_)), _) | (_, None | Some(Self::Figures(_))) => None,
        }
    }

    /// The calibration after chunks were lost that nobody can name any more: figures without a sample.
    #[must_use]
    pub fn of_losses(&self) -> Option<Self> {
        self.figures().map(Self::Figures)
    }
}

/// Place of a chunk in the order of sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(u64);

impl Key {
    /// The key of a chunk: eight bytes of a hash of its document's id and its number.
    #[must_use]
    pub fn new(document: &str, chunk: u32) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(document.as_bytes()).update(&[0]).update(&chunk.to_le_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        Self(u64::from_be_bytes(bytes))
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        format!("{:016x}", key.0)
    }
}

impl TryFrom<String> for Key {
    type Error = std::num::ParseIntError;

    fn try_from(hex: String) -> Result<Self, Self::Error> {
        u64::from_str_radix(&hex, 16).map(Self)
    }
}

/// Cosines of sentences and the chunks they stand in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Mean cosine of two sentences that have nothing to do with each other.
    pub cosine_unrelated: f64,
    /// Standard deviation of such cosines.
    pub deviation: f64,
    /// Every chunk up to this key is here; none: every chunk of the collection is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_to: Option<Key>,
    /// The cosine of the middle sentence of each chunk; null for a chunk without one.
    pub chunks: BTreeMap<Key, Option<f64>>,
}

impl Sample {
    /// A sample of nothing, to add to.
    #[must_use]
    pub fn new(cosine_unrelated: f64, deviation: f64) -> Self {
        let (cosine_unrelated, deviation) = (six_digits(cosine_unrelated), six_digits(deviation));
        Self { cosine_unrelated, deviation, complete_to: None, chunks: BTreeMap::new() }
    }

    /// Adds a chunk; cosines have six digits, so that they are read back from JSON as they were written.
    pub fn add(&mut self, chunk: Key, cosine: Option<f64>) {
        self.chunks.insert(chunk, cosine.map(six_digits));
    }

    /// True if the sample is whole without another look at the collection.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.complete_to.is_none() || self.chunks.len() >= SAMPLE_CHUNKS
    }

    /// The sample of two parts of one collection that were measured with one encoder; a chunk of both is `other`'s.
    #[must_use]
    pub fn merged(mut self, other: Self) -> Self {
        self.chunks.extend(other.chunks);
        self.complete_to = [self.complete_to, other.complete_to].into_iter().flatten().min();
        if let Some(last) = self.complete_to {
            self.chunks.retain(|key, _| *key <= last);
        }
        if let Some(&beyond) = self.chunks.keys().nth(KEPT_CHUNKS) {
            self.chunks.split_off(&beyond);
            self.complete_to = self.chunks.keys().next_back().copied();
        }
        self
    }

    /// The sample without chunks that died.
    #[must_use]
    pub fn without(mut self, dead: impl IntoIterator<Item = Key>) -> Self {
        for key in dead {
            self.chunks.remove(&key);
        }
        self
    }

    fn figures(&self) -> Option<Figures> {
        let mut cosines: Vec<f64> = self.chunks.values().take(SAMPLE_CHUNKS).copied().flatten().collect();
        if cosines.len() < SENTENCES_MIN {
            return None;
        }
        cosines.sort_unstable_by(f64::total_cmp);
        let cosine_typical = cosines[cosines.len() / 2];
        (cosine_typical - self.cosine_unrelated >= SIGMAS_MIN * self.deviation).then_some(Figures {
            n_sentences: cosines.len(),
            cosine_typical,
            cosine_unrelated: self.cosine_unrelated,
        })
    }
}

fn six_digits(figure: f64) -> f64 {
    (figure * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Chunks by number, of which every seventh has no sentence.
    fn sample(chunks: impl IntoIterator<Item = u32>) -> Sample {
        let mut sample = Sample::new(0.1, 0.05);
        for chunk in chunks {
            let cosine = f64::from(chunk % 97) / 97.0;
            sample.add(Key::new("a.md", chunk), (chunk % 7 > 0).then_some(cosine));
        }
        sample.merged(Sample::new(0.1, 0.05))
    }

    #[test]
    fn a_manifest_gives_back_what_it_was_given() {
        for calibration in
            [Calibration::Sample(sample(0..1000)), sample(0..50).figures().map(Calibration::Figures).unwrap()]
        {
            let json = serde_json::to_string(&calibration).unwrap();
            assert_eq!(serde_json::from_str::<Calibration>(&json).unwrap(), calibration, "{json}");
        }
        let old = r#"{"n_sentences": 12, "cosine_typical": 0.61, "cosine_unrelated": 0.04}"#;
        let figures = serde_json::from_str::<Calibration>(old).unwrap().figures().unwrap();
        assert_eq!(figures, Figures { n_sentences: 12, cosine_typical: 0.61, cosine_unrelated: 0.04 });
    }

    #[test]
    fn too_few_sentences_and_an_encoder_that_tells_nothing_apart_say_nothing() {
        assert_eq!(sample([1, 2, 3, 4]).figures(), None);
        let mut flat = Sample::new(0.5, 0.2);
        (0..20).for_each(|chunk| flat.add(Key::new("a", chunk), Some(0.9)));
        assert_eq!(flat.figures(), None);
        assert_eq!(sample(0..1000).figures().map(|figures| figures.n_sentences < SAMPLE_CHUNKS), Some(true));
    }

    proptest! {
        #[test]
        fn parts_have_the_sample_of_the_whole(
            n in 1_u32..900,
            parts in 1_u32..6,
            dead in prop::collection::btree_set(0_u32..900, 0..60)
        ) {
            let dead = || dead.iter().map(|chunk| Key::new("a.md", *chunk));
            let whole = sample(0..n).without(dead());
            let living = (0..n).filter(|chunk| dead().all(|key| key != Key::new("a.md", *chunk)));
            prop_assert_eq!(sample(living).figures(), whole.figures());
            let part = |part: u32| sample((0..n).filter(|chunk| chunk % parts == part)).without(dead());
            let merged = (0..parts).map(part).reduce(Sample::merged).unwrap();
            prop_assert_eq!(merged.figures(), whole.figures());
        }
    }
}
