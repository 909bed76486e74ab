//! The seam: what the verbs ask of a source. Requests are batches, answers are values, and chunks are opaque
//! references, so that a source may as well lie on other machines.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use cento_assembly::Candidate;
use cento_collection::format::config::VectorColumn;
use cento_collection::format::manifest::Manifest;
use cento_embedder::Accelerator;
use cento_lexical::{Bm25, Explanation, Statistics, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cancel::Cancel;
use crate::error::Result;
use crate::source::documents::{DocumentSection, Excerpt, ListedDocument, LocatedDocument, Part, Sought};
use crate::source::filter::Schema;
use crate::source::links::names::Name;
use crate::source::links::{Heading, Linkers, Linking};
use crate::source::ranking::Ranking;
use crate::source::refs::{Around, ChunkKey, ChunkRef, Chunks, Named};
use crate::source::scope::{Scope, Scoped, Scopes, Wanted};
use crate::source::selected::Pick;
use crate::source::titles::{Holder, Mention};

/// A place that has documents and answers for them. One collection is one, and several collections are one.
///
/// Rankings that cross the seam hold everything that may be among the best, ties with the last included, in the order
/// of [`sort_ranking`](crate::source::ranking::sort_ranking); whoever asked cuts them.
pub(crate) trait Source: Debug + Send + Sync {
    /// Gives the manifest and the counts; they do not change while the source is open.
    fn describe(&self) -> &Description;

    /// True if an answer is waited for rather than computed, so that several are asked for at once.
    fn is_far(&self) -> bool {
        false
    }

    /// The same for one request, which ends what it waits for; nothing where nothing is waited for.
    fn until(&self, _cancel: &Cancel) -> Option<Arc<dyn Source>> {
        None
    }

    /// Names the source that a chunk is of, for errors: one of several on other machines; nothing is said of others.
    fn whose(&self, _chunk: ChunkRef) -> String {
        String::new()
    }

    /// Looks whether what it reads is still there: a source that has lost some of it answers nothing more.
    fn check_whole(&self) -> Result<()> {
        Ok(())
    }

    /// Gives the fields of the documents and their types.
    fn schema(&self) -> Result<Schema>;

    /// Resolves documents into a scope. Ids that are not here come back; another source may have them.
    fn scope(&self, wanted: Wanted<'_>) -> Result<Scoped>;

    /// Counts live units and those that have each of the terms: integers, which add up over sources.
    fn statistics(&self, counted: Counted, terms: &[String], cancel: &Cancel) -> Result<Statistics>;

    /// Ranks by BM25: for each query the units that may be among the best.
    fn lexical(&self, queries: &LexicalQueries<'_>) -> Result<Vec<Matched>>;

    /// Explains the BM25 score of chunks, under the source's own statistics or those of a larger whole; sooner if they
    /// are given.
    fn explain(
        &self,
        query: &str,
        chunks: &[ChunkRef],
        bm25: Bm25,
        statistics: Option<&Statistics>,
    ) -> Result<Vec<Explanation>>;

    /// Ranks by vectors: for each query the units that may be among the best.
    fn nearest(&self, queries: &DenseQueries<'_>) -> Result<Vec<Near>>;

    /// Ranks all chunks in scope of the documents of `found`, scored inside their document by another kind of vectors.
    fn rescore(&self, rescored: &Rescored<'_>) -> Result<Ranking>;

    /// Gives the public ids of chunks, or of their documents. Far sources have said them with their rankings.
    fn ids(&self, unit: Unit, chunks: &[ChunkRef]) -> Result<Vec<Arc<str>>> {
        let id = |candidate: Candidate| match unit {
            Unit::Row => candidate.id.into(),
            Unit::Document => candidate.document.into(),
        };
        Ok(self.chunks(chunks)?.into_iter().map(id).collect())
    }

    /// Reads chunks as assembly needs them, in the order given, without scores.
    fn chunks(&self, chunks: &[ChunkRef]) -> Result<Vec<Candidate>>;

    /// Gives the chunks beside others, each once; some may be those that others stand beside.
    fn around(&self, around: &[Around]) -> Result<Vec<ChunkKey>>;

    /// Gives the vectors of chunks, of unit length; the plain ones where there are two kinds.
    fn vectors(&self, chunks: &[ChunkRef]) -> Result<Vec<Vec<f32>>>;

    /// Reads byte ranges of the documents of chunks.
    fn texts(&self, spans: &[(ChunkRef, Range<u64>)]) -> Result<Vec<String>>;

    /// Reads the documents of chunks from their beginning to the last chunk that ends within `bytes_max`.
    fn openings(&self, chunks: &[ChunkRef], bytes_max: u64) -> Result<Vec<String>>;

    /// Gives the titles of the documents of chunks: their words in lower case, without what stands in brackets behind.
    fn titles(&self, chunks: &[ChunkRef]) -> Result<Vec<String>>;

    /// Finds the titles of live documents in texts: for each text those it names, by title ascending.
    fn named(&self, texts: &[String]) -> Result<Vec<Vec<Mention>>>;

    /// Gives live documents with the links that their authors made; nothing for an id that is not here.
    fn linking(&self, documents: &[String]) -> Result<Vec<Option<Linking>>>;

    /// Gives the live documents that link.
    fn linkers(&self) -> Result<Linkers>;

    /// Finds for each name the live documents with rows that have it; of a name that says nothing if several have it,
    /// some.
    fn called(&self, names: &[Name]) -> Result<Vec<Vec<Holder>>>;

    /// Gives the sections with a heading of a live document; nothing where there is no such document.
    fn outline(&self, document: &str) -> Result<Option<Vec<Heading>>>;

    /// Finds live documents by their ids, and of each one of its chunks by its number.
    fn find(&self, documents: &[(String, Option<u32>)]) -> Result<Vec<Option<Named>>>;

    /// Reads a part of a document; nothing where there is no such document.
    fn excerpt(&self, document: &str, part: &Part) -> Result<Option<Excerpt>>;

    /// Gives the sections of a document, in the order of its text; nothing where there is no such document.
    fn sections(&self, document: &str) -> Result<Option<Vec<DocumentSection>>>;

    /// Finds live documents by their id or by their file.
    fn located(&self, sought: &Sought<'_>) -> Result<Vec<LocatedDocument>>;

    /// Gives the id closest to one that is not there, and how far it is off; the least of (distance, id) is the
    /// closest.
    fn nearest_id(&self, id: &str) -> Result<Option<(usize, String)>>;

    /// Lists documents, by id ascending.
    fn documents(&self, pick: &Pick<'_>) -> Result<Vec<ListedDocument>>;

    /// Gives the live chunks at ascending positions in the order of storage.
    fn at(&self, positions: &[u64]) -> Result<Vec<ChunkRef>>;

    /// Gives the top heading of every live chunk, chunks of a document that share one together.
    fn labels(&self) -> Result<Vec<Labelled>>;
}

/// The facts of a source that do not change while it is open.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(crate) manifest: Manifest,
    /// Documents that answer.
    pub(crate) n_documents: u64,
    /// Chunks that answer.
    pub(crate) n_rows: u64,
    /// Chunks that a graph reaches.
    pub(crate) n_graph_rows: u64,
    /// The files are held against writers.
    pub(crate) is_pinned: bool,
}

/// The units that statistics count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Counted {
    /// Those that BM25 ranks.
    Units(Unit),
    /// Chunks, by their text alone.
    Texts,
}

/// Queries by words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LexicalQueries<'a> {
    pub(crate) texts: &'a [String],
    pub(crate) scopes: Scopes<'a>,
    pub(crate) unit: Unit,
    /// The score of a document; of chunks it is not looked at.
    pub(crate) score: LexicalScore,
    pub(crate) bm25: Bm25,
    pub(crate) depth: usize,
    /// The statistics of the whole that this source is a part of; none where it is the whole.
    pub(crate) statistics: Option<&'a Given>,
    pub(crate) cancel: &'a Cancel,
}

/// The statistics that scores are computed under.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Given {
    pub(crate) of_units: Statistics,
    /// Of chunks, where they count in the score of a document.
    pub(crate) of_rows: Option<Statistics>,
}

impl LexicalQueries<'_> {
    /// True if the score of a document counts its best chunk.
    pub(super) fn counts_chunks(&self) -> bool {
        (self.unit, self.score) == (Unit::Document, LexicalScore::Mean)
    }
}

/// The score of a document by words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LexicalScore {
    /// BM25 of all its text.
    #[default]
    Document,
    /// The mean of that and the BM25 of its best chunk: in a long document words that stand together count for more
    /// than words that are far apart.
    Mean,
}

/// The units that have words of a query.
#[derive(Debug, Default)]
pub(crate) struct Matched {
    pub(crate) ranking: Ranking,
    /// The statistics of the query's terms, if they are those that chunks were ranked under.
    pub(crate) statistics: Option<Statistics>,
}

/// Queries by vectors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DenseQueries<'a> {
    /// \[Q, D\]
    pub(crate) vectors: &'a [f32],
    pub(crate) scopes: Scopes<'a>,
    pub(crate) unit: Unit,
    pub(crate) column: VectorColumn,
    pub(crate) depth: usize,
    pub(crate) scan: Scan,
    /// Width of the beam that walks a graph; the depth where that is more.
    pub(crate) ef: usize,
    /// A device that may help where the vectors lie.
    pub(crate) accelerator: Option<&'a Accelerator>,
    pub(crate) cancel: &'a Cancel,
}

/// Documents found by one kind of vectors, to be scored inside by another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rescored<'a> {
    pub(crate) vector: &'a [f32],
    pub(crate) found: &'a [(ChunkRef, f64)],
    /// The chunks that may answer; none for all.
    pub(crate) scope: Option<&'a Scope>,
    pub(crate) column: VectorColumn,
    pub(crate) depth: usize,
    pub(crate) cancel: &'a Cancel,
}

/// The way the nearest vectors are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scan {
    /// By graph where a segment has one.
    #[default]
    Auto,
    /// By reading every row.
    Exact,
}

/// The neighbours of the vectors of one query.
#[derive(Debug, Default)]
pub(crate) struct Near {
    pub(crate) ranking: Ranking,
    /// Segments that were scanned.
    pub(crate) n_exact: usize,
    /// Segments whose graph was walked.
    pub(crate) n_graph: usize,
}

/// Chunks of a document under one heading.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Labelled {
    /// All chunks of the document.
    pub(crate) document: Chunks,
    /// Those under the heading that follow each other.
    pub(crate) chunks: Chunks,
    pub(crate) heading: String,
}
