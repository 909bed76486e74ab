//! Files that somebody names, read whole: never more of them than the caller has room for.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a file, a pipe or a device that has at most so many. One without an end is no different from one that
/// is too long.
///
/// # Errors
/// Those of the system; [`io::ErrorKind::FileTooLarge`] for what has more.
pub fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    take_bounded(File::open(path)?, bytes_max)
}

/// The same of what is open.
///
/// # Errors
/// Those of [`read_bounded`].
pub fn take_bounded(input: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("more than the {bytes_max} bytes that are read"),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_bound_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"12345").unwrap();
        assert_eq!(read_bounded(&path, 5).unwrap(), b"12345");
        let error = read_bounded(&path, 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("4 bytes"), "{error}");
        assert!(read_bounded(&folder.path().join("nowhere"), 4).unwrap_err().kind() == io::ErrorKind::NotFound);
        assert!(take_bounded(io::repeat(0), 1 << 20).is_err());
        assert_eq!(take_bounded(&b"1"[..], u64::MAX).unwrap(), b"1");
    }
}
