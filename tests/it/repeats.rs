//! The page in a browser: what is left out as said already says by which gates, and the sliders of the gates let it in.

use serde_json::{Value, json};

use crate::page::Shown;
use crate::support::Place;

/// The key that moves a slider to its end.
const END: &str = "\u{e010}";

const QUESTION: &str = "what closes the harbour ferry";

/// The part that a notice and its revision share, and the parts that they do not.
const SHARED: &str = "The harbour ferry is closed from Monday on because a storm broke the landing stage.";
const FIRST: &str = "Divers look at the piles on Tuesday, says the council, and nobody knows more.";
const SECOND: &str = "Carpenters lay new planks at night and pupils cross by water again soon.";

fn place() -> Place {
    let place = Place::new();
    place.write("notes/notice.md", format!("# Notice\n\n{SHARED} {FIRST}\n"));
    place.write("notes/copied.md", format!("# Notice\n\n{SHARED} {FIRST}\n"));
    place.write("notes/revised.md", format!("# Revised notice\n\n{SHARED} {SECOND}\n"));
    place.write("notes/bread.md", "# Bread\n\nFlour, water and salt make a dough. Yeast lifts it.\n");
    place.index(&["notes"]);
    place
}

impl Shown {
    /// The row of a passage in the list of the rejected; empty if it is not there.
    fn rejected(&self, document: &str) -> String {
        let rows = "[...document.querySelectorAll('.decision')].map((row) => row.textContent)";
        let row = self.browser.value(&format!("{rows}.find((text) => text.includes({})) ?? ''", json!(document)));
        row.as_str().unwrap().to_owned()
    }

    /// Moves a slider to its end, and waits for what it assembles.
    fn to_the_end(&self, slider: &str) {
        self.browser.run(&format!("document.querySelector('[name={slider}]').focus()"));
        self.browser.press(&[END]);
        let moved = format!("\"{slider}\":1");
        self.browser.until(&format!("decodeURIComponent(location.hash).includes({})", json!(moved)));
        self.browser.until("!document.querySelector('.busy:not(:empty)')");
    }

    /// The policy of the address.
    fn policy(&self) -> Value {
        let policy = self.browser.value("new URLSearchParams(location.hash.split('?')[1]).get('policy')");
        serde_json::from_str(policy.as_str().unwrap()).unwrap()
    }
}

#[test]
fn the_gates_of_redundancy_are_named_and_moved_until_what_they_hold_is_in() {
    let Some(shown) = Shown::new(place(), &[]) else { return };
    let browser = &shown.browser;
    let policy = "%7B%22cento%22:%7B%22same_meaning%22:0.2%7D%7D";
    shown.open(&format!("budget?q={QUESTION}&budget=2000&policy={policy}"));
    browser.until("document.querySelector('.decision')");
    for document in ["notes/notice.md", "notes/revised.md"] {
        let row = shown.rejected(document);
        assert!(row.contains("said already by same words, half of 0.8; by same meaning, 0.2 ("), "{document}: {row}");
    }
    shown.to_the_end("same_words");
    let row = shown.rejected("notes/revised.md");
    assert!(row.contains("said already by same meaning, 0.2 ("), "half of its words are not the other's: {row}");
    shown.to_the_end("same_meaning");
    assert_eq!(shown.rejected("notes/revised.md"), "", "the revision is in");
    let row = shown.rejected("notes/notice.md");
    assert!(row.contains("said already by same words, half of 1"), "no slider reaches a copy: {row}");
    assert_eq!(shown.policy(), json!({"cento": {"same_words": 1, "same_meaning": 1}}));
    browser.click("[name=repeats]");
    browser.until("!document.querySelector('[name=same_words]') && !document.querySelector('.busy:not(:empty)')");
    browser.until("!document.querySelector('.tabs')?.textContent.includes('said already')");
    assert_eq!(shown.rejected("notes/notice.md"), "", "the copy is in");
    let policy = shown.policy();
    assert_eq!(policy["gate"], "none");
    let trace = shown.serving.told("/v1/explain/trace", &json!({"query": QUESTION, "budget": 2000, "policy": policy}));
    let taken = trace["assembly"]["records"].as_array().unwrap().iter();
    let taken = taken.filter(|record| record["final_decision"] == "selected").count();
    assert_eq!(browser.value("document.querySelectorAll('.taken li').length"), taken, "as the routes have it");
    browser.click("[name=repeats]");
    browser.until("document.querySelector('[name=same_words]')");
    assert_eq!(shown.policy()["gate"], "pairwise");
    shown.expect_quiet();
}
