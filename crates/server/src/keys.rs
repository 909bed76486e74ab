//! API keys: a file of their hashes, and whether a key that a client shows is one of them.
//!
//! A line is `read sha256:HEX NAME` or `write sha256:HEX NAME`, the hash that of the key's bytes; `#` begins a
//! comment. Keys are long and random, so that a plain hash does not give them away.

use std::path::Path;

use cento_engine::read_bounded;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use crate::error::{Error, Result};

/// The longest file of keys.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The things that a key lets its owner do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// Ask.
    Read,
    /// Ask, and change collections.
    Write,
}

/// A key's hash and its owner.
#[derive(Debug)]
struct Key {
    hash: [u8; 32],
    scope: Scope,
}

/// The keys that a server knows.
#[derive(Debug)]
pub(crate) struct Keys(Vec<Key>);

impl Keys {
    /// Reads a file of keys.
    ///
    /// # Errors
    /// [`Error::Keys`] for a line that is none and for a file without a key, [`Error::Io`].
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = read_bounded(path, FILE_BYTES_MAX).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let fault = |line, reason| Error::Keys { path: path.to_owned(), line, reason };
        let text = std::str::from_utf8(&bytes).map_err(|_| fault(0, "the file is not UTF-8"))?;
        let mut keys = Vec::new();
        for (n, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                keys.push(key(line).map_err(|reason| fault(n, reason))?);
            }
        }
        if keys.is_empty() {
            return Err(fault(0, "there is no key in the file"));
        }
        Ok(Self(keys))
    }

    /// The most that a key lets its owner do; none for one that is not known. Takes as long for any key.
    pub(crate) fn scope(&self, key: &str) -> Option<Scope> {
        let shown: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        let mut found = None;
        for known in &self.0 {
            let is_it: Choice = known.hash.ct_eq(&shown);
            if bool::from(is_it) {
                found = found.max(Some(known.scope));
            }
        }
        found
    }
}

fn key(line: &str) -> Result<Key, &'static str> {
    let mut words = line.split_whitespace();
    let scope = match words.next() {
        Some("read") => Scope::Read,
        Some("write") => Scope::Write,
        _ => return Err("expected `read` or `write` first"),
    };
    let hex =
        words.next().and_then(|word| word.strip_prefix("sha256:")).ok_or("expected sha256:HEX behind the scope")?;
    if words.next().is_none() {
        return Err("expected the name of the key's owner behind the hash");
    }
    Ok(Key { hash: bytes_of(hex).ok_or("expected 64 hexadecimal digits behind sha256:")?, scope })
}

fn bytes_of(hex: &str) -> Option<[u8; 32]> {
    let digits = hex.chars().map(|digit| digit.to_digit(16)).collect::<Option<Vec<u32>>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of `moon`.
    const MOON: &str = "9e78b43ea00edcac8299e0cc8df7f6f913078171335f733a21d5d911b6999132";

    fn read(text: &str) -> Result<Keys> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("keys"), text).unwrap();
        Keys::read(&folder.path().join("keys"))
    }

    #[test]
    fn a_key_is_known_by_its_hash() {
        let other = "0".repeat(64);
        let keys = read(&format!("# ours\nread sha256:{other} bob\nwrite sha256:{MOON} ann # and no other\n")).unwrap();
        assert_eq!(keys.scope("moon"), Some(Scope::Write));
        assert_eq!((keys.scope("Moon"), keys.scope(""), keys.scope(MOON)), (None, None, None));
        let keys = read(&format!("read sha256:{MOON} ann")).unwrap();
        assert_eq!(keys.scope("moon"), Some(Scope::Read));
    }

    #[test]
    fn a_file_of_keys_is_read_strictly() {
        for (text, reason) in [
            (String::new(), "there is no key"),
            ("# nobody\n".to_owned(), "there is no key"),
            (format!("sha256:{MOON} ann"), "`read` or `write`"),
            ("read moon ann".to_owned(), "sha256:HEX"),
            ("read sha256:9e78 ann".to_owned(), "64 hexadecimal digits"),
            (format!("read sha256:{}g ann", &MOON[1..]), "64 hexadecimal digits"),
            (format!("read sha256:{MOON}"), "name of the key's owner"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
