//! The score of a document by words: BM25 of all its text, or the mean of that and of its best chunk's; and its title.

use std::collections::HashMap;

use super::super::Place;
use super::super::random::Random;
use crate::{ChunkSearch, Filter, LexicalScore, Links, Mode, RunQuery, RunRequest, Searcher};

const QUERIES: [&str; 3] = ["w1 w2 w3", "w4 w4 harbour", "Part 7 mist"];

fn write(place: &Place, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let mut random = Random::new(number as u64);
        let mut words = |n: usize| (0..n).map(|_| format!("w{}", random.below(40))).collect::<Vec<_>>().join(" ");
        let sections: String = (0..number % 4).map(|n| format!("## Section {n}\n\n{} mist.\n\n", words(150))).collect();
        let text = format!("# Part {number}\n\n{} harbour.\n\n{}", words(20), sections);
        place.write(&format!("{number}.md"), &text);
    }
}

fn run(searcher: &Searcher, query: &str, lexical: LexicalScore, filter: Option<&Filter>) -> Vec<(String, f64)> {
    let query = RunQuery { text: query.to_owned(), scope: None };
    let (mode, filter) = (Mode::Lexical, filter.cloned());
    let request = RunRequest { mode, lexical, filter, title_weight: 0.0, ..RunRequest::default() };
    searcher.run(&[query], &request, &mut |_| {}).unwrap().remove(0)
}

#[test]
fn the_mean_is_of_the_document_and_of_its_best_chunk() {
    let place = Place::new();
    write(&place, 0..20);
    place.index();
    write(&place, 20..30);
    place.index();
    let searcher = place.searcher();
    let filter = Filter::parse("not (id = \"notes/3.md\")").unwrap();
    let mut n_moved = 0;
    for query in QUERIES {
        for filter in [None, Some(&filter)] {
            let mut best: HashMap<String, f64> = HashMap::new();
            let (mode, links) = (Mode::Lexical, Links::None);
            let request = ChunkSearch { k: 1000, mode, links, filter: filter.cloned(), ..ChunkSearch::new(query) };
            for hit in searcher.search(&request).unwrap().hits {
                let known = best.entry(hit.document).or_default();
                *known = known.max(hit.score);
            }
            let whole = run(&searcher, query, LexicalScore::Document, filter);
            let mean = |(id, score): &(String, f64)| (id.clone(), (score + best.get(id).unwrap_or(&0.0)) / 2.0);
            let mut expected: Vec<_> = whole.iter().map(mean).collect();
            expected.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| b.0.cmp(&a.0)));
            let ranking = run(&searcher, query, LexicalScore::Mean, filter);
            assert_eq!(ranking, expected);
            n_moved += ranking.iter().zip(&whole).filter(|(a, b)| a.0 != b.0).count();
        }
    }
    assert!(n_moved > 5, "{n_moved}");
}

#[test]
fn a_title_counts_by_how_much_of_it_is_asked_for() {
    let place = Place::new();
    write(&place, 0..12);
    for number in 0..4 {
        place.write(&format!("four{number}.md"), "# Harbour mist\n\nw1 w2 of a title that four have.\n");
    }
    place.write("w1.md", "# W1 harbour (poem)\n\nw3 w4 in few words.\n");
    place.index();
    let searcher = place.searcher();
    let title = |id: &str| searcher.get(id).unwrap().title.replace(" (poem)", "").to_lowercase();
    let idf = |terms: &[String]| -> f64 { searcher.idfs(terms).unwrap().iter().sum() };
    for query in ["w1 harbour mist", "Part 7", "w1"] {
        let asked = searcher.analyzer.terms(query);
        let plain = run(&searcher, query, LexicalScore::Document, None);
        let mut expected = plain.clone();
        for (id, score) in &mut expected {
            let (mut terms, title) = (searcher.analyzer.terms(&title(id)), title(id));
            let all = idf(&terms);
            terms.retain(|term| asked.contains(term));
            let hit = idf(&terms);
            if title != "harbour mist" && hit > 0.0 {
                *score += 0.3 * hit * (hit / all) * (hit / all);
            }
        }
        assert_ne!(expected, plain, "{query}");
        expected.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| b.0.cmp(&a.0)));
        let (mode, lexical) = (Mode::Lexical, LexicalScore::Document);
        let request = RunRequest { mode, lexical, title_weight: 0.3, ..RunRequest::default() };
        let asked = RunQuery { text: query.to_owned(), scope: None };
        let ranking = searcher.run(&[asked], &request, &mut |_| {}).unwrap().remove(0);
        assert_eq!(ranking.len(), expected.len());
        for ((id, score), (expected_id, expected)) in ranking.iter().zip(&expected) {
            assert_eq!(id, expected_id, "{query}");
            assert!((score - expected).abs() < 1e-12, "{id}: {score}, {expected}");
        }
    }
}
