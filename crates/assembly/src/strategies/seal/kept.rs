//! The strategy `seal`: what a repair kept, in its order, as far as the budget goes.

use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::error::Result;
use crate::neighborhood::Neighborhood;
use crate::select::block::{Block, Plan};
use crate::select::chooser::{Choice, Chooser, TOGETHER, Walk};

/// The strategy of that name. Its settings are those of the repair, which is over when a context is assembled.
pub(crate) struct Kept;

impl Chooser for Kept {
    fn plan<'w>(&'w self, choice: &'w Choice<'w>, ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        Ok(given(ledger.candidates(), choice.kept).offered(choice))
    }

    fn neighborhood(&self) -> Neighborhood {
        Neighborhood::none()
    }

    fn it_needs(&self) -> &'static str {
        TOGETHER
    }
}

/// Candidates one by one, in the order of their ids as given; an id that is none is passed over.
fn given(candidates: &[&Candidate], ids: &[&str]) -> Plan {
    let place = |id: &&str| candidates.binary_search_by(|candidate| candidate.id.as_str().cmp(id)).ok();
    let n = ids.len() as f64;
    let block = |(rank, at): (usize, usize)| Block::new(vec![at], (n - rank as f64) / n);
    Plan { blocks: ids.iter().filter_map(place).enumerate().map(block).collect(), ..Plan::default() }
}
