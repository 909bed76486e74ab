//! The way of a call to a shard, and of its answer back: bytes, a status, a deadline.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::line::{Line, NoAnswer, StatusCode, excerpt};

/// Bytes of an answer, at most.
pub(super) const ANSWER_BYTES_MAX: usize = 256 << 20;

/// The code of a refusal that says that the collection has another generation now.
const OTHER_GENERATION: &str = "other_generation";

/// A way to a server that answers for a shard.
pub(crate) trait Carrier: Debug + Send + Sync {
    /// The shard as errors name it.
    fn name(&self) -> &str;

    /// The body that answers a call, of `bytes_max` bytes at most, or why there is none.
    fn carry(&self, call: &[u8], bytes_max: usize, stop: &(dyn Fn() -> bool + Sync)) -> Result<Vec<u8>, Uncarried>;
}

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) enum Uncarried {
    /// It is not wanted any more.
    Stopped,
    /// The shard has another generation than the one that was asked.
    Changed,
    /// Anything else, in words.
    Failed(String),
}

/// A server behind a line.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its address as the user wrote it.
    pub(crate) name: String,
    pub(crate) line: Line,
}

/// A refusal, as far as it is one.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    error: Refused,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Refused {
    code: String,
    message: String,
}

impl Carrier for Server {
    fn name(&self) -> &str {
        &self.name
    }

    /// Every call only reads, so one whose connection was closed without an answer is made again.
    fn carry(&self, call: &[u8], bytes_max: usize, stop: &(dyn Fn() -> bool + Sync)) -> Result<Vec<u8>, Uncarried> {
        let (status, body) = self.line.read(call, bytes_max, stop).map_err(|error| match error {
            NoAnswer::Stopped => Uncarried::Stopped,
            NoAnswer::Lost(reason) | NoAnswer::Refused(reason) => Uncarried::Failed(reason),
        })?;
        if status.is_success() {
            return Ok(body);
        }
        let Refused { code, message } = serde_json::from_slice(&body).unwrap_or_else(|_| Refusal::default()).error;
        if (status, code.as_str()) == (StatusCode::CONFLICT, OTHER_GENERATION) {
            return Err(Uncarried::Changed);
        }
        let words = if message.is_empty() { String::from_utf8_lossy(&body).into_owned() } else { message };
        Err(Uncarried::Failed(format!("answered {status}: {}", excerpt(&self.line.hidden(&words)))))
    }
}

/// A carrier that waits no longer than this for any answer.
#[derive(Debug)]
pub(crate) struct Within<'c> {
    pub(crate) carrier: &'c dyn Carrier,
    pub(crate) time: Duration,
}

impl Carrier for Within<'_> {
    fn name(&self) -> &str {
        self.carrier.name()
    }

    fn carry(&self, call: &[u8], bytes_max: usize, stop: &(dyn Fn() -> bool + Sync)) -> Result<Vec<u8>, Uncarried> {
        let start = Instant::now();
        let is_late = || start.elapsed() >= self.time;
        match self.carrier.carry(call, bytes_max, &|| is_late() || stop()) {
            Err(Uncarried::Stopped) if is_late() && !stop() => {
                Err(Uncarried::Failed(format!("no answer within {} s", self.time.as_secs_f64())))
            }
            carried => carried,
        }
    }
}
