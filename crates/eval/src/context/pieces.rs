//! The delivered text, in stretches that were one in their document.

use std::borrow::Cow;

use crate::contexts::Citation;

/// A stretch of delivered text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Id of its document.
    pub document: &'a str,
    /// Its text.
    pub text: Cow<'a, str>,
}

/// The cited texts in the order of the context; neighbours that touch in their document are one piece.
pub fn pieces(citations: &[Citation]) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::with_capacity(citations.len());
    let mut end = 0;
    for citation in citations {
        match pieces.last_mut() {
            Some(last) if last.document == citation.document && end == citation.span.start => {
                last.text.to_mut().push_str(&citation.text);
            }
            _ => pieces.push(Piece { document: &citation.document, text: Cow::Borrowed(&citation.text) }),
        }
        end = citation.span.end;
    }
    pieces
}
