//! Bars in groups, from zero: upright where the names of the groups fit below them, lying where they do not.

use super::super::report::{Chart, Scale};
use super::drawing::{Anchor, Drawing, Layout, Paper, colour};
use super::scale::{Axis, is_placed};
use super::{labels, precision, value_at};

/// Up to so many bars have their values written at their ends.
const N_VALUES_MAX: usize = 12;
/// Height of the plot of upright bars.
const UPRIGHT_HEIGHT: f64 = 220.0;
const BAR_WIDTH_MAX: f64 = 40.0;
const BAR_WIDTH_MIN: f64 = 3.0;
/// Thickness of a lying bar.
const BAR_HEIGHT: f64 = 9.0;
/// Room between two groups of lying bars.
const GROUP_GAP: f64 = 11.0;

/// The drawing on this paper.
pub(super) fn svg(chart: &Chart, paper: Paper, label: &str) -> String {
    let groups = labels(&chart.series);
    let width = (paper.width - 48.0) / groups.len() as f64;
    let is_room = width / (chart.series.len() as f64 + 1.0) >= BAR_WIDTH_MIN;
    let names: Option<Vec<_>> = groups.iter().map(|group| paper.wrap(group, width - 6.0)).collect();
    match names.filter(|_| is_room) {
        Some(names) => upright(chart, paper, label, &names),
        None => lying(chart, paper, label, &groups),
    }
}

/// How many values cannot be drawn.
pub(super) fn n_without_place(chart: &Chart) -> usize {
    chart.series.iter().flat_map(|series| &series.points).filter(|point| !is_placed(point.y, Scale::Linear)).count()
}

fn upright(chart: &Chart, paper: Paper, label: &str, names: &[Vec<String>]) -> String {
    let line_height = paper.font_size * 1.3;
    let n_lines = names.iter().map(Vec::len).max().unwrap_or(1) as f64;
    let (top, bottom) = (34.0, 34.0 + UPRIGHT_HEIGHT);
    let names_y = bottom + 6.0 + line_height;
    let title_y = names_y + line_height * (n_lines + 0.2);
    let axis = value_axis(chart, 5).along(bottom, top);
    let left = paper.widest(axis.ticks.iter().map(|tick| tick.label.as_str())) + 10.0;

    let mut drawing = Drawing::new(paper, title_y + 6.0, label);
    drawing.text("title", (0.0, 12.0), Anchor::Start, &paper.fit(&format!("↑ {}", chart.y_title), paper.width));
    drawing.text("title", (paper.width, title_y), Anchor::End, &paper.fit(&chart.x_title, paper.width));
    for tick in &axis.ticks {
        let y = axis.place(tick.value).unwrap_or(bottom);
        drawing.rule(if tick.value == 0.0 { "base" } else { "grid" }, (left, y), (paper.width, y));
        drawing.text("tick", (left - 8.0, y + 4.0), Anchor::End, &tick.label);
    }

    let (n_series, zero) = (chart.series.len() as f64, axis.place(0.0).unwrap_or(bottom));
    let group_width = (paper.width - left) / names.len() as f64;
    let width = (group_width * 0.78 / n_series).min(BAR_WIDTH_MAX);
    let gap = if width > 6.0 { 1.5 } else { 0.5 };
    let middle = |group: usize| left + group_width * (group as f64 + 0.5);
    let bars = bars(chart);
    let spacing = if chart.series.len() == 1 { group_width - 4.0 } else { width + 4.0 };
    let is_room = bars.iter().all(|bar| paper.text_width(&bar.text) <= spacing);
    for bar in &bars {
        let x = middle(bar.group) + (bar.series as f64 - n_series / 2.0) * width;
        let y = axis.place(bar.value).unwrap_or(zero);
        drawing.bar(&bar.class(), (x + gap / 2.0, y.min(zero)), (width - gap, (y - zero).abs()), &bar.title(chart));
        if is_room && bars.len() <= N_VALUES_MAX {
            let y = if bar.value < 0.0 { y + paper.font_size + 1.0 } else { y - 4.0 };
            drawing.text("value", (x + width / 2.0, y), Anchor::Middle, &bar.text);
        }
    }
    for (group, lines) in names.iter().enumerate() {
        for (at, line) in lines.iter().enumerate() {
            drawing.text("name", (middle(group), names_y + line_height * at as f64), Anchor::Middle, line);
        }
    }
    drawing.finish()
}

/// Names stand before their groups, or above them on narrow paper.
fn lying(chart: &Chart, paper: Paper, label: &str, groups: &[&str]) -> String {
    let is_wide = paper.layout == Layout::Wide;
    let names_width = paper.widest(groups.iter().copied().chain([chart.x_title.as_str()]));
    let left = if is_wide { (names_width + 12.0).min(paper.width * 0.3) } else { 1.0 };
    let head = if is_wide { 0.0 } else { paper.font_size + 5.0 };
    let bars = bars(chart);
    let with_values = bars.len() <= N_VALUES_MAX;
    let thickness = if with_values { paper.font_size + 3.0 } else { BAR_HEIGHT };
    let group_height = head + thickness * chart.series.len() as f64 + GROUP_GAP;
    let (top, bottom) = (42.0, 42.0 + group_height * groups.len() as f64);
    let (axis_top, right) = (top - 4.0, paper.width - if with_values { 56.0 } else { 16.0 });
    let axis = value_axis(chart, if is_wide { 6 } else { 4 }).along(left, right);

    let mut drawing = Drawing::new(paper, bottom + 4.0, label);
    if is_wide {
        drawing.text("title", (left - 10.0, 12.0), Anchor::End, &paper.fit(&chart.x_title, left - 10.0));
    }
    let title = format!("{} →", chart.y_title);
    drawing.text("title", (left, 12.0), Anchor::Start, &paper.fit(&title, paper.width - left));
    for tick in &axis.ticks {
        let x = axis.place(tick.value).unwrap_or(left);
        drawing.rule(if tick.value == 0.0 { "base" } else { "grid" }, (x, axis_top), (x, bottom));
        let anchor = if x < paper.text_width(&tick.label) / 2.0 { Anchor::Start } else { Anchor::Middle };
        drawing.text("tick", (x, axis_top - 5.0), anchor, &tick.label);
    }

    for (group, name) in groups.iter().enumerate() {
        let y = top + group_height * group as f64;
        if is_wide {
            let middle = y + (group_height + paper.font_size * 0.7) / 2.0;
            drawing.text("name", (left - 10.0, middle), Anchor::End, &paper.fit(name, left - 12.0));
        } else {
            drawing.text("name", (4.0, y + head), Anchor::Start, &paper.fit(name, paper.width - 4.0));
        }
    }
    let zero = axis.place(0.0).unwrap_or(left);
    for bar in &bars {
        let y = top + group_height * bar.group as f64 + GROUP_GAP / 2.0 + head + thickness * bar.series as f64;
        let x = axis.place(bar.value).unwrap_or(zero);
        drawing.bar(&bar.class(), (x.min(zero), y), ((x - zero).abs(), thickness - 1.0), &bar.title(chart));
        if with_values {
            let middle = y + thickness / 2.0 + 3.5;
            drawing.text("value", (x.max(zero) + 5.0, middle), Anchor::Start, &bar.text);
        }
    }
    drawing.finish()
}

/// Zero is always on it: a bar's length is its value.
fn value_axis(chart: &Chart, n_ticks: usize) -> Axis {
    let values = chart.series.iter().flat_map(|series| &series.points).map(|point| point.y);
    Axis::linear(values.chain([0.0]), n_ticks)
}

/// A bar that can be drawn.
struct Bar<'a> {
    group: usize,
    series: usize,
    name: &'a str,
    value: f64,
    text: String,
}

/// All of them, group by group.
fn bars(chart: &Chart) -> Vec<Bar<'_>> {
    let (mut bars, precision) = (Vec::new(), precision(chart));
    for (group, name) in labels(&chart.series).into_iter().enumerate() {
        for (at, series) in chart.series.iter().enumerate() {
            if let Some(value) = value_at(series, name).filter(|value| is_placed(*value, Scale::Linear)) {
                bars.push(Bar { group, series: at, name, value, text: precision.text(value) });
            }
        }
    }
    bars
}

impl Bar<'_> {
    fn class(&self) -> String {
        format!("bar {}", colour(self.series))
    }

    fn title(&self, chart: &Chart) -> String {
        format!("{}, {}: {}", self.name, chart.series[self.series].name, self.text)
    }
}
