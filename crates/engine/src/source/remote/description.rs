//! The description of a shard: figures and settings that can be those of a collection.

use cento_collection::format::calibration::Calibration;
use cento_collection::format::config::SEGMENT_ROWS_MAX;
use cento_collection::format::manifest::{FORMAT, Manifest};
use cento_vector::DIMENSIONS_MAX;

use super::wire::{COUNT_MAX, Fault};
use crate::source::seam::Description;

/// Segments of a shard, at most.
const SEGMENTS_MAX: usize = 1 << 16;

/// The largest cosine, with what rounding may add.
const COSINE_MAX: f64 = 1.01;

/// The rows of each segment, if the figures of a description can be.
pub(super) fn segments(description: &Description) -> Result<Vec<u32>, Fault> {
    let Description { manifest, n_documents, n_rows, n_graph_rows, .. } = description;
    if manifest.format != FORMAT {
        return Err(format!("it has format {}, and this cento reads {FORMAT}", manifest.format));
    }
    let fits = |n_rows: u64| u32::try_from(n_rows).ok().filter(|n_rows| *n_rows as usize <= SEGMENT_ROWS_MAX);
    let segments: Option<Vec<u32>> = manifest.segments.iter().map(|entry| fits(entry.n_rows)).collect();
    let segments = segments.filter(|segments| segments.len() <= SEGMENTS_MAX);
    let segments = segments.ok_or("it has more segments, or larger ones, than a collection can have")?;
    let most: u64 = segments.iter().map(|n_rows| u64::from(*n_rows)).sum();
    let mut stored = manifest.segments.iter().map(|entry| entry.n_documents);
    let are_documents = *n_documents <= COUNT_MAX && stored.all(|n| n <= u64::from(u32::MAX));
    if !(*n_rows <= most && n_graph_rows <= n_rows && are_documents) {
        return Err(format!("it has {n_rows} rows of {most} and {n_documents} documents"));
    }
    check_manifest(manifest)?;
    Ok(segments)
}

fn check_manifest(manifest: &Manifest) -> Result<(), Fault> {
    let mut counts = std::iter::once(manifest.generation)
        .chain(manifest.losses.iter().map(|loss| loss.n_unnamed))
        .chain(manifest.stale.iter().map(|stale| stale.n_documents));
    if counts.any(|count| count > COUNT_MAX) {
        return Err("a number of it is larger than any collection has".to_owned());
    }
    for dimensions in [manifest.config.dimensions, manifest.config.query_dimensions()] {
        if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
            return Err(format!("its vectors have {dimensions} dimensions"));
        }
    }
    let is_cosine = |figure: &f64| figure.abs() <= COSINE_MAX;
    let are_cosines = match &manifest.calibration {
        None => true,
        Some(Calibration::Figures(figures)) => [figures.cosine_typical, figures.cosine_unrelated].iter().all(is_cosine),
        Some(Calibration::Sample(sample)) => {
            is_cosine(&sample.cosine_unrelated) && sample.chunks.values().flatten().all(is_cosine)
        }
    };
    if are_cosines { Ok(()) } else { Err("its calibration has figures that are no cosines".to_owned()) }
}
