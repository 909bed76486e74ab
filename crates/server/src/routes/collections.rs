//! What there is: collections, their documents, texts, sections, fields, snapshots.

use axum::routing::get;
use cento_engine::{Excerpt, Status, api};

use super::encoders::id_of;
use super::route::{Content, Route, SchemaOf, Scoped, Verb, json, of};
use crate::ask::{Ask, Reply};
use crate::options::Folders;
use crate::refusal::Refusal;
use crate::work::Lane;

pub(super) fn routes() -> Vec<Route> {
    let route = |path, about, request: Option<SchemaOf>, answer: Content, handler| Route {
        verb: Verb::Get,
        path,
        about,
        scoped: Scoped::Path,
        request,
        answer,
        handler,
    };
    vec![
        route("/v1/collections", "The collections there are", None, json::<api::CollectionList>(), get(list)),
        route("/v1/collections/{collection}", "The contents of a collection", None, json::<Status>(), get(status)),
        route(
            "/v1/collections/{collection}/documents",
            "The documents, all or those that a filter admits",
            Some(of::<api::ListRequest>),
            json::<api::DocumentList>(),
            get(documents),
        ),
        route(
            "/v1/collections/{collection}/text",
            "A document, or the part of it that a citation names",
            Some(of::<api::GetRequest>),
            json::<Excerpt>(),
            get(text),
        ),
        route(
            "/v1/collections/{collection}/sections",
            "The sections of a document",
            Some(of::<api::SectionsRequest>),
            json::<api::SectionList>(),
            get(sections),
        ),
        route(
            "/v1/collections/{collection}/fields",
            "The fields that filters can speak of",
            None,
            json::<api::FieldList>(),
            get(fields),
        ),
        route(
            "/v1/collections/{collection}/snapshots",
            "The generations that are kept under a name",
            None,
            json::<api::SnapshotList>(),
            get(snapshots),
        ),
    ]
}

async fn list(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        asked.no_parameters()?;
        let collections = asked.service().collections().map(str::to_owned).collect();
        Reply::json(&api::CollectionList { version: api::VERSION, collections })
    })
    .await
}

async fn status(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        let api::StatusRequest {} = asked.request()?;
        let mut status = asked.service().status(asked.collection()?, asked.cancel)?;
        if asked.options().folders == Folders::Named {
            status.config.model = id_of(&status.config.model);
            status.roots.values_mut().for_each(|folder| *folder = id_of(folder));
        }
        Reply::json(&status)
    })
    .await
}

async fn documents(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        Reply::json(&asked.service().list(asked.collection()?, &asked.request()?, asked.cancel)?)
    })
    .await
}

async fn text(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        Reply::json(&asked.service().get(asked.collection()?, &asked.request()?, asked.cancel)?)
    })
    .await
}

async fn sections(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        Reply::json(&asked.service().sections(asked.collection()?, &asked.request()?, asked.cancel)?)
    })
    .await
}

async fn fields(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        let api::FieldsRequest {} = asked.request()?;
        Reply::json(&asked.service().fields(asked.collection()?, asked.cancel)?)
    })
    .await
}

async fn snapshots(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        asked.no_parameters()?;
        Reply::json(&asked.service().snapshots(asked.collection()?, asked.cancel)?)
    })
    .await
}
