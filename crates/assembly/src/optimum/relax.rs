//! The relaxation: segments under one budget, without conflicts and caps, and with a price for needs.
//!
//! A document is walked by states: nothing chosen yet, inside a segment (of so many chunks, where runs are capped), between two.
//! At a price for tokens every document is solved by itself in O(n), and every price gives a bound: `max value - price * cost + price *
//! budget`. The least bound is found from two sets, one within the budget and one beyond: at the price at which they are worth the
//! same, either nothing is worth more, or what is takes the place of one of them.
//! A need of weight w is worth w once: `w * min(1, n)` for n chosen chunks that meet it, which for any p in [0, w] is at most `w - p + p * n`:
//! each such chunk is paid p, and the rest is given. Paid in full the bound counts a need once a chunk; where several chosen chunks meet
//! a need, less is paid until one does, or none.
//! Chunks whose being in or out would put the bound below what is already known are fixed; the rest is solved exactly ([`super::labels`]).

use super::EPSILON;
use super::labels::Exact;
use super::problem::{Need, Problem};
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
    /// What each chunk that meets a need was paid for it, by need.
    pub(crate) paid: Vec<f64>,
    /// The need, by number, of which the bound counts most too much for what was chosen.
    pub(crate) miscounted: Option<usize>,
}

/// Prices that are tried. Each brings a set that is best at its price, so that a handful do; the bound holds after any number.
const PRICES_MAX: usize = 40;

/// How often needs are paid anew.
const PAYMENTS_MAX: usize = 8;

/// State 0: nothing of the document is chosen; 1..=R: inside a segment of so many chunks (R = 1: of any length); R + 1: between two.
#[derive(Clone)]
pub(super) struct Walk<'p> {
    pub(super) problem: &'p Problem<'p>,
    /// With what is paid for needs.
    pub(super) values: Vec<f64>,
    /// What is given for needs whatever is chosen.
    pub(super) given: f64,
    pub(super) fixed: Vec<Fixed>,
    /// Places from the first to the last of each document that may be chosen.
    pub(super) live: Vec<Range<usize>>,
    pub(super) n_states: usize,
    /// By need: what one chunk is paid that meets it.
    paid: Vec<f64>,
    /// By need: whether anything is undecided about it. A forced chunk meets it, or nothing can.
    is_open: Vec<bool>,
}

/// No way leads here.
pub(super) const NOWHERE: f64 = f64::NEG_INFINITY;

/// A set within the budget, and what nothing is worth more than.
struct Least {
    chosen: Vec<usize>,
    bound: f64,
    price: f64,
}

/// A node bounded by prices alone.
pub(crate) struct Bounded<'p> {
    walk: Walk<'p>,
    least: Least,
}

/// Bounds a node by prices. None: nothing fits what is forced. `known` is the value of a set already found, `paid` what needs are paid at
/// first.
pub(crate) fn bound<'p>(problem: &'p Problem<'p>, fixed: &[Fixed], paid: &[f64], known: f64) -> Option<Bounded<'p>> {
    let mut walk = Walk::new(problem, fixed, paid)?;
    let mut least = walk.least()?;
    if problem.needs.is_empty() {
        return Some(Bounded { walk, least });
    }
    let mut trial = walk.clone();
    let mut chosen = least.chosen.clone();
    let mut range: Vec<Range<f64>> = problem.needs.iter().map(|need| 0.0..need.weight).collect();
    let mut best: Option<(f64, Walk<'_>)> = None;
    for _ in 0..PAYMENTS_MAX {
        if least.bound <= known + EPSILON || !trial.pay(&chosen, &mut range) {
            break;
        }
        let at = trial.at_price(least.price); // the price hardly changes: the least one is looked for when needs are paid well
        let bound = at.value + least.price * problem.budget as f64;
        chosen = at.chosen;
        if best.as_ref().is_none_or(|(known, _)| bound < *known) {
            best = Some((bound, trial.clone()));
        }
    }
    if let Some((_, paid)) = best {
        let anew = paid.least()?;
        if anew.bound < least.bound {
            (walk, least) = (paid, anew);
        }
    }
    Some(Bounded { walk, least })
}

impl Bounded<'_> {
    /// A set within the budget that is worth about the bound.
    pub(crate) fn chosen(&self) -> &[usize] {
        &self.least.chosen
    }

    /// The best of the relaxation, unless nothing of it is worth more than `known`. The more is known, the less is left to solve.
    pub(crate) fn solve(self, known: f64) -> Relaxed {
        let Self { walk, least: Least { chosen, bound, price } } = self;
        let value = walk.worth(&chosen);
        let relaxed = |chosen: Vec<usize>, bound: f64, walk: Walk<'_>| Relaxed {
            miscounted: walk.miscounted(&chosen),
            chosen,
            bound,
            price,
            paid: walk.paid,
        };
        if bound <= value + EPSILON || bound <= known + EPSILON {
            return relaxed(chosen, bound, walk);
        }
        let walk = walk.core(price, known.max(value));
        match walk.exact(price, known.max(value)) {
            Exact::Found(chosen, worth) => relaxed(chosen, bound.min(worth.max(known)), walk),
            Exact::Nothing => relaxed(chosen, bound.min(known.max(value)), walk),
            Exact::TooLarge => relaxed(chosen, bound, walk),
        }
    }
}

struct Priced {
    chosen: Vec<usize>,
    /// Value less price times cost.
    value: f64,
}

impl<'p> Walk<'p> {
    /// None: two forced chunks are in conflict, or break a cap or the longest run.
    pub(super) fn new(problem: &'p Problem<'p>, fixed: &[Fixed], paid: &[f64]) -> Option<Self> {
        let forced: Vec<usize> = (0..fixed.len()).filter(|&place| fixed[place] == Fixed::In).collect();
        let mut fixed = fixed.to_vec();
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
        let (mut values, mut given, mut is_open) = (problem.values.clone(), 0.0, Vec::with_capacity(paid.len()));
        for (Need { weight, places }, paid) in problem.needs.iter().zip(paid) {
            let is_met = places.iter().any(|&place| fixed[place] == Fixed::In);
            let may_be = places.iter().any(|&place| fixed[place] == Fixed::Free);
            is_open.push(!is_met && may_be);
            if is_met {
                given += weight;
            } else if may_be {
                given += weight - paid;
                places.iter().for_each(|&place| values[place] += paid);
            }
        }
        let live = problem.lines.documents.iter().filter_map(|document| {
            let first = document.clone().find(|&place| fixed[place] != Fixed::Out)?;
            let last = document.clone().rfind(|&place| fixed[place] != Fixed::Out)?;
            Some(first..last + 1)
        });
        let live = live.collect();
        let n_states = problem.run_max.unwrap_or(1) + 2;
        Some(Self { problem, live, values, given, fixed, n_states, paid: paid.to_vec(), is_open })
    }

    /// The least bound that a price for tokens gives. None: what is forced alone is too long.
    fn least(&self) -> Option<Least> {
        let problem = self.problem;
        let mut priced = self.at_price(0.0);
        let (mut bound, mut price) = (priced.value, 0.0);
        if problem.cost(&priced.chosen) > problem.budget {
            let mut dear = std::mem::replace(&mut priced, self.at_price(self.price_max()));
            if problem.cost(&priced.chosen) > problem.budget {
                return None;
            }
            bound = f64::INFINITY;
            for _ in 0..PRICES_MAX {
                // The price at which the two are worth the same: where something else is worth more, it takes the place of one of them.
                let (more, less) = (self.worth(&dear.chosen), self.worth(&priced.chosen));
                let (long, short) = (problem.cost(&dear.chosen), problem.cost(&priced.chosen));
                price = ((more - less) / (long - short) as f64).max(0.0);
                let at = self.at_price(price);
                bound = bound.min(at.value + price * problem.budget as f64);
                if at.value <= less - price * short as f64 + EPSILON {
                    break;
                }
                if problem.cost(&at.chosen) <= problem.budget { priced = at } else { dear = at }
            }
        }
        Some(Least { chosen: priced.chosen, bound, price })
    }

    /// Pays needs anew: less what several of `chosen` meet, more what none does, halving the range that is left. False: nothing changes.
    fn pay(&mut self, chosen: &[usize], range: &mut [Range<f64>]) -> bool {
        let mut changed = false;
        for (at, Need { weight, places }) in self.problem.needs.iter().enumerate().filter(|(at, _)| self.is_open[*at]) {
            let (paid, range) = (self.paid[at], &mut range[at]);
            let new = match meeting(places, chosen).take(2).count() {
                0 if paid < *weight => {
                    range.start = paid;
                    (range.start + range.end) / 2.0
                }
                // At first nothing: where several are likely to meet it, one does.
                2 if paid > 0.0 => {
                    let is_first = range.end == *weight && range.start == 0.0;
                    range.end = paid;
                    if is_first { 0.0 } else { (range.start + range.end) / 2.0 }
                }
                _ => continue,
            };
            places.iter().for_each(|&place| self.values[place] += new - paid);
            self.given -= new - paid;
            self.paid[at] = new;
            changed = true;
        }
        changed
    }

    /// The need of which most too much is counted for `chosen`.
    fn miscounted(&self, chosen: &[usize]) -> Option<usize> {
        let excess = |at: usize, need: &Need| match meeting(&need.places, chosen).count() {
            0 => need.weight - self.paid[at],
            n => self.paid[at] * (n - 1) as f64,
        };
        let open = self.problem.needs.iter().enumerate().filter(|(at, _)| self.is_open[*at]);
        let excesses = open.map(|(at, need)| (at, excess(at, need))).filter(|(_, excess)| *excess > EPSILON);
        excesses.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(at, _)| at)
    }

    /// At this price nothing but what is forced is chosen.
    fn price_max(&self) -> f64 {
        let best = self.values.iter().copied().fold(0.0, f64::max);
        let worst = -self.values.iter().copied().fold(0.0, f64::min);
        2.0 * (best + worst + 1.0) * (1 + self.problem.run_max.unwrap_or(self.problem.len())) as f64
    }

    fn worth(&self, chosen: &[usize]) -> f64 {
        self.given + chosen.iter().map(|&place| self.values[place]).sum::<f64>()
    }

    pub(super) fn between(&self) -> usize {
        self.n_states - 1
    }

    /// The ways into each state by one more chunk: `go(from, to, tokens, taken)`.
    pub(super) fn steps(&self, place: usize, mut go: impl FnMut(usize, usize, i64, bool)) {
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
        let mut priced = Priced { chosen: Vec::new(), value: self.given };
        let mut came = vec![0_u16; self.problem.len() * n];
        let mut took = vec![false; self.problem.len() * n];
        let (mut now, mut next) = (vec![NOWHERE; n], vec![NOWHERE; n]);
        for document in &self.live {
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
        let documents = self.live.clone();
        let best: Vec<f64> = documents.iter().map(|document| self.best_of(document, price)).collect();
        let room = self.given + best.iter().sum::<f64>() + price * self.problem.budget as f64;
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
}

/// Those of ascending places that are among ascending `chosen` ones.
fn meeting<'a>(places: &'a [usize], chosen: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
    chosen.iter().copied().filter(|place| places.binary_search(place).is_ok())
}

/// The state of most value, the first of equal ones.
fn best_state(values: &[f64]) -> usize {
    (0..values.len()).fold(0, |best, state| if values[state] > values[best] { state } else { best })
}
