//! A table of figures: what was measured in full, what was expected beside it, and where they part, by how much.
//!
//! Figures of a column share their decimals, and so do columns held to the same tolerances: as many as the largest
//! figure needs and the tightest tolerance shows.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::markup::{Precision, decimals_of_step, escape, exact};
use super::report::{Cell, Table, Verdict};

const MISSING: &str = "—";

/// Title, figures and tolerances.
pub(crate) fn figure(table: &Table) -> String {
    let title = escape(&table.title);
    let mut html = format!("<figure class=\"table\">\n<figcaption>{title}");
    if !table.measure.is_empty() {
        let _ = write!(html, " <span class=\"measure\">{}</span>", escape(&table.measure));
    }
    let _ = writeln!(
        html,
        "</figcaption>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table>"
    );
    let _ = write!(html, "<thead><tr><th scope=\"col\">{}</th>", escape(&table.row_title));
    for column in &table.columns {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(column));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    let columns: Vec<Column> = (0..n_columns(table)).map(|at| Column::of(table, at)).collect();
    for row in &table.rows {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&row.name));
        for (at, column) in columns.iter().enumerate() {
            html.push_str(&column.cell(row.cells.get(at).unwrap_or(&Cell::default())));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
    html.push_str(&tolerances(table));
    html.push_str("</figure>\n");
    html
}

/// How the figures of one column are written.
struct Column {
    precision: Precision,
    /// Characters of the longest expected figure; zero where nothing was expected.
    expected_width: usize,
}

impl Column {
    fn of(table: &Table, at: usize) -> Self {
        let own = precision(cells(table, at));
        let held = tolerances_of(cells(table, at));
        let alike = (0..n_columns(table)).filter(|other| tolerances_of(cells(table, *other)) == held);
        let common = precision(alike.flat_map(|other| cells(table, other)));
        let precision = if !held.is_empty() && common.is_shared() { common } else { own };
        let widths = cells(table, at).filter_map(|cell| Some(precision.text(cell.expected()?).chars().count()));
        Self { precision, expected_width: widths.max().unwrap_or(0) }
    }

    /// Actual, then expected in small; below them the verdict where it is not OK.
    fn cell(&self, cell: &Cell) -> String {
        if cell.actual().is_none() && cell.expected().is_none() {
            return "<td></td>".to_owned();
        }
        let actual = cell.actual().map_or_else(|| MISSING.to_owned(), |actual| self.precision.text(actual));
        if self.expected_width == 0 {
            return format!("<td>{actual}</td>");
        }
        let expected = cell.expected().map_or_else(String::new, |expected| self.precision.text(expected));
        let width = self.expected_width;
        let figures = format!(
            "<span class=\"actual\">{actual}</span> \
             <span class=\"expected\" style=\"min-width:{width}ch\">{expected}</span>"
        );
        match cell.verdict() {
            None => format!("<td>{figures}</td>"),
            Some(Verdict::Ok) => format!("<td title=\"{}\">{figures}</td>", in_full(cell)),
            Some(verdict) => {
                let difference = |deviation| self.precision.difference(deviation);
                let deviation = cell.deviation().map_or_else(|| "missing".to_owned(), difference);
                let (class, title, badge) = (class(verdict), in_full(cell), badge(verdict));
                let note = format!("<span class=\"deviation\">{badge} {deviation}</span>");
                format!("<td class=\"{class}\" title=\"{title}\">{figures}{note}</td>")
            }
        }
    }
}

fn precision<'a>(cells: impl Iterator<Item = &'a Cell>) -> Precision {
    let (mut values, mut least) = (Vec::new(), 0);
    for cell in cells {
        values.extend([cell.actual(), cell.expected()].into_iter().flatten());
        if cell.expected().is_some() {
            least = least.max(decimals_of_step(cell.tolerance()));
        }
    }
    Precision::of(values.into_iter(), least)
}

fn n_columns(table: &Table) -> usize {
    table.rows.iter().map(|row| row.cells.len()).max().unwrap_or(0).max(table.columns.len())
}

/// One column, without the rows that are too short for it.
fn cells(table: &Table, at: usize) -> impl Iterator<Item = &Cell> {
    table.rows.iter().filter_map(move |row| row.cells.get(at))
}

/// The tolerances of what was compared, each once.
fn tolerances_of<'a>(cells: impl Iterator<Item = &'a Cell>) -> BTreeSet<String> {
    cells.filter(|cell| cell.expected().is_some()).map(|cell| exact(cell.tolerance())).collect()
}

/// All digits, for those who point at a figure.
fn in_full(cell: &Cell) -> String {
    let or_missing = |value: Option<f64>| value.map_or_else(|| MISSING.to_owned(), exact);
    let (actual, expected) = (or_missing(cell.actual()), or_missing(cell.expected()));
    let difference = |value| Precision::of([value].into_iter(), 0).difference(value);
    let deviation = cell.deviation().map_or_else(|| MISSING.to_owned(), difference);
    format!("{actual}; expected {expected} ± {}; deviation {deviation}", exact(cell.tolerance()))
}

/// The tolerance of all, of each column, or how far they range.
fn tolerances(table: &Table) -> String {
    let all = tolerances_of(table.rows.iter().flat_map(|row| &row.cells));
    let by_column: Vec<(&String, BTreeSet<String>)> = (table.columns.iter().enumerate())
        .map(|(at, column)| (column, tolerances_of(cells(table, at))))
        .filter(|(_, tolerances)| !tolerances.is_empty())
        .collect();
    let text = match all.first() {
        None => return String::new(),
        Some(only) if all.len() == 1 => format!("Tolerance ±{only}"),
        Some(_) if by_column.iter().all(|(_, tolerances)| tolerances.len() == 1) => {
            let each = by_column.iter().flat_map(|(column, all)| all.iter().map(move |one| (escape(column), one)));
            let texts: Vec<String> = each.map(|(column, tolerance)| format!("{column} ±{tolerance}")).collect();
            format!("Tolerances: {}", texts.join(", "))
        }
        Some(_) => {
            let compared = table.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.expected().is_some());
            let tolerances: Vec<f64> = compared.map(Cell::tolerance).collect();
            let (least, most) = (
                tolerances.iter().copied().fold(f64::INFINITY, f64::min),
                tolerances.iter().copied().fold(0.0, f64::max),
            );
            format!("Tolerances from ±{} to ±{}", exact(least), exact(most))
        }
    };
    format!("<p class=\"note\">{text}; expected figures in small, a figure without a mark is OK.</p>\n")
}

/// A verdict as a word with a mark, which colour only repeats.
pub(crate) fn badge(verdict: Verdict) -> String {
    let mark = match verdict {
        Verdict::Ok => "✓",
        Verdict::Near => "≈",
        Verdict::Fail => "✕",
    };
    let (class, label) = (class(verdict), verdict.label());
    format!("<span class=\"badge {class}\"><span aria-hidden=\"true\">{mark}</span> {label}</span>")
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Near => "near",
        Verdict::Fail => "fail",
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Row;
    use super::*;

    fn cell(actual: f64, expected: f64, tolerance: f64) -> Cell {
        Cell { actual: Some(actual), expected: Some(expected), tolerance: Some(tolerance) }
    }

    fn table(rows: &[&[Cell]]) -> Table {
        let n_columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        Table {
            title: "T".to_owned(),
            columns: (0..n_columns).map(|at| format!("c{at}")).collect(),
            rows: rows.iter().map(|cells| Row { name: "r".to_owned(), cells: cells.to_vec() }).collect(),
            ..Table::default()
        }
    }

    #[track_caller]
    fn check(rows: &[&[Cell]], wanted: &[&str]) {
        let html = figure(&table(rows));
        for text in wanted {
            assert!(html.contains(text), "{text} is not in\n{html}");
        }
    }

    #[test]
    fn a_figure_that_is_not_ok_shows_its_verdict_and_deviation() {
        check(
            &[&[cell(0.702, 0.744, 0.005)]],
            &["0.702</span>", ">0.744</span>", "FAIL</span> −0.0420", "class=\"fail\""],
        );
        check(
            &[&[cell(0.7542, 0.744, 0.005)]],
            &["near</span> +0.0102", "0.7542; expected 0.744 ± 0.005; deviation +0.0102"],
        );
        let ok = figure(&table(&[&[cell(0.744, 0.744, 0.005)]]));
        assert!(!ok.contains("class=\"deviation\"") && ok.contains("0.744; expected 0.744"), "{ok}");
    }

    #[test]
    fn a_figure_that_is_missing_says_so_and_one_without_expectation_stands_plain() {
        check(&[&[Cell { actual: None, ..cell(0.0, 0.5, 0.1) }]], &["FAIL</span> missing", "—</span>"]);
        let plain = Cell { actual: Some(0.25), ..Cell::default() };
        check(&[&[plain, Cell::default()]], &["<td>0.25</td><td></td>"]);
    }

    #[test]
    fn decimals_fit_a_columns_figures_and_show_its_tolerance() {
        check(&[&[cell(1834.0, 1830.0, 20.0)], &[cell(912.0, 910.0, 20.0)]], &["1,834<", ">912<"]);
        check(&[&[cell(0.74412, 0.7441, 0.0005)]], &["0.7441<"]);
        check(&[&[cell(1834.2, 1830.0, 20.0)], &[cell(0.35, 0.35, 0.01)]], &["1,834<", ">0.35<"]);
        check(&[&[cell(0.5, 0.5, 0.0), cell(f64::NAN, f64::INFINITY, f64::NAN)]], &[">0.5<"]);
    }

    #[test]
    fn columns_held_to_the_same_tolerance_share_their_decimals() {
        check(&[&[cell(0.9, 0.9, 0.01), cell(0.915, 0.92, 0.01)]], &[">0.900<", ">0.915<", ">0.920<"]);
        check(&[&[cell(1.4, 1.4, 0.2), cell(0.531, 0.53, 0.02)]], &[">1.4<", ">0.531<"]);
        check(&[&[cell(1998.0, 1998.0, 0.0), cell(0.53, 0.53, 0.0)]], &[">1,998<", ">0.53<"]);
    }

    #[test]
    fn tolerances_are_told_once_where_they_agree() {
        check(&[&[cell(1.0, 1.0, 0.1), cell(2.0, 2.0, 0.1)]], &["Tolerance ±0.1;"]);
        check(&[&[cell(1.0, 1.0, 0.1), cell(2.0, 2.0, 20.0)]], &["Tolerances: c0 ±0.1, c1 ±20;"]);
        check(&[&[cell(1.0, 1.0, 0.1)], &[cell(2.0, 2.0, 20.0)]], &["Tolerances from ±0.1 to ±20;"]);
    }

    #[test]
    fn rows_shorter_than_the_header_are_filled_up() {
        let html = figure(&table(&[&[cell(1.0, 1.0, 0.1)], &[cell(1.0, 1.0, 0.1), cell(2.0, 2.0, 0.1)]]));
        assert_eq!(html.matches("<td").count(), 4);
    }
}
