//! Batches: the answers of many questions as lines, in their order; or their documents as a TREC run.
//!
//! Questions are answered in blocks, one on an engine thread at a time, and a block is begun when the client has taken
//! the one before: a client that reads slowly holds no thread, and one that leaves ends the batch.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::routing::post;
use cento_engine::api::{BatchAnswer, BatchQuery, BatchRequest};
use cento_eval::run::{Ties, write};
use futures_util::{StreamExt as _, stream};

use super::route::{Content, Route, Scoped, Verb, of};
use crate::ask::{Ask, Asked, Reply};
use crate::refusal::Refusal;
use crate::work::Lane;

/// Questions of a block: as many as the engine embeds and scans together.
const BLOCK: usize = 32;

/// The type of lines of JSON.
const LINES: &str = "application/x-ndjson";

/// The type that asks for a run.
const TREC: &str = "text/plain";

/// The last column of a run.
const TAG: &str = "cento";

pub(super) fn routes() -> Vec<Route> {
    vec![Route {
        verb: Verb::Post,
        path: "/v1/search/batch",
        about: "The best chunks for each of many queries, a line each; documents as a TREC run for Accept: text/plain",
        scoped: Scoped::Query,
        request: Some(of::<BatchRequest>),
        answer: Content { kind: LINES, schema: of::<BatchAnswer> },
        handler: post(batch),
    }]
}

/// The form of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Lines,
    Trec,
}

/// A batch of which some blocks are answered.
struct Rest {
    ask: Ask,
    request: Arc<BatchRequest>,
    form: Form,
    done: usize,
}

async fn batch(ask: Ask) -> Result<Reply, Refusal> {
    let form = if ask.wants(TREC) { Form::Trec } else { Form::Lines };
    let request = ask.on_thread(Lane::Query, |asked| asked.request::<BatchRequest>()).await?;
    let mut rest = Rest { ask, request: Arc::new(request), form, done: 0 };
    // The first block says what is wrong with the whole, while a status can still be told.
    let first = rest.next().await.transpose()?.unwrap_or_default();
    let kind = if form == Form::Trec { "text/plain; charset=utf-8" } else { LINES };
    let others = stream::unfold(Some(rest), |rest: Option<Rest>| async move {
        let mut rest = rest?;
        match rest.next().await? {
            Ok(block) => Some((block, Some(rest))),
            Err(refusal) => Some((Bytes::from([refusal.json(), b"\n".to_vec()].concat()), None)), // the last line
        }
    });
    let first = stream::once(async { first });
    let blocks = first.chain(others).map(Ok::<_, std::convert::Infallible>);
    Ok(Reply::bytes(kind, Body::from_stream(blocks)))
}

impl Rest {
    /// The lines of the next block; none behind the last.
    async fn next(&mut self) -> Option<Result<Bytes, Refusal>> {
        let from = self.done;
        if from >= self.request.queries.len() {
            return None;
        }
        self.done = self.request.queries.len().min(from + BLOCK);
        let (request, form, to) = (Arc::clone(&self.request), self.form, self.done);
        let job = move |asked: &Asked<'_>| lines(asked, &request, &request.queries[from..to], form);
        Some(self.ask.on_thread(Lane::Bulk, job).await.map(Bytes::from))
    }
}

fn lines(asked: &Asked<'_>, request: &BatchRequest, block: &[BatchQuery], form: Form) -> Result<Vec<u8>, Refusal> {
    let (collection, service, mut out) = (asked.collection()?, asked.service(), Vec::new());
    let broken = |error: String| Refusal::own("serialize", error);
    match form {
        Form::Lines => {
            for query in block {
                let (answer, timings) = service.search_timed(collection, &request.search(query), asked.cancel)?;
                asked.metrics().searched(&timings);
                let answer = BatchAnswer { id: query.id.clone(), answer };
                serde_json::to_writer(&mut out, &answer).map_err(|error| broken(error.to_string()))?;
                out.push(b'\n');
            }
        }
        Form::Trec => {
            let texts: Vec<&str> = block.iter().map(|query| query.query.as_str()).collect();
            let rankings = service.rank(collection, &texts, &request.search, asked.cancel)?;
            for (query, ranking) in block.iter().zip(rankings) {
                let ranking = ranking.iter().map(|(document, score)| (document, *score));
                write(&mut out, &query.id, ranking, TAG, Ties::Break).map_err(|error| broken(error.to_string()))?;
            }
        }
    }
    Ok(out)
}
