//! S(c): what a passage is worth beside the others.
//!
//! Source: arXiv 2512.10787, section 3.5: `S(c) = l1 GapCov(c, G) + l2 Corr(c, U) + l3 Nov(c, U) - l4 Red(c, E)`, whose
//! terms the paper describes in words. Here, all against the kept passages E *without* the one whose place is in
//! question, so that who is in and who is out are measured by the same stick:
//! - `gap`: share, by weight, of what is still missing that the passage has: needs, and bridges it is about.
//! - `corr`: share, by weight, of the covered needs that one document covers, and the passage, of another document,
//!   too.
//! - `nov`: `x / (1 + x)`, x the sum over names that E does not have of the greatest share of needs, covered ones, in a
//!   sentence with the name.
//! - `red`: the greatest containment in one passage of E, over shingles of [`SHINGLE_TERMS`] terms weighed by idf.
//! - `rel`: relevance to the question as a share of the best passage's. Ours.
//!
//! A *bridge* is a name in a linked passage that stands in a sentence with needs; it weighs its idf times the share of
//! needs there. A passage is *linked* if it names an anchor of the question (an entity that weighs at least half as
//! much as the heaviest), is about what a linked passage names beside needs, or names what a linked passage is about.
//! Without anchors all are. What is not linked covers entities only: "population" in a text on another town answers
//! nothing. A passage that is *about* an entity covers it by 1, one that names it by [`NAMED`].
//! Range: every term in [0, 1]; the score is their weighted sum, in this order.

use super::config::SealConfig;
use super::extraction::Missed;
use super::ledger::Extract;
use super::passage::Passage;
use crate::question::names::{Aliases, words};
use crate::question::needs::says_date;
use crate::question::{Need, NeedKind, Needs, Reading};
use crate::rank::heaviest_first;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The cover of a need by a passage that names the entity, but is about another. Ours.
pub const NAMED: f64 = 0.5;
/// Bridges that count, the heaviest first. Ours.
pub const BRIDGES_MAX: usize = 8;
/// Terms of a shingle.
pub const SHINGLE_TERMS: usize = 3;

/// A score and the terms it is the sum of, before their weights.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// The weighted sum.
    pub total: f64,
    /// GapCov.
    pub gap: f64,
    /// Corr.
    pub corr: f64,
    /// Nov.
    pub nov: f64,
    /// Red.
    pub red: f64,
    /// Relevance.
    pub rel: f64,
}

impl Score {
    fn of(config: &SealConfig, [gap, corr, nov, red, rel]: [f64; 5]) -> Self {
        let total = config.lambda_gap * gap + config.lambda_corr * corr + config.lambda_nov * nov
            - config.lambda_red * red
            + config.lambda_rel * rel;
        Self { total, gap, corr, nov, red, rel }
    }
}

/// A passage as scoring sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Profile {
    pub(crate) id: String,
    pub(crate) document: String,
    pub(crate) n_tokens: usize,
    /// Relevance to the question, in [0, 1].
    pub(crate) relevance: f64,
    /// The cover of each need: 0, [`NAMED`] or 1.
    pub(crate) cover: Vec<f64>,
    /// The keys of its subjects.
    pub(crate) about: BTreeSet<String>,
    /// Names in it, as written, with the idf of its terms; what the question names is left out.
    pub(crate) names: BTreeMap<String, (String, f64)>,
    pub(crate) sentences: Vec<Sentence>,
    pub(crate) shingles: BTreeMap<String, f64>,
}

/// Needs and names that stand together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sentence {
    /// Needs, ascending; what the passage is about stands in every sentence.
    pub(crate) needs: Vec<usize>,
    /// Keys of [`Profile::names`].
    pub(crate) names: BTreeSet<String>,
}

impl Profile {
    pub(crate) fn new(
        passage: &Passage,
        extract: &Extract,
        relevance: f64,
        needs: &Needs,
        aliases: &Aliases,
        reading: &Reading<'_>,
    ) -> Self {
        let text = passage.text.as_str();
        let mut about = BTreeSet::from([aliases.key(&passage.title)]);
        let defined = extract.statements.iter().find(|said| said.tail_kind.is_none());
        about.extend(
            defined
                .filter(|said| Some(&said.head) == extract.subject.as_ref())
                .map(|said| aliases.key(&text[said.head.clone()])),
        );
        about.remove("");

        let mut profile = Self {
            id: passage.id.clone(),
            document: passage.document.clone(),
            n_tokens: passage.n_tokens,
            relevance,
            cover: Vec::new(),
            about,
            names: BTreeMap::new(),
            sentences: vec![Sentence::default(); extract.sentence_terms.len()],
            shingles: shingles(&extract.terms, reading),
        };
        let mut keys: BTreeSet<String> = BTreeSet::new();
        let mut full: Vec<String> = profile.about.iter().cloned().collect();
        let named = extract.mentions.iter().chain(&extract.joined);
        for mention in named.filter(|mention| !mention.kind.is_qualifier()) {
            let written = &text[mention.span.clone()];
            let key = in_full(aliases.key(written), &mut full);
            let terms = (reading.terms)(written);
            if !key.is_empty() && !needs.needs.iter().any(|need| terms.iter().all(|term| need.terms.contains(term))) {
                let mass = reading.mass(&terms);
                let named = profile.names.entry(key.clone()).or_insert_with(|| (written.to_owned(), mass));
                if written.len() > named.0.len() {
                    *named = (written.to_owned(), mass);
                }
                profile.sentences[mention.sentence].names.insert(key.clone());
            }
            keys.insert(key);
        }
        let all: BTreeSet<&String> = extract.terms.iter().collect();
        let has = |need: &Need| need.terms.iter().all(|term| all.contains(term));
        let cover = |need: &Need| match need.kind {
            NeedKind::Entity if profile.about.contains(&need.key) => 1.0,
            NeedKind::Entity if keys.contains(&need.key) || has(need) => NAMED,
            NeedKind::Date if says_date(need, text, &extract.mentions) => 1.0,
            NeedKind::Number => f64::from(u8::from(says_number(need, passage, extract, |_| true))),
            NeedKind::Entity | NeedKind::Comparison => 0.0,
            NeedKind::Relation | NeedKind::Date => f64::from(u8::from(has(need))),
        };
        profile.cover = needs.needs.iter().map(cover).collect();
        profile.stand_together(passage, extract, needs);
        profile
    }

    /// Finds the needs that stand in each sentence.
    fn stand_together(&mut self, passage: &Passage, extract: &Extract, needs: &Needs) {
        let cover = &self.cover;
        for (number, (sentence, terms)) in self.sentences.iter_mut().zip(&extract.sentence_terms).enumerate() {
            let stands = |(at, need): (usize, &Need)| {
                let about = need.kind == NeedKind::Entity && cover[at] == 1.0;
                let said = match need.kind {
                    NeedKind::Number => says_number(need, passage, extract, |sentence| sentence == Some(number)),
                    NeedKind::Entity | NeedKind::Relation | NeedKind::Date | NeedKind::Comparison => {
                        cover[at] > 0.0 && need.terms.iter().all(|term| terms.contains(term))
                    }
                };
                (about || said).then_some(at)
            };
            sentence.needs = needs.needs.iter().enumerate().filter_map(stands).collect();
        }
    }
}

/// Says if a passage has the number of a need in the title (`None`) or a sentence that counts: its value, or, where it
/// is no single number, the very word.
fn says_number(need: &Need, passage: &Passage, extract: &Extract, counts: impl Fn(Option<usize>) -> bool) -> bool {
    if let Some(value) = &need.value {
        return extract.quantities.iter().any(|(sentence, said)| counts(*sentence) && said.agrees(value));
    }
    let in_text = extract.mentions.iter().filter(|said| counts(Some(said.sentence)));
    let in_text = in_text.map(|said| &passage.text[said.span.clone()]);
    let in_title = words(&passage.title, 0..passage.title.len()).into_iter().filter(|_| counts(None));
    let in_title = in_title.map(|word| &passage.title[word]);
    in_text.chain(in_title).any(|said| said.eq_ignore_ascii_case(&need.text))
}

/// A single word that closes a longer name of the same passage means that name: "Porcaro" after "Jeff Porcaro".
fn in_full(key: String, full: &mut Vec<String>) -> String {
    if key.contains(' ') {
        if !full.contains(&key) {
            full.push(key.clone());
        }
        return key;
    }
    full.iter().find(|name| name.rsplit_once(' ').is_some_and(|(_, last)| last == key)).cloned().unwrap_or(key)
}

fn shingles(terms: &[String], reading: &Reading<'_>) -> BTreeMap<String, f64> {
    let n = SHINGLE_TERMS.min(terms.len()).max(1);
    terms.windows(n).map(|window| (window.join(" "), reading.mass(window))).collect()
}

/// The worth of the needs of a question.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Worth {
    pub(crate) weights: Vec<f64>,
    /// True for needs that are entities.
    pub(crate) entity: Vec<bool>,
    /// True for entities that a passage must have to do with.
    pub(crate) anchor: Vec<bool>,
    /// The things that another reader misses.
    pub(crate) missed: Missed,
}

impl Worth {
    pub(crate) fn of(needs: &Needs) -> Self {
        let entity: Vec<bool> = needs.needs.iter().map(|need| need.kind == NeedKind::Entity).collect();
        let weights: Vec<f64> = needs.needs.iter().map(|need| need.weight).collect();
        let heaviest =
            weights.iter().zip(&entity).filter(|(_, entity)| **entity).map(|(weight, _)| *weight).fold(0.0, f64::max);
        let anchor = weights.iter().zip(&entity).map(|(weight, entity)| *entity && *weight * 2.0 >= heaviest).collect();
        Self { weights, entity, anchor, missed: Missed::default() }
    }
}

/// The evidence of passages together.
#[derive(Debug, Clone)]
pub(crate) struct Evidence<'a> {
    pub(crate) worth: &'a Worth,
    /// Greatest cover of each need.
    pub(crate) covered: Vec<f64>,
    /// Documents that cover each need.
    pub(crate) sources: Vec<BTreeSet<&'a str>>,
    /// Names that lead on from the passages found, heaviest first.
    pub(crate) bridges: Vec<Bridge<'a>>,
    names: BTreeSet<&'a str>,
    passages: Vec<&'a Profile>,
    links: Links<'a>,
}

/// Names in passages that have to do with the question.
#[derive(Debug, Clone, Default)]
struct Links<'a> {
    /// Their subjects.
    topics: BTreeSet<&'a str>,
    /// Names beside needs.
    leads: BTreeSet<&'a str>,
}

impl Links<'_> {
    fn reach(&self, passage: &Profile, worth: &Worth) -> bool {
        let anchored = || worth.anchor.iter().zip(&passage.cover).any(|(anchor, cover)| *anchor && *cover > 0.0);
        let is = |names: &BTreeSet<&str>, name: &String| names.contains(name.as_str());
        !worth.anchor.contains(&true)
            || anchored()
            || passage.about.iter().any(|name| is(&self.leads, name) || is(&self.topics, name))
            || passage.names.keys().any(|name| is(&self.topics, name))
    }
}

/// A name that leads on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bridge<'a> {
    pub(crate) key: &'a str,
    pub(crate) written: &'a str,
    pub(crate) weight: f64,
}

impl<'a> Evidence<'a> {
    pub(crate) fn of(passages: Vec<&'a Profile>, worth: &'a Worth) -> Self {
        let (links, linked) = link(&passages, worth);
        let mut covered = vec![0.0_f64; worth.weights.len()];
        let mut sources = vec![BTreeSet::new(); worth.weights.len()];
        let mut names = BTreeSet::new();
        for (passage, linked) in passages.iter().zip(&linked) {
            for need in 0..covered.len() {
                let cover = covers(passage, need, *linked, worth);
                if cover > 0.0 {
                    covered[need] = covered[need].max(cover);
                    sources[need].insert(passage.document.as_str());
                }
            }
            names.extend(passage.names.keys().chain(&passage.about).map(String::as_str));
        }
        let of_question: Vec<&Profile> =
            passages.iter().zip(&linked).filter(|(_, linked)| **linked).map(|(passage, _)| *passage).collect();
        let bridges = bridges(&of_question, &links.topics, worth);
        Self { worth, covered, sources, bridges, names, passages, links }
    }

    /// The score of a passage that is none of these.
    pub(crate) fn score(&self, passage: &Profile, config: &SealConfig) -> Score {
        let linked = self.links.reach(passage, self.worth);
        let terms = [
            self.gap(passage, linked),
            self.corr(passage, linked),
            if linked { self.nov(passage) } else { 0.0 },
            self.red(passage),
            passage.relevance,
        ];
        Score::of(config, terms)
    }

    fn gap(&self, passage: &Profile, linked: bool) -> f64 {
        let (mut missing, mut closed) = (0.0, 0.0);
        for (need, weight) in self.worth.weights.iter().enumerate() {
            missing += weight * (1.0 - self.covered[need]);
            closed += weight * (covers(passage, need, linked, self.worth) - self.covered[need]).max(0.0);
        }
        for bridge in &self.bridges {
            missing += bridge.weight;
            closed += if passage.about.contains(bridge.key) { bridge.weight } else { 0.0 };
        }
        share(closed, missing)
    }

    fn corr(&self, passage: &Profile, linked: bool) -> f64 {
        let (mut covered, mut confirmed) = (0.0, 0.0);
        for (need, sources) in self.sources.iter().enumerate().filter(|(_, sources)| !sources.is_empty()) {
            let weight = self.worth.weights[need];
            covered += weight;
            let second = sources.len() == 1 && !sources.contains(passage.document.as_str());
            confirmed += if second && covers(passage, need, linked, self.worth) > 0.0 { weight } else { 0.0 };
        }
        share(confirmed, covered)
    }

    fn nov(&self, passage: &Profile) -> f64 {
        let weights = &self.worth.weights;
        let all: f64 = weights.iter().sum();
        let mut new: BTreeMap<&str, f64> = BTreeMap::new();
        for sentence in &passage.sentences {
            let needs = sentence.needs.iter().filter(|&&need| self.covered[need] > 0.0);
            let here = share(needs.map(|&need| weights[need]).sum(), all);
            for name in sentence.names.iter().filter(|name| !self.names.contains(name.as_str())) {
                let best = new.entry(name).or_default();
                *best = best.max(here);
            }
        }
        let x: f64 = new.values().sum();
        x / (1.0 + x)
    }

    fn red(&self, passage: &Profile) -> f64 {
        let all: f64 = passage.shingles.values().sum();
        let contained = |other: &&Profile| {
            let shared = passage.shingles.iter().filter(|(shingle, _)| other.shingles.contains_key(*shingle));
            share(shared.map(|(_, mass)| mass).sum(), all)
        };
        self.passages.iter().map(contained).fold(0.0, f64::max)
    }
}

/// The cover of a need by a passage.
fn covers(passage: &Profile, need: usize, linked: bool, worth: &Worth) -> f64 {
    if linked || worth.entity[need] { passage.cover[need] } else { 0.0 }
}

/// Finds the passages that have to do with the question, and their names.
fn link<'a>(passages: &[&'a Profile], worth: &'a Worth) -> (Links<'a>, Vec<bool>) {
    let leads = worth.missed.names.keys().map(String::as_str).collect();
    let (mut links, mut linked) = (Links { leads, ..Links::default() }, vec![false; passages.len()]);
    while let Some(at) = (0..passages.len()).find(|&at| !linked[at] && links.reach(passages[at], worth)) {
        linked[at] = true;
        links.topics.extend(passages[at].about.iter().map(String::as_str));
        let beside_needs = passages[at].sentences.iter().filter(|sentence| !sentence.needs.is_empty());
        links.leads.extend(beside_needs.flat_map(|sentence| &sentence.names).map(String::as_str));
    }
    (links, linked)
}

/// The names of passages that lead on: each with the greatest share of needs in a sentence with it, times its idf; with
/// all of its idf if another reader misses it. What one of the passages is about is found already.
fn bridges<'a>(passages: &[&'a Profile], topics: &BTreeSet<&str>, worth: &'a Worth) -> Vec<Bridge<'a>> {
    let weights = &worth.weights;
    let all: f64 = weights.iter().sum();
    let missed = worth.missed.names.iter().filter(|(key, _)| !topics.contains(key.as_str()));
    let missed = missed.map(|(key, (written, mass))| (key.as_str(), Bridge { key, written, weight: *mass }));
    let mut found: BTreeMap<&str, Bridge<'a>> = missed.collect();
    for passage in passages {
        for sentence in &passage.sentences {
            let here = share(sentence.needs.iter().map(|&need| weights[need]).sum(), all);
            for key in sentence.names.iter().filter(|key| here > 0.0 && !topics.contains(key.as_str())) {
                let (written, mass) = &passage.names[key];
                let bridge = Bridge { key, written, weight: here * mass };
                let best = found.entry(key).or_insert_with(|| bridge.clone());
                if bridge.weight > best.weight {
                    *best = bridge;
                }
            }
        }
    }
    let mut bridges: Vec<Bridge<'a>> = found.into_values().filter(|bridge| bridge.weight > 0.0).collect();
    bridges.sort_by(|a, b| heaviest_first((a.weight, a.key), (b.weight, b.key)));
    bridges.truncate(BRIDGES_MAX);
    bridges
}

/// `part / whole`, in [0, 1]; nothing of nothing is nothing.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}
