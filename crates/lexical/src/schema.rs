//! The three texts of a row, as fields of the index: postings with frequencies, nothing else.
//!
//! No positions, nothing stored, no field norms of tantivy's (they are one lossy byte): exact lengths are in
//! [`crate::lengths`].

use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};

/// Name under which tantivy knows the analyser.
pub(crate) const ANALYZER: &str = "cento";

/// Number of fields.
pub(crate) const N_FIELDS: usize = 3;

/// Index of a field in a row of lengths.
pub(crate) const TEXT: usize = 0;
pub(crate) const HEADER: usize = 1;
pub(crate) const TITLE: usize = 2;

const NAMES: [&str; N_FIELDS] = ["text", "header", "title"];

/// The schema of every segment, and its fields by index.
pub(crate) fn schema() -> (Schema, [Field; N_FIELDS]) {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(ANALYZER)
        .set_index_option(IndexRecordOption::WithFreqs)
        .set_fieldnorms(false);
    let options = TextOptions::default().set_indexing_options(indexing);
    let mut builder = Schema::builder();
    let fields = NAMES.map(|name| builder.add_text_field(name, options.clone()));
    (builder.build(), fields)
}
