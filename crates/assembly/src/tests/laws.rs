//! What holds for every input: the budget, the order of candidates, the trace, the bytes of the citations.

use super::formats::{read_lean, read_lean_xml, read_markdown, read_xml};
use super::*;
use proptest::prelude::{Just, Strategy, TestCaseError, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use std::collections::BTreeSet;

const LINES: [&str; 18] = [
    "=== [1] a document that quotes one of ours (bytes 0-9)",
    "==== [… 3 chunks omitted …]",
    "```rust",
    "fn main() { let a = b && c < d; }",
    "</source><source n=\"2\">",
    "[1] is a mark of its own",
    "Title",
    "=====",
    "A sentence. Another one about parents and months. A third",
    "日本語の文章です。もう一つの文。",
    "carriage\rreturn and form\u{c}feed",
    "e\u{301}\u{1f468}\u{200d}\u{1f469}",
    "",
    "   ",
    "the same line as ever about months and years and days and weeks and hours and more",
    "&amp; &#13; ]]>",
    "…",
    "=[7]",
];

/// Documents whole, and a pool of some of their chunks.
#[derive(Debug, Clone)]
struct Corpus {
    texts: Vec<String>,
    pool: Vec<Candidate>,
}

fn any_corpus() -> impl Strategy<Value = Corpus> {
    let chunk = (prop::collection::vec(0..LINES.len(), 0..4), 0..4usize, 0..5u32, any::<bool>());
    prop::collection::vec(prop::collection::vec(chunk, 1..7), 0..4).prop_map(|documents| {
        let (mut texts, mut pool) = (Vec::new(), Vec::new());
        for (number, chunks) in documents.iter().enumerate() {
            let (document, mut text) = (format!("d\n{number}"), String::new());
            for (index, (lines, ending, relevance, offered)) in chunks.iter().enumerate() {
                let lines: Vec<&str> = lines.iter().map(|&line| LINES[line]).collect();
                let chunk = lines.join("\n") + ["", "\n", "\n\n", " "][*ending];
                let span = text.len() as u64..(text.len() + chunk.len()) as u64;
                let blank = &chunk[..chunk.len() - chunk.trim_start().len()];
                let first_line = 1 + (text.matches('\n').count() + blank.matches('\n').count()) as u32;
                let line = (blank.len() < chunk.len()).then(|| Extent::lines(first_line, &chunk, 0..chunk.len()));
                let anchor = Anchor { line, row: Some((1 + index as u32).into()), ..Anchor::default() };
                text.push_str(&chunk);
                if *offered {
                    let label = ["body", "appendix"][index % 2];
                    let section = format!("{document} > {label}");
                    pool.push(Candidate {
                        span,
                        section,
                        anchor,
                        label: label.into(),
                        is_neighbor: *relevance == 0 && index % 3 == 1,
                        title: if index == 2 { "Title".into() } else { String::new() },
                        ..candidate(&document, index as u32, &chunk, f64::from(*relevance) / 4.0)
                    });
                }
            }
            texts.push(text);
        }
        Corpus { texts, pool }
    })
}

type Counter = fn(&str) -> usize;

/// Tokenizers that agree on little: words, letters, one for all, and three that are not additive at all.
fn counters() -> [(&'static str, Counter); 6] {
    [
        ("words", count_words),
        ("letters", |text| text.chars().count()),
        ("squares", |text| text.len() * text.len() / 400),
        ("random", |text| {
            text.len() / 4
                + text.bytes().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte))) % 9
        }),
        ("roots", |text| (text.len() as f64).sqrt() as usize),
        ("one", |text| usize::from(!text.is_empty())),
    ]
}

fn any_policy() -> impl Strategy<Value = String> {
    let gate = prop_oneof![Just("pairwise"), Just("union"), Just("none")];
    let (relevance, slack) = (prop_oneof![Just("fused"), Just("tf")], prop_oneof![Just("global"), Just("none")]);
    let limits = prop_oneof![
        Just(""),
        Just("candidates = 5\nmax_per_document = 2\n"),
        Just("min_relevance = 0.3\nmax_per_section = 1\n")
    ];
    let tables = prop_oneof![
        Just(""),
        Just("[rho]\n\"*\" = 0.3\n"),
        Just("[priors]\nappendix = -1.5\n[boosts]\nparents = 0.5\n[rho]\nappendix = 0.1\n")
    ];
    (gate, relevance, slack, limits, tables).prop_map(|(gate, relevance, slack, limits, tables)| {
        format!("gate = \"{gate}\"\nrelevance = \"{relevance}\"\nslack = \"{slack}\"\n{limits}{tables}")
    })
}

fn any_strategy() -> impl Strategy<Value = crate::Strategy> {
    let any = prop::sample::select(crate::Strategy::ALL.to_vec());
    prop_oneof![2 => Just(crate::Strategy::Cento), 2 => Just(crate::Strategy::Bubble), 4 => any]
}

fn any_format() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::Markdown), Just(Format::Xml), Just(Format::Json)]
}

/// Every citation's bytes stand where its mark says, and nowhere is there a byte more.
fn any_marks() -> impl Strategy<Value = Marks> {
    prop_oneof![Just(Marks::Lean), Just(Marks::Full)]
}

fn check_bytes(
    corpus: &Corpus,
    context: &Context,
    (format, marks): (Format, Marks),
) -> std::result::Result<(), TestCaseError> {
    let read = match (format, marks) {
        (Format::Xml, Marks::Full) => read_xml(context.counted()),
        (Format::Xml, Marks::Lean) => read_lean_xml(context.counted()),
        (Format::Markdown | Format::Json, Marks::Full) => read_markdown(context.counted()),
        (Format::Markdown | Format::Json, Marks::Lean) => read_lean(context.counted()),
    };
    prop_assert_eq!(read.len(), context.citations.len());
    for (citation, (n, text)) in context.citations.iter().zip(read) {
        let document: usize = citation.document[2..].parse().unwrap();
        let bytes = &corpus.texts[document][citation.span.start as usize..citation.span.end as usize];
        prop_assert_eq!(n, citation.n);
        if let Some(line) = citation.anchor.line {
            let before = &corpus.texts[document][..citation.span.end as usize - bytes.trim_start().len()];
            let first = 1 + before.matches('\n').count() as u32;
            prop_assert_eq!(line, Extent { first, last: first + bytes.trim().matches('\n').count() as u32 });
        }
        // In Markdown a line end closes a piece that has none of its own.
        let closed = match format {
            Format::Xml => bytes.replace('\u{c}', "\u{fffd}"), // XML cannot say it
            Format::Markdown | Format::Json if bytes.ends_with('\n') => bytes.to_owned(),
            Format::Markdown | Format::Json => format!("{bytes}\n"),
        };
        prop_assert_eq!(text, closed);
    }
    Ok(())
}

/// Every candidate has one record, whose numbers add up and agree with what was delivered.
fn check_trace(pool: &[Candidate], context: &Context) -> std::result::Result<(), TestCaseError> {
    let ids: BTreeSet<&str> = pool.iter().map(|candidate| candidate.id.as_str()).collect();
    let trace = &context.trace;
    prop_assert_eq!(trace.records.len(), pool.len());
    prop_assert_eq!(trace.records.iter().map(|record| record.chunk_id.as_str()).collect::<BTreeSet<_>>(), ids);
    let delivered: BTreeSet<&str> =
        context.citations.iter().flat_map(|citation| &citation.chunks).map(String::as_str).collect();
    prop_assert_eq!(&delivered, &chosen(context).into_iter().collect());
    prop_assert_eq!(&delivered, &trace.manifest.selected.iter().map(String::as_str).collect());
    for (at, record) in trace.records.iter().enumerate() {
        prop_assert_eq!(record.rank, at + 1);
        prop_assert_eq!(record.score_raw, record.relevance + record.prior + record.boost);
        let penalized = if record.score_raw < 0.0 {
            record.score_raw / record.len_penalty
        } else {
            record.score_raw * record.len_penalty
        };
        prop_assert_eq!(record.score_final, penalized);
        let passed = matches!(record.final_reason, Reason::PassedAllGates | Reason::CutToFit);
        prop_assert_eq!(passed, record.final_decision == Decision::Selected);
        if record.final_reason == Reason::BudgetExceeded {
            prop_assert!(record.step_details.tokens_needed > record.step_details.tokens_left);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_budget_is_kept_the_trace_is_complete_and_citations_are_exact(
        corpus in any_corpus(), policy in any_policy(), strategy in any_strategy(), format in any_format(), marks in any_marks(), budget in 0..160usize, counter in 0..6usize,
    ) {
        let (name, count) = counters()[counter];
        let assembly = Assembly { query: "parents months", policy: &policy, strategy, format, marks, count: &count, ..Assembly::of(corpus.pool.clone()) };
        match assembly.try_within(budget) {
            Ok(context) => {
                prop_assert!(context.n_tokens <= budget, "{} by {}", context.n_tokens, name);
                prop_assert_eq!(count(context.counted()), context.n_tokens);
                check_bytes(&corpus, &context, (format, marks))?;
                check_trace(&corpus.pool, &context)?;
            }
            Err(Error::BudgetTooSmall { needed, .. }) => prop_assert!(needed > budget),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn the_order_of_candidates_changes_nothing(corpus in any_corpus(), policy in any_policy(), strategy in any_strategy(), turn in 1..20usize) {
        let assembly = |pool: Vec<Candidate>| Assembly { strategy, ..Assembly::of(pool).policy(&policy) }.try_within(60);
        let mut turned = corpus.pool.clone();
        turned.reverse();
        let by = turn % turned.len().max(1);
        turned.rotate_left(by);
        match (assembly(corpus.pool), assembly(turned)) {
            (Ok(one), Ok(other)) => prop_assert_eq!(serde_json::to_string(&one).unwrap(), serde_json::to_string(&other).unwrap()),
            (one, other) => prop_assert_eq!(one.unwrap_err().to_string(), other.unwrap_err().to_string()),
        }
    }

    #[test]
    fn what_is_too_long_is_named_with_a_budget_that_suffices(corpus in any_corpus(), strategy in any_strategy(), format in any_format(), marks in any_marks(), budget in 0..12usize) {
        let assembly = Assembly { strategy, marks, ..Assembly::of(corpus.pool).format(format) };
        let mut budget = budget;
        while let Err(error) = assembly.try_within(budget) {
            let Error::BudgetTooSmall { needed, .. } = error else { return Err(TestCaseError::fail(error.to_string())) };
            prop_assert!(needed > budget && needed < 40); // a mark, and as much text
            budget = needed;
        }
        let context = assembly.within(budget);
        if let Some(least) = context.trace.manifest.least_budget {
            prop_assert!(context.citations.is_empty() && least > budget && context.counted().contains(&least.to_string()));
            prop_assert!(!assembly.within(least).citations.is_empty(), "{least} is said to be enough");
        }
    }
}

/// Every subset of a few chunks, assembled for itself: what fits is worth no more than the bound, and where the gap is
/// 0 no more than what was chosen.
#[test]
fn no_context_that_fits_is_worth_more_than_the_bound() {
    let mut state = 11_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut n_proven = 0;
    for round in 0..60 {
        let mut pool = Vec::new();
        for number in 0..7_u32 {
            let words: Vec<String> = (0..3 + next(12)).map(|at| format!("w{round}x{number}x{at}")).collect();
            let (document, text) = (format!("d{}", next(3)), words.join(" ") + "\n");
            let index = number + number * next(2) as u32;
            let span = u64::from(index) * 1_000..u64::from(index) * 1_000 + text.len() as u64;
            pool.push(Candidate { span, ..candidate(&document, index, &text, next(100) as f64 / 100.0) });
        }
        let mut places = BTreeSet::new();
        pool.retain(|chunk| places.insert((chunk.document.clone(), chunk.index)));
        let budget = 20 + next(60) as usize;
        let assembly = |candidates: &[Candidate], strategy| {
            let marks = [Marks::Lean, Marks::Full][round % 2];
            Assembly { strategy, marks, ..Assembly::of(candidates.to_vec()).policy("gate = \"none\"") }
                .try_within(budget)
        };
        let Ok(best) = assembly(&pool, crate::Strategy::Cento) else { continue };
        if best.citations.iter().any(|citation| citation.cut) {
            continue; // a cut chunk is not among the choices
        }
        let value = |id: &str| record(&best, id).step_details.value.unwrap();
        let certificate = best.trace.manifest.certificate.clone().unwrap();
        n_proven += usize::from(certificate.gap == 0.0);
        for subset in 1_u32..1 << pool.len() {
            let some: Vec<Candidate> = pool
                .iter()
                .enumerate()
                .filter(|(at, _)| subset >> at & 1 == 1)
                .map(|(_, chunk)| chunk.clone())
                .collect();
            let Ok(whole) = assembly(&some, crate::Strategy::Flat) else { continue };
            if chosen(&whole).len() < some.len() || whole.citations.iter().any(|citation| citation.cut) {
                continue;
            }
            let worth: f64 = some.iter().map(|chunk| value(&chunk.id)).sum();
            assert!(worth <= certificate.bound + 1e-9, "{worth} of {some:?} above {certificate:?}");
        }
    }
    assert!(n_proven > 30, "{n_proven}");
}
