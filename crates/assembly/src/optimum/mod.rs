//! The optimum: the segments of documents that are worth most within a budget, with a bound on how far from it a
//! solution may be.
//!
//! A solution is a set of chunks; chunks that touch are one segment. Its value is the sum of its
//! chunks' values plus the weight of every need that one of them meets. It is feasible if it keeps to the budget in
//! tokens (texts, what stands around the first segment of a document, and around each further one), holds no two
//! chunks that say the same, and keeps to the caps of sections and documents and to the longest run.
//!
//! In the order of the flow: `problem`; `heuristics` (a first incumbent, and repair of what is infeasible);
//! `relaxation` of a node, walked by `step`; its `dual` (bounds by multipliers), `fixing` by reduced costs, `labels`
//! for the core that is left; `search` by branch and bound. `by_tokens` bounds the problem at every budget at once.
//!
//! Source: branch and bound (Land and Doig 1960) on a Lagrangian relaxation (Everett 1963; Geoffrion 1974) that leaves
//! out conflicts and caps, whose core is solved exactly by labels and dominance (Desrochers and Soumis 1988).
//! Differs: from dsRAG's greedy, which loses value wherever one long segment takes the room of two; every solution has
//! a bound.
//! Cost: O(N) for each of some ten multipliers a node, and the labels of what they leave undecided.

mod problem;
mod heuristics;
mod relaxation;
mod step;
mod dual;
mod fixing;
mod labels;
mod search;
mod by_tokens;
#[cfg(test)]
mod tests;

pub(crate) use by_tokens::by_tokens;
pub(crate) use problem::{Cap, Need, Problem};
pub(crate) use search::{NODES_MAX, Optimum, gap, solve};
