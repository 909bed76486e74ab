//! The columns that filters read, damaged in ten thousand ways.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use cento_collection::Result;
use cento_collection::format::metadata::{Described, MetadataColumns, MetadataWriter};
use cento_collection::fs::{Folder, OsFs};
use cento_corpus::{Format, Metadata};
use cento_vector::file;
use roaring::RoaringBitmap;

use crate::source::filter::Filter;

fn open(path: &Path, n_documents: usize) -> Result<MetadataColumns> {
    let folder = Folder::open(path.parent().unwrap()).unwrap();
    MetadataColumns::open(&folder, path.file_name().unwrap().to_str().unwrap(), n_documents)
}

fn metadata(json: &str) -> Metadata {
    serde_json::from_str(json).unwrap()
}

fn described<'a>(id: &'a str, origin: &'a str, title: &'a str, metadata: &'a Metadata) -> Described<'a> {
    Described { id, origin, title, format: Format::Markdown, metadata }
}

/// A file of several blocks, with the documents it was made of.
fn many() -> (tempfile::TempDir, std::path::PathBuf, MetadataWriter) {
    let mut writer = MetadataWriter::default();
    for n in 0..6000 {
        let metadata = metadata(&format!(
            r#"{{"year": {}, "score": {}.5, "tags": ["t{}", "t{}"], "at": "20{:02}-05-17", "even": {}}}"#,
            n % 40 + 1980,
            n % 700,
            n % 11,
            n % 13,
            n % 90 + 10,
            n % 2 == 0
        ));
        let id = format!("root/folder {}/note {n}.md", n % 50);
        writer.push(&described(&id, &id, &format!("Title {n}"), &metadata));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.columns");
    assert!(writer.payload().len() > 5 * file::BLOCK_BYTES);
    writer.write(&OsFs, &path).unwrap();
    (folder, path, writer)
}

#[test]
fn ten_thousand_flipped_bytes_are_an_error_or_change_nothing() {
    let (_folder, path, documents) = many();
    let filters = [
        "year = 1999",
        "score < 20 and even = true",
        "tags in (\"t3\", \"t12\") or at >= 2095-01-01",
        "path starts with \"folder 7/\"",
        "not (year exists)",
        "id = \"root/folder 0/note 0.md\"",
    ]
    .map(|text| Filter::parse(text).unwrap());
    let answers = |path: &Path| -> Vec<Result<RoaringBitmap>> {
        match open(path, 6000) {
            Ok(columns) => filters.iter().map(|filter| filter.documents(&columns)).collect(),
            Err(error) => vec![Err(error)],
        }
    };
    let good: Vec<RoaringBitmap> = answers(&path).into_iter().map(Result::unwrap).collect();
    assert_eq!(good.iter().map(RoaringBitmap::len).collect::<Vec<_>>(), [150, 90, 1639, 120, 0, 1]);
    open(&path, 6000).unwrap().verify(&documents).unwrap();
    let mut file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let n_bytes = file.metadata().unwrap().len();
    let (mut state, mut n_errors, mut n_same) = (7_u64, 0, 0);
    let mut flip = |at: u64, mask: u8| {
        let mut byte = [0];
        file.seek(SeekFrom::Start(at)).unwrap();
        file.read_exact(&mut byte).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&[byte[0] ^ mask]).unwrap();
    };
    for n in 0..10_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (at, mask) = if n < 64 { (n, 0x10) } else { ((state >> 24) % n_bytes, 1 << (state >> 61)) };
        flip(at, mask);
        for (n, answer) in answers(&path).into_iter().enumerate() {
            match answer {
                Ok(found) => {
                    assert_eq!(found, good[n], "byte {at}, {}", filters[n]);
                    n_same += 1;
                }
                Err(_) => n_errors += 1,
            }
        }
        if n % 100 == 0 {
            let found = open(&path, 6000).and_then(|columns| columns.verify(&documents));
            assert!(found.is_err(), "byte {at} is not checked");
        }
        flip(at, mask);
    }
    assert!(n_errors > 1_000 && n_same > 10_000, "{n_errors} errors, {n_same} answers");
}

/// A payload whose checksums hold is read without trust all the same: nothing that its numbers say makes it panic.
#[test]
fn sealed_nonsense_is_an_error_or_an_answer() {
    let mut writer = MetadataWriter::default();
    for n in 0..9 {
        let metadata = metadata(&format!(r#"{{"year": {n}, "tag": "t{}"}}"#, n % 3));
        writer.push(&described(&format!("r/{n}"), &format!("r/{n}"), "T", &metadata));
    }
    let (good, n_columns) = (writer.payload(), 7);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.columns");
    let filters =
        ["year > 3", "tag = \"t1\"", "id exists", "path starts with \"1\""].map(|text| Filter::parse(text).unwrap());
    let mut n_errors = 0;
    for at in 0..good.len() {
        let mut payload = good.clone();
        payload[at] ^= [0x01, 0x80, 0xff][at % 3];
        let mut out = file::Writer::new(std::io::Cursor::new(Vec::new()), *b"metadata").unwrap();
        out.write_all(&payload).unwrap();
        std::fs::write(&path, out.finish([n_columns, 9]).unwrap().into_inner()).unwrap();
        let columns = open(&path, 9).unwrap();
        n_errors += filters.iter().filter(|filter| filter.documents(&columns).is_err()).count();
        assert!(columns.verify(&writer).is_err());
    }
    assert!(n_errors > 100, "{n_errors}");
}
