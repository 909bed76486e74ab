//! Query vectors compared with rows of vectors: products above each query's floor come back, and no others.
//!
//! Shapes: Q queries and R rows of K values, a multiple of 4; rows in f32 or f16.
//! Cost: 2 Q R K operations; the rows go to the device, and of Q R products those above the floors come back.

use bytemuck::{Pod, Zeroable, cast_slice, pod_read_unaligned};
use wgpu::{Buffer, BufferUsages};

use super::failure::{Failure, Result, failed};
use super::product::ProductTile;
use super::record::Download;
use super::table::Table;
use super::{Gpu, Recorder};

/// Products that can come back from one launch.
const FOUND_MAX: usize = 1 << 20;
/// The tiles of products of queries and rows.
const TILE: ProductTile = ProductTile::Large;
/// Rows are compared by this many, as bits lie in numbers.
pub(crate) const ROWS_STEP: usize = 32;

/// The product of a query with a row.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Found {
    pub(crate) query: u32,
    pub(crate) row: u32,
    pub(crate) product: f32,
}

/// The bits of a row's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bits {
    F32,
    F16,
}

/// Queries on a GPU, and room for rows and products.
#[derive(Debug)]
pub(crate) struct Comparison {
    recorder: Recorder,
    queries: Table,
    rows: Buffer,
    floors: Buffer,
    found: Buffer,
    n_queries: usize,
    row_bytes: usize,
    rows_max: usize,
    /// Without and with bits of the rows that count.
    texts: [String; 2],
}

impl Comparison {
    /// From queries \[Q, K\]; no more than `rows_max` rows will be compared at a time.
    pub(crate) fn new(gpu: &Gpu, queries: &[f32], width: usize, bits: Bits, rows_max: usize) -> Result<Self> {
        assert!(width.is_multiple_of(4), "rows of {width} values: those of collections are whole lines of a cache");
        let n_queries = queries.len() / width;
        let row_bytes = match bits {
            Bits::F32 => width * size_of::<f32>(),
            Bits::F16 => width * size_of::<u16>(),
        };
        let n_bytes = n_queries * ROWS_STEP * size_of::<Found>();
        if n_bytes > FOUND_MAX * size_of::<Found>() {
            return Err(failed(Failure::OutOfMemory { gpu: gpu.name(), n_bytes: n_bytes as u64 }));
        }
        let countable = u32::MAX as usize / n_queries.max(1); // products
        let fitting = rows_max.next_multiple_of(ROWS_STEP).min(gpu.binding_bytes_max() / row_bytes).min(countable);
        let rows_max = (fitting / ROWS_STEP * ROWS_STEP).max(ROWS_STEP);
        let buffer = |n_bytes: usize| {
            gpu.buffer(n_bytes as u64, BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST)
        };
        Ok(Self {
            queries: Table::new(gpu, queries)?,
            rows: buffer(rows_max * row_bytes)?,
            floors: buffer(n_queries * size_of::<f32>())?,
            found: buffer(size_of::<u32>() + FOUND_MAX * size_of::<Found>())?,
            n_queries,
            row_bytes,
            rows_max,
            texts: [false, true].map(|has_allowed| text(gpu, width, bits, has_allowed)),
            recorder: Recorder::new(gpu.clone()),
        })
    }

    /// Rows that are compared at a time, at most: a multiple of [`ROWS_STEP`].
    pub(crate) fn rows_max(&self) -> usize {
        self.rows_max
    }

    /// Rows of which all products can come back: a multiple of [`ROWS_STEP`].
    pub(crate) fn rows_safe(&self) -> usize {
        (FOUND_MAX / self.n_queries.max(1) / ROWS_STEP * ROWS_STEP).min(self.rows_max)
    }

    /// The products with rows that are larger than the floors of their queries, in no order; nothing if they are too
    /// many. `allowed` has a bit for each row, 32 to a number, lowest first: rows whose bit is not set do not count.
    pub(crate) fn above(&mut self, rows: &[u8], floors: &[f32], allowed: Option<&[u32]>) -> Result<Option<Vec<Found>>> {
        let n_rows = rows.len() / self.row_bytes;
        assert!(n_rows <= self.rows_max && floors.len() == self.n_queries, "{n_rows} rows, {} floors", floors.len());
        let Self { recorder, queries, rows: on_gpu, floors: floors_on_gpu, found, texts, .. } = self;
        let gpu = recorder.gpu().clone();
        gpu.write(on_gpu, rows)?;
        gpu.write(floors_on_gpu, cast_slice(floors))?;
        gpu.write(found, &0u32.to_le_bytes())?;
        let allowed = allowed.map(|bits| Table::new(&gpu, bits)).transpose()?;
        let mut buffers = vec![
            queries.bound(),
            (&*on_gpu, rows.len() as u64),
            (&*found, found.size()),
            (&*floors_on_gpu, floors_on_gpu.size()),
        ];
        buffers.extend(allowed.as_ref().map(Table::bound));
        let tiles = [self.n_queries, n_rows].map(|n| n.div_ceil(TILE.size()) as u32);
        recorder.run(&texts[usize::from(allowed.is_some())], &buffers, tiles)?;
        recorder.submit()?;
        let read = |n_bytes: usize| Download::start(&gpu, found, n_bytes as u64)?.read(<[u8]>::to_vec);
        let n_found = pod_read_unaligned::<u32>(&read(size_of::<u32>())?) as usize;
        if n_found > FOUND_MAX {
            return Ok(None);
        }
        let all = read(size_of::<u32>() + n_found * size_of::<Found>())?;
        let (_, entries) = all.split_at(size_of::<u32>());
        Ok(Some(entries.chunks_exact(size_of::<Found>()).map(pod_read_unaligned).collect()))
    }
}

fn text(gpu: &Gpu, width: usize, bits: Bits, has_allowed: bool) -> String {
    let element = match bits {
        Bits::F32 => "vec4<f32>",
        Bits::F16 => "vec2<u32>",
    };
    let allowed = match has_allowed {
        false => "fn is_allowed(row: u32) -> bool { return true; }\n",
        true => {
            "@group(0) @binding(4) var<storage, read> allowed: array<u32>;\n\
             fn is_allowed(row: u32) -> bool { return ((allowed[row / 32u] >> (row % 32u)) & 1u) == 1u; }\n"
        }
    };
    let load = match bits {
        Bits::F32 => "return weight[(r * K + k) / 4u];",
        Bits::F16 => "let halves = weight[(r * K + k) / 4u]; return floats(halves);",
    };
    [
        format!("const K = {width}u;\nconst FOUND_MAX = {FOUND_MAX}u;\n"),
        "@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;\n".to_owned(),
        format!("@group(0) @binding(1) var<storage, read> weight: array<{element}>;\n"),
        "fn load_x(r: u32, k: u32) -> vec4<f32> { return x[(r * K + k) / 4u]; }\n".to_owned(),
        format!("fn load_weight(r: u32, k: u32) -> vec4<f32> {{ {load} }}\n"),
        allowed.to_owned(),
        include_str!("wgsl/halves.wgsl").to_owned(),
        include_str!("wgsl/scan.wgsl").to_owned(),
        TILE.text(gpu),
    ]
    .concat()
}
