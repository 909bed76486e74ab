//! A reranker behind an endpoint that speaks as Cohere and Jina do: `POST …/rerank`.
//!
//! Bounds: a request has at most [`DOCUMENTS_MAX`] passages, a call ends in its time, reads at most
//! [`ANSWER_BYTES_MAX`], and is made again at most [`AGAIN_MAX`] times, where the server asks for patience. An answer
//! counts whole or not at all: every passage once, each with a probability.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::error::Result;
use crate::line::{self, Answer, Line, NoAnswer, Reach, StatusCode, Target, excerpt};

/// Passages of a request: as many as one question has by default, and a few more.
pub(super) const DOCUMENTS_MAX: usize = 64;

/// Time for one call.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Times that a call is made again after 429 or 503.
const AGAIN_MAX: usize = 2;

/// The wait before that where the server names none, and the longest one.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(20);

/// Logits of 0 and of 1, which have none: beyond these the probability is the same number.
const LOGIT_MIN: f64 = -700.0;
const LOGIT_MAX: f64 = 40.0;

/// A model at an address.
pub(super) struct RerankEndpoint {
    model: String,
    line: Line,
}

#[derive(Deserialize)]
struct Ranking {
    results: Vec<Ranked>,
}

#[derive(Deserialize)]
struct Ranked {
    index: usize,
    relevance_score: f64,
}

impl fmt::Debug for RerankEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RerankEndpoint").field("model", &self.model).field("line", &self.line).finish()
    }
}

impl RerankEndpoint {
    /// Gets ready to ask, and says at which host; nothing is sent.
    pub(super) fn open(model: &str, url: &str, key: Option<&str>, reach: Reach) -> Result<(Self, String)> {
        let target = Target { url, path: "/rerank", setting: "rerank", key_name: "CENTO_RERANK_KEY" };
        let (host, line) = (line::host_of(&target)?, Line::open(&target, key, TIMEOUT, reach)?);
        Ok((Self { model: model.to_owned(), line }, host))
    }

    /// The logit of each passage, unless `stop` says so before they are there; why there is none, otherwise.
    pub(super) fn logits(
        &self,
        query: &str,
        passages: &[String],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Vec<f32>>, String> {
        let body = json!({
            "model": self.model,
            "query": query,
            "documents": passages,
            "top_n": passages.len(),
            "return_documents": false,
        });
        let body = body.to_string();
        let mut n_again = 0;
        loop {
            let Answer { status, retry_after, body } = match self.line.ask(body.as_bytes(), ANSWER_BYTES_MAX, stop) {
                Ok(answer) => answer,
                Err(NoAnswer::Stopped) => return Ok(None),
                Err(NoAnswer::Lost(reason) | NoAnswer::Refused(reason)) => return Err(reason),
            };
            if status.is_success() {
                return read(&body, passages.len()).map(Some);
            }
            let pause = retry_after.unwrap_or(PAUSE);
            let asks_for_patience = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status);
            if !asks_for_patience || n_again == AGAIN_MAX || pause > PAUSE_MAX {
                return Err(format!("answered {status}: {}", excerpt(&body)));
            }
            n_again += 1;
            if !self.line.wait(pause, stop) {
                return Ok(None);
            }
        }
    }
}

/// The logits of an answer, in the order of the passages.
fn read(body: &str, n_passages: usize) -> Result<Vec<f32>, String> {
    let ranking: Ranking = serde_json::from_str(body)
        .map_err(|error| format!("no ranking ({error}) in {}; expected {FORM}", excerpt(body)))?;
    let mut logits = vec![None; n_passages];
    for Ranked { index, relevance_score: score } in ranking.results {
        let Some(place) = logits.get_mut(index) else {
            return Err(format!("scores the passage of index {index}, and there are {n_passages}"));
        };
        if !(0.0..=1.0).contains(&score) {
            return Err(format!("gives passage {index} the score {score}, which is no probability from 0 to 1"));
        }
        if place.replace(logit(score)).is_some() {
            return Err(format!("scores passage {index} twice"));
        }
    }
    let n_scored = logits.iter().flatten().count();
    let logits: Option<Vec<f32>> = logits.into_iter().collect();
    logits.ok_or_else(|| format!("scores {n_scored} of {n_passages} passages"))
}

/// The form of an answer.
const FORM: &str = "{\"results\": [{\"index\": 0, \"relevance_score\": 0.5}]}";

fn logit(probability: f64) -> f32 {
    (probability.ln() - (-probability).ln_1p()).clamp(LOGIT_MIN, LOGIT_MAX) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logit_comes_back_from_its_probability() {
        for tenth in -150..=150_i16 {
            let before = f32::from(tenth) / 10.0;
            let probability = 1.0 / (1.0 + (-f64::from(before)).exp());
            assert!((logit(probability) - before).abs() <= before.abs() * f32::EPSILON, "{before}");
        }
        assert!(logit(0.0) < logit(f64::MIN_POSITIVE.powf(0.9)) && logit(1.0) > 36.0);
    }

    #[test]
    fn an_answer_counts_whole_or_not_at_all() {
        let of = |results: &str| read(&format!("{{\"results\": [{results}]}}"), 2);
        let (low, high) = (r#"{"index": 0, "relevance_score": 0.25}"#, r#"{"index": 1, "relevance_score": 0.75}"#);
        assert_eq!(of(&format!("{high}, {low}")).unwrap(), [-(3f32.ln()), 3f32.ln()]);
        for (results, words) in [
            (low.to_owned(), "1 of 2"),
            (format!("{low}, {low}"), "passage 0 twice"),
            (format!("{low}, {}", high.replace("0.75", "1.75")), "1.75, which is no probability"),
            (format!("{low}, {}", high.replace("0.75", "null")), "no ranking"),
            (format!("{low}, {}", high.replace("0.75", "NaN")), "no ranking"),
            (format!("{low}, {}", high.replace(": 1,", ": 2,")), "index 2, and there are 2"),
            (format!("{low}, {}", high.replace(": 1,", ": -1,")), "no ranking"),
        ] {
            let reason = of(&results).unwrap_err();
            assert!(reason.contains(words), "{results}: {reason}");
        }
        assert!(read("<html>", 2).unwrap_err().contains("<html>"));
    }
}
