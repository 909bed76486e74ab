//! The bounds of every request: what one question may cost at most, whoever asks it. Defaults stand with the
//! requests in [`api`](crate::api), how deep an arm looks in [`CANDIDATE_DEPTH`](crate::CANDIDATE_DEPTH).

use cento_vector::DIMENSIONS_MAX;

use crate::error::{Error, Result};

/// The longest query. An encoder reads its beginning alone; BM25 reads all of it.
pub const QUERY_BYTES_MAX: usize = 64 << 10;

/// The most further questions of one context; each is a search.
pub(crate) const QUERIES_MAX: usize = 32;

/// The most candidates of an arm; each costs an id and a text.
pub const CANDIDATES_MAX: usize = 100_000;

/// The most candidates that a reranker reads; each costs a pass of a model.
pub const RERANK_DEPTH_MAX: usize = 1_000;

/// The widest beam of a graph.
pub const EF_MAX: usize = 100_000;

/// The largest budget; the optimiser's cost grows with it.
pub const BUDGET_TOKENS_MAX: usize = 1_000_000;

/// The most ids in a list of a request.
pub const IDS_MAX: usize = 10_000;

/// The most texts that are embedded at once.
pub const EMBED_TEXTS_MAX: usize = 1_024;

/// The most vectors whose neighbours are asked for at once.
pub const VECTORS_MAX: usize = 10_000;

/// The most neighbours of an answer, over all its vectors; each has an id.
pub const NEIGHBORS_ANSWERED_MAX: usize = 1_000_000;

/// The longest text that is embedded, and the longest id.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Bytes of text in an answer, at most; what is longer is asked for in parts.
pub const ANSWER_BYTES_MAX: usize = 256 << 20;

/// The most chunks that are offered beside those found; each costs an id and a text.
pub(crate) const NEIGHBORS_MAX: usize = 50_000;

/// An error unless `value` is from `least` to `most`.
pub(crate) fn within(setting: &'static str, value: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::Setting { setting, value: value.to_string(), reason: format!("is not from {least} to {most}") })
}

/// An error if a number is no likelihood.
pub(crate) fn likelihood(setting: &'static str, value: Option<f64>) -> Result<()> {
    match value.filter(|value| !(0.0..=1.0).contains(value)) {
        Some(value) => {
            let (value, reason) = (value.to_string(), "is no likelihood; give a number from 0 to 1".to_owned());
            Err(Error::Setting { setting, value, reason })
        }
        None => Ok(()),
    }
}

/// The largest weight of a part of a score beside another.
const WEIGHT_MAX: f64 = 100.0;

/// An error if a number is no weight.
pub(crate) fn weight(setting: &'static str, value: f64) -> Result<()> {
    if (0.0..=WEIGHT_MAX).contains(&value) {
        return Ok(());
    }
    let reason = format!("is no weight; give a number from 0 to {WEIGHT_MAX}");
    Err(Error::Setting { setting, value: value.to_string(), reason })
}

/// An error unless a number is from 0 to `most`.
pub(crate) fn number(setting: &'static str, value: f64, most: f64) -> Result<()> {
    if (0.0..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::Setting { setting, value: value.to_string(), reason: format!("is not from 0 to {most}") })
}

/// An error if a text has more than `most` bytes; it is not repeated.
pub(crate) fn text(setting: &'static str, text: &str, most: usize) -> Result<()> {
    if text.len() <= most {
        return Ok(());
    }
    let value = format!("{} bytes", text.len());
    Err(Error::Setting { setting, value, reason: format!("are more than the {most} that are read") })
}

/// An error if a list has too many ids, or one that is too long.
pub(crate) fn ids(setting: &'static str, ids: &[String]) -> Result<()> {
    if ids.len() > IDS_MAX {
        let value = format!("{} ids", ids.len());
        return Err(Error::Setting { setting, value, reason: format!("are more than the {IDS_MAX} that are read") });
    }
    ids.iter().try_for_each(|id| text(setting, id, TEXT_BYTES_MAX))
}

/// An error if there are too many vectors, or one has more dimensions than any collection.
pub(crate) fn vectors(setting: &'static str, vectors: &[Vec<f32>]) -> Result<()> {
    if vectors.len() > VECTORS_MAX {
        let value = format!("{} vectors", vectors.len());
        return Err(Error::Setting {
            setting,
            value,
            reason: format!("are more than the {VECTORS_MAX} that are read"),
        });
    }
    vectors.iter().try_for_each(|vector| within(setting, vector.len(), 1, DIMENSIONS_MAX))
}

/// An error if there are too many questions, or one that is too long or empty.
pub(crate) fn queries(setting: &'static str, queries: &[String]) -> Result<()> {
    if queries.len() > QUERIES_MAX {
        let value = format!("{} questions", queries.len());
        return Err(Error::Setting {
            setting,
            value,
            reason: format!("are more than the {QUERIES_MAX} that are asked"),
        });
    }
    queries.iter().try_for_each(|query| match query.trim() {
        "" => Err(Error::EmptyQuery),
        _ => text(setting, query, QUERY_BYTES_MAX),
    })
}

/// An error if the texts of an answer are too long together.
pub(crate) fn answer(texts: impl Iterator<Item = usize>) -> Result<()> {
    let n_bytes: usize = texts.fold(0, usize::saturating_add);
    if n_bytes <= ANSWER_BYTES_MAX {
        return Ok(());
    }
    Err(Error::AnswerTooLarge { n_bytes, n_bytes_max: ANSWER_BYTES_MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_the_last_that_passes() {
        assert!(answer([ANSWER_BYTES_MAX - 1, 1].into_iter()).is_ok());
        let error = answer([ANSWER_BYTES_MAX, usize::MAX].into_iter()).unwrap_err().to_string();
        assert!(error.contains(&ANSWER_BYTES_MAX.to_string()) && error.contains("ask for fewer"), "{error}");
        assert!(within("k", 1, 1, 2).is_ok() && within("k", 2, 1, 2).is_ok());
        assert!(within("k", 0, 1, 2).is_err() && within("k", 3, 1, 2).is_err());
        assert!(text("query", "abc", 3).is_ok() && text("query", "abcd", 3).is_err());
        for none in [f64::NAN, f64::INFINITY, -0.1, 1.1] {
            assert!(likelihood("min-score", Some(none)).is_err(), "{none}");
        }
        assert!(likelihood("min-score", Some(1.0)).is_ok() && likelihood("min-score", None).is_ok());
    }
}
