//! Cross-encoders of every architecture against what sentence-transformers scores, and folders that are refused.
//!
//! The folders of `models/parity` are made by `scripts/make-parity-models`.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::DeviceChoice;

#[derive(Deserialize)]
struct Golden {
    pair: (String, String),
    ids: Vec<u32>,
    score: f32,
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/parity")).join(name)
}

fn load(folder: &Path, threads: usize, max_batch_tokens: usize) -> Result<CrossEncoder> {
    let options = LoadOptions { device: DeviceChoice::Cpu, threads, max_batch_tokens, ..LoadOptions::default() };
    CrossEncoder::load(folder, &options)
}

fn goldens(name: &str) -> Vec<Golden> {
    serde_json::from_slice(&fs::read(folder(name).join("golden.json")).unwrap()).unwrap()
}

fn pairs(goldens: &[Golden]) -> Vec<(String, String)> {
    goldens.iter().map(|golden| golden.pair.clone()).collect()
}

#[track_caller]
fn check(name: &str) {
    let (model, goldens) = (load(&folder(name), 1, 0).unwrap(), goldens(name));
    for Golden { pair: (first, second), ids, .. } in &goldens {
        let encoded = model.encode(first, second).unwrap();
        assert_eq!(&encoded.ids, ids, "{name}: {first:?} {second:?}");
        assert_eq!(encoded.truncated, first.len() + second.len() > 300, "{name}: {first:?} {second:?}");
    }
    let scores = model.score(&pairs(&goldens)).unwrap();
    for (score, Golden { pair, score: expected, .. }) in scores.iter().zip(&goldens) {
        assert!((score - expected).abs() <= 1e-5, "{name}: {pair:?} has {score}, not {expected}");
    }
    assert_eq!(load(&folder(name), 3, 50).unwrap().score(&pairs(&goldens)).unwrap(), scores);
    let logits = model.logits_unless(&pairs(&goldens), NEVER).unwrap();
    for ((read, score), Golden { ids, .. }) in logits.iter().zip(&scores).zip(&goldens) {
        let activated = model.head.activate(f64::from(read.logit));
        assert!((activated - f64::from(*score)).abs() <= 1e-6, "{name}: {read:?} {score}");
        assert_eq!(read.n_tokens as usize, ids.len());
    }
    let cancelled = model.logits_unless(&pairs(&goldens), &|| true).unwrap_err();
    assert!(matches!(cancelled, Error::Cancelled), "{cancelled}");
    for (pair, score) in pairs(&goldens).chunks(1).zip(scores) {
        assert_eq!(model.score(pair).unwrap(), [score]);
    }
}

#[test]
fn bert() {
    check("cross-bert");
}

#[test]
fn distilbert() {
    check("cross-distilbert");
}

#[test]
fn xlm_roberta() {
    check("cross-xlm-roberta");
}

#[test]
fn mpnet() {
    check("cross-mpnet");
}

#[test]
fn modernbert() {
    check("cross-modernbert");
}

#[test]
fn gte() {
    check("cross-gte");
}

#[test]
fn qwen3_with_a_label() {
    check("cross-qwen3-label");
}

#[test]
fn qwen3_that_says_yes_or_no() {
    check("cross-qwen3");
}

/// A folder of a language model with the modules that sentence-transformers puts there.
fn with_answers(answers: Value) -> tempfile::TempDir {
    let copy = copy_with("cross-qwen3", "modules.json", |modules| {
        *modules = json!([
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
            {"idx": 1, "name": "1", "path": "1_LogitScore",
             "type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"},
        ]);
    });
    fs::create_dir(copy.path().join("1_LogitScore")).unwrap();
    fs::write(copy.path().join("1_LogitScore/config.json"), answers.to_string()).unwrap();
    copy
}

#[test]
fn a_language_model_answers_with_the_tokens_that_its_folder_names() {
    let (model, pairs) = (load(&folder("cross-qwen3"), 1, 0).unwrap(), pairs(&goldens("cross-qwen3")));
    let [yes, no] = ["yes", "no"].map(|word| model.encoder.tokenizer().id_of(word).unwrap());
    let plain = model.score(&pairs).unwrap();
    let score = |answers: Value| load(with_answers(answers).path(), 1, 0).unwrap().score(&pairs).unwrap();
    assert_eq!(score(json!({"true_token_id": yes, "false_token_id": no})), plain);
    for (turned, plain) in score(json!({"true_token_id": no, "false_token_id": yes})).iter().zip(&plain) {
        assert!((turned + plain - 1.0).abs() < 1e-6, "{turned} {plain}");
    }
    let one = score(json!({"true_token_id": yes, "false_token_id": null}));
    assert!(one != plain);
    let message =
        load(with_answers(json!({"true_token_id": 100_000})).path(), 1, 0).map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("token 100000, of a vocabulary of"), "{message}");
}

#[test]
fn the_task_of_the_question_is_that_of_the_folder() {
    let copy = copy_with("cross-qwen3", "config_sentence_transformers.json", |settings| {
        *settings = json!({"default_prompt_name": "code", "prompts": {"code": "Find the code that does it"}});
    });
    let (plain, other) = (load(&folder("cross-qwen3"), 1, 0).unwrap(), load(copy.path(), 1, 0).unwrap());
    assert_ne!(plain.fingerprint(), other.fingerprint());
    let pair = [("the city".to_owned(), "the river".to_owned())];
    assert_ne!(plain.score(&pair).unwrap(), other.score(&pair).unwrap());
}

#[test]
fn a_pair_without_a_token_is_refused() {
    let model = load(&folder("cross-qwen3-label"), 1, 0).unwrap();
    let pairs = [("a".to_owned(), "b".to_owned()), (String::new(), String::new())];
    assert!(matches!(model.score(&pairs), Err(Error::Tokenize { index: 1, .. })));
}

#[test]
fn no_pairs_have_no_scores() {
    assert_eq!(load(&folder("cross-bert"), 2, 0).unwrap().score(&[]).unwrap(), [] as [f32; 0]);
}

#[test]
fn very_long_texts_cost_no_more_than_their_beginnings() {
    let model = load(&folder("cross-bert"), 1, 0).unwrap();
    let long = "the city of words. ".repeat(300_000);
    let pair = |n_bytes: usize| (long[..n_bytes].to_owned(), long[..n_bytes].to_owned());
    let scores = model.score(&[pair(long.len()), pair(5000)]).unwrap();
    assert_eq!(scores[0], scores[1]);
}

/// A folder of `models/parity` with one JSON file altered.
fn copy_with(name: &str, file: &str, alter: impl FnOnce(&mut Value)) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder(name)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    let bytes = fs::read(copy.path().join(file)).unwrap_or_else(|_| b"{}".to_vec());
    let mut json = serde_json::from_slice(&bytes).unwrap();
    alter(&mut json);
    fs::write(copy.path().join(file), json.to_string()).unwrap();
    copy
}

#[track_caller]
fn refused(name: &str, file: &str, alter: impl FnOnce(&mut Value), words: &[&str]) {
    let copy = copy_with(name, file, alter);
    let message = load(copy.path(), 1, 0).map(|_| ()).unwrap_err().to_string();
    assert!(words.iter().all(|word| message.contains(word)), "{message:?} lacks one of {words:?}");
}

#[test]
fn the_tokenizers_settings_decide_whether_texts_are_of_two_kinds() {
    let scores = |alter: &dyn Fn(&mut Value)| {
        let copy = copy_with("cross-bert", "tokenizer_config.json", alter);
        load(copy.path(), 1, 0).unwrap().score(&pairs(&goldens("cross-bert"))).unwrap()
    };
    let (with, without) = (
        scores(&|json| json["model_input_names"] = json!(["input_ids", "token_type_ids", "attention_mask"])),
        scores(&|json| json["model_input_names"] = json!(["input_ids", "attention_mask"])),
    );
    assert_ne!(with, without);
    let class = |name: &'static str| scores(&move |json| json["tokenizer_class"] = json!(name));
    for (name, expected) in [
        ("BertTokenizer", &with),
        ("BertTokenizerFast", &with),
        ("PreTrainedTokenizerFast", &with),
        ("TokenizersBackend", &without),
        ("XLMRobertaTokenizer", &without),
    ] {
        assert_eq!(&class(name), expected, "{name}");
    }
}

#[test]
fn what_is_not_a_cross_encoder_is_refused() {
    let set = |key: &'static str, value: Value| move |json: &mut Value| json[key] = value;
    let architecture = |name: &str| set("architectures", json!([name]));
    refused(
        "cross-bert",
        "config.json",
        architecture("BertModel"),
        &["model \"BertModel\"", "ForSequenceClassification"],
    );
    refused("cross-bert", "config.json", set("architectures", Value::Null), &["model \"\""]);
    let labels = json!({"0": "no", "1": "yes"});
    refused("cross-bert", "config.json", set("id2label", labels), &["number of labels \"2\"", "supported: 1"]);
    let activation = json!({"activation_fn": "torch.nn.modules.activation.Mish"});
    refused("cross-bert", "config.json", set("sentence_transformers", activation), &["config.json", "Mish"]);
    refused(
        "cross-mpnet",
        "config_sentence_transformers.json",
        set("activation_fn", json!("os.system")),
        &["os.system"],
    );
    let prompt = set("default_prompt_name", json!("query"));
    refused("cross-mpnet", "config_sentence_transformers.json", prompt, &["default prompt", "query"]);
    let task = set("transformer_task", json!("feature-extraction"));
    refused("cross-mpnet", "sentence_bert_config.json", task, &["feature-extraction", "sequence-classification"]);
    refused(
        "cross-modernbert",
        "config.json",
        set("classifier_pooling", json!("max")),
        &["pooling of the head \"max\""],
    );
    let activation = set("classifier_activation", json!("mish"));
    refused("cross-modernbert", "config.json", activation, &["activation of the head \"mish\""]);
    refused("cross-bert", "tokenizer_config.json", set("model_max_length", json!(4)), &["no room for two texts"]);
    let two = |json: &mut Value| json.as_array_mut().unwrap().push(json!({"idx": 1, "path": "1", "type": "x.Dense"}));
    refused("cross-mpnet", "modules.json", two, &["modules.json", "Transformer, x.Dense"]);
    let message = load(&folder("bert"), 1, 0).map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("Transformer, Pooling, Normalize") && message.contains("cross-encoder"), "{message}");
}

#[test]
fn a_head_without_weights_is_refused() {
    refused(
        "cross-bert",
        "config.json",
        |json| json["model_type"] = json!("roberta"),
        &["no tensor", "word_embeddings"],
    );
}
