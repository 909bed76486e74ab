//! Files that a password opens as a whole: the plain file in them, made in memory, by the first password that fits.

mod cipher;
mod odf;
mod office;

pub(super) use self::odf::open as open_odf;
pub(super) use self::office::open as open_office;
