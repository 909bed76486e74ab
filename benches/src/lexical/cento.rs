//! Cento's lexical arm over whole documents, as `cento run --mode lexical` has it: the title is the first line of the
//! text.

use std::sync::Arc;

use anyhow::Result;
use cento_lexical::{Analyzer, Bm25, Memory, Part, Row, Searcher, Segment, Unit, Writer};

use super::set::Set;
use super::{DEPTH, Ranked};

/// A ranking for each query, in the order of the topics.
pub(super) fn rank(set: &Set) -> Result<Vec<Ranked>> {
    let analyzer = Analyzer::default();
    let mut writer = Writer::new(&analyzer)?;
    for document in &set.documents {
        writer.add(Row { text: &document.whole(), ..Row::default() })?;
    }
    let segment = Segment::open(Arc::new(Memory::from(writer.finish()?)), &analyzer)?;
    let document_of_row: Vec<u32> = (0..segment.n_rows()).collect();
    let part = Part { segment: &segment, live: None, allowed: None, document_of_row: &document_of_row };
    let searcher = Searcher::new(vec![part], Unit::Document, Bm25::default())?;
    set.topics
        .iter()
        .map(|topic| {
            let mut scored = searcher.score(&topic.text)?.swap_remove(0);
            scored.sort_by(|a, b| b.score.total_cmp(&a.score));
            scored.truncate(DEPTH);
            Ok(scored.into_iter().map(|scored| (scored.unit as usize, scored.score)).collect())
        })
        .collect()
}
