//! How files, functions and words are shaped: what is held at nothing, and what may only become less.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::imports::Modules;
use super::{relative, source};
use crate::support::root;

const COLUMNS_MAX: usize = 120;
const FUNCTION_LINES_MAX: usize = 70;
const FILES_PER_FOLDER_MAX: usize = 15;
/// Documentation says what an item is: a sentence, not a clause that asks.
const ASKING: [&str; 5] = ["What", "Whether", "Which", "How", "None"];

/// How many places of a crate still break each rule. A number here only ever goes down.
struct Ratchet {
    name: &'static str,
    modules_in_cycles: usize,
    wide_comments: usize,
    long_functions: usize,
    crowded_folders: usize,
    asking_docs: usize,
    flags_in_texts: usize,
}

const RATCHETS: [Ratchet; 11] = [
    ratchet("corpus", [0, 0, 0, 0, 0, 0]),
    ratchet("embedder", [20, 0, 0, 0, 5, 0]),
    ratchet("vector", [0, 0, 0, 0, 1, 0]),
    ratchet("lexical", [0, 0, 0, 0, 1, 0]),
    ratchet("assembly", [0, 0, 0, 0, 0, 0]),
    ratchet("eval", [0, 0, 0, 0, 0, 0]),
    ratchet("collection", [0, 0, 0, 0, 0, 0]),
    ratchet("models", [0, 0, 0, 0, 0, 0]),
    ratchet("engine", [0, 0, 0, 0, 8, 0]),
    ratchet("server", [0, 0, 0, 0, 0, 0]),
    ratchet("cli", [0, 0, 0, 0, 51, FLAGS_ALLOWED]),
];

/// The command line may name its own flags.
const FLAGS_ALLOWED: usize = usize::MAX;

/// Columns: modules in cycles, wide comments, long functions, crowded folders, asking documentation, flags in texts.
const fn ratchet(name: &'static str, [cycles, wide, long, crowded, asking, flags]: [usize; 6]) -> Ratchet {
    Ratchet {
        name,
        modules_in_cycles: cycles,
        wide_comments: wide,
        long_functions: long,
        crowded_folders: crowded,
        asking_docs: asking,
        flags_in_texts: flags,
    }
}

/// Holds one rule: places that break it, by crate, against the number that the crate may have.
#[track_caller]
fn hold(rule: &str, way_out: &str, allowed: impl Fn(&Ratchet) -> usize, places: impl Fn(&Path) -> Vec<String>) {
    let mut broken = Vec::new();
    let mut crates: Vec<PathBuf> =
        std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    crates.sort();
    for folder in crates {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let ratchet = RATCHETS.iter().find(|ratchet| ratchet.name == name);
        let ratchet = ratchet.unwrap_or_else(|| panic!("crates/{name} has no row in RATCHETS; give it one of zeros"));
        let found = places(&folder.join("src"));
        if found.len() > allowed(ratchet) {
            let (n, most) = (found.len(), allowed(ratchet));
            broken.push(format!("{name}: {n} {rule}, {most} allowed\n  {}", found.join("\n  ")));
        }
    }
    assert!(broken.is_empty(), "{}\n{way_out}", broken.join("\n"));
}

fn modules_in_cycles(sources: &Path) -> Vec<String> {
    let mut places = Vec::new();
    for circle in Modules::read(sources).cycles() {
        let mut files: BTreeMap<&PathBuf, Vec<String>> = BTreeMap::new();
        for import in &circle {
            let to = import.to.strip_prefix(sources).unwrap().display();
            files.entry(&import.from).or_default().push(format!("{}: `{}` ({to})", import.line, import.path));
        }
        places.extend(files.iter().map(|(file, lines)| format!("{}:{}", relative(file), lines.join("; "))));
    }
    places
}

/// Lines of the files of a crate that are not tests, as `place` finds them.
fn lines(sources: &Path, place: impl Fn(&[&str], usize) -> bool) -> Vec<String> {
    let mut places = Vec::new();
    for file in source::files(sources) {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let found = (0..lines.len()).filter(|at| place(&lines, *at));
        places.extend(found.map(|at| format!("{}:{}: {}", relative(&file), at + 1, lines[at].trim_start())));
    }
    places
}

fn wide_comments(sources: &Path) -> Vec<String> {
    lines(sources, |lines, at| lines[at].trim_start().starts_with("//") && lines[at].chars().count() > COLUMNS_MAX)
}

fn asking_docs(sources: &Path) -> Vec<String> {
    lines(sources, |lines, at| {
        let opens = at == 0 || !lines[at - 1].trim_start().starts_with("///");
        let words = lines[at].trim_start().strip_prefix("/// ");
        let first = words.and_then(|words| words.split(|letter: char| !letter.is_alphanumeric()).next());
        opens && first.is_some_and(|first| ASKING.contains(&first))
    })
}

fn long_functions(sources: &Path) -> Vec<String> {
    let mut places = Vec::new();
    for file in Modules::read(sources).files() {
        let mut found = Vec::new();
        source::functions(&source::tokens(&file), &mut found);
        let long = found.into_iter().filter(|(_, length, _)| *length > FUNCTION_LINES_MAX);
        places.extend(long.map(|(line, length, name)| format!("{}:{line}: {name}, {length} lines", relative(&file))));
    }
    places
}

fn crowded_folders(sources: &Path) -> Vec<String> {
    let mut folders: BTreeMap<&Path, usize> = BTreeMap::new();
    let files = source::files(sources);
    for file in &files {
        *folders.entry(file.parent().unwrap()).or_default() += 1;
    }
    let crowded = folders.into_iter().filter(|(_, files)| *files > FILES_PER_FOLDER_MAX);
    crowded.map(|(folder, files)| format!("{}: {files} files", relative(folder))).collect()
}

fn flags_in_texts(sources: &Path) -> Vec<String> {
    let mut places = Vec::new();
    for file in Modules::read(sources).files() {
        let mut found = Vec::new();
        source::literals(&source::tokens(&file), &mut found);
        let named = found.into_iter().filter(|(_, text)| names_a_flag(text));
        places.extend(named.map(|(line, text)| format!("{}:{line}: {text}", relative(&file))));
    }
    places
}

/// A sentence with a flag (`--name`) or a command of the binary in it; a flag alone is an argument for another program.
fn names_a_flag(literal: &str) -> bool {
    if !literal.contains(' ') {
        return false;
    }
    let flag = literal.match_indices("--").any(|(at, _)| {
        let after = literal[at + 2..].bytes().next();
        let before = literal[..at].bytes().next_back();
        after.is_some_and(|byte| byte.is_ascii_lowercase()) && before != Some(b'-')
    });
    flag || literal.contains("`cento ") || literal.contains("'cento ")
}

#[test]
fn no_two_modules_import_each_other() {
    hold(
        "modules in cycles",
        "Move what both need into a file that knows neither.",
        |ratchet| ratchet.modules_in_cycles,
        modules_in_cycles,
    );
}

/// The folders of `engine`: each knows only itself and those before it.
const ENGINE: [&str; 8] = ["source", "ingest", "embed", "retrieve", "context", "explain", "api", "service.rs"];

#[test]
fn the_folders_of_engine_read_downwards() {
    let sources = root().join("crates/engine/src");
    let place = |file: &Path| {
        let top = file.strip_prefix(&sources).unwrap().iter().next().unwrap();
        ENGINE.iter().position(|folder| top == *folder)
    };
    for import in Modules::read(&sources).imports() {
        let upward = place(&import.from) < place(&import.to) && place(&import.from).is_some();
        assert!(!upward, "{}:{}: `{}` lies above it", relative(&import.from), import.line, import.path);
    }
    assert!(ENGINE.iter().all(|folder| sources.join(folder).exists()), "a folder of ENGINE is gone");
}

#[test]
fn comments_end_where_code_ends() {
    hold(
        "comment lines over 120 columns",
        "Wrap them: rustfmt leaves comments alone.",
        |ratchet| ratchet.wide_comments,
        wide_comments,
    );
}

#[test]
fn a_function_fits_a_screen() {
    hold("functions over 70 lines", "Part the steps and name each.", |ratchet| ratchet.long_functions, long_functions);
}

#[test]
fn a_folder_fits_a_glance() {
    hold(
        "folders of more than 15 files",
        "Put the files that answer one question into a folder of their own.",
        |ratchet| ratchet.crowded_folders,
        crowded_folders,
    );
}

#[test]
fn documentation_says_what_an_item_is() {
    hold(
        "items whose documentation opens with What, Whether, Which, How or None",
        "Write a sentence: \"Which arms answer\" is \"The retrievers that run\".",
        |ratchet| ratchet.asking_docs,
        asking_docs,
    );
}

#[test]
fn libraries_name_no_flag() {
    hold(
        "texts that name a flag or a command",
        "Name the setting: each door words its own way out.",
        |ratchet| ratchet.flags_in_texts,
        flags_in_texts,
    );
}
