//! Anchors: where a part of a document stands in the file that it came from.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Where a span stands in the source file, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Line in the source file, from 1.
    pub line: Option<u32>,
    /// Page, or slide, from 1.
    pub page: Option<u32>,
    /// Sheet of a workbook or table file.
    pub sheet: Option<String>,
    /// Row of a sheet, from 1: of a workbook as its program counts them, of a table file the data rows alone.
    pub row: Option<u32>,
    /// Byte range in the source file, where a map exists.
    pub source: Option<Range<u64>>,
}
