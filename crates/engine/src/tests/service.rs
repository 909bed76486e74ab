//! One service, many threads: the answers of one at a time, the newest generation, and an end to what nobody wants any
//! more.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::api::{Budget, ContextRequest, EmbedRequest, GetRequest, ListRequest, TextKind, WhyNotRequest};
use crate::{Cancel, Error, Service, ServiceOptions, api};

fn tides() -> (Place, Service) {
    let place = Place::new();
    place.write("moon.txt", "The moon pulls the sea. Twice a day the tide rises.\n");
    place.write("bread.txt", "Rye bread needs a sour dough and a hot oven.\n");
    place.write("marsh.txt", "Salt marshes are flooded by spring tides alone.\n");
    place.index();
    let service = Service::new(options(&place)).unwrap();
    (place, service)
}

fn options(place: &Place) -> ServiceOptions {
    let collections = BTreeMap::from([("notes".to_owned(), place.collection())]);
    ServiceOptions { collections, threads: 1, ..ServiceOptions::default() }
}

/// Everything a service says to one question, as JSON.
fn said(service: &Service, query: &str) -> String {
    let cancel = Cancel::default();
    let search = api::SearchRequest { explain: true, ..api::SearchRequest::new(query) };
    let context = ContextRequest { budget: Budget::Auto(300), ..ContextRequest::new(query) };
    let why_not = WhyNotRequest { id: "notes/bread.txt".to_owned(), context: context.clone() };
    let embed = EmbedRequest { texts: vec![query.to_owned()], kind: TextKind::Query };
    [
        serde_json::to_string(&service.search("notes", &search, &cancel).unwrap()),
        serde_json::to_string(&service.context("notes", &context, &cancel).unwrap()),
        serde_json::to_string(&service.why_not("notes", &why_not, &cancel).unwrap()),
        serde_json::to_string(&service.embed("notes", &embed, &cancel).unwrap()),
    ]
    .map(Result::unwrap)
    .join("\n")
}

#[test]
fn threads_at_once_get_the_answers_of_one_at_a_time() {
    let (place, service) = tides();
    let queries: Vec<String> = ["moon", "the tide rises", "salt and bread", "spring tides", "oven"]
        .iter()
        .flat_map(|words| (0..4).map(move |n| format!("{words} {}", "sea ".repeat(n))))
        .collect();
    let alone: Vec<String> = queries.iter().map(|query| said(&service, query)).collect();
    let fresh = Service::new(options(&place)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (queries, alone, fresh) = (&queries, &alone, &fresh);
            scope.spawn(move || {
                for n in 0..queries.len() {
                    let n = (n + thread) % queries.len();
                    assert_eq!(said(fresh, &queries[n]), alone[n], "{}", queries[n]);
                }
            });
        }
    });
}

#[test]
fn a_service_can_be_shared() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Service>();
}

#[test]
fn the_next_request_sees_a_commit() {
    let (place, service) = tides();
    let cancel = Cancel::default();
    let list = || service.list("notes", &ListRequest::default(), &cancel).unwrap();
    let before = list();
    assert_eq!((before.generation, before.documents.len()), (1, 3));
    let kept = service.searcher("notes".into(), &cancel).unwrap();
    assert!(std::sync::Arc::ptr_eq(&kept, &service.searcher("notes".into(), &cancel).unwrap()));
    place.write("wind.txt", "Wind raises waves.\n");
    place.index();
    let after = list();
    assert_eq!((after.generation, after.documents.len()), (2, 4));
    assert_eq!(kept.manifest().generation, 1);
    let get = GetRequest { citation: "notes/wind.txt".to_owned() };
    assert_eq!(service.get("notes", &get, &cancel).unwrap().text, "Wind raises waves.\n");
    let by_folder = service.status(place.collection().as_path(), &cancel).unwrap();
    assert_eq!(by_folder.n_documents, 4);
    assert!(service.fields("notes", &cancel).unwrap().fields.iter().any(|field| field.name == "title"));
}

#[test]
fn cancelled_requests_end() {
    let (_place, service) = tides();
    let cancelled = Cancel::new();
    cancelled.clone().cancel();
    let request = api::SearchRequest::new("moon");
    for cancel in [cancelled, Cancel::after(Duration::ZERO)] {
        let context = ContextRequest::new("moon");
        assert!(matches!(service.search("notes", &request, &cancel), Err(Error::Cancelled)));
        assert!(matches!(service.context("notes", &context, &cancel), Err(Error::Cancelled)));
        let search = ChunkSearch { cancel: cancel.clone(), ..ChunkSearch::new("moon") };
        let searcher = service.searcher("notes".into(), &Cancel::default()).unwrap();
        assert!(matches!(searcher.search(&search), Err(Error::Cancelled)));
    }
    assert!(service.search("notes", &request, &Cancel::after(Duration::from_secs(600))).is_ok());
}

#[test]
fn a_service_says_what_it_does_not_know() {
    let (place, service) = tides();
    let cancel = Cancel::default();
    let code = |error: Error| api::Fault::from(&error);
    let fault = code(service.search("nots", &api::SearchRequest::new("moon"), &cancel).unwrap_err());
    assert_eq!(
        (fault.code.as_str(), fault.message.as_str()),
        ("unknown_collection", "no collection \"nots\"; there are notes")
    );
    let path = place.notes().join("moon.txt").display().to_string();
    let file = ContextRequest { tokenizer: path, ..ContextRequest::new("moon") };
    let fault = code(service.context("notes", &file, &cancel).unwrap_err());
    assert!(fault.code == "setting" && fault.message.contains("is none of model, o200k, cl100k"), "{fault:?}");
    let many = api::SearchRequest { k: 5, candidates: 4, ..api::SearchRequest::new("moon") };
    let fault = code(service.search("notes", &many, &cancel).unwrap_err());
    assert_eq!(fault.message, "k = 5 is above the candidate depth of 4; ask for at most 4");
    let get = GetRequest { citation: "notes/mon.txt".to_owned() };
    let fault = code(service.get("notes", &get, &cancel).unwrap_err());
    assert_eq!((fault.code.as_str(), &fault.data.unwrap()["nearest"]), ("unknown_document", &"notes/moon.txt".into()));
}

#[test]
fn tokens_of_the_model_are_counted() {
    let (_place, service) = tides();
    let request = ContextRequest { tokenizer: "model".to_owned(), mode: Mode::Lexical, ..ContextRequest::new("moon") };
    let answer = service.context("notes", &request, &Cancel::default()).unwrap();
    assert!(answer.tokenizer.starts_with("model:") && answer.n_tokens <= 2_000, "{answer:?}");
}

#[test]
fn a_deadline_ends_what_takes_long() {
    let (_place, service) = tides();
    let request = |n_texts: usize| EmbedRequest { texts: vec!["tide ".repeat(500); n_texts], kind: TextKind::Document };
    service.embed("notes", &request(1), &Cancel::default()).unwrap(); // the collection is open, the encoder loaded
    let ended = service.embed("notes", &request(api::EMBED_TEXTS_MAX), &Cancel::after(Duration::from_millis(2)));
    assert!(matches!(ended, Err(Error::Cancelled)), "100,000 tokens are not embedded in that time");
}

#[test]
fn whoever_stops_below_is_cancelled_here() {
    let stopped: [Error; 4] = [
        cento_vector::Error::Cancelled.into(),
        cento_lexical::Error::Cancelled.into(),
        cento_embedder::Error::Cancelled.into(),
        cento_assembly::Error::Cancelled.into(),
    ];
    assert!(stopped.iter().all(|error| matches!(error, Error::Cancelled) && error.code() == "cancelled"));
}

#[test]
fn a_question_gives_more_than_its_answer() {
    let (_place, service) = tides();
    let request = ContextRequest { mode: Mode::Lexical, ..ContextRequest::new("moon") };
    let answer = service.context("notes", &request, &Cancel::default()).unwrap();
    let asked = service.ask("notes", &request, None, &Cancel::default(), |asked| {
        let context = asked.context(asked.settle()?.budget_tokens)?;
        let trace = asked.trace(&context)?;
        assert_eq!((trace.assembly.query.as_str(), trace.delivered.n_tokens), ("moon", context.n_tokens));
        assert_eq!(asked.curve(0)?.budget_tokens, asked.most_tokens());
        asked.answer(&context)
    });
    assert_eq!(serde_json::to_string(&asked.unwrap()).unwrap(), serde_json::to_string(&answer).unwrap());
}

#[test]
fn texts_are_ranked_by_their_vectors() {
    let (_place, service) = tides();
    let cancel = Cancel::default();
    let texts: Vec<String> = ["Rye bread.", "The moon.", "Rye bread.", "Tides."].map(str::to_owned).into();
    let request = api::RerankRequest { query: "Rye bread.".to_owned(), texts: texts.clone(), k: Some(3) };
    let answer = service.rerank("notes", &request, &cancel).unwrap();
    let places: Vec<usize> = answer.results.iter().map(|result| result.index).collect();
    assert_eq!((places.len(), &places[..2]), (3, &[0, 2][..]), "equal texts as they were given");
    let (query, embedded) = (
        service.embeddings("notes", &["Rye bread.".to_owned()], TextKind::Query, &cancel).unwrap(),
        service.embeddings("notes", &texts, TextKind::Document, &cancel).unwrap(),
    );
    for result in &answer.results {
        let pairs = query.embeddings[0].vector.iter().zip(&embedded.embeddings[result.index].vector);
        let cosine: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        assert_eq!(result.score, cosine);
    }
    for wrong in [
        api::RerankRequest { texts: Vec::new(), ..request.clone() },
        api::RerankRequest { query: " ".to_owned(), ..request.clone() },
    ] {
        assert!(service.rerank("notes", &wrong, &cancel).is_err(), "{wrong:?}");
    }
}

#[test]
fn more_texts_are_embedded_than_one_request_may_have() {
    let (_place, service) = tides();
    let texts = vec!["tide".to_owned(); api::EMBED_TEXTS_MAX + 3];
    let embedded = service.embeddings("notes", &texts, TextKind::Document, &Cancel::default()).unwrap();
    assert_eq!(embedded.embeddings.len(), texts.len());
    assert!(embedded.embeddings.iter().all(|embedding| *embedding == embedded.embeddings[0]));
}

#[test]
fn files_that_change_are_counted() {
    let (place, service) = tides();
    let cancel = Cancel::default();
    assert_eq!(service.changed("notes", &cancel).unwrap(), 0);
    let fresh = Service::new(options(&place)).unwrap();
    std::fs::remove_file(place.notes().join("moon.txt")).unwrap();
    let later = std::time::SystemTime::now() + Duration::from_secs(60);
    std::fs::File::options().write(true).open(place.notes().join("bread.txt")).unwrap().set_modified(later).unwrap();
    assert_eq!(fresh.changed("notes", &cancel).unwrap(), 2);
    place.index();
    assert_eq!(fresh.changed("notes", &cancel).unwrap(), 1, "a time that lies ahead stays ahead");
}

#[test]
fn sections_are_those_of_the_text() {
    let place = Place::new();
    place.write("sea.md", "Before.\n\n# Sea\n\nWater.\n\n## Tides\n\nTwice a day.\n");
    place.index();
    let service = Service::new(options(&place)).unwrap();
    let request = api::SectionsRequest { document: "notes/sea.md".to_owned() };
    let list = service.sections("notes", &request, &Cancel::default()).unwrap();
    let text =
        service.get("notes", &GetRequest { citation: request.document.clone() }, &Cancel::default()).unwrap().text;
    let tides = list.sections.last().unwrap();
    let [start, end] = tides.span.map(|at| at as usize);
    assert_eq!((tides.heading.as_str(), &text[start..end]), ("Tides", "## Tides\n\nTwice a day.\n"));
    let above = &list.sections[tides.parent.unwrap() as usize];
    assert_eq!((above.heading.as_str(), above.level), ("Sea", 1));
}
