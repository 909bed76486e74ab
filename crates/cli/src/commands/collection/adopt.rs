//! `cento adopt`: the segments of collections that were indexed elsewhere.

use cento_engine::OsFs;

use crate::args::{Adopt, Global};
use crate::exit_code::Outcome;
use crate::output::{self, Bar, Beside};

pub(crate) fn execute(args: &Adopt, global: &Global) -> anyhow::Result<Outcome> {
    crate::interrupt::end_on_interrupt("the collection is as it was")?;
    let mut bar = Bar::new(global, Beside::Text);
    let report = cento_engine::adopt(&global.collection, &args.folders, &OsFs, &mut |copied| bar.adoption(copied));
    bar.finish();
    let report = report.map_err(cento_engine::Error::from)?;
    if !global.quiet {
        report.notes.iter().for_each(|note| eprintln!("{note}"));
    }
    if global.json {
        output::json(&report)?;
        return Ok(Outcome::Done);
    }
    println!(
        "adopted {} documents, {} chunks: {} segments of {} collections, {}",
        output::count(report.n_documents),
        output::count(report.n_chunks),
        report.n_adopted,
        report.n_collections,
        output::bytes(report.n_bytes),
    );
    println!("{} segments now; generation {}", report.n_segments, report.generation);
    Ok(Outcome::Done)
}
