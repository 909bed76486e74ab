//! `cento bench scan`: how fast the exact scan is here, and whether a device finds what the CPU finds.

use cento_engine::{ScanBenchRequest, bench_scan};
use cento_eval::Machine;
use serde_json::json;

use crate::args::{BenchScan, Global};
use crate::exit_code::Outcome;
use crate::options;
use crate::output;

pub(crate) fn execute(args: &BenchScan, global: &Global) -> anyhow::Result<Outcome> {
    let counts = [
        ("n-rows", args.n_rows),
        ("dimensions", args.dimensions),
        ("n-queries", args.n_queries),
        ("k", args.k),
        ("repeat", args.repeat),
    ];
    if let Some((name, _)) = counts.iter().find(|(_, n)| *n == 0) {
        return Err(options::usage(format!("--{name} 0: nothing would be measured; give at least one")));
    }
    let request = ScanBenchRequest {
        n_rows: args.n_rows,
        dimensions: args.dimensions,
        scalar: options::scalar(args.vectors),
        n_queries: args.n_queries,
        k: args.k,
        device: args.device.device,
        repeat: args.repeat,
    };
    let bench = bench_scan(&request)?;
    if global.json {
        output::json(&json!({
            "version": output::JSON_VERSION, "bench": "scan", "machine": Machine::here(), "device": bench.device,
            "n_rows": args.n_rows, "dimensions": args.dimensions, "n_queries": args.n_queries, "k": args.k,
            "seconds": bench.seconds, "queries_per_second": args.n_queries as f64 / bench.seconds,
            "n_checked": bench.n_checked, "cpu_seconds": bench.cpu_seconds, "equal": bench.equal,
        }))?;
    } else {
        println!(
            "{} queries, {} rows of {}: {:.3} s on {}; the CPU takes {:.3} s for {} of them",
            output::count(args.n_queries as u64),
            output::count(args.n_rows as u64),
            args.dimensions,
            bench.seconds,
            bench.device,
            bench.cpu_seconds,
            bench.n_checked
        );
    }
    if !bench.equal {
        eprintln!("the rows or distances are not those of the CPU");
        return Ok(Outcome::Nothing);
    }
    Ok(Outcome::Done)
}
