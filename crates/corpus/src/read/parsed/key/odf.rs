//! OpenDocument files with a password: the package with those of its parts decrypted that hold text.
//!
//! Each part has a key of its own, made of the password, and says by a checksum whether the password is right: AES in
//! chained blocks, as LibreOffice writes it since 3.5. Blowfish, as it was before that, and packages encrypted as a
//! whole with Argon2 are not opened.
//! Source: OpenDocument 1.2 part 3, 3.4 (encryption) and 4.8 (manifest).
//! Cost: for each password, and then for each part, at most [`ROUNDS_MAX`] rounds; all parts within
//! [`PLAIN_BYTES_MAX`].

use std::io::{Cursor, Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::cipher::{ENGINE, ROUNDS_MAX, decrypt};
use crate::read::parsed::Fault;
use crate::read::parsed::package::Package;
use crate::read::password::{Locked, Passwords};

const MANIFEST: &str = "META-INF/manifest.xml";

/// The manifest of the package that comes of it: none of its parts is encrypted.
const PLAIN_MANIFEST: &[u8] =
    br#"<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>"#;

/// The part by which a password is tried: every document has it.
const CONTENT: &str = "content.xml";

/// Parts that hold no text.
const PASSED_OVER: [&str; 1] = ["settings.xml"];

/// Parts that are decrypted, at most: each wants its rounds.
const PARTS_MAX: usize = 64;

/// Bytes of the decrypted parts.
const PLAIN_BYTES_MAX: u64 = 256 << 20;

/// Bytes of a part that its checksum is of.
const CHECKED_BYTES: usize = 1_024;

/// An encrypted part.
#[derive(Default)]
struct Part {
    name: String,
    checksum: Vec<u8>,
    checksum_type: String,
    algorithm: String,
    first: Vec<u8>,
    derivation: String,
    key_bytes: usize,
    rounds: u32,
    salt: Vec<u8>,
    /// Empty for the hash that is meant where none is named.
    start: String,
}

/// The package without its encryption, by the first password that opens it; none if it has none.
pub(in crate::read::parsed) fn open(bytes: &[u8], passwords: &Passwords) -> Result<Option<Vec<u8>>, Fault> {
    let Some(mut package) = Package::open(bytes) else { return Ok(None) };
    let parts = package.part(MANIFEST).map(|xml| encrypted(&xml)).unwrap_or_default();
    if parts.is_empty() {
        return Ok(None);
    }
    if passwords.locked() == Locked::NoPassword {
        return Err(Fault::Encrypted(Locked::NoPassword));
    }
    let unknown = || Fault::Encrypted(Locked::Unknown);
    let content = parts.iter().find(|part| part.name == CONTENT).filter(|part| part.is_known()).ok_or_else(unknown)?;
    let broken = |reason: String| Fault::Unparsed { engine: ENGINE, reason };
    let locked = package.read(CONTENT).map_err(|reason| broken(format!("{CONTENT}: {reason}")))?;
    let right = passwords.iter().find(|password| content.opened(password, &locked).is_some());
    let password = right.ok_or_else(|| Fault::Encrypted(passwords.locked()))?;
    let plain = decrypted(&mut package, &parts, password).map_err(broken)?;
    Ok(Some(plain))
}

/// The package with its parts of text as they were before they were encrypted, and those that are not.
fn decrypted(package: &mut Package<'_>, parts: &[Part], password: &str) -> Result<Vec<u8>, String> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut write = |name: &str, content: &[u8]| {
        writer.start_file(name, stored).map_err(|error| error.to_string())?;
        writer.write_all(content).map_err(|error| error.to_string())
    };
    let mut left = PLAIN_BYTES_MAX;
    let mut names = package.names();
    names.sort_by_key(|name| name != "mimetype"); // which says what the package is, and comes first
    for name in names.iter().filter(|name| name.as_str() != MANIFEST && !name.ends_with('/')) {
        let of_name = parts.iter().position(|part| part.name == *name);
        let is_text = name.ends_with(".xml") && !PASSED_OVER.contains(&name.as_str());
        let content = match of_name {
            None => package.read(name).map_err(|reason| format!("{name}: {reason}"))?,
            Some(_) if !is_text => continue,
            Some(at) if at >= PARTS_MAX => return Err(format!("more than {PARTS_MAX} encrypted parts")),
            Some(at) => {
                let part = &parts[at];
                let locked = package.read(name).map_err(|reason| format!("{name}: {reason}"))?;
                let deflated = part.is_known().then(|| part.opened(password, &locked)).flatten();
                let deflated = deflated.ok_or_else(|| format!("{name}: the password of {CONTENT} does not open it"))?;
                inflated(&deflated, left).map_err(|reason| format!("{name}: {reason}"))?
            }
        };
        left = left.saturating_sub(content.len() as u64);
        write(name, &content)?;
    }
    write(MANIFEST, PLAIN_MANIFEST)?;
    Ok(writer.finish().map_err(|error| error.to_string())?.into_inner())
}

fn inflated(deflated: &[u8], limit: u64) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let unpacked = DeflateDecoder::new(deflated).take(limit.saturating_add(1)).read_to_end(&mut content);
    unpacked.map_err(|error| error.to_string())?;
    match content.len() as u64 > limit {
        true => Err(format!("more than {PLAIN_BYTES_MAX} bytes with the parts before it")),
        false => Ok(content),
    }
}

/// Names of algorithms end like this, whichever way they are written: as a word, or as an address.
fn is_called(name: &str, endings: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    endings.iter().any(|ending| name.ends_with(ending))
}

impl Part {
    /// True for the encryption that is opened here.
    fn is_known(&self) -> bool {
        is_called(&self.algorithm, &["#aes128-cbc", "#aes192-cbc", "#aes256-cbc"])
            && is_called(&self.derivation, &["pbkdf2"])
            && [16, 24, 32].contains(&self.key_bytes)
            && (1..=ROUNDS_MAX).contains(&self.rounds)
            && is_called(&self.checksum_type, &["sha1-1k", "sha1/1k", "sha256-1k"])
            && (self.start.is_empty() || is_called(&self.start, &["sha1", "sha256"]))
    }

    /// The part decrypted, compressed still; none if the password is not its own.
    fn opened(&self, password: &str, locked: &[u8]) -> Option<Vec<u8>> {
        let start = match is_called(&self.start, &["sha256"]) {
            true => Sha256::digest(password).to_vec(),
            false => Sha1::digest(password).to_vec(),
        };
        let mut key = vec![0; self.key_bytes];
        pbkdf2::pbkdf2_hmac::<Sha1>(&start, &self.salt, self.rounds, &mut key);
        let mut opened = decrypt(&key, Some(&self.first), locked)?;
        let padding = usize::from(*opened.last()?);
        opened.truncate(opened.len().checked_sub(padding)?);
        let checked = opened.get(..opened.len().min(CHECKED_BYTES))?;
        let checksum = match is_called(&self.checksum_type, &["sha256-1k"]) {
            true => Sha256::digest(checked).to_vec(),
            false => Sha1::digest(checked).to_vec(),
        };
        (checksum == self.checksum).then_some(opened)
    }
}

/// The encrypted parts that a manifest names.
fn encrypted(xml: &[u8]) -> Vec<Part> {
    let mut reader = Reader::from_reader(xml);
    let (mut parts, mut part, mut is_encrypted, mut buffer) = (Vec::new(), Part::default(), false, Vec::new());
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(element) | Event::Empty(element)) => match element.local_name().as_ref() {
                "file-entry" => {
                    let name = value(&element, "full-path").unwrap_or_default();
                    (part, is_encrypted) = (Part { name, ..Part::default() }, false);
                }
                "encryption-data" => {
                    is_encrypted = true;
                    part.checksum_type = value(&element, "checksum-type").unwrap_or_default();
                    part.checksum = bytes(&element, "checksum");
                }
                "algorithm" => {
                    part.algorithm = value(&element, "algorithm-name").unwrap_or_default();
                    part.first = bytes(&element, "initialisation-vector");
                }
                "key-derivation" => {
                    let number = |name: &str| value(&element, name)?.parse::<u32>().ok();
                    part.derivation = value(&element, "key-derivation-name").unwrap_or_default();
                    part.key_bytes = number("key-size").unwrap_or(16) as usize;
                    part.rounds = number("iteration-count").unwrap_or(0);
                    part.salt = bytes(&element, "salt");
                }
                "start-key-generation" => {
                    part.start = value(&element, "start-key-generation-name").unwrap_or_default();
                }
                _ => {}
            },
            Ok(Event::End(element)) if element.local_name().as_ref() == "file-entry" && is_encrypted => {
                parts.push(std::mem::take(&mut part));
                is_encrypted = false;
            }
            Ok(Event::Eof) | Err(_) => return parts,
            Ok(_) => {}
        }
    }
}

/// An attribute by its name without a prefix.
fn value(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = element.attributes().filter_map(Result::ok);
    let found = attributes.find(|attribute| attribute.key.local_name().as_ref() == name)?;
    Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
}

fn bytes(element: &BytesStart<'_>, name: &str) -> Vec<u8> {
    value(element, name).and_then(|value| STANDARD.decode(value.trim()).ok()).unwrap_or_default()
}
