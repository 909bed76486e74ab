//! Scope: the documents that may answer a query. Applied before any arm takes its best, never to a finished ranking.

use roaring::RoaringBitmap;

use crate::error::{Error, Result};
use crate::searcher::Searcher;

/// The rows of some documents, segment by segment.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    rows: Vec<RoaringBitmap>,
}

impl Scope {
    /// The rows of a segment that may answer.
    pub(crate) fn rows(&self, segment: usize) -> &RoaringBitmap {
        &self.rows[segment]
    }
}

impl Searcher {
    /// The scope of a list of documents; an id that the collection does not hold is an error that names the nearest.
    pub(crate) fn scope(&self, documents: &[String]) -> Result<Scope> {
        let places = self.places()?;
        let mut scope = Scope { rows: vec![RoaringBitmap::new(); self.snapshot.segments.len()] };
        for id in documents {
            let at = places.partition_point(|place| self.id_at(*place).is_ok_and(|known| known < id.as_str()));
            let Some(&(segment, document)) =
                places.get(at).filter(|place| self.id_at(**place).is_ok_and(|known| known == id))
            else {
                let nearest = crate::documents::nearest(&self.snapshot, id)?;
                return Err(Error::UnknownDocument { nearest, id: id.clone() });
            };
            let record = self.snapshot.segments[segment].document(document)?;
            scope.rows[segment].insert_range(record.first_row..record.first_row + record.n_rows);
        }
        Ok(scope)
    }

    /// Segment and number of each live document, in the order of their ids; sorted at the first scoped query.
    fn places(&self) -> Result<&[(usize, u32)]> {
        if self.places.get().is_none() {
            let mut known = Vec::new();
            for (at, segment) in self.snapshot.segments.iter().enumerate() {
                for document in segment.live_documents() {
                    known.push((segment.document_id(document)?, (at, document)));
                }
            }
            known.sort_unstable();
            let _ = self.places.set(known.into_iter().map(|(_, place)| place).collect()); // another thread sorted the same
        }
        Ok(self.places.get().expect("set above"))
    }

    fn id_at(&self, (segment, document): (usize, u32)) -> Result<&str> {
        self.snapshot.segments[segment].document_id(document)
    }
}
