//! All routes: one list, of which the router and its description are made.

mod route;
mod own;
mod batch;
mod neighbors;
mod collections;
mod encoders;
mod input;
mod openai;
mod rerank;
mod tei;
mod stores;
mod dify;
mod writing;
mod openapi;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use cento_engine::SHARD_ROUTE;
use schemars::JsonSchema;
use serde::Serialize;

use self::route::{Content, Route, json, of};
use crate::app::App;
use crate::ask::{Ask, Reply};
use crate::edge::{HEALTH, edge, gzip};
use crate::metrics;
use crate::page;
use crate::refusal::Refusal;
use crate::work::{LANES, Lane};

/// The route of the description.
const DESCRIPTION: &str = "/openapi.json";

/// The state of a server.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
struct Health {
    /// `ok` while requests are answered.
    status: &'static str,
}

fn routes() -> Vec<Route> {
    let text = Content { kind: metrics::CONTENT_TYPE, schema: of::<String> };
    let mut routes = own::routes();
    routes.extend(batch::routes());
    routes.extend(neighbors::routes());
    routes.extend(collections::routes());
    routes.extend(openai::routes());
    routes.extend(rerank::routes());
    routes.extend(tei::routes());
    routes.extend(stores::routes());
    routes.extend(dify::routes());
    routes.extend(writing::routes());
    routes.push(Route::get(HEALTH, "The server answers", None, json::<Health>(), get(health)));
    routes.push(Route::get("/metrics", "Counts and latencies as Prometheus reads them", None, text, get(metrics)));
    routes
}

/// The router of a server; `mcp` answers `/mcp`.
pub(crate) fn router(app: Arc<App>, mcp: Router<Arc<App>>) -> Router {
    let routes = routes();
    let description = openapi::document(&routes).to_string();
    let describe = move || async move { Reply::bytes("application/json", description) };
    let router = routes.into_iter().fold(Router::new(), |router, route| router.route(route.path, route.handler));
    let router = router.route(DESCRIPTION, get(describe)).route(SHARD_ROUTE, post(shard));
    let router = router.merge(page::router()).merge(mcp);
    router
        .fallback(|| async { Refusal::new(StatusCode::NOT_FOUND, "route", "there is no such route").hint(DESCRIPTION) })
        .method_not_allowed_fallback(|| async {
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method", "this route has another method").hint(DESCRIPTION)
        })
        .layer(from_fn(gzip))
        .layer(from_fn_with_state(Arc::clone(&app), edge))
        .with_state(app)
}

async fn health() -> Result<Reply, Refusal> {
    Reply::json(&Health { status: "ok" })
}

/// Answers a server that this one is a shard of. It is in no description: its words are for Cento alone.
async fn shard(ask: Ask) -> Result<Reply, Refusal> {
    ask.answer(Lane::Query, |asked| {
        asked.no_parameters()?;
        let answer = asked.service().shard(asked.collection()?, asked.body(), asked.cancel)?;
        Ok(Reply::bytes("application/json", answer))
    })
    .await
}

async fn metrics(State(app): State<Arc<App>>) -> Reply {
    for (lane, name) in LANES {
        app.metrics.waiting(name, app.work.n_waiting(lane));
    }
    Reply::bytes(metrics::CONTENT_TYPE, app.metrics.text(&app.service.shards()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_description_names_every_route_and_every_type() {
        let routes = routes();
        let document = openapi::document(&routes);
        let mut names = BTreeSet::new();
        for route in &routes {
            let operation = &document["paths"][openapi::described(route.path)][route.verb.word()];
            assert!(operation["summary"].is_string(), "{}", route.path);
            assert!(names.insert(operation["operationId"].to_string()), "{} has another's name", route.path);
        }
        let text = document.to_string();
        for part in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name} is referred to and not there");
        }
        assert!(!text.contains("$defs"), "a schema stands elsewhere");
        assert_eq!(document["openapi"], "3.1.0");
    }
}
