//! Runs over files that children read: what a child that fails costs, what is told of it, and for how long.

use cento_corpus::guard::Guard;
use cento_corpus::{Extraction, FoundFile, RecordIds};

use super::{Place, QuickFs};
use crate::{At, FileReport, IndexOptions, Suspicion, delete, file_reports};

/// A page that is long enough for a child.
fn page(words: &str) -> String {
    let page = format!("<title>Tides</title><p>{words} {}", "the moon pulls the sea ".repeat(200_000));
    assert!(page.len() as u64 > cento_corpus::IN_PROCESS_BYTES_MAX);
    page
}

/// Options with children that do as a script says.
fn scripted(place: &Place, script: &str) -> IndexOptions {
    let command = ["/bin/sh", "-c", script].map(std::ffi::OsString::from).to_vec();
    IndexOptions { guard: Some(Guard::new(command)), ..place.options() }
}

/// Options under which a long page is one chunk: reading is what is looked at.
fn whole(options: IndexOptions) -> IndexOptions {
    IndexOptions { chunk_tokens: Some("document".parse().unwrap()), ..options }
}

#[test]
fn a_child_that_dies_costs_its_file_alone_and_its_document_stays() {
    let place = Place::new();
    place.write("a.md", "# Bread\n\nBread is flour.\n");
    place.write("b.html", &page("old"));
    place.write("c.md", "# Stars\n\nStars are gas.\n");
    place.index_with(&whole(place.options()), &QuickFs).unwrap();
    assert_eq!(file_reports(&place.collection(), &At::Current).unwrap().files, None);
    place.write("b.html", &page("new"));
    place.write("c.md", "# Stars\n\nStars are old gas.\n");
    let failing = whole(scripted(&place, "echo no >&2; exit 3"));
    let report = place.index_with(&failing, &QuickFs).unwrap();
    assert_eq!((report.n_changed, report.n_unchanged, report.n_removed), (1, 1, 0));
    assert_eq!(report.kept, ["notes/b.html"]);
    assert_eq!(report.failed[0].reason, "its reader died: exit status: 3: no");
    let told = |generation: u64| {
        let told = file_reports(&place.collection(), &At::Current).unwrap();
        assert_eq!(told.generation, generation);
        told.files.unwrap().iter().map(|file| (file.origin.clone(), file.suspicion)).collect::<Vec<_>>()
    };
    assert_eq!(told(2), [("notes/b.html".to_owned(), Suspicion::Failed)]);
    assert_eq!(report.files[0].failures, ["its reader died: exit status: 3: no"]);
    // Nothing has changed since: no generation more, and none for what was told before.
    assert_eq!(place.index_with(&failing, &QuickFs).unwrap().generation, 2);
    // Merging keeps what is told; deleting the document ends it.
    crate::compact(
        &place.collection(),
        &crate::CompactOptions { merge: crate::Merge::All, ..crate::CompactOptions::default() },
        &QuickFs,
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(told(3).len(), 1);
    delete(&place.collection(), &["notes/a.md".to_owned()], &QuickFs).unwrap();
    assert_eq!(told(4).len(), 1);
    delete(&place.collection(), &["notes/b.html".to_owned()], &QuickFs).unwrap();
    assert_eq!(file_reports(&place.collection(), &At::Current).unwrap().files, None);
    let names: Vec<_> = std::fs::read_dir(place.collection().join("reports")).unwrap().collect();
    assert!(names.len() <= 1, "the report of the generation before, at most: {names:?}");
}

#[test]
fn a_report_that_is_damaged_stops_nothing_and_is_made_anew() {
    let place = Place::new();
    place.write("a.md", "# Bread\n\nBread is flour.\n");
    place.write("b.html", &page("old"));
    let failing = whole(scripted(&place, "exit 3"));
    assert_eq!(place.index_with(&failing, &QuickFs).unwrap().files.len(), 1);
    let path = place.collection().join("reports/1");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(file_reports(&place.collection(), &At::Current).is_err());
    let diagnosis = crate::doctor(&place.collection()).unwrap();
    assert!(diagnosis.is_healthy(), "no answer depends on it");
    assert!(diagnosis.remarks[0].contains("reports/1"), "{:?}", diagnosis.remarks);
    let report = place.index_with(&failing, &QuickFs).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("the report on files is lost")), "{:?}", report.notes);
    assert_eq!(file_reports(&place.collection(), &At::Current).unwrap().files.unwrap().len(), 1);
}

#[test]
fn figures_that_say_that_text_is_missing_are_told_in_words() {
    let file = FoundFile {
        path: "a.html".into(),
        origin: "notes/a.html".to_owned(),
        format: cento_corpus::Format::Html,
        n_bytes: 9,
        record_ids: RecordIds::UnderFile,
    };
    let judged = |extraction: Extraction, failures: &[&str]| {
        let failures = failures.iter().map(ToString::to_string).collect();
        let judged = FileReport { extraction: Some(extraction), failures, ..FileReport::new(&file) }.judged();
        (judged.suspicion, judged.remarks.join("; "))
    };
    let fine = Extraction { n_characters: 6_000, n_pages: Some(9), ..Extraction::default() };
    assert_eq!(judged(fine.clone(), &[]), (Suspicion::Fine, String::new()));
    assert_eq!(judged(fine.clone(), &["x"]), (Suspicion::Failed, String::new()));
    let odd = Extraction {
        pages_without_text: vec![6, 9],
        n_unmapped: 60,
        n_long_words: 40,
        completeness: Some(0.5),
        unread: vec!["a form".to_owned()],
        ..fine.clone()
    };
    assert_eq!(
        judged(odd, &[]),
        (
            Suspicion::Suspicious,
            "looks scanned: no text on pages 6, 9 of 9; 1.0 % of its characters have no meaning in its fonts or encoding; \
             40 words of more than 25 letters: words may be glued together; 50 % of the words of a second, crude reading \
             are in its text; not read: a form"
                .to_owned()
        )
    );
    assert_eq!(judged(Extraction::default(), &[]).1, "no text");
}
