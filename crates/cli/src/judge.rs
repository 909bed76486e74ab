//! Judging runs: what `eval` and `compare` share.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use cento_engine::{Searcher, SearcherOptions};
use cento_eval::evaluate::{Evaluation, Missing, Options, SelfHits, evaluate};
use cento_eval::measure::Measure;
use cento_eval::qrels::Qrels;
use cento_eval::run::{Ranking, Rankings, column};
use serde_json::{Map, Value, json};

use crate::args::Judging;

/// The measures asked for, each once.
pub(crate) fn measures(judging: &Judging) -> anyhow::Result<Vec<Measure>> {
    let mut measures: Vec<Measure> = Vec::new();
    for name in &judging.measure {
        let measure = name.parse()?;
        if !measures.contains(&measure) {
            measures.push(measure);
        }
    }
    Ok(measures)
}

pub(crate) fn options(judging: &Judging) -> Options {
    Options {
        missing: if judging.retrieved_only { Missing::Skip } else { Missing::Zero },
        self_hits: if judging.remove_query { SelfHits::Remove } else { SelfHits::Keep },
    }
}

/// The names that judgements have for documents.
///
/// Judgements may name a record of JSONL by its own id where the collection has that once. A run names it by its file,
/// too, so the collection is asked about a document that is not judged, but for the end of its id.
pub(crate) struct Judged<'q> {
    pub(crate) qrels: &'q Qrels,
    collection: &'q Path,
    /// All judged documents, as a run writes them.
    documents: HashSet<Cow<'q, str>>,
    /// The judged names of the collection's records, by the ids that a run has; read when first asked for.
    records: Option<HashMap<String, String>>,
}

impl<'q> Judged<'q> {
    pub(crate) fn new(qrels: &'q Qrels, collection: &'q Path) -> Self {
        let documents = qrels.iter().flat_map(|(_, judgements)| judgements.iter());
        Self { qrels, collection, documents: documents.map(|(id, _)| column(id)).collect(), records: None }
    }

    /// The ranking with judged names.
    fn rename(&mut self, mut ranking: Ranking) -> Ranking {
        for hit in &mut ranking.hits {
            if let Some(name) = self.name(&hit.document) {
                hit.document = name;
            }
        }
        ranking
    }

    /// The judged name of a document that is not judged by its id.
    fn name(&mut self, document: &str) -> Option<String> {
        let is_judged = |id: &str| self.documents.contains(id);
        let mut ends = document.match_indices('/').map(|(at, _)| &document[at + 1..]);
        if is_judged(document) || !ends.any(is_judged) {
            return None;
        }
        if self.records.is_none() {
            self.records = Some(self.of_collection());
        }
        self.records.as_ref()?.get(document).cloned()
    }

    /// The records of the collection that are judged; none where there is no collection, as the run may come from
    /// elsewhere.
    fn of_collection(&self) -> HashMap<String, String> {
        let Ok(searcher) = Searcher::open(self.collection, SearcherOptions::default()) else { return HashMap::new() };
        let judged = self.qrels.iter().flat_map(|(_, judgements)| judgements.iter().map(|(id, _)| id.to_owned()));
        let records = searcher.of_records(&judged.collect::<Vec<_>>()).unwrap_or_default();
        records.into_iter().map(|(own, id)| (column(&id).into_owned(), column(&own).into_owned())).collect()
    }
}

/// Judges a run, read as a stream.
pub(crate) fn run(
    path: &Path,
    judged: &mut Judged<'_>,
    measures: &[Measure],
    options: Options,
) -> anyhow::Result<Evaluation> {
    let qrels = judged.qrels;
    let rankings = Rankings::open(path)?.map(|ranking| ranking.map(|ranking| judged.rename(ranking)));
    evaluate(qrels, rankings, measures, options).map_err(|error| {
        let name = path.display().to_string();
        let is_named = error.to_string().contains(&name);
        if is_named { error.into() } else { anyhow::Error::new(error).context(name) }
    })
}

/// The means, each under its measure's name.
pub(crate) fn means(evaluation: &Evaluation) -> Map<String, Value> {
    let mean = |(at, measure): (usize, &Measure)| (measure.to_string(), json!(evaluation.mean(at)));
    evaluation.measures.iter().enumerate().map(mean).collect()
}

/// For each query its figures, each under its measure's name.
pub(crate) fn per_query(evaluation: &Evaluation) -> Map<String, Value> {
    let figures = |query: usize| {
        let named = evaluation.measures.iter().zip(&evaluation.values);
        named.map(|(measure, values)| (measure.to_string(), json!(values[query]))).collect::<Map<_, _>>()
    };
    evaluation.queries.iter().enumerate().map(|(at, query)| (query.clone(), Value::Object(figures(at)))).collect()
}
