//! What each option of each command would be if it were not given, and where that comes from.

use std::collections::BTreeSet;

use clap::{Arg, Command};
use serde::Serialize;

use super::allowed::shown_value;
use super::file::Key;
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
        shown.extend(self.shown_commands());
        shown
    }

    /// The commands that read files, which are no options.
    fn shown_commands(&self) -> impl Iterator<Item = Shown> {
        let of_files = self.files.iter().flat_map(|file| file.values.keys());
        let refused = self.refused.iter().map(|refusal| &refusal.key);
        let keys: BTreeSet<&Key> = of_files.chain(refused).filter(|key| key.is_command()).collect();
        keys.into_iter().map(|key| {
            let said = self
                .files
                .iter()
                .rev()
                .filter_map(|file| Some((file.values.get(key)?.clone(), file.path.display().to_string())));
            self.of_said(key.to_string(), key.verb.as_deref(), &key.name, said, None)
        })
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
        let default = option.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
        let setting = verb.map_or_else(|| name.to_owned(), |verb| format!("{verb}.{name}"));
        self.of_said(setting, verb, name, environment.into_iter().chain(files), default)
    }

    /// A setting by what is said of it, the strongest first.
    fn of_said(
        &self,
        setting: String,
        verb: Option<&str>,
        name: &str,
        mut said: impl Iterator<Item = (String, String)>,
        default: Option<String>,
    ) -> Shown {
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
        Shown { setting, value, source, ignored }
    }
}
