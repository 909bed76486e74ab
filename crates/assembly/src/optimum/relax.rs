//! The relaxation: segments under one budget, without conflicts and caps, each need counted for every chunk that meets it.
//!
//! A document is walked by states: nothing chosen yet, inside a segment (of so many chunks, where runs are capped), between two.
//! At a price for tokens every document is solved by itself in O(n), and every price gives a bound: `max value - price * cost + price *
//! budget`. The least bound is found from two sets, one within the budget and one beyond: at the price at which they are worth the
//! same, either nothing is worth more, or what is takes the place of one of them.
//! Chunks whose being in or out would put the bound below what is already known are fixed; the rest is solved exactly.

use super::problem::Problem;
use super::{EPSILON, Need};
use std::ops::Range;

/// Whether a chunk is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fixed {
    Free,
    In,
    Out,
}

/// The answer of the relaxation.
#[derive(Debug)]
pub(crate) struct Relaxed {
    /// Chosen places, ascending: the best of the relaxation where it could be solved exactly.
    pub(crate) chosen: Vec<usize>,
    /// Nothing within the node is worth more.
    pub(crate) bound: f64,
    /// Value of a token.
    pub(crate) price: f64,
}

/// Prices that are tried. Each brings a set that is best at its price, so that a handful do; the bound holds after any number.
const PRICES_MAX: usize = 40;

/// States times tokens times chunks that are solved exactly: about as many bytes, and some ten milliseconds.
const CELLS_MAX: usize = 6_000_000;

/// State 0: nothing of the document is chosen; 1..=R: inside a segment of so many chunks (R = 1: of any length); R + 1: between two.
struct Walk<'p> {
    problem: &'p Problem<'p>,
    values: Vec<f64>,
    fixed: Vec<Fixed>,
    n_states: usize,
}

/// What dynamic programming makes of a core.
enum Exact {
    /// The best places, ascending, and their worth.
    Found(Vec<usize>, f64),
    /// No choice of the core fits: none is worth more than what is known.
    Nothing,
    /// More cells than [`CELLS_MAX`].
    TooLarge,
}

/// In a cell of the dynamic programme beside the state it was reached from: the chunk was taken.
const TAKEN: u8 = 0x80;

/// No way leads here.
const NOWHERE: f64 = f64::NEG_INFINITY;

/// The best of the node's relaxation. None: nothing fits what is forced. `known` is the value of a set already found.
pub(crate) fn solve(problem: &Problem<'_>, fixed: &[Fixed], known: f64) -> Option<Relaxed> {
    let walk = Walk::new(problem, fixed)?;
    let mut priced = walk.at_price(0.0);
    let (mut bound, mut price) = (priced.value, 0.0);
    if problem.cost(&priced.chosen) > problem.budget {
        let mut dear = std::mem::replace(&mut priced, walk.at_price(walk.price_max()));
        if problem.cost(&priced.chosen) > problem.budget {
            return None; // what is forced alone is too long
        }
        bound = f64::INFINITY;
        for _ in 0..PRICES_MAX {
            // The price at which the two are worth the same: where something else is worth more, it takes the place of one of them.
            let (more, less) = (walk.worth(&dear.chosen), walk.worth(&priced.chosen));
            let (long, short) = (problem.cost(&dear.chosen), problem.cost(&priced.chosen));
            price = ((more - less) / (long - short) as f64).max(0.0);
            let at = walk.at_price(price);
            bound = bound.min(at.value + price * problem.budget as f64);
            if at.value <= less - price * short as f64 + EPSILON {
                break;
            }
            if problem.cost(&at.chosen) <= problem.budget { priced = at } else { dear = at }
        }
    }
    let value = walk.worth(&priced.chosen);
    if bound <= value + EPSILON || bound <= known + EPSILON {
        return Some(Relaxed { chosen: priced.chosen, bound, price });
    }
    let core = walk.core(price, known.max(value));
    Some(match core.exact() {
        Exact::Found(chosen, worth) => Relaxed { chosen, bound: bound.min(worth.max(known)), price },
        Exact::Nothing => Relaxed { chosen: priced.chosen, bound: bound.min(known.max(value)), price },
        Exact::TooLarge => Relaxed { chosen: priced.chosen, bound, price },
    })
}

/// What the best of the relaxation is worth at every budget from 0 to the problem's, in one pass. None: what is forced alone does not
/// fit, or breaks a rule.
pub(crate) fn by_tokens(problem: &Problem<'_>) -> Option<Vec<f64>> {
    let walk = Walk::new(problem, &problem.fixed())?;
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
    let worth = states.now[..width].to_vec();
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

struct Priced {
    chosen: Vec<usize>,
    /// Value less price times cost.
    value: f64,
}

impl<'p> Walk<'p> {
    /// None: two forced chunks are in conflict, or break a cap or the longest run.
    fn new(problem: &'p Problem<'p>, fixed: &[Fixed]) -> Option<Self> {
        let forced: Vec<usize> = (0..fixed.len()).filter(|&place| fixed[place] == Fixed::In).collect();
        let mut fixed = fixed.to_vec();
        let mut values = problem.values.clone();
        for Need { weight, places } in &problem.needs {
            match places.iter().find(|place| fixed[**place] == Fixed::In) {
                Some(&place) => values[place] += weight,
                None => places.iter().for_each(|&place| values[place] += weight),
            }
        }
        if !forced.is_empty() {
            let alone =
                forced.iter().enumerate().all(|(at, &a)| forced[..at].iter().all(|&b| !problem.in_conflict(a, b)));
            if !alone || !problem.caps.iter().all(|cap| cap.holds(&forced, problem)) || !problem.runs_hold(&forced) {
                return None;
            }
            for (place, fixed) in fixed.iter_mut().enumerate().filter(|(_, fixed)| **fixed == Fixed::Free) {
                if forced.iter().any(|&other| problem.in_conflict(place, other)) {
                    *fixed = Fixed::Out;
                }
            }
        }
        Some(Self { problem, values, fixed, n_states: problem.run_max.unwrap_or(1) + 2 })
    }

    /// At this price nothing but what is forced is chosen.
    fn price_max(&self) -> f64 {
        let best = self.values.iter().copied().fold(0.0, f64::max);
        let worst = -self.values.iter().copied().fold(0.0, f64::min);
        2.0 * (best + worst + 1.0) * (1 + self.problem.run_max.unwrap_or(self.problem.len())) as f64
    }

    fn worth(&self, chosen: &[usize]) -> f64 {
        chosen.iter().map(|&place| self.values[place]).sum()
    }

    fn between(&self) -> usize {
        self.n_states - 1
    }

    /// The ways into each state by one more chunk: `go(from, to, tokens, taken)`.
    fn steps(&self, place: usize, mut go: impl FnMut(usize, usize, i64, bool)) {
        let (problem, between) = (self.problem, self.between());
        if self.fixed[place] != Fixed::In {
            go(0, 0, 0, false);
            (1..=between).for_each(|from| go(from, between, 0, false));
        }
        if self.fixed[place] != Fixed::Out {
            let (text, opening) = (problem.tokens[place], problem.headers[place]);
            go(0, 1, text + opening, true);
            go(between, 1, text + opening + problem.gap, true);
            let touches = problem.lines.touches(place);
            for from in 1..between {
                match (touches, problem.run_max) {
                    (true, None) => go(from, from, text, true),
                    (true, Some(_)) if from + 1 < between => go(from, from + 1, text, true),
                    (true, Some(_)) => {} // the longest run: a chunk must be left out behind it
                    (false, _) => go(from, 1, text + opening + problem.gap, true),
                }
            }
        }
    }

    /// Every document at its best, if a token costs `price`.
    fn at_price(&self, price: f64) -> Priced {
        let n = self.n_states;
        let mut priced = Priced { chosen: Vec::new(), value: 0.0 };
        let mut came = vec![0_u16; self.problem.len() * n];
        let mut took = vec![false; self.problem.len() * n];
        let (mut now, mut next) = (vec![NOWHERE; n], vec![NOWHERE; n]);
        for document in &self.problem.lines.documents {
            now.fill(NOWHERE);
            now[0] = 0.0;
            for place in document.clone() {
                next.fill(NOWHERE);
                let value = self.values[place];
                self.steps(place, |from, to, tokens, taken| {
                    let worth = now[from] + if taken { value - price * tokens as f64 } else { 0.0 };
                    if worth > next[to] {
                        next[to] = worth;
                        came[place * n + to] = from as u16;
                        took[place * n + to] = taken;
                    }
                });
                std::mem::swap(&mut now, &mut next);
            }
            let mut state = best_state(&now);
            priced.value += now[state];
            for place in document.clone().rev() {
                if took[place * n + state] {
                    priced.chosen.push(place);
                }
                state = came[place * n + state] as usize;
            }
        }
        priced.chosen.sort_unstable();
        priced
    }

    /// The walk with everything fixed that the price decides: forced the other way, the bound would be no better than `known`.
    fn core(mut self, price: f64, known: f64) -> Self {
        let n = self.n_states;
        let documents = self.problem.lines.documents.clone();
        let best: Vec<f64> = documents.iter().map(|document| self.best_of(document, price)).collect();
        let room = best.iter().sum::<f64>() + price * self.problem.budget as f64;
        for (document, best) in documents.iter().zip(&best) {
            // Forward: best up to a state before each place; backward: best from a state on.
            let mut forward = vec![NOWHERE; (document.len() + 1) * n];
            forward[0] = 0.0;
            for place in document.clone() {
                let at = (place - document.start) * n;
                let value = self.values[place];
                let (before, after) = forward.split_at_mut(at + n);
                self.steps(place, |from, to, tokens, taken| {
                    let worth = before[at + from] + if taken { value - price * tokens as f64 } else { 0.0 };
                    after[to] = after[to].max(worth);
                });
            }
            let mut backward = vec![0.0; n];
            for place in document.clone().rev() {
                let at = (place - document.start) * n;
                let value = self.values[place];
                let (mut taking, mut leaving) = (NOWHERE, NOWHERE);
                let mut before = vec![NOWHERE; n];
                self.steps(place, |from, to, tokens, taken| {
                    let step = backward[to] + if taken { value - price * tokens as f64 } else { 0.0 };
                    before[from] = before[from].max(step);
                    let through = forward[at + from] + step;
                    if taken { taking = taking.max(through) } else { leaving = leaving.max(through) }
                });
                backward = before;
                if self.fixed[place] == Fixed::Free {
                    if room - best + taking <= known {
                        self.fixed[place] = Fixed::Out;
                    } else if room - best + leaving <= known {
                        self.fixed[place] = Fixed::In;
                    }
                }
            }
        }
        self
    }

    fn best_of(&self, document: &Range<usize>, price: f64) -> f64 {
        let (mut now, mut next) = (vec![NOWHERE; self.n_states], vec![NOWHERE; self.n_states]);
        now[0] = 0.0;
        for place in document.clone() {
            next.fill(NOWHERE);
            let value = self.values[place];
            self.steps(place, |from, to, tokens, taken| {
                next[to] = next[to].max(now[from] + if taken { value - price * tokens as f64 } else { 0.0 });
            });
            std::mem::swap(&mut now, &mut next);
        }
        now[best_state(&now)]
    }

    /// The best choice by dynamic programming over tokens.
    fn exact(&self) -> Exact {
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
        Exact::Found(chosen, worth)
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

/// The state of most value, the first of equal ones.
fn best_state(values: &[f64]) -> usize {
    (0..values.len()).fold(0, |best, state| if values[state] > values[best] { state } else { best })
}
