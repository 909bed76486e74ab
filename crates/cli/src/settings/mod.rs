//! Where a setting comes from: command line, then environment (`CENTO_…`), then the user's own settings file, then
//! `cento.toml` in the current folder, then the default. A file that is named (`--config`) stands for both files.
//!
//! The values of the files become the defaults of the options they name, so there is one parser for all. A key at the
//! top of a file holds for every command that has such an option, a key in a table named like a command for that one:
//!
//! ```toml
//! collection = "/data/handbook"
//! [context]
//! budget = 4000
//! ```
//!
//! The current folder may be a stranger's. What its file may set is listed in `allowed`; the rest wants `trust`.

mod commands;
mod file;
mod defaults;
mod allowed;
pub(crate) mod trust;
pub(crate) mod show;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use cento_engine::{Commands, EncoderAccess, EncoderKey, Reach, Root};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches};

use self::allowed::Refusal;
use self::file::Key;
pub(crate) use self::file::{Author, FILE, SettingsFile, of_user};
use crate::args::{self, Cli};
use crate::{exit_code, usage};

/// A parsed command line.
pub(crate) struct Invocation {
    pub(crate) cli: Cli,
    pub(crate) settings: Settings,
    /// The command line itself names the collection.
    pub(crate) names_collection: bool,
    /// The command line itself names the endpoint.
    pub(crate) names_endpoint: bool,
    /// Who named the endpoint, if one is named.
    pub(crate) endpoint_author: Author,
    /// Who named the reranker, if one is named.
    pub(crate) rerank_author: Author,
    /// The encoder, if one is named.
    pub(crate) named_model: Option<String>,
}

/// Why no command runs: help was asked for, or the command line or a settings file cannot be used.
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
    let settings = Settings::find(&arguments).map_err(Stop::File)?;
    let mut command = settings.command();
    let matches = command.try_get_matches_from_mut(&arguments);
    let matches = matches.map_err(|error| Stop::Clap(usage::meant(error, &arguments, &command)))?;
    let mut cli = Cli::from_arg_matches(&matches).map_err(Stop::Clap)?;
    cli.global.access = access(settings.author_of("model", &matches)).map_err(Stop::File)?;
    refuse_idle(&matches).map_err(Stop::File)?;
    // These look at settings and obey none that could do harm.
    let looks =
        matches!(cli.command, args::Command::Config(_) | args::Command::Trust(_) | args::Command::Completions(_));
    if !looks {
        settings.refuse().map_err(Stop::File)?;
    }
    if !cli.global.quiet {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let warnings = defaults::strange_variables(&plain_command(), names);
        warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    }
    let names_collection = matches.value_source("collection") == Some(ValueSource::CommandLine);
    if names_collection {
        cli.global.named = Some(cli.global.collection.clone());
        cli.global.collection = followed(cli.global.collection);
    }
    let endpoint_author = settings.author_of("endpoint", &matches);
    let rerank_author = settings.author_of("rerank", &matches);
    let options = matches.subcommand().map(|(_, options)| options);
    let names_endpoint = options.is_some_and(|options| {
        options.try_contains_id("endpoint").is_ok_and(|there| there)
            && options.value_source("endpoint") == Some(ValueSource::CommandLine)
    });
    let named_model = options.and_then(|options| options.try_get_one::<String>("model").ok()?).cloned();
    Ok(Invocation { cli, settings, names_collection, names_endpoint, endpoint_author, rerank_author, named_model })
}

/// The folder that the user's own link leads to; a folder as it is. Nobody can plant what a user names.
fn followed(named: PathBuf) -> PathBuf {
    let plain: PathBuf = named.components().collect(); // a slash at the end would hide a link
    if plain.is_symlink() { plain.canonicalize().unwrap_or(named) } else { named }
}

/// The way encoders at endpoints are asked. The key comes from the environment alone; it is not meant for a host that
/// the file of a folder names, and such a host must be public.
fn access(author: Author) -> anyhow::Result<EncoderAccess> {
    let name = EncoderKey::NAME;
    let key = std::env::var_os(name).map(OsString::into_string).transpose();
    let key = key.map_err(|_| anyhow::anyhow!("{name}: is not UTF-8"))?;
    let reach = match author {
        Author::User => Reach::Any,
        Author::Folder => Reach::Public,
    };
    Ok(EncoderAccess { key: key.as_deref().and_then(EncoderKey::parse), reach, ..EncoderAccess::default() })
}

/// An error for options of contexts on the command line of a run that makes none; settings may speak of contexts that
/// other runs make.
fn refuse_idle(matches: &ArgMatches) -> anyhow::Result<()> {
    let Some((verb @ "run", options)) = matches.subcommand() else { return Ok(()) };
    let is_said = |name: &&&str| options.value_source(name) == Some(ValueSource::CommandLine);
    match args::OF_CONTEXTS.iter().find(is_said) {
        Some(name) if options.value_source("contexts").is_none() => {
            anyhow::bail!("--{name}: {verb} makes no contexts; say where they go with --contexts FILE")
        }
        _ => Ok(()),
    }
}

/// The settings files in force.
#[derive(Default)]
pub(crate) struct Settings {
    /// The weakest first.
    pub(crate) files: Vec<SettingsFile>,
    /// Settings that the file of the current folder may not make, and that were taken out of it.
    refused: Vec<Refusal>,
}

impl Settings {
    fn find(arguments: &[OsString]) -> anyhow::Result<Self> {
        let command = plain_command();
        let mut settings = Self::default();
        for mut file in file::in_force(arguments)? {
            defaults::check(&command, &file)?;
            if file.author == Author::Folder {
                settings.refused = allowed::take_refused(&mut file);
            }
            settings.files.push(file);
        }
        Ok(settings)
    }

    /// The command line with the environment and the settings files built in.
    pub(crate) fn command(&self) -> Command {
        self.files.iter().fold(plain_command(), defaults::apply)
    }

    /// An error if the file of the current folder says what it may not.
    pub(crate) fn refuse(&self) -> anyhow::Result<()> {
        let Some((first, others)) = self.refused.split_first() else { return Ok(()) };
        let others: Vec<String> = others.iter().map(|refusal| refusal.key.to_string()).collect();
        let others = if others.is_empty() { String::new() } else { format!(" (nor {})", others.join(", ")) };
        let name = &first.key.name;
        let say = match first.key.is_command() {
            true => String::new(), // it stands in files alone
            false => format!("say it with --{name} or {}, ", defaults::variable(name)),
        };
        let own = of_user().map_or_else(|| "your own settings file".to_owned(), |path| path.display().to_string());
        anyhow::bail!(
            "{FILE}: {} = {:?}: {}{others}; {say}put it into {own}, or trust this file with `cento trust .`",
            first.key,
            first.shown_value(),
            first.reason,
        )
    }

    /// The commands that read files of a run over some roots; of two for one extension that of the stronger file.
    ///
    /// # Errors
    /// A file that lies in one of the roots names one: what is read does not say by which program.
    pub(crate) fn commands(&self, roots: &[Root]) -> anyhow::Result<Commands> {
        let mut commands = Vec::new();
        for file in &self.files {
            let Some((extension, _)) = file.commands.first() else { continue };
            // Where it is named, and where a link at that name leads.
            let named = file.folder().with_context(|| file.path.display().to_string())?;
            let places = [Some(named), file.path.canonicalize().ok()];
            let holds = |root: &&Root| {
                let Ok(root) = root.path.canonicalize() else { return false };
                places.iter().flatten().any(|place| place.starts_with(&root))
            };
            if let Some(root) = roots.iter().find(holds) {
                return Err(usage::usage(format!(
                    "{}: {}: a settings file in {}, which is read, may not name a command, trusted or not: move it \
                     elsewhere, and name it with --config",
                    file.path.display(),
                    Key::of_command(extension),
                    root.path.display()
                )));
            }
            commands.extend(file.commands.iter().cloned());
        }
        Commands::new(commands).map_err(|reason| anyhow::anyhow!(reason))
    }

    /// Who gave an option its value on this command line.
    fn author_of(&self, name: &str, matches: &ArgMatches) -> Author {
        let Some((verb, options)) = matches.subcommand() else { return Author::User };
        let by_default = options.try_contains_id(name).is_ok_and(|there| there)
            && options.value_source(name) == Some(ValueSource::DefaultValue);
        let file = self.files.iter().rev().find(|file| by_default && file.value(Some(verb), name).is_some());
        file.map_or(Author::User, |file| file.author)
    }
}

/// A settings file that is to be trusted.
pub(crate) struct Proposal {
    pub(crate) file: SettingsFile,
    refused: Vec<Refusal>,
}

impl Proposal {
    /// Reads a file and checks that it could be obeyed.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let file = SettingsFile::read(path, Author::Folder)?;
        defaults::check(&plain_command(), &file)?;
        let refused = allowed::refused(&file);
        Ok(Self { file, refused })
    }

    /// The settings it would make, a line a setting, with a mark where that needs trust.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.file.values.iter().map(|(key, value)| {
            let mark = if self.refused.iter().any(|refusal| refusal.key == *key) { "  (needs trust)" } else { "" };
            format!("{key} = {:?}{mark}", allowed::shown_value(value))
        })
    }
}

/// The command line with the environment built in.
fn plain_command() -> Command {
    defaults::with_environment(args::command())
}
