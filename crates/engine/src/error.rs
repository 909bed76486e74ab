//! What can go wrong between a folder of files and an answer, and what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Every way the engine can refuse; the variants follow what a caller can do next.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Error {
    /// A file or folder of the corpus could not be read.
    #[error(transparent)]
    Corpus(#[from] cento_corpus::Error),
    /// The encoder could not be loaded or could not embed.
    #[error(transparent)]
    Embedder(cento_embedder::Error),
    /// The collection's folder: damaged, of another format, held by another writer, or not there.
    #[error(transparent)]
    Collection(#[from] cento_collection::Error),
    /// Fusion or assembly refused its input.
    #[error(transparent)]
    Assembly(cento_assembly::Error),
    /// A model card, its download or its folder.
    #[error(transparent)]
    Model(#[from] cento_models::Error),
    /// The operating system refused.
    #[error("{path}")]
    Io {
        /// The file or folder of the operation.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file is no trace, or not as it was written.
    #[error("{path}: not a trace of a context: {reason}")]
    Trace {
        /// The file.
        path: PathBuf,
        /// The fault found, and where.
        reason: String,
    },
    /// A trace of another version of the format.
    #[error("{path}: trace version {found}, and this cento reads {supported}; {}", if found > supported { "update cento" } else { "make the trace again" })]
    TraceVersion {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: u64,
        /// Version of this build.
        supported: u64,
    },
    /// A trace of a context that is of a part of a collection.
    #[error(
        "this trace is of a part of its collection: {} gave no answer when it was made; what a part gives cannot be \
         made again, so ask for the context anew",
        missing.join(", ")
    )]
    PartTraced {
        /// The shards that had no part in it.
        missing: Vec<String>,
    },
    /// A chunk or document that is not in a trace.
    #[error("{id}: not among the candidates of this trace; {}", if nearest.is_empty() { "it has none".to_owned() } else { format!("the nearest ids are {}", nearest.join(", ")) })]
    NotTraced {
        /// The id.
        id: String,
        /// The ids nearest to it.
        nearest: Vec<String>,
    },
    /// A filter is none, or asks for what the collection does not have.
    #[error(transparent)]
    Filter(#[from] crate::source::filter::FilterError),
    /// Nothing says where embeddings are to be kept.
    #[error("no folder for the embedding cache: set CENTO_CACHE to a folder, or HOME")]
    NoCacheFolder,
    /// The cache has nothing of that model.
    #[error("no model {model:?} in the embedding cache; it has {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    NotCached {
        /// The model that was asked for.
        model: String,
        /// The models it has.
        known: Vec<String>,
    },
    /// The input holds no text to embed.
    #[error("{input}: no text to embed{reason}")]
    NoTexts {
        /// The input.
        input: PathBuf,
        /// The first line that holds none and why, after a semicolon, if there is such a line.
        reason: String,
    },
    /// A text of an input cannot be embedded.
    #[error("{input}: line {line} (id {id:?})")]
    Text {
        /// The input.
        input: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// The text's id.
        id: String,
        /// Why.
        source: Box<cento_embedder::Error>,
    },
    /// A text is longer than the window, and that was to be an error.
    #[error("{input}: line {line} (id {id:?}) is longer than {max_tokens} tokens")]
    TextTooLong {
        /// The input.
        input: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// The text's id.
        id: String,
        /// The window.
        max_tokens: usize,
    },
    /// Not an Arrow stream of texts that can be embedded.
    #[error("{input}: Arrow stream: {reason}")]
    ArrowStream {
        /// The input.
        input: PathBuf,
        /// The fault found, and where.
        reason: String,
    },
    /// An interrupted run had begun with another input.
    #[error(
        "{input}: the first {n_texts} texts are not those of the run that was interrupted; give that input, or begin anew"
    )]
    InputChanged {
        /// The input.
        input: PathBuf,
        /// Texts that were embedded.
        n_texts: u64,
    },
    /// An interrupted run had begun with another setting.
    #[error(
        "{part}: this run was begun with {setting} {begun}, this command asks for {wanted}; ask for the same to go on, or begin anew"
    )]
    PlanDiffers {
        /// The folder of the interrupted run.
        part: PathBuf,
        /// The setting that differs.
        setting: String,
        /// Its value then.
        begun: String,
        /// Its value now.
        wanted: String,
    },
    /// Another process is making the same result.
    #[error("{path}: another process is writing here; wait for it to end, or name another file")]
    OutputLocked {
        /// The folder of the run.
        path: PathBuf,
    },
    /// A file is in the way that no run of ours made.
    #[error("{path}: is there, and no run that embeds texts made it; name another file, or remove it")]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A NumPy array that cannot be used.
    #[error("{path}: {reason}")]
    Array {
        /// The file.
        path: PathBuf,
        /// The fault of the array.
        reason: String,
    },
    /// A language model that was to read and judge did not, or not so that it can be used.
    #[error("endpoint {host}: {reason}; a fallback goes on with the patterns alone, and so does asking none")]
    Endpoint {
        /// Its host.
        host: String,
        /// The call, what was wrong, and with what.
        reason: String,
    },
    /// A language model gave no answer to a request of the caller's own.
    #[error("endpoint {host}: {reason}")]
    Unanswered {
        /// Its host.
        host: String,
        /// The fault of the line, the status or the answer.
        reason: String,
    },
    /// A reranker that was to read the best candidates did not, or not so that its scores can be used.
    #[error("reranker {name}: {reason}")]
    Reranker {
        /// Its name; of an endpoint, with its host.
        name: String,
        /// The fault of the line, the status or the answer.
        reason: String,
    },
    /// An encoder at an endpoint gave no vectors, or none that can be used.
    #[error("encoder at {host}: {reason}")]
    Encoder {
        /// Its host.
        host: String,
        /// The fault of the line, the status or the answer.
        reason: String,
    },
    /// An endpoint has another model under the name of the one that made the vectors of a collection.
    #[error(
        "{model}: the model at {host} is not the one that made the vectors there are: those are of fingerprint {known}, \
         its own now of {found} (least cosine of a probe {cosine:.4}, of one model at least {}); have the model of then \
         served, or index into another collection",
        crate::encoder::COSINE_MIN
    )]
    EncoderChanged {
        /// The host that was asked.
        host: String,
        /// The encoder that was asked.
        model: String,
        /// The beginning of the fingerprint of the vectors there are.
        known: String,
        /// The beginning of the fingerprint of the model that answers.
        found: String,
        /// The least cosine between its probes and those of the collection.
        cosine: f64,
    },
    /// A language model's answer is no context of a chunk. What was answered before is kept.
    #[error("{document}: the context of chunk {chunk} {reason}")]
    NoContext {
        /// Id of the document.
        document: String,
        /// Number of the chunk in it.
        chunk: usize,
        /// The fault of the answer.
        reason: String,
    },
    /// Chunks want contexts as those of the collection, and there is nobody to write them.
    #[error("{n_chunks} chunks have no context yet, and this collection has the header {contexts}: name its endpoint")]
    NoContextWriter {
        /// The contexts of the collection.
        contexts: String,
        /// Chunks without one, in the documents at hand.
        n_chunks: usize,
    },
    /// A trace has no answer of the language model that a replay needs.
    #[error("endpoint {host}: {reason}; a replay asks nobody; make the trace again")]
    #[strum(serialize = "endpoint")]
    NoAnswer {
        /// The host that was asked when the trace was made.
        host: String,
        /// The call, and what the trace has of it.
        reason: String,
    },
    /// The collection was built with another setting.
    #[error(
        "{setting}: the collection has {collection}, this command asks for {requested}; leave the option out, or index into another collection"
    )]
    Mismatch {
        /// The setting that differs.
        setting: &'static str,
        /// Its value in the collection.
        collection: String,
        /// Its value in the request.
        requested: String,
    },
    /// Two folders would share one label, and with it their document ids.
    #[error(
        "label {label:?} names {known} in this collection, and now {given}; give one of them another label: NAME={given}"
    )]
    LabelTaken {
        /// The label, first part of the document ids.
        label: String,
        /// The path it names already.
        known: PathBuf,
        /// The path it would name.
        given: PathBuf,
    },
    /// Two files of a collection have a document of one id, so that one would displace the other.
    #[error(
        "{origin}: the id {id:?} of one of its documents is that of a document of {other}; nothing was changed: index \
         one of the two into a collection of its own"
    )]
    IdTaken {
        /// The file met later.
        origin: String,
        /// The id.
        id: String,
        /// The file whose document has it.
        other: String,
    },
    /// A root that documents came from has nothing to read any more.
    #[error(
        "{path}: nothing is left of the {n_documents} documents that the collection has of it ({reason}); nothing was \
         changed: bring it back, or say that they are to go"
    )]
    RootGone {
        /// The root.
        path: PathBuf,
        /// Documents of the collection under it.
        n_documents: u64,
        /// The state found instead.
        reason: String,
    },
    /// Most documents under the roots would go.
    #[error(
        "{n_removed} of the {n_documents} documents that the collection has of what is indexed here would be removed, \
         {first:?} among them; nothing was changed: bring them back, or say that they are to go"
    )]
    MostRemoved {
        /// Documents that would go.
        n_removed: u64,
        /// Documents of the collection under the roots.
        n_documents: u64,
        /// One of those that would go.
        first: String,
    },
    /// Nothing could be indexed.
    #[error("nothing to index: {reason}")]
    NothingToIndex {
        /// Why, with counts.
        reason: String,
    },
    /// Vectors cannot be read, and the encoder was not to be asked.
    #[error("some vectors cannot be read, and must be looked up in the embedding cache or embedded")]
    VectorsLost,
    /// The collection was given its vectors, and a text was to be embedded.
    #[error(
        "the collection was given its vectors and has no encoder, so that no text can be embedded: give a vector, or \
         search by words alone"
    )]
    NoEncoder,
    /// The collection was given vectors without texts, and words were to be searched.
    #[error(
        "the collection was given vectors without texts, so that there are no words to search: give a vector alone"
    )]
    NoWords,
    /// Files of vectors, ids or texts that do not fit together, or not into a collection.
    #[error("{path}: {reason}")]
    Vectors {
        /// The file.
        path: PathBuf,
        /// The fault, and where it is.
        reason: String,
    },
    /// No document or chunk of that name.
    #[error("no document {id:?} in this collection{}", nearest.as_ref().map(|n| format!("; nearest: {n:?}")).unwrap_or_default())]
    UnknownDocument {
        /// The id that was asked for.
        id: String,
        /// The closest id there is.
        nearest: Option<String>,
    },
    /// A document that was indexed before links were looked for.
    #[error("the links of {document} were not looked for when it was indexed; index its files again")]
    LinksUnknown {
        /// The document.
        document: String,
    },
    /// A name that several documents or files have.
    #[error("{name:?} is the name of several: {}; name one of them", candidates.join(", "))]
    AmbiguousName {
        /// The name.
        name: String,
        /// The things it could name, the first few.
        candidates: Vec<String>,
    },
    /// A chunk number or byte range outside its document.
    #[error("{id}: no {what} in the document, which has {has}")]
    OutOfRange {
        /// The document.
        id: String,
        /// The part asked for.
        what: String,
        /// The parts that the document has.
        has: String,
    },
    /// The question holds nothing to search for.
    #[error("the query is empty; give at least one word")]
    EmptyQuery,
    /// More results than the candidate depth.
    #[error("k = {k} is above the candidate depth of {depth}; ask for at most {depth}")]
    TooManyResults {
        /// Results asked for.
        k: usize,
        /// Candidates an arm contributes.
        depth: usize,
    },
    /// An endpoint that nobody vouches for is written as an address that is not public.
    #[error("endpoint {host}: {ip} is no public address: only a host that the user names may be there")]
    PrivateEndpoint {
        /// The setting that names an endpoint.
        setting: &'static str,
        /// Host and port.
        host: String,
        /// The address.
        ip: std::net::IpAddr,
    },
    /// The texts of an answer are more than one answer may hold.
    #[error(
        "the texts of the answer are {n_bytes} bytes, more than the {n_bytes_max} of one answer; ask for fewer results, or for a part"
    )]
    AnswerTooLarge {
        /// Bytes of the texts.
        n_bytes: usize,
        /// The limit.
        n_bytes_max: usize,
    },
    /// A request is no JSON, or a value in it is of another type.
    #[error("{field}: {reason}")]
    Request {
        /// The path of the value.
        field: String,
        /// The value found, the value expected, and the place.
        reason: String,
    },
    /// A request has a field that means nothing.
    #[error("unknown field {field:?}{}", nearest.as_ref().map(|n| format!(", did you mean {n:?}?")).unwrap_or_default())]
    UnknownField {
        /// The field as written.
        field: String,
        /// The nearest field there is, where one is near.
        nearest: Option<String>,
    },
    /// A server that answers for a part of the collection gives no answer, or none that can be.
    #[error("shard {shard}: {reason}; nothing is answered without it")]
    Shard {
        /// Its address.
        shard: String,
        /// Why there is none.
        reason: String,
    },
    /// A server that answers for a part of the collection has another generation than when the request began.
    #[error("shard {shard}: its collection was written while the request was answered; ask again")]
    ShardChanged {
        /// Its address.
        shard: String,
    },
    /// A call is of another generation of the collection than there is now.
    #[error("the collection has generation {now} now, and another one is asked")]
    OtherGeneration {
        /// The generation there is.
        now: u64,
    },
    /// The collection lies on other servers, and is not theirs to tell of who asks them.
    #[error("the collection lies on other servers, which alone have {what}; ask them")]
    Elsewhere {
        /// The facts that were asked for.
        what: &'static str,
    },
    /// The service has no collection of that name.
    #[error("no collection {name:?}; there are {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    UnknownCollection {
        /// The name that was asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A collection was to be made, and something of that name is there.
    #[error("{name:?} is there already; choose another name")]
    CollectionTaken {
        /// The name.
        name: String,
    },
    /// A folder was to have collections, and has none.
    #[error("{folder}: none of its folders is a collection")]
    NoCollections {
        /// The folder.
        folder: PathBuf,
    },
    /// Too many queries wait for the encoder.
    #[error("{waiting} queries wait for the encoder already; ask again later")]
    Busy {
        /// The number of queries that wait.
        waiting: usize,
    },
    /// Whoever asked does not want the answer any more, or it took longer than it may.
    #[error("cancelled")]
    Cancelled,
    /// A setting whose value cannot be used.
    #[error("{setting}: {value:?} {reason}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// Why not, and what would do.
        reason: String,
    },
}

impl Error {
    /// A name of the kind of error that does not change; of an error from below, the name it has there.
    pub fn code(&self) -> &'static str {
        if let Self::Corpus(error) = self {
            error.code()
        } else if let Self::Embedder(error) = self {
            error.code()
        } else if let Self::Collection(error) = self {
            error.code()
        } else if let Self::Assembly(error) = self {
            error.code()
        } else if let Self::Model(error) = self {
            error.code()
        } else if let Self::Filter(error) = self {
            error.code()
        } else {
            self.into()
        }
    }
}

impl From<cento_embedder::Error> for Error {
    fn from(error: cento_embedder::Error) -> Self {
        match error {
            cento_embedder::Error::Cancelled => Self::Cancelled,
            error => Self::Embedder(error),
        }
    }
}

impl From<cento_assembly::Error> for Error {
    fn from(error: cento_assembly::Error) -> Self {
        match error {
            cento_assembly::Error::Cancelled => Self::Cancelled,
            error => Self::Assembly(error),
        }
    }
}

impl From<cento_vector::Error> for Error {
    fn from(error: cento_vector::Error) -> Self {
        match error {
            cento_vector::Error::Cancelled => Self::Cancelled,
            error => Self::Collection(error.into()),
        }
    }
}

impl From<cento_lexical::Error> for Error {
    fn from(error: cento_lexical::Error) -> Self {
        match error {
            cento_lexical::Error::Cancelled => Self::Cancelled,
            error => Self::Collection(error.into()),
        }
    }
}

/// The result of the engine's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds the path to an error of the operating system.
pub(crate) trait AtPath<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { path: path.to_owned(), source })
    }
}
