//! The ids that are nearest to one that is not there.

use cento_collection::keep::generation::Generation;

use crate::error::Result;

/// The closest id and its distance, among those that share the end of the path or differ by few letters.
pub(super) fn nearest_id(generation: &Generation, id: &str) -> Result<Option<(usize, String)>> {
    let mut best: Option<(usize, String)> = None;
    let n_chars = id.chars().count();
    for segment in &generation.segments {
        for document in segment.live_documents() {
            let known = segment.document_id(document)?;
            let ends_alike = known.ends_with(id) || id.ends_with(known);
            let most = 2 + id.len() / 4;
            if !ends_alike && known.chars().count().abs_diff(n_chars) > most {
                continue; // nor is there need to compare what may be very long
            }
            let distance = if ends_alike { 1 } else { strsim::levenshtein(known, id) };
            let close = distance <= most;
            if close
                && best
                    .as_ref()
                    .is_none_or(|(known_distance, known_id)| (distance, known) < (*known_distance, known_id.as_str()))
            {
                best = Some((distance, known.to_owned()));
            }
        }
    }
    Ok(best)
}
