//! Query vectors compared with rows of vectors on a GPU: products of all queries with a block of rows, the largest
//! kept.
//!
//! The caller streams blocks of any number of rows; what is held is the queries, one block, its products and the lists.
//! Products are close to the exact ones, not equal: [`Scan::error`] bounds how far they can be off, so that a caller
//! who takes more rows than wanted can compute those exactly and know when no other row could have been among them.
//! Shapes: Q queries, R rows of a block, D values of a vector.

use candle_core::{DType, Tensor};

use crate::device::{self, Device, DeviceChoice, Form, Work};
use crate::error::Result;
use crate::kernels::cuda::largest::Largest;
use crate::kernels::cuda::{products, transfer};
use crate::precision::Precision;

/// A place where vectors can be compared; cheap to copy.
#[derive(Debug, Clone)]
pub struct Accelerator {
    device: Device,
}

/// Number type of the rows of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowType {
    /// 32-bit floats, little-endian.
    F32,
    /// 16-bit IEEE floats, little-endian.
    F16,
}

/// The rows a scan kept for a query.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// Rows and their approximate products, in no order.
    pub rows: Vec<(u32, f32)>,
    /// No row that was left out has a larger approximate product; minus infinity where none was left out.
    pub floor: f32,
}

/// A scan in progress.
#[derive(Debug)]
pub struct Scan {
    queries: Queries,
    lists: Lists,
    n_queries: usize,
    limit: usize,
    width: usize,
    row_type: RowType,
    device: Device,
}

/// The queries in the type of the rows, so that products are sums of exact products.
#[derive(Debug)]
enum Queries {
    F32(Tensor),
    /// Each value as the sum of two of 11 bits.
    F16 {
        high: Tensor,
        low: Tensor,
    },
}

#[derive(Debug)]
enum Lists {
    Device(Largest),
    /// Where there is no kernel: row and product of all that count, cut when they are many.
    Host(Vec<Vec<(u32, f32)>>),
}

impl Accelerator {
    pub(crate) fn new(device: Device) -> Self {
        Self { device }
    }

    /// The device of a model, or the CPU where that device compares no vectors.
    pub(crate) fn beside(device: &Device) -> Self {
        match device {
            Device::Tensors(_) => Self::new(device.clone()),
            Device::Gpu(_) => Self::cpu(),
        }
    }

    /// The device of that choice; the CPU is one too, and slow. On GPUs by Vulkan or Metal vectors are not compared:
    /// `auto` passes over them.
    ///
    /// # Errors
    /// If it is not there, or does not compare vectors.
    pub fn open(choice: DeviceChoice) -> Result<Self> {
        let (device, _) = device::open(choice, Work { precision: Precision::F32, form: Form::Layers })?;
        match (device, choice) {
            (Device::Gpu(_), DeviceChoice::Auto) => Ok(Self::cpu()),
            (Device::Gpu(_), _) => {
                let reason = "vectors are compared on the CPU and by CUDA; use cpu or cuda:N";
                Err(device::unavailable(choice, reason.to_owned()))
            }
            (device @ Device::Tensors(_), _) => Ok(Self::new(device)),
        }
    }

    /// No accelerator: the CPU.
    pub fn cpu() -> Self {
        Self::new(Device::CPU)
    }

    /// The device in words.
    pub fn name(&self) -> String {
        device::name(&self.device)
    }

    /// True if this is no accelerator after all.
    pub fn is_cpu(&self) -> bool {
        self.device.is_cpu()
    }

    /// Begins to compare queries \[Q, D\] with rows of `width` values, the first D of which count and the others are
    /// zero; for each query the `limit` rows with the largest products are kept. No block will have more than
    /// `block_rows` rows.
    ///
    /// # Errors
    /// If the device fails or its memory is full: then fewer queries at a time may do.
    pub fn scan(
        &self,
        queries: &[f32],
        dimensions: usize,
        width: usize,
        row_type: RowType,
        limit: usize,
        block_rows: usize,
    ) -> Result<Scan> {
        let n_queries = queries.len() / dimensions;
        assert!(n_queries * dimensions == queries.len() && dimensions <= width, "queries are [Q, D]");
        let mut padded = vec![0.0; n_queries * width];
        for (to, from) in padded.chunks_exact_mut(width).zip(queries.chunks_exact(dimensions)) {
            to[..dimensions].copy_from_slice(from);
        }
        let exact = Tensor::from_vec(padded, (n_queries, width), self.device.tensors())?;
        let queries = match row_type {
            RowType::F32 => Queries::F32(exact),
            RowType::F16 => {
                let high = exact.to_dtype(DType::F16)?;
                let low = (exact - high.to_dtype(DType::F32)?)?.to_dtype(DType::F16)?;
                Queries::F16 { high, low }
            }
        };
        let lists = if device::is_accelerator(&self.device) {
            Lists::Device(Largest::new(n_queries, limit, block_rows, self.device.tensors())?)
        } else {
            Lists::Host(vec![Vec::new(); n_queries])
        };
        Ok(Scan { queries, lists, n_queries, limit, width, row_type, device: self.device.clone() })
    }
}

impl Scan {
    /// Largest difference of an approximate product from the exact one of two unit vectors.
    ///
    /// Products of two 16-bit values are exact in f32, what is left of a query beyond its 22 bits is below 2⁻²², and a
    /// sum of n values below 1 in all, however it is ordered and rounded, is off by less than n units of 2⁻²²: tensor
    /// cores cut bits off where the CPU rounds, which is why it is 2⁻²² and not 2⁻²⁴. The exact product is one of f32
    /// itself.
    pub fn error(&self) -> f32 {
        (2 * self.width + 16) as f32 / (1 << 22) as f32
    }

    /// Takes in a block of rows, the first of which has the number `first_row`. `allowed` has a bit for each row of the
    /// block, 32 to a number, lowest first: rows whose bit is not set do not count.
    ///
    /// # Errors
    /// If the device fails.
    pub fn push(&mut self, rows: &[u8], first_row: u32, allowed: Option<&[u32]>) -> Result<()> {
        let rows = self.upload(rows)?;
        let products = match &self.queries {
            Queries::F32(queries) => products::scores(queries, &rows, None)?,
            Queries::F16 { high, low } => {
                let coarse = products::scores(high, &rows, None)?;
                products::scores(low, &rows, Some(coarse))?
            }
        };
        match &mut self.lists {
            Lists::Device(lists) => {
                let allowed = allowed.map(|bits| transfer::upload(bits, self.device.tensors())).transpose()?;
                lists.push(&products, first_row, allowed.as_ref())?;
            }
            Lists::Host(lists) => {
                let counts = |row: usize| allowed.is_none_or(|bits| bits[row / 32] >> (row % 32) & 1 == 1);
                for (list, products) in lists.iter_mut().zip(products.to_vec2::<f32>()?) {
                    let rows = products.into_iter().enumerate().filter(|&(row, _)| counts(row));
                    list.extend(rows.map(|(row, product)| (first_row + row as u32, product)));
                    keep_largest(list, self.limit);
                }
            }
        }
        Ok(())
    }

    /// For each query what was kept.
    ///
    /// # Errors
    /// If the device fails.
    pub fn finish(self) -> Result<Vec<Kept>> {
        let lists = match self.lists {
            Lists::Device(lists) => lists.finish()?,
            Lists::Host(lists) => lists,
        };
        let limit = self.limit;
        let kept = lists.into_iter().map(|rows| {
            let smallest = rows.iter().map(|row| row.1).fold(f32::INFINITY, f32::min);
            let floor = if rows.len() < limit { f32::NEG_INFINITY } else { smallest };
            Kept { rows, floor }
        });
        Ok(kept.collect())
    }

    /// Queries.
    pub fn n_queries(&self) -> usize {
        self.n_queries
    }

    fn upload(&self, bytes: &[u8]) -> Result<Tensor> {
        let dtype = match self.row_type {
            RowType::F32 => DType::F32,
            RowType::F16 => DType::F16,
        };
        let n_rows = bytes.len() / (self.width * dtype.size_in_bytes());
        Ok(transfer::upload_bytes(bytes, dtype, (n_rows, self.width), self.device.tensors())?)
    }
}

/// Cuts a list to its `limit` first by product, then by number.
fn keep_largest(list: &mut Vec<(u32, f32)>, limit: usize) {
    if list.len() > limit {
        list.select_nth_unstable_by(limit, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))); // those before it are the largest
        list.truncate(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::cpu::noise;
    use crate::kernels::cuda::emulation;

    /// Rows as the bytes of their type.
    fn bytes(rows: &Tensor) -> Vec<u8> {
        let bits = |rows: &Tensor| rows.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        match rows.dtype() {
            DType::F16 => {
                // through the tensor library's own file format, which is the values as they lie in memory
                let mut file = std::collections::HashMap::new();
                file.insert("rows".to_owned(), rows.clone());
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("rows.safetensors");
                candle_core::safetensors::save(&file, &path).unwrap();
                let all = std::fs::read(path).unwrap();
                all[all.len() - rows.elem_count() * 2..].to_vec()
            }
            _ => bits(rows).into_iter().flat_map(f32::to_le_bytes).collect(),
        }
    }

    #[test]
    fn blocks_of_any_size_keep_the_same_rows() {
        check_blocks();
        emulation::with(check_blocks);
    }

    fn check_blocks() {
        let (n_queries, n_rows, dimensions, width) = (5, 300, 20, 32);
        let queries = noise(1, n_queries * dimensions);
        for (row_type, dtype) in [(RowType::F32, DType::F32), (RowType::F16, DType::F16)] {
            let rows = Tensor::from_vec(noise(2, n_rows * width), (n_rows, width), &candle_core::Device::Cpu).unwrap();
            let rows = rows.to_dtype(dtype).unwrap();
            let exact: Vec<Vec<f64>> = queries
                .chunks(dimensions)
                .map(|query| {
                    let rows = rows.to_dtype(DType::F64).unwrap().to_vec2::<f64>().unwrap();
                    rows.iter().map(|row| query.iter().zip(row).map(|(q, x)| f64::from(*q) * x).sum()).collect()
                })
                .collect();
            for (limit, block_rows) in [(7, 300), (7, 64), (40, 33), (400, 128)] {
                let accelerator = Accelerator::open(DeviceChoice::Cpu).unwrap();
                let mut scan = accelerator.scan(&queries, dimensions, width, row_type, limit, block_rows).unwrap();
                let bytes = bytes(&rows);
                for (n, block) in bytes.chunks(block_rows * width * dtype.size_in_bytes()).enumerate() {
                    scan.push(block, (n * block_rows) as u32, None).unwrap();
                }
                let error = f64::from(scan.error()) * dimensions as f64; // these are no unit vectors
                for (kept, exact) in scan.finish().unwrap().into_iter().zip(&exact) {
                    assert_eq!(kept.rows.len(), limit.min(n_rows));
                    for &(row, product) in &kept.rows {
                        assert!((f64::from(product) - exact[row as usize]).abs() <= error, "{product} {row}");
                    }
                    let left_out = (0..n_rows as u32).filter(|row| kept.rows.iter().all(|kept| kept.0 != *row));
                    for row in left_out {
                        assert!(exact[row as usize] <= f64::from(kept.floor) + error, "row {row}");
                    }
                }
            }
        }
    }

    #[test]
    fn rows_that_are_not_allowed_do_not_count() {
        check_allowed();
        emulation::with(check_allowed);
    }

    fn check_allowed() {
        let accelerator = Accelerator::open(DeviceChoice::Cpu).unwrap();
        let mut scan = accelerator.scan(&[1.0], 1, 1, RowType::F32, 2, 40).unwrap();
        let rows: Vec<u8> = (0..40u8).flat_map(|row| f32::from(row).to_le_bytes()).collect();
        scan.push(&rows, 100, Some(&[0b1010, 0b1])).unwrap();
        let mut kept = scan.finish().unwrap().remove(0);
        kept.rows.sort_by_key(|row| row.0);
        assert_eq!(kept.rows, [(103, 3.0), (132, 32.0)]);
    }
}
