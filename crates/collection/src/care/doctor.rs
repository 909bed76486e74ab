//! Doctor: every checksum and every invariant between files, and what would be left if nothing but the intact were
//! kept.

use std::collections::BTreeSet;
use std::path::Path;

use cento_lexical::Analyzer;
use cento_vector::hnsw;
use roaring::RoaringBitmap;
use serde::Serialize;

use crate::error::{AtPath, Error, Result};
use crate::format::config::VectorColumn;
use crate::format::layout::{CURRENT, GENERATIONS, OURS, SEGMENTS, SNAPSHOTS};
use crate::format::losses::Loss;
use crate::format::manifest::{Manifest, SegmentEntry};
use crate::format::names;
use crate::format::segment::{self, Column, Salvage, Segment};
use crate::format::{deletes, files};
use crate::fs::Folder;
use crate::keep::named::{self, Snapshots};

/// The findings of a full check.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    /// Format of this answer.
    pub version: u32,
    /// Generation that was checked.
    pub generation: u64,
    /// One line per thing checked.
    pub checks: Vec<Check>,
    /// Each segment, and what of it can be kept.
    pub segments: Vec<SegmentDiagnosis>,
    /// Documents that an earlier repair could not keep and that were not indexed again since.
    pub losses: Vec<Loss>,
    /// Oddities that do no harm.
    pub remarks: Vec<String>,
}

/// One thing that was checked.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// Segment and file, or the invariant.
    pub name: String,
    /// The faults found; empty when it is intact.
    pub problem: Option<String>,
}

/// The parts of a segment that can still be read.
#[derive(Debug, Clone, Serialize)]
pub struct SegmentDiagnosis {
    /// Its folder.
    pub name: String,
    /// True if anything in it is damaged.
    pub is_damaged: bool,
    /// Documents that are to answer.
    pub n_documents: u64,
    /// Those that can be read whole: a repair keeps them.
    pub n_documents_readable: u64,
    /// Of these, documents whose vectors a repair must find in the embedding cache, or embed.
    pub n_documents_without_vectors: u64,
    /// Its share of the documents of the collection, in `0..=1`.
    pub share: f64,
}

impl Diagnosis {
    /// True if everything is intact.
    pub fn is_healthy(&self) -> bool {
        self.checks.iter().all(|check| check.problem.is_none())
    }
}

/// Verifies every checksum and the invariants between files: unit vectors, spans within texts, rows of documents,
/// postings against lengths, reachability, tombstones, manifests.
pub fn doctor(folder: &Path) -> Result<Diagnosis> {
    let (manifest, damage) = Manifest::read_or_newest(folder)?;
    let mut checks = vec![check(CURRENT, damage.map_or(Ok(()), Err))];
    let snapshots = named::all(folder);
    checks.extend(check_copies(folder, &manifest, &snapshots));
    let opened = Folder::open(folder).at(folder)?;
    let mut segments = Vec::new();
    for entry in &manifest.segments {
        let examined = Examined::new(&opened, &manifest, entry);
        segments.push(examined.diagnosis(&opened, &manifest, entry)?);
        checks.extend(examined.checks);
    }
    let n_documents: u64 = segments.iter().map(|segment| segment.n_documents).sum();
    for segment in &mut segments {
        segment.share = segment.n_documents as f64 / n_documents.max(1) as f64;
    }
    let remarks = remarks(&opened, &manifest, snapshots.unwrap_or_default())?;
    Ok(Diagnosis { version: 1, generation: manifest.generation, checks, segments, losses: manifest.losses, remarks })
}

fn check(name: impl Into<String>, result: Result<()>) -> Check {
    Check { name: name.into(), problem: result.err().map(|error| crate::describe(&error)) }
}

/// The other places where manifests are kept.
fn check_copies(folder: &Path, manifest: &Manifest, snapshots: &Result<Snapshots>) -> Vec<Check> {
    let generation = manifest.generation;
    let copy = Manifest::read_generation(folder, generation).and_then(|copy| match copy == *manifest {
        true => Ok(()),
        false => {
            let path = folder.join(GENERATIONS).join(format!("{generation}.json"));
            Err(Error::Corrupt { path, reason: format!("is another generation {generation} than {CURRENT}") })
        }
    });
    let mut checks = vec![check(format!("{GENERATIONS}/{generation}.json"), copy)];
    let failed = |name: String, error: &Error| Check { name, problem: Some(crate::describe(error)) };
    match snapshots {
        Err(error) => checks.push(failed(SNAPSHOTS.to_owned(), error)),
        Ok(snapshots) if snapshots.unread.is_empty() => checks.push(check(SNAPSHOTS, Ok(()))),
        Ok(snapshots) => {
            let unread = snapshots.unread.iter();
            checks.extend(unread.map(|(name, error)| failed(format!("{SNAPSHOTS}/{name}.json"), error)));
        }
    }
    checks
}

/// A segment with everything that was found out about it.
pub struct Examined {
    /// One for each of its files, and one for what must hold between them.
    pub checks: Vec<Check>,
    /// Its tombstones, if they can be read.
    pub deleted: Option<RoaringBitmap>,
}

impl Examined {
    /// Verifies a segment that a manifest names.
    pub fn new(folder: &Folder, manifest: &Manifest, entry: &SegmentEntry) -> Self {
        let mut checks = Vec::new();
        let deleted = deletes::of_entry(folder, entry);
        if let (Some(name), Err(error)) = (&entry.deletes, &deleted) {
            checks.push(Check { name: format!("deletes/{name}"), problem: Some(crate::describe(error)) });
        }
        let deleted = deleted.ok();
        let opened = manifest.config.language().and_then(|language| {
            let analyzer = Analyzer::new(language);
            let dead = deleted.clone().unwrap_or_default();
            Segment::open(&segment::folder(folder, &entry.name)?, &entry.name, &analyzer, manifest.config.pooling, dead)
        });
        match opened {
            Ok(segment) => checks.extend(check_segment(&segment, manifest, entry)),
            Err(error) => checks.push(check(&entry.name, Err(error))),
        }
        Self { checks, deleted }
    }

    /// True if a check failed.
    pub fn is_damaged(&self) -> bool {
        self.checks.iter().any(|check| check.problem.is_some())
    }

    fn diagnosis(&self, folder: &Folder, manifest: &Manifest, entry: &SegmentEntry) -> Result<SegmentDiagnosis> {
        let is_dead = |document: &u32| self.deleted.as_ref().is_some_and(|deleted| deleted.contains(*document));
        let documents = (0..entry.n_documents as u32).filter(|document| !is_dead(document));
        let mut diagnosis = SegmentDiagnosis {
            name: entry.name.clone(),
            is_damaged: self.is_damaged(),
            n_documents: documents.clone().count() as u64,
            n_documents_readable: 0,
            n_documents_without_vectors: 0,
            share: 0.0,
        };
        if !diagnosis.is_damaged {
            diagnosis.n_documents_readable = diagnosis.n_documents;
            return Ok(diagnosis);
        }
        let salvage = Salvage::open(folder, &entry.name, &manifest.config);
        let Some(mut reader) = salvage.reader(&manifest.config)? else { return Ok(diagnosis) };
        for stored in documents.filter_map(|document| reader.read(document).ok()) {
            diagnosis.n_documents_readable += 1;
            diagnosis.n_documents_without_vectors += u64::from(salvage.vectors(&stored).is_none());
        }
        salvage.check_whole()?;
        Ok(diagnosis)
    }
}

fn check_segment(segment: &Segment, manifest: &Manifest, entry: &SegmentEntry) -> Vec<Check> {
    let named = |name: &str| format!("{}/{name}", segment.name);
    let mut checks: Vec<Check> = segment.verify().into_iter().map(|(name, ok)| check(named(name), ok)).collect();
    checks.push(check(named("is as large as the manifest says"), segment.check_counts(entry)));
    checks.push(check(named("documents have their rows, chunks lie in their documents"), check_documents(segment)));
    checks.push(check(
        named("postings add up to the lengths of the rows"),
        segment.lexical.verify().map_err(Error::from),
    ));
    for (column, vectors) in segment.columns.iter().zip(manifest.config.pooling.columns()) {
        if column.graph.is_none() && entry.graphs.iter().any(|graph| graph.vectors == *vectors) {
            let missing =
                Error::Corrupt { path: segment.name.clone().into(), reason: "the file is missing".to_owned() };
            checks.push(check(named(&format!("graph of {vectors} vectors")), Err(missing)));
        }
        if let Some(graph) = &column.graph {
            let name = match vectors {
                VectorColumn::Plain => "every row can be reached in the graph",
                VectorColumn::Late => "every row can be reached in the graph of late vectors",
            };
            checks.push(check(named(name), check_reachable(graph, column, &segment.name)));
        }
    }
    if let Err(error) = segment.check_whole() {
        // What was found is of bytes that were lost while they were looked at.
        checks = vec![check(&segment.name, Err(error))];
    }
    checks
}

fn check_reachable(graph: &hnsw::FrozenGraph, column: &Column, segment: &str) -> Result<()> {
    match hnsw::health(graph, &column.rows, &hnsw::HealthConfig { n_sample: 0, n_exact: 0, ..Default::default() })?
        .n_unreachable
    {
        0 => Ok(()),
        n => Err(Error::Corrupt { path: segment.into(), reason: format!("{n} rows cannot be reached") }),
    }
}

fn check_documents(segment: &Segment) -> Result<()> {
    let corrupt = |reason: String| Error::Corrupt { path: segment.name.clone().into(), reason };
    let (mut next_row, mut next_section) = (0_u64, 0_u64);
    let mut n_links = 0;
    for document in 0..segment.documents.len() as u32 {
        let record = segment.document(document)?;
        let id = segment.documents.text(record.id)?.to_owned();
        if u64::from(record.first_row) != next_row || u64::from(record.first_section) != next_section {
            return Err(corrupt(format!(
                "{id}: rows and sections start at {} and {} instead of {next_row} and {next_section}",
                record.first_row, record.first_section
            )));
        }
        n_links += segment.links.of(document, &record)?.map_or(0, |links| links.len());
        next_row += u64::from(record.n_rows);
        next_section += u64::from(record.n_sections);
        let text = segment.document_text(&record)?;
        let mut end = 0;
        for chunk in segment.chunks.records(record.first_row as usize..next_row as usize)? {
            let span = text
                .get(chunk.start as usize..chunk.end as usize)
                .filter(|_| chunk.start >= end && chunk.document == document);
            let Some(span) = span else {
                return Err(corrupt(format!("{id}: chunk {} does not lie in its document", chunk.index)));
            };
            if !chunk.is_of(span) {
                return Err(corrupt(format!("{id}: chunk {} is not the text that was indexed", chunk.index)));
            }
            end = chunk.end;
        }
        for section in segment.sections.records(record.first_section as usize..next_section as usize)? {
            if text.get(section.start as usize..section.end as usize).is_none() {
                return Err(corrupt(format!("{id}: a section does not lie in its document")));
            }
        }
    }
    if n_links != segment.links.len() {
        return Err(corrupt(format!("documents own {n_links} of {} links", segment.links.len())));
    }
    let (n_rows, n_sections) = (segment.chunks.len(), segment.sections.len());
    match next_row as usize == n_rows && next_section as usize == n_sections {
        true => Ok(()),
        false => Err(corrupt(format!(
            "documents own {next_row} of {n_rows} rows and {next_section} of {n_sections} sections"
        ))),
    }
}

/// Files in the folder that nothing uses.
fn remarks(folder: &Folder, manifest: &Manifest, snapshots: Snapshots) -> Result<Vec<String>> {
    let mut remarks = Vec::new();
    if let Some(Err(error)) = manifest.reports.as_deref().map(|name| files::read(folder, name)) {
        remarks.push(format!("{}; the next index run makes it anew", crate::describe(&error)));
    }
    for name in folder.names().at(folder.path())? {
        if !OURS.contains(&name.as_str()) {
            remarks.push(format!("{name} is no part of the collection"));
        }
    }
    let mut kept: Vec<Manifest> = vec![manifest.clone()];
    kept.extend(snapshots.whole.into_values());
    let place = folder.path().join(GENERATIONS);
    let generations = folder.folder(GENERATIONS).at(&place)?;
    let is_other = |name: &String| names::manifest(name).is_some_and(|generation| generation != manifest.generation);
    for name in generations.names().at(&place)?.into_iter().filter(is_other) {
        match Manifest::read_file(&generations, &name) {
            Ok(older) => kept.push(older),
            Err(error) => remarks.push(format!("{}; the next commits remove it", crate::describe(&error))),
        }
    }
    let named: BTreeSet<&String> = kept.iter().flat_map(|kept| &kept.segments).map(|entry| &entry.name).collect();
    let path = folder.path().join(SEGMENTS);
    for name in folder.folder(SEGMENTS).and_then(|segments| segments.names()).at(&path)? {
        if !names::is_segment(&name) {
            remarks.push(format!("segments/{name} is no part of the collection"));
        } else if !named.contains(&name) && snapshots.unread.is_empty() {
            remarks.push(format!("segments/{name} belongs to no generation; the next commit removes it"));
        } else if !named.contains(&name) {
            remarks.push(format!("segments/{name} belongs to no generation that can be read"));
        }
    }
    Ok(remarks)
}
