//! The answers of a language model: any bytes on the line are an error, or a context within its budget.
#![no_main]

mod place;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use arbitrary::Arbitrary;
use cento_engine::{
    BudgetTokenizer, ContextSettings, Endpoint, EndpointOptions, Mode, Policy, Reach, ChunkSearch, Searcher,
    SearcherOptions, Strategy,
};
use libfuzzer_sys::fuzz_target;

use place::Place;

#[derive(Debug, Arbitrary)]
enum Input<'a> {
    /// All that is sent.
    Raw(&'a [u8]),
    /// The message of a chat completion.
    Said(&'a str),
}

struct Asked {
    #[expect(dead_code, reason = "the folder goes with it")]
    place: Place,
    searcher: Searcher,
    tokenizer: BudgetTokenizer<'static>,
    reply: Arc<Mutex<Vec<u8>>>,
    url: String,
}

static ASKED: LazyLock<Asked> = LazyLock::new(|| {
    let place = Place::new();
    let searcher = Searcher::open(place.collection(), SearcherOptions::default()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let reply: Arc<Mutex<Vec<u8>>> = Arc::default();
    let says = Arc::clone(&reply);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut buffer = [0; 1 << 16];
            let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
            let _ = stream.read(&mut buffer); // the head, and with it nearly always the body
            let reply = says.lock().unwrap().clone();
            let _ = stream.write_all(&reply);
        }
    });
    Asked { place, searcher, tokenizer: BudgetTokenizer::named("o200k").unwrap(), reply, url }
});

fuzz_target!(|input: Input<'_>| {
    let asked = &*ASKED;
    *asked.reply.lock().unwrap() = match input {
        Input::Raw(bytes) => bytes.to_vec(),
        Input::Said(said) => {
            let body = serde_json::json!({"choices": [{"message": {"content": said}}]}).to_string();
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
        }
    };
    let options = EndpointOptions {
        url: asked.url.clone(),
        model: "small".to_owned(),
        timeout: Duration::from_millis(100),
        fallback: true,
        reach: Reach::Any,
    };
    let endpoint = Endpoint::open(&options, Some("sk-secret-0123456789")).unwrap();
    let policy = Policy::default();
    let search = ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new("what does Ada Quist say of the moon") };
    let request = ContextSettings {
        strategy: Strategy::Seal,
        endpoint: Some(&endpoint),
        ..ContextSettings::new(60, &asked.tokenizer, &policy)
    };
    let context = asked.searcher.context(&search, &request).unwrap();
    assert!(context.n_tokens <= 60);
    let record = context.trace.manifest.endpoint.as_ref().unwrap();
    assert!(!serde_json::to_string(record).unwrap().contains("sk-secret-0123456789"));
});
