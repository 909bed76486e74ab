//! Devices: the list, the one that is chosen, names that are none, and the same ranking on a GPU as on the CPU.

use serde_json::{Value, json};

use crate::serving::Serving;
use crate::support::{Place, Ran};

/// The adapters that `cento devices` lists.
fn adapters(place: &Place) -> Vec<Value> {
    place.json(&["devices"])["adapters"].as_array().unwrap().clone()
}

#[test]
fn devices_are_listed_and_software_is_never_chosen() {
    let place = Place::new();
    let devices = place.json(&["devices"]);
    let (chosen, words) = (devices["chosen"].as_str().unwrap(), place.ok(&["devices"]).out);
    assert!(words.starts_with(&format!("chosen: {chosen}, ")), "{words}");
    assert!(!devices["why"].as_str().unwrap().is_empty());
    for (number, adapter) in adapters(&place).iter().enumerate() {
        assert_eq!(adapter["number"], number);
        assert!(
            words.contains(&format!("gpu:{number}")) && words.contains(adapter["name"].as_str().unwrap()),
            "{words}"
        );
        assert!(chosen != format!("gpu:{number}") || adapter["kind"] != "software", "{devices}");
    }
}

#[test]
fn a_machine_without_loader_or_driver_says_so() {
    let place = Place::new();
    let mut command = place.command(&["devices", "--json"]);
    command.env("VK_DRIVER_FILES", "/nowhere.json").env("VK_ICD_FILENAMES", "/nowhere.json"); // of new loaders and of old
    let ran = Ran::new(&["devices"], command.output().unwrap());
    let devices: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    if cfg!(target_os = "macos") {
        return; // Metal is always there
    }
    assert_eq!(devices["adapters"], serde_json::json!([]), "{devices}");
    assert_eq!(devices["chosen"], "cpu");
    assert!(devices["why"].as_str().unwrap().contains("no driver offers an adapter"), "{devices}");
}

#[test]
fn a_device_that_is_not_there_is_refused_in_words() {
    let place = Place::indexed();
    let n = adapters(&place).len();
    let words = if n == 0 { "no driver offers an adapter".to_owned() } else { format!("there are {n} adapters") };
    place.run(&["search", "tide", "--device", "gpu:99"]).fails(4, &["device gpu:99", &words]);
    place.run(&["search", "tide", "--device", "gpu:x"]).fails(2, &["gpu:N"]);
}

#[test]
fn an_index_and_a_search_on_a_gpu_rank_as_on_the_cpu() {
    let place = Place::indexed();
    if adapters(&place).is_empty() {
        eprintln!("skipped: no Vulkan or Metal driver offers an adapter (Debian: libvulkan1, mesa-vulkan-drivers)");
        return;
    }
    let asked = ["search", "what moves the tide", "--device"];
    let ids = |answer: &Value| -> Vec<String> {
        answer["hits"].as_array().unwrap().iter().map(|hit| hit["id"].to_string()).collect()
    };
    let on = |device: &str| ids(&place.json(&[&asked[..], &[device]].concat()));
    assert_eq!(on("gpu:0"), on("cpu"));
    assert!(!on("cpu").is_empty());
    place.write("topics", "1\tthe moon pulls\n2\tflour and water\n3\tzzz\n");
    let run = |device: &str| -> Vec<String> {
        let asked = ["run", "--topics", "topics", "--mode", "dense", "--exact", "--device", device];
        let ranked = |line: &str| line.split_whitespace().take(4).collect::<Vec<_>>().join(" "); // without the score
        place.ok(&asked).out.lines().map(ranked).collect()
    };
    assert_eq!(run("gpu:0"), run("cpu"));
    assert!(!run("cpu").is_empty());
    let bench = place.json(&["bench", "scan", "--n-rows", "3000", "--n-queries", "8", "--device", "gpu:0"]);
    assert_eq!(bench["equal"], true, "{bench}");
}

#[test]
fn neighbours_of_many_vectors_come_from_the_device_that_was_named_and_are_those_of_the_cpu() {
    let place = Place::new();
    let value = |row: usize, at: usize| ((row * 37 + at * at * 11) % 19) as f32 - 9.0;
    let row = |row: usize| (0..8).flat_map(|at| value(row, at).to_le_bytes()).collect::<Vec<u8>>();
    let rows = (0..300).flat_map(|number| [8u32.to_le_bytes().to_vec(), row(number)].concat());
    place.write("points.fvecs", rows.collect::<Vec<u8>>());
    place.ok(&["index", "--from-vectors", "points.fvecs", "--normalize"]);
    let asked = |n: usize| {
        let vectors: Vec<Vec<f32>> = (0..n).map(|row| (0..8).map(|at| value(row + 5, at + 1)).collect()).collect();
        json!({ "vectors": vectors, "k": 9 })
    };
    let on = |device: &str| Serving::start(&place, &["--device", device]);
    let (cpu, absent) = (on("cpu"), on("gpu:99"));
    absent.post("/v1/neighbors", &asked(2)).refused(500, "device");
    assert_eq!(absent.told("/v1/neighbors", &asked(1)), cpu.told("/v1/neighbors", &asked(1)), "one is the CPU's");
    if adapters(&place).is_empty() {
        eprintln!("skipped: no Vulkan or Metal driver offers an adapter (Debian: libvulkan1, mesa-vulkan-drivers)");
        return;
    }
    let expected = cpu.post("/v1/neighbors", &asked(70)).text();
    assert_eq!(on("gpu:0").post("/v1/neighbors", &asked(70)).text(), expected);
}

#[test]
fn a_device_is_held_to_the_cpu_in_every_precision_and_the_findings_are_one_file() {
    let place = Place::new();
    let device = if adapters(&place).is_empty() { "cpu" } else { "gpu:0" };
    let model = crate::support::tiny_model();
    let mut asked =
        vec!["bench", "device", "--model", &model, "--device", device, "--n-tokens", "256", "--repeat", "1"];
    asked.extend(["--n-rows", "2000", "--peak", "f32=0.5", "-o", "device.json"]);
    let said = place.ok(&asked).out;
    let report: Value = serde_json::from_slice(&place.read("device.json")).unwrap();
    assert_eq!((&report["wrong"], &report["scan"]["equal"]), (&serde_json::json!([]), &serde_json::json!(true)));
    let precisions = report["precisions"].as_array().unwrap();
    let named: Vec<&str> = precisions.iter().map(|part| part["precision"].as_str().unwrap()).collect();
    assert_eq!(named, ["f32", "bf16", "f16", "int8"]);
    let computed: Vec<&Value> = precisions.iter().filter(|part| part["refused"].is_null()).collect();
    assert_eq!(computed.len(), if device == "cpu" { 3 } else { 2 }, "{report}");
    for part in &computed {
        assert_eq!(part["same_bytes"], true, "{part}");
        assert!(
            part["least_cosine"].as_f64().unwrap() > 0.98 && said.contains(part["device"].as_str().unwrap()),
            "{part}"
        );
        assert!(part["speeds"].as_array().unwrap().iter().all(|speed| speed["tokens_per_second"].as_f64() > Some(0.0)));
    }
    let f32 = &computed[0]["speeds"][0];
    let share = f32["gflops_per_second"].as_f64().unwrap() / 500.0;
    assert!((f32["share_of_peak"].as_f64().unwrap() - share).abs() < 1e-9, "{f32}");
    place.run(&["bench", "device", "--peak", "f32"]).fails(2, &["f32=82.6"]);
    place.run(&["bench", "device", "--n-tokens", "0"]).fails(2, &["--n-tokens 0"]);
}
