//! Dynamic programming over documents and tokens: the best of a relaxation, chunk by chunk, at every number of tokens.
//!
//! Cost: states times chunks times tokens, one byte and one addition each.

use super::Problem;
use super::relax::{Fixed, NOWHERE, Walk};

/// States times tokens times chunks that are solved exactly: about as many bytes, and some ten milliseconds.
const CELLS_MAX: usize = 6_000_000;

/// What dynamic programming makes of a core.
pub(super) enum Exact {
    /// The best places, ascending, and their worth.
    Found(Vec<usize>, f64),
    /// No choice of the core fits: none is worth more than what is known.
    Nothing,
    /// More cells than [`CELLS_MAX`].
    TooLarge,
}

/// In a cell of the dynamic programme beside the state it was reached from: the chunk was taken.
const TAKEN: u8 = 0x80;

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
            walk.take(&mut states, before, places[at], |_, _| {});
            at += 1;
        }
        if at > first {
            states.close(|_, _| {});
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

    /// A document ends: the best of its states is where the next one starts. `ended(tokens, state)` is told which.
    fn close(&mut self, mut ended: impl FnMut(usize, usize)) {
        let (now, width) = (&mut self.now, self.width);
        for w in 0..width {
            let better =
                |best: usize, state: usize| if now[state * width + w] > now[best * width + w] { state } else { best };
            let state = (0..self.n).fold(0, better);
            ended(w, state);
            now[w] = now[state * width + w];
        }
        now[width..].fill(NOWHERE);
    }
}

impl Walk<'_> {
    /// The best choice by dynamic programming over tokens.
    pub(super) fn exact(&self) -> Exact {
        let (problem, n) = (self.problem, self.n_states);
        let places = self.undecided();
        let width = usize::try_from(problem.budget).unwrap_or(usize::MAX).saturating_add(1);
        if n > usize::from(TAKEN) || places.len().saturating_mul(n).saturating_mul(width) > CELLS_MAX {
            return Exact::TooLarge;
        }
        let mut came = vec![0_u8; places.len() * n * width];
        let mut closed = vec![0_u8; problem.lines.documents.len() * width]; // the state in which a document ended, by tokens
        let mut states = States::new(n, width);
        let mut at = 0;
        for (number, document) in problem.lines.documents.iter().enumerate() {
            let first = at;
            while at < places.len() && document.contains(&places[at]) {
                let came = &mut came[at * n * width..][..n * width];
                let before = if at > first { Some(places[at - 1]) } else { None };
                self.take(&mut states, before, places[at], |cell, step| came[cell] = step);
                at += 1;
            }
            if at > first {
                states.close(|w, state| closed[number * width + w] = state as u8);
            }
        }
        let worth = states.now[width - 1];
        if worth == NOWHERE {
            return Exact::Nothing;
        }
        let (mut w, mut chosen) = (width - 1, Vec::new());
        for (number, document) in problem.lines.documents.iter().enumerate().rev() {
            let last = at;
            while at > 0 && document.contains(&places[at - 1]) {
                at -= 1;
            }
            let mut state = if last > at { usize::from(closed[number * width + w]) } else { 0 };
            for back in (at..last).rev() {
                let cell = came[back * n * width + state * width + w];
                let from = usize::from(cell & !TAKEN);
                if cell & TAKEN != 0 {
                    chosen.push(places[back]);
                    let before = places.get(back.wrapping_sub(1)).copied().filter(|_| back > at);
                    let mut spent = 0;
                    self.steps_from(before, places[back], |f, t, tokens, taken| {
                        if taken && f == from && t == state {
                            spent = tokens;
                        }
                    });
                    w -= spent as usize;
                }
                state = from;
            }
        }
        chosen.sort_unstable();
        Exact::Found(chosen, self.given + worth)
    }

    /// One more chunk of a document, at every number of tokens. `reached(cell, step)` is told how a cell of the next states was reached.
    fn take(&self, states: &mut States, before: Option<usize>, place: usize, mut reached: impl FnMut(usize, u8)) {
        let (value, width) = (self.values[place], states.width);
        let (now, next) = (&states.now, &mut states.next);
        next.fill(NOWHERE);
        self.steps_from(before, place, |from, to, tokens, taken| {
            let Ok(tokens) = usize::try_from(tokens) else { return };
            let gain = if taken { value } else { 0.0 };
            for w in tokens..width {
                let worth = now[from * width + w - tokens] + gain;
                if worth > next[to * width + w] {
                    next[to * width + w] = worth;
                    reached(to * width + w, from as u8 | if taken { TAKEN } else { 0 });
                }
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
