//! From figures to what is shown of them: tables with what was expected, and charts.

use super::expected::Expected;
use super::plan::{self, Judged, Plan};
use super::report::{Cell, Chart, Point, Reproduction, Row, Series, Table};
use super::steps::Figures;

/// The tables and charts of a plan.
pub(crate) fn assemble(plan: &Plan, figures: &Figures, expected: &Expected) -> Reproduction {
    Reproduction {
        name: plan.name.clone(),
        title: plan.title.clone(),
        source: plan.source.clone(),
        text: plan.text.trim().to_owned(),
        tables: plan.table.iter().map(|table| self::table(table, figures, expected)).collect(),
        charts: plan.chart.iter().map(|chart| self::chart(chart, figures)).collect(),
        ..Reproduction::default()
    }
}

/// Figures as a view wants them: columns of one measure, or measures of one column.
struct View<'a> {
    measure: Option<&'a str>,
    column: Option<&'a str>,
    rows: Vec<&'a str>,
    columns: Vec<&'a str>,
}

impl<'a> View<'a> {
    fn new(
        measure: Option<&'a String>,
        measures: &'a [String],
        column: Option<&'a String>,
        (rows, columns): (&'a [String], &'a [String]),
        figures: &'a Figures,
    ) -> Self {
        let strs = |list: &'a [String]| list.iter().map(String::as_str).collect::<Vec<_>>();
        let columns = match (measure, columns.is_empty()) {
            (None, _) => strs(measures),
            (Some(_), false) => strs(columns),
            (Some(_), true) => strs(&figures.columns),
        };
        let mut view = Self {
            measure: measure.map(String::as_str),
            column: column.map(String::as_str),
            rows: strs(if rows.is_empty() { &figures.rows } else { rows }),
            columns,
        };
        if rows.is_empty() {
            let known: Vec<&str> = view.rows.clone();
            view.rows = known
                .into_iter()
                .filter(|row| view.columns.iter().any(|at| view.figure(figures, row, at).is_some()))
                .collect();
        }
        view
    }

    fn figure(&self, figures: &Figures, row: &str, column: &str) -> Option<f64> {
        match (self.measure, self.column) {
            (Some(measure), _) => figures.figure(row, column, measure),
            (None, Some(fixed)) => figures.figure(row, fixed, column),
            (None, None) => None,
        }
    }
}

fn table(table: &plan::Table, figures: &Figures, expected: &Expected) -> Table {
    let order = (&table.rows[..], &table.columns[..]);
    let mut view = View::new(table.measure.as_ref(), &table.measures, table.column.as_ref(), order, figures);
    if table.rows.is_empty() && table.judged == Judged::Yes {
        let lost: Vec<&str> = expected.rows(&table.title).filter(|row| !view.rows.contains(row)).collect();
        view.rows.extend(lost); // what was recorded and is gone has failed, not vanished
    }
    let cell = |row: &str, column: &str| {
        let published = table.published.get(row).and_then(|row| row.get(column)).copied();
        let recorded = expected.figure(&table.title, row, column).filter(|_| table.judged == Judged::Yes);
        let expected = published.or(recorded);
        Cell { actual: view.figure(figures, row, column), expected, tolerance: expected.map(|_| table.tolerance) }
    };
    let row = |row: &&str| Row {
        name: (*row).to_owned(),
        cells: view.columns.iter().map(|column| cell(row, column)).collect(),
    };
    Table {
        title: table.title.clone(),
        measure: table.measure.clone().unwrap_or_default(),
        row_title: table.row_title.clone(),
        columns: view.columns.iter().map(|column| (*column).to_owned()).collect(),
        rows: view.rows.iter().map(row).collect(),
    }
}

fn chart(chart: &plan::Chart, figures: &Figures) -> Chart {
    let order = (&chart.rows[..], &chart.columns[..]);
    let view = View::new(chart.measure.as_ref(), &chart.measures, chart.column.as_ref(), order, figures);
    let point = |row: &str, column: &str| {
        let place = |x: &String| figures.figure(row, view.column.unwrap_or(column), x).map(|x| x.to_string());
        let x = chart.x.as_ref().map_or_else(|| Some(row.to_owned()), place)?;
        Some(Point { x, y: view.figure(figures, row, column)? })
    };
    let series = |column: &&str| Series {
        name: (*column).to_owned(),
        points: view.rows.iter().filter_map(|row| point(row, column)).collect(),
    };
    Chart {
        title: chart.title.clone(),
        kind: chart.kind,
        x_title: chart.x_title.clone(),
        y_title: chart.y_title.clone(),
        x_scale: chart.x_scale,
        series: view.columns.iter().map(series).collect(),
    }
}
