//! The way files are read, and the limits that hold for all of them.

use std::path::Path;

use crate::format::{Format, ReadAs};
use crate::read::command::{Commands, ReadCommand};
use crate::read::password::Passwords;

/// Default of [`ReadOptions::max_file_bytes`].
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Longest line of JSONL and longest row of CSV, in bytes; a longer one is an error and is never held in memory.
pub const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The way files are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format of every file, or by extension.
    pub format: ReadAs,
    /// Replace bytes that are not UTF-8 by U+FFFD, with a warning, where it would be an error.
    pub lossy: bool,
    /// Longest file that is one document (all but JSONL), in bytes.
    pub max_file_bytes: u64,
    /// Passwords that are tried on encrypted files.
    pub passwords: Passwords,
    /// Commands that read files of some extensions in the place of the readers here.
    pub commands: Commands,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: ReadAs::Auto,
            lossy: false,
            max_file_bytes: MAX_FILE_BYTES,
            passwords: Passwords::default(),
            commands: Commands::default(),
        }
    }
}

/// The treatment of bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotUtf8 {
    /// They are an error.
    Refused,
    /// U+FFFD stands in their place, with a warning.
    Replaced,
}

impl ReadOptions {
    /// The command that reads a file; none where every file is read as one format that was asked for.
    pub(crate) fn command(&self, path: &Path) -> Option<&ReadCommand> {
        self.commands.of_path(path).filter(|_| self.format == ReadAs::Auto)
    }

    /// The format of what its command makes of a file.
    pub(crate) fn format_of_command(&self, path: &Path) -> Option<Format> {
        self.command(path).map(|command| command.gives.format())
    }

    pub(super) fn not_utf8(&self) -> NotUtf8 {
        if self.lossy { NotUtf8::Replaced } else { NotUtf8::Refused }
    }
}
