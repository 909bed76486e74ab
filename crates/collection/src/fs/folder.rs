//! A folder of a collection, held open: what lies in it is reached from it, component by component, through no link.
//!
//! A collection may come from anybody, with a cloned repository say, and a link in it would lead a writer, or garbage
//! collection, out of it. So links are refused wherever one is met, and so is what is no regular file: a FIFO blocks.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "testing")]
use cento_vector::faults::begin;
use cento_vector::file::Mapped;

use super::access::Access;
use super::operations::{File, Fs};
use super::system::Handle;

/// Where a test may have a read fail.
#[cfg(not(feature = "testing"))]
fn begin(_: &Path, _: std::ops::Range<u64>) -> io::Result<()> {
    Ok(())
}

/// Folders that lie in a folder that is removed: a segment has one, for its postings.
const REMOVED_FOLDERS_DEEP: usize = 1;

/// A folder that is held open. Paths are relative to it, those of [`Fs`] begin with its own; clones share the handle.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    handle: Arc<Handle>,
}

impl Folder {
    /// Opens the folder of a collection; the path to it may lead through links, but must not end in one.
    pub fn open(path: &Path) -> io::Result<Self> {
        let plain: PathBuf = path.components().collect(); // a slash at the end would follow a link
        let plain = if plain.as_os_str().is_empty() { PathBuf::from(".") } else { plain };
        let handle = Handle::root(&plain).map_err(|error| match fs::read_link(&plain) {
            Ok(target) => io::Error::other(format!(
                "is a link to {}, and a link may be planted: name that folder itself as the collection",
                target.display()
            )),
            Err(_) => error,
        })?;
        Ok(Self { path: path.to_owned(), handle: Arc::new(handle) })
    }

    /// Its path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder in it.
    pub fn folder(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        let mut folder = self.clone();
        for part in path.as_ref().components() {
            let Component::Normal(name) = part else { return Err(self.outside(path.as_ref())) };
            let handle = folder.handle.folder(name.as_ref()).map_err(|error| folder.refused(name.as_ref(), error))?;
            folder = Self { path: folder.path.join(name), handle: Arc::new(handle) };
        }
        Ok(folder)
    }

    /// Opens a regular file in it.
    pub fn file(&self, path: impl AsRef<Path>, access: Access) -> io::Result<fs::File> {
        let (folder, name) = self.reach(path.as_ref())?;
        let file = folder.handle.file(name, access).map_err(|error| folder.refused(name, error))?;
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other("is no regular file, as all files of a collection are; remove it"))
        }
    }

    /// Reads a whole file in it.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let (path, mut bytes) = (path.as_ref(), Vec::new());
        let mut file = self.file(path, Access::Read)?;
        begin(&self.path.join(path), 0..1)?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Maps a file of one of these kinds.
    pub fn map(&self, name: &str, kinds: &[[u8; 8]]) -> cento_vector::Result<Mapped> {
        let path = self.path.join(name);
        match self.file(name, Access::Read) {
            Ok(file) => Mapped::of(&file, &path, kinds),
            Err(source) => Err(cento_vector::Error::Io { path, source }),
        }
    }

    /// Names of what lies in it, ascending.
    pub fn names(&self) -> io::Result<Vec<String>> {
        begin(&self.path, 0..1)?;
        let names = self.handle.names()?;
        let mut names: Vec<String> = names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The folder that a path ends in, and the name there.
    fn reach<'p>(&self, path: &'p Path) -> io::Result<(Self, &'p Path)> {
        let name = path.file_name().ok_or_else(|| self.outside(path))?;
        Ok((self.folder(path.parent().unwrap_or(Path::new("")))?, name.as_ref()))
    }

    /// The part of a path below its own.
    fn below<'p>(&self, path: &'p Path) -> io::Result<&'p Path> {
        path.strip_prefix(&self.path).map_err(|_| self.outside(path))
    }

    fn outside(&self, path: &Path) -> io::Error {
        io::Error::other(format!("{} lies outside of {}", path.display(), self.path.display()))
    }

    /// Why an entry was not opened: a link is named with its target.
    fn refused(&self, name: &Path, error: io::Error) -> io::Error {
        match self.handle.link(name) {
            Ok(target) => io::Error::other(format!(
                "{} is a link to {}, and a collection has no links; remove the link",
                self.path.join(name).display(),
                target.display()
            )),
            Err(_) => error,
        }
    }

    /// Removes what is in it, and in folders so many levels below.
    fn clear(&self, folders_deep: usize) -> io::Result<()> {
        for name in self.handle.names()? {
            let name = Path::new(&name);
            let Err(error) = self.handle.remove_file(name) else { continue };
            let Some(deep) = folders_deep.checked_sub(1) else { return Err(error) };
            let Ok(folder) = self.folder(name) else { return Err(error) };
            folder.clear(deep)?;
            self.handle.remove_folder(name)?;
        }
        Ok(())
    }
}

impl Fs for Folder {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let (folder, name) = self.reach(self.below(path)?)?;
        match folder.handle.remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => Ok(Box::new(folder.file(name, Access::New)?)),
        }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut folder = self.clone();
        for name in self.below(path)? {
            match folder.handle.create_folder(name.as_ref()) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => folder = folder.folder(name)?,
            }
        }
        Ok(())
    }

    fn create_new_dir(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.reach(self.below(path)?)?;
        folder.handle.create_folder(name)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.folder(self.below(path)?)?.names()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let ((folder, name), (to_folder, to_name)) = (self.reach(self.below(from)?)?, self.reach(self.below(to)?)?);
        folder.handle.rename(name, &to_folder.handle, to_name)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.folder(self.below(path)?)?.handle.sync()
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.reach(self.below(path)?)?;
        folder.handle.remove_file(name)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.reach(self.below(path)?)?;
        if folder.handle.link(name).is_ok() {
            return folder.handle.remove_file(name); // the link, not what it leads to
        }
        folder.folder(name)?.clear(REMOVED_FOLDERS_DEEP)?;
        folder.handle.remove_folder(name)
    }
}
