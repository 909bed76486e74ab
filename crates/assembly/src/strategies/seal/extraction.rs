//! What another reader says: a language model that extracts and judges beside the patterns, believed as far as the
//! texts bear it out.
//!
//! Source: arXiv 2512.10787, section 3.3, where a model does both, under a verbatim constraint: in the authors' code a
//! triple whose subject or object is no substring of the passage is dropped.
//! Differs: so is every name, alias and qualifier, and what is only part of a word. What is left stands beside what the
//! patterns found. A relation in other words than the passage's joins its two sides, and is not quoted. What is said to
//! be missing counts if the question asks for it or the ledger has it.
//! Cost: one search of the passage for each thing that is said of it, at most [`FINDINGS_MAX`] of a kind.

use super::ledger::{Entity, Extract, Ledger, Statement};
use super::passage::Passage;
use crate::question::names::{Aliases, Kind, Mention, is_opener, mentions, words};
use crate::question::{Needs, Reading};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The findings of a reader in one passage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extraction {
    /// Names, each with other forms of it.
    pub entities: Vec<(String, Vec<String>)>,
    /// Subject, relation, object.
    pub triples: Vec<[String; 3]>,
    /// Dates and numbers.
    pub qualifiers: Vec<String>,
}

impl Extraction {
    /// Findings: names, their other forms, triples, dates and numbers.
    pub fn len(&self) -> usize {
        let names: usize = self.entities.iter().map(|(_, others)| 1 + others.len()).sum();
        names + self.triples.len() + self.qualifiers.len()
    }

    /// Says if nothing was found.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A reader's judgement of the kept passages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sufficiency {
    /// It answers the question.
    pub sufficient: bool,
    /// The missing things, in the reader's words.
    pub missing: Vec<String>,
}

/// The needs and names that a reader misses, of those that the question or the ledger knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Missed {
    /// Needs of the question, by number.
    pub(crate) needs: BTreeSet<usize>,
    /// Names of the ledger by key, each as it is written there, with the idf of its terms.
    pub(crate) names: BTreeMap<String, (String, f64)>,
}

impl Missed {
    pub(crate) fn is_empty(&self) -> bool {
        self.needs.is_empty() && self.names.is_empty()
    }

    /// Adds the needs and names that a text has all terms of; whether there are any.
    pub(crate) fn add(&mut self, text: &str, needs: &Needs, ledger: &Ledger, reading: &Reading<'_>) -> bool {
        let terms: BTreeSet<String> = (reading.terms)(text).into_iter().collect();
        let has = |of: &[String]| !of.is_empty() && of.iter().all(|term| terms.contains(term));
        let asked = needs.needs.iter().enumerate().filter(|(_, need)| has(&need.terms)).map(|(number, _)| number);
        let asked: Vec<usize> = asked.collect();
        let named = ledger.entities.iter().filter_map(|(key, Entity { names, .. })| {
            let written = names.first()?;
            let of_name = (reading.terms)(written);
            let is_need = needs.needs.iter().any(|need| of_name.iter().all(|term| need.terms.contains(term)));
            (has(&of_name) && !is_need).then(|| (key.clone(), (written.clone(), reading.mass(&of_name))))
        });
        let named: Vec<_> = named.collect();
        let known = !asked.is_empty() || !named.is_empty();
        self.needs.extend(asked);
        self.names.extend(named);
        known
    }
}

impl Extract {
    /// Adds what a reader says of the passage, as far as the passage says it; how many of its findings are dropped.
    pub(crate) fn add(
        &mut self,
        passage: &Passage,
        said: &Extraction,
        aliases: &mut Aliases,
        reading: &Reading<'_>,
    ) -> usize {
        let text = Verbatim::of(&passage.text, (reading.sentences)(&passage.text));
        let lists = [said.entities.len(), said.triples.len(), said.qualifiers.len()];
        let mut n_dropped: usize = lists.iter().map(|n| n.saturating_sub(FINDINGS_MAX)).sum();
        for said in said.qualifiers.iter().take(FINDINGS_MAX) {
            let kind = if kind(said) == Kind::Date { Kind::Date } else { Kind::Number };
            n_dropped += usize::from(!self.mention(&text.places(said), kind, &text));
        }
        for (name, others) in said.entities.iter().take(FINDINGS_MAX) {
            let is_there = self.mention(&text.places(name), kind(name), &text);
            n_dropped += usize::from(!is_there) + others.len().saturating_sub(FINDINGS_MAX);
            for other in others.iter().take(FINDINGS_MAX) {
                let is_name = is_there && is_proper(other) && self.mention(&text.places(other), kind(other), &text);
                if is_name { aliases.join(other, name) } else { n_dropped += 1 }
            }
        }
        for triple in said.triples.iter().take(FINDINGS_MAX) {
            n_dropped += usize::from(self.relate(triple, &text).is_none());
        }
        self.mentions.sort_by_key(|mention| (mention.span.start, mention.span.end));
        n_dropped
    }

    /// Adds mentions where there is none yet; whether there is one at all.
    fn mention(&mut self, places: &[Range<usize>], kind: Kind, text: &Verbatim<'_>) -> bool {
        for span in places {
            if !self.mentions.iter().any(|mention| mention.span == *span) {
                self.mentions.push(Mention { span: span.clone(), kind, sentence: text.sentence(span) });
            }
        }
        !places.is_empty()
    }

    /// Adds a triple where its two sides are nearest to each other: they stand in each other's sentence from now on.
    fn relate(&mut self, [subject, relation, object]: &[String; 3], text: &Verbatim<'_>) -> Option<()> {
        let (heads, tails) = (text.places(subject), text.places(object));
        let pairs = heads.iter().flat_map(|head| tails.iter().map(move |tail| (head, tail)));
        let apart = pairs.filter(|(head, tail)| head != tail);
        let (head, tail) = apart.min_by_key(|(head, tail)| head.start.abs_diff(tail.start))?;
        let sides = [(head, kind(subject)), (tail, kind(object))];
        for (side, kind) in sides {
            self.mention(std::slice::from_ref(side), kind, text);
        }
        let [one, other] = [head, tail].map(|side| text.sentence(side));
        if one != other {
            let [head, tail] = sides.map(|(side, kind)| (side.clone(), kind));
            self.joined.push(Mention { span: head.0, kind: head.1, sentence: other });
            self.joined.push(Mention { span: tail.0, kind: tail.1, sentence: one });
        }
        if let Some(relation) = text.find(relation).into_iter().min_by_key(|said| said.start.abs_diff(head.end)) {
            let said = Statement { head: head.clone(), relation, tail: tail.clone(), tail_kind: Some(kind(object)) };
            if !self.statements.contains(&said) {
                self.statements.push(said);
            }
        }
        Some(())
    }
}

/// A passage that is searched for what it is said to say.
struct Verbatim<'t> {
    text: &'t str,
    /// With a space for every line end and tab: the same bytes otherwise.
    flat: String,
    sentences: Vec<Range<usize>>,
}

impl<'t> Verbatim<'t> {
    fn of(text: &'t str, sentences: Vec<Range<usize>>) -> Self {
        Self { text, flat: flat(text), sentences }
    }

    /// Where the passage has a name, a date or a number; nowhere if it could be none.
    fn places(&self, said: &str) -> Vec<Range<usize>> {
        let all = words(said, 0..said.len());
        let names = all.iter().any(|word| !is_opener(&said[word.clone()])) && all.len() <= NAME_WORDS_MAX;
        if names { self.find(said) } else { Vec::new() }
    }

    /// Where the passage has these words, none of them cut.
    fn find(&self, said: &str) -> Vec<Range<usize>> {
        let said = flat(said.trim());
        let found = self.flat.match_indices(&said).map(|(start, _)| start..start + said.len());
        let cuts = |at: usize| {
            let (before, after) = (self.text[..at].chars().next_back(), self.text[at..].chars().next());
            before.is_some_and(is_letter) && after.is_some_and(is_letter)
        };
        found.filter(|span| !span.is_empty() && !cuts(span.start) && !cuts(span.end)).take(PLACES_MAX).collect()
    }

    fn sentence(&self, span: &Range<usize>) -> usize {
        self.sentences.iter().rposition(|sentence| sentence.start <= span.start).unwrap_or(0)
    }
}

fn flat(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ")
}

/// Says if words are told from each other where such characters meet; scripts without capitals do not part words.
fn is_letter(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase() || c.is_numeric()
}

/// A date or a number if it is nothing else, otherwise a name.
fn kind(said: &str) -> Kind {
    let whole = 0..said.len();
    match &mentions(said, std::slice::from_ref(&whole), &|_| true)[..] {
        [only] if only.span == whole => only.kind,
        _ => Kind::Name,
    }
}

/// Says if it is written as names are: "the film" is no other form of one.
fn is_proper(said: &str) -> bool {
    words(said, 0..said.len()).iter().any(|word| said[word.clone()].starts_with(|c: char| !c.is_lowercase()))
}

/// Findings of one kind that are looked at; a passage has not as many.
pub const FINDINGS_MAX: usize = 128;
/// Places of one finding that are looked at, the first in the passage.
const PLACES_MAX: usize = 64;
/// Most words of a name.
const NAME_WORDS_MAX: usize = 12;
