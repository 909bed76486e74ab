//! Runs the benchmarks at full size: `cento-bench [MODEL_FOLDER]`, one JSON object a line, `cento-bench lexical`, a
//! table, `cento-bench graphs`, one contestant of `scripts/bench-graphs`, `cento-bench assembly`, how long contexts
//! take, `cento-bench scale`, a collection of any size, `cento-bench shards`, whether several collections answer as one,
//! and `cento-bench reproduce`, recorded figures measured again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use cento_assembly::Strategy;
use cento_benches::reproduce::{self, Verdict};
use cento_benches::{assembly, graphs, lexical, scale, shards};
use clap::{Parser, Subcommand};

/// Benchmarks at full size; without a command those of speed
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// Folder of an encoder, to time it too
    model: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// BM25 from tantivy out of the box to Cento's, one change at a time
    Lexical {
        /// Folder that holds the sets (BEIR layout)
        #[arg(long, env = "CENTO_DATA", value_name = "DIR")]
        data: PathBuf,
        /// Names of sets
        #[arg(value_name = "SET", default_values = lexical::SETS)]
        sets: Vec<String>,
        /// One JSON object a set, a line each
        #[arg(long)]
        json: bool,
    },
    /// Contexts from 200 and 2,000 candidates, by every strategy that needs no search of its own
    Assembly {
        /// Tokens of a context
        #[arg(long, default_value_t = 1600)]
        budget: usize,
        /// Contexts of each size and strategy
        #[arg(long, default_value_t = 100)]
        rounds: usize,
        /// This strategy alone
        #[arg(long)]
        strategy: Option<Strategy>,
    },
    /// A graph of Cento's, or of the crate hnsw_rs, over given vectors: one JSON object
    Graphs {
        #[command(subcommand)]
        task: graphs::Task,
    },
    /// Real sets in one collection and cut into several: every answer must be the same, byte for byte
    Shards(shards::Args),
    /// A collection of any size from made-up documents: memory, time and bytes of indexing, and how it answers
    Scale(scale::Args),
    /// Rerun recorded figures from scratch, each beside what is expected
    Reproduce(reproduce::Args),
}

/// Exit codes are those of `cento`: 0 ok, 1 a figure is not as recorded, 2 usage, 3 data.
fn main() -> ExitCode {
    match execute(Args::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            if let Some(usage) = error.downcast_ref::<clap::Error>() {
                usage.exit();
            }
            eprintln!("error: {}", cento_engine::describe(error.as_ref()));
            ExitCode::from(3)
        }
    }
}

fn execute(args: Args) -> Result<u8> {
    match args.command {
        None => speed(args.model.as_deref())?,
        Some(Command::Shards(args)) => shards::execute(&args)?,
        Some(Command::Scale(args)) => println!("{}", scale::run(&args)?),
        Some(Command::Graphs { task }) => println!("{}", graphs::run(&task)?),
        Some(Command::Reproduce(args)) => return Ok(u8::from(reproduce::execute(&args)? == Some(Verdict::Fail))),
        Some(Command::Assembly { budget, rounds, strategy }) => contexts(budget, rounds, strategy)?,
        Some(Command::Lexical { data, sets, json }) => {
            for set in sets {
                let folder = data.join(&set);
                let walk = lexical::walk(&set, &folder).with_context(|| folder.display().to_string())?;
                if json {
                    println!("{}", serde_json::to_string(&walk)?);
                } else {
                    println!("{walk}");
                }
            }
        }
    }
    Ok(0)
}

fn contexts(budget: usize, rounds: usize, only: Option<Strategy>) -> Result<()> {
    for n_candidates in [200, 2_000] {
        let all = Strategy::ALL.into_iter().filter(|strategy| *strategy != Strategy::Seal);
        for strategy in all.filter(|strategy| only.is_none_or(|only| only == *strategy)) {
            let figures = assembly::assembly(strategy, n_candidates, budget, rounds)?;
            println!("{}", serde_json::to_string(&figures)?);
        }
    }
    Ok(())
}

fn speed(model: Option<&Path>) -> Result<()> {
    let print = |value: String| println!("{value}");
    print(serde_json::to_string(&cento_benches::scan(100_000, 50)?)?);
    for ef in [32, 64, 128] {
        print(serde_json::to_string(&cento_benches::graph(10_000, 200, ef)?)?);
    }
    if let Some(model) = model {
        print(serde_json::to_string(&cento_benches::embed(model, 2000)?)?);
    }
    Ok(())
}
