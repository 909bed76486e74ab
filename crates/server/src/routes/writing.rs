//! Changing collections: each request begins a job, which goes on whoever waits; only where the server may write.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::routing::{delete as delete_of, get, post, put};
use cento_engine::{Service, Status, Which, api};

use super::collections::status_of;
use super::route::{Route, SchemaOf, Scoped, Verb, json, of};
use crate::app::App;
use crate::ask::{Ask, Asked, Reply};
use crate::jobs::{self, JobAnswer, JobList, Kind, Work};
use crate::keys::Scope;
use crate::refusal::Refusal;
use crate::work::Lane;

/// The name of the parameter of an address that is the path of a file.
const PATH: &str = "path";

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
        Route {
            verb: Verb::Put,
            path: "/v1/collections/{collection}",
            about: "Makes an empty collection",
            scoped: Scoped::Made,
            request: Some(of::<api::CreateRequest>),
            answer: json::<Status>(),
            handler: put(create),
        },
        Route {
            verb: Verb::Put,
            path: "/v1/collections/{collection}/files/{*path}",
            about: "Adds the documents of a file, whose bytes the body is, as if it lay at this path",
            scoped: Scoped::Begun,
            request: None,
            answer: json::<JobAnswer>(),
            handler: put(upload),
        },
        Route::get("/v1/jobs", "The jobs, those begun last first", None, json::<JobList>(), get(list)),
        Route::get("/v1/jobs/{job}", "How far a job is", None, json::<JobAnswer>(), get(job)),
        Route {
            verb: Verb::Delete,
            path: "/v1/jobs/{job}",
            about: "Asks a job to end: one that has not committed leaves the collection as it was",
            scoped: Scoped::Path,
            request: None,
            answer: json::<JobAnswer>(),
            handler: delete_of(cancel),
        },
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

async fn create(ask: WriteAsk) -> Begun {
    let create = |asked: &Asked<'_>| {
        let name = asked.collection()?;
        if !asked.service().makes_collections() {
            let refusal = Refusal::new(StatusCode::FORBIDDEN, "read_only", "this server makes no collections");
            return Err(refusal.hint("it serves one; it can be started to serve a folder of collections"));
        }
        asked.service().create(name, &asked.request()?, asked.cancel)?;
        status_of(asked, name)
    };
    let status = ask.0.on_thread(Lane::Bulk, create).await?;
    Ok((StatusCode::CREATED, Reply::json(&status)?))
}

async fn upload(ask: WriteAsk) -> Begun {
    let work = |asked: &Asked<'_>, collection: String| {
        asked.no_parameters()?;
        let (path, bytes) = (asked.in_path(PATH).to_owned(), asked.body().clone());
        api::check_path(&path)?; // refused now rather than by the job
        let work: Work =
            Box::new(move |service, cancel, progress| service.add_file(&collection, &path, &bytes, cancel, progress));
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
