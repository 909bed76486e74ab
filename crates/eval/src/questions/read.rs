//! Reading questions: the layout decides who reads them.

use std::path::Path;

use super::{Questions, beir, excerpts};
use crate::error::{Error, Result};

impl Questions {
    /// Reads an excerpt set or a BEIR folder.
    ///
    /// In an excerpt set a document is named by its file without the extension, or by the whole file name, and its id
    /// is what indexing the `docs` folder gives: `docs/` and the file name. Offsets count code points; each is checked
    /// against its text. In a BEIR folder the gold documents are those judged above 0. SciFact's sentence sets are
    /// alternatives, each enough by itself; here their union is the facts, so a context that has one whole alternative
    /// may still have a recall below 1.
    ///
    /// # Errors
    /// Neither layout, no question with gold documents, an id twice, a document that is not there, evidence that is not
    /// where it is said to be.
    pub fn read(path: &Path) -> Result<Self> {
        let mut read = match path {
            _ if path.join("questions.jsonl").is_file() => excerpts::read(path),
            _ if path.join("queries.jsonl").is_file() => beir::read(path),
            _ => Err(Error::NotQuestions { path: path.to_owned() }),
        }?;
        if read.questions.is_empty() {
            return Err(Error::Empty { path: path.to_owned(), what: "questions with gold documents" });
        }
        read.questions.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(read)
    }
}
