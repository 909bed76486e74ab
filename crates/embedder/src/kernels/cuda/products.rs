//! Matrix products by cuBLAS: dense layers, and queries with blocks of rows.
//!
//! Left to itself cuBLAS picks an algorithm by the number of rows, and a row's sum has other bits in other company.
//! Here the algorithm of a dense layer is picked once, for as many rows as a full batch has, among those that walk a
//! sum from one end to the other, and is kept for any number of rows.

use candle_core::{DType, Result, Tensor};

use super::PACK;

/// `x Wᵀ`: x \[T, K\], W \[N, K\]; sums in f32.
pub(crate) fn plain(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if x.device().is_cpu() && x.dtype() != DType::F32 {
        let wide = |tensor: &Tensor| tensor.to_dtype(DType::F32); // the CPU has no such products
        return wide(x)?.matmul(&wide(weight)?.t()?)?.to_dtype(x.dtype());
    }
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return cuda::product(x, weight, None);
    }
    x.matmul(&weight.t()?)
}

/// `x Wᵀ + b` of 16-bit rows, the bias added before the sum is rounded: x \[T, K\], W \[N, K\], b \[N\], all of one
/// type.
pub(crate) fn biased(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return cuda::product(x, weight, Some(bias));
    }
    let wide = |tensor: &Tensor| tensor.to_dtype(DType::F32);
    plain(&wide(x)?, &wide(weight)?)?.broadcast_add(&wide(bias)?)?.to_dtype(x.dtype())
}

/// True if [`biased`] is for products like these: 16-bit, with rows that fill 16 bytes.
pub(crate) fn takes_biased(x: &Tensor, weight: &Tensor) -> bool {
    super::takes(x) && x.dtype() != DType::F32 && weight.dims().iter().all(|size| size.is_multiple_of(PACK))
}

/// Products f32 \[Q, R\] of queries \[Q, D\] with rows \[R, D\], both f32 or both 16-bit; sums in f32. With `onto` the
/// products are added to it, in place.
pub(crate) fn scores(queries: &Tensor, rows: &Tensor, onto: Option<Tensor>) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if queries.device().is_cuda() && rows.dtype() == DType::F16 {
        return cuda::scores(queries, rows, onto);
    }
    let products = queries.to_dtype(DType::F32)?.matmul(&rows.to_dtype(DType::F32)?.t()?)?;
    match onto {
        Some(sums) => sums + products,
        None => Ok(products),
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use std::collections::HashMap;
    use std::ffi::c_void;
    use std::sync::LazyLock;

    use candle_core::cuda_backend::cudarc::cublaslt::result::{self, CublasError};
    use candle_core::cuda_backend::cudarc::cublaslt::sys;
    use candle_core::cuda_backend::cudarc::driver::{CudaSlice, DevicePtr};
    use candle_core::cuda_backend::{DeviceId, WrapErr, cudarc::cublas};
    use candle_core::{CudaDevice, DType, Error, Result, Tensor};
    use parking_lot::Mutex;

    use crate::kernels::cuda::launch::{Address, unfilled};

    /// Rows for which an algorithm is picked: those of a full batch.
    const ROWS_OF_CHOICE: usize = 16_384;
    /// Bytes that an algorithm may take beside its matrices: what NVIDIA recommends for Hopper.
    const WORKSPACE_BYTES: usize = 32 << 20;

    fn failed(error: CublasError) -> Error {
        Error::Cuda(Box::new(error))
    }

    /// A product's algorithm is that of its numbers, K, N, and whether a bias is added.
    type Shape = (DType, usize, usize, bool);

    /// cuBLASLt on one device.
    struct Library {
        handle: sys::cublasLtHandle_t,
        workspace: CudaSlice<u8>,
        algorithms: HashMap<Shape, sys::cublasLtMatmulAlgo_t>,
    }

    #[expect(unsafe_code, reason = "the library's handles may be used by any thread, one at a time")]
    unsafe impl Send for Library {}

    /// For the life of the process.
    static LIBRARIES: LazyLock<Mutex<HashMap<DeviceId, Library>>> = LazyLock::new(Mutex::default);

    impl Library {
        fn open(device: &CudaDevice) -> Result<Self> {
            #[expect(unsafe_code, reason = "nobody reads what is in a workspace")]
            let workspace = unsafe { device.alloc::<u8>(WORKSPACE_BYTES) }?;
            Ok(Self { handle: result::create_handle().map_err(failed)?, workspace, algorithms: HashMap::new() })
        }
    }

    /// A product `outᵀ [N, T] = W [N, K] xᵀ [K, T]`, column by column, as cuBLAS sees it; the bias is one value a row.
    struct Product {
        description: sys::cublasLtMatmulDesc_t,
        weight: sys::cublasLtMatrixLayout_t,
        x: sys::cublasLtMatrixLayout_t,
        out: sys::cublasLtMatrixLayout_t,
    }

    impl Product {
        fn new((dtype, n_inputs, n_outputs, _): Shape, n_rows: usize, bias: Option<Address>) -> Result<Self> {
            let of_values = match dtype {
                DType::F32 => sys::cudaDataType_t::CUDA_R_32F,
                DType::BF16 => sys::cudaDataType_t::CUDA_R_16BF,
                DType::F16 => sys::cudaDataType_t::CUDA_R_16F,
                _ => return Err(Error::Msg(format!("rows of a layer are f32, bf16 or f16, not {dtype:?}"))),
            };
            let layout = |n_lines: usize, n_columns: usize| {
                result::create_matrix_layout(of_values, n_lines as u64, n_columns as u64, n_lines as i64)
                    .map_err(failed)
            };
            let compute = sys::cublasComputeType_t::CUBLAS_COMPUTE_32F;
            let product = Self {
                description: result::create_matmul_desc(compute, sys::cudaDataType_t::CUDA_R_32F).map_err(failed)?,
                weight: layout(n_inputs, n_outputs)?,
                x: layout(n_inputs, n_rows)?,
                out: layout(n_outputs, n_rows)?,
            };
            let transposed = cublas::sys::cublasOperation_t::CUBLAS_OP_T as i32;
            product.set(sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA, &transposed)?;
            if let Some(bias) = bias {
                let added = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
                product.set(sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_EPILOGUE, &added)?;
                let at = bias.pointer();
                product.set(sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at)?;
            }
            Ok(product)
        }

        fn set<T>(&self, attribute: sys::cublasLtMatmulDescAttributes_t, value: &T) -> Result<()> {
            let at = std::ptr::from_ref(value).cast::<c_void>();
            #[expect(unsafe_code, reason = "the library copies as many bytes as the value has")]
            unsafe { result::set_matmul_desc_attribute(self.description, attribute, at, size_of::<T>()) }
                .map_err(failed)
        }

        /// The algorithm that the library thinks fastest, among those that do not split sums.
        fn algorithm(&self, library: sys::cublasLtHandle_t) -> Result<sys::cublasLtMatmulAlgo_t> {
            use sys::cublasLtMatmulPreferenceAttributes_t::{
                CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
            };
            let unsplit = sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_NONE as u32;
            let most = WORKSPACE_BYTES;
            let wishes = result::create_matmul_pref().map_err(failed)?;
            let Self { description, weight, x, out } = *self;
            #[expect(unsafe_code, reason = "the values live as long as the calls, and all handles are open")]
            let picked = unsafe {
                let set = |attribute, at: *const c_void, n_bytes| {
                    result::set_matmul_pref_attribute(wishes, attribute, at, n_bytes)
                };
                set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (&raw const most).cast(), size_of::<usize>())
                    .and_then(|()| {
                        set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, (&raw const unsplit).cast(), size_of::<u32>())
                    })
                    .and_then(|()| result::get_matmul_algo_heuristic(library, description, weight, x, out, out, wishes))
            };
            #[expect(unsafe_code, reason = "made above, and not used any more")]
            unsafe { result::destroy_matmul_pref(wishes) }.map_err(failed)?;
            Ok(picked.map_err(failed)?.algo)
        }
    }

    impl Drop for Product {
        fn drop(&mut self) {
            #[expect(unsafe_code, reason = "made when the product was, and not used any more")]
            unsafe {
                // what cannot be destroyed is lost, and nothing more
                let _ = result::destroy_matmul_desc(self.description);
                for layout in [self.weight, self.x, self.out] {
                    let _ = result::destroy_matrix_layout(layout);
                }
            }
        }
    }

    /// `x Wᵀ + b`.
    pub(super) fn product(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let (x, n_outputs) = (x.contiguous()?, weight.dim(0)?);
        let (n_rows, n_inputs) = x.dims2()?;
        assert_eq!((weight.dtype(), weight.dim(1)?), (x.dtype(), n_inputs), "a layer's weights are of its rows' kind");
        let out = unfilled((n_rows, n_outputs), x.dtype(), x.device())?;
        if n_rows == 0 {
            return Ok(out);
        }
        let shape = (x.dtype(), n_inputs, n_outputs, bias.is_some());
        let of_bias = bias.map(Address::of).transpose()?;
        let device = x.device().as_cuda_device()?;
        let stream = device.cuda_stream();
        stream.context().bind_to_thread().w()?;
        let [at_x, at_weight, at_out] =
            [Address::of(&x)?, Address::of(weight)?, Address::of(&out)?].map(Address::pointer);
        let product = Product::new(shape, n_rows, of_bias)?;
        let mut libraries = LIBRARIES.lock();
        let library = match libraries.entry(device.id()) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => new.insert(Library::open(device)?),
        };
        let algorithm = match library.algorithms.get(&shape) {
            Some(algorithm) => *algorithm,
            None => {
                let algorithm = Product::new(shape, ROWS_OF_CHOICE, of_bias)?.algorithm(library.handle)?;
                library.algorithms.insert(shape, algorithm);
                algorithm
            }
        };
        let (workspace, _recorded) = library.workspace.device_ptr(&stream);
        let (alpha, beta) = (1.0f32, 0.0f32);
        #[expect(unsafe_code, reason = "sizes are those of the tensors, which lie on this device, row after row")]
        unsafe {
            result::matmul(
                library.handle,
                product.description,
                (&raw const alpha).cast(),
                (&raw const beta).cast(),
                at_weight,
                product.weight,
                at_x,
                product.x,
                at_out,
                product.out,
                at_out,
                product.out,
                &raw const algorithm,
                workspace as *mut c_void,
                WORKSPACE_BYTES,
                stream.cu_stream().cast(),
            )
        }
        .map_err(failed)?;
        Ok(out)
    }

    pub(super) fn scores(queries: &Tensor, rows: &Tensor, onto: Option<Tensor>) -> Result<Tensor> {
        use cublas::sys::{cublasComputeType_t, cublasGemmAlgo_t, cublasOperation_t, cudaDataType};
        let ((n_queries, width), n_rows) = (queries.dims2()?, rows.dim(0)?);
        assert_eq!((queries.dtype(), rows.dim(1)?), (DType::F16, width), "queries have the type and width of the rows");
        let (alpha, beta) = (1.0f32, if onto.is_some() { 1.0f32 } else { 0.0 });
        let out = match onto {
            Some(sums) => sums,
            None => unfilled((n_queries, n_rows), DType::F32, rows.device())?,
        };
        let device = rows.device().as_cuda_device()?;
        device.cuda_stream().context().bind_to_thread().w()?;
        let addresses = [Address::of(rows)?, Address::of(queries)?, Address::of(&out)?].map(Address::pointer);
        // outᵀ [R, Q] = rows [R, D] queriesᵀ [D, Q], column by column
        #[expect(unsafe_code, reason = "sizes and strides are those of the three tensors, which lie on one device")]
        unsafe {
            cublas::result::gemm_ex(
                *device.cublas_handle().handle(),
                cublasOperation_t::CUBLAS_OP_T,
                cublasOperation_t::CUBLAS_OP_N,
                n_rows as i32,
                n_queries as i32,
                width as i32,
                (&raw const alpha).cast(),
                addresses[0],
                cudaDataType::CUDA_R_16F,
                width as i32,
                addresses[1],
                cudaDataType::CUDA_R_16F,
                width as i32,
                (&raw const beta).cast(),
                addresses[2],
                cudaDataType::CUDA_R_32F,
                n_rows as i32,
                cublasComputeType_t::CUBLAS_COMPUTE_32F,
                cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
            .w()?;
        }
        Ok(out)
    }
}
