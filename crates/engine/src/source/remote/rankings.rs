//! Rankings that a shard gives, held against what was asked: in order, each thing once, no longer than was asked for.

use std::collections::HashSet;

use cento_lexical::Unit;

use super::wire::{Fault, NearWords, RankingWords, check_chunk, score};
use crate::source::ranking::Ranking;
use crate::source::refs::{ChunkRef, RankedChunk};
use crate::source::scope::Scope;
use crate::source::seam::Near;

/// The units that a ranking was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranked<'a> {
    pub(super) segments: &'a [u32],
    pub(super) unit: Unit,
    pub(super) depth: usize,
    /// Those that may be in it; none for all.
    pub(super) scope: Option<&'a Scope>,
}

/// A ranking of units that are there, each once, in order, no longer than was asked for but for ties with the last.
pub(super) fn ranking(words: RankingWords, asked: Ranked<'_>) -> Result<Ranking, Fault> {
    let Ranked { segments, unit, depth, scope } = asked;
    let ranked = |(id, chunk, bits): (String, ChunkRef, u64)| {
        check_chunk(chunk, segments)?;
        if unit == Unit::Row {
            number(&id)?;
        }
        match scope.is_none_or(|scope| scope.contains(chunk)) {
            true => Ok((RankedChunk { chunk, id: Some(id.into()) }, score(bits)?)),
            false => Err("what was not to be searched".to_owned()),
        }
    };
    let ranking: Ranking = words.into_iter().map(ranked).collect::<Result<_, Fault>>()?;
    let in_order = |[(a, a_score), (b, b_score)]: &[(RankedChunk, f64); 2]| {
        b_score.total_cmp(a_score).then_with(|| b.id.cmp(&a.id)).is_le()
    };
    let (mut ids, mut chunks) = (HashSet::with_capacity(ranking.len()), HashSet::with_capacity(ranking.len()));
    let are_distinct = ranking.iter().all(|(ranked, _)| ids.insert(&ranked.id) && chunks.insert(ranked.chunk));
    if !are_distinct || !ranking.array_windows().all(in_order) {
        return Err("a ranking that is in no order, or has one thing twice".to_owned());
    }
    let last = ranking.get(depth.wrapping_sub(1)).map(|(_, score)| *score);
    let is_cut = ranking.get(depth..).unwrap_or_default().iter().all(|(_, score)| last == Some(*score));
    if is_cut { Ok(ranking) } else { Err(format!("a ranking of {} for the first {depth}", ranking.len())) }
}

/// The number of a chunk in its document, by its public id.
pub(super) fn number(id: &str) -> Result<u32, Fault> {
    let number = id.rsplit_once('#').and_then(|(_, number)| number.parse().ok());
    number.ok_or_else(|| "an id that is none of a chunk".to_owned())
}

pub(super) fn near(words: NearWords, asked: Ranked<'_>) -> Result<Near, Fault> {
    let (NearWords { ranking: ranked, n_exact, n_graph }, n_segments) = (words, asked.segments.len());
    if n_exact > n_segments || n_graph > n_segments {
        return Err(format!("{n_exact} and {n_graph} of {n_segments} segments"));
    }
    Ok(Near { ranking: ranking(ranked, asked)?, n_exact, n_graph })
}
