//! Phrases: the documents, and the chunks in them, whose text has some words one behind the other.
//!
//! Words are those that BM25's terms are made of, before stop words go and stems are cut: `"is not none"` is three
//! words, and `"token budgets"` is not `"token budget"`. Case does not count, nor what stands between the words, nor
//! where a chunk ends. Postings say which documents have all terms of a phrase; their texts are read.
//! Cost: the documents that have all terms of the phrases are read and cut into words.

use cento_collection::format::segment::{DocumentRecord, Segment};
use cento_collection::keep::generation::Generation;
use cento_lexical::{self as lexical, Analyzer, Unit};
use roaring::RoaringBitmap;

use super::parts;
use crate::error::Result;
use crate::source::scope::Phrases;

/// The rows that answer, segment by segment, and the number of documents that have all phrases.
pub(in crate::source) fn rows(generation: &Generation, wanted: &Phrases<'_>) -> Result<(Vec<RoaringBitmap>, u64)> {
    let analyzer = Analyzer::exact(generation.manifest.config.language()?);
    let phrases: Vec<Vec<String>> = wanted.phrases.iter().map(|phrase| analyzer.terms(phrase)).collect();
    let (mut rows, mut n_documents) = (Vec::with_capacity(generation.segments.len()), 0);
    for (segment, candidates) in generation.segments.iter().zip(candidates(generation, wanted)?) {
        let mut of_segment = RoaringBitmap::new();
        for document in candidates {
            wanted.cancel.check()?;
            let record = segment.document(document)?;
            let holding = holding(segment, &record, &analyzer, &phrases)?;
            if !holding.is_empty() {
                n_documents += 1;
                match wanted.unit {
                    Unit::Document => drop(of_segment.insert_range(record.rows())),
                    Unit::Row => of_segment |= holding,
                }
            }
        }
        rows.push(of_segment);
    }
    Ok((rows, n_documents))
}

/// The live documents that have all terms of all phrases, segment by segment.
fn candidates(generation: &Generation, wanted: &Phrases<'_>) -> Result<Vec<RoaringBitmap>> {
    let terms = Analyzer::new(generation.manifest.config.language()?).terms(&wanted.phrases.join("\n"));
    let stop = || wanted.cancel.is_cancelled();
    let mut candidates = Vec::with_capacity(generation.segments.len());
    for (segment, part) in generation.segments.iter().zip(parts(generation, Unit::Document, None)?) {
        let documents = match lexical::units_with(&part, Unit::Document, &terms, &stop)? {
            Some(units) => {
                let known = &segment.units()?.documents;
                units.iter().map(|unit| known[unit as usize]).collect()
            }
            None => segment.live_documents().collect(),
        };
        candidates.push(documents);
    }
    Ok(candidates)
}

/// The rows of a document that an occurrence of a phrase touches; none unless it has all of them.
fn holding(
    segment: &Segment,
    record: &DocumentRecord,
    analyzer: &Analyzer,
    phrases: &[Vec<String>],
) -> Result<RoaringBitmap> {
    let text = segment.document_text(record)?;
    // Words, and the row that each stands in.
    let (mut words, mut row_of) = (Vec::new(), Vec::new());
    for row in record.rows() {
        let chunk = segment.chunks.record(row as usize)?;
        let own = text.get(chunk.start as usize..chunk.end as usize).unwrap_or_default();
        words.extend(analyzer.terms(own));
        row_of.resize(words.len(), row);
    }
    let mut rows = RoaringBitmap::new();
    for phrase in phrases {
        let mut is_there = false;
        for (at, window) in words.windows(phrase.len().max(1)).enumerate() {
            if window == phrase {
                is_there = true;
                rows.insert_range(row_of[at]..=row_of[at + phrase.len() - 1]);
            }
        }
        if !is_there {
            return Ok(RoaringBitmap::new());
        }
    }
    Ok(rows)
}
