//! Folders: which files of a root are read, and why the others are not.
//!
//! `.gitignore` and `.centoignore` inside the root are obeyed, with or without a git repository; nothing outside the
//! root has a say, so a folder gives the same files on every machine. Hidden files are passed over, and so are
//! collections of Cento. Links are never followed. The files come sorted by origin, whatever order the system lists
//! them in. What the system does not let be read is kept apart from what is passed over: nobody knows what it holds.

mod unread;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::{DirEntry, WalkBuilder};
use serde::{Deserialize, Serialize};

pub use self::unread::Unread;
use self::unread::{lies_in, unread_rules};
use crate::error::{Error, Result};
use crate::format::{Format, ReadAs, Reading, unknown_type};
use crate::read::{ReadOptions, is_utf16};

/// A file is binary if there is a zero byte in so many bytes from its start.
const BINARY_PROBE_BYTES: u64 = 8 * 1024;

/// Folders in every collection.
const COLLECTION_FOLDERS: [&str; 2] = ["manifests", "segments"];

/// Files in a collection: one that is being made has the second alone, one that was copied may have the first alone.
const COLLECTION_FILES: [&str; 2] = ["manifest.json", "LOCK"];

/// Why it is passed over.
const COLLECTION_REASON: &str = "a collection of Cento: what is in it was made from documents";

/// A file or folder to read, and the name its documents' ids begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// First part of the ids of the documents under it.
    pub label: String,
    /// The file or folder.
    pub path: PathBuf,
}

impl Root {
    /// Reads `PATH` or `LABEL=PATH`; without a label, it is the name of the file or folder that the path leads to.
    ///
    /// A path that exists as written is a path, even with `=` in it. One that does not exist is a root too: whether it
    /// has vanished or was never there, [`walk`] and its caller know.
    ///
    /// # Errors
    /// Neither a label nor a name is given.
    pub fn parse(root: &str) -> Result<Self> {
        if let Some((label, path)) = root.split_once('=').filter(|_| !Path::new(root).exists()) {
            let label = label.trim_matches('/');
            if label.is_empty() {
                return Err(Error::NoLabel { root: root.into() });
            }
            return Ok(Self { label: label.into(), path: path.into() });
        }
        let path = PathBuf::from(root);
        let canonical = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let label = canonical.file_name().and_then(|name| name.to_str());
        let label = label.ok_or_else(|| Error::NoLabel { root: root.into() })?.to_string();
        Ok(Self { label, path })
    }
}

/// A file that will be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Where it is.
    pub path: PathBuf,
    /// Root label/relative path, always with `/`; the label alone where the root is a file.
    pub origin: String,
    /// Its format.
    pub format: Format,
    /// Its size when it was found.
    pub n_bytes: u64,
    /// The ids of its records, where it is JSONL.
    pub record_ids: RecordIds,
}

/// The ids that records of a JSONL file have in a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordIds {
    /// Their own: the file is the corpus of a BEIR folder, whose judgements name them.
    Own,
    /// That of the file, a slash, and their own: whatever else is indexed, nothing else is named so.
    UnderFile,
}

/// Files of a format that has no reader yet, and are read as plain text, markup and all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawText {
    /// Their extension.
    pub extension: &'static str,
    /// The first one's origin.
    pub first: String,
    /// The number of them.
    pub n_files: u64,
    /// The markup that stays in their text.
    pub remark: &'static str,
}

/// A file or folder that was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Where it is, as far as it can be written.
    pub path: String,
    /// Why, in words.
    pub reason: String,
}

/// The contents of a root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// Files to read, ascending by origin.
    pub files: Vec<FoundFile>,
    /// Files and folders passed over, ascending by path; what is hidden or ignored is not listed.
    pub skipped: Vec<Skipped>,
    /// Files and folders that could not be read, ascending by origin, one an origin. Where the ignore rules of a folder
    /// could not be read, none of its files is in `files`.
    pub unread: Vec<Unread>,
    /// Files read as plain text for want of a reader, ascending by extension.
    pub raw: Vec<RawText>,
    /// Origins of the skipped files that are of a format that is read, and hold no text now, or too much.
    pub no_text: Vec<String>,
}

/// Extensions of documents that are read as plain text until there is a reader for them: found by their words, with
/// what stands between these.
const RAW: [(&str, &str); 2] =
    [("mbox", "headers, encoded parts and attachments included"), ("tex", "LaTeX commands included")];

/// Why a file is not read.
enum Refusal {
    /// The system did not let it be read.
    Unread(String),
    /// It is binary or too large.
    NoText(String),
    /// It is of a kind that is never read.
    Kind(String),
}

/// The entries of a folder.
#[derive(Default)]
struct Listing {
    /// Where each file is, by its relative path.
    files: BTreeMap<String, PathBuf>,
    /// Relative paths.
    folders: BTreeSet<String>,
    /// Origins of the folders whose ignore rules could not be read.
    unruled: BTreeSet<String>,
}

/// Finds the files of `root` that are to be read.
///
/// A format other than `auto` is given to every file of unknown extension, and passes over those whose extension says
/// another; `text` reads every file as text. A folder that holds `corpus.jsonl` beside `queries.jsonl` or `qrels` is a
/// BEIR corpus: of it, that file alone is read.
///
/// # Errors
/// The root cannot be opened, or there is nothing in it to read ([`Error::NothingToRead`]), or what there is could not
/// be read ([`Error::NothingRead`]).
pub fn walk(root: &Root, options: &ReadOptions) -> Result<Walk> {
    let metadata = fs::metadata(&root.path).map_err(Error::io(&root.path))?;
    let mut walk = Walk::default();
    if metadata.is_dir() {
        walk_folder(root, options, &mut walk)?;
    } else {
        let format = match options.format {
            ReadAs::Auto => options.format_of_command(&root.path).or_else(|| Format::of_path(&root.path)),
            ReadAs::Beir => Some(Format::Jsonl),
            ReadAs::One(format) => Some(format),
        };
        let is_beir = options.format == ReadAs::Beir || format == Some(Format::Jsonl) && is_beir_corpus(&root.path);
        let record_ids = if is_beir { RecordIds::Own } else { RecordIds::UnderFile };
        walk.add(root.path.clone(), root.label.clone(), format, record_ids, options);
    }
    walk.files.sort_by(|a, b| a.origin.cmp(&b.origin));
    walk.skipped.sort_by(|a, b| (&a.path, &a.reason).cmp(&(&b.path, &b.reason)));
    walk.unread.sort();
    walk.unread.dedup_by(|a, b| a.origin == b.origin);
    walk.raw = raw_texts(&walk.files, options);
    if walk.files.is_empty() {
        return Err(walk.nothing(root, walk.why_nothing()));
    }
    Ok(walk)
}

fn walk_folder(root: &Root, options: &ReadOptions, walk: &mut Walk) -> Result<()> {
    let folder = fs::canonicalize(&root.path).map_err(Error::io(&root.path))?;
    if is_collection(&folder) {
        walk.skip(&root.path, COLLECTION_REASON.into());
        return Ok(());
    }
    let mut builder = WalkBuilder::new(&folder);
    builder.standard_filters(false).hidden(true).git_ignore(true).require_git(false).follow_links(false);
    builder.add_custom_ignore_filename(".centoignore");
    let collections = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&collections);
    builder.filter_entry(move |entry| {
        let is_collection = entry.file_type().is_some_and(|kind| kind.is_dir()) && is_collection(entry.path());
        if is_collection {
            found.lock().unwrap_or_else(PoisonError::into_inner).push(entry.path().to_owned());
        }
        !is_collection
    });
    let Listing { files, folders, unruled } = list(builder.build(), &folder, root, walk);
    for collection in collections.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let path = root.path.join(collection.strip_prefix(&folder).unwrap_or(Path::new("")));
        walk.skip(&path, COLLECTION_REASON.into());
    }
    let beir = beir_folders(&files, &folders);
    if options.format == ReadAs::Beir && beir.is_empty() && !files.contains_key("corpus.jsonl") {
        return Err(walk.nothing(root, "no corpus.jsonl in it".into()));
    }
    for (relative, path) in files {
        let origin = root.origin(&relative);
        if lies_in(&origin, &unruled) {
            continue;
        }
        if let Some(reason) = beir_reason(&relative, &beir) {
            walk.skip(&path, reason);
            continue;
        }
        match choose(&path, options) {
            Ok(format) => {
                let is_own = |prefix: &String| relative.strip_prefix(prefix.as_str()) == Some("corpus.jsonl");
                let is_beir = options.format == ReadAs::Beir || beir.iter().any(is_own);
                let record_ids = if is_beir { RecordIds::Own } else { RecordIds::UnderFile };
                walk.add(path, origin, format, record_ids, options);
            }
            Err(reason) => walk.skip(&path, reason),
        }
    }
    Ok(())
}

/// Tells whether this is the folder of a collection: it holds what no other has beside each other.
fn is_collection(path: &Path) -> bool {
    let has = |name: &&str| path.join(name).symlink_metadata().is_ok();
    COLLECTION_FOLDERS.iter().all(has) && COLLECTION_FILES.iter().any(has)
}

/// Sorts what the walk of a folder came across into files, folders, and what `walk` reports.
fn list(
    entries: impl Iterator<Item = Result<DirEntry, ignore::Error>>,
    folder: &Path,
    root: &Root,
    walk: &mut Walk,
) -> Listing {
    let mut listing = Listing::default();
    for entry in entries {
        let found = match &entry {
            Ok(entry) => entry.path(),
            Err(error) => unread::error_path(error).unwrap_or(folder),
        };
        let relative = found.strip_prefix(folder).unwrap_or(Path::new(""));
        let path = root.path.join(relative);
        let Some(relative) = slashed(relative) else {
            walk.skip(&path, "its name is not UTF-8; rename it".into());
            continue;
        };
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                walk.unread(&path, root.origin(&relative), unread::reason(&error));
                continue;
            }
        };
        if let Some(error) = entry.error() {
            walk.skip(entry.path(), format!("part of its ignore rules cannot be read: {error}"));
        }
        match entry.file_type() {
            Some(kind) if kind.is_symlink() => walk.skip(&path, link_reason(&entry, folder)),
            Some(kind) if kind.is_dir() => {
                if let Some((rules, error)) = unread_rules(entry.path()) {
                    listing.unruled.insert(root.origin(&relative));
                    let rules = path.join(rules.file_name().unwrap_or_default());
                    walk.unread(&rules, root.origin(&relative), format!("{error}; what it ignores is not known"));
                }
                listing.folders.insert(relative);
            }
            Some(kind) if kind.is_file() => {
                listing.files.insert(relative, path);
            }
            _ => walk.skip(&path, "not a regular file".into()),
        }
    }
    listing
}

impl Root {
    /// The origin of what lies at `relative` in the root.
    fn origin(&self, relative: &str) -> String {
        if relative.is_empty() { self.label.clone() } else { format!("{}/{relative}", self.label) }
    }
}

impl Walk {
    /// Lists a file, or the reason why it cannot be read; `format` is none where the extension is unknown.
    fn add(
        &mut self,
        path: PathBuf,
        origin: String,
        format: Option<Format>,
        record_ids: RecordIds,
        options: &ReadOptions,
    ) {
        match probe(&path, format, options) {
            Ok(n_bytes) => {
                let format = format.unwrap_or(Format::Text);
                self.files.push(FoundFile { path, origin, format, n_bytes, record_ids });
            }
            Err(Refusal::Unread(reason)) => self.unread(&path, origin, reason),
            Err(Refusal::NoText(reason)) => {
                self.skip(&path, reason);
                self.no_text.push(origin);
            }
            Err(Refusal::Kind(reason)) => self.skip(&path, reason),
        }
    }

    fn skip(&mut self, path: &Path, reason: String) {
        self.skipped.push(Skipped { path: path.display().to_string(), reason });
    }

    fn unread(&mut self, path: &Path, origin: String, reason: String) {
        self.unread.push(Unread { origin, path: path.display().to_string(), reason });
    }

    /// The error of a walk that found no file: what could not be read may hold some.
    fn nothing(&self, root: &Root, reason: String) -> Error {
        let path = root.path.clone();
        match self.unread.as_slice() {
            [] => Error::NothingToRead { path, reason },
            [first, rest @ ..] => {
                let n_more = if rest.is_empty() { String::new() } else { format!("; and {} more", rest.len()) };
                Error::NothingRead { path, reason: format!("{}: {}{n_more}", first.path, first.reason) }
            }
        }
    }

    fn why_nothing(&self) -> String {
        match self.skipped.as_slice() {
            [] => "it holds no files, or all are hidden or ignored".into(),
            [only] => format!("{}: {}", only.path, only.reason),
            [first, rest @ ..] => format!("{}: {}; and {} more were passed over", first.path, first.reason, rest.len()),
        }
    }
}

/// The size of a file that can be read, else why not.
fn probe(path: &Path, format: Option<Format>, options: &ReadOptions) -> Result<u64, Refusal> {
    if let Some(extension) = Format::unread_extension(path).filter(|_| format.is_none()) {
        return Err(Refusal::Kind(unknown_type(extension)));
    }
    let unread = |error: std::io::Error| Refusal::Unread(error.to_string());
    let metadata = fs::metadata(path).map_err(unread)?;
    if !metadata.is_file() {
        return Err(Refusal::Kind("not a regular file".into()));
    }
    let streamed = format.is_some_and(|format| format.reading() == Reading::Streamed);
    if !streamed && metadata.len() > options.max_file_bytes {
        let limit = options.max_file_bytes;
        return Err(Refusal::NoText(format!("too large: {} bytes, the limit is {limit}", metadata.len())));
    }
    if format.is_some_and(|format| format.reading() == Reading::Parsed) || options.command(path).is_some() {
        return Ok(metadata.len());
    }
    let mut start = Vec::new();
    File::open(path).and_then(|file| file.take(BINARY_PROBE_BYTES).read_to_end(&mut start)).map_err(unread)?;
    match start.iter().position(|&byte| byte == 0).filter(|_| !is_utf16(&start)) {
        Some(at) => Err(Refusal::NoText(format!("binary: zero byte at byte {at}"))),
        None => Ok(metadata.len()),
    }
}

/// The format of a file in a folder that is read as `asked`: none if unknown, else why it is passed over.
fn choose(path: &Path, options: &ReadOptions) -> Result<Option<Format>, String> {
    let known = Format::of_path(path);
    match options.format {
        ReadAs::Auto => Ok(options.format_of_command(path).or(known)),
        ReadAs::One(Format::Text) => Ok(Some(Format::Text)),
        ReadAs::Beir if path.file_name().is_some_and(|name| name == "corpus.jsonl") => Ok(Some(Format::Jsonl)),
        ReadAs::Beir => Err("not the corpus.jsonl of a BEIR folder".into()),
        ReadAs::One(asked) => match known {
            Some(known) if known != asked => Err(format!("its extension says {known}, and {asked} was asked for")),
            known => Ok(known.or(Some(asked).filter(|_| Format::unread_extension(path).is_none()))),
        },
    }
}

/// Says that a file is the corpus of a BEIR folder: its name, and what lies beside it.
fn is_beir_corpus(path: &Path) -> bool {
    let beside = |name: &str| path.with_file_name(name);
    path.file_name().is_some_and(|name| name == "corpus.jsonl")
        && (beside("queries.jsonl").is_file() || beside("qrels").is_dir())
}

/// The files that are read as text for want of a reader.
fn raw_texts(files: &[FoundFile], options: &ReadOptions) -> Vec<RawText> {
    let of = |(extension, remark)| {
        let is_one = |file: &&FoundFile| {
            file.format == Format::Text && file.path.extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
        };
        let mut found = files.iter().filter(is_one).filter(|file| options.command(&file.path).is_none());
        let first = found.next()?.origin.clone();
        Some(RawText { extension, first, n_files: 1 + found.count() as u64, remark })
    };
    RAW.into_iter().filter_map(of).collect()
}

/// Folders, as relative paths with a final `/` (the root: empty), that hold a BEIR corpus.
fn beir_folders(files: &BTreeMap<String, PathBuf>, folders: &BTreeSet<String>) -> Vec<String> {
    let corpora = files.keys().filter_map(|file| file.strip_suffix("corpus.jsonl"));
    let prefixes = corpora.filter(|prefix| prefix.is_empty() || prefix.ends_with('/'));
    let is_beir = |prefix: &&str| {
        files.contains_key(&format!("{prefix}queries.jsonl")) || folders.contains(&format!("{prefix}qrels"))
    };
    prefixes.filter(is_beir).map(str::to_string).collect()
}

/// Why a file of a BEIR folder is not read; none for its corpus and for files elsewhere.
fn beir_reason(relative: &str, beir: &[String]) -> Option<String> {
    let folder =
        beir.iter().filter(|folder| relative.starts_with(folder.as_str())).min_by_key(|folder| folder.len())?;
    let inside = &relative[folder.len()..];
    match inside {
        "corpus.jsonl" => None,
        _ if inside.starts_with("queries") => Some("BEIR queries, never indexed".into()),
        _ if inside.starts_with("qrels/") => Some("BEIR judgements, never indexed".into()),
        _ => Some("in a BEIR folder, of which corpus.jsonl alone is indexed".into()),
    }
}

fn link_reason(entry: &DirEntry, folder: &Path) -> String {
    match fs::canonicalize(entry.path()) {
        Ok(target) if target.starts_with(folder) => {
            format!("symlink, not followed, to {} in the same root", target.display())
        }
        Ok(target) => format!("symlink out of the root, to {}", target.display()),
        Err(error) => format!("symlink that leads nowhere: {error}"),
    }
}

/// A relative path with `/` between its parts; none if it is not UTF-8.
fn slashed(relative: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = relative.components().map(|part| part.as_os_str().to_str()).collect();
    parts.map(|parts| parts.join("/"))
}

#[cfg(test)]
mod unread_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let root = Root { label: "r".into(), path: folder.path().into() };
        (folder, root)
    }

    /// Walks `files`; compares `origin format` of those found, and `name: reason` of those skipped.
    #[track_caller]
    fn check(files: &[(&str, &str)], options: &ReadOptions, found: &[&str], skipped: &[&str]) {
        let (folder, root) = folder(files);
        let walk = walk(&root, options).unwrap();
        let files: Vec<String> = walk.files.iter().map(|file| format!("{} {}", file.origin, file.format)).collect();
        assert_eq!(files, found);
        let prefix = format!("{}/", folder.path().display());
        let reasons: Vec<String> = walk
            .skipped
            .iter()
            .map(|skipped| format!("{}: {}", skipped.path.replace(&prefix, ""), skipped.reason))
            .collect();
        assert_eq!(reasons, skipped);
    }

    #[test]
    fn files_are_sorted_and_their_format_is_their_extensions() {
        let files = [
            ("b/x.HTM", "x"),
            ("a.md", "x"),
            ("b.txt", "x"),
            ("b/y # & [é] %_.rs", "x"),
            ("noext", "x"),
            ("t.tsv", "x"),
            ("c.pdf", "%PDF"),
            ("c.png", "PNG"),
        ];
        check(
            &files,
            &ReadOptions::default(),
            &[
                "r/a.md md",
                "r/b.txt text",
                "r/b/x.HTM html",
                "r/b/y # & [é] %_.rs text",
                "r/c.pdf pdf",
                "r/noext text",
                "r/t.tsv csv",
            ],
            &["c.png: unknown type: .png files are not read"],
        );
    }

    #[test]
    fn ignored_and_hidden_files_are_passed_over() {
        let files = [
            (".gitignore", "*.log\n"),
            (".centoignore", "drafts/\n"),
            (".hidden.md", "x"),
            ("a.log", "x"),
            ("drafts/b.md", "x"),
            ("c.md", "x"),
        ];
        check(&files, &ReadOptions::default(), &["r/c.md md"], &[]);
    }

    #[test]
    fn binary_and_large_files_are_reported_with_their_numbers() {
        let options = ReadOptions { max_file_bytes: 5, ..ReadOptions::default() };
        check(
            &[("a.md", "123456"), ("b.txt", "a\0"), ("c.md", "12345"), ("d.jsonl", "1234567")],
            &options,
            &["r/c.md md", "r/d.jsonl jsonl"],
            &["a.md: too large: 6 bytes, the limit is 5", "b.txt: binary: zero byte at byte 1"],
        );
    }

    #[test]
    fn of_a_beir_folder_only_the_corpus_is_read() {
        let files = [
            ("x/corpus.jsonl", ""),
            ("x/queries.jsonl", ""),
            ("x/qrels/test.tsv", ""),
            ("x/more.md", ""),
            ("y/corpus.jsonl", ""),
            ("y/z.md", ""),
        ];
        check(
            &files,
            &ReadOptions::default(),
            &["r/x/corpus.jsonl jsonl", "r/y/corpus.jsonl jsonl", "r/y/z.md md"],
            &[
                "x/more.md: in a BEIR folder, of which corpus.jsonl alone is indexed",
                "x/qrels/test.tsv: BEIR judgements, never indexed",
                "x/queries.jsonl: BEIR queries, never indexed",
            ],
        );
    }

    #[test]
    fn records_of_a_beir_corpus_keep_their_ids_and_no_others() {
        let files = [
            ("x/corpus.jsonl", ""),
            ("x/queries.jsonl", ""),
            ("y/corpus.jsonl", ""),
            ("y/more/corpus.jsonl", ""),
            ("y/more/qrels/test.tsv", ""),
            ("z/rows.jsonl", ""),
        ];
        let (folder, root) = folder(&files);
        let own = |path: &str, format: ReadAs| {
            let options = ReadOptions { format, ..ReadOptions::default() };
            let root = Root { path: folder.path().join(path), ..root.clone() };
            let files = walk(&root, &options).unwrap().files;
            files.iter().map(|file| file.record_ids == RecordIds::Own).collect::<Vec<_>>()
        };
        assert_eq!(own("", ReadAs::Auto), [true, false, true, false]);
        assert_eq!(own("y", ReadAs::Auto), [false, true]);
        for (file, is_own) in [("x/corpus.jsonl", true), ("y/corpus.jsonl", false), ("z/rows.jsonl", false)] {
            assert_eq!(own(file, ReadAs::Auto), [is_own], "{file}");
        }
        assert_eq!(own("y/corpus.jsonl", ReadAs::Beir), [true]);
    }

    #[test]
    fn what_has_no_reader_yet_is_counted_by_its_format() {
        let files =
            [("a.mbox", "From x"), ("b/c.MBOX", "From x"), ("d.eml", "Subject: x"), ("e.txt", "x"), ("f.tex", "x")];
        let (_folder, root) = folder(&files);
        let raw = walk(&root, &ReadOptions::default()).unwrap().raw;
        let found: Vec<_> = raw.iter().map(|raw| (raw.extension, raw.first.as_str(), raw.n_files)).collect();
        assert_eq!(found, [("mbox", "r/a.mbox", 2), ("tex", "r/f.tex", 1)]);
    }

    #[test]
    fn utf_16_is_text() {
        let (folder, root) = folder(&[]);
        fs::write(folder.path().join("a.md"), b"\xff\xfe#\0 \0A\0").unwrap();
        fs::write(folder.path().join("b.md"), b"#\0 \0A\0").unwrap();
        let walk = walk(&root, &ReadOptions::default()).unwrap();
        assert_eq!((walk.files.len(), walk.skipped[0].reason.as_str()), (1, "binary: zero byte at byte 1"));
        let document = crate::read(&walk.files[0], &ReadOptions::default()).unwrap().next().unwrap().unwrap();
        assert_eq!((document.text.as_str(), document.title.as_str()), ("# A", "A"));
        assert_eq!((document.kind, document.warnings.len()), (crate::TextKind::Extracted, 1));
    }

    #[test]
    fn a_format_asked_for_passes_over_the_others() {
        let options = ReadOptions { format: ReadAs::One(Format::Markdown), ..ReadOptions::default() };
        check(
            &[("a.md", ""), ("b.csv", ""), ("c.unknown", ""), ("d.pdf", "")],
            &options,
            &["r/a.md md", "r/c.unknown md"],
            &[
                "b.csv: its extension says csv, and md was asked for",
                "d.pdf: its extension says pdf, and md was asked for",
            ],
        );
        let options = ReadOptions { format: ReadAs::Beir, ..ReadOptions::default() };
        check(
            &[("corpus.jsonl", ""), ("b.jsonl", "")],
            &options,
            &["r/corpus.jsonl jsonl"],
            &["b.jsonl: not the corpus.jsonl of a BEIR folder"],
        );
    }

    #[test]
    fn a_single_file_and_an_empty_folder() {
        let (folder, root) = folder(&[("a.md", "x"), ("sub/.keep", "")]);
        let single = Root::parse(folder.path().join("a.md").to_str().unwrap()).unwrap();
        assert_eq!(walk(&single, &ReadOptions::default()).unwrap().files[0].origin, "a.md");
        let empty = Root { label: "e".into(), path: root.path.join("sub") };
        let message = walk(&empty, &ReadOptions::default()).unwrap_err().to_string();
        assert!(message.contains("sub") && message.contains("no files"), "{message}");
    }

    #[test]
    fn labels() {
        let (folder, _) = folder(&[("a=b.md", "x"), ("docs/c.md", "x")]);
        let at = |path: &str| folder.path().join(path).display().to_string();
        assert_eq!(Root::parse(&at("docs/../docs")).unwrap().label, "docs");
        assert_eq!(
            Root::parse(&format!("guide={}", at("docs"))).unwrap(),
            Root { label: "guide".into(), path: at("docs").into() }
        );
        assert_eq!(Root::parse(&at("a=b.md")).unwrap().label, "a=b.md");
        let nowhere = Root::parse("/nowhere/at/all").unwrap();
        assert_eq!(nowhere.label, "all");
        assert!(matches!(walk(&nowhere, &ReadOptions::default()), Err(Error::Io { .. })));
        assert!(matches!(Root::parse("/"), Err(Error::NoLabel { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn links_odd_names_and_unreadable_files_are_reported() {
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::fs::symlink;
        let (folder, root) = folder(&[("a.md", "x")]);
        let (outside, _) = self::folder(&[("secret.md", "x")]);
        symlink(outside.path(), folder.path().join("out")).unwrap();
        symlink(folder.path().join("a.md"), folder.path().join("in.md")).unwrap();
        symlink("nowhere", folder.path().join("broken")).unwrap();
        fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"bad\xff.md")), "x").unwrap();
        let walk = walk(&root, &ReadOptions::default()).unwrap();
        assert_eq!(walk.files.len(), 1);
        let reasons: Vec<&str> = walk.skipped.iter().map(|skipped| skipped.reason.as_str()).collect();
        assert!(reasons.iter().any(|reason| reason.starts_with("symlink out of the root, to /")), "{reasons:?}");
        assert!(reasons.iter().any(|reason| reason.starts_with("symlink, not followed, to /")), "{reasons:?}");
        assert!(reasons.iter().any(|reason| reason.starts_with("symlink that leads nowhere")), "{reasons:?}");
        assert!(reasons.contains(&"its name is not UTF-8; rename it"), "{reasons:?}");
        assert_eq!(reasons.len(), 4);
    }
}
