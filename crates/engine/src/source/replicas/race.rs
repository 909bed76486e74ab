//! One call to replicas: the first right answer counts. The next is asked where one fails, and a second one beside the
//! first where that is late; whoever loses is told to stop.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use super::standing::{Order, Standing};
use crate::cancel::Cancel;
use crate::error::{Error, Result};

/// The time behind the one in which a call is late after which it is made to the next replica in any case: that the
/// allowance for second calls is spent, or that the next one rests, is no reason to wait for one that hangs.
const HANGS: Duration = Duration::from_secs(5);

/// Why no replica answered: the number of each and its error, in the order in which they failed.
pub(super) type Failures = Vec<(usize, Error)>;

/// A call that goes to one replica after the other.
pub(super) struct Race<'r> {
    pub(super) standing: &'r Mutex<Standing>,
    /// The kind of the call, which its time is remembered by.
    pub(super) kind: &'static str,
    /// Says of an error that another replica would not give that a replica is at fault.
    pub(super) is_fault: &'r (dyn Fn(&Error) -> bool + Sync),
}

/// The end of an attempt, told whether it returns or panics.
struct Told(Sender<usize>, usize);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

impl Race<'_> {
    /// The first answer. An error that is no replica's is the answer too.
    ///
    /// # Errors
    /// Why each replica failed, if all did.
    pub(super) fn run<T: Send>(
        &self,
        attempt: impl Fn(usize, &Cancel) -> Result<T> + Sync,
    ) -> Result<Result<T>, Failures> {
        let (order, late) = self.with(|standing| (standing.order(self.kind, Instant::now()), standing.late(self.kind)));
        match order.replicas[..] {
            [only] => self.alone(only, attempt),
            _ => self.between(&order, late, attempt),
        }
    }

    fn alone<T>(&self, at: usize, attempt: impl Fn(usize, &Cancel) -> Result<T>) -> Result<Result<T>, Failures> {
        let start = Instant::now();
        match attempt(at, &Cancel::default()) {
            Ok(answer) => {
                self.with(|standing| standing.answered(at, self.kind, start.elapsed(), false, Instant::now()));
                Ok(Ok(answer))
            }
            Err(error) if is_of_replica(&error) => {
                self.failed(at, &error);
                Err(vec![(at, error)])
            }
            Err(error) => Ok(Err(error)),
        }
    }

    fn between<T: Send>(
        &self,
        order: &Order,
        late: Duration,
        attempt: impl Fn(usize, &Cancel) -> Result<T> + Sync,
    ) -> Result<Result<T>, Failures> {
        let attempt = &attempt;
        std::thread::scope(|scope| {
            let (tell, told) = channel();
            let start = |(turn, at): (usize, usize), is_hedge| {
                let (stop, told) = (Cancel::new(), Told(tell.clone(), at));
                let (own, began) = (stop.clone(), Instant::now());
                let handle = scope.spawn(move || {
                    let _told = told;
                    (attempt(at, &own), began.elapsed())
                });
                Attempt { at, turn, handle, is_hedge, _stop: StopOnDrop(stop) }
            };
            let (mut next, mut failures) = (order.replicas.iter().copied().enumerate(), Failures::new());
            // What is dropped here is stopped before the scope waits for it.
            let mut running: Vec<Attempt<'_, T>> = next.next().map(|first| start(first, false)).into_iter().collect();
            let (mut is_early, mut is_hedged) = (order.n_ready > 1, false);
            loop {
                let wait = if is_early { late } else { late + HANGS };
                let ended = if next.len() == 0 { told.recv().ok() } else { told.recv_timeout(wait).ok() };
                let Some(at) = ended else {
                    if !is_early || self.with(|standing| standing.may_hedge(order.is_look)) {
                        running.extend(next.next().map(|other| start(other, true)));
                        is_hedged = true;
                    }
                    is_early = false;
                    continue;
                };
                let Some(place) = running.iter().position(|attempt| attempt.at == at) else { continue };
                let Attempt { turn, handle, is_hedge, .. } = running.swap_remove(place);
                let (answer, took) = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                match answer {
                    Err(error) if is_of_replica(&error) => {
                        self.failed(at, &error);
                        failures.push((at, error));
                        if running.is_empty() {
                            let Some(other) = next.next() else { return Err(failures) };
                            is_early = !is_hedged && other.0 + 1 < order.n_ready;
                            running.push(start(other, false));
                        }
                    }
                    Err(error) => return Ok(Err(error)),
                    Ok(answer) => {
                        self.with(|standing| {
                            let now = Instant::now();
                            let is_late = took > late && order.n_ready > 1 && !is_hedged;
                            standing.answered(at, self.kind, took, is_late, now);
                            standing.n_hedges_won += u64::from(is_hedge);
                            let behind = running.iter().filter(|attempt| attempt.turn < turn);
                            behind.for_each(|attempt| standing.overtaken(attempt.at, now));
                        });
                        return Ok(Ok(answer));
                    }
                }
            }
        })
    }

    fn failed(&self, at: usize, error: &Error) {
        if (self.is_fault)(error) {
            self.with(|standing| match error {
                Error::ShardChanged { .. } => standing.has_other(at, why(error), Instant::now()),
                _ => standing.failed(at, why(error), Instant::now()),
            });
        }
    }

    fn with<T>(&self, then: impl FnOnce(&mut Standing) -> T) -> T {
        then(&mut self.standing.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A replica that is asked.
struct Attempt<'s, T> {
    at: usize,
    /// Its place among those that are asked for this call.
    turn: usize,
    handle: ScopedJoinHandle<'s, (Result<T>, Duration)>,
    /// It was asked because the one before it was late.
    is_hedge: bool,
    _stop: StopOnDrop,
}

/// Tells an attempt to stop when nobody waits for it any more, by a return or by a panic.
struct StopOnDrop(Cancel);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// True for an error that another replica may not give.
fn is_of_replica(error: &Error) -> bool {
    matches!(error, Error::Shard { .. } | Error::ShardChanged { .. })
}

/// The reason of an error of a replica.
pub(super) fn why(error: &Error) -> String {
    match error {
        Error::Shard { reason, .. } => reason.clone(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn shard(reason: &str) -> Error {
        Error::Shard { shard: "one".to_owned(), reason: reason.to_owned() }
    }

    fn race(standing: &Mutex<Standing>) -> Race<'_> {
        Race { standing, kind: "kind", is_fault: &|_: &Error| true }
    }

    /// Waits until another replica has answered.
    fn overtaken(stop: &Cancel) -> Result<usize> {
        while !stop.is_cancelled() {
            std::thread::yield_now();
        }
        Err(Error::Cancelled)
    }

    #[test]
    fn the_next_is_asked_where_one_fails_and_all_that_failed_are_told() {
        let standing = Mutex::new(Standing::new(3));
        let answer = race(&standing).run(|at, _| if at == 2 { Ok(at) } else { Err(shard("gone")) });
        assert_eq!(answer.unwrap().unwrap(), 2);
        let failures = race(&standing).run(|at, _| Err::<(), _>(shard(&format!("gone {at}")))).unwrap_err();
        let mut told: Vec<(usize, String)> = failures.iter().map(|(at, error)| (*at, why(error))).collect();
        told.sort();
        assert_eq!(told, [0, 1, 2].map(|at| (at, format!("gone {at}"))));
        assert!(standing.into_inner().unwrap().replicas().iter().all(|replica| replica.rest.is_some()));
    }

    #[test]
    fn an_error_that_is_no_replicas_is_the_answer_and_nobody_else_is_asked() {
        let (standing, n_asked) = (Mutex::new(Standing::new(2)), AtomicUsize::new(0));
        let answer = race(&standing).run(|_, _| {
            n_asked.fetch_add(1, Ordering::SeqCst);
            Err::<(), _>(Error::Cancelled)
        });
        assert!(matches!(answer, Ok(Err(Error::Cancelled))));
        assert_eq!(n_asked.into_inner(), 1);
        assert_eq!(standing.into_inner().unwrap().replicas()[0].n_failures, 0);
    }

    #[test]
    fn one_that_is_late_is_overtaken_told_to_stop_and_rests() {
        let (standing, n_stopped) = (Mutex::new(Standing::new(2)), AtomicUsize::new(0));
        for at in [0, 1].repeat(20) {
            let (took, now) = (Duration::from_millis(1), Instant::now());
            standing.lock().unwrap().answered(at, "kind", took, false, now);
        }
        for _ in 0..40 {
            let answer = race(&standing).run(|at, stop| match at {
                1 => overtaken(stop).inspect_err(|_| assert!(n_stopped.fetch_add(1, Ordering::SeqCst) < 40)),
                _ => Ok(at),
            });
            assert_eq!(answer.unwrap().unwrap(), 0);
        }
        let standing = standing.into_inner().unwrap();
        let slow = &standing.replicas()[1];
        assert!(slow.rest.is_some() && slow.n_overtaken >= 3, "{slow:?}");
        // On a busy machine the quick one may be late too, and the slow one asked beside it.
        assert!(standing.n_hedges_won == slow.n_overtaken && standing.n_hedged >= slow.n_overtaken);
        assert!(n_stopped.into_inner() as u64 >= slow.n_overtaken, "every one that lost was told");
        assert_eq!(slow.n_failures, 0);
    }

    #[test]
    fn a_late_first_and_a_failing_second_wait_for_the_first() {
        let standing = Mutex::new(Standing::new(2));
        let (ask, asked) = channel();
        let asked = Mutex::new(asked);
        let answer = race(&standing).run(|at, _| match at {
            0 => Ok(asked.lock().unwrap().recv().map(|()| at).unwrap()),
            _ => {
                ask.send(()).unwrap();
                Err(shard("gone"))
            }
        });
        assert_eq!(answer.unwrap().unwrap(), 0);
    }

    #[test]
    fn one_that_hangs_is_asked_around_though_the_allowance_is_spent_and_the_other_rests() {
        let standing = Mutex::new(Standing::new(2));
        standing.lock().unwrap().failed(1, "gone".to_owned(), Instant::now() + 60 * HANGS);
        while standing.lock().unwrap().may_hedge(false) {}
        let answer = race(&standing).run(|at, stop| if at == 0 { overtaken(stop) } else { Ok(at) });
        assert_eq!(answer.unwrap().unwrap(), 1);
        assert_eq!(standing.into_inner().unwrap().replicas()[0].n_overtaken, 1);
    }

    #[test]
    fn a_panic_in_a_call_is_a_panic_and_no_wait_without_an_end() {
        let standing = Mutex::new(Standing::new(2));
        let asked = std::panic::AssertUnwindSafe(|| race(&standing).run(|_, _| -> Result<()> { panic!("of a call") }));
        assert!(std::panic::catch_unwind(asked).is_err());
    }
}
