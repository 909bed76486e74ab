//! What contexts are worth per token, measured without a language model: gold delivered, text repeated, tokens spent.
//!
//! | figure | what it is | which questions have it |
//! |---|---|---|
//! | `tokens`, `budget_used`, `wrapping`, `sections` | [`size`] | those with a context |
//! | `title_precision`, `title_recall`, `title_f1`, the same `@k`, `all_gold` | [`documents`] | those with gold ones |
//! | `evidence_precision`, `_recall`, `_iou`, the same with `evidence_char_` | [`evidence`] | those with spans |
//! | `fact_recall` | [`facts`] | those with sentences |
//! | `evidence_text_recall` | [`facts::excerpts`]: the text itself, wherever it stands | those with spans |
//! | `answer_in_context` | [`answer`] | those with an answer that text can contain |
//! | `redundancy_pairwise`, `overlap_union` | [`redundancy`] | those with a context |
//! | `redundancy_cosine` | [`redundancy`] | those with a context where it was recorded |
//! | `duplication` | [`seams`] | those with words in their context |
//! | `boundary_violations` | [`seams`] | those with a delivered piece of a document whose text is known |
//! | `redundant_share`, `rejected_redundancy`, `_budget`, `_section`, `_relevance` | [`decisions`] | where recorded |
//! | `…_recall_per_1k_tokens` | mean recall / mean `tokens` * 1000 | the mean's |
//!
//! Cost: one context in memory, the figures of all, and the token ends of the gold documents, each tokenised once.

pub mod documents;
pub mod evidence;
pub mod facts;
pub mod answer;
pub mod redundancy;
pub mod seams;
pub mod size;
pub mod decisions;
mod options;
mod pieces;
mod intervals;
mod meter;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use crate::contexts::{Budget, Context};
use crate::error::{Error, Result};
pub use crate::evaluate::Missing;
use crate::questions::Questions;
use meter::{Meter, Reading};
pub use options::{DOCUMENT_CUTOFFS, MeasureOptions, Sentences, TokenEnds};
pub use pieces::{Piece, pieces};

/// The worth of one strategy's contexts within one budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Label of the strategy.
    pub strategy: String,
    /// The budget.
    pub budget: Budget,
    /// The tokenizer of budget and tokens.
    pub tokenizer: String,
    /// Questions with a context.
    pub n_contexts: usize,
    /// Questions without one.
    pub n_missing: usize,
    /// Contexts of queries that are no questions of the set; they are not measured.
    pub n_unasked: usize,
    /// The figures in the order of the table above; a figure that no question has is left out.
    pub figures: Vec<Figure>,
    /// Mean delivered tokens by label of their section, over the questions with a context, in the order of the labels.
    pub tokens_by_label: Vec<(String, f64)>,
}

/// One figure of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Mean over the questions that have it.
    pub mean: f64,
    /// Number of questions that have it, at least one.
    pub n: usize,
    /// The figure of each question that has it, in the order of their ids. Empty for a ratio of two means, which is no
    /// mean.
    pub values: Vec<(String, f64)>,
}

impl Group {
    /// The figure of this name, if any question has it.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

/// Measures contexts, by strategy and budget, in this order. There is one context for each question, strategy and
/// budget, as [`contexts::read`](crate::contexts::read) makes sure of.
///
/// A document that the questions do not know counts as delivered and not gold.
///
/// # Errors
/// No context, no query in common with the questions, or not one delivered document in common (of a BEIR folder: not
/// one gold document); a citation that is not what the document of the questions has there; two tokenizers in one
/// group.
pub fn measure(
    questions: &Questions,
    contexts: impl IntoIterator<Item = Result<Context>>,
    options: &MeasureOptions<'_>,
) -> Result<Vec<Group>> {
    let mut meter = Meter::new(questions, options);
    let mut overlap = Overlap::new(questions);
    let mut groups: BTreeMap<(String, Budget), Contexts> = BTreeMap::new();
    for context in contexts {
        let context = context?;
        let group = groups.entry((context.strategy.clone(), context.asked())).or_default();
        group.count_with(&context)?;
        match questions.position(&context.query_id) {
            Some(at) => {
                overlap.add(&context);
                group.add(at, &context, meter.readings(at, &context)?);
            }
            None => {
                group.n_unasked += 1;
                overlap.unasked.get_or_insert(context.query_id);
            }
        }
    }
    overlap.check()?;
    groups.into_iter().map(|(key, contexts)| contexts.group(key, &mut meter)).collect()
}

/// The measured contexts of one group.
#[derive(Default)]
struct Contexts {
    tokenizer: Option<String>,
    n_unasked: usize,
    /// By position of the question.
    rows: BTreeMap<usize, Vec<Reading>>,
    tokens_by_label: BTreeMap<String, u64>,
}

impl Contexts {
    /// Holds the group to one tokenizer.
    fn count_with(&mut self, context: &Context) -> Result<()> {
        let tokenizer = self.tokenizer.get_or_insert_with(|| context.tokenizer.clone());
        if *tokenizer == context.tokenizer {
            Ok(())
        } else {
            Err(Error::Tokenizers {
                query: context.query_id.clone(),
                strategy: context.strategy.clone(),
                budget: context.asked(),
                expected: tokenizer.clone(),
                found: context.tokenizer.clone(),
            })
        }
    }

    fn add(&mut self, at: usize, context: &Context, readings: Vec<Reading>) {
        for section in &context.sections {
            *self.tokens_by_label.entry(section.label.clone()).or_default() += section.tokens;
        }
        self.rows.insert(at, readings);
    }

    fn group(mut self, (strategy, budget): (String, Budget), meter: &mut Meter<'_>) -> Result<Group> {
        let n_contexts = self.rows.len();
        let n_missing = meter.questions.len() - n_contexts;
        if meter.options.missing == Missing::Zero {
            for at in 0..meter.questions.len() {
                if let Entry::Vacant(missing) = self.rows.entry(at) {
                    missing.insert(meter.nothing(at)?);
                }
            }
        }
        let mean_tokens = |n_tokens: u64| n_tokens as f64 / n_contexts.max(1) as f64;
        Ok(Group {
            strategy,
            budget,
            tokenizer: self.tokenizer.unwrap_or_default(),
            n_contexts,
            n_missing,
            n_unasked: self.n_unasked,
            figures: figures(meter.questions, &self.rows),
            tokens_by_label: self.tokens_by_label.into_iter().map(|(label, n)| (label, mean_tokens(n))).collect(),
        })
    }
}

/// Means of the readings of each name, and the recalls per token.
fn figures(questions: &Questions, rows: &BTreeMap<usize, Vec<Reading>>) -> Vec<Figure> {
    let ids: Vec<&str> = questions.iter().map(|question| question.id.as_str()).collect();
    let names = rows.values().next().into_iter().flatten().map(|reading| reading.name.clone());
    let mut figures: Vec<Figure> = Vec::new();
    for (column, name) in names.enumerate() {
        let value = |(at, row): (&usize, &Vec<Reading>)| Some((ids[*at].to_owned(), row[column].value?));
        let values: Vec<(String, f64)> = rows.iter().filter_map(value).collect();
        if !values.is_empty() {
            let n = values.len();
            let mean = values.iter().map(|(_, value)| value).sum::<f64>() / n as f64;
            figures.push(Figure { name, mean, n, values });
        }
    }
    let of = |name: &str| figures.iter().find(|figure| figure.name == name);
    let tokens = of("tokens").map_or(0.0, |tokens| tokens.mean);
    let per_token = |name: &&str| {
        let recall = of(name).filter(|_| tokens > 0.0)?;
        let (name, mean) = (format!("{name}_per_1k_tokens"), recall.mean / tokens * 1_000.0);
        Some(Figure { name, mean, n: recall.n, values: Vec::new() })
    };
    let per_token: Vec<Figure> =
        ["title_recall", "evidence_recall", "fact_recall"].iter().filter_map(per_token).collect();
    figures.extend(per_token);
    figures
}

/// Evidence that contexts and questions are of the same set: one query and one document in common are enough.
struct Overlap<'q> {
    known: HashSet<&'q str>,
    questions: &'q Questions,
    /// A query that is no question.
    unasked: Option<String>,
    /// A delivered document that the questions do not know.
    unknown: Option<String>,
    n_asked: usize,
    n_known: usize,
}

impl<'q> Overlap<'q> {
    fn new(questions: &'q Questions) -> Self {
        let known = questions.documents().into_iter().collect();
        Self { known, questions, unasked: None, unknown: None, n_asked: 0, n_known: 0 }
    }

    fn add(&mut self, context: &Context) {
        self.n_asked += 1;
        for document in context.documents.iter().chain(context.citations.iter().map(|citation| &citation.document)) {
            if self.known.contains(document.as_str()) {
                self.n_known += 1
            } else if self.unknown.is_none() {
                self.unknown = Some(document.clone())
            } else {
            }
        }
    }

    fn check(self) -> Result<()> {
        if self.n_asked == 0 {
            let Some(query) = self.unasked else { return Err(Error::Nothing { what: "context" }) };
            let question = self.questions.iter().next().map_or_else(String::new, |question| question.id.clone());
            let check = "make the contexts from the queries of this set";
            return Err(Error::NoOverlap { what: "query", left: query, right: question, check });
        }
        match self.unknown {
            Some(cited) if self.n_known == 0 && !self.known.is_empty() => {
                let known = self.questions.documents().first().map_or_else(String::new, |known| (*known).to_owned());
                let check = "index the collection from this set: its docs folder, or the BEIR folder itself";
                Err(Error::NoOverlap { what: "document", left: cited, right: known, check })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
