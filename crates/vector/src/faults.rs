//! Reads that fail, for tests: a bad sector under any file below a folder.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are lost together.
const PAGE_BYTES: u64 = 4096;

/// All that are at work now.
static AT_WORK: Mutex<Vec<Arc<Plan>>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Plan {
    root: PathBuf,
    fails_at: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    n_reads: usize,
    /// Pages that cannot be read, by file and number: what takes the place of a file is another.
    bad: BTreeSet<(PathBuf, u64, u64)>,
}

/// Has the n-th read below a folder fail, and from then on every read of the same page, as long as it lives.
#[derive(Debug)]
pub struct ReadFault(Arc<Plan>);

impl ReadFault {
    /// The read of this number, from 0, fails.
    pub fn at(root: &Path, n: usize) -> Self {
        let plan = Arc::new(Plan { root: root.to_owned(), fails_at: n, state: Mutex::default() });
        lock(&AT_WORK).push(Arc::clone(&plan));
        Self(plan)
    }

    /// Reads so far.
    pub fn n_reads(&self) -> usize {
        lock(&self.0.state).n_reads
    }

    /// The file whose read failed, if one did.
    pub fn failed(&self) -> Option<PathBuf> {
        lock(&self.0.state).bad.first().map(|(path, ..)| path.clone())
    }
}

impl Drop for ReadFault {
    fn drop(&mut self) {
        lock(&AT_WORK).retain(|plan| !Arc::ptr_eq(plan, &self.0));
    }
}

/// Begins a read of these bytes of a file, which may fail.
///
/// # Errors
/// Where a [`ReadFault`] wants it.
pub fn begin(path: &Path, bytes: Range<u64>) -> io::Result<()> {
    let pages = bytes.start / PAGE_BYTES..=bytes.end.saturating_sub(1).max(bytes.start) / PAGE_BYTES;
    for plan in lock(&AT_WORK).iter().filter(|plan| path.starts_with(&plan.root)) {
        let mut state = lock(&plan.state);
        if state.n_reads == plan.fails_at {
            state.bad.insert((path.to_owned(), file_number(path), *pages.start()));
        }
        state.n_reads += 1;
        let is_bad = |(bad, number, page): &(PathBuf, u64, u64)| {
            bad == path && pages.contains(page) && *number == file_number(path)
        };
        if state.bad.iter().any(is_bad) {
            return Err(io::Error::from_raw_os_error(5)); // EIO
        }
    }
    Ok(())
}

fn file_number(path: &Path) -> u64 {
    path.symlink_metadata().map_or(0, |found| found.ino())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
