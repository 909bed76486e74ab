//! `cento cache`: what was embedded and is kept.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cento_engine::{CachePrune, CachedModel};

use crate::args::{Cache, CacheVerb, Global};
use crate::exit_code::Outcome;
use crate::options;
use crate::output;

/// Digits of a fingerprint that are shown; `--model` takes as many or fewer.
const FINGERPRINT_DIGITS: usize = 12;

pub(crate) fn execute(args: &Cache, global: &Global) -> anyhow::Result<Outcome> {
    let options = options::cache(&args.place)?;
    match &args.verb {
        CacheVerb::Status => {
            let status = cento_engine::cache_status(&options)?;
            if global.json {
                output::json(&status)?;
            } else {
                let (n_bytes, max_bytes) = (output::bytes(status.n_bytes), output::bytes(status.max_bytes));
                println!("{}: {n_bytes} of at most {max_bytes}", status.folder.display());
                if !status.models.is_empty() {
                    let header = [
                        "model",
                        "fingerprint",
                        "dimensions",
                        "computed on",
                        "embeddings",
                        "segments",
                        "size",
                        "last use",
                    ];
                    println!("{}", output::table(&header, status.models.iter().map(row)));
                }
            }
        }
        CacheVerb::Prune { max_bytes, model, all, dry_run } => {
            let request = CachePrune {
                max_bytes: max_bytes.map(|bytes| bytes.0),
                model: model.clone(),
                all: *all,
                dry_run: *dry_run,
            };
            let pruned = cento_engine::prune_cache(&options, &request)?;
            if global.json {
                output::json(&pruned)?;
            } else {
                let verb = if pruned.dry_run { "would remove" } else { "removed" };
                let count = output::count;
                println!(
                    "{verb} {} used longest ago, {} damaged, {} kept twice",
                    output::counted(pruned.n_removed, "embedding"),
                    count(pruned.n_damaged),
                    count(pruned.n_twice)
                );
                println!("{}, before {}", output::bytes(pruned.n_bytes_after), output::bytes(pruned.n_bytes_before));
            }
            if pruned.n_busy > 0 && !global.quiet {
                let segments = output::counted(pruned.n_busy, "segment");
                eprintln!("left alone, because another process writes there: {segments}");
            }
        }
    }
    Ok(Outcome::Done)
}

fn row(model: &CachedModel) -> Vec<String> {
    let last_use = UNIX_EPOCH + Duration::from_secs(model.last_use_seconds);
    let since = SystemTime::now().duration_since(last_use).unwrap_or_default();
    vec![
        model.model.clone(),
        model.fingerprint.chars().take(FINGERPRINT_DIGITS).collect(),
        model.dimensions.to_string(),
        if model.arithmetic.is_empty() { "unknown, not used".to_owned() } else { model.arithmetic.clone() },
        output::count(model.n_embeddings),
        model.n_segments.to_string(),
        output::bytes(model.n_bytes),
        if model.n_segments > 0 { ago(since.as_secs()) } else { "never".to_owned() },
    ]
}

/// A time gone by, in its largest unit.
fn ago(seconds: u64) -> String {
    let units = [("day", 86_400), ("hour", 3600), ("minute", 60)];
    match units.into_iter().find(|(_, unit_seconds)| seconds >= *unit_seconds) {
        Some((unit, unit_seconds)) => {
            format!("{} ago", output::counted(seconds / unit_seconds, unit))
        }
        None => "just now".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_their_largest_unit() {
        assert_eq!(
            [0, 59, 60, 7199, 86_400 * 3].map(ago),
            ["just now", "just now", "1 minute ago", "1 hour ago", "3 days ago"]
        );
    }
}
