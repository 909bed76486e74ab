//! Lines through points in their order, each named where it ends, or by a legend where the page is narrow.
//!
//! Differs: the value axis starts at zero only where the values come near it; a line has no length to read off.

use super::super::report::{Chart, Scale, Series};
use super::drawing::{Anchor, Drawing, Layout, Paper, WIDE, colour};
use super::precision;
use super::scale::{Axis, is_placed};

/// Height of the plot.
const HEIGHT: f64 = 250.0;
/// Room that a tick of the lower axis takes.
const LABEL_WIDTH: f64 = 70.0;
/// Lines are named at their ends where the names take no more than this share of the width.
const NAMES_SHARE_MAX: f64 = 0.3;
/// Values that reach below this share of the largest want zero on their axis.
const ZERO_SHARE: f64 = 0.4;
/// A line of more points has markers on some of them.
const N_MARKERS_MAX: usize = 24;

/// The drawing on this paper.
pub(super) fn svg(chart: &Chart, paper: Paper, label: &str) -> String {
    let with_names = paper.layout == Layout::Wide && are_named_at_their_ends(chart);
    let names_width = if with_names { paper.widest(names(chart)) + 34.0 } else { 14.0 };
    let (top, bottom) = (34.0, 34.0 + HEIGHT);
    let y_axis = y_axis(chart).along(bottom, top);
    let left = paper.widest(y_axis.ticks.iter().map(|tick| tick.label.as_str())) + 10.0;
    let right = paper.width - names_width;
    let xs = points(chart).filter(|(_, y)| is_placed(*y, Scale::Linear)).map(|(x, _)| x);
    // The inset keeps the first markers off the axis.
    let x_axis = Axis::tight(xs, chart.x_scale, (paper.width / LABEL_WIDTH) as usize).along(left + 8.0, right - 4.0);

    let mut drawing = Drawing::new(paper, bottom + 42.0, label);
    drawing.text("title", (0.0, 12.0), Anchor::Start, &paper.fit(&format!("↑ {}", chart.y_title), paper.width));
    drawing.text("title", (right, bottom + 38.0), Anchor::End, &paper.fit(&format!("{} →", chart.x_title), right));
    for (at, tick) in y_axis.ticks.iter().enumerate() {
        let y = y_axis.place(tick.value).unwrap_or(bottom);
        drawing.rule(if at == 0 || tick.value == 0.0 { "base" } else { "grid" }, (left, y), (right, y));
        drawing.text("tick", (left - 8.0, y + 4.0), Anchor::End, &tick.label);
    }
    for tick in &x_axis.ticks {
        let x = x_axis.place(tick.value).unwrap_or(left);
        drawing.rule("base", (x, bottom), (x, bottom + 5.0));
        drawing.text("tick", (x, bottom + 18.0), Anchor::Middle, &tick.label);
    }

    let (mut ends, precision) = (Vec::new(), precision(chart));
    for (at, series) in chart.series.iter().enumerate() {
        let place = |(x, y): (f64, f64)| Some((x_axis.place(x)?, y_axis.place(y)?));
        let places: Vec<_> = series_points(series).map(place).collect();
        drawing.line(&format!("line {}", colour(at)), &places);
        let every = places.len().div_ceil(N_MARKERS_MAX).max(1);
        for (point, place) in series.points.iter().zip(&places).step_by(every) {
            if let Some(place) = place {
                let title = format!("{}, {}: {}", series.name, point.x, precision.text(point.y));
                drawing.marker(at, *place, &title);
            }
        }
        let end = places.into_iter().flatten().reduce(|end, place| if place.0 >= end.0 { place } else { end });
        ends.extend(end.map(|end| (at, end)));
    }
    if with_names {
        name_ends(&mut drawing, chart, paper, right, (top, bottom), ends);
    }
    drawing.finish()
}

/// Whether names fit beside the lines of the wide drawing.
pub(super) fn are_named_at_their_ends(chart: &Chart) -> bool {
    let n_max = (HEIGHT / name_height(WIDE)) as usize;
    WIDE.widest(names(chart)) <= WIDE.width * NAMES_SHARE_MAX && chart.series.len() <= n_max
}

/// How many values cannot be drawn.
pub(super) fn n_without_place(chart: &Chart) -> usize {
    points(chart).filter(|(x, y)| !is_placed(*x, chart.x_scale) || !is_placed(*y, Scale::Linear)).count()
}

/// Names to the right of the plot, at the height of the ends of their lines, moved apart where these lie close.
fn name_ends(
    drawing: &mut Drawing,
    chart: &Chart,
    paper: Paper,
    x: f64,
    (top, bottom): (f64, f64),
    mut ends: Vec<(usize, (f64, f64))>,
) {
    ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1).then(a.0.cmp(&b.0)));
    let heights: Vec<f64> = ends.iter().map(|(_, end)| end.1).collect();
    let places = apart(&heights, name_height(paper), (top, bottom));
    let is_beside = |(end, y): ((f64, f64), f64)| x - end.0 < 12.0 && (y - end.1).abs() < 3.0;
    let all_beside = ends.iter().zip(&places).all(|((_, end), y)| is_beside((*end, *y)));
    for ((series, end), y) in ends.into_iter().zip(places) {
        let name = &chart.series[series].name;
        if all_beside {
            drawing.text("name", (x + 10.0, y + 4.0), Anchor::Start, name);
        } else {
            drawing.rule(&format!("leader {}", colour(series)), (end.0 + 6.0, end.1), (x + 12.0, y));
            drawing.marker(series, (x + 18.0, y), "");
            drawing.text("name", (x + 28.0, y + 4.0), Anchor::Start, name);
        }
    }
}

fn name_height(paper: Paper) -> f64 {
    paper.font_size * 1.3
}

/// Ascending heights, moved as little as it takes to keep a distance and stay between both ends.
fn apart(heights: &[f64], distance: f64, (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut placed: Vec<f64> = Vec::with_capacity(heights.len());
    for height in heights {
        placed.push(placed.last().map_or(top, |above| above + distance).max(*height));
    }
    let mut limit = bottom;
    for height in placed.iter_mut().rev() {
        *height = height.min(limit);
        limit = *height - distance;
    }
    placed
}

fn y_axis(chart: &Chart) -> Axis {
    let values: Vec<f64> = points(chart).filter(|(x, _)| is_placed(*x, chart.x_scale)).map(|(_, y)| y).collect();
    let drawn = || values.iter().copied().filter(|value| is_placed(*value, Scale::Linear));
    let (lowest, highest) = (drawn().fold(f64::INFINITY, f64::min), drawn().fold(f64::NEG_INFINITY, f64::max));
    let zero = (lowest >= 0.0 && lowest < ZERO_SHARE * highest).then_some(0.0);
    Axis::linear(drawn().chain(zero), 5)
}

fn names(chart: &Chart) -> impl Iterator<Item = &str> {
    chart.series.iter().map(|series| series.name.as_str())
}

fn points(chart: &Chart) -> impl Iterator<Item = (f64, f64)> {
    chart.series.iter().flat_map(series_points)
}

/// Points as numbers; a label that is none has no place.
fn series_points(series: &Series) -> impl Iterator<Item = (f64, f64)> {
    series.points.iter().map(|point| (point.x.trim().parse().unwrap_or(f64::NAN), point.y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_distance_and_stay_on_the_paper() {
        assert_eq!(apart(&[10.0, 50.0, 90.0], 15.0, (0.0, 100.0)), [10.0, 50.0, 90.0]);
        assert_eq!(apart(&[10.0, 12.0, 13.0], 15.0, (0.0, 100.0)), [10.0, 25.0, 40.0]);
        assert_eq!(apart(&[95.0, 96.0, 99.0], 15.0, (0.0, 100.0)), [70.0, 85.0, 100.0]);
        assert!(apart(&[], 15.0, (0.0, 100.0)).is_empty());
    }
}
