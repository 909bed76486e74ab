//! Solutions fast: greedy by value per token, relaxed choices repaired, and local search by swaps until none helps.
//!
//! Source: Dantzig 1957 for the order by density; of it and the best single chunk first, the better one.
//! Cost: O(N) for what does not fit; what does is held against every chosen chunk.

use super::problem::{EPSILON, Fixed, Problem};

/// Chunks beside the chosen ones that swaps are tried with, those of most value per token.
const SWAP_WITH: usize = 48;

/// Swaps tried before a solution is left as it is.
const SWAPS_MAX: usize = 20_000;

/// Value of a set that is infeasible: less than any other.
const INFEASIBLE: f64 = f64::NEG_INFINITY;

/// A set of places with what it costs and is worth, kept up to date.
#[derive(Clone)]
pub(crate) struct Solution<'p> {
    problem: &'p Problem<'p>,
    /// Ascending.
    chosen: Vec<usize>,
    is_chosen: Vec<bool>,
    /// Chosen chunks that meet each need.
    meeting: Vec<u32>,
    cost: i64,
    /// [`INFEASIBLE`] if it breaks a constraint.
    value: f64,
}

/// By value per token until nothing fits, or the best single chunk first, whichever is worth more. Forced places go
/// first.
pub(crate) fn greedy<'p>(problem: &'p Problem<'p>, order: &[usize]) -> Solution<'p> {
    let start = Solution::of(problem, &problem.must);
    let mut best = start.clone();
    best.fill(order);
    let mut largest: Vec<usize> = order.to_vec();
    let singletons = problem.singletons();
    largest.sort_by(|&a, &b| singletons[b].total_cmp(&singletons[a]).then(a.cmp(&b)));
    let mut single = start;
    if largest.into_iter().any(|place| single.try_add(place)) && single.value > best.value {
        single.fill(order);
        best = single;
    }
    best
}

/// A relaxed choice without what makes it infeasible, filled up: the repair heuristic.
pub(crate) fn repaired<'p>(
    problem: &'p Problem<'p>,
    chosen: &[usize],
    fixed: &[Fixed],
    order: &[usize],
) -> Solution<'p> {
    let mut kept: Vec<usize> = chosen.to_vec();
    if !problem.is_feasible(chosen) {
        let free = |place: usize| fixed[place] != Fixed::In;
        let singletons = problem.singletons();
        kept.sort_by(|&a, &b| free(a).cmp(&free(b)).then(singletons[b].total_cmp(&singletons[a])).then(a.cmp(&b)));
        let mut solution = Solution::of(problem, &problem.must);
        solution.fill(&kept);
        solution.fill(order);
        return solution;
    }
    let mut solution = Solution::of(problem, &kept);
    solution.fill(order);
    solution
}

/// Places that may be chosen, those of most value per token first, equal ones by place; none that is worth nothing.
pub(crate) fn by_density(problem: &Problem<'_>) -> Vec<usize> {
    let density = problem.densities();
    let mut order: Vec<usize> = (0..problem.len()).filter(|place| density[*place] > 0.0).collect();
    order.retain(|place| problem.must_not.binary_search(place).is_err());
    order.sort_by(|&a, &b| density[b].total_cmp(&density[a]).then(a.cmp(&b)));
    order
}

impl<'p> Solution<'p> {
    /// These places.
    fn of(problem: &'p Problem<'p>, places: &[usize]) -> Self {
        let mut solution = Self::counted(problem, places);
        if problem.is_feasible(&solution.chosen) {
            solution.value = problem.value(&solution.chosen);
        }
        solution
    }

    /// Some of its places, ascending. What keeps to the rules does so with fewer, but a run that is cut in two may cost
    /// more.
    fn only(&self, kept: &[usize]) -> Self {
        let mut solution = Self::counted(self.problem, kept);
        if solution.cost <= self.problem.budget {
            solution.value = self.problem.value(kept);
        }
        solution
    }

    /// These places, of no value yet.
    fn counted(problem: &'p Problem<'p>, places: &[usize]) -> Self {
        let mut chosen = places.to_vec();
        chosen.sort_unstable();
        let (mut is_chosen, mut meeting) = (vec![false; problem.len()], vec![0; problem.needs.len()]);
        for &place in &chosen {
            is_chosen[place] = true;
            for (met, need) in meeting.iter_mut().zip(&problem.needs) {
                *met += u32::from(need.places.binary_search(&place).is_ok());
            }
        }
        let cost = problem.cost(&chosen);
        Self { problem, chosen, is_chosen, meeting, cost, value: INFEASIBLE }
    }

    pub(crate) fn value(&self) -> f64 {
        self.value
    }

    pub(crate) fn chosen(self) -> Vec<usize> {
        self.chosen
    }

    /// Tokens that a place not chosen would add.
    fn added(&self, place: usize) -> i64 {
        let problem = self.problem;
        let left = place > 0 && self.is_chosen[place - 1] && problem.lines.touches(place);
        let right = place + 1 < problem.len() && self.is_chosen[place + 1] && problem.lines.touches(place + 1);
        let document = problem.lines.document(place);
        let first = self.chosen.get(self.chosen.partition_point(|&other| other < document.start)).copied();
        let first = first.filter(|&first| first < document.end);
        let is_first = first.is_none_or(|first| place < first);
        let starts = match (left, is_first) {
            (true, _) => 0,
            (false, true) => problem.opening[place],
            (false, false) => problem.reopening[place],
        };
        // The segment behind it, which it joins or goes before.
        let behind = match first.filter(|_| is_first) {
            Some(first) if right => -problem.opening[first],
            Some(first) => problem.reopening[first] - problem.opening[first],
            None if right => -problem.reopening[place + 1],
            None => 0,
        };
        problem.tokens[place] + starts + behind
    }

    /// Value that a place not chosen would add.
    fn gain(&self, place: usize) -> f64 {
        let unmet = self.problem.needs.iter().zip(&self.meeting).filter(|(_, met)| **met == 0);
        let met: f64 =
            unmet.filter(|(need, _)| need.places.binary_search(&place).is_ok()).map(|(need, _)| need.weight).sum();
        self.problem.values[place] + met
    }

    /// Adds a place if it is worth something and everything still holds.
    fn try_add(&mut self, place: usize) -> bool {
        let problem = self.problem;
        if self.is_chosen[place] || self.value == INFEASIBLE || self.cost + self.added(place) > problem.budget {
            return false;
        }
        let gain = self.gain(place);
        if gain <= EPSILON || self.chosen.iter().any(|&other| problem.in_conflict(place, other)) {
            return false;
        }
        let mut with = self.chosen.clone();
        with.insert(with.partition_point(|&other| other < place), place);
        if !problem.runs_hold(&with) || !problem.caps.iter().all(|cap| cap.holds(&with, problem)) {
            return false;
        }
        self.cost += self.added(place);
        self.value += gain;
        self.chosen = with;
        self.is_chosen[place] = true;
        for (met, need) in self.meeting.iter_mut().zip(&problem.needs) {
            *met += u32::from(need.places.binary_search(&place).is_ok());
        }
        true
    }

    fn fill(&mut self, order: &[usize]) {
        let stop = self.problem.stop;
        for &place in order.iter().take_while(|_| !stop()) {
            self.try_add(place);
        }
    }

    /// Puts one chunk in the place of one or two, and fills up, as long as that gains something: the value only grows,
    /// so it ends.
    pub(crate) fn swap(&mut self, order: &[usize]) {
        let mut left = SWAPS_MAX;
        while self.value > INFEASIBLE && self.swap_once(order, &mut left) {}
    }

    fn swap_once(&mut self, order: &[usize], left: &mut usize) -> bool {
        let problem = self.problem;
        let beside: Vec<usize> =
            order.iter().copied().filter(|place| !self.is_chosen[*place]).take(SWAP_WITH).collect();
        let mut removable: Vec<usize> =
            self.chosen.iter().copied().filter(|place| !problem.must.contains(place)).collect();
        removable.sort_by(|&a, &b| problem.values[a].total_cmp(&problem.values[b]).then(a.cmp(&b)));
        let singletons = problem.singletons();
        for place in beside.into_iter().take_while(|_| !(problem.stop)()) {
            let best = singletons[place];
            for (at, &a) in removable.iter().enumerate() {
                if problem.values[a] >= best {
                    break; // the others are worth more still
                }
                for b in std::iter::once(None).chain(removable[at + 1..].iter().copied().map(Some)) {
                    let lost = problem.values[a] + b.map_or(0.0, |b| problem.values[b]);
                    if lost + EPSILON >= best {
                        break;
                    }
                    if *left == 0 {
                        return false;
                    }
                    *left -= 1;
                    let kept: Vec<usize> =
                        self.chosen.iter().copied().filter(|&other| other != a && Some(other) != b).collect();
                    let room = problem.budget - problem.cost(&kept);
                    if problem.tokens[place] > room + problem.opening[place] + problem.reopening[place] {
                        continue;
                    }
                    let mut trial = self.only(&kept);
                    if trial.try_add(place) && trial.value > self.value + EPSILON {
                        trial.fill(order);
                        *self = trial;
                        return true;
                    }
                }
            }
        }
        false
    }
}
