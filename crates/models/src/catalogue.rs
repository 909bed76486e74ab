//! The models of this machine: the cards, where each model lies, and which is meant by a name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use cento_collection::fs::Fs;
use serde::Serialize;

use crate::card::{Card, cards};
use crate::error::{AtPath, Error, Result, nearest};
use crate::hashes::Hashes;
use crate::known::{Known, known};
use crate::progress::Progress;
use crate::pull::{self, Pulled};
use crate::repository::pull::{self as repository, Look, Request, read_card};
use crate::repository::wanted::Wanted;
use crate::settings::Settings;
use crate::verify::{FileCheck, checksums, first_fault};

/// Name of the card used when no model is named.
pub const DEFAULT_MODEL: &str = "all-minilm-l6-v2";
/// The name that stands for the one table of vectors that was pulled; the architecture of its card.
pub const STATIC: &str = "static";

/// The models of this machine.
#[derive(Debug, Clone)]
pub struct Models {
    cards: Vec<Card>,
    /// Models of which facts are known, and no checksums.
    known: &'static [Known],
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
    /// The compiled-in cards, those of the models that were pulled, and the well-known models, with the settings of
    /// the environment.
    ///
    /// # Errors
    /// [`Error::NoModelsFolder`] when the environment names no place for models; as [`Models::with_pulled`].
    pub fn from_env() -> Result<Self> {
        Self { known: known(), ..Self::new(cards().to_vec(), Settings::from_env()?) }.with_pulled()
    }

    /// These cards with these settings.
    #[must_use]
    pub fn new(cards: Vec<Card>, settings: Settings) -> Self {
        Self { cards, known: &[], settings }
    }

    /// Also the models that were pulled from the hub, as their cards say.
    ///
    /// # Errors
    /// [`Error::CardSyntax`] or [`Error::CardValue`] for a card that was altered, [`Error::Io`] for one that cannot be
    /// read.
    pub fn with_pulled(mut self) -> Result<Self> {
        for entry in fs::read_dir(&self.settings.models_dir).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.starts_with('.') || self.cards.iter().any(|card| card.name == name) {
                continue;
            }
            let card = read_card(&entry.path())?;
            self.cards.extend(card.filter(|card| card.name == name)); // another's is a folder that was moved
        }
        self.cards.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(self)
    }

    /// The same without any network.
    #[must_use]
    pub fn offline(mut self) -> Self {
        self.settings.offline = true;
        self.cards.iter_mut().for_each(|card| card.sources.clear());
        self
    }

    /// Well-known models that can be pulled by their short names, in the order of these.
    #[must_use]
    pub fn known(&self) -> &'static [Known] {
        self.known
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

    /// The card of that name or of that hub repository, in any case; `owner/name@revision` for a revision of it.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] with the nearest name and all of them; [`Error::NotPulled`] for a well-known model and
    /// [`Error::NotHere`] for a repository, of which there is no card before it is pulled; [`Error::Ambiguous`].
    pub fn show(&self, name: &str) -> Result<&Card> {
        self.card(name)?.ok_or_else(|| self.absent(name))
    }

    /// The well-known model of that name or of that hub repository, in any case.
    #[must_use]
    pub fn known_as(&self, name: &str) -> Option<&'static Known> {
        self.known
            .iter()
            .find(|known| known.name.eq_ignore_ascii_case(name) || known.repository.eq_ignore_ascii_case(name))
    }

    /// Downloads and checks a model; does nothing when it is here and every checksum holds.
    ///
    /// The name is that of a card, of a well-known model, or `owner/name` or `owner/name@revision` of the hub. The
    /// sources are tried in turn: the hub, then those of the card; for a model without a card the cache of Hugging
    /// Face's tools, then the hub. `look` reads such a model before its weights come. A second pull of the same model,
    /// by another process, waits for the first. No source gets more onto the disk than the card or the listing says,
    /// and a power loss leaves the model as it was or whole.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the reason of every source tried, [`Error::Unsuited`] for a model that `look`
    /// refuses or that has no weights to be read, [`Error::UnknownModel`], [`Error::Io`] when it cannot be written.
    pub fn pull(
        &self,
        name: &str,
        look: Look<'_>,
        fs: &dyn Fs,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Pulled> {
        if let Some(card) = self.card(name)? {
            if !card.is_of_first_sight() {
                return pull::pull(card, &self.settings, fs, progress);
            }
            let wanted = Wanted { repository: card.repository.clone(), revision: card.asked.clone() };
            let pinned = Wanted { revision: Some(card.revision.clone()), ..wanted.clone() };
            let request = Request {
                wanted: &pinned,
                asked: card.asked.as_deref(),
                name: &card.name,
                description: &card.description,
                known: &[],
            };
            return repository::pull(&request, &self.settings, look, fs, progress);
        }
        let known = self.known_as(name);
        let wanted = match known {
            Some(known) => Wanted { repository: known.repository.clone(), revision: None },
            None => Wanted::parse(name).ok_or_else(|| self.absent(name))?,
        };
        let card_name = known.map_or_else(|| wanted.card_name(), |known| known.name.clone());
        let description = known.map_or("Pulled from the hub.", |known| &known.description);
        let names = self.repositories();
        let asked = wanted.revision.as_deref();
        let request = Request { wanted: &wanted, asked, name: &card_name, description, known: &names };
        repository::pull(&request, &self.settings, look, fs, progress)
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
    /// A card's exact name, and [`STATIC`], go before a folder of that name (`./NAME` means the folder), which goes
    /// before the card's name in another case and its hub repository. Reads sizes only.
    ///
    /// # Errors
    /// [`Error::NotPulled`], [`Error::Damaged`], [`Error::NoFolder`] or [`Error::UnknownModel`]; [`Error::NoTable`] or
    /// [`Error::SeveralTables`] for [`STATIC`].
    pub fn resolve(&self, spec: &str) -> Result<Located<'_>> {
        let path = Path::new(spec);
        match self.card(spec)? {
            None if spec == STATIC => self.located(self.only_table()?),
            Some(card) if card.name == spec || !path.is_dir() => self.located(card),
            _ if path.is_dir() => {
                let folder = fs::canonicalize(path).at(path)?;
                Ok(Located { name: folder.display().to_string(), folder, card: None })
            }
            _ => Err(self.absent(spec)),
        }
    }

    /// The only table of vectors among the cards.
    fn only_table(&self) -> Result<&Card> {
        let is_table = |architecture: Option<&str>| architecture == Some(STATIC);
        let tables: Vec<&Card> = self.cards.iter().filter(|card| is_table(card.architecture.as_deref())).collect();
        match tables.as_slice() {
            [table] => Ok(table),
            [] => {
                let known = self.known.iter().filter(|known| is_table(Some(&known.architecture)));
                Err(Error::NoTable { known: known.map(|known| known.name.clone()).collect() })
            }
            several => Err(Error::SeveralTables { names: several.iter().map(|card| card.name.clone()).collect() }),
        }
    }

    /// Why there is no card of that name, and what there is.
    fn absent(&self, spec: &str) -> Error {
        match self.known_as(spec) {
            Some(known) => {
                let folder = self.settings.models_dir.join(&known.name);
                Error::NotPulled { name: known.name.clone(), folder }
            }
            None if Wanted::parse(spec).is_some() => {
                Error::NotHere { name: spec.to_owned(), nearest: nearest(spec, &self.repositories()) }
            }
            None if spec.contains(['/', MAIN_SEPARATOR]) => Error::NoFolder { path: PathBuf::from(spec) },
            None => {
                let names = self.cards.iter().map(|card| card.name.as_str());
                let known = self.known.iter().map(|known| known.name.as_str());
                Error::unknown(spec, names.chain(known).collect::<BTreeSet<&str>>().into_iter().collect())
            }
        }
    }

    /// Every repository that a name is near to.
    fn repositories(&self) -> Vec<&str> {
        let cards = self.cards.iter().map(|card| card.repository.as_str());
        cards.chain(self.known.iter().map(|known| known.repository.as_str())).collect()
    }

    fn located<'a>(&self, card: &'a Card) -> Result<Located<'a>> {
        let folder = self.settings.folder(card);
        match first_fault(card, &folder)? {
            None => Ok(Located { name: card.name.clone(), folder, card: Some(card) }),
            Some(_) if !folder.exists() => Err(Error::NotPulled { name: card.name.clone(), folder }),
            Some(fault) => Err(Error::Damaged { name: card.name.clone(), folder, fault }),
        }
    }

    /// The card of a name. A repository that was pulled in one revision only needs none after its name.
    fn card(&self, name: &str) -> Result<Option<&Card>> {
        let is_named =
            |card: &&Card| card.name.eq_ignore_ascii_case(name) || card.repository.eq_ignore_ascii_case(name);
        let Some(wanted) = Wanted::parse(name) else { return Ok(self.cards.iter().find(is_named)) };
        let of_it = |card: &&Card| card.repository.eq_ignore_ascii_case(&wanted.repository);
        let of_it: Vec<&Card> = self.cards.iter().filter(of_it).collect();
        let of_revision = of_it.iter().find(|card| wanted.is_revision(card.asked.as_deref(), &card.revision));
        match (of_revision, of_it.as_slice()) {
            (Some(card), _) => Ok(Some(card)),
            (None, [only]) if wanted.revision.is_none() => Ok(Some(only)),
            (None, [_, _, ..]) if wanted.revision.is_none() => {
                let name_of =
                    |card: &&Card| format!("{}@{}", card.repository, card.asked.as_deref().unwrap_or(&card.revision));
                let revisions = of_it.iter().map(name_of).collect::<Vec<_>>().join(", ");
                Err(Error::Ambiguous { name: name.to_owned(), revisions })
            }
            (None, _) => Ok(None),
        }
    }
}

fn presence(card: &Card, folder: &Path) -> Result<Presence> {
    Ok(match first_fault(card, folder)? {
        None => Presence::Complete,
        Some(_) if folder.exists() => Presence::Damaged,
        Some(_) => Presence::Absent,
    })
}
