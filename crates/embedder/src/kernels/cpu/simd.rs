//! Which instruction set the kernels run on, decided from what the processor reports and what the user allows.
#![expect(unsafe_code, reason = "calls into functions compiled for AVX2 and AVX-512, after the processor was asked")]

use std::fmt;

/// Environment variable that caps the set in use, so that one machine gives the bits of a lesser one.
pub(crate) const VARIABLE: &str = "CENTO_SIMD";

/// An instruction set that this processor has.
///
/// Only this file makes one, and only of a level that the processor reports: having a value is the proof that
/// [`Simd::run`] and the products need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Simd {
    level: Level,
    vnni: bool,
}

/// A ladder: each level has all that is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "the other levels are of x86-64"))]
enum Level {
    /// The instructions of the build target. On x86-64 without FMA the fused multiply-add is a library call: right, and
    /// slow.
    Portable,
    /// AVX2 and FMA: Intel from 2013, AMD from 2017.
    Avx2,
    /// AVX-512 F, BW, DQ and VL: Intel servers from 2017, AMD from 2022. Integer dot products (VNNI) where there are
    /// any.
    Avx512,
    /// And dot products of bf16: AMD from 2022, Intel servers from 2023.
    Bf16,
    /// And tile registers: Intel servers from 2023, where the system permits them.
    Amx,
}

const LEVELS: [(Level, &str); 5] = [
    (Level::Portable, "portable"),
    (Level::Avx2, "avx2"),
    (Level::Avx512, "avx512"),
    (Level::Bf16, "bf16"),
    (Level::Amx, "amx"),
];

/// [`VARIABLE`] holds something else than the name of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownSet {
    value: String,
}

impl fmt::Display for UnknownSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = LEVELS.map(|(_, name)| name).join(", ");
        write!(f, "{VARIABLE}={:?} is unknown; use one of {names}, or unset it", self.value)
    }
}

impl std::error::Error for UnknownSet {}

/// Proof that `vdpbf16ps` can be used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bf16Dot(());

/// Proof that `vpdpbusd` can be used on 512 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vnni(());

/// Proof that AVX2 can be used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

/// Proof that AVX-512 F, BW, DQ and VL can be used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512(());

/// Proof that tile registers can be used, with bf16 and with 8-bit integers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amx(());

/// Work on slices that gains from wide registers. `run`, and all it calls, must be `#[inline(always)]`, because only
/// code inlined into the functions below is compiled for their instruction set.
pub(crate) trait Kernel {
    fn run(self);
}

impl Simd {
    /// The best set the processor has.
    pub(crate) fn detect() -> Self {
        Self::up_to(Level::Amx)
    }

    /// The best set that [`VARIABLE`] allows, or the best there is if it is not set. A set that the processor lacks is
    /// no error: the variable is an upper bound.
    pub(crate) fn allowed() -> Result<Self, UnknownSet> {
        match std::env::var_os(VARIABLE) {
            None => Ok(Self::detect()),
            Some(value) => Self::capped(&value.to_string_lossy()),
        }
    }

    /// The best set up to the one of this name.
    pub(super) fn capped(name: &str) -> Result<Self, UnknownSet> {
        let found = LEVELS.into_iter().find(|&(_, known)| known == name);
        let (level, _) = found.ok_or_else(|| UnknownSet { value: name.to_owned() })?;
        Ok(Self::up_to(level))
    }

    #[cfg(target_arch = "x86_64")]
    fn up_to(cap: Level) -> Self {
        let has = |level| match level {
            Level::Portable => true,
            Level::Avx2 => has_avx2(),
            Level::Avx512 => has_avx512(),
            Level::Bf16 => is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512vnni"),
            Level::Amx => amx::is_permitted(),
        };
        let ladder = LEVELS.into_iter().map(|(level, _)| level);
        let level = ladder.take_while(|&level| level <= cap && has(level)).last().unwrap_or(Level::Portable);
        Self { level, vnni: level >= Level::Avx512 && is_x86_feature_detected!("avx512vnni") }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn up_to(_cap: Level) -> Self {
        Self { level: Level::Portable, vnni: false }
    }

    /// Every set the processor has, the portable one first.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        let mut sets: Vec<Self> = LEVELS.into_iter().map(|(level, _)| Self::up_to(level)).collect();
        sets.dedup();
        if let Some(set) = sets.iter().copied().find(|set| set.vnni) {
            sets.push(Self { vnni: false, ..set });
        }
        sets
    }

    /// True if 32 registers of 512 bits can be used, which decides the shape of a product's tile.
    pub(crate) fn is_wide(self) -> bool {
        self.level >= Level::Avx512
    }

    pub(super) fn avx2(self) -> Option<Avx2> {
        (self.level >= Level::Avx2).then_some(Avx2(()))
    }

    pub(super) fn avx512(self) -> Option<Avx512> {
        (self.level >= Level::Avx512).then_some(Avx512(()))
    }

    pub(super) fn vnni(self) -> Option<Vnni> {
        self.vnni.then_some(Vnni(()))
    }

    pub(super) fn bf16_dot(self) -> Option<Bf16Dot> {
        (self.level >= Level::Bf16).then_some(Bf16Dot(()))
    }

    pub(super) fn amx(self) -> Option<Amx> {
        (self.level >= Level::Amx).then_some(Amx(()))
    }

    /// Short name, as shown to users.
    pub(crate) fn name(self) -> &'static str {
        match (self.level, self.vnni) {
            (Level::Portable, _) => "portable",
            (Level::Avx2, _) => "avx2",
            (Level::Avx512, false) => "avx512",
            (Level::Avx512, true) => "avx512+vnni",
            (Level::Bf16, _) => "avx512+vnni+bf16",
            (Level::Amx, _) => "avx512+vnni+bf16+amx",
        }
    }

    /// Runs `kernel` compiled for this set.
    #[inline]
    pub(crate) fn run(self, kernel: impl Kernel) {
        match self.level {
            Level::Portable => kernel.run(),
            // SAFETY: a `Simd` of this level exists only where `has_avx2` was true: the processor has avx2 and fma.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: a `Simd` of these levels exists only where `has_avx512` was true: the processor has each feature
            // named.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 | Level::Bf16 | Level::Amx => unsafe { run_avx512(kernel) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => kernel.run(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
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

#[cfg(target_arch = "x86_64")]
mod amx {
    //! Tile registers are off until a process asks the system for them, because they make its saved state 8 KiB larger.

    use std::arch::x86_64::__cpuid_count;
    use std::sync::OnceLock;

    /// True if processor and system let this process use tiles of bf16 and of bytes. Asks once.
    pub(super) fn is_permitted() -> bool {
        static PERMITTED: OnceLock<bool> = OnceLock::new();
        *PERMITTED.get_or_init(|| has_tiles() && request())
    }

    /// Leaf 7: EDX bits 22 (bf16), 24 (tiles) and 25 (8-bit integers).
    fn has_tiles() -> bool {
        const TILES: u32 = 1 << 22 | 1 << 24 | 1 << 25;
        __cpuid_count(0, 0).eax >= 7 && __cpuid_count(7, 0).edx & TILES == TILES
    }

    #[cfg(target_os = "linux")]
    fn request() -> bool {
        const ARCH_PRCTL: i64 = 158;
        const ARCH_REQ_XCOMP_PERM: i64 = 0x1023;
        const XFEATURE_XTILEDATA: i64 = 18;
        let status: i64;
        // SAFETY: the system call takes two integers, touches no memory of ours, and reports failure as a negative
        // number; `syscall` itself overwrites rcx and r11.
        unsafe {
            std::arch::asm!(
                "syscall",
                inlateout("rax") ARCH_PRCTL => status,
                in("rdi") ARCH_REQ_XCOMP_PERM,
                in("rsi") XFEATURE_XTILEDATA,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack),
            );
        }
        status == 0
    }

    #[cfg(not(target_os = "linux"))]
    fn request() -> bool {
        false
    }
}
