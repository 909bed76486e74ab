//! A passage: what retrieval found, as a repair looks at it.

/// One candidate of retrieval for a place in the context.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// Public id, unique.
    pub id: String,
    /// Id of its document: two passages of one document are one source.
    pub document: String,
    /// Title of the document, may be empty.
    pub title: String,
    /// The text.
    pub text: String,
    /// Its cost in tokens.
    pub n_tokens: usize,
    /// Score of the retrieval that found it, larger is better, on any scale.
    pub relevance: f64,
}
