//! How a graph is built: two numbers, checked once.

use crate::{Error, Result};

/// The largest `m`: the construction keeps it in one byte, and doubles it at layer 0.
pub const M_MAX: usize = 128;

/// How densely a graph is linked and how carefully.
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
        if !(self.m..=u32::MAX as usize).contains(&self.ef_construction) {
            return Err(Error::Setting { name: "ef_construction", value: self.ef_construction, allowed: "m or more" });
        }
        Ok(())
    }

    /// The most neighbours that the construction gives a row in layer 0.
    pub(crate) fn m0(&self) -> usize {
        2 * self.m
    }
}
