//! What cannot be read, and what is not there at all: nothing of it is removed unless the user says so.

use std::path::Path;

use serde_json::Value;

use crate::support::{Place, Ran, binary, tiny_model};

/// Done, but for what could not be read.
const PARTIAL: i32 = 5;

/// Runs `cento` as a user whom permissions bind; none, with a note, where there is no such user.
#[cfg(unix)]
fn bound(place: &Place, arguments: &[&str]) -> Option<Ran> {
    use std::os::unix::fs::{MetadataExt, chown};
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65534;
    fn give(path: &Path) {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        if path.is_dir() {
            std::fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path()));
        }
    }
    let mut command = place.command(arguments);
    if tempfile::tempfile().unwrap().metadata().unwrap().uid() == 0 {
        give(&place.path("."));
        command.uid(NOBODY).gid(NOBODY);
        let mut probe = std::process::Command::new(binary());
        if !probe.arg("--version").uid(NOBODY).gid(NOBODY).output().is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: a user without rights cannot start {}", binary().display());
            return None;
        }
    }
    Some(Ran::new(arguments, command.output().unwrap()))
}

#[cfg(unix)]
fn set_mode(place: &Place, name: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Ids of all documents.
fn ids(place: &Place) -> Vec<String> {
    let list = place.json(&["list"]);
    list["documents"].as_array().unwrap().iter().map(|document| document["id"].as_str().unwrap().to_owned()).collect()
}

fn counts(report: &Value) -> [u64; 4] {
    ["n_added", "n_changed", "n_unchanged", "n_removed"].map(|name| report[name].as_u64().unwrap())
}

#[cfg(unix)]
#[test]
fn what_the_system_does_not_let_be_read_stays_as_it_was_and_is_named() {
    // A folder that cannot be listed, one that can be but not entered, a file, the rules of a folder.
    for (closed, mode, unread, kept) in [
        ("notes/sub", 0o000, "notes/sub", "notes/sub/stars.txt"),
        ("notes/sub", 0o444, "notes/sub", "notes/sub/stars.txt"),
        ("notes/bread.md", 0o000, "notes/bread.md", "notes/bread.md"),
        ("notes/sub/.gitignore", 0o000, "notes/sub/.gitignore", "notes/sub/stars.txt"),
        ("notes/sub/.centoignore", 0o000, "notes/sub/.centoignore", "notes/sub/stars.txt"),
    ] {
        let place = Place::new();
        place.write_notes();
        if closed.ends_with("ignore") {
            place.write(closed, "*.md\n!stars.txt\ndraft.txt\n");
        }
        place.write("notes/sub/draft.txt", "A draft of stars.\n");
        place.index(&["notes"]);
        let before = ids(&place);
        place.write("notes/new.md", "# New\n\nA new note about rye.\n");
        set_mode(&place, closed, mode);
        let model = tiny_model();
        let index = ["index", "--model", &model, "notes"];
        for arguments in [&[&index[..], &["--dry-run", "--json"]].concat(), &[&index[..], &["--json"]].concat()] {
            let Some(ran) = bound(&place, arguments) else { return };
            assert_eq!(ran.code, PARTIAL, "{closed}: {ran:?}");
            let report: Value = serde_json::from_str(&ran.out).unwrap();
            assert_eq!((report["n_added"].as_u64(), report["n_removed"].as_u64()), (Some(1), Some(0)), "{report}");
            let unread_of = report["unread"].as_array().unwrap();
            assert!(unread_of.iter().any(|issue| issue["path"].as_str().unwrap().starts_with(unread)), "{report}");
            assert!(report["kept"].as_array().unwrap().contains(&kept.into()), "{report}");
            assert!(ran.err.contains("could not be read") && ran.err.contains(kept), "{ran:?}");
            assert!(ran.err.contains("Permission denied"), "{ran:?}");
        }
        let again = bound(&place, &index).unwrap();
        assert_eq!(again.code, PARTIAL, "{again:?}");
        assert!(again.out.contains("kept as before"), "{again:?}");
        set_mode(&place, closed, 0o755);
        let after = ids(&place);
        assert!(before.iter().all(|id| after.contains(id)) && after.len() == before.len() + 1, "{before:?} {after:?}");
        let healed = place.index(&["notes"]);
        assert_eq!(counts(&healed)[3], 0, "{healed}");
    }
}

#[cfg(unix)]
#[test]
fn a_root_that_cannot_be_listed_is_an_error_and_no_word_of_the_user_empties_it() {
    let place = Place::indexed();
    set_mode(&place, "notes", 0o000);
    for more in [&[][..], &["--dry-run"], &["--allow-empty"]] {
        let Some(ran) = bound(&place, &[&["index", "--model", &tiny_model(), "notes"], more].concat()) else { return };
        ran.fails(3, &["notes", "Permission denied"]);
        assert!(!ran.err.contains("--allow-empty"), "{ran:?}");
    }
    set_mode(&place, "notes", 0o755);
    assert_eq!(ids(&place).len(), 3);
}

#[cfg(unix)]
#[test]
fn where_rules_cannot_be_read_nothing_new_is_read_either() {
    let place = Place::indexed();
    std::os::unix::fs::symlink(".centoignore", place.path("notes/sub/.centoignore")).unwrap(); // a link to itself
    place.write("notes/sub/secret.md", "# Secret\n\nNot for everybody.\n");
    let ran = place.run(&["index", "--model", &tiny_model(), "notes", "--json"]);
    assert_eq!(ran.code, PARTIAL, "{ran:?}");
    assert_eq!(counts(&serde_json::from_str(&ran.out).unwrap()), [0, 0, 2, 0]);
    assert!(ran.err.contains(".centoignore") && ran.err.contains("notes/sub/stars.txt"), "{ran:?}");
}

#[test]
fn a_file_that_holds_no_text_any_more_keeps_its_document() {
    for (content, limit) in [(&b"# Bread\0"[..], "1000000"), (&[b'x'; 600][..], "500")] {
        let place = Place::indexed();
        place.write("notes/bread.md", content);
        let ran = place.run(&["index", "--model", &tiny_model(), "notes", "--max-file-bytes", limit, "--json"]);
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((ran.code, counts(&report)), (PARTIAL, [0, 0, 2, 0]), "{ran:?}");
        assert_eq!(report["kept"], serde_json::json!(["notes/bread.md"]));
        assert_eq!(report["skipped"][0]["path"], "notes/bread.md");
        let found = place.json(&["search", "sourdough", "--mode", "lexical"]);
        assert!(found["warnings"][0].as_str().unwrap().contains("it is binary now, or too large"), "{found}");
    }
}

#[test]
fn a_root_that_is_gone_or_empty_wants_a_word() {
    type Lose = fn(&Place);
    let vanished: Lose = |place| std::fs::rename(place.path("notes"), place.path("away")).unwrap();
    let emptied: Lose = |place| {
        std::fs::rename(place.path("notes"), place.path("away")).unwrap();
        std::fs::create_dir(place.path("notes")).unwrap();
    };
    let hidden: Lose = |place| place.write("notes/.gitignore", "*\n");
    for lose in [vanished, emptied, hidden] {
        let place = Place::indexed();
        lose(&place);
        place.write("other/cheese.md", "# Cheese\n\nCheese is milk.\n");
        let model = tiny_model();
        for roots in [&["notes"][..], &["other", "notes"]] {
            let index = [&["index", "--model", &model], roots].concat();
            for more in [&[][..], &["--dry-run"]] {
                place.run(&[&index[..], more].concat()).fails(3, &["notes", "3 documents", "--allow-empty"]);
            }
        }
        place.write("cento.toml", "[index]\nallow-empty = true\n");
        place.run(&["config", "check"]).fails(2, &["index.allow-empty"]);
        std::fs::remove_file(place.path("cento.toml")).unwrap();
        assert_eq!(ids(&place).len(), 3);
        assert_eq!(counts(&place.index(&["notes", "--allow-empty", "--dry-run"])), [0, 0, 0, 3]);
        assert_eq!(counts(&place.index(&["notes", "--allow-empty"])), [0, 0, 0, 3]);
        assert_eq!(place.json(&["status"])["n_documents"], 0);
        assert_eq!(counts(&place.index(&["other"])), [1, 0, 0, 0]);
        assert_eq!(ids(&place), ["other/cheese.md"]);
        place.run(&["index", "--model", &model, "notes", "--allow-empty"]).fails(3, &["notes"]);
    }
}

#[test]
fn a_mistyped_root_is_not_a_vanished_one() {
    let place = Place::indexed();
    for path in ["nots", "elsewhere/notes", "notes=nots"] {
        let ran = place.run(&["index", "--model", &tiny_model(), path, "--allow-empty"]);
        ran.fails(3, &[path.trim_start_matches("notes="), "No such file"]);
    }
    assert_eq!(ids(&place).len(), 3);
}

#[test]
fn a_folder_that_moved_is_still_the_same_root() {
    let place = Place::indexed();
    std::fs::create_dir(place.path("moved")).unwrap();
    std::fs::rename(place.path("notes"), place.path("moved/notes")).unwrap();
    assert_eq!(counts(&place.index(&["moved/notes"])), [0, 0, 3, 0]);
}

#[test]
fn to_remove_more_than_half_of_many_documents_wants_a_word() {
    let place = Place::new();
    for n in 0..20 {
        place.write(&format!("notes/{n:02}.md"), format!("# Note {n}\n\nIt speaks of {n} stones.\n"));
    }
    place.write("other/cheese.md", "# Cheese\n\nCheese is milk.\n");
    place.index(&["notes", "other"]);
    let remove = |range: std::ops::Range<usize>| {
        range.for_each(|n| std::fs::remove_file(place.path(&format!("notes/{n:02}.md"))).unwrap());
    };
    remove(0..10);
    assert_eq!(counts(&place.index(&["notes", "--dry-run"])), [0, 0, 10, 10], "half is not more than half");
    remove(10..11);
    let model = tiny_model();
    let index = ["index", "--model", &model, "notes"];
    for more in [&[][..], &["--dry-run"]] {
        place.run(&[&index[..], more].concat()).fails(3, &["11 of the 20", "notes/00.md", "--allow-empty"]);
    }
    assert_eq!(place.json(&["status"])["n_documents"], 21);
    assert_eq!(counts(&place.index(&["notes", "--allow-empty"])), [0, 0, 9, 11]);
    remove(11..19);
    assert_eq!(counts(&place.index(&["notes"])), [0, 0, 1, 8], "a few files are a person's work");
}
