//! `cento trust`: the folders whose settings file is obeyed in full.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use crate::args::{Global, Trust};
use crate::exit_code::Outcome;
use crate::settings::trust::{self, State, Trusted};
use crate::settings::{FILE, Proposal};
use crate::{options, output};

/// The trusted folders.
#[derive(serde::Serialize)]
struct Answer {
    version: u32,
    trusted: Vec<Trusted>,
}

/// The outcome for one.
#[derive(serde::Serialize)]
struct Done {
    version: u32,
    folder: PathBuf,
    state: &'static str,
}

pub(crate) fn execute(args: &Trust, global: &Global) -> anyhow::Result<Outcome> {
    match &args.folder {
        None => list(global),
        Some(folder) if args.remove => remove(folder, global),
        Some(folder) => add(folder, args, global),
    }
}

fn list(global: &Global) -> anyhow::Result<Outcome> {
    let trusted = trust::list()?;
    if global.json {
        output::json(&Answer { version: output::JSON_VERSION, trusted })?;
    } else if trusted.is_empty() {
        println!("no folder is trusted");
    } else {
        let rows = trusted.into_iter().map(|Trusted { folder, state }| {
            let state = match state {
                State::Trusted => "trusted",
                State::Changed => "changed since: refused until it is trusted again",
                State::Gone => "gone, or no settings file any more",
            };
            vec![folder.display().to_string(), state.to_owned()]
        });
        println!("{}", output::table(&["folder", FILE], rows));
    }
    Ok(Outcome::Done)
}

fn remove(folder: &Path, global: &Global) -> anyhow::Result<Outcome> {
    match trust::remove(folder)? {
        Some(folder) => done(folder, "removed", "is trusted no longer", global),
        None => {
            eprintln!("{}: was not trusted", folder.display());
            Ok(Outcome::Nothing)
        }
    }
}

fn add(folder: &Path, args: &Trust, global: &Global) -> anyhow::Result<Outcome> {
    let proposal = Proposal::read(&folder.join(FILE)).map_err(|error| options::usage(format!("{error:#}")))?;
    if !args.yes && !is_confirmed(&proposal)? {
        eprintln!("not trusted");
        return Ok(Outcome::Nothing);
    }
    done(trust::add(&proposal.file)?, "trusted", "is trusted as its file is now", global)
}

/// Shows what the file would set, and asks whether it may.
fn is_confirmed(proposal: &Proposal) -> anyhow::Result<bool> {
    eprintln!("{} would set, for commands run in its folder:", proposal.file.path.display());
    proposal.lines().for_each(|line| eprintln!("  {line}"));
    if !io::stdin().is_terminal() {
        return Err(options::usage("nobody is here to be asked; read what it would set, and trust it with --yes"));
    }
    eprintln!("Trust it as it is now? [y/N]");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

fn done(folder: PathBuf, state: &'static str, said: &str, global: &Global) -> anyhow::Result<Outcome> {
    if global.json {
        output::json(&Done { version: output::JSON_VERSION, folder, state })?;
    } else {
        println!("{} {said}", folder.display());
    }
    Ok(Outcome::Done)
}
