//! The flat strategy: by descending relevance until the budget is full. The baseline that every other is measured
//! against.

use crate::budget::Ledger;
use crate::error::Result;
use crate::neighborhood::Neighborhood;
use crate::pack::Excerpt;
use crate::select::chooser::{
    ALONE, Asked, Choice, Chooser, First, Selection, Valued, Verdict, Walk, admit_firsts, quoted,
};
use crate::select::decision::{Reason, Stage};
use crate::stop::check;
use crate::value::prior::{self, Scored};

/// The strategy of that name. It has no settings.
pub(crate) struct Flat;

impl Chooser for Flat {
    fn value(&self, asked: &Asked<'_>) -> Result<Valued> {
        Ok(Valued::plain(prior::found_only(asked.candidates, prior::by_relevance(asked.candidates))))
    }

    fn plan<'w>(&'w self, choice: &'w Choice<'w>, _ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        Ok(Box::new(|ledger, firsts| walk(choice, ledger, firsts)))
    }

    fn neighborhood(&self) -> Neighborhood {
        Neighborhood::none()
    }

    fn it_needs(&self) -> &'static str {
        ALONE
    }
}

fn walk(choice: &Choice<'_>, ledger: &mut Ledger<'_>, firsts: &[First]) -> Result<Selection> {
    let firsts = admit_firsts(ledger, firsts);
    let verdict = |&Scored { candidate, .. }: &Scored| {
        check(choice.stop)?;
        Ok(match firsts.get(&candidate) {
            Some(verdict) => verdict.clone(),
            None => match ledger.offer(&[Excerpt { candidate, part: None }]) {
                Ok(quote) => Verdict::new(Stage::Walk, Reason::PassedAllGates, quoted(ledger, quote)),
                Err(quote) => Verdict::over_budget(Stage::Walk, ledger, quote),
            },
        })
    };
    Ok(Selection { verdicts: choice.pool.iter().map(verdict).collect::<Result<_>>()?, ..Selection::default() })
}
