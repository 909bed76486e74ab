//! Cento: the segments that hold most relevant text within the budget, with a bound on what any others could hold.
//!
//! A chunk is worth its likelihood (see `value::share` and `value::bridge`) times the tokens
//! that it costs alone, so that its length by itself neither helps nor harms, and a chunk that touches a chosen one is
//! the cheaper by a header. What the question needs (see `value::coverage`) is worth something once. What is
//! worth most together is chosen by `optimum`; two chunks that say the same are in conflict. Then everything
//! is counted as delivered, and what the count leaves is filled by what is worth most per token.
//!
//! Units: value in tokens of the budget's tokenizer, weighed by likelihood.
//! Cost: one token count for each chunk of the pool; see `optimum`.

mod rules;
mod problem;
mod walk;
pub mod curve;

pub use rules::Cento;

use crate::budget::Ledger;
use crate::error::Result;
use crate::figure::{count, number};
use crate::lever::{Lever, Number};
use crate::neighborhood::{Near, Neighborhood, Side};
use crate::select::chooser::{ALONE, Asked, Choice, Chooser, Valued, Walk};
use crate::select::decision::StepDetails;
use crate::select::gates::{Gates, RUN_MAX, Sameness, Told, beyond};
use crate::select::sections::Sections;
use crate::stop::check;
use crate::value::bridge::{self, Bridge};
use crate::value::coverage::coverage;
use crate::value::evidence::Evidence;
use crate::value::prior::{self, Priors};
use crate::value::share;
use curve::Curve;
use rules::Rules;

/// Best chunks found whose neighbours are looked at.
const NEIGHBORED: usize = 100;

/// Chunks on either side that are looked at: as far as any run of evidence is assumed to reach.
const NEIGHBOR_RADIUS: usize = 8;

/// Best chunks found whose section is looked at.
const SECTIONED: usize = 20;

/// Chunks on either side within which a section is looked at.
const SECTION_RADIUS: usize = 64;

/// The strategy of that name.
pub(crate) struct Segments<'p> {
    priors: Priors<'p>,
    rules: Rules<'p>,
}

impl<'p> Segments<'p> {
    pub(crate) fn new(settings: Cento, priors: Priors<'p>, gates: Gates<'p>) -> Self {
        Self { priors, rules: Rules { settings, gates } }
    }

    /// The worth of the pool at every budget up to the ledger's, solved at so many and at the knee.
    pub(crate) fn curve(&self, choice: &Choice<'_>, ledger: &mut Ledger<'_>, n_solved: usize) -> Result<Curve> {
        curve::curve(&self.rules, choice, ledger, n_solved)
    }
}

impl Chooser for Segments<'_> {
    fn value(&self, asked: &Asked<'_>) -> Result<Valued> {
        let Cento { bridges, coverage: weight, .. } = self.rules.settings;
        let &Asked { query, candidates, lines, reading, stop } = asked;
        let mut likelihoods = share::of_candidates(candidates, lines)?;
        let bridges: Vec<Option<Bridge>> =
            if bridges { bridge::lift(query, candidates, &mut likelihoods) } else { vec![None; candidates.len()] };
        let scores = prior::by_likelihood(candidates, &likelihoods, self.priors);
        check(stop)?;
        let needs = if weight > 0.0 { coverage(query, candidates, &scores.pool, &reading, stop) } else { Vec::new() };
        Ok(Valued { scores, bridges, needs })
    }

    fn plan<'w>(&'w self, choice: &'w Choice<'w>, _ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        Ok(Box::new(|ledger, firsts| walk::walk(&self.rules, choice, ledger, firsts)))
    }

    fn sections(&self) -> Option<Sections<'_>> {
        Some(self.rules.gates.sections)
    }

    fn min_support(&self) -> Option<f64> {
        Some(self.rules.settings.min_support).filter(|&least| least > 0.0) // support may be below 0
    }

    fn nat(&self) -> Option<f64> {
        Some(1.0)
    }

    fn neighborhood(&self) -> Neighborhood {
        Neighborhood(vec![
            Near::Beside { ranks: NEIGHBORED, side: Side::both(NEIGHBOR_RADIUS) },
            Near::Section { ranks: SECTIONED, radius: SECTION_RADIUS },
        ])
    }

    fn it_needs(&self) -> &'static str {
        ALONE
    }

    fn beyond(&self, place: usize, details: &StepDetails) -> Option<Told> {
        Some(beyond(place, details.chunks_limit, "likeliest", "cento.candidates"))
    }

    fn not_proposed(&self) -> Option<Told> {
        let least = self.rules.gates.min_relevance;
        let lowered = least.map(|least| Lever::Number(Number::down_to("min_relevance", least, least, -1.0)));
        Some(("beside nothing that min_relevance lets in".to_owned(), lowered.into_iter().collect()))
    }

    fn sameness(&self) -> Option<Sameness> {
        let Cento { same_words, same_meaning, .. } = self.rules.settings;
        let meaning = Some(("cento.same_meaning", same_meaning));
        Some(Sameness { words: ("cento.same_words", same_words), halved: true, meaning, ..self.rules.gates.sameness() })
    }
}

/// The sentence about a chunk that would make a run too long.
pub(crate) fn run_too_long(details: &StepDetails) -> Told {
    let raised =
        details.chunks_limit.map(|limit| Number::limit("cento.run_max", limit, limit.saturating_add(1), RUN_MAX));
    let limit = count(details.chunks_limit);
    let because = format!("would make a run of more than {limit} chunks, the most cento.run_max allows");
    (because, raised.map(Lever::Number).into_iter().collect())
}

/// The sentence about a chunk that nothing speaks for.
pub(crate) fn worth_nothing(likelihood: f64) -> Told {
    (format!("worth nothing: a likelihood of {}", number(likelihood)), Vec::new())
}

/// The sentence about a chunk that would only fill the budget.
pub(crate) fn unlikely(details: &StepDetails, least_share: f64) -> Told {
    let StepDetails { likelihood, min_likelihood, .. } = details;
    let (likelihood, least) = (likelihood.unwrap_or(f64::NAN), min_likelihood.unwrap_or(f64::NAN));
    let shares = likelihood / least * least_share;
    let because = format!(
        "not likely: a likelihood of {}, {} even shares of all candidates, where cento.least_share is {}",
        number(likelihood),
        number(shares),
        number(least_share)
    );
    (because, vec![Lever::Number(Number::down_to("cento.least_share", least_share, shares, 0.0))])
}

/// The sentence about a collection that does not support an answer.
pub(crate) fn not_supported(details: &StepDetails, evidence: Option<&Evidence>) -> Told {
    let StepDetails { support, min_support, .. } = details;
    let measured = support.unwrap_or(f64::NAN);
    let evidence = evidence.map_or_else(String::new, |evidence| {
        let Evidence { cosine, cosine_typical, words, .. } = evidence;
        format!(
            "; the nearest chunk has a cosine of {} where {} is typical, \
             the best one {} of what the question's words could give",
            number(*cosine),
            number(*cosine_typical),
            number(*words)
        )
    });
    let lowered = min_support.map(|least| Number::down_to("cento.min_support", least, measured, 0.0));
    let least = min_support.map_or_else(|| "?".to_owned(), number);
    let because = format!("the collection has no answer: support {}, below {least}{evidence}", number(measured));
    (because, lowered.map(Lever::Number).into_iter().collect())
}
