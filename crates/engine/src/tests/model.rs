//! Random operations against a map: whatever was added, replaced, deleted, committed, merged and opened, in any order,
//! a searcher answers from exactly the documents of its generation, with the scores that a scan over their vectors
//! gives.

use std::collections::BTreeMap;

use cento_embedder::{Embedder, Kind, LoadOptions};

use super::random::Random;
use super::{Place, QuickFs, index_notes};
use crate::{
    ChunkSearch, CompactOptions, Filter, HeaderStyle, IndexOptions, Merge, Mode, Scan, Searcher, delete, doctor,
};

/// Documents there may be.
const N_DOCUMENTS: usize = 60;
/// Words they are made of.
const N_WORDS: usize = 40;
/// How far a score may be from the one computed here, in another order of additions.
const TOLERANCE: f64 = 1e-5;

/// Texts by id.
type Texts = BTreeMap<String, String>;

fn from_environment(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

struct Model {
    place: Place,
    embedder: Embedder,
    random: Random,
    /// What lies in the folder.
    files: Texts,
    /// What was committed.
    committed: Texts,
    /// Searchers, each with what it has to answer from.
    open: Vec<(Searcher, Texts)>,
    n_done: BTreeMap<&'static str, usize>,
}

impl Model {
    fn new(seed: u64) -> Self {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny");
        Self {
            place: Place::new(),
            embedder: Embedder::load(model.as_ref(), &LoadOptions { threads: 1, ..LoadOptions::default() }).unwrap(),
            random: Random::new(seed),
            files: Texts::new(),
            committed: Texts::new(),
            open: Vec::new(),
            n_done: BTreeMap::new(),
        }
    }

    fn word(&mut self) -> String {
        format!("w{}", self.random.below(N_WORDS))
    }

    fn step(&mut self) {
        let done = match self.random.below(100) {
            0..40 => self.write(),
            40..50 => self.remove(),
            50..58 => self.commit(),
            58..61 => self.delete(),
            61..63 => self.compact(),
            63..68 => self.reopen(),
            68 => self.examine(),
            _ => self.search(),
        };
        *self.n_done.entry(done).or_default() += 1;
    }

    /// A new document, or another text for one that is there.
    fn write(&mut self) -> &'static str {
        let n = self.random.below(N_DOCUMENTS);
        let n_words = 1 + self.random.below(12);
        let words: Vec<String> = (0..n_words).map(|_| self.word()).collect();
        let text = words.join(" ");
        let name = format!("{n}.txt");
        self.place.write(&name, &text);
        match self.files.insert(format!("notes/{name}"), text) {
            None => "add",
            Some(_) => "replace",
        }
    }

    fn remove(&mut self) -> &'static str {
        if let Some(id) = pick(&mut self.random, &self.files) {
            self.place.remove(id.strip_prefix("notes/").unwrap());
            self.files.remove(&id);
        }
        "remove"
    }

    fn commit(&mut self) -> &'static str {
        if self.files.is_empty() && self.committed.is_empty() {
            return "nothing to commit";
        }
        let options = IndexOptions {
            header: Some(HeaderStyle::None),
            compact: self.random.below(2) == 0,
            graph_rows_min: 20,
            ..self.place.options()
        };
        index_notes(&self.place.notes(), &self.place.collection(), &options, &QuickFs).unwrap();
        self.committed = self.files.clone();
        "commit"
    }

    /// Deletes committed documents, and their files, so that they do not come back.
    fn delete(&mut self) -> &'static str {
        let ids: Vec<String> =
            (0..1 + self.random.below(4)).filter_map(|_| pick(&mut self.random, &self.committed)).collect();
        if ids.is_empty() {
            return "nothing to delete";
        }
        delete(&self.place.collection(), &ids, &QuickFs).unwrap();
        for id in ids {
            self.committed.remove(&id);
            if self.files.remove(&id).is_some() {
                self.place.remove(id.strip_prefix("notes/").unwrap());
            }
        }
        "delete"
    }

    fn compact(&mut self) -> &'static str {
        if !self.place.collection().join("manifest.json").exists() {
            return "nothing to compact";
        }
        let merge = [Merge::Policy, Merge::All][self.random.below(2)];
        let options = CompactOptions { merge, graph_rows_min: 20, ..CompactOptions::default() };
        match crate::compact(&self.place.collection(), &options, &QuickFs, &mut |_| {}).unwrap().n_merged {
            0 => "nothing to compact",
            _ => "compact",
        }
    }

    /// Opens the collection, and lets go of one of the searchers if there are several.
    fn reopen(&mut self) -> &'static str {
        if !self.place.collection().join("manifest.json").exists() {
            return "nothing to open";
        }
        if self.open.len() >= 3 {
            let at = self.random.below(self.open.len());
            self.open.remove(at);
        }
        self.open.push((self.place.searcher(), self.committed.clone()));
        "open"
    }

    fn examine(&mut self) -> &'static str {
        if self.place.collection().join("manifest.json").exists() {
            let diagnosis = doctor(&self.place.collection()).unwrap();
            assert!(diagnosis.is_healthy(), "{diagnosis:?}");
        }
        "doctor"
    }

    /// Asks one of the searchers, the oldest as well as the newest, and compares.
    fn search(&mut self) -> &'static str {
        if self.open.is_empty() {
            return "nothing open";
        }
        let at = self.random.below(self.open.len());
        let query: Vec<String> = (0..1 + self.random.below(3)).map(|_| self.word()).collect();
        let scope = self.scope(at);
        let (searcher, texts) = &self.open[at];
        let mode = [Mode::Lexical, Mode::Dense][self.random.below(2)];
        let scan = [Scan::Auto, Scan::Exact][self.random.below(2)];
        let mut request = ChunkSearch { mode, scan, k: 1000, ..ChunkSearch::new(query.join(" ")) };
        match scope.clone().filter(|scope| !scope.is_empty()) {
            Some(scope) if scope.len() % 2 == 0 => {
                let ids: Vec<String> = scope.iter().map(|id| format!("{id:?}")).collect();
                request.filter = Some(Filter::parse(&format!("id in ({})", ids.join(", "))).unwrap());
            }
            _ => request.scope = scope.clone(),
        }
        let hits = searcher.search(&request).unwrap().hits;
        let found: BTreeMap<String, f64> = hits.iter().map(|hit| (hit.document.clone(), hit.score)).collect();
        assert_eq!(found.len(), hits.len(), "a document answers once: {request:?}");
        let in_scope = |id: &String| scope.as_ref().is_none_or(|scope| scope.contains(id));
        let expected = texts.iter().filter(|(id, _)| in_scope(id));
        match mode {
            Mode::Lexical => {
                let has_word = |text: &String| text.split(' ').any(|word| query.iter().any(|asked| asked == word));
                let ids: Vec<_> = expected.filter(|(_, text)| has_word(text)).map(|(id, _)| id).collect();
                assert_eq!(found.keys().collect::<Vec<_>>(), ids, "{request:?}");
            }
            _ => {
                let expected: Vec<_> = expected.collect();
                assert_eq!(found.keys().collect::<Vec<_>>(), expected.iter().map(|(id, _)| *id).collect::<Vec<_>>());
                let query = &self.embedder.embed(&[query.join(" ")], Kind::Query).unwrap()[0].vector;
                let texts: Vec<String> = expected.iter().map(|(_, text)| (*text).clone()).collect();
                let vectors = self.embedder.embed(&texts, Kind::Document).unwrap();
                for ((id, _), embedded) in expected.iter().zip(vectors) {
                    let pairs = query.iter().zip(&embedded.vector);
                    let cosine: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    let score = found[*id];
                    assert!((score - cosine).abs() < TOLERANCE, "{id}: {score} instead of {cosine}; {request:?}");
                }
            }
        }
        match (mode, scope.is_some()) {
            (Mode::Lexical, false) => "search by words",
            (Mode::Lexical, true) => "search by words, filtered",
            (_, false) => "search by vectors",
            (_, true) => "search by vectors, filtered",
        }
    }

    /// Some of the documents of a searcher, or all without being named.
    fn scope(&mut self, at: usize) -> Option<Vec<String>> {
        if self.random.below(2) == 0 {
            return None;
        }
        let texts = &self.open[at].1;
        let random = &mut self.random;
        Some(texts.keys().filter(|_| random.below(3) == 0).cloned().collect())
    }
}

fn pick(random: &mut Random, texts: &Texts) -> Option<String> {
    if texts.is_empty() {
        return None;
    }
    texts.keys().nth(random.below(texts.len())).cloned()
}

#[test]
fn a_collection_is_the_map_of_what_was_committed() {
    let seed = from_environment("CENTO_MODEL_SEED", 1) as u64;
    let n_operations = from_environment("CENTO_MODEL_OPERATIONS", 2000);
    println!("seed {seed}, {n_operations} operations");
    let mut model = Model::new(seed);
    for _ in 0..n_operations {
        model.step();
    }
    println!("{:?}", model.n_done);
    assert!(["commit", "compact", "delete", "search by vectors, filtered"].iter().all(|done| model.n_done[done] > 0));
}
