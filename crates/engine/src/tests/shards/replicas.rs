//! Replicas: whichever of them answers, and whatever the others do, an answer is that of the whole or an error that
//! names the shard.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Answers, contexts, cut, documents, options, searches, whole};
use crate::source::local::Local;
use crate::source::remote::carrier::{Carrier, Uncarried};
use crate::source::remote::served;
use crate::source::replicas::Replicas;
use crate::source::seam::Source;
use crate::tests::{Place, QuickFs, index_notes};
use crate::{
    At, Cancel, ChunkSearch, Error, HeaderStyle, IndexOptions, Pooling, SearchResponse, Searcher, SearcherOptions,
};

/// The way a server treats calls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Does {
    Answers,
    /// Nothing is there.
    Fails,
    /// It takes calls and never answers.
    Hangs,
    /// It says things that cannot be of what was asked.
    Lies,
    /// It says that it has more than it has.
    Counts,
    /// It takes its time to say what it has.
    Describes,
}

/// A server in this process.
#[derive(Debug)]
struct Server {
    name: String,
    source: Mutex<Arc<Local>>,
    does: Mutex<Does>,
    n_calls: AtomicUsize,
    n_answers: AtomicUsize,
}

impl Server {
    fn open(name: &str, folder: &Path) -> Arc<Self> {
        let (source, does) = (Mutex::new(local(folder)), Mutex::new(Does::Answers));
        let (n_calls, n_answers) = Default::default();
        Arc::new(Self { name: name.to_owned(), source, does, n_calls, n_answers })
    }

    fn now(&self, does: Does) {
        *self.does.lock().unwrap() = does;
    }

    fn has(&self, folder: &Path) {
        *self.source.lock().unwrap() = local(folder);
    }

    fn n_answers(&self) -> usize {
        self.n_answers.load(Ordering::SeqCst)
    }
}

fn local(folder: &Path) -> Arc<Local> {
    Arc::new(Local::open(folder, &At::Current).unwrap())
}

impl Carrier for Server {
    fn name(&self) -> &str {
        &self.name
    }

    fn carry(&self, call: &[u8], _: usize, stop: &(dyn Fn() -> bool + Sync)) -> Result<Vec<u8>, Uncarried> {
        self.n_calls.fetch_add(1, Ordering::SeqCst);
        let does = *self.does.lock().unwrap();
        match does {
            Does::Fails => return Err(Uncarried::Failed("is not there".to_owned())),
            Does::Hangs => {
                while !stop() {
                    std::thread::yield_now();
                }
                return Err(Uncarried::Stopped);
            }
            Does::Answers | Does::Lies | Does::Counts | Does::Describes => {}
        }
        let source = Arc::clone(&self.source.lock().unwrap());
        let answer = served::answer(&*source, source.describe().clone(), call, &Cancel::default());
        let answer = answer.map_err(|error| match error {
            Error::OtherGeneration { .. } => Uncarried::Changed,
            error => Uncarried::Failed(crate::describe(&error)),
        })?;
        self.n_answers.fetch_add(1, Ordering::SeqCst);
        let mut answer: Value = serde_json::from_slice(&answer).unwrap();
        let said = &mut answer["answer"];
        match (does, said) {
            (Does::Lies, Value::Array(items)) if is_counted(call) => drop(items.pop()),
            (Does::Lies, Value::Object(fields)) if fields.contains_key("totals") => {
                fields["totals"]["n"] = (1_u64 << 40).into();
            }
            (Does::Describes, Value::Object(fields)) if fields.contains_key("n_documents") => {
                let began = Instant::now();
                while began.elapsed() < Duration::from_millis(50) {
                    if stop() {
                        return Err(Uncarried::Stopped);
                    }
                }
            }
            (Does::Counts, Value::Object(fields)) if fields.contains_key("n_documents") => {
                fields["n_documents"] = (fields["n_documents"].as_u64().unwrap() + 1).into();
            }
            _ => {}
        }
        Ok(answer.to_string().into_bytes())
    }
}

/// True for a call whose answer has an item for each that was asked for. Nobody can tell that a list is too short.
fn is_counted(call: &[u8]) -> bool {
    let call: Value = serde_json::from_slice(call).unwrap();
    let counted = ["at", "chunks", "find", "lexical", "named", "nearest", "openings", "texts", "titles"];
    counted.iter().any(|kind| call["call"].get(kind).is_some())
}

fn replicas(servers: &[&Arc<Server>]) -> Arc<Replicas> {
    let name = servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>().join("|");
    let carriers = servers.iter().map(|server| Arc::clone(server) as Arc<dyn Carrier>).collect();
    Arc::new(Replicas::new(name, carriers))
}

/// One request's view of shards.
fn searcher(shards: &[Arc<Replicas>]) -> crate::Result<Searcher> {
    let open = |shard: &Arc<Replicas>| Ok(Arc::new(shard.open(None, &Cancel::default())?) as Arc<dyn Source>);
    let sources = shards.iter().map(open).collect::<crate::Result<_>>()?;
    let names = shards.iter().map(|shard| PathBuf::from(shard.name())).collect();
    Searcher::of_shards(sources, names, SearcherOptions::default())
}

fn found(searcher: &Searcher) -> crate::Result<String> {
    searcher.search(&ChunkSearch::new("the tide and the moon of Town 2")).map(|response| json(&response))
}

fn json(response: &SearchResponse) -> String {
    serde_json::to_string(&response.hits).unwrap()
}

/// The answers of one request after the other, and of all kinds.
fn asked(shards: &[Arc<Replicas>]) -> Answers {
    let searcher = searcher(shards).unwrap();
    let mut answers = Answers::new();
    searches(&searcher, &mut answers);
    contexts(&searcher, &mut answers);
    documents(&searcher, &mut answers);
    answers
}

/// True for the reason of a replica that has something else: in these words, or in those of a call that it refused.
fn is_of(why: &str, words: &str) -> bool {
    why.contains(words) || why.contains("was written while the request was answered")
}

/// A copy of a collection as it is now.
fn copy(from: &Path, to: &Path) -> PathBuf {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => drop(copy(&entry.path(), &to.join(entry.file_name()))),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
    to.to_owned()
}

/// Two servers of one collection.
fn pair(place: &Place) -> (Arc<Server>, Arc<Server>) {
    (Server::open("http://a", &place.collection()), Server::open("http://b", &place.collection()))
}

#[test]
fn whatever_one_of_two_replicas_does_answers_are_those_of_the_whole() {
    let place = whole(Pooling::Plain);
    let mut expected = Answers::new();
    let here = Searcher::open_shards(&[place.collection()], SearcherOptions::default()).unwrap();
    searches(&here, &mut expected);
    contexts(&here, &mut expected);
    documents(&here, &mut expected);
    let folders = cut(&place, 2, Pooling::Plain);
    let open =
        |(at, folder): (usize, &PathBuf)| [0, 1].map(|replica| Server::open(&format!("http://{at}{replica}"), folder));
    let servers: Vec<[Arc<Server>; 2]> = folders.iter().enumerate().map(open).collect();
    let shards: Vec<Arc<Replicas>> = servers.iter().map(|[one, other]| replicas(&[one, other])).collect();
    for does in [Does::Answers, Does::Fails, Does::Lies, Does::Hangs] {
        for odd in [0, 1] {
            servers.iter().for_each(|pair| pair[odd].now(does));
            for ((asked, answer), (_, expected)) in asked(&shards).iter().zip(&expected) {
                assert_eq!(answer, expected, "{does:?} {odd}: {asked}");
            }
            let down = |at: usize| shards[0].status().replicas[at].down.clone();
            // On a busy machine either may be slower than the other now and then, and is not asked for a while.
            let is_at_fault = |at: usize| down(at).is_some_and(|why| !why.contains("slower"));
            let is_found_out = if does == Does::Answers { is_at_fault(odd) } else { down(odd).is_some() };
            assert_eq!((is_found_out, is_at_fault(1 - odd)), (does != Does::Answers, false), "{does:?}");
            servers.iter().for_each(|pair| pair[odd].now(Does::Answers));
        }
    }
    let status = shards[0].status();
    assert!(status.n_hedged > 0 && status.n_hedges_won > 0, "{status:?}");
    assert!(status.replicas.iter().all(|replica| replica.n_answers > 0 && replica.n_failures > 0), "{status:?}");
}

#[test]
fn a_shard_whose_replicas_are_all_gone_is_named_with_each_of_them() {
    let place = whole(Pooling::Plain);
    let (one, other) = pair(&place);
    let shards = [replicas(&[&one, &other])];
    let open = searcher(&shards).unwrap();
    let before = found(&open).unwrap();
    [&one, &other].iter().for_each(|server| server.now(Does::Fails));
    for error in [found(&open).unwrap_err(), searcher(&shards).map(|_| ()).unwrap_err()] {
        let Error::Shard { shard, reason } = &error else { panic!("{error}") };
        assert_eq!(shard, "http://a|http://b");
        assert!(reason.contains("http://a: is not there") && reason.contains("http://b: is not there"), "{reason}");
    }
    other.now(Does::Answers);
    assert_eq!(found(&open).unwrap(), before, "those that rest are asked where nobody else answers");
    assert_eq!(shards[0].status().replicas[1].down, None);
}

#[test]
fn replicas_take_turns_and_one_that_is_back_is_asked_again() {
    let place = whole(Pooling::Plain);
    let (one, other) = pair(&place);
    let shards = [replicas(&[&one, &other])];
    let open = searcher(&shards).unwrap();
    let expected = found(&open).unwrap();
    let each = [&one, &other].map(|server| server.n_answers());
    assert!(each[0].abs_diff(each[1]) <= 2 && each[0] > 2, "{each:?}");
    one.now(Does::Fails);
    assert_eq!(found(&open).unwrap(), expected);
    let (n_calls, n_answers) = (one.n_calls.load(Ordering::SeqCst), one.n_answers());
    assert_eq!(found(&open).unwrap(), expected);
    assert!(one.n_calls.load(Ordering::SeqCst) <= n_calls + 1, "one that is down is not asked by each call");
    one.now(Does::Answers);
    while one.n_answers() == n_answers {
        assert_eq!(found(&open).unwrap(), expected);
    }
    assert_eq!(shards[0].status().replicas[0].down, None);
}

#[test]
fn a_request_sees_one_generation_and_the_newest_that_was_seen() {
    let place = whole(Pooling::Plain);
    let old = copy(&place.collection(), &place.folder.path().join("old"));
    let (one, other) = (Server::open("http://a", &old), Server::open("http://b", &old));
    let shards = [replicas(&[&one, &other])];
    let begun = searcher(&shards).unwrap();
    let before = found(&begun).unwrap();
    place.write("new.md", "# New\n\nThe tide and the moon of Town 2, of a new day.\n");
    place.index_with(&options(&place, Pooling::Plain), &QuickFs).unwrap();
    one.has(&place.collection());
    assert_eq!(found(&begun).unwrap(), before, "the other replica still has the generation that it began with");
    // The newer one is seen when it is its turn, and no request goes back from then on.
    let expected = found(&Searcher::open_shards(&[place.collection()], SearcherOptions::default()).unwrap()).unwrap();
    assert_ne!(before, expected);
    let mut answers: Vec<String> = Vec::new();
    while !answers.contains(&expected) {
        answers.push(found(&searcher(&shards).unwrap()).unwrap());
    }
    for _ in 0..6 {
        answers.push(found(&searcher(&shards).unwrap()).unwrap());
    }
    answers.dedup();
    assert!(answers.len() <= 2 && answers.last() == Some(&expected), "{}", answers.len());
    let status = shards[0].status();
    assert!(status.replicas[1].down.as_ref().is_some_and(|why| is_of(why, "generation")), "{status:?}");
    one.has(&old);
    other.has(&place.collection());
    assert_eq!(found(&searcher(&shards).unwrap()).unwrap(), expected);
    // Restored, both: then there is no newer one to ask for.
    other.has(&old);
    assert_eq!(found(&searcher(&shards).unwrap()).unwrap(), before);
    other.has(&place.collection());
    one.has(&place.collection());
    let error = found(&begun).unwrap_err();
    assert!(matches!(&error, Error::ShardChanged { shard } if shard == "http://a|http://b"), "{error}");
}

#[test]
fn a_generation_that_takes_long_to_describe_is_seen_beside_a_replica_that_has_nothing_new() {
    let place = whole(Pooling::Plain);
    let old = copy(&place.collection(), &place.folder.path().join("old"));
    let (one, other) = (Server::open("http://a", &old), Server::open("http://b", &old));
    let shards = [replicas(&[&one, &other])];
    for _ in 0..40 {
        found(&searcher(&shards).unwrap()).unwrap(); // now it is known when an answer is late
    }
    place.write("new.md", "# New\n\nThe tide and the moon of Town 2, of a new day.\n");
    place.index_with(&options(&place, Pooling::Plain), &QuickFs).unwrap();
    one.now(Does::Describes);
    one.has(&place.collection());
    let expected = found(&Searcher::open_shards(&[place.collection()], SearcherOptions::default()).unwrap()).unwrap();
    let began = Instant::now();
    while found(&searcher(&shards).unwrap()).unwrap() != expected {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", shards[0].status());
    }
}

#[test]
fn servers_that_are_no_replicas_of_each_other_are_refused() {
    let place = whole(Pooling::Plain);
    let folders = cut(&place, 2, Pooling::Plain);
    let elsewhere = |name: &str, options: IndexOptions| {
        let folder = place.folder.path().join(name);
        index_notes(&place.notes(), &folder, &options, &QuickFs).unwrap();
        folder
    };
    let plain = options(&place, Pooling::Plain);
    let bare = elsewhere("bare", IndexOptions { header: Some(HeaderStyle::None), ..plain });
    let refused = |one: &Path, other: &Path, does: Does| {
        let (one, other) = (Server::open("http://a", one), Server::open("http://b", other));
        other.now(does);
        searcher(&[replicas(&[&one, &other])]).map(|_| ()).unwrap_err().to_string()
    };
    for (other, does, words) in [
        (&folders[1], Does::Answers, "generation 1 is not the same in both"),
        (&bare, Does::Answers, "header is"),
        (&folders[0], Does::Counts, "generation 1 is not the same in both"),
    ] {
        let said = refused(&folders[0], other, does);
        assert!(said.contains("http://a") && said.contains("http://b") && said.contains(words), "{said}");
    }
    // One that comes to have something else later is left aside, by name.
    let (one, other) = (Server::open("http://a", &folders[0]), Server::open("http://b", &folders[0]));
    let shards = [replicas(&[&one, &other])];
    let expected = found(&searcher(&shards).unwrap()).unwrap();
    for (folder, words) in [(&folders[1], "another than that of the other replicas"), (&bare, "header is")] {
        other.has(folder);
        for _ in 0..4 {
            assert_eq!(found(&searcher(&shards).unwrap()).unwrap(), expected);
        }
        let down = shards[0].status().replicas[1].down.clone();
        assert!(down.as_ref().is_some_and(|why| is_of(why, words)) || folder == &bare, "{down:?}");
    }
}

#[test]
fn requests_end_while_replicas_go_and_come() {
    let place = whole(Pooling::Plain);
    let (one, other) = pair(&place);
    let shards = [replicas(&[&one, &other])];
    let expected = found(&searcher(&shards).unwrap()).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let (mut n_right, mut n_named) = (0, 0);
                    while !is_over.load(Ordering::SeqCst) {
                        match searcher(&shards).and_then(|searcher| found(&searcher)) {
                            Ok(answer) => {
                                assert_eq!(answer, expected);
                                n_right += 1;
                            }
                            Err(Error::Shard { shard, .. }) if shard == "http://a|http://b" => n_named += 1,
                            Err(error) => panic!("{error}"),
                        }
                    }
                    (n_right, n_named)
                })
            })
            .collect();
        for n in 0..200 {
            let (gone, there) = if n % 2 == 0 { (&one, &other) } else { (&other, &one) };
            there.now(Does::Answers);
            gone.now(if n % 6 < 4 { Does::Fails } else { Does::Lies });
            let n_answers = there.n_answers();
            while there.n_answers() < n_answers + 20 {
                std::thread::yield_now();
            }
        }
        is_over.store(true, Ordering::SeqCst);
        let counted: Vec<(usize, usize)> = asking.into_iter().map(|asking| asking.join().unwrap()).collect();
        let (n_right, n_named) = counted.iter().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        println!("{n_right} requests were answered rightly, {n_named} named the shard");
        assert!(n_right > 10 * n_named && n_right > 50, "{n_right} {n_named}");
    });
}
