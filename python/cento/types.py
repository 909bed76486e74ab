"""The requests and answers of a server as types. Written by scripts/python-types; do not edit.

Requests are dictionaries of which most keys may be left out. Answers are immutable; what an answer has and these types
do not (of a newer server) is left out, and what an older server does not say is `None`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

Budget = int | str
"""A number of tokens; or auto, or auto:N, for as many as pay, of so many at most."""

ChunkLength = int | str
"""The length of chunks."""

Decision = Literal["selected", "rejected"]
"""In the context or not."""

Distance = Literal["cosine", "inner-product", "euclidean"]
"""The order of neighbours, and the score that tells it; a larger score is nearer."""

FieldOf = Literal["document", "chunk"]
"""The things that have the values of a field."""

FieldType = Literal["boolean", "integer", "float", "date", "string"]
"""The type of a value of metadata."""

Format = Literal["md", "xml", "json"]
"""The form of a context."""

Fusion = Literal["rrf", "convex", "adaptive"]
"""The way two rankings become one."""

How = Literal["replaced", "outbid", "not_better", "worth_nothing", "no_room", "less_relevant", "blocked"]
"""The way in which a passage lost its place, or got none."""

JobKind = Literal["index", "add", "delete", "compact"]
"""The thing a job does."""

Likeness = Literal["vectors", "words"]
"""The likeness of two candidates."""

Links = Literal["named", "authored", "all", "none"]
"""The links that lift documents in a fused ranking."""

Marks = Literal["lean", "full"]
"""The marks around the texts of a context."""

MentionKind = Literal["name", "quote", "date", "number"]
"""The kind of a mention."""

Missing = Literal["entity", "relation", "qualifier"]
"""The kind of thing that is missing."""

Mode = Literal["hybrid", "dense", "lexical"]
"""The retrievers that run."""

NeedKind = Literal["entity", "relation", "number", "date", "comparison"]
"""The kind of a need."""

NewFormat = Literal["record", "text", "markdown", "html"]
"""The way the text of a document is read that is handed over."""

Order = Literal["document", "score", "edges"]
"""Where the pieces of a context stand."""

Outcome = Literal["whole", "cut", "nothing_relevant", "nothing_fits"]
"""The kind of thing that a context holds."""

Phrases = Literal["auto", "required", "words"]
"""The weight of phrases in quotation marks."""

Pooling = Literal["plain", "late", "both"]
"""The vectors that the chunks of a collection have."""

Reason = Literal[
    "passed_all_gates",
    "cut_to_fit",
    "beyond_candidates",
    "low_relevance",
    "document_chunks_exceeded",
    "section_chunks_exceeded",
    "budget_exceeded",
    "section_budget_exceeded",
    "too_redundant",
    "dropped_in_repair",
    "not_found",
    "not_proposed",
    "run_too_long",
    "included",
    "excluded",
    "unlikely",
    "not_supported",
]
"""Why a candidate is in the context or not."""

ReplayOn = Literal["traced"] | Literal["latest"] | dict[str, Any]
"""The generation that a replay asks."""

Scan = Literal["auto", "exact"]
"""The way the nearest vectors are found."""

Stage = Literal["pool", "walk", "slack", "cut", "repair"]
"""The stages of an assembly, in order."""

State = Literal["running", "cancelling", "done", "failed", "cancelled"]
"""The state of a job."""

Stopped = Literal["loops", "sufficient", "stuck"]
"""Why a repair ended."""

Strategy = Literal[
    "cento",
    "flat",
    "mmr",
    "adaptive",
    "bubble",
    "rse",
    "rse-kadane",
    "rse-exact",
    "window",
    "parent",
    "automerge",
    "seal",
]
"""A way to choose among candidates."""

TextKind = Literal["query", "document"]
"""The kind of a text: some encoders put a prompt before queries."""

VectorColumn = Literal["plain", "late"]
"""One kind of vector."""

Wanted = Literal["date", "number", "name", "any"]
"""The kind of answer a question wants."""


class AddRequest(TypedDict):
    """Documents that are handed over. One whose id is there already takes the place of that one."""

    documents: list[NewDocument]
    """The documents."""


class AssembleOptions(TypedDict):
    """A question and the candidates that another engine found for it. Every other field may be left out."""

    budget: NotRequired[Budget]
    """Tokens that the context may have, everything in it counted."""

    exclude: NotRequired[list[str]]
    """Ids of documents or chunks that are not delivered."""

    format: NotRequired[Format]
    """The format of the context."""

    include: NotRequired[list[str]]
    """Ids of documents, or of chunks as the trace has them (`DOC#number`), that are delivered whatever else is."""

    language: NotRequired[str | None]
    """The language of stemming and stop words, or `none`; English, if there is none here."""

    marks: NotRequired[Marks]
    """The marks around its pieces."""

    order: NotRequired[Order]
    """The order of its pieces."""

    policy: NotRequired[dict[str, Any]]
    """Priors, boosts, gates, section budgets, settings of the strategies: the keys of a policy file."""

    strategy: NotRequired[Strategy]
    """The way candidates are chosen; `seal` searches again, and so is none of these."""

    tokenizer: NotRequired[str]
    """Whose tokens: `o200k`, `cl100k`, or another that the service knows by name."""


class BatchQuery(TypedDict):
    """A question of a batch."""

    id: str
    """The name that its answer carries."""

    query: str
    """The question, in plain words."""


class BatchRequest(TypedDict):
    """Questions that are asked in one way."""

    queries: list[BatchQuery]
    """The questions."""

    search: NotRequired[SearchRequest]
    """The way they are asked; its own `query` is left out."""


class CompactRequest(TypedDict):
    """Segments that are to become fewer."""

    all: NotRequired[bool]
    """True for all segments, false for those that the policy finds."""


class ContextOptions(TypedDict):
    """A question that a context answers. Every field but the query may be left out."""

    allow_partial: NotRequired[bool]
    """Of a collection on several servers, leave out those that do not answer when the request begins, and say in
    `missing` which; otherwise that is an error."""

    budget: NotRequired[Budget]
    """Tokens that the context may have, everything in it counted."""

    candidates: NotRequired[int]
    """Candidates that each retriever contributes."""

    ef: NotRequired[int | None]
    """Width of the beam that walks a graph, at least `candidates`, which is the default."""

    exclude: NotRequired[list[str]]
    """Ids of chunks, or of documents, that are not delivered."""

    filter: NotRequired[str | None]
    """A filter that documents, or their chunks, must pass, as `type = "pdf" and year >= 2020 and page <= 12`."""

    find_vectors: NotRequired[VectorColumn | None]
    """Vectors that find documents, of a collection with both kinds."""

    format: NotRequired[Format]
    """The format of the context."""

    fusion: NotRequired[Fusion]
    """The way their rankings are fused."""

    include: NotRequired[list[str]]
    """Ids of chunks, or of documents, that are delivered whatever else is."""

    links: NotRequired[Links]
    """The links of the best documents that lift others, where both retrievers run."""

    marks: NotRequired[Marks]
    """The marks around its pieces."""

    mode: NotRequired[Mode]
    """The retrievers that run."""

    order: NotRequired[Order]
    """The order of its pieces."""

    phrases: NotRequired[Phrases]
    """The weight of phrases in quotation marks."""

    policy: NotRequired[dict[str, Any]]
    """Priors, boosts, gates, section budgets, settings of the strategies: the keys of a policy file."""

    queries: NotRequired[list[str]]
    """Further questions of the same context, for the strategy `rse`: each chooses segments by its own ranking, in
    turn."""

    rerank: NotRequired[Rerank | None]
    """The model that reads the best candidates again; none: the ranking stands."""

    scan: NotRequired[Scan]
    """The way vectors are scanned."""

    score_vectors: NotRequired[VectorColumn | None]
    """Vectors that score chunks inside a document, of a collection with both kinds."""

    strategy: NotRequired[Strategy]
    """The way chunks are chosen."""

    tokenizer: NotRequired[str]
    """Whose tokens: `model` (the encoder's), `o200k`, `cl100k`, or another that the service knows by name."""

    weights: NotRequired[Weights]
    """The constants of BM25, and its weight beside vectors."""

    within: NotRequired[list[str]]
    """Ids of the documents that may answer; all, if there is none."""


class ContextRequest(TypedDict):
    """A question that a context answers. Every field but the query may be left out."""

    query: str
    """The question, in plain words."""

    allow_partial: NotRequired[bool]
    """Of a collection on several servers, leave out those that do not answer when the request begins, and say in
    `missing` which; otherwise that is an error."""

    budget: NotRequired[Budget]
    """Tokens that the context may have, everything in it counted."""

    candidates: NotRequired[int]
    """Candidates that each retriever contributes."""

    ef: NotRequired[int | None]
    """Width of the beam that walks a graph, at least `candidates`, which is the default."""

    exclude: NotRequired[list[str]]
    """Ids of chunks, or of documents, that are not delivered."""

    filter: NotRequired[str | None]
    """A filter that documents, or their chunks, must pass, as `type = "pdf" and year >= 2020 and page <= 12`."""

    find_vectors: NotRequired[VectorColumn | None]
    """Vectors that find documents, of a collection with both kinds."""

    format: NotRequired[Format]
    """The format of the context."""

    fusion: NotRequired[Fusion]
    """The way their rankings are fused."""

    include: NotRequired[list[str]]
    """Ids of chunks, or of documents, that are delivered whatever else is."""

    links: NotRequired[Links]
    """The links of the best documents that lift others, where both retrievers run."""

    marks: NotRequired[Marks]
    """The marks around its pieces."""

    mode: NotRequired[Mode]
    """The retrievers that run."""

    order: NotRequired[Order]
    """The order of its pieces."""

    phrases: NotRequired[Phrases]
    """The weight of phrases in quotation marks."""

    policy: NotRequired[dict[str, Any]]
    """Priors, boosts, gates, section budgets, settings of the strategies: the keys of a policy file."""

    queries: NotRequired[list[str]]
    """Further questions of the same context, for the strategy `rse`: each chooses segments by its own ranking, in
    turn."""

    rerank: NotRequired[Rerank | None]
    """The model that reads the best candidates again; none: the ranking stands."""

    scan: NotRequired[Scan]
    """The way vectors are scanned."""

    score_vectors: NotRequired[VectorColumn | None]
    """Vectors that score chunks inside a document, of a collection with both kinds."""

    strategy: NotRequired[Strategy]
    """The way chunks are chosen."""

    tokenizer: NotRequired[str]
    """Whose tokens: `model` (the encoder's), `o200k`, `cl100k`, or another that the service knows by name."""

    weights: NotRequired[Weights]
    """The constants of BM25, and its weight beside vectors."""

    within: NotRequired[list[str]]
    """Ids of the documents that may answer; all, if there is none."""


class CreateRequest(TypedDict):
    """The settings of a new collection. Every one may be left out."""

    chunk_tokens: NotRequired[ChunkLength | None]
    """Tokens that a chunk aims at, or `sentence` or `document` for a chunk each."""

    header: NotRequired[str | None]
    """The header embedded with each chunk: `structured`, `flat`, `last` or `none`."""

    language: NotRequired[str | None]
    """The language of stemming and stop words, or `none`."""

    late_window: NotRequired[int | None]
    """Tokens that are read together for late vectors."""

    model: NotRequired[str | None]
    """The encoder: the name of a model that the server has."""

    pooling: NotRequired[str | None]
    """The vectors of a chunk: `plain`, `late` or `both`."""

    precision: NotRequired[str | None]
    """The number type that the encoder computes in: `f32`, `bf16`, `f16` or `int8`."""

    vectors: NotRequired[str | None]
    """The way vectors are stored: `f32` or `f16`."""


class DeleteRequest(TypedDict):
    """Documents that are to go: by their ids, or those that a filter admits."""

    filter: NotRequired[str | None]
    """A filter that they pass, as `type = "md" and year < 2020`."""

    ids: NotRequired[list[str]]
    """Ids, each of which must be there."""


class DiffRequest(TypedDict):
    """Two traces."""

    after: dict[str, Any]
    """The second."""

    before: dict[str, Any]
    """The first."""


class EmbedRequest(TypedDict):
    """Texts to embed."""

    texts: list[str]
    """The texts."""

    kind: NotRequired[TextKind]
    """The kind of the texts."""


class GivenCandidate(TypedDict):
    """A passage that another engine found, or one that stands beside such a passage."""

    document: str
    """The id of its document."""

    text: str
    """The text, as it is to be delivered."""

    characters: NotRequired[Range | None]
    """Characters (Unicode scalar values) of its document, as many as the text has."""

    headings: NotRequired[list[str]]
    """The headings that it stands under, outermost first."""

    number: NotRequired[int | None]
    """The number in its document: 3 and 4 touch."""

    score: NotRequired[float | None]
    """The score, larger is better, on any scale: one for all candidates. A candidate without stands beside those
    that were found, for strategies that look there."""

    span: NotRequired[Range | None]
    """Bytes of its document, as many as the text has."""

    title: NotRequired[str | None]
    """The title of its document."""

    vector: NotRequired[list[float] | None]
    """The vector, of any length but zero, of one space for all candidates; without vectors words alone say how alike
    two candidates are."""


class IndexRequest(TypedDict):
    """Files and folders of the server, which a collection is brought up to date with."""

    paths: list[str]
    """Names of roots that may be indexed, or of files and folders below them, as `notes/drafts`."""

    allow_empty: NotRequired[bool]
    """True if documents may go although most of them, or all of a root, would."""


class NeighborsOptions(TypedDict):
    """Vectors whose nearest neighbours are wanted."""

    ef: NotRequired[int | None]
    """Width of the beam that walks a graph, at least `k`: wider is better and slower."""

    filter: NotRequired[str | None]
    """A filter that documents, or chunks of theirs, must pass."""

    k: NotRequired[int]
    """Neighbours of each."""

    scan: NotRequired[Scan]
    """The way vectors are scanned."""

    within: NotRequired[list[str]]
    """Ids of the documents that may answer; all, if there is none."""


class NewDocument(TypedDict):
    """A document that is handed over."""

    id: str
    """Its id, which no document of a file has."""

    text: str
    """Its text."""

    format: NotRequired[NewFormat]
    """The way its text is read."""

    metadata: NotRequired[dict[str, Any]]
    """Its metadata, which filters can speak of; a key may be there once."""

    title: NotRequired[str]
    """Its title; empty for the one that the text has, if any."""


class RangeRequest(TypedDict):
    """RangeRequest."""

    end: int

    start: int


class ReassembleRequest(TypedDict):
    """A trace of given candidates whose context is to be assembled again."""

    trace: dict[str, Any]
    """The trace."""


class ReplayRequest(TypedDict):
    """A trace whose context is to be assembled again."""

    trace: dict[str, Any]
    """The trace."""

    on: NotRequired[ReplayOn]
    """The generation that answers."""


class Rerank(TypedDict):
    """A model that reads the best candidates of a ranking again, each together with the question."""

    model: str
    """Its name: of a reranker that the service was given, or of a model that was pulled."""

    depth: NotRequired[int]
    """Candidates that it reads, the best ones; results do not depend on `k`."""

    seconds: NotRequired[float | None]
    """Seconds after which it stops; what it did not read stands behind what it read, and the answer says so."""


class SearchOptions(TypedDict):
    """A query over chunks. Every field but the query may be left out."""

    allow_partial: NotRequired[bool]
    """Of a collection on several servers, leave out those that do not answer when the request begins, and say in
    `missing` which; otherwise that is an error."""

    candidates: NotRequired[int]
    """Candidates that each retriever contributes; results do not depend on `k`."""

    ef: NotRequired[int | None]
    """Width of the beam that walks a graph, at least `candidates`, which is the default."""

    explain: NotRequired[bool]
    """Results carry the BM25 score term by term."""

    filter: NotRequired[str | None]
    """A filter that documents, or their chunks, must pass, as `type = "pdf" and year >= 2020 and page <= 12`."""

    find_vectors: NotRequired[VectorColumn | None]
    """Vectors that find documents, of a collection with both kinds."""

    fusion: NotRequired[Fusion]
    """The way their rankings are fused."""

    k: NotRequired[int]
    """Results wanted, at most `candidates`."""

    links: NotRequired[Links]
    """The links of the best documents that lift others, where both retrievers run."""

    min_score: NotRequired[float | None]
    """Results with a lower likelihood are left out, from 0 to 1; an error where results have none."""

    mode: NotRequired[Mode]
    """The retrievers that run."""

    phrases: NotRequired[Phrases]
    """The weight of phrases in quotation marks."""

    rerank: NotRequired[Rerank | None]
    """The model that reads the best candidates again; none: the ranking stands."""

    scan: NotRequired[Scan]
    """The way vectors are scanned."""

    score_vectors: NotRequired[VectorColumn | None]
    """Vectors that score chunks inside a document, of a collection with both kinds."""

    vector: NotRequired[list[float] | None]
    """The vector that is searched for, in place of the question's: as long as the collection's, of any length but 0
    where its order is that of cosines."""

    weights: NotRequired[Weights]
    """The constants of BM25, and its weight beside vectors."""

    within: NotRequired[list[str]]
    """Ids of the documents that may answer; all, if there is none."""


class SearchRequest(TypedDict):
    """A query over chunks. Every field but the query may be left out."""

    allow_partial: NotRequired[bool]
    """Of a collection on several servers, leave out those that do not answer when the request begins, and say in
    `missing` which; otherwise that is an error."""

    candidates: NotRequired[int]
    """Candidates that each retriever contributes; results do not depend on `k`."""

    ef: NotRequired[int | None]
    """Width of the beam that walks a graph, at least `candidates`, which is the default."""

    explain: NotRequired[bool]
    """Results carry the BM25 score term by term."""

    filter: NotRequired[str | None]
    """A filter that documents, or their chunks, must pass, as `type = "pdf" and year >= 2020 and page <= 12`."""

    find_vectors: NotRequired[VectorColumn | None]
    """Vectors that find documents, of a collection with both kinds."""

    fusion: NotRequired[Fusion]
    """The way their rankings are fused."""

    k: NotRequired[int]
    """Results wanted, at most `candidates`."""

    links: NotRequired[Links]
    """The links of the best documents that lift others, where both retrievers run."""

    min_score: NotRequired[float | None]
    """Results with a lower likelihood are left out, from 0 to 1; an error where results have none."""

    mode: NotRequired[Mode]
    """The retrievers that run."""

    phrases: NotRequired[Phrases]
    """The weight of phrases in quotation marks."""

    query: NotRequired[str]
    """The question, in plain words; may be left out beside a vector, which then ranks alone."""

    rerank: NotRequired[Rerank | None]
    """The model that reads the best candidates again; none: the ranking stands."""

    scan: NotRequired[Scan]
    """The way vectors are scanned."""

    score_vectors: NotRequired[VectorColumn | None]
    """Vectors that score chunks inside a document, of a collection with both kinds."""

    vector: NotRequired[list[float] | None]
    """The vector that is searched for, in place of the question's: as long as the collection's, of any length but 0
    where its order is that of cosines."""

    weights: NotRequired[Weights]
    """The constants of BM25, and its weight beside vectors."""

    within: NotRequired[list[str]]
    """Ids of the documents that may answer; all, if there is none."""


class Weights(TypedDict):
    """The constants of a ranking that judged questions of a collection may move."""

    b: NotRequired[float]
    """The discount of longer texts in BM25: 0 not at all, 1 in full."""

    k1: NotRequired[float]
    """The slowness with which a repeated term saturates in BM25, from 0 (at once) to 1000."""

    lexical: NotRequired[float]
    """Weight of words beside the weight 1 of vectors in an adaptive combination, before their contrasts; from 0,
    where vectors alone rank, to 100."""


class WhyNotRequest(TypedDict):
    """A document that a context may lack, and the question of that context."""

    context: ContextRequest
    """The question."""

    id: str
    """A document (`DOC`) or one of its chunks (`DOC#chunk`)."""


class WhyRequest(TypedDict):
    """A trace of a context, and a chunk or document that it may have."""

    id: str
    """A document (`DOC`) or one of its chunks (`DOC#chunk`)."""

    trace: dict[str, Any]
    """The trace."""


@dataclass(frozen=True, kw_only=True)
class AssembleAnswer:
    """A context of candidates that were given, and what it cites."""

    budget_tokens: int
    """The tokens it may have."""

    citations: list[GivenCitation]
    """One for each piece, in order."""

    context: str
    """The context."""

    idf_of: int
    """The texts among which a word's rarity was counted: so many of the candidates' own, as there is no collection."""

    likeness: Likeness
    """The likeness of candidates."""

    n_tokens: int
    """Its tokens."""

    outcome: Outcome
    """The outcome that the context states: `whole`, `cut`, `nothing_relevant` or `nothing_fits`."""

    query: str
    """The question as given."""

    tokenizer: str
    """Whose tokens."""

    version: int
    """Format of this answer."""

    warnings: list[str]
    """Warnings to whoever asks."""

    certificate: Certificate | None = None
    """The nearness of the choice to the best; none where the strategy knows no bound."""


@dataclass(frozen=True, kw_only=True)
class BatchAnswer:
    """The answer to a question of a batch."""

    answer: SearchResponse
    """The answer that the question alone has."""

    id: str
    """The name of the question."""


@dataclass(frozen=True, kw_only=True)
class BridgeRecord:
    """A likelihood that a title lifted."""

    before: float
    """Likelihood before."""

    from_: str | None = None
    """The chunk that names the document; none: the question does."""


@dataclass(frozen=True, kw_only=True)
class CacheStatus:
    """Contents of the embedding cache."""

    folder: str
    """Where it lies."""

    max_bytes: int
    """Bytes it may take."""

    models: list[CachedModel]
    """By folder."""

    n_bytes: int
    """Bytes it takes."""

    version: int
    """Format of this answer."""


@dataclass(frozen=True, kw_only=True)
class CachedModel:
    """Cache contents of one model."""

    arithmetic: str
    """The part of the machine that decides their bits; empty for vectors of an earlier version, which are not used
    any more."""

    dimensions: int
    """Of its vectors."""

    fingerprint: str
    """Of the model."""

    last_use_seconds: int
    """When something was last found or written, in seconds since 1970."""

    model: str
    """Card or folder that was embedded with last."""

    n_bytes: int
    """Bytes they take."""

    n_embeddings: int
    """Vectors, those of one text kept twice counted twice."""

    n_segments: int
    """Segments they lie in."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The choice is worth `value`, and nothing within the constraints is worth more than `bound`, among the
    candidates that were weighed, tokens counted part by part. Units are the strategy's: tokens weighed by
    likelihood for `cento`, dsRAG's values for `rse-exact`."""

    bound: float
    """Upper bound."""

    gap: float
    """`(bound - value) / bound`, in [0, 1]; 0: proven best."""

    n_relaxations: int
    """Relaxations that were solved for it."""

    value: float
    """Of the chosen chunks, whole ones; a chunk that is cut to fit counts for nothing."""

    of_part: bool | None = None
    """The candidates were those of a part of the collection: of the rest it says nothing."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change that was made, and undoes a decision."""

    settings: list[Moved]
    """The settings, all of which are moved at once."""


@dataclass(frozen=True, kw_only=True)
class Cited:
    """A citation, for readers who count bytes and for those who count characters."""

    characters: Range
    """The same in Unicode characters of the document's text."""

    chunks: list[str]
    """Ids of the chunks it is made of, in order."""

    cut: bool
    """True if the piece is a part of its chunk, cut to fit the budget."""

    document: str
    """Id of the document."""

    n: int
    """The number in its mark, from 1 in the order of the context: that of its source, which all pieces of a source
    share, or in full marks that of the piece."""

    path: list[str]
    """Headings open at the start of the piece, outermost first."""

    source: str
    """The text that the span points into: `source` or `extracted`."""

    span: Range
    """Bytes of the document's canonical text."""

    line: Extent | None = None
    """Lines of the file."""

    page: Extent | None = None
    """Pages, or slides."""

    row: Extent | None = None
    """Rows of the sheet: of a workbook as its program counts them, of a table file the data rows alone."""

    sheet: str | None = None
    """Sheet of a workbook or table file, the one it starts in."""


@dataclass(frozen=True, kw_only=True)
class CollectionConfig:
    """The settings that shape every row of a collection."""

    chunk_tokens: str
    """Target tokens of a chunk, or `document`."""

    chunker_version: int
    """`CHUNKER_VERSION` at the time."""

    dimensions: int
    """Length of its vectors."""

    header: str
    """Style of the header embedded and indexed with each chunk."""

    language: str
    """Language of the lexical analysis."""

    model: str
    """Where the encoder came from: a card's name or a folder."""

    model_fingerprint: str
    """Fingerprint of the encoder: of everything in it that shapes a vector."""

    vectors: str
    """Scalar type of the stored vectors."""

    context: WrittenContexts | None = None
    """The contexts behind the headers, where a language model wrote any."""

    endpoint: EndpointEncoder | None = None
    """The use of an encoder that is at an endpoint."""

    given: GivenVectors | None = None
    """The vectors that the collection was given, where no encoder made them: then there is none, and a document has
    one chunk."""

    late: LateReading | None = None
    """The windows in which documents are read for late vectors, where there are any."""

    pooling: Pooling | None = None
    """The vectors of a chunk; not written for `Pooling::Plain`, as before there was a choice."""

    precision: str | None = None
    """Number type the encoder computes in; not written for f32, as before there was a choice."""

    prompt: str | None = None
    """Name of the prompt before queries in the model's folder, where it is not the one of that name."""


@dataclass(frozen=True, kw_only=True)
class CollectionList:
    """The collections of a service, by name ascending."""

    collections: list[str]
    """Their names."""

    version: int
    """Format of this answer."""


@dataclass(frozen=True, kw_only=True)
class ContextAnswer:
    """A context and what it cites."""

    budget_tokens: int
    """The tokens it may have."""

    citations: list[Cited]
    """One for each piece, in order."""

    context: str
    """The text that the budget counts."""

    generation: int
    """Generation of the collection."""

    missing: list[MissingShard]
    """Shards that did not answer, where the request allowed it: all else is of a part of the collection."""

    model_fingerprint: str
    """Fingerprint of the encoder."""

    n_tokens: int
    """Its tokens."""

    outcome: Outcome
    """The outcome that the context states: `whole`, `cut`, `nothing_relevant` or `nothing_fits`."""

    query: str
    """The question as given."""

    tokenizer: str
    """Whose tokens."""

    version: int
    """Format of this answer."""

    warnings: list[str]
    """Warnings to whoever asks."""

    certificate: Certificate | None = None
    """The nearness of the choice to the best; none where the strategy knows no bound."""

    filter: Filtered | None = None
    """The filter, and how many documents passed it."""

    rerank: RerankedBy | None = None
    """The model that read the best candidates again, if one did."""

    support: Support | None = None
    """The support that the collection gives an answer; none where that cannot be told."""


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """Two statements of which one is wrong."""

    head: str
    """Of what."""

    passages: tuple[str, str]
    """Ids of the passages."""

    relation: str
    """The relation, as written."""

    tails: tuple[str, str]
    """The dates or numbers."""


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """The contribution of one arm to a fused score."""

    arm: str
    """Name of the arm."""

    contribution: float
    """The summand of the fused score."""

    weight: float
    """Weight of the arm."""

    normalized: float | None = None
    """The score on the common scale (convex only); an id the arm did not find has none, and contributes 0."""

    rank: int | None = None
    """1-based rank in the arm; none if the arm did not find the id."""

    raw: float | None = None
    """The arm's own score."""


@dataclass(frozen=True, kw_only=True)
class CurveAnswer:
    """The worth of contexts of every budget."""

    budget_tokens: int
    """The largest budget."""

    missing: list[MissingShard]
    """Shards that did not answer, where the request allowed it: the values are those of a part of the collection."""

    points: list[Point]
    """Every budget at which more can be had than with a token less, ascending, with what can be had at most."""

    solved: list[Solved]
    """Solutions of the whole problem, by budget; empty where none was asked for."""

    tokenizer: str
    """Whose tokens."""

    version: int
    """Format of this answer."""

    knee: int | None = None
    """The budget at the knee; none where nothing is worth anything."""


@dataclass(frozen=True, kw_only=True)
class Decided:
    """A candidate that two traces decide differently."""

    after: Why
    """The second."""

    before: Why
    """The first decision."""

    chunk_id: str
    """Its id."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Something that is not the same in two traces."""

    after: str
    """As it is in the second."""

    before: str
    """As it is in the first trace; `absent` where it has none."""

    what: str
    """Its name."""


@dataclass(frozen=True, kw_only=True)
class DocumentList:
    """A list of documents, by id ascending."""

    documents: list[ListedDocument]
    """The documents."""

    generation: int
    """Generation of the collection."""

    version: int
    """Format of this answer."""

    filter: Filtered | None = None
    """The filter, and how many documents passed it."""


@dataclass(frozen=True, kw_only=True)
class DocumentSection:
    """A section of a document."""

    heading: str
    """Its heading; empty for the whole document and for what stands before the first heading."""

    level: int
    """1 is the outermost."""

    span: tuple[int, int]
    """Its bytes in the canonical text, subsections included."""

    parent: int | None = None
    """The number of the section around it, in the order of the list, from 0; none for an outermost one."""


@dataclass(frozen=True, kw_only=True)
class EmbedAnswer:
    """A vector for each text."""

    dimensions: int
    """Length of the vectors."""

    model: str
    """The encoder, as the collection names it."""

    model_fingerprint: str
    """Its fingerprint."""

    vectors: list[list[float]]
    """Vectors of unit length, in the order of the texts."""

    version: int
    """Format of this answer."""


@dataclass(frozen=True, kw_only=True)
class EndpointEncoder:
    """The use that a collection makes of an encoder at an endpoint. Its address is in the model's name; a key is
    nowhere."""

    probes: str
    """The vectors of a few fixed texts, by which the model is known again: the first values of each, 32-bit floats,
    little-endian, in base64."""

    tokenizer: str
    """The tokenizer that texts are counted and cut with."""

    window_tokens: int
    """Tokens of a text that are sent."""

    dimensions: int | None = None
    """Values of each vector, where the server is asked to shorten them."""

    document_prompt: str | None = None
    """Put before each text that queries may find."""

    query_prompt: str | None = None
    """Put before each query."""


@dataclass(frozen=True, kw_only=True)
class Entity:
    """A named thing."""

    names: list[str]
    """The ways in which it is written."""

    passages: list[str]
    """Ids of the passages that name it."""


@dataclass(frozen=True, kw_only=True)
class ErrorAnswer:
    """The body of every answer that is none."""

    error: ErrorBody
    """The error."""


@dataclass(frozen=True, kw_only=True)
class ErrorBody:
    """The error that occurred."""

    code: str
    """A name of the kind of error that does not change."""

    message: str
    """The error in words."""

    hint: str | None = None
    """The way out, where the message does not say it."""

    parameter: str | None = None
    """The field or setting that is wrong, if it is one."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The match of a question and the best chunk."""

    cosine: float
    """Cosine of the question and the nearest chunk, in [-1, 1]."""

    cosine_typical: float
    """The cosine that is typical between a sentence of the collection and its own chunk."""

    cosine_unrelated: float
    """The cosine between texts that have nothing to do with each other; less than `cosine_typical`."""

    words: float
    """The best BM25 score of a chunk as a share of what no chunk could exceed, in [0, 1]."""


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """A document or a part of it."""

    anchor: str
    """Where it stands in the source (of a chunk): line, page or row; may be empty."""

    document: str
    """Id of the document."""

    metadata: dict[str, Any]
    """Other facts that its reader knew."""

    n_chunks: int
    """Chunks of the document."""

    origin: str
    """The file it came from: root label and relative path."""

    path: list[str]
    """Headings above it, outermost first (of a chunk)."""

    span: tuple[int, int]
    """Bytes of the excerpt in the canonical text."""

    text: str
    """The text."""

    text_kind: str
    """`source` if the text is the file's bytes, `extracted` if it was extracted from it."""

    title: str
    """Its title."""

    version: int
    """Format of this answer."""

    warnings: list[str]
    """Why the document may be older than its file."""

    source_span: tuple[int, int] | None = None
    """Byte range in the source file, where the reader kept a map to it."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """A score and its terms."""

    score: float
    """The contributions of the terms, added up in their order: to the last bit what `Searcher::score` gives."""

    terms: list[TermExplanation]
    """Every distinct term of the query in the order of its first appearance, those the unit does not have included."""


@dataclass(frozen=True, kw_only=True)
class Extent:
    """A number, or all from one to another; both ends count, the first has number 1."""

    first: int
    """The first."""

    last: int
    """The last, not below the first."""


@dataclass(frozen=True, kw_only=True)
class FailedDocument:
    """A file or document that could not be read."""

    document: str
    """Its name."""

    reason: str
    """Why."""


@dataclass(frozen=True, kw_only=True)
class FieldList:
    """The fields of a collection, by name ascending."""

    fields: list[FieldSummary]
    """The fields."""

    generation: int
    """Generation of the collection."""

    version: int
    """Format of this answer."""


@dataclass(frozen=True, kw_only=True)
class FieldSummary:
    """A field that filters can speak of."""

    n_documents: int
    """Documents that have it, or chunks with it."""

    name: str
    """Its name in filters."""

    of: FieldOf
    """The things that have its values."""

    types: list[FieldType]
    """The types of its values."""


@dataclass(frozen=True, kw_only=True)
class Filtered:
    """A filter and how many documents it lets through."""

    expression: str
    """The filter as written."""

    n_admitted: int
    """Documents it admits."""

    n_documents: int
    """Documents there are."""

    n_chunks: int | None = None
    """Chunks it admits, where it asks for their place in the file: then documents are admitted that have such."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Something the kept passages do not say."""

    key: str
    """Its key."""

    missing: Missing
    """Its kind."""

    text: str
    """As the question writes it, or the passage that named it."""

    weight: float
    """The missing part of its weight."""

    clause: int | None = None
    """Number of the clause of the question; none for a bridge, which a kept passage named."""


@dataclass(frozen=True, kw_only=True)
class GivenCitation:
    """A citation of candidates."""

    cut: bool
    """True if it is a part of what was given, cut to fit the budget."""

    document: str
    """Id of the document."""

    headings: list[str]
    """The headings of the first candidate in it, outermost first."""

    n: int
    """The number in its mark, from 1."""

    passages: list[GivenPassage]
    """The candidates that it is made of, in order, and which bytes of each."""


@dataclass(frozen=True, kw_only=True)
class GivenPassage:
    """A passage of a citation: bytes of one candidate's text."""

    candidate: int
    """The number of the candidate in the request, from 0."""

    span: Range
    """Bytes of its text."""

    in_document: Range | None = None
    """The same in the document, in bytes or characters as the candidate's own place was given; none where it was
    not."""


@dataclass(frozen=True, kw_only=True)
class GivenVectors:
    """Vectors that a collection was given."""

    dimensions: int
    """Length of the vectors as they were given; those that are stored may be longer."""

    distance: Distance
    """The order of their neighbours."""

    norm_exponent: int
    """No vector is longer than 2 to this power; of the cosine 0, where all have length 1."""

    texts: bool
    """Documents have texts; without, the text of a document is its id."""


@dataclass(frozen=True, kw_only=True)
class GraphHealth:
    """The quality of a graph, measured against the exact scan when it was made. Shares have six digits, so that they
    are read back from JSON as they were written."""

    ef: int
    """The beam they were searched with."""

    in_degree_min: int
    """The fewest lists that name one row."""

    in_degrees: list[int]
    """Counts of rows that are named by 0, 1, 2… lists."""

    n_distinct: int
    """Rows that differ from one another: those that stand in the graph."""

    n_rows: int
    """Its rows."""

    n_sample: int
    """Rows that were searched for."""

    n_unreachable: int
    """Rows that cannot be reached from the entry."""

    out_degree_max: int
    """The longest list."""

    recall_at_10: float
    """The share of the sample's ten nearest rows that were found."""

    self_retrieval: float
    """The share of the sample that found itself first."""

    vectors: VectorColumn
    """The vectors it links."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A chunk in a ranking."""

    anchor: str
    """Where it begins in the source, `line 12`, `page 3` or `row 7`; may be empty."""

    contributions: list[Contribution]
    """The contribution of each arm; the contributions add up to the score. That of a reranker is `rerank`: `rank` is
    the place before, `raw` the logit, `normalized` the probability."""

    document: str
    """Its document."""

    id: str
    """Public id: `document#number`."""

    path: list[str]
    """Headings above the chunk, outermost first."""

    rank: int
    """1 is best."""

    score: float
    """Fused score, or the arm's own when one arm answered. Of what a reranker read, its probability above the best
    score of what it did not read."""

    span: tuple[int, int]
    """Bytes of the chunk in the document's canonical text."""

    text: str
    """The chunk."""

    text_kind: str
    """`source` if that text is the file's bytes, `extracted` if it was extracted from it."""

    title: str
    """Title of the document."""

    lexical: Explanation | None = None
    """BM25 term by term, when asked for and when the lexical arm found the chunk."""

    likelihood: float | None = None
    """The likelihood that it answers, in (0, 1), which means the same for every question, unlike the score; nothing
    where words alone were searched, or the collection's cosines have no scale."""

    named_by: NamedBy | None = None
    """The document that named its document or links to it, if that lifted it: the contribution `named` or `linked`,
    whose `rank`, `raw` and `normalized` are that document's place and score and the strength of the link."""


@dataclass(frozen=True, kw_only=True)
class JobAnswer:
    """A job as it is now."""

    collection: str
    """The collection that it works on."""

    id: str
    """Its id."""

    kind: JobKind
    """The thing it does."""

    n_bytes: int
    """Bytes read."""

    n_bytes_total: int
    """Bytes to read."""

    n_documents: int
    """Documents read."""

    n_rows: int
    """Rows copied."""

    n_rows_total: int
    """Rows to copy."""

    n_tokens: int
    """Tokens embedded."""

    seconds: float
    """Seconds since it began, until it ended."""

    state: State
    """Its state."""

    tokens_per_second: float
    """Tokens embedded a second."""

    version: int
    """Format of this answer."""

    error: ErrorBody | None = None
    """The error of one that failed."""

    eta_seconds: float | None = None
    """Seconds that it will go on, if it goes on as before; none where nothing says it."""

    result: Written | None = None
    """The result of one that is done."""

    stage: str | None = None
    """The work at hand: `embedding`, `writing` or `compacting`."""


@dataclass(frozen=True, kw_only=True)
class JobList:
    """The jobs that are known, those begun last first."""

    jobs: list[JobAnswer]
    """The jobs."""

    version: int
    """Format of this answer."""


@dataclass(frozen=True, kw_only=True)
class LateReading:
    """The reading of documents for late vectors: windows of tokens that overlap."""

    overlap_tokens: int
    """Tokens that neighbouring windows have in common, at least."""

    window_tokens: int
    """Tokens read together."""


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """The facts of the kept passages. Every text in it is a part of the passage it names."""

    entities: dict[str, Entity]
    """Named things, by `Aliases::key`."""

    qualifiers: list[Qualifier]
    """Dates and numbers."""

    relations: list[Relation]
    """Statements."""


@dataclass(frozen=True, kw_only=True)
class ListedDocument:
    """A document in a list."""

    id: str
    """Its id."""

    metadata: dict[str, Any]
    """Other facts that its reader knew."""

    n_chunks: int
    """Chunks that are searched."""

    origin: str
    """The file it came from: root label and relative path."""

    title: str
    """Its title."""

    type: str
    """The type it was read as."""


@dataclass(frozen=True, kw_only=True)
class LoopRecord:
    """One loop: its gaps, queries and replacements."""

    found: list[list[str]]
    """Ids of the passages that each query found and nobody had seen."""

    gaps: list[Gap]
    """The gaps before the loop."""

    kept: list[str]
    """Ids of what is kept before the loop, in the order of their places."""

    ledger: Ledger
    """The facts of these."""

    number: int
    """From 1."""

    queries: list[MicroQuery]
    """The queries."""

    swaps: list[Swap]
    """The replacements."""

    verdict: Verdict
    """The gate, before the loop."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The last comparison of a passage that is not kept: who beat it, on which scores."""

    how: How
    """The way in which it lost."""

    id: str
    """Its id."""

    number: int
    """Loop, from 1; 0: before the first."""

    by: str | None = None
    """Id of the passage that beat it."""

    by_score: Score | None = None
    """Score of that, beside the same passages."""

    score: Score | None = None
    """Its score."""


@dataclass(frozen=True, kw_only=True)
class Loss2:
    """Documents of one segment that could not be kept."""

    documents: list[LostDocument]
    """Documents that are known by name."""

    n_unnamed: int
    """Documents of which not even the name could be read."""

    segment: str
    """The segment; its files are in `quarantine/`."""


@dataclass(frozen=True, kw_only=True)
class LostDocument:
    """A document that could not be kept."""

    id: str
    """Its id."""

    origin: str
    """The file it came from: root label and relative path."""


@dataclass(frozen=True, kw_only=True)
class MicroQuery:
    """A query for one gap."""

    missing: Missing
    """The kind of thing it is after."""

    target: str
    """Key of the entity it starts from."""

    text: str
    """The words to search for."""


@dataclass(frozen=True, kw_only=True)
class MissingShard:
    """A part of the collection that had no part in an answer."""

    shard: str
    """The address of its server."""

    why: str
    """Why it gave no answer."""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """A setting as it was in a run."""

    setting: str
    """Its name: a field of the request, or `policy` and a key."""

    value: str
    """Its value, of a policy as TOML writes it."""

    instead: str | None = None
    """Its value in the request; none if it has none."""


@dataclass(frozen=True, kw_only=True)
class NamedBy:
    """The document that named another, and where."""

    document: str
    """Its id."""

    span: tuple[int, int]
    """Bytes of the canonical text where that stands first."""

    title: str
    """The title as the text has it, in lower case; of a link that its author made, the target as written."""

    link: str | None = None
    """The way the link is written, if its author made one."""


@dataclass(frozen=True, kw_only=True)
class NamedGeneration:
    """A named generation."""

    generation: int
    """Its number."""

    n_segments: int
    """Segments it has."""

    name: str
    """Its name."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """One thing a question asks for."""

    clause: int
    """Number of its clause."""

    key: str
    """The key of an entity: `Aliases::key`."""

    kind: NeedKind
    """Its kind."""

    terms: list[str]
    """Its distinct terms."""

    text: str
    """As the question writes it."""

    weight: float
    """The idf of its terms together."""

    value: Quantity | None = None
    """The value of a number; none where it is no single one ("2-1")."""


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The needs of a question."""

    clauses: list[Range]
    """Parts of the question: bytes."""

    needs: list[Need]
    """Every need once, in the order of the question."""

    wanted: Wanted
    """The kind of answer that would do."""


@dataclass(frozen=True, kw_only=True)
class NeighborList:
    """The neighbours of a vector."""

    ids: list[str]
    """Their ids: of chunks, or of documents where the collection was given its vectors."""

    scores: list[float]
    """Their scores, larger is nearer: cosines, inner products, or Euclidean distances below 0."""


@dataclass(frozen=True, kw_only=True)
class NeighborsAnswer:
    """The nearest neighbours of vectors."""

    distance: Distance
    """The order of neighbours, which says what scores are."""

    generation: int
    """Generation of the collection."""

    neighbors: list[NeighborList]
    """For each vector its neighbours, nearest first."""

    scanned: str
    """The way vectors were scanned: `exact`, `graph`, or `exact and graph`."""

    version: int
    """Format of this answer."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A budget and what it can buy."""

    tokens: int
    """Tokens."""

    value: float
    """No context of so many tokens is worth more."""


@dataclass(frozen=True, kw_only=True)
class Qualifier:
    """A date or a number."""

    kind: MentionKind
    """Date or number."""

    passage: str
    """Id of the passage."""

    text: str
    """As written."""


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number and what it counts."""

    number: str
    """The number as a decimal in its shortest form: `-1.5`, `1500000`."""

    unit: str | None = None
    """Its unit in the spelling of the table here; none where none of them is written beside it."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """Range."""

    end: int

    start: int


@dataclass(frozen=True, kw_only=True)
class ReassembleAnswer:
    """A context of given candidates that was assembled again."""

    context: str
    """The text that the budget counts."""

    n_tokens: int
    """Its tokens."""

    same: bool
    """The same bytes were delivered."""

    version: int
    """Format of this answer."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The decision about one candidate, with its numbers."""

    arms: list[Contribution]
    """The contribution of each arm of the retrieval."""

    boost: float
    """Sum of the keywords' boosts; for `cento` what they added to the likelihood."""

    bucket: str
    """Its section's label."""

    chunk_id: str
    """Public id of the chunk."""

    document: str
    """Its document."""

    final_decision: Decision
    """Delivered or not."""

    final_reason: Reason
    """Why, in the end."""

    is_neighbor: bool
    """Retrieval did not find it; it stands beside what was found."""

    len_penalty: float
    """Length penalty, in (0, 1]."""

    prior: float
    """Prior of the label; for `cento` what it added to the likelihood."""

    rank: int
    """Place in the walk from 1; beyond the pool, place by relevance."""

    relevance: float
    """The term that entered the score: tf, the share of the best candidate's retrieval score (flat: that score
    itself), or for `cento` the likelihood of the chunk."""

    retrieval_score: float
    """Score of retrieval as received."""

    row_number: int
    """Its number in the document."""

    score_final: float
    """score_raw times the penalty; divided by it where negative."""

    score_raw: float
    """relevance + prior + boost."""

    section: str
    """Its section (`sheet_name` in the paper)."""

    stage: Stage
    """The last stage that decided about it."""

    step_decision: Reason
    """The decision of the first walk."""

    step_details: StepDetails
    """The numbers of the last decision."""

    token_count: int
    """Its length in the encoder's tokens."""

    bridge: BridgeRecord | None = None
    """The chunk whose text names its document, where that made it likelier (`cento`)."""

    meets: list[str] | None = None
    """Needs of the question that it meets, as the question writes them."""

    span: Range | None = None
    """Bytes of the document's canonical text; none in a trace that was written before records had them."""

    tf: int | None = None
    """Occurrences of the query's terms; counted in the mode `tf` only."""


@dataclass(frozen=True, kw_only=True)
class Relation:
    """One statement."""

    head: str
    """Of what."""

    passage: str
    """Id of the passage."""

    relation: str
    """The relation, as written."""

    tail: str
    """The other side."""

    tail_kind: MentionKind | None = None
    """The kind of the tail; none for a description ("a Danish chemist")."""


@dataclass(frozen=True, kw_only=True)
class Repair:
    """The result of a repair."""

    gaps: list[Gap]
    """The gaps that are left."""

    kept: list[str]
    """Ids of what is kept, in the order of their places."""

    ledger: Ledger
    """The facts of the kept passages."""

    loops: list[LoopRecord]
    """Every loop."""

    lost: list[Loss]
    """The passages that were looked at and are not kept, by id, with what beat them."""

    n_tokens: int
    """Their tokens."""

    needs: Needs
    """The thing asked for."""

    stopped: Stopped
    """Why it ended."""

    verdict: Verdict
    """The gate, at the end."""

    to_cut: str | None = None
    """Where nothing is kept, as nothing fits whole: id of the best passage that may be, which can be cut."""


@dataclass(frozen=True, kw_only=True)
class ReplayAnswer:
    """A context that was assembled again."""

    context: str
    """The text that the budget counts."""

    differences: list[Difference]
    """Differences, in the order in which one thing follows from another; something may differ even so: what decides,
    and what follows from that."""

    generation: int
    """Generation of the collection."""

    n_tokens: int
    """Its tokens."""

    same: bool
    """The same bytes were delivered, and the trace is of this context, word for word where all that decides is the
    same."""

    version: int
    """Format of this answer."""


@dataclass(frozen=True, kw_only=True)
class ReplicaStatus:
    """A server of a part."""

    address: str
    """Its address."""

    n_answers: int
    """Calls that it answered."""

    n_failures: int
    """Calls that it did not answer, or not rightly."""

    n_overtaken: int
    """Calls that another answered first, though it was asked later."""

    down: str | None = None
    """Why it is not asked now, unless no other answers; nothing if it answered last."""


@dataclass(frozen=True, kw_only=True)
class RerankedBy:
    """The reranker that answered."""

    depth: int
    """Candidates that it was to read."""

    fingerprint: str
    """Its fingerprint; of an endpoint, that of its name and host."""

    model: str
    """Its name."""

    n_scored: int
    """Passages that it read."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """A score and the terms it is the sum of, before their weights."""

    corr: float
    """Corr."""

    gap: float
    """GapCov."""

    nov: float
    """Nov."""

    red: float
    """Red."""

    rel: float
    """Relevance."""

    total: float
    """The weighted sum."""


@dataclass(frozen=True, kw_only=True)
class SearchResponse:
    """The answer to a `ChunkSearch`."""

    generation: int
    """Generation of the collection."""

    hits: list[Hit]
    """The ranking, best first."""

    missing: list[MissingShard]
    """Shards that did not answer, where the request allowed it: all else is of a part of the collection."""

    mode: Mode
    """The retrievers that ran."""

    model_fingerprint: str
    """Fingerprint of the encoder."""

    query: str
    """The query as given."""

    scanned: str
    """The way vectors were scanned: `exact`, `graph`, `exact and graph`, or `none`."""

    version: int
    """Format of this answer."""

    warnings: list[str]
    """Warnings about the collection, to whoever asks."""

    filter: Filtered | None = None
    """The filter, and how many documents it let through."""

    fusion: Fusion | None = None
    """The way they were fused, if there were two."""

    rerank: RerankedBy | None = None
    """The model that read the best candidates again, if one did."""

    vectors: VectorsUsed | None = None
    """The vectors that found documents, and those that scored chunks inside one; nothing if none were asked."""


@dataclass(frozen=True, kw_only=True)
class SectionList:
    """The sections of a document, in the order of its text."""

    document: str
    """Id of the document."""

    generation: int
    """Generation of the collection."""

    sections: list[DocumentSection]
    """The sections."""

    version: int
    """Format of this answer."""


@dataclass(frozen=True, kw_only=True)
class SegmentStatus:
    """The contents of a segment."""

    graphs: list[GraphHealth]
    """The measured quality of its graphs."""

    n_dead_rows: int
    """Rows of documents that were deleted or replaced."""

    n_documents: int
    """Documents, dead ones too."""

    n_rows: int
    """Rows, dead ones too."""

    name: str
    """Its folder."""

    scan: str
    """The way its vectors are searched: `graph` or `exact`."""


@dataclass(frozen=True, kw_only=True)
class ShardStatus:
    """A part of a collection on other servers, as whoever asks them knows it."""

    n_hedged: int
    """Calls that were made to a second server because the first was late."""

    n_hedges_won: int
    """Calls of these that the second answered first."""

    replicas: list[ReplicaStatus]
    """Its servers, which have the same."""

    shard: str
    """The addresses of its servers."""

    generation: int | None = None
    """Generation that is asked for; nothing before it was asked."""


@dataclass(frozen=True, kw_only=True)
class SnapshotList:
    """The snapshots of a collection, by name ascending."""

    snapshots: list[NamedGeneration]
    """The snapshots."""

    unread: list[UnreadSnapshot]
    """Those that cannot be read."""

    version: int
    """Format of this answer."""

    remark: str | None = None
    """A remark on what was done to them."""


@dataclass(frozen=True, kw_only=True)
class Solved:
    """The solution at a budget."""

    certificate: Certificate
    """The value of the choice, counted part by part, and its distance to the best."""

    tokens: int
    """The budget."""


@dataclass(frozen=True, kw_only=True)
class Sought:
    """The end of a search that found no change."""

    setting: str
    """The setting that was moved."""

    up_to: str | None = None
    """The last value that was tried; none if no run was left for it."""


@dataclass(frozen=True, kw_only=True)
class Stale:
    """Documents that answer with the text they had before: their file is there, and could not be read when they were
    indexed last."""

    documents: list[str]
    """Ids of the documents, ascending; of very many the first `Stale::NAMED_MAX`."""

    n_documents: int
    """The number of them."""

    origin: str
    """The file, or what the origins of all files under a folder begin with."""

    reason: str
    """Why it could not be read."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A place in a ranking."""

    chunk_id: str
    """The chunk."""

    n_ranked: int
    """Chunks that are ranked."""

    rank: int
    """Its place, from 1."""

    score: float
    """Its score: BM25, cosine, or fused."""

    score_needed: float
    """The least score among the candidates of the arm."""


@dataclass(frozen=True, kw_only=True)
class Status:
    """The contents of a collection."""

    config: CollectionConfig
    """The settings every row was built with."""

    generation: int
    """Generation that answers."""

    losses: list[Loss2]
    """Documents that were damaged beyond repair and were not indexed again since."""

    n_bytes: dict[str, int]
    """Bytes on disk by file name, over all segments."""

    n_chunks: int
    """Chunks that answer."""

    n_dead_documents: int
    """Documents deleted or replaced whose bytes are still there."""

    n_documents: int
    """Documents that answer."""

    n_quarantined_bytes: int
    """Bytes of damaged segments that were set aside; nothing reads them."""

    roots: dict[str, str]
    """Label and folder of each root."""

    segments: list[SegmentStatus]
    """Segments, in order."""

    shards: list[ShardStatus]
    """The servers that have its parts, where it lies on others."""

    stale: list[Stale]
    """Documents whose files could not be read when they were indexed last: they answer as they were before."""

    version: int
    """Format of this answer."""


@dataclass(frozen=True, kw_only=True)
class StepDetails:
    """The numbers behind a decision; those that played no part are absent."""

    budget_needed: int | None = None
    """The budget at which it would have fitted beside what was chosen."""

    chunks_limit: int | None = None
    """The most the policy allows; for a candidate beyond the pool, K."""

    chunks_used: int | None = None
    """Chunks of its document or section before this candidate."""

    cosine: float | None = None
    """Cosine of its vector and the partner's."""

    estimated: bool | None = None
    """The text was not counted: to fit, its tokens would have to be twice as long as any text's counted before."""

    kept: Range | None = None
    """Bytes of the document that were kept of a cut chunk."""

    likelihood: float | None = None
    """Its likelihood, with priors."""

    min_likelihood: float | None = None
    """The least likelihood that the policy asks for among so many candidates."""

    min_relevance: float | None = None
    """The least relevance the policy asks for."""

    min_support: float | None = None
    """The least support the policy asks for."""

    overlap: float | None = None
    """Overlap with what was chosen before, in [0, 1]."""

    partner: str | None = None
    """The chosen chunk that has most of it; for `seal` the passage that beat this one."""

    question: int | None = None
    """Number of the question whose segment it is in, from 0, where several were asked (`rse`)."""

    section_limit: int | None = None
    """The section's share of the budget."""

    section_needed: int | None = None
    """Tokens of its text, which the section's share is compared with."""

    section_used: int | None = None
    """Tokens of its section before this candidate."""

    support: float | None = None
    """The support that the collection gives to an answer."""

    tokens_left: int | None = None
    """Tokens left of the budget before this candidate."""

    tokens_needed: int | None = None
    """Tokens it adds: text, header, marks. A lower bound where `estimated`."""

    tokens_used: int | None = None
    """Tokens of the context before this candidate."""

    value: float | None = None
    """Its worth to the strategy: tokens weighed by likelihood for `cento`, S(c) for `seal`, the value of its block
    for others."""

    value_needed: float | None = None
    """The worth it would need for its tokens, at the price that tokens had; for `seal` the S of what beat it."""

    value_tokens: int | None = None
    """Tokens that it costs alone, header included, which `cento` multiplies its likelihood with."""


@dataclass(frozen=True, kw_only=True)
class Support:
    """The support that the best chunks of the collection give."""

    evidence: Evidence
    """The figures measured."""

    support: float
    """`Evidence::support`."""


@dataclass(frozen=True, kw_only=True)
class Swap:
    """One replacement, or one filling of room that was left."""

    in_: str
    """Id of the passage that came."""

    in_score: Score
    """Its score, beside the same passages."""

    number: int
    """Loop in which it happened, from 1."""

    tokens_after: int
    """Tokens kept after."""

    tokens_before: int
    """Tokens kept before."""

    out: str | None = None
    """Id of the passage that went; none where there was room."""

    out_score: Score | None = None
    """Its score, beside all other kept passages."""


@dataclass(frozen=True, kw_only=True)
class TermExplanation:
    """One term; `contribution = n_occurrences · idf · tf / (tf + k1 · (1 - b + b · length / average_length))`."""

    average_length: float
    """Average length of the live units of the collection."""

    contribution: float
    """The term's part of the score."""

    df: int
    """Live units of the collection that have the term."""

    idf: float
    """`ln(1 + (n - df + 0.5) / (df + 0.5))`."""

    length: float
    """Length of the unit in terms, combined as `tf` is."""

    n: int
    """Live units of the collection."""

    n_occurrences: int
    """Number of times the query has it."""

    term: str
    """As analysed."""

    tf: float
    """Occurrences in the unit: in the text, plus weighted in the header (of a row), or in the title (of a document)."""


@dataclass(frozen=True, kw_only=True)
class TraceComparison:
    """Comparison of two traces."""

    decisions: list[Decided]
    """Candidates of both that were decided differently."""

    delivered_after: list[str]
    """Chunks delivered by the second alone."""

    delivered_before: list[str]
    """Chunks delivered by the first alone."""

    only_after: list[str]
    """Candidates of the second alone."""

    only_before: list[str]
    """Candidates of the first trace alone."""

    same: bool
    """The delivered texts are the same, byte for byte."""

    settings: list[Difference]
    """Settings: query, versions, collection, search, policy and config, key by key."""

    totals: list[Difference]
    """Tokens, text tokens, value, bound and gap, those that differ."""

    version: int
    """Format of this answer."""


@dataclass(frozen=True, kw_only=True)
class UnreadSnapshot:
    """A snapshot that cannot be read."""

    name: str
    """Its name."""

    problem: str
    """Why not."""


@dataclass(frozen=True, kw_only=True)
class VectorsUsed:
    """The kinds of vectors a query is answered with."""

    find: VectorColumn
    """For finding documents."""

    score: VectorColumn
    """For scoring chunks inside a document."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The findings of the gate."""

    answer: float
    """Greatest share of the needs in one sentence with something that may be the answer."""

    contradictions: list[Contradiction]
    """Statements of different passages that cannot both be true."""

    corroboration: float
    """Share of the covered needs that two documents cover."""

    coverage: float
    """Share of the needs that is covered, by weight; 1 where nothing is needed."""

    sufficient: bool
    """Coverage is at least what is asked for, nothing is contradicted, and an answer is in reach."""


@dataclass(frozen=True, kw_only=True)
class WhereLost:
    """The stage that lost a document."""

    because: str
    """The reason, in a sentence with its numbers."""

    changes: list[Change]
    """Changes that deliver the chunk, each by itself, as a run of it showed."""

    n_runs: int
    """Contexts that were assembled for this."""

    not_found: list[Sought]
    """Settings that alone, or with the one that decides next, do not deliver it as far as they were moved."""

    stage: str
    """`scope`, `filter`, `phrases`, `lexical`, `dense`, `lexical and dense` or `assembly`."""


@dataclass(frozen=True, kw_only=True)
class Why:
    """Why a candidate is in the context or not."""

    because: str
    """The reason, in a sentence with its numbers."""

    record: Record
    """All that the trace knows of it."""


@dataclass(frozen=True, kw_only=True)
class WhyAnswer:
    """A trace's record of a chunk, or of the chunks of a document."""

    chunks: list[WhyChunk]
    """Its chunks that were candidates, in the order of the trace."""

    id: str
    """The chunk or document that was asked for."""

    query: str
    """The question of the trace."""

    version: int
    """Format of this answer."""

    repair: Repair | None = None
    """The repair that chose, where the strategy is `seal`."""

    untried: str | None = None
    """Why no change was tried; none if changes were, or there was nothing to undo."""


@dataclass(frozen=True, kw_only=True)
class WhyChunk:
    """A chunk's decision, and what undoes it."""

    because: str
    """The reason, in a sentence with its numbers."""

    record: Record
    """All that the trace knows of it."""

    changes: list[Change] | None = None
    """Changes that deliver the chunk, each by itself, as a run of it showed."""

    n_runs: int | None = None
    """Contexts that were assembled for this."""

    not_found: list[Sought] | None = None
    """Settings that alone, or with the one that decides next, do not deliver it as far as they were moved."""


@dataclass(frozen=True, kw_only=True)
class WhyNot:
    """Where a document or chunk stands at every stage."""

    assembly: list[Why]
    """The assembly's decisions on its chunks, in the order of the walk."""

    candidates: int
    """Candidates an arm contributes."""

    contributions: list[Contribution]
    """Each arm's contribution to that chunk."""

    generation: int
    """Generation of the collection."""

    id: str
    """The document or chunk that was asked for."""

    missing: list[MissingShard]
    """Shards that did not answer, where the request allowed it: all else is of a part of the collection."""

    n_chunks: int
    """Its chunks that can be found."""

    query: str
    """The query."""

    version: int
    """Format of this answer."""

    dense: Standing | None = None
    """Its best chunk by cosine, every vector compared; none if the arm was not asked."""

    fused: Standing | None = None
    """Its best chunk in the fused ranking, whose end is where the arms end; none if it is not there."""

    lexical: Standing | None = None
    """Its best chunk by BM25; none if no chunk has a term of the query, or the arm was not asked."""

    lost: WhereLost | None = None
    """The stage that lost it; none if it is in the context."""

    terms: Explanation | None = None
    """The terms of that chunk's score, those it does not have included; of its first chunk if none has any."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """The result of a writer."""

    failed: list[FailedDocument]
    """The first of those that could not be read."""

    generation: int
    """Generation that answers now."""

    n_added: int
    """Documents that are new."""

    n_changed: int
    """Documents whose content changed."""

    n_chunks: int
    """New chunks."""

    n_failed: int
    """Files or documents that could not be read."""

    n_kept: int
    """Documents that stay as they were, because what they come from is there and could not be read."""

    n_merged: int
    """Segments that were merged."""

    n_removed: int
    """Documents that went."""

    n_skipped: int
    """Files left out."""

    n_tokens_embedded: int
    """Tokens that went through the encoder."""

    n_unchanged: int
    """Documents that were there already."""


@dataclass(frozen=True, kw_only=True)
class WrittenContexts:
    """Contexts of chunks that a language model wrote."""

    model: str
    """Name of the model, as its endpoint knows it."""

    prompt: str
    """Fingerprint of what it was asked, and of what was made of its answers."""
