//! Dynamic programming over documents and tokens: what the best of a relaxation is worth at every number of tokens.
//!
//! Cost: states times chunks times tokens, an addition each.

use super::Problem;
use super::relax::{Fixed, NOWHERE, Walk};

/// What the best of the relaxation is worth at every budget from 0 to the problem's, in one pass. None: what is forced alone does not
/// fit, or breaks a rule.
pub(crate) fn by_tokens(problem: &Problem<'_>) -> Option<Vec<f64>> {
    let walk = Walk::new(problem, &problem.fixed(), &problem.paid_in_full())?;
    let width = usize::try_from(problem.budget).ok()?.saturating_add(1);
    let mut states = States::new(walk.n_states, width);
    let places = walk.undecided();
    let mut at = 0;
    for document in &problem.lines.documents {
        let first = at;
        while at < places.len() && document.contains(&places[at]) {
            let before = if at > first { Some(places[at - 1]) } else { None };
            walk.take(&mut states, before, places[at]);
            at += 1;
        }
        if at > first {
            states.close();
        }
    }
    let worth: Vec<f64> = states.now[..width].iter().map(|worth| worth + walk.given).collect();
    (worth[width - 1] != NOWHERE).then_some(worth)
}

/// Best worth by state and tokens.
struct States {
    n: usize,
    width: usize,
    now: Vec<f64>,
    next: Vec<f64>,
}

impl States {
    fn new(n: usize, width: usize) -> Self {
        let mut now = vec![NOWHERE; n * width];
        now[..width].fill(0.0);
        Self { n, width, now, next: vec![NOWHERE; n * width] }
    }

    /// A document ends: the best of its states is where the next one starts.
    fn close(&mut self) {
        let (now, width) = (&mut self.now, self.width);
        for w in 0..width {
            now[w] = (0..self.n).map(|state| now[state * width + w]).fold(NOWHERE, f64::max);
        }
        now[width..].fill(NOWHERE);
    }
}

impl Walk<'_> {
    /// One more chunk of a document, at every number of tokens.
    fn take(&self, states: &mut States, before: Option<usize>, place: usize) {
        let (value, width) = (self.values[place], states.width);
        let (now, next) = (&states.now, &mut states.next);
        next.fill(NOWHERE);
        self.steps_from(before, place, |from, to, tokens, taken| {
            let Ok(tokens) = usize::try_from(tokens) else { return };
            let gain = if taken { value } else { 0.0 };
            for w in tokens..width {
                let worth = now[from * width + w - tokens] + gain;
                next[to * width + w] = next[to * width + w].max(worth);
            }
        });
        std::mem::swap(&mut states.now, &mut states.next);
    }

    /// Places that are not left out, ascending.
    fn undecided(&self) -> Vec<usize> {
        (0..self.problem.len()).filter(|&place| self.fixed[place] != Fixed::Out).collect()
    }

    /// [`Walk::steps`], where the place before may have been passed over: then a segment cannot go on.
    fn steps_from(&self, before: Option<usize>, place: usize, mut go: impl FnMut(usize, usize, i64, bool)) {
        let skipped = before.is_some_and(|before| before + 1 != place);
        let between = self.between();
        let opening = self.problem.headers[place] + self.problem.gap + self.problem.tokens[place];
        self.steps(place, |from, to, tokens, taken| {
            if !(skipped && taken && (1..between).contains(&from)) {
                go(from, to, tokens, taken);
            }
        });
        if skipped && self.fixed[place] != Fixed::Out {
            (1..between).for_each(|from| go(from, 1, opening, true));
        }
    }
}
