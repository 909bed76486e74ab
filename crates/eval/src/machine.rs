//! The machine that figures of speed belong to.

use serde::{Deserialize, Serialize};

/// The machine that a time was measured on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor, as the system calls it.
    pub cpu: String,
    /// Cores this process may use.
    pub n_cores: usize,
    /// Main memory; 0 where the system does not say.
    pub memory_bytes: u64,
    /// The operating system, such as "linux".
    pub os: String,
    /// Vector instructions the processor has, such as "AVX2, FMA".
    pub instructions: String,
}

impl Machine {
    /// The machine this runs on.
    pub fn here() -> Self {
        Self {
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            n_cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: field("/proc/meminfo", "MemTotal").and_then(|text| kilobytes(&text)).unwrap_or(0),
            os: std::env::consts::OS.to_owned(),
            instructions: instructions(),
        }
    }
}

/// The value of the first line `key : value` of a file.
fn field(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn kilobytes(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(target_arch = "x86_64")]
fn instructions() -> String {
    let known = [
        ("AVX-512", std::arch::is_x86_feature_detected!("avx512f")),
        ("AVX2", std::arch::is_x86_feature_detected!("avx2")),
        ("FMA", std::arch::is_x86_feature_detected!("fma")),
        ("AVX-512 VNNI", std::arch::is_x86_feature_detected!("avx512vnni")),
        ("AVX-512 BF16", std::arch::is_x86_feature_detected!("avx512bf16")),
    ];
    let there: Vec<&str> = known.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
    there.join(", ")
}

#[cfg(not(target_arch = "x86_64"))]
fn instructions() -> String {
    String::new()
}
