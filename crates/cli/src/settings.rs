//! Where a setting comes from: command line, then environment (`CENTO_…`), then `cento.toml`, then the default.
//!
//! The file's values become the defaults of the options they name, so that there is one parser for all four. A key at the
//! top of the file holds for every command that has such an option, a key in a table named like a command for that one:
//!
//! ```toml
//! collection = "/data/handbook"
//! [context]
//! budget = 4000
//! ```

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{Command, CommandFactory, FromArgMatches};

use crate::args::Cli;
use crate::exit_code;

/// Name of the settings file.
pub(crate) const FILE: &str = "cento.toml";

/// A parsed command line.
pub(crate) struct Invocation {
    pub(crate) cli: Cli,
    /// The settings file in force.
    pub(crate) file: Option<SettingsFile>,
    /// Whether the command line itself names the collection.
    pub(crate) names_collection: bool,
}

/// Why no command runs: help was asked for, or the command line or the settings file cannot be used.
pub(crate) enum Stop {
    Clap(clap::Error),
    File(anyhow::Error),
}

impl Stop {
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Clap(error) => {
                let _ = error.print(); // nothing is left to tell if the terminal is gone
                ExitCode::from(if error.use_stderr() { exit_code::USAGE } else { exit_code::OK })
            }
            Self::File(error) => {
                eprintln!("error: {error:#}");
                ExitCode::from(exit_code::USAGE)
            }
        }
    }
}

/// Parses the command line with everything that stands behind it.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Invocation, Stop> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let file = SettingsFile::find(&arguments).map_err(Stop::File)?;
    let command = command(file.as_ref()).map_err(Stop::File)?;
    let matches = command.try_get_matches_from(arguments).map_err(Stop::Clap)?;
    let cli = Cli::from_arg_matches(&matches).map_err(Stop::Clap)?;
    let names_collection = matches.value_source("collection") == Some(ValueSource::CommandLine);
    Ok(Invocation { cli, file, names_collection })
}

/// The command line with the environment and the settings file built in.
pub(crate) fn command(file: Option<&SettingsFile>) -> anyhow::Result<Command> {
    let mut command = with_environment(Cli::command());
    if let Some(file) = file {
        for (key, value) in &file.values {
            command = apply(command, key, value, &file.path)?;
        }
    }
    Ok(command)
}

/// Whether a setting may stand behind an option: what is deleted is said on the command line.
fn is_setting(verb: &str, long: &str) -> bool {
    let deletes = match verb {
        "delete" => ["path", "filter", "dry-run"].contains(&long),
        "index" => long == "allow-empty",
        _ => false,
    };
    !(deletes || ["help", "version"].contains(&long))
}

/// Gives every option its environment variable.
fn with_environment(command: Command) -> Command {
    let verb = command.get_name().to_owned();
    let command = command.mut_args(|argument| match argument.get_long() {
        Some(long) if is_setting(&verb, long) => {
            let variable = format!("CENTO_{}", long.to_uppercase().replace('-', "_"));
            argument.env(variable).hide_env(true)
        }
        _ => argument,
    });
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_environment))
}

/// Makes one value of the file the default of the options it names.
fn apply(command: Command, key: &[String], value: &str, path: &Path) -> anyhow::Result<Command> {
    let unknown = |name: &str, known: Vec<String>| {
        let nearest =
            known.iter().min_by_key(|known| strsim::damerau_levenshtein(known, name)).cloned().unwrap_or_default();
        anyhow::anyhow!("{}: unknown setting {:?}; did you mean {nearest:?}?", path.display(), key.join("."))
    };
    let commands: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    match key {
        [name] => {
            let mut known = longs(&command);
            known.extend(command.get_subcommands().flat_map(longs));
            if !known.contains(name) {
                known.extend(commands);
                return Err(unknown(name, known));
            }
            let command = with_default(command, name, value);
            Ok(commands
                .into_iter()
                .fold(command, |command, verb| command.mut_subcommand(verb, |verb| with_default(verb, name, value))))
        }
        [verb, name] if commands.contains(verb) => {
            let known = command.find_subcommand(verb).map(longs).unwrap_or_default();
            match known.contains(name) {
                true => Ok(command.mut_subcommand(verb, |verb| with_default(verb, name, value))),
                false => Err(unknown(name, known)),
            }
        }
        other => Err(unknown(other.first().map_or("", String::as_str), commands)),
    }
}

/// The options that a setting can stand behind.
fn longs(command: &Command) -> Vec<String> {
    command
        .get_arguments()
        .filter_map(|argument| argument.get_long())
        .filter(|long| is_setting(command.get_name(), long))
        .map(str::to_owned)
        .collect()
}

fn with_default(command: Command, name: &str, value: &str) -> Command {
    let Some(id) = command
        .get_arguments()
        .filter(|_| is_setting(command.get_name(), name))
        .find(|argument| argument.get_long() == Some(name))
        .map(|argument| argument.get_id().clone())
    else {
        return command;
    };
    let value = value.to_owned();
    command.mut_arg(id, |argument| argument.default_value(value).required(false))
}

/// The settings of a `cento.toml`, as key paths and plain values.
pub(crate) struct SettingsFile {
    pub(crate) path: PathBuf,
    values: BTreeMap<Vec<String>, String>,
}

impl SettingsFile {
    /// The file named by `--config` or CENTO_CONFIG, else `cento.toml` here, if there is one.
    fn find(arguments: &[OsString]) -> anyhow::Result<Option<Self>> {
        let after_flag =
            arguments.iter().position(|argument| argument == "--config").and_then(|at| arguments.get(at + 1)).cloned();
        let joined =
            arguments.iter().find_map(|argument| argument.to_str()?.strip_prefix("--config=").map(OsString::from));
        let named = joined.or(after_flag).or_else(|| std::env::var_os("CENTO_CONFIG"));
        match named {
            Some(path) => Self::read(Path::new(&path)).map(Some),
            None if Path::new(FILE).is_file() => Self::read(Path::new(FILE)).map(Some),
            None => Ok(None),
        }
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        let table: toml::Table = text.parse().map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        let mut values = BTreeMap::new();
        for (key, value) in table {
            match value {
                toml::Value::Table(within) => {
                    for (name, value) in within {
                        values.insert(vec![key.clone(), name.clone()], plain(path, &name, value)?);
                    }
                }
                value => {
                    values.insert(vec![key.clone()], plain(path, &key, value)?);
                }
            }
        }
        Ok(Self { path: path.to_owned(), values })
    }
}

fn plain(path: &Path, key: &str, value: toml::Value) -> anyhow::Result<String> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(choice) => Ok(choice.to_string()),
        other => anyhow::bail!(
            "{}: setting {key:?} is a {}; expected a string, a number or a boolean",
            path.display(),
            other.type_str()
        ),
    }
}

/// A setting, its value and where it comes from.
#[derive(serde::Serialize)]
pub(crate) struct Shown {
    pub(crate) setting: String,
    pub(crate) value: Option<String>,
    pub(crate) source: String,
}

/// What each option of each command would be if it were not given.
pub(crate) fn show(file: Option<&SettingsFile>) -> anyhow::Result<Vec<Shown>> {
    let command = command(file)?;
    let mut shown: Vec<Shown> = longs(&command).into_iter().map(|name| shown(&command, None, &name, file)).collect();
    for verb in command.get_subcommands() {
        shown.extend(longs(verb).into_iter().map(|name| self::shown(verb, Some(verb.get_name()), &name, file)));
    }
    Ok(shown)
}

fn shown(command: &Command, verb: Option<&str>, name: &str, file: Option<&SettingsFile>) -> Shown {
    let argument = command
        .get_arguments()
        .find(|argument| argument.get_long() == Some(name))
        .expect("its name came from the command");
    let from_environment = argument.get_env().and_then(std::env::var_os);
    let in_file = file.filter(|file| {
        let of_verb = verb.is_some_and(|verb| file.values.contains_key(&vec![verb.to_owned(), name.to_owned()]));
        of_verb || file.values.contains_key(&vec![name.to_owned()])
    });
    let default = argument.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
    let (value, source) = match (from_environment, in_file) {
        (Some(value), _) => (
            Some(value.to_string_lossy().into_owned()),
            format!("environment {}", argument.get_env().unwrap_or_default().to_string_lossy()),
        ),
        (None, Some(file)) => (default, file.path.display().to_string()),
        (None, None) => (default, "default".to_owned()),
    };
    Shown { setting: verb.map_or_else(|| name.to_owned(), |verb| format!("{verb}.{name}")), value, source }
}
