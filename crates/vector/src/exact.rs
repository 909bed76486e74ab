//! The exact scan: a query compared with every row. It is the truth that the graph is measured against.
//!
//! Cost: bound by memory. A search reads every row once, or the allowed ones; [`distances`] reads every row once for
//! each 64 queries. Both divide the rows among the threads of the current rayon pool, and no bit depends on how.

use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;
use roaring::RoaringBitmap;

use crate::distance::Element;
use crate::rows::{Query, Rows, Scalar};
use crate::stop::{Stop, check};
use crate::topk::TopK;
use crate::{Error, Neighbor, Result};

/// Rows that one thread takes at a time; before each lot it looks whether to stop.
const SPAN_ROWS: usize = 1024;

/// Rows that go through the kernel together in a search.
const SEARCH_GROUP: usize = 4;

/// The k nearest rows and every other row exactly as near as the k-th, nearest first, equal distances by row.
///
/// `allowed` keeps rows out before the k nearest are taken; bits past the last row mean nothing.
///
/// # Errors
/// [`Error::Dimension`], [`Error::NotFinite`] or [`Error::NotUnit`] for the query, [`Error::Corrupt`] for the rows,
/// [`Error::Cancelled`] where `stop` says so.
pub fn search(
    rows: &Rows,
    query: &[f32],
    k: usize,
    allowed: Option<&RoaringBitmap>,
    stop: Stop<'_>,
) -> Result<Vec<Neighbor>> {
    search_query(rows, &rows.query(query, 0)?, k, allowed, stop)
}

pub(crate) fn search_query(
    rows: &Rows,
    query: &Query,
    k: usize,
    allowed: Option<&RoaringBitmap>,
    stop: Stop<'_>,
) -> Result<Vec<Neighbor>> {
    let parts: Vec<Result<TopK>> = spans(rows.len())
        .into_par_iter()
        .map(|span| {
            check(stop)?;
            let mut top = TopK::new(k);
            match allowed {
                Some(allowed) => scan_allowed(rows, query, span, allowed, &mut top)?,
                None => scan(rows, query, span, &mut top)?,
            }
            Ok(top)
        })
        .collect();
    let mut top = TopK::new(k);
    for part in parts {
        top.merge(part?);
    }
    Ok(top.into_sorted())
}

/// The distances of some rows from a query, in their order: those of [`search`], bit for bit. On this thread alone.
///
/// # Errors
/// As [`search`], which may be stopped.
pub fn distances_to(rows: &Rows, query: &[f32], chosen: &[u32]) -> Result<Vec<f32>> {
    let mut distances = Vec::with_capacity(chosen.len());
    rows.distances(&rows.query(query, 0)?, chosen, &mut distances)?;
    Ok(distances)
}

/// The distance of every row from every query: `out[q * N + row]`.
///
/// Equal, bit for bit, to the distances of [`search`], for any number of queries and of threads.
/// Shapes: queries `[Q, D]`, out `[Q, N]`.
///
/// # Errors
/// [`Error::Dimension`] where a slice has no such shape, [`Error::NotFinite`] or [`Error::NotUnit`] for a query,
/// [`Error::Corrupt`] for the rows, [`Error::Cancelled`] where `stop` says so.
pub fn distances(rows: &Rows, queries: &[f32], out: &mut [f32], stop: Stop<'_>) -> Result<()> {
    let n_queries = queries.len() / rows.dimensions();
    check_length(n_queries * rows.dimensions(), queries.len())?;
    check_length(n_queries * rows.len(), out.len())?;
    let queries: Vec<Query> = queries
        .chunks_exact(rows.dimensions())
        .enumerate()
        .map(|(q, query)| rows.query(query, q))
        .collect::<Result<_>>()?;
    distances_of(rows, &queries, out, stop)
}

/// [`distances`] of queries that fit the rows. `out` has as many as there are pairs.
pub(crate) fn distances_of(rows: &Rows, queries: &[Query], out: &mut [f32], stop: Stop<'_>) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    // The part of `out` of each span: one slice a query.
    let spans = spans(rows.len());
    let mut parts: Vec<Vec<&mut [f32]>> = spans.iter().map(|_| Vec::with_capacity(queries.len())).collect();
    for of_query in out.chunks_exact_mut(rows.len()) {
        for (part, of_span) in parts.iter_mut().zip(of_query.chunks_mut(SPAN_ROWS)) {
            part.push(of_span);
        }
    }
    let done: Vec<Result<()>> = spans
        .into_par_iter()
        .zip(parts)
        .map(|(span, mut part)| match rows.scalar() {
            Scalar::F32 => tiles(rows, rows.elements::<f32>(span)?, queries, &mut part, stop, |group, _| group),
            Scalar::F16 => tiles(rows, rows.elements::<f16>(span)?, queries, &mut part, stop, |group, wide| {
                group.convert_to_f32_slice(wide);
                wide
            }),
        })
        .collect();
    done.into_iter().collect()
}

fn check_length(expected: usize, received: usize) -> Result<()> {
    if expected == received { Ok(()) } else { Err(Error::Dimension { expected, received }) }
}

fn spans(n_rows: usize) -> Vec<Range<usize>> {
    (0..n_rows).step_by(SPAN_ROWS).map(|start| start..n_rows.min(start + SPAN_ROWS)).collect()
}

fn scan(rows: &Rows, query: &Query, span: Range<usize>, top: &mut TopK) -> Result<()> {
    match rows.scalar() {
        Scalar::F32 => scan_elements(rows, rows.elements::<f32>(span.clone())?, query, span.start, top),
        Scalar::F16 => scan_elements(rows, rows.elements::<f16>(span.clone())?, query, span.start, top),
    }
    Ok(())
}

fn scan_elements<E: Element>(rows: &Rows, elements: &[E], query: &Query, start: usize, top: &mut TopK) {
    let (kernel, stride, query) = (rows.kernel(), rows.stride(), [query.padded()]);
    let mut row = start as u32;
    let mut push = |[dot]: [f32; 1]| {
        top.push(Neighbor { row, distance: 1.0 - dot });
        row += 1;
    };
    let mut groups = elements.chunks_exact(SEARCH_GROUP * stride);
    for group in &mut groups {
        kernel.dots(split::<E, SEARCH_GROUP>(group, stride), query).into_iter().for_each(&mut push);
    }
    for vector in groups.remainder().chunks_exact(stride) {
        kernel.dots([vector], query).into_iter().for_each(&mut push);
    }
}

fn scan_allowed(rows: &Rows, query: &Query, span: Range<usize>, allowed: &RoaringBitmap, top: &mut TopK) -> Result<()> {
    let chosen: Vec<u32> = allowed.range(span.start as u32..=(span.end - 1) as u32).collect();
    let mut distances = Vec::with_capacity(chosen.len());
    rows.distances(query, &chosen, &mut distances)?;
    for (row, distance) in chosen.into_iter().zip(distances) {
        top.push(Neighbor { row, distance });
    }
    Ok(())
}

/// Rows and queries of one tile of [`distances`]: few enough for sixteen registers, enough to reuse what is loaded.
const TILE_ROWS: usize = 3;
const TILE_QUERIES: usize = 2;

/// Queries that pass over a group of rows while it is in the first-level cache, themselves in the second level.
const QUERY_BLOCK: usize = 64;

/// Fills the distances of one span, `part[q][row of the span]`; `widen` gives a group of rows as f32.
fn tiles<E: Element>(
    rows: &Rows,
    elements: &[E],
    queries: &[Query],
    part: &mut [&mut [f32]],
    stop: Stop<'_>,
    widen: impl for<'a> Fn(&'a [E], &'a mut [f32]) -> &'a [f32],
) -> Result<()> {
    let stride = rows.stride();
    let mut scratch = vec![0.0; TILE_ROWS * stride];
    for (queries, part) in queries.chunks(QUERY_BLOCK).zip(part.chunks_mut(QUERY_BLOCK)) {
        check(stop)?;
        let mut row = 0;
        for group in elements.chunks(TILE_ROWS * stride) {
            let wide = widen(group, &mut scratch[..group.len()]);
            if group.len() == TILE_ROWS * stride {
                group_by_queries::<TILE_ROWS>(rows, wide, queries, part, row);
                row += TILE_ROWS;
            } else {
                for vector in wide.chunks_exact(stride) {
                    group_by_queries::<1>(rows, vector, queries, part, row);
                    row += 1;
                }
            }
        }
    }
    Ok(())
}

/// Fills the distances of R consecutive rows, the first of them `row`, from all queries.
fn group_by_queries<const R: usize>(
    rows: &Rows,
    group: &[f32],
    queries: &[Query],
    part: &mut [&mut [f32]],
    row: usize,
) {
    let group = split::<f32, R>(group, rows.stride());
    let (pairs, last) = queries.as_chunks::<TILE_QUERIES>();
    for (pair, queries) in pairs.iter().enumerate() {
        let dots = rows.kernel().dots(group, queries.each_ref().map(Query::padded));
        for (r, dots) in dots.into_iter().enumerate() {
            for (q, dot) in dots.into_iter().enumerate() {
                part[pair * TILE_QUERIES + q][row + r] = 1.0 - dot;
            }
        }
    }
    for (q, query) in last.iter().enumerate() {
        for (r, [dot]) in rows.kernel().dots(group, [query.padded()]).into_iter().enumerate() {
            part[pairs.len() * TILE_QUERIES + q][row + r] = 1.0 - dot;
        }
    }
}

/// The R rows of a group.
#[inline(always)]
fn split<E, const R: usize>(group: &[E], stride: usize) -> [&[E]; R] {
    let mut rows: [&[E]; R] = [&[]; R];
    for (row, elements) in rows.iter_mut().zip(group.chunks_exact(stride)) {
        *row = elements;
    }
    rows
}

#[cfg(test)]
mod tests;
