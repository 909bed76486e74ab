//! The sufficiency gate: whether what is kept is enough to answer.
//!
//! Source: arXiv 2512.10787, section 3.3: coverage, corroboration, contradiction, answerability, judged by a language
//! model.
//! Differs: each is a number. Coverage and corroboration are shares of the needs by weight; two statements contradict
//! each other if their heads and relations are the same and their dates or numbers cannot be; an answer is in reach if
//! a sentence with a need names something of the kind that is wanted and that the question does not name itself.

use super::config::SealConfig;
use super::ledger::{Extract, Statement};
use super::passage::Passage;
use super::score::{Evidence, Profile, Worth, share};
use crate::question::names::{Aliases, Date, Kind};
use crate::question::{Needs, Quantity, Reading, Wanted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// The findings of the gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Share of the needs that is covered, by weight; 1 where nothing is needed.
    pub coverage: f64,
    /// Share of the covered needs that two documents cover.
    pub corroboration: f64,
    /// Statements of different passages that cannot both be true.
    pub contradictions: Vec<Contradiction>,
    /// Greatest share of the needs in one sentence with something that may be the answer.
    pub answer: f64,
    /// Coverage is at least what is asked for, nothing is contradicted, and an answer is in reach.
    pub sufficient: bool,
}

/// Two statements of which one is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Contradiction {
    /// Of what.
    pub head: String,
    /// The relation, as written.
    pub relation: String,
    /// The dates or numbers.
    pub tails: [String; 2],
    /// Ids of the passages.
    pub passages: [String; 2],
}

pub(crate) fn judge(
    needs: &Needs,
    worth: &Worth,
    kept: &[(&Passage, &Extract, &Profile)],
    aliases: &Aliases,
    reading: &Reading<'_>,
    config: &SealConfig,
) -> Verdict {
    let evidence = Evidence::of(kept.iter().map(|(_, _, profile)| *profile).collect(), worth);
    let weights = &worth.weights;
    let (mut all, mut covered, mut twice) = (0.0, 0.0, 0.0);
    for (weight, (cover, sources)) in weights.iter().zip(evidence.covered.iter().zip(&evidence.sources)) {
        all += weight;
        covered += if *cover > 0.0 { *weight } else { 0.0 };
        twice += if sources.len() > 1 { *weight } else { 0.0 };
    }
    let coverage = if all > 0.0 { share(covered, all) } else { 1.0 };
    let contradictions = contradictions(kept, aliases, reading);
    let answer = kept.iter().map(|kept| answer(needs, weights, kept)).fold(0.0, f64::max);
    let sufficient = coverage >= config.coverage_min && contradictions.is_empty() && answer > 0.0;
    Verdict { coverage, corroboration: share(twice, covered), contradictions, answer, sufficient }
}

fn answer(needs: &Needs, weights: &[f64], (passage, extract, profile): &(&Passage, &Extract, &Profile)) -> f64 {
    let asked = |text: &str| needs.needs.iter().any(|need| need.text == text);
    let says = |number: usize, kind: Kind| {
        let all = extract.mentions.iter().chain(&extract.joined);
        let of_sentence = all.filter(|mention| mention.sentence == number && mention.kind == kind);
        of_sentence.map(|mention| &passage.text[mention.span.clone()]).any(|said| !asked(said))
    };
    let may_answer = |number: usize, named: bool| match needs.wanted {
        Wanted::Date => says(number, Kind::Date),
        Wanted::Number => says(number, Kind::Number),
        Wanted::Name => named || !profile.about.is_empty(),
        Wanted::Any => true,
    };
    let all: f64 = weights.iter().sum();
    let sentences = profile.sentences.iter().enumerate();
    sentences
        .filter(|(number, sentence)| may_answer(*number, !sentence.names.is_empty()))
        .map(|(_, sentence)| share(sentence.needs.iter().map(|&need| weights[need]).sum(), all))
        .fold(0.0, f64::max)
}

fn contradictions(
    kept: &[(&Passage, &Extract, &Profile)],
    aliases: &Aliases,
    reading: &Reading<'_>,
) -> Vec<Contradiction> {
    let mut said: BTreeMap<(String, Vec<String>, Kind), Vec<(&Passage, &Statement)>> = BTreeMap::new();
    for (passage, extract, _) in kept {
        for statement in &extract.statements {
            let Some(kind) = statement.tail_kind.filter(|kind| kind.is_qualifier()) else { continue };
            let [head, relation] = [&statement.head, &statement.relation].map(|span| &passage.text[span.clone()]);
            said.entry((aliases.key(head), (reading.terms)(relation), kind)).or_default().push((passage, statement));
        }
    }
    let mut found = Vec::new();
    for ((_, _, kind), of_one) in said {
        for (at, &one) in of_one.iter().enumerate() {
            for &other in &of_one[at + 1..] {
                if one.0.id != other.0.id && !agree(kind, one, other) {
                    let text = |span: &Range<usize>| one.0.text[span.clone()].to_owned();
                    found.push(Contradiction {
                        head: text(&one.1.head),
                        relation: text(&one.1.relation),
                        tails: [one, other].map(|(passage, said)| passage.text[said.tail.clone()].to_owned()),
                        passages: [one, other].map(|(passage, _)| passage.id.clone()),
                    });
                }
            }
        }
    }
    found
}

/// Says if two dates or numbers can be of one thing; what is neither must be written alike.
fn agree(kind: Kind, one: (&Passage, &Statement), other: (&Passage, &Statement)) -> bool {
    let [text, other_text] = [one, other].map(|(passage, said)| &passage.text[said.tail.clone()]);
    if let (Kind::Date, Some(one), Some(other)) = (kind, Date::parse(text), Date::parse(other_text)) {
        return one.agrees(&other);
    }
    match [one, other].map(|(passage, said)| Quantity::at(&passage.text, &said.tail)) {
        [Some(one), Some(other)] => !one.contradicts(&other),
        _ => text == other_text,
    }
}
