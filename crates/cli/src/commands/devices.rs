//! `cento devices`: where an encoder can run here, and where it does unless told otherwise.

use cento_engine::{Adapter, Error, devices};
use serde_json::json;

use crate::args::Global;
use crate::exit_code::Outcome;
use crate::output;

pub(crate) fn execute(global: &Global) -> anyhow::Result<Outcome> {
    let devices = devices().map_err(Error::from)?;
    if global.json {
        output::json(&json!({
            "version": output::JSON_VERSION, "chosen": devices.chosen, "name": devices.name, "why": devices.why,
            "adapters": devices.adapters,
        }))?;
        return Ok(Outcome::Done);
    }
    println!("chosen: {}, {}: {}", devices.chosen, devices.name, devices.why);
    if !devices.adapters.is_empty() {
        let header = ["device", "adapter", "kind", "interface", "driver", "largest binding", "features"];
        println!("{}", output::table(&header, devices.adapters.iter().map(row)));
    }
    Ok(Outcome::Done)
}

fn row(adapter: &Adapter) -> Vec<String> {
    let features = [
        (adapter.has_f16, "f16"),
        (adapter.has_subgroups, "subgroups"),
        (adapter.has_cooperative_matrix, "cooperative matrix"),
    ];
    let names = features.iter().filter(|(there, _)| *there).map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    vec![
        format!("gpu:{}", adapter.number),
        adapter.name.clone(),
        adapter.kind.to_string(),
        adapter.interface.clone(),
        format!("{} {}", adapter.driver, adapter.driver_version),
        output::bytes(adapter.binding_bytes_max),
        match &adapter.too_small {
            None => names,
            Some(reason) => format!("too small: {reason}"),
        },
    ]
}
