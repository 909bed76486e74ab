//! The collection as a whole: what is in it, how large its files are, and whether all of it is intact.

use std::collections::BTreeMap;
use std::path::Path;

use cento_vector::hnsw;
use serde::Serialize;

use crate::config::{CollectionConfig, VectorColumn};
use crate::error::{AtPath, Error, Result};
use crate::health::GraphHealth;
use crate::manifest::SegmentEntry;
use crate::searcher::Snapshot;
use crate::segment::{Column, Segment};
use crate::snapshots::At;

/// What a collection holds.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Format of this answer.
    pub version: u32,
    /// Generation that answers.
    pub generation: u64,
    /// Documents that answer.
    pub n_documents: u64,
    /// Chunks that answer.
    pub n_chunks: u64,
    /// Documents deleted or replaced whose bytes are still there.
    pub n_dead_documents: u64,
    /// What every row was built with.
    pub config: CollectionConfig,
    /// Label and folder of each root.
    pub roots: BTreeMap<String, String>,
    /// Segments, in order.
    pub segments: Vec<SegmentStatus>,
    /// Bytes on disk by file name, over all segments.
    pub n_bytes: BTreeMap<String, u64>,
}

/// What a segment holds.
#[derive(Debug, Clone, Serialize)]
pub struct SegmentStatus {
    /// Its folder.
    pub name: String,
    /// Documents, dead ones too.
    pub n_documents: u64,
    /// Rows, dead ones too.
    pub n_rows: u64,
    /// Rows of documents that were deleted or replaced.
    pub n_dead_rows: u64,
    /// How its vectors are searched: `graph` or `exact`.
    pub scan: &'static str,
    /// How good its graphs are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<GraphHealth>,
}

/// Reads the status of a generation of the collection at `folder`.
pub fn status(folder: &Path, at: &At) -> Result<Status> {
    let snapshot = Snapshot::open_at(folder, at)?;
    let segment_status = |(segment, entry): (&Segment, &SegmentEntry)| SegmentStatus {
        name: segment.name.clone(),
        n_documents: segment.documents.len() as u64,
        n_rows: segment.chunks.len() as u64,
        n_dead_rows: (segment.chunks.len() - segment.n_live_rows()) as u64,
        graphs: entry.graphs.clone(),
        scan: if segment.columns[0].graph.is_some() { "graph" } else { "exact" },
    };
    let mut n_bytes = BTreeMap::new();
    for segment in &snapshot.segments {
        add_sizes(&folder.join("segments").join(&segment.name), &mut n_bytes)?;
    }
    let embeddings = folder.join("embeddings"); // of a collection made before embeddings went to the user's cache
    if embeddings.is_dir() {
        add_sizes(&embeddings, &mut n_bytes)?;
    }
    Ok(Status {
        version: 1,
        generation: snapshot.manifest.generation,
        n_documents: snapshot.n_documents(),
        n_chunks: snapshot.n_rows(),
        n_dead_documents: snapshot.segments.iter().map(|segment| segment.deleted.len()).sum(),
        config: snapshot.manifest.config.clone(),
        roots: snapshot
            .manifest
            .roots
            .iter()
            .map(|(label, path)| (label.clone(), path.display().to_string()))
            .collect(),
        segments: snapshot.segments.iter().zip(&snapshot.manifest.segments).map(segment_status).collect(),
        n_bytes,
    })
}

/// Bytes of the files in a folder and the folders below it.
pub(crate) fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut n_bytes = BTreeMap::new();
    add_sizes(folder, &mut n_bytes)?;
    Ok(n_bytes.into_values().sum())
}

fn add_sizes(folder: &Path, n_bytes: &mut BTreeMap<String, u64>) -> Result<()> {
    for entry in std::fs::read_dir(folder).at(folder)? {
        let entry = entry.at(folder)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.metadata().at(&entry.path())? {
            metadata if metadata.is_dir() => {
                let mut within = BTreeMap::new();
                add_sizes(&entry.path(), &mut within)?;
                *n_bytes.entry(format!("{name}/")).or_default() += within.values().sum::<u64>();
            }
            metadata => *n_bytes.entry(name).or_default() += metadata.len(),
        }
    }
    Ok(())
}

/// What a full check found.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    /// Format of this answer.
    pub version: u32,
    /// Generation that was checked.
    pub generation: u64,
    /// One line per thing checked.
    pub checks: Vec<Check>,
}

/// One thing that was checked.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// Segment and file, or the invariant.
    pub name: String,
    /// What is wrong with it; nothing when it is intact.
    pub problem: Option<String>,
}

impl Diagnosis {
    /// Whether everything is intact.
    pub fn is_healthy(&self) -> bool {
        self.checks.iter().all(|check| check.problem.is_none())
    }
}

/// Verifies every checksum and the invariants between files: unit vectors, spans within texts, rows of documents, reachability.
pub fn doctor(folder: &Path) -> Result<Diagnosis> {
    let snapshot = Snapshot::open_current(folder)?;
    let mut checks = Vec::new();
    for segment in &snapshot.segments {
        let mut check = |name: &str, result: Result<()>| {
            checks.push(Check {
                name: format!("{}/{name}", segment.name),
                problem: result.err().map(|error| crate::describe(&error)),
            });
        };
        for (name, result) in segment.verify() {
            check(name, result);
        }
        check("documents have their rows, chunks lie in their documents", check_documents(segment));
        for (column, vectors) in segment.columns.iter().zip(snapshot.manifest.config.pooling.columns()) {
            if let Some(graph) = &column.graph {
                let name = match vectors {
                    VectorColumn::Plain => "every row can be reached in the graph",
                    VectorColumn::Late => "every row can be reached in the graph of late vectors",
                };
                check(name, check_reachable(graph, column, &segment.name));
            }
        }
    }
    Ok(Diagnosis { version: 1, generation: snapshot.manifest.generation, checks })
}

fn check_reachable(graph: &hnsw::FrozenGraph, column: &Column, segment: &str) -> Result<()> {
    match hnsw::health(graph, &column.rows, &hnsw::HealthConfig::default())?.n_unreachable {
        0 => Ok(()),
        n => Err(Error::Corrupt { path: segment.into(), reason: format!("{n} rows cannot be reached") }),
    }
}

fn check_documents(segment: &Segment) -> Result<()> {
    let corrupt = |reason: String| Error::Corrupt { path: segment.name.clone().into(), reason };
    let mut next_row = 0;
    for document in 0..segment.documents.len() as u32 {
        let record = segment.document(document)?;
        let id = segment.documents.text(record.id)?.to_owned();
        if record.first_row != next_row {
            return Err(corrupt(format!("{id}: rows start at {} instead of {next_row}", record.first_row)));
        }
        next_row += record.n_rows;
        let text = segment.document_text(&record)?;
        let mut end = 0;
        for chunk in segment.chunks.records(record.first_row as usize..next_row as usize)? {
            let span = text
                .get(chunk.start as usize..chunk.end as usize)
                .filter(|_| chunk.start >= end && chunk.document == document);
            let Some(span) = span else {
                return Err(corrupt(format!("{id}: chunk {} does not lie in its document", chunk.index)));
            };
            if blake3::hash(span.as_bytes()).as_bytes()[..16] != chunk.hash {
                return Err(corrupt(format!("{id}: chunk {} is not the text that was indexed", chunk.index)));
            }
            end = chunk.end;
        }
    }
    match next_row as usize == segment.chunks.len() {
        true => Ok(()),
        false => Err(corrupt(format!("documents own {next_row} of {} rows", segment.chunks.len()))),
    }
}
