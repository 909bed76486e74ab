//! Citations: from a mark `[n]` in the delivered text back to the bytes it stands for, and to their page, row or line
//! in the file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// The bytes of a piece of the context: its delivered text is exactly these bytes of the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Citation {
    /// The number in its mark, from 1 in the order of the context: that of its source, which all pieces of a source
    /// share, or in full marks that of the piece.
    pub n: usize,
    /// Id of the document.
    pub document: String,
    /// Headings open at the start of the piece, outermost first.
    pub path: Vec<String>,
    /// Bytes of the document's canonical text.
    pub span: Range<u64>,
    /// The text that the span points into: `source` or `extracted`.
    pub source: String,
    /// Where the piece is in the file.
    #[serde(flatten)]
    pub anchor: Anchor,
    /// Ids of the chunks it is made of, in order.
    pub chunks: Vec<String>,
    /// True if the piece is a part of its chunk, cut to fit the budget.
    pub cut: bool,
}

/// Where a text is in its file, as far as that is known. In words `page 3`, `sheet Costs, rows 12-19`, `lines 4-9`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Anchor {
    /// Pages, or slides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<Extent>,
    /// Sheet of a workbook or table file, the one it starts in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sheet: Option<String>,
    /// Rows of the sheet: of a workbook as its program counts them, of a table file the data rows alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<Extent>,
    /// Lines of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Extent>,
}

/// A number, or all from one to another; both ends count, the first has number 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Extent {
    /// The first.
    pub first: u32,
    /// The last, not below the first.
    pub last: u32,
}

impl Anchor {
    /// From the start of one text to the end of another; what is not known of both is not known.
    pub(crate) fn through(&self, end: &Self) -> Self {
        let both = |start: Option<Extent>, end: Option<Extent>| {
            start.zip(end).map(|(start, end)| Extent { first: start.first, last: end.last.max(start.first) })
        };
        Self {
            page: both(self.page, end.page),
            sheet: self.sheet.clone(),
            row: both(self.row, end.row).filter(|_| self.sheet == end.sheet),
            line: both(self.line, end.line),
        }
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sheet = self.sheet.iter().map(|sheet| format!("sheet {sheet}"));
        let numbered = [("page", self.page), ("row", self.row), ("line", self.line)].into_iter();
        let numbered = numbered.filter_map(|(unit, extent)| extent.map(|extent| extent.of(unit)));
        f.write_str(&sheet.chain(numbered).collect::<Vec<_>>().join(", "))
    }
}

impl Extent {
    /// The lines that a part of `text` takes in its file, where the first word of `text` is in line `first`. Blanks at
    /// the ends of the part do not count.
    #[must_use]
    pub fn lines(first: u32, text: &str, part: Range<usize>) -> Self {
        let is_blank = |c: char| c.is_whitespace() || c == '\u{feff}';
        let n_blank = |text: &str| text.len() - text.trim_start_matches(is_blank).len();
        let n_lines = |text: &str| u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX);
        let start = part.start + n_blank(&text[part.clone()]);
        let first = first.saturating_add(n_lines(&text[n_blank(text).min(start)..start]));
        Self { first, last: first.saturating_add(n_lines(text[start..part.end].trim_end_matches(is_blank))) }
    }

    /// `row 12` or `rows 12-19`.
    fn of(self, unit: &str) -> String {
        format!("{unit}{} {self}", if self.first == self.last { "" } else { "s" })
    }
}

impl From<u32> for Extent {
    fn from(number: u32) -> Self {
        Self { first: number, last: number }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { write!(f, "{}", self.first) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}
