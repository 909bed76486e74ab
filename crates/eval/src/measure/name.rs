//! Names of measures: `nDCG@10`, `P(rel=2)@5`, `nDCG(dcg='exp-log2')@10`.
//!
//! Source: ir_measures. A name, parameters in parentheses, a cutoff behind `@`. Upper and lower case are one; what is
//! written back is as ir_measures writes it.

use std::fmt;
use std::str::FromStr;

use super::{Family, Gain, Measure};
use crate::error::Error;

/// The families by name, each with an example.
const FAMILIES: [(&str, Family, &str); 7] = [
    ("nDCG", Family::Ndcg(Gain::Linear), "nDCG@10"),
    ("R", Family::Recall, "R@100"),
    ("P", Family::Precision, "P@10"),
    ("AP", Family::AveragePrecision, "AP"),
    ("RR", Family::ReciprocalRank, "RR@10"),
    ("Success", Family::Success, "Success@5"),
    ("Judged", Family::Judged, "Judged@10"),
];

/// Other names of a measure, and its name in ir_measures.
const ELSEWHERE: [(&str, &str); 10] = [
    ("recall", "R"),
    ("precision", "P"),
    ("map", "AP"),
    ("average_precision", "AP"),
    ("mrr", "RR"),
    ("recip_rank", "RR"),
    ("hit_rate", "Success"),
    ("pass", "Success"),
    ("accuracy", "Success"),
    ("ndcg_cut", "nDCG"),
];

/// Names less alike than this (Jaro-Winkler) are not offered.
const LIKENESS_MIN: f64 = 0.75;

impl FromStr for Measure {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Measure { measure: text.to_owned(), reason };
        let (head, cutoff) = match text.split_once('@') {
            Some((head, cutoff)) => (head, Some(cutoff.trim())),
            None => (text, None),
        };
        let (name, parameters) = match head.trim().split_once('(') {
            Some((name, rest)) => {
                let inner =
                    rest.trim_end().strip_suffix(')').ok_or_else(|| wrong("the parenthesis is not closed".into()))?;
                (name.trim(), inner)
            }
            None => (head.trim(), ""),
        };
        let known = FAMILIES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name));
        let &(name, family, example) = known.ok_or_else(|| unknown(name, text))?;
        let cutoff = cutoff.map(|cutoff| match cutoff.parse::<usize>() {
            Ok(cutoff) if cutoff > 0 => Ok(cutoff),
            _ => Err(wrong(format!("the cutoff {cutoff:?} is not an integer above 0"))),
        });
        let mut measure = Self { family, cutoff: cutoff.transpose()?, rel: 1 };
        for parameter in parameters.split(',').filter(|parameter| !parameter.trim().is_empty()) {
            measure.set(parameter).map_err(wrong)?;
        }
        if measure.cutoff.is_none() && matches!(family, Family::Recall | Family::Precision | Family::Success) {
            return Err(wrong(format!("{name} wants a cutoff, as in {example}")));
        }
        Ok(measure)
    }
}

impl Measure {
    /// Takes a parameter, `rel=2`.
    fn set(&mut self, parameter: &str) -> Result<(), String> {
        let (key, value) = parameter.split_once('=').ok_or_else(|| format!("{parameter:?} is not `name=value`"))?;
        let (key, value) = (key.trim().to_ascii_lowercase(), unquoted(value.trim()));
        match (key.as_str(), self.family) {
            ("rel", family) if !matches!(family, Family::Ndcg(_) | Family::Judged) => match value.parse() {
                Ok(rel) if rel > 0 => self.rel = rel,
                _ => return Err(format!("rel={value} is not a grade above 0")),
            },
            ("dcg", Family::Ndcg(_)) => match value {
                "log2" => self.family = Family::Ndcg(Gain::Linear),
                "exp-log2" => self.family = Family::Ndcg(Gain::Exponential),
                _ => return Err(format!("dcg={value:?} is neither 'log2' nor 'exp-log2'")),
            },
            (_, Family::Ndcg(_)) => return Err(format!("it has no parameter {key:?}, only dcg='log2' or 'exp-log2'")),
            (_, Family::Judged) => return Err(format!("it has no parameter {key:?}, nor any other")),
            _ => return Err(format!("it has no parameter {key:?}, only rel")),
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        let family = match self.family {
            Family::Ndcg(_) => Family::Ndcg(Gain::Linear),
            family => family,
        };
        FAMILIES.iter().find(|(_, known, _)| *known == family).expect("every family has a name").0
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if self.family == Family::Ndcg(Gain::Exponential) {
            f.write_str("(dcg='exp-log2')")?;
        }
        if self.rel != 1 {
            write!(f, "(rel={})", self.rel)?;
        }
        match self.cutoff {
            Some(cutoff) => write!(f, "@{cutoff}"),
            None => Ok(()),
        }
    }
}

fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('\'').or_else(|| inner('"')).unwrap_or(value)
}

/// The error for a name that is none, with the nearest that is one and the cutoff that was given.
fn unknown(name: &str, text: &str) -> Error {
    let letters = name.to_ascii_lowercase();
    let letters = letters.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    let names = FAMILIES.iter().map(|(known, ..)| (*known, *known)).chain(ELSEWHERE);
    let likeness =
        |(like, meant): (&str, &'static str)| (strsim::jaro_winkler(&like.to_ascii_lowercase(), letters), meant);
    let (likeness, meant) = names.map(likeness).fold((0.0, ""), |best, next| if next.0 > best.0 { next } else { best });
    let cutoff: String = text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    let nearest = if likeness < LIKENESS_MIN {
        String::new()
    } else if cutoff.is_empty() {
        format!("did you mean {meant}? ")
    } else {
        format!("did you mean {meant}@{cutoff}? ")
    };
    let known: Vec<_> = FAMILIES.iter().map(|(_, _, example)| *example).collect();
    Error::UnknownMeasure { name: name.to_owned(), nearest, known: known.join(", ") }
}
