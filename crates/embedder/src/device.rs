//! Where a model is computed: the one place that knows which devices this build was made for.

use std::env::consts::{ARCH, OS};
use std::fmt;
use std::str::FromStr;

pub(crate) use candle_core::Device;

use crate::error::{Error, Result};
use crate::kernels::cpu::Simd;
use crate::kernels::cpu::simd::UnknownSet;
use crate::kernels::cuda;
use crate::precision::Precision;

/// The device asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The first that works of: the accelerator this build was made for, the CPU. [`Embedder::device_name`] says which
    /// it was.
    ///
    /// [`Embedder::device_name`]: crate::Embedder::device_name
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU, by number. Needs the feature `cuda`.
    Cuda(usize),
    /// Apple's GPU. Needs the feature `metal`.
    Metal,
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::Metal => f.write_str("metal"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = Error;

    /// `auto`, `cpu`, `cuda` (the first GPU), `cuda:N` or `metal`.
    fn from_str(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "metal" => Ok(Self::Metal),
            _ => match name.strip_prefix("cuda:").map(str::parse) {
                Some(Ok(number)) => Ok(Self::Cuda(number)),
                _ => Err(Error::Device {
                    device: name.to_owned(),
                    reason: "unknown; use auto, cpu, cuda, cuda:N or metal".to_owned(),
                }),
            },
        }
    }
}

/// Opens the device asked for.
///
/// # Errors
/// If this build cannot use it, or it is not there. Only `auto` goes on to the next device.
pub(crate) fn open(choice: DeviceChoice) -> Result<Device> {
    match choice {
        DeviceChoice::Auto => open_cuda(0).or_else(|_| open_metal()).or_else(|_| open_cpu()),
        DeviceChoice::Cpu => open_cpu(),
        DeviceChoice::Cuda(number) => open_cuda(number),
        DeviceChoice::Metal => open_metal(),
    }
}

/// Why `auto` did not choose the accelerator that this build was made for; `None` where it did, or could not have.
pub(crate) fn why_no_accelerator(choice: DeviceChoice, device: &Device) -> Option<String> {
    let could = cfg!(any(feature = "cuda", feature = "metal"));
    if choice != DeviceChoice::Auto || !device.is_cpu() || !could {
        return None;
    }
    let opened = if cfg!(feature = "cuda") { open_cuda(0) } else { open_metal() };
    opened.err().map(|error| error.to_string())
}

/// Refuses a precision that the device does not compute in.
pub(crate) fn check_precision(device: &Device, precision: Precision) -> Result<()> {
    let refuse = |reason| Err(Error::Precision { precision: precision.to_string(), reason });
    match (!is_accelerator(device), precision) {
        (true, Precision::F16) => refuse("the CPU computes in f32, bf16 or int8; bf16 costs as little"),
        (false, Precision::Int8) => refuse("accelerators compute in f32, bf16 or f16; bf16 is as fast"),
        _ => Ok(()),
    }
}

/// True if batches are queued there rather than computed by threads.
pub(crate) fn is_accelerator(device: &Device) -> bool {
    !device.is_cpu() || cuda::runs_on(device)
}

/// The device in words, with what distinguishes one machine's from another's.
pub(crate) fn name(device: &Device) -> String {
    match device {
        Device::Cpu => format!("cpu ({})", simd().name()),
        Device::Cuda(_) => cuda::name(device).unwrap_or_else(|| "cuda".to_owned()),
        Device::Metal(_) => "metal".to_owned(),
    }
}

/// The part of the machine that decides the bits of a vector, beside model and text.
///
/// On the CPU a sum in f32 is one chain of fused multiply-adds on every instruction set, and one in integers is exact;
/// bf16 is summed as each set does it. Tables of sines and cosines are the system's: its name is said.
pub(crate) fn arithmetic(device: &Device, precision: Precision) -> String {
    match (device, precision) {
        (Device::Cpu, _) if is_accelerator(device) => name(device), // an emulated one
        (Device::Cpu, Precision::F32 | Precision::Int8) => format!("cpu {OS} {ARCH}"),
        (Device::Cpu, Precision::Bf16 | Precision::F16) => format!("cpu {OS} {ARCH} {}", simd().name()),
        (Device::Cuda(_) | Device::Metal(_), _) => name(device),
    }
}

fn open_cpu() -> Result<Device> {
    let refused = |error: UnknownSet| Error::Device { device: "cpu".to_owned(), reason: error.to_string() };
    Simd::allowed().map(|_| Device::Cpu).map_err(refused)
}

/// The instruction set that the kernels use.
pub(crate) fn simd() -> Simd {
    Simd::allowed().expect("checked when the CPU was opened")
}

#[cfg(feature = "cuda")]
fn open_cuda(number: usize) -> Result<Device> {
    cuda::open(number).map_err(|error| unavailable(DeviceChoice::Cuda(number), error.to_string()))
}

#[cfg(not(feature = "cuda"))]
fn open_cuda(number: usize) -> Result<Device> {
    Err(unavailable(DeviceChoice::Cuda(number), "this build has no CUDA; build with the feature `cuda`".to_owned()))
}

#[cfg(feature = "metal")]
fn open_metal() -> Result<Device> {
    Device::new_metal(0).map_err(|error| unavailable(DeviceChoice::Metal, error.to_string()))
}

#[cfg(not(feature = "metal"))]
fn open_metal() -> Result<Device> {
    Err(unavailable(DeviceChoice::Metal, "this build has no Metal; build with the feature `metal`".to_owned()))
}

fn unavailable(choice: DeviceChoice, reason: String) -> Error {
    Error::Device { device: choice.to_string(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["auto", "cpu", "cuda:0", "cuda:3", "metal"] {
            assert_eq!(name.parse::<DeviceChoice>().unwrap().to_string(), name);
        }
        assert_eq!("cuda".parse::<DeviceChoice>().unwrap(), DeviceChoice::Cuda(0));
    }

    #[test]
    fn the_cpu_refuses_f16_and_names_what_it_has() {
        let message = check_precision(&Device::Cpu, Precision::F16).unwrap_err().to_string();
        assert!(message.contains("f16") && message.contains("bf16"), "{message}");
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            check_precision(&Device::Cpu, precision).unwrap();
        }
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        for name in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU"] {
            let message = name.parse::<DeviceChoice>().unwrap_err().to_string();
            assert!(message.contains("cuda:N"), "{message}");
        }
    }

    #[cfg(not(any(feature = "cuda", feature = "metal")))]
    #[test]
    fn an_absent_device_names_the_feature() {
        assert!(open(DeviceChoice::Cuda(0)).unwrap_err().to_string().contains("feature `cuda`"));
        assert!(open(DeviceChoice::Metal).unwrap_err().to_string().contains("feature `metal`"));
        assert!(matches!(open(DeviceChoice::Auto), Ok(Device::Cpu)));
    }
}
