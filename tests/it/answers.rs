//! Search, context, run and get: what is answered, within which budget, cited how, and what it does not depend on.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{BREAD, Place, TIDES, default_model, tiny_model};
use crate::traces::{hold, trace};

/// Sums are exact in the binary; reading the JSON back may be off by a unit in the last place.
const READ_BACK: f64 = 1e-12;

fn ids(answer: &Value) -> Vec<String> {
    answer["hits"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_chunk_with_the_words_comes_first() {
    let place = Place::indexed();
    let answer = place.json(&["search", "sourdough starter", "--mode", "lexical"]);
    let first = &answer["hits"][0];
    assert_eq!(first["document"], "notes/bread.md");
    assert_eq!(first["path"], serde_json::json!(["Bread", "Sourdough"]));
    assert!(first["text"].as_str().unwrap().contains("wild yeast"));
}

#[test]
fn spans_are_bytes_of_the_file() {
    let place = Place::indexed();
    for hit in place.json(&["search", "moon bread star", "-k", "100"])["hits"].as_array().unwrap() {
        let (start, end) = (hit["span"][0].as_u64().unwrap() as usize, hit["span"][1].as_u64().unwrap() as usize);
        let file = place.read(hit["document"].as_str().unwrap());
        assert_eq!(hit["text"].as_str().unwrap().as_bytes(), &file[start..end], "{hit}");
    }
}

#[test]
fn front_matter_is_metadata_and_never_found() {
    let place = Place::indexed();
    let answer = place.run(&["search", "Sailor author", "--mode", "lexical", "--json"]);
    assert!(!answer.out.contains("A. Sailor"), "{answer:?}");
    let whole = place.json(&["get", "notes/tides.md"]);
    assert_eq!(whole["text"].as_str().unwrap(), TIDES);
    assert_eq!(whole["metadata"]["author"], "A. Sailor");
    assert_eq!(whole["title"], "Tides");
}

#[test]
fn chunks_of_a_document_are_its_text() {
    let place = Place::indexed();
    let inspected = place.json(&["inspect", "notes/bread.md", "--model", &tiny_model(), "--chunk-tokens", "16"]);
    let chunks = inspected["documents"][0]["chunks"].as_array().unwrap();
    assert!(chunks.len() > 2, "{inspected}");
    let text: String = chunks.iter().map(|chunk| chunk["text"].as_str().unwrap()).collect();
    assert_eq!(text, BREAD);
}

#[test]
fn a_citation_opens_to_the_bytes_it_names() {
    let place = Place::indexed();
    let at = TIDES.find("The moon").unwrap();
    let got = place.ok(&["get", &format!("notes/tides.md bytes {at}-{}", at + 8)]);
    assert_eq!(got.out, "The moon");
    let hit = &place.json(&["search", "gauge", "--mode", "lexical"])["hits"][0];
    assert_eq!(place.ok(&["get", hit["id"].as_str().unwrap()]).out, hit["text"].as_str().unwrap());
}

#[test]
fn an_explanation_adds_up() {
    let place = Place::indexed();
    for fusion in ["rrf", "convex", "adaptive"] {
        for hit in place.json(&["search", "the moon and the tide", "--explain", "--fusion", fusion])["hits"]
            .as_array()
            .unwrap()
        {
            let parts: f64 = hit["contributions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|part| part["contribution"].as_f64().unwrap())
                .sum();
            assert!((parts - hit["score"].as_f64().unwrap()).abs() < READ_BACK, "{hit}");
            if let Some(terms) = hit["lexical"]["terms"].as_array() {
                let terms: f64 = terms.iter().map(|term| term["contribution"].as_f64().unwrap()).sum();
                assert!((terms - hit["lexical"]["score"].as_f64().unwrap()).abs() < READ_BACK, "{hit}");
            }
        }
    }
}

#[test]
fn the_first_of_few_are_the_first_of_many() {
    let place = Place::indexed();
    for mode in ["hybrid", "dense", "lexical"] {
        for fusion in ["rrf", "convex", "adaptive"] {
            let ranked = |k: &str| {
                ids(&place.json(&["search", "water of the sea and salt", "-k", k, "--mode", mode, "--fusion", fusion]))
            };
            let (few, many) = (ranked("3"), ranked("1000"));
            assert_eq!(few, many[..few.len()], "{mode} {fusion}");
        }
    }
}

/// Notes of more sentences than a calibration needs, with an encoder that has learnt to tell texts apart.
fn sentences(model: &str) -> Place {
    let place = Place::new();
    for (name, text) in [
        (
            "tides",
            "The moon pulls the water of the sea, and the tide rises twice a day. Spring tides follow a new moon.",
        ),
        ("bread", "A loaf of bread is baked in a hot oven. The dough of wheat flour must rise for an hour before."),
        ("trains", "The night train leaves the northern station at ten. Its sleeping cars are older than the railway."),
        ("violin", "A violin has four strings over a bridge of maple. Its sound comes from a thin body of spruce."),
        ("vaccine", "A vaccine trains the immune system of the body. A second dose makes the protection last longer."),
        ("granite", "Granite cools slowly far below the surface of the earth. Its crystals can be seen with the eye."),
    ] {
        place.write(&format!("notes/{name}.md"), text);
    }
    place.ok(&["index", "notes", "--model", model]);
    place
}

#[test]
fn min_score_is_the_least_likelihood() {
    let Some(model) = default_model() else { return };
    let place = sentences(&model);
    let likelihoods = |answer: &Value| -> Vec<f64> {
        answer["hits"].as_array().unwrap().iter().map(|hit| hit["likelihood"].as_f64().unwrap()).collect()
    };
    for mode in ["hybrid", "dense"] {
        let search = |query: &str, more: &[&str]| place.json(&[&["search", query, "--mode", mode], more].concat());
        let asked = search("what makes the tide rise", &[]);
        let (known, unknown) = (likelihoods(&asked), likelihoods(&search("how is a quarterly tax return filed", &[])));
        assert!(known[0] > 0.8 && known[1..].iter().all(|other| *other < 0.5), "{mode} {known:?}");
        assert!(unknown.iter().all(|likelihood| *likelihood < 0.5), "{mode} {unknown:?}");
        // A likelihood does not depend on what else is asked for.
        let one = search("what makes the tide rise", &["-k", "1", "--min-score", "0.5"]);
        assert_eq!((likelihoods(&one), ids(&one)), (known[..1].to_vec(), ids(&asked)[..1].to_vec()));
        assert_eq!(ids(&search("what makes the tide rise", &["--min-score", "0"])), ids(&asked));
        let none = ["search", "how is a quarterly tax return filed", "--mode", mode, "--min-score", "0.5"];
        place.run(&none).fails(1, &["nothing found"]);
    }
    let shown = place.ok(&["search", "what makes the tide rise", "-k", "1"]).out;
    assert!(shown.contains("  likelihood 0."), "{shown}");
    let lexical = place.json(&["search", "tide", "--mode", "lexical"]);
    assert!(lexical["hits"][0].get("likelihood").is_none() && lexical.get("warnings").is_none(), "{lexical}");
}

#[test]
fn a_likelihood_that_there_is_not_is_an_error_with_the_way_out() {
    let place = Place::indexed(); // too few sentences
    let lexical = ["search", "moon", "--mode", "lexical", "--min-score", "0.5"];
    place.run(&lexical).fails(2, &["min-score", "by words alone", "search by vectors too"]);
    place.run(&["search", "moon", "--min-score", "0.5"]).fails(2, &["min-score", "too few sentences"]);
    let answer = place.json(&["search", "moon"]);
    assert!(answer["warnings"][0].as_str().unwrap().contains("too few sentences"), "{answer}");
    assert!(place.ok(&["search", "moon", "--explain"]).err.contains("no likelihoods: "));
    for not_one in ["-0.1", "1.5", "nan"] {
        place.run(&["search", "moon", "--min-score", not_one]).fails(2, &["min-score", "from 0 to 1"]);
    }
}

#[test]
fn budgets_hold_for_every_tokenizer_format_and_strategy() {
    let place = Place::indexed();
    let tokenizer_file = format!("{}/tokenizer.json", tiny_model());
    for tokenizer in ["model", "o200k", "cl100k", &tokenizer_file] {
        for format in ["md", "xml"] {
            for strategy in ["bubble", "flat"] {
                for budget in ["60", "120", "400"] {
                    let arguments = [
                        "context",
                        "why does the tide rise",
                        "--budget",
                        budget,
                        "--tokenizer",
                        tokenizer,
                        "--format",
                        format,
                        "--strategy",
                        strategy,
                    ];
                    let context = place.json(&arguments);
                    let (n_tokens, limit) = (context["n_tokens"].as_u64().unwrap(), budget.parse::<u64>().unwrap());
                    assert!(n_tokens <= limit, "{arguments:?}: {n_tokens}");
                    assert!(!context["citations"].as_array().unwrap().is_empty(), "{arguments:?} delivers nothing");
                }
            }
        }
    }
}

#[test]
fn every_citation_of_a_context_is_a_slice_of_its_file_and_of_the_context() {
    let place = Place::indexed();
    for budget in ["60", "150", "500"] {
        let context = place.json(&["context", "how do tides come about", "--budget", budget]);
        let text = context["context"].as_str().unwrap();
        for citation in context["citations"].as_array().unwrap() {
            let span = &citation["span"];
            let (start, end) = (span["start"].as_u64().unwrap() as usize, span["end"].as_u64().unwrap() as usize);
            let file = String::from_utf8(place.read(citation["document"].as_str().unwrap())).unwrap();
            assert!(text.contains(&file[start..end]), "budget {budget}: {citation} is not in the context:\n{text}");
        }
    }
}

#[test]
fn the_trace_has_every_candidate_once() {
    let place = Place::indexed();
    place.ok(&["context", "moon and tide", "--budget", "100", "--trace", "trace.json"]);
    let trace: Value = serde_json::from_slice(&place.read("trace.json")).unwrap();
    let candidates = ids(&place.json(&["search", "moon and tide", "-k", "1000"]));
    let mut traced: BTreeMap<String, String> = BTreeMap::new();
    for record in trace["assembly"]["records"].as_array().unwrap() {
        let reason = record["final_reason"].as_str().unwrap().to_owned();
        assert!(traced.insert(record["chunk_id"].as_str().unwrap().to_owned(), reason).is_none(), "twice: {record}");
    }
    assert_eq!(traced.len(), candidates.len());
    assert!(candidates.iter().all(|id| traced.contains_key(id)));
}

#[test]
fn runs_do_not_depend_on_threads_or_on_the_order_of_the_folders() {
    let place = Place::new();
    place.write_notes();
    place.write(
        "more/cheese.md",
        "# Cheese\n\nCheese is milk and time. Salt keeps it.\n\n## Rind\n\nA rind grows on the cheese.\n",
    );
    place.write(
        "topics.jsonl",
        "{\"_id\":\"1\",\"text\":\"salt and time\"}\n{\"_id\":\"2\",\"text\":\"what pulls the sea\"}\n",
    );
    let model = tiny_model();
    let run = |name: &str, folders: [&str; 2], threads: &str| {
        place.ok(&[
            "index",
            "--model",
            &model,
            folders[0],
            folders[1],
            "--collection",
            name,
            "--threads",
            threads,
            "--no-cache",
        ]);
        place.ok(&["run", "--topics", "topics.jsonl", "--collection", name, "--threads", threads, "-o", "out.trec"]);
        place.read("out.trec")
    };
    let first = run("a", ["notes", "more"], "1");
    assert!(!first.is_empty());
    assert_eq!(first, run("b", ["more", "notes"], "2"));
}

#[test]
fn a_run_lists_each_document_once_with_falling_scores() {
    let place = Place::indexed();
    place.write("topics.jsonl", "{\"qid\":\"7\",\"query\":\"bread and the sea\"}\n");
    let run = place.ok(&["run", "--topics", "topics.jsonl", "-k", "10", "--tag", "mine"]).out;
    let lines: Vec<Vec<&str>> = run.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines.len(), 3);
    for (n, line) in lines.iter().enumerate() {
        assert_eq!((line[0], line[1], line[3], line[5]), ("7", "Q0", (n + 1).to_string().as_str(), "mine"));
    }
    let scores: Vec<f32> = lines.iter().map(|line| line[4].parse().unwrap()).collect();
    assert!(scores.windows(2).all(|pair| pair[0] > pair[1]), "{scores:?}");
}

#[test]
fn a_graph_answers_as_the_exact_scan_does_on_a_small_collection() {
    let place = Place::new();
    place.write_notes();
    let model = tiny_model();
    place.ok(&["index", "--model", &model, "notes", "--graph-rows-min", "1"]);
    let graph = place.json(&["search", "moon", "--mode", "dense"]);
    let exact = place.json(&["search", "moon", "--mode", "dense", "--exact"]);
    // Of so few rows a scan is the shorter way, and the answer says which way it was.
    assert_eq!((&graph["scanned"], &exact["scanned"]), (&"exact".into(), &"exact".into()));
    assert_eq!(graph["hits"], exact["hits"]);
    place.run(&["search", "moon", "--ef", "10"]).fails(2, &["--ef 10", "--candidates"]);
    let narrow = place.json(&["search", "moon", "--mode", "dense", "--candidates", "10", "--ef", "12"]);
    assert_eq!(narrow["hits"], exact["hits"]);
}

#[test]
fn jsonl_csv_and_html_say_that_their_text_was_extracted() {
    let place = Place::new();
    place.write(
        "mixed/rows.jsonl",
        "{\"_id\":\"j1\",\"title\":\"Volcanoes\",\"text\":\"Lava flows from a volcano.\",\"year\":1980}\n",
    );
    place.write("mixed/table.csv", "city,river\nVienna,Danube\nParis,Seine\n");
    place.write("mixed/page.html", "<html><head><title>Glaciers</title><script>var x = 'hidden';</script></head><body><h1>Glaciers</h1><p>A glacier is a river of ice.</p></body></html>");
    place.index(&["mixed"]);
    for (query, document, words) in [
        ("volcano lava", "mixed/rows.jsonl/j1", "Lava flows"),
        ("Danube", "mixed/table.csv", "city: Vienna"),
        ("glacier ice", "mixed/page.html", "river of ice"),
    ] {
        let hit = &place.json(&["search", query, "--mode", "lexical"])["hits"][0];
        assert_eq!(
            (hit["document"].as_str().unwrap(), hit["text_kind"].as_str().unwrap()),
            (document, "extracted"),
            "{hit}"
        );
        assert!(hit["text"].as_str().unwrap().contains(words), "{hit}");
    }
    assert_eq!(place.json(&["get", "j1"])["metadata"]["year"], 1980);
    place.run(&["search", "hidden", "--mode", "lexical"]).fails(1, &["nothing found"]);
}

#[test]
fn emoji_and_cjk_are_found_or_not_but_never_break() {
    let place = Place::new();
    place.write("notes/zh.md", "# 潮汐\n\n月亮牵引海水，潮水上涨。 🌊\n");
    place.index(&["notes"]);
    assert_eq!(place.json(&["search", "月亮", "--mode", "lexical"])["hits"][0]["document"], "notes/zh.md");
    let ran = place.run(&["search", "🌊🌊", "--mode", "hybrid"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn citations_name_rows_and_lines_of_the_file() {
    let place = Place::new();
    let notes = "# Rivers\n\nThe Danube\nruns through Vienna.\n\n## Lengths\n\nThe Danube is\n2850 km long.\n";
    place.write("mixed/notes.md", notes);
    place.write("mixed/rivers.csv", "city,river\nVienna,Danube\n\"Rome\nand Ostia\",Tiber\nParis,Seine\n");
    place.write(
        "mixed/rows.jsonl",
        "{\"_id\":\"j0\",\"text\":\"Lava.\"}\n{\"_id\":\"j1\",\"text\":\"A boat on\\nthe Danube.\"}\n",
    );
    place.index(&["mixed", "--chunk-tokens", "16"]);
    let asked = ["context", "Danube", "--budget", "600", "--strategy", "flat", "--marks", "full"];
    let answer = place.json(&[&asked[..], &["--trace", "trace.json"]].concat());
    let of = |document: &str| {
        let citations = answer["citations"].as_array().unwrap();
        citations.iter().filter(|citation| citation["document"] == document).collect::<Vec<_>>()
    };
    let table = of("mixed/rivers.csv")[0];
    assert_eq!((&table["row"], &table["sheet"]), (&json!({"first": 1, "last": 3}), &json!("rivers")), "{table}");
    assert_eq!(
        of("mixed/rows.jsonl/j1")[0]["line"],
        json!({"first": 2, "last": 2}),
        "one line of the file, whatever it holds"
    );
    let in_notes = of("mixed/notes.md");
    assert!(!in_notes.is_empty(), "{answer}");
    for citation in in_notes {
        let number = |range: &str, end: &str| citation[range][end].as_u64().unwrap() as usize;
        let lines: Vec<&str> = notes.lines().collect();
        let cited = &notes[number("span", "start")..number("span", "end")];
        assert_eq!(lines[number("line", "first") - 1..number("line", "last")].join("\n"), cited.trim());
        assert_eq!((citation.get("row"), citation.get("page"), citation.get("sheet")), (None, None, None));
    }
    let markdown = place.ok(&asked).out;
    assert!(markdown.contains("mixed/rivers.csv > rivers (rows 1-3, extracted bytes 0-"), "{markdown}");
    let xml = place.ok(&[&asked[..], &["--format", "xml"]].concat()).out;
    assert!(xml.contains(" sheet=\"rivers\" row=\"1-3\" extracted-bytes=\"0-"), "{xml}");
    assert!(xml.contains("document=\"mixed/rows.jsonl/j1\" line=\"2\""), "{xml}");
    let schema: Value = serde_json::from_str(&place.ok(&["replay", "--schema"]).out).unwrap();
    hold(&schema, &trace(&place, "trace.json"), &schema, "trace").unwrap();
    assert_eq!(place.json(&["replay", "trace.json"])["differences"], json!([]));
    let lines = "{\"_id\":\"1\",\"text\":\"Danube\"}\n";
    place.write("topics.jsonl", lines);
    place.ok(&[
        "run",
        "--topics",
        "topics.jsonl",
        "--contexts",
        "contexts.jsonl",
        "--budget",
        "600",
        "--strategy",
        "flat",
    ]);
    let contexts = String::from_utf8(place.read("contexts.jsonl")).unwrap();
    assert!(contexts.contains("\"anchor\":\"sheet rivers, rows 1-3\""), "{contexts}");
}

#[test]
fn citations_name_their_characters_too() {
    let place = Place::new();
    let text = "# Gezeiten\n\nÄußerst höflich grüßt die Flut — 潮の満ち引き 🌊.\n\n## Ursachen\n\nDer Mond zieht das Meer, zweimal täglich.\n";
    place.write("notes/flut.md", text);
    place.index(&["notes", "--chunk-tokens", "16"]);
    let answer = place.json(&["context", "Wer zieht das Meer?", "--budget", "200"]);
    let citations = answer["citations"].as_array().unwrap();
    assert!(!citations.is_empty());
    let number = |range: &Value, end: &str| range[end].as_u64().unwrap() as usize;
    for citation in citations {
        let (bytes, characters) = (&citation["span"], &citation["characters"]);
        let by_bytes = &text[number(bytes, "start")..number(bytes, "end")];
        let (start, end) = (number(characters, "start"), number(characters, "end"));
        assert_eq!(text.chars().skip(start).take(end - start).collect::<String>(), by_bytes);
    }
    let last = citations.last().unwrap();
    assert!(number(&last["characters"], "end") < number(&last["span"], "end"), "{last}");
}
