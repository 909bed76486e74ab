//! Runs `cento serve`, and asks it as the plainest client does: bytes over a socket.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::support::Place;

/// The time after which a server that says nothing is taken to hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server that ends with the value.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) address: String,
    log: Arc<Mutex<Vec<String>>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {} {}", self.head, self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Expects a refusal of this status and code, in the form of all refusals; the answer is its words.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{} {}", self.head, self.text());
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.head);
        let error = &self.json()["error"];
        assert_eq!(error["code"], code, "{error}");
        assert!(error["message"].is_string(), "{error}");
        for key in ["parameter", "hint"] {
            assert!(error.get(key).is_some_and(|value| value.is_null() || value.is_string()), "{error}");
        }
        error.to_string()
    }
}

impl Serving {
    /// A server of the collection of a place, on a free port.
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        let anywhere: &[&str] = if arguments.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let serve = [&["serve"], anywhere, arguments].concat();
        Self::of(place.command(&serve))
    }

    /// A server that a command starts.
    pub(crate) fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("the server ended").unwrap();
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.split(' ').next().unwrap().to_owned();
            }
        };
        let log = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&log);
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| notes.lock().unwrap().push(line)));
        Self { child, address, log }
    }

    /// The lines of the log so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends bytes as they are, and reads what comes until the server closes.
    pub(crate) fn raw(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        let _ = stream.write_all(request); // the server may have refused before the end
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// A request with headers of its own.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        answer(&self.raw(&[head.as_bytes(), b"\r\n", body].concat()))
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], b"")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    }

    /// The answer to a request that succeeds.
    #[track_caller]
    pub(crate) fn told(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body);
        assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
        answer.json()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The parts of an answer, its body in one piece.
#[track_caller]
pub(crate) fn answer(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head in {:?}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let rest = &bytes[end + 4..];
    Answer { status, head, body: if is_chunked { joined(rest) } else { rest.to_vec() } }
}

fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = chunks.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&chunks[..end]).unwrap(), 16).unwrap();
        whole.extend_from_slice(&chunks[end + 2..end + 2 + length]);
        chunks = &chunks[end + 4 + length..];
    }
    whole
}
