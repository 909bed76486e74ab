//! A way to a server: POSTs of JSON, each bounded in time and bytes. The key goes to that server and nowhere else: not
//! along a redirect, not into an error.

mod address;
pub(crate) mod patience;

use std::error::Error as _;
use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, Url};

pub(crate) use reqwest::StatusCode;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use self::address::{Private, PublicOnly};
use crate::error::{Error, Result};

/// The hosts that a server may be at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Any: whoever runs the program named the host.
    Any,
    /// Public addresses alone, without a proxy: somebody else named the host, and would have the machine's own
    /// services, its network and its cloud's metadata asked.
    Public,
}

/// Most bytes of a chat completion that are read.
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;
/// The interval at which whoever waits looks whether the answer is still wanted: what a call that another server has
/// answered first holds that answer up by.
const LOOK: Duration = Duration::from_millis(5);
/// Wait after 429 or 503 where the answer names none.
const PAUSE: Duration = Duration::from_secs(1);
/// Letters of a wrong answer that an error shows.
const SHOWN_CHARS: usize = 120;
/// A shorter key is a placeholder ("none", "EMPTY"), which answers may well contain.
const KEY_BYTES_MIN: usize = 8;

/// The place that is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// Address of the server, as somebody wrote it.
    pub(crate) url: &'a str,
    /// The part of the address that is asked, put behind it where it is not there yet.
    pub(crate) path: &'static str,
    /// The setting that the address comes from.
    pub(crate) setting: &'static str,
    /// The variable that the key comes from, which stands for it where a server repeats it.
    pub(crate) key_name: &'static str,
}

/// The answer of a server, of whatever status.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// The wait that it asks for.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: String,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// Nothing could be sent, or nothing came in time.
    Lost(String),
    /// The host may not be asked, or said more than anybody reads.
    Refused(String),
    /// It is not wanted any more.
    Stopped,
}

/// A way to a server.
pub(crate) struct Line {
    url: Url,
    key: Option<String>,
    key_name: &'static str,
    authorization: Option<HeaderValue>,
    timeout: Duration,
    reach: Reach,
    client: Client,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("host", &self.host()).finish_non_exhaustive()
    }
}

impl Line {
    pub(crate) fn open(target: &Target<'_>, key: Option<&str>, timeout: Duration, reach: Reach) -> Result<Self> {
        let Target { setting, key_name, .. } = *target;
        let url = url(target)?;
        let wrong = |setting, value: &str, reason: &str| {
            let (value, reason) = (value.to_owned(), reason.to_owned());
            Error::Setting { setting, value, reason }
        };
        let key = key.map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned);
        let header = |key: &String| -> Result<HeaderValue> {
            let mut header = HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| wrong(key_name, "…", "has a character that no header can hold"))?;
            header.set_sensitive(true);
            Ok(header)
        };
        let authorization = key.as_ref().map(header).transpose()?;
        if reach == Reach::Public
            && let Some(ip) = address::private(&url)
        {
            return Err(Error::PrivateEndpoint { setting, host: host(&url), ip });
        }
        let failed = |error: &dyn std::error::Error| wrong(setting, &host(&url), &format!("cannot be asked: {error}"));
        runtime().map_err(|error| failed(&error))?;
        let client = client(&url, reach, Kept::Some).map_err(|error| failed(&error))?;
        Ok(Self { url, key, key_name, authorization, timeout, reach, client })
    }

    /// The address that is asked; equal for two lines that lead to the same place by the same name.
    pub(crate) fn address(&self) -> &str {
        self.url.as_str()
    }

    /// Host, and port if it is not the scheme's.
    pub(crate) fn host(&self) -> String {
        host(&self.url)
    }

    /// A text without the key, should a server repeat it.
    pub(crate) fn hidden(&self, text: &str) -> String {
        match self.key.as_deref().filter(|key| key.len() >= KEY_BYTES_MIN) {
            Some(key) => text.replace(key, self.key_name),
            None => text.to_owned(),
        }
    }

    /// The body that answers a JSON body; why there is none, otherwise.
    ///
    /// The exchange runs on a thread of its own: the caller's may be one of an asynchronous runtime, which another one
    /// cannot be entered from.
    pub(crate) fn post(&self, body: &[u8]) -> Result<String, String> {
        let within = || format!("no answer within {} s", self.timeout.as_secs_f64());
        let exchange = async { timeout(self.timeout, self.exchange(body)).await.unwrap_or_else(|_| Err(within())) };
        self.run(exchange).unwrap_or_else(Err)
    }

    /// The answer to a JSON body, whatever its status, of `bytes_max` bytes at most.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn ask(
        &self,
        body: &[u8],
        bytes_max: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Answer, NoAnswer> {
        let late = || NoAnswer::Lost(format!("no answer within {} s", self.timeout.as_secs_f64()));
        let answered = async { timeout(self.timeout, self.answer(body, bytes_max)).await.map_err(|_| late())? };
        self.run(until(stop, answered)).unwrap_or_else(|reason| Err(NoAnswer::Lost(reason)))
    }

    /// The status and the bytes that answer a question which changes nothing, so that it may be asked twice: where the
    /// server closes a connection without an answer, as one does that was started anew, it is asked once more on a new
    /// one.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(crate) fn read(
        &self,
        body: &[u8],
        bytes_max: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(StatusCode, Vec<u8>), NoAnswer> {
        let late = || NoAnswer::Lost(format!("no answer within {} s", self.timeout.as_secs_f64()));
        let asked = async {
            let response = match self.request(&self.client, body).send().await {
                Err(error) if error.is_request() && !error.is_connect() && !error.is_timeout() => {
                    let fresh = client(&self.url, self.reach, Kept::None);
                    let fresh = fresh.map_err(|error| NoAnswer::Lost(said(&error.without_url())))?;
                    self.request(&fresh, body).send().await
                }
                asked => asked,
            };
            let response = response.map_err(|error| no_answer(&error.without_url()))?;
            let status = response.status();
            Ok((status, bytes(response, bytes_max).await?))
        };
        let answered = async { timeout(self.timeout, asked).await.map_err(|_| late())? };
        self.run(until(stop, answered)).unwrap_or_else(|reason| Err(NoAnswer::Lost(reason)))
    }

    /// Waits; false if the wait was ended before its time.
    pub(crate) fn wait(&self, pause: Duration, stop: &(dyn Fn() -> bool + Sync)) -> bool {
        let pause = async { Ok(sleep(pause).await) };
        matches!(self.run(until(stop, pause)), Ok(Ok(())))
    }

    /// Runs work of the line to its end; why it could not begin, otherwise.
    fn run<T: Send>(&self, work: impl Future<Output = T> + Send) -> Result<T, String> {
        let runtime = runtime().map_err(|error| format!("no thread to ask from: {error}"))?;
        std::thread::scope(|scope| {
            let asking = std::thread::Builder::new().spawn_scoped(scope, || runtime.block_on(work));
            let asking = asking.map_err(|error| format!("no thread to ask from: {error}"))?;
            Ok(asking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    async fn answer(&self, body: &[u8], bytes_max: usize) -> Result<Answer, NoAnswer> {
        let response = self.request(&self.client, body).send().await;
        let response = response.map_err(|error| no_answer(&error.without_url()))?;
        let (status, retry_after) = (response.status(), named_pause(&response));
        let body = self.hidden(&String::from_utf8_lossy(&bytes(response, bytes_max).await?));
        Ok(Answer { status, retry_after, body })
    }

    async fn exchange(&self, body: &[u8]) -> Result<String, String> {
        let start = Instant::now();
        let mut response = self.send(body).await?;
        if [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&response.status()) {
            let pause = pause(&response);
            if pause < self.timeout.saturating_sub(start.elapsed()) {
                drop(response);
                sleep(pause).await;
                response = self.send(body).await?;
            }
        }
        let status = response.status();
        let text = bytes(response, BODY_BYTES_MAX).await.map_err(|error| match error {
            NoBody::Broken(error) => said(&error),
            NoBody::TooLong(reason) => reason,
        })?;
        let text = self.hidden(&String::from_utf8_lossy(&text));
        if status.is_success() { Ok(text) } else { Err(format!("answered {status}: {}", excerpt(&text))) }
    }

    async fn send(&self, body: &[u8]) -> Result<Response, String> {
        self.request(&self.client, body).send().await.map_err(|error| said(&error.without_url()))
    }

    fn request(&self, client: &Client, body: &[u8]) -> RequestBuilder {
        let request = client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(body.to_vec());
        match &self.authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization.clone()),
            None => request,
        }
    }
}

/// Connections that a client keeps for the next question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Some,
    None,
}

/// A client that asks the server of an address and no other.
fn client(url: &Url, reach: Reach, kept: Kept) -> reqwest::Result<Client> {
    let mut client = Client::builder()
        .redirect(reqwest::redirect::Policy::none()) // neither key nor passages go anywhere else
        .user_agent(concat!("cento/", env!("CARGO_PKG_VERSION")));
    if kept == Kept::None {
        client = client.pool_max_idle_per_host(0);
    }
    if reach == Reach::Public {
        client = client.dns_resolver(PublicOnly).no_proxy(); // what a proxy connects to cannot be looked at
    } else if ["localhost", "127.0.0.1", "[::1]"].contains(&url.host_str().unwrap_or_default()) {
        client = client.no_proxy();
    }
    client.build()
}

/// The thread that looks after the connections of all lines while nobody waits on one: so a server learns at once that
/// whoever asked has left, and a connection that it closed is not used again. It is never waited for.
fn runtime() -> std::io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("lines").enable_all().build()?;
    if let Err(second) = RUNTIME.set(runtime) {
        second.shutdown_background(); // another thread was first
    }
    Ok(RUNTIME.get().expect("set above"))
}

/// Why a response has no body.
enum NoBody {
    Broken(reqwest::Error),
    TooLong(String),
}

impl From<NoBody> for NoAnswer {
    fn from(error: NoBody) -> Self {
        match error {
            NoBody::Broken(error) => no_answer(&error),
            NoBody::TooLong(reason) => Self::Refused(reason),
        }
    }
}

/// The body of a response.
async fn bytes(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, NoBody> {
    let (status, mut bytes) = (response.status(), Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(|error| NoBody::Broken(error.without_url()))? {
        if bytes.len() + chunk.len() > bytes_max {
            return Err(NoBody::TooLong(format!("answered {status} with more than {bytes_max} bytes")));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The result of `work`, unless `stop` says before that it is not wanted.
async fn until<T>(
    stop: &(dyn Fn() -> bool + Sync),
    work: impl Future<Output = Result<T, NoAnswer>>,
) -> Result<T, NoAnswer> {
    let mut work = std::pin::pin!(work);
    loop {
        if stop() {
            return Err(NoAnswer::Stopped);
        }
        if let Ok(done) = timeout(LOOK, &mut work).await {
            return done;
        }
    }
}

/// Host of a target, and port if it is not the scheme's.
pub(crate) fn host_of(target: &Target<'_>) -> Result<String> {
    url(target).map(|url| host(&url))
}

/// The address to post to.
fn url(target: &Target<'_>) -> Result<Url> {
    let Target { url: address, path, setting, key_name } = *target;
    let wrong = |value: &str, reason: String| Error::Setting { setting, value: value.to_owned(), reason };
    let mut url =
        Url::parse(address).ok().filter(|url| ["http", "https"].contains(&url.scheme())).ok_or_else(|| {
            // What is no address may hold a password all the same.
            let shown = if address.contains('@') { "…" } else { address };
            wrong(shown, "is no address of a server; expected one like http://localhost:8000/v1".to_owned())
        })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(&host(&url), format!("holds a name or a password; the key is taken from {key_name} alone")));
    }
    let above = url.path().trim_end_matches('/').trim_end_matches(path);
    url.set_path(&format!("{above}{path}"));
    url.set_fragment(None);
    Ok(url)
}

/// The beginning of a text, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown: String = text.trim().chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.trim().len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

fn said(error: &reqwest::Error) -> String {
    let what = if error.is_connect() { "cannot be reached" } else { "the connection broke" };
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    format!("{what}: {cause}")
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn no_answer(error: &reqwest::Error) -> NoAnswer {
    let mut cause: Option<&dyn std::error::Error> = error.source();
    while let Some(source) = cause {
        if source.is::<Private>() {
            return NoAnswer::Refused(said(error));
        }
        cause = source.source();
    }
    NoAnswer::Lost(said(error))
}

/// The wait that an answer asks for, in whole seconds.
fn pause(response: &Response) -> Duration {
    named_pause(response).unwrap_or(PAUSE)
}

fn named_pause(response: &Response) -> Option<Duration> {
    let named = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(named))
}
