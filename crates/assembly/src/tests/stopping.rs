//! A signal to stop ends the work: what is done behind it is counted, at every place at which it may come.

use super::*;
use std::cell::Cell;

/// A pool of a search, in which every strategy has much to weigh.
fn pool() -> Vec<Candidate> {
    let chunk = |at: u32| {
        let (document, index) = (format!("d{:02}", at / 8), at % 8);
        let text = format!("query {} {}", unrelated_text(at as usize), unrelated_text(at as usize % 7));
        Candidate { title: format!("Title {}", at / 8), ..candidate(&document, index, &text, 1.0 / f64::from(1 + at)) }
    };
    let mut chunks: Vec<Candidate> = (0..160).map(chunk).collect();
    // Spans that follow each other, whatever the lengths of the texts.
    for at in 1..chunks.len() {
        let start = if chunks[at].index == 0 { 0 } else { chunks[at - 1].span.end };
        chunks[at].span = start..start + chunks[at].text.len() as u64;
    }
    chunks
}

/// Work that was done, and how much of it before the signal, which comes at the look of that number.
struct Watched {
    n_looks: Cell<usize>,
    n_counted: Cell<usize>,
    counted_before: Cell<usize>,
    signal: usize,
}

impl Watched {
    fn new(signal: usize) -> Self {
        Self { n_looks: Cell::new(0), n_counted: Cell::new(0), counted_before: Cell::new(0), signal }
    }

    fn count(&self, text: &str) -> usize {
        self.n_counted.set(self.n_counted.get() + 1);
        count_words(text)
    }

    fn stop(&self) -> bool {
        let before = self.n_looks.replace(self.n_looks.get() + 1);
        if before == self.signal {
            self.counted_before.set(self.n_counted.get());
        }
        before >= self.signal
    }
}

#[track_caller]
fn check(strategy: Strategy, ask: fn(&Assembly<'_>) -> Result<()>) {
    let pool = pool();
    let run = |watched: &Watched| {
        let (count, stop) = (|text: &str| watched.count(text), || watched.stop());
        let policy = "delta = 0.9\n[cento]\ncoverage = 0.5\n";
        let assembly = Assembly { strategy, stop: &stop, ..Assembly::of(pool.clone()).count(&count).policy(policy) };
        ask(&assembly.query("query of Title 3 and w17"))
    };
    let all = Watched::new(usize::MAX);
    run(&all).unwrap();
    let n_looks = all.n_looks.get();
    assert!(n_looks > 3, "{strategy} looks {n_looks} times");
    for signal in (0..n_looks).step_by(1 + n_looks / 97) {
        let watched = Watched::new(signal);
        assert!(matches!(run(&watched), Err(Error::Cancelled)), "{strategy}, {signal} of {n_looks}");
        let n_behind = watched.n_looks.get() - signal;
        assert!(n_behind <= 16, "{strategy} looks {n_behind} times behind the signal at {signal} of {n_looks}");
        assert_eq!(watched.n_counted.get(), watched.counted_before.get(), "{strategy} counts behind {signal}");
    }
}

#[test]
fn every_strategy_ends_at_the_signal() {
    for strategy in Strategy::ALL.into_iter().filter(|strategy| *strategy != Strategy::Seal) {
        check(strategy, |assembly| assembly.try_within(900).map(drop));
    }
}

#[test]
fn the_budget_curve_ends_at_the_signal() {
    check(Strategy::Cento, |assembly| assembly.curve(900).map(drop));
}
