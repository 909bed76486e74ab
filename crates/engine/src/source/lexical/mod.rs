//! BM25 over the segments of one collection. A scope narrows what is found, not the statistics.

pub(super) mod phrases;

use cento_collection::format::segment::Segment;
use cento_collection::keep::generation::Generation;
use cento_lexical::{self as lexical, Bm25, Explanation, Part, Scored, Searcher, Statistics, Unit};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::source::keys;
use crate::source::refs::ChunkRef;
use crate::source::scope::Scope;
use crate::source::seam::{Counted, LexicalQueries, Matched};

pub(super) fn statistics(
    generation: &Generation,
    counted: Counted,
    terms: &[String],
    cancel: &Cancel,
) -> Result<Statistics> {
    Ok(match counted {
        Counted::Units(unit) => {
            let searcher = searcher(generation, unit, None, Bm25::default())?; // no score is asked for
            searcher.unless(&|| cancel.is_cancelled()).statistics(terms)?
        }
        Counted::Texts => lexical::text_statistics(&parts(generation, Unit::Row, None)?, terms)?,
    })
}

pub(super) fn ranked(generation: &Generation, queries: &LexicalQueries<'_>) -> Result<Vec<Matched>> {
    let stop = || queries.cancel.is_cancelled();
    let searcher = |scope| {
        let of = |unit| Ok::<_, Error>(searcher(generation, unit, scope, queries.bm25)?.unless(&stop));
        Ok::<_, Error>((of(queries.unit)?, queries.counts_chunks().then(|| of(Unit::Row)).transpose()?))
    };
    let is_shared = (0..queries.texts.len()).any(|n| queries.scopes.own(n).is_none());
    let of_all = is_shared.then(|| searcher(queries.scopes.of_all)).transpose()?;
    let mut matched = Vec::with_capacity(queries.texts.len());
    for (n, text) in queries.texts.iter().enumerate() {
        let own = queries.scopes.own(n).map(|scope| searcher(Some(scope))).transpose()?;
        let Some((units, rows)) = own.as_ref().or(of_all.as_ref()) else { continue };
        let (scored, statistics) = match rows {
            None => {
                let (best, statistics) =
                    units.best(text, queries.statistics.map(|given| &given.of_units), queries.depth)?;
                (best, Some(statistics).filter(|_| queries.unit == Unit::Row))
            }
            Some(rows) => {
                let mut scored = score(units, text, queries.statistics.map(|given| &given.of_units))?;
                let of_rows = score(rows, text, queries.statistics.and_then(|given| given.of_rows.as_ref()))?;
                count_best_chunks(generation, &mut scored, of_rows)?;
                (scored, None)
            }
        };
        let hits = scored.into_iter().enumerate();
        let candidates = hits.flat_map(|(at, hits)| hits.into_iter().map(move |hit| (at, hit.unit, hit.score)));
        let ranking = keys::ranked(generation, queries.unit, candidates.collect(), queries.depth)?;
        matched.push(Matched { ranking, statistics });
    }
    Ok(matched)
}

fn score(searcher: &Searcher<'_>, text: &str, statistics: Option<&Statistics>) -> Result<Vec<Vec<Scored>>> {
    Ok(match statistics {
        Some(statistics) => searcher.score_under(text, statistics)?,
        None => searcher.score(text)?,
    })
}

/// Replaces the score of each document by the mean of it and of that of its best chunk.
fn count_best_chunks(generation: &Generation, scored: &mut [Vec<Scored>], of_rows: Vec<Vec<Scored>>) -> Result<()> {
    for ((segment, scored), of_rows) in generation.segments.iter().zip(scored).zip(of_rows) {
        let units = segment.units()?;
        let mut best = vec![0.0_f64; units.documents.len()];
        for row in of_rows {
            let best = &mut best[units.of_row[row.unit as usize] as usize];
            *best = best.max(row.score);
        }
        for document in scored {
            document.score = f64::midpoint(document.score, best[document.unit as usize]);
        }
    }
    Ok(())
}

pub(super) fn explained(
    generation: &Generation,
    query: &str,
    chunks: &[ChunkRef],
    bm25: Bm25,
    statistics: Option<&Statistics>,
) -> Result<Vec<Explanation>> {
    let searcher = searcher(generation, Unit::Row, None, bm25)?;
    let units: Vec<(usize, u32)> = chunks.iter().map(|chunk| chunk.place()).collect();
    Ok(searcher.explain_all(query, &units, statistics)?)
}

fn searcher<'s>(generation: &'s Generation, unit: Unit, scope: Option<&'s Scope>, bm25: Bm25) -> Result<Searcher<'s>> {
    Ok(Searcher::new(parts(generation, unit, scope)?, unit, bm25)?)
}

fn parts<'s>(generation: &'s Generation, unit: Unit, scope: Option<&'s Scope>) -> Result<Vec<Part<'s>>> {
    let part = |(at, segment): (usize, &'s Segment)| {
        Ok(Part {
            segment: &segment.lexical,
            live: segment.live.as_ref(),
            allowed: scope.map(|scope| scope.rows(at)),
            document_of_row: match unit {
                Unit::Row => &[],
                Unit::Document => &segment.units()?.of_row,
            },
        })
    };
    generation.segments.iter().enumerate().map(part).collect()
}
