//! Vectors that are given: a matrix, ids and texts become a collection without an encoder.
//!
//! A row is a document with one chunk. The files are read twice: once to see that every vector, id and text can be
//! taken, before anything is written, and once to write them. A document whose id the collection has is replaced if its
//! vector or text is another one; no document goes because it is not among those given.

mod matrix;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use cento_collection::format::config::{
    CHUNKER_VERSION, ChunkTokens, CollectionConfig, Distance, GRAPH_ROWS_MIN, GivenVectors, NO_MODEL, PRECISION,
    Pooling, SEGMENT_ROWS_MAX,
};
use cento_collection::format::manifest::Manifest;
use cento_collection::format::segment::{NewChunk, NewDocument, SegmentLimits};
use cento_collection::fs::{Fs, read_bounded};
use cento_collection::keep::generation::Generation;
use cento_collection::keep::lock::WriterLock;
use cento_collection::write::commit::{Base, Commit};
use cento_collection::write::compact::{self, CompactOptions, Merge};
use cento_collection::write::segments::SegmentsWriter;
use cento_collection::write::{create, memory};
use cento_corpus::{
    self as corpus, Anchor, Chunk, ChunkSize, Document, Format, FoundFile, HeaderStyle, ReadOptions, RecordIds,
};
use cento_lexical::Language;
use cento_vector::{EXPONENTS, Lift, Scalar, UNIT_TOLERANCE};
use roaring::RoaringBitmap;

use self::matrix::{Matrix, Number};
pub use self::matrix::{bare_vectors, read_vectors};
use super::{IndexReport, Progress, Stage};
use crate::error::{AtPath, Error, Result};

/// Bytes of a file of ids, at most.
const IDS_BYTES_MAX: u64 = 4 << 30;

/// Bytes of memory that a document takes until the run ends.
const LEDGER_BYTES: u64 = 64;

/// Documents between two reports of progress.
const PROGRESS_DOCUMENTS: u64 = 4096;

/// Half of BLAKE3 of an id.
type IdHash = [u8; 16];

/// Files of vectors, and what a collection of them is built with; `None` means what the collection has, or the default
/// for a new one.
#[derive(Debug, Clone)]
pub struct GivenOptions {
    /// The vectors, a row each: `.npy`, `.fvecs` or `.bvecs`.
    pub vectors: PathBuf,
    /// The ids, a line each; none: those of the texts, or the numbers of the rows.
    pub ids: Option<PathBuf>,
    /// The texts, JSONL, a line each.
    pub texts: Option<PathBuf>,
    /// The order of neighbours.
    pub distance: Option<Distance>,
    /// The treatment of lengths.
    pub lengths: Lengths,
    /// The greatest length that vectors may ever have, for inner products and distances.
    pub norm_max: Option<f64>,
    /// Language of the lexical analysis.
    pub language: Option<Language>,
    /// Scalar type of stored vectors.
    pub scalar: Option<Scalar>,
    /// Rows from which a segment gets a graph.
    pub graph_rows_min: usize,
    /// Bytes of memory that the run may take; `None` for a quarter of the machine's.
    pub memory_bytes: Option<u64>,
    /// True if segments are merged after the commit when that is due.
    pub compact: bool,
}

impl GivenOptions {
    /// A file of vectors by every default.
    pub fn new(vectors: impl Into<PathBuf>) -> Self {
        Self {
            vectors: vectors.into(),
            ids: None,
            texts: None,
            distance: None,
            lengths: Lengths::default(),
            norm_max: None,
            language: None,
            scalar: None,
            graph_rows_min: GRAPH_ROWS_MIN,
            memory_bytes: None,
            compact: true,
        }
    }
}

/// The treatment of the lengths of vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lengths {
    /// They stay; for the cosine they must be 1.
    #[default]
    Kept,
    /// Every vector is divided by its own.
    Normalized,
}

/// Brings the collection at `folder`, which is made if absent, up to date with vectors.
///
/// # Errors
/// [`Error::Vectors`] for a file that cannot be used, named with its row; [`Error::Mismatch`] where the collection has
/// other settings; those of the folder. Nothing is changed then.
pub fn index_vectors(
    folder: &Path,
    options: &GivenOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    memory::memory_bytes(options.memory_bytes)?;
    let known = Manifest::read_if_any(folder)?;
    let config = Examined::new(options)?.settle(known.as_ref(), options)?; // before anything is made
    if known.is_none() {
        create::folder(fs, folder)?;
    }
    let lock = WriterLock::acquire(folder, fs)?;
    if known.is_none() {
        create::inner_folders(&lock, folder)?;
    }
    lock.explained(index_locked(folder, options, &config, &lock, progress))
}

fn index_locked(
    folder: &Path,
    options: &GivenOptions,
    config: &CollectionConfig,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    let known = Manifest::read_if_any(folder)?; // anew: another writer may have come before the lock
    if let Some(known) = known.as_ref().filter(|known| known.config != *config) {
        let (collection, requested) = (known.config.model.clone(), config.model.clone());
        return Err(Error::Mismatch { setting: "model", collection, requested });
    }
    let snapshot = known.map(|manifest| Generation::open(folder, manifest)).transpose()?;
    let mut report = write(folder, options, config, snapshot.as_ref(), fs, progress)?;
    drop(snapshot);
    if !options.compact {
        return Ok(report);
    }
    let options = CompactOptions {
        merge: Merge::Due,
        graph_rows_min: options.graph_rows_min,
        memory_bytes: options.memory_bytes,
        segment_rows_max: SEGMENT_ROWS_MAX,
    };
    match compact::compact_locked(folder, &options, fs, &mut |copied| progress(&Progress::of_copying(copied))) {
        Ok(compaction) if compaction.n_merged == 0 => {}
        Ok(compaction) => {
            report.generation = compaction.generation;
            report.notes.extend(compaction.remark.clone());
            report.compaction = Some(compaction);
        }
        Err(error) => report.notes.push(format!("the segments were not merged: {}", crate::describe(&error))),
    }
    Ok(report)
}

/// The findings of the first reading.
struct Examined {
    n_columns: usize,
    /// The greatest length, and the row that has it.
    longest: (f64, u64),
    /// The first row that is not of unit length, and its length.
    not_unit: Option<(u64, f64)>,
}

impl Examined {
    /// Reads the files to their end.
    fn new(options: &GivenOptions) -> Result<Self> {
        let mut given = Given::open(options)?;
        let mut examined = Self { n_columns: given.matrix.n_columns, longest: (0.0, 0), not_unit: None };
        if given.matrix.n_rows == 0 {
            return Err(Error::NothingToIndex { reason: format!("{} has no row", options.vectors.display()) });
        }
        let (mut ids, mut row) = (HashSet::new(), 0);
        while let Some(one) = given.next()? {
            let length = length(&one.vector);
            if !length.is_finite() {
                return Err(given.refuse(&format!("row {row} has a number that is not finite")));
            }
            if length > examined.longest.0 {
                examined.longest = (length, row);
            }
            if (length - 1.0).abs() > UNIT_TOLERANCE && examined.not_unit.is_none() {
                examined.not_unit = Some((row, length));
            }
            if options.lengths == Lengths::Normalized && length == 0.0 {
                return Err(given.refuse(&format!("row {row} is a vector of zeros, which has no direction")));
            }
            if !ids.insert(id_hash(&one.document.id)) {
                return Err(given.refuse(&format!("row {row} has the id {:?} of another row", one.document.id)));
            }
            row += 1;
        }
        Ok(examined)
    }

    /// The configuration the rows will have: the collection's own, or a new one; a request that differs is refused.
    fn settle(&self, known: Option<&Manifest>, options: &GivenOptions) -> Result<CollectionConfig> {
        let refuse = |reason: String| Error::Vectors { path: options.vectors.clone(), reason };
        let known = known.map(|manifest| &manifest.config);
        let known_given = match known.map(|config| config.given) {
            Some(None) => {
                let reason =
                    "the collection has an encoder, whose vectors these are not; give them a collection of their own";
                return Err(refuse(reason.to_owned()));
            }
            Some(given) => given,
            None => None,
        };
        let distance = options.distance.or(known_given.map(|given| given.distance)).unwrap_or_default();
        if let (Distance::Cosine, Lengths::Kept, Some((row, length))) = (distance, options.lengths, self.not_unit) {
            return Err(refuse(format!(
                "row {row} has length {length}, and the cosine is of vectors of length 1: have them normalized, or rank \
                 by the inner product or the Euclidean distance"
            )));
        }
        let norm_exponent = self.norm_exponent(distance, known_given, options)?;
        let given =
            GivenVectors { dimensions: self.n_columns, distance, norm_exponent, texts: options.texts.is_some() };
        let Some((config, old)) = known.zip(known_given) else { return Ok(new_config(given, options)) };
        let differs = |setting, collection: String, requested: String| match collection == requested {
            true => Ok(()),
            false => Err(Error::Mismatch { setting, collection, requested }),
        };
        let texts = |given: &GivenVectors| if given.texts { "texts" } else { "no texts" }.to_owned();
        differs("dimensions", old.dimensions.to_string(), given.dimensions.to_string())?;
        differs("distance", old.distance.to_string(), distance.to_string())?;
        differs("texts", texts(&old), texts(&given))?;
        if let Some(language) = options.language {
            differs("language", config.language.clone(), language.to_string())?;
        }
        if let Some(scalar) = options.scalar {
            differs("vectors", config.vectors.clone(), scalar_name(scalar).to_owned())?;
        }
        Ok(config.clone())
    }

    /// The bound of all lengths: the collection's own, or the least power of two for these.
    fn norm_exponent(&self, distance: Distance, known: Option<GivenVectors>, options: &GivenOptions) -> Result<i32> {
        let (longest, row) = match options.lengths {
            Lengths::Kept => self.longest,
            Lengths::Normalized => (1.0, 0),
        };
        let refuse = |reason: String| Error::Vectors { path: options.vectors.clone(), reason };
        if distance == Distance::Cosine {
            return match options.norm_max {
                Some(_) => Err(refuse("a bound of lengths means nothing to the cosine".to_owned())),
                None => Ok(0),
            };
        }
        let beyond = |exponent: i32| longest > 2_f64.powi(exponent);
        if let Some(known) = known.filter(|known| known.distance == distance) {
            let bound = 2_f64.powi(known.norm_exponent);
            return match beyond(known.norm_exponent) {
                true => Err(refuse(format!(
                    "row {row} has length {longest}, and the collection was made for lengths to {bound}: index all \
                     vectors into a new one, with room for the longest"
                ))),
                false => Ok(known.norm_exponent),
            };
        }
        let wanted = options.norm_max.unwrap_or(longest);
        if !(wanted >= longest) {
            return Err(refuse(format!(
                "row {row} has length {longest}, more than the greatest that was named, {wanted}"
            )));
        }
        Lift::exponent(wanted).ok_or_else(|| {
            let most = 2_f64.powi(*EXPONENTS.end());
            refuse(format!("row {row} has length {longest}; lengths to {most:e} can be"))
        })
    }
}

fn new_config(given: GivenVectors, options: &GivenOptions) -> CollectionConfig {
    CollectionConfig {
        model: NO_MODEL.to_owned(),
        model_fingerprint: NO_MODEL.to_owned(),
        dimensions: given.dimensions + given.lift().added(),
        chunk_tokens: ChunkTokens(ChunkSize::Document).to_string(),
        chunker_version: CHUNKER_VERSION,
        header: HeaderStyle::None.to_string(),
        language: options.language.unwrap_or_default().to_string(),
        vectors: scalar_name(options.scalar.unwrap_or(Scalar::F32)).to_owned(),
        precision: PRECISION.to_owned(),
        pooling: Pooling::Plain,
        late: None,
        given: Some(given),
    }
}

fn scalar_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::F32 => "f32",
        Scalar::F16 => "f16",
    }
}

fn length(vector: &[f32]) -> f64 {
    vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt()
}

fn id_hash(id: &str) -> IdHash {
    let mut hash = IdHash::default();
    hash.copy_from_slice(&blake3::hash(id.as_bytes()).as_bytes()[..size_of::<IdHash>()]);
    hash
}

/// Everything of a row that shapes the collection.
fn content_hash(one: &One) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for value in &one.vector {
        hasher.update(&value.to_le_bytes());
    }
    for part in [&one.document.text, &one.document.title] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let metadata = serde_json::to_vec(&one.document.metadata).expect("metadata is always JSON");
    *hasher.update(&metadata).finalize().as_bytes()
}

/// A row: a document and its vector.
struct One {
    document: Document,
    vector: Vec<f32>,
}

/// The files of a run, read together.
struct Given {
    matrix: Matrix,
    vectors: PathBuf,
    /// The name of the file of the vectors, which its documents come from.
    origin: String,
    ids: Option<(PathBuf, std::vec::IntoIter<String>)>,
    texts: Option<(FoundFile, corpus::Documents)>,
    row: u64,
    buffer: Vec<f32>,
}

impl Given {
    fn open(options: &GivenOptions) -> Result<Self> {
        let matrix = Matrix::open(&options.vectors)?;
        let ids = options.ids.as_deref().map(|path| Ok::<_, Error>((path.to_owned(), read_ids(path)?.into_iter())));
        let ids = ids.transpose()?;
        if let Some((path, ids)) = &ids
            && ids.len() as u64 != matrix.n_rows
        {
            let reason = format!("has {} ids, and there are {} vectors", ids.len(), matrix.n_rows);
            return Err(Error::Vectors { path: path.clone(), reason });
        }
        let texts = options.texts.as_deref().map(|path| {
            let n_bytes = std::fs::metadata(path).at(path)?.len();
            let (path, origin, record_ids) = (path.to_owned(), name_of(path), RecordIds::Own);
            let file = FoundFile { path, origin, format: Format::Jsonl, n_bytes, record_ids };
            let documents = corpus::read(&file, &ReadOptions::default())?;
            Ok::<_, Error>((file, documents))
        });
        Ok(Self {
            matrix,
            vectors: options.vectors.clone(),
            origin: name_of(&options.vectors),
            ids,
            texts: texts.transpose()?,
            row: 0,
            buffer: Vec::new(),
        })
    }

    fn refuse(&self, reason: &str) -> Error {
        Error::Vectors { path: self.vectors.clone(), reason: reason.to_owned() }
    }

    /// The next row; none behind the last.
    fn next(&mut self) -> Result<Option<One>> {
        if !self.matrix.next(&mut self.buffer)? {
            self.check_texts_ended()?;
            return Ok(None);
        }
        let row = self.row;
        self.row += 1;
        let (own, document) = self.text()?;
        let named = match &mut self.ids {
            Some((_, ids)) => ids.next(),
            None => None,
        };
        if let (Some(own), Some(named)) = (&own, &named)
            && own != named
        {
            return Err(self.refuse(&format!("row {row} is {named:?} by its id and {own:?} by its text")));
        }
        let id = named.or(own).unwrap_or_else(|| row.to_string());
        let mut document = match document {
            Some(document) => document,
            None => corpus::parse(id.clone().into_bytes(), &id, Format::Text)?,
        };
        document.title = if self.texts.is_some() { document.title } else { String::new() };
        document.origin.clone_from(&self.origin);
        document.id = id;
        Ok(Some(One { document, vector: self.buffer.clone() }))
    }

    /// The next text, and its own id if it has one.
    fn text(&mut self) -> Result<(Option<String>, Option<Document>)> {
        let n_rows = self.matrix.n_rows;
        let Some((file, documents)) = &mut self.texts else { return Ok((None, None)) };
        let Some(document) = documents.next().transpose()? else {
            let reason = format!("has {} texts, and there are {n_rows} vectors", self.row - 1);
            return Err(Error::Vectors { path: file.path.clone(), reason });
        };
        let is_numbered = document.id.strip_prefix(&file.origin).is_some_and(|rest| rest.starts_with(':'));
        Ok((Some(document.id.clone()).filter(|_| !is_numbered), Some(document)))
    }

    fn check_texts_ended(&mut self) -> Result<()> {
        let Some((file, documents)) = &mut self.texts else { return Ok(()) };
        match documents.next().transpose()? {
            None => Ok(()),
            Some(_) => {
                let reason = format!("has more texts than the {} vectors", self.row);
                Err(Error::Vectors { path: file.path.clone(), reason })
            }
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The ids of a file, a line each.
fn read_ids(path: &Path) -> Result<Vec<String>> {
    let refuse = |reason: String| Error::Vectors { path: path.to_owned(), reason };
    let bytes = read_bounded(path, IDS_BYTES_MAX).at(path)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        refuse(format!("is not UTF-8 from byte {} on; ids are lines of text", error.utf8_error().valid_up_to()))
    })?;
    let ids: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    match ids.iter().position(String::is_empty) {
        Some(line) => Err(refuse(format!("line {} is empty; every vector has an id", line + 1))),
        None => Ok(ids),
    }
}

/// Writes new and changed documents, and publishes the generation with them.
fn write(
    folder: &Path,
    options: &GivenOptions,
    config: &CollectionConfig,
    snapshot: Option<&Generation>,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    let memory_bytes = memory::memory_bytes(options.memory_bytes)?;
    let limits = SegmentLimits { memory_bytes, rows_max: SEGMENT_ROWS_MAX, graph_rows_min: options.graph_rows_min };
    let generation = snapshot.map_or(0, |snapshot| snapshot.manifest.generation) + 1;
    let known = snapshot.map(known_documents).transpose()?.unwrap_or_default();
    let mut writing = Writing {
        segments: SegmentsWriter::new(fs, folder, config, generation, limits),
        lift: config.lift(),
        memory_bytes,
        snapshot,
        known,
        seen: HashSet::new(),
        replaced: BTreeMap::new(),
        report: IndexReport::default(),
        state: Progress::default(),
    };
    let mut given = Given::open(options)?;
    if given.matrix.number == Number::F64 {
        writing.report.notes.push(format!("{}: 64-bit numbers are kept in 32 bits", given.origin));
    }
    while let Some(mut one) = given.next()? {
        if options.lengths == Lengths::Normalized {
            let length = length(&one.vector);
            one.vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
        }
        writing.add(one, progress)?;
    }
    writing.finish_segment(progress)?;
    writing.publish(folder, config, fs)
}

/// The segments of a run in the making.
struct Writing<'a> {
    segments: SegmentsWriter<'a>,
    lift: Lift,
    memory_bytes: u64,
    snapshot: Option<&'a Generation>,
    known: HashMap<IdHash, (usize, u32)>,
    seen: HashSet<IdHash>,
    replaced: BTreeMap<usize, RoaringBitmap>,
    report: IndexReport,
    state: Progress,
}

impl Writing<'_> {
    fn add(&mut self, one: One, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        self.state.n_documents += 1;
        if self.state.n_documents.is_multiple_of(PROGRESS_DOCUMENTS) {
            progress(&self.state);
        }
        let id = id_hash(&one.document.id);
        self.seen.insert(id);
        let hash = content_hash(&one);
        match self.known.get(&id) {
            Some(&(segment, document)) => {
                let snapshot = self.snapshot.expect("what is known is of a snapshot");
                if snapshot.segments[segment].document(document)?.hash == hash {
                    self.report.n_unchanged += 1;
                    return Ok(());
                }
                self.replaced.entry(segment).or_default().insert(document);
                self.report.n_changed += 1;
            }
            None => self.report.n_added += 1,
        }
        let n_tokens = one.document.text.split_whitespace().count() as u32;
        let chunk = Chunk {
            span: 0..one.document.text.len(),
            section: 0,
            n_tokens,
            hidden: false,
            anchor: one.document.blocks.first().map_or_else(Anchor::default, |block| block.anchor.clone()),
            header_skip: 0,
        };
        let chunks = vec![NewChunk { index: 0, chunk: &chunk, header: "" }];
        let new = NewDocument { document: &one.document, links: Some(&one.document.links), hash, n_chunks: 1, chunks };
        let taken_bytes = LEDGER_BYTES * (self.known.len() + self.seen.len()) as u64;
        self.segments.limits.memory_bytes = memory::segment_bytes(self.memory_bytes, taken_bytes);
        if !self.segments.has_room(&new) {
            self.finish_segment(progress)?;
        }
        let row = self.segments.push(&new)?;
        let segment = self.segments.open().expect("a document was just added");
        segment.set_vector(0, row, &self.lift.row(&one.vector))?;
        self.report.n_chunks += 1;
        Ok(())
    }

    fn finish_segment(&mut self, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        self.state.stage = Stage::Writing;
        progress(&self.state);
        let state = &mut self.state;
        self.segments.finish_segment(&BTreeSet::new(), |n_done| {
            state.n_graph_rows = n_done as u64;
            progress(state);
        })?;
        self.state.stage = Stage::Embedding;
        Ok(())
    }

    /// Publishes the generation with the segments; does nothing if nothing changed.
    fn publish(mut self, folder: &Path, config: &CollectionConfig, fs: &dyn Fs) -> Result<IndexReport> {
        let manifest = self.snapshot.map(|snapshot| &snapshot.manifest);
        let mut losses = manifest.map(|manifest| manifest.losses.clone()).unwrap_or_default();
        for loss in &mut losses {
            loss.documents.retain(|document| !self.seen.contains(&id_hash(&document.id)));
        }
        losses.retain(|loss| loss.n_documents() > 0);
        let is_settled = manifest.is_none_or(|manifest| manifest.losses == losses);
        if let Some(manifest) = manifest.filter(|_| is_settled && self.segments.written().is_empty()) {
            self.report.generation = manifest.generation;
            return Ok(self.report);
        }
        let commit = Commit {
            config: config.clone(),
            roots: BTreeMap::new(),
            new_segments: self.segments.finish(),
            deleted: self.replaced,
        };
        let base = Base {
            manifest,
            deleted: &|at| self.snapshot.expect("a segment is of a snapshot").segments[at].deleted.clone(),
            losses,
            stale: manifest.map(|manifest| manifest.stale.clone()).unwrap_or_default(),
            calibration: None,
            is_answered_alike: false,
        };
        let committed = commit.publish_over(fs, folder, base)?;
        self.report.generation = committed.generation;
        self.report.notes.extend(committed.remark);
        Ok(self.report)
    }
}

fn known_documents(snapshot: &Generation) -> Result<HashMap<IdHash, (usize, u32)>> {
    let mut known = HashMap::new();
    for (at, segment) in snapshot.segments.iter().enumerate() {
        for document in segment.live_documents() {
            known.insert(id_hash(segment.document_id(document)?), (at, document));
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests;
