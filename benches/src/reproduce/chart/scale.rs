//! Axes: from figures to places on the paper, with round ticks.
//!
//! Range: ticks are 1, 2 or 5 times a power of ten, linear or logarithmic; a linear axis ends on ticks.
//! Differs: a value that is not finite, beyond [`VALUE_MAX`] or, on a logarithmic axis, not positive has no place.

use super::super::markup::{decimals_of_step, number};
use super::super::report::Scale;

/// Beyond it differences overflow.
const VALUE_MAX: f64 = 1e300;
/// Ticks are never more than this.
const N_TICKS_MAX: usize = 24;

/// A range of values laid along a range of the paper.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    scale: Scale,
    lower: f64,
    upper: f64,
    from: f64,
    to: f64,
    pub(super) ticks: Vec<Tick>,
}

/// A round value and how it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

impl Axis {
    /// An axis over all values, widened to round ends, of about so many ticks.
    pub(super) fn linear(values: impl Iterator<Item = f64>, n_ticks: usize) -> Self {
        let (lower, upper) = widened(extent(values.filter(|value| is_placed(*value, Scale::Linear))));
        let step = round_step((upper - lower) / n_ticks.max(1) as f64);
        // The slack keeps an end that is a tick up to rounding from adding another one.
        let (first, last) = ((lower / step + 1e-9).floor(), (upper / step - 1e-9).ceil());
        let n_steps = ((last - first) as usize).min(N_TICKS_MAX);
        let ticks = (0..=n_steps).map(|i| tick((first + i as f64) * step, step)).collect();
        Self { scale: Scale::Linear, lower: first * step, upper: last * step, from: 0.0, to: 1.0, ticks }
    }

    /// An axis over all values, which end where they end, of about so many ticks.
    pub(super) fn tight(values: impl Iterator<Item = f64>, scale: Scale, n_ticks: usize) -> Self {
        let ends = extent(values.filter(|value| is_placed(*value, scale)));
        let (lower, upper) = match scale {
            Scale::Linear => widened(ends),
            Scale::Log => widened_ratio(ends),
        };
        let ticks = match scale {
            Scale::Linear => linear_ticks(lower, upper, n_ticks),
            Scale::Log => log_ticks(lower, upper, n_ticks),
        };
        Self { scale, lower, upper, from: 0.0, to: 1.0, ticks }
    }

    /// The same axis from one place on the paper to another.
    pub(super) fn along(self, from: f64, to: f64) -> Self {
        Self { from, to, ..self }
    }

    /// Where a value lies; none where it has no place.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        is_placed(value, self.scale).then(|| {
            let share = match self.scale {
                Scale::Linear => (value - self.lower) / (self.upper - self.lower),
                Scale::Log => (value / self.lower).ln() / (self.upper / self.lower).ln(),
            };
            self.from + share * (self.to - self.from)
        })
    }
}

/// Whether a value can be drawn at all.
pub(super) fn is_placed(value: f64, scale: Scale) -> bool {
    value.abs() <= VALUE_MAX && (scale == Scale::Linear || value >= 1.0 / VALUE_MAX)
}

fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends, value| {
        let (lower, upper) = ends.unwrap_or((value, value));
        Some((lower.min(value), upper.max(value)))
    })
}

/// Ends that differ, around one value where all are the same.
fn widened(ends: Option<(f64, f64)>) -> (f64, f64) {
    let (lower, upper) = ends.unwrap_or((0.0, 1.0));
    let magnitude = lower.abs().max(upper.abs());
    if upper - lower > 1e-9 * magnitude && upper - lower > 1.0 / VALUE_MAX {
        return (lower, upper);
    }
    let margin = if magnitude > 1.0 / VALUE_MAX { magnitude / 10.0 } else { 1.0 };
    (lower - margin, upper + margin)
}

fn widened_ratio(ends: Option<(f64, f64)>) -> (f64, f64) {
    let (lower, upper) = ends.unwrap_or((1.0, 10.0));
    if upper / lower > 1.001 { (lower, upper) } else { (lower / 2.0, upper * 2.0) }
}

fn linear_ticks(lower: f64, upper: f64, n_ticks: usize) -> Vec<Tick> {
    let step = round_step((upper - lower) / n_ticks.max(1) as f64);
    let (first, last) = ((lower / step - 1e-9).ceil(), (upper / step + 1e-9).floor());
    let n_steps = (last - first).max(0.0) as usize;
    (0..=n_steps.min(N_TICKS_MAX)).map(|i| tick((first + i as f64) * step, step)).collect()
}

/// The densest of 1-2-5, 1-3 and whole powers that keeps to the number; linear ticks where few fit.
fn log_ticks(lower: f64, upper: f64, n_ticks: usize) -> Vec<Tick> {
    let (first, last) = (lower.log10().floor() as i32, upper.log10().ceil() as i32);
    let within = |value: &f64| (lower * (1.0 - 1e-9)..=upper * (1.0 + 1e-9)).contains(value);
    for factors in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
        let decades = (first..=last).flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
        let values: Vec<f64> = decades.filter(within).collect();
        if values.len() < 2 {
            return linear_ticks(lower, upper, n_ticks.min(4));
        }
        if values.len() <= n_ticks.max(2) {
            return values.into_iter().map(|value| tick(value, value)).collect();
        }
    }
    let every = ((last - first) as usize).div_ceil(n_ticks.max(2)).max(1);
    (first..=last).step_by(every).map(|power| 10_f64.powi(power)).filter(within).map(|v| tick(v, v)).collect()
}

/// The smallest of 1, 2 and 5 times a power of ten that is no smaller.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// A tick is zero or a round value: what is left of rounding goes.
fn tick(value: f64, step: f64) -> Tick {
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    let label = match value.abs() {
        0.0 => "0".to_owned(),
        magnitude if magnitude >= 1e9 || step < 1e-6 => format!("{value:e}").replace('-', "−"),
        magnitude if magnitude >= 1e6 => format!("{}M", number(value / 1e6, decimals_of_step(step / 1e6))),
        _ => number(value, decimals_of_step(step)),
    };
    Tick { value, label }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    fn linear(values: &[f64]) -> Axis {
        Axis::linear(values.iter().copied(), 5)
    }

    #[test]
    fn linear_ticks_are_round_and_hold_every_value() {
        assert_eq!(labels(&linear(&[0.0, 0.99])), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&linear(&[0.91, 0.998])), ["0.90", "0.92", "0.94", "0.96", "0.98", "1.00"]);
        assert_eq!(labels(&linear(&[-3.0, 14_000.0])), ["−5,000", "0", "5,000", "10,000", "15,000"]);
        assert_eq!(labels(&linear(&[0.0, 4.2e6])), ["0", "1M", "2M", "3M", "4M", "5M"]);
        assert_eq!(labels(&linear(&[0.3, 0.1, 0.2])), ["0.10", "0.15", "0.20", "0.25", "0.30"]);
    }

    #[test]
    fn logarithmic_ticks_are_round_and_few() {
        let log = |lower: f64, upper: f64| Axis::tight([lower, upper].into_iter(), Scale::Log, 6);
        assert_eq!(labels(&log(200.0, 6400.0)), ["200", "500", "1,000", "2,000", "5,000"]);
        assert_eq!(labels(&log(0.001, 100.0)), ["0.001", "0.01", "0.1", "1", "10", "100"]);
        assert!(labels(&log(1e-100, 1e100)).len() <= 8);
        assert!(labels(&log(30.0, 40.0)).len() >= 2);
    }

    #[test]
    fn every_value_lies_between_the_ends() {
        let sets: [&[f64]; 9] = [
            &[],
            &[0.0],
            &[7.0],
            &[-1e300, 1e300],
            &[1e-300, 2e-300],
            &[1.0, 1.0 + 1e-15],
            &[f64::NAN, f64::INFINITY, 1e308],
            &[-5.0, -4.0],
            &[1e-9, 1e12],
        ];
        for values in sets {
            for axis in [linear(values), Axis::tight(values.iter().copied(), Scale::Log, 5)] {
                let axis = axis.along(0.0, 100.0);
                assert!(axis.ticks.len() <= N_TICKS_MAX + 1, "{values:?}: {} ticks", axis.ticks.len());
                for value in values.iter().copied().chain(axis.ticks.iter().map(|tick| tick.value)) {
                    let place = axis.place(value);
                    assert!(place.is_none_or(|x| (-0.01..=100.01).contains(&x)), "{values:?}: {value} at {place:?}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_logarithm_has_no_place() {
        let axis = Axis::tight([0.0, -3.0, 1.0, 100.0].into_iter(), Scale::Log, 5).along(0.0, 10.0);
        assert_eq!([0.0, -3.0, f64::NAN].map(|value| axis.place(value)), [None; 3]);
        assert_eq!([1.0, 10.0, 100.0].map(|value| axis.place(value)), [Some(0.0), Some(5.0), Some(10.0)]);
    }
}
