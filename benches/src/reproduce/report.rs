//! The report of `cento-bench reproduce`: figures measured again, each beside the one that was published or recorded.
//!
//! Range: a deviation within the tolerance is OK, within [`NEAR_TOLERANCES`] times it near, beyond a failure.
//! Differs: a figure without an expectation is shown and not judged; a figure that was expected and is missing fails.

use cento_eval::Machine;
use serde::{Deserialize, Deserializer, Serialize};

use super::picture::Picture;

/// How many tolerances a figure may be off and still count as near.
pub(crate) const NEAR_TOLERANCES: f64 = 5.0;
/// Rounding of the arithmetic itself, relative to the figures: 0.745 - 0.744 is within 0.001.
const ROUNDING: f64 = 1e-12;

/// What one run reproduced, and on what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Format number of this structure as JSON.
    pub(crate) version: u32,
    /// Version of the binary that ran.
    pub(crate) cento: String,
    pub(crate) machine: Machine,
    pub(crate) cache: Cache,
    /// Wall time of everything.
    pub(crate) seconds: f64,
    pub(crate) reproductions: Vec<Reproduction>,
}

/// Whether what an earlier run embedded was there to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cache {
    Warm,
    Cold,
}

/// One published or recorded result, run again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reproduction {
    /// What the command line calls it.
    pub(crate) name: String,
    pub(crate) title: String,
    /// A paper, an address, or "recorded" and a date.
    pub(crate) source: String,
    /// What it shows: paragraphs parted by blank lines, `code` in backticks.
    pub(crate) text: String,
    pub(crate) seconds: f64,
    pub(crate) tables: Vec<Table>,
    pub(crate) charts: Vec<Chart>,
    #[serde(default)]
    pub(crate) pictures: Vec<Picture>,
    pub(crate) steps: Vec<Step>,
    /// Why it did not run to its end.
    pub(crate) failure: Option<String>,
}

/// Figures of one measure: a row for each thing measured, a column for each way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// What the figures are, such as "nDCG@10".
    pub(crate) measure: String,
    /// What the rows are, such as "set".
    pub(crate) row_title: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) cells: Vec<Cell>,
}

/// One figure; values that are not finite count as absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) actual: Option<f64>,
    pub(crate) expected: Option<f64>,
    /// The deviation that is still OK; none asks for the very figure.
    pub(crate) tolerance: Option<f64>,
}

/// How a figure stands to what was expected, best first, so that the worst of many is their maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within the tolerance.
    Ok,
    /// Within a few tolerances.
    Near,
    /// Beyond that, or missing.
    Fail,
}

/// How many figures got each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) n_ok: usize,
    pub(crate) n_near: usize,
    pub(crate) n_fail: usize,
}

/// A drawing of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) kind: Kind,
    pub(crate) x_title: String,
    pub(crate) y_title: String,
    /// Of lines; bars stand side by side.
    pub(crate) x_scale: Scale,
    pub(crate) series: Vec<Series>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A group of bars for each label, a bar for each series.
    Bars,
    /// A line for each series, through its points in their order; labels are numbers.
    Lines,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scale {
    Linear,
    /// Base 10: a ratio is a length, only positive values have a place.
    Log,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) x: String,
    /// NaN, which JSON writes as null, leaves a gap.
    #[serde(deserialize_with = "nan_from_null")]
    pub(crate) y: f64,
}

/// A command that was run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) seconds: f64,
}

impl Report {
    /// The worst of its reproductions; none where nothing was compared.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        self.reproductions.iter().filter_map(Reproduction::verdict).max()
    }

    /// Figures of all reproductions.
    pub(crate) fn counts(&self) -> Counts {
        Counts::of(self.reproductions.iter().flat_map(Reproduction::cells))
    }
}

impl Reproduction {
    /// The worst of its figures; a failure if it did not run to its end; none where nothing was compared.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let failed = self.failure.as_ref().map(|_| Verdict::Fail);
        self.cells().filter_map(Cell::verdict).chain(failed).max()
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts::of(self.cells())
    }

    /// Every figure, table by table and row by row.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells)
    }
}

impl Cell {
    /// How the figure stands to what was expected; none where nothing was.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let expected = self.expected()?;
        let Some(actual) = self.actual() else { return Some(Verdict::Fail) };
        let rounding = ROUNDING * actual.abs().max(expected.abs());
        let (deviation, tolerance) = ((actual - expected).abs(), self.tolerance());
        Some(if deviation <= tolerance + rounding {
            Verdict::Ok
        } else if deviation <= NEAR_TOLERANCES * tolerance + rounding {
            Verdict::Near
        } else {
            Verdict::Fail
        })
    }

    /// Actual less expected, where both are there.
    pub(crate) fn deviation(&self) -> Option<f64> {
        Some(self.actual()? - self.expected()?)
    }

    pub(crate) fn actual(&self) -> Option<f64> {
        self.actual.filter(|value| value.is_finite())
    }

    pub(crate) fn expected(&self) -> Option<f64> {
        self.expected.filter(|value| value.is_finite())
    }

    /// The deviation that is still OK; zero where none was given.
    pub(crate) fn tolerance(&self) -> f64 {
        self.tolerance.filter(|value| value.is_finite()).unwrap_or(0.0)
    }
}

impl Counts {
    pub(crate) fn of<'a>(cells: impl Iterator<Item = &'a Cell>) -> Self {
        let mut counts = Self::default();
        for verdict in cells.filter_map(Cell::verdict) {
            match verdict {
                Verdict::Ok => counts.n_ok += 1,
                Verdict::Near => counts.n_near += 1,
                Verdict::Fail => counts.n_fail += 1,
            }
        }
        counts
    }

    /// Figures that were compared.
    pub(crate) fn total(&self) -> usize {
        self.n_ok + self.n_near + self.n_fail
    }
}

impl Verdict {
    /// The word for it: verdicts are never told by colour alone.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Near => "near",
            Self::Fail => "FAIL",
        }
    }
}

fn nan_from_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(actual: f64, expected: f64, tolerance: f64) -> Cell {
        Cell { actual: Some(actual), expected: Some(expected), tolerance: Some(tolerance) }
    }

    fn reproduction(cells: &[Cell]) -> Reproduction {
        let rows = vec![Row { name: "row".to_owned(), cells: cells.to_vec() }];
        Reproduction { tables: vec![Table { rows, ..Table::default() }], ..Reproduction::default() }
    }

    #[test]
    fn a_deviation_is_ok_up_to_the_tolerance_and_near_up_to_five() {
        assert_eq!(cell(0.744, 0.744, 0.0).verdict(), Some(Verdict::Ok));
        assert_eq!(cell(0.745, 0.744, 0.001).verdict(), Some(Verdict::Ok), "the binary fractions differ by a bit more");
        assert_eq!(cell(0.743, 0.744, 0.001).verdict(), Some(Verdict::Ok));
        assert_eq!(cell(0.7451, 0.744, 0.001).verdict(), Some(Verdict::Near));
        assert_eq!(cell(0.739, 0.744, 0.001).verdict(), Some(Verdict::Near));
        assert_eq!(cell(0.7389, 0.744, 0.001).verdict(), Some(Verdict::Fail));
        assert_eq!(cell(0.7441, 0.744, 0.0).verdict(), Some(Verdict::Fail), "no tolerance has no near");
        assert_eq!(
            cell(12_401.0, 12_400.0, -1.0).verdict(),
            Some(Verdict::Fail),
            "a negative tolerance allows nothing"
        );
    }

    #[test]
    fn an_expected_figure_that_is_missing_fails_and_one_without_expectation_is_not_judged() {
        let missing = Cell { actual: None, expected: Some(0.5), tolerance: Some(0.1) };
        let plain = Cell { actual: Some(0.5), ..Cell::default() };
        assert_eq!(missing.verdict(), Some(Verdict::Fail));
        assert_eq!(cell(f64::NAN, 0.5, 0.1).verdict(), Some(Verdict::Fail));
        assert_eq!(cell(f64::INFINITY, 0.5, 0.1).verdict(), Some(Verdict::Fail));
        assert_eq!(plain.verdict(), None);
        assert_eq!(cell(0.5, f64::NAN, 0.1).verdict(), None);
        assert_eq!(Cell::default().verdict(), None);
        assert_eq!(Cell { tolerance: None, ..cell(0.5, 0.5, 0.1) }.verdict(), Some(Verdict::Ok), "none is zero");
    }

    #[test]
    fn a_reproduction_is_as_good_as_its_worst_figure() {
        let (ok, near, fail) = (cell(1.0, 1.0, 0.1), cell(1.2, 1.0, 0.1), cell(2.0, 1.0, 0.1));
        assert_eq!(reproduction(&[]).verdict(), None);
        assert_eq!(reproduction(&[ok]).verdict(), Some(Verdict::Ok));
        assert_eq!(reproduction(&[near, ok]).verdict(), Some(Verdict::Near));
        let worst = reproduction(&[ok, fail, near, ok]);
        assert_eq!(worst.verdict(), Some(Verdict::Fail));
        assert_eq!(worst.counts(), Counts { n_ok: 2, n_near: 1, n_fail: 1 });
        assert_eq!(worst.counts().total(), 4);
    }

    #[test]
    fn a_reproduction_that_did_not_finish_fails_whatever_its_figures_say() {
        let failure = Some("no such set".to_owned());
        let stopped = Reproduction { failure, ..reproduction(&[cell(1.0, 1.0, 0.1)]) };
        assert_eq!(stopped.verdict(), Some(Verdict::Fail));
        assert_eq!(stopped.counts(), Counts { n_ok: 1, n_near: 0, n_fail: 0 });
    }

    #[test]
    fn a_cell_and_a_point_are_the_same_after_json() {
        let before = cell(0.1 + 0.2, 0.3, 1e-9);
        let after: Cell = serde_json::from_str(&serde_json::to_string(&before).unwrap()).unwrap();
        assert_eq!(after, before);
        let not_finite = cell(f64::NAN, 0.5, f64::INFINITY);
        let after: Cell = serde_json::from_str(&serde_json::to_string(&not_finite).unwrap()).unwrap();
        assert_eq!(after.verdict(), not_finite.verdict());
        let gap = Point { x: "10".to_owned(), y: f64::NAN };
        let after: Point = serde_json::from_str(&serde_json::to_string(&gap).unwrap()).unwrap();
        assert!(after.y.is_nan());
    }
}
