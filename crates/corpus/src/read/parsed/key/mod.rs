//! Files that a password opens as a whole: the plain file in them, made in memory, by the first password that fits.

mod cipher;
mod odf;
mod office;

pub(super) use self::odf::open as open_odf;
pub(super) use self::office::open as open_office;

/// Hashes that a password costs, at most. Programs write 100,000; a file that asks for more than this wants time.
const ROUNDS_MAX: u32 = 1_000_000;

/// The name of the parser in an error.
const ENGINE: &str = "cento";
