//! What a repository holds at a commit: every file with its size and checksum, and under which licence.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::wanted::is_commit;
use crate::card::is_sha256;
use crate::error::Failure;

/// Digits of a commit, and of what git calls a file.
const GIT_DIGITS: usize = 40;

/// The files of a repository at a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) commit: String,
    /// As the repository's page says.
    pub(crate) license: Option<String>,
    /// True if a file without a checksum is not taken.
    pub(crate) must_vouch: bool,
    /// By their names; a name is the repository's word, and no path before it is checked.
    pub(crate) files: BTreeMap<String, Entry>,
}

/// A file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) size_bytes: u64,
    pub(crate) checksum: Checksum,
}

/// The checksum that a source gives for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// Of a large file.
    Sha256(String),
    /// Of a small one, as git makes it.
    Git(String),
    /// The source says none.
    None,
}

impl Checksum {
    /// By the number of its digits.
    pub(crate) fn of(digits: &str) -> Self {
        match digits {
            _ if is_sha256(digits) => Self::Sha256(digits.to_owned()),
            _ if digits.len() == GIT_DIGITS && is_commit(digits) => Self::Git(digits.to_owned()),
            _ => Self::None,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    sha: String,
    siblings: Vec<Sibling>,
    #[serde(default)]
    card_data: Value,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: String,
    size: Option<u64>,
}

impl Listing {
    /// Reads the hub's answer.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, Failure> {
        let wrong = |reason: String| Failure::Hub { reason: format!("its listing is not to be read: {reason}") };
        let answer: Answer = serde_json::from_slice(json).map_err(|error| wrong(error.to_string()))?;
        if answer.sha.len() != GIT_DIGITS || !is_commit(&answer.sha) {
            return Err(wrong(format!("{:?} is no commit", answer.sha)));
        }
        let license = answer.card_data["license"].as_str().map(str::to_owned);
        let tagged = || answer.tags.iter().find_map(|tag| tag.strip_prefix("license:")).map(str::to_owned);
        let license = license.or_else(tagged).filter(|license| is_word(license));
        let files = answer.siblings.into_iter().filter_map(|file| {
            let (size, checksum) = match file.lfs {
                Some(lfs) => (lfs.size.or(file.size), Checksum::of(&lfs.sha256)),
                None => (file.size, file.blob_id.as_deref().map_or(Checksum::None, Checksum::of)),
            };
            let entry = Entry { path: file.rfilename.clone(), size_bytes: size?, checksum };
            Some((file.rfilename, entry))
        });
        Ok(Self { commit: answer.sha, license, must_vouch: true, files: files.collect() })
    }
}

/// A licence as it may be shown on a terminal.
fn is_word(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.+".contains(&b))
}
