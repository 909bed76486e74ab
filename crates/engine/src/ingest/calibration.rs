//! Calibration: what a cosine means in a collection, so that "nothing here answers that" can be said of any encoder.
//!
//! Encoders put their cosines on scales of their own: for one .3 is near, for another .8 is far. Two figures lay a
//! scale: the median cosine between a sentence of the collection, read as a question, and the chunk it stands in; and
//! the mean cosine between sentences that have nothing to do with each other. Both are measured at every index run that
//! changes something.
//! Cost: at most [`SAMPLE_ROWS`] sentences embedded; no search.

use std::ops::Range;

use cento_collection::format::calibration::Calibration;
use cento_corpus as corpus;
use cento_embedder::{Embedder, Kind};

use crate::error::{Error, Result};
use cento_collection::format::segment::Segment;

/// Chunks, evenly spread over the collection, of which a sentence each is read.
const SAMPLE_ROWS: usize = 200;

/// Fewer sentences say nothing.
const SENTENCES_MIN: usize = 5;

/// Letters of a sentence: shorter ones are headings and labels, longer ones lists and tables.
const LETTERS: Range<usize> = 20..200;

/// Standard deviations of unrelated cosines by which a typical one must stand above their mean. An encoder that has not
/// learnt to tell one text from another stands lower, and its cosines mean nothing.
const SIGMAS_MIN: f64 = 3.0;

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

/// Measures the live rows of segments. None where there is too little to measure, or the encoder tells nothing apart.
pub(crate) fn measure(segments: &[&Segment], encoder: &Embedder) -> Result<Option<Calibration>> {
    let rows = segments.iter().flat_map(|segment| {
        let live = segment.live.as_ref();
        let rows = 0..segment.chunks.len() as u32;
        rows.filter(move |row| live.is_none_or(|live| live.contains(*row))).map(move |row| (*segment, row))
    });
    let n_rows: usize = segments.iter().map(|segment| segment.n_live_rows()).sum();
    let n_sample = n_rows.min(SAMPLE_ROWS);
    let mut wanted = (0..n_sample).map(|n| (2 * n + 1) * n_rows / (2 * n_sample)).peekable();
    let (mut sentences, mut vectors) = (Vec::new(), Vec::new());
    for (_, (segment, row)) in rows.enumerate().filter(|(number, _)| wanted.next_if_eq(number).is_some()) {
        match sampled(segment, row) {
            Ok(None) | Err(Error::Collection(cento_collection::Error::Corrupt { .. })) => {} // damage is the doctor's matter: no index run fails for a sample
            Ok(Some((sentence, vector))) => {
                sentences.push(sentence);
                vectors.push(vector);
            }
            Err(error) => return Err(error),
        }
    }
    if sentences.len() < SENTENCES_MIN {
        return Ok(None);
    }
    let embedded = encoder.embed(&sentences, Kind::Query)?;
    let mut typical: Vec<f64> =
        embedded.iter().zip(&vectors).map(|(sentence, chunk)| cosine(&sentence.vector, chunk)).collect();
    typical.sort_unstable_by(f64::total_cmp);
    let typical = typical[typical.len() / 2];
    let (unrelated, deviation) = unrelated(encoder)?;
    Ok((typical - unrelated >= SIGMAS_MIN * deviation).then(|| Calibration {
        n_sentences: sentences.len(),
        cosine_typical: six_digits(typical),
        cosine_unrelated: six_digits(unrelated),
    }))
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
fn unrelated(encoder: &Embedder) -> Result<(f64, f64)> {
    let vectors = encoder.embed(&UNRELATED.map(str::to_owned), Kind::Query)?;
    let pairs = vectors.iter().enumerate().flat_map(|(at, a)| vectors[..at].iter().map(move |b| (a, b)));
    let cosines: Vec<f64> = pairs.map(|(a, b)| cosine(&a.vector, &b.vector)).collect();
    let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
    let variance = cosines.iter().map(|cosine| (cosine - mean).powi(2)).sum::<f64>() / cosines.len() as f64;
    Ok((mean, variance.sqrt()))
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// So that a figure is read back from JSON as it was written.
fn six_digits(figure: f64) -> f64 {
    (figure * 1e6).round() / 1e6
}
