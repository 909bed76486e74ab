//! Runs and merges within a bound of memory: several segments instead of one, and no answer changes.

use super::volatile::{Fault, VolatileFs};
use super::writers::files;
use super::{Place, QuickFs, answers, copied, index_notes};
use crate::config::SEGMENT_ROWS_MAX;
use crate::{
    At, CACHE_BYTES_MAX, CacheOptions, ChunkTokens, CompactOptions, IndexOptions, MEMORY_BYTES_MIN, Manifest, Merge,
    Progress, Root, delete, describe, doctor,
};
use cento_corpus::{ChunkSize, ReadOptions};

const WORDS: [&str; 4] = ["tide of the moon", "bread with 17 grains", "note 3", "what keeps iron from rust"];

fn note(n: usize) -> String {
    let subject = ["tide", "bread", "iron", "moon", "rust", "grain"][n % 6];
    let section = |section| format!("## Part {section}\n\nThe {subject} keeps {} grains.\n\n", (n * 7 + section) % 29);
    format!("# Of {subject} {n}\n\n{}", (0..1 + n % 3).map(section).collect::<String>())
}

fn notes(n_notes: usize) -> Place {
    let place = Place::new();
    (0..n_notes).for_each(|n| place.write(&format!("note{n:02}.md"), &note(n)));
    place
}

fn segment_rows(place: &Place) -> Vec<u64> {
    Manifest::read(&place.collection()).unwrap().segments.iter().map(|segment| segment.n_rows).collect()
}

fn check_rows(place: &Place, rows_max: usize) {
    let rows = segment_rows(place);
    assert!(rows.iter().all(|&rows| rows <= rows_max as u64), "{rows:?}");
    assert!(rows.windows(2).all(|pair| pair.iter().sum::<u64>() + 3 > rows_max as u64), "none was cut early: {rows:?}");
    let diagnosis = doctor(&place.collection()).unwrap();
    assert!(diagnosis.is_healthy(), "{diagnosis:?}");
}

#[test]
fn a_run_of_many_segments_answers_as_one_of_one_and_is_cut_in_the_same_places_on_any_number_of_threads() {
    let whole = notes(40);
    whole.index();
    assert_eq!(segment_rows(&whole).len(), 1);
    let expected = answers(&whole.searcher(), &WORDS);
    for rows_max in [1, 7, 30] {
        let [one, two] = [1, 2].map(|threads| {
            let place = notes(40);
            let options = IndexOptions { segment_rows_max: rows_max, threads, ..place.options() };
            let report = place.index_with(&options, &QuickFs).unwrap();
            assert_eq!((report.generation, report.n_added), (1, 40));
            place
        });
        check_rows(&one, rows_max.max(4)); // a document is never cut
        assert!(segment_rows(&one).len() > 40 / rows_max.max(2), "{:?}", segment_rows(&one));
        assert!(answers(&one.searcher(), &WORDS) == expected, "rows_max {rows_max}");
        let segments = |place: &Place| files(&place.collection().join("segments"));
        assert!(segments(&one) == segments(&two), "rows_max {rows_max}");
        let again = one.index_with(&IndexOptions { segment_rows_max: rows_max, ..one.options() }, &QuickFs).unwrap();
        assert_eq!((again.generation, again.n_unchanged), (1, 40));
    }
}

#[test]
fn enough_memory_changes_no_byte_and_too_little_is_refused_with_the_least() {
    let [default, least] = [None, Some(MEMORY_BYTES_MIN)].map(|memory_bytes| {
        let place = notes(12);
        place.index_with(&IndexOptions { memory_bytes, ..place.options() }, &QuickFs).unwrap();
        place
    });
    assert!(files(&default.collection().join("segments")) == files(&least.collection().join("segments")));
    let place = notes(1);
    let memory_bytes = Some(MEMORY_BYTES_MIN - 1);
    let error = place.index_with(&IndexOptions { memory_bytes, ..place.options() }, &QuickFs).unwrap_err();
    assert!(error.to_string().contains("memory") && error.to_string().contains("320MiB"), "{error}");
    assert!(!place.collection().exists());
    place.index();
    let options = CompactOptions { memory_bytes, ..CompactOptions::default() };
    let error = crate::compact(&place.collection(), &options, &QuickFs, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("320MiB"), "{error}");
}

/// 300 records of 1,000 tags each, which nobody else has: 300,000 values, some 80 MiB while they are gathered.
#[test]
fn documents_that_need_more_than_the_memory_go_into_several_segments() {
    let place = Place::new();
    let record = |n: usize| {
        let tags: Vec<String> = (0..1000).map(|tag| format!("\"tag {n} {tag}\"")).collect();
        format!("{{\"id\": \"{n}\", \"text\": \"Record {n} of the tide.\", \"tags\": [{}]}}\n", tags.join(","))
    };
    place.write("records.jsonl", &(0..300).map(record).collect::<String>());
    let run = |memory_bytes| {
        let collection = tempfile::tempdir().unwrap();
        let collection = collection.path().join("collection");
        let options = IndexOptions { memory_bytes, ..place.options() };
        index_notes(&place.notes(), &collection, &options, &QuickFs).unwrap();
        let searcher = crate::Searcher::open(&collection, crate::SearcherOptions::default()).unwrap();
        let segments = Manifest::read(&collection).unwrap().segments.len();
        (segments, answers(&searcher, &["record 17 of the tide"]))
    };
    let (whole, bounded) = (run(Some(1 << 30)), run(Some(MEMORY_BYTES_MIN)));
    assert_eq!((whole.0, bounded.0), (1, 2));
    assert!(whole.1 == bounded.1);
}

#[test]
fn a_merge_stays_within_the_limits_and_changes_no_answer() {
    let place = notes(40);
    let options = IndexOptions { segment_rows_max: 5, ..place.options() };
    place.index_with(&options, &QuickFs).unwrap();
    let expected = answers(&place.searcher(), &WORDS);
    let compact = |rows_max| {
        let options = CompactOptions {
            segment_rows_max: rows_max,
            merge: Merge::All,
            graph_rows_min: 1,
            ..CompactOptions::default()
        };
        crate::compact(&place.collection(), &options, &QuickFs, &mut |_| {}).unwrap()
    };
    let before = segment_rows(&place).len();
    assert!(compact(25).n_merged > 10);
    assert!(segment_rows(&place).len() < before / 3, "{:?}", segment_rows(&place));
    check_rows(&place, 25);
    assert!(answers(&place.searcher(), &WORDS) == expected);
    assert_eq!(compact(25).n_merged, 0, "what is full stays");

    assert_eq!(compact(SEGMENT_ROWS_MAX).n_segments, 1);
    delete(&place.collection(), &["notes/note00.md".to_owned()], &QuickFs).unwrap();
    let expected = answers(&place.searcher(), &WORDS);
    assert!(compact(30).n_segments > 1, "one that is larger than the limits is cut when it sheds what is dead");
    check_rows(&place, 30);
    assert!(answers(&place.searcher(), &WORDS) == expected);
}

/// A run that fails in its third segment leaves none of the first two.
#[test]
fn segments_of_a_run_that_found_no_room_leave_none_occupied() {
    let place = notes(3);
    let options = IndexOptions { segment_rows_max: 1, ..place.options() };
    let mut n_late = 0;
    for at in 0.. {
        let disk = copied(place.folder.path());
        let collection = disk.path().join("collection");
        let full = VolatileFs::new(disk.path(), Fault::Full(at));
        let Err(error) = index_notes(&place.notes(), &collection, &options, &full) else { break };
        if describe(&error).contains("segments/1-2") {
            for segment in ["1-0", "1-1", "1-2"] {
                assert!(!collection.join("segments").join(segment).exists(), "operation {at}: {segment}: {error}");
            }
            n_late += 1;
        }
    }
    assert!(n_late > 20, "{n_late}");
}

/// One text is too long for a row; the others are indexed, and what the collection has of it stays.
#[test]
fn a_document_that_no_segment_takes_fails_alone() {
    let place = notes(2);
    let chunk_tokens = Some(ChunkTokens(ChunkSize::Document));
    let read = ReadOptions { max_file_bytes: 1 << 30, ..ReadOptions::default() };
    let options = IndexOptions { chunk_tokens, read, ..place.options() };
    place.index_with(&options, &QuickFs).unwrap();
    let before = answers(&place.searcher(), &["tide"]);
    place.write("note00.md", &"a".repeat(cento_lexical::ROW_BYTES_MAX + 1));
    place.write("other.md", "Rye bread.\n");
    let report = place.index_with(&options, &QuickFs).unwrap();
    assert_eq!((report.n_added, report.n_changed, report.failed.len()), (1, 0, 1), "{report:?}");
    assert!(report.failed[0].reason.contains("67108864"), "{report:?}");
    assert_eq!(report.kept, ["notes/note00.md"]);
    assert!(before.contains("notes/note00.md") && answers(&place.searcher(), &["tide"]).contains("notes/note00.md"));
    assert!(answers(&place.searcher(), &["rye"]).contains("notes/other.md"));
}

/// Where nearly all is in the cache, the first text that is not holds up the vectors of no more rows than are worth
/// it.
#[test]
fn a_text_that_is_not_in_the_cache_does_not_hold_up_all_that_are() {
    let place = Place::new();
    let cache = CacheOptions { folder: place.folder.path().join("cache"), max_bytes: CACHE_BYTES_MAX };
    let options = IndexOptions { cache: Some(cache), ..place.options() };
    (0..400).for_each(|n| place.write(&format!("note{n:03}.md"), &note(n)));
    place.index_with(&options, &QuickFs).unwrap();
    place.write("a.md", "# First\n\nNobody has read this.\n");
    let collection = place.folder.path().join("another");
    let mut n_documents = None;
    let root = Root { label: "notes".to_owned(), path: place.notes() };
    let mut progress = |progress: &Progress| {
        if progress.n_tokens > 0 {
            n_documents.get_or_insert(progress.n_documents);
        }
    };
    let report = crate::index(&collection, &[root], &options, &QuickFs, &mut progress).unwrap();
    assert_eq!((report.n_added, report.n_from_log), (401, report.n_chunks - 1));
    assert!(n_documents.is_some_and(|n| n < 401), "{n_documents:?}");
    assert!(Manifest::read(&collection).unwrap().segments.len() == 1 && place.open(At::Current).is_ok());
}
