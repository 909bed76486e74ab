//! Pulling any model of the hub: what comes, what is refused before its weights come, and a hub that fails or lies.

use std::process::Command;

use serde_json::{Value, json};

use super::hub::{Asked, COMMIT, Hub, Mood, REPOSITORY, git_sha1, sha256};
use super::support::{Place, Ran, root};

/// A secret that must be seen nowhere but by the hub.
const TOKEN: &str = "hf_SecretOfTheUser";

/// A machine without models, before a hub.
struct Machine {
    place: Place,
    hub: Hub,
}

impl Machine {
    fn new() -> Self {
        Self::before(Hub::of_folder(&root().join("models/tiny")))
    }

    fn before(hub: Hub) -> Self {
        Self { place: Place::new(), hub }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        for name in ["HF_HUB_OFFLINE", "HF_TOKEN_PATH", "HF_HUB_CACHE", "HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
            command.env_remove(name);
        }
        command.env("HF_ENDPOINT", &self.hub.address).env("HF_HOME", self.place.path("hf")).env("HF_TOKEN", TOKEN);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let ran = Ran::new(arguments, self.command(arguments).output().unwrap());
        assert!(!format!("{ran:?}").contains(TOKEN), "the token is shown");
        assert!(!ran.err.contains("Signature=secret"), "a signed address is shown: {}", ran.err);
        ran
    }

    fn pull(&self) -> Ran {
        self.run(&["model", "pull", REPOSITORY])
    }

    #[track_caller]
    fn pulls(&self) -> Ran {
        let ran = self.pull();
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    }

    /// Claims that nothing has a model's name and no weights were asked for.
    #[track_caller]
    fn refuses_before_weights(&self, words: &[&str]) {
        self.pull().fails(4, words);
        let asked = |asked: &Asked| asked.line.starts_with("GET") && asked.line.contains(".safetensors ");
        assert!(!self.hub.asked().iter().any(asked), "weights were asked for");
        assert!(!self.place.path("models/some-org--tiny.model").exists());
    }

    /// Sets one value of a JSON file of the repository.
    fn set(&self, file: &str, key: &str, value: Value) {
        self.hub.change(|files| {
            let content = &mut files.iter_mut().find(|(name, _)| name == file).unwrap().1;
            let mut json: Value = serde_json::from_slice(content).unwrap();
            json[key] = value;
            *content = json.to_string().into_bytes();
        });
    }

    fn remove(&self, part: &str) {
        self.hub.change(|files| files.retain(|(name, _)| !name.contains(part)));
    }
}

#[test]
fn a_model_of_the_hub_is_pulled_pinned_listed_checked_and_used() {
    let machine = Machine::new();
    let ran = machine.pulls();
    for word in [COMMIT, "apache-2.0", "bert", "mean", "32 dimensions", "window 128"] {
        assert!(ran.err.contains(word), "{word} in {}", ran.err);
    }
    let asked = machine.hub.asked();
    assert!(asked.iter().all(|asked| asked.of_network != asked.token.is_some()), "the hub knows the token, alone");
    for name in ["README", "pytorch_model.bin", "vocab.txt"] {
        assert!(!asked.iter().any(|asked| asked.line.contains(name)), "{name} was asked for");
    }
    let card: Value = serde_json::from_str(&machine.run(&["model", "show", REPOSITORY, "--json"]).out).unwrap();
    assert_eq!((&card["revision"], &card["license"]), (&json!(COMMIT), &json!("apache-2.0")));
    assert_eq!((&card["architecture"], &card["dimensions"]), (&json!("bert"), &json!(32)));
    let weights = std::fs::read(root().join("models/tiny/model.safetensors")).unwrap();
    let files = card["file"].as_array().unwrap();
    assert!(files.iter().any(|file| file["sha256"] == json!(sha256(&weights))));
    assert!(machine.run(&["model", "list"]).out.contains("some-org--tiny.model"));
    assert_eq!(machine.run(&["model", "verify", REPOSITORY]).code, 0);

    machine.place.write_notes();
    let ran = machine.run(&["index", "notes", "--model", REPOSITORY]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.err.matches(&format!("{REPOSITORY} at {COMMIT}")).count(), 1, "{}", ran.err);
    let ran = machine.run(&["search", "when is high water"]);
    assert_eq!((ran.code, ran.err.contains(COMMIT)), (0, false), "{ran:?}");

    let n_asked = machine.hub.asked().len();
    assert!(machine.pulls().out.contains("already"));
    assert_eq!(machine.hub.asked().len(), n_asked, "what is here is asked for nowhere");
    std::fs::write(machine.place.path("models/some-org--tiny.model/model.safetensors"), "x").unwrap();
    assert_eq!(machine.run(&["model", "verify", REPOSITORY]).code, 1);
    machine.pulls();
    assert_eq!(machine.run(&["model", "verify", REPOSITORY]).code, 0);
}

#[test]
fn a_revision_is_a_model_of_its_own() {
    let machine = Machine::new();
    let named = format!("{REPOSITORY}@v1.0");
    assert_eq!(machine.run(&["model", "pull", &named]).code, 0);
    assert!(machine.place.path("models/some-org--tiny.model--v1.0/card.toml").exists());
    assert!(machine.hub.asked().iter().any(|asked| asked.line.contains("/revision/v1.0?")));
    for name in [named.as_str(), REPOSITORY, &format!("{REPOSITORY}@{}", &COMMIT[..9])] {
        assert_eq!(machine.run(&["model", "verify", name]).code, 0, "{name}");
    }
    machine.run(&["model", "verify", &format!("{REPOSITORY}@v2.0")]).fails(4, &["no model of that name was pulled"]);
}

#[test]
fn every_architecture_and_shards_come_whole() {
    for name in [
        "mpnet",
        "xlm-roberta",
        "modernbert",
        "nomic-bert",
        "gte",
        "modules",
        "mt5",
        "sentence-t5",
        "cross-bert",
        "cross-gte",
    ] {
        let machine = Machine::before(Hub::of_folder(&root().join("models/parity").join(name)));
        let ran = machine.pulls();
        let kind = if name.starts_with("cross") { "reranker" } else { "pooling" };
        assert!(ran.err.contains(kind), "{name}: {}", ran.err);
        if kind == "pooling" {
            machine.place.write("texts.jsonl", "{\"text\": \"a text\"}\n");
            let ran = machine.run(&["embed", "texts.jsonl", "--model", REPOSITORY, "-o", "out.npy"]);
            assert_eq!(ran.code, 0, "{name}: {ran:?}");
        }
    }
}

#[test]
fn what_cannot_be_used_is_refused_by_name_before_its_weights_come() {
    let config = |key: &str, value: Value| {
        let machine = Machine::new();
        machine.set("config.json", key, value);
        machine
    };
    config("model_type", json!("deberta-v2")).refuses_before_weights(&["config.json", "architecture \"deberta-v2\""]);
    config("quantization_config", json!({"quant_method": "awq"})).refuses_before_weights(&["quantised", "awq"]);
    let own = config("model_type", json!("own"));
    own.set("config.json", "auto_map", json!({"AutoModel": "modeling.Own"}));
    own.refuses_before_weights(&["architecture \"own\"", "code", "never run"]);
    let pooling = Machine::new();
    pooling.set("1_Pooling/config.json", "pooling_mode", json!("median"));
    pooling.refuses_before_weights(&["pooling \"median\""]);
    config("vocab_size", json!(90_000)).refuses_before_weights(&["tokenizer.json", "another model's"]);

    let without = |part: &str, also: &[&str], words: &[&str]| {
        let machine = Machine::new();
        machine.remove(part);
        machine.hub.change(|files| files.extend(also.iter().map(|name| ((*name).to_owned(), b"x".to_vec()))));
        machine.refuses_before_weights(words);
    };
    without(".safetensors", &[], &["pytorch_model.bin", "pickle"]);
    without("model", &["tiny.Q4_K_M.gguf"], &["GGUF"]);
    without("tokenizer.json", &[], &["tokenizer.json: not found"]);
    without("modules.json", &[], &["modules.json: not found"]);
}

#[test]
fn names_in_a_listing_or_in_its_files_lead_nowhere() {
    for path in ["../../outside", "/etc", "a/../../b", "..\\outside"] {
        let machine = Machine::new();
        let modules =
            json!([{"idx": 0, "name": "0", "path": path, "type": "sentence_transformers.models.Transformer"}]);
        machine.hub.change(|files| {
            files.iter_mut().find(|(name, _)| name == "modules.json").unwrap().1 = modules.to_string().into_bytes();
        });
        machine.refuses_before_weights(&["modules.json", "no folder inside"]);
    }
    let machine = Machine::before(Hub::of_folder(&root().join("models/parity/mpnet")));
    machine.set("model.safetensors.index.json", "weight_map", json!({"a": "../../outside.safetensors"}));
    machine.refuses_before_weights(&["index.json", "no safetensors file beside it"]);
    let machine = Machine::new();
    machine.hub.change(|files| files.push(("../../../escaped".to_owned(), b"x".to_vec())));
    machine.pulls();
    assert!(!machine.hub.asked().iter().any(|asked| asked.line.contains("escaped")));
}

#[test]
fn a_hub_that_lies_is_caught() {
    let content = |name: &str| std::fs::read(root().join("models/tiny").join(name)).unwrap();
    let altered = |name: &str| {
        let mut content = content(name);
        *content.last_mut().unwrap() ^= 1;
        content
    };
    for (name, kind, expected) in [
        ("model.safetensors", "sha256", sha256(&content("model.safetensors"))),
        ("tokenizer.json", "git sha1", git_sha1(&content("tokenizer.json"))),
    ] {
        let machine = Machine::new();
        machine.hub.next(name, Mood::Other(altered(name)));
        machine.pull().fails(4, &[name, kind, &expected]);
        assert!(!machine.place.path("models/some-org--tiny.model").exists());
        machine.pulls(); // nothing of the lie stays
    }
    let machine = Machine::new();
    machine.hub.next("model.safetensors", Mood::Other(b"short".to_vec()));
    machine.pull().fails(4, &["model.safetensors: 5 bytes announced, the listing says"]);
    let machine = Machine::new();
    machine.hub.next("model.safetensors", Mood::Endless);
    machine.pull().fails(4, &["model.safetensors: more bytes, the listing says"]);
    for listing in ["[]", "{", "{\"sha\": \"../..\", \"siblings\": []}", "<html>"] {
        let machine = Machine::new();
        machine.hub.next("/api/", Mood::Other(listing.as_bytes().to_vec()));
        machine.pull().fails(4, &["its listing is not to be read"]);
    }
    let machine = Machine::new();
    machine.hub.next("/api/", Mood::Endless);
    machine.pull().fails(4, &["its listing has more than"]);
    let machine = Machine::new();
    machine.hub.change_listing(|listing| {
        for file in listing["siblings"].as_array_mut().unwrap() {
            file.as_object_mut().unwrap().remove("blobId");
            file.as_object_mut().unwrap().remove("lfs");
        }
    });
    machine.pull().fails(4, &["no checksum"]);
    let machine = Machine::new();
    machine.hub.change_listing(|listing| {
        for file in listing["siblings"].as_array_mut().unwrap() {
            file["size"] = json!(1u64 << 60);
            file.as_object_mut().unwrap().remove("lfs");
        }
    });
    machine.refuses_before_weights(&["more than the"]);
}

#[test]
fn refusals_say_what_can_be_done() {
    let check = |head: &'static str, words: &[&str]| {
        let machine = Machine::new();
        machine.hub.next("/api/", Mood::Status(head));
        machine.pull().fails(4, words);
    };
    check("401 Unauthorized", &["no such model", "token"]);
    check("401 Unauthorized\r\nx-error-code: GatedRepo", &["gated", "HF_TOKEN"]);
    check("403 Forbidden\r\nx-error-code: GatedRepo", &["gated", "accept its terms"]);
    check("404 Not Found\r\nx-error-code: RevisionNotFound", &["no revision"]);
    check("500 Oh", &["status 500"]);
    check("429 Later\r\nretry-after: 4000", &["fewer requests", "4000 s"]);
    let machine = Machine::new();
    machine.run(&["model", "pull", "BAAI/bge-smal-en-v1.5"]).fails(4, &["did you mean \"BAAI/bge-small-en-v1.5\"?"]);
    machine.run(&["model", "pull", "bge-smal-en-v1.5"]).fails(4, &["did you mean \"bge-small-en-v1.5\"?"]);
    machine.place.write_notes();
    machine.run(&["index", "notes", "--model", "bge-small-en-v1.5"]).fails(4, &["cento model pull bge-small-en-v1.5"]);
    machine.run(&["index", "notes", "--model", "a/b"]).fails(4, &["no such folder", "cento model pull a/b"]);
    let mut command = machine.command(&["model", "pull", REPOSITORY]);
    let ran = Ran::new(&[], command.env("HF_ENDPOINT", "http://hub.example").output().unwrap());
    ran.fails(4, &["http://hub.example", "not encrypted"]);
    machine.run(&["model", "pull", REPOSITORY, "--offline"]).fails(4, &["no network was asked for"]);
    assert!(machine.hub.asked().iter().all(|asked| !asked.line.contains(REPOSITORY)));
}

#[test]
fn what_is_cut_off_goes_on_where_it_ended() {
    let machine = Machine::new();
    machine.hub.next("/api/", Mood::Status("429 Later\r\nretry-after: 0"));
    machine.hub.next("model.safetensors", Mood::Cut(1000));
    machine.hub.next("model.safetensors", Mood::Cut(2000));
    machine.pulls();
    let ranges: Vec<String> = machine.hub.asked().into_iter().filter_map(|asked| asked.range).collect();
    assert!(ranges.iter().any(|range| range.starts_with("bytes=1000-")), "{ranges:?}");
    assert!(ranges.iter().any(|range| range.starts_with("bytes=3000-")), "{ranges:?}");

    // another process goes on, too
    let machine = Machine::new();
    machine.hub.next("model.safetensors", Mood::Cut(5000));
    for _ in 0..8 {
        machine.hub.next("model.safetensors", Mood::Cut(0));
    }
    machine.pull().fails(4, &["model.safetensors"]);
    assert!(!machine.place.path("models/some-org--tiny.model").exists());
    while machine.pull().code != 0 {}
    let ranges: Vec<String> = machine.hub.asked().into_iter().filter_map(|asked| asked.range).collect();
    assert!(ranges.iter().any(|range| range.starts_with("bytes=5000-")), "{ranges:?}");
    assert_eq!(machine.run(&["model", "verify", REPOSITORY]).code, 0);
    let left = std::fs::read_dir(machine.place.path("models")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().starts_with(".part")), "nothing is left behind");
}

#[test]
fn two_pulls_at_once_bring_it_once() {
    let machine = Machine::new();
    let mut pulls: Vec<_> = (0..2).map(|_| machine.command(&["model", "pull", REPOSITORY]).spawn().unwrap()).collect();
    assert!(pulls.iter_mut().all(|pull| pull.wait().unwrap().success()));
    let weights = |asked: &&Asked| asked.of_network && asked.line.starts_with("GET");
    assert_eq!(machine.hub.asked().iter().filter(weights).count(), 1);
}

#[cfg(unix)]
#[test]
fn the_cache_of_other_tools_is_used_and_checked() {
    let machine = Machine::new();
    let cache = machine.place.path("hf/hub/models--Some-Org--Tiny.Model");
    let snapshot = cache.join("snapshots").join(COMMIT);
    let add = |name: &str, content: &[u8], checksum: &str| {
        std::fs::create_dir_all(cache.join("blobs")).unwrap();
        std::fs::write(cache.join("blobs").join(checksum), content).unwrap();
        let link = snapshot.join(name);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(cache.join("blobs").join(checksum), link).unwrap();
    };
    for file in machine.hub.listing()["siblings"].as_array().unwrap() {
        let name = file["rfilename"].as_str().unwrap();
        let Ok(content) = std::fs::read(root().join("models/tiny").join(name)) else { continue };
        add(name, &content, &if file["lfs"].is_null() { git_sha1(&content) } else { sha256(&content) });
    }
    std::fs::create_dir_all(cache.join("refs")).unwrap();
    std::fs::write(cache.join("refs/main"), COMMIT).unwrap();
    let ran = machine.run(&["model", "pull", REPOSITORY, "--offline"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("models--Some-Org--Tiny.Model") && machine.hub.asked().is_empty());
    assert_eq!(machine.run(&["model", "verify", REPOSITORY]).code, 0);

    std::fs::remove_dir_all(machine.place.path("models")).unwrap();
    let weights = std::fs::read(snapshot.join("model.safetensors")).unwrap();
    add("model.safetensors", &vec![0; weights.len()], &sha256(&weights));
    machine.run(&["model", "pull", REPOSITORY, "--offline"]).fails(4, &["model.safetensors: sha256"]);
    assert!(machine.pulls().err.contains("model.safetensors: sha256"), "the hub is asked then, and why is said");
}

#[test]
fn well_known_models_are_listed_with_what_is_known() {
    let machine = Machine::new();
    let listed: Value = serde_json::from_str(&machine.run(&["model", "list", "--all", "--json"]).out).unwrap();
    let known = listed["known"].as_array().unwrap();
    let of_use = |of_use: &str| known.iter().filter(|known| known["use"] == json!(of_use)).count();
    assert!(of_use("encoder") >= 20 && of_use("reranker") >= 6, "{known:?}");
    let one = |name: &str| known.iter().find(|known| known["name"] == json!(name)).unwrap();
    assert_eq!(one("bge-small-en-v1.5")["n_times_slower"], json!(2.0));
    assert_eq!((&one("gtr-t5-base")["architecture"], one("gtr-t5-base").get("obstacle")), (&json!("t5"), None));
    assert!(one("mxbai-rerank-base-v1")["obstacle"].as_str().unwrap().contains("deberta-v2"));
    assert_eq!(
        (&one("potion-base-8m")["architecture"], one("potion-base-8m").get("obstacle")),
        (&json!("static"), None)
    );
    let text = machine.run(&["model", "list", "--all"]).out;
    assert!(text.contains("BAAI/bge-m3") && text.contains("1/29"), "{text}");
    assert!(machine.run(&["model", "show", "bge-m3"]).out.contains("not pulled"));
}

#[test]
fn a_table_of_static_vectors_is_pulled_and_goes_by_the_name_static() {
    for folder in ["table", "static-embedding"] {
        let machine = Machine::before(Hub::of_folder(&root().join("models/parity").join(folder)));
        machine.place.write_notes();
        let index = ["index", "notes", "--model", "static"];
        machine.run(&index).fails(4, &["no table", "potion-base-8m", "cento model pull potion-base-8m"]);

        let ran = machine.pulls();
        assert!(ran.err.contains("static, mean pooling, window"), "{}", ran.err);
        let card: Value = serde_json::from_str(&machine.run(&["model", "show", REPOSITORY, "--json"]).out).unwrap();
        assert_eq!((&card["architecture"], &card["dimensions"]), (&json!("static"), &json!(24)));

        std::fs::create_dir(machine.place.path("static")).unwrap(); // a folder of that name is `./static`
        let ran = machine.run(&index);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.err.contains(&format!("{REPOSITORY} at {COMMIT} (static, mean, 24 dimensions")), "{}", ran.err);
        let ran = machine.run(&["search", "when is high water", "--mode", "dense"]);
        assert!(ran.code == 0 && ran.out.contains("notes/"), "{ran:?}");
        machine
            .run(&["index", "notes", "--collection", "late", "--model", "static", "--pooling", "late"])
            .fails(2, &["table"]);
        machine
            .run(&["index", "notes", "--collection", "int8", "--model", "static", "--precision", "int8"])
            .fails(4, &["f32"]);

        assert_eq!(machine.run(&["model", "pull", &format!("{REPOSITORY}@main")]).code, 0);
        machine
            .run(&["index", "notes", "--collection", "other", "--model", "static"])
            .fails(4, &["several tables", "name one"]);
    }
}
