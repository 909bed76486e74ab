//! The words of a repair about one passage: how it came in, or what beat it.

use super::config::SealConfig;
use super::repair::{Outcome, Stopped};
use super::score::Score;
use super::swap::{How, Loss};
use crate::figure::number;

/// A passage that a loop brought in: in which, in whose place, on which scores. None for what the question itself
/// brought, and for what is not kept.
pub(crate) fn came(repair: &Outcome, config: &SealConfig, id: &str) -> Option<String> {
    let mut swaps = repair.loops.iter().flat_map(|of| &of.swaps);
    let swap = swaps.rfind(|swap| swap.r#in == id).filter(|_| repair.kept.iter().any(|kept| kept == id))?;
    let (new, least) = (number(swap.in_score.total), number(config.epsilon));
    Some(match (&swap.out, &swap.out_score) {
        (Some(out), Some(old)) => format!(
            "came in loop {} in the place of {out}: S {new} against {}, better by more than the epsilon of {least}",
            swap.number,
            number(old.total)
        ),
        (Some(out), None) => format!("came in loop {} in the place of {out}: S {new}", swap.number),
        (None, _) => {
            format!("came in loop {} where there was room: S {new}, above the epsilon of {least}", swap.number)
        }
    })
}

/// Why a passage is not kept. `relevance` is that to the question, by id.
pub(crate) fn lost(
    repair: &Outcome,
    config: &SealConfig,
    id: &str,
    relevance: &dyn Fn(&str) -> Option<f64>,
) -> Option<String> {
    if repair.kept.iter().any(|kept| kept == id) {
        return None;
    }
    let Some(Loss { number: of, how, score, by, by_score, .. }) = repair.lost.iter().find(|loss| loss.id == id) else {
        let looked = config.candidates;
        return Some(format!("not looked at: beyond the {looked} passages of a ranking that may be (seal.candidates)"));
    };
    let total = |score: &Option<Score>| score.map_or_else(|| "?".to_owned(), |score| number(score.total));
    let (own, other, least) = (total(score), total(by_score), number(config.epsilon));
    let by = by.as_deref().unwrap_or("another");
    Some(match how {
        How::Replaced => {
            format!(
                "replaced in loop {of} by {by}: S {other} against its {own}, better by more than the epsilon of {least}"
            )
        }
        How::Outbid => {
            format!("beaten in loop {of} by {by}, which was better for the place: S {other} against its {own}")
        }
        How::NotBetter => {
            format!("not better in loop {of} than {by}, which kept its place: S {own} against {other}, epsilon {least}")
        }
        How::WorthNothing => {
            format!("there was room in loop {of}, but its S of {own} is not above the epsilon of {least}")
        }
        How::NoRoom if *of == 0 => "does not fit the budget by itself".to_owned(),
        How::NoRoom => {
            format!("found in loop {of}; it fits neither beside what is kept nor in a place that was open")
        }
        How::LessRelevant => {
            let figure = |id: &str| relevance(id).map_or_else(|| "?".to_owned(), number);
            let since = match (repair.loops.is_empty(), repair.stopped) {
                (false, _) => "it fitted in no place that was open since",
                (true, Stopped::Sufficient) => "what was kept was sufficient",
                (true, Stopped::Stuck) => "there was nothing to ask",
                (true, Stopped::Loops) => "no loop was asked for",
            };
            format!(
                "less relevant than {by}, the last that was kept before the budget was full: {} against {}; {since}",
                figure(id),
                figure(by)
            )
        }
        How::Blocked => "its title is blocked (seal.blocked_titles)".to_owned(),
    })
}
