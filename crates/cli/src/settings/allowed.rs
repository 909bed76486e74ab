//! What the settings file of the current folder may say unless it is trusted: a list of what does no harm.
//!
//! Such a file comes with every cloned repository and every unpacked archive. It may say how documents are cut, found,
//! ranked and shown. It may not say what is read or written besides the collection in its folder, who is asked over the
//! network, which commands run, what of the machine is used, what a check lets pass, or what a command leaves unsaid.

use std::path::{Component, Path};

use cento_engine::HeaderStyle;
use cento_engine::model::cards;

use super::file::{FILE, Key, SettingsFile};
use super::trust::{self, State};

/// The rule for an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum May {
    /// Any value.
    Anything,
    /// A collection in the folder of the file.
    Inside,
    /// An encoder that Cento knows by name, and no folder with one.
    Card,
    /// A tokenizer that Cento knows by name, and no file with one.
    Known,
    /// A header that no language model writes: it would be sent the documents.
    Style,
}

/// Options by their names, in whichever commands they are.
const ALLOWED: [(May, &[&str]); 9] = [
    (May::Inside, &["collection"]),
    // Exact names of cards go before folders, and a pulled encoder is checked against its card.
    (May::Card, &["model"]),
    (May::Known, &["tokenizer"]),
    (May::Style, &["header"]),
    // How documents are read, cut and embedded; a collection says how it was made, and refuses what differs.
    (May::Anything, &["chunk-tokens", "language", "lossy", "no-compact", "pooling", "precision", "vectors"]),
    // Which candidates are found and how they are ranked.
    (
        May::Anything,
        &[
            "ann",
            "b",
            "candidates",
            "ef",
            "exact",
            "filter",
            "find-vectors",
            "fusion",
            "k",
            "k1",
            "lexical-score",
            "lexical-weight",
            "links",
            "min-score",
            "mode",
            "phrases",
            "rerank-depth",
            "score-vectors",
            "ties",
            "title-weight",
            "within",
        ],
    ),
    // How a context is chosen and laid out. What it holds whatever the question (include, exclude) the user says.
    (May::Anything, &["budget", "marks", "matched", "order", "strategy"]),
    // What stands on stdout, and what is added on stderr.
    (May::Anything, &["explain", "format", "json", "per-query", "timings"]),
    // Which figures are shown and how runs are fused; what is counted and what a check lets pass is not theirs to say.
    (
        May::Anything,
        &[
            "contrast-depth",
            "cutoffs",
            "depth",
            "figures",
            "measure",
            "method",
            "minima",
            "normalize",
            "rrf-k",
            "weights",
        ],
    ),
];

/// A setting that was taken out of a file.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) key: Key,
    value: String,
    pub(super) reason: String,
}

impl Refusal {
    pub(super) fn shown_value(&self) -> &str {
        shown_value(&self.value)
    }
}

/// A value as it may be shown: without the password of an address.
pub(crate) fn shown_value(value: &str) -> &str {
    if value.contains("://") && value.contains('@') { "…" } else { value }
}

/// Takes out of the current folder's file what it may not say, unless the file is trusted.
pub(super) fn take_refused(file: &mut SettingsFile) -> Vec<Refusal> {
    let mut refused = refused(file);
    if refused.is_empty() {
        return refused;
    }
    match trust::state(file) {
        Some(State::Trusted) => return Vec::new(),
        Some(State::Changed) => refused
            .iter_mut()
            .for_each(|refusal| refusal.reason.push_str(", and the file has changed since it was trusted")),
        Some(State::Gone) | None => {}
    }
    for refusal in &refused {
        file.values.remove(&refusal.key);
        file.commands.retain(|(extension, _)| Key::of_command(extension) != refusal.key);
    }
    refused
}

/// Settings of a file that need trust.
pub(super) fn refused(file: &SettingsFile) -> Vec<Refusal> {
    let folder = file.path.parent().unwrap_or(Path::new(""));
    let refusal = |(key, value): (&Key, &String)| {
        let limit = refusal(may(&key.name), folder, value)?;
        let reason = format!("{FILE} of the current folder may {limit}");
        Some(Refusal { key: key.clone(), value: value.clone(), reason })
    };
    file.values.iter().filter_map(refusal).collect()
}

fn may(name: &str) -> Option<May> {
    ALLOWED.iter().find(|(_, names)| names.contains(&name)).map(|(may, _)| *may)
}

/// Why a value is refused, if it is.
fn refusal(may: Option<May>, folder: &Path, value: &str) -> Option<&'static str> {
    let (is_allowed, reason) = match may {
        Some(May::Anything) => return None,
        Some(May::Inside) => {
            (is_inside(folder, Path::new(value)), "only name a collection inside its folder, without links")
        }
        Some(May::Card) => (cards().iter().any(|card| card.name == value), "only name a model card"),
        Some(May::Style) => (value.parse::<HeaderStyle>().is_ok(), "only name a style of headers"),
        Some(May::Known) => (KNOWN.contains(&value), "only name model, o200k or cl100k"),
        None => (false, "not set this"),
    };
    (!is_allowed).then_some(reason)
}

/// Tokenizers that come with Cento, or with the encoder.
const KNOWN: [&str; 3] = ["model", "o200k", "cl100k"];

/// True for a relative path that stays in its folder: no `..`, and no link on the way, not even to a place inside.
fn is_inside(folder: &Path, path: &Path) -> bool {
    let mut place = folder.to_owned();
    path.components().all(|component| match component {
        Component::Normal(name) => {
            place.push(name);
            !place.is_symlink()
        }
        Component::CurDir => true,
        Component::Prefix(_) | Component::RootDir | Component::ParentDir => false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{defaults, plain_command};
    use super::*;

    /// Holds every option of every command against what was decided on it: a new one is refused until it is listed.
    #[test]
    fn every_option_is_decided() {
        let command = plain_command();
        let verbs = std::iter::once((String::new(), &command))
            .chain(command.get_subcommands().map(|verb| (format!("{}.", verb.get_name()), verb)));
        let mut decided = String::new();
        for (prefix, verb) in verbs {
            for (_, name) in defaults::options(verb) {
                let may = match may(name) {
                    Some(may) => format!("{may:?}").to_lowercase(),
                    None => "refused".to_owned(),
                };
                decided += &format!("{prefix}{name} {may}\n");
            }
        }
        let golden = include_str!("allowed.golden");
        let (decided, golden): (Vec<&str>, Vec<&str>) = (decided.lines().collect(), golden.lines().collect());
        let new: Vec<_> = decided.iter().filter(|line| !golden.contains(line)).collect();
        let gone: Vec<_> = golden.iter().filter(|line| !decided.contains(line)).collect();
        assert!(
            new.is_empty() && gone.is_empty(),
            "decided anew: {new:#?}, no more: {gone:#?}; if that is meant, say so in settings/allowed.golden"
        );
    }

    #[test]
    fn every_listed_name_is_an_option() {
        let command = plain_command();
        let known: Vec<&str> = std::iter::once(&command)
            .chain(command.get_subcommands())
            .flat_map(|verb| defaults::options(verb).map(|(_, long)| long))
            .collect();
        for name in ALLOWED.iter().flat_map(|(_, names)| *names) {
            assert!(known.contains(name), "{name} is no option");
        }
    }
}
