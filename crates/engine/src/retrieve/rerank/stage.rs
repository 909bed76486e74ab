//! The best candidates of a ranking in the order of a reranker.
//!
//! A passage is read as it was indexed: its title and headings before its text, where the collection has headers.

use std::time::Instant;

use cento_assembly::fuse::{Contribution, Fused};
use cento_assembly::{Candidate, RERANK};
use cento_corpus::HeaderStyle;
use cento_lexical::Unit;

use super::reading::Reranking;
use crate::error::{Error, Result};
use crate::retrieve::request::ChunkSearch;
use crate::retrieve::search::{Retrieved, Timings};
use crate::retrieve::searcher::Searcher;
use crate::source::ranking::name;
use crate::source::refs::{ChunkRef, RankedChunk};

impl Searcher {
    /// Puts the best candidates of a ranking into the order of the request's reranker, if it has one.
    pub(crate) fn rerank(&self, request: &ChunkSearch, ranking: &mut Retrieved, timings: &mut Timings) -> Result<()> {
        let Some(reranking) = &request.rerank else { return Ok(()) };
        let start = Instant::now();
        self.check_readable(reranking, &request.query)?;
        let fused = &mut ranking.fused;
        let n_read = reranking.depth().min(fused.len());
        let chunks: Vec<ChunkRef> = fused[..n_read].iter().map(|found| found.id.chunk).collect();
        name(&mut fused[..n_read], |chunks| self.source.ids(Unit::Row, chunks))?;
        let logits = reranking.logits(&request.query, &self.passages(&chunks)?, &request.cancel)?;
        let n_scored = logits.iter().flatten().count();
        reorder(fused, &logits);
        if n_scored < n_read {
            let name = reranking.reranker().name();
            ranking.warnings.push(format!(
                "reranker {name}: {n_scored} of {n_read} candidates were read before the time was up; the others \
                 stand behind them, in the order of before"
            ));
        }
        ranking.reranked = Some(reranking.answered(n_scored));
        timings.rerank = start.elapsed();
        Ok(())
    }

    /// An error where there is nothing that a reranker could read.
    pub(super) fn check_readable(&self, reranking: &Reranking, query: &str) -> Result<()> {
        if query.trim().is_empty() {
            return Err(Error::EmptyQuery);
        }
        match self.manifest().config.given {
            Some(given) if !given.texts => Err(Error::Setting {
                setting: "rerank",
                value: reranking.reranker().name().to_owned(),
                reason: "reads texts, and the collection was given none".to_owned(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// The texts of chunks, as a reranker reads them.
    pub(super) fn passages(&self, chunks: &[ChunkRef]) -> Result<Vec<String>> {
        let style = self.manifest().config.header_style()?;
        Ok(self.source.chunks(chunks)?.iter().map(|chunk| passage(chunk, style)).collect())
    }
}

/// Title and headings that the text does not have itself, on one line, and the text.
fn passage(chunk: &Candidate, style: HeaderStyle) -> String {
    if style == HeaderStyle::None {
        return chunk.text.clone();
    }
    let mut names: Vec<&str> = std::iter::once(&chunk.title).chain(&chunk.path).map(|name| name.trim()).collect();
    names.retain(|name| !name.is_empty() && !chunk.text.contains(name));
    names.dedup();
    if names.is_empty() { chunk.text.clone() } else { format!("{}\n{}", names.join(" > "), chunk.text) }
}

/// Puts what was read first: by logit descending, then by public id descending; the others behind it, as they were.
/// `logits` are those of the first places, which have their ids.
pub(super) fn reorder(fused: &mut Vec<Fused<RankedChunk>>, logits: &[Option<f32>]) {
    let (mut read, mut others) = (Vec::with_capacity(logits.len()), Vec::with_capacity(fused.len()));
    for (place, found) in fused.drain(..).enumerate() {
        match logits.get(place).copied().flatten() {
            Some(logit) => read.push((logit, place, found)),
            None => others.push(found),
        }
    }
    read.sort_by(|(a, _, one), (b, _, other)| b.total_cmp(a).then_with(|| other.id.id.cmp(&one.id.id)));
    let best_other = others.first().map_or(0.0, |best| best.score.max(0.0));
    let reranked = read.into_iter().map(|(logit, place, mut found)| {
        let raw = f64::from(logit);
        let probability = 1.0 / (1.0 + (-raw).exp());
        let score = best_other + probability;
        found.contributions.push(Contribution {
            arm: RERANK.into(),
            rank: Some(place + 1),
            raw: Some(raw),
            normalized: Some(probability),
            weight: 1.0,
            contribution: score - found.score,
        });
        Fused { score, ..found }
    });
    *fused = reranked.chain(others).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(scores: &[(&str, f64)]) -> Vec<Fused<RankedChunk>> {
        let chunk = ChunkRef::first();
        let fused = |(id, score): &(&str, f64)| Fused {
            id: RankedChunk { chunk, id: Some((*id).into()) },
            score: *score,
            contributions: Vec::new(),
        };
        scores.iter().map(fused).collect()
    }

    fn order(fused: &[Fused<RankedChunk>]) -> Vec<&str> {
        fused.iter().map(|found| found.id.id.as_deref().unwrap()).collect()
    }

    #[test]
    fn what_was_read_stands_first_and_equal_ones_by_id_descending() {
        let mut fused = ranking(&[("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.6), ("e", 0.5)]);
        reorder(&mut fused, &[Some(-2.0), Some(1.0), None, Some(1.0)]);
        assert_eq!(order(&fused), ["d", "b", "a", "c", "e"]);
        assert!(fused.is_sorted_by(|one, other| one.score >= other.score), "{fused:?}");
        let part = &fused[2].contributions[0];
        assert_eq!((part.rank, part.raw), (Some(1), Some(-2.0)));
        assert!((part.normalized.unwrap() - 0.119_202_922).abs() < 1e-8);
        assert!((fused[2].score - (0.9 + part.contribution)).abs() < 1e-12 && fused[2].score > 0.7);
    }

    #[test]
    fn scores_below_nothing_and_probabilities_that_vanish_keep_the_order() {
        let mut fused = ranking(&[("a", -1.0), ("b", -2.0), ("c", -3.0)]);
        reorder(&mut fused, &[Some(-700.0), Some(-600.0)]);
        assert_eq!(order(&fused), ["b", "a", "c"]);
        assert!(fused.is_sorted_by(|one, other| one.score >= other.score), "{fused:?}");
        let mut alone = ranking(&[("a", 21.0), ("b", 20.0)]);
        reorder(&mut alone, &[Some(0.0), Some(3.0)]);
        assert!(order(&alone)[0] == "b" && alone[1].score == 0.5, "nothing unread: the score is the probability");
    }
}
