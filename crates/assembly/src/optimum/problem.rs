//! The problem: values, costs and constraints by place; cost, value and feasibility of a set of places.

use crate::line::Lines;
use crate::stop::Stop;

/// Values closer than this are equal: sums of some thousand values in another order differ by less.
pub(crate) const EPSILON: f64 = 1e-9;

/// The state of a place's variable in a node of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fixed {
    Free,
    In,
    Out,
}

/// A limit on what may be chosen of some places.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cap {
    /// Places that count, ascending.
    pub(crate) places: Vec<usize>,
    /// Most tokens of their texts.
    pub(crate) tokens_max: Option<i64>,
    /// Most of them.
    pub(crate) chunks_max: Option<usize>,
}

impl Cap {
    pub(crate) fn has(&self, place: usize) -> bool {
        self.places.binary_search(&place).is_ok()
    }

    pub(crate) fn holds(&self, chosen: &[usize], problem: &Problem<'_>) -> bool {
        let members = || chosen.iter().filter(|place| self.has(**place));
        self.chunks_max.is_none_or(|max| members().count() <= max)
            && self.tokens_max.is_none_or(|max| members().map(|&place| problem.tokens[place]).sum::<i64>() <= max)
    }
}

/// Something the query asks for: worth its weight once, however many chosen chunks meet it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Need {
    pub(crate) weight: f64,
    /// Places that meet it, ascending.
    pub(crate) places: Vec<usize>,
}

/// A choice of segments. All vectors are by place.
pub(crate) struct Problem<'p> {
    pub(crate) lines: &'p Lines,
    /// Value of each chunk; one that is negative is only taken to join others.
    pub(crate) values: Vec<f64>,
    /// Tokens of its text.
    pub(crate) tokens: Vec<i64>,
    /// Tokens around a segment that starts with it, where it is the first segment of its document.
    pub(crate) opening: Vec<i64>,
    /// The same where another segment of the document precedes it.
    pub(crate) reopening: Vec<i64>,
    /// Tokens in all.
    pub(crate) budget: i64,
    /// Most chunks in a row.
    pub(crate) run_max: Option<usize>,
    pub(crate) caps: Vec<Cap>,
    pub(crate) needs: Vec<Need>,
    /// True for two chunks that say the same, so that only one may be chosen. Symmetric.
    pub(crate) conflict: &'p dyn Fn(usize, usize) -> bool,
    /// Places that must be chosen, and that must not, ascending.
    pub(crate) must: Vec<usize>,
    pub(crate) must_not: Vec<usize>,
    /// Looked at while it is solved.
    pub(crate) stop: Stop<'p>,
}

impl Problem<'_> {
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The variables at the root of the search.
    pub(crate) fn fixed(&self) -> Vec<Fixed> {
        let mut fixed = vec![Fixed::Free; self.len()];
        self.must.iter().for_each(|&place| fixed[place] = Fixed::In);
        self.must_not.iter().for_each(|&place| fixed[place] = Fixed::Out);
        fixed
    }

    /// The weight of each need.
    pub(crate) fn need_weights(&self) -> Vec<f64> {
        self.needs.iter().map(|need| need.weight).collect()
    }

    pub(crate) fn in_conflict(&self, a: usize, b: usize) -> bool {
        a != b && (self.conflict)(a, b)
    }

    /// Value of each chunk alone, the needs that it meets counted in full.
    pub(crate) fn singletons(&self) -> Vec<f64> {
        let mut singletons = self.values.clone();
        for Need { weight, places } in &self.needs {
            places.iter().for_each(|&place| singletons[place] += weight);
        }
        singletons
    }

    /// The same for each token.
    pub(crate) fn densities(&self) -> Vec<f64> {
        let per_token = |(place, worth): (usize, f64)| worth / (self.tokens[place] + self.opening[place]).max(1) as f64;
        self.singletons().into_iter().enumerate().map(per_token).collect()
    }

    /// Value that a chunk adds to chosen ones: its own, and the needs that none of them meets.
    pub(crate) fn gain(&self, place: usize, is_chosen: &dyn Fn(usize) -> bool) -> f64 {
        let meets = |need: &&Need| need.places.binary_search(&place).is_ok();
        let open = |need: &&Need| !need.places.iter().any(|&other| is_chosen(other));
        self.values[place] + self.needs.iter().filter(meets).filter(open).map(|need| need.weight).sum::<f64>()
    }

    /// Value of ascending places together.
    pub(crate) fn value(&self, chosen: &[usize]) -> f64 {
        let met = |need: &&Need| chosen.iter().any(|place| need.places.binary_search(place).is_ok());
        chosen.iter().map(|&place| self.values[place]).sum::<f64>()
            + self.needs.iter().filter(met).map(|need| need.weight).sum::<f64>()
    }

    /// Tokens of ascending places together, with those around the segments.
    pub(crate) fn cost(&self, chosen: &[usize]) -> i64 {
        let mut cost = 0;
        for (at, &place) in chosen.iter().enumerate() {
            cost += self.tokens[place];
            let before = at.checked_sub(1).map(|at| chosen[at]);
            if before.is_some_and(|before| before + 1 == place && self.lines.touches(place)) {
                continue;
            }
            let same_document = before.is_some_and(|before| self.lines.document(place).contains(&before));
            cost += if same_document { self.reopening[place] } else { self.opening[place] };
        }
        cost
    }

    /// Forces places in. Caps and the longest run are raised to hold them: they are in whatever else is asked.
    pub(crate) fn force(&mut self, mut must: Vec<usize>) {
        must.sort_unstable();
        let tokens = &self.tokens;
        for cap in &mut self.caps {
            let members: Vec<usize> = must.iter().copied().filter(|&place| cap.has(place)).collect();
            let spent: i64 = members.iter().map(|&place| tokens[place]).sum();
            cap.tokens_max = cap.tokens_max.map(|max| max.max(spent));
            cap.chunks_max = cap.chunks_max.map(|max| max.max(members.len()));
        }
        self.must = must;
        while !self.runs_hold(&self.must) {
            self.run_max = self.run_max.map(|max| max + 1);
        }
    }

    /// True if ascending places keep to every constraint.
    pub(crate) fn is_feasible(&self, chosen: &[usize]) -> bool {
        self.cost(chosen) <= self.budget && self.keeps_rules(chosen)
    }

    /// True if ascending places keep to every constraint but the budget.
    pub(crate) fn keeps_rules(&self, chosen: &[usize]) -> bool {
        let has = |place: &usize| chosen.binary_search(place).is_ok();
        self.must.iter().all(has)
            && !self.must_not.iter().any(has)
            && self.runs_hold(chosen)
            && self.caps.iter().all(|cap| cap.holds(chosen, self))
            && chosen.iter().enumerate().all(|(at, &a)| chosen[..at].iter().all(|&b| !self.in_conflict(a, b)))
    }

    pub(crate) fn runs_hold(&self, chosen: &[usize]) -> bool {
        let Some(max) = self.run_max else { return true };
        let mut length = 0;
        chosen.iter().enumerate().all(|(at, &place)| {
            let joins = at > 0 && chosen[at - 1] + 1 == place && self.lines.touches(place);
            length = if joins { length + 1 } else { 1 };
            length <= max
        })
    }
}
