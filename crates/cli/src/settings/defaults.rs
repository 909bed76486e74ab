//! The values of a settings file as the defaults of the options they name.

use std::error::Error as _;

use anyhow::anyhow;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command};

use super::file::{Key, SettingsFile};

/// True where a setting may stand behind an option: what is deleted and what is trusted is said on the command line.
fn is_setting(verb: &str, long: &str) -> bool {
    let removes = match verb {
        "delete" => ["path", "filter", "dry-run"].contains(&long),
        "index" => long == "allow-empty",
        _ => false,
    };
    !(removes || verb == "trust" || ["help", "version"].contains(&long))
}

/// The environment variable of an option.
pub(super) fn variable(long: &str) -> String {
    format!("CENTO_{}", long.to_uppercase().replace('-', "_"))
}

/// Gives every option its environment variable.
pub(super) fn with_environment(command: Command) -> Command {
    let verb = command.get_name().to_owned();
    let command = command.mut_args(|argument| match argument.get_long() {
        Some(long) if is_setting(&verb, long) => {
            let variable = variable(long);
            argument.env(variable).hide_env(true)
        }
        _ => argument,
    });
    verbs(&command).into_iter().fold(command, |command, name| command.mut_subcommand(name, with_environment))
}

/// Variables that are no option: where pulled encoders are, a key, a choice of instructions, what tests read.
const NO_OPTIONS: [&str; 8] = [
    "CENTO_MODELS",
    "CENTO_ENDPOINT_KEY",
    "CENTO_RERANK_KEY",
    "CENTO_ENCODER_KEY",
    "CENTO_SHARD_KEY",
    "CENTO_SIMD",
    "CENTO_MODEL_DIR",
    "CENTO_CLIENTS",
];

/// Warns of variables of the environment that look like settings and are none, each with the nearest that is one.
pub(super) fn strange_variables(command: &Command, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut known: Vec<String> = NO_OPTIONS.map(str::to_owned).into();
    add_variables(command, &mut known);
    let strange = names.filter(|name| name.starts_with("CENTO_") && !known.contains(name));
    let warning = |name: String| {
        let nearest = known.iter().min_by_key(|known| (strsim::damerau_levenshtein(known, &name), known.len()));
        let hint = nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"));
        format!("{name} is set, and no option has this variable{hint}")
    };
    strange.map(warning).collect()
}

fn add_variables(command: &Command, known: &mut Vec<String>) {
    known.extend(options(command).map(|(_, long)| variable(long)));
    command.get_subcommands().for_each(|command| add_variables(command, known));
}

fn verbs(command: &Command) -> Vec<String> {
    command.get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// The options that a setting can stand behind.
pub(super) fn options(command: &Command) -> impl Iterator<Item = (&Arg, &str)> {
    let options = command.get_arguments().filter_map(|argument| Some((argument, argument.get_long()?)));
    options.filter(move |(_, long)| is_setting(command.get_name(), long))
}

/// Holds every setting of a file against the options it is for.
///
/// # Errors
/// For a setting that no command has, and for a value that its option does not take.
pub(super) fn check(command: &Command, file: &SettingsFile) -> anyhow::Result<()> {
    for (key, value) in file.values.iter().filter(|(key, _)| !key.is_command()) {
        let all = std::iter::once(command).chain(command.get_subcommands());
        let asked: Vec<&Command> = match &key.verb {
            Some(verb) => command.find_subcommand(verb).into_iter().collect(),
            None => all.collect(),
        };
        let found = asked.iter().flat_map(|command| options(command)).filter(|(_, long)| *long == key.name);
        let found: Vec<&Arg> = found.map(|(option, _)| option).collect();
        if found.is_empty() {
            return Err(anyhow!("{}: {}", file.path.display(), unknown(command, &asked, key)));
        }
        if let Some(reason) = found.iter().find_map(|option| reason(option, value)) {
            return Err(anyhow!("{}: {key} = {value:?}: {reason}", file.path.display()));
        }
    }
    Ok(())
}

/// Why an option does not take a value, if it does not.
fn reason(option: &Arg, value: &str) -> Option<String> {
    let mut probe = Arg::new("value").long("value").action(ArgAction::Append);
    probe = probe.value_parser(option.get_value_parser().clone());
    if let Some(delimiter) = option.get_value_delimiter() {
        probe = probe.value_delimiter(delimiter);
    }
    let command = Command::new("settings").no_binary_name(true).arg(probe);
    let error = command.try_get_matches_from([format!("--value={value}")]).err()?;
    Some(match (error.source(), error.get(ContextKind::ValidValue)) {
        (Some(source), _) => source.to_string(),
        (None, Some(ContextValue::Strings(valid))) if !valid.is_empty() => format!("expected {}", valid.join(", ")),
        (None, _) => "cannot be".to_owned(),
    })
}

/// Says that there is no such setting, and which is the nearest.
fn unknown(command: &Command, asked: &[&Command], key: &Key) -> String {
    let longs = asked.iter().flat_map(|command| options(command)).map(|(_, long)| long.to_owned());
    let (name, known): (&str, Vec<String>) = match &key.verb {
        Some(verb) if asked.is_empty() => (verb.as_str(), verbs(command)),
        Some(_) => (key.name.as_str(), longs.collect()),
        None => (key.name.as_str(), longs.chain(verbs(command)).collect()),
    };
    let nearest = known.iter().min_by_key(|known| strsim::damerau_levenshtein(known, name));
    let hint = nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest:?}?"));
    format!("unknown setting {:?}{hint}", key.to_string())
}

/// Makes every value of a file the default of the options it is for.
pub(super) fn apply(command: Command, file: &SettingsFile) -> Command {
    let options = file.values.iter().filter(|(key, _)| !key.is_command());
    options.fold(command, |command, (key, value)| {
        let asked = verbs(&command).into_iter().filter(|verb| key.verb.as_ref().is_none_or(|key| key == verb));
        let asked: Vec<String> = asked.collect();
        let command = if key.verb.is_none() { with_default(command, &key.name, value) } else { command };
        asked
            .into_iter()
            .fold(command, |command, verb| command.mut_subcommand(verb, |verb| with_default(verb, &key.name, value)))
    })
}

fn with_default(command: Command, name: &str, value: &str) -> Command {
    let found = options(&command).find(|(_, long)| *long == name).map(|(option, _)| option.get_id().clone());
    let value = value.to_owned();
    match found {
        Some(id) => command.mut_arg(id, |argument| argument.default_value(value).required(false)),
        None => command,
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain_command;
    use super::*;

    /// Options without a variable: what is deleted and what is trusted is said on the command line.
    const NONE: [&str; 7] =
        ["--help", "--version", "delete --path", "delete --filter", "delete --dry-run", "index --allow-empty", "trust"];

    /// Collects every option of a command and of those below it, each with its variable.
    fn collect(command: &Command, path: &str, options: &mut Vec<(String, Option<String>, Arg)>) {
        for option in command.get_arguments() {
            if let Some(long) = option.get_long() {
                let variable = option.get_env().map(|name| name.to_string_lossy().into_owned());
                options.push((format!("{path}--{long}"), variable, option.clone()));
            }
        }
        for verb in command.get_subcommands() {
            collect(verb, &format!("{path}{} ", verb.get_name()), options);
        }
    }

    #[test]
    fn every_option_has_a_variable() {
        let mut options = Vec::new();
        collect(&plain_command(), "", &mut options);
        assert!(options.len() > 150, "{}", options.len());
        for (name, has, option) in options {
            let long = option.get_long().unwrap_or_default();
            let is_none = NONE.iter().any(|none| name == *none || name.starts_with(&format!("{none} ")))
                || ["help", "version"].contains(&long);
            assert_eq!(has, (!is_none).then(|| variable(long)), "{name}");
            // A flag is off for 0: whoever sets a variable to that does not want it.
            if !is_none && matches!(option.get_action(), ArgAction::SetTrue) {
                assert_eq!((reason(&option, "0"), reason(&option, "yes")), (None, None), "{name}");
            }
        }
    }
}
