//! The commands in groups, as `cento --help` lists them: what people need daily first, all the rest below.
//!
//! Clap lists commands without groups, so the list is a template here; what it says of a command is the command's own
//! first sentence.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::StyledStr;

/// Every command stands in exactly one group.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Build a collection", &["index", "status", "list", "delete", "doctor"]),
    ("Ask it", &["search", "context", "assemble", "get"]),
    ("Understand an answer", &["why", "why-not"]),
    ("Serve others", &["serve", "mcp"]),
    ("Measure", &["run", "eval"]),
    ("Models and settings", &["model", "config"]),
    (
        "More commands",
        &[
            "inspect",
            "fields",
            "repair",
            "compact",
            "adopt",
            "snapshot",
            "replay",
            "diff",
            "eval-context",
            "eval-answers",
            "compare",
            "fuse",
            "priors",
            "tune",
            "bench",
            "devices",
            "embed",
            "cache",
            "trust",
            "schema",
            "completions",
            "help",
        ],
    ),
];

/// Clap adds the command `help` when it parses, and with it this sentence.
const HELP_ABOUT: &str = "Print the help of a command";

/// Makes the first page of help list the commands in groups.
pub(super) fn grouped(command: Command) -> Command {
    let page = page(&command);
    command.help_template(page)
}

fn page(command: &Command) -> StyledStr {
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let names = GROUPS.iter().flat_map(|(_, names)| *names);
    let width = names.map(|name| name.len()).max().unwrap_or(0);
    let mut page = StyledStr::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        let _ = writeln!(page, "\n{header}{heading}:{header:#}"); // writing into a string does not fail
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or_else(|| HELP_ABOUT.to_owned(), ToString::to_string);
            let about = about.trim_end_matches('.'); // clap keeps it in a verbatim comment
            let _ = writeln!(page, "  {literal}{name:width$}{literal:#}  {about}");
        }
    }
    let _ = write!(page, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::args;

    #[test]
    fn every_command_is_in_one_group() {
        let command = args::command();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let known: BTreeSet<&str> = shown.map(Command::get_name).chain(["help"]).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(grouped.len(), known.len(), "a command is in two groups");
    }

    #[test]
    fn every_command_says_in_one_line_what_it_does() {
        for verb in args::command().get_subcommands() {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && about.len() <= 84 && !about.contains(['\n', '{', '}']), "{about:?}");
        }
    }
}
