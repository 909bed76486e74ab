//! The report as text.

use std::fmt::Write as _;

use super::report::{Cell, Report, Reproduction, Table};
use crate::output;

/// Every table with a verdict beside each figure that was expected, and the counts.
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
    if let Some(failure) = &reproduction.failure {
        let _ = writeln!(text, "failed: {failure}\n");
    }
}

fn table_text(table: &Table) -> String {
    let header: Vec<&str> =
        [table.row_title.as_str()].into_iter().chain(table.columns.iter().map(String::as_str)).collect();
    let rows = table.rows.iter().map(|row| [row.name.clone()].into_iter().chain(row.cells.iter().map(cell)).collect());
    output::table(&header, rows)
}

fn cell(cell: &Cell) -> String {
    let actual = cell.actual().map_or_else(|| "-".to_owned(), output::figure);
    match (cell.verdict(), cell.deviation()) {
        (None, _) => actual,
        (Some(super::Verdict::Ok), _) => format!("{actual} [OK]"),
        (Some(verdict), Some(deviation)) => format!("{actual} [{}: {deviation:+.4}]", verdict.label()),
        (Some(verdict), None) => format!("{actual} [{}]", verdict.label()),
    }
}
