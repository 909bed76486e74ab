//! Documents made to cost as much as they can: each is refused by name, or costs its length.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::Words;
use crate::*;

/// Length of each document.
const N_BYTES: usize = 64 * 1024;
/// Text, headers and metadata for each byte read: what the budgets admit of text and of headers together.
const OUT_PER_BYTE_MAX: u64 = budget::TEXT_PER_BYTE_MAX + budget::HEADERS_PER_BYTE_MAX;
/// Bytes given to the tokenizer for each byte of text and headers.
const TOKENIZED_PER_BYTE_MAX: u64 = 8;
/// Far more than any of them takes on a busy machine, far less than one that takes its square.
const TIME_PER_BYTE: Duration = Duration::from_micros(100);

/// A tokenizer that counts what it is given.
#[derive(Default)]
struct Counting(Cell<u64>);

impl Tokens for Counting {
    fn ends(&self, text: &str) -> Vec<usize> {
        self.0.set(self.0.get() + text.len() as u64);
        Words.ends(text)
    }
}

/// Reads and cuts a file of this content; the ids of its documents, and the errors.
#[track_caller]
fn check(name: &str, content: &str) -> (Vec<String>, Vec<Error>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    let shown: String = content.chars().take(40).collect();
    let (start, n_bytes) = (Instant::now(), content.len() as u64);
    let options = ReadOptions::default();
    let (mut ids, mut errors) = (Vec::new(), Vec::new());
    let (mut n_out, tokens) = (0, Counting::default());
    for file in walk(&Root { label: "h".into(), path }, &options).unwrap().files {
        let documents = match read(&file, &options) {
            Ok(documents) => documents,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        for document in documents {
            let document = match document {
                Ok(document) => document,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            let config = ChunkConfig::default();
            let chunks = chunk(&document, &config, &tokens);
            let headers = Headers::new(&document, config.header);
            n_out += document.text.len() as u64;
            n_out += chunks.iter().map(|chunk| headers.of(chunk).len() as u64).sum::<u64>();
            n_out +=
                document.metadata.iter().map(|(key, field)| (key.len() + 8 * field.values().len()) as u64).sum::<u64>();
            ids.push(document.id);
        }
    }
    let took = start.elapsed();
    assert!(n_out <= n_bytes * OUT_PER_BYTE_MAX + 2 * budget::FREE_BYTES, "{name} {shown:?}: {n_out} bytes out");
    let n_tokenized = tokens.0.get();
    let tokenized_max = n_out.max(n_bytes) * TOKENIZED_PER_BYTE_MAX;
    assert!(n_tokenized <= tokenized_max, "{name} {shown:?}: {n_tokenized} bytes tokenised of {n_out}");
    assert!(took <= TIME_PER_BYTE * content.len() as u32, "{name} {shown:?}: {took:?}");
    (ids, errors)
}

/// Units that are read again and again, as deep or as long as the length allows.
const MARKDOWN: [&str; 40] = [
    "#\n",
    "# a\n",
    "###### a b\n\nc\n\n",
    "> ",
    ">",
    "- ",
    "1. ",
    "* * ",
    "\t- ",
    "a\n-\n",
    "a\n\n",
    "a\n",
    "a ",
    "aaaa",
    "*a_b ",
    "**a",
    "_",
    "`",
    "``` ` ",
    "~~~\n",
    "[",
    "![",
    "[a](b) ",
    "[a][b] ",
    "[a]: b\n",
    "[^a]: b\n",
    "[^a]",
    "<div>\n",
    "<a ",
    "&amp;",
    "&#1;",
    "\\",
    "|a|b|\n|-|-|\n",
    "|",
    "|-",
    "+++\n",
    "---\n",
    "- a\n  > b\n",
    "\u{301}",
    "👩\u{200d}",
];

const HTML: [&str; 32] = [
    "<div>",
    "<p>a",
    "<b>",
    "<a href=x>",
    "<font color=a>x",
    "<table>",
    "<table><tr><td>",
    "<td>",
    "<li>",
    "<ul><li>",
    "<select>",
    "<option>a",
    "<svg>",
    "<math>",
    "<h1>",
    "<h2>a</h2>",
    "<h1>a<p>",
    "</div>",
    "</p>",
    "</x>",
    "<!--",
    "<!-- -->",
    "<![CDATA[",
    "<script>",
    "<title>",
    "<textarea>",
    "<plaintext>",
    "<template>",
    "&lt;",
    "&amp",
    "&#x1F30A;",
    "<p><b><i>x</p>",
];

const TEXT: [&str; 20] = [
    "a",
    "a ",
    " ",
    "\n",
    "a\n\n",
    "\r",
    ".",
    "a. ",
    "Dr. ",
    "A. ",
    "1. ",
    "!(",
    "\u{301}",
    "\u{3000}",
    "\u{200d}",
    "🇦",
    "、",
    "A\n=\n\n",
    "\"'",
    "今日は晴れ。",
];

#[test]
fn what_repeats_costs_its_length() {
    for (name, units) in [
        ("a.md", &MARKDOWN[..]),
        ("a.html", &HTML[..]),
        ("a.txt", &TEXT[..]),
        ("a.rst", &TEXT[..]),
        ("a.rs", &TEXT[..]),
        ("a.py", &TEXT[..]),
    ] {
        for unit in units {
            check(name, &unit.repeat(N_BYTES / unit.len()));
            check(name, &format!("{}x", unit.repeat(N_BYTES / unit.len())));
        }
    }
    for (name, units) in
        [("a.csv", ["a,b\n", "\"", ",", "a\n"]), ("a.jsonl", ["{}\n", "[", "{\"text\":\"a\"}\n", "{\"a\":"])]
    {
        for unit in units {
            check(name, &unit.repeat(N_BYTES / unit.len()));
        }
    }
}

#[test]
fn what_names_much_by_one_long_name_is_refused() {
    let long = |n: usize| "word ".repeat(n / 5);
    let sections = |n: usize| (0..n).map(|n| format!("## s{n}\n\nSome text here.\n\n")).collect::<String>();
    let over = |name: &str, content: &str, words: &str| {
        let (ids, errors) = check(name, content);
        let error = errors.first().map(ToString::to_string).unwrap_or_default();
        assert!(error.contains(words), "{name}: {ids:?} {error:?}");
    };
    over(
        "a.md",
        &format!("# a\n\n## {}\n{}", long(N_BYTES), sections(2_000)),
        "bytes in one heading, the limit for one document",
    );
    over("a.md", &format!("# {}\n{}", long(10_000), "## a\nb\n".repeat(10_000)), "bytes of headings above its parts");
    over("a.html", &format!("<title>{}</title><p>a", long(N_BYTES)), "bytes of title");
    over("a.html", &format!("<h1>{}</h1>{}", long(10_000), "<h2>a</h2>b".repeat(9_000)), "bytes of headings above");
    let fields = |n: usize| (0..n).map(|n| format!("\"f{n}\":1")).collect::<Vec<_>>().join(",");
    let map = |name: &str, n: usize| format!("{{\"text\":\"x\",\"{name}\":{{{}}}}}\n{{\"text\":\"y\"}}\n", fields(n));
    over("a.jsonl", &map(&"k".repeat(N_BYTES), 2_000), "line 1: 65536 bytes in the name of a field");
    over("a.jsonl", &map("k", 5_000), "line 1: 4097 fields");
    over("a.jsonl", &format!("{{\"text\":\"x\",\"k\":[{}]}}", "[],".repeat(70_000)), "line 1: ");
    over("a.jsonl", &format!("{{\"id\":\"{}\",\"text\":\"x\"}}", "i".repeat(5_000)), "line 1: 5000 bytes of id");
    over("a.csv", &format!("{}\n{}", "h".repeat(N_BYTES), "x\n".repeat(9_000)), "bytes in the name of a column");
    over("a.csv", &format!("{}\n{}", "h".repeat(4_000), "x\n".repeat(30_000)), "bytes of text");
    let (ids, errors) = check("b.jsonl", &map(&"k".repeat(5_000), 2));
    assert_eq!((ids.len(), errors.len()), (1, 1), "the record alone is refused: {errors:?}");
}

#[test]
fn what_people_write_is_within_the_budgets() {
    let words = "The moon pulls the sea, and the sun pulls it too. ".repeat(6);
    let sections = |n: usize| (0..n).map(|n| format!("### Section {n} of the part\n\n{words}\n\n")).collect::<String>();
    let columns: Vec<String> = (0..40).map(|n| format!("How often did you do thing {n}?")).collect();
    let vector = ["0.12345"; 4096].join(",");
    for (name, content) in [
        ("a.md", format!("# {words}\n\n## A part\n\n{}", sections(500))),
        ("a.html", format!("{}{}", "<div>".repeat(300), "<table><tr><td>a<td>b</table>".repeat(500))),
        ("a.csv", format!("{}\n{}", columns.join(","), format!("{}\n", ["1"; 40].join(",")).repeat(500))),
        ("a.jsonl", format!("{{\"id\":\"1\",\"text\":\"{words}\",\"embedding\":[{vector}]}}\n").repeat(3)),
    ] {
        let (ids, errors) = check(name, &content);
        assert!(!ids.is_empty() && errors.iter().all(|error| matches!(error, Error::DuplicateId { .. })), "{errors:?}");
    }
}

#[test]
fn code_that_nobody_wrote_costs_its_length_and_is_text_at_least() {
    let junk = |n: usize| {
        let mut state = 1_u32;
        let letters = b"(){}[]<>\"'`;:,.=+-*/\\ \n\tabcifclass def fn";
        let next = move |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(letters[(state >> 16) as usize % letters.len()])
        };
        (0..n).map(next).collect::<String>()
    };
    let nested = |open: &str, n: usize| open.repeat(n);
    for (name, content) in [
        ("deep.rs", format!("fn a() {{ {}{} }}", nested("(", 200_000), nested(")", 200_000))),
        ("deep.c", format!("int a = {}", nested("(", 500_000))),
        ("deep.js", nested("{", 300_000)),
        ("deep.go", nested("func a() {\n", 50_000)),
        ("inside.rs", format!("{}\n{}", nested("mod a {", 50_000), nested("fn a() {\n\n\n\n}\n", 50_000))),
        ("modules.rs", nested("mod a {\n\n\n\n", 50_000)),
        ("classes.py", (0..200).map(|n| format!("{}class A:\n\n\n\n", " ".repeat(n))).collect()),
        ("line.js", nested("function f(){return 1};", 45_000)),
        ("line.py", format!("f({})", nested("a,", 500_000))),
        ("blanks.java", format!("class A {{{}}}", " ".repeat(1 << 20))),
        ("junk.rs", junk(300_000)),
        ("junk.py", junk(300_000)),
        ("junk.ts", junk(100_000)),
        ("junk.cpp", junk(100_000)),
        ("many.rs", nested("fn a() {\n\n\n\n}\n", 300_000)),
        ("sections.rs", nested("fn a() {\n\n\n\n}\n", 60_000)),
        ("names.rs", format!("fn {}() {{\n\n\n\n}}\n", nested("a", 1 << 20))),
        ("named.rs", nested(&format!("impl {} {{\n\n\n\n}}\n", nested("a", 5_000)), 200)),
    ] {
        let (ids, errors) = check(name, &content);
        assert_eq!((ids.len(), errors.len()), (1, 0), "{name}: {errors:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [("bytes.rs", &b"fn a() {}\n\xff\xfe"[..]), ("cut.py", b"def a():\n  '\xe2\x82'")] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let file = walk(&Root { label: "h".into(), path }, &ReadOptions::default()).unwrap().files.remove(0);
        assert!(matches!(read(&file, &ReadOptions::default()), Err(Error::InvalidUtf8 { .. })), "{name}");
        let lossy = ReadOptions { lossy: true, ..ReadOptions::default() };
        assert!(read(&file, &lossy).unwrap().next().unwrap().unwrap().warnings[0].contains("U+FFFD"), "{name}");
    }
}
