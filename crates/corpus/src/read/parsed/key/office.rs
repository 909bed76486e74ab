//! Office files with a password: the package inside of them, decrypted.
//!
//! Agile and standard encryption with AES, as all versions of Office since 2007 write them. A password counts only if
//! the verifier of the file says so; the package is then held against its own checksums by whoever reads it. Nothing is
//! taken for granted of lengths, and rounds of hashing are bounded.
//! Source: MS-OFFCRYPTO of Microsoft, 2.3.4.5 to 2.3.4.15.
//! Cost: for each password at most [`ROUNDS_MAX`] hashes; the package is held three times.

use std::io::{Cursor, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use super::cipher::{BLOCK_BYTES, ENGINE, ROUNDS_MAX, decrypt};
use crate::read::parsed::Fault;
use crate::read::password::{Locked, Passwords};

/// Longest description of the encryption, in bytes.
const INFO_BYTES_MAX: u64 = 64 << 10;

/// Hashes that a password costs in standard encryption, which does not say.
const STANDARD_ROUNDS: u32 = 50_000;

/// Bytes of a package that are encrypted together in agile encryption.
const SEGMENT_BYTES: usize = 4_096;

/// The byte that lengthens what is too short for a key or a first block.
const PADDING: u8 = 0x36;

const VERIFIER_INPUT: [u8; 8] = [0xfe, 0xa7, 0xd2, 0x76, 0x3b, 0x4b, 0x9e, 0x79];
const VERIFIER_VALUE: [u8; 8] = [0xd7, 0xaa, 0x0f, 0x6d, 0x30, 0x61, 0x34, 0x4e];
const KEY_VALUE: [u8; 8] = [0x14, 0x6e, 0x0b, 0xe7, 0xab, 0xac, 0xd0, 0xd6];

/// The package in a compound file, by the first password that opens it.
pub(in crate::read::parsed) fn open(bytes: &[u8], passwords: &Passwords) -> Result<Vec<u8>, Fault> {
    if passwords.locked() == Locked::NoPassword {
        return Err(Fault::Encrypted(Locked::NoPassword));
    }
    let broken = |reason: String| Fault::Unparsed { engine: ENGINE, reason };
    let mut file = cfb::CompoundFile::open(Cursor::new(bytes)).map_err(|error| broken(error.to_string()))?;
    let mut stream = |name: &str, limit: u64| {
        let mut content = Vec::new();
        let stream = file.open_stream(name).map_err(|error| broken(error.to_string()))?;
        stream.take(limit).read_to_end(&mut content).map_err(|error| broken(error.to_string()))?;
        Ok::<_, Fault>(content)
    };
    let info = stream("/EncryptionInfo", INFO_BYTES_MAX)?;
    let package = stream("/EncryptedPackage", bytes.len() as u64)?;
    let lock = Lock::of(&info).ok_or(Fault::Encrypted(Locked::Unknown))?;
    let key = passwords.iter().find_map(|password| lock.key(password)).ok_or(Fault::Encrypted(passwords.locked()))?;
    let opened = lock.decrypt(&key, &package);
    opened.ok_or_else(|| broken("its encrypted package is cut short".to_owned()))
}

/// The way a package is encrypted.
enum Lock {
    Agile(Box<Agile>),
    Standard(Standard),
}

struct Agile {
    package_salt: Vec<u8>,
    package_hash: Hash,
    salt: Vec<u8>,
    hash: Hash,
    rounds: u32,
    key_bytes: usize,
    verifier_input: Vec<u8>,
    verifier_value: Vec<u8>,
    key_value: Vec<u8>,
}

struct Standard {
    key_bytes: usize,
    salt: Vec<u8>,
    verifier: Vec<u8>,
    verifier_hash: Vec<u8>,
}

impl Lock {
    /// The way that a file says; none for one that is not known here.
    fn of(info: &[u8]) -> Option<Self> {
        let (version, rest) = info.split_at_checked(8)?;
        match version[..4] {
            [4, 0, 4, 0] => Agile::of(rest).map(|agile| Self::Agile(Box::new(agile))),
            [2..=4, 0, 2, 0] => Standard::of(rest).map(Self::Standard),
            _ => None,
        }
    }

    /// The key of the package, if the password is the file's.
    fn key(&self, password: &str) -> Option<Vec<u8>> {
        let password: Vec<u8> = password.encode_utf16().flat_map(u16::to_le_bytes).collect();
        match self {
            Self::Agile(agile) => agile.key(&password),
            Self::Standard(standard) => standard.key(&password),
        }
    }

    /// The package; none if it is shorter than it says.
    fn decrypt(&self, key: &[u8], package: &[u8]) -> Option<Vec<u8>> {
        let (n_bytes, package) = package.split_first_chunk::<8>()?;
        let n_bytes = usize::try_from(u64::from_le_bytes(*n_bytes)).ok()?;
        let whole = &package[..package.len() / BLOCK_BYTES * BLOCK_BYTES];
        if n_bytes > whole.len() {
            return None;
        }
        let mut content = match self {
            Self::Agile(agile) => agile.decrypt(key, whole)?,
            Self::Standard(_) => decrypt(key, None, whole)?,
        };
        content.truncate(n_bytes);
        Some(content)
    }
}

impl Agile {
    fn of(xml: &[u8]) -> Option<Self> {
        let (mut package, mut password) = (None, None);
        let mut reader = Reader::from_reader(xml);
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            match reader.read_event_into(&mut buffer).ok()? {
                Event::Start(element) | Event::Empty(element) => match element.local_name().as_ref() {
                    "keyData" if package.is_none() => package = Some(element.into_owned()),
                    "encryptedKey" if password.is_none() => password = Some(element.into_owned()),
                    _ => {}
                },
                Event::Eof => break,
                _ => {}
            }
        }
        let (package, password) = (package?, password?);
        let is_known = |element: &BytesStart<'_>| {
            value(element, "cipherAlgorithm").as_deref() == Some("AES")
                && value(element, "cipherChaining").as_deref() == Some("ChainingModeCBC")
                && number(element, "blockSize") == Some(BLOCK_BYTES as u32)
        };
        let key_bytes = number(&password, "keyBits")? as usize / 8;
        let rounds = number(&password, "spinCount")?;
        let is_known = is_known(&package) && is_known(&password);
        (is_known && rounds <= ROUNDS_MAX && number(&package, "keyBits")? as usize / 8 == key_bytes).then_some(())?;
        Some(Self {
            package_salt: bytes(&package, "saltValue")?,
            package_hash: Hash::of(&value(&package, "hashAlgorithm")?)?,
            salt: bytes(&password, "saltValue")?,
            hash: Hash::of(&value(&password, "hashAlgorithm")?)?,
            rounds,
            key_bytes,
            verifier_input: bytes(&password, "encryptedVerifierHashInput")?,
            verifier_value: bytes(&password, "encryptedVerifierHashValue")?,
            key_value: bytes(&password, "encryptedKeyValue")?,
        })
    }

    fn key(&self, password: &[u8]) -> Option<Vec<u8>> {
        let spun = self.hash.spin(&[&self.salt, password], self.rounds);
        let first = fitted(self.salt.clone(), BLOCK_BYTES);
        let open = |block: &[u8], value: &[u8]| {
            let key = fitted(self.hash.digest(&[&spun, block]), self.key_bytes);
            decrypt(&key, Some(&first), value)
        };
        let input = open(&VERIFIER_INPUT, &self.verifier_input)?;
        let expected = open(&VERIFIER_VALUE, &self.verifier_value)?;
        let input = input.get(..self.salt.len())?;
        let hashed = self.hash.digest(&[input]);
        let is_right = expected.get(..hashed.len()) == Some(&hashed);
        let mut key = is_right.then(|| open(&KEY_VALUE, &self.key_value))??;
        key.truncate(self.key_bytes);
        Some(key)
    }

    fn decrypt(&self, key: &[u8], package: &[u8]) -> Option<Vec<u8>> {
        let mut content = Vec::with_capacity(package.len());
        for (at, segment) in (0_u32..).zip(package.chunks(SEGMENT_BYTES)) {
            let first = fitted(self.package_hash.digest(&[&self.package_salt, &at.to_le_bytes()]), BLOCK_BYTES);
            content.extend(decrypt(key, Some(&first), segment)?);
        }
        Some(content)
    }
}

/// The algorithms of a standard header that are AES.
const AES_OF_STANDARD: [u32; 3] = [0x660e, 0x660f, 0x6610];

impl Standard {
    fn of(info: &[u8]) -> Option<Self> {
        let number =
            |bytes: &[u8], at: usize| bytes.get(at..)?.first_chunk::<4>().map(|number| u32::from_le_bytes(*number));
        let (header, verifier) = info.get(4..)?.split_at_checked(number(info, 0)? as usize)?;
        let (algorithm, key_bits) = (number(header, 8)?, number(header, 16)?);
        (AES_OF_STANDARD.contains(&algorithm) && number(verifier, 0)? as usize == BLOCK_BYTES).then_some(())?;
        Some(Self {
            key_bytes: key_bits as usize / 8,
            salt: verifier.get(4..20)?.to_vec(),
            verifier: verifier.get(20..36)?.to_vec(),
            verifier_hash: verifier.get(40..72)?.to_vec(),
        })
    }

    fn key(&self, password: &[u8]) -> Option<Vec<u8>> {
        let spun = Hash::Sha1.spin(&[&self.salt, password], STANDARD_ROUNDS);
        let last = Hash::Sha1.digest(&[&spun, &[0; 4]]);
        let derived = |filler: u8| {
            let mut padded = [filler; 64];
            padded.iter_mut().zip(&last).for_each(|(byte, other)| *byte ^= other);
            Hash::Sha1.digest(&[&padded])
        };
        let mut key = [derived(0x36), derived(0x5c)].concat();
        key.truncate(self.key_bytes);
        let hashed = Hash::Sha1.digest(&[&decrypt(&key, None, &self.verifier)?]);
        let expected = decrypt(&key, None, &self.verifier_hash)?;
        (expected.get(..hashed.len()) == Some(&hashed)).then_some(key)
    }
}

#[derive(Clone, Copy)]
enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    fn of(name: &str) -> Option<Self> {
        match name {
            "SHA1" | "SHA-1" => Some(Self::Sha1),
            "SHA256" => Some(Self::Sha256),
            "SHA384" => Some(Self::Sha384),
            "SHA512" => Some(Self::Sha512),
            _ => None,
        }
    }

    fn digest(self, parts: &[&[u8]]) -> Vec<u8> {
        fn of<D: sha2::Digest>(parts: &[&[u8]]) -> Vec<u8> {
            let mut digest = D::new();
            parts.iter().for_each(|part| digest.update(part));
            digest.finalize().to_vec()
        }
        match self {
            Self::Sha1 => of::<Sha1>(parts),
            Self::Sha256 => of::<Sha256>(parts),
            Self::Sha384 => of::<Sha384>(parts),
            Self::Sha512 => of::<Sha512>(parts),
        }
    }

    fn spin(self, start: &[&[u8]], rounds: u32) -> Vec<u8> {
        (0..rounds).fold(self.digest(start), |hashed, round| self.digest(&[&round.to_le_bytes(), &hashed]))
    }
}

/// Bytes cut or lengthened to a length.
fn fitted(mut bytes: Vec<u8>, n_bytes: usize) -> Vec<u8> {
    bytes.resize(n_bytes, PADDING);
    bytes
}

fn value(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = element.try_get_attribute(name).ok().flatten()?;
    Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
}

fn number(element: &BytesStart<'_>, name: &str) -> Option<u32> {
    value(element, name)?.parse().ok()
}

fn bytes(element: &BytesStart<'_>, name: &str) -> Option<Vec<u8>> {
    STANDARD.decode(value(element, name)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Damage to the description and the directory, a cut at every 500th byte, and more rounds than are hashed: an
    /// error or a package no longer than the file, in bounded time.
    #[test]
    fn damaged_files_are_refused() {
        let whole = include_bytes!("../../../tests/locked/agile.xlsx").as_slice();
        let passwords = Passwords::parse(b"tide").unwrap();
        assert!(open(whole, &passwords).unwrap().starts_with(b"PK"));
        let info = memchr::memmem::find(whole, b"<?xml").unwrap();
        let rounds = info + memchr::memmem::find(&whole[info..], b"spinCount=\"").unwrap() + 11;
        let changed = |at: usize, bytes: &[u8]| [&whole[..at], bytes, &whole[at + bytes.len()..]].concat();
        let flipped =
            (info..info + 1_200).step_by(7).chain((0..512).step_by(5)).map(|at| changed(at, &[whole[at] ^ 0x11]));
        let cut = (0..whole.len()).step_by(500).map(|end| whole[..end].to_vec());
        let start = std::time::Instant::now();
        for bytes in flipped.chain(cut) {
            assert!(open(&bytes, &passwords).map_or(0, |package| package.len()) <= bytes.len());
        }
        let many = changed(rounds, b"1000000001\" ");
        assert!(matches!(open(&many, &passwords), Err(Fault::Encrypted(Locked::Unknown) | Fault::Unparsed { .. })));
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
    }
}
