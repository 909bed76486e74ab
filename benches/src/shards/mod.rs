//! `cento-bench shards`: real sets, whole and cut by document into several collections, asked the same; every answer
//! must be the same, byte for byte.
//!
//! A cut does not move anything: a file keeps its path and its times, a line of JSONL its number and its bytes, as the
//! lines of other pieces become blanks.

mod ask;
mod cut;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cento_engine::{CacheOptions, IndexOptions, OsFs, Root, Searcher, SearcherOptions, index};
use cento_eval::topics::{self, Topic};
use rayon::prelude::*;

use self::ask::Asker;
use self::cut::Corpus;

/// Sets that are compared unless others are named: passages, articles, abstracts, meetings and books.
pub const SETS: [&str; 6] = ["hotpot200", "wiki2_101", "scifact", "xquad.en", "qmsum_val", "chroma_chunking"];

/// Questions on nothing in particular, for a set without any, and besides those of every set.
const ELSEWHERE: [&str; 2] = ["how do two values own the same memory", "where was the director of Night Train born"];

/// Sets, and the pieces they are compared in.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder that holds the sets
    #[arg(long, env = "CENTO_DATA", value_name = "DIR")]
    data: PathBuf,
    /// Encoder, a card's name or a folder
    #[arg(long, env = "CENTO_MODEL_DIR", value_name = "NAME|DIR", default_value = cento_engine::DEFAULT_MODEL)]
    model: String,
    /// Into how many collections a set is cut, separated by commas
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 2, 5])]
    cuts: Vec<usize>,
    /// Questions of a set that are asked; runs are made of ten times as many
    #[arg(long, value_name = "N", default_value_t = 10)]
    questions: usize,
    /// Names of sets
    #[arg(value_name = "SET", default_values = SETS)]
    sets: Vec<String>,
}

/// Compares set after set, and prints what was compared; an error at the first answer that differs.
///
/// # Errors
/// If a set cannot be read or indexed, or an answer of several collections is not that of one.
pub fn execute(args: &Args) -> Result<()> {
    for set in &args.sets {
        let comparison = Comparison {
            set: args.data.join(set),
            model: args.model.clone(),
            cuts: args.cuts.clone(),
            n_documents: usize::MAX,
            n_questions: args.questions,
            cache: Some(CacheOptions::of_user()?),
        };
        println!("{}", comparison.run().with_context(|| set.clone())?);
    }
    Ok(())
}

/// A set and how it is cut.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Folder of the set: `corpus.jsonl`, or files in `docs` or `src`.
    pub set: PathBuf,
    /// Encoder, a card's name or a folder.
    pub model: String,
    /// Numbers of collections.
    pub cuts: Vec<usize>,
    /// The first so many documents of the set; of a set without a corpus file so many files.
    pub n_documents: usize,
    /// The first so many questions.
    pub n_questions: usize,
    /// The embedding cache: what one piece embeds the others need not.
    pub cache: Option<CacheOptions>,
}

/// Answers that were the same.
#[derive(Debug, Default)]
pub struct Compared {
    set: String,
    n_documents: u64,
    n_chunks: u64,
    n_questions: usize,
    cuts: Vec<usize>,
    /// Answers and bytes by kind, those of one cut.
    of_kind: BTreeMap<&'static str, (u64, u64)>,
    /// Contexts that are empty because the collection has no answer.
    n_unsupported: u64,
}

impl Compared {
    /// Bytes of one cut that were compared.
    #[must_use]
    pub fn n_bytes(&self) -> u64 {
        self.of_kind.values().map(|(_, n_bytes)| n_bytes).sum()
    }

    /// Answers of one cut that were compared.
    #[must_use]
    pub fn n_answers(&self) -> u64 {
        self.of_kind.values().map(|(n_answers, _)| n_answers).sum()
    }

    /// Contexts among them that the collection does not support.
    #[must_use]
    pub fn n_unsupported(&self) -> u64 {
        self.n_unsupported
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { set, n_documents, n_chunks, n_questions, cuts, of_kind, n_unsupported } = self;
        writeln!(
            f,
            "{set}: {n_documents} documents, {n_chunks} chunks, {n_questions} questions; {} answers of {} bytes are the \
             same in {cuts:?} collections ({n_unsupported} contexts without support)",
            self.n_answers(),
            self.n_bytes()
        )?;
        for (kind, (n_answers, n_bytes)) in of_kind {
            writeln!(f, "  {kind}: {n_answers} answers, {n_bytes} bytes")?;
        }
        Ok(())
    }
}

impl Comparison {
    /// Indexes the set whole and in pieces, asks all of them the same, and compares.
    ///
    /// # Errors
    /// At the first answer that differs, with both; if a set cannot be read or indexed.
    pub fn run(&self) -> Result<Compared> {
        let place = tempfile::tempdir()?;
        let corpus = Corpus::of(&self.set, self.n_documents)?;
        let whole = self.index(&corpus, place.path(), 1, 0)?;
        let whole = Searcher::open(whole, SearcherOptions::default())?;
        let mut pieces = Vec::with_capacity(self.cuts.len());
        for &n in &self.cuts {
            let folders: Result<Vec<PathBuf>> =
                (0..n).map(|piece| self.index(&corpus, place.path(), n, piece)).collect();
            pieces.push(Searcher::open_shards(&folders?, SearcherOptions::default())?);
        }
        let topics = self.topics()?;
        let asker = Asker::new(&whole, &topics)?;
        let mut compared = Compared {
            set: self.set.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            n_documents: whole.manifest().segments.iter().map(|segment| segment.n_documents).sum(),
            n_chunks: whole.manifest().segments.iter().map(|segment| segment.n_rows).sum(),
            n_questions: self.n_asked().min(topics.len()),
            cuts: self.cuts.clone(),
            ..Compared::default()
        };
        let jobs = asker.jobs(self.n_asked());
        let answered: Vec<Result<Vec<ask::Answer>>> = jobs
            .par_iter()
            .map(|job| {
                let expected = asker.answers(&whole, job)?;
                for (searcher, n) in pieces.iter().zip(&self.cuts) {
                    same(&expected, &asker.answers(searcher, job)?).with_context(|| format!("{n} collections"))?;
                }
                Ok(expected)
            })
            .collect();
        for answers in answered {
            for answer in answers? {
                let (n_answers, n_bytes) = compared.of_kind.entry(answer.kind).or_default();
                (*n_answers, *n_bytes) = (*n_answers + 1, *n_bytes + answer.text.len() as u64);
                compared.n_unsupported += u64::from(answer.is_unsupported);
            }
        }
        Ok(compared)
    }

    fn index(&self, corpus: &Corpus, place: &Path, n: usize, piece: usize) -> Result<PathBuf> {
        let (files, collection) = (place.join(format!("{n}-{piece}")), place.join(format!("{n}-{piece}.cento")));
        corpus.write(&files.join("set"), n, piece)?;
        let root = Root { label: "set".to_owned(), path: files.join("set") };
        let options = IndexOptions {
            model: Some(self.model.clone()),
            graph_rows_min: usize::MAX, // the walk of a graph depends on what is in it
            cache: self.cache.clone(),
            ..IndexOptions::default()
        };
        index(&collection, &[root], &options, &OsFs, &mut |_| {})?;
        Ok(collection)
    }

    /// Single questions, those of every set included.
    fn n_asked(&self) -> usize {
        self.n_questions + ELSEWHERE.len()
    }

    fn topics(&self) -> Result<Vec<Topic>> {
        let has_topics = ["queries.jsonl", "questions.jsonl"].iter().any(|name| self.set.join(name).is_file());
        let mut topics = if has_topics { topics::read(&self.set)? } else { Vec::new() };
        topics.truncate(self.n_questions * 10);
        topics.iter_mut().for_each(|topic| topic.scope = None); // documents have the ids of their files here
        let elsewhere = ELSEWHERE.iter().enumerate();
        let elsewhere =
            elsewhere.map(|(n, text)| Topic { id: format!("elsewhere-{n}"), text: (*text).to_owned(), scope: None });
        topics.splice(0..0, elsewhere);
        Ok(topics)
    }
}

/// An error at the first answer that differs.
fn same(expected: &[ask::Answer], given: &[ask::Answer]) -> Result<()> {
    for (expected, given) in expected.iter().zip(given) {
        if expected.text != given.text {
            let differs = |(a, b): (u8, u8)| a != b;
            let at = expected.text.bytes().zip(given.text.bytes()).position(differs).unwrap_or_default();
            let near = |text: &str| {
                String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(200)..text.len().min(at + 200)]).into_owned()
            };
            bail!(
                "{}: {}: byte {at} differs\nwhole  {}\npieces {}",
                expected.kind,
                expected.asked,
                near(&expected.text),
                near(&given.text)
            );
        }
    }
    if expected.len() != given.len() {
        bail!("{} answers, of the whole {}", given.len(), expected.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of a set that is small enough for every run of the tests.
    fn check(set: &str, n_documents: usize, n_questions: usize) {
        let (Some(data), Ok(model)) = (std::env::var_os("CENTO_DATA"), std::env::var("CENTO_MODEL_DIR")) else {
            return println!("skipped: CENTO_DATA and CENTO_MODEL_DIR are not set");
        };
        let set = Path::new(&data).join(set);
        if !set.is_dir() {
            return println!("skipped: no {}", set.display());
        }
        let folder = tempfile::tempdir().unwrap();
        let cache_options = CacheOptions { folder: folder.path().to_owned(), max_bytes: cento_engine::CACHE_BYTES_MAX };
        let (cuts, cache) = (vec![1, 2, 5], Some(cache_options));
        let comparison = Comparison { set, model, cuts, n_documents, n_questions, cache };
        let compared = comparison.run().unwrap();
        println!("{compared}");
        assert!(compared.n_bytes() > 1_000_000 && compared.n_unsupported() > 0, "{compared}");
    }

    #[test]
    fn articles_in_pieces_answer_as_the_whole() {
        check("hotpot200", 30, 0);
    }

    #[test]
    fn long_documents_in_pieces_answer_as_the_whole() {
        check("rust_book", 6, 0);
    }
}
