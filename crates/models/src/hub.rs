//! The first source: the hub, at the card's revision.
//!
//! hf-hub itself waits long for a host that does not answer, so the host is tried first, and a transfer that stands
//! still is given up. Bytes are counted as they come, past hf-hub's own cache: a hub that sends more than the card says
//! is cut off.

use std::error::Error as _;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cento_collection::fs::Fs;
use futures_util::StreamExt;
use hf_hub::{HFClient, HFError};

use crate::card::Card;
use crate::error::{Failure, Halt};
use crate::incoming::Incoming;
use crate::progress::Progress;
use crate::settings::Settings;

/// To look a host up and connect to it, before the next source is tried.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// For the head of an answer, retries included; it bounds the words of a refusal too, which hf-hub reads without a
/// limit.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// Without a new byte, before a transfer is given up.
const STALL_MAX: Duration = Duration::from_secs(60);
/// Further attempts of hf-hub after an answer that may pass (429, 5xx).
const N_RETRIES: usize = 2;

/// The hub's name in progress and errors.
pub(crate) fn label(card: &Card, settings: &Settings) -> String {
    format!("{}/{}", settings.hf_endpoint.trim_end_matches('/'), card.repository)
}

/// Downloads every file of the card into `folder`.
pub(crate) fn fetch(
    card: &Card,
    settings: &Settings,
    fs: &dyn Fs,
    folder: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), Halt> {
    if settings.offline {
        return Err(Failure::Offline.into());
    }
    let reached = reach(&settings.hf_endpoint).or_else(|direct| match &settings.proxy {
        None => Err(direct),
        Some(proxy) => reach(proxy).map_err(|by_proxy| format!("{direct}; by proxy: {by_proxy}")),
    });
    reached.map_err(|reason| Failure::Unreachable { reason })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Hub { reason: error.to_string() })?;
    let outcome = runtime.block_on(download(card, &settings.hf_endpoint, fs, folder, progress));
    runtime.shutdown_background(); // a name that is still being looked up is not waited for
    outcome
}

async fn download(
    card: &Card,
    endpoint: &str,
    fs: &dyn Fs,
    folder: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), Halt> {
    let client = HFClient::builder()
        .endpoint(endpoint)
        .cache_enabled(false)
        .retry_max_attempts(N_RETRIES)
        .user_agent(concat!("cento/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| refused(&error))?;
    let (owner, name) = hf_hub::split_id(&card.repository);
    let repository = client.model(owner, name);
    let (mut n_bytes_before, total) = (0, card.n_bytes());
    for file in &card.files {
        let request = repository.download_file_stream().filename(&file.path).revision(&card.revision).send();
        let (announced_bytes, mut stream) = within(ANSWER_MAX, request).await?.map_err(|error| refused(&error))?;
        let mut incoming = Incoming::create(fs, folder, file, announced_bytes)?;
        while let Some(bytes) = within(STALL_MAX, stream.next()).await? {
            incoming.write(&bytes.map_err(|error| refused(&error))?)?;
            progress(Progress::Bytes { done: n_bytes_before + incoming.n_bytes(), total });
        }
        n_bytes_before += incoming.end()?;
    }
    Ok(())
}

async fn within<T>(limit: Duration, answer: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::time::timeout(limit, answer).await.map_err(|_| Failure::Stalled { seconds: limit.as_secs() })
}

fn refused(error: &HFError) -> Failure {
    Failure::Hub { reason: whole_message(error) }
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
fn whole_message(error: &HFError) -> String {
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
