//! A collection that lies on other servers: each has a part, and their sources answer as one.
//!
//! Each request asks every shard first for its generation, all at once; where one has another than before, all are
//! described anew. So a request begins on the newest generations, as it does where the collection lies here, and a
//! shard that does not answer is said before anything is ranked. A request that may do without it does so from here to
//! its end: statistics, scores and what is cited are of one set of shards, which its answer names the rest of.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cento_collection::care::status::Status;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::line::{Line, Reach, Target};
use crate::retrieve::missing::{MissingShard, Needed};
use crate::retrieve::searcher::{Searcher, SearcherOptions};
use crate::source::remote::carrier::{Carrier, Server, Within};
use crate::source::remote::{Remote, generation};
use crate::source::seam::{Description, Source as _};

/// The route of a server that answers for a shard.
pub const SHARD_ROUTE: &str = "/v1/shard";

/// The variable that the key of shards is taken from.
pub const SHARD_KEY: &str = "CENTO_SHARD_KEY";

/// The most shards of a collection: each costs a thread for each request.
const SHARDS_MAX: usize = 256;

/// The part of the time of an exchange in which a shard that may be missing must say that it is there.
const PATIENCE: u32 = 4;

/// The time that one exchange may take where nobody says it.
pub const SHARD_TIMEOUT: Duration = Duration::from_secs(60);

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
    timeout: Duration,
    /// Those of all servers, and those of some.
    open: Mutex<[Option<Opened>; 2]>,
}

/// Shards at their generations.
#[derive(Debug, Clone)]
struct Opened {
    generations: Vec<Asked>,
    searcher: Arc<Searcher>,
}

/// The number of a server, and the generation that it has.
type Asked = (usize, String);

impl Sharded {
    pub(super) fn new(options: &ShardOptions) -> Result<Self> {
        let n_shards = options.urls.len();
        if !(1..=SHARDS_MAX).contains(&n_shards) {
            return Err(refused(&n_shards.to_string(), format!("is not from 1 to {SHARDS_MAX}")));
        }
        let mut carriers: Vec<Arc<dyn Carrier>> = Vec::with_capacity(n_shards);
        let mut addresses: HashMap<String, &String> = HashMap::new();
        for url in &options.urls {
            let target = Target { url, path: SHARD_ROUTE, setting: "shards", key_name: SHARD_KEY };
            let line = Line::open(&target, options.key.as_deref(), options.timeout, Reach::Any)?;
            if let Some(known) = addresses.insert(line.address().to_owned(), url) {
                return Err(refused(url, if known == url { "is named twice".into() } else { format!("is {known}") }));
            }
            carriers.push(Arc::new(Server { name: url.clone(), line }));
        }
        Ok(Self { carriers, timeout: options.timeout, open: Mutex::default() })
    }

    /// The shards as one collection at their newest generations, for one request.
    pub(super) fn searcher(
        &self,
        options: impl FnOnce() -> SearcherOptions,
        needed: Needed,
        cancel: &Cancel,
    ) -> Result<Arc<Searcher>> {
        let mut missing = BTreeMap::new();
        let all: Vec<usize> = (0..self.carriers.len()).collect();
        let generations = self.answers(&all, needed, &mut missing, |carrier| match needed {
            Needed::All => generation(&**carrier, cancel),
            Needed::Any => generation(&Within { carrier: &**carrier, time: self.timeout / PATIENCE }, cancel),
        })?;
        let slot = usize::from(!missing.is_empty());
        let known = self.open.lock().unwrap_or_else(PoisonError::into_inner)[slot].clone();
        let opened = match known.filter(|known| known.generations == generations) {
            Some(known) => known,
            None => {
                let there: Vec<usize> = generations.iter().map(|(at, _)| *at).collect();
                let shards =
                    self.answers(&there, needed, &mut missing, |carrier| Remote::open(Arc::clone(carrier), cancel))?;
                let opened = self.opened(shards, options())?;
                let slot = usize::from(!missing.is_empty());
                self.open.lock().unwrap_or_else(PoisonError::into_inner)[slot] = Some(opened.clone());
                opened
            }
        };
        Ok(Arc::new(opened.searcher.until(cancel, missing.into_values().collect())))
    }

    fn opened(&self, shards: Vec<(usize, Remote)>, options: SearcherOptions) -> Result<Opened> {
        let generations: Vec<Asked> = shards.iter().map(|(at, shard)| (*at, shard.generation().to_owned())).collect();
        let name = |at: &usize| self.carriers[*at].name();
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (at, shard) in shards.iter().filter(|(_, shard)| shard.describe().n_documents > 0) {
            if let Some(other) = known.insert(shard.generation(), *at) {
                return Err(refused(name(at), format!("has the same collection as {}; name it once", name(&other))));
            }
        }
        let names = shards.iter().map(|(at, _)| PathBuf::from(name(at))).collect();
        let shards = shards.into_iter().map(|(_, shard)| shard).collect();
        Ok(Opened { generations, searcher: Arc::new(Searcher::of_shards(shards, names, options)?) })
    }

    /// The answers of servers with their numbers, asked at once. Where not all are needed, those that fail are missing,
    /// unless all do; otherwise the error is that of the first that fails.
    fn answers<T: Send>(
        &self,
        which: &[usize],
        needed: Needed,
        missing: &mut BTreeMap<usize, MissingShard>,
        ask: impl Fn(&Arc<dyn Carrier>) -> Result<T> + Sync,
    ) -> Result<Vec<(usize, T)>> {
        let ask = &ask;
        let answers: Vec<Result<T>> = std::thread::scope(|scope| {
            let asked: Vec<_> = which.iter().map(|&at| scope.spawn(move || ask(&self.carriers[at]))).collect();
            let answer = |asked: std::thread::ScopedJoinHandle<'_, Result<T>>| {
                asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            asked.into_iter().map(answer).collect()
        });
        let (mut there, mut first) = (Vec::with_capacity(which.len()), None);
        for (&at, answer) in which.iter().zip(answers) {
            match answer {
                Ok(answer) => there.push((at, answer)),
                Err(Error::Shard { shard, reason }) if needed == Needed::Any => {
                    missing.insert(at, MissingShard { shard: shard.clone(), why: reason.clone() });
                    first = first.or(Some(Error::Shard { shard, reason }));
                }
                Err(error) => return Err(error),
            }
        }
        match first {
            Some(error) if there.is_empty() => Err(error),
            Some(_) | None => Ok(there),
        }
    }
}

fn refused(value: &str, reason: String) -> Error {
    Error::Setting { setting: "shards", value: value.to_owned(), reason }
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
