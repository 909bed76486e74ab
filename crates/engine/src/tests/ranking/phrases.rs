//! Quoted phrases, against every text read word by word; and rankings under many settings, against one run each.

use std::collections::BTreeSet;

use cento_lexical::Analyzer;

use super::super::Place;
use super::super::random::Random;
use crate::{
    ChunkSearch, Filter, LexicalScore, Links, Mode, NO_LIKELIHOODS, NOT_REQUIRED, Phrases, RankSettings, RunQuery,
    RunRequest, Searcher, Weights,
};

/// Notes of few words, so that they often stand together; sections of several chunks.
fn notes() -> Place {
    let place = Place::new();
    let words = ["the", "tide", "tides", "is", "not", "high", "High-tide", "harbour", "of", "mist"];
    for number in 0..24 {
        let mut random = Random::new(number);
        let mut text = |n: usize| (0..n).map(|_| words[random.below(words.len())]).collect::<Vec<_>>().join(" ");
        let n_sections = number as usize % 4;
        let sections: String = (0..n_sections).map(|n| format!("## Part {n}\n\n{}.\n\n", text(120))).collect();
        place.write(&format!("{number}.md"), &format!("# Note {number}\n\n{}, {}.\n\n{sections}", text(5), text(4)));
        if number == 14 {
            place.index(); // the rest are another segment
        }
    }
    place.index();
    place
}

/// The words of a text, as phrases are made of them.
fn words(text: &str) -> Vec<String> {
    Analyzer::exact(cento_lexical::Language::English).terms(text)
}

fn has(text: &str, phrase: &str) -> bool {
    let phrase = words(phrase);
    words(text).windows(phrase.len()).any(|window| window == phrase)
}

/// The documents that have all phrases, each text read to its end.
fn holders(searcher: &Searcher, phrases: &[&str]) -> BTreeSet<String> {
    let ids = (0..24).map(|number| format!("notes/{number}.md"));
    ids.filter(|id| phrases.iter().all(|phrase| has(&searcher.get(id).unwrap().text, phrase))).collect()
}

const PHRASES: [&[&str]; 7] = [
    &["high tide"],
    &["tide harbour"],
    &["is not"],
    &["the tide", "mist of"],
    &["harbour of the"],
    &["high-tide mist high"],
    &["mist mist mist mist mist mist"],
];

#[test]
fn what_answers_has_the_phrase_in_every_mode() {
    let place = notes();
    let searcher = place.searcher();
    let (mut n_some, mut n_straddling) = (0, 0);
    for (phrases, mode) in
        PHRASES.iter().flat_map(|phrases| [Mode::Lexical, Mode::Dense, Mode::Hybrid].map(|mode| (*phrases, mode)))
    {
        let expected = holders(&searcher, phrases);
        let quoted: String = phrases.iter().map(|phrase| format!("\"{phrase}\" ")).collect();
        let query = format!("{quoted}harbour w7");
        let links = Links::None;
        let search = ChunkSearch { mode, links, k: 1000, candidates: 1000, ..ChunkSearch::new(&query) };
        let response = searcher.search(&search).unwrap();
        let found: BTreeSet<String> = response.hits.iter().map(|hit| hit.document.clone()).collect();
        let run = RunRequest { mode, links, k: 1000, candidates: 1000, ..RunRequest::default() };
        let topic = RunQuery { text: query.clone(), scope: None };
        let ranking = searcher.run(&[topic], &run, &mut |_| {}).unwrap().remove(0);
        let ranked: BTreeSet<String> = ranking.into_iter().map(|(id, _)| id).collect();
        if mode == Mode::Lexical {
            // Of documents and chunks with the phrase, words find those with a term.
            assert!(found.is_subset(&expected) && ranked.is_subset(&expected), "{query}");
        } else {
            assert_eq!((&found, &ranked), (&expected, &expected), "{mode:?} {query}");
        }
        for hit in &response.hits {
            let is_inside = phrases.iter().any(|phrase| has(&hit.text, phrase));
            let neighbors = searcher.get(&hit.document).unwrap().text;
            let (from, to) =
                (hit.span[0].saturating_sub(80) as usize, (hit.span[1] as usize + 80).min(neighbors.len()));
            assert!(is_inside || phrases.iter().any(|phrase| has(&neighbors[from..to], phrase)), "{query}: {hit:?}");
            n_straddling += usize::from(!is_inside);
        }
        let is_told = response.warnings.iter().any(|warning| warning.starts_with("no document has"));
        assert_eq!(is_told, expected.is_empty(), "{query}: {:?}", response.warnings);
        n_some += usize::from(!expected.is_empty() && expected.len() < 24);
    }
    assert!(
        n_some >= 12 && n_straddling > 0,
        "{n_some} phrases tell documents apart, {n_straddling} chunks are run through"
    );
}

#[test]
fn a_quotation_in_a_sentence_ranks_as_words_and_is_told() {
    let place = notes();
    let searcher = place.searcher();
    let hits = |query: &str, phrases| {
        let response = searcher.search(&ChunkSearch { phrases, k: 1000, ..ChunkSearch::new(query) }).unwrap();
        let hits: Vec<_> = response.hits.into_iter().map(|hit| (hit.id, hit.score)).collect();
        let mut warnings = response.warnings;
        warnings.retain(|warning| !warning.starts_with(NO_LIKELIHOODS)); // of an encoder with random weights
        (hits, warnings)
    };
    let (plain, warnings) = hits("what of the tide harbour", Phrases::Auto);
    assert_eq!(warnings, Vec::<String>::new());
    let sentence = "what of the \"tide harbour\"";
    let (found, warnings) = hits(sentence, Phrases::Auto);
    assert_eq!(found.len(), plain.len(), "a sentence is no filter");
    assert!(warnings.iter().any(|warning| warning.starts_with(NOT_REQUIRED)), "{warnings:?}");
    let (words, warnings) = hits(sentence, Phrases::Words);
    assert_eq!((words, warnings), (found.clone(), Vec::new()));
    let (required, _) = hits(sentence, Phrases::Required);
    assert!(required.len() < found.len());
    let documents: BTreeSet<&str> = required.iter().map(|(id, _)| id.rsplit_once('#').unwrap().0).collect();
    assert!(documents.iter().all(|id| has(&searcher.get(id).unwrap().text, "tide harbour")));
}

#[test]
fn phrases_hold_within_a_filter_and_a_scope() {
    let place = notes();
    let searcher = place.searcher();
    let expected = holders(&searcher, &["is not"]);
    let (inside, outside): (Vec<_>, Vec<_>) = expected.into_iter().partition(|id| id.as_str() < "notes/17.md");
    assert!(!inside.is_empty() && !outside.is_empty());
    let found = |search: ChunkSearch| -> Vec<String> {
        let hits = searcher.search(&ChunkSearch { k: 100, mode: Mode::Dense, ..search }).unwrap().hits;
        hits.into_iter().map(|hit| hit.document).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let filter = Some(Filter::parse("id < \"notes/17.md\"").unwrap());
    assert_eq!(found(ChunkSearch { filter, ..ChunkSearch::new("\"is not\"") }), inside);
    let scope = Some(outside.clone());
    assert_eq!(found(ChunkSearch { scope, ..ChunkSearch::new("\"is not\"") }), outside);
}

#[test]
fn rankings_under_many_settings_are_those_of_one_run_each() {
    let place = notes();
    let searcher = place.searcher();
    let topics = ["high tide", "harbour of mist", "Note 7", "is not \"tide harbour\""];
    let queries: Vec<_> = topics.iter().map(|text| RunQuery { text: (*text).to_owned(), scope: None }).collect();
    let mut settings = Vec::new();
    for (lexical_weight, k1, b) in [(0.55, 0.9, 0.4), (0.0, 0.9, 0.4), (3.0, 1.5, 0.4), (0.55, 1.5, 0.75)] {
        for (lexical, title_weight) in [(LexicalScore::Document, 0.0), (LexicalScore::Mean, 0.3)] {
            for links in [Links::Named, Links::None] {
                let weights = Weights { lexical: lexical_weight, k1, b };
                settings.push(RankSettings { weights, lexical, title_weight, links });
            }
        }
    }
    for mode in [Mode::Hybrid, Mode::Lexical] {
        let request = RunRequest { mode, k: 8, ..RunRequest::default() };
        let mut together = Vec::new();
        searcher.run_each(&queries, &request, &settings, &mut |rankings| together.push(rankings)).unwrap();
        let mut distinct = BTreeSet::new();
        for (at, &RankSettings { weights, lexical, title_weight, links }) in settings.iter().enumerate() {
            let request = RunRequest { weights, lexical, title_weight, links, ..request.clone() };
            let alone = searcher.run(&queries, &request, &mut |_| {}).unwrap();
            let beside: Vec<_> = together.iter().map(|rankings| rankings[at].clone()).collect();
            assert_eq!(alone, beside, "{mode:?} {:?}", settings[at]);
            distinct.insert(format!("{alone:?}"));
        }
        assert!(distinct.len() >= 6, "{} rankings differ", distinct.len());
    }
}

#[test]
fn weights_out_of_their_ranges_are_refused_by_name() {
    let place = notes();
    let searcher = place.searcher();
    for (weights, setting) in [
        (Weights { lexical: -1.0, ..Weights::default() }, "lexical-weight"),
        (Weights { lexical: f64::NAN, ..Weights::default() }, "lexical-weight"),
        (Weights { k1: -0.1, ..Weights::default() }, "k1"),
        (Weights { b: 1.1, ..Weights::default() }, "b"),
    ] {
        let refused = searcher.search(&ChunkSearch { weights, ..ChunkSearch::new("tide") }).unwrap_err().to_string();
        assert!(refused.contains(setting), "{refused}");
        let topic = [RunQuery { text: "tide".to_owned(), scope: None }];
        let request = RunRequest { weights, ..RunRequest::default() };
        assert!(searcher.run(&topic, &request, &mut |_| {}).unwrap_err().to_string().contains(setting));
    }
}
