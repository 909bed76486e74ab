//! Reading questions: small sets in a folder that is gone after the test, and the evaluation data if `CENTO_DATA` names
//! it.

use std::path::Path;

use super::*;
use crate::Error;

/// Writes files and reads them as a set; an error with the folder called `SET`.
fn read(files: &[(&str, &str)]) -> std::result::Result<Questions, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    let told = |error: Error| error.to_string().replace(folder.path().to_str().unwrap(), "SET");
    Questions::read(folder.path()).map_err(told)
}

/// An excerpt set of two files and these questions.
fn excerpts(questions: &str) -> std::result::Result<Questions, String> {
    read(&[
        ("docs/a.com.txt", "Café au lait. Thé vert."),
        ("docs/b.md", "# B\nNuts 🥜 and bolts."),
        ("docs/.hidden", "no"),
        ("questions.jsonl", questions),
    ])
}

#[test]
fn offsets_in_code_points_become_bytes_that_hold_the_text() {
    let questions = excerpts(
        r#"{"id":"q2","question":"tea?","scope":"a.com","answer":null,"refs":[{"doc":"a.com","start":14,"end":17,"text":"Thé"}]}
{"id":"q1","question":"nuts?","scope":["a.com","b"],"answer":"nuts","refs":[{"doc":"b","start":4,"end":10,"text":"Nuts 🥜"},{"doc":"a.com","start":0,"end":4,"text":"Café"}]}"#,
    )
    .unwrap();
    assert_eq!(questions.iter().map(|q| q.id.as_str()).collect::<Vec<_>>(), ["q1", "q2"]);
    let [q1, q2] = ["q1", "q2"].map(|id| questions.of(id).unwrap());
    let span = |document: &str, span, text: &str| Evidence { document: document.into(), span, text: text.into() };
    assert_eq!(q1.evidence, [span("docs/b.md", 4..13, "Nuts 🥜"), span("docs/a.com.txt", 0..5, "Café")]);
    assert_eq!(q1.documents, ["docs/a.com.txt", "docs/b.md"]);
    assert_eq!(q1.scope.as_deref().unwrap(), ["docs/a.com.txt", "docs/b.md"]);
    assert_eq!(q1.answers, ["nuts"]);
    assert_eq!(q2.evidence, [span("docs/a.com.txt", 15..19, "Thé")]);
    assert_eq!(q2.scope.as_deref().unwrap(), ["docs/a.com.txt"]);
    assert!(q2.answers.is_empty());
    assert_eq!(questions.text("docs/b.md").unwrap(), "# B\nNuts 🥜 and bolts.");
    assert_eq!(questions.text("docs/.hidden"), None);
    let topic = &questions.topics()[1];
    assert_eq!((topic.id.as_str(), topic.text.as_str()), ("q2", "tea?"));
}

#[track_caller]
fn refused(reference: &str, expected: &str) {
    let line = format!(r#"{{"id":"q1","question":"?","refs":[{reference}]}}"#);
    assert_eq!(excerpts(&line).unwrap_err(), format!("SET/questions.jsonl, line 1: question q1{expected}"));
}

#[test]
fn evidence_that_is_elsewhere_names_question_and_document() {
    refused(
        r#"{"doc":"b","start":4,"end":8,"text":"Bolt"}"#,
        r#", document "docs/b.md": characters 4..8 are "Nuts", the reference says "Bolt""#,
    );
    refused(
        r#"{"doc":"b","start":4,"end":800,"text":"Nuts"}"#,
        r#", document "docs/b.md": characters 4..800 are outside the file, which has 21"#,
    );
    refused(r#"{"doc":"b","start":4,"end":4,"text":""}"#, r#", document "docs/b.md": characters 4..4 are no span"#);
}

#[test]
fn a_document_nobody_has_is_refused_with_those_near_it() {
    refused(
        r#"{"doc":"a.con","start":0,"end":1,"text":"C"}"#,
        r#" names document "a.con", which no file of docs/ has; near it: a.com, b"#,
    );
}

#[test]
fn a_name_of_two_files_wants_the_extension() {
    let set = |name: &str| {
        let line = format!(r#"{{"id":"q","question":"?","refs":[{{"doc":"{name}","start":0,"end":1,"text":"x"}}]}}"#);
        read(&[("docs/a.md", "x"), ("docs/a.txt", "x"), ("questions.jsonl", &line)])
    };
    assert_eq!(
        set("a").unwrap_err(),
        r#"SET/questions.jsonl, line 1: question q names document "a", which a.md and a.txt have; give the extension too"#
    );
    assert_eq!(set("a.txt").unwrap().of("q").unwrap().documents, ["docs/a.txt"]);
}

#[test]
fn missing_fields_and_repeated_ids_are_named() {
    let line = r#"{"id":"q1","question":"?","refs":[{"doc":"b","start":2,"end":3,"text":"B"}]}"#;
    assert_eq!(
        excerpts(&format!("{line}\n{line}")).unwrap_err(),
        "SET/questions.jsonl, line 2: question q1 is there twice"
    );
    let error = excerpts(r#"{"id":"q1","refs":[]}"#).unwrap_err();
    assert!(error.contains("line 1") && error.contains("missing field `question`"), "{error}");
    let error = excerpts(r#"{"id":"q1","question":"?","answer":3,"refs":[]}"#).unwrap_err();
    assert!(error.contains("a string or an array of strings"), "{error}");
}

#[test]
fn a_question_without_references_is_left_out() {
    let error = excerpts(r#"{"id":"q1","question":"?","refs":[]}"#).unwrap_err();
    assert_eq!(error, "SET: no questions with gold documents");
}

#[test]
fn a_folder_of_neither_layout_is_refused() {
    assert!(read(&[("corpus.jsonl", "{}")]).unwrap_err().starts_with("SET: not a set of questions"));
}

const QUERIES: &str = r#"{"_id":"q1","text":"who?","metadata":{"answer":"Ann"}}
{"_id":"q2","text":"when?","metadata":{"answers":["1990",""],"scope":["d2"]}}
{"_id":"q3","text":"unjudged"}
{"_id":"q4","text":"judged, nothing relevant","scope":"d1"}"#;
const QRELS: &str = "query-id\tcorpus-id\tscore\nq1\td2\t1\nq1\td1\t2\nq1\td3\t0\nq2\td2\t1\nq4\td1\t0\n";

#[test]
fn gold_documents_of_a_beir_folder_are_those_judged_above_zero() {
    let facts = r#"{"query":"q1","doc":"d2","sentences":["One.","Two."]}
{"query":"q1","doc":"d1","sentences":["Three.", " "]}
{"query":"q1","doc":"d2","sentences":["Two."]}
{"query":"elsewhere","doc":"d2","sentences":["Two."]}"#;
    let set = read(&[("queries.jsonl", QUERIES), ("qrels/test.tsv", QRELS), ("facts.jsonl", facts)]).unwrap();
    assert_eq!(set.len(), 2);
    let [q1, q2] = ["q1", "q2"].map(|id| set.of(id).unwrap());
    assert_eq!(q1.documents, ["d1", "d2"]);
    assert_eq!((q1.answers.clone(), q2.answers.clone()), (vec!["Ann".to_owned()], vec!["1990".to_owned()]));
    assert_eq!((q1.scope.clone(), q2.scope.clone()), (None, Some(vec!["d2".to_owned()])));
    let fact = |document: &str, sentences: &[&str]| Fact {
        document: document.into(),
        sentences: sentences.iter().map(|s| (*s).into()).collect(),
    };
    assert_eq!(q1.facts, [fact("d1", &["Three."]), fact("d2", &["One.", "Two."])]);
    assert!(q2.facts.is_empty());
    assert_eq!(set.documents(), ["d1", "d2"]);
}

#[test]
fn the_union_of_alternative_sentence_sets_is_the_facts() {
    let set = |sets: &str| {
        read(&[
            ("queries.jsonl", QUERIES),
            ("qrels/test.tsv", QRELS),
            ("rationales.jsonl", &format!(r#"{{"query":"q1","doc":"d1","label":"SUPPORT","sentence_sets":{sets}}}"#)),
            ("sentences.json", r#"{"d1":["Zero.","One.","Two."]}"#),
        ])
    };
    assert_eq!(set("[[2,0],[2]]").unwrap().of("q1").unwrap().facts[0].sentences, ["Zero.", "Two."]);
    assert_eq!(
        set("[[3]]").unwrap_err(),
        r#"SET/rationales.jsonl, line 1: question q1, document "d1": sentence 3 is not there, sentences.json has 3 of the document"#
    );
}

#[test]
fn every_set_of_the_evaluation_data_is_read() {
    let Some(data) = std::env::var_os("CENTO_DATA") else { return eprintln!("skipped: CENTO_DATA is not set") };
    // Set, questions, with an answer, spans of evidence, sentences of facts.
    let sets = [
        ("chroma_chunking", 317, 0, 487, 0),
        ("qmsum_val", 237, 237, 248, 0),
        ("policyqa_dev", 2_420, 0, 6_040, 0),
        ("hotpot200", 200, 200, 0, 473),
        ("hotpot100train", 100, 100, 0, 229),
        ("musique100train", 100, 100, 0, 0),
        ("wiki2_101", 101, 0, 0, 0),
        ("scifact", 809, 0, 0, 1_025),
    ];
    for (set, n_questions, n_answered, n_spans, n_sentences) in sets {
        let folder = Path::new(&data).join(set);
        if !folder.is_dir() {
            eprintln!("skipped: no {set} in CENTO_DATA");
            continue;
        }
        let questions = Questions::read(&folder).unwrap();
        let answered = questions.iter().filter(|q| !q.answers.is_empty()).count();
        let spans: usize = questions.iter().map(|q| q.evidence.len()).sum();
        let sentences: usize = questions.iter().flat_map(|q| &q.facts).map(|fact| fact.sentences.len()).sum();
        assert_eq!(
            (questions.len(), answered, spans, sentences),
            (n_questions, n_answered, n_spans, n_sentences),
            "{set}"
        );
    }
}
