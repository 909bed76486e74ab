//! What is written, and how it is read back.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::{english, segment, text, write};
use crate::ROWS_MAX;
use crate::{
    Analyzer, Bm25, Error, File, Files, Language, Memory, OwnedBytes, Part, ROW_BYTES_MAX, Row, Scored, Searcher,
    Segment, Unit, Writer,
};

const QUERY: &str = "common poem header";

/// Rows enough for several blocks of postings.
fn corpus() -> Vec<String> {
    (0..1_000)
        .map(|row| format!("common row{row} poem{} {}", row % 7, if row % 3 == 0 { "poem" } else { "" }))
        .collect()
}

fn rows(corpus: &[String]) -> Vec<Row<'_>> {
    corpus.iter().map(|text| Row { text, header: "a header", title: "the title" }).collect()
}

fn search(segment: &Segment) -> Result<Vec<Scored>, Error> {
    let part = Part { segment, live: None, allowed: None, document_of_row: &[] };
    Ok(Searcher::new(vec![part], Unit::Row, Bm25::default())?.score(QUERY)?.remove(0))
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let corpus = corpus();
    let first = write(&english(), &rows(&corpus));
    let second = write(&english(), &rows(&corpus));
    assert_eq!(first, second);
    let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.is_sorted(), "{names:?}");
    assert!(["analyzer", "lengths", "meta.json"].iter().all(|name| names.contains(name)), "{names:?}");
}

#[test]
fn rows_are_numbered_as_they_were_added() {
    let corpus = corpus();
    let segment = segment(&english(), &rows(&corpus));
    assert_eq!(segment.n_rows(), 1_000);
    let part = Part { segment: &segment, live: None, allowed: None, document_of_row: &[] };
    let searcher = Searcher::new(vec![part], Unit::Row, Bm25::default()).unwrap();
    for row in [0, 1, 127, 128, 129, 500, 999] {
        let hits = searcher.score(&format!("row{row}")).unwrap();
        assert_eq!(hits[0].iter().map(|hit| hit.unit).collect::<Vec<_>>(), [row]);
    }
}

#[test]
fn lengths_are_exact() {
    let long = "word ".repeat(12_345);
    let rows = [text(&long), text(""), text("the of"), Row { text: "Ab_cd", header: "x y z", title: "t" }];
    let segment = segment(&english(), &rows);
    let lengths = segment.lengths().unwrap();
    assert_eq!([0, 1, 2, 3].map(|row| lengths.row(row)), [[12_345, 0, 0], [0, 0, 0], [0, 0, 0], [3, 3, 1]]);
    assert_eq!(lengths.totals(None).unwrap(), [12_348, 3, 1]);
    assert_eq!(lengths.totals(Some(&[1, 3].into())).unwrap(), [3, 3, 1]);
}

#[test]
fn an_empty_segment_opens_and_finds_nothing() {
    let segment = segment(&english(), &[]);
    assert_eq!(segment.n_rows(), 0);
    assert_eq!(search(&segment).unwrap(), []);
    // Rows without a word are rows all the same.
    let segment = super::segment(&english(), &[text(""), text("👍"), text("")]);
    assert_eq!(segment.n_rows(), 3);
    assert_eq!(search(&segment).unwrap(), []);
}

#[test]
fn another_analyser_is_refused_by_both_names() {
    let files = write(&english(), &[text("a poem")]);
    let german = Analyzer::new(Language::German);
    let error = Segment::open(Arc::new(Memory::from(files)), &german).unwrap_err();
    assert!(
        matches!(&error, Error::Analyzer { indexed, requested } if indexed.contains("english") && requested.contains("german"))
    );
    let message = error.to_string();
    assert!(message.contains("english") && message.contains("german") && message.contains("index again"), "{message}");
}

#[test]
fn a_row_too_large_is_refused_and_the_others_stay() {
    let mut writer = Writer::new(&english()).unwrap();
    writer.add(text("a poem")).unwrap();
    let blob = " ".repeat(ROW_BYTES_MAX + 1);
    assert!(matches!(writer.add(text(&blob)), Err(Error::RowTooLarge { row: 1, .. })));
    writer.add(text("common")).unwrap();
    assert_eq!(writer.n_rows(), 2);
    let files = writer.finish().unwrap();
    let segment = Segment::open(Arc::new(Memory::from(files)), &english()).unwrap();
    assert_eq!(search(&segment).unwrap().len(), 2);
}

#[test]
fn a_writer_has_room_for_what_it_is_sure_to_take() {
    let mut writer = Writer::new(&english()).unwrap();
    assert!(writer.has_room(1, ROW_BYTES_MAX / 2) && !writer.has_room(1, ROW_BYTES_MAX));
    assert!(writer.has_room(ROWS_MAX as usize, 0));
    let before = writer.memory_bytes();
    let words: String = (0..100_000).map(|n| format!("w{n} ")).collect();
    writer.add(text(&words)).unwrap();
    let grown = writer.memory_bytes() - before;
    assert!(grown > words.len() && grown < 32 * words.len(), "{grown} for {}", words.len());
    assert!(!writer.has_room(ROWS_MAX as usize, 0));
}

#[test]
fn a_missing_file_is_named() {
    let files = write(&english(), &rows(&corpus()));
    for at in 0..files.len() {
        let mut rest = files.clone();
        let (name, _) = rest.remove(at);
        // tantivy can do without positions, and there are none.
        if name.ends_with(".pos") {
            continue;
        }
        let error = Segment::open(Arc::new(Memory::from(rest)), &english()).unwrap_err();
        assert!(matches!(&error, Error::Missing { name: missing } if *missing == name), "{name}: {error:?}");
    }
}

#[test]
fn a_shortened_file_is_an_error() {
    let files = write(&english(), &rows(&corpus()));
    for (at, (name, bytes)) in files.iter().enumerate() {
        for n_bytes in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            let mut shortened = files.clone();
            shortened[at].1.truncate(n_bytes);
            let error = Segment::open(Arc::new(Memory::from(shortened)), &english()).unwrap_err();
            assert!(!error.to_string().is_empty(), "{name} at {n_bytes}");
        }
    }
}

#[test]
fn lengths_of_other_rows_are_refused() {
    let mut files = write(&english(), &[text("a poem"), text("common")]);
    let other = write(&english(), &[text("a poem")]);
    let lengths = |files: &[(String, Vec<u8>)]| files.iter().position(|(name, _)| name == "lengths").unwrap();
    let at = lengths(&files);
    files[at] = other[lengths(&other)].clone();
    let error = Segment::open(Arc::new(Memory::from(files)), &english()).unwrap_err();
    assert!(
        matches!(&error, Error::Corrupt { name, reason } if name == "meta.json" && reason.contains('2') && reason.contains('1'))
    );
}

/// As checksums do not show it if whoever wrote the file was wrong.
#[test]
fn totals_that_rows_cannot_add_up_to_are_refused() {
    for (total, words) in [(1, "2 terms in deleted rows, 1 in all"), (u64::MAX, "terms do not fit 2 rows")] {
        let mut files = write(&english(), &[text("two words"), text("common")]);
        let (_, lengths) = files.iter_mut().find(|(name, _)| name == "lengths").unwrap();
        lengths[8..16].copy_from_slice(&total.to_le_bytes());
        let live = [1].into();
        let searched = Segment::open(Arc::new(Memory::from(files)), &english()).and_then(|segment| {
            let part = Part { segment: &segment, live: Some(&live), allowed: None, document_of_row: &[] };
            Searcher::new(vec![part], Unit::Row, Bm25::default()).map(drop)
        });
        let error = searched.unwrap_err();
        assert!(
            matches!(&error, Error::Corrupt { name, reason } if name == "lengths" && reason.contains(words)),
            "{error}"
        );
    }
}

/// Files of which one cannot be read where a range begins at or after a byte of it.
#[derive(Debug)]
struct Damaged {
    files: Memory,
    name: String,
    from: usize,
}

#[derive(Debug)]
struct DamagedFile {
    file: Arc<dyn File>,
    from: usize,
}

impl Files for Damaged {
    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn File>>> {
        let Some(file) = self.files.open(name)? else { return Ok(None) };
        if name != self.name {
            return Ok(Some(file));
        }
        Ok(Some(Arc::new(DamagedFile { file, from: self.from })))
    }

    fn names(&self) -> Vec<String> {
        self.files.names()
    }
}

impl File for DamagedFile {
    fn len(&self) -> usize {
        self.file.len()
    }

    fn read(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        if range.contains(&self.from) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("corrupt at byte {}", self.from)));
        }
        self.file.read(range)
    }
}

/// Whatever byte of whatever file cannot be read: the answer is right, or an error that names the file and keeps its
/// cause.
#[test]
fn a_damaged_byte_is_an_error_or_was_not_needed() {
    let files = write(&english(), &rows(&corpus()));
    let expected = search(&Segment::open(Arc::new(Memory::from(files.clone())), &english()).unwrap()).unwrap();
    assert_eq!(expected.len(), 1_000);
    let mut n_errors = 0;
    for (name, bytes) in &files {
        let step = (bytes.len() / 200).max(1);
        for from in (0..bytes.len()).step_by(step) {
            let damaged = Damaged { files: Memory::from(files.clone()), name: name.clone(), from };
            match Segment::open(Arc::new(damaged), &english()).and_then(|segment| search(&segment)) {
                Ok(hits) => assert_eq!(hits, expected),
                Err(Error::Io { name: named, source }) => {
                    assert_eq!((&named, source.to_string()), (name, format!("corrupt at byte {from}")));
                    n_errors += 1;
                }
                Err(error) => panic!("{name} at {from}: {error:?}"),
            }
        }
    }
    assert!(n_errors > 500, "{n_errors}");
}
