//! The commands that the page lets people copy: run by a real shell, they give what the page shows, whatever is asked.

use serde_json::{Value, json};

use crate::page::{Shown, same_as_copied};
use crate::support::Place;

/// A question that a shell, a heredoc, TOML, JSON or Python could take for something else.
const HOSTILE: &str =
    "-tide's \"moon\" $HOME `id` $(id) \\n \\' \\\\ \nEND\n'EOF' %s ! #tide & ; * ~ {a,b} \u{5d2}\u{1f30a}\u{2028}";

/// A value as a part of an address.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The command of a language, as the page gives it.
#[track_caller]
fn command(shown: &Shown, language: &str) -> String {
    shown.browser.run(&format!(
        "[...document.querySelectorAll('.copies button')]
            .find(({{ textContent }}) => textContent === '{language}').click()"
    ));
    let label = "document.querySelector('.command').getAttribute('aria-label')";
    shown.browser.until(&format!("{label}.endsWith('{language}')"));
    shown.browser.text(".command")
}

#[track_caller]
fn same(shown: &Shown, answer: &Value) {
    for language in ["cento", "curl", "python"] {
        same_as_copied(&shown.place, language, &command(shown, language), answer);
    }
}

#[test]
fn comparisons_budgets_and_health_are_copied_right() {
    // `status` names folders, so the server may too.
    let Some(shown) = Shown::new(Place::indexed(), &["--show-folders"]) else { return };
    let told = |path: &str, body: &Value| shown.serving.told(path, body);
    shown.open("compare?q=tide&k=2&b_mode=lexical");
    shown.browser.until("document.querySelectorAll('.ranked').length === 2");
    same(&shown, &told("/v1/search", &json!({"query": "tide", "mode": "lexical", "k": 2})));

    shown.open("compare?q=tide&of=contexts&b_budget=60&b_strategy=flat");
    shown.browser.until("document.querySelector('[data-test=spent-1]')");
    same(&shown, &told("/v1/context", &json!({"query": "tide", "budget": 60, "strategy": "flat"})));

    shown.open("health");
    shown.browser.until("document.querySelector('.figures')");
    same(&shown, &shown.serving.get("/v1/collections/cento").json());

    shown.open("budget?q=tide&budget=90&strategy=bubble&policy=%7B%22delta%22:0.5%7D");
    shown.browser.until("document.querySelector('[data-test=tokens]')");
    let body = json!({"query": "tide", "budget": 90, "strategy": "bubble", "policy": {"delta": 0.5}});
    let trace = told("/v1/explain/trace", &body);
    for language in ["curl", "python"] {
        same_as_copied(&shown.place, language, &command(&shown, language), &trace);
    }
    let written = format!("{} > context.md && cat trace.json", command(&shown, "cento"));
    same_as_copied(&shown.place, "cento", &written, &trace);
    let context = String::from_utf8(shown.place.read("context.md")).unwrap();
    assert_eq!(context.trim_end(), told("/v1/context", &body)["context"].as_str().unwrap().trim_end());
    shown.expect_quiet();
}

#[test]
fn one_of_several_collections_is_copied_with_its_name() {
    let place = Place::new();
    place.write_notes();
    place.write("other/rain.md", "# Rain\n\nRain falls from clouds into the sea.\n");
    place.index(&["notes", "--collection", "all/notes"]);
    place.index(&["other", "--collection", "all/it's other"]);
    let Some(shown) = Shown::new(place, &["--collections", "all", "--show-folders"]) else { return };
    let name = encoded("it's other");
    for (view, path, ready) in [
        ("ask?q=sea", format!("/v1/context?collection={name}"), "[data-test=context]"),
        ("health?", format!("/v1/collections/{name}"), ".figures"),
        ("document?doc=other/rain.md", format!("/v1/collections/{name}/text?citation=other/rain.md"), ".block"),
    ] {
        shown.open(&format!("{view}&c={name}"));
        shown.browser.until(&format!("document.querySelector('{ready}')"));
        let answer = match view.starts_with("ask") {
            true => shown.serving.told(&path, &json!({"query": "sea"})),
            false => shown.serving.get(&path).json(),
        };
        for language in ["curl", "python"] {
            same_as_copied(&shown.place, language, &command(&shown, language), &answer);
        }
        let there = command(&shown, "cento");
        assert!(there.starts_with("# where the collections lie\n"), "{there}");
        same_as_copied(&shown.place, "cento", &format!("cd all\n{there}"), &answer);
    }
    shown.expect_quiet();
}

#[test]
fn questions_filters_and_policies_of_any_letters_are_copied_right() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    let filter = "path != \"it's $HOME `id` \\\\ \" or path exists";
    let policy = json!({
        "rho": {"*": 0.5, "it's \"END\"\n$HOME": 0.25, "]\nEND\ntouch taken\n": 0.5},
        "priors": {"\u{5d2} \\ `id`": 0.5},
        "delta": 0.5,
    });
    let body = json!({"query": HOSTILE, "filter": filter, "policy": policy, "budget": 200});
    let answer = shown.serving.told("/v1/context", &body);
    let (q, f, p) = (encoded(HOSTILE), encoded(filter), encoded(&policy.to_string()));
    shown.open(&format!("ask?q={q}&filter={f}&policy={p}&budget=200"));
    shown.browser.until("document.querySelector('[data-test=context]')");
    same(&shown, &answer);
    assert!(!shown.place.path("taken").exists(), "a policy was run by the shell");

    let body = json!({"query": HOSTILE, "explain": true});
    let answer = shown.serving.told("/v1/search", &body);
    shown.open(&format!("scores?q={q}"));
    shown.browser.until("document.querySelector('.hits')");
    same(&shown, &answer);

    let body = json!({"id": "notes/bread.md", "context": {"query": HOSTILE, "budget": 200}});
    let answer = shown.serving.told("/v1/explain", &body);
    shown.open(&format!("lost?q={q}&id=notes/bread.md&budget=200"));
    shown.browser.until("document.querySelector('.stages')");
    same(&shown, &answer);
    shown.expect_quiet();
}

#[test]
fn documents_of_any_name_are_copied_right_and_keys_are_not_copied() {
    let place = Place::new();
    let name = "notes/-it's $HOME `id` \"a\" #1 \u{5d2}.md";
    place.write(name, "# Tides\n\nThe moon moves the sea.\n");
    place.index(&["notes"]);
    place.write("keys", format!("read sha256:{} ann\n", crate::page::MOON));
    let Some(shown) = Shown::new(place, &["--api-keys", "keys"]) else { return };
    shown.open("health");
    shown.browser.until("document.querySelector('[name=key]')");
    shown.browser.run("sessionStorage.setItem('cento.key', 'moon')");
    shown.browser.open("about:blank");
    shown.open(&format!("document?doc={}", encoded(name)));
    shown.browser.until("document.querySelector('.block')");
    let path = format!("/v1/collections/cento/text?citation={}", encoded(name));
    let answer = shown.serving.ask("GET", &path, &[("Authorization", "Bearer moon")], b"").json();
    same(&shown, &answer);
    assert!(!shown.browser.text(".copies").contains("moon"), "a key is nothing to copy");
    shown.expect_quiet();
}
