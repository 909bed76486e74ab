//! Refusals: every way a request ends without its answer, as `{"error": {code, message, parameter, hint}}`.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use cento_engine::api::Fault;
use cento_engine::{CollectionError, Error};
use schemars::JsonSchema;
use serde::Serialize;

/// Seconds after which a client that was turned away may ask again.
const RETRY_SECONDS: u64 = 1;

/// The words of a failure of the server itself, whose own words may name files.
const OWN_FAILURE: &str = "the server could not answer; its log says why";

/// The body of every answer that is none.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ErrorAnswer {
    /// The error.
    pub(crate) error: ErrorBody,
}

/// The error that occurred.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    /// A name of the kind of error that does not change.
    pub(crate) code: String,
    /// The error in words.
    pub(crate) message: String,
    /// The field or setting that is wrong, if it is one.
    pub(crate) parameter: Option<String>,
    /// The way out, where the message does not say it.
    pub(crate) hint: Option<String>,
}

/// A request that is not answered, and why.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) body: ErrorBody,
    /// The words for whoever runs the server, where clients are not told.
    pub(crate) cause: Option<String>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        let body = ErrorBody { code: code.to_owned(), message: message.into(), parameter: None, hint: None };
        Self { status, body, cause: None }
    }

    /// A value of the request that cannot be used.
    pub(crate) fn value(parameter: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "request", message).of(parameter)
    }

    pub(crate) fn of(mut self, parameter: &str) -> Self {
        self.body.parameter = Some(parameter.to_owned());
        self
    }

    pub(crate) fn hint(mut self, hint: &str) -> Self {
        self.body.hint = Some(hint.to_owned());
        self
    }

    /// No collection is served that could be asked.
    pub(crate) fn none_yet() -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown_collection", "there is no collection yet").of("collection")
    }

    /// Too much is asked at once.
    pub(crate) fn busy() -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", "too many requests wait already")
            .hint("ask again after the seconds that Retry-After names")
    }

    /// The answer would have come too late.
    pub(crate) fn late() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "deadline", "the answer took longer than this server allows")
    }

    /// Something went wrong that is no fault of the client's.
    pub(crate) fn own(code: &str, cause: String) -> Self {
        let refusal = Self::new(StatusCode::INTERNAL_SERVER_ERROR, code, OWN_FAILURE);
        Self { cause: Some(cause), ..refusal }
    }

    /// The body as bytes.
    pub(crate) fn json(&self) -> Vec<u8> {
        serde_json::to_vec(&ErrorAnswer { error: self.body.clone() }).unwrap_or_default() // strings are always JSON
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let fault = Fault::from(&error);
        let status = match &error {
            Error::Cancelled => return Self::late(),
            Error::Busy { .. } => return Self::busy(),
            Error::UnknownDocument { .. }
            | Error::UnknownCollection { .. }
            | Error::NotTraced { .. }
            | Error::AmbiguousName { .. }
            | Error::OutOfRange { .. }
            | Error::Collection(CollectionError::UnknownGeneration { .. } | CollectionError::UnknownSnapshot { .. }) => {
                StatusCode::NOT_FOUND
            }
            Error::CollectionTaken { .. } | Error::OtherGeneration { .. } => StatusCode::CONFLICT,
            Error::Shard { .. } => StatusCode::BAD_GATEWAY,
            Error::ShardChanged { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Error::Request { .. }
            | Error::UnknownField { .. }
            | Error::Setting { .. }
            | Error::Filter(_)
            | Error::Assembly(_)
            | Error::EmptyQuery
            | Error::NoEncoder
            | Error::Elsewhere { .. }
            | Error::NoWords
            | Error::NoAnswer { .. }
            | Error::PartTraced { .. }
            | Error::TooManyResults { .. }
            | Error::AnswerTooLarge { .. } => StatusCode::BAD_REQUEST,
            _ => return Self::own(&fault.code, fault.message), // files, models and devices of the server
        };
        let data = fault.data.unwrap_or_default();
        let named = |key: &str| data.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        let parameter = named("field").or_else(|| named("setting"));
        let parameter = parameter.or_else(|| field_of(&error, &fault.code).map(str::to_owned));
        let hint = match &error {
            Error::Collection(_) => Some("ask another generation with \"on\"".to_owned()),
            Error::UnknownCollection { .. } => Some("GET /v1/collections lists them".to_owned()),
            Error::UnknownDocument { nearest: None, .. } => {
                Some("GET /v1/collections/{collection}/documents lists them".to_owned())
            }
            Error::UnknownField { nearest: Some(nearest), .. } => Some(format!("the field {nearest:?} is near")),
            Error::NoEncoder => Some("send \"vector\": [...], or \"mode\": \"lexical\"".to_owned()),
            Error::NoWords => Some("send \"vector\": [...] and no query".to_owned()),
            Error::Filter(_) => Some("GET /v1/collections/{collection}/fields lists the fields".to_owned()),
            _ => None, // the message says it
        };
        let (code, message) = (fault.code, fault.message);
        Self { status, body: ErrorBody { code, message, parameter, hint }, cause: None }
    }
}

/// The field that an error is about, where its data does not say.
fn field_of(error: &Error, code: &str) -> Option<&'static str> {
    match code {
        _ if matches!(error, Error::Filter(_)) => Some("filter"),
        "empty_query" => Some("query"),
        "too_many_results" => Some("k"),
        "unknown_collection" | "collection_taken" => Some("collection"),
        "unknown_generation" | "unknown_snapshot" => Some("on"),
        "budget_too_small" => Some("budget"),
        "include" | "include_too_long" => Some("include"),
        "strategy" => Some("strategy"),
        _ if code.starts_with("policy") => Some("policy"),
        _ => None, // several, or none
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let retry = matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let kind = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut response = (self.status, [kind], self.json()).into_response();
        if retry {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        response.extensions_mut().insert(self); // for the log
        response
    }
}
