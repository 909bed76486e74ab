//! Filters on where chunks stand: pages, sheets, rows and lines, at every door, and contexts that deliver nothing else.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::mcp::Pipes;
use crate::scale::{addresses, coordinator};
use crate::serving::Serving;
use crate::support::{Place, data, tiny_model};

const SEA: &str = "files/sea.pdf";
const QUERY: &str = "how high is the tide";

/// A PDF of pages of lines, in a font that every reader has.
fn pdf(pages: &[Vec<String>]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Count {} /Kids [{}] >>",
            pages.len(),
            (0..pages.len()).map(|page| format!("{} 0 R ", 4 + 2 * page)).collect::<String>()
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    for (at, lines) in pages.iter().enumerate() {
        let shown: String = lines.iter().map(|line| format!("({line}) Tj 0 -16 Td ")).collect();
        let content = format!("BT /F1 11 Tf 40 760 Td {shown}ET");
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
            5 + 2 * at
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(&objects) {
        places.push(file.len());
        write!(file, "{number} 0 obj\n{object}\nendobj\n").unwrap();
    }
    let table = file.len();
    write!(file, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    places.iter().for_each(|place| writeln!(file, "{place:010} 00000 n ").unwrap());
    write!(file, "trailer << /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1).unwrap();
    file.into_bytes()
}

/// Pages of a year of tides, each of several chunks.
fn pages(n_pages: usize, whose: &str) -> Vec<u8> {
    let line = |page: usize, line: usize| {
        let height = page * 3 + line;
        format!(
            "At {whose} on day {} of month {page} the tide is {height} feet high and the moon pulls the sea.",
            line + 1
        )
    };
    pdf(&(1..=n_pages).map(|page| (0..9).map(|n| line(page, n)).collect()).collect::<Vec<_>>())
}

const INDEX: [&str; 3] = ["files", "--chunk-tokens", "32"];

fn place() -> Place {
    let place = Place::new();
    place.write("files/sea.pdf", pages(6, "Brighton"));
    let note = |n: usize| format!("The tide of paragraph {n} is high, and so is the next.\n\n");
    place.write("files/notes.md", format!("---\npage: about\n---\n{}", (0..12).map(note).collect::<String>()));
    place.write("files/cards.jsonl", "{\"_id\":\"j1\",\"text\":\"The tide of the card.\",\"page\":2}\n");
    let row = |n: usize| format!("{n},{}.5,spring tide\n", n % 7);
    place.write("files/rows.csv", format!("day,height,kind\n{}", (1..=24).map(row).collect::<String>()));
    place.index(&INDEX);
    place
}

/// A hit with what stands in the file where it begins.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    id: String,
    document: String,
    score: String,
    anchor: String,
    path: Vec<String>,
    text: String,
}

impl Found {
    fn page(&self) -> Option<u32> {
        self.anchor.strip_prefix("page ").and_then(|page| page.parse().ok())
    }
}

fn found(answer: &Value) -> Vec<Found> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let hit = |hit: &Value| Found {
        id: text(&hit["id"]),
        document: text(&hit["document"]),
        score: hit["score"].to_string(),
        anchor: text(&hit["anchor"]),
        path: hit["path"].as_array().unwrap().iter().map(text).collect(),
        text: text(&hit["text"]),
    };
    answer["hits"].as_array().unwrap().iter().map(hit).collect()
}

/// Every chunk that a filter admits, by its cosine.
#[track_caller]
fn admitted(place: &Place, filter: &str) -> Vec<Found> {
    let every = ["search", QUERY, "--mode", "dense", "--exact", "-k", "5000", "--candidates", "5000", "--json"];
    let narrowed = ["--filter", filter];
    let ran = place.run(&[&every[..], &narrowed[..if filter.is_empty() { 0 } else { 2 }]].concat());
    assert!([0, 1].contains(&ran.code), "{filter}: {ran:?}");
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    let found = found(&answer);
    if !filter.is_empty() {
        let documents: BTreeSet<&String> = found.iter().map(|found| &found.document).collect();
        assert_eq!(answer["filter"]["n_admitted"], documents.len(), "{filter}");
        assert_eq!(answer["filter"]["n_chunks"], found.len(), "{filter}");
    }
    found
}

#[test]
fn chunks_are_admitted_by_their_page_with_the_scores_they_have_without_a_filter() {
    let place = place();
    let all = admitted(&place, "");
    let n_pages: BTreeSet<u32> = all.iter().filter_map(Found::page).collect();
    assert_eq!(n_pages.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    let in_pdf = |found: &Found| found.document == SEA;
    let check = |filter: &str, holds: &dyn Fn(&Found) -> bool| {
        let expected: Vec<&Found> = all.iter().filter(|found| holds(found)).collect();
        assert_eq!(admitted(&place, filter).iter().collect::<Vec<_>>(), expected, "{filter}");
    };
    let page = |found: &Found| found.page().unwrap_or(0);
    check("chunk.page <= 2", &|found| in_pdf(found) && page(found) <= 2);
    check("page = 3", &|found| page(found) == 3);
    check("page in (1, 6.0) and path starts with \"sea\"", &|found| in_pdf(found) && [1, 6].contains(&page(found)));
    check("not (page <= 5 and type = \"pdf\")", &|found| !in_pdf(found) || page(found) == 6);
    check("not (page > 2) or type = \"csv\"", &|found| page(found) <= 2);
    check("chunk.page is missing", &|found| !in_pdf(found));
    check("chunk.page != 4", &|found| in_pdf(found) && page(found) != 4);
    check("slide exists", &|_| false);
    for mode in ["lexical", "hybrid"] {
        let answer = place.json(&["search", "tide moon", "--mode", mode, "-k", "100", "--filter", "page >= 5"]);
        let found = found(&answer);
        assert!(found.len() > 2 && found.iter().all(|found| page(found) >= 5), "{mode}: {found:?}");
    }
    let said = place.ok(&["search", QUERY, "-k", "1", "--filter", "page = 3"]).err;
    assert!(said.contains("chunks in 1 of 4 documents"), "{said}");
}

#[test]
fn rows_sheets_and_lines_are_found_by_the_chunk_that_holds_them() {
    let place = place();
    let all = admitted(&place, "");
    for row in 1..=24 {
        let admitted = admitted(&place, &format!("row = {row}"));
        assert!(admitted.len() == 1 && admitted[0].text.contains(&format!("day: {row} |")), "{row}: {admitted:?}");
    }
    assert!(admitted(&place, "row > 24").is_empty());
    let rows = admitted(&place, "sheet starts with \"rows\"");
    assert_eq!(rows.len(), all.iter().filter(|found| found.document == "files/rows.csv").count());
    assert_eq!(
        admitted(&place, "row >= 5 and row <= 6 and sheet exists").len(),
        admitted(&place, "row in (5, 6)").len()
    );

    let text = String::from_utf8(place.read("files/notes.md")).unwrap();
    let lines = (1..).zip(text.lines()).filter(|(_, line)| line.contains("paragraph"));
    for (number, line) in lines {
        let admitted = admitted(&place, &format!("line = {number} and path = \"notes.md\""));
        let words = line.trim_end_matches(", and so is the next.");
        assert!(admitted.iter().any(|found| found.text.contains(words)), "{number}: {admitted:?}");
        assert!(admitted.len() <= 2, "{number}: {admitted:?}");
    }
}

#[test]
fn what_documents_have_under_the_name_of_an_anchor_is_not_hidden_by_it() {
    let place = place();
    let documents = |filter: &str| {
        let documents: BTreeSet<String> = admitted(&place, filter).into_iter().map(|found| found.document).collect();
        documents.into_iter().collect::<Vec<_>>()
    };
    let card = "files/cards.jsonl/j1";
    assert_eq!(documents("page = 2"), [card, SEA]);
    assert_eq!(documents("chunk.page = 2"), [SEA]);
    assert_eq!(documents("page = \"about\""), ["files/notes.md"]);
    assert_eq!(documents("page exists"), [card, "files/notes.md", SEA]);

    let fields = place.json(&["fields"])["fields"].clone();
    let of = |name: &str| -> Vec<Value> {
        fields.as_array().unwrap().iter().filter(|field| field["name"] == name).cloned().collect()
    };
    assert_eq!(
        of("page"),
        [
            json!({"name": "page", "of": "document", "types": ["integer", "string"], "n_documents": 2}),
            json!({"name": "page", "of": "chunk", "types": ["integer"], "n_documents": 1}),
        ]
    );
    assert_eq!(of("sheet"), [json!({"name": "sheet", "of": "chunk", "types": ["string"], "n_documents": 1})]);
    assert_eq!((of("row").len(), of("line").len(), of("slide").len()), (1, 1, 0));

    for command in [&["list"][..], &["delete"], &["delete", "--dry-run"]] {
        let ran = place.run(&[command, &["--filter", "type = \"pdf\" or page = 2"]].concat());
        ran.fails(2, &["documents are listed and deleted whole", "write `meta.page`", "^^^^"]);
    }
    assert_eq!(place.ok(&["list", "--filter", "meta.page = 2"]).out, format!("{card}\n"));
    assert_eq!(place.json(&["delete", "--filter", "meta.page = 2"])["deleted"], json!([card]));
    place.run(&["search", QUERY, "--filter", "pages <= 2"]).fails(2, &["no field `pages`", "nearest: `page`"]);
    place.run(&["search", QUERY, "--filter", "sheet = 2"]).fails(2, &["`sheet` holds strings"]);
}

const STRATEGIES: [&str; 12] = [
    "cento",
    "flat",
    "mmr",
    "adaptive",
    "bubble",
    "rse",
    "rse-kadane",
    "rse-exact",
    "window",
    "parent",
    "automerge",
    "seal",
];

/// The pages of what a context delivers.
#[track_caller]
fn pages_of(context: &Value) -> BTreeSet<u64> {
    let mut pages = BTreeSet::new();
    for citation in context["citations"].as_array().unwrap() {
        let page = &citation["page"];
        pages.extend(page["first"].as_u64().unwrap()..=page["last"].as_u64().unwrap());
    }
    pages
}

#[test]
fn a_context_delivers_no_chunk_outside_whatever_the_strategy() {
    let place = place();
    let allowed: BTreeSet<String> =
        admitted(&place, "chunk.page in (2, 4)").into_iter().map(|found| found.id).collect();
    let (mut n_cut, mut n_delivered) = (0, 0);
    for strategy in STRATEGIES {
        for more in [&[][..], &["--mode", "lexical"]] {
            let asked = ["context", QUERY, "--budget", "1200", "--filter", "chunk.page in (2, 4)"];
            let context = place.json(&[&asked[..], &["--strategy", strategy, "--trace", "trace.json"], more].concat());
            let delivered: Vec<&str> = context["citations"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|citation| citation["chunks"].as_array().unwrap())
                .map(|chunk| chunk.as_str().unwrap())
                .collect();
            n_delivered += delivered.len();
            let outside: Vec<_> = delivered.iter().filter(|id| !allowed.contains(**id)).collect();
            assert!(outside.is_empty(), "{strategy}: {outside:?}");
            assert!(pages_of(&context).iter().all(|page| [2, 4].contains(page)), "{strategy}: {context}");
            let text = context["context"].as_str().unwrap();
            assert!(
                ["month 1 ", "month 3 ", "month 5 "].iter().all(|words| !text.contains(words)),
                "{strategy}: {text}"
            );
            n_cut += usize::from(context["warnings"].to_string().contains("the filter holds chunk by chunk"));
            let replayed = place.json(&["replay", "trace.json"]);
            assert_eq!(replayed["same"], true, "{strategy}: {replayed}");
        }
    }
    assert!(n_delivered > 50 && n_cut > 2, "{n_delivered} delivered, {n_cut} cut");

    // What a request names itself is delivered, and nothing beside it.
    let outside = &admitted(&place, "chunk.page = 6")[0].id;
    let asked = ["context", QUERY, "--budget", "900", "--filter", "chunk.page in (2, 4)", "--include", outside];
    assert_eq!(
        pages_of(&place.json(&asked)).into_iter().filter(|page| ![2, 4].contains(page)).collect::<Vec<_>>(),
        [6]
    );
}

#[test]
fn why_not_names_the_filter_and_what_undoes_it() {
    let place = place();
    let outside = &admitted(&place, "page = 1 and type = \"pdf\"")[0].id;
    let asked = ["why-not", QUERY, outside, "--budget", "4000", "--filter", "page = 4", "--json"];
    let answer: Value = serde_json::from_str(&place.run(&asked).out).unwrap();
    let lost = &answer["lost"];
    assert_eq!(lost["stage"], "filter", "{answer}");
    assert!(lost["because"].as_str().unwrap().contains(outside.as_str()), "{lost}");
    assert_eq!(lost["changes"][0]["settings"][0]["setting"], "filter", "{lost}");
    let inside = &admitted(&place, "page = 4")[0].id;
    let asked = ["why-not", QUERY, inside, "--budget", "4000", "--filter", "page = 4", "--json"];
    let answer: Value = serde_json::from_str(&place.run(&asked).out).unwrap();
    assert_ne!(answer["lost"]["stage"], "filter", "{answer}");
}

#[test]
fn servers_and_tools_take_the_same_filter_and_shards_answer_as_the_whole() {
    let place = Place::new();
    for (at, whose) in ["Brighton", "Dover", "Hull", "Leith", "Ryde"].iter().enumerate() {
        place.write(&format!("notes/{whose}.pdf"), pages(3 + at % 2, whose));
    }
    let model = tiny_model();
    // With two kinds of vectors the chunks of a document are scored again: those outside are not.
    let index = ["index", "notes", "--model", &model, "--chunk-tokens", "32", "--pooling", "both"];
    place.ok(&index);
    let part = |n: usize| {
        let (part, folder) = (format!("{n}/3"), format!("part{n}"));
        place.ok(&[&index[..], &["--part", &part, "--collection", &folder]].concat());
        Serving::start(&place, &["--collection", &folder])
    };
    let parts: Vec<Serving> = (1..=3).map(part).collect();
    let (whole, shards) = (Serving::start(&place, &[]), coordinator(&place, &addresses(&parts), &[]));
    let filters = ["page = 2", "not (page <= 2 and path = \"Hull.pdf\")", "page >= 3 and path != \"Leith.pdf\""];
    for filter in filters {
        for mode in ["hybrid", "dense", "lexical"] {
            let body = json!({"query": QUERY, "mode": mode, "k": 50, "filter": filter, "scan": "exact"});
            let [mut one, mut other] = [&whole, &shards].map(|server| server.told("/v1/search", &body));
            (one["generation"], other["generation"]) = (Value::Null, Value::Null);
            assert_eq!(one, other, "{body}");
            let command = place.json(&["search", QUERY, "--mode", mode, "--exact", "-k", "50", "--filter", filter]);
            assert_eq!((found(&command), &command["filter"]), (found(&one), &one["filter"]), "{body}");
            let allowed: BTreeSet<String> = admitted(&place, filter).into_iter().map(|found| found.id).collect();
            assert!(found(&one).iter().all(|found| allowed.contains(&found.id)), "{body}");
        }
        for strategy in ["cento", "window", "parent", "seal"] {
            let body = json!({"query": QUERY, "strategy": strategy, "budget": 900, "filter": filter});
            let [mut one, mut other] = [&whole, &shards].map(|server| server.told("/v1/context", &body));
            (one["generation"], other["generation"]) = (Value::Null, Value::Null);
            assert_eq!((&one["context"], &one["citations"]), (&other["context"], &other["citations"]), "{body}");
            assert_eq!(one["warnings"], other["warnings"], "{body}");
        }
    }
    let context = whole.told("/v1/context", &json!({"query": QUERY, "budget": 900, "filter": "page = 2"}));
    assert_eq!(pages_of(&context).into_iter().collect::<Vec<_>>(), [2]);
    for server in [&whole, &shards] {
        let refused = server.get("/v1/collections/cento/documents?filter=page%20%3D%202");
        assert!(refused.status == 400 && refused.text().contains("listed and deleted whole"), "{}", refused.text());
    }
    let fields = |server: &Serving| server.get("/v1/collections/cento/fields").json()["fields"].clone();
    assert_eq!(fields(&whole), fields(&shards));
    assert!(fields(&whole).to_string().contains(r#""of":"chunk""#), "{}", fields(&whole));

    let mut pipes = Pipes::start(&place, &[]);
    pipes.greet("2025-06-18");
    let told = pipes.told("search", &json!({"query": QUERY, "k": 20, "filter": "page = 2"}));
    let results = serde_json::from_str::<Value>(&told).unwrap()["results"].clone();
    let allowed: BTreeSet<String> = admitted(&place, "page = 2").into_iter().map(|found| found.id).collect();
    let ids: Vec<&str> = results.as_array().unwrap().iter().map(|result| result["id"].as_str().unwrap()).collect();
    assert!(!ids.is_empty() && ids.iter().all(|id| allowed.contains(*id)), "{ids:?}");
    let context = pipes.told("context", &json!({"question": QUERY, "budget_tokens": 600, "filter": "page = 2"}));
    assert!(
        context.contains("month 2 ") && !context.contains("month 1 ") && !context.contains("month 3 "),
        "{context}"
    );
}

#[test]
fn pages_of_a_real_report_and_sheets_of_a_real_workbook() {
    let (Some(reports), Some(workbooks)) = (data("financebench_dev"), data("xlsx_techdata")) else { return };
    let place = Place::new();
    let copy =
        |from: std::path::PathBuf, name: &str| place.write(&format!("files/{name}"), std::fs::read(from).unwrap());
    copy(reports.join("pdfs/ULTABEAUTY_2023Q4_EARNINGS.pdf"), "report.pdf");
    copy(workbooks.join("prc_hicp_aind__custom_20097956_spreadsheet.xlsx"), "prices.xlsx");
    place.index(&["files"]);
    let all = admitted(&place, "");
    let pages: BTreeSet<u32> = all.iter().filter_map(Found::page).collect();
    assert!(pages.len() > 3, "{pages:?}");
    for page in &pages {
        let admitted = admitted(&place, &format!("page = {page}"));
        let expected: Vec<&Found> = all.iter().filter(|found| found.page() == Some(*page)).collect();
        assert_eq!(admitted.iter().collect::<Vec<_>>(), expected, "page {page}");
        let filter = format!("page = {page}");
        let asked = ["context", "net sales of the quarter", "--budget", "1600", "--strategy", "window"];
        let context: Value =
            serde_json::from_str(&place.run(&[&asked[..], &["--filter", &filter, "--json"]].concat()).out).unwrap();
        assert!(pages_of(&context).iter().all(|delivered| delivered == &u64::from(*page)), "page {page}: {context}");
    }
    let in_book = |found: &&Found| found.document == "files/prices.xlsx";
    let sheets: BTreeSet<&String> = all.iter().filter(in_book).map(|found| &found.path[0]).collect();
    assert!(sheets.len() > 1, "{sheets:?}");
    let mut n_found = 0;
    for sheet in &sheets {
        let admitted = admitted(&place, &format!("sheet = \"{sheet}\""));
        let expected: Vec<&Found> = all.iter().filter(in_book).filter(|found| found.path[0] == **sheet).collect();
        assert_eq!(admitted.iter().collect::<Vec<_>>(), expected, "{sheet}");
        n_found += admitted.len();
    }
    assert_eq!(n_found, all.iter().filter(in_book).count());
}
