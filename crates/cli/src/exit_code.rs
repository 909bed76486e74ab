//! What the process ends with, and what it says when something went wrong.

use std::io;
use std::process::ExitCode;

use cento_engine::model::Error as ModelError;
use cento_engine::{CollectionError, Error, FIELDS_NAMED_MAX, FilterError};

pub(crate) const OK: u8 = 0;
/// Nothing was found, or a check failed.
pub(crate) const NOTHING: u8 = 1;
/// The command line, the settings file or a policy cannot be used.
pub(crate) const USAGE: u8 = 2;
/// A file of the corpus or of the collection.
pub(crate) const DATA: u8 = 3;
/// The encoder or the device it should run on, or a language model elsewhere.
pub(crate) const MODEL: u8 = 4;
/// It was done but for what could not be read, whoever is to blame, the system or the file; what was there of it stays.
pub(crate) const PARTIAL: u8 = 5;
/// Ctrl-C; the collection is as it was committed last.
pub(crate) const INTERRUPTED: u8 = 130;

/// The end of a command that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// Some files, folders or documents could not be read; they have been named, all else is done.
    Partial,
    /// There is no result, or a check did not pass; what there is to say has been said.
    Nothing,
}

/// Turns the end of a command into an exit code, with the error on stderr.
pub(crate) fn report(result: anyhow::Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Done) => ExitCode::from(OK),
        Ok(Outcome::Partial) => ExitCode::from(PARTIAL),
        Ok(Outcome::Nothing) => ExitCode::from(NOTHING),
        Err(error) if is_broken_pipe(&error) => ExitCode::from(OK), // the reader of our output has seen enough
        Err(error) => {
            eprintln!("error: {}{}", cento_engine::describe(error.as_ref()), way_out(&error));
            ExitCode::from(code(&error))
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe))
}

/// The way out that the error's own words leave unsaid: the command or flag that helps.
pub(crate) fn way_out(error: &anyhow::Error) -> String {
    let is_full = |error: &io::Error| matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    if error.chain().any(|cause| cause.downcast_ref().is_some_and(is_full)) {
        return "; make room there and run the command again: what was there before is whole".to_owned();
    }
    if let Some(error) = error.downcast_ref() {
        return collection_way_out(error);
    }
    if let Some(error) = error.downcast_ref::<cento_eval::Error>() {
        return match error {
            cento_eval::Error::Asking { .. } => {
                "; what was answered is in the record: the same command goes on there".to_owned()
            }
            cento_eval::Error::NotRecorded { .. } => "; say who is with --endpoint".to_owned(),
            _ => String::new(), // the rest names its own way out
        };
    }
    if let Some(cento_server::Error::Unguarded { .. }) = error.downcast_ref() {
        return " (--api-keys FILE)".to_owned();
    }
    match error.downcast_ref::<Error>() {
        Some(Error::Model(error)) => model_way_out(error),
        Some(Error::Collection(error)) => collection_way_out(error),
        Some(Error::RootGone { .. } | Error::MostRemoved { .. }) => " with --allow-empty".to_owned(),
        Some(Error::UnknownDocument { nearest: None, .. }) => "; `cento list` shows all".to_owned(),
        Some(Error::NoCacheFolder) => "; or go without, with --no-cache".to_owned(),
        Some(Error::TextTooLong { .. }) => "; --too-long truncate leaves its end out".to_owned(),
        Some(Error::InputChanged { .. } | Error::PlanDiffers { .. }) => " with --restart".to_owned(),
        Some(Error::NoEncoder) => " (--vector FILE, or --mode lexical)".to_owned(),
        Some(Error::NoWords) => " (--vector FILE)".to_owned(),
        Some(Error::Vectors { reason, .. }) if reason.ends_with("the Euclidean distance") => {
            " (--normalize, or --distance)".to_owned()
        }
        Some(Error::VectorsLost) => "; leave --no-embed out".to_owned(),
        Some(Error::TooManyResults { .. }) => ", or raise --candidates".to_owned(),
        Some(Error::Setting { setting: "late-window", reason, .. }) if reason.ends_with("late vectors only") => {
            "; ask for --pooling late or both".to_owned()
        }
        Some(Error::Corpus(cento_engine::corpus::Error::InvalidUtf8 { .. })) => " (--lossy)".to_owned(),
        Some(Error::Corpus(cento_engine::corpus::Error::Encrypted { .. })) => " (--password-file)".to_owned(),
        // As a child says it.
        Some(Error::Corpus(cento_engine::corpus::Error::Refused { reason, .. }))
            if reason.contains("file of passwords") =>
        {
            " (--password-file)".to_owned()
        }
        Some(Error::Trace { .. }) => "; `cento context --trace FILE` writes one".to_owned(),
        Some(Error::Endpoint { .. }) => " (--endpoint-fallback, or no --endpoint)".to_owned(),
        Some(Error::NoContext { .. }) => {
            "; what was answered is kept: the same command goes on there, and asks for this one again".to_owned()
        }
        Some(Error::NoContextWriter { .. }) => " with --header llm --endpoint URL --endpoint-model NAME".to_owned(),
        Some(Error::NoAnswer { .. }) => " with `cento context --trace`".to_owned(),
        Some(Error::Filter(FilterError::UnknownField { known, .. })) if known.len() > FIELDS_NAMED_MAX => {
            "\n`cento fields` lists all fields".to_owned()
        }
        Some(Error::PrivateEndpoint { setting, .. }) => {
            let variable = setting.to_uppercase();
            format!("; if it is meant, name it with --{setting}, CENTO_{variable} or in your own settings")
        }
        Some(Error::Setting { setting: "endpoint", .. }) => {
            "; ask for --strategy seal, or leave --endpoint out".to_owned()
        }
        _ => String::new(),
    }
}

/// The way to a collection that can be used.
fn collection_way_out(error: &CollectionError) -> String {
    match error {
        CollectionError::NotFound { path } => {
            format!("; make one with `cento index PATH --collection {}`", path.display())
        }
        CollectionError::NotACollection { .. } => " with --collection DIR".to_owned(),
        CollectionError::Corrupt { .. } => {
            "; `cento doctor` says what else is damaged, `cento repair` keeps what is not".to_owned()
        }
        CollectionError::Unreadable { .. } => "; `cento repair` keeps what can be read".to_owned(),
        CollectionError::GraphHealth { n_rows, .. } => format!(" with --graph-rows-min {}", n_rows + 1),
        _ => String::new(), // the enum may grow; the rest names its own way out
    }
}

/// The way to a model that can be loaded.
fn model_way_out(error: &ModelError) -> String {
    match error {
        ModelError::UnknownModel { .. } => "; or --model DIR with a sentence-transformers folder".to_owned(),
        ModelError::NotHere { name, .. } => {
            format!("; name a sentence-transformers folder, or get it with `cento model pull {name}`")
        }
        ModelError::NoTable { known } => known.first().map_or_else(String::new, |name| {
            format!("; get one with `cento model pull {name}` (`cento model list --all` lists them), or name a folder")
        }),
        ModelError::NotPulled { name, .. } => format!("; get it with `cento model pull {name}`"),
        ModelError::Damaged { name, .. } => format!("; mend it with `cento model pull {name}`"),
        ModelError::NoFolder { .. } => {
            "; name a sentence-transformers folder or a model that `cento model list` shows".to_owned()
        }
        ModelError::Unavailable { name, .. } => {
            format!("\nrun `cento model pull {name}` again when online, or use a folder you have with --model DIR")
        }
        _ => String::new(), // the enum may grow; the rest names its own way out
    }
}

fn code(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<crate::usage::Usage>().is_some() {
        return USAGE;
    }
    if let Some(error) = error.downcast_ref::<cento_eval::Error>() {
        return match error {
            cento_eval::Error::UnknownMeasure { .. }
            | cento_eval::Error::Measure { .. }
            | cento_eval::Error::RecordOf { .. } => USAGE,
            cento_eval::Error::Asking { .. } | cento_eval::Error::NotRecorded { .. } => MODEL,
            _ => DATA,
        };
    }
    if let Some(error) = error.downcast_ref::<cento_server::Error>() {
        return match error {
            cento_server::Error::Unguarded { .. } | cento_server::Error::Keys { .. } => USAGE,
            _ => DATA,
        };
    }
    if let Some(CollectionError::Setting { .. }) = error.downcast_ref::<CollectionError>() {
        return USAGE;
    }
    match error.downcast_ref::<Error>() {
        Some(
            Error::EmptyQuery
            | Error::NoEncoder
            | Error::NoWords
            | Error::TooManyResults { .. }
            | Error::AnswerTooLarge { .. }
            | Error::PrivateEndpoint { .. }
            | Error::Setting { .. }
            | Error::Collection(CollectionError::Setting { .. })
            | Error::LabelTaken { .. }
            | Error::NoCacheFolder
            | Error::Filter(_)
            | Error::Assembly(_),
        ) => USAGE,
        Some(
            Error::UnknownDocument { .. }
            | Error::AmbiguousName { .. }
            | Error::OutOfRange { .. }
            | Error::NotTraced { .. }
            | Error::NotCached { .. },
        ) => NOTHING,
        Some(
            Error::Embedder(_)
            | Error::Model(_)
            | Error::Text { .. }
            | Error::Endpoint { .. }
            | Error::Unanswered { .. }
            | Error::Reranker { .. }
            | Error::NoContext { .. }
            | Error::NoContextWriter { .. }
            | Error::NoAnswer { .. }
            | Error::Encoder { .. }
            | Error::EncoderChanged { .. },
        ) => MODEL,
        _ => DATA,
    }
}
