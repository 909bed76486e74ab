//! Files of a corpus: any bytes are an error or documents whose chunks partition their text, within the budgets that
//! one document has.
#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use cento_corpus::{ChunkConfig, Format, FoundFile, Headers, ReadAs, ReadOptions, Tokens, budget};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    format: u8,
    lossy: bool,
    bytes: &'a [u8],
}

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// A token ends where a word does.
struct Words;

impl Tokens for Words {
    fn ends(&self, text: &str) -> Vec<usize> {
        let ends = text.char_indices().filter(|(_, c)| !c.is_alphanumeric()).map(|(at, c)| at + c.len_utf8());
        ends.chain([text.len()]).collect()
    }
}

fuzz_target!(|input: Input<'_>| {
    let (format, name) = [
        (ReadAs::One(Format::Markdown), "a.md"),
        (ReadAs::One(Format::Text), "a.txt"),
        (ReadAs::One(Format::Html), "a.html"),
        (ReadAs::One(Format::Jsonl), "a.jsonl"),
        (ReadAs::One(Format::Csv), "a.csv"),
        (ReadAs::Beir, "corpus.jsonl"),
        (ReadAs::One(Format::Text), "a.rs"),
        (ReadAs::One(Format::Text), "a.py"),
        (ReadAs::One(Format::Text), "a.ts"),
        (ReadAs::One(Format::Text), "a.c"),
    ][usize::from(input.format) % 10];
    let path = FOLDER.path().join(name);
    std::fs::write(&path, input.bytes).unwrap();
    let options = ReadOptions { lossy: input.lossy, ..ReadOptions::default() };
    let root = cento_corpus::Root { label: "a".to_owned(), path };
    let Ok(walk) = cento_corpus::walk(&root, &ReadOptions { format, ..options.clone() }) else { return };
    for file in &walk.files {
        read(file, &options);
    }
});

fn read(file: &FoundFile, options: &ReadOptions) {
    let Ok(documents) = cento_corpus::read(file, options) else { return };
    for document in documents.filter_map(Result::ok) {
        let config = ChunkConfig::default();
        let chunks = cento_corpus::chunk(&document, &config, &Words);
        let text: String = chunks.iter().map(|chunk| &document.text[chunk.span.clone()]).collect();
        assert_eq!(text, document.text);
        let headers = Headers::new(&document, config.header);
        let n_out = text.len() + chunks.iter().map(|chunk| headers.of(chunk).len()).sum::<usize>();
        let per_byte = budget::TEXT_PER_BYTE_MAX + budget::HEADERS_PER_BYTE_MAX;
        assert!(n_out as u64 <= file.n_bytes * per_byte + 2 * budget::FREE_BYTES, "{n_out} of {}", file.n_bytes);
        for link in &document.links {
            assert!(document.text.get(link.start..link.end).is_some() && !link.target.is_empty());
            assert!(link.target.len() <= budget::TARGET_BYTES_MAX);
        }
        assert!(document.links.len() <= budget::LINKS_MAX);
        let longest = document.sections.iter().map(|section| section.heading.len()).max().unwrap_or(0);
        assert!(longest as u64 <= budget::HEADING_BYTES_MAX && document.title.len() as u64 <= budget::HEADING_BYTES_MAX);
        assert!(document.blocks.len() as u64 <= budget::BLOCKS_MAX && document.metadata.len() as u64 <= budget::FIELDS_MAX);
        assert!(document.metadata.keys().all(|name| name.len() as u64 <= budget::NAME_BYTES_MAX));
    }
}
