//! Changing a collection: files under the roots that may be read, documents handed over, deletion, compaction.
//!
//! Each is one commit, or none. Readers go on with the generation they have; the next request sees the new one.

use cento_collection::Error as CollectionError;
use cento_collection::fs::OsFs;
use cento_collection::write::compact::{CompactOptions, Merge};
use cento_corpus::{self as corpus, Document, Parts, ReadOptions};

use super::roots::Writing;
use super::{Service, Which};
use crate::api::{self, Request as _};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::ingest::cache::{self, CacheStatus};
use crate::ingest::delete::delete_selected;
use crate::ingest::writer::add::{self, HANDED_OVER};
use crate::ingest::writer::create;
use crate::ingest::{self, IndexOptions, IndexReport, Progress, Removals};
use crate::source::filter::Filter;
use crate::source::selected::Selection;

/// Documents that a report names, at most.
const NAMED_MAX: usize = 100;

impl Service {
    /// True if collections may be changed.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.options.writing.is_some()
    }

    /// Brings a collection up to date with files and folders below the roots.
    ///
    /// # Errors
    /// [`Error::Setting`] for a name that leads to none, those of [`index`](crate::index), [`Error::Cancelled`].
    pub fn index(
        &self,
        collection: &str,
        request: &api::IndexRequest,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<api::Written> {
        let roots = self.roots(request)?;
        let removals = if request.allow_empty { Removals::All } else { Removals::Guarded };
        let mut options = IndexOptions { removals, ..self.index_options(cancel) };
        // They are not confined: the user's own files they may have, and not what any client hands over.
        options.read.commands = self.options.writing.clone().unwrap_or_default().commands;
        let folder = self.folder(Which::Name(collection))?;
        let report = ingest::index(&folder, &roots, &options, &OsFs, progress)?;
        Ok(self.written(report))
    }

    /// The files and folders that a request names, if all of them may be read.
    ///
    /// # Errors
    /// [`Error::Setting`] for a name that leads to none.
    pub fn roots(&self, request: &api::IndexRequest) -> Result<Vec<corpus::Root>> {
        request.check()?;
        let writing = self.options.writing.clone().unwrap_or_default();
        let mut roots = request.paths.iter().map(|path| writing.root(path)).collect::<Result<Vec<_>>>()?;
        roots.sort_by(|a, b| a.label.cmp(&b.label));
        roots.dedup();
        let labels: Vec<String> = roots.iter().map(|root| format!("{}/", root.label)).collect();
        // What lies within another one is read with that.
        roots.retain(|root| !labels.iter().any(|outer| root.label.starts_with(outer.as_str())));
        Ok(roots)
    }

    /// The documents of a request, read as they say.
    ///
    /// # Errors
    /// [`Error::Setting`] for an id that cannot be, [`Error::Corpus`] for a document beyond its budgets.
    pub fn documents(request: &api::AddRequest) -> Result<Vec<Document>> {
        request.check()?;
        let document = |new: &api::NewDocument| {
            let parts = Parts {
                id: new.id.clone(),
                origin: HANDED_OVER.to_owned(),
                format: new.format.into(),
                title: new.title.clone(),
                text: new.text.clone(),
                metadata: new.metadata.clone(),
            };
            Ok(corpus::from_parts(parts)?)
        };
        request.documents.iter().map(document).collect()
    }

    /// Adds documents to a collection; see [`add`](crate::add).
    ///
    /// # Errors
    /// Those of [`add`](crate::add), [`Error::Cancelled`].
    pub fn add(
        &self,
        collection: &str,
        documents: Vec<Document>,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<api::Written> {
        let folder = self.folder(Which::Name(collection))?;
        let report = add::add(&folder, documents, &self.index_options(cancel), &OsFs, progress)?;
        Ok(self.written(report))
    }

    /// Makes an empty collection beside those that are served, which answers from then on.
    ///
    /// # Errors
    /// [`Error::Setting`] for a name that cannot be, and a model that is not here by that name;
    /// [`Error::CollectionTaken`]; those of [`create`](crate::create), [`Error::Cancelled`].
    pub fn create(&self, name: &str, request: &api::CreateRequest, cancel: &Cancel) -> Result<()> {
        request.check()?;
        api::check_name(name)?;
        let place = self.options.writing.as_ref().and_then(|writing| writing.new_collections.as_deref());
        let Some(place) = place else {
            let reason = "cannot be made: this service has no place for new collections".to_owned();
            return Err(Error::Setting { setting: "collection", value: name.to_owned(), reason });
        };
        if self.collections().contains_key(name) {
            return Err(Error::CollectionTaken { name: name.to_owned() });
        }
        let options = request.resolve(self.index_options(cancel))?;
        let folder = place.join(name);
        create::create(&folder, &options, &OsFs)?;
        self.collections.insert(name, folder);
        Ok(())
    }

    /// True if new collections may be made.
    #[must_use]
    pub fn makes_collections(&self) -> bool {
        self.options.writing.as_ref().is_some_and(|writing| writing.new_collections.is_some())
    }

    /// Adds the documents of a file that was handed over; see [`add_file`](crate::add_file).
    ///
    /// # Errors
    /// [`Error::Setting`] for a path that is none; those of [`add_file`](crate::add_file), [`Error::Cancelled`].
    pub fn add_file(
        &self,
        collection: &str,
        path: &str,
        bytes: &[u8],
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<api::Written> {
        api::check_path(path)?;
        let folder = self.folder(Which::Name(collection))?;
        let report = add::add_file(&folder, path, bytes, &self.index_options(cancel), &OsFs, progress)?;
        Ok(self.written(report))
    }

    /// Contents of the embedding cache; none where no cache is known.
    ///
    /// # Errors
    /// Those of [`cache_status`](crate::cache_status).
    pub fn cache(&self) -> Result<Option<CacheStatus>> {
        self.options.cache.as_ref().map(cache::status).transpose()
    }

    /// Deletes the documents of these ids, or those that a filter admits: all of them or, if one is unknown, none.
    ///
    /// # Errors
    /// [`Error::UnknownDocument`], [`Error::Filter`], those of the folder.
    pub fn delete(&self, collection: &str, request: &api::DeleteRequest) -> Result<api::Written> {
        request.check()?;
        let selection = match &request.filter {
            Some(filter) => Selection::Filter(Filter::parse(filter)?),
            None => Selection::Documents(request.ids.clone()),
        };
        let deleted = delete_selected(&self.folder(Which::Name(collection))?, &selection, &OsFs)?;
        let n_removed = deleted.documents.len() as u64;
        Ok(api::Written { generation: deleted.generation, n_removed, ..api::Written::default() })
    }

    /// Merges segments, those that the policy finds or all.
    ///
    /// # Errors
    /// Those of the folder, [`Error::Cancelled`].
    pub fn compact(
        &self,
        collection: &str,
        request: &api::CompactRequest,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<api::Written> {
        let merge = if request.all { Merge::All } else { Merge::Policy };
        let options = CompactOptions { merge, ..CompactOptions::default() };
        let folder = self.folder(Which::Name(collection))?;
        let report = ingest::compact_unless(&folder, &options, cancel, &OsFs, progress)?;
        let (generation, n_merged) = (report.generation, report.n_merged as u64);
        Ok(api::Written { generation, n_merged, ..api::Written::default() })
    }

    /// The words of an error of a writer that its caller can do something about, without a folder of this machine in
    /// them; none for errors of the machine.
    #[must_use]
    pub fn words(&self, error: &Error) -> Option<String> {
        let said = match error {
            Error::LabelTaken { label, .. } => {
                format!("the collection has {label:?} of another folder of this machine")
            }
            Error::Collection(CollectionError::Locked { .. }) => {
                "another process is writing to this collection; ask again when it has ended".to_owned()
            }
            Error::RootGone { n_documents, .. } => format!(
                "nothing is left of the {n_documents} documents that the collection has of it; nothing was changed: \
                 bring it back, or say that they are to go"
            ),
            Error::IdTaken { .. }
            | Error::MostRemoved { .. }
            | Error::Mismatch { .. }
            | Error::NothingToIndex { .. }
            | Error::Corpus(
                corpus::Error::NothingToRead { .. }
                | corpus::Error::NothingRead { .. }
                | corpus::Error::OverBudget { .. }
                | corpus::Error::InvalidUtf8 { .. },
            ) => crate::describe(error),
            _ => return None, // files, models and devices of this machine
        };
        Some(self.options.writing.as_ref().map_or(said.clone(), |writing| writing.without_folders(&said)))
    }

    fn index_options(&self, cancel: &Cancel) -> IndexOptions {
        let Writing { guard, passwords, .. } = self.options.writing.clone().unwrap_or_default();
        IndexOptions {
            model: self.options.model.clone(),
            access: self.options.access.clone(),
            device: self.options.device,
            threads: writer_threads(self.options.threads),
            cache: self.options.cache.clone(),
            read: ReadOptions { passwords, ..ReadOptions::default() },
            guard,
            cancel: cancel.clone(),
            ..IndexOptions::default()
        }
    }

    fn written(&self, report: IndexReport) -> api::Written {
        let writing = self.options.writing.clone().unwrap_or_default();
        let failed = report.failed.iter().chain(&report.unread).take(NAMED_MAX).map(|issue| api::FailedDocument {
            document: writing.without_folders(&issue.path),
            reason: writing.without_folders(&issue.reason),
        });
        api::Written {
            generation: report.generation,
            n_added: report.n_added,
            n_changed: report.n_changed,
            n_unchanged: report.n_unchanged,
            n_removed: report.n_removed,
            n_chunks: report.n_chunks,
            n_tokens_embedded: report.n_tokens_embedded,
            n_skipped: report.skipped.len() as u64,
            n_failed: (report.failed.len() + report.unread.len()) as u64,
            n_kept: report.kept.len() as u64,
            n_merged: report.compaction.as_ref().map_or(0, |compaction| compaction.n_merged as u64),
            failed: failed.collect(),
        }
    }
}

/// Threads that a writer embeds on beside searches: half of the cores, unless a number is asked for.
fn writer_threads(asked: usize) -> usize {
    let half = || std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
    if asked == 0 { half() } else { asked }
}
