//! Measuring contexts: small sets by hand, laws on random spans, and the evaluation data if `CENTO_DATA` names it.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::contexts::{Citation, Section};
use crate::questions::Questions;

/// Tokens of three bytes, and the rest.
fn by_threes(text: &str, _: &str) -> std::result::Result<Vec<u64>, Box<dyn std::error::Error + Send + Sync>> {
    Ok((1..=text.len().div_ceil(3)).map(|token| (token * 3).min(text.len()) as u64).collect())
}

fn options() -> MeasureOptions<'static> {
    MeasureOptions::new(&by_threes)
}

/// An excerpt set of these files and questions.
fn set(files: &[(&str, &str)], questions: &[String]) -> Questions {
    let folder = tempfile::tempdir().unwrap();
    fs_err::create_dir(folder.path().join("docs")).unwrap();
    for (name, text) in files {
        fs_err::write(folder.path().join("docs").join(name), text).unwrap();
    }
    fs_err::write(folder.path().join("questions.jsonl"), questions.join("\n")).unwrap();
    Questions::read(folder.path()).unwrap()
}

fn question(id: &str, answer: &str, refs: &[(&str, Range<usize>, &str)]) -> String {
    let refs: Vec<_> = refs
        .iter()
        .map(|(doc, span, text)| serde_json::json!({"doc": doc, "start": span.start, "end": span.end, "text": text}))
        .collect();
    serde_json::json!({"id": id, "question": "?", "answer": answer, "refs": refs}).to_string()
}

/// A context that delivers bytes of the files of `docs/`.
fn context(query: &str, n_tokens: u64, pieces: &[(&str, Range<u64>, &str)]) -> Context {
    let mut documents: Vec<String> = Vec::new();
    for (document, ..) in pieces {
        if !documents.iter().any(|known| known == document) {
            documents.push((*document).to_owned());
        }
    }
    let cite = |(at, (document, span, text)): (usize, &(&str, Range<u64>, &str))| Citation {
        n: at as u64 + 1,
        document: (*document).to_owned(),
        path: Vec::new(),
        span: span.clone(),
        source: "source".into(),
        anchor: String::new(),
        chunks: Vec::new(),
        cut: false,
        text: (*text).to_owned(),
    };
    Context {
        version: 1,
        query_id: query.into(),
        strategy: "flat".into(),
        budget_tokens: 40,
        n_tokens,
        n_text_tokens: n_tokens.saturating_sub(1),
        tokenizer: "threes".into(),
        documents,
        citations: pieces.iter().enumerate().map(cite).collect(),
        ..Context::default()
    }
}

//              0  3  6  9  12 15 18
const A: &str = "Nuts are hard. So is all.";
const B: &str = "Bolts are long.";

/// Question `q1` has gold in both files, `q2` in the second.
fn nuts_and_bolts() -> Questions {
    set(
        &[("a.md", A), ("b.md", B)],
        &[
            question("q1", "hard", &[("a", 0..14, "Nuts are hard."), ("b", 0..5, "Bolts")]),
            question("q2", "yes", &[("b", 6..15, "are long.")]),
        ],
    )
}

#[track_caller]
fn check(group: &Group, expected: &[(&str, f64, usize)]) {
    for (name, mean, n) in expected {
        let figure = group.figure(name).unwrap_or_else(|| panic!("no figure {name}"));
        assert_eq!((figure.mean, figure.n), (*mean, *n), "{name}");
    }
}

fn one(questions: &Questions, contexts: Vec<Context>, options: &MeasureOptions<'_>) -> Group {
    let mut groups = measure(questions, contexts.into_iter().map(Ok), options).unwrap();
    assert_eq!(groups.len(), 1);
    groups.remove(0)
}

#[test]
fn every_figure_of_one_context_is_its_formula() {
    // Tokens of A: Nut|s a|re |har|d. |So |is |all|. ; gold bytes 0..14 are tokens 0..5, delivered 5..18 tokens 1..6.
    // Tokens of B: Bol|ts |are| lo|ng. ; gold bytes 0..5 are tokens 0..2, none is delivered.
    let mut given = context("q1", 20, &[("docs/a.md", 5..18, "are hard. So "), ("docs/c.md", 0..4, "Hard")]);
    given.sections = vec![
        Section { section: "A".into(), label: "prose".into(), chunks: 1, tokens: 9 },
        Section { section: "C".into(), label: "".into(), chunks: 1, tokens: 2 },
        Section { section: "D".into(), label: "".into(), chunks: 0, tokens: 0 },
    ];
    given.redundancy_cosine = Some(0.25);
    let options = MeasureOptions { missing: Missing::Skip, ..options() };
    let group = one(&nuts_and_bolts(), vec![given], &options);
    check(
        &group,
        &[
            ("tokens", 20.0, 1),
            ("budget_used", 20.0 / 40.0, 1),
            ("wrapping", 1.0 / 20.0, 1),
            ("sections", 2.0, 1),
            // Delivered a.md and c.md, gold a.md and b.md.
            ("title_precision", 1.0 / 2.0, 1),
            ("title_recall", 1.0 / 2.0, 1),
            ("title_f1", 0.5, 1),
            ("title_precision@1", 1.0, 1),
            ("title_recall@1", 1.0 / 2.0, 1),
            ("title_f1@1", 2.0 * 1.0 * 0.5 / 1.5, 1),
            ("title_precision@5", 1.0 / 2.0, 1),
            ("all_gold", 0.0, 1),
            // Found: tokens 1, 2, 3, 4 of A. Gold: 5 + 2. Delivered: 20.
            ("evidence_precision", 4.0 / 20.0, 1),
            ("evidence_recall", 4.0 / 7.0, 1),
            ("evidence_iou", 4.0 / (20.0 + 7.0 - 4.0), 1),
            // Found: characters 5..14. Gold: 14 + 5. Delivered: 13 + 4.
            ("evidence_char_precision", 9.0 / 17.0, 1),
            ("evidence_char_recall", 9.0 / 19.0, 1),
            ("evidence_char_iou", 9.0 / (17.0 + 19.0 - 9.0), 1),
            ("answer_in_context", 1.0, 1),
            // Content words: {hard} in {hard}, and the other way round.
            ("redundancy_pairwise", 1.0, 1),
            // {hard} is among {are, hard, so}.
            ("overlap_union", 1.0, 1),
            ("redundancy_cosine", 0.25, 1),
            ("title_recall_per_1k_tokens", 0.5 / 20.0 * 1_000.0, 1),
            ("evidence_recall_per_1k_tokens", 4.0 / 7.0 / 20.0 * 1_000.0, 1),
        ],
    );
    assert_eq!(group.figure("fact_recall"), None);
    assert_eq!(group.figure("fact_recall_per_1k_tokens"), None);
    assert_eq!(group.tokens_by_label, [("".to_owned(), 2.0), ("prose".to_owned(), 9.0)]);
    assert_eq!((group.n_contexts, group.n_missing, group.n_unasked), (1, 1, 0));
    assert_eq!(group.figures[0].values, [("q1".to_owned(), 20.0)]);
}

#[test]
fn pieces_that_break_a_sentence_are_counted_where_their_document_is_known() {
    let sentences = |text: &str| {
        let ends = text.match_indices(". ").map(|(at, _)| at + 2).chain([text.len()]);
        ends.scan(0, |start, end| Some(std::mem::replace(start, end)..end)).collect::<Vec<_>>()
    };
    let given = || {
        let broken =
            [("docs/a.md", 5..14, "are hard."), ("docs/a.md", 15..25, "So is all."), ("docs/c.md", 0..4, "Hard")];
        vec![context("q1", 20, &broken), context("q2", 20, &[("docs/b.md", 0..15, "Bolts are long.")])]
    };
    let measured = one(&nuts_and_bolts(), given(), &MeasureOptions { sentences: Some(&sentences), ..options() });
    check(&measured, &[("boundary_violations", (1.0 / 2.0 + 0.0) / 2.0, 2), ("duplication", 0.0, 2)]);
    assert_eq!(one(&nuts_and_bolts(), given(), &options()).figure("boundary_violations"), None);
}

#[test]
fn a_question_without_a_context_is_worth_nothing_and_costs_nothing() {
    let questions = nuts_and_bolts();
    let given = || vec![context("q2", 5, &[("docs/b.md", 6..15, "are long.")])];
    let zero = one(&questions, given(), &options());
    check(
        &zero,
        &[
            ("tokens", 5.0, 1),
            ("sections", 0.0, 1),
            ("redundancy_pairwise", 0.0, 1),
            ("title_precision", 1.0 / 2.0, 2),
            ("title_recall@3", 1.0 / 2.0, 2),
            ("evidence_recall", 1.0 / 2.0, 2),
            ("evidence_char_iou", 1.0 / 2.0, 2),
            ("all_gold", 1.0 / 2.0, 2),
            // `yes` is no text to be found, so only the missing q1 has the figure.
            ("answer_in_context", 0.0, 1),
            ("evidence_recall_per_1k_tokens", 0.5 / 5.0 * 1_000.0, 2),
        ],
    );
    assert_eq!(zero.figure("redundancy_cosine"), None);
    assert_eq!((zero.n_contexts, zero.n_missing), (1, 1));
    assert_eq!(zero.figure("all_gold").unwrap().values, [("q1".to_owned(), 0.0), ("q2".to_owned(), 1.0)]);
    let skip = one(&questions, given(), &MeasureOptions { missing: Missing::Skip, ..options() });
    check(&skip, &[("evidence_recall", 1.0, 1), ("title_precision", 1.0, 1)]);
    assert_eq!(skip.n_missing, 1);
    assert_eq!(skip.figure("answer_in_context"), None);
}

#[test]
fn an_empty_context_is_measured_as_one() {
    let group =
        one(&nuts_and_bolts(), vec![context("q1", 0, &[]), context("q2", 5, &[("docs/b.md", 0..1, "B")])], &options());
    check(
        &group,
        &[
            ("tokens", 2.5, 2),
            ("evidence_recall", 0.0, 2),
            ("title_precision", 0.5, 2),
            ("redundancy_pairwise", 0.0, 2),
        ],
    );
}

#[test]
fn groups_come_by_strategy_and_then_by_budget() {
    let given = |strategy: &str, budget_tokens| Context {
        strategy: strategy.into(),
        budget_tokens,
        ..context("q1", 5, &[("docs/b.md", 0..5, "Bolts")])
    };
    let contexts = [given("rse", 800), given("flat", 1600), given("rse", 96), given("flat", 800)];
    let groups = measure(&nuts_and_bolts(), contexts.into_iter().map(Ok), &options()).unwrap();
    let keys: Vec<String> = groups.iter().map(|group| format!("{} {}", group.strategy, group.budget)).collect();
    assert_eq!(keys, ["flat 800 tokens", "flat 1600 tokens", "rse 96 tokens", "rse 800 tokens"]);
}

#[test]
fn contexts_whose_budgets_were_left_to_each_query_are_one_group() {
    let given = |query: &str, budget_tokens| Context {
        budget_tokens,
        budget: Some("auto:900".into()),
        ..context(query, 5, &[("docs/b.md", 0..5, "Bolts")])
    };
    let number = Context { budget: None, ..given("q1", 96) };
    let contexts = [given("q1", 96), number, given("q2", 310)];
    let groups = measure(&nuts_and_bolts(), contexts.into_iter().map(Ok), &options()).unwrap();
    let told: Vec<(String, usize, usize)> =
        groups.iter().map(|group| (group.budget.to_string(), group.n_contexts, group.n_missing)).collect();
    assert_eq!(told, [("96 tokens".to_owned(), 1, 1), ("auto:900".to_owned(), 2, 0)]);
}

#[test]
fn pieces_that_touch_are_read_as_one() {
    let given = context(
        "q1",
        9,
        &[("docs/a.md", 0..9, "Nuts are "), ("docs/a.md", 9..14, "hard."), ("docs/b.md", 14..15, ".")],
    );
    let pieces = pieces(&given.citations);
    let told: Vec<(&str, &str)> = pieces.iter().map(|piece| (piece.document, &*piece.text)).collect();
    assert_eq!(told, [("docs/a.md", "Nuts are hard."), ("docs/b.md", ".")]);
}

#[track_caller]
fn refused(contexts: Vec<Context>, expected: &str) {
    let error = measure(&nuts_and_bolts(), contexts.into_iter().map(Ok), &options()).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn contexts_of_other_queries_are_refused_and_some_of_them_are_counted() {
    let bolts = [("docs/b.md", 0..5, "Bolts")];
    refused(
        vec![context("q9", 5, &bolts)],
        r#"no query in common: one side has "q9", the other "q1"; make the contexts from the queries of this set"#,
    );
    refused(vec![], "no context to evaluate");
    let group = one(&nuts_and_bolts(), vec![context("q9", 5, &bolts), context("q1", 5, &bolts)], &options());
    assert_eq!((group.n_contexts, group.n_unasked), (1, 1));
}

#[test]
fn a_collection_of_other_documents_is_refused() {
    refused(
        vec![context("q1", 5, &[("b.md", 0..5, "Bolts")])],
        r#"no document in common: one side has "b.md", the other "docs/a.md"; index the collection from this set: its docs folder, or the BEIR folder itself"#,
    );
}

#[test]
fn a_citation_that_is_not_the_document_is_refused() {
    for (span, text) in [(0..5, "Balls"), (11..16, "long."), (14..15, "!")] {
        let (start, end) = (span.start, span.end);
        refused(
            vec![context("q1", 5, &[("docs/b.md", span, text)])],
            &format!(
                r#"query q1: citation 1 is not what "docs/b.md" has at bytes {start}..{end}; the collection was indexed from other files than the questions were asked of"#
            ),
        );
    }
}

#[test]
fn one_group_has_one_tokenizer() {
    let bolts = [("docs/b.md", 0..5, "Bolts")];
    let other = Context { tokenizer: "fours".into(), ..context("q2", 5, &bolts) };
    refused(
        vec![context("q1", 5, &bolts), other],
        r#"query q2: tokens of "fours", other contexts of strategy flat and 40 tokens have tokens of "threes"; give each tokenizer a strategy label of its own"#,
    );
}

#[test]
fn a_tokenizer_nobody_has_is_told_with_the_document() {
    let unknown = |_: &str, name: &str| Err(format!("no tokenizer {name}").into());
    let contexts = [Ok(context("q1", 5, &[("docs/b.md", 0..5, "Bolts")]))];
    let error = measure(&nuts_and_bolts(), contexts, &MeasureOptions::new(&unknown)).unwrap_err();
    assert_eq!(error.to_string(), r#"document "docs/a.md" in tokens of "threes": no tokenizer threes"#);
}

#[test]
fn each_gold_document_is_tokenised_once() {
    let calls = std::cell::RefCell::new(HashMap::<String, usize>::new());
    let counted = |text: &str, name: &str| {
        *calls.borrow_mut().entry(text.to_owned()).or_default() += 1;
        by_threes(text, name)
    };
    let bolts = [("docs/b.md", 0..5, "Bolts")];
    let contexts = [context("q1", 5, &bolts), context("q2", 5, &bolts)].map(Ok);
    measure(&nuts_and_bolts(), contexts, &MeasureOptions::new(&counted)).unwrap();
    assert_eq!(calls.into_inner(), HashMap::from([(A.to_owned(), 1), (B.to_owned(), 1)]));
}

#[test]
fn facts_and_answers_of_a_beir_folder_are_found_in_the_cited_texts() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs_err::write(folder.path().join(name), text).unwrap();
    fs_err::create_dir(folder.path().join("qrels")).unwrap();
    write("queries.jsonl", r#"{"_id":"q1","text":"who?","metadata":{"answer":"Ann Lee"}}"#);
    write("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t1\n");
    write("facts.jsonl", r#"{"query":"q1","doc":"d1","sentences":["It was Ann Lee.","She left."]}"#);
    let questions = Questions::read(folder.path()).unwrap();
    let text = "It was\nAnn Lee.";
    let group = one(&questions, vec![context("q1", 10, &[("d1", 0..15, text), ("d3", 0..9, "She left.")])], &options());
    check(
        &group,
        &[
            ("fact_recall", 0.5, 1),
            ("answer_in_context", 1.0, 1),
            ("title_recall", 0.5, 1),
            ("fact_recall_per_1k_tokens", 50.0, 1),
        ],
    );
    assert_eq!(group.figure("evidence_recall"), None);
    let elsewhere = measure(&questions, [Ok(context("q1", 10, &[("d3", 0..9, "She left.")]))], &options()).unwrap_err();
    assert!(
        elsewhere.to_string().starts_with(r#"no document in common: one side has "d3", the other "d1""#),
        "{elsewhere}"
    );
}

/// A document, and a span of it in characters.
type Spans = Vec<(usize, Range<usize>)>;

fn spans() -> impl Strategy<Value = Spans> {
    let span = (0_usize..2, 0_usize..38, 1_usize..20);
    prop::collection::vec(span.prop_map(|(document, start, length)| (document, start..(start + length).min(40))), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn evidence_is_that_of_naive_sets_of_document_and_token(gold in spans(), cited in spans(), n_more in 0_u64..30) {
        // Forty characters of one and of two bytes, so that tokens of three bytes cut through characters.
        let texts = [["aé"; 20].concat(), ["bcd€"; 10].concat()];
        let starts: Vec<Vec<usize>> =
            texts.iter().map(|text| text.char_indices().map(|(start, _)| start).chain([text.len()]).collect()).collect();
        let bytes = |(document, span): &(usize, Range<usize>)| starts[*document][span.start]..starts[*document][span.end];
        let refs: Vec<(&str, Range<usize>, &str)> =
            gold.iter().map(|span| (["a", "b"][span.0], span.1.clone(), &texts[span.0][bytes(span)])).collect();
        let questions = set(&[("a.md", &texts[0]), ("b.md", &texts[1])], &[question("q", "", &refs)]);
        let delivered: Vec<(&str, Range<u64>, &str)> = cited.iter().map(|span| {
            let Range { start, end } = bytes(span);
            (["docs/a.md", "docs/b.md"][span.0], start as u64..end as u64, &texts[span.0][start..end])
        }).collect();
        let tokens = |spans: &Spans| -> BTreeSet<(usize, usize)> {
            spans.iter().flat_map(|span| bytes(span).map(|byte| (span.0, byte / 3))).collect()
        };
        let chars = |spans: &Spans| -> BTreeSet<(usize, usize)> {
            spans.iter().flat_map(|span| span.1.clone().map(|char| (span.0, char))).collect()
        };
        let n_tokens = tokens(&cited).len() as u64 + n_more;
        let group = one(&questions, vec![context("q", n_tokens, &delivered)], &options());
        let n_chars: usize = cited.iter().map(|(_, span)| span.len()).sum();
        for (name, gold, cited, n_delivered) in [
            ("evidence", tokens(&gold), tokens(&cited), n_tokens as usize),
            ("evidence_char", chars(&gold), chars(&cited), n_chars),
        ] {
            let found = gold.intersection(&cited).count();
            let share = |of: usize| found as f64 / of as f64;
            let of = |figure: &str| group.figure(&format!("{name}_{figure}")).unwrap().mean;
            prop_assert_eq!(of("precision"), share(n_delivered));
            prop_assert_eq!(of("recall"), share(gold.len()));
            prop_assert_eq!(of("iou"), share(n_delivered + gold.len() - found));
        }
    }
}

#[test]
fn delivering_exactly_the_evidence_of_real_questions_is_perfect() {
    let Some(data) = std::env::var_os("CENTO_DATA") else { return eprintln!("skipped: CENTO_DATA is not set") };
    for name in ["chroma_chunking", "qmsum_val", "policyqa_dev"] {
        let folder = Path::new(&data).join(name);
        if !folder.is_dir() {
            eprintln!("skipped: no {name} in CENTO_DATA");
            continue;
        }
        let questions = Questions::read(&folder).unwrap();
        // References of one question overlap in policies: each stretch of text is delivered once.
        let contexts = questions.iter().map(|question| {
            let spans_of = |document: &String| -> intervals::Intervals {
                question.evidence.iter().filter(|e| e.document == *document).map(|e| e.span.clone()).collect()
            };
            let pieces: Vec<(&str, Range<u64>, &str)> = question
                .documents
                .iter()
                .flat_map(|document| {
                    let text = questions.text(document).unwrap();
                    let spans: Vec<Range<u64>> = spans_of(document).iter().cloned().collect();
                    spans.into_iter().map(move |span| {
                        let cited = &text[span.start as usize..span.end as usize];
                        (document.as_str(), span, cited)
                    })
                })
                .collect();
            let n_tokens = pieces.iter().map(|(_, span, _)| span.end.div_ceil(3) - span.start / 3).sum();
            Ok(context(&question.id, n_tokens, &pieces))
        });
        let group = measure(&questions, contexts, &options()).unwrap().remove(0);
        assert_eq!((group.n_contexts, group.n_missing), (questions.len(), 0));
        for figure in [
            "evidence_recall",
            "evidence_char_precision",
            "evidence_char_recall",
            "evidence_char_iou",
            "all_gold",
            "title_f1",
        ] {
            assert_eq!(group.figure(figure).unwrap().mean, 1.0, "{name} {figure}");
        }
        // Two spans that share a token deliver it twice.
        let precision = group.figure("evidence_precision").unwrap().mean;
        assert!(precision > 0.99 && precision <= 1.0, "{name} {precision}");
    }
}
