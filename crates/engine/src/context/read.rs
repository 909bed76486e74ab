//! What a pool reads of its collection: texts and vectors of its chunks, the worth of terms.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use cento_assembly::{Candidate, Citation};

use crate::context::pool::Pool;
use crate::error::{Error, Result};
use crate::source::refs::ChunkRef;

/// Terms that are looked up together, at most.
const TERMS_MAX: usize = 50_000;

impl Pool<'_> {
    /// The bytes that a citation of one of this pool's contexts names.
    pub fn text(&self, citation: &Citation) -> Result<String> {
        Ok(self.texts(std::slice::from_ref(citation))?.swap_remove(0))
    }

    /// The same of several.
    pub fn texts(&self, citations: &[Citation]) -> Result<Vec<String>> {
        let spans = self.chunks_of(citations)?.into_iter().zip(citations);
        let spans: Vec<_> = spans.map(|(chunk, citation)| (chunk, citation.span.clone())).collect();
        self.searcher.source.texts(&spans)
    }

    /// The characters (Unicode scalar values, as Python counts them) of its document's canonical text that a citation
    /// of one of this pool's contexts names. Reads the document up to its end.
    pub fn characters(&self, citation: &Citation) -> Result<Range<u64>> {
        Ok(self.characters_of(std::slice::from_ref(citation))?.swap_remove(0))
    }

    /// The same of several.
    pub fn characters_of(&self, citations: &[Citation]) -> Result<Vec<Range<u64>>> {
        let both = |(chunk, citation): (ChunkRef, &Citation)| {
            [(chunk, 0..citation.span.start), (chunk, citation.span.clone())]
        };
        let spans: Vec<_> = self.chunks_of(citations)?.into_iter().zip(citations).flat_map(both).collect();
        let counts = self.searcher.source.texts(&spans)?.into_iter().map(|text| text.chars().count() as u64);
        let counts: Vec<u64> = counts.collect();
        Ok(counts.as_chunks::<2>().0.iter().map(|[before, own]| *before..before + own).collect())
    }

    /// The vector of a candidate, of unit length; the plain one where the collection has both kinds.
    pub fn vector(&self, chunk: &str) -> Result<Vec<f32>> {
        Ok(self.vectors(&[chunk.to_owned()])?.into_iter().next().unwrap_or_default())
    }

    /// The same of several.
    pub fn vectors(&self, chunks: &[String]) -> Result<Vec<Vec<f32>>> {
        self.searcher.source.vectors(&self.places_of(chunks)?)
    }

    /// Lets what an assembly of candidates will ask for come along with what it asks for first; and checks what only
    /// the shards of a collection could get wrong: assembly takes it for granted.
    pub(super) fn look_ahead(&self, candidates: &[Candidate]) -> Result<()> {
        if !self.searcher.source.is_far() {
            return Ok(());
        }
        let mut laid: Vec<&Candidate> = candidates.iter().collect();
        laid.sort_by(|a, b| (&a.document, a.index).cmp(&(&b.document, b.index)));
        for [one, next] in laid.array_windows() {
            let are_apart = one.span.end <= next.span.start && one.n_chunks == next.n_chunks;
            if one.document == next.document && one.id != next.id && !are_apart {
                let place = self.places.borrow().get(&next.id).copied();
                let shard = place.map_or_else(String::new, |chunk| self.searcher.source.whose(chunk));
                let reason = format!("its answers cannot be: {} and {} do not follow each other", one.id, next.id);
                return Err(Error::Shard { shard, reason });
            }
        }
        laid.sort_by(|a, b| b.relevance.total_cmp(&a.relevance).then_with(|| a.id.cmp(&b.id)));
        self.vectors_ahead.set(laid.iter().map(|candidate| candidate.id.clone()));
        let texts = laid.iter().map(|candidate| candidate.text.clone());
        self.texts_ahead.set(std::iter::once(self.search.query.clone()).chain(texts));
        Ok(())
    }

    pub(super) fn idf(&self, term: &str) -> Result<f64> {
        if let Some(&known) = self.idfs.borrow().get(term) {
            return Ok(known);
        }
        let mut terms = BTreeSet::from([term.to_owned()]);
        for text in self.texts_ahead.take() {
            let known = self.idfs.borrow();
            terms.extend(self.searcher.analyzer.terms(&text).into_iter().filter(|term| !known.contains_key(term)));
        }
        let others = terms.iter().filter(|other| *other != term).take(TERMS_MAX).cloned();
        let terms: Vec<String> = std::iter::once(term.to_owned()).chain(others).collect();
        let idfs = self.searcher.idfs(&terms)?;
        let own = idfs[0];
        self.idfs.borrow_mut().extend(terms.into_iter().zip(idfs));
        Ok(own)
    }

    pub(super) fn cosine(&self, a: &str, b: &str) -> Result<f64> {
        let (a, b) = (self.cached_vector(a)?, self.cached_vector(b)?);
        Ok(a.iter().zip(b.iter()).map(|(x, y)| f64::from(x * y)).sum())
    }

    fn cached_vector(&self, chunk: &str) -> Result<Rc<[f32]>> {
        if let Some(vector) = self.vectors.borrow().get(chunk) {
            return Ok(Rc::clone(vector));
        }
        let mut ids = vec![chunk.to_owned()];
        {
            let known = self.vectors.borrow();
            ids.extend(self.vectors_ahead.take().into_iter().filter(|id| id != chunk && !known.contains_key(id)));
        }
        let mut read = self.vectors(&ids)?.into_iter().map(Rc::from);
        let vector: Rc<[f32]> = read.next().unwrap_or_default();
        let mut known = self.vectors.borrow_mut();
        known.insert(chunk.to_owned(), Rc::clone(&vector));
        known.extend(ids.into_iter().skip(1).zip(read));
        Ok(vector)
    }

    /// The first chunk of each citation.
    fn chunks_of(&self, citations: &[Citation]) -> Result<Vec<ChunkRef>> {
        let first: Vec<String> = citations.iter().map(|citation| citation.chunks[0].clone()).collect();
        self.places_of(&first)
    }

    /// The chunks of ids; those that only a request brought are looked up.
    fn places_of(&self, chunks: &[String]) -> Result<Vec<ChunkRef>> {
        let unknown: Vec<String> = {
            let places = self.places.borrow();
            chunks.iter().filter(|id| !places.contains_key(*id)).cloned().collect()
        };
        if !unknown.is_empty() {
            let found = self.searcher.chunk_targets(&unknown)?;
            self.places.borrow_mut().extend(unknown.into_iter().zip(found.into_iter().map(|(_, chunk)| chunk)));
        }
        let places = self.places.borrow();
        Ok(chunks.iter().map(|id| places[id]).collect())
    }
}
