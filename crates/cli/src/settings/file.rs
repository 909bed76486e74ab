//! A settings file: where it lies, whose word it is, what it says.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use cento_engine::ReadCommand;
use etcetera::BaseStrategy as _;

use super::commands;

/// Name of a settings file.
pub(crate) const FILE: &str = "cento.toml";

/// A longer file is none of settings.
const BYTES_MAX: u64 = 1 << 20;

/// Who says what a setting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The user's: named on the command line or in the environment, or in the user's own file.
    User,
    /// Of whoever made the current folder, in which its file was found.
    Folder,
}

/// The name of an option, and the command it is of. Those of all commands come first: those of one have the last word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) verb: Option<String>,
    pub(crate) name: String,
}

impl Key {
    /// The key of the command for an extension, which is no option.
    pub(super) fn of_command(extension: &str) -> Self {
        Self { verb: Some(commands::VERB.to_owned()), name: format!("{}.{extension}", commands::TABLE) }
    }

    /// True for the key of a command.
    pub(super) fn is_command(&self) -> bool {
        self.verb.as_deref() == Some(commands::VERB)
            && self.name.starts_with(commands::TABLE)
            && self.name.contains('.')
    }

    /// True if it speaks of this option of this command.
    pub(crate) fn is_of(&self, verb: Option<&str>, name: &str) -> bool {
        self.name == name && (self.verb.is_none() || self.verb.as_deref() == verb)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verb {
            Some(verb) => write!(f, "{verb}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The settings of a file, as plain values.
pub(crate) struct SettingsFile {
    pub(crate) path: PathBuf,
    pub(crate) author: Author,
    pub(crate) bytes: Vec<u8>,
    /// Those of options, and of commands one line each, to be shown and refused by.
    pub(crate) values: BTreeMap<Key, String>,
    /// Commands that read files, by the extensions of those.
    pub(super) commands: Vec<(String, ReadCommand)>,
}

/// The files in force, the weakest first: the one that `--config` or CENTO_CONFIG names, else `cento.toml` here and the
/// user's own.
pub(super) fn in_force(arguments: &[OsString]) -> anyhow::Result<Vec<SettingsFile>> {
    let after_flag =
        arguments.iter().position(|argument| argument == "--config").and_then(|at| arguments.get(at + 1)).cloned();
    let joined = arguments.iter().find_map(|argument| argument.to_str()?.strip_prefix("--config=").map(OsString::from));
    if let Some(path) = joined.or(after_flag).or_else(|| std::env::var_os("CENTO_CONFIG")) {
        return Ok(vec![SettingsFile::read(Path::new(&path), Author::User)?]);
    }
    let (here, own) = (Path::new(FILE), of_user().filter(|path| path.is_file()));
    let is_own = || own.as_ref().is_some_and(|own| own.canonicalize().ok() == here.canonicalize().ok());
    let here = (here.is_file() && !is_own()).then(|| SettingsFile::read(here, Author::Folder));
    let own = own.as_ref().map(|own| SettingsFile::read(own, Author::User));
    here.into_iter().chain(own).collect()
}

/// Path of the user's own settings file, whether or not it is there: `$XDG_CONFIG_HOME/cento/cento.toml`, else
/// `~/.config/cento/cento.toml`.
pub(crate) fn of_user() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("cento").join(FILE))
}

impl SettingsFile {
    pub(crate) fn read(path: &Path, author: Author) -> anyhow::Result<Self> {
        let bytes = cento_engine::read_bounded(path, BYTES_MAX).with_context(|| path.display().to_string())?;
        let text = std::str::from_utf8(&bytes).with_context(|| path.display().to_string())?;
        let table = text.parse::<toml::Table>().with_context(|| path.display().to_string())?;
        let (mut values, mut named) = (BTreeMap::new(), Vec::new());
        for (name, value) in table {
            match value {
                toml::Value::Table(within) => {
                    let verb = name;
                    for (name, value) in within {
                        if verb == commands::VERB && name == commands::TABLE {
                            named = commands::parse(path, value)?;
                            continue;
                        }
                        let value = plain(path, &name, value)?;
                        values.insert(Key { verb: Some(verb.clone()), name }, value);
                    }
                }
                value => {
                    let value = plain(path, &name, value)?;
                    values.insert(Key { verb: None, name }, value);
                }
            }
        }
        values.extend(named.iter().map(|(extension, command)| (Key::of_command(extension), commands::shown(command))));
        Ok(Self { path: path.to_owned(), author, bytes, values, commands: named })
    }

    /// Its value for an option of a command; what it says of this command alone goes before what it says of all.
    pub(crate) fn value(&self, verb: Option<&str>, name: &str) -> Option<&str> {
        let found = self.values.iter().rev().find(|(key, _)| key.is_of(verb, name));
        found.map(|(_, value)| value.as_str())
    }

    /// The folder it lies in, without links.
    pub(crate) fn folder(&self) -> std::io::Result<PathBuf> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new(".")).canonicalize()
    }
}

fn plain(path: &Path, key: &str, value: toml::Value) -> anyhow::Result<String> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(choice) => Ok(choice.to_string()),
        other => bail!(
            "{}: setting {key:?} is a {}; expected a string, a number or a boolean",
            path.display(),
            other.type_str()
        ),
    }
}
