//! Candidates of another engine: what a context of them may not depend on, and what is no candidate.

use std::ops::Range;

use cento_assembly::{Policy, Strategy};
use cento_lexical::Language;
use proptest::prelude::{ProptestConfig, Strategy as _, prop, prop_assert, prop_assert_eq, proptest};

use super::{Given, GivenCandidate};
use crate::cancel::Cancel;
use crate::context::request::ContextSettings;
use crate::context::tokens::BudgetTokenizer;
use crate::error::{Error, Result};

const QUERY: &str = "what moves the tide";

fn found(document: &str, text: &str, score: f64) -> GivenCandidate {
    GivenCandidate { text: text.into(), document: document.into(), score: Some(score), ..GivenCandidate::default() }
}

fn at(document: &str, text: &str, start: u64, score: f64) -> GivenCandidate {
    let span = Some(start..start + text.len() as u64);
    GivenCandidate { span, ..found(document, text, score) }
}

/// The delivered text, and for each citation its document and passages.
type Answered = (String, Vec<(String, Vec<(usize, Range<usize>, Option<Range<u64>>)>)>, usize);

fn answered(given: &[GivenCandidate], strategy: Strategy, budget_tokens: usize) -> Result<Answered> {
    let tokenizer = BudgetTokenizer::named("cl100k")?;
    let policy = Policy::default();
    let settings = ContextSettings { strategy, ..ContextSettings::new(budget_tokens, &tokenizer, &policy) };
    let given = Given::new(QUERY, given, Language::English, &Cancel::default())?;
    let context = given.context(&settings)?;
    let passages = |citation| {
        let passages = given.passages(citation).into_iter();
        passages.map(|passage| (passage.candidate, passage.span, passage.in_document)).collect()
    };
    let citations = context.citations.iter().map(|citation| (citation.document.clone(), passages(citation))).collect();
    Ok((context.text, citations, context.n_tokens))
}

#[track_caller]
fn refused(given: &[GivenCandidate], words: &str) {
    let error = answered(given, Strategy::Cento, 200).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

/// Passages of a text that overlap, as splitters make them, and others that stand alone.
fn documents() -> impl proptest::strategy::Strategy<Value = Vec<GivenCandidate>> {
    let text: String = (0..40).map(|n| format!("Söme wörds {n} of the tide and the moon.\n")).collect();
    let starts: Vec<usize> = text.char_indices().map(|(byte, _)| byte).collect();
    let cut = (0..starts.len() - 1, 1..200_usize, 0..4_u8, -5..5_i32, 0..2_usize);
    prop::collection::vec(cut, 1..14).prop_map(move |cuts| {
        let passage = |(first, length, kind, score, document): (usize, usize, u8, i32, usize)| {
            let last = (first + length).min(starts.len() - 1);
            let (start, end) = (starts[first], starts[last]);
            let mut given = found(&format!("{kind}-{document}"), &text[start..end], f64::from(score) / 3.0);
            match kind {
                0 => given.span = Some(start as u64..end as u64),
                1 => given.characters = Some(first as u64..last as u64),
                2 => (given.number, given.text) = (Some(first as u32), format!("{first} {}", &text[..starts[40]])),
                _ => {}
            }
            given
        };
        let made: Vec<GivenCandidate> = cuts.into_iter().map(passage).collect();
        made.into_iter().filter(|given| !given.text.trim().is_empty()).chain([found("z", "The moon.", 9.0)]).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_order_of_candidates_does_not_matter_and_citations_are_their_bytes(
        given in documents(), turn in 0..20_usize, budget in 30..600_usize, scale in 1e-3..1e3_f64, offset in -50.0..50.0_f64,
    ) {
        for strategy in [Strategy::Cento, Strategy::Flat, Strategy::Mmr, Strategy::Bubble] {
            let (text, citations, n_tokens) = answered(&given, strategy, budget).unwrap();
            prop_assert!(n_tokens <= budget);
            let mut other = given.clone();
            other.rotate_left(turn % given.len());
            other[..given.len() / 2].reverse();
            prop_assert_eq!(&answered(&other, strategy, budget).unwrap().0, &text);
            let mut delivered: Vec<(&str, Range<u64>)> = Vec::new();
            for (document, passages) in &citations {
                prop_assert!(!passages.is_empty());
                for (candidate, span, place) in passages {
                    let words = given[*candidate].text[span.clone()].trim();
                    prop_assert!(text.contains(words), "{words:?} is not in {text:?}");
                    prop_assert_eq!(&given[*candidate].document, document);
                    if let Some(place) = place {
                        let twice = delivered.iter().find(|(known, other)| {
                            known == document && other.start < place.end && place.start < other.end
                        });
                        prop_assert!(twice.is_none(), "{document} {place:?} is delivered twice");
                        delivered.push((document, place.clone()));
                    }
                }
            }
            if matches!(strategy, Strategy::Cento | Strategy::Flat) {
                // Scores as another engine would give them: of another scale, all of them negative or not.
                for given in &mut other {
                    given.score = given.score.map(|score| score * 4.0 * scale.log2().round().exp2() + offset.round());
                }
                let rescaled = answered(&other, strategy, budget).unwrap();
                prop_assert!(rescaled.2 <= budget);
                if strategy == Strategy::Flat {
                    let order = |text: &str| text.len();
                    prop_assert_eq!(order(&rescaled.0), order(&text));
                }
            }
        }
    }
}

#[test]
fn scores_of_any_scale_choose_the_same() {
    let texts = ["The moon moves the tide.", "Bread is baked.", "Tides rise twice.", "Yeast is alive.", "Stars shine."];
    let given = |scores: [f64; 5]| -> Vec<GivenCandidate> {
        texts.iter().zip(scores).map(|(text, score)| found(text, &text.repeat(4), score)).collect()
    };
    let cosines = [0.75, 0.25, 0.625, 0.125, 0.0];
    let (text, ..) = answered(&given(cosines), Strategy::Cento, 80).unwrap();
    assert!(text.contains("moon moves") && text.contains("Tides rise"), "{text}");
    let scaled = cosines.map(|cosine| cosine * 64.0); // as BM25
    let distances = cosines.map(|cosine| cosine - 1.0); // as distances with the sign turned
    let small = cosines.map(|cosine| cosine / 1024.0); // as sums of reciprocal ranks
    for scores in [scaled, distances, small] {
        assert_eq!(answered(&given(scores), Strategy::Cento, 80).unwrap().0, text, "{scores:?}");
    }
}

#[test]
fn what_passages_share_is_delivered_once_and_what_touches_is_one_piece() {
    let text = "The tide rises twice a day. The moon moves the tide. Its pull is strongest when near.";
    let (first, second) = (&text[..52], &text[28..]);
    let given = [at("sea", second, 1_028, 0.5), at("sea", first, 1_000, 0.9), at("bread", "Bread is baked.", 0, 0.1)];
    let (delivered, citations, _) = answered(&given, Strategy::Flat, 100).unwrap();
    assert!(delivered.starts_with(&format!("[1] sea\n{text}\n")), "{delivered}");
    let passages = vec![(1, 0..52, Some(1_000..1_052)), (0, 24..second.len(), Some(1_052..1_000 + text.len() as u64))];
    assert_eq!(citations[0], ("sea".to_owned(), passages));
    // A splitter that drops the blank line between two passages leaves them beside each other.
    let given = [at("sea", "The moon moves it.", 0, 0.5), at("sea", "It falls again.", 20, 0.4)];
    let (delivered, ..) = answered(&given, Strategy::Flat, 100).unwrap();
    assert!(delivered.contains("The moon moves it.\n\nIt falls again."), "{delivered}");
    let numbered = |number, text: &str| GivenCandidate { number: Some(number), ..found("sea", text, 0.5) };
    let given = [numbered(4, "It falls again."), numbered(3, "The moon moves it."), numbered(7, "End.")];
    let (delivered, ..) = answered(&given, Strategy::Flat, 100).unwrap();
    assert!(delivered.contains("The moon moves it.\nIt falls again.\n…\nEnd."), "{delivered}");
}

#[test]
fn characters_count_as_python_counts_them() {
    let text = "Gezeiten über Ebbe, Flut und Mond: täglich zweimal.";
    let n = text.chars().count() as u64;
    let given = [GivenCandidate { characters: Some(70..70 + n), ..found("meer", text, 1.0) }];
    let (_, citations, _) = answered(&given, Strategy::Cento, 100).unwrap();
    assert_eq!(citations[0].1, [(0, 0..text.len(), Some(70..70 + n))]);
}

#[test]
fn what_is_no_candidate_is_refused_by_its_number() {
    let good = || at("sea", "The moon moves the tide.", 0, 0.5);
    let second = |given: GivenCandidate| [good(), given];
    refused(&[], "from 1 to 100000");
    refused(&second(found("sea", "  \n", 0.5)), "\"[1]\" has no text");
    refused(&second(found("", "text", 0.5)), "names no document");
    for score in [f64::NAN, f64::INFINITY] {
        refused(&second(found("b", "text", score)), "no finite number");
    }
    refused(&second(GivenCandidate { score: None, ..found("b", "text", 0.0) }), "has no score, and no place");
    refused(&[GivenCandidate { score: None, ..good() }], "nor has any other");
    refused(&second(found("sea", "text", 0.5)), "in another form than candidate [0]");
    refused(&second(at("sea", "The sun moves the tide.", 0, 0.4)), "another text stands at 0-23");
    refused(&second(GivenCandidate { span: Some(5..9), ..found("b", "tide.", 0.5) }), "another length than its text");
    refused(&second(GivenCandidate { span: Some(0..4), ..found("b", "Ebbé", 0.5) }), "counts characters");
    refused(&second(GivenCandidate { characters: Some(0..5), ..found("b", "Ebbé", 0.5) }), "name them span");
    let backwards = Range { start: 9, end: 5 };
    refused(&second(GivenCandidate { span: Some(backwards), ..found("b", "text", 0.5) }), "another length");
    refused(&second(GivenCandidate { number: Some(1), ..at("b", "text", 0, 0.5) }), "more than one form");
    refused(&second(found("b", &"a ".repeat(5 << 20), 0.5)), "10485760 bytes; 1048576 are read at most");
    let numbered = |text: &str| GivenCandidate { number: Some(3), ..found("n", text, 0.5) };
    refused(&[numbered("a"), numbered("b")], "has the number of candidate [0]");
    let vector = |vector: &[f32]| GivenCandidate { vector: Some(vector.to_vec()), ..found("v", "text", 0.5) };
    refused(&[good(), vector(&[1.0])], "\"[0]\" has no vector");
    refused(&[vector(&[1.0, 0.0]), vector(&[1.0])], "1 dimensions, another has 2");
    refused(&[vector(&[0.0, 0.0])], "no direction");
    refused(&[vector(&[f32::NAN, 0.0])], "no direction");
    refused(&vec![good(); 100_001], "from 1 to 100000");
    let error = answered(&[good()], Strategy::Cento, 2).unwrap_err();
    assert!(matches!(error, Error::Assembly(cento_assembly::Error::BudgetTooSmall { .. })), "{error}");
}

#[test]
fn a_strategy_that_looks_beside_says_what_it_lacks() {
    let tokenizer = BudgetTokenizer::named("cl100k").unwrap();
    let policy = Policy::default();
    let warned = |given: &[GivenCandidate], strategy| {
        let given = Given::new(QUERY, given, Language::English, &Cancel::default())?;
        let settings = ContextSettings { strategy, ..ContextSettings::new(200, &tokenizer, &policy) };
        Ok::<_, Error>((given.context(&settings)?.trace.warnings.join("; "), given.context(&settings)?.text))
    };
    let alone = [found("a", "The tide.", 0.5)];
    for strategy in [Strategy::Rse, Strategy::RseExact, Strategy::RseKadane, Strategy::Window, Strategy::Parent] {
        let error = warned(&alone, strategy).unwrap_err().to_string();
        assert!(error.contains("none has a place; give number"), "{error}");
    }
    assert!(warned(&alone, Strategy::Seal).unwrap_err().to_string().contains("needs a collection"));
    let placed = |number, score| GivenCandidate { number: Some(number), score, ..found("a", "The tide.", 0.5) };
    let placed = |number: u32, score| GivenCandidate { text: format!("The tide {number}."), ..placed(number, score) };
    let error = warned(&[placed(0, Some(0.5))], Strategy::Automerge).unwrap_err().to_string();
    assert!(error.contains("no candidate has headings"), "{error}");
    let (warnings, _) = warned(&[placed(0, Some(0.5))], Strategy::Window).unwrap();
    assert!(warnings.contains("sees only what was found"), "{warnings}");
    let (warnings, text) = warned(&[placed(1, Some(0.5)), placed(0, None), placed(2, None)], Strategy::Window).unwrap();
    assert!(warnings.is_empty() && text.contains("The tide 0.\nThe tide 1.\nThe tide 2."), "{warnings} {text}");
    let under =
        |number, score, heading: &str| GivenCandidate { headings: vec![heading.into()], ..placed(number, score) };
    let section = [under(1, Some(0.9), "Moon"), under(2, None, "Moon"), under(3, None, "Sun"), under(0, None, "Wind")];
    let (_, text) = warned(&section, Strategy::Parent).unwrap();
    assert!(text.contains("The tide 1.\nThe tide 2.") && !text.contains("tide 3"), "{text}");
}
