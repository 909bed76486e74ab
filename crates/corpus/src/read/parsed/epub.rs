//! Books, as EPUB: the pages of the spine in their order, each read as the HTML that it is.
//!
//! Tables of contents, landmarks and page lists are navigation, and not read; a page without a heading has the title
//! that they give it. Images are counted, and their descriptions read.
//! Source: EPUB 3.3 §5 (package document, spine), §7 (navigation); OPF 2.0.1 §2.4.1 (NCX); OCF §4.2.6 (encryption).

use std::collections::{BTreeMap, HashMap, HashSet};

use percent_encoding::percent_decode_str;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, BytesText, Event};
use quick_xml::reader::Reader;
use quick_xml::writer::Writer;

use super::draft::{About, Draft, one_line};
use super::figures::completeness;
use super::package::{Package, TextOf, character_of, elements, fault_of};
use super::part::{ENCRYPTED, quoted};
use super::{Fault, Inner, Parsed, Part};
use crate::budget::HEADING_BYTES_MAX;
use crate::document::Document;
use crate::extraction::Extraction;
use crate::format::Format;
use crate::links::LinkKind;
use crate::read::password::Locked;

const ENGINE: &str = "html5ever 0.40";

/// Elements of HTML that have no end.
const VOID: [&str; 14] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];

/// Attributes of an element, by name.
type Attributes = BTreeMap<String, String>;

/// Reads a book into its one document.
pub(super) fn read(part: &Part<'_>, inner: Inner<'_>) -> Result<Parsed, Fault> {
    let mut package = Package::open(part.bytes).ok_or_else(|| unparsed("no zip archive"))?;
    let of_root = package.part("META-INF/container.xml").map(|xml| elements(&xml, "rootfile")).unwrap_or_default();
    let named = of_root.into_iter().find_map(|mut root| root.remove("full-path"));
    let found = || package.names().into_iter().find(|name| name.ends_with(".opf"));
    let opf = named.or_else(found).ok_or_else(|| unparsed("no package document"))?;
    let xml = package.read(&opf).map_err(|reason| unparsed(&format!("package document {}: {reason}", quoted(&opf))))?;
    let (title, metadata) = package.properties(&opf);
    let mut book = Book {
        part,
        inner,
        folder: opf.rsplit_once('/').map_or("", |(folder, _)| folder),
        titles: HashMap::new(),
        draft: Draft::new(part.bytes.len() as u64),
        extraction: Extraction { engine: ENGINE.into(), ..Extraction::default() },
        crude: String::new(),
    };
    book.pages(&mut package, &xml)?;
    let Book { draft, mut extraction, crude, .. } = book;
    extraction.completeness = completeness(draft.text(), &crude);
    let about = About { title, metadata, warnings: Vec::new() };
    Ok(Parsed::one(draft.finish(part.id, part.origin, Format::Epub, part.name(), about), extraction))
}

fn unparsed(reason: &str) -> Fault {
    Fault::Unparsed { engine: ENGINE, reason: reason.to_owned() }
}

struct Book<'b> {
    part: &'b Part<'b>,
    inner: Inner<'b>,
    /// The folder of the package document, which names are relative to.
    folder: &'b str,
    /// The titles that the navigation gives pages.
    titles: HashMap<String, String>,
    draft: Draft,
    extraction: Extraction,
    /// The words of a crude reading of the same pages.
    crude: String,
}

impl Book<'_> {
    fn pages(&mut self, package: &mut Package<'_>, opf: &[u8]) -> Result<(), Fault> {
        let items: BTreeMap<String, Attributes> = elements(opf, "item")
            .into_iter()
            .filter_map(|mut item| Some((item.remove("id")?, item)))
            .filter(|(_, item)| item.contains_key("href"))
            .collect();
        for item in items.values().filter(|item| is_navigation(item)) {
            let name = resolve(self.folder, &item["href"]);
            let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
            for (target, title) in package.part(&name).map(|xml| labels(&xml)).unwrap_or_default() {
                self.titles.entry(resolve(folder, &target)).or_insert(title);
            }
        }
        let encrypted: HashSet<String> = package
            .part("META-INF/encryption.xml")
            .map(|xml| elements(&xml, "CipherReference"))
            .unwrap_or_default()
            .iter()
            .filter_map(|reference| Some(resolve("", reference.get("URI")?)))
            .collect();
        if let Some(fault) = fault_of(opf) {
            self.extraction.unread.push(format!("package document: {fault}"));
        }
        let (mut named, mut n_encrypted) = (HashSet::new(), 0);
        let spine = elements(opf, "itemref");
        for reference in &spine {
            let idref = reference.get("idref").map_or("", String::as_str);
            let Some(item) = items.get(idref) else {
                self.extraction.unread.push(format!("page {} of the spine: not in the manifest", quoted(idref)));
                continue;
            };
            let name = resolve(self.folder, &item["href"]);
            let read = match media_type(item) {
                _ if encrypted.contains(&name) => Err(ENCRYPTED.to_owned()),
                media_type if is_page(media_type) => self.page(package, &name)?,
                other => Err(format!("of type {}", quoted(other))),
            };
            if let Err(reason) = read {
                n_encrypted += usize::from(reason == ENCRYPTED);
                self.extraction.unread.push(format!("page {}: {reason}", quoted(&name)));
            }
            named.insert(name);
        }
        let written = package.names();
        for item in items.values().filter(|item| is_page(media_type(item)) && !is_navigation(item)) {
            let name = resolve(self.folder, &item["href"]);
            if written.binary_search(&name).is_ok() && named.insert(name.clone()) {
                self.extraction.unread.push(format!("page {}: the spine does not name it", quoted(&name)));
            }
        }
        if n_encrypted > 0 && n_encrypted == spine.len() { Err(Fault::Encrypted(Locked::Rights)) } else { Ok(()) }
    }

    /// Reads a page, or says why it was not read.
    fn page(&mut self, package: &mut Package<'_>, name: &str) -> Result<Result<(), String>, Fault> {
        let xhtml = match package.read(name) {
            Ok(xhtml) => xhtml,
            Err(reason) => return Ok(Err(reason)),
        };
        self.crude.push_str(&super::package::text_of(&xhtml, TextOf::Body));
        let Page { html, n_images, n_tables } = html_of(&xhtml);
        let page = Part { bytes: html.as_deref().unwrap_or(&xhtml), ..*self.part };
        let parsed = match (self.inner)(&page, Format::Html) {
            Ok(parsed) => parsed,
            Err(fault) => return Ok(Err(fault.reason())),
        };
        self.extraction.n_images += n_images;
        self.extraction.n_tables += n_tables;
        for mut document in parsed.documents {
            forget_inner_links(&mut document);
            if let (Some(title), [_]) = (self.titles.get(name), document.sections.as_slice())
                && !document.text.is_empty()
            {
                self.draft.section(1, title, 0);
            }
            self.draft.append(document)?;
        }
        Ok(Ok(()))
    }
}

/// The type that the manifest says of an item; empty if it says none.
fn media_type(item: &Attributes) -> &str {
    item.get("media-type").map_or("", String::as_str)
}

/// True for the types of pages, and where none is said.
fn is_page(media_type: &str) -> bool {
    ["application/xhtml+xml", "text/html", ""].contains(&media_type)
}

/// True for a table of contents: one of EPUB 3, or of the versions before it.
fn is_navigation(item: &Attributes) -> bool {
    let has = |name: &str, value: &str| item.get(name).is_some_and(|values| values.split(' ').any(|one| one == value));
    has("properties", "nav") || has("media-type", "application/x-dtbncx+xml")
}

/// Links to pages of the same book lead to no document.
fn forget_inner_links(document: &mut Document) {
    document.links.retain(|link| link.kind != LinkKind::Html || link.target.contains("://"));
}

/// The name in the archive of what is written in a part of this folder.
fn resolve(folder: &str, target: &str) -> String {
    let target = target.split(['#', '?']).next().unwrap_or_default();
    let target = percent_decode_str(target).decode_utf8_lossy();
    let mut path: Vec<&str> = if target.starts_with('/') { Vec::new() } else { folder.split('/').collect() };
    for step in target.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(path.pop()),
            step => path.push(step),
        }
    }
    path.retain(|step| !step.is_empty());
    path.join("/")
}

/// The targets of a table of contents, and what they are called there: links of EPUB 3, points of an NCX.
fn labels(xml: &[u8]) -> Vec<(String, String)> {
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().check_end_names = false;
    let (mut found, mut buffer) = (Vec::new(), Vec::new());
    let (mut label, mut target) = (String::new(), None);
    let mut add = |label: &str, target: Option<String>| {
        let label = one_line(label);
        if let Some(target) = target.filter(|_| !label.is_empty() && label.len() as u64 <= HEADING_BYTES_MAX) {
            found.push((target, label));
        }
    };
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(start)) if ["a", "text"].contains(&start.local_name().as_ref()) => {
                label.clear();
                target = attribute(&start, "href");
            }
            Ok(Event::Start(point) | Event::Empty(point)) if point.local_name().as_ref() == "content" => {
                add(&label, attribute(&point, "src"));
            }
            Ok(Event::End(end)) if end.local_name().as_ref() == "a" => add(&label, target.take()),
            Ok(Event::Text(piece)) => label.push_str(&piece),
            Ok(Event::GeneralRef(name)) => label.push_str(&character_of(&name)),
            Ok(Event::Eof) | Err(_) => return found,
            Ok(_) => {}
        }
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = element.try_get_attribute(name).ok().flatten()?;
    Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
}

/// A page as HTML.
#[derive(Default)]
struct Page {
    /// Absent where the page is not well-formed XML: it is HTML as it is.
    html: Option<Vec<u8>>,
    n_images: u32,
    n_tables: u32,
}

/// XHTML as HTML means it: elements that are empty have an end, sections of characters are text, and an image is its
/// description.
fn html_of(xhtml: &[u8]) -> Page {
    let mut page = Page::default();
    let mut reader = Reader::from_reader(xhtml);
    let mut writer = Writer::new(b"<!DOCTYPE html>".to_vec());
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let Ok(event) = reader.read_event_into(&mut buffer) else { return page };
        let written = match event {
            Event::Eof => break,
            Event::Start(image) | Event::Empty(image) if ["img", "image"].contains(&image.local_name().as_ref()) => {
                page.n_images += 1;
                let words = attribute(&image, "alt").map_or_else(String::new, |alt| format!(" {alt} "));
                writer.write_event(Event::Text(BytesText::new(&words)))
            }
            Event::Empty(element) if !VOID.contains(&element.local_name().as_ref()) => {
                let end = element.to_end().into_owned();
                writer.write_event(Event::Start(element)).and_then(|()| writer.write_event(Event::End(end)))
            }
            Event::End(end) if VOID.contains(&end.local_name().as_ref()) => Ok(()),
            Event::CData(text) => writer.write_event(Event::Text(BytesText::new(&text))),
            Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Comment(_) => Ok(()),
            event @ (Event::Start(_) | Event::Empty(_) | Event::End(_) | Event::Text(_) | Event::GeneralRef(_)) => {
                page.n_tables +=
                    u32::from(matches!(&event, Event::Start(element) if element.local_name().as_ref() == "table"));
                writer.write_event(event)
            }
        };
        if written.is_err() {
            return page; // memory takes all that is written
        }
    }
    page.html = Some(writer.into_inner());
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_archive_whatever_is_written() {
        let of = |target: &str| resolve("OEBPS/text", target);
        assert_eq!(of("a%20b.xhtml#p1"), "OEBPS/text/a b.xhtml");
        assert_eq!(of("../toc.ncx"), "OEBPS/toc.ncx");
        assert_eq!(of("../../../../etc/passwd"), "etc/passwd");
        assert_eq!(of("/x.xhtml"), "x.xhtml");
        assert_eq!(resolve("", "x.xhtml"), "x.xhtml");
    }

    #[test]
    fn what_xhtml_leaves_empty_does_not_swallow_what_follows() {
        let page = html_of(
            b"<?xml version='1.0'?><html><head><title/><script src='x'/></head><body><a id='p'/><p>Ti<br/>de\
            <img src='x' alt='a &lt;wave&gt;'/></p><![CDATA[a<b]]><table><tr><td/></tr></table></body></html>",
        );
        let html = String::from_utf8(page.html.unwrap()).unwrap();
        assert!(html.contains("<title></title><script src='x'></script>") && html.contains("<a id='p'></a>"), "{html}");
        assert!(html.contains("Ti<br/>de a &lt;wave&gt; </p>a&lt;b<table>"), "{html}");
        assert_eq!((page.n_images, page.n_tables), (1, 1));
        assert!(html_of(b"<p>a<br>b</p").html.is_none(), "what is no XML is read as it is");
    }
}
