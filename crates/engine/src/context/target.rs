//! Target: the chunks that an id names, of a document or one alone.

use crate::error::{Error, Result};
use crate::retrieve::searcher::Searcher;
use crate::source::refs::{ChunkRef, Chunks};
use crate::source::scope::Scope;

/// The chunks that were asked for.
#[derive(Debug)]
pub(crate) struct Target {
    /// As it was asked for.
    pub(crate) id: String,
    pub(crate) document: String,
    pub(crate) chunks: Chunks,
}

impl Target {
    /// True if one of them at least may answer.
    pub(crate) fn is_in(&self, scope: &Scope) -> bool {
        self.chunks.iter().any(|chunk| scope.contains(chunk))
    }
}

impl Searcher {
    /// The chunks that an id names, see [`Searcher::targets`].
    pub(crate) fn target(&self, id: &str) -> Result<Target> {
        Ok(self.targets(&[id.to_owned()])?.swap_remove(0))
    }

    /// The chunks that each id names: a document's, or one. An id that holds `#` itself is tried first as it stands.
    pub(crate) fn targets(&self, ids: &[String]) -> Result<Vec<Target>> {
        let asked: Vec<(String, Option<u32>)> = ids.iter().map(|id| (id.clone(), None)).collect();
        let mut targets = Vec::with_capacity(ids.len());
        let mut of_chunks = Vec::new();
        for (at, (id, named)) in ids.iter().zip(self.source.find(&asked)?).enumerate() {
            match named {
                None => of_chunks.push((at, id.clone())),
                Some(named) if named.chunks.is_empty() => {
                    let has = "none that is searched".to_owned();
                    return Err(Error::OutOfRange { id: id.clone(), what: "chunk".to_owned(), has });
                }
                Some(named) => {
                    targets.push((at, Target { id: id.clone(), document: id.clone(), chunks: named.chunks }));
                }
            }
        }
        let (places, ids): (Vec<usize>, Vec<String>) = of_chunks.into_iter().unzip();
        let of_chunks = self.chunk_targets(&ids)?.into_iter().map(|(target, _)| target);
        targets.extend(places.into_iter().zip(of_chunks));
        targets.sort_by_key(|(at, _)| *at);
        Ok(targets.into_iter().map(|(_, target)| target).collect())
    }

    /// Chunks by their public ids.
    pub(crate) fn chunk_targets(&self, ids: &[String]) -> Result<Vec<(Target, ChunkRef)>> {
        let parts = |id: &String| {
            let chunk = id.rsplit_once('#').and_then(|(document, index)| Some((document, index.parse::<u32>().ok()?)));
            let (document, index) = chunk.unwrap_or((id, 0));
            (document.to_owned(), Some(index))
        };
        let asked: Vec<(String, Option<u32>)> = ids.iter().map(parts).collect();
        let mut targets = Vec::with_capacity(ids.len());
        for ((id, (document, index)), named) in ids.iter().zip(&asked).zip(self.source.find(&asked)?) {
            let Some(named) = named else { return Err(self.unknown(document)?) };
            let Some(chunk) = named.chunk else {
                return Err(Error::OutOfRange {
                    id: document.clone(),
                    what: format!("chunk {}", index.unwrap_or_default()),
                    has: format!("{} that can be searched", named.chunks.len()),
                });
            };
            let target = Target { id: id.clone(), document: document.clone(), chunks: named.chunks.only(chunk) };
            targets.push((target, chunk));
        }
        Ok(targets)
    }

    /// A chunk of a document by its number.
    pub(crate) fn chunk(&self, document: &str, number: u32) -> Result<Option<ChunkRef>> {
        let found = self.source.find(&[(document.to_owned(), Some(number))])?;
        Ok(found.into_iter().flatten().find_map(|named| named.chunk))
    }
}
