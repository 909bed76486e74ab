//! The loop of a repair, without the retrieval: it says what to search for and takes what was found.
//!
//! Source: arXiv 2512.10787, section 3.2: search, extract, assess, and while something is missing, micro-queries and
//! replacement.
//! Ends: after [`SealConfig::loops`] loops, or before, when the gate is satisfied or there is nothing left to ask.

use super::config::SealConfig;
use super::extraction::{Extraction, FINDINGS_MAX, Missed, Sufficiency};
use super::gaps::{Blocklist, Gap, MicroQuery, gaps, micro_queries};
use super::gate::{Verdict, judge};
use super::ledger::{Extract, Ledger};
use super::passage::Passage;
use super::score::{Profile, Worth};
use super::swap::{Beaten, How, Loss, State, Swap, fits};
use crate::error::{Error, Result};
use crate::normalize::share_of_best;
use crate::question::names::{self, Aliases};
use crate::question::{NeedKind, Needs, Reading};
use crate::rank::best_first;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A repair under way: [`next_queries`](Self::next_queries) and [`offer`](Self::offer) in turns, then
/// [`finish`](Self::finish).
///
/// ```
/// use cento_assembly::Reading;
/// use cento_assembly::seal::{Budget, Passage, Repair, SealConfig};
/// let passage = |id: &str, title: &str, text: &str, relevance| Passage {
///     id: id.into(), document: id.into(), title: title.into(), text: text.into(), n_tokens: 10, relevance,
/// };
/// let words = |text: &str| {
///     let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
///     words.filter(|word| word.len() > 3).collect()
/// };
/// let reading = Reading { terms: &words, idf: &|_| 1.0, sentences: &|text| vec![0..text.len()] };
/// let config = SealConfig { budget: Budget::Items(2), ..SealConfig::default() };
/// let first = vec![
///     passage("a", "Night Train", "Night Train is a film directed by Ada Quist.", 0.9),
///     passage("b", "Film", "A film has a director.", 0.8),
/// ];
/// let mut repair = Repair::new("Where was the director of Night Train born?", &config, first, reading)?;
/// let queries = repair.next_queries();
/// assert!(queries[0].text.starts_with("Ada Quist"));
/// let found = passage("c", "Ada Quist", "Ada Quist, a director, was born in Oslo.", 0.7);
/// repair.offer(queries.iter().map(|_| vec![found.clone()]).collect())?;
/// assert!(repair.next_queries().is_empty());
/// assert_eq!(repair.finish().kept, ["a", "c"]);
/// # Ok::<(), cento_assembly::Error>(())
/// ```
#[derive(Debug)]
pub struct Repair<'a> {
    config: SealConfig,
    reading: Reading<'a>,
    needs: Needs,
    worth: Worth,
    aliases: Aliases,
    /// Relevance to the question, of all that the question found.
    relevance: BTreeMap<String, f64>,
    passages: Vec<Passage>,
    extracts: Vec<Extract>,
    profiles: Vec<Profile>,
    by_id: BTreeMap<String, usize>,
    /// Passages that another reader has told of.
    told: BTreeSet<usize>,
    state: State,
    blocklist: Blocklist,
    blocked_titles: BTreeSet<String>,
    /// Ids of the passages with such titles.
    blocked: BTreeSet<String>,
    loops: Vec<LoopRecord>,
    asked: Vec<MicroQuery>,
    stopped: Stopped,
}

/// One loop: its gaps, queries and replacements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopRecord {
    /// From 1.
    pub number: usize,
    /// Ids of what is kept before the loop, in the order of their places.
    pub kept: Vec<String>,
    /// The facts of these.
    pub ledger: Ledger,
    /// The gate, before the loop.
    pub verdict: Verdict,
    /// The gaps before the loop.
    pub gaps: Vec<Gap>,
    /// The queries.
    pub queries: Vec<MicroQuery>,
    /// Ids of the passages that each query found and nobody had seen.
    pub found: Vec<Vec<String>>,
    /// The replacements.
    pub swaps: Vec<Swap>,
}

/// Why a repair ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stopped {
    /// All loops were run.
    Loops,
    /// The gate was satisfied.
    Sufficient,
    /// Every query that could be made was asked before, found nothing new or is blocked.
    Stuck,
}

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Repair")]
pub struct Outcome {
    /// Ids of what is kept, in the order of their places.
    pub kept: Vec<String>,
    /// Their tokens.
    pub n_tokens: usize,
    /// The thing asked for.
    pub needs: Needs,
    /// Every loop.
    pub loops: Vec<LoopRecord>,
    /// The gate, at the end.
    pub verdict: Verdict,
    /// The gaps that are left.
    pub gaps: Vec<Gap>,
    /// The facts of the kept passages.
    pub ledger: Ledger,
    /// Why it ended.
    pub stopped: Stopped,
    /// The passages that were looked at and are not kept, by id, with what beat them.
    pub lost: Vec<Loss>,
    /// Where nothing is kept, as nothing fits whole: id of the best passage that may be, which can be cut.
    pub to_cut: Option<String>,
}

impl<'a> Repair<'a> {
    /// Reads the question and keeps the most relevant of what it found. The order of `first` does not matter.
    ///
    /// # Errors
    /// [`Error::Range`] for a setting out of its range; [`Error::Candidate`] for a passage that is there twice or whose
    /// relevance is not finite; [`Error::NotFinite`] if a term of the question has no finite idf.
    pub fn new(question: &str, config: &SealConfig, first: Vec<Passage>, reading: Reading<'a>) -> Result<Self> {
        let config = config.checked()?.clone();
        let first = ranked(first)?;
        let mut ids = BTreeSet::new();
        if let Some(again) = first.iter().find(|passage| !ids.insert(&passage.id)) {
            return Err(Error::Candidate { id: again.id.clone(), reason: "is there twice" });
        }
        let blocked_titles: BTreeSet<String> = config.blocked_titles.iter().map(|title| names::key(title)).collect();
        let (blocked, first): (Vec<Passage>, Vec<Passage>) =
            first.into_iter().partition(|passage| blocked_titles.contains(&names::key(&passage.title)));
        let relevance = share_of_best(&first.iter().map(|passage| passage.relevance).collect::<Vec<_>>())?;
        let relevance = first.iter().map(|passage| passage.id.clone()).zip(relevance).collect();
        let titles: Vec<&str> =
            first.iter().map(|passage| passage.title.as_str()).filter(|title| !title.is_empty()).collect();
        let needs = Needs::read(question, &titles, &Aliases::default(), &reading);
        let worth = Worth::of(&needs);
        if let Some(at) = worth.weights.iter().position(|weight| !weight.is_finite() || *weight < 0.0) {
            return Err(Error::NotFinite {
                what: format!("the idf of `{}`, or one not negative,", needs.needs[at].text),
            });
        }
        let mut repair = Self {
            reading,
            needs,
            worth,
            aliases: Aliases::default(),
            relevance,
            passages: Vec::new(),
            extracts: Vec::new(),
            profiles: Vec::new(),
            by_id: BTreeMap::new(),
            told: BTreeSet::new(),
            state: State::default(),
            blocklist: Blocklist {
                asked: vec![(reading.terms)(question).into_iter().collect()],
                terms: config.blocked_keywords.iter().flat_map(|word| (reading.terms)(word)).collect(),
                ..Blocklist::default()
            },
            blocked_titles,
            blocked: blocked.into_iter().map(|passage| passage.id).collect(),
            loops: Vec::new(),
            asked: Vec::new(),
            stopped: Stopped::Loops,
            config,
        };
        repair.take_first(first);
        Ok(repair)
    }

    /// Takes the question's own ranking: as much as is kept, and the next `candidates` beside it.
    fn take_first(&mut self, first: Vec<Passage>) {
        let (mut kept, mut beside, mut beaten) = (Vec::new(), 0, BTreeMap::new());
        for passage in first {
            let held = kept.iter().map(|&at: &usize| &self.passages[at]);
            let held = held.map(|passage| (passage.document.as_str(), passage.n_tokens));
            if fits(&self.config, self.config.budget_in(0), held, (&passage.document, passage.n_tokens)) {
                kept.push(self.take(passage));
            } else if beside < self.config.candidates {
                beside += 1;
                let by = kept.last().map(|&by| (by, None));
                let how = if by.is_some() { How::LessRelevant } else { How::NoRoom };
                beaten.insert(self.take(passage), Beaten { number: 0, how, score: None, by });
            }
        }
        self.profile();
        self.state = State { beaten, ..State::first(kept) };
    }

    /// Loops that may still come; 0 when the repair is over.
    pub fn n_loops_left(&self) -> usize {
        if self.stopped == Stopped::Loops { self.config.loops - self.loops.len() } else { 0 }
    }

    /// The kept passages, in the order of their places.
    pub fn kept(&self) -> impl Iterator<Item = &Passage> {
        self.state.kept.iter().map(|&at| &self.passages[at])
    }

    /// The kept passages that no reader but the patterns has told of.
    pub fn untold(&self) -> impl Iterator<Item = &Passage> {
        self.state.kept.iter().filter(|at| !self.told.contains(at)).map(|&at| &self.passages[at])
    }

    /// Adds to what the patterns found what another reader says of passages, by id, as far as they say it themselves;
    /// how many of its findings are dropped. What is said of a passage that was never offered is dropped whole.
    pub fn tell(&mut self, said: &[(String, Extraction)]) -> usize {
        let mut n_dropped = 0;
        for (id, said) in said {
            let Some(&at) = self.by_id.get(id) else {
                n_dropped += said.len();
                continue;
            };
            n_dropped += self.extracts[at].add(&self.passages[at], said, &mut self.aliases, &self.reading);
            self.told.insert(at);
        }
        self.profile();
        n_dropped
    }

    /// Takes what another reader thinks of what is kept; how many of the things it misses neither the question asks for
    /// nor the ledger has, which are dropped.
    ///
    /// The gate stays beside it: the repair goes on while either misses something. A judge that is satisfied too soon
    /// would lose the second hop for good, one that never is costs a search, for nothing is replaced unless it is
    /// better by epsilon. And the gate counts words: where a passage says it in others, the judge knows better what to
    /// search for, not when to stop.
    pub fn judged(&mut self, said: &Sufficiency) -> usize {
        self.worth.missed = Missed::default();
        if said.sufficient {
            return 0;
        }
        let ledger = self.ledger();
        let known = said.missing.iter().take(FINDINGS_MAX);
        let known = known.filter(|missing| self.worth.missed.add(missing, &self.needs, &ledger, &self.reading));
        said.missing.len() - known.count()
    }

    /// The gate, the gaps, and what to search for now; nothing when the repair is over.
    ///
    /// # Panics
    /// If what the last queries found was not offered.
    pub fn next_queries(&mut self) -> Vec<MicroQuery> {
        assert!(self.asked.is_empty(), "{} micro-queries wait for what they found", self.asked.len());
        if self.n_loops_left() == 0 {
            return Vec::new();
        }
        let (verdict, gaps, ledger) = self.assess();
        if verdict.sufficient && self.worth.missed.is_empty() {
            self.stopped = Stopped::Sufficient;
            return Vec::new();
        }
        let queries = micro_queries(&self.needs, &gaps, self.config.queries, &mut self.blocklist, &self.reading);
        if queries.is_empty() {
            self.stopped = Stopped::Stuck;
            return Vec::new();
        }
        self.asked.clone_from(&queries);
        let number = self.loops.len() + 1;
        let kept = self.kept().map(|passage| passage.id.clone()).collect();
        let (queries_of, found, swaps) = (queries.clone(), Vec::new(), Vec::new());
        self.loops.push(LoopRecord { number, kept, ledger, verdict, gaps, queries: queries_of, found, swaps });
        queries
    }

    /// Takes what the last queries found, a list for each, and replaces what is worse.
    ///
    /// # Errors
    /// [`Error::Candidate`] for a passage whose relevance is not finite.
    ///
    /// # Panics
    /// If there are not as many lists as queries.
    pub fn offer(&mut self, found: Vec<Vec<Passage>>) -> Result<()> {
        assert_eq!(found.len(), self.asked.len(), "one list for each micro-query");
        let found = found.into_iter().map(ranked).collect::<Result<Vec<_>>>()?;
        let mut new: Vec<Vec<String>> = vec![Vec::new(); found.len()];
        for (query, list) in found.into_iter().enumerate() {
            for passage in list.into_iter().take(self.config.candidates) {
                if self.is_blocked(&passage) {
                    self.blocked.insert(passage.id);
                } else if !self.by_id.contains_key(&passage.id) {
                    new[query].push(passage.id.clone());
                    let beaten = Beaten { number: self.loops.len(), how: How::NoRoom, score: None, by: None };
                    let at = self.take(passage);
                    self.state.beaten.insert(at, beaten);
                }
            }
        }
        let asked = std::mem::take(&mut self.asked);
        let in_vain = asked.into_iter().zip(&new).filter(|(_, new)| new.is_empty()).map(|(query, _)| query.target);
        self.blocklist.stuck.extend(in_vain);
        self.profile();
        let pool: Vec<usize> = (0..self.profiles.len()).collect();
        let record = self.loops.last_mut().expect("queries were asked");
        record.swaps = self.state.repair(record.number, &pool, &self.profiles, &self.worth, &self.config);
        record.found = new;
        self.worth.missed = Missed::default();
        Ok(())
    }

    /// Ends the repair: the kept passages and the way to them.
    pub fn finish(self) -> Outcome {
        let (verdict, gaps, ledger) = self.assess();
        let kept = self.state.kept.iter().map(|&kept| self.passages[kept].id.clone()).collect();
        let n_tokens = self.state.n_tokens(&self.profiles);
        let (lost, best) = (self.lost(), self.passages.first().map(|best| best.id.clone()));
        let to_cut = best.filter(|_| self.state.kept.is_empty());
        let (needs, loops, stopped) = (self.needs, self.loops, self.stopped);
        Outcome { kept, n_tokens, needs, loops, verdict, gaps, ledger, stopped, lost, to_cut }
    }

    fn lost(&self) -> Vec<Loss> {
        let id = |at: usize| self.passages[at].id.clone();
        let beaten = self.state.beaten.iter().map(|(&at, &Beaten { number, how, score, by })| Loss {
            id: id(at),
            number,
            how,
            score,
            by: by.map(|(by, _)| id(by)),
            by_score: by.and_then(|(_, score)| score),
        });
        let blocked =
            |id: &String| Loss { id: id.clone(), number: 0, how: How::Blocked, score: None, by: None, by_score: None };
        let mut lost: Vec<Loss> = beaten.chain(self.blocked.iter().map(blocked)).collect();
        lost.sort_by(|a, b| a.id.cmp(&b.id));
        lost
    }

    fn assess(&self) -> (Verdict, Vec<Gap>, Ledger) {
        let ledger = self.ledger();
        let kept: Vec<_> =
            self.state.kept.iter().map(|&at| (&self.passages[at], &self.extracts[at], &self.profiles[at])).collect();
        let verdict = judge(&self.needs, &self.worth, &kept, &self.aliases, &self.reading, &self.config);
        let gaps = gaps(&self.needs, &self.state.others(None, &self.profiles, &self.worth));
        (verdict, gaps, ledger)
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        for &kept in &self.state.kept {
            ledger.add(&self.passages[kept], &self.extracts[kept], &self.aliases);
        }
        ledger
    }

    fn is_blocked(&self, passage: &Passage) -> bool {
        self.blocked_titles.contains(&names::key(&passage.title))
    }

    /// Reads a passage that was not seen before.
    fn take(&mut self, passage: Passage) -> usize {
        let extract = Extract::read(&passage, &self.reading);
        self.aliases.learn(&passage.text, &extract.mentions);
        let at = self.passages.len();
        self.by_id.insert(passage.id.clone(), at);
        self.passages.push(passage);
        self.extracts.push(extract);
        at
    }

    /// Profiles of all passages, by what names are known to mean now.
    fn profile(&mut self) {
        for need in self.needs.needs.iter_mut().filter(|need| need.kind == NeedKind::Entity) {
            need.key = self.aliases.key(&need.key);
        }
        let relevance = |passage: &Passage| self.relevance.get(&passage.id).copied().unwrap_or(0.0);
        let of = |(passage, extract): (&Passage, &Extract)| {
            Profile::new(passage, extract, relevance(passage), &self.needs, &self.aliases, &self.reading)
        };
        self.profiles = self.passages.iter().zip(&self.extracts).map(of).collect();
    }
}

/// Best first.
fn ranked(mut passages: Vec<Passage>) -> Result<Vec<Passage>> {
    if let Some(wrong) = passages.iter().find(|passage| !passage.relevance.is_finite()) {
        return Err(Error::Candidate { id: wrong.id.clone(), reason: "its relevance is not a finite number" });
    }
    passages.sort_by(|a, b| best_first((a.relevance, &a.id), (b.relevance, &b.id)));
    Ok(passages)
}
