//! Wrong use of the command line.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags of other tools for the number of results, which is `-k` here.
const COUNTS: [&str; 11] = [
    "-n",
    "--num",
    "--n-results",
    "--num-results",
    "--max-results",
    "--count",
    "--limit",
    "--size",
    "--top",
    "--top-k",
    "--topk",
];

/// The command line asks for something that cannot be; exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The error with the flag that was meant, where other tools call it otherwise.
pub(crate) fn meant(mut error: clap::Error, arguments: &[OsString], command: &clap::Command) -> clap::Error {
    let verb = arguments.iter().skip(1).find_map(|word| command.find_subcommand(word));
    let has_count = verb.is_some_and(|verb| verb.get_arguments().any(|argument| argument.get_short() == Some('k')));
    let unknown =
        error.get(ContextKind::InvalidArg).filter(|_| has_count && error.kind() == ErrorKind::UnknownArgument);
    if matches!(unknown, Some(ContextValue::String(name)) if COUNTS.contains(&name.as_str())) {
        let tip = StyledStr::from("the number of results is said with '-k'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    Usage(message.into()).into()
}
