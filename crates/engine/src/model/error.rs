//! What can go wrong with a model before it is loaded, and the way out of it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::Serialize;

use super::card::Card;
use super::check::FileCheck;

/// Why a model cannot be named, found or fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No card has that name.
    #[error(
        "no model {name:?}{}; known models: {known}; or --model DIR with a sentence-transformers folder",
        nearest.as_ref().map(|nearest| format!(", did you mean {nearest:?}?")).unwrap_or_default()
    )]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// The closest card, if one is close.
        nearest: Option<String>,
        /// All cards, separated by commas.
        known: String,
    },
    /// The card is known, its model is not on this machine.
    #[error("model {name} is not on this machine ({folder}); get it with `cento model pull {name}`", folder = folder.display())]
    NotPulled {
        /// The card.
        name: String,
        /// Where it would lie.
        folder: PathBuf,
    },
    /// A file of a pulled model is missing or of another size.
    #[error("model {name} is damaged: {}: {fault}; mend it with `cento model pull {name}`", folder.display())]
    Damaged {
        /// The card.
        name: String,
        /// Where it lies.
        folder: PathBuf,
        /// The first file that does not fit.
        fault: FileCheck,
    },
    /// The folder named as a model is not there.
    #[error("{path}: no such folder; name a sentence-transformers folder or a model that `cento model list` shows", path = path.display())]
    NoFolder {
        /// What was asked for.
        path: PathBuf,
    },
    /// No source had the model.
    #[error(
        "model {name} could not be had from any source:{}\nrun `cento model pull {name}` again when online, or use a folder you have with --model DIR",
        attempts.iter().map(|attempt| format!("\n  {attempt}")).collect::<String>()
    )]
    Unavailable {
        /// The card.
        name: String,
        /// Every source, in the order tried.
        attempts: Vec<Attempt>,
    },
    /// Nothing says where models lie.
    #[error("no folder for models: set CENTO_MODELS to a folder, or HOME")]
    NoModelsFolder,
    /// A card is not TOML, or not a card.
    #[error("card {file}")]
    CardSyntax {
        /// Name of the card's file.
        file: String,
        /// What the parser says, with line and column.
        source: toml::de::Error,
    },
    /// A card says something impossible.
    #[error("card {file}: {field} {reason}")]
    CardValue {
        /// Name of the card's file.
        file: String,
        /// The field.
        field: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The operating system refused; the message names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The result of everything in this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A source that was tried in vain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// Which one.
    pub source: String,
    /// Why it failed.
    pub reason: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.reason)
    }
}

impl Error {
    /// The name is no card's: say which is near, and which there are.
    pub(super) fn unknown(name: &str, cards: &[Card]) -> Self {
        let mut names: Vec<&str> = cards.iter().map(|card| card.name.as_str()).collect();
        names.sort_unstable();
        let wanted = name.to_ascii_lowercase();
        // A part of a name is nearer than any misspelling; half the letters wrong is no misspelling.
        let nearest = names
            .iter()
            .map(|known| (wanted.len() < 3 || !known.contains(&wanted), strsim::levenshtein(&wanted, known), *known))
            .min()
            .filter(|&(is_no_part, n_edits, known)| !is_no_part || n_edits <= known.len() / 2)
            .map(|(_, _, known)| known.to_owned());
        Self::UnknownModel { name: name.to_owned(), nearest, known: names.join(", ") }
    }
}
