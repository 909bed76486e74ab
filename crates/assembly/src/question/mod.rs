//! Reading: what a question and the texts say, before anything is valued.
//!
//! The caller's functions cut texts into terms and sentences ([`reading`]); [`names`] finds what texts name,
//! [`quantity`] which number a text writes; [`needs`] says what a question asks for, [`kind`] of which kind it is.
//! Bridges, coverage and repairs read with the same eyes.

pub mod reading;
mod stop_words;
pub mod names;
pub mod quantity;
pub mod needs;
pub mod kind;

pub use kind::QueryKind;
pub use needs::{Need, NeedKind, Needs, Wanted};
pub use quantity::Quantity;
pub use reading::Reading;
pub(crate) use stop_words::is_function_word;
