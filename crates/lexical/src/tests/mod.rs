//! Claims about the whole crate, at its boundary: what text becomes (`analysis`), what is written and how it is read
//! back (`files`), how it is ranked (`ranking`, against a naive scorer), and how well (`quality`, on evaluation data).

mod analysis;
mod files;
mod quality;
mod ranking;

use std::sync::Arc;

use crate::{Analyzer, Language, Memory, Row, Segment, Writer};

/// The files of a segment with these rows.
fn write(analyzer: &Analyzer, rows: &[Row<'_>]) -> Vec<(String, Vec<u8>)> {
    let mut writer = Writer::new(analyzer).unwrap();
    for &row in rows {
        writer.add(row).unwrap();
    }
    writer.finish().unwrap().into_iter().map(|(name, bytes)| (name, bytes.to_vec())).collect()
}

/// A segment with these rows, open.
fn segment(analyzer: &Analyzer, rows: &[Row<'_>]) -> Segment {
    Segment::open(Arc::new(Memory::from(write(analyzer, rows))), analyzer).unwrap()
}

/// A row of text alone.
fn text(text: &str) -> Row<'_> {
    Row { text, header: "", title: "" }
}

fn english() -> Analyzer {
    Analyzer::new(Language::English)
}
