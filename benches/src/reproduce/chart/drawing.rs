//! Paper and pen: an SVG of fixed width that grows with its page, and how much text fits on it.
//!
//! Range: widths of text are estimates, taken generously, because the reader's font is not known.

use std::fmt::Write as _;

use super::super::markup::escape;

/// A character's width in units of the size of its font.
const CHARACTER_WIDTH: f64 = 0.57;
/// A label has no more lines than this.
const N_LINES_MAX: usize = 3;

/// Colours of the style sheet, `--s0` on; beyond them the same again, fainter or dashed.
const N_COLOURS: usize = 6;

/// The page a drawing is for; the style sheet shows the one that suits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Wide,
    Narrow,
}

/// The paper of one drawing, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paper {
    pub(super) layout: Layout,
    pub(super) width: f64,
    pub(super) font_size: f64,
}

pub(super) const WIDE: Paper = Paper { layout: Layout::Wide, width: 760.0, font_size: 12.0 };
pub(super) const NARROW: Paper = Paper { layout: Layout::Narrow, width: 350.0, font_size: 11.0 };

/// Which end of a text stands at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// An SVG that is being drawn.
#[derive(Debug)]
pub(super) struct Drawing {
    svg: String,
}

impl Drawing {
    /// An empty drawing; `label` tells what it shows to those who do not see it.
    pub(super) fn new(paper: Paper, height: f64, label: &str) -> Self {
        Self::of_role("img", paper, height, label)
    }

    /// One whose parts are told one by one, by their titles.
    pub(super) fn of_parts(paper: Paper, height: f64, label: &str) -> Self {
        Self::of_role("group", paper, height, label)
    }

    fn of_role(role: &str, paper: Paper, height: f64, label: &str) -> Self {
        let layout = match paper.layout {
            Layout::Wide => "wide",
            Layout::Narrow => "narrow",
        };
        let (width, size, label) = (paper.width, paper.font_size, escape(label));
        let view = format!("viewBox=\"0 0 {width:.0} {height:.0}\" font-size=\"{size}\"");
        Self { svg: format!("<svg class=\"{layout}\" {view} role=\"{role}\" aria-label=\"{label}\">\n") }
    }

    /// A line between two points.
    pub(super) fn rule(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x, y), (to_x, to_y)) = (from, to);
        let _ = writeln!(self.svg, "<path class=\"{class}\" d=\"M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}\"/>");
    }

    /// A line through points, broken where one is missing.
    pub(super) fn line(&mut self, class: &str, points: &[Option<(f64, f64)>]) {
        let mut path = String::new();
        let mut pen = 'M';
        for point in points {
            pen = match point {
                Some((x, y)) => {
                    let _ = write!(path, "{pen}{x:.1} {y:.1}");
                    'L'
                }
                None => 'M',
            };
        }
        let _ = writeln!(self.svg, "<path class=\"{class}\" d=\"{path}\"/>");
    }

    /// A rectangle that tells its value when pointed at.
    pub(super) fn bar(&mut self, class: &str, from: (f64, f64), size: (f64, f64), title: &str) {
        let ((x, y), (width, height), title) = (from, (size.0.max(0.5), size.1.max(0.5)), escape(title));
        let place = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"");
        let _ = writeln!(self.svg, "<rect class=\"{class}\" {place}><title>{title}</title></rect>");
    }

    /// Upright strokes over a rectangle.
    pub(super) fn hatch(&mut self, from: (f64, f64), size: (f64, f64)) {
        const STEP: f64 = 4.0;
        let ((x, y), (width, height)) = (from, size);
        let strokes = (1..=(width / STEP) as usize).map(|at| x + STEP * at as f64).filter(|stroke| *stroke < x + width);
        let path: String = strokes.map(|stroke| format!("M{stroke:.1} {y:.1}V{:.1}", y + height)).collect();
        let _ = writeln!(self.svg, "<path class=\"hatch\" d=\"{path}\"/>");
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let ((x, y), text) = (at, escape(text));
        let _ = writeln!(self.svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{text}</text>");
    }

    /// A marker of a series that tells its value when pointed at.
    pub(super) fn marker(&mut self, series: usize, at: (f64, f64), title: &str) {
        self.svg.push_str(&marker(series, at, title));
        self.svg.push('\n');
    }

    pub(super) fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

/// Class of the colour of a series.
pub(super) fn colour(series: usize) -> String {
    let again = if series >= N_COLOURS { " again" } else { "" };
    format!("s{}{again}", series % N_COLOURS)
}

/// The marker of a series: a shape of its own, with a rim of paper that keeps crossing lines apart.
pub(super) fn marker(series: usize, at: (f64, f64), title: &str) -> String {
    const SHAPES: [&str; 8] = [
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        "M-3.6-3.6H3.6V3.6H-3.6z",
        "M0-4.9L4.7 3.4H-4.7z",
        "M0-5.2L5.2 0L0 5.2L-5.2 0z",
        "M0 4.9L4.7-3.4H-4.7z",
        "M-1.5-4.6H1.5V-1.5H4.6V1.5H1.5V4.6H-1.5V1.5H-4.6V-1.5H-1.5z",
        "M-4.6 0L-2.3-4H2.3L4.6 0L2.3 4H-2.3z",
        "M0-5L1.4-1.6L5-1.5L2.2 .8L3.1 4.3L0 2.3L-3.1 4.3L-2.2 .8L-5-1.5L-1.4-1.6z",
    ];
    let (shape, class, (x, y)) = (SHAPES[series % SHAPES.len()], colour(series), at);
    let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
    format!("<path class=\"marker {class}\" transform=\"translate({x:.1} {y:.1})\" d=\"{shape}\">{title}</path>")
}

impl Paper {
    /// About how wide a text is.
    pub(super) fn text_width(&self, text: &str) -> f64 {
        text.chars().count() as f64 * CHARACTER_WIDTH * self.font_size
    }

    /// The width of the widest.
    pub(super) fn widest<'a>(&self, texts: impl Iterator<Item = &'a str>) -> f64 {
        texts.map(|text| self.text_width(text)).fold(0.0, f64::max)
    }

    /// The text, cut in its middle to a width: how it begins and how it ends tell labels apart.
    pub(super) fn fit(&self, text: &str, width: f64) -> String {
        let n_max = (width / (CHARACTER_WIDTH * self.font_size)).max(3.0) as usize;
        let characters: Vec<char> = text.chars().collect();
        if characters.len() <= n_max {
            return text.to_owned();
        }
        let n_head = n_max / 2;
        let tail = &characters[characters.len() + n_head + 1 - n_max..];
        characters[..n_head].iter().chain(&['…']).chain(tail).collect()
    }

    /// The text in lines of a width, broken after spaces, hyphens, underscores and slashes; none if that is not enough.
    pub(super) fn wrap(&self, text: &str, width: f64) -> Option<Vec<String>> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_inclusive([' ', '-', '_', '/']) {
            match lines.last_mut() {
                Some(line) if self.text_width(line) + self.text_width(word.trim_end()) <= width => line.push_str(word),
                _ => lines.push(word.to_owned()),
            }
        }
        let fits = lines.len() <= N_LINES_MAX && lines.iter().all(|line| self.text_width(line.trim_end()) <= width);
        fits.then(|| lines.iter().map(|line| line.trim_end().to_owned()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_wrap_where_words_end_and_never_within_one() {
        assert_eq!(
            WIDE.wrap("climate_fever_sent", 60.0),
            Some(["climate_", "fever_", "sent"].map(str::to_owned).to_vec())
        );
        assert_eq!(WIDE.wrap("climate_fever_sent", 200.0), Some(vec!["climate_fever_sent".to_owned()]));
        assert_eq!(WIDE.wrap("musique100train", 60.0), None);
        assert_eq!(WIDE.wrap("", 60.0), Some(vec![]));
    }

    #[test]
    fn a_label_that_is_cut_keeps_its_ends() {
        assert_eq!(WIDE.fit("short", 100.0), "short");
        assert_eq!(WIDE.fit("abcdefghijklmnopqrstuvwxyz", 7.0 * 7.0), "abc…xyz");
        assert_eq!(WIDE.fit("ábcdéfghijk", 0.0).chars().count(), 3);
    }

    #[test]
    fn a_line_is_broken_where_a_point_is_missing() {
        let mut drawing = Drawing::new(WIDE, 10.0, "");
        drawing.line("l", &[Some((0.0, 1.0)), Some((2.0, 3.0)), None, Some((4.0, 5.0))]);
        assert!(drawing.finish().contains("d=\"M0.0 1.0L2.0 3.0M4.0 5.0\""));
    }
}
