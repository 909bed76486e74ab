//! Filters on where chunks stand, against a reading of the chunks one by one.

use std::collections::BTreeMap;
use std::ops::Range;

use cento_collection::format::config::{CHUNKER_VERSION, CollectionConfig, Pooling};
use cento_collection::format::segment::{NewChunk, NewDocument, Segment, SegmentWriter};
use cento_collection::fs::{Folder, OsFs};
use cento_collection::testing::random::Random;
use cento_corpus::{Anchor, Chunk, Document, Field, Format, Metadata, Section, TextKind, Value};
use proptest::prelude::*;
use roaring::RoaringBitmap;

use super::super::rows::n_documents;
use super::super::{Filter, Schema};
use super::naive::{Compared, expression, value};

const FIELDS: [Compared; 9] = [
    ("page", &["1", "2", "2.5", "3.0", "\"iii\""]),
    ("chunk.page", &["1", "2", "4"]),
    ("meta.page", &["1", "3", "\"iii\""]),
    ("slide", &["1", "2", "3"]),
    ("sheet", &["\"a\"", "\"ab\"", "\"b\"", "\"\""]),
    ("row", &["1", "2", "4", "5", "7", "9", "10"]),
    ("line", &["1", "2", "3", "4", "6"]),
    ("year", &["2019", "2020"]),
    ("meta.sheet", &["\"a\"", "\"o\""]),
];

/// The fields that a document may have of its own, and their values.
const OWN: [Compared; 3] =
    [("page", &["1", "3", "\"iii\""]), ("sheet", &["\"a\"", "\"o\""]), ("year", &["2019", "2020"])];

/// A document in the making: its chunks with rows, and what each has under the names of anchors.
struct Written {
    document: Document,
    chunks: Vec<(Chunk, Metadata)>,
}

impl Written {
    fn new(random: &mut Random, number: usize) -> Self {
        let format = [Format::Pdf, Format::Pptx, Format::Xlsx, Format::Markdown, Format::Jsonl][random.below(5)];
        let mut metadata = Metadata::new();
        for (name, literals) in OWN {
            if random.below(3) == 0 {
                metadata.insert(name.to_owned(), Field::One(value(literals[random.below(literals.len())])));
            }
        }
        let id = format!("r/{number}");
        let document = Document {
            origin: id.clone(),
            id,
            title: String::new(),
            format,
            kind: if format == Format::Markdown { TextKind::Source } else { TextKind::Extracted },
            sections: vec![section(None)],
            blocks: Vec::new(),
            metadata,
            links: Vec::new(),
            warnings: Vec::new(),
            text: String::new(),
        };
        let mut written = Self { document, chunks: Vec::new() };
        match format {
            Format::Xlsx => written.sheets(random),
            Format::Markdown => written.lines(random),
            Format::Jsonl => {
                let line = 1 + random.below(6) as u32;
                written.chunk(
                    "one\ntwo\n",
                    Anchor { line: Some(line), ..Anchor::default() },
                    &[("line", line..line + 1)],
                );
            }
            _ => {
                let mut page = 1;
                for _ in 0..random.below(5) {
                    page += random.below(3) as u32;
                    let anchor = Anchor { page: Some(page), ..Anchor::default() };
                    let places = [("page", page..page + 1), ("slide", page..page + 1)];
                    let n_places = if format == Format::Pptx { 2 } else { 1 };
                    written.chunk("word\n", anchor, &places[..n_places]);
                }
            }
        }
        written
    }

    /// Adds a chunk in the last section.
    fn chunk(&mut self, text: &str, anchor: Anchor, places: &[(&str, Range<u32>)]) {
        let start = self.document.text.len();
        self.document.text.push_str(text);
        let sheet = self.document.sections.last().unwrap().anchor.sheet.clone();
        let numbers =
            |range: &Range<u32>| Field::Many(range.clone().map(|number| Value::Integer(number.into())).collect());
        let mut at: BTreeMap<String, Field> =
            places.iter().map(|(name, range)| ((*name).to_owned(), numbers(range))).collect();
        at.extend(sheet.map(|sheet| ("sheet".to_owned(), Field::One(Value::Text(sheet)))));
        let own = &self.document.metadata;
        let mut all: Metadata = own.iter().map(|(name, field)| (name.clone(), field.clone())).collect();
        for (name, field) in at {
            all.insert(format!("chunk.{name}"), field.clone());
            all.entry(name).or_insert(field);
        }
        all.extend(own.iter().map(|(name, field)| (format!("meta.{name}"), field.clone())));
        let section = self.document.sections.len() as u32 - 1;
        let span = start..self.document.text.len();
        self.chunks.push((Chunk { span, section, n_tokens: 1, hidden: false, anchor, header_skip: 0 }, all));
    }

    /// Sheets with a heading, of chunks of several rows and of rows cut in two, with empty rows between chunks.
    fn sheets(&mut self, random: &mut Random) {
        for sheet in ["a", "ab", "b"].iter().take(random.below(4)) {
            self.document.sections.push(section(Some(sheet)));
            self.chunk("heading\n", Anchor::default(), &[]);
            let (mut parts, mut row) = (Vec::new(), 1 + random.below(3) as u32);
            for _ in 0..random.below(4) {
                let n_rows = 1 + random.below(3) as u32;
                parts.push((row, "a: 1 | b: 2\n".repeat(n_rows as usize), n_rows));
                if random.below(3) == 0 {
                    let (_, text, n_rows) = parts.last_mut().unwrap();
                    (*text, *n_rows) = ("a: 1 | ".to_owned(), 1);
                    parts.push((row, "b: 2\n".to_owned(), 1));
                }
                row += n_rows + random.below(2) as u32;
            }
            for (at, (first, text, n_rows)) in parts.iter().enumerate() {
                let end = parts.get(at + 1).map_or(first + n_rows, |(next, ..)| (*next).max(first + 1));
                self.chunk(text, Anchor { row: Some(*first), ..Anchor::default() }, &[("row", *first..end)]);
            }
        }
    }

    /// A text cut anywhere; the lines of a chunk are those that its characters stand on, blanks aside.
    fn lines(&mut self, random: &mut Random) {
        let text: String =
            (0..random.below(12)).map(|_| ["tide ", "ebb\n", "\n", "moon.\n\n"][random.below(4)]).collect();
        let mut start = 0;
        while start < text.len() {
            let end = (start + 1 + random.below(12)).min(text.len());
            let line = |at: usize| 1 + text[..at].matches('\n').count() as u32;
            let taken = (start..end).filter(|&at| !text[at..=at].trim().is_empty()).map(line);
            let taken: Vec<u32> = taken.collect();
            match (taken.first(), taken.last()) {
                (Some(&first), Some(&last)) => {
                    let anchor = Anchor { line: Some(first), ..Anchor::default() };
                    self.chunk(&text[start..end], anchor, &[("line", first..last + 1)]);
                }
                _ => self.document.text.push_str(&text[start..end]), // hidden: it has no row
            }
            start = end;
        }
    }
}

fn section(sheet: Option<&str>) -> Section {
    let anchor = Anchor { sheet: sheet.map(str::to_owned), ..Anchor::default() };
    Section { level: 1, heading: String::new(), heading_span: 0..0, span: 0..0, parent: None, anchor }
}

fn config() -> CollectionConfig {
    CollectionConfig {
        model: "none".to_owned(),
        model_fingerprint: "f00d".to_owned(),
        dimensions: 2,
        chunk_tokens: "128".to_owned(),
        chunker_version: CHUNKER_VERSION,
        header: "none".to_owned(),
        language: "none".to_owned(),
        vectors: "f32".to_owned(),
        precision: "f32".to_owned(),
        pooling: Pooling::Plain,
        late: None,
        given: None,
        endpoint: None,
        context: None,
        prompt: None,
    }
}

/// A segment of some documents, of which these are deleted.
fn segment(folder: &std::path::Path, written: &[Written], deleted: RoaringBitmap) -> Segment {
    let config = config();
    let mut writer = SegmentWriter::create(&OsFs, folder, 1, 0, &config).unwrap();
    for Written { document, chunks } in written {
        let chunks: Vec<NewChunk<'_>> =
            (0..).zip(chunks).map(|(index, (chunk, _))| NewChunk { index, chunk, header: "", context: "" }).collect();
        let (n_chunks, n_rows) = (chunks.len() as u32, chunks.len() as u32);
        let row = writer.push(&NewDocument { document, links: None, hash: [0; 32], n_chunks, chunks }).unwrap();
        (row..row + n_rows).for_each(|row| writer.set_vector(0, row, &[0.6, 0.8]).unwrap());
    }
    writer.finish(usize::MAX, |_| {}).unwrap();
    let opened = Folder::open(&folder.join("segments/1-0")).unwrap();
    let analyzer = cento_lexical::Analyzer::new(config.language().unwrap());
    Segment::open(&opened, "1-0", &analyzer, config.pooling, deleted).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn the_chunks_admitted_are_those_a_naive_reading_admits(
        seed in any::<u64>(),
        expressions in prop::collection::vec(expression(&FIELDS, "sheet"), 25),
    ) {
        let random = &mut Random::new(seed);
        let mut written: Vec<Written> = (0..random.below(14)).map(|number| Written::new(random, number)).collect();
        // One document has every field of its own with every type, so that every filter can be asked.
        let mut full = Written::new(random, 99);
        let all = |literals: &[&str]| Field::Many(literals.iter().map(|literal| value(literal)).collect());
        full.document.metadata = OWN.iter().map(|(name, literals)| ((*name).to_owned(), all(literals))).collect();
        full.chunks.clear();
        full.document.format = Format::Pdf;
        full.chunk("full\n", Anchor { page: Some(2), ..Anchor::default() }, &[("page", 2..3)]);
        written.push(full);
        let deleted: RoaringBitmap = (0..written.len() as u32 - 1).filter(|_| random.below(5) == 0).collect();

        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("segments")).unwrap();
        let segment = segment(folder.path(), &written, deleted.clone());
        let schema = Schema::of([&segment.metadata]).unwrap();
        for expression in &expressions {
            let text = expression.text();
            let filter = Filter::parse(&text).unwrap();
            prop_assert!(schema.check(&filter).is_ok(), "{}: {:?}", text, schema.check(&filter));
            let (mut expected, mut row, mut documents) = (Vec::new(), 0, 0);
            for (number, written) in (0..).zip(&written) {
                let before = expected.len();
                for (_, places) in &written.chunks {
                    if !deleted.contains(number) && expression.admits(places) {
                        expected.push(row);
                    }
                    row += 1;
                }
                documents += u64::from(expected.len() > before);
            }
            let found = filter.rows(&segment).unwrap();
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{}", text);
            prop_assert_eq!(n_documents(&segment, &found).unwrap(), documents);
        }
    }
}
