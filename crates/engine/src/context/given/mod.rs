//! Given: a context of candidates that another engine found, without a collection.
//!
//! What a collection knows is taken from the candidates themselves: where they stand beside each other from their
//! places, how rare a word is from their texts, how alike two of them are from their vectors, or else from their words.
//! Scores become likelihoods as those of a collection do (`cento_assembly`, shares of the evidence): by their
//! deviations from the median of all that were found, so that scale and offset do not matter and no constant is ours
//! to choose. Without a collection's calibration nothing says if the best candidate is any good.
//! Cost: one pass over the texts, and their analysis where a strategy asks how rare a word is.

mod candidate;
mod claims;
mod layout;
mod neighbors;
mod sections;
#[cfg(test)]
mod tests;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use cento_assembly::policy::{OTHER_SECTIONS, SecondSearch, normalize_label};
use cento_assembly::{
    self as assembly, Anchor, Candidate, Citation, Context, Curve, Marks, Reading, Request, Strategy,
};
use cento_corpus as corpus;
use cento_lexical::{Analyzer, Language};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::layout::{Laid, Unit};
use crate::cancel::Cancel;
use crate::context::request::ContextSettings;
use crate::context::tokens::BudgetTokenizer;
use crate::error::{Error, Result};
use crate::limits::{self, BUDGET_TOKENS_MAX};
use crate::source::chunks::section_heading;

pub use self::candidate::GivenCandidate;

/// The candidates of one question, laid out along their documents.
#[derive(Debug)]
pub struct Given<'g> {
    query: &'g str,
    given: &'g [GivenCandidate],
    laid: Vec<Laid>,
    candidates: Vec<Candidate>,
    /// By id the place in `candidates`.
    places: HashMap<String, usize>,
    /// Of unit length, by given candidate; empty where none were given.
    vectors: Vec<Vec<f32>>,
    analyzer: Analyzer,
    /// Candidates that have a term.
    frequencies: OnceCell<HashMap<String, u64>>,
    counts: RefCell<HashMap<Box<str>, usize>>,
    cancel: Cancel,
}

/// A passage of a citation: bytes of one candidate's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GivenPassage {
    /// The number of the candidate in the request, from 0.
    pub candidate: usize,
    /// Bytes of its text.
    pub span: Range<usize>,
    /// The same in the document, in bytes or characters as the candidate's own place was given; none where it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_document: Option<Range<u64>>,
}

/// A chunk of a trace, and the candidate whose text it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenChunk {
    /// The id that the trace's records have.
    pub id: String,
    /// The number of the candidate in the request, from 0.
    pub candidate: usize,
    /// Bytes of its text.
    pub span: Range<usize>,
}

impl<'g> Given<'g> {
    /// Lays candidates out along their documents. Their order does not matter.
    ///
    /// # Errors
    /// [`Error::Setting`] with the number of a candidate that is not as it must be, or that contradicts another.
    pub fn new(query: &'g str, given: &'g [GivenCandidate], language: Language, cancel: &Cancel) -> Result<Self> {
        if query.trim().is_empty() {
            return Err(Error::EmptyQuery);
        }
        candidate::check(given)?;
        let vectors = candidate::vectors(given)?;
        let laid = layout::lay_out(given, cancel)?;
        let candidates: Vec<Candidate> = laid.iter().map(|laid| laid.candidate(&given[laid.given])).collect();
        let places = candidates.iter().enumerate().map(|(at, candidate)| (candidate.id.clone(), at)).collect();
        let analyzer = Analyzer::new(language);
        let (frequencies, counts, cancel) = (OnceCell::new(), RefCell::default(), cancel.clone());
        Ok(Self { query, given, laid, candidates, places, vectors, analyzer, frequencies, counts, cancel })
    }

    /// Assembles a context.
    ///
    /// # Errors
    /// [`Error::Setting`] for a strategy that looks at what was not given; those of [`assembly::assemble`].
    pub fn context(&self, settings: &ContextSettings<'_>) -> Result<Context> {
        let mut warnings = neighbors::check(self.given, settings.strategy)?;
        let mut context = self.ask(settings, assembly::assemble)?;
        warnings.extend(self.unused(settings));
        context.trace.warnings.extend(warnings);
        Ok(context)
    }

    /// The worth of contexts of every budget up to the settings', solved at `n_solved` of them.
    ///
    /// # Errors
    /// Those of [`Given::context`]; only the strategy `cento` has a curve.
    pub fn budget_curve(&self, settings: &ContextSettings<'_>, n_solved: usize) -> Result<Curve> {
        neighbors::check(self.given, settings.strategy)?;
        self.ask(settings, |request| assembly::budget_curve(request, n_solved))
    }

    /// The passages that a citation of one of these contexts is made of, in its order.
    #[must_use]
    pub fn passages(&self, citation: &Citation) -> Vec<GivenPassage> {
        let laid = citation.chunks.iter().filter_map(|id| self.places.get(id)).map(|&at| &self.laid[at]);
        laid.filter_map(|laid| laid.passage(&self.given[laid.given], &citation.span)).collect()
    }

    /// The chunks that the candidates became, by id.
    #[must_use]
    pub fn chunks(&self) -> Vec<GivenChunk> {
        let chunk = |(laid, candidate): (&Laid, &Candidate)| GivenChunk {
            id: candidate.id.clone(),
            candidate: laid.given,
            span: laid.part.clone(),
        };
        self.laid.iter().zip(&self.candidates).map(chunk).collect()
    }

    /// The texts among which the rarity of a word is counted: those of the candidates, what they share once.
    #[must_use]
    pub fn n_texts(&self) -> usize {
        self.candidates.len()
    }

    /// True if candidates are compared by vectors too, not by their words alone.
    #[must_use]
    pub fn has_vectors(&self) -> bool {
        !self.vectors.is_empty()
    }

    fn ask<T>(
        &self,
        settings: &ContextSettings<'_>,
        answer: impl Fn(&Request<'_>) -> assembly::Result<T>,
    ) -> Result<T> {
        self.cancel.check()?;
        limits::within("budget", settings.budget_tokens, 0, BUDGET_TOKENS_MAX)?;
        let count = |text: &str| self.count(settings.tokenizer, text);
        let counted = |candidate: &Candidate| Candidate {
            n_tokens: u32::try_from(count(&candidate.text)).unwrap_or(u32::MAX),
            ..candidate.clone()
        };
        let candidates: Vec<Candidate> = self.candidates.iter().map(counted).collect();
        let include = self.chunks_of("include", settings.include)?;
        self.chunks_of("exclude", settings.exclude)?; // an id that is none would leave out nothing
        let exclude: Vec<&str> = settings.exclude.iter().map(String::as_str).collect();
        let cosine = |a: &str, b: &str| self.cosine(a, b);
        let answered = answer(&Request {
            query: self.query,
            further: &[],
            candidates: &candidates,
            kept: &[],
            include: &include,
            exclude: &exclude,
            evidence: None,
            budget_tokens: settings.budget_tokens,
            policy: settings.policy,
            strategy: settings.strategy,
            format: settings.format,
            order: settings.order,
            marks: settings.marks,
            count: &count,
            tokenizer: settings.tokenizer.name(),
            reading: Reading {
                terms: &|text| self.analyzer.terms(text),
                idf: &|term| self.idf(term),
                sentences: &corpus::sentences,
            },
            cosine: self.has_vectors().then_some(&cosine),
            stop: &|| self.cancel.is_cancelled(),
        });
        Ok(answered?)
    }

    /// The chunks that ids name, of documents all of theirs.
    fn chunks_of(&self, setting: &'static str, ids: &[String]) -> Result<Vec<&str>> {
        let mut chunks = Vec::new();
        for id in ids {
            let n_before = chunks.len();
            match self.places.get(id) {
                Some(&at) => chunks.push(self.candidates[at].id.as_str()),
                None => {
                    let of_document = self.candidates.iter().filter(|candidate| candidate.document == *id);
                    chunks.extend(of_document.map(|candidate| candidate.id.as_str()));
                }
            }
            if chunks.len() == n_before {
                let reason = "is no document of the candidates, and no chunk that they became".to_owned();
                return Err(Error::Setting { setting, value: id.clone(), reason });
            }
        }
        Ok(chunks)
    }

    /// The rarity of a term among the candidates.
    fn idf(&self, term: &str) -> f64 {
        let frequencies = self.frequencies.get_or_init(|| self.frequencies());
        let (n, n_with) = (self.candidates.len() as f64, frequencies.get(term).copied().unwrap_or(0) as f64);
        ((n - n_with + 0.5) / (n_with + 0.5)).ln_1p()
    }

    fn frequencies(&self) -> HashMap<String, u64> {
        let mut frequencies: HashMap<String, u64> = HashMap::new();
        for candidate in &self.candidates {
            if self.cancel.is_cancelled() {
                break; // whoever asked does not want it any more
            }
            let terms: BTreeSet<String> = self.analyzer.terms(&candidate.text).into_iter().collect();
            terms.into_iter().for_each(|term| *frequencies.entry(term).or_default() += 1);
        }
        frequencies
    }

    fn cosine(&self, a: &str, b: &str) -> f64 {
        let vector = |id: &str| &self.vectors[self.laid[self.places[id]].given];
        vector(a).iter().zip(vector(b)).map(|(x, y)| f64::from(x * y)).sum()
    }

    /// Tokens of a text; each text is counted once, whatever is asked of these candidates with one tokenizer.
    fn count(&self, tokenizer: &BudgetTokenizer<'_>, text: &str) -> usize {
        if let Some(&known) = self.counts.borrow().get(text) {
            return known;
        }
        let n_tokens = tokenizer.count(text);
        self.counts.borrow_mut().insert(text.into(), n_tokens);
        n_tokens
    }

    /// Warnings of settings that can do nothing here.
    fn unused(&self, settings: &ContextSettings<'_>) -> Vec<String> {
        let (policy, strategy) = (settings.policy, settings.strategy);
        let mut warnings = Vec::new();
        if policy.second_search == SecondSearch::Relaxed {
            warnings.push("second_search: there is no collection to search once more".to_owned());
        }
        if matches!(strategy, Strategy::Window | Strategy::Parent) {
            let types = policy.window.radius_by_type.keys();
            warnings
                .extend(types.map(|kind| format!("no candidate has a type, and window.radius_by_type names {kind:?}")));
        }
        if settings.marks == Marks::Full && self.laid.iter().any(|laid| laid.unit != Unit::Bytes) {
            let reason = "full marks tell bytes, and some candidates have no byte span: of these they are bytes of the \
                          texts given of a document, one behind the other";
            warnings.push(reason.to_owned());
        }
        if matches!(strategy, Strategy::Cento | Strategy::Bubble) {
            let known: BTreeSet<&str> = self.candidates.iter().map(|candidate| candidate.label.as_str()).collect();
            let named = policy.priors.keys().map(|label| ("priors", label));
            let named = named.chain(policy.rho.keys().map(|label| ("rho", label)));
            let unknown =
                named.filter(|(_, label)| *label != OTHER_SECTIONS && !known.contains(&*normalize_label(label)));
            warnings.extend(
                unknown.map(|(table, label)| {
                    format!("no candidate stands under a heading {label:?}, which [{table}] names")
                }),
            );
        }
        warnings
    }
}

impl Laid {
    /// The chunk as assembly takes it.
    fn candidate(&self, given: &GivenCandidate) -> Candidate {
        let title = given.title.as_deref().unwrap_or_default();
        let heading = section_heading(&given.headings, title);
        let text = format!("{}{}", &given.text[self.part.clone()], self.joint);
        Candidate {
            id: format!("{}#{}", given.document, self.index),
            document: given.document.clone(),
            types: Vec::new(),
            title: title.to_owned(),
            index: self.index,
            n_chunks: self.n_chunks,
            section: format!("{}\u{1f}{heading}", given.document),
            label: normalize_label(heading),
            path: given.headings.clone(),
            span: self.start..self.start + text.len() as u64,
            source: "source",
            anchor: Anchor::default(),
            text,
            n_tokens: 0, // counted with the tokenizer of the request
            relevance: given.score.unwrap_or_default(),
            arms: Vec::new(),
            is_neighbor: given.score.is_none(),
            parents: self.parents.clone(),
        }
    }

    /// The part of it that a citation of this span names.
    fn passage(&self, given: &GivenCandidate, cited: &Range<u64>) -> Option<GivenPassage> {
        let end = self.start + self.part.len() as u64;
        let (from, to) = (cited.start.clamp(self.start, end), cited.end.clamp(self.start, end));
        if from >= to {
            return None;
        }
        let byte = |at: u64| self.part.start + (at - self.start) as usize;
        let span = byte(from)..byte(to);
        let in_document = match (self.unit, &given.span, &given.characters) {
            (Unit::Bytes, Some(place), _) => Some(place.start + span.start as u64..place.start + span.end as u64),
            (Unit::Characters, _, Some(place)) => {
                let first = place.start + given.text[..span.start].chars().count() as u64;
                Some(first..first + given.text[span.clone()].chars().count() as u64)
            }
            _ => None,
        };
        Some(GivenPassage { candidate: self.given, span, in_document })
    }
}
