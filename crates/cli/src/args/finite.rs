//! Numbers as options take them.

/// A number that is one, and not without end.
pub(super) fn finite(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|error: std::num::ParseFloatError| error.to_string())?;
    if number.is_finite() { Ok(number) } else { Err("expected a finite number".to_owned()) }
}

/// The same, from 0 on.
pub(super) fn not_negative(text: &str) -> Result<f64, String> {
    finite(text).and_then(|number| if number >= 0.0 { Ok(number) } else { Err("expected 0 or more".to_owned()) })
}
