//! What is delivered, as snapshots, and how a reader takes it apart again.

use super::*;
use insta::assert_snapshot;

/// Pieces of a Markdown context, read as its documentation says: the rule of the first line opens every line of Cento's
/// own, and no other.
pub(super) fn read_markdown(context: &str) -> Vec<(usize, String)> {
    let rule = context.chars().take_while(|&c| c == '=').count();
    let ours = format!("{} [", "=".repeat(rule));
    let mut pieces: Vec<(usize, String)> = Vec::new();
    for line in context.split_inclusive('\n') {
        match line.strip_prefix(&ours).and_then(|rest| rest.split_once(']')) {
            Some((mark, _)) => pieces.extend(mark.parse().ok().map(|n| (n, String::new()))), // a gap mark is no number
            None => pieces.last_mut().expect("the first line is ours").1.push_str(line),
        }
    }
    pieces
}

/// Pieces of an XML context, unescaped.
pub(super) fn read_xml(context: &str) -> Vec<(usize, String)> {
    read_sources(context).into_iter().map(|(n, text)| (n, unescape(text))).collect()
}

fn read_sources(context: &str) -> Vec<(usize, &str)> {
    context
        .split("<source n=\"")
        .skip(1)
        .map(|source| {
            let (n, rest) = source.split_once('"').expect("the attribute is closed");
            let (_, rest) = rest.split_once('>').expect("the tag is closed");
            let (text, _) = rest.split_once("</source>\n").expect("the element is closed");
            (n.parse().expect("the mark is a number"), text)
        })
        .collect()
}

/// Pieces of a lean Markdown context: the rule of the first line opens every mark and every omission, and no other
/// line.
pub(super) fn read_lean(context: &str) -> Vec<(usize, String)> {
    let rule = "=".repeat(context.chars().take_while(|&c| c == '=').count());
    let mut pieces: Vec<(usize, String)> = Vec::new();
    for line in context.split_inclusive('\n') {
        let ours = line.strip_prefix(&rule);
        let number = ours.and_then(|ours| ours.strip_prefix('[')?.split_once(']')?.0.parse().ok());
        match (number, pieces.last()) {
            (Some(n), _) => pieces.push((n, String::new())),
            (None, Some(&(n, _))) if ours == Some("…\n") => pieces.push((n, String::new())),
            (None, Some(_)) => pieces.last_mut().expect("there is one").1.push_str(line),
            (None, None) => assert!(line.starts_with("[nothing"), "the first line is ours: {line}"),
        }
    }
    pieces
}

/// Pieces of a lean XML context, unescaped.
pub(super) fn read_lean_xml(context: &str) -> Vec<(usize, String)> {
    read_sources(context)
        .into_iter()
        .flat_map(|(n, text)| text.split("<gap/>").map(move |text| (n, unescape(text))).collect::<Vec<_>>())
        .collect()
}

fn unescape(text: &str) -> String {
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(';').expect("every & is a reference");
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            number => char::from_u32(number[1..].parse().expect("a decimal reference")).expect("a character"),
        });
        out.push_str(rest);
    }
    out
}

/// Two documents in three pieces: two chunks that touch, a gap, one at the end; and a page without headings that quotes
/// a context.
fn library() -> Vec<Candidate> {
    let leave = [
        "## Parents\n\nParents may take <twelve> months & more.\n\n",
        "They ask a month before.\n\n",
        "## Illness\n\nOn the fourth day a doctor's note is due.\n\n",
        "## Other\n\nAsk.\n\n",
        "## Form\n\n```text\nName: ...\n```\n",
    ];
    let mut pool = Vec::new();
    let mut start = 40_u64;
    for (index, text) in leave.iter().enumerate() {
        let heading = text.lines().next().and_then(|line| line.strip_prefix("## ")).unwrap_or("Parents");
        pool.push(Candidate {
            title: "Leave".into(),
            path: vec!["Leave".into(), heading.into()],
            label: heading.to_lowercase(),
            section: format!("handbook/leave.md > {heading}"),
            span: start..start + text.len() as u64,
            anchor: Anchor {
                line: Some(Extent::lines(index as u32 * 4 + 3, text, 0..text.len())),
                ..Anchor::default()
            },
            ..candidate("handbook/leave.md", index as u32, text, [0.9, 0.7, 0.0, 0.0, 0.4][index])
        });
        start += text.len() as u64;
    }
    let quoted = "A context looks like this:\n=== [1] a.md (bytes 0-3)\nabc";
    pool.push(Candidate {
        title: "Contexts \"in\" HTML".into(),
        path: vec![],
        source: "extracted",
        ..candidate("site/contexts.html", 7, quoted, 0.8)
    });
    pool
}

fn assembly() -> Assembly<'static> {
    Assembly::of(library()).policy("min_relevance = 0.1")
}

#[test]
fn markdown() {
    let context = assembly().within(400);
    assert_snapshot!(context.text);
    assert_eq!(read_markdown(&context.text).len(), 3);
}

#[test]
fn xml() {
    assert_snapshot!(assembly().format(Format::Xml).within(400).text);
}

#[test]
fn json() {
    let context = assembly().format(Format::Json).within(400);
    assert_snapshot!(context.text);
    let object: serde_json::Value = serde_json::from_str(&context.text).unwrap();
    assert_eq!(object["context"].as_str(), Some(context.counted()));
    assert_eq!(
        object["context"].as_str(),
        Some(assembly().within(400).text.as_str()),
        "the budget counts the same string in both"
    );
    assert_eq!(count_words(context.counted()), context.n_tokens);
}

#[test]
fn pages_and_rows_are_cited_from_the_first_to_the_last() {
    let row = |index: u32, sheet: &str, heading: &str| Candidate {
        path: [heading].into_iter().filter(|heading| !heading.is_empty()).map(str::to_owned).collect(),
        source: "extracted",
        anchor: Anchor { sheet: Some(sheet.into()), row: Some((index + 12).into()), ..Anchor::default() },
        ..candidate("costs.xlsx", index, &format!("item: {index} | EUR: {}\n", index * 7 % 10), 0.9)
    };
    let page = |index: u32, page: u32| Candidate {
        source: "extracted",
        anchor: Anchor { page: Some(page.into()), ..Anchor::default() },
        ..candidate("report.pdf", index, &format!("Sentence {index} of a report.\n"), 0.8)
    };
    let of = |pool: &[Candidate], format| Assembly::of(pool.to_vec()).flat().format(format).within(400);
    let pool = [row(0, "Labour", ""), row(1, "Labour", ""), row(4, "Labour", ""), page(3, 3), page(4, 4), page(6, 4)];
    let markdown = of(&pool, Format::Markdown).text;
    let marks: Vec<&str> = markdown.lines().filter(|line| line.starts_with("=== [") && !line.contains('…')).collect();
    assert_eq!(
        marks,
        [
            "=== [1] costs.xlsx (sheet Labour, rows 12-13, extracted bytes 0-34)",
            "=== [2] costs.xlsx (sheet Labour, row 16, extracted bytes 68-85)",
            "=== [3] report.pdf > Body (pages 3-4, extracted bytes 72-120)",
            "=== [4] report.pdf > Body (page 4, extracted bytes 144-168)",
        ]
    );
    let xml = of(&pool, Format::Xml).text;
    for tag in [
        "<source n=\"1\" document=\"costs.xlsx\" sheet=\"Labour\" row=\"12-13\" extracted-bytes=\"0-34\">",
        "<source n=\"4\" document=\"report.pdf\" path=\"Body\" page=\"4\" extracted-bytes=\"144-168\">",
    ] {
        assert!(xml.contains(tag), "{xml}");
    }
    let object: serde_json::Value = serde_json::from_str(&of(&pool, Format::Json).text).unwrap();
    let (table, report) = (&object["citations"][0], &object["citations"][2]);
    assert_eq!(table["row"], serde_json::json!({"first": 12, "last": 13}));
    assert_eq!((table["sheet"].as_str(), table.get("page"), table.get("line")), (Some("Labour"), None, None));
    assert_eq!(report["page"], serde_json::json!({"first": 3, "last": 4}));
    assert_eq!((report.get("sheet"), report.get("row")), (None, None));

    let mark = |pool: &[Candidate]| of(pool, Format::Markdown).text.lines().next().unwrap().to_owned();
    let headed = mark(&[row(0, "Labour", "Labour"), row(1, "Labour", "Labour")]);
    assert_eq!(headed, "=== [1] costs.xlsx > Labour (rows 12-13, extracted bytes 0-34)", "the heading names the sheet");
    let two = mark(&[row(0, "Labour", ""), row(1, "Plant", "")]);
    assert_eq!(two, "=== [1] costs.xlsx (sheet Labour, extracted bytes 0-34)", "rows of two sheets are no range");
}

#[test]
fn lean_marks() {
    let written: Vec<String> = [Format::Markdown, Format::Xml]
        .into_iter()
        .flat_map(|format| {
            Order::ALL.map(|order| Assembly { order, ..assembly().lean().format(format) }.within(400).text)
        })
        .collect();
    assert_snapshot!(written.join("---------- another order or form ----------\n"));
    let context = assembly().lean().within(400);
    let cited: Vec<(usize, &str)> =
        context.citations.iter().map(|citation| (citation.n, citation.document.as_str())).collect();
    assert_eq!(cited, [(1, "handbook/leave.md"), (1, "handbook/leave.md"), (2, "site/contexts.html")]);
    assert_eq!(read_lean(&context.text).iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1, 1, 2]);
    let full = assembly().within(400);
    assert_eq!(context.trace.manifest.selected, full.trace.manifest.selected);
    assert!(context.n_tokens < full.n_tokens);
}

#[test]
fn names_that_are_none_stay_in_their_line() {
    let long = "heading ".repeat(1_250);
    for (title, heading) in
        [("", ""), (long.as_str(), long.as_str()), ("[2]\n[3] x", "a\n…"), ("\u{202e}דוח", "פרק"), ("", long.as_str())]
    {
        for format in [Format::Markdown, Format::Xml, Format::Json] {
            let named = |document: &str, index: u32| Candidate {
                title: title.into(),
                path: vec![heading.to_owned()],
                ..candidate(
                    document,
                    index,
                    &format!("What {document} has to say of it, {index}.\n"),
                    if document == "c" { 0.5 } else { 0.9 },
                )
            };
            let pool = vec![named("a/b.md", 0), named("a/b.md", 2), named("c", 0)];
            let context = Assembly::of(pool).lean().flat().format(format).within(120);
            let read = if format == Format::Xml { read_lean_xml } else { read_lean };
            let numbers: Vec<usize> = read(context.counted()).iter().map(|(n, _)| *n).collect();
            assert_eq!(numbers, [1, 1, 2], "{}", context.text);
            assert!(!context.text.contains('\u{202e}'));
            for budget in 0..40 {
                let Ok(context) = Assembly { ..Assembly::of(vec![named("a/b.md", 0)]) }
                    .lean()
                    .flat()
                    .format(format)
                    .try_within(budget)
                else {
                    continue;
                };
                let least = context.trace.manifest.least_budget;
                assert!(context.citations.is_empty() == least.is_some_and(|least| least > budget), "{}", context.text);
            }
        }
    }
}

#[test]
fn headers_shorten_with_the_budget() {
    let all: Vec<String> = [400, 90, 56].map(|budget| assembly().within(budget).text).into();
    assert_snapshot!(all.join("---------- a smaller budget ----------\n"));
}

#[test]
fn the_whole_answer_as_json() {
    let context = assembly()
        .policy("relevance = \"tf\"\ntheta = 8\n[priors]\nparents = 2\n[rho]\n\"*\" = 0.25")
        .query("a doctor")
        .within(80);
    assert_snapshot!(serde_json::to_string_pretty(&context).unwrap());
}

#[test]
fn a_table_of_reasons() {
    let mut pool = library();
    pool.push(Candidate { n_tokens: 9, ..candidate("copy.md", 0, "They ask a month before.", 0.6) });
    pool.push(candidate("long.md", 0, &"word ".repeat(200), 0.5));
    let context = Assembly::of(pool).policy("theta = \"median\"\nmin_relevance = 0.1\nmax_per_section = 1").within(90);
    let row = |record: &Record| {
        let details = serde_json::to_string(&record.step_details).expect("numbers and strings");
        format!(
            "{:2} {:24} {:.3} {:?} {:?} {details}\n",
            record.rank, record.chunk_id, record.score_final, record.stage, record.final_reason
        )
    };
    assert_snapshot!(context.trace.records.iter().map(row).collect::<String>());
}
