//! Budgets that no whole chunk fits: the best candidate is cut at sentences, then words, then letters, and says so.

use super::*;
use crate::trace::{Outcome, Stage};

fn handbook() -> Vec<Candidate> {
    let text = "Leave is granted on request. Ask your manager first. Parents may take twelve months of leave in the first eight years. \
                The form is in the portal. Send it a month before. Nothing else is needed for it. We answer within one week of that.\n";
    vec![candidate("handbook", 0, text, 0.9), candidate("other", 0, &text.replace("twelve", "ten").repeat(2), 0.5)]
}

#[test]
fn the_sentences_about_the_query_are_kept() {
    for strategy in [Assembly::of(handbook()), Assembly::of(handbook()).flat()] {
        let context = strategy.query("parents twelve months").within(16);
        assert_eq!(context.text, "=== [1] (cut)\nParents may take twelve months of leave in the first eight years.\n");
        let citation = &context.citations[0];
        assert_eq!((citation.span.clone(), citation.cut), (53..118, true));
        let kept = record(&context, "handbook#0");
        assert_eq!(
            (kept.stage, kept.final_reason, kept.step_details.kept.clone()),
            (Stage::Cut, Reason::CutToFit, Some(53..118))
        );
        assert_eq!(kept.step_decision, Reason::BudgetExceeded);
        assert_eq!(context.trace.manifest.outcome, Outcome::Cut);
    }
}

#[test]
fn a_sentence_that_is_too_long_is_cut_at_words_and_a_word_at_letters() {
    let context = Assembly::of(handbook()).query("eight").within(8);
    assert_eq!(
        context.text, "=== [1] (cut)\nleave in the first eight\n",
        "words about the query before a whole sentence beside the point"
    );
    let url = vec![candidate("a", 0, &format!("https://{}", "é".repeat(300)), 0.9)];
    let letters = |text: &str| text.chars().count();
    let context = Assembly::of(url).count(&letters).within(40);
    assert_eq!(context.text, format!("=== [1] (cut)\nhttps://{}\n", "é".repeat(17)));
    assert_eq!(context.n_tokens, 40);
}

#[test]
fn a_short_irrelevant_chunk_does_not_take_the_place_of_the_best() {
    let chaff = || {
        let mut pool = handbook();
        // The scraps are half as relevant as the best, and so short that the length penalty lifts them above it.
        pool.extend((0..9).map(|at| candidate(&format!("chaff{at}"), 0, &format!("See also {at}.\n"), 0.5)));
        pool
    };
    let context = Assembly::of(chaff()).query("parents twelve months").within(30);
    assert!(context.text.contains("twelve months"), "{}", context.text);
    let mut relevant = chaff();
    relevant[3].relevance = 0.85;
    let context = Assembly::of(relevant).within(30);
    assert!(
        context.text.starts_with("=== [1]\nSee also 1."),
        "a short chunk near it in score is the better one: {}",
        context.text
    );
}

#[test]
fn what_is_left_beside_a_cut_chunk_is_used() {
    let long = format!("{}. {}.", "a ".repeat(60).trim_end(), "b ".repeat(60).trim_end());
    let pool =
        vec![candidate("long", 0, &long, 0.9), candidate("short", 0, "nine words of some use are in here now.", 0.1)];
    let context = Assembly::of(pool).query("a").within(90);
    assert_eq!(chosen(&context), ["long#0", "short#0"]);
    assert!(context.citations[0].cut && !context.citations[1].cut);
}

#[test]
fn a_cut_text_keeps_to_its_sections_share_where_slack_is_none() {
    let context = Assembly::of(handbook()).query("leave").policy("slack = \"none\"\n[rho]\nbody = 0.25").within(32);
    let tokens: usize = context.trace.manifest.sections.iter().map(|section| section.tokens).sum();
    assert!((1..=8).contains(&tokens), "{}", context.text);
}

#[test]
fn every_budget_is_kept_and_fifty_always_delivers_text() {
    for budget in 0..120 {
        for format in [Format::Markdown, Format::Xml, Format::Json] {
            match Assembly::of(handbook()).query("months").format(format).try_within(budget) {
                Ok(context) => {
                    assert!(
                        count_words(context.counted()) <= budget && context.n_tokens == count_words(context.counted())
                    );
                    let least = context.trace.manifest.least_budget;
                    assert_eq!(context.citations.is_empty(), least.is_some(), "{budget} {format} {}", context.text);
                    assert!(least.is_none_or(|least| budget < 12 && least > budget), "{budget} {format} {least:?}");
                }
                Err(Error::BudgetTooSmall { needed, .. }) => {
                    assert!(budget < 8 && needed > budget, "budget {budget} needs {needed}")
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    let refused = Assembly::of(handbook()).try_within(0).unwrap_err().to_string();
    assert_eq!(refused, "a budget of 0 tokens is too small: the shortest answer needs 3");
    let refused = Assembly::of(handbook()).try_within(3).unwrap_err().to_string();
    assert_eq!(refused, "a budget of 3 tokens is too small: the shortest answer needs 6");
    assert!(!Assembly::of(handbook()).within(6).citations.is_empty(), "what an error says is needed is enough");
}

#[test]
fn a_scrap_that_is_dearer_to_wrap_than_to_say_is_not_delivered() {
    let titled = |candidate: Candidate| Candidate { title: "The rules of leave".into(), ..candidate };
    let pool: Vec<Candidate> = handbook().into_iter().map(titled).collect();
    let assembly = Assembly::of(pool).query("parents twelve months").lean();
    let nothing = assembly.within(9);
    assert_eq!((nothing.text.as_str(), nothing.n_tokens), ("[nothing fits below 14 tokens]\n", 5));
    assert_eq!(nothing.trace.manifest.outcome, Outcome::NothingFits);
    assert_eq!((nothing.trace.manifest.least_budget, nothing.citations.len()), (Some(14), 0));
    let least = assembly.within(14);
    assert!(least.text.starts_with("[1] The rules of leave > Body\n") && least.n_tokens == 14, "{}", least.text);
}

#[test]
fn a_name_alone_is_no_part_of_use() {
    let text = format!("Leave\n\n{}", handbook()[0].text);
    let pool = vec![Candidate { title: "Leave".into(), ..candidate("handbook", 0, &text, 0.9) }];
    for budget in 4..30 {
        let Ok(context) = Assembly::of(pool.clone()).query("leave").lean().try_within(budget) else { continue };
        let says =
            |citation: &Citation| text[citation.span.start as usize..citation.span.end as usize].trim() != "Leave";
        assert!(context.citations.iter().all(says), "{budget}: {}", context.text);
    }
}

#[test]
fn what_whole_chunks_leave_is_spent_on_sentences_of_the_next() {
    let sentence = |n: usize| format!("Leave {n}a of {n}b is {n}c and {n}d to {n}e for {n}f. ");
    let long: String = (0..20).map(sentence).collect();
    let pool = vec![candidate("a", 0, &(sentence(90) + &sentence(91)), 0.9), candidate("b", 0, &long, 0.8)];
    let assembly = Assembly { strategy: crate::Strategy::Cento, ..Assembly::of(pool) }.query("leave").lean();
    let context = assembly.within(100);
    assert_eq!(chosen(&context), ["a#0", "b#0"]);
    assert!(!context.citations[0].cut && context.citations[1].cut && context.n_tokens > 85, "{}", context.text);
    let cut = record(&context, "b#0");
    assert_eq!((cut.stage, cut.final_reason), (Stage::Walk, Reason::CutToFit));
    assert_eq!(cut.step_details.kept, Some(context.citations[1].span.clone()));
    assert_eq!(context.trace.manifest.outcome, Outcome::Whole);
}

#[test]
fn a_copy_of_another_document_that_is_cut_elsewhere_is_not_delivered_twice() {
    let words: Vec<String> = (0..90).map(|n| format!("w{n}")).collect();
    let part = |document: &str, index: u32, range: std::ops::Range<usize>, relevance: f64| {
        candidate(document, index, &(words[range].join(" ") + "\n"), relevance)
    };
    let mut pool = vec![part("source", 0, 0..40, 0.9), part("source", 1, 40..80, 0.8), part("reader", 0, 15..60, 0.85)];
    pool.push(candidate("other", 0, "quite another text that says nothing of all this\n", 0.5));
    let context = Assembly { strategy: crate::Strategy::Cento, ..Assembly::of(pool) }.lean().within(400);
    assert_eq!(chosen(&context), ["source#0", "source#1", "other#0"], "{}", context.text);
}

#[test]
fn parts_that_fill_are_no_copies_of_each_other_and_keep_to_the_caps() {
    let long = |seed: usize| -> String {
        let words = |n: usize| (0..18).map(|word| format!("s{seed}n{n}w{word} ")).collect::<String>();
        (0..8).map(|n| format!("On leave {}ends. ", words(n))).collect()
    };
    let short = "Parents on leave may ask for more. ";
    let first = candidate("a", 0, "Leave is granted on request, and nobody is asked why it is wanted. ", 0.9);
    let asked = |pool: Vec<Candidate>, policy: &str| {
        let assembly =
            Assembly { strategy: crate::Strategy::Cento, ..Assembly::of(pool) }.query("parents leave").lean();
        let context = assembly.policy(policy).within(50);
        chosen(&context).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let pool = |other: &str, index: u32, seed: usize| {
        let parts = [candidate("b", 0, &long(1), 0.8), candidate(other, index, &(long(seed) + short), 0.7)];
        std::iter::once(first.clone()).chain(parts).collect::<Vec<_>>()
    };
    assert_eq!(asked(pool("c", 0, 2), "").len(), 3, "two that differ");
    assert_eq!(asked(pool("c", 0, 1), "").len(), 2, "two that are copies");
    assert_eq!(asked(pool("b", 7, 2), "").len(), 3, "two of a document");
    assert_eq!(asked(pool("b", 7, 2), "max_per_document = 1").len(), 2, "one of a document");
}
