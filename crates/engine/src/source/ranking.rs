//! Rankings: the one order of the engine, and what of a ranking must be kept so that others can be merged with it.

use std::sync::Arc;

use cento_assembly::fuse::Fused;

use crate::error::Result;
use crate::source::refs::{ChunkRef, RankedChunk};

/// Chunks or documents with scores.
pub(crate) type Ranking = Vec<(RankedChunk, f64)>;

/// A thing of a ranking.
pub(crate) trait Ranked {
    fn score(&self) -> f64;

    fn ranked(&self) -> &RankedChunk;

    fn ranked_mut(&mut self) -> &mut RankedChunk;
}

impl Ranked for (RankedChunk, f64) {
    fn score(&self) -> f64 {
        self.1
    }

    fn ranked(&self) -> &RankedChunk {
        &self.0
    }

    fn ranked_mut(&mut self) -> &mut RankedChunk {
        &mut self.0
    }
}

impl Ranked for Fused<RankedChunk> {
    fn score(&self) -> f64 {
        self.score
    }

    fn ranked(&self) -> &RankedChunk {
        &self.id
    }

    fn ranked_mut(&mut self) -> &mut RankedChunk {
        &mut self.id
    }
}

/// Cosine from distance: the one place where ascending becomes descending.
pub(crate) fn score(distance: f32) -> f64 {
    1.0 - f64::from(distance)
}

/// Keeps everything that can be among the `depth` best: those above the score at the cut, and all ties with it.
pub(crate) fn keep_best<T>(candidates: &mut Vec<T>, depth: usize, score: impl Fn(&T) -> f64) {
    keep_within(candidates, depth, 0.0, score);
}

/// As [`keep_best`], with all that lies below the cut by no more than `error`.
pub(crate) fn keep_within<T>(candidates: &mut Vec<T>, depth: usize, error: f64, score: impl Fn(&T) -> f64) {
    if candidates.len() <= depth {
        return;
    }
    let Some(last) = depth.checked_sub(1) else {
        candidates.clear();
        return;
    };
    let mut scores: Vec<f64> = candidates.iter().map(&score).collect();
    let (_, cut, _) = scores.select_nth_unstable_by(last, |a, b| b.total_cmp(a));
    let cut = *cut - error;
    candidates.retain(|candidate| score(candidate).total_cmp(&cut).is_ge());
}

/// Score descending, then id descending; `ids` is asked for those alone that decide.
pub(crate) fn sort_ranking<T: Ranked>(
    ranking: &mut [T],
    ids: impl FnOnce(&[ChunkRef]) -> Result<Vec<Arc<str>>>,
) -> Result<()> {
    ranking.sort_by(|a, b| b.score().total_cmp(&a.score()));
    let runs = ranking.chunk_by_mut(|a, b| a.score().total_cmp(&b.score()).is_eq());
    let mut tied: Vec<&mut [T]> = runs.filter(|run| run.len() > 1).collect();
    name(tied.iter_mut().flat_map(|run| &mut **run), ids)?;
    for run in tied {
        run.sort_unstable_by(|a, b| b.ranked().id.cmp(&a.ranked().id));
    }
    Ok(())
}

/// Gives their ids to those that have none.
pub(crate) fn name<'r, T: Ranked + 'r>(
    ranking: impl IntoIterator<Item = &'r mut T>,
    ids: impl FnOnce(&[ChunkRef]) -> Result<Vec<Arc<str>>>,
) -> Result<()> {
    let unnamed: Vec<&mut RankedChunk> =
        ranking.into_iter().map(T::ranked_mut).filter(|ranked| ranked.id.is_none()).collect();
    if unnamed.is_empty() {
        return Ok(());
    }
    let chunks: Vec<ChunkRef> = unnamed.iter().map(|ranked| ranked.chunk).collect();
    for (ranked, id) in unnamed.into_iter().zip(ids(&chunks)?) {
        ranked.id = Some(id);
    }
    Ok(())
}

pub(crate) fn keep_larger(best: &mut Option<f64>, score: f64) {
    if best.is_none_or(|known| score > known) {
        *best = Some(score);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_asked_for_where_scores_are_equal_and_nowhere_else(
            scores in prop::collection::vec(0..12_u32, 0..24), named in any::<u32>(), turn in any::<u64>(),
        ) {
            let id = |chunk: ChunkRef| format!("doc {}#{}", u64::from(chunk.place().1).wrapping_mul(turn | 1) % 31, chunk.place().1);
            let scored = |(row, &score): (u32, &u32)| {
                let chunk = ChunkRef::new(0, row);
                let id = (named >> row & 1 == 1).then(|| id(chunk).into());
                (RankedChunk { chunk, id }, f64::from(score))
            };
            let mut ranking: Ranking = (0..).zip(&scores).map(scored).collect();
            let is_tied = |score: f64| scores.iter().filter(|other| f64::from(**other) == score).count() > 1;
            let decide = ranking.iter().filter(|(ranked, score)| ranked.id.is_none() && is_tied(*score));
            let mut decide: Vec<ChunkRef> = decide.map(|(ranked, _)| ranked.chunk).collect();
            let mut expected: Vec<(f64, String)> = ranking.iter().map(|(ranked, score)| (*score, id(ranked.chunk))).collect();
            expected.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
            let mut asked = Vec::new();
            sort_ranking(&mut ranking, |chunks| {
                asked.extend_from_slice(chunks);
                Ok(chunks.iter().map(|chunk| id(*chunk).into()).collect())
            })
            .unwrap();
            asked.sort_unstable();
            decide.sort_unstable();
            prop_assert_eq!(asked, decide);
            let ranked: Vec<(f64, String)> = ranking.iter().map(|(ranked, score)| (*score, id(ranked.chunk))).collect();
            prop_assert_eq!(ranked, expected);
        }
    }
}
