//! Coverage: which likely candidates meet which needs of the question.
//!
//! A question that names two things wants both told of, and the likeliest text may speak of one alone. What the question needs are its
//! names, numbers, dates and content terms (see [`crate::seal::needs`]); a candidate meets a need if its text, title and headings have all
//! of the need's terms. Each part of the question has the same share, each need of a part as much of it as its terms are rare: so the part
//! that is worst served gains most by what serves it.
//!
//! Source: saturated coverage after Lin and Bilmes (2011), with the needs N(q) of arXiv 2512.10787.
//! Differs: an unlikely candidate meets nothing: words alone are no answer.
//! Cost: one pass over the texts of the likely candidates; a word is analysed once, and only if a need starts with its first letter.

use crate::candidate::Candidate;
use crate::prior::Scored;
use crate::reading::Reading;
use crate::seal::names::Aliases;
use crate::seal::needs::{Need, NeedKind, Needs};
use std::collections::{BTreeMap, HashMap};

/// A candidate that is less likely than this share of the likeliest one meets nothing.
const LIKELY: f64 = 0.1;

/// A candidate that is less likely than this share of the likeliest one that meets a need does not meet it.
const NEAR: f64 = 0.5;

/// Terms that are told apart, the rarest ones.
const TERMS_MAX: usize = 64;

/// A need, and what meets it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Covered {
    pub(crate) need: Need,
    /// Its share of the question, in (0, 1].
    pub(crate) share: f64,
    /// Likely candidates that meet it, likeliest first; none if nothing likely does.
    pub(crate) by: Vec<usize>,
}

/// The needs of `query`, and which of the pool (likeliest first) meet them.
pub(crate) fn coverage(query: &str, candidates: &[&Candidate], pool: &[Scored], reading: &Reading<'_>) -> Vec<Covered> {
    let least = pool.first().map_or(0.0, |best| LIKELY * best.raw);
    let likely: Vec<&Scored> = pool.iter().take_while(|scored| scored.raw > 0.0 && scored.raw >= least).collect();
    let titles: Vec<&str> = likely.iter().map(|scored| candidates[scored.candidate].title.as_str()).collect();
    let Needs { needs, clauses, .. } = Needs::read(query, &titles, &Aliases::default(), reading);
    let needs: Vec<Need> =
        needs.into_iter().filter(|need| need.weight > 0.0 && need.kind != NeedKind::Comparison).collect();
    let mut of_clause = vec![0.0; clauses.len()];
    needs.iter().for_each(|need| of_clause[need.clause] += need.weight);
    let n_clauses = of_clause.iter().filter(|weight| **weight > 0.0).count();
    let mut words = Words::new(&needs, reading);
    let wanted: Vec<Option<u64>> = needs.iter().map(|need| words.all(&need.terms)).collect();
    let mut by: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    let mut best: Vec<f64> = vec![0.0; needs.len()];
    for scored in &likely {
        let candidate = candidates[scored.candidate];
        let said = std::iter::once(candidate.text.as_str())
            .chain([candidate.title.as_str()])
            .chain(candidate.path.iter().map(String::as_str))
            .fold(0, |said, text| said | words.said(text));
        for (at, wanted) in wanted.iter().enumerate() {
            if wanted.is_some_and(|wanted| wanted & !said == 0) && scored.raw >= NEAR * best[at] {
                best[at] = best[at].max(scored.raw);
                by[at].push(scored.candidate);
            }
        }
    }
    let share = |need: &Need| need.weight / of_clause[need.clause] / n_clauses as f64;
    needs.into_iter().zip(by).map(|(need, by)| Covered { share: share(&need), need, by }).collect()
}

/// Which terms of the needs a text says, one bit each.
struct Words<'a> {
    reading: &'a Reading<'a>,
    bits: BTreeMap<String, u32>,
    /// Whether a word that starts with this byte, in lower case, may be one of the terms; words that start beyond ASCII always may.
    starts: [bool; 256],
    known: HashMap<String, u64>,
}

impl<'a> Words<'a> {
    fn new(needs: &[Need], reading: &'a Reading<'a>) -> Self {
        let mut terms: Vec<&String> = needs.iter().flat_map(|need| &need.terms).collect();
        terms.sort_by(|a, b| (reading.idf)(b).total_cmp(&(reading.idf)(a)).then(a.cmp(b)));
        terms.dedup();
        let bits: BTreeMap<String, u32> = terms.into_iter().take(TERMS_MAX).cloned().zip(0..).collect();
        let mut starts = [false; 256];
        starts[128..].fill(true);
        bits.keys().for_each(|term| starts[usize::from(term.as_bytes()[0])] = true);
        Self { reading, bits, starts, known: HashMap::new() }
    }

    /// All of these terms; none if one of them is not told apart.
    fn all(&self, terms: &[String]) -> Option<u64> {
        terms.iter().try_fold(0, |all, term| Some(all | 1 << self.bits.get(term)?))
    }

    fn said(&mut self, text: &str) -> u64 {
        let Self { reading, bits, starts, known } = self;
        let words = text.split(|c: char| !c.is_alphanumeric());
        let may_be =
            |word: &&str| word.bytes().next().is_some_and(|byte| starts[usize::from(byte.to_ascii_lowercase())]);
        words.filter(may_be).fold(0, |said, word| {
            said | match known.get(word) {
                Some(&bits) => bits,
                None => {
                    let terms = (reading.terms)(word);
                    let new = terms.iter().filter_map(|term| bits.get(term)).fold(0, |said, bit| said | 1 << bit);
                    known.insert(word.to_owned(), new);
                    new
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{candidate, words};

    /// Texts as `title: text`, with their likelihoods; needs as `text share: numbers of the texts that meet it`.
    #[track_caller]
    fn check(query: &str, texts: &[(&str, f64)], idf: &dyn Fn(&str) -> f64, expected: &[&str]) {
        let chunk = |(at, (text, _)): (usize, &(&str, f64))| {
            let (title, text) = text.split_once(": ").unwrap();
            Candidate { title: title.into(), ..candidate(&format!("d{at}"), 0, text, 0.0) }
        };
        let chunks: Vec<Candidate> = texts.iter().enumerate().map(chunk).collect();
        let candidates: Vec<&Candidate> = chunks.iter().collect();
        let scored = |(at, (_, raw)): (usize, &(&str, f64))| Scored { raw: *raw, score: *raw, ..Scored::unscored(at) };
        let pool: Vec<Scored> = texts.iter().enumerate().map(scored).collect();
        let terms = |text: &str| words(text).into_iter().filter(|word| word.len() > 2).collect();
        let reading = Reading { terms: &terms, idf, sentences: &|text| vec![0..text.len()] };
        let found = coverage(query, &candidates, &pool, &reading);
        let shown = |covered: &Covered| format!("{} {:.3}: {:?}", covered.need.text, covered.share, covered.by);
        assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), expected);
    }

    const DIRECTORS: [(&str, f64); 4] = [
        ("Scott Derrickson: An American director, said Scott Derrickson.", 0.8),
        ("Doctor Strange: A film by Scott Derrickson.", 0.6),
        ("Ed Wood: He made films of low nationality.", 0.2),
        ("Wood: Ed cut wood.", 0.05),
    ];

    #[test]
    fn names_are_met_by_what_has_all_of_their_words_in_text_or_title() {
        check(
            "Were Scott Derrickson and Ed Wood American?",
            &DIRECTORS,
            &|_| 1.0,
            &["Scott Derrickson 0.500: [0, 1]", "Ed Wood 0.250: [2]", "American 0.250: [0]"],
        );
    }

    #[test]
    fn each_part_of_the_question_has_the_same_share_and_rare_terms_more_of_it() {
        let idf = |term: &str| if term == "ed" || term == "wood" { 3.0 } else { 1.0 };
        check(
            "Were Scott Derrickson and Ed Wood American?",
            &DIRECTORS,
            &idf,
            &["Scott Derrickson 0.500: [0, 1]", "Ed Wood 0.375: [2]", "American 0.125: [0]"],
        );
    }

    #[test]
    fn what_is_unlikely_meets_nothing_and_what_is_much_less_likely_than_another_neither() {
        let texts = [("a: the harbour", 0.8), ("b: a harbour wall", 0.3), ("c: wall", 0.07)];
        check("harbour wall", &texts, &|_| 1.0, &["harbour 0.500: [0]", "wall 0.500: [1]"]);
        check("bridge", &texts, &|_| 1.0, &["bridge 1.000: []"]);
        check("harbour", &[], &|_| 1.0, &["harbour 1.000: []"]);
        check("of the", &texts, &|_| 1.0, &[]);
        check("harbour wall", &texts, &|_| 0.0, &[]);
    }

    #[test]
    fn letters_beyond_ascii_are_read() {
        check(
            "école Äpfel",
            &[("a: une ÉCOLE", 0.8), ("b: äpfel", 0.7)],
            &|_| 1.0,
            &["Äpfel 0.500: [1]", "école 0.500: [0]"],
        );
    }
}
