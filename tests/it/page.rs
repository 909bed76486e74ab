//! The page of `cento serve` in a browser: every view's way, the numbers of the routes, hostile texts, what goes wrong.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::browser::{ALT, Browser, ENTER, RIGHT, TAB};
use crate::serving::Serving;
use crate::support::{Place, binary};

/// The question of most tests.
const QUESTION: &str = "what moves the sea";

/// The hash of `moon`.
pub(crate) const MOON: &str = "9e78b43ea00edcac8299e0cc8df7f6f913078171335f733a21d5d911b6999132";

/// A place that the page shows, and who shows it.
pub(crate) struct Shown {
    pub(crate) place: Place,
    pub(crate) serving: Serving,
    pub(crate) browser: Browser,
}

impl Shown {
    pub(crate) fn new(place: Place, arguments: &[&str]) -> Option<Self> {
        let browser = Browser::start()?;
        let serving = Serving::start(&place, arguments);
        Some(Self { place, serving, browser })
    }

    /// Opens a state of the page, its values written as they stand in an address.
    #[track_caller]
    pub(crate) fn open(&self, state: &str) {
        self.browser.open(&format!("http://{}/#/{state}", self.serving.address));
    }

    /// Expects that nothing was asked but this server, and that the browser had nothing to complain of but statuses.
    #[track_caller]
    pub(crate) fn expect_quiet(&self) {
        let own = format!("http://{}/", self.serving.address);
        for address in self.browser.requests() {
            let is_own =
                address.starts_with(&own) || ["about:", "data:", "blob:"].iter().any(|of| address.starts_with(of));
            assert!(is_own, "the page asks {address}");
        }
        for complaint in self.browser.complaints() {
            assert!(complaint.contains("Failed to load resource"), "{complaint}");
        }
    }
}

/// A number as the page writes whole ones.
fn written(value: &Value) -> String {
    let digits = value.to_string();
    let places = digits.len();
    let grouped = digits.chars().enumerate().map(|(n, digit)| match n > 0 && (places - n).is_multiple_of(3) {
        true => format!(",{digit}"),
        false => digit.to_string(),
    });
    grouped.collect()
}

/// Runs what the page lets people copy, where the machine has the program, and expects the same answer.
#[track_caller]
pub(crate) fn same_as_copied(place: &Place, language: &str, command: &str, answer: &Value) {
    let program = if language == "python" { "python3" } else { "sh" };
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if language != "cento" && !is_there(if language == "curl" { "curl" } else { program }) {
        eprintln!("skipped: there is no {language} to run what is copied");
        return;
    }
    let path = [binary().parent().unwrap().to_owned()].into_iter();
    let path = path.chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())).collect::<Vec<_>>();
    let mut run = place.command_of(Path::new(program), &["-c", command]);
    let ran = run.env("PATH", std::env::join_paths(path).unwrap()).env("KEY", "moon").output().unwrap();
    let told = serde_json::from_slice::<Value>(&ran.stdout);
    let told = told.unwrap_or_else(|error| panic!("{error}: {command} {}", String::from_utf8_lossy(&ran.stderr)));
    assert_eq!(&told, answer, "{command}");
}

#[test]
fn the_files_of_the_page_are_served_as_a_browser_wants_them() {
    let place = Place::indexed();
    place.write("keys", format!("read sha256:{MOON} ann\n"));
    let serving = Serving::start(&place, &["--api-keys", "keys"]);
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/page/app.js", "text/javascript; charset=utf-8"),
        ("/page/vendor/htm-preact.js", "text/javascript; charset=utf-8"),
        ("/page/style.css", "text/css; charset=utf-8"),
        ("/page/icon.svg", "image/svg+xml"),
    ] {
        let answer = serving.get(path);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{path}: no key is asked for");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(answer.header("content-security-policy").unwrap().starts_with("default-src 'self'; "), "{path}");
        let tag = answer.header("etag").unwrap();
        let again = serving.ask("GET", path, &[("If-None-Match", tag)], b"");
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        let other = serving.ask("GET", path, &[("If-None-Match", "\"0\", W/\"1\"")], b"");
        assert_eq!((other.status, other.body), (200, answer.body), "{path}");
        serving.ask("GET", path, &[("Host", "evil.example")], b"").refused(403, "host");
        serving.ask("GET", path, &[("Origin", "http://evil.example")], b"").refused(403, "origin");
        if path != "/" {
            serving.ask("POST", path, &[], b"").refused(405, "method"); // at / clients ask for vectors
        }
    }
    for path in ["/page/", "/page/nothing.js", "/page/../Cargo.toml", "/page/%2e%2e/Cargo.toml", "/page/vendor"] {
        assert!([401, 404].contains(&serving.get(path).status), "{path}");
    }
    serving.get("/v1/collections").refused(401, "key");
}

#[test]
fn new_routes_and_times_say_what_the_command_line_says() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let body = json!({"query": QUESTION, "budget": 120});
    let curve = place.ok(&["context", QUESTION, "--budget", "120", "--budget-curve", "--json", "--quiet"]).out;
    assert_eq!(serving.post("/v1/context/curve", &body).text(), curve);
    let reports = place.ok(&["status", "--files", "--json", "--quiet"]).out;
    assert_eq!(serving.get("/v1/collections/cento/reports").text(), reports);
    serving.get("/v1/collections/other/reports").refused(404, "unknown_collection");
    for (path, last) in [("/v1/search", "texts;dur="), ("/v1/context", "assemble;dur=")] {
        let asked = match path {
            "/v1/search" => json!({"query": QUESTION}),
            _ => body.clone(),
        };
        let answer = serving.post(path, &asked);
        let times = answer.header("server-timing").unwrap();
        assert!(times.starts_with("embed;dur=") && times.contains(last), "{times}");
    }
}

#[test]
fn a_question_leads_to_its_context_and_a_citation_to_its_bytes() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    let Shown { serving, browser, .. } = &shown;
    shown.open("ask");
    browser.until("document.querySelector('[name=q]')");
    browser.press(&["/"]);
    browser.write(QUESTION);
    browser.press(&[ENTER]);
    browser.until("document.querySelector('[data-test=context]')");
    let answer = serving.told("/v1/context", &json!({"query": QUESTION}));
    assert_eq!(browser.text("[data-test=context]"), answer["context"].as_str().unwrap());
    assert_eq!(browser.text("[data-test=tokens]"), written(&answer["n_tokens"]));
    assert_eq!(browser.value("location.hash"), "#/ask?q=what+moves+the+sea", "the address says it all");
    let citations = answer["citations"].as_array().unwrap();
    assert_eq!(browser.value("document.querySelectorAll('.citations li').length"), citations.len());

    for language in ["cento", "curl", "python"] {
        browser.run(&format!(
            "[...document.querySelectorAll('.copies button')]
                .find(({{ textContent }}) => textContent === '{language}').click()"
        ));
        browser.until(&format!("document.querySelector('.command').getAttribute('aria-label').endsWith('{language}')"));
        same_as_copied(&shown.place, language, &browser.text(".command"), &answer);
    }
    browser.click(".citations a");
    browser.until("document.querySelector('mark.cited')");
    let cited = &citations[0];
    let document = cited["document"].as_str().unwrap();
    let text = serving.get(&format!("/v1/collections/cento/text?citation={document}")).json();
    let bytes = |at: &str| usize::try_from(cited["span"][at].as_u64().unwrap()).unwrap();
    let part = &text["text"].as_str().unwrap()[bytes("start")..bytes("end")];
    let marked = browser.value("[...document.querySelectorAll('mark.cited')].map((mark) => mark.textContent).join('')");
    assert_eq!(marked, part, "exactly the bytes that are cited");
    let whole = browser.value("[...document.querySelectorAll('.block')].map((block) => block.textContent).join('')");
    assert_eq!(whole, text["text"], "the text is there whole");
    let headings = browser.until(
        "[...document.querySelectorAll('.heading bdi')].map((one) => one.textContent)
            .filter((one) => one !== '(no heading)')",
    );
    let sections = serving.get(&format!("/v1/collections/cento/sections?document={document}")).json();
    let named = sections["sections"].as_array().unwrap().iter().map(|section| section["heading"].clone());
    assert_eq!(headings, Value::Array(named.filter(|heading| heading != "").collect()));

    browser.back();
    browser.until("document.querySelector('[data-test=context]')");
    assert_eq!(browser.value("document.querySelector('[name=q]').value"), QUESTION);
    browser.back();
    browser.until("!document.querySelector('[data-test=context]')");
    shown.expect_quiet();
}

#[test]
fn nothing_is_asked_before_there_is_a_question() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    for view in ["ask", "scores", "lost", "budget", "compare", "compare?of=contexts", "judge"] {
        shown.open(view);
        shown.browser.until("document.querySelector('.hint')");
        shown.browser.outcome("requestAnimationFrame(() => setTimeout(() => setTimeout(done)))"); // effects have run
        assert_eq!(shown.browser.value("document.querySelector('.problem')?.textContent"), Value::Null, "{view}");
    }
    for address in shown.browser.requests() {
        let asks = ["/context", "/search", "/explain"].iter().any(|route| address.contains(route));
        assert!(!asks, "{address} is asked");
    }
}

#[test]
fn scores_add_up_and_their_numbers_are_the_routes() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    for (state, body) in [
        ("fusion=adaptive", json!({})),
        ("fusion=rrf", json!({"fusion": "rrf"})),
        ("mode=dense", json!({"mode": "dense"})),
        ("mode=lexical", json!({"mode": "lexical"})),
    ] {
        shown.open(&format!("scores?q=tide&{state}"));
        shown.browser.until("document.querySelector('.hits [data-part]')");
        let read = shown.browser.value(
            "[...document.querySelectorAll('.hit')].map((hit) => ({
                score: hit.querySelector('[data-score]').dataset.score,
                parts: [...hit.querySelectorAll('[data-part]')].map((part) => part.dataset.part),
                link: hit.querySelector('a').hash }))",
        );
        let mut asked = json!({"query": "tide"});
        asked.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let hits = shown.serving.told("/v1/search", &asked)["hits"].clone();
        let (read, hits) = (read.as_array().unwrap(), hits.as_array().unwrap());
        assert_eq!(read.len(), hits.len(), "{state}");
        for (read, hit) in read.iter().zip(hits) {
            let number = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap();
            let score = hit["score"].as_f64().unwrap();
            assert!((number(&read["score"]) - score).abs() < 1e-12, "{state}: {read}");
            let sum: f64 = read["parts"].as_array().unwrap().iter().map(number).sum();
            assert!((sum - score).abs() < 1e-9, "{state}: {sum} is not {score}");
        }
        assert_eq!(shown.browser.value("document.querySelectorAll('.hit .wrong').length"), 0, "{state}");
    }
    shown.expect_quiet();
}

#[test]
fn a_lost_document_is_followed_and_one_click_brings_it_back() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    let Shown { serving, browser, .. } = &shown;
    let lost = "notes/bread.md";
    shown.open(&format!("lost?q=tide&budget=40&id={lost}"));
    browser.until("document.querySelector('.stages')");
    let answer = serving.told("/v1/explain", &json!({"id": lost, "context": {"query": "tide", "budget": 40}}));
    let told = browser.text("[data-test=lost]");
    let said = &answer["lost"];
    for words in [&said["stage"], &said["because"]] {
        assert!(told.contains(words.as_str().unwrap()), "{told} does not say {words}");
    }
    assert!(!said["changes"].as_array().unwrap().is_empty(), "the test wants a change to try: {said}");
    browser.click("[data-test=undo]");
    browser.until("document.querySelector('.citations li')");
    let cited = browser.text(".citations");
    assert!(cited.contains(lost), "{lost} is not in {cited}");
    shown.open("lost?q=tide&id=notes/bred.md");
    browser.until("document.querySelector('[data-code=unknown_document]')?.textContent.includes('notes/bread.md')");
    shown.expect_quiet();
}

#[test]
fn a_slider_assembles_what_the_command_line_assembles() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    let Shown { place, serving, browser } = &shown;
    shown.open(&format!("budget?q={QUESTION}&budget=60"));
    browser.until("document.querySelector('[data-test=tokens]')");
    browser.run("document.querySelector('[name=budget-slider]').focus()");
    browser.press(&[RIGHT, RIGHT, RIGHT]);
    browser.until(
        "location.hash.includes('budget=90') && document.querySelector('h2').textContent.includes('of 90 tokens')",
    );
    let ran = place.json(&["context", QUESTION, "--budget", "90"]);
    assert_eq!(browser.text("[data-test=tokens]"), written(&ran["n_tokens"]));
    let trace = serving.told("/v1/explain/trace", &json!({"query": QUESTION, "budget": 90}));
    let manifest = &trace["assembly"]["manifest"];
    let tokens = browser.value(
        "[...document.querySelector('figure.tokens').querySelectorAll('li')].map((bar) => Number(bar.dataset.tokens))",
    );
    let sections = manifest["sections"].as_array().unwrap().iter().map(|section| section["tokens"].clone());
    assert_eq!(tokens, Value::Array(sections.collect()));
    let records = trace["assembly"]["records"].as_array().unwrap();
    let taken = records.iter().filter(|record| record["final_decision"] == "selected").count();
    assert_eq!(browser.value("document.querySelectorAll('.taken li').length"), taken);
    let rejected = format!("Rejected: {}", records.len() - taken);
    assert_eq!(browser.text("#rejected-title"), rejected);

    browser.click(".curve summary");
    browser.until("document.querySelector('.plot')");
    let curve = serving.told("/v1/context/curve", &json!({"query": QUESTION, "budget": 4000}));
    assert!(browser.text(".plot").contains(&format!("knee: {} tokens", written(&curve["knee"]))));
    browser.click("[data-test=knee]");
    browser.until(&format!("location.hash.includes('budget={}')", curve["knee"]));
    shown.expect_quiet();
}

#[test]
fn two_settings_stand_side_by_side_and_hand_made_judgements_are_figures() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    let Shown { place, serving, browser } = &shown;
    shown.open("compare?q=tide&k=3&b_mode=lexical");
    browser.until("document.querySelectorAll('.ranked').length === 2");
    let ranked = |mode: &str| -> Vec<String> {
        let hits = serving.told("/v1/search", &json!({"query": "tide", "k": 3, "mode": mode}))["hits"].clone();
        hits.as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
    };
    let (a, b) = (ranked("hybrid"), ranked("lexical"));
    let common = a.iter().filter(|id| b.contains(id)).count();
    assert!(browser.text("[data-test=common]").starts_with(&format!("{common} of {}", a.len().max(b.len()))));
    shown.open("compare?q=tide&k=3&w=1");
    browser.until("document.querySelector('[data-test=common]')?.textContent.includes('on this page')");
    let first = browser.text("section[aria-label=B] .ranked small");
    assert!(b[0].ends_with(&first), "by words alone {} is first, not {first}", b[0]);

    shown.open("judge?q=tide");
    browser.until("document.querySelectorAll('.graded li').length > 1");
    browser.run(
        "const rows = document.querySelectorAll('.graded li');
         const grade = (n, value) => rows[n].querySelectorAll('input')[value].click();
         grade(0, 1);
         grade(1, 3);",
    );
    browser.until("document.querySelectorAll('.graded :checked').length === 2");
    browser.click("#measure-title + .tools button");
    let figure = browser.until("document.querySelector('[data-figure]')?.dataset.figure");
    let kept = browser.value("JSON.parse(localStorage.getItem('cento.judged.cento'))[0]");
    assert_eq!(kept[0], "tide");
    let grades = kept[1].as_array().unwrap().iter();
    let grades = grades.map(|pair| format!("1 0 {} {}\n", pair[0].as_str().unwrap(), pair[1]));
    place.write("qrels.txt", grades.collect::<String>());
    place.write("queries.jsonl", "{\"_id\": \"1\", \"text\": \"tide\"}\n");
    place.ok(&["run", "--topics", "queries.jsonl", "-k", "100", "--output", "run.txt", "--quiet"]);
    let judged = place.ok(&["eval", "qrels.txt", "run.txt", "-m", "nDCG@10", "--json", "--quiet"]).out;
    let value = judged.split("\"nDCG@10\":").nth(1).unwrap().split([',', '}']).next().unwrap().parse::<f64>().unwrap();
    let figure: f64 = figure.as_str().unwrap().parse().unwrap();
    assert!((value - figure).abs() < 1e-9, "{figure} {judged}");
    shown.expect_quiet();
}

#[test]
fn two_contexts_stand_side_by_side_and_what_they_share_is_counted() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    let Shown { serving, browser, .. } = &shown;
    shown.open("compare?q=tide&of=contexts&budget=160&b_budget=60&b_strategy=flat");
    browser.until("document.querySelector('[data-test=spent-1]')");
    let trace = |body: &Value| serving.told("/v1/explain/trace?rejected=0", body);
    let a = trace(&json!({"query": "tide", "budget": 160}));
    let b = trace(&json!({"query": "tide", "budget": 60, "strategy": "flat"}));
    let chunks = |trace: &Value| -> Vec<String> {
        let cited = trace["delivered"]["citations"].as_array().unwrap().iter();
        cited.flat_map(|one| one["chunks"].as_array().unwrap()).map(|id| id.as_str().unwrap().to_owned()).collect()
    };
    for (n, trace) in [&a, &b].into_iter().enumerate() {
        let told = browser.text(&format!("[data-test=spent-{n}]"));
        let budget = &trace["assembly"]["config"]["budget_tokens"];
        assert!(told.starts_with(&format!("{} of {budget} tokens", trace["delivered"]["n_tokens"])), "{told}");
        let listed = browser.value(&format!(
            "[...document.querySelectorAll('.ranked')[{n}].querySelectorAll('li')]
                .map((row) => row.querySelector('bdi').textContent + row.querySelector('small').textContent)"
        ));
        assert_eq!(listed, json!(chunks(trace)), "in the order of the context");
    }
    let of_b = chunks(&b);
    let common: Vec<String> = chunks(&a).into_iter().filter(|id| of_b.contains(id)).collect();
    assert!(!common.is_empty() && common.len() < chunks(&a).len(), "the test wants some of both");
    let records = a["assembly"]["records"].as_array().unwrap();
    let tokens = records.iter().filter(|record| common.iter().any(|id| record["chunk_id"] == *id));
    let tokens: u64 = tokens.map(|record| record["token_count"].as_u64().unwrap()).sum();
    let told = browser.text("[data-test=common]");
    assert!(told.starts_with(&format!("{} passages are common, with {tokens} tokens", common.len())), "{told}");
    browser.run("document.querySelector('[name=b_budget]').focus()");
    browser.press(&[RIGHT]);
    browser.until("document.querySelector('[data-test=spent-1]').textContent.includes('of 70 tokens')");
    browser.run("document.querySelectorAll('.tabs a')[0].click()");
    browser.until("!location.hash.includes('of=') && !document.querySelector('[data-test=spent-1]')");
    shown.expect_quiet();
}

#[test]
fn health_shows_what_status_says_and_lists_every_document() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    shown.open("health?list=1");
    shown.browser.until("document.querySelectorAll('.listed').length === 3");
    let status = shown.serving.get("/v1/collections/cento").json();
    let figures = shown.browser.value(
        "Object.fromEntries([...document.querySelectorAll('.figures div')]
            .map((pair) => [pair.firstChild.textContent, pair.lastChild.textContent]))",
    );
    for (name, of) in [("documents", "n_documents"), ("chunks", "n_chunks"), ("generation", "generation")] {
        assert_eq!(figures[name], written(&status[of]), "{name}");
    }
    shown.expect_quiet();
}

#[test]
fn the_keyboard_alone_goes_everywhere() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    let browser = &shown.browser;
    shown.open("ask?q=tide");
    browser.until("document.querySelector('.citations a')");
    let mut reached = Vec::new();
    for _ in 0..60 {
        browser.press(&[TAB]);
        let name = browser.value(
            "(({ tagName, name, ariaLabel, textContent }) =>
                tagName === 'BODY' ? tagName : (ariaLabel ?? name ?? '') || textContent.trim() || tagName
             )(document.activeElement)",
        );
        let outline = browser.value("getComputedStyle(document.activeElement).outlineStyle");
        let name = name.as_str().unwrap().to_owned();
        assert!(name == "BODY" || outline != "none", "{name} does not show that it has the focus");
        reached.push(name);
    }
    for name in [
        "To the content",
        "Scores",
        "Health",
        "q",
        "Ask",
        "budget",
        "strategy",
        "filter",
        "Copy the context",
        "The context",
        "what the budget bought",
    ] {
        assert!(reached.iter().any(|known| known == name), "{name} is not among {reached:?}");
    }
    for (digit, view) in
        ["ask", "scores", "lost", "budget", "compare", "document", "judge", "health"].into_iter().enumerate()
    {
        browser.chord(ALT, &(digit + 1).to_string());
        browser.until(&format!(
            "location.hash.startsWith('#/{view}')
                && document.querySelector('[aria-current=page]').hash.startsWith('#/{view}')"
        ));
        assert!(browser.value("document.title").as_str().unwrap().ends_with("Cento"));
    }
    shown.expect_quiet();
}

#[test]
fn hostile_documents_are_text() {
    let attack = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>\
                  <iframe src=\"javascript:alert(1)\">";
    let place = Place::new();
    place.write(
        "notes/attack.md",
        format!("# Tide {attack}\n\nThe moon {attack} moves the sea. [1] </pre>\n\n## {attack}\n\nMore tide.\n"),
    );
    place.write(
        "notes/right.md",
        "# \u{5d2}\u{5d0}\u{5d5}\u{5ea}\n\n\u{5d4}\u{5d9}\u{5dd} moves the tide \u{202e}backwards\u{202c}.\n",
    );
    place.write(
        &format!("notes/{}.md", "long".repeat(60)),
        format!("# {}\n\nThe tide of a long name.\n", "Heading".repeat(80)),
    );
    place.index(&["notes"]);
    let Some(shown) = Shown::new(place, &[]) else { return };
    let browser = &shown.browser;
    for (view, ready) in [
        ("ask", ".citations li"),
        ("scores", ".hits li"),
        ("lost", ".stages"),
        ("budget", ".taken li"),
        ("compare", ".ranked li"),
        ("document", ".block"),
        ("judge", ".graded li"),
        ("health", ".listed"),
    ] {
        for width in [360, 1440] {
            browser.look(width, "light");
            shown.open(&format!("{view}?q=tide&doc=notes/attack.md&id=notes/attack.md&list=1"));
            browser.until(&format!("document.querySelector('{ready}')"));
            browser.run("document.querySelectorAll('main details').forEach((closed) => { closed.open = true; })");
            let made = browser.value("document.querySelectorAll('main img, main script, main iframe').length");
            assert_eq!(made, 0, "{view} makes markup of a text");
            assert!(!browser.value("document.title").as_str().unwrap().contains("taken"), "{view}");
            let wide = browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth");
            assert!(wide.as_i64().unwrap() <= 0, "{view} at {width} is {wide} wider than the window");
        }
    }
    shown.open("document?doc=notes/attack.md");
    browser.until("document.querySelector('.block')?.textContent.includes('onerror')");
    shown.open(&format!("ask?q={}", "%3Cscript%3Edocument.title%3D'taken'%3C%2Fscript%3E%20tide"));
    browser.until("document.querySelector('.outcome')");
    assert_eq!(browser.value("document.querySelectorAll('main script').length"), 0);
    shown.expect_quiet();
}

#[test]
fn what_goes_wrong_is_said_in_words() {
    let place = Place::indexed();
    place.write("keys", format!("read sha256:{MOON} ann\n"));
    let Some(mut shown) = Shown::new(place, &["--api-keys", "keys"]) else { return };
    shown.open("ask?q=tide");
    shown.browser.until("document.querySelector('form[data-code=key] [name=key]')");
    shown.browser.run("document.querySelector('[name=key]').focus()");
    shown.browser.write("sun");
    shown.browser.press(&[ENTER]);
    shown.browser.until("document.querySelector('form[data-code=key]')?.textContent.includes('not known')");
    shown.browser.run("const field = document.querySelector('[name=key]'); field.focus(); field.select()");
    shown.browser.write("moon");
    shown.browser.press(&[ENTER]);
    shown.browser.until("document.querySelector('[data-test=context]')");
    let kept = shown
        .browser
        .value("[sessionStorage.getItem('cento.key'), JSON.stringify(localStorage), location.href.includes('moon')]");
    assert_eq!(kept, json!(["moon", "{}", false]), "the key is in this tab alone");

    shown.place.write("notes/more.md", "# More\n\nThe tide moves with wind too.\n");
    shown.place.index(&["notes"]);
    shown.browser.click("button.main");
    shown.browser.until("document.querySelector('.warnings')?.textContent.includes('generation 2 answers now')");
    shown.open("document?doc=notes/tides.md&at=5-9999999");
    shown.browser.until("document.querySelector('[role=alert]')?.textContent.includes('may have changed')");
    shown.open("ask?q=tide&budget=nothing");
    shown.browser.until("document.querySelector('[data-code=request]')");
    shown.open("ask?q=tide&policy={wrong");
    shown.browser.until("document.querySelector('.wrong')?.textContent.includes('not JSON')");
    shown.open("nowhere");
    shown.browser.until("document.querySelector('main .hint')?.textContent.includes('does not have')");

    shown.open("ask?q=tide");
    shown.browser.until("document.querySelector('[data-test=context]')");
    shown.serving.child.kill().unwrap();
    shown.serving.child.wait().unwrap();
    shown.browser.click("button.main");
    shown.browser.until("document.querySelector('[data-code=unreachable]')?.textContent.includes('does not answer')");
}

#[test]
fn an_empty_place_is_told() {
    let place = Place::new();
    std::fs::create_dir(place.path("all")).unwrap();
    let Some(shown) = Shown::new(place, &["--writable", "--collections", "all"]) else { return };
    shown.open("ask");
    shown.browser.until("document.querySelector('[data-test=empty] button')");
    shown.expect_quiet();
}

#[test]
fn an_empty_and_a_damaged_collection_are_told() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    shown.open("health");
    shown.browser.until("document.querySelector('.figures')");
    shown.place.ok(&["delete", "--filter", "path exists"]);
    shown.browser.open("about:blank");
    shown.open("health");
    shown.browser.until("document.querySelector('.hint')?.textContent.includes('is empty')");
    shown.open("ask?q=tide");
    shown.browser.until("document.querySelector('[data-test=outcome].nothing_relevant')");
    shown.open("scores?q=tide");
    shown.browser.until("document.querySelector('main')?.textContent.includes('Nothing was found')");
    shown.place.write(".cento/manifest.json", "{\"no\": 1}");
    shown.open("health");
    let told = shown.browser.until("document.querySelector('.problem')?.textContent");
    assert!(told.as_str().unwrap().contains("log says why"), "{told}");
}

#[test]
fn the_page_has_no_serious_fault_of_accessibility() {
    let Some(axe) = std::env::var_os("CENTO_AXE") else {
        eprintln!("skipped: CENTO_AXE names no axe.min.js (npm pack axe-core@4.14.1)");
        return;
    };
    let axe = std::fs::read_to_string(axe).unwrap();
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    for scheme in ["light", "dark"] {
        for (view, ready) in [
            ("ask", ".citations li"),
            ("scores", ".hits li"),
            ("lost", ".stages"),
            ("budget", ".plot"),
            ("compare", ".ranked li"),
            ("document", "mark.cited"),
            ("judge", ".graded li"),
            ("health", ".listed"),
        ] {
            shown.browser.look(1280, scheme);
            shown
                .open(&format!("{view}?q=tide&budget=60&curve=1&doc=notes/tides.md&at=10-60&id=notes/bread.md&list=1"));
            shown
                .browser
                .until(&format!("document.querySelector('{ready}') && !document.querySelector('.busy:not(:empty)')"));
            shown.browser.run("document.querySelectorAll('main details').forEach((closed) => { closed.open = true; })");
            shown.browser.run(&axe);
            let found = shown.browser.outcome(
                "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
                    done(violations.map(({ id, impact, nodes }) => [id, impact, nodes[0].html])))",
            );
            assert_eq!(found, json!([]), "{view}, {scheme}");
        }
    }
}

#[test]
fn the_first_sight_of_the_page_comes_soon() {
    let Some(shown) = Shown::new(Place::indexed(), &[]) else { return };
    let began = Instant::now();
    shown.open("ask");
    shown.browser.until("document.querySelector('[name=q]')");
    let paint = shown.browser.value("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0");
    let bytes = shown.browser.value(
        "[...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')]
            .reduce((sum, { transferSize }) => sum + transferSize, 0)",
    );
    eprintln!("first contentful paint {paint} ms, {bytes} bytes with headers, ready after {:?}", began.elapsed());
    assert!(bytes.as_f64().unwrap() <= 170_000.0, "{bytes} bytes");
}
