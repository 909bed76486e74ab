//! Where a model is computed: the one place that knows which devices there are.

use std::env::consts::{ARCH, OS};
use std::fmt;
use std::str::FromStr;

use candle_core::Device as Tensors;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::kernels::cpu::Simd;
use crate::kernels::cpu::simd::UnknownSet;
use crate::kernels::cuda;
use crate::kernels::gpu::{self, Adapter, AdapterKind, Gpu, NoAdapter};
use crate::precision::Precision;

/// Characters of a device's name that are kept where it becomes part of a file's name: drivers may take 500.
const NAME_CHARS_MAX: usize = 120;

/// Changes when a kernel of accelerators sums in another order.
const KERNELS: &str = "kernels 2";

/// The device asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The first that can do the work of: the accelerator this build was made for, a GPU by Vulkan or Metal, the CPU.
    /// Never software that plays a GPU. [`Embedder::device_name`] says which it was.
    ///
    /// [`Embedder::device_name`]: crate::Embedder::device_name
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU by Vulkan or Metal, by its number among [`Devices::adapters`]; without one, the first that is no software.
    Gpu(Option<usize>),
    /// An NVIDIA GPU by CUDA, by number. Needs the feature `cuda`.
    Cuda(usize),
    /// Apple's GPU by the tensor library. Needs the feature `metal`.
    Metal,
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Gpu(None) => f.write_str("gpu"),
            Self::Gpu(Some(number)) => write!(f, "gpu:{number}"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::Metal => f.write_str("metal"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = Error;

    /// `auto`, `cpu`, `gpu`, `gpu:N`, `cuda` (the first GPU), `cuda:N` or `metal`.
    fn from_str(name: &str) -> Result<Self> {
        let (kind, number) = match name.split_once(':') {
            None => (name, None),
            Some((kind, number)) => (kind, Some(number.parse())),
        };
        match (kind, number) {
            ("auto", None) => Ok(Self::Auto),
            ("cpu", None) => Ok(Self::Cpu),
            ("gpu", None) => Ok(Self::Gpu(None)),
            ("gpu", Some(Ok(number))) => Ok(Self::Gpu(Some(number))),
            ("cuda", None) => Ok(Self::Cuda(0)),
            ("cuda", Some(Ok(number))) => Ok(Self::Cuda(number)),
            ("metal", None) => Ok(Self::Metal),
            _ => Err(Error::Device {
                device: name.to_owned(),
                reason: "unknown; use auto, cpu, gpu, gpu:N, cuda, cuda:N or metal".to_owned(),
            }),
        }
    }
}

/// An open device.
#[derive(Debug, Clone)]
pub(crate) enum Device {
    /// The tensor library's: the CPU, CUDA, Metal.
    Tensors(Tensors),
    /// A GPU by Vulkan or Metal, which computes rows; tensors are in main memory.
    Gpu(Gpu),
}

impl Device {
    pub(crate) const CPU: Self = Self::Tensors(Tensors::Cpu);

    /// Where tensors are.
    pub(crate) fn tensors(&self) -> &Tensors {
        match self {
            Self::Tensors(tensors) => tensors,
            Self::Gpu(_) => &Tensors::Cpu,
        }
    }

    pub(crate) fn gpu(&self) -> Option<&Gpu> {
        match self {
            Self::Tensors(_) => None,
            Self::Gpu(gpu) => Some(gpu),
        }
    }

    pub(crate) fn is_cpu(&self) -> bool {
        matches!(self, Self::Tensors(Tensors::Cpu))
    }
}

/// The work that a device is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) precision: Precision,
    pub(crate) form: Form,
}

/// The form of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// It has layers.
    Layers,
    /// It is a table of vectors.
    Table,
}

/// A device, and why `auto` chose no accelerator where there is one.
pub(crate) type Opened = (Device, Option<String>);

/// Opens the device asked for, if it can do that work.
///
/// # Errors
/// If this build cannot use it, it is not there, or it does not compute in that precision. Only `auto` goes on to the
/// next device.
pub(crate) fn open(choice: DeviceChoice, work: Work) -> Result<Opened> {
    let opened = match choice {
        DeviceChoice::Auto => open_first(work)?,
        DeviceChoice::Cpu => (open_cpu()?, None),
        DeviceChoice::Gpu(number) => {
            check_gpu(choice, work)?;
            let opened = gpu::open(number).map_err(|error| unavailable(choice, error.to_string()));
            (Device::Gpu(opened?), None)
        }
        DeviceChoice::Cuda(number) => (Device::Tensors(open_cuda(number)?), None),
        DeviceChoice::Metal => (Device::Tensors(open_metal()?), None),
    };
    check_precision(&opened.0, work.precision)?;
    Ok(opened)
}

fn open_first(work: Work) -> Result<Opened> {
    let of_build = open_cuda(0).or_else(|_| open_metal()).map(Device::Tensors);
    if let Ok(device) = of_build {
        return Ok((device, None));
    }
    let why_not_this = cfg!(any(feature = "cuda", feature = "metal")).then(|| {
        let opened = if cfg!(feature = "cuda") { open_cuda(0) } else { open_metal() };
        opened.err().map(|error| error.to_string())
    });
    let why_no_gpu = match check_gpu(DeviceChoice::Gpu(None), work) {
        _ if !gpu::may_have_hardware() => None,
        Err(error) => gpu::adapters().first().is_some_and(is_hardware).then(|| error.to_string()),
        Ok(()) => match gpu::open(None) {
            Ok(gpu) => return Ok((Device::Gpu(gpu), None)),
            Err(NoAdapter::None | NoAdapter::SoftwareAlone { .. }) => None, // as on most machines: nothing to remark
            Err(error) => Some(error.to_string()),
        },
    };
    Ok((open_cpu()?, why_no_gpu.or(why_not_this.flatten())))
}

fn is_hardware(adapter: &Adapter) -> bool {
    match adapter.kind {
        AdapterKind::Software => false,
        AdapterKind::Discrete | AdapterKind::Integrated | AdapterKind::Virtual | AdapterKind::Other => true,
    }
}

/// Refuses work that the kernels of GPUs do not do.
fn check_gpu(choice: DeviceChoice, work: Work) -> Result<()> {
    match work.form {
        Form::Layers => check_gpu_precision(work.precision),
        Form::Table => {
            let reason = "a table of vectors has no layers, and nothing for a GPU to compute; use cpu";
            Err(unavailable(choice, reason.to_owned()))
        }
    }
}

fn check_gpu_precision(precision: Precision) -> Result<()> {
    match precision {
        Precision::F32 | Precision::F16 => Ok(()),
        Precision::Bf16 | Precision::Int8 => {
            let reason = "GPUs by Vulkan or Metal compute in f32 and f16; use one of them, or the CPU in bf16 or int8";
            Err(Error::Precision { precision: precision.to_string(), reason })
        }
    }
}

/// Refuses a precision that the device does not compute in.
pub(crate) fn check_precision(device: &Device, precision: Precision) -> Result<()> {
    let refuse = |reason| Err(Error::Precision { precision: precision.to_string(), reason });
    match (device, precision) {
        (Device::Gpu(_), _) => check_gpu_precision(precision),
        (Device::Tensors(_), Precision::F16) if !is_accelerator(device) => {
            refuse("the CPU computes in f32, bf16 or int8; bf16 costs as little")
        }
        (Device::Tensors(_), Precision::Int8) if is_accelerator(device) => {
            refuse("accelerators compute in f32, bf16 or f16; bf16 is as fast")
        }
        _ => Ok(()),
    }
}

/// True if a model is held to the CPU's before its first use there. Metal by the tensor library is not: it picks
/// kernels by the number of rows, and bits differ in other company.
pub(crate) fn is_checked(device: &Device) -> bool {
    matches!(device, Device::Gpu(_) | Device::Tensors(Tensors::Cuda(_)))
}

/// True if batches are queued there rather than computed by threads.
pub(crate) fn is_accelerator(device: &Device) -> bool {
    !device.is_cpu() || cuda::runs_on(device.tensors())
}

/// The device in words, with what distinguishes one machine's from another's.
pub(crate) fn name(device: &Device) -> String {
    match device {
        Device::Tensors(Tensors::Cpu) => format!("cpu ({})", simd().name()),
        Device::Tensors(tensors @ Tensors::Cuda(_)) => cuda::name(tensors).unwrap_or_else(|| "cuda".to_owned()),
        Device::Tensors(Tensors::Metal(_)) => "metal".to_owned(),
        Device::Gpu(gpu) => gpu.name(),
    }
}

/// The part of the machine that decides the bits of a vector, beside model and text.
///
/// On the CPU a sum in f32 is one chain of fused multiply-adds on every instruction set, and one in integers is exact;
/// bf16 is summed as each set does it. Tables of sines and cosines are the system's: its name is said. A GPU's name has
/// its driver's version in it, since the driver compiles the kernels.
pub(crate) fn arithmetic(device: &Device, precision: Precision) -> String {
    match (device, precision) {
        (Device::Tensors(Tensors::Cpu), _) if is_accelerator(device) => name(device), // an emulated one
        (Device::Tensors(Tensors::Cpu), Precision::F32 | Precision::Int8) => format!("cpu {OS} {ARCH}"),
        (Device::Tensors(Tensors::Cpu), Precision::Bf16 | Precision::F16) => {
            format!("cpu {OS} {ARCH} {}", simd().name())
        }
        (Device::Tensors(Tensors::Cuda(_) | Tensors::Metal(_)) | Device::Gpu(_), _) => {
            shortened(format!("{KERNELS}, {}", name(device)))
        }
    }
}

/// A name of bearable length: what is cut off is hashed.
fn shortened(name: String) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        None => name,
        Some((end, _)) => format!("{} {}", &name[..end], &blake3::hash(name.as_bytes()).to_hex()[..8]),
    }
}

/// The devices of this machine, and the one that is chosen where none is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Devices {
    /// The device of [`DeviceChoice::Auto`] for an encoder in f32, as it is asked for: `cpu`, `gpu:0`, `cuda:0`.
    pub chosen: String,
    /// The device in words.
    pub name: String,
    /// Reasons for this device and not another.
    pub why: String,
    /// GPUs by Vulkan and Metal, and software that plays one.
    pub adapters: Vec<Adapter>,
}

/// Looks at the devices of this machine.
///
/// # Errors
/// If not even the CPU can be used.
pub fn devices() -> Result<Devices> {
    let adapters = gpu::adapters();
    let (device, why_not) = open_first(Work { precision: Precision::F32, form: Form::Layers })?;
    let chosen = match &device {
        Device::Gpu(gpu) => DeviceChoice::Gpu(Some(gpu.adapter().number)),
        Device::Tensors(Tensors::Cpu) => DeviceChoice::Cpu,
        Device::Tensors(Tensors::Cuda(_)) => DeviceChoice::Cuda(0),
        Device::Tensors(Tensors::Metal(_)) => DeviceChoice::Metal,
    };
    let software = adapters.first().map(|adapter| (adapter.name.clone(), adapter.number));
    let why = match (&device, why_not, software) {
        (Device::Gpu(_), ..) => "the first adapter that is no software".to_owned(),
        (Device::Tensors(Tensors::Cuda(_) | Tensors::Metal(_)), ..) => "this build was made for it".to_owned(),
        (Device::Tensors(Tensors::Cpu), Some(reason), _) => reason,
        (Device::Tensors(Tensors::Cpu), None, None) => NoAdapter::None.to_string(),
        (Device::Tensors(Tensors::Cpu), None, Some((name, number))) => {
            NoAdapter::SoftwareAlone { name, number }.to_string()
        }
    };
    Ok(Devices { chosen: chosen.to_string(), name: name(&device), why, adapters })
}

fn open_cpu() -> Result<Device> {
    let refused = |error: UnknownSet| Error::Device { device: "cpu".to_owned(), reason: error.to_string() };
    Simd::allowed().map(|_| Device::CPU).map_err(refused)
}

/// The instruction set that the kernels use.
pub(crate) fn simd() -> Simd {
    Simd::allowed().expect("checked when the CPU was opened")
}

#[cfg(feature = "cuda")]
fn open_cuda(number: usize) -> Result<Tensors> {
    cuda::open(number).map_err(|error| unavailable(DeviceChoice::Cuda(number), error.to_string()))
}

#[cfg(not(feature = "cuda"))]
fn open_cuda(number: usize) -> Result<Tensors> {
    Err(unavailable(DeviceChoice::Cuda(number), "this build has no CUDA; build with the feature `cuda`".to_owned()))
}

#[cfg(feature = "metal")]
fn open_metal() -> Result<Tensors> {
    Tensors::new_metal(0).map_err(|error| unavailable(DeviceChoice::Metal, error.to_string()))
}

#[cfg(not(feature = "metal"))]
fn open_metal() -> Result<Tensors> {
    Err(unavailable(DeviceChoice::Metal, "this build has no Metal; build with the feature `metal`".to_owned()))
}

pub(crate) fn unavailable(choice: DeviceChoice, reason: String) -> Error {
    Error::Device { device: choice.to_string(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["auto", "cpu", "gpu", "gpu:0", "gpu:2", "cuda:0", "cuda:3", "metal"] {
            assert_eq!(name.parse::<DeviceChoice>().unwrap().to_string(), name);
        }
        assert_eq!("cuda".parse::<DeviceChoice>().unwrap(), DeviceChoice::Cuda(0));
    }

    #[test]
    fn the_cpu_refuses_f16_and_names_what_it_has() {
        let message = check_precision(&Device::CPU, Precision::F16).unwrap_err().to_string();
        assert!(message.contains("f16") && message.contains("bf16"), "{message}");
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            check_precision(&Device::CPU, precision).unwrap();
        }
    }

    #[test]
    fn a_long_name_is_cut_and_still_its_own() {
        assert_eq!(shortened("vulkan llvmpipe".to_owned()), "vulkan llvmpipe");
        let [a, b] = ["a", "b"].map(|end| shortened(format!("{}{end}", "é".repeat(300))));
        assert!(a != b && a.chars().count() == NAME_CHARS_MAX + 9, "{a}");
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        for name in ["", "gpu:", "gpu:x", "cpu:0", "cuda:", "cuda:-1", "cuda:x", "CPU"] {
            let message = name.parse::<DeviceChoice>().unwrap_err().to_string();
            assert!(message.contains("cuda:N"), "{message}");
        }
    }

    #[cfg(not(any(feature = "cuda", feature = "metal")))]
    #[test]
    fn an_absent_device_names_the_feature() {
        let work = Work { precision: Precision::F32, form: Form::Layers };
        assert!(open(DeviceChoice::Cuda(0), work).unwrap_err().to_string().contains("feature `cuda`"));
        assert!(open(DeviceChoice::Metal, work).unwrap_err().to_string().contains("feature `metal`"));
    }

    #[test]
    fn auto_takes_no_software_and_no_work_that_a_gpu_does_not_do() {
        let auto = |precision, form| open(DeviceChoice::Auto, Work { precision, form }).unwrap().0;
        if !gpu::adapters().first().is_some_and(is_hardware) {
            assert!(auto(Precision::F32, Form::Layers).gpu().is_none());
        }
        assert!(auto(Precision::F32, Form::Table).gpu().is_none());
        assert!(auto(Precision::Bf16, Form::Layers).gpu().is_none());
        let devices = devices().unwrap();
        assert!(devices.chosen.parse::<DeviceChoice>().is_ok() && !devices.why.is_empty(), "{devices:?}");
    }

    #[test]
    fn a_gpu_refuses_what_it_does_not_compute_by_name() {
        let open =
            |precision, form| open(DeviceChoice::Gpu(Some(0)), Work { precision, form }).unwrap_err().to_string();
        assert!(open(Precision::F32, Form::Table).contains("a table of vectors"));
        assert!(open(Precision::Int8, Form::Layers).contains("f32 and f16"));
    }

    #[test]
    fn a_gpu_that_is_not_there_is_refused_with_the_number_of_those_that_are() {
        let work = Work { precision: Precision::F32, form: Form::Layers };
        let message = open(DeviceChoice::Gpu(Some(99)), work).unwrap_err().to_string();
        let n = gpu::adapters().len();
        let expected = if n == 0 { "no driver offers".to_owned() } else { format!("there are {n} adapters") };
        assert!(message.starts_with("device gpu:99: ") && message.contains(&expected), "{message}");
    }
}
