//! BM25 over the segments of one collection. A scope narrows what is found, not the statistics.

use cento_collection::format::segment::Segment;
use cento_collection::keep::generation::Generation;
use cento_lexical::{self as lexical, Bm25, Explanation, Part, Searcher, Statistics, Unit};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::source::keys;
use crate::source::ranking::Ranking;
use crate::source::refs::ChunkRef;
use crate::source::scope::Scope;
use crate::source::seam::{Counted, LexicalQueries};

pub(super) fn statistics(
    generation: &Generation,
    counted: Counted,
    terms: &[String],
    cancel: &Cancel,
) -> Result<Statistics> {
    Ok(match counted {
        Counted::Units(unit) => {
            searcher(generation, unit, None)?.unless(&|| cancel.is_cancelled()).statistics(terms)?
        }
        Counted::Texts => lexical::text_statistics(&parts(generation, Unit::Row, None)?, terms)?,
    })
}

pub(super) fn ranked(generation: &Generation, queries: &LexicalQueries<'_>) -> Result<Vec<Ranking>> {
    let stop = || queries.cancel.is_cancelled();
    let searcher = |scope| Ok::<_, Error>(searcher(generation, queries.unit, scope)?.unless(&stop));
    let is_shared = (0..queries.texts.len()).any(|n| queries.scopes.own(n).is_none());
    let of_all = is_shared.then(|| searcher(queries.scopes.of_all)).transpose()?;
    let mut rankings = Vec::with_capacity(queries.texts.len());
    for (n, text) in queries.texts.iter().enumerate() {
        let own = queries.scopes.own(n).map(|scope| searcher(Some(scope))).transpose()?;
        let Some(searcher) = own.as_ref().or(of_all.as_ref()) else { continue };
        let scored = match queries.statistics {
            Some(statistics) => searcher.score_under(text, statistics)?,
            None => searcher.score(text)?,
        };
        let hits = scored.into_iter().enumerate();
        let candidates = hits.flat_map(|(at, hits)| hits.into_iter().map(move |hit| (at, hit.unit, hit.score)));
        rankings.push(keys::ranked(generation, queries.unit, candidates.collect(), queries.depth)?);
    }
    Ok(rankings)
}

pub(super) fn explained(
    generation: &Generation,
    query: &str,
    chunks: &[ChunkRef],
    statistics: Option<&Statistics>,
) -> Result<Vec<Explanation>> {
    let searcher = searcher(generation, Unit::Row, None)?;
    let explain = |chunk: &ChunkRef| {
        let (segment, row) = chunk.place();
        Ok(match statistics {
            Some(statistics) => searcher.explain_under(query, segment, row, statistics)?,
            None => searcher.explain(query, segment, row)?,
        })
    };
    chunks.iter().map(explain).collect()
}

fn searcher<'s>(generation: &'s Generation, unit: Unit, scope: Option<&'s Scope>) -> Result<Searcher<'s>> {
    Ok(Searcher::new(parts(generation, unit, scope)?, unit, Bm25::default())?)
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
