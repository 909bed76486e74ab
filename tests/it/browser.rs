//! A browser without a window, driven as the WebDriver standard says, over the same plain HTTP as everything here.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::serving::answer;

/// The time after which a browser that says nothing is taken to hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// The most milliseconds that a page may take to become what a test waits for.
const WAIT_MS: u64 = 60_000;

/// Switches off what a browser does for itself, so that every request is the page's.
const SWITCHES: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
];

/// Keys as the standard numbers them.
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const RIGHT: &str = "\u{e014}";
pub(crate) const ALT: &str = "\u{e00a}";

/// A browser that ends with the value.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// A browser with an empty profile, or a note that the test is skipped.
    pub(crate) fn start() -> Option<Self> {
        for program in ["chromedriver", "chromium"] {
            let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            if !found.is_ok_and(|status| status.success()) {
                eprintln!("skipped: there is no {program} (Debian: apt-get install chromium chromium-driver)");
                return None;
            }
        }
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn().unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next().expect("chromedriver ended").unwrap();
            if let Some((_, rest)) = line.split_once("successfully on port ") {
                break rest.trim_end_matches('.').parse().unwrap();
            }
        };
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let mut browser = Self { driver, port, session: String::new() };
        let options = json!({"args": SWITCHES});
        let logs = json!({"browser": "ALL", "performance": "ALL"});
        let wanted = json!({"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logs});
        let begun = browser.command("POST", "/session", &json!({"capabilities": {"alwaysMatch": wanted}}));
        browser.session = begun["sessionId"].as_str().unwrap().to_owned();
        browser.ask("/timeouts", &json!({"script": WAIT_MS}));
        Some(browser)
    }

    #[track_caller]
    fn command(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let answer = answer(&received(&mut stream));
        assert_eq!(answer.status, 200, "{method} {path} {body}: {}", answer.text());
        answer.json()["value"].clone()
    }

    #[track_caller]
    fn ask(&self, path: &str, body: &Value) -> Value {
        self.command("POST", &format!("/session/{}{path}", self.session), body)
    }

    /// Opens an address.
    #[track_caller]
    pub(crate) fn open(&self, address: &str) {
        self.ask("/url", &json!({"url": address}));
    }

    /// Goes back as the button does.
    #[track_caller]
    pub(crate) fn back(&self) {
        self.ask("/back", &json!({}));
    }

    /// The value of an expression on the page.
    #[track_caller]
    pub(crate) fn value(&self, expression: &str) -> Value {
        self.ask("/execute/sync", &json!({"script": format!("return ({expression})"), "args": []}))
    }

    /// Runs statements on the page.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) {
        self.ask("/execute/sync", &json!({"script": script, "args": []}));
    }

    /// The outcome of statements that call `done`.
    #[track_caller]
    pub(crate) fn outcome(&self, script: &str) -> Value {
        let script = format!("const done = arguments[arguments.length - 1]; {script}");
        self.ask("/execute/async", &json!({"script": script, "args": []}))
    }

    /// Waits until an expression is true on the page, and gives its value.
    #[track_caller]
    pub(crate) fn until(&self, expression: &str) -> Value {
        let limit = WAIT_MS / 2;
        let found = self.outcome(&format!(
            "const began = performance.now();
             const look = () => {{
                 let value;
                 try {{ value = ({expression}); }} catch {{ value = null; }}
                 if (value) done({{ value }});
                 else if (performance.now() - began > {limit}) done({{ text: document.body.innerText }});
                 else setTimeout(look, 20);
             }};
             look();"
        ));
        assert!(found.get("value").is_some(), "{expression} does not come to be; the page says: {}", found["text"]);
        found["value"].clone()
    }

    /// The text of the one element that a selector names.
    #[track_caller]
    pub(crate) fn text(&self, selector: &str) -> String {
        let text = self.value(&format!("document.querySelector({})?.textContent", json!(selector)));
        text.as_str().unwrap_or_else(|| panic!("nothing is {selector}")).to_owned()
    }

    /// Clicks the first element that a selector names.
    #[track_caller]
    pub(crate) fn click(&self, selector: &str) {
        self.run(&format!("document.querySelector({}).click()", json!(selector)));
    }

    /// Chooses files for the one field of files there is.
    #[track_caller]
    pub(crate) fn choose(&self, files: &[&std::path::Path]) {
        let found = self.ask("/element", &json!({"using": "css selector", "value": "input[type=file]"}));
        let id = found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        self.ask(&format!("/element/{id}/value"), &json!({"text": names.join("\n")}));
    }

    /// Keeps the texts of files that the page offers, in `saved`.
    #[track_caller]
    pub(crate) fn keep_saved(&self) {
        self.run(
            "window.saved = [];
             const make = URL.createObjectURL;
             URL.createObjectURL = (blob) => { blob.text().then((text) => saved.push(text)); return make(blob); };",
        );
    }

    /// Presses keys one after the other, as fingers do.
    #[track_caller]
    pub(crate) fn press(&self, keys: &[&str]) {
        let strokes = keys.iter().flat_map(|key| [("keyDown", *key), ("keyUp", *key)]);
        self.strike(strokes.map(|(kind, key)| json!({"type": kind, "value": key})).collect());
    }

    /// Presses a key while another is held.
    #[track_caller]
    pub(crate) fn chord(&self, held: &str, key: &str) {
        let strokes = [("keyDown", held), ("keyDown", key), ("keyUp", key), ("keyUp", held)];
        self.strike(strokes.map(|(kind, key)| json!({"type": kind, "value": key})).to_vec());
    }

    #[track_caller]
    fn strike(&self, strokes: Vec<Value>) {
        self.ask("/actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]}));
    }

    /// Types a text letter by letter into what has the focus.
    #[track_caller]
    pub(crate) fn write(&self, text: &str) {
        let letters: Vec<String> = text.chars().map(String::from).collect();
        self.press(&letters.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Gives the window a width, and the page a scheme of colours.
    #[track_caller]
    pub(crate) fn look(&self, width: u32, scheme: &str) {
        let cdp = |command: &str, parameters: Value| {
            self.ask("/goog/cdp/execute", &json!({"cmd": command, "params": parameters}));
        };
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        cdp("Emulation.setDeviceMetricsOverride", size);
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        cdp("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Complaints of the browser so far, as a policy that was broken or a script that failed.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let entries = self.ask("/se/log", &json!({"type": "browser"}));
        entries.as_array().unwrap().iter().map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
    }

    /// The addresses that were asked so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        let entries = self.ask("/se/log", &json!({"type": "performance"}));
        let messages = entries.as_array().unwrap().iter().map(|entry| entry["message"].as_str().unwrap());
        let events = messages.map(|message| serde_json::from_str::<Value>(message).unwrap()["message"].clone());
        let sent = events.filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.map(|event| event["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }
}

/// The bytes of an answer, up to the length that its head names: the driver's children hold its connections open.
fn received(stream: &mut TcpStream) -> Vec<u8> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 64 << 10]);
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).expect("a length");
            if bytes.len() >= end + 4 + length.trim().parse::<usize>().unwrap() {
                return bytes;
            }
        }
        let n_read = stream.read(&mut buffer).unwrap();
        assert!(n_read > 0, "the driver ended its answer early");
        bytes.extend_from_slice(&buffer[..n_read]);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.command("DELETE", &format!("/session/{}", self.session), &Value::Null);
        }
        let _ = self.driver.kill(); // its browser ends with it
        let _ = self.driver.wait();
    }
}
