//! Value: how likely and how relevant a candidate is, by itself, before anything is chosen.
//!
//! [`share`] reads scores along documents, [`bridge`] lifts documents that are named, [`prior`] adds what is known
//! of labels and keywords; [`coverage`] tells which candidates meet a need of the question, [`evidence`] whether the
//! collection has an answer at all.

pub(crate) mod share;
pub mod bridge;
pub(crate) mod prior;
pub(crate) mod coverage;
pub mod evidence;
