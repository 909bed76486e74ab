//! Files of a model that are read whole: never more of them than there is room for, whatever stands under their name.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The longest file of a model that is read whole: vocabularies of a million words have a quarter of it.
const BYTES_MAX: u64 = 256 << 20;

/// The bytes of a file that is read whole.
pub(crate) fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        let reason = format!("more than the {BYTES_MAX} bytes that are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}
