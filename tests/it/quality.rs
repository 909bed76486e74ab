//! Figures on real data with the default encoder, where both are there; floors, not records.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use crate::support::{Place, data, default_model, root, tiny_model};

/// nDCG@10 as trec_eval computes it for binary gains in the order of the run; topics without results count as 0.
fn ndcg_at_10(run: &str, qrels: &Path) -> f64 {
    let mut judged: HashMap<String, HashMap<String, f64>> = HashMap::new();
    for line in std::fs::read_to_string(qrels).unwrap().lines().skip(1) {
        let mut columns = line.split('\t');
        let (topic, document, gain) = (columns.next().unwrap(), columns.next().unwrap(), columns.next().unwrap());
        judged.entry(topic.to_owned()).or_default().insert(document.to_owned(), gain.parse().unwrap());
    }
    let discount = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
    let mut gained: HashMap<&str, f64> = HashMap::new();
    for line in run.lines() {
        let columns: Vec<&str> = line.split(' ').collect();
        let rank = columns[3].parse::<usize>().unwrap() - 1;
        if let Some(gain) = judged.get(columns[0]).and_then(|gains| gains.get(columns[2])).filter(|_| rank < 10) {
            *gained.entry(columns[0]).or_default() += gain * discount(rank);
        }
    }
    let share = |(topic, gains): (&String, &HashMap<String, f64>)| {
        let mut ideal: Vec<f64> = gains.values().copied().collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        let ideal: f64 = ideal.iter().take(10).enumerate().map(|(rank, gain)| gain * discount(rank)).sum();
        if ideal > 0.0 { gained.get(topic.as_str()).copied().unwrap_or(0.0) / ideal } else { 0.0 }
    };
    judged.iter().map(share).sum::<f64>() / judged.len() as f64
}

#[test]
fn lexical_ranking_of_scifact_is_that_of_bm25_on_whole_documents() {
    let Some(set) = data("scifact") else { return };
    let place = Place::new();
    let set_name = set.display().to_string();
    place.ok(&["index", "--model", &tiny_model(), &set_name, "--chunk-tokens", "64"]);
    place.ok(&["run", "--topics", &set_name, "--mode", "lexical", "-o", "run.trec"]);
    let run = String::from_utf8(place.read("run.trec")).unwrap();
    let ndcg = ndcg_at_10(&run, &set.join("qrels/train.tsv"));
    assert!(ndcg >= 0.685, "nDCG@10 {ndcg:.4}");
    let judged = place.json(&["eval", &set_name, "run.trec", "-m", "nDCG@10"])["nDCG@10"].as_f64().unwrap();
    assert!((judged - ndcg).abs() < 1e-9, "eval says {judged}, the sum by hand {ndcg}");
}

#[test]
fn the_hybrid_leans_on_words_where_vectors_cannot_tell_documents_apart() {
    let Some(set) = data("limit_small") else { return };
    let Some(model) = default_model() else { return };
    let place = Place::new();
    let set = set.display().to_string();
    place.ok(&["index", "--model", &model, &set]);
    let ndcg = |mode: &str| {
        place.ok(&["run", "--topics", &set, "--mode", mode, "-k", "46", "-o", "run.trec"]);
        place.json(&["eval", &set, "run.trec", "-m", "nDCG@10"])["nDCG@10"].as_f64().unwrap()
    };
    let (dense, hybrid) = (ndcg("dense"), ndcg("hybrid"));
    assert!(dense < 0.5 && hybrid >= 0.98, "dense {dense:.4}, hybrid {hybrid:.4}");
}

/// Questions that read like one page of the Rust book and are answered on a page that it links to.
#[test]
fn links_of_authors_lift_the_pages_behind_them() {
    let Some(set) = data("rust_book") else { return };
    let Some(model) = default_model() else { return };
    let place = Place::new();
    let pages = set.join("src").display().to_string();
    place.ok(&["index", "--model", &model, "--chunk-tokens", "document", &pages]); // a page a vector: seconds
    let questions = root().join("tests/data/rust_book_links");
    let topics = questions.display().to_string();
    let ndcg = |links: &str| {
        place.ok(&["run", "--topics", &topics, "--links", links, "-k", "100", "-o", "run.trec"]);
        ndcg_at_10(&String::from_utf8(place.read("run.trec")).unwrap(), &questions.join("qrels/test.tsv"))
    };
    let (none, authored, all) = (ndcg("none"), ndcg("authored"), ndcg("all"));
    assert!(authored > none + 0.05 && all > none + 0.05, "none {none:.4}, authored {authored:.4}, all {all:.4}");
}

#[test]
fn the_first_ten_do_not_depend_on_k_on_real_queries() {
    let Some(set) = data("scifact") else { return };
    let Some(model) = default_model() else { return };
    let place = Place::new();
    // A part of the corpus is enough for the claim, and embeds in seconds.
    let corpus = std::fs::read_to_string(set.join("corpus.jsonl")).unwrap();
    place.write("part/corpus.jsonl", corpus.lines().take(150).collect::<Vec<_>>().join("\n"));
    place.write(
        "part/queries.jsonl",
        std::fs::read_to_string(set.join("queries.jsonl")).unwrap().lines().take(500).collect::<Vec<_>>().join("\n"),
    );
    place.ok(&["index", "--model", &model, "part"]);
    let tops = |k: &str| {
        let run = place.ok(&["run", "--topics", "part", "-k", k]).out;
        let mut tops: HashMap<String, Vec<String>> = HashMap::new();
        for line in run.lines() {
            let columns: Vec<&str> = line.split(' ').collect();
            let top = tops.entry(columns[0].to_owned()).or_default();
            if top.len() < 10 {
                top.push(format!("{} {}", columns[2], columns[4]));
            }
        }
        tops
    };
    let few = tops("10");
    assert_eq!(few.len(), 500);
    assert_eq!(few, tops("1000"));
}

#[test]
fn contexts_of_the_rust_book_keep_their_budget_and_cite_its_bytes() {
    let Some(set) = data("rust_book") else { return };
    let Some(model) = default_model() else { return };
    let place = Place::new();
    let chapters = set.join("src");
    for entry in std::fs::read_dir(&chapters).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("ch04") || name.starts_with("ch10") {
            place.write(&format!("book/{name}"), std::fs::read(&path).unwrap());
        }
    }
    place.ok(&["index", "--model", &model, "book"]);
    for tokenizer in ["o200k", "cl100k", "model"] {
        for budget in ["50", "200", "800", "3200"] {
            let context = place.json(&[
                "context",
                "How do ownership, borrowing and lifetimes keep references valid?",
                "--budget",
                budget,
                "--tokenizer",
                tokenizer,
            ]);
            assert!(context["n_tokens"].as_u64().unwrap() <= budget.parse().unwrap());
            let citations = context["citations"].as_array().unwrap();
            assert!(!citations.is_empty(), "{tokenizer} {budget}: nothing delivered");
            for citation in citations {
                check_citation(&place, &context, citation);
            }
        }
    }
}

fn check_citation(place: &Place, context: &Value, citation: &Value) {
    let file = String::from_utf8(place.read(citation["document"].as_str().unwrap())).unwrap();
    let (start, end) =
        (citation["span"]["start"].as_u64().unwrap() as usize, citation["span"]["end"].as_u64().unwrap() as usize);
    assert!(context["context"].as_str().unwrap().contains(&file[start..end]), "{citation}");
}

#[test]
fn a_question_on_something_else_gets_an_empty_context_and_its_own_questions_do_not() {
    let (Some(set), Some(other)) = (data("xquad.en"), data("cosqa")) else { return };
    let Some(model) = default_model() else { return };
    let place = Place::new();
    let set = set.display().to_string();
    place.ok(&["index", "--model", &model, &set]);
    let share_empty = |queries: &Path| {
        let queries = std::fs::read_to_string(queries.join("queries.jsonl")).unwrap();
        let some: Vec<&str> = queries.lines().step_by(queries.lines().count() / 100).take(100).collect();
        place.write("topics.jsonl", some.join("\n"));
        let files = ["--topics", "topics.jsonl", "-k", "1", "-o", "run.trec", "--contexts", "contexts.jsonl"];
        place.ok(&[&["run"][..], &files, &["--budget", "400"]].concat());
        let contexts = String::from_utf8(place.read("contexts.jsonl")).unwrap();
        let is_empty = |line: &&str| {
            let context: Value = serde_json::from_str(line).unwrap();
            context["citations"].as_array().unwrap().is_empty()
        };
        contexts.lines().filter(is_empty).count() as f64 / contexts.lines().count() as f64
    };
    let (own, others) = (share_empty(Path::new(&set)), share_empty(&other));
    assert!(own <= 0.02 && others >= 0.95, "own {own}, others {others}");
    let ran = place.run(&["context", "python check if a variable is iterable", "--budget", "400"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("the collection has no answer (support "), "{ran:?}");
}
