//! The ledger: what kept passages say, in their own words.
//!
//! Source: U_t of arXiv 2512.10787, section 3.3: entities with aliases, typed relations (head, relation, tail),
//! qualifiers, each under a verbatim constraint.
//! Differs: everything is a byte range of a passage, so the constraint cannot be broken. A relation is what stands
//! between two mentions of one sentence (after a comma, a date or a relative pronoun of its subject: "X, who lived in
//! Y"), or "X is a Y". A sentence that opens with a pronoun speaks of what the passage is about.
//! Cost: one pass over the words of a passage.

use super::passage::Passage;
use crate::question::names::{Aliases, Kind, Mention, is_opener, mentions, words};
use crate::question::{Quantity, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The facts of the kept passages. Every text in it is a part of the passage it names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Named things, by [`Aliases::key`].
    pub entities: BTreeMap<String, Entity>,
    /// Statements.
    pub relations: Vec<Relation>,
    /// Dates and numbers.
    pub qualifiers: Vec<Qualifier>,
}

/// A named thing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entity {
    /// The ways in which it is written.
    pub names: BTreeSet<String>,
    /// Ids of the passages that name it.
    pub passages: BTreeSet<String>,
}

/// One statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Relation {
    /// Of what.
    pub head: String,
    /// The relation, as written.
    pub relation: String,
    /// The other side.
    pub tail: String,
    /// The kind of the tail; none for a description ("a Danish chemist").
    pub tail_kind: Option<Kind>,
    /// Id of the passage.
    pub passage: String,
}

/// A date or a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Qualifier {
    /// As written.
    pub text: String,
    /// Date or number.
    pub kind: Kind,
    /// Id of the passage.
    pub passage: String,
}

impl Ledger {
    /// Adds what a passage says.
    pub(crate) fn add(&mut self, passage: &Passage, read: &Extract, aliases: &Aliases) {
        let text = |span: &Range<usize>| passage.text[span.clone()].to_owned();
        for mention in &read.mentions {
            if mention.kind.is_qualifier() {
                let (text, passage) = (text(&mention.span), passage.id.clone());
                self.qualifiers.push(Qualifier { text, kind: mention.kind, passage });
            } else {
                let entity = self.entities.entry(aliases.key(&passage.text[mention.span.clone()])).or_default();
                entity.names.insert(text(&mention.span));
                entity.passages.insert(passage.id.clone());
            }
        }
        self.relations.extend(read.statements.iter().map(|said| Relation {
            head: text(&said.head),
            relation: text(&said.relation),
            tail: text(&said.tail),
            tail_kind: said.tail_kind,
            passage: passage.id.clone(),
        }));
    }
}

/// A passage, read once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extract {
    pub(crate) mentions: Vec<Mention>,
    pub(crate) statements: Vec<Statement>,
    /// Its numbers, each with its sentence; those of the title have none.
    pub(crate) quantities: Vec<(Option<usize>, Quantity)>,
    /// Terms of each sentence.
    pub(crate) sentence_terms: Vec<BTreeSet<String>>,
    /// Mentions that another reader joins to a sentence that does not have it.
    pub(crate) joined: Vec<Mention>,
    /// All terms in order, title first.
    pub(crate) terms: Vec<String>,
    /// The subject of the text by its own words: that of its first sentence.
    pub(crate) subject: Option<Range<usize>>,
}

/// A relation, as byte ranges of the passage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    pub(crate) head: Range<usize>,
    pub(crate) relation: Range<usize>,
    pub(crate) tail: Range<usize>,
    pub(crate) tail_kind: Option<Kind>,
}

impl Extract {
    pub(crate) fn read(passage: &Passage, reading: &Reading<'_>) -> Self {
        let text = passage.text.as_str();
        let sentences = (reading.sentences)(text);
        let known = known_words(passage, &sentences);
        let mentions = mentions(text, &sentences, &|word| known.contains(word));
        let subject = mentions.iter().find(|mention| mention.kind == Kind::Name).map(|mention| mention.span.clone());
        let mut statements = Vec::new();
        for (number, range) in sentences.iter().enumerate() {
            let of_sentence: Vec<&Mention> = mentions.iter().filter(|mention| mention.sentence == number).collect();
            statements.extend(statements_of(text, range, &of_sentence, subject.as_ref()));
        }
        let of_sentences: Vec<Vec<String>> =
            sentences.iter().map(|range| (reading.terms)(&text[range.clone()])).collect();
        let terms = (reading.terms)(&passage.title).into_iter().chain(of_sentences.iter().flatten().cloned()).collect();
        let sentence_terms = of_sentences.into_iter().map(BTreeSet::from_iter).collect();
        let title = std::slice::from_ref(&(0..passage.title.len())).to_vec();
        let titled = Quantity::of(&passage.title, &title, &[]).into_iter().map(|(_, quantity)| (None, quantity));
        let said = Quantity::of(text, &sentences, &mentions).into_iter();
        let quantities = titled.chain(said.map(|(sentence, quantity)| (Some(sentence), quantity))).collect();
        Self { mentions, statements, quantities, sentence_terms, joined: Vec::new(), terms, subject }
    }
}

/// Words in lower case that the title has, or the text with a capital inside a sentence: a sentence that opens with one
/// of them opens with a name.
fn known_words(passage: &Passage, sentences: &[Range<usize>]) -> BTreeSet<String> {
    let title = words(&passage.title, 0..passage.title.len());
    let title = title.into_iter().map(|word| &passage.title[word]);
    let inside = sentences.iter().flat_map(|range| words(&passage.text, range.clone()).into_iter().skip(1));
    let inside = inside.map(|word| &passage.text[word]);
    title.chain(inside).filter(|word| word.starts_with(char::is_uppercase)).map(str::to_lowercase).collect()
}

/// The statements of a sentence: the words between each two neighbouring mentions, and the definition of its subject.
fn statements_of(
    text: &str,
    sentence: &Range<usize>,
    mentions: &[&Mention],
    about: Option<&Range<usize>>,
) -> Vec<Statement> {
    let mut found = Vec::new();
    let pronoun = words(text, sentence.clone())
        .first()
        .filter(|word| PRONOUNS.contains(&text[(*word).clone()].to_lowercase().as_str()))
        .cloned();
    let named = mentions.iter().find(|mention| !mention.kind.is_qualifier()).map(|mention| mention.span.clone());
    let subject = if pronoun.is_some() { about.cloned() } else { named };
    let Some(subject) = subject else { return found };
    if let (Some(pronoun), Some(first)) = (&pronoun, mentions.first()) {
        found.extend(statement(text, &subject, pronoun.end..first.span.start, first));
    }
    for pair in mentions.windows(2) {
        let mut between = pair[0].span.end..pair[1].span.start;
        let relative = words(text, between.clone()).into_iter().rfind(|word| RELATIVES.contains(&&text[word.clone()]));
        let goes_back = pair[0].kind.is_qualifier() || text[between.clone()].starts_with(',') || relative.is_some();
        let head = if goes_back { &subject } else { &pair[0].span };
        between.start = relative.map_or(between.start, |relative| relative.end);
        found.extend(statement(text, head, between, pair[1]));
    }
    let after = pronoun.as_ref().map_or(subject.end, |pronoun| pronoun.end);
    if sentence.contains(&after) {
        found.extend(definition(text, &subject, after..sentence.end));
    }
    found
}

/// The statement of what stands between two mentions, if it says something and nothing more.
fn statement(text: &str, head: &Range<usize>, between: Range<usize>, tail: &Mention) -> Option<Statement> {
    let part = text.get(between.clone())?;
    let start = between.start + part.len() - part.trim_start_matches(|c: char| !c.is_alphanumeric()).len();
    let end = between.start + part.trim_end_matches(|c: char| !c.is_alphanumeric()).len();
    if start >= end || *head == tail.span {
        return None;
    }
    let said = words(text, start..end);
    let inner = text[start..end].contains(['.', ';', ':', '(', ')']);
    let content = said.iter().any(|word| !is_opener(&text[word.clone()]));
    (content && !inner && said.len() <= RELATION_WORDS_MAX).then(|| Statement {
        head: head.clone(),
        relation: start..end,
        tail: tail.span.clone(),
        tail_kind: Some(tail.kind),
    })
}

/// "X (…) is a Y": up to the next comma, relative pronoun or end.
fn definition(text: &str, subject: &Range<usize>, rest: Range<usize>) -> Option<Statement> {
    let mut said = words(text, rest.clone()).into_iter().peekable();
    // A parenthesis may stand between a name and its verb.
    if let Some(close) = text[rest.clone()].trim_start().strip_prefix('(').and_then(|inner| inner.find(')')) {
        let close = rest.start + text[rest.clone()].find('(')? + 1 + close;
        while said.next_if(|word| word.start < close).is_some() {}
    }
    let is = said.next().filter(|word| ["is", "was", "are", "were"].contains(&&text[word.clone()]))?;
    said.next().filter(|word| ["a", "an", "the", "one"].contains(&&text[word.clone()]))?;
    let first = said.next()?;
    let mut end = first.end;
    for word in said.take(RELATION_WORDS_MAX) {
        let stops = ["who", "which", "that", "by", "in", "from", "and"].contains(&&text[word.clone()]);
        if stops || text[end..word.start].contains([',', ';', '.', '(']) {
            break;
        }
        end = word.end;
    }
    Some(Statement { head: subject.clone(), relation: is, tail: first.start..end, tail_kind: None })
}

/// Most words of a relation; longer text between two mentions is several relations.
const RELATION_WORDS_MAX: usize = 8;
const RELATIVES: [&str; 4] = ["who", "which", "that", "and"];
const PRONOUNS: [&str; 8] = ["he", "she", "it", "they", "his", "her", "its", "their"];
