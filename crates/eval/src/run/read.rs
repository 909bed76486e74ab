//! Reading a run, one query at a time.
//!
//! Source: the six columns of trec_eval (`query Q0 document rank score tag`, at white space), the three of MS MARCO
//! (`query document rank`, score = -rank), and the predictions of mteb (JSON). The first line tells which.
//! Cost: one query's results and the ids of the queries before it; JSON is read whole.

use std::collections::HashSet;
use std::iter::FusedIterator;
use std::path::Path;
use std::vec;

use super::{Hit, Ranking, predictions};
use crate::error::{Error, Result};
use crate::lines::{Fault, Lines, column_of};

/// The rankings of a run, in the order of the file.
///
/// # Errors
/// Items are [`Error::Malformed`] for a line with other columns or a score that is no finite number,
/// [`Error::Duplicate`] for a document that a query has twice, [`Error::Scattered`] for a query that comes again after
/// others. Nothing follows an error.
pub struct Rankings {
    source: Source,
}

enum Source {
    Columns(Box<Blocks>),
    Predictions(vec::IntoIter<Ranking>),
    Ended,
}

impl Rankings {
    /// Opens a run; `-` is stdin.
    ///
    /// # Errors
    /// [`Error::Empty`], and what is wrong with the first line; with JSON, what is wrong anywhere.
    pub fn open(path: &Path) -> Result<Self> {
        Self::read(Lines::open(path)?)
    }

    pub(super) fn read(mut lines: Lines) -> Result<Self> {
        let Some((number, line)) = lines.next()? else {
            return Err(Error::Empty { path: lines.path().to_owned(), what: "results" });
        };
        if line.trim_start().starts_with('{') {
            let text = format!("{}{line}", "\n".repeat(number as usize - 1));
            return Ok(Self { source: Source::Predictions(predictions::read(lines, text)?.into_iter()) });
        }
        let columns = Columns::of(line);
        let first = match columns.split(line) {
            Ok((query, document, score)) => (query.to_owned(), Hit::new(document, score)),
            Err(fault) => return Err(lines.fault(number, fault)),
        };
        let (query, hits, numbers) = (first.0, vec![first.1], vec![number]);
        Ok(Self {
            source: Source::Columns(Box::new(Blocks { lines, columns, query, hits, numbers, ended: HashSet::new() })),
        })
    }
}

impl Iterator for Rankings {
    type Item = Result<Ranking>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match &mut self.source {
            Source::Columns(blocks) => blocks.next().transpose(),
            Source::Predictions(rankings) => rankings.next().map(Ok),
            Source::Ended => None,
        };
        if !matches!(next, Some(Ok(_))) {
            self.source = Source::Ended;
        }
        next
    }
}

impl FusedIterator for Rankings {}

/// Blocks of lines with one query.
struct Blocks {
    lines: Lines,
    columns: Columns,
    /// The query whose block is being read; its first hit is already in `hits`. Without hits the file has ended.
    query: String,
    hits: Vec<Hit>,
    /// The line of each hit.
    numbers: Vec<u64>,
    ended: HashSet<String>,
}

impl Blocks {
    fn next(&mut self) -> Result<Option<Ranking>> {
        if self.hits.is_empty() {
            return Ok(None);
        }
        while let Some((number, line)) = self.lines.next()? {
            let (query, document, score) = match self.columns.split(line) {
                Ok(split) => split,
                Err(fault) => return Err(self.lines.fault(number, fault)),
            };
            let hit = Hit::new(document, score);
            if query == self.query {
                self.hits.push(hit);
                self.numbers.push(number);
            } else if self.ended.contains(query) {
                let query = query.to_owned();
                return Err(Error::Scattered { path: self.lines.path().to_owned(), line: number, query });
            } else {
                let next = query.to_owned();
                return self.end(next, vec![hit], number).map(Some);
            }
        }
        self.end(String::new(), Vec::new(), 0).map(Some)
    }

    /// Hands out the block that has ended; the next one begins with what is given.
    fn end(&mut self, query: String, hits: Vec<Hit>, number: u64) -> Result<Ranking> {
        let ended =
            Ranking { query: std::mem::replace(&mut self.query, query), hits: std::mem::replace(&mut self.hits, hits) };
        if let Some(at) = first_repeat(&ended.hits) {
            let what = format!("document {:?} of query {:?}", ended.hits[at].document, ended.query);
            return Err(Error::Duplicate { path: self.lines.path().to_owned(), line: self.numbers[at], what });
        }
        self.numbers.clear();
        self.numbers.push(number);
        self.hits.reserve(ended.hits.len());
        self.ended.insert(ended.query.clone());
        Ok(Ranking::new(ended.query, ended.hits))
    }
}

/// The first hit whose document an earlier hit has.
fn first_repeat(hits: &[Hit]) -> Option<usize> {
    let mut seen = HashSet::with_capacity(hits.len());
    hits.iter().position(|hit| !seen.insert(hit.document.as_str()))
}

#[derive(Debug, Clone, Copy)]
enum Columns {
    Trec,
    MsMarco,
}

impl Columns {
    fn of(line: &str) -> Self {
        match line.split_ascii_whitespace().count() {
            3 => Self::MsMarco,
            _ => Self::Trec,
        }
    }

    /// Query, document and score of a line.
    fn split(self, line: &str) -> Result<(&str, &str, f64), Fault> {
        let mut rest = line.split_ascii_whitespace();
        let mut next = || rest.next();
        let (query, document, score) = match self {
            Self::Trec => match (next(), next(), next(), next(), next(), next(), next()) {
                (Some(query), Some(_), Some(document), Some(_), Some(score), Some(_), None) => (query, document, score),
                _ => return Err(self.fault(line)),
            },
            Self::MsMarco => match (next(), next(), next(), next()) {
                (Some(query), Some(document), Some(rank), None) => (query, document, rank),
                _ => return Err(self.fault(line)),
            },
        };
        let (value, expected) = match self {
            Self::Trec => (score.parse::<f64>().ok().filter(|score| score.is_finite()), "a finite score"),
            Self::MsMarco => (score.parse::<u32>().ok().map(|rank| -f64::from(rank)), "a rank, an integer not below 0"),
        };
        match value {
            Some(value) => Ok((query, document, value)),
            None => Err(Fault::new(column_of(line, score), expected, format!("{score:?}"))),
        }
    }

    fn fault(self, line: &str) -> Fault {
        let expected = match self {
            Self::Trec => "6 columns, `query Q0 document rank score tag`",
            Self::MsMarco => "3 columns, `query document rank`",
        };
        Fault::new(1, expected, line.split_ascii_whitespace().count().to_string())
    }
}
