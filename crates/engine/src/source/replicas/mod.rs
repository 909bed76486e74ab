//! Replicas: servers that have the same collection. Each call goes to one of them, to the next where that fails, and to
//! a second one where it is late; every call only reads, so which of them answers shows in nothing.
//!
//! A generation is known by the checksum of its manifest, which every call carries and every answer repeats: a request
//! sees one generation, whoever answers. The newest that was seen is asked for; a replica that has an older one, or
//! another of the same number, is left aside until it has the same, unless nobody else answers.

mod standing;
mod race;

use std::ops::Range;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cento_assembly::Candidate;
use cento_collection::care::status::{ReplicaStatus, ShardStatus};
use cento_lexical::{Bm25, Explanation, Statistics};

use self::race::{Failures, Race, why};
use self::standing::{GENERATION, Standing};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::source::documents::{DocumentSection, Excerpt, ListedDocument, LocatedDocument, Part, Sought};
use crate::source::filter::Schema;
use crate::source::links::names::Name;
use crate::source::links::{Heading, Linkers, Linking};
use crate::source::ranking::Ranking;
use crate::source::refs::{Around, ChunkKey, ChunkRef, Named};
use crate::source::remote::carrier::Carrier;
use crate::source::remote::{Remote, generation};
use crate::source::scope::{Scoped, Wanted};
use crate::source::seam::{
    Counted, DenseQueries, Description, Labelled, LexicalQueries, Matched, Near, Rescored, Source,
};
use crate::source::selected::Pick;
use crate::source::titles::{Holder, Mention};

/// The time that the other replicas have to say what they have, once one has, when a shard is looked at first.
const FIRST_SIGHT: Duration = Duration::from_secs(1);

/// The servers of one shard.
#[derive(Debug)]
pub(crate) struct Replicas {
    /// Their addresses as the user wrote them.
    name: String,
    carriers: Vec<Arc<dyn Carrier>>,
    standing: Mutex<Standing>,
    /// The newest generation that was seen, as one of them has it.
    known: Mutex<Option<Remote>>,
}

/// A shard at one generation, whichever of its replicas answers.
#[derive(Debug, Clone)]
pub(crate) struct Replicated {
    replicas: Arc<Replicas>,
    known: Remote,
}

impl Replicas {
    /// Servers of one shard; one alone is asked as it is.
    pub(crate) fn new(name: String, carriers: Vec<Arc<dyn Carrier>>) -> Self {
        let standing = Mutex::new(Standing::new(carriers.len()));
        Self { name, carriers, standing, known: Mutex::default() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The shard at its newest generation, for one request. No replica has more time than `within` to say what it has.
    ///
    /// # Errors
    /// [`Error::Shard`] if none answers, [`Error::Setting`] for replicas that are none of each other,
    /// [`Error::Cancelled`].
    pub(crate) fn open(self: &Arc<Self>, within: Option<Duration>, cancel: &Cancel) -> Result<Replicated> {
        let Some(known) = lock(&self.known).clone() else { return self.first_sight(within, cancel) };
        let mut has_other = false;
        for _ in &self.carriers {
            let answer = self.race(GENERATION).run(|at, overtaken| {
                let stop = || cancel.is_cancelled() || overtaken.is_cancelled();
                generation(&*self.carriers[at], within, &stop).map(|generation| (at, generation))
            });
            let (at, generation) = match answer {
                Ok(answer) => answer?,
                Err(_) if has_other => break,
                Err(failures) => return Err(self.unanswered(failures)),
            };
            if generation == known.generation() {
                return Ok(Replicated { replicas: Arc::clone(self), known });
            }
            // Out of the race: to say what is new takes longer than that nothing is, and would be overtaken each time.
            let other = self.look(at, within, &|| cancel.is_cancelled());
            match other.and_then(|other| self.newer(at, &known, &other).map(|()| other)) {
                Ok(newer) => return Ok(self.at(newer)),
                Err(error @ (Error::Shard { .. } | Error::ShardChanged { .. })) => {
                    lock(&self.standing).failed(at, why(&error), Instant::now());
                    has_other = true;
                }
                Err(error) => return Err(error),
            }
        }
        // Nobody has the generation that was known: it was restored, or made anew.
        self.first_sight(within, cancel)
    }

    /// Asks all replicas what they have, and takes the newest.
    fn first_sight(self: &Arc<Self>, within: Option<Duration>, cancel: &Cancel) -> Result<Replicated> {
        let (late, (tell, told)) = (Cancel::new(), channel());
        let stop = || cancel.is_cancelled() || late.is_cancelled();
        let looks: Vec<Result<Remote>> = std::thread::scope(|scope| {
            let look = |at: usize| {
                let (tell, stop) = (tell.clone(), &stop);
                scope.spawn(move || {
                    // Its generation first: whatever else stands there is not listened to for long.
                    let looked = generation(&*self.carriers[at], within, stop);
                    let looked = looked.and_then(|_| self.look(at, within, stop));
                    let _ = tell.send(looked.is_ok());
                    looked
                })
            };
            let looks: Vec<_> = (0..self.carriers.len()).map(look).collect();
            drop(tell);
            let mut since = None;
            for _ in 0..looks.len() {
                let left = since.map(|since: Instant| FIRST_SIGHT.saturating_sub(since.elapsed()));
                match left.map_or_else(|| told.recv().ok(), |left| told.recv_timeout(left).ok()) {
                    Some(true) => since = since.or_else(|| Some(Instant::now())),
                    Some(false) => {}
                    None => break,
                }
            }
            late.cancel();
            let looked = looks.into_iter().map(|look| look.join());
            looked.map(|look| look.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        cancel.check()?;
        let (mut there, mut failures) = (Vec::new(), Failures::new());
        for (at, look) in looks.into_iter().enumerate() {
            match look {
                Ok(remote) => there.push((at, remote)),
                Err(Error::Cancelled) => {
                    let reason = format!("no answer within {} s of another replica's", FIRST_SIGHT.as_secs());
                    failures.push((at, Error::Shard { shard: self.carriers[at].name().to_owned(), reason }));
                }
                Err(error @ (Error::Shard { .. } | Error::ShardChanged { .. })) => failures.push((at, error)),
                Err(error) => return Err(error),
            }
        }
        let number = |remote: &Remote| remote.describe().manifest.generation;
        let newest = there.iter().rev().max_by_key(|(_, remote)| number(remote));
        let Some((first, newest)) = newest.map(|(at, newest)| (*at, newest.clone())) else {
            return Err(self.unanswered(failures));
        };
        for (at, other) in there.iter().filter(|(at, _)| *at != first) {
            let (place, of) = (self.carriers[*at].name(), self.carriers[first].name());
            let refused = |reason| Error::Setting { setting: "shards", value: place.to_owned(), reason };
            let (config, known) = (&other.describe().manifest.config, &newest.describe().manifest.config);
            if let Some((setting, known, given)) = known.difference(config) {
                let reason = format!("is no replica of {of}: {setting} is {given} here and {known} there");
                return Err(refused(reason));
            }
            if number(other) == number(&newest) && !is_same(other, &newest) {
                let generation = number(other);
                let reason =
                    format!("is no replica of {of}: generation {generation} is not the same in both; copy one");
                return Err(refused(reason));
            }
            if number(other) < number(&newest) {
                failures.push((*at, self.behind(*at, &newest, other)));
            }
        }
        let now = Instant::now();
        failures.iter().for_each(|(at, error)| lock(&self.standing).failed(*at, why(error), now));
        Ok(self.at(newest))
    }

    /// The collection that a replica has now.
    fn look(&self, at: usize, within: Option<Duration>, stop: &(dyn Fn() -> bool + Sync)) -> Result<Remote> {
        Remote::open(Arc::clone(&self.carriers[at]), within, stop)
    }

    /// An error unless what a replica has is newer than what is known, of the same collection.
    fn newer(&self, at: usize, known: &Remote, other: &Remote) -> Result<()> {
        let (was, now) = (&known.describe().manifest, &other.describe().manifest);
        let reason = match was.config.difference(&now.config) {
            Some((setting, known, given)) => format!("{setting} is {given} here and {known} in the other replicas"),
            None if now.generation > was.generation => return Ok(()),
            None if now.generation < was.generation => return Err(self.behind(at, known, other)),
            None => format!("its generation {} is another than that of the other replicas", now.generation),
        };
        Err(Error::Shard { shard: self.carriers[at].name().to_owned(), reason })
    }

    fn behind(&self, at: usize, known: &Remote, other: &Remote) -> Error {
        let [known, own] = [known, other].map(|remote| remote.describe().manifest.generation);
        let reason = format!("it has generation {own}, and another replica {known}");
        Error::Shard { shard: self.carriers[at].name().to_owned(), reason }
    }

    /// The shard at a generation, which is asked for from now on.
    fn at(self: &Arc<Self>, known: Remote) -> Replicated {
        *lock(&self.known) = Some(known.clone());
        Replicated { replicas: Arc::clone(self), known }
    }

    fn race(&self, kind: &'static str) -> Race<'_> {
        Race { standing: &self.standing, kind, is_fault: &|_: &Error| true }
    }

    /// The error of a call that no replica answered.
    fn unanswered(&self, mut failures: Failures) -> Error {
        if let [_] = self.carriers[..]
            && let Some((_, error)) = failures.pop()
        {
            return error;
        }
        if failures.iter().any(|(_, error)| matches!(error, Error::ShardChanged { .. })) {
            return Error::ShardChanged { shard: self.name.clone() };
        }
        failures.sort_by_key(|(at, _)| *at);
        let each = failures.iter().map(|(at, error)| format!("{}: {}", self.carriers[*at].name(), why(error)));
        let reason = format!("none of its replicas answers ({})", each.collect::<Vec<_>>().join("; "));
        Error::Shard { shard: self.name.clone(), reason }
    }

    /// Each replica as it is known.
    pub(crate) fn status(&self) -> ShardStatus {
        let standing = lock(&self.standing);
        let replica = |(carrier, replica): (&Arc<dyn Carrier>, &standing::Replica)| ReplicaStatus {
            address: carrier.name().to_owned(),
            down: replica.rest.as_ref().map(|(_, why)| why.clone()),
            n_answers: replica.n_answers,
            n_failures: replica.n_failures,
            n_overtaken: replica.n_overtaken,
        };
        ShardStatus {
            shard: self.name.clone(),
            generation: lock(&self.known).as_ref().map(|known| known.describe().manifest.generation),
            replicas: self.carriers.iter().zip(standing.replicas()).map(replica).collect(),
            n_hedged: standing.n_hedged,
            n_hedges_won: standing.n_hedges_won,
        }
    }
}

/// True for two views of the same collection at the same generation.
fn is_same(one: &Remote, other: &Remote) -> bool {
    let counts = |remote: &Remote| {
        let Description { n_documents, n_rows, n_graph_rows, .. } = *remote.describe();
        (n_documents, n_rows, n_graph_rows)
    };
    one.generation() == other.generation() && counts(one) == counts(other)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Replicated {
    pub(crate) fn generation(&self) -> &str {
        self.known.generation()
    }

    /// The answer of the first replica that gives a right one.
    fn ask<T: Send>(&self, kind: &'static str, ask: impl Fn(&Remote) -> Result<T> + Sync) -> Result<T> {
        // Whoever began on an older generation than the newest asks for what a replica need not have any more.
        let is_fault = |error: &Error| match error {
            Error::ShardChanged { .. } => {
                lock(&self.replicas.known).as_ref().is_some_and(|known| known.generation() == self.generation())
            }
            _ => true,
        };
        let race = Race { is_fault: &is_fault, ..self.replicas.race(kind) };
        let answer = race.run(|at, stop| ask(&self.known.by(Arc::clone(&self.replicas.carriers[at]), stop)));
        answer.unwrap_or_else(|failures| Err(self.replicas.unanswered(failures)))
    }
}

impl Source for Replicated {
    fn describe(&self) -> &Description {
        self.known.describe()
    }

    fn is_far(&self) -> bool {
        true
    }

    fn until(&self, cancel: &Cancel) -> Option<Arc<dyn Source>> {
        Some(Arc::new(Self { replicas: Arc::clone(&self.replicas), known: self.known.within(cancel) }))
    }

    fn whose(&self, _: ChunkRef) -> String {
        self.replicas.name.clone()
    }

    fn schema(&self) -> Result<Schema> {
        self.ask("schema", |remote| remote.schema())
    }

    fn scope(&self, wanted: Wanted<'_>) -> Result<Scoped> {
        self.ask("scope", |remote| remote.scope(wanted))
    }

    fn statistics(&self, counted: Counted, terms: &[String], cancel: &Cancel) -> Result<Statistics> {
        self.ask("statistics", |remote| remote.statistics(counted, terms, cancel))
    }

    fn lexical(&self, queries: &LexicalQueries<'_>) -> Result<Vec<Matched>> {
        self.ask("lexical", |remote| remote.lexical(queries))
    }

    fn explain(
        &self,
        query: &str,
        chunks: &[ChunkRef],
        bm25: Bm25,
        statistics: Option<&Statistics>,
    ) -> Result<Vec<Explanation>> {
        self.ask("explain", |remote| remote.explain(query, chunks, bm25, statistics))
    }

    fn nearest(&self, queries: &DenseQueries<'_>) -> Result<Vec<Near>> {
        self.ask("nearest", |remote| remote.nearest(queries))
    }

    fn rescore(&self, rescored: &Rescored<'_>) -> Result<Ranking> {
        self.ask("rescore", |remote| remote.rescore(rescored))
    }

    fn chunks(&self, chunks: &[ChunkRef]) -> Result<Vec<Candidate>> {
        self.ask("chunks", |remote| remote.chunks(chunks))
    }

    fn around(&self, around: &[Around]) -> Result<Vec<ChunkKey>> {
        self.ask("around", |remote| remote.around(around))
    }

    fn vectors(&self, chunks: &[ChunkRef]) -> Result<Vec<Vec<f32>>> {
        self.ask("vectors", |remote| remote.vectors(chunks))
    }

    fn texts(&self, spans: &[(ChunkRef, Range<u64>)]) -> Result<Vec<String>> {
        self.ask("texts", |remote| remote.texts(spans))
    }

    fn openings(&self, chunks: &[ChunkRef], bytes_max: u64) -> Result<Vec<String>> {
        self.ask("openings", |remote| remote.openings(chunks, bytes_max))
    }

    fn titles(&self, chunks: &[ChunkRef]) -> Result<Vec<String>> {
        self.ask("titles", |remote| remote.titles(chunks))
    }

    fn named(&self, texts: &[String]) -> Result<Vec<Vec<Mention>>> {
        self.ask("named", |remote| remote.named(texts))
    }

    fn linking(&self, documents: &[String]) -> Result<Vec<Option<Linking>>> {
        self.ask("linking", |remote| remote.linking(documents))
    }

    fn linkers(&self) -> Result<Linkers> {
        self.ask("linkers", |remote| remote.linkers())
    }

    fn called(&self, names: &[Name]) -> Result<Vec<Vec<Holder>>> {
        self.ask("called", |remote| remote.called(names))
    }

    fn outline(&self, document: &str) -> Result<Option<Vec<Heading>>> {
        self.ask("outline", |remote| remote.outline(document))
    }

    fn find(&self, documents: &[(String, Option<u32>)]) -> Result<Vec<Option<Named>>> {
        self.ask("find", |remote| remote.find(documents))
    }

    fn excerpt(&self, document: &str, part: &Part) -> Result<Option<Excerpt>> {
        self.ask("excerpt", |remote| remote.excerpt(document, part))
    }

    fn sections(&self, document: &str) -> Result<Option<Vec<DocumentSection>>> {
        self.ask("sections", |remote| remote.sections(document))
    }

    fn located(&self, sought: &Sought<'_>) -> Result<Vec<LocatedDocument>> {
        self.ask("located", |remote| remote.located(sought))
    }

    fn nearest_id(&self, id: &str) -> Result<Option<(usize, String)>> {
        self.ask("nearest id", |remote| remote.nearest_id(id))
    }

    fn documents(&self, pick: &Pick<'_>) -> Result<Vec<ListedDocument>> {
        self.ask("documents", |remote| remote.documents(pick))
    }

    fn at(&self, positions: &[u64]) -> Result<Vec<ChunkRef>> {
        self.ask("at", |remote| remote.at(positions))
    }

    fn labels(&self) -> Result<Vec<Labelled>> {
        self.ask("labels", |remote| remote.labels())
    }
}
