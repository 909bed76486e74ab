//! A collection of any size from made-up documents: what indexing takes of memory, time and disk, and how it answers.
//!
//! Words follow Zipf's law. The encoder is a real one, made here, that costs nearly nothing: each word has a random
//! vector of [`encoder::LATENT`] dimensions, a text has the mean of those of its words, turned into as many dimensions
//! as are asked for. Vectors that are random in all of these dimensions have no near neighbours, and no graph finds
//! them: the certificate would refuse it.
//!
//! Making, indexing and asking are processes of their own, so that the peak of one is not that of another.

mod encoder;
mod text;

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use cento_engine::corpus::ChunkSize;
use cento_engine::{
    ChunkSearch, ChunkTokens, HeaderStyle, IndexOptions, Mode, OsFs, Root, Scan, Searcher, SearcherOptions,
};
use clap::ValueEnum;
use serde_json::{Value, json};

use self::text::Texts;

/// Documents of a file.
const FILE_DOCUMENTS: usize = 100_000;

/// Queries that are asked exactly too.
const EXACT_QUERIES: usize = 40;

/// The size of the collection, and where it is made.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Chunks, each a document
    #[arg(long)]
    chunks: usize,
    /// Dimensions of their vectors
    #[arg(long, default_value_t = crate::DIMENSIONS)]
    dims: usize,
    /// Memory of the index run, in MiB or GiB; a quarter of the machine's if left out
    #[arg(long, value_name = "BYTES", value_parser = memory_bytes)]
    memory: Option<u64>,
    /// Rows from which a segment gets a graph
    #[arg(long, default_value_t = cento_engine::config::GRAPH_ROWS_MIN)]
    graph_rows_min: usize,
    /// Queries
    #[arg(long, default_value_t = 200)]
    queries: usize,
    /// Folder for documents, encoder and collection; what is there is used again, but for the collection
    #[arg(long)]
    folder: PathBuf,
    /// One step alone, in this process
    #[arg(long, value_enum)]
    step: Option<Step>,
}

/// A step of the measurement.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Step {
    /// Writes documents and encoder
    Make,
    /// Indexes them
    Index,
    /// Asks the collection
    Ask,
}

/// Runs one step and returns its figures; all, each as a process of its own, if none is named.
///
/// # Errors
/// Those of files and of the collection.
pub fn run(args: &Args) -> Result<Value> {
    match args.step {
        Some(Step::Make) => make(args),
        Some(Step::Index) => index(args),
        Some(Step::Ask) => ask(args),
        None => {
            let mut all = serde_json::Map::new();
            for step in [Step::Make, Step::Index, Step::Ask] {
                let name = step.to_possible_value().expect("no step is skipped").get_name().to_owned();
                let arguments = std::env::args_os().skip(1).chain(["--step".into(), name.clone().into()]);
                let output = Command::new(std::env::current_exe()?).args(arguments).output()?;
                ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
                all.insert(name, serde_json::from_slice(&output.stdout)?);
            }
            Ok(Value::Object(all))
        }
    }
}

fn make(args: &Args) -> Result<Value> {
    let start = Instant::now();
    let (documents, encoder) = (args.folder.join("documents"), args.folder.join("encoder"));
    let made = args.folder.join("made");
    let what = format!("{} {}", args.chunks, args.dims);
    if fs::read_to_string(&made).is_ok_and(|made| made == what) {
        return Ok(json!({ "is_there": true }));
    }
    for folder in [&documents, &encoder] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
    }
    encoder::write(&encoder, args.dims)?;
    let mut texts = Texts::new(1);
    for first in (0..args.chunks).step_by(FILE_DOCUMENTS) {
        let path = documents.join(format!("{:03}.jsonl", first / FILE_DOCUMENTS));
        let mut out = BufWriter::new(fs::File::create(path)?);
        for id in first..args.chunks.min(first + FILE_DOCUMENTS) {
            writeln!(out, "{}", json!({ "id": format!("d{id}"), "text": texts.document() }))?;
        }
        out.flush()?;
    }
    fs::write(made, what)?;
    Ok(json!({ "seconds": start.elapsed().as_secs_f64(), "document_bytes": bytes(&documents)? }))
}

fn index(args: &Args) -> Result<Value> {
    let collection = args.folder.join("collection");
    if collection.exists() {
        fs::remove_dir_all(&collection)?;
    }
    let options = IndexOptions {
        model: Some(args.folder.join("encoder").to_string_lossy().into_owned()),
        header: Some(HeaderStyle::None),
        chunk_tokens: Some(ChunkTokens(ChunkSize::Document)),
        graph_rows_min: args.graph_rows_min,
        memory_bytes: args.memory,
        ..IndexOptions::default()
    };
    let root = Root { label: "scale".to_owned(), path: args.folder.join("documents") };
    let start = Instant::now();
    let report = cento_engine::index(&collection, &[root], &options, &OsFs, &mut |_| {})?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(report.n_chunks == args.chunks as u64, "{} chunks of {}: {report:?}", report.n_chunks, args.chunks);
    let segments = cento_engine::Manifest::read(&collection)?.segments;
    let graphs = segments.iter().flat_map(|segment| &segment.graphs);
    let peaks = peaks()?;
    Ok(json!({
        "seconds": seconds,
        "peak_rss_mib": peaks,
        "collection_bytes": bytes(&collection)?,
        "segment_rows": segments.iter().map(|segment| segment.n_rows).collect::<Vec<_>>(),
        "graph_recall_at_10": graphs.map(|graph| graph.recall_at_10).collect::<Vec<_>>(),
        "notes": report.notes,
    }))
}

fn ask(args: &Args) -> Result<Value> {
    let start = Instant::now();
    let searcher = Searcher::open(args.folder.join("collection"), SearcherOptions::default())?;
    let open_ms = ms(start);
    let queries = Texts::new(2).queries(args.queries);
    let request = |query: &str, mode, scan| ChunkSearch { mode, scan, ..ChunkSearch::new(query) };
    let start = Instant::now();
    searcher.search(&request(&queries[0], Mode::Hybrid, Scan::Auto))?;
    let first_ms = ms(start);
    let mut times = Vec::new();
    for query in &queries {
        let start = Instant::now();
        searcher.search(&request(query, Mode::Hybrid, Scan::Auto))?;
        times.push(ms(start));
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let (mut n_found, mut n_all, mut answers) = (0, 0, DefaultHasher::new());
    for query in &queries[..queries.len().min(EXACT_QUERIES)] {
        let ids = |mode, scan| -> Result<Vec<(String, u64)>> {
            let hits = searcher.search(&request(query, mode, scan))?.hits;
            Ok(hits.into_iter().map(|hit| (hit.id, hit.score.to_bits())).collect())
        };
        let exact = ids(Mode::Dense, Scan::Exact)?;
        (ids(Mode::Lexical, Scan::Exact)?, &exact, ids(Mode::Hybrid, Scan::Exact)?).hash(&mut answers);
        let exact: HashSet<String> = exact.into_iter().map(|(id, _)| id).collect();
        n_found += ids(Mode::Dense, Scan::Auto)?.iter().filter(|(id, _)| exact.contains(id)).count();
        n_all += exact.len();
    }
    Ok(json!({
        "open_ms": open_ms,
        "first_query_ms": first_ms,
        "hybrid_p50_ms": at(0.5),
        "hybrid_p99_ms": at(0.99),
        "recall_at_10": n_found as f64 / n_all.max(1) as f64,
        "exact_answers": format!("{:016x}", answers.finish()),
        "peak_rss_mib": peaks()?,
    }))
}

fn memory_bytes(text: &str) -> Result<u64, String> {
    let unit =
        [("GiB", 1 << 30), ("MiB", 1 << 20)].into_iter().find_map(|(unit, n)| Some((text.strip_suffix(unit)?, n)));
    let n_bytes = unit.and_then(|(number, n_bytes): (&str, u64)| number.parse::<u64>().ok()?.checked_mul(n_bytes));
    n_bytes.ok_or_else(|| "expected a number of MiB or GiB, as 2GiB".to_owned())
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// The most memory that this process had, in MiB: pages of mapped files counted.
fn peaks() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM in /proc/self/status")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib >> 10)
}

/// Bytes of the files of a folder.
fn bytes(folder: &Path) -> Result<u64> {
    let mut n_bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        n_bytes += if entry.file_type()?.is_dir() { bytes(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(n_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One segment and several give the same answers, by words and by vectors.
    #[test]
    fn a_small_collection_is_made_indexed_and_asked() {
        let folder = tempfile::tempdir().unwrap();
        let args = Args {
            chunks: 300,
            dims: 96,
            memory: None,
            graph_rows_min: 100,
            queries: 5,
            folder: folder.path().to_owned(),
            step: None,
        };
        make(&args).unwrap();
        let figures = index(&args).unwrap();
        assert_eq!(figures["segment_rows"], json!([300]), "{figures}");
        let asked = ask(&args).unwrap();
        assert!(asked["recall_at_10"].as_f64().unwrap() > 0.9, "{asked}");
    }
}
