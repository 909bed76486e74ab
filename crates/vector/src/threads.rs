//! How many threads work: a pool of the caller's choice.

use crate::{Error, Result};

/// Threads to work with: a pool of its own, or the current rayon pool.
pub(crate) struct Threads(Option<rayon::ThreadPool>);

impl Threads {
    /// So many threads; 0 takes those of the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Threads`].
    pub(crate) fn new(n_threads: usize) -> Result<Self> {
        if n_threads == 0 {
            return Ok(Self(None));
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build();
        Ok(Self(Some(pool.map_err(|source| Error::Threads { n_threads, source })?)))
    }

    /// Runs parallel work in there on these threads.
    pub(crate) fn run<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        match &self.0 {
            Some(pool) => pool.install(run),
            None => run(),
        }
    }
}
