//! Source code as documents: where it is cut, and what stands above its chunks.

use proptest::prelude::*;

use super::{Words, check_laws, configs};
use crate::*;

/// The document of a file of this name, read by its syntax.
fn of(name: &str, text: &str) -> Document {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let file = walk(&Root { label: format!("src/{name}"), path }, &ReadOptions::default()).unwrap().files.remove(0);
    let mut documents = read(&file, &ReadOptions::default()).unwrap();
    let document = documents.next().unwrap().unwrap();
    assert_eq!((document.text.as_str(), document.kind), (text, TextKind::Source));
    document
}

const TIDES: &str = "\"\"\"Tides.\"\"\"
import moon

class Tide(Wave):
    def rises(self):
        height = moon.pull()
        height += sun.pull()
        self.height = height
        return height

    def falls(self):
        self.height -= moon.pull()
        self.height -= sun.pull()
        self.waits()
        return self.height

    def low(self): return 0

    def high(self): return 1


# How long until the next one.
def until(tide):
    now = clock()
    then = tide.next()
    log(now)
    return then - now
";

#[test]
fn chunks_begin_with_functions_and_say_what_they_are_in() {
    let document = of("tides.py", TIDES);
    let config = ChunkConfig { size: ChunkSize::Target(40), window_tokens: 120, ..ChunkConfig::default() };
    let chunks = chunk(&document, &config, &Words);
    let shown: Vec<(&str, u32, String)> = chunks
        .iter()
        .map(|chunk| {
            let first = document.text[chunk.span.clone()].lines().next().unwrap();
            let header = header(&document, chunk, HeaderStyle::Flat);
            (first.trim(), chunk.anchor.line.unwrap(), header.trim_end().to_owned())
        })
        .collect();
    let expected = [
        ("\"\"\"Tides.\"\"\"", 1, "Document: tides"),
        // A class of which nothing else is said stays with its first method.
        ("class Tide(Wave):", 4, "Document: tides"),
        ("def falls(self):", 11, "Document: tides | Section: class Tide"),
        // Short methods are of their class.
        ("def low(self): return 0", 17, "Document: tides | Section: class Tide"),
        ("# How long until the next one.", 22, "Document: tides"),
    ];
    assert_eq!(shown, expected.map(|(first, line, header)| (first, line, header.to_owned())));
    let paths: Vec<Vec<&str>> = chunks.iter().map(|chunk| document.path(chunk.section)).collect();
    let paths: Vec<String> = paths.iter().map(|path| path.join(" > ")).collect();
    assert_eq!(paths, ["", "class Tide > Tide.rises", "class Tide > Tide.falls", "class Tide", "def until"]);
}

#[test]
fn a_function_of_several_chunks_is_named_above_those_behind_its_first_line() {
    let lines = |n: usize| (0..n).map(|n| format!("        self.wave_{n} = moon.pull({n})\n\n")).collect::<String>();
    let document =
        of("tides.py", &format!("class Tide:\n    \"\"\"A tide.\"\"\"\n\n    def rises(self):\n{}", lines(20)));
    let config = ChunkConfig { size: ChunkSize::Target(40), window_tokens: 120, ..ChunkConfig::default() };
    let chunks = chunk(&document, &config, &Words);
    let last = header(&document, &chunks[chunks.len() - 1], HeaderStyle::Structured);
    assert_eq!(last, "# Document: tides\n# class Tide\n## Tide.rises\n");
    assert_eq!(
        &document.text[document.sections[2].span.clone()],
        &document.text[document.text.find("    def").unwrap()..]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn code_obeys_every_law(
        lines in prop::collection::vec(prop_oneof![
            "[ ]{0,8}(class|def|fn|impl|mod|struct|function|func|type|namespace) ?[a-zé]{1,4}[(){}:;]{0,4}",
            "[ \t]{0,8}[{}]{1,3}[;,]?",
            "[ ]{0,8}(///|//|#|@|/\\*\\*|\\*/) ?[a-z]{0,4}",
            "[ ]{0,4}[a-z]{1,9}\\([a-z]{0,5}\\);?",
            Just(String::new()),
        ], 0..60),
        name in prop::sample::select(vec!["a.rs", "a.py", "a.js", "a.ts", "a.go", "a.java", "a.c", "a.cpp"]),
        config in configs(),
    ) {
        let text = lines.join("\n");
        if !text.is_empty() {
            check_laws(&of(name, &text), &config, &Words);
        }
    }
}
