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
        "adopted {}, {}: {} of {}, {}",
        output::counted(report.n_documents, "document"),
        output::counted(report.n_chunks, "chunk"),
        output::counted(report.n_adopted as u64, "segment"),
        output::counted(report.n_collections as u64, "collection"),
        output::bytes(report.n_bytes),
    );
    println!("{} now; generation {}", output::counted(report.n_segments as u64, "segment"), report.generation);
    Ok(Outcome::Done)
}
