//! The rules of the house, held by reading the repository itself.

mod imports;
mod panics;
mod shape;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::root;

/// The other crates that each crate may know: leaves know none, stores below `engine` know what they keep.
const EDGES: [(&str, &[&str]); 11] = [
    ("cento-corpus", &[]),
    ("cento-embedder", &[]),
    ("cento-vector", &[]),
    ("cento-lexical", &[]),
    ("cento-assembly", &[]),
    ("cento-eval", &[]),
    ("cento-collection", &["cento-corpus", "cento-vector", "cento-lexical"]),
    ("cento-models", &["cento-collection"]),
    (
        "cento-engine",
        &[
            "cento-collection",
            "cento-models",
            "cento-corpus",
            "cento-embedder",
            "cento-vector",
            "cento-lexical",
            "cento-assembly",
        ],
    ),
    ("cento-server", &["cento-engine", "cento-eval"]),
    ("cento-cli", &["cento-engine", "cento-eval", "cento-server"]),
];

/// The files that may lift the ban on `unsafe`.
const UNSAFE: [&str; 4] = [
    "crates/vector/src/file/mapped.rs",
    "crates/vector/src/file/watched.rs",
    "crates/vector/src/simd.rs",
    "crates/embedder/src/kernels/",
];

fn sources(of: &str) -> Vec<PathBuf> {
    source::files(&root().join(of))
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_string_lossy().into_owned()
}

#[test]
fn a_crate_knows_only_the_crates_below_it() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        if ["cento-tests", "cento-benches"].contains(&name) {
            continue;
        }
        let known =
            package["dependencies"].as_array().unwrap().iter().filter(|dependency| dependency["kind"].is_null());
        let known = known
            .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
            .filter(|name| name.starts_with("cento-"));
        edges.insert(name.to_owned(), known.collect());
    }
    let wanted: BTreeMap<String, BTreeSet<String>> = EDGES
        .iter()
        .map(|(name, known)| ((*name).to_owned(), known.iter().map(|known| (*known).to_owned()).collect()))
        .collect();
    for (name, known) in &edges {
        let Some(allowed) = wanted.get(name) else {
            panic!("crates/: {name} has no row in EDGES; say what it may know")
        };
        let beyond: Vec<&String> = known.difference(allowed).collect();
        assert!(
            beyond.is_empty(),
            "{}/Cargo.toml: {name} must not know {beyond:?}; move what it needs to a crate that it may know: {allowed:?}",
            name.replace("cento-", "crates/")
        );
    }
    assert_eq!(edges, wanted, "EDGES names an edge that is gone; take it out");
}

#[test]
fn unsafe_code_lives_in_named_files() {
    for path in sources("crates") {
        let text = std::fs::read_to_string(&path).unwrap();
        let lifts = ["allow(unsafe_code", "expect(unsafe_code"].iter().any(|lift| text.contains(lift));
        let name = relative(&path);
        assert!(!lifts || UNSAFE.iter().any(|known| name.starts_with(known)), "{name} lifts the ban on unsafe code");
    }
}

#[test]
fn every_file_opens_with_what_it_is() {
    for path in sources("crates").into_iter().chain(sources("tests")) {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//! "), "{} does not say what it is", relative(&path));
    }
}

#[test]
fn an_allowed_lint_has_its_reason() {
    for path in sources("crates").into_iter().chain(sources("tests")) {
        let text = std::fs::read_to_string(&path).unwrap();
        for (n, line) in text.lines().enumerate() {
            let lifts = line.trim_start().starts_with("#[allow(")
                || line.trim_start().starts_with("#[expect(")
                || line.trim_start().starts_with("#![allow(")
                || line.trim_start().starts_with("#![expect(");
            assert!(
                !lifts
                    || line.contains("reason")
                    || text.lines().skip(n + 1).take(2).any(|next| next.contains("reason")),
                "{}:{}: no reason",
                relative(&path),
                n + 1
            );
        }
    }
}

#[test]
fn no_test_is_switched_off() {
    let banned = [
        concat!("#[", "ignore"),
        concat!("#[", "should_panic"),
        concat!("thread::", "sleep"),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
    ];
    for path in sources("crates").into_iter().chain(sources("tests")) {
        let text = std::fs::read_to_string(&path).unwrap();
        for word in banned {
            assert!(!text.contains(word), "{} has {word}", relative(&path));
        }
    }
}

#[test]
fn the_changelog_knows_this_version() {
    let changelog = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let heading = format!("## [{}]", env!("CARGO_PKG_VERSION"));
    let section = changelog.split("\n## ").find(|section| format!("## {section}").starts_with(&heading));
    assert!(
        section.is_some_and(|section| section.contains("### Index format")),
        "CHANGELOG.md has no {heading} with an Index format"
    );
}

#[test]
fn the_architecture_stays_a_map() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert!(text.lines().count() < 150, "ARCHITECTURE.md has {} lines", text.lines().count());
    for (name, _) in EDGES {
        let short = name.trim_start_matches("cento-");
        assert!(text.contains(&format!("`{short}`")), "ARCHITECTURE.md says nothing of {short}");
    }
}
