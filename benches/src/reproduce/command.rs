//! `cento-bench reproduce`: its options, what it runs, what it writes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use cento_eval::Machine;
use clap::error::ErrorKind;
use indicatif::{ProgressBar, ProgressStyle};

use super::expected::Expected;
use super::plan::{Judged, Plan};
use super::report::{Cache, Report, Reproduction, Verdict};
use super::steps::{self, Figures, Runner};
use super::{assemble, page, picture, text, workplace};

/// Format number of the report as JSON.
const REPORT_VERSION: u32 = 1;
/// Format number of the list of plans as JSON.
const LIST_VERSION: u32 = 1;

/// Which figures are measured again, with what, and how the report is written.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to rerun: names of --list, or `all`
    #[arg(value_name = "NAME", required_unless_present_any = ["list", "from"])]
    names: Vec<String>,
    /// List what can be rerun
    #[arg(long)]
    list: bool,
    /// Print the commands, run nothing
    #[arg(long)]
    dry_run: bool,
    /// Folder of the reproductions (*.toml)
    #[arg(long, value_name = "DIR", default_value = "benches/reproduce")]
    plans: PathBuf,
    /// Folder of the evaluation sets, each a folder by its name
    #[arg(long, env = "CENTO_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder for collections, runs and contexts
    #[arg(long, value_name = "DIR", default_value = "target/reproduce")]
    work: PathBuf,
    /// Embed everything again; else what an earlier run embedded is taken over, and all the rest is done from scratch
    #[arg(long)]
    cold: bool,
    /// Make what is measured the expectation of later runs (in the folder of the reproductions)
    #[arg(long)]
    record: bool,
    /// Write the report as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Make text, JSON or page from an earlier report (written by --json) instead of running
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "list"])]
    from: Option<PathBuf>,
    /// The program that is measured [default: the `cento` beside this program]
    #[arg(long, env = "CENTO", value_name = "FILE")]
    cento: Option<PathBuf>,
    /// Threads of its commands; 0 = one per core. Results do not depend on it
    #[arg(long, env = "CENTO_THREADS", value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Answer with one JSON object that carries a `version`
    #[arg(long)]
    json: bool,
    /// No progress, no remarks; results and errors only
    #[arg(long, short)]
    quiet: bool,
}

/// Runs what is asked for and writes the report. The verdict is the worst of its figures, if any was compared.
///
/// # Errors
/// If the options contradict each other (a [`clap::Error`]), or a plan, a report or a file cannot be read or written.
pub fn execute(args: &Args) -> anyhow::Result<Option<Verdict>> {
    if let Some(path) = &args.from {
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        let report: Report = serde_json::from_slice(&bytes).with_context(|| path.display().to_string())?;
        if report.version != REPORT_VERSION {
            let (path, found) = (path.display(), report.version);
            return Err(usage(format!(
                "--from {path}: a report of version {found}, this program reads {REPORT_VERSION}"
            )));
        }
        return deliver(args, &report);
    }
    let plans = Plan::all(&args.plans)?;
    if args.list {
        list(args, &plans);
        return Ok(None);
    }
    let chosen = choose(&plans, &args.names)?;
    let folders = folders(args, &chosen)?;
    if args.dry_run {
        for plan in chosen {
            for command in steps::commands(plan, &folders)? {
                println!("{}", command.shown());
            }
        }
        return Ok(None);
    }
    let report = run(args, &chosen, &folders)?;
    deliver(args, &report)
}

fn usage(message: String) -> anyhow::Error {
    clap::Error::raw(ErrorKind::ValueValidation, message + "\n").into()
}

fn list(args: &Args, plans: &[Plan]) {
    if args.json {
        let entry = |plan: &Plan| serde_json::json!({"name": plan.name, "title": plan.title, "source": plan.source, "data": plan.data});
        let entries: Vec<_> = plans.iter().map(entry).collect();
        println!("{}", serde_json::json!({"version": LIST_VERSION, "reproductions": entries}));
    } else {
        let row = |plan: &Plan| vec![plan.name.clone(), plan.title.clone(), plan.data.join(" ")];
        println!("{}", text::columns(&["name", "shows", "data"], plans.iter().map(row)));
    }
}

fn choose<'p>(plans: &'p [Plan], names: &[String]) -> anyhow::Result<Vec<&'p Plan>> {
    if names.iter().any(|name| name == "all") {
        return Ok(plans.iter().collect());
    }
    let find = |name: &String| {
        plans.iter().find(|plan| plan.name == *name).ok_or_else(|| {
            let nearest = plans.iter().min_by_key(|plan| strsim::damerau_levenshtein(&plan.name, name));
            let nearest = nearest.map_or("", |plan| plan.name.as_str());
            usage(format!("no reproduction is called {name:?}; nearest: {nearest:?} (see --list)"))
        })
    };
    names.iter().map(find).collect()
}

/// The variables every plan has: whole paths, as the commands run in a folder of their own.
fn folders(args: &Args, chosen: &[&Plan]) -> anyhow::Result<Vec<(&'static str, String)>> {
    let shown = |path: PathBuf| path.display().to_string();
    let mut folders = vec![("plans", shown(whole(&args.plans)?)), ("work", shown(whole(&args.work)?))];
    let needed: Vec<&String> = chosen.iter().flat_map(|plan| &plan.data).collect();
    match &args.data {
        Some(data) => {
            let data = whole(data)?;
            if let Some(missing) = needed.iter().find(|set| !data.join(set).is_dir()) {
                return Err(usage(format!("--data {}: holds no folder {missing}", data.display())));
            }
            folders.push(("data", shown(data)));
        }
        None if needed.is_empty() => {}
        None => {
            let sets = needed.iter().map(|set| set.as_str()).collect::<BTreeSet<_>>();
            let sets = sets.into_iter().collect::<Vec<_>>().join(", ");
            return Err(usage(format!("needs evaluation data ({sets}): name its folder with --data or CENTO_DATA")));
        }
    }
    Ok(folders)
}

fn whole(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| path.display().to_string())
}

fn run(args: &Args, chosen: &[&Plan], folders: &[(&'static str, String)]) -> anyhow::Result<Report> {
    let cache = if args.cold { Cache::Cold } else { Cache::Warm };
    let runner = Runner { binary: cento(args.cento.as_deref())?, folder: whole(&args.work)?, threads: args.threads };
    let version = runner.version()?;
    workplace::prepare(&runner.folder, cache)?;
    let start = Instant::now();
    let mut reproductions = Vec::new();
    for plan in chosen {
        let reproduction = reproduce(plan, folders, &runner, args)?;
        if args.record && reproduction.failure.is_none() {
            record(plan, &reproduction, &args.plans)?;
        }
        if !args.quiet {
            let verdict = reproduction.verdict().map_or("done", Verdict::label);
            eprintln!("{}: {verdict}, {} commands, {:.0} s", plan.name, reproduction.steps.len(), reproduction.seconds);
        }
        reproductions.push(reproduction);
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(Report { version: REPORT_VERSION, cento: version, machine: Machine::here(), cache, seconds, reproductions })
}

/// The program that is measured.
fn cento(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(path) = named {
        return whole(path);
    }
    let this = std::env::current_exe().context("this program's file")?;
    let beside = this.with_file_name(format!("cento{}", std::env::consts::EXE_SUFFIX));
    if !beside.is_file() {
        let beside = beside.display();
        return Err(usage(format!(
            "{beside}: not built; build it with `cargo build --workspace` in the profile of this program, or name another with --cento or CENTO"
        )));
    }
    Ok(beside)
}

/// Runs the commands of a plan, until one fails.
fn reproduce(
    plan: &Plan,
    folders: &[(&'static str, String)],
    runner: &Runner,
    args: &Args,
) -> anyhow::Result<Reproduction> {
    let expected = Expected::read(&args.plans, &plan.name)?;
    let commands = steps::commands(plan, folders)?;
    let bar = bar(args, commands.len()).with_message(plan.name.clone());
    let begin = Instant::now();
    let (mut figures, mut steps, mut failure) = (Figures::default(), Vec::new(), None);
    for command in &commands {
        match runner.run(command, &mut figures) {
            Ok(step) => steps.push(step),
            Err(error) => {
                failure = Some(format!("{error:#}"));
                break;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut reproduction = assemble::assemble(plan, &figures, &expected);
    if failure.is_none() {
        match picture::pictures(plan, folders) {
            Ok(pictures) => reproduction.pictures = pictures,
            Err(error) => failure = Some(format!("{error:#}")),
        }
    }
    (reproduction.steps, reproduction.failure) = (steps, failure);
    reproduction.seconds = begin.elapsed().as_secs_f64();
    Ok(reproduction)
}

/// How many commands are done; hidden where stderr is not a terminal.
fn bar(args: &Args, n_commands: usize) -> ProgressBar {
    let bar = if args.quiet { ProgressBar::hidden() } else { ProgressBar::new(n_commands as u64) };
    let template = "{wide_bar} {pos}/{len} {msg}, {per_sec} [{elapsed}, {eta} left]";
    bar.with_style(ProgressStyle::with_template(template).expect("the template is a constant"))
}

/// Makes what was measured the expectation of later runs.
fn record(plan: &Plan, reproduction: &Reproduction, plans: &Path) -> anyhow::Result<()> {
    let mut expected = Expected::default();
    let judged = reproduction.tables.iter().zip(&plan.table).filter(|(_, planned)| planned.judged == Judged::Yes);
    for (table, _) in judged {
        for row in &table.rows {
            for (column, cell) in table.columns.iter().zip(&row.cells) {
                if let Some(actual) = cell.actual {
                    expected.record(&table.title, &row.name, column, actual);
                }
            }
        }
    }
    expected.write(plans, &reproduction.name)
}

fn deliver(args: &Args, report: &Report) -> anyhow::Result<Option<Verdict>> {
    if let Some(path) = &args.html {
        std::fs::write(path, page::html(report)).with_context(|| path.display().to_string())?;
    }
    if args.json {
        println!("{}", serde_json::to_string(report)?);
    } else {
        print!("{}", text::text(report));
    }
    Ok(report.verdict())
}
