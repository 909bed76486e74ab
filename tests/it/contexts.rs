//! Scopes, contexts of a batch, and eval-context: what may answer, what is delivered, and its evidence by hand.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Place, root, tiny_model};

/// Reading a figure back from JSON may be off by a unit in the last place.
const READ_BACK: f64 = 1e-12;

/// Five documents that all answer a query of the moon, some better than others, in one collection with a graph.
fn moons() -> Place {
    let place = Place::new();
    place.write("notes/a.md", "# Moon\n\nThe moon, the moon, the full moon.\n");
    place.write("notes/b.md", "# Tide\n\nThe moon pulls the sea, and the tide rises.\n");
    place.write("notes/c.md", "# Bread\n\nBread is flour, water, salt and time; no moon is in it.\n");
    place.write("notes/d.txt", "Stars, planets and a moon are born in clouds of gas.\n");
    place.write("notes/é 🌙.md", "# Lune\n\nLa lune 🌙 est pleine: « moon » en anglais.\n");
    place.ok(&["index", "--model", &tiny_model(), "notes", "--graph-rows-min", "1"]);
    place
}

/// Document and score of each line.
fn hits(run: &str) -> Vec<(String, String)> {
    let column = |line: &str| {
        let columns: Vec<&str> = line.split(' ').collect();
        (columns[2].replace("%20", " "), columns[4].to_owned())
    };
    run.lines().map(column).collect()
}

fn ids(run: &str) -> BTreeSet<String> {
    hits(run).into_iter().map(|(document, _)| document).collect()
}

const WAYS: [&[&str]; 4] =
    [&["--mode", "lexical"], &["--mode", "dense"], &["--mode", "hybrid"], &["--mode", "hybrid", "--ann"]];

#[test]
fn a_scope_is_applied_before_anything_is_ranked() {
    let place = moons();
    place.write("all.jsonl", "{\"_id\":\"1\",\"text\":\"moon\"}\n");
    for way in WAYS {
        let all = hits(&place.ok(&[&["run", "--topics", "all.jsonl", "--ties", "keep"], way].concat()).out);
        assert_eq!(all.len(), 5, "{way:?} {all:?}");
        // Each document alone, the last one too, is found as the first and only result, though each arm has one candidate.
        for (document, score) in &all {
            let topic = json!({"_id": "1", "text": "moon", "scope": document});
            place.write("one.jsonl", topic.to_string());
            let arguments = ["run", "--topics", "one.jsonl", "-k", "1", "--candidates", "1"];
            let one = hits(&place.ok(&[&arguments[..], way].concat()).out);
            assert_eq!(one.len(), 1, "{way:?}");
            assert_eq!(&one[0].0, document, "{way:?}");
            if way[1] != "hybrid" {
                assert_eq!(&one[0].1, score, "a scope does not change an arm's score: {way:?} {document}");
            }
        }
    }
}

#[test]
fn every_topic_keeps_its_own_scope_and_within_narrows_them_all() {
    let place = moons();
    let topics = [
        json!({"_id": "all", "text": "moon"}),
        json!({"_id": "two", "text": "moon", "scope": ["notes/c.md", "notes/é 🌙.md"]}),
        json!({"_id": "one", "text": "moon", "metadata": {"scope": "notes/d.txt"}}),
    ];
    place.write("topics.jsonl", topics.map(|topic| format!("{topic}\n")).concat());
    for way in WAYS {
        let of_topic = |more: &[&str], topic: &str| {
            let run = place.ok(&[&["run", "--topics", "topics.jsonl"], way, more].concat()).out;
            let lines = run.lines().filter(|line| line.starts_with(&format!("{topic} ")));
            ids(&lines.collect::<Vec<_>>().join("\n"))
        };
        let set = |documents: &[&str]| documents.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<String>>();
        assert_eq!(of_topic(&[], "all").len(), 5, "{way:?}");
        assert_eq!(of_topic(&[], "two"), set(&["notes/c.md", "notes/é 🌙.md"]), "{way:?}");
        assert_eq!(of_topic(&[], "one"), set(&["notes/d.txt"]), "{way:?}");
        let within = ["--within", "notes/c.md", "--within", "notes/b.md"];
        assert_eq!(of_topic(&within, "all"), set(&["notes/b.md", "notes/c.md"]), "{way:?}");
        assert_eq!(of_topic(&within, "two"), set(&["notes/c.md"]), "{way:?}");
        assert_eq!(of_topic(&within, "one"), set(&[]), "{way:?}");
    }
}

#[test]
fn an_unknown_document_in_a_scope_is_told_with_the_nearest() {
    let place = Place::indexed();
    place.write("topics.jsonl", "{\"_id\":\"1\",\"text\":\"moon\",\"scope\":\"notes/tide.md\"}\n");
    place.run(&["run", "--topics", "topics.jsonl"]).fails(1, &["notes/tide.md", "notes/tides.md"]);
    place.write("topics.jsonl", "{\"_id\":\"1\",\"text\":\"moon\"}\n");
    place
        .run(&["run", "--topics", "topics.jsonl", "--within", "notes/bred.md"])
        .fails(1, &["notes/bred.md", "notes/bread.md"]);
}

#[test]
fn a_topic_that_is_a_document_is_left_out_of_its_run_and_another_takes_its_place() {
    let place = moons();
    place.write("topics.tsv", "notes/a.md\tthe moon, the moon, the full moon\n");
    let run = |more: &[&str]| hits(&place.ok(&[&["run", "--topics", "topics.tsv"], more].concat()).out);
    let kept = run(&["-k", "3"]);
    assert_eq!((kept.len(), kept[0].0.as_str()), (3, "notes/a.md"));
    let removed = run(&["-k", "3", "--remove-query"]);
    assert_eq!(removed.len(), 3);
    assert_eq!(removed[..2], kept[1..]);
    assert_eq!(run(&["--remove-query"]).len(), 4);
}

/// The lines of a file of contexts.
fn contexts(place: &Place, file: &str) -> Vec<Value> {
    let text = String::from_utf8(place.read(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn there_is_a_context_for_each_topic_strategy_and_budget_and_it_keeps_its_budget() {
    let place = moons();
    place.write("topics.tsv", "1\tmoon\n2\tthe tide and the sea\n");
    let arguments = ["--budget", "30,60,2000", "--strategy", "bubble,flat", "--contexts", "contexts", "-o", "run"];
    let answer = place.json(&[&["run", "--topics", "topics.tsv"], &arguments[..]].concat());
    assert_eq!((&answer["n_contexts"], &answer["n_topics"]), (&json!(12), &json!(2)));
    let contexts = contexts(&place, "contexts");
    let mut seen = BTreeSet::new();
    for context in &contexts {
        let (n_tokens, budget) = (context["n_tokens"].as_u64().unwrap(), context["budget_tokens"].as_u64().unwrap());
        assert!(n_tokens <= budget, "{context}");
        assert!(!context["citations"].as_array().unwrap().is_empty(), "{context}");
        seen.insert((context["query_id"].to_string(), context["strategy"].to_string(), budget));
    }
    assert_eq!((contexts.len(), seen.len()), (12, 12));
    let labelled = ["--budget", "60", "--strategy", "flat", "--label", "best first", "--contexts", "labelled"];
    place.ok(&[&["run", "--topics", "topics.tsv", "-o", "run"], &labelled[..]].concat());
    assert!(self::contexts(&place, "labelled").iter().all(|context| context["strategy"] == "best first"));
}

#[test]
fn a_citation_of_a_context_is_the_bytes_that_get_prints() {
    let place = moons();
    place.write("more/page.html", "<html><body><h1>Mönd</h1><p>The moon &amp; the tide.</p></body></html>");
    place.write("more/rows.jsonl", "{\"_id\":\"row\",\"text\":\"A moon of ice: Europa 🪐.\"}\n");
    place.ok(&["index", "--model", &tiny_model(), "more"]);
    place.write("topics.tsv", "1\tmoon\n2\tfull moon in the clouds\n");
    let arguments = ["--budget", "30,60,2000", "--strategy", "bubble,flat", "--contexts", "contexts", "-o", "run"];
    place.ok(&[&["run", "--topics", "topics.tsv"], &arguments[..]].concat());
    let mut cited = BTreeSet::new();
    for context in contexts(&place, "contexts") {
        for citation in context["citations"].as_array().unwrap() {
            let text = citation["text"].as_str().unwrap();
            assert!(context["context"].as_str().unwrap().contains(text.trim()), "{citation}");
            let (document, span) = (citation["document"].as_str().unwrap(), &citation["span"]);
            cited.insert((format!("{document} bytes {}-{}", span["start"], span["end"]), text.to_owned()));
        }
    }
    assert!(cited.len() >= 7, "every document is cited: {cited:?}");
    for (place_of, text) in cited {
        assert_eq!(place.ok(&["get", &place_of]).out, text, "{place_of}");
    }
}

#[test]
fn runs_and_contexts_are_the_same_bytes_for_any_number_of_threads() {
    let place = moons();
    let topics = (0..70).map(|n| format!("{n}\tthe moon and {}\n", ["tide", "bread", "stars", "lune"][n % 4]));
    place.write("topics.tsv", topics.collect::<String>());
    let run = |threads: &str| {
        let contexts = ["--contexts", "contexts", "--budget", "40,100", "--strategy", "bubble,flat"];
        place.ok(&[&["run", "--topics", "topics.tsv", "-o", "run", "--threads", threads], &contexts[..]].concat());
        (place.read("run"), place.read("contexts"))
    };
    let one = run("1");
    assert_eq!(String::from_utf8_lossy(&one.1).lines().count(), 280);
    assert!(one == run("2"), "one and two threads differ");
    assert!(one == run("5"), "one and five threads differ");
}

#[test]
fn contexts_need_a_budget_that_holds_something() {
    let place = Place::indexed();
    place.write("topics.tsv", "1\tmoon\n");
    let run = |more: &[&str]| place.run(&[&["run", "--topics", "topics.tsv", "-o", "run"], more].concat());
    run(&["--contexts", "contexts"]).fails(2, &["--budget"]);
    run(&["--contexts", "contexts", "--budget", "1"]).fails(2, &["budget", "1"]);
    run(&["--contexts", "contexts", "--budget", "60,60"]).fails(2, &["--budget", "twice"]);
    run(&["--contexts", "contexts", "--budget", "60", "--strategy", "buble"]).fails(2, &["buble", "bubble"]);
    run(&["--contexts", "contexts", "--budget", "60", "--strategy", "bubble,flat", "--label", "x"])
        .fails(2, &["--label x", "2"]);
}

/// The example of the guide: its notes in a collection, and eight questions.
fn example() -> Place {
    let place = Place::new();
    for folder in ["notes", "judged", "judged/qrels"] {
        for entry in std::fs::read_dir(root().join("docs/example").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                place.write(&format!("{folder}/{name}"), std::fs::read(&path).unwrap());
            }
        }
    }
    place.index(&["notes"]);
    place
}

#[test]
fn a_budget_that_is_left_to_each_topic_comes_to_what_context_makes_of_it() {
    let place = example();
    let run = |budgets: &str, more: &[&str]| {
        let arguments = ["run", "--topics", "judged", "-o", "run", "--contexts", "contexts", "--budget", budgets];
        place.ok(&[&arguments[..], more].concat());
        contexts(&place, "contexts")
    };
    let mut knees = BTreeSet::new();
    for budget in ["auto", "auto:150", "auto:20"] {
        let asked = if budget == "auto" { "auto:4000" } else { budget };
        let left = run(budget, &[]);
        assert_eq!(left.len(), 8, "one a topic");
        for context in &left {
            let question = context["query"].as_str().unwrap();
            let alone = ["context", question, "--budget", budget];
            let text = place.run(&alone).out;
            assert_eq!(format!("{}\n", context["context"].as_str().unwrap()), text, "{question}");
            let answer: Value = serde_json::from_str(&place.run(&[&alone[..], &["--json"]].concat()).out).unwrap();
            for told in ["budget_tokens", "n_tokens", "tokenizer", "context"] {
                assert_eq!(context[told], answer[told], "{question}: {told}");
            }
            assert_eq!(context["budget"], asked, "{question}");
            knees.insert(context["budget_tokens"].as_u64().unwrap());
        }
    }
    assert!(knees.len() > 8, "budgets differ from question to question: {knees:?}");

    let fixed = run("90", &["--matched"]);
    let both = run("auto:150,90", &["--matched"]);
    let (left, same): (Vec<Value>, Vec<Value>) = both.into_iter().partition(|context| context["budget"].is_string());
    assert_eq!(same, fixed, "beside another budget, contexts of a number are as they were");
    for pair in left.chunks(2) {
        assert_eq!((&pair[0]["strategy"], &pair[1]["strategy"]), (&json!("cento"), &json!("flat=cento")));
        assert_eq!(pair[0]["budget_tokens"], pair[1]["budget_tokens"]);
        assert!(pair[1]["n_tokens"].as_u64() <= pair[0]["n_tokens"].as_u64(), "as many tokens as it has: {pair:?}");
    }
}

#[test]
fn contexts_of_budgets_that_differ_by_topic_are_judged_and_compared_as_one_group() {
    let place = example();
    let arguments = ["run", "--topics", "judged", "-o", "run", "--contexts", "contexts", "--budget", "auto:150,90"];
    place.ok(&arguments);
    let judged = place.json(&["eval-context", "judged", "contexts", "--per-query"]);
    let groups = judged["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{judged}");
    assert_eq!((&groups[0]["budget_tokens"], groups[0].get("budget")), (&json!(90), None));
    assert_eq!((groups[1].get("budget_tokens"), &groups[1]["budget"]), (None, &json!("auto:150")));
    assert_eq!((&groups[1]["n_contexts"], &groups[1]["n_missing"]), (&json!(8), &json!(0)));
    let used: f64 = groups[1]["budget_used"].as_f64().unwrap();
    assert!(used > 0.5 && used <= 1.0, "of each question's own budget: {used}");
    let table = place.ok(&["eval-context", "judged", "contexts", "-f", "tokens"]).out;
    assert!(table.contains("CENTO 90") && table.contains("CENTO AUTO:150"), "{table}");
    place.write("judged.json", judged.to_string());
    let compared = place.json(&["compare", "judged.json", "judged.json"]);
    let measures: Vec<&str> =
        compared["comparisons"].as_array().unwrap().iter().filter_map(|row| row["measure"].as_str()).collect();
    assert!(
        measures.contains(&"auto:150: title_recall") && measures.contains(&"90 tokens: title_recall"),
        "{measures:?}"
    );
}

#[test]
fn a_budget_is_left_to_the_topics_only_where_it_has_a_meaning() {
    let place = example();
    let run = |more: &[&str]| {
        place.run(&[&["run", "--topics", "judged", "-o", "run", "--contexts", "contexts"], more].concat())
    };
    let flat = ["--budget", "auto", "--strategy", "flat"];
    let as_context = place.run(&[&["context", "moon"], &flat[..]].concat());
    let words = "a budget curve is of the strategy cento: `flat` knows no value of a token";
    as_context.fails(2, &[words]);
    run(&flat).fails(2, &[words]);
    run(&["--budget", "90,auto", "--strategy", "cento,rse"]).fails(2, &["of the strategy cento: `rse` knows no value"]);
    assert!(!place.path("run").exists(), "it is refused before topics are ranked");
    run(&["--budget", "auto:1000001"]).fails(2, &["budget", "1000001", "1000000"]);
    run(&["--budget", "auto,auto:4000"]).fails(2, &["--budget", "twice"]);
    run(&["--budget", "plenty"]).fails(2, &["expected a number of tokens, auto or auto:N"]);
    place.write("pipeline.yaml", std::fs::read(root().join("tests/data/rag-context-pipeline.config.yaml")).unwrap());
    run(&["--budget", "auto", "--policy", "pipeline.yaml"]).fails(2, &["--budget auto:4000: contradicts line "]);
    place.run(&["run", "--topics", "judged", "-o", "run", "--budget", "auto"]).fails(2, &["--contexts"]);
}

/// Letters of two bytes, each with its blank one token of o200k; and a wave of four bytes before the evidence.
const GREEK: &str = "α β γ δ ε ζ η θ\n";
const TIDE: &str = "Flut über 🌊 und Sand.\nThe tide is high.\n";

/// A set of two questions: the evidence of `letters` is three Greek letters, that of `tide` a sentence.
fn excerpts() -> Place {
    let place = Place::new();
    place.write("set/docs/greek.txt", GREEK);
    place.write("set/docs/tide.md", TIDE);
    let question = |id: &str, document: &str, text: &str, excerpt: &str| {
        let content = if document == "greek" { GREEK } else { TIDE };
        let start = content[..content.find(excerpt).unwrap()].chars().count();
        let reference =
            json!({"doc": document, "start": start, "end": start + excerpt.chars().count(), "text": excerpt});
        format!("{}\n", json!({"id": id, "question": text, "answer": excerpt, "refs": [reference]}))
    };
    let letters = question("letters", "greek", "Which letters follow β?", "γ δ ε");
    place.write("set/questions.jsonl", letters + &question("tide", "tide.md", "How is the tide?", "The tide is high."));
    place
}

/// A context that delivers these bytes of the Greek letters and has `n_tokens` in all.
fn greek_context(start: usize, end: usize, n_tokens: u64) -> String {
    let citation = json!({"n": 1, "document": "docs/greek.txt", "path": [], "span": {"start": start, "end": end}, "source": "source",
        "anchor": "", "chunks": [], "cut": false, "text": &GREEK[start..end]});
    let context = json!({"version": 1, "query_id": "letters", "query": "", "strategy": "hand", "budget_tokens": 10,
        "n_tokens": n_tokens, "n_text_tokens": n_tokens, "tokenizer": "o200k", "context": &GREEK[start..end],
        "documents": ["docs/greek.txt"], "sections": [], "redundancy_cosine": null, "citations": [citation]});
    format!("{context}\n")
}

#[test]
fn evidence_in_a_context_is_counted_by_hand() {
    let place = excerpts();
    place.write("contexts", greek_context(0, "α β γ δ".len(), 6));
    let group = &place.json(&["eval-context", "set", "contexts", "--per-query"])["groups"][0];
    let check = |name: &str, expected: f64| {
        let actual = group["queries"]["letters"][name].as_f64().unwrap_or_else(|| panic!("no {name} in {group}"));
        assert!((actual - expected).abs() < READ_BACK, "{name}: {actual}, expected {expected}");
    };
    // Tokens: of the gold ` γ`, ` δ`, ` ε` two are delivered, within six tokens.
    check("evidence_recall", 2.0 / 3.0);
    check("evidence_precision", 2.0 / 6.0);
    check("evidence_iou", 2.0 / (6.0 + 3.0 - 2.0));
    // Characters: of the gold `γ δ ε` `γ δ` is delivered, within the seven of `α β γ δ`.
    check("evidence_char_recall", 3.0 / 5.0);
    check("evidence_char_precision", 3.0 / 7.0);
    check("evidence_char_iou", 3.0 / (7.0 + 5.0 - 3.0));
    check("title_recall", 1.0);
    check("budget_used", 6.0 / 10.0);
    // The other question has no context: 0 of what should be delivered, and no tokens.
    assert_eq!((&group["n_contexts"], &group["n_missing"]), (&json!(1), &json!(1)));
    assert_eq!(group["queries"]["tide"]["evidence_recall"], 0.0);
    assert!(group["queries"]["tide"]["tokens"].is_null(), "{group}");
    let mean = |more: &[&str]| {
        let answer = place.json(&[&["eval-context", "set", "contexts", "-f", "evidence_recall"], more].concat());
        answer["groups"][0]["evidence_recall"].as_f64().unwrap()
    };
    assert!((mean(&[]) - 1.0 / 3.0).abs() < READ_BACK);
    assert!((mean(&["--retrieved-only"]) - 2.0 / 3.0).abs() < READ_BACK);
    let said = place.ok(&["eval-context", "set", "contexts"]);
    assert!(said.err.contains("1 question without a context count as 0"), "{said:?}");
}

/// Contexts of the set, of a collection of its documents.
fn excerpt_contexts(place: &Place, budgets: &str, more: &[&str]) {
    place.index(&["set/docs"]);
    let arguments = ["run", "--topics", "set", "--budget", budgets, "--contexts", "contexts", "-o", "run"];
    place.ok(&[&arguments[..], more].concat());
}

#[test]
fn all_evidence_is_found_when_everything_fits() {
    let place = excerpts();
    excerpt_contexts(&place, "12,500", &["--strategy", "bubble,flat"]);
    let answer = place.json(&["eval-context", "set", "contexts"]);
    let groups = answer["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 4);
    for group in groups {
        let fits = group["budget_tokens"] == 500;
        assert_eq!(group["evidence_recall"] == 1.0, fits, "{group}");
        assert_eq!(group["evidence_char_recall"] == 1.0, fits, "{group}");
        assert_eq!(group["answer_in_context"] == 1.0, fits, "{group}");
        assert_eq!(group["all_gold"] == 1.0, fits, "{group}");
    }
    // Contexts counted by the encoder's own tokenizer are judged in its tokens.
    excerpt_contexts(&place, "500", &["--tokenizer", "model"]);
    let of_model = place.json(&["eval-context", "set", "contexts", "-f", "evidence_recall,tokens"]);
    assert_eq!(of_model["groups"][0]["evidence_recall"], 1.0, "{of_model}");
}

#[test]
fn only_the_figures_asked_for_are_shown_and_an_unknown_one_names_the_nearest() {
    let place = excerpts();
    excerpt_contexts(&place, "500", &[]);
    let ran = place.ok(&["eval-context", "set", "contexts", "--figures", "evidence_recall,tokens"]);
    assert!(ran.out.contains("evidence_recall") && ran.out.contains("tokens"), "{ran:?}");
    assert!(!ran.out.contains("title_recall"), "{ran:?}");
    let cut = place.json(&["eval-context", "set", "contexts", "--cutoffs", "2"]);
    assert!(cut["groups"][0]["title_recall@2"].is_number() && cut["groups"][0]["title_recall@1"].is_null(), "{cut}");
    place
        .run(&["eval-context", "set", "contexts", "-f", "evidence_recal"])
        .fails(2, &["evidence_recal", "evidence_recall"]);
}

#[test]
fn contexts_of_other_files_than_the_questions_are_refused() {
    let place = excerpts();
    place.write("topics.tsv", "letters\tWhich letters follow β?\n");
    let contexts_of = |folder: &str, collection: &str| {
        place.index(&[folder, "--collection", collection]);
        let arguments = ["run", "--topics", "topics.tsv", "--budget", "500", "--contexts", "contexts", "-o", "run"];
        place.ok(&[&arguments[..], &["--collection", collection]].concat());
        place.run(&["eval-context", "set", "contexts"])
    };
    // The same names with other bytes, then other names.
    place.write("other/docs/greek.txt", GREEK.to_uppercase());
    contexts_of("other/docs", "other.cento").fails(3, &["query letters", "citation 1", "indexed from other"]);
    place.write("elsewhere/notes.md", TIDE);
    contexts_of("elsewhere", "elsewhere.cento")
        .fails(3, &["no document in common", "elsewhere/notes.md", "docs/greek.txt"]);
    place.write("topics.tsv", "letter\tWhich letters follow β?\n");
    contexts_of("set/docs", "set.cento").fails(3, &["no query in common", "\"letter\"", "\"letters\""]);
}

#[test]
fn evidence_that_is_not_where_the_questions_say_is_refused() {
    let place = excerpts();
    place.write("contexts", greek_context(0, "α".len(), 1));
    place.ok(&["eval-context", "set", "contexts"]);
    place.write("set/docs/greek.txt", GREEK.to_uppercase());
    place
        .run(&["eval-context", "set", "contexts"])
        .fails(3, &["questions.jsonl, line 1", "question letters", "\"Γ Δ Ε\"", "\"γ δ ε\""]);
    std::fs::remove_file(place.path("set/docs/greek.txt")).unwrap();
    place
        .run(&["eval-context", "set", "contexts"])
        .fails(3, &["questions.jsonl, line 1", "\"greek\"", "near it: tide"]);
}

#[test]
fn answers_of_eval_context_compare_question_by_question() {
    let place = excerpts();
    for (file, end) in [("short", "α β γ".len()), ("long", "α β γ δ ε".len())] {
        place.write("contexts", greek_context(0, end, 5));
        place.write(file, place.ok(&["eval-context", "set", "contexts", "--per-query", "--json"]).out);
    }
    let answer = place.json(&["compare", "short", "long"]);
    let rows = answer["comparisons"].as_array().unwrap();
    let row = rows.iter().find(|row| row["measure"] == "10 tokens: evidence_recall").unwrap();
    assert_eq!((&row["n"], &row["wins"], &row["ties"]), (&json!(2), &json!(1), &json!(1)), "{row}");
    let difference = row["difference"].as_f64().unwrap();
    assert!((difference - (1.0 - 1.0 / 3.0) / 2.0).abs() < READ_BACK, "{row}");
}

#[test]
fn strategies_of_one_evaluation_compare_by_their_names() {
    let place = excerpts();
    let line = |strategy: &str, end: usize| {
        greek_context(0, end, 5).replace("\"strategy\":\"hand\"", &format!("\"strategy\":\"{strategy}\""))
    };
    place.write("contexts", [line("short", "α β γ".len()), line("long", "α β γ δ ε".len())].concat());
    place.write("both", place.ok(&["eval-context", "set", "contexts", "--per-query", "--json"]).out);
    place.run(&["compare", "both", "both"]).fails(3, &["two strategies", "say with --strategy"]);
    place.run(&["compare", "both", "both", "--strategy", "short"]).fails(2, &["--strategy short: 2 files"]);
    place
        .run(&["compare", "both", "both", "--strategy", "short,tall"])
        .fails(3, &["no strategy \"tall\", but long, short"]);
    let answer = place.json(&["compare", "both", "both", "--strategy", "short,long"]);
    let rows = answer["comparisons"].as_array().unwrap();
    let row = rows.iter().find(|row| row["measure"] == "10 tokens: evidence_recall").unwrap();
    assert_eq!((&answer["a"], &row["b"]), (&json!("both short"), &json!("both long")));
    assert_eq!((&row["n"], &row["wins"], &row["ties"]), (&json!(2), &json!(1), &json!(1)), "{row}");
}

#[test]
fn a_label_that_no_section_has_is_named_with_the_nearest() {
    let place = Place::new();
    for (file, fee) in [("one", "ten"), ("two", "twelve")] {
        let fees = format!("Captains pay {fee} crowns a day at the {file} quay. ").repeat(3);
        place.write(
            &format!("notes/{file}.md"),
            format!("# Harbour {file}\n\n## Fees\n\n{fees}\n\n## Berths\n\nBerths are {file}.\n"),
        );
    }
    place.index(&["notes"]);
    let asked = ["context", "what do captains pay", "--budget", "200", "--policy", "policy.toml"];
    let warnings = |policy: &str, strategy: &str| {
        place.write("policy.toml", policy);
        place.ok(&[&asked[..], &["--strategy", strategy]].concat()).err
    };
    for strategy in ["cento", "bubble"] {
        let told = warnings("[priors]\nfee = 0.5\n[rho]\n\"bertsh\" = 0.5\n", strategy);
        assert!(
            told.contains("warning: no section is headed \"fee\", which [priors] names; the nearest is \"fees\""),
            "{told}"
        );
        assert!(told.contains("\"bertsh\", which [rho] names; the nearest is \"berths\""), "{told}");
        let known = warnings("[priors]\nFees = 0.5\n[rho]\n\"*\" = 0.5\n", strategy);
        assert!(!known.contains("no section"), "{known}");
    }
    assert!(!warnings("[priors]\nfee = 0.5\n", "flat").contains("no section"), "it looks at no labels");
}

#[test]
fn a_share_is_of_a_section_or_of_a_heading_in_all_documents() {
    let place = Place::new();
    for (file, fee) in [("one", "ten"), ("two", "twelve")] {
        let fees = format!("Captains pay {fee} crowns a day at the {file} quay, said the {file} harbour master. ");
        place.write(&format!("notes/{file}.md"), format!("# Harbour {file}\n\n## Fees\n\n{fees}\n"));
    }
    place.index(&["notes"]);
    let fees = |policy: &str| {
        place.write("policy.toml", policy);
        let asked =
            ["context", "what do captains pay", "--budget", "100", "--strategy", "bubble", "--policy", "policy.toml"];
        place.json(&asked)["context"].as_str().unwrap().matches("Captains pay").count()
    };
    let shares = "slack = \"none\"\ngate = \"none\"\n";
    assert_eq!(fees(&format!("{shares}[rho]\nfees = 0.3\n")), 2, "each document's section has the share");
    assert_eq!(fees(&format!("{shares}rho_of = \"heading\"\n[rho]\nfees = 0.3\n")), 1, "both have it together");
    place.write("policy.toml", "rho_of = \"heading\"\n[rho]\nfees = 0.6\nberths = 0.5\n");
    let asked = ["context", "what do captains pay", "--strategy", "bubble", "--policy", "policy.toml"];
    place.run(&asked).fails(2, &["rho", "add up to 1"]);
    place.write("policy.toml", "[rho]\nfees = 0.6\nberths = 0.5\n");
    assert!(place.ok(&asked).err.contains("the shares of [rho] add up to 1.1"));
}
