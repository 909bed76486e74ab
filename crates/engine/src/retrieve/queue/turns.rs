//! Turns: as many queries search at once as there are cores, in the order in which they came.
//!
//! Queries are embedded together, whoever asks beside; what follows keeps one core busy. More at once than cores would
//! share them, and each would take as long as all of them together: the same rate, and a longer tail.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::{self, Thread};
use std::time::Duration;

use parking_lot::Mutex;

use crate::cancel::Cancel;
use crate::error::{Error, Result};

/// The interval at which a query that waits looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// The turns of this process, whose cores they are.
static TURNS: LazyLock<Turns> = LazyLock::new(|| Turns::new(thread::available_parallelism().map_or(1, usize::from)));

#[derive(Debug)]
struct Turns {
    n_arrived: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    n_free: usize,
    /// By arrival.
    waiting: BTreeMap<u64, Arc<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    is_called: AtomicBool,
    thread: Thread,
}

/// The place of a query among those that came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    turns: &'static Turns,
    number: u64,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn(&'static Turns);

impl Turns {
    fn new(n_cores: usize) -> Self {
        let state = State { n_free: n_cores.max(1), waiting: BTreeMap::new() };
        Self { n_arrived: AtomicU64::new(0), state: Mutex::new(state) }
    }

    fn arrive(&'static self) -> Arrival {
        Arrival { turns: self, number: self.n_arrived.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Arrival {
    /// A query that comes now.
    pub(crate) fn now() -> Self {
        TURNS.arrive()
    }

    /// Waits for its turn: those that came before it and wait too have theirs first. A thread of a pool has no need of
    /// one, as there are no more of those than cores, and others may wait for what it does.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub(crate) fn turn(self, cancel: &Cancel) -> Result<Option<Turn>> {
        if rayon::current_thread_index().is_some() {
            return Ok(None);
        }
        let mut state = self.turns.state.lock();
        if state.n_free > 0 {
            state.n_free -= 1;
            return Ok(Some(Turn(self.turns)));
        }
        let own = Arc::new(Waiting { is_called: AtomicBool::new(false), thread: thread::current() });
        state.waiting.insert(self.number, Arc::clone(&own));
        drop(state);
        while !own.is_called.load(Ordering::Acquire) {
            thread::park_timeout(LOOK);
            if cancel.is_cancelled() && self.turns.state.lock().waiting.remove(&self.number).is_some() {
                return Err(Error::Cancelled);
            }
        }
        Ok(Some(Turn(self.turns)))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        match state.waiting.pop_first() {
            Some((_, next)) => {
                next.is_called.store(true, Ordering::Release);
                next.thread.unpark();
            }
            None => state.n_free += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn turns(n_cores: usize) -> &'static Turns {
        Box::leak(Box::new(Turns::new(n_cores)))
    }

    fn n_waiting(turns: &Turns) -> usize {
        turns.state.lock().waiting.len()
    }

    /// Turns that are free, and queries that wait for one.
    fn left(turns: &Turns) -> (usize, usize) {
        let state = turns.state.lock();
        (state.n_free, state.waiting.len())
    }

    #[test]
    fn turns_are_taken_in_the_order_of_arrival_whoever_asks_first() {
        let turns = turns(1);
        let arrivals = [turns.arrive(), turns.arrive(), turns.arrive(), turns.arrive()];
        let first = arrivals[0].turn(&Cancel::default()).unwrap().unwrap();
        let (tell, told) = channel();
        thread::scope(|scope| {
            for (n_before, at) in [3, 1, 2].into_iter().enumerate() {
                let (arrival, tell) = (arrivals[at], tell.clone());
                scope.spawn(move || {
                    let _turn = arrival.turn(&Cancel::default()).unwrap();
                    tell.send(at).unwrap();
                });
                while n_waiting(turns) <= n_before {
                    thread::yield_now();
                }
            }
            drop(first);
        });
        drop(tell);
        assert_eq!(told.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(left(turns), (1, 0));
    }

    #[test]
    fn no_more_are_served_at_once_than_there_are_cores_and_none_is_left_behind() {
        let (turns, running) = (turns(2), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _turn = turns.arrive().turn(&Cancel::default()).unwrap();
                        assert!(running.fetch_add(1, Ordering::SeqCst) < 2);
                        thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(left(turns), (2, 0));
    }

    #[test]
    fn whoever_is_cancelled_waits_no_longer_and_takes_no_turn() {
        let turns = turns(1);
        let first = turns.arrive().turn(&Cancel::default()).unwrap();
        let late = Cancel::after(Duration::from_millis(1));
        assert!(matches!(turns.arrive().turn(&late), Err(Error::Cancelled)));
        drop(first);
        assert_eq!(left(turns), (1, 0));
    }

    #[test]
    fn a_thread_of_a_pool_waits_for_no_turn() {
        let turns = turns(1);
        let _first = turns.arrive().turn(&Cancel::default()).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert!(pool.install(|| turns.arrive().turn(&Cancel::default()).unwrap()).is_none());
    }
}
