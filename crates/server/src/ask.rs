//! A request on its way to the engine: its body read within bounds, its collection, its parameters; and the reply.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, FromRequestParts as _, Query, RawPathParams, Request};
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use cento_engine::{Cancel, Error, Service, api};
use http_body_util::LengthLimitError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::jobs::{JOB, JobAnswer, Jobs, Kind, Work};
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::refusal::Refusal;
use crate::work::Lane;

/// A body of more bytes than this holds many texts.
const BULK_BYTES: usize = 16 << 10;

/// The header that says where the time of an answer went.
const SERVER_TIMING: &str = "server-timing";

/// The parameter of an address that names a collection.
const COLLECTION: &str = "collection";

/// A request that was read and is not yet understood.
#[derive(Clone)]
pub(crate) struct Ask {
    app: Arc<App>,
    read: Arc<Read>,
}

/// The parts of a request.
struct Read {
    method: Method,
    headers: HeaderMap,
    body: Bytes,
    collection: Option<String>,
    /// The parts of the address that have a name, but for the collection.
    in_path: BTreeMap<String, String>,
    parameters: BTreeMap<String, String>,
}

/// A request on an engine thread.
pub(crate) struct Asked<'a> {
    app: &'a App,
    read: &'a Read,
    /// The collections there are as it begins.
    pub(crate) collections: &'a BTreeMap<String, PathBuf>,
    pub(crate) cancel: &'a Cancel,
}

/// An answer: bytes and their type.
pub(crate) struct Reply {
    kind: &'static str,
    body: Body,
    remark: Option<(&'static str, HeaderValue)>,
}

impl Reply {
    /// An answer of the engine, byte for byte as every door gives it: a line of JSON.
    pub(crate) fn json(answer: &impl Serialize) -> Result<Self, Refusal> {
        let mut bytes = serde_json::to_vec(answer).map_err(|error| Refusal::own("serialize", error.to_string()))?;
        bytes.push(b'\n');
        Ok(Self::bytes("application/json", bytes))
    }

    pub(crate) fn bytes(kind: &'static str, bytes: impl Into<Body>) -> Self {
        Self { kind, body: bytes.into(), remark: None }
    }

    /// Says something in a header, for shapes of answers that have no room for it.
    pub(crate) fn remark(self, name: &'static str, value: HeaderValue) -> Self {
        Self { remark: Some((name, value)), ..self }
    }

    /// Says in the header that browsers show how long each stage took.
    pub(crate) fn timed(self, stages: impl Iterator<Item = (&'static str, Duration)>) -> Self {
        let stages = stages.map(|(stage, time)| format!("{stage};dur={:.3}", time.as_secs_f64() * 1e3));
        match HeaderValue::try_from(stages.collect::<Vec<_>>().join(", ")) {
            Ok(value) => self.remark(SERVER_TIMING, value),
            Err(_) => self, // never: letters and digits
        }
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let mut response = ([(CONTENT_TYPE, HeaderValue::from_static(self.kind))], self.body).into_response();
        if let Some((name, value)) = self.remark {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl FromRequest<Arc<App>> for Ask {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let unread = |message: String| Refusal::value("query", message);
        let pairs = Query::<Vec<(String, String)>>::from_request_parts(&mut parts, app).await;
        let Query(pairs) = pairs.map_err(|error| unread(error.body_text()))?;
        let mut parameters = BTreeMap::new();
        for (name, value) in pairs {
            if parameters.insert(name.clone(), value).is_some() {
                return Err(Refusal::value(&name, "the parameter is there twice"));
            }
        }
        let in_path = RawPathParams::from_request_parts(&mut parts, app).await;
        let in_path = in_path.map_err(|error| Refusal::value("path", error.body_text()))?;
        let mut in_path: BTreeMap<String, String> =
            in_path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let collection = in_path.remove(COLLECTION).or_else(|| parameters.remove(COLLECTION));
        let body = read(&app.options, &parts.headers, body).await?;
        let read = Read { method: parts.method, headers: parts.headers, body, collection, in_path, parameters };
        Ok(Self { app: Arc::clone(app), read: Arc::new(read) })
    }
}

/// The body, within its bounds of length and time.
async fn read(options: &ServerOptions, headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let most = options.body_bytes;
    let large = || {
        let message = format!("the body has more than the {most} bytes that are read");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "body", message)
    };
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > most as u64) {
        return Err(large());
    }
    match tokio::time::timeout(options.deadline, to_bytes(body, most)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) if is_over(&error) => Err(large()),
        Ok(Err(_)) => Err(Refusal::new(StatusCode::BAD_REQUEST, "body", "the body ended before its length")),
        Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "body", "the body came too slowly")),
    }
}

/// True for a body that went on beyond the limit.
fn is_over(error: &axum::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

impl Ask {
    /// The reply of a job on an engine thread.
    ///
    /// # Errors
    /// Those of [`Work::run`](crate::work::Work::run).
    pub(crate) async fn answer(
        self,
        lane: Lane,
        job: impl FnOnce(&Asked<'_>) -> Result<Reply, Refusal> + Send + 'static,
    ) -> Result<Reply, Refusal> {
        self.on_thread(lane, job).await
    }

    /// The outcome of a job on an engine thread.
    ///
    /// # Errors
    /// Those of [`Work::run`](crate::work::Work::run).
    pub(crate) async fn on_thread<T: Send + 'static>(
        &self,
        lane: Lane,
        job: impl FnOnce(&Asked<'_>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (app, read) = (Arc::clone(&self.app), Arc::clone(&self.read));
        let job = move |cancel: &Cancel| {
            let collections = app.service.collections();
            job(&Asked { app: &app, read: &read, collections: &collections, cancel })
        };
        self.app.work.run(lane, self.app.options.deadline, job).await
    }

    pub(crate) fn jobs(&self) -> &Jobs {
        &self.app.jobs
    }

    /// The job that the address names.
    pub(crate) fn job(&self) -> &str {
        self.read.in_path(JOB)
    }

    /// An error if the address has a parameter that nothing reads.
    pub(crate) fn no_parameters(&self) -> Result<(), Refusal> {
        self.read.no_parameters()
    }

    /// The lane of texts that are to be embedded: few are a query, many are bulk.
    pub(crate) fn lane(&self) -> Lane {
        if self.read.body.len() > BULK_BYTES { Lane::Bulk } else { Lane::Query }
    }

    /// True if the body is of this type.
    pub(crate) fn is_of(&self, kind: &str) -> bool {
        let said = self.read.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        said.split(';').next().is_some_and(|said| said.trim().eq_ignore_ascii_case(kind))
    }

    /// True if the client wants an answer of this type rather than JSON.
    pub(crate) fn wants(&self, kind: &str) -> bool {
        let accepted = self.read.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        accepted.flat_map(|value| value.split(',')).any(|value| value.split(';').next().map(str::trim) == Some(kind))
    }
}

impl Asked<'_> {
    pub(crate) fn service(&self) -> &Service {
        &self.app.service
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.app.metrics
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        &self.app.options
    }

    /// Begins a job; see [`Jobs::begin`].
    ///
    /// # Errors
    /// Those of [`Jobs::begin`].
    pub(crate) fn begin(&self, what: (&str, Kind), work: Work) -> Result<JobAnswer, Refusal> {
        self.cancel.check()?; // who was told that it took too long is not to find it done
        self.app.jobs.begin(&self.app.service, self.app.options.log, what, work)
    }

    /// The collection that is asked: the one that is named, else the only one there is.
    ///
    /// # Errors
    /// [`Refusal::value`] where several could be meant.
    pub(crate) fn collection(&self) -> Result<&str, Refusal> {
        let mut known = self.collections.keys();
        match (&self.read.collection, known.next(), known.next()) {
            (Some(named), ..) => Ok(named),
            (None, Some(only), None) => Ok(only),
            (None, None, _) => Err(Refusal::none_yet()),
            (None, Some(_), Some(_)) => {
                let several = Refusal::value(COLLECTION, "there is more than one collection; say which one is asked");
                Err(several.hint("GET /v1/collections lists them; add ?collection=NAME"))
            }
        }
    }

    /// The request: of GET its parameters, else its body.
    ///
    /// # Errors
    /// Those of [`api::parse`], [`Error::UnknownField`] for parameters beside a body.
    pub(crate) fn request<T: api::Request>(&self) -> Result<T, Refusal> {
        if self.read.method == Method::GET {
            let json = serde_json::to_vec(&self.read.parameters);
            return Ok(api::parse(&json.map_err(|error| Refusal::own("serialize", error.to_string()))?)?);
        }
        self.no_parameters()?;
        Ok(api::parse(&self.read.body)?)
    }

    /// The request of a body, beside which the address may give one number.
    ///
    /// # Errors
    /// Those of [`request`](Self::request), [`Refusal::value`] for what is no number.
    pub(crate) fn request_and<T: api::Request>(&self, number: &str) -> Result<(T, Option<usize>), Refusal> {
        if let Some(field) = self.read.parameters.keys().find(|name| *name != number) {
            let nearest = api::nearest(field, &[number, COLLECTION]);
            return Err(Error::UnknownField { field: field.clone(), nearest }.into());
        }
        let read = |value: &String| {
            value.parse().map_err(|_| Refusal::value(number, format!("{number}: {value:?} is no number")))
        };
        let number = self.read.parameters.get(number).map(read).transpose()?;
        Ok((api::parse(&self.read.body)?, number))
    }

    /// The part of the address that has this name.
    pub(crate) fn in_path(&self, name: &str) -> &str {
        self.read.in_path(name)
    }

    /// The body as it was sent.
    pub(crate) fn body(&self) -> &Bytes {
        &self.read.body
    }

    /// The parameters of the address, but for the collection.
    pub(crate) fn parameters(&self) -> &BTreeMap<String, String> {
        &self.read.parameters
    }

    /// A request in the words of other servers, whose clients send fields that mean nothing here.
    ///
    /// # Errors
    /// [`Refusal::value`] with the path of a value that cannot be read.
    pub(crate) fn foreign<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let mut reader = serde_json::Deserializer::from_slice(&self.read.body);
        let request = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            Refusal::value(&path, format!("{path}: {}", error.inner()))
        })?;
        reader.end().map_err(|error| Refusal::value(".", error.to_string()))?;
        Ok(request)
    }

    /// An error if the address has a parameter that nothing reads.
    pub(crate) fn no_parameters(&self) -> Result<(), Refusal> {
        self.read.no_parameters()
    }
}

impl Read {
    fn in_path(&self, name: &str) -> &str {
        self.in_path.get(name).map_or("", String::as_str)
    }

    fn no_parameters(&self) -> Result<(), Refusal> {
        match self.parameters.keys().next() {
            Some(field) => {
                let nearest = api::nearest(field, &[COLLECTION]);
                Err(Error::UnknownField { field: field.clone(), nearest }.into())
            }
            None => Ok(()),
        }
    }
}
