//! Dot products of rows and queries: the plain loop that is the oracle, and the choice of instructions.
//!
//! Every path adds up the same way for one row as for many: lane `l` of the accumulators takes the elements `l`,
//! `l + lanes`, `l + 2 lanes`… in order, and the lanes are then added in halves. The number of rows or queries that
//! share a call changes no bit of any product. Paths differ from one another in the last bits, because they have
//! different lanes and roundings.
//!
//! Shapes: slices are padded with zeros to a multiple of [`STEP`] elements, so that no path has a tail.

use std::fmt;
use std::sync::OnceLock;

use half::f16;

use crate::steps::ELEMENTS as STEP;
use crate::{Error, Result};

#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512};

/// The name of the environment variable that forces a path.
const VARIABLE: &str = "CENTO_SIMD";

/// The length of a padded vector of this many dimensions, in elements.
pub(crate) const fn padded(dimensions: usize) -> usize {
    dimensions.next_multiple_of(STEP)
}

/// An element of a row.
pub(crate) trait Element: bytemuck::Pod + Send + Sync + Lane {
    /// The value, exactly.
    fn widen(self) -> f32;
}

impl Element for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

impl Element for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use crate::simd::Lane;

/// No vector registers are used here.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) trait Lane {}
#[cfg(not(target_arch = "x86_64"))]
impl Lane for f32 {}
#[cfg(not(target_arch = "x86_64"))]
impl Lane for f16 {}

/// The instructions that distances are computed with, known to be available on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Kernel(Path);

#[derive(Debug, Clone, Copy)]
enum Path {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Kernel {
    /// The path that `CENTO_SIMD` names, or else the widest that this machine has. The variable is read once.
    ///
    /// # Errors
    /// [`Error::Simd`] where the variable names no path of this machine.
    pub fn active() -> Result<Self> {
        static REQUESTED: OnceLock<Option<String>> = OnceLock::new();
        let requested = REQUESTED.get_or_init(|| Some(std::env::var_os(VARIABLE)?.to_string_lossy().into_owned()));
        match requested {
            Some(name) => Self::named(name),
            None => Ok(Self::available().pop().expect("the scalar path is always there")),
        }
    }

    /// The path of this name: `scalar`, `avx2` or `avx512`.
    ///
    /// # Errors
    /// [`Error::Simd`] for another name, or for instructions that this machine has not.
    pub fn named(name: &str) -> Result<Self> {
        let available = Self::available();
        available.iter().copied().find(|kernel| kernel.name() == name).ok_or_else(|| Error::Simd {
            requested: name.to_owned(),
            available: available.iter().map(|kernel| kernel.name()).collect::<Vec<_>>().join(", "),
        })
    }

    /// Every path of this machine, the widest last.
    pub fn available() -> Vec<Self> {
        [Path::Scalar].into_iter().chain(vector_paths()).map(Self).collect()
    }

    /// `scalar`, `avx2` or `avx512`: what `CENTO_SIMD` calls it.
    pub fn name(self) -> &'static str {
        match self.0 {
            Path::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Path::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Path::Avx512(_) => "avx512",
        }
    }

    /// The dot product of each of R rows with each of Q queries, all padded and of one length.
    #[inline]
    pub(crate) fn dots<E: Element, const R: usize, const Q: usize>(
        self,
        rows: [&[E]; R],
        queries: [&[f32]; Q],
    ) -> [[f32; Q]; R] {
        match self.0 {
            Path::Scalar => scalar(rows, queries),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2(avx2) => avx2.dots(rows, queries),
            #[cfg(target_arch = "x86_64")]
            Path::Avx512(avx512) => avx512.dots(rows, queries),
        }
    }

    /// The sum of `row * (query - 128)` over the codes of each of R rows: an integer, the same on every path.
    #[inline]
    pub(crate) fn code_sums<const R: usize>(self, rows: [&[u8]; R], query: &[u8]) -> [i32; R] {
        match self.0 {
            Path::Scalar => rows.map(|row| scalar_code_sum(row, query)),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2(avx2) => avx2.code_sums(rows, query),
            #[cfg(target_arch = "x86_64")]
            Path::Avx512(avx512) => avx512.code_sums(rows, query),
        }
    }
}

fn scalar_code_sum(row: &[u8], query: &[u8]) -> i32 {
    assert_eq!(row.len(), query.len(), "codes of different lengths");
    row.iter().zip(query).map(|(&row, &query)| i32::from(row) * (i32::from(query) - 128)).sum()
}

#[cfg(target_arch = "x86_64")]
pub(crate) use crate::simd::prefetch;

/// No instruction for it is used here.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch(_: &[u8]) {}

#[cfg(target_arch = "x86_64")]
fn vector_paths() -> impl Iterator<Item = Path> {
    Avx2::detect().map(Path::Avx2).into_iter().chain(Avx512::detect().map(Path::Avx512))
}

#[cfg(not(target_arch = "x86_64"))]
fn vector_paths() -> impl Iterator<Item = Path> {
    std::iter::empty()
}

impl fmt::Display for Kernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Lanes of the scalar path: as many as the AVX2 path has, so that a compiler can use what vectors it knows.
const SCALAR_LANES: usize = 16;

fn scalar<E: Element, const R: usize, const Q: usize>(rows: [&[E]; R], queries: [&[f32]; Q]) -> [[f32; Q]; R] {
    rows.map(|row| queries.map(|query| scalar_dot(row, query)))
}

fn scalar_dot<E: Element>(row: &[E], query: &[f32]) -> f32 {
    assert!(row.len() == query.len() && row.len().is_multiple_of(STEP), "{} and {} elements", row.len(), query.len());
    let mut sums = [0.0_f32; SCALAR_LANES];
    for (row, query) in row.chunks_exact(SCALAR_LANES).zip(query.chunks_exact(SCALAR_LANES)) {
        for lane in 0..SCALAR_LANES {
            sums[lane] += row[lane].widen() * query[lane];
        }
    }
    let mut width = SCALAR_LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// The sum in f64, whose own error is far below what is tested.
    fn exact<E: Element>(row: &[E], query: &[f32]) -> f64 {
        row.iter().zip(query).map(|(a, b)| f64::from(a.widen()) * f64::from(*b)).sum()
    }

    fn pad<E: bytemuck::Zeroable + Copy>(values: &[E]) -> Vec<E> {
        let mut values = values.to_vec();
        values.resize(padded(values.len()), E::zeroed());
        values
    }

    /// Lengths around every step and register width, and those of real models.
    fn lengths() -> impl Iterator<Item = usize> {
        (0..=65).chain([95, 96, 97, 127, 128, 129, 383, 384, 767, 768, 1023])
    }

    #[test]
    fn every_path_is_within_rounding_of_the_sum_in_f64() {
        let mut random = Random::new(7);
        for length in lengths() {
            let row: Vec<f32> = (0..length).map(|_| random.signed()).collect();
            let half: Vec<f16> = row.iter().map(|&value| f16::from_f32(value)).collect();
            let query: Vec<f32> = (0..length).map(|_| random.signed()).collect();
            let (row, half, query) = (pad(&row), pad(&half), pad(&query));
            let tolerance = 1e-6 * (1.0 + length as f64).sqrt();
            for kernel in Kernel::available() {
                let [[dot]] = kernel.dots([&row[..]], [&query[..]]);
                assert!((f64::from(dot) - exact(&row, &query)).abs() <= tolerance, "{kernel} f32 at {length}: {dot}");
                let [[dot]] = kernel.dots([&half[..]], [&query[..]]);
                assert!((f64::from(dot) - exact(&half, &query)).abs() <= tolerance, "{kernel} f16 at {length}: {dot}");
            }
        }
    }

    #[test]
    fn small_integers_are_summed_exactly_by_every_path() {
        for length in lengths() {
            let row: Vec<f32> = (0..length).map(|i| (i % 7) as f32 - 3.0).collect();
            let half: Vec<f16> = row.iter().map(|&value| f16::from_f32(value)).collect();
            let query: Vec<f32> = (0..length).map(|i| (i % 5) as f32 - 1.0).collect();
            let (row, half, query) = (pad(&row), pad(&half), pad(&query));
            let expected = exact(&row, &query) as f32;
            for kernel in Kernel::available() {
                assert_eq!(kernel.dots([&row[..]], [&query[..]]), [[expected]], "{kernel} f32 at {length}");
                assert_eq!(kernel.dots([&half[..]], [&query[..]]), [[expected]], "{kernel} f16 at {length}");
            }
        }
    }

    #[test]
    fn sharing_a_call_changes_no_bit() {
        let mut random = Random::new(11);
        for length in lengths() {
            let vectors: Vec<Vec<f32>> =
                (0..8).map(|_| pad(&(0..length).map(|_| random.signed()).collect::<Vec<f32>>())).collect();
            let halves: Vec<Vec<f16>> = vectors.iter().map(|v| v.iter().map(|&x| f16::from_f32(x)).collect()).collect();
            let widened: Vec<Vec<f32>> = halves.iter().map(|v| v.iter().map(|x| x.to_f32()).collect()).collect();
            for kernel in Kernel::available() {
                let queries = [&vectors[4][..], &vectors[5][..], &vectors[6][..]];
                let rows: [&[f32]; 4] = std::array::from_fn(|i| &widened[i][..]);
                let rows_half: [&[f16]; 4] = std::array::from_fn(|i| &halves[i][..]);
                let together = kernel.dots(rows, queries);
                for (r, row) in rows.iter().enumerate() {
                    for (q, query) in queries.iter().enumerate() {
                        let [[alone]] = kernel.dots([*row], [*query]);
                        assert_eq!(together[r][q].to_bits(), alone.to_bits(), "{kernel} at {length}");
                    }
                }
                assert_eq!(together, kernel.dots(rows_half, queries), "{kernel}: f16 rows are widened exactly");
            }
        }
    }

    #[test]
    fn sums_of_codes_are_equal_on_every_path() {
        let mut random = Random::new(13);
        let check = |length: usize, byte: &mut dyn FnMut() -> u8| {
            let rows: [Vec<u8>; 4] = std::array::from_fn(|_| (0..length).map(|_| byte()).collect());
            let query: Vec<u8> = (0..length).map(|_| byte()).collect();
            let expected = rows.each_ref().map(|row| scalar_code_sum(row, &query));
            for kernel in Kernel::available() {
                let rows = rows.each_ref().map(|row| &row[..]);
                assert_eq!(kernel.code_sums(rows, &query), expected, "{kernel} at {length}");
                assert_eq!(kernel.code_sums([rows[2]], &query), [expected[2]], "{kernel} at {length}, alone");
                #[cfg(target_arch = "x86_64")]
                if let Path::Avx2(avx2) = kernel.0 {
                    assert_eq!(avx2.without_vnni().code_sums(rows, &query), expected, "AVX2 at {length}");
                }
            }
        };
        for length in (0..=20).map(|steps| steps * crate::steps::CODES) {
            check(length, &mut || random.next() as u8);
        }
        // The largest sums that there are: every product of the same sign, as many as a vector may have dimensions.
        check(crate::DIMENSIONS_MAX, &mut || 255);
        check(crate::DIMENSIONS_MAX, &mut || 0);
        let mut n = 0;
        check(crate::DIMENSIONS_MAX, &mut || {
            n += 1;
            if n <= 4 * crate::DIMENSIONS_MAX { 255 } else { 1 }
        });
    }

    #[test]
    fn an_unknown_path_is_an_error_that_names_the_known_ones() {
        let message = Kernel::named("sse9").unwrap_err().to_string();
        assert!(message.contains("CENTO_SIMD=sse9") && message.contains("scalar"), "{message}");
        for kernel in Kernel::available() {
            assert_eq!(Kernel::named(kernel.name()).unwrap().name(), kernel.name());
        }
    }

    #[test]
    fn the_active_path_is_the_one_that_was_asked_for() {
        let active = Kernel::active().map(Kernel::name);
        match std::env::var(VARIABLE) {
            Ok(name) => {
                assert_eq!(active.ok(), Kernel::available().iter().map(|k| k.name()).find(|known| *known == name))
            }
            Err(_) => assert_eq!(active.unwrap(), Kernel::available().last().unwrap().name()),
        }
    }
}
