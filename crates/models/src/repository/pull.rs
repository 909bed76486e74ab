//! Getting a repository: small files, a look at the model they describe, then the weights, then a card of what came.
//!
//! What came of a commit is kept in `<models>/.part~<card>~<commit>` until it is whole: the next pull goes on there. A
//! checksum decides on every file, so what a power loss did to it does not matter. The last step is one rename.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use cento_collection::fs::{Fs, read_bounded};
use sha1::{Digest, Sha1};

use super::cache::Cached;
use super::listing::{Checksum, Entry, Listing};
use super::origin::{Order, Origin};
use super::remote::Remote;
use super::select;
use super::wanted::Wanted;
use crate::card::{Card, CardFile, bytes_max};
use crate::error::{AtPath, Attempt, Error, Failure, Halt, Result};
use crate::incoming::Incoming;
use crate::progress::{Found, Progress, Shape};
use crate::pull::{Pulled, create_folder, install, lock};
use crate::settings::Settings;
use crate::verify::{self, FileCheck, FileState};

/// The card of a model that was pulled, in its folder.
pub(crate) const CARD_FILE: &str = "card.toml";
/// Bytes read of a file at a time.
const READ_BYTES: usize = 1 << 16;
/// Longer cards are none.
pub(crate) const CARD_BYTES_MAX: u64 = 1 << 20;

/// Reads a folder that lacks nothing but weights: the model, or the part of it that is not understood, by name.
pub type Look<'a> = &'a dyn Fn(&Path) -> Result<Shape, String>;

/// A repository that is to be had, and by which name.
pub(crate) struct Request<'a> {
    pub(crate) wanted: &'a Wanted,
    /// The revision as the user named it.
    pub(crate) asked: Option<&'a str>,
    /// Of its card and folder.
    pub(crate) name: &'a str,
    /// Use of the model, in a line.
    pub(crate) description: &'a str,
    /// Names that a misspelled one is told to be near.
    pub(crate) known: &'a [&'a str],
}

/// Brings a repository from the cache of Hugging Face's tools, else from the hub.
pub(crate) fn pull(
    order: &Request<'_>,
    settings: &Settings,
    look: Look<'_>,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Pulled> {
    create_folder(fs, &settings.models_dir)?;
    let _lock = lock(&settings.models_dir, order.name, progress)?;
    let folder = settings.models_dir.join(order.name);
    let old = read_card(&folder)?;
    if let Some(card) = &old
        && crate::pull::is_whole(card, &folder)?
    {
        return Ok(Pulled { folder, source: None, attempts: Vec::new() });
    }
    let with = With { settings, look, fs, old: old.as_ref() };
    let mut attempts = Vec::new();
    let cached = settings.hub_cache.as_deref().and_then(|cache| Cached::find(cache, order.wanted));
    for from_hub in [false, true] {
        let hub = hub_label(order, settings);
        let (source, outcome) = match (&cached, from_hub) {
            (None, false) => continue,
            (Some(cached), false) => (cached.label(), bring(order, cached, &with, progress)),
            (_, true) => {
                progress(Progress::Trying { source: &hub });
                let outcome = Remote::open(order.wanted, settings, order.known)
                    .and_then(|hub| bring(order, &hub, &with, progress));
                (hub, outcome)
            }
        };
        match outcome {
            Ok(()) => return Ok(Pulled { folder, source: Some(source), attempts }),
            Err(Halt::Here(error)) => return Err(error),
            Err(Halt::There(Failure::Unsuited { reason })) if from_hub => {
                return Err(Error::Unsuited { name: order.wanted.repository.clone(), reason });
            }
            Err(Halt::There(reason)) => {
                let attempt = Attempt { source, reason };
                progress(Progress::Failed(&attempt));
                attempts.push(attempt);
            }
        }
    }
    Err(Error::Unavailable { name: order.wanted.repository.clone(), attempts })
}

fn hub_label(order: &Request<'_>, settings: &Settings) -> String {
    crate::hub::label(&order.wanted.repository, settings)
}

/// The card in a model's folder; nothing where there is none.
pub(crate) fn read_card(folder: &Path) -> Result<Option<Card>> {
    let path = folder.join(CARD_FILE);
    match read_bounded(&path, CARD_BYTES_MAX) {
        Ok(text) => Card::parse(&path.display().to_string(), &String::from_utf8_lossy(&text)).map(Some),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(Error::Io { path, source }),
    }
}

/// Things that every source is used with.
struct With<'a> {
    settings: &'a Settings,
    look: Look<'a>,
    fs: &'a dyn Fs,
    /// The card of what was pulled before and is damaged.
    old: Option<&'a Card>,
}

fn bring(
    order: &Request<'_>,
    origin: &dyn Origin,
    with: &With<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), Halt> {
    let With { settings, look, fs, old } = *with;
    let listing = origin.listing(progress)?;
    select::check_has_safetensors(&listing)?;
    let part = settings.models_dir.join(format!("{}{}", part_prefix(order.name), listing.commit));
    sweep(fs, &settings.models_dir, order.name, &part);
    let mut visit = Visit { origin, listing: &listing, staged: part.join("files"), fs, files: Vec::new() };
    fs.create_dir(&visit.staged).at(&visit.staged)?;

    if let Some(modules) = select::modules(&listing)? {
        visit.fetch(&[modules], &mut |_| {})?;
    }
    let folders = select::folders(visit.read("modules.json").as_deref())?;
    visit.fetch(&select::settings(&listing, &folders)?, &mut |event| forward_but_bytes(&event, progress))?;
    let config = folders.iter().find_map(|folder| visit.read(&format!("{folder}config.json"))).unwrap_or_default();
    select::check_not_quantised(&config)?;
    let weights = select::weights(&listing, &folders, |name| visit.read(name))?;
    let shape = look(&visit.staged).map_err(|reason| unsuited(reason, &visit.staged, &config))?;

    let n_bytes =
        visit.files.iter().map(|file| file.size_bytes).chain(weights.iter().map(|entry| entry.size_bytes)).sum();
    let license = listing.license.clone().unwrap_or_else(|| "unknown".to_owned());
    let revision = listing.commit.clone();
    let mut found = Found { repository: order.wanted.repository.clone(), revision, license, n_bytes, shape };
    progress(Progress::Found(&found));
    visit.fetch(&weights, progress)?;
    let Some(dimensions) = dimensions(&mut found.shape, look, &visit.staged, &config)? else {
        return Err(Failure::Unsuited { reason: "its files do not say how long its vectors are".to_owned() }.into());
    };
    let (staged, files) = (visit.staged, visit.files);
    let card = card(order, found, dimensions, files);
    check_as_first_seen(&card, old)?;
    write_card(fs, &staged, &card)?;
    install(&card, fs, &staged, &settings.models_dir.join(order.name), &part)?;
    let _ = fs.remove_dir(&part); // what cannot be removed now, the next pull's sweep may
    Ok(())
}

/// The length of the model's vectors: as it was read, or as its weights say, which are here.
fn dimensions(shape: &mut Shape, look: Look<'_>, staged: &Path, config: &[u8]) -> Result<Option<usize>, Failure> {
    if shape.dimensions.is_none() {
        *shape = look(staged).map_err(|reason| unsuited(reason, staged, config))?;
    }
    Ok(shape.dimensions)
}

/// The words of the look, which name a file in a folder that nobody knows, and a word on code that is not run.
fn unsuited(reason: String, staged: &Path, config: &[u8]) -> Failure {
    let inside = format!("{}{}", staged.display(), std::path::MAIN_SEPARATOR);
    let code = if select::has_code(config) { "; the code that the model brings is never run" } else { "" };
    Failure::Unsuited { reason: format!("{}{code}", reason.replace(&inside, "")) }
}

/// Small files come before anybody wants to see how far they are.
fn forward_but_bytes(event: &Progress<'_>, progress: &mut dyn FnMut(Progress<'_>)) {
    if !matches!(event, Progress::Bytes { .. }) {
        progress(*event);
    }
}

fn card(order: &Request<'_>, found: Found, dimensions: usize, files: Vec<CardFile>) -> Card {
    let Found { repository, revision, license, n_bytes: _, shape } = found;
    Card {
        name: order.name.to_owned(),
        description: order.description.to_owned(),
        repository,
        revision,
        license,
        of_use: shape.of_use,
        architecture: Some(shape.architecture),
        asked: order.asked.map(str::to_owned),
        pooling: shape.pooling,
        dimensions,
        max_tokens: shape.max_tokens,
        prompts: shape.prompts,
        files,
        sources: Vec::new(),
    }
}

/// The files of a commit are what they were when they were pinned.
fn check_as_first_seen(card: &Card, old: Option<&Card>) -> Result<(), Failure> {
    let of_old = |file: &CardFile| {
        let pinned = old.filter(|old| old.revision == card.revision)?;
        pinned.files.iter().find(|known| known.path == file.path && known.sha256 != file.sha256)
    };
    match card.files.iter().find_map(|file| Some((file, of_old(file)?))) {
        None => Ok(()),
        Some((file, pinned)) => {
            let state = FileState::Checksum { expected: pinned.sha256.clone(), found: file.sha256.clone() };
            Err(Failure::NotTheCards(FileCheck { path: file.path.clone(), state }))
        }
    }
}

fn write_card(fs: &dyn Fs, folder: &Path, card: &Card) -> Result<()> {
    let path = folder.join(CARD_FILE);
    let text = toml::to_string(card).expect("a card is made of tables, texts and numbers");
    Card::parse(&path.display().to_string(), &text)?; // what is written can be read
    let mut file = fs.create(&path).at(&path)?;
    file.write_all(text.as_bytes()).at(&path)?;
    file.sync().at(&path)
}

/// Leavings of other commits of this model; those of this one are gone on from.
fn sweep(fs: &dyn Fs, models_dir: &Path, name: &str, part: &Path) {
    for left in fs.list(models_dir).unwrap_or_default() {
        let path = models_dir.join(&left);
        if left.strip_prefix(&part_prefix(name)).is_some_and(|commit| !commit.contains('~')) && path != part {
            let _ = fs.remove_dir(&path);
        }
    }
}

fn part_prefix(name: &str) -> String {
    format!(".part~{name}~")
}

/// Files of one commit on their way.
struct Visit<'a> {
    origin: &'a dyn Origin,
    listing: &'a Listing,
    staged: PathBuf,
    fs: &'a dyn Fs,
    /// Those that are here, checked.
    files: Vec<CardFile>,
}

impl Visit<'_> {
    fn fetch(&mut self, entries: &[&Entry], progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), Halt> {
        let n_bytes = entries.iter().map(|entry| entry.size_bytes).sum();
        let mut n_bytes_before = 0;
        for entry in entries {
            if !self.files.iter().any(|file| file.path == entry.path) {
                let order = Order { commit: &self.listing.commit, entry, n_bytes_before, n_bytes };
                let file = self.fetch_one(&order, progress)?;
                self.files.push(file);
            }
            n_bytes_before += entry.size_bytes;
        }
        Ok(())
    }

    /// A file that was there in part and is not what it should be is brought again from its beginning, once.
    fn fetch_one(&self, order: &Order<'_>, progress: &mut dyn FnMut(Progress<'_>)) -> Result<CardFile, Halt> {
        let Entry { path, size_bytes, .. } = order.entry;
        let place = self.staged.join(path);
        if order.entry.checksum == Checksum::None && self.listing.must_vouch {
            return Err(Failure::Hub { reason: format!("its listing has no checksum of {path}") }.into());
        }
        for is_last in [false, true] {
            let mut incoming = Incoming::resume(self.fs, &self.staged, path, *size_bytes)?;
            let was_there = incoming.n_bytes() > 0;
            let brought = self.origin.bring(order, &mut incoming, progress);
            incoming.end()?; // what came is kept, however it ended
            let checked = brought.and_then(|()| check(order.entry, &place));
            match checked {
                Ok(sha256) => return Ok(CardFile { path: path.clone(), size_bytes: *size_bytes, sha256 }),
                Err(Halt::There(reason @ (Failure::NotAsListed { .. } | Failure::TooLong { .. }))) => {
                    self.fs.remove_file(&place).at(&place)?;
                    if is_last || !was_there {
                        return Err(as_listed(reason).into());
                    }
                }
                Err(halt) => return Err(halt),
            }
        }
        unreachable!("the last round returns")
    }

    /// The contents of a small file that is here.
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let is_here = self.files.iter().any(|file| file.path == path);
        is_here.then(|| read_bounded(&self.staged.join(path), bytes_max(path)).ok()).flatten()
    }
}

/// A limit that no card has said is the listing's.
fn as_listed(reason: Failure) -> Failure {
    match reason {
        Failure::TooLong { path, announced_bytes, limit_bytes } => {
            let found = announced_bytes.map_or_else(|| "more bytes".to_owned(), |n| format!("{n} bytes announced"));
            Failure::NotAsListed { path, found, expected: format!("{limit_bytes} bytes") }
        }
        other => other,
    }
}

/// Holds a file against its source's checksum; gives back its sha256, which is pinned from now on.
fn check(entry: &Entry, path: &Path) -> Result<String, Halt> {
    let sha256 = verify::sha256(path)?;
    let n_bytes = fs::metadata(path).at(path)?.len();
    let wrong = |found: String, expected: &str| {
        let expected = expected.to_owned();
        Err(Failure::NotAsListed { path: entry.path.clone(), found, expected }.into())
    };
    if n_bytes != entry.size_bytes {
        return wrong(format!("{n_bytes} bytes"), &format!("{} bytes", entry.size_bytes));
    }
    match &entry.checksum {
        Checksum::Sha256(expected) if sha256 != *expected => wrong(format!("sha256 {sha256}"), expected),
        Checksum::Git(expected) => match git_sha1(path, entry.size_bytes)? {
            found if found != *expected => wrong(format!("git sha1 {found}"), expected),
            _ => Ok(sha256),
        },
        Checksum::Sha256(_) | Checksum::None => Ok(sha256),
    }
}

/// As git names the contents of a file.
fn git_sha1(path: &Path, n_bytes: u64) -> Result<String> {
    let mut file = fs::File::open(path).at(path)?;
    let mut hash = Sha1::new();
    hash.update(format!("blob {n_bytes}\0"));
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer).at(path)? {
            0 => return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            n => hash.update(&buffer[..n]),
        }
    }
}
