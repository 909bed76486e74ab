//! Disks that do not give back what was written, and files that are cut short, before and while they are open: an error
//! that names the file and the place in it, never a panic or a signal; and a repair keeps what can be read.

#[cfg(unix)]
mod lost;

use std::fs::File;
use std::path::{Path, PathBuf};

use super::{Place, QuickFs, answers, copied, index_notes};
use crate::{
    At, ChunkSearch, CompactOptions, Error, IndexOptions, Merge, Mode, RepairOptions, Result, Scan, Searcher,
    SearcherOptions, Selection, create_snapshot, delete, describe, doctor, repair, snapshots, status,
};
use cento_collection::testing::ReadFault;

const WORDS: [&str; 2] = ["moon tide bread", "note 7 of rye"];

/// Two segments, tombstones and a snapshot.
fn notes() -> Place {
    let place = Place::new();
    place.write("tides.md", "# Tides\n\nThe moon pulls the sea.\n\n## Spring tides\n\nSun and moon in line.\n");
    place.write("bread.md", "---\ntitle: Bread\n---\nBread is flour and water, and rye in note 7.\n");
    place.index();
    create_snapshot(&place.collection(), "kept", &QuickFs).unwrap();
    place.write("rye.md", "# Rye\n\nRye bread keeps for a week.\n");
    place.remove("tides.md");
    place.index();
    place
}

fn searched(collection: &Path) -> Result<String> {
    let searcher = Searcher::open(collection, SearcherOptions::default())?;
    asked(&searcher)
}

/// The answers of a searcher, or the first error.
fn asked(searcher: &Searcher) -> Result<String> {
    let mut all = String::new();
    for query in WORDS {
        for (mode, scan) in [(Mode::Lexical, Scan::Auto), (Mode::Dense, Scan::Auto), (Mode::Dense, Scan::Exact)] {
            let request = ChunkSearch { mode, scan, ..ChunkSearch::new(query) };
            all += &serde_json::to_string(&searcher.search(&request)?.hits).unwrap();
        }
    }
    for document in searcher.list(&Selection::All)? {
        all += &searcher.get(&document.id)?.text;
    }
    Ok(all)
}

pub(super) fn repaired(collection: &Path) -> Result<crate::RepairReport> {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny").to_owned();
    let index = IndexOptions { model: Some(model), graph_rows_min: 1, threads: 1, ..IndexOptions::default() };
    repair(collection, &RepairOptions { index, ..RepairOptions::default() }, &QuickFs, &mut |_| {})
}

pub(super) fn compacted(collection: &Path) -> Result<()> {
    let options = CompactOptions { merge: Merge::All, graph_rows_min: 1, ..CompactOptions::default() };
    crate::compact(collection, &options, &QuickFs, &mut |_| {}).map(drop)
}

/// Something that reads a collection; its answer, if what it answers with is to stay the same.
type Verb<'a> = (&'a str, &'a dyn Fn(&Path) -> Result<String>);

fn none(done: Result<impl Sized>) -> Result<String> {
    done.map(|_| String::new())
}

/// The file's name, and for one that is read by blocks the place in it.
#[track_caller]
fn check_named(error: &str, file: &Path, collection: &Path, when: &str) {
    let name = file.strip_prefix(collection).unwrap().to_str().unwrap();
    assert!(error.contains(name), "{when}: {name} is named: {error}");
    if name.starts_with("segments/") && !file.is_dir() {
        assert!(error.contains("at byte "), "{when}: the place in {name} is named: {error}");
    }
}

#[test]
fn whatever_read_fails_it_is_an_error_that_names_the_file_and_the_place() {
    let place = notes();
    let verbs: [Verb<'_>; 7] = [
        ("search", &searched),
        ("status", &|collection| none(status(collection, &At::Current).map_err(Error::from))),
        ("snapshots", &|collection| none(snapshots(collection).map_err(Error::from))),
        ("snapshot", &|collection| none(create_snapshot(collection, "more", &QuickFs).map_err(Error::from))),
        ("delete", &|collection| none(delete(collection, &["notes/rye.md".to_owned()], &QuickFs))),
        ("compact", &|collection| none(compacted(collection))),
        ("index", &|collection| none(index_notes(&place.notes(), collection, &place.options(), &QuickFs))),
    ];
    for (name, verb) in verbs {
        let (mut n_errors, mut n) = (0, 0);
        loop {
            let copy = copied(&place.collection());
            let before = searched(copy.path()).unwrap();
            let fault = ReadFault::at(copy.path(), n);
            let ended = verb(copy.path());
            let (failed, when) = (fault.failed(), format!("{name}, read {n}"));
            drop(fault);
            let Some(failed) = failed else { break };
            match ended {
                Ok(answer) => assert!(name != "search" || answer == before, "{when} of {}", failed.display()),
                Err(error) => {
                    check_named(&describe(&error), &failed, copy.path(), &when);
                    assert_eq!(searched(copy.path()).unwrap(), before, "{when}: nothing has changed");
                    n_errors += 1;
                }
            }
            n += 1;
        }
        println!("{name}: {n} reads, {n_errors} errors");
        assert!(n >= 3 && n_errors >= 2, "{name}: {n} reads, {n_errors} errors");
    }
}

#[test]
fn the_doctor_names_what_cannot_be_read_and_a_repair_keeps_the_rest() {
    let place = notes();
    let n_before = status(&place.collection(), &At::Current).unwrap().n_documents;
    let (mut n_whole, mut n) = (0, 0);
    loop {
        let copy = copied(&place.collection());
        let before = answers(&Searcher::open(copy.path(), SearcherOptions::default()).unwrap(), &WORDS);
        let fault = ReadFault::at(copy.path(), n);
        let found = doctor(copy.path());
        let Some(failed) = fault.failed() else { break };
        let when = format!("read {n}, of {}", failed.display());
        match &found {
            Ok(diagnosis) if diagnosis.is_healthy() => check_named(&diagnosis.remarks[0], &failed, copy.path(), &when),
            Ok(diagnosis) => {
                let problems: Vec<&String> =
                    diagnosis.checks.iter().filter_map(|check| check.problem.as_ref()).collect();
                check_named(problems[0], &failed, copy.path(), &when);
            }
            Err(error) => check_named(&describe(error), &failed, copy.path(), &when),
        }
        let is_mended = failed != copy.path().join("snapshots"); // a folder that cannot be listed stays so
        if let (Ok(diagnosis), true) = (&found, is_mended) {
            let report = repaired(copy.path()).unwrap_or_else(|error| panic!("{when}: {}", describe(&error)));
            let after = doctor(copy.path()).unwrap();
            assert!(after.is_healthy(), "{when}: {after:?}");
            let n_lost: u64 = report.losses.iter().map(|loss| loss.n_documents()).sum();
            let searcher = Searcher::open(copy.path(), SearcherOptions::default()).unwrap();
            let n_after = searcher.list(&Selection::All).unwrap().len() as u64 + n_lost;
            let may_answer_again = failed.to_str().unwrap().contains("deletes/");
            assert!(n_after == n_before || may_answer_again, "{when}: {report:?}");
            let is_text = ["documents.table", "sections.table", "chunks.table", "documents.text", "deletes"]
                .iter()
                .any(|name| failed.to_str().unwrap().contains(name));
            assert!(n_lost == 0 || is_text, "{when}: {report:?}, {diagnosis:?}");
            if !is_text {
                assert_eq!(answers(&searcher, &WORDS), before, "{when}");
                n_whole += 1;
            }
        }
        n += 1;
    }
    println!("{n} reads failed, {n_whole} repairs lost nothing");
    assert!(n > 50 && n_whole > 20, "{n} {n_whole}");
}

/// All files of a collection, but those that nobody reads.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => files.push(path),
        }
    }
    files.retain(|file| file.metadata().unwrap().len() > 0);
    files.sort();
    files
}

/// Lengths to cut a file to.
fn cuts(n_bytes: u64) -> Vec<u64> {
    let mut cuts = vec![0, 1, 63, 64, 65, n_bytes / 2, 4095, 4096, n_bytes.saturating_sub(9), n_bytes - 1];
    cuts.retain(|&cut| cut < n_bytes);
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

pub(super) fn cut(file: &Path, n_bytes: u64) {
    File::options().write(true).open(file).unwrap().set_len(n_bytes).unwrap();
}

#[test]
fn a_file_that_was_cut_before_it_is_opened_is_an_error_and_repaired() {
    let place = notes();
    let before = searched(&place.collection()).unwrap();
    let mut n_cuts = 0;
    for file in files(&place.collection()) {
        for n_bytes in cuts(file.metadata().unwrap().len()) {
            let copy = copied(&place.collection());
            let name = file.strip_prefix(place.collection()).unwrap();
            let when = format!("{} cut to {n_bytes}", name.display());
            if name.extension().is_some_and(|extension| extension == "json")
                && n_bytes + 1 == file.metadata().unwrap().len()
            {
                continue; // the line's end
            }
            cut(&copy.path().join(name), n_bytes);
            match searched(copy.path()) {
                Ok(answer) => assert_eq!(answer, before, "{when}"),
                Err(error) => assert!(describe(&error).contains(name.to_str().unwrap()), "{when}: {error}"),
            }
            let diagnosis = doctor(copy.path()).unwrap();
            let is_current = !name.starts_with("segments/1-0") || !diagnosis.segments.iter().all(|s| s.name != "1-0");
            assert!(!diagnosis.is_healthy() || !is_current || name.starts_with("manifests/1.json"), "{when}");
            repaired(copy.path()).unwrap_or_else(|error| panic!("{when}: {}", describe(&error)));
            assert!(doctor(copy.path()).unwrap().is_healthy(), "{when}");
            n_cuts += 1;
        }
    }
    println!("{n_cuts} cuts");
    assert!(n_cuts > 150, "{n_cuts}");
}

#[test]
fn a_file_that_is_cut_while_it_is_open_is_an_error_that_names_it() {
    let place = notes();
    let before = searched(&place.collection()).unwrap();
    let (mut n_cuts, mut n_errors) = (0, 0);
    for file in files(&place.collection().join("segments")) {
        for n_bytes in cuts(file.metadata().unwrap().len()) {
            for is_read_before in [false, true] {
                let copy = copied(&place.collection());
                let name = file.strip_prefix(place.collection()).unwrap();
                let when = format!("{} cut to {n_bytes}, read before: {is_read_before}", name.display());
                let searcher = Searcher::open(copy.path(), SearcherOptions::default()).unwrap();
                if is_read_before {
                    assert_eq!(asked(&searcher).unwrap(), before);
                }
                cut(&copy.path().join(name), n_bytes);
                match asked(&searcher) {
                    Ok(answer) => assert_eq!(answer, before, "{when}"),
                    Err(error) => {
                        let name = name.to_str().unwrap();
                        assert!(describe(&error).contains(name), "{when}: {}", describe(&error));
                        n_errors += 1;
                    }
                }
                n_cuts += 1;
            }
        }
    }
    println!("{n_cuts} cuts, {n_errors} errors");
    assert!(n_errors > 200 && n_errors > n_cuts * 9 / 10, "{n_cuts} cuts, {n_errors} errors");
}
