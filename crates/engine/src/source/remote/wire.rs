//! The words of shards to each other: every call of a [`Source`](crate::source::seam::Source), and its answer, as JSON.
//!
//! It is no interface for others: both ends are the same version of Cento, which each says first. Floats go as their
//! bits, so that an answer is the same to the last bit; vectors and sets of rows as base64 of their bytes. Of calls
//! with many items a shard answers the first that fit into one answer, and is asked for the rest.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cento_assembly::{Anchor, Candidate};
use cento_collection::format::config::{SEGMENT_ROWS_MAX, VectorColumn};
use cento_collection::format::manifest::Manifest;
use cento_collection::format::metadata::{read_metadata, write_metadata};
use cento_corpus::Format;
use cento_lexical::{Bm25, Explanation, TermExplanation, Unit};
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use crate::source::documents::{Excerpt, ListedDocument, Part};
use crate::source::links::names::Name;
use crate::source::ranking::Ranking;
use crate::source::refs::{Around, ChunkRef, RankedChunk};
use crate::source::scope::{Scope, Scopes};
use crate::source::seam::{Counted, Given, LexicalScore, Scan};

/// The version of these words; another is refused.
pub(super) const WIRE: u32 = 4;

/// The version of Cento: another one may score otherwise, and is refused.
pub(super) const CENTO: &str = env!("CARGO_PKG_VERSION");

/// Why something received cannot be used.
pub(super) type Fault = String;

/// A call, with the generation that it is asked of.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    pub(super) wire: u32,
    pub(super) cento: String,
    /// The checksum of the manifest; none asks whichever there is.
    pub(super) generation: Option<String>,
    pub(super) call: Call,
}

/// An answer, and the generation that gave it; the answer stands last.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer<T> {
    pub(super) wire: u32,
    pub(super) cento: String,
    pub(super) generation: String,
    pub(super) answer: T,
}

/// The part of a question and of an answer that every version has.
#[derive(Debug, Deserialize)]
pub(super) struct Version {
    wire: u32,
    #[serde(default)]
    cento: String,
}

impl Version {
    /// That of an answer.
    pub(super) fn of<T>(answer: &Answer<T>) -> Self {
        Self { wire: answer.wire, cento: answer.cento.clone() }
    }

    /// An error unless the other end is of this version of Cento.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let Self { wire, cento } = self;
        if (*wire, cento.as_str()) == (WIRE, CENTO) {
            return Ok(());
        }
        let cento: String = cento.chars().take(VERSION_CHARS_MAX).filter(|c| !c.is_control()).collect();
        Err(format!(
            "is of cento {cento} (words of shards, version {wire}), and this is cento {CENTO} (version {WIRE}): shards \
             and who asks them must be of one version"
        ))
    }
}

/// A larger number of commits, documents, terms or bytes is none.
pub(super) const COUNT_MAX: u64 = 1 << 48;

/// A larger number of a page, a row or a line is none: what is counted on from there is a number still.
const PLACE_MAX: u32 = 1 << 31;

/// Letters of a version that are said again.
const VERSION_CHARS_MAX: usize = 32;

/// A call: each of the trait, and what it is given.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Call {
    /// The generation alone.
    Generation,
    Describe,
    Schema,
    Scope(WantedWords),
    Statistics {
        counted: Counted,
        terms: Vec<String>,
    },
    Lexical(LexicalWords),
    Explain {
        query: String,
        chunks: Vec<ChunkRef>,
        bm25: [u64; 3],
        statistics: Option<cento_lexical::Statistics>,
    },
    Nearest(NearestWords),
    Rescore {
        vector: String,
        found: Vec<(ChunkRef, u64)>,
        scope: Option<ScopeWords>,
        column: VectorColumn,
        depth: usize,
    },
    Chunks(Vec<ChunkRef>),
    Around(Vec<Around>),
    Vectors(Vec<ChunkRef>),
    Texts(Vec<(ChunkRef, Range<u64>)>),
    Openings(Vec<ChunkRef>, u64),
    Titles(Vec<ChunkRef>),
    Named(Vec<String>),
    Linking(Vec<String>),
    Linkers,
    Called(Vec<Name>),
    Outline(String),
    Find(Vec<(String, Option<u32>)>),
    Excerpt(String, Part),
    Sections(String),
    Located(SoughtWords),
    NearestId(String),
    Documents(PickWords),
    At(Vec<u64>),
    Labels,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LexicalWords {
    pub(super) texts: Vec<String>,
    pub(super) scopes: ScopesWords,
    pub(super) unit: Unit,
    pub(super) score: LexicalScore,
    pub(super) bm25: [u64; 3],
    pub(super) depth: usize,
    pub(super) statistics: Option<Given>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NearestWords {
    pub(super) vectors: String,
    pub(super) scopes: ScopesWords,
    pub(super) unit: Unit,
    pub(super) column: VectorColumn,
    pub(super) depth: usize,
    pub(super) scan: Scan,
    pub(super) ef: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WantedWords {
    All,
    Documents(Vec<String>),
    /// A filter as it is written.
    Filter(String),
    Phrases(Vec<String>, Unit),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SoughtWords {
    Id(String),
    Records(Vec<String>),
    File { names: Vec<String>, end: Option<String> },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PickWords {
    All,
    Documents(Vec<String>),
    Under(String),
    /// A glob as it is written.
    Matching(String),
    Filter(String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DescriptionWords {
    pub(super) manifest: Manifest,
    pub(super) n_documents: u64,
    pub(super) n_rows: u64,
    pub(super) n_graph_rows: u64,
    pub(super) is_pinned: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScopedWords {
    pub(super) scope: ScopeWords,
    pub(super) n_documents: u64,
    pub(super) unknown: Vec<String>,
}

/// A set of rows for each segment.
pub(super) type ScopeWords = Vec<String>;

/// The scopes of queries, and that of the others.
pub(super) type ScopesWords = (Vec<Option<ScopeWords>>, Option<ScopeWords>);

/// Ids, places and scores of a ranking.
pub(super) type RankingWords = Vec<(String, ChunkRef, u64)>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NearWords {
    pub(super) ranking: RankingWords,
    pub(super) n_exact: usize,
    pub(super) n_graph: usize,
}

pub(super) fn scope_words(scope: &Scope) -> ScopeWords {
    let words = |rows: &RoaringBitmap| {
        let mut bytes = Vec::with_capacity(rows.serialized_size());
        rows.serialize_into(&mut bytes).expect("memory takes all bytes");
        BASE64.encode(bytes)
    };
    scope.segments().iter().map(words).collect()
}

/// A scope of segments with so many rows each.
pub(super) fn scope(words: &ScopeWords, segments: &[u32]) -> Result<Scope, Fault> {
    if words.len() != segments.len() {
        return Err(format!("a scope of {} segments, where there are {}", words.len(), segments.len()));
    }
    let set = |(words, n_rows): (&String, &u32)| {
        let bytes = BASE64.decode(words).map_err(|error| format!("a scope: {error}"))?;
        if n_containers(&bytes) > n_rows.div_ceil(CONTAINER_ROWS) {
            return Err(format!("a scope with more than the {n_rows} rows of its segment"));
        }
        let rows = RoaringBitmap::deserialize_from(&bytes[..]).map_err(|error| format!("a scope: {error}"))?;
        match rows.max() {
            Some(row) if row >= *n_rows => Err(format!("a scope with row {row} of {n_rows}")),
            Some(_) | None => Ok(rows),
        }
    };
    Ok(Scope::new(words.iter().zip(segments).map(set).collect::<Result<_, Fault>>()?))
}

/// Rows of a container of a set of rows.
const CONTAINER_ROWS: u32 = 1 << 16;

/// The number of containers that a set of rows says it has: each may take 8 KiB of memory for some bytes.
///
/// Source: the RoaringFormatSpec, cookies 12346 (their number follows) and 12347 (it stands in the upper half).
fn n_containers(bytes: &[u8]) -> u32 {
    let number = |at: usize| bytes.get(at..at + 4).and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)));
    match number(0) {
        Some(cookie) if cookie & 0xffff == 12347 => (cookie >> 16) + 1,
        Some(12346) => number(4).unwrap_or(u32::MAX),
        Some(_) | None => u32::MAX,
    }
}

pub(super) fn scopes_words(scopes: Scopes<'_>) -> ScopesWords {
    let of_query = scopes.of_query.iter().map(|scope| scope.as_ref().map(scope_words)).collect();
    (of_query, scopes.of_all.map(scope_words))
}

/// Those of each of `n` queries, and that of the others.
pub(super) fn scopes(
    words: &ScopesWords,
    n: usize,
    segments: &[u32],
) -> Result<(Vec<Option<Scope>>, Option<Scope>), Fault> {
    if words.0.len() > n {
        return Err(format!("{} scopes for {n} queries", words.0.len()));
    }
    let read = |words: &Option<ScopeWords>| words.as_ref().map(|words| scope(words, segments)).transpose();
    Ok((words.0.iter().map(read).collect::<Result<_, Fault>>()?, read(&words.1)?))
}

pub(super) fn vector_words(vector: &[f32]) -> String {
    BASE64.encode(bytemuck::cast_slice::<f32, u8>(vector))
}

/// The finite values of vectors of that length, how many there may be.
pub(super) fn vectors(words: &str, dimensions: usize) -> Result<Vec<f32>, Fault> {
    let bytes = BASE64.decode(words).map_err(|error| format!("vectors: {error}"))?;
    let (values, rest) = bytes.as_chunks::<4>();
    let values: Vec<f32> = values.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect();
    match rest.is_empty() && values.len().is_multiple_of(dimensions.max(1)) && values.iter().all(|x| x.is_finite()) {
        true => Ok(values),
        false => Err(format!("{} bytes that are no vectors of {dimensions} finite values", bytes.len())),
    }
}

/// One vector of unit length.
pub(super) fn unit_vector(words: &str, dimensions: usize) -> Result<Vec<f32>, Fault> {
    let vector = vectors(words, dimensions)?;
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    match vector.len() == dimensions && (length - 1.0).abs() <= LENGTH_TOLERANCE {
        true => Ok(vector),
        false => Err(format!("{} values of length {length} for a vector of length 1", vector.len())),
    }
}

/// The most by which the length of a stored vector is off 1, of 16 bits too.
const LENGTH_TOLERANCE: f64 = 1e-2;

pub(super) fn bm25_words(bm25: Bm25) -> [u64; 3] {
    [bm25.k1, bm25.b, bm25.header_weight].map(f64::to_bits)
}

pub(super) fn bm25(words: [u64; 3]) -> Result<Bm25, Fault> {
    let [k1, b, header_weight] = words.map(f64::from_bits);
    match [k1, b, header_weight].iter().all(|value| value.is_finite()) {
        true => Ok(Bm25 { k1, b, header_weight }),
        false => Err("parameters of BM25 that are no numbers".to_owned()),
    }
}

pub(super) fn score(bits: u64) -> Result<f64, Fault> {
    let score = f64::from_bits(bits);
    if score.is_finite() { Ok(score) } else { Err(format!("the score {score}")) }
}

/// A ranking of things that were named.
pub(super) fn ranking_words(ranking: Ranking) -> RankingWords {
    let words =
        |(RankedChunk { chunk, id }, score): (RankedChunk, f64)| Some((id?.to_string(), chunk, score.to_bits()));
    ranking.into_iter().filter_map(words).collect()
}

/// An error for a chunk that is not among segments with so many rows.
pub(super) fn check_chunk(chunk: ChunkRef, segments: &[u32]) -> Result<(), Fault> {
    let (segment, row) = chunk.place();
    match segments.get(segment) {
        Some(n_rows) if row < *n_rows => Ok(()),
        Some(_) | None => Err(format!("chunk {row} of segment {segment}, which is not there")),
    }
}

/// As [`check_chunk`], of several.
pub(super) fn check_chunks(chunks: impl IntoIterator<Item = ChunkRef>, segments: &[u32]) -> Result<(), Fault> {
    chunks.into_iter().try_for_each(|chunk| check_chunk(chunk, segments))
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CandidateWords {
    id: String,
    document: String,
    types: Vec<String>,
    title: String,
    index: u32,
    n_chunks: u32,
    section: String,
    label: String,
    path: Vec<String>,
    span: Range<u64>,
    source: String,
    anchor: Anchor,
    text: String,
    n_tokens: u32,
    parents: Vec<Range<u32>>,
}

/// A candidate without scores.
pub(super) fn candidate_words(candidate: Candidate) -> CandidateWords {
    let Candidate { id, document, types, title, index, n_chunks, section, label, path, span, .. } = candidate;
    let Candidate { source, anchor, text, n_tokens, parents, .. } = candidate;
    let source = source.to_owned();
    CandidateWords {
        id,
        document,
        types,
        title,
        index,
        n_chunks,
        section,
        label,
        path,
        span,
        source,
        anchor,
        text,
        n_tokens,
        parents,
    }
}

/// A candidate whose numbers fit each other: what assembly takes for granted.
pub(super) fn candidate(words: CandidateWords) -> Result<Candidate, Fault> {
    let CandidateWords { id, document, types, title, index, n_chunks, section, label, path, span, .. } = words;
    let CandidateWords { source, anchor, text, n_tokens, parents, .. } = words;
    let is_of_span = span.end.checked_sub(span.start) == Some(text.len() as u64);
    let is_id = id.strip_prefix(document.as_str()).is_some_and(|rest| rest == format!("#{index}"));
    let are_parents = parents.iter().all(|parent| parent.start <= parent.end && parent.end <= n_chunks);
    let are_parents = are_parents && n_chunks as usize <= SEGMENT_ROWS_MAX;
    let extents = [anchor.page, anchor.row, anchor.line];
    let are_extents = extents.iter().flatten().all(|extent| extent.first <= extent.last && extent.last <= PLACE_MAX);
    let is_of_span = is_of_span && span.end <= COUNT_MAX;
    if !(is_of_span && is_id && are_parents && are_extents && index < n_chunks) {
        return Err(format!("chunk {index} of {n_chunks} of a document, whose numbers do not fit each other"));
    }
    let source = text_kind(&source)?;
    Ok(Candidate {
        id,
        document,
        types,
        title,
        index,
        n_chunks,
        section,
        label,
        path,
        span,
        source,
        anchor,
        text,
        n_tokens,
        relevance: 0.0,
        arms: Vec::new(),
        is_neighbor: true, // until a score says otherwise
        parents,
    })
}

fn text_kind(kind: &str) -> Result<&'static str, Fault> {
    let known = ["source", "extracted"].into_iter().find(|known| *known == kind);
    known.ok_or_else(|| "a text of a kind that there is none of".to_owned())
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplanationWords {
    score: u64,
    terms: Vec<TermWords>,
}

/// The term, its number in the query, `df`, `n`, and the bits of idf, tf, length, average length and contribution.
type TermWords = (String, u32, [u64; 2], [u64; 5]);

pub(super) fn explanation_words(explanation: Explanation) -> ExplanationWords {
    let words = |term: TermExplanation| {
        let TermExplanation { idf, tf, length, average_length, contribution, .. } = term;
        let floats = [idf, tf, length, average_length, contribution].map(f64::to_bits);
        (term.term, term.n_occurrences, [term.df, term.n], floats)
    };
    let terms = explanation.terms.into_iter().map(words).collect();
    ExplanationWords { score: explanation.score.to_bits(), terms }
}

/// An explanation of a score of a query with so many terms.
pub(super) fn explanation(words: ExplanationWords, n_terms: usize) -> Result<Explanation, Fault> {
    let term = |(term, n_occurrences, [df, n], floats): TermWords| {
        for float in floats {
            score(float)?;
        }
        let [idf, tf, length, average_length, contribution] = floats.map(f64::from_bits);
        Ok(TermExplanation { term, n_occurrences, idf, df, n, tf, length, average_length, contribution })
    };
    if words.terms.len() > n_terms {
        return Err(format!("{} terms of a query of {n_terms}", words.terms.len()));
    }
    let terms = words.terms.into_iter().map(term).collect::<Result<_, Fault>>()?;
    Ok(Explanation { score: score(words.score)?, terms })
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExcerptWords {
    version: u32,
    document: String,
    origin: String,
    title: String,
    metadata: String,
    text_kind: String,
    span: [u64; 2],
    path: Vec<String>,
    anchor: String,
    source_span: Option<[u64; 2]>,
    n_chunks: u32,
    text: String,
    warnings: Vec<String>,
}

/// A part that its document does not have: the fault of whoever asked, and none of the shard.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Absent {
    /// The part asked for.
    pub(super) what: String,
    /// The parts that the document has.
    pub(super) has: String,
}

pub(super) fn excerpt_words(excerpt: Excerpt) -> ExcerptWords {
    let Excerpt { version, document, origin, title, span, path, anchor, source_span, n_chunks, text, .. } = excerpt;
    let (metadata, text_kind) = (write_metadata(&excerpt.metadata), excerpt.text_kind.to_owned());
    let warnings = excerpt.warnings;
    ExcerptWords {
        version,
        document,
        origin,
        title,
        metadata,
        text_kind,
        span,
        path,
        anchor,
        source_span,
        n_chunks,
        text,
        warnings,
    }
}

/// The part of a document that was asked for.
pub(super) fn excerpt(words: ExcerptWords, asked: &str, part: &Part) -> Result<Excerpt, Fault> {
    let ExcerptWords { version, document, origin, title, span, path, anchor, source_span, n_chunks, text, .. } = words;
    if span[1].checked_sub(span[0]) != Some(text.len() as u64) {
        return Err(format!("{} bytes for the span {span:?}", text.len()));
    }
    let is_part = match part {
        Part::Whole => span[0] == 0,
        Part::Bytes(range) => [range.start, range.end] == span,
        Part::Chunk(_) | Part::Lines(_) => true,
    };
    if document != asked || !is_part || source_span.is_some_and(|[start, end]| start > end) {
        return Err("another part of a document, or of another document".to_owned());
    }
    let (metadata, text_kind) = (read_metadata(&words.metadata)?, text_kind(&words.text_kind)?);
    let warnings = words.warnings;
    Ok(Excerpt {
        version,
        document,
        origin,
        title,
        metadata,
        text_kind,
        span,
        path,
        anchor,
        source_span,
        n_chunks,
        text,
        warnings,
    })
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListedWords {
    id: String,
    origin: String,
    format: String,
    title: String,
    metadata: String,
    n_chunks: u32,
}

pub(super) fn listed_words(listed: ListedDocument) -> ListedWords {
    let ListedDocument { id, origin, r#type, title, metadata, n_chunks } = listed;
    ListedWords { id, origin, format: r#type.to_owned(), title, metadata: write_metadata(&metadata), n_chunks }
}

pub(super) fn listed(words: ListedWords) -> Result<ListedDocument, Fault> {
    let ListedWords { id, origin, format, title, metadata, n_chunks } = words;
    let known = (0..u32::from(u8::MAX)).filter_map(Format::of_number).find(|known| known.name() == format);
    let r#type = known.ok_or_else(|| "a document of a format that there is none of".to_owned())?.name();
    Ok(ListedDocument { id, origin, r#type, title, metadata: read_metadata(&metadata)?, n_chunks })
}
