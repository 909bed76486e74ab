//! A collection that lies on other servers: each has a part, and their sources answer as one.
//!
//! Each request asks every shard first for its generation, all at once; where one has another than before, all are
//! described anew. So a request begins on the newest generations, as it does where the collection lies here, and a
//! shard that does not answer is said before anything is ranked. A request that may do without it does so from here to
//! its end: statistics, scores and what is cited are of one set of shards, which its answer names the rest of.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cento_collection::care::status::{ShardStatus, Status};
use cento_collection::fs::read_bounded;

use super::stamp::Stamp;
use crate::cancel::Cancel;
use crate::error::{AtPath as _, Error, Result};
use crate::line::{Line, Reach, Target};
use crate::retrieve::missing::{MissingShard, Needed};
use crate::retrieve::searcher::{Searcher, SearcherOptions};
use crate::source::remote::carrier::{Carrier, Server};
use crate::source::replicas::{Replicas, Replicated};
use crate::source::seam::{Description, Source};

/// The route of a server that answers for a shard.
pub const SHARD_ROUTE: &str = "/v1/shard";

/// The variable that the key of shards is taken from.
pub const SHARD_KEY: &str = "CENTO_SHARD_KEY";

/// The most shards of a collection: each costs a thread for each request.
const SHARDS_MAX: usize = 256;

/// The most servers of one shard.
const REPLICAS_MAX: usize = 16;

/// The part of the time of an exchange in which a shard that may be missing must say that it is there.
const PATIENCE: u32 = 4;

/// The time that one exchange may take where nobody says it.
pub const SHARD_TIMEOUT: Duration = Duration::from_secs(60);

/// Between the addresses of servers that have the same part.
const REPLICAS: char = '|';

/// Bytes of a file of addresses, at most.
const ADDRESSES_BYTES_MAX: u64 = 1 << 20;

/// Servers that have the parts of a collection.
#[derive(Debug, Clone)]
pub struct ShardOptions {
    /// Where they are.
    pub places: ShardPlaces,
    /// The key that they ask for.
    pub key: Option<String>,
    /// The time that one exchange may take.
    pub timeout: Duration,
}

/// The addresses of servers, a part each: `http://host:port`, with `?collection=NAME` behind it where a server has
/// several, and with `|` between those of servers that have the same part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardPlaces {
    /// As they were given.
    Listed(Vec<String>),
    /// In a file, a part a line; it is read again by the first request after it has changed. Whoever writes it puts
    /// another in its place.
    File(PathBuf),
}

impl ShardPlaces {
    /// A name for the whole.
    pub(super) fn name(&self) -> PathBuf {
        match self {
            Self::Listed(urls) => urls.join(",").into(),
            Self::File(path) => path.clone(),
        }
    }
}

/// The servers, and the generations that were asked last.
#[derive(Debug)]
pub(super) struct Sharded {
    options: ShardOptions,
    now: Mutex<Arc<Known>>,
}

/// Servers as they were named when the file of their addresses had this stamp.
#[derive(Debug)]
struct Known {
    stamp: Option<Stamp>,
    shards: Vec<Arc<Replicas>>,
    /// Those of all shards, and those of some.
    open: Mutex<[Option<Opened>; 2]>,
}

/// Shards at their generations.
#[derive(Debug, Clone)]
struct Opened {
    generations: Vec<Asked>,
    searcher: Arc<Searcher>,
}

/// The number of a shard, and the generation that it has.
type Asked = (usize, String);

impl Sharded {
    pub(super) fn new(options: &ShardOptions) -> Result<Self> {
        let known = match &options.places {
            ShardPlaces::Listed(urls) => Known::of(urls, None, options, &[])?,
            ShardPlaces::File(path) => Known::read(path, Stamp::of(path)?, options, &[])?,
        };
        Ok(Self { options: options.clone(), now: Mutex::new(Arc::new(known)) })
    }

    /// The shards as they are named now. Those that are named as before keep what is known of them.
    fn now(&self) -> Result<Arc<Known>> {
        let mut now = lock(&self.now);
        if let ShardPlaces::File(path) = &self.options.places {
            let stamp = Stamp::of(path)?;
            if now.stamp != Some(stamp) {
                *now = Arc::new(Known::read(path, stamp, &self.options, &now.shards)?);
            }
        }
        Ok(Arc::clone(&now))
    }

    /// The servers as they are known, without asking any.
    pub(super) fn status(&self) -> Vec<ShardStatus> {
        lock(&self.now).shards.iter().map(|shard| shard.status()).collect()
    }

    /// The shards as one collection at their newest generations, for one request.
    pub(super) fn searcher(
        &self,
        options: impl FnOnce() -> SearcherOptions,
        needed: Needed,
        cancel: &Cancel,
    ) -> Result<Arc<Searcher>> {
        let known = self.now()?;
        let mut missing = BTreeMap::new();
        let within = (needed == Needed::Any).then(|| self.options.timeout / PATIENCE);
        let shards = known.answers(needed, &mut missing, |shard| shard.open(within, cancel))?;
        let generations: Vec<Asked> = shards.iter().map(|(at, shard)| (*at, shard.generation().to_owned())).collect();
        let slot = usize::from(!missing.is_empty());
        let open = lock(&known.open)[slot].clone();
        let opened = match open.filter(|open| open.generations == generations) {
            Some(open) => open,
            None => {
                let opened = known.opened(shards, generations, options())?;
                lock(&known.open)[slot] = Some(opened.clone());
                opened
            }
        };
        Ok(Arc::new(opened.searcher.until(cancel, missing.into_values().collect())))
    }
}

impl Known {
    fn read(path: &Path, stamp: Stamp, options: &ShardOptions, before: &[Arc<Replicas>]) -> Result<Self> {
        let bytes = read_bounded(path, ADDRESSES_BYTES_MAX).at(path)?;
        let text = String::from_utf8_lossy(&bytes); // what is no address is refused as it is
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self::of(&lines.map(str::to_owned).collect::<Vec<_>>(), Some(stamp), options, before)
    }

    /// The shards of these addresses; `before` are those that were named.
    fn of(named: &[String], stamp: Option<Stamp>, options: &ShardOptions, before: &[Arc<Replicas>]) -> Result<Self> {
        if !(1..=SHARDS_MAX).contains(&named.len()) {
            return Err(refused(&named.len().to_string(), format!("is not from 1 to {SHARDS_MAX}")));
        }
        let mut shards = Vec::with_capacity(named.len());
        let mut addresses: HashMap<String, &str> = HashMap::new();
        for name in named {
            let urls: Vec<&str> = name.split(REPLICAS).map(str::trim).collect();
            if urls.len() > REPLICAS_MAX {
                return Err(refused(name, format!("has more than {REPLICAS_MAX} replicas")));
            }
            let mut carriers: Vec<Arc<dyn Carrier>> = Vec::with_capacity(urls.len());
            for url in urls {
                let target = Target { url, path: SHARD_ROUTE, setting: "shards", key_name: SHARD_KEY };
                let line = Line::open(&target, options.key.as_deref(), options.timeout, Reach::Any)?;
                if let Some(known) = addresses.insert(line.address().to_owned(), url) {
                    let reason = if known == url { "is named twice".into() } else { format!("is {known}") };
                    return Err(refused(url, reason));
                }
                carriers.push(Arc::new(Server { name: url.to_owned(), line }));
            }
            let known = before.iter().find(|shard| shard.name() == name).map(Arc::clone);
            shards.push(known.unwrap_or_else(|| Arc::new(Replicas::new(name.clone(), carriers))));
        }
        Ok(Self { stamp, shards, open: Mutex::default() })
    }

    fn opened(
        &self,
        shards: Vec<(usize, Replicated)>,
        generations: Vec<Asked>,
        options: SearcherOptions,
    ) -> Result<Opened> {
        let name = |at: &usize| self.shards[*at].name();
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (at, shard) in shards.iter().filter(|(_, shard)| shard.describe().n_documents > 0) {
            if let Some(other) = known.insert(shard.generation(), *at) {
                let other = name(&other);
                let reason = format!("has the same collection as {other}; name it once, or as a replica: {other}|…");
                return Err(refused(name(at), reason));
            }
        }
        let names = shards.iter().map(|(at, _)| PathBuf::from(name(at))).collect();
        let shards = shards.into_iter().map(|(_, shard)| Arc::new(shard) as Arc<dyn Source>).collect();
        Ok(Opened { generations, searcher: Arc::new(Searcher::of_shards(shards, names, options)?) })
    }

    /// The answers of shards with their numbers, asked at once. Where not all are needed, those that fail are missing,
    /// unless all do; otherwise the error is that of the first that fails.
    fn answers<T: Send>(
        &self,
        needed: Needed,
        missing: &mut BTreeMap<usize, MissingShard>,
        ask: impl Fn(&Arc<Replicas>) -> Result<T> + Sync,
    ) -> Result<Vec<(usize, T)>> {
        let ask = &ask;
        let answers: Vec<Result<T>> = std::thread::scope(|scope| {
            let asked: Vec<_> = self.shards.iter().map(|shard| scope.spawn(move || ask(shard))).collect();
            let answer = |asked: std::thread::ScopedJoinHandle<'_, Result<T>>| {
                asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            asked.into_iter().map(answer).collect()
        });
        let (mut there, mut first) = (Vec::with_capacity(answers.len()), None);
        for (at, answer) in answers.into_iter().enumerate() {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(value: &str, reason: String) -> Error {
    Error::Setting { setting: "shards", value: value.to_owned(), reason }
}

/// The sums of a collection that lies on other servers.
pub(super) fn status(searcher: &Searcher, shards: Vec<ShardStatus>) -> Status {
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
        shards,
    }
}
