//! Requests: any bytes are a fault with a field, or are answered, whatever they ask for.
#![no_main]

mod place;

use std::sync::LazyLock;

use cento_engine::api::{
    self, AddRequest, AssembleRequest, BatchRequest, CompactRequest, DeleteRequest, EmbedRequest, GetRequest,
    IndexRequest, ListRequest, NeighborsRequest, RerankRequest, WhyNotRequest,
};
use cento_engine::{Cancel, Error, Mode, Service, ServiceOptions};
use libfuzzer_sys::fuzz_target;

use place::Place;

static SERVICE: LazyLock<(Place, Service)> = LazyLock::new(|| {
    let place = Place::new();
    let collections = [("notes".to_owned(), place.collection())].into();
    let service = Service::new(ServiceOptions { collections, threads: 1, ..ServiceOptions::default() }).unwrap();
    (place, service)
});

fn said(error: &Error) {
    let fault = api::Fault::from(error);
    assert!(!fault.code.is_empty() && !fault.message.is_empty());
    assert!(!matches!(error, Error::Collection(_)), "the collection is whole: {error}");
}

/// Requests to write: documents are made, paths are looked for, and nothing is changed.
fn written(service: &Service, bytes: &[u8]) {
    if let Ok(request) = api::parse::<AddRequest>(bytes) {
        match Service::documents(&request) {
            Ok(documents) => assert_eq!(documents.len(), request.documents.len()),
            Err(error) => said(&error),
        }
    }
    if let Ok(request) = api::parse::<IndexRequest>(bytes) {
        let roots = service.roots(&request).map_err(|error| said(&error));
        assert!(roots.map_or(true, |roots| roots.is_empty()), "no root was given");
    }
    let _ = api::parse::<DeleteRequest>(bytes).map_err(|error| said(&error));
    let _ = api::parse::<CompactRequest>(bytes).map_err(|error| said(&error));
}

fuzz_target!(|bytes: &[u8]| {
    let (service, cancel) = (&SERVICE.1, Cancel::default());
    match api::parse::<api::SearchRequest>(bytes) {
        Ok(request) => drop(service.search("notes", &request, &cancel).map_err(|error| said(&error))),
        Err(error) => said(&error),
    }
    if let Ok(request) = api::parse::<api::ContextRequest>(bytes) {
        let request = api::ContextRequest { mode: Mode::Lexical, ..request };
        match service.context("notes", &request, &cancel) {
            Ok(answer) => assert!(answer.n_tokens <= answer.budget_tokens),
            Err(error) => said(&error),
        }
    }
    if let Ok(request) = api::parse::<WhyNotRequest>(bytes) {
        let _ = service.why_not("notes", &request, &cancel).map_err(|error| said(&error));
    }
    if let Ok(request) = api::parse::<GetRequest>(bytes) {
        let _ = service.get("notes", &request, &cancel).map_err(|error| said(&error));
    }
    if let Ok(request) = api::parse::<ListRequest>(bytes) {
        let _ = service.list("notes", &request, &cancel).map_err(|error| said(&error));
    }
    if let Ok(request) = api::parse::<EmbedRequest>(bytes) {
        let _ = service.embed("notes", &request, &cancel).map_err(|error| said(&error));
    }
    if let Ok(request) = api::parse::<RerankRequest>(bytes) {
        let _ = service.rerank("notes", &request, &cancel).map_err(|error| said(&error));
    }
    if let Ok(request) = api::parse::<NeighborsRequest>(bytes) {
        let _ = service.neighbors("notes", &request, &cancel).map_err(|error| said(&error));
    }
    if let Ok(request) = api::parse::<AssembleRequest>(bytes) {
        match service.assemble(&request, &cancel) {
            Ok(answer) => assert!(answer.n_tokens <= answer.budget_tokens),
            Err(error) => said(&error),
        }
    }
    let _ = api::parse::<BatchRequest>(bytes).map_err(|error| said(&error));
    written(service, bytes);
});
