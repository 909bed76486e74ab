//! Changing collections: each request begins a job, which goes on whoever waits; only where the server may write.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::routing::{delete as delete_of, get, post};
use cento_engine::{Service, Which, api};

use super::route::{Content, Route, SchemaOf, Scoped, Verb, json, of};
use crate::app::App;
use crate::ask::{Ask, Asked, Reply};
use crate::jobs::{self, JobAnswer, JobList, Kind, Work};
use crate::keys::Scope;
use crate::refusal::Refusal;

pub(super) fn routes() -> Vec<Route> {
    let begun = |path, about, request: SchemaOf, handler| Route {
        verb: Verb::Post,
        path,
        about,
        scoped: Scoped::Begun,
        request: Some(request),
        answer: json::<JobAnswer>(),
        handler,
    };
    let of_jobs = |verb, path, about, answer: Content, handler| Route {
        verb,
        path,
        about,
        scoped: Scoped::Path,
        request: None,
        answer,
        handler,
    };
    vec![
        begun(
            "/v1/collections/{collection}/documents",
            "Adds documents, or changes those that are there",
            of::<api::AddRequest>,
            post(add),
        ),
        begun(
            "/v1/collections/{collection}/index",
            "Brings the collection up to date with files and folders of the server",
            of::<api::IndexRequest>,
            post(index),
        ),
        begun(
            "/v1/collections/{collection}/delete",
            "Deletes documents by their ids, or those that a filter admits",
            of::<api::DeleteRequest>,
            post(delete),
        ),
        begun(
            "/v1/collections/{collection}/compact",
            "Merges segments, and leaves behind what was deleted",
            of::<api::CompactRequest>,
            post(compact),
        ),
        of_jobs(Verb::Get, "/v1/jobs", "The jobs, those begun last first", json::<JobList>(), get(list)),
        of_jobs(Verb::Get, "/v1/jobs/{job}", "How far a job is", json::<JobAnswer>(), get(job)),
        of_jobs(
            Verb::Delete,
            "/v1/jobs/{job}",
            "Asks a job to end; the collection stays as it was",
            json::<JobAnswer>(),
            delete_of(cancel),
        ),
    ]
}

/// A request of somebody who may change collections: that is seen before its body is read.
struct WriteAsk(Ask);

impl FromRequest<Arc<App>> for WriteAsk {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        if !app.service.is_writable() {
            let refusal = Refusal::new(StatusCode::FORBIDDEN, "read_only", "this server changes no collection");
            return Err(refusal.hint("whoever runs it may let it write"));
        }
        app.guard.authorize(request.headers(), Scope::Write)?;
        Ask::from_request(request, app).await.map(Self)
    }
}

/// A job that has begun.
type Begun = Result<(StatusCode, Reply), Refusal>;

/// Begins what `work` makes of the request, which is looked at before.
async fn begin(
    ask: WriteAsk,
    kind: Kind,
    work: impl FnOnce(&Asked<'_>, String) -> Result<Work, Refusal> + Send + 'static,
) -> Begun {
    let lane = ask.0.lane();
    let begin = move |asked: &Asked<'_>| {
        let collection = asked.collection()?.to_owned();
        asked.service().searcher(Which::Name(&collection), asked.cancel)?; // says that there is none
        let work = work(asked, collection.clone())?;
        asked.begin((&collection, kind), work)
    };
    let job = ask.0.on_thread(lane, begin).await?;
    Ok((StatusCode::ACCEPTED, Reply::json(&job)?))
}

async fn add(ask: WriteAsk) -> Begun {
    let work = |asked: &Asked<'_>, collection: String| {
        let documents = Service::documents(&asked.request()?).map_err(|error| jobs::refusal(asked.service(), error))?;
        let work: Work =
            Box::new(move |service, cancel, progress| service.add(&collection, documents, cancel, progress));
        Ok::<_, Refusal>(work)
    };
    begin(ask, Kind::Add, work).await
}

async fn index(ask: WriteAsk) -> Begun {
    let work = |asked: &Asked<'_>, collection: String| {
        let request: api::IndexRequest = asked.request()?;
        asked.service().roots(&request)?; // refused now rather than by the job
        let work: Work =
            Box::new(move |service, cancel, progress| service.index(&collection, &request, cancel, progress));
        Ok::<_, Refusal>(work)
    };
    begin(ask, Kind::Index, work).await
}

async fn delete(ask: WriteAsk) -> Begun {
    let work = |asked: &Asked<'_>, collection: String| {
        let request: api::DeleteRequest = asked.request()?;
        if let Some(filter) = request.filter.clone() {
            let list = api::ListRequest { filter: Some(filter) };
            asked.service().list(collection.as_str(), &list, asked.cancel)?; // a filter that is none is refused now
        }
        let work: Work = Box::new(move |service, _, _| service.delete(&collection, &request));
        Ok::<_, Refusal>(work)
    };
    begin(ask, Kind::Delete, work).await
}

async fn compact(ask: WriteAsk) -> Begun {
    let work = |asked: &Asked<'_>, collection: String| {
        let request: api::CompactRequest = asked.request()?;
        let work: Work =
            Box::new(move |service, cancel, progress| service.compact(&collection, &request, cancel, progress));
        Ok::<_, Refusal>(work)
    };
    begin(ask, Kind::Compact, work).await
}

async fn list(ask: Ask) -> Result<Reply, Refusal> {
    ask.no_parameters()?;
    Reply::json(&ask.jobs().list())
}

async fn job(ask: Ask) -> Result<Reply, Refusal> {
    ask.no_parameters()?;
    Reply::json(&ask.jobs().job(ask.job())?)
}

async fn cancel(ask: WriteAsk) -> Result<Reply, Refusal> {
    ask.0.no_parameters()?;
    Reply::json(&ask.0.jobs().cancel(ask.0.job())?)
}
