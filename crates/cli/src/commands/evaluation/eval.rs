//! `cento eval`: what runs are worth.

use std::path::Path;

use anyhow::Context as _;
use cento_eval::evaluate::{Evaluation, Missing};
use cento_eval::measure::Measure;
use cento_eval::qrels::Qrels;
use serde_json::{Map, Value, json};

use crate::args::{Eval, Global};
use crate::exit_code::Outcome;
use crate::{judge, options, output};

/// A bound that a run's mean must keep.
struct Check {
    run: String,
    measure: Measure,
    kind: &'static str,
    bound: f64,
    actual: f64,
}

impl Check {
    fn passed(&self) -> bool {
        self.actual >= self.bound
    }
}

pub(crate) fn execute(args: &Eval, global: &Global) -> anyhow::Result<Outcome> {
    if !(args.tolerance >= 0.0 && args.tolerance.is_finite()) {
        return Err(options::usage(format!("--tolerance {}: must be a number of at least 0", args.tolerance)));
    }
    let mut measures = judge::measures(&args.judging)?;
    let minima = args.min.iter().map(|text| minimum(text)).collect::<anyhow::Result<Vec<_>>>()?;
    for (measure, _) in &minima {
        if !measures.contains(measure) {
            measures.push(*measure);
        }
    }
    let baseline = args.baseline.as_deref().map(|path| baseline(path, &measures)).transpose()?;
    let how = judge::options(&args.judging);
    let qrels = Qrels::read(&args.qrels)?;
    let (mut judged, mut runs) = (judge::Judged::new(&qrels, &global.collection), Vec::new());
    for path in &args.runs {
        runs.push((path.display().to_string(), judge::run(path, &mut judged, &measures, how)?));
    }
    let mut checks = Vec::new();
    for (run, evaluation) in &runs {
        let mean = |measure: &Measure| evaluation.mean(place(&measures, measure));
        let check =
            |kind, measure: Measure, bound| Check { run: run.clone(), measure, kind, bound, actual: mean(&measure) };
        checks.extend(minima.iter().map(|(measure, bound)| check("minimum", *measure, *bound)));
        if args.fail_on_regression {
            let bounds = baseline.iter().flatten().zip(&measures);
            checks.extend(bounds.map(|(known, measure)| check("baseline", *measure, known - args.tolerance)));
        }
    }
    if global.json {
        output::json(&answer(args, how.missing, &runs, baseline.as_deref(), &checks))?;
    } else {
        print(args, &runs, baseline.as_deref(), &checks);
        if !global.quiet {
            remark(how.missing, &qrels, &runs);
        }
    }
    Ok(if checks.iter().all(Check::passed) { Outcome::Done } else { Outcome::Nothing })
}

/// `nDCG@10=.66`; the measure's own name may hold a `=`.
fn minimum(text: &str) -> anyhow::Result<(Measure, f64)> {
    let split = text.rsplit_once('=').and_then(|(name, bound)| Some((name, bound.trim().parse::<f64>().ok()?)));
    let Some((name, bound)) = split.filter(|(_, bound)| bound.is_finite()) else {
        return Err(options::usage(format!("--min {text:?}: expected MEASURE=NUMBER, such as nDCG@10=.66")));
    };
    Ok((name.trim().parse()?, bound))
}

fn place(measures: &[Measure], measure: &Measure) -> usize {
    measures.iter().position(|known| known == measure).expect("every measure that is asked for was measured")
}

/// The means of an earlier answer, in the order of `measures`.
fn baseline(path: &Path, measures: &[Measure]) -> anyhow::Result<Vec<f64>> {
    let text =
        cento_engine::read_bounded(path, output::ANSWER_BYTES_MAX).with_context(|| path.display().to_string())?;
    let value: Value = serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
    let figure = |measure: &Measure| {
        value[measure.to_string()].as_f64().ok_or_else(|| {
            options::usage(format!(
                "--baseline {}: holds no {measure}; write it with `cento eval QRELS RUN -m {measure} --json` (one run)",
                path.display()
            ))
        })
    };
    measures.iter().map(figure).collect()
}

/// One object; with one run its figures stand at the top too, each under its measure's name.
fn answer(
    args: &Eval,
    missing: Missing,
    runs: &[(String, Evaluation)],
    baseline: Option<&[f64]>,
    checks: &[Check],
) -> Value {
    let of_run = |(name, evaluation): &(String, Evaluation)| {
        let mut object = Map::new();
        object.insert("run".to_owned(), json!(name));
        object.insert("n_queries".to_owned(), json!(evaluation.queries.len()));
        object.insert("n_missing".to_owned(), json!(evaluation.n_missing));
        object.insert("n_unjudged".to_owned(), json!(evaluation.n_unjudged));
        object.extend(judge::means(evaluation));
        if let Some(baseline) = baseline {
            let known = evaluation.measures.iter().zip(baseline);
            let known = known.map(|(measure, known)| (measure.to_string(), json!(known))).collect();
            object.insert("baseline".to_owned(), Value::Object(known));
        }
        if args.per_query {
            object.insert("queries".to_owned(), Value::Object(judge::per_query(evaluation)));
        }
        object
    };
    let mut answer = Map::new();
    answer.insert("version".to_owned(), json!(output::JSON_VERSION));
    answer.insert("qrels".to_owned(), json!(args.qrels.display().to_string()));
    let how = if missing == Missing::Zero { "count as 0" } else { "are left out" };
    answer.insert("queries_without_results".to_owned(), json!(how));
    if !checks.is_empty() {
        let check = |check: &Check| {
            json!({"run": check.run, "measure": check.measure.to_string(), "kind": check.kind, "bound": check.bound,
                   "actual": check.actual, "passed": check.passed()})
        };
        answer.insert("checks".to_owned(), checks.iter().map(check).collect());
    }
    let objects: Vec<_> = runs.iter().map(of_run).collect();
    match &objects[..] {
        [only] => answer.extend(only.clone()),
        _ => _ = answer.insert("runs".to_owned(), json!(objects)),
    }
    Value::Object(answer)
}

fn print(args: &Eval, runs: &[(String, Evaluation)], baseline: Option<&[f64]>, checks: &[Check]) {
    let names: Vec<String> = runs[0].1.measures.iter().map(Measure::to_string).collect();
    if args.per_query {
        let mut rows = Vec::new();
        for (run, evaluation) in runs {
            for (at, query) in evaluation.queries.iter().enumerate() {
                let figures = evaluation.values.iter().map(|values| output::figure(values[at]));
                rows.push([run.clone(), query.clone()].into_iter().chain(figures).collect());
            }
        }
        println!("{}\n", output::table(&header(&["run", "query"], &names), rows));
    }
    let mut rows = Vec::new();
    for (run, evaluation) in runs {
        let means: Vec<f64> = (0..names.len()).map(|at| evaluation.mean(at)).collect();
        rows.push([run.clone()].into_iter().chain(means.iter().map(|mean| output::figure(*mean))).collect::<Vec<_>>());
        if let Some(baseline) = baseline {
            let differences = means.iter().zip(baseline).map(|(mean, known)| format!("{:+.4}", mean - known));
            rows.push(["  less the baseline".to_owned()].into_iter().chain(differences).collect());
        }
    }
    println!("{}", output::table(&header(&["run"], &names), rows));
    for check in checks {
        let verdict = if check.passed() { "passed" } else { "FAILED" };
        println!(
            "{verdict}: {} {} {:.4}, at least {:.4} ({})",
            check.run, check.measure, check.actual, check.bound, check.kind
        );
    }
}

fn header<'n>(first: &[&'n str], names: &'n [String]) -> Vec<&'n str> {
    first.iter().copied().chain(names.iter().map(String::as_str)).collect()
}

fn remark(missing: Missing, qrels: &Qrels, runs: &[(String, Evaluation)]) {
    let n_barren = qrels.iter().filter(|(_, judgements)| judgements.n_relevant(1) == 0).count();
    if n_barren > 0 {
        eprintln!("{n_barren} of {} judged queries have no relevant document: they count as 0", qrels.n_queries());
    }
    for (run, evaluation) in runs {
        let n = evaluation.queries.len();
        let missing = match (evaluation.n_missing, missing) {
            (0, _) => "all have results".to_owned(),
            (n, Missing::Zero) => format!("{n} without results count as 0"),
            (n, Missing::Skip) => format!("{n} more without results are left out"),
        };
        let unjudged = match evaluation.n_unjudged {
            0 => String::new(),
            n => format!("; not judged and left out: {} of the run", output::counted(n as u64, "query")),
        };
        eprintln!("{run}: {}, {missing}{unjudged}", output::counted(n as u64, "query"));
    }
}
