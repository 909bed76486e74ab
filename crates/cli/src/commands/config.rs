//! `cento config` and `cento completions`: the settings, and the command line itself.

use anyhow::bail;

use crate::args::{Completions, Config};
use crate::exit_code::Outcome;
use crate::output;
use crate::settings::{self, Invocation, Shown};

#[derive(serde::Serialize)]
struct Answer {
    version: u32,
    settings: Vec<Shown>,
}

/// A settings file in which every setting is known; a wrong one ends the program before it comes to this.
#[derive(serde::Serialize)]
struct Checked {
    version: u32,
    file: String,
}

pub(crate) fn execute(args: &Config, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let file = invocation.file.as_ref();
    match args {
        Config::Show => {
            let settings = settings::show(file)?;
            if invocation.cli.global.json {
                output::json(&Answer { version: output::JSON_VERSION, settings })?;
            } else {
                let rows = settings
                    .into_iter()
                    .map(|shown| vec![shown.setting, shown.value.unwrap_or_else(|| "-".to_owned()), shown.source]);
                println!("{}", output::table(&["setting", "value", "from"], rows));
            }
        }
        Config::Check => match file {
            Some(file) if invocation.cli.global.json => {
                output::json(&Checked { version: output::JSON_VERSION, file: file.path.display().to_string() })?;
            }
            Some(file) => println!("{}: every setting is known", file.path.display()),
            None => bail!("no {} here, and none named by --config", settings::FILE),
        },
    }
    Ok(Outcome::Done)
}

pub(crate) fn completions(args: &Completions) -> anyhow::Result<Outcome> {
    let mut command = settings::command(None)?;
    clap_complete::generate(args.shell, &mut command, "cento", &mut std::io::stdout());
    Ok(Outcome::Done)
}
