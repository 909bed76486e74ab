//! A source on another machine: each call is one exchange with a server of Cento, which answers from its collection.
//!
//! What comes back is checked as a stranger's: as many answers as were asked for, chunks that are there, finite scores,
//! texts as long as their spans. The generation stands still while it is open: a shard whose collection has changed
//! refuses, and is opened anew by the next request.
//!
//! Cost: an exchange a call. A search is two rounds, a context as many as its strategy reads.

mod wire;
pub(crate) mod served;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use cento_assembly::Candidate;
use cento_collection::format::config::SEGMENT_ROWS_MAX;
use cento_collection::format::manifest::FORMAT;
use cento_lexical::{Bm25, Explanation, Statistics};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::wire::{Answer, Call, Fault, PickWords, Question, SoughtWords, WIRE, WantedWords};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::line::{Line, NoAnswer, StatusCode, excerpt};
use crate::source::documents::{DocumentSection, Excerpt, ListedDocument, LocatedDocument, Part, Sought};
use crate::source::filter::Schema;
use crate::source::links::names::Name;
use crate::source::links::{Heading, Linkers, Linking};
use crate::source::ranking::Ranking;
use crate::source::refs::{Around, ChunkKey, ChunkRef, Chunks, Named};
use crate::source::scope::{Scoped, Wanted};
use crate::source::seam::{Counted, DenseQueries, Description, Labelled, LexicalQueries, Near, Rescored, Source};
use crate::source::selected::Pick;
use crate::source::titles::{Holder, Mention};

/// Bytes of an answer, at most.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Segments of a shard, at most.
const SEGMENTS_MAX: usize = 1 << 16;

/// A larger number of commits, documents or terms is none.
const COUNT_MAX: u64 = 1 << 48;

/// The code of a refusal that says that the collection has another generation now.
const OTHER_GENERATION: &str = "other_generation";

/// A way to a server that answers for a shard.
pub(crate) trait Carrier: Debug + Send + Sync {
    /// The shard as errors name it.
    fn name(&self) -> &str;

    /// The body that answers a call, or why there is none.
    fn carry(&self, call: &[u8], stop: &(dyn Fn() -> bool + Sync)) -> Result<String, Uncarried>;
}

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) enum Uncarried {
    /// It is not wanted any more.
    Stopped,
    /// The shard has another generation than the one that was asked.
    Changed,
    /// Anything else, in words.
    Failed(String),
}

/// A server behind a line.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) line: Line,
}

impl Carrier for Server {
    fn name(&self) -> &str {
        &self.name
    }

    fn carry(&self, call: &[u8], stop: &(dyn Fn() -> bool + Sync)) -> Result<String, Uncarried> {
        let answer = self.line.ask(call, ANSWER_BYTES_MAX, stop).map_err(|error| match error {
            NoAnswer::Stopped => Uncarried::Stopped,
            NoAnswer::Lost(reason) | NoAnswer::Refused(reason) => Uncarried::Failed(reason),
        })?;
        if answer.status.is_success() {
            return Ok(answer.body);
        }
        let refusal: serde_json::Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let said = |key: &str| refusal.pointer(&format!("/error/{key}")).and_then(|value| value.as_str());
        match (answer.status, said("code")) {
            (StatusCode::CONFLICT, Some(OTHER_GENERATION)) => Err(Uncarried::Changed),
            (status, _) => {
                let words = said("message").map_or_else(|| excerpt(&answer.body), |message| excerpt(message));
                Err(Uncarried::Failed(format!("answered {status}: {words}")))
            }
        }
    }
}

/// A collection that a server answers for, at one generation.
#[derive(Debug)]
pub(crate) struct Remote {
    carrier: Arc<dyn Carrier>,
    description: Description,
    /// The checksum of the manifest that the server has.
    generation: String,
    /// Rows of each segment.
    segments: Vec<u32>,
}

/// The generation that a shard has now: the checksum of its manifest.
pub(crate) fn generation(carrier: &dyn Carrier, cancel: &Cancel) -> Result<String> {
    Ok(exchange::<()>(carrier, None, Call::Generation, cancel)?.generation)
}

fn exchange<T: DeserializeOwned>(
    carrier: &dyn Carrier,
    generation: Option<&str>,
    call: Call,
    cancel: &Cancel,
) -> Result<Answer<T>> {
    let failed = |reason: String| Error::Shard { shard: carrier.name().to_owned(), reason };
    let question = Question {
        wire: WIRE,
        cento: env!("CARGO_PKG_VERSION").to_owned(),
        generation: generation.map(str::to_owned),
        call,
    };
    let body = serde_json::to_vec(&question).map_err(|error| failed(error.to_string()))?;
    let carried = carrier.carry(&body, &|| cancel.is_cancelled());
    let answer = carried.map_err(|error| match error {
        Uncarried::Stopped => Error::Cancelled,
        Uncarried::Changed => Error::ShardChanged { shard: carrier.name().to_owned() },
        Uncarried::Failed(reason) => failed(reason),
    })?;
    let answer: Answer<T> =
        serde_json::from_str(&answer).map_err(|error| failed(format!("its answer cannot be read: {error}")))?;
    if answer.wire != WIRE {
        return Err(failed(format!("speaks version {} of the words of shards, this cento {WIRE}", answer.wire)));
    }
    match generation {
        Some(generation) if generation != answer.generation => {
            Err(Error::ShardChanged { shard: carrier.name().to_owned() })
        }
        Some(_) | None => Ok(answer),
    }
}

impl Remote {
    /// Opens the generation that the server has now.
    pub(crate) fn open(carrier: Arc<dyn Carrier>, cancel: &Cancel) -> Result<Self> {
        let answer: Answer<wire::DescriptionWords> = exchange(&*carrier, None, Call::Describe, cancel)?;
        let wire::DescriptionWords { manifest, n_documents, n_rows, n_graph_rows, is_pinned } = answer.answer;
        let description = Description { manifest, n_documents, n_rows, n_graph_rows, is_pinned };
        match segments(&description) {
            Ok(segments) => Ok(Self { carrier, description, generation: answer.generation, segments }),
            Err(reason) => Err(Error::Shard { shard: carrier.name().to_owned(), reason }),
        }
    }

    pub(crate) fn generation(&self) -> &str {
        &self.generation
    }

    fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T> {
        self.ask_unless(call, &Cancel::default())
    }

    fn ask_unless<T: DeserializeOwned>(&self, call: Call, cancel: &Cancel) -> Result<T> {
        Ok(exchange(&*self.carrier, Some(&self.generation), call, cancel)?.answer)
    }

    /// The value of an answer that was checked.
    fn checked<T>(&self, answer: Result<T, Fault>) -> Result<T> {
        let reason = |fault| format!("its answer cannot be: {fault}");
        answer.map_err(|fault| Error::Shard { shard: self.carrier.name().to_owned(), reason: reason(fault) })
    }

    /// An error unless there are as many answers as questions.
    fn counted<T>(&self, answers: Vec<T>, n: usize) -> Result<Vec<T>> {
        let n_answers = answers.len();
        self.checked(if n_answers == n { Ok(answers) } else { Err(format!("{n_answers} answers for {n}")) })
    }

    /// Answers to as many questions, each made of its words.
    fn each<W, T>(&self, words: Vec<W>, n: usize, of: impl Fn(W) -> Result<T, Fault>) -> Result<Vec<T>> {
        let words = self.counted(words, n)?;
        self.checked(words.into_iter().map(of).collect())
    }

    fn check_chunks(&self, chunks: impl IntoIterator<Item = ChunkRef>) -> Result<()> {
        self.checked(wire::check_chunks(chunks, &self.segments))
    }

    fn check_range(&self, chunks: &Chunks) -> Result<()> {
        let (_, segment, rows) = chunks.place();
        let n_rows = self.segments.get(segment).copied();
        let is_there = n_rows.is_some_and(|n_rows| rows.start <= rows.end && rows.end <= n_rows);
        self.checked(if is_there { Ok(()) } else { Err(format!("rows {rows:?} of segment {segment}")) })
    }

    fn check_span(&self, [start, end]: [u64; 2]) -> Result<()> {
        self.checked(if start <= end { Ok(()) } else { Err(format!("bytes from {start} to {end}")) })
    }
}

/// The rows of each segment, if the figures of a description can be.
fn segments(description: &Description) -> Result<Vec<u32>, Fault> {
    let Description { manifest, n_documents, n_rows, n_graph_rows, .. } = description;
    if manifest.format != FORMAT {
        return Err(format!("its collection has format {}, and this cento reads {FORMAT}", manifest.format));
    }
    let fits = |n_rows: u64| u32::try_from(n_rows).ok().filter(|n_rows| *n_rows as usize <= SEGMENT_ROWS_MAX);
    let segments: Option<Vec<u32>> = manifest.segments.iter().map(|entry| fits(entry.n_rows)).collect();
    let segments = segments.filter(|segments| segments.len() <= SEGMENTS_MAX);
    let segments = segments.ok_or("it has more segments, or larger ones, than a collection can have")?;
    let most: u64 = segments.iter().map(|n_rows| u64::from(*n_rows)).sum();
    let are_counts = *n_rows <= most && n_graph_rows <= n_rows && *n_documents <= COUNT_MAX;
    match are_counts && manifest.generation <= COUNT_MAX {
        true => Ok(segments),
        false => Err(format!("it has {n_rows} rows of {most} and {n_documents} documents")),
    }
}

fn wanted_words(wanted: Wanted<'_>) -> WantedWords {
    match wanted {
        Wanted::All => WantedWords::All,
        Wanted::Documents(ids) => WantedWords::Documents(ids.to_vec()),
        Wanted::Filter(filter) => WantedWords::Filter(filter.as_str().to_owned()),
        Wanted::Phrases(phrases) => WantedWords::Phrases(phrases.phrases.to_vec(), phrases.unit),
    }
}

fn sought_words(sought: &Sought<'_>) -> SoughtWords {
    match *sought {
        Sought::Id(id) => SoughtWords::Id(id.to_owned()),
        Sought::Records(records) => {
            let mut records: Vec<String> = records.iter().map(|id| (*id).to_owned()).collect();
            records.sort_unstable();
            SoughtWords::Records(records)
        }
        Sought::File { names, end } => SoughtWords::File { names: names.to_vec(), end: end.map(str::to_owned) },
    }
}

fn pick_words(pick: &Pick<'_>) -> PickWords {
    match *pick {
        Pick::All => PickWords::All,
        Pick::Documents(ids) => PickWords::Documents(ids.to_vec()),
        Pick::Under(folder) => PickWords::Under(folder.to_owned()),
        Pick::Matching(glob) => PickWords::Matching(glob.glob().glob().to_owned()),
        Pick::Filter(filter) => PickWords::Filter(filter.as_str().to_owned()),
    }
}

impl Source for Remote {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn is_far(&self) -> bool {
        true
    }

    fn schema(&self) -> Result<Schema> {
        self.ask(Call::Schema)
    }

    fn scope(&self, wanted: Wanted<'_>) -> Result<Scoped> {
        let cancel = match wanted {
            Wanted::Phrases(phrases) => phrases.cancel,
            Wanted::All | Wanted::Documents(_) | Wanted::Filter(_) => &Cancel::default(),
        };
        let words: wire::ScopedWords = self.ask_unless(Call::Scope(wanted_words(wanted)), cancel)?;
        let scope = self.checked(wire::scope(&words.scope, &self.segments))?;
        let wire::ScopedWords { n_documents, unknown, .. } = words;
        let most = self.description.n_documents;
        match n_documents <= most {
            true => Ok(Scoped { scope, n_documents, unknown }),
            false => self.checked(Err(format!("a scope of {n_documents} documents of {most}"))),
        }
    }

    fn statistics(&self, counted: Counted, terms: &[String], cancel: &Cancel) -> Result<Statistics> {
        let call = Call::Statistics { counted, terms: terms.to_vec() };
        let statistics: Statistics = self.ask_unless(call, cancel)?;
        let totals = statistics.totals;
        let mut counts = [totals.n, totals.text, totals.beside].into_iter().chain(statistics.df.values().copied());
        let are_counts = counts.all(|count| count <= COUNT_MAX);
        let is_of_terms =
            statistics.df.len() <= terms.len() && terms.iter().all(|term| statistics.df.contains_key(term));
        match are_counts && is_of_terms {
            true => Ok(statistics),
            false => self.checked(Err("statistics of other terms, or of more than there is".to_owned())),
        }
    }

    fn lexical(&self, queries: &LexicalQueries<'_>) -> Result<Vec<Ranking>> {
        let call = Call::Lexical(wire::LexicalWords {
            texts: queries.texts.to_vec(),
            scopes: wire::scopes_words(queries.scopes),
            unit: queries.unit,
            score: queries.score,
            bm25: wire::bm25_words(queries.bm25),
            depth: queries.depth,
            statistics: queries.statistics.cloned(),
        });
        let words: Vec<wire::RankingWords> = self.ask_unless(call, queries.cancel)?;
        self.each(words, queries.texts.len(), |words| wire::ranking(words, &self.segments))
    }

    fn explain(
        &self,
        query: &str,
        chunks: &[ChunkRef],
        bm25: Bm25,
        statistics: Option<&Statistics>,
    ) -> Result<Vec<Explanation>> {
        let (query, bm25, statistics) = (query.to_owned(), wire::bm25_words(bm25), statistics.cloned());
        let words = self.ask(Call::Explain { query, chunks: chunks.to_vec(), bm25, statistics })?;
        self.each(words, chunks.len(), wire::explanation)
    }

    fn nearest(&self, queries: &DenseQueries<'_>) -> Result<Vec<Near>> {
        let call = Call::Nearest(wire::NearestWords {
            vectors: wire::vector_words(queries.vectors),
            scopes: wire::scopes_words(queries.scopes),
            unit: queries.unit,
            column: queries.column,
            depth: queries.depth,
            scan: queries.scan,
            ef: queries.ef,
        });
        let words: Vec<wire::NearWords> = self.ask_unless(call, queries.cancel)?;
        let n_queries = queries.vectors.len() / self.description.manifest.config.query_dimensions().max(1);
        self.each(words, n_queries, |words| wire::near(words, &self.segments))
    }

    fn rescore(&self, rescored: &Rescored<'_>) -> Result<Ranking> {
        let found = rescored.found.iter().map(|(chunk, score)| (*chunk, score.to_bits())).collect();
        let Rescored { vector, column, depth, cancel, .. } = *rescored;
        let call = Call::Rescore { vector: wire::vector_words(vector), found, column, depth };
        let words = self.ask_unless(call, cancel)?;
        self.checked(wire::ranking(words, &self.segments))
    }

    fn chunks(&self, chunks: &[ChunkRef]) -> Result<Vec<Candidate>> {
        let words = self.ask(Call::Chunks(chunks.to_vec()))?;
        self.each(words, chunks.len(), wire::candidate)
    }

    fn around(&self, around: &[Around]) -> Result<Vec<ChunkKey>> {
        let keys: Vec<ChunkKey> = self.ask(Call::Around(around.to_vec()))?;
        self.check_chunks(keys.iter().map(|key| key.chunk))?;
        Ok(keys)
    }

    fn vectors(&self, chunks: &[ChunkRef]) -> Result<Vec<Vec<f32>>> {
        let words: Vec<String> = self.ask(Call::Vectors(chunks.to_vec()))?;
        let dimensions = self.description.manifest.config.query_dimensions();
        self.each(words, chunks.len(), |words| {
            let vector = wire::vectors(&words, dimensions)?;
            if vector.len() == dimensions { Ok(vector) } else { Err("several vectors for one".to_owned()) }
        })
    }

    fn texts(&self, spans: &[(ChunkRef, Range<u64>)]) -> Result<Vec<String>> {
        let texts = self.counted(self.ask(Call::Texts(spans.to_vec()))?, spans.len())?;
        let fits = |(text, (_, span)): (&String, &(ChunkRef, Range<u64>))| {
            span.end.checked_sub(span.start) == Some(text.len() as u64)
        };
        match texts.iter().zip(spans).all(fits) {
            true => Ok(texts),
            false => self.checked(Err("a text of another length than its span".to_owned())),
        }
    }

    fn openings(&self, chunks: &[ChunkRef], bytes_max: u64) -> Result<Vec<String>> {
        self.counted(self.ask(Call::Openings(chunks.to_vec(), bytes_max))?, chunks.len())
    }

    fn titles(&self, chunks: &[ChunkRef]) -> Result<Vec<String>> {
        self.counted(self.ask(Call::Titles(chunks.to_vec()))?, chunks.len())
    }

    fn named(&self, texts: &[String]) -> Result<Vec<Vec<Mention>>> {
        let mentions: Vec<Vec<Mention>> = self.counted(self.ask(Call::Named(texts.to_vec()))?, texts.len())?;
        for (text, mentions) in texts.iter().zip(&mentions) {
            for Mention { span, holders, .. } in mentions {
                let is_there = text.get(span.clone()).is_some();
                self.checked(if is_there { Ok(()) } else { Err(format!("a title in bytes {span:?}")) })?;
                self.check_chunks(holders.iter().map(|holder| holder.chunk))?;
            }
        }
        Ok(mentions)
    }

    fn linking(&self, documents: &[String]) -> Result<Vec<Option<Linking>>> {
        let linking: Vec<Option<Linking>> =
            self.counted(self.ask(Call::Linking(documents.to_vec()))?, documents.len())?;
        for link in linking.iter().flatten().flat_map(|linking| linking.links.iter().flatten()) {
            self.check_span([link.start as u64, link.end as u64])?;
        }
        Ok(linking)
    }

    fn linkers(&self) -> Result<Linkers> {
        let linkers: Linkers = self.ask(Call::Linkers)?;
        let is_count = linkers.n_unknown <= self.description.n_documents;
        self.checked(if is_count { Ok(linkers) } else { Err("more documents than it has".to_owned()) })
    }

    fn called(&self, names: &[Name]) -> Result<Vec<Vec<Holder>>> {
        let holders: Vec<Vec<Holder>> = self.counted(self.ask(Call::Called(names.to_vec()))?, names.len())?;
        self.check_chunks(holders.iter().flatten().map(|holder| holder.chunk))?;
        Ok(holders)
    }

    fn outline(&self, document: &str) -> Result<Option<Vec<Heading>>> {
        let outline: Option<Vec<Heading>> = self.ask(Call::Outline(document.to_owned()))?;
        outline.iter().flatten().try_for_each(|heading| self.check_span(heading.span))?;
        Ok(outline)
    }

    fn find(&self, document: &str, number: Option<u32>) -> Result<Option<Named>> {
        let named: Option<Named> = self.ask(Call::Find(document.to_owned(), number))?;
        if let Some(Named { chunks, chunk }) = &named {
            self.check_range(chunks)?;
            self.check_chunks(*chunk)?;
        }
        Ok(named)
    }

    fn excerpt(&self, document: &str, part: &Part) -> Result<Option<Excerpt>> {
        let answer: Result<Option<wire::ExcerptWords>, wire::Absent> =
            self.ask(Call::Excerpt(document.to_owned(), part.clone()))?;
        match answer {
            Ok(words) => self.checked(words.map(wire::excerpt).transpose()),
            Err(wire::Absent { what, has }) => Err(Error::OutOfRange { id: document.to_owned(), what, has }),
        }
    }

    fn sections(&self, document: &str) -> Result<Option<Vec<DocumentSection>>> {
        let sections: Option<Vec<DocumentSection>> = self.ask(Call::Sections(document.to_owned()))?;
        for (at, section) in sections.iter().flatten().enumerate() {
            self.check_span(section.span)?;
            let is_before = section.parent.is_none_or(|parent| (parent as usize) < at);
            self.checked(if is_before { Ok(()) } else { Err(format!("section {at} before the one around it")) })?;
        }
        Ok(sections)
    }

    fn located(&self, sought: &Sought<'_>) -> Result<Vec<LocatedDocument>> {
        self.ask(Call::Located(sought_words(sought)))
    }

    fn nearest_id(&self, id: &str) -> Result<Option<(usize, String)>> {
        self.ask(Call::NearestId(id.to_owned()))
    }

    fn documents(&self, pick: &Pick<'_>) -> Result<Vec<ListedDocument>> {
        let words: Vec<wire::ListedWords> = self.ask(Call::Documents(pick_words(pick)))?;
        self.checked(words.into_iter().map(wire::listed).collect())
    }

    fn at(&self, positions: &[u64]) -> Result<Vec<ChunkRef>> {
        let chunks: Vec<ChunkRef> = self.ask(Call::At(positions.to_vec()))?;
        self.check_chunks(chunks.iter().copied())?;
        self.counted(chunks, positions.len())
    }

    fn labels(&self) -> Result<Vec<Labelled>> {
        let labels: Vec<Labelled> = self.ask(Call::Labels)?;
        for Labelled { document, chunks, .. } in &labels {
            self.check_range(document)?;
            self.check_range(chunks)?;
        }
        Ok(labels)
    }
}

/// An answer as a body has it.
fn body<T: Serialize>(generation: &str, answer: &T) -> Result<Vec<u8>> {
    let answer = Answer { wire: WIRE, generation: generation.to_owned(), answer };
    serde_json::to_vec(&answer).map_err(|error| Error::Request { field: "call".to_owned(), reason: error.to_string() })
}
