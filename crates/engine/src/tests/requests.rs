//! Requests as they come: read strictly, defaults filled in, limits kept, schemas that say the same.

use crate::api::{self, ContextRequest, Request, SearchRequest, WhyNotRequest, parse};
use crate::{Error, Mode, Phrases, Strategy, Weights};

fn refused<T: Request + std::fmt::Debug>(json: &str) -> (String, String) {
    let error = parse::<T>(json.as_bytes()).unwrap_err();
    (error.code().to_owned(), error.to_string())
}

#[test]
fn what_is_left_out_has_its_default() {
    let request: SearchRequest = parse(br#"{"query": "tides", "mode": "lexical", "k": 3}"#).unwrap();
    assert_eq!(request, SearchRequest { mode: Mode::Lexical, k: 3, ..SearchRequest::new("tides") });
    let request: ContextRequest =
        parse(br#"{"query": "tides", "budget": "auto:700", "strategy": "rse-exact", "policy": {"delta": 0.5, "mmr": {"lambda": 0.25}}}"#)
            .unwrap();
    assert_eq!((request.budget, request.strategy), (api::Budget::Auto(700), Strategy::RseExact));
    assert_eq!((request.policy.delta, request.policy.mmr.lambda), (0.5, 0.25));
    assert_eq!(ContextRequest::new("tides").budget, api::Budget::Tokens(api::DEFAULT_BUDGET_TOKENS));
}

#[test]
fn an_unknown_field_is_named_with_the_nearest() {
    let unknown = |json| refused::<SearchRequest>(json);
    assert_eq!(
        unknown(r#"{"qeury": "x"}"#),
        ("unknown_field".into(), r#"unknown field "qeury", did you mean "query"?"#.into())
    );
    assert_eq!(unknown(r#"{"query": "x", "colour": 1}"#).1, r#"unknown field "colour""#);
    let nested = refused::<WhyNotRequest>(r#"{"id": "a", "context": {"query": "x", "bugdet": 1}}"#);
    assert_eq!(nested.1, r#"unknown field "bugdet", did you mean "budget"?"#);
}

#[test]
fn a_wrong_type_is_named_with_its_path() {
    let wrong = |json| refused::<ContextRequest>(json);
    let (code, message) = wrong(r#"{"query": "x", "within": ["a", 7]}"#);
    assert_eq!(code, "request");
    assert!(message.starts_with("within[1]: invalid type: integer `7`, expected a string"), "{message}");
    for (json, words) in [
        (r#"{"query": "x", "mode": "hybird"}"#, "mode: unknown variant `hybird`, expected one of `hybrid`"),
        (r#"{"query": "x", "budget": "lots"}"#, "expected a number of tokens, auto or auto:N"),
        (r#"{"query": "x", "budget": -1}"#, "budget: invalid type: integer `-1`, expected a number"),
        (r#"{"query": "x", "policy": {"dleta": 1}}"#, "policy: unknown key `dleta`, did you mean `delta`?"),
        (r#"{"query": "x", "policy": {"delta": 7.0}}"#, "policy: `delta` must be above 0 and at most 1"),
        (r#"{"query": "x"} more"#, "trailing characters"),
        (r#"{"query": "#, "EOF"),
        ("[]", "expected a JSON object"),
    ] {
        let (code, message) = wrong(json);
        assert!(code == "request" && message.contains(words), "{json}: {code}: {message}");
    }
}

#[test]
fn limits_are_kept() {
    let long = SearchRequest::new("x".repeat(api::QUERY_BYTES_MAX + 1));
    assert!(SearchRequest::new("x".repeat(api::QUERY_BYTES_MAX)).check().is_ok());
    let beyond = [
        (long.check(), "query"),
        (SearchRequest { candidates: api::CANDIDATES_MAX + 1, ..SearchRequest::new("x") }.check(), "candidates"),
        (SearchRequest { candidates: 0, ..SearchRequest::new("x") }.check(), "candidates"),
        (SearchRequest { k: 0, ..SearchRequest::new("x") }.check(), "k"),
        (SearchRequest { ef: Some(999), ..SearchRequest::new("x") }.check(), "ef"),
        (SearchRequest { within: vec![String::new(); api::IDS_MAX + 1], ..SearchRequest::new("x") }.check(), "within"),
        (
            ContextRequest { budget: api::Budget::Auto(api::BUDGET_TOKENS_MAX + 1), ..ContextRequest::new("x") }
                .check(),
            "budget",
        ),
    ];
    for (checked, field) in beyond {
        assert!(matches!(&checked, Err(Error::Setting { setting, .. }) if *setting == field), "{field}: {checked:?}");
    }
}

#[test]
fn schemas_name_every_field() {
    for (name, make) in api::SCHEMAS {
        let schema = serde_json::to_value(make()).unwrap();
        assert!(schema["description"].is_string() && schema["type"] == "object", "{name}: {schema}");
    }
    let schema = serde_json::to_value(api::schema("search-request").unwrap()).unwrap();
    // Fields that are left out where they have their default.
    let (phrases, weights) = (Phrases::Words, Weights { b: 0.5, ..Weights::default() });
    let (vector, rerank) = (Some(vec![1.0]), Some(api::Rerank::new("a")));
    let request = SearchRequest { allow_partial: true, vector, rerank, phrases, weights, ..SearchRequest::new("x") };
    let request = serde_json::to_value(request).unwrap();
    let known: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    let fields: Vec<&String> = request.as_object().unwrap().keys().collect();
    assert_eq!(known, fields);
    let either = serde_json::json!([{ "required": ["query"] }, { "required": ["vector"] }]);
    assert_eq!((&schema["anyOf"], &schema["additionalProperties"]), (&either, &false.into()));
    assert_eq!(schema["properties"]["k"]["default"], 10);
    assert!(api::schema("nothing").is_none());
}
