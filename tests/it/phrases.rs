//! Quoted phrases on the command line: what answers has them, and what is said where none does.

use serde_json::Value;

use crate::support::Place;

fn documents(answer: &Value) -> Vec<&str> {
    let mut documents: Vec<&str> =
        answer["hits"].as_array().unwrap().iter().map(|hit| hit["document"].as_str().unwrap()).collect();
    documents.sort_unstable();
    documents.dedup();
    documents
}

#[test]
fn key_words_with_a_phrase_find_what_has_it() {
    let place = Place::indexed();
    for mode in ["lexical", "dense", "hybrid"] {
        let answer = place.json(&["search", "\"wild yeast\" starter", "--mode", mode]);
        assert_eq!(documents(&answer), ["notes/bread.md"], "{mode}");
        let texts = answer["hits"].as_array().unwrap().iter().map(|hit| hit["text"].as_str().unwrap());
        assert!(texts.clone().all(|text| text.contains("wild yeast")), "{mode}: {:?}", texts.collect::<Vec<_>>());
    }
    assert!(documents(&place.json(&["search", "wild yeast starter"])).len() > 1);
    let context = place.json(&["context", "“wild yeast” starter", "--budget", "200"]);
    for citation in context["citations"].as_array().unwrap() {
        assert_eq!(citation["document"], "notes/bread.md");
    }
    assert!(context["context"].as_str().unwrap().contains("wild yeast"));
}

#[test]
fn a_phrase_that_nothing_has_finds_nothing_and_is_said() {
    let place = Place::indexed();
    for query in ["\"yeast wild\" starter", "\"wild yeasts\""] {
        let ran = place.run(&["search", query]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.err.contains("no document has \""), "{ran:?}");
        let ran = place.run(&["search", query, "--json"]);
        let answer: Value = serde_json::from_str(&ran.out).unwrap();
        assert!(answer["warnings"][0].as_str().unwrap().starts_with("no document has"), "{answer}");
        let ran = place.run(&["context", query, "--budget", "200"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains("no document has \""), "{ran:?}");
    }
    assert!(!place.json(&["search", "\"wild yeasts\"", "--phrases", "words"])["hits"].as_array().unwrap().is_empty());
}

#[test]
fn a_batch_of_topics_takes_phrases_as_a_search_does() {
    let place = Place::indexed();
    place.write(
        "topics.tsv",
        "1\t\"wild yeast\" starter\n2\twho feeds the \"wild yeast\"?\n3\t\"yeast wild\"\n4\twild yeast starter\n",
    );
    let ran = place.ok(&["run", "--topics", "topics.tsv"]);
    let of = |topic: &str| ran.out.lines().filter(|line| line.starts_with(&format!("{topic} "))).count();
    assert_eq!([of("1"), of("2"), of("3"), of("4")], [1, 3, 0, 3], "{ran:?}");
    assert!(ran.err.contains("no phrase is required of 1 topic with"), "{ran:?}");
    assert!(ran.err.contains("no document has the phrases of 1 topic, such as \"\\\"yeast wild\\\"\""), "{ran:?}");
    let strict = place.ok(&["run", "--topics", "topics.tsv", "--phrases", "required"]);
    assert_eq!(strict.out.lines().filter(|line| line.starts_with("2 ")).count(), 1, "{strict:?}");
    let loose = place.ok(&["run", "--topics", "topics.tsv", "--phrases", "words"]);
    assert_eq!(loose.out.lines().filter(|line| line.starts_with("3 ")).count(), 3, "{loose:?}");
    assert!(!loose.err.contains("phrase"), "{loose:?}");
}

#[test]
fn a_trace_keeps_what_quotation_marks_meant() {
    let place = Place::indexed();
    let search =
        |trace: &str| -> Value { serde_json::from_slice::<Value>(&place.read(trace)).unwrap()["search"].clone() };
    place.ok(&["context", "\"wild yeast\" starter", "--budget", "200", "--trace", "t.json"]);
    assert_eq!(search("t.json")["phrases"], "auto");
    assert!(place.ok(&["replay", "t.json"]).err.contains("the same bytes as in the trace"));
    place.ok(&["context", "wild yeast starter", "--budget", "200", "--trace", "plain.json", "--k1", "1.5"]);
    assert!(search("plain.json").get("phrases").is_none(), "nothing was quoted");
    assert_eq!(search("plain.json")["weights"]["k1"], 1.5);
    assert!(place.ok(&["replay", "plain.json"]).err.contains("the same bytes as in the trace"));
    place.ok(&["context", "wild yeast starter", "--budget", "200", "--trace", "default.json"]);
    assert!(search("default.json").get("weights").is_none());
}
