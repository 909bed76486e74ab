//! The one seam between a collection and the file system.
//!
//! Everything a commit depends on (create, write, sync, rename, remove) goes through [`Fs`], so that a test can stand
//! in its place and fail, or lose power, at any operation. Reading goes past it, by memory map: files never change once
//! named. Both reach what lies in a collection through its [`Folder`], so that no link leads out of it.

mod access;
mod bounded;
mod folder;
mod machine;
mod operations;
mod private;
#[cfg(any(not(unix), test))]
mod paths;
#[cfg(all(unix, test))]
mod tests;
#[cfg(unix)]
mod unix;

pub use self::access::Access;
pub use self::bounded::{read_bounded, take_bounded};
pub use self::folder::Folder;
pub use self::operations::{File, Fs, OsFs, Replacement, create_folders, sync_parents, write_atomically};
#[cfg(not(unix))]
use self::paths as system;
pub use self::private::{create_private_folder, create_private_folders, private_file};
#[cfg(unix)]
use self::unix as system;
