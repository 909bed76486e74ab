//! Codes: vectors in 8 bits a dimension, which a graph is built and walked on.
//!
//! A dimension x of a vector is stored as `round(x / scale) + 128`, where the scale is the vector's own, its
//! largest |x| over 127; so a code is in 1..=255, and 128 stands for 0. Products of codes are summed in 32-bit
//! integers, exactly, so code distances are the same on every machine; the vectors' own distances decide what is
//! returned.
//!
//! Range: rounding moves a dimension by half a scale at most, evenly spread: the standard error of the distance of two
//! unit vectors is [`standard_error`]: .0006 for scales of .0014, those of 384 normally distributed dimensions.
//! Shapes: codes are padded with 128 to a multiple of [`STEP`].

use rayon::prelude::*;

use crate::distance::{Kernel, prefetch};
use crate::steps::CODES as STEP;
use crate::{Result, Rows};

/// The code of 0.
const ZERO: u8 = 128;

/// Rows that share a pass over the query.
pub(crate) const GROUP: usize = 4;

/// The length of the codes of a vector of this many dimensions.
pub(crate) const fn padded(dimensions: usize) -> usize {
    dimensions.next_multiple_of(STEP)
}

/// Fills the codes of a vector, padding included, and returns its scale: 0 for a vector of zeros.
pub(crate) fn encode(vector: &[f32], codes: &mut [u8]) -> f32 {
    /// Added to a number below 2^22 in size, this leaves its nearest integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let scale = vector.iter().fold(0.0_f32, |max, value| max.max(value.abs())) / 127.0;
    let per_step = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let (of_vector, padding) = codes.split_at_mut(vector.len());
    for (code, value) in of_vector.iter_mut().zip(vector) {
        *code = ((value * per_step + ROUND).to_bits() as u8).wrapping_add(ZERO);
    }
    padding.fill(ZERO);
    scale
}

/// The standard error of the code distance of two unit vectors with these scales: that of a sum of independent
/// roundings.
pub(crate) fn standard_error(a_scale: f32, b_scale: f32) -> f32 {
    ((a_scale * a_scale + b_scale * b_scale) / 12.0).sqrt()
}

/// The codes that others are compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    codes: &'a [u8],
    scale: f32,
    /// The surplus of a sum of products, because the other codes are stored with 128 added.
    excess: i32,
}

impl<'a> Target<'a> {
    pub(crate) fn new(codes: &'a [u8], scale: f32) -> Self {
        let sum: i32 = codes.iter().map(|&code| i32::from(code)).sum();
        let zero = i32::from(ZERO);
        Self { codes, scale, excess: zero * (sum - zero * codes.len() as i32) }
    }

    fn distance(&self, sum: i32, scale: f32) -> f32 {
        1.0 - self.scale * scale * (sum - self.excess) as f32
    }
}

/// Codes of numbered vectors, in memory or mapped.
pub(crate) trait Coded {
    fn kernel(&self) -> Kernel;

    /// The codes of a vector, where they lie; they may be damaged.
    fn place(&self, node: u32) -> &[u8];

    /// The codes of a vector and its scale, whole.
    fn coded(&self, node: u32) -> Result<(&[u8], f32)>;

    /// Appends the code distances of these vectors from the target, in their order.
    #[inline]
    fn code_distances(&self, target: &Target<'_>, nodes: &[u32], out: &mut Vec<f32>) -> Result<()> {
        nodes.iter().take(2 * GROUP).for_each(|&node| prefetch(self.place(node)));
        let (groups, rest) = nodes.as_chunks::<GROUP>();
        for (n, group) in groups.iter().enumerate() {
            nodes.iter().skip((n + 2) * GROUP).take(GROUP).for_each(|&node| prefetch(self.place(node)));
            self.group_distances(target, group, out)?;
        }
        rest.iter().try_for_each(|&node| self.group_distances(target, &[node], out))
    }

    #[inline]
    fn group_distances<const R: usize>(&self, target: &Target<'_>, nodes: &[u32; R], out: &mut Vec<f32>) -> Result<()> {
        let (mut codes, mut scales): ([&[u8]; R], _) = ([&[]; R], [0.0; R]);
        for (place, &node) in nodes.iter().enumerate() {
            (codes[place], scales[place]) = self.coded(node)?;
        }
        let sums = self.kernel().code_sums(codes, target.codes);
        out.extend(sums.iter().zip(scales).map(|(&sum, scale)| target.distance(sum, scale)));
        Ok(())
    }
}

/// Codes in memory, in an order of their own.
#[derive(Debug, Clone)]
pub(crate) struct Codes {
    /// On a boundary of its own width, so that a register of codes is one line of the cache.
    lines: Vec<Line>,
    scales: Vec<f32>,
    stride: usize,
    kernel: Kernel,
}

#[derive(Debug, Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct Line([u8; STEP]);

impl Codes {
    /// The codes of these rows, in their order.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`].
    pub(crate) fn of(rows: &Rows, order: &[u32]) -> Result<Self> {
        let stride = padded(rows.dimensions());
        let mut lines: Vec<Line> = bytemuck::zeroed_vec(order.len() * stride / STEP);
        let scales: Vec<Result<f32>> = lines
            .par_chunks_exact_mut(stride / STEP)
            .zip(order)
            .map(|(lines, &row)| Ok(encode(&rows.row(row)?, bytemuck::cast_slice_mut(lines))))
            .collect();
        Ok(Self { lines, scales: scales.into_iter().collect::<Result<_>>()?, stride, kernel: rows.kernel() })
    }

    pub(crate) fn codes(&self, node: u32) -> &[u8] {
        let start = node as usize * self.stride;
        &bytemuck::cast_slice(&self.lines)[start..start + self.stride]
    }

    pub(crate) fn scale(&self, node: u32) -> f32 {
        self.scales[node as usize]
    }

    /// A vector to compare the others with.
    pub(crate) fn target(&self, node: u32) -> Target<'_> {
        Target::new(self.codes(node), self.scale(node))
    }
}

impl Coded for Codes {
    #[inline]
    fn kernel(&self) -> Kernel {
        self.kernel
    }

    #[inline]
    fn place(&self, node: u32) -> &[u8] {
        self.codes(node)
    }

    #[inline]
    fn coded(&self, node: u32) -> Result<(&[u8], f32)> {
        Ok((self.codes(node), self.scale(node)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scalar;
    use crate::testing::{Folder, Random};

    #[test]
    fn a_code_is_the_nearest_step_and_the_largest_dimension_is_the_last_step() {
        let mut random = Random::new(3);
        for dimensions in [1, 2, 63, 64, 65, 384] {
            let vector = random.unit(dimensions);
            let mut codes = vec![0; padded(dimensions)];
            let scale = encode(&vector, &mut codes);
            let steps: Vec<i32> = codes.iter().map(|&code| i32::from(code) - 128).collect();
            assert_eq!(steps.iter().map(|step| step.abs()).max(), Some(127), "{dimensions} dimensions");
            for (step, value) in steps.iter().zip(&vector) {
                assert!((*step as f32 * scale - value).abs() <= scale * 0.500_1, "{value} is not {step} x {scale}");
            }
            assert!(steps[dimensions..].iter().all(|&step| step == 0));
        }
        let mut codes = [0; 64];
        assert_eq!((encode(&[0.0; 3], &mut codes), codes), (0.0, [128; 64]));
    }

    #[test]
    fn code_distances_are_within_a_few_standard_errors_of_the_true_ones() {
        const DIMENSIONS: usize = 100;
        let mut random = Random::new(5);
        let vectors: Vec<Vec<f32>> = (0..203).map(|_| random.unit(DIMENSIONS)).collect();
        let rows = Folder::new().rows("rows", &vectors, DIMENSIONS, Scalar::F32);
        let codes = Codes::of(&rows, &(0..203).collect::<Vec<_>>()).unwrap();
        let (mut squares, mut n_compared) = (0.0, 0);
        for node in (0..203).step_by(20) {
            let (mut distances, mut expected) = (Vec::new(), Vec::new());
            let others: Vec<u32> = (0..203).collect();
            codes.code_distances(&codes.target(node), &others, &mut distances).unwrap();
            rows.distances(&rows.row_as_query(node).unwrap(), &others, &mut expected).unwrap();
            for (other, (distance, expected)) in distances.iter().zip(expected).enumerate() {
                let errors = (distance - expected) / standard_error(codes.scale(node), codes.scale(other as u32));
                assert!(errors.abs() < 6.0, "{distance} for {expected}: {errors} standard errors");
                squares += f64::from(errors * errors);
                n_compared += 1;
            }
        }
        let spread = (squares / f64::from(n_compared)).sqrt();
        assert!((0.7..1.3).contains(&spread), "{spread} standard errors");
    }
}
