//! `cento compare`: the same queries under two systems, pair by pair.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, bail};
use cento_eval::compare::{Bootstrap, Paired, paired};
use cento_eval::qrels::Qrels;
use serde_json::{Map, Value, json};

use crate::args::{Compare, Global};
use crate::exit_code::Outcome;
use crate::{judge, options, output};

/// Figures by name (measure, or budget and figure), then by query.
type Figures = BTreeMap<String, BTreeMap<String, f64>>;

/// One measure of one pair of systems.
struct Row {
    b: String,
    name: String,
    paired: Paired,
    /// Queries that both have, those whose figure changed most first.
    queries: Vec<(String, f64, f64)>,
    /// Queries that one side lacks.
    n_alone: usize,
}

pub(crate) fn execute(args: &Compare, global: &Global) -> anyhow::Result<Outcome> {
    if args.resamples == 0 {
        return Err(options::usage("--resamples 0: no interval comes of that; give at least 1"));
    }
    let n_files = args.b.len() + 1;
    if !args.strategy.is_empty() && args.strategy.len() != n_files {
        let given = args.strategy.join(",");
        return Err(options::usage(format!(
            "--strategy {given}: {n_files} files are compared; name a strategy for each, in their order"
        )));
    }
    let read = Reader::new(args, global)?;
    let bootstrap = Bootstrap { n_resamples: args.resamples, seed: args.seed, ..Bootstrap::default() };
    let a = read.figures(&args.a, 0)?;
    let mut rows = Vec::new();
    for (at, path) in args.b.iter().enumerate() {
        let b = read.figures(path, at + 1)?;
        let before = rows.len();
        for (name, of_a) in &a {
            if let Some(of_b) = b.get(name) {
                rows.push(row(args.named(path, at + 1), name, of_a, of_b, &bootstrap)?);
            }
        }
        if rows.len() == before {
            bail!(
                "{} and {} have no figure in common: one has {}, the other {}",
                args.a.display(),
                path.display(),
                names(&a),
                names(&b)
            );
        }
    }
    if global.json {
        output::json(&answer(args, &rows))?;
    } else {
        print(args, &rows);
        if !global.quiet {
            remark(args, &rows, &bootstrap);
        }
    }
    Ok(Outcome::Done)
}

impl Compare {
    /// The strategy of the file of this number, if one is named.
    fn strategy_of(&self, at: usize) -> Option<&str> {
        self.strategy.get(at).map(String::as_str)
    }

    /// A file, and which of its strategies.
    fn named(&self, path: &Path, at: usize) -> String {
        self.strategy_of(at).map_or_else(|| path.display().to_string(), |name| format!("{} {name}", path.display()))
    }
}

fn names(figures: &Figures) -> String {
    figures.keys().take(5).cloned().collect::<Vec<_>>().join(", ")
}

/// Reads either side: runs if there are judgements, else answers in JSON.
struct Reader<'a> {
    args: &'a Compare,
    qrels: Option<Qrels>,
    collection: &'a Path,
}

impl<'a> Reader<'a> {
    fn new(args: &'a Compare, global: &'a Global) -> anyhow::Result<Self> {
        let qrels = args.qrels.as_deref().map(Qrels::read).transpose()?;
        Ok(Self { args, qrels, collection: &global.collection })
    }

    fn figures(&self, path: &Path, at: usize) -> anyhow::Result<Figures> {
        let Some(qrels) = &self.qrels else { return answered(path, self.args.strategy_of(at)) };
        let measures = judge::measures(&self.args.judging)?;
        let mut judged = judge::Judged::new(qrels, self.collection);
        let evaluation = judge::run(path, &mut judged, &measures, judge::options(&self.args.judging))?;
        let by_query = |values: &Vec<f64>| evaluation.queries.iter().cloned().zip(values.iter().copied()).collect();
        Ok(measures.iter().map(ToString::to_string).zip(evaluation.values.iter().map(by_query)).collect())
    }
}

/// The figures of an answer of `eval` (one run), `eval-context` or `eval-answers` (one strategy, or that named),
/// written with `--per-query --json`.
fn answered(path: &Path, strategy: Option<&str>) -> anyhow::Result<Figures> {
    let name = path.display();
    let bytes = cento_engine::read_bounded(path, output::ANSWER_BYTES_MAX).with_context(|| name.to_string())?;
    let way_out = "give --qrels to compare runs, or what `cento eval`, `eval-context` or `eval-answers` wrote with --per-query --json";
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|_| options::usage(format!("{name}: is no JSON; {way_out}")))?;
    let mut figures = Figures::new();
    let mut add = |prefix: &str, queries: &Map<String, Value>| -> anyhow::Result<()> {
        for (query, values) in queries {
            for (figure, value) in values.as_object().into_iter().flatten() {
                let Some(value) = value.as_f64() else { continue };
                if figures.entry(format!("{prefix}{figure}")).or_default().insert(query.clone(), value).is_some() {
                    bail!(
                        "{name}: holds two strategies for {prefix}{figure}; say with --strategy which one of each file is meant"
                    );
                }
            }
        }
        Ok(())
    };
    if let Some(queries) = value["queries"].as_object() {
        add("", queries)?;
    }
    let groups = value["groups"].as_array().into_iter().flatten();
    let strategies: BTreeSet<&str> = groups.clone().filter_map(|group| group["strategy"].as_str()).collect();
    if let Some(absent) = strategy.filter(|strategy| !strategies.contains(strategy)) {
        let has: Vec<&str> = strategies.into_iter().collect();
        bail!("{name}: has no strategy {absent:?}, but {}", has.join(", "));
    }
    for group in groups.filter(|group| strategy.is_none_or(|strategy| group["strategy"] == strategy)) {
        let queries = group["queries"].as_object().ok_or_else(|| options::usage(format!("{name}: {way_out}")))?;
        let budget = match group["budget"].as_str() {
            Some(asked) => asked.to_owned(),
            None => format!("{} tokens", group["budget_tokens"]),
        };
        add(&format!("{budget}: "), queries)?;
    }
    if figures.is_empty() {
        Err(options::usage(format!("{name}: holds no figures of queries; {way_out}")))
    } else {
        Ok(figures)
    }
}

fn row(
    b_name: String,
    name: &str,
    a: &BTreeMap<String, f64>,
    b: &BTreeMap<String, f64>,
    bootstrap: &Bootstrap,
) -> anyhow::Result<Row> {
    let both = a.iter().filter_map(|(query, of_a)| Some((query.clone(), *of_a, *b.get(query)?)));
    let mut queries: Vec<(String, f64, f64)> = both.collect();
    let (of_a, of_b): (Vec<f64>, Vec<f64>) = queries.iter().map(|(_, a, b)| (*a, *b)).unzip();
    let paired = paired(&of_a, &of_b, bootstrap).with_context(|| format!("{b_name}, {name}"))?;
    let n_alone = a.len() + b.len() - 2 * queries.len();
    queries.sort_by(|x, y| (y.2 - y.1).abs().total_cmp(&(x.2 - x.1).abs()).then_with(|| x.0.cmp(&y.0)));
    Ok(Row { b: b_name, name: name.to_owned(), paired, queries, n_alone })
}

fn answer(args: &Compare, rows: &[Row]) -> Value {
    let comparison = |row: &Row| {
        let p = &row.paired;
        let mut object = json!({
            "b": row.b, "measure": row.name, "n": p.n, "n_unpaired": row.n_alone, "mean_a": p.mean_a, "mean_b": p.mean_b,
            "difference": p.difference, "low": p.low, "high": p.high, "p_bootstrap": p.p_bootstrap, "t": p.t, "p_t": p.p_t,
            "cohens_d": p.cohens_d, "wins": p.wins, "ties": p.ties, "losses": p.losses,
        });
        if args.per_query {
            let query = |(id, a, b): &(String, f64, f64)| json!({"query": id, "a": a, "b": b, "difference": b - a});
            object["queries"] = row.queries.iter().map(query).collect();
        }
        object
    };
    json!({
        "version": output::JSON_VERSION, "a": args.named(&args.a, 0), "resamples": args.resamples, "seed": args.seed,
        "confidence": Bootstrap::default().confidence, "comparisons": rows.iter().map(comparison).collect::<Vec<_>>(),
    })
}

fn print(args: &Compare, rows: &[Row]) {
    let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), output::p_value);
    let line = |row: &Row| {
        let p = &row.paired;
        vec![
            row.b.clone(),
            row.name.clone(),
            output::figure(p.mean_a),
            output::figure(p.mean_b),
            format!("{:+.4}", p.difference),
            format!("{:+.4} to {:+.4}", p.low, p.high),
            output::p_value(p.p_bootstrap),
            optional(p.p_t),
            p.cohens_d.map_or_else(|| "-".to_owned(), |d| format!("{d:+.2}")),
            format!("{}/{}/{}", p.wins, p.ties, p.losses),
        ]
    };
    let header = [
        "run",
        "measure",
        "before",
        "here",
        "difference",
        "95% interval",
        "p (bootstrap)",
        "p (t)",
        "d",
        "wins/ties/losses",
    ];
    println!("{}", output::table(&header, rows.iter().map(line)));
    if args.per_query {
        let queries = rows.iter().flat_map(|row| row.queries.iter().map(move |query| (row, query)));
        let line = |(row, (id, a, b)): (&Row, &(String, f64, f64))| {
            vec![
                row.b.clone(),
                row.name.clone(),
                id.clone(),
                output::figure(*a),
                output::figure(*b),
                format!("{:+.4}", b - a),
            ]
        };
        println!(
            "\n{}",
            output::table(&["run", "measure", "query", "before", "here", "difference"], queries.map(line))
        );
    }
}

fn remark(args: &Compare, rows: &[Row], bootstrap: &Bootstrap) {
    let n_alone: usize = rows.iter().map(|row| row.n_alone).max().unwrap_or(0);
    if n_alone > 0 {
        let queries = output::counted(n_alone as u64, "query");
        eprintln!("warning: left out for figures on one side only: up to {queries}");
    }
    eprintln!(
        "before: {}; {} resamples, seed {}; a win is a query that is better here",
        args.named(&args.a, 0),
        bootstrap.n_resamples,
        bootstrap.seed
    );
}
