//! How a graph is built: two numbers, checked once.

use crate::{Error, Result};

/// The largest `m`: more neighbours than any measurement gained by.
pub const M_MAX: usize = 128;

/// The largest `ef_construction`.
pub const EF_CONSTRUCTION_MAX: usize = 65_536;

/// The density of a graph's links, and the care taken to find them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HnswConfig {
    /// Neighbours of a row in each upper layer; twice as many in layer 0.
    pub m: usize,
    /// Rows considered as neighbours of each row that is added.
    pub ef_construction: usize,
}

impl Default for HnswConfig {
    fn default() -> Self {
        Self { m: 16, ef_construction: 200 }
    }
}

impl HnswConfig {
    /// # Errors
    /// [`Error::Setting`] where a number is out of its range.
    pub(crate) fn check(&self) -> Result<()> {
        if !(2..=M_MAX).contains(&self.m) {
            return Err(Error::Setting { name: "m", value: self.m, allowed: "2 to 128" });
        }
        if !(self.m..=EF_CONSTRUCTION_MAX).contains(&self.ef_construction) {
            let allowed = "m to 65,536";
            return Err(Error::Setting { name: "ef_construction", value: self.ef_construction, allowed });
        }
        Ok(())
    }

    /// The most neighbours that a row has in this layer.
    pub(crate) fn degree_max(&self, layer: usize) -> usize {
        if layer == 0 { 2 * self.m } else { self.m }
    }

    /// Neighbours that a row chooses when it is added: the rest of its list is for those that choose it. On clustered
    /// rows and on those of a real model, choosing 24 of 32 needs a tenth fewer comparisons than 16 for the same
    /// recall; 32 gain no more.
    pub(crate) fn degree_chosen(&self, layer: usize) -> usize {
        self.degree_max(layer) * if layer == 0 { 3 } else { 4 } / 4
    }

    /// Neighbours that a list which overflowed is left with: the room for the next ones makes choosing anew seldom.
    pub(crate) fn degree_left(&self, layer: usize) -> usize {
        self.degree_max(layer) * 7 / 8
    }
}
