//! Query vectors compared with rows of vectors on a GPU: products of all queries with a block of rows, the largest
//! kept.
//!
//! The caller streams blocks of any number of rows; what is held is the queries, one block, its products and the lists.
//! Products are close to the exact ones, not equal: [`Scan::error`] bounds how far they can be off, so that a caller
//! who takes more rows than wanted can compute those exactly and know when no other row could have been among them. On
//! GPUs by Vulkan or Metal the products above each query's floor come back, and the lists are kept here.
//! Shapes: Q queries, R rows of a block, D values of a vector.

use candle_core::{DType, Device as Tensors, Tensor};

use crate::device::{self, Device, DeviceChoice, Work};
use crate::error::Result;
use crate::kernels::cuda::largest::Largest;
use crate::kernels::cuda::{products, transfer};
use crate::kernels::gpu::{Bits, Comparison, Found, Gpu, ROWS_STEP};
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
    form: Form,
    n_queries: usize,
    limit: usize,
    width: usize,
    row_type: RowType,
}

#[derive(Debug)]
enum Form {
    Tensors {
        queries: Queries,
        lists: Lists,
        device: Tensors,
    },
    /// Lists as [`Lists::Host`]; as many rows are compared next.
    Gpu {
        comparison: Comparison,
        lists: Vec<Vec<(u32, f32)>>,
        n_rows: usize,
    },
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

    /// The device of that choice; the CPU is one too, and slow.
    ///
    /// # Errors
    /// If it is not there.
    pub fn open(choice: DeviceChoice) -> Result<Self> {
        let (device, _) = device::open(choice, Work { precision: Precision::F32, form: device::Form::Layers })?;
        Ok(Self::new(device))
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
        let form = match &self.device {
            Device::Gpu(gpu) => on_gpu(gpu, &padded, width, row_type, block_rows)?,
            Device::Tensors(tensors) => {
                let queries = Queries::new(padded, (n_queries, width), row_type, tensors)?;
                let lists = match device::is_accelerator(&self.device) {
                    true => Lists::Device(Largest::new(n_queries, limit, block_rows, tensors)?),
                    false => Lists::Host(vec![Vec::new(); n_queries]),
                };
                Form::Tensors { queries, lists, device: tensors.clone() }
            }
        };
        Ok(Scan { form, n_queries, limit, width, row_type })
    }
}

fn on_gpu(gpu: &Gpu, queries: &[f32], width: usize, row_type: RowType, block_rows: usize) -> Result<Form> {
    let bits = match row_type {
        RowType::F32 => Bits::F32,
        RowType::F16 => Bits::F16,
    };
    let comparison = Comparison::new(gpu, queries, width, bits, block_rows)?;
    let n_rows = comparison.rows_safe();
    Ok(Form::Gpu { comparison, lists: vec![Vec::new(); queries.len() / width], n_rows })
}

impl Queries {
    fn new(values: Vec<f32>, shape: (usize, usize), row_type: RowType, device: &Tensors) -> Result<Self> {
        let exact = Tensor::from_vec(values, shape, device)?;
        Ok(match row_type {
            RowType::F32 => Queries::F32(exact),
            RowType::F16 => {
                let high = exact.to_dtype(DType::F16)?;
                let low = (exact - high.to_dtype(DType::F32)?)?.to_dtype(DType::F16)?;
                Queries::F16 { high, low }
            }
        })
    }
}

impl Scan {
    /// Largest difference of an approximate product from the exact one of two unit vectors.
    ///
    /// Products of two 16-bit values are exact in f32, what is left of a query beyond its 22 bits is below 2⁻²², and a
    /// sum of n values below 1 in all, however it is ordered and rounded, is off by less than n units of 2⁻²²: tensor
    /// cores cut bits off where the CPU rounds, which is why it is 2⁻²² and not 2⁻²⁴. The exact product is one of f32
    /// itself. On GPUs by Vulkan or Metal all values are f32, 16-bit ones exactly, and products are rounded once more.
    pub fn error(&self) -> f32 {
        (2 * self.width + 16) as f32 / (1 << 22) as f32
    }

    /// Takes in a block of rows, the first of which has the number `first_row`. `allowed` has a bit for each row of the
    /// block, 32 to a number, lowest first: rows whose bit is not set do not count.
    ///
    /// # Errors
    /// If the device fails.
    pub fn push(&mut self, rows: &[u8], first_row: u32, allowed: Option<&[u32]>) -> Result<()> {
        let row_bytes = self.width * self.row_type.dtype().size_in_bytes();
        let (queries, lists, device) = match &mut self.form {
            Form::Tensors { queries, lists, device } => (queries, lists, device),
            Form::Gpu { comparison, lists, n_rows } => {
                let block = Block { rows, row_bytes, first_row, allowed };
                return block.compare(comparison, lists, n_rows, self.limit);
            }
        };
        let shape = (rows.len() / row_bytes, self.width);
        let rows = transfer::upload_bytes(rows, self.row_type.dtype(), shape, device)?;
        let products = match queries {
            Queries::F32(queries) => products::scores(queries, &rows, None)?,
            Queries::F16 { high, low } => {
                let coarse = products::scores(high, &rows, None)?;
                products::scores(low, &rows, Some(coarse))?
            }
        };
        match lists {
            Lists::Device(lists) => {
                let allowed = allowed.map(|bits| transfer::upload(bits, device)).transpose()?;
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
        let lists = match self.form {
            Form::Tensors { lists: Lists::Device(lists), .. } => lists.finish()?,
            Form::Tensors { lists: Lists::Host(lists), .. } | Form::Gpu { lists, .. } => lists,
        };
        let kept = |rows: Vec<(u32, f32)>| Kept { floor: floor(&rows, self.limit).unwrap_or(f32::NEG_INFINITY), rows };
        Ok(lists.into_iter().map(kept).collect())
    }

    /// Queries.
    pub fn n_queries(&self) -> usize {
        self.n_queries
    }
}

impl RowType {
    fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F16 => DType::F16,
        }
    }
}

/// Rows that are compared with all queries.
struct Block<'a> {
    rows: &'a [u8],
    row_bytes: usize,
    first_row: u32,
    allowed: Option<&'a [u32]>,
}

impl Block<'_> {
    /// Takes the rows into the lists, some at a time: at first as many as may all come back, then twice as many after
    /// each success, since few are above the floors of lists that saw many.
    fn compare(
        &self,
        comparison: &mut Comparison,
        lists: &mut [Vec<(u32, f32)>],
        n_rows: &mut usize,
        limit: usize,
    ) -> Result<()> {
        let mut first = 0;
        while first < self.rows.len() / self.row_bytes {
            let last = (self.rows.len() / self.row_bytes).min(first + *n_rows);
            let rows = &self.rows[first * self.row_bytes..last * self.row_bytes];
            let allowed = self.allowed.map(|bits| &bits[first / ROWS_STEP..last.div_ceil(ROWS_STEP)]);
            let floors: Vec<f32> = lists.iter().map(|list| floor(list, limit).unwrap_or(f32::MIN)).collect();
            let Some(found) = comparison.above(rows, &floors, allowed)? else {
                *n_rows = (*n_rows / 2).next_multiple_of(ROWS_STEP); // not below `rows_safe`, of which all come back
                continue;
            };
            for Found { query, row, product } in found {
                lists[query as usize].push((self.first_row + first as u32 + row, product));
            }
            lists.iter_mut().for_each(|list| keep_largest(list, limit));
            *n_rows = (*n_rows * 2).min(comparison.rows_max());
            first = last;
        }
        Ok(())
    }
}

/// The smallest product of a list that has `limit` rows: what a row must exceed.
fn floor(list: &[(u32, f32)], limit: usize) -> Option<f32> {
    (list.len() >= limit).then(|| list.iter().map(|row| row.1).fold(f32::INFINITY, f32::min))
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
        let on_cpu = || check_blocks(&Accelerator::cpu());
        on_cpu();
        emulation::with(on_cpu);
        on_gpu(check_blocks);
    }

    /// A test on the first adapter, if there is one.
    fn on_gpu(test: impl FnOnce(&Accelerator)) {
        match Accelerator::open(DeviceChoice::Gpu(Some(0))) {
            Ok(accelerator) => test(&accelerator),
            Err(error) => eprintln!("skipped: {error} (Debian: libvulkan1, mesa-vulkan-drivers)"),
        }
    }

    fn check_blocks(accelerator: &Accelerator) {
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
        let on_cpu = || check_allowed(&Accelerator::cpu());
        on_cpu();
        emulation::with(on_cpu);
        on_gpu(check_allowed);
    }

    fn check_allowed(accelerator: &Accelerator) {
        let mut scan = accelerator.scan(&[1.0], 1, 4, RowType::F32, 2, 40).unwrap();
        let rows: Vec<u8> =
            (0..40u8).flat_map(|row| [f32::from(row), 9.0, 9.0, 9.0]).flat_map(f32::to_le_bytes).collect();
        scan.push(&rows, 100, Some(&[0b1010, 0b1])).unwrap();
        let mut kept = scan.finish().unwrap().remove(0);
        kept.rows.sort_by_key(|row| row.0);
        assert_eq!(kept.rows, [(103, 3.0), (132, 32.0)]);
    }

    /// More products above the floors than come back at once, and the smallest 16-bit floats, which devices may take
    /// for zero.
    #[test]
    fn on_a_gpu_no_product_is_lost_however_many_and_small_they_are() {
        on_gpu(|accelerator| {
            let (n_queries, width) = (300, 4);
            let queries: Vec<f32> = (0..n_queries).flat_map(|n| [1.0, n as f32, 0.0, 0.0]).collect();
            for n_rows in [1000, 20_000u16] {
                let mut scan = accelerator.scan(&queries, width, width, RowType::F16, 3, 20_000).unwrap();
                let row = |bits: u16| [bits, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes); // ascending
                let rows: Vec<u8> = (0..n_rows).flat_map(row).collect();
                scan.push(&rows, 7, None).unwrap();
                let expected: Vec<(u32, f32)> = (n_rows - 3..n_rows)
                    .map(|bits| (7 + u32::from(bits), half::f16::from_bits(bits).to_f32()))
                    .collect();
                for mut kept in scan.finish().unwrap() {
                    kept.rows.sort_by_key(|row| row.0);
                    assert_eq!((kept.rows, kept.floor), (expected.clone(), expected[0].1));
                }
            }
        });
    }
}
