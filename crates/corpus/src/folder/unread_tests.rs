//! What a walk says of files and folders that the system does not let be read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use super::*;

fn root_of(folder: &tempfile::TempDir, files: &[&str]) -> Root {
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    Root { label: "r".into(), path: folder.path().into() }
}

fn origins(walk: &Walk) -> (Vec<&str>, Vec<&str>) {
    let files = walk.files.iter().map(|file| file.origin.as_str()).collect();
    (files, walk.unread.iter().map(|unread| unread.origin.as_str()).collect())
}

#[test]
fn an_error_of_the_walk_names_the_folder_of_which_nothing_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let root = root_of(&folder, &["a.md"]);
    let base = fs::canonicalize(folder.path()).unwrap();
    let failed = |code: i32| ignore::Error::Io(io::Error::from_raw_os_error(code));
    let at = |path: PathBuf, code| {
        let err = Box::new(ignore::Error::WithDepth { depth: 1, err: Box::new(failed(code)) });
        Err(ignore::Error::WithPath { path, err })
    };
    let broken = [at(base.join("disk"), 5), at(base.join("share/x.md"), 116), Err(failed(24))];
    let mut walk = Walk::default();
    let listing = list(WalkBuilder::new(&base).build().chain(broken), &base, &root, &mut walk);
    assert_eq!(listing.files.keys().collect::<Vec<_>>(), ["a.md"]);
    assert_eq!(origins(&walk).1, ["r/disk", "r/share/x.md", "r"], "a listing that broke off may have been any");
    assert_eq!(walk.unread[0].path, folder.path().join("disk").display().to_string());
    assert!(walk.unread[0].reason.contains("os error 5"), "{:?}", walk.unread[0]);
    assert!(walk.skipped.is_empty());
}

/// Moves the root under folders of such names that `relative` in it has a path of `n_bytes`.
#[cfg(target_os = "linux")]
fn moved_down(from: &Path, to: &Path, relative: &str, n_bytes: usize) -> PathBuf {
    let mut n_missing = n_bytes - to.as_os_str().len() - relative.len() - "/r/".len();
    let mut outer = to.to_path_buf();
    while n_missing > 0 {
        let n = n_missing.min(if n_missing < 300 { n_missing } else { 200 });
        let n = if n > 255 { n / 2 } else { n };
        outer.push("o".repeat(n - 1));
        n_missing -= n;
    }
    fs::create_dir_all(&outer).unwrap();
    let moved = outer.join("r");
    fs::rename(from, &moved).unwrap();
    moved
}

#[cfg(target_os = "linux")]
#[test]
fn paths_that_the_system_finds_too_long_are_unread_and_the_rest_is_read() {
    let deep = ["d".repeat(250), "e".repeat(250), "f".repeat(250)].join("/");
    let file = format!("{deep}/{}.md", "g".repeat(200));
    // Too long is once the folder's path, once only that of the file in it.
    for relative in [&deep, &file] {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        root_of(&inside, &["r/a.md", &format!("r/{file}")]);
        let moved = moved_down(&inside.path().join("r"), outside.path(), relative, 4100);
        let root = Root { label: "r".into(), path: moved };
        let walk = walk(&root, &ReadOptions::default()).unwrap();
        assert_eq!(origins(&walk), (vec!["r/a.md"], vec![format!("r/{relative}").as_str()]));
        assert!(walk.unread[0].reason.starts_with("File name too long"), "{:?}", walk.unread);
    }
}

#[cfg(unix)]
#[test]
fn where_ignore_rules_cannot_be_read_nothing_is() {
    for rules in unread::IGNORE_FILES {
        let folder = tempfile::tempdir().unwrap();
        let root = root_of(&folder, &["a.md", "sub/b.md", "sub/more/c.md", "submarine.md"]);
        std::os::unix::fs::symlink(rules, folder.path().join("sub").join(rules)).unwrap(); // a link to itself
        let found = walk(&root, &ReadOptions::default()).unwrap();
        assert_eq!(origins(&found), (vec!["r/a.md", "r/submarine.md"], vec!["r/sub"]));
        assert!(found.unread[0].path.ends_with(rules) && found.unread[0].reason.contains("not known"));
        std::os::unix::fs::symlink(rules, folder.path().join(rules)).unwrap();
        let nothing = walk(&root, &ReadOptions::default()).unwrap_err();
        assert!(matches!(nothing, Error::NothingRead { .. }) && nothing.to_string().contains(rules), "{nothing}");
    }
}

#[test]
fn a_file_that_holds_no_text_now_is_told_from_one_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let root = root_of(&folder, &["a.md", "d.png"]);
    fs::write(folder.path().join("b.md"), "b\0").unwrap();
    fs::write(folder.path().join("c.md"), "long").unwrap();
    let walk = walk(&root, &ReadOptions { max_file_bytes: 3, ..ReadOptions::default() }).unwrap();
    assert_eq!((walk.no_text, walk.skipped.len()), (vec!["r/b.md".to_owned(), "r/c.md".to_owned()], 3));
}

#[test]
fn a_place_lies_in_itself_and_in_the_folders_above_it() {
    let places = ["r/sub".to_owned()].into();
    for (origin, lies) in [("r/sub", true), ("r/sub/x/y.md", true), ("r/submarine.md", false), ("r", false)] {
        assert_eq!(lies_in(origin, &places), lies, "{origin}");
    }
}
