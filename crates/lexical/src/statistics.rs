//! What BM25 needs to know about the whole collection: how many units, how long they are, and how many have each term.
//!
//! Sums are of integers, over the live rows of all parts, so they do not depend on how the rows are divided among
//! parts, nor on whether all parts are at hand: statistics of several collections add up to those of one collection
//! with all their rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bm25::idf;
use crate::lengths::Lengths;
use crate::schema::{HEADER, N_FIELDS, TEXT, TITLE};
use crate::segment::{Part, Unit};
use crate::{Error, Result};

/// Totals over live units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Live units.
    pub n: u64,
    /// Terms in their text.
    pub text: u64,
    /// Terms in their header (of rows) or title (of documents).
    pub beside: u64,
}

impl Totals {
    /// Adds those of another part.
    pub(crate) fn add(&mut self, other: Self) {
        self.n += other.n;
        self.text += other.text;
        self.beside += other.beside;
    }

    /// Average length of a unit, in terms.
    pub(crate) fn average_length(&self, beside_weight: f64) -> f64 {
        combined(self.text, self.beside, beside_weight) / self.n as f64
    }
}

/// The totals over live units, and the document frequencies of some terms.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Units and their lengths.
    pub totals: Totals,
    /// For each term that was asked for, the live units that have it.
    pub df: BTreeMap<String, u64>,
}

impl Statistics {
    /// Adds those of other rows.
    pub fn add(&mut self, other: &Self) {
        self.totals.add(other.totals);
        for (term, df) in &other.df {
            *self.df.entry(term.clone()).or_default() += df;
        }
    }

    /// The idf of a term; a term that was not asked for has none.
    #[must_use]
    pub fn idf(&self, term: &str) -> Option<f64> {
        Some(idf(self.totals.n, (*self.df.get(term)?).min(self.totals.n)))
    }

    /// The document frequency of a term that a score needs.
    pub(crate) fn df(&self, term: &str) -> Result<u64> {
        self.df.get(term).copied().ok_or_else(|| Error::Statistics { term: term.to_owned() })
    }
}

/// A length or a frequency over both fields.
pub(crate) fn combined(text: u64, beside: u64, beside_weight: f64) -> f64 {
    text as f64 + beside_weight * beside as f64
}

/// Lengths of the units of one part.
#[derive(Debug)]
pub(crate) enum UnitLengths {
    /// Rows: as the file has them.
    Rows(Lengths),
    /// Documents: sums over live rows, of text and title.
    Documents(Vec<Option<[u64; 2]>>),
}

impl UnitLengths {
    /// Lengths and totals of a part's units. Cost: linear in the deleted rows for rows, in all rows for documents.
    pub(crate) fn open(part: &Part<'_>, at: usize, unit: Unit) -> Result<(Self, Totals)> {
        let lengths = part.segment.lengths()?;
        match unit {
            Unit::Row => {
                let totals = lengths.totals(part.live)?;
                let n = part.live.map_or(u64::from(part.segment.n_rows()), roaring::RoaringBitmap::len);
                Ok((Self::Rows(lengths), Totals { n, text: totals[TEXT], beside: totals[HEADER] }))
            }
            Unit::Document => {
                let documents = documents(part, at, &lengths)?;
                let mut totals = Totals::default();
                for &[text, beside] in documents.iter().flatten() {
                    totals.add(Totals { n: 1, text, beside });
                }
                Ok((Self::Documents(documents), totals))
            }
        }
    }

    /// Number of units, live or not.
    pub(crate) fn n_units(&self, part: &Part<'_>) -> u32 {
        match self {
            Self::Rows(_) => part.segment.n_rows(),
            Self::Documents(documents) => documents.len() as u32,
        }
    }

    /// Length of a live unit, in terms.
    pub(crate) fn length(&self, unit: u32, beside_weight: f64) -> f64 {
        let [text, beside] = match self {
            Self::Rows(lengths) => {
                let row = lengths.row(unit);
                [u64::from(row[TEXT]), u64::from(row[HEADER])]
            }
            Self::Documents(documents) => documents[unit as usize].unwrap_or_default(),
        };
        combined(text, beside, beside_weight)
    }
}

/// Length of text and title of each document with a live row.
fn documents(part: &Part<'_>, at: usize, lengths: &Lengths) -> Result<Vec<Option<[u64; 2]>>> {
    let mut documents: Vec<Option<[u64; 2]>> = Vec::new();
    for (row, &document) in (0u32..).zip(part.document_of_row) {
        let last = documents.len() as u64;
        match u64::from(document) + 1 {
            n if n == last => {}
            n if n == last + 1 => documents.push(None),
            _ => {
                let reason = format!("row {row} is of document {document}, after {last} documents");
                return Err(Error::Part { part: at, reason });
            }
        }
        if part.live.is_none_or(|live| live.contains(row)) {
            let row: [u32; N_FIELDS] = lengths.row(row);
            let [text, title] = documents[document as usize].get_or_insert_default();
            *text += u64::from(row[TEXT]);
            *title += u64::from(row[TITLE]);
        }
    }
    Ok(documents)
}
