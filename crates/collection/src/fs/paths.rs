//! A folder as a path, where the system has no handles to reach entries from: each is looked at before it is opened.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::access::Access;

#[derive(Debug)]
pub(super) struct Handle(PathBuf);

impl Handle {
    pub(super) fn root(path: &Path) -> io::Result<Self> {
        if fs::symlink_metadata(path)?.is_dir() {
            Ok(Self(path.to_owned()))
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    pub(super) fn folder(&self, name: &Path) -> io::Result<Self> {
        Self::root(&self.0.join(name))
    }

    pub(super) fn file(&self, name: &Path, access: Access) -> io::Result<File> {
        let path = self.0.join(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_file() => return Err(io::Error::other("is no regular file")),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = super::private::private_file();
        match access {
            Access::Read => options.read(true),
            Access::Write => options.read(true).write(true),
            Access::WriteOrCreate => options.read(true).write(true).create(true).truncate(false),
            Access::New => options.read(true).write(true).create_new(true),
        };
        options.open(path)
    }

    /// Where a link leads; an error if it is none.
    pub(super) fn link(&self, name: &Path) -> io::Result<PathBuf> {
        fs::read_link(self.0.join(name))
    }

    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    pub(super) fn create_folder(&self, name: &Path) -> io::Result<()> {
        super::private::create_private_folder(&self.0.join(name))
    }

    /// Removes a file, or a link itself.
    pub(super) fn remove_file(&self, name: &Path) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    pub(super) fn remove_folder(&self, name: &Path) -> io::Result<()> {
        fs::remove_dir(self.0.join(name))
    }

    pub(super) fn rename(&self, name: &Path, to: &Self, to_name: &Path) -> io::Result<()> {
        fs::rename(self.0.join(name), to.0.join(to_name))
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }
}
