//! Charts as inline SVG: a figure that follows the theme, in one drawing for wide and one for narrow pages.
//!
//! Series differ by place, by shape of marker and by colour, in this order: the six colours keep apart under
//! protanopia, deuteranopia and tritanopia, and from the paper by 3 to 1. All values drawn also stand in a table below.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use self::drawing::{NARROW, WIDE, colour, marker};
use super::markup::{Precision, escape, plural};
use super::report::{Chart, Kind, Point, Series};

mod bars;
mod lines;
pub(crate) mod strip;
pub(crate) mod picture;
mod drawing;
mod scale;

/// A figure: title, legend, drawings, and the values as a table.
pub(crate) fn figure(chart: &Chart) -> String {
    let mut html = format!("<figure class=\"chart\">\n<figcaption>{}</figcaption>\n", escape(&chart.title));
    if chart.series.iter().all(|series| series.points.is_empty()) {
        html.push_str("<p class=\"note\">There are no values to draw.</p>\n</figure>\n");
        return html;
    }
    html.push_str(&legend(chart));
    let label = label(chart);
    for paper in [WIDE, NARROW] {
        html.push_str(&match chart.kind {
            Kind::Bars => bars::svg(chart, paper, &label),
            Kind::Lines => lines::svg(chart, paper, &label),
        });
    }
    let n_lost = match chart.kind {
        Kind::Bars => bars::n_without_place(chart),
        Kind::Lines => lines::n_without_place(chart),
    };
    if n_lost > 0 {
        let verb = if n_lost == 1 { "is" } else { "are" };
        let _ = writeln!(html, "<p class=\"note\">{} {verb} missing or off these axes.</p>", plural(n_lost, "value"));
    }
    html.push_str(&values(chart));
    html.push_str("</figure>\n");
    html
}

/// What a drawing shows, for those who do not see it.
fn label(chart: &Chart) -> String {
    let kind = match chart.kind {
        Kind::Bars => "Bars",
        Kind::Lines => "Lines",
    };
    let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
    let (title, names) = (&chart.title, names.join(", "));
    format!("{title}. {kind}: {} by {} for {names}. The values are in the table below.", chart.y_title, chart.x_title)
}

/// Series by marker and name; lines are named at their ends where the page is wide.
fn legend(chart: &Chart) -> String {
    if chart.series.len() < 2 {
        return String::new();
    }
    let class = match chart.kind {
        Kind::Lines if lines::are_named_at_their_ends(chart) => "legend narrow",
        _ => "legend",
    };
    let mut html = format!("<ul class=\"{class}\">");
    for (at, series) in chart.series.iter().enumerate() {
        let class = colour(at);
        let mark = match chart.kind {
            Kind::Bars => format!("<rect class=\"bar {class}\" x=\"0\" y=\"1\" width=\"10\" height=\"10\"/>"),
            Kind::Lines => format!("<path class=\"line {class}\" d=\"M0 6H16\"/>{}", marker(at, (8.0, 6.0), "")),
        };
        let width = match chart.kind {
            Kind::Bars => 10,
            Kind::Lines => 16,
        };
        let swatch = format!("<svg width=\"{width}\" height=\"12\" aria-hidden=\"true\">{mark}</svg>");
        let _ = write!(html, "<li>{swatch}{}</li>", escape(&series.name));
    }
    html.push_str("</ul>\n");
    html
}

/// The values as text: a row for each label where series share them, else a row for each point.
fn values(chart: &Chart) -> String {
    let (labels, precision) = (labels(&chart.series), precision(chart));
    let text = |value| precision.text(value);
    let n_longest = chart.series.iter().map(|series| series.points.len()).max().unwrap_or(0);
    let names = chart.series.iter().map(|series| series.name.clone());
    let (header, rows): (Vec<String>, Vec<Vec<String>>) = if 2 * labels.len() <= 3 * n_longest {
        let row = |label: &&str| {
            let values = chart.series.iter().map(|series| value_at(series, label).map_or_else(String::new, text));
            [(*label).to_owned()].into_iter().chain(values).collect()
        };
        ([chart.x_title.clone()].into_iter().chain(names).collect(), labels.iter().map(row).collect())
    } else {
        let points = chart.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)));
        let row = |(series, point): (&Series, &Point)| vec![series.name.clone(), point.x.clone(), text(point.y)];
        (vec!["series".to_owned(), chart.x_title.clone(), chart.y_title.clone()], points.map(row).collect())
    };
    let mut html = String::from("<details class=\"values\"><summary>Values</summary>\n");
    let _ = writeln!(
        html,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Values of {}\">",
        escape(&chart.title)
    );
    html.push_str("<table>\n<thead><tr>");
    for title in header {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(&title));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&row[0]));
        for value in &row[1..] {
            let _ = write!(html, "<td>{}</td>", escape(value));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div></details>\n");
    html
}

/// Labels of all series, each once, in the order in which they first appear.
fn labels(series: &[Series]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let points = series.iter().flat_map(|series| &series.points);
    points.map(|point| point.x.as_str()).filter(|label| seen.insert(*label)).collect()
}

/// The value at a label; of points with the same label the first.
fn value_at(series: &Series, label: &str) -> Option<f64> {
    series.points.iter().find(|point| point.x == label).map(|point| point.y)
}

/// Decimals that all values of a chart share.
fn precision(chart: &Chart) -> Precision {
    Precision::of(chart.series.iter().flat_map(|series| &series.points).map(|point| point.y), 0)
}

#[cfg(test)]
mod tests;
