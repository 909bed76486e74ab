//! Twins of the strategies that look for relevant segments: dsRAG's values and greedy choice, the tutorial's running
//! sum, and the best of all sets.

use super::*;
use crate::strategies::rse::{Preset, Rse};
use crate::strategies::rse_kadane::Kadane;

/// A chunk of the documents considered, laid end to end: the chunk where it is offered, its document, its value.
type Line = Vec<(Option<usize>, usize, f64)>;

fn settings(random: &mut Random) -> Policy {
    let preset = Rse::from(random.of(&[Preset::Balanced, Preset::Precision, Preset::FindAll]));
    let own = Rse {
        max_length: random.of(&[1, 2, 3, 6]),
        overall_max_length: random.of(&[1, 2, 5, 9]),
        overall_max_length_extension: 5,
        minimum_value: random.of(&[0.0, 0.25, 0.5]),
        irrelevant_chunk_penalty: random.of(&[0.0, 0.1, 0.2, 0.4]),
        decay_rate: random.of(&[2.0, 30.0]),
        top_k_for_document_selection: random.of(&[1, 2, 10]),
        chunk_length_adjustment: random.one_in(2),
    };
    Policy { rse: if random.one_in(4) { preset } else { own }, ..Policy::default() }
}

/// dsRAG's values, from chunk 0 of each document considered to the last one found.
fn line(case: &Case, rse: &Rse) -> Line {
    let ranking = ranking(case);
    let share = shares(case, &ranking);
    let mut line = Line::new();
    for (number, document) in documents(case).into_iter().enumerate() {
        let is_considered = |&&at: &&usize| case.pool[at].document == document;
        if !ranking.iter().take(rse.top_k_for_document_selection).any(|at| is_considered(&at)) {
            continue;
        }
        let last = ranking.iter().filter(is_considered).map(|&at| case.pool[at].index).max().unwrap();
        for index in 0..=last {
            let at = chunk_at(case, document, index);
            let rank = at.and_then(|at| ranking.iter().position(|&found| found == at));
            let value = rank.map_or(-rse.irrelevant_chunk_penalty, |rank| {
                let value = (-(rank as f64) / rse.decay_rate).exp() * share[rank] - rse.irrelevant_chunk_penalty;
                let n_chars = case.pool[ranking[rank]].text.chars().count() as f64;
                if rse.chunk_length_adjustment { value * (n_chars.max(700.0) / 700.0) } else { value }
            });
            line.push((at, number, value));
        }
    }
    line
}

#[test]
fn rse() {
    check(Strategy::Rse, SIZE, settings, |case, policy| {
        let (rse, line) = (&policy.rse, line(case, &policy.rse));
        let mut chosen: Vec<Range<usize>> = Vec::new();
        let mut wanted: Vec<Wanted> = Vec::new();
        loop {
            let n_chosen: usize = chosen.iter().map(Range::len).sum();
            let mut best: Option<(f64, Range<usize>)> = None;
            for start in 0..line.len() {
                for end in start + 1..=line.len() {
                    let within = &line[start..end];
                    let is_whole = within.iter().all(|(at, document, _)| at.is_some() && *document == within[0].1);
                    let overlaps = chosen.iter().any(|other| start < other.end && other.start < end);
                    let too_long = within.len() > rse.max_length || n_chosen + within.len() > rse.overall_max_length;
                    let is_worthless = within[0].2 < 0.0 || within[within.len() - 1].2 < 0.0;
                    if !is_whole || overlaps || too_long || is_worthless {
                        continue;
                    }
                    let value = within.iter().fold(0.0, |sum, (_, _, value)| sum + value);
                    if best.as_ref().is_none_or(|(most, _)| value > *most) {
                        best = Some((value, start..end));
                    }
                }
            }
            match best {
                Some((value, segment)) if value >= rse.minimum_value && n_chosen < rse.overall_max_length => {
                    let form = line[segment.clone()].iter().map(|(at, _, _)| at.unwrap()).collect();
                    wanted.push(Wanted::one(form, value));
                    chosen.push(segment);
                }
                _ => return walk(case, &wanted),
            }
        }
    });
}

#[test]
fn rse_kadane() {
    let settings = |random: &mut Random| Policy {
        kadane: Kadane {
            k: random.of(&[1, 2, 4, 10]),
            relevance_threshold: random.of(&[0.2, 0.3, 0.5, 0.9]),
            max_segment_length: random.of(&[1, 2, 4, 15]),
        },
        ..Policy::default()
    };
    check(Strategy::RseKadane, SIZE, settings, |case, policy| {
        let Kadane { k, relevance_threshold, max_segment_length } = policy.kadane;
        let found: Vec<usize> = ranking(case).into_iter().take(k).collect();
        let share = shares(case, &found);
        let value = |at: usize| {
            let rank = found.iter().position(|&other| other == at)?;
            let cosine = case.pool[at].arms.first().and_then(|arm| arm.raw).unwrap_or(share[rank]);
            Some((cosine + (1.0 - rank as f64 / found.len() as f64)) / 2.0 - relevance_threshold)
        };
        let mut segments: Vec<(f64, Vec<usize>)> = Vec::new();
        for document in documents(case) {
            let of_document = found.iter().filter(|&&at| case.pool[at].document == document);
            let Some(last) = of_document.map(|&at| case.pool[at].index).max() else { continue };
            let (mut sum, mut start) = (0.0, 0);
            let mut best: (f64, Range<u32>) = (0.0, 0..0);
            for index in 0..=last {
                let value = chunk_at(case, document, index).and_then(value).unwrap_or(0.0);
                if sum + value < 0.0 {
                    (sum, start) = (0.0, index + 1);
                } else {
                    sum += value;
                    if (index - start + 1) as usize <= max_segment_length && sum > best.0 {
                        best = (sum, start..index + 1);
                    }
                }
            }
            if best.0 > 0.0 {
                segments.push((best.0, best.1.filter_map(|index| chunk_at(case, document, index)).collect()));
            }
        }
        segments.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap()); // equal ones as they stand: by document
        walk(case, &segments.into_iter().map(|(value, form)| Wanted::one(form, value)).collect::<Vec<_>>())
    });
}

/// Sets of equal value may differ, so here the values are compared: no set that keeps to the limits is worth more.
#[test]
fn rse_exact() {
    let mut random = Random(7);
    let (mut n, mut n_many) = (0, 0);
    while n < CASES {
        let size = Size { documents: 2, chunks: 5, relevance_min: 0 };
        let case = Case { pool: pool(&mut random, size), budget: 1 + random.below(60) as usize, vectors: false };
        let policy = settings(&mut random);
        let Ok(context) = assembled(&offered(&case, Strategy::RseExact, &policy), Strategy::RseExact, &policy) else {
            continue;
        };
        if context.trace.manifest.outcome == Outcome::Cut {
            continue;
        }
        let line = line(&case, &policy.rse);
        let keeps = |set: &[usize]| {
            let tokens: usize = set.iter().map(|&place| tokens(&case.pool[line[place].0.unwrap()].text)).sum();
            let touch = |pair: &[usize]| pair[0] + 1 == pair[1] && line[pair[0]].1 == line[pair[1]].1;
            let longest =
                (0..set.len()).map(|at| 1 + set[at..].windows(2).take_while(|pair| touch(pair)).count()).max();
            tokens <= case.budget
                && set.len() <= policy.rse.overall_max_length
                && longest.is_none_or(|longest| longest <= policy.rse.max_length)
        };
        let value = |set: &[usize]| set.iter().map(|&place| line[place].2).sum::<f64>();
        let offered: Vec<usize> = (0..line.len()).filter(|&place| line[place].0.is_some()).collect();
        let best = (0_u32..1 << offered.len())
            .map(|subset| {
                offered.iter().enumerate().filter(|(at, _)| subset >> at & 1 == 1).map(|(_, &place)| place).collect()
            })
            .filter(|set: &Vec<usize>| keeps(set))
            .map(|set| value(&set))
            .fold(0.0, f64::max);
        let chosen: Vec<usize> = delivered(&case, &context).into_iter().map(|(at, _)| at).collect();
        let set: Vec<usize> = (0..line.len()).filter(|&at| line[at].0.is_some_and(|at| chosen.contains(&at))).collect();
        assert_eq!(set.len(), chosen.len(), "{policy:?} {case:#?}");
        assert!(keeps(&set), "{policy:?} {case:#?}");
        let certificate = context.trace.manifest.certificate.unwrap();
        assert!((value(&set) - best).abs() < 1e-9, "{} is not {best}: {policy:?} {case:#?}", value(&set));
        assert!((certificate.value - best).abs() < 1e-9 && certificate.gap == 0.0, "{certificate:?}");
        n += 1;
        n_many += usize::from(set.len() > 1);
    }
    assert!(n_many > CASES / 5, "{n_many}");
}
