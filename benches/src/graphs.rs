//! One contestant among graphs: Cento's, or that of the crate hnsw_rs, over vectors that others are given too.
//!
//! `scripts/bench-graphs` runs it beside hnswlib, faiss and usearch. Building and asking are two runs, so that the
//! memory of asking is not that of building. Vectors and the rows that are truly nearest come as .npy files.
//!
//! Recall@10 counts the true rows among those found. Rates are the best of the rounds: other work only ever adds time.

use std::fs::{self, File};
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use cento_vector::file::Mapped;
use cento_vector::hnsw::Wanted;
use cento_vector::{NEVER, Rows, Scalar, exact, hnsw, write_rows};
use clap::{Args, Subcommand, ValueEnum};
use hnsw_rs::prelude::{Distance, Hnsw};
use serde::Serialize;
use serde_json::{Value, json};

/// Neighbours asked for.
const K: usize = 10;

/// Layers of hnsw_rs.
const LAYERS_MAX: usize = 16;

/// What to do with a graph.
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Write rows and graph of Cento into a folder
    Build {
        /// Rows, `[N, D]` of f32
        #[arg(long)]
        rows: PathBuf,
        /// Folder for the files
        #[arg(long)]
        folder: PathBuf,
        /// How rows are stored
        #[arg(long, value_enum, default_value = "f16")]
        scalar: Stored,
        /// The graph
        #[command(flatten)]
        graph: Density,
    },
    /// Ask a graph of Cento in such a folder
    Ask {
        /// Folder with the files
        #[arg(long)]
        folder: PathBuf,
        /// What is asked
        #[command(flatten)]
        questions: Questions,
    },
    /// Build a graph of hnsw_rs in memory and ask it
    HnswRs {
        /// Rows, `[N, D]` of f32
        #[arg(long)]
        rows: PathBuf,
        /// The graph
        #[command(flatten)]
        graph: Density,
        /// What is asked
        #[command(flatten)]
        questions: Questions,
    },
    /// Scan all rows in such a folder, beside a loop that only reads memory
    Scan {
        /// Folder with the files
        #[arg(long)]
        folder: PathBuf,
        /// Rows of queries, `[Q, D]` of f32
        #[arg(long)]
        queries: PathBuf,
    },
}

/// How densely the graph is linked, and how fast.
#[derive(Debug, Args)]
pub struct Density {
    /// Neighbours in the upper layers
    #[arg(long, default_value_t = 16)]
    m: usize,
    /// Rows considered as neighbours
    #[arg(long, default_value_t = 200)]
    ef_construction: usize,
    /// Threads that build
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

/// What is asked.
#[derive(Debug, Args)]
pub struct Questions {
    /// Rows of queries, `[Q, D]` of f32
    #[arg(long)]
    queries: PathBuf,
    /// True neighbours, nearest first, `[Q, 10 or more]` of u32
    #[arg(long)]
    truth: PathBuf,
    /// Widths of the beam
    #[arg(long, value_delimiter = ',', default_value = "10,16,24,32,48,64,96,128,192,256,384,512")]
    ef: Vec<usize>,
    /// Numbers of threads that ask
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    ask_threads: Vec<usize>,
    /// Rounds, of which the best counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// How rows are stored.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Stored {
    /// 32 bits
    F32,
    /// 16 bits
    F16,
}

/// One point of a curve.
#[derive(Debug, Serialize)]
struct Point {
    ef: usize,
    threads: usize,
    recall_at_10: f64,
    queries_per_second: f64,
}

/// Does it and returns the figures.
///
/// # Errors
/// If a file cannot be read or written, or the shapes do not fit one another.
pub fn run(task: &Task) -> Result<Value> {
    match task {
        Task::Build { rows, folder, scalar, graph } => build(&Matrix::load(rows)?, folder, *scalar, graph),
        Task::Ask { folder, questions } => ask(folder, questions),
        Task::HnswRs { rows, graph, questions } => hnsw_rs(&Matrix::load(rows)?, graph, questions),
        Task::Scan { folder, queries } => scan(folder, &Matrix::load(queries)?),
    }
}

fn build(rows: &Matrix, folder: &Path, scalar: Stored, density: &Density) -> Result<Value> {
    fs::create_dir_all(folder)?;
    let scalar = match scalar {
        Stored::F32 => Scalar::F32,
        Stored::F16 => Scalar::F16,
    };
    let (rows_path, graph_path) = (folder.join("vectors.rows"), folder.join("hnsw.graph"));
    let vectors = rows.values.chunks_exact(rows.columns);
    write_rows(File::create(&rows_path)?, rows.columns, scalar, vectors)?.sync_all()?;
    let stored = Rows::open(Mapped::open_any(&rows_path, &Scalar::KINDS)?)?;
    let config = hnsw::HnswConfig { m: density.m, ef_construction: density.ef_construction };
    let start = Instant::now();
    let graph = hnsw::build(&stored, &config, density.threads, &mut |_| ControlFlow::Continue(()))?;
    let build_seconds = start.elapsed().as_secs_f64();
    graph.write(BufWriter::new(File::create(&graph_path)?))?.into_inner()?.sync_all()?;
    let write_seconds = start.elapsed().as_secs_f64() - build_seconds;
    let repairs = graph.repairs();
    drop(graph);

    let frozen = hnsw::FrozenGraph::open(Mapped::open(&graph_path, hnsw::KIND)?)?;
    let start = Instant::now();
    let health = hnsw::health(&frozen, &stored, &hnsw::HealthConfig::default())?;
    Ok(json!({
        "build_seconds": build_seconds,
        "write_seconds": write_seconds,
        "threads": density.threads,
        "disk_bytes": fs::metadata(&rows_path)?.len() + fs::metadata(&graph_path)?.len(),
        "graph_bytes": fs::metadata(&graph_path)?.len(),
        "repaired_rows": repairs.n_unreachable,
        "added_edges": repairs.n_edges,
        "health_seconds": start.elapsed().as_secs_f64(),
        "health": health,
    }))
}

fn ask(folder: &Path, questions: &Questions) -> Result<Value> {
    let truth = Truth::load(questions)?;
    let resident_before = resident_bytes()?;
    let start = Instant::now();
    let rows = Rows::open(Mapped::open_any(folder.join("vectors.rows"), &Scalar::KINDS)?)?;
    let graph = hnsw::FrozenGraph::open(Mapped::open(folder.join("hnsw.graph"), hnsw::KIND)?)?;
    let open_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    hnsw::search(&graph, &rows, truth.queries.row(0), &Wanted::new(K, 64))?;
    let first_query_seconds = start.elapsed().as_secs_f64();

    let points = truth.curve(questions, |ef, threads| {
        let found = hnsw::search_batch(&graph, &rows, &truth.queries.values, &Wanted::new(K, ef), threads)?;
        Ok(found.into_iter().map(|found| found.neighbors.iter().map(|neighbor| neighbor.row).collect()).collect())
    })?;
    Ok(json!({
        "open_seconds": open_seconds,
        "first_query_seconds": first_query_seconds,
        "resident_bytes": resident_bytes()?.saturating_sub(resident_before),
        "points": points,
    }))
}

/// `1 - dot`, not below 0, as hnsw_rs wants it.
struct OneMinusDot;

impl Distance<f32> for OneMinusDot {
    fn eval(&self, a: &[f32], b: &[f32]) -> f32 {
        let mut sums = [0.0_f32; 16];
        let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
        for (a, b) in a.iter().zip(b) {
            (0..16).for_each(|lane| sums[lane] += a[lane] * b[lane]);
        }
        (1.0 - sums.iter().sum::<f32>()).max(0.0)
    }
}

fn hnsw_rs(rows: &Matrix, density: &Density, questions: &Questions) -> Result<Value> {
    ensure!(rows.columns.is_multiple_of(16), "{} dimensions are no multiple of 16", rows.columns);
    let truth = Truth::load(questions)?;
    let resident_before = resident_bytes()?;
    let n_rows = rows.values.len() / rows.columns;
    let start = Instant::now();
    let graph = in_pool(density.threads, || {
        let graph = Hnsw::new(density.m, n_rows, LAYERS_MAX, density.ef_construction, OneMinusDot);
        let data: Vec<(&[f32], usize)> = (0..n_rows).map(|row| (rows.row(row), row)).collect();
        graph.parallel_insert_slice(&data);
        graph
    })?;
    let build_seconds = start.elapsed().as_secs_f64();
    let queries: Vec<Vec<f32>> = (0..truth.n_queries()).map(|query| truth.queries.row(query).to_vec()).collect();
    let points = truth.curve(questions, |ef, threads| {
        let found = in_pool(threads, || graph.parallel_search(&queries, K, ef))?;
        Ok(found.into_iter().map(|found| found.iter().map(|neighbor| neighbor.d_id as u32).collect()).collect())
    })?;
    Ok(json!({
        "build_seconds": build_seconds,
        "threads": density.threads,
        "resident_bytes": resident_bytes()?.saturating_sub(resident_before),
        "points": points,
    }))
}

fn in_pool<T: Send>(n_threads: usize, run: impl FnOnce() -> T + Send) -> Result<T> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(n_threads).build()?.install(run))
}

/// Bytes a second of the exact scan of one query after another, and of a loop that adds up the same file's words.
fn scan(folder: &Path, queries: &Matrix) -> Result<Value> {
    let rows = Rows::open(Mapped::open_any(folder.join("vectors.rows"), &Scalar::KINDS)?)?;
    let bytes = rows.bytes(0..rows.len())?;
    let n_queries = (queries.values.len() / queries.columns).min(20);
    let per_second = |seconds: f64, passes: usize| bytes.len() as f64 * passes as f64 / seconds / 1e9;
    let mut figures = Vec::new();
    for threads in [1, 2] {
        let (mut scan, mut read) = (f64::MAX, f64::MAX);
        for _ in 0..3 {
            let start = Instant::now();
            in_pool(threads, || {
                (0..n_queries).try_for_each(|query| exact::search(&rows, queries.row(query), K, None, NEVER).map(drop))
            })??;
            scan = scan.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let sum = in_pool(threads, || sum_of_words(bytes, threads))?;
            read = read.min(start.elapsed().as_secs_f64());
            std::hint::black_box(sum);
        }
        figures.push(json!({
            "threads": threads,
            "scan_gigabytes_per_second": per_second(scan, n_queries),
            "memory_gigabytes_per_second": per_second(read, 1),
        }));
    }
    Ok(json!({ "rows": rows.len(), "dimensions": rows.dimensions(), "bytes": bytes.len(), "scan": figures }))
}

fn sum_of_words(bytes: &[u8], n_threads: usize) -> u64 {
    let words: &[[u8; 8]] = bytes.as_chunks().0;
    let part = |words: &[[u8; 8]]| {
        let mut sums = [0_u64; 8];
        for words in words.as_chunks::<8>().0 {
            (0..8).for_each(|lane| sums[lane] = sums[lane].wrapping_add(u64::from_le_bytes(words[lane])));
        }
        sums.into_iter().fold(0, u64::wrapping_add)
    };
    std::thread::scope(|scope| {
        let parts: Vec<_> =
            words.chunks(words.len().div_ceil(n_threads)).map(|words| scope.spawn(move || part(words))).collect();
        parts.into_iter().map(|part| part.join().unwrap_or_default()).fold(0, u64::wrapping_add)
    })
}

/// Queries and what they should find.
struct Truth {
    queries: Matrix,
    nearest: Vec<u32>,
    n_nearest: usize,
}

impl Truth {
    fn load(questions: &Questions) -> Result<Self> {
        let queries = Matrix::load(&questions.queries)?;
        let (bytes, [_, n_nearest]) = npy(&questions.truth, "<u4")?;
        let nearest: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let n_queries = queries.values.len() / queries.columns;
        ensure!(n_nearest >= K && nearest.len() == n_queries * n_nearest, "the truth is not of these queries");
        Ok(Self { queries, nearest, n_nearest })
    }

    fn n_queries(&self) -> usize {
        self.nearest.len() / self.n_nearest
    }

    /// Recall and rate for each width and number of threads.
    fn curve(&self, questions: &Questions, ask: impl Fn(usize, usize) -> Result<Vec<Vec<u32>>>) -> Result<Vec<Point>> {
        let mut points = Vec::new();
        for &threads in &questions.ask_threads {
            for &ef in &questions.ef {
                let (mut seconds, mut recall) = (f64::MAX, 0.0);
                for _ in 0..questions.rounds {
                    let start = Instant::now();
                    let found = ask(ef, threads)?;
                    seconds = seconds.min(start.elapsed().as_secs_f64());
                    recall = self.recall(&found);
                }
                let queries_per_second = self.n_queries() as f64 / seconds;
                points.push(Point { ef, threads, recall_at_10: recall, queries_per_second });
            }
        }
        Ok(points)
    }

    fn recall(&self, found: &[Vec<u32>]) -> f64 {
        let truths = self.nearest.chunks_exact(self.n_nearest);
        let n_found: usize = found
            .iter()
            .zip(truths)
            .map(|(found, truth)| found.iter().take(K).filter(|row| truth[..K].contains(row)).count())
            .sum();
        n_found as f64 / (K * found.len()) as f64
    }
}

/// Vectors row by row.
struct Matrix {
    values: Vec<f32>,
    columns: usize,
}

impl Matrix {
    fn load(path: &Path) -> Result<Self> {
        let (bytes, [_, columns]) = npy(path, "<f4")?;
        let values = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Ok(Self { values, columns })
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }
}

/// The values of a .npy file of two axes, and the axes.
fn npy(path: &Path, descr: &str) -> Result<(Vec<u8>, [usize; 2])> {
    let mut bytes = fs::read(path).with_context(|| path.display().to_string())?;
    ensure!(
        bytes.starts_with(b"\x93NUMPY\x01\x00") && bytes.len() > 10,
        "{}: no .npy file of version 1",
        path.display()
    );
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8_lossy(bytes.get(10..start).context("a header")?).into_owned();
    let is_plain = header.contains(descr) && header.contains("'fortran_order': False");
    ensure!(is_plain, "{}: expected {descr} row by row, found {header}", path.display());
    let shape = header.split(['(', ')']).nth(1).context("a shape")?;
    let axes: Vec<usize> = shape
        .split(',')
        .filter(|axis| !axis.trim().is_empty())
        .map(|axis| axis.trim().parse())
        .collect::<Result<_, _>>()?;
    let axes: [usize; 2] = axes.try_into().map_err(|axes| anyhow::anyhow!("two axes, not {axes:?}"))?;
    bytes.drain(..start);
    Ok((bytes, axes))
}

/// Memory of this process that is resident, that of mapped files included.
fn resident_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024)
}
