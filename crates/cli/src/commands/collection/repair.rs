//! `cento repair`: go on with what is not damaged.

use cento_engine::OsFs;

use crate::args::{Global, Repair};
use crate::exit_code::Outcome;
use crate::options;
use crate::output::{self, Bar, Beside};

/// Lost documents shown before the rest is only counted.
const SHOWN_DOCUMENTS: usize = 20;

pub(crate) fn execute(args: &Repair, global: &Global) -> anyhow::Result<Outcome> {
    let options = options::repair(args, global)?;
    crate::interrupt::end_on_interrupt("the collection is as it was")?;
    let mut bar = Bar::new(global, Beside::Text);
    let report = cento_engine::repair(&global.collection, &options, &OsFs, &mut |progress| bar.ingest(progress));
    bar.finish();
    let report = report?;
    if !global.quiet {
        report.notes.iter().for_each(|note| eprintln!("{note}"));
    }
    if global.json {
        output::json(&report)?;
    } else {
        for segment in &report.segments {
            segment.problems.iter().for_each(|problem| println!("{problem}"));
            println!(
                "segment {}: {} with {} kept, {} lost; {} found in the embedding cache, {} embedded",
                segment.name,
                output::counted(segment.n_documents, "document"),
                output::counted(segment.n_rows, "row"),
                output::count(segment.n_lost),
                output::counted(segment.n_from_cache, "row"),
                output::counted(segment.n_tokens_embedded, "token"),
            );
        }
        for loss in &report.losses {
            loss.documents
                .iter()
                .take(SHOWN_DOCUMENTS)
                .for_each(|lost| println!("lost {} of {}", lost.id, lost.origin));
            println!("{}", loss.warning());
        }
        let done = if report.segments.is_empty() { "no segment is damaged" } else { "repaired" };
        println!("{done}; generation {}", report.generation);
    }
    Ok(if report.losses.is_empty() { Outcome::Done } else { Outcome::Nothing })
}
