//! Ahead: things that assembly asks for one by one, asked of a source on other machines together. Whatever is asked
//! for first brings those that will likely be asked for next, more each time; where a source lies here, none.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Things that come along with the first that is asked for; twice as many with the next.
const FIRST: usize = 64;

/// Things that wait to come along, the likeliest first.
#[derive(Debug)]
pub(super) struct Ahead<T> {
    waiting: RefCell<VecDeque<T>>,
    n: Cell<usize>,
}

impl<T> Default for Ahead<T> {
    fn default() -> Self {
        Self { waiting: RefCell::default(), n: Cell::new(FIRST) }
    }
}

impl<T> Ahead<T> {
    /// Lets these wait behind those that do.
    pub(super) fn add(&self, things: impl IntoIterator<Item = T>) {
        self.waiting.borrow_mut().extend(things);
    }

    /// Lets these wait in place of those that do.
    pub(super) fn set(&self, things: impl IntoIterator<Item = T>) {
        *self.waiting.borrow_mut() = things.into_iter().collect();
    }

    /// Those that come along now.
    pub(super) fn take(&self) -> Vec<T> {
        let mut waiting = self.waiting.borrow_mut();
        let n = self.n.get().min(waiting.len());
        self.n.set(self.n.get().saturating_mul(2));
        waiting.drain(..n).collect()
    }
}
