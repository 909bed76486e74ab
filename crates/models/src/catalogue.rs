//! The models of this machine: the cards, where each model lies, and which is meant by a name.

use std::fs;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use cento_collection::fs::Fs;
use serde::Serialize;

use crate::card::{Card, cards};
use crate::error::{AtPath, Error, Result};
use crate::hashes::Hashes;
use crate::progress::Progress;
use crate::pull::{self, Pulled};
use crate::settings::Settings;
use crate::verify::{FileCheck, checksums, first_fault};

/// Name of the card used when no model is named.
pub const DEFAULT_MODEL: &str = "all-minilm-l6-v2";

/// The models of this machine.
#[derive(Debug, Clone)]
pub struct Models {
    cards: Vec<Card>,
    settings: Settings,
}

/// A model that can be loaded.
#[derive(Debug, Clone)]
pub struct Located<'a> {
    /// The card's name, or the folder's absolute path.
    pub name: String,
    /// A sentence-transformers folder.
    pub folder: PathBuf,
    /// Absent for a folder that the user named.
    pub card: Option<&'a Card>,
}

/// A card, and whether its model is here.
#[derive(Debug, Clone, Serialize)]
pub struct Listed<'a> {
    /// The card.
    pub card: &'a Card,
    /// Where the model lies, or would lie.
    pub folder: PathBuf,
    /// Its presence there.
    pub presence: Presence,
}

/// Presence of a model on this machine, judged by the sizes of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// Not pulled yet.
    Absent,
    /// Every file is there at its size.
    Complete,
    /// A folder is there, but a file is missing or of another size; a pull mends it.
    Damaged,
}

impl Models {
    /// The compiled-in cards, with the settings of the environment.
    ///
    /// # Errors
    /// [`Error::NoModelsFolder`] when the environment names no place for models.
    pub fn from_env() -> Result<Self> {
        Ok(Self::new(cards().to_vec(), Settings::from_env()?))
    }

    /// These cards with these settings.
    #[must_use]
    pub fn new(cards: Vec<Card>, settings: Settings) -> Self {
        Self { cards, settings }
    }

    /// Where the models lie.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.settings.models_dir
    }

    /// The hashes of large files that are remembered beside the models.
    #[must_use]
    pub fn hashes<'a>(&self, fs: &'a dyn Fs) -> Hashes<'a> {
        Hashes::new(self.settings.hashes_dir.clone(), fs)
    }

    /// Every card, in the order of their names, and whether its model is here.
    ///
    /// # Errors
    /// [`Error::Io`] when a folder cannot be read.
    pub fn list(&self) -> Result<Vec<Listed<'_>>> {
        let mut listed = self
            .cards
            .iter()
            .map(|card| {
                let folder = self.settings.folder(card);
                Ok(Listed { card, presence: presence(card, &folder)?, folder })
            })
            .collect::<Result<Vec<_>>>()?;
        listed.sort_unstable_by(|a, b| a.card.name.cmp(&b.card.name));
        Ok(listed)
    }

    /// The card of that name or of that hub repository, in any case.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] with the nearest name and all of them.
    pub fn show(&self, name: &str) -> Result<&Card> {
        self.card(name).ok_or_else(|| Error::unknown(name, &self.cards))
    }

    /// Downloads and checks a model; does nothing when it is here and every checksum holds.
    ///
    /// The sources are tried in turn: the hub, then those of the card. A second pull of the same model, by another
    /// process, waits for the first. No source gets more onto the disk than the card says, and a power loss leaves the
    /// model as it was or whole.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the reason of every source tried, [`Error::Io`] when it cannot be written.
    pub fn pull(&self, name: &str, fs: &dyn Fs, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Pulled> {
        pull::pull(self.show(name)?, &self.settings, fs, progress)
    }

    /// Reads every file of a model and compares its sha256 with the card's.
    ///
    /// # Errors
    /// [`Error::NotPulled`] when the model is not here at all.
    pub fn verify(&self, name: &str) -> Result<Vec<FileCheck>> {
        let card = self.show(name)?;
        let folder = self.settings.folder(card);
        if presence(card, &folder)? == Presence::Absent {
            return Err(Error::NotPulled { name: card.name.clone(), folder });
        }
        checksums(card, &folder)
    }

    /// The folder of a card's name, or the folder itself when `spec` names one.
    ///
    /// A card's exact name goes before a folder of that name (`./NAME` means the folder), which goes before the card's
    /// name in another case and its hub repository. Reads sizes only.
    ///
    /// # Errors
    /// [`Error::NotPulled`], [`Error::Damaged`], [`Error::NoFolder`] or [`Error::UnknownModel`].
    pub fn resolve(&self, spec: &str) -> Result<Located<'_>> {
        let path = Path::new(spec);
        match self.card(spec) {
            Some(card) if card.name == spec || !path.is_dir() => self.located(card),
            _ if path.is_dir() => {
                let folder = fs::canonicalize(path).at(path)?;
                Ok(Located { name: folder.display().to_string(), folder, card: None })
            }
            _ if spec.contains(['/', MAIN_SEPARATOR]) => Err(Error::NoFolder { path: path.to_owned() }),
            _ => Err(Error::unknown(spec, &self.cards)),
        }
    }

    fn located<'a>(&self, card: &'a Card) -> Result<Located<'a>> {
        let folder = self.settings.folder(card);
        match first_fault(card, &folder)? {
            None => Ok(Located { name: card.name.clone(), folder, card: Some(card) }),
            Some(_) if !folder.exists() => Err(Error::NotPulled { name: card.name.clone(), folder }),
            Some(fault) => Err(Error::Damaged { name: card.name.clone(), folder, fault }),
        }
    }

    fn card(&self, name: &str) -> Option<&Card> {
        let is_named =
            |card: &&Card| card.name.eq_ignore_ascii_case(name) || card.repository.eq_ignore_ascii_case(name);
        self.cards.iter().find(is_named)
    }
}

fn presence(card: &Card, folder: &Path) -> Result<Presence> {
    Ok(match first_fault(card, folder)? {
        None => Presence::Complete,
        Some(_) if folder.exists() => Presence::Damaged,
        Some(_) => Presence::Absent,
    })
}
