//! With the feature `cuda`: compiles the CUDA kernels to PTX, which the driver finishes for the GPU it finds.
//!
//! `NVCC` or `CUDA_HOME` name the toolkit's compiler, else the one on the PATH is taken. `CUDA_COMPUTE_CAP` (80, 90, …)
//! names the oldest GPU the kernels are for, else it is that of the machine that builds.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: &str = "src/kernels/cuda";
/// Tensor cores with bf16 came with compute capability 8.0.
const COMPUTE_CAPABILITY_MIN: u32 = 80;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SOURCES}");
    for variable in ["NVCC", "CUDA_HOME", "CUDA_COMPUTE_CAP"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }
    if let Err(reason) = compile_all() {
        println!("cargo::error={reason}");
    }
}

fn compile_all() -> Result<(), String> {
    let (nvcc, capability) = (nvcc(), compute_capability()?);
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let sources = Path::new(SOURCES).read_dir().map_err(|error| format!("{SOURCES}: {error}"))?;
    for source in sources.flatten().map(|entry| entry.path()) {
        if source.extension().is_some_and(|extension| extension == "cu") {
            let ptx = out.join(source.with_extension("ptx").file_name().expect("a source has a name"));
            compile(&nvcc, capability, &source, &ptx)?;
        }
    }
    Ok(())
}

fn compile(nvcc: &Path, capability: u32, source: &Path, ptx: &Path) -> Result<(), String> {
    let output = Command::new(nvcc)
        .args(["--ptx", "-std=c++17", "-O3", "-ftz=true"])
        .arg(format!("-arch=compute_{capability}"))
        .arg("-o")
        .args([ptx, source])
        .output()
        .map_err(|error| format!("{}: {error}; CUDA_HOME or NVCC name the CUDA toolkit's compiler", nvcc.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}", source.display(), errors.lines().take(5).collect::<Vec<_>>().join(" | ")))
}

fn nvcc() -> PathBuf {
    let of_home = || env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin/nvcc"));
    env::var_os("NVCC").map(PathBuf::from).or_else(of_home).unwrap_or_else(|| "nvcc".into())
}

fn compute_capability() -> Result<u32, String> {
    let way_out = "CUDA_COMPUTE_CAP names one, as 80 or 90";
    let named = match env::var("CUDA_COMPUTE_CAP") {
        Ok(named) => named,
        Err(_) => {
            let query = ["--query-gpu=compute_cap", "--format=csv,noheader"];
            let output = Command::new("nvidia-smi").args(query).output();
            let output =
                output.map_err(|error| format!("no GPU to ask for its compute capability ({error}); {way_out}"))?;
            String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
        }
    };
    let digits = named.trim().replace('.', "");
    match digits.trim_end_matches(char::is_alphabetic).parse() {
        Ok(capability) if capability >= COMPUTE_CAPABILITY_MIN => Ok(capability),
        Ok(_) => Err(format!(
            "compute capability {named} is below {COMPUTE_CAPABILITY_MIN}: the kernels use its tensor cores"
        )),
        Err(_) => Err(format!("compute capability {named:?}: not a number; {way_out}")),
    }
}
