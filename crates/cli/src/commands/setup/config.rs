//! `cento config` and `cento completions`: the settings, and the command line itself.

use anyhow::bail;

use crate::args::{Completions, Config};
use crate::exit_code::Outcome;
use crate::settings::show::{Ignored, Shown};
use crate::settings::{FILE, Invocation, Settings};
use crate::{options, output};

#[derive(serde::Serialize)]
struct Answer {
    version: u32,
    settings: Vec<Shown>,
}

/// Settings files in which every setting is known, has a value that can be, and may be set; others end in an error.
#[derive(serde::Serialize)]
struct Checked {
    version: u32,
    files: Vec<String>,
}

pub(crate) fn execute(args: &Config, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let (settings, json) = (&invocation.settings, invocation.cli.global.json);
    match args {
        Config::Show => show(settings.show(), json)?,
        Config::Check => check(settings, json)?,
    }
    Ok(Outcome::Done)
}

fn show(settings: Vec<Shown>, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&Answer { version: output::JSON_VERSION, settings });
    }
    let ignored = |Ignored { value, source, why }: Ignored| format!("{source}: {value:?} ({why})");
    let rows = settings.into_iter().map(|Shown { setting, value, source, ignored: others }| {
        let others: Vec<String> = others.into_iter().map(ignored).collect();
        vec![setting, value.unwrap_or_else(|| "-".to_owned()), source, others.join(", ")]
    });
    println!("{}", output::table(&["setting", "value", "from", "ignored"], rows));
    Ok(())
}

fn check(settings: &Settings, json: bool) -> anyhow::Result<()> {
    settings.refuse().map_err(|error| options::usage(error.to_string()))?;
    let files: Vec<String> = settings.files.iter().map(|file| file.path.display().to_string()).collect();
    if files.is_empty() {
        bail!("no {FILE} here, none of your own, and none named by --config");
    }
    if json {
        return output::json(&Checked { version: output::JSON_VERSION, files });
    }
    files.iter().for_each(|file| println!("{file}: every setting is known and can be"));
    Ok(())
}

pub(crate) fn completions(args: &Completions) -> anyhow::Result<Outcome> {
    let mut command = Settings::default().command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "cento", &mut script); // panics where it cannot write
    print!("{}", String::from_utf8_lossy(&script));
    Ok(Outcome::Done)
}
