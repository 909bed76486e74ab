//! The other end: a call from somewhere else, answered from a source of this machine. Calls are a stranger's: chunks
//! that are not there, scopes of other segments, numbers that are none are refused.

use std::collections::HashSet;

use cento_collection::format::config::VectorColumn;
use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

use super::body;
use super::wire::{self, Call, DescriptionWords, Fault, LexicalWords, NearestWords, PickWords, Question, ScopedWords};
use super::wire::{SoughtWords, WIRE, WantedWords};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::limits::{self, EF_MAX};
use crate::source::documents::Sought;
use crate::source::filter::Filter;
use crate::source::refs::ChunkRef;
use crate::source::scope::{Phrases, Scoped, Scopes, Wanted};
use crate::source::seam::{DenseQueries, Description, LexicalQueries, Rescored, Source};
use crate::source::selected::Pick;

/// The answer of a source to a call. `shown` is the description that may be told.
///
/// # Errors
/// [`Error::Request`] for what is no call of this version, [`Error::OtherGeneration`], those of the source.
pub(crate) fn answer(source: &dyn Source, shown: Description, call: &[u8], cancel: &Cancel) -> Result<Vec<u8>> {
    let request = |reason: String| Error::Request { field: "call".to_owned(), reason };
    let version: Version = serde_json::from_slice(call).map_err(|error| request(error.to_string()))?;
    if version.wire != WIRE {
        return Err(request(format!(
            "is of version {} of the words of shards, this cento speaks {WIRE}",
            version.wire
        )));
    }
    let question: Question = serde_json::from_slice(call).map_err(|error| request(error.to_string()))?;
    let generation = source.describe().manifest.checksum();
    if question.generation.as_ref().is_some_and(|asked| *asked != generation) {
        return Err(Error::OtherGeneration { now: source.describe().manifest.generation });
    }
    let shard = Shard { source, generation: &generation, segments: segments(source), cancel };
    match question.call {
        Call::Describe => {
            let Description { manifest, n_documents, n_rows, n_graph_rows, is_pinned } = shown;
            body(&generation, &DescriptionWords { manifest, n_documents, n_rows, n_graph_rows, is_pinned })
        }
        call => shard.answer(call),
    }
}

/// The part of a call that every version has.
#[derive(Deserialize)]
struct Version {
    wire: u32,
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
            Call::Statistics { counted, terms } => self.body(&source.statistics(counted, &terms, self.cancel)?),
            Call::Lexical(asked) => self.lexical(&asked),
            Call::Explain { query, chunks, bm25, statistics } => {
                self.check(&chunks)?;
                let bm25 = wire::bm25(bm25).map_err(refused)?;
                let explained = source.explain(&query, &chunks, bm25, statistics.as_ref())?;
                self.words(explained, wire::explanation_words)
            }
            Call::Nearest(asked) => self.nearest(&asked),
            Call::Rescore { vector, found, column, depth } => self.rescored(&vector, found, column, depth),
            Call::Chunks(chunks) => self.words(source.chunks(self.check(&chunks)?)?, wire::candidate_words),
            Call::Around(around) => {
                let chunks: Vec<ChunkRef> = around.iter().map(|around| around.chunk).collect();
                self.check(&chunks)?;
                self.body(&source.around(&around)?)
            }
            Call::Vectors(chunks) => {
                self.words(source.vectors(self.check(&chunks)?)?, |vector| wire::vector_words(&vector))
            }
            Call::Texts(spans) => {
                let chunks: Vec<ChunkRef> = spans.iter().map(|(chunk, _)| *chunk).collect();
                self.check(&chunks)?;
                match spans.iter().find(|(_, span)| span.start > span.end) {
                    Some((_, span)) => Err(refused(format!("the span {span:?}"))),
                    None => self.body(&source.texts(&spans)?),
                }
            }
            Call::Openings(chunks, bytes_max) => self.body(&source.openings(self.check(&chunks)?, bytes_max)?),
            Call::Titles(chunks) => self.body(&source.titles(self.check(&chunks)?)?),
            Call::Named(texts) => self.body(&source.named(&texts)?),
            Call::Linking(documents) => self.body(&source.linking(&documents)?),
            Call::Linkers => self.body(&source.linkers()?),
            Call::Called(names) => self.body(&source.called(&names)?),
            Call::Outline(document) => self.body(&source.outline(&document)?),
            Call::Find(document, number) => self.body(&source.find(&document, number)?),
            Call::Excerpt(document, part) => match source.excerpt(&document, &part) {
                Err(Error::OutOfRange { what, has, .. }) => self.body(&Err::<(), _>(wire::Absent { what, has })),
                excerpt => self.body(&Ok::<_, wire::Absent>(excerpt?.map(wire::excerpt_words))),
            },
            Call::Sections(document) => self.body(&source.sections(&document)?),
            Call::Located(sought) => self.located(&sought),
            Call::NearestId(id) => self.body(&source.nearest_id(&id)?),
            Call::Documents(pick) => self.listed(&pick),
            Call::At(positions) => {
                let is_ascending = positions.is_sorted();
                if is_ascending {
                    self.body(&source.at(&positions)?)
                } else {
                    Err(refused("positions in no order".into()))
                }
            }
            Call::Labels => self.body(&source.labels()?),
        }
    }

    fn body<T: Serialize>(&self, answer: &T) -> Result<Vec<u8>> {
        body(self.generation, answer)
    }

    fn words<T, W: Serialize>(&self, answers: Vec<T>, words: impl Fn(T) -> W) -> Result<Vec<u8>> {
        self.body(&answers.into_iter().map(words).collect::<Vec<W>>())
    }

    /// The chunks, if they are there.
    fn check<'c>(&self, chunks: &'c [ChunkRef]) -> Result<&'c [ChunkRef]> {
        wire::check_chunks(chunks.iter().copied(), &self.segments).map_err(refused)?;
        Ok(chunks)
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
                Wanted::Phrases(Phrases { phrases, unit: *unit, cancel: self.cancel })
            }
        };
        let Scoped { scope, n_documents, unknown } = self.source.scope(wanted)?;
        self.body(&ScopedWords { scope: wire::scope_words(&scope), n_documents, unknown })
    }

    fn lexical(&self, asked: &LexicalWords) -> Result<Vec<u8>> {
        let LexicalWords { texts, scopes, unit, score, bm25, depth, statistics } = asked;
        let (of_query, of_all) = wire::scopes(scopes, &self.segments).map_err(refused)?;
        let queries = LexicalQueries {
            texts,
            scopes: Scopes { of_query: &of_query, of_all: of_all.as_ref() },
            unit: *unit,
            score: *score,
            bm25: wire::bm25(*bm25).map_err(refused)?,
            depth: *depth,
            statistics: statistics.as_ref(),
            cancel: self.cancel,
        };
        self.words(self.source.lexical(&queries)?, wire::ranking_words)
    }

    fn nearest(&self, asked: &NearestWords) -> Result<Vec<u8>> {
        let NearestWords { vectors, scopes, unit, column, depth, scan, ef } = asked;
        limits::within("ef", *ef, 0, EF_MAX)?;
        let vectors = wire::vectors(vectors, self.dimensions()).map_err(refused)?;
        let (of_query, of_all) = wire::scopes(scopes, &self.segments).map_err(refused)?;
        let queries = DenseQueries {
            vectors: &vectors,
            scopes: Scopes { of_query: &of_query, of_all: of_all.as_ref() },
            unit: *unit,
            column: *column,
            depth: *depth,
            scan: *scan,
            ef: *ef,
            accelerator: None,
            cancel: self.cancel,
        };
        self.words(self.source.nearest(&queries)?, wire::near_words)
    }

    fn rescored(
        &self,
        vector: &str,
        found: Vec<(ChunkRef, u64)>,
        column: VectorColumn,
        depth: usize,
    ) -> Result<Vec<u8>> {
        let vector = wire::vectors(vector, self.dimensions()).map_err(refused)?;
        wire::check_chunks(found.iter().map(|(chunk, _)| *chunk), &self.segments).map_err(refused)?;
        let scored = |(chunk, bits): (ChunkRef, u64)| Ok((chunk, wire::score(bits)?));
        let found: Vec<_> = found.into_iter().map(scored).collect::<Result<_, Fault>>().map_err(refused)?;
        let rescored = Rescored { vector: &vector, found: &found, column, depth, cancel: self.cancel };
        self.body(&wire::ranking_words(self.source.rescore(&rescored)?))
    }

    fn located(&self, sought: &SoughtWords) -> Result<Vec<u8>> {
        let records: HashSet<&str>;
        let sought = match sought {
            SoughtWords::Id(id) => Sought::Id(id),
            SoughtWords::Records(ids) => {
                records = ids.iter().map(String::as_str).collect();
                Sought::Records(&records)
            }
            SoughtWords::File { names, end } => Sought::File { names, end: end.as_deref() },
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
    let glob = GlobBuilder::new(text).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| refused(format!("no glob: {}", error.kind())))
}

/// Rows of each segment.
fn segments(source: &dyn Source) -> Vec<u32> {
    let entries = &source.describe().manifest.segments;
    entries.iter().map(|entry| u32::try_from(entry.n_rows).unwrap_or(u32::MAX)).collect()
}

fn refused(fault: Fault) -> Error {
    Error::Request { field: "call".to_owned(), reason: format!("holds {fault}") }
}
