//! The ways of opening a file.

/// The way in which a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading a file that is there.
    Read,
    /// Reading and writing a file that is there.
    Write,
    /// Reading and writing a file that is made if it is not there.
    WriteOrCreate,
    /// Writing a file that must not be there.
    New,
}
