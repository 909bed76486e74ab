//! The order in which chunks are asked about: a document's first chunk goes alone, so that a server which keeps what it
//! has read of a document has it when the others come.

use std::collections::{HashSet, VecDeque};

use parking_lot::{Condvar, Mutex};

/// A place in the list of what is wanted, and the document it is of.
pub(super) type Place = (usize, usize);

/// The places that wait, for any number of threads.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<Place>,
    /// Documents whose first chunk is under way.
    opening: HashSet<usize>,
    /// Documents of which a chunk was answered.
    opened: HashSet<usize>,
}

impl Queue {
    pub(super) fn new(places: impl Iterator<Item = Place>) -> Self {
        let state = State { waiting: places.collect(), opening: HashSet::new(), opened: HashSet::new() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The first place that may be asked about now; waits while all others are of documents that are being opened.
    pub(super) fn next(&self) -> Option<Place> {
        let mut state = self.state.lock();
        loop {
            let State { waiting, opening, opened } = &mut *state;
            let at = waiting.iter().position(|(_, document)| !opening.contains(document));
            if let Some(place) = at.and_then(|at| waiting.remove(at)) {
                if !opened.contains(&place.1) {
                    opening.insert(place.1);
                }
                return Some(place);
            }
            if waiting.is_empty() {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// A chunk of the document was answered.
    pub(super) fn done(&self, document: usize) {
        let mut state = self.state.lock();
        state.opening.remove(&document);
        state.opened.insert(document);
        self.changed.notify_all();
    }

    /// Nothing more is to be asked.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.waiting.clear();
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_opened_by_one_chunk_and_others_wait_or_go_before() {
        let queue = Queue::new([(0, 7), (1, 7), (2, 8), (3, 8)].into_iter());
        assert_eq!(queue.next(), Some((0, 7)));
        assert_eq!(queue.next(), Some((2, 8)), "the second of 7 waits for the first");
        queue.done(7);
        assert_eq!(queue.next(), Some((1, 7)));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.next());
            queue.done(8);
            assert_eq!(waiting.join().unwrap(), Some((3, 8)));
        });
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn whoever_waits_is_let_go_at_the_end() {
        let queue = Queue::new([(0, 7), (1, 7)].into_iter());
        queue.next();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.next());
            queue.end();
            assert_eq!(waiting.join().unwrap(), None);
        });
    }
}
