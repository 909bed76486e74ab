//! Vectors of one's own: indexed, searched, run and served without an encoder.

use serde_json::{Value, json};

use crate::serving::Serving;
use crate::support::{Place, root, tiny_model};

/// Five points of a plane.
const POINTS: [[f32; 2]; 5] = [[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [4.0, 4.0], [0.5, 0.5]];

/// An array as NumPy writes it.
fn numpy(rows: &[[f32; 2]]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 2), }}\n", rows.len());
    let mut bytes = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat();
    bytes.extend(floats(rows));
    bytes
}

fn floats(rows: &[[f32; 2]]) -> Vec<u8> {
    rows.iter().flatten().flat_map(|value| value.to_le_bytes()).collect()
}

/// A collection of the points, by Euclidean distance, with texts or without.
fn points(texts: &[&str]) -> Place {
    let place = Place::new();
    place.write("points.npy", numpy(&POINTS));
    place.write("ids", "east\nnorth\nwest\nfar\nnear\n");
    place.write("texts.jsonl", texts.join("\n"));
    let index = ["index", "--from-vectors", "points.npy", "--ids", "ids", "--distance", "euclidean"];
    let with_texts: &[&str] = if texts.is_empty() { &[] } else { &["--texts", "texts.jsonl"] };
    let answer = place.json(&[&index, with_texts].concat());
    assert_eq!((answer["n_added"].as_u64(), answer["n_tokens_embedded"].as_u64()), (Some(5), Some(0)));
    place
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["hits"].as_array().unwrap().iter().map(|hit| hit["document"].as_str().unwrap()).collect()
}

#[test]
fn vectors_are_searched_by_vectors_with_their_own_distances() {
    let place = points(&[]);
    place.write("q.json", "[1, 1]");
    let answer = place.json(&["search", "--vector", "q.json", "-k", "3"]);
    assert_eq!(ids(&answer), ["near", "east", "north"]);
    let scores: Vec<f64> =
        answer["hits"].as_array().unwrap().iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
    assert!((scores[0] + 0.5_f64.sqrt()).abs() < 1e-12 && scores[1] == -1.0, "{scores:?}");
    place.write("two.npy", numpy(&[[4.0, 3.0], [-9.0, 0.0]]));
    let ran = place.ok(&["search", "--vector", "two.npy", "-k", "1", "--json"]);
    let answers: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.iter().flat_map(ids).collect::<Vec<_>>(), ["far", "west"]);
    place.write("topics.tsv", "a\t-\nb\t-\n");
    let run = ["run", "--topics", "topics.tsv", "--topic-vectors", "two.npy", "--mode", "dense", "-k", "1"];
    let trec = place.ok(&run).out;
    let found: Vec<&str> = trec.lines().map(|line| line.split_whitespace().nth(2).unwrap()).collect();
    assert_eq!(found, ["far", "west"], "{trec}");
}

#[test]
fn files_of_other_programs_are_indexed_and_asked_with() {
    let file = |name: &str| root().join("tests/data/vectors").join(name).display().to_string();
    let (hdf5, parquet) = (file("five-2-euclidean.hdf5"), file("five.parquet"));
    let place = Place::new();
    place.ok(&["index", "--from-vectors", &hdf5]);
    let ran = place.ok(&["search", "--vector", &hdf5, "-k", "3", "--json"]);
    let answers: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<_> = answers.iter().map(ids).collect();
    assert_eq!(found, [["3", "1", "0"], ["2", "1", "4"]], "the neighbours that the file has, by its own distance");
    place.run(&["index", "--from-vectors", &hdf5, "--vector-column", "trian"]).fails(3, &["\"trian\"", "train"]);

    let place = Place::new();
    let ran = place.ok(&["index", "--from-vectors", &parquet, "--distance", "euclidean"]);
    assert!(ran.err.contains("left out: \"seen\""), "{}", ran.err);
    assert_eq!(ids(&place.json(&["search", "sets", "--mode", "lexical"])), ["west"]);
    place.write("q.json", "[4, 4]");
    let recent = ["search", "--vector", "q.json", "-k", "1", "--mode", "dense", "--filter", "year < 3"];
    assert_eq!(ids(&place.json(&recent)), ["north"]);
    let ran = place.ok(&["search", "--vector", &parquet, "-k", "1", "--mode", "dense", "--json"]);
    let answers: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.iter().flat_map(ids).collect::<Vec<_>>(), ["east", "north", "west", "far", "near"]);
    place.run(&["index", "--from-vectors", &parquet, "--vector-column", "year"]).fails(3, &["there are \"vector\""]);
    place.write("points.npy", numpy(&POINTS));
    place.run(&["index", "--from-vectors", "points.npy", "--vector-column", "x"]).fails(3, &["dataset \"x\""]);
}

#[test]
fn what_needs_words_or_an_encoder_says_so_and_names_the_way_out() {
    let place = points(&[]);
    place.run(&["search", "east"]).fails(2, &["without texts", "--vector"]);
    place.run(&["search", "east", "--mode", "dense"]).fails(2, &["no encoder", "--vector"]);
    place.run(&["context", "east"]).fails(2, &["without texts"]);
    place.write("wide.json", "[1, 2, 3]");
    place.run(&["search", "--vector", "wide.json"]).fails(2, &["3 dimensions", "2 of the collection"]);
    place.write("short.f32", [0; 7]);
    place.run(&["search", "--vector", "short.f32"]).fails(3, &["short.f32", "7 bytes"]);
    place.write("notes/a.md", "text");
    place.run(&["index", "notes", "--model", &tiny_model()]).fails(3, &["model", "its vectors were given"]);
    place.run(&["index", "--from-vectors", "points.npy", "--model", "x"]).fails(2, &["--model"]);
    place.run(&["index"]).fails(2, &["PATH"]);
    let other = Place::new();
    other.write("points.npy", numpy(&POINTS));
    other.run(&["index", "--from-vectors", "points.npy"]).fails(3, &["row 1 has length 2", "--normalize"]);
    other.ok(&["index", "--from-vectors", "points.npy", "--normalize"]);
}

#[test]
fn with_texts_words_contexts_and_every_care_of_a_collection_work() {
    let texts = ["the sun rises", "the pole star", "the sun sets", "beyond the sea", "at home"]
        .map(|text| json!({ "text": text }).to_string());
    let place = points(&texts.each_ref().map(String::as_str));
    assert_eq!(ids(&place.json(&["search", "sets", "--mode", "lexical"])), ["west"]);
    let context = place.json(&["context", "where the sun sets", "--mode", "lexical", "--budget", "60"]);
    assert!(context["context"].as_str().unwrap().contains("the sun sets"), "{context}");
    place.write("q.json", "[4, 4]");
    let both = place.json(&["search", "sea", "--vector", "q.json"]);
    assert_eq!((ids(&both)[0], both["hits"][0]["contributions"].as_array().unwrap().len()), ("far", 2));
    assert!(place.ok(&["status"]).out.contains("no encoder: vectors that were given, 2 dimensions, euclidean"));
    place.ok(&["snapshot", "create", "before"]);
    place.ok(&["delete", "far"]);
    assert_eq!(ids(&place.json(&["search", "--vector", "q.json", "-k", "1"])), ["north"]);
    assert_eq!(ids(&place.json(&["search", "--vector", "q.json", "-k", "1", "--snapshot", "before"])), ["far"]);
    place.ok(&["compact", "--all"]);
    place.ok(&["doctor"]);
    place.ok(&["repair"]);
    assert_eq!(ids(&place.json(&["search", "--vector", "q.json", "-k", "1"])), ["north"]);
}

#[test]
fn neighbours_over_http_are_the_same_from_json_and_from_bare_floats() {
    let place = points(&[]);
    let serving = Serving::start(&place, &[]);
    let queries = [[4.0, 3.0], [-9.0, 0.0]];
    let answer = serving.told("/v1/neighbors", &json!({ "vectors": queries, "k": 2 }));
    assert_eq!(answer["distance"], "euclidean");
    assert_eq!(answer["neighbors"][0]["ids"][0], "far");
    assert_eq!(answer["neighbors"][1]["ids"], json!(["west", "north"]));
    let scores: Vec<f64> = serde_json::from_value(answer["neighbors"][1]["scores"].clone()).unwrap();
    let expected = [-6.0, -(85_f64.sqrt())];
    let near = scores.iter().zip(expected).all(|(score, expected)| (score - expected).abs() < 1e-12);
    assert!(scores.len() == 2 && near, "{scores:?}");
    let octets = [("Content-Type", "application/octet-stream")];
    let bare = serving.ask("POST", "/v1/neighbors?k=2&scan=exact", &octets, &floats(&queries));
    assert_eq!(bare.json(), answer);
    let one = serving.told("/v1/search", &json!({ "vector": [4, 3], "k": 1 }));
    assert_eq!(ids(&one), ["far"]);
    let refused = |path: &str, body: &[u8], code: &str, words: &str| {
        let said = serving.ask("POST", path, &octets, body).refused(400, code);
        assert!(said.contains(words), "{said}");
    };
    refused("/v1/neighbors", &[0; 7], "request", "7 bytes");
    refused("/v1/neighbors?k=no", &[0; 8], "request", "no number");
    refused("/v1/neighbors?depth=3", &[0; 8], "unknown_field", "depth");
    refused("/v1/neighbors?k=2&ef=1", &[0; 8], "setting", "ef");
    refused("/v1/neighbors", &f32::NAN.to_le_bytes().repeat(2), "setting", "finite");
    let said = serving.post("/v1/neighbors", &json!({ "vectors": [[1, 2, 3]] })).refused(400, "setting");
    assert!(said.contains("3 dimensions"), "{said}");
    serving.post("/v1/neighbors", &json!({ "vectors": [] })).refused(400, "setting");
    serving.post("/v1/search", &json!({ "query": "east" })).refused(400, "no_words");
    serving.post("/v1/search", &json!({ "query": "east", "mode": "dense" })).refused(400, "no_encoder");
    serving.post("/v1/search", &json!({ "k": 1 })).refused(400, "empty_query");
    assert_eq!(serving.get("/v1/models").json()["data"], json!([]), "there is no encoder");
}

#[test]
fn a_collection_with_an_encoder_is_asked_by_vector_too() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let embedded = serving.told("/v1/embed", &json!({ "texts": ["what moves the sea"], "kind": "query" }));
    let vector = &embedded["vectors"][0];
    let by_text = serving.told("/v1/search", &json!({ "query": "what moves the sea", "mode": "dense" }));
    let by_vector = serving.told("/v1/search", &json!({ "vector": vector }));
    let scored = |answer: &Value| {
        let hits = answer["hits"].as_array().unwrap().iter();
        hits.map(|hit| (hit["id"].clone(), hit["score"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(scored(&by_text), scored(&by_vector), "the same vector, the same scores");
    let neighbors = serving.told("/v1/neighbors", &json!({ "vectors": [vector] }));
    let ids: Vec<Value> = scored(&by_text).into_iter().map(|(id, _)| id).collect();
    assert_eq!(neighbors["neighbors"][0]["ids"].as_array().unwrap(), &ids, "chunks by their own ids");
}
