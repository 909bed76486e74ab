//! Rows picked from tables, added up and normalised, in one pass: embedding, residuals, layer norms.

use candle_core::{Result, Tensor};

use super::launch::{Address, Grid, launch, unfilled};
use super::{PACK, WARP, takes_rows};
use crate::kernels::cpu::norm::Centre;

/// The widest rows there is a kernel for.
const WIDTH_MAX: usize = 4096;
const WARPS: usize = 8;

/// Rows of a table \[., H\], or some of them: \[T\] numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Picked<'a> {
    pub(crate) table: &'a Tensor,
    pub(crate) at: Option<&'a Tensor>,
}

/// `(x - centre) / √(variance + ε) * scale + shift`; scale and shift are f32, \[H\].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Norm<'a> {
    pub(crate) scale: &'a Tensor,
    pub(crate) shift: Option<&'a Tensor>,
    pub(crate) epsilon: f64,
    pub(crate) centre: Centre,
}

/// `norm(first + second + bias)`, where any part but the first may be missing; the bias is f32, \[H\].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sum<'a> {
    pub(crate) first: Picked<'a>,
    pub(crate) second: Option<Picked<'a>>,
    pub(crate) bias: Option<&'a Tensor>,
    pub(crate) norm: Option<Norm<'a>>,
}

/// As `RowsArguments` in rows.cu.
#[derive(Clone, Copy)]
#[repr(C)]
struct Arguments {
    out: Address,
    first: Address,
    first_at: Address,
    second: Address,
    second_at: Address,
    bias: Address,
    scale: Address,
    shift: Address,
    n_rows: u32,
    width: u32,
    epsilon: f32,
    around_zero: u32,
}

/// True if there is a kernel for rows like these.
pub(crate) fn takes(rows: &Tensor) -> bool {
    takes_rows(rows) && rows.dims().last().is_some_and(|&width| width <= WIDTH_MAX)
}

impl Sum<'_> {
    /// \[T, H\].
    pub(crate) fn run(&self) -> Result<Tensor> {
        let table = self.first.table;
        let (n_rows, width) = (self.first.at.map_or(table.dim(0), |at| at.dim(0))?, table.dim(1)?);
        let out = unfilled((n_rows, width), table.dtype(), table.device())?;
        let arguments = Arguments {
            out: Address::of(&out)?,
            first: Address::of(table)?,
            first_at: Address::of_option(self.first.at)?,
            second: Address::of_option(self.second.map(|second| second.table))?,
            second_at: Address::of_option(self.second.and_then(|second| second.at))?,
            bias: Address::of_option(self.bias)?,
            scale: Address::of_option(self.norm.map(|norm| norm.scale))?,
            shift: Address::of_option(self.norm.and_then(|norm| norm.shift))?,
            n_rows: n_rows as u32,
            width: width as u32,
            epsilon: self.norm.map_or(0.0, |norm| norm.epsilon as f32),
            around_zero: u32::from(self.norm.is_some_and(|norm| norm.centre == Centre::Zero)),
        };
        let kernel = match width {
            0..=512 => "rows_to_512",
            513..=1024 => "rows_to_1024",
            _ => "rows_to_4096",
        };
        assert!(width.is_multiple_of(PACK) && width <= WIDTH_MAX, "`takes` was asked");
        let grid = Grid::new([n_rows.div_ceil(WARPS), 1, 1], WARPS * WARP);
        launch(kernel, table.dtype(), grid, arguments, table.device())?;
        Ok(out)
    }
}
