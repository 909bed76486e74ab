//! `cento compact`: few segments instead of many, without what was deleted.

use cento_engine::{CompactOptions, CompactReport, Merge, OsFs};

use crate::args::{Compact, Global};
use crate::exit_code::Outcome;
use crate::output::{self, Bar, Beside};

pub(crate) fn execute(args: &Compact, global: &Global) -> anyhow::Result<Outcome> {
    let merge = if args.all { Merge::All } else { Merge::Policy };
    crate::interrupt::end_on_interrupt("the collection is as it was")?;
    let memory_bytes = args.memory.memory_bytes.map(|memory| memory.0);
    let options =
        CompactOptions { merge, graph_rows_min: args.graph_rows_min, memory_bytes, ..CompactOptions::default() };
    let report = run(options, global)?;
    if global.json {
        output::json(&report)?;
    } else if report.n_merged == 0 {
        println!("nothing to merge; generation {}", report.generation);
    } else {
        summary(&report);
    }
    Ok(Outcome::Done)
}

/// Compacts after a commit, if that is due. The commit is there whatever comes of it.
pub(crate) fn when_due(global: &Global) {
    match run(CompactOptions { merge: Merge::Due, ..CompactOptions::default() }, global) {
        Ok(report) if report.n_merged > 0 && !global.json => summary(&report),
        Ok(_) => {}
        Err(error) => eprintln!("the segments were not merged: {}", cento_engine::describe(error.as_ref())),
    }
}

fn run(options: CompactOptions, global: &Global) -> anyhow::Result<CompactReport> {
    let mut bar = Bar::new(global, Beside::Text);
    let report = cento_engine::compact(&global.collection, &options, &OsFs, &mut |progress| bar.ingest(progress));
    bar.finish();
    let report = report?;
    if let Some(remark) = report.remark.as_ref().filter(|_| !global.quiet) {
        eprintln!("{remark}");
    }
    Ok(report)
}

/// Shows the outcome of a compaction.
pub(crate) fn summary(report: &CompactReport) {
    println!(
        "{} of {} merged, {} now; {} copied, {} left behind",
        report.n_merged,
        output::counted(report.n_segments_before as u64, "segment"),
        report.n_segments,
        output::counted(report.n_rows_copied, "row"),
        output::counted(report.n_rows_dropped, "dead row"),
    );
    println!(
        "{}, before {}; generation {}",
        output::bytes(report.n_bytes),
        output::bytes(report.n_bytes_before),
        report.generation
    );
}
