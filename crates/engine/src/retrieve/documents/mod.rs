//! Documents of a collection by id or file, and the bytes that a citation names.

mod citation;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use cento_assembly::Citation;
use cento_collection::format::losses::Stale;
use cento_corpus::{Format, own_id};

use crate::error::{Error, Result};
use crate::retrieve::searcher::{Names, Searcher};
use crate::source::documents::{DocumentSection, Excerpt, LocatedDocument, Part, Sought};
use crate::source::scope::Wanted;
use citation::readings;

/// Names that the error for an ambiguous name lists at most.
const NAMED_MAX: usize = 5;

/// Where a cited text stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CitedPlace {
    /// `docs/a.md:12-40` where the lines of the file are known, else `docs/a.html bytes 10-20`.
    pub words: String,
    /// The file, if its root is known.
    pub file: Option<PathBuf>,
}

impl Searcher {
    /// Opens a citation: a document, a file or one of their parts, in any of the words that marks and
    /// [`Searcher::place`] use: `DOC`, `DOC#chunk`, `DOC:from-to` (lines), `DOC bytes from-to`. DOC is the id of a
    /// document, the own id of a record of JSONL that one file alone has, the path of an indexed file, or the end of a
    /// path if only one file has it. An id that holds `#` or `:` itself is tried first as it stands.
    ///
    /// # Errors
    /// [`Error::UnknownDocument`], [`Error::AmbiguousName`] and [`Error::OutOfRange`].
    pub fn get(&self, citation: &str) -> Result<Excerpt> {
        let excerpt = self.excerpt(citation)?;
        let is_older = |stale: &&Stale| stale.documents.binary_search(&excerpt.document).is_ok();
        let warnings = self.manifest().stale.iter().filter(is_older).map(Stale::warning).collect();
        Ok(Excerpt { warnings, ..excerpt })
    }

    fn excerpt(&self, citation: &str) -> Result<Excerpt> {
        let readings = readings(citation);
        for (id, part) in &readings {
            if let Some(excerpt) = self.source.excerpt(id, part)? {
                return Ok(excerpt);
            }
        }
        let names: Vec<String> = readings.iter().map(|(name, _)| (*name).to_owned()).collect();
        let records = self.of_records(&names)?;
        for (name, part) in &readings {
            let Some(id) = records.get(*name) else { continue };
            if let Some(excerpt) = self.source.excerpt(id, part)? {
                return Ok(excerpt);
            }
        }
        for (name, part) in &readings {
            let Some(document) = self.find_in_file(name, part)? else { continue };
            // A line of a file with a document a line names the document, not a part of it.
            let is_line = document.format == Some(Format::Jsonl) && matches!(part, Part::Lines(_));
            let part = if is_line { &Part::Whole } else { part };
            if let Some(excerpt) = self.source.excerpt(&document.id, part)? {
                return Ok(excerpt);
            }
        }
        Err(self.unknown(readings.last().map_or(citation, |(name, _)| name))?)
    }

    /// The sections of a document, in the order of its text.
    ///
    /// # Errors
    /// [`Error::UnknownDocument`].
    pub fn sections(&self, id: &str) -> Result<Vec<DocumentSection>> {
        match self.source.sections(id)? {
            Some(sections) => Ok(sections),
            None => Err(self.unknown(id)?),
        }
    }

    /// Says where a cited text stands, in words that [`Searcher::get`] takes.
    ///
    /// # Errors
    /// If the citation's document is not in this generation.
    pub fn place(&self, citation: &Citation) -> Result<CitedPlace> {
        let mut located = self.source.located(&Sought::Id(&citation.document))?;
        let Some(LocatedDocument { origin, format, is_source, .. }) = located.pop() else {
            return Err(Error::UnknownDocument { id: citation.document.clone(), nearest: None });
        };
        let (label, rest) = origin.split_once('/').unwrap_or((&origin, ""));
        let file = self.manifest().roots.get(label).map(|root| within(root, rest));
        let words = match &citation.anchor.line {
            Some(lines) if format == Some(Format::Jsonl) => format!("{origin}:{lines}"),
            Some(lines) if is_source => format!("{}:{lines}", citation.document),
            Some(_) | None => format!("{} bytes {}-{}", citation.document, citation.span.start, citation.span.end),
        };
        Ok(CitedPlace { words, file })
    }

    /// The documents that records of JSONL are, by the records' own ids: judgements and topics name them so. An id that
    /// records of several files have, or that is a document's, is not among them.
    ///
    /// # Errors
    /// The collection cannot be read.
    pub fn of_records(&self, names: &[String]) -> Result<HashMap<String, String>> {
        let mut documents: HashMap<String, Option<String>> = HashMap::new();
        let names: HashSet<&str> = names.iter().map(String::as_str).collect();
        if names.is_empty() {
            return Ok(HashMap::new());
        }
        for located in self.source.located(&Sought::Records(&names))? {
            let Some(own) = own_id(&located.id, &located.origin) else { continue };
            let entry = documents.entry(own.to_owned());
            entry.and_modify(|twice| *twice = None).or_insert(Some(located.id.clone()));
        }
        let one = |(own, id): (String, Option<String>)| id.filter(|id| *id != own).map(|id| (own, id));
        let known: Vec<(String, String)> = documents.into_iter().filter_map(one).collect();
        let asked: Vec<(String, Option<u32>)> = known.iter().map(|(own, _)| (own.clone(), None)).collect();
        let documents = self.source.find(&asked)?;
        Ok(known
            .into_iter()
            .zip(documents)
            .filter(|(_, document)| document.is_none())
            .map(|(known, _)| known)
            .collect())
    }

    /// Those of some names that are neither ids of documents nor of records of JSONL that one file has.
    ///
    /// # Errors
    /// The collection cannot be read.
    pub fn absent(&self, names: &[String]) -> Result<HashSet<String>> {
        let unknown = self.source.scope(Wanted::Documents(names))?.unknown;
        let records = self.of_records(&unknown)?;
        Ok(unknown.into_iter().filter(|name| !records.contains_key(name)).collect())
    }

    /// The document of a file, by the file's path or by the end of it, if only one file has that end.
    fn find_in_file(&self, name: &str, part: &Part) -> Result<Option<LocatedDocument>> {
        let names = self.names_of_path(name);
        let end = format!("/{}", name.trim_start_matches("./"));
        let sought = Sought::File { names: &names, end: Some(end.as_str()).filter(|end| end.len() > 1) };
        let mut documents = self.source.located(&sought)?;
        if documents.iter().any(|document| names.contains(&document.origin)) {
            documents.retain(|document| names.contains(&document.origin));
        }
        documents.sort_unstable();
        let ambiguous = |candidates: Vec<String>| Error::AmbiguousName { name: name.to_owned(), candidates };
        let mut files: Vec<&String> = documents.iter().map(|document| &document.origin).collect();
        files.dedup();
        if files.len() > 1 {
            return Err(ambiguous(files.into_iter().take(NAMED_MAX).cloned().collect()));
        }
        match (documents.as_slice(), part) {
            ([], _) => Ok(None),
            ([only], _) => Ok(Some(only.clone())),
            (several @ [first, ..], Part::Lines(lines)) => {
                let on_line = several.iter().find(|document| document.first_line == Some(*lines.start()));
                on_line.map(|document| Some(document.clone())).ok_or_else(|| Error::OutOfRange {
                    id: first.origin.clone(),
                    what: format!("line {}", lines.start()),
                    has: format!("{} documents on other lines", several.len()),
                })
            }
            (several, Part::Whole | Part::Chunk(_) | Part::Bytes(_)) => {
                Err(ambiguous(several.iter().take(NAMED_MAX).map(|document| document.id.clone()).collect()))
            }
        }
    }

    /// A name as that of a file in the collection: as it stands, and as a path of this machine that lies in an indexed
    /// root.
    fn names_of_path(&self, name: &str) -> Vec<String> {
        let mut names = vec![name.to_owned()];
        if self.options.names == Names::Alone {
            return names;
        }
        // Roots are recorded without links, so a path is also tried without them; one that is gone is taken by its
        // words.
        let paths = [std::path::absolute(name).ok(), std::fs::canonicalize(name).ok()];
        for path in paths.iter().flatten() {
            for (label, root) in &self.manifest().roots {
                let Ok(rest) = path.strip_prefix(root) else { continue };
                let parts = rest.components().map(|part| part.as_os_str().to_string_lossy());
                names.push(std::iter::once(label.into()).chain(parts).collect::<Vec<_>>().join("/"));
            }
        }
        names
    }

    /// The error for an id that is not there.
    pub(crate) fn unknown(&self, id: &str) -> Result<Error> {
        let nearest = self.source.nearest_id(id)?.map(|(_, nearest)| nearest);
        Ok(Error::UnknownDocument { nearest, id: id.to_owned() })
    }
}

/// A file in its root; of a root that is a file, the root.
fn within(root: &Path, rest: &str) -> PathBuf {
    if rest.is_empty() { root.to_owned() } else { root.join(rest) }
}
