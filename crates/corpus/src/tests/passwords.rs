//! Files with a password, as programs of others write them: `locked/` holds files of msoffcrypto-tool 6.1.0 (agile
//! encryption), qpdf 11.3 (RC4, AES of 128 and 256 bits), zip 3.0 (ZipCrypto), 7-Zip 26.02 (AES) and LibreOffice 7.4
//! (OpenDocument 1.3), all with the password `tide`; `standard.docx`, which Word wrote, is a test file of
//! msoffcrypto-tool (MIT License, Copyright 2015 nolze), with the password `Password1234_`.

use super::documents::zipped;
use crate::*;

const SENTENCE: &str = "The harbour is closed until spring.";

fn read_with(name: &str, bytes: &[u8], passwords: &str) -> Result<(Vec<Document>, Option<Extraction>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let passwords = match passwords {
        "" => Passwords::default(),
        lines => Passwords::parse(lines.as_bytes()).unwrap(),
    };
    let options = ReadOptions { passwords, ..ReadOptions::default() };
    let file = walk(&Root { label: name.into(), path }, &options)?.files.remove(0);
    let mut documents = read(&file, &options)?;
    let read = documents.by_ref().collect::<Result<_>>()?;
    Ok((read, documents.extraction().cloned()))
}

const FILES: [(&str, &[u8], &str); 11] = [
    ("agile.docx", include_bytes!("locked/agile.docx"), SENTENCE),
    ("agile.pptx", include_bytes!("locked/agile.pptx"), SENTENCE),
    ("agile.xlsx", include_bytes!("locked/agile.xlsx"), "harbour"),
    ("standard.docx", include_bytes!("locked/standard.docx"), "lorem ipsum"),
    ("aes256.pdf", include_bytes!("locked/aes256.pdf"), SENTENCE),
    ("aes128.pdf", include_bytes!("locked/aes128.pdf"), SENTENCE),
    ("rc4.pdf", include_bytes!("locked/rc4.pdf"), SENTENCE),
    ("zipcrypto.zip", include_bytes!("locked/zipcrypto.zip"), SENTENCE),
    ("aes.zip", include_bytes!("locked/aes.zip"), SENTENCE),
    ("locked.odt", include_bytes!("locked/locked.odt"), SENTENCE),
    ("locked.ods", include_bytes!("locked/locked.ods"), "closed until spring"),
];

#[test]
fn a_file_is_opened_by_the_first_password_that_is_its_own() {
    for (name, bytes, words) in FILES {
        let (documents, _) = read_with(name, bytes, "other\ntide\nPassword1234_\nlast").unwrap();
        assert_eq!(documents.len(), 1, "{name}");
        assert!(documents[0].text.contains(words), "{name}: {:?}", documents[0].text);
    }
}

#[test]
fn a_file_that_stays_shut_says_what_to_do() {
    for (name, bytes, _) in FILES {
        let said = |passwords: &str| {
            let error = read_with(name, bytes, passwords).unwrap_err();
            assert_eq!(error.code(), "encrypted", "{error}");
            error.to_string()
        };
        let none = said("");
        assert!(none.contains(name) && none.contains("give its password in a file"), "{none}");
        let wrong = said("Tide\ntide \nhunter2");
        assert!(wrong.contains("none of the 3 passwords") && !wrong.contains("hunter2"), "{wrong}");
        assert!(said("hunter2").contains("the 1 password given does not open it"));
    }
}

#[test]
fn entries_of_an_archive_are_opened_each() {
    let (name, locked, _) = FILES[4];
    let archive = {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, content) in [(name, locked), ("open.md", b"# Open\n".as_slice())] {
            archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            std::io::Write::write_all(&mut archive, content).unwrap();
        }
        archive.finish().unwrap().into_inner()
    };
    let (documents, _) = read_with("all.zip", &archive, "tide").unwrap();
    assert!(documents[0].text.contains(SENTENCE) && documents.len() == 2, "{documents:?}");
    let (documents, extraction) = read_with("all.zip", &archive, "").unwrap();
    let unread = extraction.unwrap().unread;
    assert_eq!((documents.len(), unread.len()), (1, 1));
    assert!(unread[0].contains("aes256.pdf") && unread[0].contains("give its password in a file"), "{unread:?}");
    // A password is tried on nothing that is open.
    let open = zipped(&[("a.md", "# A\n")]);
    assert_eq!(read_with("open.zip", &open, "tide").unwrap().0, read_with("open.zip", &open, "").unwrap().0);
}

/// An OpenDocument file with another text in the place of one in its manifest.
fn with_manifest(from: &str, to: &str) -> Vec<u8> {
    let mut odt = zip::ZipArchive::new(std::io::Cursor::new(include_bytes!("locked/locked.odt"))).unwrap();
    let mut changed = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for at in 0..odt.len() {
        let mut entry = odt.by_index(at).unwrap();
        let (name, mut content) = (entry.name().unwrap().into_owned(), Vec::new());
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        if name == "META-INF/manifest.xml" {
            let manifest = String::from_utf8(content).unwrap();
            assert!(manifest.contains(from), "{from}");
            content = manifest.replace(from, to).into_bytes();
        }
        changed.start_file(name, stored).unwrap();
        std::io::Write::write_all(&mut changed, &content).unwrap();
    }
    changed.finish().unwrap().into_inner()
}

#[test]
fn an_open_document_that_is_locked_otherwise_says_so() {
    let said = |from: &str, to: &str| read_with("a.odt", &with_manifest(from, to), "tide").unwrap_err();
    for (from, to) in [
        ("http://www.w3.org/2001/04/xmlenc#aes256-cbc", "Blowfish CFB"),
        ("key-derivation-name=\"PBKDF2\"", "key-derivation-name=\"urn:argon2id\""),
        ("iteration-count=\"100000\"", "iteration-count=\"4000000000\""),
        ("iteration-count=\"100000\"", "iteration-count=\"0\""),
        ("full-path=\"content.xml\"", "full-path=\"encrypted-package\""),
    ] {
        let error = said(from, to);
        assert!(error.code() == "encrypted" && error.to_string().contains("not opened here"), "{to}: {error}");
    }
    // Damage to one part is told by its name; nothing of the file is taken for its text.
    let salt = "manifest:full-path=\"styles.xml\"";
    assert!(read_with("a.odt", &with_manifest(salt, salt), "tide").is_ok());
    let wrong = said("checksum=\"", "checksum=\"AAAA").to_string();
    assert!(wrong.contains("the 1 password given does not open it"), "{wrong}");
}

#[test]
fn a_book_with_rights_management_says_so() {
    let opf = "<package><manifest><item id='a' href='a.xhtml' media-type='application/xhtml+xml'/></manifest>\
        <spine><itemref idref='a'/></spine></package>";
    let book = |reference: &str| {
        zipped(&[
            ("mimetype", "application/epub+zip"),
            ("META-INF/container.xml", "<container><rootfiles><rootfile full-path='b.opf'/></rootfiles></container>"),
            ("META-INF/encryption.xml", &format!("<encryption><CipherReference URI='{reference}'/></encryption>")),
            ("b.opf", opf),
            ("a.xhtml", "<html><body><p>The tide.</p></body></html>"),
            ("font.otf", "x"),
        ])
    };
    let error = read_with("a.epub", &book("a.xhtml"), "tide").unwrap_err();
    assert!(error.code() == "encrypted" && error.to_string().contains("rights management of its seller"), "{error}");
    assert!(read_with("a.epub", &book("font.otf"), "").unwrap().0[0].text.contains("The tide."), "a font is no text");
}
