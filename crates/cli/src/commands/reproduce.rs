//! `cento reproduce`: rerun recorded figures and say how each stands to what is expected.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;

use crate::args::{Global, Reproduce};
use crate::exit_code::Outcome;
use crate::machine::Machine;
use crate::output::{self, Bar};
use crate::reproduce::{Cache, Expected, Figures, Judged, Plan, Report, Reproduction, Runner, Verdict};
use crate::{options, reproduce};

/// Format number of the report as JSON.
const REPORT_VERSION: u32 = 1;

pub(crate) fn execute(args: &Reproduce, global: &Global) -> anyhow::Result<Outcome> {
    if let Some(path) = &args.from {
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        let report: Report = serde_json::from_slice(&bytes).with_context(|| path.display().to_string())?;
        if report.version != REPORT_VERSION {
            let (path, found) = (path.display(), report.version);
            return Err(options::usage(format!(
                "--from {path}: a report of version {found}, this program reads {REPORT_VERSION}"
            )));
        }
        return deliver(args, global, &report);
    }
    let plans = Plan::all(&args.plans)?;
    if args.list {
        return list(&plans, global);
    }
    let chosen = choose(&plans, &args.names)?;
    let folders = folders(args, &chosen)?;
    if args.dry_run {
        for plan in chosen {
            for command in reproduce::commands(plan, &folders)? {
                println!("{}", command.shown());
            }
        }
        return Ok(Outcome::Done);
    }
    let report = run(args, global, &chosen, &folders)?;
    deliver(args, global, &report)
}

fn list(plans: &[Plan], global: &Global) -> anyhow::Result<Outcome> {
    if global.json {
        let entry = |plan: &Plan| serde_json::json!({"name": plan.name, "title": plan.title, "source": plan.source, "data": plan.data});
        let entries: Vec<_> = plans.iter().map(entry).collect();
        output::json(&serde_json::json!({"version": output::JSON_VERSION, "reproductions": entries}))?;
    } else {
        let row = |plan: &Plan| vec![plan.name.clone(), plan.title.clone(), plan.data.join(" ")];
        println!("{}", output::table(&["name", "shows", "data"], plans.iter().map(row)));
    }
    Ok(Outcome::Done)
}

fn choose<'p>(plans: &'p [Plan], names: &[String]) -> anyhow::Result<Vec<&'p Plan>> {
    if names.iter().any(|name| name == "all") {
        return Ok(plans.iter().collect());
    }
    let find = |name: &String| {
        plans.iter().find(|plan| plan.name == *name).ok_or_else(|| {
            let nearest = plans.iter().min_by_key(|plan| strsim::damerau_levenshtein(&plan.name, name));
            let nearest = nearest.map_or("", |plan| plan.name.as_str());
            options::usage(format!("no reproduction is called {name:?}; nearest: {nearest:?} (see --list)"))
        })
    };
    names.iter().map(find).collect()
}

/// The variables every plan has: whole paths, as the commands run in a folder of their own.
fn folders(args: &Reproduce, chosen: &[&Plan]) -> anyhow::Result<Vec<(&'static str, String)>> {
    let shown = |path: PathBuf| path.display().to_string();
    let mut folders = vec![("plans", shown(whole(&args.plans)?)), ("work", shown(whole(&args.work)?))];
    let needed: Vec<&String> = chosen.iter().flat_map(|plan| &plan.data).collect();
    match &args.data {
        Some(data) => {
            let data = whole(data)?;
            if let Some(missing) = needed.iter().find(|set| !data.join(set).is_dir()) {
                return Err(options::usage(format!("--data {}: holds no folder {missing}", data.display())));
            }
            folders.push(("data", shown(data)));
        }
        None if needed.is_empty() => {}
        None => {
            let sets = needed.iter().map(|set| set.as_str()).collect::<std::collections::BTreeSet<_>>();
            let sets = sets.into_iter().collect::<Vec<_>>().join(", ");
            return Err(options::usage(format!(
                "needs evaluation data ({sets}): name its folder with --data or CENTO_DATA"
            )));
        }
    }
    Ok(folders)
}

fn whole(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| path.display().to_string())
}

fn run(
    args: &Reproduce,
    global: &Global,
    chosen: &[&Plan],
    folders: &[(&'static str, String)],
) -> anyhow::Result<Report> {
    let cache = if args.cold { Cache::Cold } else { Cache::Warm };
    let work = whole(&args.work)?;
    reproduce::prepare(&work, cache)?;
    let runner = Runner {
        binary: std::env::current_exe().context("this program's file")?,
        folder: work,
        threads: global.threads,
    };
    let start = Instant::now();
    let mut reproductions = Vec::new();
    for plan in chosen {
        let expected = Expected::read(&args.plans, &plan.name)?;
        let commands = reproduce::commands(plan, folders)?;
        let bar = Bar::new(global.quiet);
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
            bar.count(steps.len(), commands.len(), &plan.name);
        }
        bar.finish();
        let mut reproduction = reproduce::assemble(plan, &figures, &expected);
        if failure.is_none() {
            match reproduce::pictures(plan, folders) {
                Ok(pictures) => reproduction.pictures = pictures,
                Err(error) => failure = Some(format!("{error:#}")),
            }
        }
        (reproduction.steps, reproduction.failure) = (steps, failure);
        reproduction.seconds = begin.elapsed().as_secs_f64();
        if args.record && reproduction.failure.is_none() {
            record(plan, &reproduction, &args.plans)?;
        }
        if !global.quiet {
            let verdict = reproduction.verdict().map_or("done", Verdict::label);
            eprintln!("{}: {verdict}, {} commands, {:.0} s", plan.name, reproduction.steps.len(), reproduction.seconds);
        }
        reproductions.push(reproduction);
    }
    Ok(Report {
        version: REPORT_VERSION,
        cento: env!("CARGO_PKG_VERSION").to_owned(),
        machine: Machine::here(),
        cache,
        seconds: start.elapsed().as_secs_f64(),
        reproductions,
    })
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

fn deliver(args: &Reproduce, global: &Global, report: &Report) -> anyhow::Result<Outcome> {
    if let Some(path) = &args.html {
        std::fs::write(path, reproduce::html(report)).with_context(|| path.display().to_string())?;
    }
    if global.json {
        output::json(report)?;
    } else {
        print!("{}", reproduce::text(report));
    }
    Ok(if report.verdict() == Some(Verdict::Fail) { Outcome::Nothing } else { Outcome::Done })
}
