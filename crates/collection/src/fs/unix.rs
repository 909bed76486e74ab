//! A folder as a file descriptor: its entries are named relative to it, and no call follows a link.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};

use super::access::Access;
use super::private::{FILE_MODE, FOLDER_MODE};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A FIFO or a device that stands where a file should be does not block.
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

#[derive(Debug)]
pub(super) struct Handle(OwnedFd);

impl Handle {
    pub(super) fn root(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(CWD, path, FOLDER, Mode::empty())?))
    }

    pub(super) fn folder(&self, name: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(&self.0, name, FOLDER, Mode::empty())?))
    }

    pub(super) fn file(&self, name: &Path, access: Access) -> io::Result<File> {
        let flags = match access {
            Access::Read => OFlags::RDONLY,
            Access::Write => OFlags::RDWR,
            Access::WriteOrCreate => OFlags::RDWR | OFlags::CREATE,
            Access::New => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        Ok(File::from(rustix::fs::openat(&self.0, name, FILE | flags, Mode::from_raw_mode(FILE_MODE.into()))?))
    }

    /// Where a link leads; an error if it is none.
    pub(super) fn link(&self, name: &Path) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }

    pub(super) fn create_folder(&self, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(FOLDER_MODE.into()))?)
    }

    /// Removes a file, or a link itself.
    pub(super) fn remove_file(&self, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(super) fn remove_folder(&self, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    pub(super) fn rename(&self, name: &Path, to: &Self, to_name: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, name, &to.0, to_name)?)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}
