//! A strip of deviations: every figure that was compared is a stroke, placed by how many tolerances it is off.
//!
//! Range: the axis ends where failing begins; strokes beyond are crosses at its ends.

use std::fmt::Write as _;

use super::super::markup::exact;
use super::super::report::{Cell, NEAR_TOLERANCES, Verdict};

const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 24.0;
/// Where crosses stand, in tolerances.
const BEYOND: f64 = NEAR_TOLERANCES + 0.7;

/// The strip of these figures; nothing where none was compared with a figure.
pub(crate) fn svg<'a>(cells: impl Iterator<Item = &'a Cell>) -> String {
    let strokes: String = cells.filter_map(stroke).collect();
    if strokes.is_empty() {
        return String::new();
    }
    let (band, middle) = (place(1.0) - place(-1.0), HEIGHT / 2.0);
    let mut svg = format!("<svg class=\"strip\" viewBox=\"0 0 {WIDTH:.0} {HEIGHT:.0}\" aria-hidden=\"true\">");
    let _ =
        write!(svg, "<rect class=\"band\" x=\"{:.1}\" y=\"0\" width=\"{band:.1}\" height=\"{HEIGHT}\"/>", place(-1.0));
    let (from, to) = (place(-NEAR_TOLERANCES), place(NEAR_TOLERANCES));
    let _ = write!(svg, "<path class=\"grid\" d=\"M{from:.1} {middle}H{to:.1}\"/>{strokes}</svg>");
    svg
}

/// What the places of a strip mean.
pub(crate) fn axis() -> String {
    let mut svg = format!("<svg class=\"strip\" viewBox=\"0 0 {WIDTH:.0} 14\" font-size=\"11\" aria-hidden=\"true\">");
    for tolerances in [-NEAR_TOLERANCES, -1.0, 0.0, 1.0, NEAR_TOLERANCES] {
        let label = exact(tolerances);
        let _ = write!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"11\" text-anchor=\"middle\">{label}</text>",
            place(tolerances)
        );
    }
    svg.push_str("</svg>");
    svg
}

fn stroke(cell: &Cell) -> Option<String> {
    let (deviation, verdict) = (cell.deviation()?, cell.verdict()?);
    let tolerances = if deviation == 0.0 { 0.0 } else { deviation / cell.tolerance().max(0.0) };
    let (x, middle) = (place(tolerances), HEIGHT / 2.0);
    Some(match verdict {
        Verdict::Ok => format!("<path class=\"ok\" d=\"M{x:.1} {:.1}V{:.1}\"/>", middle - 5.0, middle + 5.0),
        Verdict::Near => format!("<path class=\"near\" d=\"M{x:.1} {:.1}V{:.1}\"/>", middle - 8.0, middle + 8.0),
        Verdict::Fail => format!("<path class=\"fail\" d=\"M{:.1} {:.1}l8 8m0-8l-8 8\"/>", x - 4.0, middle - 4.0),
    })
}

/// Where a deviation lies, in tolerances.
fn place(tolerances: f64) -> f64 {
    let inner = WIDTH - 20.0;
    10.0 + inner / 2.0 * (1.0 + tolerances.clamp(-BEYOND, BEYOND) / BEYOND)
}
