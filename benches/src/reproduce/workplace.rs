//! The folder in which a reproduction works: emptied before each run, except for what was embedded.

use std::path::Path;

use anyhow::{Context as _, bail};

use super::report::Cache;

/// Says that a folder is ours to empty.
const MARK: &str = "cento-reproduce";

/// The embedding cache of the commands, a folder in it: what a user embedded elsewhere must not shorten a cold run.
pub(crate) const CACHE: &str = "cache";

/// The settings file of the commands, which says nothing: what the user sets elsewhere must not change a figure.
pub(crate) const SETTINGS: &str = "cento.toml";

/// Makes the folder, or empties it; what was embedded stays, unless the run is to be cold.
pub(crate) fn prepare(work: &Path, cache: Cache) -> anyhow::Result<()> {
    let mark = work.join(MARK);
    if work.exists() && !mark.exists() && std::fs::read_dir(work)?.next().is_some() {
        bail!(
            "--work {}: holds files and was not made by `cento-bench reproduce`, which empties its folder; name another one",
            work.display()
        );
    }
    std::fs::create_dir_all(work).with_context(|| work.display().to_string())?;
    for entry in std::fs::read_dir(work)? {
        let path = entry?.path();
        if !(path.ends_with(CACHE) && cache == Cache::Warm) {
            remove(&path)?;
        }
    }
    let settings = work.join(SETTINGS);
    std::fs::write(&settings, "").with_context(|| settings.display().to_string())?;
    std::fs::write(&mark, "made and emptied by `cento-bench reproduce`\n").with_context(|| mark.display().to_string())
}

fn remove(path: &Path) -> anyhow::Result<()> {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    removed.with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_others_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("thesis.tex");
        std::fs::write(&file, "x").unwrap();
        assert!(prepare(folder.path(), Cache::Cold).is_err());
        assert!(file.exists());
    }

    #[test]
    fn a_warm_folder_keeps_what_was_embedded_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        prepare(&work, Cache::Warm).unwrap();
        let kept = work.join("cache/f00d-384/1/vectors");
        let make = || {
            for file in [&kept, &work.join("scifact/manifest.json")] {
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            }
            for file in [&kept, &work.join("scifact/manifest.json"), &work.join("a.trec")] {
                std::fs::write(file, "x").unwrap();
            }
        };
        make();
        prepare(&work, Cache::Warm).unwrap();
        assert!(kept.exists() && !work.join("scifact/manifest.json").exists() && !work.join("a.trec").exists());
        make();
        prepare(&work, Cache::Cold).unwrap();
        assert!(!kept.exists());
    }
}
