//! The page of `cento serve` as a board: files of an evaluation read in the browser, and judgements that it writes.

use serde_json::{Value, json};

use crate::page::Shown;
use crate::support::Place;

/// Ids that want care: blanks, what reads as a code, more digits than a number has.
const BLANK: &str = "notes/my tides 100%20.md";
const LONG_ID: &str = "12345678901234567890";

/// A collection with an id that has blanks, and files of an evaluation over it.
fn place() -> Place {
    let place = Place::new();
    place.write_notes();
    place.write(BLANK, "# Tides of mine\n\nThe moon moves the sea, and the tide follows.\n");
    place.index(&["notes"]);
    let queries = format!(
        "{{\"_id\": {LONG_ID}, \"text\": \"what moves the sea\"}}\n{{\"_id\": \"2\", \"text\": \"bread\"}}\n\
         {{\"_id\": \"3\", \"text\": \"where are stars born\"}}\n"
    );
    place.write("queries.jsonl", queries);
    let header = "query-id\tcorpus-id\tscore\n";
    let rows = format!(
        "{LONG_ID}\t{BLANK}\t2\n{LONG_ID}\tnotes/tides.md\t1\n2\tnotes/bread.md\t1\n3\tnotes/sub/stars.txt\t3\n"
    );
    place.write("qrels.tsv", format!("{header}{rows}"));
    for mode in ["dense", "lexical"] {
        let run = format!("{mode}.run");
        place.ok(&["run", "--topics", "queries.jsonl", "-k", "100", "--mode", mode, "--output", &run, "--quiet"]);
    }
    let contexts = ["--contexts", "contexts.jsonl", "--budget", "60,120", "--strategy", "cento,flat"];
    place.ok(&[&["run", "--topics", "queries.jsonl", "--output", "other.run", "--quiet"][..], &contexts].concat());
    place
}

impl Shown {
    /// Opens the board with files of the place.
    fn board(&self, state: &str, files: &[&str]) {
        self.open(&format!("judge{state}"));
        self.browser.until("document.querySelector('input[type=file]')");
        let paths: Vec<_> = files.iter().map(|file| self.place.path(file)).collect();
        self.browser.choose(&paths.iter().map(AsRef::as_ref).collect::<Vec<_>>());
        self.browser.until(&format!("document.querySelectorAll('.opened-files li').length >= {}", files.len()));
    }

    /// The figure of a system on the board.
    fn figure(&self, system: &str) -> f64 {
        let rows = "[...document.querySelectorAll('[data-test=systems] tbody tr')]";
        let found = self.browser.value(&format!(
            "{rows}.find((row) => row.querySelector('th').textContent === {}).querySelector('[data-figure]').dataset.figure",
            json!(system)
        ));
        found.as_str().unwrap().parse().unwrap()
    }
}

/// A figure as `cento eval` has it.
fn evaluated(place: &Place, qrels: &str, run: &str, measure: &str) -> f64 {
    let told = place.json(&["eval", qrels, run, "-m", measure]);
    let text = told.to_string();
    let figure = text.split(&format!("\"{measure}\":")).nth(1).unwrap_or_else(|| panic!("{text}"));
    figure.split([',', '}']).next().unwrap().parse().unwrap()
}

#[test]
fn runs_of_files_have_the_figures_of_eval_and_the_worst_question_is_first() {
    let Some(shown) = Shown::new(place(), &[]) else { return };
    shown.board("", &["queries.jsonl", "qrels.tsv", "dense.run", "lexical.run"]);
    for measure in ["nDCG@10", "RR@10", "R@10"] {
        shown.browser.run(&format!("location.hash = '#/judge?m={measure}&a=dense.run&b=lexical.run'"));
        let head = "document.querySelectorAll('[data-test=systems] th')[1].textContent";
        shown.browser.until(&format!("{head} === '{measure}'"));
        for run in ["dense.run", "lexical.run"] {
            let (board, eval) = (shown.figure(run), evaluated(&shown.place, "qrels.tsv", run, measure));
            assert!((board - eval).abs() < 1e-9, "{measure} of {run}: {board} is not {eval}");
        }
    }
    shown.browser.run("location.hash = '#/judge?a=dense.run&b=lexical.run'");
    shown.browser.until("document.querySelector('[data-test=wins]')");
    let moves = shown.browser.value(
        "[...document.querySelectorAll('.judged')].map((row) => Number(row.querySelector('.small span').textContent))",
    );
    let moves: Vec<f64> = moves.as_array().unwrap().iter().map(|by| by.as_f64().unwrap()).collect();
    assert!(moves.len() == 3 && moves.is_sorted(), "what B loses most is first: {moves:?}");
    let told = shown.browser.text("[data-test=wins]");
    let count = |test: fn(&f64) -> bool| moves.iter().filter(|by| test(by)).count();
    let (wins, losses) = (count(|by| *by > 0.0), count(|by| *by < 0.0));
    assert!(told.starts_with(&format!("B wins {wins}, loses {losses}, ties {}", 3 - wins - losses)), "{told}");
    shown.browser.click(".judged a");
    shown
        .browser
        .until("location.hash.startsWith('#/compare?q=') && document.querySelectorAll('.ranked').length === 2");
    shown.browser.back();
    shown.browser.until("document.querySelectorAll('.opened-files li').length === 4");
    shown.expect_quiet();
}

#[test]
fn contexts_of_files_make_a_curve_and_lead_to_their_settings() {
    let Some(shown) = Shown::new(place(), &[]) else { return };
    shown.board("", &["qrels.tsv", "contexts.jsonl"]);
    shown.browser.until("document.querySelectorAll('[data-test=curve] tbody tr').length === 4");
    let contexts = String::from_utf8(shown.place.read("contexts.jsonl")).unwrap();
    let contexts: Vec<Value> = contexts.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows = shown.browser.value(
        "[...document.querySelectorAll('[data-test=curve] tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))",
    );
    for row in rows.as_array().unwrap() {
        let strategy = row[0].as_str().unwrap().trim_start_matches("contexts.jsonl: ");
        let of = contexts.iter().filter(|context| {
            context["strategy"] == strategy && context["budget_tokens"].to_string() == row[1].as_str().unwrap()
        });
        let tokens: Vec<f64> = of.map(|context| context["n_tokens"].as_f64().unwrap()).collect();
        let mean = tokens.iter().sum::<f64>() / 3.0;
        assert_eq!(row[2].as_str().unwrap(), format!("{mean:.0}"), "{row}");
        let recall: f64 = row[3].as_str().unwrap().parse().unwrap();
        let per: f64 = row[4].as_str().unwrap().parse().unwrap();
        assert!((per - 1000.0 * recall / mean).abs() < 0.1, "{row}");
    }
    shown
        .browser
        .run("location.hash = '#/judge?a=contexts.jsonl%3A+flat%2C+60+tokens&b=contexts.jsonl%3A+cento%2C+120+tokens'");
    shown.browser.until("document.querySelector('[name=b]')?.value.includes('cento, 120')");
    shown.browser.click(".judged a");
    shown.browser.until("document.querySelector('[data-test=spent-1]')?.textContent.includes('of 120 tokens')");
    let spent = shown.browser.text("[data-test=spent-0]");
    assert!(spent.contains("of 60 tokens spent, flat"), "{spent}");
    shown.expect_quiet();
}

#[test]
fn contexts_of_budgets_that_differ_by_question_are_one_system() {
    let place = place();
    let contexts = ["--contexts", "left.jsonl", "--budget", "auto:90,60"];
    place.ok(&[&["run", "--topics", "queries.jsonl", "--output", "left.run", "--quiet"][..], &contexts].concat());
    let Some(shown) = Shown::new(place, &[]) else { return };
    shown.board("", &["qrels.tsv", "left.jsonl"]);
    shown.browser.until("document.querySelectorAll('[data-test=curve] tbody tr').length === 2");
    let rows = shown.browser.value(
        "[...document.querySelectorAll('[data-test=curve] tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent).slice(0, 2).join('|')).sort()",
    );
    assert_eq!(rows, json!(["left.jsonl: cento|60", "left.jsonl: cento|auto:90"]));
    shown.expect_quiet();
}

#[test]
fn judgements_by_hand_are_qrels_that_eval_reads_with_the_same_figures() {
    let Some(shown) = Shown::new(place(), &[]) else { return };
    let browser = &shown.browser;
    shown.board("?q=what+moves+the+sea", &["queries.jsonl"]);
    browser.until("document.querySelectorAll('.graded li').length > 2");
    browser.keep_saved();
    let grade = |document: &str, grade: u32| {
        let name = json!(format!("grade {document}"));
        browser.run(&format!(
            "[...document.querySelectorAll('.graded input')].filter((one) => one.name === {name})[{grade}].click()"
        ));
        browser.until(&format!(
            "[...document.querySelectorAll('.graded :checked')].some((one) => one.name === {name} && one.value === '{grade}')"
        ));
    };
    grade(BLANK, 3);
    grade("notes/tides.md", 1);
    grade("notes/bread.md", 0);
    browser.run("location.hash = '#/judge?q=2020'"); // an id of its own beside those of the file
    browser.until("document.querySelector('#question').value === '2020' && document.querySelector('.graded li:not(:has(:checked))')");
    grade("notes/bread.md", 2);
    browser.click("[data-test=qrels]");
    browser.until("saved.length === 1");
    browser.click("[data-test=queries]");
    let saved = browser.until("saved.length === 2 && saved");
    let (qrels, queries) = (saved[0].as_str().unwrap(), saved[1].as_str().unwrap());
    assert!(qrels.contains(&format!("{LONG_ID} 0 notes/my%20tides%20100%2520.md 3\n")), "{qrels}");
    assert!(qrels.contains("1 0 notes/bread.md 2\n"), "{qrels}");
    assert!(
        queries.contains(&format!("\"{LONG_ID}\"")) && queries.contains("{\"_id\":\"1\",\"text\":\"2020\"}"),
        "{queries}"
    );
    shown.place.write("made.txt", qrels);
    shown.place.write("made.jsonl", queries);
    shown.place.ok(&["run", "--topics", "made.jsonl", "-k", "100", "--output", "made.run", "--quiet"]);
    browser.click("#measure-title + .tools button");
    browser.until("document.querySelector('[data-test=systems]')");
    let (board, eval) = (shown.figure("now"), evaluated(&shown.place, "made.txt", "made.run", "nDCG@10"));
    assert!((board - eval).abs() < 1e-9, "{board} is not {eval}");
    browser.run("[...document.querySelectorAll('#measure-title + .tools button')][1].click()");
    browser.until("document.querySelectorAll('[data-test=curve] tbody tr').length === 5");
    shown.expect_quiet();
}

#[test]
fn what_is_measured_is_what_the_settings_show_without_a_question() {
    let Some(shown) = Shown::new(place(), &[]) else { return };
    shown.board("", &["queries.jsonl", "qrels.tsv"]);
    let browser = &shown.browser;
    browser.until("document.querySelector('#measure-title')?.textContent.includes('3 of 3 judged questions')");
    browser.run(
        "const mode = document.querySelector('[name=mode]'); mode.value = 'lexical'; \
         mode.dispatchEvent(new Event('change', { bubbles: true }));",
    );
    browser.until("location.hash.includes('mode=lexical')");
    browser.click("#measure-title + .tools button");
    browser.until("document.querySelector('[data-test=systems]')?.textContent.includes('mode \"lexical\"')");
    shown.place.ok(&[
        "run",
        "--topics",
        "queries.jsonl",
        "-k",
        "100",
        "--mode",
        "lexical",
        "--output",
        "l.run",
        "--quiet",
    ]);
    let (board, eval) =
        (shown.figure("now, mode \"lexical\""), evaluated(&shown.place, "qrels.tsv", "l.run", "nDCG@10"));
    assert!((board - eval).abs() < 1e-9, "{board} is not {eval}");
    shown.expect_quiet();
}

#[test]
fn files_that_are_none_are_told_with_their_line() {
    let place = place();
    place.write("torn.run", "1 Q0 a 1 2.5 x\n1 Q0 b 2 none x\n");
    place.write("twice.txt", "1 0 a 1\n1 0 a 2\n");
    place.write("empty.txt", "\n\n");
    place.write("bytes.run", b"1 Q0 \xff 1 2.5 x\n");
    place.write("other.qrels", "1 0 nothing/of/this.md 1\n3 0 nor/this.md 1\n");
    let Some(shown) = Shown::new(place, &[]) else { return };
    shown.open("judge");
    shown.browser.until("document.querySelector('input[type=file]')");
    for (file, words) in [
        ("torn.run", "torn.run, line 2: expected `query Q0 document rank score tag`"),
        ("twice.txt", "twice.txt, line 2: expected each document once a question, not a again"),
        ("empty.txt", "empty.txt, which is empty"),
        ("bytes.run", "bytes.run is not UTF-8"),
        ("notes/bread.md", "bread.md, line 1: expected"),
    ] {
        shown.browser.choose(&[&shown.place.path(file)]);
        shown.browser.until(&format!("document.querySelector('.wrong')?.textContent.includes({})", json!(words)));
    }
    shown.browser.choose(&[&shown.place.path("other.qrels"), &shown.place.path("dense.run")]);
    shown.browser.until("document.querySelector('.warnings')?.textContent.includes('judgements of another corpus')");
    shown.expect_quiet();
}
