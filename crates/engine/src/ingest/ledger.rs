//! The ledger of an ingest: what becomes of each document, new, changed, unchanged or vanished.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cento_corpus::{self as corpus, Document, FoundFile, Root, lies_in};
use roaring::RoaringBitmap;

use super::found::{Found, GoneRoot};
use super::{IndexReport, Issue, Removals};
use crate::error::{Error, Result};
use cento_collection::format::losses::{self, Loss};
use cento_collection::format::manifest::Manifest;
use cento_collection::keep::generation::Generation;

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

/// Fewer documents than this may go without a word, even if they are most of a collection: a person removes a few
/// files by hand, while a disk that is not there takes more. A root that is empty altogether asks at any size.
const REMOVED_ASK_MIN: u64 = 10;

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
    /// Origins of files and folders that could not be read whole: what the collection has of them stays.
    unread: BTreeSet<String>,
    /// Documents that die with the next commit, by segment.
    pub(crate) replaced: BTreeMap<usize, RoaringBitmap>,
    pub(crate) report: IndexReport,
}

impl Ledger {
    pub(crate) fn new(
        snapshot: Option<&Generation>,
        roots: &[Root],
        found: &Found,
        report: IndexReport,
    ) -> Result<Self> {
        Ok(Self {
            labels: roots.iter().map(|root| root.label.clone()).collect(),
            found: found.files.iter().map(|file| file.origin.clone()).collect(),
            known: snapshot.map(known_documents).transpose()?.unwrap_or_default(),
            seen: BTreeMap::new(),
            unread: found.unread.clone(),
            replaced: BTreeMap::new(),
            report,
        })
    }

    pub(crate) fn n_documents(&self) -> u64 {
        self.seen.len() as u64
    }

    pub(crate) fn fail(&mut self, file: &FoundFile, error: &corpus::Error) {
        self.unread.insert(file.origin.clone());
        let issue = Issue { path: file.origin.clone(), reason: crate::describe(error) };
        match error {
            corpus::Error::Io { .. } => self.report.unread.push(issue),
            _ => self.report.failed.push(issue),
        }
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

    /// Refuses a run whose roots are gone, unless they held nothing that is to be kept.
    pub(crate) fn check_roots(&self, gone: Vec<GoneRoot>, removals: Removals) -> Result<()> {
        for GoneRoot { root, error } in gone {
            let label = [root.label];
            let n_documents = self.known.values().filter(|known| is_covered(&label, &known.origin)).count() as u64;
            if n_documents == 0 {
                return Err(error.into());
            }
            if removals == Removals::Guarded {
                return Err(Error::RootGone { path: root.path, n_documents, reason: crate::describe(&error) });
            }
        }
        Ok(())
    }

    /// Documents under the roots of this run that were not met any more die, unless their file could not be read.
    ///
    /// # Errors
    /// More than half of the documents under the roots would go, and that was not allowed.
    pub(crate) fn tombstone_vanished(&mut self, removals: Removals) -> Result<()> {
        let covered = || self.known.iter().filter(|(_, known)| is_covered(&self.labels, &known.origin));
        let unmet = covered().filter(|(id, _)| !self.seen.contains_key(*id));
        let (kept, gone): (Vec<_>, Vec<_>) = unmet.partition(|(_, known)| lies_in(&known.origin, &self.unread));
        let (n_removed, n_documents) = (gone.len() as u64, covered().count() as u64);
        let first = gone.iter().map(|(id, _)| *id).min();
        if let Some(first) = first.filter(|_| n_removed >= REMOVED_ASK_MIN && n_removed * 2 > n_documents)
            && removals == Removals::Guarded
        {
            return Err(Error::MostRemoved { n_removed, n_documents, first: first.clone() });
        }
        for (_, known) in gone {
            self.replaced.entry(known.segment).or_default().insert(known.document);
        }
        self.report.n_removed += n_removed;
        self.report.kept.extend(kept.into_iter().map(|(id, _)| id.clone()));
        self.report.kept.sort();
        Ok(())
    }

    /// Losses of a collection that this run leaves: documents that it did not come across, or could not read.
    pub(crate) fn remaining_losses(&self, manifest: &Manifest) -> Vec<Loss> {
        // A run that could not read all has not seen what became of documents without a name.
        let seen_whole = if self.report.unread.is_empty() { self.labels.as_slice() } else { &[] };
        losses::remaining(&manifest.losses, seen_whole, &manifest.roots, |document| {
            is_covered(&self.labels, &document.origin) && !lies_in(&document.origin, &self.unread)
        })
    }

    /// True if this run has something to say about losses.
    pub(crate) fn settles_losses(&self, snapshot: Option<&Generation>) -> bool {
        snapshot.is_some_and(|snapshot| self.remaining_losses(&snapshot.manifest) != snapshot.manifest.losses)
    }

    /// True if a file of the collection is still where it was, as far as this run can tell.
    fn is_there(&self, origin: &str) -> bool {
        !is_covered(&self.labels, origin) || self.found.contains(origin) || lies_in(origin, &self.unread)
    }

    /// Why a new collection would be empty.
    pub(crate) fn nothing(&self) -> Error {
        let report = &self.report;
        let mut failed = report.unread.iter().chain(&report.failed);
        let n_failed = failed.clone().count();
        let first = failed.next().map(|issue| format!("; first: {}: {}", issue.path, issue.reason)).unwrap_or_default();
        let reason = format!(
            "no document could be read ({n_failed} files failed, {} were left out{first})",
            report.skipped.len()
        );
        Error::NothingToIndex { reason }
    }
}

/// True if a file lies under one of the roots.
fn is_covered(labels: &[String], origin: &str) -> bool {
    let mut rests = labels.iter().filter_map(|label| origin.strip_prefix(label.as_str()));
    rests.any(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn known_documents(snapshot: &Generation) -> Result<HashMap<String, Known>> {
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
