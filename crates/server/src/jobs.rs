//! Jobs: what writers do, each on a thread of its own, whoever waits for it; one a collection at a time.
//!
//! A job outlives the client that began it, and ends with the server: then it is cancelled, and the collection is as it
//! was. Those that ended are remembered until others take their places; a server that starts knows none.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use cento_engine::api::{Fault, VERSION, Written};
use cento_engine::{Cancel, Error, Progress, Service, Stage};
use parking_lot::{Condvar, Mutex};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::log;
use crate::options::Log;
use crate::refusal::{ErrorBody, Refusal};

/// Jobs that are remembered.
const JOBS_MAX: usize = 256;

/// Jobs that run at once, of different collections: each has an encoder of its own.
const RUNNING_MAX: usize = 4;

/// The name of the parameter of an address that names a job.
pub(crate) const JOB: &str = "job";

/// The thing a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Files and folders are read.
    Index,
    /// Documents are added that were handed over.
    Add,
    /// Documents go.
    Delete,
    /// Segments are merged.
    Compact,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// At work.
    Running,
    /// At work, and asked to end.
    Cancelling,
    /// Committed, if there was anything to commit.
    Done,
    /// Ended by an error; the collection is as it was.
    Failed,
    /// Ended because somebody asked for it; the collection is as it was.
    Cancelled,
}

/// A job as it is now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct JobAnswer {
    /// Format of this answer.
    version: u32,
    /// Its id.
    #[schemars(with = "String")]
    pub(crate) id: Uuid,
    /// The collection that it works on.
    collection: String,
    /// The thing it does.
    kind: Kind,
    /// Its state.
    pub(crate) state: State,
    /// Seconds since it began, until it ended.
    seconds: f64,
    /// The work at hand: `embedding`, `writing` or `compacting`.
    stage: Option<&'static str>,
    /// Documents read.
    n_documents: u64,
    /// Bytes read.
    n_bytes: u64,
    /// Bytes to read.
    n_bytes_total: u64,
    /// Tokens embedded.
    n_tokens: u64,
    /// Tokens embedded a second.
    tokens_per_second: f64,
    /// Rows copied.
    n_rows: u64,
    /// Rows to copy.
    n_rows_total: u64,
    /// Seconds that it will go on, if it goes on as before; none where nothing says it.
    eta_seconds: Option<f64>,
    /// The result of one that is done.
    result: Option<Written>,
    /// The error of one that failed.
    error: Option<ErrorBody>,
}

/// The jobs that are known, those begun last first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct JobList {
    /// Format of this answer.
    version: u32,
    /// The jobs.
    jobs: Vec<JobAnswer>,
}

struct Job {
    id: Uuid,
    collection: String,
    kind: Kind,
    began: Instant,
    cancel: Cancel,
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    progress: Progress,
    ended: Option<(Duration, Result<Written, Ended>)>,
}

/// The end of a job without a result.
enum Ended {
    Cancelled,
    Failed(ErrorBody),
}

#[derive(Default)]
struct Known {
    jobs: VecDeque<Arc<Job>>,
    is_closed: bool,
}

/// The jobs of a server.
#[derive(Default)]
pub(crate) struct Jobs {
    known: Mutex<Known>,
    ended: Condvar,
}

/// The work of a job.
pub(crate) type Work =
    Box<dyn FnOnce(&Service, &Cancel, &mut dyn FnMut(&Progress)) -> Result<Written, Error> + Send + 'static>;

impl Jobs {
    /// Begins a job on a thread of its own.
    ///
    /// # Errors
    /// 409 with the id of the job that is at work on the collection, 429 where too many are at work, 503 where the
    /// server ends.
    pub(crate) fn begin(
        self: &Arc<Self>,
        service: &Arc<Service>,
        log: Log,
        (collection, kind): (&str, Kind),
        work: Work,
    ) -> Result<JobAnswer, Refusal> {
        let (began, cancel) = (Instant::now(), Cancel::new());
        let collection = collection.to_owned();
        let job = Arc::new(Job { id: Uuid::new_v4(), collection, kind, began, cancel, live: Mutex::default() });
        let mut known = self.known.lock();
        if known.is_closed {
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ending", "the server is about to end"));
        }
        let mut running = known.jobs.iter().filter(|job| job.is_running());
        if let Some(other) = running.clone().find(|other| other.collection == job.collection) {
            let message = format!("job {} is at work on this collection", other.id);
            let refusal = Refusal::new(StatusCode::CONFLICT, "job_running", message).of("collection");
            return Err(
                refusal.hint(&format!("GET /v1/jobs/{0} says how far it is, DELETE /v1/jobs/{0} ends it", other.id))
            );
        }
        if running.nth(RUNNING_MAX - 1).is_some() {
            return Err(Refusal::busy());
        }
        let (jobs, service, of_thread) = (Arc::clone(self), Arc::clone(service), Arc::clone(&job));
        let thread = thread::Builder::new().name("job".to_owned());
        let run = move || jobs.run(&of_thread, &service, log, work);
        thread.spawn(run).map_err(|error| Refusal::own("thread", error.to_string()))?;
        known.jobs.push_front(Arc::clone(&job));
        while known.jobs.len() > JOBS_MAX {
            let Some(oldest) = known.jobs.iter().rposition(|job| !job.is_running()) else { break };
            known.jobs.remove(oldest);
        }
        drop(known);
        Ok(job.answer())
    }

    fn run(&self, job: &Job, service: &Service, log: Log, work: Work) {
        let mut progress = |progress: &Progress| job.live.lock().progress = progress.clone();
        // A panic is a failure of the job; the collection is as it was, as after a kill.
        let unwound = std::panic::AssertUnwindSafe(|| work(service, &job.cancel, &mut progress));
        let (outcome, cause) = match std::panic::catch_unwind(unwound) {
            Ok(Ok(written)) => (Ok(written), None),
            Ok(Err(Error::Cancelled)) => (Err(Ended::Cancelled), None),
            Ok(Err(error)) => {
                let refusal = refusal(service, error);
                (Err(Ended::Failed(refusal.body)), refusal.cause)
            }
            Err(_) => {
                let refusal = Refusal::own("panic", "a job gave up".to_owned());
                (Err(Ended::Failed(refusal.body)), refusal.cause)
            }
        };
        {
            let _known = self.known.lock(); // whoever begins another job sees this one ended, or not
            job.live.lock().ended = Some((job.began.elapsed(), outcome));
        }
        job.log(cause.filter(|_| log == Log::Words));
        self.ended.notify_all();
    }

    /// The jobs that are known, those begun last first.
    pub(crate) fn list(&self) -> JobList {
        let jobs = self.known.lock().jobs.iter().map(|job| job.answer()).collect();
        JobList { version: VERSION, jobs }
    }

    /// A job.
    ///
    /// # Errors
    /// 404.
    pub(crate) fn job(&self, id: &str) -> Result<JobAnswer, Refusal> {
        self.find(id).map(|job| job.answer())
    }

    /// Asks a job to end; one that has ended stays as it is.
    ///
    /// # Errors
    /// 404.
    pub(crate) fn cancel(&self, id: &str) -> Result<JobAnswer, Refusal> {
        let job = self.find(id)?;
        job.cancel.cancel();
        Ok(job.answer())
    }

    fn find(&self, id: &str) -> Result<Arc<Job>, Refusal> {
        let id = Uuid::parse_str(id).ok();
        let found = self.known.lock().jobs.iter().find(|job| Some(job.id) == id).map(Arc::clone);
        found.ok_or_else(|| {
            let refusal = Refusal::new(StatusCode::NOT_FOUND, "unknown_job", "there is no such job, or not any more");
            refusal.of(JOB).hint("GET /v1/jobs lists them")
        })
    }

    /// Cancels all jobs and waits until they have ended, for so long at most. No other is begun. The answer is how many
    /// were at work.
    pub(crate) fn end(&self, time: Duration) -> usize {
        let began = Instant::now();
        let mut known = self.known.lock();
        known.is_closed = true;
        let n_running = known.jobs.iter().filter(|job| job.is_running()).count();
        known.jobs.iter().for_each(|job| job.cancel.cancel());
        while known.jobs.iter().any(|job| job.is_running())
            && let Some(left) = time.checked_sub(began.elapsed())
        {
            self.ended.wait_for(&mut known, left);
        }
        n_running
    }
}

/// The refusal that says what an error of a writer says, where its caller can do something about it.
pub(crate) fn refusal(service: &Service, error: Error) -> Refusal {
    match service.words(&error) {
        Some(words) => Refusal::new(StatusCode::BAD_REQUEST, &Fault::from(&error).code, words),
        None => error.into(),
    }
}

impl Job {
    fn is_running(&self) -> bool {
        self.live.lock().ended.is_none()
    }

    fn answer(&self) -> JobAnswer {
        let live = self.live.lock();
        let (state, time) = match &live.ended {
            None if self.cancel.is_cancelled() => (State::Cancelling, self.began.elapsed()),
            None => (State::Running, self.began.elapsed()),
            Some((time, Ok(_))) => (State::Done, *time),
            Some((time, Err(Ended::Cancelled))) => (State::Cancelled, *time),
            Some((time, Err(Ended::Failed(_)))) => (State::Failed, *time),
        };
        let (progress, seconds, is_running) = (&live.progress, time.as_secs_f64(), live.ended.is_none());
        let (done, total) = match progress.stage {
            Stage::Embedding | Stage::Writing => (progress.n_bytes, progress.n_bytes_total),
            Stage::Compacting => (progress.n_rows, progress.n_rows_total),
        };
        let eta = (is_running && (1..total).contains(&done)).then(|| seconds * (total - done) as f64 / done as f64);
        let stage = match progress.stage {
            Stage::Embedding => "embedding",
            Stage::Writing => "writing",
            Stage::Compacting => "compacting",
        };
        JobAnswer {
            version: VERSION,
            id: self.id,
            collection: self.collection.clone(),
            kind: self.kind,
            state,
            seconds: rounded(seconds),
            stage: is_running.then_some(stage),
            n_documents: progress.n_documents,
            n_bytes: progress.n_bytes,
            n_bytes_total: progress.n_bytes_total,
            n_tokens: progress.n_tokens,
            tokens_per_second: if seconds > 0.0 { rounded(progress.n_tokens as f64 / seconds) } else { 0.0 },
            n_rows: progress.n_rows,
            n_rows_total: progress.n_rows_total,
            eta_seconds: eta.map(rounded),
            result: live.ended.as_ref().and_then(|(_, ended)| ended.as_ref().ok().cloned()),
            error: live.ended.as_ref().and_then(|(_, ended)| match ended {
                Err(Ended::Failed(error)) => Some(error.clone()),
                Ok(_) | Err(Ended::Cancelled) => None,
            }),
        }
    }

    /// A line of the log: which job ended, how and after how long.
    fn log(&self, cause: Option<String>) {
        let JobAnswer { id, kind, state, seconds, error, .. } = self.answer();
        let code = error.map(|error| error.code);
        log::line(&json!({
            "job": id, "kind": kind, "state": state, "seconds": seconds, "code": code, "cause": cause,
        }));
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
