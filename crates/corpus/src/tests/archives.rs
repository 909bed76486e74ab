//! Books and archives: what is read of them, and that whatever is not has its line in the report.

use std::io::{Cursor, Write};

use super::documents::{one, pdf, read_bytes, zipped};
use crate::*;

/// A book: its pages by name and body, and which of them the spine names.
fn epub(pages: &[(&str, &str)], spine: &[&str], more: &[(&str, &str)]) -> Vec<u8> {
    let item = |(name, _): &(&str, &str)| {
        let properties = if *name == "nav" { " properties=\"nav\"" } else { "" };
        format!("<item id=\"{name}\" href=\"text/{name}.xhtml\" media-type=\"application/xhtml+xml\"{properties}/>")
    };
    let items: String = pages.iter().map(item).collect();
    let references: String = spine.iter().map(|name| format!("<itemref idref=\"{name}\"/>")).collect();
    let opf = format!(
        "<package xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><metadata><dc:title>Tides</dc:title><dc:creator>Ada</dc:creator>\
        </metadata><manifest>{items}<item id=\"gone\" href=\"gone.xhtml\" media-type=\"application/xhtml+xml\"/>\
        <item id=\"ncx\" href=\"toc.ncx\" media-type=\"application/x-dtbncx+xml\"/></manifest><spine>{references}</spine></package>"
    );
    let container = "<container><rootfiles><rootfile full-path=\"OEBPS/book.opf\"/></rootfiles></container>";
    let written: Vec<(String, String)> = pages
        .iter()
        .map(|(name, body)| {
            let head = "<?xml version=\"1.0\"?><html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title/></head>";
            (format!("OEBPS/text/{name}.xhtml"), format!("{head}<body>{body}</body></html>"))
        })
        .collect();
    let mut parts = vec![("mimetype", "application/epub+zip"), ("META-INF/container.xml", container)];
    parts.push(("OEBPS/book.opf", &opf));
    parts.extend(written.iter().map(|(name, page)| (name.as_str(), page.as_str())));
    parts.extend(more);
    zipped(&parts)
}

#[test]
fn a_book_is_its_pages_in_the_order_of_the_spine_without_its_navigation() {
    let pages = [
        ("a", "<p>Springs follow the moon: <a href=\"b.xhtml\">see</a> <a href=\"https://sea.org\">this</a>.</p>"),
        ("b", "<h1>Moons</h1><p>A moon <img src=\"m.png\" alt=\"of Mars\"/>circles.</p><h2>Phases</h2><p>Four.</p>"),
        ("nav", "<nav><h2>Contents</h2><ol><li><a href=\"b.xhtml\">Of moons</a></li></ol></nav>"),
    ];
    let ncx = "<ncx><navMap><navPoint><navLabel><text>Spring &amp; neap</text></navLabel><content src=\"text/a.xhtml#p1\"/>\
        </navPoint></navMap></ncx>";
    let bytes = epub(&pages, &["nav", "b", "a", "gone"], &[("OEBPS/toc.ncx", ncx)]);
    let (document, extraction) = one("book.epub", &bytes);
    let text = "Moons\n\nA moon of Mars circles.\n\nPhases\n\nFour.\n\nSprings follow the moon: see this.\n";
    assert_eq!(document.text, text);
    let headings: Vec<(u8, &str, &str)> = document.sections[1..]
        .iter()
        .map(|section| (section.level, section.heading.as_str(), &document.text[section.span.clone()]))
        .map(|(level, heading, text)| (level, heading, text.split('\n').next().unwrap_or_default()))
        .collect();
    let expected =
        [(1, "Moons", "Moons"), (2, "Phases", "Phases"), (1, "Spring & neap", "Springs follow the moon: see this.")];
    assert_eq!(headings, expected);
    assert_eq!((document.title.as_str(), document.metadata["author"].to_string().as_str()), ("Tides", "Ada"));
    let targets: Vec<&str> = document.links.iter().map(|link| link.target.as_str()).collect();
    assert_eq!(targets, ["https://sea.org"], "a page of the same book is no document");
    assert_eq!((extraction.n_images, extraction.completeness), (1, Some(1.0)));
    assert_eq!(extraction.unread, ["page \"OEBPS/gone.xhtml\": not in the file"]);
    let encryption = |page: &str| {
        format!(
            "<encryption><EncryptedData><CipherData><CipherReference URI=\"OEBPS/text/{page}.xhtml\"/></CipherData></EncryptedData></encryption>"
        )
    };
    let locked = encryption("a") + &encryption("b");
    let one_locked = epub(&pages, &["b", "a"], &[("META-INF/encryption.xml", &encryption("a"))]);
    assert_eq!(one("book.epub", &one_locked).1.unread, ["page \"OEBPS/text/a.xhtml\": encrypted"]);
    let all_locked = epub(&pages, &["b", "a"], &[("META-INF/encryption.xml", &format!("<e>{locked}</e>"))]);
    assert_eq!(read_bytes("book.epub", &all_locked).unwrap_err().code(), "encrypted");
}

#[test]
fn the_files_of_an_archive_are_documents_and_what_was_not_read_is_named() {
    let inner = zipped(&[("deep/c.md", "# Deep\n\nBelow the sea.\n")]);
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let plain = zip::write::SimpleFileOptions::default();
    let whole = pdf(&[&[(11, "The sea rises.")]], &[]);
    let entries: [(&str, &[u8]); 9] = [
        ("docs/", b""),
        ("docs/a.md", b"# Tides\n\nThe sea rises.\n"),
        ("LICENSE", b"Take it.\n"),
        ("report.pdf", &whole),
        ("inner.zip", &inner),
        ("../../etc/cron.md", b"# Out\n"),
        ("__MACOSX/docs/a.md", b"\0\0"),
        ("key.bin", b"\0\x01"),
        ("broken.docx", b"no zip"),
    ];
    for (name, content) in entries {
        if name.ends_with('/') {
            archive.add_directory(name, plain).unwrap();
        } else {
            archive.start_file(name, plain).unwrap();
            archive.write_all(content).unwrap();
        }
    }
    archive.add_symlink("link.md", "/etc/passwd", plain).unwrap();
    let bytes = archive.finish().unwrap().into_inner();
    let (documents, extraction) = read_bytes("all.zip", &bytes).unwrap();
    let read: Vec<(&str, &str, Format)> =
        documents.iter().map(|document| (document.id.as_str(), document.title.as_str(), document.format)).collect();
    let expected = [
        ("all.zip/docs/a.md", "Tides", Format::Markdown),
        ("all.zip/LICENSE", "LICENSE", Format::Text),
        ("all.zip/report.pdf", "Tides and moons", Format::Pdf),
        ("all.zip/inner.zip/deep/c.md", "Deep", Format::Markdown),
    ];
    assert_eq!(read, expected);
    assert!(documents.iter().all(|document| document.origin == "all.zip" && document.kind == TextKind::Extracted));
    let unread = extraction.unwrap().unread;
    let begins: Vec<&str> = unread.iter().map(|unread| unread.split(": ").next().unwrap()).collect();
    let expected = ["entry \"../../etc/cron.md\"", "entry \"key.bin\"", "entry \"broken.docx\"", "entry \"link.md\""];
    assert_eq!(begins, expected, "{unread:?}");
    assert_eq!(read_bytes("words.zip", b"only words").unwrap_err().code(), "unparsed");
    // Bit 0 of the flags, in both headers of the one entry, says that it is encrypted.
    let mut locked = zipped(&[("a.md", "The sea.")]);
    let central = locked.windows(4).position(|mark| mark == b"PK\x01\x02").unwrap();
    locked[6] |= 1;
    locked[central + 8] |= 1;
    assert_eq!(read_bytes("locked.zip", &locked).unwrap_err().code(), "encrypted");
}

#[test]
fn an_archive_that_grows_without_end_costs_its_limits() {
    let sea = "sea ".repeat(4 << 20);
    let bomb = zipped(&[("a.txt", &sea), ("b.md", "# Small\n")]);
    let (documents, extraction) = read_bytes("bomb.zip", &bomb).unwrap();
    let ids: Vec<&str> = documents.iter().map(|document| document.id.as_str()).collect();
    let unread = extraction.unwrap().unread;
    assert_eq!(ids, ["bomb.zip/b.md"], "{unread:?}");
    assert!(unread.len() == 1 && unread[0].contains("bytes of text, the limit is"), "{unread:?}");
    let mut nested = zipped(&[("x.md", "# Innermost\n")]);
    for _ in 0..6 {
        let mut around = zip::ZipWriter::new(Cursor::new(Vec::new()));
        around.start_file("n.zip", zip::write::SimpleFileOptions::default()).unwrap();
        around.write_all(&nested).unwrap();
        nested = around.finish().unwrap().into_inner();
    }
    let (documents, extraction) = read_bytes("nested.zip", &nested).unwrap();
    let unread = extraction.unwrap().unread;
    assert!(documents.is_empty() && unread[0].ends_with("inside 4 other files"), "{unread:?}");
}

/// The bytes with every occurrence of one name as another of its length: names that no packer writes.
fn renamed(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let found: Vec<usize> =
        bytes.windows(from.len()).enumerate().filter(|(_, name)| *name == from).map(|(at, _)| at).collect();
    assert_eq!(found.len(), 2, "in the local header and in the directory");
    found.iter().for_each(|&at| bytes[at..at + to.len()].copy_from_slice(to));
    bytes
}

#[test]
fn names_that_lead_elsewhere_are_refused_in_words_and_lead_nowhere() {
    let names: [(&[u8], &str); 9] = [
        (b"../up.md", "its name leads out of its folder"),
        (b"a/../../b.md", "its name leads out of its folder"),
        (b"..\\..\\c.md", "its name leads out of its folder"),
        (b"/abs/d.md", "an absolute path, which no file in an archive has"),
        (b"C:\\x\\e.md", "an absolute path, which no file in an archive has"),
        (b"nul\0f.md", "a name with control characters"),
        (b"t\xf6ne.md", ""),
        (b"win\\g.md", ""),
        (b"./here.md", ""),
    ];
    let places: Vec<String> =
        names.iter().zip(b'A'..).map(|((name, _), c)| char::from(c).to_string().repeat(name.len())).collect();
    let parts: Vec<(&str, &str)> = places.iter().map(|place| (place.as_str(), "# Title\n\nThe sea.\n")).collect();
    let whole = zipped(&parts);
    let bytes =
        names.iter().zip(&places).fold(whole, |bytes, ((name, _), place)| renamed(bytes, place.as_bytes(), name));
    let (documents, extraction) = read_bytes("all.zip", &bytes).unwrap();
    let ids: Vec<&str> = documents.iter().map(|document| document.id.as_str()).collect();
    assert_eq!(ids, ["all.zip/t÷ne.md", "all.zip/win/g.md", "all.zip/here.md"]);
    assert!(
        documents[0].warnings.iter().any(|warning| warning.contains("code page 437")),
        "{:?}",
        documents[0].warnings
    );
    let unread = extraction.unwrap().unread;
    let expected: Vec<&str> = names.iter().map(|(_, words)| *words).filter(|words| !words.is_empty()).collect();
    assert_eq!(unread.len(), expected.len(), "{unread:?}");
    assert!(unread.iter().zip(&expected).all(|(unread, words)| unread.ends_with(words)), "{unread:?}");
}

#[test]
fn every_entry_that_is_not_read_is_named() {
    let long = "x".repeat(3_000) + ".md";
    let parts = [("a.md", "# One\n"), ("b.md", "# Two\n"), ("p.png", "PNG"), ("core", "\0\0"), (&long, "# Long\n")];
    let (documents, extraction) = read_bytes("all.zip", &renamed(zipped(&parts), b"b.md", b"a.md")).unwrap();
    let titles: Vec<&str> = documents.iter().map(|document| document.title.as_str()).collect();
    assert_eq!(titles, ["Two"], "of two of a name the later one");
    let unread = extraction.unwrap().unread;
    let expected = [
        "entry \"a.md\": a later entry has this name, which is read",
        "entry \"p.png\": unknown type: .png files are not read",
        "entry \"core\": unknown type, and its 2 bytes are no text",
    ];
    assert_eq!(unread[..3], expected);
    assert!(unread.len() == 4 && unread[3].ends_with("xxx\"…: a name of 3003 bytes, the limit is 2048"), "{unread:?}");
}

#[test]
fn what_is_not_named_is_counted_across_archives_inside_each_other() {
    let pictures: Vec<String> = (0..150).map(|n| format!("{n}.png")).collect();
    let parts: Vec<(&str, &str)> = pictures.iter().map(|name| (name.as_str(), "PNG")).collect();
    let inner = zipped(&parts);
    let mut parts: Vec<(&str, &[u8])> = vec![("a.md", b"# Sea\n"), ("in.zip", &inner)];
    parts.extend(pictures[..20].iter().map(|name| (name.as_str(), &b"PNG"[..])));
    let (documents, extraction) = read_bytes("all.zip", &packed(&parts)).unwrap();
    let unread = extraction.unwrap().unread;
    assert_eq!((unread.len(), unread[REMARKS_NAMED_MAX].as_str()), (REMARKS_NAMED_MAX + 1, "and 70 more"));
    assert_eq!(unread[0], "in.zip: entry \"0.png\": unknown type: .png files are not read");
    assert!(documents[0].warnings.len() <= REMARKS_NAMED_MAX + 2);
}

/// A zip archive of parts of any bytes.
fn packed(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn archives_inside_each_other_share_what_one_file_may_cost() {
    let zeros = packed(&[("core", &vec![0; 40 << 20])]);
    let names: Vec<String> = (0..6).map(|n| format!("{n}.zip")).collect();
    let nested: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), zeros.as_slice())).collect();
    let around = packed(&nested);
    let (_, extraction) = read_bytes("bomb.zip", &packed(&[("one.zip", &around), ("two.zip", &around)])).unwrap();
    let unread = extraction.unwrap().unread;
    let n_unpacked = unread.iter().filter(|unread| unread.ends_with("41943040 bytes are no text")).count();
    assert_eq!((unread.len(), n_unpacked), (12, 3), "{unread:?}");
    assert!(unread[11].starts_with("two.zip: 5.zip: entry \"core\": 41943040 bytes, and "), "{unread:?}");
    assert!(unread[11].ends_with(" are left of the 134217728 that are unpacked of one file"), "{unread:?}");

    let notes: Vec<String> = (0..2_000).map(|n| format!("{n:04}.txt")).collect();
    let parts: Vec<(&str, &[u8])> = notes.iter().map(|name| (name.as_str(), &b"sea"[..])).collect();
    let many = packed(&parts);
    let (documents, extraction) =
        read_bytes("many.zip", &packed(&[("0.zip", &many), ("1.zip", &many), ("2.zip", &many)])).unwrap();
    assert_eq!(documents.len(), 4_096 - 3);
    let expected = "2.zip: entry \"0093.txt\" and 1906 behind it: 4096 files in archives were read before it";
    assert_eq!(extraction.unwrap().unread, [expected]);
}

#[test]
fn an_entry_that_lies_about_its_size_costs_what_it_says_at_most() {
    let declare = |n_bytes: u32| {
        let mut bytes = zipped(&[("a.md", &"sea ".repeat(5_000)), ("b.md", "# Small\n")]);
        let central = bytes.windows(4).position(|mark| mark == b"PK\x01\x02").unwrap();
        bytes[central + 24..central + 28].copy_from_slice(&n_bytes.to_le_bytes());
        let (documents, extraction) = read_bytes("lie.zip", &bytes).unwrap();
        assert_eq!(documents.len(), 1);
        extraction.unwrap().unread.concat()
    };
    assert_eq!(declare(1 << 30), "entry \"a.md\": 1073741824 bytes, the limit is 67108864");
    let said = declare(100);
    assert!(said.starts_with("entry \"a.md\": "), "{said}");
}

#[test]
fn every_page_of_a_book_that_is_not_read_is_named() {
    let pages =
        [("a", "<p>The sea.</p>"), ("b", "<p>The moon.</p>"), ("c", "<p>The tide.</p>"), ("d", "<p>Rises.</p>")];
    let mut bytes = epub(&pages, &["a", "nowhere", "gone", "ncx", "b", "c"], &[]);
    let name = b"OEBPS/text/c.xhtml";
    let central = bytes.windows(name.len()).rposition(|found| found == name).unwrap() - 46;
    bytes[central + 24..central + 28].copy_from_slice(&(1_u32 << 30).to_le_bytes());
    let (document, extraction) = one("book.epub", &bytes);
    assert_eq!(document.text, "The sea.\n\nThe moon.\n");
    let expected = [
        "page \"nowhere\" of the spine: not in the manifest",
        "page \"OEBPS/gone.xhtml\": not in the file",
        "page \"OEBPS/toc.ncx\": of type \"application/x-dtbncx+xml\"",
        "page \"OEBPS/text/c.xhtml\": 1073741824 bytes, the limit is 67108864",
        "page \"OEBPS/text/d.xhtml\": the spine does not name it",
    ];
    assert_eq!(extraction.unread, expected);
    let opf = "<package><manifest><item id='a' href='a.xhtml'/></manifest><spine><itemref idref='a'/><!-- cut off";
    let container = "<container><rootfiles><rootfile full-path='b.opf'/></rootfiles></container>";
    let parts = [
        ("mimetype", "application/epub+zip"),
        ("META-INF/container.xml", container),
        ("b.opf", opf),
        ("a.xhtml", "<p>The sea.</p>"),
    ];
    let (document, extraction) = one("cut.epub", &zipped(&parts));
    assert_eq!(document.text, "The sea.\n");
    assert!(extraction.unread[0].starts_with("package document: no XML from byte "), "{:?}", extraction.unread);
}
