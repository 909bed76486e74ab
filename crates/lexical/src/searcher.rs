//! A query against the live rows of a whole collection: every unit that has one of its terms, with its score.
//!
//! A query is a list of terms. One that repeats counts as often as it repeats. Contributions are added in the order of
//! the first appearance of their terms, so a score is the same to the last bit however the rows are divided among
//! parts.
//! Cost: linear in the postings of the terms, plus the units of each part once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use roaring::RoaringBitmap;
use tantivy::Term;
use tantivy::index::InvertedIndexReader;
use tantivy::schema::IndexRecordOption;

use crate::bm25::{Bm25, idf};
use crate::schema::{HEADER, TEXT, TITLE};
use crate::scored::{Best, Scored};
use crate::segment::guard::guarded;
use crate::segment::{Part, Unit};
use crate::statistics::{Statistics, Totals, UnitLengths, combined};
use crate::{Error, Result};

/// Says whether to stop, as the answer is not wanted any more; once it has said so, it always does.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// The answer is wanted, however long it takes.
const NEVER: Stop<'static> = &|| false;

/// Scored units of each part, and the statistics that the scores are under.
pub type Found = (Vec<Vec<Scored>>, Statistics);

/// The postings of a term that are read.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// All, block by block, unless it is said to stop.
    All(Stop<'a>),
    /// Those of these rows, which ascend: what lies between them is passed over.
    Rows(&'a [u32]),
}

/// Scores queries over a snapshot.
pub struct Searcher<'a> {
    pub(crate) scopes: Vec<Scope<'a>>,
    pub(crate) unit: Unit,
    pub(crate) bm25: Bm25,
    pub(crate) totals: Totals,
    /// Worth of the second field: the header's weight, 1 for a title.
    pub(crate) beside_weight: f64,
    stop: Stop<'a>,
}

/// A part with what scoring needs of it.
pub(crate) struct Scope<'a> {
    part: Part<'a>,
    pub(crate) lengths: UnitLengths,
    pub(crate) n_units: u32,
    /// Text, and the field beside it.
    inverted: [Arc<InvertedIndexReader>; 2],
    /// Documents with an allowed row, where documents are ranked under a filter.
    allowed_documents: Option<RoaringBitmap>,
}

impl std::fmt::Debug for Searcher<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { scopes, unit, bm25, totals, beside_weight: _, stop: _ } = self;
        let mut shown = f.debug_struct("Searcher");
        shown.field("scopes", scopes).field("unit", unit).field("bm25", bm25).field("totals", totals);
        shown.finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("part", &self.part).field("n_units", &self.n_units).finish_non_exhaustive()
    }
}

/// Occurrences of a term in a unit, over both fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frequency {
    pub(crate) unit: u32,
    pub(crate) tf: f64,
}

/// A term of the query.
#[derive(Debug)]
pub(crate) struct QueryTerm {
    pub(crate) text: String,
    /// Occurrences in the query.
    pub(crate) n_occurrences: u32,
}

impl<'a> Searcher<'a> {
    /// Reads the statistics of the live rows of all parts.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for parameters out of range, [`Error::Part`] for rows that do not fit their segment,
    /// [`Error::Analyzer`] for parts analysed differently, and what keeps a segment from being read.
    pub fn new(parts: Vec<Part<'a>>, unit: Unit, bm25: Bm25) -> Result<Self> {
        guarded(|| Self::new_unguarded(parts, unit, bm25))
    }

    fn new_unguarded(parts: Vec<Part<'a>>, unit: Unit, bm25: Bm25) -> Result<Self> {
        bm25.check()?;
        check_analyzers(&parts)?;
        let mut totals = Totals::default();
        let mut scopes = Vec::with_capacity(parts.len());
        for (at, part) in parts.into_iter().enumerate() {
            check_rows(&part, at, unit)?;
            let (lengths, of_part) = UnitLengths::open(&part, at, unit)?;
            totals.add(of_part);
            scopes.push(Scope {
                n_units: lengths.n_units(&part),
                lengths,
                inverted: [part.segment.inverted(TEXT)?, part.segment.inverted(beside(unit))?],
                allowed_documents: (unit == Unit::Document).then(|| allowed_documents(&part)).flatten(),
                part,
            });
        }
        let beside_weight = match unit {
            Unit::Row => bm25.header_weight,
            Unit::Document => 1.0,
        };
        Ok(Self { scopes, unit, bm25, totals, beside_weight, stop: NEVER })
    }

    /// The same, but whatever reads postings looks before every block of them whether to stop, and ends with
    /// [`Error::Cancelled`].
    #[must_use]
    pub fn unless(self, stop: Stop<'a>) -> Self {
        Self { stop, ..self }
    }

    /// Scores every unit that has a term of the query: for each part, by ascending unit. A query without terms finds
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Corrupt`] if a segment cannot be read.
    pub fn score(&self, query: &str) -> Result<Vec<Vec<Scored>>> {
        Ok(guarded(|| self.found(query, None, None))?.0)
    }

    /// Scores as [`Searcher::score`] does in a collection that has these statistics, of which the parts are some.
    ///
    /// # Errors
    ///
    /// [`Error::Statistics`] where they lack a term of the query, and those of [`Searcher::score`].
    pub fn score_under(&self, query: &str, statistics: &Statistics) -> Result<Vec<Vec<Scored>>> {
        Ok(guarded(|| self.found(query, Some(statistics), None))?.0)
    }

    /// Of what [`Searcher::score`] finds, or [`Searcher::score_under`] where statistics are given, the `depth` best of
    /// all parts and whatever scores as the last of them; with the statistics of the query's terms.
    ///
    /// # Errors
    ///
    /// Those of [`Searcher::score_under`].
    pub fn best(&self, query: &str, statistics: Option<&Statistics>, depth: usize) -> Result<Found> {
        guarded(|| self.found(query, statistics, Some(depth)))
    }

    /// Without given statistics the postings are read once: their number is the document frequency.
    fn found(&self, query: &str, given: Option<&Statistics>, depth: Option<usize>) -> Result<Found> {
        let totals = given.map_or(self.totals, |given| given.totals);
        let average_length = totals.average_length(self.beside_weight);
        let mut scores: Vec<Vec<f64>> = self.scopes.iter().map(|scope| vec![0.0; scope.n_units as usize]).collect();
        let mut frequencies: Vec<Vec<Frequency>> = vec![Vec::new(); self.scopes.len()];
        let mut postings = Postings::default();
        let mut statistics = Statistics { totals, df: BTreeMap::new() };
        for term in self.query_terms(query) {
            let own = self.frequencies(&term, None, &mut postings, &mut frequencies)?;
            let df = given.map_or(Ok(own), |given| given.df(&term.text))?;
            let weight = term.weight(totals.n, df);
            for ((scope, scores), frequencies) in self.scopes.iter().zip(&mut scores).zip(&frequencies) {
                for &Frequency { unit, tf } in frequencies {
                    let length = scope.lengths.length(unit, self.beside_weight);
                    scores[unit as usize] += weight * self.bm25.saturation(tf, length, average_length);
                }
            }
            statistics.df.insert(term.text, df);
        }
        let Some(depth) = depth else {
            let mut found = vec![Vec::new(); self.scopes.len()];
            for ((scope, scores), found) in self.scopes.iter().zip(&scores).zip(&mut found) {
                scope.each_scored(scores, |scored| found.push(scored));
            }
            return Ok((found, statistics));
        };
        let mut best = Best::new(depth);
        for (part, (scope, scores)) in self.scopes.iter().zip(&scores).enumerate() {
            scope.each_scored(scores, |scored| best.push(part, scored));
        }
        Ok((best.into_parts(self.scopes.len()), statistics))
    }

    /// The totals of the parts, and how many of their live units have each of some terms.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Corrupt`] if a segment cannot be read.
    pub fn statistics(&self, terms: &[String]) -> Result<Statistics> {
        guarded(|| self.statistics_unguarded(terms))
    }

    fn statistics_unguarded(&self, terms: &[String]) -> Result<Statistics> {
        let mut statistics = Statistics { totals: self.totals, df: BTreeMap::new() };
        let mut frequencies: Vec<Vec<Frequency>> = vec![Vec::new(); self.scopes.len()];
        let mut postings = Postings::default();
        for text in terms {
            let term = QueryTerm { text: text.clone(), n_occurrences: 1 };
            let df = self.frequencies(&term, None, &mut postings, &mut frequencies)?;
            statistics.df.insert(term.text, df);
        }
        Ok(statistics)
    }

    /// Distinct terms of a query in the order of their first appearance.
    pub(crate) fn query_terms(&self, query: &str) -> Vec<QueryTerm> {
        let Some(scope) = self.scopes.first() else { return Vec::new() };
        let mut terms: Vec<QueryTerm> = Vec::new();
        let mut positions: HashMap<String, usize> = HashMap::new();
        for text in scope.part.segment.analyzer().terms(query) {
            match positions.get(&text) {
                Some(&at) => terms[at].n_occurrences += 1,
                None => {
                    positions.insert(text.clone(), terms.len());
                    terms.push(QueryTerm { text, n_occurrences: 1 });
                }
            }
        }
        terms
    }

    /// Fills in the frequencies of a term, a list for each part, and counts the units that have it: all of them, or
    /// those with some rows of each part, which ascend.
    pub(crate) fn frequencies(
        &self,
        term: &QueryTerm,
        rows: Option<&[Vec<u32>]>,
        postings: &mut Postings,
        frequencies: &mut [Vec<Frequency>],
    ) -> Result<u64> {
        let mut df = 0;
        for (part, (scope, frequencies)) in self.scopes.iter().zip(frequencies).enumerate() {
            let wanted = rows.map_or(Wanted::All(self.stop), |rows| Wanted::Rows(&rows[part]));
            scope.frequencies(term, self, wanted, postings, frequencies)?;
            df += frequencies.len() as u64;
        }
        Ok(df)
    }
}

/// The live rows of some parts, and how many of them have each term in their text; lengths are not read and left 0.
/// Reads dictionaries; postings only of segments with deleted rows.
///
/// # Errors
///
/// [`Error::Io`], [`Error::Corrupt`] if a segment cannot be read.
pub fn text_statistics(parts: &[Part<'_>], terms: &[String]) -> Result<Statistics> {
    guarded(|| text_statistics_unguarded(parts, terms))
}

fn text_statistics_unguarded(parts: &[Part<'_>], terms: &[String]) -> Result<Statistics> {
    let df = terms.iter().map(|term| (term.clone(), 0)).collect();
    let mut statistics = Statistics { totals: Totals::default(), df };
    let mut list = Vec::new();
    for part in parts {
        let inverted = part.segment.inverted(TEXT)?;
        statistics.totals.n += part.live.map_or(u64::from(part.segment.n_rows()), RoaringBitmap::len);
        for (term, df) in &mut statistics.df {
            *df += if part.live.is_some() {
                read(part, &inverted, TEXT, term, Unit::Row, &mut list, Wanted::All(NEVER))?;
                list.len() as u64
            } else {
                u64::from(inverted.doc_freq(&Term::from_field_text(part.segment.field(TEXT), term))?)
            };
        }
    }
    Ok(statistics)
}

/// The live units of a part whose text has every one of some terms; none where there are no terms, which all have.
///
/// # Errors
///
/// [`Error::Io`], [`Error::Corrupt`] if a segment cannot be read.
pub fn units_with(part: &Part<'_>, unit: Unit, terms: &[String], stop: Stop<'_>) -> Result<Option<RoaringBitmap>> {
    guarded(|| units_with_unguarded(part, unit, terms, stop))
}

fn units_with_unguarded(
    part: &Part<'_>,
    unit: Unit,
    terms: &[String],
    stop: Stop<'_>,
) -> Result<Option<RoaringBitmap>> {
    let inverted = part.segment.inverted(TEXT)?;
    let (mut units, mut list): (Option<RoaringBitmap>, _) = (None, Vec::new());
    for term in terms {
        read(part, &inverted, TEXT, term, unit, &mut list, Wanted::All(stop))?;
        let of_term = RoaringBitmap::from_iter(list.iter().map(|(unit, _)| *unit));
        units = Some(match units {
            Some(units) => units & of_term,
            None => of_term,
        });
    }
    Ok(units)
}

impl QueryTerm {
    /// What the term contributes at full saturation, where `df` of `n` units have it.
    pub(crate) fn weight(&self, n: u64, df: u64) -> f64 {
        f64::from(self.n_occurrences) * idf(n, df)
    }
}

/// The field that counts beside the text.
fn beside(unit: Unit) -> usize {
    match unit {
        Unit::Row => HEADER,
        Unit::Document => TITLE,
    }
}

/// The query is analysed once, so all parts must agree on how.
fn check_analyzers(parts: &[Part<'_>]) -> Result<()> {
    let mut fingerprints = parts.iter().map(|part| part.segment.analyzer().fingerprint());
    let Some(requested) = fingerprints.next() else { return Ok(()) };
    match fingerprints.find(|fingerprint| *fingerprint != requested) {
        Some(indexed) => Err(Error::Analyzer { indexed, requested }),
        None => Ok(()),
    }
}

fn check_rows(part: &Part<'_>, at: usize, unit: Unit) -> Result<()> {
    let n_rows = part.segment.n_rows();
    for (what, rows) in [("live", part.live), ("allowed", part.allowed)] {
        if let Some(row) = rows.and_then(RoaringBitmap::max).filter(|&row| row >= n_rows) {
            return Err(Error::Part { part: at, reason: format!("row {row} is {what}, but it has {n_rows} rows") });
        }
    }
    let n_listed = part.document_of_row.len();
    if unit == Unit::Document && n_listed != n_rows as usize {
        let reason = format!("the documents of {n_listed} rows are listed, but it has {n_rows} rows");
        return Err(Error::Part { part: at, reason });
    }
    Ok(())
}

/// Documents with an allowed live row; `None` if every row is allowed.
fn allowed_documents(part: &Part<'_>) -> Option<RoaringBitmap> {
    let allowed = part.allowed?;
    let is_live = |row: &u32| part.live.is_none_or(|live| live.contains(*row));
    Some(allowed.iter().filter(is_live).map(|row| part.document_of_row[row as usize]).collect())
}

impl Scope<'_> {
    /// Hands over the units with a score that may be results, by ascending unit.
    fn each_scored(&self, scores: &[f64], mut found: impl FnMut(Scored)) {
        let look = |unit: u32| {
            let score = scores[unit as usize];
            if score > 0.0 {
                found(Scored { unit, score });
            }
        };
        match self.allowed_documents.as_ref().or(self.part.allowed) {
            Some(allowed) => allowed.iter().for_each(look),
            None => (0..self.n_units).for_each(look),
        }
    }

    /// The rows of these units, ascending, each once.
    pub(crate) fn rows_of(&self, units: impl Iterator<Item = u32>) -> Vec<u32> {
        let rows = |unit: u32| match &self.lengths {
            UnitLengths::Rows(_) => unit..unit + 1,
            UnitLengths::Documents(_) => {
                let of_row = self.part.document_of_row;
                let start = of_row.partition_point(|document| *document < unit);
                start as u32..(start + of_row[start..].partition_point(|document| *document == unit)) as u32
            }
        };
        let mut all: Vec<u32> = units.flat_map(rows).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// True if the unit exists and has a live row.
    pub(crate) fn is_live(&self, unit: u32) -> bool {
        match &self.lengths {
            UnitLengths::Rows(_) => unit < self.n_units && self.part.live.is_none_or(|live| live.contains(unit)),
            UnitLengths::Documents(documents) => documents.get(unit as usize).is_some_and(Option::is_some),
        }
    }

    /// Replaces `frequencies` by those of a term in the live units that are wanted, by ascending unit; none is 0.
    fn frequencies(
        &self,
        term: &QueryTerm,
        &Searcher { unit, beside_weight, .. }: &Searcher<'_>,
        wanted: Wanted<'_>,
        postings: &mut Postings,
        frequencies: &mut Vec<Frequency>,
    ) -> Result<()> {
        frequencies.clear();
        let Postings { text, beside: other } = postings;
        read(&self.part, &self.inverted[0], TEXT, &term.text, unit, text, wanted)?;
        read(&self.part, &self.inverted[1], beside(unit), &term.text, unit, other, wanted)?;
        let mut other = other.iter().copied().peekable();
        let mut push = |unit, text, beside| {
            let tf = combined(text, beside, beside_weight);
            if tf > 0.0 {
                frequencies.push(Frequency { unit, tf });
            }
        };
        for &(unit, text) in text.iter() {
            while let Some((before, beside)) = other.next_if(|&(other, _)| other < unit) {
                push(before, 0, beside);
            }
            let beside = other.next_if(|&(other, _)| other == unit).map_or(0, |(_, beside)| beside);
            push(unit, text, beside);
        }
        other.for_each(|(unit, beside)| push(unit, 0, beside));
        Ok(())
    }
}

/// Replaces `list` by the frequencies of a term in one field of the live units that are wanted, by ascending unit.
fn read(
    part: &Part<'_>,
    inverted: &InvertedIndexReader,
    field: usize,
    term: &str,
    unit: Unit,
    list: &mut Vec<(u32, u64)>,
    wanted: Wanted<'_>,
) -> Result<()> {
    list.clear();
    let term = Term::from_field_text(part.segment.field(field), term);
    let Some(mut block) = inverted.read_block_postings(&term, IndexRecordOption::WithFreqs)? else {
        return Ok(());
    };
    let mut take = |row: u32, frequency: u32| {
        if part.live.is_some_and(|live| !live.contains(row)) {
            return;
        }
        let unit = match unit {
            Unit::Row => row,
            Unit::Document => part.document_of_row[row as usize],
        };
        match list.last_mut() {
            Some((last, sum)) if *last == unit => *sum += u64::from(frequency),
            _ => list.push((unit, u64::from(frequency))),
        }
    };
    let stop = match wanted {
        Wanted::All(stop) => stop,
        Wanted::Rows(rows) => {
            for &row in rows {
                let at = block.seek(row);
                if block.doc(at) == row {
                    take(row, block.freq(at));
                }
            }
            return Ok(());
        }
    };
    let n_rows = part.segment.n_rows();
    while let Some(&last) = block.docs().last() {
        if stop() {
            return Err(Error::Cancelled);
        }
        if last >= n_rows {
            let reason = format!("a posting is of row {last}, but there are {n_rows} rows");
            return Err(Error::Corrupt { name: "postings".to_owned(), reason });
        }
        block.docs().iter().zip(block.freqs()).for_each(|(&row, &frequency)| take(row, frequency));
        block.advance();
    }
    Ok(())
}

/// Buffers for the postings of one term, kept from term to term.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    text: Vec<(u32, u64)>,
    beside: Vec<(u32, u64)>,
}
