//! What the reading of one file may cost a child, by the size of the file.
//!
//! The numbers are far above what any file of the test sets takes; they are there for the file that was made to cost
//! more, and for the parser that does not come back.

use std::time::Duration;

use crate::format::{Format, Reading};
use crate::read::ReadCommand;

/// The cost that a child may have, as a sum of a part for every file and a part for each of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of address space for every file.
    pub memory_bytes: u64,
    /// Bytes of address space for each byte of a file that is held whole.
    pub memory_per_byte: u64,
    /// Processor time for every file.
    pub processor: Duration,
    /// Bytes of a file for which there is one more second of processor time.
    pub bytes_per_second: u64,
    /// Time on the clock for each second of processor time. A parser that goes on without end uses up its processor
    /// time; the clock is for a child that waits for something, and stands still while others have the processor.
    pub clock_factor: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            memory_per_byte: 64,
            processor: Duration::from_secs(20),
            bytes_per_second: 256 << 10,
            clock_factor: 4,
        }
    }
}

/// Address space for each byte of a file that is read record by record: the ids met so far, of the shortest records.
const MEMORY_PER_STREAMED_BYTE: u64 = 8;

/// Bytes of answer for every file.
const ANSWER_BYTES: u64 = 64 << 20;

/// Bytes of answer for each byte of a file: rows of one cell have the longest, for each has its places.
const ANSWER_PER_BYTE: u64 = 128;

/// Bytes of one answer, a document most often, whatever the size of its file: it is held at once.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// The limits of one child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileLimits {
    pub(super) memory_bytes: u64,
    pub(super) processor_seconds: u64,
    pub(super) clock: Duration,
    /// Bytes of all answers.
    pub(super) answers_bytes: u64,
    /// Bytes of one answer.
    pub(super) answer_bytes: u64,
}

impl Limits {
    /// The limits for a command, which may have been given more than a reader.
    pub(super) fn of_command(&self, command: &ReadCommand, n_bytes: u64, output_bytes: u64) -> FileLimits {
        let own = Self {
            memory_bytes: command.memory_bytes.unwrap_or(self.memory_bytes),
            processor: command.processor().unwrap_or(self.processor),
            ..*self
        };
        let limits = own.of_file(Format::Text, n_bytes);
        FileLimits { answers_bytes: u64::MAX, answer_bytes: output_bytes, ..limits }
    }

    /// The limits for a file of so many bytes.
    pub(super) fn of_file(&self, format: Format, n_bytes: u64) -> FileLimits {
        let per_byte = match format.reading() {
            Reading::Whole | Reading::Parsed => self.memory_per_byte,
            Reading::Streamed => MEMORY_PER_STREAMED_BYTE,
        };
        let more = Duration::from_secs(n_bytes / self.bytes_per_second.max(1));
        let processor = self.processor.saturating_add(more);
        let answers_bytes = n_bytes.saturating_mul(ANSWER_PER_BYTE).saturating_add(ANSWER_BYTES);
        let answer_bytes = answers_bytes.min(ANSWER_BYTES_MAX);
        FileLimits {
            memory_bytes: n_bytes.saturating_mul(per_byte).saturating_add(self.memory_bytes),
            processor_seconds: processor.as_secs().max(1),
            clock: processor.saturating_mul(self.clock_factor),
            answers_bytes: match format.reading() {
                Reading::Whole | Reading::Parsed => answer_bytes, // its documents are held until the last of them is there
                Reading::Streamed => answers_bytes,
            },
            answer_bytes,
        }
    }
}
