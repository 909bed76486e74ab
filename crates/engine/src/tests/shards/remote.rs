//! Shards on other machines: every call and every answer goes through the words that servers have for each other.
//! Whatever a shard says, the answer is right or an error that names it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{Answers, contexts, cut, documents, searches, whole};
use crate::source::local::Local;
use crate::source::remote::{Carrier, Remote, Uncarried, served};
use crate::source::seam::Source;
use crate::tests::random::Random;
use crate::{
    At, BudgetTokenizer, Cancel, ChunkSearch, ContextSettings, Error, Policy, Pooling, Searcher, SearcherOptions,
    Strategy,
};

/// A change to an answer.
type Meddle = Box<dyn Fn(Value) -> Value + Send + Sync>;

/// A server in this process.
pub(super) struct Here {
    name: String,
    source: Mutex<Arc<Local>>,
    n_calls: AtomicUsize,
    meddle: Option<Meddle>,
}

impl std::fmt::Debug for Here {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Here {
    fn open(folder: &Path, meddle: Option<Meddle>) -> Self {
        let source = Mutex::new(Arc::new(Local::open(folder, &At::Current).unwrap()));
        Self { name: folder.display().to_string(), source, n_calls: AtomicUsize::new(0), meddle }
    }
}

impl Carrier for Here {
    fn name(&self) -> &str {
        &self.name
    }

    fn carry(&self, call: &[u8], stop: &(dyn Fn() -> bool + Sync)) -> Result<String, Uncarried> {
        if stop() {
            return Err(Uncarried::Stopped);
        }
        self.n_calls.fetch_add(1, Ordering::Relaxed);
        let source = Arc::clone(&self.source.lock().unwrap());
        let answer = served::answer(&*source, source.describe().clone(), call, &Cancel::default());
        let answer = answer.map_err(|error| match error {
            Error::OtherGeneration { .. } => Uncarried::Changed,
            error => Uncarried::Failed(crate::describe(&error)),
        })?;
        let Some(meddle) = &self.meddle else { return Ok(String::from_utf8(answer).unwrap()) };
        Ok(meddle(serde_json::from_slice(&answer).unwrap()).to_string())
    }
}

fn searcher(carriers: &[Arc<Here>]) -> crate::Result<Searcher> {
    let open = |carrier: &Arc<Here>| Remote::open(Arc::clone(carrier) as Arc<dyn Carrier>, &Cancel::default());
    let shards = carriers.iter().map(open).collect::<crate::Result<_>>()?;
    let names = carriers.iter().map(|carrier| PathBuf::from(&carrier.name)).collect();
    Searcher::of_shards(shards, names, SearcherOptions::default())
}

/// The shards in these folders, each behind a server.
pub(super) fn behind_servers(folders: &[PathBuf]) -> Searcher {
    let carriers: Vec<_> = folders.iter().map(|folder| Arc::new(Here::open(folder, None))).collect();
    searcher(&carriers).unwrap()
}

#[test]
fn a_shard_that_was_written_meanwhile_is_said() {
    let place = whole(Pooling::Plain);
    let shard = Arc::new(Here::open(&place.collection(), None));
    let open = searcher(&[Arc::clone(&shard)]).unwrap();
    open.search(&ChunkSearch::new("tide")).unwrap();
    place.write("new.md", "# New\n\nThe tide of a new day.\n");
    place.index();
    *shard.source.lock().unwrap() = Arc::new(Local::open(&place.collection(), &At::Current).unwrap());
    let error = open.search(&ChunkSearch::new("tide")).unwrap_err();
    assert!(matches!(&error, Error::ShardChanged { shard } if *shard == place.collection().display().to_string()));
    let again = searcher(&[shard]).unwrap().search(&ChunkSearch::new("tide of a new day")).unwrap();
    assert_eq!(again.hits[0].document, "notes/new.md");
}

#[test]
fn a_search_is_few_exchanges_and_one_that_is_not_wanted_is_none() {
    let place = whole(Pooling::Plain);
    let shard = Arc::new(Here::open(&place.collection(), None));
    let open = searcher(&[Arc::clone(&shard)]).unwrap();
    let before = shard.n_calls.load(Ordering::Relaxed);
    open.search(&ChunkSearch { links: Default::default(), ..ChunkSearch::new("tide and moon") }).unwrap();
    let n_calls = shard.n_calls.load(Ordering::Relaxed) - before;
    assert!(n_calls <= 12, "{n_calls}");
    let cancel = Cancel::new();
    cancel.cancel();
    let cancelled = open.search(&ChunkSearch { cancel, ..ChunkSearch::new("tide and moon") });
    assert!(matches!(cancelled, Err(Error::Cancelled)));
}

/// Changes one value somewhere in an answer.
fn meddled(mut answer: Value, random: &mut Random) -> Value {
    fn leaves(value: &mut Value, random: &mut Random) {
        match value {
            Value::Array(items) if !items.is_empty() => match random.below(4) {
                0 => drop(items.pop()),
                1 => items.push(items[0].clone()),
                _ => {
                    let at = random.below(items.len());
                    leaves(&mut items[at], random);
                }
            },
            Value::Object(fields) if !fields.is_empty() => {
                let at = random.below(fields.len());
                let name = fields.keys().nth(at).unwrap().clone();
                if random.below(8) == 0 { drop(fields.remove(&name)) } else { leaves(&mut fields[&name], random) }
            }
            Value::Number(_) => {
                let bits = [u64::MAX, 0, 1, 1 << 31, 1 << 32, 1 << 62, f64::NAN.to_bits(), f64::INFINITY.to_bits()];
                *value = json!(bits[random.below(bits.len())]);
            }
            Value::String(text) => {
                *value = match random.below(3) {
                    0 => json!(""),
                    1 => json!(format!("{text}é")),
                    _ => json!("A".repeat(40)),
                }
            }
            Value::Null => *value = json!(0),
            Value::Bool(known) => *value = json!(!*known),
            Value::Array(items) => items.push(json!(0)),
            Value::Object(_) => {}
        }
    }
    leaves(&mut answer, random);
    answer
}

#[test]
fn whatever_a_shard_says_is_an_answer_or_an_error() {
    let place = whole(Pooling::Plain);
    let folders = cut(&place, 2, Pooling::Plain);
    let (tokenizer, policy) = (BudgetTokenizer::named("o200k").unwrap(), Policy::default());
    let (mut n_refused, mut n_named) = (0, 0);
    for seed in 0..400 {
        let random = Mutex::new(Random::new(seed));
        let at = seed as usize % 9;
        let n = AtomicUsize::new(0);
        let meddle: Meddle = Box::new(move |answer| match n.fetch_add(1, Ordering::Relaxed) == at {
            true => meddled(answer, &mut random.lock().unwrap()),
            false => answer,
        });
        let hostile = Arc::new(Here::open(&folders[0], Some(meddle)));
        let other = Arc::new(Here::open(&folders[1], None));
        let asked = searcher(&[Arc::clone(&hostile), other]).and_then(|searcher| {
            let search = ChunkSearch::new("the tide and the moon of Town 2");
            let strategy = Strategy::ALL[seed as usize % Strategy::ALL.len()];
            searcher.context(&search, &ContextSettings { strategy, ..ContextSettings::new(250, &tokenizer, &policy) })
        });
        if let Err(error) = asked {
            n_refused += 1;
            n_named += usize::from(error.to_string().contains(&hostile.name));
        }
    }
    println!("{n_refused} of 400 answers that were changed were refused, {n_named} by the shard's name");
    assert!(n_refused > 100 && n_named * 10 > n_refused * 9, "{n_refused} {n_named}");
}

#[test]
fn whatever_a_server_is_called_with_it_refuses_or_answers() {
    let place = whole(Pooling::Plain);
    let source = Local::open(&place.collection(), &At::Current).unwrap();
    let asked = |call: Value| {
        let question = json!({"wire": 1, "cento": "1", "generation": null, "call": call});
        served::answer(&source, source.describe().clone(), question.to_string().as_bytes(), &Cancel::default())
    };
    assert!(asked(json!("describe")).is_ok() && asked(json!({"chunks": [[0, 0]]})).is_ok());
    let scope = json!([[], ["", ""]]);
    for call in [
        json!("nothing"),
        json!({"chunks": [[9, 0]]}),
        json!({"chunks": [[0, 4_000_000]]}),
        json!({"vectors": [[0, 4_294_967_295_u32]]}),
        json!({"around": [{"chunk": [7, 7], "numbers": {"start": 0, "end": 9}, "tokens_max": 9}]}),
        json!({"texts": [[[0, 0], {"start": 9, "end": 1}]]}),
        json!({"texts": [[[0, 0], {"start": 0, "end": u64::MAX}]]}),
        json!({"at": [5, 1]}),
        json!({"scope": {"filter": "year >>> 3"}}),
        json!({"documents": {"matching": "["}}),
        json!({"nearest": {"vectors": "AAAA", "scopes": [[], null], "unit": "row", "column": "plain", "depth": 9,
            "scan": "exact", "ef": 9}}),
        json!({"lexical": {"texts": ["tide"], "scopes": scope, "unit": "row", "score": "document", "bm25": [0, 0, 0],
            "depth": 9, "statistics": null}}),
        json!({"lexical": {"texts": ["tide"], "scopes": [[], null], "unit": "row", "score": "document",
            "bm25": [u64::MAX, 0, 0], "depth": 9, "statistics": null}}),
        json!({"rescore": {"vector": "AAAA", "found": [[[0, 0], u64::MAX]], "column": "late", "depth": 9}}),
    ] {
        let answer = asked(call.clone());
        assert!(answer.is_err(), "{call}: {}", String::from_utf8_lossy(&answer.unwrap()));
    }
    for question in
        ["", "{}", "[1]", r#"{"wire": 2}"#, r#"{"wire": 1, "cento": "", "generation": "x", "call": "schema"}"#]
    {
        let answer = served::answer(&source, source.describe().clone(), question.as_bytes(), &Cancel::default());
        assert!(answer.is_err(), "{question}");
    }
}

#[test]
fn pieces_behind_servers_of_two_kinds_of_vectors_answer_as_pieces_here() {
    let place = whole(Pooling::Both);
    let folders = cut(&place, 3, Pooling::Both);
    let answers = |searcher: &Searcher| {
        let mut answers = Answers::new();
        searches(searcher, &mut answers);
        contexts(searcher, &mut answers);
        documents(searcher, &mut answers);
        answers
    };
    assert!(answers(&behind_servers(&folders)) == answers(&super::shards(&folders)));
}
