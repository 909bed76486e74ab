//! The ways in which a child that reads a file ends without having read it.

use std::io;

/// The end of a child that did not read its file to the end. It costs that file alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// It could not be started, or was not one of this version.
    #[error("its reader did not start: {reason}")]
    Start {
        /// The system's words, or its own.
        reason: String,
    },
    /// It used up the processor time that a file of this size has.
    #[error("its reader was ended: more than {seconds} s of processor time, the limit for a file of this size")]
    Processor {
        /// The limit.
        seconds: u64,
    },
    /// It did not end in the time that a file of this size has.
    #[error("its reader was ended: nothing came of it in {seconds} s, the limit for a file of this size")]
    Time {
        /// The limit.
        seconds: u64,
    },
    /// It asked for more memory than a file of this size has.
    #[error("its reader was ended: more than {mebibytes} MiB of memory, the limit for a file of this size")]
    Memory {
        /// The limit.
        mebibytes: u64,
    },
    /// It answered more than a file of this size can hold.
    #[error("its reader was ended: more than {n_bytes} bytes of answer, the limit for a file of this size")]
    Flood {
        /// The limit.
        n_bytes: u64,
    },
    /// It died.
    #[error("its reader died: {reason}")]
    Died {
        /// Its exit code or signal, and its last words if it had any.
        reason: String,
    },
    /// It answered what no reader answers.
    #[error("its reader answered what cannot be: {reason}")]
    Answer {
        /// The thing that cannot be.
        reason: String,
    },
    /// A command of the user's, in the place of a reader, did not read it.
    #[error("its command {program} {reason}")]
    Command {
        /// The program, as the settings name it.
        program: String,
        /// The way it ended.
        reason: String,
    },
    /// The system refused to go on with it.
    #[error("its reader was ended: {reason}")]
    System {
        /// The system's words.
        reason: String,
    },
}

impl Failure {
    /// The failure as that of a command.
    pub(super) fn of_command(self, program: &str) -> Self {
        const MORE: &str = "the limit for a file of this size: [read.command] of the settings can give it more";
        let reason = match self {
            Self::Start { reason } => format!("was not started: {reason}"),
            Self::Processor { seconds } => format!("was ended: more than {seconds} s of processor time, {MORE}"),
            Self::Time { seconds } => format!("was ended: not done in {seconds} s, {MORE}"),
            Self::Memory { mebibytes } => format!("was ended: more than {mebibytes} MiB of memory, {MORE}"),
            Self::Flood { n_bytes } => format!("was ended: it wrote more than {n_bytes} bytes, the limit for one file"),
            Self::Died { reason } => format!("failed: {reason}"),
            Self::Answer { reason } | Self::System { reason } | Self::Command { reason, .. } => reason,
        };
        Self::Command { program: program.to_owned(), reason }
    }
}

/// The end of a talk that is no fault of the child.
#[derive(Debug)]
pub(super) enum Stopped {
    /// Nobody wants the answers any more.
    Unwanted,
    /// The file cannot be read on.
    Unread(io::Error),
    /// The child failed.
    Failed(Failure),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
