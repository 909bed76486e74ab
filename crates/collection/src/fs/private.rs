//! Files and folders that none but their owner may read: what is made of private sources is as private.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// The rights of a new folder.
#[cfg(unix)]
pub(super) const FOLDER_MODE: u16 = 0o700;
/// The rights of a new file.
#[cfg(unix)]
pub(super) const FILE_MODE: u16 = 0o600;

/// Makes a folder and its parents; those that are there stay as they are.
///
/// # Errors
/// Those of the system.
pub fn create_private_folders(path: &Path) -> io::Result<()> {
    builder().recursive(true).create(path)
}

/// Makes a folder that must not be there.
///
/// # Errors
/// Those of the system.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    builder().create(path)
}

fn builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, u32::from(FOLDER_MODE));
    builder
}

/// Options under which a file that is made is its owner's alone.
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, u32::from(FILE_MODE));
    options
}
