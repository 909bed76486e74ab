//! BM25 from tantivy out of the box to Cento's lexical arm, one change at a time: what each is worth in nDCG.
//!
//! Source: tantivy 0.27 as its `basic_search` example uses it; the run behind quickwit-oss/tantivy#2455 stands beside
//! the walk.
//! Differs: queries are read leniently, since the strict parser refuses some, and one thread indexes, so that figures
//! repeat.
//! Range: nDCG@10 and R@100 of trec_eval, means over all judged queries. The worth of a change depends on those before
//! it.
//! Cost: an index of the whole set for each step.

mod set;
mod analysis;
mod stock;
mod bm25;
mod cento;

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use cento_eval::compare::{Bootstrap, paired};
use cento_eval::evaluate::{Options, evaluate};
use cento_eval::measure::Measure;
use cento_eval::run::{Hit, Ranking};
use serde::Serialize;

use self::analysis::{Analysis, Pipeline};
use self::bm25::{Bm25, Lengths};
use self::set::Set;
pub use self::stock::Syntax;
use self::stock::{Layout, Reading, Stock};

/// The sets that are walked when none is named.
pub const SETS: [&str; 4] = ["scifact", "cranfield", "cosqa", "anth_code"];

/// Documents kept of a ranking.
const DEPTH: usize = 1000;

/// Every step of one set.
#[derive(Debug, Serialize)]
pub struct Walk {
    /// Name of the set.
    pub set: String,
    /// Documents in it.
    pub n_documents: usize,
    /// Queries asked.
    pub n_queries: usize,
    /// What tantivy's query parser makes of them.
    pub syntax: Syntax,
    /// The steps, in order.
    pub steps: Vec<Figures>,
}

/// What a step is worth.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// What is changed, in words.
    pub step: &'static str,
    /// Mean nDCG@10.
    pub ndcg_at_10: f64,
    /// Mean R@100.
    pub recall_at_100: f64,
    /// The difference that the change makes; none for the first step.
    pub change: Option<Change>,
}

/// nDCG@10 of a step beside that of another, query by query.
#[derive(Debug, Serialize)]
pub struct Change {
    /// The step it is compared with.
    pub from: &'static str,
    /// Mean difference.
    pub difference: f64,
    /// Lower end of its 95% interval.
    pub low: f64,
    /// Upper end of its 95% interval.
    pub high: f64,
    /// Two-sided p of the paired bootstrap test, not corrected for the number of steps.
    pub p: f64,
    /// Queries that gain.
    pub wins: usize,
    /// Queries that lose.
    pub losses: usize,
}

/// Walks every step over the set in `folder`.
///
/// # Errors
/// If the set cannot be read, or an index cannot be made.
pub fn walk(name: &str, folder: &Path) -> Result<Walk> {
    let set = Set::read(folder)?;
    let syntax = Stock::build(&set, Layout::TitleAndBody, Pipeline::Default)?.syntax(&set);
    let mut values: Vec<Vec<f64>> = Vec::new();
    let mut steps = Vec::new();
    for step in &STEPS {
        let rankings = step.ranker.rank(&set).with_context(|| step.name)?;
        let (ndcg, recall_at_100) = measure(&set, &rankings)?;
        let change = match step.from {
            Some(from) => Some(change(from, &values[position(from)], &ndcg)?),
            None => None,
        };
        let ndcg_at_10 = ndcg.iter().sum::<f64>() / ndcg.len() as f64;
        steps.push(Figures { step: step.name, ndcg_at_10, recall_at_100, change });
        values.push(ndcg);
    }
    Ok(Walk { set: name.to_owned(), n_documents: set.documents.len(), n_queries: set.topics.len(), syntax, steps })
}

/// One way to rank, and the step it is one change away from.
struct Step {
    name: &'static str,
    from: Option<&'static str>,
    ranker: Ranker,
}

/// What ranks.
#[derive(Clone, Copy)]
enum Ranker {
    /// tantivy's own scores: k1 1.2 and b 0.75, constants of its source, and lengths of one byte.
    Tantivy(Layout, Pipeline, Reading),
    /// The same formula with other parameters, over `title text`.
    Bm25(Analysis, Bm25),
    /// Cento's lexical arm.
    Cento,
}

/// The documents of one query, by their place in the corpus, with their scores; best first.
type Ranked = Vec<(usize, f64)>;

/// The parameters of Anserini and Cento, with the lengths of Lucene and tantivy.
const ANSERINI: Bm25 = Bm25 { k1: 0.9, b: 0.4, lengths: Lengths::OneByte };
/// The same with exact lengths.
const EXACT: Bm25 = Bm25 { lengths: Lengths::Exact, ..ANSERINI };
/// The defaults of Lucene, with exact lengths; tantivy's too.
const LUCENE: Bm25 = Bm25 { k1: 1.2, b: 0.75, lengths: Lengths::Exact };

const STEPS: [Step; 17] = {
    use Layout::{Glued, TitleAndBody, TitleText};
    use Pipeline::{Default, EnglishStems, EnglishStopWords};
    use Ranker::{Bm25, Cento, Tantivy};
    use Reading::{AllTerms, Phrases, Stripped, Terms};
    const fn step(name: &'static str, from: Option<&'static str>, ranker: Ranker) -> Step {
        Step { name, from, ranker }
    }
    [
        step("tantivy out of the box", None, Tantivy(TitleAndBody, Default, Reading::Syntax)),
        step("no operators", Some("tantivy out of the box"), Tantivy(TitleAndBody, Default, Phrases)),
        step("no phrases", Some("no operators"), Tantivy(TitleAndBody, Default, Terms)),
        step("one field, title and text", Some("no phrases"), Tantivy(TitleText, Default, Terms)),
        step("stems", Some("one field, title and text"), Tantivy(TitleText, EnglishStems, Terms)),
        step("no stop words", Some("stems"), Tantivy(TitleText, EnglishStopWords, Terms)),
        step("repeated words count", Some("no stop words"), Tantivy(TitleText, EnglishStopWords, AllTerms)),
        step("k1 0.9, b 0.4", Some("repeated words count"), Bm25(Analysis::Tantivy(EnglishStopWords), ANSERINI)),
        step("exact lengths", Some("k1 0.9, b 0.4"), Bm25(Analysis::Tantivy(EnglishStopWords), EXACT)),
        step("words of Unicode, no 's", Some("exact lengths"), Bm25(Analysis::UnicodeWords, EXACT)),
        step("identifiers, accents", Some("words of Unicode, no 's"), Bm25(Analysis::Cento, EXACT)),
        step("Cento", Some("identifiers, accents"), Cento),
        step("beside: the whole walk", Some("tantivy out of the box"), Cento),
        step("beside: past tantivy's scores", Some("repeated words count"), Cento),
        step("beside: characters deleted", Some("one field, title and text"), Tantivy(TitleText, Default, Stripped)),
        step("beside: as in tantivy#2455", Some("beside: characters deleted"), Tantivy(Glued, Default, Stripped)),
        step("beside: Cento, k1 1.2, b 0.75", Some("Cento"), Bm25(Analysis::Cento, LUCENE)),
    ]
};

fn position(name: &str) -> usize {
    STEPS.iter().position(|step| step.name == name).expect("a step names an earlier one")
}

impl Ranker {
    /// A ranking for each query, in the order of the topics.
    fn rank(self, set: &Set) -> Result<Vec<Ranked>> {
        match self {
            Self::Tantivy(layout, pipeline, reading) => Stock::build(set, layout, pipeline)?.rank(set, reading),
            Self::Bm25(analysis, bm25) => Ok(bm25.rank(set, analysis)),
            Self::Cento => cento::rank(set),
        }
    }
}

/// nDCG@10 of each query, by its id, and the mean R@100.
fn measure(set: &Set, rankings: &[Ranked]) -> Result<(Vec<f64>, f64)> {
    let measures: Vec<Measure> = ["nDCG@10", "R@100"].iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
    let hit = |&(document, score): &(usize, f64)| Hit::new(set.documents[document].id.as_str(), score);
    let rankings = set.topics.iter().zip(rankings);
    let rankings =
        rankings.map(|(topic, ranked)| Ok(Ranking::new(topic.id.as_str(), ranked.iter().map(hit).collect())));
    let mut evaluation = evaluate(&set.qrels, rankings, &measures, Options::default())?;
    let recall = evaluation.mean(1);
    Ok((evaluation.values.swap_remove(0), recall))
}

fn change(from: &'static str, before: &[f64], after: &[f64]) -> Result<Change> {
    let paired = paired(before, after, &Bootstrap::default())?;
    Ok(Change {
        from,
        difference: paired.difference,
        low: paired.low,
        high: paired.high,
        p: paired.p_bootstrap,
        wins: paired.wins,
        losses: paired.losses,
    })
}

impl fmt::Display for Walk {
    /// A table; the JSON says which step each change is counted from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { set, n_documents, n_queries, syntax, steps } = self;
        writeln!(f, "{set}: {n_documents} documents, {n_queries} queries; {syntax}")?;
        let head = ("step", "nDCG@10", "R@100", "change", "95% interval", "p", "wins/losses");
        writeln!(
            f,
            "{:29} {:>7} {:>6} {:>7} {:>16} {:>6} {:>11}",
            head.0, head.1, head.2, head.3, head.4, head.5, head.6
        )?;
        for Figures { step, ndcg_at_10, recall_at_100, change } in steps {
            write!(f, "{step:29} {ndcg_at_10:>7.4} {recall_at_100:>6.4}")?;
            if let Some(Change { difference, low, high, p, wins, losses, .. }) = change {
                let (interval, counts) = (format!("{low:+.4} {high:+.4}"), format!("{wins}/{losses}"));
                write!(f, " {difference:>+7.4} {interval:>16} {p:>6.4} {counts:>11}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
