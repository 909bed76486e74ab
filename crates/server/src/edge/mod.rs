//! The edge of every request: its id, the guard, the metrics, and one line of the log; and answers packed.
//!
//! The log says when, what route, which status, how long; never an address as it was written, a key or a question.

mod gzip;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use uuid::Uuid;

use crate::app::App;
use crate::keys::Scope;
use crate::log;
use crate::options::Log;
use crate::page;
use crate::refusal::Refusal;

pub(crate) use self::gzip::gzip;

/// The header that an answer's id stands in.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The route that asks for no key: it says that the process lives, and nothing else.
pub(crate) const HEALTH: &str = "/health";

/// The route of an address that there is none for.
const UNKNOWN: &str = "unknown";

/// The status that the log gives to a client that left before the answer.
const LEFT: u16 = 499;

/// A line of the log.
#[derive(Serialize)]
struct Line<'a> {
    unix_ms: u64,
    request: Uuid,
    method: &'a str,
    route: &'a str,
    status: u16,
    ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
}

/// A request that is being answered; dropped without an answer, its client has left.
struct Open {
    app: Arc<App>,
    id: Uuid,
    method: String,
    route: String,
    began: Instant,
    is_answered: bool,
}

/// Answers a request, or says why not.
pub(crate) async fn edge(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or(UNKNOWN, MatchedPath::as_str).to_owned();
    let method = request.method().as_str();
    // A method is a word of the client's: one that is not known is not repeated.
    let method = if ["GET", "POST", "HEAD", "OPTIONS", "DELETE", "PUT"].contains(&method) { method } else { UNKNOWN };
    let (id, began, method) = (Uuid::new_v4(), Instant::now(), method.to_owned());
    let open = Open { app: Arc::clone(&app), id, method, route, began, is_answered: false };
    let admitted = app.guard.admit(&request).and_then(|()| match open.route.as_str() {
        HEALTH | page::ROOT | page::FILES => Ok(()),
        _ => app.guard.authorize(request.headers(), Scope::Read),
    });
    let mut response = match admitted {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    open.answered(&response);
    response
}

impl Open {
    fn answered(mut self, response: &Response) {
        self.is_answered = true;
        self.log(response.status().as_u16(), response.extensions().get::<Refusal>());
    }

    fn log(&self, status: u16, refusal: Option<&Refusal>) {
        let time = self.began.elapsed();
        self.app.metrics.answered(&self.route, status, time);
        let told = |refusal: &&Refusal| self.app.options.log == Log::Words && refusal.cause.is_some();
        log::line(&Line {
            unix_ms: log::unix_ms(),
            request: self.id,
            method: &self.method,
            route: &self.route,
            status,
            ms: (time.as_secs_f64() * 1e6).round() / 1e3,
            code: refusal.map(|refusal| refusal.body.code.as_str()),
            cause: refusal.filter(told).and_then(|refusal| refusal.cause.as_deref()),
        });
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_answered {
            self.log(LEFT, None);
        }
    }
}
