//! Requests that are made again where that may help: a bounded number of times, after bounded waits.

use std::time::Duration;

use super::{Answer, Line, NoAnswer, StatusCode, excerpt};

/// The first wait before a request is made again, doubled each time.
const PAUSE: Duration = Duration::from_millis(500);

/// Persistence with a server that does not answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Times that one request is made.
    n_tries: u32,
    /// The same where the server cannot be reached, breaks the connection or says nothing in time.
    n_tries_lost: u32,
    /// The longest wait between two; a server that asks for more is not asked again.
    pause_max: Duration,
}

impl Patience {
    /// Of runs over many texts.
    pub(crate) const LONG: Self = Self::of(6, Duration::from_secs(60));
    /// Of calls that take long themselves, as those of language models.
    pub(crate) const CALL: Self = Self::of(4, Duration::from_secs(60));
    /// Of questions, whose answers somebody waits for.
    pub(crate) const SHORT: Self = Self::of(2, Duration::from_secs(2));

    const fn of(n_tries: u32, pause_max: Duration) -> Self {
        Self { n_tries, n_tries_lost: n_tries, pause_max }
    }

    /// The same with a server that never answered: it is not there.
    pub(crate) const fn with_stranger(self) -> Self {
        Self { n_tries_lost: 1, ..self }
    }
}

/// Why a request was not made again.
#[derive(Debug)]
pub(crate) enum GaveUp {
    /// The answer is not wanted any more.
    Stopped,
    /// There is none; the last reason.
    Unanswered(String),
}

impl Line {
    /// The answer to a JSON body as [`Line::ask`] gives it, asked for again after 408, 429, a fault of the server or a
    /// broken connection. `asked` is told the number of each try, from 1. Other statuses are answers.
    pub(crate) fn insist(
        &self,
        body: &[u8],
        bytes_max: usize,
        patience: Patience,
        stop: &(dyn Fn() -> bool + Sync),
        asked: &dyn Fn(u32),
    ) -> Result<Answer, GaveUp> {
        for n_tries in 1.. {
            asked(n_tries);
            let (reason, pause, n_tries_max) = match self.ask(body, bytes_max, stop) {
                Ok(answer) if !may_change(answer.status) => return Ok(answer),
                Ok(answer) => (answer.declined(), answer.retry_after, patience.n_tries),
                Err(NoAnswer::Stopped) => return Err(GaveUp::Stopped),
                Err(NoAnswer::Refused(reason)) => return Err(GaveUp::Unanswered(reason)),
                Err(NoAnswer::Lost(reason)) => (reason, None, patience.n_tries_lost),
            };
            if n_tries == n_tries_max {
                let times = if n_tries > 1 { format!(" (asked {n_tries} times)") } else { String::new() };
                return Err(GaveUp::Unanswered(reason + &times));
            }
            let pause = pause.unwrap_or(PAUSE * (1 << (n_tries - 1)));
            if pause > patience.pause_max {
                let (wanted, most) = (pause.as_secs(), patience.pause_max.as_secs());
                let reason = format!("{reason}; it asks to wait {wanted} s, longer than {most} s");
                return Err(GaveUp::Unanswered(reason));
            }
            if !self.wait(pause, stop) {
                return Err(GaveUp::Stopped);
            }
        }
        unreachable!("the tries are counted")
    }
}

impl Answer {
    /// A status that is no success, in words.
    pub(crate) fn declined(&self) -> String {
        format!("answered {}: {}", self.status, excerpt(&self.body))
    }
}

/// True for a status that the same request may not have the next time.
fn may_change(status: StatusCode) -> bool {
    [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status) || status.is_server_error()
}
