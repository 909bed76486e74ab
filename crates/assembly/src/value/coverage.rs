//! Coverage: which likely candidates meet which needs of the question.
//!
//! A question that names two things wants both told of, and the likeliest text may speak of one alone. What the
//! question needs are its names, numbers, dates and content terms (see [`crate::question::needs`]); a candidate meets a
//! need if its text, title and headings have all of the need's terms. Each part of the question has the same share,
//! each need of a part as much of it as its terms are rare: so the part that is worst served gains most by what serves
//! it.
//!
//! Source: saturated coverage after Lin and Bilmes (2011), with the needs N(q) of arXiv 2512.10787.
//! Differs: an unlikely candidate meets nothing: words alone are no answer.
//! Cost: the texts of the likely candidates are analysed.

use super::prior::Scored;
use crate::candidate::Candidate;
use crate::question::names::Aliases;
use crate::question::reading::Sought;
use crate::question::{Need, NeedKind, Needs, Reading};
use crate::rank::heaviest_first;
use crate::stop::Stop;

/// A candidate that is less likely than this share of the likeliest one meets nothing.
const LIKELY: f64 = 0.1;

/// A candidate that is less likely than this share of the likeliest one that meets a need does not meet it.
const NEAR: f64 = 0.5;

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
pub(crate) fn coverage(
    query: &str,
    candidates: &[&Candidate],
    pool: &[Scored],
    reading: &Reading<'_>,
    stop: Stop<'_>,
) -> Vec<Covered> {
    let least = pool.first().map_or(0.0, |best| LIKELY * best.raw);
    let likely: Vec<&Scored> = pool.iter().take_while(|scored| scored.raw > 0.0 && scored.raw >= least).collect();
    let titles: Vec<&str> = likely.iter().map(|scored| candidates[scored.candidate].title.as_str()).collect();
    let Needs { needs, clauses, .. } = Needs::read(query, &titles, &Aliases::default(), reading);
    let needs: Vec<Need> =
        needs.into_iter().filter(|need| need.weight > 0.0 && need.kind != NeedKind::Comparison).collect();
    let mut of_clause = vec![0.0; clauses.len()];
    needs.iter().for_each(|need| of_clause[need.clause] += need.weight);
    let n_clauses = of_clause.iter().filter(|weight| **weight > 0.0).count();
    // More terms than can be told apart: the rarest ones.
    let mut terms: Vec<(f64, String)> =
        needs.iter().flat_map(|need| &need.terms).map(|term| ((reading.idf)(term), term.clone())).collect();
    terms.sort_by(|a, b| heaviest_first((a.0, &a.1), (b.0, &b.1)));
    let sought = Sought::new(terms.into_iter().map(|(_, term)| term), *reading);
    let wanted: Vec<Option<u64>> = needs.iter().map(|need| sought.bits(&need.terms)).collect();
    let mut by: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    let mut best: Vec<f64> = vec![0.0; needs.len()];
    for scored in likely.iter().take_while(|_| !stop()) {
        let candidate = candidates[scored.candidate];
        let said = std::iter::once(candidate.text.as_str())
            .chain([candidate.title.as_str()])
            .chain(candidate.path.iter().map(String::as_str))
            .fold(0, |said, text| said | sought.said(text));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::NEVER;
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
        let found = coverage(query, &candidates, &pool, &reading, NEVER);
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
    fn terms_are_those_of_the_whole_text_wherever_a_word_starts() {
        let terms = |text: &str| text.replace("getUserName", "user").split(' ').map(str::to_owned).collect::<Vec<_>>();
        let chunk = candidate("d", 0, "calls getUserName for 1,600 users", 0.0);
        let scored = Scored { raw: 0.5, score: 0.5, ..Scored::unscored(0) };
        let reading = Reading { terms: &terms, idf: &|_| 1.0, sentences: &|text| vec![0..text.len()] };
        for question in ["1,600", "user"] {
            assert_eq!(
                coverage(question, &[&chunk], std::slice::from_ref(&scored), &reading, NEVER)[0].by,
                [0],
                "{question}"
            );
        }
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
