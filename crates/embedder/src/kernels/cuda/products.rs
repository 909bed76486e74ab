//! Matrix products by cuBLAS: dense layers, and queries with blocks of rows.

use candle_core::{DType, Result, Tensor};

use super::PACK;

/// `x Wᵀ`: x \[T, K\], W \[N, K\]; sums in f32.
pub(crate) fn plain(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if x.device().is_cpu() && x.dtype() != DType::F32 {
        let wide = |tensor: &Tensor| tensor.to_dtype(DType::F32); // the CPU has no such products
        return wide(x)?.matmul(&wide(weight)?.t()?)?.to_dtype(x.dtype());
    }
    x.matmul(&weight.t()?)
}

/// `x Wᵀ + b` of 16-bit rows, the bias added before the sum is rounded: x \[T, K\], W \[N, K\], b \[N\], all of one
/// type.
pub(crate) fn biased(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return cuda::biased(x, weight, bias);
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
    use std::sync::{Arc, LazyLock};

    use candle_core::cuda_backend::cudarc::cublas;
    use candle_core::cuda_backend::cudarc::cublaslt::result::CublasError;
    use candle_core::cuda_backend::cudarc::cublaslt::{CudaBlasLT, Matmul, MatmulConfig};
    use candle_core::cuda_backend::{CudaStorageSlice, DeviceId, WrapErr};
    use candle_core::op::BackpropOp;
    use candle_core::{CudaDevice, CudaStorage, DType, Error, Result, Storage, Tensor};
    use parking_lot::Mutex;

    use crate::kernels::cuda::launch::{Address, unfilled};

    fn failed(error: CublasError) -> Error {
        Error::Cuda(Box::new(error))
    }

    /// One handle a device, with its workspace.
    fn lt(device: &CudaDevice) -> Result<Arc<CudaBlasLT>> {
        static HANDLES: LazyLock<Mutex<HashMap<DeviceId, Arc<CudaBlasLT>>>> = LazyLock::new(Mutex::default);
        let mut handles = HANDLES.lock();
        if let Some(handle) = handles.get(&device.id()) {
            return Ok(handle.clone());
        }
        let handle = Arc::new(CudaBlasLT::new(device.cuda_stream()).map_err(failed)?);
        handles.insert(device.id(), handle.clone());
        Ok(handle)
    }

    pub(super) fn biased(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
        let ((n_rows, n_inputs), n_outputs) = (x.dims2()?, weight.dim(0)?);
        assert!(x.is_contiguous() && weight.is_contiguous() && bias.is_contiguous(), "rows lie one after another");
        let device = x.device().as_cuda_device()?;
        let lt = lt(device)?;
        // Column by column, as cuBLAS sees it, the sum is outᵀ [N, T] = W [N, K] xᵀ [K, T], and the bias one value a
        // row.
        let config = MatmulConfig {
            transa: true,
            transb: false,
            transc: false,
            m: n_outputs as u64,
            n: n_rows as u64,
            k: n_inputs as u64,
            alpha: 1.0,
            lda: n_inputs as i64,
            ldb: n_inputs as i64,
            beta: 0.0,
            ldc: n_outputs as i64,
            stride_a: None,
            stride_b: None,
            stride_c: None,
            stride_bias: None,
            batch_size: None,
        };
        let [x, weight, bias] = [x, weight, bias].map(Tensor::storage_and_layout);
        let (Storage::Cuda(of_x), Storage::Cuda(of_weight), Storage::Cuda(of_bias)) = (&*x.0, &*weight.0, &*bias.0)
        else {
            return Err(Error::Msg("a dense layer has all its tensors on one device".to_owned()));
        };
        macro_rules! product {
            ($type:ident, $x:expr, $weight:expr, $bias:expr) => {{
                let (x, weight) = ($x.slice(x.1.start_offset()..), $weight.slice(weight.1.start_offset()..));
                let bias = $bias.slice(bias.1.start_offset()..);
                #[expect(
                    unsafe_code,
                    reason = "the product fills all of it; sizes and strides are those of the tensors"
                )]
                unsafe {
                    let mut out = device.alloc(n_rows * n_outputs)?;
                    lt.matmul(config, &weight, &x, &mut out, Some(&bias), None).map_err(failed)?;
                    CudaStorageSlice::$type(out)
                }
            }};
        }
        let slice = match (&of_x.slice, &of_weight.slice, &of_bias.slice) {
            (CudaStorageSlice::BF16(x), CudaStorageSlice::BF16(w), CudaStorageSlice::BF16(b)) => {
                product!(BF16, x, w, b)
            }
            (CudaStorageSlice::F16(x), CudaStorageSlice::F16(w), CudaStorageSlice::F16(b)) => product!(F16, x, w, b),
            _ => return Err(Error::Msg("a dense layer of 16-bit rows has weights and bias of their type".to_owned())),
        };
        let storage = Storage::Cuda(CudaStorage { slice, device: device.clone() });
        Ok(Tensor::from_storage(storage, (n_rows, n_outputs), BackpropOp::none(), false))
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
