//! The server: a body of any bytes on any route is answered or refused; the failure is never its own.
#![no_main]

mod place;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{LazyLock, mpsc};
use std::thread;

use cento_engine::{Service, ServiceOptions};
use cento_server::ServerOptions;
use libfuzzer_sys::fuzz_target;

use place::Place;

/// Routes that read a body in words of their own.
const ROUTES: [&str; 16] = [
    "/v1/search",
    "/v1/search/batch",
    "/v1/context",
    "/v1/assemble",
    "/v1/assemble/trace",
    "/v1/explain/why",
    "/v1/explain/diff",
    "/v1/neighbors",
    "/v1/neighbors?k=2&scan=exact",
    "/v1/embeddings",
    "/v1/rerank",
    "/v2/rerank",
    "/rerank",
    "/embed",
    "/v1/vector_stores/notes/search",
    "/retrieval",
];

static SERVER: LazyLock<(Place, SocketAddr)> = LazyLock::new(|| {
    let place = Place::new();
    let collections = [("notes".to_owned(), place.collection())].into();
    let service = Service::new(ServiceOptions { collections, threads: 1, ..ServiceOptions::default() }).unwrap();
    let (listens, listening) = mpsc::channel();
    let options = ServerOptions { address: ([127, 0, 0, 1], 0).into(), ..ServerOptions::default() };
    thread::spawn(move || cento_server::serve(service, options, |address| listens.send(address).unwrap()).unwrap());
    (place, listening.recv().unwrap())
});

fuzz_target!(|input: (u8, &[u8])| {
    let (route, body) = input;
    let route = ROUTES[usize::from(route) % ROUTES.len()];
    let kind = if route.contains('?') { "application/octet-stream" } else { "application/json" };
    let address = SERVER.1;
    let head = format!(
        "POST {route} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).unwrap_or_default();
    assert!(status.len() == 3 && status != "500", "{route}: {answer}");
});
