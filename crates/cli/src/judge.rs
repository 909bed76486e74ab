//! Judging runs: what `eval` and `compare` share.

use std::path::Path;

use cento_eval::evaluate::{Evaluation, Missing, Options, SelfHits, evaluate};
use cento_eval::measure::Measure;
use cento_eval::qrels::Qrels;
use cento_eval::run::Rankings;
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

/// Judges a run, read as a stream.
pub(crate) fn run(path: &Path, qrels: &Qrels, measures: &[Measure], options: Options) -> anyhow::Result<Evaluation> {
    evaluate(qrels, Rankings::open(path)?, measures, options).map_err(|error| {
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
