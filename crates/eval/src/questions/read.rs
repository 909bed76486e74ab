//! Reading questions: the layout decides who reads them.

use std::path::Path;

use super::{Questions, answered, beir, excerpts};
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
        let read = match path {
            _ if path.join("questions.jsonl").is_file() => excerpts::read(path),
            _ if path.join("queries.jsonl").is_file() => beir::read(path),
            _ => Err(Error::NotQuestions { path: path.to_owned() }),
        }?;
        read.in_order(path, "questions with gold documents")
    }

    /// Reads a file of questions with their answers, or as [`Questions::read`] a folder that knows gold documents too.
    ///
    /// # Errors
    /// Those of [`Questions::read`]; a line that is no question, an id twice, a file without an answer.
    pub fn read_answered(path: &Path) -> Result<Self> {
        if path.is_dir() { Self::read(path) } else { answered::read(path)?.in_order(path, "questions with an answer") }
    }

    fn in_order(mut self, path: &Path, what: &'static str) -> Result<Self> {
        if self.questions.is_empty() {
            return Err(Error::Empty { path: path.to_owned(), what });
        }
        self.questions.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(self)
    }
}
