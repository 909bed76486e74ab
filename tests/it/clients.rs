//! Clients of other makers against `cento serve`: their words in short, and the clients themselves where they are.

use std::process::Command;

use serde_json::{Value, json};

use crate::serving::Serving;
use crate::support::{Place, binary, root};

/// The Python environment of `scripts/make-clients`, or a note that the test is skipped.
fn clients() -> Option<String> {
    let folder = std::env::var("CENTO_CLIENTS").ok();
    if folder.is_none() {
        eprintln!("skipped: CENTO_CLIENTS names no environment of scripts/make-clients");
    }
    folder
}

#[track_caller]
fn run(place: &Place, arguments: &[&str]) {
    let Some(folder) = clients() else { return };
    let script = root().join("tests/data/clients.py");
    let mut command = Command::new(format!("{folder}/bin/python"));
    command
        .arg(script)
        .args(arguments)
        .current_dir(place.path(""))
        .env("TIKTOKEN_CACHE_DIR", format!("{folder}/tiktoken"));
    let ran = command.env("HF_HUB_OFFLINE", "0").env_remove("CENTO_CLIENTS").output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
}

#[test]
fn clients_of_other_makers_work_unchanged() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    run(&place, &[&format!("http://{}", serving.address)]);
}

#[test]
fn a_client_of_another_maker_speaks_over_pipes() {
    let place = Place::indexed();
    let collection = place.path(".cento").display().to_string();
    run(&place, &["mcp", &binary().display().to_string(), "mcp", "--collection", &collection]);
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

#[test]
fn embeddings_are_the_same_in_all_words() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let texts = ["the tide rises", "bread"];
    let own = serving.told("/v1/embed", &json!({"texts": texts}));
    let openai = serving.told("/v1/embeddings", &json!({"model": "any", "input": texts}));
    let tei = serving.told("/embed", &json!({"inputs": texts}));
    assert_eq!((&openai["model"], &openai["object"]), (&"tiny".into(), &"list".into()));
    for n in 0..2 {
        assert_eq!(openai["data"][n]["embedding"], own["vectors"][n]);
        assert_eq!(tei[n], own["vectors"][n]);
    }
    let accept = [("Accept", "application/octet-stream")];
    let bare = serving.ask("POST", "/v1/embed", &accept, json!({"texts": texts}).to_string().as_bytes()).body;
    let values: Vec<f32> = bare.chunks(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
    let listed: Vec<f64> = (0..2).flat_map(|n| floats(&own["vectors"][n])).collect();
    assert_eq!(
        values.iter().map(|value| value.to_string()).collect::<Vec<_>>(),
        listed.iter().map(|value| (*value as f32).to_string()).collect::<Vec<_>>()
    );
    // cl100k: "hello world", and " bread"
    let tokens = serving.told("/v1/embeddings", &json!({"model": "any", "input": [15339, 1917]}));
    let text = serving.told("/v1/embeddings", &json!({"model": "any", "input": "hello world"}));
    assert_eq!(tokens["data"], text["data"]);
    let short =
        serving.told("/v1/embeddings", &json!({"input": "bread", "dimensions": 4}))["data"][0]["embedding"].clone();
    let length: f64 = floats(&short).iter().map(|value| value * value).sum();
    assert!(floats(&short).len() == 4 && (length - 1.0).abs() < 1e-6, "{short}");
    let many = vec!["tide"; 3_000];
    let all = serving.told("/v1/embeddings", &json!({"input": many}));
    assert_eq!(all["data"].as_array().unwrap().len(), 3_000);
}

#[test]
fn a_text_too_long_is_an_error_unless_its_end_may_go() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let texts = ["tide".to_owned(), "tide and moon ".repeat(2_000)];
    let asked = json!({"input": texts});
    let refused = serving.post("/v1/embeddings", &asked);
    let words = refused.refused(413, "too_long");
    assert!(words.contains("text 1 has more than the") && words.contains("truncate"), "{words}");
    serving.post("/embed", &json!({"inputs": texts})).refused(413, "too_long");
    serving.post("/rerank", &json!({"query": "tide", "texts": texts})).refused(413, "too_long");
    let cut = serving.told("/v1/embeddings", &json!({"input": texts, "truncate": true}));
    assert_eq!(cut["usage"]["truncated"], 1, "{}", cut["usage"]);
    drop(serving);
    let serving = Serving::start(&place, &["--auto-truncate"]);
    assert_eq!(serving.told("/v1/embeddings", &asked)["usage"]["truncated"], 1);
    serving.post("/v1/embeddings", &json!({"input": texts, "truncate": false})).refused(413, "too_long");
}

#[test]
fn embeddings_that_cannot_be_are_refused() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    for (path, body, parameter) in [
        ("/v1/embeddings", json!({"input": []}), "input"),
        ("/v1/embeddings", json!({"input": {"text": "x"}}), "input"),
        ("/v1/embeddings", json!({"model": "any"}), "."),
        ("/v1/embeddings", json!({"input": [4_000_000]}), "tokens"),
        ("/v1/embeddings", json!({"model": "text-davinci-003", "input": [1]}), "input"),
        ("/v1/embeddings", json!({"input": "x", "dimensions": 100_000}), "dimensions"),
        ("/v1/embeddings", json!({"input": "x", "encoding_format": "hex"}), "encoding_format"),
        ("/embed", json!({"inputs": "x", "normalize": false}), "normalize"),
        ("/embed", json!({"inputs": "x", "prompt_name": "poem"}), "prompt_name"),
        ("/rerank", json!({"query": "x"}), "documents"),
        ("/rerank", json!({"query": "x", "texts": ["a"], "documents": ["b"]}), "texts"),
        ("/rerank", json!({"query": "x", "texts": []}), "texts"),
        ("/rerank", json!({"query": " ", "texts": ["a"]}), "query"),
    ] {
        let refused = serving.post(path, &body);
        assert_eq!(refused.status, 400, "{path} {body}: {}", refused.text());
        assert_eq!(refused.json()["error"]["parameter"], parameter, "{path} {body}: {}", refused.text());
    }
}

#[test]
fn texts_are_ranked_in_the_words_of_two_makers() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let texts = ["bread is flour", "the tide", "stars"];
    for path in ["/v1/rerank", "/v2/rerank", "/rerank"] {
        let asked =
            json!({"model": "any", "query": "the tide", "documents": texts, "top_n": 2, "return_documents": true});
        let answer = serving.post(path, &asked);
        assert_eq!(answer.header("x-cento-scored-by"), Some("cosine"), "{}", answer.head);
        let answer = answer.json();
        assert_eq!(answer["results"].as_array().unwrap().len(), 2);
        assert_eq!((&answer["results"][0]["index"], &answer["meta"]["scored_by"]), (&1.into(), &"cosine".into()));
        assert_eq!(answer["results"][0]["document"]["text"], "the tide");
        assert!((answer["results"][0]["relevance_score"].as_f64().unwrap() - 1.0).abs() < 1e-6, "{answer}");
        let listed = serving.told(path, &json!({"query": "the tide", "texts": texts}));
        let indexes: Vec<u64> = listed.as_array().unwrap().iter().map(|one| one["index"].as_u64().unwrap()).collect();
        assert_eq!((indexes.len(), indexes[0]), (3, 1), "{listed}");
        assert!(listed[0].get("text").is_none() && listed[0]["score"].is_f64(), "{listed}");
    }
    let objects = json!({"query": "stars", "documents": [{"text": "bread"}, {"text": "stars"}]});
    assert_eq!(serving.told("/v1/rerank", &objects)["results"][0]["index"], 1);
    let info = serving.get("/info").json();
    assert!(info["model_id"] == "tiny" && info["max_input_length"].as_u64().unwrap() > 8, "{info}");
}

#[test]
fn a_collection_is_a_vector_store_and_a_knowledge_base() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let stores = serving.get("/v1/vector_stores").json();
    assert_eq!((&stores["data"][0]["id"], &stores["data"][0]["file_counts"]["total"]), (&"cento".into(), &3.into()));
    assert_eq!(serving.get("/v1/vector_stores/cento").json(), stores["data"][0]);
    serving.get("/v1/vector_stores/other").refused(404, "unknown_collection");
    let own = serving.told("/v1/search", &json!({"query": "what moves the sea", "k": 3}));
    let asked = json!({"query": "what moves the sea", "max_num_results": 3});
    let found = serving.told("/v1/vector_stores/cento/search", &asked);
    let asked = json!({"knowledge_id": "cento", "query": "what moves the sea", "retrieval_setting": {"top_k": 3}});
    let records = serving.told("/retrieval", &asked);
    assert_eq!(own["hits"].as_array().unwrap().len(), 3);
    for (n, hit) in own["hits"].as_array().unwrap().iter().enumerate() {
        assert_eq!(found["data"][n]["content"][0]["text"], hit["text"]);
        assert_eq!((&found["data"][n]["score"], &records["records"][n]["score"]), (&hit["score"], &hit["score"]));
        assert_eq!((&found["data"][n]["file_id"], &records["records"][n]["content"]), (&hit["document"], &hit["text"]));
    }
    let filters = json!({"type": "eq", "key": "type", "value": "text"});
    let found = serving.told("/v1/vector_stores/cento/search", &json!({"query": "sea", "filters": filters}));
    let documents: Vec<&Value> = found["data"].as_array().unwrap().iter().map(|one| &one["file_id"]).collect();
    assert!(!documents.is_empty() && documents.iter().all(|id| **id == "notes/sub/stars.txt"), "{documents:?}");
    let least = json!({"query": "sea", "ranking_options": {"score_threshold": 2.0}});
    assert_eq!(serving.told("/v1/vector_stores/cento/search", &least)["data"], json!([]));
    for (path, body, parameter) in [
        ("/v1/vector_stores/cento/search", json!({"query": "x", "max_num_results": 51}), "max_num_results"),
        ("/v1/vector_stores/cento/search", json!({"query": "x", "filters": {"type": "like"}}), "filters"),
        ("/retrieval", json!({"knowledge_id": "cento", "query": "x"}), "."),
        (
            "/retrieval",
            json!({"knowledge_id": "cento", "query": "x", "retrieval_setting": {"top_k": 1}, "metadata_condition": {}}),
            "metadata_condition",
        ),
    ] {
        let refused = serving.post(path, &body);
        assert_eq!((refused.status, &refused.json()["error"]["parameter"]), (400, &parameter.into()), "{path} {body}");
    }
}
