//! The page on the server: each of its examples is run against one.

use std::process::Command;

use crate::serving::Serving;
use crate::support::{Place, root};

/// The address that the page shows.
const SHOWN: &str = "127.0.0.1:8181";

/// The fenced blocks of the page in a language.
fn examples(language: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/serve.md")).unwrap();
    let fence = format!("\n```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
}

/// Runs the examples of a language with a program that takes them as an argument behind `flag`.
#[track_caller]
fn run(language: &str, program: &str, flags: &[&str]) {
    let examples = examples(language);
    assert!(!examples.is_empty(), "docs/serve.md has no {language}");
    if Command::new(program).arg("--version").output().is_err() {
        eprintln!("skipped: there is no {program}");
        return;
    }
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--writable", "--root", "notes"]);
    for example in examples {
        let example = example.replace(SHOWN, &serving.address);
        let ran = Command::new(program).args(flags).arg(&example).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success() && !out.trim().is_empty(), "{example}\n{out}\n{err}");
    }
}

#[test]
fn what_the_page_says_to_curl_works() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: there is no curl");
        return;
    }
    run("sh", "bash", &["-euc"]);
}

#[test]
fn what_the_page_says_to_python_works() {
    run("python", "python3", &["-c"]);
}

#[test]
fn what_the_page_says_to_node_works() {
    run("js", "node", &["--input-type=module", "-e"]);
}

#[test]
fn what_the_page_says_to_langchain_works() {
    let Ok(folder) = std::env::var("CENTO_CLIENTS") else {
        eprintln!("skipped: CENTO_CLIENTS names no environment of scripts/make-clients");
        return;
    };
    let tiktoken = format!(
        "import os; os.environ['TIKTOKEN_CACHE_DIR'] = {:?}\nexec(__import__('sys').argv[1])",
        format!("{folder}/tiktoken")
    );
    run("python-clients", &format!("{folder}/bin/python"), &["-c", &tiktoken]);
}

#[test]
fn the_page_names_every_kind_of_route() {
    let page = std::fs::read_to_string(root().join("docs/serve.md")).unwrap();
    let place = Place::indexed();
    let paths = Serving::start(&place, &[]).get("/openapi.json").json()["paths"].as_object().unwrap().clone();
    for path in paths.keys() {
        let kind = path.split('/').take(3).collect::<Vec<_>>().join("/");
        let known = page.contains(&kind) || path.starts_with("/v1/explain/") || path == "/v1/embed";
        assert!(known, "docs/serve.md says nothing of {kind}");
    }
}
