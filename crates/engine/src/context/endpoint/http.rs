//! One POST at a time, bounded in time and bytes.

use std::fmt;
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use super::address::{self, PublicOnly};
use crate::error::{Error, Result};

/// The hosts that an endpoint may be at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Any: whoever runs the program named the host.
    Any,
    /// Public addresses alone, without a proxy: somebody else named the host, and would have the machine's own
    /// services, its network and its cloud's metadata asked.
    Public,
}

/// Most bytes of an answer that are read.
pub(super) const BODY_BYTES_MAX: usize = 1 << 20;
/// Wait after 429 or 503 where the answer names none.
const PAUSE: Duration = Duration::from_secs(1);
/// Letters of a wrong answer that an error shows.
const SHOWN_CHARS: usize = 120;
/// A shorter key is a placeholder ("none", "EMPTY"), which answers may well contain.
const KEY_BYTES_MIN: usize = 8;

/// A way to an endpoint.
pub(super) struct Line {
    url: Url,
    key: Option<String>,
    authorization: Option<HeaderValue>,
    timeout: Duration,
    client: Client,
    /// Absent once it is shut down.
    runtime: Option<Runtime>,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("host", &self.host()).finish_non_exhaustive()
    }
}

impl Drop for Line {
    /// A look-up of a host name that hangs is not waited for.
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

impl Line {
    pub(super) fn open(address: &str, key: Option<&str>, timeout: Duration, reach: Reach) -> Result<Self> {
        let wrong = |setting, value: &str, reason: &str| {
            let (value, reason) = (value.to_owned(), reason.to_owned());
            Error::Setting { setting, value, reason }
        };
        let mut url =
            Url::parse(address).ok().filter(|url| ["http", "https"].contains(&url.scheme())).ok_or_else(|| {
                // What is no address may hold a password all the same.
                let shown = if address.contains('@') { "…" } else { address };
                wrong("endpoint", shown, "is no address of a server; expected one like http://localhost:8000/v1")
            })?;
        if !url.username().is_empty() || url.password().is_some() {
            let reason = "holds a name or a password; the key is taken from CENTO_ENDPOINT_KEY alone";
            return Err(wrong("endpoint", &host(&url), reason));
        }
        let path = url.path().trim_end_matches('/').trim_end_matches(PATH);
        url.set_path(&format!("{path}{PATH}"));
        url.set_fragment(None);

        let key = key.map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned);
        let header = |key: &String| -> Result<HeaderValue> {
            let mut header = HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| wrong("CENTO_ENDPOINT_KEY", "…", "has a character that no header can hold"))?;
            header.set_sensitive(true);
            Ok(header)
        };
        let authorization = key.as_ref().map(header).transpose()?;
        let mut client = Client::builder()
            .redirect(reqwest::redirect::Policy::none()) // neither key nor passages go anywhere else
            .user_agent(concat!("cento/", env!("CARGO_PKG_VERSION")));
        if reach == Reach::Public {
            if let Some(ip) = address::private(&url) {
                return Err(Error::PrivateEndpoint { host: host(&url), ip });
            }
            client = client.dns_resolver(PublicOnly).no_proxy(); // what a proxy connects to cannot be looked at
        } else if ["localhost", "127.0.0.1", "[::1]"].contains(&url.host_str().unwrap_or_default()) {
            client = client.no_proxy();
        }
        let failed =
            |error: &dyn std::error::Error| wrong("endpoint", &host(&url), &format!("cannot be asked: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
        let client = client.build().map_err(|error| failed(&error))?;
        Ok(Self { url, key, authorization, timeout, client, runtime: Some(runtime) })
    }

    /// Host, and port if it is not the scheme's.
    pub(super) fn host(&self) -> String {
        host(&self.url)
    }

    /// A text without the key, should a server repeat it.
    pub(super) fn hidden(&self, text: &str) -> String {
        match self.key.as_deref().filter(|key| key.len() >= KEY_BYTES_MIN) {
            Some(key) => text.replace(key, "CENTO_ENDPOINT_KEY"),
            None => text.to_owned(),
        }
    }

    /// The body that answers a JSON body; why there is none, otherwise.
    ///
    /// The exchange runs on a thread of its own: the caller's may be one of an asynchronous runtime, which another one
    /// cannot be entered from.
    pub(super) fn post(&self, body: &[u8]) -> Result<String, String> {
        let within = || format!("no answer within {} s", self.timeout.as_secs_f64());
        let exchange = async { timeout(self.timeout, self.exchange(body)).await.unwrap_or_else(|_| Err(within())) };
        let Some(runtime) = &self.runtime else { return Err("is being closed".to_owned()) };
        std::thread::scope(|scope| {
            let asking = std::thread::Builder::new().spawn_scoped(scope, || runtime.block_on(exchange));
            let asking = asking.map_err(|error| format!("no thread to ask from: {error}"))?;
            asking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
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
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| said(&error.without_url()))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > BODY_BYTES_MAX {
                return Err(format!("answered {status} with more than {BODY_BYTES_MAX} bytes"));
            }
        }
        let text = self.hidden(&String::from_utf8_lossy(&bytes));
        if status.is_success() { Ok(text) } else { Err(format!("answered {status}: {}", excerpt(&text))) }
    }

    async fn send(&self, body: &[u8]) -> Result<Response, String> {
        let mut request =
            self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(body.to_vec());
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        request.send().await.map_err(|error| said(&error.without_url()))
    }
}

/// The beginning of a text, on one line.
pub(super) fn excerpt(text: &str) -> String {
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

/// The wait that an answer asks for, in whole seconds.
fn pause(response: &Response) -> Duration {
    let named = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    named.map_or(PAUSE, Duration::from_secs)
}

const PATH: &str = "/chat/completions";
