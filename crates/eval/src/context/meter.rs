//! Measuring one context: every figure of it, by name.

use std::collections::HashMap;
use std::ops::Range;

use super::documents::Titles;
use super::evidence::{self, Coverage};
use super::{MeasureOptions, answer, decisions, facts, pieces, redundancy, seams, size};
use crate::contexts::Context;
use crate::error::{Error, Result};
use crate::questions::{Question, Questions};

/// One figure of one context.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    pub(super) name: String,
    of: Side,
    /// Absent where the question has nothing to measure it by.
    pub(super) value: Option<f64>,
}

/// The subject of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The part delivered of what should be.
    Worth,
    /// A property of the context itself; without a context there is none.
    Cost,
}

/// Measures contexts one by one; keeps the tokens of the gold documents.
pub(super) struct Meter<'a> {
    pub(super) questions: &'a Questions,
    pub(super) options: &'a MeasureOptions<'a>,
    /// Token ends by tokenizer and document.
    ends: HashMap<String, HashMap<String, Vec<u64>>>,
    /// Sentences by document.
    sentences: HashMap<String, Vec<Range<usize>>>,
}

impl<'a> Meter<'a> {
    pub(super) fn new(questions: &'a Questions, options: &'a MeasureOptions<'a>) -> Self {
        Self { questions, options, ends: HashMap::new(), sentences: HashMap::new() }
    }

    /// Every figure of the context of a question, always the same names in the same order.
    pub(super) fn readings(&mut self, at: usize, context: &Context) -> Result<Vec<Reading>> {
        self.check_citations(context)?;
        let question = self.question(at);
        let mut readings = vec![
            cost("tokens", Some(context.n_tokens as f64)),
            cost("budget_used", size::budget_used(context)),
            cost("wrapping", size::wrapping(context)),
            cost("sections", Some(size::sections(context) as f64)),
        ];
        readings.extend(self.titles(question, context));
        readings.extend(coverage_readings("evidence", self.token_coverage(question, context)?));
        readings.extend(coverage_readings("evidence_char", self.char_coverage(question, context)));
        let pieces = pieces(&context.citations);
        readings.push(worth("fact_recall", facts::recall(&question.facts, &pieces)));
        readings.push(worth("evidence_text_recall", facts::excerpts(&question.evidence, &pieces)));
        readings.push(worth("answer_in_context", answer::in_context(&question.answers, &pieces)));
        let texts: Vec<&str> = context.citations.iter().map(|citation| citation.text.as_str()).collect();
        readings.push(cost("redundancy_pairwise", Some(redundancy::pairwise(&texts))));
        readings.push(cost("overlap_union", Some(redundancy::overlap_union(&texts))));
        readings.push(cost("redundancy_cosine", context.redundancy_cosine));
        readings.push(cost("duplication", seams::duplication(&texts)));
        readings.push(cost("boundary_violations", self.violations(context)));
        readings.push(cost("redundant_share", decisions::redundant_share(context)));
        readings.extend(decisions::rejections(context).map(|(name, share)| cost(name, share)));
        Ok(readings)
    }

    /// The figures of a question for which there is no context: what should be delivered is not, and nothing is spent.
    pub(super) fn nothing(&mut self, at: usize) -> Result<Vec<Reading>> {
        let mut readings = self.readings(at, &Context::default())?;
        readings.iter_mut().filter(|reading| reading.of == Side::Cost).for_each(|reading| reading.value = None);
        Ok(readings)
    }

    fn question(&self, at: usize) -> &'a Question {
        self.questions.at(at)
    }

    /// Gold documents of the question in the context; none for a question without any.
    fn titles(&self, question: &Question, context: &Context) -> Vec<Reading> {
        let of =
            |delivered: &[String]| (!question.documents.is_empty()).then(|| Titles::of(delivered, &question.documents));
        let all = of(&context.documents);
        let mut readings = title_readings("", all);
        for &k in &self.options.document_cutoffs {
            let first = &context.documents[..k.min(context.documents.len())];
            readings.extend(title_readings(&format!("@{k}"), of(first)));
        }
        readings.push(worth("all_gold", all.map(Titles::all_gold)));
        readings
    }

    /// Share of the delivered pieces that begin or end inside a sentence, of those of documents whose text is known.
    fn violations(&mut self, context: &Context) -> Option<f64> {
        let sentences = self.options.sentences?;
        let (mut n, mut n_broken) = (0, 0);
        for (document, bytes) in seams::stretches(&context.citations) {
            let Some(text) = self.questions.text(document) else { continue };
            let known = self.sentences.entry(document.to_owned()).or_insert_with(|| sentences(text));
            n += 1;
            n_broken += usize::from(seams::is_broken(text, known, &bytes));
        }
        (n > 0).then(|| n_broken as f64 / f64::from(n))
    }

    /// Gold tokens of the question in the context; none for a question without evidence.
    fn token_coverage(&mut self, question: &Question, context: &Context) -> Result<Option<Coverage>> {
        if question.evidence.is_empty() {
            return Ok(None);
        }
        let mut sum = Coverage { n_delivered: context.n_tokens, ..Coverage::default() };
        if context.citations.is_empty() {
            return Ok(Some(sum));
        }
        for document in &question.documents {
            let ends = self.ends(document, &context.tokenizer)?;
            let (gold, cited) = (gold(question, document), cited(context, document));
            add(&mut sum, evidence::tokens(ends, gold, cited));
        }
        Ok(Some(sum))
    }

    /// Gold characters of the question in the cited texts; none for a question without evidence.
    fn char_coverage(&self, question: &Question, context: &Context) -> Option<Coverage> {
        if question.evidence.is_empty() {
            return None;
        }
        let n_delivered = context.citations.iter().map(|citation| citation.text.chars().count() as u64).sum();
        let mut sum = Coverage { n_delivered, ..Coverage::default() };
        for document in &question.documents {
            let text = self.questions.text(document)?;
            add(&mut sum, evidence::chars(text, gold(question, document), cited(context, document)));
        }
        Some(sum)
    }

    /// The token ends of a document, made on first use.
    fn ends(&mut self, document: &str, tokenizer: &str) -> Result<&[u64]> {
        let known = self.ends.entry(tokenizer.to_owned()).or_default();
        if !known.contains_key(document) {
            let text = self.questions.text(document).unwrap_or_default();
            let ends = (self.options.tokens)(text, tokenizer).map_err(|error| error.to_string());
            let ends = ends.and_then(|ends| evidence::contiguous(ends, text.len() as u64)).map_err(|reason| {
                Error::Tokens { document: document.to_owned(), tokenizer: tokenizer.to_owned(), reason }
            })?;
            known.insert(document.to_owned(), ends);
        }
        Ok(&known[document])
    }

    /// Cited bytes of a document of the set are that document's: else offsets of gold and of citations do not mean the
    /// same.
    fn check_citations(&self, context: &Context) -> Result<()> {
        for citation in &context.citations {
            let Some(text) = self.questions.text(&citation.document) else { continue };
            let (start, end) = (citation.span.start, citation.span.end);
            if text.get(start as usize..end as usize) != Some(&citation.text) {
                let (query, document) = (context.query_id.clone(), citation.document.clone());
                return Err(Error::Cited { query, n: citation.n, document, start, end });
            }
        }
        Ok(())
    }
}

fn worth(name: &str, value: Option<f64>) -> Reading {
    Reading { name: name.to_owned(), of: Side::Worth, value }
}

fn cost(name: &str, value: Option<f64>) -> Reading {
    Reading { name: name.to_owned(), of: Side::Cost, value }
}

fn title_readings(at: &str, titles: Option<Titles>) -> Vec<Reading> {
    vec![
        worth(&format!("title_precision{at}"), titles.map(|titles| titles.precision)),
        worth(&format!("title_recall{at}"), titles.map(|titles| titles.recall)),
        worth(&format!("title_f1{at}"), titles.map(Titles::f1)),
    ]
}

fn coverage_readings(name: &str, coverage: Option<Coverage>) -> [Reading; 3] {
    [
        worth(&format!("{name}_precision"), coverage.map(|coverage| coverage.precision())),
        worth(&format!("{name}_recall"), coverage.map(|coverage| coverage.recall())),
        worth(&format!("{name}_iou"), coverage.map(|coverage| coverage.iou())),
    ]
}

/// The evidence spans of a question in a document.
fn gold<'q>(question: &'q Question, document: &str) -> impl Iterator<Item = &'q std::ops::Range<u64>> {
    question.evidence.iter().filter(move |evidence| evidence.document == document).map(|evidence| &evidence.span)
}

/// The cited spans of a document.
fn cited<'c>(context: &'c Context, document: &str) -> impl Iterator<Item = &'c std::ops::Range<u64>> {
    context.citations.iter().filter(move |citation| citation.document == document).map(|citation| &citation.span)
}

fn add(sum: &mut Coverage, document: Coverage) {
    sum.n_gold += document.n_gold;
    sum.n_found += document.n_found;
}
