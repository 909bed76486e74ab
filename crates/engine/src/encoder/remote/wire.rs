//! The words of `/v1/embeddings`: a body, and what is believed of an answer.
//!
//! Bytes in base64 are the vector's own, so they are asked for first; servers that do not know them refuse, or answer
//! with lists of numbers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

use cento_vector::{DIMENSIONS_MAX, UNIT_TOLERANCE};

use crate::line::excerpt;
use crate::plural::counted;

/// Bytes that a number of a list takes at most, with its comma and a blank.
const NUMBER_BYTES: usize = 32;

/// Bytes of an answer besides its vectors.
const REST_BYTES: usize = 64 << 10;

/// The form of vectors that a server is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Base64,
    Floats,
}

/// Texts to embed.
pub(super) struct Question<'a> {
    pub(super) model: &'a str,
    pub(super) texts: Vec<&'a str>,
    /// Values of each vector, where the server is asked to shorten them.
    pub(super) dimensions: Option<usize>,
    pub(super) form: Form,
}

impl Question<'_> {
    pub(super) fn body(&self) -> Vec<u8> {
        let mut body = json!({ "model": self.model, "input": self.texts });
        if self.form == Form::Base64 {
            body["encoding_format"] = "base64".into();
        }
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = dimensions.into();
        }
        serde_json::to_vec(&body).expect("plain data becomes JSON")
    }
}

/// Bytes of an answer that are read, for so many vectors of so many values.
pub(super) fn bytes_max(n_texts: usize, dimensions: Option<usize>) -> usize {
    REST_BYTES + n_texts * (REST_BYTES / 64 + dimensions.unwrap_or(DIMENSIONS_MAX) * NUMBER_BYTES)
}

/// The vectors of an answer, in the order of the texts.
#[derive(Debug, PartialEq)]
pub(super) struct Vectors {
    /// Of unit length.
    pub(super) vectors: Vec<Vec<f32>>,
    /// Vectors whose length was not 1 within the tolerance of the store, and was made so.
    pub(super) n_normalised: usize,
    /// Tokens that the server counted, where it says.
    pub(super) n_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Entry>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    index: Option<usize>,
    embedding: Values,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    Base64(String),
    Floats(Vec<f32>),
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
}

/// Reads an answer to `n_texts` texts, whose vectors have so many dimensions, if that is known.
///
/// # Errors
/// The fault, in words that follow the name of the server.
pub(super) fn read(body: &str, n_texts: usize, dimensions: Option<usize>) -> Result<Vectors, String> {
    let answer: Answer = serde_json::from_str(body)
        .map_err(|error| format!("answered with what is no list of embeddings ({error}): {}", excerpt(body)))?;
    if answer.data.len() != n_texts {
        return Err(format!(
            "gave {} for {}",
            counted(answer.data.len() as u64, "vector"),
            counted(n_texts as u64, "text")
        ));
    }
    let mut entries = answer.data;
    if entries.iter().any(|entry| entry.index.is_some()) {
        entries.sort_by_key(|entry| entry.index);
        if let Some((at, entry)) = entries.iter().enumerate().find(|(at, entry)| entry.index != Some(*at)) {
            let found = entry.index.map_or_else(|| "none".to_owned(), |index| index.to_string());
            return Err(format!("gave index {found} where each of 0 to {} is expected once, {at} here", n_texts - 1));
        }
    }
    let mut read = Vectors { vectors: Vec::with_capacity(n_texts), n_normalised: 0, n_tokens: None };
    for (at, entry) in entries.into_iter().enumerate() {
        let of_text = |fault: String| format!("gave text {at} of {n_texts} a vector that {fault}");
        let mut vector = values(entry.embedding).map_err(of_text)?;
        let expected = dimensions.or(read.vectors.first().map(Vec::len)).unwrap_or(vector.len());
        if vector.len() != expected {
            return Err(of_text(format!("has {} dimensions, not {expected} as the others", vector.len())));
        }
        read.n_normalised += usize::from(make_unit(&mut vector).map_err(|fault| of_text(fault.to_owned()))?);
        read.vectors.push(vector);
    }
    read.n_tokens = answer.usage.and_then(|usage| usage.prompt_tokens.or(usage.total_tokens));
    Ok(read)
}

fn values(values: Values) -> Result<Vec<f32>, String> {
    let vector = match values {
        Values::Floats(vector) => vector,
        Values::Base64(text) => {
            let bytes = STANDARD.decode(&text).map_err(|error| format!("is no base64 ({error})"))?;
            let (values, rest) = bytes.as_chunks::<4>();
            if !rest.is_empty() {
                return Err(format!("has {} bytes, no multiple of the 4 of a float", bytes.len()));
            }
            values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
        }
    };
    match vector.len() {
        1..=DIMENSIONS_MAX => Ok(vector),
        n => Err(format!("has {n} dimensions; 1 to {DIMENSIONS_MAX} can be stored")),
    }
}

/// Gives a vector unit length; true if it had another one. Within the store's tolerance its bits stay.
fn make_unit(vector: &mut [f32]) -> Result<bool, &'static str> {
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() {
        return Err("is not finite");
    }
    if (length - 1.0).abs() <= UNIT_TOLERANCE {
        return Ok(false);
    }
    if length == 0.0 {
        return Err("has length zero");
    }
    vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base64(values: &[f32]) -> String {
        STANDARD.encode(values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
    }

    #[test]
    fn vectors_come_in_either_form_and_any_order() {
        let b = base64(&[0.0, 1.0]);
        let body = format!(r#"{{"data":[{{"index":1,"embedding":"{b}"}},{{"index":0,"embedding":[3.0,4]}}]}}"#);
        let read = read(&body, 2, Some(2)).unwrap();
        assert_eq!(read.vectors, [vec![0.6, 0.8], vec![0.0, 1.0]]);
        assert_eq!((read.n_normalised, read.n_tokens), (1, None));
    }

    #[test]
    fn what_cannot_be_vectors_is_named() {
        let nan = base64(&[f32::NAN, 1.0]);
        for (data, n_texts, fault) in [
            ("[]", 1, "0 vectors for 1 text"),
            (r#"[{"embedding":[1]},{"embedding":[1]}]"#, 1, "2 vectors for 1 text"),
            (r#"[{"embedding":[1,0,0]}]"#, 1, "3 dimensions, not 2"),
            (r#"[{"embedding":[0,0]}]"#, 1, "length zero"),
            (r#"[{"embedding":[NaN,0]}]"#, 1, "no list of embeddings"),
            (r#"[{"embedding":[null,0]}]"#, 1, "no list of embeddings"),
            (r#"[{"embedding":[1e39,0]}]"#, 1, "not finite"),
            (r#"[{"embedding":"AAA"}]"#, 1, "no base64"),
            (r#"[{"embedding":"AAAA"}]"#, 1, "3 bytes"),
            (r#"[{"index":0,"embedding":[1,0]},{"index":0,"embedding":[1,0]}]"#, 2, "index 0 where"),
            (r#"[{"index":1,"embedding":[1,0]},{"index":2,"embedding":[1,0]}]"#, 2, "index 1 where"),
            (r#"[{"index":0,"embedding":[1,0]},{"embedding":[1,0]}]"#, 2, "index none where"),
            (&format!(r#"[{{"embedding":"{nan}"}}]"#), 1, "not finite"),
        ] {
            let error = read(&format!(r#"{{"data":{data}}}"#), n_texts, Some(2)).unwrap_err();
            assert!(error.contains(fault), "{data}: {error}");
        }
        assert!(read("<html>busy</html>", 1, None).unwrap_err().contains("<html>"));
        let other = r#"{"data":[{"embedding":[1,0]},{"embedding":[1,0,0]}]}"#;
        assert!(read(other, 2, None).unwrap_err().contains("3 dimensions, not 2"));
    }
}
