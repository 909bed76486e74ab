//! Packing: chosen chunks become pieces in document order, and pieces become text a language model reads.
//!
//! Chunks of one document that touch are one piece; as spans partition a document, their texts are simply joined. Unless another
//! [`Order`] is asked for, documents stand in the order of their best chunk's score, pieces in the order of the document, and what is
//! left out between two pieces of a document is said where it is missing. The text of a piece is exactly the bytes its citation names.

pub(crate) mod json;
pub(crate) mod markdown;
mod order;
pub(crate) mod xml;

use crate::candidate::Candidate;
use crate::cite::{Anchor, Citation, Extent};
use crate::error::{Error, Result};
use crate::fuse::best_first;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

pub use order::Order;

/// How a context is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Lines of Cento's own around the text as it is:
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
    /// Spans are half open, and point into `extracted bytes` where the file itself is no text; pages and rows say where in the file
    /// that is, both ends included, and a sheet is named where neither document nor heading does. All of Cento's own lines begin with
    /// the same rule, `=` three times or more, a space and `[`, and no line of the text does: where a source has such lines the
    /// rule of the whole context is longer than theirs. So the rule of the first line tells the frame from what is quoted,
    /// whatever marks, fences or headings the sources hold.
    #[default]
    #[serde(rename = "md")]
    Markdown,
    /// `<context>` with a `<source n=… document=… path=… bytes=…>` for each piece, `page`, `sheet`, `row` and `line` where they are known
    /// (`"12"` or `"12-19"`), `cut="true"` on one that is cut, and `<omitted chunks="3"/>` between. The text is escaped; unescaped it is the source's, byte for byte. Control characters are
    /// numeric references, as XML 1.1 has them.
    Xml,
    /// `{"version":1,"context":"…","citations":[…]}`. `context` is the Markdown form, and what the budget counts.
    Json,
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "md" | "markdown" => Ok(Self::Markdown),
            "xml" => Ok(Self::Xml),
            "json" => Ok(Self::Json),
            _ => Err(Error::Name { what: "format", name: name.into(), expected: "md, xml or json" }),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Markdown => "md",
            Self::Xml => "xml",
            Self::Json => "json",
        })
    }
}

/// A chosen chunk, or the part of it that is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) candidate: usize,
    /// Bytes of the chunk's text; none: all of it.
    pub(crate) part: Option<Range<usize>>,
}

/// Excerpts of one document that touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) candidates: Vec<usize>,
    /// Bytes of the only chunk's text, where it is cut.
    pub(crate) part: Option<Range<usize>>,
    /// Chunks left out since the piece before, of the same document.
    pub(crate) omitted: u32,
    pub(crate) form: Form,
}

/// How much a header says. The fullest that keeps to its share of the budget is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Mark, document, heading path, place in the file, span.
    Full,
    /// Mark, document, place in the file, span.
    Document,
    /// The mark alone.
    Mark,
}

pub(crate) const FORMS: [Form; 3] = [Form::Full, Form::Document, Form::Mark];

/// What stands above the text of a piece.
#[derive(Debug)]
pub(crate) struct Header<'a> {
    pub(crate) n: usize,
    pub(crate) document: &'a str,
    pub(crate) path: Vec<&'a str>,
    pub(crate) anchor: Anchor,
    pub(crate) span: Range<u64>,
    pub(crate) source: &'a str,
    pub(crate) cut: bool,
    pub(crate) form: Form,
}

/// Pieces of the excerpts of one document, which must be in the order of their chunks.
pub(crate) fn pieces_of_document(candidates: &[&Candidate], excerpts: &[Excerpt]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for excerpt in excerpts {
        let chunk = candidates[excerpt.candidate];
        let before = pieces.last().map(|piece| piece.last(candidates));
        match (pieces.last_mut(), before) {
            (Some(piece), Some(before)) if touch(before, chunk) && piece.part.is_none() && excerpt.part.is_none() => {
                piece.candidates.push(excerpt.candidate);
            }
            (_, before) => {
                let omitted = before.map_or(0, |before| chunk.index - before.index - 1);
                pieces.push(Piece {
                    candidates: vec![excerpt.candidate],
                    part: excerpt.part.clone(),
                    omitted,
                    form: Form::Full,
                });
            }
        }
    }
    pieces
}

fn touch(before: &Candidate, after: &Candidate) -> bool {
    before.index + 1 == after.index && before.span.end == after.span.start
}

/// Excerpts by document, documents by their best score before the length penalty (which says what a chunk costs, not what
/// it is worth to the reader), then id descending; within a document in its order.
pub(crate) fn in_document_order(candidates: &[&Candidate], scores: &[f64], excerpts: &[Excerpt]) -> Vec<Vec<Excerpt>> {
    let mut documents: BTreeMap<&str, (f64, Vec<Excerpt>)> = BTreeMap::new();
    for excerpt in excerpts {
        let entry = documents.entry(&candidates[excerpt.candidate].document).or_insert((f64::NEG_INFINITY, Vec::new()));
        entry.0 = entry.0.max(scores[excerpt.candidate]);
        entry.1.push(excerpt.clone());
    }
    let mut ordered: Vec<_> = documents.into_iter().collect();
    ordered.sort_by(|a, b| best_first((a.1.0, a.0), (b.1.0, b.0)));
    ordered
        .into_iter()
        .map(|(_, (_, mut excerpts))| {
            excerpts.sort_by_key(|excerpt| candidates[excerpt.candidate].index);
            excerpts
        })
        .collect()
}

impl Piece {
    fn first<'a>(&self, candidates: &[&'a Candidate]) -> &'a Candidate {
        candidates[self.candidates[0]]
    }

    fn last<'a>(&self, candidates: &[&'a Candidate]) -> &'a Candidate {
        candidates[*self.candidates.last().expect("no piece is empty")]
    }

    fn span(&self, candidates: &[&Candidate]) -> Range<u64> {
        let first = self.first(candidates);
        match &self.part {
            Some(part) => first.span.start + part.start as u64..first.span.start + part.end as u64,
            None => first.span.start..self.last(candidates).span.end,
        }
    }

    /// From its first chunk to its last; of a cut chunk that has several lines, those of the part.
    fn anchor(&self, candidates: &[&Candidate]) -> Anchor {
        let first = self.first(candidates);
        let mut anchor = first.anchor.through(&self.last(candidates).anchor);
        if let (Some(part), Some(line)) = (&self.part, anchor.line.filter(|line| line.first < line.last)) {
            anchor.line = Some(Extent::lines(line.first, &first.text, part.clone()));
        }
        anchor
    }

    /// Whether words of the chunk are missing; white space at its ends is no loss.
    pub(crate) fn is_cut(&self, candidates: &[&Candidate]) -> bool {
        let text = &self.first(candidates).text;
        self.part.as_ref().is_some_and(|part| text[part.clone()].trim() != text.trim())
    }

    pub(crate) fn header<'a>(&self, candidates: &[&'a Candidate], n: usize) -> Header<'a> {
        let first = self.first(candidates);
        let title =
            [first.title.as_str()].into_iter().filter(|title| !title.is_empty() && !first.document.contains(title));
        let path =
            if first.path.is_empty() { title.collect() } else { first.path.iter().map(String::as_str).collect() };
        Header {
            n,
            document: &first.document,
            path,
            anchor: self.anchor(candidates),
            span: self.span(candidates),
            source: first.source,
            cut: self.is_cut(candidates),
            form: self.form,
        }
    }

    fn text<'a>(&self, candidates: &[&'a Candidate]) -> Cow<'a, str> {
        let first = self.first(candidates);
        match (&self.part, self.candidates.as_slice()) {
            (Some(part), _) => Cow::Borrowed(&first.text[part.clone()]),
            (None, [_]) => Cow::Borrowed(&first.text),
            (None, many) => Cow::Owned(many.iter().map(|&at| candidates[at].text.as_str()).collect()),
        }
    }

    fn citation(&self, candidates: &[&Candidate], n: usize) -> Citation {
        let first = self.first(candidates);
        Citation {
            n,
            document: first.document.clone(),
            path: first.path.clone(),
            span: self.span(candidates),
            source: first.source.into(),
            anchor: self.anchor(candidates),
            chunks: self.candidates.iter().map(|&at| candidates[at].id.clone()).collect(),
            cut: self.is_cut(candidates),
        }
    }
}

/// One citation a piece, in the order of the context.
pub(crate) fn citations(candidates: &[&Candidate], pieces: &[Piece]) -> Vec<Citation> {
    pieces.iter().enumerate().map(|(at, piece)| piece.citation(candidates, at + 1)).collect()
}

/// What the budget counts: the context as Markdown or XML. JSON carries the Markdown.
pub(crate) fn render(format: Format, candidates: &[&Candidate], pieces: &[Piece]) -> String {
    let texts: Vec<Cow<'_, str>> = pieces.iter().map(|piece| piece.text(candidates)).collect();
    let rule =
        if format == Format::Xml { String::new() } else { markdown::rule(texts.iter().map(|text| text.as_ref())) };
    let mut out = String::from(opening(format));
    for (at, (piece, text)) in pieces.iter().zip(&texts).enumerate() {
        if piece.omitted > 0 {
            out.push_str(&gap(format, &rule, piece.omitted));
        }
        out.push_str(&header(format, &rule, &piece.header(candidates, at + 1)));
        out.push_str(&body(format, text));
        out.push_str(footer(format, text));
    }
    out.push_str(ending(format));
    out
}

/// The line that stands for a context without sources.
pub(crate) fn nothing_relevant(format: Format) -> &'static str {
    match format {
        Format::Markdown | Format::Json => markdown::NOTHING_RELEVANT,
        Format::Xml => xml::NOTHING_RELEVANT,
    }
}

pub(crate) fn opening(format: Format) -> &'static str {
    if format == Format::Xml { xml::OPENING } else { "" }
}

pub(crate) fn ending(format: Format) -> &'static str {
    if format == Format::Xml { xml::ENDING } else { "" }
}

pub(crate) fn header(format: Format, rule: &str, header: &Header<'_>) -> String {
    match format {
        Format::Markdown | Format::Json => markdown::header(rule, header),
        Format::Xml => xml::header(header),
    }
}

pub(crate) fn body(format: Format, text: &str) -> Cow<'_, str> {
    if format == Format::Xml { xml::escape(text) } else { Cow::Borrowed(text) }
}

/// What closes a piece; in Markdown the end of its last line, where the text has none.
pub(crate) fn footer(format: Format, text: &str) -> &'static str {
    match format {
        Format::Xml => xml::FOOTER,
        Format::Markdown | Format::Json if text.ends_with('\n') => "",
        Format::Markdown | Format::Json => "\n",
    }
}

pub(crate) fn gap(format: Format, rule: &str, omitted: u32) -> String {
    match format {
        Format::Markdown | Format::Json => markdown::gap(rule, omitted),
        Format::Xml => xml::gap(omitted),
    }
}
