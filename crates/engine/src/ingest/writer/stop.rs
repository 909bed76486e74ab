//! A writer that can be told to stop: from then on nothing is created, written or renamed, so that no commit comes of
//! it.
//!
//! What has been written is what a killed run leaves: nothing names it, and the next commit removes it.

use std::io::{self, SeekFrom};
use std::path::Path;

use cento_collection::fs::{File, Fs};

use crate::cancel::Cancel;
use crate::error::{Error, Result};

/// A file system that refuses to write once its token is set. Files are removed and folders synced even then.
#[derive(Debug)]
pub(crate) struct Stoppable<'a> {
    fs: &'a dyn Fs,
    cancel: &'a Cancel,
}

impl<'a> Stoppable<'a> {
    pub(crate) fn new(fs: &'a dyn Fs, cancel: &'a Cancel) -> Self {
        Self { fs, cancel }
    }

    /// The result of a run on this file system: cancelled, if that is why it failed.
    pub(crate) fn explained<T>(&self, ended: Result<T>) -> Result<T> {
        match ended {
            Err(_) if self.cancel.is_cancelled() => Err(Error::Cancelled),
            ended => ended,
        }
    }
}

fn check(cancel: &Cancel) -> io::Result<()> {
    cancel.check().map_err(io::Error::other)
}

impl Fs for Stoppable<'_> {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        check(self.cancel)?;
        Ok(Box::new(StoppableFile { file: self.fs.create(path)?, cancel: self.cancel.clone() }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        check(self.cancel)?;
        self.fs.create_dir(path)
    }

    fn create_new_dir(&self, path: &Path) -> io::Result<()> {
        check(self.cancel)?;
        self.fs.create_new_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.fs.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        check(self.cancel)?;
        self.fs.rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.fs.sync_dir(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.fs.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.fs.remove_dir(path)
    }

    fn is_contested(&self) -> bool {
        self.fs.is_contested()
    }
}

struct StoppableFile {
    file: Box<dyn File>,
    cancel: Cancel,
}

impl io::Write for StoppableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check(&self.cancel)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl io::Seek for StoppableFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl File for StoppableFile {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}
