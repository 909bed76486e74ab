//! Documents that people have: what each reader gets out of small files that are written here, and what it says it
//! lost.

use std::io::{Cursor, Write};

use super::Words;
use crate::*;

/// The documents of a file of this name and content, and the figures of its reading.
pub(super) fn read_bytes(name: &str, bytes: &[u8]) -> Result<(Vec<Document>, Option<Extraction>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let options = ReadOptions::default();
    let file = walk(&Root { label: name.into(), path }, &options)?.files.remove(0);
    let mut documents = read(&file, &options)?;
    let read: Vec<Document> = documents.by_ref().collect::<Result<_>>()?;
    Ok((read, documents.extraction().cloned()))
}

#[track_caller]
pub(super) fn one(name: &str, bytes: &[u8]) -> (Document, Extraction) {
    let (mut documents, extraction) = read_bytes(name, bytes).unwrap();
    assert_eq!(documents.len(), 1);
    let document = documents.remove(0);
    let whole: String = document.blocks.iter().map(|block| &document.text[block.span.clone()]).collect();
    assert_eq!(whole, document.text, "blocks partition the text");
    (document, extraction.expect("a parser gives figures"))
}

/// A zip archive of these parts.
pub(super) fn zipped(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// A PDF of pages in Helvetica: lines of a size and a text; no line makes a page without text.
pub(super) fn pdf(pages: &[&[(u32, &str)]], outline: &[(&str, usize)]) -> Vec<u8> {
    let n_pages = pages.len();
    let page_number = |page: usize| 4 + 2 * page;
    let first_item = 4 + 2 * n_pages;
    let outlines = if outline.is_empty() { String::new() } else { format!("/Outlines {first_item} 0 R") };
    let kids: String = (0..n_pages).map(|page| format!("{} 0 R ", page_number(page))).collect();
    let mut objects = vec![
        format!("<</Type/Catalog/Pages 2 0 R{outlines}>>"),
        format!("<</Type/Pages/Kids[{kids}]/Count {n_pages}>>"),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_owned(),
    ];
    for (page, lines) in pages.iter().enumerate() {
        objects.push(format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents {} 0 R>>",
            page_number(page) + 1
        ));
        let mut y = 800;
        let mut content = String::new();
        for (size, text) in *lines {
            content.push_str(&format!("BT /F1 {size} Tf 50 {y} Td ({text}) Tj ET\n"));
            y -= 40;
        }
        objects.push(format!("<</Length {}>>stream\n{content}\nendstream", content.len()));
    }
    if !outline.is_empty() {
        let (first, last) = (first_item + 1, first_item + outline.len());
        objects.push(format!("<</Type/Outlines/First {first} 0 R/Last {last} 0 R/Count {}>>", outline.len()));
        for (index, (title, page)) in outline.iter().enumerate() {
            let number = first + index;
            let next = if number < last { format!("/Next {} 0 R", number + 1) } else { String::new() };
            let page = page_number(*page);
            objects.push(format!("<</Title({title})/Parent {first_item} 0 R/Dest[{page} 0 R/Fit]{next}>>"));
        }
    }
    objects.push("<</Title(Tides and moons)/Author(Ada)/CreationDate(D:20200517103000Z)>>".to_owned());
    let mut file = b"%PDF-1.7\n".to_vec();
    let mut places = Vec::new();
    for (object, number) in objects.iter().zip(1..) {
        places.push(file.len());
        file.extend(format!("{number} 0 obj\n{object}\nendobj\n").bytes());
    }
    let table = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    file.extend(places.iter().flat_map(|place| format!("{place:010} 00000 n \n").into_bytes()));
    let (size, info) = (objects.len() + 1, objects.len());
    file.extend(format!("trailer\n<</Size {size}/Root 1 0 R/Info {info} 0 R>>\nstartxref\n{table}\n%%EOF\n").bytes());
    file
}

#[test]
fn pages_of_a_pdf_are_anchors_and_its_outline_is_the_sections() {
    let first = [(18, "Tides"), (11, "The moon pulls the sea."), (11, "It rises twice a day.")];
    let pages: [&[(u32, &str)]; 3] = [&first, &[], &[(18, "Moons"), (11, "A moon circles its planet.")]];
    let (document, extraction) = one("sea.pdf", &pdf(&pages, &[("Tides", 0), ("Moons", 2)]));
    let headings: Vec<(&str, Option<u32>)> =
        document.sections[1..].iter().map(|section| (section.heading.as_str(), section.anchor.page)).collect();
    assert_eq!(headings, [("Tides", Some(1)), ("Moons", Some(3))]);
    assert_eq!((extraction.n_pages, extraction.pages_without_text.as_slice()), (Some(3), [2].as_slice()));
    assert_eq!(document.title, "Tides and moons");
    let fields: Vec<String> = document.metadata.iter().map(|(name, field)| format!("{name}={field}")).collect();
    assert_eq!(fields, ["author=Ada", "created=2020-05-17T10:30:00", "title=Tides and moons"]);
    assert!(document.warnings.iter().any(|warning| warning == "no text on 2 of 3 pages"), "{:?}", document.warnings);
    let chunks = chunk(&document, &ChunkConfig::default(), &Words);
    let placed: Vec<(Option<u32>, bool)> = chunks
        .iter()
        .map(|chunk| (chunk.anchor.page, document.text[chunk.span.clone()].contains("circles its planet")))
        .collect();
    assert_eq!(placed, [(Some(1), false), (Some(3), true)], "no chunk goes on behind its page");
}

#[test]
fn a_title_of_a_last_page_without_text_is_a_section_where_the_text_ends() {
    let pages: [&[(u32, &str)]; 2] = [&[(18, "Tides"), (11, "The moon pulls the sea.")], &[]];
    let (document, _) = one("sea.pdf", &pdf(&pages, &[("Tides", 0), ("Back cover", 1)]));
    let end = document.text.len();
    let sections: Vec<_> =
        document.sections[1..].iter().map(|section| (section.heading.as_str(), section.span.clone())).collect();
    assert_eq!(sections, [("Tides", 0..end), ("Back cover", end..end)], "{:?}", document.text);
}

#[test]
fn the_numbers_that_pages_of_a_pdf_are_printed_with_are_no_part_of_its_text() {
    let page = |text: &'static str, number: &'static str| [(11, text), (11, "In the year"), (11, "2020"), (11, number)];
    let pages = [page("The moon pulls.", "11"), page("The sea rises.", "12"), page("The tide turns.", "13")];
    let pages: Vec<&[(u32, &str)]> = pages.iter().map(|page| page.as_slice()).collect();
    let (document, extraction) = one("sea.pdf", &pdf(&pages, &[]));
    for kept in ["The moon pulls.", "The sea rises.", "The tide turns."] {
        assert!(document.text.contains(kept), "{}", document.text);
    }
    assert_eq!(document.text.matches("2020").count(), 3, "{}", document.text);
    for folio in ["11", "12", "13"] {
        assert!(!document.text.contains(folio), "{folio} in {}", document.text);
    }
    assert_eq!((extraction.n_pages, extraction.pages_without_text.len()), (Some(3), 0));
}

#[test]
fn large_type_is_a_heading_where_a_pdf_has_no_outline() {
    let body = (11, "The moon pulls the sea, and the sun pulls it too, and so it rises twice a day.");
    let pages: [&[(u32, &str)]; 2] =
        [&[(20, "Tides"), body, body, body, (15, "Springs"), body, body], &[body, (20, "Moons"), body, body, body]];
    let (document, _) = one("sea.pdf", &pdf(&pages, &[]));
    let headings: Vec<(u8, &str)> =
        document.sections[1..].iter().map(|section| (section.level, section.heading.as_str())).collect();
    assert_eq!(headings, [(1, "Tides"), (2, "Springs"), (1, "Moons")]);
}

const WORD: &str = "xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"";

/// A DOCX of this body.
fn docx(body: &str) -> Vec<u8> {
    let types = "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">\
        <Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
        <Override PartName=\"/word/document.xml\" ContentType=\
        \"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml\"/></Types>";
    let relations = "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">\
        <Relationship Id=\"rId1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument\" \
        Target=\"word/document.xml\"/></Relationships>";
    let styles = format!(
        "<w:styles {WORD}><w:style w:type=\"paragraph\" w:styleId=\"Heading1\"><w:name w:val=\"heading 1\"/>\
        <w:pPr><w:outlineLvl w:val=\"0\"/></w:pPr></w:style></w:styles>"
    );
    let of_document = "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">\
        <Relationship Id=\"rId1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles\" \
        Target=\"styles.xml\"/></Relationships>";
    let core = "<cp:coreProperties xmlns:cp=\"c\" xmlns:dc=\"d\" xmlns:dcterms=\"t\"><dc:title>Of the sea</dc:title>\
        <dc:creator>Ada</dc:creator><dcterms:created>2020-05-17T10:30:00Z</dcterms:created></cp:coreProperties>";
    let document = format!("<w:document {WORD}><w:body>{body}</w:body></w:document>");
    zipped(&[
        ("[Content_Types].xml", types),
        ("_rels/.rels", relations),
        ("word/_rels/document.xml.rels", of_document),
        ("word/document.xml", &document),
        ("word/styles.xml", &styles),
        ("docProps/core.xml", core),
    ])
}

fn paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}

fn table(rows: &[[&str; 2]]) -> String {
    let cell = |text: &&str| format!("<w:tc>{}</w:tc>", paragraph(text));
    let row = |(row, cells): (usize, &[&str; 2])| {
        let header = if row == 0 { "<w:trPr><w:tblHeader/></w:trPr>" } else { "" };
        format!("<w:tr>{header}{}</w:tr>", cells.iter().map(cell).collect::<String>())
    };
    format!("<w:tbl>{}</w:tbl>", rows.iter().enumerate().map(row).collect::<String>())
}

#[test]
fn headings_tables_and_properties_of_a_text_are_read() {
    let long = "about the sea ".repeat(20);
    let rows: Vec<[&str; 2]> = [["part", "note"]].into_iter().chain([["nut", long.as_str()]; 6]).collect();
    let heading = "<w:p><w:pPr><w:pStyle w:val=\"Heading1\"/></w:pPr><w:r><w:t>Tides</w:t></w:r></w:p>";
    let body = [
        heading.to_owned(),
        paragraph("The moon pulls."),
        table(&[["part", "n"], ["nut", "3"]]),
        table(&rows),
        paragraph("End."),
    ];
    let (document, extraction) = one("sea.docx", &docx(&body.concat()));
    assert!(
        document.text.starts_with("Tides\n\nThe moon pulls.\n\npart | n\nnut | 3\n\npart | note\n"),
        "{}",
        document.text
    );
    assert!(document.text.contains("\npart: nut | note: about the sea"), "rows of a long table name their columns");
    assert_eq!((document.title.as_str(), document.sections[1].heading.as_str()), ("Of the sea", "Tides"));
    assert_eq!(document.metadata["author"].to_string(), "Ada");
    assert_eq!((extraction.n_tables, extraction.completeness), (2, Some(1.0)));
}

const SHEET: &str = "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"";

/// An XLSX of these sheets: name, state, the XML of its rows and what follows them.
fn xlsx(sheets: &[(&str, &str, &str, &str)]) -> Vec<u8> {
    let numbered = || sheets.iter().zip(1..);
    let overrides: String = numbered()
        .map(|(_, n)| {
            format!(
                "<Override PartName=\"/xl/worksheets/sheet{n}.xml\" \
                ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml\"/>"
            )
        })
        .collect();
    let types = format!(
        "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\"><Default Extension=\"rels\" \
        ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/><Override PartName=\"/xl/workbook.xml\" \
        ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml\"/>{overrides}</Types>"
    );
    let kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relations = |inner: &str| {
        format!(
            "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">{inner}</Relationships>"
        )
    };
    let root =
        relations(&format!("<Relationship Id=\"rId1\" Type=\"{kind}/officeDocument\" Target=\"xl/workbook.xml\"/>"));
    let of_book: String = numbered()
        .map(|(_, n)| {
            format!("<Relationship Id=\"s{n}\" Type=\"{kind}/worksheet\" Target=\"worksheets/sheet{n}.xml\"/>")
        })
        .collect();
    let of_book =
        relations(&format!("{of_book}<Relationship Id=\"st\" Type=\"{kind}/styles\" Target=\"styles.xml\"/>"));
    let listed: String = numbered()
        .map(|((name, state, ..), n)| {
            format!("<sheet name=\"{name}\" sheetId=\"{n}\" state=\"{state}\" r:id=\"s{n}\"/>")
        })
        .collect();
    let book = format!("<workbook {SHEET} xmlns:r=\"{kind}\"><sheets>{listed}</sheets></workbook>");
    let styles = format!(
        "<styleSheet {SHEET}><cellXfs count=\"2\"><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/></cellXfs></styleSheet>"
    );
    let bodies: Vec<(String, String)> = numbered()
        .map(|((_, _, rows, behind), n)| {
            let body = format!("<worksheet {SHEET}><sheetData>{rows}</sheetData>{behind}</worksheet>");
            (format!("xl/worksheets/sheet{n}.xml"), body)
        })
        .collect();
    let mut parts = vec![
        ("[Content_Types].xml", types.as_str()),
        ("_rels/.rels", &root),
        ("xl/workbook.xml", &book),
        ("xl/_rels/workbook.xml.rels", &of_book),
        ("xl/styles.xml", &styles),
    ];
    parts.extend(bodies.iter().map(|(name, body)| (name.as_str(), body.as_str())));
    zipped(&parts)
}

fn text_cell(place: &str, text: &str) -> String {
    format!("<c r=\"{place}\" t=\"inlineStr\"><is><t>{text}</t></is></c>")
}

#[test]
fn each_row_of_a_workbook_stands_on_its_sheet_and_row() {
    let costs = [
        format!("<row r=\"1\">{}</row>", text_cell("A1", "Costs of the year")),
        format!(
            "<row r=\"3\">{}{}{}</row>",
            text_cell("A3", "item"),
            text_cell("B3", "paid on"),
            text_cell("C3", "EUR")
        ),
        format!(
            "<row r=\"4\">{}<c r=\"B4\" s=\"1\"><v>45943</v></c><c r=\"C4\"><v>3.5</v></c></row>",
            text_cell("A4", "nut")
        ),
        "<row r=\"5\"><c r=\"B5\" s=\"1\"><v>-4</v></c><c r=\"C5\"><f>C4*2</f></c></row>".to_owned(),
    ];
    let merged = "<mergeCells count=\"1\"><mergeCell ref=\"A4:A5\"/></mergeCells>";
    let scope = format!("<row r=\"9\">{}</row>", text_cell("A9", "Nuts alone"));
    let bytes = xlsx(&[
        ("Costs", "visible", &costs.concat(), merged),
        ("Scope", "hidden", &scope, ""),
        ("None", "visible", "", ""),
    ]);
    let (document, extraction) = one("plan.xlsx", &bytes);
    let rows: Vec<(&str, Option<u32>, &str)> = document
        .blocks
        .iter()
        .map(|block| {
            (block.anchor.sheet.as_deref().unwrap(), block.anchor.row, document.text[block.span.clone()].trim_end())
        })
        .collect();
    let expected = [
        ("Costs", Some(1), "Costs of the year"),
        ("Costs", Some(3), "item | paid on | EUR"),
        ("Costs", Some(4), "item: nut | paid on: 2025-10-13 | EUR: 3.5"),
        ("Costs", Some(5), "item: nut | paid on: -4"),
        ("Scope", Some(9), "Nuts alone"),
    ];
    assert_eq!(rows, expected);
    let sections: Vec<&str> = document.sections[1..].iter().map(|section| section.heading.as_str()).collect();
    assert_eq!(sections, ["Costs", "Scope", "None"]);
    assert_eq!((extraction.n_pages, extraction.n_tables), (Some(3), 1));
    assert!(extraction.pages_without_text.is_empty(), "a sheet without cells is no scan");
    let said = document.warnings.join("\n");
    for words in
        ["sheet \"Scope\" is hidden", "1 formulas without a stored value", "1 dates before the file's calendar"]
    {
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(extraction.completeness, None, "no strings are shared, so that none is missed");
    let chunks = chunk(&document, &ChunkConfig::default(), &Words);
    assert!(chunks.iter().any(|chunk| chunk.anchor.sheet.as_deref() == Some("Scope") && chunk.anchor.row == Some(9)));
}

#[test]
fn words_that_stand_in_no_cell_of_a_workbook_show_in_its_completeness() {
    let bytes = xlsx(&[("S", "visible", &format!("<row r=\"1\">{}</row>", text_cell("A1", "tide")), "")]);
    let mut archive = zip::ZipWriter::new_append(Cursor::new(bytes)).unwrap();
    archive.start_file("xl/drawings/drawing1.xml", zip::write::SimpleFileOptions::default()).unwrap();
    archive
        .write_all(b"<wsDr><a:p><a:t>tide</a:t></a:p><a:p><a:t>box</a:t></a:p><rPh><t>spoken</t></rPh></wsDr>")
        .unwrap();
    let (document, extraction) = one("box.xlsx", &archive.finish().unwrap().into_inner());
    assert_eq!((document.text.as_str(), extraction.completeness), ("tide\n", Some(0.5)));
}

#[test]
fn a_notebook_is_its_cells_and_the_start_of_their_outputs() {
    let long = "x".repeat(50_000);
    let notebook = serde_json::json!({
        "nbformat": 4, "metadata": { "kernelspec": { "name": "python3", "language": "python" } },
        "cells": [
            { "cell_type": "markdown", "source": ["# Tides\n", "\n", "How the sea *rises*."] },
            { "cell_type": "code", "source": "print(\"```\")", "outputs": [
                { "output_type": "stream", "text": long },
                { "output_type": "display_data", "data": { "image/png": "AAAA", "text/plain": "<Figure>" } },
                { "output_type": "error", "ename": "ValueError", "evalue": "no sea", "traceback": [] },
            ] },
        ],
    });
    let (document, extraction) = one("tides.ipynb", notebook.to_string().as_bytes());
    assert!(document.text.starts_with("# Tides\n\nHow the sea *rises*.\n\n````python\nprint(\"```\")\n````\n\n"));
    assert!(document.text.contains("ValueError: no sea") && document.text.len() < 6_000);
    assert_eq!((document.title.as_str(), document.format, extraction.n_images), ("Tides", Format::Ipynb, 1));
    assert_eq!(extraction.unread, ["outputs behind their first 4096 bytes: 1"]);
    let error = read_bytes("x.ipynb", b"{\"cells\": [").unwrap_err();
    assert!(error.to_string().contains("no notebook"), "{error}");
}

#[test]
fn a_message_is_read_with_what_is_attached_to_it() {
    let mail = "From: Ada <ada@sea.org>\r\nTo: Bob <bob@sea.org>\r\nSubject: =?utf-8?q?Tides_=E2=80=93_again?=\r\n\
        Date: Sun, 17 May 2020 10:30:00 +0200\r\nMessage-ID: <3@sea.org>\r\nReferences: <1@sea.org> <2@sea.org>\r\n\
        MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=X\r\n\r\n--X\r\nContent-Type: multipart/alternative; \
        boundary=Y\r\n\r\n--Y\r\nContent-Type: text/plain\r\n\r\nThe sea rises.\r\n\r\nAda\r\n--Y\r\nContent-Type: text/html\r\n\
        \r\n<p>The sea <b>rises</b> in HTML.</p>\r\n--Y--\r\n--X\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; \
        filename=\"../t.csv\"\r\n\r\nday,high\r\nMon,3\r\n--X\r\nContent-Type: message/rfc822\r\n\r\nSubject: First\r\n\
        Message-ID: <1@sea.org>\r\n\r\nDoes it rise?\r\n--X\r\nContent-Type: application/octet-stream\r\nContent-Disposition: \
        attachment; filename=\"key.bin\"\r\n\r\nabc\r\n--X--\r\n";
    let (documents, extraction) = read_bytes("3.eml", mail.as_bytes()).unwrap();
    let read: Vec<(&str, &str, Format)> =
        documents.iter().map(|document| (document.id.as_str(), document.title.as_str(), document.format)).collect();
    let expected = [
        ("3.eml", "Tides – again", Format::Eml),
        ("3.eml/.._t.csv", ".._t", Format::Csv),
        ("3.eml/part-2.eml", "First", Format::Eml),
    ];
    assert_eq!(read, expected);
    assert!(documents.iter().all(|document| document.origin == "3.eml"));
    assert!(documents.iter().all(|document| document.metadata["thread"].to_string() == "1@sea.org"));
    assert!(documents[0].text.contains("The sea rises.\n\nAda") && !documents[0].text.contains("HTML"));
    assert!(
        documents[0]
            .text
            .starts_with("From: Ada <ada@sea.org>\nTo: Bob <bob@sea.org>\nDate: 2020-05-17T10:30:00+02:00\n")
    );
    assert_eq!(documents[1].text, "day: Mon | high: 3\n");
    let unread = extraction.unwrap().unread;
    assert!(unread.len() == 1 && unread[0].contains("key.bin"), "{unread:?}");
}

#[test]
fn parts_that_were_not_read_are_named_up_to_a_hundred() {
    let attached = |n: usize| format!("--X\r\nContent-Type: application/x-key; name=\"{n}.key\"\r\n\r\n??\r\n");
    let mail = format!(
        "From: a@b.c\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=X\r\n\r\n{}--X--\r\n",
        (0..300).map(attached).collect::<String>()
    );
    let (document, extraction) = one("keys.eml", mail.as_bytes());
    let unread = &extraction.unread;
    assert_eq!((unread.len(), unread[100].as_str()), (REMARKS_NAMED_MAX + 1, "and 200 more"));
    assert!(unread[99].contains("99.key") && document.warnings.len() <= REMARKS_NAMED_MAX + 2, "{unread:?}");
}

#[test]
fn a_file_is_read_as_what_it_is_and_else_refused_by_name() {
    let (document, _) = one("report.pdf", &docx(&paragraph("Not a PDF.")));
    assert_eq!((document.format, document.text.as_str()), (Format::Docx, "Not a PDF.\n"));
    assert!(document.warnings[0].contains("its extension says pdf, its content is docx"), "{:?}", document.warnings);
    for format in ["pdf", "docx", "pptx", "xlsx", "xls", "ods", "rtf", "epub", "ipynb", "eml", "doc"] {
        let (document, _) = one(&format!("empty.{format}"), b"");
        assert_eq!((document.text.as_str(), document.warnings[0].as_str()), ("", "the file is empty"));
    }
    for format in ["pdf", "docx", "pptx", "xlsx", "xlsb", "xls", "ods", "odt", "epub", "ipynb", "doc"] {
        let error = read_bytes(&format!("words.{format}"), b"only words, and no file of that kind").unwrap_err();
        assert_eq!(error.code(), "unparsed", "{format}: {error}");
    }
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let encrypted = [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice(), &[0; 600], &name, &[0; 600]].concat();
    assert_eq!(read_bytes("plan.xlsx", &encrypted).unwrap_err().code(), "encrypted");
}

#[test]
fn hostile_files_are_refused_or_cost_their_length() {
    let bomb: String = (1..12)
        .map(|n| format!("<!ENTITY e{n} \"&e{0};&e{0};&e{0};&e{0};&e{0};&e{0};&e{0};&e{0};\">", n - 1))
        .collect();
    let body = format!("<!DOCTYPE d [<!ENTITY e0 \"aaaaaaaa\">{bomb}]>{}", paragraph("&e11;"));
    let deep = "<w:p>".repeat(100_000);
    let nested = "Content-Type: message/rfc822\r\n\r\n".repeat(20_000);
    let parts =
        (0..300).map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n")).collect::<String>();
    let wide =
        format!("<row r=\"1\">{}</row><row r=\"1048576\">{}</row>", text_cell("A1", "a"), text_cell("XFD1048576", "b"));
    let merged = "<mergeCells count=\"1\"><mergeCell ref=\"A1:XFD1048576\"/></mergeCells>";
    let brackets = "[".repeat(200_000);
    let whole = pdf(&[&[(11, "The sea.")]], &[]);
    let start = std::time::Instant::now();
    for (name, bytes) in [
        ("a.docx", docx(&body)),
        ("b.docx", docx(&deep)),
        ("c.docx", docx(&paragraph(&"sea ".repeat(4_000_000)))),
        ("a.eml", nested.into_bytes()),
        ("b.eml", parts.into_bytes()),
        ("a.xlsx", xlsx(&[("S", "visible", &wide, merged)])),
        ("a.ipynb", brackets.clone().into_bytes()),
        ("a.pdf", whole[..whole.len() / 2].to_vec()),
        ("b.pdf", format!("%PDF-1.7\n1 0 obj\n{brackets}").into_bytes()),
        ("c.pdf", pdf(&[], &[])),
    ] {
        match read_bytes(name, &bytes) {
            Ok((documents, _)) => {
                let n_text_bytes: u64 = documents.iter().map(|document| document.text.len() as u64).sum();
                assert!(n_text_bytes <= bytes.len() as u64 * budget::TEXT_PER_BYTE_MAX + budget::FREE_BYTES, "{name}");
            }
            Err(error) => assert!(error.to_string().contains(name), "{error}"),
        }
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
    let many: Vec<(String, String)> =
        (1..=72).map(|n| (format!("S{n}"), format!("<row r=\"1\">{}</row>", text_cell("A1", "x")))).collect();
    let sheets: Vec<(&str, &str, &str, &str)> =
        many.iter().map(|(name, row)| (name.as_str(), "visible", row.as_str(), "")).collect();
    let (document, _) = one("many.xlsx", &xlsx(&sheets));
    assert_eq!(document.sections.len(), 73);
    let (document, _) = one("none.pdf", &pdf(&[], &[]));
    assert!(document.warnings.iter().any(|warning| warning.contains("no pages")), "{:?}", document.warnings);
}
