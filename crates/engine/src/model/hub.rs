//! The first source: the hub, at the card's revision.
//!
//! hf-hub itself waits long for a host that does not answer, so the host is tried first, and a transfer that stands still is
//! given up. Files go straight to the temporary folder, past hf-hub's own cache.

use std::error::Error as _;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use hf_hub::progress::{DownloadEvent, ProgressEvent, ProgressHandler};
use hf_hub::{HFClient, HFError};

use super::card::Card;
use super::pull::Progress;
use super::settings::Settings;

/// To look a host up and connect to it, before the next source is tried.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// Without a new byte, before a transfer is given up.
const STALL_MAX: Duration = Duration::from_secs(60);
/// How often hf-hub asks again after an answer that may pass (429, 5xx).
const N_RETRIES: usize = 2;

/// What the hub is called in progress and errors.
pub(super) fn label(card: &Card, settings: &Settings) -> String {
    format!("{}/{}", settings.hf_endpoint.trim_end_matches('/'), card.repository)
}

/// Downloads every file of the card; the reason as text when that fails.
pub(super) fn fetch(
    card: &Card,
    settings: &Settings,
    folder: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<PathBuf, String> {
    if settings.offline {
        return Err("left out, HF_HUB_OFFLINE is set".to_owned());
    }
    reach(&settings.hf_endpoint).or_else(|direct| match &settings.proxy {
        None => Err(direct),
        Some(proxy) => reach(proxy).map_err(|by_proxy| format!("{direct}; by proxy: {by_proxy}")),
    })?;

    let (events, received) = mpsc::channel();
    let (card_there, folder_there, endpoint) = (card.clone(), folder.to_owned(), settings.hf_endpoint.clone());
    thread::spawn(move || {
        let outcome = download(&card_there, &folder_there, &endpoint, &events);
        // Nobody listens any more when the transfer was given up.
        let _ = events.send(Event::Ended(outcome.map_err(|error| whole_message(&error))));
    });

    let total = card.n_bytes();
    let (mut n_bytes_before, mut n_bytes_of_file) = (0, 0);
    let mut last_byte = Instant::now();
    loop {
        let event = received.recv_timeout(STALL_MAX.saturating_sub(last_byte.elapsed()));
        match event {
            Ok(Event::Bytes(n)) if n > n_bytes_of_file => {
                n_bytes_of_file = n;
                last_byte = Instant::now();
                progress(Progress::Bytes { done: (n_bytes_before + n).min(total), total });
            }
            Ok(Event::Bytes(_)) => {}
            Ok(Event::FileEnded(n)) => {
                n_bytes_before += n;
                n_bytes_of_file = 0;
                last_byte = Instant::now();
                progress(Progress::Bytes { done: n_bytes_before, total });
            }
            Ok(Event::Ended(outcome)) => return outcome.map(|()| folder.to_owned()),
            Err(RecvTimeoutError::Timeout) => return Err(format!("no data for {} s", STALL_MAX.as_secs())),
            Err(RecvTimeoutError::Disconnected) => return Err("the download ended without a result".to_owned()),
        }
    }
}

/// What the downloading thread tells the waiting one.
enum Event {
    /// Bytes received of the current file.
    Bytes(u64),
    /// A file of this size is there.
    FileEnded(u64),
    /// All files are there, or one failed.
    Ended(Result<(), String>),
}

fn download(card: &Card, folder: &Path, endpoint: &str, events: &Sender<Event>) -> Result<(), HFError> {
    let client = HFClient::builder()
        .endpoint(endpoint)
        .cache_enabled(false)
        .retry_max_attempts(N_RETRIES)
        .user_agent(concat!("cento/", env!("CARGO_PKG_VERSION")))
        .build_sync()?;
    let (owner, name) = hf_hub::split_id(&card.repository);
    let repository = client.model(owner, name);
    for file in &card.files {
        repository
            .download_file()
            .filename(&file.path)
            .revision(&card.revision)
            .local_dir(folder)
            .progress(Reporter(events.clone()))
            .send()?;
        let _ = events.send(Event::FileEnded(file.size_bytes));
    }
    Ok(())
}

/// Passes hf-hub's byte counts on.
struct Reporter(Sender<Event>);

impl ProgressHandler for Reporter {
    fn on_progress(&self, event: &ProgressEvent) {
        let n_bytes = match event {
            ProgressEvent::Download(DownloadEvent::Progress { files }) => {
                files.iter().map(|file| file.bytes_completed).sum()
            }
            ProgressEvent::Download(DownloadEvent::AggregateProgress { bytes_completed, .. }) => *bytes_completed,
            _ => return,
        };
        let _ = self.0.send(Event::Bytes(n_bytes));
    }
}

/// Connects to the host of an address and hangs up; the whole of it, name lookup included, takes at most [`CONNECT_MAX`].
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
