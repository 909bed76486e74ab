//! Calibration: what a cosine means in a collection, so that "nothing here answers that" can be said of any encoder.
//!
//! Encoders put their cosines on scales of their own: for one .3 is near, for another .8 is far. Two figures lay a
//! scale: the median cosine between a sentence of the collection, read as a question, and the chunk it stands in; and
//! the mean cosine between sentences that have nothing to do with each other. Both are measured at every index run that
//! changes something. [`cento_collection::format::calibration`] says which chunks are the sample.
//! Cost: a key for every new chunk, and [`KEPT_CHUNKS`] sentences embedded at most, those of chunks that are new to the
//! sample; no search.

use std::collections::BTreeMap;
use std::ops::Range;

use cento_collection::format::calibration::{Calibration, KEPT_CHUNKS, Key, Sample};
use cento_collection::format::segment::Segment;
use cento_collection::keep::generation::Generation;
use cento_corpus as corpus;
use cento_embedder::Embedding;
use roaring::RoaringBitmap;

use crate::error::{Error, Result};

/// Letters of a sentence: shorter ones are headings and labels, longer ones lists and tables.
const LETTERS: Range<usize> = 20..200;

/// Sentences on subjects that have nothing in common.
const UNRELATED: [&str; 16] = [
    "The violinist tuned her instrument before the concert began.",
    "Granite cools slowly far below the surface of the earth.",
    "Add two eggs and a cup of flour to the melted butter.",
    "The goalkeeper saved a penalty in the last minute of the match.",
    "Interest rates were raised by a quarter of a point on Thursday.",
    "Penguins keep their eggs warm on their feet through the winter.",
    "The function returns an error if the file cannot be opened.",
    "He was sentenced to three years for forging the old man's will.",
    "Vaccines train the immune system to recognise a virus.",
    "The cathedral's roof was rebuilt in oak after the fire.",
    "Passengers must change trains at the next station.",
    "Her grandmother taught her to knit socks and mittens.",
    "The telescope photographed a galaxy twelve billion light years away.",
    "Parliament dissolved the monasteries and sold their land.",
    "Clean the filter of the washing machine once a month.",
    "The desert tribe traded salt for dates and copper.",
];

/// The generation before, and the documents that are not in the next, by segment.
pub(crate) struct Old<'g> {
    pub(crate) generation: &'g Generation,
    pub(crate) dying: &'g BTreeMap<usize, RoaringBitmap>,
}

/// The embeddings of texts that are read as questions.
pub(crate) type Embed<'e> = &'e mut dyn FnMut(&[String]) -> Result<Vec<Embedding>>;

/// The sample of the next generation: that of the one before, if it has one that is whole, and chunks of the new
/// segments.
pub(crate) fn measure(old: Option<Old<'_>>, new: &[Segment], embed: Embed<'_>) -> Result<Sample> {
    let known = match &old {
        Some(old) => old.generation.calibration_without(old.dying)?,
        None => None,
    };
    let known = match known {
        Some(Calibration::Sample(sample)) => Some(sample).filter(Sample::is_enough),
        Some(Calibration::Figures(_)) | None => None,
    };
    let mut least = Least::default();
    if let (Some(old), None) = (old, &known) {
        for (at, segment) in old.generation.segments.iter().enumerate() {
            let dying = old.dying.get(&at);
            least.extend(segment, |document| dying.is_none_or(|dying| !dying.contains(document)))?;
        }
    }
    for segment in new {
        least.extend(segment, |_| true)?;
    }
    let known = match known {
        Some(sample) => sample,
        None => {
            let (mean, deviation) = unrelated(embed)?;
            Sample::new(mean, deviation)
        }
    };
    let read = least.measure(&known, embed)?;
    Ok(known.merged(read))
}

/// The chunks of least key that were offered, and where each lies.
#[derive(Default)]
struct Least<'s> {
    rows: BTreeMap<Key, (&'s Segment, u32)>,
    is_cut: bool,
}

impl<'s> Least<'s> {
    /// Offers the chunks of the live documents that are wanted.
    fn extend(&mut self, segment: &'s Segment, is_wanted: impl Fn(u32) -> bool) -> Result<()> {
        for document in segment.live_documents().filter(|document| is_wanted(*document)) {
            let (id, record) = (segment.document_id(document)?, segment.document(document)?);
            for row in record.rows() {
                let Some(chunk) = readable(segment.chunks.record(row as usize).map_err(Error::from))? else { continue };
                self.rows.insert(Key::new(id, chunk.index), (segment, row));
                if self.rows.len() > KEPT_CHUNKS {
                    self.rows.pop_last();
                    self.is_cut = true;
                }
            }
        }
        Ok(())
    }

    /// Measures those that can be in one sample with what is known.
    fn measure(&self, known: &Sample, embed: Embed<'_>) -> Result<Sample> {
        let mut sample = Sample::new(known.cosine_unrelated, known.deviation);
        let is_within = |key: Key| known.complete_to.is_none_or(|last| key <= last);
        let (mut sentences, mut of_sentence) = (Vec::new(), Vec::new());
        for (&key, &(segment, row)) in self.rows.iter().take_while(|(key, _)| is_within(**key)) {
            sample.add(key, None);
            if let Some((sentence, vector)) = readable(sampled(segment, row))?.flatten() {
                sentences.push(sentence);
                of_sentence.push((key, vector));
            }
        }
        for (embedded, (key, vector)) in embed(&sentences)?.iter().zip(&of_sentence) {
            sample.add(*key, Some(cosine(&embedded.vector, vector)));
        }
        sample.complete_to = self.rows.keys().next_back().copied().filter(|_| self.is_cut);
        Ok(sample)
    }
}

/// Nothing for what is damaged: that is the doctor's matter, and no index run fails for a sample.
fn readable<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Error::Collection(cento_collection::Error::Corrupt { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A chunk's sentence, read as a question, and the chunk's vector.
fn sampled(segment: &Segment, row: u32) -> Result<Option<(String, Vec<f32>)>> {
    let chunk = segment.chunks.record(row as usize)?;
    let text = segment.text(&segment.document(chunk.document)?, chunk.start..chunk.end)?;
    let Some(sentence) = middle_sentence(&text) else { return Ok(None) };
    Ok(Some((sentence, segment.columns[0].rows.row(row)?.into_owned())))
}

/// The middle one of the sentences of a chunk's text, white space collapsed.
pub(crate) fn middle_sentence(text: &str) -> Option<String> {
    let is_sentence = |sentence: &&str| {
        let n_letters = sentence.chars().filter(|letter| letter.is_alphabetic()).count();
        let n_signs = sentence.chars().filter(|sign| !sign.is_whitespace()).count();
        LETTERS.contains(&n_letters) && n_letters * 4 > n_signs * 3
    };
    let sentences: Vec<&str> =
        corpus::sentences(text).into_iter().map(|span| &text[span]).filter(is_sentence).collect();
    sentences.get(sentences.len() / 2).map(|middle| middle.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Mean and standard deviation of the cosines of [`UNRELATED`] sentences.
fn unrelated(embed: Embed<'_>) -> Result<(f64, f64)> {
    let vectors = embed(&UNRELATED.map(str::to_owned))?;
    let pairs = vectors.iter().enumerate().flat_map(|(at, a)| vectors[..at].iter().map(move |b| (a, b)));
    let cosines: Vec<f64> = pairs.map(|(a, b)| cosine(&a.vector, &b.vector)).collect();
    let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
    let variance = cosines.iter().map(|cosine| (cosine - mean).powi(2)).sum::<f64>() / cosines.len() as f64;
    Ok((mean, variance.sqrt()))
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}
