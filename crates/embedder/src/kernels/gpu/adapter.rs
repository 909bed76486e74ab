//! An adapter: a graphics processor that a driver offers, or the CPU, playing one.

use std::fmt;

use wgpu::DeviceType;

#[cfg(test)]
use super::pretence::Pretence;

/// Bytes of workgroup memory that the kernels take, and threads of the largest workgroup.
pub(super) const WORKGROUP_BYTES: u32 = 16 * 1024;
const WORKGROUP_THREADS: u32 = 256;
/// Buffers that a kernel binds, at most.
const BINDINGS: u32 = 5;
/// Workgroups in one dimension of a launch, at most.
pub(super) const GROUPS_MAX: u32 = 65_535;

/// The kind of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, serde::Serialize)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum AdapterKind {
    /// A card with memory of its own.
    Discrete,
    /// A GPU that shares the CPU's memory.
    Integrated,
    /// A GPU of a virtual machine.
    Virtual,
    /// The CPU, playing a GPU: slower than the CPU's own kernels.
    Software,
    /// The driver does not say.
    Other,
}

/// An adapter, as its driver describes it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Adapter {
    /// Its number, as in `gpu:0`.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// The interface it is used by: `vulkan` or `metal`.
    pub interface: String,
    /// The driver's name.
    pub driver: String,
    /// The driver's version.
    pub driver_version: String,
    /// Its kind.
    pub kind: AdapterKind,
    /// True if it computes in 16-bit floats.
    pub has_f16: bool,
    /// True if threads of a subgroup exchange values.
    pub has_subgroups: bool,
    /// True if it multiplies small matrices in one instruction.
    pub has_cooperative_matrix: bool,
    /// Threads of a subgroup, fewest and most.
    pub subgroup_threads: [u32; 2],
    /// Bytes of memory that a workgroup shares.
    pub workgroup_bytes: u32,
    /// Bytes of the largest buffer.
    pub buffer_bytes_max: u64,
    /// Bytes that a kernel reads of one buffer, at most.
    pub binding_bytes_max: u64,
    /// The reason for which the kernels cannot run on it.
    pub too_small: Option<String>,
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, name, driver, driver_version, .. } = self;
        write!(f, "{interface} {name}, {driver} {driver_version}")
    }
}

impl Adapter {
    pub(super) fn new(number: usize, adapter: &wgpu::Adapter) -> Self {
        let (info, limits, features) = (adapter.get_info(), adapter.limits(), adapter.features());
        #[cfg(test)]
        let (mut info, mut limits, mut features) = (info, limits, features);
        #[cfg(test)]
        {
            let Pretence { is_hardware, binding_bytes_max, lacks_f16, .. } = Pretence::now();
            limits.max_storage_buffer_binding_size = limits.max_storage_buffer_binding_size.min(binding_bytes_max);
            features.set(wgpu::Features::SHADER_F16, !lacks_f16 && features.contains(wgpu::Features::SHADER_F16));
            info.device_type = if is_hardware { DeviceType::DiscreteGpu } else { info.device_type };
        }
        let interface = info.backend.to_str().to_owned();
        #[cfg(test)]
        let interface = if Pretence::now().is_metal { "metal".to_owned() } else { interface };
        let kind = match info.device_type {
            DeviceType::DiscreteGpu => AdapterKind::Discrete,
            DeviceType::IntegratedGpu => AdapterKind::Integrated,
            DeviceType::VirtualGpu => AdapterKind::Virtual,
            DeviceType::Cpu => AdapterKind::Software,
            DeviceType::Other => AdapterKind::Other,
        };
        Self {
            number,
            name: info.name,
            interface,
            driver: info.driver,
            driver_version: info.driver_info,
            kind,
            has_f16: features.contains(wgpu::Features::SHADER_F16),
            has_subgroups: features.contains(wgpu::Features::SUBGROUP),
            has_cooperative_matrix: !adapter.cooperative_matrix_properties().is_empty(),
            subgroup_threads: [info.subgroup_min_size, info.subgroup_max_size],
            workgroup_bytes: limits.max_compute_workgroup_storage_size,
            buffer_bytes_max: limits.max_buffer_size,
            binding_bytes_max: limits.max_storage_buffer_binding_size,
            too_small: too_small(&limits),
        }
    }
}

fn too_small(limits: &wgpu::Limits) -> Option<String> {
    let needs = [
        ("bytes of workgroup memory", limits.max_compute_workgroup_storage_size, WORKGROUP_BYTES),
        ("threads in a workgroup", limits.max_compute_invocations_per_workgroup, WORKGROUP_THREADS),
        ("buffers in a kernel", limits.max_storage_buffers_per_shader_stage, BINDINGS),
        ("workgroups in a dimension", limits.max_compute_workgroups_per_dimension, GROUPS_MAX),
    ];
    let lacking = needs.into_iter().find(|(_, has, needs)| has < needs);
    lacking.map(|(what, has, needs)| format!("it has {has} {what}, the kernels take {needs}"))
}
