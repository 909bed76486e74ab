//! Nearest vectors in the segments of one collection: by exact scan, by graph, or on a device.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cento_collection::format::config::VectorColumn;
use cento_collection::format::segment::{Column, Segment};
use cento_collection::keep::generation::Generation;
use cento_embedder::Accelerator;
use cento_lexical::Unit;
use cento_vector::hnsw::{self, Found, Path, Wanted};
use cento_vector::{Lift, Neighbor, exact};
use rayon::prelude::*;
use roaring::RoaringBitmap;

use crate::error::Result;
use crate::source::device_scan::{self, Compared, Units};
use crate::source::keys;
use crate::source::ranking::{Ranking, keep_larger, keep_within, score};
use crate::source::seam::{DenseQueries, Near, Rescored, Scan};

/// Chunks the graph is asked for per candidate document: several may be of one document.
const GRAPH_CHUNKS_PER_DOCUMENT: usize = 4;

/// Candidates that a graph is asked for beyond those wanted where rows were lifted, all to be scored anew: a part of
/// those, and so many. Cosines of 32 bits may have two rows at the cut the wrong way round.
const LIFTED_SHARE: usize = 4;
const LIFTED_MORE: usize = 16;

/// Rows that a thread compares at a time, where some are chosen; before each lot it looks whether to stop.
const SCAN_ROWS: usize = 1024;

/// Segment, row or unit there, score.
type Candidates = Vec<(usize, u32, f64)>;

/// The candidates of one query so far.
#[derive(Default)]
struct Gathered {
    candidates: Candidates,
    n_exact: usize,
    n_graph: usize,
}

impl Gathered {
    /// Takes in what the scan of a segment found.
    fn scanned(&mut self, segment: usize, found: Vec<(u32, f64)>) {
        self.n_exact += 1;
        self.candidates.extend(found.into_iter().map(|(unit, score)| (segment, unit, score)));
    }
}

pub(super) fn nearest(generation: &Generation, queries: &DenseQueries<'_>) -> Result<Vec<Near>> {
    let config = &generation.manifest.config;
    let dimensions = config.query_dimensions().max(1);
    if !queries.vectors.len().is_multiple_of(dimensions) {
        let received = queries.vectors.len();
        return Err(cento_vector::Error::Dimension { expected: dimensions, received }.into());
    }
    let lift = config.lift();
    let gathered = if lift == Lift::Cosine {
        gathered(generation, queries)?
    } else {
        let lifted = lifted(lift, queries.vectors.chunks_exact(dimensions))?;
        let depth = queries.depth + queries.depth / LIFTED_SHARE + LIFTED_MORE;
        let mut gathered = gathered(generation, &DenseQueries { vectors: &lifted, depth, ..*queries })?;
        for (gathered, query) in gathered.iter_mut().zip(queries.vectors.chunks_exact(dimensions)) {
            score_lifted(generation, queries, query, &mut gathered.candidates)?;
        }
        gathered
    };
    let near = |Gathered { candidates, n_exact, n_graph }| {
        let ranking = keys::ranked(generation, queries.unit, candidates, queries.depth)?;
        Ok(Near { ranking, n_exact, n_graph })
    };
    gathered.into_iter().map(near).collect()
}

fn gathered(generation: &Generation, queries: &DenseQueries<'_>) -> Result<Vec<Gathered>> {
    match queries.unit {
        Unit::Row => near_rows(generation, queries),
        Unit::Document => near_documents(generation, queries),
    }
}

/// Queries as the stored rows are compared with them.
fn lifted<'q>(lift: Lift, queries: impl Iterator<Item = &'q [f32]>) -> Result<Vec<f32>> {
    let mut lifted = Vec::new();
    for (vector, query) in queries.enumerate() {
        let norm = 0.0; // of any other length a query has an order
        lifted.extend(lift.query(query).ok_or(cento_vector::Error::NotUnit { vector, norm })?);
    }
    Ok(lifted)
}

/// Gives candidates the scores of the vectors that the rows were made of.
fn score_lifted(
    generation: &Generation,
    queries: &DenseQueries<'_>,
    query: &[f32],
    candidates: &mut Candidates,
) -> Result<()> {
    let (at, lift) = (position(generation, queries.column), generation.manifest.config.lift());
    for (number, place, scored) in candidates {
        let segment = &generation.segments[*number];
        let row = match queries.unit {
            Unit::Row => *place,
            Unit::Document => segment.document(segment.units()?.documents[*place as usize])?.first_row,
        };
        if let Some(score) = lift.score(query, &segment.columns[at].rows.row(row)?) {
            *scored = score;
        }
    }
    Ok(())
}

/// The position in every segment of a kind of vectors that the collection has.
fn position(generation: &Generation, column: VectorColumn) -> usize {
    let columns = generation.manifest.config.pooling.columns();
    columns.iter().position(|known| *known == column).expect("kinds of vectors are chosen among those there")
}

/// \[Q, D\] cut into queries.
fn each<'q>(generation: &Generation, queries: &DenseQueries<'q>) -> impl ExactSizeIterator<Item = &'q [f32]> {
    queries.vectors.chunks_exact(generation.manifest.config.dimensions.max(1)) // lifted, where rows are
}

fn near_rows(generation: &Generation, queries: &DenseQueries<'_>) -> Result<Vec<Gathered>> {
    let (at, lift) = (position(generation, queries.column), generation.manifest.config.lift());
    let stop = || queries.cancel.is_cancelled();
    let is_scanned_too = |segment: &Segment| is_scanned(&segment.columns[at], queries.scan);
    if let Some(device) = device(generation, queries).filter(|_| generation.segments.iter().all(is_scanned_too)) {
        let mut of_query: Vec<Gathered> = each(generation, queries).map(|_| Gathered::default()).collect();
        for number in 0..generation.segments.len() {
            let found = compared(device, generation, number, Units::Rows, queries)?;
            of_query.iter_mut().zip(found).for_each(|(gathered, found)| gathered.scanned(number, found));
        }
        return Ok(of_query);
    }
    let mut of_query = Vec::new();
    for (n, query) in each(generation, queries).enumerate() {
        let mut gathered = Gathered::default();
        for (number, segment) in generation.segments.iter().enumerate() {
            let allowed = allowed_rows(segment, queries.scopes.of(n).map(|scope| scope.rows(number)));
            let column = &segment.columns[at];
            let (k, allowed) = (queries.depth, allowed.as_deref());
            let wanted = Wanted { k, ef: queries.ef, allowed, stop: &stop };
            let found = match lift {
                Lift::InnerProduct { .. } | Lift::Euclidean { .. } if is_scanned(column, queries.scan) => {
                    Found { neighbors: lifted_rows(column, query, &wanted)?, path: Path::Scan }
                }
                Lift::Cosine | Lift::InnerProduct { .. } | Lift::Euclidean { .. } => {
                    rows(column, query, queries.scan, &wanted)?
                }
            };
            match found.path {
                Path::Graph => gathered.n_graph += 1,
                Path::Scan => gathered.n_exact += 1,
            }
            gathered.candidates.extend(found.neighbors.iter().map(|near| (number, near.row, score(near.distance))));
        }
        of_query.push(gathered);
    }
    Ok(of_query)
}

/// The device that compares all queries with all rows, if there is one for these: queries with scopes of their own are
/// the CPU's, and of a lifted row a device would give the cosine alone.
fn device<'q>(generation: &Generation, queries: &DenseQueries<'q>) -> Option<&'q Accelerator> {
    let is_one =
        generation.manifest.config.lift() == Lift::Cosine && queries.scopes.of_query.iter().all(Option::is_none);
    queries.accelerator.filter(|device| is_one && !device.is_cpu())
}

/// For each query the units of a segment that can be among its best, as a device finds them.
fn compared(
    device: &Accelerator,
    generation: &Generation,
    number: usize,
    units: Units<'_>,
    queries: &DenseQueries<'_>,
) -> Result<Vec<Vec<(u32, f64)>>> {
    let segment = &generation.segments[number];
    let allowed = allowed_rows(segment, queries.scopes.of_all.map(|scope| scope.rows(number)));
    let (rows, allowed) = (&segment.columns[position(generation, queries.column)].rows, allowed.as_deref());
    let compared = Compared { rows, units, depth: queries.depth, allowed, cancel: queries.cancel };
    device_scan::best_units(device, &compared, queries.vectors)
}

/// For each query the units and their best chunk's score.
fn near_documents(generation: &Generation, queries: &DenseQueries<'_>) -> Result<Vec<Gathered>> {
    let at = position(generation, queries.column);
    let mut of_query: Vec<Gathered> = each(generation, queries).map(|_| Gathered::default()).collect();
    let lift = generation.manifest.config.lift();
    let device = device(generation, queries);
    for (number, segment) in generation.segments.iter().enumerate() {
        let column = &segment.columns[at];
        let n_rows = column.rows.len();
        let graph = column.graph.as_ref().filter(|_| queries.scan == Scan::Auto);
        if let Some(device) = device.filter(|_| graph.is_none()) {
            let units = segment.units()?;
            let units = Units::Documents { of_row: &units.of_row, n_units: units.documents.len() };
            let found = compared(device, generation, number, units, queries)?;
            of_query.iter_mut().zip(found).for_each(|(gathered, found)| gathered.scanned(number, found));
            continue;
        }
        let mut distances = Vec::new();
        if graph.is_none() {
            distances.resize(of_query.len() * n_rows, 0.0);
            exact::distances(&column.rows, queries.vectors, &mut distances, &|| queries.cancel.is_cancelled())?;
        }
        for (n, (gathered, query)) in of_query.iter_mut().zip(each(generation, queries)).enumerate() {
            let allowed = allowed_rows(segment, queries.scopes.of(n).map(|scope| scope.rows(number)));
            let best = if graph.is_some() {
                gathered.n_graph += 1;
                near_units(column, segment, query, queries, allowed.as_deref())?
            } else {
                gathered.n_exact += 1;
                best_of_units(&distances[n * n_rows..(n + 1) * n_rows], segment, allowed.as_deref())?
            };
            let units = best.into_iter().enumerate();
            let units = units.filter_map(|(unit, score)| Some((number, unit as u32, score?)));
            if lift == Lift::Cosine {
                gathered.candidates.extend(units);
            } else {
                let mut units = units.collect();
                keep_within(&mut units, queries.depth, cut_error(column), |(.., score)| *score);
                gathered.candidates.append(&mut units);
            }
        }
    }
    Ok(of_query)
}

pub(super) fn rescored(generation: &Generation, rescored: &Rescored<'_>) -> Result<Ranking> {
    let at = position(generation, rescored.column);
    let mut documents: BTreeMap<(usize, u32), f64> = BTreeMap::new();
    for &(chunk, score) in rescored.found {
        let (segment, row) = chunk.place();
        let document = generation.segments[segment].chunks.record(row as usize)?.document;
        let best = documents.entry((segment, document)).or_insert(score);
        *best = best.max(score);
    }
    let mut candidates = Vec::new();
    for (number, segment) in generation.segments.iter().enumerate() {
        let mut wanted = RoaringBitmap::new();
        let of_segment = documents.range((number, 0)..=(number, u32::MAX));
        let records = of_segment.map(|(&(_, document), &best)| Ok((segment.document(document)?, best)));
        let records = records.collect::<Result<Vec<_>>>()?;
        for (record, _) in &records {
            wanted.insert_range(record.rows());
        }
        if let Some(scope) = rescored.scope {
            wanted &= scope.rows(number);
        }
        let (column, stop) = (&segment.columns[at], || rescored.cancel.is_cancelled());
        let wanted = Wanted { k: wanted.len() as usize, ef: 0, allowed: Some(&wanted), stop: &stop };
        let mut near = rows(column, rescored.vector, Scan::Exact, &wanted)?.neighbors;
        near.sort_unstable_by_key(|near| near.row); // rows of a document follow each other, and documents ascend
        let mut rest = near.as_slice();
        for (record, found_with) in records {
            let (own, after) = rest.split_at(rest.partition_point(|near| near.row < record.rows().end));
            rest = after;
            let best = own.iter().map(|near| score(near.distance)).fold(f64::NEG_INFINITY, f64::max);
            let inside = |distance| found_with + (score(distance) - best);
            candidates.extend(own.iter().map(|near| (number, near.row, inside(near.distance))));
        }
    }
    keys::ranked(generation, Unit::Row, candidates, rescored.depth)
}

/// The wanted rows of a column, nearest first, and how they were found.
fn rows(column: &Column, query: &[f32], scan: Scan, wanted: &Wanted<'_>) -> Result<Found> {
    Ok(match (&column.graph, scan) {
        (Some(graph), Scan::Auto) => hnsw::search(graph, &column.rows, query, wanted)?,
        (None, Scan::Auto) | (_, Scan::Exact) => {
            let &Wanted { k, allowed, stop, .. } = wanted;
            Found { neighbors: exact::search(&column.rows, query, k, allowed, stop)?, path: hnsw::Path::Scan }
        }
    })
}

/// True where a column is scanned, as the graph is not asked or there is none.
fn is_scanned(column: &Column, scan: Scan) -> bool {
    column.graph.is_none() || scan == Scan::Exact
}

/// The wanted rows by a scan of lifted ones, and those that their cosines cannot tell from them.
fn lifted_rows(column: &Column, query: &[f32], wanted: &Wanted<'_>) -> Result<Vec<Neighbor>> {
    let rows = &column.rows;
    let mut near: Vec<Neighbor> = match wanted.allowed {
        None => {
            let mut distances = vec![0.0; rows.len()];
            exact::distances(rows, query, &mut distances, wanted.stop)?;
            (0..).zip(distances).map(|(row, distance)| Neighbor { row, distance }).collect()
        }
        Some(allowed) => {
            let chosen: Vec<u32> = allowed.iter().take_while(|&row| (row as usize) < rows.len()).collect();
            let of = |chosen: &[u32]| {
                if (wanted.stop)() {
                    return Err(cento_vector::Error::Cancelled);
                }
                exact::distances_to(rows, query, chosen)
            };
            let distances = chosen.par_chunks(SCAN_ROWS).map(of).collect::<Result<Vec<_>, _>>()?.concat();
            chosen.into_iter().zip(distances).map(|(row, distance)| Neighbor { row, distance }).collect()
        }
    };
    keep_within(&mut near, wanted.k, cut_error(column), |near| score(near.distance));
    Ok(near)
}

/// The most by which two cosines of a lifted column may be closer or farther than they are.
fn cut_error(column: &Column) -> f64 {
    2.0 * Lift::cosine_error(column.rows.dimensions(), column.rows.scalar())
}

/// As [`best_of_units`], from the chunks the graph finds.
fn near_units(
    column: &Column,
    segment: &Segment,
    query: &[f32],
    queries: &DenseQueries<'_>,
    allowed: Option<&RoaringBitmap>,
) -> Result<Vec<Option<f64>>> {
    let stop = || queries.cancel.is_cancelled();
    let wanted = Wanted { k: GRAPH_CHUNKS_PER_DOCUMENT * queries.depth, ef: queries.ef, allowed, stop: &stop };
    let units = segment.units()?;
    let mut best = vec![None; units.documents.len()];
    for neighbor in rows(column, query, Scan::Auto, &wanted)?.neighbors {
        let unit = units.of_row[neighbor.row as usize];
        keep_larger(&mut best[unit as usize], score(neighbor.distance));
    }
    Ok(best)
}

/// For each unit (document with rows) of a segment the score of its best allowed row; `None` where it has none.
fn best_of_units(distances: &[f32], segment: &Segment, allowed: Option<&RoaringBitmap>) -> Result<Vec<Option<f64>>> {
    let units = segment.units()?;
    let mut best = vec![None; units.documents.len()];
    for (row, (&distance, &unit)) in distances.iter().zip(&units.of_row).enumerate() {
        if allowed.is_none_or(|allowed| allowed.contains(row as u32)) {
            keep_larger(&mut best[unit as usize], score(distance));
        }
    }
    Ok(best)
}

/// The rows of a segment that live and lie in scope; `None` for all.
fn allowed_rows<'s>(segment: &'s Segment, scope: Option<&'s RoaringBitmap>) -> Option<Cow<'s, RoaringBitmap>> {
    match (&segment.live, scope) {
        (Some(live), Some(scope)) => Some(Cow::Owned(live & scope)),
        (one, other) => one.as_ref().or(other).map(Cow::Borrowed),
    }
}
