//! The problem that `cento` poses to the optimiser: which chunks are weighed, what they cost and are worth, and what
//! must not be together.

use super::rules::Rules;
use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::error::Result;
use crate::line::Lines;
use crate::optimum::{Cap, Need, Problem};
use crate::pack::Excerpt;
use crate::select::chooser::{Choice, Verdict};
use crate::select::redundancy::Gate;
use crate::select::similarity::Similarity;
use crate::stop::check;
use crate::value::prior::Scored;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

/// The least likelihood with which a candidate of a pool is weighed.
pub(super) fn least_likelihood(pool: &[Scored], rules: &Rules<'_>) -> f64 {
    rules.settings.least_share / pool.len().max(1) as f64
}

/// Candidates that are weighed: those that must be chosen, and the first of the pool that are likely enough.
pub(super) fn weighed(
    pool: &[Scored],
    relevant: &[bool],
    rules: &Rules<'_>,
    verdicts: &HashMap<usize, Verdict>,
    must: &[usize],
) -> Vec<usize> {
    let free = |scored: &&Scored| !verdicts.contains_key(&scored.candidate) && !must.contains(&scored.candidate);
    let least = least_likelihood(pool, rules);
    let relevant = |scored: &&Scored| relevant[scored.candidate] && scored.raw >= least;
    let likeliest = pool.iter().filter(relevant).filter(free).take(rules.settings.candidates);
    must.iter().copied().chain(likeliest.map(|scored| scored.candidate)).collect()
}

/// By candidate, whether the policy's least relevance lets it in; a chunk that only stands beside what was found is let
/// in with any chunk of its run.
pub(super) fn relevant(candidates: &[&Candidate], lines: &Lines, rules: &Rules<'_>) -> Vec<bool> {
    let Some(least) = rules.gates.min_relevance else { return vec![true; candidates.len()] };
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

/// The choice among the weighed candidates, of which the others are out.
pub(super) fn problem<'p>(
    weighed: &[usize],
    &Choice { lines, needs, stop, .. }: &Choice<'p>,
    ledger: &mut Ledger<'_>,
    rules: &Rules<'_>,
    conflict: &'p dyn Fn(usize, usize) -> bool,
) -> Result<Problem<'p>> {
    let n = lines.len();
    let (mut values, mut tokens) = (vec![0.0; n], vec![0; n]);
    let (mut opening, mut reopening) = (vec![0; n], vec![0; n]);
    let mut is_out = vec![true; n];
    for &candidate in weighed {
        check(stop)?; // before a text is counted
        let place = lines.place(candidate);
        is_out[place] = false;
        tokens[place] = ledger.text_tokens(&Excerpt { candidate, part: None });
        (opening[place], reopening[place]) = ledger.frame_tokens(candidate);
        values[place] = ledger.score(candidate) * (tokens[place] + opening[place]) as f64;
    }
    let worth = |&candidate: &usize| values[lines.place(candidate)];
    let needs = needs.iter().map(|covered| {
        let by = || covered.by.iter().filter(|candidate| !is_out[lines.place(**candidate)]);
        let best = by().map(worth).fold(0.0, f64::max);
        let mut places: Vec<usize> = by().map(|&candidate| lines.place(candidate)).collect();
        places.sort_unstable();
        Need { weight: rules.settings.coverage * covered.share * best, places }
    });
    let needs = needs.collect();
    Ok(Problem {
        lines,
        values,
        tokens,
        opening,
        reopening,
        budget: ledger.left(),
        run_max: rules.settings.run_max,
        caps: caps(weighed, ledger, lines, rules),
        needs,
        conflict,
        must: Vec::new(),
        must_not: (0..n).filter(|&place| is_out[place]).collect(),
        stop,
    })
}

/// The most that documents and sections may have of the context.
fn caps(weighed: &[usize], ledger: &Ledger<'_>, lines: &Lines, rules: &Rules<'_>) -> Vec<Cap> {
    let candidates = ledger.candidates();
    let mut documents: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut sections: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut shares: BTreeMap<&str, (Vec<usize>, Option<usize>)> = BTreeMap::new();
    for &candidate in weighed {
        let place = lines.place(candidate);
        documents.entry(&candidates[candidate].document).or_default().push(place);
        sections.entry(&candidates[candidate].section).or_default().push(place);
        let share = shares.entry(rules.gates.sections.sharing(candidates[candidate])).or_default();
        share.0.push(place);
        share.1 = rules.gates.sections.limit(ledger, candidate);
    }
    let cap = |mut places: Vec<usize>, tokens_max: Option<usize>, chunks_max: Option<usize>| {
        places.sort_unstable();
        Cap { places, tokens_max: tokens_max.map(|max| max as i64), chunks_max }
    };
    let of_documents = documents.into_values().map(|places| cap(places, None, rules.gates.max_per_document));
    let of_sections = sections.into_values().map(|places| cap(places, None, rules.gates.max_per_section));
    let of_shares = shares.into_values().map(|(places, limit)| cap(places, limit, None));
    of_documents
        .chain(of_sections)
        .chain(of_shares)
        .filter(|cap| cap.tokens_max.is_some() || cap.chunks_max.is_some())
        .collect()
}

/// Tells which chunks say the same; each pair is compared once.
pub(super) struct Same<'a> {
    lines: &'a Lines,
    rules: &'a Rules<'a>,
    pub(super) similarity: &'a Similarity<'a>,
    /// Numbers of the weighed candidates, by place.
    numbers: Vec<Option<u32>>,
    /// Answers by pair of numbers, the greater one's row.
    known: Vec<Cell<Option<bool>>>,
}

impl<'a> Same<'a> {
    pub(super) fn new(
        lines: &'a Lines,
        weighed: &[usize],
        rules: &'a Rules<'a>,
        similarity: &'a Similarity<'a>,
    ) -> Self {
        let mut numbers = vec![None; lines.len()];
        for (number, &candidate) in (0_u32..).zip(weighed) {
            numbers[lines.place(candidate)] = Some(number);
        }
        let known = vec![Cell::new(None); weighed.len() * weighed.len().saturating_sub(1) / 2];
        Self { lines, rules, similarity, numbers, known }
    }

    /// The place of the answer about two places; none for one that is not weighed.
    fn pair(&self, a: usize, b: usize) -> Option<&Cell<Option<bool>>> {
        let (a, b) = (self.numbers[a]? as usize, self.numbers[b]? as usize);
        let (row, column) = (a.max(b), a.min(b));
        self.known.get(row * row.checked_sub(1)? / 2 + column)
    }

    /// Share of the shorter chunk's words in the other from which one is left out: of another document's half as much,
    /// as the chunks of a copy may be cut elsewhere, so that what one says lies in two.
    fn least_shared(&self, a: usize, b: usize) -> f64 {
        let is_copy = self.lines.document_number(a) != self.lines.document_number(b);
        self.rules.settings.same_words / if is_copy { 2.0 } else { 1.0 }
    }

    pub(super) fn is_same(&self, a: usize, b: usize) -> bool {
        if self.rules.gates.gate == Gate::None {
            return false;
        }
        let pair = self.pair(a, b);
        if let Some(known) = pair.and_then(Cell::get) {
            return known;
        }
        let (one, other) = (self.lines.candidates[a], self.lines.candidates[b]);
        let same = self.similarity.contain_each_other(one, other, self.least_shared(a, b))
            || self.similarity.cosine_of(one, other).is_some_and(|cosine| cosine >= self.rules.settings.same_meaning);
        pair.inspect(|pair| pair.set(Some(same)));
        same
    }
}
