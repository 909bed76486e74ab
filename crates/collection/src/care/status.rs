//! The collection as a whole: what is in it, and how large its files are.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Result;
use crate::format::config::CollectionConfig;
use crate::format::graph_health::GraphHealth;
use crate::format::layout::{QUARANTINE, SEGMENTS, add_sizes, folder_bytes};
use crate::format::losses::{Loss, Stale};
use crate::format::manifest::SegmentEntry;
use crate::format::segment::Segment;
use crate::keep::generation::Generation;
use crate::keep::snapshots::At;

/// The contents of a collection.
#[derive(Debug, Clone, Serialize, JsonSchema)]
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
    /// The settings every row was built with.
    pub config: CollectionConfig,
    /// Label and folder of each root.
    pub roots: BTreeMap<String, String>,
    /// Segments, in order.
    pub segments: Vec<SegmentStatus>,
    /// Bytes on disk by file name, over all segments.
    pub n_bytes: BTreeMap<String, u64>,
    /// Bytes of damaged segments that were set aside; nothing reads them.
    pub n_quarantined_bytes: u64,
    /// Documents that were damaged beyond repair and were not indexed again since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
    /// Documents whose files could not be read when they were indexed last: they answer as they were before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<Stale>,
    /// The servers that have its parts, where it lies on others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardStatus>,
}

/// A part of a collection on other servers, as whoever asks them knows it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShardStatus {
    /// The addresses of its servers.
    pub shard: String,
    /// Generation that is asked for; nothing before it was asked.
    pub generation: Option<u64>,
    /// Its servers, which have the same.
    pub replicas: Vec<ReplicaStatus>,
    /// Calls that were made to a second server because the first was late.
    pub n_hedged: u64,
    /// Calls of these that the second answered first.
    pub n_hedges_won: u64,
}

/// A server of a part.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ReplicaStatus {
    /// Its address.
    pub address: String,
    /// Why it is not asked now, unless no other answers; nothing if it answered last.
    pub down: Option<String>,
    /// Calls that it answered.
    pub n_answers: u64,
    /// Calls that it did not answer, or not rightly.
    pub n_failures: u64,
    /// Calls that another answered first, though it was asked later.
    pub n_overtaken: u64,
}

/// The contents of a segment.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SegmentStatus {
    /// Its folder.
    pub name: String,
    /// Documents, dead ones too.
    pub n_documents: u64,
    /// Rows, dead ones too.
    pub n_rows: u64,
    /// Rows of documents that were deleted or replaced.
    pub n_dead_rows: u64,
    /// The way its vectors are searched: `graph` or `exact`.
    pub scan: &'static str,
    /// The measured quality of its graphs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<GraphHealth>,
}

/// Reads the status of a generation of the collection at `folder`.
pub fn status(folder: &Path, at: &At) -> Result<Status> {
    let snapshot = Generation::open_at(folder, at)?;
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
        add_sizes(&folder.join(SEGMENTS).join(&segment.name), &mut n_bytes)?;
    }
    let quarantine = folder.join(QUARANTINE);
    snapshot.check_whole()?;
    Ok(Status {
        version: 1,
        n_quarantined_bytes: if is_folder(&quarantine) { folder_bytes(&quarantine)? } else { 0 },
        losses: snapshot.manifest.losses.clone(),
        stale: snapshot.manifest.stale.clone(),
        shards: Vec::new(),
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

/// Tells whether this is a folder, and no link to one.
fn is_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}
