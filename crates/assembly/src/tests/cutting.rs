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
                    assert!(!context.citations.is_empty(), "{budget} {format} {}", context.text);
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
    assert_eq!(refused, "a budget of 3 tokens is too small: the shortest answer needs 4");
    assert!(Assembly::of(handbook()).try_within(4).is_ok(), "what an error says is needed is enough");
}
