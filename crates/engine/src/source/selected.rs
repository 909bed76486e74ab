//! Which documents a command is for: by id, by where their files are, or by a filter.

use cento_collection::format::segment::Segment;
use cento_collection::keep::generation::Generation;
use globset::{GlobBuilder, GlobMatcher};
use roaring::RoaringBitmap;

use crate::error::{Error, Result};
use crate::source::filter::{Filter, Schema};
use crate::source::nearest::nearest_id;

/// Documents of a collection.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// All there are.
    All,
    /// By their ids; each must be there.
    Documents(Vec<String>),
    /// Those read from a file or from the files of a folder, named by root label and path as ids of files are:
    /// `docs/drafts`. Where there is no such file or folder, those of the files that a glob matches: `docs/**/*.txt`;
    /// `*` stops at `/`, `**` does not.
    Path(String),
    /// Those that a filter admits.
    Filter(Filter),
}

/// A selection as far as a part of a collection can answer it alone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pick<'a> {
    /// All there are.
    All,
    /// Those of these ids that are there.
    Documents(&'a [String]),
    /// Those read from a file, or from the files of a folder.
    Under(&'a str),
    /// Those read from files that a glob matches.
    Matching(&'a GlobMatcher),
    /// Those that a filter admits, which was held against the schema before.
    Filter(&'a Filter),
}

/// Answers a selection by `of`, which gives the documents of a pick. A path is a glob only where there is no such file
/// or folder.
pub(crate) fn resolve<T>(
    selection: &Selection,
    of: impl Fn(&Pick<'_>) -> Result<T>,
    is_empty: impl Fn(&T) -> bool,
) -> Result<T> {
    let path = match selection {
        Selection::All => return of(&Pick::All),
        Selection::Documents(ids) => return of(&Pick::Documents(ids)),
        Selection::Filter(filter) => return of(&Pick::Filter(filter)),
        Selection::Path(path) => path,
    };
    let folder = path.trim_end_matches('/');
    let literal = of(&Pick::Under(folder))?;
    if folder.is_empty() || !is_empty(&literal) || !path.contains(['*', '?', '[', '{']) {
        return Ok(literal);
    }
    let glob = GlobBuilder::new(path).literal_separator(true).build().map_err(|error| Error::Setting {
        setting: "path",
        value: path.clone(),
        reason: format!("is no glob: {}", error.kind()),
    })?;
    of(&Pick::Matching(&glob.compile_matcher()))
}

/// The live documents of a selection, segment by segment.
pub(crate) fn select(generation: &Generation, selection: &Selection) -> Result<Vec<RoaringBitmap>> {
    let of = |pick: &Pick<'_>| {
        match pick {
            Pick::Documents(ids) => {
                for id in *ids {
                    if generation.find(id)?.is_none() {
                        let nearest = nearest_id(generation, id)?.map(|(_, nearest)| nearest);
                        return Err(Error::UnknownDocument { nearest, id: id.clone() });
                    }
                }
            }
            Pick::Filter(filter) => schema(generation)?.check(filter)?,
            Pick::All | Pick::Under(_) | Pick::Matching(_) => {}
        }
        picked(generation, pick)
    };
    resolve(selection, of, |selected| selected.iter().all(RoaringBitmap::is_empty))
}

/// The live documents of a pick, segment by segment.
pub(crate) fn picked(generation: &Generation, pick: &Pick<'_>) -> Result<Vec<RoaringBitmap>> {
    match *pick {
        Pick::All => documents_where(generation, |_| true),
        Pick::Documents(ids) => {
            let mut picked = vec![RoaringBitmap::new(); generation.segments.len()];
            for id in ids {
                if let Some((segment, document)) = generation.find(id)? {
                    picked[segment].insert(document);
                }
            }
            Ok(picked)
        }
        Pick::Under(folder) => documents_where(generation, |origin| {
            origin.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }),
        Pick::Matching(glob) => documents_where(generation, |origin| glob.is_match(origin)),
        Pick::Filter(filter) => {
            filter.check_of_documents()?;
            let of_segment = |segment: &Segment| Ok(filter.documents(&segment.metadata)? - &segment.deleted);
            generation.segments.iter().map(of_segment).collect()
        }
    }
}

/// The fields of the documents of a generation, dead ones too, until their segment goes.
pub(crate) fn schema(generation: &Generation) -> Result<Schema> {
    Ok(Schema::of(generation.segments.iter().map(|segment| &segment.metadata))?)
}

/// The live documents of whose files this holds.
fn documents_where(generation: &Generation, holds: impl Fn(&str) -> bool) -> Result<Vec<RoaringBitmap>> {
    let of_segment = |segment: &Segment| {
        let mut selected = RoaringBitmap::new();
        for document in segment.live_documents() {
            if holds(segment.documents.text(segment.document(document)?.origin)?) {
                selected.insert(document);
            }
        }
        Ok(selected)
    };
    generation.segments.iter().map(of_segment).collect()
}

/// The ids of documents given segment by segment, ascending.
pub(crate) fn ids(generation: &Generation, documents: &[RoaringBitmap]) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for (segment, documents) in generation.segments.iter().zip(documents) {
        for document in documents {
            ids.push(segment.document_id(document)?.to_owned());
        }
    }
    ids.sort_unstable();
    Ok(ids)
}
