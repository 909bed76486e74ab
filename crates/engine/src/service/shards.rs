//! A collection that lies on other servers: each has a part, and their sources answer as one.
//!
//! Each request asks every shard first for its generation, all at once; where one has another than before, all are
//! described anew. So a request begins on the newest generations, as it does where the collection lies here, and a
//! shard that does not answer is said before anything is ranked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cento_collection::care::status::Status;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::line::{Line, Reach, Target};
use crate::retrieve::searcher::{Searcher, SearcherOptions};
use crate::source::remote::{Carrier, Remote, Server, generation};
use crate::source::seam::Description;

/// The route of a server that answers for a shard.
pub const SHARD_ROUTE: &str = "/v1/shard";

/// The variable that the key of shards is taken from.
pub const SHARD_KEY: &str = "CENTO_SHARD_KEY";

/// The most shards of a collection: each costs a thread for each request.
const SHARDS_MAX: usize = 256;

/// Servers that have the parts of a collection.
#[derive(Debug, Clone)]
pub struct ShardOptions {
    /// Their addresses, each as `http://host:port`, with `?collection=NAME` behind it where a server has several.
    pub urls: Vec<String>,
    /// The key that they ask for.
    pub key: Option<String>,
    /// The time that one exchange may take.
    pub timeout: Duration,
}

/// The servers, and the generations that were asked last.
#[derive(Debug)]
pub(super) struct Sharded {
    carriers: Vec<Arc<dyn Carrier>>,
    open: Mutex<Option<(Vec<String>, Arc<Searcher>)>>,
}

impl Sharded {
    pub(super) fn new(options: &ShardOptions) -> Result<Self> {
        let refused =
            |value: &str, reason: String| Error::Setting { setting: "shards", value: value.to_owned(), reason };
        let n_shards = options.urls.len();
        if !(1..=SHARDS_MAX).contains(&n_shards) {
            return Err(refused(&n_shards.to_string(), format!("is not from 1 to {SHARDS_MAX}")));
        }
        let mut carriers: Vec<Arc<dyn Carrier>> = Vec::with_capacity(n_shards);
        for (at, url) in options.urls.iter().enumerate() {
            if options.urls[..at].contains(url) {
                return Err(refused(url, "is named twice".to_owned()));
            }
            let target = Target { url, path: SHARD_ROUTE, setting: "shards", key_name: SHARD_KEY };
            let line = Line::open(&target, options.key.as_deref(), options.timeout, Reach::Any)?;
            let collection = url.split_once("?collection=").map_or(String::new(), |(_, name)| format!(" ({name})"));
            carriers.push(Arc::new(Server { name: format!("{}{collection}", line.host()), line }));
        }
        Ok(Self { carriers, open: Mutex::default() })
    }

    /// The shards as one collection, at their newest generations.
    pub(super) fn searcher(&self, options: impl FnOnce() -> SearcherOptions, cancel: &Cancel) -> Result<Arc<Searcher>> {
        let newest = self.at_once(|carrier| generation(&**carrier, cancel))?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((generations, searcher)) = &*open
            && *generations == newest
        {
            return Ok(Arc::clone(searcher));
        }
        let shards = self.at_once(|carrier| Remote::open(Arc::clone(carrier), cancel))?;
        let generations = shards.iter().map(|shard| shard.generation().to_owned()).collect();
        let names = self.carriers.iter().map(|carrier| PathBuf::from(carrier.name())).collect();
        let searcher = Arc::new(Searcher::of_shards(shards, names, options())?);
        *open = Some((generations, Arc::clone(&searcher)));
        Ok(searcher)
    }

    /// The answers of all servers, asked at once; the error of the first that fails.
    fn at_once<T: Send>(&self, ask: impl Fn(&Arc<dyn Carrier>) -> Result<T> + Sync) -> Result<Vec<T>> {
        let ask = &ask;
        std::thread::scope(|scope| {
            let asked: Vec<_> = self.carriers.iter().map(|carrier| scope.spawn(move || ask(carrier))).collect();
            let answer = |asked: std::thread::ScopedJoinHandle<'_, Result<T>>| {
                asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            asked.into_iter().map(answer).collect()
        })
    }
}

/// The sums of a collection that lies on other servers.
pub(super) fn status(searcher: &Searcher) -> Status {
    let Description { manifest, n_documents, n_rows, .. } = searcher.source.describe();
    let n_stored: u64 = manifest.segments.iter().map(|entry| entry.n_documents).sum();
    Status {
        version: 1,
        generation: manifest.generation,
        n_documents: *n_documents,
        n_chunks: *n_rows,
        n_dead_documents: n_stored.saturating_sub(*n_documents),
        config: manifest.config.clone(),
        roots: manifest.roots.iter().map(|(label, path)| (label.clone(), path.display().to_string())).collect(),
        segments: Vec::new(),
        n_bytes: BTreeMap::new(),
        n_quarantined_bytes: 0,
        losses: manifest.losses.clone(),
        stale: manifest.stale.clone(),
    }
}
