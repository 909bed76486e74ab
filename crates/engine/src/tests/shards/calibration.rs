//! Calibration: of what lives, whatever became of a collection before; and collections that were calibrated otherwise.

use std::collections::BTreeMap;

use cento_collection::format::calibration::{Calibration, Figures, Key};

use super::super::{Place, QuickFs};
use crate::{ChunkSearch, Manifest, delete};

/// The chunks of the sample, and their cosines.
fn sample(place: &Place) -> BTreeMap<Key, Option<f64>> {
    match Manifest::read(&place.collection()).unwrap().calibration {
        Some(Calibration::Sample(sample)) => sample.chunks.into_iter().take(200).collect(),
        other => panic!("no sample: {other:?}"),
    }
}

fn write(place: &Place, numbers: std::ops::Range<usize>, word: &str) {
    for number in numbers {
        place
            .write(&format!("{number}.txt"), &format!("The {word} of number {number} is written in a whole sentence."));
    }
}

fn index(place: &Place) {
    place.index_with(&crate::IndexOptions { graph_rows_min: usize::MAX, ..place.options() }, &QuickFs).unwrap();
}

#[test]
fn a_collection_that_grew_is_calibrated_as_one_that_was_made_at_once() {
    let (grown, made) = (Place::new(), Place::new());
    write(&grown, 0..260, "harbour");
    index(&grown);
    write(&grown, 200..420, "moon");
    index(&grown);
    for number in 0..50 {
        grown.remove(&format!("{number}.txt"));
    }
    index(&grown);
    let ids: Vec<String> = (100..150).map(|number| format!("notes/{number}.txt")).collect();
    delete(&grown.collection(), &ids, &QuickFs).unwrap();
    write(&made, 50..100, "harbour");
    write(&made, 150..200, "harbour");
    write(&made, 200..420, "moon");
    index(&made);
    assert_eq!(sample(&grown).len(), 200);
    assert_eq!(sample(&grown), sample(&made));
}

#[test]
fn a_sample_of_which_most_was_deleted_is_taken_anew() {
    let (grown, made) = (Place::new(), Place::new());
    write(&grown, 0..600, "harbour");
    index(&grown);
    let ids: Vec<String> = (0..330).map(|number| format!("notes/{number}.txt")).collect();
    delete(&grown.collection(), &ids, &QuickFs).unwrap();
    assert!(sample(&grown).len() < 200, "the reserve was enough: this tests nothing");
    (0..330).for_each(|number| grown.remove(&format!("{number}.txt")));
    write(&grown, 600..601, "moon");
    index(&grown);
    write(&made, 330..600, "harbour");
    write(&made, 600..601, "moon");
    index(&made);
    assert_eq!((sample(&grown).len(), sample(&grown)), (200, sample(&made)));
}

#[test]
fn a_collection_with_figures_alone_keeps_them_until_it_is_indexed_again() {
    let place = Place::new();
    write(&place, 0..20, "tide");
    index(&place);
    let measured = sample(&place);
    let figures = Figures { n_sentences: 12, cosine_typical: 0.875, cosine_unrelated: 0.125 };
    let old = |calibration| {
        let manifest = Manifest { calibration, ..Manifest::read(&place.collection()).unwrap() };
        manifest.publish(&QuickFs, &place.collection()).unwrap();
        place.searcher()
    };
    let searcher = old(Some(Calibration::Figures(figures.clone())));
    assert_eq!(searcher.manifest().calibration.as_ref().and_then(Calibration::figures), Some(figures));
    let hits = searcher.search(&ChunkSearch::new("tide")).unwrap().hits;
    assert!(hits.iter().all(|hit| hit.likelihood.is_some_and(|likelihood| likelihood > 0.0 && likelihood < 1.0)));
    let uncalibrated = old(None).search(&ChunkSearch::new("tide")).unwrap();
    assert!(uncalibrated.hits.iter().all(|hit| hit.likelihood.is_none()));
    assert!(uncalibrated.warnings[0].contains("index it again"), "{:?}", uncalibrated.warnings);
    let asked = ChunkSearch { min_score: Some(0.5), ..ChunkSearch::new("tide") };
    let refused = old(None).search(&asked).unwrap_err().to_string();
    assert!(refused.contains("min-score") && refused.contains("index it again"), "{refused}");
    let generation = place.searcher().manifest().generation;
    index(&place);
    assert_eq!((sample(&place), place.searcher().manifest().generation), (measured, generation + 1));
    index(&place);
    assert_eq!(place.searcher().manifest().generation, generation + 1);
}
