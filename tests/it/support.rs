//! Runs `cento` in a folder of its own, with the tiny encoder and no setting from outside.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The binary of this build.
pub(crate) fn binary() -> PathBuf {
    let test = std::env::current_exe().unwrap(); // target/<profile>/deps/it-…
    let binary = test.parent().unwrap().parent().unwrap().join("cento");
    assert!(binary.is_file(), "{} is not built: cargo build --workspace", binary.display());
    binary
}

/// The encoder of the default tests: random weights, real files.
pub(crate) fn tiny_model() -> String {
    root().join("models/tiny").display().to_string()
}

/// A folder with a corpus and a collection, removed with the value.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A place with a small corpus of Markdown in `notes`, indexed.
    pub(crate) fn indexed() -> Self {
        let place = Self::new();
        place.write_notes();
        place.index(&["notes"]);
        place
    }

    pub(crate) fn write_notes(&self) {
        self.write("notes/tides.md", TIDES);
        self.write("notes/bread.md", BREAD);
        self.write(
            "notes/sub/stars.txt",
            "Stars are born in clouds of gas. The nearest star is the sun.\n\nA star ends as a dwarf.\n",
        );
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Writes the user's own settings file.
    pub(crate) fn write_settings(&self, content: impl AsRef<[u8]>) {
        self.write(&format!("{CONFIG}/cento/cento.toml"), content);
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// `cento` with no CENTO variable but those that tests rely on.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&binary(), arguments)
    }

    /// Another program of this build, with the same environment.
    pub(crate) fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CENTO") && name != "CENTO_SIMD" {
                command.env_remove(name);
            }
        }
        command
            .env("CENTO_MODELS", self.path("models"))
            .env("CENTO_CACHE", self.path("cache"))
            .env("XDG_CONFIG_HOME", self.path(CONFIG))
            .env("XDG_DATA_HOME", self.path(DATA))
            .current_dir(self.folder.path())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::new(arguments, self.command(arguments).output().unwrap())
    }

    /// Runs and expects success.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    }

    /// Runs with `--json` and expects success.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.ok(&[arguments, &["--json"]].concat());
        let value: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        assert!(value["version"].is_u64(), "every JSON answer has a version: {value}");
        value
    }

    /// Indexes with the tiny encoder; the answer is the report.
    #[track_caller]
    pub(crate) fn index(&self, arguments: &[&str]) -> Value {
        let model = tiny_model();
        self.json(&[&["index", "--model", &model], arguments].concat())
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    #[expect(dead_code, reason = "shown when a test fails")]
    pub(crate) arguments: Vec<String>,
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn new(arguments: &[&str], output: Output) -> Self {
        Self {
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Expects this exit code and these words in the message.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in {self:?}");
        }
        assert!(!self.err.contains("panicked"), "{self:?}");
    }
}

/// A language model on a free port of this machine, which answers as it is told and notes what it heard.
pub(crate) struct Server {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers every request with this message.
    pub(crate) fn says(message: &str) -> Self {
        Self::answers("200 OK", &json!({"choices": [{"message": {"content": message}}]}).to_string())
    }

    /// Answers every request with this status, its headers, and this body.
    pub(crate) fn answers(status: &str, body: &str) -> Self {
        let (status, body) = (status.to_owned(), body.to_owned());
        Self::replies(move |_| (status.clone(), body.clone()))
    }

    /// Answers with the status and the body that are made of a request's body.
    pub(crate) fn replies(reply: impl Fn(&Value) -> (String, String) + Send + 'static) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut bytes) = (stream.unwrap(), Vec::new());
                while !is_whole(&bytes) {
                    let mut buffer = [0; 4096];
                    match stream.read(&mut buffer) {
                        Ok(n @ 1..) => bytes.extend_from_slice(&buffer[..n]),
                        Ok(0) | Err(_) => break, // whoever asked was killed
                    }
                }
                let request = String::from_utf8_lossy(&bytes).into_owned();
                let Some(asked) =
                    request.split_once("\r\n\r\n").and_then(|(_, asked)| serde_json::from_str(asked).ok())
                else {
                    continue;
                };
                let (status, body) = reply(&asked);
                notes.lock().unwrap().push(request);
                let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}", body.len());
                // Whoever asked may have read enough.
                let _ = stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes());
            }
        });
        Self { url, heard }
    }

    /// The requests so far, heads and bodies.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_some_and(|length| body.len() == length.parse::<usize>().unwrap())
}

/// The folder of evaluation data, or a note that the test is skipped.
pub(crate) fn data(set: &str) -> Option<PathBuf> {
    let folder =
        std::env::var_os("CENTO_DATA").map(|data| PathBuf::from(data).join(set)).filter(|folder| folder.is_dir());
    if folder.is_none() {
        eprintln!("skipped: CENTO_DATA names no folder with {set}");
    }
    folder
}

/// The folder of the default encoder, or a note that the test is skipped.
pub(crate) fn default_model() -> Option<String> {
    let folder = std::env::var("CENTO_MODEL_DIR").ok();
    if folder.is_none() {
        eprintln!("skipped: CENTO_MODEL_DIR names no encoder");
    }
    folder
}

/// Where a place has the user's settings and data.
const CONFIG: &str = "user/config";
const DATA: &str = "user/data";

pub(crate) const TIDES: &str = "---\ntitle: Tides\nauthor: A. Sailor\n---\n# Tides\n\nThe tide rises and falls twice a day. Sailors watch it.\n\n## Causes\n\nThe moon pulls the sea. The sun pulls it too, with less force.\n\n### Spring tides\n\nWhen sun and moon stand in line, the tide is highest.\n\n## Measuring\n\nA gauge writes the height of the water every minute.\n";

pub(crate) const BREAD: &str = "# Bread\n\nBread is flour, water, salt and time.\n\n## Sourdough\n\nA sourdough starter holds wild yeast. Feed the starter every day.\n\n## Baking\n\n| loaf | minutes |\n|---|---|\n| small | 30 |\n| large | 45 |\n\nBake until the crust is brown.\n";
