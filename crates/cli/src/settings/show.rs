//! What each option of each command would be if it were not given, and where that comes from.

use clap::{Arg, Command};
use serde::Serialize;

use super::allowed::shown_value;
use super::{Settings, defaults, plain_command};
use crate::settings::FILE;

/// A setting, its value and where it comes from.
#[derive(Serialize)]
pub(crate) struct Shown {
    pub(crate) setting: String,
    pub(crate) value: Option<String>,
    pub(crate) source: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored: Vec<Ignored>,
}

/// A value that is not in force.
#[derive(Serialize)]
pub(crate) struct Ignored {
    pub(crate) value: String,
    pub(crate) source: String,
    /// `overruled` by a stronger source, or `refused`.
    pub(crate) why: &'static str,
}

impl Settings {
    /// Every setting that can be made.
    pub(crate) fn show(&self) -> Vec<Shown> {
        let command = plain_command();
        let of = |verb: &Command, name: Option<&str>| {
            defaults::options(verb).map(|(option, long)| self.shown(option, name, long)).collect::<Vec<_>>()
        };
        let mut shown = of(&command, None);
        shown.extend(command.get_subcommands().flat_map(|verb| of(verb, Some(verb.get_name()))));
        shown
    }

    fn shown(&self, option: &Arg, verb: Option<&str>, name: &str) -> Shown {
        let variable = option.get_env().unwrap_or_default();
        let environment = std::env::var_os(variable)
            .map(|value| (value.to_string_lossy().into_owned(), format!("environment {}", variable.to_string_lossy())));
        let files = self
            .files
            .iter()
            .rev()
            .filter_map(|file| Some((file.value(verb, name)?.to_owned(), file.path.display().to_string())));
        let mut said = environment.into_iter().chain(files);
        let default = option.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
        let (value, source) = match said.next() {
            Some((value, source)) => (Some(value), source),
            None => (default, "default".to_owned()),
        };
        let mut ignored: Vec<Ignored> = said
            .map(|(value, source)| Ignored { value: shown_value(&value).to_owned(), source, why: "overruled" })
            .collect();
        let refused = self.refused.iter().filter(|refusal| refusal.key.is_of(verb, name));
        ignored.extend(refused.map(|refusal| Ignored {
            value: refusal.shown_value().to_owned(),
            source: FILE.to_owned(),
            why: "refused",
        }));
        let value = value.map(|value| shown_value(&value).to_owned());
        Shown { setting: verb.map_or_else(|| name.to_owned(), |verb| format!("{verb}.{name}")), value, source, ignored }
    }
}
