//! Names of the files of a segment, and the kinds their containers say.

pub(crate) const DOCUMENTS: ([u8; 8], &str) = (*b"document", "documents.table");
pub(crate) const SECTIONS: ([u8; 8], &str) = (*b"sections", "sections.table");
pub(crate) const CHUNKS: ([u8; 8], &str) = (*b"chunks\0\0", "chunks.table");
pub(crate) const LINKS: ([u8; 8], &str) = (*b"links\0\0\0", "links.table");
pub(crate) const CONTEXTS: ([u8; 8], &str) = (*b"contexts", "contexts.table");
pub(crate) const TEXTS: &str = "documents.text";
pub(crate) const METADATA: &str = "metadata.columns";
pub(crate) const LEXICAL: &str = "lexical";
pub(crate) const LEXICAL_KIND: [u8; 8] = *b"lexical\0";
