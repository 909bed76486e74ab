//! Searches while a writer adds, deletes and compacts, and the server is killed in the middle: no answer is wrong.
//!
//! Each generation that a writer leaves is kept as a snapshot. Every answer says its generation, and is held against
//! what the command line says of that generation afterwards. `CENTO_MIXED_SECONDS` makes it as long as one likes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serving::{Serving, answer};
use crate::support::Place;

/// Seconds of load, unless the environment says otherwise.
const SECONDS: u64 = 8;

/// Answers that are held against their generations in a short run.
const CHECKED: usize = 300;

/// Descriptors that requests and a job hold for a while.
const DESCRIPTORS: usize = 100;

const QUERIES: [&str; 6] =
    ["what moves the sea", "yeast and flour", "stars of word7", "word3 word11", "tide", "nothing of the kind"];
const MODES: [&str; 3] = ["hybrid", "lexical", "dense"];

/// The answers by question, mode and generation.
type Answers = Mutex<BTreeMap<(usize, usize, u64), String>>;

/// Asks until told to stop; a server that is being started anew is asked again.
fn ask(address: &Mutex<String>, stop: &AtomicBool, first: usize, answers: &Answers, answered: &Sender<()>) {
    let mut n = first;
    while !stop.load(Ordering::Relaxed) {
        let (query, mode) = (n % QUERIES.len(), n / QUERIES.len() % MODES.len());
        n += 1;
        let body = json!({"query": QUERIES[query], "mode": MODES[mode], "k": 5}).to_string();
        let to = address.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(said) = said(&to, &body) else { continue };
        assert_eq!(said.status, 200, "{}", said.text());
        let generation = said.json()["generation"].as_u64().unwrap();
        let mut answers = answers.lock().unwrap();
        let known = answers.entry((query, mode, generation)).or_insert_with(|| said.text());
        assert_eq!(*known, said.text(), "two answers of one generation");
        let _ = answered.send(()); // nobody listens at the end
    }
}

/// The answer, unless the server went away before it was whole.
fn said(address: &str, body: &str) -> Option<crate::serving::Answer> {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    let head =
        format!("POST /v1/search HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}", body.len());
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    let whole = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|end| end + 4);
    let said = whole.map(|_| answer(&bytes))?;
    let length: usize = said.header("content-length")?.parse().ok()?;
    (said.body.len() == length).then_some(said)
}

/// The kilobytes and descriptors of a process.
#[cfg(target_os = "linux")]
fn held(serving: &Serving) -> (u64, usize) {
    let of = format!("/proc/{}", serving.child.id());
    let status = std::fs::read_to_string(format!("{of}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    let kib = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    (kib, std::fs::read_dir(format!("{of}/fd")).unwrap().count())
}

#[cfg(not(target_os = "linux"))]
fn held(_: &Serving) -> (u64, usize) {
    (0, 0)
}

/// A writer that does one thing after another, and keeps each generation.
struct Writer<'a> {
    place: &'a Place,
    kept: BTreeMap<u64, String>,
    n_jobs: usize,
    round: usize,
}

impl Writer<'_> {
    fn documents(&self) -> Value {
        let text =
            |n: usize| (0..40).map(|word| format!("word{} ", (self.round * 7 + n * word) % 97)).collect::<String>();
        let one =
            |n: usize| json!({"id": format!("d{}", (self.round * 5 + n) % 60), "text": text(n), "metadata": {"n": n}});
        json!({"documents": (0..12).map(one).collect::<Vec<_>>()})
    }

    fn step(&mut self, serving: &Serving) {
        let (what, body) = match self.round % 5 {
            0 | 1 => ("documents", self.documents()),
            2 => {
                let text = format!("# Note\n\nThe tide of word{} and yeast.\n", self.round);
                self.place.write(&format!("notes/n{}.md", self.round % 4), text);
                ("index", json!({"paths": ["notes"]}))
            }
            3 => ("delete", json!({"filter": format!("n = {}", self.round % 12)})),
            _ => ("compact", json!({"all": self.round % 2 == 0})),
        };
        self.round += 1;
        let job = serving.wrote(what, &body);
        assert_eq!(job["state"], "done", "{what}: {job}");
        self.n_jobs += 1;
        self.keep(job["result"]["generation"].as_u64().unwrap());
    }

    /// Keeps a generation as a snapshot.
    fn keep(&mut self, generation: u64) {
        let place = self.place;
        self.kept.entry(generation).or_insert_with(|| {
            let name = format!("g{generation}");
            let ran = place.run(&["snapshot", "create", &name, "--json"]);
            assert_eq!(ran.code, 0, "{ran:?}");
            name
        });
    }
}

#[test]
fn no_answer_is_wrong_while_a_writer_works_and_is_killed() {
    let seconds = std::env::var("CENTO_MIXED_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    let (place, time) = (Place::indexed(), Duration::from_secs(seconds));
    let start = || Serving::start(&place, &["--writable", "--root", "notes"]);
    let mut serving = start();
    let (address, stop) = (Mutex::new(serving.address.clone()), AtomicBool::new(false));
    let (answers, (sender, answered), mut n_asked) = (Answers::default(), channel(), 0);
    let mut writer = Writer { place: &place, kept: BTreeMap::new(), n_jobs: 0, round: 0 };
    writer.keep(1);
    let mut figures = Vec::new();
    std::thread::scope(|scope| {
        let (address, stop, answers) = (&address, &stop, &answers);
        for first in [0, 5, 11] {
            let sender = sender.clone();
            scope.spawn(move || ask(address, stop, first, answers, &sender));
        }
        let stopped = Stop(stop);
        let (began, mut is_killed, mut next) = (Instant::now(), false, Duration::ZERO);
        let pace = 20 + seconds / 2;
        while began.elapsed() < time {
            writer.step(&serving);
            n_asked += answered.try_iter().count();
            for _ in 0..pace {
                answered.recv_timeout(Duration::from_secs(60)).expect("somebody is answered");
                n_asked += 1;
            }
            if began.elapsed() >= next {
                figures.push((began.elapsed().as_secs(), held(&serving), n_asked));
                next += time / 12;
            }
            if !is_killed && began.elapsed() > time / 2 {
                is_killed = true;
                let id = serving.begun("documents", &writer.documents());
                serving.job(&id);
                serving.child.kill().unwrap(); // SIGKILL
                serving.child.wait().unwrap();
                let status = place.json(&["status"]);
                writer.keep(status["generation"].as_u64().unwrap());
                writer.round += 1;
                serving = start();
                *address.lock().unwrap() = serving.address.clone();
            }
        }
        drop(stopped);
    });
    place.ok(&["doctor"]);
    let answers = answers.into_inner().unwrap();
    check(&writer, &answers, if seconds > SECONDS { usize::MAX } else { CHECKED });
    for (second, (kib, descriptors), asked) in &figures {
        eprintln!("{second:>4} s: {kib} KiB, {descriptors} descriptors, {asked} answers");
    }
    let generations = writer.kept.len();
    eprintln!("{} jobs, {generations} generations, {} answers that differ", writer.n_jobs, answers.len());
    let open: Vec<usize> = figures.iter().map(|(_, (_, descriptors), _)| *descriptors).collect();
    let least = open.iter().min().copied().unwrap_or_default();
    assert!(open.iter().all(|open| *open <= 2 * least + DESCRIPTORS), "descriptors: {open:?}");
}

/// Tells the threads to stop, however the writer ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Holds answers against their generations, `n_checked` of them at least. Between two generations that were kept, there
/// is at most one that a merge took the place of: it answers as that one, but for its number.
fn check(writer: &Writer<'_>, answers: &BTreeMap<(usize, usize, u64), String>, n_checked: usize) {
    assert!(answers.len() > QUERIES.len() * MODES.len(), "{} answers", answers.len());
    let checked: Vec<_> = answers.iter().step_by((answers.len() / n_checked).max(1)).collect();
    let (kept, place) = (&writer.kept, writer.place);
    std::thread::scope(|scope| {
        for part in checked.chunks(checked.len().div_ceil(2)) {
            scope.spawn(move || part.iter().for_each(|(asked, answer)| held_against(place, kept, **asked, answer)));
        }
    });
    eprintln!("{} answers held against their generations", checked.len());
}

fn held_against(place: &Place, kept: &BTreeMap<u64, String>, asked: (usize, usize, u64), answer: &str) {
    let (query, mode, generation) = asked;
    let (kept, name) = kept.range(generation..).next().expect("the last generation was kept");
    let arguments =
        ["search", QUERIES[query], "--mode", MODES[mode], "-k", "5", "--snapshot", name, "--json", "--quiet"];
    let offline = place.run(&arguments).out;
    let offline = offline.replace(&format!("\"generation\":{kept}"), &format!("\"generation\":{generation}"));
    assert_eq!(answer, offline, "generation {generation}, {} {}", MODES[mode], QUERIES[query]);
}
