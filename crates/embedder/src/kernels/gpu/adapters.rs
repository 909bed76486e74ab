//! The adapters of this machine, and how one is opened.

use wgpu::{Backends, DeviceType, Instance, InstanceDescriptor, InstanceFlags};

use super::adapter::{Adapter, AdapterKind};
use super::failure::ready;
use super::handle::Gpu;

/// Why there is no such adapter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAdapter {
    #[error(
        "no driver offers an adapter; a GPU needs its maker's Vulkan driver and the loader libvulkan (Mesa has both)"
    )]
    None,
    #[error("there are {n} adapters, numbered from 0")]
    Number { n: usize },
    #[error("there is no GPU: {name} is the CPU, playing one; it has to be named by its number, {number}")]
    SoftwareAlone { name: String, number: usize },
    #[error("{adapter} is too small: {reason}")]
    TooSmall { adapter: String, reason: String },
    #[error("{adapter} cannot be opened: {reason}")]
    Refused { adapter: String, reason: String },
}

/// Adapters by Vulkan and Metal, real ones first.
fn found() -> Vec<(Adapter, wgpu::Adapter)> {
    let backends = Backends::VULKAN | Backends::METAL;
    // no validation layers and no debug names, whatever the build: they cost time and talk to standard error
    let flags = InstanceFlags::empty();
    let instance =
        Instance::new(InstanceDescriptor { backends, flags, ..InstanceDescriptor::new_without_display_handle() });
    let mut adapters = ready(instance.enumerate_adapters(backends)).unwrap_or_default();
    adapters.sort_by_key(|adapter| adapter.get_info().device_type == DeviceType::Cpu); // stable
    adapters.into_iter().enumerate().map(|(number, adapter)| (Adapter::new(number, &adapter), adapter)).collect()
}

/// True if there may be a GPU: asked before a driver is loaded, which takes time, and some of which write to standard
/// error. On Linux a GPU has a node in `/dev`; other systems do not say.
pub(crate) fn may_have_hardware() -> bool {
    #[cfg(test)]
    if super::pretence::Pretence::now().is_hardware {
        return true;
    }
    if !cfg!(target_os = "linux") {
        return true;
    }
    let holds = |folder: &str, is_gpu: fn(&str) -> bool| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_str().is_some_and(is_gpu))
    };
    let is_nvidia = |name: &str| name.strip_prefix("nvidia").is_some_and(|rest| rest.parse::<u32>().is_ok());
    holds("/dev/dri", |name| name.starts_with("renderD"))
        || holds("/dev", is_nvidia)
        || holds("/dev", |name| name == "dxg")
}

/// All adapters, real ones first, in the order of the drivers; none where there is no loader or no driver.
pub(crate) fn adapters() -> Vec<Adapter> {
    found().into_iter().map(|(adapter, _)| adapter).collect()
}

/// Opens the adapter of that number; without one, the first that is no software.
pub(crate) fn open(number: Option<usize>) -> Result<Gpu, NoAdapter> {
    let mut found = found();
    let n = found.len();
    let Some((first, _)) = found.first() else { return Err(NoAdapter::None) };
    if number.is_none() && first.kind == AdapterKind::Software {
        return Err(NoAdapter::SoftwareAlone { name: first.name.clone(), number: first.number });
    }
    let number = number.unwrap_or(0);
    if number >= n {
        return Err(NoAdapter::Number { n });
    }
    let (adapter, handle) = found.swap_remove(number);
    if let Some(reason) = &adapter.too_small {
        return Err(NoAdapter::TooSmall { adapter: adapter.to_string(), reason: reason.clone() });
    }
    let refused = |reason: String| NoAdapter::Refused { adapter: adapter.to_string(), reason };
    Gpu::open(&adapter, &handle).map_err(refused)
}
