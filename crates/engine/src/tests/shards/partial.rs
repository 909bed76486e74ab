//! A collection behind servers that come and go: whole answers, answers that say what is missing, or errors.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{cut, whole};
use crate::api::{ContextRequest, ReplayRequest, SearchRequest, WhyRequest};
use crate::source::local::Local;
use crate::source::remote::served;
use crate::source::seam::Source as _;
use crate::{
    At, Cancel, Error, Pooling, Searcher, SearcherOptions, Service, ServiceOptions, ShardOptions, ShardPlaces, Strategy,
};

/// A server of one collection, as plain as can be; it ends with the value.
struct Server {
    address: String,
    is_closed: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    fn start(folder: &Path, address: &str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (is_closed, streams) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<TcpStream>>>::default());
        let (ends, kept, folder) = (Arc::clone(&is_closed), Arc::clone(&streams), folder.to_owned());
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                kept.lock().unwrap().push(stream.try_clone().unwrap());
                let folder = folder.clone();
                std::thread::spawn(move || while answered(&stream, &folder).is_some() {});
            }
        });
        Self { address, is_closed, streams, accepting: Some(accepting) }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(&self.address);
        self.accepting.take().unwrap().join().unwrap();
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Answers the next request of a connection; nothing where there is none.
fn answered(mut stream: &TcpStream, folder: &Path) -> Option<()> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        read(stream, &mut bytes)?;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
    while bytes.len() < end + length {
        read(stream, &mut bytes)?;
    }
    let source = Local::open(folder, &At::Current).unwrap();
    let answer = served::answer(&source, source.describe().clone(), &bytes[end..], &Cancel::default());
    let (status, body) = match answer {
        Ok(body) => ("200 OK", body),
        Err(error) => {
            ("400 Bad Request", format!(r#"{{"error": {{"message": {:?}}}}}"#, error.to_string()).into_bytes())
        }
    };
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len()).ok()?;
    stream.write_all(&body).ok()
}

fn read(mut stream: &TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut some = [0; 4096];
    let n = stream.read(&mut some).ok().filter(|n| *n > 0)?;
    bytes.extend_from_slice(&some[..n]);
    Some(())
}

fn service(urls: Vec<String>) -> crate::Result<Service> {
    let (places, timeout) = (ShardPlaces::Listed(urls), Duration::from_secs(120));
    let shards = ShardOptions { places, key: None, timeout };
    Service::new(ServiceOptions { shards: [("all".to_owned(), shards)].into(), ..ServiceOptions::default() })
}

fn asked() -> (SearchRequest, ContextRequest) {
    let (search, context) = (SearchRequest::new("the tide and the moon"), ContextRequest::new("the tide and the moon"));
    (SearchRequest { k: 50, ..search }, ContextRequest { strategy: Strategy::Cento, ..context })
}

#[test]
fn an_answer_without_some_shards_says_so_and_is_that_of_the_others() {
    let place = whole(Pooling::Plain);
    let folders: Vec<PathBuf> = cut(&place, 3, Pooling::Plain);
    let mut servers: Vec<Server> = folders.iter().map(|folder| Server::start(folder, "127.0.0.1:0")).collect();
    let service = service(servers.iter().map(Server::url).collect()).unwrap();
    let cancel = Cancel::default();
    let (search, context) = asked();
    let (partly, partly_context) = (
        SearchRequest { allow_partial: true, ..search.clone() },
        ContextRequest { allow_partial: true, ..context.clone() },
    );
    let json = |response: &crate::SearchResponse| serde_json::to_value(&response.hits).unwrap();
    let complete = service.search("all", &search, &cancel).unwrap();
    let same = service.search("all", &partly, &cancel).unwrap();
    assert_eq!((json(&complete), &complete.missing, &complete.warnings), (json(&same), &same.missing, &same.warnings));
    assert!(same.missing.is_empty());

    let gone = servers.pop().unwrap();
    let (url, address) = (gone.url(), gone.address.clone());
    drop(gone);
    for error in [
        service.search("all", &search, &cancel).map(|_| ()).unwrap_err(),
        service.context("all", &context, &cancel).map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(&error, Error::Shard { shard, .. } if *shard == url), "{error}");
    }
    let others = Searcher::open_shards(&folders[..2], SearcherOptions::default()).unwrap();
    let found = service.search("all", &partly, &cancel).unwrap();
    assert_eq!(json(&found), json(&others.search(&search.resolve().unwrap()).unwrap()));
    assert_ne!(json(&found), json(&complete));
    assert_eq!((found.missing.len(), &found.missing[0].shard), (1, &url));
    assert!(found.missing[0].why.contains("cannot be reached"), "{:?}", found.missing);
    assert_eq!(found.warnings.iter().filter(|warning| warning.contains(&url)).count(), 1, "{:?}", found.warnings);

    let answer = service.context("all", &partly_context, &cancel).unwrap();
    assert_eq!(answer.missing, found.missing);
    assert!(answer.certificate.is_none_or(|certificate| certificate.of_part));
    let trace = service.trace("all", &partly_context, &cancel).unwrap();
    assert_eq!(trace.collection.missing, found.missing);
    assert!(trace.assembly.manifest.certificate.as_ref().is_none_or(|certificate| certificate.of_part));
    let id = trace.assembly.records[0].chunk_id.clone();
    let replayed = service.replay("all", &ReplayRequest { trace: trace.clone(), on: Default::default() }, &cancel);
    assert!(matches!(&replayed, Err(Error::PartTraced { missing }) if *missing == [url.clone()]), "{replayed:?}");

    let back = Server::start(&folders[2], &address);
    let again = service.search("all", &partly, &cancel).unwrap();
    assert_eq!((json(&again), again.missing.len()), (json(&complete), 0));
    let why = service.why("all", &WhyRequest { id, trace }, &cancel).unwrap();
    assert!(why.untried.as_ref().is_some_and(|untried| untried.contains(&url)), "{:?}", why.untried);

    drop((back, servers));
    let none = service.search("all", &partly, &cancel);
    assert!(matches!(none, Err(Error::Shard { .. })), "nothing is no part");
}

#[test]
fn one_shard_under_two_names_is_refused() {
    let place = whole(Pooling::Plain);
    let server = Server::start(&place.collection(), "127.0.0.1:0");
    let (url, by_name) = (server.url(), server.url().replace("127.0.0.1", "localhost"));
    let refused = |urls: &[&String]| {
        let service = service(urls.iter().map(|url| (*url).clone()).collect())?;
        service.search("all", &asked().0, &Cancel::default()).map(|_| ())
    };
    for (urls, words) in [
        ([&url, &url], "is named twice".to_owned()),
        ([&url, &format!("{url}/")], format!("is {url}")),
        ([&url, &by_name], format!("has the same collection as {url}; name it once, or as a replica: {url}|…")),
    ] {
        let error = refused(&urls).unwrap_err();
        assert!(matches!(&error, Error::Setting { setting: "shards", reason, .. } if *reason == words), "{error}");
    }
    refused(&[&url]).unwrap();
}
