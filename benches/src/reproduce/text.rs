//! The report as text.

use std::fmt::Write as _;

use super::chart::picture::listed;
use super::picture::Picture;
use super::report::{Cell, Report, Reproduction, Table};

/// Every table with a verdict beside each figure that was expected, pictures in short, and the counts.
pub(crate) fn text(report: &Report) -> String {
    let mut text = String::new();
    for reproduction in &report.reproductions {
        reproduction_text(&mut text, reproduction);
    }
    let counts = report.counts();
    let _ = writeln!(
        text,
        "{} figures compared: {} [OK], {} [near], {} [FAIL]; {} in {:.0} s",
        counts.total(),
        counts.n_ok,
        counts.n_near,
        counts.n_fail,
        if report.reproductions.len() == 1 {
            "1 reproduction".to_owned()
        } else {
            format!("{} reproductions", report.reproductions.len())
        },
        report.seconds
    );
    text
}

fn reproduction_text(text: &mut String, reproduction: &Reproduction) {
    let verdict = reproduction.verdict().map_or(String::new(), |verdict| format!(" [{}]", verdict.label()));
    let _ = writeln!(text, "{}: {}{verdict}\n", reproduction.name, reproduction.title);
    for table in &reproduction.tables {
        let _ = writeln!(text, "{}\n{}\n", table.title, table_text(table));
    }
    for picture in &reproduction.pictures {
        let _ = writeln!(text, "{}\n{}\n", picture.title, picture_text(picture));
    }
    if let Some(failure) = &reproduction.failure {
        let _ = writeln!(text, "failed: {failure}\n");
    }
}

fn table_text(table: &Table) -> String {
    let header: Vec<&str> =
        [table.row_title.as_str()].into_iter().chain(table.columns.iter().map(String::as_str)).collect();
    let rows = table.rows.iter().map(|row| [row.name.clone()].into_iter().chain(row.cells.iter().map(cell)).collect());
    columns(&header, rows)
}

/// Columns of text, without lines around them.
pub(crate) fn columns(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    // Names of measures, such as nDCG@10, are written as they are.
    let head = |name: &&str| if name.contains(char::is_uppercase) { (*name).to_owned() } else { name.to_uppercase() };
    table.set_header(header.iter().map(head)).add_rows(rows);
    table.trim_fmt()
}

/// The question, the budget and the reasons, a line each.
fn picture_text(picture: &Picture) -> String {
    let Picture { query, strategy, n_tokens, budget_tokens, text_tokens, n_delivered, .. } = picture;
    let (frame, unspent) = (picture.frame_tokens(), picture.unspent_tokens());
    let rejected = if picture.reasons.is_empty() { "none".to_owned() } else { listed(&picture.reasons) };
    format!(
        "{query}\n{strategy}: {n_delivered} delivered, {n_tokens} of {budget_tokens} tokens: {text_tokens} of texts, {frame} of \
         headers and marks, {unspent} unspent\nrejected: {rejected}"
    )
}

fn cell(cell: &Cell) -> String {
    let actual = cell.actual().map_or_else(|| "-".to_owned(), figure);
    match (cell.verdict(), cell.deviation()) {
        (None, _) => actual,
        (Some(super::Verdict::Ok), _) => format!("{actual} [OK]"),
        (Some(verdict), Some(deviation)) => format!("{actual} [{}: {deviation:+.4}]", verdict.label()),
        (Some(verdict), None) => format!("{actual} [{}]", verdict.label()),
    }
}

/// Four digits after the point, fewer for what is large.
fn figure(value: f64) -> String {
    if value.abs() < 10.0 { format!("{value:.4}") } else { format!("{value:.1}") }
}
