//! Documents that come from a child are data of a stranger: all that the rest of Cento takes for granted is checked.

use std::ops::Range;

use crate::budget::{BLOCKS_MAX, FIELDS_MAX, LINKS_MAX, NAME_BYTES_MAX, TARGET_BYTES_MAX};
use crate::document::Document;
use crate::extraction::{Extraction, PAGES_NAMED_MAX, REMARK_BYTES_MAX, REMARKS_NAMED_MAX};
use crate::folder::{FoundFile, RecordIds};
use crate::format::Format;

/// Notes of one file: its keys, its separator, its columns.
const NOTES_MAX: usize = 16;

/// Holds a document against the file that it is said to come from.
///
/// # Errors
/// What cannot be, in words.
pub(super) fn check(document: &Document, file: &FoundFile) -> Result<(), String> {
    let Document { id, origin, text, sections, blocks, metadata, links, .. } = document;
    if !is_within(origin, &file.origin) {
        return Err("a document of another file".to_owned());
    }
    let has_own = file.format == Format::Jsonl && file.record_ids == RecordIds::Own;
    let id_bytes_max = NAME_BYTES_MAX + 2 * file.origin.len() as u64;
    if id.is_empty() || id.len() as u64 > id_bytes_max || !has_own && !is_within(id, &file.origin) {
        return Err("a document with an id of another file".to_owned());
    }
    let holds = |span: &Range<usize>| span.start <= span.end && text.get(span.clone()).is_some();
    for (at, section) in sections.iter().enumerate() {
        let is_inside = match section.parent {
            None => at == 0 && section.level == 0,
            Some(parent) => (parent as usize) < at && section.level > 0,
        };
        if !is_inside || !holds(&section.span) || !holds(&section.heading_span) {
            return Err(format!("section {at} outside of the text or its place"));
        }
    }
    if sections.is_empty() {
        return Err("no section".to_owned());
    }
    let mut end = 0;
    for (at, block) in blocks.iter().enumerate() {
        let is_next = block.span.start == end && block.span.end > end && holds(&block.span);
        if !is_next || block.section as usize >= sections.len() {
            return Err(format!("block {at} does not follow the one before it"));
        }
        end = block.span.end;
    }
    if end != text.len() {
        return Err("text outside of all blocks".to_owned());
    }
    if !links.iter().all(|link| holds(&(link.start..link.end)) && link.target.len() <= TARGET_BYTES_MAX) {
        return Err("a link outside of the text".to_owned());
    }
    let is_long = metadata.keys().any(|name| name.len() as u64 > NAME_BYTES_MAX);
    let n_most = [(blocks.len(), BLOCKS_MAX), (metadata.len(), FIELDS_MAX), (links.len(), LINKS_MAX as u64)];
    if is_long || n_most.iter().any(|&(n, limit)| n as u64 > limit) {
        return Err("more than a document may have".to_owned());
    }
    // Of a record, whose size the child alone knows, the file's stands for it.
    document.within_budgets(file.n_bytes).map_err(|excess| format!("{} {}", excess.n, excess.what))
}

/// Holds what a child says of its reading against what it may say.
///
/// # Errors
/// What cannot be, in words.
pub(super) fn check_end(notes: &[String], extraction: Option<&Extraction>) -> Result<(), String> {
    let is_long = |remarks: &[String], n_most: usize, bytes_most: u64| {
        remarks.len() > n_most || remarks.iter().any(|remark| remark.len() as u64 > bytes_most)
    };
    if is_long(notes, NOTES_MAX, FIELDS_MAX * NAME_BYTES_MAX) {
        return Err("more notes than a file has".to_owned());
    }
    let Some(extraction) = extraction else { return Ok(()) };
    let Extraction { engine, pages_without_text, completeness, unread, .. } = extraction;
    let is_much = is_long(unread, REMARKS_NAMED_MAX + 1, REMARK_BYTES_MAX as u64)
        || pages_without_text.len() > PAGES_NAMED_MAX
        || engine.len() as u64 > NAME_BYTES_MAX;
    if is_much {
        return Err("more of its reading than a report holds".to_owned());
    }
    match completeness {
        Some(share) if !(0.0..=1.0).contains(share) => Err(format!("a share of {share}")),
        Some(_) | None => Ok(()),
    }
}

/// True for a file's name, and for the name of something in it.
fn is_within(name: &str, origin: &str) -> bool {
    name.strip_prefix(origin).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
}
