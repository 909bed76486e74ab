//! Where a setting comes from: command line, then environment, then `cento.toml`, then the default.

use serde_json::Value;

use crate::support::Place;

fn shown(value: &Value, setting: &str) -> (String, String) {
    let found = value["settings"].as_array().unwrap().iter().find(|shown| shown["setting"] == setting);
    let found = found.unwrap_or_else(|| panic!("no setting {setting}"));
    (found["value"].as_str().unwrap_or_default().to_owned(), found["source"].as_str().unwrap().to_owned())
}

#[test]
fn the_command_line_wins_over_environment_over_file_over_default() {
    let place = Place::indexed();
    assert_eq!(shown(&place.json(&["config", "show"]), "search.fusion"), ("adaptive".to_owned(), "default".to_owned()));
    place.write("cento.toml", "fusion = \"rrf\"\n[search]\nk = 2\n");
    let from_file = place.json(&["config", "show"]);
    assert_eq!(shown(&from_file, "search.fusion"), ("rrf".to_owned(), "cento.toml".to_owned()));
    assert_eq!(shown(&from_file, "search.k").0, "2");
    assert_eq!(shown(&from_file, "run.k").1, "default");
    let n_hits = |arguments: &[&str], k: Option<&str>| {
        let mut command = place.command(&[&["search", "moon tide bread", "--json"], arguments].concat());
        if let Some(k) = k {
            command.env("CENTO_K", k);
        }
        let answer: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        assert_eq!(answer["fusion"], "rrf");
        answer["hits"].as_array().unwrap().len()
    };
    assert_eq!(n_hits(&[], None), 2);
    assert_eq!(n_hits(&[], Some("3")), 3);
    assert_eq!(n_hits(&["-k", "1"], Some("3")), 1);
}

#[test]
fn a_setting_in_the_file_can_stand_for_a_required_option() {
    let place = Place::indexed();
    place.run(&["context", "moon"]).fails(2, &["--budget"]);
    place.write("cento.toml", "[context]\nbudget = 120\n");
    place.ok(&["context", "moon"]);
}

#[test]
fn an_unknown_setting_names_the_nearest() {
    let place = Place::new();
    place.write("cento.toml", "colection = \"x\"\n");
    place.run(&["status"]).fails(2, &["cento.toml", "colection", "collection"]);
    place.write("cento.toml", "[serch]\nk = 2\n");
    place.run(&["config", "check"]).fails(2, &["serch", "search"]);
    place.write("cento.toml", "k = [1]\n");
    place.run(&["config", "check"]).fails(2, &["array"]);
}

#[test]
fn no_setting_says_what_is_deleted() {
    let place = Place::indexed();
    place.write("cento.toml", "filter = 'id exists'\n");
    assert_eq!(place.json(&["search", "moon"])["filter"]["n_admitted"], 3);
    let mut command = place.command(&["delete"]);
    command.env("CENTO_FILTER", "id exists").env("CENTO_PATH", "notes").env("CENTO_DRY_RUN", "1");
    assert_eq!(command.output().unwrap().status.code(), Some(2));
    assert_eq!(place.json(&["delete", "notes/bread.md"])["deleted"], serde_json::json!(["notes/bread.md"]));
    place.write("cento.toml", "no-compact = true\n[delete]\nno-compact = true\n");
    place.ok(&["config", "check"]);
    place.write("cento.toml", "[delete]\nfilter = 'id exists'\n");
    place.run(&["config", "check"]).fails(2, &["delete.filter"]);
}

#[test]
fn an_unknown_option_names_the_nearest() {
    Place::new().run(&["search", "x", "--fuson", "rrf"]).fails(2, &["--fuson", "--fusion"]);
}

#[test]
fn completions_name_the_verbs() {
    let script = Place::new().ok(&["completions", "bash"]).out;
    assert!(script.contains("context") && script.contains("--budget"));
}
