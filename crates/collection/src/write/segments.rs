//! The new segments of a generation, written one after another: one that is full is finished, and the next begins.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cento_lexical as lexical;
use roaring::RoaringBitmap;

use super::commit::NewSegment;
use crate::error::{Error, Result};
use crate::format::config::CollectionConfig;
use crate::format::layout::SEGMENTS;
use crate::format::manifest::SegmentEntry;
use crate::format::segment::{NewDocument, Segment, SegmentLimits, SegmentWriter, Unfinished};
use crate::fs::{Folder, Fs};

/// Writes segments `<generation>-0`, `<generation>-1` and so on; none without a document.
pub struct SegmentsWriter<'a> {
    config: &'a CollectionConfig,
    generation: u64,
    /// The size at which a segment is full.
    pub limits: SegmentLimits,
    open: Option<SegmentWriter<'a>>,
    /// The number to try for the next segment.
    next: usize,
    written: Written<'a>,
}

impl<'a> SegmentsWriter<'a> {
    /// Writes segments of that generation into the collection at `folder`.
    pub fn new(
        fs: &'a dyn Fs,
        folder: &Path,
        config: &'a CollectionConfig,
        generation: u64,
        limits: SegmentLimits,
    ) -> Self {
        let written = Written { fs, folder: folder.to_owned(), segments: Vec::new() };
        Self { config, generation, limits, open: None, next: 0, written }
    }

    /// True if the document fits beside those of the open segment; the next one takes it otherwise.
    pub fn has_room(&self, new: &NewDocument<'_>) -> bool {
        self.open.as_ref().is_none_or(|open| open.has_room(new, &self.limits))
    }

    /// The segment whose rows may still get vectors.
    pub fn open(&mut self) -> Option<&mut SegmentWriter<'a>> {
        self.open.as_mut()
    }

    /// Adds a document and its chunks to the open segment, or to the next one if none is open; their rows follow each
    /// other from the returned one on.
    ///
    /// # Errors
    /// `DocumentTooLarge` if no segment takes it. Nothing of it was added then, and others may follow.
    pub fn push(&mut self, new: &NewDocument<'_>) -> Result<u32> {
        if self.open.is_none() {
            let Written { fs, folder, .. } = &self.written;
            let open = SegmentWriter::create(*fs, folder, self.generation, self.next, self.config)?;
            self.next = open.number() + 1;
            self.open = Some(open);
        }
        let open = self.open.as_mut().expect("opened above");
        let is_alone = open.n_documents() == 0;
        match open.push(new) {
            Err(Error::Lexical(source @ lexical::Error::RowTooLarge { .. })) => Err(Error::DocumentTooLarge { source }),
            Err(Error::Lexical(source @ lexical::Error::Full { .. })) if is_alone => {
                self.next = self.open.take().map_or(self.next, |open| open.number());
                Err(Error::DocumentTooLarge { source })
            }
            pushed => pushed,
        }
    }

    /// Finishes the open segment, which replaces the segments at these positions. Where no document came instead of
    /// theirs, what is handed over has none, and no files.
    pub fn finish_segment(&mut self, replaces: &BTreeSet<usize>, graph_rows_done: impl FnMut(usize)) -> Result<()> {
        let (name, replaces) = (String::new(), replaces.clone());
        let mut new =
            NewSegment { name, n_documents: 0, n_rows: 0, graphs: Vec::new(), replaces, deleted: RoaringBitmap::new() };
        match self.open.take().filter(|open| open.n_documents() > 0) {
            Some(open) => {
                new.name = open.name().to_owned();
                (new.n_documents, new.n_rows) = (open.n_documents() as u64, open.n_rows() as u64);
                new.graphs = open.finish(self.limits.graph_rows_min, graph_rows_done)?;
            }
            None if new.replaces.is_empty() || self.written.segments.iter().any(|old| old.replaces == new.replaces) => {
                return Ok(());
            }
            None => {}
        }
        self.written.segments.push(new);
        Ok(())
    }

    /// Takes a segment of another collection, opened in the folder `from`, as it is, with its dead; the bytes that were
    /// copied.
    ///
    /// # Errors
    /// The segment is damaged, or cannot be copied; nothing of it stays.
    pub fn copy(&mut self, segment: &Segment, from: &Folder, entry: &SegmentEntry) -> Result<u64> {
        assert!(self.open.is_none(), "no segment is being written beside it");
        let Written { fs, folder, .. } = &self.written;
        let place = Unfinished::create(*fs, folder, self.generation, self.next)?;
        self.next = place.number + 1;
        let n_bytes = segment.copy(from, *fs, &place.folder)?;
        self.written.segments.push(NewSegment {
            name: place.name(),
            n_documents: entry.n_documents,
            n_rows: entry.n_rows,
            graphs: entry.graphs.clone(),
            replaces: BTreeSet::new(),
            deleted: segment.deleted.clone(),
        });
        place.finish();
        Ok(n_bytes)
    }

    /// The segments that were finished.
    pub fn written(&self) -> &[NewSegment] {
        &self.written.segments
    }

    /// Hands the finished segments over to a commit: until then they go if the writer does.
    pub fn finish(mut self) -> Vec<NewSegment> {
        std::mem::take(&mut self.written.segments)
    }
}

/// Finished segments that no manifest names yet; they go with a run that fails, since what failed may have been for
/// want of room.
struct Written<'a> {
    fs: &'a dyn Fs,
    /// The collection's.
    folder: PathBuf,
    segments: Vec<NewSegment>,
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        for segment in self.segments.iter().filter(|segment| segment.n_documents > 0) {
            let _ = self.fs.remove_dir(&self.folder.join(SEGMENTS).join(&segment.name)); // or with the next commit
        }
    }
}
