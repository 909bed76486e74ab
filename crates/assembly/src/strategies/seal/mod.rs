//! SEAL: a context of fixed size is repaired, not grown: what the question still lacks is asked for, and the least
//! useful passage makes room for it.
//!
//! Source: Lahmy and Yozevitch, "Replace, Don't Expand: Mitigating Context Dilution in Multi-Hop RAG via Fixed-Budget
//! Evidence Assembly" (arXiv 2512.10787), sections 3.2 to 3.6.
//! Differs: no language model is needed. Entities, relations and qualifiers are found by capitals, quotation marks,
//! titles, dates, numbers and sentence patterns; the gate and the score are sums over them. The paper does not disclose
//! the weights of the score or epsilon: those of [`SealConfig`] are ours. Retrieval relevance enters the score as a
//! fifth term, ours as well: without it the first ranking would count for nothing after the first loop.
//!
//! The flow: [`needs`](crate::question::needs) of the question; [`names`](crate::question::names) in every passage,
//! read into a [`ledger`] of what the kept ones say; the [`gate`] says whether that is enough, [`gaps`] what is missing
//! and which micro-queries ask for it; [`score`] and [`swap`] let what they find replace what is kept. [`Repair`] is
//! the loop, without the retrieval: whoever drives it fetches, and may tell what a language model reads and judges
//! ([`extraction`]).

pub mod config;
mod passage;
mod kept;
pub mod ledger;
pub mod extraction;
pub mod gate;
pub mod gaps;
pub mod score;
pub mod swap;
mod repair;
pub(crate) mod told;

#[cfg(test)]
mod tests;

pub use crate::question::Needs;
pub use config::{Budget, SealConfig, Update};
pub use extraction::{Extraction, Sufficiency};
pub use gaps::{Gap, MicroQuery, Missing};
pub use gate::Verdict;
pub(crate) use kept::Kept;
pub use ledger::{Ledger, Relation};
pub use passage::Passage;
pub use repair::{LoopRecord, Outcome, Repair, Stopped};
pub use score::Score;
pub use swap::{How, Loss, Swap};
