//! Laws of the whole crate, over arbitrary texts and over real files, and a tokenizer to hold them against.

mod archives;
mod code;
mod documents;
mod hostile;
mod passwords;

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::*;

/// A token is a run of letters and digits, four at most, or one other character that is no white space.
pub(crate) struct Words;

impl Tokens for Words {
    fn ends(&self, text: &str) -> Vec<usize> {
        let mut ends: Vec<usize> = Vec::new();
        let mut in_word = false;
        for (at, character) in text.char_indices() {
            let end = at + character.len_utf8();
            match ends.last_mut() {
                Some(last) if in_word && character.is_alphanumeric() => *last = end,
                _ if !character.is_whitespace() => ends.push(end),
                _ => {}
            }
            in_word = character.is_alphanumeric();
        }
        ends
    }
}

/// Every byte is a token, and so is every end of text: pieces weigh more alone than together, and tokens end inside
/// characters.
struct Bytes;

impl Tokens for Bytes {
    fn ends(&self, text: &str) -> Vec<usize> {
        (1..=text.len()).chain((!text.is_empty()).then_some(text.len())).collect()
    }
}

/// Checks every law of a document and its chunks.
#[track_caller]
fn check_laws(document: &Document, config: &ChunkConfig, tokens: &dyn Tokens) {
    let text = &document.text;
    check_partition(text, document.blocks.iter().map(|block| block.span.clone()));
    check_sections(document);
    let chunks = chunk(document, config, tokens);
    check_partition(text, chunks.iter().map(|chunk| chunk.span.clone()));
    for chunk in &chunks {
        let content = &text[chunk.span.clone()];
        let header = header(document, chunk, config.header);
        assert_eq!(chunk.n_tokens as usize, crate::piece::count(content, tokens));
        assert_eq!(
            chunk.hidden,
            !content.chars().any(char::is_alphanumeric) || is_front_matter(document, chunk),
            "{content:?}"
        );
        assert!(header.is_empty() || header.ends_with('\n'));
        let n_tokens = chunk.n_tokens as usize + tokens.ends(&header).len();
        let fits = n_tokens <= config.window_tokens || content.chars().count() == 1;
        assert!(
            config.size == ChunkSize::Document || chunk.hidden || fits,
            "{n_tokens} tokens in {header:?} {content:?}"
        );
        check_boundaries(document, chunk);
    }
}

fn is_front_matter(document: &Document, chunk: &Chunk) -> bool {
    document.blocks.iter().any(|block| block.kind == BlockKind::Hidden && block.span == chunk.span)
}

#[track_caller]
fn check_partition(text: &str, spans: impl Iterator<Item = std::ops::Range<usize>>) {
    let mut at = 0;
    for span in spans {
        assert!(span.start == at && span.end > at, "{span:?} after {at}");
        assert!(text.is_char_boundary(span.end), "{span:?}");
        at = span.end;
    }
    assert_eq!(at, text.len());
}

#[track_caller]
fn check_sections(document: &Document) {
    assert_eq!((document.sections[0].span.clone(), document.sections[0].level), (0..document.text.len(), 0));
    for (index, section) in document.sections.iter().enumerate().skip(1) {
        let parent = section.parent.unwrap() as usize;
        let around = &document.sections[parent];
        assert!(parent < index && around.level < section.level);
        assert!(around.span.start <= section.span.start && section.span.end <= around.span.end);
        assert!(
            document.text.get(section.span.clone()).is_some()
                && document.text.get(section.heading_span.clone()).is_some()
        );
        if let Some(before) = document.sections[..index].iter().rfind(|before| before.parent == section.parent) {
            assert!(before.span.end <= section.span.start, "siblings do not overlap");
        }
    }
    for block in &document.blocks {
        let section = &document.sections[block.section as usize].span;
        assert!(section.start <= block.span.start && block.span.end <= section.end);
    }
}

/// A chunk may begin in the bare headings around its section, and in nothing else outside it.
#[track_caller]
fn check_boundaries(document: &Document, chunk: &Chunk) {
    let section = &document.sections[chunk.section as usize];
    assert!(chunk.span.end <= section.span.end);
    for block in &document.blocks {
        let shared = block.span.start.max(chunk.span.start)..block.span.end.min(chunk.span.end);
        if shared.is_empty() || shared.start >= section.span.start {
            continue;
        }
        let words = document.text[shared].chars().any(char::is_alphanumeric);
        assert!(block.kind == BlockKind::Heading || !words, "text of another section");
    }
}

fn markdown_like() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("# Heading one\n".to_string()),
        Just("## Two {#id}\n\n".to_string()),
        Just("#### Four with a rather long heading of many words indeed\n".to_string()),
        Just("Setext\n===\n".to_string()),
        Just("```rust\n# not a heading\nfn main() {}\n```\n".to_string()),
        Just("```\nnever closed\n".to_string()),
        Just("| a | b |\n|---|---|\n| 1 | 2 |\n".to_string()),
        Just("- item\n  - nested\n\n    para\n".to_string()),
        Just("> quoted\n> # in\n".to_string()),
        Just("[^1]: note\n\n".to_string()),
        Just("---\n".to_string()),
        Just("+++\n".to_string()),
        Just("title: x\n".to_string()),
        Just("\n".to_string()),
        Just("\r\n".to_string()),
        Just("{{#include x.rs}}\n".to_string()),
        "[a-zé日🎉 .,;!?()\u{301}]{0,80}\n?",
        "\\PC{0,30}\n?",
        any::<String>(),
    ];
    prop::collection::vec(line, 0..24).prop_map(|lines| lines.concat())
}

fn configs() -> impl Strategy<Value = ChunkConfig> {
    let size =
        prop_oneof![(0..60_usize).prop_map(ChunkSize::Target), Just(ChunkSize::Sentence), Just(ChunkSize::Document)];
    let header = prop_oneof![
        Just(HeaderStyle::Structured),
        Just(HeaderStyle::Flat),
        Just(HeaderStyle::Last),
        Just(HeaderStyle::None)
    ];
    (size, 12..120_usize, header).prop_map(|(size, window_tokens, header)| ChunkConfig { size, window_tokens, header })
}

fn formats() -> impl Strategy<Value = (Format, &'static str)> {
    prop_oneof![
        Just((Format::Markdown, "d/guide.md")),
        Just((Format::Text, "d/notes.txt")),
        Just((Format::Text, "d/pep.rst")),
        Just((Format::Text, "d/main.rs")),
        Just((Format::Html, "d/page.html")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_obeys_every_law(text in markdown_like(), config in configs(), (format, origin) in formats(), bytes: bool) {
        let document = parse(text.clone().into_bytes(), origin, format).unwrap();
        if format != Format::Html {
            prop_assert_eq!(&document.text, &text);
        }
        let tokens: &dyn Tokens = if bytes { &Bytes } else { &Words };
        check_laws(&document, &config, tokens);
    }

    #[test]
    fn sentences_are_a_partition(text in markdown_like()) {
        check_partition(&text, sentences(&text).into_iter());
    }

    #[test]
    fn any_rows_obey_every_law(cells in prop::collection::vec(prop::collection::vec("[a-z ,\"\n🎉]{0,60}", 0..4), 1..8), config in configs()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let rows: Vec<String> = cells.iter().map(|row| {
            row.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect::<Vec<_>>().join(",")
        }).collect();
        std::fs::write(&path, rows.join("\n")).unwrap();
        let file = FoundFile { path, origin: "d/t.csv".into(), format: Format::Csv, n_bytes: 0, record_ids: RecordIds::UnderFile };
        for document in read(&file, &ReadOptions::default()).unwrap() {
            check_laws(&document.unwrap(), &config, &Words);
        }
    }
}

fn guide(text: &str) -> Document {
    parse(text.into(), "docs/guide.md", Format::Markdown).unwrap()
}

/// Chunks at a target and window of so many words, marked off by `|`.
#[track_caller]
fn check_chunks(text: &str, target: usize, window_tokens: usize, marked: &str) {
    let document = guide(text);
    let config = ChunkConfig { size: ChunkSize::Target(target), window_tokens, header: HeaderStyle::None };
    let chunks = chunk(&document, &config, &Words);
    let found: Vec<&str> = chunks.iter().map(|chunk| &text[chunk.span.clone()]).collect();
    assert_eq!(found.join("¦"), marked);
}

#[test]
fn chunks_end_at_sections_and_bare_headings_join_what_follows() {
    check_chunks(
        "# A\n\n## B\n\nOne two.\n\n## C\n\nThree four.\n\n## D\n",
        20,
        100,
        "# A\n\n## B\n\nOne two.\n\n¦## C\n\nThree four.\n\n¦## D\n",
    );
}

#[test]
fn chunks_end_at_paragraphs_when_half_full_and_at_sentences_else() {
    let marked = "A b c d e.\n\n¦F g h. I j k.\n\n¦Ll mm. N o. ¦P q r s t.\n";
    check_chunks(&marked.replace('¦', ""), 8, 100, marked);
}

#[test]
fn a_small_last_piece_joins_the_chunk_before() {
    check_chunks("A b c d e f g h i j k l m n o. P q.", 16, 100, "A b c d e f g h i j k l m n o. P q.");
}

#[test]
fn tables_and_fences_stay_whole_while_they_fit_the_window() {
    let fence = "```\na b c d\ne f g h\ni j k l\n```\n";
    check_chunks(
        &format!("One two three four five.\n\n{fence}"),
        8,
        40,
        &format!("One two three four five.\n\n¦{fence}"),
    );
    check_chunks(fence, 12, 14, "```\na b c d\ne f g h\n¦i j k l\n```\n");
}

#[test]
fn a_sentence_is_a_chunk_and_keeps_its_heading() {
    let check = |text: &str, window_tokens, marked: &str| {
        let document = guide(text);
        let config = ChunkConfig { size: ChunkSize::Sentence, window_tokens, header: HeaderStyle::None };
        check_laws(&document, &config, &Words);
        let found: Vec<&str> =
            chunk(&document, &config, &Words).iter().map(|chunk| &text[chunk.span.clone()]).collect();
        assert_eq!(found.join("¦"), marked);
    };
    check("# A\n\nOne two. Three four! Five.\n\nSix.\n", 100, "# A\n\nOne two. ¦Three four! ¦Five.\n\n¦Six.\n");
    check("One two. Three, four five six seven eight.\n", 4, "One two. ¦Three, four five ¦six seven eight.\n");
    check("Before it.\n\n```\na b. c\nd e\n```\n", 100, "Before it.\n\n¦```\na b. c\nd e\n```\n");
}

#[test]
fn what_has_no_words_joins_or_hides() {
    check_chunks("a b c.\n\n***\n\n## B\n\n***\n", 20, 100, "a b c.\n\n***\n\n¦## B\n\n***\n");
    let document = guide("***\n\n🎉🎉\n");
    let chunks = chunk(&document, &ChunkConfig::default(), &Words);
    assert_eq!((chunks.len(), chunks[0].hidden), (1, true));
}

#[test]
fn front_matter_is_hidden_at_every_size() {
    let document = guide("---\ntitle: T\n---\n\nbody one. body two.\n");
    for size in [ChunkSize::Target(128), ChunkSize::Document] {
        let chunks = chunk(&document, &ChunkConfig { size, ..ChunkConfig::default() }, &Words);
        let hidden: Vec<bool> = chunks.iter().map(|chunk| chunk.hidden).collect();
        assert_eq!(hidden, [true, false]);
        assert_eq!(chunks[1].anchor.line, Some(5));
        assert_eq!(header(&document, &chunks[1], HeaderStyle::Structured), "# Document: T\n");
    }
}

#[test]
fn a_header_is_cut_from_the_outside_to_half_the_window() {
    let long = "word ".repeat(30);
    let document = guide(&format!("# {long}\n\n## Short one\n\nbody text\n\nmore text\n"));
    let config = ChunkConfig { size: ChunkSize::Target(2), window_tokens: 20, header: HeaderStyle::Structured };
    let chunks = chunk(&document, &config, &Words);
    let last = chunks.last().unwrap();
    assert_eq!((header(&document, last, config.header).as_str(), last.header_skip), ("## Short one\n", 2));
    check_laws(&document, &config, &Words);
}

#[test]
fn a_row_is_a_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "a,b\n1,2\n3,4\n").unwrap();
    let walk = walk(&Root { label: "d".into(), path: folder.path().into() }, &ReadOptions::default()).unwrap();
    let document = read(&walk.files[0], &ReadOptions::default()).unwrap().next().unwrap().unwrap();
    let chunks = chunk(&document, &ChunkConfig::default(), &Words);
    assert_eq!(chunks.iter().map(|chunk| chunk.anchor.row).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert_eq!(header(&document, &chunks[0], HeaderStyle::Structured), "# Document: t\n");
    assert_eq!(&document.text[chunks[1].span.clone()], "a: 3 | b: 4\n");
}

#[test]
fn a_row_of_jsonl_says_its_title_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.jsonl");
    std::fs::write(&path, "{\"id\": \"a\", \"title\": \"T\", \"text\": \"One two three. Four five six.\"}\n").unwrap();
    let file = FoundFile {
        path,
        origin: "d/c.jsonl".into(),
        format: Format::Jsonl,
        n_bytes: 0,
        record_ids: RecordIds::UnderFile,
    };
    let document = read(&file, &ReadOptions::default()).unwrap().next().unwrap().unwrap();
    let headers = |size| {
        let config = ChunkConfig { size, ..ChunkConfig::default() };
        let chunks = chunk(&document, &config, &Words);
        chunks.iter().map(|chunk| (header(&document, chunk, config.header), chunk.section)).collect::<Vec<_>>()
    };
    assert_eq!(headers(ChunkSize::Document), [(String::new(), 1)]);
    assert_eq!(headers(ChunkSize::Target(6)), [(String::new(), 1), ("# Document: T\n".into(), 1)]);
}

#[test]
fn a_heading_in_a_quotation_begins_a_chunk() {
    check_chunks("A b c d e f.\n\n> # Box\n>\n> Inside it.\n", 10, 100, "A b c d e f.\n\n¦> # Box\n>\n> Inside it.\n");
}

#[test]
fn lossy_reading_is_extracted_text_with_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.md");
    std::fs::write(&path, b"# T\n\na \xff b\n").unwrap();
    let file = FoundFile {
        path,
        origin: "d/t.md".into(),
        format: Format::Markdown,
        n_bytes: 0,
        record_ids: RecordIds::UnderFile,
    };
    let strict = read(&file, &ReadOptions::default()).unwrap_err();
    assert!(strict.to_string().contains("invalid UTF-8 at byte 7") && strict.to_string().contains("lossy"));
    let options = ReadOptions { lossy: true, ..ReadOptions::default() };
    let document = read(&file, &options).unwrap().next().unwrap().unwrap();
    assert_eq!(
        (document.kind, document.text.as_str(), document.warnings.len()),
        (TextKind::Extracted, "# T\n\na \u{fffd} b\n", 1)
    );
    assert_eq!(document.blocks[1].anchor.line, Some(3));
    std::fs::write(&file.path, b"# T\n\none \xff two three.\nFour five six.\nSeven eight nine.\n").unwrap();
    let document = read(&file, &options).unwrap().next().unwrap().unwrap();
    let config = ChunkConfig { size: ChunkSize::Target(6), ..ChunkConfig::default() };
    let chunks = chunk(&document, &config, &Words);
    let begins = |chunk: &Chunk| (chunk.anchor.line, chunk.anchor.source.clone());
    assert_eq!(chunks.iter().map(begins).collect::<Vec<_>>(), [(Some(1), None), (Some(4), None), (Some(5), None)]);
}

#[test]
fn an_empty_text_has_no_chunks() {
    let document = guide("");
    assert!(chunk(&document, &ChunkConfig::default(), &Words).is_empty());
    assert_eq!(document.warnings, ["the file is empty"]);
}

/// A folder of the evaluation data, if it is there.
fn data(folder: &str) -> Option<PathBuf> {
    let path = std::env::var_os("CENTO_DATA").map(|data| Path::new(&data).join(folder)).filter(|path| path.is_dir());
    if path.is_none() {
        println!("skipped: CENTO_DATA has no {folder}");
    }
    path
}

/// Reads and cuts everything under a folder of the data; returns the number of documents and chunks.
fn check_folder(folder: &Path) -> (usize, usize) {
    let root = Root { label: "data".into(), path: folder.into() };
    let options = ReadOptions { lossy: true, ..ReadOptions::default() };
    let (mut n_documents, mut n_chunks) = (0, 0);
    for file in walk(&root, &options).unwrap().files {
        let documents = match read(&file, &options) {
            Err(crate::Error::Encrypted { .. } | crate::Error::Unparsed { .. }) => continue,
            documents => documents.unwrap(),
        };
        for document in documents {
            let Ok(document) = document else { continue };
            if document.kind == TextKind::Source {
                assert_eq!(document.text.as_bytes(), std::fs::read(&file.path).unwrap(), "{}", file.origin);
            }
            check_laws(&document, &ChunkConfig::default(), &Words);
            n_documents += 1;
            n_chunks += chunk(&document, &ChunkConfig::default(), &Words).len();
        }
    }
    (n_documents, n_chunks)
}

#[test]
fn the_rust_book_obeys_every_law() {
    let Some(folder) = data("rust_book") else { return };
    let (n_documents, n_chunks) = check_folder(&folder);
    println!("{n_documents} documents, {n_chunks} chunks");
    assert!(n_documents > 100 && n_chunks > 10 * n_documents);
}

#[test]
fn no_parser_fixture_breaks_a_reader() {
    let Some(folder) = data("parser_fixtures") else { return };
    let (n_documents, n_chunks) = check_folder(&folder);
    println!("{n_documents} documents, {n_chunks} chunks");
    assert!(n_documents > 20 && n_chunks > n_documents);
}
