//! A collection of which one file was changed, as it is or under checksums that hold again: an error or an answer.
#![no_main]

mod place;

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use cento_engine::{
    At, BudgetTokenizer, ChunkSearch, ContextSettings, Losses, Manifest, Missing, Mode, Nearest, OsFs, Policy,
    RepairOptions, Searcher, SearcherOptions, Strategy,
};
use cento_vector::file;
use libfuzzer_sys::fuzz_target;

use place::Place;

#[derive(Debug, Arbitrary)]
struct Input {
    /// Which of the files.
    file: u8,
    /// Whether checksums are made to hold again.
    is_sealed: bool,
    /// Whether a copy is repaired, too.
    is_repaired: bool,
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
    place: Place,
    /// Every file and its bytes.
    files: Vec<(PathBuf, Vec<u8>)>,
}

static TEMPLATE: LazyLock<Template> = LazyLock::new(|| {
    let place = Place::new();
    std::fs::write(place.notes().join("1.md"), "# Bread\n\nBread is rye and water.\n").unwrap(); // leaves a tombstone
    place.index();
    cento_engine::create_snapshot(&place.collection(), "kept", &OsFs).unwrap();
    let mut files = Vec::new();
    collect(&place.collection(), &mut files);
    files.sort();
    Template { place, files }
});

fn collect(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push((path.clone(), std::fs::read(&path).unwrap()));
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

/// The file with a changed content under a checksum that holds: a manifest, or a container with counts and kind as before.
fn resealed(bytes: &[u8], input: &Input) -> Option<Vec<u8>> {
    if let Ok(sealed) = serde_json::from_slice::<serde_json::Value>(bytes) {
        let mut manifest = serde_json::to_vec(sealed.get("manifest")?).ok()?;
        change(&mut manifest, input);
        return Some(serde_json::from_slice::<Manifest>(&manifest).ok()?.seal());
    }
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
    let _ = cento_engine::snapshots(collection);
    let Ok(searcher) = Searcher::open(collection, SearcherOptions::default()) else { return };
    let filter = cento_engine::Filter::parse("year >= 2020 and tags = \"a\" or day < 2021-01-01").ok();
    for filter in [None, filter] {
        let request = ChunkSearch { mode: Mode::Lexical, filter, ..ChunkSearch::new("moon bread cheese Ada Quist") };
        let _ = searcher.search(&ChunkSearch { explain: cento_engine::Explain::Terms, ..request.clone() });
        let (tokenizer, policy) = (BudgetTokenizer::named("o200k").unwrap(), Policy::default());
        let asked = ContextSettings { strategy: Strategy::Cento, ..ContextSettings::new(120, &tokenizer, &policy) };
        let _ = searcher.context(&request, &asked);
    }
    let mut query = vec![0.0; 32];
    query[0] = 1.0;
    let _ = searcher.nearest(&query, 3, Nearest::Exact);
    let _ = searcher.nearest(&query, 3, Nearest::Graph { ef: 8 });
    let _ = searcher.sample_texts(3);
    let _ = searcher.fields();
    for citation in ["notes/0.md", "notes/1.md#0", "notes/2.md:3-9"] {
        let _ = searcher.get(citation);
        let _ = searcher.links(citation);
    }
}

/// Repairs a copy; then it can be asked, or says why not.
fn repair(template: &Template) {
    let copy = tempfile::tempdir().unwrap();
    let collection = template.place.collection();
    for (path, _) in &template.files {
        let to = copy.path().join(path.strip_prefix(&collection).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(path, to).unwrap();
    }
    for losses in [Losses::Remembered, Losses::Accepted] {
        let options = RepairOptions { vectors: Missing::Refused, losses, ..RepairOptions::default() };
        let _ = cento_engine::repair(copy.path(), &options, &OsFs, &mut |_| {});
    }
    ask(copy.path());
}

fuzz_target!(|input: Input| {
    let template = &*TEMPLATE;
    let (path, bytes) = &template.files[usize::from(input.file) % template.files.len()];
    let changed = match input.is_sealed.then(|| resealed(bytes, &input)).flatten() {
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
    ask(&template.place.collection());
    if input.is_repaired {
        repair(template);
    }
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
});
