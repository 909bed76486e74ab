//! What ends a program on somebody else's data, as far as reading the sources shows it; fuzzing (`scripts/fuzz`) looks for the rest.

use proc_macro2::TokenTree;

use super::imports::Modules;
use super::source::{is_punct, is_word, outside_tests, tokens};
use super::{relative, root};

/// A way to end a program, or to hang it, and the way out.
struct Rule {
    what: &'static str,
    way_out: &'static str,
    is_broken: fn(&[TokenTree]) -> bool,
    /// Files that may, each for its reason.
    may: &'static [(&'static str, &'static str)],
}

const RULES: [Rule; 5] = [
    Rule {
        what: "`.unwrap()`",
        way_out: "return the error; where there can be none, `.expect(\"why not\")` says why",
        is_broken: |tokens| is_call(tokens, "unwrap"),
        may: &[],
    },
    Rule {
        what: "`panic!` or `todo!`",
        way_out: "return an error",
        is_broken: |tokens| {
            ["panic", "todo", "unimplemented"].iter().any(|name| is_word(tokens.first(), name))
                && is_punct(tokens.get(1), '!')
        },
        may: &[
            ("crates/engine/src/embed/quantize.rs", "a caller that gives no ranges is a mistake in Cento"),
            ("crates/lexical/src/writer.rs", "what tantivy has just written itself"),
        ],
    },
    Rule {
        what: "a lock that stays poisoned",
        way_out: "use `parking_lot`, whose locks can be had again after a panic",
        is_broken: |tokens| {
            is_call(tokens, "lock") && ["expect", "unwrap"].iter().any(|name| is_call(&tokens[3..], name))
        },
        may: &[],
    },
    Rule {
        what: "a time added to now",
        way_out: "`Instant::now() + x` panics on a large x: use `checked_add`, or compare `elapsed()`",
        is_broken: |tokens| {
            is_word(tokens.first(), "Instant")
                && is_word(tokens.get(3), "now")
                && matches!(tokens.get(4), Some(TokenTree::Group(_)))
                && is_punct(tokens.get(5), '+')
        },
        may: &[],
    },
    Rule {
        what: "a file read whole, however long it is",
        way_out: "use `read_bounded`: the file may be a device without an end",
        is_broken: |tokens| {
            ["fs", "fs_err"].iter().any(|name| is_word(tokens.first(), name))
                && is_punct(tokens.get(1), ':')
                && ["read", "read_to_string"].iter().any(|name| is_word(tokens.get(3), name))
        },
        may: &[
            ("crates/corpus/src/folder/unread.rs", "reads what its walk has measured"),
            ("crates/collection/src/fs/machine.rs", "what the system says of itself"),
            ("crates/eval/src/machine.rs", "what the system says of itself"),
        ],
    },
];

/// `.name(…)`
fn is_call(tokens: &[TokenTree], name: &str) -> bool {
    is_punct(tokens.first(), '.') && is_word(tokens.get(1), name) && matches!(tokens.get(2), Some(TokenTree::Group(_)))
}

fn broken(tokens: &[TokenTree], rule: &Rule, lines: &mut Vec<usize>) {
    for (at, token) in tokens.iter().enumerate() {
        if (rule.is_broken)(&tokens[at..]) {
            lines.push(token.span().start().line);
        }
        if let TokenTree::Group(group) = token {
            broken(&outside_tests(group.stream()), rule, lines);
        }
    }
}

#[test]
fn no_code_gives_up_on_data() {
    let mut found = Vec::new();
    let mut used = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        for file in Modules::read(&entry.unwrap().path().join("src")).files() {
            let (name, tokens) = (relative(&file), tokens(&file));
            for rule in &RULES {
                let mut lines = Vec::new();
                broken(&tokens, rule, &mut lines);
                let may = rule.may.iter().find(|(file, _)| *file == name);
                used.extend(may.filter(|_| !lines.is_empty()));
                if may.is_none() {
                    found.extend(lines.iter().map(|line| format!("{name}:{line}: {}; {}", rule.what, rule.way_out)));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    let idle: Vec<_> = RULES.iter().flat_map(|rule| rule.may).filter(|may| !used.contains(may)).collect();
    assert!(idle.is_empty(), "these do it no more; take them out: {idle:?}");
}
