//! The other end: a call from somewhere else, answered from a source of this machine. Calls are a stranger's: chunks
//! that are not there, scopes of other segments, numbers that are none are refused.

use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::Range;

use cento_collection::format::config::VectorColumn;
use cento_lexical::{Statistics, Unit};
use globset::{GlobBuilder, GlobMatcher};
use serde::Serialize;

use super::QUERIES_MAX;
use super::carrier::ANSWER_BYTES_MAX;
use super::wire::{self, Answer, CENTO, COUNT_MAX, Call, DescriptionWords, Fault, LexicalWords, NearestWords};
use super::wire::{NearWords, PickWords, Question, RankingWords, ScopeWords, ScopedWords, SoughtWords, Version};
use super::wire::{WIRE, WantedWords};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::limits::{self, EF_MAX, QUERY_BYTES_MAX, TEXT_BYTES_MAX};
use crate::source::documents::Sought;
use crate::source::filter::Filter;
use crate::source::ranking::{Ranking, name};
use crate::source::refs::{Around, ChunkKey, ChunkRef};
use crate::source::scope::{Phrases, Scoped, Scopes, Wanted};
use crate::source::seam::{DenseQueries, Description, Given, LexicalQueries, Near, Rescored, Source};
use crate::source::selected::Pick;

/// Bytes behind which the answers to many items end; whoever asked goes on with the next one.
const PART_BYTES: usize = 16 << 20;

/// Items that are answered together at first, and at most: twice as many each time.
const TOGETHER: [usize; 2] = [16, 256];

/// Names of a file that documents are sought by, at most.
const NAMES_MAX: usize = 1_000;

/// The answer of a source to a call. `shown` is the description that may be told.
///
/// # Errors
/// [`Error::Request`] for what is no call of this version, [`Error::OtherGeneration`], [`Error::AnswerTooLarge`], those
/// of the source.
pub(crate) fn answer(source: &dyn Source, shown: Description, call: &[u8], cancel: &Cancel) -> Result<Vec<u8>> {
    let request = |reason: String| Error::Request { field: "call".to_owned(), reason };
    let version: Version = serde_json::from_slice(call).map_err(|error| request(error.to_string()))?;
    version.check().map_err(request)?;
    let question: Question = serde_json::from_slice(call).map_err(|error| request(error.to_string()))?;
    let generation = source.describe().manifest.checksum();
    if question.generation.as_ref().is_some_and(|asked| *asked != generation) {
        return Err(Error::OtherGeneration { now: source.describe().manifest.generation });
    }
    let shard = Shard { source, generation: &generation, segments: segments(source), cancel };
    match question.call {
        Call::Describe => {
            let Description { manifest, n_documents, n_rows, n_graph_rows, is_pinned } = shown;
            shard.body(&DescriptionWords { manifest, n_documents, n_rows, n_graph_rows, is_pinned })
        }
        call => shard.answer(call),
    }
}

/// A source at one generation, while it answers a call.
struct Shard<'a> {
    source: &'a dyn Source,
    generation: &'a str,
    /// Rows of each segment.
    segments: Vec<u32>,
    cancel: &'a Cancel,
}

impl Shard<'_> {
    fn answer(&self, call: Call) -> Result<Vec<u8>> {
        let source = self.source;
        match call {
            Call::Generation | Call::Describe => self.body(&()),
            Call::Schema => self.body(&source.schema()?),
            Call::Scope(wanted) => self.scope(wanted),
            Call::Statistics { counted, terms } => {
                self.few(terms.len(), super::ITEMS_MAX)?;
                self.body(&source.statistics(counted, &terms, self.cancel)?)
            }
            Call::Lexical(asked) => self.lexical(&asked),
            Call::Explain { query, chunks, bm25, statistics } => {
                self.check(&chunks)?;
                limits::text("query", &query, QUERY_BYTES_MAX)?;
                statistics.as_ref().map_or(Ok(()), check_statistics).map_err(refused)?;
                let bm25 = wire::bm25(bm25).map_err(refused)?;
                let explain = |chunks: &[ChunkRef]| source.explain(&query, chunks, bm25, statistics.as_ref());
                self.first(&chunks, |_| 0, explain, wire::explanation_words)
            }
            Call::Nearest(asked) => self.nearest(&asked),
            Call::Rescore { vector, found, scope, column, depth } => {
                self.rescored(&vector, found, scope.as_ref(), (column, depth))
            }
            Call::Chunks(chunks) => {
                self.first(self.check(&chunks)?, |_| 0, |chunks| source.chunks(chunks), wire::candidate_words)
            }
            Call::Around(around) => self.around(&around),
            Call::Vectors(chunks) => {
                let words = |vector: Vec<f32>| wire::vector_words(&vector);
                self.first(self.check(&chunks)?, |_| 0, |chunks| source.vectors(chunks), words)
            }
            Call::Texts(spans) => self.texts(&spans),
            Call::Openings(chunks, bytes_max) => {
                let openings = |chunks: &[ChunkRef]| source.openings(chunks, bytes_max);
                self.first(self.check(&chunks)?, |_| bytes_max, openings, |text| text)
            }
            Call::Titles(chunks) => {
                self.first(self.check(&chunks)?, |_| 0, |chunks| source.titles(chunks), |title| title)
            }
            Call::Named(texts) => self.first(&texts, |_| 0, |texts| source.named(texts), |mentions| mentions),
            Call::Linking(documents) => {
                self.first(&documents, |_| 0, |documents| source.linking(documents), |linking| linking)
            }
            Call::Linkers => self.body(&source.linkers()?),
            Call::Called(names) => self.first(&names, |_| 0, |names| source.called(names), |holders| holders),
            Call::Outline(document) => self.body(&source.outline(&document)?),
            Call::Find(documents) => self.first(&documents, |_| 0, |documents| source.find(documents), |named| named),
            Call::Excerpt(document, part) => match source.excerpt(&document, &part) {
                Err(Error::OutOfRange { what, has, .. }) => self.body(&Err::<(), _>(wire::Absent { what, has })),
                excerpt => self.body(&Ok::<_, wire::Absent>(excerpt?.map(wire::excerpt_words))),
            },
            Call::Sections(document) => self.body(&source.sections(&document)?),
            Call::Located(sought) => self.located(&sought),
            Call::NearestId(id) => {
                limits::text("id", &id, TEXT_BYTES_MAX)?;
                self.body(&source.nearest_id(&id)?)
            }
            Call::Documents(pick) => self.listed(&pick),
            Call::At(positions) => {
                self.few(positions.len(), super::ITEMS_MAX)?;
                match positions.is_sorted() {
                    true => self.body(&source.at(&positions)?),
                    false => Err(refused("positions in no order".into())),
                }
            }
            Call::Labels => self.body(&source.labels()?),
        }
    }

    /// An answer as a body has it.
    fn body<T: Serialize>(&self, answer: &T) -> Result<Vec<u8>> {
        self.cancel.check()?;
        let answer = Answer { wire: WIRE, cento: CENTO.to_owned(), generation: self.generation.to_owned(), answer };
        let mut body = Bounded::default();
        match serde_json::to_writer(&mut body, &answer) {
            Ok(()) => Ok(body.bytes),
            Err(_) => Err(Error::AnswerTooLarge { n_bytes: body.bytes.len(), n_bytes_max: ANSWER_BYTES_MAX }),
        }
    }

    fn words<T, W: Serialize>(&self, answers: Vec<T>, words: impl Fn(T) -> W) -> Result<Vec<u8>> {
        self.body(&answers.into_iter().map(words).collect::<Vec<W>>())
    }

    /// The answers to the first of many items that fit into one answer; to one at least. `size` is that of an answer,
    /// as far as the item tells.
    fn first<I, T, W: Serialize>(
        &self,
        items: &[I],
        size: impl Fn(&I) -> u64,
        of: impl Fn(&[I]) -> Result<Vec<T>>,
        words: impl Fn(T) -> W,
    ) -> Result<Vec<u8>> {
        let [mut together, most] = TOGETHER;
        let (mut all, mut n_bytes, mut rest) = (Vec::new(), 0, items);
        while n_bytes < PART_BYTES && !rest.is_empty() {
            self.cancel.check()?;
            let before = rest.iter().scan(0_u64, |sum, item| {
                let before = *sum;
                *sum = sum.saturating_add(size(item));
                Some(before)
            });
            let n = before.take(together).take_while(|before| *before < PART_BYTES as u64).count();
            let (some, later) = rest.split_at(n);
            for answer in of(some)? {
                if n_bytes < PART_BYTES {
                    let written = serde_json::to_string(&words(answer)).map_err(|error| refused(error.to_string()))?;
                    n_bytes += written.len();
                    all.push(written);
                }
            }
            (rest, together) = (later, most.min(2 * together));
        }
        // What is written stands where an answer of nothing has its `null`.
        let mut body = self.body(&())?;
        body.truncate(body.len() - "null}".len());
        body.push(b'[');
        body.extend_from_slice(all.join(",").as_bytes());
        body.extend_from_slice(b"]}");
        match body.len() <= ANSWER_BYTES_MAX {
            true => Ok(body),
            false => Err(Error::AnswerTooLarge { n_bytes: body.len(), n_bytes_max: ANSWER_BYTES_MAX }),
        }
    }

    fn texts(&self, spans: &[(ChunkRef, Range<u64>)]) -> Result<Vec<u8>> {
        let chunks: Vec<ChunkRef> = spans.iter().map(|(chunk, _)| *chunk).collect();
        self.check(&chunks)?;
        if let Some((_, span)) = spans.iter().find(|(_, span)| span.start > span.end) {
            return Err(refused(format!("the span {span:?}")));
        }
        let size = |(_, span): &(ChunkRef, Range<u64>)| span.end - span.start;
        self.first(spans, size, |spans| self.source.texts(spans), |text| text)
    }

    fn around(&self, around: &[Around]) -> Result<Vec<u8>> {
        self.few(around.len(), super::ITEMS_MAX)?;
        let mut keys: Vec<ChunkKey> = Vec::new();
        for some in around.chunks(TOGETHER[1]) {
            self.cancel.check()?;
            self.check(&some.iter().map(|around| around.chunk).collect::<Vec<_>>())?;
            keys.extend(self.source.around(some)?);
            keys.sort_unstable_by_key(|key| key.chunk);
            keys.dedup();
        }
        self.body(&keys)
    }

    fn few(&self, n: usize, most: usize) -> Result<()> {
        if n <= most { Ok(()) } else { Err(refused(format!("{n} items, where {most} are answered at once"))) }
    }

    /// The chunks, if they are there, and no more than are answered.
    fn check<'c>(&self, chunks: &'c [ChunkRef]) -> Result<&'c [ChunkRef]> {
        self.few(chunks.len(), super::ITEMS_MAX)?;
        wire::check_chunks(chunks.iter().copied(), &self.segments).map_err(refused)?;
        Ok(chunks)
    }

    /// As deep as a ranking of this shard can be.
    fn depth(&self, asked: usize) -> usize {
        let n_rows: u64 = self.segments.iter().map(|n_rows| u64::from(*n_rows)).sum();
        asked.min(usize::try_from(n_rows).unwrap_or(usize::MAX))
    }

    /// An error for vectors that the collection does not have.
    fn check_column(&self, column: VectorColumn) -> Result<()> {
        match self.source.describe().manifest.config.pooling.columns().contains(&column) {
            true => Ok(()),
            false => Err(refused(format!("{column} vectors, which the collection does not have"))),
        }
    }

    fn dimensions(&self) -> usize {
        self.source.describe().manifest.config.query_dimensions()
    }

    fn scope(&self, wanted: WantedWords) -> Result<Vec<u8>> {
        let filter;
        let wanted = match &wanted {
            WantedWords::All => Wanted::All,
            WantedWords::Documents(ids) => Wanted::Documents(ids),
            WantedWords::Filter(text) => {
                filter = Filter::parse(text)?;
                Wanted::Filter(&filter)
            }
            WantedWords::Phrases(phrases, unit) => {
                limits::text("phrases", &phrases.concat(), QUERY_BYTES_MAX)?;
                Wanted::Phrases(Phrases { phrases, unit: *unit, cancel: self.cancel })
            }
        };
        let Scoped { scope, n_documents, unknown } = self.source.scope(wanted)?;
        self.body(&ScopedWords { scope: wire::scope_words(&scope), n_documents, unknown })
    }

    fn lexical(&self, asked: &LexicalWords) -> Result<Vec<u8>> {
        let LexicalWords { texts, scopes, unit, score, bm25, depth, statistics } = asked;
        self.few(texts.len(), QUERIES_MAX)?;
        texts.iter().try_for_each(|text| limits::text("query", text, QUERY_BYTES_MAX))?;
        if let Some(Given { of_units, of_rows }) = statistics {
            let given = std::iter::once(of_units).chain(of_rows);
            given.into_iter().try_for_each(check_statistics).map_err(refused)?;
        }
        let (of_query, of_all) = wire::scopes(scopes, texts.len(), &self.segments).map_err(refused)?;
        let queries = LexicalQueries {
            texts,
            scopes: Scopes { of_query: &of_query, of_all: of_all.as_ref() },
            unit: *unit,
            score: *score,
            bm25: wire::bm25(*bm25).map_err(refused)?,
            depth: self.depth(*depth),
            statistics: statistics.as_ref(),
            cancel: self.cancel,
        };
        let matched = self.source.lexical(&queries)?.into_iter();
        self.body(&matched.map(|matched| self.named(*unit, matched.ranking)).collect::<Result<Vec<_>>>()?)
    }

    fn nearest(&self, asked: &NearestWords) -> Result<Vec<u8>> {
        let NearestWords { vectors, scopes, unit, column, depth, scan, ef } = asked;
        limits::within("ef", *ef, 0, EF_MAX)?;
        self.check_column(*column)?;
        let vectors = wire::vectors(vectors, self.dimensions()).map_err(refused)?;
        let n = vectors.len() / self.dimensions().max(1);
        self.few(n, QUERIES_MAX)?;
        let (of_query, of_all) = wire::scopes(scopes, n, &self.segments).map_err(refused)?;
        let queries = DenseQueries {
            vectors: &vectors,
            scopes: Scopes { of_query: &of_query, of_all: of_all.as_ref() },
            unit: *unit,
            column: *column,
            depth: self.depth(*depth),
            scan: *scan,
            ef: *ef,
            accelerator: None,
            cancel: self.cancel,
        };
        let words = |Near { ranking, n_exact, n_graph }| {
            Ok(NearWords { ranking: self.named(*unit, ranking)?, n_exact, n_graph })
        };
        self.body(&self.source.nearest(&queries)?.into_iter().map(words).collect::<Result<Vec<_>>>()?)
    }

    /// A ranking, whose ids decide between equal scores of several shards.
    fn named(&self, unit: Unit, mut ranking: Ranking) -> Result<RankingWords> {
        name(&mut ranking, |chunks| self.source.ids(unit, chunks))?;
        Ok(wire::ranking_words(ranking))
    }

    fn rescored(
        &self,
        vector: &str,
        found: Vec<(ChunkRef, u64)>,
        scope: Option<&ScopeWords>,
        (column, depth): (VectorColumn, usize),
    ) -> Result<Vec<u8>> {
        self.check_column(column)?;
        let vector = wire::vectors(vector, self.dimensions()).map_err(refused)?;
        if vector.len() != self.dimensions() {
            return Err(refused(format!("{} values for a vector of {}", vector.len(), self.dimensions())));
        }
        self.check(&found.iter().map(|(chunk, _)| *chunk).collect::<Vec<_>>())?;
        let depth = self.depth(depth);
        let scored = |(chunk, bits): (ChunkRef, u64)| Ok((chunk, wire::score(bits)?));
        let found: Vec<_> = found.into_iter().map(scored).collect::<Result<_, Fault>>().map_err(refused)?;
        let scope = scope.map(|words| wire::scope(words, &self.segments)).transpose().map_err(refused)?;
        let scope = scope.as_ref();
        let rescored = Rescored { vector: &vector, found: &found, scope, column, depth, cancel: self.cancel };
        self.body(&self.named(Unit::Row, self.source.rescore(&rescored)?)?)
    }

    fn located(&self, sought: &SoughtWords) -> Result<Vec<u8>> {
        let records: HashSet<&str>;
        let sought = match sought {
            SoughtWords::Id(id) => Sought::Id(id),
            SoughtWords::Records(ids) => {
                records = ids.iter().map(String::as_str).collect();
                Sought::Records(&records)
            }
            SoughtWords::File { names, end } => {
                self.few(names.len(), NAMES_MAX)?;
                Sought::File { names, end: end.as_deref() }
            }
        };
        self.body(&self.source.located(&sought)?)
    }

    fn listed(&self, pick: &PickWords) -> Result<Vec<u8>> {
        let (filter, matcher);
        let pick = match pick {
            PickWords::All => Pick::All,
            PickWords::Documents(ids) => Pick::Documents(ids),
            PickWords::Under(folder) => Pick::Under(folder),
            PickWords::Matching(text) => {
                matcher = glob(text)?;
                Pick::Matching(&matcher)
            }
            PickWords::Filter(text) => {
                filter = Filter::parse(text)?;
                Pick::Filter(&filter)
            }
        };
        self.words(self.source.documents(&pick)?, wire::listed_words)
    }
}

/// A glob of origins, as [`resolve`](crate::source::selected::resolve) makes it.
fn glob(text: &str) -> Result<GlobMatcher> {
    limits::text("path", text, TEXT_BYTES_MAX)?;
    let glob = GlobBuilder::new(text).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| refused(format!("no glob: {}", error.kind())))
}

/// Rows of each segment.
fn segments(source: &dyn Source) -> Vec<u32> {
    let entries = &source.describe().manifest.segments;
    entries.iter().map(|entry| u32::try_from(entry.n_rows).unwrap_or(u32::MAX)).collect()
}

/// An error for statistics that no collection has.
fn check_statistics(statistics: &Statistics) -> Result<(), Fault> {
    let Statistics { totals, df } = statistics;
    let are_counts = [totals.n, totals.text, totals.beside].iter().all(|count| *count <= COUNT_MAX);
    match are_counts && df.values().all(|df| *df <= totals.n) {
        true => Ok(()),
        false => Err("statistics that no collection has".to_owned()),
    }
}

/// Bytes that are as many as an answer may have, and an error behind them.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > ANSWER_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn refused(fault: Fault) -> Error {
    Error::Request { field: "call".to_owned(), reason: format!("holds {fault}") }
}
