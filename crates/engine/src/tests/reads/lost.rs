//! Bytes that are lost while they are in use: a file is cut after it was verified, in the middle of queries and under a
//! writer. The answer is the true one or an error that names the file; no commit is made of what was lost; and a
//! collection that is whole again answers again.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use super::{compacted, cut, files, repaired};
use crate::api::{Budget, ContextRequest, GetRequest, ListRequest, SearchRequest, WhyNotRequest};
use crate::tests::random::Random;
use crate::tests::{Place, QuickFs, answers, copied, index_notes};
use crate::{
    At, Cancel, Error, File, Fs, Mode, Result, Searcher, SearcherOptions, Service, ServiceOptions, add_file, adopt,
    delete, describe, doctor, status,
};

const WORDS: [&str; 4] = ["moon of the sea", "9f3 grains", "rye bread", "keeps salt"];

/// Two segments whose files have many pages, and tombstones.
fn notes() -> Place {
    let place = Place::new();
    let mut random = Random::new(7);
    for n in 0..24 {
        let subject = ["moon", "bread", "sea", "rye", "salt"][n % 5];
        let words = (0..900).map(|_| format!("{:03x}", random.below(4096))).collect::<Vec<_>>();
        let paragraphs = words.chunks(60).map(|words| format!("It keeps {subject} and {}.\n\n", words.join(" ")));
        place.write(&format!("note{n:02}.md"), &format!("# Of {subject} {n}\n\n{}", paragraphs.collect::<String>()));
        if n == 15 {
            place.index();
        }
    }
    place.remove("note03.md");
    place.write("note04.md", "# Rewritten\n\nThe moon keeps its grains.\n");
    place.index();
    place
}

/// Everything that is asked of a service, by number.
const N_QUESTIONS: usize = 4 * 5 + 3;

fn asked(service: &Service, question: usize) -> Result<String> {
    let (cancel, words) = (Cancel::default(), WORDS[question % 4]);
    let json = |answer: Result<serde_json::Value>| answer.map(|answer| answer.to_string());
    let value = |answer: serde_json::Result<serde_json::Value>| answer.unwrap();
    let context = ContextRequest { budget: Budget::Auto(400), ..ContextRequest::new(words) };
    json(match question / 4 {
        mode @ 0..=2 => {
            let mode = [Mode::Lexical, Mode::Dense, Mode::Hybrid][mode];
            let search = SearchRequest { mode, k: 50, explain: question % 2 == 0, ..SearchRequest::new(words) };
            service.search("notes", &search, &cancel).map(|answer| value(serde_json::to_value(answer)))
        }
        3 => service.context("notes", &context, &cancel).map(|answer| value(serde_json::to_value(answer))),
        4 => {
            let why_not = WhyNotRequest { id: "notes/note07.md".to_owned(), context };
            service.why_not("notes", &why_not, &cancel).map(|answer| value(serde_json::to_value(answer)))
        }
        _ => match question % 4 {
            0 => service
                .list("notes", &ListRequest::default(), &cancel)
                .map(|answer| value(serde_json::to_value(answer))),
            1 => {
                let get = GetRequest { citation: "notes/note11.md".to_owned() };
                service.get("notes", &get, &cancel).map(|answer| value(serde_json::to_value(answer)))
            }
            _ => service.fields("notes", &cancel).map(|answer| value(serde_json::to_value(answer))),
        },
    })
}

/// The name of a file as errors have it.
fn name_of(file: &Path, collection: &Path) -> String {
    file.strip_prefix(collection).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn files_that_are_cut_in_the_middle_of_queries_change_no_answer_and_end_nothing() {
    const ROUNDS: usize = 400;
    const ASKERS: usize = 3;
    let place = notes();
    let collection = place.collection();
    let options = ServiceOptions {
        collections: BTreeMap::from([("notes".to_owned(), collection.clone())]),
        threads: 1,
        ..ServiceOptions::default()
    };
    let service = Service::new(options).unwrap();
    let truth: Vec<String> = (0..N_QUESTIONS).map(|question| asked(&service, question).unwrap()).collect();
    let all = files(&collection.join("segments"));
    // What is cut, with the name that errors have for it; errors may name what was cut before.
    let names: Mutex<Vec<String>> = Mutex::default();
    let (n_asked, n_errors, is_over) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let ask = |question: usize| {
        // Files that may be the reason: those that are cut while it is asked, and one that was mended just before.
        let first = names.lock().unwrap().len().saturating_sub(2);
        match asked(&service, question) {
            Ok(answer) => {
                assert_eq!(answer, truth[question], "question {question} after {:?}", names.lock().unwrap().last())
            }
            Err(error) => {
                let (said, names) = (describe(&error), names.lock().unwrap());
                assert!(names[first..].iter().any(|name| said.contains(name)), "{:?}: {said}", &names[first..]);
                n_errors.fetch_add(1, SeqCst);
            }
        }
    };
    std::thread::scope(|scope| {
        for asker in 0..ASKERS {
            let (ask, n_asked, is_over) = (&ask, &n_asked, &is_over);
            scope.spawn(move || {
                let mut random = Random::new(asker as u64);
                while !is_over.load(SeqCst) {
                    ask(random.below(N_QUESTIONS));
                    n_asked.fetch_add(1, SeqCst);
                }
            });
        }
        let _over = Over(&is_over);
        let mut random = Random::new(99);
        // Spins rather than sleeps: the cut shall fall anywhere within a question.
        let wait = |n: usize, spins: usize| {
            let until = n_asked.load(SeqCst) + n;
            while n_asked.load(SeqCst) < until && !is_over.load(SeqCst) {
                std::thread::yield_now();
            }
            (0..spins).for_each(|_| std::hint::spin_loop());
        };
        for round in 0..ROUNDS {
            let file = &all[round % all.len()];
            let n_bytes = file.metadata().unwrap().len() as usize;
            let kept = place.folder.path().join("kept");
            std::fs::copy(file, &kept).unwrap();
            wait(1 + random.below(3), random.below(200_000));
            names.lock().unwrap().push(name_of(file, &collection));
            cut(file, if round % 3 == 0 { 0 } else { random.below(n_bytes) as u64 });
            wait(ASKERS + random.below(6), 0);
            std::fs::rename(&kept, file).unwrap();
        }
    });
    let n_errors = n_errors.load(SeqCst);
    println!("{ROUNDS} cuts, {} answers, {n_errors} of them errors", n_asked.load(SeqCst));
    assert!(n_errors > ROUNDS / 2 && n_errors < n_asked.load(SeqCst), "{n_errors}");
    (0..N_QUESTIONS).for_each(|question| assert_eq!(asked(&service, question).unwrap(), truth[question]));
}

/// Ends the askers, even where a cut fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn what_was_read_and_is_lost_is_an_error_of_every_verb_of_an_open_collection() {
    let place = notes();
    let mut n_errors = 0;
    for file in files(&place.collection().join("segments")) {
        let copy = copied(&place.collection());
        let name = name_of(&file, &place.collection());
        let before = answers(&place.searcher(), &WORDS);
        let searcher = Searcher::open(copy.path(), SearcherOptions::default()).unwrap();
        assert_eq!(answers(&searcher, &WORDS), before);
        cut(&copy.path().join(&name), 0);
        for request in WORDS.map(crate::ChunkSearch::new) {
            let error = describe(&searcher.search(&request).unwrap_err());
            assert!(error.contains(&name) && error.contains("cut short"), "{name}: {error}");
            n_errors += 1;
        }
        std::fs::copy(&file, copy.path().join(&name)).unwrap();
        searcher.search(&crate::ChunkSearch::new("moon")).expect_err("what came back may have been missed meanwhile");
        assert_eq!(answers(&Searcher::open(copy.path(), SearcherOptions::default()).unwrap(), &WORDS), before);
    }
    assert!(n_errors > 100, "{n_errors}");
}

/// A file system that cuts a file when an operation of this number begins.
#[derive(Debug)]
struct Cutting<'a> {
    file: &'a Path,
    n_bytes: u64,
    at: usize,
    n: AtomicUsize,
}

impl Cutting<'_> {
    fn step(&self) {
        if self.n.fetch_add(1, SeqCst) == self.at {
            cut(self.file, self.n_bytes);
        }
    }
}

impl Fs for Cutting<'_> {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.step();
        QuickFs.create(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.step();
        QuickFs.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        QuickFs.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step();
        QuickFs.rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step();
        QuickFs.sync_dir(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        QuickFs.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        QuickFs.remove_dir(path)
    }
}

fn answers_at(collection: &Path) -> String {
    answers(&Searcher::open(collection, SearcherOptions::default()).unwrap(), &WORDS)
}

/// A writer of the collection at a folder.
type Writer<'a> = (&'a str, &'a dyn Fn(&Path, &dyn Fs) -> Result<()>);

#[test]
fn no_commit_is_made_of_what_was_lost_while_it_was_written() {
    let place = notes();
    let options = place.options();
    let other = Place::new();
    other.write("extra.md", "# Extra\n\nThe moon is far.\n");
    let writers: [Writer<'_>; 5] = [
        ("compact", &|collection, fs| {
            let options = crate::CompactOptions { merge: crate::Merge::All, graph_rows_min: 1, ..Default::default() };
            crate::compact(collection, &options, fs, &mut |_| {}).map(drop)
        }),
        ("delete", &|collection, fs| delete(collection, &["notes/note09.md".to_owned()], fs).map(drop)),
        ("index", &|collection, fs| {
            let root = crate::Root { label: "more".to_owned(), path: other.notes() };
            crate::index(collection, &[root], &options, fs, &mut |_| {}).map(drop)
        }),
        ("add", &|collection, fs| {
            let text = b"# Extra\n\nThe moon is far.\n";
            add_file(collection, "extra.md", text, &options, fs, &mut |_| {}).map(drop)
        }),
        ("adopt", &|collection, fs| {
            let into = collection.with_extension("joined");
            adopt(&into, &[collection.to_owned()], fs, &mut |_| {}).map(drop)?;
            assert_eq!(doctor(&into).unwrap().checks.iter().find_map(|check| check.problem.clone()), None);
            std::fs::remove_dir_all(&into).unwrap();
            Ok(())
        }),
    ];
    for (name, write) in writers {
        let mut random = Random::new(5);
        let (mut n_errors, mut n_cuts) = (0, 0);
        let expected = {
            let copy = copied(&place.collection());
            write(copy.path(), &QuickFs).unwrap();
            answers_at(copy.path())
        };
        for at in 0.. {
            let mut is_beyond = false;
            for round in 0..3 {
                let copy = copied(&place.collection());
                let before = answers_at(copy.path());
                let all = files(&copy.path().join("segments"));
                let file = all[random.below(all.len())].clone();
                let kept = std::fs::read(&file).unwrap();
                let n_bytes = if round == 0 { 0 } else { random.below(kept.len()) as u64 };
                let fs = Cutting { file: &file, n_bytes, at, n: AtomicUsize::new(0) };
                let ended = write(copy.path(), &fs);
                let when = format!("{name}, operation {at}, {} cut to {n_bytes}", file.display());
                is_beyond = fs.n.into_inner() <= at;
                if file.exists() {
                    std::fs::write(&file, &kept).unwrap();
                }
                match ended {
                    Ok(()) => assert_eq!(answers_at(copy.path()), expected, "{when}"),
                    Err(error) => {
                        let said = describe(&error);
                        assert!(said.contains(&name_of(&file, copy.path())), "{when}: {said}");
                        assert_eq!(answers_at(copy.path()), before, "{when}: nothing has changed");
                        n_errors += 1;
                    }
                }
                assert!(doctor(copy.path()).unwrap().is_healthy(), "{when}");
                let _ = std::fs::remove_dir_all(copy.path().with_extension("joined"));
                n_cuts += 1;
            }
            if is_beyond {
                break;
            }
        }
        println!("{name}: {n_cuts} cuts, {n_errors} errors");
        assert!(n_errors > 5, "{name}: {n_cuts} cuts, {n_errors} errors");
    }
}

#[test]
fn care_names_a_file_that_is_cut_while_it_looks() {
    let place = notes();
    let all = files(&place.collection().join("segments"));
    let mut random = Random::new(3);
    let (mut n_whole, mut n_named) = (0, 0);
    for round in 0..120 {
        let copy = copied(&place.collection());
        let name = name_of(&all[round % all.len()], &place.collection());
        let file = copy.path().join(&name);
        let n_bytes = random.below(file.metadata().unwrap().len() as usize) as u64;
        let spins = random.below(2_000_000);
        let check = |said: Option<String>| match said {
            None => 0,
            Some(said) if said.contains(&name) => 1,
            Some(said) => panic!("{name} cut to {n_bytes}: {said}"),
        };
        let of_error = |error: &Error| check(Some(describe(error)));
        n_named += std::thread::scope(|scope| {
            let (file, name) = (&file, &name);
            scope.spawn(move || {
                (0..spins).for_each(|_| std::hint::spin_loop());
                match std::fs::File::options().write(true).open(file) {
                    Ok(file) => file.set_len(n_bytes).unwrap(),
                    // A compaction that was quicker has removed it.
                    Err(error) => assert!(round % 3 == 2 && error.kind() == io::ErrorKind::NotFound, "{name}: {error}"),
                }
            });
            match round % 3 {
                0 => match doctor(copy.path()) {
                    Ok(diagnosis) => check(diagnosis.checks.into_iter().filter_map(|check| check.problem).next()),
                    Err(error) => of_error(&error.into()),
                },
                1 => status(copy.path(), &At::Current).map_or_else(|error| of_error(&error.into()), |_| 0),
                _ => compacted(copy.path()).map_or_else(|error| of_error(&error), |()| 0),
            }
        });
        n_whole += 1;
        repaired(copy.path()).unwrap_or_else(|error| panic!("{name} cut to {n_bytes}: {}", describe(&error)));
        assert!(doctor(copy.path()).unwrap().is_healthy(), "{name} cut to {n_bytes}");
    }
    println!("{n_whole} cuts, {n_named} named at once");
    assert!(n_named > 20, "{n_named} of {n_whole}");
}

#[test]
fn a_run_that_is_given_bytes_again_begins_anew() {
    let place = notes();
    let lost = files(&place.collection().join("segments"))[0].clone();
    let kept = std::fs::read(&lost).unwrap();
    cut(&lost, kept.len() as u64 / 2);
    index_notes(&place.notes(), &place.collection(), &place.options(), &QuickFs).unwrap_err();
    std::fs::write(&lost, &kept).unwrap();
    let report = index_notes(&place.notes(), &place.collection(), &place.options(), &QuickFs).unwrap();
    assert_eq!((report.n_added, report.n_changed, report.n_removed), (0, 0, 0));
}
