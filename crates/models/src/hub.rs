//! The first source: the hub, at the card's revision.
//!
//! hf-hub itself waits long for a host that does not answer, so the host is tried first, and a transfer that stands
//! still is given up. Bytes are counted as they come, past hf-hub's own cache: a hub that sends more than the card says
//! is cut off.

use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cento_collection::fs::Fs;
use futures_util::StreamExt;
use hf_hub::{HFClient, HFError};
use tokio::runtime::Runtime;

use crate::card::Card;
use crate::error::{Failure, Halt};
use crate::incoming::Incoming;
use crate::progress::Progress;
use crate::settings::Settings;

/// To look a host up and connect to it, before the next source is tried.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// For the head of an answer, retries included; it bounds the words of a refusal too, which hf-hub reads without a
/// limit.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(20);
/// Without a new byte, before a transfer is given up.
const STALL_MAX: Duration = Duration::from_secs(60);
/// Further attempts of hf-hub after an answer that may pass (429, 5xx).
const N_RETRIES: usize = 2;
/// The name that the hub sees.
pub(crate) const USER_AGENT: &str = concat!("cento/", env!("CARGO_PKG_VERSION"));

/// The hub's name in progress and errors, without the password that its address may carry.
pub(crate) fn label(repository: &str, settings: &Settings) -> String {
    let address = settings.hf_endpoint.trim_end_matches('/');
    match address.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            format!("{scheme}://{host}{path}/{repository}")
        }
        None => format!("{address}/{repository}"),
    }
}

/// Downloads every file of the card into `folder`.
pub(crate) fn fetch(
    card: &Card,
    settings: &Settings,
    fs: &dyn Fs,
    folder: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), Halt> {
    let hub = Hub::open(settings)?;
    let (mut n_bytes_before, total) = (0, card.n_bytes());
    for file in &card.files {
        let place = Place { repository: &card.repository, revision: &card.revision, path: &file.path };
        let mut incoming = None;
        hub.download(&place, None, &mut |piece| {
            match (piece, &mut incoming) {
                (Piece::Announced(n_bytes), _) => incoming = Some(Incoming::create(fs, folder, file, n_bytes)?),
                (Piece::Bytes(bytes), Some(incoming)) => {
                    incoming.write(bytes)?;
                    progress(Progress::Bytes { done: n_bytes_before + incoming.n_bytes(), total });
                }
                (Piece::Bytes(_), None) => unreachable!("a size is announced before the first byte"),
            }
            Ok(())
        })?;
        n_bytes_before += incoming.map_or(Ok(0), Incoming::end)?;
    }
    Ok(())
}

/// A file of a repository.
pub(crate) struct Place<'a> {
    pub(crate) repository: &'a str,
    pub(crate) revision: &'a str,
    pub(crate) path: &'a str,
}

/// A part of a download.
pub(crate) enum Piece<'a> {
    /// First of all, the size that the hub announces, if it does.
    Announced(Option<u64>),
    /// Bytes, in order.
    Bytes(&'a [u8]),
}

/// A hub that was reached.
pub(crate) struct Hub {
    client: HFClient,
    runtime: Option<Runtime>,
}

impl Hub {
    /// Looks whether the hub, or the proxy before it, answers at all.
    pub(crate) fn open(settings: &Settings) -> Result<Self, Halt> {
        if settings.offline {
            return Err(Failure::Offline.into());
        }
        let endpoint = &settings.hf_endpoint;
        if settings.token.is_some() && !is_secret(endpoint) {
            return Err(Failure::TokenInTheClear { endpoint: label("", settings) }.into());
        }
        let reached = reach(endpoint).or_else(|direct| match &settings.proxy {
            None => Err(direct),
            Some(proxy) => reach(proxy).map_err(|by_proxy| format!("{direct}; by proxy: {by_proxy}")),
        });
        reached.map_err(|reason| Failure::Unreachable { reason })?;
        let broken = |reason: String| Failure::Hub { reason };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| broken(error.to_string()))?;
        let client = HFClient::builder()
            .endpoint(endpoint)
            .cache_enabled(false)
            .retry_max_attempts(N_RETRIES)
            .user_agent(USER_AGENT);
        let client = match &settings.token {
            Some(token) => client.token(token.secret()),
            None => client,
        };
        let client = client.build().map_err(|error| refused(&error))?;
        Ok(Self { client, runtime: Some(runtime) })
    }

    /// Gives the bytes of a file, or a range of them, to `take`.
    pub(crate) fn download(
        &self,
        place: &Place<'_>,
        range: Option<Range<u64>>,
        take: &mut dyn FnMut(Piece<'_>) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        self.block_on(async {
            let (owner, name) = hf_hub::split_id(place.repository);
            let repository = self.client.model(owner, name);
            let file = repository.download_file_stream().filename(place.path).revision(place.revision);
            let request = file.maybe_range(range).send();
            let (announced_bytes, mut stream) = within(ANSWER_MAX, request).await?.map_err(|error| refused(&error))?;
            take(Piece::Announced(announced_bytes))?;
            while let Some(bytes) = within(STALL_MAX, stream.next()).await? {
                take(Piece::Bytes(&bytes.map_err(|error| broken(place.path, &error))?))?;
            }
            Ok(())
        })
    }

    /// Runs requests to their end.
    pub(crate) fn block_on<T>(&self, requests: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("until it is dropped").block_on(requests)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // a name that is still being looked up is not waited for
        self.runtime.take().map(Runtime::shutdown_background);
    }
}

/// True where a token on its way to the address is read by nobody: over TLS, or on this machine.
fn is_secret(address: &str) -> bool {
    let is_encrypted = address.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"));
    let is_here = |host: &str| host == "localhost" || host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback());
    is_encrypted || host_and_port(address).is_some_and(|(host, _)| is_here(&host))
}

/// Waits no longer than that.
pub(crate) async fn within<T>(limit: Duration, answer: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::time::timeout(limit, answer).await.map_err(|_| Failure::Stalled { seconds: limit.as_secs() })
}

/// The hub's refusal, by what the user can do about it.
fn refused(error: &HFError) -> Failure {
    match error {
        HFError::RateLimited { retry_after, .. } => {
            Failure::Busy { wait_seconds: retry_after.map(|wait| wait.as_secs()) }
        }
        HFError::AuthRequired { context } | HFError::Forbidden { context } => {
            Failure::NotAllowed { status: context.status.as_u16(), is_gated: is_gated(context.error_code.as_deref()) }
        }
        _ => Failure::Hub { reason: without_queries(&with_causes(error)) },
    }
}

/// True for the hub's word for a model whose terms are to be accepted.
pub(crate) fn is_gated(error_code: Option<&str>) -> bool {
    error_code.is_some_and(|code| code.eq_ignore_ascii_case("GatedRepo"))
}

/// A connection that ended before the file did.
fn broken(path: &str, error: &HFError) -> Failure {
    Failure::Broken { reason: format!("{path}: {}", without_queries(&with_causes(error))) }
}

/// A message without the queries of its addresses: those of a content network are signed.
pub(crate) fn without_queries(message: &str) -> String {
    let mut words = Vec::new();
    for word in message.split(' ') {
        match word.split_once('?') {
            Some((address, query)) if address.contains("://") => {
                let end = query.trim_start_matches(|c: char| !")],;".contains(c));
                words.push(format!("{address}{end}"));
            }
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

/// Connects to the host of an address and hangs up; the whole of it, name lookup included, takes at most
/// [`CONNECT_MAX`].
fn reach(address: &str) -> Result<(), String> {
    let (host, port) = host_and_port(address).ok_or_else(|| format!("{address:?} is not an address"))?;
    let place = format!("{host}:{port}");
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || {
        let connect = || {
            let mut last = None;
            for socket in (host.as_str(), port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&socket, CONNECT_MAX) {
                    Ok(_) => return Ok(()),
                    Err(error) => last = Some(error),
                }
            }
            Err(last.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into()))
        };
        let _ = answer.send(connect());
    });
    match answered.recv_timeout(CONNECT_MAX) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("cannot connect to {place}: {error}")),
        Err(_) => Err(format!("cannot connect to {place} within {} s", CONNECT_MAX.as_secs())),
    }
}

/// `scheme://user@host:port/path` → host and port; the port follows from the scheme where none is given.
fn host_and_port(address: &str) -> Option<(String, u16)> {
    let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
    let authority = rest.split(['/', '?', '#']).next()?;
    let host_port = authority.rsplit_once('@').map_or(authority, |(_, host_port)| host_port);
    let default_port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    let (host, port) = match host_port.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (host_port, default_port),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// An error with its causes: hf-hub's own message leaves out why a request failed.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let reason = error.to_string();
        if !message.contains(&reason) {
            message = format!("{message}: {reason}");
        }
        cause = error.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gives_host_and_port() {
        let check = |address: &str, host: &str, port| assert_eq!(host_and_port(address), Some((host.to_owned(), port)));
        check("https://huggingface.co", "huggingface.co", 443);
        check("https://mirror.example/hf/", "mirror.example", 443);
        check("http://127.0.0.1:9", "127.0.0.1", 9);
        check("http://user:secret@proxy.example:3128/", "proxy.example", 3128);
        check("https://[::1]:8443", "::1", 8443);
        check("http://[::1]", "::1", 80);
        check("proxy.example:8080", "proxy.example", 8080);
        assert_eq!(host_and_port("https://"), None);
        assert_eq!(host_and_port("https://host:port"), None);
    }
}
