//! The ledger of an ingest: what becomes of each document, new, changed, unchanged or vanished.
//!
//! Cost: about 50 bytes of memory for each document that is read, and as many for each that the collection has.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use cento_corpus::guard::FileDocuments;
use cento_corpus::{self as corpus, Document, FoundFile, Root};
use roaring::RoaringBitmap;

use super::found::{Found, GoneRoot};
use super::prepare::ContentHash;
use super::{IndexReport, Issue, Removals};
use crate::error::{Error, Result};
use crate::plural::counted;
use cento_collection::format::files::FileReport;
use cento_collection::format::losses::{self, Loss, Stale};
use cento_collection::format::manifest::Manifest;
use cento_collection::format::segment::Segment;
use cento_collection::keep::generation::Generation;
use cento_collection::keep::reports::{self, Reports};

/// First half of BLAKE3 of an id.
type IdHash = [u8; 16];

/// Where a live document of the collection is.
#[derive(Clone, Copy)]
struct Known {
    segment: u32,
    document: u32,
}

/// A document of the collection, as it is stored.
struct Stored<'a> {
    segment: usize,
    document: u32,
    id: &'a str,
    origin: &'a str,
    hash: ContentHash,
    /// Its links were looked for: older versions did not.
    has_links: bool,
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
    pub(super) fn is_full(&self) -> bool {
        self.documents.len() >= GROUP_DOCUMENTS || self.n_bytes >= GROUP_BYTES
    }

    pub(super) fn extend(&mut self, document: Option<(Document, ContentHash)>) {
        self.n_bytes += document.as_ref().map_or(0, |(document, _)| document.text.len());
        self.documents.extend(document);
    }

    /// Empties the group.
    pub(crate) fn take(&mut self) -> Vec<(Document, ContentHash)> {
        std::mem::take(self).documents
    }
}

/// Documents that were read.
#[derive(Default)]
struct Seen {
    /// For each id where its origin is.
    by_id: HashMap<IdHash, u32>,
    /// Origins in the order in which they were read; documents of one file share one.
    origins: Vec<String>,
}

impl Seen {
    fn insert(&mut self, document: &Document) {
        if self.origins.last() != Some(&document.origin) {
            self.origins.push(document.origin.clone());
        }
        self.by_id.insert(id_hash(&document.id), self.origins.len() as u32 - 1);
    }

    /// The origin of the document of that id.
    fn origin(&self, id: &str) -> Option<&str> {
        self.by_id.get(&id_hash(id)).map(|&at| self.origins[at as usize].as_str())
    }
}

/// Compares what is read with what the collection has.
pub(crate) struct Ledger<'a> {
    snapshot: Option<&'a Generation>,
    /// Labels of the roots of this run.
    labels: Vec<String>,
    known: HashMap<IdHash, Known>,
    seen: Seen,
    /// Origins of files and folders that could not be read whole, and why: what the collection has of them stays.
    unread: BTreeMap<String, String>,
    /// Origins of files that this run leaves alone.
    elsewhere: BTreeMap<String, ()>,
    /// Documents that stay because something could not be read.
    stale: Vec<Stale>,
    /// Documents that die with the next commit, by segment.
    pub(crate) replaced: BTreeMap<usize, RoaringBitmap>,
    pub(crate) report: IndexReport,
    /// The reports on files after this run; none for one over no files.
    pub(crate) files: Option<Reports>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(
        snapshot: Option<&'a Generation>,
        roots: &[Root],
        found: &Found,
        report: IndexReport,
    ) -> Result<Self> {
        Ok(Self {
            snapshot,
            labels: roots.iter().map(|root| root.label.clone()).collect(),
            known: snapshot.map(known_documents).transpose()?.unwrap_or_default(),
            seen: Seen::default(),
            unread: found.unread.clone(),
            elsewhere: found.elsewhere.clone(),
            stale: Vec::new(),
            replaced: BTreeMap::new(),
            report,
            files: None,
        })
    }

    pub(crate) fn n_documents(&self) -> u64 {
        self.seen.by_id.len() as u64
    }

    pub(crate) fn fail(&mut self, file: &FoundFile, error: &corpus::Error) {
        let said = crate::describe(error);
        // The issue names the file already.
        let reason = said.strip_prefix(&format!("{}: ", file.path.display())).unwrap_or(&said).to_owned();
        let issue = Issue { path: file.origin.clone(), reason };
        self.unread.entry(file.origin.clone()).or_insert_with(|| issue.reason.clone());
        self.file_report(file).fail(&issue.reason);
        match error {
            corpus::Error::Io { .. } => self.report.unread.push(issue),
            _ => self.report.failed.push(issue),
        }
    }

    /// Takes down what the reader of a file says of it, now that it has ended.
    pub(crate) fn was_read(&mut self, file: &FoundFile, documents: &FileDocuments) {
        self.report.notes.extend(documents.notes());
        self.report.confinement = self.report.confinement.or(documents.confinement());
        if let Some(extraction) = documents.extraction() {
            self.file_report(file).extraction = Some(extraction.clone());
        }
    }

    /// The report on the file that is being read.
    fn file_report(&mut self, file: &FoundFile) -> &mut FileReport {
        let files = &mut self.report.files;
        if files.last().is_none_or(|last| last.origin != file.origin) {
            files.push(FileReport::new(file));
        }
        files.last_mut().expect("one was pushed if there was none")
    }

    /// Judges the reports on the files of this run, and joins them with those on files elsewhere.
    pub(crate) fn settle_files(&mut self, folder: &Path) {
        let files: Vec<FileReport> =
            std::mem::take(&mut self.report.files).into_iter().map(FileReport::judged).collect();
        let before = self.snapshot.map(|snapshot| &snapshot.manifest);
        let (reports, remark) = Reports::after(folder, before, files.clone(), |origin| self.is_covered(origin));
        self.report.notes.extend(remark);
        self.report.files = files;
        reports::sort(&mut self.report.files);
        self.files = Some(reports);
    }

    /// Reads on until the group is full (true: the file may have more) or the file ends.
    ///
    /// # Errors
    /// A document would displace one of another file.
    pub(crate) fn fill(&mut self, group: &mut Group, file: &FoundFile, documents: &mut FileDocuments) -> Result<bool> {
        while !group.is_full() {
            match documents.next() {
                None => return Ok(false),
                Some(Err(error)) => self.fail(file, &error),
                Some(Ok(document)) => group.extend(self.take(document)?),
            }
        }
        Ok(true)
    }

    /// Takes back a document that was to get rows and cannot: what the collection has of it stays.
    pub(crate) fn refuse(&mut self, document: &Document, error: &dyn std::error::Error) {
        let reason = format!("{}: {}", document.id, crate::describe(error));
        self.report.failed.push(Issue { path: document.origin.clone(), reason });
        let Some(known) = self.known.get(&id_hash(&document.id)) else {
            self.report.n_added -= 1;
            return;
        };
        self.report.n_changed -= 1;
        self.report.kept.push(document.id.clone());
        let (origin, documents) = (document.origin.clone(), vec![document.id.clone()]);
        self.stale.push(Stale { origin, reason: crate::describe(error), documents, n_documents: 1 });
        let segment = known.segment as usize;
        if let Some(replaced) = self.replaced.get_mut(&segment) {
            replaced.remove(known.document);
            if replaced.is_empty() {
                self.replaced.remove(&segment);
            }
        }
    }

    /// Gives the document back if it needs rows.
    pub(super) fn take(&mut self, document: Document) -> Result<Option<(Document, ContentHash)>> {
        let known = self.stored(&document.id)?;
        let elsewhere = known.as_ref().map(|known| known.origin);
        let elsewhere = elsewhere.filter(|origin| *origin != document.origin && self.is_there(origin));
        if let Some(other) = self.seen.origin(&document.id).or(elsewhere) {
            let other = other.to_owned();
            return Err(Error::IdTaken { origin: document.origin, id: document.id, other });
        }
        let warnings =
            document.warnings.iter().map(|reason| Issue { path: document.id.clone(), reason: reason.clone() });
        self.report.warnings.extend(warnings);
        self.seen.insert(&document);
        let hash = content_hash(&document);
        match known {
            Some(known) if known.hash == hash && known.origin == document.origin && known.has_links => {
                self.report.n_unchanged += 1;
                return Ok(None);
            }
            Some(known) => {
                self.replaced.entry(known.segment).or_default().insert(known.document);
                self.report.n_changed += 1;
            }
            None => self.report.n_added += 1,
        }
        Ok(Some((document, hash)))
    }

    /// The document that the collection has under an id.
    fn stored(&self, id: &str) -> Result<Option<Stored<'a>>> {
        let Some(known) = self.known.get(&id_hash(id)) else { return Ok(None) };
        let segment = &self.snapshot.expect("what is known is of a snapshot").segments[known.segment as usize];
        Ok(Some(stored(known.segment as usize, segment, known.document)?))
    }

    /// All that the collection has under the roots of this run.
    fn covered(&self) -> impl Iterator<Item = Result<Stored<'a>>> {
        let segments = self.snapshot.into_iter().flat_map(|snapshot| snapshot.segments.iter().enumerate());
        let all = segments
            .flat_map(|(at, segment)| segment.live_documents().map(move |document| Ok(stored(at, segment, document)?)));
        all.filter(|stored| stored.as_ref().map_or(true, |stored| self.is_covered(stored.origin)))
    }

    /// Refuses a run whose roots are gone, unless they held nothing that is to be kept.
    pub(crate) fn check_roots(&self, gone: Vec<GoneRoot>, removals: Removals) -> Result<()> {
        for GoneRoot { root, error } in gone {
            let label = [root.label];
            let mut n_documents = 0;
            for stored in self.covered() {
                n_documents += u64::from(is_covered(&label, stored?.origin));
            }
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
        let (mut kept, mut gone) = (BTreeMap::<String, Vec<String>>::new(), BTreeMap::<usize, RoaringBitmap>::new());
        let (mut first, mut n_lost, mut n_documents) = (None, 0, 0);
        for stored in self.covered() {
            let Stored { segment, document, id, origin, .. } = stored?;
            n_documents += 1;
            if self.seen.origin(id).is_some() {
                continue;
            }
            // A record has its file's id and its own, or its own alone: of earlier versions, and in a BEIR corpus.
            let is_renamed = self.seen.origin(&format!("{origin}/{id}")).is_some()
                || corpus::own_id(id, origin).is_some_and(|own| self.seen.origin(own) == Some(origin));
            if let Some(place) = unread_place(origin, &self.unread).filter(|_| !is_renamed) {
                kept.entry(place.to_owned()).or_default().push(id.to_owned());
                continue;
            }
            gone.entry(segment).or_default().insert(document);
            if !is_renamed {
                n_lost += 1;
                first = first.filter(|first| *first < id).or(Some(id));
            }
        }
        if let Some(first) = first.filter(|_| n_lost >= REMOVED_ASK_MIN && n_lost * 2 > n_documents)
            && removals == Removals::Guarded
        {
            return Err(Error::MostRemoved { n_removed: n_lost, n_documents, first: first.to_owned() });
        }
        for (segment, documents) in gone {
            self.report.n_removed += documents.len();
            *self.replaced.entry(segment).or_default() |= documents;
        }
        for (origin, mut documents) in kept {
            documents.sort();
            self.report.kept.extend(documents.iter().cloned());
            let (reason, n_documents) = (self.unread[&origin].clone(), documents.len() as u64);
            documents.truncate(Stale::NAMED_MAX);
            self.stale.push(Stale { origin, reason, documents, n_documents });
        }
        self.report.kept.sort();
        Ok(())
    }

    /// The stale documents after this run: those that it met, and those elsewhere that it has not seen.
    pub(crate) fn stale(&self, manifest: Option<&Manifest>) -> Vec<Stale> {
        let before = manifest.iter().flat_map(|manifest| &manifest.stale);
        let elsewhere = before.filter(|stale| !self.is_covered(&stale.origin)).cloned();
        let mut stale: Vec<Stale> = elsewhere.chain(self.stale.iter().cloned()).collect();
        stale.sort_by(|a, b| a.origin.cmp(&b.origin));
        stale
    }

    /// Losses of a collection that this run leaves: documents that it did not come across, or could not read.
    pub(crate) fn remaining_losses(&self, manifest: &Manifest) -> Vec<Loss> {
        // A run that could not read all has not seen what became of documents without a name.
        let has_seen_all = self.report.unread.is_empty() && self.elsewhere.is_empty();
        let seen_whole = if has_seen_all { self.labels.as_slice() } else { &[] };
        losses::remaining(&manifest.losses, seen_whole, &manifest.roots, |document| {
            self.seen.origin(&document.id) == Some(document.origin.as_str())
                || self.is_covered(&document.origin) && unread_place(&document.origin, &self.unread).is_none()
        })
    }

    /// True if this run has something to say about losses or stale documents.
    pub(crate) fn settles_losses(&self, snapshot: Option<&Generation>) -> bool {
        snapshot.is_some_and(|snapshot| {
            let manifest = &snapshot.manifest;
            self.remaining_losses(manifest) != manifest.losses || self.stale(Some(manifest)) != manifest.stale
        })
    }

    /// True if a file of the collection is still where it was, as far as this run can tell.
    fn is_there(&self, origin: &str) -> bool {
        !self.is_covered(origin) || unread_place(origin, &self.unread).is_some()
    }

    /// True if the documents of a file are this run's to add and to remove.
    fn is_covered(&self, origin: &str) -> bool {
        is_covered(&self.labels, origin) && unread_place(origin, &self.elsewhere).is_none()
    }

    /// True if the run is over a part of the files.
    pub(crate) fn is_part(&self) -> bool {
        !self.elsewhere.is_empty()
    }

    /// Why a new collection would be empty.
    pub(crate) fn nothing(&self) -> Error {
        let report = &self.report;
        let mut failed = report.unread.iter().chain(&report.failed);
        let n_failed = failed.clone().count();
        let first = failed.next().map(|issue| format!("; first: {}: {}", issue.path, issue.reason)).unwrap_or_default();
        let reason = format!(
            "no document could be read ({} failed, {} left out{first})",
            counted(n_failed as u64, "file"),
            report.skipped.len()
        );
        Error::NothingToIndex { reason }
    }
}

/// The one of `places` that `origin` is, or the outermost of those that it lies in.
fn unread_place<'p, T>(origin: &str, places: &'p BTreeMap<String, T>) -> Option<&'p str> {
    let folders = origin.match_indices('/').map(|(end, _)| &origin[..end]);
    folders.chain([origin]).find_map(|place| places.get_key_value(place).map(|(place, _)| place.as_str()))
}

/// True if a file lies under one of the roots.
fn is_covered(labels: &[String], origin: &str) -> bool {
    let mut rests = labels.iter().filter_map(|label| origin.strip_prefix(label.as_str()));
    rests.any(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn known_documents(snapshot: &Generation) -> Result<HashMap<IdHash, Known>> {
    let mut known = HashMap::new();
    for (at, segment) in snapshot.segments.iter().enumerate() {
        for document in segment.live_documents() {
            known.insert(id_hash(segment.document_id(document)?), Known { segment: at as u32, document });
        }
    }
    Ok(known)
}

fn stored(at: usize, segment: &Segment, document: u32) -> Result<Stored<'_>> {
    let record = segment.document(document)?;
    let (id, origin) = (segment.documents.text(record.id)?, segment.documents.text(record.origin)?);
    let has_links = record.n_links().is_some();
    Ok(Stored { segment: at, document, id, origin, hash: record.hash, has_links })
}

fn id_hash(id: &str) -> IdHash {
    let mut hash = IdHash::default();
    hash.copy_from_slice(&blake3::hash(id.as_bytes()).as_bytes()[..size_of::<IdHash>()]);
    hash
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
    // Those of HTML are not part of the text.
    for corpus::Link { start, end, kind, target } in &document.links {
        field(target.as_bytes());
        field(&kind.number().to_le_bytes());
        field(&(*start as u64).to_le_bytes());
        field(&(*end as u64).to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}
