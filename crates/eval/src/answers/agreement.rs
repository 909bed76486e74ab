//! Agreement of an answer with the gold answers, word for word: no model judges here.
//!
//! Source: SQuAD (arXiv 1606.05250), its evaluation: with `a` the words of the answer and `g` those of a gold answer,
//! in lower case, without punctuation and articles, exact match is `a = g`, and `F1 = 2PR / (P + R)` with
//! `P = |a & g| / |a|`, `R = |a & g| / |g|`, over multisets. The best of the gold answers counts. Containment of a gold
//! answer in the whole reply is ALCE's exact match of strings (arXiv 2305.14627).
//! Differs: words end at white space and Unicode's punctuation goes too, as in
//! [`context::answer`](crate::context::answer), so that all three figures mean the same by a word.
//! Range: `[0, 1]`; none without a gold answer that has a word.

use std::collections::BTreeMap;

use crate::context::Piece;
use crate::context::answer::{in_context, words};

/// 1 if the answer is a gold answer, else 0.
pub(super) fn exact_match(answer: &str, gold: &[String]) -> Option<f64> {
    let answer = words(answer);
    best(gold, |gold| f64::from(*gold == answer))
}

/// The words that answer and gold answer share.
pub(super) fn f1(answer: &str, gold: &[String]) -> Option<f64> {
    let answer = words(answer);
    let counts = |text: &str| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        text.split_whitespace().for_each(|word| *counts.entry(word.to_owned()).or_default() += 1);
        counts
    };
    let said = counts(&answer);
    best(gold, |gold| {
        let wanted = counts(gold);
        let n_both: usize = said.iter().map(|(word, n)| wanted.get(word).map_or(0, |wanted| *wanted.min(n))).sum();
        let n_all: usize = said.values().sum::<usize>() + wanted.values().sum::<usize>();
        2.0 * n_both as f64 / n_all as f64 // 2PR / (P + R); a gold answer here has words
    })
}

/// 1 if a gold answer stands in the text, else 0; none for a gold answer of yes or no, which is no text to be found.
pub(super) fn contained(text: &str, gold: &[String]) -> Option<f64> {
    in_context(gold, &[Piece { document: "", text: text.into() }])
}

fn best(gold: &[String], figure: impl Fn(&String) -> f64) -> Option<f64> {
    let gold = gold.iter().map(|gold| words(gold)).filter(|words| !words.trim().is_empty());
    gold.map(|gold| figure(&gold)).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, gold: &[&str], exact: Option<f64>, shared: Option<f64>) {
        let gold: Vec<String> = gold.iter().map(|gold| (*gold).to_owned()).collect();
        assert_eq!((exact_match(answer, &gold), f1(answer, &gold)), (exact, shared), "{answer:?} {gold:?}");
    }

    #[test]
    fn case_punctuation_and_articles_do_not_count_and_the_best_gold_answer_does() {
        check("the Rush!", &["Toto", "rush"], Some(1.0), Some(1.0));
        check("Yes", &["yes"], Some(1.0), Some(1.0));
        check("no", &["yes"], Some(0.0), Some(0.0));
        check("", &["Rush"], Some(0.0), Some(0.0));
        check("Rush", &[], None, None);
        check("Rush", &["the"], None, None);
    }

    #[test]
    fn shared_words_count_as_often_as_both_have_them() {
        // P = 1/3, R = 1/2.
        check("band Rush Canada", &["rush rush"], Some(0.0), Some(2.0 * 1.0 / 5.0));
        // P = 2/2, R = 2/3.
        check("rush rush", &["rush, rush and rush"], Some(0.0), Some(2.0 * 2.0 / 6.0));
    }

    #[test]
    fn a_reply_contains_an_answer_as_a_run_of_words() {
        let gold = ["Neil Peart".to_owned()];
        assert_eq!(contained("It was neil peart, of Rush.", &gold), Some(1.0));
        assert_eq!(contained("It was Peart.", &gold), Some(0.0));
        assert_eq!(contained("yes", &["yes".to_owned()]), None);
    }
}
