//! What the page must hold, whatever the figures.

use super::super::picture::{Accepted, Count, Document, Outlined, Picture, Rejected, Section};
use super::super::report::{Cell, Chart, Kind, Point, Row, Scale, Series, Table};
use super::*;
use cento_eval::Machine;

const HOSTILE: &str = "</style><script>alert(\"1\")</script>&'";

fn cell(actual: f64) -> Cell {
    Cell { actual: Some(actual), expected: Some(0.5), tolerance: Some(0.01) }
}

fn reproduction(name: &str, cells: &[Cell]) -> Reproduction {
    let rows = vec![Row { name: "row".to_owned(), cells: cells.to_vec() }];
    let columns = cells.iter().map(|_| "column".to_owned()).collect();
    Reproduction {
        name: name.to_owned(),
        title: format!("Title of {name}"),
        tables: vec![Table { columns, rows, ..Table::default() }],
        ..Reproduction::default()
    }
}

fn report(reproductions: Vec<Reproduction>) -> Report {
    let [cpu, os, instructions] = ["cpu", "os", "AVX2"].map(str::to_owned);
    let machine = Machine { cpu, n_cores: 1, memory_bytes: 1 << 33, os, instructions };
    Report { version: 1, cento: "1.2.3".to_owned(), machine, cache: Cache::Cold, seconds: 1.5, reproductions }
}

fn stopped() -> Reproduction {
    Reproduction { failure: Some("no such set".to_owned()), ..reproduction("stopped", &[]) }
}

#[test]
fn the_headline_says_the_verdict_in_words() {
    let of = |cells: &[f64]| headline(&report(cells.iter().map(|value| reproduction("r", &[cell(*value)])).collect()));
    assert_eq!(of(&[]), "Nothing was compared");
    assert_eq!(of(&[0.5]), "The reproduction agrees");
    assert_eq!(of(&[0.5, 0.5]), "All 2 reproductions agree");
    assert_eq!(of(&[0.5, 0.53]), "1 of 2 reproductions near, none fails");
    assert_eq!(of(&[0.5, 0.53, 0.9]), "1 of 3 reproductions fails");
    assert_eq!(of(&[0.9, 0.9, 0.5]), "2 of 3 reproductions fail");
    assert_eq!(headline(&report(vec![stopped()])), "1 of 1 reproduction fails");
}

#[test]
fn figures_are_counted_and_the_overview_links_to_each_reproduction() {
    let both = vec![reproduction("one", &[cell(0.5), cell(0.53), cell(0.9)]), stopped()];
    let html = html(&report(both));
    assert!(html.contains("3 figures compared: 1 OK, 1 near, 1 FAIL."), "{html}");
    assert!(html.contains("1 reproduction did not run to the end."));
    for name in ["one", "stopped"] {
        assert!(html.contains(&format!("<a href=\"#{name}\">Title of {name}</a>")));
        assert!(html.contains(&format!("<article id=\"{name}\"")));
    }
    assert!(html.contains("<p class=\"message\">no such set</p>"));
}

#[test]
fn anchors_are_fragments_and_each_is_its_own() {
    let named = ["HNSW recall", "hnsw-recall", "hnsw-recall", "", "\"><b>"].map(|name| reproduction(name, &[]));
    assert_eq!(anchors(&named), ["hnsw-recall", "hnsw-recall-2", "hnsw-recall-3", "reproduction", "---b-"]);
}

#[test]
fn the_same_report_gives_the_same_page_also_by_way_of_json() {
    let before = report(vec![reproduction("one", &[cell(0.5), cell(0.9)]), stopped()]);
    let after: Report = serde_json::from_str(&serde_json::to_string(&before).unwrap()).unwrap();
    assert_eq!(html(&before), html(&before));
    assert_eq!(html(&after), html(&before));
}

/// One that has this text everywhere.
fn picture(text: &str) -> Picture {
    let text = || text.to_owned();
    Picture {
        title: text(),
        query: text(),
        strategy: text(),
        tokenizer: text(),
        n_delivered: 1,
        sections: vec![Section { name: text(), tokens: 1, limit_tokens: Some(2) }],
        documents: vec![Document {
            id: text(),
            n_bytes: 20,
            accepted: vec![Accepted { n: 1, span: 0..10, n_chunks: 1, is_cut: true }],
            rejected: vec![Outlined { chunk: text(), reason: text(), span: 10..20, is_weighed: true }],
        }],
        rejected: vec![Rejected { chunk: text(), reason: text(), because: text(), ..Rejected::default() }],
        reasons: vec![Count { reason: text(), n: 2 }],
        ..Picture::default()
    }
}

#[test]
fn no_text_of_a_report_is_obeyed_as_markup() {
    let text = || HOSTILE.to_owned();
    let mut hostile = report(vec![Reproduction {
        name: text(),
        title: text(),
        source: text(),
        text: format!("{HOSTILE}\n\n`{HOSTILE}`"),
        seconds: 1.0,
        tables: vec![Table {
            title: text(),
            measure: text(),
            row_title: text(),
            columns: vec![text()],
            rows: vec![Row { name: text(), cells: vec![cell(0.5)] }],
        }],
        charts: vec![Chart {
            title: text(),
            kind: Kind::Bars,
            x_title: text(),
            y_title: text(),
            x_scale: Scale::Linear,
            series: vec![Series { name: text(), points: vec![Point { x: text(), y: 1.0 }] }],
        }],
        pictures: vec![picture(HOSTILE)],
        steps: vec![Step { command: text(), seconds: 1.0 }],
        failure: Some(text()),
    }]);
    hostile.cento = text();
    hostile.machine = Machine { cpu: text(), n_cores: 1, memory_bytes: 1, os: text(), instructions: text() };
    let html = html(&hostile);
    assert_eq!(html.matches("<script>").count(), 1, "the page has one script, its own");
    assert_eq!(html.matches("</style>").count(), 1);
    assert!(!html.contains("alert(\""));
}

#[test]
fn the_page_fetches_nothing() {
    let mut one = reproduction("one", &[cell(0.5)]);
    one.source = "https://example.org/paper".to_owned();
    let html = html(&report(vec![one]));
    assert!(html.contains("<a href=\"https://example.org/paper\">"));
    for fetching in [" src=", "@import", "url(", "<link rel=\"stylesheet\"", "fetch("] {
        assert!(!html.contains(fetching), "{fetching}");
    }
}

#[test]
fn every_element_that_is_opened_is_closed() {
    let html = html(&report(vec![reproduction("one", &[cell(0.5), cell(0.9)]), stopped()]));
    for tag in [
        "main", "header", "nav", "table", "tbody", "tr", "td", "article", "aside", "dl", "dd", "figure", "svg", "p",
        "span", "div",
    ] {
        let opened = html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}
