//! The page of `cento serve` where there is much, and where the ground moves: ten thousand sections, long names,
//! collections that are damaged, replaced or gone while it is open.

use std::fmt::Write as _;

use serde_json::json;

use crate::page::{MOON, Shown};
use crate::serving::Serving;
use crate::support::Place;
use crate::writing::{TIDE, many};

/// Sections of a long document.
const SECTIONS: usize = 10_000;

#[test]
fn ten_thousand_sections_are_a_list_of_few_rows_that_reaches_its_end() {
    let place = Place::new();
    let mut text = String::new();
    for n in 0..SECTIONS {
        let _ = write!(text, "## Part {n}\n\nThe tide number {n} comes.\n\n");
    }
    place.write("notes/long.md", text);
    place.index(&["notes"]);
    let Some(shown) = Shown::new(place, &[]) else { return };
    let browser = &shown.browser;
    shown.open("document?doc=notes/long.md");
    browser.until("document.querySelectorAll('.outline .row').length > 10 && document.querySelector('.block')");
    assert_eq!(browser.value("document.querySelector('.outline .row').ariaSetSize"), SECTIONS.to_string());
    let few = |what: &str| {
        let n = browser.value(&format!("document.querySelectorAll('{what}').length")).as_u64().unwrap();
        assert!(n < 400, "{n} of {what} are drawn");
    };
    few(".outline .row");
    few(".block");
    browser.run("const list = document.querySelector('.outline .long'); list.scrollTop = list.scrollHeight;");
    browser.until("[...document.querySelectorAll('.heading')].at(-1).textContent.includes('Part 9999')");
    few(".outline .row");
    browser.run("[...document.querySelectorAll('.heading')].at(-1).click()");
    browser.until("document.querySelector('.body').textContent.includes('The tide number 9999 comes.')");
    few(".block");
    shown.open("budget?q=tide&budget=300");
    browser.until("document.querySelector('[data-test=all]')");
    few(".decision");
    let told = browser.text("#rejected-title");
    browser.click("[data-test=all]");
    browser.until("!document.querySelector('[data-test=all]')");
    assert_eq!(browser.text("#rejected-title"), told, "the number of all is known before all are asked for");
    few(".decision");
    shown.expect_quiet();
}

#[test]
fn a_list_of_a_million_rows_is_scrolled_to_its_last() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    shown.open("ask");
    shown.browser.until("document.querySelector('[name=q]')");
    shown.browser.outcome(
        "Promise.all([import('/page/parts.js'), import('/page/vendor/htm-preact.js')]).then(([{ Long }, { html, render }]) => {
            const place = document.createElement('div');
            document.querySelector('main').replaceChildren(place);
            const items = Array.from({ length: 1_000_000 }, (_, n) => n);
            render(html`<${Long} items=${items} row=${54} label=\"Numbers\">${(n) => html`<b>${n}</b>`}</>`, place);
            done(true);
        })",
    );
    shown.browser.until("document.querySelector('main .long')");
    shown.browser.run("const list = document.querySelector('main .long'); list.scrollTop = list.scrollHeight;");
    let seen = "(() => { const box = document.querySelector('main .long').getBoundingClientRect();
        return [...document.querySelectorAll('main .row')].some((row) => row.textContent === '999999'
            && row.getBoundingClientRect().bottom <= box.bottom + 2 && row.getBoundingClientRect().top >= box.top); })()";
    shown.browser.until(seen);
}

#[test]
fn names_of_five_hundred_letters_and_texts_from_the_right_fit_every_view() {
    let place = Place::new();
    let (long, right) = ("n".repeat(500), "\u{5d2}\u{5d0}\u{5d5}\u{5ea}".repeat(40));
    let line =
        |id: &str, title: &str| json!({"_id": id, "title": title, "text": "The tide moves the sea."}).to_string();
    place.write("notes/all.jsonl", format!("{}\n{}\n", line(&long, &long), line(&right, &right)));
    place.index(&["notes"]);
    let Some(shown) = Shown::new(place, &[]) else { return };
    for (view, ready) in [
        ("ask", ".citations li"),
        ("scores", ".hits li"),
        ("lost", ".stages"),
        ("budget", ".taken li"),
        ("compare", ".ranked li"),
        ("compare&of=contexts", "[data-test=spent-1]"),
        ("document", ".block"),
        ("judge", ".graded li"),
        ("health", ".listed"),
    ] {
        for (id, width) in [(&long, 360), (&right, 360), (&long, 1440)] {
            shown.browser.look(width, "light");
            let (view, rest) = view.split_once('&').unwrap_or((view, ""));
            shown.open(&format!("{view}?q=tide&id=notes/all.jsonl/{id}&doc=notes/all.jsonl/{id}&list=1&{rest}"));
            shown.browser.until(&format!("document.querySelector('{ready}')"));
            let wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            let wide = shown.browser.value(wide).as_i64().unwrap();
            assert!(wide <= 0, "{view} at {width} is {wide} wider than the window");
        }
    }
    shown.expect_quiet();
}

#[test]
fn a_collection_that_is_replaced_or_damaged_under_the_page_is_told() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    let Shown { place, browser, .. } = &shown;
    shown.open("ask?q=tide");
    browser.until("document.querySelector('[data-test=context]')");
    std::fs::remove_dir_all(place.path(".cento")).unwrap();
    std::fs::remove_dir_all(place.path("notes")).unwrap();
    place.write("notes/moss.md", "# Moss\n\nMoss grows where the tide never comes.\n");
    place.index(&["notes"]);
    place.write("notes/fern.md", "# Fern\n\nFerns like shade.\n");
    place.index(&["notes"]);
    browser.click("button.main");
    browser.until("document.querySelector('[data-test=context]')?.textContent.includes('Moss grows')");
    browser.until("document.querySelector('.warnings')?.textContent.includes('The collection has changed')");
    shown.open("document?doc=notes/tides.md&at=5-20");
    browser.until("document.querySelector('[data-code=unknown_document]')");

    let segments = place.path(".cento/segments");
    for segment in std::fs::read_dir(segments).unwrap() {
        let text = segment.unwrap().path().join("documents.text");
        let mut bytes = std::fs::read(&text).unwrap();
        let end = bytes.len() - 1;
        bytes[80..end].iter_mut().for_each(|byte| *byte ^= 0xff);
        std::fs::write(&text, bytes).unwrap();
    }
    shown.open("document?doc=notes/fern.md");
    browser.until("document.querySelector('.problem')?.textContent.includes('`cento repair` keeps')");
    std::fs::remove_dir_all(place.path(".cento")).unwrap();
    shown.open("health");
    browser.until("document.querySelector('.problem')?.textContent.includes('not where it was')");
}

#[test]
fn jobs_are_seen_at_work_with_what_came_of_them() {
    let place = Place::indexed();
    let Some(shown) = Shown::new(place, &["--writable", "--root", "notes"]) else { return };
    shown.open("health");
    shown.browser.until("document.querySelector('[data-test=cache]')");
    assert_eq!(shown.browser.value("document.querySelector('#jobs-title')"), json!(null));
    shown.place.write("notes/more.md", "# More\n\nThe tide moves with wind too.\n");
    let begun = shown.serving.post("/v1/collections/cento/index", &json!({"paths": ["notes"]}));
    assert_eq!(begun.status, 202, "{}", begun.text());
    let cache = shown.serving.get("/v1/cache").json();
    let entries = shown.browser.text("[data-test=cache] td:nth-of-type(3)");
    assert!(cache["models"][0]["n_embeddings"].as_u64().unwrap() >= entries.replace(',', "").parse().unwrap());
    shown.browser.open("about:blank");
    shown.open("health");
    shown.browser.until("document.querySelector('.jobs')?.textContent.includes('index of cento: done')");
    let order = "[...document.querySelectorAll('main h2')].map((head) => head.id).join(' ')";
    assert_eq!(shown.browser.value(order), "contents-title jobs-title cache-title files-title documents-title");
    shown.expect_quiet();
}

#[test]
fn an_idle_health_sees_a_job_that_begins_and_cancels_it() {
    let Some(shown) = Shown::new(Place::indexed(), &["--writable"]) else { return };
    let browser = &shown.browser;
    let before = shown.place.read(".cento/manifest.json");
    shown.open("health");
    browser.until("document.querySelector('[data-test=cache]')");
    let id = shown.serving.begun("documents", &many(10_000));
    browser.until("document.querySelector('.jobs button')");
    assert_eq!(shown.serving.job(&id)["state"], "running", "the test wants a job that is at work");
    assert_eq!(browser.value("document.querySelector('.jobs button').ariaLabel"), "Cancel the add of cento");
    browser.click(".jobs button");
    browser.until("document.querySelector('.jobs [role=status]').textContent === 'cancelled'");
    browser.until("!document.querySelector('.jobs button')");
    assert_eq!(shown.serving.job(&id)["state"], "cancelled");
    assert_eq!(shown.place.read(".cento/manifest.json"), before);
    shown.serving.wrote("documents", &json!({"documents": [{"id": "fern", "text": "Ferns grow in the shade."}]}));
    browser.until("document.querySelectorAll('.jobs li').length === 2");
    browser.until("document.querySelector('.jobs').textContent.includes('add of cento: done')");
    shown.expect_quiet();
}

#[test]
fn health_follows_a_job_to_its_end_and_says_who_may_not_cancel_it() {
    let place = Place::indexed();
    place.write("keys", format!("read sha256:{MOON} ann\nwrite sha256:{TIDE} bob\n"));
    let Some(shown) = Shown::new(place, &["--writable", "--api-keys", "keys"]) else { return };
    let browser = &shown.browser;
    shown.open("health");
    browser.until("document.querySelector('[name=key]')");
    browser.run("sessionStorage.setItem('cento.key', 'moon')");
    browser.open("about:blank");
    let begin = |n: usize| {
        let body = many(n).to_string();
        let key = [("Authorization", "Bearer tide"), ("Content-Type", "application/json")];
        let begun = shown.serving.ask("POST", "/v1/collections/cento/documents", &key, body.as_bytes());
        assert_eq!(begun.status, 202, "{}", begun.text());
        begun.json()["id"].as_str().unwrap().to_owned()
    };
    begin(3000);
    shown.open("health");
    browser.until("document.querySelector('.jobs button')");
    browser.click(".jobs button");
    browser.until("document.querySelector('#jobs-title + .problem')?.textContent.includes('may read only')");
    let generation = "[...document.querySelectorAll('.figures div')]
        .find((pair) => pair.firstChild.textContent === 'generation').lastChild.textContent";
    browser.until(&format!("{generation} === '2'"));
    shown.expect_quiet();
}

#[test]
fn jobs_are_not_looked_at_while_nobody_sees_the_page() {
    let Some(shown) = Shown::new(Place::indexed(), &["--writable"]) else { return };
    let browser = &shown.browser;
    shown.open("health");
    browser.until("document.querySelector('[data-test=cache]')");
    browser.run(
        "window.timers = [];
         window.looks = 0;
         const [wait, load] = [setTimeout, fetch];
         // the page's own: the driver has timers of many hours
         window.setTimeout = (work, ms) => (ms >= 1000 && ms < 1e6 ? void timers.push({ work, ms }) : wait(work, ms));
         window.fetch = (to, how) => { if (to === '/v1/jobs') looks++; return load(to, how); };
         window.see = (seen) => {
             Object.defineProperty(document, 'hidden', { get: () => !seen, configurable: true });
             document.dispatchEvent(new Event('visibilitychange'));
         };
         see(true);",
    );
    browser.until("looks === 1 && timers.length === 1");
    assert_eq!(browser.value("timers[0].ms"), 5000, "seldom, as none is at work");
    browser.run("see(false); timers[0].work();");
    browser.outcome("requestAnimationFrame(() => setTimeout(() => setTimeout(done)))"); // effects have run
    assert_eq!(browser.value("[looks, timers.length]"), json!([1, 1]), "hidden: nothing is asked, nor planned");
    browser.run("see(true)");
    browser.until("looks === 2 && timers.length === 2");
    shown.expect_quiet();
}

#[test]
fn a_server_that_comes_back_is_asked_again() {
    let place = Place::indexed();
    let Some(mut shown) = Shown::new(place, &[]) else { return };
    let address = shown.serving.address.clone();
    shown.open("scores?q=tide");
    shown.browser.until("document.querySelector('.hits li')");
    shown.serving.child.kill().unwrap();
    shown.serving.child.wait().unwrap();
    shown.browser.click("button.main");
    shown.browser.until("document.querySelector('[data-code=unreachable]')");
    assert_eq!(shown.browser.value("document.querySelector('[name=q]').value"), "tide", "nothing is lost");
    shown.serving = Serving::start(&shown.place, &["--listen", &address]);
    shown.browser.click("[data-code=unreachable] button");
    shown.browser.until("!document.querySelector('.problem') && document.querySelector('.hits li')");
}
