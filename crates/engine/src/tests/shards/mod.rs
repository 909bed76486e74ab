//! Shards: a corpus cut into several collections answers as the same corpus in one, byte for byte.

mod calibration;
mod line;
mod partial;
mod replicas;
mod remote;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cento_collection::format::calibration::Calibration;
use serde::Serialize;

use super::random::Random;
use super::{Place, QuickFs, index_notes};
use crate::{
    BudgetTokenizer, Cancel, ChunkSearch, ContextSettings, ContextTrace, Explain, Filter, Format, Fusion, HeaderStyle,
    IndexOptions, LexicalScore, Mode, Policy, Pooling, Reranker, RerankerOptions, Reranking, RunQuery, RunRequest,
    Searcher, SearcherOptions, Selection, Strategy, delete,
};

/// Documents of the corpus.
const N_DOCUMENTS: usize = 60;

/// Pieces that the corpus is cut into.
const CUTS: [usize; 3] = [1, 2, 5];

const TOPICS: [&str; 6] = [
    "where was the director of Night Train born",
    "w1 w2 w3",
    "the tide and the moon",
    "w7 harbour w9 w9 Ada Quist",
    "\"tide turns at\" harbour",
    "nothing of this is anywhere xyzzy",
];

const MODES: [Mode; 3] = [Mode::Hybrid, Mode::Dense, Mode::Lexical];
const FUSIONS: [Fusion; 3] = [Fusion::Rrf, Fusion::Convex, Fusion::Adaptive];

/// What was asked, and the answer as JSON.
type Answers = Vec<(String, String)>;

fn options(place: &Place, pooling: Pooling) -> IndexOptions {
    IndexOptions { pooling: Some(pooling), graph_rows_min: usize::MAX, ..place.options() }
}

/// Documents of several sections, some of them twice so that scores tie, some that lead to others by name.
fn corpus(place: &Place) {
    let mut random = Random::new(7);
    let mut words = |n: usize| (0..n).map(|_| format!("w{}", random.below(30))).collect::<Vec<_>>().join(" ");
    for number in 0..N_DOCUMENTS {
        let twin = number / 6 * 6;
        let (name, body) = match number % 6 {
            0 => (format!("{number}.txt"), format!("Plain {twin}: the tide turns at the harbour {twin} times.\n")),
            1 => (format!("{number}.txt"), format!("Plain {twin}: the tide turns at the harbour {twin} times.\n")),
            2 => (
                format!("{number}.md"),
                format!(
                    "---\nyear: {}\ntags: [sea, t{}]\n---\n# Town {number}\n\n\
                     A director was born in Town {number}. {}.\n\n## History\n\n{}.\n\n## Harbour\n\n{}.\n",
                    2000 + number,
                    number % 4,
                    words(20),
                    words(60),
                    words(60)
                ),
            ),
            3 => (
                format!("{number}.md"),
                format!("# Part {number}\n\n{}.\n\n## History\n\n{}.\n", words(150), words(150)),
            ),
            4 => (format!("{number}.md"), format!("# Moon {number}\n\nThe moon pulls the sea. {}.\n", words(12))),
            _ => (format!("{number}.txt"), format!("{}.\n", words(8))),
        };
        place.write(&name, &body);
    }
    place.write("film.md", "# Night Train\n\nNight Train is a drama film directed by Ada Quist.\n");
    place.write("ada.md", "# Ada Quist\n\nAda Quist was born in Tromso to a baker.\n");
}

/// The corpus in one collection of two segments, of which the first has dead rows.
fn whole(pooling: Pooling) -> Place {
    let place = Place::new();
    corpus(&place);
    place.write("gone.txt", "the tide of a document that is deleted");
    place.write("3.txt", "w1 w2 before it was written anew");
    place.index_with(&options(&place, pooling), &QuickFs).unwrap();
    place.write("5.txt", "w1 w2 w3, written anew.\n");
    for name in ["gone.txt", "3.txt"] {
        place.remove(name);
    }
    place.index_with(&options(&place, pooling), &QuickFs).unwrap();
    delete(&place.collection(), &["notes/11.txt".to_owned()], &QuickFs).unwrap();
    place
}

/// The files that are left, dealt out to `n` collections; the files keep their times.
fn cut(place: &Place, n: usize, pooling: Pooling) -> Vec<PathBuf> {
    let mut names: Vec<_> = std::fs::read_dir(place.notes()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names.retain(|name| name != "11.txt");
    let folder = |what: &str, shard: usize| place.folder.path().join(format!("{what}-{n}-{shard}"));
    for shard in 0..n {
        std::fs::create_dir(folder("notes", shard)).unwrap();
    }
    for (at, name) in names.iter().enumerate() {
        std::fs::hard_link(place.notes().join(name), folder("notes", at % n).join(name)).unwrap();
    }
    let index = |shard| {
        let collection = folder("collection", shard);
        index_notes(&folder("notes", shard), &collection, &options(place, pooling), &QuickFs).unwrap();
        collection
    };
    (0..n).map(index).collect()
}

fn shards(folders: &[PathBuf]) -> Searcher {
    Searcher::open_shards(folders, SearcherOptions::default()).unwrap()
}

fn push(answers: &mut Answers, asked: String, answer: &impl Serialize) {
    answers.push((asked, serde_json::to_string(answer).unwrap()));
}

fn push_result<T: Serialize>(answers: &mut Answers, asked: String, answer: crate::Result<T>) {
    match answer {
        Ok(answer) => push(answers, asked, &answer),
        Err(error) => push(answers, asked, &error.to_string()),
    }
}

fn runs(searcher: &Searcher, answers: &mut Answers) {
    let query = |text: &str, scope: &Option<Vec<String>>| RunQuery { text: text.to_owned(), scope: scope.clone() };
    let scope = Some(ids(&["notes/0.txt", "notes/1.txt", "notes/3.md", "notes/film.md"]));
    for (mode, fusion, candidates) in MODES
        .iter()
        .flat_map(|mode| FUSIONS.iter().flat_map(move |fusion| [(*mode, *fusion, 1000), (*mode, *fusion, 7)]))
    {
        for filter in [None, Some(Filter::parse("year >= 2010 or type = \"text\"").unwrap())] {
            let queries: Vec<_> = TOPICS.iter().flat_map(|topic| [query(topic, &None), query(topic, &scope)]).collect();
            let asked = format!("run {mode:?} {fusion:?} {candidates} {filter:?}");
            for lexical in [LexicalScore::Mean, LexicalScore::Document] {
                let filter = filter.clone();
                let request =
                    RunRequest { k: candidates, candidates, mode, fusion, lexical, filter, ..RunRequest::default() };
                let asked = format!("{asked} {lexical:?}");
                push(answers, asked, &searcher.run(&queries, &request, &mut |_| {}).unwrap());
            }
        }
    }
}

fn searches(searcher: &Searcher, answers: &mut Answers) {
    for query in TOPICS {
        for (mode, fusion) in MODES.iter().flat_map(|mode| FUSIONS.iter().map(move |fusion| (*mode, *fusion))) {
            for candidates in [1000, 9] {
                let explain = Explain::Terms;
                let request =
                    ChunkSearch { k: candidates, candidates, mode, fusion, explain, ..ChunkSearch::new(query) };
                let mut response = searcher.search(&request).unwrap();
                response.generation = 0;
                push(answers, format!("search {mode:?} {fusion:?} {candidates} {query}"), &response);
            }
        }
        for filter in ["year exists", "tags = \"sea\" and year < 2030", "not (type = \"text\")", "yeer = 3"] {
            let request = ChunkSearch { filter: Some(Filter::parse(filter).unwrap()), ..ChunkSearch::new(query) };
            let response =
                searcher.search(&request).map(|response| crate::SearchResponse { generation: 0, ..response });
            push_result(answers, format!("filter {filter} {query}"), response);
        }
        for scope in [ids(&["notes/2.md", "notes/0.txt", "notes/1.txt"]), ids(&["notes/film.md", "notes/fim.md"])] {
            let request = ChunkSearch { scope: Some(scope), ..ChunkSearch::new(query) };
            let response =
                searcher.search(&request).map(|response| crate::SearchResponse { generation: 0, ..response });
            push_result(answers, format!("scope {query}"), response);
        }
    }
}

fn contexts(searcher: &Searcher, answers: &mut Answers) {
    let (tokenizer, policy) = (BudgetTokenizer::named("o200k").unwrap(), Policy::default());
    let (include, exclude) = (ids(&["notes/film.md", "notes/3.md#0"]), ids(&["notes/ada.md#0"]));
    for (query, strategy) in TOPICS.iter().flat_map(|query| Strategy::ALL.map(|strategy| (*query, strategy))) {
        let search = ChunkSearch::new(query);
        let request = ContextSettings { strategy, ..ContextSettings::new(250, &tokenizer, &policy) };
        let chosen = ContextSettings { include: &include, exclude: &exclude, format: Format::Xml, ..request };
        for request in [request, chosen] {
            let context = match searcher.context(&search, &request) {
                Ok(context) => context,
                Err(error) => {
                    push(answers, format!("context {strategy} {query}"), &error.to_string());
                    continue;
                }
            };
            push(answers, format!("context {strategy} {query}"), &context);
            let mut trace = ContextTrace::new(searcher, &search, &request, &context).unwrap();
            let collection = &mut trace.collection;
            (collection.generation, collection.folder, collection.checksum) = (0, String::new(), String::new());
            push(answers, format!("trace {strategy} {query}"), &trace);
        }
        let pool = searcher.pool(&search).unwrap();
        let context = pool.context(&request).unwrap();
        let cited =
            context.citations.iter().map(|citation| (pool.text(citation).unwrap(), pool.characters(citation).unwrap()));
        push(answers, format!("cited {strategy} {query}"), &cited.collect::<Vec<_>>());
    }
}

fn reasons(searcher: &Searcher, answers: &mut Answers) {
    let (tokenizer, policy) = (BudgetTokenizer::named("o200k").unwrap(), Policy::default());
    let request = ContextSettings { strategy: Strategy::Bubble, ..ContextSettings::new(120, &tokenizer, &policy) };
    for (query, mode) in TOPICS.iter().flat_map(|query| MODES.map(|mode| (*query, mode))) {
        for id in ["notes/0.txt", "notes/3.md#1", "notes/ada.md", "notes/8.md#0", "notes/addda.md", "notes/3.md#900"] {
            let narrowed = Some(ids(&["notes/0.txt", "notes/3.md"]));
            for scope in [None, narrowed] {
                let search = ChunkSearch { mode, scope, candidates: 20, ..ChunkSearch::new(query) };
                let answer = searcher.why_not(&search, &request, id);
                let answer = answer.map(|answer| crate::WhyNot { generation: 0, ..answer });
                push_result(answers, format!("why not {id} {mode:?} {query}"), answer);
            }
        }
    }
}

fn reranked(searcher: &Searcher, answers: &mut Answers) {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/parity/cross-bert");
    let reranker = Arc::new(Reranker::open(model, &RerankerOptions::default()).unwrap());
    let rerank = || Some(Reranking::new(Arc::clone(&reranker), 30, None));
    let (tokenizer, policy) = (BudgetTokenizer::named("o200k").unwrap(), Policy::default());
    for query in TOPICS {
        for filter in [None, Some(Filter::parse("year >= 2010 or type = \"text\"").unwrap())] {
            let search = ChunkSearch { k: 1000, filter, rerank: rerank(), ..ChunkSearch::new(query) };
            let all = searcher.search(&search).unwrap();
            let few = searcher.search(&ChunkSearch { k: 10, rerank: rerank(), ..search.clone() }).unwrap();
            let hits = |response: &crate::SearchResponse| serde_json::to_value(&response.hits).unwrap();
            assert_eq!(hits(&few).as_array().unwrap()[..], hits(&all).as_array().unwrap()[..few.hits.len()]);
            let raw = |hit: &crate::Hit| hit.contributions.iter().find(|part| part.arm == "rerank")?.raw;
            let read: Vec<_> = all.hits.iter().map_while(|hit| Some((raw(hit)?, &hit.id))).collect();
            assert_eq!(read.len(), all.hits.len().min(30));
            assert!(read.is_sorted_by(|(a, one), (b, other)| a > b || (a == b && one > other)), "{read:?}");
            push(answers, format!("reranked {query}"), &crate::SearchResponse { generation: 0, ..all });
            let request = RunRequest { filter: search.filter.clone(), rerank: rerank(), ..RunRequest::default() };
            let topic = RunQuery { text: query.to_owned(), scope: None };
            push(answers, format!("reranked run {query}"), &searcher.run(&[topic], &request, &mut |_| {}).unwrap());
            let settings = ContextSettings::new(250, &tokenizer, &policy);
            let context = searcher.context(&search, &settings).unwrap();
            let trace = ContextTrace::new(searcher, &search, &settings, &context).unwrap();
            assert!(trace.reread().replay(searcher, &tokenizer, &Cancel::default()).unwrap().same);
            push(answers, format!("reranked context {query}"), &context);
        }
    }
    let twins = answers.iter().filter(|(_, answer)| answer.contains("notes/1.txt#0")).count();
    assert!(twins > 0, "scores that tie are among them");
}

fn documents(searcher: &Searcher, answers: &mut Answers) {
    let selections = [
        Selection::All,
        Selection::Documents(ids(&["notes/ada.md", "notes/0.txt"])),
        Selection::Documents(ids(&["notes/ada.md", "notes/o.txt"])),
        Selection::Path("notes/3.md".to_owned()),
        Selection::Path("notes/*0.txt".to_owned()),
        Selection::Path("notes/[".to_owned()),
        Selection::Path("elsewhere".to_owned()),
        Selection::Filter(Filter::parse("year > 2020").unwrap()),
        Selection::Filter(Filter::parse("nobody = 1").unwrap()),
    ];
    for selection in selections {
        push_result(answers, format!("list {selection:?}"), searcher.list(&selection));
    }
    for citation in [
        "notes/3.md",
        "notes/3.md#1",
        "notes/film.md:2-13",
        "notes/3.md#77",
        "notes/3.md:5-99999",
        "notes/filn.md",
        "x",
    ] {
        push_result(answers, format!("get {citation}"), searcher.get(citation));
    }
    push(answers, "fields".to_owned(), &searcher.fields().unwrap());
    push(answers, "filtered".to_owned(), &searcher.filtered(&Filter::parse("year exists").unwrap()).unwrap());
    push(answers, "warnings".to_owned(), &searcher.warnings());
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// Asks the same of the whole and of its pieces, and compares the answers.
fn check(pooling: Pooling, ask: impl Fn(&Searcher, &mut Answers)) {
    let place = whole(pooling);
    let answers = |searcher: &Searcher| {
        let mut answers = Answers::new();
        ask(searcher, &mut answers);
        answers
    };
    let expected = answers(&place.searcher());
    let n_bytes: usize = expected.iter().map(|(_, answer)| answer.len()).sum();
    for n in CUTS {
        let folders = cut(&place, n, pooling);
        let (here, elsewhere) = (answers(&shards(&folders)), answers(&remote::behind_servers(&folders)));
        assert_eq!((here.len(), elsewhere.len()), (expected.len(), expected.len()));
        let twice = expected.iter().chain(&expected);
        for ((asked, given), (_, expected)) in here.iter().chain(&elsewhere).zip(twice) {
            let differs = given.bytes().zip(expected.bytes()).position(|(a, b)| a != b);
            let near = |answer: &str| {
                differs.map(|at| {
                    answer.get(at.saturating_sub(300)..).map(|text| text.chars().take(500).collect::<String>())
                })
            };
            assert!(given == expected, "{n} shards, {asked}\nshards {:?}\nwhole  {:?}", near(given), near(expected));
        }
    }
    println!("{} answers of {n_bytes} bytes are the same in {CUTS:?} shards", expected.len());
    assert!(n_bytes > 10_000, "{n_bytes} bytes are no comparison");
}

#[test]
fn runs_are_those_of_the_whole() {
    check(Pooling::Plain, runs);
}

#[test]
fn searches_are_those_of_the_whole() {
    check(Pooling::Plain, searches);
}

#[test]
fn searches_by_two_kinds_of_vectors_are_those_of_the_whole() {
    check(Pooling::Both, searches);
}

#[test]
fn contexts_and_traces_are_those_of_the_whole() {
    check(Pooling::Plain, contexts);
}

#[test]
fn reasons_are_those_of_the_whole() {
    check(Pooling::Plain, reasons);
}

#[test]
fn reranked_answers_are_those_of_the_whole() {
    check(Pooling::Plain, reranked);
}

#[test]
fn documents_are_those_of_the_whole() {
    check(Pooling::Plain, documents);
}

#[test]
fn calibrations_are_those_of_the_whole() {
    let place = whole(Pooling::Plain);
    let calibration = |searcher: &Searcher| searcher.manifest().calibration.clone();
    let expected = calibration(&place.searcher());
    assert!(matches!(&expected, Some(Calibration::Sample(sample)) if sample.chunks.len() > 100), "{expected:?}");
    for n in CUTS {
        assert_eq!(calibration(&shards(&cut(&place, n, Pooling::Plain))), expected, "{n} shards");
    }
}

#[test]
fn shards_that_do_not_belong_together_are_refused() {
    let open = |folders: &[&Path]| match Searcher::open_shards(folders, SearcherOptions::default()) {
        Ok(searcher) => searcher.search(&ChunkSearch::new("tide")).map(|response| response.hits.len()),
        Err(error) => Err(error),
    };
    let refused = |folders: &[&Path]| open(folders).unwrap_err().to_string();
    let (place, other) = (Place::new(), Place::new());
    for place in [&place, &other] {
        place.write("tides.md", "# Tides\n\nThe tide rises twice a day.\n");
    }
    place.index();
    let bare = IndexOptions { header: Some(HeaderStyle::None), ..other.options() };
    other.index_with(&bare, &QuickFs).unwrap();
    let (one, two) = (place.collection(), other.collection());
    assert!(refused(&[]).contains("name at least one collection"), "{}", refused(&[]));
    let settings = refused(&[&one, &two]);
    assert!(settings.contains("\"header\" is") && settings.contains(two.to_str().unwrap()), "{settings}");
    let twice = refused(&[&one, &one]);
    assert!(twice.contains("notes/tides.md") && twice.contains("both"), "{twice}");
    assert_eq!(open(&[&one]).unwrap(), 1);
}
