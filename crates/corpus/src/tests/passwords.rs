//! Files with a password, as programs of others write them: `locked/` holds files of msoffcrypto-tool 6.1.0 (agile
//! encryption), qpdf 11.3 (RC4, AES of 128 and 256 bits), zip 3.0 (ZipCrypto) and 7-Zip 26.02 (AES), all with the
//! password `tide`; `standard.docx`, which Word wrote, is a test file of msoffcrypto-tool (MIT License, Copyright 2015
//! nolze), with the password `Password1234_`.

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

const FILES: [(&str, &[u8], &str); 8] = [
    ("agile.docx", include_bytes!("locked/agile.docx"), SENTENCE),
    ("agile.pptx", include_bytes!("locked/agile.pptx"), SENTENCE),
    ("agile.xlsx", include_bytes!("locked/agile.xlsx"), "harbour"),
    ("standard.docx", include_bytes!("locked/standard.docx"), "lorem ipsum"),
    ("aes256.pdf", include_bytes!("locked/aes256.pdf"), SENTENCE),
    ("aes128.pdf", include_bytes!("locked/aes128.pdf"), SENTENCE),
    ("rc4.pdf", include_bytes!("locked/rc4.pdf"), SENTENCE),
    ("zipcrypto.zip", include_bytes!("locked/zipcrypto.zip"), SENTENCE),
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

#[test]
fn an_archive_by_aes_says_that_it_is_not_opened() {
    for passwords in ["", "tide"] {
        let error = read_with("aes.zip", include_bytes!("locked/aes.zip"), passwords).unwrap_err();
        assert!(error.to_string().contains("in a way that is not opened here"), "{error}");
        assert_eq!(error.code(), "encrypted");
    }
}
