//! Cutting: when the best candidate is longer than the budget, the run of its sentences that says most about the query;
//! and what whole chunks leave is spent on sentences of the next.
//!
//! Sentences first; if none that is about the query fits, words of the best sentence; then letters of the best word.
//! A part is of use if it has at least as many tokens as stand around it: a scrap that is dearer to wrap than to say is
//! not delivered.
//! Among the runs that fit, the one with most different terms of the query, then the earliest, is grown to the budget.
//! Differs: a run is chosen on counts of its parts and verified on the count of the whole context.
//! Cost: one count per sentence, and some twenty of the context for the best run.

use super::Ledger;
use crate::candidate::Candidate;
use crate::pack::Excerpt;
use crate::question::reading::{Reading, Sought, TERMS_MAX};
use std::ops::Range;

/// The factor by which a run may grow beyond its estimated length, as the parts are counted one by one.
const GROWTH: usize = 4;

/// The query, and the reading of texts that it was read with.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) query: &'a str,
    pub(crate) reading: Reading<'a>,
}

/// The best part of a candidate that fits into the (empty) ledger, its text at most `text_max` tokens. `Err`: nothing
/// of use fits; the tokens of a context with the least that is.
pub(crate) fn cut(
    ledger: &mut Ledger<'_>,
    candidate: usize,
    reader: &Reader<'_>,
    text_max: Option<i64>,
) -> Result<Excerpt, i64> {
    let text = &ledger.candidates()[candidate].text;
    let sought = Sought::new((reader.reading.terms)(reader.query), reader.reading);
    let any_met = sought.said(text) != 0;
    let mut units = sentences(ledger.candidates()[candidate], reader);
    let (mut beside_the_point, mut words) = (None, Vec::new());
    for split in [Some(split_words as fn(&str, &Range<usize>) -> Vec<Range<usize>>), Some(split_letters), None] {
        match best_run(ledger, candidate, &units, &sought, text_max) {
            Some((excerpt, n_met)) if n_met > 0 || !any_met => return Ok(excerpt),
            run => beside_the_point = beside_the_point.or(run.map(|(excerpt, _)| excerpt)),
        }
        if let (Some(split), Some(best)) = (split, most_matches(text, &units, &sought)) {
            units = split(text, &best);
            if words.is_empty() {
                words.clone_from(&units);
            }
        }
    }
    if let Some(excerpt) = beside_the_point {
        return Ok(excerpt);
    }
    let shortest = shortest(ledger, candidate, &words);
    let needed = ledger.whole_tokens(std::slice::from_ref(&shortest));
    let text_fits = text_max.is_none_or(|max| ledger.text_tokens(&shortest) <= max);
    if needed <= ledger.budget() as i64 && text_fits { Ok(shortest) } else { Err(needed) }
}

/// Sentences of a candidate about the query that fit into what is left; none if none does, or is of use.
pub(crate) fn sentences_beside(ledger: &mut Ledger<'_>, candidate: usize, reader: &Reader<'_>) -> Option<Excerpt> {
    let text = &ledger.candidates()[candidate].text;
    let sought = Sought::new((reader.reading.terms)(reader.query), reader.reading);
    let units = sentences(ledger.candidates()[candidate], reader);
    let left = ledger.left();
    let (start, estimate, n_met) = choose(text, &units, &sought, left, ledger);
    if n_met == 0 {
        return None;
    }
    let excerpt = |end: usize| Excerpt { candidate, part: Some(trimmed(text, units[start].start..units[end - 1].end)) };
    let farthest = units.len().min(start + GROWTH * estimate.max(1) + GROWTH);
    let end = farthest_that(start + 1, farthest, &mut |end| ledger.needed(&excerpt(end)) <= left)?;
    let (excerpt, is_whole) = (excerpt(end), start == 0 && end == units.len());
    let (text, needed) = (ledger.text_tokens(&excerpt), ledger.needed(&excerpt));
    (needed <= 2 * text && !is_whole).then_some(excerpt)
}

/// Ranges of the sentences that say more than a name of the document or a heading above them, which a mark says too;
/// without comments of Markdown, which no reader of the page sees.
fn sentences(chunk: &Candidate, reader: &Reader<'_>) -> Vec<Range<usize>> {
    let says_more = |range: &Range<usize>| {
        let Some(part) = chunk.text.get(range.clone()) else { return false };
        let words = || part.trim_start_matches(['#', ' ', '\t', '\n']).split_whitespace();
        let mut names = std::iter::once(&chunk.title).chain(&chunk.path);
        words().next().is_some()
            && !part.trim_start().starts_with("<!--")
            && !names.any(|name| words().eq(name.split_whitespace()))
    };
    (reader.reading.sentences)(&chunk.text).into_iter().filter(says_more).collect()
}

/// The shortest part of use that begins with the first of these words, or all of the text.
fn shortest(ledger: &mut Ledger<'_>, candidate: usize, words: &[Range<usize>]) -> Excerpt {
    let text = &ledger.candidates()[candidate].text;
    let start = words.first().map_or(0, |word| word.start);
    let parts = words.iter().map(|word| trimmed(text, start..word.end)).filter(|part| !part.is_empty());
    let mut parts = parts.map(|part| Excerpt { candidate, part: Some(part) });
    parts.find(|part| is_of_use(ledger, part)).unwrap_or_else(|| {
        let all = trimmed(text, 0..text.len());
        Excerpt { candidate, part: Some(all) }
    })
}

/// Says if a part that stands alone has as many tokens as stand around it.
fn is_of_use(ledger: &mut Ledger<'_>, excerpt: &Excerpt) -> bool {
    ledger.whole_tokens(std::slice::from_ref(excerpt)) <= 2 * ledger.text_tokens(excerpt)
}

/// The run of `units` with most terms of the query, grown as far as it fits, and how many terms it was chosen for.
fn best_run(
    ledger: &mut Ledger<'_>,
    candidate: usize,
    units: &[Range<usize>],
    sought: &Sought<'_>,
    text_max: Option<i64>,
) -> Option<(Excerpt, usize)> {
    let text = &ledger.candidates()[candidate].text;
    let (first, last) = (units.first()?, units.last()?);
    let header = Excerpt { candidate, part: Some(first.start..first.start) };
    let room = (ledger.budget() as i64 - ledger.whole_tokens(&[header])).min(text_max.unwrap_or(i64::MAX));
    let (start, estimate, n_met) = choose(text, units, sought, room, ledger);
    let excerpt = |end: usize| Excerpt {
        candidate,
        part: Some(trimmed(text, units[start].start..units[end - 1].end.min(last.end))),
    };
    let mut fits = |end: usize| {
        let excerpt = excerpt(end);
        let is_text = excerpt.part.as_ref().is_some_and(|part| !part.is_empty());
        is_text
            && text_max.is_none_or(|max| ledger.text_tokens(&excerpt) <= max)
            && ledger.whole_tokens(&[excerpt]) <= ledger.budget() as i64
    };
    let farthest = units.len().min(start + GROWTH * estimate.max(1) + GROWTH);
    let end = farthest_that(start + 1, farthest, &mut fits)?;
    let excerpt = fits(end).then(|| excerpt(end))?;
    is_of_use(ledger, &excerpt).then_some((excerpt, n_met))
}

/// First unit, number of units and number of terms of the run within `room` tokens that meets most terms, the earliest
/// of equal ones. If no unit is short enough, none of the first.
fn choose(
    text: &str,
    units: &[Range<usize>],
    sought: &Sought<'_>,
    room: i64,
    ledger: &Ledger<'_>,
) -> (usize, usize, usize) {
    let tokens: Vec<i64> = units.iter().map(|unit| ledger.tokens(&format!(" {}", text[unit.clone()].trim()))).collect();
    let met: Vec<u64> = units.iter().map(|unit| sought.said(&text[unit.clone()])).collect();
    let mut times_met = [0_u32; TERMS_MAX];
    let (mut end, mut sum, mut best) = (0, 0, (0, 0, 0));
    for start in 0..units.len() {
        if end < start {
            (end, sum) = (start, 0);
        }
        while end < units.len() && sum + tokens[end] <= room {
            sum += tokens[end];
            each_bit(met[end], |bit| times_met[bit] += 1);
            end += 1;
        }
        let n_met = times_met.iter().filter(|times| **times > 0).count();
        if end > start && (n_met > best.2 || best.1 == 0) {
            best = (start, end - start, n_met);
        }
        if end > start {
            sum -= tokens[start];
            each_bit(met[start], |bit| times_met[bit] -= 1);
        }
    }
    best
}

fn each_bit(bits: u64, mut then: impl FnMut(usize)) {
    (0..TERMS_MAX).filter(|bit| bits >> bit & 1 == 1).for_each(&mut then);
}

/// The greatest `n` in `low..=high` for which `holds`, if it holds up to there and no farther.
fn farthest_that(low: usize, high: usize, holds: &mut impl FnMut(usize) -> bool) -> Option<usize> {
    if low > high || !holds(low) {
        return None;
    }
    let (mut yes, mut no) = (low, high + 1);
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if holds(middle) { yes = middle } else { no = middle }
    }
    Some(yes)
}

/// The unit that meets most terms of the query, the first of equal ones.
fn most_matches(text: &str, units: &[Range<usize>], sought: &Sought<'_>) -> Option<Range<usize>> {
    let met = |unit: &Range<usize>| sought.said(&text[unit.clone()]).count_ones();
    units.iter().rev().max_by_key(|unit| met(unit)).cloned() // the last maximum of the reversed: the first
}

/// Words of a part of `text`, each with the white space before it; the last also with what follows it.
fn split_words(text: &str, part: &Range<usize>) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut in_word = false;
    for (at, c) in text[part.clone()].char_indices() {
        let (start, end) = (part.start + at, part.start + at + c.len_utf8());
        match words.last_mut() {
            Some(word) if !(in_word && c.is_whitespace()) => word.end = end,
            _ => words.push(start..end),
        }
        in_word = !c.is_whitespace();
    }
    if words.len() > 1 && !in_word {
        words.pop();
        words.last_mut().expect("one of several was taken").end = part.end;
    }
    words
}

fn split_letters(text: &str, part: &Range<usize>) -> Vec<Range<usize>> {
    let part = trimmed(text, part.clone());
    text[part.clone()].char_indices().map(|(at, c)| part.start + at..part.start + at + c.len_utf8()).collect()
}

/// The range without the white space at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + part.len() - part.trim_start().len();
    start..start + part.trim().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_letters_partition_their_part() {
        let text = "xx  one two\n three ";
        let words: Vec<&str> = split_words(text, &(2..text.len())).into_iter().map(|word| &text[word]).collect();
        assert_eq!(words, ["  one", " two", "\n three "]);
        let letters: Vec<&str> = split_letters("aéb", &(0..4)).into_iter().map(|letter| &"aéb"[letter]).collect();
        assert_eq!(letters, ["a", "é", "b"]);
    }

    #[test]
    fn binary_search_by_hand() {
        assert_eq!(farthest_that(1, 9, &mut |n| n <= 5), Some(5));
        assert_eq!(farthest_that(1, 9, &mut |_| true), Some(9));
        assert_eq!(farthest_that(3, 9, &mut |n| n <= 2), None);
        assert_eq!(farthest_that(3, 2, &mut |_| true), None);
    }
}
