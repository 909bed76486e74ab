//! Values computed by hand or taken from the paper (arXiv 2601.10681): its gates, its scores, and where it had to be
//! read anew.

use super::*;
use crate::policy::Slack;
use crate::trace::{Outcome, Stage, Trace};

#[test]
fn knapsack_quiz_a_long_chunk_is_passed_over_and_shorter_ones_fill_the_budget() {
    let lengths = [200, 180, 150, 120];
    let pool = || {
        lengths
            .iter()
            .enumerate()
            .map(|(at, &n)| candidate(&format!("d{n}"), 0, &x(&n.to_string(), n), 1.0 - at as f64 / 10.0))
            .collect()
    };
    let flat = Assembly::of(pool()).flat().count(&count_x).within(500);
    assert_eq!(chosen(&flat), ["d200#0", "d180#0", "d120#0"]);
    assert_eq!(flat.n_tokens, 500);
    let skipped = &record(&flat, "d150#0").step_details;
    assert_eq!((skipped.tokens_used, skipped.tokens_left, skipped.tokens_needed), (Some(380), Some(120), Some(150)));
    // No subset fills more: the oracle.
    let best = (0_u32..16)
        .map(|set| lengths.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1).map(|(_, n)| n).sum::<usize>())
        .filter(|&sum| sum <= 500)
        .max();
    assert_eq!(best, Some(500));
}

fn distinct(prefix: &str, n: usize) -> String {
    (0..n).map(|at| format!("{prefix}{at} ")).collect()
}

#[test]
fn the_papers_redundancy_rows() {
    // X000918 is chosen first; X000921 shares 78 of its 100 words with it, X001005 19.
    let chosen_text = distinct("a", 100);
    let near = format!("{}{}", distinct("a", 78), distinct("b", 22));
    let far = format!("{}{}", distinct("a", 19), distinct("c", 81));
    for gate in ["pairwise", "union"] {
        let pool = vec![
            candidate("X000918", 0, &chosen_text, 0.9),
            candidate("X000921", 0, &near, 0.8),
            candidate("X001005", 0, &far, 0.7),
        ];
        let context = Assembly::of(pool).policy(&format!("gate = \"{gate}\"\ndelta = 0.55")).within(800);
        let (near, far) = (record(&context, "X000921#0"), record(&context, "X001005#0"));
        assert_eq!((near.final_reason, near.step_details.overlap), (Reason::TooRedundant, Some(0.78)));
        assert_eq!(near.step_details.partner.as_deref(), Some("X000918#0"));
        assert_eq!((far.final_reason, far.step_details.overlap), (Reason::PassedAllGates, Some(0.19)));
    }
}

#[test]
fn an_overlap_of_exactly_delta_is_redundant() {
    let pool = || {
        vec![
            candidate("a", 0, &distinct("a", 20), 0.9),
            candidate("b", 0, &format!("{}{}", distinct("a", 11), distinct("b", 9)), 0.8),
        ]
    };
    assert_eq!(reason(&Assembly::of(pool()).policy("delta = 0.55").within(800), "b#0"), Reason::TooRedundant); // 11 / 20
    assert_eq!(reason(&Assembly::of(pool()).policy("delta = 0.56").within(800), "b#0"), Reason::PassedAllGates);
    assert_eq!(reason(&Assembly::of(pool()).policy("gate = \"none\"").within(800), "b#0"), Reason::PassedAllGates);
}

#[test]
fn equal_chunks_are_caught_in_one_document_and_across_documents() {
    for text in ["Terms apply.", &distinct("a", 50)] {
        let pool = vec![candidate("a", 0, text, 0.9), candidate("a", 3, text, 0.8), candidate("b", 0, text, 0.7)];
        let context = Assembly::of(pool).within(800);
        assert_eq!(chosen(&context), ["a#0"]);
        assert_eq!((reason(&context, "a#3"), reason(&context, "b#0")), (Reason::TooRedundant, Reason::TooRedundant));
    }
}

#[test]
fn a_section_budget_counts_the_candidate_itself() {
    // The share is 50: the first 30 fit, 30 + 30 do not. Eq. 11 as printed would look at the first 30 alone and let it
    // pass.
    let pool = || {
        let mut pool: Vec<Candidate> =
            (0..3).map(|at| candidate("a", at * 2, &x(&format!("a{at}"), 30), 0.9 - f64::from(at) / 10.0)).collect();
        pool.push(candidate("b", 0, &x("b", 20), 0.1));
        pool
    };
    let none = Assembly::of(pool()).count(&count_x).policy("slack = \"none\"\n[rho]\nbody = 0.5").within(100);
    assert_eq!(chosen(&none), ["a#0", "b#0"]);
    let over = record(&none, "a#2");
    assert_eq!((over.final_reason, over.stage), (Reason::SectionBudgetExceeded, Stage::Walk));
    assert_eq!(
        (over.step_details.section_used, over.step_details.section_needed, over.step_details.section_limit),
        (Some(30), Some(30), Some(50))
    );
    assert_eq!((none.trace.manifest.slack.pool_tokens, none.trace.manifest.slack.policy), (50, Slack::None));

    let global = Assembly::of(pool()).count(&count_x).policy("[rho]\nbody = 0.5").within(100);
    assert_eq!(chosen(&global), ["a#0", "a#2", "b#0"]);
    let taken = record(&global, "a#2");
    assert_eq!(
        (taken.stage, taken.step_decision, taken.final_reason),
        (Stage::Slack, Reason::SectionBudgetExceeded, Reason::PassedAllGates)
    );
    let slack = &global.trace.manifest.slack;
    assert_eq!((slack.pool_tokens, slack.reallocated.len()), (50, 1));
    assert_eq!(
        (slack.reallocated[0].chunk_id.as_str(), slack.reallocated[0].section.as_str(), slack.reallocated[0].tokens),
        ("a#2", "a > Body", 30)
    );
    let last = record(&global, "a#4");
    assert_eq!(
        (last.stage, last.step_decision, last.final_reason),
        (Stage::Slack, Reason::SectionBudgetExceeded, Reason::BudgetExceeded)
    );
    let sections: Vec<_> = global
        .trace
        .manifest
        .sections
        .iter()
        .map(|section| (section.section.as_str(), section.chunks, section.tokens, section.limit))
        .collect();
    assert_eq!(sections, [("a > Body", 2, 60, Some(50)), ("b > Body", 1, 20, Some(50))]);
}

#[test]
fn a_share_too_small_for_its_section_is_a_warning() {
    let pool = || vec![candidate("a", 0, &x("a", 30), 0.9), candidate("b", 0, &x("b", 20), 0.1)];
    let context = Assembly::of(pool()).count(&count_x).policy("slack = \"none\"\n[rho]\n\"*\" = 0.25").within(100);
    assert_eq!(chosen(&context), ["b#0"]);
    assert_eq!(
        context.trace.warnings,
        ["section `a > Body`: its share of 25 tokens is less than its shortest candidate, 30 tokens; raise its rho"]
    );
    let context = Assembly::of(pool()).count(&count_x).policy("[rho]\n\"*\" = 0.25").within(100);
    assert_eq!(
        (chosen(&context).len(), context.trace.warnings.len()),
        (2, 1),
        "the slack delivers it, the warning stays"
    );
}

#[test]
fn a_longer_chunk_is_never_better_for_a_negative_prior() {
    let pool = || {
        vec![
            candidate("long", 0, &distinct("a", 100), 0.0),
            candidate("short", 0, &distinct("b", 10), 0.0),
            candidate("none", 0, "other", 0.0),
        ]
    };
    let context = Assembly::of(pool()).policy("theta = 50\n[priors]\nbody = -2.5").within(800);
    let scores: Vec<_> = context
        .trace
        .records
        .iter()
        .map(|record| (record.document.as_str(), record.score_raw, record.score_final))
        .collect();
    assert_eq!(
        scores,
        [("none", -2.5, -2.5 / (1.0 / 1.02)), ("short", -2.5, -2.5 / (1.0 / 1.2)), ("long", -2.5, -2.5 / (1.0 / 3.0))]
    );
}

#[test]
fn the_papers_mode_gates_what_matches_nothing_and_has_no_prior() {
    let pool = || {
        let mut pool = vec![
            candidate("hit", 0, "the scope of work", 0.1),
            candidate("miss", 0, "other words", 0.9),
            candidate("prior", 0, "other text", 0.5),
        ];
        pool[2].label = "Scope of  Works".into();
        pool
    };
    let context = Assembly::of(pool())
        .query("scope")
        .policy("relevance = \"tf\"\n[priors]\n\"scope of works\" = 6.5")
        .within(800);
    assert_eq!(chosen(&context), ["prior#0", "hit#0"]);
    let miss = record(&context, "miss#0");
    assert_eq!(
        (miss.final_reason, miss.tf, miss.step_details.min_relevance),
        (Reason::LowRelevance, Some(0), Some(0.0))
    );
    let context = Assembly::of(pool()).policy("min_relevance = 0.5").within(800);
    assert_eq!((chosen(&context), reason(&context, "hit#0")), (vec!["miss#0", "prior#0"], Reason::LowRelevance));
}

#[test]
fn pool_and_chunk_limits() {
    let pool = || {
        (0..6)
            .map(|at| {
                candidate(["a", "b"][at % 2], at as u32, &distinct(&format!("w{at}x"), 9), 0.9 - at as f64 / 10.0)
            })
            .collect()
    };
    let context = Assembly::of(pool()).policy("candidates = 4\nmax_per_document = 1").within(800);
    assert_eq!(chosen(&context), ["a#0", "b#1"]);
    let limited = record(&context, "a#2");
    assert_eq!(
        (limited.final_reason, limited.step_details.chunks_used, limited.step_details.chunks_limit),
        (Reason::DocumentChunksExceeded, Some(1), Some(1))
    );
    let beyond = record(&context, "b#5");
    assert_eq!(
        (beyond.final_reason, beyond.stage, beyond.rank, beyond.step_details.chunks_limit),
        (Reason::BeyondCandidates, Stage::Pool, 6, Some(4))
    );
    let context = Assembly::of(pool()).policy("max_per_section = 2").within(800);
    assert_eq!((chosen(&context).len(), reason(&context, "a#4")), (4, Reason::SectionChunksExceeded));
}

#[test]
fn unrelated_text_fills_a_large_budget() {
    let pool = || {
        (0..120)
            .map(|seed| candidate(&format!("d{seed:03}"), 0, &unrelated_text(seed), 1.0 - seed as f64 / 1000.0))
            .collect()
    };
    let redundant = |gate: &str| {
        let context = Assembly::of(pool()).policy(&format!("gate = \"{gate}\"\ndelta = 0.55")).within(12_000);
        context.trace.records.iter().filter(|record| record.final_reason == Reason::TooRedundant).count()
    };
    assert!(redundant("pairwise") < 6, "less than 5 % of 120: {}", redundant("pairwise"));
    assert!(redundant("union") > 30, "{}", redundant("union"));
}

#[test]
fn nothing_relevant_is_said_in_the_context() {
    for (pool, policy) in [(vec![], ""), (vec![candidate("a", 0, "text", 0.1)], "min_relevance = 0.5")] {
        for (format, text) in [
            (Format::Markdown, "=== [nothing relevant]\n"),
            (Format::Xml, "<context><nothing-relevant/></context>\n"),
            (Format::Json, "{\"version\":1,\"context\":\"=== [nothing relevant]\\n\",\"citations\":[]}\n"),
        ] {
            let context = Assembly::of(pool.clone()).policy(policy).format(format).within(3);
            assert_eq!((context.text.as_str(), context.citations.len()), (text, 0));
            assert_eq!(context.trace.manifest.outcome, Outcome::NothingRelevant);
        }
    }
}

#[test]
fn contradictory_candidates_are_refused() {
    let refused = |pool: Vec<Candidate>| Assembly::of(pool).try_within(100).unwrap_err().to_string();
    let one = || candidate("a", 0, "text", 0.5);
    assert_eq!(refused(vec![one(), one()]), "candidate a#0: is there twice");
    assert_eq!(
        refused(vec![Candidate { id: "b".into(), ..one() }, one()]),
        "candidate b: another candidate has the same document and chunk number"
    );
    assert_eq!(
        refused(vec![Candidate { relevance: f64::NAN, ..one() }]),
        "candidate a#0: its relevance is not a finite number"
    );
    assert_eq!(refused(vec![Candidate { span: 0..3, ..one() }]), "candidate a#0: its span is not as long as its text");
    let policy = Policy { delta: 2.0, ..Policy::default() };
    let request = Request {
        query: "",
        candidates: &[],
        budget_tokens: 9,
        policy: &policy,
        strategy: Strategy::Flat,
        format: Format::Xml,
        count: &count_words,
        tokenizer: "",
        reading: Reading { terms: &words, idf: &|_| 1.0, sentences: &sentences },
        cosine: None,
        stop: NEVER,
        kept: &[],
        further: &[],
        include: &[],
        exclude: &[],
        evidence: None,
        order: crate::Order::Document,
        marks: Marks::Full,
    };
    assert!(
        matches!(assemble(&request), Err(Error::PolicyValue { .. })),
        "a policy that was not parsed is checked too"
    );
}

#[test]
fn the_trace_is_json_and_back() {
    let pool = vec![
        candidate("a", 0, &distinct("a", 30), 0.9),
        candidate("a", 1, &distinct("b", 30), 0.8),
        candidate("b", 0, &distinct("c", 90), 0.7),
    ];
    let trace = Assembly::of(pool).policy(crate::policy::EXAMPLE).within(80).trace;
    let json = serde_json::to_string(&trace).unwrap();
    assert_eq!(serde_json::from_str::<Trace>(&json).unwrap(), trace);
}

#[test]
fn names_are_read_as_they_are_written() {
    for format in [Format::Markdown, Format::Xml, Format::Json] {
        assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
    }
    for strategy in Strategy::ALL {
        assert_eq!(strategy.to_string().parse::<Strategy>().unwrap(), strategy);
    }
    assert_eq!(
        "bubbel".parse::<Strategy>().unwrap_err().to_string(),
        "unknown strategy `bubbel`: expected cento, flat, mmr, adaptive, bubble, rse, rse-kadane, rse-exact, window, parent, automerge or seal"
    );
    assert_eq!("html".parse::<Format>().unwrap_err().to_string(), "unknown format `html`: expected md, xml or json");
}

#[test]
fn every_text_is_counted_at_most_once_and_hopeless_ones_not_at_all() {
    let texts: Vec<String> = (0..2_000).map(|seed| format!("seed{seed} {}\n", unrelated_text(seed))).collect();
    let pool: Vec<Candidate> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| candidate(&format!("d{at:04}"), 0, text, 1.0 - at as f64 / 1e4))
        .collect();
    let counted = std::cell::RefCell::new(std::collections::BTreeMap::<String, usize>::new());
    let count = |text: &str| {
        *counted.borrow_mut().entry(text.to_owned()).or_default() += 1;
        count_words(text)
    };
    let context = Assembly::of(pool).count(&count).within(800);
    assert!(context.n_tokens > 760, "{} of 800 used", context.n_tokens);
    let counted = counted.into_inner();
    let times: Vec<usize> = texts.iter().map(|text| counted.get(text).copied().unwrap_or(0)).collect();
    assert!(times.iter().all(|&times| times <= 1));
    let n_estimated = context.trace.records.iter().filter(|record| record.step_details.estimated).count();
    assert_eq!(times.iter().sum::<usize>() + n_estimated, 2_000);
    assert!(n_estimated > 1_000, "{n_estimated} texts were too long to be worth counting");
}
