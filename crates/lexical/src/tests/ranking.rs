//! How rows and documents are scored: against a scorer that counts in plain vectors, and against themselves cut
//! otherwise.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use roaring::RoaringBitmap;

use super::{english, segment, text};
use crate::{Analyzer, Bm25, Error, Language, Part, Row, Scored, Searcher, Segment, Statistics, Unit, text_statistics};

/// One row in words of a small vocabulary.
#[derive(Debug, Clone)]
struct Sample {
    text: String,
    header: String,
    title: String,
}

impl Sample {
    fn row(&self) -> Row<'_> {
        Row { text: &self.text, header: &self.header, title: &self.title }
    }
}

/// Documents, each of some rows; the first has the title.
fn documents() -> impl Strategy<Value = Vec<Vec<Sample>>> {
    let words = |max| prop::collection::vec("[a-e]", 0..max).prop_map(|words: Vec<String>| words.join(" "));
    let row = (words(12), words(4)).prop_map(|(text, header)| Sample { text, header, title: String::new() });
    let document = (prop::collection::vec(row, 1..4), words(4)).prop_map(|(mut rows, title)| {
        rows[0].title = title;
        rows
    });
    prop::collection::vec(document, 1..9)
}

fn parameters() -> impl Strategy<Value = Bm25> {
    (0.0..3.0, 0.0..=1.0, prop_oneof![Just(0.0), Just(1.0), 0.0..4.0]).prop_map(|(k1, b, header_weight)| Bm25 {
        k1,
        b,
        header_weight,
    })
}

/// Segments of consecutive documents.
struct Collection {
    segments: Vec<Segment>,
    live: Vec<RoaringBitmap>,
    document_of_row: Vec<Vec<u32>>,
}

impl Collection {
    /// `cut` divides the documents among segments; `is_live(document, row of it)` says what is not deleted.
    fn new(documents: &[Vec<Sample>], n_per_segment: usize, is_live: impl Fn(usize, usize) -> bool) -> Self {
        let analyzer = Analyzer::new(Language::None);
        let mut collection = Self { segments: Vec::new(), live: Vec::new(), document_of_row: Vec::new() };
        for (at, group) in documents.chunks(n_per_segment).enumerate() {
            let mut live = RoaringBitmap::new();
            let mut document_of_row = Vec::new();
            for (document, rows) in group.iter().enumerate() {
                for row in 0..rows.len() {
                    if is_live(at * n_per_segment + document, row) {
                        live.insert(document_of_row.len() as u32);
                    }
                    document_of_row.push(document as u32);
                }
            }
            let rows: Vec<Row<'_>> = group.iter().flatten().map(Sample::row).collect();
            collection.segments.push(segment(&analyzer, &rows));
            collection.live.push(live);
            collection.document_of_row.push(document_of_row);
        }
        collection
    }

    fn parts(&self) -> Vec<Part<'_>> {
        let parts = self.segments.iter().zip(&self.live).zip(&self.document_of_row);
        parts
            .map(|((segment, live), document_of_row)| {
                let live = (live.len() < u64::from(segment.n_rows())).then_some(live);
                Part { segment, live, allowed: None, document_of_row }
            })
            .collect()
    }

    fn searcher(&self, unit: Unit, bm25: Bm25) -> Searcher<'_> {
        Searcher::new(self.parts(), unit, bm25).unwrap()
    }

    /// Scores of all units in order, with `None` for what is not found.
    fn scores(&self, query: &str, unit: Unit, bm25: Bm25) -> Vec<Option<f64>> {
        let found = self.searcher(unit, bm25).score(query).unwrap();
        let mut scores = Vec::new();
        for (part, found) in found.iter().enumerate() {
            let n_units = match unit {
                Unit::Row => self.document_of_row[part].len(),
                Unit::Document => self.document_of_row[part].last().map_or(0, |&last| last as usize + 1),
            };
            assert!(found.is_sorted_by(|a, b| a.unit < b.unit), "{found:?}");
            let start = scores.len();
            scores.resize(start + n_units, None);
            for hit in found {
                scores[start + hit.unit as usize] = Some(hit.score);
            }
        }
        scores
    }
}

/// The units of the live rows: words with their weight, in the order in which they were written. `None` is deleted.
fn units(
    documents: &[Vec<Sample>],
    unit: Unit,
    header_weight: f64,
    is_live: impl Fn(usize, usize) -> bool,
) -> Vec<Option<Vec<(String, f64)>>> {
    let words =
        |text: &str, weight: f64| text.split_whitespace().map(|word| (word.to_owned(), weight)).collect::<Vec<_>>();
    let mut units = Vec::new();
    for (document, rows) in documents.iter().enumerate() {
        let mut whole: Option<Vec<(String, f64)>> = None;
        for (at, row) in rows.iter().enumerate() {
            let live = is_live(document, at);
            match unit {
                Unit::Row => {
                    units.push(live.then(|| [words(&row.text, 1.0), words(&row.header, header_weight)].concat()))
                }
                Unit::Document if live => {
                    whole.get_or_insert_default().extend([words(&row.text, 1.0), words(&row.title, 1.0)].concat());
                }
                Unit::Document => {}
            }
        }
        if unit == Unit::Document {
            units.push(whole);
        }
    }
    units
}

/// BM25 by its definition, word by word.
fn naive(units: &[Option<Vec<(String, f64)>>], query: &str, bm25: Bm25) -> Vec<Option<f64>> {
    let live: Vec<&Vec<(String, f64)>> = units.iter().flatten().collect();
    let n = live.len() as f64;
    let length = |unit: &[(String, f64)]| unit.iter().map(|(_, weight)| weight).sum::<f64>();
    let average = live.iter().map(|unit| length(unit)).sum::<f64>() / n;
    let tf =
        |unit: &[(String, f64)], term: &str| unit.iter().filter(|(word, _)| word == term).map(|(_, w)| w).sum::<f64>();
    let score = |unit: &Vec<(String, f64)>| {
        let mut sum = 0.0;
        for term in query.split_whitespace() {
            let df = live.iter().filter(|unit| tf(unit, term) > 0.0).count() as f64;
            let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
            let tf = tf(unit, term);
            if tf > 0.0 {
                sum += idf * tf / (tf + bm25.k1 * (1.0 - bm25.b + bm25.b * length(unit) / average));
            }
        }
        sum
    };
    units.iter().map(|unit| unit.as_ref().map(score).filter(|&score| score > 0.0)).collect()
}

fn assert_close(found: &[Option<f64>], expected: &[Option<f64>]) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        match (found, expected) {
            (Some(found), Some(expected)) => {
                prop_assert!((found - expected).abs() <= 1e-12 * expected, "{found} {expected}")
            }
            (found, expected) => prop_assert_eq!(found, expected),
        }
    }
    Ok(())
}

fn bits(scores: &[Option<f64>]) -> Vec<Option<u64>> {
    scores.iter().map(|score| score.map(f64::to_bits)).collect()
}

const UNITS: [Unit; 2] = [Unit::Row, Unit::Document];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn scores_are_those_of_the_naive_scorer(
        documents in documents(), bm25 in parameters(), query in "[a-g]( [a-g]){0,5}", n_per_segment in 1..4usize, dead in any::<u32>(),
    ) {
        let is_live = |document: usize, row: usize| dead >> ((document * 3 + row) % 32) & 1 == 0;
        let collection = Collection::new(&documents, n_per_segment, is_live);
        for unit in UNITS {
            let weight = if unit == Unit::Row { bm25.header_weight } else { 1.0 };
            let expected = naive(&units(&documents, unit, weight, is_live), &query, bm25);
            assert_close(&collection.scores(&query, unit, bm25), &expected)?;
        }
    }

    #[test]
    fn scores_do_not_depend_on_segments_or_on_what_was_deleted(
        documents in documents(), bm25 in parameters(), query in "[a-g]( [a-g]){0,5}", dead in any::<u32>(),
    ) {
        let is_live = |document: usize| dead >> document & 1 == 0;
        let kept: Vec<_> = documents.iter().enumerate().filter(|&(at, _)| is_live(at)).map(|(_, rows)| rows.clone()).collect();
        let collections = [1, 3, 100].map(|n| Collection::new(&documents, n, |document, _| is_live(document)));
        let never_added = Collection::new(&kept, 100, |_, _| true);
        for unit in UNITS {
            let [first, others @ ..] = collections.each_ref().map(|collection| bits(&collection.scores(&query, unit, bm25)));
            for other in others {
                prop_assert_eq!(&other, &first);
            }
            let found = |scores: Vec<Option<u64>>| scores.into_iter().flatten().collect::<Vec<_>>();
            prop_assert_eq!(found(bits(&never_added.scores(&query, unit, bm25))), found(first));
        }
    }

    #[test]
    fn parts_apart_score_as_together_under_the_sum_of_their_statistics(
        documents in documents(), bm25 in parameters(), query in "[a-g]( [a-g]){0,5}", n_per_segment in 1..4usize,
    ) {
        let collection = Collection::new(&documents, n_per_segment, |document, row| (document + row) % 5 != 4);
        let terms = Analyzer::new(Language::None).terms(&query);
        for unit in UNITS {
            let together = collection.searcher(unit, bm25);
            let apart = || collection.parts().into_iter().map(|part| Searcher::new(vec![part], unit, bm25).unwrap());
            let mut sum = Statistics::default();
            apart().for_each(|searcher| sum.add(&searcher.statistics(&terms).unwrap()));
            prop_assert_eq!(&sum, &together.statistics(&terms).unwrap());
            let whole = together.score(&query).unwrap();
            for (at, searcher) in apart().enumerate() {
                prop_assert_eq!(&searcher.score_under(&query, &sum).unwrap()[0], &whole[at]);
                for hit in &whole[at] {
                    let alone = searcher.explain_under(&query, 0, hit.unit, &sum).unwrap();
                    prop_assert_eq!(alone, together.explain(&query, at, hit.unit).unwrap());
                }
                if !terms.is_empty() {
                    let without = searcher.score_under(&query, &Statistics::default());
                    let is_refused = matches!(without, Err(Error::Statistics { .. }));
                    prop_assert!(is_refused);
                }
            }
        }
    }

    #[test]
    fn the_best_are_all_that_score_as_the_last_of_them_or_more(
        documents in documents(), bm25 in parameters(), query in "[a-g]( [a-g]){0,5}", n_per_segment in 1..4usize, depth in 0..40usize, allowed in any::<u32>(),
    ) {
        let collection = Collection::new(&documents, n_per_segment, |document, row| (document + row) % 5 != 4);
        let rows: RoaringBitmap = (0..12).filter(|row| allowed >> row & 1 == 1).collect();
        let terms = Analyzer::new(Language::None).terms(&query);
        for unit in UNITS {
            for is_filtered in [false, true] {
                let rows: Vec<RoaringBitmap> = collection.segments.iter().map(|of| rows.iter().filter(|&row| row < of.n_rows()).collect()).collect();
                let parts = collection.parts().into_iter().zip(&rows);
                let parts = parts.map(|(part, rows)| Part { allowed: is_filtered.then_some(rows), ..part }).collect();
                let searcher = Searcher::new(parts, unit, bm25).unwrap();
                let mut expected = searcher.score(&query).unwrap();
                let mut scores: Vec<f64> = expected.iter().flatten().map(|hit| hit.score).collect();
                scores.sort_by(|a, b| b.total_cmp(a));
                let cut = match depth {
                    0 => f64::INFINITY,
                    depth => scores.get(depth - 1).copied().unwrap_or(0.0),
                };
                expected.iter_mut().for_each(|hits| hits.retain(|hit| hit.score >= cut));
                let expected = (expected, searcher.statistics(&terms).unwrap());
                prop_assert_eq!(&searcher.best(&query, None, depth).unwrap(), &expected);
                prop_assert_eq!(&searcher.best(&query, Some(&expected.1), depth).unwrap(), &expected);
            }
        }
    }

    #[test]
    fn units_explained_together_are_explained_as_alone(
        documents in documents(), bm25 in parameters(), query in "[a-g]( [a-g]){0,9}", n_per_segment in 1..4usize,
    ) {
        let collection = Collection::new(&documents, n_per_segment, |document, row| (document + row) % 5 != 4);
        for unit in UNITS {
            let searcher = collection.searcher(unit, bm25);
            let found = searcher.score("a b c d e").unwrap();
            let units: Vec<(usize, u32)> =
                found.iter().enumerate().flat_map(|(part, hits)| hits.iter().map(move |hit| (part, hit.unit))).collect();
            let alone: Vec<_> = units.iter().map(|&(part, unit)| searcher.explain(&query, part, unit).unwrap()).collect();
            prop_assert_eq!(&searcher.explain_all(&query, &units, None).unwrap(), &alone);
            let (_, statistics) = searcher.best(&query, None, 1).unwrap();
            prop_assert_eq!(&searcher.explain_all(&query, &units, Some(&statistics)).unwrap(), &alone);
            let scores = searcher.score(&query).unwrap();
            for (&(part, unit), explanation) in units.iter().zip(&alone) {
                let score = scores[part].iter().find(|hit| hit.unit == unit).map_or(0.0, |hit| hit.score);
                prop_assert_eq!(explanation.score.to_bits(), score.to_bits());
            }
        }
    }

    #[test]
    fn explanations_add_up_to_the_bit(
        documents in documents(), bm25 in parameters(), query in "[a-g]( [a-g]){0,9}", n_per_segment in 1..4usize,
    ) {
        let collection = Collection::new(&documents, n_per_segment, |document, row| (document + row) % 5 != 4);
        for unit in UNITS {
            let searcher = collection.searcher(unit, bm25);
            for (part, hits) in searcher.score(&query).unwrap().iter().enumerate() {
                for &Scored { unit, score } in hits {
                    let explanation = searcher.explain(&query, part, unit).unwrap();
                    let sum = explanation.terms.iter().fold(0.0, |sum, term| sum + term.contribution);
                    prop_assert_eq!((explanation.score.to_bits(), sum.to_bits()), (score.to_bits(), score.to_bits()));
                }
            }
        }
    }

    #[test]
    fn a_filter_hides_results_and_changes_no_score(
        documents in documents(), query in "[a-g]( [a-g]){0,5}", allowed in any::<u32>(),
    ) {
        let collection = Collection::new(&documents, 100, |document, _| document != 1);
        let rows = collection.document_of_row[0].iter().enumerate();
        let allowed: RoaringBitmap = rows.filter(|(row, _)| allowed >> (row % 32) & 1 == 1).map(|(row, _)| row as u32).collect();
        for unit in UNITS {
            let part = Part { allowed: Some(&allowed), ..collection.parts()[0] };
            let filtered = Searcher::new(vec![part], unit, Bm25::default()).unwrap().score(&query).unwrap().remove(0);
            let is_allowed = |hit: &Scored| match unit {
                Unit::Row => allowed.contains(hit.unit),
                Unit::Document => (0u32..).zip(&collection.document_of_row[0]).any(|(row, &document)| document == hit.unit && allowed.contains(row)),
            };
            let mut all = collection.searcher(unit, Bm25::default()).score(&query).unwrap().remove(0);
            all.retain(is_allowed);
            prop_assert_eq!(filtered, all);
        }
    }
}

/// Hits of a query over rows of text.
#[track_caller]
fn check(rows: &[&str], query: &str, found: &[u32]) {
    let analyzer = english();
    let rows: Vec<Row<'_>> = rows.iter().map(|row| text(row)).collect();
    let segment = segment(&analyzer, &rows);
    let part = Part { segment: &segment, live: None, allowed: None, document_of_row: &[] };
    let mut hits = Searcher::new(vec![part], Unit::Row, Bm25::default()).unwrap().score(query).unwrap().remove(0);
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.unit.cmp(&b.unit)));
    assert_eq!(hits.iter().map(|hit| hit.unit).collect::<Vec<_>>(), found, "{query:?}");
}

#[test]
fn a_query_is_words_and_never_syntax() {
    let rows = ["cats and dogs", "dogs only", "text of a field"];
    check(&rows, "+cat -dog", &[0, 1]);
    check(&rows, "cat AND NOT dog", &[0, 1]);
    check(&rows, "\"dogs cats\" ~2 ^3 [a TO z] *:* (", &[0, 1]);
    check(&rows, "text:dogs", &[2, 0, 1]);
    check(&rows, "c*t d?gs /dog.*/", &[0, 1]);
}

#[test]
fn a_query_without_terms_finds_nothing() {
    for query in ["", "   ", "the of and", "👍 !?", "\u{0}"] {
        check(&["the of and", "cats 👍"], query, &[]);
    }
    let none = Searcher::new(Vec::new(), Unit::Row, Bm25::default()).unwrap();
    assert_eq!(none.score("cats").unwrap(), Vec::<Vec<Scored>>::new());
}

#[test]
fn text_without_spaces_is_found() {
    let rows = ["東京は日本の首都である。", "パリはフランスの首都である。", "서울은 한국의 수도이다"];
    check(&rows, "日本の首都", &[0, 1]);
    check(&rows, "東", &[0]);
    check(&rows, "한국", &[2]);
}

#[test]
fn a_term_named_twice_counts_twice() {
    let segment = segment(&english(), &[text("cats dogs"), text("birds")]);
    let part = Part { segment: &segment, live: None, allowed: None, document_of_row: &[] };
    let searcher = Searcher::new(vec![part], Unit::Row, Bm25::default()).unwrap();
    let [once, twice] = ["cat", "cats Cat"].map(|query| searcher.score(query).unwrap()[0][0].score);
    assert_eq!(twice, 2.0 * once);
    let explanation = searcher.explain("cats bird cat", 0, 0).unwrap();
    let terms: Vec<_> =
        explanation.terms.iter().map(|term| (term.term.as_str(), term.n_occurrences, term.df)).collect();
    assert_eq!(terms, [("cat", 2, 1), ("bird", 1, 1)]);
    assert_eq!(explanation.terms[1].contribution, 0.0);
}

#[test]
fn a_query_of_ten_thousand_words_is_scored() {
    let rows: Vec<String> = (0..3_000).map(|row| format!("word{row} word{} common", row / 2)).collect();
    let rows: Vec<Row<'_>> = rows.iter().map(|row| text(row)).collect();
    let segment = segment(&english(), &rows);
    let part = Part { segment: &segment, live: None, allowed: None, document_of_row: &[] };
    let searcher = Searcher::new(vec![part], Unit::Row, Bm25::default()).unwrap();
    let query: String = (0..10_000).map(|word| format!("word{word} ")).collect();
    assert_eq!(searcher.score(&query).unwrap()[0].len(), 3_000);
    assert_eq!(searcher.explain(&query, 0, 7).unwrap().terms.len(), 10_000);
}

#[test]
fn a_few_units_among_many_are_explained_under_given_statistics_as_without() {
    for n_rows in [127, 128, 129, 640, 1_000] {
        let rows: Vec<String> = (0..n_rows)
            .map(|row| format!("common {}{}", "odd ".repeat(row % 2), "rare ".repeat(row % 97 / 96)))
            .collect();
        let rows: Vec<Row<'_>> = rows.iter().map(|row| Row { text: row, header: "odd head", title: "" }).collect();
        let segment = segment(&english(), &rows);
        let document_of_row: Vec<u32> = (0..n_rows as u32).map(|row| row / 3).collect();
        let part = Part { segment: &segment, live: None, allowed: None, document_of_row: &document_of_row };
        for unit in UNITS {
            let searcher = Searcher::new(vec![part], unit, Bm25::default()).unwrap();
            let last = if unit == Unit::Row { n_rows - 1 } else { (n_rows - 1) / 3 } as u32;
            let units = [last, 0, last / 2, 1, last / 2, last - 1].map(|unit| (0, unit));
            let (_, statistics) = searcher.best("common odd rare nowhere", None, 1).unwrap();
            let explained = |given| searcher.explain_all("common odd rare nowhere", &units, given).unwrap();
            assert_eq!(explained(Some(&statistics)), explained(None), "{n_rows} rows, {unit:?}");
        }
    }
}

#[test]
fn a_header_saturates_together_with_its_text() {
    let rows = [Row { text: "cats", header: "cats", title: "" }, Row { text: "cats dogs", header: "", title: "" }];
    let segment = segment(&english(), &rows);
    let part = Part { segment: &segment, live: None, allowed: None, document_of_row: &[] };
    let bm25 = Bm25 { k1: 1.0, b: 0.0, header_weight: 3.0 };
    let term = Searcher::new(vec![part], Unit::Row, bm25).unwrap().explain("cats", 0, 0).unwrap().terms.remove(0);
    assert_eq!((term.tf, term.length, term.average_length, term.df), (4.0, 4.0, 3.0, 2));
    assert_eq!(term.contribution, term.idf * 4.0 / 5.0);
}

#[test]
fn parameters_outside_their_range_are_refused() {
    let default = Bm25::default();
    assert_eq!((default.k1, default.b, default.header_weight), (0.9, 0.4, 1.0));
    for bm25 in [
        Bm25 { k1: -0.1, ..default },
        Bm25 { k1: f64::NAN, ..default },
        Bm25 { b: 1.1, ..default },
        Bm25 { header_weight: f64::INFINITY, ..default },
    ] {
        assert!(matches!(Searcher::new(Vec::new(), Unit::Row, bm25), Err(Error::Parameter { .. })), "{bm25:?}");
    }
}

#[test]
fn rows_that_do_not_fit_the_segment_are_refused() {
    let segment = segment(&english(), &[text("a cat"), text("a dog")]);
    let far = RoaringBitmap::from([2]);
    let part = Part { segment: &segment, live: None, allowed: None, document_of_row: &[0, 0] };
    for part in [
        Part { live: Some(&far), ..part },
        Part { allowed: Some(&far), ..part },
        Part { document_of_row: &[0], ..part },
        Part { document_of_row: &[1, 1], ..part },
        Part { document_of_row: &[0, 2], ..part },
    ] {
        assert!(
            matches!(Searcher::new(vec![part], Unit::Document, Bm25::default()), Err(Error::Part { part: 0, .. })),
            "{part:?}"
        );
    }
}

#[test]
fn what_is_deleted_or_absent_has_no_explanation() {
    let segment = segment(&english(), &[text("a cat"), text("a dog")]);
    let live = RoaringBitmap::from([1]);
    let part = Part { segment: &segment, live: Some(&live), allowed: None, document_of_row: &[0, 1] };
    for unit in UNITS {
        let searcher = Searcher::new(vec![part], unit, Bm25::default()).unwrap();
        assert_eq!(searcher.explain("dog", 0, 1).unwrap().terms[0].n, 1);
        for (part, unit) in [(0, 0), (0, 2), (1, 0)] {
            assert!(matches!(searcher.explain("cat", part, unit), Err(Error::NoSuchUnit { .. })), "{part} {unit}");
        }
    }
}

#[test]
fn parts_of_two_analysers_are_refused() {
    let [first, second] =
        [Language::English, Language::German].map(|language| segment(&Analyzer::new(language), &[text("a")]));
    let part = Part { segment: &first, live: None, allowed: None, document_of_row: &[0] };
    let parts = vec![part, Part { segment: &second, ..part }];
    assert!(matches!(Searcher::new(parts, Unit::Row, Bm25::default()), Err(Error::Analyzer { .. })));
}

#[test]
fn searchers_are_shared_among_threads() {
    fn assert_shared<T: Send + Sync>() {}
    assert_shared::<Segment>();
    assert_shared::<Searcher<'_>>();
    assert_shared::<Analyzer>();
}

#[test]
fn the_idf_of_a_term_counts_live_rows_of_all_segments() {
    let analyzer = english();
    let whole = segment(&analyzer, &[text("cats sleep"), text("a dog")]);
    let holed = segment(&analyzer, &[text("cat and dog"), text("cat"), Row { header: "cat", ..text("bird") }]);
    let live = RoaringBitmap::from_iter([0_u32, 2]);
    let parts = vec![
        Part { segment: &whole, live: None, allowed: None, document_of_row: &[0, 1] },
        Part { segment: &holed, live: Some(&live), allowed: None, document_of_row: &[0, 1, 2] },
    ];
    let idf = |n: f64, df: f64| ((n - df + 0.5) / (df + 0.5)).ln_1p();
    for (term, df) in [("cat", 2.0), ("dog", 2.0), ("bird", 1.0), ("sleep", 1.0), ("fish", 0.0)] {
        let statistics = text_statistics(&parts, &[term.to_owned()]).unwrap();
        assert_eq!(statistics.idf(term), Some(idf(4.0, df)), "{term}");
    }
}

#[test]
fn postings_are_left_at_the_signal() {
    let rows = vec![text("cats"); 20 * 128];
    let segment = segment(&english(), &rows);
    let run = |signal: usize| {
        let n_looks = AtomicUsize::new(0);
        let stop = || n_looks.fetch_add(1, Ordering::Relaxed) >= signal;
        let part = Part { segment: &segment, live: None, allowed: None, document_of_row: &[] };
        let searcher = Searcher::new(vec![part], Unit::Row, Bm25::default()).unwrap().unless(&stop);
        let found = [searcher.score("cats cats"), searcher.statistics(&["cat".to_owned()]).map(|_| Vec::new())];
        (found, n_looks.load(Ordering::Relaxed))
    };
    let ([scored, counted], n_looks) = run(usize::MAX);
    assert!(scored.unwrap()[0].len() == rows.len() && counted.is_ok());
    assert_eq!(n_looks, 2 * 20, "a look before each block of 128");
    for signal in [0, 7, 19] {
        let (found, n_looks) = run(signal);
        assert!(found.iter().all(|found| matches!(found, Err(Error::Cancelled))), "{found:?}");
        assert_eq!(n_looks, signal + 2, "each leaves the rest of its postings unread");
    }
}
