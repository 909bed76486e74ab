//! Encodings: UTF-8, and UTF-16 where a byte order mark says so.
//!
//! Text that was UTF-16 is extracted: its places are those of the converted text, not of the file.

use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use super::options::{NotUtf8, ReadOptions};
use crate::error::{Error, Result};

/// The remark on a text that was UTF-16.
pub(super) const CONVERTED: &str = "UTF-16, read as UTF-8: places are those of the converted text";

/// Says that a file which begins with these bytes is UTF-16. Without a mark nothing says so, and UTF-32 is not read.
pub(crate) fn is_utf16(start: &[u8]) -> bool {
    start.starts_with(b"\xfe\xff") || start.starts_with(b"\xff\xfe") && !start.starts_with(b"\xff\xfe\0\0")
}

/// The text of UTF-16 behind its byte order mark, and what had to be replaced.
pub(super) fn of_utf16(bytes: &[u8], path: &Path, invalid: NotUtf8) -> Result<(String, Vec<String>)> {
    let of = if bytes.starts_with(b"\xfe\xff") { u16::from_be_bytes } else { u16::from_le_bytes };
    let (units, rest) = bytes.as_chunks();
    let mut at = 2_u64;
    let (mut text, mut wrong) = (String::with_capacity(bytes.len()), Vec::new());
    for unit in char::decode_utf16(units.iter().skip(1).map(|unit| of(*unit))) {
        let character = unit.unwrap_or_else(|_| {
            wrong.push(at);
            char::REPLACEMENT_CHARACTER
        });
        at += 2 * character.len_utf16() as u64; // half a character is one unit, as its replacement is
        text.push(character);
    }
    if !rest.is_empty() {
        wrong.push(at);
        text.push(char::REPLACEMENT_CHARACTER);
    }
    match (wrong.as_slice(), invalid) {
        ([], _) => Ok((text, vec![CONVERTED.to_owned()])),
        ([offset, ..], NotUtf8::Refused) => Err(Error::InvalidUtf16 { path: path.to_owned(), offset: *offset }),
        ([offset, ..], NotUtf8::Replaced) => {
            let replaced =
                format!("invalid UTF-16 in {} places, the first at byte {offset}, replaced by U+FFFD", wrong.len());
            Ok((text, vec![CONVERTED.to_owned(), replaced]))
        }
    }
}

/// The bytes of a file as they come: from the file itself, or over a pipe.
pub type Bytes = Box<dyn Read + Send>;

/// A file read record by record.
pub(super) enum Input {
    /// As it is.
    File(BufReader<Bytes>),
    /// As UTF-8; UTF-16 is converted whole.
    Converted(Cursor<Vec<u8>>),
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File(_) => "File",
            Self::Converted(_) => "Converted",
        })
    }
}

impl Input {
    /// Begins to read; with it come the remarks on its conversion.
    pub(super) fn open(file: Bytes, path: &Path, options: &ReadOptions) -> Result<(Self, Vec<String>)> {
        let mut file = BufReader::with_capacity(64 * 1024, file);
        if !is_utf16(file.fill_buf().map_err(Error::io(path))?) {
            return Ok((Self::File(file), Vec::new()));
        }
        let bytes = read_whole(file, path, options.max_file_bytes)?;
        let (text, warnings) = of_utf16(&bytes, path, options.not_utf8())?;
        Ok((Self::Converted(Cursor::new(text.into_bytes())), warnings))
    }
}

/// All bytes of a file of at most so many.
pub(super) fn read_whole(file: impl Read, path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(Error::io(path))?;
    let n_bytes = bytes.len() as u64;
    if n_bytes > limit_bytes {
        return Err(Error::TooLarge { path: path.into(), n_bytes, limit_bytes });
    }
    Ok(bytes)
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Converted(text) => text.read(buffer),
        }
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::File(file) => file.fill_buf(),
            Self::Converted(text) => text.fill_buf(),
        }
    }

    fn consume(&mut self, n_bytes: usize) {
        match self {
            Self::File(file) => file.consume(n_bytes),
            Self::Converted(text) => text.consume(n_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str, to: fn(u16) -> [u8; 2]) -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(to).collect()
    }

    #[test]
    fn both_orders_are_read_and_halves_of_characters_are_named() {
        let text = "Tides 🌊\r\nrise";
        for to in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            let mut bytes = encoded(text, to);
            assert!(is_utf16(&bytes));
            let read = of_utf16(&bytes, Path::new("a"), NotUtf8::Refused).unwrap();
            assert_eq!(read, (text.to_owned(), vec![CONVERTED.to_owned()]));
            bytes.truncate(16); // in the wave
            let refused = of_utf16(&bytes, Path::new("a"), NotUtf8::Refused).unwrap_err();
            assert!(matches!(refused, Error::InvalidUtf16 { offset: 14, .. }), "{refused}");
            let (replaced, warnings) = of_utf16(&bytes[..15], Path::new("a"), NotUtf8::Replaced).unwrap();
            assert_eq!((replaced.as_str(), warnings.len()), ("Tides \u{fffd}", 2));
        }
        assert!(!is_utf16(b"\xff\xfe\0\0a\0\0\0") && !is_utf16(b"text") && !is_utf16(b"\xff"));
    }
}
