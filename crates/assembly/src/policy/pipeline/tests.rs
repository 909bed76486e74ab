//! The configuration as its source writes it, and each way in which one can be wrong.

use super::*;

/// As the source has it, byte for byte.
const SOURCE: &str = include_str!("../../../../../tests/data/rag-context-pipeline.config.yaml");

#[test]
fn the_source_is_accepted_as_written() {
    let pipeline = Pipeline::parse(SOURCE).unwrap();
    assert_eq!(pipeline.strategy, Stated { value: Strategy::Parent, line: 3 });
    assert_eq!(pipeline.budget_tokens, Some(Stated { value: 4000, line: 19 }));
    let Policy { window, parent, cache, .. } = &pipeline.policy;
    let log_boundaries = true;
    assert_eq!(
        *window,
        Window { radius: 3, max_tokens: 1500, boundary: Boundary::Document, log_boundaries, ..Window::default() }
    );
    let fallback = Fallback::Window;
    assert_eq!(*parent, Parent { hierarchy_depth: 2, max_context_blocks: 4, fallback, ..Parent::default() });
    assert_eq!(*cache, Some(Cache { ttl_seconds: 300 }));
    let rest = Policy { window: Window::default(), cache: None, ..pipeline.policy.clone() };
    assert_eq!(rest, Policy::default(), "its other values are our defaults");
    let toml = toml::to_string(&pipeline.policy).unwrap();
    assert_eq!(Policy::parse(&toml).unwrap(), pipeline.policy, "a trace keeps the policy as TOML");
}

#[test]
fn what_it_implies_follows_its_values() {
    let of = |text: &str| Pipeline::parse(text).unwrap();
    for (strategy, fallback, expected) in [
        ("local_expansion", "none", (Strategy::Window, Fallback::None)),
        ("local_expansion", "local_expansion", (Strategy::Window, Fallback::Window)),
        ("structural_resolution", "none", (Strategy::Parent, Fallback::None)),
        ("structural_resolution", "local_expansion", (Strategy::Parent, Fallback::Window)),
        ("hybrid", "none", (Strategy::Parent, Fallback::Linear)),
        ("hybrid", "local_expansion", (Strategy::Parent, Fallback::Window)),
    ] {
        let pipeline = of(&format!("retrieval: {{strategy: {strategy}, fallback: {fallback}}}"));
        assert_eq!((pipeline.strategy.value, pipeline.policy.parent.fallback), expected);
    }
    let least = of("retrieval:\n  strategy: 'hybrid'\n");
    assert_eq!((least.policy, least.budget_tokens), (Policy::default(), None));
    let other = of("retrieval:\n  strategy: local_expansion\n\
                    local_expansion:\n  radius: 0\n  boundary_check: section\n  max_tokens: 90\n\
                    structural_resolution:\n  enabled: false\n  hierarchy_depth: 3\n  max_context_blocks: 1\n\
                    pipeline:\n  cache_resolved_context: true\n");
    let section = Window { radius: 0, max_tokens: 90, boundary: Boundary::Section, ..Window::default() };
    assert_eq!((other.policy.window, other.policy.cache), (section, Some(Cache { ttl_seconds: 300 })));
    assert_eq!((other.policy.parent.hierarchy_depth, other.policy.parent.max_context_blocks), (3, 1));
}

#[track_caller]
fn refused(text: &str, message: &str) {
    assert_eq!(Pipeline::parse(text).unwrap_err().to_string(), message);
}

/// The source with one line in place of another.
#[track_caller]
fn altered(line: &str, by: &str, message: &str) {
    assert_eq!(SOURCE.matches(line).count(), 1, "{line}");
    refused(&SOURCE.replace(line, by), message);
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest() {
    altered(
        "  radius:",
        "  radios:",
        "line 8: policy: unknown key `local_expansion.radios`, did you mean `local_expansion.radius`?",
    );
    altered("retrieval:", "retrival:", "line 2: policy: unknown key `retrival`, did you mean `retrieval`?");
    altered("  token_budget", "  colour", "line 19: policy: unknown key `pipeline.colour`");
    altered(
        "  token_budget: 4000",
        "  radius: 4000",
        "line 19: policy: unknown key `pipeline.radius`, did you mean `local_expansion.radius`?",
    );
    altered(
        "  hierarchy_depth",
        "  enable",
        "line 14: policy: unknown key `structural_resolution.enable`, did you mean `structural_resolution.enabled`?",
    );
    refused(
        "retrieval: {}",
        "there is no `retrieval.strategy`: it is local_expansion, structural_resolution or hybrid",
    );
    refused("", "there is no `retrieval.strategy`: it is local_expansion, structural_resolution or hybrid");
}

#[test]
fn a_value_of_another_type_or_out_of_range_is_named_with_its_line() {
    altered(
        "strategy: hybrid",
        "strategy: hybird",
        "line 3: `retrieval.strategy` is hybird, it must be local_expansion, structural_resolution or hybrid",
    );
    altered(
        "fallback: local_expansion",
        "fallback: window",
        "line 4: `retrieval.fallback` is window, it must be local_expansion or none",
    );
    for (radius, written) in [("-1", "-1"), ("2.5", "2.5"), ("\"3\"", "\"3\""), ("", "empty"), ("101", "101")] {
        altered(
            "radius: 3",
            &format!("radius: {radius}"),
            &format!("line 8: `local_expansion.radius` is {written}, it must be a whole number from 0 to 100"),
        );
    }
    altered(
        "boundary_check: document_ref",
        "boundary_check: page",
        "line 9: `local_expansion.boundary_check` is page, it must be document_ref or section",
    );
    altered(
        "max_tokens: 1500",
        "max_tokens: 0",
        "line 10: `local_expansion.max_tokens` is 0, it must be a whole number of at least 1",
    );
    altered(
        "hierarchy_depth: 2",
        "hierarchy_depth: 1",
        "line 14: `structural_resolution.hierarchy_depth` is 1, it must be a whole number of at least 2, the chunk and its section",
    );
    altered(
        "deduplicate_parents: true",
        "deduplicate_parents: false",
        "line 15: `structural_resolution.deduplicate_parents` is false, it must be true: a context never holds the same bytes twice",
    );
    altered(
        "deduplicate_parents: true",
        "deduplicate_parents: yes",
        "line 15: `structural_resolution.deduplicate_parents` is yes, it must be true or false",
    );
    altered(
        "truncate_policy: relevance_descending",
        "truncate_policy: oldest",
        "line 20: `pipeline.truncate_policy` is oldest, it must be relevance_descending, which is all there is",
    );
    altered(
        "log_boundary_violations: true",
        "log_boundary_violations: 'true'",
        "line 21: `pipeline.log_boundary_violations` is \"true\", it must be true or false",
    );
    altered(
        "cache_ttl_seconds: 300",
        "cache_ttl_seconds: 0",
        "line 23: `pipeline.cache_ttl_seconds` is 0, it must be a whole number from 1 to 31536000, a year",
    );
}

#[test]
fn keys_that_contradict_each_other_are_named_with_their_lines() {
    let switched_off =
        |table: &str| SOURCE.replace(&format!("{table}:\n  enabled: true"), &format!("{table}:\n  enabled: false"));
    refused(
        &switched_off("local_expansion"),
        "line 3: `retrieval.strategy` is hybrid, but `local_expansion.enabled` is false (line 7)",
    );
    refused(
        &switched_off("structural_resolution"),
        "line 3: `retrieval.strategy` is hybrid, but `structural_resolution.enabled` is false (line 13)",
    );
    refused(
        &switched_off("structural_resolution").replace("hybrid", "structural_resolution"),
        "line 3: `retrieval.strategy` is structural_resolution, but `structural_resolution.enabled` is false (line 13)",
    );
    refused(
        &switched_off("local_expansion").replace("hybrid", "structural_resolution"),
        "line 4: `retrieval.fallback` is local_expansion, but `local_expansion.enabled` is false (line 7)",
    );
    altered(
        "cache_resolved_context: true",
        "cache_resolved_context: false",
        "line 23: `pipeline.cache_ttl_seconds` is 300, but `pipeline.cache_resolved_context` is false (line 22)",
    );
    altered(
        "  cache_resolved_context: true\n",
        "",
        "line 22: `pipeline.cache_ttl_seconds` is 300, but `pipeline.cache_resolved_context` is not there",
    );
    altered(
        "  radius: 3\n",
        "  radius: 3\n  radius: 3\n",
        "line 9: `local_expansion.radius` is there twice, first on line 8",
    );
}

#[test]
fn what_is_not_a_table_of_tables_is_told_with_its_line() {
    let tables = "expected tables: retrieval, local_expansion and so on";
    refused("hybrid", &format!("line 1: {tables}"));
    refused("\n- retrieval", &format!("line 2: {tables}"));
    refused("retrieval: hybrid", "line 1: `retrieval` wants keys below it");
    refused("retrieval:\nlocal_expansion:\n  radius: 3", "line 1: `retrieval` wants keys below it");
    refused("retrieval: [hybrid]", "line 1: `retrieval` wants keys below it");
    refused("retrieval:\n  strategy: [hybrid]", "line 2: `strategy` wants one plain value");
    refused("retrieval:\n  strategy:\n    hybrid: true", "line 2: `strategy` wants one plain value");
    refused("retrieval:\n  strategy: !!str hybrid", "line 2: `strategy` wants one plain value");
    refused("retrieval:\n  strategy: &a hybrid\n  fallback: *a", "line 3: `fallback` wants one plain value");
    refused("retrieval:\n  ? [a]\n  : b", "line 1: `retrieval` wants one plain value");
    refused("retrieval:\n  strategy: hybrid\n---\na: b", "line 3: a second document: one file is one pipeline");
    let unread = Pipeline::parse("retrieval:\n\tstrategy: hybrid").unwrap_err().to_string();
    assert!(unread.starts_with("line 2: "), "{unread}");
    let open = Pipeline::parse("retrieval:\n  strategy: \"hybrid").unwrap_err().to_string();
    assert!(open.starts_with("line "), "{open}");
}

#[test]
fn whatever_is_altered_is_read_or_told_with_its_line() {
    for (at, _) in SOURCE.char_indices() {
        for other in ["", "\t", "\n", ":", "- ", "[", "{", "}", "&", "*", "!", "|", "\"", "%", "?", "---\n", "é"] {
            for behind in [at, at + 1] {
                let text = format!("{}{other}{}", &SOURCE[..at], &SOURCE[behind..]);
                match Pipeline::parse(&text) {
                    Ok(_) | Err(Error::PipelineStrategy) => {}
                    Err(Error::AtLine { line, .. }) => {
                        assert!((1..=text.lines().count() + 1).contains(&line), "line {line} of {text}");
                    }
                    Err(other) => panic!("{other}: {text}"),
                }
            }
        }
    }
}
