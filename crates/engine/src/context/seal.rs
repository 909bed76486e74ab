//! SEAL over a collection: the retrieval that a repair of fixed size asks for.
//!
//! What is missing, what to search for and what replaces what is decided in `assembly`; here is the loop that searches,
//! with the settings of one request, and remembers what micro-queries found.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use cento_assembly::Candidate;
use cento_assembly::Reading;
use cento_assembly::seal::{Budget, Outcome, Passage, Repair, SealConfig};
use cento_assembly::trace::EndpointRecord;
use cento_corpus as corpus;

use crate::context::ahead::Ahead;
use crate::context::candidates::Found;
use crate::context::endpoint::{Consultation, Endpoint};
use crate::context::tokens::BudgetTokenizer;
use crate::error::Result;
use crate::retrieve::request::{ChunkSearch, Links};
use crate::retrieve::scope::Allowed;
use crate::retrieve::search::Timings;
use crate::retrieve::searcher::Searcher;
use crate::source::refs::ChunkRef;

/// Searches with one set of settings, each question once: what a repair asks again, for another budget or number of
/// loops, is answered from memory.
#[derive(Debug)]
pub struct Retrieval<'s> {
    searcher: &'s Searcher,
    settings: ChunkSearch,
    found: RefCell<HashMap<String, Rc<Vec<Candidate>>>>,
    /// Documents that are not found.
    without: Vec<String>,
    /// The chunks that may be found, the same for every question.
    allowed: OnceCell<Allowed>,
    /// The chunks that were found, by id.
    places: RefCell<HashMap<String, ChunkRef>>,
    /// Texts whose terms come along with the next that is asked for.
    texts_ahead: Ahead<String>,
    idf: RefCell<HashMap<String, f64>>,
    /// Terms of short texts: names come again and again.
    terms: RefCell<HashMap<String, Vec<String>>>,
}

/// A repaired context, before it is packed.
#[derive(Debug, Clone)]
pub struct Sealed {
    /// Kept chunks, and how it came to that.
    pub outcome: Outcome,
    /// Chunks seen, by id; the relevance is that to the question itself, 0 where only a micro-query found the chunk.
    pub candidates: Vec<Candidate>,
    /// Searches made, the question's own included; what was remembered is not counted.
    pub n_searches: usize,
    /// A language model's part in it, if one was asked.
    pub endpoint: Option<EndpointRecord>,
}

impl Searcher {
    /// Searches as `settings` say, whose own question does not matter.
    pub fn retrieval(&self, settings: ChunkSearch) -> Retrieval<'_> {
        Retrieval {
            searcher: self,
            settings,
            found: RefCell::default(),
            without: Vec::new(),
            allowed: OnceCell::new(),
            places: RefCell::default(),
            texts_ahead: Ahead::default(),
            idf: RefCell::default(),
            terms: RefCell::default(),
        }
    }
}

impl Retrieval<'_> {
    /// The same, but documents of these ids are not found.
    #[must_use]
    pub fn without(self, documents: Vec<String>) -> Self {
        Self { without: documents, ..self }
    }

    /// Keeps what a question finds within the budget, and repairs it; never chunks, or of documents, whose id is in
    /// `exclude`. `tokenizer` counts where the budget is tokens; otherwise a chunk is as long as the encoder says.
    /// `endpoint` reads and judges beside the patterns.
    ///
    /// # Errors
    ///
    /// Those of a search, and of settings out of their ranges; [`Error::Endpoint`](crate::Error::Endpoint).
    pub fn seal(
        &self,
        question: &str,
        config: &SealConfig,
        exclude: &[String],
        tokenizer: &BudgetTokenizer<'_>,
        endpoint: Option<&Endpoint>,
    ) -> Result<Sealed> {
        let failed = RefCell::new(None);
        let idf = |term: &str| {
            let known = self.idf.borrow().get(term).copied();
            known.unwrap_or_else(|| match self.idf_and_others(term) {
                Ok(idf) => idf,
                Err(error) => {
                    *failed.borrow_mut() = Some(error);
                    0.0
                }
            })
        };
        let terms = |text: &str| self.terms(text);
        let reading = Reading { terms: &terms, idf: &idf, sentences: &corpus::sentences };
        let size = |candidate: &Candidate| match config.budget {
            Budget::Items(_) => candidate.n_tokens as usize,
            Budget::Tokens(_) | Budget::Request => tokenizer.count(&candidate.text) + HEADER_TOKENS,
        };
        let may_be_kept = |found: &&Candidate| !exclude.iter().any(|id| *id == found.id || *id == found.document);
        let cancel = &self.settings.cancel;
        let passages = |found: &[Candidate]| -> Result<Vec<Passage>> {
            let counted = |found| cancel.check().map(|()| passage(found, size(found)));
            found.iter().filter(may_be_kept).map(counted).collect()
        };

        let mut n_searches = 0;
        let first = self.search(question, usize::MAX, &mut n_searches)?;
        let mut seen: BTreeMap<String, Candidate> =
            first.iter().map(|candidate| (candidate.id.clone(), candidate.clone())).collect();
        let mut repair = Repair::new(question, config, passages(&first)?, reading)?;
        let mut consultation = endpoint.map(|endpoint| Consultation::new(endpoint, question, config.calls));
        loop {
            cancel.check()?;
            if let Some(consultation) = &mut consultation {
                consultation.consult(&mut repair)?;
            }
            let queries = repair.next_queries();
            if queries.is_empty() {
                break;
            }
            let mut offers = Vec::with_capacity(queries.len());
            for query in &queries {
                let found = self.search(&query.text, config.candidates, &mut n_searches)?;
                for candidate in found.iter() {
                    let unasked = || Candidate { relevance: 0.0, ..candidate.clone() };
                    seen.entry(candidate.id.clone()).or_insert_with(unasked);
                }
                offers.push(passages(&found)?);
            }
            repair.offer(offers)?;
        }
        let outcome = repair.finish();
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        let endpoint = consultation.map(Consultation::finish);
        Ok(Sealed { outcome, candidates: seen.into_values().collect(), n_searches, endpoint })
    }

    /// The chunks that were found, by id.
    pub(super) fn places(&self) -> HashMap<String, ChunkRef> {
        self.places.borrow().clone()
    }

    /// The worth of a term; those of terms that are asked for next come along.
    fn idf_and_others(&self, term: &str) -> Result<f64> {
        let mut others: BTreeSet<String> = BTreeSet::new();
        for text in self.texts_ahead.take() {
            others.extend(self.searcher.analyzer.terms(&text));
        }
        others.remove(term);
        let others = others.into_iter().filter(|other| !self.idf.borrow().contains_key(other)).take(TERMS_TOGETHER);
        let terms: Vec<String> = std::iter::once(term.to_owned()).chain(others).collect();
        let idfs = self.searcher.idfs(&terms)?;
        for (term, idf) in terms.iter().zip(&idfs) {
            remember(&self.idf, term, *idf, TERMS_MAX);
        }
        Ok(idfs[0])
    }

    fn terms(&self, text: &str) -> Vec<String> {
        if text.len() > SHORT_BYTES {
            return self.searcher.analyzer.terms(text);
        }
        if let Some(terms) = self.terms.borrow().get(text) {
            return terms.clone();
        }
        let terms = self.searcher.analyzer.terms(text);
        remember(&self.terms, text, terms.clone(), TERMS_MAX);
        terms
    }

    /// The best `depth` candidates of a query.
    fn search(&self, query: &str, depth: usize, n_searches: &mut usize) -> Result<Rc<Vec<Candidate>>> {
        let key = format!("{depth} {query}");
        if let Some(found) = self.found.borrow().get(&key) {
            return Ok(Rc::clone(found));
        }
        *n_searches += 1;
        // A micro-query asks for one thing: what its best name is none of it, and it has its words. The question itself
        // takes all candidates.
        let rerank = self.settings.rerank.clone().filter(|_| depth == usize::MAX);
        let required = Some(self.searcher.required(&self.settings).phrases);
        let query = query.to_owned();
        let request = ChunkSearch { query, required, rerank, links: Links::None, ..self.settings.clone() };
        let allowed = match self.allowed.get() {
            Some(allowed) => allowed,
            None => {
                let allowed = self.searcher.allowed(&request)?;
                self.allowed.get_or_init(|| allowed)
            }
        };
        let n = if request.rerank.is_none() { depth } else { usize::MAX };
        let mut ranking = self.searcher.rank_within(&request, allowed.scope.as_ref(), n, &mut Timings::default())?;
        self.searcher.rerank(&request, &mut ranking, &mut Timings::default())?;
        let best: Vec<Found> = ranking.fused.into_iter().map(Found::from).collect();
        let mut found = self.searcher.candidates(best, &mut self.places.borrow_mut())?;
        found.retain(|candidate| !self.without.contains(&candidate.document));
        if self.searcher.source.is_far() {
            self.texts_ahead.add(std::iter::once(request.query).chain(found.iter().map(|found| found.text.clone())));
        }
        let found = Rc::new(found);
        remember(&self.found, &key, Rc::clone(&found), QUERIES_MAX);
        Ok(found)
    }
}

fn passage(candidate: &Candidate, n_tokens: usize) -> Passage {
    Passage {
        id: candidate.id.clone(),
        document: candidate.document.clone(),
        title: candidate.title.clone(),
        text: candidate.text.clone(),
        n_tokens,
        relevance: candidate.relevance,
    }
}

/// Keeps a value; a memory that is full forgets all.
fn remember<T>(memory: &RefCell<HashMap<String, T>>, key: &str, value: T, most: usize) {
    let mut memory = memory.borrow_mut();
    if memory.len() >= most {
        memory.clear();
    }
    memory.insert(key.to_owned(), value);
}

/// Tokens of a header, about; the packing counts it, and drops what was kept last if it takes more.
const HEADER_TOKENS: usize = 24;
/// Some 20 chunks each.
const QUERIES_MAX: usize = 1_024;
const TERMS_MAX: usize = 100_000;
/// Terms that are looked up together, at most.
const TERMS_TOGETHER: usize = 50_000;
const SHORT_BYTES: usize = 64;
