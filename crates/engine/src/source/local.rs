//! One collection as a source: a generation that does not change while it is open.

use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use cento_assembly::Candidate;
use cento_collection::format::segment::Segment;
use cento_collection::keep::generation::Generation;
use cento_collection::keep::snapshots::At;
use cento_lexical::{Bm25, Explanation, Statistics, Unit};
use cento_vector::Lift;
use roaring::RoaringBitmap;

use crate::cancel::Cancel;
use crate::error::Result;
use crate::source::documents::{self, DocumentSection, Excerpt, ListedDocument, LocatedDocument, Part, Sought};
use crate::source::filter::Schema;
use crate::source::filter::rows::{n_documents, rows_of};
use crate::source::links::names::Name;
use crate::source::links::table::NameTable;
use crate::source::links::{Heading, Linkers, Linking, stored};
use crate::source::ranking::Ranking;
use crate::source::refs::{Around, ChunkKey, ChunkRef, Named};
use crate::source::scope::{Scope, Scoped, Wanted};
use crate::source::seam::{
    Counted, DenseQueries, Description, Labelled, LexicalQueries, Matched, Near, Rescored, Source,
};
use crate::source::selected::{self, Pick, picked};
use crate::source::titles::{self, Holder, Mention, Titles};
use crate::source::{chunks, dense, keys, labels, lexical, nearest};

/// One open collection.
#[derive(Debug)]
pub(crate) struct Local {
    generation: Generation,
    description: Description,
    /// The titles of its documents, when a text is first held against them.
    titles: OnceLock<Titles>,
    /// All their names, when a link is first resolved.
    names: NameTable,
}

impl Local {
    /// Opens a generation of the collection at `folder`.
    pub(crate) fn open(folder: &Path, at: &At) -> Result<Self> {
        let generation = Generation::open_at(folder, at)?;
        let n_live = |segment: &Segment| segment.n_live_rows() as u64;
        let graphs = generation.segments.iter().filter(|segment| segment.columns[0].graph.is_some());
        let description = Description {
            manifest: generation.manifest.clone(),
            n_documents: generation.n_documents(),
            n_rows: generation.n_rows(),
            n_graph_rows: graphs.map(n_live).sum(),
            is_pinned: generation.pin.is_some(),
        };
        Ok(Self { generation, description, titles: OnceLock::new(), names: NameTable::default() })
    }

    /// The answer at the beginning of what is asked: the files are looked at before, too.
    fn asked<T>(&self, answer: impl FnOnce(&Generation) -> Result<T>) -> Result<T> {
        self.generation.renew()?;
        self.read(answer)
    }

    /// The answer that is made of the generation, or the error that some of its bytes were lost meanwhile: whatever was
    /// computed of the zeros in their place is given to nobody, a panic included. Everything that leaves passes here.
    fn read<T>(&self, answer: impl FnOnce(&Generation) -> Result<T>) -> Result<T> {
        let answer = panic::catch_unwind(AssertUnwindSafe(|| answer(&self.generation)));
        self.generation.check_whole()?;
        answer.unwrap_or_else(|panic| panic::resume_unwind(panic))
    }

    fn known_titles(&self) -> Result<&Titles> {
        if let Some(known) = self.titles.get() {
            return Ok(known);
        }
        let titles = Titles::read(&self.generation)?;
        Ok(self.titles.get_or_init(|| titles)) // another thread read the same
    }

    fn scoped(&self, generation: &Generation, wanted: Wanted<'_>) -> Result<Scoped> {
        let segments = &generation.segments;
        let mut unknown = Vec::new();
        let documents = match wanted {
            Wanted::All => {
                let all = |segment: &Segment| RoaringBitmap::from_iter(0..segment.chunks.len() as u32);
                let scope = Scope::new(segments.iter().map(all).collect());
                return Ok(Scoped { scope, n_documents: self.description.n_documents, unknown });
            }
            Wanted::Documents(ids) => {
                let mut documents = vec![RoaringBitmap::new(); segments.len()];
                for id in ids {
                    match generation.find(id)? {
                        Some((segment, document)) => drop(documents[segment].insert(document)),
                        None => unknown.push(id.clone()),
                    }
                }
                documents
            }
            Wanted::Phrases(phrases) => {
                let (rows, n_documents) = lexical::phrases::rows(generation, &phrases)?;
                return Ok(Scoped { scope: Scope::new(rows), n_documents, unknown });
            }
            Wanted::Filter(filter) if filter.is_of_chunks() => {
                let rows = segments.iter().map(|segment| filter.rows(segment)).collect::<Result<Vec<_>, _>>()?;
                let of_segments = segments.iter().zip(&rows).map(|(segment, rows)| n_documents(segment, rows));
                let n_documents = of_segments.sum::<Result<u64, _>>()?;
                return Ok(Scoped { scope: Scope::new(rows), n_documents, unknown });
            }
            Wanted::Filter(filter) => picked(generation, &Pick::Filter(filter))?,
        };
        let rows = segments.iter().zip(&documents).map(|(segment, documents)| rows_of(segment, documents));
        let scope = Scope::new(rows.collect::<Result<_, _>>()?);
        Ok(Scoped { scope, n_documents: documents.iter().map(RoaringBitmap::len).sum(), unknown })
    }

    fn segment(&self, chunk: ChunkRef) -> (&Segment, u32) {
        let (segment, row) = chunk.place();
        (&self.generation.segments[segment], row)
    }
}

impl Source for Local {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn check_whole(&self) -> Result<()> {
        Ok(self.generation.check_whole()?)
    }

    fn schema(&self) -> Result<Schema> {
        self.asked(selected::schema)
    }

    fn scope(&self, wanted: Wanted<'_>) -> Result<Scoped> {
        self.asked(|generation| self.scoped(generation, wanted))
    }

    fn statistics(&self, counted: Counted, terms: &[String], cancel: &Cancel) -> Result<Statistics> {
        let counts = |generation: &Generation| lexical::statistics(generation, counted, terms, cancel);
        match counted {
            Counted::Units(_) => self.asked(counts),
            Counted::Texts => self.read(counts), // of single terms, many times, by a query that has begun
        }
    }

    fn lexical(&self, queries: &LexicalQueries<'_>) -> Result<Vec<Matched>> {
        self.asked(|generation| lexical::ranked(generation, queries))
    }

    fn explain(
        &self,
        query: &str,
        chunks: &[ChunkRef],
        bm25: Bm25,
        statistics: Option<&Statistics>,
    ) -> Result<Vec<Explanation>> {
        self.read(|generation| lexical::explained(generation, query, chunks, bm25, statistics))
    }

    fn nearest(&self, queries: &DenseQueries<'_>) -> Result<Vec<Near>> {
        self.asked(|generation| dense::nearest(generation, queries))
    }

    fn rescore(&self, rescored: &Rescored<'_>) -> Result<Ranking> {
        self.read(|generation| dense::rescored(generation, rescored))
    }

    fn ids(&self, unit: Unit, chunks: &[ChunkRef]) -> Result<Vec<Arc<str>>> {
        self.read(|generation| keys::ids(generation, unit, chunks))
    }

    fn chunks(&self, chunks: &[ChunkRef]) -> Result<Vec<Candidate>> {
        self.read(|generation| chunks::candidates(generation, chunks))
    }

    fn around(&self, around: &[Around]) -> Result<Vec<ChunkKey>> {
        self.read(|generation| chunks::around(generation, around))
    }

    fn vectors(&self, chunks: &[ChunkRef]) -> Result<Vec<Vec<f32>>> {
        let lift = self.generation.manifest.config.lift();
        let vector = |chunk: &ChunkRef| {
            let (segment, row) = self.segment(*chunk);
            let row = segment.columns[0].rows.row(row)?;
            Ok(if lift == Lift::Cosine { row.into_owned() } else { lift.direction(&row) })
        };
        self.read(|_| chunks.iter().map(vector).collect())
    }

    fn texts(&self, spans: &[(ChunkRef, Range<u64>)]) -> Result<Vec<String>> {
        let text = |(chunk, span): &(ChunkRef, Range<u64>)| {
            let (segment, row) = self.segment(*chunk);
            let record = segment.document(segment.chunks.record(row as usize)?.document)?;
            Ok(segment.text(&record, span.clone())?)
        };
        self.read(|_| spans.iter().map(text).collect())
    }

    fn openings(&self, chunks: &[ChunkRef], bytes_max: u64) -> Result<Vec<String>> {
        self.read(|generation| chunks.iter().map(|chunk| titles::opening(generation, *chunk, bytes_max)).collect())
    }

    fn titles(&self, chunks: &[ChunkRef]) -> Result<Vec<String>> {
        self.read(|generation| chunks.iter().map(|chunk| titles::title(generation, *chunk)).collect())
    }

    fn named(&self, texts: &[String]) -> Result<Vec<Vec<Mention>>> {
        self.read(|generation| {
            let titles = self.known_titles()?;
            texts.iter().map(|text| titles.named(generation, text)).collect()
        })
    }

    fn find(&self, documents: &[(String, Option<u32>)]) -> Result<Vec<Option<Named>>> {
        let found = |generation: &Generation| {
            documents.iter().map(|(id, number)| documents::find(generation, id, *number)).collect()
        };
        self.asked(found)
    }

    fn located(&self, sought: &Sought<'_>) -> Result<Vec<LocatedDocument>> {
        self.asked(|generation| documents::located(generation, sought))
    }

    fn linking(&self, documents: &[String]) -> Result<Vec<Option<Linking>>> {
        self.read(|generation| documents.iter().map(|id| stored::linking(generation, id)).collect())
    }

    fn linkers(&self) -> Result<Linkers> {
        self.asked(stored::linkers)
    }

    fn called(&self, names: &[Name]) -> Result<Vec<Vec<Holder>>> {
        self.read(|generation| names.iter().map(|name| self.names.holders(generation, name)).collect())
    }

    fn outline(&self, document: &str) -> Result<Option<Vec<Heading>>> {
        self.read(|generation| stored::outline(generation, document))
    }

    fn excerpt(&self, document: &str, part: &Part) -> Result<Option<Excerpt>> {
        self.asked(|generation| documents::excerpt(generation, document, part))
    }

    fn sections(&self, document: &str) -> Result<Option<Vec<DocumentSection>>> {
        self.asked(|generation| documents::sections(generation, document))
    }

    fn nearest_id(&self, id: &str) -> Result<Option<(usize, String)>> {
        self.read(|generation| nearest::nearest_id(generation, id))
    }

    fn documents(&self, pick: &Pick<'_>) -> Result<Vec<ListedDocument>> {
        self.asked(|generation| documents::list(generation, pick))
    }

    fn at(&self, positions: &[u64]) -> Result<Vec<ChunkRef>> {
        let mut chunks = Vec::with_capacity(positions.len());
        let mut positions = positions.iter().copied().peekable();
        let mut first = 0;
        for (number, segment) in self.generation.segments.iter().enumerate() {
            let end = first + segment.n_live_rows() as u64;
            while let Some(position) = positions.next_if(|&position| position < end) {
                let inside = (position - first) as u32;
                let row = segment.live.as_ref().map_or(Some(inside), |live| live.select(inside));
                chunks.extend(row.map(|row| ChunkRef::new(number, row)));
            }
            first = end;
        }
        Ok(chunks)
    }

    fn labels(&self) -> Result<Vec<Labelled>> {
        self.asked(labels::labels)
    }
}
