//! `cento fuse`: several runs become one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cento_engine::fuse::{Arm, Method, Normalize, fuse};
use cento_eval::run::{Rankings, Ties, write};

use crate::args::{self, Fuse, FuseMethod, Global};
use crate::exit_code::Outcome;
use crate::{options, output};

#[derive(serde::Serialize)]
struct Answer {
    version: u32,
    n_topics: usize,
    n_results: usize,
    tag: String,
}

/// The best hits of each query.
type Hits = BTreeMap<String, Vec<(String, f64)>>;

pub(crate) fn execute(args: &Fuse, global: &Global) -> anyhow::Result<Outcome> {
    if args.k == 0 || args.depth == 0 {
        return Err(options::usage("-k and --depth: 0 asks for nothing; give at least 1"));
    }
    let method = method(args)?;
    let weights = weights(args)?;
    if global.json && args.output == Path::new("-") {
        return Err(options::usage("--json needs the run in a file: -o FILE"));
    }
    let runs = args.runs.iter().map(|path| read(path, args.depth)).collect::<anyhow::Result<Vec<_>>>()?;
    let queries: BTreeSet<&String> = runs.iter().flat_map(Hits::keys).collect();
    let mut out = output::file(&args.output)?;
    let mut n_results = 0;
    for query in &queries {
        let arm = |(at, run): (usize, &Hits)| Arm {
            name: format!("{at:04} {}", args.runs[at].display()).into(),
            weight: weights[at],
            hits: run.get(*query).cloned().unwrap_or_default(),
        };
        let arms: Vec<_> = runs.iter().enumerate().map(arm).collect();
        let fused = fuse(&arms, &method).map_err(|error| options::usage(format!("query {query}: {error}")))?;
        let best = fused.into_iter().take(args.k).map(|fused| (fused.id, fused.score));
        let best: Vec<_> = best.collect();
        n_results += best.len();
        write(&mut out, query, best, &args.tag, Ties::Break)?;
    }
    out.finish()?;
    if global.json {
        let n_topics = queries.len();
        output::json(&Answer { version: output::JSON_VERSION, n_topics, n_results, tag: args.tag.clone() })?;
    } else if !global.quiet {
        let topics = output::counted(queries.len() as u64, "topic");
        eprintln!("{topics}, {}", output::counted(n_results as u64, "result"));
    }
    Ok(Outcome::Done)
}

fn method(args: &Fuse) -> anyhow::Result<Method> {
    let normalize = match args.normalize {
        args::Normalize::MinMax => Normalize::MinMax,
        args::Normalize::ZScore => Normalize::ZScore,
        args::Normalize::TheoreticalMin if args.minima.len() == args.runs.len() => {
            Normalize::TheoreticalMin(args.minima.clone())
        }
        args::Normalize::TheoreticalMin => {
            return Err(options::usage(format!(
                "--normalize theoretical-min: wants --minima with one number for each of {} runs, such as --minima=-1,0",
                args.runs.len()
            )));
        }
    };
    Ok(match args.method {
        FuseMethod::Rrf => Method::Rrf { k: args.rrf_k },
        FuseMethod::Convex => Method::Convex { normalize },
        FuseMethod::Adaptive => Method::Adaptive { depth: args.contrast_depth },
    })
}

fn weights(args: &Fuse) -> anyhow::Result<Vec<f64>> {
    let n = args.runs.len();
    match args.weights.len() {
        0 => Ok(vec![1.0 / n as f64; n]),
        given if given == n => Ok(args.weights.clone()),
        given => {
            Err(options::usage(format!("--weights: {given} weights for {n} runs; give one each, separated by commas")))
        }
    }
}

fn read(path: &Path, depth: usize) -> anyhow::Result<Hits> {
    let mut hits = Hits::new();
    for ranking in Rankings::open(path)? {
        let ranking = ranking?;
        let best = ranking.hits.into_iter().take(depth).map(|hit| (hit.document, f64::from(hit.score as f32)));
        hits.insert(ranking.query, best.collect());
    }
    Ok(hits)
}
