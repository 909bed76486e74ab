//! Which instruction set the kernels run on, decided once from what the processor reports.
//!
//! The only `unsafe` of the crate: calling a function compiled for instructions that the build target does not guarantee.
#![expect(unsafe_code, reason = "calls into functions compiled for AVX2 and AVX-512, after the processor was asked")]

/// An instruction set that this processor has.
///
/// Only [`Simd::detect`] (and, in tests, `available`) make one, and they name a set only if the processor reports it: having a
/// value is the proof that [`Simd::run`] needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Simd(Level);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// What the build target guarantees. On x86-64 without FMA the fused multiply-add is a library call: right, and slow.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Work on slices that gains from wide registers. `run`, and all it calls, must be `#[inline(always)]`, because only code
/// inlined into the functions below is compiled for their instruction set.
pub(crate) trait Kernel {
    fn run(self);
}

impl Simd {
    /// The widest set the processor has.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() {
                return Self(Level::Avx512);
            }
            if has_avx2() {
                return Self(Level::Avx2);
            }
        }
        Self(Level::Portable)
    }

    /// Every set the processor has, the portable one first.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        let mut sets = vec![Self(Level::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx2() {
                sets.push(Self(Level::Avx2));
            }
            if has_avx512() {
                sets.push(Self(Level::Avx512));
            }
        }
        sets
    }

    /// Whether 32 registers of 512 bits can be used, which decides the shape of a product's tile.
    pub(crate) fn is_wide(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.0 == Level::Avx512;
        #[cfg(not(target_arch = "x86_64"))]
        return false;
    }

    /// Short name, as shown to users.
    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        }
    }

    /// Runs `kernel` compiled for this set.
    #[inline]
    pub(crate) fn run(self, kernel: impl Kernel) {
        match self.0 {
            Level::Portable => kernel.run(),
            // SAFETY: a `Simd` of this level exists only where `has_avx2` was true: the processor has avx2 and fma.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: a `Simd` of this level exists only where `has_avx512` was true: the processor has each feature named.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { run_avx512(kernel) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2(kernel: impl Kernel) {
    kernel.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn run_avx512(kernel: impl Kernel) {
    kernel.run();
}
