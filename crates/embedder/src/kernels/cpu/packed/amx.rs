//! Products in tile registers: 16 rows of 64 bytes each, multiplied as whole matrices.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18. The intrinsics are not
//! stable, so the instructions are written out.
//! Shapes: a tile of rows is 16 rows of 64 bytes of inputs; a tile of weights is 16 steps of 16 words, a word being the
//! two bf16 or four bytes of one output that meet the same step of the rows; a tile of sums is 16 x 16.
#![expect(
    unsafe_code,
    reason = "tile instructions, on checked slices, where the processor has and the system permits them"
)]

use std::arch::asm;
use std::marker::PhantomData;

use super::dot::HasBf16Dot;
use super::{Tile, TileRows, WIDTH};
use crate::kernels::cpu::aligned::prefetch;
use crate::kernels::cpu::simd::{Amx, Bf16Dot};

/// Steps that one tile holds; the number of steps of a product is a multiple of it.
const STEPS: usize = 16;

/// Tile registers of this thread, all eight set to 16 rows of 64 bytes. They are given back when it is dropped.
pub(crate) struct Tiles {
    /// The registers belong to the thread that configured them.
    thread: PhantomData<*mut ()>,
}

impl Tiles {
    /// Sets up the tile registers. While one lives no other may on the same thread; [`Tiles::with`] sees to that.
    pub(crate) fn with(_proof: Amx, work: impl FnOnce(&Self)) {
        #[repr(C, align(64))]
        struct Configuration {
            palette: u8,
            start_row: u8,
            reserved: [u8; 14],
            row_bytes: [u16; 16],
            rows: [u8; 16],
        }
        let mut configuration =
            Configuration { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
        configuration.row_bytes[..8].fill(64);
        configuration.rows[..8].fill(16);
        // SAFETY: `Amx` proves that the instruction may be used; it reads the 64 bytes of the configuration, which is
        // of the first palette. No Rust code keeps values in tile registers.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(nostack, readonly, preserves_flags));
        }
        work(&Self { thread: PhantomData });
    }

    /// To multiply bf16 with.
    pub(crate) fn of_bf16(&self, dot: Bf16Dot) -> Bf16Tiles<'_> {
        Bf16Tiles { tiles: PhantomData, dot }
    }

    /// To multiply bytes with.
    pub(crate) fn of_bytes(&self) -> ByteTiles<'_> {
        ByteTiles { tiles: PhantomData }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: a value of this type is made only after `ldtilecfg`.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
    }
}

/// Rows of bf16 times weights of bf16, summed in f32.
#[derive(Clone, Copy)]
pub(crate) struct Bf16Tiles<'a> {
    tiles: PhantomData<&'a Tiles>,
    dot: Bf16Dot,
}

/// Rows of unsigned bytes times weights of signed bytes, summed exactly in 32 bits.
#[derive(Clone, Copy)]
pub(crate) struct ByteTiles<'a> {
    tiles: PhantomData<&'a Tiles>,
}

/// Bytes of the next weights that are asked for with every tile of these: enough for all of them in eight blocks of 32
/// rows.
const AHEAD: usize = 256;

/// Sums of up to 32 rows and 32 outputs: two tiles by two, or one by two for up to 16 rows.
macro_rules! multiply {
    ($instruction:literal, $rows:expr, $lines:expr, $next:expr, $sums:expr) => {{
        let (TileRows { n, values, stride }, lines, sums) = ($rows, $lines, $sums);
        let height = if n > 16 { 32 } else { 16 };
        let n_steps = lines.len();
        let stride = size_of_val(&values[0]) * stride; // bytes
        assert!(n_steps >= STEPS && n_steps.is_multiple_of(STEPS) && sums.len() >= height);
        assert!(size_of_val(values) >= (height - 1) * stride + n_steps * 4);
        let n_tiles = n_steps / STEPS;
        let in_loop = ($next.len() * 4 * WIDTH).min(n_tiles * AHEAD) / (4 * WIDTH);
        prefetch(&$next[in_loop..]);
        if height == 32 {
            // SAFETY: a `Tiles` lives, so the registers are set up. The loads read, for each of `n_tiles` rounds, 64
            // bytes of 32 rows `stride` apart and 16 lines of 128 bytes; the stores write 32 lines of 128 bytes: all
            // held to their slices above. What is prefetched is never read. Tile registers are used by nothing else.
            unsafe {
                asm!(
                    "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                    "2:",
                    "tileloadd tmm6, [{b} + {line}]",
                    "prefetcht1 [{next}]",
                    "tileloadd tmm4, [{a} + {stride}]",
                    "prefetcht1 [{next} + 64]",
                    "tileloadd tmm7, [{b} + {line} + 64]",
                    "prefetcht1 [{next} + 128]",
                    "tileloadd tmm5, [{a2} + {stride}]",
                    "prefetcht1 [{next} + 192]",
                    concat!($instruction, " tmm0, tmm4, tmm6"),
                    concat!($instruction, " tmm1, tmm4, tmm7"),
                    concat!($instruction, " tmm2, tmm5, tmm6"),
                    concat!($instruction, " tmm3, tmm5, tmm7"),
                    "add {a}, 64",
                    "add {a2}, 64",
                    "add {b}, 2048",
                    "add {next}, 256",
                    "dec {n}",
                    "jnz 2b",
                    "tilestored [{c} + {line}], tmm0",
                    "tilestored [{c} + {line} + 64], tmm1",
                    "tilestored [{c2} + {line}], tmm2",
                    "tilestored [{c2} + {line} + 64], tmm3",
                    a = inout(reg) values.as_ptr() => _,
                    a2 = inout(reg) values.as_ptr().byte_add(16 * stride) => _,
                    b = inout(reg) lines.as_ptr() => _,
                    next = inout(reg) $next.as_ptr() => _,
                    n = inout(reg) n_tiles => _,
                    c = in(reg) sums.as_mut_ptr(),
                    c2 = in(reg) sums.as_mut_ptr().add(16),
                    stride = in(reg) stride,
                    line = in(reg) 4 * WIDTH,
                    options(nostack),
                );
            }
        } else {
            // SAFETY: as above, with 16 rows and 16 lines of sums.
            unsafe {
                asm!(
                    "tilezero tmm0", "tilezero tmm1",
                    "2:",
                    "tileloadd tmm6, [{b} + {line}]",
                    "tileloadd tmm4, [{a} + {stride}]",
                    "tileloadd tmm7, [{b} + {line} + 64]",
                    "prefetcht1 [{next}]",
                    "prefetcht1 [{next} + 64]",
                    "prefetcht1 [{next} + 128]",
                    "prefetcht1 [{next} + 192]",
                    concat!($instruction, " tmm0, tmm4, tmm6"),
                    concat!($instruction, " tmm1, tmm4, tmm7"),
                    "add {a}, 64",
                    "add {b}, 2048",
                    "add {next}, 256",
                    "dec {n}",
                    "jnz 2b",
                    "tilestored [{c} + {line}], tmm0",
                    "tilestored [{c} + {line} + 64], tmm1",
                    a = inout(reg) values.as_ptr() => _,
                    b = inout(reg) lines.as_ptr() => _,
                    next = inout(reg) $next.as_ptr() => _,
                    n = inout(reg) n_tiles => _,
                    c = in(reg) sums.as_mut_ptr(),
                    stride = in(reg) stride,
                    line = in(reg) 4 * WIDTH,
                    options(nostack),
                );
            }
        }
    }};
}

impl Tile for Bf16Tiles<'_> {
    type Row = u16;
    type Sum = f32;
    const HEIGHT: usize = 32;

    fn multiply(
        self,
        rows: TileRows<'_, u16>,
        lines: &[[u32; WIDTH]],
        next: &[[u32; WIDTH]],
        sums: &mut [[f32; WIDTH]],
    ) {
        multiply!("tdpbf16ps", rows, lines, next, sums);
    }
}

impl Tile for ByteTiles<'_> {
    type Row = u8;
    type Sum = i32;
    const HEIGHT: usize = 32;

    fn multiply(
        self,
        rows: TileRows<'_, u8>,
        lines: &[[u32; WIDTH]],
        next: &[[u32; WIDTH]],
        sums: &mut [[i32; WIDTH]],
    ) {
        multiply!("tdpbusd", rows, lines, next, sums);
    }
}

impl HasBf16Dot for Bf16Tiles<'_> {
    #[inline(always)]
    fn bf16_dot(self) -> Bf16Dot {
        self.dot
    }
}
