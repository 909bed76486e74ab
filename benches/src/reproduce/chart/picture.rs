//! One context in pictures: the bar of its budget, bars of its sections, its documents as strips, and what was rejected
//! as a table.
//!
//! What is delivered is filled, what frames it hatched, what is left or kept out an outline: none is told by colour
//! alone.

use std::fmt::Write as _;

use super::super::markup::{Precision, escape, number, plural};
use super::super::picture::{Count, Document, Picture, Section};
use super::drawing::{Anchor, Drawing, NARROW, Paper, WIDE};

const BUDGET_HEIGHT: f64 = 30.0;
const SECTION_HEIGHT: f64 = 14.0;
/// From one bar to the next, its name included.
const SECTION_STEP: f64 = 40.0;
const STRIP_HEIGHT: f64 = 24.0;
/// How much lower an outline stands than what is filled.
const INSET: f64 = 5.0;
/// Nothing accepted is narrower.
const WIDTH_MIN: f64 = 2.5;

/// A figure: the question, then drawings and a table, in this order.
pub(crate) fn figure(picture: &Picture) -> String {
    let mut html = format!("<figure class=\"chart picture\">\n<figcaption>{}</figcaption>\n", escape(&picture.title));
    let _ = writeln!(html, "<p class=\"question\">{}</p>", escape(&picture.query));
    let _ = writeln!(
        html,
        "<p class=\"note\">Strategy <code>{}</code>: {}, {} weighed, {} delivered.</p>",
        escape(&picture.strategy),
        plural(picture.n_candidates, "candidate"),
        count(picture.n_weighed),
        count(picture.n_delivered)
    );
    html.push_str(&budget(picture));
    if picture.n_delivered == 0 {
        html.push_str("<p class=\"note\">Nothing was delivered: there are no sections and no documents to draw.</p>\n");
    } else {
        html.push_str(&sections(picture));
        html.push_str(&documents(picture));
    }
    html.push_str(&rejected(picture));
    html.push_str("</figure>\n");
    html
}

/// Where the budget went.
fn budget(picture: &Picture) -> String {
    let parts = [
        ("text", "texts", picture.text_tokens),
        ("frame", "headers and marks", picture.frame_tokens()),
        ("left", "unspent", picture.unspent_tokens()),
    ];
    let title = format!("{} of {} tokens", count(picture.n_tokens), count(picture.budget_tokens));
    let mut html = format!("<h3>Budget <span class=\"measure\">{title} ({})</span></h3>\n", escape(&picture.tokenizer));
    html.push_str(&legend(&parts.map(|(class, name, tokens)| (class, format!("{name} {}", count(tokens))))));
    let label = parts.map(|(_, name, tokens)| format!("{name} {}", count(tokens))).join(", ");
    for paper in [WIDE, NARROW] {
        let mut drawing = Drawing::of_parts(paper, BUDGET_HEIGHT + 2.0, &format!("{title}: {label}"));
        let whole = picture.budget_tokens.max(picture.n_tokens).max(1) as f64;
        let scale = (paper.width - 2.0) / whole;
        let mut x = 1.0;
        for (class, name, tokens) in parts.into_iter().filter(|(.., tokens)| *tokens > 0) {
            let (from, size) = ((x, 1.0), (tokens as f64 * scale, BUDGET_HEIGHT));
            drawing.bar(class, from, size, &format!("{name}: {} tokens", count(tokens)));
            if class == "frame" {
                drawing.hatch(from, size);
            }
            x += size.0;
        }
        html.push_str(&drawing.finish());
    }
    html
}

/// A bar for each section, and the outline of its share.
fn sections(picture: &Picture) -> String {
    let is_limited = picture.sections.iter().any(|section| section.limit_tokens.is_some());
    let mut html = String::from("<h3>Sections <span class=\"measure\">tokens of their texts</span></h3>\n");
    if is_limited {
        html.push_str(&legend(&[("text", "delivered".to_owned()), ("left", "share of the budget".to_owned())]));
    }
    for paper in [WIDE, NARROW] {
        html.push_str(&section_bars(&picture.sections, paper));
    }
    if picture.n_empty_sections > 0 {
        let (verb, sections) = match picture.n_empty_sections {
            1 => ("has", "more section".to_owned()),
            _ => ("have", "more sections".to_owned()),
        };
        let n = count(picture.n_empty_sections);
        let _ = writeln!(html, "<p class=\"note\">{n} {sections} {verb} a share, and nothing delivered.</p>");
    }
    html
}

fn section_bars(sections: &[Section], paper: Paper) -> String {
    let most = sections.iter().map(|section| section.tokens.max(section.limit_tokens.unwrap_or(0))).max();
    let texts: Vec<String> = sections.iter().map(section_text).collect();
    let values_width = paper.widest(texts.iter().map(String::as_str)) + 8.0;
    let scale = (paper.width - values_width - 2.0) / most.unwrap_or(0).max(1) as f64;
    let label = "Tokens delivered of each section, and its share where it has one";
    let mut drawing = Drawing::of_parts(paper, SECTION_STEP * sections.len() as f64, label);
    for (at, (section, text)) in sections.iter().zip(&texts).enumerate() {
        let y = SECTION_STEP * at as f64 + paper.font_size + 7.0;
        drawing.text("name", (1.0, y - 6.0), Anchor::Start, &paper.fit(&section.name, paper.width - 2.0));
        let title = format!("{}: {text} tokens", section.name);
        if let Some(limit) = section.limit_tokens {
            drawing.bar("left", (1.0, y), (limit as f64 * scale, SECTION_HEIGHT), &title);
        }
        drawing.bar("text", (1.0, y), (section.tokens as f64 * scale, SECTION_HEIGHT), &title);
        let end = section.tokens.max(section.limit_tokens.unwrap_or(0)) as f64 * scale;
        drawing.text("value", (end + 8.0, y + SECTION_HEIGHT - 3.0), Anchor::Start, text);
    }
    drawing.finish()
}

fn section_text(section: &Section) -> String {
    match section.limit_tokens {
        Some(limit) => format!("{} of {}", count(section.tokens), count(limit)),
        None => count(section.tokens),
    }
}

/// A strip for each document.
fn documents(picture: &Picture) -> String {
    let mut html = String::from("<h3>Documents <span class=\"measure\">from first to last byte</span></h3>\n");
    html.push_str(&legend(&[
        ("text", "delivered, under its mark".to_owned()),
        ("out", "weighed and rejected".to_owned()),
        ("out beyond", "never weighed".to_owned()),
    ]));
    for document in &picture.documents {
        for paper in [WIDE, NARROW] {
            html.push_str(&strip(document, paper));
        }
    }
    html.push_str(
        "<p class=\"note\">A strip ends where the last chunk does that the trace names: it does not say how long a document is.</p>\n",
    );
    html
}

fn strip(document: &Document, paper: Paper) -> String {
    let scale = (paper.width - 2.0) / document.n_bytes.max(1) as f64;
    let place = |byte: u64| 1.0 + byte as f64 * scale;
    let marks = marks(document, paper, &place);
    let n_rows = marks.iter().map(|mark| mark.row + 1).max().unwrap_or(1);
    let row_height = paper.font_size + 2.0;
    let top = paper.font_size + 10.0 + row_height * n_rows as f64;
    let label = format!(
        "{}: {} delivered, {} rejected",
        document.id,
        plural(document.accepted.len(), "span"),
        plural(document.rejected.len(), "candidate")
    );
    let mut drawing = Drawing::of_parts(paper, top + STRIP_HEIGHT + row_height + 8.0, &label);
    drawing.text("name", (1.0, paper.font_size), Anchor::Start, &paper.fit(&document.id, paper.width - 2.0));
    drawing.bar("band", (1.0, top), (paper.width - 2.0, STRIP_HEIGHT), &document.id);
    for out in &document.rejected {
        let (x, to) = (place(out.span.start), place(out.span.end));
        let class = if out.is_weighed { "out" } else { "out beyond" };
        let (start, end) = (count_bytes(out.span.start), count_bytes(out.span.end));
        let title = format!("{}: {}; bytes {start} to {end}", out.chunk, out.reason);
        drawing.bar(class, (x + 0.75, top + INSET), (to - x - 1.5, STRIP_HEIGHT - 2.0 * INSET), &title);
    }
    for (accepted, mark) in document.accepted.iter().zip(&marks) {
        let (start, end) = (count_bytes(accepted.span.start), count_bytes(accepted.span.end));
        let part = if accepted.is_cut { ", cut to fit" } else { "" };
        let title = format!("[{}]: bytes {start} to {end}, {}{part}", accepted.n, plural(accepted.n_chunks, "chunk"));
        let width = (place(accepted.span.end) - place(accepted.span.start)).max(WIDTH_MIN);
        let x = place(accepted.span.start).min(paper.width - 1.0 - width);
        drawing.bar("accepted", (x, top), (width, STRIP_HEIGHT), &title);
        let y = top - 5.0 - row_height * mark.row as f64;
        drawing.text("value", (mark.x, y), Anchor::Middle, &mark.text);
    }
    let y = top + STRIP_HEIGHT + row_height;
    drawing.text("tick", (1.0, y), Anchor::Start, "0");
    drawing.text("tick", (paper.width - 1.0, y), Anchor::End, &format!("{} bytes", count_bytes(document.n_bytes)));
    drawing.finish()
}

/// A mark above what it cites.
struct Mark {
    text: String,
    /// Its middle.
    x: f64,
    /// Above the strip from 0.
    row: usize,
}

/// The marks in the order of the accepted spans, each in the lowest row where it touches none before.
fn marks(document: &Document, paper: Paper, place: &dyn Fn(u64) -> f64) -> Vec<Mark> {
    let mut ends: Vec<f64> = Vec::new();
    let mut order: Vec<usize> = (0..document.accepted.len()).collect();
    order.sort_by_key(|&at| (document.accepted[at].span.start, at));
    let mut marks: Vec<(usize, Mark)> = Vec::new();
    for at in order {
        let accepted = &document.accepted[at];
        let text = format!("[{}]", accepted.n);
        let half = paper.text_width(&text) / 2.0;
        let middle = (place(accepted.span.start) + place(accepted.span.end)) / 2.0;
        let x = middle.clamp(half + 1.0, paper.width - half - 1.0);
        let row = ends.iter().position(|end| end + 2.0 <= x - half).unwrap_or(ends.len());
        match ends.get_mut(row) {
            Some(end) => *end = x + half,
            None => ends.push(x + half),
        }
        marks.push((at, Mark { text, x, row }));
    }
    marks.sort_by_key(|(at, _)| *at);
    marks.into_iter().map(|(_, mark)| mark).collect()
}

/// The most relevant, and how many more there are.
fn rejected(picture: &Picture) -> String {
    if picture.reasons.is_empty() {
        return "<h3>Rejected</h3>\n<p class=\"note\">No candidate was rejected.</p>\n".to_owned();
    }
    let mut html = format!("<h3>Rejected <span class=\"measure\">{}</span></h3>\n", escape(&listed(&picture.reasons)));
    html.push_str(
        "<table class=\"rejected\">\n<thead><tr><th scope=\"col\">Place</th><th scope=\"col\">Candidate</th>",
    );
    html.push_str("<th scope=\"col\">Score</th><th scope=\"col\">Retrieval</th></tr></thead>\n");
    let scores = Precision::of(picture.rejected.iter().filter_map(|rejected| rejected.score), 0);
    let retrieval = Precision::of(picture.rejected.iter().map(|rejected| rejected.retrieval_score), 0);
    for rejected in &picture.rejected {
        let score = rejected.score.map_or_else(|| "—".to_owned(), |score| scores.text(score));
        let _ = write!(
            html,
            "<tbody><tr><td>{}</td><th scope=\"row\">{}</th><td>{score}</td><td>{}</td></tr>",
            count(rejected.place),
            escape(&rejected.chunk),
            retrieval.text(rejected.retrieval_score)
        );
        let (reason, because) = (escape(&rejected.reason), escape(&rejected.because));
        let _ = writeln!(html, "<tr><td></td><td colspan=\"3\"><b>{reason}</b>: {because}</td></tr></tbody>");
    }
    html.push_str("</table>\n");
    let untold = picture.untold();
    if !untold.is_empty() {
        let _ = writeln!(html, "<p class=\"note\">And {}.</p>", escape(&listed(&untold)));
    }
    html
}

/// "7 too redundant, 3 not found".
pub(crate) fn listed(counts: &[Count]) -> String {
    counts.iter().map(|Count { reason, n }| format!("{} {reason}", count(*n))).collect::<Vec<_>>().join(", ")
}

/// What fillings mean.
fn legend(entries: &[(&str, String)]) -> String {
    let mut html = String::from("<ul class=\"legend\">");
    for (class, name) in entries {
        let mut swatch = format!("<rect class=\"{class}\" x=\"0.5\" y=\"1\" width=\"13\" height=\"10\"/>");
        if *class == "frame" {
            swatch.push_str("<path class=\"hatch\" d=\"M4 1V11M7.5 1V11M11 1V11\"/>");
        }
        let svg = format!("<svg width=\"14\" height=\"12\" aria-hidden=\"true\">{swatch}</svg>");
        let _ = write!(html, "<li>{svg}{}</li>", escape(name));
    }
    html.push_str("</ul>\n");
    html
}

fn count(n: usize) -> String {
    number(n as f64, 0)
}

fn count_bytes(n: u64) -> String {
    number(n as f64, 0)
}
