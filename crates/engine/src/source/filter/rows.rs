//! From a filter that asks where chunks stand to the rows it admits.
//!
//! Every condition is held against rows, those on documents for all rows of a document at once, and `and`, `or`, `not`
//! join sets of rows: so the whole filter is right of each chunk, whatever it is joined of.
//! Cost: the records of the chunks that conditions on documents leave; of chunks in which a row or line may be that is
//! asked for behind the first, the text.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use cento_assembly::Extent;
use cento_corpus::Format;
use roaring::RoaringBitmap;

use super::anchor::Anchor;
use super::tree::{Condition, Constant, Filter, Node, Test};
use cento_collection::Result;
use cento_collection::format::metadata::{Comparison, Stored};
use cento_collection::format::segment::{ChunkRecord, DocumentRecord, Segment};
use cento_collection::format::text::TextReader;

impl Filter {
    /// The live rows of a segment that the filter admits.
    pub(crate) fn rows(&self, segment: &Segment) -> Result<RoaringBitmap> {
        let all = || RoaringBitmap::from_iter(0..segment.chunks.len() as u32);
        self.root.rows(segment, &segment.live.clone().unwrap_or_else(all))
    }
}

/// The rows of some documents; those of documents that follow each other are one range.
pub(crate) fn rows_of(segment: &Segment, documents: &RoaringBitmap) -> Result<RoaringBitmap> {
    let mut rows = RoaringBitmap::new();
    let mut documents = documents.iter().peekable();
    while let Some(first) = documents.next() {
        let mut last = first;
        while let Some(next) = documents.next_if(|&next| next == last + 1) {
            last = next;
        }
        rows.insert_range(segment.document(first)?.first_row..segment.document(last)?.rows().end);
    }
    Ok(rows)
}

/// The number of documents that some rows are of.
pub(crate) fn n_documents(segment: &Segment, rows: &RoaringBitmap) -> Result<u64> {
    let of_row = &segment.units()?.of_row;
    let mut units: Vec<u32> = rows.iter().map(|row| of_row[row as usize]).collect(); // ascending, as rows are
    units.dedup();
    Ok(units.len() as u64)
}

impl Node {
    /// Those of some rows for which it holds.
    fn rows(&self, segment: &Segment, among: &RoaringBitmap) -> Result<RoaringBitmap> {
        if among.is_empty() {
            return Ok(RoaringBitmap::new());
        }
        if !self.is_of_chunks() {
            return Ok(rows_of(segment, &self.documents(&segment.metadata)?)? & among);
        }
        match self {
            Self::And(nodes) => {
                // Conditions on documents first: what they leave is looked at chunk by chunk.
                let (chunks, documents): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| node.is_of_chunks());
                let mut nodes = documents.into_iter().chain(chunks);
                nodes.try_fold(among.clone(), |left, node| node.rows(segment, &left))
            }
            Self::Or(nodes) => nodes.iter().try_fold(RoaringBitmap::new(), |found, node| {
                let more = node.rows(segment, &(among - &found))?;
                Ok(found | more)
            }),
            Self::Not(node) => Ok(among - node.rows(segment, among)?),
            Self::Condition(condition) => condition.rows(segment, among),
        }
    }
}

impl Condition {
    fn rows(&self, segment: &Segment, among: &RoaringBitmap) -> Result<RoaringBitmap> {
        let Some(anchor) = Anchor::of(&self.field) else {
            return Ok(rows_of(segment, &self.documents(&segment.metadata)?)? & among);
        };
        // What a document has under the name counts in place of its anchors.
        let having = self.having(&segment.metadata)?;
        let mut found = rows_of(segment, &(self.documents(&segment.metadata)? & &having))? & among;
        let rest = if having.is_empty() { among.clone() } else { among - rows_of(segment, &having)? };
        let held = Held::new(&self.test);
        let mut chunks = Chunks::new(segment);
        for row in &rest {
            if chunks.hold(row, anchor, &held)? {
                found.insert(row);
            }
        }
        Ok(found)
    }
}

/// A test with its literals as they are looked up.
struct Held<'t> {
    test: &'t Test,
    numbers: BTreeSet<u32>,
    strings: HashSet<&'t str>,
}

impl<'t> Held<'t> {
    fn new(test: &'t Test) -> Self {
        let whole = |constant: &Constant| match *constant {
            Constant::Integer(number) => u32::try_from(number).ok(),
            // Past the check a whole number that `u32` holds.
            Constant::Float(float) if float.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&float) => {
                Some(float as u32)
            }
            Constant::Float(_) | Constant::Boolean(_) | Constant::Date(_) | Constant::String(..) => None,
        };
        let string = |constant: &'t Constant| match constant {
            Constant::String(text, _) => Some(text.as_str()),
            Constant::Integer(_) | Constant::Float(_) | Constant::Boolean(_) | Constant::Date(_) => None,
        };
        let constants = || test.literals().iter().map(|literal| &literal.constant);
        Self {
            test,
            numbers: constants().filter_map(whole).collect(),
            strings: constants().filter_map(string).collect(),
        }
    }

    /// True if it holds where there is no value.
    fn of_nothing(&self) -> bool {
        *self.test == Test::Missing
    }

    /// True if it holds of the numbers from one to another, both among them, as of a list of them.
    fn of_numbers(&self, first: u32, last: u32) -> bool {
        let has = || self.numbers.range(first..=last).next().is_some();
        match self.test {
            Test::Compare(comparison, literal) => {
                let at = |number: u32| literal.constant.position(Stored::Integer(number.into()));
                match comparison {
                    Comparison::Less => at(first).is_some_and(|order| order.is_lt()),
                    Comparison::AtMost => at(first).is_some_and(|order| order.is_le()),
                    Comparison::Equal => has(),
                    Comparison::AtLeast => at(last).is_some_and(|order| order.is_ge()),
                    Comparison::Greater => at(last).is_some_and(|order| order.is_gt()),
                }
            }
            Test::AnyOf(_) => has(),
            Test::NoneOf(_) => !has(),
            Test::Exists => true,
            Test::StartsWith(_) | Test::Missing => false,
        }
    }

    fn of_string(&self, text: &str) -> bool {
        match self.test {
            Test::Compare(comparison, literal) => {
                literal.constant.position(Stored::String(text)).is_some_and(|order| match comparison {
                    Comparison::Less => order.is_lt(),
                    Comparison::AtMost => order.is_le(),
                    Comparison::Equal => order.is_eq(),
                    Comparison::AtLeast => order.is_ge(),
                    Comparison::Greater => order.is_gt(),
                })
            }
            Test::AnyOf(_) => self.strings.contains(text),
            Test::NoneOf(_) => !self.strings.contains(text),
            Test::StartsWith(literal) => {
                literal.constant.prefix_position(Stored::String(text)).is_some_and(|order| order.is_eq())
            }
            Test::Exists => true,
            Test::Missing => false,
        }
    }
}

/// The chunks of a segment, read in the order of their rows.
struct Chunks<'s> {
    segment: &'s Segment,
    texts: TextReader<'s>,
    /// The document of the last chunk, by its number.
    document: Option<(u32, DocumentRecord)>,
    /// The sheet of its section, by document and section.
    sheet: Option<(u32, u32, &'s str)>,
}

impl<'s> Chunks<'s> {
    fn new(segment: &'s Segment) -> Self {
        Self { segment, texts: segment.texts.reader(), document: None, sheet: None }
    }

    /// True if a test holds of a part of the place of a chunk.
    fn hold(&mut self, row: u32, anchor: Anchor, held: &Held<'_>) -> Result<bool> {
        let chunk = self.segment.chunks.record(row as usize)?;
        let document = self.document(chunk.document)?;
        let one = |number: Option<u32>| number.map_or(held.of_nothing(), |number| held.of_numbers(number, number));
        match anchor {
            Anchor::Page => Ok(one(chunk.page())),
            Anchor::Slide => Ok(one(chunk
                .page()
                .filter(|_| matches!(document.format(), Some(Format::Pptx | Format::Ppt | Format::Odp))))),
            Anchor::Sheet => {
                let sheet = self.sheet(&document, &chunk)?;
                Ok(if sheet.is_empty() { held.of_nothing() } else { held.of_string(sheet) })
            }
            Anchor::Row => self.hold_row(row, (&chunk, &document), held),
            Anchor::Line => self.hold_line(row, (&chunk, &document), held),
        }
    }

    /// A chunk of a sheet is of whole rows or of a part of one: it reaches to the row before that of the next chunk,
    /// and the last one as far as it has lines, one a row.
    fn hold_row(&mut self, row: u32, of: (&ChunkRecord, &DocumentRecord), held: &Held<'_>) -> Result<bool> {
        let (chunk, document) = of;
        let Some(first) = chunk.row() else { return Ok(held.of_nothing()) };
        if self.sheet(document, chunk)?.is_empty() {
            return Ok(held.of_numbers(first, first)); // one chunk of several sheets, or of none
        }
        let own = self.sheet(document, chunk)?;
        let next = self.next(row, document)?;
        let next = match next {
            Some(next) if self.sheet(document, &next)? == own => next.row(),
            Some(_) | None => None,
        };
        match next {
            Some(next) => Ok(held.of_numbers(first, next.saturating_sub(1).max(first))),
            None => self.hold_lines(first, None, of, held),
        }
    }

    /// A chunk takes the lines that its text has; where that is not the text of the file, the line it begins on is
    /// known.
    fn hold_line(&mut self, row: u32, of: (&ChunkRecord, &DocumentRecord), held: &Held<'_>) -> Result<bool> {
        let (chunk, document) = of;
        // What has a row is found by that, as in citations.
        let Some(first) = chunk.line().filter(|_| chunk.row().is_none()) else { return Ok(held.of_nothing()) };
        if !document.format().is_some_and(Format::has_lines_of_file) {
            return Ok(held.of_numbers(first, first));
        }
        let most = self.next(row, document)?.and_then(|next| next.line());
        self.hold_lines(first, most, of, held)
    }

    /// True if a test holds of as many numbers as the text of a chunk has lines, from the first; never more than
    /// `most`. The text is read where that decides: with each number more a test comes to hold or to fail, once.
    fn hold_lines(
        &mut self,
        first: u32,
        most: Option<u32>,
        (chunk, document): (&ChunkRecord, &DocumentRecord),
        held: &Held<'_>,
    ) -> Result<bool> {
        let least = held.of_numbers(first, first);
        if least == held.of_numbers(first, most.unwrap_or(u32::MAX).max(first)) {
            return Ok(least);
        }
        let text = self.texts.read(document.text(chunk.start..chunk.end))?;
        Ok(held.of_numbers(first, Extent::lines(first, &text, 0..text.len()).last))
    }

    fn document(&mut self, number: u32) -> Result<DocumentRecord> {
        match self.document {
            Some((known, record)) if known == number => Ok(record),
            Some(_) | None => {
                let record = self.segment.document(number)?;
                self.document = Some((number, record));
                Ok(record)
            }
        }
    }

    /// The chunk behind one in its document.
    fn next(&self, row: u32, document: &DocumentRecord) -> Result<Option<ChunkRecord>> {
        let Range { start, end } = document.rows();
        let next = row.checked_add(1).filter(|next| (start..end).contains(next));
        next.map(|next| self.segment.chunks.record(next as usize)).transpose()
    }

    /// The sheet that a chunk is of; empty if none.
    fn sheet(&mut self, document: &DocumentRecord, chunk: &ChunkRecord) -> Result<&'s str> {
        if chunk.section >= document.n_sections {
            return Ok("");
        }
        match self.sheet {
            Some((of, section, sheet)) if (of, section) == (chunk.document, chunk.section) => Ok(sheet),
            Some(_) | None => {
                let section = self.segment.section(document, chunk.section)?;
                let sheet = self.segment.sections.text(section.sheet)?;
                self.sheet = Some((chunk.document, chunk.section, sheet));
                Ok(sheet)
            }
        }
    }
}
