//! The verbs in Cento's own words: requests and answers are those of the engine, as every door has them.

use std::sync::Arc;

use axum::routing::{MethodRouter, post};
use cento_engine::api;
use cento_engine::{SearchResponse, Service, TraceComparison, WhyNot};

use super::encoders::id_of;
use super::route::{Content, Route, SchemaOf, Scoped, Verb, json, of};
use crate::app::App;
use crate::ask::{Ask, Reply};
use crate::metrics::stages;
use crate::options::Folders;
use crate::refusal::Refusal;
use crate::work::Lane;

/// The type of bare bytes.
const OCTETS: &str = "application/octet-stream";

/// The parameter that says of how many rejected candidates a trace tells.
const REJECTED: &str = "rejected";

/// The route of candidates that are given; no collection is asked there.
const ASSEMBLE: &str = "/v1/assemble";

pub(super) fn routes() -> Vec<Route> {
    let mut routes = asked();
    routes.extend(explained());
    routes
}

/// A route that is asked by POST.
fn route(
    path: &'static str,
    about: &'static str,
    request: SchemaOf,
    answer: Content,
    handler: MethodRouter<Arc<App>>,
) -> Route {
    Route {
        verb: Verb::Post,
        path,
        about,
        scoped: if path.starts_with(ASSEMBLE) { Scoped::Path } else { Scoped::Query },
        request: Some(request),
        answer,
        handler,
    }
}

fn asked() -> Vec<Route> {
    vec![
        route(
            "/v1/search",
            "The best chunks for a query",
            of::<api::SearchRequest>,
            json::<SearchResponse>(),
            post(search),
        ),
        route(
            "/v1/context",
            "The cited context that answers a question, inside a token budget",
            of::<api::ContextRequest>,
            json::<api::ContextAnswer>(),
            post(context),
        ),
        route(
            "/v1/context/curve",
            "The worth of contexts of every budget up to that of the request",
            of::<api::ContextRequest>,
            json::<api::CurveAnswer>(),
            post(curve),
        ),
        route(
            ASSEMBLE,
            "The cited context that candidates of another engine make, inside a token budget",
            of::<api::AssembleRequest>,
            json::<api::AssembleAnswer>(),
            post(assemble),
        ),
        route(
            "/v1/assemble/trace",
            "The trace of the context that candidates of another engine make",
            of::<api::AssembleRequest>,
            json::<serde_json::Value>(),
            post(assemble_trace),
        ),
        route(
            "/v1/assemble/replay",
            "The context of a trace of given candidates once more: the same, or not",
            of::<api::ReassembleRequest>,
            json::<api::ReassembleAnswer>(),
            post(reassemble),
        ),
        route(
            "/v1/embed",
            "The vectors of texts; bare 32-bit floats, little-endian, for Accept: application/octet-stream",
            of::<api::EmbedRequest>,
            json::<api::EmbedAnswer>(),
            post(embed),
        ),
    ]
}

fn explained() -> Vec<Route> {
    vec![
        route(
            "/v1/explain",
            "The stage that lost a document between a question and its context",
            of::<api::WhyNotRequest>,
            json::<WhyNot>(),
            post(why_not),
        ),
        route(
            "/v1/explain/trace",
            "The trace of the context that answers a question; ?rejected=N tells of N rejected candidates and counts all",
            of::<api::ContextRequest>,
            json::<serde_json::Value>(),
            post(trace),
        ),
        route(
            "/v1/explain/why",
            "The decisions of a trace on a chunk or a document, and what undoes them",
            of::<api::WhyRequest>,
            json::<api::WhyAnswer>(),
            post(why),
        ),
        route(
            "/v1/explain/replay",
            "The context of a trace once more: the same, or what differs",
            of::<api::ReplayRequest>,
            json::<api::ReplayAnswer>(),
            post(replay),
        ),
        route(
            "/v1/explain/diff",
            "What two traces differ in",
            of::<api::DiffRequest>,
            json::<TraceComparison>(),
            post(diff),
        ),
    ]
}

async fn search(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        let (collection, request) = (asked.collection()?, asked.request()?);
        let (response, timings) = asked.service().search_timed(collection, &request, asked.cancel)?;
        asked.metrics().searched(&timings);
        asked.metrics().generation(collection, response.generation);
        Ok(Reply::json(&response)?.timed(stages(&timings)))
    })
    .await
}

async fn context(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        let (collection, request) = (asked.collection()?, asked.request()?);
        let service = asked.service();
        let (answer, timings, assembly) = service.context_timed(collection, &request, asked.cancel)?;
        asked.metrics().generation(collection, answer.generation);
        Ok(Reply::json(&answer)?.timed(stages(&timings).chain([("assemble", assembly)])))
    })
    .await
}

async fn curve(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Bulk, |asked| {
        Reply::json(&asked.service().curve(asked.collection()?, &asked.request()?, asked.cancel)?)
    })
    .await
}

async fn assemble(ask: Ask) -> Result<Reply, Refusal> {
    let lane = ask.lane();
    ask.answer(lane, |asked| Reply::json(&asked.service().assemble(&asked.request()?, asked.cancel)?)).await
}

async fn assemble_trace(ask: Ask) -> Result<Reply, Refusal> {
    let lane = ask.lane();
    ask.answer(lane, |asked| {
        let request = asked.request()?;
        let trace = asked.service().assembled(&request, asked.cancel)?.trace();
        Ok(Reply::bytes("application/json", trace.json())) // as a file of it
    })
    .await
}

async fn reassemble(ask: Ask) -> Result<Reply, Refusal> {
    let lane = ask.lane();
    ask.answer(lane, |asked| {
        let (_, answer) = asked.service().reassemble(&asked.request()?, asked.cancel)?;
        Reply::json(&answer)
    })
    .await
}

async fn why_not(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Bulk, |asked| {
        Reply::json(&asked.service().why_not(asked.collection()?, &asked.request()?, asked.cancel)?)
    })
    .await
}

async fn trace(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        let (request, rejected) = asked.request_and(REJECTED)?;
        let trace = asked.service().trace(asked.collection()?, &request, asked.cancel)?;
        match rejected {
            Some(most) => Reply::json(&trace.excerpt(most)),
            None => Ok(Reply::bytes("application/json", trace.json())), // as a file of it
        }
    })
    .await
}

async fn why(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Bulk, |asked| {
        Reply::json(&asked.service().why(asked.collection()?, &asked.request()?, asked.cancel)?)
    })
    .await
}

async fn replay(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        Reply::json(&asked.service().replay(asked.collection()?, &asked.request()?, asked.cancel)?)
    })
    .await
}

async fn diff(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| Reply::json(&Service::diff(&asked.request()?))).await
}

async fn embed(ask: Ask) -> Result<Reply, Refusal> {
    let is_bare = ask.wants(OCTETS);
    let lane = ask.lane();
    ask.answer(lane, move |asked| {
        let mut answer = asked.service().embed(asked.collection()?, &asked.request()?, asked.cancel)?;
        if asked.options().folders == Folders::Named {
            answer.model = id_of(&answer.model);
        }
        if !is_bare {
            return Reply::json(&answer);
        }
        let values = answer.vectors.iter().flatten();
        Ok(Reply::bytes(OCTETS, values.flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()))
    })
    .await
}
