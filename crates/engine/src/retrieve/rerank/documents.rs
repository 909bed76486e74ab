//! The best documents of a ranking in the order of a reranker: a document has the logit of its best passage.
//!
//! Of each document the [`PASSAGES`] chunks are read that stand first in a ranking of the chunks of these documents by
//! the same retrievers; its first chunk where no retriever finds any.
//! Cost: a search for the chunks, and at most [`PASSAGES`] passes of the model for each document.

use std::collections::HashMap;

use cento_assembly::fuse::Fused;
use cento_lexical::Unit;

use super::reading::Reranking;
use super::stage::reorder;
use crate::error::Result;
use crate::retrieve::request::{ChunkSearch, Links};
use crate::retrieve::run::{Question, RankSettings, RunRequest};
use crate::retrieve::search::Timings;
use crate::retrieve::searcher::Searcher;
use crate::source::ranking::name;
use crate::source::refs::{ChunkRef, RankedChunk, document_of};
use crate::source::scope::Wanted;

/// Passages of a document that are read: one of a long document often is not the one that answers, and each costs as
/// much as another document.
const PASSAGES: usize = 3;

impl Searcher {
    /// Puts the best documents of a ranking into the order of a reranker.
    pub(crate) fn rerank_documents(
        &self,
        question: Question<'_>,
        fused: &mut Vec<Fused<RankedChunk>>,
        reranking: &Reranking,
        request: &RunRequest,
        settings: &RankSettings,
    ) -> Result<()> {
        self.check_readable(reranking, question.text)?;
        let n_read = reranking.depth().min(fused.len());
        let documents = &mut fused[..n_read];
        if documents.is_empty() {
            return Ok(());
        }
        name(&mut *documents, |chunks| self.source.ids(Unit::Document, chunks))?;
        let chunks = self.best_chunks(question, documents, request, settings)?;
        let flat: Vec<ChunkRef> = chunks.iter().flatten().copied().collect();
        let logits = reranking.all_logits(question.text, &self.passages(&flat)?, &request.cancel)?;
        let mut logits = logits.into_iter();
        let of_documents: Vec<Option<f32>> =
            chunks.iter().map(|chunks| logits.by_ref().take(chunks.len()).reduce(f32::max)).collect();
        reorder(fused, &of_documents);
        Ok(())
    }

    /// The chunks of each document that are read.
    fn best_chunks(
        &self,
        question: Question<'_>,
        documents: &[Fused<RankedChunk>],
        request: &RunRequest,
        settings: &RankSettings,
    ) -> Result<Vec<Vec<ChunkRef>>> {
        let ids: Vec<String> = documents.iter().map(|found| id(found).to_owned()).collect();
        let scope = self.source.scope(Wanted::Documents(&ids))?.scope.within(question.scope);
        let search = ChunkSearch {
            vector: question.vector.cloned(),
            candidates: request.candidates,
            mode: request.mode,
            fusion: request.fusion,
            weights: settings.weights,
            links: Links::None,
            scan: request.scan,
            ef: request.ef,
            find: request.find,
            cancel: request.cancel.clone(),
            ..ChunkSearch::new(question.text)
        };
        let mut found = self.rank_within(&search, Some(&scope), usize::MAX, &mut Timings::default())?.fused;
        name(&mut found, |chunks| self.source.ids(Unit::Row, chunks))?;
        let mut of_document: HashMap<&str, Vec<ChunkRef>> = HashMap::new();
        for found in &found {
            let chunks = of_document.entry(document_of(id(found), Unit::Row)).or_default();
            if chunks.len() < PASSAGES {
                chunks.push(found.id.chunk);
            }
        }
        let chunks = |found: &Fused<RankedChunk>| of_document.remove(id(found)).unwrap_or_else(|| vec![found.id.chunk]);
        Ok(documents.iter().map(chunks).collect())
    }
}

/// The id of what has one.
fn id(found: &Fused<RankedChunk>) -> &str {
    found.id.id.as_deref().unwrap_or_default()
}
