//! The walk of `cento`: the best segments are admitted as they are counted, and what the count leaves is filled.

use super::problem::{Same, least_likelihood, problem, relevant, weighed};
use super::rules::Rules;
use crate::budget::cut::{Reader, sentences_beside};
use crate::budget::{Ledger, Quote};
use crate::error::Result;
use crate::optimum::{self, NODES_MAX, Optimum, Problem};
use crate::pack::Excerpt;
use crate::rank::best_first;
use crate::select::chooser::{Choice, First, Selection, Verdict, admit_first, kept, quoted};
use crate::select::decision::{Certificate, Reason, Stage, StepDetails};
use crate::stop::check;
use crate::value::prior::Scored;
use std::collections::HashMap;

/// Share of the budget from which nothing more is cut to fill it.
const SPENT: f64 = 0.97;

/// Chunks that are tried for a part that fills the budget.
const PARTS_MAX: usize = 16;

/// Chooses from the pool, which is in the order of `scored.score`; `scored.raw` is the likelihood with priors.
pub(super) fn walk(
    rules: &Rules<'_>,
    choice: &Choice<'_>,
    ledger: &mut Ledger<'_>,
    firsts: &[First],
) -> Result<Selection> {
    let &Choice { pool, lines, similarity, .. } = choice;
    let mut verdicts: HashMap<usize, Verdict> = HashMap::with_capacity(pool.len().min(rules.settings.candidates));
    for first in firsts.iter().filter(|first| !first.included) {
        verdicts.insert(first.excerpt.candidate, admit_first(ledger, first));
    }
    let must: Vec<usize> = firsts.iter().filter(|first| first.included).map(|first| first.excerpt.candidate).collect();
    let relevant = relevant(ledger.candidates(), lines, rules);
    let weighed = weighed(pool, &relevant, rules, &verdicts, &must);
    let least = least_likelihood(pool, rules);
    let same = Same::new(lines, &weighed, rules, similarity);
    let is_must = |place: usize| must.contains(&lines.candidates[place]);
    let conflict = |a: usize, b: usize| !(is_must(a) && is_must(b)) && same.is_same(a, b);
    let mut problem = problem(&weighed, choice, ledger, rules, &conflict)?;
    problem.force(must.iter().map(|&candidate| lines.place(candidate)).collect());
    let solved = optimum::solve(&problem, NODES_MAX)?;

    let densities = problem.densities();
    let mut admission = Admission { problem: &problem, densities, ledger, verdicts, admitted: Vec::new() };
    admission.include(firsts);
    admission.admit_all(solved.chosen.iter().map(|&place| lines.candidates[place]).collect());
    admission.ledger.settle();
    admission.fill(&weighed, solved.multiplier, &same)?;
    let left = admission.ledger.left();
    admission.fill_with_parts(&weighed, &choice.reader, &same)?;
    let verdicts = pool
        .iter()
        .map(|scored| admission.decided(scored, relevant[scored.candidate], least, solved.multiplier, rules))
        .collect();
    let admitted = admission.admitted;
    let needs = problem.need_weights();
    let certificate = Some(certificate(solved, &mut problem, &admitted, left)?);
    Ok(Selection { verdicts, needs, certificate, ..Selection::default() })
}

/// The candidates admitted so far, and the verdicts so far.
struct Admission<'s, 'a> {
    problem: &'s Problem<'s>,
    /// Worth per token, by place.
    densities: Vec<f64>,
    ledger: &'s mut Ledger<'a>,
    verdicts: HashMap<usize, Verdict>,
    admitted: Vec<usize>,
}

impl Admission<'_, '_> {
    /// Admits the candidates that must be delivered.
    fn include(&mut self, firsts: &[First]) {
        for first in firsts.iter().filter(|first| first.included) {
            self.admitted.push(first.excerpt.candidate);
            self.verdicts.insert(first.excerpt.candidate, admit_first(self.ledger, first));
        }
    }

    /// Chosen ones, the densest first.
    fn admit_all(&mut self, chosen: Vec<usize>) {
        for candidate in self.densest_first(chosen) {
            if !self.admitted.contains(&candidate) {
                self.admit(candidate);
            }
        }
    }

    /// Fills the room that the count of the whole leaves: the rest by value per token, where it breaks nothing.
    fn fill(&mut self, weighed: &[usize], price: f64, same: &Same<'_>) -> Result<()> {
        let lines = self.problem.lines;
        let rest = weighed.iter().copied().filter(|candidate| !self.admitted.contains(candidate)).collect();
        for candidate in self.densest_first(rest) {
            check(self.problem.stop)?;
            let place = lines.place(candidate);
            let quote = self.ledger.quote(&[Excerpt { candidate, part: None }]);
            let dearer = |value: f64, quote: &Quote| value < price * quote.needed as f64;
            let value = self.gain(candidate);
            let verdict = if value <= 0.0 {
                let details = StepDetails { value: Some(value), ..StepDetails::default() };
                Some(Verdict::new(Stage::Walk, Reason::LowRelevance, details))
            } else if let Some(quote) = quote.err().filter(|quote| dearer(value, quote)) {
                Some(Verdict::over_budget(Stage::Walk, self.ledger, quote)) // whatever else stands against it
            } else {
                let mut with: Vec<usize> =
                    self.admitted.iter().map(|&other| lines.place(other)).chain([place]).collect();
                with.sort_unstable();
                refused(place, &with, self.problem, same, self.ledger)
            };
            match verdict {
                Some(verdict) => drop(self.verdicts.insert(candidate, verdict)),
                None => self.admit(candidate),
            }
        }
        Ok(())
    }

    /// Spends what whole chunks leave on sentences of the next ones, the densest first, until [`SPENT`] of the budget
    /// is spent or [`PARTS_MAX`] were tried. A part counts for nothing in the value of the choice.
    fn fill_with_parts(&mut self, weighed: &[usize], reader: &Reader<'_>, same: &Same<'_>) -> Result<()> {
        let lines = self.problem.lines;
        let kept_out = |candidate: &usize| {
            self.verdicts.get(candidate).is_some_and(|verdict| verdict.last == Reason::BudgetExceeded)
        };
        let rest = weighed.iter().copied().filter(kept_out).collect();
        let mut parts: Vec<usize> = Vec::new();
        for candidate in self.densest_first(rest).into_iter().take(PARTS_MAX) {
            check(self.problem.stop)?;
            if self.ledger.used() as f64 >= SPENT * self.ledger.budget() as f64 {
                break;
            }
            let place = lines.place(candidate);
            let delivered = self.admitted.iter().chain(&parts);
            let mut with: Vec<usize> = delivered.map(|&other| lines.place(other)).chain([place]).collect();
            with.sort_unstable();
            if self.admitted.is_empty() || refused(place, &with, self.problem, same, self.ledger).is_some() {
                continue;
            }
            let Some(part) = sentences_beside(self.ledger, candidate, reader) else { continue };
            if let Ok(quote) = self.ledger.admit(&part) {
                let details = StepDetails { kept: kept(self.ledger, &part), ..quoted(self.ledger, quote) };
                let (stage, first, last) = (Stage::Walk, Reason::BudgetExceeded, Reason::CutToFit);
                self.verdicts.insert(candidate, Verdict { stage, first, last, details });
                parts.push(candidate);
            }
        }
        Ok(())
    }

    fn admit(&mut self, candidate: usize) {
        let value = self.gain(candidate);
        let verdict = match self.ledger.offer(&[Excerpt { candidate, part: None }]) {
            Ok(quote) => {
                self.admitted.push(candidate);
                let details = StepDetails { value: Some(value), ..quoted(self.ledger, quote) };
                Verdict::new(Stage::Walk, Reason::PassedAllGates, details)
            }
            Err(quote) => Verdict::over_budget(Stage::Walk, self.ledger, quote),
        };
        self.verdicts.insert(candidate, verdict);
    }

    fn densest_first(&self, mut candidates: Vec<usize>) -> Vec<usize> {
        let density = |candidate: usize| self.densities[self.problem.lines.place(candidate)];
        let key = |candidate: usize| (density(candidate), &self.ledger.candidates()[candidate].id);
        candidates.sort_by(|&a, &b| best_first(key(a), key(b)));
        candidates
    }

    /// The value that a candidate adds to the admitted ones: its own, and the needs that only it meets.
    fn gain(&self, candidate: usize) -> f64 {
        let lines = self.problem.lines;
        self.problem.gain(lines.place(candidate), &|other| self.admitted.contains(&lines.candidates[other]))
    }

    /// The verdict about a candidate of the pool, after all.
    fn decided(&mut self, scored: &Scored, relevant: bool, least: f64, price: f64, rules: &Rules<'_>) -> Verdict {
        let &Scored { candidate, raw, .. } = scored;
        let unweighed = || {
            let is_neighbor = self.ledger.candidates()[candidate].is_neighbor;
            let none = StepDetails::default();
            let (reason, details) = if relevant && raw < least {
                (Reason::Unlikely, StepDetails { likelihood: Some(raw), min_likelihood: Some(least), ..none })
            } else if relevant {
                let chunks_limit = Some(rules.settings.candidates);
                (Reason::BeyondCandidates, StepDetails { chunks_limit, ..none })
            } else if is_neighbor {
                (Reason::NotProposed, none)
            } else {
                (Reason::LowRelevance, StepDetails { min_relevance: rules.gates.min_relevance, ..none })
            };
            Verdict::new(Stage::Pool, reason, details)
        };
        let mut verdict = self.verdicts.remove(&candidate).unwrap_or_else(unweighed);
        if verdict.last == Reason::BudgetExceeded {
            verdict.details.value = Some(self.gain(candidate));
            let needed = verdict.details.tokens_needed.unwrap_or(0);
            verdict.details.value_needed = Some(price * needed as f64);
            verdict.details.budget_needed = verdict.details.tokens_used.map(|used| used + needed);
        }
        let place = self.problem.lines.place(candidate);
        let tokens = self.problem.tokens[place] + self.problem.opening[place];
        verdict.details.value_tokens = verdict.details.value.map(|_| tokens as usize);
        verdict
    }
}

/// Why a chunk cannot be added, but for the budget. `with` are the places with it, ascending.
fn refused(
    place: usize,
    with: &[usize],
    problem: &Problem<'_>,
    same: &Same<'_>,
    ledger: &Ledger<'_>,
) -> Option<Verdict> {
    let (lines, candidates) = (problem.lines, ledger.candidates());
    let value = Some(problem.values[place]);
    let details = StepDetails { value, ..StepDetails::default() };
    if let Some(&partner) = with.iter().find(|&&other| other != place && same.is_same(place, other)) {
        let alike = same.similarity.alike(lines.candidates[place], lines.candidates[partner]);
        let details = StepDetails {
            overlap: Some(alike.containment),
            cosine: alike.cosine,
            partner: Some(candidates[lines.candidates[partner]].id.clone()),
            ..details
        };
        return Some(Verdict::new(Stage::Walk, Reason::TooRedundant, details));
    }
    if let Some(cap) = problem.caps.iter().find(|cap| cap.has(place) && !cap.holds(with, problem)) {
        let members = || with.iter().filter(|other| **other != place && cap.has(**other));
        let tokens = || members().map(|&other| problem.tokens[other]).sum::<i64>();
        if let Some(max) = cap.tokens_max.filter(|max| tokens() + problem.tokens[place] > *max) {
            let details = StepDetails {
                section_used: Some(tokens() as usize),
                section_needed: Some(problem.tokens[place] as usize),
                section_limit: Some(max as usize),
                ..details
            };
            return Some(Verdict::new(Stage::Walk, Reason::SectionBudgetExceeded, details));
        }
        let section = |at: usize| &candidates[lines.candidates[at]].section;
        let of_section = cap.places.iter().all(|&other| section(other) == section(place));
        let reason = if of_section { Reason::SectionChunksExceeded } else { Reason::DocumentChunksExceeded };
        let details = StepDetails { chunks_used: Some(members().count()), chunks_limit: cap.chunks_max, ..details };
        return Some(Verdict::new(Stage::Walk, reason, details));
    }
    (!problem.runs_hold(with)).then(|| {
        let details = StepDetails { chunks_limit: problem.run_max, ..details };
        Verdict::new(Stage::Walk, Reason::RunTooLong, details)
    })
}

/// The distance of the admitted set, which leaves so many tokens, to the best. Where the whole counts fewer tokens than
/// its parts, the bound is that of a budget which is larger by as many: others may save as much.
fn certificate(mut solved: Optimum, problem: &mut Problem<'_>, admitted: &[usize], left: i64) -> Result<Certificate> {
    let mut places: Vec<usize> = admitted.iter().map(|&candidate| problem.lines.place(candidate)).collect();
    places.sort_unstable();
    let saved = problem.cost(&places) - (problem.budget - left);
    if saved > 0 {
        problem.budget += saved;
        solved.bound = optimum::solve(problem, NODES_MAX)?.bound;
    }
    let value = problem.value(&places);
    let bound = solved.bound.max(value);
    Ok(Certificate { value, bound, gap: optimum::gap(value, bound), n_relaxations: solved.n_nodes, of_part: false })
}
