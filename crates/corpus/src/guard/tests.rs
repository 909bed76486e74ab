//! The guard, from both sides: children that mean no good, children that must not be able to, and the reader in this
//! process as the oracle of what a child answers.

#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::extraction::{PAGES_NAMED_MAX, REMARK_BYTES_MAX, REMARKS_NAMED_MAX};
use crate::folder::RecordIds;
use crate::format::Format;

/// Tells this executable, started again as a child, what to do instead of the tests.
const ROLE: &str = "CENTO_GUARD_TEST_ROLE";

/// The arguments that run one test and say little beside.
const PLAY: &str = "--exact guard::tests::roles --nocapture --quiet --test-threads=1";

/// A command that runs one test of this executable alone, in the main thread, where a role is played.
fn role(name: &str) -> Vec<OsString> {
    let own = std::env::current_exe().unwrap();
    // The environment of a child is cleared, so that a shell says which role it is.
    let script = format!(
        "{ROLE}={name} exec '{}' {PLAY} | grep -a --line-buffered '^{{'", // what the tests' own frame says is dropped
        own.display()
    );
    shell(&script)
}

fn shell(script: &str) -> Vec<OsString> {
    ["/bin/sh", "-c", script].map(OsString::from).to_vec()
}

/// A part that this executable plays when it is started by a test; by itself it plays none.
#[test]
fn roles() {
    match std::env::var(ROLE).as_deref() {
        Ok("reader") => serve().unwrap(),
        Ok("thief") => thief(),
        Ok(other) => panic!("{other}"),
        Err(_) => {}
    }
}

/// Confines itself, and then tries all that a child must not be able to do; says what it could.
fn thief() {
    let bounds = Bounds { memory_bytes: 1 << 30, processor_seconds: 10 };
    let beside = std::env::var("CENTO_GUARD_TEST_FILE").unwrap();
    let parent = rustix::process::getppid();
    let confinement = confine(&bounds).unwrap();
    let mut could = Vec::new();
    let mut tried = |what: &'static str, did: bool| {
        if did {
            could.push(what);
        }
    };
    tried("open a file", fs::File::open("/etc/passwd").is_ok());
    tried("open a folder", fs::read_dir("/").is_ok());
    tried("see what is there", fs::metadata("/etc/passwd").is_ok());
    tried("read its own memory's map", fs::read("/proc/self/maps").is_ok());
    tried("write beside", fs::write(&beside, "stolen").is_ok());
    tried("remove", fs::remove_file(&beside).is_ok());
    tried(
        "connect",
        std::net::TcpStream::connect("127.0.0.1:1")
            .map_err(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
            .is_err_and(|refused| refused),
    );
    tried("listen", std::net::TcpListener::bind("127.0.0.1:0").is_ok());
    tried("send a datagram", std::net::UdpSocket::bind("127.0.0.1:0").is_ok());
    tried("open a socket of this machine", std::os::unix::net::UnixStream::pair().is_ok());
    tried("start a process", Command::new("/bin/true").stdin(Stdio::null()).spawn().is_ok());
    tried("start a thread", std::thread::Builder::new().spawn(|| {}).is_ok());
    tried("raise a limit", {
        use rustix::process::{Resource, Rlimit, setrlimit};
        setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: Some(64) }).is_ok()
    });
    tried(
        "reach its parent",
        parent.is_some_and(|parent| rustix::process::kill_process(parent, rustix::process::Signal::CONT).is_ok()),
    );
    tried("take memory without end", Vec::<u8>::new().try_reserve(2 << 30).is_ok());
    println!("\n{{\"confinement\":\"{confinement}\",\"could\":\"{}\"}}", could.join(", "));
}

struct Place {
    folder: TempDir,
    names: Vec<String>,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self { folder, names: files.iter().map(|(name, _)| (*name).to_owned()).collect() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn files(&self) -> Vec<FoundFile> {
        self.names.iter().map(|name| found(&self.path(name), name)).collect()
    }
}

fn found(path: &Path, origin: &str) -> FoundFile {
    FoundFile {
        path: path.to_owned(),
        origin: origin.to_owned(),
        format: Format::of_path(path).unwrap_or(Format::Text),
        n_bytes: fs::metadata(path).unwrap().len(),
        record_ids: RecordIds::UnderFile,
    }
}

/// All that comes of a file in a child.
fn in_child(guard: &Guard, file: &FoundFile, options: &ReadOptions) -> (Vec<Result<Document>>, FileDocuments) {
    let ahead = Ahead::start(&guard.command, &guard.limits, file, options).unwrap();
    let mut documents = FileDocuments::of_child(ahead, file.path.clone(), None);
    (documents.by_ref().collect(), documents)
}

/// A child that is a script reads `a.html`; what becomes of it.
#[track_caller]
fn fails(script: &str, limits: Limits) -> Failure {
    let place = Place::new(&[("a.html", "<p>one two three")]);
    let guard = Guard { limits, ..Guard::new(shell(script)) };
    let (mut read, _) = in_child(&guard, &place.files()[0], &ReadOptions::default());
    assert_eq!(read.len(), 1, "{read:?}");
    match read.remove(0) {
        Err(Error::Child { failure, path }) if path == place.path("a.html") => failure,
        other => panic!("{other:?}"),
    }
}

const HELLO: &str = "echo '{\"protocol\":3}'";
const CONFINED: &str = "echo '{\"confined\":{\"landlock\":\"full\",\"system_calls\":\"full\"}}'";

fn quick() -> Limits {
    Limits { processor: Duration::from_secs(1), clock_factor: 1, ..Limits::default() }
}

#[test]
fn children_that_hang_die_flood_or_lie_cost_their_file() {
    let began = Instant::now();
    assert_eq!(fails("exec sleep 1000", quick()), Failure::Time { seconds: 1 });
    assert_eq!(fails(&format!("{HELLO}; {CONFINED}; exec sleep 1000"), quick()), Failure::Time { seconds: 1 });
    // One that closes its outputs and stays, one that leaves another behind, one that never reads.
    assert!(matches!(fails(&format!("{HELLO}; {CONFINED}; exec sleep 1000 >&- 2>&-"), quick()), Failure::Died { .. }));
    assert!(matches!(fails(&format!("{HELLO}; {CONFINED}; sleep 20 & exit 3"), quick()), Failure::Time { .. }));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let dead = fails(&format!("{HELLO}; {CONFINED}; echo 'the \u{1b}[31m end' >&2; exit 7"), quick());
    assert_eq!(dead, Failure::Died { reason: "exit status: 7: the [31m end".to_owned() });
    let killed = fails(&format!("{HELLO}; {CONFINED}; kill -SEGV $$"), quick());
    assert!(matches!(&killed, Failure::Died { reason } if reason.contains("SIGSEGV")), "{killed:?}");
    assert_eq!(
        fails(&format!("{HELLO}; ulimit -S -t 1; while :; do :; done"), Limits { clock_factor: 60, ..quick() }),
        Failure::Processor { seconds: 1 }
    );
    assert!(matches!(fails("/nowhere/at/all", quick()), Failure::Died { .. }));
    assert!(matches!(fails("echo hello", quick()), Failure::Start { .. }));
    assert!(matches!(fails("echo '{\"protocol\":0}'", quick()), Failure::Start { .. }));
    let flood = fails(&format!("{HELLO}; {CONFINED}; exec yes"), Limits { clock_factor: 600, ..quick() });
    assert!(matches!(flood, Failure::Answer { .. }), "{flood:?}");
    let line = format!("{HELLO}; {CONFINED}; yes | tr -d '\\n'");
    let flood = fails(&line, Limits { clock_factor: 600, ..quick() });
    assert!(matches!(flood, Failure::Flood { n_bytes } if n_bytes > 1 << 20), "{flood:?}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let place = Place::new(&[("a.html", "<p>x")]);
    let guard = Guard::new(vec!["/nowhere/cento".into(), "read".into()]);
    let (read, _) = in_child(&guard, &place.files()[0], &ReadOptions::default());
    let error = read[0].as_ref().unwrap_err().to_string();
    assert!(error.contains("a.html: its reader did not start: /nowhere/cento: "), "{error}");
}

#[test]
fn documents_that_cannot_be_are_refused() {
    let document = |change: &str| {
        let section = r#"{"level":0,"heading":"","heading_span":{"start":0,"end":0},"span":{"start":0,"end":4},"parent":null,"anchor":{}}"#;
        let block = r#"{"span":{"start":0,"end":4},"kind":"prose","section":0,"anchor":{}}"#;
        let whole = format!(
            r#"{{"document":{{"id":"a.html","origin":"a.html","format":"html","title":"","text":"tide","kind":"extracted","sections":[{section}],"blocks":[{block}],"metadata":[],"links":[],"warnings":[]}}}}"#
        );
        match change.split_once(" => ") {
            Some((from, to)) => {
                assert!(whole.contains(from), "{from}");
                whole.replacen(from, to, 1)
            }
            None => whole,
        }
    };
    let script = |line: &str| {
        format!("{HELLO}; {CONFINED}; echo '{line}'; echo '{{\"end\":{{\"notes\":[],\"extraction\":null}}}}'")
    };
    let place = Place::new(&[("a.html", "<p>tide")]);
    let guard = Guard { limits: quick(), ..Guard::new(shell(&script(&document("")))) };
    let (read, ended) = in_child(&guard, &place.files()[0], &ReadOptions::default());
    assert_eq!(read[0].as_ref().unwrap().text, "tide");
    assert_eq!(ended.confinement().unwrap().to_string(), "limits full, system calls full, landlock full");
    for change in [
        r#""id":"a.html" => "id":"b.html""#,
        r#""origin":"a.html" => "origin":"/etc/passwd""#,
        r#""text":"tide" => "text":"tid""#,
        r#""text":"tide" => "text":"ti🌊""#,
        r#""text":"tide" => "text":"tides""#,
        r#""parent":null => "parent":0"#,
        r#""sections":[ => "sections":[],"x":["#,
        r#""kind":"prose","section":0 => "kind":"prose","section":1"#,
        r#"{"start":0,"end":4},"kind" => {"start":4,"end":0},"kind""#,
        r#"{"start":0,"end":4},"parent" => {"start":0,"end":9},"parent""#,
        r#""metadata":[] => "metadata":[["a",{"One":{"Float":9218868437227405312}}]]"#,
        r#""metadata":[] => "metadata":[["a",{"One":{"Date":"soon"}}]]"#,
        r#""links":[] => "links":[{"start":3,"end":9,"kind":"doi","target":"x"}]"#,
        r#"{"document" => {"letter""#,
        "{ => [",
    ] {
        let failure = fails(&script(&document(change)), quick());
        assert!(matches!(failure, Failure::Answer { .. }), "{change}: {failure:?}");
    }
    let late = fails(&format!("{HELLO}; echo '{}'", document("")), quick());
    assert!(matches!(late, Failure::Answer { .. }), "{late:?}");
}

#[test]
fn an_end_that_says_more_than_a_report_holds_is_refused() {
    let end = |unread: &str, pages: &str, share: &str| {
        let figures = format!(
            r#""engine":"e","n_pages":1,"pages_without_text":[{pages}],"n_characters":0,"n_unmapped":0,"n_long_words":0,"n_tables":0,"n_images":0,"completeness":{share},"unread":[{unread}]"#
        );
        format!(r#"{HELLO}; {CONFINED}; echo '{{"end":{{"notes":[],"extraction":{{{figures}}}}}}}'"#)
    };
    let place = Place::new(&[("a.html", "<p>tide")]);
    let guard = |script: String| Guard { limits: quick(), ..Guard::new(shell(&script)) };
    let (_, ended) = in_child(&guard(end("\"page 1\"", "1", "0.5")), &place.files()[0], &ReadOptions::default());
    assert_eq!(ended.extraction().unwrap().unread, ["page 1"]);
    let many = |one: &str, n: usize| vec![one; n].join(",");
    for script in [
        end(&many("\"page 1\"", REMARKS_NAMED_MAX + 2), "", "null"),
        end(&format!("\"{}\"", "x".repeat(REMARK_BYTES_MAX + 1)), "", "null"),
        end("", &many("1", PAGES_NAMED_MAX + 1), "null"),
        end("", "", "1.5"),
    ] {
        let failure = fails(&script, quick());
        assert!(matches!(failure, Failure::Answer { .. }), "{failure:?}");
    }
}

/// The text of what a role said on stdout.
fn played(name: &str, file: &Path) -> String {
    let command = role(name);
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]).env("CENTO_GUARD_TEST_FILE", file);
    String::from_utf8(child.output().unwrap().stdout).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_confined_process_can_do_nothing_but_read_and_answer() {
    let place = Place::new(&[("beside", "mine")]);
    let said = played("thief", &place.path("beside"));
    let said: serde_json::Value = serde_json::from_str(said.trim()).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    assert_eq!(said["could"], "", "{said}");
    assert!(said["confinement"].as_str().unwrap().contains("system calls full"), "{said}");
    assert_eq!(fs::read_to_string(place.path("beside")).unwrap(), "mine");
}

#[cfg(target_os = "linux")]
#[test]
fn a_parent_that_is_killed_leaves_no_child() {
    let place = Place::new(&[]);
    let (pid, pipe) = (place.path("pid"), place.path("pipe"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Held open here, so that the child's input does not end with its parent.
    let _input = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let own = std::env::current_exe().unwrap();
    let script = format!(
        "{ROLE}=reader '{}' {PLAY} < '{}' & echo $! > '{}'; wait",
        own.display(),
        pipe.display(),
        pid.display()
    );
    let mut parent = Command::new("/bin/sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    // It has greeted: from here on it ends with its parent.
    let mut greeting = std::io::BufReader::new(parent.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("protocol") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut greeting, &mut line).unwrap() > 0, "no greeting");
    }
    let child = || fs::read_to_string(&pid).ok()?.trim().parse().ok();
    let child: i32 = std::iter::repeat_with(child).find_map(|child| child).unwrap();
    assert!(Path::new(&format!("/proc/{child}")).exists());
    parent.kill().unwrap();
    parent.wait().unwrap();
    let began = Instant::now();
    let is_there = || {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while is_there() {
        assert!(began.elapsed() < Duration::from_secs(30), "it is there still");
        std::thread::yield_now();
    }
}

/// Holds what a child answers against what this process reads.
#[track_caller]
fn check(file: &FoundFile, options: &ReadOptions) {
    let guard = Guard::new(role("reader"));
    let (read, ended) = in_child(&guard, file, options);
    let told = |error: &Error| match error {
        Error::Io { source, .. } => source.to_string(),
        error => error.to_string(),
    };
    let (oracle, notes) = match crate::read::read(file, options) {
        Err(error) => (vec![Err(error)], Vec::new()),
        Ok(mut documents) => (documents.by_ref().collect(), documents.notes()),
    };
    assert_eq!(read.len(), oracle.len(), "{read:?}");
    for (read, oracle) in read.iter().zip(&oracle) {
        match (read, oracle) {
            (Ok(read), Ok(oracle)) => assert_eq!(read, oracle),
            (Err(read), Err(oracle)) => assert_eq!(told(read), told(oracle)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ended.notes(), notes);
    assert!(ended.confinement().is_some());
}

#[test]
fn a_child_reads_what_this_process_reads() {
    let long =
        format!("{{\"_id\": \"a\", \"text\": \"{}\", \"n\": 0.1, \"d\": \"2020-05-17\"}}\n", "tide ".repeat(30_000));
    let place = Place::new(&[
        (
            "a.html",
            "<title>T</title><meta name=date content=2020-05-17><h1>A &amp; B</h1><p>x<a href=y>z</a><table><tr><td>1",
        ),
        ("empty.html", ""),
        ("b.csv", "name,n\nnut,3\nb\"olt,4\n"),
        ("b.tsv", "name\tn\nnut\t3\n"),
        (
            "c.jsonl",
            "{\"_id\": 1, \"text\": \"a\", \"tags\": [\"x\", 1.5], \"m\": {\"k\": 1e300}}\nno\n{\"text\": \"b\"}\n{\"_id\": \"1\", \"text\": \"c\"}\n",
        ),
        ("d.jsonl", &long),
        (
            "e.md",
            "---\ntitle: E\ndate: 2020-01-01\n---\n# One\n\nSee [two](b.md).\n\n## Two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        ),
        ("f.rs", "use crate::tides;\nfn main() {}\n"),
        ("f.py", "class Tide:\n    def rises(self):\n        one()\n        two()\n        three()\n        four()\n"),
        ("g.html", "<p>\u{0}x"),
    ]);
    fs::write(place.path("h.csv"), b"a\n\xff\n").unwrap();
    let mut files = place.files();
    files.push(found(&place.path("h.csv"), "label/h.csv"));
    files.push(found(&place.path("f.rs"), "label"));
    for file in &files {
        check(file, &ReadOptions::default());
        check(file, &ReadOptions { lossy: true, max_file_bytes: 20, ..ReadOptions::default() });
    }
    fs::remove_file(&files[0].path).unwrap();
    let (read, _) = in_child(&Guard::new(role("reader")), &files[0], &ReadOptions::default());
    assert!(matches!(read[..], [Err(Error::Io { .. })]), "{read:?}");
}

/// The pages and tables of the parsers' own test sets, where they are there.
#[test]
fn a_child_reads_the_fixtures_as_this_process_does() {
    let Some(data) = std::env::var_os("CENTO_DATA") else { return eprintln!("skipped: CENTO_DATA is not set") };
    let root = crate::folder::Root { label: "f".to_owned(), path: Path::new(&data).join("parser_fixtures") };
    let Ok(walk) = crate::folder::walk(&root, &ReadOptions::default()) else {
        return eprintln!("skipped: no fixtures");
    };
    for file in walk.files {
        check(&file, &ReadOptions { lossy: true, ..ReadOptions::default() });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn whatever_a_file_holds_a_child_reads_it_alike(
        text in "(<(h[1-4]|p|b|table|tr|td|a href=x|li)>|</p>|,|\"|\n|: |\\{|\\}|tide|[a-zé🌊 ]{0,9}|\\PC{0,3}){0,60}",
        extension in prop::sample::select(vec!["html", "csv", "jsonl", "md", "txt", "py", "ts"]),
    ) {
        let place = Place::new(&[(&format!("x.{extension}"), &text)]);
        check(&place.files()[0], &ReadOptions::default());
    }
}

#[test]
fn files_come_in_their_order_whoever_reads_them() {
    let page = |n: usize| format!("<h1>{n}</h1><p>{}", "the tide rises ".repeat(300_000));
    let place =
        Place::new(&[("a.md", "# A"), ("b.html", &page(1)), ("c.txt", "c"), ("d.html", &page(2)), ("e.md", "e")]);
    let files = place.files();
    assert!(files[1].n_bytes > crate::format::IN_PROCESS_BYTES_MAX);
    let read = |guard: Option<&Guard>| -> Vec<(String, Vec<Document>, bool)> {
        let all = Reader::new(&files, &ReadOptions::default(), guard).map(|(file, documents)| {
            let mut documents = documents.unwrap();
            let read = documents.by_ref().map(Result::unwrap).collect();
            (file.origin.clone(), read, documents.confinement().is_some())
        });
        all.collect()
    };
    let alone = read(None);
    for n_children in [1, 3] {
        let guarded = read(Some(&Guard { n_children, ..Guard::new(role("reader")) }));
        assert_eq!(guarded.iter().map(|read| read.2).collect::<Vec<_>>(), [false, true, false, true, false]);
        let documents = |read: &[(String, Vec<Document>, bool)]| {
            read.iter().map(|(origin, documents, _)| (origin.clone(), documents.clone())).collect::<Vec<_>>()
        };
        assert!(documents(&guarded) == documents(&alone), "{n_children} children read otherwise");
    }
}

#[test]
fn a_file_that_changes_is_read_again_and_then_named() {
    let place = Place::new(&[("a.html", "<p>one")]);
    let file = &place.files()[0];
    let real = role("reader")[2].to_str().unwrap().to_owned();
    // The first reading is of a file that somebody writes to meanwhile, the second is not.
    let once = format!(
        "[ -s '{0}.done' ] || {{ echo x > '{0}.done'; printf '<p>two, longer' > '{0}'; }}; {real}",
        file.path.display()
    );
    let (read, _) = in_child(&Guard::new(shell(&once)), file, &ReadOptions::default());
    assert_eq!(read.iter().map(|read| read.as_ref().unwrap().text.trim()).collect::<Vec<_>>(), ["two, longer"]);
    let always = format!("printf x >> '{0}'; {real}", file.path.display());
    let (read, _) = in_child(&Guard::new(shell(&always)), file, &ReadOptions::default());
    assert!(matches!(read[..], [Err(Error::Changed { n_times: 3, .. })]), "{read:?}");
}

#[test]
fn memory_has_a_limit_that_is_told() {
    let place = Place::new(&[("a.html", &"<p>x".repeat(500_000))]);
    let limits = Limits { memory_bytes: 64 << 20, memory_per_byte: 0, ..Limits::default() };
    let guard = Guard { limits, ..Guard::new(role("reader")) };
    let (read, _) = in_child(&guard, &place.files()[0], &ReadOptions::default());
    let error = read[0].as_ref().unwrap_err().to_string();
    assert!(error.contains("more than 64 MiB of memory"), "{error}");
}

#[test]
fn a_reader_dropped_in_the_middle_ends_its_children() {
    let place = Place::new(&[("a.md", "a"), ("b.html", &"<p>x".repeat(2_000_000))]);
    let files = place.files();
    let guard = Guard::new(shell("exec sleep 1000"));
    let began = Instant::now();
    let mut reader = Reader::new(&files, &ReadOptions::default(), Some(&guard));
    assert!(reader.next().is_some());
    drop(reader);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

/// A file whose one function is long enough for a section.
const CODE: &str = "fn rises() {\n    one();\n    two();\n    three();\n}\n";

/// The one document of a file, what the report says of it, and if it was read in a child.
fn code_of(place: &Place, name: &str, guard: Option<&Guard>) -> (Result<Document>, Vec<String>, bool) {
    let files = [found(&place.path(name), name)];
    let (_, documents) = Reader::new(&files, &ReadOptions::default(), guard).next().unwrap();
    let mut documents = match documents {
        Ok(documents) => documents,
        Err(error) => return (Err(error), Vec::new(), false),
    };
    let mut read: Vec<_> = documents.by_ref().collect();
    assert_eq!(read.len(), 1, "{read:?}");
    let unread = documents.extraction().map(|extraction| extraction.unread.clone()).unwrap_or_default();
    (read.remove(0), unread, documents.confinement().is_some())
}

#[test]
fn source_code_is_read_by_its_syntax_in_a_child_alone() {
    let place = Place::new(&[("a.rs", CODE), ("empty.rs", ""), ("a.rb", CODE)]);
    let guard = Guard::new(role("reader"));
    let (read, unread, in_child) = code_of(&place, "a.rs", Some(&guard));
    let read = read.unwrap();
    assert_eq!((read.sections[1].heading.as_str(), in_child), ("fn rises", true));
    assert!(read.warnings.is_empty() && unread.is_empty());
    for name in ["empty.rs", "a.rb"] {
        assert!(!code_of(&place, name, Some(&guard)).2, "{name} needs no child");
    }
}

#[test]
fn source_code_whose_child_does_not_end_well_is_plain_text_and_says_so() {
    let place = Place::new(&[("a.rs", CODE), ("many.rs", &"fn a() {\n\n\n\n}\n".repeat(70_000))]);
    fs::write(place.path("b.rs"), b"fn a() {} // \xff").unwrap();
    let guard = |script: &str| Guard { limits: quick(), ..Guard::new(shell(script)) };
    let reader = Guard::new(role("reader"));
    for (name, guard, why) in [
        ("a.rs", Some(&guard(&format!("{HELLO}; {CONFINED}; kill -SEGV $$"))), "its reader died: signal: 11"),
        ("a.rs", Some(&guard("exec sleep 1000")), "its reader was ended: nothing came of it in 1 s"),
        ("a.rs", Some(&guard(&format!("{HELLO}; {CONFINED}; echo '{{}}'"))), "its reader answered what cannot be"),
        ("a.rs", None, "none can be started here"),
        ("many.rs", Some(&reader), "65537 classes and functions, over the limit of 65536"),
    ] {
        let (read, unread, _) = code_of(&place, name, guard);
        let read = read.unwrap();
        assert_eq!(read.text, fs::read_to_string(place.path(name)).unwrap());
        assert_eq!(read.sections.len(), 1);
        assert!(read.warnings[0].starts_with("read as plain text, without its functions and classes: "), "{read:?}");
        assert!(read.warnings[0].contains(why) && unread[0].contains(why), "{why}: {:?} {unread:?}", read.warnings);
        // Without its sections it is what it always was.
        let plain = crate::read::parse(read.text.clone().into_bytes(), name, Format::Text).unwrap();
        assert_eq!((&read.blocks, &read.sections, &read.links), (&plain.blocks, &plain.sections, &plain.links));
    }
    for guard in [None, Some(&reader)] {
        let refused = code_of(&place, "b.rs", guard).0.unwrap_err();
        assert!(matches!(refused, Error::InvalidUtf8 { offset: 13, .. }), "{refused:?}");
    }
}
