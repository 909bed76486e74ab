//! Context: the candidates of a query, with what assembly needs to know of each, and the assembled answer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use cento_assembly::policy::normalize_label;
use cento_assembly::{self as assembly, Candidate, Citation, Context, Format, Policy, Request, Strategy};
use cento_corpus as corpus;

use crate::error::Result;
use crate::retrieve::{ChunkKey, SearchRequest, Timings};
use crate::searcher::Searcher;
use crate::segment::{DocumentRecord, Segment};
use crate::tokens::BudgetTokenizer;

/// What a context must keep to, and how it is chosen and written.
#[derive(Debug, Clone, Copy)]
pub struct ContextRequest<'a> {
    /// Tokens the delivered context may have, everything in it counted.
    pub budget_tokens: usize,
    /// Whose tokens.
    pub tokenizer: &'a BudgetTokenizer<'a>,
    /// How candidates are chosen.
    pub strategy: Strategy,
    /// Priors, gates and limits.
    pub policy: &'a Policy,
    /// How the context is written.
    pub format: Format,
}

/// Where the time of one context went.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContextTimings {
    /// Up to the fused candidates.
    pub search: Timings,
    /// Selecting and packing, budget tokens counted.
    pub assemble: Duration,
}

impl Searcher {
    /// The context that answers a question within its budget, cited to the byte, with the trace of every candidate.
    /// Of the search, `k` and `min_score` do not apply.
    pub fn context(&self, search: &SearchRequest, request: &ContextRequest<'_>) -> Result<Context> {
        self.context_timed(search, request).map(|(context, _)| context)
    }

    /// The context, and where the time went.
    pub fn context_timed(
        &self,
        search: &SearchRequest,
        request: &ContextRequest<'_>,
    ) -> Result<(Context, ContextTimings)> {
        let mut timings = ContextTimings::default();
        let pool = self.pool_timed(search, &mut timings.search)?;
        let start = Instant::now();
        let context = pool.context(request)?;
        timings.assemble = start.elapsed();
        Ok((context, timings))
    }

    /// What a query found, from which contexts of any budget and strategy can be assembled.
    pub fn pool(&self, search: &SearchRequest) -> Result<Pool<'_>> {
        self.pool_timed(search, &mut Timings::default())
    }

    fn pool_timed(&self, search: &SearchRequest, timings: &mut Timings) -> Result<Pool<'_>> {
        let ranking = self.rank(search, timings)?;
        let start = Instant::now();
        let keys: Vec<_> = ranking.fused.into_iter().map(|fused| (fused.id, fused.score)).collect();
        let places = keys.iter().map(|(key, _)| (key.id.clone(), (key.segment, key.row))).collect();
        let (query, candidates) = (search.query.clone(), self.candidates(keys)?);
        let pool = Pool { searcher: self, query, candidates, places, counts: RefCell::default() };
        timings.texts = start.elapsed();
        Ok(pool)
    }

    /// What assembly needs to know of each chunk; texts are read in the order they lie in.
    pub(crate) fn candidates(&self, mut keys: Vec<(ChunkKey, f64)>) -> Result<Vec<Candidate>> {
        keys.sort_unstable_by_key(|(key, _)| (key.segment, key.row));
        let mut documents: HashMap<(usize, u32), DocumentFacts> = HashMap::new();
        let mut texts: Vec<_> = self.snapshot.segments.iter().map(|segment| segment.texts.reader()).collect();
        let mut candidates = Vec::with_capacity(keys.len());
        for (key, relevance) in keys {
            let segment = &self.snapshot.segments[key.segment];
            let chunk = segment.chunks.record(key.row as usize)?;
            let facts = match documents.entry((key.segment, chunk.document)) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(DocumentFacts::read(segment, chunk.document)?)
                }
            };
            let path = heading_path(segment, &facts.record, chunk.section)?;
            let heading = section_heading(&path, &facts.title);
            candidates.push(Candidate {
                id: key.id,
                document: facts.id.clone(),
                title: facts.title.clone(),
                index: chunk.index,
                section: format!("{}\u{1f}{heading}", facts.id),
                label: normalize_label(heading),
                path,
                span: chunk.start..chunk.end,
                source: facts.record.text_kind(),
                anchor: chunk.anchor(),
                text: texts[key.segment].read(facts.record.text(chunk.start..chunk.end))?,
                n_tokens: chunk.n_tokens,
                relevance,
            });
        }
        Ok(candidates)
    }
}

/// The candidates of one query.
#[derive(Debug)]
pub struct Pool<'s> {
    searcher: &'s Searcher,
    query: String,
    candidates: Vec<Candidate>,
    /// Segment and row of each candidate, by id.
    places: HashMap<String, (usize, u32)>,
    counts: RefCell<Counts>,
}

/// Tokens of the texts that one tokenizer has counted: contexts of several budgets count the same ones.
#[derive(Debug, Default)]
struct Counts {
    tokenizer: String,
    of_text: HashMap<Box<str>, usize>,
}

impl Pool<'_> {
    /// Assembles a context.
    pub fn context(&self, request: &ContextRequest<'_>) -> Result<Context> {
        Ok(assembly::assemble(&Request {
            query: &self.query,
            candidates: &self.candidates,
            budget_tokens: request.budget_tokens,
            policy: request.policy,
            strategy: request.strategy,
            format: request.format,
            count: &|text| self.count(request.tokenizer, text),
            tokenizer: request.tokenizer.name(),
            sentences: &corpus::sentences,
            terms: &|text| self.searcher.analyzer.terms(text),
        })?)
    }

    fn count(&self, tokenizer: &BudgetTokenizer<'_>, text: &str) -> usize {
        let mut counts = self.counts.borrow_mut();
        if counts.tokenizer != tokenizer.name() {
            *counts = Counts { tokenizer: tokenizer.name().to_owned(), of_text: HashMap::new() };
        }
        match counts.of_text.get(text) {
            Some(count) => *count,
            None => *counts.of_text.entry(text.into()).or_insert_with(|| tokenizer.count(text)),
        }
    }

    /// Takes the chunks of a document from the candidates.
    pub fn remove_document(&mut self, document: &str) {
        self.candidates.retain(|candidate| candidate.document != document);
    }

    /// The bytes that a citation of one of this pool's contexts names.
    pub fn text(&self, citation: &Citation) -> Result<String> {
        let (segment, row) = self.place(&citation.chunks[0]);
        let segment = &self.searcher.snapshot.segments[segment];
        let record = segment.document(segment.chunks.record(row as usize)?.document)?;
        segment.text(&record, citation.span.clone())
    }

    /// The vector of a candidate, of unit length; the plain one where the collection has both kinds.
    pub fn vector(&self, chunk: &str) -> Result<Vec<f32>> {
        let (segment, row) = self.place(chunk);
        Ok(self.searcher.snapshot.segments[segment].columns[0].rows.row(row)?.into_owned())
    }

    fn place(&self, chunk: &str) -> (usize, u32) {
        *self.places.get(chunk).unwrap_or_else(|| panic!("{chunk} is not a candidate of this query"))
    }
}

/// What every candidate of a document shares.
struct DocumentFacts {
    record: DocumentRecord,
    id: String,
    title: String,
}

impl DocumentFacts {
    fn read(segment: &Segment, document: u32) -> Result<Self> {
        let record = segment.document(document)?;
        let (id, title) =
            (segment.documents.text(record.id)?.to_owned(), segment.documents.text(record.title)?.to_owned());
        Ok(Self { record, id, title })
    }
}

/// Headings above a section, outermost first, its own last.
pub(crate) fn heading_path(segment: &Segment, document: &DocumentRecord, section: u32) -> Result<Vec<String>> {
    let mut path = Vec::new();
    let mut next = Some(section).filter(|&section| section < document.n_sections);
    while let Some(number) = next {
        let section = segment.section(document, number)?;
        let heading = segment.sections.text(section.heading)?;
        if !heading.is_empty() {
            path.push(heading.to_owned());
        }
        next = section.parent().filter(|&parent| parent < number); // parents come first: the walk ends
    }
    path.reverse();
    Ok(path)
}

/// The top heading below the document's title; the title itself where there is none.
fn section_heading<'p>(path: &'p [String], title: &'p str) -> &'p str {
    match path {
        [first, second, ..] if first == title => second,
        [first, ..] => first,
        [] => title,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_is_the_top_heading_below_the_title() {
        let path = |headings: &[&str]| headings.iter().map(|heading| (*heading).to_owned()).collect::<Vec<_>>();
        assert_eq!(section_heading(&path(&["Guide", "Install", "Linux"]), "Guide"), "Install");
        assert_eq!(section_heading(&path(&["Guide"]), "Guide"), "Guide");
        assert_eq!(section_heading(&path(&["Part"]), "Guide"), "Part");
        assert_eq!(section_heading(&[], "Guide"), "Guide");
    }
}
