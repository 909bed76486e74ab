//! A repository on the hub. What is cut off goes on where it ended; what is asked too often is asked later.
//!
//! Differs: hf-hub reads answers without a limit and follows links to the next page anywhere, so the listing is one
//! bounded request of our own. The token goes to the hub alone: reqwest takes it off when a redirect leaves its host.

use std::thread;
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER};

use super::listing::Listing;
use super::origin::{Order, Origin};
use super::wanted::Wanted;
use crate::error::{Failure, Halt, nearest};
use crate::hub::{self, Hub, Piece, Place};
use crate::incoming::Incoming;
use crate::progress::Progress;
use crate::settings::Settings;

/// A longer listing is not read: 100,000 files stand in it.
const LISTING_BYTES_MAX: usize = 32 << 20;
/// For the whole listing.
const LISTING_MAX: Duration = Duration::from_secs(60);
/// Requests in turn that bring nothing, before a file is given up.
const N_IN_VAIN_MAX: usize = 5;
/// Requests for one file, whatever they bring.
const N_REQUESTS_MAX: usize = 1000;
/// The longest wait that a hub may ask for.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// The first wait where it asks for none; doubled each time.
const WAIT_MIN: Duration = Duration::from_millis(250);

/// A repository on a hub that was reached.
pub(crate) struct Remote<'a> {
    hub: Hub,
    client: reqwest::Client,
    wanted: &'a Wanted,
    settings: &'a Settings,
    known: &'a [&'a str],
}

impl<'a> Remote<'a> {
    /// Reaches the hub; `known` are names that a misspelled one is told to be near.
    pub(crate) fn open(wanted: &'a Wanted, settings: &'a Settings, known: &'a [&'a str]) -> Result<Self, Halt> {
        let hub = Hub::open(settings)?;
        let client = reqwest::Client::builder().user_agent(hub::USER_AGENT).build();
        let client = client.map_err(|error| Failure::Hub { reason: hub::without_queries(&error.to_string()) })?;
        Ok(Self { hub, client, wanted, settings, known })
    }

    async fn list(&self) -> Result<Vec<u8>, Failure> {
        let revision = self.wanted.revision.as_deref().unwrap_or("main").replace('/', "%2F");
        let endpoint = self.settings.hf_endpoint.trim_end_matches('/');
        let address = format!("{endpoint}/api/models/{}/revision/{revision}?blobs=true", self.wanted.repository);
        let mut request = self.client.get(address);
        if let Some(token) = &self.settings.token
            && let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", token.secret()))
        {
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let broken =
            |error: reqwest::Error| Failure::Broken { reason: hub::without_queries(&hub::with_causes(&error)) };
        let mut answer = hub::within(hub::ANSWER_MAX, request.send()).await?.map_err(broken)?;
        if !answer.status().is_success() {
            return Err(self.refusal(&answer));
        }
        let mut json = Vec::new();
        while let Some(bytes) = answer.chunk().await.map_err(broken)? {
            if json.len() + bytes.len() > LISTING_BYTES_MAX {
                return Err(Failure::Hub { reason: format!("its listing has more than {LISTING_BYTES_MAX} bytes") });
            }
            json.extend_from_slice(&bytes);
        }
        Ok(json)
    }

    fn refusal(&self, answer: &reqwest::Response) -> Failure {
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let code = header("x-error-code");
        let is_gated = hub::is_gated(code);
        let has_token = self.settings.token.is_some();
        match answer.status().as_u16() {
            // the hub says 401 for what is not there, too: it does not tell strangers what is private
            401 if !is_gated => {
                Failure::NoRepository { has_token, nearest: nearest(&self.wanted.repository, self.known) }
            }
            status @ (401 | 403) => Failure::NotAllowed { status, is_gated },
            404 if code == Some("RevisionNotFound") => {
                Failure::NoRevision { revision: self.wanted.revision.clone().unwrap_or_else(|| "main".to_owned()) }
            }
            404 => Failure::NoRepository { has_token, nearest: nearest(&self.wanted.repository, self.known) },
            429 | 503 => {
                Failure::Busy { wait_seconds: header(RETRY_AFTER.as_str()).and_then(|wait| wait.trim().parse().ok()) }
            }
            status => Failure::Hub { reason: format!("answers with status {status}") },
        }
    }
}

impl Origin for Remote<'_> {
    fn label(&self) -> String {
        hub::label(&self.wanted.repository, self.settings)
    }

    fn listing(&self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Listing, Halt> {
        let mut n_in_vain = 0;
        loop {
            let listed = self.hub.block_on(hub::within(LISTING_MAX, self.list()));
            match listed.and_then(|listed| listed) {
                Ok(json) => return Ok(Listing::parse(&json)?),
                Err(reason) => {
                    n_in_vain += 1;
                    rest(reason, n_in_vain, progress)?;
                }
            }
        }
    }

    fn bring(
        &self,
        order: &Order<'_>,
        incoming: &mut Incoming,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), Halt> {
        let (entry, size) = (order.entry, order.entry.size_bytes);
        let place = Place { repository: &self.wanted.repository, revision: order.commit, path: &entry.path };
        let mut n_in_vain = 0;
        for _ in 0..N_REQUESTS_MAX {
            let before = incoming.n_bytes();
            if before == size {
                return Ok(());
            }
            let ended = self.hub.download(&place, (before > 0).then_some(before..size), &mut |piece| {
                match piece {
                    Piece::Announced(Some(n_bytes)) if before == 0 && n_bytes != size => {
                        let (found, expected) = (format!("{n_bytes} bytes announced"), format!("{size} bytes"));
                        return Err(Failure::NotAsListed { path: entry.path.clone(), found, expected }.into());
                    }
                    Piece::Announced(_) => {}
                    Piece::Bytes(bytes) => incoming.write(bytes)?,
                }
                progress(order.at(incoming.n_bytes()));
                Ok(())
            });
            let n_bytes = incoming.n_bytes();
            let reason = match ended {
                Ok(()) if n_bytes == size => return Ok(()),
                Ok(()) => Failure::Broken { reason: format!("{}: ended after {n_bytes} of {size} bytes", entry.path) },
                Err(Halt::There(reason)) => reason,
                Err(here) => return Err(here),
            };
            n_in_vain = if n_bytes > before { 0 } else { n_in_vain + 1 };
            rest(reason, n_in_vain, progress)?;
        }
        Err(Failure::Broken { reason: format!("{}: given up after {N_REQUESTS_MAX} requests", entry.path) }.into())
    }
}

/// Waits before the next request, or gives up: for good reasons, and after some in vain.
fn rest(reason: Failure, n_in_vain: usize, progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), Failure> {
    let asked = match &reason {
        Failure::Busy { wait_seconds } => wait_seconds.map(Duration::from_secs),
        Failure::Broken { .. } | Failure::Stalled { .. } => None,
        _ => return Err(reason), // another request would be answered the same
    };
    let wait = asked.unwrap_or(WAIT_MIN * 2u32.saturating_pow(n_in_vain as u32));
    if n_in_vain >= N_IN_VAIN_MAX || wait > WAIT_MAX {
        return Err(reason);
    }
    if asked.is_some() {
        progress(Progress::Resting { seconds: wait.as_secs() });
    }
    let began = Instant::now();
    while let Some(left) = wait.checked_sub(began.elapsed()) {
        thread::park_timeout(left);
    }
    Ok(())
}
