//! What a command of the user's wrote of a file, as a document.

use std::path::Path;

use super::command::{Gives, ReadCommand};
use super::decoded::Decoded;
use super::options::ReadOptions;
use super::{markdown, text};
use crate::document::{Document, TextKind};
use crate::error::{Error, Result};
use crate::extraction::{Extraction, PAGES_NAMED_MAX};

/// The character that begins a page.
const PAGE_MARK: char = '\u{c}';

/// The document in what a command wrote, and the report on it.
///
/// # Errors
/// The output is not UTF-8, or the document exceeds a budget.
pub(crate) fn document(
    output: Vec<u8>,
    command: &ReadCommand,
    origin: &str,
    path: &Path,
    options: &ReadOptions,
) -> Result<(Document, Extraction)> {
    let program = command.program();
    let mut source = Decoded::new(output, path, options).map_err(|error| match error {
        Error::InvalidUtf8 { path, offset } => {
            let reason = format!("{program} wrote what is not UTF-8, from byte {offset} of its output on");
            Error::Refused { path, reason }
        }
        other => other,
    })?;
    source.kind = TextKind::Extracted;
    source.warnings.retain(|warning| !warning.starts_with("the file is empty"));
    let pages = take_pages(&mut source.text);
    let n_bytes = source.text.len() as u64;
    let read = match command.gives {
        Gives::Markdown => markdown::document(source, origin),
        Gives::Text => text::document(source, origin, Path::new("")),
    };
    let read = read.and_then(|document| document.within_budgets(n_bytes).map(|()| document));
    let mut document = read.map_err(|excess| excess.at(path, None))?;
    let mut extraction = Extraction { engine: command.engine(), ..Extraction::default() };
    if pages.len() > 1 {
        for block in &mut document.blocks {
            let blank = document.text.get(block.span.clone()).map_or(0, |text| text.len() - text.trim_start().len());
            block.anchor.page = Some(page_of(&pages, block.span.start + blank));
        }
        let ends = pages.iter().skip(1).copied().chain([document.text.len()]);
        let is_blank =
            |(start, end): (usize, usize)| document.text.get(start..end).is_none_or(|page| page.trim().is_empty());
        let mut blank: Vec<bool> = pages.iter().copied().zip(ends).map(is_blank).collect();
        let _ = blank.pop_if(|is_blank| *is_blank); // a mark behind the last page begins none
        extraction.n_pages = u32::try_from(blank.len()).ok();
        let without = (1_u32..).zip(&blank).filter(|(_, is_blank)| **is_blank).map(|(page, _)| page);
        extraction.pages_without_text = without.take(PAGES_NAMED_MAX).collect();
    }
    if document.text.trim().is_empty() {
        document.warnings.push(format!("{program} found no text in it"));
    }
    super::parsed::count(&mut extraction, std::slice::from_ref(&document));
    Ok((document, extraction))
}

/// Replaces the marks of pages by the end of a paragraph; gives where each page begins, the first at 0.
fn take_pages(text: &mut String) -> Vec<usize> {
    let mut pages = vec![0];
    if text.contains(PAGE_MARK) {
        let mut joined = String::with_capacity(text.len());
        for (number, page) in text.split(PAGE_MARK).enumerate() {
            if number > 0 {
                joined.push_str("\n\n");
                pages.push(joined.len());
            }
            joined.push_str(page);
        }
        *text = joined;
    }
    pages
}

/// The page, from 1, on which a byte stands.
fn page_of(pages: &[usize], at: usize) -> u32 {
    u32::try_from(pages.partition_point(|start| *start <= at).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(gives: Gives) -> ReadCommand {
        ReadCommand { run: vec!["ocr".to_owned()], gives, memory_bytes: None, processor_seconds: None }
    }

    fn read(output: &str, gives: Gives) -> (Document, Extraction) {
        let options = ReadOptions::default();
        document(output.into(), &command(gives), "in/a.tiff", Path::new("a.tiff"), &options).unwrap()
    }

    #[test]
    fn a_form_feed_begins_a_page() {
        let (document, extraction) = read("one\n\u{c}two\n\u{c}\u{c}four\n\u{c}", Gives::Text);
        let pages: Vec<_> = document.blocks.iter().map(|block| block.anchor.page.unwrap()).collect();
        assert_eq!((pages, document.text.contains(PAGE_MARK)), (vec![1, 2, 4], false));
        assert_eq!((extraction.n_pages, extraction.pages_without_text), (Some(4), vec![3]));
        let (document, extraction) = read("one\n\ntwo\n", Gives::Text);
        assert!(document.blocks.iter().all(|block| block.anchor.page.is_none()) && extraction.n_pages.is_none());
    }

    #[test]
    fn the_output_is_markdown_or_plain() {
        let (document, extraction) = read("# Log\n\nWind.\n", Gives::Markdown);
        assert_eq!((document.title.as_str(), document.sections.len(), document.kind), ("Log", 2, TextKind::Extracted));
        assert_eq!((extraction.engine.as_str(), extraction.n_characters), ("command ocr", 13));
        let (document, _) = read("# Log\n\nWind.\n", Gives::Text);
        assert_eq!((document.title.as_str(), document.sections.len()), ("a", 1));
        assert!(read(" \n", Gives::Text).0.warnings[0].contains("ocr found no text"));
    }
}
