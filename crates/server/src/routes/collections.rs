//! What there is: collections, their documents, texts, sections, fields, snapshots; and the embedding cache.

use axum::http::StatusCode;
use axum::routing::get;
use cento_engine::{CacheStatus, Excerpt, Status, api};

use super::encoders::id_of;
use super::route::{Route, json, of};
use crate::ask::{Ask, Asked, Reply};
use crate::options::Folders;
use crate::refusal::Refusal;
use crate::work::Lane;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/collections", "The collections there are", None, json::<api::CollectionList>(), get(list)),
        Route::get("/v1/collections/{collection}", "The contents of a collection", None, json::<Status>(), get(status)),
        Route::get(
            "/v1/collections/{collection}/documents",
            "The documents, all or those that a filter admits",
            Some(of::<api::ListRequest>),
            json::<api::DocumentList>(),
            get(documents),
        ),
        Route::get(
            "/v1/collections/{collection}/text",
            "A document, or the part of it that a citation names",
            Some(of::<api::GetRequest>),
            json::<Excerpt>(),
            get(text),
        ),
        Route::get(
            "/v1/collections/{collection}/sections",
            "The sections of a document",
            Some(of::<api::SectionsRequest>),
            json::<api::SectionList>(),
            get(sections),
        ),
        Route::get(
            "/v1/collections/{collection}/reports",
            "What readers got out of files, the suspicious first",
            None,
            json::<serde_json::Value>(),
            get(reports),
        ),
        Route::get(
            "/v1/collections/{collection}/fields",
            "The fields that filters can speak of",
            None,
            json::<api::FieldList>(),
            get(fields),
        ),
        Route::get(
            "/v1/collections/{collection}/snapshots",
            "The generations that are kept under a name",
            None,
            json::<api::SnapshotList>(),
            get(snapshots),
        ),
        Route::get("/v1/cache", "The contents of the embedding cache", None, json::<CacheStatus>(), get(cache)),
    ]
}

async fn list(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        asked.no_parameters()?;
        let collections = asked.collections.keys().cloned().collect();
        Reply::json(&api::CollectionList { version: api::VERSION, collections })
    })
    .await
}

async fn status(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        let api::StatusRequest {} = asked.request()?;
        Reply::json(&status_of(asked, asked.collection()?)?)
    })
    .await
}

/// The contents of a collection, its folders by their own names unless they are shown.
pub(super) fn status_of(asked: &Asked<'_>, collection: &str) -> Result<Status, Refusal> {
    let mut status = asked.service().status(collection, asked.cancel)?;
    if asked.options().folders == Folders::Named {
        status.config.model = id_of(&status.config.model);
        status.roots.values_mut().for_each(|folder| *folder = id_of(folder));
    }
    Ok(status)
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

async fn reports(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        asked.no_parameters()?;
        Reply::json(&asked.service().file_reports(asked.collection()?, asked.cancel)?)
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

/// The cache, its folder and those of models by their own names unless they are shown.
async fn cache(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        asked.no_parameters()?;
        let none = || Refusal::new(StatusCode::NOT_FOUND, "no_cache", "this server knows no folder of a cache");
        let mut status = asked.service().cache()?.ok_or_else(|| none().hint("its setting `cache` names one"))?;
        if asked.options().folders == Folders::Named {
            status.folder = id_of(&status.folder.to_string_lossy()).into();
            status.models.iter_mut().for_each(|model| model.model = id_of(&model.model));
        }
        Reply::json(&status)
    })
    .await
}
