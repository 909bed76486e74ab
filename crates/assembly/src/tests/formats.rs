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
    context
        .split("<source n=\"")
        .skip(1)
        .map(|source| {
            let (n, rest) = source.split_once('"').expect("the attribute is closed");
            let (_, rest) = rest.split_once('>').expect("the tag is closed");
            let (text, _) = rest.split_once("</source>\n").expect("the element is closed");
            (n.parse().expect("the mark is a number"), unescape(text))
        })
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
