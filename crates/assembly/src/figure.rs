//! Figures in sentences: rounded so that people can read them, and to the side that is enough.

/// A figure as people read it: three digits behind the point, fewer where they are zeros or it is large; `2.1e-5` if it
/// is small.
pub fn number(value: f64) -> String {
    if value.abs() >= 100.0 {
        return format!("{value:.1}");
    }
    if value != 0.0 && value.abs() < 0.001 {
        return format!("{value:.1e}");
    }
    let text = format!("{value:.3}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// The least figure of three digits that is above a value.
pub(crate) fn above(value: f64) -> f64 {
    ((value * 1000.0).floor() + 1.0) / 1000.0
}

/// The greatest figure of three digits that is not above a value.
pub(crate) fn floor(value: f64) -> String {
    number((value * 1000.0).floor() / 1000.0)
}

pub(crate) fn count(n: Option<usize>) -> String {
    n.map_or_else(|| "an unknown number of".to_owned(), |n| n.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_to_the_side_that_is_enough() {
        assert_eq!(
            (number(0.8600001), number(14.2), number(523.04), number(-0.0)),
            ("0.86".into(), "14.2".into(), "523.0".into(), "0".into())
        );
        assert!(above(0.86) > 0.86 && above(0.8634) <= 0.864 && above(1.0) > 1.0);
        assert_eq!(floor(0.0129), "0.012");
    }
}
