//! A language model beside a repair: what it brings, and whatever it does wrong.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::Place;
use crate::trace::EndpointRecord;
use crate::{
    BudgetTokenizer, ChunkSearch, Context, ContextSettings, Endpoint, EndpointOptions, Error, Mode, Policy, Reach,
    Result, SealBudget, Searcher, Strategy,
};

const QUESTION: &str = "In which town was the director of Night Train born?";
const KEY: &str = "sk-secret-0123456789";

/// The director's name is in lower case: the patterns do not see it, and without it nothing leads to the second hop.
fn two_hops() -> Place {
    let place = Place::new();
    place.write("film.md", "# Night Train\n\nNight Train is a drama film. It was directed by ada quist.\n");
    place.write("ada.md", "# ada quist\n\nada quist was born in Tromso to a baker.\n");
    for number in 0..6 {
        let text = format!("# Town {number}\n\nThe town has a station, and a director was born in town {number}.\n");
        place.write(&format!("town{number}.md"), &text);
    }
    place.index();
    place
}

/// What a server does with a request.
#[derive(Clone)]
enum Reply {
    /// A chat completion with this message.
    Say(String),
    /// A status line with its headers, and a body.
    Raw(&'static str, String),
    /// Nothing, until the test is over.
    Hang,
}

/// An endpoint on a free port, which notes what it was asked: the `Authorization` header and the body.
struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(reply: impl Fn(usize, &str) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&asked);
        let thread = std::thread::spawn(move || {
            let mut hanging = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some((authorization, body)) = request(&mut stream) else { return };
                let user = body["messages"][1]["content"].as_str().unwrap().to_owned();
                let number = notes.lock().unwrap().len();
                notes.lock().unwrap().push((authorization, body));
                let (status, body) = match reply(number, &user) {
                    Reply::Say(said) => ("200 OK", json!({"choices": [{"message": {"content": said}}]}).to_string()),
                    Reply::Raw(status, body) => (status, body),
                    Reply::Hang => {
                        hanging.push(stream);
                        continue;
                    }
                };
                let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
                // Whoever asked may have read enough.
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
            }
        });
        Self { address, asked, thread: Some(thread) }
    }

    fn options(&self) -> EndpointOptions {
        EndpointOptions {
            url: format!("http://{}/v1", self.address),
            model: "small".to_owned(),
            timeout: Duration::from_secs(20),
            fallback: false,
            reach: Reach::Any,
        }
    }

    fn n_asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Drop for Server {
    /// A connection that says nothing ends the thread.
    fn drop(&mut self) {
        drop(TcpStream::connect(self.address));
        self.thread.take().unwrap().join().unwrap();
    }
}

/// The `Authorization` header and the JSON body of a request; none of a connection that says nothing.
fn request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut buffer).unwrap();
        if n == 0 {
            return None;
        }
        bytes.extend_from_slice(&buffer[..n]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let header = |name: &str| {
            let line = head.lines().find(|line| line.to_lowercase().starts_with(name));
            line.map(|line| line[name.len()..].trim().to_owned()).unwrap_or_default()
        };
        if bytes.len() == end + 4 + header("content-length:").parse::<usize>().unwrap() {
            assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{head}");
            return Some((header("authorization:"), serde_json::from_slice(&bytes[end + 4..]).unwrap()));
        }
    }
}

/// Whether a request is for the judgement, which shows all that is kept: two passages here.
fn judges(user: &str) -> bool {
    user.matches("\npassage-").count() > 2
}

/// A model that reads well.
fn reads_well(_: usize, user: &str) -> Reply {
    let said = match (judges(user), user.contains("ada quist")) {
        (true, _) => json!({"sufficient": false, "missing": ["ada quist"]}),
        (_, true) => json!({"entities": [{"name": "ada quist", "aliases": []}, "Night Train"],
            "triples": [["Night Train", "directed by", "ada quist"]], "qualifiers": []}),
        _ => json!({"entities": [], "triples": [], "qualifiers": []}),
    };
    Reply::Say(format!("<think>{{\"entities\": [\"oh\"]}}</think>\n```json\n{said}\n```"))
}

fn context(searcher: &Searcher, endpoint: Option<&Endpoint>, calls: usize, strategy: Strategy) -> Result<Context> {
    let mut policy = Policy::default();
    (policy.seal.budget, policy.seal.calls) = (SealBudget::Items(2), calls);
    let tokenizer = BudgetTokenizer::named("o200k")?;
    let search = ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new(QUESTION) };
    let policy = &policy;
    searcher.context(&search, &ContextSettings { strategy, endpoint, ..ContextSettings::new(400, &tokenizer, policy) })
}

fn seal(searcher: &Searcher, endpoint: Option<&Endpoint>) -> Result<Context> {
    context(searcher, endpoint, 16, Strategy::Seal)
}

fn record(context: &Context) -> &EndpointRecord {
    context.trace.manifest.endpoint.as_ref().unwrap()
}

#[test]
fn a_model_that_reads_well_brings_the_second_hop_and_is_replayed_without_being_asked() {
    let place = two_hops();
    let searcher = place.searcher();
    let alone = seal(&searcher, None).unwrap();
    assert!(alone.trace.manifest.endpoint.is_none() && !alone.text.contains("Tromso"), "{}", alone.text);

    let server = Server::start(reads_well);
    let endpoint = Endpoint::open(&server.options(), Some(KEY)).unwrap();
    let with = seal(&searcher, Some(&endpoint)).unwrap();
    assert!(with.text.contains("Tromso"), "{}", with.text);
    let made = record(&with);
    assert_eq!((made.host.as_str(), made.model.as_str()), (server.address.to_string().as_str(), "small"));
    assert_eq!((made.n_calls, made.n_found, made.n_dropped, made.n_untold), (3, 4, 0, 0));
    assert!(made.fallback.is_none() && made.answers.len() == 3 && with.trace.warnings.is_empty());

    // Passages by id, then the judgement; all of it with the same settings, and the passages fenced.
    let asked = server.asked.lock().unwrap().clone();
    let users: Vec<&str> = asked.iter().map(|(_, body)| body["messages"][1]["content"].as_str().unwrap()).collect();
    assert_eq!(users.iter().map(|user| judges(user)).collect::<Vec<_>>(), [false, false, true]);
    assert!(users[0].contains("# Night Train") && users[1].contains("# Town"), "{users:?}");
    for (authorization, body) in &asked {
        assert_eq!(authorization, &format!("Bearer {KEY}"));
        assert_eq!((&body["temperature"], &body["model"]), (&json!(0), &json!("small")));
        assert_eq!((&body["seed"], &body["response_format"]["type"]), (&json!(20_250_101), &json!("json_object")));
        let user = body["messages"][1]["content"].as_str().unwrap();
        let fence = user.lines().find(|line| line.starts_with("passage-")).unwrap();
        assert!(user.starts_with(&format!("Question: {QUESTION}")) && user.matches(fence).count() == 2, "{user}");
    }

    // The same is not asked again, another endpoint with the same answers gives the same, and so does the record alone.
    assert_eq!(seal(&searcher, Some(&endpoint)).unwrap(), with);
    assert_eq!(server.n_asked(), 3);
    let again = seal(&searcher, Some(&Endpoint::open(&server.options(), None).unwrap())).unwrap();
    assert_eq!((&again, server.n_asked()), (&with, 6));
    let trace = serde_json::to_string(&with.trace).unwrap();
    assert!(!trace.contains(KEY));
    drop(server);
    assert_eq!(seal(&searcher, Some(&Endpoint::recorded(made))).unwrap(), with);
    let other = EndpointRecord { answers: made.answers[1..].to_vec(), ..made.clone() };
    let error = seal(&searcher, Some(&Endpoint::recorded(&other))).unwrap_err().to_string();
    assert!(
        error.contains("call 1 (notes/film.md#0): the trace has no answer") && error.contains("asks nobody"),
        "{error}"
    );
}

/// A server that does wrong from its `first` request on: with the fallback the answer is what it was before, and says
/// why; without, there is none.
#[track_caller]
fn check_wrong(searcher: &Searcher, first: usize, wrong: &Reply, timeout: Duration, words: &[&str]) {
    for fallback in [true, false] {
        let wrong = wrong.clone();
        let reply =
            move |number: usize, user: &str| if number < first { reads_well(number, user) } else { wrong.clone() };
        let server = Server::start(reply);
        let options = EndpointOptions { timeout, fallback, ..server.options() };
        let made = seal(searcher, Some(&Endpoint::open(&options, Some(KEY)).unwrap()));
        if !fallback {
            let error = made.unwrap_err();
            assert!(matches!(error, Error::Endpoint { .. }), "{error}");
            let error = error.to_string();
            let host = server.address.to_string();
            for word in words.iter().copied().chain([host.as_str(), "a fallback goes on with the patterns alone"]) {
                assert!(error.contains(word), "no {word:?} in {error}");
            }
            assert!(!error.contains(KEY) && error.len() < 600, "{error}");
            continue;
        }
        let made = made.unwrap();
        let why = record(&made).fallback.clone().unwrap();
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
        assert!(made.trace.warnings.iter().any(|warning| warning.contains(&why)), "{:?}", made.trace.warnings);
        assert_eq!((record(&made).n_calls, record(&made).answers.len()), (first + 1, first));
        if first == 0 {
            assert_eq!(made.text, seal(searcher, None).unwrap().text);
        }
        assert!(!serde_json::to_string(&made.trace).unwrap().contains(KEY));
        drop(server);
        assert_eq!(seal(searcher, Some(&Endpoint::recorded(record(&made)))).unwrap(), made, "a replay fails as it did");
    }
}

#[test]
fn whatever_goes_wrong_is_named_and_the_patterns_go_on_alone_only_if_allowed() {
    let place = two_hops();
    let searcher = place.searcher();
    let check = |wrong: Reply, words: &[&str]| check_wrong(&searcher, 0, &wrong, Duration::from_secs(20), words);
    let say = |said: &str| Reply::Say(said.to_owned());
    check_wrong(
        &searcher,
        0,
        &Reply::Hang,
        Duration::from_millis(200),
        &["call 1", "film.md#0", "no answer within 0.2 s"],
    );
    check(Reply::Raw("500 Internal Server Error", "{\"error\": \"out of memory\"}".into()), &["500", "out of memory"]);
    check(Reply::Raw("401 Unauthorized", format!("no such key: {KEY}")), &["401", "no such key: CENTO_ENDPOINT_KEY"]);
    check(Reply::Raw("307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/", String::new()), &["307"]);
    check(Reply::Raw("200 OK", "<html>Welcome</html>".into()), &["no chat completion", "<html>Welcome"]);
    check(Reply::Raw("200 OK", "{\"choices\": []}".into()), &["no chat completion", "choices"]);
    check(Reply::Raw("200 OK", "x".repeat(3 << 20)), &["more than 1048576 bytes"]);
    check(
        say("I am sorry, I cannot do that."),
        &["no JSON object with entities or triples or qualifiers", "I am sorry"],
    );
    check(say("{\"entities\": [\"Night Train\""), &["no JSON object", "Night Train"]);
    check(say("{\"names\": []} {}"), &["no JSON object"]);
    check(say("{\"entities\": \"Night Train\"}"), &["entities is no list but", "Night Train"]);
    check(say(&format!("It is {KEY}.")), &["It is CENTO_ENDPOINT_KEY."]);
    check_wrong(&searcher, 1, &Reply::Hang, Duration::from_millis(500), &["call 2", "town"]);
    let judged = say("{\"sufficient\": \"perhaps\"}");
    check_wrong(&searcher, 2, &judged, Duration::from_secs(20), &["call 3 (sufficiency)", "perhaps"]);

    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // nobody listens there any more
    let options = EndpointOptions { url: format!("http://{free}"), ..Server::start(reads_well).options() };
    let error = seal(&searcher, Some(&Endpoint::open(&options, None).unwrap())).unwrap_err().to_string();
    assert!(error.contains(&free.to_string()) && error.contains("cannot be reached"), "{error}");
}

#[test]
fn a_model_that_lies_changes_nothing() {
    let place = two_hops();
    let searcher = place.searcher();
    let lies = |sufficient: bool| {
        move |_: usize, user: &str| {
            let said = match judges(user) {
                true => json!({"sufficient": sufficient, "missing": ["Oslo", "Steven Spielberg"]}),
                false => json!({"entities": [{"name": "Steven Spielberg", "aliases": ["Night Train"]}, "Ada Quist", 7],
                    "triples": [["Night Train", "directed by", "Steven Spielberg"], ["a", "b"]], "qualifiers": [1946]}),
            };
            Reply::Say(said.to_string())
        }
    };
    for sufficient in [true, false] {
        let server = Server::start(lies(sufficient));
        let made = seal(&searcher, Some(&Endpoint::open(&server.options(), None).unwrap())).unwrap();
        assert_eq!(made.text, seal(&searcher, None).unwrap().text);
        let record = record(&made);
        assert!(record.fallback.is_none() && made.trace.warnings.is_empty());
        assert_eq!((record.n_found, record.n_dropped), (2 * 7 + 2, 2 * 7 + if sufficient { 0 } else { 2 }));
    }
}

#[test]
fn a_server_that_is_busy_is_asked_once_more_and_no_more_calls_are_made_than_allowed() {
    let place = two_hops();
    let searcher = place.searcher();
    let busy = || Reply::Raw("503 Service Unavailable\r\nRetry-After: 0", "busy".to_owned());
    let server = Server::start(move |number, user| if number == 0 { busy() } else { reads_well(number, user) });
    let made = seal(&searcher, Some(&Endpoint::open(&server.options(), None).unwrap())).unwrap();
    assert!(made.text.contains("Tromso") && server.n_asked() == 4 && record(&made).n_calls == 3);

    let server = Server::start(move |_, _| busy());
    let error = seal(&searcher, Some(&Endpoint::open(&server.options(), None).unwrap())).unwrap_err().to_string();
    assert!(error.contains("503 Service Unavailable: \"busy\"") && server.n_asked() == 2, "{error}");
    for pause in ["900", "18446744073709551615"] {
        let status: &str = Box::leak(format!("429 Too Many Requests\r\nRetry-After: {pause}").into_boxed_str());
        let server = Server::start(|_, _| Reply::Raw(status, "later".to_owned()));
        let error = seal(&searcher, Some(&Endpoint::open(&server.options(), None).unwrap())).unwrap_err().to_string();
        assert!(error.contains("429 Too Many Requests: \"later\"") && server.n_asked() == 1, "{error}");
    }

    // Two passages and a judgement are wanted: the judgement is made in any case, then the first passages.
    for (calls, n_untold) in [(1, 2), (2, 1), (3, 0)] {
        let server = Server::start(reads_well);
        let endpoint = Endpoint::open(&server.options(), None).unwrap();
        let made = context(&searcher, Some(&endpoint), calls, Strategy::Seal).unwrap();
        assert_eq!((server.n_asked(), record(&made).n_calls, record(&made).n_untold), (calls, calls, n_untold));
        assert_eq!(made.trace.warnings.iter().any(|warning| warning.contains("seal.calls")), n_untold > 0);
    }
}

#[test]
fn what_cannot_be_asked_is_refused_before_it_is() {
    let options = |url: &str| EndpointOptions {
        url: url.to_owned(),
        model: "small".to_owned(),
        timeout: Duration::from_secs(1),
        fallback: true,
        reach: Reach::Any,
    };
    let refused = |url: &str, key: Option<&str>| Endpoint::open(&options(url), key).unwrap_err().to_string();
    for url in ["", "localhost:8000", "ftp://localhost/v1", "http://", "/v1"] {
        assert!(refused(url, None).contains("http://localhost:8000/v1"), "{url}");
    }
    for url in ["http://me:hush@localhost/v1", "https://hush@localhost", "me:hush@localhost"] {
        let error = refused(url, None);
        assert!(error.starts_with("endpoint: ") && !error.contains("hush"), "{error}");
    }
    let error = refused("http://localhost", Some("two\nlines-of-key"));
    assert!(error.contains("CENTO_ENDPOINT_KEY") && !error.contains("lines"), "{error}");

    let place = two_hops();
    let endpoint = Endpoint::open(&options("http://localhost:9/v1?key=hush"), Some(KEY)).unwrap();
    assert_eq!(endpoint.host(), "localhost:9");
    assert!(!format!("{endpoint:?}").contains(KEY));
    let error = context(&place.searcher(), Some(&endpoint), 16, Strategy::Flat).unwrap_err().to_string();
    assert!(["localhost:9", "flat", "of no use"].iter().all(|word| error.contains(word)), "{error}");
}

#[test]
fn an_endpoint_is_asked_and_closed_inside_an_asynchronous_runtime() {
    let (place, server) = (two_hops(), Server::start(reads_well));
    let (searcher, endpoint) = (place.searcher(), Endpoint::open(&server.options(), None).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let made = runtime.block_on(async move { seal(&searcher, Some(&endpoint)) }).unwrap();
    assert!(made.text.contains("Tromso"), "{}", made.text);
}

#[test]
fn a_host_that_nobody_vouches_for_is_asked_at_a_public_address_alone() {
    let (place, server) = (two_hops(), Server::start(reads_well));
    let searcher = place.searcher();
    let port = server.address.port();
    let open = |host: &str| {
        let options =
            EndpointOptions { url: format!("http://{host}:{port}/v1"), reach: Reach::Public, ..server.options() };
        Endpoint::open(&options, Some(KEY))
    };
    for host in
        ["127.0.0.1", "127.1", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "169.254.169.254", "0.0.0.0"]
    {
        let error = open(host).unwrap_err().to_string();
        assert!(error.starts_with("endpoint ") && error.contains("no public address"), "{error}");
    }
    // A name is looked up when it is asked, and what was looked at is what is connected to.
    let error = seal(&searcher, Some(&open("localhost").unwrap())).unwrap_err().to_string();
    assert!(error.contains("cannot be reached: ") && error.contains(" is no public address"), "{error}");
    assert_eq!(server.n_asked(), 0);
}
