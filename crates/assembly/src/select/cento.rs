//! Cento: the segments that hold most relevant text within the budget, with a bound on what any others could hold.
//!
//! A chunk is worth its likelihood (see [`crate::likelihood`] and [`crate::bridge`]) times the tokens that it costs alone, so that its length
//! by itself neither helps nor harms, and a chunk that touches a chosen one is the cheaper by a header. What the question needs (see [`crate::coverage`]) is worth something once. What is
//! worth most together is chosen by [`crate::optimum`]; two chunks that say the same are in conflict. Then everything is counted as delivered, and what the count
//! leaves is filled by what is worth most per token.
//!
//! Units: value in tokens of the budget's tokenizer, weighed by likelihood.
//! Cost: one token count for each chunk of the pool; see `optimum`.

use super::{Choice, First, Selection, Verdict, admit_first, quoted, section_limit};
use crate::bridge::{self, Bridge};
use crate::budget::{Ledger, Quote};
use crate::candidate::Candidate;
use crate::coverage::Covered;
use crate::curve::Curve;
use crate::error::Result;
use crate::likelihood;
use crate::line::Lines;
use crate::optimum::{self, Cap, NODES_MAX, Need, Optimum, Problem};
use crate::pack::Excerpt;
use crate::policy::{Gate, Policy};
use crate::prior::Scored;
use crate::redundancy::Similarity;
use crate::trace::{Certificate, Reason, Stage, StepDetails};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// Settings of [`Strategy::Cento`](crate::Strategy::Cento).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cento {
    /// Chunks that are weighed, the likeliest; the others are left out unread.
    pub candidates: usize,
    /// Most chunks in a row. None: no limit.
    pub run_max: Option<usize>,
    /// Share of the shorter chunk's three-word runs, weighed by idf, in another from which one of the two is left out, in (0, 1].
    pub same_words: f64,
    /// Cosine of two chunks' vectors from which one is left out, in (0, 1].
    pub same_meaning: f64,
    /// Whether a document that the question or likely text names is likely too.
    pub bridges: bool,
    /// What meeting every need of the question is worth, in chunks as good as the best that meets it; 0: needs are not looked at.
    pub coverage: f64,
    /// Support below which nothing is delivered, see [`crate::evidence`]; 0: something always is.
    pub min_support: f64,
}

/// What meeting every need is worth. A half gains little, four costs evidence where questions are long and answers lie in runs.
const COVERAGE: f64 = 2.0;

/// Support below which nothing is delivered.
const MIN_SUPPORT: f64 = 0.62;

impl Default for Cento {
    fn default() -> Self {
        Self {
            candidates: 400,
            run_max: None,
            same_words: 0.8,
            same_meaning: 0.98,
            bridges: true,
            coverage: COVERAGE,
            min_support: MIN_SUPPORT,
        }
    }
}

/// Likelihoods by candidate, and which of them a bridge lifted.
pub(crate) fn likelihoods(
    query: &str,
    candidates: &[&Candidate],
    lines: &Lines,
    settings: &Cento,
) -> Result<(Vec<f64>, Vec<Option<Bridge>>)> {
    let mut likelihoods = plain_likelihoods(candidates, lines)?;
    let bridges =
        if settings.bridges { bridge::lift(query, candidates, &mut likelihoods) } else { vec![None; candidates.len()] };
    Ok((likelihoods, bridges))
}

/// Likelihoods by candidate, without bridges.
pub(crate) fn plain_likelihoods(candidates: &[&Candidate], lines: &Lines) -> Result<Vec<f64>> {
    let scores: Vec<Option<f64>> =
        lines.candidates.iter().map(|&at| (!candidates[at].is_neighbor).then_some(candidates[at].relevance)).collect();
    let by_place = likelihood::likelihoods(lines, &scores)?;
    Ok((0..candidates.len()).map(|candidate| by_place[lines.place(candidate)]).collect())
}

/// Chooses from the pool, which is in the order of `scored.score`; `scored.raw` is the likelihood with priors.
pub(super) fn walk(choice: &Choice<'_>, ledger: &mut Ledger<'_>, firsts: &[First]) -> Selection {
    let &Choice { pool, lines, policy, similarity, needs, .. } = choice;
    ledger.clear();
    let mut selection = Selection::default();
    let mut verdicts: HashMap<usize, Verdict> = HashMap::new();
    for first in firsts.iter().filter(|first| !first.included) {
        verdicts.insert(first.excerpt.candidate, admit_first(ledger, first));
    }
    let must: Vec<usize> = firsts.iter().filter(|first| first.included).map(|first| first.excerpt.candidate).collect();
    let relevant = relevant(ledger.candidates(), lines, policy);
    let weighed = weighed(pool, &relevant, policy, &verdicts, &must);
    let same = Same::new(lines, policy, similarity);
    let is_must = |place: usize| must.contains(&lines.candidates[place]);
    let conflict = |a: usize, b: usize| !(is_must(a) && is_must(b)) && same.is_same(a, b);
    let mut problem = problem(&weighed, needs, ledger, lines, policy, &conflict);
    problem.force(must.iter().map(|&candidate| lines.place(candidate)).collect());
    let solved = optimum::solve(&problem, NODES_MAX);

    let mut chosen: Vec<usize> = solved.chosen.iter().map(|&place| lines.candidates[place]).collect();
    let densities = problem.densities();
    let density = |candidate: usize| densities[lines.place(candidate)];
    // What it adds to those: its own value, and the needs that only it meets.
    let gain = |candidate: usize, admitted: &[usize]| {
        problem.gain(lines.place(candidate), &|other| admitted.contains(&lines.candidates[other]))
    };
    chosen.sort_by(|&a, &b| density(b).total_cmp(&density(a)).then(a.cmp(&b)));
    let mut admitted: Vec<usize> = Vec::new();
    for first in firsts.iter().filter(|first| first.included) {
        admitted.push(first.excerpt.candidate);
        verdicts.insert(first.excerpt.candidate, admit_first(ledger, first));
    }
    for candidate in chosen {
        if admitted.contains(&candidate) {
            continue;
        }
        admit(candidate, gain(candidate, &admitted), ledger, &mut verdicts, &mut admitted);
    }
    // What the count of the whole leaves: the rest by value per token, where it breaks nothing.
    let mut rest: Vec<usize> = weighed.iter().copied().filter(|candidate| !admitted.contains(candidate)).collect();
    rest.sort_by(|&a, &b| density(b).total_cmp(&density(a)).then(a.cmp(&b)));
    for candidate in rest {
        let place = lines.place(candidate);
        let mut with: Vec<usize> = admitted.iter().map(|&other| lines.place(other)).chain([place]).collect();
        with.sort_unstable();
        let quote = ledger.quote(&[Excerpt { candidate, part: None }]);
        let price = |quote: &Quote| solved.multiplier * quote.needed as f64;
        let value = gain(candidate, &admitted);
        let verdict = if value <= 0.0 {
            let details = StepDetails { value: Some(value), ..StepDetails::default() };
            Some(Verdict::new(Stage::Walk, Reason::LowRelevance, details))
        } else if let Some(quote) = quote.err().filter(|quote| value < price(quote)) {
            Some(Verdict::over_budget(Stage::Walk, ledger, quote)) // whatever else stands against it
        } else {
            refused(place, &with, &problem, &same, ledger)
        };
        match verdict {
            Some(verdict) => drop(verdicts.insert(candidate, verdict)),
            None => admit(candidate, value, ledger, &mut verdicts, &mut admitted),
        }
    }
    let price = solved.multiplier;
    for scored in pool {
        let beyond = || {
            let details = StepDetails { chunks_limit: Some(policy.cento.candidates), ..StepDetails::default() };
            Verdict::new(Stage::Pool, Reason::BeyondCandidates, details)
        };
        let mut verdict = verdicts.remove(&scored.candidate).unwrap_or_else(|| match relevant[scored.candidate] {
            true => beyond(),
            false if ledger.candidates()[scored.candidate].is_neighbor => {
                Verdict::new(Stage::Pool, Reason::NotProposed, StepDetails::default())
            }
            false => {
                let details = StepDetails { min_relevance: policy.min_relevance, ..StepDetails::default() };
                Verdict::new(Stage::Pool, Reason::LowRelevance, details)
            }
        });
        if verdict.last == Reason::BudgetExceeded {
            verdict.details.value = Some(gain(scored.candidate, &admitted));
            let needed = verdict.details.tokens_needed.unwrap_or(0);
            verdict.details.value_needed = Some(price * needed as f64);
            verdict.details.budget_needed = verdict.details.tokens_used.map(|used| used + needed);
        }
        selection.verdicts.push(verdict);
    }
    selection.needs = problem.need_weights();
    selection.certificate = Some(certificate(solved, &mut problem, &admitted, ledger));
    selection
}

/// What the pool is worth at every budget up to the ledger's, solved at so many and at the knee.
pub(crate) fn curve(choice: &Choice<'_>, ledger: &mut Ledger<'_>, n_solved: usize) -> Curve {
    let &Choice { pool, lines, policy, similarity, needs, include, .. } = choice;
    let frame = ledger.used().max(0) as usize;
    let relevant = relevant(ledger.candidates(), lines, policy);
    let weighed = weighed(pool, &relevant, policy, &HashMap::new(), include);
    let same = Same::new(lines, policy, similarity);
    let is_must = |place: usize| include.contains(&lines.candidates[place]);
    let conflict = |a: usize, b: usize| !(is_must(a) && is_must(b)) && same.is_same(a, b);
    let mut problem = problem(&weighed, needs, ledger, lines, policy, &conflict);
    problem.force(include.iter().map(|&candidate| lines.place(candidate)).collect());
    let bounds = optimum::by_tokens(&problem).unwrap_or_default();
    let solve = |tokens: usize| {
        problem.budget = (tokens - frame) as i64;
        let solved = optimum::solve(&problem, NODES_MAX);
        Certificate { value: solved.value, bound: solved.bound, gap: solved.gap(), n_relaxations: solved.n_nodes }
    };
    Curve::new(frame, &bounds, n_solved, solve)
}

fn admit(
    candidate: usize,
    value: f64,
    ledger: &mut Ledger<'_>,
    verdicts: &mut HashMap<usize, Verdict>,
    admitted: &mut Vec<usize>,
) {
    let verdict = match ledger.offer(&[Excerpt { candidate, part: None }]) {
        Ok(quote) => {
            admitted.push(candidate);
            let details = StepDetails { value: Some(value), ..quoted(ledger, quote) };
            Verdict::new(Stage::Walk, Reason::PassedAllGates, details)
        }
        Err(quote) => Verdict::over_budget(Stage::Walk, ledger, quote),
    };
    verdicts.insert(candidate, verdict);
}

/// Candidates that are weighed: those that must be chosen, and the first of the pool.
fn weighed(
    pool: &[Scored],
    relevant: &[bool],
    policy: &Policy,
    verdicts: &HashMap<usize, Verdict>,
    must: &[usize],
) -> Vec<usize> {
    let free = |scored: &&Scored| !verdicts.contains_key(&scored.candidate) && !must.contains(&scored.candidate);
    let relevant = |scored: &&Scored| relevant[scored.candidate];
    let likeliest = pool.iter().filter(relevant).filter(free).take(policy.cento.candidates);
    must.iter().copied().chain(likeliest.map(|scored| scored.candidate)).collect()
}

/// By candidate, whether the policy's least relevance lets it in; a chunk that only stands beside what was found is let in with any
/// chunk of its run.
fn relevant(candidates: &[&Candidate], lines: &Lines, policy: &Policy) -> Vec<bool> {
    let Some(least) = policy.min_relevance else { return vec![true; candidates.len()] };
    let mut relevant = vec![false; candidates.len()];
    let mut first = 0;
    while first < lines.len() {
        let mut end = first + 1;
        while lines.touches(end) {
            end += 1;
        }
        let run = &lines.candidates[first..end];
        let enough = |at: usize| !candidates[at].is_neighbor && candidates[at].relevance >= least;
        let any = run.iter().any(|&at| enough(at));
        run.iter().for_each(|&at| relevant[at] = if candidates[at].is_neighbor { any } else { enough(at) });
        first = end;
    }
    relevant
}

fn problem<'p>(
    weighed: &[usize],
    needs: &[Covered],
    ledger: &mut Ledger<'_>,
    lines: &'p Lines,
    policy: &Policy,
    conflict: &'p dyn Fn(usize, usize) -> bool,
) -> Problem<'p> {
    let n = lines.len();
    let (mut values, mut tokens, mut headers) = (vec![0.0; n], vec![0; n], vec![0; n]);
    let mut is_out = vec![true; n];
    let mut gap = 0;
    for &candidate in weighed {
        let place = lines.place(candidate);
        is_out[place] = false;
        tokens[place] = ledger.text_tokens(&Excerpt { candidate, part: None });
        (headers[place], gap) = ledger.frame_tokens(candidate);
        values[place] = ledger.score(candidate) * (tokens[place] + headers[place]) as f64;
    }
    let worth = |&candidate: &usize| values[lines.place(candidate)];
    let needs = needs.iter().map(|covered| {
        let by = || covered.by.iter().filter(|candidate| !is_out[lines.place(**candidate)]);
        let best = by().map(worth).fold(0.0, f64::max);
        let mut places: Vec<usize> = by().map(|&candidate| lines.place(candidate)).collect();
        places.sort_unstable();
        Need { weight: policy.cento.coverage * covered.share * best, places }
    });
    let needs = needs.collect();
    Problem {
        lines,
        values,
        tokens,
        headers,
        mark: gap,
        budget: ledger.left(),
        run_max: policy.cento.run_max,
        caps: caps(weighed, ledger, lines, policy),
        needs,
        conflict,
        must: Vec::new(),
        must_not: (0..n).filter(|&place| is_out[place]).collect(),
    }
}

/// What documents and sections may have of the context.
fn caps(weighed: &[usize], ledger: &Ledger<'_>, lines: &Lines, policy: &Policy) -> Vec<Cap> {
    let candidates = ledger.candidates();
    let mut documents: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut sections: BTreeMap<&str, (Vec<usize>, Option<usize>)> = BTreeMap::new();
    for &candidate in weighed {
        let place = lines.place(candidate);
        documents.entry(&candidates[candidate].document).or_default().push(place);
        let section = sections.entry(&candidates[candidate].section).or_default();
        section.0.push(place);
        section.1 = section_limit(ledger, policy, candidate);
    }
    let cap = |mut places: Vec<usize>, tokens_max: Option<usize>, chunks_max: Option<usize>| {
        places.sort_unstable();
        Cap { places, tokens_max: tokens_max.map(|max| max as i64), chunks_max }
    };
    let of_documents = documents.into_values().map(|places| cap(places, None, policy.max_per_document));
    let of_sections = sections.into_values().map(|(places, limit)| cap(places, limit, policy.max_per_section));
    of_documents.chain(of_sections).filter(|cap| cap.tokens_max.is_some() || cap.chunks_max.is_some()).collect()
}

/// Which chunks say the same; each pair is compared once.
struct Same<'a> {
    lines: &'a Lines,
    policy: &'a Policy,
    similarity: &'a Similarity<'a>,
    known: RefCell<HashMap<(usize, usize), bool>>,
}

impl<'a> Same<'a> {
    fn new(lines: &'a Lines, policy: &'a Policy, similarity: &'a Similarity<'a>) -> Self {
        Self { lines, policy, similarity, known: RefCell::default() }
    }

    fn is_same(&self, a: usize, b: usize) -> bool {
        if self.policy.gate == Gate::None {
            return false;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.known.borrow().get(&key) {
            return known;
        }
        let alike = self.similarity.alike(self.lines.candidates[a], self.lines.candidates[b]);
        let same = alike.containment >= self.policy.cento.same_words
            || alike.cosine.is_some_and(|cosine| cosine >= self.policy.cento.same_meaning);
        self.known.borrow_mut().insert(key, same);
        same
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

/// How near what was admitted is to the best. Where the whole counts fewer tokens than its parts, the bound is that of a budget which
/// is larger by as many: others may save as much.
fn certificate(mut solved: Optimum, problem: &mut Problem<'_>, admitted: &[usize], ledger: &Ledger<'_>) -> Certificate {
    let mut places: Vec<usize> = admitted.iter().map(|&candidate| problem.lines.place(candidate)).collect();
    places.sort_unstable();
    let saved = problem.cost(&places) - (problem.budget - ledger.left());
    if saved > 0 {
        problem.budget += saved;
        solved.bound = optimum::solve(problem, NODES_MAX).bound;
    }
    let value = problem.value(&places);
    let bound = solved.bound.max(value);
    Certificate { value, bound, gap: optimum::gap(value, bound), n_relaxations: solved.n_nodes }
}
