//! Collections that others made, with links, pipes and names that lead out of them: nothing outside is read, written or
//! removed.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Place;
use crate::{At, Error, OsFs, compact, create_snapshot, delete, describe, doctor, repair};
use cento_collection::format::manifest::Manifest;

const TIDES: &str = "# Tides\n\nThe moon pulls the sea.\n";
const BREAD: &str = "# Bread\n\nBread is flour and water.\n";

/// A place with a home folder beside the collection, which is to stay as it is.
struct Clone {
    place: Place,
    home: BTreeMap<PathBuf, String>,
}

impl Clone {
    fn new() -> Self {
        let place = Place::new();
        place.write("tides.md", TIDES);
        let home = place.folder.path().join("home");
        std::fs::create_dir_all(home.join("letters")).unwrap();
        std::fs::write(home.join("precious"), "years of work").unwrap();
        std::fs::write(home.join("letters/1"), "dear reader").unwrap();
        let home = files(&home);
        Self { place, home }
    }

    /// One with a collection of two generations, the second with tombstones and a segment of two documents.
    fn indexed() -> Self {
        let clone = Self::new();
        clone.place.write("bread.md", BREAD);
        clone.place.index();
        clone.place.write("bread.md", "# Bread\n\nBread is rye.\n");
        clone.place.write("cheese.md", "# Cheese\n\nCheese is milk.\n");
        clone.place.index();
        clone
    }

    fn home(&self) -> PathBuf {
        self.place.folder.path().join("home")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.collection().join(name)
    }

    /// Puts a link to what lies at home in the place of an entry of the collection.
    fn link(&self, name: &str, target: &str) {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        if path.is_dir() {
            std::fs::remove_dir_all(&path).unwrap();
        } else if path.exists() {
            std::fs::remove_file(&path).unwrap();
        }
        symlink(self.home().join(target), path).unwrap();
    }

    fn fifo(&self, name: &str) {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    fn index(&self) -> Result<Vec<String>, Error> {
        self.place.index_with(&self.place.options(), &OsFs).map(|report| report.notes)
    }

    /// Indexes, and garbage collection has nothing to say.
    #[track_caller]
    fn index_all(&self) {
        let notes = self.index().unwrap();
        assert!(!notes.iter().any(|note| note.contains("was not removed")), "{notes:?}");
    }

    #[track_caller]
    fn check_home(&self) {
        assert_eq!(files(&self.home()), self.home, "nothing at home has changed");
    }

    /// Every way to write is refused with these words, and changes nothing at home.
    #[track_caller]
    fn refuses_writers(&self, words: &[&str]) {
        let folder = self.place.collection();
        self.place.write("more.md", "# More\n\nMore words.\n");
        self.refused(self.index().map(drop), words);
        self.refused(delete(&folder, &["notes/tides.md".to_owned()], &OsFs).map(drop), words);
        self.refused(compact(&folder, &Default::default(), &OsFs, &mut |_| {}).map(drop), words);
    }

    #[track_caller]
    fn refused(&self, ended: Result<(), Error>, words: &[&str]) {
        let error = describe(&ended.expect_err("it is refused"));
        words.iter().for_each(|word| assert!(error.contains(word), "{word:?}: {error}"));
        self.check_home();
    }
}

/// The files below a folder, with their texts; a link is not followed.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.append(&mut self::files(&path));
        } else {
            files.insert(path.clone(), String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned());
        }
    }
    files
}

#[test]
fn a_clone_that_is_nothing_but_a_link_to_the_segments_does_not_empty_what_it_leads_to() {
    let clone = Clone::new();
    std::fs::create_dir(clone.place.collection()).unwrap();
    symlink("../home", clone.at("segments")).unwrap();
    clone.refused(clone.index().map(drop), &["segments is a link to ../home", "remove the link"]);
    assert!(!clone.at("manifest.json").exists());
}

#[test]
fn a_collection_that_is_a_link_is_refused_with_its_target_and_the_way_out() {
    let clone = Clone::indexed();
    let elsewhere = clone.place.folder.path().join("elsewhere");
    std::fs::rename(clone.place.collection(), &elsewhere).unwrap();
    symlink("elsewhere", clone.place.collection()).unwrap();
    let words = ["collection", "is a link to elsewhere", "name that folder itself"];
    clone.refuses_writers(&words);
    clone.refused(clone.place.open(At::Current).map(drop), &words);
    clone.refused(doctor(&clone.place.collection().join("")).map(drop).map_err(crate::Error::from), &words);
    crate::Searcher::open(elsewhere, Default::default()).unwrap();
}

#[test]
fn links_in_the_place_of_folders_are_refused() {
    for name in ["manifests", "segments", "deletes", "pins", "snapshots", "quarantine"] {
        let clone = Clone::new();
        clone.link(name, "letters");
        clone.refused(clone.index().map(drop), &[name, "is a link to", "home/letters"]);
    }
    for name in ["segments", "deletes", "segments/1-0", "segments/1-0/lexical"] {
        let clone = Clone::indexed();
        clone.link(name, "letters");
        clone.refuses_writers(&[name, "is a link to", "home/letters"]);
        clone.refused(clone.place.open(At::Current).map(drop), &[name, "is a link to", "home/letters"]);
        let _ = repair(&clone.place.collection(), &Default::default(), &OsFs, &mut |_| {});
        clone.check_home();
    }
    for name in ["snapshots", "pins", "manifests"] {
        let clone = Clone::indexed();
        clone.link(name, "letters");
        let _ = create_snapshot(&clone.place.collection(), "kept", &OsFs);
        clone.place.write("more.md", "# More\n\nMore words.\n");
        let _ = clone.index();
        clone.check_home();
    }
}

#[test]
fn links_in_the_place_of_files_that_are_made_are_replaced_and_not_followed() {
    for name in ["manifest.json.tmp", "manifests/1.json.tmp", "manifests/1.json", "pins/1", "segments/1-0"] {
        let clone = Clone::new();
        clone.link(name, if name == "segments/1-0" { "letters" } else { "precious" });
        clone.index_all();
        clone.check_home();
        assert!(doctor(&clone.place.collection()).unwrap().is_healthy(), "{name}");
    }
    for name in ["manifest.json.tmp", "manifests/3.json.tmp", "manifests/3.json", "pins/3", "deletes/3-2-0"] {
        let clone = Clone::indexed();
        clone.link(name, "precious");
        clone.place.write("bread.md", BREAD);
        clone.index_all();
        clone.check_home();
        assert!(doctor(&clone.place.collection()).unwrap().is_healthy(), "{name}");
    }
}

#[test]
fn links_and_pipes_in_the_place_of_files_that_are_read_are_refused_and_do_not_block() {
    let files = ["manifest.json", "segments/1-0/chunks.table", "segments/1-0/lexical/lengths", "deletes/2-1-0"];
    for name in files {
        let clone = Clone::indexed();
        std::fs::copy(clone.at(name), clone.home().join("copy")).unwrap();
        let clone = Clone { home: self::files(&clone.home()), ..clone };
        clone.link(name, "copy");
        clone.refused(clone.place.open(At::Current).map(drop), &[name, "is a link to", "home/copy"]);
        clone.refuses_writers(&[name, "is a link to", "home/copy"]);
        clone.fifo(name);
        clone.refused(clone.place.open(At::Current).map(drop), &[name, "no regular file"]);
        clone.refuses_writers(&[name, "no regular file"]);
    }
    let clone = Clone::indexed();
    create_snapshot(&clone.place.collection(), "kept", &OsFs).unwrap();
    let kept = || clone.place.open(At::Snapshot("kept".to_owned())).map(drop);
    clone.link("snapshots/kept.json", "precious");
    clone.refused(kept(), &["snapshots/kept.json", "is a link to"]);
    clone.fifo("snapshots/kept.json");
    clone.refused(kept(), &["snapshots/kept.json", "no regular file"]);
    for plant in [|clone: &Clone| clone.link("LOCK", "precious"), |clone: &Clone| clone.fifo("LOCK")] {
        let clone = Clone::indexed();
        plant(&clone);
        clone.refuses_writers(&["LOCK"]);
    }
    let clone = Clone::indexed();
    clone.fifo("pins/2");
    assert!(!clone.place.searcher().is_pinned());
}

#[test]
fn a_manifest_that_names_what_cento_does_not_is_corrupt() {
    for name in ["../../home", "/etc", "1-0/../1-0", "01-0", "1", ""] {
        let quoted = format!("{name:?}");
        let clone = Clone::indexed();
        let manifest = Manifest::read(&clone.place.collection()).unwrap();
        let (mut segment, mut tombstones) = (manifest.clone(), manifest.clone());
        segment.segments[0].name = name.to_owned();
        tombstones.segments[0].deletes = Some(name.to_owned());
        for hostile in [segment, tombstones] {
            std::fs::write(clone.at("manifest.json"), hostile.seal()).unwrap();
            let words = ["manifest.json", "corrupt", quoted.as_str()];
            clone.refused(clone.place.open(At::Current).map(drop), &words);
            clone.refuses_writers(&words);
        }
        repair(&clone.place.collection(), &Default::default(), &OsFs, &mut |_| {}).unwrap();
        assert_eq!(Manifest::read(&clone.place.collection()).unwrap(), manifest, "its copy takes its place");
        clone.check_home();
    }
}

#[test]
fn garbage_is_what_has_a_name_that_cento_gives_and_a_link_goes_without_its_target() {
    let clone = Clone::indexed();
    let strange =
        ["segments/mine/work", "deletes/notes.txt", "manifests/read.me", "pins/07", "pins/me", "snapshots/a b.json"];
    for name in strange {
        std::fs::create_dir_all(clone.at(name).parent().unwrap()).unwrap();
        std::fs::write(clone.at(name), "mine").unwrap();
    }
    clone.link("segments/9-9", "letters");
    clone.link("segments/9-8/lexical", "letters");
    clone.link("deletes/9-9-9", "precious");
    clone.link("manifests/9.json", "precious");
    clone.place.write("more.md", "# More\n\nMore words.\n");
    clone.index_all();
    clone.check_home();
    strange.iter().for_each(|name| assert_eq!(std::fs::read_to_string(clone.at(name)).unwrap(), "mine", "{name}"));
    for name in ["segments/9-9", "segments/9-8", "deletes/9-9-9", "manifests/9.json"] {
        assert!(clone.at(name).symlink_metadata().is_err(), "{name} is garbage");
    }
    let remarks = doctor(&clone.place.collection()).unwrap().remarks;
    assert_eq!(remarks, ["segments/mine is no part of the collection"]);
}

#[test]
fn a_folder_that_cento_did_not_make_is_no_collection() {
    for name in ["note", "segments/mine/work", "segments/01-0/work", "deletes/1", "pins/me", "manifests/read.me"] {
        let clone = Clone::new();
        std::fs::create_dir_all(clone.at(name).parent().unwrap()).unwrap();
        std::fs::write(clone.at(name), "mine").unwrap();
        clone.refused(clone.index().map(drop), &["is not empty and holds no collection"]);
        assert_eq!(std::fs::read_to_string(clone.at(name)).unwrap(), "mine", "{name}");
    }
}

#[test]
fn what_a_killed_run_left_is_written_over() {
    let clone = Clone::new();
    for name in
        ["LOCK", "manifest.json.tmp", "manifests/1.json", "manifests/1.json.tmp", "pins/1", "segments/1-0/chunks.table"]
    {
        std::fs::create_dir_all(clone.at(name).parent().unwrap()).unwrap();
        std::fs::write(clone.at(name), "cut sho").unwrap();
    }
    clone.index_all();
    let diagnosis = doctor(&clone.place.collection()).unwrap();
    assert!(diagnosis.is_healthy() && diagnosis.remarks.is_empty(), "{diagnosis:?}");
}

#[test]
fn what_stands_in_the_place_of_a_pin_keeps_no_garbage() {
    let plants: [fn(&Clone); 3] = [
        |clone| clone.fifo("pins/1"),
        |clone| clone.link("pins/1", "precious"),
        |clone| drop(std::fs::write(clone.at("pins/1"), "of a process that is no more")),
    ];
    for plant in plants {
        let clone = Clone::indexed();
        plant(&clone);
        for n in 0..2 {
            clone.place.write("more.md", &format!("# More {n}\n"));
            clone.index_all();
        }
        clone.place.compact(crate::Merge::All);
        clone.check_home();
        assert!(!clone.at("manifests/1.json").exists() && !clone.at("segments/1-0").exists());
    }
}

#[test]
fn what_is_made_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;

    let clone = Clone::new();
    let collection = clone.place.folder.path().join("new/collection");
    let cache = clone.place.folder.path().join("cache");
    let options = crate::IndexOptions {
        cache: Some(crate::CacheOptions { folder: cache.clone(), max_bytes: 1 << 30 }),
        ..clone.place.options()
    };
    super::index_notes(&clone.place.notes(), &collection, &options, &OsFs).unwrap();
    create_snapshot(&collection, "kept", &OsFs).unwrap();
    clone.place.write("tides.md", "# Tides\n");
    super::index_notes(&clone.place.notes(), &collection, &options, &OsFs).unwrap();
    let mut folders = vec![clone.place.folder.path().join("new"), cache];
    let mut n_files = 0;
    while let Some(folder) = folders.pop() {
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            n_files += 1;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
        }
    }
    assert!(n_files > 20, "{n_files}");
}
