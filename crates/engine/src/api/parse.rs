//! Reading a request: strictly, so that a misspelt field is an error that names the one that was meant.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// The most letters in which a field may differ from the one that was meant.
const TYPOS_MAX: usize = 3;

/// A request that a door takes.
pub trait Request: DeserializeOwned + JsonSchema {
    /// Holds every value against its limits.
    ///
    /// # Errors
    /// [`Error::Setting`] with the field, its value and the range.
    fn check(&self) -> Result<()>;
}

/// Reads a request from JSON and checks its limits.
///
/// # Errors
/// [`Error::UnknownField`] with the nearest field there is; [`Error::Request`] with the path of a value of another
/// type; those of [`Request::check`].
pub fn parse<T: Request>(json: &[u8]) -> Result<T> {
    if !json.trim_ascii_start().starts_with(b"{") {
        // Serde would read a list as the fields in their order.
        return Err(Error::Request { field: ".".to_owned(), reason: "expected a JSON object".to_owned() });
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    let request: T = serde_path_to_error::deserialize(&mut reader).map_err(refused)?;
    reader.end().map_err(|error| Error::Request { field: ".".to_owned(), reason: error.to_string() })?;
    request.check()?;
    Ok(request)
}

fn refused(error: serde_path_to_error::Error<serde_json::Error>) -> Error {
    let (path, reason) = (error.path().to_string(), error.inner().to_string());
    match unknown(&reason) {
        Some((field, known)) => Error::UnknownField { nearest: nearest(field, &known), field: field.to_owned() },
        None => Error::Request { field: path, reason },
    }
}

/// The unknown field that serde found, and the fields it knows there.
fn unknown(reason: &str) -> Option<(&str, Vec<&str>)> {
    let mut quoted = reason.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let field = quoted.next()?;
    Some((field, quoted.collect()))
}

fn nearest(field: &str, known: &[&str]) -> Option<String> {
    let distance = |other: &str| strsim::damerau_levenshtein(field, other);
    let nearest = known.iter().min_by_key(|other| distance(other))?;
    (distance(nearest) <= TYPOS_MAX.min(field.len() / 2)).then(|| (*nearest).to_owned())
}
