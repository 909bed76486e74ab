//! What a request asks for besides its question: chunks in or out, another order, and nothing where there is no
//! evidence.

use super::*;
use crate::lever::Lever;
use crate::trace::Outcome;
use crate::{Evidence, Order};

const STRATEGIES: [Strategy; 12] = [
    Strategy::Cento,
    Strategy::Flat,
    Strategy::Mmr,
    Strategy::Adaptive,
    Strategy::Bubble,
    Strategy::Rse,
    Strategy::RseKadane,
    Strategy::RseExact,
    Strategy::Window,
    Strategy::Parent,
    Strategy::Automerge,
    Strategy::Seal,
];

fn pool() -> Vec<Candidate> {
    let mut pool = Vec::new();
    for document in ["a", "b", "c"] {
        for index in 0..6 {
            let relevance = f64::from((index * 7 + u32::from(document.as_bytes()[0])) % 11) / 11.0;
            let words: Vec<String> = (0..20).map(|at| format!("{document}{index}w{at}")).collect();
            pool.push(candidate(document, index, &(words.join(" ") + "\n"), relevance));
        }
    }
    pool.last_mut().unwrap().is_neighbor = true;
    pool
}

fn of(strategy: Strategy) -> Assembly<'static> {
    Assembly { strategy, ..Assembly::of(pool()) }
}

#[test]
fn what_is_included_is_delivered_by_every_strategy_and_what_is_excluded_by_none() {
    for strategy in STRATEGIES {
        let include = ["c#5", "a#0", "a#1"];
        let context = Assembly { include: &include, exclude: &["b", "a#2"], ..of(strategy) }.within(120);
        assert!(context.n_tokens <= 120, "{strategy}");
        for id in include {
            assert_eq!(reason(&context, id), Reason::Included, "{strategy} {id}");
            assert!(context.trace.manifest.selected.iter().any(|selected| selected == id), "{strategy} {id}");
        }
        for record in &context.trace.records {
            let out = record.document == "b" || record.chunk_id == "a#2";
            assert_eq!(out, record.final_reason == Reason::Excluded, "{strategy} {}", record.chunk_id);
        }
        assert_eq!(context.trace.records.len(), 18, "{strategy}");
    }
}

#[test]
fn what_is_included_may_break_the_caps_and_takes_its_part_of_them() {
    let policy = "max_per_document = 1\n[cento]\nrun_max = 1\n[rho]\n\"*\" = 0.1";
    let context = Assembly { include: &["a#0", "a#1", "b#3"], ..of(Strategy::Cento) }.policy(policy).within(200);
    let of_document = |document: &str| chosen(&context).iter().filter(|id| id.starts_with(document)).count();
    assert_eq!((of_document("a"), of_document("b")), (2, 1), "{:?}", chosen(&context));
}

#[test]
fn what_cannot_be_included_is_named_with_the_way_out() {
    let message = |include: &[&str], exclude: &[&str], budget| {
        let error = Assembly { include, exclude, ..of(Strategy::Cento) }.try_within(budget).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        message(&["z#1"], &[], 100),
        "z#1 cannot be included: it is no candidate; name a chunk of the collection as DOCUMENT#NUMBER"
    );
    assert!(message(&["a#1"], &["a"], 100).contains("left out at once"));
    assert!(message(&["a#1", "a#1"], &[], 100).contains("named twice"));
    let long = message(&["a#1", "b#1"], &[], 30);
    assert!(long.starts_with("what must be included (a#1, b#1) needs ") && long.contains("the budget is 30"), "{long}");
    let needed = long.rsplit_once("to ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    let fits = Assembly { include: &["a#1", "b#1"], ..of(Strategy::Cento) }.within(needed);
    assert!(fits.n_tokens <= needed && chosen(&fits).len() == 2, "{needed}");
}

#[test]
fn orders_deliver_the_same_chunks_in_another_order() {
    let (document, score, edges) = (Order::Document, Order::Score, Order::Edges);
    let in_order = |order| Assembly { order, ..of(Strategy::Flat) }.within(130);
    let context = in_order(document);
    let relevance = |context: &Context| -> Vec<f64> {
        let best = |chunks: &Vec<String>| chunks.iter().map(|id| record(context, id).score_raw).fold(0.0, f64::max);
        context.citations.iter().map(|citation| best(&citation.chunks)).collect()
    };
    let by_score = in_order(score);
    let figures = relevance(&by_score);
    assert!(figures.len() > 3 && figures.is_sorted_by(|a, b| a >= b), "{figures:?}");
    assert!(!by_score.text.contains("omitted"), "no gap is spoken of where pieces do not follow each other");
    let figures = relevance(&in_order(edges));
    let mut sorted = figures.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    assert_eq!((figures[0], *figures.last().unwrap()), (sorted[0], sorted[1]));
    let falls_then_rises = figures.windows(2).skip_while(|pair| pair[0] >= pair[1]).all(|pair| pair[0] <= pair[1]);
    assert!(falls_then_rises, "{figures:?}");
    for other in [&by_score, &in_order(edges)] {
        assert!(chosen(&context).iter().all(|id| chosen(other).contains(id)), "without gap marks no less fits");
        let numbers: Vec<usize> = other.citations.iter().map(|citation| citation.n).collect();
        assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>());
    }
}

#[test]
fn without_a_least_support_something_is_delivered_however_little_there_is() {
    let evidence = Evidence { cosine: -0.2, cosine_typical: 0.6, cosine_unrelated: 0.1, words: 0.0 };
    assert!(evidence.support() < 0.0);
    let context = Assembly { evidence: Some(evidence), ..of(Strategy::Cento) }.policy("[cento]\nmin_support = 0.0");
    assert!(!context.within(120).citations.is_empty());
}

#[test]
fn without_evidence_the_default_delivers_nothing_and_says_why() {
    let evidence = Evidence { cosine: 0.2, cosine_typical: 0.6, cosine_unrelated: 0.0, words: 0.1 };
    let unsupported = |strategy| Assembly { evidence: Some(evidence), ..of(strategy) };
    let context = unsupported(Strategy::Cento).within(120);
    assert_eq!((context.trace.manifest.outcome, context.citations.len()), (Outcome::NothingRelevant, 0));
    assert_eq!(reason(&context, "a#3"), Reason::NotSupported);
    let why = why(&context.trace, "a#3").unwrap();
    assert!(
        why.because.contains("support 0.433, below 0.62; the nearest chunk has a cosine of 0.2"),
        "{}",
        why.because
    );
    let [Lever::Number(lowered)] = &why.levers[..] else { panic!("{:?}", why.levers) };
    assert_eq!((lowered.key.to_string().as_str(), lowered.guess), ("cento.min_support", 433));
    let lowered = unsupported(Strategy::Cento).policy("[cento]\nmin_support = 0.433").within(120);
    assert!(!lowered.citations.is_empty());
    assert!(!Assembly { include: &["a#0"], ..unsupported(Strategy::Cento) }.within(120).citations.is_empty());
    assert!(!unsupported(Strategy::Flat).within(120).citations.is_empty(), "the other strategies have no such gate");
}

#[test]
fn what_is_not_likely_is_left_out_where_a_share_is_asked_for() {
    let padding =
        |n: u32| candidate("pad", 10 * n, &format!("pad{n} tells of thing{n} and of matter{n} alone here"), 0.1);
    let mut pool: Vec<Candidate> = (0..12).map(padding).collect();
    pool.push(candidate("answer", 0, "the answer that was asked for stands in this very passage", 0.9));
    let asked = |policy| Assembly { strategy: Strategy::Cento, ..Assembly::of(pool.clone()) }.policy(policy).within(90);
    let (filled, stopped) = (asked(""), asked("[cento]\nleast_share = 1.0"));
    assert!(filled.citations.len() > 3 && filled.n_tokens > 70, "{}", filled.text);
    assert_eq!(chosen(&stopped), ["answer#0"]);
    assert_eq!((reason(&stopped, "pad#0"), stopped.trace.manifest.outcome), (Reason::Unlikely, Outcome::Whole));
    let why = why(&stopped.trace, "pad#0").unwrap();
    assert!(why.because.contains("even shares of all candidates, where cento.least_share is 1"), "{}", why.because);
    let [Lever::Number(lowered)] = &why.levers[..] else { panic!("{:?}", why.levers) };
    let lowered = format!("[cento]\nleast_share = {}", lowered.guess as f64 / 1000.0);
    assert_eq!(asked(&lowered).citations.len(), filled.citations.len(), "{lowered}");
    assert!(asked("[cento]\nleast_share = 1e9").citations.is_empty());
}

#[test]
fn the_curve_bounds_what_is_delivered_at_every_budget() {
    for policy in ["", "max_per_document = 2", "gate = \"none\""] {
        let curve = of(Strategy::Cento).policy(policy).curve(300).unwrap();
        assert!(curve.points.is_sorted_by(|a, b| a.tokens < b.tokens && a.value < b.value));
        for solved in &curve.solved {
            let bound = curve.bound(solved.tokens);
            assert!(solved.certificate.value <= bound + 1e-9, "{policy} {solved:?} {bound}");
            if policy.is_empty() {
                assert!(
                    (solved.certificate.value - bound).abs() < 1e-9,
                    "nothing binds, so the bound is met: {solved:?} {bound}"
                );
            }
        }
        for budget in [40, 77, 150, 299] {
            let certificate = of(Strategy::Cento).policy(policy).within(budget).trace.manifest.certificate.unwrap();
            assert!(certificate.value <= curve.bound(budget) + 1e-9, "{policy} {budget}");
        }
        let knee = curve.knee.unwrap();
        assert!(curve.solved.iter().any(|solved| solved.tokens == knee));
    }
    let error = of(Strategy::Flat).curve(300).unwrap_err().to_string();
    assert_eq!(error, "a budget curve is of the strategy cento: `flat` knows no value of a token");
}

#[test]
fn what_stands_beside_too_little_is_not_delivered_either() {
    let none = of(Strategy::Cento).policy("min_relevance = 2.0").within(120);
    assert_eq!(none.trace.manifest.outcome, Outcome::NothingRelevant);
    assert_eq!((reason(&none, "c#5"), reason(&none, "a#0")), (Reason::NotProposed, Reason::LowRelevance));
    let some = of(Strategy::Cento).policy("min_relevance = 0.5").within(120);
    let found = |record: &&Record| record.final_decision == Decision::Selected && !record.is_neighbor;
    assert!(some.trace.records.iter().filter(found).all(|record| record.retrieval_score >= 0.5));
    assert!(!chosen(&some).is_empty());
}

#[test]
fn a_question_that_names_two_things_is_told_of_both() {
    let chunks = || {
        vec![
            Candidate {
                title: "Tides".into(),
                ..candidate("tides", 0, "the moon pulls the sea toward it every day", 0.9)
            },
            Candidate {
                title: "Seas".into(),
                ..candidate("seas", 0, "the moon pulls every sea of the round earth", 0.85)
            },
            Candidate {
                title: "Bread".into(),
                ..candidate("bread", 0, "flour and water with salt and much time", 0.8)
            },
        ]
    };
    let question = "the moon and flour";
    let told = |policy: &'static str| {
        let context =
            Assembly { strategy: Strategy::Cento, query: question, policy, ..Assembly::of(chunks()) }.within(28);
        let met = context.trace.manifest.needs.iter().map(|need| (need.text.clone(), need.met_by.clone())).collect();
        (chosen(&context).into_iter().map(str::to_owned).collect::<Vec<_>>(), met, context)
    };
    let (alone, unasked, _): (_, Vec<(String, Vec<String>)>, _) = told("[cento]\ncoverage = 0.0");
    assert_eq!((alone, unasked), (vec!["tides#0".to_owned(), "seas#0".to_owned()], Vec::new()));
    let (both, met, context) = told("");
    assert_eq!(both, ["tides#0", "bread#0"]);
    assert_eq!(
        met,
        [("moon".to_owned(), vec!["tides#0".to_owned()]), ("flour".to_owned(), vec!["bread#0".to_owned()])]
    );
    let certificate = context.trace.manifest.certificate.as_ref().unwrap();
    let gains: f64 = both.iter().map(|id| record(&context, id).step_details.value.unwrap()).sum();
    assert!((gains - certificate.value).abs() < 1e-9, "what each adds is what all are worth");
    assert_eq!(record(&context, "seas#0").meets, ["moon"]);
}

#[test]
fn the_default_multiplies_likelihoods_by_priors_and_boosts_whatever_their_size() {
    let scored = |policy: &str, chunk: &str| {
        let context = of(Strategy::Cento).policy(policy).within(120);
        let record = context.trace.records.iter().find(|record| record.chunk_id == chunk).unwrap();
        (record.relevance, record.prior, record.boost, record.score_raw)
    };
    let candidates = of(Strategy::Cento).candidates;
    let (label, word) = (&candidates[0].label, candidates[0].text.split_whitespace().next().unwrap().to_lowercase());
    let (likelihood, prior, boost, raw) = scored("", &candidates[0].id);
    assert_eq!((prior, boost, raw), (0.0, 0.0, likelihood));
    for nats in [0.5, -0.5, -3.0] {
        let policy = format!("[priors]\n{label:?} = {nats}\n[boosts]\n{word:?} = 0.25");
        let (relevance, prior, boost, raw) = scored(&policy, &candidates[0].id);
        assert_eq!((relevance, raw), (likelihood, relevance + prior + boost));
        assert!((relevance + prior - likelihood * f64::exp(nats)).abs() < 1e-12, "{prior}");
        assert!((raw - likelihood * f64::exp(nats + 0.25)).abs() < 1e-12, "{boost}");
    }
    let (_, _, _, raw) = scored(&format!("[priors]\n{label:?} = -1e300"), &candidates[0].id);
    assert!(raw > 0.0 && raw < 1e-4 * likelihood, "{raw}");
}
