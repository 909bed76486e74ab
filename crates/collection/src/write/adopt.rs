//! Adoption: a collection takes the segments of others, which were built elsewhere, by one commit.
//!
//! Segments are copied as they are, verified on the way: nothing is chunked or embedded again. Scores, spans and ids
//! are those of one run over everything, since statistics are counted over all live rows and a calibration is a sample
//! that adds up. Segments follow in the order of the collections given, behind those that are there.
//!
//! Cost: 28 bytes of memory for each document of all collections, while documents that are there twice are looked for;
//! the bytes of the segments read twice and written once.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use roaring::RoaringBitmap;
use serde::Serialize;

use super::commit::{Base, Commit};
use super::compact::Copied;
use super::create;
use super::segments::SegmentsWriter;
use crate::error::{AtPath, Error, Result};
use crate::format::calibration::Calibration;
use crate::format::config::CollectionConfig;
use crate::format::losses::Loss;
use crate::format::manifest::Manifest;
use crate::format::segment::{self, SegmentLimits};
use crate::fs::{Folder, Fs};
use crate::keep::generation::{Generation, explained};
use crate::keep::lock::WriterLock;
use crate::keep::reports::{self, Reports};

/// The outcome of an adoption.
#[derive(Debug, Clone, Serialize)]
pub struct AdoptReport {
    /// Format of this answer.
    pub version: u32,
    /// Generation that answers now.
    pub generation: u64,
    /// Collections whose segments were taken.
    pub n_collections: usize,
    /// Segments that were taken.
    pub n_adopted: usize,
    /// Segments now; those of one size are merged by the next compaction.
    pub n_segments: usize,
    /// Documents that were taken.
    pub n_documents: u64,
    /// Their chunks.
    pub n_chunks: u64,
    /// Bytes that were copied.
    pub n_bytes: u64,
    /// Remarks: other versions, other folders, figures to be measured.
    pub notes: Vec<String>,
}

/// Takes the segments of the collections at `from` into the one at `folder`, which is made if absent.
///
/// # Errors
/// [`Error::Differs`] where a collection was built with other settings, [`Error::AdoptedAlready`] and
/// [`Error::DocumentTwice`] where documents are there already or in two of them, [`Error::Damaged`] for one that has
/// lost documents, those of its files and of the folder. The collection is as it was then.
pub fn adopt(folder: &Path, from: &[PathBuf], fs: &dyn Fs, progress: &mut dyn FnMut(&Copied)) -> Result<AdoptReport> {
    let parts: Vec<Part<'_>> = from.iter().map(|path| Part::open(path)).collect::<Result<_>>()?;
    let Some(first) = parts.first() else {
        let reason = "name at least one collection".to_owned();
        return Err(Error::Setting { setting: "collections", value: "0".to_owned(), reason });
    };
    let known = Manifest::read_if_any(folder)?;
    let (base, path) = match &known {
        Some(known) => (&known.config, folder),
        None => (&first.generation.manifest.config, first.path),
    };
    parts.iter().try_for_each(|part| check_config(part, base, path))?; // before anything is made
    if known.is_none() {
        create::folder(fs, folder)?;
    }
    let lock = WriterLock::acquire(folder, fs)?;
    if known.is_none() {
        create::inner_folders(&lock, folder)?;
    }
    lock.explained(adopt_locked(folder, &parts, &lock, progress))
}

/// A collection whose segments are taken; it is held against writers.
struct Part<'a> {
    path: &'a Path,
    generation: Generation,
}

impl<'a> Part<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        let generation = Generation::open_current(path)?;
        let n_documents: u64 = generation.manifest.losses.iter().map(Loss::n_documents).sum();
        match n_documents {
            0 => Ok(Self { path, generation }),
            _ => Err(Error::Damaged { path: path.to_owned(), n_documents }),
        }
    }
}

fn adopt_locked(
    folder: &Path,
    parts: &[Part<'_>],
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Copied),
) -> Result<AdoptReport> {
    let known = Manifest::read_if_any(folder)?; // anew: another writer may have come before the lock
    let old = known.map(|manifest| Generation::open(folder, manifest)).transpose()?;
    let read = old.iter().chain(parts.iter().map(|part| &part.generation));
    explained(read, adopt_parts(folder, old.as_ref(), parts, fs, progress))
}

fn adopt_parts(
    folder: &Path,
    old: Option<&Generation>,
    parts: &[Part<'_>],
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Copied),
) -> Result<AdoptReport> {
    let config = old.unwrap_or(&parts[0].generation).manifest.config.clone();
    parts.iter().try_for_each(|part| check_config(part, &config, folder))?;
    check_documents(folder, old, parts)?;

    let generation = old.map_or(0, |old| old.manifest.generation) + 1;
    let mut writer = SegmentsWriter::new(fs, folder, &config, generation, NO_LIMITS);
    let n_rows_total = parts.iter().map(|part| part.generation.n_rows()).sum();
    let mut state = Copied { n_rows_total, ..Copied::default() };
    let mut n_bytes = 0;
    for part in parts {
        let opened = Folder::open(part.path).at(part.path)?;
        for (segment, entry) in part.generation.segments.iter().zip(&part.generation.manifest.segments) {
            if segment.deleted.len() < entry.n_documents {
                n_bytes += writer.copy(segment, &segment::folder(&opened, &entry.name)?, entry)?;
                state.n_rows += segment.n_live_rows() as u64;
                progress(&state);
            }
        }
    }
    let n_adopted = writer.written().len();
    let manifests = || parts.iter().map(|part| &part.generation.manifest);
    let mut notes = Vec::new();
    let roots = joined_roots(old, parts, &mut notes);
    let written_by: BTreeSet<&str> = manifests().map(|manifest| manifest.cento.as_str()).collect();
    let others = written_by.into_iter().filter(|cento| *cento != env!("CARGO_PKG_VERSION"));
    notes.extend(others.map(|cento| format!("cento {cento} wrote some of the segments, of the same format")));
    let base = base_of(fs, folder, old, parts, generation, &mut notes)?;
    let commit = Commit { config: config.clone(), roots, new_segments: writer.finish(), deleted: BTreeMap::new() };
    let committed = commit.publish_over(fs, folder, base)?;
    notes.extend(committed.remark);
    Ok(AdoptReport {
        version: 1,
        generation: committed.generation,
        n_collections: parts.len(),
        n_adopted,
        n_segments: old.map_or(0, |old| old.segments.len()) + n_adopted,
        n_documents: parts.iter().map(|part| part.generation.n_documents()).sum(),
        n_chunks: n_rows_total,
        n_bytes,
        notes,
    })
}

/// Segments are copied whole, however large: these limits are not looked at.
const NO_LIMITS: SegmentLimits =
    SegmentLimits { memory_bytes: u64::MAX, rows_max: usize::MAX, graph_rows_min: usize::MAX };

/// Everything the next generation says besides its segments: what the collection says, and the parts.
fn base_of<'a>(
    fs: &dyn Fs,
    folder: &Path,
    old: Option<&'a Generation>,
    parts: &'a [Part<'_>],
    generation: u64,
    notes: &mut Vec<String>,
) -> Result<Base<'a>> {
    let manifest = old.map(|old| &old.manifest);
    let manifests = || manifest.into_iter().chain(parts.iter().map(|part| &part.generation.manifest));
    let mut files = Vec::new();
    for part in parts {
        files.extend(reports::read(part.path, &part.generation.manifest)?.unwrap_or_default());
    }
    let origins: HashSet<String> = files.iter().map(|file| file.origin.clone()).collect();
    let (reports, remark) = Reports::after(folder, manifest, files, |origin| origins.contains(origin));
    notes.extend(remark);
    let calibration = manifests().map(|manifest| manifest.calibration.clone()).reduce(Calibration::merged).flatten();
    if calibration.is_none() {
        notes.push("what a cosine means is not measured in all parts; the next index run measures it".to_owned());
    }
    let mut stale: Vec<_> = manifests().flat_map(|manifest| manifest.stale.clone()).collect();
    stale.sort_by(|a, b| a.origin.cmp(&b.origin));
    Ok(Base {
        manifest,
        read: old.into_iter().chain(parts.iter().map(|part| &part.generation)).collect(),
        deleted: &|_| RoaringBitmap::new(), // none of its documents dies
        losses: manifest.map(|manifest| manifest.losses.clone()).unwrap_or_default(),
        stale,
        reports: reports.store(fs, folder, generation)?,
        calibration,
        is_answered_alike: false,
    })
}

/// The roots of the parts that the collection does not have. A label stands for one folder: the first that has it.
fn joined_roots(old: Option<&Generation>, parts: &[Part<'_>], notes: &mut Vec<String>) -> BTreeMap<String, PathBuf> {
    let mut known = old.map(|old| old.manifest.roots.clone()).unwrap_or_default();
    for part in parts {
        for (label, path) in &part.generation.manifest.roots {
            let first = known.entry(label.clone()).or_insert_with(|| path.clone());
            if first != path {
                let (first, path, part) = (first.display(), path.display(), part.path.display());
                notes.push(format!("the files of {label} lie in {path} for {part}; {first} is kept"));
            }
        }
    }
    known
}

/// Refuses a part that was built with other settings; a folder of the same encoder may have another name elsewhere.
fn check_config(part: &Part<'_>, expected: &CollectionConfig, of: &Path) -> Result<()> {
    let found = &part.generation.manifest.config;
    let is_named = expected.endpoint.is_some(); // then the name is the address
    let model = if is_named { found.model.clone() } else { expected.model.clone() };
    match expected.difference(&CollectionConfig { model, ..found.clone() }) {
        None => Ok(()),
        Some((setting, expected, found)) => {
            Err(Error::Differs { path: part.path.to_owned(), setting, found, expected, of: of.to_owned() })
        }
    }
}

/// A live document: its id's hash, and where it is: collection (0 is the one that adopts), segment, number.
type Place = ([u8; 16], u32, u32, u32);

/// Refuses parts with documents that the collection has, or another part. If that is all of a part, with the same
/// content, the part was adopted before, or is named twice.
fn check_documents(folder: &Path, old: Option<&Generation>, parts: &[Part<'_>]) -> Result<()> {
    let collections: Vec<(&Path, Option<&Generation>)> =
        [(folder, old)].into_iter().chain(parts.iter().map(|part| (part.path, Some(&part.generation)))).collect();
    let mut places: Vec<Place> = Vec::new();
    for (at, (_, generation)) in collections.iter().enumerate() {
        for (number, segment) in generation.iter().flat_map(|generation| generation.segments.iter().enumerate()) {
            for document in segment.live_documents() {
                let mut hash = [0; 16];
                hash.copy_from_slice(&blake3::hash(segment.document_id(document)?.as_bytes()).as_bytes()[..16]);
                places.push((hash, at as u32, number as u32, document));
            }
        }
    }
    places.sort_unstable();
    let segment =
        |place: &Place| &collections[place.1 as usize].1.expect("it has documents").segments[place.2 as usize];
    let mut twice: BTreeMap<u32, Twice> = BTreeMap::new();
    for [one, other] in places.array_windows().filter(|[one, other]| one.0 == other.0) {
        let (first, second) = (segment(one).document(one.3)?, segment(other).document(other.3)?);
        let id = segment(other).document_id(other.3)?;
        let of_part = twice.entry(other.1).or_insert_with(|| Twice { id: id.to_owned(), one: one.1, n_same: 0 });
        of_part.n_same += u64::from(first.hash == second.hash);
        if *id < *of_part.id {
            (of_part.id, of_part.one) = (id.to_owned(), one.1);
        }
    }
    let Some((at, Twice { id, one, n_same })) = twice.pop_first() else { return Ok(()) };
    let path = |at: u32| collections[at as usize].0.to_owned();
    let n_documents = collections[at as usize].1.map_or(0, Generation::n_documents);
    Err(match n_same == n_documents {
        true => Error::AdoptedAlready { path: path(at), by: path(one) },
        false => Error::DocumentTwice { id, one: path(one), other: path(at) },
    })
}

/// Documents of a part that are elsewhere too.
struct Twice {
    /// The least id.
    id: String,
    /// The collection that has it first.
    one: u32,
    /// Those whose content is the same there.
    n_same: u64,
}
