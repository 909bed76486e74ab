//! The parts of a snapshot, and the units in them that are ranked.

use roaring::RoaringBitmap;

use crate::Segment;

/// The unit that is ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Rows, by text and header.
    Row,
    /// Documents, by the text of all their rows and the title: BM25 of "title text" as one document.
    Document,
}

/// One segment of the collection, as a snapshot sees it.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Its rows.
    pub segment: &'a Segment,
    /// Rows that exist; `None` for all. Statistics are of these, results are among these.
    pub live: Option<&'a RoaringBitmap>,
    /// Rows that may be results; `None` for all. A document may be one if a live row of it may. Statistics do not
    /// change.
    pub allowed: Option<&'a RoaringBitmap>,
    /// The document of each row: from 0, each as the row before it or the next. Not looked at for [`Unit::Row`].
    pub document_of_row: &'a [u32],
}
