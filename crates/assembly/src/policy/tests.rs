//! Policies as they are written: every key, every default, what is refused and with which words.

use super::*;

#[test]
fn the_example_names_every_key_and_its_defaults_are_the_defaults() {
    let example = Policy::parse(EXAMPLE).unwrap();
    let table: toml::Table = toml::from_str(EXAMPLE).unwrap();
    assert!(KEYS.iter().all(|key| table.contains_key(*key)), "every key is shown");
    assert_eq!(
        (example.candidates, example.theta, example.max_per_section),
        (Some(200), Some(Theta::Tokens(128.0)), Some(4))
    );
    assert_eq!(example.priors["terms & conditions"], -0.5);
    let default = Policy::default();
    assert_eq!(
        (example.relevance, example.gate, example.delta, example.slack),
        (default.relevance, default.gate, default.delta, default.slack)
    );
    assert_eq!(default, Policy::parse("").unwrap());
    assert_eq!(default.delta, DEFAULT_DELTA);
}

#[test]
fn the_example_shows_the_defaults_of_every_strategy() {
    let Policy { cento, mmr, adaptive, rse, kadane, window, parent, automerge, seal, .. } =
        Policy::parse(EXAMPLE).unwrap();
    assert_eq!(cento, Cento { run_max: Some(20), ..Cento::default() }, "no limit cannot be written");
    assert_eq!((mmr, adaptive), (Mmr::default(), Adaptive::default()));
    assert_eq!((rse, kadane), (Rse::default(), Kadane::default()));
    assert_eq!((window, parent, automerge), (Window::default(), Parent::default(), Automerge::default()));
    assert_eq!(seal, SealConfig::default());
}

#[test]
fn strategies_are_named_as_traces_write_them() {
    assert_eq!(Strategy::ALL[0], Strategy::default());
    for strategy in Strategy::ALL {
        assert_eq!(serde_json::to_value(strategy).unwrap(), strategy.name());
        assert_eq!(strategy.name().parse::<Strategy>().unwrap(), strategy);
    }
}

#[test]
fn what_is_written_can_be_read_again() {
    let policy = Policy::parse(EXAMPLE).unwrap();
    assert_eq!(Policy::parse(&toml::to_string(&policy).unwrap()).unwrap(), policy);
}

#[test]
fn radii_go_by_type_and_by_kind_of_question() {
    let policy = Policy::parse(
        "[window]\nradius = 2\nradius_by_type = { md = 5, log = 0 }\nradius_by_query = { several = 6, date = 1 }",
    )
    .unwrap();
    assert_eq!(policy.window.radius_by_type["log"], 0);
    assert_eq!(policy.window.radius_by_query[&crate::question::QueryKind::Several], 6);
    assert_eq!(Policy::parse(&toml::to_string(&policy).unwrap()).unwrap(), policy);
    refused("[window]\nradius_by_query = { broad = 3 }", "broad");
    refused(
        "[window]\nradius_by_query = { any = 101 }",
        "line 2: policy: `window.radius_by_query` must be at most 100",
    );
    refused("[window]\nradius_by_type = { md = 101 }", "line 2: policy: `window.radius_by_type` must be at most 100");
    refused("[window]\nradius_by_type = { \".MD\" = 1 }", "in lower case and without a dot");
    refused("second_search = \"wide\"", "wide");
}

#[track_caller]
fn refused(text: &str, message: &str) {
    let error = Policy::parse(text).unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

#[test]
fn unknown_keys_name_the_nearest() {
    refused("detla = 0.5", "unknown key `detla`, did you mean `delta`?");
    refused("Max_per_documents = 3", "did you mean `max_per_document`?");
    refused("[prior]\na = 1", "did you mean `priors`?");
    refused("colour = 1", "unknown key `colour`");
    assert!(!Policy::parse("colour = 1").unwrap_err().to_string().contains("mean"));
}

#[test]
fn values_out_of_range_are_refused() {
    refused("delta = 0.0", "`delta` must be above 0");
    refused("delta = nan", "`delta` must be above 0");
    refused("theta = -1", "`theta` must be");
    refused("theta = \"mean\"", "expected a number of tokens or \"median\"");
    refused("candidates = 0", "`candidates` must be at least 1");
    refused("[rho]\nappendix = 1.5", "`rho.appendix` must be a share");
    refused("[priors]\na = inf", "`priors.a` must be a finite number");
    refused("[priors]\n\"Scope  of\" = 1\n\"scope of\" = 2", "is there twice");
    refused("gate = \"pairwse\"", "unknown variant `pairwse`");
    refused("delta", "policy: TOML parse error");
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    refused("gate = \"none\"\n\ndetla = 0.5", "line 3: policy: unknown key `detla`");
    refused("# A policy\ndelta = 2", "line 2: policy: `delta` must be above 0");
    refused("[rho]\na = 0.5\n\"Last  Part\" = 1.5", "line 3: policy: `rho.Last  Part` must be a share");
    refused("[priors]\n\"a b\" = 1\n\"A  B\" = 2", "line 2: policy: `priors.a b` is there twice");
    refused("gate = \"none\"\n[window]\nradius = 101", "line 3: policy: `window.radius` must be at most 100");
    refused("[seal]\nloops = 1\nlambda_gap = -1", "line 3: `lambda_gap` is -1");
    refused("[cache]\nttl_seconds = 0", "line 2: policy: `cache.ttl_seconds` must be at least 1");
    for unread in ["[window]\nradios = 3", "gate = \"none\"\ngate = \"none\"", "[cache]\nttl_seconds = -1"] {
        refused(unread, "TOML parse error at line 2");
    }
    refused("[cache]", "TOML parse error at line 1");
    let error = Policy { delta: 2.0, ..Policy::default() }.checked().unwrap_err().to_string();
    assert!(error.starts_with("policy: `delta`"), "no text, no line: {error}");
}

#[test]
fn labels_are_compared_without_case_and_spacing() {
    assert_eq!(normalize_label("  Scope \t of\nWorks "), "scope of works");
    let policy = Policy::parse("[rho]\n\"Scope  of Works\" = 0.25\n\"*\" = 0.5").unwrap();
    assert_eq!(
        (policy.gates().sections.rho("scope of works"), policy.gates().sections.rho("other")),
        (Some(0.25), Some(0.5))
    );
    assert_eq!(Policy::default().gates().sections.rho("other"), None);
}
