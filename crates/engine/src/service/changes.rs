//! The files that changed since a collection was committed: whoever asks should know that an answer may be old.
//!
//! A file counts if its time of change is later than the commit's, or if it is gone; one that is new does not, as
//! nothing is walked. A commit that reads no files, as of a compaction, hides what changed before it.
//! Cost: a look at each file, at most every [`FRESH`]; the names of the files once a generation.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::cancel::Cancel;
use crate::error::Result;
use crate::retrieve::searcher::Searcher;
use crate::source::selected::Selection;

/// The time that a count is given again.
const FRESH: Duration = Duration::from_secs(5);

/// Files that are looked at; of a larger collection the first ones.
const FILES_MAX: usize = 20_000;

/// Files looked at between two looks at the token.
const STEP: usize = 256;

/// The files of a generation, and how many of them had changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    generation: Option<u64>,
    files: Vec<PathBuf>,
    counted: Option<(Instant, usize)>,
}

impl Changes {
    /// The files of an open collection that changed after its commit, or are gone.
    ///
    /// # Errors
    /// Those of [`Searcher::list`], [`Error::Cancelled`](crate::Error::Cancelled).
    pub(super) fn count(&mut self, searcher: &Searcher, committed: SystemTime, cancel: &Cancel) -> Result<usize> {
        let generation = Some(searcher.manifest().generation);
        if self.generation != generation {
            *self = Self { generation, files: files(searcher)?, counted: None };
        }
        if let Some((_, n_changed)) = self.counted.filter(|(at, _)| at.elapsed() < FRESH) {
            return Ok(n_changed);
        }
        let mut n_changed = 0;
        for files in self.files.chunks(STEP) {
            cancel.check()?;
            n_changed += files.iter().filter(|file| is_changed(file, committed)).count();
        }
        self.counted = Some((Instant::now(), n_changed));
        Ok(n_changed)
    }
}

/// The files that the documents came from, those alone whose root is known.
fn files(searcher: &Searcher) -> Result<Vec<PathBuf>> {
    let roots = &searcher.manifest().roots;
    let listed = searcher.list(&Selection::All)?;
    let origins: BTreeSet<&str> = listed.iter().map(|document| document.origin.as_str()).collect();
    let file = |origin: &str| {
        // A label may have slashes itself, as that of a folder below a root.
        let ends = std::iter::once(origin.len()).chain(origin.rmatch_indices('/').map(|(end, _)| end));
        let (root, rest) = ends.filter_map(|end| Some((roots.get(&origin[..end])?, &origin[end..]))).next()?;
        Some(if rest.is_empty() { root.clone() } else { root.join(&rest[1..]) })
    };
    Ok(origins.into_iter().filter_map(file).take(FILES_MAX).collect())
}

fn is_changed(file: &Path, committed: SystemTime) -> bool {
    let modified = std::fs::metadata(file).and_then(|found| found.modified());
    modified.map_or(true, |modified| modified > committed)
}
