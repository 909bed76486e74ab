//! About where a chunk lies in its document: between delivered chunks, whose bytes are known, by its number.
//!
//! Range: beyond the last chunk delivered a chunk is as long as those before it are on average.

use std::collections::BTreeMap;
use std::ops::Range;

use cento_engine::ContextTrace;

/// Starts of chunks of one document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Places {
    /// Number of a chunk and its first byte, both ascending.
    known: Vec<(u32, u64)>,
    /// Bytes of a chunk beyond the last one known, above 0.
    chunk_bytes: f64,
}

impl Places {
    /// What the citations of a trace tell of a document.
    pub(super) fn of(document: &str, trace: &ContextTrace) -> Self {
        let records = trace.assembly.records.iter().filter(|record| record.document == document);
        let rows: BTreeMap<&str, u32> = records.map(|record| (record.chunk_id.as_str(), record.row_number)).collect();
        let citations = trace.delivered.citations.iter().filter(|citation| citation.document == document);
        let mut pieces = Vec::new();
        for citation in citations {
            let rows = || citation.chunks.iter().filter_map(|chunk| rows.get(chunk.as_str()).copied());
            if let (Some(first), Some(last)) = (rows().min(), rows().max()) {
                pieces.push((first..last + 1, citation.span.clone()));
            }
        }
        Self::between(pieces)
    }

    /// From pieces: numbers of chunks, and the bytes they take. The end of a chunk counts as the start of the next.
    fn between(mut pieces: Vec<(Range<u32>, Range<u64>)>) -> Self {
        pieces.sort_by_key(|(rows, bytes)| (rows.start, bytes.start));
        let mut known = vec![(0, 0)];
        for (rows, bytes) in pieces {
            for (row, byte) in [(rows.start, bytes.start), (rows.end, bytes.end)] {
                if known.last().is_none_or(|&(before, from)| row > before && byte >= from) {
                    known.push((row, byte));
                }
            }
        }
        let (n_chunks, n_bytes) = known.last().copied().unwrap_or_default();
        Self { known, chunk_bytes: (n_bytes as f64 / f64::from(n_chunks.max(1))).max(1.0) }
    }

    /// About the bytes of a chunk.
    pub(super) fn span(&self, row: u32) -> Range<u64> {
        self.start(row)..self.start(row.saturating_add(1))
    }

    fn start(&self, row: u32) -> u64 {
        let at = self.known.partition_point(|(known, _)| *known <= row);
        let (from_row, from) = at.checked_sub(1).map_or((0, 0), |before| self.known[before]);
        let n_rows = f64::from(row - from_row);
        let bytes = match self.known.get(at) {
            Some((to_row, to)) => n_rows * (to - from) as f64 / f64::from(to_row - from_row),
            None => n_rows * self.chunk_bytes,
        };
        from + bytes.round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_lies_between_its_delivered_neighbours() {
        let places = Places::between(vec![(10..11, 5000..5400), (2..4, 900..1900)]);
        assert_eq!((places.span(2).start, places.span(3).end), (900, 1900), "what was delivered lies where it lies");
        assert_eq!(places.span(10), 5000..5400);
        assert_eq!((places.span(0), places.span(1)), (0..450, 450..900));
        assert_eq!(places.span(5), 2417..2933);
        assert_eq!(places.span(11), 5400..5891, "the mean length, 5400 / 11, beyond the last");
    }

    #[test]
    fn chunks_that_overlap_or_stand_at_the_start_keep_their_order() {
        let places = Places::between(vec![(0..1, 0..300), (1..2, 250..600), (2..3, 550..900)]);
        let spans: Vec<_> = (0..5).map(|row| places.span(row)).collect();
        assert!(spans.windows(2).all(|pair| pair[0].end == pair[1].start), "{spans:?}");
        assert_eq!(places.span(3), 900..1200);
        assert_eq!(Places::between(Vec::new()).span(7), 7..8);
    }
}
