//! Rankings: the one order of the engine, and what of a ranking must be kept so that others can be merged with it.

use crate::source::refs::ChunkKey;

/// Chunks or documents with scores.
pub(crate) type Ranking = Vec<(ChunkKey, f64)>;

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

/// Score descending, then id descending.
pub(crate) fn sort_ranking<I: Ord>(ranking: &mut [(I, f64)]) {
    ranking.sort_unstable_by(|(a_id, a), (b_id, b)| b.total_cmp(a).then_with(|| b_id.cmp(a_id)));
}

pub(crate) fn keep_larger(best: &mut Option<f64>, score: f64) {
    if best.is_none_or(|known| score > known) {
        *best = Some(score);
    }
}
