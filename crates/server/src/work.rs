//! Work: engine threads behind a bounded queue of two lanes, so that a query never waits behind a bulk embedding.
//!
//! A lane that is full refuses at once. Bulk work never has all threads. Work that nobody waits for any more is not
//! begun, and what has begun looks at its token and ends.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cento_engine::Cancel;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::refusal::Refusal;

/// Threads for each core: what they ask of the encoder meanwhile is embedded together. With four, eight clients had 103
/// to 129 searches and 252 to 310 short texts a second, with one 83 to 97 and 213 to 225 (MiniLM, two cores).
const THREADS_PER_CORE: usize = 4;

/// The queue that a request waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Somebody waits for it.
    Query,
    /// Many texts, which take their time.
    Bulk,
}

/// The names of the lanes, as metrics give them.
pub(crate) const LANES: [(Lane, &str); 2] = [(Lane::Query, "query"), (Lane::Bulk, "bulk")];

struct Pending {
    job: Box<dyn FnOnce() + Send>,
    cancel: Cancel,
}

#[derive(Default)]
struct State {
    queries: VecDeque<Pending>,
    bulk: VecDeque<Pending>,
    n_bulk: usize,
    is_closed: bool,
}

struct Shared {
    state: Mutex<State>,
    ready: Condvar,
    queue: usize,
    bulk_max: usize,
}

/// The engine threads and their queue.
pub(crate) struct Work {
    shared: Arc<Shared>,
}

/// Cancels work whose answer nobody waits for any more.
struct Left(Cancel);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Work {
    /// Starts `n_threads` engine threads, two at least, or [`THREADS_PER_CORE`] for 0; `queue` requests wait in each
    /// lane. Bulk work has a thread for each core but one, as each of its requests keeps several cores busy.
    ///
    /// # Errors
    /// [`Error::System`] if a thread cannot be had.
    pub(crate) fn start(n_threads: usize, queue: usize) -> Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let n_threads = if n_threads == 0 { THREADS_PER_CORE * cores } else { n_threads }.max(2);
        let bulk_max = cores.saturating_sub(1).clamp(1, n_threads - 1);
        let (state, ready) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { state, ready, queue: queue.max(1), bulk_max });
        for n in 0..n_threads {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("engine-{n}"));
            thread.spawn(move || shared.work()).map_err(Error::System)?;
        }
        Ok(Self { shared })
    }

    /// Runs a job on an engine thread, and gives its answer unless it takes longer than `time`, queue included. A
    /// caller that leaves drops the future, and so cancels the job.
    ///
    /// # Errors
    /// [`Refusal::busy`] where the lane is full, [`Refusal::late`], and what the job refuses.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        time: Duration,
        job: impl FnOnce(&Cancel) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let cancel = Cancel::after(time);
        let _left = Left(cancel.clone());
        let (sender, answer) = oneshot::channel();
        let of_job = cancel.clone();
        let job = Box::new(move || drop(sender.send(job(&of_job))));
        self.shared.enqueue(lane, Pending { job, cancel: cancel.clone() })?;
        match tokio::time::timeout(time, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) if cancel.is_cancelled() => Err(Refusal::late()),
            Ok(Err(_)) => Err(Refusal::own("panic", "an engine thread gave up on the request".to_owned())),
            Err(_) => Err(Refusal::late()),
        }
    }

    /// Requests that wait in a lane.
    pub(crate) fn n_waiting(&self, lane: Lane) -> usize {
        self.shared.state.lock().lane(lane).len()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.shared.state.lock().is_closed = true;
        self.shared.ready.notify_all();
    }
}

impl State {
    fn lane(&mut self, lane: Lane) -> &mut VecDeque<Pending> {
        match lane {
            Lane::Query => &mut self.queries,
            Lane::Bulk => &mut self.bulk,
        }
    }

    /// The next job: queries first, bulk work as long as it leaves a thread for them.
    fn next(&mut self, bulk_max: usize) -> Option<(Lane, Pending)> {
        if let Some(pending) = self.queries.pop_front() {
            return Some((Lane::Query, pending));
        }
        let pending = if self.n_bulk < bulk_max { self.bulk.pop_front() } else { None }?;
        self.n_bulk += 1;
        Some((Lane::Bulk, pending))
    }
}

impl Shared {
    fn enqueue(&self, lane: Lane, pending: Pending) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        let waiting = state.lane(lane);
        if waiting.len() >= self.queue {
            waiting.retain(|pending| !pending.cancel.is_cancelled()); // nobody waits for those
        }
        if waiting.len() >= self.queue {
            return Err(Refusal::busy());
        }
        waiting.push_back(pending);
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some((lane, pending)) = state.next(self.bulk_max) {
                drop(state);
                if !pending.cancel.is_cancelled() {
                    // The state that a panic leaves is the engine's own, which is made for it.
                    let _ = catch_unwind(AssertUnwindSafe(pending.job));
                }
                state = self.state.lock();
                if lane == Lane::Bulk {
                    state.n_bulk -= 1;
                    self.ready.notify_one();
                }
            } else if state.is_closed {
                return;
            } else {
                self.ready.wait(&mut state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    }

    /// A job that says that it began, and ends when it is told.
    fn gate() -> (impl FnOnce(&Cancel) -> Result<(), Refusal> + Send, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let ((begin, began), (end, ended)) = (mpsc::channel(), mpsc::channel());
        let job = move |_: &Cancel| {
            let _ = begin.send(());
            let _ = ended.recv();
            Ok(())
        };
        (job, began, end)
    }

    #[test]
    fn bulk_work_leaves_a_thread_to_queries() {
        let (runtime, work) = (runtime(), Arc::new(Work::start(2, 4).unwrap()));
        let mut ends = Vec::new();
        for n in 0..3 {
            let (job, began, end) = gate();
            let work = Arc::clone(&work);
            runtime.spawn(async move { work.run(Lane::Bulk, LONG, job).await });
            if n == 0 {
                began.recv().unwrap();
            }
            ends.push((began, end));
        }
        let answer = runtime.block_on(work.run(Lane::Query, LONG, |_| Ok(7)));
        assert_eq!(answer.unwrap(), 7);
        assert!(ends[1..].iter().all(|(began, _)| began.try_recv().is_err()), "two of bulk ran at once");
    }

    #[test]
    fn a_full_lane_refuses_and_the_other_does_not() {
        let (runtime, work) = (runtime(), Arc::new(Work::start(2, 1).unwrap()));
        let (first, began, end) = gate();
        let spawned = Arc::clone(&work);
        let running = runtime.spawn(async move { spawned.run(Lane::Bulk, LONG, first).await });
        began.recv().unwrap();
        let spawned = Arc::clone(&work);
        let waiting = runtime.spawn(async move { spawned.run(Lane::Bulk, LONG, |_| Ok(())).await });
        while work.n_waiting(Lane::Bulk) == 0 {
            thread::yield_now();
        }
        let refused = runtime.block_on(work.run(Lane::Bulk, LONG, |_| Ok(()))).unwrap_err();
        assert_eq!(refused.status, 429);
        assert!(runtime.block_on(work.run(Lane::Query, LONG, |_| Ok(()))).is_ok());
        end.send(()).unwrap();
        assert!(runtime.block_on(running).unwrap().is_ok() && runtime.block_on(waiting).unwrap().is_ok());
    }

    #[test]
    fn whoever_leaves_cancels_the_work() {
        let (runtime, work) = (runtime(), Arc::new(Work::start(2, 4).unwrap()));
        let ((begin, began), (end, ended)) = (mpsc::channel(), mpsc::channel());
        let spawned = Arc::clone(&work);
        let task = runtime.spawn(async move {
            let job = move |cancel: &Cancel| {
                let _ = begin.send(());
                while !cancel.is_cancelled() {
                    thread::yield_now();
                }
                let _ = end.send(());
                Ok(())
            };
            spawned.run(Lane::Query, LONG, job).await
        });
        began.recv().unwrap();
        task.abort();
        ended.recv().unwrap();
    }

    #[test]
    fn what_takes_too_long_or_panics_is_refused() {
        let (runtime, work) = (runtime(), Work::start(2, 4).unwrap());
        let slow = |cancel: &Cancel| {
            while !cancel.is_cancelled() {
                thread::yield_now();
            }
            cancel.check().map_err(Refusal::from)
        };
        let late = runtime.block_on(work.run(Lane::Query, Duration::from_millis(5), slow)).unwrap_err();
        assert_eq!((late.status.as_u16(), late.body.code.as_str()), (504, "deadline"));
        for _ in 0..4 {
            let job = |_: &Cancel| -> Result<(), Refusal> { std::panic::resume_unwind(Box::new("a bug")) };
            assert_eq!(runtime.block_on(work.run(Lane::Query, LONG, job)).unwrap_err().status, 500);
        }
        assert!(runtime.block_on(work.run(Lane::Query, LONG, |_| Ok(()))).is_ok(), "every thread is still there");
    }
}
