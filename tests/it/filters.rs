//! Filters: which documents answer, are listed and deleted, and what is said of a filter that cannot be used.

use serde_json::{Value, json};

use crate::support::{Place, tiny_model};

/// Documents of every format and type of value, in a collection of two segments, the first with a graph.
fn place() -> Place {
    let place = Place::new();
    place.write(
        "notes/moon.md",
        "---\ntitle: Moon\nyear: 2019\ntags: [sea, night]\ndate: 2020-05-17\ndraft: false\n---\nThe moon, the moon, the full moon.\n",
    );
    place.write(
        "notes/drafts/tide.md",
        "+++\nyear = 2021\ntags = [\"sea\"]\ndate = 2020-05-17T10:30:00Z\ndraft = true\n[author]\nname = \"A. Sailor\"\n+++\nThe moon pulls the sea.\n",
    );
    place.write("notes/drafts/loaf.txt", "No moon is in bread.\n");
    place.ok(&["index", "--model", &tiny_model(), "notes", "--graph-rows-min", "1"]);
    place.write(
        "rows/rows.jsonl",
        "{\"_id\":\"j1\",\"title\":\"Lune\",\"text\":\"Moon in French.\",\"year\":2020.5,\"metadata\":{\"lang\":\"fr\"},\"type\":\"card\"}\n\
         {\"_id\":\"j2\",\"text\":\"Mond is the moon.\",\"year\":\"unknown\",\"metadata\":{\"lang\":\"de\"}}\n",
    );
    place.write(
        "rows/page.html",
        "<html lang=en><head><meta name=keywords content='night, ice'></head><body><p>A moon of ice.</p></body></html>",
    );
    place.index(&["rows"]);
    place
}

fn listed(place: &Place, filter: &str) -> Vec<String> {
    let ran = place.run(&["list", "--filter", filter, "--json"]);
    assert!([0, 1].contains(&ran.code), "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&answer["version"], &answer["filter"]["expression"]), (&json!(1), &json!(filter)));
    let ids =
        answer["documents"].as_array().unwrap().iter().map(|document| document["id"].as_str().unwrap().to_owned());
    let ids: Vec<String> = ids.collect();
    assert_eq!((ran.code, &answer["filter"]["n_admitted"]), (i32::from(ids.is_empty()), &json!(ids.len())));
    ids
}

const MOON: &str = "notes/moon.md";
const TIDE: &str = "notes/drafts/tide.md";
const LOAF: &str = "notes/drafts/loaf.txt";
const PAGE: &str = "rows/page.html";
const J1: &str = "rows/rows.jsonl/j1";
const J2: &str = "rows/rows.jsonl/j2";

#[test]
fn fields_of_every_source_have_their_types() {
    let place = place();
    for (filter, expected) in [
        ("year >= 2020", &[TIDE, J1][..]),
        ("year = \"unknown\"", &[J2]),
        ("tags = \"sea\" and not (tags = \"night\")", &[TIDE]),
        ("keywords = \"night\" or tags = \"night\"", &[MOON, PAGE]),
        ("date = 2020-05-17 and draft = false", &[MOON]),
        ("date > 2020-05-17T00:00", &[TIDE]),
        ("author.name starts with \"A.\"", &[TIDE]),
        ("metadata.lang in (\"de\", \"fr\")", &[J1, J2]),
        ("metadata.lang != \"de\"", &[J1]),
        ("lang exists", &[PAGE]),
        ("meta.type = \"card\"", &[J1]),
        ("meta.title exists", &[MOON]),
        ("title = \"Lune\"", &[J1]),
        ("type = \"markdown\"", &[TIDE, MOON]),
        ("type = \"txt\" or type = \"html\"", &[LOAF, PAGE]),
        ("root = \"notes\" and path starts with \"drafts/\"", &[LOAF, TIDE]),
        ("path starts with \"notes/drafts/\"", &[LOAF, TIDE]),
        ("path starts with \"notes\"", &[LOAF, TIDE, MOON]),
        ("path starts with \"notes/moon\" or path = \"moon\"", &[MOON]),
        ("path in (\"notes/moon.md\", \"notes\", \"drafts/tide.md\")", &[TIDE, MOON]),
        ("root = \"notes\" and path != \"notes/moon.md\"", &[LOAF, TIDE]),
        ("path = \"rows/moon.md\"", &[]),
        ("id = \"rows/rows.jsonl/j2\"", &[J2]),
        ("year is missing and type != \"html\"", &[LOAF]),
        ("year < 1000", &[]),
    ] {
        assert_eq!(listed(&place, filter), expected, "{filter}");
    }
}

#[test]
fn fields_and_documents_are_listed() {
    let place = place();
    let fields = place.json(&["fields"]);
    let field = |name: &str| fields["fields"].as_array().unwrap().iter().find(|field| field["name"] == name).cloned();
    assert_eq!(
        field("year"),
        Some(json!({"name": "year", "of": "document", "types": ["integer", "float", "string"], "n_documents": 4}))
    );
    assert_eq!(
        field("draft"),
        Some(json!({"name": "draft", "of": "document", "types": ["boolean"], "n_documents": 2}))
    );
    assert_eq!(field("id"), Some(json!({"name": "id", "of": "document", "types": ["string"], "n_documents": 6})));
    assert!(place.ok(&["fields"]).out.contains("integer, float, string"));
    assert_eq!(place.ok(&["list"]).out.lines().count(), 6);
    let all = place.json(&["list"]);
    let tide = all["documents"].as_array().unwrap().iter().find(|document| document["id"] == TIDE).unwrap();
    assert_eq!((&tide["type"], &tide["origin"], &tide["n_chunks"]), (&json!("markdown"), &json!(TIDE), &json!(1)));
    assert_eq!(
        tide["metadata"],
        json!({"author.name": "A. Sailor", "date": "2020-05-17T10:30:00Z", "draft": true, "tags": ["sea"], "year": 2021})
    );
    assert_eq!(place.json(&["get", TIDE])["metadata"], tide["metadata"]);
}

const WAYS: [&[&str]; 4] =
    [&["--mode", "lexical"], &["--mode", "dense"], &["--mode", "hybrid"], &["--mode", "hybrid", "--exact"]];

fn hits(answer: &Value) -> Vec<(String, String)> {
    let hits = answer["hits"].as_array().unwrap().iter();
    hits.map(|hit| (hit["document"].as_str().unwrap().to_owned(), hit["score"].to_string())).collect()
}

#[test]
fn a_filter_is_applied_before_anything_is_ranked() {
    let place = place();
    for way in WAYS {
        let search = |more: &[&str]| place.json(&[&["search", "moon"], way, more].concat());
        let all = hits(&search(&[]));
        assert_eq!(all.len(), 6, "{way:?}");
        for (document, score) in &all {
            // Each document alone, the last one too, is the first and only result, though each arm has one candidate.
            let filter = format!("id = \"{document}\"");
            let answer = search(&["--filter", &filter, "-k", "1", "--candidates", "1"]);
            assert_eq!(answer["filter"], json!({"expression": filter, "n_admitted": 1, "n_documents": 6}));
            let one = hits(&answer);
            assert_eq!(one.iter().map(|hit| &hit.0).collect::<Vec<_>>(), [document], "{way:?}");
            assert!(way[1] == "hybrid" || one[0].1 == *score, "a filter does not change an arm's score: {way:?}");
        }
        let both = search(&["--filter", "type = \"md\"", "--within", MOON, "--within", "j1"]);
        assert_eq!(hits(&both).iter().map(|hit| hit.0.as_str()).collect::<Vec<_>>(), [MOON], "{way:?}");
        assert_eq!(both["filter"]["n_admitted"], 2);
    }
}

#[test]
fn runs_and_contexts_are_filtered_and_keep_their_scopes() {
    let place = place();
    let topics =
        [json!({"_id": "all", "text": "moon"}), json!({"_id": "some", "text": "moon", "scope": [MOON, "j1", PAGE]})];
    place.write("topics.jsonl", topics.map(|topic| format!("{topic}\n")).concat());
    for way in [WAYS[0], WAYS[1], WAYS[2], &["--mode", "dense", "--ann"]] {
        let run = ["run", "--topics", "topics.jsonl", "--filter", "tags exists or keywords exists", "-o", "run"];
        let files = ["--contexts", "contexts", "--budget", "300"];
        let answer = place.json(&[&run[..], &files, way].concat());
        assert_eq!((&answer["filter"]["n_admitted"], &answer["n_results"]), (&json!(3), &json!(5)), "{way:?}");
        let mut found: Vec<String> = String::from_utf8(place.read("run"))
            .unwrap()
            .lines()
            .map(|line| line.split(' ').step_by(2).take(2).collect::<Vec<_>>().join(" "))
            .collect();
        found.sort();
        let of =
            |topic: &str, documents: &[&str]| documents.iter().map(|id| format!("{topic} {id}")).collect::<Vec<_>>();
        assert_eq!(found, [of("all", &[TIDE, MOON, PAGE]), of("some", &[MOON, PAGE])].concat(), "{way:?}");
        for (line, mut expected) in
            String::from_utf8(place.read("contexts")).unwrap().lines().zip([vec![MOON, TIDE, PAGE], vec![MOON, PAGE]])
        {
            let mut documents: Vec<String> =
                serde_json::from_value(serde_json::from_str::<Value>(line).unwrap()["documents"].clone()).unwrap();
            documents.sort();
            expected.sort_unstable();
            assert_eq!(documents, expected, "{way:?}");
        }
    }
    let context = place.json(&["context", "moon", "--budget", "300", "--filter", "tags = \"night\""]);
    assert_eq!(context["filter"], json!({"expression": "tags = \"night\"", "n_admitted": 1, "n_documents": 6}));
    assert!(context["citations"].as_array().unwrap().iter().all(|citation| citation["document"] == MOON), "{context}");
    assert!(
        place
            .ok(&["context", "moon", "--budget", "300", "--filter", "tags = \"night\""])
            .err
            .contains("filter: 1 of 6 documents")
    );
}

#[test]
fn a_filter_that_admits_nothing_gives_an_empty_answer_that_says_so() {
    let place = place();
    let none = ["--filter", "year = 1066"];
    for way in WAYS {
        let ran = place.run(&[&["search", "moon", "--json"], way, &none].concat());
        assert_eq!(ran.code, 1, "{ran:?}");
        let answer: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((&answer["hits"], &answer["filter"]["n_admitted"]), (&json!([]), &json!(0)));
        place
            .run(&[&["search", "moon"], way, &none].concat())
            .fails(1, &["filter: 0 of 6 documents", "admits no document"]);
    }
    let ran = place.run(&[&["context", "moon", "--budget", "300", "--json"][..], &none].concat());
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &answer["citations"], &answer["filter"]["n_admitted"]), (1, &json!([]), &json!(0)));
    place.write("topics.jsonl", "{\"_id\":\"1\",\"text\":\"moon\"}\n");
    place.run(&[&["run", "--topics", "topics.jsonl"][..], &none].concat()).fails(1, &["filter: 0 of 6 documents"]);
    place.run(&[&["list"][..], &none].concat()).fails(1, &["filter: 0 of 6 documents"]);
}

#[test]
fn a_filter_that_cannot_be_used_is_shown_with_its_place() {
    let place = place();
    place.write("topics.jsonl", "{\"_id\":\"1\",\"text\":\"moon\"}\n");
    for command in [
        &["search", "moon"][..],
        &["context", "moon", "--budget", "300"],
        &["run", "--topics", "topics.jsonl"],
        &["list"],
        &["delete"],
        &["delete", "--dry-run"],
    ] {
        let filtered = |filter: &str| place.run(&[command, &["--filter", filter]].concat());
        filtered("year >= ").fails(2, &["filter: expected a value, found the end", "\n  year >= \n          ^"]);
        filtered("").fails(2, &["expected a field"]);
        filtered("type = html").fails(2, &["quotes: \"html\"", "^^^^"]);
        filtered("yaer = 2020").fails(2, &["no field `yaer`", "nearest: `year`", "author.name, date", "\n  ^^^^"]);
        filtered("draft = \"yes\"").fails(2, &["`draft` holds booleans", "\"yes\" is a string", "^^^^^"]);
        filtered("title > 3").fails(2, &["`title` holds strings", "3 is an integer"]);
        filtered(&"(".repeat(100_000)).fails(2, &["more than 64 deep"]);
    }
    assert_eq!(place.json(&["status"])["n_documents"], 6);
}

#[test]
fn documents_are_deleted_by_path_glob_and_filter() {
    let place = place();
    let dry = place.json(&["delete", "--path", "notes/drafts", "--dry-run"]);
    assert_eq!((&dry["deleted"], &dry["dry_run"], &dry["generation"]), (&json!([LOAF, TIDE]), &json!(true), &json!(2)));
    assert_eq!(place.ok(&["delete", "--filter", "id exists", "--dry-run"]).out.lines().count(), 6);
    place.run(&["delete", "--path", "notes/draft"]).fails(1, &["no document matches"]);
    place.run(&["delete", "--path", "*.md"]).fails(1, &["no document matches"]);
    let nothing = place.run(&["delete", "--filter", "year = 1066", "--json"]);
    let answer: Value = serde_json::from_str(&nothing.out).unwrap();
    assert_eq!((nothing.code, answer), (1, json!({"version": 1, "dry_run": false, "generation": 2, "deleted": []})));
    assert_eq!(place.json(&["status"])["n_documents"], 6);

    let glob = place.json(&["delete", "--path", "notes/**/*.txt"]);
    assert_eq!((&glob["deleted"], &glob["generation"]), (&json!([LOAF]), &json!(3)));
    assert_eq!(place.json(&["delete", "--path", "notes/drafts/"])["deleted"], json!([TIDE]));
    assert_eq!(place.json(&["delete", "--filter", "metadata.lang exists"])["deleted"], json!([J1, J2]));
    assert_eq!(place.json(&["delete", "--path", "rows/page.html"])["deleted"], json!([PAGE]));
    assert_eq!(place.ok(&["list"]).out, format!("{MOON}\n"));
    assert_eq!(listed(&place, "id exists"), [MOON]);
    place.ok(&["doctor"]);
}

#[test]
fn a_delete_says_which_in_one_way() {
    let place = place();
    place.run(&["delete"]).fails(2, &["DOC", "--path", "--filter"]);
    for more in [["--path", "notes"], ["--filter", "id exists"]] {
        place.run(&[&["delete", MOON][..], &more].concat()).fails(2, &["cannot be used with"]);
    }
    place.run(&["delete", "--path", "notes", "--filter", "id exists"]).fails(2, &["cannot be used with"]);
    place.run(&["delete", "--path", "notes/[a"]).fails(2, &["path", "notes/[a", "no glob"]);
    place.run(&["delete", "--path", ""]).fails(1, &["no document matches"]);
    place.run(&["delete", "--dry-run", "notes/mon.md"]).fails(1, &["notes/mon.md", "notes/moon.md"]);
    assert_eq!(place.json(&["status"])["n_documents"], 6);
}

#[test]
fn a_name_with_the_marks_of_a_glob_is_itself_first() {
    let place = Place::new();
    place.write("odd/[a].md", "One moon.\n");
    place.write("odd/a.md", "Two moons.\n");
    place.index(&["odd"]);
    assert_eq!(place.json(&["delete", "--path", "odd/[a].md"])["deleted"], json!(["odd/[a].md"]));
    assert_eq!(place.json(&["delete", "--path", "odd/[a].md"])["deleted"], json!(["odd/a.md"]));
}

#[test]
fn a_change_of_metadata_alone_is_seen_and_embeds_nothing() {
    let place = place();
    place.write(
        "notes/moon.md",
        "---\ntitle: Moon\nyear: \"2019\"\ntags: [sea, night]\ndate: 2020-05-17\ndraft: false\n---\nThe moon, the moon, the full moon.\n",
    );
    assert_eq!(listed(&place, "year = 2019"), [MOON]);
    let report = place.index(&["notes"]);
    assert_eq!((&report["n_changed"], &report["n_tokens_embedded"]), (&json!(1), &json!(0)));
    assert_eq!(listed(&place, "year = 2019"), [""; 0]);
    assert_eq!(place.ok(&["list", "--filter", "year = 2019", "--generation", "2"]).out, format!("{MOON}\n"));
    assert_eq!(listed(&place, "year = \"2019\""), [MOON]);
}
