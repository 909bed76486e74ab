//! Percentiles of times.

use std::time::Duration;

use serde_json::{Value, json};

/// Percentiles of times in milliseconds, by nearest rank.
pub(super) struct Percentiles {
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
}

impl Percentiles {
    pub(super) fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut ms: Vec<f64> = times.map(|time| time.as_secs_f64() * 1e3).collect();
        ms.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| ms[((share * ms.len() as f64).ceil() as usize).clamp(1, ms.len()) - 1];
        Self { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
    }

    pub(super) fn json(&self) -> Value {
        json!({"p50": self.p50, "p95": self.p95, "p99": self.p99})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let ms = |n: u64| Duration::from_millis(n);
        let hundred = Percentiles::of((1..=100).rev().map(ms));
        assert_eq!((hundred.p50, hundred.p95, hundred.p99), (50.0, 95.0, 99.0));
        let one = Percentiles::of([ms(7)].into_iter());
        assert_eq!((one.p50, one.p95, one.p99), (7.0, 7.0, 7.0));
    }
}
