//! What Hugging Face's own tools downloaded before: `models--owner--name/snapshots/<commit>`, links to
//! `blobs/<checksum>`.
//!
//! Source: huggingface_hub's cache. It is read, and never written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cento_collection::fs::read_bounded;

use super::listing::{Checksum, Entry, Listing};
use super::origin::{Order, Origin};
use super::wanted::{Wanted, is_commit};
use crate::error::{Failure, Halt};
use crate::incoming::Incoming;
use crate::progress::Progress;

/// Folders below a snapshot that are looked into.
const DEPTH_MAX: usize = 3;
/// A longer file is no reference to a commit.
const REFERENCE_BYTES_MAX: u64 = 64;
/// Digits of a whole commit.
const COMMIT_DIGITS: usize = 40;

/// A repository in the cache.
pub(crate) struct Cached {
    folder: PathBuf,
    revision: String,
}

impl Cached {
    /// Nothing where the cache does not know the repository.
    pub(crate) fn find(cache: &Path, wanted: &Wanted) -> Option<Self> {
        let folder = cache.join(format!("models--{}", wanted.repository.replace('/', "--")));
        let revision = wanted.revision.clone().unwrap_or_else(|| "main".to_owned());
        folder.join("snapshots").is_dir().then_some(Self { folder, revision })
    }

    fn commit(&self) -> Result<String, Failure> {
        if self.revision.len() == COMMIT_DIGITS && is_commit(&self.revision) {
            return Ok(self.revision.clone());
        }
        read_bounded(&self.folder.join("refs").join(&self.revision), REFERENCE_BYTES_MAX)
            .ok()
            .and_then(|bytes| Some(String::from_utf8(bytes).ok()?.trim().to_owned()))
            .filter(|commit| commit.len() == COMMIT_DIGITS && is_commit(commit))
            .ok_or_else(|| Failure::NotCached { what: format!("revision {:?}", self.revision) })
    }

    fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder.join("snapshots").join(commit)
    }
}

impl Origin for Cached {
    fn label(&self) -> String {
        self.folder.display().to_string()
    }

    fn listing(&self, _: &mut dyn FnMut(Progress<'_>)) -> Result<Listing, Halt> {
        let commit = self.commit()?;
        let mut files = BTreeMap::new();
        list(&self.snapshot(&commit), "", DEPTH_MAX, &mut files);
        if files.is_empty() {
            return Err(Failure::NotCached { what: format!("files of {commit}") }.into());
        }
        Ok(Listing { commit, license: None, must_vouch: false, files })
    }

    fn bring(
        &self,
        order: &Order<'_>,
        incoming: &mut Incoming,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), Halt> {
        let gone = |error: &std::io::Error| Failure::NotCached { what: format!("{}: {error}", order.entry.path) };
        let path = self.snapshot(order.commit).join(&order.entry.path);
        let mut file = fs::File::open(&path).map_err(|error| gone(&error))?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(incoming.n_bytes())).map_err(|error| gone(&error))?;
        incoming.write_all_of(file, gone)?;
        progress(order.at(incoming.n_bytes()));
        Ok(())
    }
}

/// Adds the files of a folder; what cannot be read is not there.
fn list(folder: &Path, prefix: &str, depth: usize, files: &mut BTreeMap<String, Entry>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (Ok(name), path) = (entry.file_name().into_string(), entry.path()) else { continue };
        let Ok(metadata) = fs::metadata(&path) else { continue };
        let name = format!("{prefix}{name}");
        if metadata.is_file() {
            let blob = fs::read_link(&path).ok();
            let blob = blob.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
            let checksum = blob.map_or(Checksum::None, Checksum::of);
            files.insert(name.clone(), Entry { path: name, size_bytes: metadata.len(), checksum });
        } else if metadata.is_dir() && depth > 1 {
            list(&path, &format!("{name}/"), depth - 1, files);
        }
    }
}
