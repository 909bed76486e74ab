//! Where the files of a repository come from.

use crate::error::Halt;
use crate::incoming::Incoming;
use crate::progress::Progress;
use crate::repository::listing::{Entry, Listing};

/// A source of whole repositories.
pub(crate) trait Origin {
    /// Its name in progress and errors.
    fn label(&self) -> String;
    /// The files of the revision wanted.
    fn listing(&self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Listing, Halt>;
    /// Writes what is missing of a file.
    fn bring(
        &self,
        order: &Order<'_>,
        incoming: &mut Incoming,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), Halt>;
}

/// A file to be brought.
pub(crate) struct Order<'a> {
    pub(crate) commit: &'a str,
    pub(crate) entry: &'a Entry,
    /// Bytes of files before it.
    pub(crate) n_bytes_before: u64,
    /// Bytes of all files.
    pub(crate) n_bytes: u64,
}

impl Order<'_> {
    /// The event of so many bytes of this file being here.
    pub(crate) fn at(&self, n_bytes: u64) -> Progress<'static> {
        Progress::Bytes { done: self.n_bytes_before + n_bytes, total: self.n_bytes }
    }
}
