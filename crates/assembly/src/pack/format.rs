//! The forms in which a context is written.

use crate::named::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The form of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Lines of Cento's own around the text as it is. With lean marks, one for each source:
    ///
    /// ```text
    /// [1] Leave > Parents
    /// the text, byte for byte
    /// …
    /// more of the same source
    /// [2] costs.csv
    /// …
    /// ```
    ///
    /// A number in brackets at the beginning of a line is a mark, and nothing but `…` stands for what is left out;
    /// where a source has such lines, all of Cento's own begin with `=` more often than theirs, the first line too.
    /// With full marks, one for each piece:
    ///
    /// ```text
    /// === [1] handbook/leave.md > Leave > Parents (bytes 120-560)
    /// the text, byte for byte
    /// === [… 3 chunks omitted …]
    /// === [2] handbook/leave.md > Leave > Illness (bytes 910-1204, cut)
    /// …
    /// === [3] costs.csv > costs (rows 12-19, extracted bytes 890-1544)
    /// …
    /// ```
    ///
    /// Spans are half open, and point into `extracted bytes` where the file itself is no text; pages and rows say where
    /// in the file that is, both ends included, and a sheet is named where neither document nor heading does. All of
    /// Cento's own lines begin with the same rule, `=` three times or more, a space and `[`, and no line of the text
    /// does: where a source has such lines the rule of the whole context is longer than theirs. So the rule of the
    /// first line tells the frame from what is quoted, whatever marks, fences or headings the sources hold.
    #[default]
    #[serde(rename = "md")]
    Markdown,
    /// With lean marks `<context>` with a `<source n=… title=…>` for each source, and `<gap/>` where something is left
    /// out. With full marks a `<source n=… document=… path=… bytes=…>` for each piece, `page`, `sheet`, `row` and
    /// `line` where they are known (`"12"` or `"12-19"`), `cut="true"` on one that is cut, and `<omitted chunks="3"/>`
    /// between. The text is escaped; unescaped it is the source's, byte for byte. Control characters are numeric
    /// references, as XML 1.1 has them.
    Xml,
    /// `{"version":1,"context":"…","citations":[…]}`. `context` is the Markdown form, and what the budget counts.
    Json,
}

named! {
    Format, "format":
    Markdown = "md",
    Xml = "xml",
    Json = "json",
}
