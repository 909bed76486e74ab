//! Memory that starts at a cache line, for values that are read a register at a time.
#![expect(unsafe_code, reason = "views cache lines as the plain numbers in them")]

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// 64 bytes: a cache line, a 512-bit register, a row of a tile register.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; 16]);

/// A number of 1, 2 or 4 bytes in which every pattern of bits is a value.
///
/// # Safety
/// Implement it only for types without padding, without forbidden bit patterns, of size and alignment 1, 2 or 4.
pub(crate) unsafe trait Number: Copy + 'static {
    /// 0.
    const ZERO: Self;
}

macro_rules! number {
    ($($number:ty = $zero:literal),*) => {$(
        // SAFETY: a plain number of 1, 2 or 4 bytes.
        unsafe impl Number for $number {
            const ZERO: Self = $zero;
        }
    )*};
}
number!(f32 = 0.0, u32 = 0, i32 = 0, u16 = 0, u8 = 0);

/// A slice of numbers whose first byte is a multiple of 64. It keeps the memory it has.
#[derive(Clone)]
pub(crate) struct Buffer<T> {
    lines: Vec<Line>,
    len: usize,
    number: PhantomData<T>,
}

impl<T: Number> Buffer<T> {
    /// No memory yet.
    pub(crate) fn new() -> Self {
        Self { lines: Vec::new(), len: 0, number: PhantomData }
    }

    /// Makes it `len` numbers long. What they are is left open: earlier contents, or zeros where there were none.
    pub(crate) fn resize(&mut self, len: usize) {
        let n_lines = (len * size_of::<T>()).div_ceil(size_of::<Line>());
        if n_lines > self.lines.len() {
            self.lines.resize(n_lines, Line([0; 16]));
        }
        self.len = len;
    }
}

impl<T: Number> Deref for Buffer<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `resize` made the lines hold at least `len` numbers, all initialised; any bits are a `Number`.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Number> DerefMut for Buffer<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

impl<T: Number> Default for Buffer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} numbers)", self.len)
    }
}

/// Asks for `values` to be brought into the second-level cache. Changes nothing else.
#[inline(always)]
pub(super) fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        for offset in (0..size_of_val(values)).step_by(size_of::<Line>()) {
            // SAFETY: a prefetch reads nothing that the program could see; the address is inside the slice.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(values.as_ptr().byte_add(offset).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}
