//! The ledger of an ingest: what becomes of each document, new, changed, unchanged or vanished.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cento_corpus::{self as corpus, Document, FoundFile, Root};
use roaring::RoaringBitmap;

use super::{IndexReport, Issue};
use crate::error::{Error, Result};
use crate::losses::{self, Loss};
use crate::manifest::Manifest;
use crate::searcher::Snapshot;

/// Blake3 of everything of a document that shapes its rows or its citations.
pub(crate) type ContentHash = [u8; 32];

/// Where a live document of the collection is.
struct Known {
    segment: usize,
    document: u32,
    hash: ContentHash,
    origin: String,
}

/// Documents chunked together, over all threads.
const GROUP_DOCUMENTS: usize = 128;
/// Text that makes a group full sooner: a few long documents are work enough, and memory.
const GROUP_BYTES: usize = 8 << 20;

/// Documents that need rows, from one file or several.
#[derive(Default)]
pub(crate) struct Group {
    documents: Vec<(Document, ContentHash)>,
    n_bytes: usize,
}

impl Group {
    fn is_full(&self) -> bool {
        self.documents.len() >= GROUP_DOCUMENTS || self.n_bytes >= GROUP_BYTES
    }

    fn extend(&mut self, document: Option<(Document, ContentHash)>) {
        self.n_bytes += document.as_ref().map_or(0, |(document, _)| document.text.len());
        self.documents.extend(document);
    }

    /// Empties the group.
    pub(crate) fn take(&mut self) -> Vec<(Document, ContentHash)> {
        std::mem::take(self).documents
    }
}

/// Compares what is read with what the collection has.
pub(crate) struct Ledger {
    /// Labels of the roots of this run.
    labels: Vec<String>,
    /// Origins of the files found under them.
    found: BTreeSet<String>,
    known: HashMap<String, Known>,
    /// Origin of each document read, by id.
    seen: BTreeMap<String, String>,
    /// Origins that could not be read whole: what the collection has of them stays.
    unread: BTreeSet<String>,
    /// Documents that die with the next commit, by segment.
    pub(crate) replaced: BTreeMap<usize, RoaringBitmap>,
    pub(crate) report: IndexReport,
}

impl Ledger {
    pub(crate) fn new(
        snapshot: Option<&Snapshot>,
        roots: &[Root],
        files: &[FoundFile],
        report: IndexReport,
    ) -> Result<Self> {
        Ok(Self {
            labels: roots.iter().map(|root| root.label.clone()).collect(),
            found: files.iter().map(|file| file.origin.clone()).collect(),
            known: snapshot.map(known_documents).transpose()?.unwrap_or_default(),
            seen: BTreeMap::new(),
            unread: BTreeSet::new(),
            replaced: BTreeMap::new(),
            report,
        })
    }

    pub(crate) fn n_documents(&self) -> u64 {
        self.seen.len() as u64
    }

    pub(crate) fn fail(&mut self, file: &FoundFile, error: &corpus::Error) {
        self.unread.insert(file.origin.clone());
        self.report.failed.push(Issue { path: file.origin.clone(), reason: crate::describe(error) });
    }

    /// Reads on until the group is full (true: the file may have more) or the file ends.
    pub(crate) fn fill(&mut self, group: &mut Group, file: &FoundFile, documents: &mut corpus::Documents) -> bool {
        while !group.is_full() {
            match documents.next() {
                None => return false,
                Some(Err(error)) => self.fail(file, &error),
                Some(Ok(document)) => group.extend(self.take(document)),
            }
        }
        true
    }

    /// Gives the document back if it needs rows.
    fn take(&mut self, document: Document) -> Option<(Document, ContentHash)> {
        let elsewhere = self.known.get(&document.id).map(|known| &known.origin);
        let elsewhere = elsewhere.filter(|origin| **origin != document.origin && self.is_there(origin));
        if let Some(other) = self.seen.get(&document.id).or(elsewhere) {
            let reason =
                format!("its id {:?} is already that of a document of {other}; the first one stays", document.id);
            self.report.failed.push(Issue { path: document.origin, reason });
            return None;
        }
        let warnings =
            document.warnings.iter().map(|reason| Issue { path: document.id.clone(), reason: reason.clone() });
        self.report.warnings.extend(warnings);
        self.seen.insert(document.id.clone(), document.origin.clone());
        let hash = content_hash(&document);
        match self.known.get(&document.id) {
            Some(known) if known.hash == hash && known.origin == document.origin => {
                self.report.n_unchanged += 1;
                return None;
            }
            Some(known) => {
                self.replaced.entry(known.segment).or_default().insert(known.document);
                self.report.n_changed += 1;
            }
            None => self.report.n_added += 1,
        }
        Some((document, hash))
    }

    /// Documents under the roots of this run that were not met any more die, unless their file could not be read.
    pub(crate) fn tombstone_vanished(&mut self) {
        for (id, known) in &self.known {
            let is_covered = is_covered(&self.labels, &known.origin);
            if is_covered && !self.seen.contains_key(id) && !self.unread.contains(&known.origin) {
                self.replaced.entry(known.segment).or_default().insert(known.document);
                self.report.n_removed += 1;
            }
        }
    }

    /// What this run leaves of the losses of a collection: documents that it did not come across, or could not read.
    pub(crate) fn remaining_losses(&self, manifest: &Manifest) -> Vec<Loss> {
        losses::remaining(&manifest.losses, &self.labels, &manifest.roots, |document| {
            is_covered(&self.labels, &document.origin) && !self.unread.contains(&document.origin)
        })
    }

    /// Whether this run has something to say about losses.
    pub(crate) fn settles_losses(&self, snapshot: Option<&Snapshot>) -> bool {
        snapshot.is_some_and(|snapshot| self.remaining_losses(&snapshot.manifest) != snapshot.manifest.losses)
    }

    /// Whether a file of the collection is still where it was, as far as this run can tell.
    fn is_there(&self, origin: &str) -> bool {
        !is_covered(&self.labels, origin) || self.found.contains(origin)
    }

    /// Why a new collection would be empty.
    pub(crate) fn nothing(&self) -> Error {
        let report = &self.report;
        let first =
            report.failed.first().map(|issue| format!("; first: {}: {}", issue.path, issue.reason)).unwrap_or_default();
        let reason = format!(
            "no document could be read ({} files failed, {} were left out{first})",
            report.failed.len(),
            report.skipped.len()
        );
        Error::NothingToIndex { reason }
    }
}

/// Whether a file lies under one of the roots.
fn is_covered(labels: &[String], origin: &str) -> bool {
    let mut rests = labels.iter().filter_map(|label| origin.strip_prefix(label.as_str()));
    rests.any(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn known_documents(snapshot: &Snapshot) -> Result<HashMap<String, Known>> {
    let mut known = HashMap::new();
    for (at, segment) in snapshot.segments.iter().enumerate() {
        for document in segment.live_documents() {
            let record = segment.document(document)?;
            let origin = segment.documents.text(record.origin)?.to_owned();
            known.insert(
                segment.documents.text(record.id)?.to_owned(),
                Known { segment: at, document, hash: record.hash, origin },
            );
        }
    }
    Ok(known)
}

fn content_hash(document: &Document) -> ContentHash {
    let mut hasher = blake3::Hasher::new();
    let mut field = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    field(document.text.as_bytes());
    field(document.title.as_bytes());
    field(&[u8::from(document.kind == corpus::TextKind::Extracted)]);
    for (key, value) in &document.metadata {
        field(key.as_bytes());
        field(serde_json::to_string(value).expect("metadata is always JSON").as_bytes());
    }
    for section in &document.sections {
        field(section.heading.as_bytes());
        field(&[section.level]);
        field(&(section.span.start as u64).to_le_bytes());
        field(&(section.span.end as u64).to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}
