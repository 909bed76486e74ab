//! How a kernel gets to the device: its name, its grid, and one struct of arguments laid out as in its source.

use candle_core::{CpuStorage, DType, Device, Error, Result, Shape, Storage, Tensor};

/// Number of threads of a kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub(super) blocks: [usize; 3],
    /// Of one block: a multiple of 32, at most what the kernel was compiled for.
    pub(super) threads: usize,
    /// Of one block.
    pub(super) shared_bytes: usize,
}

impl Grid {
    pub(super) fn new(blocks: [usize; 3], threads: usize) -> Self {
        Self { blocks, threads, shared_bytes: 0 }
    }

    /// For kernels whose blocks walk over `n_items`, a thread an item at a time.
    pub(super) fn over(n_items: usize) -> Self {
        const THREADS: usize = 256;
        const BLOCKS_MAX: usize = 132 * 16; // enough to fill the largest devices of today
        Self::new([n_items.div_ceil(THREADS).clamp(1, BLOCKS_MAX), 1, 1], THREADS)
    }
}

/// An address in device memory, or null.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct Address(u64);

impl Address {
    pub(super) const NULL: Self = Self(0);

    /// Where the first value of a contiguous tensor lies. It stays there as long as the tensor, or work queued on its
    /// stream.
    pub(super) fn of(tensor: &Tensor) -> Result<Self> {
        assert!(tensor.is_contiguous(), "kernels take rows that lie one after another, not {:?}", tensor.layout());
        let (storage, layout) = tensor.storage_and_layout();
        let start = match &*storage {
            Storage::Cpu(storage) => on_cpu(storage),
            #[cfg(feature = "cuda")]
            Storage::Cuda(storage) => cuda::address(storage),
            _ => None,
        };
        let offset = layout.start_offset() * tensor.dtype().size_in_bytes();
        start.map(|start| Self(start + offset as u64)).ok_or_else(|| {
            Error::Msg(format!("no kernel takes {:?} on {:?}", tensor.dtype(), tensor.device().location()))
        })
    }

    #[cfg(feature = "cuda")]
    pub(super) fn pointer(self) -> *mut std::ffi::c_void {
        self.0 as *mut _
    }

    pub(super) fn of_option(tensor: Option<&Tensor>) -> Result<Self> {
        tensor.map_or(Ok(Self::NULL), Self::of)
    }
}

fn on_cpu(storage: &CpuStorage) -> Option<u64> {
    match storage {
        CpuStorage::U32(values) => Some(values.as_ptr() as u64),
        CpuStorage::I64(values) => Some(values.as_ptr() as u64),
        CpuStorage::BF16(values) => Some(values.as_ptr() as u64),
        CpuStorage::F16(values) => Some(values.as_ptr() as u64),
        CpuStorage::F32(values) => Some(values.as_ptr() as u64),
        _ => None,
    }
}

/// A tensor for a kernel to fill.
pub(super) fn unfilled(shape: impl Into<Shape>, dtype: DType, device: &Device) -> Result<Tensor> {
    #[expect(unsafe_code, reason = "the kernel it is handed to writes every value before anyone reads")]
    unsafe {
        Tensor::empty(shape, dtype, device)
    }
}

/// Queues `kernel` for rows of `dtype` on the stream of `device`.
///
/// The caller vouches for the arguments: `A` is `#[repr(C)]` and field by field the struct in the kernel's source;
/// addresses are of tensors on `device` that are as large as the grid makes the kernel think, and alive until this
/// returns.
#[cfg_attr(not(any(feature = "cuda", test)), expect(unused_variables, reason = "there is nowhere to launch"))]
pub(super) fn launch<A: Copy>(kernel: &str, dtype: DType, grid: Grid, arguments: A, device: &Device) -> Result<()> {
    if grid.blocks.contains(&0) {
        return Ok(());
    }
    let suffix = match dtype {
        DType::BF16 => "bf16",
        DType::F16 => "f16",
        _ => "f32",
    };
    let name = format!("{kernel}_{suffix}");
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::launch(&name, grid, arguments, device),
        #[cfg(test)]
        Device::Cpu if super::emulation::is_on() => super::emulation::launch(&name, grid, &arguments),
        _ => {
            let Grid { blocks, threads, shared_bytes } = grid;
            let wanted = format!("{blocks:?} blocks of {threads} threads and {shared_bytes} bytes");
            Err(Error::Msg(format!("{name} is a kernel for CUDA devices: there is nowhere to launch {wanted}")))
        }
    }
}

/// The device of that number, with one stream for all that is computed on it.
#[cfg(feature = "cuda")]
pub(crate) fn open(number: usize) -> Result<Device> {
    cuda::open(number)
}

/// The device's number, what its maker calls it, and the versions of its software.
pub(crate) fn name(device: &Device) -> Option<String> {
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::name(device),
        _ => None,
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use candle_core::cuda_backend::cudarc::cublaslt::sys::cublasLtGetVersion;
    use candle_core::cuda_backend::cudarc::driver::{
        DevicePtr, LaunchConfig, PushKernelArg, result::device, result::mem_pool, sys,
    };
    use candle_core::cuda_backend::{CudaStorageSlice, WrapErr};
    use candle_core::{CudaDevice, CudaStorage, Device, Result};

    use super::Grid;

    /// Kernels by the file they are in: the beginning of a kernel's name and the PTX of its file, as `scripts/make-ptx`
    /// made it.
    const MODULES: [(&str, &str); 7] = [
        ("activate", include_str!("ptx/activation.ptx")),
        ("gate", include_str!("ptx/activation.ptx")),
        ("attend", include_str!("ptx/attention.ptx")),
        ("keep_largest", include_str!("ptx/largest.ptx")),
        ("pool", include_str!("ptx/pool.ptx")),
        ("rotate", include_str!("ptx/rotary.ptx")),
        ("rows", include_str!("ptx/rows.ptx")),
    ];

    /// Shared memory of a block that a kernel need not ask for.
    const SHARED_BYTES_UNASKED: usize = 48 << 10;

    /// A kernel's arguments as the driver takes them: one struct by value.
    #[repr(transparent)]
    struct ByValue<A>(A);

    #[expect(
        unsafe_code,
        reason = "the driver copies as many bytes as the kernel's argument has; `launch` says what must hold"
    )]
    unsafe impl<A: Copy> candle_core::cuda_backend::cudarc::driver::DeviceRepr for ByValue<A> {}

    pub(super) fn launch<A: Copy>(name: &str, grid: Grid, arguments: A, device: &CudaDevice) -> Result<()> {
        let (module, ptx) =
            MODULES.iter().find(|(module, _)| name.starts_with(module)).expect("every kernel's file is listed");
        let function = device.get_or_load_custom_func(name, module, ptx)?;
        if grid.shared_bytes > SHARED_BYTES_UNASKED {
            let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            function.set_attribute(attribute, grid.shared_bytes as i32).w()?;
        }
        let [x, y, z] = grid.blocks.map(|blocks| blocks as u32);
        let config = LaunchConfig {
            grid_dim: (x, y, z),
            block_dim: (grid.threads as u32, 1, 1),
            shared_mem_bytes: grid.shared_bytes as u32,
        };
        let arguments = ByValue(arguments);
        let mut builder = function.builder();
        builder.arg(&arguments);
        #[expect(unsafe_code, reason = "the callers of `super::launch` vouch for the arguments")]
        unsafe { builder.launch(config) }.w()?;
        Ok(())
    }

    pub(super) fn address(storage: &CudaStorage) -> Option<u64> {
        let stream = storage.device.cuda_stream();
        match &storage.slice {
            CudaStorageSlice::U32(values) => Some(values.device_ptr(&stream).0),
            CudaStorageSlice::I64(values) => Some(values.device_ptr(&stream).0),
            CudaStorageSlice::BF16(values) => Some(values.device_ptr(&stream).0),
            CudaStorageSlice::F16(values) => Some(values.device_ptr(&stream).0),
            CudaStorageSlice::F32(values) => Some(values.device_ptr(&stream).0),
            _ => None,
        }
    }

    pub(super) fn open(number: usize) -> Result<Device> {
        let opened = CudaDevice::new_with_stream(number)?;
        #[expect(
            unsafe_code,
            reason = "all work of the device is queued on its one stream, so no two uses of memory cross"
        )]
        unsafe {
            opened.disable_event_tracking();
        }
        keep_freed_memory(number)?;
        Ok(Device::Cuda(opened))
    }

    pub(super) fn name(device: &CudaDevice) -> Option<String> {
        let stream = device.cuda_stream();
        let context = stream.context();
        Some(format!("cuda:{} ({}, {})", context.ordinal(), context.name().ok()?, versions()))
    }

    /// The driver's CUDA and the cuBLAS beside it, which decide the bits of a vector, too.
    fn versions() -> String {
        let mut of_driver = 0;
        #[expect(unsafe_code, reason = "each writes or returns one number")]
        let of_library = unsafe {
            let _ = sys::cuDriverGetVersion(&raw mut of_driver); // 0 where it fails
            cublasLtGetVersion()
        };
        format!("CUDA {}.{}, cuBLAS {of_library}", of_driver / 1000, of_driver % 1000 / 10)
    }

    /// Tensors come and go with every layer: memory that is given back stays with the process, not with the driver.
    fn keep_freed_memory(number: usize) -> Result<()> {
        let mut all = u64::MAX;
        let threshold = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        #[expect(
            unsafe_code,
            reason = "the device exists, it was just opened, and the threshold is a 64-bit count of bytes"
        )]
        unsafe {
            let pool = device::get_default_mem_pool(device::get(number as i32).w()?).w()?;
            mem_pool::set_attribute(pool, threshold, (&raw mut all).cast()).w()
        }
    }
}
