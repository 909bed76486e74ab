//! The memory that a writer may take: as much as it is given, or a share of the machine's.
//!
//! | for each | bytes, at most about |
//! |---|---|
//! | run | [`RESERVED_BYTES`]: the texts in hand, vectors on their way to their rows, buffers |
//! | document of a run | 112: its id and origin, if it was met, and where the collection has it |
//! | chunk of a run | 57: its place in the cache of embeddings |
//! | document of a segment | 144, 80 for each section, 240 for each value of its metadata, and three times their text |
//! | chunk of a segment | 80, and twice its postings: about four times its text |
//! | chunk of a segment with a graph | its row (1,536 of 384 dimensions), its code (384), 232 of lists and marks |
//!
//! A segment whose sum reaches what is left of the memory is finished, and the next one begins. The sums follow from
//! the documents, so that the same documents are cut in the same places on any machine with the same memory given.
//! Beyond it goes what one document takes, if that alone is more.

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::error::{Error, Result};

/// Bytes that a run takes whatever it writes.
pub const RESERVED_BYTES: u64 = 256 << 20;

/// The least that a segment is given of the least memory: smaller ones would be many.
const SEGMENT_BYTES_MIN: u64 = 64 << 20;

/// The part of the memory that a segment has, even where what is known of all documents leaves less, is one of so many.
const SEGMENT_SHARE: u64 = 4;

/// The least memory of a writer.
pub const MEMORY_BYTES_MIN: u64 = RESERVED_BYTES + SEGMENT_BYTES_MIN;

/// The part of the machine's memory that a writer takes unless told otherwise is one of so many.
pub const MACHINE_SHARE: u64 = 4;

/// The memory of a writer: what it is given, or a quarter of the machine's, but not less than the least.
///
/// # Errors
/// `Setting` if less than the least is given.
pub fn memory_bytes(given: Option<u64>) -> Result<u64> {
    match given {
        Some(n_bytes) if n_bytes < MEMORY_BYTES_MIN => Err(Error::Setting {
            setting: "memory",
            value: n_bytes.to_string(),
            reason: format!("is too little; the least is {}MiB ({MEMORY_BYTES_MIN} bytes)", MEMORY_BYTES_MIN >> 20),
        }),
        Some(n_bytes) => Ok(n_bytes),
        None => Ok((machine_bytes() / MACHINE_SHARE).max(MEMORY_BYTES_MIN)),
    }
}

/// Bytes of memory of the machine, or of the control group that this process is in, if that has less.
fn machine_bytes() -> u64 {
    let ram = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(ram);
    let of_machine = system.total_memory();
    let of_group = system.cgroup_limits().map(|limits| limits.total_memory).filter(|&n_bytes| n_bytes > 0);
    of_group.map_or(of_machine, |n_bytes| n_bytes.min(of_machine))
}

/// The memory that is left for a segment where other things take so much of it.
pub fn segment_bytes(memory_bytes: u64, taken_bytes: u64) -> u64 {
    let rest = memory_bytes.saturating_sub(RESERVED_BYTES);
    rest.saturating_sub(taken_bytes).max(rest / SEGMENT_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_the_least_is_refused_by_name_and_a_machine_always_has_enough() {
        let error = memory_bytes(Some(MEMORY_BYTES_MIN - 1)).unwrap_err().to_string();
        assert!(error.starts_with("memory") && error.contains("320MiB"), "{error}");
        assert_eq!(memory_bytes(Some(MEMORY_BYTES_MIN)).unwrap(), MEMORY_BYTES_MIN);
        let default = memory_bytes(None).unwrap();
        assert!(default >= MEMORY_BYTES_MIN && default <= machine_bytes().max(MEMORY_BYTES_MIN), "{default}");
        assert_eq!(segment_bytes(MEMORY_BYTES_MIN, 0), SEGMENT_BYTES_MIN);
        assert_eq!(segment_bytes(RESERVED_BYTES + 400, 500), 100);
    }
}
