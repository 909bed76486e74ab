//! A hub on the loopback: its routes, its content network on another port, and its moods.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use sha2::Digest as _;

/// The commit that every revision of the hub's one repository stands for.
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// The repository.
pub(crate) const REPOSITORY: &str = "Some-Org/Tiny.Model";

/// How the hub answers the next request whose address has this in it.
#[derive(Debug, Clone)]
pub(crate) enum Mood {
    /// With a status, headers and nothing else.
    Status(&'static str),
    /// Ends the connection after so many bytes of the file.
    Cut(usize),
    /// With these bytes, whatever is asked for.
    Other(Vec<u8>),
    /// With bytes that do not end.
    Endless,
}

/// What a client asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) of_network: bool,
    pub(crate) line: String,
    pub(crate) token: Option<String>,
    pub(crate) range: Option<String>,
}

/// A running hub.
pub(crate) struct Hub {
    pub(crate) address: String,
    state: Arc<State>,
}

struct State {
    files: Mutex<Vec<(String, Vec<u8>)>>,
    listing: Mutex<Option<Value>>,
    moods: Mutex<VecDeque<(String, Mood)>>,
    asked: Mutex<Vec<Asked>>,
    network: Mutex<String>,
}

impl Hub {
    /// A hub with one repository, of these files.
    pub(crate) fn new(files: Vec<(String, Vec<u8>)>) -> Self {
        let state = Arc::new(State {
            files: Mutex::new(files),
            listing: Mutex::default(),
            moods: Mutex::default(),
            asked: Mutex::default(),
            network: Mutex::default(),
        });
        let address = listen(&state, false);
        *state.network.lock().unwrap() = listen(&state, true);
        Self { address, state }
    }

    /// The files of a folder of the repository, but for golden ones.
    pub(crate) fn of_folder(folder: &Path) -> Self {
        let mut files = Vec::new();
        read(folder, "", &mut files);
        files.push(("README.md".to_owned(), b"# A model\n".to_vec()));
        files.push(("pytorch_model.bin".to_owned(), b"a pickle".to_vec()));
        Self::new(files)
    }

    /// Answers the next request with `part` in its address so; one after the other, if there are several.
    pub(crate) fn next(&self, part: &str, mood: Mood) {
        self.state.moods.lock().unwrap().push_back((part.to_owned(), mood));
    }

    /// Changes the files.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Vec<(String, Vec<u8>)>)) {
        change(&mut self.state.files.lock().unwrap());
    }

    /// Changes what the listing says.
    pub(crate) fn change_listing(&self, change: impl FnOnce(&mut Value)) {
        let mut listing = self.listing();
        change(&mut listing);
        *self.state.listing.lock().unwrap() = Some(listing);
    }

    pub(crate) fn listing(&self) -> Value {
        listing(&self.state)
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }
}

fn read(folder: &Path, prefix: &str, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
        if entry.path().is_dir() {
            read(&entry.path(), &format!("{name}/"), files);
        } else if !name.contains("golden") {
            files.push((name, std::fs::read(entry.path()).unwrap()));
        }
    }
}

fn listing(state: &State) -> Value {
    if let Some(listing) = &*state.listing.lock().unwrap() {
        return listing.clone();
    }
    let files = state.files.lock().unwrap();
    let siblings = files.iter().map(|(name, content)| {
        let blob = git_sha1(content);
        match is_large(name) {
            true => json!({"rfilename": name, "size": content.len(), "blobId": blob,
                "lfs": {"sha256": sha256(content), "size": content.len(), "pointerSize": 134}}),
            false => json!({"rfilename": name, "size": content.len(), "blobId": blob}),
        }
    });
    json!({"id": REPOSITORY, "sha": COMMIT, "gated": false, "private": false,
        "cardData": {"license": "apache-2.0"}, "siblings": siblings.collect::<Vec<_>>()})
}

fn is_large(name: &str) -> bool {
    name.ends_with(".safetensors")
}

pub(crate) fn sha256(content: &[u8]) -> String {
    sha2::Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn git_sha1(content: &[u8]) -> String {
    let mut hash = sha1::Sha1::new();
    hash.update(format!("blob {}\0", content.len()));
    hash.update(content);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Listens on a port of its own; gives back the address.
fn listen(state: &Arc<State>, of_network: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let state = state.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let state = state.clone();
            thread::spawn(move || answer(stream, &state, of_network));
        }
    });
    address
}

/// One request a connection. A client that hangs up early shows in its own result.
fn answer(mut stream: TcpStream, state: &State, of_network: bool) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(line) = lines.next() else { return }; // the probe connects and says nothing
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let header = |name: &str| {
        let found = headers.iter().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        });
        found
    };
    let (range, token) = (header("range"), header("authorization"));
    state.asked.lock().unwrap().push(Asked { of_network, line: line.clone(), token, range: range.clone() });
    let is_head = line.starts_with("HEAD");
    let path = line.split(' ').nth(1).unwrap().split('?').next().unwrap().to_owned();
    let mood = if is_head { None } else { take_mood(state, &path, of_network) };
    let mut send = |head: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(if is_head { b"" } else { body });
    };
    let content = match file(state, &path, of_network) {
        _ if matches!(mood, Some(Mood::Status(_))) => {
            let Some(Mood::Status(head)) = mood else { return };
            return send(head, b"");
        }
        _ if path.starts_with("/api/") && mood.is_none() => {
            let json = listing(state).to_string();
            return if path.contains(REPOSITORY) {
                send("200 OK", json.as_bytes())
            } else {
                send("404 Not Found", b"")
            };
        }
        Some((name, content)) if is_large(&name) && !of_network => {
            let network = state.network.lock().unwrap().clone();
            let (n_bytes, sha256) = (content.len(), sha256(&content));
            return send(
                &format!(
                    "302 Found\r\nlocation: {network}/{name}?Signature=secret\r\nx-linked-size: {n_bytes}\r\n\
                     x-linked-etag: \"{sha256}\"\r\nx-repo-commit: {COMMIT}"
                ),
                b"",
            );
        }
        Some((_, content)) => content,
        None if mood.is_some() => Vec::new(),
        None => return send("404 Not Found", b""),
    };
    let content = if let Some(Mood::Other(other)) = &mood { other.clone() } else { content };
    let from = range.and_then(|range| range.strip_prefix("bytes=")?.split('-').next()?.parse().ok()).unwrap_or(0);
    let rest = &content[usize::min(from, content.len())..];
    let head = match from {
        0 => "200 OK".to_owned(),
        _ => format!(
            "206 Partial Content\r\ncontent-range: bytes {from}-{}/{}",
            content.len().saturating_sub(1),
            content.len()
        ),
    };
    match mood {
        Some(Mood::Cut(n_bytes)) => {
            let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", rest.len());
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(&rest[..n_bytes.min(rest.len())]);
        }
        Some(Mood::Endless) => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
            while stream.write_all(&[b' '; 1 << 16]).is_ok() {}
        }
        _ => send(&head, rest),
    }
}

/// The file of an address, on the hub or on its content network.
fn file(state: &State, path: &str, of_network: bool) -> Option<(String, Vec<u8>)> {
    let prefix = if of_network { "/".to_owned() } else { format!("/{REPOSITORY}/resolve/{COMMIT}/") };
    let name = path.strip_prefix(&prefix)?;
    state.files.lock().unwrap().iter().find(|(known, _)| known == name).cloned()
}

/// Takes the first mood for an address; one for a large file is the network's.
fn take_mood(state: &State, path: &str, of_network: bool) -> Option<Mood> {
    if is_large(path) && !of_network {
        return None;
    }
    let mut moods = state.moods.lock().unwrap();
    let at = moods.iter().position(|(part, _)| path.contains(part.as_str()))?;
    moods.remove(at).map(|(_, mood)| mood)
}
