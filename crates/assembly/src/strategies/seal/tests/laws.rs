//! What holds for every input.

use super::super::score::{Profile, Score, Sentence, Worth};
use super::super::swap::State;
use super::*;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use std::collections::BTreeSet;

const N_NEEDS: usize = 4;
const NAMES: [&str; 4] = ["ada", "bo", "cy", "di"];

/// Small passages of few needs, names and shingles, so that ties and conflicts are common.
fn any_profile() -> impl Strategy<Value = Profile> {
    let cover = prop::collection::vec(prop_oneof![Just(0.0), Just(0.5), Just(1.0)], N_NEEDS);
    let sentence = (prop::collection::btree_set(0..N_NEEDS, 0..3), prop::collection::btree_set(0..4usize, 0..3));
    let shingles = prop::collection::btree_map(0..5u8, 1..4u8, 0..4);
    let about = prop::collection::btree_set(0..4usize, 0..2);
    let size = (0..3u8, 1..9usize, 0..4u8);
    (cover, prop::collection::vec(sentence, 0..3), shingles, about, size).prop_map(
        |(cover, sentences, shingles, about, (document, n_tokens, relevance))| {
            let sentence = |(needs, names): (BTreeSet<usize>, BTreeSet<usize>)| Sentence {
                needs: needs.into_iter().filter(|&need| cover[need] > 0.0).collect(),
                names: names.into_iter().map(|name| NAMES[name].to_owned()).collect(),
            };
            let sentences: Vec<Sentence> = sentences.into_iter().map(sentence).collect();
            let names = sentences.iter().flat_map(|sentence| &sentence.names);
            Profile {
                id: String::new(),
                document: format!("d{document}"),
                n_tokens,
                relevance: f64::from(relevance) / 4.0,
                names: names.map(|name| (name.clone(), (name.clone(), name.len() as f64))).collect(),
                about: about.into_iter().map(|name| NAMES[name].to_owned()).collect(),
                shingles: shingles.into_iter().map(|(shingle, mass)| (shingle.to_string(), f64::from(mass))).collect(),
                cover,
                sentences,
            }
        },
    )
}

/// Every anchor is an entity.
fn any_worth() -> impl Strategy<Value = Worth> {
    prop::collection::vec((0..5u8, 0..4u8), N_NEEDS).prop_map(|needs| Worth {
        weights: needs.iter().map(|(weight, _)| f64::from(*weight)).collect(),
        entity: needs.iter().map(|(_, kind)| *kind < 2).collect(),
        anchor: needs.iter().map(|(_, kind)| *kind < 1).collect(),
        ..Worth::default()
    })
}

fn any_config() -> impl Strategy<Value = SealConfig> {
    let budget = prop_oneof![(1..5usize).prop_map(Budget::Items), (3..20usize).prop_map(Budget::Tokens)];
    let weights = prop::collection::vec(0..5u8, 6);
    (budget, weights, 0..3usize, prop_oneof![Just(None), (1..3usize).prop_map(Some)]).prop_map(
        |(budget, weights, dwell, max_per_document)| {
            let weight = |at: usize| f64::from(weights[at]) / 4.0;
            SealConfig {
                budget,
                max_per_document,
                dwell,
                lambda_gap: weight(0),
                lambda_corr: weight(1),
                lambda_nov: weight(2),
                lambda_red: weight(3),
                lambda_rel: weight(4),
                epsilon: weight(5) / 8.0,
                ..SealConfig::default()
            }
        },
    )
}

/// The passages that have to do with the question: round after round until nobody joins.
fn naive_linked(passages: &[&Profile], worth: &Worth) -> Vec<bool> {
    let mut linked = vec![false; passages.len()];
    for _ in 0..=passages.len() {
        for at in 0..passages.len() {
            let joined: Vec<&Profile> = (0..passages.len()).filter(|&at| linked[at]).map(|at| passages[at]).collect();
            linked[at] |= naive_reach(&joined, passages[at], worth);
        }
    }
    linked
}

fn naive_reach(linked: &[&Profile], passage: &Profile, worth: &Worth) -> bool {
    let anchors: Vec<usize> = (0..N_NEEDS).filter(|&need| worth.anchor[need]).collect();
    let led = |name: &str| {
        let beside = |other: &&Profile| {
            other.sentences.iter().any(|sentence| !sentence.needs.is_empty() && sentence.names.contains(name))
        };
        linked.iter().any(beside)
    };
    let topic = |name: &str| linked.iter().any(|other| other.about.contains(name));
    anchors.is_empty()
        || anchors.iter().any(|&need| passage.cover[need] > 0.0)
        || NAMES.iter().any(|name| passage.about.contains(*name) && (led(name) || topic(name)))
        || NAMES.iter().any(|name| passage.names.contains_key(*name) && topic(name))
}

/// S(c), term by term from its definition, over lists.
fn naive_score(others: &[&Profile], passage: &Profile, worth: &Worth, config: &SealConfig) -> f64 {
    let weights = &worth.weights;
    let linked = naive_linked(others, worth);
    let of_question: Vec<&Profile> = (0..others.len()).filter(|&at| linked[at]).map(|at| others[at]).collect();
    let reached = naive_reach(&of_question, passage, worth);
    let has = |passage: &Profile, reached: bool, need: usize| match reached || worth.entity[need] {
        true => passage.cover[need],
        false => 0.0,
    };
    let covered = |need: usize| (0..others.len()).map(|at| has(others[at], linked[at], need)).fold(0.0, f64::max);
    let mut bridges: Vec<(f64, String)> = Vec::new();
    let total: f64 = weights.iter().sum();
    for name in NAMES {
        let mut weight = 0.0_f64;
        for other in &of_question {
            for sentence in other.sentences.iter().filter(|sentence| sentence.names.contains(name)) {
                let here: f64 = sentence.needs.iter().map(|&need| weights[need]).sum();
                weight = weight.max(if total > 0.0 { here / total * other.names[name].1 } else { 0.0 });
            }
        }
        if weight > 0.0 && of_question.iter().all(|other| !other.about.contains(name)) {
            bridges.push((weight, name.to_owned()));
        }
    }
    bridges.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let needs = 0..weights.len();
    let (mut missing, mut closed, mut found, mut confirmed) = (0.0, 0.0, 0.0, 0.0);
    for need in needs.clone() {
        missing += weights[need] * (1.0 - covered(need));
        closed += weights[need] * (has(passage, reached, need) - covered(need)).max(0.0);
    }
    for (weight, name) in &bridges {
        missing += weight;
        closed += if passage.about.contains(name) { *weight } else { 0.0 };
    }
    for need in needs {
        let sources = (0..others.len()).filter(|&at| has(others[at], linked[at], need) > 0.0);
        let mut documents: Vec<&String> = sources.map(|at| &others[at].document).collect();
        documents.sort();
        documents.dedup();
        if !documents.is_empty() {
            found += weights[need];
            if documents.len() == 1 && *documents[0] != passage.document && has(passage, reached, need) > 0.0 {
                confirmed += weights[need];
            }
        }
    }
    let mut x = 0.0;
    for name in NAMES.iter().filter(|_| reached) {
        let known = others.iter().any(|other| other.names.contains_key(*name) || other.about.contains(*name));
        let of_sentence = |sentence: &Sentence| -> f64 {
            let here: f64 = sentence.needs.iter().filter(|&&need| covered(need) > 0.0).map(|&need| weights[need]).sum();
            if total > 0.0 { here / total } else { 0.0 }
        };
        let sentences = passage.sentences.iter().filter(|sentence| sentence.names.contains(*name));
        x += if known { 0.0 } else { sentences.map(of_sentence).fold(0.0, f64::max) };
    }
    let red = naive_red(others, passage);
    let part = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    config.lambda_gap * part(closed, missing)
        + config.lambda_corr * part(confirmed, found)
        + config.lambda_nov * (x / (1.0 + x))
        - config.lambda_red * red
        + config.lambda_rel * passage.relevance
}

/// The greatest share of a passage's shingles that another has.
fn naive_red(others: &[&Profile], passage: &Profile) -> f64 {
    let mass: f64 = passage.shingles.values().sum();
    let mut red = 0.0_f64;
    for other in others {
        let shared: f64 =
            passage.shingles.iter().filter(|(key, _)| other.shingles.contains_key(*key)).map(|(_, mass)| mass).sum();
        red = red.max(if mass > 0.0 { shared / mass } else { 0.0 });
    }
    red
}

/// Says if these passages keep to the budget, and the last of them to the most of a document.
fn naive_legal(kept: &[usize], profiles: &[Profile], config: &SealConfig) -> bool {
    let tokens: usize = kept.iter().map(|&at| profiles[at].n_tokens).sum();
    let crowded = |at: &usize| {
        let same = kept.iter().filter(|&&other| profiles[other].document == profiles[*at].document).count();
        config.max_per_document.is_some_and(|most| same > most)
    };
    let within = match config.budget {
        Budget::Items(k) => kept.len() <= k,
        Budget::Tokens(most) => tokens <= most,
        Budget::Request => unreachable!(),
    };
    // Only the newcomer, the last one, is asked whether its document is full.
    within && !kept.last().is_some_and(crowded)
}

/// The replacement, by trying every place with every passage.
fn naive_repair(
    kept: &mut Vec<(usize, usize)>,
    evicted: &mut Vec<usize>,
    number: usize,
    profiles: &[Profile],
    worth: &Worth,
    config: &SealConfig,
) -> Vec<(Option<usize>, usize)> {
    let mut swaps = Vec::new();
    loop {
        let best_for = |others: &[usize]| -> Option<(usize, f64)> {
            let beside: Vec<&Profile> = others.iter().map(|&at| &profiles[at]).collect();
            let mut best: Option<(usize, f64)> = None;
            for at in 0..profiles.len() {
                let with: Vec<usize> = others.iter().copied().chain([at]).collect();
                if kept.iter().any(|(held, _)| *held == at)
                    || evicted.contains(&at)
                    || !naive_legal(&with, profiles, config)
                {
                    continue;
                }
                let score = naive_score(&beside, &profiles[at], worth, config);
                if best
                    .is_none_or(|(held, most)| score > most || (score == most && profiles[at].id > profiles[held].id))
                {
                    best = Some((at, score));
                }
            }
            best
        };
        let all: Vec<usize> = kept.iter().map(|(at, _)| *at).collect();
        if let Some((at, _)) = best_for(&all).filter(|(_, score)| *score > config.epsilon) {
            kept.push((at, number));
            swaps.push((None, at));
            continue;
        }
        let mut victims: Vec<(f64, usize)> = Vec::new();
        for place in 0..kept.len() {
            if kept[place].1 == 0 || number > kept[place].1 + config.dwell {
                let others: Vec<&Profile> =
                    all.iter().filter(|&&at| at != all[place]).map(|&at| &profiles[at]).collect();
                victims.push((naive_score(&others, &profiles[all[place]], worth, config), place));
            }
        }
        victims.sort_by(|a, b| a.0.total_cmp(&b.0).then(profiles[all[a.1]].id.cmp(&profiles[all[b.1]].id)));
        let mut done = true;
        for (worst, place) in victims {
            let others: Vec<usize> = all.iter().copied().filter(|&at| at != all[place]).collect();
            let Some((at, score)) = best_for(&others) else { continue };
            if score > worst + config.epsilon {
                swaps.push((Some(all[place]), at));
                evicted.push(all[place]);
                kept[place] = (at, number);
                done = false;
            }
            break;
        }
        if done {
            return swaps;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_replacement_is_the_naive_one(profiles in prop::collection::vec(any_profile(), 0..9), worth in any_worth(), config in any_config(), first in 0..5usize) {
        let profiles: Vec<Profile> = profiles.into_iter().enumerate().map(|(at, profile)| Profile { id: format!("p{at}"), ..profile }).collect();
        let pool: Vec<usize> = (0..profiles.len()).collect();
        let mut kept: Vec<usize> = Vec::new();
        for at in 0..first.min(profiles.len()) {
            let held = kept.iter().map(|&at| (profiles[at].document.as_str(), profiles[at].n_tokens));
            if super::super::swap::fits(&config, config.budget, held, (&profiles[at].document, profiles[at].n_tokens)) {
                kept.push(at);
            }
        }
        let mut naive: Vec<(usize, usize)> = kept.iter().map(|&at| (at, 0)).collect();
        let (mut state, mut evicted) = (State::first(kept), Vec::new());
        let mut n_swaps = 0;
        for number in 1..4 {
            let swaps = state.repair(number, &pool, &profiles, &worth, &config);
            let expected = naive_repair(&mut naive, &mut evicted, number, &profiles, &worth, &config);
            let id = |at: usize| profiles[at].id.clone();
            let done: Vec<_> = swaps.iter().map(|swap| (swap.out.clone(), swap.r#in.clone())).collect();
            prop_assert_eq!(done, expected.iter().map(|(out, at)| (out.map(id), id(*at))).collect::<Vec<_>>());
            for swap in &swaps {
                for score in swap.out_score.iter().chain([&swap.in_score]) {
                    check_score(score, &config);
                }
                if let Budget::Tokens(most) = config.budget {
                    prop_assert!(swap.tokens_before <= most && swap.tokens_after <= most);
                }
            }
            n_swaps += swaps.len();
        }
        prop_assert_eq!(&state.kept, &naive.iter().map(|(at, _)| *at).collect::<Vec<_>>());
        prop_assert!(n_swaps <= profiles.len(), "every step takes a passage that was never kept");
    }
}

#[track_caller]
fn check_score(score: &Score, config: &SealConfig) {
    for part in [score.gap, score.corr, score.nov, score.red, score.rel] {
        assert!((0.0..=1.0).contains(&part), "{score:?}");
    }
    let sum = config.lambda_gap * score.gap + config.lambda_corr * score.corr + config.lambda_nov * score.nov
        - config.lambda_red * score.red
        + config.lambda_rel * score.rel;
    assert_eq!(sum, score.total);
}

const WORDS: [&str; 24] = [
    "Ada Quist",
    "Night Train",
    "Oslo",
    "Rush (band)",
    "IBM",
    "(IBM)",
    "directed by",
    "born in",
    "is a",
    "was the",
    "He",
    "and",
    "1931.",
    "May 3, 1901",
    "2,5",
    "\"Nobody's",
    "hero\"",
    "東京",
    "e\u{301}ta",
    ". ",
    "\n",
    ",",
    "film",
    "d'Été",
];

fn any_text() -> impl Strategy<Value = String> {
    let words = prop::collection::vec(0..WORDS.len(), 0..24);
    prop_oneof![4 => words.prop_map(|words| words.into_iter().map(|word| WORDS[word]).collect::<Vec<_>>().join(" ")), 1 => any::<String>()]
}

fn any_corpus() -> impl Strategy<Value = Vec<Passage>> {
    prop::collection::vec((any_text(), 0..WORDS.len(), 0..9u8, 0..4u8), 0..9).prop_map(|passages| {
        let of = |(at, (text, title, relevance, document)): (usize, (String, usize, u8, u8))| Passage {
            document: format!("d{document}"),
            ..passage(&format!("p{at}"), WORDS[title], &text, f64::from(relevance) - 2.0)
        };
        passages.into_iter().enumerate().map(of).collect()
    })
}

proptest! {
    #[test]
    fn a_repair_keeps_its_budget_and_its_words(question in any_text(), corpus in any_corpus(), first in 0..6usize, config in any_config(), loops in 0..4usize) {
        let config = SealConfig { loops, ..config };
        let found = corpus[..first.min(corpus.len())].to_vec();
        let outcome = run(&question, &config, found.clone(), &corpus);
        let kept: Vec<&Passage> = outcome.kept.iter().map(|id| corpus.iter().find(|passage| passage.id == *id).unwrap()).collect();
        let tokens: usize = kept.iter().map(|passage| passage.n_tokens).sum();
        prop_assert_eq!(tokens, outcome.n_tokens);
        match config.budget {
            Budget::Items(k) => prop_assert!(kept.len() <= k),
            Budget::Tokens(most) => prop_assert!(tokens <= most),
            Budget::Request => unreachable!(),
        }
        prop_assert!(outcome.loops.len() <= loops);
        super::reading::check_verbatim(&outcome.ledger, &corpus);
        let mut gone = BTreeSet::new();
        for swap in outcome.loops.iter().flat_map(|record| &record.swaps) {
            prop_assert!(!gone.contains(&swap.r#in));
            gone.extend(swap.out.clone());
        }
        for query in outcome.loops.iter().flat_map(|record| &record.queries) {
            prop_assert!(crate::question::names::words(&query.text, 0..query.text.len()).len() <= super::super::gaps::KEYWORDS_MAX, "{}", query.text);
        }
        let mut turned = found;
        turned.reverse();
        let other = run(&question, &config, turned, &corpus);
        prop_assert_eq!(serde_json::to_string(&outcome).unwrap(), serde_json::to_string(&other).unwrap());
    }
}
