//! Links that authors made: where a document points at something, and its target as written.
//!
//! A reader hands over what its markup says ([`Markup`]); the rest is found in the text: wiki links, DOIs and numbers
//! such as `Article 12` in prose, imports and includes in source code, `related` in metadata. Nothing is resolved here:
//! what a target names depends on the documents that are there when somebody asks.
//! Cost: one pass a pattern over the text, in linear time.

mod link;
mod markup;
mod prose;
mod code;

pub use self::link::{Link, LinkKind};
pub(crate) use self::markup::Markup;

use crate::budget::{LINKS_MAX, TARGET_BYTES_MAX};
use crate::document::{BlockKind, Document};
use crate::format::Format;
use crate::metadata::Value;

/// Fields of metadata that name related documents.
const RELATED: [&str; 4] = ["related", "see_also", "see-also", "seealso"];

/// Gives a document that was read its links, in the order of its text.
pub(crate) fn find(document: &mut Document, mut markup: Markup) {
    related(document, &mut markup);
    if !(document.format == Format::Text && code::find(&document.text, &document.origin, &mut markup)) {
        let taken = markup.taken(document);
        prose::find(&document.text, &taken, &mut markup);
    }
    let (links, n_left_out) = markup.into_links();
    if n_left_out > 0 {
        document.warnings.push(format!(
            "links left out: {n_left_out}, over {LINKS_MAX} of a document or {TARGET_BYTES_MAX} bytes of a target"
        ));
    }
    document.links = links;
}

/// The documents that metadata calls related; their place is in the front matter, where the text has it.
fn related(document: &Document, markup: &mut Markup) {
    let front = document.blocks.first().filter(|block| block.kind == BlockKind::Hidden);
    let front = front.map_or(0..0, |block| block.span.clone());
    for field in RELATED.iter().filter_map(|name| document.metadata.get(*name)) {
        for value in field.values() {
            let Value::Text(target) = value else { continue };
            let sought = if markup.has_room() { front.clone() } else { 0..0 };
            let at = document.text[sought].find(target.as_str()).map_or(0..0, |at| {
                let start = front.start + at;
                start..start + target.len()
            });
            let bare = target.strip_prefix("[[").and_then(|inner| inner.strip_suffix("]]"));
            match bare {
                Some(page) => markup.add(LinkKind::Wiki, page.split('|').next().unwrap_or(page), at),
                None => markup.add(LinkKind::Related, target, at),
            }
        }
    }
}

#[cfg(test)]
mod tests;
