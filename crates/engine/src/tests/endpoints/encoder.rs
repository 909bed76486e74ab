//! An encoder at an endpoint that is used for long: the model is held against its probes again and again.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use super::{Place, QuickFs};
use crate::{Cancel, ChunkSearch, EncoderAccess, EndpointSettings, Error, IndexOptions, Searcher, SearcherOptions};

/// An endpoint on a free port whose model changes when it is told to, and which answers a request of texts if
/// `is_answered` says so; it ends with the process.
fn server(is_changed: &Arc<AtomicBool>, is_answered: impl Fn() -> bool + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let model = format!("openai:any@http://{}", listener.local_addr().unwrap());
    let is_changed = Arc::clone(is_changed);
    std::thread::spawn(move || {
        let mut hanging = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let shift = if is_changed.load(Ordering::Relaxed) { 2.0 } else { 0.0 };
            let asked = request(&mut stream);
            let is_probe = asked["input"][0].as_str().unwrap().starts_with("The tide rises twice a day because");
            if !is_probe && !is_answered() {
                hanging.push(stream);
                continue;
            }
            let vector = |text: &Value| {
                let sum: u32 = text.as_str().unwrap().bytes().map(u32::from).sum();
                let angle = f64::from(sum) + shift;
                json!({ "embedding": [angle.sin() * angle.cos(), angle.sin() * angle.sin(), angle.cos()] })
            };
            let data: Vec<Value> = asked["input"].as_array().unwrap().iter().map(vector).collect();
            let body = json!({ "data": data }).to_string();
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    model
}

fn request(stream: &mut TcpStream) -> Value {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some(asked) = text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok()) {
            return asked;
        }
        assert!(n > 0, "{text}");
    }
}

#[test]
fn a_model_that_changes_while_a_collection_is_open_is_an_error() {
    let is_changed = Arc::new(AtomicBool::new(false));
    let model = Some(server(&is_changed, || true));
    let place = Place::new();
    place.write("tides.md", "# Tides\n\nThe moon pulls the sea.\n");
    let options = IndexOptions { model: model.clone(), ..place.options() };
    place.index_with(&options, &QuickFs).unwrap();
    let searcher = Searcher::open(place.collection(), SearcherOptions { model, ..SearcherOptions::default() }).unwrap();
    searcher.search(&ChunkSearch::new("moon")).unwrap();
    is_changed.store(true, Ordering::Relaxed);
    let error = searcher.search(&ChunkSearch::new("moon")).unwrap_err();
    assert!(matches!(error, Error::EncoderChanged { cosine, .. } if cosine < 0.999), "{error}");
    is_changed.store(false, Ordering::Relaxed);
    searcher.search(&ChunkSearch::new("moon")).unwrap();
}

#[test]
fn a_run_that_is_cancelled_does_not_wait_for_the_answer() {
    let place = Place::new();
    place.write("tides.md", "# Tides\n\nThe moon pulls the sea.\n");
    let cancel = Cancel::new();
    let asked = cancel.clone();
    let model = Some(server(&Arc::default(), move || {
        asked.cancel();
        false
    }));
    let endpoint = EndpointSettings { window_tokens: Some(64), ..EndpointSettings::default() };
    let options = IndexOptions { model, endpoint, cancel, ..place.options() };
    let start = Instant::now();
    let error = place.index_with(&options, &QuickFs).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    assert!(start.elapsed() < EncoderAccess::default().timeout, "the request was given up");
}
