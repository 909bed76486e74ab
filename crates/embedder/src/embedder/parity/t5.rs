//! T5's encoder in the folders and files that it is published in.

use super::*;

const NETWORKS: [&str; 2] = ["t5", "mt5"];

#[test]
fn a_dense_layer_behind_the_pooling_agrees_with_sentence_transformers() {
    let model = Model::open("sentence-t5");
    let embedder = load(&model.folder, None);
    let vectors = embed(&embedder, &model.strings(), Kind::Document);
    check_close("document", &vectors, &model.values("document.24"), TEXT_TOLERANCE);
    let description = crate::describe(&model.folder).unwrap();
    assert_eq!((description.architecture.as_str(), description.pooling.as_str()), ("t5", "mean"));
    assert_eq!((description.dimensions, description.max_tokens), (Some(24), 64));
}

/// Bits of the rows of a sequence, alone, and among sequences of all lengths in both orders.
#[test]
fn a_sequence_of_any_length_has_the_same_bits_in_any_company() {
    for (name, precision) in NETWORKS
        .into_iter()
        .flat_map(|name| [Precision::F32, Precision::Bf16, Precision::Int8].map(|precision| (name, precision)))
    {
        let model = Model::open(name);
        let options = LoadOptions { device: DeviceChoice::Cpu, threads: 1, precision, ..LoadOptions::default() };
        let embedder = Embedder::load(&model.folder, &options).unwrap();
        let lengths = [1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200, 511, 512];
        let ids = model.ids("ids.511");
        let sequence = |n: usize| -> Vec<u32> { (0..n).map(|i| ids[(i * 7 + n) % ids.len()]).collect() };
        let alone = lengths.map(|n| hidden(&embedder, &Batch::new([(0, sequence(n))])));
        let reversed = lengths.iter().rev().copied().collect();
        for order in [lengths.to_vec(), reversed] {
            let together = hidden(&embedder, &Batch::new(order.iter().map(|&n| (n, sequence(n)))));
            let mut rest = together.as_slice();
            for n in order {
                let expected = &alone[lengths.iter().position(|&length| length == n).unwrap()];
                let rows;
                (rows, rest) = rest.split_at(expected.len());
                let same = rows.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{name} {precision}: {n} tokens");
            }
        }
    }
}

/// A copy of a folder with other tensors.
fn with_tensors(name: &str, alter: impl FnOnce(&mut HashMap<String, Tensor>)) -> tempfile::TempDir {
    let copy = with_config(name, |config| config["is_encoder_decoder"] = true.into());
    let path = copy.path().join("model.safetensors");
    let mut tensors = candle_core::safetensors::load(&path, &Device::Cpu).unwrap();
    alter(&mut tensors);
    candle_core::safetensors::save(&tensors, &path).unwrap();
    copy
}

#[test]
fn files_with_a_decoder_and_with_either_name_of_the_words_give_the_same_vectors() {
    let texts = Model::open("t5").strings();
    let vectors = |alter: fn(&mut HashMap<String, Tensor>)| {
        embed(&load(with_tensors("t5", alter).path(), None), &texts, Kind::Document)
    };
    let expected = vectors(|_| {});
    let whole = vectors(|tensors| {
        let words = tensors["shared.weight"].clone();
        for name in ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"] {
            tensors.insert(name.to_owned(), words.copy().unwrap());
        }
        let norm = tensors["encoder.final_layer_norm.weight"].copy().unwrap();
        tensors.insert("decoder.final_layer_norm.weight".to_owned(), norm);
    });
    let renamed = vectors(|tensors| {
        let words = tensors.remove("shared.weight").unwrap();
        tensors.insert("encoder.embed_tokens.weight".to_owned(), words);
    });
    assert!(whole == expected && renamed == expected);
}

#[test]
fn a_bias_of_distances_in_a_later_layer_is_refused_by_name() {
    let copy = with_tensors("t5", |tensors| {
        let name = |block: usize| format!("encoder.block.{block}.layer.0.SelfAttention.relative_attention_bias.weight");
        tensors.insert(name(1), tensors[&name(0)].copy().unwrap());
    });
    let options = LoadOptions { device: DeviceChoice::Cpu, ..LoadOptions::default() };
    let message = Embedder::load(copy.path(), &options).map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight"), "{message}");
}

#[test]
fn t5_and_mt5_are_one_architecture() {
    check_same("mt5", |config| config["model_type"] = "t5".into());
    check_same("mt5", |config| {
        config.as_object_mut().unwrap().remove("feed_forward_proj"); // gated-gelu, unless said
    });
    check_same("t5", |config| {
        for key in ["feed_forward_proj", "relative_attention_max_distance", "relative_attention_num_buckets"] {
            config.as_object_mut().unwrap().remove(key);
        }
    });
}

#[test]
fn a_whole_t5_without_modules_and_one_that_classifies_are_refused_by_name() {
    #[track_caller]
    fn check(architecture: &str, [embedder, reranker]: [&[&str]; 2]) {
        let copy = with_config("t5", |config| {
            let whole = serde_json::json!({
                "architectures": [architecture], "is_encoder_decoder": true, "num_labels": 1,
            });
            merge(config, &whole);
        });
        fs::remove_file(copy.path().join("modules.json")).unwrap();
        let options = LoadOptions { device: DeviceChoice::Cpu, ..LoadOptions::default() };
        let refused = Embedder::load(copy.path(), &options).map(|_| ()).unwrap_err().to_string();
        assert!(embedder.iter().all(|word| refused.contains(word)), "{refused:?} lacks one of {embedder:?}");
        let refused = crate::CrossEncoder::load(copy.path(), &options).map(|_| ()).unwrap_err().to_string();
        assert!(reranker.iter().all(|word| refused.contains(word)), "{refused:?} lacks one of {reranker:?}");
    }
    let generates = "T5ForConditionalGeneration";
    check(generates, [&["config.json", generates, "modules.json"], &[generates]]);
    let classifies = "T5ForSequenceClassification";
    check(classifies, [&[classifies, "modules.json"], &["cross-encoder \"T5\""]]);
}
