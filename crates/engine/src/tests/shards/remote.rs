//! Shards on other machines: every call and every answer goes through the words that servers have for each other.
//! Whatever a shard says, the answer is right or an error that names it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{Answers, contexts, cut, documents, searches, whole};
use crate::source::local::Local;
use crate::source::remote::carrier::{Carrier, Uncarried};
use crate::source::remote::{Remote, served};
use crate::source::seam::Source;
use crate::tests::Place;
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

    fn carry(&self, call: &[u8], _: usize, stop: &(dyn Fn() -> bool + Sync)) -> Result<Vec<u8>, Uncarried> {
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
        let Some(meddle) = &self.meddle else { return Ok(answer) };
        Ok(meddle(serde_json::from_slice(&answer).unwrap()).to_string().into_bytes())
    }
}

pub(super) fn opened(carrier: Arc<dyn Carrier>) -> crate::Result<Remote> {
    Remote::open(carrier, None, &|| false)
}

fn searcher(carriers: &[Arc<Here>]) -> crate::Result<Searcher> {
    let open =
        |carrier: &Arc<Here>| opened(Arc::clone(carrier) as Arc<dyn Carrier>).map(|remote| Arc::new(remote) as _);
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

/// The answer of a server to a call.
fn called(source: &Local, call: &Value) -> crate::Result<Vec<u8>> {
    let question = json!({"wire": 4, "cento": env!("CARGO_PKG_VERSION"), "generation": null, "call": call});
    served::answer(source, source.describe().clone(), question.to_string().as_bytes(), &Cancel::default())
}

#[test]
fn whatever_a_server_is_called_with_it_refuses_or_answers() {
    let place = whole(Pooling::Plain);
    let source = Local::open(&place.collection(), &At::Current).unwrap();
    let dimensions = source.describe().manifest.config.query_dimensions();
    // Three values of 1 are 16 letters.
    let many = "AACAPwAAgD8AAIA/".repeat(33 * dimensions);
    let lexical = |texts: Value, depth: Value, statistics: Value| {
        json!({"lexical": {"texts": texts, "scopes": [[], null], "unit": "row", "score": "document",
            "bm25": [0, 0, 0], "depth": depth, "statistics": statistics}})
    };
    assert!(called(&source, &json!("describe")).is_ok() && called(&source, &json!({"chunks": [[0, 0]]})).is_ok());
    assert!(called(&source, &lexical(json!(["tide"]), json!(usize::MAX), json!(null))).is_ok());
    let scope = json!([[], ["", ""]]);
    // A set that says it has 65,536 containers, each of which takes memory for a few bytes.
    let large = json!([[], ["OzD//w==", "OzD//w=="]]);
    let scoped = |scopes: &Value| {
        json!({"lexical": {"texts": ["tide"], "scopes": scopes, "unit": "row", "score": "document",
            "bm25": [0, 0, 0], "depth": 9, "statistics": null}})
    };
    let given = |n: u64, df: u64| json!({"of_units": {"totals": {"n": n, "text": 1, "beside": 0}, "df": {"tide": df}}, "of_rows": null});
    for call in [
        json!("nothing"),
        json!({"chunks": [[9, 0]]}),
        json!({"chunks": [[0, 4_000_000]]}),
        json!({"chunks": vec![[0, 0]; 100_001]}),
        json!({"vectors": [[0, 4_294_967_295_u32]]}),
        json!({"around": [{"chunk": [7, 7], "numbers": {"start": 0, "end": 9}, "tokens_max": 9}]}),
        json!({"texts": [[[0, 0], {"start": 9, "end": 1}]]}),
        json!({"texts": [[[0, 0], {"start": 0, "end": u64::MAX}]]}),
        json!({"at": [5, 1]}),
        json!({"scope": {"filter": "year >>> 3"}}),
        json!({"scope": {"phrases": [["x".repeat(70_000)], "row"]}}),
        json!({"documents": {"matching": "["}}),
        json!({"nearest_id": "x".repeat(2 << 20)}),
        json!({"located": {"file": {"names": vec!["x"; 2_000], "end": null}}}),
        json!({"nearest": {"vectors": "AAAA", "scopes": [[], null], "unit": "row", "column": "plain", "depth": 9,
            "scan": "exact", "ef": 9}}),
        json!({"nearest": {"vectors": "", "scopes": [[], null], "unit": "row", "column": "late", "depth": 9,
            "scan": "exact", "ef": 9}}),
        json!({"nearest": {"vectors": many, "scopes": [[], null], "unit": "row", "column": "plain",
            "depth": 9, "scan": "exact", "ef": 9}}),
        json!({"nearest": {"vectors": "", "scopes": [[null], null], "unit": "row", "column": "plain", "depth": 9,
            "scan": "exact", "ef": 9}}),
        scoped(&scope),
        scoped(&large),
        lexical(json!(vec!["tide"; 33]), json!(9), json!(null)),
        lexical(json!(["x".repeat(70_000)]), json!(9), json!(null)),
        lexical(json!(["tide"]), json!(9), given(u64::MAX, 1)),
        lexical(json!(["tide"]), json!(9), given(3, 4)),
        json!({"lexical": {"texts": ["tide"], "scopes": [[], null], "unit": "row", "score": "document",
            "bm25": [u64::MAX, 0, 0], "depth": 9, "statistics": null}}),
        json!({"rescore": {"vector": "AAAA", "found": [[[0, 0], u64::MAX]], "column": "late", "depth": 9}}),
        json!({"rescore": {"vector": "", "found": [[[0, 0], 0]], "column": "plain", "depth": 9}}),
    ] {
        let answer = called(&source, &call);
        let said = call.to_string().chars().take(200).collect::<String>();
        assert!(answer.is_err(), "{said}: {}", String::from_utf8_lossy(&answer.unwrap()));
    }
}

#[test]
fn a_call_of_another_version_or_generation_is_refused() {
    let place = whole(Pooling::Plain);
    let source = Local::open(&place.collection(), &At::Current).unwrap();
    let own = env!("CARGO_PKG_VERSION");
    for (question, words) in [
        (String::new(), "EOF"),
        ("{}".to_owned(), "wire"),
        ("[1]".to_owned(), "must be of one version"),
        (json!({"wire": 1, "cento": own, "generation": null, "call": "schema"}).to_string(), "must be of one version"),
        (json!({"wire": 4, "cento": "9.9.9", "generation": null, "call": "schema"}).to_string(), "cento 9.9.9"),
        (json!({"wire": 4, "cento": own, "generation": "x", "call": "schema"}).to_string(), "generation"),
    ] {
        let answer = served::answer(&source, source.describe().clone(), question.as_bytes(), &Cancel::default());
        let error = answer.unwrap_err().to_string();
        assert!(error.contains(words), "{question}: {error}");
    }
    let cancelled = Cancel::new();
    cancelled.cancel();
    let question = json!({"wire": 4, "cento": own, "generation": null, "call": {"chunks": [[0, 0]]}}).to_string();
    let answer = served::answer(&source, source.describe().clone(), question.as_bytes(), &cancelled);
    assert!(matches!(answer, Err(Error::Cancelled)));
}

#[test]
fn a_long_answer_comes_in_parts() {
    let place = Place::new();
    place.write("long.txt", &"the tide of a long day. ".repeat(4_000));
    place.index();
    let shard = Arc::new(Here::open(&place.collection(), None));
    let remote = opened(Arc::clone(&shard) as Arc<dyn Carrier>).unwrap();
    let chunk = remote.at(&[0]).unwrap()[0];
    let before = shard.n_calls.load(Ordering::Relaxed);
    let spans = vec![(chunk, 0..96_000); 400]; // 38 MB
    let texts = remote.texts(&spans).unwrap();
    assert!(texts.len() == 400 && texts.iter().all(|text| text.len() == 96_000));
    assert_eq!(shard.n_calls.load(Ordering::Relaxed) - before, 3);
}

/// The error of a context over a shard that says other things than it has.
fn lied(place: &Place, lie: impl Fn(&mut Value) + Send + Sync + 'static) -> String {
    let meddle: Meddle = Box::new(move |mut answer| {
        lie(&mut answer);
        answer
    });
    let hostile = Arc::new(Here::open(&place.collection(), Some(meddle)));
    let (tokenizer, policy) = (BudgetTokenizer::named("o200k").unwrap(), Policy::default());
    let asked = searcher(&[Arc::clone(&hostile)]).and_then(|searcher| {
        let search = ChunkSearch::new("the tide and the moon of Town 2");
        for strategy in Strategy::ALL {
            searcher
                .context(&search, &ContextSettings { strategy, ..ContextSettings::new(250, &tokenizer, &policy) })?;
        }
        searcher.search(&ChunkSearch { scope: Some(super::ids(&["notes/0.txt", "notes/2.md"])), ..search })
    });
    let error = asked.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains(&hostile.name), "{error}");
    error
}

/// Hands every object in a value that has a field to a change of it.
fn each_with(value: &mut Value, field: &str, change: &dyn Fn(&mut serde_json::Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_with(item, field, change)),
        Value::Object(fields) => {
            if fields.contains_key(field) {
                change(fields);
            }
            fields.values_mut().for_each(|value| each_with(value, field, change));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Hands every ranking of an answer to a change of it: lists of an id, a place and the bits of a score.
fn each_ranking(answer: &mut Value, change: &dyn Fn(&mut Vec<Value>)) {
    let is_ranked = |item: &Value| item.as_array().is_some_and(|item| item.len() == 3 && item[0].is_string());
    match answer {
        Value::Array(items) if items.first().is_some_and(is_ranked) => change(items),
        Value::Array(items) => items.iter_mut().for_each(|item| each_ranking(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|value| each_ranking(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn what_a_shard_says_is_held_against_what_was_asked() {
    let place = whole(Pooling::Plain);
    let rename = |answer: &mut Value| {
        each_with(answer, "parents", &|chunk| {
            chunk["id"] = json!(format!("else#{}", chunk["index"]));
            chunk["document"] = json!("else");
        });
    };
    assert!(lied(&place, rename).contains("else#"));
    let shift = |answer: &mut Value| {
        each_with(answer, "parents", &|chunk| {
            let n = chunk["text"].as_str().unwrap().len();
            chunk["span"] = json!({"start": 7, "end": 7 + n}); // all of a document stand in one place
        });
    };
    assert!(lied(&place, shift).contains("do not follow each other"));
    let countless = |answer: &mut Value| each_with(answer, "parents", &|chunk| chunk["n_chunks"] = json!(u32::MAX));
    assert!(lied(&place, countless).contains("do not fit"));
    let backwards = |answer: &mut Value| each_ranking(answer, &|ranking| ranking.reverse());
    assert!(lied(&place, backwards).contains("no order"));
    let twice = |answer: &mut Value| each_ranking(answer, &|ranking| ranking.insert(0, ranking[0].clone()));
    assert!(lied(&place, twice).contains("one thing twice"));
    let nameless = |answer: &mut Value| each_ranking(answer, &|ranking| ranking[0][0] = json!("zzz"));
    assert!(lied(&place, nameless).contains("none of a chunk"));
    // The only list of strings that the search asks a shard for is that of vectors.
    let lengthen = |answer: &mut Value| {
        let vectors =
            answer["answer"].as_array_mut().filter(|list| !list.is_empty() && list.iter().all(Value::is_string));
        let zeros = |text: &str| "A".repeat(text.len() - text.len() % 4);
        vectors.into_iter().flatten().for_each(|vector| *vector = json!(zeros(vector.as_str().unwrap())));
    };
    assert!(lied(&place, lengthen).contains("its answer cannot be"));
    for (field, value, words) in [
        ("dimensions", json!(0), "0 dimensions"),
        ("dimensions", json!(1_u64 << 40), "dimensions"),
        ("generation", json!(u64::MAX), "larger than any"),
        ("calibration", json!({"n_sentences": 9, "cosine_typical": 1e300, "cosine_unrelated": -1e300}), "no cosines"),
    ] {
        let said = lied(&place, move |answer| {
            each_with(answer, field, &|fields| {
                if field != "generation" || fields.contains_key("segments") {
                    fields[field] = value.clone();
                }
            });
        });
        assert!(said.contains(words), "{field}: {said}");
    }
    let older = |answer: &mut Value| answer["cento"] = json!("0.0.1");
    assert!(lied(&place, older).contains("cento 0.0.1"));
    let other = |answer: &mut Value| *answer = json!({"wire": 7, "cento": "9.0.0", "said": "otherwise"});
    assert!(lied(&place, other).contains("cento 9.0.0"));
}

#[test]
fn a_context_asks_each_shard_a_few_times() {
    let place = whole(Pooling::Plain);
    let folders = cut(&place, 2, Pooling::Plain);
    let carriers: Vec<_> = folders.iter().map(|folder| Arc::new(Here::open(folder, None))).collect();
    let (tokenizer, policy) = (BudgetTokenizer::named("o200k").unwrap(), Policy::default());
    let (include, exclude) = (super::ids(&["notes/film.md", "notes/3.md#0"]), super::ids(&["notes/ada.md#0"]));
    for strategy in Strategy::ALL {
        let mut most = 0;
        for query in super::TOPICS {
            let open = searcher(&carriers).unwrap();
            let before: Vec<usize> = carriers.iter().map(|shard| shard.n_calls.load(Ordering::Relaxed)).collect();
            let settings = ContextSettings { strategy, ..ContextSettings::new(400, &tokenizer, &policy) };
            let settings = ContextSettings { include: &include, exclude: &exclude, ..settings };
            let search = ChunkSearch::new(query);
            let pool = open.pool(&search).unwrap();
            let context = pool.context(&settings).unwrap();
            pool.characters_of(&context.citations).unwrap();
            for (shard, before) in carriers.iter().zip(before) {
                most = most.max(shard.n_calls.load(Ordering::Relaxed) - before);
            }
        }
        println!("{strategy}: {most} exchanges with a shard at most");
        let bound = if strategy == Strategy::Seal { EXCHANGES_OF_SEAL_MAX } else { EXCHANGES_MAX };
        assert!(most <= bound, "{strategy}: {most}");
    }
}

/// Exchanges of a context with a shard, at most: none of them is one of many for one thing each.
const EXCHANGES_MAX: usize = 24;
/// The same of a repair, which searches for one name after the other.
const EXCHANGES_OF_SEAL_MAX: usize = 48;

/// A shard that gives no answer to a call of a name until nobody wants one.
struct Slow {
    here: Here,
    call: &'static str,
    asked: std::sync::mpsc::Sender<()>,
}

impl std::fmt::Debug for Slow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.here.fmt(f)
    }
}

impl Carrier for Slow {
    fn name(&self) -> &str {
        self.here.name()
    }

    fn carry(&self, call: &[u8], most: usize, stop: &(dyn Fn() -> bool + Sync)) -> Result<Vec<u8>, Uncarried> {
        let asked: Value = serde_json::from_slice(call).unwrap();
        if asked["call"].get(self.call).is_none() {
            return self.here.carry(call, most, stop);
        }
        self.asked.send(()).unwrap();
        while !stop() {
            std::thread::yield_now();
        }
        Err(Uncarried::Stopped)
    }
}

#[test]
fn a_request_that_ends_ends_its_calls() {
    let place = whole(Pooling::Plain);
    for call in ["chunks", "openings", "texts", "explain"] {
        let (asked, is_asked) = std::sync::mpsc::channel();
        let slow = Arc::new(Slow { here: Here::open(&place.collection(), None), call, asked });
        let remote = Arc::new(opened(slow).unwrap());
        let open = Searcher::of_shards(vec![remote], vec!["here".into()], SearcherOptions::default()).unwrap();
        let cancel = Cancel::new();
        let open = open.until(&cancel, Vec::new());
        std::thread::scope(|scope| {
            let cancel = &cancel;
            scope.spawn(move || {
                is_asked.recv().unwrap();
                cancel.cancel();
            });
            // The token of the search itself is another one.
            let search = ChunkSearch { explain: crate::Explain::Terms, ..ChunkSearch::new("the tide and the moon") };
            let ended = open.search(&search).map(|_| ()).and_then(|()| {
                let tokenizer = BudgetTokenizer::named("o200k").unwrap();
                let policy = Policy::default();
                let pool = open.pool(&search)?;
                let settings = ContextSettings::new(250, &tokenizer, &policy);
                let context = pool.context(&ContextSettings { strategy: Strategy::Flat, ..settings })?;
                pool.characters_of(&context.citations).map(|_| ())
            });
            assert!(matches!(ended, Err(Error::Cancelled)), "{call}: {ended:?}");
        });
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
