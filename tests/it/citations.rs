//! The words of a citation: where a person reads them, and that each of them opens what it names.

use crate::support::{BREAD, Place, Ran, TIDES};

const MOON: &str = "The moon pulls the sea. The sun pulls it too, with less force.";

fn rows(place: &Place) {
    place.write(
        "mixed/rows.jsonl",
        "{\"_id\":\"j0\",\"text\":\"Lava flows.\"}\n{\"_id\":\"j1\",\"text\":\"A boat on the Danube.\"}\n",
    );
    place.write("mixed/rivers.csv", "city,river\nVienna,Danube\nParis,Seine\n");
    place.write("mixed/page.html", "<html><body><h1>Ships</h1><p>A boat on the Danube, too.</p></body></html>");
}

#[test]
fn every_spelling_of_a_place_opens_it() {
    let place = Place::indexed();
    let get = |citation: &str| place.ok(&["get", citation]).out;
    assert_eq!(get("notes/tides.md:11"), format!("{MOON}\n"));
    assert_eq!(get("notes/tides.md:11-11"), format!("{MOON}\n"));
    let at = TIDES.find(MOON).unwrap();
    let bytes = format!("{at}-{}", at + MOON.len());
    for citation in [
        format!("notes/tides.md bytes {bytes}"),
        format!("notes/tides.md extracted bytes {bytes}"),
        format!("=== [1] notes/tides.md > Tides > Causes (bytes {bytes}, cut)"),
        format!("[3] notes/tides.md bytes {bytes}  Tides > Causes"),
    ] {
        assert_eq!(get(&citation), MOON, "{citation}");
    }
    assert!(get("notes/tides.md#1").contains("twice a day"));
    assert_eq!(get("notes/tides.md#1"), get("[1] notes/tides.md#1  Tides"));
    place
        .run(&["get", "notes/tides.md:11-999"])
        .fails(1, &["notes/tides.md: no lines 11-999 in the document, which has 19 lines"]);
    place.run(&["get", "notes/tides.md:0"]).fails(1, &["lines 0-0"]);
}

#[test]
fn get_shows_where_links_lead_and_what_links_here() {
    let place = Place::new();
    place.write("notes/a.md", "# A\n\nRead [the tides](tides.md#causes) and [nothing](gone.md).\n");
    place.write("notes/page.html", "<h1>Page</h1><p>On <a href=\"tides.html\">tides</a>.</p>");
    place.write("notes/tides.md", TIDES);
    place.index(&["notes"]);
    let shown = place.ok(&["get", "a.md", "--links"]).out;
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split("  ").collect()).collect();
    let cells = |line: usize| lines[line].iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty());
    assert_eq!(cells(1).collect::<Vec<_>>(), ["inline", "tides.md#causes", "notes/tides.md > Causes", "bytes 10-38"]);
    assert_eq!(cells(2).collect::<Vec<_>>(), ["inline", "gone.md", "not in the collection", "bytes 43-61"]);
    assert_eq!(place.ok(&["get", "a.md bytes 10-38"]).out, "[the tides](tides.md#causes)");

    let links = place.json(&["get", "tides.md", "--links"]);
    assert_eq!(links["document"], "notes/tides.md");
    assert_eq!(links["outgoing"], serde_json::json!([]));
    let from: Vec<&str> =
        links["incoming"].as_array().unwrap().iter().map(|l| l["document"].as_str().unwrap()).collect();
    assert_eq!(from, ["notes/a.md", "notes/page.html"]);
    place.write("notes/alone.md", "# Alone\n\nNothing.\n");
    place.index(&["notes"]);
    place.run(&["get", "alone.md", "--links"]).fails(1, &["notes/alone.md links to nothing, and nothing links to it"]);
}

#[test]
fn a_file_is_named_by_its_path_or_by_the_end_of_it() {
    let place = Place::indexed();
    let absolute = place.path("notes/bread.md").display().to_string();
    for name in ["notes/bread.md", "./notes/bread.md", "bread.md", absolute.as_str(), "notes/../notes/bread.md"] {
        assert_eq!(place.ok(&["get", name]).out, BREAD, "{name}");
    }
    assert!(place.ok(&["get", "sub/stars.txt"]).out.starts_with("Stars"));
    assert_eq!(place.ok(&["get", "bread.md:1"]).out, "# Bread\n");
    // From another folder a relative path means the file that lies there.
    let mut elsewhere = place.command(&["get", "stars.txt", "--collection", "../../.cento"]);
    let ran = Ran::new(&[], elsewhere.current_dir(place.path("notes/sub")).output().unwrap());
    assert!(ran.out.starts_with("Stars"), "{ran:?}");
    place.write("notes/sub/bread.md", "# More bread\n");
    place.index(&["notes"]);
    place.run(&["get", "bread.md"]).fails(1, &["\"bread.md\"", "notes/bread.md, notes/sub/bread.md"]);
    place.run(&["get", "loaf.md"]).fails(1, &["no document \"loaf.md\" in this collection; `cento list` shows all"]);
    for ask in [&["why-not", "moon", "loaf.md"][..], &["delete", "loaf.md"], &["search", "moon", "--within", "loaf.md"]]
    {
        place.run(ask).fails(1, &["no document \"loaf.md\"", "; `cento list` shows all"]);
    }
    let ran = place.run(&["get", "notes/bred.md"]);
    assert!(ran.err.contains("nearest: \"notes/bread.md\"\n"), "one that is near is way out enough: {ran:?}");
}

#[test]
fn files_with_a_document_a_line_are_opened_by_line() {
    let place = Place::new();
    rows(&place);
    place.index(&["mixed"]);
    assert_eq!(place.ok(&["get", "mixed/rows.jsonl:2"]).out, "A boat on the Danube.");
    assert_eq!(place.json(&["get", "rows.jsonl:1"])["document"], "mixed/rows.jsonl/j0");
    place.run(&["get", "mixed/rows.jsonl"]).fails(1, &["mixed/rows.jsonl/j0, mixed/rows.jsonl/j1"]);
    place.run(&["get", "mixed/rows.jsonl:9"]).fails(1, &["line 9"]);
    place.run(&["get", "mixed/page.html:1"]).fails(1, &["line 1", "mixed/page.html#0"]);
}

#[test]
fn a_context_says_where_its_sources_are_in_words_that_open_them() {
    let place = Place::indexed();
    rows(&place);
    place.index(&["mixed"]);
    let asked = ["context", "moon tide boat Danube", "--budget", "900", "--strategy", "flat", "--marks", "full"];
    let told = place.ok(&asked);
    let citations = place.json(&asked)["citations"].as_array().unwrap().clone();
    let marks: Vec<&str> = told.out.lines().filter(|line| line.starts_with("=== [") && !line.contains('…')).collect();
    let sources: Vec<&str> = told.err.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!((marks.len(), sources.len()), (citations.len(), citations.len()), "{told:?}");
    for words in
        ["] notes/tides.md:", "] mixed/rows.jsonl:2  mixed/rows.jsonl/j1", "] mixed/rivers.csv bytes ", "  Tides"]
    {
        assert!(sources.iter().any(|line| line.contains(words)), "{words}: {sources:?}");
    }
    for ((mark, source), citation) in marks.iter().zip(&sources).zip(&citations) {
        let by_mark = place.json(&["get", mark]);
        assert_eq!(by_mark["document"], citation["document"], "{mark}");
        assert_eq!(by_mark["span"][0], citation["span"]["start"], "{mark}");
        let by_source = place.json(&["get", source]);
        assert_eq!(by_source["document"], citation["document"], "{source}");
        let (outer, inner) = (by_source["text"].as_str().unwrap(), by_mark["text"].as_str().unwrap());
        assert!(outer.contains(inner.trim()), "{source}: {outer:?} has no {inner:?}");
    }
    assert!(!told.err.contains('\u{1b}'), "no link where no terminal reads: {told:?}");
    assert!(!place.ok(&[&asked[..], &["--json"]].concat()).err.contains("[1]"));
    assert_eq!(place.ok(&[&asked[..], &["--quiet"]].concat()).err, "");
}

#[test]
fn a_mark_names_the_file_where_the_text_begins_with_its_title() {
    let place = Place::indexed();
    let told =
        place.ok(&["context", "twice a day sailors", "--budget", "400", "--strategy", "flat", "--marks", "full"]);
    assert!(TIDES.contains("title: Tides") && told.out.contains("# Tides\n"), "{told:?}");
    for mark in told.out.lines().filter(|line| line.starts_with("=== [") && !line.contains('…')) {
        assert!(mark.contains("] notes/"), "{mark}");
    }
}
