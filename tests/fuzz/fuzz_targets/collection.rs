//! A collection of which one file was changed, as it is or under checksums that hold again: an error or an answer.
#![no_main]

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use cento_engine::{At, IndexOptions, Mode, Nearest, OsFs, Root, ChunkSearch, Searcher, SearcherOptions};
use cento_vector::file;
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Input {
    /// Which of the files.
    file: u8,
    /// Whether checksums are made to hold again, where that can be survived.
    is_sealed: bool,
    changes: Vec<Change>,
    /// Bytes cut off the end.
    cut: u16,
}

#[derive(Debug, Arbitrary)]
struct Change {
    at: u32,
    bytes: Vec<u8>,
}

const HEADER_BYTES: usize = file::HEADER_BYTES;

struct Template {
    folder: tempfile::TempDir,
    /// Every file and its bytes.
    files: Vec<(PathBuf, Vec<u8>)>,
}

static TEMPLATE: LazyLock<Template> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    std::fs::create_dir(&notes).unwrap();
    for (n, text) in ["The moon pulls the sea.", "Bread is flour and water.", "Cheese is milk."].iter().enumerate() {
        let text = format!(
            "---\nyear: 202{n}\ntags: [a, b{n}]\nprice: {n}.5\nday: 2020-01-0{}\n---\n# Note {n}\n\n{text}\n",
            n + 1
        );
        std::fs::write(notes.join(format!("{n}.md")), text).unwrap();
    }
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny").to_owned();
    let options = IndexOptions { model: Some(model), graph_rows_min: 1, ..IndexOptions::default() };
    let collection = folder.path().join("collection");
    let index = || {
        let root = Root { label: "notes".to_owned(), path: notes.clone() };
        cento_engine::index(&collection, &[root], &options, &OsFs, &mut |_| {}).unwrap()
    };
    index();
    std::fs::write(notes.join("1.md"), "# Bread\n\nBread is rye and water.\n").unwrap(); // leaves a tombstone
    index();
    let mut files = Vec::new();
    collect(&collection, &mut files);
    files.sort();
    Template { folder, files }
});

fn collect(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
}

fn change(bytes: &mut Vec<u8>, input: &Input) {
    for Change { at, bytes: new } in &input.changes {
        if !bytes.is_empty() {
            let at = *at as usize % bytes.len();
            let n = new.len().min(bytes.len() - at);
            bytes[at..at + n].copy_from_slice(&new[..n]);
        }
    }
    bytes.truncate(bytes.len().saturating_sub(usize::from(input.cut)));
}

/// Whether the reader of this file answers for what it reads. The parts of tantivy trust it, which is what the checksums are for.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap();
    !path.parent().unwrap().ends_with("lexical") || name == "lengths" || name == "analyzer"
}

/// The file with a changed payload, counts and kind as before; nothing if it is no container.
fn resealed(bytes: &[u8], input: &Input) -> Option<Vec<u8>> {
    let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let kind: [u8; 8] = bytes.get(16..24)?.try_into().ok()?;
    let mut payload = bytes.get(HEADER_BYTES..)?.get(..usize::try_from(number(40)?).ok()?)?.to_vec();
    change(&mut payload, input);
    let mut writer = file::Writer::new(Cursor::new(Vec::new()), kind).ok()?;
    writer.write_all(&payload).ok()?;
    Some(writer.finish([number(24)?, number(32)?]).ok()?.into_inner())
}

fn ask(collection: &Path) {
    let _ = cento_engine::status(collection, &At::default());
    let _ = cento_engine::doctor(collection);
    let Ok(searcher) = Searcher::open(collection, SearcherOptions::default()) else { return };
    let request = ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new("moon bread cheese water") };
    let _ = searcher.search(&request);
    let mut query = vec![0.0; 32];
    query[0] = 1.0;
    let _ = searcher.nearest(&query, 3, Nearest::Exact);
    let _ = searcher.nearest(&query, 3, Nearest::Graph { ef: 8 });
    let _ = searcher.sample_texts(3);
}

fuzz_target!(|input: Input| {
    let template = &*TEMPLATE;
    let (path, bytes) = &template.files[usize::from(input.file) % template.files.len()];
    let changed = match (input.is_sealed && is_ours(path)).then(|| resealed(bytes, &input)).flatten() {
        Some(changed) => changed,
        None => {
            let mut changed = bytes.clone();
            change(&mut changed, &input);
            changed
        }
    };
    // A file is never changed in place: others may have it mapped.
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, changed).unwrap();
    ask(&template.folder.path().join("collection"));
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
});
