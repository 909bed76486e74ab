//! The report on files: what their readers got out of them and what not, as a generation remembers it.
//!
//! It holds files that a parser read, and files that were refused: of a text that is the file itself there is nothing
//! to tell. It lies in `reports/`, one file a generation that changed it, and no answer depends on it.

use std::io::Write;
use std::path::Path;

use cento_corpus::{Extraction, FoundFile};
use cento_vector::file;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{AtPath, Error, Result};
use crate::format::layout::REPORTS;
use crate::fs::{Folder, Fs};

const KIND: [u8; 8] = *b"reports\0";

/// Pages that a remark names, at most.
const PAGES_TOLD_MAX: usize = 20;

/// Share of characters without a meaning from which a file is suspicious: one in two hundred, a letter a line or two.
const UNMAPPED_SHARE: f64 = 0.005;

/// Share of very long words from which they are told: in tables of ids there are some, in prose next to none.
const LONG_WORDS_SHARE: f64 = 0.005;

/// Letters that a word has with its blank, to know the number of words by that of characters.
const WORD_CHARACTERS: f64 = 6.0;

/// Share of the words of a second reading below which the first has lost something.
const COMPLETENESS_MIN: f64 = 0.9;

/// The report on one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileReport {
    /// Root label and relative path.
    pub origin: String,
    /// The format it was read as.
    pub format: String,
    /// Its size when it was found.
    pub n_bytes: u64,
    /// The attention it wants.
    pub suspicion: Suspicion,
    /// Why, and what else there is to tell, as sentences.
    pub remarks: Vec<String>,
    /// Why it, or documents in it, were refused; of very many the first [`FileReport::FAILURES_MAX`].
    pub failures: Vec<String>,
    /// The number of them.
    pub n_failures: u64,
    /// Figures of its reading; none where it was not read to the end.
    pub extraction: Option<Extraction>,
}

/// The attention that a file wants, from none to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Suspicion {
    /// Nothing is odd.
    Fine,
    /// Text seems to be missing, or is not what stands in the file.
    Suspicious,
    /// It was refused, or documents in it were.
    Failed,
}

impl FileReport {
    /// Failures of one file that a report names.
    pub const FAILURES_MAX: usize = 20;

    /// The report on a file of which nothing is known yet.
    pub fn new(file: &FoundFile) -> Self {
        Self {
            origin: file.origin.clone(),
            format: file.format.name().to_owned(),
            n_bytes: file.n_bytes,
            suspicion: Suspicion::Fine,
            remarks: Vec::new(),
            failures: Vec::new(),
            n_failures: 0,
            extraction: None,
        }
    }

    /// Takes down why it, or a document in it, was refused.
    pub fn fail(&mut self, reason: &str) {
        self.n_failures += 1;
        if self.failures.len() < Self::FAILURES_MAX {
            self.failures.push(reason.to_owned());
        }
    }

    /// The report with what follows from its figures.
    #[must_use]
    pub fn judged(mut self) -> Self {
        self.remarks = self.extraction.as_ref().map(odd).unwrap_or_default();
        self.suspicion = match (self.failures.is_empty(), self.remarks.is_empty()) {
            (false, _) => Suspicion::Failed,
            (true, false) => Suspicion::Suspicious,
            (true, true) => Suspicion::Fine,
        };
        self
    }
}

/// The figures that say that text is missing or wrong, in words.
fn odd(extraction: &Extraction) -> Vec<String> {
    let Extraction { n_pages, pages_without_text, n_characters, n_unmapped, n_long_words, .. } = extraction;
    let mut odd = Vec::new();
    if !pages_without_text.is_empty() {
        let named: Vec<String> = pages_without_text.iter().take(PAGES_TOLD_MAX).map(u32::to_string).collect();
        let more = pages_without_text.len().saturating_sub(PAGES_TOLD_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let of = n_pages.map(|n| format!(" of {n}")).unwrap_or_default();
        odd.push(format!("looks scanned: no text on pages {}{more}{of}", named.join(", ")));
    } else if *n_characters == 0 {
        odd.push("no text".to_owned());
    }
    let share = |n: u64, of: f64| if of > 0.0 { n as f64 / of } else { 0.0 };
    let unmapped = share(*n_unmapped, *n_characters as f64);
    if unmapped > UNMAPPED_SHARE {
        odd.push(format!("{:.1} % of its characters have no meaning in its fonts or encoding", unmapped * 100.0));
    }
    let long = share(*n_long_words, *n_characters as f64 / WORD_CHARACTERS);
    if long > LONG_WORDS_SHARE {
        odd.push(format!("{n_long_words} words of more than 25 letters: words may be glued together"));
    }
    if let Some(completeness) = extraction.completeness.filter(|share| *share < COMPLETENESS_MIN) {
        odd.push(format!("{:.0} % of the words of a second, crude reading are in its text", completeness * 100.0));
    }
    odd.extend(extraction.unread.iter().map(|part| format!("not read: {part}")));
    odd
}

/// Writes and syncs the report of a generation under its name in `reports/`.
pub fn write(fs: &dyn Fs, folder: &Path, name: &str, files: &[FileReport]) -> Result<()> {
    let reports = folder.join(REPORTS);
    fs.create_dir(&reports).map_err(|error| Error::writing(&reports, error))?;
    let path = reports.join(name);
    let json = serde_json::to_vec(files).expect("a report is always JSON");
    let mut out = file::Writer::new(fs.create(&path).at(&path)?, KIND).at(&path)?;
    out.write_all(&json).at(&path)?;
    out.finish([files.len() as u64, json.len() as u64]).at(&path)?.sync().at(&path)?;
    fs.sync_dir(&reports).at(&reports)?;
    fs.sync_dir(folder).at(folder)
}

/// Reads what [`write`] wrote.
pub fn read(folder: &Folder, name: &str) -> Result<Vec<FileReport>> {
    let mapped = folder.map(&format!("{REPORTS}/{name}"), &[KIND])?;
    let reports = serde_json::from_slice(mapped.bytes(0..mapped.len())?);
    mapped.check_whole()?;
    reports.map_err(|error| Error::Corrupt { path: mapped.path().to_owned(), reason: error.to_string() })
}
