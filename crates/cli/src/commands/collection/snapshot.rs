//! `cento snapshot`: generations that stay.

use cento_engine::{NamedGeneration, OsFs};

use crate::args::{Global, Snapshot};
use crate::exit_code::Outcome;
use crate::output;

#[derive(serde::Serialize)]
struct Answer {
    version: u32,
    snapshots: Vec<NamedGeneration>,
}

pub(crate) fn execute(verb: &Snapshot, global: &Global) -> anyhow::Result<Outcome> {
    let folder = &global.collection;
    let (did, snapshots) = match verb {
        Snapshot::Create { name } => ("kept as", vec![cento_engine::create_snapshot(folder, name, &OsFs)?]),
        Snapshot::Remove { name } => ("no longer kept as", vec![cento_engine::remove_snapshot(folder, name, &OsFs)?]),
        Snapshot::List => ("", cento_engine::snapshots(folder)?),
    };
    if global.json {
        output::json(&Answer { version: output::JSON_VERSION, snapshots })?;
        return Ok(Outcome::Done);
    }
    match verb {
        Snapshot::List if snapshots.is_empty() => println!("no snapshots"),
        Snapshot::List => {
            let row = |named: &NamedGeneration| {
                vec![named.name.clone(), named.generation.to_string(), named.n_segments.to_string()]
            };
            println!("{}", output::table(&["snapshot", "generation", "segments"], snapshots.iter().map(row)));
        }
        _ => snapshots.iter().for_each(|named| println!("generation {} {did} {}", named.generation, named.name)),
    }
    Ok(Outcome::Done)
}
