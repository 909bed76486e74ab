//! Why not: where the chunks of a document stand at every stage between a query and its context, and which stage lost
//! them.
//!
//! The stages are scope, filter and phrases, the lexical arm, the dense arm, their fusion, the assembly. The arms are
//! ranked to their ends, vectors exactly, so that a chunk has a place even where retrieval stops long before it.
//! Cost: every vector and every posting of the query's terms is read, and the ids of rows whose scores are equal.

use cento_assembly::fuse::Contribution;
use cento_assembly::{Why, explain};
use cento_lexical::{self as lexical, Unit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::request::ContextSettings;
use crate::context::target::Target;
use crate::error::{Error, Result};
use crate::explain::undo::{Retrieval, Trials, Undone, Wanted};
use crate::retrieve::missing::MissingShard;
use crate::retrieve::request::{ChunkSearch, Mode};
use crate::retrieve::scope::Allowed;
use crate::retrieve::search::Timings;
use crate::retrieve::searcher::Searcher;
use crate::source::filter::Filter;
use crate::source::ranking::{Ranking, name};
use crate::source::refs::RankedChunk;
use crate::source::scope::Scope;
use crate::source::seam::Scan;

/// Chunks of a document whose decisions are followed to a change.
const BEST: usize = 3;

/// Where a document or chunk stands at every stage.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WhyNot {
    /// Format of this answer.
    pub version: u32,
    /// The query.
    pub query: String,
    /// The document or chunk that was asked for.
    pub id: String,
    /// Its chunks that can be found.
    pub n_chunks: usize,
    /// Generation of the collection.
    pub generation: u64,
    /// Candidates an arm contributes.
    pub candidates: usize,
    /// Its best chunk by BM25; none if no chunk has a term of the query, or the arm was not asked.
    pub lexical: Option<Standing>,
    /// The terms of that chunk's score, those it does not have included; of its first chunk if none has any.
    pub terms: Option<lexical::Explanation>,
    /// Its best chunk by cosine, every vector compared; none if the arm was not asked.
    pub dense: Option<Standing>,
    /// Its best chunk in the fused ranking, whose end is where the arms end; none if it is not there.
    pub fused: Option<Standing>,
    /// Each arm's contribution to that chunk.
    pub contributions: Vec<Contribution>,
    /// The assembly's decisions on its chunks, in the order of the walk.
    pub assembly: Vec<Why>,
    /// The stage that lost it; none if it is in the context.
    pub lost: Option<WhereLost>,
    /// Shards that did not answer, where the request allowed it: all else is of a part of the collection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingShard>,
}

/// A place in a ranking.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Standing {
    /// The chunk.
    pub chunk_id: String,
    /// Its place, from 1.
    pub rank: usize,
    /// Chunks that are ranked.
    pub n_ranked: usize,
    /// Its score: BM25, cosine, or fused.
    pub score: f64,
    /// The least score among the candidates of the arm.
    pub score_needed: f64,
}

/// The stage that lost a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhereLost {
    /// `scope`, `filter`, `phrases`, `lexical`, `dense`, `lexical and dense` or `assembly`.
    pub stage: &'static str,
    /// The reason, in a sentence with its numbers.
    pub because: String,
    /// Changes that deliver it, and the settings that do not.
    #[serde(flatten)]
    pub undone: Undone,
}

impl Searcher {
    /// Follows a document (`DOC`) or one of its chunks (`DOC#chunk`) through search and assembly.
    ///
    /// # Errors
    /// [`Error::UnknownDocument`] with the nearest id, [`Error::OutOfRange`] for a chunk that its document does not
    /// have, and those of [`Searcher::context`].
    pub fn why_not(&self, search: &ChunkSearch, request: &ContextSettings<'_>, id: &str) -> Result<WhyNot> {
        let target = self.target(id)?;
        let mut answer = WhyNot {
            version: 1,
            query: search.query.clone(),
            id: target.id.clone(),
            n_chunks: target.chunks.len(),
            generation: self.manifest().generation,
            candidates: search.candidates,
            lexical: None,
            terms: None,
            dense: None,
            fused: None,
            contributions: Vec::new(),
            assembly: Vec::new(),
            lost: None,
            missing: self.missing().to_vec(),
        };
        if search.query.trim().is_empty() {
            return Err(Error::EmptyQuery);
        }
        let Allowed { scope, .. } = self.allowed(search)?;
        if scope.as_ref().is_some_and(|scope| !target.is_in(scope)) {
            let trials = Trials::new(self, search, request, None)?;
            answer.lost = Some(self.excluded(&trials, search, &target)?);
            return Ok(answer);
        }
        self.stand(&mut answer, search, scope.as_ref(), &target)?;
        let ranking = self.rank(search, &mut Timings::default())?;
        let fused: Ranking = ranking.fused.iter().map(|fused| (fused.id.clone(), fused.score)).collect();
        answer.fused = self.standing(fused, &target, usize::MAX)?;
        if let Some(found) = ranking.fused.into_iter().find(|fused| target.chunks.contains(fused.id.chunk)) {
            answer.contributions = found.contributions;
        }
        search.cancel.check()?;
        let pool = self.pool(search)?;
        answer.assembly = wanted(&target).decisions(&pool.context(request)?.trace);
        if !answer.assembly.iter().any(Why::is_delivered) {
            let trials = Trials::new(self, search, request, Some(&pool))?;
            answer.lost = Some(match answer.assembly.first() {
                Some(best) => WhereLost {
                    stage: "assembly",
                    because: format!("{}: {}", best.record.chunk_id, best.because),
                    undone: match request.endpoint {
                        None => trials.undo(wanted(&target), &answer.assembly[..answer.assembly.len().min(BEST)])?,
                        Some(_) => Undone::default(), // what a language model answers to another context is not known
                    },
                },
                None => not_found(&trials, &answer, search, &target)?,
            });
        }
        Ok(answer)
    }

    /// Ranks both arms to their ends.
    fn stand(&self, answer: &mut WhyNot, search: &ChunkSearch, scope: Option<&Scope>, target: &Target) -> Result<()> {
        let n_rows = usize::try_from(self.source.describe().n_rows).unwrap_or(usize::MAX).max(1);
        let all = ChunkSearch { candidates: n_rows, scan: Scan::Exact, ef: 0, ..search.clone() };
        if search.mode != Mode::Dense {
            answer.lexical = self.standing(self.lexical_chunks(&all, scope)?.ranking, target, search.candidates)?;
            let best = answer.lexical.as_ref().and_then(|standing| standing.chunk_id.rsplit_once('#')?.1.parse().ok());
            let chunk = match best {
                Some(number) => self.chunk(&target.document, number)?,
                None => target.chunks.iter().next(),
            };
            if let Some(chunk) = chunk {
                answer.terms = self.source.explain(&search.query, &[chunk], search.weights.bm25(), None)?.pop();
            }
        }
        if search.mode != Mode::Lexical {
            let vector = self.embed_query(&search.query, &search.cancel)?.vector;
            let found = self.dense_chunks(&vector, &all, scope)?;
            answer.dense = self.standing(found.chunks, target, search.candidates)?;
        }
        Ok(())
    }

    /// The first of scope, filter and phrases that a document or chunk does not pass.
    fn excluded(&self, trials: &Trials<'_>, search: &ChunkSearch, target: &Target) -> Result<WhereLost> {
        let (stage, because, changes) = if let Some(scope) = within(search, target) {
            let because = format!("{} is not among the {} documents that may answer", target.document, scope.len());
            ("scope", because, vec![Retrieval::Within(target.document.clone()), Retrieval::Anywhere])
        } else if let Some(filter) = self.filtering(search, target)? {
            let kept_out = if filter.is_of_chunks() { &target.id } else { &target.document };
            let because = format!("the filter does not admit {kept_out}: {}", filter.as_str());
            ("filter", because, vec![Retrieval::Unfiltered])
        } else {
            let phrases: Vec<String> = self.required(search).phrases.iter().map(|one| format!("{one:?}")).collect();
            let bounds = if search.filter.is_some() { " where the filter admits it" } else { "" };
            let because = format!("{} does not have word by word{bounds}: {}", target.id, phrases.join(", "));
            ("phrases", because, vec![Retrieval::Words])
        };
        Ok(WhereLost { stage, because, undone: trials.undo_search(wanted(target), &changes)? })
    }

    /// The filter, if it admits nothing of the target.
    fn filtering<'a>(&self, search: &'a ChunkSearch, target: &Target) -> Result<Option<&'a Filter>> {
        let Some(filter) = &search.filter else { return Ok(None) };
        let (admitted, _) = self.filter_scope(filter)?;
        Ok((!target.is_in(&admitted)).then_some(filter))
    }

    /// The best place of the chunks asked for in a ranking whose first `depth` go on.
    fn standing(&self, mut ranking: Ranking, target: &Target, depth: usize) -> Result<Option<Standing>> {
        let Some(at) = ranking.iter().position(|(ranked, _)| target.chunks.contains(ranked.chunk)) else {
            return Ok(None);
        };
        name(&mut ranking[at..=at], |chunks| self.source.ids(Unit::Row, chunks))?;
        let (RankedChunk { id, .. }, score) = ranking[at].clone();
        let last = ranking[..depth.min(ranking.len())].last().map_or(score, |(_, score)| *score);
        Ok(id.map(|id| Standing {
            chunk_id: id.to_string(),
            rank: at + 1,
            n_ranked: ranking.len(),
            score,
            score_needed: last,
        }))
    }
}

/// The documents that may answer, if the target's is none of them.
fn within<'a>(search: &'a ChunkSearch, target: &Target) -> Option<&'a [String]> {
    search.scope.as_deref().filter(|scope| !scope.contains(&target.document))
}

/// The chunks asked for, as decisions name them.
fn wanted(target: &Target) -> Wanted<'_> {
    Wanted { id: &target.id, document: &target.document }
}

/// Neither arm has a chunk of it among its candidates.
fn not_found(trials: &Trials<'_>, answer: &WhyNot, search: &ChunkSearch, target: &Target) -> Result<WhereLost> {
    let mut reasons = Vec::new();
    let mut changes: Vec<Retrieval> = Vec::new();
    if search.mode != Mode::Dense {
        reasons.push(match &answer.lexical {
            Some(at) => arm("lexical", "BM25", at, search.candidates),
            None => "lexical: it has no term of the query".to_owned(),
        });
    }
    if let Some(at) = &answer.dense {
        reasons.push(match at.rank <= search.candidates {
            true => format!(
                "dense: place {} by its cosine of {}, but the graph did not reach it",
                at.rank,
                explain::number(at.score)
            ),
            false => arm("dense", "cosine", at, search.candidates),
        });
        if at.rank <= search.candidates {
            changes.push(Retrieval::Exact);
        }
    }
    let places = answer.lexical.iter().chain(&answer.dense).map(|at| at.rank);
    if let Some(rank) = places.min().filter(|&rank| rank > search.candidates) {
        changes.push(Retrieval::Candidates(rank));
    }
    if search.mode != Mode::Hybrid {
        changes.push(Retrieval::Hybrid);
    }
    let stage = match search.mode {
        Mode::Hybrid => "lexical and dense",
        Mode::Dense => "dense",
        Mode::Lexical => "lexical",
    };
    Ok(WhereLost { stage, because: reasons.join("; "), undone: trials.undo_search(wanted(target), &changes)? })
}

fn arm(name: &str, figure: &str, at: &Standing, depth: usize) -> String {
    format!(
        "{name}: place {} of {} ({figure} {}), and the arm gives its first {depth} (to {})",
        at.rank,
        at.n_ranked,
        explain::number(at.score),
        explain::number(at.score_needed)
    )
}
