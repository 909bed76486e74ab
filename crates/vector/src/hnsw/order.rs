//! The order in which rows are added, and the layers that they stand in: both come from one hash of the row's number.
//!
//! Source: Malkov and Yashunin 2018, section 4.1: a row stands in layer l or a higher one with probability `m^-l`.
//! Differs: a row's level is no random number but tells in which of these shares the hash lies. Rows go in by ascending
//! hash, so those of the upper layers first: each layer is a prefix of the order, and the entry, the very first, never
//! changes. As the hash mixes the order of the rows, chunks of one document do not go in together.

use std::collections::{BTreeMap, HashMap};

use xxhash_rust::xxh3::xxh3_128;

use super::beam::Candidate;
use crate::{Error, Result, Rows};

/// The most layers above layer 0: enough for any number of rows, at an `m` of 2 or more.
pub(crate) const UPPER_LAYERS_MAX: usize = 31;

/// The rows that differ from one another, in the order in which they are added. A row's place there is its node.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// The row of each node.
    pub(crate) rows: Vec<u32>,
    /// Nodes in each layer, from layer 0: always the first ones.
    pub(crate) layers: Vec<usize>,
    /// The first rows of groups of equal ones, ascending, each with the others, ascending.
    pub(crate) twins: Vec<(u32, Vec<u32>)>,
}

impl Order {
    /// Of rows whose bits are equal only the first is added: thousands of equal rows, such as a licence header gives,
    /// would fill the lists and the beam of everything near them.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; [`Error::Setting`] for too many rows.
    pub(crate) fn new(rows: &Rows, m: usize) -> Result<Self> {
        if rows.len() > Candidate::NODES_MAX {
            return Err(Error::Setting {
                name: "rows",
                value: rows.len(),
                allowed: "at most 2,147,483,648 in a graph",
            });
        }
        let mut distinct = Vec::with_capacity(rows.len());
        let mut first_by_hash: HashMap<u128, u32> = HashMap::with_capacity(rows.len());
        let mut twins: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for row in 0..rows.len() as u32 {
            let bytes = |row: u32| rows.bytes(row as usize..row as usize + 1);
            let first = *first_by_hash.entry(xxh3_128(bytes(row)?)).or_insert(row);
            // Rows of one hash that differ all the same are no twins.
            if first == row || bytes(first)? != bytes(row)? {
                distinct.push(row);
            } else {
                twins.entry(first).or_default().push(row);
            }
        }
        distinct.sort_unstable_by_key(|&row| hash(row));
        let mut layers = vec![distinct.len()];
        let mut share = u64::MAX;
        while layers.len() <= UPPER_LAYERS_MAX {
            share /= m as u64;
            match distinct.partition_point(|&row| hash(row) < share) {
                // A layer of one row leads nowhere.
                0 | 1 => break,
                n_nodes => layers.push(n_nodes),
            }
        }
        Ok(Self { rows: distinct, layers, twins: twins.into_iter().collect() })
    }

    /// The highest layer of a node.
    pub(crate) fn level(&self, node: u32) -> usize {
        self.layers.iter().rposition(|&n_nodes| (node as usize) < n_nodes).unwrap_or(0)
    }
}

/// The finaliser of SplitMix64: no two rows have the same.
fn hash(row: u32) -> u64 {
    let mut z = u64::from(row).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
