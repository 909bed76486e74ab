//! Finds the files of a run's roots, and tells what is gone from what could not be read.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cento_corpus::{self as corpus, FoundFile, RawText, ReadOptions, Root};

use super::{IndexReport, Issue};
use crate::error::{Error, Result};
use cento_collection::format::manifest::Manifest;

/// The roots of a run as they are now.
#[derive(Default)]
pub(crate) struct Found {
    /// Files to read, ascending by origin.
    pub(super) files: Vec<FoundFile>,
    /// Origins of files and folders that are there and could not be read, and why: what the collection has of them
    /// stays.
    pub(super) unread: BTreeMap<String, String>,
    /// Roots of the collection that hold nothing any more.
    pub(super) gone: Vec<GoneRoot>,
    /// Origins of the files of other parts, which this run leaves alone.
    pub(super) elsewhere: BTreeMap<String, ()>,
}

/// One of the parts that the files of a run are cut into, for as many machines.
///
/// Files are cut in the order of their origins, whole, into parts of about as many bytes: where the same files are
/// found, the same parts come of them, and all parts together are all files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePart {
    /// Its number, from 1.
    number: u32,
    /// The number of parts.
    of: u32,
}

impl FilePart {
    /// The most parts.
    pub const PARTS_MAX: u32 = 1_000_000;

    /// Its bytes, where all parts together have `total`.
    pub(crate) fn share(self, total: u64) -> Range<u64> {
        let until = |number: u32| {
            let bytes = u128::from(total) * u128::from(number) / u128::from(self.of);
            u64::try_from(bytes).unwrap_or(total) // never more than all
        };
        until(self.number - 1)..until(self.number)
    }

    /// The part in which a file lies whose bytes begin behind `before` of `total` bytes: that of its middle.
    fn has(self, before: u64, n_bytes: u64, total: u64) -> bool {
        let middle = (u128::from(before) * 2 + u128::from(n_bytes)) * u128::from(self.of);
        let number = middle / (u128::from(total.max(1)) * 2) + 1;
        number.min(u128::from(self.of)) == u128::from(self.number)
    }
}

impl fmt::Display for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for FilePart {
    type Err = Error;

    /// Reads `i/n`.
    ///
    /// # Errors
    /// [`Error::Setting`] unless `1 <= i <= n <=` [`FilePart::PARTS_MAX`].
    fn from_str(text: &str) -> Result<Self> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) && of <= Self::PARTS_MAX => Ok(Self { number, of }),
            Some(_) | None => {
                let reason = format!("is no part: i/n with i from 1 to n, and n up to {}", Self::PARTS_MAX);
                Err(Error::Setting { setting: "part", value: text.to_owned(), reason })
            }
        }
    }
}

impl Found {
    /// Leaves the files of other parts alone.
    pub(super) fn only(&mut self, part: FilePart) {
        let total: u64 = self.files.iter().map(|file| file.n_bytes).sum();
        let mut before = 0;
        let (own, others) = std::mem::take(&mut self.files).into_iter().partition(|file: &FoundFile| {
            let start = before;
            before += file.n_bytes;
            part.has(start, file.n_bytes, total)
        });
        self.files = own;
        self.elsewhere = others.into_iter().map(|file: FoundFile| (file.origin, ())).collect();
    }
}

/// A root of the collection that does not exist any more, or holds nothing to read.
pub(crate) struct GoneRoot {
    pub(super) root: Root,
    /// The walk's error.
    pub(super) error: corpus::Error,
}

/// Walks the roots; what is not read is told in `report`.
pub(super) fn find(
    roots: &[Root],
    known: Option<&Manifest>,
    options: &ReadOptions,
    report: &mut IndexReport,
) -> Result<Found> {
    let mut found = Found::default();
    for root in roots {
        let walk = match corpus::walk(root, options) {
            Ok(walk) => walk,
            Err(error) if is_gone(root, known, &error) => {
                found.gone.push(GoneRoot { root: root.clone(), error });
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        found.files.extend(walk.files);
        found.unread.extend(walk.no_text.into_iter().map(|origin| (origin, NO_TEXT.to_owned())));
        found.unread.extend(walk.unread.iter().map(|unread| (unread.origin.clone(), unread.reason.clone())));
        report.warnings.extend(walk.raw.into_iter().map(raw_text));
        let issue = |path, reason| Issue { path, reason };
        report.unread.extend(walk.unread.into_iter().map(|unread| issue(unread.path, unread.reason)));
        report.skipped.extend(walk.skipped.into_iter().map(|skipped| issue(skipped.path, skipped.reason)));
    }
    found.files.sort_by(|a, b| a.origin.cmp(&b.origin));
    Ok(found)
}

/// Why a file that was text is not read.
const NO_TEXT: &str = "it is binary now, or too large";

/// The remark on files of a format that has no reader.
fn raw_text(raw: RawText) -> Issue {
    let RawText { extension, first, n_files, remark } = raw;
    let others = if n_files > 1 { format!(" (and {} more)", n_files - 1) } else { String::new() };
    Issue {
        path: first,
        reason: format!("read as plain text, {remark}: there is no reader for .{extension} yet{others}"),
    }
}

/// Says that a root of the collection has vanished or is empty. A path that never was that root is mistyped, not gone.
fn is_gone(root: &Root, known: Option<&Manifest>, error: &corpus::Error) -> bool {
    let Some(recorded) = known.and_then(|manifest| manifest.roots.get(&root.label)) else { return false };
    match error {
        corpus::Error::Io { source, .. } => source.kind() == io::ErrorKind::NotFound && !recorded.exists(),
        corpus::Error::NothingToRead { .. } => true,
        _ => false,
    }
}

/// The path without links, or as it stands where there is nothing.
pub(super) fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}
