//! `cento snapshot`: generations that stay.

use cento_engine::api::SnapshotList;
use cento_engine::{NamedGeneration, OsFs, UnreadSnapshot};

use crate::args::{Global, Snapshot};
use crate::exit_code::Outcome;
use crate::output;

pub(crate) fn execute(verb: &Snapshot, global: &Global) -> anyhow::Result<Outcome> {
    let folder = &global.collection;
    let mut answer = SnapshotList::new(Vec::new(), Vec::new());
    match verb {
        Snapshot::Create { name } => answer.snapshots.push(cento_engine::create_snapshot(folder, name, &OsFs)?),
        Snapshot::Remove { name } => {
            let removed = cento_engine::remove_snapshot(folder, name, &OsFs)?;
            answer.snapshots.extend(removed.generation);
            answer.remark = removed.remark;
        }
        Snapshot::List => {
            answer.snapshots = cento_engine::snapshots(folder)?;
            answer.unread = cento_engine::unread_snapshots(folder)?;
        }
    }
    if !global.quiet {
        for UnreadSnapshot { name, problem } in &answer.unread {
            eprintln!("snapshot {name} cannot be read: {problem}, `cento snapshot remove {name}` gives it up");
        }
        answer.remark.iter().for_each(|remark| eprintln!("{remark}"));
    }
    if global.json {
        output::json(&answer)?;
    } else {
        show(verb, &answer.snapshots);
    }
    Ok(if answer.unread.is_empty() { Outcome::Done } else { Outcome::Partial })
}

fn show(verb: &Snapshot, snapshots: &[NamedGeneration]) {
    let first = snapshots.first();
    match (verb, first) {
        (Snapshot::List, None) => println!("no snapshots"),
        (Snapshot::List, Some(_)) => {
            let row = |named: &NamedGeneration| {
                vec![named.name.clone(), named.generation.to_string(), named.n_segments.to_string()]
            };
            println!("{}", output::table(&["snapshot", "generation", "segments"], snapshots.iter().map(row)));
        }
        (Snapshot::Create { name }, Some(named)) => println!("generation {} kept as {name}", named.generation),
        (Snapshot::Remove { name }, Some(named)) => {
            println!("generation {} no longer kept as {name}", named.generation)
        }
        (Snapshot::Create { name } | Snapshot::Remove { name }, None) => {
            println!("what {name} kept is not known; it is removed");
        }
    }
}
