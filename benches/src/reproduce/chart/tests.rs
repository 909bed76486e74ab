//! What a drawing must hold, whatever the figures.

use super::super::picture::{Accepted, Count, Document, Outlined, Picture, Section};
use super::super::report::{Point, Scale};
use super::*;

fn series(name: &str, points: &[(&str, f64)]) -> Series {
    Series { name: name.to_owned(), points: points.iter().map(|(x, y)| Point { x: (*x).to_owned(), y: *y }).collect() }
}

fn chart(kind: Kind, x_scale: Scale, series: Vec<Series>) -> Chart {
    let [title, x_title, y_title] = ["title", "across", "up"].map(str::to_owned);
    Chart { title, kind, x_title, y_title, x_scale, series }
}

/// The drawing of either layout, without the table below.
fn drawing<'a>(figure: &'a str, layout: &str) -> &'a str {
    let from = figure.find(&format!("<svg class=\"{layout}\"")).unwrap();
    &figure[from..from + figure[from..].find("</svg>").unwrap()]
}

/// Coordinates are finite, on the paper in either direction, and elements are closed.
#[track_caller]
fn check(chart: &Chart) -> String {
    let figure = figure(chart);
    check_drawings(&figure);
    figure
}

#[track_caller]
fn check_drawings(figure: &str) {
    for svg in figure.split("<svg class=\"").skip(1).map(|rest| rest.split("</svg>").next().unwrap()) {
        let view = svg.split("viewBox=\"0 0 ").nth(1).unwrap().split('"').next().unwrap();
        let (width, height) = view.split_once(' ').unwrap();
        let (width, height): (f64, f64) = (width.parse().unwrap(), height.parse().unwrap());
        for (name, limit) in [(" x=\"", width), (" y=\"", height), (" width=\"", width), (" height=\"", height)] {
            for value in svg.split(name).skip(1).map(|rest| rest.split('"').next().unwrap()) {
                let value: f64 = value.parse().unwrap();
                assert!((-1.0..=limit + 1.0).contains(&value), "{name}{value} is off {width} by {height}\n{svg}");
            }
        }
        for path in svg.split(" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(!path.contains("NaN") && !path.contains("inf"), "{path}");
        }
    }
}

#[test]
fn no_values_however_odd_put_nan_or_infinity_into_a_drawing() {
    let odd: [&[(&str, f64)]; 11] = [
        &[("1", 0.5)],
        &[("1", 0.0), ("2", 0.0)],
        &[("1", -3.0), ("2", -1.0)],
        &[("1", -1e300), ("2", 1e300)],
        &[("1", 1e-300), ("2", 1e-299)],
        &[("1", 1e-9), ("2", 1e12)],
        &[("1", f64::NAN), ("2", f64::INFINITY), ("3", 1.7e308)],
        &[("0", 1.0), ("-5", 2.0), ("words", 3.0), ("NaN", 4.0), ("inf", 5.0), ("1e308", 1.0), ("1e-320", 1.0)],
        &[("7", 1.0), ("7", 2.0), ("7", 2.0)],
        &[("1", 5.0), ("1000000000000", 5.0 + 1e-12)],
        &[("", 1.0)],
    ];
    for points in odd {
        for kind in [Kind::Bars, Kind::Lines] {
            for scale in [Scale::Linear, Scale::Log] {
                check(&chart(kind, scale, vec![series("a", points)]));
                check(&chart(kind, scale, vec![series("a", points), series("b", &[]), series("c", &[("3", 0.1)])]));
            }
        }
    }
}

#[test]
fn a_chart_without_points_says_so() {
    for kind in [Kind::Bars, Kind::Lines] {
        for series in [vec![], vec![series("a", &[])]] {
            let figure = figure(&chart(kind, Scale::Log, series));
            assert!(figure.contains("no values to draw") && !figure.contains("<svg"), "{figure}");
        }
    }
}

#[test]
fn values_without_a_place_are_counted() {
    let points = [("0", 1.0), ("10", f64::NAN), ("20", 2.0), ("30", 3.0)];
    let figure = check(&chart(Kind::Lines, Scale::Log, vec![series("a", &points)]));
    assert!(figure.contains("2 values are missing or off these axes"), "{figure}");
    let figure = check(&chart(Kind::Bars, Scale::Log, vec![series("a", &points)]));
    assert!(figure.contains("1 value is missing or off these axes"), "{figure}");
}

#[test]
fn short_labels_stand_below_upright_bars_and_long_ones_beside_lying_bars() {
    let tall = |names: [&str; 4]| {
        let points: Vec<(&str, f64)> = names.iter().map(|name| (*name, 1.0)).collect();
        let figure = check(&chart(Kind::Bars, Scale::Linear, vec![series("s", &points)]));
        names.iter().for_each(|name| assert!(figure.contains(&format!(">{name}</text>")), "{name} is cut"));
        drawing(&figure, "wide").contains("↑ up")
    };
    assert!(tall(["a", "b", "c", "d"]));
    assert!(!tall([
        "climatefeversentencesofset1x",
        "climatefeversentencesofset2x",
        "climatefeversentencesofset3x",
        "climatefeversentencesofset4x"
    ]));
}

#[test]
fn many_groups_and_series_stay_on_the_paper() {
    let names: Vec<String> = (0..60).map(|i| format!("a rather long name of group number {i}")).collect();
    let points: Vec<(&str, f64)> = names.iter().enumerate().map(|(i, name)| (name.as_str(), i as f64 - 20.0)).collect();
    let all: Vec<Series> = (0..9).map(|i| series(&format!("series {i}"), &points)).collect();
    let figure = check(&chart(Kind::Bars, Scale::Linear, all));
    assert!(figure.contains("class=\"bar s0 again\""));
}

#[test]
fn series_of_lines_differ_by_shape_as_well_as_colour() {
    let all: Vec<Series> =
        (0..8).map(|i| series(&format!("n{i}"), &[("1", f64::from(i)), ("2", f64::from(i))])).collect();
    let figure = check(&chart(Kind::Lines, Scale::Linear, all));
    let svg = drawing(&figure, "wide");
    let shapes: BTreeSet<&str> = svg
        .lines()
        .filter(|line| line.contains("class=\"marker"))
        .map(|line| line.split(" d=\"").nth(1).unwrap().split('"').next().unwrap())
        .collect();
    assert_eq!(shapes.len(), 8);
    assert!((0..8).all(|i| svg.contains(&format!(">n{i}</text>"))), "each line is named at its end");
}

#[test]
fn lines_too_many_or_too_long_to_name_keep_their_legend() {
    let points = [("1", 1.0), ("2", 2.0)];
    let long = "a name that would take more than a third of the drawing's width";
    let figure = check(&chart(Kind::Lines, Scale::Linear, vec![series(long, &points), series("b", &points)]));
    assert!(figure.contains("<ul class=\"legend\">"));
    let many: Vec<Series> = (0..40).map(|i| series(&format!("n{i}"), &points)).collect();
    assert!(check(&chart(Kind::Lines, Scale::Linear, many)).contains("<ul class=\"legend\">"));
}

#[test]
fn every_value_stands_in_the_table() {
    let shared = [series("a", &[("10", 0.25), ("20", 3.0)]), series("b", &[("10", 0.5), ("20", f64::NAN)])];
    let figure = check(&chart(Kind::Lines, Scale::Linear, shared.to_vec()));
    assert!(figure.contains("<tr><th scope=\"row\">10</th><td>0.25</td><td>0.50</td></tr>"), "{figure}");
    assert!(figure.contains("<tr><th scope=\"row\">20</th><td>3.00</td><td>—</td></tr>"), "{figure}");
    let apart = [series("a", &[("10", 0.25), ("20", 3.0)]), series("b", &[("11", 0.5), ("21", 1.5)])];
    let figure = check(&chart(Kind::Lines, Scale::Linear, apart.to_vec()));
    assert!(figure.contains("<tr><th scope=\"row\">b</th><td>21</td><td>1.50</td></tr>"), "{figure}");
}

#[test]
fn text_of_a_chart_is_escaped_wherever_it_stands() {
    let hostile = "<script>\"'&";
    for kind in [Kind::Bars, Kind::Lines] {
        let mut chart = chart(kind, Scale::Linear, vec![series(hostile, &[(hostile, 1.0), ("2", 2.0)]); 2]);
        chart.title = hostile.to_owned();
        chart.x_title = hostile.to_owned();
        chart.y_title = hostile.to_owned();
        let figure = check(&chart);
        assert!(!figure.contains("<script") && !figure.contains("\"'&"), "{figure}");
    }
}

/// A document with these spans delivered, marked from 1, and these rejected.
fn document(n_bytes: u64, accepted: &[(u64, u64)], rejected: &[(u64, u64)]) -> Document {
    let accepted = accepted.iter().enumerate().map(|(at, (start, end))| Accepted {
        n: at + 1,
        span: *start..*end,
        n_chunks: 1,
        is_cut: false,
    });
    let rejected = rejected.iter().map(|(start, end)| Outlined {
        chunk: format!("a#{start}"),
        reason: "too redundant".to_owned(),
        span: *start..*end,
        is_weighed: start % 2 == 0,
    });
    Document { id: "a".to_owned(), n_bytes, accepted: accepted.collect(), rejected: rejected.collect() }
}

fn context(documents: Vec<Document>) -> Picture {
    Picture {
        query: "who & why".to_owned(),
        strategy: "bubble".to_owned(),
        budget_tokens: 800,
        n_tokens: 395,
        text_tokens: 312,
        n_delivered: documents.iter().map(|document| document.accepted.len()).sum(),
        sections: vec![Section { name: "a › b".to_owned(), tokens: 312, limit_tokens: Some(400) }],
        documents,
        ..Picture::default()
    }
}

/// Place and width of the rectangles of a class, drawing by drawing.
fn rectangles(figure: &str, class: &str) -> Vec<(f64, f64)> {
    let value = |rest: &str, name: &str| rest.split(name).nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    let start = format!("<rect class=\"{class}\" ");
    figure.split(&start).skip(1).map(|rest| (value(rest, "x=\""), value(rest, "width=\""))).collect()
}

#[test]
fn the_parts_of_a_budget_fill_its_bar() {
    let figure = picture::figure(&context(vec![document(100, &[(0, 50)], &[])]));
    check_drawings(&figure);
    for words in
        ["395 of 800 tokens", "texts 312", "headers and marks 83", "unspent 405", "312 of 400", "who &amp; why"]
    {
        assert!(figure.contains(words), "no {words:?} in {figure}");
    }
    let bar = drawing(&figure, "wide");
    let parts: Vec<_> = ["text", "frame", "left"].iter().flat_map(|class| rectangles(bar, class)).collect();
    assert_eq!(parts.len(), 3, "{bar}");
    assert!(parts.windows(2).all(|pair| (pair[0].0 + pair[0].1 - pair[1].0).abs() < 0.11), "{parts:?}");
    assert!((parts[2].0 + parts[2].1 - 759.0).abs() < 0.11, "{parts:?}");
    assert!((parts[0].1 / parts[2].1 - 312.0 / 405.0).abs() < 0.01, "{parts:?}");
}

#[test]
fn a_strip_has_each_span_at_its_bytes_and_each_rejected_candidate_outlined() {
    let figure = picture::figure(&context(vec![document(1000, &[(500, 750), (0, 250)], &[(250, 500), (751, 1000)])]));
    check_drawings(&figure);
    assert_eq!(rectangles(&figure, "accepted").len(), 2 * 2, "on wide and on narrow paper");
    let (first, second) = (rectangles(&figure, "accepted")[0], rectangles(&figure, "accepted")[1]);
    assert_eq!((first, second), ((380.0, 189.5), (1.0, 189.5)));
    assert_eq!(
        (rectangles(&figure, "out").len(), rectangles(&figure, "out beyond").len()),
        (2 + 1, 2 + 1),
        "and a legend"
    );
    assert!(figure.contains("<title>[1]: bytes 500 to 750, 1 chunk</title>"), "{figure}");
    assert!(figure.contains("<title>a#250: too redundant; bytes 250 to 500</title>"), "{figure}");
}

#[test]
fn marks_that_would_touch_stand_above_each_other() {
    let near: Vec<(u64, u64)> = (0..30).map(|i| (i * 3, i * 3 + 2)).collect();
    let figure = picture::figure(&context(vec![document(100_000, &near, &[]), document(0, &[(0, 0)], &[(0, 1)])]));
    check_drawings(&figure);
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    let strips = figure.split("<h3>Documents").nth(1).unwrap();
    for text in drawing(strips, "narrow").split("<text class=\"value\"").skip(1) {
        let value = |name: &str| text.split(name).nth(1).unwrap().split('"').next().unwrap().parse::<f64>().unwrap();
        let label = text.split('>').nth(1).unwrap().split('<').next().unwrap();
        let (x, y, half) = (value("x=\""), value("y=\""), NARROW.text_width(label) / 2.0);
        assert!(
            taken.iter().all(|(at, on, width)| *on != y || (at - x).abs() >= half + width),
            "{label} touches another"
        );
        taken.push((x, y, half));
    }
    assert_eq!(taken.len(), 30);
}

#[test]
fn a_context_without_anything_delivered_says_so() {
    let reasons = vec![Count { reason: "not supported".to_owned(), n: 1234 }];
    let figure = picture::figure(&Picture { reasons, text_tokens: 0, ..context(Vec::new()) });
    check_drawings(&figure);
    assert!(figure.contains("Nothing was delivered") && !figure.contains("Documents"), "{figure}");
    assert!(figure.contains("And 1,234 not supported."), "{figure}");
}
