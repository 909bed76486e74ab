//! Relevance judgements (qrels): which document answers which query, and how well.
//!
//! Source: the four columns of trec_eval, `query iter document grade`, split at white space, and BEIR's tab-separated
//! `query-id corpus-id score`, told apart by BEIR's header. Only BEIR's document ids may hold blanks.
//! Range: grades are integers; 0 is judged and not relevant, negative is judged as worse than that.
//! Cost: a string and a grade for each judgement.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::lines::{Fault, Lines, column_of};
use crate::run::column;

/// The judgements of a set of queries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Qrels {
    queries: BTreeMap<String, Judgements>,
}

/// The judged documents of one query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgements {
    /// Sorted by document id; no id is there twice.
    grades: Vec<(String, i32)>,
    /// Grades of the documents whose id is another in a run file (it has a blank or a percent code), under that one,
    /// sorted.
    written: Vec<(String, i32)>,
}

impl Qrels {
    /// Reads a file, a folder with one `*.tsv`, a BEIR folder with one `qrels/*.tsv`, or `-`, stdin.
    ///
    /// # Errors
    /// [`Error::Several`] when a folder holds more than one file of judgements, [`Error::Duplicate`] when a document is
    /// judged twice for a query, [`Error::Malformed`] for other columns or a grade that is no integer,
    /// [`Error::Empty`].
    pub fn read(path: &Path) -> Result<Self> {
        let path = if path.is_dir() { Cow::Owned(only_file(path)?) } else { Cow::Borrowed(path) };
        let mut lines = Lines::open(&path)?;
        let mut rows = BTreeMap::<String, Vec<Row>>::new();
        let mut layout = None;
        while let Some((number, line)) = lines.next()? {
            let layout = match &layout {
                Some(layout) => *layout,
                None => {
                    let told = Layout::of(line);
                    layout = Some(told);
                    if told == Layout::Beir {
                        continue;
                    }
                    told
                }
            };
            match layout.row(line) {
                Ok((query, document, grade)) => {
                    let row = Row { document: document.to_owned(), grade, line: number };
                    match rows.get_mut(query) {
                        Some(rows) => rows.push(row),
                        None => _ = rows.insert(query.to_owned(), vec![row]),
                    }
                }
                Err(fault) => return Err(lines.fault(number, fault)),
            }
        }
        if rows.is_empty() {
            return Err(Error::Empty { path: lines.path().to_owned(), what: "judgements" });
        }
        judgements(lines.path(), rows)
    }

    /// Judgements from memory; of a document that is judged twice for a query, the last grade counts.
    pub fn from_grades<Q: Into<String>, D: Into<String>>(grades: impl IntoIterator<Item = (Q, D, i32)>) -> Self {
        let mut queries = BTreeMap::<String, BTreeMap<String, i32>>::new();
        for (query, document, grade) in grades {
            queries.entry(query.into()).or_default().insert(document.into(), grade);
        }
        let judgements = |grades: BTreeMap<_, _>| Judgements::sorted(grades.into_iter().collect());
        Self { queries: queries.into_iter().map(|(query, grades)| (query, judgements(grades))).collect() }
    }

    /// The judged queries, sorted by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Judgements)> {
        self.queries.iter().map(|(query, judgements)| (query.as_str(), judgements))
    }

    /// The judgements of a query, if it has any.
    pub fn of(&self, query: &str) -> Option<&Judgements> {
        self.queries.get(query)
    }

    /// The judgements of a query with the query's id.
    pub(crate) fn judged(&self, query: &str) -> Option<(&str, &Judgements)> {
        self.queries.get_key_value(query).map(|(query, judgements)| (query.as_str(), judgements))
    }

    /// Number of judged queries.
    pub fn n_queries(&self) -> usize {
        self.queries.len()
    }

    /// Number of judgements, over all queries.
    pub fn n_judgements(&self) -> usize {
        self.queries.values().map(Judgements::n_documents).sum()
    }
}

impl Judgements {
    fn sorted(grades: Vec<(String, i32)>) -> Self {
        let blank = |(document, grade): &(String, i32)| match column(document) {
            Cow::Owned(written) => Some((written, *grade)),
            Cow::Borrowed(_) => None,
        };
        let mut written: Vec<_> = grades.iter().filter_map(blank).collect();
        written.sort_unstable();
        Self { grades, written }
    }

    /// The grade of a document, if it is judged: by its id as it stands in a run file, else as it stands in the
    /// judgements, as files of others have it.
    pub fn grade(&self, document: &str) -> Option<i32> {
        let find = |grades: &[(String, i32)]| {
            grades.binary_search_by(|(id, _)| id.as_str().cmp(document)).ok().map(|at| grades[at].1)
        };
        find(&self.written).or_else(|| find(&self.grades))
    }

    /// Documents with their grades, sorted by document id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, i32)> {
        self.grades.iter().map(|(document, grade)| (document.as_str(), *grade))
    }

    /// Number of judged documents.
    pub fn n_documents(&self) -> usize {
        self.grades.len()
    }

    /// Number of documents of at least grade `rel`.
    pub fn n_relevant(&self, rel: i32) -> usize {
        self.grades.iter().filter(|(_, grade)| *grade >= rel).count()
    }
}

/// The judgement of a line, before the file is known to be free of doubles.
struct Row {
    document: String,
    grade: i32,
    line: u64,
}

/// Sorts what was read; the first line that repeats an earlier one is the error.
fn judgements(path: &Path, rows: BTreeMap<String, Vec<Row>>) -> Result<Qrels> {
    let mut twice: Option<(u64, String)> = None;
    let mut queries = BTreeMap::new();
    for (query, mut rows) in rows {
        rows.sort_unstable_by(|a, b| a.document.cmp(&b.document).then(a.line.cmp(&b.line)));
        for pair in rows.windows(2).filter(|pair| pair[0].document == pair[1].document) {
            if twice.as_ref().is_none_or(|(line, _)| pair[1].line < *line) {
                twice = Some((pair[1].line, format!("document {:?} of query {query:?}", pair[1].document)));
            }
        }
        queries.insert(query, Judgements::sorted(rows.into_iter().map(|row| (row.document, row.grade)).collect()));
    }
    match twice {
        Some((line, what)) => Err(Error::Duplicate { path: path.to_owned(), line, what }),
        None => Ok(Qrels { queries }),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// `query iter document grade`, white space between.
    Trec,
    /// `query-id corpus-id score`, tabs between, under a header.
    Beir,
}

impl Layout {
    fn of(line: &str) -> Self {
        let header = ["query-id", "corpus-id", "score"];
        let names = line.split_ascii_whitespace();
        if names.clone().count() == header.len()
            && names.zip(header).all(|(name, want)| name.eq_ignore_ascii_case(want))
        {
            Self::Beir
        } else {
            Self::Trec
        }
    }

    /// Query, document and grade of a line.
    fn row(self, line: &str) -> Result<(&str, &str, i32), Fault> {
        let (fields, n_fields, expected) = match self {
            Self::Trec => (
                first_four(line.split_ascii_whitespace()),
                line.split_ascii_whitespace().count(),
                "4 columns, `query iter document grade`, or BEIR's header `query-id corpus-id score` in the first line",
            ),
            Self::Beir => (
                first_four(line.split('\t')),
                line.split('\t').count(),
                "3 columns with tabs between: query, document, grade",
            ),
        };
        let (query, document, grade) = match (self, n_fields) {
            (Self::Trec, 4) => (fields[0], fields[2], fields[3]),
            (Self::Beir, 3) => (fields[0].trim(), fields[1].trim(), fields[2].trim()),
            _ => return Err(Fault::new(1, expected, n_fields.to_string())),
        };
        if let Some(empty) = [query, document].into_iter().find(|id| id.is_empty()) {
            return Err(Fault::new(column_of(line, empty), "an id", "nothing"));
        }
        match integer(grade) {
            Some(grade) => Ok((query, document, grade)),
            None => Err(Fault::new(column_of(line, grade), "an integer grade", format!("{grade:?}"))),
        }
    }
}

fn first_four<'a>(fields: impl Iterator<Item = &'a str>) -> [&'a str; 4] {
    let mut first = [""; 4];
    for (slot, field) in first.iter_mut().zip(fields) {
        *slot = field;
    }
    first
}

/// `2`, `-1` and `2.0` are integers, `0.5` is not.
fn integer(grade: &str) -> Option<i32> {
    grade.parse().ok().or_else(|| {
        let value: f64 = grade.parse().ok()?;
        (value.fract() == 0.0 && value.abs() <= f64::from(i32::MAX)).then_some(value as i32)
    })
}

/// The one file of judgements in a folder: its `qrels/*.tsv`, or else its own `*.tsv`.
fn only_file(folder: &Path) -> Result<PathBuf> {
    let mut found = tables(&folder.join("qrels"))?;
    if found.is_empty() {
        found = tables(folder)?;
    }
    match found.len() {
        0 => Err(Error::Empty { path: folder.to_owned(), what: "judgements (`qrels/*.tsv` or `*.tsv`)" }),
        1 => Ok(found.remove(0)),
        _ => {
            let names: Vec<_> = found.iter().map(|path| path.display().to_string()).collect();
            let (path, what) = (folder.to_owned(), "files of judgements");
            Err(Error::Several { path, what, found: names.join(", "), way_out: "name one of them" })
        }
    }
}

/// The `*.tsv` files of a folder, sorted; none when there is no such folder.
pub(crate) fn tables(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let paths = fs_err::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<Result<Vec<_>, _>>()?;
    paths.retain(|path| path.is_file() && path.extension().is_some_and(|extension| extension == "tsv"));
    paths.sort_unstable();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Qrels> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("qrels");
        fs_err::write(&path, text).unwrap();
        Qrels::read(&path)
    }

    #[track_caller]
    fn fails(text: &str, parts: &[&str]) {
        let told = read(text).unwrap_err().to_string();
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    }

    #[test]
    fn the_two_layouts_say_the_same() {
        let qrels = Qrels::from_grades([("q1", "d2", 1), ("q1", "d10", 0), ("q0", "d1", -2)]);
        assert_eq!(read("q1 0 d2 1\nq1\tQ0  d10\t0\r\n\n q0 0 d1 -2").unwrap(), qrels);
        assert_eq!(read("query-id\tcorpus-id\tscore\nq1\td2\t1.0\nq1\td10\t0\nq0\td1\t-2\n").unwrap(), qrels);
        assert_eq!(qrels.iter().map(|(query, _)| query).collect::<Vec<_>>(), ["q0", "q1"]);
        assert_eq!((qrels.n_queries(), qrels.n_judgements()), (2, 3));
        assert_eq!(qrels.of("q1").unwrap().iter().collect::<Vec<_>>(), [("d10", 0), ("d2", 1)]);
        assert_eq!(qrels.of("q1").unwrap().n_relevant(1), 1);
        assert_eq!(qrels.of("q2"), None);
    }

    #[test]
    fn a_document_id_with_blanks_is_found_as_a_run_file_has_it() {
        let qrels = read("query-id\tcorpus-id\tscore\nq\tGeneva Durben\t1\nq\ta%20b\t2\n").unwrap();
        let judgements = qrels.of("q").unwrap();
        assert_eq!(judgements.grade("Geneva Durben"), Some(1));
        assert_eq!(judgements.grade("Geneva%20Durben"), Some(1));
        assert_eq!(judgements.grade("a%20b"), Some(2));
        assert_eq!(judgements.grade("a%2520b"), Some(2));
        assert_eq!(judgements.grade("a b"), None);
    }

    #[test]
    fn a_line_that_is_no_judgement_is_named_with_its_column() {
        fails("q 0 d 1\nq 0 d2\n", &["line 2, column 1", "4 columns", "found 3"]);
        fails("q 0 dé 0.5", &["line 1, column 8", "integer", "\"0.5\""]);
        fails("query-id\tcorpus-id\tscore\nq\td", &["line 2", "3 columns"]);
        fails("query-id\tcorpus-id\tscore\nq\t\t1", &["line 2, column 3", "an id"]);
        fails("query-id\tcorpus-id\tscore\n", &["no judgements"]);
        fails("q d 1", &["4 columns", "header"]);
    }

    #[test]
    fn a_document_judged_twice_is_refused_even_with_one_grade() {
        fails("q 0 d 1\nr 0 d 1\nq 0 e 1\nq 0 d 1\n", &["line 4", "\"d\"", "\"q\"", "twice"]);
    }

    #[test]
    fn a_folder_is_its_only_file_of_judgements() {
        let folder = tempfile::tempdir().unwrap();
        let qrels = folder.path().join("qrels");
        fs_err::create_dir(&qrels).unwrap();
        assert!(matches!(Qrels::read(folder.path()), Err(Error::Empty { .. })));
        fs_err::write(qrels.join("test.tsv"), "query-id\tcorpus-id\tscore\nq\td\t1").unwrap();
        assert_eq!(Qrels::read(folder.path()).unwrap(), Qrels::read(&qrels).unwrap());
        fs_err::write(qrels.join("dev.tsv"), "query-id\tcorpus-id\tscore\nq\td\t1").unwrap();
        let told = Qrels::read(folder.path()).unwrap_err().to_string();
        assert!(told.contains("dev.tsv") && told.contains("test.tsv") && told.contains("name one"), "{told}");
    }
}
