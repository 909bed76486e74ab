//! `cento bench device`: whether a device computes what the CPU computes, and how fast, in one file to send on.
//!
//! Vectors of every precision are held to those of the CPU in f32, each text alone to all together in both orders, and
//! the exact scan to the CPU's. Speeds are by length; a share of a peak is of the peak that was named.

use cento_engine::embedder::{DeviceChoice, Embedder, Kind, LoadOptions, Precision};
use cento_engine::model::Models;
use cento_engine::{ScanBenchRequest, bench_scan, devices};
use cento_eval::Machine;
use serde_json::{Value, json};

use super::embed::{Speed, Words};
use crate::args::{BenchDevice, Global, Vectors};
use crate::exit_code::Outcome;
use crate::options;
use crate::output::{self, Bar, Beside, Readers};

/// Tokens of the texts that are compared: around the sizes of tiles, and on to the longest window of BERT.
const COMPARED_TOKENS: [usize; 20] = [1, 2, 3, 5, 8, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 256, 512];
/// Tokens of the texts that are timed.
const TIMED_TOKENS: [usize; 5] = [16, 64, 128, 256, 512];
/// Texts of a length that differ; more are the same again.
const TEXTS_MAX: usize = 512;
/// Largest difference of a value of a unit vector from the CPU's, in f32.
const DIFFERENCE_MAX: f64 = 2e-5;

pub(crate) fn execute(args: &BenchDevice, global: &Global) -> anyhow::Result<Outcome> {
    for (name, n) in [("n-tokens", args.n_tokens), ("repeat", args.repeat), ("n-rows", args.n_rows)] {
        if n == 0 {
            return Err(options::usage(format!("--{name} 0: nothing would be measured; give at least one")));
        }
    }
    if cento_engine::is_at_endpoint(&args.model) {
        return Err(options::usage("--model: an encoder of this machine is measured; name one"));
    }
    let models = Models::from_env().map_err(cento_engine::Error::from)?;
    let model = models.resolve(&args.model).map_err(cento_engine::Error::from)?;
    let load = |device: DeviceChoice, precision: Precision| {
        let load = LoadOptions { device, precision, threads: global.threads, ..LoadOptions::default() };
        Embedder::load(&model.folder, &load)
    };
    let bar = Bar::new(global, Beside::Text);
    bar.message("the CPU in f32".to_owned());
    let on_cpu = load(DeviceChoice::Cpu, Precision::F32).map_err(cento_engine::Error::from)?;
    let mut words = Words::new();
    let texts: Vec<String> = COMPARED_TOKENS.map(|n_tokens| words.text(&on_cpu, n_tokens)).into();
    let expected = vectors(&on_cpu, &texts)?;
    let timed = timed_texts(&on_cpu, args.n_tokens);
    let mut parts = Vec::new();
    for &precision in Precision::ALL {
        bar.message(format!("{} in {precision}", args.device.device));
        parts.push(match load(args.device.device, precision) {
            Ok(encoder) => Part::measure(&encoder, args, (&texts, &expected), &timed)?,
            Err(refused) => Part::refused(precision, &refused),
        });
    }
    bar.message("the exact scan".to_owned());
    let scan = scan(args)?;
    bar.finish();
    let mut wrong: Vec<String> = parts.iter().flat_map(|part| part.wrong.clone()).collect();
    if !scan.equal {
        wrong.push("scan: the rows or distances are not those of the CPU".to_owned());
    }
    if parts.iter().all(|part| part.refusal.is_some()) {
        wrong.push("no precision could be computed".to_owned());
    }
    let report = json!({
        "version": output::JSON_VERSION, "bench": "device", "cento": env!("CARGO_PKG_VERSION"), "machine": Machine::here(),
        "asked": args.device.device.to_string(), "devices": devices().map_err(cento_engine::Error::from)?, "model": model.name,
        "model_fingerprint": on_cpu.fingerprint(), "n_tokens": args.n_tokens, "repeat": args.repeat,
        "precisions": parts.iter().map(Part::json).collect::<Vec<_>>(),
        "scan": {
            "device": scan.device, "n_rows": args.n_rows, "dimensions": SCAN_DIMENSIONS, "n_queries": SCAN_QUERIES, "k": SCAN_K,
            "seconds": scan.seconds, "n_checked": scan.n_checked, "cpu_seconds": scan.cpu_seconds, "equal": scan.equal,
        },
        "wrong": wrong,
    });
    if let Some(path) = &args.output {
        output::whole_file(path, format!("{report:#}\n").as_bytes(), Readers::Usual)?;
    }
    if global.json {
        output::json(&report)?;
    } else {
        show(&parts, &scan, args);
    }
    for reason in &wrong {
        eprintln!("{reason}");
    }
    Ok(if wrong.is_empty() { Outcome::Done } else { Outcome::Nothing })
}

/// Findings about one precision on the device.
struct Part {
    precision: Precision,
    device: String,
    /// The device's words, where it does not compute in this precision.
    refusal: Option<String>,
    largest_difference: f64,
    least_cosine: f64,
    same_bytes: bool,
    speeds: Vec<(usize, Speed)>,
    peak_tflops: Option<f64>,
    wrong: Vec<String>,
}

impl Part {
    fn refused(precision: Precision, refused: &cento_engine::embedder::Error) -> Self {
        Self {
            precision,
            device: String::new(),
            refusal: Some(cento_engine::describe(refused)),
            largest_difference: 0.0,
            least_cosine: 1.0,
            same_bytes: true,
            speeds: Vec::new(),
            peak_tflops: None,
            wrong: Vec::new(),
        }
    }

    fn measure(
        encoder: &Embedder,
        args: &BenchDevice,
        (texts, expected): (&[String], &[Vec<f32>]),
        timed: &[(usize, Vec<String>)],
    ) -> anyhow::Result<Self> {
        let precision = encoder.precision();
        let together = vectors(encoder, texts)?;
        let (mut largest_difference, mut least_cosine) = (0.0_f64, 1.0_f64);
        for (ours, theirs) in together.iter().zip(expected) {
            let pairs = || ours.iter().zip(theirs).map(|(&a, &b)| (f64::from(a), f64::from(b)));
            largest_difference = pairs().map(|(a, b)| (a - b).abs()).fold(largest_difference, f64::max);
            least_cosine = least_cosine.min(pairs().map(|(a, b)| a * b).sum());
        }
        let alone: Vec<Vec<f32>> = texts
            .iter()
            .map(|text| Ok(vectors(encoder, std::slice::from_ref(text))?.remove(0)))
            .collect::<anyhow::Result<_>>()?;
        let turned: Vec<String> = texts.iter().rev().cloned().collect();
        let mut reversed = vectors(encoder, &turned)?;
        reversed.reverse();
        let same_bytes = is_same(&together, &alone) && is_same(&together, &reversed);
        let of_length =
            |(n_tokens, texts): &(usize, Vec<String>)| Ok((*n_tokens, Speed::of(encoder, texts, args.repeat)?));
        let speeds = timed.iter().map(of_length).collect::<anyhow::Result<_>>()?;
        let mut part = Self {
            precision,
            device: encoder.device_name(),
            refusal: None,
            largest_difference,
            least_cosine,
            same_bytes,
            speeds,
            peak_tflops: args.peak.iter().find(|peak| peak.precision == precision).map(|peak| peak.tflops),
            wrong: Vec::new(),
        };
        part.wrong = part.faults();
        Ok(part)
    }

    /// Bounds that do not hold, in words.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let precision = self.precision;
        let cosine_min = match precision {
            Precision::F32 => 1.0 - 1e-6,
            Precision::Bf16 if !self.device.starts_with("cpu") => 0.999, // rows between layers have 16 bits too
            Precision::Bf16 | Precision::F16 => 0.9999,
            Precision::Int8 => 0.98,
        };
        if precision == Precision::F32 && self.largest_difference > DIFFERENCE_MAX {
            let difference = self.largest_difference;
            faults.push(format!("f32: a value is {difference:.1e} from the CPU's, {DIFFERENCE_MAX:.0e} is allowed"));
        }
        // A cosine that is no number is below any bound.
        if !(self.least_cosine >= cosine_min) {
            faults.push(format!(
                "{precision}: a cosine to the CPU's f32 is {:.6}, {cosine_min} is wanted",
                self.least_cosine
            ));
        }
        if !self.same_bytes {
            faults.push(format!("{precision}: a text among others is not the same as alone"));
        }
        faults
    }

    fn share_of_peak(&self, speed: &Speed) -> Option<f64> {
        self.peak_tflops.map(|peak| speed.gflops_per_second() / (1e3 * peak))
    }

    fn json(&self) -> Value {
        if let Some(refusal) = &self.refusal {
            return json!({"precision": self.precision, "refused": refusal});
        }
        let speeds = self.speeds.iter().map(|(n_tokens, speed)| {
            let mut json = speed.json();
            json["tokens_of_a_text"] = json!(n_tokens);
            json["share_of_peak"] = json!(self.share_of_peak(speed));
            json
        });
        json!({
            "precision": self.precision, "device": self.device, "n_compared": COMPARED_TOKENS.len(),
            "largest_difference": self.largest_difference, "least_cosine": self.least_cosine, "same_bytes": self.same_bytes,
            "peak_tflops": self.peak_tflops, "speeds": speeds.collect::<Vec<_>>(),
        })
    }

    fn row(&self, n_tokens: usize, speed: &Speed) -> Vec<String> {
        let share = self.share_of_peak(speed).map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        vec![
            self.precision.to_string(),
            n_tokens.to_string(),
            format!("{:.0}", speed.n_tokens as f64 / speed.seconds),
            format!("{:.0}", speed.gflops_per_second()),
            share,
        ]
    }
}

fn show(parts: &[Part], scan: &cento_engine::ScanBench, args: &BenchDevice) {
    for part in parts {
        match &part.refusal {
            Some(refusal) => println!("{}: {refusal}", part.precision),
            None => println!(
                "{} on {}: largest difference from the CPU's f32 {:.1e}, least cosine {:.7}; {} in any company",
                part.precision,
                part.device,
                part.largest_difference,
                part.least_cosine,
                if part.same_bytes { "the same bytes" } else { "other bytes" }
            ),
        }
    }
    let rows = parts.iter().flat_map(|part| part.speeds.iter().map(|(n_tokens, speed)| part.row(*n_tokens, speed)));
    println!("{}", output::table(&["precision", "tokens of a text", "tokens/s", "GFLOP/s", "of the peak"], rows));
    println!(
        "scan of {} rows for {SCAN_QUERIES} queries: {:.3} s on {}, {}",
        output::count(args.n_rows as u64),
        scan.seconds,
        scan.device,
        if scan.equal { "the CPU's rows" } else { "not the CPU's rows" }
    );
}

const SCAN_DIMENSIONS: usize = 384;
const SCAN_QUERIES: usize = 100;
const SCAN_K: usize = 100;

fn scan(args: &BenchDevice) -> anyhow::Result<cento_engine::ScanBench> {
    let request = ScanBenchRequest {
        n_rows: args.n_rows,
        dimensions: SCAN_DIMENSIONS,
        scalar: options::scalar(Vectors::F32),
        n_queries: SCAN_QUERIES,
        k: SCAN_K,
        device: args.device.device,
        repeat: args.repeat,
    };
    Ok(bench_scan(&request)?)
}

/// For each length texts of about `n_tokens` tokens together.
fn timed_texts(encoder: &Embedder, n_tokens: usize) -> Vec<(usize, Vec<String>)> {
    let mut words = Words::new();
    let of_length = |length: usize| {
        let n_texts = n_tokens.div_ceil(length);
        let texts: Vec<String> = (0..n_texts.min(TEXTS_MAX)).map(|_| words.text(encoder, length)).collect();
        (length, texts.iter().cycle().take(n_texts).cloned().collect())
    };
    TIMED_TOKENS.into_iter().filter(|&length| length <= encoder.max_tokens()).map(of_length).collect()
}

fn vectors(encoder: &Embedder, texts: &[String]) -> anyhow::Result<Vec<Vec<f32>>> {
    let embedded = encoder.embed(texts, Kind::Document).map_err(cento_engine::Error::from)?;
    Ok(embedded.into_iter().map(|embedding| embedding.vector).collect())
}

fn is_same(a: &[Vec<f32>], b: &[Vec<f32>]) -> bool {
    a.iter().flatten().map(|x| x.to_bits()).eq(b.iter().flatten().map(|x| x.to_bits()))
}
