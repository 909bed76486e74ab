//! Figures in sentences: rounded so that people can read them.

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

pub(crate) fn count(n: Option<usize>) -> String {
    n.map_or_else(|| "an unknown number of".to_owned(), |n| n.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_to_three_digits() {
        assert_eq!(
            (number(0.8600001), number(14.2), number(523.04), number(-0.0)),
            ("0.86".into(), "14.2".into(), "523.0".into(), "0".into())
        );
    }
}
