//! `cento bench embed`: how fast an encoder embeds here, text in memory to vectors in memory.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use cento_engine::corpus::Records;
use cento_engine::embedder::{Embedder, Kind, LoadOptions};
use cento_engine::model::Models;
use cento_eval::Machine;
use serde_json::json;

use super::percentiles::Percentiles;
use crate::args::{BenchEmbed, Global};
use crate::exit_code::Outcome;
use crate::options;
use crate::output::{self, Bar, Beside};

/// Tokens of each text of the uniform set, special tokens counted.
const UNIFORM_TOKENS: usize = 128;
/// Least and greatest length of the mixed set, in tokens; lengths between them are equally likely on a logarithmic
/// scale.
const MIXED_TOKENS: (f64, f64) = (8.0, 256.0);
/// Tokens of the query.
const QUERY_TOKENS: usize = 12;

/// Common words, a token each in most vocabularies.
const WORDS: [&str; 24] = [
    "the", "of", "and", "water", "time", "people", "first", "house", "world", "city", "light", "small", "great",
    "year", "river", "moon", "paper", "music", "story", "north", "green", "winter", "market", "road",
];

pub(crate) fn execute(args: &BenchEmbed, global: &Global) -> anyhow::Result<Outcome> {
    for (name, n) in [("n-texts", args.n_texts), ("repeat", args.repeat), ("n-queries", args.n_queries)] {
        if n == 0 {
            return Err(options::usage(format!("--{name} 0: nothing would be measured; give at least one")));
        }
    }
    let (model, encoder) = load(args, global)?;
    let bar = Bar::new(global, Beside::Text);
    let mut speeds = Vec::new();
    for (name, texts) in sets(args, &encoder)? {
        bar.message(format!("{name}: {} texts", texts.len()));
        speeds.push((name, Speed::of(&encoder, &texts, args.repeat)?));
    }
    bar.message("one query after another".to_owned());
    let query = query_ms(&encoder, args.n_queries)?;
    bar.finish();
    if let Some(remark) = encoder.device_remark().filter(|_| !global.quiet) {
        eprintln!("{remark}");
    }
    let n_threads = if global.threads == 0 { Machine::here().n_cores } else { global.threads };
    if global.json {
        let sets: serde_json::Map<_, _> =
            speeds.iter().map(|(name, speed)| ((*name).to_owned(), speed.json())).collect();
        output::json(&json!({
            "version": output::JSON_VERSION, "bench": "embed", "machine": Machine::here(), "model": model,
            "model_fingerprint": encoder.fingerprint(), "device": encoder.device_name(), "n_threads": n_threads,
            "precision": encoder.precision(), "dimensions": encoder.dimensions(), "max_tokens": encoder.max_tokens(), "repeat": args.repeat, "sets": sets,
            "query_tokens": QUERY_TOKENS, "query_ms": query.json(),
        }))?;
        return Ok(Outcome::Done);
    }
    let row = |(name, speed): &(&str, Speed)| {
        let per_second = |n: u64| format!("{:.0}", n as f64 / speed.seconds);
        let (texts, tokens) = (output::count(speed.n_texts), output::count(speed.n_tokens));
        let gflops = format!("{:.0}", speed.gflops_per_second());
        vec![(*name).to_owned(), texts, tokens, per_second(speed.n_texts), per_second(speed.n_tokens), gflops]
    };
    println!(
        "{}",
        output::table(&["texts of", "texts", "tokens", "texts/s", "tokens/s", "GFLOP/s"], speeds.iter().map(row))
    );
    println!(
        "one query of {QUERY_TOKENS} tokens: p50 {:.2} ms, p95 {:.2} ms, p99 {:.2} ms",
        query.p50, query.p95, query.p99
    );
    if !global.quiet {
        let machine = Machine::here();
        eprintln!(
            "{} in {} on {}, {n_threads} threads; best of {}; {}, {} cores, {}",
            model,
            encoder.precision(),
            encoder.device_name(),
            args.repeat,
            machine.cpu,
            machine.n_cores,
            machine.instructions
        );
    }
    Ok(Outcome::Done)
}

/// The encoder that is measured, and its name.
fn load(args: &BenchEmbed, global: &Global) -> anyhow::Result<(String, Embedder)> {
    if cento_engine::is_at_endpoint(&args.model) {
        return Err(options::usage("--model: the speed of an encoder of this machine is measured; name one"));
    }
    let models = Models::from_env().map_err(cento_engine::Error::from)?;
    let located = models.resolve(&args.model).map_err(cento_engine::Error::from)?;
    let load = LoadOptions {
        device: args.device.device,
        precision: args.precision,
        threads: global.threads,
        ..LoadOptions::default()
    };
    Ok((located.name, Embedder::load(&located.folder, &load).map_err(cento_engine::Error::from)?))
}

fn sets(args: &BenchEmbed, encoder: &Embedder) -> anyhow::Result<Vec<(&'static str, Vec<String>)>> {
    if let Some(path) = &args.texts {
        return Ok(vec![("file", texts(path, args.n_texts)?)]);
    }
    let mut words = Words::new();
    let uniform = (0..args.n_texts).map(|_| words.text(encoder, UNIFORM_TOKENS)).collect();
    let (least, greatest) = MIXED_TOKENS;
    let length = |n: usize| least * (greatest / least).powf(spread(n)); // low discrepancy: any number of texts has the same mix
    let mixed = (0..args.n_texts).map(|n| words.text(encoder, length(n) as usize)).collect();
    Ok(vec![("uniform", uniform), ("mixed", mixed)])
}

/// The first texts of a JSONL file.
fn texts(path: &Path, n_texts: usize) -> anyhow::Result<Vec<String>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let records = Records::new(BufReader::new(file), path).take(n_texts);
    let texts = records.map(|record| {
        let record = record.map_err(cento_engine::Error::from)?;
        Ok([record.title, record.text].into_iter().flatten().collect::<Vec<_>>().join(" "))
    });
    let texts = texts.collect::<anyhow::Result<Vec<_>>>()?;
    if texts.is_empty() { Err(options::usage(format!("--texts {}: holds no text", path.display()))) } else { Ok(texts) }
}

/// The time of the fastest pass over a set.
pub(super) struct Speed {
    n_texts: u64,
    pub(super) n_tokens: u64,
    /// Floating-point operations, a multiply-add counted as two.
    flops: u64,
    pub(super) seconds: f64,
}

impl Speed {
    pub(super) fn of(encoder: &Embedder, texts: &[String], repeat: usize) -> anyhow::Result<Self> {
        let pass = || encoder.embed(texts, Kind::Document).map_err(cento_engine::Error::from);
        let lengths: Vec<u32> = pass()?.iter().map(|embedding| embedding.n_tokens).collect();
        let n_tokens = lengths.iter().map(|&n| u64::from(n)).sum();
        let flops = lengths.iter().map(|&n| encoder.flops(n as usize)).sum();
        let mut seconds = f64::INFINITY;
        for _ in 0..repeat {
            let start = Instant::now();
            pass()?;
            seconds = seconds.min(start.elapsed().as_secs_f64());
        }
        Ok(Self { n_texts: texts.len() as u64, n_tokens, flops, seconds })
    }

    pub(super) fn gflops_per_second(&self) -> f64 {
        self.flops as f64 / self.seconds / 1e9
    }

    pub(super) fn json(&self) -> serde_json::Value {
        json!({
            "n_texts": self.n_texts, "n_tokens": self.n_tokens, "seconds": self.seconds,
            "texts_per_second": self.n_texts as f64 / self.seconds,
            "tokens_per_second": self.n_tokens as f64 / self.seconds,
            "gflops_per_second": self.gflops_per_second(),
        })
    }
}

/// Times of one short query, embedded alone.
fn query_ms(encoder: &Embedder, n_queries: usize) -> anyhow::Result<Percentiles> {
    let query = [Words::new().text(encoder, QUERY_TOKENS)];
    let mut times: Vec<Duration> = Vec::with_capacity(n_queries);
    for n in 0..n_queries + n_queries.div_ceil(10) {
        let start = Instant::now();
        encoder.embed(&query, Kind::Query).map_err(cento_engine::Error::from)?;
        if n >= n_queries.div_ceil(10) {
            times.push(start.elapsed()); // those before warm the caches up
        }
    }
    Ok(Percentiles::of(times.into_iter()))
}

/// Words in an order that is the same everywhere.
pub(super) struct Words {
    state: u64,
}

impl Words {
    pub(super) fn new() -> Self {
        Self { state: 1 }
    }

    /// A text of that many tokens, special tokens counted; a few more where words are several tokens.
    pub(super) fn text(&mut self, encoder: &Embedder, n_tokens: usize) -> String {
        let wanted = n_tokens.min(encoder.max_tokens()).saturating_sub(encoder.n_special()).max(1);
        let mut text = self.word().to_owned();
        let mut n_words = 1;
        loop {
            let missing = wanted.saturating_sub(encoder.tokenizer().count(&text));
            if missing == 0 || n_words > n_tokens {
                return text;
            }
            for _ in 0..missing.div_ceil(2) {
                text.push(' ');
                text.push_str(self.word());
                n_words += 1;
            }
        }
    }

    fn word(&mut self) -> &'static str {
        // Knuth's multiplicative generator; the low bits are the weak ones.
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        WORDS[(self.state >> 33) as usize % WORDS.len()]
    }
}

/// The `n`th number of the golden-ratio sequence in 0..1: any beginning of it is evenly spread.
fn spread(n: usize) -> f64 {
    (n as f64 * 0.618_033_988_749_894_9).fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_beginning_of_the_sequence_is_evenly_spread() {
        for n in [10, 100, 1000] {
            let low = (0..n).filter(|&n| spread(n) < 0.5).count();
            assert!(low.abs_diff(n / 2) <= 2, "{low} of {n}");
        }
        let mut words = Words::new();
        let first: Vec<&str> = (0..100).map(|_| words.word()).collect();
        assert!(WORDS.iter().all(|word| first.contains(word)), "every word occurs");
    }
}
