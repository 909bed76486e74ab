//! The requests and answers of every door: an owned struct each, read strictly, with its defaults, its limits and its
//! JSON Schema.
//!
//! An answer is what `--json` prints, the body that a server sends and the type that a client reads. Errors become a
//! [`Fault`].

mod assemble;
mod batch;
mod budget;
mod context;
mod documents;
mod embed;
mod explain;
mod fault;
mod parse;
mod rerank;
mod schema;
mod search;
mod version;
mod write;

pub use crate::context::given::{GivenCandidate, GivenPassage};
pub use crate::limits::{
    ANSWER_BYTES_MAX, BUDGET_TOKENS_MAX, CANDIDATES_MAX, EF_MAX, EMBED_TEXTS_MAX, IDS_MAX, NEIGHBORS_ANSWERED_MAX,
    QUERY_BYTES_MAX, RERANK_DEPTH_MAX, TEXT_BYTES_MAX, VECTORS_MAX,
};
pub use crate::source::filter::FILTER_BYTES_MAX as FILTER_TEXT_BYTES_MAX;
pub use assemble::trace::{AssembledTrace, ReassembleAnswer, ReassembleRequest};
pub use assemble::{AssembleAnswer, AssembleRequest, GivenCitation, Likeness, READ_BYTES_MAX, candidates};
pub use batch::{BatchAnswer, BatchQuery, BatchRequest, DEFAULT_NEIGHBORS_EF};
pub use batch::{NeighborList, NeighborsAnswer, NeighborsRequest};
pub use budget::{AUTO_TOKENS_MAX, Budget, DEFAULT_BUDGET_TOKENS, Settled};
pub use context::{CURVE_SOLVED, Cited, ContextAnswer, ContextRequest, CurveAnswer, DEFAULT_TOKENIZER};
pub use documents::{
    CollectionList, DocumentList, FieldList, FieldsRequest, GetRequest, LinksRequest, ListRequest, SectionList,
    SectionsRequest, SnapshotList, StatusRequest,
};
pub use embed::{EmbedAnswer, EmbedRequest, TextKind};
pub use explain::{DiffRequest, ReplayAnswer, ReplayOn, ReplayRequest, WhyAnswer, WhyNotRequest, WhyRequest};
pub use fault::Fault;
pub use parse::{Request, nearest, parse};
pub use rerank::{COSINE, CROSS_ENCODER, DEFAULT_RERANK_DEPTH, Rerank, RerankAnswer, RerankRequest, Reranked};
pub use schema::{SCHEMAS, schema};
pub use search::{DEFAULT_RESULTS, SearchRequest};
pub use version::VERSION;
pub(crate) use write::check_name;
pub use write::{
    AddRequest, ChunkLength, CompactRequest, CreateRequest, DeleteRequest, FailedDocument, IndexRequest, NewDocument,
    NewFormat, Written, check_path,
};
